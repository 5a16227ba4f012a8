"""Convolutions of images whose channels lie innermost, in LLVM IR: vectors are neighbouring features (or channels), positions are found in a table.

Three tiles share one walk over positions (conv_last_walk.py): `products` (features times the window's elements), `gradients` (of the weights: features times window
elements, summed over positions) and the depthwise pair `columns` and `column_gradients`. A window is a few `pieces`, runs of neighbouring elements that start somewhere behind the
position's first one. Images without padding are read where they lie, others from a padded copy of some rows (`band`). What comes here is decided in conv_last.py.
"""
from __future__ import annotations

from .conv_last_walk import Text, band
from .conv_vectors import Vectors
from .gemm_pack import Kind, Tile, pack
from .gemm_text import AS_WRITTEN, Function, module


def windows(f: Function, acc: str, height: int) -> tuple[list[str], list[str]]:
    """(numbers, where their windows begin) of `height` positions from %first on; behind the %last one it is repeated."""
    numbers = [f.min(f.add("%first", r), "%last") for r in range(height)]
    return numbers, [f.at(acc, "%x", f.load("i64", f.at("i64", "%at_x", n))) for n in numbers]


# ---- features -----------------------------------------------------------------------------------------------------------------------


def product_tile(acc: str, tile: Tile, height: int, count: int, attributes: str) -> Function:
    """T [height, count vectors] = (itself +) the pieces' elements of `height` positions @ packed weights; the last time with the bias to the result."""
    w = tile.width
    arguments = (
        "ptr noalias readonly %pieces, i64 %number, ptr noalias readonly %weights, ptr noalias readonly %x, ptr noalias readonly %at_x, i64 %first, i64 %last, "
        "ptr noalias %t, i1 %more, i1 %final, ptr noalias readonly %bias, ptr noalias %out, ptr noalias readonly %at_out, i64 %lanes"
    )
    f = Function(f"products_{count}", arguments, attributes + " noinline")
    v = Vectors(f, acc, tile)
    numbers, rows = windows(f, acc, height)
    sums = [v.zeros(count) for _ in range(height)]
    weights = f.variable("ptr", "%weights")
    with f.loop(0, "%number") as q:
        entry = f.at("i64", "%pieces", f.mul(q, 2))
        offset, length = f.load("i64", entry), f.load("i64", f.at("i64", entry, 1))
        starts, panel = [f.at(acc, row, offset) for row in rows], f.load("ptr", weights)
        with f.loop(0, length) as k:
            values = v.loads(f.at(acc, panel, f.mul(k, count * w)), count)
            for start, slots in zip(starts, sums):
                v.add_row(slots, f.at(acc, start, k), values)
        f.store("ptr", f.at(acc, panel, f.mul(length, count * w)), weights)
    place = lambda n: f.at(acc, "%t", n * w)
    each = [slot for slots in sums for slot in slots]
    with f.when("%more"):
        for n, slot in enumerate(each):
            v.put(v.plus(v.get(slot), v.load(place(n))), slot)

    def put():
        bias = v.loads("%bias", count)
        for number, slots in zip(numbers, sums):
            target = f.at(acc, "%out", f.load("i64", f.at("i64", "%at_out", number)))
            v.store_lanes([v.plus(v.get(slot), shift) for slot, shift in zip(slots, bias)], "%lanes", target)

    def keep():
        for n, slot in enumerate(each):
            v.store(v.get(slot), place(n))

    f.choose("%final", put, keep)
    return f


def product_module(kind: Kind, height: int, attributes: str) -> str:
    """out [N, O.., F] = windows [.., K] @ weights [K, F] (+ bias). Slots: out, x, weights, bias or null, scratch. Items are (group, blocks of features, bands)."""
    acc, tile = kind.acc, kind.tile
    text = Text(acc, attributes, 5)
    f, word, w = text.f, text.word, tile.width
    out, x, weights, bias = text.slots[:4]
    text.positions()
    bands, pieces_of = text.count(), f.ceil_div(word["blocks"], word["some_blocks"])
    low, high = f.share(f.mul(word["groups"], f.mul(bands, pieces_of)))
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
    w = tile.width
    arguments = (
        "i64 %number, ptr noalias readonly %x, ptr noalias readonly %at_x, ptr noalias readonly %g, ptr noalias readonly %at_g, i64 %features, i64 %lanes, ptr noalias %sums, i64 %ld"
    )
    f = Function(f"gradients_{count}", arguments, attributes + " noinline")
    v = Vectors(f, acc, tile)
    rows = [f.at(acc, "%g", f.min(r, f.sub("%features", 1))) for r in range(height)]  # missing features repeat the last one: their sums are dropped
    mask = v.lanes(f.sub("%lanes", (count - 1) * w))
    sums = [v.zeros(count) for _ in range(height)]
    with f.loop(0, "%number") as p:
        source = f.at(acc, "%x", f.load("i64", f.at("i64", "%at_x", p)))
        offset = f.load("i64", f.at("i64", "%at_g", p))
        values = v.loads(source, count - 1)
        values.append(v.load(f.at(acc, source, (count - 1) * w), mask if tile.masks else None))
        for row, slots in zip(rows, sums):
            v.add_row(slots, f.at(acc, row, offset), values)
    v.add_sums(sums, "%features", "%ld", mask)
    return f


