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


# What kernels without a recipe only read, of their slots; None: up to the last one. All other operands may be written.
_READ = {
    "matmul": (1, None), "copy": (1, None), "join": (1, None), "scan": (1, None), "samples": (1, None), "bands": (1, None), "put back": (1, None),
    "indexed": (1, -1), "check": (0, 1), "attention": (1, 4), "attention gradients": (3, 8), "direct convolution": (1, 4), "packed convolution": (1, 4),
    "weight gradient": (1, 3), "channels last": (1, 4), "channels last, weights": (1, 3), "channels last, depthwise": (1, 4), "channels last, depthwise weights": (1, 3),
}  # fmt: skip


def written_by(step: Step, recipes, unknown: int | None = None) -> set:
    """The regions that a step may write. unknown: how many operands of a kernel that nothing is known of may be results, None: all."""
    if step.writes is not None:
        return set(step.writes)
    recipe = recipes.get(step.what) if type(step.what) is bytes else None
    slots = step.slots[:unknown]
    if type(recipe) is Recipe:
        slots = step.slots[: len(recipe.outs)]
    elif step.what == "flag":
        slots = ()
    elif type(step.what) is str or type(recipe) is Copied:
        slots = step.slots[:1]
    elif (key := epilogue.key_of(step.what)) and key[0] in _READ:
        first, end = _READ[key[0]]
        slots = (*step.slots[:first], *(step.slots[end:] if end is not None else ()))
    return {slot[0] for slot in slots if type(slot) is tuple}


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


def first_writes(steps: list[Step], recipes) -> dict[tuple, int]:
    """Number of the first step that may write each region."""
    first: dict[tuple, int] = {}
    for number, step in enumerate(steps):
        for name in written_by(step, recipes, 4):  # unknown kernels have no more results than this
            first.setdefault(name, number)
    return first
