"""`torch.distributions`: Bernoulli, Categorical, Normal and Uniform. Samples are PyTorch's for the same seed; log-probabilities are differentiable.

Of the rest, refused.py says what to use. Arguments are tensors or numbers and broadcast; `validate_args=False` leaves the checks out.
"""
from __future__ import annotations

import math
from typing import Any

from . import (
    constraints,  # noqa: F401
    ops,
)
from .autograd import no_grad
from .dtypes import finfo, get_default_dtype
from .layout import Size
from .refused import missing
from .tensor import Tensor

# ---- what all have ------------------------------------------------------------------------------------


class Distribution:
    """A batch of distributions: `batch_shape` counts them, `event_shape` is that of one sample."""

    has_rsample = False

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        self._validate = validate_args is not False

    @property
    def batch_shape(self) -> Size:
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Samples of shape sample_shape + batch_shape + event_shape, without a history."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Samples through which gradients reach the parameters, where a distribution has them (`has_rsample`)."""
        raise NotImplementedError

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density (or probability) at `value`."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        raise NotImplementedError

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _check(self, name: str, value: Tensor, fits: Any, constraint: str) -> None:
        """Raises ValueError unless `fits`, a bool tensor, is True everywhere."""
        if self._validate and not value.is_meta and not bool(ops.all(fits)):
            raise ValueError(
                f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} to satisfy the constraint {constraint}, "
                f"but found invalid values:\n{value}"
            )

    def _check_value(self, value: Tensor, fits: Any, support: str) -> None:
        if not self._validate:
            return
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        if not bool(ops.all(fits(value))):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support ({support}) of the distribution {self!r}, "
                f"but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        given = [(name, self.__dict__[name]) for name in self._shown if name in self.__dict__]
        return f"{type(self).__name__}({', '.join(f'{name}: {value if value.numel() == 1 else value.size()}' for name, value in given)})"

    _shown: tuple[str, ...] = ()


def _tensors(*values: Any) -> tuple[Tensor, ...]:
    """Numbers as tensors beside the tensors among them, all broadcast to one shape."""
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype, device = (get_default_dtype(), None) if like is None else (like.dtype, like.device)
    return tuple(ops.broadcast_tensors(*[v if isinstance(v, Tensor) else ops.tensor(v, dtype=dtype, device=device) for v in values]))


def _one_of(probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def _clamped(probs: Tensor) -> Tensor:
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


# ---- the distributions --------------------------------------------------------------------------------


class Normal(Distribution):
    """The normal distribution of mean `loc` and standard deviation `scale` > 0."""

    has_rsample = True
    _shown = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = _tensors(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)
        self._check("loc", self.loc, self.loc == self.loc, "Real()")
        self._check("scale", self.scale, self.scale > 0, "GreaterThan(lower_bound=0.0)")

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale**2)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return ops.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = ops.normal(ops.zeros(shape, dtype=self.loc.dtype, device=self.loc.device), ops.ones(shape, dtype=self.loc.dtype, device=self.loc.device))
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value, lambda v: v == v, "Real()")
        return -((value - self.loc) ** 2) / (2 * self.scale**2) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a sample up to `value`."""
        return 0.5 * (1 + ops.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`."""
        return self.loc + self.scale * ops.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()


