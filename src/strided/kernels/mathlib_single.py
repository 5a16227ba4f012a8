"""Elementary functions that only float32 has as vector code, several of them with a float64 heart, and the gamma functions.

sin, cos, tan reduce any argument exactly; pow, erfc compute in float64; erfinv is a polynomial in float32 and one step of Halley's method in float64.
The functions common to both formats are in mathlib_common.py.
"""
from __future__ import annotations

import math

from . import mathlib_tables as tables
from .mathlib_common import INF, NAN, erf_near, exp, literal, log_positive, split
from .scalar import Value, absolute, at_least, at_most, call, copysign, fma, intrinsic, polynomial, rint, select, sqrt

SIGN = 0x80000000


# ---- power ------------------------------------------------------------------------------------------------------------

def _exp2_double(t: Value) -> Value:
    """2^t in float64 for |t| < 1000, to 2^-34."""
    magic = 1.5 * 2.0**52
    shifted = t + magic
    return polynomial(t - (shifted - magic), *tables.POW_EXP2) * ((shifted.bits() + 1023) << 52).floating()


def pow(x: Value, y: Value) -> Value:
    """In float64 inside: y·log2 x to 2^-31 absolute, so that exact powers come out exact and all others within a rounding."""
    a = absolute(x)
    e, m = split(a)
    f = m.to("double") - 1.0
    t = y.to("double") * (f * polynomial(f, *tables.POW_LOG2) + e.to("double"))
    t = at_least(at_most(t, 200.0), -200.0)
    size = _exp2_double(t).to("float")
    # 0, inf: the exponent decides; 1^y and x^0 are 1 whatever the other is
    grows = (a > 1.0) ^ (y < 0.0)
    size = select((a == 0.0) | (a == INF), select(grows, literal(x, INF), 0.0), size)
    size = select((a == 1.0) | (y == 0.0), literal(x, 1.0), size)
    whole = intrinsic("trunc", y) == y
    half = y * 0.5
    odd = whole & (intrinsic("trunc", half) != half)
    size = select((x < 0.0) & (x > -INF) & ~whole, literal(x, NAN), size)
    size = select((x != x) & (y != 0.0) | (y != y) & (x != 1.0), literal(x, NAN), size)
    return select(odd & (x.bits() < 0), -size, size)


def fmod(x: Value, y: Value) -> Value:
    """Exact, hence a call of libm: quotients reach 2^277."""
    return x.code.emit("float", f"frem float {x.name}, {y.name}")


# ---- trigonometry -----------------------------------------------------------------------------------------------------

def _quadrant(a: Value) -> tuple[Value, Value, Value]:
    """a >= 0 = n·π/2 + r -> (r, what r lost in rounding, n as an integer of which the two low bits count)."""
    magic = 1.5 * 2**23
    t = fma(a, 0.6366197723675814, magic)
    n = (t - magic).to("double")
    near = fma(n, -6.123233995736766e-17, fma(n, -1.5707963267948966, a.to("double")))
    # Above 10^6: the mantissa times 96 bits of 2/π, chosen so that multiples of four quadrants fall off the top (Payne and Hanek).
    bits = a.bits()
    mantissa = ((bits & 0x7FFFFF) | 0x800000).to("i64")
    start = (bits >> 23) - 143
    second = start > 63
    shift = (start & 63).to("i64")
    words = [a.code.value(w, "i64") for w in tables.TWO_OVER_PI_WORDS]
    w0, w1, w2 = (select(second, late, early) for early, late in zip(words, words[1:]))
    high, low = intrinsic("fshl", w0, w1, shift), intrinsic("fshl", w1, w2, shift)
    turns = mantissa * high + ((mantissa * (low >> 32)) >> 32)
    n_big = (turns + (1 << 61)) >> 62
    far = (turns - (n_big << 62)).to("double") * (1.5707963267948966 * 2.0**-62)
    big = a > 1e6
    exact = select(big, far, near)
    r = exact.to("float")
    return r, (exact - r.to("double")).to("float"), select(big, n_big.to("i32"), t.bits())


