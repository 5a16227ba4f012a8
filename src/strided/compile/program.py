"""`Program`: recorded steps as one native call, their temporary memory planned into one arena.

Addresses of the recording become (base, offset): a base is an external tensor, a fresh result, the arena, …, found anew at every run. Lifetimes follow
from the first and the last step that touch a block; blocks that never live together share their place in the arena.
"""
from __future__ import annotations

import struct
from bisect import bisect_right
from typing import Any, NamedTuple

from ..kernels.native import new_storage, read_flag, replay
from ..ops import indexing
from .updates import Number

_POINTERS = 1 << 32, 1 << 47  # where user memory lies: a slot in this range that belongs to nothing known must not be kept as a number
_FILL, _MOVE = 0, 1  # in place of a descriptor's address; see runtime_capture.py


class Unknown(Exception):
    """A step uses memory that the compiled function could not find again."""


class Memory:
    """Where recorded addresses lead: named regions, `("block", i)`, `("tensor", j)`, …, which do not overlap."""

    def __init__(self):
        self.regions: list[tuple[int, int, tuple]] = []
        self.starts: list[int] = []

    def add(self, start: int, nbytes: int, name: tuple) -> None:
        """Names a region. Raises Unknown where it meets another one: an address could then mean either."""
        place = bisect_right(self.starts, start)
        if place and start < self.regions[place - 1][1] or place < len(self.starts) and self.starts[place] < start + nbytes:
            raise Unknown("two of its tensors share memory")
        self.starts.insert(place, start)
        self.regions.insert(place, (start, start + max(nbytes, 1), name))

    def find(self, address: int) -> tuple | None:
        """(name, offset) of the region that holds the address."""
        place = bisect_right(self.starts, address) - 1
        if place < 0:
            return None
        start, end, name = self.regions[place]
        return (name, address - start) if address < end else None


class Constant(NamedTuple):
    """A slot that takes the address of these bytes: a tensor made of Python's numbers."""

    data: bytes


class Step(NamedTuple):
    """A recorded step with its addresses resolved: a slot is an int, a `Number`, a `Constant`, or ((kind, number), offset). writes: the regions that it may write, where that is known."""

    what: Any
    slots: tuple
    line: Any
    writes: tuple | None = None


def resolve(steps, memory: Memory) -> list[Step]:
    """The steps with their addresses named. Raises Unknown."""
    done = []
    for step in steps:
        slots = []
        for value in step.slots:
            if type(value) is Number:
                slots.append(value)
                continue
            place = memory.find(value) if value >= _POINTERS[0] else None
            if place is None and step.what == "move" and step.data is not None and len(slots) == 1:
                slots.append(Constant(step.data))
                continue
            if place is None and _POINTERS[0] <= value < _POINTERS[1]:
                where = "" if step.line is None else f" (line {step.line[1]})"
                raise Unknown(f"it uses memory that is neither an argument nor a tensor of the module or the function{where}")
            slots.append(value if place is None else place)
        done.append(Step(step.what, tuple(slots), step.line))
    return done


def names(step: Step):
    """The regions a step touches."""
    return (slot[0] for slot in step.slots if type(slot) is tuple)


class Program:
    """Steps ready to run.

    places: (number, offset) of the base of every region that is not this program's own; bases are numbered from 1. Blocks without a place share the arena.
    pause: number of the step before which checks are looked at; none follows it, and nothing from outside is written before it.
    numbers: how many floats a run is given beside its addresses; they lie behind the bases.
    """

    def __init__(self, steps: list[Step], sizes: dict[tuple, int], places: dict[tuple, tuple[int, int]], bases: int, pause: int | None = None, numbers: int = 0):
        self.kept = [step.what for step in steps if type(step.what) is bytes]  # descriptors must outlive their addresses
        self.kept += [slot.data for step in steps for slot in step.slots if type(slot) is Constant]
        own = {name for step in steps for name in names(step) if name not in places}
        self.temporary = sum(sizes[name] for name in own)
        offsets, self.arena = plan_memory(steps, {name: sizes[name] for name in own})
        places = {**places, **{name: (0, offset) for name, offset in offsets.items()}}
        self.flags = []  # (number of the base, offset)
        self.kernels = 0
        self.used: set[int] = set()  # numbers of the bases that some step touches
        words: list[int] = []
        counts, parts = [0], [words]
        for number, step in enumerate(steps):
            if number == pause:
                words = []
                counts.append(0)
                parts.append(words)
            slots = [_place(slot, places, 1 + bases) for slot in step.slots]
            self.used.update(base for base, _ in slots)
            if step.what == "flag":
                self.flags += slots
                continue
            self.kernels += 1
            counts[-1] += 1
            words += [_FILL if step.what == "fill" else _MOVE if step.what == "move" else _address(step.what), len(slots), *(word for slot in slots for word in slot)]
        self.code, *rest = (struct.pack(f"<{1 + len(part)}q", count, *part) for count, part in zip(counts, parts))
        self.rest = rest[0] if rest else None
        self.format = struct.Struct(f"<{1 + bases}q{numbers}d")
        self.bases = 1 + bases

    def run(self, *addresses) -> bool:
        """Runs with the addresses of the bases 1, 2, … and the numbers behind them; False where a kernel met bad input (no such class): the results are then worthless."""
        arena = new_storage(self.arena)
        bases = self.format.pack(arena.data, *addresses)
        replay(self.code, bases)
        for number, offset in self.flags:
            if read_flag((addresses[number - 1] if number else arena.data) + offset):
                return False
        if self.rest is not None:
            if indexing._error.words[0]:
                return False
            replay(self.rest, bases)
        return True


def _place(slot, places: dict[tuple, tuple[int, int]], numbers: int) -> tuple[int, int]:
    """A slot as a program has it: number of a base (-1: none) and what is added to it."""
    if type(slot) is int:
        return -1, slot
    if type(slot) is Number:
        return numbers + slot.place, 0
    if type(slot) is Constant:
        return -1, _address(slot.data)
    base, offset = places[slot[0]]
    return base, offset + slot[1]


def _address(descriptor: bytes) -> int:
    return id(descriptor) + bytes.__basicsize__ - 1  # where CPython keeps the bytes themselves


def plan_memory(steps: list[Step], sizes: dict[tuple, int]) -> tuple[dict[tuple, int], int]:
    """An offset for each block, and the arena's size: blocks that live at the same time do not overlap. Large ones are placed first, as low as they fit."""
    life: dict[tuple, list[int]] = {}
    for number, step in enumerate(steps):
        for name in names(step):
            if name in sizes:
                life.setdefault(name, [number, number])[1] = number
    flagged = [slot[0] for step in steps if step.what == "flag" for slot in step.slots]
    for name in flagged:  # read when all is done
        if name in life:
            life[name][1] = len(steps)
    placed: list[tuple[int, int, int, int]] = []  # offset, end, first step, last step
    offsets: dict[tuple, int] = {}
    for name in sorted(life, key=lambda name: (-sizes[name], life[name][0])):
        first, last = life[name]
        size = -(-max(sizes[name], 1) // 64) * 64
        at = 0
        for start, end, *_ in sorted(p for p in placed if p[2] <= last and first <= p[3]):
            if at + size <= start:
                break
            at = max(at, end)
        placed.append((at, at + size, first, last))
        offsets[name] = at
    return offsets, max((end for _, end, *_ in placed), default=0)
