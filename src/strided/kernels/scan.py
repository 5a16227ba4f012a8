"""Scan kernels: running sums and products along a dimension, accumulated in double precision (floats) or int64.

Where the scanned dimension lies innermost a row is walked element by element, sums of float32 and smaller by vectors; else up to COLUMNS neighbouring rows
advance together.
"""
from __future__ import annotations

from math import prod

from ..layout import collapse
from . import jit, native
from .formats import COMPLEX, PARTS
from .loops import AHEAD, CHUNK, NEAR, Body, walk_table
from .lower import IR, Lowering, Value, compute_type
from .map import STREAM

GRAIN = 1 << 14
COLUMNS = 1024
LANES = 8  # totals in a vector


def build_scan(op: str, shape, dim: int, out, source, *, result_bytes=0) -> bytes:
    """Descriptor of a running "add" or "mul" along `dim` of `shape`. out, source: (dtype, strides in elements). Slots: result, source."""
    (out_dtype, out_strides), (in_dtype, in_strides) = out, source
    if op == "add" and out_dtype.is_complex and in_dtype.is_complex:  # the parts add up by themselves
        strides = [(*(2 * stride for stride in own), 1) for own in (out_strides, in_strides)]
        parts = (out_dtype.to_real(), strides[0]), (in_dtype.to_real(), strides[1])
        return build_scan(op, (*shape, 2), dim, *parts, result_bytes=result_bytes)
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
    near = op == "add" and out_dtype.name == in_dtype.name == "float32" and out_strides[dim] == in_strides[dim] == 1 and not across
    stream = near and result_bytes >= STREAM and not any(w % 64 for w in walks[0])
    key = ("scan", op, out_dtype.name, in_dtype.name, across, near, stream)
    address = jit.compile_kernel(key, lambda: _scan(op, out_dtype.name, in_dtype.name, across, near, stream))
    count = prod(rows)
    words = [count, len(rows), n, columns, out_strides[dim] * out_dtype.itemsize, in_strides[dim] * in_dtype.itemsize, *steps]
    work = prod(shape)
    parts = max(1, min(native.slices_for(native.parts_for(work, GRAIN), work * (out_dtype.itemsize + in_dtype.itemsize)), count))
    return native.pack_desc(address, 2, parts, work >= 2 * GRAIN, result_bytes, words + walk_table(rows, walks))


def _scan(op, out, source, across, near, stream) -> str:
    b = Body()
    low = Lowering(b, contract=False)
    rows, dims, n, columns, out_next, in_next, out_step, in_step = (b.word(i) for i in range(8))
    compute = compute_type(out)
    type = "complex128" if compute in COMPLEX else "float64" if compute in ("float32", "float64") else "int64"
    part = PARTS.get(type, type)  # what a total is made of: itself, or two parts
    start = [{"add": "0", "mul": "1"}[op] + (".0" if part == "float64" else ""), "0.0"][: 1 + (type in COMPLEX)]

    def total_of(texts):
        return Value(tuple(texts) if type in COMPLEX else texts[0], type)

    def enter(old, place, access=""):
        value = low.convert(low.convert(low.load(source, place, access), compute), type)  # the result's dtype first: it may be narrower
        total = low.apply(op, total_of(old), value).text
        return total if type in COMPLEX else [total]

    first, last = b.share(rows)
    with b.walk(8, dims, 2, first, last) as (_, offsets, counters):
        to, frm = (b.at(b.slot(k), offset) for k, offset in enumerate(offsets))
        if not across:
            total = [b.cell(IR[part], value) for value in start]
            begin = _sums_of_vectors(b, to, frm, n, total[0], stream) if near else 0
            with b.loop(begin, n) as i:
                for cell, value in zip(total, enter([cell.get() for cell in total], b.at(frm, b.mul(i, in_next)))):
                    cell.set(value)
                low.store(out, total_of([cell.get() for cell in total]), b.at(to, b.mul(i, out_next)))
        else:
            width = b.min(b.sub(columns, b.mul(b.load("i64", counters), COLUMNS)), COLUMNS)
            totals = [b.cell(f"[{COLUMNS} x {IR[part]}]").name for _ in start]
            with b.loop(0, width) as c:
                for array, value in zip(totals, start):
                    b.store(IR[part], value, b(f"getelementptr {IR[part]}, ptr {array}, i64 {c}"))
            with b.loop(0, n) as i:
                line, column = b.at(to, b.mul(i, out_next)), b.at(frm, b.mul(i, in_next))
                access, mark = b.parallel()
                with b.loop(0, width, extra=mark) as c:
                    places = [b(f"getelementptr {IR[part]}, ptr {array}, i64 {c}") for array in totals]
                    total = enter([b.load(IR[part], place, access) for place in places], b.at(column, b.mul(c, in_step)), access)
                    for place, value in zip(places, total):
                        b.store(IR[part], value, place, access)
                    low.store(out, total_of(total), b.at(line, b.mul(c, out_step)), access)
    if stream:
        b.fence()
    return b.text(low.definitions())


