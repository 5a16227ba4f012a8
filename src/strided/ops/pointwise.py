"""The pointwise operators: one expression each. Kernels, derivatives, costs and in-place forms follow from it (elementwise.py).

Holds arithmetic, comparisons, logic, and the functions of one element. What needs an option (alpha, rounding_mode, bounds) is a plain function over
these at the end. Activations are in activation.py, special functions in special.py and gamma.py.
"""
from __future__ import annotations

import math

from .. import dtypes
from ..dispatch import CONTEXT, HOOKS, hooked_call
from ..kernels import expr as E
from ..kernels.recipes import KEEP
from ..layout import broadcast_shapes
from ..tensor import Tensor
from . import signatures
from .elementwise import Pointwise, pointwise, warn_of_overlap, with_flops
from .table import TABLE, Entry, operator

# ---- arithmetic -----------------------------------------------------------------------------------------------------------

_add = pointwise("add", lambda x, y: x + y)
_sub = pointwise("sub", lambda x, y: x - y)
_mul = pointwise("mul", lambda x, y: x * y, aliases=("multiply",))
_true_div = pointwise("true_divide", lambda x, y: x / y, kind="float", node="Div")
_floor_divide = pointwise("floor_divide", lambda x, y: x // y, node="FloorDivide", gradient=(None, None))
_trunc_divide = Pointwise("div_trunc", lambda x, y: E.truncdiv(x, y), 2, node="Div")
_trunc_divide.gradient = lambda i: None
_remainder = pointwise("remainder", lambda x, y: x % y)
_fmod = pointwise("fmod", lambda x, y: E.fmod(x, y))


class _Power(Pointwise):
    """Powers: of a complex tensor, the usual numbers have twins of their own, which multiply and take roots instead of going through logarithms."""

    EXPONENTS = frozenset((0, 1, 2, 3, -1, -2, 0.5, -0.5))
    exponent: float | None = None

    def for_operands(self, operands):
        power = operands[1]
        if type(power) not in (int, float) or power not in self.EXPONENTS or not isinstance(operands[0], Tensor) or not operands[0].dtype.is_complex:
            return super().for_operands(operands)
        if self.exponent == power:
            return self
        found = self.twins.get(power)
        if found is None:
            found = self.twin((True, False)).copy()
            found.exponent, found.expr = power, E.trace(lambda x, y: x**power if power else E.pair(1.0, 0.0), 2)
            found.flops = E.flops(found._in_parts())
            self.twins[power] = found
        return found

    def _lends(self, kinds):
        return kinds[1] not in (int, float)


_pow = pointwise("pow", lambda x, y: x**y, cls=_Power)
_add_scaled = Pointwise("add", lambda x, y, a: x + y * a, 3, node="Add")
_sub_scaled = Pointwise("sub", lambda x, y, a: x - y * a, 3, node="Sub")
pointwise("atan2", lambda y, x: E.atan2(y, x), kind="float", aliases=("arctan2",))
pointwise("hypot", lambda x, y: E.hypot(x, y))
_heaviside = pointwise("heaviside", lambda x, v: E.where(x == 0, v, E.where(x > 0, 1, 0)))
pointwise("copysign", lambda x, y: E.copysign(x, y), kind="float")
pointwise("maximum", lambda x, y: E.maximum(x, y), inplace=False)
pointwise("minimum", lambda x, y: E.minimum(x, y), inplace=False)
pointwise("fmax", lambda x, y: E.fmax(x, y), inplace=False)
pointwise("fmin", lambda x, y: E.fmin(x, y), inplace=False)
pointwise("neg", lambda x: -x, aliases=("negative",))
pointwise("abs", lambda x: abs(x), aliases=("absolute",))
pointwise("sign", lambda x: E.sign(x))
_square = pointwise("square", lambda x: x * x, node="Pow")
_square.common_dtype = lambda operands: dtypes.int64 if operands[0].dtype is dtypes.bool_ else operands[0].dtype  # type: ignore[method-assign]
pointwise("reciprocal", lambda x: E.reciprocal(x), kind="float", gradient=(lambda g, x, y: -g * y * y,))
pointwise("positive", lambda x: x, inplace=False)

# ---- functions of one element -------------------------------------------------------------------------------------------------

_ALIASES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}
_NODES = {"log1p": "Log1P", "expm1": "Expm1"}
_rounded_square = lambda x: E.fma(x, x, -0.0)  # x*x as a number of its own: fused into 1 - x*x it would be more exact than PyTorch's near 1
_GRADIENTS = {
    "asin": (lambda g, x, y: g * E.rsqrt(1 - _rounded_square(x)),),
    "acos": (lambda g, x, y: -g * E.rsqrt(1 - _rounded_square(x)),),
    "atanh": (lambda g, x, y: g / (1 - _rounded_square(x)),),
}
for _name in "exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh asinh acosh atanh erf erfc".split():
    _alias = (_ALIASES[_name],) if _name in _ALIASES else ()
    pointwise(_name, eval(f"lambda x: E.{_name}(x)", {"E": E}), kind="float", aliases=_alias, node=_NODES.get(_name, ""), gradient=_GRADIENTS.get(_name))
