"""Gradients of compiled calls: `CompiledFunctionBackward0` is a call's node, whose backward pass is recorded the first time, then replayed.

A pass that was not recorded (gradients for other results) goes through the first call's own graph, or makes the call again.
"""
from __future__ import annotations

import contextlib
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from ..autograd import enable_grad
from ..autograd.engine import run_backward
from ..autograd.modes import STATE
from ..autograd.node import Node
from ..autograd.saved import RELEASED
from ..layout import Layout
from ..ops import indexing
from ..ops.generator import default_generator
from ..tensor import Spec, Tensor, wrap
from . import calls
from .again import computed_again
from .beside import beside
from .fuse import fuse
from .inplace import in_place
from .lifetimes import cut, lifetimes
from .order import moved_up
from .program import Memory, Program, Unknown, resolve
from .recording import Recording, busy
from .results import Output, add_blocks, copied, laid_out, put_back, random_state, run, set_random_state, tensors_of
from .versions import apart

if TYPE_CHECKING:
    from .function import Entry


class First(NamedTuple):
    """The recorded call's own graph, kept until its backward pass was recorded, too."""

    outputs: list[Tensor]
    recording: Recording
    memory: Memory


class Backward(NamedTuple):
    program: Program
    pattern: tuple  # the incoming gradients' specs, None where none came
    results: list  # one an input: None, or Output (region ("grad", i): an incoming gradient itself)
    places: dict  # (number of the base, offset) of what it makes and of what was kept for it
    made: list  # bases of storages that hold results
    reads: list  # places of external tensors whose values it needs
    reads_results: list  # the same for the call's fresh results
    fused: list  # kernels that hold several recorded steps
    overwritten: set  # bases of what was kept and is written over


class CompiledFunctionBackward0(Node):
    """The node of a compiled call: its backward pass is recorded the first time, then replayed."""

    __slots__ = ("entry", "external", "versions", "results", "kept", "first", "again")
    skips_undefined = True

    def release(self):
        super().release()
        self.external = self.results = self.kept = self.first = self.again = None

    def apply(self, *grads):
        if self.external is None:
            raise RELEASED.error()
        entry, backward = self.entry, self.entry.backward
        if STATE.grad_enabled:  # to be differentiated again: the original's graph has what that needs
            _ = self.saved
            entry.refuse("a gradient is differentiated again (create_graph=True), which goes through the original function")
            return self.recompute(grads, True)
        if entry.quick_backward is not None and self.kept is not None:
            found = entry.quick_backward(self, grads)
            if found is not None:
                return found
        if self.first is not None and backward is None and not busy():
            return record_backward(self, entry, grads)
        _ = self.saved  # raises where a tensor that is needed was changed since
        if backward is None or self.kept is None or any((spec is None) is not (grad is None) for spec, grad in zip(backward.pattern, grads)):
            return self.recompute(grads)
        return replay_backward(self, entry, backward, grads)

    def take(self) -> list:
        """The storages that were kept for the pass that is about to run, which gives them back as soon as they were read.

        Unless the graph is retained: then it gets copies of those that it writes over.
        """
        kept, this = self.kept, STATE.run
        if this is not None and not this.retain_graph:
            self.kept = None
            return kept
        first = 3 + len(self.external) + len(self.results)
        return [copied(storage.data, storage.nbytes) if base in self.entry.backward.overwritten else storage for base, storage in enumerate(kept, first)]

    def recompute(self, grads, create_graph=False):
        """Gradients of a pattern that was not recorded, or with a graph: through the first call's graph, or by making the call again, eagerly."""
        entry = self.entry
        if self.first is not None:
            outputs = [t for t in self.first.outputs if t._tracked]
        else:
            function, args, kwargs, state = self.again
            written = {place for place, _ in entry.written}
            if any(t.mem.version != version and place not in written for place, (t, version) in enumerate(zip(self.external, self.versions))):
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation\n"
                    "  A compiled call is made again for gradients that were not asked for before, and a tensor that it uses was written since."
                )
            now = random_state() if state is not None else None
            contents, versions = entry.contents(self.external, written), [t.mem.version for t in self.external]
            if state is not None:
                set_random_state(state)
            try:
                with enable_grad():
                    found: list = []
                    tensors_of(function(*args, **kwargs), found)
            finally:
                if now is not None:
                    set_random_state(now)
                put_back(contents)  # a running mean moves once a call
                for t, version in zip(self.external, versions):
                    t.mem.version = version
            outputs = [t for t, o in zip(found, entry.outputs) if o.fresh and o.tracked]
        pairs = [(out, grad) for out, grad in zip(outputs, grads) if grad is not None]
        inputs = [self.external[place] for place in entry.differentiable]
        with without_hooks(inputs):
            return tuple(run_backward([out for out, _ in pairs], [grad for _, grad in pairs], True, create_graph, inputs, False))


@contextlib.contextmanager
def without_hooks(inputs):
    """The pass around this one runs the hooks of what a call was given: they must not run inside, too."""
    leaves = [(t, t._hooks) for t in inputs if t._hooks]
    nodes = [(node, node.hooks) for node in {t._node for t in inputs if t._node is not None} if node.hooks is not None]
    for t, _ in leaves:
        t._hooks = None
    for node, _ in nodes:
        node.hooks = None
    try:
        yield
    finally:
        for t, hooks in leaves:
            t._hooks = hooks
        for node, hooks in nodes:
            node.hooks = hooks


