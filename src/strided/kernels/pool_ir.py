"""Maxima of windows in LLVM IR: a band of the input (conv_band.py) is swept a vector of positions at a time, and the places of the maxima are kept beside them.

What is asked for is decided in pool.py.
"""
from __future__ import annotations

from .conv_band import ARGUMENTS, band, offsets
from .gemm_pack import Kind
from .gemm_text import AS_WRITTEN, SIZES, TYPES, Function, module, vector

# Sizes; the input's steps in elements; the result's rows and columns a band serves; the band; offsets of the scratch's parts in bytes.
WORDS = (
    "batch channels k0 k1 k2 size_d size_h size_w o0 o1 o2 stride0 stride1 stride2 p0 p1 p2 e0 e1 e2 xb xc xd xh xw "
    "window some_rows some_columns rows pitch plane at_deltas at_x at_t at_i scratch"
).split()
FIRST = 8
LOWEST = "0xFFF0000000000000"  # minus infinity, which no element of the padding is above
NOWHERE = -(1 << 31)


def maximum_module(kind: Kind, dtype: str, places: bool, attributes: str) -> str:
    """kind: the operand as b, the accumulator as c. places: whether the maxima's positions are results as well."""
    return module(kernel(kind, dtype, places, attributes), band(kind, kind.b, attributes, LOWEST), sweep(kind, places, attributes))


def sweep(kind: Kind, places: bool, attributes: str) -> Function:
    """T [n] = the largest of the band's elements at each of k offsets; I [n] = the first one's number in `deltas`. A NaN is larger than anything, the last one stays."""
    t, acc = kind.tile, kind.acc
    w = t.width
    wide, ints, bits = vector(acc, w), vector("i32", w), vector("i1", w)
    f = Function("sweep", "i64 %n, i64 %k, ptr noalias readonly %x, ptr noalias readonly %offsets, ptr noalias readonly %deltas, ptr noalias %t, ptr noalias %i", attributes + " noinline" + AS_WRITTEN)
    best, which = f.variable(wide, None, 64), f.variable(ints, None, 64)
    with f.loop(0, "%n", w) as p:
        f.store(wide, f.constant(acc, LOWEST, w), best, 64)
        f.store(ints, f.constant("i32", NOWHERE, w), which, 64)
        here = f.at(acc, "%x", p)
        with f.loop(0, "%k") as k:
            value, so_far = f.load(wide, f.at(acc, here, f.load("i64", f.at("i64", "%offsets", k))), SIZES[acc]), f.load(wide, best, 64)
            above = f.op(f"or {bits} {f.op(f'fcmp ogt {wide} {value}, {so_far}')}, {f.op(f'fcmp uno {wide} {value}, {value}')}")
            f.store(wide, f.op(f"select {bits} {above}, {wide} {value}, {wide} {so_far}"), best, 64)
            if places:
                delta = f.splat("i32", f.load("i32", f.at("i32", "%deltas", k)), w)
                f.store(ints, f.op(f"select {bits} {above}, {ints} {delta}, {ints} {f.load(ints, which, 64)}"), which, 64)
        f.store(wide, f.load(wide, best, 64), f.at(acc, "%t", p), SIZES[acc])
        if places:
            f.store(ints, f.load(ints, which, 64), f.at("i32", "%i", p), 4)
    return f


