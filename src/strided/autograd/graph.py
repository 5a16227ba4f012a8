"""The graph as operators build it: what is tracked, and how results, views and written tensors get their nodes.

Operators call these; the first three are native (kernels/runtime_record.py), with the functions here for the cases that are not usual:

`tracking(*tensors)`: whether an operator on these must record: grad mode is on and one of them requires grad. Numbers and None count as no.
`record(cls, inputs, outputs, saves=(), **attributes)`: hangs `outputs` (a tensor, or a tuple of them) on a new node of class `cls`, and returns it. inputs: the
operator's, in the order in which the node returns gradients (numbers and None take a place, too). saves: tensors that the node needs again, inputs or
outputs, named by the class's `saved_names`. Other keywords become attributes of the node; a tensor among them is kept as it is: neither checked for later
changes nor freed with the graph.
`window(base, spec, address, cls, **attributes)`: a view of `base`, recorded under `cls` where that is tracked.
`record_inplace`, `record_view`, `check_inplace`, and `backward`, which turns a function into a node class.

The nodes themselves are in node.py; running the graph is engine.py's work, saving tensors saved.py's. Also the tools of `torch.autograd.graph`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from strided.autograd import anomaly
from strided.autograd.modes import STATE
from strided.autograd.node import AccumulateGrad, Handle, Node, NodeHooks, accumulator, hooks_of, next_sequence, opened  # noqa: F401
from strided.autograd.refusals import refuse
from strided.autograd.saved import allow_mutation_on_saved_tensors, disable_saved_tensors_hooks, save, save_on_cpu, saved_tensors_hooks  # noqa: F401
from strided.kernels.native_objects import new as _new
from strided.kernels.native_objects import record, set_record, set_window, tracking, window  # noqa: F401
from strided.tensor import Tensor, empty, wrap

# ---- what is tracked ----------------------------------------------------------------------------


def requires_grad(t: Tensor) -> bool:
    """Whether a gradient flows to t. A view follows its base: writing a tracked value into the base makes the view require grad too."""
    return t._tracked or (t._base is not None and t._base._tracked)


def gradient_edge(t: Tensor) -> tuple | None:
    """Where a gradient of t goes: (its grad_fn, output number), or its accumulator for a leaf, or None."""
    base = t._base
    if base is not None:
        if t._seen != t.mem.version:
            _refresh(t)
        if not t._tracked:  # a view made under no_grad requires grad with its base, yet leads nowhere
            return None
    elif not t._tracked:
        return None
    node = t._node
    return (accumulator(t), 0, t) if node is None else (node, t._nr)


def grad_fn(t: Tensor) -> Node | None:
    if t._base is not None and t._seen != t.mem.version:
        _refresh(t)
    return t._node


def _refresh(view: Tensor) -> None:
    """The storage was written since the view's history was recorded: the view is now a window of its base as it is."""
    view._seen = view.mem.version
    base = view._base
    if not base._tracked or base._node is None and view._node is None:
        return
    if view._view_kind is not None:
        if view._view_kind in ("no_grad", "inference"):
            return
        view._seen = -1
        raise refuse(view, "its base or another view of its base has been modified")
    previous = STATE.grad_enabled
    STATE.grad_enabled = True
    try:
        found = window_of(base, view.spec, view.storage_offset())
    finally:
        STATE.grad_enabled = previous
    view._tracked, view._node, view._nr = True, found._node, found._nr


def window_of(base: Tensor, spec, offset: int) -> Tensor:
    """The view of `base` with `spec`, `offset` elements of its dtype into the storage; of another dtype than the base's are the parts of complex numbers,
    and complex numbers made of parts."""
    if spec.dtype is not base.spec.dtype:
        if spec.dtype.is_complex:
            whole = offset + spec.layout.span
            base = base.as_strided((whole, 2), (2, 1), 0)._view_as_complex()  # [elements, 2] -> [elements]
        else:
            base = base._view_as_real()  # [..] -> [.., 2]
    return base.as_strided(spec.shape, spec.strides, offset)


# ---- recording ----------------------------------------------------------------------------------


