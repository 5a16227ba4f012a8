"""Elementary functions as straight-line IR: `definitions` gives the text of `@m_exp_f32` and its kin.

Every float32 function here is branch-free scalar code (selects, bit manipulation, fused multiply-adds), so that LLVM's loop vectoriser
widens a loop over it to full vectors. The float64 ones are in mathlib_double.py. Polynomials are minimax fits (weighted for relative
error) of the function named, with coefficients rounded to the format one after another. Nothing here knows of tensors or loops.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable

from .scalar import Code, Value, absolute, at_least, at_most, call, copysign, fma, intrinsic, polynomial, select, sqrt

INF, NAN = float("inf"), float("nan")
SIGN = 0x80000000
LN2, LN2_HI, LN2_LO = 0.6931471805599453, 0.693145751953125, 1.428606765330187e-06  # HI has 15 bits: HI times an exponent is exact
LOG2E, LOG2E_LO = 1.4426950216293335, 1.925963033500011e-08
LOG10E, LOG10E_LO = 0.4342944920063019, -1.0103049952192578e-08
LOG10_2_HI, LOG10_2_LO = 0.301025390625, 4.605039066518657e-06
HALF_PI, HALF_PI_LO, HALF_PI_LOWEST = 1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15
PI, PI_LO = 3.1415927410125732, -8.742277657347586e-08


# ---- exponentials -----------------------------------------------------------------------------------------------------

MAGIC, MAGIC_BITS = 1.5 * 2**23 + 254, 0x4B400000 + 254  # 254: the exponent's bias twice, once for each half of `_scale`


def _power_parts(x: Value) -> tuple[Value, Value]:
    """x = n·ln 2 + r -> (r, n + 254 in the low bits): adding 1.5·2^23 rounds to an integer and leaves it in the mantissa."""
    t = fma(x, LOG2E, MAGIC)
    n = t - MAGIC
    r = fma(n, -LN2_HI, x)
    return fma(n, -LN2_LO, r), t.bits()


def _exp_minus_1(r: Value) -> Value:
    """exp(r) - 1 on |r| <= ln(2)/2."""
    p = polynomial(r, 0.00139385543, 0.00836917106, 0.0416664258, 0.166665167, 0.5)
    return fma(p, r * r, r)


def _scale(p: Value, n: Value) -> Value:
    """p·2^n in two exact halves, so that only the last multiplication rounds into the subnormals or overflows."""
    half = n >> 1
    return p * (half << 23).floating() * ((n - half) << 23).floating()


def exp(x: Value) -> Value:
    x = at_least(at_most(x, 89.0), -104.0)
    r, n = _power_parts(x)
    return _scale(_exp_minus_1(r) + 1.0, n)


def _exp_normal(x: Value) -> Value:
    """exp where the result is known to be a normal number: one scaling."""
    r, n = _power_parts(x)
    return (_exp_minus_1(r) + 1.0) * ((n - 127) << 23).floating()


def exp2(x: Value) -> Value:
    x = at_least(at_most(x, 129.0), -151.0)
    t = x + MAGIC
    r = x - (t - MAGIC)
    p = polynomial(r, 0.000154569352, 0.00133917655, 0.0096180765, 0.0555035807, 0.240226507, 0.693147182, 1.0)
    return _scale(p, t.bits())


def expm1(x: Value) -> Value:
    y = at_least(at_most(x, 89.0), -18.0)
    r, n = _power_parts(y)
    small = _exp_minus_1(r)
    # 2^n·(exp(r) - 1) + (2^n - 1), at half its size so that 2^128 stays in range; 2^n - 1 is exact wherever it matters
    half = ((n - 128) << 23).floating()
    wide = fma(half, small, half - 0.5)
    return copysign(select(n == MAGIC_BITS, small, wide + wide), x)


def _half_exp(a: Value) -> Value:
    """exp(a)/2, in range as long as the half is."""
    a = at_most(a, 90.0)
    r, n = _power_parts(a)
    return _scale(_exp_minus_1(r) + 1.0, n - 1)


def sinh(x: Value) -> Value:
    a = absolute(x)
    z = a * a
    near = fma(polynomial(z, 2.78390962e-06, 0.000198426365, 0.00833331142, 0.166666672) * z, a, a)
    h = _half_exp(a)
    return copysign(select(a < 1.0, near, h - 0.25 / h), x)


def cosh(x: Value) -> Value:
    h = _half_exp(absolute(x))
    return h + 0.25 / h


def tanh(x: Value) -> Value:
    a = at_most(absolute(x), 10.0)
    z = a * a
    near = fma(polynomial(z, -0.00568139926, 0.0206202175, -0.0537347309, 0.133313939, -0.333332807) * z, a, a)
    far = 1.0 - 2.0 / (_exp_normal(a + a) + 1.0)
    return copysign(select(a < 0.625, near, far), x)


# ---- logarithms -------------------------------------------------------------------------------------------------------

TWO_THIRDS = 0x3F2AAAAB  # mantissas are taken in [2/3, 4/3): f = m - 1 is then small and symmetric, and 0 exponent means near 1


def _split(x: Value) -> tuple[Value, Value]:
    """Positive x = 2^e·m -> (integer e, m); subnormals are first scaled into the normal range."""
    tiny = x < 2.0**-126
    i = select(tiny, x * 2.0**23, x).bits() - TWO_THIRDS
    return i.ashr(23) + select(tiny, x.code.value(-23, "i32"), 0), ((i & 0x7FFFFF) + TWO_THIRDS).floating()


def _log_specials(x: Value, result: Value) -> Value:
    """The ends of every logarithm: log(inf) = inf, log(0) = -inf, of a negative number or NaN: NaN."""
    return select(x > 0.0, select(x < INF, result, x), select(x == 0.0, x.code.value(-INF, "float"), NAN))


def _log1p_series(f: Value) -> Value:
    """(log(1+f) - f)/f² on [-1/3, 1/3]."""
    return polynomial(f, -0.131881803, 0.139618158, -0.121159345, 0.140110537, -0.166854069, 0.200100347, -0.249996901, 0.333332241, -0.5)


def _log_of(f: Value, e: Value) -> Value:
    """log((1+f)·2^e): the large terms are added last."""
    low = fma(_log1p_series(f), f * f, e * LN2_LO)
    return fma(e, LN2_HI, f + low)


def _log_positive(x: Value) -> Value:
    e, m = _split(x)
    return _log_of(m - 1.0, e.to("float"))


def log(x: Value) -> Value:
    return _log_specials(x, _log_positive(x))


def log2(x: Value) -> Value:
    e, m = _split(x)
    f = m - 1.0
    p = polynomial(f, -0.192633808, 0.201996654, -0.174069986, 0.202005416, -0.240798056, 0.288693249, -0.360665828, 0.480896562, -0.72134757)
    return _log_specials(x, fma(f, LOG2E, fma(f, LOG2E_LO, p * (f * f))) + e.to("float"))


def log10(x: Value) -> Value:
    e, m = _split(x)
    f, e = m - 1.0, e.to("float")
    p = polynomial(f, -0.0574870817, 0.0607306585, -0.0525520965, 0.0608274192, -0.0724712089, 0.086904034, -0.108571939, 0.144764319, -0.217147246)
    low = fma(e, LOG10_2_LO, fma(f, LOG10E_LO, p * (f * f)))
    return _log_specials(x, fma(e, LOG10_2_HI, fma(f, LOG10E, low)))


def _log1p_positive(x: Value, doublings: Value | None = None) -> Value:
    """log(1+x) + doublings·log 2 for -1 < x < inf."""
    u = x + 1.0
    i = u.bits() - TWO_THIRDS
    n = i.ashr(23)
    # f = x/2^n + (1/2^n - 1) keeps every bit of a small x; a large x has none to lose, and 1/2^n would leave the normal range
    shrink = ((127 - n) << 23).floating()
    f = select(n > 24, ((i & 0x7FFFFF) + TWO_THIRDS).floating() - 1.0, fma(x, shrink, shrink - 1.0))
    e = n.to("float")
    return _log_of(f, e if doublings is None else e + doublings)


def log1p(x: Value) -> Value:
    result = select(x > -1.0, select(x < INF, _log1p_positive(x), x), select(x == -1.0, x.code.value(-INF, "float"), NAN))
    return copysign(result, x)


def asinh(x: Value) -> Value:
    # log(a + sqrt(a² + 1)) = log1p(a + a²/(1 + sqrt(a² + 1))); from 2^40 on it is log(2a)
    a = absolute(x)
    big = a > 2.0**40
    t = select(big, a, fma(a, a / (1.0 + sqrt(fma(a, a, 1.0))), a))
    return copysign(select(a < INF, _log1p_positive(t, select(big, x.code.value(1.0, "float"), 0.0)), a), x)


def acosh(x: Value) -> Value:
    # log(x + sqrt(x² - 1)) = log1p(d + sqrt(d² + 2d)) with d = x - 1
    big = x > 2.0**40
    d = x - 1.0
    t = select(big, x, d + sqrt(fma(d, d, d + d)))
    result = _log1p_positive(t, select(big, x.code.value(1.0, "float"), 0.0))
    return select(x >= 1.0, select(x < INF, result, x), NAN)


def atanh(x: Value) -> Value:
    a = absolute(x)
    z = a * a
    near = fma(polynomial(z, 0.177205697, 0.050967887, 0.118348189, 0.14221321, 0.200026006, 0.333332986) * z, a, a)
    far = 0.5 * _log1p_positive((a + a) / (1.0 - a))
    return copysign(select(a < 0.5, near, select(a < 1.0, far, select(a == 1.0, x.code.value(INF, "float"), NAN))), x)


# ---- power ------------------------------------------------------------------------------------------------------------

def _exp2_double(t: Value) -> Value:
    """2^t in float64 for |t| < 1000, to 2^-34."""
    magic = 1.5 * 2.0**52
    shifted = t + magic
    return polynomial(t - (shifted - magic), *POW_EXP2) * ((shifted.bits() + 1023) << 52).floating()


def pow(x: Value, y: Value) -> Value:
    """In float64 inside: y·log2 x to 2^-31 absolute, so that exact powers come out exact and all others within a rounding."""
    a = absolute(x)
    e, m = _split(a)
    f = m.to("double") - 1.0
    log2_m = f * polynomial(f, *POW_LOG2)
    t = y.to("double") * (log2_m + e.to("double"))
    t = at_least(at_most(t, 200.0), -200.0)
    size = _exp2_double(t).to("float")
    # 0, inf: the exponent decides; 1^y and x^0 are 1 whatever the other is
    grows = (a > 1.0) ^ (y < 0.0)
    size = select((a == 0.0) | (a == INF), select(grows, x.code.value(INF, "float"), 0.0), size)
    size = select((a == 1.0) | (y == 0.0), x.code.value(1.0, "float"), size)
    # infinite exponents: t was ±200, which is far enough. NaN of either passes through t.
    whole = intrinsic("trunc", y) == y
    half = y * 0.5
    odd = whole & (intrinsic("trunc", half) != half)
    negative = x.bits() < 0
    size = select((x < 0.0) & (x > -INF) & ~whole, x.code.value(NAN, "float"), size)
    size = select((x != x) & (y != 0.0) | (y != y) & (x != 1.0), x.code.value(NAN, "float"), size)
    return select(odd & negative, -size, size)


POW_LOG2 = (
    -0.15463589165712327, 0.15779027687472194, -0.11026091191556658, 0.1234798036325494, -0.14521788771805832, 0.16090163592960596, -0.18028889113022112,
    0.20607537075297919, -0.24045042313560708, 0.28853945754641958, -0.3606737457474527, 0.4808983438106576, -0.72134752049288198, 1.4426950408925079,
)
POW_EXP2 = (1.5315156521769139e-05, 0.00015467754158436317, 0.0013333429249790219, 0.0096180350296715244, 0.055504109653420598, 0.2402265108755508, 0.69314718054096358, 1.0)


def fmod(x: Value, y: Value) -> Value:
    """Exact, hence a call of libm: quotients reach 2^277."""
    return x.code.emit("float", f"frem float {x.name}, {y.name}")


# ---- trigonometry -----------------------------------------------------------------------------------------------------

TWO_OVER_PI_WORDS = (0x00517CC1B727220A, 0x94FE13ABE8FA9A6E, 0xE06DB14ACC9E21C8, 0x20FF28B1D5EF5DE2)  # 2/π·2^-9 after the point


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
    words = [a.code.value(w, "i64") for w in TWO_OVER_PI_WORDS]
    w0, w1, w2 = (select(second, late, early) for early, late in zip(words, words[1:]))
    high, low = intrinsic("fshl", w0, w1, shift), intrinsic("fshl", w1, w2, shift)
    turns = mantissa * high + ((mantissa * (low >> 32)) >> 32)
    n_big = (turns + (1 << 61)) >> 62
    far = (turns - (n_big << 62)).to("double") * (1.5707963267948966 * 2.0**-62)
    big = a > 1e6
    exact = select(big, far, near)
    r = exact.to("float")
    return r, (exact - r.to("double")).to("float"), select(big, n_big.to("i32"), t.bits())


def _sin_cos_poly(r: Value) -> tuple[Value, Value]:
    z = r * r
    s = fma(polynomial(z, -0.000195084373, 0.00833210908, -0.166666538) * z, r, r)
    c = fma(polynomial(z, 2.44306866e-05, -0.00138873013, 0.0416666456), z * z, fma(z, -0.5, 1.0))
    return s, c


def sin(x: Value) -> Value:
    a = absolute(x)
    r, _, n = _quadrant(a)
    s, c = _sin_cos_poly(r)
    y = select((n & 1) == 0, s, c)
    y = (y.bits() ^ ((n << 30) & SIGN) ^ (x.bits() & SIGN)).floating()
    return select(a < INF, y, NAN)


def cos(x: Value) -> Value:
    a = absolute(x)
    r, _, n = _quadrant(a)
    s, c = _sin_cos_poly(r)
    y = select((n & 1) == 0, c, s)
    y = (y.bits() ^ (((n + 1) << 30) & SIGN)).floating()
    return select(a < INF, y, NAN)


def tan(x: Value) -> Value:
    a = absolute(x)
    r, lost, n = _quadrant(a)
    z = r * r
    p = polynomial(z, 0.00452842005, -0.000222352319, 0.0110854683, 0.0211839732, 0.0540794469, 0.133324847, 0.333333552)
    t = fma(p * z, r, fma(z, lost, lost)) + r  # near a pole every lost bit of the angle counts
    y = select((n & 1) == 0, t, -1.0 / t)
    y = (y.bits() ^ (x.bits() & SIGN)).floating()
    return select(a < INF, y, NAN)


def _asin_poly(s: Value, z: Value) -> Value:
    """asin(s), s² = z <= 0.542²."""
    return fma(polynomial(z, 0.0438771732, 0.00971485209, 0.0331076533, 0.0443553254, 0.0750137642, 0.166666448) * z, s, s)


def _asin_parts(x: Value) -> tuple[Value, Value]:
    """(whether |x| > 0.5415, asin of |x| or of sqrt((1-|x|)/2)); NaN beyond 1. Past that border 2·asin is below 1, so its rounding is small."""
    a = absolute(x)
    far = a > 0.5415
    z = select(far, fma(a, -0.5, 0.5), a * a)
    return far, _asin_poly(select(far, sqrt(z), a), z)


def asin(x: Value) -> Value:
    far, p = _asin_parts(x)
    return copysign(select(far, fma(p, -2.0, HALF_PI) + HALF_PI_LO, p), x)


def acos(x: Value) -> Value:
    far, p = _asin_parts(x)
    negative = x < 0.0
    twice = p + p
    ends = select(negative, PI - twice, twice)
    middle = HALF_PI - (copysign(p, x) - HALF_PI_LO)
    return select(far, ends, middle)


def _atan_poly(q: Value) -> Value:
    """atan(q) on [0, 1]."""
    z = q * q
    p = polynomial(z, -0.00182323053, 0.0110468576, -0.0314234123, 0.0582026355, -0.0841762424, 0.109569579, -0.14265129, 0.199986279, -0.333333015)
    return fma(p * z, q, q)


def atan(x: Value) -> Value:
    a = absolute(x)
    far = a > 1.0
    p = _atan_poly(select(far, 1.0 / a, a))
    return copysign(select(far, HALF_PI - (p - HALF_PI_LO), p), x)


def atan2(y: Value, x: Value) -> Value:
    a, b = absolute(y), absolute(x)
    steep = a > b
    small, large = select(steep, b, a), select(steep, a, b)
    # 0/0 counts as 0 and inf/inf as 1; NaN of either stays
    q = select(large == 0.0, x.code.value(0.0, "float"), select(small == INF, x.code.value(1.0, "float"), small / large))
    p = _atan_poly(q)
    p = select(steep, HALF_PI - (p - HALF_PI_LO), p)
    p = select(x.bits() < 0, PI - (p - PI_LO), p)
    return copysign(select((x != x) | (y != y), x.code.value(NAN, "float"), p), y)


# ---- the error function -----------------------------------------------------------------------------------------------

def _erf_near(a: Value) -> Value:
    """erf(a) on [0, 1]."""
    p = polynomial(a * a, 7.8078745e-05, -0.000799810456, 0.00518718315, -0.0268533528, 0.112835787, -0.37612626, 0.128379166)
    return fma(p, a, a)


def erf(x: Value) -> Value:
    a = absolute(x)
    b = at_most(a, 4.0)
    log_erfc = polynomial(b, 0.000186711215, -0.00295127765, 0.0218540728, -0.103143558, -0.638098419, -1.12711966, -0.000333380216)
    return copysign(select(a < 1.0, _erf_near(a), 1.0 - _exp_normal(log_erfc)), x)


def erfc(x: Value) -> Value:
    a = absolute(x)
    b = at_most(a, 10.25)
    # erfc(b)·exp(b²)·(2b+1) is nearly flat; exp(-b²) magnifies the rounding of b², so the factors are float64
    flat = polynomial((b - 2.0) / (b + 2.0), *ERFC_FLAT)
    d = b.to("double")
    tail = (_exp2_double(d * d * -1.4426950408889634) * flat.to("double") / (d + d + 1.0)).to("float")
    return select(x < 0.5, select(x > -0.5, 1.0 - copysign(_erf_near(a), x), 2.0 - tail), tail)


ERFC_FLAT = (
    -0.000227706652, -0.00128524797, 0.00115611102, 0.00867558178, -0.00801135786, -0.0542158261, 0.164049804, -0.166030362, -0.0927638188, 1.27697837,
)


def erfinv(x: Value) -> Value:
    # x·P(w) in w = -log(1 - x²); the square root straightens the tail
    w = -_log_positive(fma(-x, x, 1.0))
    near = polynomial(w, *ERFINV_NEAR)
    tail = polynomial(sqrt(w) - 3.0, *ERFINV_TAIL)
    a = absolute(x)
    result = x * select(w < 5.0, near, tail)
    return select(a < 1.0, result, select(a == 1.0, copysign(x.code.value(INF, "float"), x), NAN))


ERFINV_NEAR = (
    2.09068451e-09, -6.06020407e-08, 7.65610935e-07, -5.13785926e-06, 1.50419883e-05, 2.0704616e-05, -9.62660197e-05, -0.00235764473, 0.0115574813,
    0.232012525, 0.886226952,
)
ERFINV_TAIL = (
    0.000111846733, -0.000306230708, -5.11937542e-05, 0.00148055179, -0.00359972776, 0.0056888815, -0.00763714127, 0.00944499671, 1.00167501, 2.83297682,
)


# ---- the face ---------------------------------------------------------------------------------------------------------

FLOAT: dict[str, Callable[..., Value]] = {
    f.__name__: f
    for f in (exp, exp2, expm1, log, log1p, log2, log10, sin, cos, tan, asin, acos, atan, atan2, sinh, cosh, tanh, asinh, acosh, atanh, erf, erfc, erfinv, pow, fmod)
}
BINARY = frozenset({"atan2", "pow", "fmod"})
LIBM = frozenset(FLOAT) - {"erfinv"} | {"lgamma"}


def define(name: str, function: Callable[..., Value], type: str, suffix: str, use_fma: bool) -> str:
    """`function` as the text of an internal function `@m_name_suffix`."""
    code = Code(use_fma)
    names = ("%x", "%y") if name in BINARY else ("%x",)
    result = function(*(Value(code, n, type) for n in names))
    arguments = ", ".join(f"{type} {n}" for n in names)
    body = "\n".join(code.lines)
    return f"define internal {type} @m_{name}_{suffix}({arguments}) alwaysinline nounwind {{\n{body}\n  ret {type} {result.name}\n}}\n"


def definitions(names: Iterable[str], type: str) -> str:
    """IR text of `@m_<name>_f32` (float) or `@m_<name>_f64` (double) for each name, in a stable order, each once.

    Raises NotImplementedError for a name that has no definition in that type.
    """
    from . import jit

    use_fma = jit.host().fma
    return "\n".join(_definition(name, type, use_fma) for name in sorted(set(names)))


def _definition(name: str, type: str, use_fma: bool) -> str:
    if type == "f32" and name in FLOAT:
        return define(name, FLOAT[name], "float", "f32", use_fma)
    if type == "f64" and name in LIBM:
        arguments = "double, double" if name in BINARY else "double"
        def through(*args: Value) -> Value:
            return call(name, *args)
        return f"declare double @{name}({arguments})\n" + define(name, through, "double", "f64", use_fma)
    raise NotImplementedError(f"no {type} definition of {name!r}; there are {', '.join(sorted(FLOAT))}")
