"""The gradient of a convolution's weights in LLVM IR: a few features times a few window elements are summed over positions, a vector of them at a time.

d_weight [F, K] = G [F, P] @ windows [K, P]^T, where row k of the windows is the band of conv_band.py from offset k on, and G is a band with zeros between its
rows: nothing is transposed, lanes are added up at the end of a band. Which gradients come here is decided in conv.py.
"""
from __future__ import annotations

from typing import NamedTuple

from .conv_band import ARGUMENTS, band, offsets
from .gemm_pack import Kind
from .gemm_text import AS_WRITTEN, SIZES, TYPES, Function, masked_load, masked_store, module, vector

# Sizes; steps of input and the result's gradient in elements; what a work item is (features, channels); bands; offsets of the scratch's parts in bytes.
WORDS = (
    "batch groups features channels k0 k1 k2 size_d size_h size_w o0 o1 o2 stride0 stride1 stride2 p0 p1 p2 e0 e1 e2 xb xc xd xh xw gb gf gd gh gw "
    "some_features some_channels some_entries some_rows some_columns rows pitch apart plane g_plane at_x at_g at_sums scratch"
).split()
FIRST = 8


class Block(NamedTuple):
    """Features and window elements whose sums stay in registers."""

    features: int
    taps: int


def weight_module(kind: Kind, block: Block, dtype: str, attributes: str) -> str:
    """kind: the operands as a and b, the accumulator as c. dtype: of the result."""
    heights = dict.fromkeys((block.features, 1))
    functions = [kernel(kind, block, dtype, attributes), band(kind, kind.b, attributes), again(kind, attributes)]
    return module(*functions, *(taps(kind, height, block.taps, attributes) for height in heights))


def lane_sums(f: Function, acc: str, w: int, rows: list[str]) -> str:
    """A vector with the sum of rows[i]'s lanes in lane i; there are at most w rows."""
    wide = vector(acc, w)
    left: list[str | None] = [*rows, *[None] * (w - len(rows))]
    size = 1
    while size < w:
        low = ", ".join(f"i32 {i if not i & size else w + i - size}" for i in range(w))
        high = ", ".join(f"i32 {i + size if not i & size else w + i}" for i in range(w))
        for i in range(0, w, 2 * size):
            a, b = left[i], left[i + size]
            if a is not None:
                pair = f"{wide} {a}, {wide} {'zeroinitializer' if b is None else b}"
                left[i] = f.plus(acc, w, *(f.op(f"shufflevector {pair}, <{w} x i32> <{order}>") for order in (low, high)))
        size *= 2
    return left[0] or "zeroinitializer"


def taps(kind: Kind, height: int, count: int, attributes: str) -> Function:
    """sums [features, taps] (rows `ld` apart) += G [features, n] @ the band from each of the offsets on [taps, n]^T. Features and taps may be fewer than the block's."""
    t, acc = kind.tile, kind.acc
    w = t.width
    wide, size = vector(acc, w), SIZES[acc]
    arguments = "i64 %n, ptr noalias readonly %g, i64 %g_plane, i64 %features, ptr noalias readonly %x, ptr noalias readonly %offsets, i64 %taps, ptr noalias %sums, i64 %ld"
    f = Function(f"taps_{height}", arguments, attributes + " noinline")
    last = f.sub("%features", 1)
    rows = [f.at(acc, "%g", f.mul(f.min(r, last), "%g_plane")) for r in range(height)]  # missing ones repeat the last one: their sums are dropped
    places = [f.at(acc, "%x", f.load("i64", f.at("i64", "%offsets", f.min(i, f.sub("%taps", 1))))) for i in range(count)]
    totals = [[f.variable(wide, "zeroinitializer", 64) for _ in range(count)] for _ in range(height)]
    with f.loop(0, "%n", w) as p:
        gs = [f.load(wide, f.at(acc, row, p), size) for row in rows]
        for i, place in enumerate(places):
            x = f.load(wide, f.at(acc, place, p), size)
            for r, g in enumerate(gs):
                f.store(wide, f.fma(acc, w, g, x, f.load(wide, totals[r][i], 64), t.fused), totals[r][i], 64)
    mask = f.lanes_below("%taps", w) if t.masks else ""
    spill = f.variable(wide, None, 64)
    for r in range(height):
        with f.when(f.compare("sgt", "%features", r)):
            total = lane_sums(f, acc, w, [f.load(wide, slot, 64) for slot in totals[r]])
            target = f.at(acc, "%sums", f.mul("%ld", r))
            if t.masks:
                masked_store(f, acc, w, f.plus(acc, w, total, masked_load(f, acc, w, target, mask)), target, mask)
            else:
                f.store(wide, total, spill, 64)
                with f.loop(0, "%taps") as i:
                    f.store(acc, f.plus(acc, 1, f.load(acc, f.at(acc, spill, i)), f.load(acc, f.at(acc, target, i))), f.at(acc, target, i))
    return f


