"""Special functions as expressions: error functions, Bessel functions, Airy's function, the normal distribution, entropies.

Each is computed in float64 whatever the input, from Chebyshev series (special_tables.py) and elementary functions. An operator's expression is built
when it is first called, so that the import stays quick. The gamma functions are in gamma.py, orthogonal polynomials in polynomials.py.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ..kernels import expr as E
from . import special_tables as tables
from .elementwise import Pointwise
from .table import TABLE, operator

INF, NAN = math.inf, math.nan
ROOT_2, ROOT_2_PI = math.sqrt(2), math.sqrt(2 * math.pi)


def special(name: str, function: Callable[..., Any], gradients: tuple = (), *, namespace: str | None = "special", doc: str = "", **facts: Any):
    """Registers a pointwise operator whose expression is made at its first call. gradients: one expression `(g, *operands, result)` an operand; none: derived."""

    @functools.cache
    def op() -> Pointwise:
        made = Pointwise(name, function, function.__code__.co_argcount, "float", "".join(["Special" if namespace else "", *(part.capitalize() for part in name.split("_"))]))
        if gradients:
            made.gradient = lambda i: gradients[i]
        return made

    facts = {"method": False, "out": True, **facts}

    if function.__code__.co_argcount == 1:

        def call(input):
            return op()(input)

    else:

        def call(input, other):
            return op()(input, other)

    call = operator(name, namespace=namespace, flops=lambda args, kwargs, result: op().flops * result.numel(), **facts)(call)
    TABLE[name].doc = call.__doc__ = doc
    TABLE[name].pointwise = True
    return call


def wide(x):
    """x in float64."""
    return E.cast(x, "float64")


def chebyshev(t, coefficients):
    """The series at t, by Clenshaw's recurrence."""
    twice, b1, b2 = t + t, coefficients[-1], 0.0
    for c in coefficients[-2:0:-1]:
        b1, b2 = (twice * b1 - b2) + c, b1
    return (t * b1 - b2) + coefficients[0]


def polynomial(x, *coefficients):
    """Horner's rule, highest power first."""
    total = coefficients[0]
    for c in coefficients[1:]:
        total = total * x + c
    return total


def pieces(a, limit, near, far):
    """near(a) up to the limit, far(a) beyond. Each sees the limit itself where it is not used, so that neither overflows (nor does its derivative)."""
    inside = a <= limit
    return E.where(inside, near(E.where(inside, a, limit)), far(E.where(inside, limit, a)))


def nonzero(x):
    """x, and 1 where x is 0: a divisor for what is not used there."""
    return E.where(x == 0, 1.0, x)


# ---- modified Bessel functions ------------------------------------------------------------------------------------------------------


def _i0e(x):
    return pieces(abs(wide(x)), 8.0, lambda a: chebyshev(a * 0.25 - 1, tables.I0E_NEAR), lambda a: chebyshev(16 / a - 1, tables.I0E_FAR) / E.sqrt(a))


def _i1e(x):
    x = wide(x)
    magnitude = E.where(x < 0, -x, x)  # not abs, whose slope at 0 is 0: this function's is 0.5
    size = pieces(magnitude, 8.0, lambda a: a * chebyshev(a * 0.25 - 1, tables.I1E_NEAR), lambda a: chebyshev(16 / a - 1, tables.I1E_FAR) / E.sqrt(a))
    return E.where(x < 0, -size, size)


def _i0(x):
    return E.exp(abs(wide(x))) * _i0e(x)


def _i1(x):
    return E.exp(abs(wide(x))) * _i1e(x)


def _i1_slope(g, x, y):
    return g * E.where(x == 0, 0.5, _i0(x) - wide(y) / nonzero(x))


def _i1e_slope(g, x, y):
    return g * E.where(x == 0, 0.5, _i0e(x) - wide(y) * (E.sign(x) + 1 / wide(nonzero(x))))


_i0_gradient = (lambda g, x, y: g * _i1(x),)
i0 = special("i0", _i0, _i0_gradient, namespace=None, method=True, inplace=True, doc="The modified Bessel function of the first kind, order 0.")
i0e = special("i0e", _i0e, (lambda g, x, y: g * (_i1e(x) - E.sign(x) * wide(y)),), doc="exp(-|x|) * i0(x).")
i1 = special("i1", _i1, (_i1_slope,), doc="The modified Bessel function of the first kind, order 1.")
i1e = special("i1e", _i1e, (_i1e_slope,), doc="exp(-|x|) * i1(x).")
special("modified_bessel_i0", _i0, _i0_gradient, doc="The modified Bessel function of the first kind, order 0.")
special("modified_bessel_i1", _i1, (_i1_slope,), doc="The modified Bessel function of the first kind, order 1.")


def _powers_of_quarter(x, extra):
    """sum of (x²/4)^k / (k! (k + extra)!): I0(x) for extra = 0, I1(x)/(x/2) for 1, on |x| <= 2."""
    return polynomial(x * x * 0.25, *(1 / (math.factorial(k) * math.factorial(k + extra)) for k in range(13, -1, -1)))


