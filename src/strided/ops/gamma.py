"""The gamma function's family: lgamma, digamma, polygamma, mvlgamma as expressions; the incomplete gamma functions and Hurwitz's zeta by NumPy."""
from __future__ import annotations

import functools
import math

from .. import dtypes
from ..autograd import backward, record, tracking
from ..kernels import expr as E
from ..kernels import gamma as G
from ..tensor import Tensor
from . import host
from .eager import pointwise
from .elementwise import Pointwise, fit
from .hostwise import common_float, hostwise
from .table import TABLE, operator

lgamma = pointwise("lgamma", lambda x: E.lgamma(x), kind="float")
digamma = pointwise("digamma", lambda x: E.digamma(x), kind="float")


@functools.cache
def _polygamma(n: int) -> Pointwise:
    if n == 0:
        return digamma
    op = Pointwise("polygamma", lambda x: G.polygamma(n, x), 1, "float", "Polygamma")
    op.gradient = lambda i: lambda g, x, y: g * G.polygamma(n + 1, x)
    return op


def _order(n) -> int:
    if isinstance(n, Tensor) or isinstance(n, float):
        raise TypeError(f"polygamma(): argument 'n' (position 1) must be int, not {type(n).__name__}")
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return int(n)


@operator("polygamma", method=False, out=True, flops=lambda args, kwargs, result: _polygamma(int(args[0])).flops * result.numel())
def polygamma(n, input):
    """The n-th derivative of digamma, n >= 0."""
    return _polygamma(_order(n))(input)


def _polygamma_method(self, n):
    """`x.polygamma(n)`: the n-th derivative of digamma at x."""
    return polygamma(n, self)


def _polygamma_inplace(self, n):
    """In-place form of `polygamma`."""
    return _polygamma(_order(n)).into(self)


Tensor.polygamma, Tensor.polygamma_ = _polygamma_method, _polygamma_inplace  # type: ignore[attr-defined]


@functools.cache
def _mvlgamma(p: int) -> Pointwise:
    shift = p * (p - 1) / 4 * math.log(math.pi)
    return Pointwise("mvlgamma", lambda x: sum((E.lgamma(x - j / 2) for j in range(1, p)), E.lgamma(x)) + shift, 1, "float", "Mvlgamma")


@operator("mvlgamma", out=True, inplace=True)
def mvlgamma(input, p):
    """The logarithm of the multivariate gamma function of dimension p >= 1."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    return _mvlgamma(int(p))(input)


# ---- Hurwitz's zeta ----------------------------------------------------------------------------------------------------------------


def _zeta(s, q):
    """sum of (q + k)^-s over k >= 0: terms up to q + k > 9, the rest by the formula of Euler and Maclaurin."""
    import numpy

    defined = (q != numpy.floor(q)) & (s == numpy.floor(s)) & (s > 1)  # of the negative q
    total, w = q**-s, q.copy()
    for _ in range(10 - int(numpy.floor(numpy.min(q, initial=0.0, where=defined)))):
        w = w + 1
        total += w**-s
    tail, rising, power = w / (s - 1) - 0.5, s, 1 / w
    for j, b in enumerate(G.BERNOULLI):
        tail = tail + power * rising * (b / math.factorial(2 * j + 2))
        rising, power = rising * (s + 2 * j + 1) * (s + 2 * j + 2), power / (w * w)
    total = total + w**-s * tail
    whole = q == numpy.floor(q)
    total = numpy.where(numpy.isinf(q) & (q > 0), 0.0, total)
    total = numpy.where((q <= 0) & whole, numpy.inf, numpy.where((q <= 0) & (s != numpy.floor(s)), numpy.nan, total))
    return numpy.where(s == 1, numpy.inf, numpy.where((s < 1) | numpy.isnan(s) | numpy.isnan(q), numpy.nan, total))


@operator("zeta", namespace="special", method=False, out=True)
def zeta(input, other):
    """Hurwitz's zeta function: the sum of (other + k)^-input over k >= 0. inf at input = 1, NaN below it."""
    out = hostwise("zeta", _zeta, input, other, dtype=common_float(input, other))
    if tracking(input, other):
        record(SpecialZetaBackward0, (input, other), out, (), x=input, q=other)
    return out


@backward("SpecialZeta")
def SpecialZetaBackward0(node, g):
    if node.needs[0]:
        raise NotImplementedError("the derivative for 'zeta' is not implemented.\n  That is the derivative with respect to its first argument: pass it as a number or detached.")
    return None, fit(g * -node.x * zeta(node.x + 1, node.q), node.q.spec)


