"""Random numbers that are drawn by rejection, one after the other: gamma numbers, Dirichlet points, Poisson and binomial counts. They are PyTorch's for the same seed.

How a gamma number or a Dirichlet point moves with its parameters is implicit.py's work.
Sources: Marsaglia and Tsang 2000 (gamma); Hörmann 1993, "The transformed rejection method for generating Poisson random variables" and "The generation of binomial
random variates" (counts of mean 10 and more).
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..autograd import backward, no_grad, record, tracking
from ..dtypes import finfo, float64
from ..tensor import Tensor, empty
from .data import as_tensor
from .fills import generator_of
from .generator import Generator
from .implicit import dirichlet_grad, gamma_grad
from .random import rand, randn
from .table import TABLE, operator

CHUNK = 256  # uniform numbers that are drawn at once


class _Uniforms:
    """A generator's next uniform numbers in [0, 1), drawn in chunks; at the end the generator has moved by as many as were asked for."""

    def __init__(self, generator: Generator):
        self.generator, self.state = generator, generator.get_state()
        self.drawn: list[float] = []
        self.used = 0

    def __enter__(self) -> Callable[[], float]:
        return self.next

    def next(self) -> float:
        if self.used == len(self.drawn):
            self.drawn += rand(CHUNK, dtype=float64, generator=self.generator).tolist()
        self.used += 1
        return self.drawn[self.used - 1]

    def __exit__(self, *error: object) -> None:
        self.generator.set_state(self.state)
        rand(self.used, dtype=float64, generator=self.generator)


def _made(numbers: list, like: Tensor) -> Tensor:
    return as_tensor(numbers, dtype=float64).reshape(like.shape).to(like.dtype) if numbers else empty(like.shape, like.dtype, like.device)


def _floats(name: str, t: Any) -> None:
    if not isinstance(t, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(t).__name__}")
    if not t.dtype.is_floating_point:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{t.dtype.scalar_name}'\n  Convert to a floating-point dtype: x.float()")


# ---- gamma numbers ------------------------------------------------------------------------------------------------------------


def _one_gamma(alpha: float, generator: Generator) -> float:
    def uniform() -> float:
        return rand((), dtype=float64, generator=generator).item()

    scale = 1.0
    if alpha < 1:
        if alpha == 0:
            return 0.0
        scale = (1 - uniform()) ** (1 / alpha)
        alpha += 1
    d = alpha - 1 / 3
    c = 1 / math.sqrt(9 * d) if d > 0 else math.nan
    while True:
        y = -1.0
        while y <= 0:
            x = randn((), dtype=float64, generator=generator).item()
            y = 1 + c * x
        v, u = y**3, 1 - uniform()
        if u < 1 - 0.0331 * x**4 or math.log(u) < 0.5 * x * x + d * (1 - v + math.log(v)):
            return scale * d * v


def _gammas(alphas: Tensor, generator: Generator | None) -> list[float]:
    found = generator_of(generator)
    return [_one_gamma(alpha, found) for alpha in alphas.detach().double().reshape(-1).tolist()]


@backward("StandardGamma", saved_names=("self", "result"))
def StandardGammaBackward0(node, g):
    alpha, drawn = node.saved
    return (g * gamma_grad(alpha, drawn),)


@operator("_standard_gamma", method=False)
def _standard_gamma(input, generator=None):
    """Gamma numbers of concentrations `input` and rate 1. The gradient is that of a number at a fixed probability (implicit reparameterisation)."""
    _floats("gamma", input)
    with no_grad():
        out = _made(_gammas(input, generator), input).clamp(min=finfo(input.dtype).tiny)
    if tracking(input):
        record(StandardGammaBackward0, (input,), out, (input, out))
    return out


@backward("SampleDirichlet", saved_names=("self", "result"))
def SampleDirichletBackward0(node, g):
    return (dirichlet_backward(node.saved[1], node.saved[0], g),)


def dirichlet_backward(x: Tensor, concentration: Tensor, g: Tensor) -> Tensor:
    """The gradient to the concentrations [.., K] of points x [.., K] whose gradient is g."""
    total = concentration.sum(-1, keepdim=True).expand_as(concentration)
    return dirichlet_grad(x, concentration, total) * (g - (x * g).sum(-1, keepdim=True))


@operator("_sample_dirichlet", method=False)
def _sample_dirichlet(input, generator=None):
    """Points of simplices with concentrations `input` [.., K]: gamma numbers over their sum."""
    _floats("dirichlet", input)
    with no_grad():
        gammas = as_tensor(_gammas(input, generator), dtype=float64).reshape(input.shape)
        info = finfo(input.dtype)
        out = (gammas / gammas.sum(-1, keepdim=True)).to(input.dtype).clamp(min=info.tiny, max=1 - info.eps / 2)
    if tracking(input):
        record(SampleDirichletBackward0, (input,), out, (input, out))
    return out


