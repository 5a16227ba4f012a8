"""`torch.distributions.constraints`: sets of values that a tensor is asked to be in, element by element or matrix by matrix.

Holds those of numbers, simplices and square matrices. `check` says where they hold.
"""
from __future__ import annotations

from typing import Any

from .dtypes import finfo
from .linalg import cholesky_ex, eigvalsh
from .ops import cat as joined
from .ops import full
from .ops import stack as stacked
from .refused import missing
from .tensor import Tensor


class Constraint:
    """A set. is_discrete: of whole numbers. event_dim: how many last dimensions one member has."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Any) -> Tensor:
        """Whether the members along the first dimensions are in the set: a bool tensor without the last `event_dim` dimensions."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__.removeprefix("_") + "()"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Tensor:
        return (value == 0) | (value == 1)


class _Real(Constraint):
    def check(self, value: Any) -> Tensor:
        return value == value  # false for NaN


class _Bounded(Constraint):
    """Numbers between bounds: None is no bound; an open bound is left out."""

    def __init__(self, name: str, lower: Any, upper: Any, open_lower: bool = False, open_upper: bool = False, whole: bool = False):
        self._name, self.lower_bound, self.upper_bound, self._open, self.is_discrete = name, lower, upper, (open_lower, open_upper), whole

    def check(self, value: Any) -> Tensor:
        fits = value % 1 == 0 if self.is_discrete else value == value
        if self.lower_bound is not None:
            fits = fits & (value > self.lower_bound if self._open[0] else value >= self.lower_bound)
        if self.upper_bound is not None:
            fits = fits & (value < self.upper_bound if self._open[1] else value <= self.upper_bound)
        return fits

    def __repr__(self) -> str:
        bounds = (("lower_bound", self.lower_bound), ("upper_bound", self.upper_bound))
        return f"{self._name}({', '.join(f'{name}={bound}' for name, bound in bounds if bound is not None)})"


def greater_than(lower_bound: Any) -> Constraint:
    """Numbers above a bound."""
    return _Bounded("GreaterThan", lower_bound, None, open_lower=True)


def greater_than_eq(lower_bound: Any) -> Constraint:
    """Numbers that are not below a bound."""
    return _Bounded("GreaterThanEq", lower_bound, None)


def less_than(upper_bound: Any) -> Constraint:
    """Numbers below a bound."""
    return _Bounded("LessThan", None, upper_bound, open_upper=True)


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Numbers from one bound to another."""
    return _Bounded("Interval", lower_bound, upper_bound)


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Numbers from one bound up to, but without, another."""
    return _Bounded("HalfOpenInterval", lower_bound, upper_bound, open_upper=True)


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Whole numbers from one bound to another."""
    return _Bounded("IntegerInterval", lower_bound, upper_bound, whole=True)


class _Dependent(Constraint):
    """A set that depends on other parameters: `check` is theirs. is_discrete, event_dim: as far as known."""

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0):
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: bool | None = None, event_dim: int | None = None) -> _Dependent:
        return _Dependent(is_discrete=self.is_discrete if is_discrete is None else is_discrete, event_dim=self.event_dim if event_dim is None else event_dim)

    def check(self, value: Any) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


class dependent_property(property, _Dependent):
    """A property that gives a constraint of the instance, and stands for a dependent one on the class."""

    def __init__(self, fn: Any = None, *, is_discrete: bool = False, event_dim: int = 0):
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn: Any) -> dependent_property:  # type: ignore[override]
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint can only be checked with the other parameters at hand."""
    return isinstance(constraint, _Dependent)


class _Multinomial(Constraint):
    """Counts that are at most `upper_bound` together."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Any):
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


multinomial = _Multinomial


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Any) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value: Any) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Independent(Constraint):
    """A constraint whose last dimensions count as one member."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Any) -> Tensor:
        fits = self.base_constraint.check(value)
        if fits.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return fits.flatten(fits.ndim - self.reinterpreted_batch_ndims).all(-1) if self.reinterpreted_batch_ndims else fits

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


independent = _Independent


class _Stack(Constraint):
    """One constraint for each index along dimension `dim`."""

    def __init__(self, cseq: Any, dim: int = 0):
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq, self.dim = list(cseq), dim

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))  # type: ignore[assignment]

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        most = max(c.event_dim for c in self.cseq)
        return most + (self.dim + most < 0)

    def check(self, value: Any) -> Tensor:
        return stacked([c.check(value.select(self.dim, i)) for i, c in enumerate(self.cseq)], self.dim)


class _Cat(Constraint):
    """One constraint for each part along dimension `dim`, whose lengths are `lengths` (default: 1 each)."""

    def __init__(self, cseq: Any, dim: int = 0, lengths: Any = None):
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))  # type: ignore[assignment]
    event_dim = property(lambda self: max(c.event_dim for c in self.cseq))  # type: ignore[assignment]

    def check(self, value: Any) -> Tensor:
        return joined([c.check(part) for c, part in zip(self.cseq, value.split(self.lengths, self.dim))], self.dim)


cat, stack = _Cat, _Stack


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Any) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    """Lower triangles with a positive diagonal whose rows have length 1."""

    event_dim = 2

    def check(self, value: Any) -> Tensor:
        tolerance = finfo(value.dtype).eps * value.shape[-1] * 10
        return lower_cholesky.check(value) & ((value.norm(dim=-1) - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Tensor:
        return full(value.shape[:-2], value.shape[-2] == value.shape[-1])


class _PositiveSemidefinite(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Tensor:
        return symmetric.check(value) & (eigvalsh(value) >= 0).all(-1)


class _Symmetric(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Tensor:
        return (abs(value - value.mT) <= 1e-6).flatten(-2).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Tensor:
        return super().check(value) & cholesky_ex(value).info.eq(0)


dependent = _Dependent()
boolean, real, simplex, one_hot = _Boolean(), _Real(), _Simplex(), _OneHot()
real_vector = _Independent(real, 1)
positive, nonnegative = greater_than(0.0), greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
nonnegative_integer, positive_integer = _Bounded("IntegerGreaterThan", 0, None, whole=True), _Bounded("IntegerGreaterThan", 1, None, whole=True)
lower_triangular, lower_cholesky, symmetric, positive_definite = _LowerTriangular(), _LowerCholesky(), _Symmetric(), _PositiveDefinite()
corr_cholesky, square, positive_semidefinite = _CorrCholesky(), _Square(), _PositiveSemidefinite()

__all__ = [
    "Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval",
    "interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip

__getattr__ = missing("torch.distributions.constraints")
