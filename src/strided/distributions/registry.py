"""Transforms from all numbers onto a constraint: `biject_to` gives one that is one to one, `transform_to` any that covers it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import constraints
from . import transforms as T
from .joined import CatTransform, CorrCholeskyTransform, StackTransform


class ConstraintRegistry:
    """What makes a transform of a constraint, by the constraint's kind."""

    def __init__(self) -> None:
        self._makers: dict[Any, Callable[[Any], T.Transform]] = {}

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Registers a factory for a kind of constraint (or the kind of one that is given); without one, a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        self._makers[_kind(constraint)] = factory
        return factory

    def __call__(self, constraint: Any) -> T.Transform:
        maker = self._makers.get(_kind(constraint))
        if maker is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return maker(constraint)


def _kind(constraint: Any) -> Any:
    """Bounded sets are one class here: what bounds they have tells them apart."""
    if isinstance(constraint, constraints._Bounded):
        return constraint._name
    return constraint if isinstance(constraint, type) else type(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _between(c: Any) -> T.Transform:
    if type(c.lower_bound) in (int, float) and (c.lower_bound, c.upper_bound) == (0, 1):
        return T.SigmoidTransform()
    return T.ComposeTransform([T.SigmoidTransform(), T.AffineTransform(c.lower_bound, c.upper_bound - c.lower_bound)])


def _above(c: Any) -> T.Transform:
    if type(c.lower_bound) in (int, float) and not c.lower_bound:
        return T.ExpTransform()
    return T.ComposeTransform([T.ExpTransform(), T.AffineTransform(c.lower_bound, 1)])


for _registry in (biject_to, transform_to):
    _registry.register(constraints.real, lambda c: T.identity_transform)
    _registry.register(constraints.positive, _above)
    _registry.register(constraints.nonnegative, _above)
    _registry.register(constraints.less_than(0), lambda c: T.ComposeTransform([T.ExpTransform(), T.AffineTransform(c.upper_bound, -1)]))
    _registry.register(constraints.unit_interval, _between)
    _registry.register(constraints.half_open_interval(0, 1), _between)
biject_to.register(constraints.independent, lambda c: T.IndependentTransform(biject_to(c.base_constraint), c.reinterpreted_batch_ndims))
transform_to.register(constraints.independent, lambda c: T.IndependentTransform(transform_to(c.base_constraint), c.reinterpreted_batch_ndims))
biject_to.register(constraints.simplex, lambda c: T.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: T.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: T.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda c: T.PositiveDefiniteTransform())
for _registry in (biject_to, transform_to):
    _registry.register(constraints.corr_cholesky, lambda c: CorrCholeskyTransform())
biject_to.register(constraints.cat, lambda c: CatTransform([biject_to(part) for part in c.cseq], c.dim, c.lengths))
transform_to.register(constraints.cat, lambda c: CatTransform([transform_to(part) for part in c.cseq], c.dim, c.lengths))
biject_to.register(constraints.stack, lambda c: StackTransform([biject_to(part) for part in c.cseq], c.dim))
transform_to.register(constraints.stack, lambda c: StackTransform([transform_to(part) for part in c.cseq], c.dim))