pointwise("erfinv", lambda x: E.erfinv(x), kind="float")
pointwise("sqrt", lambda x: E.sqrt(x), kind="float", gradient=(lambda g, x, y: g / (2 * y),))
pointwise("rsqrt", lambda x: E.rsqrt(x), kind="float", gradient=(lambda g, x, y: -0.5 * g * (y * y * y),))
pointwise("tanh", lambda x: E.tanh(x), kind="float", gradient=(lambda g, x, y: g * (1 - y * y),))
pointwise("sigmoid", lambda x: E.sigmoid(x), kind="float", aliases=("expit",), gradient=(lambda g, x, y: g * ((1 - y) * y),))
pointwise("floor", lambda x: E.floor(x))
pointwise("ceil", lambda x: E.ceil(x))
pointwise("trunc", lambda x: E.trunc(x), aliases=("fix",))
_round = pointwise("round", lambda x: E.round(x))
_round_places = Pointwise("round", lambda x, t: E.round(x * t) / t, 2, node="Round")  # t = 10^decimals
_round_tens = Pointwise("round", lambda x, t: E.round(x / t) * t, 2, node="Round")  # t = 10^-decimals
pointwise("frac", lambda x: x - E.trunc(x))
pointwise("deg2rad", lambda x: x * (math.pi / 180), kind="float")
pointwise("rad2deg", lambda x: x * (180 / math.pi), kind="float")
pointwise("sinc", lambda x: E.where(x == 0, 1.0, E.sin(x * math.pi) / (E.where(x == 0, 1.0, x) * math.pi)), kind="float")


def _log_of_sum(x, y, first):
    """log(exp(x) + exp(y)) of complex numbers, from the one with the larger real part (`first`: x)."""
    larger = E.where(first, x, y)
    nothing = E.node("eq", E.real(larger), -math.inf)  # the sum of two zeros: -inf less -inf would be NaN
    return E.where(nothing, larger, larger + E.log1p(E.exp(E.where(first, y - x, x - y))))


pointwise(
    "logaddexp",
    lambda x, y: E.maximum(x, y) + E.where(x == y, math.log(2.0), E.log1p(E.exp(-abs(x - y)))),  # x == y: infinities would leave inf - inf
    kind="float",
    inplace=False,
    gradient=(lambda g, x, y, r: g * E.exp(x - r), lambda g, x, y, r: g * E.exp(y - r)),
    complex_function=lambda x, y: _log_of_sum(x, y, E.node("ge", E.real(x), E.real(y))),
)
pointwise(
    "logaddexp2",
    lambda x, y: E.maximum(x, y) + E.where(x == y, 1.0, E.log2(1 + E.exp2(-abs(x - y)))),
    kind="float",
    inplace=False,
    gradient=(lambda g, x, y, r: g * E.exp2(x - r), lambda g, x, y, r: g * E.exp2(y - r)),
)
pointwise(
    "xlogy",
    lambda x, y: E.where(E.isnan(y), y, E.where(x == 0, 0.0, x * E.log(y))),
    kind="float",
    gradient=(lambda g, x, y, r: g * E.where((x == 0) & (y <= 0), 0.0, E.log(y)), lambda g, x, y, r: g * x / y),
)
_nan_to_num = Pointwise("nan_to_num", lambda x, n, p, m: E.where(E.isnan(x), n, E.where(E.isinf(x), E.where(x > 0, p, m), x)), 4, node="NanToNum")
_nan_to_num.gradient = lambda i: (lambda g, x, n, p, m, y: E.where(E.isnan(x) | E.isinf(x), 0.0, g)) if i == 0 else None
_logit = Pointwise("logit", lambda x: E.log(x / (1 - x)), 1, kind="float", node="Logit")
pointwise("relu", lambda x: E.relu(x), gradient=(lambda g, x, y: E.where(y <= 0, 0.0, g),))