def kernel(kind: Kind, dtype: str, places: bool, attributes: str) -> Function:
    """The entry: work items are planes (a channel of a batch entry)."""
    operand, memory, acc, t = TYPES[kind.b][0], TYPES[dtype][0], kind.acc, kind.tile
    w = t.width
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", attributes + AS_WRITTEN, linkage="dso_local")
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    slots = [f.load("ptr", f.at("ptr", "%slots", n)) for n in range(3 + places)]
    out, x, scratch = slots[0], slots[-2], slots[-1]
    table = f.at("i8", scratch, f.mul("%part", word["scratch"]))
    deltas, space, tops, found = (f.at("i8", table, word[name]) for name in ("at_deltas", "at_x", "at_t", "at_i"))
    kernel_size, dilation = [word[n] for n in ("k0", "k1", "k2")], [word[n] for n in ("e0", "e1", "e2")]
    offsets(f, table, 1, kernel_size, dilation, (word["stride1"], word["stride2"]), word["pitch"], word["plane"])
    number, place = f.variable("i64", 0), f.variable("i64")
    flat_place = lambda z, i, j: f.add(f.mul(f.add(f.mul(z, word["size_h"]), i), word["size_w"]), j)
    with f.loop(0, kernel_size[0]) as z, f.loop(0, kernel_size[1]) as i, f.loop(0, kernel_size[2]) as j:
        here = f.load("i64", number)
        steps = [f.sub(f.mul(v, e), word[f"p{a}"]) for a, (v, e) in enumerate(zip((z, i, j), dilation))]
        f.store("i32", f.op(f"trunc i64 {flat_place(*steps)} to i32"), f.at("i32", deltas, here))
        f.store("i64", f.add(here, 1), number)
    items = f.mul(word["batch"], word["channels"])
    begin, end = f.share(items)
    positions = f.mul(word["o0"], f.mul(word["o1"], word["o2"]))

    def first_inside(start, step):
        """The first element of a window that is not padding."""
        behind = f.call("i64", "llvm.smax.i64", f"i64 {f.sub(0, start)}", "i64 0")
        return f.add(start, f.mul(f.ceil_div(behind, step), step))

    with f.loop(begin, end) as item, f.loop(0, word["o0"]) as depth, f.loop(0, word["o1"], word["some_rows"]) as h0, f.loop(0, word["o2"], word["some_columns"]) as w0:
        rows, columns = f.min(word["some_rows"], f.sub(word["o1"], h0)), f.min(word["some_columns"], f.sub(word["o2"], w0))
        source = f.at(operand, x, f.add(f.mul(f.div(item, word["channels"]), word["xb"]), f.mul(f.rem(item, word["channels"]), word["xc"])))
        given = {
            "channels": 1, "depths": word["k0"], "between": word["e0"], "filled": word["plane"], "phases_h": word["stride1"], "phases_w": word["stride2"],
            **{a: f.sub(f.mul(b, word[s]), word[p]) for a, b, s, p in (("d0", depth, "stride0", "p0"), ("h0", h0, "stride1", "p1"), ("w0", w0, "stride2", "p2"))},
        }  # fmt: skip
        f.do(f"call void @band(ptr {source}, ptr {space}, {', '.join(f'i64 {given.get(a) or word[a]}' for a in ARGUMENTS)})")
        flat = f.add(f.mul(f.sub(rows, 1), word["pitch"]), columns)
        f.do(f"call void @sweep(i64 {flat}, i64 {word['window']}, ptr {space}, ptr {table}, ptr {deltas}, ptr {tops}, ptr {found})")
        corner = f.add(f.mul(item, positions), f.add(f.mul(f.add(f.mul(depth, word["o1"]), h0), word["o2"]), w0))
        with f.loop(0, rows) as r:
            row = f.mul(r, word["pitch"])
            target = f.add(corner, f.mul(r, word["o2"]))
            whole = f.mul(f.div(columns, w), w)
            value = lambda j, lanes: f.encode(dtype, f.load(vector(acc, lanes), f.at(acc, tops, f.add(row, j)), SIZES[acc]), lanes, t.half)
            with f.loop(0, whole, w) as j:
                f.store(vector(memory, w), value(j, w), f.at(memory, out, f.add(target, j)), SIZES[memory])
            with f.loop(whole, columns) as j:
                f.store(memory, value(j, 1), f.at(memory, out, f.add(target, j)))
            if places:
                base = flat_place(f.mul(depth, word["stride0"]), f.mul(f.add(h0, r), word["stride1"]), f.mul(w0, word["stride2"]))
                starts = [f.sub(f.mul(o, word[f"stride{a}"]), word[f"p{a}"]) for a, o in enumerate((depth, f.add(h0, r)))]
                with f.loop(0, columns) as j:
                    delta = f.load("i32", f.at("i32", found, f.add(row, j)))
                    f.store("i64", f.add(f.op(f"sext i32 {delta} to i64"), f.add(base, f.mul(j, word["stride2"]))), place)
                    with f.when(f.op(f"icmp eq i32 {delta}, {NOWHERE}")):  # nothing is above minus infinity: the first element it is
                        column = f.sub(f.mul(f.add(w0, j), word["stride2"]), word["p2"])
                        f.store("i64", flat_place(*(first_inside(s, e) for s, e in zip((*starts, column), dilation))), place)
                    f.store("i64", f.load("i64", place), f.at("i64", slots[1], f.add(target, j)))
    return f
