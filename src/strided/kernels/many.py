"""Many small pieces of work as one launch: a kernel that calls others, one after the other, their operands taken from one table.

Holds that kernel and `Many`, a list of descriptors with the places of their operands. What the pieces compute is the other templates' business.

The table is made anew for every call: addresses of tensors, then scalars. Words of the kernel: pieces, whether every part takes its share of every
piece (1) or pieces are dealt out whole (0), slots a piece, where the pieces begin, for each part and one beyond the first piece that it takes, then for
each piece its descriptor's address and, for each slot, the place in the table and what is added to it.
"""
from __future__ import annotations

import struct
from collections.abc import Sequence

from . import jit, native
from .loops import Body


def address_of(text: bytes) -> int:
    """Where CPython keeps the bytes themselves. Good while the object lives."""
    return id(text) + bytes.__basicsize__ - 1


class Many:
    """Pieces ready to run with one table of `addresses` addresses and `numbers` floats.

    pieces: (descriptor, ((place in the table, what is added), ...)), one pair a slot, equally many in all. work: what a piece costs, in any unit, where
    pieces are dealt out whole; None: every part takes its share of each piece, which the descriptors' kernels must allow for any number of parts.
    """

    __slots__ = ("desc", "kept", "table")

    def __init__(self, pieces: Sequence[tuple], addresses: int, numbers: int = 0, parts: int = 1, release_gil: bool = False, work: Sequence[int] | None = None):
        slots = len(pieces[0][1])
        if slots > native.MAX_SLOTS:
            raise NotImplementedError(f"a kernel takes at most {native.MAX_SLOTS} operands, these would need {slots}; split the work")
        bounds = [0, len(pieces)] if work is None else _dealt(work, parts)
        words = [len(pieces), int(work is None), slots, 4 + len(bounds), *bounds]
        for desc, places in pieces:
            words.append(address_of(desc))
            for place in places:
                words += place
        self.kept = [desc for desc, _ in pieces]  # the kernel knows their addresses only
        self.table = struct.Struct(f"<{addresses}q{numbers}d")
        self.desc = native.pack_desc(jit.compile_kernel(("many",), many_text), 1, parts, release_gil, 0, words)

    def launch(self, addresses, numbers=()) -> None:
        """One call for all pieces."""
        table = self.table.pack(*addresses, *numbers)
        native.launch(self.desc, address_of(table))


def _dealt(work: Sequence[int], parts: int) -> list[int]:
    """The first piece of each part, and the end: neighbours together, about equal work a part."""
    whole, bounds, done = sum(work), [0], 0
    for piece, cost in enumerate(work):
        while len(bounds) < parts and done * parts >= whole * len(bounds):
            bounds.append(piece)
        done += cost
    return bounds + [len(work)] * (parts + 1 - len(bounds))


def many_text() -> str:
    """IR text of the kernel."""
    b = Body()
    pieces, shared, slots, start = (b.word(i) for i in range(4))
    table = b.slot(0)
    own = b.cell(f"[{native.MAX_SLOTS} x i64]").name
    share = b(f"icmp ne i64 {shared}, 0")
    low = b.select(share, 0, b.word(b.add(b.select(share, 0, "%part"), 4)))
    high = b.select(share, pieces, b.word(b.add(b.select(share, 1, b.add("%part", 1)), 4)))
    part, parts = b.select(share, "%part", 0), b.select(share, "%parts", 1)
    width = b.add(b.mul(slots, 2), 1)
    with b.loop(low, high) as piece:
        at = b.add(start, b.mul(piece, width))
        desc = b.load("ptr", b(f"getelementptr i64, ptr %desc, i64 {b.add(at, 8)}"))
        with b.loop(0, slots, extra=b.plain()) as k:
            place = b.add(at, b.mul(k, 2))
            value = b.load("i64", b(f"getelementptr i64, ptr {table}, i64 {b.word(b.add(place, 1))}"))
            b.store("i64", b.add(value, b.word(b.add(place, 2))), b(f"getelementptr i64, ptr {own}, i64 {k}"))
        b.do(f"call void {b.load('ptr', desc)}(ptr {desc}, ptr {own}, i64 {part}, i64 {parts})")
    return b.text()