def _record(cls: type[Node], inputs: tuple, outputs, /, saves: tuple = (), **attrs) -> Node:
    """`record` in all cases; the usual ones are native (kernels/runtime_record.py)."""
    node = _new(cls)
    if attrs:
        if cls.slotted:
            for name, value in attrs.items():
                setattr(node, name, value)
        else:
            node.__dict__ = attrs
    edges = []
    for t in inputs:
        try:
            edges.append(gradient_edge(t))
        except AttributeError:
            edges.append(None)  # None, or a number
    node.edges = edges
    node.saves = save(saves, outputs) if saves else ()
    node.seq = next_sequence()
    if anomaly.enabled:
        anomaly.remember(node)
    if type(outputs) is tuple or type(outputs) is list:
        _attach_all(node, outputs)
    else:
        node.specs = outputs.spec
        outputs._node = node
        outputs._tracked = True
    return node


def _attach_all(node: Node, outputs) -> None:
    node.specs = tuple([out.spec for out in outputs])
    for number, out in enumerate(outputs):
        if out.spec.dtype.is_floating_point or out.spec.dtype.is_complex:  # indices and counts have no derivative
            out._node, out._nr, out._tracked = node, number, True


def record_view(cls: type[Node], base: Tensor, view, /, **attrs) -> None:
    """Notes that `view` (a tensor, or a tuple of them) is a window of `base`, and records it where `base` is tracked.

    Call it for every view, tracked or not: a later write through either must reach the other's history. Views that must not be written in place under
    grad mode are marked: one of several outputs, or made without recording, or of such a view.
    """
    root = base if base._base is None else base._base
    several = isinstance(view, (tuple, list))
    views = view if several else (view,)
    if base._inference:
        for v in views:
            v._inference = True
        return
    kind = base._view_kind
    if not STATE.grad_enabled:
        kind = kind or ("inference" if STATE.inference else "no_grad")
    elif several:
        kind = kind or f"multi:{cls.__name__}"
    for v in views:
        v._base, v._seen, v._view_kind = root, base.mem.version, kind
    if tracking(base):
        record(cls, (base,), view, **attrs)


def _window(base: Tensor, spec, ptr: int, cls: type[Node], /, **attrs) -> Tensor:
    """`window` in all cases."""
    view = wrap(spec, base.mem, ptr)
    record_view(cls, base, view, **attrs)
    return view


set_record(_record)
set_window(_window)


def check_inplace(x: Tensor, *others) -> None:
    """Raises where writing into x would falsify a gradient. Call it before any work; `others`: what is written or mixed in."""
    if x._inference and not STATE.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed."
            "You can make a clone to get a normal tensor before doing inplace update."
            "See https://github.com/pytorch/rfcs/pull/17 for more details."
        )
    if not tracking(x, *others):
        return
    base = x._base
    if base is not None:
        if x._view_kind is not None:
            raise refuse(x, "is being modified")
        if base._node is None and (base._tracked or _is_of_leaf(x)):
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
        if x._seen != x.mem.version:
            _refresh(x)
    if x._tracked and x._node is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def _is_of_leaf(x: Tensor) -> bool:
    """Whether x is a leaf, or a window of one, that is itself a window of an untracked tensor."""
    if not x._tracked:
        return False
    node = x._node
    while node is not None and len(node.edges) == 1 and node.edges[0] is not None:
        edge = node.edges[0]
        if len(edge) == 3:
            return edge[2].mem is x.mem
        node = edge[0]
    return node is None


def record_inplace(cls: type[Node], inputs: tuple, x: Tensor, /, saves: tuple = (), **attrs) -> Node:
    """Hangs x on a new node after x was written in place and its version bumped. `inputs[0]` is x as it was before.

    A tensor in `saves` that is x itself is saved as the result. Where x is a view, its base gets the new history.
    """
    before = x._node, x._nr, x._tracked
    x._seen = x.mem.version  # what x was before the write is still in `before`: check_inplace has seen to that
    node = record(cls, inputs, x, saves, **attrs)
    for t in inputs[1:]:
        if isinstance(t, Tensor) and t._base is not None and t.mem is x.mem:
            t._seen = -1  # another window of what was written: this input's history is not that of its new values
    if x._base is not None:
        x._node, x._nr, x._tracked = before
        return rebase_view(node, x)
    x._nr = 0
    move_retained(x, *before[:2])
    return node


