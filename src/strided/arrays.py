"""The border to NumPy and to plain lists: a tensor's memory seen as an array or read as numbers, and an array's memory lent to a tensor.

NumPy is imported when an array is first asked for, not before.
"""

from __future__ import annotations

from typing import Any

from .errors import PackedOperand
from .kernels.native import PlanCache, read_list, wrap_storage
from .packing import unpacked
from .tensor import Spec, Tensor, wrap


def copied_array(t: Tensor) -> Any:
    """A packed tensor's elements as an array of their ml_dtypes type (int8 or uint8 where that has none): a copy, since arrays hold one element a byte."""
    codes, stored = array_of(unpacked(t)), t.dtype.numpy
    return codes.astype(stored) if stored != codes.dtype else codes


def array_of(t: Tensor) -> Any:
    """A NumPy array over the same memory (same shape, dtype and strides; bfloat16 and float8 by ml_dtypes). Writes go both ways."""
    import numpy
    from numpy.lib.stride_tricks import as_strided

    spec = t.spec
    if spec.is_meta:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if spec.dtype.packed:  # operators run again on unpacked elements, of which there are arrays
        raise PackedOperand
    if spec.numel == 0:
        return numpy.empty(spec.shape, spec.dtype.numpy)
    flat = numpy.frombuffer(t.mem, numpy.uint8)
    start = t.ptr - t.mem.data
    flat = flat[start : start + spec.layout.span * spec.itemsize].view(spec.dtype.numpy)
    if spec.is_contiguous:
        return flat.reshape(spec.shape)
    return as_strided(flat, spec.shape, [stride * spec.itemsize for stride in spec.strides])


def tensor_of(array: Any) -> Tensor:
    """A tensor over the memory of a NumPy array, which it keeps alive. Raises TypeError and ValueError as torch.from_numpy does."""
    key = array.dtype, array.shape, array.strides
    spec = _array_specs.get(key)
    if spec is None:
        spec = _array_specs.put(key, _array_spec(array))
    address = array.__array_interface__["data"][0]
    return wrap(spec, wrap_storage(address, spec.layout.span * spec.itemsize, array), address)


_array_specs = PlanCache()  # by an array's dtype, shape and strides


def _array_spec(array: Any) -> Spec:
    from .dtypes import CPU, from_numpy_dtype
    from .layout import Layout

    dtype = from_numpy_dtype(array.dtype)
    if any(stride < 0 for stride in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. "
            "(You can probably work around this by making a copy of your array with array.copy().)"
        )
    if any(stride % dtype.itemsize for stride in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory."
        )
    return Spec.of(Layout.of(array.shape, [stride // dtype.itemsize for stride in array.strides]), dtype, CPU)


def read_rows(t: Tensor, edge: int | None = None) -> Any:
    """The elements as nested lists (a number for a 0-d tensor). With `edge`, only the first and last `edge` entries of any longer dimension."""
    spec = t.spec
    if spec.is_meta:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if spec.dtype.packed:
        return read_rows(unpacked(t), edge)
    if spec.dtype.code < 0:
        raise NotImplementedError(f"{spec.dtype} is opaque: its bytes are x.view(torch.uint8)")
    if spec.ndim == 0:
        return read_list(spec.dtype.code, t.ptr, 1, spec.itemsize)[0]
    if edge is None and spec.is_contiguous and spec.ndim > 1 and spec.numel:
        return _nest(read_list(spec.dtype.code, t.ptr, spec.numel, spec.itemsize), spec.shape)
    return _read(t.ptr, spec, 0, edge)


def _nest(flat: list, shape) -> list:
    for size in reversed(shape[1:]):
        flat = [flat[k : k + size] for k in range(0, len(flat), size)]
    return flat


def _read(address: int, spec: Spec, d: int, edge: int | None) -> list:
    size, step = spec.shape[d], spec.strides[d] * spec.itemsize
    cut = edge is not None and size > 2 * edge
    if d == spec.ndim - 1:
        if not cut:
            return read_list(spec.dtype.code, address, size, step)
        assert edge is not None
        return read_list(spec.dtype.code, address, edge, step) + read_list(spec.dtype.code, address + (size - edge) * step, edge, step)
    places = [*range(edge), *range(size - edge, size)] if cut and edge is not None else range(size)
    return [_read(address + place * step, spec, d + 1, edge) for place in places]
