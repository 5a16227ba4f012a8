"""Distributions over classes and counts: Bernoulli, Categorical, one-hot and relaxed ones, Multinomial, Binomial, Geometric; mixtures."""
from __future__ import annotations

import math
from typing import Any

from .. import constraints, ops
from ..autograd import no_grad
from ..dtypes import finfo
from ..layout import Size
from ..ops.data import as_tensor
from ..tensor import Tensor
from .base import Distribution, ExponentialFamily
from .gammas import Gamma
from .transformed import TransformedDistribution
from .transforms import ExpTransform, SigmoidTransform
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs, one_of, probs_to_logits


def _binary_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    from ..nn import functional

    return functional.binary_cross_entropy_with_logits(logits, target, reduction="none")


class _Binary(Distribution):
    """One probability a number, given as `probs` or as `logits`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def _take(self, probs: Any, logits: Any) -> Tensor:
        one_of(probs, logits)
        (given,) = broadcast_all(logits if probs is None else probs)
        self.__dict__["logits" if probs is None else "probs"] = self._param = given
        return given

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, is_binary=True)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @property
    def param_shape(self) -> Size:
        return self._param.shape


class Bernoulli(_Binary, ExponentialFamily):
    """1 with probability `probs` (or sigmoid(`logits`)), else 0."""

    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        super().__init__(self._take(probs, logits).shape, validate_args=validate_args)

    mean = property(lambda self: self.probs)  # type: ignore[assignment]
    variance = property(lambda self: self.probs * (1 - self.probs))  # type: ignore[assignment]

    @property
    def mode(self) -> Tensor:
        return ops.where(self.probs == 0.5, math.nan, (self.probs >= 0.5).to(self.probs.dtype))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return ops.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -_binary_cross_entropy(logits, value)

    def entropy(self) -> Tensor:
        return _binary_cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = ops.arange(2, dtype=self._param.dtype).reshape(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class Geometric(_Binary):
    """How many trials of success probability `probs` fail before one succeeds."""

    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        super().__init__(self._take(probs, logits).shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not bool(ops.all(self.probs > 0)):
            raise ValueError(
                f"Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) of distribution {self!r} to be positive but found invalid values:\n{self.probs}"
            )

    mean = property(lambda self: 1.0 / self.probs - 1.0)  # type: ignore[assignment]
    mode = property(lambda self: ops.zeros_like(self.probs))  # type: ignore[assignment]
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)  # type: ignore[assignment]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_(finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        miss = ops.where((probs == 1) & (value == 0), ops.zeros_like(probs), -probs).log1p()
        return value * miss + self.probs.log()

    def entropy(self) -> Tensor:
        return _binary_cross_entropy(self.logits, self.probs) / self.probs


class Binomial(_Binary):
    """How many of `total_count` trials succeed."""

    has_enumerate_support = True

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        one_of(probs, logits)
        self.total_count, given = broadcast_all(total_count, logits if probs is None else probs)
        self.total_count = self.total_count.type_as(given)
        self._take(None if probs is None else given, None if logits is None else given)
        super().__init__(given.shape, validate_args=validate_args)

    support = property(lambda self: constraints.integer_interval(0, self.total_count))  # type: ignore[assignment]
    mean = property(lambda self: self.total_count * self.probs)  # type: ignore[assignment]
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))  # type: ignore[assignment]
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))  # type: ignore[assignment]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return ops.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n, logits = self.total_count, self.logits
        ways = ops.lgamma(n + 1) - ops.lgamma(value + 1) - ops.lgamma(n - value + 1)
        above = (logits.clamp(min=0) + logits - logits.clamp(max=0)) / 2  # max(logits, 0) with both halves of its gradient
        return value * logits + ways - (n * above + n * ops.log1p(ops.exp(-ops.abs(logits))))

    def _one_count(self, what: str) -> int:
        """The number of trials, if all have the same."""
        most = int(self.total_count.max())
        if most != int(self.total_count.min()):
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return most

    def entropy(self) -> Tensor:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(ops.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = ops.arange(1 + self._one_count("enumerate_support"), dtype=self.probs.dtype, device=self.probs.device).reshape(-1, *(1,) * len(self.batch_shape))
        return values.expand(-1, *self.batch_shape) if expand else values


class NegativeBinomial(_Binary):
    """How many trials of success probability `probs` succeed before `total_count` have failed."""

    arg_constraints = {"total_count": constraints.nonnegative, "probs": constraints.half_open_interval(0, 1), "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        one_of(probs, logits)
        self.total_count, given = broadcast_all(total_count, logits if probs is None else probs)
        self.total_count = self.total_count.type_as(given)
        self._take(None if probs is None else given, None if logits is None else given)
        super().__init__(given.shape, validate_args=validate_args)

    mean = property(lambda self: self.total_count * ops.exp(self.logits))  # type: ignore[assignment]
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))  # type: ignore[assignment]
    variance = property(lambda self: self.mean / ops.sigmoid(-self.logits))  # type: ignore[assignment]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return ops.poisson(Gamma(self.total_count, ops.exp(-self.logits), validate_args=False).sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        from ..nn.functional import logsigmoid

        n = self.total_count
        ways = ops.lgamma(n + value) - ops.lgamma(1.0 + value) - ops.lgamma(n)
        return n * logsigmoid(-self.logits) + value * logsigmoid(self.logits) + ops.where(n + value == 0.0, ops.zeros_like(ways), ways)


class Categorical(Distribution):
    """One of K classes, with probabilities proportional to `probs` [.., K] or softmax(`logits`); samples are class numbers (int64)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None):
        one_of(probs, logits)
        given: Any = logits if probs is None else probs
        if given.dim() < 1:
            raise ValueError(f"`{'logits' if probs is None else 'probs'}` parameter must be at least one-dimensional.")
        self._param = probs / probs.sum(-1, keepdim=True) if probs is not None else given - given.logsumexp(-1, keepdim=True)
        self.__dict__["logits" if probs is None else "probs"] = self._param
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs)

    support = property(lambda self: constraints.integer_interval(0, self._num_events - 1))  # type: ignore[assignment]
    param_shape = property(lambda self: self._param.shape)
    mean = property(lambda self: ops.full(self._extended_shape(), math.nan, dtype=self._param.dtype))  # type: ignore[assignment]
    variance = property(lambda self: ops.full(self._extended_shape(), math.nan, dtype=self._param.dtype))  # type: ignore[assignment]

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)  # [B, K]
            drawn = ops.multinomial(rows, math.prod(sample_shape), True).T  # [samples, B]
            return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        value, logits = ops.broadcast_tensors(value, self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All classes, along a new first dimension."""
        values = ops.arange(self._num_events).reshape(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class OneHotCategorical(Distribution):
    """A class as a row of zeros with a 1 at its place. [.., K]"""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None):
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)
    mean = property(lambda self: self.probs)  # type: ignore[assignment]
    variance = property(lambda self: self.probs * (1 - self.probs))  # type: ignore[assignment]

    @property
    def mode(self) -> Tensor:
        return self._rows(self._categorical.mode)

    def _rows(self, classes: Tensor) -> Tensor:
        from ..nn.functional import one_hot

        return one_hot(classes, self._event_shape[0]).to(self._categorical._param.dtype)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._rows(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        values = ops.eye(n, dtype=self._categorical._param.dtype).reshape(n, *(1,) * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Its samples' gradient is that of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(Distribution):
    """How often each class comes in `total_count` draws. [.., K]"""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count: int = 1, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count, self._categorical = total_count, Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)
    support = property(lambda self: constraints.multinomial(self.total_count))  # type: ignore[assignment]
    mean = property(lambda self: self.probs * self.total_count)  # type: ignore[assignment]
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))  # type: ignore[assignment]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)  # [.., draws]
        counts = self.probs.detach().new_zeros(self._extended_shape(sample_shape))
        return counts.scatter_add_(-1, drawn, ops.ones_like(drawn, dtype=counts.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = ops.where((value == 0) & (logits == -math.inf), ops.zeros_like(logits), logits)
        return ops.lgamma(value.sum(-1) + 1) - ops.lgamma(value + 1).sum(-1) + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = self.total_count
        counts = ops.arange(1.0, n + 1, dtype=self.probs.dtype).reshape(-1, *(1,) * self.probs.ndim)  # of one class; log 0! is 0
        each = ops.exp(Binomial(n, self.probs).log_prob(counts)) * ops.lgamma(counts + 1)
        return n * self._categorical.entropy() - math.lgamma(n + 1) + each.sum((0, -1))


# ---- relaxed: points between the classes, with gradients --------------------------------------------------------------------------


class LogitRelaxedBernoulli(_Binary):
    """The logit of a relaxed Bernoulli number at a temperature."""

    support = constraints.real

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self.temperature = temperature
        super().__init__(self._take(probs, logits).shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(ops.rand(shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        away = logits - value.mul(self.temperature)
        return ops.log(as_tensor(self.temperature, dtype=logits.dtype)) + away - 2 * away.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """A number in (0, 1) that nears 0 or 1 as the temperature falls."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval  # type: ignore[assignment]
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedBernoulli, _instance))

    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.probs)
    logits = property(lambda self: self.base_dist.logits)


