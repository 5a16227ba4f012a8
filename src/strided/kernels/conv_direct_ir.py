"""Direct convolution in LLVM IR: a few features times a run of neighbouring positions stay in registers while the window's elements pass by.

out [F, P] = weights [F, K] @ windows [K, P], where row k of the windows is the band of conv_band.py from offset k on: nothing is packed but the weights.
Serves every stride, dilation and number of groups; which convolutions come here is decided in conv.py.
"""
from __future__ import annotations

from .conv_band import ARGUMENTS, band, offsets
from .gemm_pack import Kind, pack
from .gemm_rectangle import pack_panels, panels
from .gemm_text import AS_WRITTEN, SIZES, TYPES, Function, masked_load, masked_store, module, vector

# Sizes; steps of input and result in elements; what a work item is (rows and columns of the result, features); the band; offsets of the scratch's parts in bytes.
WORDS = (
    "batch groups features channels k0 k1 k2 size_d size_h size_w o0 o1 o2 stride0 stride1 stride2 p0 p1 p2 e0 e1 e2 xb xc xd xh xw ob of od oh ow "
    "window bias some_rows some_columns some_features rows pitch plane at_offsets at_x at_t scratch"
).split()
FIRST = 8
CHAIN = 128  # products that are added up one after the other before the sum is put aside: rounding errors stay small


def direct_module(kind: Kind, dtype: str, attributes: str) -> str:
    """kind: the operands as a and b (rounded on reading where precision asks for it), the accumulator as c. dtype: of the result and the bias."""
    functions = [kernel(kind, dtype, attributes), band(kind, kind.b, attributes), finish(kind, dtype, attributes), pack(kind, kind.a, kind.a, attributes + AS_WRITTEN)]
    functions += [tile(kind, height, count, attributes) for height in kind.tile.heights for count in vector_counts(kind, height)]
    return module(*functions)


def vector_counts(kind: Kind, height: int) -> tuple[int, ...]:
    """How many vectors of positions tiles of this height take: a rest of one vector has a tile of its own where it saves much."""
    return (kind.tile.vectors, 1) if height in (kind.tile.heights[0], 1) else (kind.tile.vectors,)


def tile(kind: Kind, height: int, count: int, attributes: str) -> Function:
    """T [height, count vectors] (+)= panel [k, height]^T @ the band from each of k offsets on."""
    t, acc = kind.tile, kind.acc
    w = t.width
    wide = vector(acc, w)
    f = Function(f"tile_{height}_{count}", "i64 %k, ptr noalias readonly %a, ptr noalias readonly %x, ptr noalias readonly %offsets, ptr noalias %t, i64 %ldt, i1 %more", attributes + " noinline")
    sums = [[f.variable(wide, "zeroinitializer", 64) for _ in range(count)] for _ in range(height)]
    with f.loop(0, "%k") as k:
        source = f.at(acc, "%x", f.load("i64", f.at("i64", "%offsets", k)))
        row = f.at(acc, "%a", f.mul(k, height))
        values = [f.load(wide, f.at(acc, source, j * w), SIZES[acc]) for j in range(count)]
        for r in range(height):
            a = f.splat(acc, f.load(acc, f.at(acc, row, r)), w)
            for j in range(count):
                f.store(wide, f.fma(acc, w, a, values[j], f.load(wide, sums[r][j], 64), t.fused), sums[r][j], 64)
    place = lambda r, j: f.at(acc, "%t", f.add(f.mul("%ldt", r), j * w))
    each = [(r, j, sums[r][j]) for r in range(height) for j in range(count)]
    with f.when("%more"):
        for r, j, slot in each:
            f.store(wide, f.plus(acc, w, f.load(wide, slot, 64), f.load(wide, place(r, j), SIZES[acc])), slot, 64)
    for r, j, slot in each:
        f.store(wide, f.load(wide, slot, 64), place(r, j), SIZES[acc])
    return f


