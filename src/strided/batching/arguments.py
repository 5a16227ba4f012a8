"""How rules read a call: its arguments by their names, and dimensions of a sample as those of the batch. Holds no rule."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..layout import wrap_dim

DIMS = ("dim", "dims", "dim0", "dim1", "dim2", "start_dim", "end_dim", "source", "destination", "axis", "axis0", "axis1", "dimension")


@functools.lru_cache(None)
def signature(func: Callable[..., Any]) -> tuple[tuple[str, ...], frozenset[str], dict[str, Any]]:
    """(names of the arguments by position, all names, what dimensions are where they are not given)."""
    parameters = inspect.signature(func).parameters.values()
    places = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
    return places, frozenset(p.name for p in parameters), {p.name: p.default for p in parameters if p.name in DIMS and p.default is not p.empty}


def bound(func: Callable[..., Any], args: tuple, kwargs: dict) -> dict[str, Any] | None:
    """The arguments by their names, dimensions with their defaults; None for a call that cannot be read so."""
    places, names, defaults = signature(func)
    if len(args) > len(places) or not names.issuperset(kwargs):
        return None
    return {**defaults, **dict(zip(places, args)), **kwargs}


def moved(dim: Any, ndim: int) -> Any:
    """A dimension (or several) of a sample as one of the batch."""
    if isinstance(dim, (tuple, list)):
        return type(dim)(moved(d, ndim) for d in dim)
    return wrap_dim(dim, ndim) + 1