# ---- comparisons and logic ----------------------------------------------------------------------------------------------------------

pointwise("eq", lambda x, y: x == y, kind="compare")
pointwise("ne", lambda x, y: x != y, kind="compare", aliases=("not_equal",))
pointwise("lt", lambda x, y: x < y, kind="compare", aliases=("less",))
pointwise("le", lambda x, y: x <= y, kind="compare", aliases=("less_equal",))
pointwise("gt", lambda x, y: x > y, kind="compare", aliases=("greater",))
pointwise("ge", lambda x, y: x >= y, kind="compare", aliases=("greater_equal",))
pointwise("isnan", lambda x: E.isnan(x), kind="compare", inplace=False)
pointwise("isinf", lambda x: E.isinf(x), kind="compare", inplace=False)
pointwise("isfinite", lambda x: E.isfinite(x), kind="compare", inplace=False)
pointwise("isposinf", lambda x: E.isinf(x) & (x > 0), kind="compare", inplace=False)
pointwise("isneginf", lambda x: E.isinf(x) & (x < 0), kind="compare", inplace=False)
pointwise("signbit", lambda x: E.signbit(x), kind="compare", inplace=False)
pointwise("logical_and", lambda x, y: E.logical_and(x, y), kind="bool")
pointwise("logical_or", lambda x, y: E.logical_or(x, y), kind="bool")
pointwise("logical_xor", lambda x, y: E.logical_xor(x, y), kind="bool")
pointwise("logical_not", lambda x: E.logical_not(x), kind="bool")
pointwise("bitwise_and", lambda x, y: x & y)
pointwise("bitwise_or", lambda x, y: x | y)
pointwise("bitwise_xor", lambda x, y: x ^ y)
pointwise("bitwise_not", lambda x: ~x)
pointwise("bitwise_left_shift", lambda x, y: x << y)
pointwise("bitwise_right_shift", lambda x, y: x >> y)

_where = Pointwise("where", lambda c, x, y: E.where(c, x, y), 3, node="Where")
_where.gradient = lambda i: (None, lambda g, c, x, y, r: E.where(c, g, 0.0), lambda g, c, x, y, r: E.where(c, 0.0, g))[i]
_masked_fill = Pointwise("masked_fill", lambda x, m, v: E.where(m, v, x), 3, node="MaskedFill")
_masked_fill.gradient = lambda i: (lambda g, x, m, v, r: E.where(m, 0.0, g), None, lambda g, x, m, v, r: E.where(m, g, 0.0))[i]

# ---- clamps, blends ------------------------------------------------------------------------------------------------------------------

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
        result = op(*_as_operands(input, other), alpha)
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


def _as_operands(*operands):
    from .elementwise import _number

    return tuple(_number(o) for o in operands)


def _write(name, out, result):
    from . import table

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
        return (_round_places if decimals > 0 else _round_tens), float(10 ** abs(decimals))

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
    operands = _as_operands(input, exponent)
    wide = dtypes.complex128 if dtypes.result_type(*operands).is_complex else dtypes.float64
    number = complex if wide.is_complex else float
    return TABLE["pow"].call(*[TABLE["to"].call(o, wide) if isinstance(o, Tensor) else number(o) for o in operands])


@operator("float_power_", function=False)
def float_power_(input, exponent):
    """In-place form of `float_power`: for float64 tensors."""
    (exponent,) = _as_operands(exponent)
    wide = dtypes.complex128 if dtypes.result_type(input, exponent).is_complex else dtypes.float64
    if input.dtype is not wide:
        raise RuntimeError(f"the base given to float_power_ has dtype {input.dtype.scalar_name} but the operation's result requires dtype {wide.scalar_name}")
    return _pow.into(input, TABLE["to"].call(exponent, wide) if isinstance(exponent, Tensor) else exponent if wide.is_complex else float(exponent))


