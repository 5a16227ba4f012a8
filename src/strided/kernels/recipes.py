"""What descriptors were made from, for those who want to combine kernels (compile/fuse.py). Kept only while `KEEP` is on: plans live on as bytes.

A recipe is good for its descriptor wherever that runs: sizes, strides and the code's address are part of the bytes.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..layout import Layout

RECIPES: dict[bytes, Recipe | Copied | Laid] = {}
KEEP = [False]
LISTENERS: dict[int, Any] = {}  # thread → who is told there of optimisers' updates and of the numbers that their rules are given (compile/updates.py)
UNREPEATABLE: list[str] = []  # what was done meanwhile that a replay would leave out


class Recipe(NamedTuple):
    """A map (dims None), or a fold over `dims`: expressions, (dtype, layout) of results and inputs as their builders take them, dtypes that inputs are converted to."""

    exprs: tuple
    outs: tuple
    ins: tuple
    compute: Any
    dims: tuple | None


class Copied(NamedTuple):
    """The recipe of a copy: elements of so many bytes, whatever they are, and the layouts of target and source over one shape."""

    itemsize: int
    target: Layout
    source: Layout


class Laid(NamedTuple):
    """The recipe of a kernel whose results, its first operands, may lie at any strides: their layouts, and the descriptor for others (None: there is none)."""

    itemsize: int
    layouts: tuple[Layout, ...]
    make: Callable[[tuple[Layout, ...]], bytes | None]


def note_laid(descriptor: bytes, itemsize: int, layouts, make) -> bytes:
    """Remembers such a kernel if anybody wants it. Returns the descriptor."""
    if KEEP[0]:
        RECIPES[descriptor] = Laid(itemsize, tuple(layouts), make)
    return descriptor


def note_copy(descriptor: bytes, itemsize: int, shape, target, source) -> bytes:
    """Remembers a copy if anybody wants it; strides in elements, and none of them backwards, which no layout has. Returns the descriptor."""
    if KEEP[0] and min((*target, *source), default=0) >= 0:
        RECIPES[descriptor] = Copied(itemsize, Layout.of(tuple(shape), tuple(target)), Layout.of(tuple(shape), tuple(source)))
    return descriptor


def note(descriptor: bytes, exprs, outs, ins, compute=None, dims=None) -> bytes:
    """Remembers the recipe if anybody wants it. Returns the descriptor."""
    if KEEP[0]:
        exprs = tuple(exprs) if isinstance(exprs, (tuple, list)) else (exprs,)
        compute = tuple(compute) if isinstance(compute, (tuple, list)) else (compute,) * len(ins)
        RECIPES[descriptor] = Recipe(exprs, tuple(outs), tuple(ins), compute, None if dims is None else tuple(dims))
    return descriptor


def unrepeatable(reason: str) -> None:
    """Tells a recording, if one runs, of an effect that is none of kernels."""
    if KEEP[0]:
        UNREPEATABLE.append(reason)
