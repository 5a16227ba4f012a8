"""Elementary functions that float32 and float64 have in common, written once over the constants of the two formats (mathlib_tables.py).

Branch-free: a function appends straight-line code to its argument's `Code`. What float32 alone has (sin, pow, …) is in mathlib_single.py.
"""
from __future__ import annotations

from .mathlib_tables import FORMATS, Format
from .scalar import Value, absolute, at_least, at_most, copysign, fma, polynomial, select, sqrt

INF, NAN = float("inf"), float("nan")


def facts(x: Value) -> Format:
    """The constants of x's format."""
    return FORMATS[x.type]


def literal(x: Value, value: float) -> Value:
    """A constant of x's type (where Python's operators cannot tell it)."""
    return x.code.value(value, x.type)


# ---- exponentials -----------------------------------------------------------------------------------------------------

def power_parts(x: Value) -> tuple[Value, Value]:
    """x = n·ln 2 + r -> (r, n with the bias added twice, in the low bits): adding `magic` rounds to an integer and leaves it in the mantissa."""
    k = facts(x)
    t = fma(x, k.log2e, k.magic)
    n = t - k.magic
    return fma(n, -k.ln2_lo, fma(n, -k.ln2_hi, x)), t.bits()


def exp_minus_1(r: Value) -> Value:
    """exp(r) - 1 on |r| <= ln(2)/2."""
    return fma(polynomial(r, *facts(r).exp), r * r, r)


def exp_small(r: Value) -> Value:
    """exp(r) on |r| <= ln(2)/2."""
    return polynomial(r, *facts(r).exp, 1.0, 1.0)


def power_of_two(x: Value, biased: Value) -> Value:
    """2^(biased - bias); higher bits of `biased` fall off."""
    return (biased << facts(x).bits).floating()


def scale(p: Value, n: Value) -> Value:
    """p·2^n, n as `power_parts` gives it: one instruction, or two exact halves, so that only the last multiplication rounds into the subnormals or overflows."""
    if p.code.scalef and p.type == "float":
        n = n - facts(p).magic_bits
        return p.code.emit(p.type, f"call float @llvm.ldexp.f32.i32(float {p.name}, i32 {n.name})")
    half = n >> 1
    return p * power_of_two(p, half) * power_of_two(p, n - half)


def exp(x: Value) -> Value:
    least, most = facts(x).exp_range
    r, n = power_parts(at_least(at_most(x, most), least))
    return scale(exp_small(r), n)


def exp_normal(x: Value) -> Value:
    """exp where the result is known to be a normal number: one scaling."""
    r, n = power_parts(x)
    return exp_small(r) * power_of_two(x, n - facts(x).bias)


def exp2(x: Value) -> Value:
    k = facts(x)
    least, most = k.exp2_range
    x = at_least(at_most(x, most), least)
    t = x + k.magic
    return scale(polynomial(x - (t - k.magic), *k.exp2, 1.0), t.bits())


def expm1(x: Value) -> Value:
    k = facts(x)
    r, n = power_parts(at_least(at_most(x, k.exp_range[1]), k.expm1_least))
    small = exp_minus_1(r)
    # 2^n·(exp(r) - 1) + (2^n - 1), at half its size so that the largest power stays in range; 2^n - 1 is exact wherever it matters
    half = power_of_two(x, n - (k.bias + 1))
    wide = fma(half, small, half - 0.5)
    return copysign(select(n == k.magic_bits, small, wide + wide), x)


def half_exp(a: Value) -> Value:
    """exp(a)/2, in range as long as the half is."""
    r, n = power_parts(at_most(a, facts(a).cosh_most))
    return scale(exp_small(r), n - 1)


def sinh(x: Value) -> Value:
    a = absolute(x)
    z = a * a
    near = fma(polynomial(z, *facts(x).sinh) * z, a, a)
    h = half_exp(a)
    return copysign(select(a < 1.0, near, h - 0.25 / h), x)