def finish(kind: Kind, dtype: str, attributes: str) -> Function:
    """out [features, rows, columns] = T [features, rows of `pitch`] (+ bias), encoded; steps of out are its own."""
    t, memory, acc = kind.tile, TYPES[dtype][0], kind.acc
    w, size = t.width, SIZES[memory]
    sizes = "i64 %features, i64 %rows, i64 %columns, i64 %ldt, i64 %pitch, i64 %of, i64 %oh, i64 %ow"
    f = Function("finish", f"ptr noalias %t, ptr %bias, ptr noalias %out, {sizes}", attributes + " noinline" + AS_WRITTEN)
    biased, unit = f.op("icmp ne ptr %bias, null"), f.compare("eq", "%ow", 1)
    joined = f.both(unit, f.compare("eq", "%pitch", "%columns"), f.compare("eq", "%oh", "%columns"))  # rows behind each other are one
    rows = f.op(f"select i1 {joined}, i64 1, i64 %rows")
    columns = f.op(f"select i1 {joined}, i64 {f.mul('%rows', '%columns')}, i64 %columns")
    shift = f.variable(acc, "0.0")
    with f.loop(0, "%features") as i:
        with f.when(biased):
            f.store(acc, f.decode(dtype, f.load(memory, f.at(memory, "%bias", i)), 1, t.half), shift)
        added = f.load(acc, shift)
        with f.loop(0, rows) as r:
            source = f.at(acc, "%t", f.add(f.mul(i, "%ldt"), f.mul(r, "%pitch")))
            target = f.at(memory, "%out", f.add(f.mul(i, "%of"), f.mul(r, "%oh")))

            def value(j, lanes, loaded):
                return f.encode(dtype, f.plus(acc, lanes, loaded, f.splat(acc, added, lanes)), lanes, t.half)

            def scalars(start):
                with f.loop(start, columns) as j:
                    f.store(memory, value(j, 1, f.load(acc, f.at(acc, source, j))), f.at(memory, target, f.mul(j, "%ow")))

            def vectors():
                whole = f.mul(f.div(columns, w), w)
                with f.loop(0, whole, w) as j:
                    f.store(vector(memory, w), value(j, w, f.load(vector(acc, w), f.at(acc, source, j), SIZES[acc])), f.at(memory, target, j), size)
                if not t.masks:
                    return scalars(whole)
                with f.when(f.compare("slt", whole, columns)):
                    mask = f.lanes_below(f.sub(columns, whole), w)
                    masked_store(f, memory, w, value(whole, w, masked_load(f, acc, w, f.at(acc, source, whole), mask)), f.at(memory, target, whole), mask)

            f.choose(unit, vectors, lambda: scalars(0))
    return f


