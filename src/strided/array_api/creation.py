"""New arrays: from shapes, ranges, other arrays and other libraries."""

from __future__ import annotations

from typing import Any

from ..dtypes import DType, get_default_dtype
from ..namespace import NAMES
from ..tensor import Tensor

Shape = int | tuple[int, ...]


def _call(name: str, *args: Any, **kwargs: Any) -> Any:
    return NAMES[name](*args, **kwargs)


def _sizes(shape: Shape) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def asarray(obj: Any, /, *, dtype: DType | None = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array of numbers, nested sequences, arrays, or objects with the buffer or DLPack protocol; shares memory where it can unless copy is True."""
    if not isinstance(obj, Tensor) and hasattr(obj, "__dlpack__") and not hasattr(obj, "__array__"):
        obj = from_dlpack(obj)
    return _call("asarray", obj, dtype=dtype, device=device, copy=copy)


def arange(start: float, /, stop: float | None = None, step: float = 1, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Evenly spaced numbers start, start + step, … before stop; empty where step leads away from stop."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange(): step must not be 0")
    if step > 0 and stop <= start or step < 0 and stop >= start:
        if dtype is None:
            dtype = None if all(isinstance(value, int) for value in (start, stop, step)) else get_default_dtype()
            return _call("empty", (0,), dtype=dtype, device=device) if dtype else _call("arange", 0, device=device)
        return _call("empty", (0,), dtype=dtype, device=device)
    return _call("arange", start, stop, step, dtype=dtype, device=device)


def linspace(start: float, stop: float, /, num: int, *, dtype: DType | None = None, device: Any = None, endpoint: bool = True) -> Tensor:
    """`num` evenly spaced numbers from start to stop, which is left out with endpoint=False."""
    if num < 0:
        raise ValueError(f"linspace(): num must not be negative, but got {num}")
    if not endpoint:
        return _call("linspace", start, stop, num + 1, dtype=dtype, device=device)[:-1]
    return _call("linspace", start, stop, num, dtype=dtype, device=device)


def empty(shape: Shape, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    return _call("empty", _sizes(shape), dtype=dtype, device=device)


def zeros(shape: Shape, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    return _call("zeros", _sizes(shape), dtype=dtype, device=device)


def ones(shape: Shape, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    return _call("ones", _sizes(shape), dtype=dtype, device=device)


def full(shape: Shape, fill_value: bool | int | float | complex, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    return _call("full", _sizes(shape), fill_value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    return _call("empty_like", x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    return _call("zeros_like", x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    return _call("ones_like", x, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: bool | int | float | complex, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    return _call("full_like", x, fill_value, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Ones on the k-th diagonal: [n_rows, n_cols], k > 0 above the main one."""
    columns = n_rows if n_cols is None else n_cols
    out = _call("zeros", (n_rows, columns), dtype=dtype, device=device)
    if -n_rows < k < columns:
        _call("fill_", _call("diagonal", out, k), 1)
    return out


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    return _call("tril", x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    return _call("triu", x, k)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinates of a grid over one-dimensional arrays, in Cartesian ("xy") or matrix ("ij") order."""
    return tuple(_call("meshgrid", *arrays, indexing=indexing)) if arrays else ()


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    return _call("from_dlpack", x, device=device, copy=copy)
