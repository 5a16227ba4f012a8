"""Short forms of the border to NumPy (arrays.py), for the operators that are left to NumPy (sorting, order statistics, searches). Loaded when one is first used."""
from __future__ import annotations

from ..arrays import array_of as array
from ..tensor import Spec, Tensor, empty


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
