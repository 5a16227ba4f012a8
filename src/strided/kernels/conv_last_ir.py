"""Convolutions of images whose channels lie innermost, in LLVM IR: vectors are neighbouring features (or channels), positions are found in a table.

Three tiles share one walk over positions: `products` (features times the window's elements), `gradients` (of the weights: features times window elements, summed over
positions) and the depthwise pair `columns` and `column_gradients`. A window is a few `pieces`, runs of neighbouring elements that start somewhere behind the
position's first one. Images without padding are read where they lie, others from a padded copy of some rows (`band`). What comes here is decided in conv_last.py.
"""
from __future__ import annotations

from .gemm_pack import Kind, Tile, masked_load, masked_store, pack
from .gemm_text import AS_WRITTEN, SIZES, Function, module, vector

# Sizes; the walk over the image and over the result (or its gradient), in elements; the band; what an item is; offsets of the scratch's parts in bytes.
WORDS = (
    "batch groups features channels o0 o1 o2 k0 size_d size_h size_w stride0 stride1 stride2 p0 p1 p2 e0 xb xd xh xw yb yd yh yw "
    "padded tall wide pieces chunks window blocks taps wg wf wc padded_features some_entries some_rows some_columns some_blocks at_y at_packed at_bias at_band at_t scratch"
).split()
FIRST = 8


class Text:
    """The kernel while it is written: words, tables behind them, and the loop over items."""

    def __init__(self, acc: str, tile: Tile, attributes: str, slots: int):
        self.acc, self.tile, self.w, self.size = acc, tile, tile.width, SIZES[acc]
        f = self.f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", attributes + AS_WRITTEN, linkage="dso_local")
        self.word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
        self.slots = [f.load("ptr", f.at("ptr", "%slots", n)) for n in range(slots)]
        self.pieces = f.at("i64", "%desc", FIRST + len(WORDS))  # (offset, length) each
        self.chunks = f.at("i64", self.pieces, f.mul(self.word["pieces"], 2))  # (first piece, number of pieces, first element) each
        self.blocks = f.at("i64", self.chunks, f.mul(self.word["chunks"], 3))  # (first feature, vectors) each
        self.taps = f.at("i64", self.blocks, f.mul(self.word["blocks"], 2))  # where the weights of each window element begin
        scratch = self.slots[-1]
        self.scratch = f.at("i8", scratch, f.mul("%part", self.word["scratch"]))
        self.at = lambda name: f.at("i8", self.scratch, self.word[name])

    def entry(self, table: str, index, width: int) -> list[str]:
        """The numbers of entry `index` of a table."""
        f = self.f
        start = f.at("i64", table, f.mul(index, width))
        return [f.load("i64", f.at("i64", start, i)) for i in range(width)]

    def positions(self) -> None:
        """Writes where the window and the result of each position of an item begin, counted from the item's first ones."""
        f, word = self.f, self.word
        number = f.variable("i64", 0)
        padded = f.compare("ne", word["padded"], 0)
        pick = lambda yes, no: f.op(f"select i1 {padded}, i64 {yes}, i64 {no}")
        line = f.mul(word["wide"], word["channels"])
        across = pick(f.mul(word["stride2"], word["channels"]), f.mul(word["stride2"], word["xw"]))
        down = pick(f.mul(word["stride1"], line), f.mul(word["stride1"], word["xh"]))
        apart = pick(f.mul(f.mul(word["k0"], word["tall"]), line), word["xb"])
        with f.loop(0, word["some_entries"]) as e, f.loop(0, word["some_rows"]) as r, f.loop(0, word["some_columns"]) as c:
            here = f.load("i64", number)
            f.store("i64", f.add(f.mul(e, apart), f.add(f.mul(r, down), f.mul(c, across))), f.at("i64", self.scratch, here))
            f.store("i64", f.add(f.mul(e, word["yb"]), f.add(f.mul(r, word["yh"]), f.mul(c, word["yw"]))), f.at("i64", self.at("at_y"), here))
            f.store("i64", f.add(here, 1), number)

    def items(self, x: str, y: str, group, low, high, each) -> None:
        """Calls `each(x of the first window, y of the first position, positions)` for items `low` to `high` of a group: bands of rows of some entries."""
        f, word = self.f, self.word
        counts = [f.ceil_div(word["batch"], word["some_entries"]), word["o0"], f.ceil_div(word["o1"], word["some_rows"]), f.ceil_div(word["o2"], word["some_columns"])]
        first_channel = f.mul(group, word["channels"])
        with f.loop(low, high) as item:
            left, digits = item, []
            for count in reversed(counts):
                digits.append(f.rem(left, count))
                left = f.div(left, count)
            at_column, at_row, depth, at_entry = digits
            n0, h0, w0 = f.mul(at_entry, word["some_entries"]), f.mul(at_row, word["some_rows"]), f.mul(at_column, word["some_columns"])
            entries, rows, columns = (f.min(word[s], f.sub(word[n], b)) for s, n, b in (("some_entries", "batch", n0), ("some_rows", "o1", h0), ("some_columns", "o2", w0)))
            corner = [f.sub(f.mul(o, word[f"stride{a}"]), word[f"p{a}"]) for a, o in enumerate((depth, h0, w0))]
            source = f.at(self.acc, x, f.add(f.mul(n0, word["xb"]), first_channel))
            start = f.variable("ptr")
            inner = f.add(f.mul(corner[0], word["xd"]), f.add(f.mul(corner[1], word["xh"]), f.mul(corner[2], word["xw"])))

            def copied(source=source, entries=entries, corner=corner, start=start):
                given = {"entries": entries, "d0": corner[0], "h0": corner[1], "w0": corner[2]}
                f.do(f"call void @band(ptr {source}, ptr {self.at('at_band')}, {', '.join(f'i64 {given.get(a) or word[a]}' for a in BAND)})")
                f.store("ptr", self.at("at_band"), start)

            f.choose(f.compare("ne", word["padded"], 0), copied, lambda start=start, source=source, inner=inner: f.store("ptr", f.at(self.acc, source, inner), start))
            place = f.add(f.add(f.mul(n0, word["yb"]), f.mul(depth, word["yd"])), f.add(f.mul(h0, word["yh"]), f.mul(w0, word["yw"])))
            each(f.load("ptr", start), f.at(self.acc, y, place), f.mul(entries, f.mul(rows, columns)))

    def count(self) -> str:
        f, word = self.f, self.word
        total = word["o0"]
        for n, some in (("batch", "some_entries"), ("o1", "some_rows"), ("o2", "some_columns")):
            total = f.mul(total, f.ceil_div(word[n], word[some]))
        return total

    def share(self, total):
        f = self.f
        return f.div(f.mul(total, "%part"), "%parts"), f.div(f.mul(total, f.add("%part", 1)), "%parts")


