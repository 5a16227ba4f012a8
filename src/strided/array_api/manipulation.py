"""Shapes: joining, splitting, repeating, reordering. Views where torch has views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..layout import broadcast_shapes as _broadcast_shapes
from ..layout import wrap_dim
from ..tensor import Tensor
from .calls import call
from .info import of


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    return call("broadcast_to", x, tuple(shape))


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all broadcast to; () for none. Raises ValueError where there is none."""
    try:
        return tuple(_broadcast_shapes(*shapes)) if shapes else ()
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """All arrays as views of one shape."""
    shape = _broadcast_shapes(*[x.shape for x in arrays])
    return tuple(broadcast_to(x, shape) for x in arrays)


def _alike(arrays: Sequence[Tensor]) -> list[Tensor]:
    dtype = of(*arrays)
    return [x.to(dtype) for x in arrays]


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """The arrays one behind another along axis (None: flattened), in the dtype they promote to."""
    arrays = _alike(arrays)
    if axis is None:
        return call("cat", [call("flatten", x) for x in arrays], 0)
    return call("cat", arrays, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape along a new axis."""
    return call("stack", _alike(arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts along an axis, without it."""
    return tuple(call("unbind", x, axis))


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Dimensions of size 1 at these places of the result. Raises IndexError for places that it does not have, ValueError for one named twice."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    places = [wrap_dim(d, x.ndim + len(axes)) for d in axes]
    if len(set(places)) < len(places):
        raise ValueError(f"expand_dims(): {axes} names a dimension twice")
    for d in sorted(places):
        x = call("unsqueeze", x, d)
    return x


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Without the given dimensions. Raises ValueError where one has a size other than 1."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for d in axes:
        if x.shape[wrap_dim(d, x.ndim)] != 1:
            raise ValueError(f"squeeze(): dimension {d} has size {x.shape[d]}, only sizes of 1 can be left out")
    return call("squeeze", x, axes) if axes else x


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The elements in reverse order along axes (None: all)."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    return call("flip", x, axes)


def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
    return call("movedim", x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    return call("permute", x, tuple(axes))


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The elements in another shape; copy: True always, False never (raises ValueError where a view cannot do it)."""
    if copy:
        return call("reshape", call("clone", x), shape)
    out = call("reshape", x, shape)
    if copy is False and x.numel() and out.data_ptr() != x.data_ptr():
        raise ValueError(f"reshape(): {list(x.shape)} with strides {list(x.stride())} becomes {list(shape)} only in a copy, and copy=False")
    return out


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Every element (or slice along axis) several times in a row."""
    return call("repeat_interleave", x, repeats, axis)


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Elements moved on by shift along axis, what falls out at the end coming in at the start."""
    if axis is None:
        return call("roll", x, shift)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    return call("roll", x, shifts, axes)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The array several times in a row along every dimension."""
    return call("tile", x, tuple(repetitions))


def flat_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """An axis argument as dimensions from 0 on; None: all."""
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return tuple(wrap_dim(d, ndim) for d in axes)