AGAIN = WORDS[0:1] + WORDS[4:32]


def again(kind: Kind, attributes: str) -> Function:
    """sums [features, channels, K..] once more, position by position: a NaN in them may be an infinity of the input times a zero between the rows of G."""
    t, acc, memory = kind.tile, kind.acc, TYPES[kind.b][0]
    f = Function("again", f"ptr %x, ptr %g, ptr %sums, i64 %features, i64 %channels, {', '.join(f'i64 %{a}' for a in AGAIN)}", attributes + " noinline optnone cold")
    at, total = f.variable("ptr", "%sums"), f.variable(acc, "0.0")
    read = lambda pointer, place: f.decode(kind.b, f.load(memory, f.at(memory, pointer, place)), 1, t.half)
    with f.loop(0, "%features") as m, f.loop(0, "%channels") as c, f.loop(0, "%k0") as z, f.loop(0, "%k1") as i, f.loop(0, "%k2") as j:
        f.store(acc, "0.0", total)
        with f.loop(0, "%batch") as n, f.loop(0, "%o0") as d, f.loop(0, "%o1") as h, f.loop(0, "%o2") as v:
            where = [f.sub(f.add(f.mul(o, f"%stride{a}"), f.mul(k, f"%e{a}")), f"%p{a}") for a, (o, k) in enumerate(((d, z), (h, i), (v, j)))]
            inside = f.both(*(f.compare("ult", place, f"%size_{axis}") for place, axis in zip(where, "dhw")))
            with f.when(inside):
                place = f.add(f.mul(n, "%xb"), f.mul(c, "%xc"))
                for axis, step in zip(where, ("%xd", "%xh", "%xw")):
                    place = f.add(place, f.mul(axis, step))
                g = f.add(f.add(f.mul(n, "%gb"), f.mul(m, "%gf")), f.add(f.mul(d, "%gd"), f.add(f.mul(h, "%gh"), f.mul(v, "%gw"))))
                f.store(acc, f.fma(acc, 1, read("%x", place), read("%g", g), f.load(acc, total), t.fused), total)
        here = f.load("ptr", at)
        f.store(acc, f.load(acc, total), here)
        f.store("ptr", f.at(acc, here, 1), at)
    return f


