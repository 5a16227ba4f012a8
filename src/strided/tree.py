"""Nests of tuples, lists and dicts as flat lists of their leaves and back. Imports nothing."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any


def flatten(value: Any) -> list[Any]:
    """The leaves of a nest, in order; what is no tuple, list or dict is a leaf."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flatten(item)]
    return [value]


def rebuild(like: Any, leaves: Any) -> Any:
    """A nest of the structure of `like` with other leaves, taken from the iterator `leaves`."""
    leaves = iter(leaves)

    def build(value: Any) -> Any:
        if isinstance(value, dict):
            return type(value)((key, build(item)) for key, item in value.items())
        if isinstance(value, (tuple, list)):
            items = [build(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        return next(leaves)

    return build(like)


def map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """The nest with `function` of every leaf."""
    return rebuild(value, [function(leaf) for leaf in flatten(value)])


def broadcast(prefix: Any, value: Any, what: str) -> list[Any]:
    """One entry of `prefix` a leaf of `value`: where prefix has a leaf, it stands for everything below. Raises ValueError where the structures disagree."""
    if not isinstance(prefix, (tuple, list, dict)):
        return [prefix] * len(flatten(value))
    if isinstance(prefix, dict):
        pairs = [(prefix[key], value[key]) for key in value] if isinstance(value, dict) and prefix.keys() == value.keys() else None
    else:
        pairs = list(zip(prefix, value)) if isinstance(value, (tuple, list)) and len(prefix) == len(value) else None
    if pairs is None:
        raise ValueError(f"{what} is not compatible with the structure of the inputs: {prefix!r}")
    return [entry for p, v in pairs for entry in broadcast(p, v, what)]
