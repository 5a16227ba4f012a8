"""The windows that ints, slices, None and ... give: their plans, cached in the tensor's spec, and their gradients. Index tensors are index.py's."""
from __future__ import annotations

from operator import index as as_index
from typing import Any

from ..autograd import backward, record, tracking
from ..autograd.graph import window
from ..layout import Layout
from ..tensor import wrap
from .elementwise import assign
from .onlooking import seen_as
from .partviews import begun_gradient
from .table import TABLE
from .views import AliasBackward0, remember


@seen_as("window_backward", moves=True)
def _window_gradient(node, g):
    """Zeros with g in the window that the key describes; where the window is the whole, g itself in the old shape.

    Where the input's gradient has begun already, g is added into its window of it: a loop over x[:, t] would else write and add the whole once a step.
    """
    spec, window, moved, key = node.at
    if window.numel == spec.numel and moved == 0 and spec.is_contiguous and window.is_contiguous:
        return (TABLE["reshape"].call(g, spec.shape),)
    begun = begun_gradient(node, spec.shape, g)
    if begun is None:
        return (_placed(g, spec, key),)
    TABLE["add_"].call(wrap(window, begun.mem, begun.ptr + moved) if begun.spec is spec else _same_window(begun, key), g)
    return (None,)


def _placed(g, spec, key):
    out = TABLE["zeros"].call(spec.shape, dtype=g.dtype, device=g.device)
    assign(_same_window(out, key), g)
    if tracking(g):
        record(PlacedBackward0, (g,), out, key=key)
    return out


def _same_window(out, key):
    """The window of `out` that the key describes."""
    token = ("window", *map(token_of, key))
    plan = out.spec.cache.get(token)
    if plan is None:
        plan = plan_of_key(out.spec, key)
        if None not in token:  # a key of NumPy's ints has none
            remember(out.spec, token, plan)
    spec, moved = plan[:2]
    return wrap(spec, out.mem, out.ptr + moved)


@backward("PlacedBackward0")
def PlacedBackward0(node, gg):
    return (basic(gg, node.key),)


_NODES = {
    "select": backward("Select", __slots__=("at",))(_window_gradient),
    "slice": backward("Slice", __slots__=("at",))(_window_gradient),
    "unsqueeze": backward("Unsqueeze", __slots__=("at",))(_window_gradient),
    "alias": AliasBackward0,
}