def cosh(x: Value) -> Value:
    h = half_exp(absolute(x))
    return h + 0.25 / h


def tanh(x: Value) -> Value:
    a = at_most(absolute(x), facts(x).tanh_most)
    z = a * a
    near = fma(polynomial(z, *facts(x).tanh) * z, a, a)
    far = 1.0 - 2.0 / (exp_normal(a + a) + 1.0)
    return copysign(select(a < 0.625, near, far), x)


# ---- logarithms -------------------------------------------------------------------------------------------------------

def _mantissa(i: Value, k: Format) -> Value:
    return ((i & ((1 << k.bits) - 1)) + k.two_thirds).floating()


def whole(n: Value, k: Format) -> Value:
    """An integer of small size as a float. In float64 by adding to a large number's bits: AVX2 has no conversion from 64-bit integers."""
    if k.type == "float":
        return n.to("float")
    return (n + (k.magic_bits - 2 * k.bias)).floating() - (k.magic - 2 * k.bias)


def split(x: Value) -> tuple[Value, Value]:
    """Positive x = 2^e·m -> (e as a float, m in [2/3, 4/3)): m - 1 is small, and e is 0 near 1. Subnormals are first scaled into the normal range."""
    k = facts(x)
    tiny = x < k.tiny
    i = select(tiny, x * 2.0**k.bits, x).bits() - k.two_thirds
    e = i.ashr(k.bits) + select(tiny, x.code.value(-k.bits, k.integer), 0)
    return whole(e, k), _mantissa(i, k)


def log_specials(x: Value, result: Value) -> Value:
    """The ends of every logarithm: log(inf) = inf, log(0) = -inf, of a negative number or NaN: NaN."""
    return select(x > 0.0, select(x < INF, result, x), select(x == 0.0, literal(x, -INF), NAN))


def log_of(f: Value, e: Value) -> Value:
    """log((1+f)·2^e): the large terms are added last."""
    k = facts(f)
    return fma(e, k.ln2_hi, f + fma(polynomial(f, *k.log), f * f, e * k.ln2_lo))


def log_positive(x: Value) -> Value:
    e, m = split(x)
    return log_of(m - 1.0, e)


def log(x: Value) -> Value:
    return log_specials(x, log_positive(x))


def log2(x: Value) -> Value:
    k = facts(x)
    e, m = split(x)
    f = m - 1.0
    low = fma(f, k.log2e_lo, polynomial(f, *k.log2) * (f * f))
    return log_specials(x, fma(f, k.log2e, low) + e)


def log10(x: Value) -> Value:
    k = facts(x)
    e, m = split(x)
    f = m - 1.0
    low = fma(e, k.log10_2_lo, fma(f, k.log10e_lo, polynomial(f, *k.log10) * (f * f)))
    return log_specials(x, fma(e, k.log10_2_hi, fma(f, k.log10e, low)))


def log1p_positive(x: Value, doublings: Value | None = None) -> Value:
    """log(1+x) + doublings·log 2 for -1 < x < inf."""
    k = facts(x)
    i = (x + 1.0).bits() - k.two_thirds
    n = i.ashr(k.bits)
    # f = x/2^n + (1/2^n - 1) keeps every bit of a small x; a large x has none to lose, and 1/2^n would leave the normal range
    shrink = power_of_two(x, k.bias - n)
    f = select(n > k.bits + 1, _mantissa(i, k) - 1.0, fma(x, shrink, shrink - 1.0))
    e = whole(n, k)
    return log_of(f, e if doublings is None else e + doublings)


def log1p(x: Value) -> Value:
    result = select(x > -1.0, select(x < INF, log1p_positive(x), x), select(x == -1.0, literal(x, -INF), NAN))
    return copysign(result, x)


BIG = 2.0**60  # beyond it 1 + x is x, and x² may still be formed in float32