def move_retained(x: Tensor, node: Node | None, number: int) -> None:
    """`x.retain_grad()` means the gradient of x as it is now: it follows x to its new node."""
    if x._retains and node is not None and node.hooks is not None and node.hooks.retain.pop(number, None) is not None:
        hooks_of(x._node).retain[x._nr] = weakref.ref(x)


def rebase_view(node: Node, x: Tensor, place: int = 0) -> Node:
    """x, a window of its base and input `place` of `node`, was written by `node`: the base's new history is the old one with that window replaced."""
    base = x._base
    slices = CopySlices()
    slices.inner, slices.place = node, place
    slices.base_spec = base.spec
    slices.view = x.spec, (x.ptr - base.ptr) // x.spec.dtype.itemsize  # in elements of the view's dtype
    slices.edges = list(node.edges)
    slices.edges[place] = gradient_edge(base)
    slices.saves = ()
    slices.specs = base.spec
    slices.seq = next_sequence()
    before = base._node, base._nr
    base._node, base._nr, base._tracked = slices, 0, True
    move_retained(base, *before)
    x._seen = -1  # x's own history follows from the base's when next asked for
    return slices


class CopySlices(Node):
    """A write into a window of a tensor: the window's gradient goes through the inner node, the rest passes by."""

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def apply(self, grad):
        spec, (view, offset) = self.base_spec, self.view
        passed = empty(spec.shape, spec.dtype, spec.device, strides=spec.strides).copy_(grad)
        written = window_of(passed, view, offset)
        self.inner.needs = self.needs
        results = list(as_tuple(self.inner.apply(written.clone())))
        through = results[self.place]
        if through is None:
            written.zero_()
        else:
            written.copy_(through)
        results[self.place] = passed
        return tuple(results)

    def release(self):
        self.inner.release()


def as_tuple(grads) -> tuple:
    return grads if type(grads) is tuple else (grads,)


def backward(name: str, saved_names: tuple[str, ...] = (), **members):
    """Makes the node class `<name>Backward0` from a function `(node, *grads) -> tuple of gradients`.

    name: PyTorch's, as in "Sum"; one that already ends in "Backward<n>" is taken as it is. saved_names: what `record`'s `saves` are called, so that
    `_saved_self` and the like can be read.
    """
    full = name if "Backward" in name else f"{name}Backward0"

    def make(function: Callable) -> type[Node]:
        body = {"__slots__": (), "apply": function, "saved_names": tuple(saved_names), "__doc__": function.__doc__, "__module__": function.__module__}
        return type(full, (Node,), {**body, **members})

    return make


# ---- torch.autograd.graph's tools ---------------------------------------------------------------


class GradientEdge(NamedTuple):
    """One output of a node, as a root or an input of `torch.autograd.grad` in place of a tensor."""

    node: Node
    output_nr: int
    ownership_token: Any = None  # the leaf, where the node is its accumulator: it must not die before the edge


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where gradients of the tensor go. RuntimeError for one that requires no grad."""
    edge = gradient_edge(tensor)
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    opened(edge[0])
    return GradientEdge(*edge)


def increment_version(tensor) -> None:
    """Counts a write that autograd could not see: saved uses of the tensor (or tensors) are then outdated."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        t.mem.version += 1


def register_multi_grad_hook(tensors, fn: Callable, *, mode: str = "all") -> _Handles:
    """Runs `fn` once a backward pass: with the gradients of all tensors (None where none comes), or, in mode "any", with the first."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    edges = [gradient_edge(t) for t in tensors]
    if any(edge is None for edge in edges):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    arrived: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # backward pass -> gradients so far

    def hook_for(place: int):
        def hook(grad):
            run = STATE.run
            first = run not in arrived
            grads = arrived.setdefault(run, [None] * len(edges))
            grads[place] = grad
            if mode == "any":
                if first:
                    fn(grad)
            elif sum(g is not None for g in grads) == sum(run.visits(edge[0]) for edge in edges):
                fn(grads)

        return hook

    return _Handles([t.register_hook(hook_for(place)) for place, t in enumerate(tensors)])


class _Handles:
    """Several hook handles as one."""

    def __init__(self, handles: list[Handle]):
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()
