"""The pointwise operators: one expression each. Kernels, derivatives, costs and in-place forms follow from it (elementwise.py).

Holds arithmetic, comparisons, logic, and the functions of one element. What has an option (alpha, rounding_mode) is in pointwise_options.py, choices, bounds
and blends are in choices.py, Python's + - * … in python_operators.py. Activations are in activation.py, special functions in special.py and gamma.py.
"""
from __future__ import annotations

import math

from .. import dtypes
from ..kernels import expr as E
from ..tensor import Tensor
from .eager import pointwise
from .elementwise import Pointwise

# ---- arithmetic -----------------------------------------------------------------------------------------------------------

pointwise("add", lambda x, y: x + y)
pointwise("sub", lambda x, y: x - y)
pointwise("mul", lambda x, y: x * y, aliases=("multiply",))
pointwise("true_divide", lambda x, y: x / y, kind="float", node="Div", saves_result=False)
pointwise("floor_divide", lambda x, y: x // y, node="FloorDivide", gradient=(None, None))
pointwise("remainder", lambda x, y: x % y)
pointwise("fmod", lambda x, y: E.fmod(x, y))


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


pointwise("pow", lambda x, y: x**y, cls=_Power)
pointwise("atan2", lambda y, x: E.atan2(y, x), kind="float", aliases=("arctan2",))
pointwise("hypot", lambda x, y: E.hypot(x, y))
pointwise("heaviside", lambda x, v: E.where(x == 0, v, E.where(x > 0, 1, 0)))
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
pointwise("erfinv", lambda x: E.erfinv(x), kind="float", saves_result=False)
pointwise("sqrt", lambda x: E.sqrt(x), kind="float", gradient=(lambda g, x, y: g / (2 * y),))
pointwise("rsqrt", lambda x: E.rsqrt(x), kind="float", gradient=(lambda g, x, y: -0.5 * g * (y * y * y),))
pointwise("tanh", lambda x: E.tanh(x), kind="float", gradient=(lambda g, x, y: g * (1 - y * y),))
pointwise("sigmoid", lambda x: E.sigmoid(x), kind="float", aliases=("expit",), gradient=(lambda g, x, y: g * ((1 - y) * y),))
pointwise("floor", lambda x: E.floor(x))
pointwise("ceil", lambda x: E.ceil(x))
pointwise("trunc", lambda x: E.trunc(x), aliases=("fix",))
pointwise("round", lambda x: E.round(x))
pointwise("frac", lambda x: x - E.trunc(x))
pointwise("deg2rad", lambda x: x * (math.pi / 180), kind="float")
pointwise("rad2deg", lambda x: x * (180 / math.pi), kind="float")


def _sinc_gradient(g, x, y):
    """(cos u - sin u / u) / x with u = pi x, whose terms cancel near 0: there the series of sin u / u, differentiated."""
    near = E.abs(x) < 0.16
    u = E.where(near, x, 0.0) * math.pi
    series = 0.0
    for n in range(7, 0, -1):  # -u/3 + u^3/30 - u^5/840 ..., exact to float64 for |u| <= 0.5
        series = series * u * u + (-1) ** n * 2 * n / math.factorial(2 * n + 1)
    far = (E.cos(x * math.pi) - y) / E.where(near, 1.0, x)
    return g * E.where(near, series * u * math.pi, far)


pointwise("sinc", lambda x: E.where(x == 0, 1.0, E.sin(x * math.pi) / (E.where(x == 0, 1.0, x) * math.pi)), kind="float", gradient=(_sinc_gradient,), saves_result=False)


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
    gradient=(lambda g, x, y, r: g / (1 + E.exp(y - x)), lambda g, x, y, r: g / (1 + E.exp(x - y))),
    complex_function=lambda x, y: _log_of_sum(x, y, E.node("ge", E.real(x), E.real(y))),
)
pointwise(
    "logaddexp2",
    lambda x, y: E.maximum(x, y) + E.where(x == y, 1.0, E.log2(1 + E.exp2(-abs(x - y)))),
    kind="float",
    inplace=False,
    gradient=(lambda g, x, y, r: g / (1 + E.exp2(y - x)), lambda g, x, y, r: g / (1 + E.exp2(x - y))),
)
pointwise(
    "xlogy",
    lambda x, y: E.where(E.isnan(y), y, E.where(x == 0, 0.0, x * E.log(y))),
    kind="float",
    gradient=(lambda g, x, y, r: g * E.where((x == 0) & (y <= 0), 0.0, E.log(y)), lambda g, x, y, r: g * x / y),
)
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

