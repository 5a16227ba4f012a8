"""What is computed again rather than kept: a map's result that one kernel of the backward pass reads, made there from what is kept anyway.

The forward pass then need not write it, and nothing holds it: memory for a few operations an element, in registers. This file adds the step that makes
it; joining it to its reader is fuse.py's.
"""
from __future__ import annotations

from ..kernels import expr as E
from .fuse import Bits, Kernel, decode, join
from .program import Step, fresh, names

LITTLE = 1 << 16  # smaller blocks are not worth it


def computed_again(before: list[Step], steps: list[Step], recipes, lasting: set, steady, sizes: dict[tuple, int], new_sizes: dict[tuple, int]) -> list[Step]:
    """The backward pass's steps with such results made in them. before: the forward pass's, with `sizes` of its blocks. lasting: regions that are needed anyway.

    new_sizes gets entries for what is new.
    """
    makers: dict[tuple, list[Step]] = {}
    for step in before:
        for name in dict.fromkeys(names(step)):
            makers.setdefault(name, []).append(step)
    readers: dict[tuple, list[int]] = {}
    for number, step in enumerate(steps):
        for name in dict.fromkeys(names(step)):
            readers.setdefault(name, []).append(number)
    gone: set[tuple] = set()
    needed: set[tuple] = set()  # what is read to make others
    first: list[Step] = []
    steps = list(steps)
    for name, reading in readers.items():
        if name not in sizes or sizes[name] < LITTLE or name in lasting or name in needed or len(reading) != 1 or name not in makers or not steady(name):
            continue
        maker, reader = decode(makers[name][0], recipes), decode(steps[reading[0]], recipes)
        if maker is None or reader is None or not _cheap(maker, name):
            continue
        sources = {o.place[0] for o in maker.ins if o.in_memory}
        if any(source in gone or source not in readers or not steady(source) for source in sources):
            continue
        made = fresh(sizes, new_sizes)
        rename = lambda o: o._replace(place=(made, o.place[1])) if o.in_memory and o.place[0] == name else o  # noqa: B023
        own = maker._replace(outs=tuple(map(rename, maker.outs)))
        if join(own, reader._replace(ins=tuple(map(rename, reader.ins)))) is None:
            continue
        step = makers[name][0]
        first.append(step._replace(slots=((made, step.slots[0][1]), *step.slots[1:]), writes=(made,)))
        steps[reading[0]] = steps[reading[0]]._replace(slots=tuple([(made, slot[1]) if type(slot) is tuple and slot[0] == name else slot for slot in steps[reading[0]].slots]))
        new_sizes[made] = sizes[name]
        gone.add(name)
        needed |= sources
    return first + steps


def _cheap(maker: Kernel, name) -> bool:
    """Whether it is a map with this one result, which costs no more than a read and a write of memory do."""
    if maker.dims is not None or len(maker.outs) != 1 or maker.outs[0].place[0] != name or type(maker.outs[0].kind) is Bits or any(o.kind == "index" for o in maker.ins):
        return False
    return sum(node.op in E.COSTLY for node in E.topological(maker.exprs)) <= 1
