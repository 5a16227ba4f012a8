"""Products with banded matrices along one dimension: resizing, averages of windows, and their gradients, which are products with the transposed bands.

out [R, O, I] = Σ_t weights [O, T] · x [R, first[o] + t, I]: a row of the matrix is a few neighbours' weights. Neighbouring elements of I are computed together, so
that images whose channels lie innermost are as quick as rows. What the weights are is ops/resample.py's.
"""
from __future__ import annotations

import struct

from . import jit, native
from .loops import HEADER, Body
from .lower import IR

DTYPES = ("float32", "float64")
GRAIN = 1 << 15  # multiply-adds that a part should have at least
LONG = 1 << 18
TOGETHER = 4  # taps that are added up before a result is stored


def build_bands(dtype, rows: int, size: int, inner: int, first, weights, result_bytes: int = 0) -> bytes:
    """Descriptor for row-major x [rows, size, inner] → [rows, O, inner], O bands of `weights` (lists of numbers) from element `first` on. Slots: result, x."""
    out_size, taps = len(first), max(1, *map(len, weights))
    alone = inner == 1
    address = jit.compile_kernel(("bands", dtype.name, alone), lambda: _text(IR[dtype.name], dtype.itemsize, alone))
    items = rows if alone else rows * out_size
    work = rows * out_size * inner * taps
    parts = max(1, min(native.parts_for(work, GRAIN), max(items, 1)))
    words = [rows, size, out_size, inner, taps]
    words += [word for start, band in zip(first, weights) for word in (start, len(band))]
    words += [_bits(w, dtype.itemsize) for band in weights for w in (*band, *(0.0,) * (taps - len(band)))]
    return native.pack_desc(address, 2, parts, work >= LONG, result_bytes, words)


def _bits(value: float, size: int) -> int:
    """A number as the word whose first bytes in memory are it."""
    return struct.unpack("<q", struct.pack("<f", value) + bytes(4) if size == 4 else struct.pack("<d", value))[0]


def _text(type: str, itemsize: int, alone: bool) -> str:
    b = Body()
    rows, size, out_size, inner, taps = (b.word(i) for i in range(5))
    out, x = b.slot(0), b.slot(1)
    table = b(f"getelementptr i64, ptr %desc, i64 {HEADER + 5}")
    weights = b(f"getelementptr i64, ptr {table}, i64 {b.mul(out_size, 2)}")
    word = lambda base, index: b(f"getelementptr i64, ptr {base}, i64 {index}")  # a number has a word, whatever its size
    weight = lambda base, index: b.load(type, word(base, index))
    element = lambda base, index: b(f"getelementptr {type}, ptr {base}, i64 {index}")
    read = lambda base, index, extra="": b.load(type, element(base, index), extra)
    product = lambda w, v: b(f"fmul contract {type} {w}, {v}")
    plus = lambda a, c: b(f"fadd contract {type} {a}, {c}")

    def band(o):
        entry = b(f"getelementptr i64, ptr {table}, i64 {b.mul(o, 2)}")
        return b.load("i64", entry), b.load("i64", word(entry, 1)), word(weights, b.mul(o, taps))

    if alone:
        low, high = b.share(rows)
        with b.loop(low, high) as row:
            source, target = element(x, b.mul(row, size)), element(out, b.mul(row, out_size))
            with b.loop(0, out_size) as o:
                first, count, w = band(o)
                total = b.cell(type, "0.0")
                with b.when(b(f"icmp ne i64 {count}, 0")):
                    here = element(source, first)
                    total.set(product(weight(w, 0), read(here, 0)))
                    with b.loop(1, count, extra=b.plain()) as t:
                        total.set(plus(total.get(), product(weight(w, t), read(here, t))))
                b.store(type, total.get(), element(target, o))
        return b.text()

    def some(number, w, source, target, more):
        """target = (itself +) the first taps."""
        factors = [weight(w, t) for t in range(number)]
        lines = [element(source, b.mul(inner, t)) for t in range(number)]
        access, around = b.parallel()
        with b.loop(0, inner, extra=around) as i:
            total = None
            for factor, line in zip(factors, lines):
                term = product(factor, read(line, i, access))
                total = term if total is None else plus(total, term)
            place = element(target, i)
            if more:
                total = plus(b.load(type, place, access), total)
            b.store(type, total or "0.0", place, access)

    low, high = b.share(b.mul(rows, out_size))
    with b.loop(low, high) as item:
        row = b.div(item, out_size)
        first, count, w = band(b.sub(item, b.mul(row, out_size)))
        source, target = element(x, b.mul(b.add(b.mul(row, size), first), inner)), element(out, b.mul(item, inner))
        for number in range(TOGETHER + 1):
            chosen = b(f"icmp {'uge' if number == TOGETHER else 'eq'} i64 {count}, {number}")
            with b.when(chosen):
                some(number, w, source, target, False)
        with b.loop(TOGETHER, count) as t:
            some(1, word(w, t), element(source, b.mul(t, inner)), target, True)
    return b.text()
