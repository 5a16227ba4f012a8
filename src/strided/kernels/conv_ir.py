"""Convolution as an implicit matrix product, in LLVM IR: windows are packed as the right operand straight from the input, never laid out whole.

out [F, O] = weights [F, C*K] @ windows [C*K, O], for each batch entry and group: a panel of output positions is packed a block of window elements at a
time, multiplied by the packed weights with the micro-kernel of gemm_ir.py, and stored with its bias. Which convolutions come here is decided in conv.py.
"""
from __future__ import annotations

from .attention_ir import pack_rows, product
from .gemm_ir import micro
from .gemm_pack import Kind, masked_load, masked_store, pack
from .gemm_text import SIZES, TYPES, Function, module, vector

# Sizes; the input's steps in elements: batch, channel, window elements (dilation in), positions (stride in); offsets of the scratch's parts in bytes.
WORDS = (
    "batch groups features channels k0 k1 k2 o1 o2 positions panels window block bias "
    "xb xc xk0 xk1 xk2 xo0 xo1 xo2 ob of at_offsets at_a at_b at_t at_held scratch"
).split()
FIRST = 8


def conv_module(kind: Kind, dtype: str, attributes: str) -> str:
    """kind: the operands as a and b (rounded on reading where precision asks for it), the accumulator as c. dtype: of the result and the bias."""
    functions = [kernel(kind, dtype), windows(kind, attributes), panel(kind, dtype, attributes), pack(kind, kind.a, kind.a, attributes)]
    functions += [micro(kind, height, attributes) for height in kind.tile.heights]
    return module(*functions)


def windows(kind: Kind, attributes: str) -> Function:
    """Packs `k` elements of the windows at positions p0…p0+count-1 as a panel [k][NR]. `offsets`: where each window element lies in the input."""
    t, memory, acc = kind.tile, TYPES[kind.b][0], kind.acc
    w, nr, size = t.width, t.nr, SIZES[memory]
    arguments = "ptr %x, ptr %offsets, i64 %k, i64 %p0, i64 %count, i64 %o1, i64 %o2, i64 %xo0, i64 %xo1, i64 %xo2, ptr %panel"
    f = Function("windows", arguments, attributes + " noinline")
    with f.when(f.compare("slt", "%count", nr)), f.loop(0, f.mul("%k", nr)) as i:  # lanes behind the last position feed columns that are never stored
        f.store(acc, "0.0", f.at(acc, "%panel", i))
    lane = f.variable("i64", 0)
    with f.loop(0, "%count"):
        here = f.load("i64", lane)
        with f.when(f.compare("slt", here, "%count")):
            p = f.add("%p0", here)
            column, row = f.rem(p, "%o2"), f.div(p, "%o2")
            start = f.add(f.mul(column, "%xo2"), f.add(f.mul(f.rem(row, "%o1"), "%xo1"), f.mul(f.div(row, "%o1"), "%xo0")))
            source = f.at(memory, "%x", start)
            run = f.min(f.sub("%count", here), f.sub("%o2", column))  # positions that lie side by side
            unit = f.compare("eq", "%xo2", 1)
            run = f.op(f"select i1 {unit}, i64 {f.min(run, w)}, i64 1")

            def each(copy):
                with f.loop(0, "%k") as k:
                    place = f.load("i64", f.at("i64", "%offsets", k))
                    copy(f.at(memory, source, place), f.at(acc, "%panel", f.add(f.mul(k, nr), here)))

            def whole(from_, to):
                f.store(vector(acc, w), f.decode(kind.b, f.load(vector(memory, w), from_, size), w, t.half), to, SIZES[acc])

            def part(from_, to):
                masked_store(f, acc, w, f.decode(kind.b, masked_load(f, memory, w, from_, mask), w, t.half), to, mask)

            def scalars(from_, to):
                with f.loop(0, run) as j:
                    f.store(acc, f.decode(kind.b, f.load(memory, f.at(memory, from_, j)), 1, t.half), f.at(acc, to, j))

            def short():
                nonlocal mask
                if t.masks:
                    mask = f.lanes_below(run, w)
                each(part if t.masks else scalars)

            mask = ""
            f.choose(f.compare("eq", run, w), lambda: each(whole), short)
            f.store("i64", f.add(here, run), lane)
    return f