def plan_of_key(spec, key: tuple, places=None, taken=None):
    """(spec of the window, bytes by which it starts later, last kind of step) for a tuple of ints, slices, None and ...; raises IndexError.

    places: where in the user's key each step comes from, if not one by one: errors count dimensions that way, as PyTorch's do.
    taken: how many dimensions the whole key names, where this is its beginning.
    """
    shape, strides, offset, last, d = list(spec.shape), list(spec.strides), 0, "alias", 0
    named = taken or 0
    if taken is None:
        for item in key:
            named += item is not None and item is not Ellipsis
    if named > spec.ndim:
        raise IndexError(f"too many indices for tensor of dimension {spec.ndim}")
    for k, item in enumerate(key):
        if item is None:
            if d > len(shape):
                raise _no_dimension(d, len(shape) + 1)
            strides.insert(d, shape[d] * strides[d] if d < len(shape) else 1)
            shape.insert(d, 1)
            last = "unsqueeze"
            d += 1
        elif item is Ellipsis:
            d += spec.ndim - named  # a second one moves on by as much again, as in PyTorch
        elif isinstance(item, slice):
            size = shape[d] if d < len(shape) else 0
            start, stop, step = _bounds(item, size)
            length = max(0, (stop - start + step - 1) // step)
            if d >= len(shape):
                if item.start or step != 1 or (item.stop is not None and as_index(item.stop) < 0):
                    raise _no_dimension(d, len(shape))
            else:
                if item.start or step != 1 or (item.stop is not None and not size <= as_index(item.stop)):
                    last = "slice"  # by the bounds as written, even where they are the whole
                offset += start * strides[d]
                shape[d] = length
                strides[d] *= step
            d += 1
        else:
            size = shape[d] if d < len(shape) else 0
            if not -size <= item < size:
                raise _out_of_bounds(item, k if places is None else places[k], size)
            offset += (item + size if item < 0 else item) * strides[d]
            last = "select"
            del shape[d], strides[d]
    return spec.with_layout(Layout.of(shape, strides)), offset * spec.itemsize, last


def _out_of_bounds(position: int, d: int, size: int) -> Exception:
    if not -(1 << 63) <= position < 1 << 63:
        return ValueError(f"Overflow when unpacking long long\n  The index {position} does not fit 64 bits.")
    return IndexError(f"index {position} is out of bounds for dimension {d} with size {size}")


def _no_dimension(d: int, ndim: int) -> IndexError:
    return IndexError(f"Dimension out of range (expected to be in range of [{min(-ndim, -1)}, {max(ndim - 1, 0)}], but got {d})")


def _bounds(item: slice, size: int):
    step = 1 if item.step is None else integer_bound(item.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError("step must be greater than zero")
    start, stop = (None if bound is None else integer_bound(bound) for bound in (item.start, item.stop))
    return slice(start, stop, step).indices(size)


def integer_bound(value) -> int:
    try:
        return as_index(value)
    except TypeError:
        if hasattr(type(value), "__index__"):
            raise
        raise TypeError("slice indices must be integers or None or have an __index__ method") from None


def token_of(key) -> Any:
    """A hashable stand-in for a key of ints, slices, None and ..., or None where it holds anything else (or a bool, which equals an int)."""
    kind = type(key)
    if kind is int:
        return key
    if kind is slice:
        start, stop, step = key.start, key.stop, key.step
        for bound in (start, stop, step):
            if bound is not None and type(bound) is not int:
                return None
        return start, stop, step
    if key is None or key is Ellipsis:
        return kind
    return None


def _window(self, token, key):
    """The window for a key whose token is known; `key` is a tuple."""
    spec = self.spec
    plan = spec.cache.get(token)
    if plan is None:
        new, moved, last = plan_of_key(spec, key)
        if token[0] == "[:]" and last == "alias" and type(key[0]) is slice:
            last = "slice"  # x[:]; only within a tuple is a slice of all left out
        plan = remember(spec, token, (new, moved, last))
    new, moved, last = plan
    return noted(self, new, moved, last, key)


def noted(self, new, moved, last, key):
    """The window of `self` with spec `new`, `moved` bytes from its start, noted by autograd."""
    return window(self, new, self.ptr + moved, _NODES[last], at=(self.spec, new, moved, key))


def _row(self, position: int):
    """self[position]: one plan serves every position."""
    spec = self.spec
    plan = spec.cache.get("[int]")
    if plan is None:
        if not spec.ndim:
            raise _no_dimension_at_all(position)
        if not spec.shape[0]:
            raise _out_of_bounds(position, 0, 0)
        new, _, _ = plan_of_key(spec, (0,))
        plan = remember(spec, "[int]", (new, spec.shape[0], spec.strides[0] * spec.itemsize))
    new, size, step = plan
    if -size <= position < size:
        return noted(self, new, (position + size if position < 0 else position) * step, "select", (position,))
    raise _out_of_bounds(position, 0, size)


def _no_dimension_at_all(position: int) -> IndexError:
    if position:
        return IndexError(f"index {position} is out of bounds for dimension 0 with size 0\n  The tensor is 0-dimensional: it is one number, x.item().")
    return IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number")


def basic(self, key):
    """The window for `key` if it is made of ints, slices, None and ... alone, else None."""
    kind = type(key)
    if kind is int:
        return _row(self, key)
    if kind is tuple:
        tokens = ["[]"]
        for item in key:
            token = token_of(item)
            if token is None:
                return None
            tokens.append(token)
        return _window(self, tuple(tokens), key)
    token = token_of(key)
    if token is None:
        return None
    if kind is slice and not self.spec.ndim:
        _bounds(key, 0)
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    return _window(self, ("[:]", token), (key,))
