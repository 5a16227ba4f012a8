"""Finding, choosing, sorting, and the distinct elements of an array."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import dtypes
from ..ops import host
from ..tensor import Tensor
from .calls import call
from .elementwise import Operand, pair
from .statistical import Axis, _fold


def _place(name: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    if axis is None:
        out = call(name, call("flatten", x), 0)
        return call("reshape", out, (1,) * x.ndim) if keepdims else out
    return call(name, x, axis, keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the largest element is first found (in the flattened array without an axis)."""
    return _place("argmax", x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the smallest element is first found (in the flattened array without an axis)."""
    return _place("argmin", x, axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the nonzero elements, one array a dimension. Raises ValueError for an array without dimensions."""
    if x.ndim == 0:
        raise ValueError("nonzero() needs an array with at least one dimension")
    return tuple(call("nonzero", x, as_tuple=True))


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return _fold("sum", x.to(dtypes.bool_), axis, keepdims, dtype=dtypes.int64)


def where(condition: Tensor, x1: Operand, x2: Operand, /) -> Tensor:
    """x1 where the condition is true, x2 elsewhere."""
    a, b = pair(x1, x2) if isinstance(x1, Tensor) or isinstance(x2, Tensor) else (x1, x2)
    return call("where", condition, a, b)


def searchsorted(x1: Tensor, x2: Operand, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where the elements of x2 would have to go into the sorted vector x1."""
    if side not in ("left", "right"):
        raise ValueError(f'searchsorted(): side is "left" or "right", not {side!r}')
    if sorter is not None:
        x1 = call("index_select", x1, 0, sorter)
    a, b = pair(x1, x2)
    return call("searchsorted", a, b.contiguous(), right=side == "right")


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    return call("sort", x, dim=axis, descending=descending, stable=stable)[0]


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    return call("sort", x, dim=axis, descending=descending, stable=stable)[1]


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices along axis that a vector of indices names (negative ones count from the end)."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take(): axis must be given for an array of {x.ndim} dimensions")
        axis = 0
    size = x.shape[axis]
    wrapped = call("where", call("lt", indices, 0), call("add", indices, size), indices)
    return call("index_select", x, axis, wrapped)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Along axis, the elements that indices name at every place of the other dimensions."""
    size = x.shape[axis]
    wrapped = call("where", call("lt", indices, 0), call("add", indices, size), indices)
    return call("take_along_dim", x, wrapped.to(dtypes.int64), axis)


def isin(x1: Operand, x2: Operand, /, *, invert: bool = False) -> Tensor:
    """Whether each element of x1 (an array or a number) is among x2's, or with invert whether it is not."""
    a, b = pair(x1, x2)
    return call("isin", a, b, invert=invert)


class UniqueAll(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def _unique(x: Tensor) -> UniqueAll:
    """Distinct elements, ascending (every nan is its own; -0.0 is 0.0), where each first stands, what each element is, and how often each comes."""
    import numpy

    flat = host.array(call("flatten", x.detach()))
    values, indices, inverse, counts = numpy.unique(flat, True, True, True, equal_nan=False)
    made = [host.tensor(numpy.asarray(a, numpy.int64), dtypes.int64, x.device) for a in (indices, inverse.reshape(x.shape), counts)]
    return UniqueAll(host.tensor(values, x.dtype, x.device), *made)


def unique_all(x: Tensor, /) -> Any:
    """(values, indices, inverse_indices, counts)."""
    return _unique(x)


def unique_counts(x: Tensor, /) -> Any:
    """(values, counts)."""
    found = _unique(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> Any:
    """(values, inverse_indices)."""
    found = _unique(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    return _unique(x).values