@operator("div", aliases=("divide",), flops=with_flops(_true_div), out=True)
def div(input, other, *, rounding_mode=None):
    """input / other, elementwise with broadcasting. rounding_mode: None (true division), "trunc" or "floor"."""
    if rounding_mode is None:
        return _true_div(*_as_operands(input, other))
    if rounding_mode == "floor":
        _check_zero(input, other)
        return _floor_divide(*_as_operands(input, other))
    if rounding_mode == "trunc":
        _check_zero(input, other)
        if _rounds_first(input, other):
            return TABLE["trunc"].call(_true_div(*_as_operands(input, other)))
        return _trunc_divide(*_as_operands(input, other))
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


@operator("div_", function=False, aliases=("divide_",), flops=with_flops(_true_div))
def div_(input, other, *, rounding_mode=None):
    """In-place form of `div`."""
    if rounding_mode is None:
        return _true_div.into(input, other)
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    _check_zero(input, other)
    if rounding_mode == "trunc" and _rounds_first(input, other):
        return TABLE["trunc_"].call(_true_div.into(input, other))
    return (_floor_divide if rounding_mode == "floor" else _trunc_divide).into(input, other)


def _rounds_first(input, other):
    """16-bit floats: PyTorch rounds the quotient to the dtype before it cuts off what follows the point."""
    common = dtypes.result_type(input, other)
    return common.is_floating_point and common.itemsize == 2


def _check_zero(input, other):
    """Integer division by zero is an error in PyTorch, where anything is divided; floats give inf or nan."""
    if dtypes.result_type(input, other).kind in ("int", "uint", "bool"):
        zero = other == 0 if not isinstance(other, Tensor) else not other.is_meta and bool(TABLE["any"].call(TABLE["eq"].call(other, 0)))
        if zero and math.prod(broadcast_shapes(*[o.shape for o in (input, other) if isinstance(o, Tensor)])):
            raise RuntimeError("ZeroDivisionError")


def _guard_zero(name):
    """Puts the zero check before an operator that divides integers."""
    entry, inner = TABLE[name], TABLE[name + "_"]
    fast, fast_ = entry.call, inner.call

    def call(input, other, *, out=None):
        if not isinstance(input, Tensor):
            signatures.check(name, (input, other))
        _check_zero(input, other)
        return fast(input, other) if out is None else fast(input, other, out=out)

    def inplace(input, other):
        _check_zero(input, other)
        return fast_(input, other)

    call.__name__ = call.__qualname__ = name
    inplace.__name__ = inplace.__qualname__ = name + "_"
    entry.call, inner.call = call, inplace
    entry.inplace = inplace


for _name in ("floor_divide", "remainder", "fmod"):
    _guard_zero(_name)


def _guard_power():
    """Puts PyTorch's refusal of negative integer powers of integers before `pow`, and gives the usual exponents of floats kernels without a power."""
    entry, inner = TABLE["pow"], TABLE["pow_"]
    fast, fast_ = entry.call, inner.call
    usual = {2: TABLE["square"].call}
    for exponent, function in ((3, lambda x: x * x * x), (-1, E.reciprocal), (-2, lambda x: E.reciprocal(x * x)), (0.5, E.sqrt), (-0.5, E.rsqrt)):
        usual[exponent] = Pointwise("pow", function, 1, node="Pow")

    def check(input, exponent):
        if type(exponent) is int and exponent < 0 and isinstance(input, Tensor) and input.spec.dtype.kind in ("int", "uint"):
            raise RuntimeError("Integers to negative integer powers are not allowed.")

    def call(input, exponent, *, out=None):
        if (type(exponent) is int or type(exponent) is float) and exponent in usual and out is None and not HOOKS.active:
            if isinstance(input, Tensor) and input.spec.dtype.is_floating_point:
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


