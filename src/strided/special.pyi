"""Special functions, as torch.special has them. Written by tools/stubs.py."""
from builtins import bool as _bool, bytes as _bytes, complex as _complex, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterator
from typing import Any, overload

from strided.tensor import Tensor as Tensor

def airy_ai(input, *, out=None) -> Tensor:
    r"""Airy's function Ai."""
def bessel_j0(input, *, out=None) -> Tensor:
    r"""The Bessel function of the first kind, order 0."""
def bessel_j1(input, *, out=None) -> Tensor:
    r"""The Bessel function of the first kind, order 1."""
def bessel_y0(input, *, out=None) -> Tensor:
    r"""The Bessel function of the second kind, order 0."""
def bessel_y1(input, *, out=None) -> Tensor:
    r"""The Bessel function of the second kind, order 1."""
def chebyshev_polynomial_t(input, n, *, out=None) -> Tensor:
    r"""The Chebyshev polynomial of the first kind of degree n at input; n is a number or a tensor."""
def chebyshev_polynomial_u(input, n, *, out=None) -> Tensor:
    r"""The Chebyshev polynomial of the second kind of degree n at input; n is a number or a tensor."""
def chebyshev_polynomial_v(input, n, *, out=None) -> Tensor:
    r"""The Chebyshev polynomial of the third kind of degree n at input; n is a number or a tensor."""
def chebyshev_polynomial_w(input, n, *, out=None) -> Tensor:
    r"""The Chebyshev polynomial of the fourth kind of degree n at input; n is a number or a tensor."""
def digamma(input, *, out=None) -> Tensor:
    r"""`digamma` of each element of a tensor of any shape, as floats where it holds integers."""
def entr(input, *, out=None) -> Tensor:
    r"""-x log x; 0 at 0, -inf below."""
def erf(input, *, out=None) -> Tensor:
    r"""`erf` of each element of a tensor of any shape, as floats where it holds integers."""
def erfc(input, *, out=None) -> Tensor:
    r"""`erfc` of each element of a tensor of any shape, as floats where it holds integers."""
def erfcx(input, *, out=None) -> Tensor:
    r"""exp(x²) * erfc(x)."""
def erfinv(input, *, out=None) -> Tensor:
    r"""`erfinv` of each element of a tensor of any shape, as floats where it holds integers."""
def exp2(input, *, out=None) -> Tensor:
    r"""`exp2` of each element of a tensor of any shape, as floats where it holds integers."""
def expit(input, *, out=None) -> Tensor:
    r"""`sigmoid` of each element of a tensor of any shape, as floats where it holds integers."""
def expm1(input, *, out=None) -> Tensor:
    r"""`expm1` of each element of a tensor of any shape, as floats where it holds integers."""
def gammainc(input, other, *, out=None) -> Tensor:
    r"""The regularized lower incomplete gamma function P(input, other)."""
def gammaincc(input, other, *, out=None) -> Tensor:
    r"""The regularized upper incomplete gamma function Q(input, other) = 1 - P."""
def gammaln(input, *, out=None) -> Tensor:
    r"""`lgamma` of each element of a tensor of any shape, as floats where it holds integers."""
def hermite_polynomial_h(input, n, *, out=None) -> Tensor:
    r"""The physicist's Hermite polynomial of degree n at input."""
def hermite_polynomial_he(input, n, *, out=None) -> Tensor:
    r"""The probabilist's Hermite polynomial of degree n at input."""
def i0(input, *, out=None) -> Tensor:
    r"""The modified Bessel function of the first kind, order 0."""
def i0e(input, *, out=None) -> Tensor:
    r"""exp(-|x|) * i0(x)."""
def i1(input, *, out=None) -> Tensor:
    r"""The modified Bessel function of the first kind, order 1."""
def i1e(input, *, out=None) -> Tensor:
    r"""exp(-|x|) * i1(x)."""
def laguerre_polynomial_l(input, n, *, out=None) -> Tensor:
    r"""The Laguerre polynomial of degree n at input."""
def legendre_polynomial_p(input, n, *, out=None) -> Tensor:
    r"""The Legendre polynomial of degree n at input."""
