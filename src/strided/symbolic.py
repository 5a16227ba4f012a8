"""Numbers that may stand for a size yet unknown: PyTorch's classes of them, which have no instances here, and its functions of them, which take plain numbers as well.

Sizes are plain ints here, so that `isinstance(x.shape[0], torch.SymInt)` is False. Code that is written for both calls the functions.
"""
from __future__ import annotations

import math
from typing import Any


class _Symbol:
    """A number that a tracer of Python would know by its expression."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError(f"torch.{type(self).__name__}: sizes are plain numbers here, as nothing traces Python; use int, float or bool")


class SymInt(_Symbol):
    """PyTorch's class of sizes that a tracer leaves open."""


class SymFloat(_Symbol):
    """PyTorch's class of floats that a tracer leaves open."""


class SymBool(_Symbol):
    """PyTorch's class of conditions that a tracer leaves open."""


def sym_int(a: Any) -> int:
    """int(a): towards zero."""
    return int(a)


def sym_float(a: Any) -> float:
    """float(a)."""
    return float(a)


def _chosen(choose: Any, a: Any, b: Any) -> Any:
    for number in (a, b):
        if not isinstance(number, (int, float)):
            raise AssertionError(f"expected an int or a float, got {type(number)}")
    return float(choose(a, b)) if isinstance(a, float) or isinstance(b, float) else choose(a, b)


def sym_max(a: Any, b: Any) -> Any:
    """The larger number; a float where one of them is."""
    return _chosen(max, a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number; a float where one of them is."""
    return _chosen(min, a, b)


def sym_not(a: Any) -> bool:
    """not a."""
    return not a


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """t if b else f. Raises AssertionError unless b is a bool, and t and f are of one type."""
    if not isinstance(b, bool):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    return t if b else f


def sym_sum(*args: Any) -> Any:
    """The sum of the numbers, given one by one or as a list: 0 of none."""
    return sum(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)


def sym_sqrt(a: Any) -> float:
    """The square root."""
    return math.sqrt(a)
