"""Complex arithmetic as real arithmetic: an expression over complex inputs rewritten for their real and imaginary parts, one rule an operation.

Kernels are written from real expressions only: `rewrite` leaves `real(param)` and `imag(param)` as the leaves and a `pair` on top where the result is
complex. Which of several formulas is taken decides what happens at 0, at infinities and along branch cuts; they are those of C's Annex G where it costs
nothing, else PyTorch's. Derivatives of complex expressions are derivative.py's.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from . import expr as E
from .expr import Expr, where

REAL_RESULTS = frozenset("real imag abs angle eq ne isnan isinf isfinite logical_and logical_or logical_xor logical_not rany rall".split())
NAMES = ("complex32", "complex64", "complex128")

Parts = tuple[Expr, Expr | None]  # real part, imaginary part; None where the number is real


def complex_nodes(exprs: Iterable[Expr], inputs: frozenset[int]) -> set[Expr]:
    """The nodes below `exprs` whose value is complex when the inputs of these numbers are."""
    found: set[Expr] = set()
    for n in E.topological(tuple(exprs)):
        if n.op == "param":
            made = n.data in inputs
        elif n.op == "cast":
            made = n.data in NAMES
        elif n.op == "where":
            made = n.args[1] in found or n.args[2] in found
        else:
            made = n.op == "pair" or n.op not in REAL_RESULTS and any(a in found for a in n.args)
        if made:
            found.add(n)
    return found


def rewrite(exprs: Iterable[Expr], inputs: frozenset[int]) -> tuple[Expr, ...]:
    """`exprs` over the parts of the inputs that `inputs` numbers; a complex result is a `pair`."""
    exprs = tuple(exprs)
    key = tuple(map(id, exprs)), inputs
    found = _REWRITTEN.get(key)
    if found is None:
        known: dict[Expr, Parts] = {}
        for n in E.topological(exprs):
            known[n] = _parts(n, [known[a] for a in n.args], inputs)
        found = _REWRITTEN[key] = tuple([re if im is None else E.pair(re, im) for re, im in (known[e] for e in exprs)])
    return found


def of_parts(exprs: Iterable[Expr], ins, compute=None) -> tuple[Expr, ...]:
    """`rewrite` for a template's operands: `ins` are (dtype, layout) or ("param" | "index", …), `compute` the dtype an input is converted to, if any."""
    chosen = compute if isinstance(compute, (list, tuple)) else [compute] * len(ins)
    numbers = [i for i, (given, to) in enumerate(zip(ins, chosen)) if getattr(to or given[0], "is_complex", False)]
    return rewrite(exprs, frozenset(numbers)) if numbers else tuple(exprs)


_REWRITTEN: dict[tuple, tuple[Expr, ...]] = {}  # expressions live for ever, so their identities stay valid


def _parts(n: Expr, args: list[Parts], inputs: frozenset[int]) -> Parts:
    if n.op == "param":
        return (E.real(n), E.imag(n)) if n.data in inputs else (n, None)
    if n.op == "cast" and n.data in NAMES:
        re, im = args[0]
        part = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}[n.data]
        return E.cast(re, part), E.cast(_or_zero(im), part)
    if n.op == "pair":
        return args[0][0], args[1][0]
    if n.op in ("real", "imag") and n.args[0].op == "param":
        return (n if n.op == "real" or args[0][1] is not None else E.constant(0.0)), None
    if all(im is None for _, im in args):
        if n.op in ("real", "conj"):
            return args[0]
        if n.op == "imag":
            return E.constant(0.0), None
        return E.rebuild(n, tuple([re for re, _ in args])), None
    rule = RULES.get(n.op)
    if rule is None:
        raise NotImplementedError(f"{n.op!r} is not defined for complex numbers")
    return rule(*args)


# ---- small steps ---------------------------------------------------------------------------------------------------------------------------


def _or_zero(im: Expr | None) -> Expr:
    return E.constant(0.0) if im is None else im


def product(a, b) -> Expr:
    """a·b as a number of its own: fused into a sum, ab − ba would not be 0."""
    return E.fma(a, b, -0.0)


def _truth(z: Parts) -> Expr:
    re, im = z
    return E.node("ne", re, 0) if im is None else E.node("or", E.node("ne", re, 0), E.node("ne", im, 0))


def _both(function) -> Callable[..., Parts]:
    """A function applied to each part."""
    return lambda z: (function(z[0]), None if z[1] is None else function(z[1]))


def _abs(z: Parts) -> Expr:
    return E.abs(z[0]) if z[1] is None else E.hypot(*z)


def _angle(z: Parts) -> Expr:
    return E.atan2(_or_zero(z[1]), z[0])


