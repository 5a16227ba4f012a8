"""Convolution of small maps in LLVM IR: the windows of several batch entries are packed as the right operand, so that no lane is idle between short rows.

out [F, P] = weights [F, K] @ windows [K, P] with P the positions of some entries one behind the other. Windows are read from bands (conv_band.py) a block of
window elements at a time, and meet all features. Larger maps, where packing costs more than idle lanes, are conv_direct_ir.py's.
"""
from __future__ import annotations

from .conv_band import ARGUMENTS, band, offsets
from .conv_direct_ir import CHAIN, finish, tile, vector_counts
from .gemm_pack import Kind, pack
from .gemm_rectangle import pack_panels, panels
from .gemm_text import AS_WRITTEN, SIZES, TYPES, Function, module, vector

# As in conv_direct_ir.py; a work item is (group, some entries, some features), `entry` how far the bands of two entries are apart.
WORDS = (
    "batch groups features channels k1 k2 size_h size_w o1 o2 stride1 stride2 p1 p2 e1 e2 xb xc xh xw ob of oh ow "
    "window bias some_entries some_features rows pitch filled plane at_offsets at_lines at_pieces at_x at_b at_t scratch"
).split()
FIRST = 8


def packed_module(kind: Kind, dtype: str, attributes: str) -> str:
    """kind: the operands as a and b (rounded on reading where precision asks for it), the accumulator as c. dtype: of the result and the bias."""
    functions = [kernel(kind, dtype, attributes), windows(kind, attributes), band(kind, kind.b, attributes), finish(kind, dtype, attributes), pack(kind, kind.a, kind.a, attributes + AS_WRITTEN)]
    functions += [tile(kind, height, count, attributes) for height in kind.tile.heights for count in vector_counts(kind, height)]
    return module(*functions)


def windows(kind: Kind, attributes: str) -> Function:
    """Packs `k` elements of the windows at positions p0…p0+count-1 as a panel [k][NR]: pieces of rows, each stored as a whole vector whose end the next one repairs."""
    t, acc = kind.tile, kind.acc
    w, nr = t.width, t.nr
    wide, size = vector(acc, w), SIZES[acc]
    arguments = "ptr noalias %x, ptr noalias %offsets, i64 %k, i64 %p0, i64 %count, i64 %o1, i64 %o2, i64 %pitch, i64 %filled, ptr noalias %pieces, ptr noalias %panel"
    f = Function("windows", arguments, attributes + " noinline" + AS_WRITTEN)
    lane, number = f.variable("i64", 0), f.variable("i64", 0)
    with f.loop(0, "%count"):
        here = f.load("i64", lane)
        with f.when(f.compare("slt", here, "%count")):
            p = f.add("%p0", here)
            column, row = f.rem(p, "%o2"), f.div(p, "%o2")
            place = f.add(f.mul(f.div(row, "%o1"), "%filled"), f.add(f.mul(f.rem(row, "%o1"), "%pitch"), column))
            i = f.load("i64", number)
            f.store("i64", place, f.at("i64", "%pieces", f.mul(i, 2)))
            f.store("i64", here, f.at("i64", "%pieces", f.add(f.mul(i, 2), 1)))
            f.store("i64", f.add(i, 1), number)
            f.store("i64", f.add(here, f.min(f.min(w, f.sub("%o2", column)), f.sub("%count", here))), lane)
    pieces = f.load("i64", number)
    with f.loop(0, "%k") as k:
        source = f.at(acc, "%x", f.load("i64", f.at("i64", "%offsets", k)))
        target = f.at(acc, "%panel", f.mul(k, nr))
        with f.loop(0, pieces) as i:
            piece = f.at("i64", "%pieces", f.mul(i, 2))
            from_, to = f.load("i64", piece), f.load("i64", f.at("i64", piece, 1))
            f.store(wide, f.load(wide, f.at(acc, source, from_), size), f.at(acc, target, to), size)
    return f