BAND = "entries channels k0 e0 d0 h0 w0 size_d size_h size_w xb xd xh xw tall wide".split()


def band(acc: str, tile: Tile, attributes: str) -> Function:
    """Copies rows of an image with zeros around them: [entries, k0, tall, wide, channels] from the corner (d0, h0, w0) on, which may lie outside."""
    w, size = tile.width, SIZES[acc]
    f = Function("band", "ptr noalias %x, ptr noalias %out, " + ", ".join(f"i64 %{a}" for a in BAND), attributes + " noinline" + AS_WRITTEN)
    at = f.variable("ptr", "%out")
    bound = lambda value, low, high: f.min(f.call("i64", "llvm.smax.i64", f"i64 {value}", f"i64 {low}"), high)
    line = f.mul("%wide", "%channels")
    start = bound(f.sub(0, "%w0"), 0, "%wide")
    stop = f.call("i64", "llvm.smax.i64", f"i64 {bound(f.sub('%size_w', '%w0'), 0, '%wide')}", f"i64 {start}")

    def zeros(target, count):
        with f.loop(0, count) as i:
            f.store(acc, "0.0", f.at(acc, target, i))

    def run(source, target, count):
        whole = f.mul(f.div(count, w), w)
        with f.loop(0, whole, w) as i:
            f.store(vector(acc, w), f.load(vector(acc, w), f.at(acc, source, i), size), f.at(acc, target, i), size)
        with f.loop(whole, count) as i:
            f.store(acc, f.load(acc, f.at(acc, source, i)), f.at(acc, target, i))

    with f.loop(0, "%entries") as e, f.loop(0, "%k0") as z, f.loop(0, "%tall") as r:
        target = f.load("ptr", at)
        depth, row = f.add("%d0", f.mul(z, "%e0")), f.add("%h0", r)

        def inside(e=e, depth=depth, row=row, target=target):
            zeros(target, f.mul(start, "%channels"))
            first = f.add(f.mul(e, "%xb"), f.add(f.mul(depth, "%xd"), f.add(f.mul(row, "%xh"), f.mul(f.add("%w0", start), "%xw"))))
            source, to = f.at(acc, "%x", first), f.at(acc, target, f.mul(start, "%channels"))

            def apart():
                with f.loop(0, f.sub(stop, start)) as i:
                    run(f.at(acc, source, f.mul(i, "%xw")), f.at(acc, to, f.mul(i, "%channels")), "%channels")

            f.choose(f.compare("eq", "%xw", "%channels"), lambda: run(source, to, f.mul(f.sub(stop, start), "%channels")), apart)
            zeros(f.at(acc, target, f.mul(stop, "%channels")), f.mul(f.sub("%wide", stop), "%channels"))

        f.choose(f.both(f.compare("ult", depth, "%size_d"), f.compare("ult", row, "%size_h")), inside, lambda target=target: zeros(target, line))
        f.store("ptr", f.at(acc, target, line), at)
    zeros(f.load("ptr", at), 4 * w)  # what vectors behind the last element read
    return f