def _either(a, b) -> Expr:
    return E.node("or", a, b)


def _times(trig, size, x, infinite: bool = False) -> Expr:
    """trig · size, for the sine or cosine of an angle and a size that belongs to x: an exact 0 wins over an infinite size, and over the NaN of an infinite
    angle. `infinite`: so does the infinite size of an infinite x over that NaN."""
    wins = _either(E.node("eq", size, 0), E.isinf(size)) if infinite else E.node("eq", size, 0)
    lost = E.node("and", E.node("and", E.isnan(trig), wins), _either(E.isinf(x), E.node("eq", x, 0)))
    none = E.node("and", E.node("eq", trig, 0), E.logical_not(E.isfinite(size)))
    return where(none, trig * E.copysign(1.0, size), where(lost, size, product(trig, size)))


def _turn(z: Parts) -> Parts:
    """i·z."""
    return -_or_zero(z[1]), z[0]


def _turn_back(z: Parts) -> Parts:
    """z / i."""
    return _or_zero(z[1]), -z[0]


# ---- arithmetic ------------------------------------------------------------------------------------------------------------------------------


def add(a: Parts, b: Parts) -> Parts:
    return a[0] + b[0], b[1] if a[1] is None else a[1] if b[1] is None else a[1] + b[1]


def neg(a: Parts) -> Parts:
    return -a[0], None if a[1] is None else -a[1]


def sub(a: Parts, b: Parts) -> Parts:
    if b[1] is None:
        return a[0] - b[0], a[1]
    return a[0] - b[0], -b[1] if a[1] is None else a[1] - b[1]


def mul(a: Parts, b: Parts) -> Parts:
    (x, y), (u, v) = a, b
    if y is None or v is None:
        return x * u, (x * v if v is not None else y * u if y is not None else None)
    return product(x, u) - product(y, v), product(x, v) + product(y, u)


def div(a: Parts, b: Parts) -> Parts:
    """Smith's way: divided through by the divisor's larger part, so that no square overflows."""
    (x, y), (u, v) = a, b
    if v is None:
        return x / u, None if y is None else y / u
    tall = E.node("lt", abs(u), abs(v))
    large, small = where(tall, v, u), where(tall, u, v)
    ratio = small / large
    scale = 1.0 / (large + product(small, ratio))
    if y is None:
        along, across = product(x, ratio), x
        return where(tall, along, x) * scale, -(where(tall, across, along) * scale)
    first, second = where(tall, y, x), where(tall, x, y)
    along, across = product(second, ratio), product(first, ratio)
    return (first + along) * scale, where(tall, across - second, second - across) * scale


def reciprocal(z: Parts) -> Parts:
    re, im = div((E.constant(1.0), None), z)
    return where(_truth(z), re, math.inf), im


def _fma(a: Parts, b: Parts, c: Parts) -> Parts:
    return add(mul(a, b), c)


def _sgn(z: Parts) -> Parts:
    size = _abs(z)
    none = E.node("eq", size, 0)
    return where(none, 0.0, z[0] / size), where(none, 0.0, _or_zero(z[1]) / size)


def _where(c: Parts, a: Parts, b: Parts) -> Parts:
    condition = _truth(c) if c[1] is not None else c[0]
    if a[1] is None and b[1] is None:
        return where(condition, a[0], b[0]), None
    return where(condition, a[0], b[0]), where(condition, _or_zero(a[1]), _or_zero(b[1]))


# ---- exponentials, logarithms, powers ----------------------------------------------------------------------------------------------------------


def _scaled_exp(size: Expr, x: Expr, angle: Expr) -> Parts:
    return _times(E.cos(angle), size, x, True), _times(E.sin(angle), size, x)


def exp(z: Parts) -> Parts:
    return _scaled_exp(E.exp(z[0]), z[0], _or_zero(z[1]))


def exp2(z: Parts) -> Parts:
    return _scaled_exp(E.exp2(z[0]), z[0], _or_zero(z[1]) * math.log(2))


def expm1(z: Parts) -> Parts:
    x, y = z[0], _or_zero(z[1])
    half = E.sin(y * 0.5)
    size, sine = E.expm1(x), E.sin(y)
    re = where(_either(E.isinf(size), E.node("eq", size, -1)), _times(E.cos(y), E.exp(x), x, True) - 1, product(size, E.cos(y)) - 2 * (half * half))
    return re, _times(sine, E.exp(x), x)


def _log_size(x: Expr, y: Expr) -> Expr:
    """log |z|; near |z| = 1 from |z|² - 1, which keeps the digits that |z| has lost."""
    x, y = abs(x), abs(y)
    large, small, size = E.maximum(x, y), E.minimum(x, y), E.hypot(x, y)
    near = E.node("and", size > 0.5, size < 2.0)
    excess = where(near, E.fma(large - 1, large + 1, small * small), 0.0)
    return where(near, E.log1p(excess) * 0.5, E.log(size))


