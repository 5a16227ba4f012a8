"""The rarer distributions: VonMises, ContinuousBernoulli, Kumaraswamy, LogisticNormal, GeneralizedPareto. Samples are PyTorch's for the same seed."""
from __future__ import annotations

import math
from typing import Any

from .. import constraints, ops
from ..autograd import no_grad
from ..dtypes import float64
from ..special import i0e, i1e
from ..tensor import Tensor
from .base import Distribution, ExponentialFamily
from .numbers import Normal, Uniform
from .transformed import TransformedDistribution
from .transforms import AffineTransform, PowerTransform, StickBreakingTransform
from .utils import broadcast_all, clamp_probs, euler_constant, lazy_property, logits_to_probs, one_of, probs_to_logits


class VonMises(Distribution):
    """Angles in [−π, π) around `loc`, in radians; the larger `concentration`, the closer. Source of the sampler: Best and Fisher 1979."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = property(lambda self: self.loc)  # type: ignore[assignment]
    mode = property(lambda self: self.loc)  # type: ignore[assignment]

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        kappa = self.concentration
        return kappa * ops.cos(value - self.loc) - math.log(2 * math.pi) - (i0e(kappa).log() + kappa)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            loc, kappa = self.loc.to(float64), self.concentration.to(float64)
            tau = 1 + (1 + 4 * kappa**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
            r = ops.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))  # of the wrapped Cauchy distribution that is drawn from
            x = ops.empty(shape, dtype=float64)
            done = ops.zeros(shape, dtype=ops.tensor(True).dtype)
            while not bool(done.all()):
                u1, u2, u3 = ops.rand((3, *shape), dtype=float64).unbind()
                z = ops.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accepted = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                x = ops.where(accepted, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accepted
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        if type(self).__init__ is not VonMises.__init__ and _instance is None:
            raise NotImplementedError(f"Subclass {type(self).__name__} of VonMises that defines a custom __init__ method must also define a custom .expand() method.")
        return type(self)(self.loc.expand(batch_shape), self.concentration.expand(batch_shape), validate_args=False)


class ContinuousBernoulli(ExponentialFamily):
    """Numbers x in [0, 1] with density C · p^x (1−p)^(1−x). Give `probs` or `logits`; between `lims` the formulas, which have 0/0 at p = ½, are Taylor's."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501), validate_args: bool | None = None):
        one_of(probs, logits)
        if probs is not None:
            (value,) = broadcast_all(probs)
            if validate_args is not None and validate_args and not bool(constraints.unit_interval.check(value).all()):
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(value)
        else:
            (self.logits,) = broadcast_all(logits)
            value = self.logits
        self._lims = lims
        super().__init__(value.shape, validate_args=validate_args)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(ContinuousBernoulli, _instance)
        new._lims = self._lims
        for name in ("probs", "logits"):
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(batch_shape)
        super(ContinuousBernoulli, new).__init__(batch_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def _outside(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    @property
    def _cut(self) -> Tensor:
        """Probabilities for which the formulas are exact."""
        return ops.where(self._outside, self.probs, self._lims[0] * ops.ones_like(self.probs))

    def _log_constant(self) -> Tensor:
        cut = self._cut
        below = ops.where(cut <= 0.5, cut, ops.zeros_like(cut))
        above = ops.where(cut >= 0.5, cut, ops.ones_like(cut))
        exact = (ops.log1p(-cut) - cut.log()).abs().log() - ops.where(cut <= 0.5, ops.log1p(-2 * below), (2 * above - 1).log())
        x = (self.probs - 0.5) ** 2
        return ops.where(self._outside, exact, math.log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Tensor:
        cut, x = self._cut, self.probs - 0.5
        exact = cut / (2 * cut - 1) + 1 / (ops.log1p(-cut) - cut.log())
        return ops.where(self._outside, exact, 0.5 + (1 / 3 + 16 / 45 * x**2) * x)

    stddev = property(lambda self: self.variance.sqrt())  # type: ignore[assignment]

    @property
    def variance(self) -> Tensor:
        cut, x = self._cut, (self.probs - 0.5) ** 2
        exact = cut * (cut - 1) / (1 - 2 * cut) ** 2 + 1 / (ops.log1p(-cut) - cut.log()) ** 2
        return ops.where(self._outside, exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    param_shape = property(lambda self: (self.probs if "probs" in self.__dict__ else self.logits).shape)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(ops.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        from ..nn.functional import binary_cross_entropy_with_logits

        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._log_constant()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        cut = self._cut
        exact = (cut**value * (1 - cut) ** (1 - value) + cut - 1) / (2 * cut - 1)
        inside = ops.where(self._outside, exact, value)
        return ops.where(value <= 0, ops.zeros_like(value), ops.where(value >= 1, ops.ones_like(value), inside))

    def icdf(self, value: Tensor) -> Tensor:
        cut = self._cut
        exact = (ops.log1p(-cut + value * (2 * cut - 1)) - ops.log1p(-cut)) / (cut.log() - ops.log1p(-cut))
        return ops.where(self._outside, exact, value)

    def entropy(self) -> Tensor:
        failure, success = ops.log1p(-self.probs), self.probs.log()
        return self.mean * (failure - success) - self._log_constant() - failure


class Kumaraswamy(TransformedDistribution):
    """Numbers in (0, 1) with the distribution function 1 − (1 − x^a)^b; a is `concentration1`, b `concentration0`."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval  # type: ignore[assignment]
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        one = ops.ones_like(self.concentration0)
        steps = [PowerTransform(self.concentration0.reciprocal()), AffineTransform(1.0, -1.0), PowerTransform(self.concentration1.reciprocal())]
        super().__init__(Uniform(one * 0, one, validate_args=validate_args), steps, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1, new.concentration0 = self.concentration1.expand(batch_shape), self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    def _moment(self, n: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return ops.exp(b.log() + ops.lgamma(1 + n / a) + ops.lgamma(b) - ops.lgamma(1 + b + n / a))

    mean = property(lambda self: self._moment(1))  # type: ignore[assignment]
    variance = property(lambda self: self._moment(2) - self._moment(1).pow(2))  # type: ignore[assignment]

    @property
    def mode(self) -> Tensor:
        """((a−1)/(ab−1))^(1/a), where PyTorch's formula gives NaN."""
        a, b = self.concentration1, self.concentration0
        return ops.where((a < 1) | (b < 1), math.nan, (((a - 1) / (a * b - 1)).log() / a).exp())

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * (ops.digamma(b + 1) + euler_constant) - a.log() - b.log()


class LogisticNormal(TransformedDistribution):
    """Points of a simplex of K + 1 corners: K normal numbers after a `StickBreakingTransform`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex  # type: ignore[assignment]
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base if base.batch_shape else base.expand([1]), StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(LogisticNormal, _instance))

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)


class GeneralizedPareto(Distribution):
    """What exceeds a high limit `loc`: exponential for `concentration` 0, heavier tails above, an end below."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.loc, ops.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf))

    def _exponential(self) -> tuple[Tensor, Tensor]:
        """(where the concentration is 0, the concentration, 1 there)."""
        zero = ops.isclose(self.concentration, ops.zeros_like(self.concentration))
        return zero, ops.where(zero, ops.ones_like(self.concentration), self.concentration)

    mode = property(lambda self: self.loc)  # type: ignore[assignment]

    @property
    def mean(self) -> Tensor:
        finite = self.concentration < 1
        return ops.where(finite, self.loc + self.scale / (1 - ops.where(finite, self.concentration, 0.5)), math.nan)

    @property
    def variance(self) -> Tensor:
        finite = self.concentration < 0.5
        c = ops.where(finite, self.concentration, 0.25)
        return ops.where(finite, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(ops.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        zero, c = self._exponential()
        power = 1 / c + 1
        return -self.scale.log() - ops.where(zero, z, ops.where(power == 0, power, power * ops.log1p(c * z)))

    def log_survival_function(self, value: Tensor) -> Tensor:
        """log(1 − cdf)."""
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        zero, c = self._exponential()
        return ops.where(zero, -z, -ops.log1p(c * z) / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        return ops.log1p(-self.log_survival_function(value).exp())

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        zero, c = self._exponential()
        log_rest = ops.log1p(-value)
        return ops.where(zero, self.loc - self.scale * log_rest, self.loc + self.scale / c * ops.expm1(-c * log_rest))

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