def _finish(f: Function, acc: str, w: int, values, lanes, target) -> None:
    """Stores vectors of which only `lanes` elements are wanted."""
    for j, value in enumerate(values):
        place = f.at(acc, target, j * w)

        def some(j=j, value=value, place=place):
            masked_store(f, acc, w, value, place, f.lanes_below(f.sub(lanes, j * w), w))

        f.choose(f.compare("sge", lanes, (j + 1) * w), lambda value=value, place=place: f.store(vector(acc, w), value, place, SIZES[acc]), some)


# ---- features -----------------------------------------------------------------------------------------------------------------------


def product_tile(acc: str, tile: Tile, height: int, count: int, attributes: str) -> Function:
    """T [height, count vectors] = (itself +) the pieces' elements of `height` positions @ packed weights; the last time with the bias to the result."""
    w, size = tile.width, SIZES[acc]
    wide = vector(acc, w)
    arguments = (
        "ptr noalias readonly %pieces, i64 %number, ptr noalias readonly %weights, ptr noalias readonly %x, ptr noalias readonly %at_x, i64 %first, i64 %last, "
        "ptr noalias %t, i1 %more, i1 %final, ptr noalias readonly %bias, ptr noalias %out, ptr noalias readonly %at_out, i64 %lanes"
    )
    f = Function(f"products_{count}", arguments, attributes + " noinline")
    numbers = [f.min(f.add("%first", r), "%last") for r in range(height)]
    rows = [f.at(acc, "%x", f.load("i64", f.at("i64", "%at_x", n))) for n in numbers]
    sums = [[f.variable(wide, "zeroinitializer", 64) for _ in range(count)] for _ in range(height)]
    weights = f.variable("ptr", "%weights")
    with f.loop(0, "%number") as q:
        entry = f.at("i64", "%pieces", f.mul(q, 2))
        offset, length = f.load("i64", entry), f.load("i64", f.at("i64", entry, 1))
        starts, panel = [f.at(acc, row, offset) for row in rows], f.load("ptr", weights)
        with f.loop(0, length) as k:
            line = f.at(acc, panel, f.mul(k, count * w))
            values = [f.load(wide, f.at(acc, line, j * w), size) for j in range(count)]
            for r, start in enumerate(starts):
                a = f.splat(acc, f.load(acc, f.at(acc, start, k)), w)
                for j in range(count):
                    f.store(wide, f.fma(acc, w, a, values[j], f.load(wide, sums[r][j], 64), tile.fused), sums[r][j], 64)
        f.store("ptr", f.at(acc, panel, f.mul(length, count * w)), weights)
    place = lambda r, j: f.at(acc, "%t", (r * count + j) * w)
    with f.when("%more"):
        for r in range(height):
            for j in range(count):
                f.store(wide, f.plus(acc, w, f.load(wide, sums[r][j], 64), f.load(wide, place(r, j), size)), sums[r][j], 64)

    def put():
        bias = [f.load(wide, f.at(acc, "%bias", j * w), size) for j in range(count)]
        for r in range(height):
            target = f.at(acc, "%out", f.load("i64", f.at("i64", "%at_out", numbers[r])))
            _finish(f, acc, w, [f.plus(acc, w, f.load(wide, sums[r][j], 64), bias[j]) for j in range(count)], "%lanes", target)

    def keep():
        for r in range(height):
            for j in range(count):
                f.store(wide, f.load(wide, sums[r][j], 64), place(r, j), size)

    f.choose("%final", put, keep)
    return f


