"""Choices between elements, bounds and blends: where, masked_fill, clamp, lerp, addcmul, addcdiv, nan_to_num, logit."""
from __future__ import annotations

import math
from numbers import Real

from .. import dtypes
from ..errors import c_name
from ..kernels import expr as E
from ..tensor import Tensor
from . import signatures
from .elementwise import Pointwise, warn_of_overlap, with_flops
from .pointwise_options import as_operands
from .table import TABLE, operator


def _within(x, eps):
    return E.where(x < eps, eps, E.where(x > 1 - eps, 1 - eps, x))


_nan_to_num = Pointwise("nan_to_num", lambda x, n, p, m: E.where(E.isnan(x), n, E.where(E.isinf(x), E.where(x > 0, p, m), x)), 4, node="NanToNum")
_nan_to_num.gradient = lambda i: (lambda g, x, n, p, m, y: E.where(E.isnan(x) | E.isinf(x), 0.0, g)) if i == 0 else None
_logit = Pointwise("logit", lambda x: E.log(x / (1 - x)), 1, kind="float", node="Logit")
_logit.gradient = lambda i: lambda g, x, y: E.where((x < 0) | (x > 1), math.nan, g / abs(x * (1 - x)))  # at 0 and -0 infinity
_logit_within = Pointwise("logit", lambda x, eps: E.log(_within(x, eps) / (1 - _within(x, eps))), 2, kind="float", node="Logit")
_logit_within.gradient = lambda i: None if i else lambda g, x, eps, y: E.where((x < eps) | (x > 1 - eps), 0.0, g / abs(x * (1 - x)))
_where = Pointwise("where", lambda c, x, y: E.where(c, x, y), 3, node="Where")
_where.gradient = lambda i: (None, lambda g, c, x, y, r: E.where(c, g, 0.0), lambda g, c, x, y, r: E.where(c, 0.0, g))[i]
_masked_fill = Pointwise("masked_fill", lambda x, m, v: E.where(m, v, x), 3, node="MaskedFill")
_masked_fill.row_major = True
_masked_fill.gradient = lambda i: (lambda g, x, m, v, r: E.where(m, 0.0, g), None, lambda g, x, m, v, r: E.where(m, g, 0.0))[i]
_clamp = Pointwise("clamp", lambda x, low, high: E.clamp(x, low, high), 3, node="Clamp")
_clamp_min = Pointwise("clamp", lambda x, low: E.clamp(x, low, None), 2, node="Clamp")
_clamp_max = Pointwise("clamp", lambda x, high: E.clamp(x, None, high), 2, node="Clamp")
_at_least = Pointwise("clamp_min", lambda x, low: E.clamp(x, low, None), 2, node="ClampMin")
_at_most = Pointwise("clamp_max", lambda x, high: E.clamp(x, None, high), 2, node="ClampMax")
_lerp = Pointwise("lerp", lambda a, b, w: E.where(abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w)), 3, node="Lerp")
_lerp.flops = 3  # subtract, multiply, add: of the two forms one is taken
_lerp.gradient = lambda i: (lambda g, a, b, w, r: g * (1 - w), lambda g, a, b, w, r: g * w, lambda g, a, b, w, r: g * (b - a))[i]
_addcmul = Pointwise("addcmul", lambda x, a, b, v: x + v * a * b, 4, node="Addcmul")
_addcdiv = Pointwise("addcdiv", lambda x, a, b, v: x + v * a / b, 4, node="Addcdiv")


@operator("where", method=False, out="late", flops=lambda args, kwargs, result: 0)
def where(condition, input=None, other=None):
    """Elements of `input` where `condition` holds, of `other` elsewhere; all broadcast. With a condition alone: the indices of its true elements, one tensor a dimension."""
    if input is None and other is None:
        return TABLE["nonzero"].call(condition, as_tuple=True)
    if not isinstance(condition, Tensor):
        raise TypeError(f"where(): argument 'condition' (position 1) must be Tensor, not {type(condition).__name__}")
    if condition.dtype not in (dtypes.bool_, dtypes.uint8):
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype.scalar_name}")
    return _choose(condition, *as_operands(input, other))


