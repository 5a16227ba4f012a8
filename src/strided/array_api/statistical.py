"""Sums, products, extrema, means along axes (None: all, a tuple: several), running sums, differences, truth of all and any."""

from __future__ import annotations

import builtins
from typing import Any

from .. import dtypes
from ..dtypes import DType
from ..tensor import Tensor
from .calls import call
from .elementwise import Number
from .manipulation import flat_axes

Axis = int | tuple[int, ...] | None


def _wide(dtype: DType) -> DType:
    """The dtype that sums and products of one are computed in when none is given: integers at least as wide as the default one."""
    if dtype.kind == "int":
        return dtypes.int64
    if dtype.kind == "uint":
        return dtypes.uint64
    return dtypes.int64 if dtype is dtypes.bool_ else dtype


def _rows(x: Tensor, axis: Axis) -> tuple[Tensor, tuple[int, ...], tuple[int, ...]]:
    """x with the folded axes joined into a last one; the shape that is left, and the one with sizes of 1 kept."""
    axes = flat_axes(axis, x.ndim)
    rest = [d for d in range(x.ndim) if d not in axes]
    left = tuple(x.shape[d] for d in rest)
    kept = tuple(1 if d in axes else x.shape[d] for d in range(x.ndim))
    length = 1
    for d in axes:
        length *= x.shape[d]
    return call("reshape", call("permute", x, (*rest, *axes)), (*left, length)), left, kept


def _fold(name: str, x: Tensor, axis: Axis, keepdims: bool, **kwargs: Any) -> Tensor:
    rows, left, kept = _rows(x, axis)
    return call("reshape", call(name, rows, -1, **kwargs), kept if keepdims else left)


def sum(x: Tensor, /, *, axis: Axis = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    return _fold("sum", x, axis, keepdims, dtype=dtype or _wide(x.dtype))


def prod(x: Tensor, /, *, axis: Axis = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    return _fold("prod", x, axis, keepdims, dtype=dtype or _wide(x.dtype))


def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element; nan where there is one. Raises for no elements."""
    return _fold("amax", x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest element; nan where there is one. Raises for no elements."""
    return _fold("amin", x, axis, keepdims)


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return _fold("mean", x, axis, keepdims)


def var(x: Tensor, /, *, axis: Axis = None, correction: int | float = 0.0, keepdims: bool = False) -> Tensor:
    """The mean squared distance from the mean, over n - correction."""
    return _fold("var", x, axis, keepdims, correction=correction)


def std(x: Tensor, /, *, axis: Axis = None, correction: int | float = 0.0, keepdims: bool = False) -> Tensor:
    """The square root of `var`."""
    return _fold("std", x, axis, keepdims, correction=correction)


def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are true (nonzero); true for none."""
    return _fold("all", x.to(dtypes.bool_), axis, keepdims)


def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether an element is true (nonzero); false for none."""
    return _fold("any", x.to(dtypes.bool_), axis, keepdims)


def _running(name: str, x: Tensor, axis: int | None, dtype: DType | None, start: Number, include_initial: bool) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"{name}: axis must be given for an array of {x.ndim} dimensions")
        axis = 0
    chosen = dtype or _wide(x.dtype)
    out = call(name, x, axis, dtype=chosen)
    if not include_initial:
        return out
    shape = list(out.shape)
    shape[axis] = 1
    return call("cat", [call("full", shape, start, dtype=chosen, device=x.device), out], axis)


def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False) -> Tensor:
    """Sums of the elements so far; include_initial puts a 0 before them."""
    return _running("cumsum", x, axis, dtype, 0, include_initial)


def cumulative_prod(x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False) -> Tensor:
    """Products of the elements so far; include_initial puts a 1 before them."""
    return _running("cumprod", x, axis, dtype, 1, include_initial)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The n-th differences of neighbours along axis."""
    parts = [part for part in (prepend, x, append) if part is not None]
    if builtins.len(parts) > 1:
        x = call("cat", parts, axis)
    return call("diff", x, n, axis)