def asinh(x: Value) -> Value:
    # log(a + sqrt(a² + 1)) = log1p(a + a²/(1 + sqrt(a² + 1))); log(2a) for large a
    a = absolute(x)
    big = a > BIG
    t = select(big, a, fma(a, a / (1.0 + sqrt(fma(a, a, 1.0))), a))
    return copysign(select(a < INF, log1p_positive(t, select(big, literal(x, 1.0), 0.0)), a), x)


def acosh(x: Value) -> Value:
    # log(x + sqrt(x² - 1)) = log1p(d + sqrt(d² + 2d)) with d = x - 1
    big = x > BIG
    d = x - 1.0
    t = select(big, x, d + sqrt(fma(d, d, d + d)))
    result = log1p_positive(t, select(big, literal(x, 1.0), 0.0))
    return select(x >= 1.0, select(x < INF, result, x), NAN)


def atanh(x: Value) -> Value:
    a = absolute(x)
    result = 0.5 * log1p_positive((a + a) / (1.0 - a))
    return copysign(select(a < 1.0, result, select(a == 1.0, literal(x, INF), NAN)), x)


# ---- inverse trigonometry ---------------------------------------------------------------------------------------------

def _asin_parts(x: Value) -> tuple[Value, Value]:
    """(whether |x| > 0.5415, asin of |x| or of sqrt((1-|x|)/2)); NaN beyond 1. Past that border 2·asin is below 1, so its rounding is small."""
    a = absolute(x)
    far = a > 0.5415
    z = select(far, fma(a, -0.5, 0.5), a * a)
    s = select(far, sqrt(z), a)
    return far, fma(polynomial(z, *facts(x).asin) * z, s, s)


def asin(x: Value) -> Value:
    k = facts(x)
    far, p = _asin_parts(x)
    return copysign(select(far, fma(p, -2.0, k.half_pi) + k.half_pi_lo, p), x)


def acos(x: Value) -> Value:
    k = facts(x)
    far, p = _asin_parts(x)
    twice = p + p
    ends = select(x < 0.0, 2 * k.half_pi - (twice - 2 * k.half_pi_lo), twice)
    return select(far, ends, k.half_pi - (copysign(p, x) - k.half_pi_lo))


def _atan_unit(q: Value) -> Value:
    """atan(q) on [0, 1]."""
    z = q * q
    return fma(polynomial(z, *facts(q).atan) * z, q, q)


def atan(x: Value) -> Value:
    k = facts(x)
    a = absolute(x)
    far = a > 1.0
    p = _atan_unit(select(far, 1.0 / a, a))
    return copysign(select(far, k.half_pi - (p - k.half_pi_lo), p), x)


def atan2(y: Value, x: Value) -> Value:
    k = facts(x)
    a, b = absolute(y), absolute(x)
    steep = a > b
    small, large = select(steep, b, a), select(steep, a, b)
    # 0/0 counts as 0 and inf/inf as 1
    q = select(large == 0.0, literal(x, 0.0), select(small == INF, literal(x, 1.0), small / large))
    p = _atan_unit(q)
    p = select(steep, k.half_pi - (p - k.half_pi_lo), p)
    p = select(x.bits() < 0, 2 * k.half_pi - (p - 2 * k.half_pi_lo), p)
    return copysign(select((x != x) | (y != y), literal(x, NAN), p), y)


# ---- the error function -----------------------------------------------------------------------------------------------

def erf_near(a: Value) -> Value:
    """erf(a) on [0, 1]."""
    return fma(polynomial(a * a, *facts(a).erf), a, a)


def erf(x: Value) -> Value:
    k = facts(x)
    a = absolute(x)
    log_erfc = polynomial(at_most(a, k.erf_most), *k.erf_tail)
    return copysign(select(a < 1.0, erf_near(a), 1.0 - exp_normal(log_erfc)), x)


def ndtr(x: Value) -> Value:
    return fma(erf(x * 0.5**0.5), 0.5, 0.5)


COMMON = {f.__name__: f for f in (exp, exp2, expm1, log, log1p, log2, log10, asin, acos, atan, atan2, sinh, cosh, tanh, asinh, acosh, atanh, erf, ndtr)}
