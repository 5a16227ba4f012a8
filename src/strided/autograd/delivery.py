"""What happens to gradients on their way through the engine: those that do not fit are made to, leaves take theirs up, hooks see them. When, is engine.py's."""

from __future__ import annotations

import os
from sys import getrefcount
from threading import RLock

from strided.autograd.graph import AccumulateGrad, Node
from strided.autograd.modes import STATE
from strided.autograd.saved import type_name
from strided.tensor import Tensor, empty, wrap

# ---- gradients that do not fit ------------------------------------------------------------------


def conform(grad, spec, node: Node, edge: tuple):
    """The gradient in the shape, dtype and device of what it is a gradient of: summed over broadcast dimensions, cast; else an error."""
    own = grad.spec
    if own.shape != spec.shape:
        if not _expandable(spec.shape, own.shape):
            raise RuntimeError(f"Function {node.name()} returned an invalid gradient at index {_index(node, edge)} - got {list(own.shape)} but expected shape compatible with {list(spec.shape)}")
        grad = grad.sum_to_size(spec.shape)
    if own.dtype is not spec.dtype:
        if own.dtype.is_complex and not spec.dtype.is_complex:
            grad = grad.real
        if grad.spec.dtype is not spec.dtype:
            grad = grad.to(spec.dtype)
    if own.device != spec.device:
        raise RuntimeError(f"Function {node.name()} returned an invalid gradient at index {_index(node, edge)} - expected device {spec.device} but got {own.device}")
    return grad


def _index(node: Node, edge: tuple) -> int:
    return next(number for number, other in enumerate(node.edges) if other is edge)


def _expandable(shape, target) -> bool:
    offset = len(target) - len(shape)
    return offset >= 0 and all(size == 1 or size == target[offset + dim] for dim, size in enumerate(shape))


def counted(node: Node, results) -> tuple:
    """What a node returned as a tuple of one gradient an edge. Too few or too many are an error, except that trailing None may be too many."""
    if type(results) is not tuple:
        results = tuple(results) if type(results) is list else (results,)
    expected = len(node.edges)
    if len(results) < expected or any(grad is not None for grad in results[expected:]):
        raise RuntimeError(f"function {node.name()} returned an incorrect number of gradients (expected {expected}, got {len(results)})")
    return results[:expected]


# ---- leaves -------------------------------------------------------------------------------------


class Waiting:
    """Gradients of leaves that are made together (`wait` in engine.py): `function(items)` gives one for each of the nodes `targets`."""

    __slots__ = ("function", "targets", "items", "most")

    def __init__(self, function, targets: tuple, most: int):
        self.function, self.targets, self.items, self.most = function, targets, [], most


_ADDING = RLock()  # backward passes in several threads may meet at a leaf


def _renew_lock() -> None:
    """In a forked child: the thread that may have held the lock is not there to release it."""
    global _ADDING
    _ADDING = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def accumulate(node: AccumulateGrad, grads: list) -> None:
    """Adds to the leaf's .grad: in place where grad mode is off; a first gradient nobody else holds is taken as it is."""
    leaf = node.reference()
    if leaf._hooks or leaf._post_hooks:
        settle()
    if leaf._hooks:
        grads[0] = leaf_hooks(leaf, grads[0])
    if not leaf._tracked:  # requires_grad was switched off since
        return
    given = (grads[0],) if node.hooks is not None and node.hooks.post else None
    if grads[0] is not None:
        _ADDING.acquire()
        try:
            if leaf._grad is None:
                leaf._grad = _first(leaf.spec, grads)
            elif STATE.grad_enabled:
                leaf._grad = leaf._grad + grads[0]
            else:
                leaf._grad.add_(grads[0])
        finally:
            _ADDING.release()
        if leaf._post_hooks:
            for hook in list(leaf._post_hooks.values()):
                result = hook(leaf)
                if result is not None:
                    raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    if given is not None:
        for hook in list(node.hooks.post.values()):
            hook((), given)


def deliver(leaves: list) -> None:
    """`accumulate` for leaves without hooks, (accumulator, leaf, [gradient]) each; quick where a first gradient is taken as it is."""
    counts, recording = _ALONE, STATE.grad_enabled
    for node, leaf, grads in leaves:
        if not recording and leaf._grad is None and leaf._tracked and grads[0].spec is leaf.spec and leaf.spec.layout.is_dense:
            if getrefcount(grads[0]) <= counts[0] and getrefcount(grads[0].mem) <= counts[1] and grads[0]._base is None and not grads[0]._tracked:
                with _ADDING:
                    if leaf._grad is None:
                        leaf._grad = grads[0]
                        continue
        accumulate(node, grads)


