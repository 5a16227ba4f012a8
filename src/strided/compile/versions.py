"""Blocks that are written anew as a whole become other blocks from there on, so that an in-place operator is one like any other: fuse.py may join it to its neighbours.

Where the new contents take the old ones' place again is for inplace.py to say, once it is known what is left.
"""
from __future__ import annotations

from ..kernels.recipes import Copied, Recipe
from .fuse import decode
from .program import Step, fresh, names


def apart(steps: list[Step], recipes, sizes: dict[tuple, int], others=()) -> list[Step]:
    """The steps with such blocks told apart: earlier contents get new names, the last ones keep theirs. sizes: of the blocks that are made here, which gets entries for what is new;
    others: names that are taken as well."""
    touching: dict[tuple, list[int]] = {}
    for number, step in enumerate(steps):
        for name in dict.fromkeys(names(step)):
            touching.setdefault(name, []).append(number)
    steps = list(steps)
    for name, numbers in touching.items():
        if name not in sizes or len(numbers) < 2:
            continue
        start = 0
        for place, number in enumerate(numbers[1:], 1):
            if not _first(steps[number], recipes, name):
                continue
            kernel = decode(steps[number], recipes)
            if kernel is None or not _whole(kernel, name, sizes[name]):
                continue
            new = fresh(sizes, others)
            sizes[new] = sizes[name]
            for k in numbers[start:place]:
                steps[k] = _renamed(steps[k], name, new, 0)
            steps[number] = _renamed(steps[number], name, new, len(kernel.outs))
            start = place
    return steps


def _first(step: Step, recipes, name: tuple) -> bool:
    """Whether the block may be among a kernel's results."""
    recipe = recipes.get(step.what) if type(step.what) is bytes else None
    count = len(recipe.outs) if type(recipe) is Recipe else type(recipe) is Copied
    return any(type(slot) is tuple and slot[0] == name for slot in step.slots[:count])


def _whole(kernel, name, nbytes: int) -> bool:
    """Whether the kernel writes all of the block."""
    outs = [o for o in kernel.outs if o.place[0] == name]
    return len(outs) == 1 and outs[0].place[1] == 0 and outs[0].layout.is_dense and outs[0].layout.numel * outs[0].kind.itemsize == nbytes


def _renamed(step: Step, name: tuple, new: tuple, first: int) -> Step:
    """The step with another block in the name's place, from slot `first` on."""
    return step._replace(slots=tuple([(new, slot[1]) if type(slot) is tuple and slot[0] == name and k >= first else slot for k, slot in enumerate(step.slots)]))
