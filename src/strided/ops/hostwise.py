"""Pointwise functions of the long tail that NumPy computes: broadcasting, promotion and the way there and back. Holds no operator."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes, errors
from ..layout import broadcast_shapes
from ..tensor import Tensor, empty
from . import host
from .create import scalar_tensor
from .table import TABLE


def common_float(*operands: Any) -> dtypes.DType:
    """The operands' common dtype; the default float where it is an integer or bool."""
    common = dtypes.result_type(*operands)
    return common if common.is_floating_point else dtypes.get_default_dtype()


def converted_number(value: float, dtype: dtypes.DType) -> Tensor:
    """A 0-d tensor of a number, converted as a tensor is: where `dtype` is too narrow integers wrap, and floats end at infinity."""
    return TABLE["to"].call(scalar_tensor(value, dtype=dtypes.float64 if isinstance(value, float) else dtypes.int64), dtype)


def hostwise(name: str, function: Callable[..., Any], *operands: Any, dtype: dtypes.DType, working: str = "float64") -> Tensor:
    """`function` of the operands' arrays (broadcast, in the dtype `working`) as a fresh tensor of `dtype`. Nothing is recorded."""
    import numpy

    tensors = [o for o in operands if isinstance(o, Tensor)]
    device = errors.check_devices(name, tensors) if len(tensors) > 1 else tensors[0].device
    shape = broadcast_shapes(*[t.shape for t in tensors])
    if any(t.is_meta for t in tensors):
        return empty(shape, dtype, device)
    with numpy.errstate(all="ignore"):
        arrays = [host.wide(o).astype(working, copy=False) if isinstance(o, Tensor) else numpy.asarray(o, working) for o in operands]
        result = numpy.asarray(function(*numpy.broadcast_arrays(*arrays)))
        return host.tensor(result.reshape(shape), dtype, device)
