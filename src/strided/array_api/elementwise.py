"""Elementwise functions: torch's operators under the standard's names, with its promotion (dimensions play no part) and its domains."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..tensor import Tensor
from .calls import call
from .info import of

Number = bool | int | float | complex
Operand = Tensor | Number

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "copysign", "cos", "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater",
    "greater_equal", "hypot", "imag", "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and", "logical_not",
    "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative", "nextafter", "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round",
    "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc",
]  # fmt: skip


def _unary(name: str, operator: str | None = None, whole: bool = False) -> Any:
    """One array in. whole: integers are their own result."""
    target = operator or name

    def function(x: Tensor, /) -> Tensor:
        if whole and not x.dtype.is_floating_point and not x.dtype.is_complex:
            return call("clone", x)
        return call(target, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{target}` of every element."
    return function


def pair(x1: Operand, x2: Operand) -> tuple[Any, Any]:
    """Both operands in the dtype they promote to."""
    dtype = of(x1, x2)
    device = (x1 if isinstance(x1, Tensor) else x2).device  # type: ignore[union-attr]
    made = [x.to(dtype) if isinstance(x, Tensor) else call("full", (), x, dtype=dtype, device=device) for x in (x1, x2)]
    return made[0], made[1]


def _binary(name: str, operator: str | None = None) -> Any:
    target = operator or name

    def function(x1: Operand, x2: Operand, /) -> Tensor:
        return call(target, *pair(x1, x2))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{target}` of every pair of elements, broadcast."
    return function


acos = _unary("acos")
acosh = _unary("acosh")
asin = _unary("asin")
asinh = _unary("asinh")
atan = _unary("atan")
atanh = _unary("atanh")
cos = _unary("cos")
cosh = _unary("cosh")
exp = _unary("exp")
expm1 = _unary("expm1")
isfinite = _unary("isfinite")
isinf = _unary("isinf")
isnan = _unary("isnan")
log = _unary("log")
log10 = _unary("log10")
log1p = _unary("log1p")
log2 = _unary("log2")
logical_not = _unary("logical_not")
positive = _unary("positive")
reciprocal = _unary("reciprocal")
signbit = _unary("signbit")
sin = _unary("sin")
sinh = _unary("sinh")
sqrt = _unary("sqrt")
square = _unary("square")
tan = _unary("tan")
tanh = _unary("tanh")
abs = _unary("abs")
negative = _unary("negative", "neg")
bitwise_invert = _unary("bitwise_invert", "bitwise_not")
ceil = _unary("ceil", whole=True)
floor = _unary("floor", whole=True)
round = _unary("round", whole=True)
trunc = _unary("trunc", whole=True)
atan2 = _binary("atan2")
bitwise_and = _binary("bitwise_and")
bitwise_or = _binary("bitwise_or")
bitwise_xor = _binary("bitwise_xor")
copysign = _binary("copysign")
hypot = _binary("hypot")
logaddexp = _binary("logaddexp")
logical_and = _binary("logical_and")
logical_or = _binary("logical_or")
logical_xor = _binary("logical_xor")
maximum = _binary("maximum")
minimum = _binary("minimum")
nextafter = _binary("nextafter")
pow = _binary("pow")
add = _binary("add")
subtract = _binary("subtract", "sub")
multiply = _binary("multiply", "mul")
divide = _binary("divide", "true_divide")
equal = _binary("equal", "eq")
not_equal = _binary("not_equal", "ne")
less = _binary("less", "lt")
less_equal = _binary("less_equal", "le")
greater = _binary("greater", "gt")
greater_equal = _binary("greater_equal", "ge")


def floor_divide(x1: Operand, x2: Operand, /) -> Tensor:
    """The quotient rounded down. An infinite operand gives the infinite or zero quotient itself (torch: nan, or -1)."""
    a, b = pair(x1, x2)
    out = call("floor_divide", a, b)
    if not out.is_floating_point():
        return out
    return call("where", call("logical_or", call("isinf", a), call("isinf", b)), call("div", a, b), out)


def remainder(x1: Operand, x2: Operand, /) -> Tensor:
    """What floor_divide leaves, with the divisor's sign, also where it is zero."""
    a, b = pair(x1, x2)
    out = call("remainder", a, b)
    return call("where", call("eq", out, 0), call("copysign", out, b), out) if out.is_floating_point() else out


def _shift(name: str) -> Any:
    def function(x1: Tensor | int, x2: Tensor | int, /) -> Tensor:
        a, b = pair(x1, x2)
        bits = a.dtype.bits
        # Shifts by the width or more are zero (or all sign): the processor would take the count modulo the width.
        out = call(name, a, call("clamp", b, max=bits - 1))
        if name == "bitwise_left_shift":
            return call("where", call("lt", b, bits), out, call("zeros_like", out))
        return out

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` of every pair of integers."
    return function


bitwise_left_shift, bitwise_right_shift = _shift("bitwise_left_shift"), _shift("bitwise_right_shift")


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1, of a complex element x / |x|; nan where x is."""
    if x.dtype.is_complex:
        return call("sgn", x)
    out = call("sign", x)
    return call("where", call("isnan", x), x, out) if x.dtype.is_floating_point else out


def clip(x: Tensor, /, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Every element kept within min and max (numbers or arrays, broadcast), in x's dtype."""
    out = x
    for bound, name, better in ((min, "maximum", True), (max, "minimum", False)):
        if bound is None:
            continue
        if not isinstance(bound, Tensor) and x.dtype.kind in ("int", "uint"):
            limits = dtypes.iinfo(x.dtype)
            if better and bound <= limits.min or not better and bound >= limits.max:  # type: ignore[operator]
                continue
        edge = bound.to(x.dtype) if isinstance(bound, Tensor) else call("full", (), bound, dtype=x.dtype, device=x.device)
        out = call(name, out, edge)
    return call("clone", x) if out is x else out


def conj(x: Tensor, /) -> Tensor:
    """The complex conjugate: a real array is its own."""
    return call("conj", x)


def real(x: Tensor, /) -> Tensor:
    """The real part: a real array itself."""
    return x if not x.dtype.is_complex else x.real


def imag(x: Tensor, /) -> Tensor:
    """The imaginary part: zero for a real array."""
    return call("zeros_like", x) if not x.dtype.is_complex else x.imag
