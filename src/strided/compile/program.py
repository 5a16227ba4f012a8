"""`Program`: recorded steps as one native call, or a few, their temporary memory planned.

Addresses of the recording become (base, offset): a base is an external tensor, a fresh result, memory for temporaries, …, found anew at every run. Which
blocks share memory, and where a program is cut so that memory is taken late and given back early, is lifetimes.py's.
"""
from __future__ import annotations

import struct
from bisect import bisect_right
from typing import Any, NamedTuple

from ..kernels.native import new_storage, read_flag, replay
from ..ops import indexing
from .lifetimes import lifetimes, plan_memory
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


def fresh(*tables) -> tuple:
    """A name for a block that is in none of the tables of blocks."""
    return "block", min([0, *(number for table in tables for _, number in table)]) - 1


class Stage(NamedTuple):
    """Steps that run in one native call. makes: (base, bytes) of the storages that are made before them; drops: bases whose storages nothing needs after them."""

    code: bytes
    makes: list
    drops: list


class Program:
    """Steps ready to run, in stages: most often one, more where memory can be taken later or given back earlier (lifetimes.py).

    places: (number, offset) of the base of every region that is not this program's own; bases are numbered from 1. Blocks without a place share memory that the program takes.
    made: bytes of the bases whose storages it makes for its caller. given: bases whose storages its caller gives up. cuts: numbers of the steps before which a stage ends.
    pause: the one of them before which checks are looked at; none follows it, and nothing from outside is written before it.
    numbers: how many floats a run is given beside its addresses; they lie behind the bases.
    """

    def __init__(
        self, steps: list[Step], sizes: dict[tuple, int], places: dict[tuple, tuple[int, int]], bases: int, *,
        made: dict[int, int], given=(), cuts=(), pause: int | None = None, numbers: int = 0,
    ):  # fmt: skip
        self.kept = [step.what for step in steps if type(step.what) is bytes]  # descriptors must outlive their addresses
        self.kept += [slot.data for step in steps for slot in step.slots if type(slot) is Constant]
        life = lifetimes(steps)
        cuts = [cut for cut in cuts if 0 < cut < len(steps)]
        self.stages = [Stage(b"", [], []) for _ in range(len(cuts) + 1)]
        end = len(cuts)
        self.checked = end if pause is None or pause >= len(steps) else bisect_right(cuts, pause) - 1  # the stage after which checks are looked at
        groups: dict[tuple[int, int], dict[tuple, int]] = {}  # temporary blocks by the first and the last stage that need them
        needed: dict[int, tuple[int, int]] = {}  # the same of bases
        for name, (first, last) in life.items():
            span = bisect_right(cuts, first), bisect_right(cuts, last)
            if name in places:
                base = places[name][0]
                needed[base] = min(needed.get(base, span)[0], span[0]), max(needed.get(base, span)[1], span[1])
            else:
                groups.setdefault(span, {})[name] = sizes[name]
        self.temporary = sum(sum(group.values()) for group in groups.values())
        arenas = [0] * len(self.stages)
        own: dict[tuple, tuple[int, int]] = {}
        self.bases = 1 + bases
        for number, ((first, last), group) in enumerate(sorted(groups.items())):
            base = 0  # of the first one; further ones have theirs behind the caller's
            if number:
                base, self.bases = self.bases, self.bases + 1
            offsets, nbytes = plan_memory(life, group)
            own.update((name, (base, offset)) for name, offset in offsets.items())
            self.stages[first].makes.append((base, nbytes))
            if last < end:
                self.stages[last].drops.append(base)
            for stage in range(first, last + 1):
                arenas[stage] += nbytes
        self.arena = max(arenas)  # the most bytes of temporaries that are held at once
        for base, nbytes in made.items():
            self.stages[needed.get(base, (0, 0))[0]].makes.append((base, nbytes))
        for base in given:
            if base in needed and needed[base][1] < end:
                self.stages[needed[base][1]].drops.append(base)
        places = {**places, **own}
        self.flags = []  # (number of the base, offset)
        self.kernels = 0
        self.used: set[int] = set()  # numbers of the bases that some step touches
        words: list[list[int]] = [[0] for _ in self.stages]  # how many steps, then the steps
        for number, step in enumerate(steps):
            slots = [_place(slot, places, self.bases) for slot in step.slots]
            self.used.update(base for base, _ in slots)
            if step.what == "flag":
                self.flags += slots
                continue
            self.kernels += 1
            part = words[bisect_right(cuts, number)]
            part[0] += 1
            part += [_FILL if step.what == "fill" else _MOVE if step.what == "move" else _address(step.what), len(slots), *(word for slot in slots for word in slot)]
        self.stages = [stage._replace(code=struct.pack(f"<{len(part)}q", *part)) for stage, part in zip(self.stages, words)]
        self.format = struct.Struct(f"<{self.bases}q{numbers}d")

    def run(self, addresses: list[int], numbers, storages: dict[int, Any]) -> bool:
        """Runs with the addresses of the caller's bases 1, 2, … (0 for what is made here) and the numbers; False where a kernel met bad input (no such class):
        the results are then worthless. storages: of the bases that are given, which leave it as they are given up; those that are made here are put in it."""
        words = [0, *addresses, *[0] * (self.bases - 1 - len(addresses))]
        for number, stage in enumerate(self.stages):
            for base, nbytes in stage.makes:
                storages[base] = made = new_storage(nbytes)
                words[base] = made.data
            replay(stage.code, self.format.pack(*words, *numbers))
            if number == self.checked:
                if indexing._error.words[0] or any(read_flag(words[base] + offset) for base, offset in self.flags):
                    return False
            for base in stage.drops:
                del storages[base]
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