def kernel(kind: Kind, dtype: str, attributes: str) -> Function:
    """The entry: work items are (group, batch entry, depth, band of rows, band of columns, features); every part has its own piece of the scratch."""
    operand, memory, acc, t = TYPES[kind.b][0], TYPES[dtype][0], kind.acc, kind.tile
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", attributes + AS_WRITTEN, linkage="dso_local")
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    out, x, weight, bias, scratch = (f.load("ptr", f.at("ptr", "%slots", n)) for n in range(5))
    scratch = f.at("i8", scratch, f.mul("%part", word["scratch"]))
    table, space, sums = (f.at("i8", scratch, word[name]) for name in ("at_offsets", "at_x", "at_t"))
    packed_at = f.at("i8", scratch, 0)
    offsets(f, table, word["channels"], [word[n] for n in ("k0", "k1", "k2")], [word[n] for n in ("e0", "e1", "e2")], (word["stride1"], word["stride2"]), word["pitch"], word["plane"])
    counts = [word["batch"], word["o0"], f.ceil_div(word["o1"], word["some_rows"]), f.ceil_div(word["o2"], word["some_columns"]), f.ceil_div(word["features"], word["some_features"])]
    items = word["groups"]
    for count in counts:
        items = f.mul(items, count)
    begin, end = f.share(items)
    packed, copied = f.variable("i64", -1), f.variable("i64", -1)
    with f.loop(begin, end) as item:
        left, digits = item, []
        for count in reversed(counts):
            digits.append(f.rem(left, count))
            left = f.div(left, count)
        chunk, at_column, at_row, depth, entry = digits
        group = left
        n0 = f.mul(chunk, word["some_features"])
        features = f.min(word["some_features"], f.sub(word["features"], n0))
        first = f.add(f.mul(group, word["features"]), n0)
        with f.when(f.compare("ne", first, f.load("i64", packed))):
            with f.loop(0, word["window"], CHAIN) as k0:
                size = f.min(CHAIN, f.sub(word["window"], k0))
                source = f.at(operand, weight, f.add(f.mul(first, word["window"]), k0))
                pack_panels(f, kind, source, word["window"], features, size, f.at(acc, packed_at, f.mul(k0, f.add(word["some_features"], t.heights[0]))))
            f.store("i64", first, packed)
        h0, w0 = f.mul(at_row, word["some_rows"]), f.mul(at_column, word["some_columns"])
        rows, columns = f.min(word["some_rows"], f.sub(word["o1"], h0)), f.min(word["some_columns"], f.sub(word["o2"], w0))
        here = f.div(item, counts[-1])  # items of one band follow each other
        with f.when(f.compare("ne", here, f.load("i64", copied))):
            f.store("i64", here, copied)
            source = f.at(operand, x, f.add(f.mul(entry, word["xb"]), f.mul(f.mul(group, word["channels"]), word["xc"])))
            given = {
                "depths": word["k0"], "between": word["e0"], "filled": word["plane"], "phases_h": word["stride1"], "phases_w": word["stride2"],
                **{a: f.sub(f.mul(b, word[s]), word[p]) for a, b, s, p in (("d0", depth, "stride0", "p0"), ("h0", h0, "stride1", "p1"), ("w0", w0, "stride2", "p2"))},
            }  # fmt: skip
            f.do(f"call void @band(ptr {source}, ptr {space}, {', '.join(f'i64 {given.get(a) or word[a]}' for a in ARGUMENTS)})")
        flat = f.add(f.mul(f.sub(rows, 1), word["pitch"]), columns)
        shift = f.at(memory, bias, first)
        shift = f.op(f"select i1 {f.compare('ne', word['bias'], 0)}, ptr {shift}, ptr null")
        corner = f.add(f.add(f.mul(entry, word["ob"]), f.mul(depth, word["od"])), f.add(f.mul(h0, word["oh"]), f.mul(w0, word["ow"])))
        target = f.at(memory, out, f.add(corner, f.mul(first, word["of"])))
        ldt = f.mul(f.ceil_div(flat, t.nr), t.nr)

        def features_of(height, i, these, _, features=features, flat=flat, ldt=ldt, shift=shift, target=target, rows=rows, columns=columns):
            with f.loop(0, word["window"], CHAIN) as k0:
                size = f.min(CHAIN, f.sub(word["window"], k0))
                panel = f.at(acc, packed_at, f.add(f.mul(k0, f.add(word["some_features"], t.heights[0])), f.mul(i, size)))
                given = f"i64 {size}, ptr {panel}"
                more = f.compare("ne", k0, 0)
                last = f.variable("i64", 0)
                with f.loop(0, f.mul(f.div(f.add(flat, t.nr - t.width - 1), t.nr), t.nr), t.nr) as j:  # whole tiles, and one for a rest of more than a vector
                    where = f"ptr {f.at(acc, space, j)}, ptr {f.at('i64', table, k0)}, ptr {f.at(acc, sums, j)}, i64 {ldt}, i1 {more}"
                    f.do(f"call void @tile_{height}_{t.vectors}({given}, {where})")
                    f.store("i64", f.add(j, t.nr), last)
                j = f.load("i64", last)
                with f.when(f.compare("slt", j, flat)):
                    where = f"ptr {f.at(acc, space, j)}, ptr {f.at('i64', table, k0)}, ptr {f.at(acc, sums, j)}, i64 {ldt}, i1 {more}"
                    f.do(f"call void @tile_{height}_{vector_counts(kind, height)[-1]}({given}, {where})")
            bias_here = f.op(f"select i1 {f.compare('ne', word['bias'], 0)}, ptr {f.at(memory, shift, i)}, ptr null")
            sizes = f"i64 {these}, i64 {rows}, i64 {columns}, i64 {ldt}, i64 {word['pitch']}, i64 {word['of']}, i64 {word['oh']}, i64 {word['ow']}"
            f.do(f"call void @finish(ptr {sums}, ptr {bias_here}, ptr {f.at(memory, target, f.mul(i, word['of']))}, {sizes})")

        panels(f, kind, features, 0, packed_at, features_of)
    return f