def panel(kind: Kind, dtype: str, attributes: str) -> Function:
    """out [features, count] at positions p0…, of one batch entry and group; pointers stand at these."""
    t, memory, acc = kind.tile, TYPES[dtype][0], kind.acc
    w, nr = t.width, t.nr
    places = "i64 %p0, i64 %count, i64 %o1, i64 %o2, i64 %xo0, i64 %xo1, i64 %xo2"
    arguments = f"ptr %x, ptr %bias, ptr %out, i64 %of, i64 %features, i64 %tall, i64 %window, i64 %block, {places}, ptr %offsets, ptr %a, ptr %b, ptr %t, ptr %held"
    f = Function("panel", arguments, attributes + " noinline")
    with f.loop(0, "%window", "%block") as k0:
        k = f.min("%block", f.sub("%window", k0))
        f.do(f"call void @windows(ptr %x, ptr {f.at('i64', '%offsets', k0)}, i64 {k}, {places}, ptr %b)")
        product(f, kind, "%features", nr, k, f.at(acc, "%a", f.mul(k0, "%tall")), "%b", "%t", nr, f.compare("ne", k0, 0))
    biased = f.op("icmp ne ptr %bias, null")
    shift = f.variable(acc, "0.0")
    with f.loop(0, "%features") as i:
        with f.when(biased):
            f.store(acc, f.decode(dtype, f.load(memory, f.at(memory, "%bias", i)), 1, t.half), shift)
        added = f.load(acc, shift)
        row, target = f.at(acc, "%t", f.mul(i, nr)), f.at(memory, "%out", f.mul(i, "%of"))

        def value(j, lanes):
            return f.encode(dtype, f.plus(acc, lanes, f.load(vector(acc, lanes), f.at(acc, row, j), SIZES[acc]), f.splat(acc, added, lanes)), lanes, t.half)

        def full():
            for j in range(0, nr, w):
                f.store(vector(memory, w), value(j, w), f.at(memory, target, j), SIZES[memory])

        def rest():
            with f.loop(0, "%count") as j:
                f.store(memory, value(j, 1), f.at(memory, target, j))

        f.choose(f.compare("eq", "%count", nr), full, rest)
    return f


def kernel(kind: Kind, dtype: str) -> Function:
    """The entry: work items are (group, batch entry, panel of positions); every part has its own piece of the scratch."""
    operand, memory, t = TYPES[kind.b][0], TYPES[dtype][0], kind.tile
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", "nounwind", linkage="dso_local")
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    out, x, weight, bias, scratch = (f.load("ptr", f.at("ptr", "%slots", n)) for n in range(5))
    scratch = f.at("i8", scratch, f.mul("%part", word["scratch"]))
    offsets, a, b, tile, held = (f.at("i8", scratch, word[name]) for name in ("at_offsets", "at_a", "at_b", "at_t", "at_held"))
    at = f.variable("i64", 0)
    with f.loop(0, word["channels"]) as c, f.loop(0, word["k0"]) as i, f.loop(0, word["k1"]) as j, f.loop(0, word["k2"]) as k:
        place = f.add(f.add(f.mul(c, word["xc"]), f.mul(i, word["xk0"])), f.add(f.mul(j, word["xk1"]), f.mul(k, word["xk2"])))
        here = f.load("i64", at)
        f.store("i64", place, f.at("i64", offsets, here))
        f.store("i64", f.add(here, 1), at)
    each = f.mul(word["batch"], word["panels"])
    items = f.mul(word["groups"], each)
    begin, end = f.div(f.mul(items, "%part"), "%parts"), f.div(f.mul(items, f.add("%part", 1)), "%parts")
    tall = f.add(word["features"], t.heights[0])
    packed = f.variable("i64", -1)
    with f.loop(begin, end) as item:
        group, inside = f.div(item, each), f.rem(item, each)
        first = f.mul(group, word["features"])
        with f.when(f.compare("ne", group, f.load("i64", packed))):
            weights = f.at(operand, weight, f.mul(first, word["window"]))
            with f.loop(0, word["window"], word["block"]) as k0:
                size = f.min(word["block"], f.sub(word["window"], k0))
                target = f.at(kind.acc, a, f.mul(k0, tall))
                pack_rows(f, kind, kind.a, f.at(operand, weights, k0), word["window"], 1, word["features"], size, target)
            f.store("i64", group, packed)
        entry = f.div(inside, word["panels"])
        p0 = f.mul(f.rem(inside, word["panels"]), t.nr)
        count = f.min(t.nr, f.sub(word["positions"], p0))
        source = f.at(operand, x, f.add(f.mul(entry, word["xb"]), f.mul(f.mul(group, word["channels"]), word["xc"])))
        target = f.at(memory, out, f.add(f.add(f.mul(entry, word["ob"]), f.mul(first, word["of"])), p0))
        shift = f.op(f"select i1 {f.compare('ne', word['bias'], 0)}, ptr {f.at(memory, bias, first)}, ptr null")
        places = ", ".join([f"i64 {p0}", f"i64 {count}", *(f"i64 {word[name]}" for name in ("o1", "o2", "xo0", "xo1", "xo2"))])
        sizes = f"i64 {word['of']}, i64 {word['features']}, i64 {tall}, i64 {word['window']}, i64 {word['block']}"
        f.do(f"call void @panel(ptr {source}, ptr {shift}, ptr {target}, {sizes}, {places}, ptr {offsets}, ptr {a}, ptr {b}, ptr {tile}, ptr {held})")
    return f
