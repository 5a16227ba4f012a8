"""`Compiled`: a function that is recorded once for each kind of call and replayed afterwards, gradients included.

The first call of a kind runs eagerly and is recorded; its first backward pass is recorded, too. Later calls check the guards (shapes, dtypes, layouts,
Python arguments, the state of modules and of the Python around), then run the program: one native call forward, one backward. A call that cannot be
recorded runs eagerly ever after, and `reasons` says why.
"""
from __future__ import annotations

import functools
import threading
from bisect import bisect_right
from itertools import count
from typing import Any
from weakref import WeakSet, ref

from ..autograd import record
from ..autograd.engine import BEFORE
from ..autograd.graph import grad_fn, requires_grad
from ..autograd.modes import STATE
from ..autograd.profiler import RUNNING, record_function
from ..ops import indexing
from ..ops.generator import default_generator
from ..tensor import Tensor, wrap
from . import calls
from .beside import beside
from .fuse import fuse
from .gradients import Backward, CompiledFunctionBackward0, First
from .guards import SIMPLE, Snapshot, marks_of
from .inplace import in_place
from .kinds import Quick, call_key, quick_call
from .lifetimes import cut, lifetimes, rounded
from .order import first_writes, moved_up
from .program import Memory, Program, Unknown, names, resolve
from .recording import Recording, busy
from .results import Built, Output, Place, add_blocks, again_from, copied, hooked, hooks_on, passing, random_state, rebuilt, run, share_memory, spent, tensors_of, window
from .updates import ask
from .versions import apart

CHANGES = "it changes the state of a module or a variable"
WARM_UP = 2  # calls of a kind that may change state before it is believed that they always do: first calls fill caches and make buffers
RECENT = 2  # kinds of call that are tried first: steps that add to gradients alternate with those that do not
LIMIT = 8  # kinds of call that are recorded; the next ones run eagerly


class NotCompiled(RuntimeError):
    """`compile(fullgraph=True)` met a function that cannot be recorded whole."""


LIVE: WeakSet[Compiled] = WeakSet()  # for a report at the end of a program
_order = count()