def kernel(kind: Kind, block: Block, dtype: str, attributes: str) -> Function:
    """The entry: work items are (group, some features, some channels); each sums over all bands of the batch."""
    operand, memory, acc, t = TYPES[kind.b][0], TYPES[dtype][0], kind.acc, kind.tile
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", attributes + AS_WRITTEN, linkage="dso_local")
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    out, x, g, scratch = (f.load("ptr", f.at("ptr", "%slots", n)) for n in range(4))
    table = f.at("i8", scratch, f.mul("%part", word["scratch"]))
    space, gradients, sums = (f.at("i8", table, word[name]) for name in ("at_x", "at_g", "at_sums"))
    offsets(f, table, word["some_channels"], [word[n] for n in ("k0", "k1", "k2")], [word[n] for n in ("e0", "e1", "e2")], (word["stride1"], word["stride2"]), word["pitch"], word["plane"])
    across, down = f.ceil_div(word["channels"], word["some_channels"]), f.ceil_div(word["features"], word["some_features"])
    items = f.mul(word["groups"], f.mul(down, across))
    begin, end = f.share(items)
    each = f.mul(word["k0"], f.mul(word["k1"], word["k2"]))
    with f.loop(begin, end) as item:
        c0 = f.mul(f.rem(item, across), word["some_channels"])
        left = f.div(item, across)
        n0, group = f.mul(f.rem(left, down), word["some_features"]), f.div(left, down)
        channels, features = f.min(word["some_channels"], f.sub(word["channels"], c0)), f.min(word["some_features"], f.sub(word["features"], n0))
        window = f.mul(channels, each)
        many = f.mul(features, window)
        with f.loop(0, many) as i:
            f.store(acc, "0.0", f.at(acc, sums, i))
        first_x = f.at(operand, x, f.mul(f.add(f.mul(group, word["channels"]), c0), word["xc"]))
        first_g = f.at(operand, g, f.mul(f.add(f.mul(group, word["features"]), n0), word["gf"]))
        entries_loop = f.loop(0, word["batch"], word["some_entries"])
        with entries_loop as e0, f.loop(0, word["o0"]) as depth, f.loop(0, word["o1"], word["some_rows"]) as h0, f.loop(0, word["o2"], word["some_columns"]) as w0:
            rows, columns = f.min(word["some_rows"], f.sub(word["o1"], h0)), f.min(word["some_columns"], f.sub(word["o2"], w0))
            entries = f.min(word["some_entries"], f.sub(word["batch"], e0))
            with f.loop(0, entries) as i:  # small maps stand one behind the other, `apart` elements from start to start
                entry, start = f.add(e0, i), f.mul(i, word["apart"])
                ends = f.compare("eq", f.add(i, 1), entries)  # the last one is followed by zeros
                filled = lambda plane, start=start, ends=ends: f.op(f"select i1 {ends}, i64 {f.sub(plane, start)}, i64 {word['apart']}")
                given = {
                    "channels": channels, "depths": word["k0"], "between": word["e0"], "filled": filled(word["plane"]), "phases_h": word["stride1"], "phases_w": word["stride2"],
                    **{a: f.sub(f.mul(b, word[s]), word[p]) for a, b, s, p in (("d0", depth, "stride0", "p0"), ("h0", h0, "stride1", "p1"), ("w0", w0, "stride2", "p2"))},
                }  # fmt: skip
                source = f.at(operand, first_x, f.mul(entry, word["xb"]))
                f.do(f"call void @band(ptr {source}, ptr {f.at(acc, space, start)}, {', '.join(f'i64 {given.get(a) or word[a]}' for a in ARGUMENTS)})")
                given = {
                    "channels": features, "depths": 1, "between": 0, "d0": depth, "h0": h0, "w0": w0, "size_d": word["o0"], "size_h": f.add(h0, rows), "size_w": f.add(w0, columns),
                    "xc": word["gf"], "xd": word["gd"], "xh": word["gh"], "xw": word["gw"], "phases_h": 1, "phases_w": 1, "rows": rows, "filled": filled(word["g_plane"]),
                    "plane": word["g_plane"],
                }  # fmt: skip
                source = f.at(operand, first_g, f.mul(entry, word["gb"]))
                f.do(f"call void @band(ptr {source}, ptr {f.at(acc, gradients, start)}, {', '.join(f'i64 {given.get(a, word.get(a))}' for a in ARGUMENTS)})")
            flat = f.add(f.add(f.mul(f.sub(rows, 1), word["pitch"]), columns), f.mul(f.sub(entries, 1), word["apart"]))
            with f.loop(0, window, block.taps) as k, f.loop(0, features, block.features) as m:
                count = f.min(block.features, f.sub(features, m))
                row = f.at(acc, gradients, f.mul(m, word["g_plane"]))
                target = f.at(acc, sums, f.add(f.mul(m, window), k))
                operands = f"i64 {flat}, ptr {row}, i64 {word['g_plane']}, i64 {count}, ptr {space}, ptr {f.at('i64', table, k)}, i64 {f.min(block.taps, f.sub(window, k))}, ptr {target}, i64 {window}"
                one, all_ = f"call void @taps_1({operands})", f"call void @taps_{block.features}({operands})"
                f.choose(f.compare("eq", count, 1), lambda one=one: f.do(one), lambda all_=all_: f.do(all_))
        bad = f.variable("i1", "false")
        with f.loop(0, many) as i:
            value = f.load(acc, f.at(acc, sums, i))
            f.store("i1", f.op(f"or i1 {f.load('i1', bad)}, {f.op(f'fcmp uno {acc} {value}, {value}')}"), bad)
        with f.when(f.load("i1", bad)):
            f.do(f"call void @again(ptr {first_x}, ptr {first_g}, ptr {sums}, i64 {features}, i64 {channels}, {', '.join(f'i64 {word[a]}' for a in AGAIN)})")
        start = f.add(f.mul(f.add(f.mul(group, word["features"]), n0), f.mul(word["channels"], each)), f.mul(c0, each))
        with f.loop(0, features) as m:
            target = f.at(memory, out, f.add(start, f.mul(m, f.mul(word["channels"], each))))
            with f.loop(0, window) as i:
                f.store(memory, f.encode(dtype, f.load(acc, f.at(acc, sums, f.add(f.mul(m, window), i))), 1, t.half), f.at(memory, target, i))
    return f
