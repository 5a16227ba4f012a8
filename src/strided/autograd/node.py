"""What a graph is made of: `Node`, the accumulators of leaves, and hooks. How operators make nodes is in graph.py, how they run in engine.py."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from typing import Any

from strided.autograd.saved import RELEASED, unpack
from strided.kernels.native_objects import NodeBase, next_sequence
from strided.tensor import Tensor

_LEAVES_FIRST = 1 << 62  # the engine takes the largest number first: a leaf takes up its gradient at once, so that it need not wait in a buffer


class Node(NodeBase):
    """One recorded operation: from the gradients of its outputs to those of its inputs.

    `edges[i]` is `(node, output number)` for input i (and the leaf behind them, where the node is its accumulator), or None where input i wants no
    gradient. Subclasses give `apply(self, *grads)`: one gradient (or None) an output comes in, one (or None) an input goes out. What the operator
    passed to `record` as keywords are attributes of the node.
    """

    __slots__ = ()
    saved_names: tuple[str, ...] = ()
    hooks: NodeHooks | None  # None at first
    made_at: Any  # None; where the operator was called, while somebody watches (lens/watch.py)
    seq: int  # nodes are numbered in the order in which they are made
    shown: str | None = None  # the name, where several operators together are one in PyTorch
    skips_undefined = True  # no gradient for any output: the node need not run

    slotted = False  # a subclass has slots of its own: keywords may belong there rather than into __dict__
    keeps = False  # nothing was saved, and yet there is no second pass
    holds = False  # a subclass's `release` has more to forget

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.slotted = cls.slotted or bool(cls.__dict__.get("__slots__"))
        cls.holds = cls.release is not Node.release

    def apply(self, *grads):
        raise NotImplementedError(f"{self.name()} has no derivative")

    def name(self) -> str:
        return self.shown or type(self).__name__

    @property
    def next_functions(self) -> tuple:
        return tuple((None, 0) if edge is None else (opened(edge[0]), edge[1]) for edge in self.edges)

    @property
    def metadata(self) -> dict:
        return self.__dict__.setdefault("_metadata", {})

    @property
    def saved(self) -> tuple:
        """The saved tensors, version-checked; attached to the graph, so that a recorded backward pass is right."""
        if self.saves is RELEASED:
            raise RELEASED.error()
        return tuple([unpack(entry, self) for entry in self.saves])

    def release(self) -> None:
        """Forgets what was saved: the graph cannot be run again, but its shape can still be walked."""
        if self.saves or self.keeps:
            self.saves = RELEASED

    def _sequence_nr(self) -> int:
        return self.seq

    def output_spec(self, number: int):
        specs = self.specs
        return specs[number] if type(specs) is tuple else specs

    def register_hook(self, hook: Callable) -> Handle:
        """`hook(grad_inputs, grad_outputs)` runs after the node; a returned tuple replaces grad_inputs."""
        return Handle(hooks_of(self).post, hook)

    def register_prehook(self, hook: Callable) -> Handle:
        """`hook(grad_outputs)` runs before the node; a returned tuple replaces grad_outputs."""
        return Handle(hooks_of(self).pre, hook)

    def __repr__(self) -> str:
        return f"<{self.name().rpartition('::')[2]} object at {id(self):#x}>"


class _Saved:
    """`_saved_self`, `_saved_dim`, …: what a node keeps, under PyTorch's name."""

    def __init__(self, key: str):
        self.key = key

    def __get__(self, node, cls=None):
        if node is None:
            return self
        key = self.key
        if key in node.saved_names:
            if node.saves is RELEASED:
                raise RELEASED.error()
            index = node.saved_names.index(key)
            return unpack(node.saves[index], node) if index < len(node.saves) else None
        if key in node.__dict__ or key in type(node).__slots__:
            return getattr(node, key)
        raise AttributeError(f"'{node.name()}' object has no attribute '_saved_{key}'")


def opened(node: Node | None) -> Node | None:
    """The node as it is handed out: its class has the names of what its nodes keep from then on. (A `__getattr__` would make each look-up of the engine slower.)"""
    if node is not None:
        cls = type(node)
        for key in (*node.saved_names, *cls.__slots__, *node.__dict__):
            if not hasattr(cls, "_saved_" + key):
                setattr(cls, "_saved_" + key, _Saved(key))
    return node


class NodeHooks:
    """Hooks of a node: before it, after it, and on single outputs (`Tensor.register_hook`, `Tensor.retain_grad`)."""

    __slots__ = ("pre", "post", "tensors", "retain")

    def __init__(self):
        self.pre: dict[int, Callable] = {}
        self.post: dict[int, Callable] = {}
        self.tensors: dict[int, dict[int, Callable]] = {}  # output number -> hooks
        self.retain: dict[int, weakref.ref] = {}  # output number -> the tensor whose .grad is wanted


def hooks_of(node: Node) -> NodeHooks:
    if node.hooks is None:
        node.hooks = NodeHooks()
    return node.hooks


class Handle:
    """What registering a hook returns: `.remove()` takes it off again; usable as a context manager."""

    _ids = count()

    def __init__(self, table: dict, hook: Callable):
        self.id = next(Handle._ids)
        self.table = table
        table[self.id] = hook

    def remove(self) -> None:
        self.table.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


class AccumulateGrad(Node):
    """The end of a path: adds what arrives to `variable.grad`.

    A leaf holds its one accumulator for good, the accumulator its leaf weakly; the graph's edges hold both, so that a leaf lives as long as a graph that
    ends in it, and no longer.
    """

    __slots__ = ("reference",)

    def __init__(self, variable: Tensor):
        self.reference = weakref.ref(variable)
        self.edges = self.saves = ()
        self.seq = next_sequence() + _LEAVES_FIRST

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    @property
    def specs(self):
        return self.reference().spec  # asked anew each time: `.data` may be assigned

    @property
    def variable(self) -> Tensor | None:
        return self.reference()


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The leaf's one accumulator."""
    node = leaf._accumulator
    if node is None:
        node = leaf._accumulator = AccumulateGrad(leaf)
    return node