class ExpRelaxedCategorical(Distribution):
    """The logarithm of a relaxed one-hot row at a temperature. [.., K]"""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._categorical, self.temperature = Categorical(probs, logits), temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.temperature = self.temperature
        return new

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = clamp_probs(ops.rand(self._extended_shape(sample_shape), dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        k, t = self._event_shape[0], as_tensor(self.temperature, dtype=self.logits.dtype)
        logits, value = broadcast_all(self.logits, value)
        scale = math.lgamma(k) - t.log().mul(-(k - 1))
        score = logits - value.mul(t)
        return (score - score.logsumexp(-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """A point of the simplex that nears a one-hot row as the temperature falls: the Gumbel-softmax distribution. [.., K]"""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex  # type: ignore[assignment]
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        super().__init__(ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedOneHotCategorical, _instance))

    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.probs)
    logits = property(lambda self: self.base_dist.logits)


# ---- mixtures ---------------------------------------------------------------------------------------------------------------------


class MixtureSameFamily(Distribution):
    """One of K distributions of a batch [.., K], chosen by a Categorical over its last dimension."""

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        k, of = mixture_distribution.logits.shape[-1], component_distribution.batch_shape
        if of[-1:] and k != of[-1]:
            raise ValueError(f"`mixture_distribution component` ({k}) does not equal `component_distribution.batch_shape[-1]` ({of[-1]})")
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        super().__init__(of[:-1], component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = Size(batch_shape)
        new._component_distribution = self._component_distribution.expand(batch_shape + self._component_distribution.batch_shape[-1:])
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._batch_shape, new._event_shape, new._validate_args = batch_shape, self._event_shape, self._validate_args
        return new

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)
    support = property(lambda self: self._component_distribution.support)  # type: ignore[assignment]

    def _weights(self) -> Tensor:
        probs = self._mixture_distribution.probs
        return probs.reshape(*probs.shape, *(1,) * len(self._event_shape))

    def _over(self) -> int:
        return -1 - len(self._event_shape)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component_distribution.mean).sum(self._over())

    @property
    def variance(self) -> Tensor:
        within = (self._weights() * self._component_distribution.variance).sum(self._over())
        apart = self._component_distribution.mean - self.mean.unsqueeze(self._over())
        return within + (self._weights() * apart.pow(2.0)).sum(self._over())

    def cdf(self, x: Tensor) -> Tensor:
        return (self._component_distribution.cdf(x.unsqueeze(self._over())) * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._validate_sample(x)
        each = self._component_distribution.log_prob(x.unsqueeze(self._over()))
        return ops.logsumexp(each + ops.log_softmax(self._mixture_distribution.logits, -1), -1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            chosen = self._mixture_distribution.sample(sample_shape)
            each = self._component_distribution.sample(sample_shape)
            at = chosen.reshape(*chosen.shape, 1, *(1,) * len(self._event_shape)).expand(*chosen.shape, 1, *self._event_shape)
            return each.gather(len(chosen.shape), at).squeeze(len(chosen.shape))

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
