"""Pointwise operators with an option: add and sub with alpha, div with a rounding mode, round to decimals, powers, and what is asked of integers before they are
divided. Without the option each is the plain operator of pointwise.py, as quick as that.
"""
from __future__ import annotations

import math

from .. import dtypes
from ..dispatch import CONTEXT, HOOKS, hooked_call
from ..kernels import expr as E
from ..kernels.recipes import KEEP
from ..layout import broadcast_shapes
from ..tensor import Tensor
from . import pointwise, signatures, table  # noqa: F401 (pointwise registers what has its options here)
from .elementwise import Pointwise, number, with_flops
from .table import TABLE, Entry, operator

_true_div, _floor_divide, _pow = (TABLE[name].call.pointwise for name in ("true_divide", "floor_divide", "pow"))
_trunc_divide = Pointwise("div_trunc", lambda x, y: E.truncdiv(x, y), 2, node="Div")
_trunc_divide.gradient = lambda i: None
_add_scaled = Pointwise("add", lambda x, y, a: x + y * a, 3, node="Add")
_sub_scaled = Pointwise("sub", lambda x, y, a: x - y * a, 3, node="Sub")
_round_places = Pointwise("round", lambda x, t: E.round(x * t) / t, 2, node="Round")  # t = 10^decimals
_round_tens = Pointwise("round", lambda x, t: E.round(x / t) * t, 2, node="Round")  # t = 10^-decimals


def _scaled(name: str, op: Pointwise):
    """add and sub: `alpha` multiplies the second operand. Without it the call is the plain operator's."""
    entry = TABLE[name]
    fast, fast_ = entry.call, entry.inplace
    op.entry = Entry(name, pointwise=True, flops=with_flops(op))
    into = Entry(name + "_", pointwise=True, writes=True, inplace_form=True, flops=with_flops(op))

    def call(input, other, *, alpha=1, out=None):
        if alpha is not _ONE:
            other, alpha = _unread(other, alpha)
        if alpha == 1:
            return fast(input, other) if out is None else fast(input, other, out=out)
        alpha = _check_alpha(input, other, alpha)
        result = op(*as_operands(input, other), alpha)
        return result if out is None else _write(name, out, result)

    def inplace(input, other, *, alpha=1):
        if alpha is not _ONE:
            other, alpha = _unread(other, alpha)
        if alpha == 1:
            return fast_(input, other)
        alpha = _check_alpha(input, other, alpha)
        if HOOKS.active and not CONTEXT.depth:
            return hooked_call(into, op.into, (input, other, alpha), {})
        return op.into(input, other, alpha)

    return fast, call, inplace


_ONE = 1


def _unread(other, alpha):
    """other and alpha; where a recording must not read alpha as a number, other is multiplied by it."""
    return (other * alpha, 1) if KEEP[0] and isinstance(alpha, Tensor) else (other, alpha)


def _check_alpha(input, other, alpha):
    common = dtypes.result_type(input, other)
    if isinstance(alpha, complex) and not common.is_complex:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    if isinstance(alpha, float) and not common.is_floating_point and not common.is_complex:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, bool) and common is not dtypes.bool_:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    return bool(alpha) if common is dtypes.bool_ else alpha


def as_operands(*operands):
    """Operands for a `Pointwise`: tensors as they are, whatever acts as a number as one."""
    return tuple(number(o) for o in operands)


def _write(name, out, result):
    return table.write_out(name, out, lambda: result, (), {})


for _name, _op in (("add", _add_scaled), ("sub", _sub_scaled)):
    _fast, _call, _in = _scaled(_name, _op)
    _entry = TABLE[_name]
    _call.__name__ = _call.__qualname__ = _name
    _in.__name__ = _in.__qualname__ = _name + "_"
    _call.pointwise = _fast.pointwise  # type: ignore[attr-defined]
    TABLE[_name + "_"].call = _entry.inplace = _in
    setattr(Tensor, f"__{_name}__", _fast)  # the operator takes no alpha and need not look for one
    _entry.call = _call
