"""Results written where a copy would put them: a kernel that writes at any strides writes into the copy's target, and the copy is left out.

So the gradients of query, key and value come to lie beside each other, as the linear layer's gradient wants them. Copies of whole blocks, and those that join
maps, are fuse.py's.
"""
from __future__ import annotations

from math import prod

from ..kernels.recipes import Copied, Laid
from ..layout import Layout
from .program import Step, names


def placed(steps: list[Step], recipes: dict, lasting: set, sizes: dict[tuple, int]) -> list[Step]:
    """The steps without such copies. recipes gets entries for what is new; the other arguments are `fuse`'s."""
    steps = list(steps)
    touching: dict[tuple, list[int]] = {}
    for number, step in enumerate(steps):
        for name in dict.fromkeys(names(step)):
            touching.setdefault(name, []).append(number)
    gone: set[int] = set()
    theirs: dict[tuple, list[tuple[int, Layout]]] = {}  # (maker, target): what it writes there already
    for number, step in enumerate(steps):
        recipe = recipes.get(step.what) if type(step.what) is bytes else None
        if type(recipe) is not Copied or not all(type(slot) is tuple for slot in step.slots):
            continue
        (target, offset), (source, start) = step.slots
        if source in lasting or target[0] != "block" or target == source or start or len(touching[source]) != 2 or touching[source][1] != number:
            continue
        maker = touching[source][0]
        made = recipes.get(steps[maker].what) if type(steps[maker].what) is bytes else None
        if type(made) is not Laid or any(target in names(steps[k]) for k in range(maker + 1, number) if k not in gone):
            continue
        slots = list(steps[maker].slots)
        place = next((k for k, slot in enumerate(slots[: len(made.layouts)]) if slot == (source, 0)), None)
        if place is None or recipe.itemsize != made.itemsize or sum(type(slot) is tuple and slot[0] == source for slot in slots) != 1:
            continue
        own, written = made.layouts[place], theirs.setdefault((maker, target), [])
        moved = _carried(own, recipe)
        whole = own.numel * made.itemsize == sizes.get(source) and prod(recipe.source.shape) == own.numel and own.is_dense
        if moved is None or not whole or sum(type(slot) is tuple and slot[0] == target for slot in slots) != len(written):
            continue
        if not all(_apart(moved, offset, other, at, made.itemsize) for at, other in written):
            continue
        layouts = tuple([moved if k == place else layout for k, layout in enumerate(made.layouts)])
        descriptor = made.make(layouts)
        if descriptor is None:
            continue
        recipes[descriptor] = made._replace(layouts=layouts)
        slots[place] = target, offset
        steps[maker] = steps[maker]._replace(what=descriptor, slots=tuple(slots))
        written.append((offset, moved))
        gone.add(number)
        touching[source] = [maker]
        touching[target] = sorted({maker if k == number else k for k in touching[target]})
    return [step for number, step in enumerate(steps) if number not in gone]


def _carried(own: Layout, copy: Copied) -> Layout | None:
    """A result's layout as the copy carries it over; None where one of its dimensions lies across several of the copy's."""
    strides = []
    for size, stride in zip(own.shape, own.strides):
        found = 0 if size == 1 else None
        for extent, source, target in zip(copy.source.shape, copy.source.strides, copy.target.strides):
            if size > 1 and extent > 1 and source and stride % source == 0 and stride // source * size <= extent:
                found = stride // source * target
        if found is None:
            return None
        strides.append(found)
    return Layout.of(tuple(own.shape), tuple(strides))


def _apart(a: Layout, a_at: int, b: Layout, b_at: int, itemsize: int) -> bool:
    """Whether two windows of a block, of the same shape and strides, have no element in common: their runs lie beside each other between one step and the next."""
    if tuple(a.shape) != tuple(b.shape) or a.strides != b.strides:
        return False
    run, step = 1, None
    for stride, size in sorted((stride, size) for size, stride in zip(a.shape, a.strides) if size > 1):
        if stride == run and step is None:
            run *= size
        elif step is None:
            step = stride
    distance = abs(a_at - b_at)
    return distance >= run * itemsize and (step is None or distance + run * itemsize <= step * itemsize)