def kernel(kind: Kind, dtype: str, attributes: str) -> Function:
    """The entry: work items are (group, some batch entries, some features); every part has its own piece of the scratch."""
    operand, memory, acc, t = TYPES[kind.b][0], TYPES[dtype][0], kind.acc, kind.tile
    nr = t.nr
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", attributes + AS_WRITTEN, linkage="dso_local")
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    out, x, weight, bias, scratch = (f.load("ptr", f.at("ptr", "%slots", n)) for n in range(5))
    packed_at = f.at("i8", scratch, f.mul("%part", word["scratch"]))
    table, lines, pieces, space, right, sums = (f.at("i8", packed_at, word[name]) for name in ("at_offsets", "at_lines", "at_pieces", "at_x", "at_b", "at_t"))
    offsets(f, table, word["channels"], ["1", word["k1"], word["k2"]], ["1", word["e1"], word["e2"]], (word["stride1"], word["stride2"]), word["pitch"], word["plane"])
    with f.loop(0, CHAIN) as k:  # where the rows of a packed panel lie
        f.store("i64", f.mul(k, nr), f.at("i64", lines, k))
    down, some = f.ceil_div(word["features"], word["some_features"]), f.ceil_div(word["batch"], word["some_entries"])
    items = f.mul(word["groups"], f.mul(down, some))
    begin, end = f.share(items)
    tall = f.add(word["some_features"], t.heights[0])
    each = f.mul(word["o1"], word["o2"])
    packed = f.variable("i64", -1)
    with f.loop(begin, end) as item:
        e0 = f.mul(f.rem(item, some), word["some_entries"])
        left = f.div(item, some)
        n0, group = f.mul(f.rem(left, down), word["some_features"]), f.div(left, down)
        entries, features = f.min(word["some_entries"], f.sub(word["batch"], e0)), f.min(word["some_features"], f.sub(word["features"], n0))
        first = f.add(f.mul(group, word["features"]), n0)
        with f.when(f.compare("ne", first, f.load("i64", packed))):
            with f.loop(0, word["window"], CHAIN) as k0:
                size = f.min(CHAIN, f.sub(word["window"], k0))
                source = f.at(operand, weight, f.add(f.mul(first, word["window"]), k0))
                pack_panels(f, kind, source, word["window"], features, size, f.at(acc, packed_at, f.mul(k0, tall)))
            f.store("i64", first, packed)
        with f.loop(0, entries) as i:
            source = f.at(operand, x, f.add(f.mul(f.add(e0, i), word["xb"]), f.mul(f.mul(group, word["channels"]), word["xc"])))
            given = {
                "depths": 1, "between": 0, "d0": 0, "size_d": 1, "xd": 0, "phases_h": word["stride1"], "phases_w": word["stride2"],
                "h0": f.sub(0, word["p1"]), "w0": f.sub(0, word["p2"]),
            }  # fmt: skip
            f.do(f"call void @band(ptr {source}, ptr {f.at(acc, space, f.mul(i, word['filled']))}, {', '.join(f'i64 {given.get(a, word.get(a))}' for a in ARGUMENTS)})")
        flat = f.mul(entries, each)
        ldt = f.mul(f.ceil_div(flat, nr), nr)
        with f.loop(0, word["window"], CHAIN) as k0:
            size = f.min(CHAIN, f.sub(word["window"], k0))
            with f.loop(0, flat, nr) as j:
                places = f"i64 {word['o1']}, i64 {word['o2']}, i64 {word['pitch']}, i64 {word['filled']}"
                panel = f.at(acc, right, f.mul(j, CHAIN))
                f.do(f"call void @windows(ptr {space}, ptr {f.at('i64', table, k0)}, i64 {size}, i64 {j}, i64 {f.min(nr, f.sub(flat, j))}, {places}, ptr {pieces}, ptr {panel})")
            more = f.compare("ne", k0, 0)

            def features_of(height, i, these, panel_a, flat=flat, ldt=ldt, size=size, more=more):
                with f.loop(0, flat, nr) as j:
                    given = f"i64 {size}, ptr {panel_a}, ptr {f.at(acc, right, f.mul(j, CHAIN))}, ptr {lines}, ptr {f.at(acc, sums, f.add(f.mul(i, ldt), j))}, i64 {ldt}, i1 {more}"
                    one, all_ = f"call void @tile_{height}_{vector_counts(kind, height)[-1]}({given})", f"call void @tile_{height}_{t.vectors}({given})"
                    f.choose(f.compare("sle", f.sub(flat, j), t.width), lambda: f.do(one), lambda: f.do(all_))

            panels(f, kind, features, size, f.at(acc, packed_at, f.mul(k0, tall)), features_of)
        shift = f.op(f"select i1 {f.compare('ne', word['bias'], 0)}, ptr {f.at(memory, bias, first)}, ptr null")
        with f.loop(0, entries) as i:
            target = f.at(memory, out, f.add(f.mul(f.add(e0, i), word["ob"]), f.mul(first, word["of"])))
            sizes = f"i64 {features}, i64 {word['o1']}, i64 {word['o2']}, i64 {ldt}, i64 {word['o2']}, i64 {word['of']}, i64 {word['oh']}, i64 {word['ow']}"
            f.do(f"call void @finish(ptr {f.at(acc, sums, f.mul(i, each))}, ptr {shift}, ptr {target}, {sizes})")
    return f
