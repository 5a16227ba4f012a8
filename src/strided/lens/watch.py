"""`Watch`: looks at a training script while it runs. Results of operators are looked at as they come, gradients when an optimiser steps.

Holds the collecting. What is worth saying about it is watch_findings.py's, the report's two forms watch_report.py's.
"""
from __future__ import annotations

import gc
import math
import os
import sys
from threading import get_ident
from types import FrameType
from typing import Any, NamedTuple

from .. import dispatch
from ..autograd import engine, no_grad
from ..block_tensor import BlockTensor
from ..kernels.finite import INFINITE, NAN, Runs, descriptor_of, specials
from ..kernels.native import read_scalar
from ..kernels.native_objects import begin_trail, scan, watcher
from ..layout import broadcast_shapes
from ..nn.module import Module
from ..optim.optimizer import GLOBAL_STEP_POST, GLOBAL_STEP_PRE
from ..tensor import Tensor

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_RELUS = {"relu", "relu_", "relu6", "threshold", "threshold_"}
_OPTIMISERS = 32  # a run that makes one for each of many tasks is not searched for names each time
_EVERY, _OFTEN, _SELDOM = 4, 64, 32  # calls of an activation between looks at it: at first, until so many calls, then
_MARKS, _MARKED_BYTES = 64, 64 << 20  # storages with infinities or NaN that are remembered
_TRAILS = 1 << 14  # calls whose lines are remembered
_UNKNOWN = object()
_DENSE_STEPS, _SPARSEST = 20, 64  # gradient norms are taken at each of the first steps, then ever more seldom, at last every so many


class Place(NamedTuple):
    """A line of the user's."""

    file: str
    line: int

    def __str__(self):
        return f"{os.path.basename(self.file)}, line {self.line}"


class Special(NamedTuple):
    """Where an infinity or NaN was made: `kind` INFINITE or NAN, operator, line, shapes; `cause`: that of the input it was made from."""

    kind: int
    op: str
    place: Place | None
    phase: str
    shape: tuple
    cause: Special | None