def product_module(kind: Kind, height: int, attributes: str) -> str:
    """out [N, O.., F] = windows [.., K] @ weights [K, F] (+ bias). Slots: out, x, weights, bias or null, scratch. Items are (group, blocks of features, bands)."""
    acc, tile = kind.acc, kind.tile
    text = Text(acc, tile, attributes, 5)
    f, word, w = text.f, text.word, tile.width
    out, x, weights, bias = text.slots[:4]
    text.positions()
    bands, pieces_of = text.count(), f.ceil_div(word["blocks"], word["some_blocks"])
    low, high = text.share(f.mul(word["groups"], f.mul(bands, pieces_of)))
    packed = f.variable("i64", -1)
    with f.loop(low, high) as item:
        item_band, of_group = f.rem(item, bands), f.div(item, bands)
        part, group = f.rem(of_group, pieces_of), f.div(of_group, pieces_of)
        b0 = f.mul(part, word["some_blocks"])
        b1 = f.min(f.add(b0, word["some_blocks"]), word["blocks"])
        with f.when(f.compare("ne", of_group, f.load("i64", packed))):
            f.store("i64", of_group, packed)
            at = f.variable("ptr")
            f.store("ptr", text.at("at_packed"), at)
            source = f.at(acc, weights, f.mul(group, word["wg"]))
            with f.loop(b0, b1) as b:
                first, vectors = text.entry(text.blocks, b, 2)
                across = f.mul(vectors, w)
                lanes = f.min(across, f.sub(word["features"], first))
                with f.loop(0, word["taps"]) as tap:
                    (offset,) = text.entry(text.taps, tap, 1)
                    here, to = f.at(acc, source, f.add(offset, f.mul(first, word["wf"]))), f.load("ptr", at)
                    f.do(f"call void @pack_{kind.a}(ptr {here}, i64 {word['wf']}, i64 {word['wc']}, i64 {lanes}, i64 {word['channels']}, ptr {to}, i64 {across})")
                    f.store("ptr", f.at(acc, to, f.mul(across, word["channels"])), at)
            shift = text.at("at_bias")
            with f.loop(0, word["padded_features"]) as i:
                f.store(acc, "0.0", f.at(acc, shift, i))
            with f.when(f.op(f"icmp ne ptr {bias}, null")):
                with f.loop(0, word["features"]) as i:
                    f.store(acc, f.load(acc, f.at(acc, bias, f.add(f.mul(group, word["features"]), i))), f.at(acc, shift, i))

        def each(source, target, number, group=group, b0=b0, b1=b1):
            last = f.sub(number, 1)
            target = f.at(acc, target, f.mul(group, word["features"]))
            panel = f.variable("ptr")
            f.store("ptr", text.at("at_packed"), panel)
            with f.loop(b0, b1) as b:
                first, vectors = text.entry(text.blocks, b, 2)
                here, across = f.load("ptr", panel), f.mul(vectors, w)
                with f.loop(0, word["chunks"]) as c:
                    q0, q_number, k0 = text.entry(text.chunks, c, 3)
                    more, final = f.compare("ne", c, 0), f.compare("eq", f.add(c, 1), word["chunks"])
                    with f.loop(0, number, height) as p:
                        given = f"ptr {f.at('i64', text.pieces, f.mul(q0, 2))}, i64 {q_number}, ptr {f.at(acc, here, f.mul(k0, across))}, ptr {source}, ptr {text.scratch}, i64 {p}, i64 {last}"
                        rest = f"i1 {more}, i1 {final}, ptr {f.at(acc, text.at('at_bias'), first)}, ptr {f.at(acc, target, first)}, ptr {text.at('at_y')}, i64 {f.sub(word['features'], first)}"
                        tile_at = f.at(acc, text.at("at_t"), f.mul(p, across))
                        for count in range(1, tile.vectors + 1):
                            with f.when(f.compare("eq", vectors, count)):
                                f.do(f"call void @products_{count}({given}, ptr {tile_at}, {rest})")
                f.store("ptr", f.at(acc, here, f.mul(word["window"], across)), panel)

        text.items(x, out, group, item_band, f.add(item_band, 1), each)
    tiles = [product_tile(acc, tile, height, count, attributes) for count in range(1, tile.vectors + 1)]
    return module(f, band(acc, tile, attributes), pack(kind, kind.a, kind.a, attributes + AS_WRITTEN), *tiles)