def _choose(condition, input, other):
    """where over broadcast operands: the condition takes no part in promotion."""
    common = dtypes.result_type(input, other)
    input, other = (_in_dtype(o, common) for o in (input, other))
    return _Select.where(condition, input, other)


def _in_dtype(operand, dtype):
    if isinstance(operand, Tensor):
        return operand if operand.dtype is dtype else TABLE["to"].call(operand, dtype)
    from .data import scalar_tensor

    return scalar_tensor(operand, dtype=dtype)


class _Selecting(Pointwise):
    """A choice by a mask: the mask (operand `mask`) takes no part in promotion."""

    def __init__(self, source: Pointwise, mask: int):
        self.__dict__.update(source.__dict__)
        self.mask = mask

    def common_dtype(self, operands):
        return dtypes.result_type(*(o for i, o in enumerate(operands) if i != self.mask))


class _Select:
    where = _Selecting(_where, 0)
    masked_fill = _Selecting(_masked_fill, 1)


@operator("masked_fill", inplace=False, flops=lambda args, kwargs, result: 0)
def masked_fill(input, mask, value):
    """input with `value` where `mask` holds; mask and input broadcast together."""
    return _Select.masked_fill(input, _mask(mask), _fill_value(input, value))


@operator("masked_fill_", function=False)
def masked_fill_(input, mask, value):
    """In-place form of `masked_fill`: the mask broadcasts to the input."""
    mask, value = _mask(mask), _fill_value(input, value)
    shared = warn_of_overlap("masked_fill_", input)
    if shared:  # a shared place is filled if the mask holds for any of its elements
        mask = TABLE["any"].call(TABLE["expand"].call(mask, input.shape), shared, True)
        window = input
        for d in shared:
            window = TABLE["narrow"].call(window, d, 0, 1)
        _Select.masked_fill.into(window, mask, value)
        return input
    return _Select.masked_fill.into(input, mask, value)


def _mask(mask):
    if not isinstance(mask, Tensor) or mask.dtype is not dtypes.bool_:
        got = c_name(mask.dtype) if isinstance(mask, Tensor) else type(mask).__name__
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {got}\n  Make it one: mask.bool().")
    return mask


def _fill_value(input, value):
    from .writes import number_for

    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s).")
        if value.dtype is input.dtype:
            return value
        if not value.is_meta:
            number_for(input.dtype, value.item())  # raises where it does not fit
        return TABLE["to"].call(value, input.dtype)
    return number_for(input.dtype, *as_operands(value))


def _check_bounds(input, min, max):
    if not isinstance(input, Tensor):
        raise signatures.no_overload("clamp", (input, min, max), ("Tensor input, Tensor min, Tensor max", "Tensor input, Number min, Number max"))
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(min, complex) or isinstance(max, complex):
        if not input.dtype.is_complex:
            raise RuntimeError("value cannot be converted to type double without overflow\n  The bounds of a real tensor are real.")


@operator("clamp", aliases=("clip",), flops=lambda args, kwargs, result: 0, out=True)
def clamp(input, min=None, max=None):
    """input limited to [min, max]; either bound may be a number, a tensor or None. Raises RuntimeError when both are None."""
    _check_bounds(input, min, max)
    if min is None:
        return _clamp_max(input, *as_operands(max))
    if max is None:
        return _clamp_min(input, *as_operands(min))
    return _clamp(input, *as_operands(min, max))


@operator("clamp_", aliases=("clip_",))
def clamp_(input, min=None, max=None):
    """In-place form of `clamp`."""
    _check_bounds(input, min, max)
    if min is None:
        return _clamp_max.into(input, max)
    return _clamp_min.into(input, min) if max is None else _clamp.into(input, min, max)


@operator("clamp_min", inplace=True, out=True)
def clamp_min(input, min):
    """input, raised to at least `min`."""
    return _at_least(input, *as_operands(min))


@operator("clamp_max", inplace=True, out=True)
def clamp_max(input, max):
    """input, lowered to at most `max`."""
    return _at_most(input, *as_operands(max))


def _c_name(dtype) -> str:
    """How PyTorch's C++ names a dtype in its messages."""
    return {"complex64": "c10::complex<float>", "complex128": "c10::complex<double>"}.get(dtype.name, dtype.scalar_name.lower())


