"""What a compiled call gives and touches beside its programs: how its result is put together, the memory it writes, the generator's state, hooks in its graph.

Choosing and recording is function.py's, gradients are gradients.py's.
"""
from __future__ import annotations

import contextlib
from typing import NamedTuple

from ..autograd.node import Node, hooks_of
from ..autograd.saved import RELEASED
from ..kernels.native import move_bytes, new_storage
from ..ops import indexing
from ..ops.elementwise import assign
from ..ops.generator import default_generator
from ..tensor import Spec, Tensor, empty_of
from .program import Memory, Program

_PASSING = -1  # no number that a hook of a user's has


class Output(NamedTuple):
    """A tensor that a call returns: a window of a region, or (spec None) the external tensor `region` itself. detached: a window of an external tensor that is not in its history."""

    region: tuple
    offset: int
    spec: Spec | None
    tracked: bool
    inference: bool = False
    detached: bool = False

    @property
    def fresh(self) -> bool:
        """Whether its memory was made in the call."""
        return self.region[0] != "tensor"


class Place(NamedTuple):
    number: int


class Built(NamedTuple):
    kind: type
    items: list


def tensors_of(value, found: list) -> None:
    """The tensors of a result, in the order in which `describe` meets them."""
    if isinstance(value, Tensor):
        if not any(t is value for t in found):
            found.append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            tensors_of(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            tensors_of(item, found)


def window(t: Tensor, o: Output) -> Tensor:
    """The view of a tensor from outside that a call returns."""
    assert o.spec is not None
    if o.detached:
        t = t.detach()
        if o.spec is t.spec and not o.offset:
            return t
    return t.as_strided(o.spec.shape, o.spec.strides, t.storage_offset() + o.offset // o.spec.itemsize)


def rebuilt(shape, tensors):
    if type(shape) is Place:
        return tensors[shape.number]
    if type(shape) is Built:
        if shape.kind is dict:
            return {key: rebuilt(item, tensors) for key, item in shape.items}
        items = [rebuilt(item, tensors) for item in shape.items]
        return shape.kind(*items) if hasattr(shape.kind, "_fields") else shape.kind(items)
    return shape


# ---- memory and the generator ----------------------------------------------------------------------------------------------------


def add_blocks(memory: Memory, blocks, start: int) -> dict[tuple, int]:
    """Names the blocks; their sizes by name."""
    sizes = {}
    for number, block in enumerate(blocks, start):
        memory.add(block.data, block.nbytes, ("block", number))
        sizes["block", number] = block.nbytes
    return sizes


def copied(address: int, nbytes: int):
    storage = new_storage(nbytes)
    move_bytes(storage.data, address, nbytes)
    return storage


def laid_out(t: Tensor, spec: Spec) -> Tensor:
    """A copy with the strides of `spec`."""
    fresh = empty_of(spec)
    assign(fresh, t)
    return fresh


def put_back(contents) -> None:
    """contents: (address, what was there, number of bytes)."""
    for address, storage, nbytes in contents:
        move_bytes(address, storage.data, nbytes)


def again_from(again, contents, state):
    """What the original call gives after a program met bad input: it starts from what there was, and says what is wrong. again: (function, args, kwargs, …)."""
    put_back(contents)
    if state is not None:
        set_random_state(state)
    return again[0](*again[1], **again[2])


def random_state():
    with default_generator.lock:
        return copied(default_generator.state(), default_generator._memory.nbytes)


def set_random_state(state) -> None:
    with default_generator.lock:
        move_bytes(default_generator.state(), state.data, state.nbytes)


def share_memory(external, spans) -> bool:
    """Whether two of the tensors have memory in common, of one storage or of two over the same bytes. spans: how many bytes each has."""
    end = 0
    for start, span in sorted([(t.ptr, span) for t, span in zip(external, spans) if span]):
        if start < end:
            return True
        end = start + span
    return False


def hooks_on(t: Tensor) -> tuple:
    """How many hooks of each kind a tensor from outside has."""
    hooks = None if t._node is None else t._node.hooks
    inner = () if hooks is None else (len(hooks.pre), len(hooks.post), len(hooks.retain), sum(map(len, hooks.tensors.values())))
    return len(t._hooks or ()), len(t._post_hooks or ()), inner


@contextlib.contextmanager
def passing(external):
    """A list of the nodes among the tensors' histories that a backward pass goes through inside."""
    passed: list[Node] = []
    nodes = {t._node: t._node.hooks for t in external if t._node is not None}
    for node in nodes:
        hooks_of(node).pre[_PASSING] = lambda grads, node=node: passed.append(node)
    try:
        yield passed
    finally:
        for node, had in nodes.items():
            if node.hooks is not None:
                node.hooks.pre.pop(_PASSING, None)
            if had is None and node.hooks is not None and not (node.hooks.pre or node.hooks.post or node.hooks.tensors or node.hooks.retain):
                node.hooks = None


def hooked(found, external) -> bool:
    """Whether a hook of Python's sits inside the graph that leads from what the call was given to its results."""
    seen = {id(t._node) for t in external}
    queue = [t._node for t in found]
    while queue:
        node = queue.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        hooks = node.hooks
        if hooks is not None and (hooks.pre or hooks.post or hooks.retain or any(hooks.tensors.values())):
            return True
        queue += [edge[0] for edge in node.edges if edge is not None]
    return False


def spent(found, external) -> bool:
    """Whether the graphs of the tracked results were freed by a backward pass."""
    seen = {id(t._node) for t in external}
    queue = [t._node for t in found if t._tracked]
    while queue:
        node = queue.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if node.saves is RELEASED:
            return True
        queue += [edge[0] for edge in node.edges if edge is not None]
    return False


def run(program: Program, addresses: list[int], numbers, storages: dict, random: bool) -> bool:
    """Runs a program (see Program.run); False where a kernel met bad input."""
    if random:
        with default_generator.lock:
            fine = program.run(addresses, numbers, storages)
    else:
        fine = program.run(addresses, numbers, storages)
    words = indexing._error.words
    if words[0]:
        words[0] = words[1] = 0
        return False
    return fine