def gradient_tile(acc: str, tile: Tile, height: int, count: int, attributes: str) -> Function:
    """sums [height features, count vectors] (rows `ld` apart) += G [positions, height]^T @ window elements; the last vector's lanes may be fewer."""
    w, size = tile.width, SIZES[acc]
    wide = vector(acc, w)
    arguments = (
        "i64 %number, ptr noalias readonly %x, ptr noalias readonly %at_x, ptr noalias readonly %g, ptr noalias readonly %at_g, i64 %features, i64 %lanes, ptr noalias %sums, i64 %ld"
    )
    f = Function(f"gradients_{count}", arguments, attributes + " noinline")
    rows = [f.at(acc, "%g", f.min(r, f.sub("%features", 1))) for r in range(height)]  # missing features repeat the last one: their sums are dropped
    mask = f.lanes_below(f.sub("%lanes", (count - 1) * w), w)
    sums = [[f.variable(wide, "zeroinitializer", 64) for _ in range(count)] for _ in range(height)]
    with f.loop(0, "%number") as p:
        source = f.at(acc, "%x", f.load("i64", f.at("i64", "%at_x", p)))
        offset = f.load("i64", f.at("i64", "%at_g", p))
        values = [f.load(wide, f.at(acc, source, j * w), size) for j in range(count - 1)]
        end = f.at(acc, source, (count - 1) * w)
        values.append(masked_load(f, acc, w, end, mask) if tile.masks else f.load(wide, end, size))
        for r, row in enumerate(rows):
            a = f.splat(acc, f.load(acc, f.at(acc, row, offset)), w)
            for j in range(count):
                f.store(wide, f.fma(acc, w, a, values[j], f.load(wide, sums[r][j], 64), tile.fused), sums[r][j], 64)
    add_sums(f, acc, w, sums, "%features", "%ld", mask)
    return f


def add_sums(f: Function, acc: str, w: int, sums: list[list[str]], rows: str, ld: str, mask: str) -> None:
    """Adds the first `rows` rows of sums, which stand in registers, to those at %sums, `ld` elements apart; `mask` says what there is of the last vector of a row."""
    wide, size = vector(acc, w), SIZES[acc]
    for r, vectors in enumerate(sums):
        target = f.at(acc, "%sums", f.mul(ld, r))
        with f.when(f.compare("sgt", rows, r)):
            for j, slot in enumerate(vectors):
                place, value = f.at(acc, target, j * w), f.load(wide, slot, 64)
                if j < len(vectors) - 1:
                    f.store(wide, f.plus(acc, w, value, f.load(wide, place, size)), place, size)
                else:
                    masked_store(f, acc, w, f.plus(acc, w, value, masked_load(f, acc, w, place, mask)), place, mask)