class Compiled:
    """The callable behind `compile(function)`. `programs`: kinds of call recorded; `reasons`: why others run eagerly."""

    def __init__(self, function, fullgraph: bool = False, limit: int | None = None):
        self.function, self.fullgraph, self.limit = function, fullgraph, limit or LIMIT
        self.entries: dict[tuple, list[Entry]] = {}
        self.eager: set[tuple] = set()
        self.changing: dict[tuple, int] = {}  # how many calls of a kind have changed state
        self.reasons: list[str] = []
        self.order = next(_order)
        self.recent: tuple[Quick, ...] = ()  # of the recordings that served last
        self.recording = threading.Lock()
        LIVE.add(self)
        functools.update_wrapper(self, function, updated=())

    def report(self) -> dict:
        """What became of the calls: `name`, `reasons` for running eagerly, and of each recorded kind its `forward` and `backward` program (None where
        there is none yet): `steps` recorded, `kernels` they became, `fused` [{lines, saved bytes}], `temporary` and `arena` bytes (before and after sharing);
        `updates`: [{optimizer, parameters}] whose `numbers` are taken anew by every call; `derivatives`: lines whose derivative the forward program keeps in place of its argument."""
        kinds = []
        for entry in (e for entries in self.entries.values() for e in entries if e.ready):
            backward = entry.backward and _told(entry.backward.program, entry.backward.fused)
            updates = [{"optimizer": type(update.optimizer).__name__, "parameters": len(update.members)} for update in entry.updates]
            kinds.append({"forward": _told(entry.forward, entry.fused), "backward": backward, "updates": updates, "numbers": entry.numbers, "derivatives": entry.derivatives})
        return {"name": getattr(self.function, "__qualname__", type(self.function).__name__), "reasons": list(self.reasons), "kinds": kinds}

    @property
    def original(self):
        """What is compiled; guards of a function around this one look at it alone."""
        return self.function

    @property
    def programs(self) -> int:
        return sum(entry.ready for entries in self.entries.values() for entry in entries)

    def __call__(self, *args, **kwargs):
        for quick in self.recent:
            if quick.fits(*args, **kwargs):
                numbers = quick.numbers()
                if numbers is not None:
                    return quick.run((self.function, args, kwargs, None), quick.leaves(args, kwargs), numbers)
        if busy() or STATE.saved_hooks:
            return self.function(*args, **kwargs)
        key, leaves, objects = call_key(args, kwargs)
        if key is None or key in self.eager:
            return self.function(*args, **kwargs)
        for entry in self.entries.get(key, ()):
            if entry.snapshot.holds() and (entry.grads is None or entry.grads == [t._grad is None for t in leaves]) and (not entry.steps_too or entry.may_step(leaves)):
                numbers = ask(entry.updates, entry.rules) if entry.updates else ()
                if numbers is not None:
                    if entry.first_look is None and entry.quick is not None:
                        entry.first_look = quick_call(entry, args, kwargs) or False
                    if isinstance(entry.first_look, Quick):
                        self.recent = (entry.first_look, *[quick for quick in self.recent if quick is not entry.first_look][: RECENT - 1])
                    if RUNNING:  # a profile is open: what is replayed is a row of it
                        with record_function(f"Torch-Compiled Region: {getattr(self.function, '__qualname__', type(self.function).__name__)}"):
                            return entry.call(self.function, args, kwargs, leaves, numbers)
                    return entry.call(self.function, args, kwargs, leaves, numbers)
        if sum(map(len, self.entries.values())) >= self.limit:
            self._refuse(f"it was recorded for {self.limit} kinds of call already")
            return self.function(*args, **kwargs)  # what was recorded goes on to serve: under other guards this kind of call may be among it
        if not self.recording.acquire(blocking=False):  # another thread records: it may well be this very kind of call
            return self.function(*args, **kwargs)
        try:
            return self._record(key, args, kwargs, leaves, objects)
        finally:
            self.recording.release()

    def __reduce__(self):  # a copy has recordings of its own
        return Compiled, (self.function, self.fullgraph, self.limit)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def _refuse(self, reason):
        if reason not in self.reasons:
            self.reasons.append(reason)
        if self.fullgraph:
            raise NotCompiled(f"{getattr(self.function, '__qualname__', self.function)} cannot be compiled whole: {reason}.\n  Leave out fullgraph=True to run such calls eagerly.")

    def _give_up(self, key, reason, args, kwargs):
        self.eager.add(key)
        self._refuse(reason)
        return self.function(*args, **kwargs)

    def _record(self, key, args, kwargs, leaves, objects):
        snapshot = Snapshot(self.function, *objects)
        reason = snapshot.reason
        if reason is None and any(name in snapshot.names for t in leaves for name in marks_of(t)):
            reason = "it reads an attribute that was given to a tensor"
        if reason is not None:
            return self._give_up(key, reason, args, kwargs)
        entry = Entry(snapshot, len(leaves), self._refuse)
        result, reason = entry.record(self.function, args, kwargs, leaves)
        if reason == CHANGES and not self.fullgraph:
            self.changing[key] = self.changing.get(key, 0) + 1
            if self.changing[key] < WARM_UP:
                return result
        if reason is not None:
            self.eager.add(key)
            self._refuse(reason)
        else:
            self.entries.setdefault(key, []).append(entry)
        return result


# ---- one recording ---------------------------------------------------------------------------------------------------------------

FAULT, RANDOM, FIRST_TENSOR = 1, 2, 3  # numbers of a program's bases: where kernels report bad indices, the generator's state, then the external tensors


