"""Transforms made of transforms side by side (`CatTransform`, `StackTransform`), of a distribution (`CumulativeDistributionTransform`), and onto correlations' factors."""
from __future__ import annotations

import math
from typing import Any

from .. import constraints, ops
from ..dtypes import finfo
from ..layout import Size
from ..tensor import Tensor
from .transforms import Transform, _Plain, _softplus
from .utils import sum_rightmost


class CatTransform(Transform):
    """Transforms of one part each of dimension `dim`, whose lengths are `lengths` (default: 1 each)."""

    def __init__(self, tseq: Any, dim: int = 0, lengths: Any = None, cache_size: int = 0):
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"Length of lengths ({len(self.lengths)}) must match length of transforms ({len(self.transforms)})")
        self.dim = dim

    length = property(lambda self: sum(self.lengths))
    event_dim = property(lambda self: max(t.event_dim for t in self.transforms))  # type: ignore[assignment]
    bijective = property(lambda self: all(t.bijective for t in self.transforms))  # type: ignore[assignment]
    domain = property(lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths))  # type: ignore[assignment]
    codomain = property(lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths))  # type: ignore[assignment]

    def with_cache(self, cache_size: int = 1) -> CatTransform:
        return self if self._cache_size == cache_size else CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, value: Tensor) -> Any:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim={self.dim} out of range for tensor with {value.dim()} dimensions")
        if value.size(self.dim) != self.length:
            raise AssertionError(f"Size of dimension {self.dim} must be {self.length}, got {value.size(self.dim)}")
        return value.split(self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return ops.cat([t(part) for t, part in zip(self.transforms, self._parts(x))], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return ops.cat([t.inv(part) for t, part in zip(self.transforms, self._parts(y))], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        found = [sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim) for t, a, b in zip(self.transforms, self._parts(x), self._parts(y))]
        dim = (self.dim if self.dim < 0 else self.dim - x.dim()) + self.event_dim
        return ops.cat(found, dim) if dim < 0 else sum(found)  # within an event its parts add up


class StackTransform(Transform):
    """One transform for each index along dimension `dim`."""

    def __init__(self, tseq: Any, dim: int = 0, cache_size: int = 0):
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    bijective = property(lambda self: all(t.bijective for t in self.transforms))  # type: ignore[assignment]
    domain = property(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))  # type: ignore[assignment]
    codomain = property(lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim))  # type: ignore[assignment]

    def with_cache(self, cache_size: int = 1) -> StackTransform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, value: Tensor) -> Any:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim={self.dim} out of range for tensor with {value.dim()} dimensions")
        if value.size(self.dim) != len(self.transforms):
            raise AssertionError(f"Size of dimension {self.dim} must be {len(self.transforms)}, got {value.size(self.dim)}")
        return value.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return ops.stack([t(part) for t, part in zip(self.transforms, self._parts(x))], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return ops.stack([t.inv(part) for t, part in zip(self.transforms, self._parts(y))], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return ops.stack([t.log_abs_det_jacobian(a, b) for t, a, b in zip(self.transforms, self._parts(x), self._parts(y))], self.dim)


class CumulativeDistributionTransform(Transform):
    """Numbers to the probability that a distribution's are smaller."""

    bijective, codomain, sign = True, constraints.unit_interval, +1

    def __init__(self, distribution: Any, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)  # type: ignore[assignment]

    def with_cache(self, cache_size: int = 1) -> CumulativeDistributionTransform:
        return self if self._cache_size == cache_size else CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


class CorrCholeskyTransform(_Plain):
    """D(D−1)/2 numbers [.., D(D−1)/2] to the Cholesky factor [.., D, D] of a correlation matrix: rows of length 1 whose last element is positive."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky

    def _call(self, x: Tensor) -> Tensor:
        eps = finfo(x.dtype).eps
        r = _lower(x.tanh().clamp(min=-1 + eps, max=1 - eps))  # [.., D, D]: partial correlations below the diagonal
        left = (1 - r**2).sqrt().cumprod(-1)  # of a row's length, after each element
        before = ops.cat([ops.ones_like(left[..., :1]), left[..., :-1]], -1)
        return (r + ops.eye(r.shape[-1], dtype=r.dtype, device=r.device)) * before

    def _inverse(self, y: Tensor) -> Tensor:
        left = 1 - (y * y).cumsum(-1)
        before = ops.cat([ops.ones_like(left[..., :1]), left[..., :-1]], -1)
        return ops.atanh(_below(y, -1) / _below(before, -1).sqrt())

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = _below(1 - (y * y).cumsum(-1), -2)
        return 0.5 * left.log().sum(-1) - 2 * (x + _softplus(-2 * x) - math.log(2)).sum(-1)

    def forward_shape(self, shape: Any) -> Size:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        size = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], size, size))

    def inverse_shape(self, shape: Any) -> Size:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


def _lower(values: Tensor) -> Tensor:
    """[.., n(n−1)/2] as what is below the diagonal of [.., n, n], row by row."""
    n = round((0.25 + 2 * values.shape[-1]) ** 0.5 + 0.5)
    if n * (n - 1) // 2 != values.shape[-1]:
        raise ValueError(f"The size of last dimension is {values.shape[-1]} which cannot be expressed as the lower triangular part of a square D x D matrix.")
    rows, columns = ops.tril_indices(n, n, -1)
    out = values.new_zeros(*values.shape[:-1], n * n)
    return out.index_copy(-1, rows * n + columns, values).reshape(*values.shape[:-1], n, n)


def _below(matrix: Tensor, offset: int) -> Tensor:
    """What is on and below a diagonal of [.., n, n], row by row."""
    n = matrix.shape[-1]
    rows, columns = ops.tril_indices(n, n, offset)
    return matrix.reshape(*matrix.shape[:-2], n * n).index_select(-1, rows * n + columns)