def gradient_module(acc: str, tile: Tile, height: int, attributes: str) -> str:
    """d_weight [F, K] = G [.., F]^T @ windows [.., K], K in the order of memory. Slots: d_weight, x, g, scratch. Parts are ranges of `height` features of all groups."""
    text = Text(acc, tile, attributes, 4)
    f, word, w = text.f, text.word, tile.width
    out, x, g = text.slots[:3]
    text.positions()
    down = f.ceil_div(word["features"], height)
    per = f.ceil_div(down, word["some_blocks"])  # some_blocks: into how many ranges a group's features are cut
    low, high = text.share(f.mul(word["groups"], word["some_blocks"]))
    with f.loop(low, high) as item:
        group, number_of = f.div(item, word["some_blocks"]), f.rem(item, word["some_blocks"])
        f0 = f.mul(f.mul(number_of, per), height)
        f1 = f.min(f.add(f0, f.mul(per, height)), word["features"])
        base = f.mul(group, word["features"])
        result = f.at(acc, out, f.mul(f.add(base, f0), word["window"]))
        many = f.call("i64", "llvm.smax.i64", f"i64 {f.mul(f.sub(f1, f0), word['window'])}", "i64 0")
        with f.loop(0, many) as i:
            f.store(acc, "0.0", f.at(acc, result, i))

        def each(source, target, number, base=base, f0=f0, f1=f1):
            target = f.at(acc, target, base)
            k = f.variable("i64", 0)
            with f.loop(0, word["pieces"]) as q:
                offset, length = text.entry(text.pieces, q, 2)
                k0 = f.load("i64", k)
                with f.loop(0, length, tile.vectors * w) as j:
                    lanes = f.min(tile.vectors * w, f.sub(length, j))
                    vectors = f.ceil_div(lanes, w)
                    with f.loop(f0, f1, height) as m:
                        sums = f.at(acc, out, f.add(f.mul(f.add(base, m), word["window"]), f.add(k0, j)))
                        given = f"i64 {number}, ptr {f.at(acc, source, f.add(offset, j))}, ptr {text.scratch}, ptr {f.at(acc, target, m)}, ptr {text.at('at_y')}"
                        rest = f"i64 {f.min(height, f.sub(f1, m))}, i64 {lanes}, ptr {sums}, i64 {word['window']}"
                        for count in range(1, tile.vectors + 1):
                            with f.when(f.compare("eq", vectors, count)):
                                f.do(f"call void @gradients_{count}({given}, {rest})")
                f.store("i64", f.add(k0, length), k)

        text.items(x, g, group, 0, text.count(), each)
    tiles = [gradient_tile(acc, tile, height, count, attributes) for count in range(1, tile.vectors + 1)]
    return module(f, band(acc, tile, attributes), *tiles)


# ---- depthwise --------------------------------------------------------------------------------------------------------------------------


def column_tile(acc: str, tile: Tile, height: int, attributes: str) -> Function:
    """out [height positions, one vector of channels] = the sum over the pieces of x · weights [pieces, channels] + bias. Lanes of the vector may be fewer."""
    w, size = tile.width, SIZES[acc]
    wide = vector(acc, w)
    arguments = (
        "ptr noalias readonly %pieces, i64 %number, ptr noalias readonly %weights, i64 %channels, ptr noalias readonly %x, ptr noalias readonly %at_x, i64 %first, i64 %last, "
        "ptr noalias readonly %bias, ptr noalias %out, ptr noalias readonly %at_out, i64 %lanes"
    )
    f = Function("columns", arguments, attributes + " noinline")
    numbers = [f.min(f.add("%first", r), "%last") for r in range(height)]
    rows = [f.at(acc, "%x", f.load("i64", f.at("i64", "%at_x", n))) for n in numbers]
    mask = f.lanes_below("%lanes", w)
    sums = [f.variable(wide, "zeroinitializer", 64) for _ in range(height)]

    def sweep(read):
        with f.loop(0, "%number") as q:
            offset = f.load("i64", f.at("i64", "%pieces", f.mul(q, 2)))
            weight = read(f.at(acc, "%weights", f.mul(q, "%channels")))
            for row, slot in zip(rows, sums):
                f.store(wide, f.fma(acc, w, read(f.at(acc, row, offset)), weight, f.load(wide, slot, 64), tile.fused), slot, 64)

    whole = f.compare("sge", "%lanes", w)
    f.choose(whole, lambda: sweep(lambda place: f.load(wide, place, size)), lambda: sweep(lambda place: masked_load(f, acc, w, place, mask)))
    bias = f.variable(wide, "zeroinitializer", 64)
    with f.when(f.op("icmp ne ptr %bias, null")):
        f.store(wide, masked_load(f, acc, w, "%bias", mask), bias, 64)
    for number, slot in zip(numbers, sums):
        target = f.at(acc, "%out", f.load("i64", f.at("i64", "%at_out", number)))
        _finish(f, acc, w, [f.plus(acc, w, f.load(wide, slot, 64), f.load(wide, bias, 64))], "%lanes", target)
    return f