TABLE["sub"].aliases = ("subtract",)
TABLE["sub_"].aliases = ("subtract_",)


def _with_decimals() -> None:
    """round(decimals=n) rounds to n decimal places (tens, hundreds, … for n < 0); without it the call is the plain operator's."""
    entry = TABLE["round"]
    fast, fast_ = entry.call, entry.inplace

    def choose(input, decimals):
        if not input.is_floating_point():
            raise NotImplementedError(f"\"round_cpu\" not implemented for '{input.dtype.scalar_name}': decimals are for floating-point tensors, convert with x.float()")
        return (_round_places if decimals > 0 else _round_tens), float(10 ** abs(decimals)) if abs(decimals) <= 308 else math.inf  # beyond float64, as a power of floats

    def round(input, *, decimals=0, out=None):
        if decimals:
            op, scale = choose(input, decimals)
            return op(input, scale) if out is None else _write("round", out, op(input, scale))
        return fast(input) if out is None else fast(input, out=out)

    def round_(input, *, decimals=0):
        if decimals:
            op, scale = choose(input, decimals)
            return op.into(input, scale)
        return fast_(input)

    round.pointwise = fast.pointwise  # type: ignore[attr-defined]
    entry.call, entry.inplace, TABLE["round_"].call = round, round_, round_


_with_decimals()


def _same_dtype(name: str) -> None:
    """heaviside takes operands of one dtype only."""
    entry, inner = TABLE[name], TABLE[name + "_"]

    def guarded(function):
        def call(input, values, **kwargs):
            if isinstance(input, Tensor) and isinstance(values, Tensor) and input.dtype is not values.dtype:
                raise RuntimeError(f"{name} is not yet implemented for tensors with different dtypes.")
            return function(input, values, **kwargs)

        call.__name__ = call.__qualname__ = function.__name__
        return call

    entry.call = guarded(entry.call)
    inner.call = entry.inplace = guarded(inner.call)


_same_dtype("heaviside")


@operator("float_power", out=True)
def float_power(input, exponent):
    """input ** exponent, computed in float64 (complex128 where one of them is complex); either may be a number."""
    operands = as_operands(input, exponent)
    wide = dtypes.complex128 if dtypes.result_type(*operands).is_complex else dtypes.float64
    convert = complex if wide.is_complex else float
    return TABLE["pow"].call(*[TABLE["to"].call(o, wide) if isinstance(o, Tensor) else convert(o) for o in operands])


@operator("float_power_", function=False)
def float_power_(input, exponent):
    """In-place form of `float_power`: for float64 tensors."""
    (exponent,) = as_operands(exponent)
    wide = dtypes.complex128 if dtypes.result_type(input, exponent).is_complex else dtypes.float64
    if input.dtype is not wide:
        raise RuntimeError(f"the base given to float_power_ has dtype {input.dtype.scalar_name} but the operation's result requires dtype {wide.scalar_name}")
    return _pow.into(input, TABLE["to"].call(exponent, wide) if isinstance(exponent, Tensor) else exponent if wide.is_complex else float(exponent))


@operator("div", aliases=("divide",), flops=with_flops(_true_div), out=True)
def div(input, other, *, rounding_mode=None):
    """input / other, elementwise with broadcasting. rounding_mode: None (true division), "trunc" or "floor"."""
    if rounding_mode is None:
        return _true_div(*as_operands(input, other))
    if rounding_mode == "floor":
        _check_division("div_floor", input, other)
        return _floor_divide(*as_operands(input, other))
    if rounding_mode == "trunc":
        _check_division("div_trunc", input, other)
        if _rounds_first(input, other):
            return TABLE["trunc"].call(_true_div(*as_operands(input, other)))
        return _trunc_divide(*as_operands(input, other))
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


@operator("div_", function=False, aliases=("divide_",), flops=with_flops(_true_div))
def div_(input, other, *, rounding_mode=None):
    """In-place form of `div`."""
    if rounding_mode is None:
        return _true_div.into(input, other)
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    _check_division(f"div_{rounding_mode}", input, other)
    if rounding_mode == "trunc" and _rounds_first(input, other):
        return TABLE["trunc_"].call(_true_div.into(input, other))
    return (_floor_divide if rounding_mode == "floor" else _trunc_divide).into(input, other)