def _sums_of_vectors(b: Body, to: str, frm: str, n: str, total, stream: bool) -> str:
    """Running sums of float32 by vectors: each is summed up by shifts of one, two and four lanes, then what came before is added to all. `total`
    is left as the sum so far; returns how many elements are done."""
    wide, narrow = f"<{LANES} x double>", f"<{LANES} x float>"
    before, masks = b.cell(wide, "zeroinitializer"), {}
    for shift in (1, 2, 4):  # lanes that are turned around are left out by a mask that the compiler does not know: it would choose slower instructions
        cell = b.cell(f"i{LANES}").name
        b.do(f"store volatile i{LANES} {-(1 << shift)}, ptr {cell}")
        masks[shift] = b(f"bitcast i{LANES} {b(f'load volatile i{LANES}, ptr {cell}')} to <{LANES} x i1>")

    def shuffled(v, places):
        return b(f"shufflevector {wide} {v}, {wide} poison, <{LANES} x i32> <{', '.join(f'i32 {p}' for p in places)}>")

    def vector(source):
        v = b(f"fpext {narrow} {b.load(narrow, source, ', align 4')} to {wide}")
        for shift, mask in masks.items():
            moved = shuffled(v, [(lane - shift) % LANES for lane in range(LANES)])
            v = b(f"fadd {wide} {v}, {b(f'select <{LANES} x i1> {mask}, {wide} {moved}, {wide} zeroinitializer')}")
        old = before.get()
        before.set(b(f"fadd {wide} {old}, {shuffled(v, [LANES - 1] * LANES)}"))
        return b(f"fptrunc {wide} {b(f'fadd {wide} {v}, {old}')} to {narrow}")

    element = lambda base, i: b(f"getelementptr float, ptr {base}, i64 {i}")
    begin = "0"
    if stream:
        b.tail.append("!900 = !{i32 1}")
        b.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        line = 64 // 4
        for lines in (CHUNK // 64, 1):  # what is written waits in registers
            low, begin = begin, b(f"and i64 {n}, {-lines * line}")
            with b.loop(low, begin, lines * line) as at:
                source, results = element(frm, at), []
                for k in range(lines):
                    first, second = (vector(element(source, k * line + half)) for half in (0, LANES))
                    results.append(b(f"shufflevector {narrow} {first}, {narrow} {second}, <{line} x i32> <{', '.join(f'i32 {k}' for k in range(line))}>"))
                b.fetch(b.at(source, str(NEAR)), lines * 64, near=True)
                b.wall()
                for k, result in enumerate(results):
                    b.store(f"<{line} x float>", result, element(to, b.add(at, k * line)), ", align 64, !nontemporal !900")
                b.fetch(b.at(source, str(AHEAD)), lines * 64)
    done = b(f"and i64 {n}, {-LANES}")
    with b.loop(begin, done, LANES) as i:
        b.store(narrow, vector(element(frm, i)), element(to, i), ", align 4")
    total.set(b(f"extractelement {wide} {before.get()}, i32 0"))
    return done
