"""Scan kernels: running sums and products along a dimension, accumulated in double precision (floats) or int64.

Where the scanned dimension lies innermost a row is walked element by element; else up to COLUMNS neighbouring rows advance together.
"""
from __future__ import annotations

from math import prod

from ..layout import collapse
from . import jit, native
from .loops import Body, walk_table
from .lower import IR, Lowering, Value, compute_type

GRAIN = 1 << 14
COLUMNS = 512


def build_scan(op: str, shape, dim: int, out, source, *, result_bytes=0) -> bytes:
    """Descriptor of a running "add" or "mul" along `dim` of `shape`. out, source: (dtype, strides in elements). Slots: result, source."""
    (out_dtype, out_strides), (in_dtype, in_strides) = out, source
    n = shape[dim]
    rest = [d for d in range(len(shape)) if d != dim]
    rest.sort(key=lambda d: -out_strides[d])
    kept, walks = collapse([shape[d] for d in rest], [out_strides[d] * out_dtype.itemsize for d in rest], [in_strides[d] * in_dtype.itemsize for d in rest])
    kept, walks = list(kept), [list(w) for w in walks]
    across = bool(kept) and kept[-1] >= 8 and walks[0][-1] == out_dtype.itemsize and out_strides[dim] != 1
    columns, steps, rows = 1, [0, 0], kept
    if across:
        columns, steps = kept[-1], [w[-1] for w in walks]
        rows = [*kept[:-1], -(-columns // COLUMNS)]
        walks = [[*w[:-1], w[-1] * COLUMNS] for w in walks]
    key = ("scan", op, out_dtype.name, in_dtype.name, across)
    address = jit.compile_kernel(key, lambda: _scan(op, out_dtype.name, in_dtype.name, across))
    count = prod(rows)
    words = [count, len(rows), n, columns, out_strides[dim] * out_dtype.itemsize, in_strides[dim] * in_dtype.itemsize, *steps]
    work = prod(shape)
    parts = max(1, min(native.parts_for(work, GRAIN), count))
    return native.pack_desc(address, 2, parts, work >= 2 * GRAIN, result_bytes, words + walk_table(rows, walks))


def _scan(op, out, source, across) -> str:
    b = Body()
    low = Lowering(b)
    rows, dims, n, columns, out_next, in_next, out_step, in_step = (b.word(i) for i in range(8))
    compute = compute_type(out)
    type = "float64" if compute in ("float32", "float64") else "int64"
    start = {"add": "0", "mul": "1"}[op] + (".0" if type == "float64" else "")

    def enter(old, place, access=""):
        value = low.convert(low.convert(low.load(source, place, access), compute), type).text  # the result's dtype first: it may be narrower
        return b(f"{'f' if type == 'float64' else ''}{op} {IR[type]} {old}, {value}")

    first, last = b.share(rows)
    with b.walk(8, dims, 2, first, last) as (_, offsets, counters):
        to, frm = (b.at(b.slot(k), offset) for k, offset in enumerate(offsets))
        if not across:
            total = b.cell(IR[type], start)
            with b.loop(0, n) as i:
                total.set(enter(total.get(), b.at(frm, b.mul(i, in_next))))
                low.store(out, Value(total.get(), type), b.at(to, b.mul(i, out_next)))
        else:
            width = b.min(b.sub(columns, b.mul(b.load("i64", counters), COLUMNS)), COLUMNS)
            totals = b.cell(f"[{COLUMNS} x {IR[type]}]").name
            with b.loop(0, width) as c:
                b.store(IR[type], start, b(f"getelementptr {IR[type]}, ptr {totals}, i64 {c}"))
            with b.loop(0, n) as i:
                line, column = b.at(to, b.mul(i, out_next)), b.at(frm, b.mul(i, in_next))
                access, mark = b.parallel()
                with b.loop(0, width, extra=mark) as c:
                    place = b(f"getelementptr {IR[type]}, ptr {totals}, i64 {c}")
                    total = enter(b.load(IR[type], place, access), b.at(column, b.mul(c, in_step)), access)
                    b.store(IR[type], total, place, access)
                    low.store(out, Value(total, type), b.at(line, b.mul(c, out_step)), access)
    return b.text(low.definitions())
