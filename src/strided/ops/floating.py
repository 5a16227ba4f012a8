"""Operators on the parts of floating-point numbers, left to NumPy: frexp, nextafter; and what follows from them, ldexp."""
from __future__ import annotations

from .. import dtypes
from ..autograd import backward, record, tracking
from . import host
from .elementwise import fit
from .hostwise import common_float, hostwise
from .return_types import TYPES
from .table import TABLE, operator


@backward("Frexp")
def FrexpBackward0(node, g, _):
    return (g / TABLE["pow"].call(2.0, node.exponent),)


@operator("frexp", out=True)
def frexp(input):
    """(mantissa, exponent): input = mantissa * 2**exponent with 1/2 <= |mantissa| < 1; exponents are int32, 0 for 0, infinities and NaN."""
    import numpy

    if not input.is_floating_point():
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = host.like(input.spec), host.like(input.spec, dtype=dtypes.int32)
    if not input.is_meta and input.numel():
        m, e = numpy.frexp(host.wide(input))
        host.array(mantissa)[...] = m
        host.array(exponent)[...] = e
    if tracking(input):
        record(FrexpBackward0, (input,), (mantissa, exponent), exponent=exponent)
    return TYPES["frexp"]((mantissa, exponent))


@operator("ldexp", out=True, inplace=True, flops=lambda args, kwargs, result: 2 * result.numel())
def ldexp(input, other):
    """input * 2**other."""
    return TABLE["mul"].call(input, TABLE["pow"].call(2.0, other))


@backward("Nextafter")
def NextafterBackward0(node, g):
    moved = TABLE["where"].call(TABLE["ne"].call(node.x, node.towards), g, 0.0)
    return fit(moved, node.x.spec), TABLE["zeros_like"].call(node.towards)


@operator("nextafter", out=True, inplace=True)
def nextafter(input, other):
    """The next number of the dtype after input in the direction of other."""
    import numpy

    if not dtypes.result_type(input, other).is_floating_point:
        raise NotImplementedError(f"\"nextafter_cpu\" not implemented for '{dtypes.result_type(input, other).scalar_name}': convert to float32 first, as in x.float()")
    dtype = common_float(input, other)
    out = hostwise("nextafter", numpy.nextafter, input, other, dtype=dtype, working=dtype.numpy)
    if tracking(input, other):
        record(NextafterBackward0, (input, other), out, (), x=input, towards=other)
    return out
