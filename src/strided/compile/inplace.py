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


def in_place(steps: list[Step], recipes, lasting: set, sizes: dict[tuple, int]) -> tuple[list[Step], set]:
    """The steps with such results in their inputs' blocks, and the blocks that are written so. lasting: regions that are needed afterwards, whose contents stay; sizes: of all blocks."""
    life = lifetimes(steps)
    becomes: dict[tuple, tuple] = {}
    done = []
    for number, step in enumerate(steps):
        found = _place(step, number, recipes, lasting, sizes, life)
        if found is not None:
            out, source = found
            becomes[out] = becomes.get(source, source)
            recipe = recipes[step.what]
            descriptor = build_map(recipe.exprs, recipe.outs, recipe.ins, compute=list(recipe.compute))  # not past the caches: its lines are there
            recipes[descriptor] = recipe
            step = step._replace(what=descriptor)
        slots = tuple([(becomes.get(slot[0], slot[0]), slot[1]) if type(slot) is tuple else slot for slot in step.slots])
        writes = None if step.writes is None else tuple([becomes.get(name, name) for name in step.writes])
        done.append(step._replace(slots=slots, writes=writes))
    return done, set(becomes.values())


def _place(step: Step, number: int, recipes, lasting, sizes, life) -> tuple[tuple, tuple] | None:
    """(the block of a map's result, the block of an input that it can replace), or None."""
    if type(step.what) is not bytes or type(recipes.get(step.what)) is not Recipe:
        return None
    kernel = decode(step, recipes)
    if kernel is None or kernel.dims is not None or len(kernel.outs) != 1:
        return None
    out = kernel.outs[0]
    name = out.place[0]
    if type(out.kind) is Bits or out.place[1] or name in lasting or sizes.get(name, 0) < LITTLE or life[name][0] != number:
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
