"""The kernel that joins several sources in one result, row by row: cat and stack along an inner dimension.

Copies of one whole source after the other (index.py) would come back to each row of the result once a source, when its lines have left the cache.
"""
from __future__ import annotations

from . import jit, native
from .index import GRAIN, ROW_BYTES
from .loops import Body
from .map import STREAM

SHORT = 512  # bytes of a run that is moved without a call


def build_join(itemsize: int, rows: int, row: int, pieces) -> bytes | None:
    """Descriptor of target[r][start: start + run] = source[r][: run] for r below `rows` and each of `pieces`: (start, run, elements between the source's rows).

    row: elements between the target's rows. Slots: target, the sources. None where copies of one source after the other are as good: short runs, and results that are written past the caches.
    """
    numel = rows * sum(run for _, run, _ in pieces)
    if len(pieces) >= native.MAX_SLOTS or numel * itemsize >= STREAM or any(run * itemsize < ROW_BYTES for _, run, _ in pieces):
        return None
    words = [rows, len(pieces), row * itemsize]
    for piece in pieces:
        words += [size * itemsize for size in piece]
    address = jit.compile_kernel(("join",), join_text)
    return native.pack_desc(address, 1 + len(pieces), min(rows, native.parts_for(numel, GRAIN)), numel >= GRAIN, 0, words)


def join_text() -> str:
    """IR text of the kernel."""
    b = Body()
    rows, count, step = (b.word(i) for i in range(3))
    low, high = b.share(rows)
    target = b.slot(0)
    b.declare("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
    with b.loop(low, high) as row:
        line = b.at(target, b.mul(row, step))
        with b.loop(0, count) as piece:
            first = b.mul(piece, 3)
            start, length, source_step = (b.word(b.add(first, 3 + i)) for i in range(3))
            source = b.load("ptr", b(f"getelementptr i64, ptr %slots, i64 {b.add(piece, 1)}"))
            to, source = b.at(line, start), b.at(source, b.mul(row, source_step))

            def short(to=to, source=source, length=length):  # the last piece overlaps the one before
                last = b.sub(length, ROW_BYTES)
                with b.loop(0, length, ROW_BYTES) as i:
                    at = b.min(i, last)
                    b.store(f"<{ROW_BYTES} x i8>", b.load(f"<{ROW_BYTES} x i8>", b.at(source, at), ", align 1"), b.at(to, at), ", align 1")

            def long(to=to, source=source, length=length):
                b.do(f"call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr {source}, i64 {length}, i1 false)")

            b.either(b(f"icmp sle i64 {length}, {SHORT}"), short, long)
    return b.text()
