"""When a program needs which memory: lifetimes of blocks, their places in shared memory, and where a long program is cut into stages.

Memory is taken before a stage and given back after it, so that what the backward pass has read makes room for the gradients that come. A cut costs a
microsecond or two, so there are few: only where most is held, and only as long as that falls. Program and its stages are program.py's.
"""
from __future__ import annotations

STAGES = 16
LITTLE = 1 << 20  # bytes that are not worth a cut
CANDIDATES = 64  # places at which a stage may be cut in two that are looked at


def lifetimes(steps) -> dict[tuple, list[int]]:
    """The first and the last step that touch each region. Flags are read when all is done: their last step is one behind the end."""
    life: dict[tuple, list[int]] = {}
    for number, step in enumerate(steps):
        for slot in step.slots:
            if type(slot) is tuple:
                life.setdefault(slot[0], [number, number])[1] = number
    for step in steps:
        if step.what == "flag":
            for slot in step.slots:
                if type(slot) is tuple:
                    life[slot[0]][1] = len(steps)
    return life


def plan_memory(life: dict[tuple, list[int]], sizes: dict[tuple, int]) -> tuple[dict[tuple, int], int]:
    """An offset for each block, and how many bytes they take: blocks that live at the same time do not overlap. Large ones are placed first, as low as they fit."""
    placed: list[tuple[int, int, int, int]] = []  # offset, end, first step, last step
    offsets: dict[tuple, int] = {}
    for name in sorted(sizes, key=lambda name: (-sizes[name], life[name][0])):
        first, last = life[name]
        size = rounded(sizes[name])
        at = 0
        for start, end, *_ in sorted(p for p in placed if p[2] <= last and first <= p[3]):
            if at + size <= start:
                break
            at = max(at, end)
        placed.append((at, at + size, first, last))
        offsets[name] = at
    return offsets, max((end for _, end, *_ in placed), default=0)


def rounded(nbytes: int) -> int:
    """The bytes that a block takes among others."""
    return -(-max(nbytes, 1) // 64) * 64


def cut(blocks: list[tuple[int, int, int]], count: int, at=(), enough: int = 0) -> tuple[list[int], int]:
    """Numbers of the steps before which a program of `count` steps is cut, and the bytes it then holds at most.

    blocks: (bytes, first step, last step); first -1: held from the start, last `count`: held at the end. at: where it is cut in any case. enough: bytes that are held elsewhere anyway.
    """
    bounds = [0, *at, count]
    stages = [(_held(blocks, start, end), start, end) for start, end in zip(bounds, bounds[1:])]
    while len(stages) < STAGES:
        worst = max(stages)
        held, start, end = worst
        if held <= max(enough, LITTLE) or end - start < 2:
            break
        inside = [block for block in blocks if block[1] < end and block[2] >= start]
        parts = []
        for k in range(start + 1, end, -(-(end - start) // CANDIDATES)):
            parts.append((max(a := _held(inside, start, k), b := _held(inside, k, end)), min(a, b), k))
        best, _, k = min(parts)
        if best > held - max(held >> 5, LITTLE >> 3):
            break
        stages.remove(worst)
        stages += [(_held(inside, start, k), start, k), (_held(inside, k, end), k, end)]
    return sorted(start for _, start, _ in stages)[1:], max(held for held, *_ in stages)


def _held(blocks, start: int, end: int) -> int:
    """The most bytes that are held while steps from `start` to `end` run in one go: what is needed before or after them, too, is held all the time."""
    whole, changes = 0, {}
    for size, first, last in blocks:
        if first >= start and last < end:
            changes[first] = changes.get(first, 0) + size
            changes[last + 1] = changes.get(last + 1, 0) - size
        elif first < end and last >= start:
            whole += size
    now = most = 0
    for step in sorted(changes):
        now += changes[step]
        most = max(most, now)
    return whole + most