def log1p(input, *, out=None) -> Tensor:
    r"""`log1p` of each element of a tensor of any shape, as floats where it holds integers."""
def log_ndtr(input, *, out=None) -> Tensor:
    r"""log(ndtr(x)), accurate far below 0."""
def log_softmax(input, dim, dtype=None, *, out=None) -> Tensor:
    r"""x - log(sum(exp(x))) along `dim`, without overflow."""
def logit(input, eps=None, *, out=None) -> Tensor:
    r"""log(x / (1 - x)); with eps, x is first limited to [eps, 1 - eps]. An eps below 0 limits nothing, as in PyTorch."""
def logsumexp(input, dim, keepdim=False, *, out=None) -> Tensor:
    r"""log(sum(exp(x))) along `dim` (an int or several), without overflow."""
def modified_bessel_i0(input, *, out=None) -> Tensor:
    r"""The modified Bessel function of the first kind, order 0."""
def modified_bessel_i1(input, *, out=None) -> Tensor:
    r"""The modified Bessel function of the first kind, order 1."""
def modified_bessel_k0(input, *, out=None) -> Tensor:
    r"""The modified Bessel function of the second kind, order 0."""
def modified_bessel_k1(input, *, out=None) -> Tensor:
    r"""The modified Bessel function of the second kind, order 1."""
def multigammaln(input, p, *, out=None) -> Tensor:
    r"""The logarithm of the multivariate gamma function of dimension p >= 1."""
def ndtr(input, *, out=None) -> Tensor:
    r"""The area under the standard normal density up to x."""
def ndtri(input, *, out=None) -> Tensor:
    r"""The x for which ndtr(x) is the given p."""
def polygamma(n, input, *, out=None) -> Tensor:
    r"""The n-th derivative of digamma, n >= 0."""
def psi(input, *, out=None) -> Tensor:
    r"""`digamma` of each element of a tensor of any shape, as floats where it holds integers."""
def round(input, *, decimals=0, out=None) -> Tensor:
    r"""`round` of each element of a tensor of any shape."""
def scaled_modified_bessel_k0(input, *, out=None) -> Tensor:
    r"""exp(x) * modified_bessel_k0(x)."""
def scaled_modified_bessel_k1(input, *, out=None) -> Tensor:
    r"""exp(x) * modified_bessel_k1(x)."""
def shifted_chebyshev_polynomial_t(input, n, *, out=None) -> Tensor:
    r"""The Chebyshev polynomial of the first kind of degree n at 2 * input - 1."""
def shifted_chebyshev_polynomial_u(input, n, *, out=None) -> Tensor:
    r"""The Chebyshev polynomial of the second kind of degree n at 2 * input - 1."""
def shifted_chebyshev_polynomial_v(input, n, *, out=None) -> Tensor:
    r"""The Chebyshev polynomial of the third kind of degree n at 2 * input - 1."""
def shifted_chebyshev_polynomial_w(input, n, *, out=None) -> Tensor:
    r"""The Chebyshev polynomial of the fourth kind of degree n at 2 * input - 1."""
def sinc(input, *, out=None) -> Tensor:
    r"""`sinc` of each element of a tensor of any shape, as floats where it holds integers."""
def softmax(input, dim, dtype=None, *, out=None) -> Tensor:
    r"""exp(x) / sum(exp(x)) along `dim`, computed from x - max(x). `dtype`: convert first. Raises IndexError for a dimension out of range."""
def spherical_bessel_j0(input, *, out=None) -> Tensor:
    r"""The spherical Bessel function of the first kind, order 0: sin(x) / x."""
def xlog1py(input, other, *, out=None) -> Tensor:
    r"""x * log1p(y), 0 where x is 0."""
def xlogy(input, other, *, out=None) -> Tensor:
    r"""`xlogy` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote, then to a floating one."""
def zeta(input, other, *, out=None) -> Tensor:
    r"""Hurwitz's zeta function: the sum of (other + k)^-input over k >= 0. inf at input = 1, NaN below it."""
