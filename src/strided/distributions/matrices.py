"""Distributions of matrices: Wishart."""
from __future__ import annotations

import math
from typing import Any

from .. import constraints, linalg, ops
from ..dtypes import finfo
from ..layout import broadcast_shapes
from ..tensor import Tensor
from .base import ExponentialFamily
from .gammas import Chi2
from .utils import lazy_property, standard_normal
from .vectors import _lower_of_inverse


def multidigamma(a: Tensor, p: int) -> Tensor:
    """The derivative of `mvlgamma(a, p)`: the sum of digamma(a - i/2) for i < p."""
    return ops.digamma(a.unsqueeze(-1) - 0.5 * ops.arange(p, dtype=a.dtype)).sum(-1)


class Wishart(ExponentialFamily):
    """X = A A^T for A with `df` columns drawn from a normal distribution without mean. df: [..], above n - 1; the covariance by one of `covariance_matrix`, `precision_matrix`,
    `scale_tril` (its Cholesky factor), [.., n, n].

    Samples are drawn by Bartlett's decomposition, once: PyTorch draws those that are not singular again, so that the same seed gives other ones there, of the same distribution.
    """

    arg_constraints = {
        "covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(0),
    }  # fmt: skip
    support = constraints.positive_definite
    has_rsample = True

    def __init__(self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None, validate_args: bool | None = None):
        given = {"covariance_matrix": covariance_matrix, "scale_tril": scale_tril, "precision_matrix": precision_matrix}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        n = matrix.shape[-1]
        df = df if isinstance(df, Tensor) else ops.tensor(df, dtype=matrix.dtype)
        if bool((df <= n - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        batch = broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch)
        setattr(self, name, matrix.expand(*batch, n, n))
        super().__init__(batch, (n, n), validate_args=validate_args)
        if name == "scale_tril":
            self._lower = self.scale_tril
        elif name == "covariance_matrix":
            self._lower = linalg.cholesky(self.covariance_matrix)
        else:
            self._lower = _lower_of_inverse(self.precision_matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        batch = tuple(batch_shape)
        return type(self)(self.df.expand(batch), scale_tril=self._lower.expand(*batch, *self._event_shape), validate_args=False)

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._lower

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        return self._lower @ self._lower.mT

    @lazy_property
    def precision_matrix(self) -> Tensor:
        return ops.cholesky_inverse(self._lower)

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """NaN where df is at most n + 1: there is none."""
        factor = self.df - self._event_shape[0] - 1
        return ops.where(factor > 0, factor, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        V = self.covariance_matrix
        d = V.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (V.pow(2) + d.unsqueeze(-1) * d.unsqueeze(-2))

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """[*sample_shape, .., n, n]. (max_try_correction is PyTorch's and changes nothing.)"""
        n = self._event_shape[0]
        roots = Chi2(self.df.unsqueeze(-1) - ops.arange(n, dtype=self.df.dtype), validate_args=False).rsample(sample_shape)  # [*sample_shape, .., n]
        roots = roots.clamp(min=finfo(roots.dtype).tiny).sqrt()
        below = standard_normal(self._extended_shape(sample_shape), self._lower).tril(-1)
        A = self._lower @ (ops.diag_embed(roots) + below)
        return A @ A.mT

    def _half_log_det(self) -> Tensor:
        return self._lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n, df = self._event_shape[0], self.df
        size = df * (0.5 * n * math.log(2.0) + self._half_log_det()) + ops.mvlgamma(0.5 * df, n)
        inside = linalg.solve_triangular(self._lower, linalg.cholesky(value), upper=False).pow(2).sum((-2, -1))  # trace(V^-1 X)
        return 0.5 * (df - n - 1) * linalg.slogdet(value)[1] - 0.5 * inside - size

    def entropy(self) -> Tensor:
        n, df = self._event_shape[0], self.df
        size = (n + 1) * (0.5 * n * math.log(2.0) + self._half_log_det()) + ops.mvlgamma(0.5 * df, n)
        return size - 0.5 * (df - n - 1) * multidigamma(0.5 * df, n) + 0.5 * df * n