@operator("lerp", inplace=True, out=True, flops=with_flops(_lerp))
def lerp(input, end, weight):
    """input + weight * (end - input); weight a number or a tensor. RuntimeError where the tensors' dtypes differ."""
    if not isinstance(end, Tensor) or not isinstance(input, Tensor):
        raise signatures.no_overload("lerp", (input, end, weight), ("Tensor input, Tensor end, Tensor weight", "Tensor input, Tensor end, Number weight"))
    for name, given in (("end", end), ("weight", weight)):
        if isinstance(given, Tensor) and given.dtype is not input.dtype and not (name == "weight" and not given.ndim):
            raise RuntimeError(f"expected dtype {_c_name(input.dtype)} for `{name}` but got dtype {_c_name(given.dtype)}\n  Convert it: .to({input.dtype}).")
    if input.dtype.kind in ("int", "uint", "bool"):
        kernel = "tensor" if isinstance(weight, Tensor) and weight.ndim else "scalar"
        raise NotImplementedError(f"\"lerp_kernel_{kernel}\" not implemented for '{input.dtype.scalar_name}': what lies between two integers is no integer, convert them with .float()")
    return _lerp(input, end, *as_operands(weight))


def _need_tensors(name, *operands):
    for place, (argument, operand) in enumerate(zip(("input", "tensor1", "tensor2"), operands), 1):
        if not isinstance(operand, Tensor):
            raise TypeError(f"{name}(): argument '{argument}' (position {place}) must be Tensor, not {type(operand).__name__}")


def _check_value(value, *tensors):
    """A complex factor needs complex tensors."""
    if isinstance(value, complex):
        from .writes import number_for

        number_for(dtypes.result_type(*tensors), value)


@operator("addcmul", inplace=True, out=True, flops=with_flops(_addcmul))
def addcmul(input, tensor1, tensor2, *, value=1):
    """input + value * tensor1 * tensor2."""
    _need_tensors("addcmul", input, tensor1, tensor2)
    _check_value(value, input, tensor1, tensor2)
    if isinstance(value, float) and dtypes.result_type(input, tensor1, tensor2).kind in ("int", "uint", "bool"):
        value = int(value)  # the tensors say what the result is
    return _addcmul(input, tensor1, tensor2, *as_operands(value))


@operator("addcdiv", inplace=True, out=True, flops=with_flops(_addcdiv))
def addcdiv(input, tensor1, tensor2, *, value=1):
    """input + value * tensor1 / tensor2."""
    _need_tensors("addcdiv", input, tensor1, tensor2)
    _check_value(value, input, tensor1, tensor2)
    if dtypes.result_type(input, tensor1, tensor2).kind not in ("float", "complex"):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division of tensor1 and tensor2. "
            "Convert one of them first: tensor1.float()."
        )
    return _addcdiv(input, tensor1, tensor2, *as_operands(value))


@operator("nan_to_num", inplace=True, out=True)
def nan_to_num(input, nan=None, posinf=None, neginf=None):
    """input with NaN and infinities replaced (by 0 and the dtype's extremes unless given)."""
    if input.dtype.is_complex:
        parts = TABLE["view_as_real"].call(input)
        return TABLE["view_as_complex"].call(nan_to_num(TABLE["contiguous"].call(parts), nan, posinf, neginf))
    if not input.dtype.is_floating_point:
        return TABLE["clone"].call(input)
    info = dtypes.finfo(input.dtype)
    return _nan_to_num(input, 0.0 if nan is None else float(nan), info.max if posinf is None else float(posinf), info.min if neginf is None else float(neginf))


@operator("logit", inplace=True, out=True)
def logit(input, eps=None):
    """log(x / (1 - x)); with eps, x is first limited to [eps, 1 - eps]. An eps below 0 limits nothing, as in PyTorch."""
    if eps is not None and not isinstance(eps, (Real, Tensor)):
        raise TypeError(f"logit(): argument 'eps' (position 2) must be float, not {type(eps).__name__}")
    return _logit(input) if eps is None or eps < 0 else _logit_within(input, *as_operands(eps))