class Uniform(Distribution):
    """The uniform distribution on [low, high)."""

    has_rsample = True
    _shown = ("low", "high")

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None):
        self.low, self.high = _tensors(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        self._check("low", self.low, self.low < self.high, f"LessThan(upper_bound={self.high.item() if self.high.numel() == 1 else self.high})")

    mean = property(lambda self: (self.high + self.low) / 2)
    stddev = property(lambda self: (self.high - self.low) / 12**0.5)
    variance = property(lambda self: (self.high - self.low) ** 2 / 12)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = ops.rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value, lambda v: (v >= self.low) & (v <= self.high), "Interval(lower_bound, upper_bound)")
        inside = (self.low <= value) & (value < self.high)
        return ops.log(inside.to(self.low.dtype)) - ops.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a sample up to `value`."""
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def entropy(self) -> Tensor:
        return ops.log(self.high - self.low)


class Bernoulli(Distribution):
    """1 with probability `probs` (or sigmoid(`logits`)), else 0."""

    _shown = ("probs", "logits")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        _one_of(probs, logits)
        (given,) = _tensors(logits if probs is None else probs)
        self.__dict__["logits" if probs is None else "probs"] = given
        super().__init__(given.shape, validate_args=validate_args)
        if probs is not None:
            self._check("probs", given, (given >= 0) & (given <= 1), "Interval(lower_bound=0.0, upper_bound=1.0)")

    def __getattr__(self, name: str) -> Tensor:
        if name == "probs" and "logits" in self.__dict__:
            self.probs = self.logits.sigmoid()
            return self.probs
        if name == "logits" and "probs" in self.__dict__:
            clamped = _clamped(self.probs)
            self.logits = ops.log(clamped) - ops.log1p(-clamped)
            return self.logits
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return ops.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value, lambda v: (v == 0) | (v == 1), "Boolean()")
        logits, value = ops.broadcast_tensors(self.logits, value)
        return -_binary_cross_entropy(logits, value)

    def entropy(self) -> Tensor:
        return _binary_cross_entropy(self.logits, self.probs)


def _binary_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    from .nn import functional

    return functional.binary_cross_entropy_with_logits(logits, target, reduction="none")


class Categorical(Distribution):
    """One of K classes, with probabilities proportional to `probs` [.., K] or softmax(`logits`); samples are class numbers (int64)."""

    _shown = ("probs", "logits")

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None):
        _one_of(probs, logits)
        given: Any = logits if probs is None else probs
        if given.dim() < 1:
            raise ValueError(f"`{'logits' if probs is None else 'probs'}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = given - given.logsumexp(-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)
        if probs is not None:
            valid = (self.probs >= 0).all(-1) & ((self.probs.sum(-1) - 1).abs() < 1e-6)
            self._check("probs", self.probs, valid, "Simplex()")
        else:
            self._check("logits", self.logits, self.logits == self.logits, "IndependentConstraint(Real(), 1)")

    def __getattr__(self, name: str) -> Tensor:
        if name == "probs" and "logits" in self.__dict__:
            self.probs = self.logits.softmax(-1)
            return self.probs
        if name == "logits" and "probs" in self.__dict__:
            self.logits = ops.log(_clamped(self.probs))
            return self.logits
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def param_shape(self) -> Size:
        return (self.__dict__["logits"] if "logits" in self.__dict__ else self.probs).shape

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)  # [B, K]
            drawn = ops.multinomial(rows, math.prod(sample_shape), True).T  # [samples, B]
            return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value, lambda v: (v % 1 == 0) & (v >= 0) & (v <= self._num_events - 1), f"IntegerInterval(lower_bound=0, upper_bound={self._num_events - 1})")
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


# ---- between two --------------------------------------------------------------------------------------


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence KL(p ‖ q) of two distributions of one kind. Raises NotImplementedError for other pairs."""
    if isinstance(p, Normal) and isinstance(q, Normal):
        ratio, shift = (p.scale / q.scale) ** 2, ((p.loc - q.loc) / q.scale) ** 2
        return 0.5 * (ratio + shift - 1 - ratio.log())
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        t = p.probs * (p.logits - q.logits)
        t = ops.where((q.probs == 0).expand_as(t), ops.full_like(t, math.inf), t)
        return ops.where((p.probs == 0).expand_as(t), ops.zeros_like(t), t).sum(-1)
    if isinstance(p, Bernoulli) and isinstance(q, Bernoulli):
        softplus = lambda x: ops.logaddexp(x, ops.zeros_like(x))
        one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
        one = ops.where(q.probs == 0, ops.full_like(one, math.inf), one)
        one = ops.where(p.probs == 0, ops.zeros_like(one), one)
        zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
        zero = ops.where(q.probs == 1, ops.full_like(zero, math.inf), zero)
        return one + ops.where(p.probs == 1, ops.zeros_like(zero), zero)
    raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}")


__getattr__ = missing("torch.distributions")