# ---- the incomplete gamma functions ----------------------------------------------------------------------------------------------------


def _log_gamma(a):
    return host.array(TABLE["lgamma"].call(host.tensor(a, dtypes.float64, dtypes.resolve_device("cpu"))))


def _density(a, x):
    """x^a exp(-x) / Γ(a + 1). For a >= 10 from x/a and Stirling's series, where the large terms would cancel."""
    import numpy

    plain = numpy.exp(a * numpy.log(x) - x - _log_gamma(a + 1))
    big = numpy.where(a < 10, 10.0, a)
    m = (x - big) / big
    stirling = 1 / (12 * big) - 1 / (360 * big**3) + 1 / (1260 * big**5) - 1 / (1680 * big**7) + 1 / (1188 * big**9)
    return numpy.where(a < 10, plain, numpy.exp(big * (numpy.log1p(m) - m) - stirling) / numpy.sqrt(2 * math.pi * big))


def _lower(a, x):
    """P(a, x) = x^a exp(-x) / Γ(a + 1) · sum of x^k / ((a + 1) … (a + k)), for x <= a or x <= 1."""
    import numpy

    term, total, k = numpy.ones_like(a), numpy.ones_like(a), a.copy()
    while True:
        k += 1
        term = term * (x / k)
        total += term
        if not (term > total * 1e-17).any():
            return total * _density(a, x)


def _upper(a, x):
    """Q(a, x) by Legendre's continued fraction, evaluated from the front (Lentz), for x > a and x > 1."""
    import numpy

    b = x + 1 - a
    c, d = numpy.full_like(a, 1e300), 1 / b
    total, k = d.copy(), 0
    while True:
        k += 1
        factor = -k * (k - a)
        b = b + 2
        d = factor * d + b
        c = b + factor / c
        d = 1 / numpy.where(d == 0, 1e-300, d)
        c = numpy.where(c == 0, 1e-300, c)
        total = total * (d * c)
        if not (abs(d * c - 1) > 1e-15).any():  # the factors approach 1 to within a few roundings
            return total * a * _density(a, x)


def _incomplete(upper):
    def function(a, x):
        import numpy

        result = numpy.where((a >= 0) & (x >= 0), 0.0, numpy.nan)
        ordinary = (a > 0) & (x > 0) & numpy.isfinite(a) & numpy.isfinite(x)
        series = ordinary & ((x <= 1) | (x <= a))
        fraction = ordinary & ~series
        below = numpy.where(series[series], _lower(a[series], x[series]), 0.0)
        above = _upper(a[fraction], x[fraction])
        result[series] = 1 - below if upper else below
        result[fraction] = above if upper else 1 - above
        one, zero = (0.0, 1.0) if upper else (1.0, 0.0)
        result = numpy.where((x == numpy.inf) & (a >= 0), one, result)
        result = numpy.where((x == 0) & (a > 0), zero, result)
        result = numpy.where((a == 0) & (x >= 0), numpy.where(x > 0, one, numpy.nan), result)
        return numpy.where(a == numpy.inf, numpy.where(x == numpy.inf, numpy.nan, numpy.where(x >= 0, zero, numpy.nan)), result)

    return function


def _gamma_pair(name, upper, doc):
    function, sign = _incomplete(upper), -1.0 if upper else 1.0

    @backward(name.capitalize())
    def node_class(node, g):
        if node.needs[0]:
            raise NotImplementedError(f"the derivative for '{name}: input' is not implemented.\n  Only that with respect to the second argument is: detach the first.")
        a, x = node.a, node.x
        density = TABLE["exp"].call((a - 1) * TABLE["log"].call(x) - x - TABLE["lgamma"].call(a))
        return None, fit(g * density * sign, x.spec)

    @operator(name, out=True, inplace=True)
    def call(input, other):
        if not dtypes.result_type(input, other).is_floating_point:
            raise NotImplementedError(f'"{name}_cpu" not implemented for \'{dtypes.result_type(input, other).scalar_name}\': convert to float32 first, as in x.float()')
        out = hostwise(name, function, input, other, dtype=common_float(input, other))
        if tracking(input, other):
            record(node_class, (input, other), out, (), a=input, x=other)
        return out

    TABLE[name].doc = call.__doc__ = doc
    return call


igamma = _gamma_pair("igamma", False, "The regularized lower incomplete gamma function P(input, other).")
igammac = _gamma_pair("igammac", True, "The regularized upper incomplete gamma function Q(input, other) = 1 - P.")
