"""Kullback-Leibler divergences of pairs of distributions: `kl_divergence` and `register_kl` for pairs of one's own."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import linalg, ops
from ..tensor import Tensor
from .base import Distribution, Independent
from .classes import Bernoulli, Categorical, Geometric, OneHotCategorical
from .gammas import Gamma, Poisson
from .matrices import Wishart, multidigamma
from .numbers import Cauchy, Exponential, HalfNormal, Laplace, LogNormal, Normal, Uniform
from .transformed import TransformedDistribution
from .utils import sum_rightmost
from .vectors import Beta, Dirichlet, LowRankMultivariateNormal, MultivariateNormal, mahalanobis

_PAIRS: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable], Callable]:
    """A decorator: the function computes KL(p ‖ q) for these kinds and their subclasses."""
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def register(function: Callable) -> Callable:
        _PAIRS[type_p, type_q] = function
        return function

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence KL(p ‖ q), by the function of the nearest registered kinds. Raises NotImplementedError for other pairs."""
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            if (a, b) in _PAIRS:
                return _PAIRS[a, b](p, q)
    raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}")


def _softplus(x: Tensor) -> Tensor:
    return ops.logaddexp(x, ops.zeros_like(x))


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio, shift = (p.scale / q.scale) ** 2, ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + shift - 1 - ratio.log())


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    t = p.probs * (p.logits - q.logits)
    t = ops.where((q.probs == 0).expand_as(t), ops.full_like(t, math.inf), t)
    return ops.where((p.probs == 0).expand_as(t), ops.zeros_like(t), t).sum(-1)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    one = p.probs * (_softplus(-q.logits) - _softplus(-p.logits))
    one = ops.where(q.probs == 0, ops.full_like(one, math.inf), one)
    one = ops.where(p.probs == 0, ops.zeros_like(one), one)
    zero = (1 - p.probs) * (_softplus(q.logits) - _softplus(p.logits))
    zero = ops.where(q.probs == 1, ops.full_like(zero, math.inf), zero)
    return one + ops.where(p.probs == 1, ops.zeros_like(zero), zero)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - ops.log1p(-q.probs) / p.probs - q.logits


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    return b * (p.rate / q.rate).log() + ops.lgamma(b) - ops.lgamma(a) + (a - b) * ops.digamma(a) + (q.rate - p.rate) * (a / p.rate)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * ops.exp(-away / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return ops.where((q.low > p.low) | (q.high < p.high), math.inf, result)


@register_kl(Uniform, Normal)
def _uniform_normal(p: Any, q: Any) -> Tensor:
    width = p.high - p.low
    shift = ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return (math.sqrt(math.pi * 2) * q.scale / width).log() + 0.5 * (width / q.scale).pow(2) / 12 + 0.5 * shift / q.scale**2


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(LogNormal, LogNormal)
def _log_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL of two transformed distributions needs the same transforms and shapes of events")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    size = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return size + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two Multivariate Normals with different event shapes cannot be computed")
    a, b = p.scale_tril, q.scale_tril
    half = b.diagonal(dim1=-2, dim2=-1).log().sum(-1) - a.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    spread = linalg.solve_triangular(b, a, upper=False).pow(2).sum((-2, -1))
    return half + 0.5 * (spread + mahalanobis(b, q.loc - p.loc) - p.event_shape[0])


@register_kl(Wishart, Wishart)
def _wishart(p: Any, q: Any) -> Tensor:
    # PyTorch 2.13 has no rule for this pair and takes the exponential family's, which gives it values below zero: these are not its.
    a, b, n = p.df, q.df, p.event_shape[0]
    spread = linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False).pow(2).sum((-2, -1))  # trace(V_q^-1 V_p)
    sizes = ops.mvlgamma(0.5 * b, n) - ops.mvlgamma(0.5 * a, n) + b * (q._half_log_det() - p._half_log_det())
    return sizes + 0.5 * (a * (spread - n) + (a - b) * multidigamma(0.5 * a, n))


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank(p: Any, q: Any) -> Tensor:
    return _multivariate(p, q)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
