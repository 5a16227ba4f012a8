"""Copies with more around them: an array's own elements, mirrored, repeated or wrapped around. What surrounds which dimension is ops/edges.py's business."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from . import jit, native
from .loops import Body, walk_table

GRAIN = 1 << 14
MODES = ("reflect", "replicate", "circular")
SPANS = (64, 16)  # bytes moved at once


def build_edges(mode: str, itemsize: int, shape: Sequence[int], target: Sequence[int], sizes: Sequence[int], source: Sequence[int], before: Mapping[int, int],
                result_bytes: int = 0) -> bytes:  # fmt: skip
    """Descriptor of target[i, j, ..] = source[f(i), f(j), ..]: f is i less what lies before, folded back into the dimension as `mode` says; other dimensions as they are.

    shape, target: the result's sizes and strides in elements; sizes, source: the source's. before: for each padded dimension how many places lie before its first
    element, negative where it begins later. Slots: target, source.
    """
    kept = [d for d in range(len(shape)) if shape[d] != 1 or d in before] or [0]
    kept.sort(key=lambda d: -target[d])
    inner, outer = kept[-1], kept[:-1]
    around = [d for d in outer if d in before]
    run = source[inner] == 1 or shape[inner] == 1
    address = jit.compile_kernel(("edges", mode, itemsize, len(around), inner in before, run), lambda: _text(mode, itemsize, len(around), inner in before, run))
    rows = prod(shape[d] for d in outer)
    words = [rows, len(outer), shape[inner], before.get(inner, 0), sizes[inner], source[inner] * itemsize]
    for d in around:
        words += [len(outer) - 1 - outer.index(d), before[d], sizes[d], source[d] * itemsize]
    steps = [0 if d in before else source[d] * itemsize for d in outer]
    words += walk_table([shape[d] for d in outer], [[target[d] * itemsize for d in outer], steps])
    numel = prod(shape)
    parts = max(1, min(native.slices_for(native.parts_for(numel, GRAIN), 2 * numel * itemsize), rows))
    return native.pack_desc(address, 2, parts, numel >= 2 * GRAIN, result_bytes, words)


def _text(mode: str, itemsize: int, around: int, padded: bool, run: bool) -> str:
    b = Body()
    rows, dims, n, before, size, step = (b.word(i) for i in range(6))
    type = f"i{8 * itemsize}"
    more = lambda a, c: b.select(b(f"icmp sgt i64 {a}, {c}"), a, c)

    def element(to, frm):
        b.store(type, b.load(type, frm, f", align {min(itemsize, 8)}"), to, f", align {min(itemsize, 8)}")

    def copy(to, frm, count):
        if not run:
            with b.loop(0, count, extra=b.plain()) as i:
                element(b.at(to, b.mul(i, itemsize)), b.at(frm, b.mul(i, step)))
            return
        nbytes = b.mul(count, itemsize)

        def spans(width):  # the last one overlaps the one before
            last = b.sub(nbytes, width)
            with b.loop(0, nbytes, width, extra=b.plain()) as i:
                at = b.min(i, last)
                b.store(f"<{width} x i8>", b.load(f"<{width} x i8>", b.at(frm, at), ", align 1"), b.at(to, at), ", align 1")

        def singly():
            with b.loop(0, nbytes, itemsize, extra=b.plain()) as i:
                element(b.at(to, i), b.at(frm, i))

        wide, narrow = SPANS
        b.either(b(f"icmp sge i64 {nbytes}, {wide}"), lambda: spans(wide), lambda: b.either(b(f"icmp sge i64 {nbytes}, {narrow}"), lambda: spans(narrow), singly))

    with b.walk(6 + 4 * around, dims, 2, *b.share(rows)) as (_, offsets, counters):
        to, frm = (b.at(b.slot(k), offset) for k, offset in enumerate(offsets))
        for k in range(around):
            place, first, length, stride = (b.word(6 + 4 * k + j) for j in range(4))
            at = b.load("i64", b(f"getelementptr i64, ptr {counters}, i64 {place}"))
            frm = b.at(frm, b.mul(_folded(b, mode, b.sub(at, first), length), stride))
        if padded:
            left = b.min(more(before, "0"), n)
            right = more(left, b.min(b.add(before, size), n))
            for low, high in (("0", left), (right, n)):
                with b.loop(low, high, extra=b.plain()) as i:
                    element(b.at(to, b.mul(i, itemsize)), b.at(frm, b.mul(_folded(b, mode, b.sub(i, before), size), step)))
            copy(b.at(to, b.mul(left, itemsize)), b.at(frm, b.mul(b.sub(left, before), step)), b.sub(right, left))
        else:
            copy(to, frm, n)
    return b.text()


def _folded(b: Body, mode: str, i: str, size: str) -> str:
    """Place i, which may lie outside, as a place of a dimension."""
    low = b(f"icmp slt i64 {i}, 0")
    last = b.sub(size, 1)
    if mode == "reflect":
        i = b.select(low, b.sub(0, i), i)
        left = b.sub(last, i)
        return b.select(b(f"icmp slt i64 {left}, 0"), b.add(last, left), i)
    if mode == "replicate":
        return b.min(b.select(low, 0, i), last)
    i = b.select(low, b.add(i, size), i)
    return b.select(b(f"icmp sgt i64 {i}, {last}"), b.sub(i, size), i)