def column_module(acc: str, tile: Tile, height: int, attributes: str) -> str:
    """Depthwise: out [N, O.., C]; weights [K, C]. Slots: out, x, weights, bias or null, scratch. Items are bands."""
    text = Text(acc, tile, attributes, 5)
    f, word, w = text.f, text.word, tile.width
    out, x, weights, bias = text.slots[:4]
    text.positions()

    def each(source, target, number):
        last = f.sub(number, 1)
        with f.loop(0, word["channels"], w) as c, f.loop(0, number, height) as p:
            shift = f.op(f"select i1 {f.op(f'icmp ne ptr {bias}, null')}, ptr {f.at(acc, bias, c)}, ptr null")
            given = f"ptr {text.pieces}, i64 {word['pieces']}, ptr {f.at(acc, weights, c)}, i64 {word['channels']}, ptr {f.at(acc, source, c)}, ptr {text.scratch}"
            f.do(f"call void @columns({given}, i64 {p}, i64 {last}, ptr {shift}, ptr {f.at(acc, target, c)}, ptr {text.at('at_y')}, i64 {f.sub(word['channels'], c)})")

    low, high = text.share(text.count())
    text.items(x, out, 0, low, high, each)
    return module(f, band(acc, tile, attributes), column_tile(acc, tile, height, attributes))


def column_gradient_tile(acc: str, tile: Tile, count: int, attributes: str) -> Function:
    """sums [count pieces, one vector of channels] (rows `channels` apart) += the sum over positions of g · x."""
    w, size = tile.width, SIZES[acc]
    wide = vector(acc, w)
    arguments = (
        "i64 %number, ptr noalias readonly %x, ptr noalias readonly %at_x, ptr noalias readonly %g, ptr noalias readonly %at_g, ptr noalias readonly %pieces, i64 %taps, "
        "i64 %lanes, ptr noalias %sums, i64 %channels"
    )
    f = Function("column_gradients", arguments, attributes + " noinline")
    offsets = [f.load("i64", f.at("i64", "%pieces", f.mul(f.min(t, f.sub("%taps", 1)), 2))) for t in range(count)]
    starts = [f.at(acc, "%x", offset) for offset in offsets]
    mask = f.lanes_below("%lanes", w)
    sums = [f.variable(wide, "zeroinitializer", 64) for _ in range(count)]

    def sweep(read):
        with f.loop(0, "%number") as p:
            at = f.load("i64", f.at("i64", "%at_x", p))
            value = read(f.at(acc, "%g", f.load("i64", f.at("i64", "%at_g", p))))
            for start, slot in zip(starts, sums):
                f.store(wide, f.fma(acc, w, read(f.at(acc, start, at)), value, f.load(wide, slot, 64), tile.fused), slot, 64)

    f.choose(f.compare("sge", "%lanes", w), lambda: sweep(lambda place: f.load(wide, place, size)), lambda: sweep(lambda place: masked_load(f, acc, w, place, mask)))
    for t, slot in enumerate(sums):
        with f.when(f.compare("sgt", "%taps", t)):
            place = f.at(acc, "%sums", f.mul("%channels", t))
            masked_store(f, acc, w, f.plus(acc, w, f.load(wide, slot, 64), masked_load(f, acc, w, place, mask)), place, mask)
    return f


def column_gradient_module(acc: str, tile: Tile, count: int, attributes: str) -> str:
    """Depthwise: d_weight [K, C]. Slots: d_weight, x, g, scratch. Parts are ranges of vectors of channels; the image's band is copied for each."""
    text = Text(acc, tile, attributes, 4)
    f, word, w = text.f, text.word, tile.width
    out, x, g = text.slots[:3]
    text.positions()
    low, high = text.share(f.ceil_div(word["channels"], w))
    c0, c1 = f.mul(low, w), f.min(f.mul(high, w), word["channels"])
    with f.loop(0, word["pieces"]) as q, f.loop(c0, c1) as c:
        f.store(acc, "0.0", f.at(acc, out, f.add(f.mul(q, word["channels"]), c)))

    def each(source, target, number):
        with f.loop(c0, c1, w) as c, f.loop(0, word["pieces"], count) as q:
            given = f"i64 {number}, ptr {f.at(acc, source, c)}, ptr {text.scratch}, ptr {f.at(acc, target, c)}, ptr {text.at('at_y')}, ptr {f.at('i64', text.pieces, f.mul(q, 2))}"
            sums = f.at(acc, out, f.add(f.mul(q, word["channels"]), c))
            f.do(f"call void @column_gradients({given}, i64 {f.sub(word['pieces'], q)}, i64 {f.sub(word['channels'], c)}, ptr {sums}, i64 {word['channels']})")

    text.items(x, g, 0, 0, text.count(), each)
    return module(f, band(acc, tile, attributes), column_gradient_tile(acc, tile, count, attributes))
