"""`associative_scan`: running results of a function, in log2(n) rounds of operators instead of n steps."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import ops
from ..tensor import Tensor
from ..tree import flatten, rebuild


def associative_scan(combine_fn: Callable, xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise") -> Any:
    """Running results along `dim`: y[0] = x[0], y[i] = combine_fn(y[i - 1], x[i]), from the end with `reverse`.

    xs: a tensor, or tensors in lists, tuples and dicts, of the same length along `dim`; combine_fn takes two such and returns one. It has to be associative.
    Differentiable. Raises ValueError where the lengths differ, where combine_fn returns something else, or for an unknown combine_mode.
    """
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves = flatten(xs)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise ValueError("All xs leaves must be a Tensor, and there must be at least one")
    leaves = [leaf.movedim(dim, 0) for leaf in leaves]
    if len({leaf.shape[0] for leaf in leaves}) > 1 or leaves[0].shape[0] == 0:
        raise ValueError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0, the same for all")
    if reverse:
        leaves = [leaf.flip(0) for leaf in leaves]

    def combine(a: list, b: list) -> list:
        results = flatten(combine_fn(rebuild(xs, a), rebuild(xs, b)))
        if [r.shape for r in results] != [part.shape for part in a]:
            raise ValueError("The output of combine_fn must have the structure and the shapes of its arguments")
        return results

    results = _scan(combine, leaves)
    if reverse:
        results = [result.flip(0) for result in results]
    return rebuild(xs, [result.movedim(0, dim) for result in results])


def _scan(combine: Callable, x: list) -> list:
    """Pairs are combined, their scan gives every second result, and one more step each the others."""
    n = x[0].shape[0]
    if n == 1:
        return x
    odd = _scan(combine, combine([e[:-1:2] for e in x], [e[1::2] for e in x]))  # results 1, 3, 5, …
    if n > 2:
        even = combine([e[: (n - 1) // 2] for e in odd], [e[2::2] for e in x])  # results 2, 4, …
        even = [ops.cat([e[:1], rest]) for e, rest in zip(x, even)]
    else:
        even = [e[:1] for e in x]
    return [_interleaved(a, b) for a, b in zip(even, odd)]


def _interleaved(even: Tensor, odd: Tensor) -> Tensor:
    """[k (+ 1), …] and [k, …] → even[0], odd[0], even[1], …"""
    pairs = ops.stack([even[: odd.shape[0]], odd], 1).flatten(0, 1)
    return ops.cat([pairs, even[odd.shape[0] :]]) if even.shape[0] > odd.shape[0] else pairs