def record_backward(node, entry: Entry, grads):
    """Runs the first backward pass through the recorded call's graph, records it, and finishes both programs."""
    first = node.first
    # A gradient that is one number for many elements (a sum's) may be another one's the next time: the program takes them as they lie in memory of their own.
    grads = tuple([g if g is None or g.spec.layout.is_dense else laid_out(g, Spec.of(Layout.contiguous(g.shape), g.dtype, g.device)) for g in grads])
    with Recording() as recording:
        results = node.recompute(grads)
    if recording.reason is not None or recording.watched.updates or recording.watched.plain or not entry.snapshot.holds():
        return results
    memory = first.memory
    try:
        for number, grad in enumerate(grads):
            if grad is not None:
                memory.add(grad.ptr, grad.spec.layout.span * grad.spec.itemsize, ("grad", number))
        sizes = add_blocks(memory, recording.blocks, len(first.recording.blocks))
        steps = apart(resolve(recording.steps, memory), recording.recipes, sizes, entry.sizes)
        outputs = [None if t is None else _gradient(t, grads, memory) for t in results]
    except Unknown:
        return results
    entry.changed |= {("block", number) for number, block in enumerate(recording.blocks, len(first.recording.blocks)) if block.version}
    returned = {o.region for o in outputs if o is not None}
    recipes, all_sizes, count = {**entry.recipes, **recording.recipes}, {**entry.sizes, **sizes}, len(entry.steps)
    both = beside([*entry.steps, *steps], recipes, returned | {o.region for o in entry.fresh}, entry.steady, all_sizes, entry.derivatives)
    entry.steps, steps = both[:count], both[count:]
    entry.recipes = recording.recipes = recipes
    entry.sizes.update((name, size) for name, size in all_sizes.items() if name not in sizes)
    steps = computed_again(entry.steps, steps, recipes, returned.union(entry.result_blocks), entry.steady, entry.sizes, sizes)
    steps, fused = fuse(steps, recording.recipes, returned, entry.steady, sizes)
    regions = {o.region for o in outputs if o is not None}
    all_sizes = {**entry.sizes, **sizes}
    steps = moved_up(steps, recording.recipes, entry.sizes, regions, all_sizes)
    steps, overwritten = in_place(steps, recording.recipes, {*regions, *entry.result_blocks}, all_sizes, entry.sizes)
    life = lifetimes(steps)
    touched = {*life, *regions}
    kept = {name for name in touched if name in entry.sizes}.difference(entry.result_blocks)
    held = [(entry.sizes[name], -1, len(steps) if name in regions else life[name][1]) for name in kept]
    held += [(size, life[name][0], len(steps) if name in regions else life[name][1]) for name, size in sizes.items() if name in life]
    cuts, most = cut(held, len(steps))
    places = entry.finish(touched, len(grads), {name: len(cuts) if name in regions else bisect_right(cuts, life[name][1]) for name in kept}, most)
    blocks = sorted(name for name in regions if name in sizes)
    bases = max(number for number, _ in places.values())
    places.update((name, (bases + 1 + k, 0)) for k, name in enumerate(blocks))
    made = {bases + 1 + k: sizes[name] for k, name in enumerate(blocks)}
    lasting = {places[name][0] for name in kept & regions}
    program = Program(steps, sizes, places, bases + len(blocks), made=made, given={places[name][0] for name in kept} - lasting, cuts=cuts)
    reads = sorted(name[1] for name in touched if name[0] == "tensor")
    read_results = [place for place, o in enumerate(entry.fresh) if o.region in touched]
    pattern = tuple(None if grad is None else grad.spec for grad in grads)
    entry.backward = Backward(program, pattern, outputs, {name: places[name] for name in (*blocks, *kept)}, list(made), reads, read_results, fused, {places[name][0] for name in kept & overwritten})
    entry.quick_backward = calls.backward(entry)
    entry.settled = True
    return results


def _gradient(t: Tensor, grads, memory: Memory) -> Output:
    for number, grad in enumerate(grads):
        if t is grad:
            return Output(("grad", number), 0, None, False)
    place = memory.find(t.ptr)
    if place is None or place[0][0] not in ("block", "grad"):
        raise Unknown("a gradient is a view of a tensor from outside")
    return Output(place[0], place[1], t.spec, False)


def replay_backward(node, entry: Entry, backward: Backward, grads):
    given = []
    for spec, grad in zip(backward.pattern, grads):
        given.append(grad if spec is None or grad.spec is spec else laid_out(grad, spec))  # other strides than the recorded gradient had
    kept = node.take()
    addresses = [
        indexing._error.address, default_generator.address, *[t.ptr for t in node.external], *[storage.data for storage in (*node.results, *kept)],
        *[0 if grad is None else grad.ptr for grad in given], *[0] * len(backward.made),
    ]  # fmt: skip
    storages = dict(enumerate(kept, 3 + len(node.external) + len(node.results)))
    del kept
    if not run(backward.program, addresses, (), storages, False):
        return node.recompute(grads)
    memory = dict(zip(entry.result_blocks, node.results))
    results = []
    for o in backward.results:
        if o is None:
            results.append(None)
        elif o.region[0] == "grad":
            grad = given[o.region[1]]
            results.append(grad if o.spec is None else wrap(o.spec, grad.mem, grad.ptr + o.offset))
        elif o.region in memory:
            results.append(wrap(o.spec, memory[o.region], memory[o.region].data + o.offset))
        else:  # made here, or a window of what the forward pass kept
            base, offset = backward.places[o.region]
            results.append(wrap(o.spec, storage := storages[base], storage.data + offset + o.offset))
    return tuple(results)
