"""Maps that write where they have read: a result as large as an input that nothing needs afterwards takes its place.

A map reads each element before it writes the one at the same place (kernels/map.py), so that this is what an in-place operator does.
"""
from __future__ import annotations

from ..kernels.map import build_map
from ..kernels.recipes import Recipe
from .fuse import Bits, alike, decode
from .lifetimes import lifetimes
from .program import Step

LITTLE = 1 << 16  # smaller blocks are not worth another kernel


def in_place(steps: list[Step], recipes, lasting: set, sizes: dict[tuple, int], given=()) -> tuple[list[Step], set]:
    """The steps with such results in their inputs' blocks, and the blocks that are written so. lasting: regions that are needed afterwards, whose contents stay; sizes: of all blocks;
    given: those that are there from the start.

    A result that is needed afterwards keeps its block, and what was made for it is made there.
    """
    life = lifetimes(steps)
    becomes: dict[tuple, tuple] = {}
    done, over = [], set()

    def block(name):
        while name in becomes:
            name = becomes[name]
        return name

    for number, step in enumerate(steps):
        found = _place(step, number, recipes, lasting, sizes, life)
        if found is not None and not (found[0] in lasting and block(found[1]) in given):
            out, source = found
            if out in lasting:
                becomes[block(source)] = out
            else:
                becomes[out] = block(source)
            over.add(out)
            recipe = recipes[step.what]
            descriptor = build_map(recipe.exprs, recipe.outs, recipe.ins, compute=list(recipe.compute))  # not past the caches: its lines are there
            recipes[descriptor] = recipe
            step = step._replace(what=descriptor)
        done.append(step)
    renamed = []
    for step in done:
        slots = tuple([(block(slot[0]), slot[1]) if type(slot) is tuple else slot for slot in step.slots])
        renamed.append(step._replace(slots=slots, writes=None if step.writes is None else tuple(map(block, step.writes))))
    return renamed, {block(name) for name in over}


def _place(step: Step, number: int, recipes, lasting, sizes, life) -> tuple[tuple, tuple] | None:
    """(the block of a map's result, the block of an input that it can replace), or None."""
    if type(step.what) is not bytes or type(recipes.get(step.what)) is not Recipe:
        return None
    kernel = decode(step, recipes)
    if kernel is None or kernel.dims is not None or len(kernel.outs) != 1:
        return None
    out = kernel.outs[0]
    name = out.place[0]
    if type(out.kind) is Bits or out.place[1] or sizes.get(name, 0) < LITTLE or life[name][0] != number:
        return None
    if not out.layout.is_dense or out.layout.numel * out.kind.itemsize != sizes[name]:
        return None
    for source in dict.fromkeys(o.place[0] for o in kernel.ins if o.in_memory):
        if source in lasting or sizes.get(source) != sizes[name] or life[source][1] != number:
            continue
        reads = [o for o in kernel.ins if o.in_memory and o.place[0] == source]
        if all(o.place[1] == 0 and o.kind.itemsize == out.kind.itemsize and alike(o.layout, out.layout) for o in reads):
            return name, source
    return None