def _k(order, scaled):
    near_table, far_table = (tables.K0_NEAR, tables.K0E_FAR) if order == 0 else (tables.K1_NEAR, tables.K1E_FAR)

    def near(x):
        series = chebyshev(x * x * 0.5 - 1, near_table)
        if order == 0:
            value = series - E.log(x * 0.5) * _powers_of_quarter(x, 0)
        else:
            value = series / x + E.log(x * 0.5) * (x * 0.5) * _powers_of_quarter(x, 1)
        return value * E.exp(x) if scaled else value

    def far(x):
        value = chebyshev(4 / x - 1, far_table) / E.sqrt(x)
        return value if scaled else value * E.exp(-x)

    def k(x):
        x = wide(x)
        inside = x > 0
        value = pieces(E.where(inside, x, 1.0), 2.0, near, far)
        return E.where(inside, value, E.where(x == 0, INF, NAN))

    return k


_k0, _k1, _k0e, _k1e = _k(0, False), _k(1, False), _k(0, True), _k(1, True)
special("modified_bessel_k0", _k0, (lambda g, x, y: -g * _k1(x),), doc="The modified Bessel function of the second kind, order 0.")
special("modified_bessel_k1", _k1, (lambda g, x, y: -g * (_k0(x) + wide(y) / x),), doc="The modified Bessel function of the second kind, order 1.")
special("scaled_modified_bessel_k0", _k0e, (lambda g, x, y: g * (wide(y) - _k1e(x)),), doc="exp(x) * modified_bessel_k0(x).")
special("scaled_modified_bessel_k1", _k1e, (lambda g, x, y: g * (wide(y) * (1 - 1 / x) - _k0e(x)),), doc="exp(x) * modified_bessel_k1(x).")


# ---- Bessel functions ----------------------------------------------------------------------------------------------------------------


def _waves(x, order):
    """(in phase, in quadrature) for x >= 8: J is their difference, Y their sum, as P cos χ - Q sin χ and P sin χ + Q cos χ with χ = x - π/4 - order·π/2."""
    p_table, q_table = (tables.P0_FAR, tables.Q0_FAR) if order == 0 else (tables.P1_FAR, tables.Q1_FAR)
    t = 128 / (x * x) - 1
    size = 1 / E.sqrt(x * math.pi)  # sqrt(2/(πx)) / sqrt(2), the root being that of cos(x - π/4) = (cos x + sin x)/sqrt(2)
    p, q = size * chebyshev(t, p_table), size * chebyshev(t, q_table) / x
    plus, minus = E.cos(x) + E.sin(x), E.sin(x) - E.cos(x)
    cosine, sine = (plus, minus) if order == 0 else (minus, -plus)
    return p * cosine - q * sine, p * sine + q * cosine


def _j_near(x, order):
    series = chebyshev(x * x / 32 - 1, tables.J0_NEAR if order == 0 else tables.J1_NEAR)
    return series if order == 0 else x * series


def _j(order):
    def j(x):
        x = wide(x)
        a = abs(x)
        value = pieces(a, 8.0, lambda a: _j_near(a, order), lambda a: _waves(a, order)[0])
        value = E.where(a == INF, 0.0, value)
        return E.where(x < 0, -value, value) if order else value

    return j


def _y(order):
    def near(x):
        series = chebyshev(x * x / 32 - 1, tables.Y0_NEAR if order == 0 else tables.Y1_NEAR)
        if order == 0:
            return series + (2 / math.pi) * E.log(x) * _j_near(x, 0)
        return x * series + (2 / math.pi) * (E.log(x) * _j_near(x, 1) - 1 / x)

    def y(x):
        x = wide(x)
        inside = x > 0
        value = pieces(E.where(inside, x, 1.0), 8.0, near, lambda x: _waves(x, order)[1])
        return E.where(inside, E.where(x == INF, 0.0, value), E.where(x == 0, -INF, NAN))

    return y


_j0, _j1, _y0, _y1 = _j(0), _j(1), _y(0), _y(1)
special("bessel_j0", _j0, (lambda g, x, y: -g * _j1(x),), doc="The Bessel function of the first kind, order 0.")
special("bessel_j1", _j1, (lambda g, x, y: g * E.where(x == 0, 0.5, _j0(x) - wide(y) / nonzero(x)),), doc="The Bessel function of the first kind, order 1.")
special("bessel_y0", _y0, (lambda g, x, y: -g * _y1(x),), doc="The Bessel function of the second kind, order 0.")
special("bessel_y1", _y1, (lambda g, x, y: g * (_y0(x) - wide(y) / x),), doc="The Bessel function of the second kind, order 1.")


def _spherical_j0(x):
    a = abs(wide(x))
    small = lambda a: polynomial(a * a, *((-1) ** k / math.factorial(2 * k + 1) for k in range(7, -1, -1)))
    return E.where(a == INF, 0.0, pieces(a, 0.5, small, lambda a: E.sin(a) / a))


