"""The order of a program's steps: those that let more memory go than they take move up to behind what they need.

Fusing puts a kernel where its last part was, and an optimiser's updates come after the whole backward pass: what they read would be held until then.
"""
from __future__ import annotations

from itertools import accumulate

from ..kernels import epilogue
from ..kernels.recipes import Copied, Recipe
from .lifetimes import lifetimes
from .program import Step, names

_OUTSIDE = "tensor", "grad"


def written_by(step: Step, recipes, unknown: int | None = None) -> set:
    """The regions that a step may write. unknown: how many operands of a kernel without a recipe may be results, None: all."""
    if step.writes is not None:
        return set(step.writes)
    recipe = recipes.get(step.what) if type(step.what) is bytes else None
    count = unknown
    if type(recipe) is Recipe:
        count = len(recipe.outs)
    elif step.what == "flag":
        count = 0
    elif type(step.what) is str or type(recipe) is Copied or epilogue.is_product(step.what):
        count = 1
    return {slot[0] for slot in step.slots[:count] if type(slot) is tuple}


def moved_up(steps: list[Step], recipes, given, lasting, sizes: dict[tuple, int]) -> list[Step]:
    """The steps in an order that holds less memory. given: regions that are there from the start; lasting: those that are needed afterwards; sizes: of all blocks.

    Nothing from outside is written before a check that it came after.
    """
    touched = [set(names(step)) for step in steps]
    written = [written_by(step, recipes) for step in steps]
    checks = [step.what == "flag" or ("fault",) in touched[k] for k, step in enumerate(steps)]
    outside = [any(name[0] in _OUTSIDE for name in names_of) for names_of in written]
    users: dict[tuple, list[int]] = {}
    for k, names_of in enumerate(touched):
        for name in names_of:
            if name in sizes:
                users.setdefault(name, []).append(k)
    order: list[int] = []
    for k in range(len(steps)):
        at = k
        if steps[k].what != "flag":
            while at and not (touched[other := order[at - 1]] & written[k] or written[other] & touched[k] or checks[other] and (outside[k] or checks[k])):
                at -= 1
        if at < k:
            place = {step: position for position, step in enumerate(order)}
            gain = 0  # bytes times steps
            for name in touched[k]:
                if name in sizes:
                    others = [place.get(other, other) for other in users[name] if other != k]
                    if name not in lasting and (last := max(others, default=at)) < k:
                        gain += sizes[name] * (k - max(last, at))
                    if name not in given:
                        gain -= sizes[name] * max(0, min(others, default=k) - at)
            if gain <= 0:
                at = k
        order.insert(at, k)
    new = [steps[k] for k in order]
    return new if _most(new, given, lasting, sizes) < _most(steps, given, lasting, sizes) else steps


def _most(steps, given, lasting, sizes) -> int:
    """The bytes that are held at most."""
    changes = [0] * (len(steps) + 2)
    for name, (first, last) in lifetimes(steps).items():
        if name in sizes:
            changes[0 if name in given else first] += sizes[name]
            changes[len(steps) + 1 if name in lasting else last + 1] -= sizes[name]
    return max(accumulate(changes))


def first_write(steps: list[Step], recipes, regions: set) -> int:
    """Number of the first step that may write one of the regions."""
    return next((number for number, step in enumerate(steps) if written_by(step, recipes, 4) & regions), len(steps))  # unknown kernels have no more results than this