class Watch:
    """Context manager around a training run. `losses` [(step, value)], `norms` {parameter's name: [(step, norm)]}."""

    def __init__(self):
        self.losses: list[tuple[int, float]] = []
        self.norms: dict[str, list[tuple[int, float]]] = {}
        self.rms: dict[str, list[float]] = {}
        self.totals: list[tuple[int, float]] = []
        self.steps = 0
        self.backwards = 0
        self.marks: dict[int, tuple[Any, Special]] = {}  # storages that hold specials, kept so that their ids stay theirs
        self.first: Special | None = None  # the first NaN
        self.bad_loss: tuple[int, float] | None = None
        self.loss_mark: Special | None = None
        self.bad_gradient: tuple[int, str, Special | None, int] | None = None  # step, parameter, origin, backward passes so far
        self.bad_parameter: tuple[int, str] | None = None
        self.relus: dict[tuple, list] = {}  # by (code, place in it): units, calls so far, looks, which units fired
        self.counters: dict[tuple, list] = {}  # the same entries, by (id of code, place in it, spec)
        self.broadcasts: dict[Place, tuple] = {}
        self.optimisers: list[Any] = []  # weakly would lose those made in functions that returned: kept
        self.known: set[int] = set()  # their ids
        self.received: set[int] = set()  # ids of parameters that had a gradient at some step
        self.names: dict[int, str] = {}
        self.uncleared: Place | None = None
        self.pending: dict[int, Place | None] = {}  # optimisers that stepped: where a backward pass then began before their gradients were cleared, if one did
        self.thread = get_ident()
        self.trails: dict[int, tuple] = {}  # for what was called since the step began, as a number: the user's (code, place in it), or () for none
        self.roles: dict[Any, Any] = {}  # by entry: None (never looked at), 0 (for its result alone), "relu" (each call), True (calls with two operands of different kinds)
        self.complete: dict[int, int] = {}  # how many parameters a group, by its id, had when each of them had received a gradient
        self.flagged = False  # infinities or NaN were seen in a backward pass
        self.runs: dict[int, tuple[list, Runs]] = {}  # of the gradients of each group's parameters, by the group's id
        self.paused = False  # operators go by unseen while an optimiser steps

    # ---- listening ----

    def __enter__(self):
        begin_trail()
        given = _kinds, self.marks, self._see, self.roles, self.trails, self._learn, sys._getframe, 2, "f_lasti"
        self.watching = dispatch.watch(watcher("see", *given))
        self.looking = watcher("look", _kinds, self.marks, self._after_node)
        self.watching.__enter__()
        self.handles = [(GLOBAL_STEP_PRE, "watch"), (GLOBAL_STEP_POST, "watch")]
        GLOBAL_STEP_PRE["watch"], GLOBAL_STEP_POST["watch"] = self._before_step, self._after_step
        engine.BEFORE.append(self._before_backward)
        engine.LOOKS.append(self.looking)
        return self

    def __exit__(self, *exc):
        self._resume()
        engine.BEFORE.remove(self._before_backward)
        engine.LOOKS.remove(self.looking)
        for table, key in self.handles:
            del table[key]
        self.watching.__exit__(*exc)

    def _see(self, entry, args, result) -> None:
        """What is worth a look in an operator's result, or may be; most calls end before this in native code (kernels/runtime_watch.py)."""
        role = self.roles.get(entry, _UNKNOWN)
        if role is _UNKNOWN:
            pairs = entry.pointwise or entry.name.endswith("loss")
            role = self.roles[entry] = None if entry.view else "relu" if entry.name in _RELUS else True if pairs else 0
        if role is None:
            return
        if scan(_kinds, result) or self.marks or type(result) is list:
            for t in result if type(result) is tuple or type(result) is list else (result,):
                if type(t) is Tensor and t.spec.dtype.is_floating_point:
                    self._check(entry, args, t)
        if role == "relu":
            if type(result) is Tensor and result._node is not None:
                self._activation(result)
        elif role is True and len(args) >= 2 and isinstance(args[0], Tensor) and isinstance(args[1], Tensor):
            if args[0].ndim != args[1].ndim and result._tracked:
                self._broadcast(entry, args[0], args[1])

    def _learn(self, key: int, frame: FrameType) -> tuple:
        """(code, place in it) of the user's line behind an operator that was called in `frame`."""
        if len(self.trails) >= _TRAILS:
            self.trails.clear()
        found = self.trails[key] = _outwards(frame) or ()
        return found

    # ---- infinities and NaN ----

    def _check(self, entry, args, t: Tensor) -> None:
        spec = t.spec
        found = _specials_in(t)
        if not found:
            if self.marks and id(t.mem) in self.marks and spec.nbytes == t.mem.nbytes:
                del self.marks[id(t.mem)]  # written over
            return
        if self.first is not None and self.bad_loss is not None:
            return  # from here on everything is NaN
        marks = [self._mark_of(x) for x in dispatch.tensors_in(args) if x is not t and not isinstance(x, BlockTensor) and x.spec.dtype.is_floating_point]
        causes = [mark for mark in marks if mark is not None]
        kind = NAN if found & NAN else INFINITE
        same = next((cause for cause in causes if cause.kind == kind), None)
        if same is None:
            place, op = (user_place(), entry.name) if dispatch.CONTEXT.phase != "backward" else _backward_place()
            same = Special(kind, op, place, dispatch.CONTEXT.phase, tuple(spec.shape), causes[0] if causes else None)
            if kind == NAN and self.first is None:
                self.first = same
        self._mark(t.mem, same)

    def _after_node(self, node, grads, results) -> None:
        """A node of a backward pass gave `results`. (Its operators are not looked at one by one: that would cost more than they do.)"""
        if get_ident() != self.thread:
            return
        for t in results:
            if type(t) is not Tensor:
                continue
            found = _specials_in(t)
            if not found:
                if self.marks and id(t.mem) in self.marks:
                    del self.marks[id(t.mem)]  # its memory was another's
                continue
            if self.first is not None and self.bad_loss is not None:
                return
            self.flagged = True
            kind = NAN if found & NAN else INFINITE
            inputs = [g for g in grads if g is not None] + [entry[0] for entry in node.saves or () if entry is not None and isinstance(entry[0], Tensor)]
            marks = [self._mark_of(x) for x in inputs if not isinstance(x, BlockTensor) and x.spec.dtype.is_floating_point]
            causes = [mark for mark in marks if mark is not None]
            same = next((cause for cause in causes if cause.kind == kind), None)
            if same is None:
                same = Special(kind, node.name(), _place_of(node.made_at), "backward", tuple(t.spec.shape), causes[0] if causes else None)
                if kind == NAN and self.first is None:
                    self.first = same
            self._mark(t.mem, same)

    def _mark_of(self, x: Tensor) -> Special | None:
        """What is known of specials in an input; one that no operator was seen to make came with the data."""
        held = self.marks.get(id(x.mem))
        if held is not None:
            return held[1]
        found = 0 if x.spec.is_meta or x._tracked else specials(x.spec.dtype.name, x.ptr, x.spec.layout.span)
        if not found:  # (what is tracked and was made by no operator is a parameter: how it came to this is seen where it was changed)
            return None
        mark = Special(NAN if found & NAN else INFINITE, "data", user_place(), "data", tuple(x.spec.shape), None)
        if mark.kind == NAN and self.first is None:
            self.first = mark
        self._mark(x.mem, mark)
        return mark

    def _mark(self, mem, mark: Special) -> None:
        """Remembers a storage; the oldest are let go, since holding them holds their memory."""
        self.marks[id(mem)] = mem, mark
        while len(self.marks) > 1 and (len(self.marks) > _MARKS or sum(mem.nbytes for mem, _ in self.marks.values()) > _MARKED_BYTES):
            del self.marks[next(iter(self.marks))]

    # ---- losses and gradients ----

    def _before_backward(self, tensors):
        """Looks at the loss. Operators go straight through until the pass is over: nodes are looked at instead."""
        if get_ident() != self.thread:
            return None
        if self.pending and self.uncleared is None and self.steps <= _DENSE_STEPS:
            place = user_place()
            with no_grad(), _quiet():
                for optimiser in self.optimisers:
                    if id(optimiser) in self.pending:
                        if any(p.grad is not None and bool((p.grad != 0).any()) for group in optimiser.param_groups for p in group["params"]):
                            self.pending[id(optimiser)] = self.pending[id(optimiser)] or place
                        else:
                            del self.pending[id(optimiser)]
        self._resume()
        self.backwards += 1
        begin_trail()
        for t in tensors:
            spec = t.spec if isinstance(t, Tensor) else None
            if spec is not None and spec.numel == 1 and spec.dtype.is_floating_point and not spec.is_meta:
                value = float(read_scalar(spec.dtype.code, t.ptr)) if spec.dtype.code >= 0 else _value(t)
                self.losses.append((self.backwards, value))
                if not math.isfinite(value) and self.bad_loss is None:
                    self.bad_loss = self.backwards, value
                    self.loss_mark = self._mark_of(t)
        dispatch.HOOKS.release()
        return dispatch.HOOKS.acquire

    def groups(self):
        return [group for optimiser in self.optimisers for group in optimiser.param_groups]

    def _before_step(self, optimiser, args, kwargs) -> None:
        if get_ident() != self.thread:
            return
        if self.paused:
            self._resume()
        if id(optimiser) not in self.known and len(self.optimisers) < _OPTIMISERS:
            self.optimisers.append(optimiser)
            self.known.add(id(optimiser))
            self.name_parameters()
        self.steps += 1
        place = self.pending.pop(id(optimiser), None) if self.pending else None
        if self.uncleared is None and self.steps <= _DENSE_STEPS:  # another optimiser's loss may pass through these parameters before theirs are cleared, as in a GAN
            self.uncleared = place
        look = _looked_at(self.steps)
        for group in optimiser.param_groups:
            if self.complete.get(id(group)) != len(group["params"]):
                self._receive(group)
        if not (args or kwargs):  # a closure's operators are seen
            self.paused = True
            dispatch.HOOKS.release()
        if not (look or self.flagged):
            return
        self.flagged = False
        total = 0.0
        with no_grad(), _quiet():
            for group in optimiser.param_groups:
                moved = [p for p in group["params"] if p.grad is not None]
                if self.bad_gradient is None and self._any_special(group, [p.grad for p in moved]):
                    for p in moved:
                        if specials(p.grad.dtype.name, p.grad.ptr, p.grad.spec.layout.span):
                            held = self.marks.get(id(p.grad.mem))
                            self.bad_gradient = self.steps, self.name(p), held[1] if held else self.first, self.backwards
                            break
                if not look:
                    continue
                for p in moved:
                    if p.dtype.is_floating_point:
                        norm = float(p.grad.float().norm())
                        total += norm * norm if math.isfinite(norm) else 0.0
                        self.norms.setdefault(self.name(p), []).append((self.steps, norm))
                        if p.ndim >= 2:
                            self.rms.setdefault(self.name(p), []).append(norm / math.sqrt(max(p.numel(), 1)))
        if look:
            self.totals.append((self.steps, math.sqrt(total)))

    def _resume(self) -> None:
        """Operators are seen again. Also called where a step may have ended in an exception."""
        if self.paused:
            self.paused = False
            dispatch.HOOKS.acquire()

    def _receive(self, group) -> None:
        """Notes which parameters have a gradient. Once all had one, nothing is asked any more unless parameters are added."""
        params = group["params"]
        self.received.update(id(p) for p in params if p.grad is not None)
        if all(id(p) in self.received for p in params):
            self.complete[id(group)] = len(params)

    def _any_special(self, group, grads) -> int:
        """What the gradients hold together, in one launch."""
        if not grads or any(g.is_meta or isinstance(g, BlockTensor) for g in grads):
            return 0
        specs = [g.spec for g in grads]
        held = self.runs.get(id(group))
        if held is None or held[0] != specs:
            held = self.runs[id(group)] = specs, Runs([(spec.dtype.name, spec.layout.span) for spec in specs])
        return held[1].specials([g.ptr for g in grads])

    def _after_step(self, optimiser, args, kwargs) -> None:
        self._resume()
        if self.steps <= _DENSE_STEPS:
            self.pending[id(optimiser)] = None
        self.marks.clear()  # of activations: holding them holds their memory
        if self.bad_parameter is None and self.bad_gradient is None and _looked_at(self.steps):
            for group in optimiser.param_groups:
                for p in group["params"]:
                    if not isinstance(p, BlockTensor) and specials(p.dtype.name, p.data_ptr(), p.spec.layout.span):
                        self.bad_parameter = self.steps, self.name(p)
                        return

    def name_parameters(self) -> None:
        """Parameters' names in the modules that hold them: outermost modules give the longest names."""
        for module in outermost():
            for name, p in module.named_parameters():
                self.names.setdefault(id(p), name)

    def name(self, p) -> str:
        return self.names.get(id(p)) or f"a parameter of shape {list(p.shape)}"

    # ---- shapes and activations ----

    def _broadcast(self, entry, a: Tensor, b: Tensor) -> None:
        """[n, 1] beside [n]: both grow to [n, n], which in a loss compares everything with everything."""
        n = a.numel()
        if n <= 1 or n != b.numel():
            return
        try:
            full = broadcast_shapes(a.shape, b.shape)
        except RuntimeError:
            return
        size = 1
        for d in full:
            size *= d
        if size == n * n:
            place = user_place()
            if place is not None:
                self.broadcasts.setdefault(place, (entry.name, list(a.shape), list(b.shape), list(full)))

    def _activation(self, result: Tensor) -> None:
        place = result._node.made_at
        if not place or result.spec.ndim < 2:
            return
        key = id(place[0]), place[1], result.spec  # (the hash of a code object would go through all of it)
        held = self.counters.get(key)
        unit = 1 if result.spec.ndim in (4, 5) else result.spec.ndim - 1
        if held is None:
            if len(self.counters) >= _TRAILS:
                self.counters.clear()
            state, units = self.relus.setdefault(place, []), result.shape[unit]
            held = next((s for s in state if s[0] == units), None)
            if held is None:
                held = [units, 0, 0, None]
                state.append(held)
            self.counters[key] = held
        held[1] += 1
        if held[1] > _EVERY and held[1] % (_EVERY if held[1] < _OFTEN else _SELDOM):
            return
        with no_grad():
            fired = (result.detach() > 0).any(tuple(d for d in range(result.ndim) if d != unit))
            held[3] = fired if held[3] is None else held[3] | fired
        held[2] += 1