def log(z: Parts) -> Parts:
    return _log_size(z[0], _or_zero(z[1])), _angle(z)


def log1p(z: Parts) -> Parts:
    x, y = z[0], _or_zero(z[1])
    near = E.node("and", abs(x) < 0.5, abs(y) < 0.5)
    excess = where(near, E.fma(x, x + 2, y * y), 0.0)
    return where(near, E.log1p(excess) * 0.5, _log_size(1 + x, y)), E.atan2(y, 1 + x)


def _in_base(base: float) -> Callable[[Parts], Parts]:
    return lambda z: mul((E.constant(1 / math.log(base)), None), log(z))


def sqrt(z: Parts) -> Parts:
    """The root in the right half plane, by the half-angle formula that does not cancel."""
    x, y = z[0], _or_zero(z[1])
    large = E.sqrt(abs(x) * 0.5 + E.hypot(x, y) * 0.5)
    small = abs(y) / (2 * large)
    small = where(E.node("eq", large, 0), 0.0, small)
    infinite, right = E.isinf(y), E.node("or", x >= 0, E.isnan(x))
    re = where(infinite, math.inf, where(right, large, small))
    return re, E.copysign(where(infinite, math.inf, where(right, small, large)), y)


def rsqrt(z: Parts) -> Parts:
    return div((E.constant(1.0), None), sqrt(z))


def power(z: Parts, w: Parts) -> Parts:
    """exp(w · log z); anything to the power of 0 is 1, and 0 to a power with a positive real part is 0."""
    if w[1] is None and w[0].op == "constant":
        c = w[0].data
        if c in (1, 2, 3, -1, -2):
            result = z
            for _ in range(abs(int(c)) - 1):
                result = mul(result, z)
            return result if c > 0 else reciprocal(result)
        if c in (0.5, -0.5):
            return sqrt(z) if c > 0 else rsqrt(z)
    size, angle = log(z)
    re, im = exp(mul((size, angle), w))
    one = E.node("eq", w[0], 0) if w[1] is None else E.node("and", E.node("eq", w[0], 0), E.node("eq", w[1], 0))
    none = E.node("and", E.logical_not(_truth(z)), w[0] > 0)
    return where(one, 1.0, where(none, 0.0, re)), where(E.node("or", one, none), 0.0, _or_zero(im))


def sigmoid(z: Parts) -> Parts:
    re, im = exp(neg(z))
    return reciprocal((re + 1, im))


# ---- circular and hyperbolic functions, and their inverses (after W. Kahan, "Branch cuts for complex elementary functions") -----------------------


def sinh(z: Parts) -> Parts:
    x, y = z[0], _or_zero(z[1])
    return _times(E.cos(y), E.sinh(x), x, True), _times(E.sin(y), E.cosh(x), x)


def cosh(z: Parts) -> Parts:
    x, y = z[0], _or_zero(z[1])
    return _times(E.cos(y), E.cosh(x), x, True), _times(E.sin(y), E.sinh(x), x)


def tanh(z: Parts) -> Parts:
    x, y = z[0], _or_zero(z[1])
    far = abs(x) > 20  # the real part is 1 to all digits there, and squares could overflow
    near = where(far, 0.0, x)
    tangent, s = E.tan(y), E.sinh(near)
    beta, rho = 1 + tangent * tangent, E.sqrt(1 + s * s)
    below = 1 + beta * s * s
    limit = where(_either(E.isfinite(y), E.isinf(x)), E.copysign(1.0, x), math.nan)
    double = E.sin(y) * E.cos(y)
    tail = where(E.isinf(x), E.copysign(0.0, where(E.isfinite(y), double, y)), 4 * double * E.exp(-2 * abs(x)))
    return (where(far, limit, where(E.node("eq", s, 0), s, beta * rho * s / below)),
            where(far, tail, where(E.node("eq", tangent, 0), tangent, tangent / below)))


def asin(z: Parts) -> Parts:
    x, y = z[0], _or_zero(z[1])
    a, b = sqrt((1 - x, -y)), sqrt((1 + x, y))
    endless = E.isinf(x)
    re = E.atan2(x, where(endless, where(E.isfinite(y), 0.0, abs(y)), _real_of_product(a, b)))
    im = E.asinh(_imag_of_product((a[0], -_or_zero(a[1])), b))
    return where(E.node("eq", x, 0), x, re), where(endless, E.copysign(math.inf, y), im)