def gradient_module(acc: str, tile: Tile, height: int, attributes: str) -> str:
    """d_weight [F, K] = G [.., F]^T @ windows [.., K], K in the order of memory. Slots: d_weight, x, g, scratch. Parts are ranges of `height` features of all groups."""
    text = Text(acc, attributes, 4)
    f, word, w = text.f, text.word, tile.width
    out, x, g = text.slots[:3]
    text.positions()
    down = f.ceil_div(word["features"], height)
    per = f.ceil_div(down, word["some_blocks"])  # some_blocks: into how many ranges a group's features are cut
    low, high = f.share(f.mul(word["groups"], word["some_blocks"]))
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
    arguments = (
        "ptr noalias readonly %pieces, i64 %number, ptr noalias readonly %weights, i64 %channels, ptr noalias readonly %x, ptr noalias readonly %at_x, i64 %first, i64 %last, "
        "ptr noalias readonly %bias, ptr noalias %out, ptr noalias readonly %at_out, i64 %lanes"
    )
    f = Function("columns", arguments, attributes + " noinline")
    v = Vectors(f, acc, tile)
    numbers, rows = windows(f, acc, height)
    mask = v.lanes("%lanes")
    sums = v.zeros(height)

    def sweep(mask):
        with f.loop(0, "%number") as q:
            offset = f.load("i64", f.at("i64", "%pieces", f.mul(q, 2)))
            weight = v.load(f.at(acc, "%weights", f.mul(q, "%channels")), mask)
            for row, slot in zip(rows, sums):
                v.add_product(slot, v.load(f.at(acc, row, offset), mask), weight)

    v.whole_or_masked(f.compare("sge", "%lanes", v.w), mask, sweep)
    (bias,) = v.zeros(1)
    with f.when(f.op("icmp ne ptr %bias, null")):
        v.put(v.load("%bias", mask), bias)
    for number, slot in zip(numbers, sums):
        target = f.at(acc, "%out", f.load("i64", f.at("i64", "%at_out", number)))
        v.store_lanes([v.plus(v.get(slot), v.get(bias))], "%lanes", target)
    return f


def column_module(acc: str, tile: Tile, height: int, attributes: str) -> str:
    """Depthwise: out [N, O.., C]; weights [K, C]. Slots: out, x, weights, bias or null, scratch. Items are bands."""
    text = Text(acc, attributes, 5)
    f, word, w = text.f, text.word, tile.width
    out, x, weights, bias = text.slots[:4]
    text.positions()

    def each(source, target, number):
        last = f.sub(number, 1)
        with f.loop(0, word["channels"], w) as c, f.loop(0, number, height) as p:
            shift = f.op(f"select i1 {f.op(f'icmp ne ptr {bias}, null')}, ptr {f.at(acc, bias, c)}, ptr null")
            given = f"ptr {text.pieces}, i64 {word['pieces']}, ptr {f.at(acc, weights, c)}, i64 {word['channels']}, ptr {f.at(acc, source, c)}, ptr {text.scratch}"
            f.do(f"call void @columns({given}, i64 {p}, i64 {last}, ptr {shift}, ptr {f.at(acc, target, c)}, ptr {text.at('at_y')}, i64 {f.sub(word['channels'], c)})")

    low, high = f.share(text.count())
    text.items(x, out, 0, low, high, each)
    return module(f, band(acc, tile, attributes), column_tile(acc, tile, height, attributes))


def column_gradient_tile(acc: str, tile: Tile, count: int, attributes: str) -> Function:
    """sums [count pieces, one vector of channels] (rows `channels` apart) += the sum over positions of g · x."""
    arguments = (
        "i64 %number, ptr noalias readonly %x, ptr noalias readonly %at_x, ptr noalias readonly %g, ptr noalias readonly %at_g, ptr noalias readonly %pieces, i64 %taps, "
        "i64 %lanes, ptr noalias %sums, i64 %channels"
    )
    f = Function("column_gradients", arguments, attributes + " noinline")
    v = Vectors(f, acc, tile)
    offsets = [f.load("i64", f.at("i64", "%pieces", f.mul(f.min(t, f.sub("%taps", 1)), 2))) for t in range(count)]
    starts = [f.at(acc, "%x", offset) for offset in offsets]
    mask = v.lanes("%lanes")
    sums = v.zeros(count)

    def sweep(mask):
        with f.loop(0, "%number") as p:
            at = f.load("i64", f.at("i64", "%at_x", p))
            value = v.load(f.at(acc, "%g", f.load("i64", f.at("i64", "%at_g", p))), mask)
            for start, slot in zip(starts, sums):
                v.add_product(slot, v.load(f.at(acc, start, at), mask), value)

    v.whole_or_masked(f.compare("sge", "%lanes", v.w), mask, sweep)
    for t, slot in enumerate(sums):
        with f.when(f.compare("sgt", "%taps", t)):
            place = f.at(acc, "%sums", f.mul("%channels", t))
            v.store(v.plus(v.get(slot), v.load(place, mask)), place, mask)
    return f


def column_gradient_module(acc: str, tile: Tile, count: int, attributes: str) -> str:
    """Depthwise: d_weight [K, C]. Slots: d_weight, x, g, scratch. Parts are ranges of vectors of channels; the image's band is copied for each."""
    text = Text(acc, attributes, 4)
    f, word, w = text.f, text.word, tile.width
    out, x, g = text.slots[:3]
    text.positions()
    low, high = f.share(f.ceil_div(word["channels"], w))
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