def _specials_in(t: Tensor) -> int:
    """INFINITE | NAN as the elements of a tensor hold them; what lies between a window's elements counts, too."""
    found = scan(_kinds, t)
    if found >= 0:
        return found
    spec = t.spec
    descriptor = None if not spec.is_plain or not spec.dtype.is_floating_point else descriptor_of(spec.dtype.name)
    _kinds.put(spec, None if descriptor is None else (descriptor, spec.layout.span))
    return scan(_kinds, t)


_kinds = dispatch.PlanCache()


def _value(t: Tensor) -> float:
    with no_grad(), _quiet():
        return float(t.detach())


def _looked_at(step: int) -> bool:
    """Whether the gradients of a step are measured: of all at first, then of about sixteen while the number of steps doubles."""
    return step <= _DENSE_STEPS or step % min(_SPARSEST, 1 << step.bit_length() - 5) == 0


class _quiet:
    """What is computed in here is not watched."""

    def __enter__(self):
        dispatch.CONTEXT.depth += 1

    def __exit__(self, *exc):
        dispatch.CONTEXT.depth -= 1


_ours: dict[int, tuple[bool, Any]] = {}  # by the id of a code object (its hash would go through all of it): whether it is this package's, and itself, to keep it


def _judged(code) -> tuple[bool, Any]:
    known = _ours[id(code)] = code.co_filename.startswith((_PACKAGE, "<frozen")), code
    return known