def acos(z: Parts) -> Parts:
    x, y = z[0], _or_zero(z[1])
    a, b = sqrt((1 - x, -y)), sqrt((1 + x, y))
    endless = _either(E.isinf(x), E.isinf(y))
    re = where(endless, E.atan2(abs(y), x), where(E.node("eq", x, 0), math.pi / 2, 2 * E.atan2(a[0], b[0])))
    return re, where(endless, E.copysign(math.inf, -y), E.asinh(_imag_of_product((b[0], -_or_zero(b[1])), a)))


def acosh(z: Parts) -> Parts:
    x, y = z[0], _or_zero(z[1])
    a, b = sqrt((x - 1, y)), sqrt((x + 1, y))
    endless = _either(E.isinf(x), E.isinf(y))
    re = where(endless, math.inf, E.asinh(_real_of_product((a[0], -_or_zero(a[1])), b)))
    return re, where(endless, E.atan2(y, x), where(E.node("eq", x, 0), E.copysign(math.pi / 2, y), 2 * E.atan2(_or_zero(a[1]), b[0])))


def atanh(z: Parts) -> Parts:
    x, y = z[0], _or_zero(z[1])
    endless = _either(E.isinf(x), E.isinf(y))
    far = E.maximum(abs(x), abs(y)) > 1e8  # 1/z to all digits there, and squares could overflow
    near, up = where(far, 0.0, abs(x)), where(far, 0.0, y)
    re = E.log1p(4 * near / ((1 - near) * (1 - near) + up * up)) * 0.25
    re = where(endless, 0.0, where(far, div((E.constant(1.0), None), (abs(x), y))[0], re))
    im = where(_either(far, endless), E.copysign(math.pi / 2, y), E.atan2(2 * up, (1 - near) * (1 + near) - up * up) * 0.5)
    return where(E.node("eq", x, 0), x, E.copysign(re, x)), where(E.isnan(y), y, im)


def _real_of_product(a: Parts, b: Parts) -> Expr:
    return product(a[0], b[0]) - product(a[1], b[1])


def _imag_of_product(a: Parts, b: Parts) -> Expr:
    return product(a[0], b[1]) + product(a[1], b[0])


RULES: dict[str, Callable[..., Parts]] = {
    "add": add, "sub": sub, "mul": mul, "div": div, "neg": neg, "reciprocal": reciprocal, "fma": _fma, "pow": power,
    "real": lambda z: (z[0], None),
    "imag": lambda z: (z[1], None),
    "conj": lambda z: (z[0], -z[1]),
    "abs": lambda z: (_abs(z), None),
    "angle": lambda z: (_angle(z), None),
    "sgn": _sgn,
    "stop": _both(E.stop_gradient),
    "where": _where,
    "eq": lambda a, b: (E.node("and", E.node("eq", a[0], b[0]), E.node("eq", _or_zero(a[1]), _or_zero(b[1]))), None),
    "ne": lambda a, b: (E.node("or", E.node("ne", a[0], b[0]), E.node("ne", _or_zero(a[1]), _or_zero(b[1]))), None),
    "isnan": lambda z: (E.node("or", E.isnan(z[0]), E.isnan(z[1])), None),
    "isinf": lambda z: (E.node("or", E.isinf(z[0]), E.isinf(z[1])), None),
    "isfinite": lambda z: (E.node("and", E.isfinite(z[0]), E.isfinite(z[1])), None),
    "logical_and": lambda a, b: (E.node("and", _truth(a), _truth(b)), None),
    "logical_or": lambda a, b: (E.node("or", _truth(a), _truth(b)), None),
    "logical_xor": lambda a, b: (E.node("xor", _truth(a), _truth(b)), None),
    "logical_not": lambda z: (E.logical_not(_truth(z)), None),
    "exp": exp, "exp2": exp2, "expm1": expm1, "log": log, "log1p": log1p, "log2": _in_base(2), "log10": _in_base(10), "sqrt": sqrt, "rsqrt": rsqrt,
    "sigmoid": sigmoid, "sinh": sinh, "cosh": cosh, "tanh": tanh, "asin": asin, "acos": acos, "acosh": acosh, "atanh": atanh,
    "sin": lambda z: _turn_back(sinh(_turn(z))),
    "cos": lambda z: cosh(_turn(z)),
    "tan": lambda z: _turn_back(tanh(_turn(z))),
    "asinh": lambda z: _turn_back(asin(_turn(z))),
    "atan": lambda z: _turn_back(atanh(_turn(z))),
    "rsum": _both(E.rsum),
    "rany": lambda z: (E.rany(_truth(z)), None),
    "rall": lambda z: (E.rall(_truth(z)), None),
    "cast": lambda z: (z[0], None),
}
