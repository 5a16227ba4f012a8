"""Distributions made of gamma numbers: Gamma, Chi2, InverseGamma, FisherSnedecor, StudentT; and Poisson. How the numbers are drawn is ops/rejection.py's work."""
from __future__ import annotations

import math
from typing import Any

from .. import constraints, ops
from ..autograd import no_grad
from ..dtypes import finfo
from ..ops.data import as_tensor
from ..special import gammainc
from ..tensor import Tensor
from .base import Distribution, ExponentialFamily
from .transformed import TransformedDistribution
from .transforms import PowerTransform
from .utils import broadcast_all, standard_normal


class Gamma(ExponentialFamily):
    """Sums of `concentration` exponential waiting times at `rate`."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    mean = property(lambda self: self.concentration / self.rate)  # type: ignore[assignment]
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))  # type: ignore[assignment]
    variance = property(lambda self: self.concentration / self.rate.pow(2))  # type: ignore[assignment]

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return (ops._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)).clamp(min=finfo(self.rate.dtype).tiny)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            drawn = ops._standard_gamma(self.concentration.detach().expand(shape)) / self.rate.expand(shape)
            return drawn.clamp(min=finfo(self.rate.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        value = as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return ops.xlogy(a, rate) + ops.xlogy(a - 1, value) - rate * value - ops.lgamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - ops.log(self.rate) + ops.lgamma(a) + (1.0 - a) * ops.digamma(a)


class Chi2(Gamma):
    """Sums of `df` squared normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None):
        (df,) = broadcast_all(df)
        super().__init__(0.5 * df, ops.full_like(df, 0.5), validate_args=validate_args)

    df = property(lambda self: self.concentration * 2)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(Chi2, _instance))


class InverseGamma(TransformedDistribution):
    """1 / x, x a gamma number."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive  # type: ignore[assignment]
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(InverseGamma, _instance))

    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)
    mode = property(lambda self: self.rate / (self.concentration + 1))  # type: ignore[assignment]

    @property
    def mean(self) -> Tensor:
        return ops.where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return ops.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class StudentT(Distribution):
    """A normal number over the root of a chi-squared one's mean, moved by `loc` and widened by `scale`."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    mode = property(lambda self: self.loc)  # type: ignore[assignment]

    @property
    def mean(self) -> Tensor:
        return ops.where(self.df > 1, self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        return ops.where(self.df > 2, finite, ops.where(self.df > 1, ops.full_like(finite, math.inf), math.nan))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        x = standard_normal(self._extended_shape(sample_shape), self.df)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * ops.rsqrt(z / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        y = (value - self.loc) / self.scale
        z = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + ops.lgamma(0.5 * self.df) - ops.lgamma(0.5 * (self.df + 1.0))
        return -0.5 * (self.df + 1.0) * ops.log1p(y**2.0 / self.df) - z

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        beta = ops.lgamma(half) + math.lgamma(0.5) - ops.lgamma(more)
        return self.scale.log() + more * (ops.digamma(more) - ops.digamma(half)) + 0.5 * self.df.log() + beta


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared numbers' means, of `df1` and `df2` degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return ops.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        return ops.where(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), math.nan)

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, self.df2
        return ops.where(b > 4, 2 * b.square() * (a + b - 2) / (a * (b - 2).square() * (b - 4)), math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        above, below = self._gamma1.rsample(sample_shape).view(shape), self._gamma2.rsample(sample_shape).view(shape)
        return (above / below.clamp(min=finfo(below.dtype).tiny)).clamp(min=finfo(below.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        constant = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return constant + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()


class Poisson(ExponentialFamily):
    """Counts of events of mean `rate`."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = property(lambda self: self.rate)  # type: ignore[assignment]
    mode = property(lambda self: self.rate.floor())  # type: ignore[assignment]
    variance = property(lambda self: self.rate)  # type: ignore[assignment]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return ops.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return ops.xlogy(value, rate) - rate - (value + 1).lgamma()
