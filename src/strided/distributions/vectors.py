"""Distributions of vectors: Dirichlet and Beta, MultivariateNormal and its low-rank kind."""
from __future__ import annotations

import math
from typing import Any

from .. import constraints, linalg, ops
from ..autograd import no_grad
from ..dtypes import finfo
from ..layout import broadcast_shapes
from ..tensor import Tensor
from .base import Distribution, ExponentialFamily
from .utils import broadcast_all, lazy_property, standard_normal


class Dirichlet(ExponentialFamily):
    """Points of a simplex of K corners. concentration: [.., K], positive."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        from ..nn.functional import one_hot

        corner = one_hot(above.argmax(-1), above.shape[-1]).to(above.dtype)
        return ops.where((self.concentration < 1).all(-1, keepdim=True), corner, above / above.sum(-1, True))

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return ops._sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a = self.concentration
        return ops.xlogy(a - 1.0, value).sum(-1) + ops.lgamma(a.sum(-1)) - ops.lgamma(a).sum(-1)

    def entropy(self) -> Tensor:
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        return ops.lgamma(a).sum(-1) - ops.lgamma(total) - (k - total) * ops.digamma(total) - ((a - 1.0) * ops.digamma(a)).sum(-1)


class Beta(ExponentialFamily):
    """Numbers in (0, 1): the first of a Dirichlet pair."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        one, zero = broadcast_all(concentration1, concentration0)
        if not (one.is_floating_point() and zero.is_floating_point()):
            one, zero = one.float(), zero.float()
        self._dirichlet = Dirichlet(ops.stack([one, zero], -1))
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    concentration1 = property(lambda self: self._dirichlet.concentration[..., 0])
    concentration0 = property(lambda self: self._dirichlet.concentration[..., 1])
    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))  # type: ignore[assignment]
    mode = property(lambda self: self._dirichlet.mode[..., 0])  # type: ignore[assignment]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.sample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._dirichlet.log_prob(ops.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices [dim, dim]; concentration 1: all are as likely. Drawn row by row (Lewandowski, Kurowicka and Joe's onion)."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape, a = self._extended_shape(sample_shape), self.concentration
        row = ops.arange(float(self.dim), dtype=a.dtype) - 1
        row = row.clamp(min=0)  # 0, 0, 1, …, dim - 2: a row's free dimensions, less one
        with no_grad():
            length = Beta(row + 0.5, (a + 0.5 * (self.dim - 2)).unsqueeze(-1) - 0.5 * row).sample(sample_shape).unsqueeze(-1)  # squared, of what is below the diagonal
            way = ops.randn(shape, dtype=a.dtype).tril(-1)
            way = way / way.norm(dim=-1, keepdim=True)
            way[..., 0, :].fill_(0.0)
            w = length.sqrt() * way
            return w + ops.diag_embed((1 - (w**2).sum(-1)).clamp(min=finfo(a.dtype).tiny).sqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, rows = self.concentration, self.dim - 1
        power = 2 * (a - 1).unsqueeze(-1) + self.dim - ops.arange(2.0, self.dim + 1, dtype=a.dtype)
        alpha = a + 0.5 * rows
        size = 0.5 * rows * math.log(math.pi) + ops.mvlgamma(alpha - 0.5, rows) - ops.lgamma(alpha) * rows
        return (power * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1) - size


# ---- normal vectors ---------------------------------------------------------------------------------------------------------------


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    return ops.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def mahalanobis(lower: Tensor, x: Tensor) -> Tensor:
    """|L^-1 x|^2 of vectors x [.., n] for lower triangles L [.., n, n], broadcast."""
    return linalg.solve_triangular(lower, x.unsqueeze(-1), upper=False).squeeze(-1).pow(2).sum(-1)


class MultivariateNormal(Distribution):
    """Normal vectors of mean `loc` [.., n] and one of: `covariance_matrix`, `precision_matrix`, `scale_tril` (the covariance's Cholesky factor), [.., n, n]."""

    arg_constraints = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None, validate_args: bool | None = None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {"covariance_matrix": covariance_matrix, "scale_tril": scale_tril, "precision_matrix": precision_matrix}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.__dict__[name] = matrix.expand(*batch, *matrix.shape[-2:])
        self.loc = loc.expand(*batch, *loc.shape[-1:])
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _lower_of_inverse(matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        lower = self._unbroadcasted_scale_tril
        del self.__dict__["_unbroadcasted_scale_tril"]
        try:
            new = super().expand(batch_shape, _instance)
        finally:
            self._unbroadcasted_scale_tril = lower
        new._unbroadcasted_scale_tril = lower
        return new

    @lazy_property
    def scale_tril(self) -> Tensor:
        n = self._event_shape[0]
        return self._unbroadcasted_scale_tril.expand(*self._batch_shape, n, n)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        n, lower = self._event_shape[0], self._unbroadcasted_scale_tril
        return (lower @ lower.mT).expand(*self._batch_shape, n, n)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        n = self._event_shape[0]
        return ops.cholesky_inverse(self._unbroadcasted_scale_tril).expand(*self._batch_shape, n, n)

    mean = property(lambda self: self.loc)  # type: ignore[assignment]
    mode = property(lambda self: self.loc)  # type: ignore[assignment]
    variance = property(lambda self: self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(*self._batch_shape, *self._event_shape))  # type: ignore[assignment]

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc + _times(self._unbroadcasted_scale_tril, standard_normal(self._extended_shape(sample_shape), self.loc))

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        apart = mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + apart) - self._half_log_det()

    def entropy(self) -> Tensor:
        return (0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()).expand(self._batch_shape)


def _lower_of_inverse(precision: Tensor) -> Tensor:
    """The Cholesky factor of a positive definite matrix's inverse: of the matrix turned about, inverted."""
    lower = linalg.cholesky(ops.flip(precision, (-2, -1)))
    upper = ops.flip(lower, (-2, -1)).mT
    return linalg.solve_triangular(upper, ops.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device), upper=False)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors whose covariance is W W^T + diag(D): `cov_factor` W [.., n, r], `cov_diag` D [.., n]."""

    arg_constraints = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2), "cov_diag": constraints.independent(constraints.positive, 1),
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        n = loc.shape[-1]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2] != n:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {n} x m")
        if cov_diag.shape[-1] != n:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {(n,)}")
        batch = broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc, self.cov_diag, self.cov_factor = loc.expand(*batch, n), cov_diag.expand(*batch, n), cov_factor.expand(*batch, *cov_factor.shape[-2:])
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)  # [.., r, n]
        self._capacitance_tril = linalg.cholesky(scaled @ self.cov_factor + ops.eye(cov_factor.shape[-1], dtype=loc.dtype))  # of I + W^T D^-1 W
        super().__init__(batch, (n,), validate_args=validate_args)

    mean = property(lambda self: self.loc)  # type: ignore[assignment]
    mode = property(lambda self: self.loc)  # type: ignore[assignment]
    variance = property(lambda self: self.cov_factor.pow(2).sum(-1) + self.cov_diag)  # type: ignore[assignment]
    covariance_matrix = property(lambda self: self.cov_factor @ self.cov_factor.mT + ops.diag_embed(self.cov_diag))
    scale_tril = property(lambda self: linalg.cholesky(self.covariance_matrix))
    precision_matrix = property(lambda self: linalg.inv(self.covariance_matrix))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        w = standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        d = standard_normal(shape, self.loc)
        return self.loc + _times(self.cov_factor, w) + self.cov_diag.sqrt() * d

    def _log_det(self) -> Tensor:
        return 2 * self._capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) + self.cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        away = value - self.loc
        inner = _times(self.cov_factor.mT / self.cov_diag.unsqueeze(-2), away)
        apart = (away.pow(2) / self.cov_diag).sum(-1) - mahalanobis(self._capacitance_tril, inner)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + apart)

    def entropy(self) -> Tensor:
        return 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