def _first(spec, grads: list):
    """A leaf's first gradient, in the leaf's own layout (contiguous where that is not dense). `grads` holds the only reference."""
    like_leaf = grads[0].spec is spec if spec.layout.is_dense else grads[0].spec.is_contiguous
    if like_leaf and not STATE.grad_enabled and alone(grads):
        grad = grads[0]
        return grad if grad._base is None and not grad._tracked else wrap(grad.spec, grad.mem, grad.ptr)
    if like_leaf:
        return grads[0].clone()
    fresh = empty(spec.shape, grads[0].spec.dtype, spec.device, strides=spec.strides if spec.layout.is_dense else None)
    return fresh.copy_(grads[0])


def _references(held: list) -> tuple[int, int, int]:
    return getrefcount(held[0]), getrefcount(held[0].mem), getrefcount(held[0]._base)


class _Probe:
    pass


def _calibrate() -> tuple[int, int, int]:
    """What `_references` counts for an object only the list holds: Python versions differ in what they count themselves."""
    probe = [_Probe()]
    probe[0].mem, probe[0]._base = _Probe(), _Probe()
    return _references(probe)


_ALONE = _calibrate()


def alone(held: list) -> bool:
    """True if nobody but this list holds the tensor, and nobody but the tensor its storage: then it may be taken over."""
    tensor, storage, base = _references(held)
    if held[0]._base is not None:  # a view, as a transposed product is: its base holds the storage too, and must be the view's alone
        storage -= 1
        if base > _ALONE[2]:
            return False
    return tensor <= _ALONE[0] and storage <= _ALONE[1]


def untouched(held: list) -> bool:
    """`alone` for what is no view, in fewer steps, and dense memory of our own: it may be written to."""
    counts = _ALONE
    return (
        getrefcount(held[0]) <= counts[0]
        and getrefcount(held[0].mem) <= counts[1]
        and held[0]._base is None
        and held[0].spec.layout.is_dense
        and held[0].mem.owner is None
    )


# ---- hooks --------------------------------------------------------------------------------------


def settle() -> None:
    """Makes the gradients that wait for others (`wait` in engine.py), ahead of code of the user's: it may write into what they are made of."""
    run = STATE.run
    if run is not None and run.waiting:
        for waiting in list(run.waiting.values()):
            run.settle(waiting)


def leaf_hooks(leaf: Tensor, grad):
    if grad is not None and leaf._hooks:
        for hook in list(leaf._hooks.values()):
            grad = _hooked(hook, grad)
    return grad


def _hooked(hook, grad):
    result = hook(grad)
    if result is None:
        return grad
    if not isinstance(result, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    if result.spec.dtype is not grad.spec.dtype:
        was, got = (type_name(t.spec.dtype) for t in (grad, result))
        raise RuntimeError(f"hook '{getattr(hook, '__name__', hook)}' has changed the type of value (was {was} got {got})")
    if result.spec.shape != grad.spec.shape:
        raise RuntimeError(f"hook '{getattr(hook, '__name__', hook)}' has changed the size of value")
    return result


def before(node: Node, grads: list) -> list:
    """Hooks on the node's outputs (in the order in which they were registered), retained gradients, then the node's own prehooks."""
    settle()
    hooks = node.hooks
    for number, table in hooks.tensors.items():
        for hook in list(table.values()):
            if grads[number] is not None:
                grads[number] = _hooked(hook, grads[number])
    for number, reference in hooks.retain.items():
        tensor, grad = reference(), grads[number]
        if tensor is not None and grad is not None:
            tensor._grad = grad.clone() if tensor._grad is None else tensor._grad + grad
    for hook in list(hooks.pre.values()):
        changed = hook(tuple(grads))
        if changed is not None:
            grads = list(changed) if isinstance(changed, (tuple, list)) else [changed]
    return grads


def after(node: Node, results: tuple, grads: list) -> tuple:
    settle()
    for hook in list(node.hooks.post.values()):
        changed = hook(results, tuple(grads))
        if changed is not None:
            results = changed if isinstance(changed, tuple) else (changed,)
    return results