@operator("where", method=False, out="late", flops=lambda args, kwargs, result: 0)
def where(condition, input=None, other=None):
    """Elements of `input` where `condition` holds, of `other` elsewhere; all broadcast. With a condition alone: the indices of its true elements, one tensor a dimension."""
    if input is None and other is None:
        return TABLE["nonzero"].call(condition, as_tuple=True)
    if not isinstance(condition, Tensor):
        raise TypeError(f"where(): argument 'condition' (position 1) must be Tensor, not {type(condition).__name__}")
    if condition.dtype not in (dtypes.bool_, dtypes.uint8):
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype.scalar_name}")
    return _choose(condition, *_as_operands(input, other))


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
        got = mask.dtype.scalar_name if isinstance(mask, Tensor) else type(mask).__name__
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {got}")
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
    return number_for(input.dtype, *_as_operands(value))


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
        return _clamp_max(input, *_as_operands(max))
    if max is None:
        return _clamp_min(input, *_as_operands(min))
    return _clamp(input, *_as_operands(min, max))


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
    return _at_least(input, *_as_operands(min))


@operator("clamp_max", inplace=True, out=True)
def clamp_max(input, max):
    """input, lowered to at most `max`."""
    return _at_most(input, *_as_operands(max))


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
    return _lerp(input, end, *_as_operands(weight))


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
    return _addcmul(input, tensor1, tensor2, *_as_operands(value))


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
    return _addcdiv(input, tensor1, tensor2, *_as_operands(value))


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
    """log(x / (1 - x)); with eps, x is first limited to [eps, 1 - eps]."""
    return _logit(input if eps is None else clamp(input, eps, 1 - eps))


# ---- Python's operators ---------------------------------------------------------------------------------------------------------------------


def _dunder(name: str, target, reflected=None):
    def forward(self, other):
        try:
            return target(self, other)
        except TypeError:
            if _computable(other):
                raise
            return NotImplemented

    setattr(Tensor, f"__{name}__", forward)
    if reflected is not None:

        def backward(self, other):
            if not _computable(other):
                return NotImplemented
            return reflected(other, self)

        setattr(Tensor, f"__r{name}__", backward)


def _computable(value) -> bool:
    return isinstance(value, Tensor | bool | int | float | complex) or getattr(value, "ndim", None) == 0 or hasattr(value, "__array_interface__")


def _install_dunders() -> None:
    call = {name: entry.call for name, entry in TABLE.items()}
    for name, op, fast in (("add", "add", Tensor.__add__), ("sub", "sub", Tensor.__sub__), ("mul", "mul", call["mul"]), ("truediv", "true_divide", call["true_divide"])):
        _fast_dunder(name, fast, call[op])
        setattr(Tensor, f"__i{name}__", _inplace_dunder(call["div_" if name == "truediv" else op + "_"]))
    plain = "floordiv:floor_divide mod:remainder pow:pow and:bitwise_and or:bitwise_or xor:bitwise_xor lshift:bitwise_left_shift rshift:bitwise_right_shift"
    for name, op in (pair.split(":") for pair in plain.split()):
        _dunder(name, call[op], call[op])
        setattr(Tensor, f"__i{name}__", _inplace_dunder(call[op + "_"]))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        _dunder(name, call[name])
    Tensor.__hash__ = object.__hash__  # type: ignore[method-assign]
    for dunder, op in (("__neg__", "neg"), ("__abs__", "abs"), ("__invert__", "bitwise_not"), ("__pos__", "positive")):
        setattr(Tensor, dunder, lambda self, f=call[op]: f(self))


def _fast_dunder(name, fast, swapped):
    """`a + b` goes straight to the eager function; only what it does not know is looked at again."""

    def backward(self, other):
        if not _computable(other):
            return NotImplemented
        return swapped(other, self)

    # The eager function itself is the method: one Python call less. It raises TypeError for what it cannot take, where Python would try the
    # other operand's reflected method.
    setattr(Tensor, f"__{name}__", fast)
    setattr(Tensor, f"__r{name}__", backward)


def _inplace_dunder(call):
    def inplace(self, other):
        return call(self, other)

    return inplace


_install_dunders()


def _divide_number(self, other):
    """`number / tensor` is the tensor's reciprocal times the number, as PyTorch rounds it."""
    return TABLE["mul"].call(TABLE["reciprocal"].call(self), other) if _computable(other) else NotImplemented


Tensor.__rtruediv__ = Tensor.__rdiv__ = _divide_number  # type: ignore[attr-defined, method-assign]