class Entry:
    """One kind of call: its guards, the programs and how results are put together."""

    def __init__(self, snapshot: Snapshot, leaves: int, refuse):
        self.snapshot, self.leaves, self.refuse = snapshot, leaves, refuse  # refuse(reason): notes why something runs eagerly
        self.grads: list[bool] | None = None  # of the arguments, whether they have no gradient, where the function may look at it
        self.forward: Program | None = None
        self.backward: Backward | None = None
        self.quick: Any = None  # the generated forward call, and whether it can be made now
        self.quick_backward: Any = None
        self.first_look: Quick | bool | None = None  # what calls go through first; False: nothing could be written for them
        self.settled = False
        self.waiting: Any = None  # weak reference to the node whose backward pass is to be recorded
        self.attempts = 0
        self.steps_too = False  # it sets gradients or runs an optimiser's update, or is given gradients
        self.made: list[tuple] = []  # (place, Output or None) of the external tensors whose .grad the call sets
        self.had: list[bool] = []  # which of the external tensors have a gradient before the call
        self.same: list[tuple] = []  # (place, place of the external tensor that is its gradient): a parameter and its gradient, both given
        self.given: list[tuple] = []  # (place, spec) of those gradients that the call reads or writes: they are external tensors, too, behind the others
        self.updates: list = []  # of optimisers, which are asked for the numbers of a replay, and the rules that take those
        self.rules: list[tuple] = []
        self.derivatives: list = []  # (file, line) of functions whose derivatives are computed beside them
        self.spent = False  # the results' graph was used up inside

    @property
    def count(self) -> int:
        """How many external tensors there are."""
        return self.leaves + len(self.snapshot.tensors) + len(self.given)

    def external(self, leaves) -> list:
        tensors = [*leaves, *self.snapshot.tensors]
        return tensors + [tensors[place]._grad for place, _ in self.given]

    @property
    def ready(self) -> bool:
        return self.forward is not None

    # ---- recording ----

    def record(self, function, args, kwargs, leaves):
        """(the call's result, why it cannot be replayed or None). The call itself runs eagerly."""
        self.attempts += 1
        external = [*leaves, *self.snapshot.tensors]
        gradients = [(place, t._grad, t._grad.mem.version) for place, t in enumerate(external) if t._grad is not None]
        before = [(t.mem, t.mem.version, t._grad, _history(t), hooks_on(t)) for t in external]
        if self.snapshot.reads_grad:
            self.grads = [t._grad is None for t in leaves]
        key = call_key(args, kwargs)[0]
        with default_generator.lock:
            default_generator.state()  # made now, not inside the recording
        with Recording() as recording, passing(external) as passed:
            result = function(*args, **kwargs)
        reason = recording.reason
        if reason is None and passed:
            reason = "its backward pass goes on into the history of a tensor from outside"
        watched = recording.watched
        self.snapshot.settle([update.group for update in watched.updates], watched.plain)
        if reason is None and not self.snapshot.holds():
            reason = CHANGES
        reason = reason or watched.reason
        if reason is None and any(t.mem is not mem or _history(t) != node for t, (mem, _, _, node, _) in zip(external, before)):
            reason = "it changes the history or the memory of a tensor from outside"
        if reason is None and any(hooks_on(t) != hooks for t, (*_, hooks) in zip(external, before)):
            reason = "it registers a hook on a tensor, or wants its gradient kept"
        given = [place for place, (t, (_, _, grad, *_)) in enumerate(zip(external, before)) if t._grad is not grad]
        if reason is None and any(external[place]._hooks or external[place]._post_hooks for place in given):
            reason = "hooks run in its backward pass"
        if reason is None:
            after, again, _ = call_key(args, kwargs)
            if after != key or [*map(id, leaves)] != [*map(id, again)]:
                reason = "it changes its arguments or a mode"
        if reason is not None:
            return result, reason
        found: list[Tensor] = []
        tensors_of(result, found)
        if hooked(found, external):
            return result, "it registers a hook on a tensor, or wants its gradient kept"
        tracked = any(t._tracked for t in found)
        self.spent = tracked and spent(found, external)
        if given and tracked and not self.spent:
            return result, "it sets gradients and returns a result that is still to be differentiated"
        stepping = bool(given or watched.updates or watched.plain)
        self.same = [] if stepping else [(place, other) for place, grad, _ in gradients for other, t in enumerate(external) if t is grad]
        known = {place for place, _ in self.same}
        gradients = [one for one in gradients if one[0] not in known]
        versions = [version for _, version, *_ in before]
        self.steps_too = stepping or bool(self.same)
        self.had = [grad is not None for _, _, grad, *_ in before]
        try:
            tensors, number = external, len(external)
            for once in (True, False):  # with all gradients that there were, then with those that are used
                external = [*tensors, *[grad for _, grad, _ in gradients]]
                memory = Memory()
                self.add_external(memory, external)
                self.sizes = add_blocks(memory, recording.blocks, 0)
                self.steps = apart(resolve(recording.steps, memory), recording.recipes, self.sizes)
                outputs: list[Output] = []
                self.shape = self.describe(result, external, memory, outputs, [])
                self.made = [(place, self.gradient(external[place]._grad, memory, outputs)) for place in given]
                if once:
                    regions = {name for step in self.steps for name in names(step)} | {o.region for o in (*outputs, *[o for _, o in self.made if o is not None])}
                    gradients = [one for k, one in enumerate(gradients, number) if ("tensor", k) in regions]
        except Unknown as error:
            return result, str(error)
        if any(grad._tracked or grad._base is not None for _, grad, _ in gradients):
            return result, "it uses a gradient that has a graph or is a view"
        self.given = [(place, grad.spec) for place, grad, _ in gradients]
        versions += [version for *_, version in gradients]
        self.written = [(place, t.mem.version - version) for place, (t, version) in enumerate(zip(external, versions)) if t.mem.version != version]
        self.spans = [t.spec.layout.span * t.spec.itemsize if t.spec.is_plain else 0 for t in external]  # bytes
        self.recipes = recording.recipes
        self.updates, self.rules = watched.updates, watched.rules
        self.numbers = len(watched.numbers)
        self.changed = {("block", number) for number, block in enumerate(recording.blocks) if block.version}
        self.outputs = outputs
        self.fresh = [o for o in outputs if o.fresh]
        self.random = any(name == ("random",) for step in self.steps for name in names(step))
        self.checked = any(step.what == "flag" or ("fault",) in names(step) for step in self.steps)
        self.differentiable = [place for place, t in enumerate(external) if t._tracked] if any(o.tracked for o in self.fresh) else []
        self.used_up: list[int] = []  # in place of them, where the results' graph was used up inside
        if self.spent:
            self.used_up, self.differentiable = self.differentiable, []
        if not self.differentiable:
            self.finish(set(), 0)
            self.settled = True
            return result, None
        inner = [t for t, o in zip(found, outputs) if o.fresh]
        outs = [wrap(t.spec, t.mem, t.ptr) for t in inner]
        for out, t in zip(outs, inner):
            out._inference = t._inference
        return self.hand_out(external, outs, (function, args, kwargs, None), first=First(inner, recording, memory)), None

    @staticmethod
    def add_external(memory: Memory, external) -> None:
        for place, t in enumerate(external):
            if not t.spec.is_meta and t.spec.numel:
                memory.add(t.ptr, t.spec.layout.span * t.spec.itemsize, ("tensor", place))
        memory.add(indexing._error.address, 16, ("fault",))
        memory.add(default_generator.address, default_generator._memory.nbytes, ("random",))

    def describe(self, value, external, memory: Memory, outputs, met):
        """The result with its tensors replaced by places in `outputs`. Raises Unknown for what cannot be made again."""
        if isinstance(value, Tensor):
            for place, other in enumerate(met):
                if other is value:
                    return Place(place)
            output = self.output(value, external, memory)
            if output.fresh and any(o.region == output.region and (o.tracked or output.tracked) for o in outputs):
                raise Unknown("it returns several views of one tensor")  # a write into one would be in the other's history
            outputs.append(output)
            met.append(value)
            return Place(len(outputs) - 1)
        if isinstance(value, (list, tuple)):
            return Built(type(value), [self.describe(item, external, memory, outputs, met) for item in value])
        if type(value) is dict:
            return Built(dict, [(key, self.describe(item, external, memory, outputs, met)) for key, item in value.items()])
        if isinstance(value, SIMPLE):
            return value
        raise Unknown(f"it returns an object of type {type(value).__name__}")

    @staticmethod
    def output(t: Tensor, external, memory: Memory) -> Output:
        for place, other in enumerate(external):
            if other is t:
                return Output(("tensor", place), 0, None, t._tracked, False)
        place = memory.find(t.ptr)
        if t.spec.is_meta or place is None or place[0][0] not in ("block", "tensor"):
            raise Unknown("it returns a tensor without data")
        if requires_grad(t) and grad_fn(t) is None:
            raise Unknown("it returns a new tensor that asks for a gradient of its own")
        if place[0][0] == "tensor":
            given = external[place[0][1]]
            base = given if given._base is None else given._base
            span = place[1] + t.spec.layout.span * t.spec.itemsize
            if t.spec.dtype is not given.spec.dtype or t._inference or given._inference or span > given.spec.layout.span * given.spec.itemsize or requires_grad(t):
                raise Unknown("it returns a view of a tensor from outside that has a history, or another dtype")
            return Output(place[0], place[1], t.spec, False, False, t._base is not base)
        return Output(place[0], place[1], t.spec, t._tracked, t._inference)

    @staticmethod
    def gradient(grad: Tensor | None, memory: Memory, outputs) -> Output | None:
        """Where the gradient that a call leaves in a tensor's `.grad` was made. Raises Unknown for what cannot be made again."""
        if grad is None:
            return None
        place = None if grad.spec.is_meta else memory.find(grad.ptr)
        if place is not None and place[0][0] == "tensor" and not grad._tracked and grad._base is None:  # detached and zeroed
            return Output(place[0], place[1], grad.spec, False)
        if place is None or place[0][0] != "block" or grad._tracked or grad._base is not None or not grad.spec.numel or any(o.region == place[0] for o in outputs):
            raise Unknown("it leaves a gradient that is a view, has a graph or is returned as well")
        return Output(place[0], place[1], grad.spec, False)

    def may_step(self, leaves) -> bool:
        """Whether gradients may be used and set as the recorded call did: what had one has one, and no hook wants to see it."""
        tensors = [*leaves, *self.snapshot.tensors]
        if BEFORE or self.had != [t._grad is not None for t in tensors] or any(tensors[place]._grad is not tensors[other] for place, other in self.same):
            return False
        if any((grad := tensors[place]._grad).spec is not spec or grad._tracked or grad._base is not None for place, spec in self.given):
            return False
        return not any(tensors[place]._hooks or tensors[place]._post_hooks for place, _ in self.made)

    def steady(self, region: tuple) -> bool:
        """Whether a region is written by the operator that made it only, if at all."""
        if region[0] == "tensor":
            return all(place != region[1] for place, _ in self.written)
        return region[0] == "grad" or region[0] == "block" and region not in self.changed

    @property
    def result_blocks(self) -> list[tuple]:
        """The regions that hold what the caller gets."""
        return sorted({o.region for o in (*self.fresh, *(o for _, o in self.made if o is not None)) if o.region[0] != "tensor"})

    def finish(self, touched: set, gradients: int, ends: dict[tuple, int] | None = None, held: int = 0) -> dict:
        """Makes the forward program. touched: regions of it that the backward program reads, ends: the stages of that program which are the last to need what is kept for it,
        held: bytes that it holds at most. Returns the places of all bases, for that program."""
        count, ends = self.count, ends or {}
        places: dict[tuple, tuple[int, int]] = {("fault",): (FAULT, 0), ("random",): (RANDOM, 0)}
        places.update((("tensor", place), (FIRST_TENSOR + place, 0)) for place in range(count))
        number = FIRST_TENSOR + count
        result_blocks = self.result_blocks
        places.update((name, (number + k, 0)) for k, name in enumerate(result_blocks))
        made = {number + k: self.sizes[name] for k, name in enumerate(result_blocks)}
        number += len(result_blocks)
        lasting = touched | set(result_blocks)
        steps = self.steps if touched else beside(self.steps, self.recipes, lasting, self.steady, self.sizes, self.derivatives)
        steps, self.fused = fuse(steps, self.recipes, lasting, self.steady, self.sizes)
        steps, _ = in_place(moved_up(steps, self.recipes, (), lasting, self.sizes), self.recipes, lasting, self.sizes)
        pause, self.early = None, []
        if self.checked and self.written:  # checks are looked at before anything from outside is written; what is written before the last of them is copied first
            first = first_writes(steps, self.recipes)
            at = {place: first.get(("tensor", place), len(steps)) for place, _ in self.written}
            behind = 1 + max((k for k, step in enumerate(steps) if step.what == "flag" or ("fault",) in names(step)), default=-1)
            self.early = [place for place, number in at.items() if number < behind]
            pause = max(behind, min(at.values()))
        life = lifetimes(steps)
        blocks = [(self.sizes[name], first, len(steps) if name in lasting else last) for name, (first, last) in life.items() if name in self.sizes]
        cuts, _ = cut(blocks, len(steps), [] if pause is None or not 0 < pause < len(steps) else [pause], held)
        groups: dict[tuple[int, int], list] = {}  # what is kept is one storage for each stage that is the first to write and each that is the last to read
        for name in sorted(ends):
            groups.setdefault((bisect_right(cuts, life[name][0]), ends[name]), []).append(name)
        self.kept = []
        for together in groups.values():
            nbytes = 0
            for name in together:
                places[name] = number, nbytes
                nbytes += rounded(self.sizes[name])
            made[number] = nbytes
            self.kept.append(nbytes)
            number += 1
        self.forward = Program(steps, self.sizes, places, number - 1, made=made, cuts=cuts, pause=pause, numbers=self.numbers)
        places.update((("grad", k), (number + k, 0)) for k in range(gradients))
        self.steps, self.recipes = [], {}
        return places

    # ---- replaying ----

    def call(self, function, args, kwargs, leaves, numbers=()):
        if self.quick is not None:
            return self.quick((function, args, kwargs, None), leaves, numbers)
        if self.forward is None:
            if self.waiting() is not None:
                return function(*args, **kwargs)  # the first call's backward pass may still come
            if self.attempts < ATTEMPTS:
                return self.record(function, args, kwargs, leaves)[0]
            if self.written:  # could not be made again
                self.refuse("it writes into a tensor from outside and returns a result that nobody differentiates; let it return that detached")
                return function(*args, **kwargs)
            self.finish(set(), 0)  # nobody asks for gradients; who does so later has the call made again
            self.settled = True
        if self.quick is None and self.settled:
            self.settled = False
            self.quick = calls.forward(self)
        external = self.external(leaves)
        if self.written and share_memory(external, self.spans):
            return function(*args, **kwargs)  # what it writes may be what it reads under another name
        state = random_state() if self.random and (self.differentiable or self.checked) else None
        for place, _ in self.made:
            external[place]._grad = None  # dropped in the recorded call, too: its memory serves the next one
        result_blocks = self.result_blocks
        addresses = [indexing._error.address, default_generator.address, *[t.ptr for t in external], *[0] * (len(result_blocks) + len(self.kept))]
        contents = self.contents(external, self.early)
        storages: dict = {}
        if not run(self.forward, addresses, numbers, storages, self.random):
            return again_from((function, args, kwargs), contents, state)
        for place, raised in self.written:
            external[place].mem.version += raised
        first = FIRST_TENSOR + self.count
        results, kept = ([storages[base] for base in range(a, a + n)] for a, n in ((first, len(result_blocks)), (first + len(result_blocks), len(self.kept))))
        memory = dict(zip(result_blocks, results))
        for place, o in self.made:
            if o is not None and o.region[0] == "tensor":
                external[place]._grad = wrap(o.spec, (given := external[o.region[1]]).mem, given.ptr + o.offset)
            else:
                external[place]._grad = None if o is None else wrap(o.spec, made := memory[o.region], made.data + o.offset)
        outs = [wrap(o.spec, mem := memory[o.region], mem.data + o.offset) for o in self.fresh]
        for out, o in zip(outs, self.fresh):
            if o.inference:
                out._inference = True
        return self.hand_out(external, outs, (function, args, kwargs, state), results, kept)

    @staticmethod
    def contents(external, places) -> list:
        """Copies of what has to be put back afterwards: (address, bytes, number of bytes)."""
        return [(t.ptr, copied(t.ptr, nbytes := t.spec.layout.span * t.spec.itemsize), nbytes) for t in (external[place] for place in places)]

    def hand_out(self, external, outs, again, results=None, kept=None, first=None):
        """The call's result around its fresh tensors, hung on a node where gradients are wanted."""
        if self.differentiable:
            tracked = tuple([out for out, o in zip(outs, self.fresh) if o.tracked])
            backward = self.backward
            saves = () if backward is None else (*[external[place] for place in backward.reads], *[outs[place] for place in backward.reads_results])
            node = record(CompiledFunctionBackward0, tuple([external[place] for place in self.differentiable]), tracked, saves)
            node.versions = [t.mem.version for t in external]
            node.entry, node.external, node.results, node.kept, node.first, node.again = self, external, results, kept, first, again
            if first is not None:
                self.waiting = ref(node)
        elif self.spent:  # as the recorded call's
            node = record(CompiledFunctionBackward0, tuple([external[place] for place in self.used_up]), tuple([out for out, o in zip(outs, self.fresh) if o.tracked]))
            node.entry, node.external = self, None
        fresh = iter(outs)
        return rebuilt(self.shape, [next(fresh) if o.fresh else external[o.region[1]] if o.spec is None else window(external[o.region[1]], o) for o in self.outputs])


def _history(t: Tensor) -> tuple:
    """What changes where a tensor's history does: a view's own node follows its base's only when it is asked for."""
    return id(t._node), t._base is not None and id(t._base._node)


ATTEMPTS = 3  # recorded calls whose backward pass never came, after which the forward pass is compiled alone


def _told(program: Program, fused) -> dict:
    groups = [{"lines": [line for line in dict.fromkeys(kernel.lines) if line is not None], "steps": len(kernel.lines), "saved": kernel.saved} for kernel in fused]
    steps = program.kernels + sum(len(kernel.lines) - 1 for kernel in fused)
    return {"steps": steps, "kernels": program.kernels, "fused": groups, "temporary": program.temporary, "arena": program.arena}