def _sin_cos(r: Value) -> tuple[Value, Value]:
    z = r * r
    s = fma(polynomial(z, *tables.SIN) * z, r, r)
    c = fma(polynomial(z, *tables.COS), z * z, fma(z, -0.5, 1.0))
    return s, c


def sin(x: Value) -> Value:
    a = absolute(x)
    r, _, n = _quadrant(a)
    s, c = _sin_cos(r)
    y = select((n & 1) == 0, s, c)
    y = (y.bits() ^ ((n << 30) & SIGN) ^ (x.bits() & SIGN)).floating()
    return select(a < INF, y, NAN)


def cos(x: Value) -> Value:
    a = absolute(x)
    r, _, n = _quadrant(a)
    s, c = _sin_cos(r)
    y = select((n & 1) == 0, c, s)
    y = (y.bits() ^ (((n + 1) << 30) & SIGN)).floating()
    return select(a < INF, y, NAN)


def tan(x: Value) -> Value:
    a = absolute(x)
    r, lost, n = _quadrant(a)
    z = r * r
    t = fma(polynomial(z, *tables.TAN) * z, r, fma(z, lost, lost)) + r  # near a pole every lost bit of the angle counts
    y = select((n & 1) == 0, t, -1.0 / t)
    y = (y.bits() ^ (x.bits() & SIGN)).floating()
    return select(a < INF, y, NAN)


# ---- error functions --------------------------------------------------------------------------------------------------

def erfc(x: Value) -> Value:
    a = absolute(x)
    b = at_most(a, 10.25)
    # erfc(b)·exp(b²)·(2b+1) is nearly flat; exp(-b²) magnifies the rounding of b², so the factors are float64
    flat = polynomial((b - 2.0) / (b + 2.0), *tables.ERFC_FLAT)
    d = b.to("double")
    tail = (_exp2_double(d * d * -1.4426950408889634) * flat.to("double") / (d + d + 1.0)).to("float")
    return select(x < 0.5, select(x > -0.5, 1.0 - copysign(erf_near(a), x), 2.0 - tail), tail)


def _erfinv_rough(x: Value) -> Value:
    """x·P(w) in w = -log(1 - x²); the square root straightens the tail."""
    w = -log_positive(fma(-x, x, 1.0))
    near = fma(x, 0.8862269520759583, x * polynomial(w, *tables.ERFINV_NEAR))
    return select(w < 5.0, near, x * polynomial(sqrt(w) - 3.0, *tables.ERFINV_TAIL))


def _erfinv_ends(x: Value, result: Value) -> Value:
    a = absolute(x)
    return copysign(select(a < 1.0, result, select(a == 1.0, literal(x, INF), NAN)), x)


def erfinv(x: Value) -> Value:
    return _erfinv_ends(x, _erfinv_rough(x))


def erfinv_double(x: Value) -> Value:
    """The rough value (good to 1e-6, beyond float32's range of x to 1e-3), then two steps of Halley's method on erf, or on erfc where x is near 1."""
    a = absolute(x)
    y = _erfinv_rough(a)
    for _ in range(2):
        off = select(a < 0.5, call("erf", y) - a, (1.0 - a) - call("erfc", y))
        step = off * (math.sqrt(math.pi) / 2) * exp(y * y)
        y = y - step / (1.0 + y * step)
    return _erfinv_ends(x, select(a == 0.0, a, y))


# ---- gamma ------------------------------------------------------------------------------------------------------------

def _shifted(z: Value) -> tuple[Value, Value, Value]:
    """z >= 1/2 (float64) -> (w >= 8 to expand at, z(z+1)…(z+7) where z < 8 was moved there else 1, that product's derivative else 0)."""
    product, slope = z, literal(z, 1.0)
    for k in range(1, 8):
        factor = z + float(k)
        slope = fma(slope, factor, product)
        product = product * factor
    low = z < 8.0
    return select(low, z + 8.0, z), select(low, product, 1.0), select(low, slope, 0.0)