def _outwards(frame: FrameType | None) -> tuple | None:
    """(code, place in it) of the first frame from here outwards that is not this package's: cheap to take, `Place` is made of it when needed."""
    while frame is not None:
        code = frame.f_code
        if not (_ours.get(id(code)) or _judged(code))[0]:
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def _place_of(found: tuple | None) -> Place | None:
    if found is None:
        return None
    code, at = found
    line = next((line for start, end, line in code.co_lines() if start <= at < end), None)
    return Place(code.co_filename, line or code.co_firstlineno)


def user_place() -> Place | None:
    """The innermost line that is not this package's."""
    return _place_of(_outwards(sys._getframe(2)))


_ENGINE = engine._Run.loop.__code__, engine.run_chain.__code__  # where a node runs, as `node`


def _backward_place() -> tuple[Place | None, str]:
    """Where the node that is running was made, and its name: the engine's own frame knows the node."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code in _ENGINE:
            node = frame.f_locals.get("node")
            return (None, "backward") if node is None else (_place_of(node.made_at), node.name())
        frame = frame.f_back
    return None, "backward"


def outermost() -> list[Module]:
    """The modules alive that are in no other."""
    # (isinstance would ask proxies for their `__class__`, and a module whose __init__ did not finish has no tables)
    modules = [m for m in gc.get_objects() if issubclass(type(m), Module) and "_modules" in m.__dict__ and "_parameters" in m.__dict__]
    inner = {id(child) for m in modules for child in m._modules.values() if child is not None}
    return [m for m in modules if id(m) not in inner]