# ---- counts ---------------------------------------------------------------------------------------------------------------------


def _one_poisson(rate: float, uniform: Callable[[], float]) -> float:
    if rate == 0:
        return 0.0
    if rate < 10:  # events before the product of uniform numbers falls below exp(-rate)
        limit, product, count = math.exp(-rate), uniform(), 0.0
        while product > limit:
            product *= uniform()
            count += 1
        return count
    root, log_rate = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha, bound = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = uniform() - 0.5, uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43) if us else -1
        if us >= 0.07 and v <= bound:
            return float(k)
        if k < 0 or (us < 0.013 and v > us) or v == 0:
            continue
        if math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b) <= -rate + k * log_rate - math.lgamma(k + 1):
            return float(k)


@backward("Poisson")
def PoissonBackward0(node, g):
    """A count does not move with its rate."""
    return (TABLE["zeros_like"].call(g),)


@operator("poisson", method=False)
def poisson(input, generator=None):
    """Counts of events whose mean the input's element is; shaped and typed as the input, a float. Raises RuntimeError for a negative rate."""
    _floats("poisson", input)
    with no_grad():
        rates = input.detach().double().reshape(-1).tolist()
        if any(not rate >= 0 for rate in rates):
            raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
        with _Uniforms(generator_of(generator)) as uniform:
            out = _made([_one_poisson(rate, uniform) for rate in rates], input)
    if tracking(input):
        record(PoissonBackward0, (input,), out)
    return out


def _tail(k: float) -> float:
    """What Stirling's formula leaves of log k!."""
    if k < 10:
        return math.lgamma(k + 1) - (k + 0.5) * math.log(k + 1) + (k + 1) - 0.5 * math.log(2 * math.pi)
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


def _by_inversion(count: float, p: float, uniform: Callable[[], float]) -> float:
    """Waiting times between successes, until they are longer than there are trials."""
    log_failure, waited, found = math.log1p(-p), 0.0, 0.0
    while True:
        u = uniform()
        waited += math.ceil(math.log(u) / log_failure) if u else math.inf
        if waited > count:
            return found
        found += 1


def _by_rejection(n: float, p: float, uniform: Callable[[], float]) -> float:
    deviation = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c, r, bound = n * p + 0.5, p / (1 - p), 0.92 - 4.2 / b
    alpha, m = (2.83 + 5.1 / b) * deviation, math.floor((n + 1) * p)
    while True:
        u, v = uniform() - 0.5, uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c) if us else -1
        if us >= 0.07 and v <= bound:
            return float(k)
        if k < 0 or k > n or not v:
            continue
        upper = (
            (m + 0.5) * math.log((m + 1) / (r * (n - m + 1))) + (n + 1) * math.log((n - m + 1) / (n - k + 1)) + (k + 0.5) * math.log(r * (n - k + 1) / (k + 1))
            + _tail(m) + _tail(n - m) - _tail(k) - _tail(n - k)
        )  # fmt: skip
        if math.log(v * alpha / (a / (us * us) + b)) <= upper:
            return float(k)


def _one_binomial(n: float, p: float, uniform: Callable[[], float]) -> float:
    if n != n or p != p:
        return math.nan
    if n <= 0 or p <= 0:
        return 0.0
    if p >= 1:
        return n
    q = min(p, 1 - p)  # the rarer of the two outcomes is counted
    found = _by_rejection(n, q, uniform) if n * q >= 10 else _by_inversion(n, q, uniform)
    return found if p <= 0.5 else n - found


@backward("Binomial")
def BinomialBackward0(node, *grads):
    raise RuntimeError("derivative for aten::binomial is not implemented\n  A count does not move with its parameters: weigh log_prob by what the count is worth (REINFORCE).")


@operator("binomial", method=False)
def binomial(count, prob, generator=None):
    """Successes among `count` trials of probability `prob` (floats of one dtype, broadcast). Raises ValueError for integers, RuntimeError where the dtypes differ."""
    for name, t in (("count", count), ("prob", prob)):
        if not isinstance(t, Tensor):
            raise TypeError(f"binomial(): argument '{name}' must be Tensor, not {type(t).__name__}")
        if not t.dtype.is_floating_point:
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {t.dtype.scalar_name}")
    if count.dtype is not prob.dtype:
        raise RuntimeError(f"Found dtype {prob.dtype.scalar_name} but expected {count.dtype.scalar_name}")
    with no_grad():
        whole, chances = TABLE["broadcast_tensors"].call(count.detach(), prob.detach())
        pairs = zip(whole.double().reshape(-1).tolist(), chances.double().reshape(-1).tolist())
        with _Uniforms(generator_of(generator)) as uniform:
            out = _made([_one_binomial(n, p, uniform) for n, p in pairs], whole.contiguous())
    if tracking(count, prob):
        record(BinomialBackward0, (count, prob), out)
    return out


__all__ = ["binomial", "poisson"]
