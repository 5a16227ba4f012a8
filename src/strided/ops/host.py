"""NumPy's view of a tensor and back, for the operators that are left to NumPy (sorting, order statistics, searches). Loaded when one is first used."""
from __future__ import annotations

from ..tensor import Spec, Tensor, empty


def array(t: Tensor):
    """A NumPy array over the memory of a cpu tensor: same shape, strides and (through ml_dtypes) dtype."""
    import numpy

    spec = t.spec
    if spec.is_meta:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if spec.numel == 0:
        return numpy.empty(spec.shape, spec.dtype.numpy)
    strides = [s * spec.itemsize for s in spec.strides]
    return numpy.ndarray(tuple(spec.shape), spec.dtype.numpy, buffer=memoryview(t.mem), offset=t.ptr - t.mem.data, strides=strides)


def wide(t: Tensor):
    """`array`, with 16-bit floats as float32: NumPy sorts and searches those at speed and with its rules for NaN."""
    a = array(t)
    return a.astype("float32") if t.dtype.is_floating_point and t.dtype.itemsize < 4 else a


def tensor(a, dtype, device) -> Tensor:
    """A fresh tensor with the values of a NumPy array."""
    out = empty(a.shape, dtype, device)
    if a.size:
        array(out)[...] = a
    return out


def like(spec: Spec, shape=None, dtype=None) -> Tensor:
    """A fresh row-major tensor: the spec's shape, dtype and device unless told otherwise."""
    return empty(spec.shape if shape is None else shape, dtype or spec.dtype, spec.device)