def _rounds_first(input, other):
    """16-bit floats: PyTorch rounds the quotient to the dtype before it cuts off what follows the point."""
    common = dtypes.result_type(input, other)
    return common.is_floating_point and common.itemsize == 2


def _check_division(kernel, input, other):
    """Integer division by zero is an error in PyTorch, where anything is divided; floats give inf or nan. Bools are not divided with remainders."""
    common = dtypes.result_type(input, other)
    if common is dtypes.bool_:
        raise NotImplementedError(f"\"{kernel}_cpu\" not implemented for 'Bool'\n  Convert first, as in x.int().")
    if common.kind in ("int", "uint"):
        zero = other == 0 if not isinstance(other, Tensor) else not other.is_meta and bool(TABLE["any"].call(TABLE["eq"].call(other, 0)))
        if zero and math.prod(broadcast_shapes(*[o.shape for o in (input, other) if isinstance(o, Tensor)])):
            raise RuntimeError("ZeroDivisionError")


def _guard_zero(name):
    """Puts the zero check before an operator that divides integers."""
    entry, inner = TABLE[name], TABLE[name + "_"]
    fast, fast_ = entry.call, inner.call
    kernel = "div_floor" if name == "floor_divide" else name

    def call(input, other, *, out=None):
        if not isinstance(input, Tensor):
            signatures.check(name, (input, other))
        _check_division(kernel, input, other)
        return fast(input, other) if out is None else fast(input, other, out=out)

    def inplace(input, other):
        _check_division(kernel, input, other)
        return fast_(input, other)

    call.__name__ = call.__qualname__ = name
    inplace.__name__ = inplace.__qualname__ = name + "_"
    entry.call, inner.call = call, inplace
    entry.inplace = inplace


for _name in ("floor_divide", "remainder", "fmod"):
    _guard_zero(_name)


@operator("positive", view=True)
def positive(input):
    """The input itself, as +x is. Raises RuntimeError for bool."""
    signatures.check_bool("positive", (input,))
    return input


def _guard_power():
    """Puts PyTorch's refusal of negative integer powers of integers before `pow`, and gives the usual exponents of floats kernels without a power."""
    entry, inner = TABLE["pow"], TABLE["pow_"]
    fast, fast_ = entry.call, inner.call
    usual = {2: TABLE["square"].call}
    for exponent, function in ((3, lambda x: x * x * x), (-1, E.reciprocal), (-2, lambda x: E.reciprocal(x * x)), (0.5, E.sqrt), (-0.5, E.rsqrt)):
        usual[exponent] = power = Pointwise("pow", function, 1, node="Pow")
        power.saves_result = False

    def check(input, exponent):
        if type(exponent) is int and exponent < 0 and isinstance(input, Tensor) and input.spec.dtype.kind in ("int", "uint", "bool"):
            raise RuntimeError("Integers to negative integer powers are not allowed.")

    def call(input, exponent, *, out=None):
        if (type(exponent) is int or type(exponent) is float) and exponent in usual and out is None:
            if isinstance(input, Tensor) and input.spec.dtype.is_floating_point:
                if HOOKS.active and not CONTEXT.depth:
                    return hooked_call(entry, call, (input, exponent), {})
                return usual[exponent](input)
        check(input, exponent)
        return fast(input, exponent) if out is None else fast(input, exponent, out=out)

    def inplace(input, exponent):
        check(input, exponent)
        return fast_(input, exponent)

    call.__name__ = call.__qualname__ = "pow"
    inplace.__name__ = inplace.__qualname__ = "pow_"
    call.__doc__, call.pointwise = entry.doc, fast.pointwise  # type: ignore[attr-defined]
    entry.call, inner.call, entry.inplace = call, inplace, inplace


_guard_power()


@operator("rsub")
def rsub(input, other, *, alpha=1):
    """other - alpha * input."""
    return TABLE["sub"].call(other, input, alpha=alpha)