special("spherical_bessel_j0", _spherical_j0, doc="The spherical Bessel function of the first kind, order 0: sin(x) / x.")


# ---- Airy's function -------------------------------------------------------------------------------------------------------------------


def _airy_ai(x):
    x = wide(x)
    angle = lambda a: a * E.sqrt(a) * (2 / 3)

    def right(a):
        z = angle(a)
        return E.exp(-z) * chebyshev(2 * (2 / 3 * 2**1.5) / z - 1, tables.AIRY_RIGHT) / (2 * math.sqrt(math.pi) * E.sqrt(E.sqrt(a)))

    def left(a):
        z = angle(a)
        t = 2 * (2 / 3 * 5**1.5) ** 2 / (z * z) - 1
        p, q = chebyshev(t, tables.AIRY_LEFT_P), chebyshev(t, tables.AIRY_LEFT_Q) / z
        return (p * (E.cos(z) + E.sin(z)) + q * (E.sin(z) - E.cos(z))) / (ROOT_2 * math.sqrt(math.pi) * E.sqrt(E.sqrt(a)))

    middle = lambda b: chebyshev((b + 1.5) / 3.5, tables.AIRY_MIDDLE)
    not_left = lambda b: pieces(b, 2.0, middle, right)
    return pieces(-x, 5.0, lambda a: not_left(-a), left)


special("airy_ai", _airy_ai, doc="Airy's function Ai.")


# ---- error functions and the normal distribution -------------------------------------------------------------------------------------------


def _erfcx(x):
    x = wide(x)
    a = abs(x)
    positive = chebyshev(1 - 7.5 / (a + 3.75), tables.ERFCX) / (1 + a + a)
    # below 0: 2 exp(x²) - erfcx(-x), with what x² loses in rounding
    b = E.where(a < 27, a, 27.0)
    square = b * b
    whole = E.exp(square) * (1 + E.fma(b, b, -square))
    return E.where(x < 0, whole + whole - positive, positive)


def _ndtr(x):
    return 0.5 * E.erfc(wide(x) * -(1 / ROOT_2))


def _log_ndtr(x):
    x = wide(x)
    return pieces(-x, 1.0, lambda a: E.log1p(-0.5 * E.erfc(a * -(1 / ROOT_2))), lambda a: E.log(0.5 * _erfcx(a * (1 / ROOT_2))) - 0.5 * a * a)


def _ndtri(p):
    p = wide(p)
    r = p - 0.5
    border = 0.5 - math.exp(-2)
    near = abs(r) <= border
    r = E.where(near, r, 0.0)
    middle = r * chebyshev(r * r * (2 / border**2) - 1, tables.NDTRI_NEAR)
    tail = E.where(p > 0.5, 1 - p, p)
    u = E.sqrt(-2 * E.log(E.where(near | (tail <= 0), 0.1, tail)))
    series = pieces(u, 8.0, lambda u: chebyshev((1 / u - 0.3125) / 0.1875, tables.NDTRI_TAIL), lambda u: chebyshev((1 / u - 0.075) / 0.05, tables.NDTRI_FAR))
    far = u - (E.log(u) + series) / u  # positive: the upper quantile
    result = E.where(near, middle, E.where(p < 0.5, -far, far))
    return E.where((p > 0) & (p < 1), result, E.where(p == 0, -INF, E.where(p == 1, INF, NAN)))


special("erfcx", _erfcx, (lambda g, x, y: g * (2 * x * wide(y) - 2 / math.sqrt(math.pi)),), doc="exp(x²) * erfc(x).")
special("ndtr", _ndtr, (lambda g, x, y: g * E.exp(wide(x) * x * -0.5) * (1 / ROOT_2_PI),), doc="The area under the standard normal density up to x.")
special("log_ndtr", _log_ndtr, (lambda g, x, y: g * math.sqrt(2 / math.pi) / _erfcx(wide(x) * -(1 / ROOT_2)),), doc="log(ndtr(x)), accurate far below 0.")
special("ndtri", _ndtri, (lambda g, x, y: g * ROOT_2_PI * E.exp(wide(y) * y * 0.5),), doc="The x for which ndtr(x) is the given p.")


# ---- entropies ---------------------------------------------------------------------------------------------------------------------------------

special("entr", lambda x: E.where(x > 0, -x * E.log(x), E.where(x == 0, 0.0, E.where(E.isnan(x), x, -INF))), (lambda g, x, y: -g * (1 + E.log(x)),), doc="-x log x; 0 at 0, -inf below.")
special(
    "xlog1py",
    lambda x, y: E.where(E.isnan(y), y, E.where(x == 0, 0.0, x * E.log1p(y))),
    (lambda g, x, y, r: g * E.where((x == 0) & (y <= -1), 0.0, E.log1p(y)), lambda g, x, y, r: g * x / (y + 1)),
    doc="x * log1p(y), 0 where x is 0.",
)