def _sin_pi(r: Value) -> Value:
    """sin(πr) on |r| <= 1/2."""
    return r * polynomial(r * r, *tables.SIN_PI)


def _lgamma_double(x: Value) -> Value:
    """log |Γ(x)| to about 1e-15 absolute, by Stirling's series; below 1/2 by reflection, Γ(x)·Γ(1-x) = π/sin(πx)."""
    mirrored = x < 0.5
    w, product, _ = _shifted(select(mirrored, 1.0 - x, x))
    u = 1.0 / w
    series = u * polynomial(u * u, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
    stirling = (w - 0.5) * log_positive(w) - w + (0.5 * math.log(2 * math.pi)) + series
    s = absolute(_sin_pi(x - rint(x)))
    # one logarithm for both: of the shift's product, and of π/sin where mirrored
    rest = log_positive(select(mirrored, product * math.pi / s, product))
    result = select(mirrored, rest - stirling, stirling - rest)
    result = select((x == 1.0) | (x == 2.0), literal(x, 0.0), result)
    pole = (x <= 0.0) & (s == 0.0)
    return select(pole | (absolute(x) == INF), literal(x, INF), result)


def digamma_double(x: Value) -> Value:
    """d/dx log Γ(x), by its asymptotic series; below 1/2 by reflection, ψ(1-x) - ψ(x) = π/tan(πx)."""
    mirrored = x < 0.5
    w, product, slope = _shifted(select(mirrored, 1.0 - x, x))
    u = 1.0 / w
    v = u * u
    series = v * polynomial(v, -1 / 12, 691 / 32760, -1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12)
    result = log_positive(w) - 0.5 * u + series - slope / product
    r = x - rint(x)
    c = _sin_pi(0.5 - absolute(r))
    result = select(mirrored, result - math.pi * c / _sin_pi(r), result)
    result = select((x < 0.0) & (r == 0.0), literal(x, NAN), result)
    result = select(x == 0.0, -copysign(literal(x, INF), x), result)
    return select(x == INF, x, result)


def trigamma_double(x: Value) -> Value:
    """d²/dx² log Γ(x), by its asymptotic series at x + 12; below 1/2 by reflection, ψ1(1-x) + ψ1(x) = π²/sin²(πx)."""
    mirrored = x < 0.5
    z = select(mirrored, 1.0 - x, x)
    total = literal(x, 0.0)
    for k in range(12):
        w = z + float(k)
        total = total + 1.0 / (w * w)
    u = 1.0 / (z + 12.0)
    v = u * u
    total = total + u + 0.5 * v + u * v * polynomial(v, 7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6)
    s = _sin_pi(x - rint(x))
    result = select(mirrored, math.pi**2 / (s * s) - total, total)
    return select(x == -INF, literal(x, NAN), result)


def trigamma(x: Value) -> Value:
    """In float32 throughout, as PyTorch's: near the poles below 0 the angle πx is rounded, which costs 2e-5 there."""
    mirrored = x < 0.5
    s = sin(x * math.pi)
    total = select(mirrored, -(math.pi**2) / (s * s), 0.0)
    z = select(mirrored, 1.0 - x, x)
    for _ in range(6):
        total = total + 1.0 / (z * z)
        z = z + 1.0
    v = 1.0 / (z * z)
    total = total + (1.0 + 1.0 / (2.0 * z) + v * (1 / 6 - v * (1 / 30 - v * (1 / 42)))) / z
    return select(mirrored, -total, total)


def lgamma(x: Value) -> Value:
    return _lgamma_double(x.to("double")).to("float")


def digamma(x: Value) -> Value:
    return digamma_double(x.to("double")).to("float")


SINGLE = {f.__name__: f for f in (pow, fmod, sin, cos, tan, erfc, erfinv, lgamma, digamma, trigamma)}
DOUBLE = {"erfinv": erfinv_double, "digamma": digamma_double, "trigamma": trigamma_double}
