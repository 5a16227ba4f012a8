"""Attention of a few query rows over many keys, in LLVM IR: decoding against a cache, where reading keys and values is all the time it takes.

Keys and values are read in place, once, as they lie (their last dimension without gaps), also where several query heads share them: those are rows of one
item. Scores of all keys of an item are kept, so that the softmax is one call. Which calls come here is decided in ops/attention.py.
"""
from __future__ import annotations

from .attention_text import LOG2_E, MINUS_INFINITY, add_mask, exp2, greater, mask_memory, number, reduced
from .gemm_ir import batch_offsets
from .gemm_pack import Kind
from .gemm_text import SIZES, TYPES, Function, module, vector
from .scratch import SCRATCH, allocate

# Sizes, then strides in elements (heads that share keys, rows, columns) of q and out, (rows) of k and v, (heads, rows, columns) of the mask; the scratch.
WORDS = "length heads keys width value_width items causal splits each hsq rsq csq rsk rsv hso rso cso hsm rsm csm at_s at_o at_m at_l ld wide wide_values scratch batch_dims".split()
ARGUMENTS = [*WORDS[:2], *WORDS[3:5], *WORDS[6:20], *WORDS[24:27]]  # of an item
FIRST = 8
BATCH = FIRST + len(WORDS)  # then six words a batch dimension: size, strides of q, k, v, out, mask
KEYS, VALUES = 256, 16  # keys a step, and values: all rows meet them while they are in the second-, and the first-level cache
BESIDE = 4  # vectors of scores a step of the softmax: that many maxima and sums run beside each other
TOGETHER = 4  # keys a step of the scores
WIDE = 4  # vectors of a value held in registers at a time
AHEAD, FAR = 16, 96  # keys and values that are fetched before they are read: into the first-level, and before that into the second-level cache
FIRST_VALUES = 64  # values that each head's softmax fetches


def few_module(kind: Kind, mask: str, attributes: str) -> str:
    """kind: the dtype of q, k, v as a and b. mask: "" or the dtype of the mask."""
    heights = range(1, tile_height(kind) + 1)
    functions = [kernel(kind, mask), item(kind, mask, attributes), softmax(kind, attributes)]
    functions += [make(kind, h, attributes) for make in (scores, mixture) for h in heights]
    return module(*functions, extra=SCRATCH)


def tile_height(kind: Kind) -> int:
    """Query rows a step: with TOGETHER vectors each, they fill the registers but for what is loaded."""
    return 4 if kind.tile.width * 32 == 512 else 2


def group_size(kind: Kind) -> int:
    """Elements of a row that are decoded together."""
    return kind.tile.width * (2 if kind.a == "bfloat16" else 1)


def _pieces(f: Function, kind: Kind, pointer, at, live=None) -> list[str]:
    """A group of the operands' format from element `at` on, as vectors of float32; `live`: the elements that are read, the others are 0.

    Two bfloat16 are halves of 32 bits: the vectors are those with even and with odd numbers, one operation each. Rows of the query and of the results lie
    in that order, too (`order`).
    """
    memory, w, n = TYPES[kind.a][0], kind.tile.width, group_size(kind)
    raw, place = vector(memory, n), f.at(memory, pointer, at)
    if live is None:
        value = f.load(raw, place, SIZES[memory])
    else:
        name = f"llvm.masked.load.v{n}{'f32' if memory == 'float' else memory}.p0"
        f.declared.add(f"declare {raw} @{name}(ptr, i32, <{n} x i1>, {raw})")
        value = f.op(f"call {raw} @{name}(ptr {place}, i32 {SIZES[memory]}, <{n} x i1> {live}, {raw} zeroinitializer)")
    if n == w:
        return [f.decode(kind.a, value, w, kind.tile.half)]
    ints, wide = vector("i32", w), vector("float", w)
    both = f.op(f"bitcast {raw} {value} to {ints}")
    halves = f.op(f"shl {ints} {both}, {f.constant('i32', 16, w)}"), f.op(f"and {ints} {both}, {f.constant('i32', -65536, w)}")
    return [f.op(f"bitcast {ints} {half} to {wide}") for half in halves]


def order(f: Function, kind: Kind, element):
    """Where element number `element` of a row stands among decoded ones."""
    w, n = kind.tile.width, group_size(kind)
    if n == w:
        return element
    within = f.rem(element, n)
    return f.add(f.sub(element, within), f.add(f.mul(f.op(f"and i64 {within}, 1"), w), f.op(f"lshr i64 {within}, 1")))


def fetch(f: Function, place, near=3) -> None:
    """Asks for a line of memory: rows are too short for the hardware alone to be far enough ahead. near: 3 for the first-level, 2 for the second-level cache."""
    f.call("void", "llvm.prefetch.p0", f"ptr {place}", "i32 0", f"i32 {near}", "i32 1")


def summed(f: Function, vectors: list[str]) -> str:
    """The sums of n vectors of n lanes as one vector: the rounds of a transposition, with the two halves of each added at once."""
    n, size = len(vectors), 1
    type_, left = vector("float", n), dict(enumerate(vectors))
    while size < n:
        low = [i if not i & size else n + i for i in range(n)]  # lanes stay in their places: a blend, which every unit can do
        high = [i + size if not i & size else n + i - size for i in range(n)]
        for i in [i for i in left if not i & size]:
            orders = (", ".join(f"i32 {lane}" for lane in lanes) for lanes in (low, high))
            halves = [f.op(f"shufflevector {type_} {left[i]}, {type_} {left[i + size]}, <{n} x i32> <{order}>") for order in orders]
            left[i] = f.plus("float", n, *halves)
            del left[i + size]
        size *= 2
    return left[0]


def scores(kind: Kind, height: int, attributes: str) -> Function:
    """s[row, key] = q[row] . k[key] for `height` rows of q [*, wide] (float32, zeros behind width) and `count` keys; rows of s have room for TOGETHER keys more."""
    w = kind.tile.width
    wide = vector("float", w)
    f = Function(f"scores_{height}", "ptr noalias %q, i64 %wide, ptr noalias %k, i64 %rsk, i64 %width, i64 %count, ptr noalias %s, i64 %ld", attributes + " noinline")
    group = group_size(kind)
    whole = f.mul(f.div("%width", group), group)
    live = f.lanes_below(f.sub("%width", whole), group)
    ragged = f.compare("slt", whole, "%width")
    last = f.sub("%count", 1)
    sums = [[f.variable(wide, None, 64) for _ in range(TOGETHER)] for _ in range(height)]
    memory = TYPES[kind.a][0]
    with f.loop(0, "%count", TOGETHER) as j:
        keys = [f.at(memory, "%k", f.mul(f.min(f.add(j, n), last), "%rsk")) for n in range(TOGETHER)]  # behind the last: it again
        for row in sums:
            for cell in row:
                f.store(wide, "zeroinitializer", cell, 64)

        def step(e, mask=None):
            for key in keys if group * SIZES[memory] >= 32 else ():  # not several times a line
                fetch(f, f.at(memory, key, f.add(e, f.mul("%rsk", AHEAD))))
                fetch(f, f.at(memory, key, f.add(e, f.mul("%rsk", FAR))), 2)
            decoded = [_pieces(f, kind, key, e, mask) for key in keys]
            for r, row in enumerate(sums):
                for i in range(group // w):
                    q = f.load(wide, f.at("float", "%q", f.add(f.mul("%wide", r) if r else 0, f.add(e, i * w))), 64)
                    for pieces, cell in zip(decoded, row):
                        f.store(wide, f.fma("float", w, q, pieces[i], f.load(wide, cell, 64), kind.tile.fused), cell, 64)

        with f.loop(0, whole, group) as e:
            step(e)
        with f.when(ragged):
            step(whole, live)
        cells = [cell for row in sums for cell in row]
        for first in range(0, len(cells), w):
            some = cells[first : first + w]
            totals = summed(f, [f.load(wide, cell, 64) for cell in some + some[-1:] * (w - len(some))])
            for n in range(0, len(some), TOGETHER):
                lanes = ", ".join(f"i32 {n + i}" for i in range(TOGETHER))
                four = f.op(f"shufflevector {wide} {totals}, {wide} poison, <{TOGETHER} x i32> <{lanes}>")
                place = f.at("float", "%s", f.add(j, f.mul("%ld", (first + n) // TOGETHER) if first + n else 0))
                f.store(f"<{TOGETHER} x float>", four, place, 4)
    return f


def mixture(kind: Kind, height: int, attributes: str) -> Function:
    """o[row] += sum over `count` keys of p[row, key] * v[key], for `height` rows of o [*, wide_values] (float32)."""
    w = kind.tile.width
    wide = vector("float", w)
    f = Function(f"mixture_{height}", "ptr noalias %p, i64 %ld, ptr noalias %v, i64 %rsv, i64 %values, i64 %count, ptr noalias %o, i64 %ldo", attributes + " noinline")
    memory = TYPES[kind.a][0]

    def columns(first, number, mask=None):
        sums = [[f.variable(wide, "zeroinitializer", 64) for _ in range(number)] for _ in range(height)]
        places = [[f.at("float", "%o", f.add(f.add(first, n * w), f.mul("%ldo", r) if r else 0)) for n in range(number)] for r in range(height)]
        for row in sums:
            for cell in row:
                f.store(wide, "zeroinitializer", cell, 64)
        with f.loop(0, "%count") as j:
            value = f.at(memory, "%v", f.mul(j, "%rsv"))
            for n in range(0, number * w * SIZES[memory], 64):
                for ahead, near in ((AHEAD, 3), (FAR, 2)):
                    fetch(f, f.at("i8", f.at(memory, value, f.add(first, f.mul("%rsv", ahead))), n), near)
            pieces = [piece for n in range(0, number * w, group) for piece in _pieces(f, kind, value, f.add(first, n), mask)]
            for r, row in enumerate(sums):
                weight = f.splat("float", f.load("float", f.at("float", "%p", f.add(j, f.mul("%ld", r) if r else 0))), w)
                for piece, cell in zip(pieces, row):
                    f.store(wide, f.fma("float", w, weight, piece, f.load(wide, cell, 64), kind.tile.fused), cell, 64)
        for row, at in zip(sums, places):
            for cell, place in zip(row, at):  # a sum of few, added to that of all: the rounding error of long ones stays low
                f.store(wide, f.plus("float", w, f.load(wide, cell, 64), f.load(wide, place, 64)), place, 64)

    done, group = 0, group_size(kind)
    for each in (WIDE, group // w):
        several = f.mul(f.div("%values", each * w), each * w)
        with f.loop(done, several, each * w) as first:
            columns(first, each)
        done = several
    with f.when(f.compare("slt", done, "%values")):
        columns(done, group // w, f.lanes_below(f.sub("%values", done), group))
    return f


def softmax(kind: Kind, attributes: str) -> Function:
    """Scores S [rows, ld] become exp(score * scale - maximum of their row), m and l the maxima and sums.

    Meanwhile the first %ahead rows of values are fetched, `length` bytes of each, %apart bytes from each other from %next on.

    Row i looks at its first `keys` columns, with `causal` only at min(keys, first + i) of them; those behind become 0, whatever stood there.
    """
    t = kind.tile
    w = t.width
    wide, bits = vector("float", w), vector("i1", w)
    arguments = "i64 %rows, i64 %keys, i1 %causal, i64 %first, float %scale, ptr noalias %s, i64 %ld, ptr noalias %m, ptr noalias %l"
    f = Function("softmax", f"{arguments}, ptr %next, i64 %apart, i64 %length, i64 %ahead", attributes + " noinline")
    none, factor, factors = f.constant("float", MINUS_INFINITY, w), f.constant("float", number(LOG2_E), w), f.splat("float", "%scale", w)
    turn = f.variable("i64", 0)
    with f.loop(0, "%rows") as i:
        limit = f.op(f"select i1 %causal, i64 {f.min('%keys', f.add(i, '%first'))}, i64 %keys")
        limit = f.call("i64", "llvm.smax.i64", f"i64 {limit}", "i64 0")
        row = f.at("float", "%s", f.mul(i, "%ld"))
        whole = f.mul(f.div(limit, BESIDE * w), BESIDE * w)  # columns that are all seen
        score = lambda j: f.times("float", w, f.load(wide, f.at("float", row, j), 64), factors)
        live = lambda j: f.lanes_below(f.sub(limit, j), w)
        tops = [f.variable(wide, none, 64) for _ in range(BESIDE)]
        with f.loop(0, whole, BESIDE * w) as j:
            for n, top in enumerate(tops):
                f.store(wide, greater(f, score(f.add(j, n * w)), f.load(wide, top, 64), w), top, 64)
        with f.loop(whole, limit, w) as j:
            value = f.op(f"select {bits} {live(j)}, {wide} {score(j)}, {wide} {none}")
            f.store(wide, greater(f, value, f.load(wide, tops[0], 64), w), tops[0], 64)
        highest = f.load(wide, tops[0], 64)
        for top in tops[1:]:
            highest = greater(f, highest, f.load(wide, top, 64), w)
        highest = reduced(f, "max", w, highest)
        blind = f.op(f"fcmp oeq float {highest}, {MINUS_INFINITY}")  # a row that may look nowhere: -inf - -inf must not become NaN
        base = f.splat("float", f.op(f"select i1 {blind}, float 0.0, float {highest}"), w)
        f.store("float", highest, f.at("float", "%m", i))
        sums = [f.variable(wide, "zeroinitializer", 64) for _ in range(BESIDE)]

        def weigh(j, sum, mask=None):
            p = exp2(f, f.op(f"fsub {wide} {score(j)}, {base}"), factor, w, t.fused)
            if mask is not None:
                p = f.op(f"select {bits} {mask}, {wide} {p}, {wide} zeroinitializer")
            f.store(wide, p, f.at("float", row, j), 64)
            f.store(wide, f.plus("float", w, f.load(wide, sum, 64), p), sum, 64)

        with f.loop(0, whole, BESIDE * w) as j:
            now = f.load("i64", turn)
            with f.when(f.compare("slt", now, "%ahead")):
                with f.loop(0, "%length", 64) as line:
                    fetch(f, f.at("i8", "%next", f.add(f.mul(now, "%apart"), line)), 2)
                f.store("i64", f.add(now, 1), turn)
            for n, sum in enumerate(sums):
                weigh(f.add(j, n * w), sum)
        with f.loop(whole, "%ld", w) as j:
            weigh(j, sums[0], live(j))
        total = f.load(wide, sums[0], 64)
        for sum in sums[1:]:
            total = f.plus("float", w, total, f.load(wide, sum, 64))
        f.store("float", reduced(f, "add", w, total), f.at("float", "%l", i))
    return f


def item(kind: Kind, mask: str, attributes: str) -> Function:
    """All rows that share the keys and values of one batch entry; pointers stand at it."""
    memory, t = TYPES[kind.a][0], kind.tile
    height = tile_height(kind)
    names = ", ".join(f"i64 %{word}" for word in ARGUMENTS)
    parts = "ptr %pq, ptr %s, ptr %o, ptr %m, ptr %l"
    f = Function("item", f"ptr %q, ptr %k, ptr %v, ptr %out, ptr %mask, i64 %first, i64 %keys, {names}, {parts}, float %scale", attributes + " noinline")
    count = f.mul("%heads", "%length")
    with f.loop(0, f.mul(count, "%wide")) as i:
        f.store("float", "0.0", f.at("float", "%pq", i))
    with f.loop(0, f.mul(count, "%wide_values")) as i:
        f.store("float", "0.0", f.at("float", "%o", i))
    with f.loop(0, count) as i:
        row = f.at(memory, "%q", f.add(f.mul(f.div(i, "%length"), "%hsq"), f.mul(f.rem(i, "%length"), "%rsq")))
        with f.loop(0, "%width") as e:
            value = f.decode(kind.a, f.load(memory, f.at(memory, row, f.mul(e, "%csq"))), 1, t.half)
            f.store("float", value, f.at("float", "%pq", f.add(f.mul(i, "%wide"), order(f, kind, e))))

    def tiles(emit):
        """emit(number of rows, first row) for all rows, `height` at a time."""
        whole = f.mul(f.div(count, height), height)
        with f.loop(0, whole, height) as i:
            emit(height, i)
        for rest in range(1, height):
            with f.when(f.compare("eq", f.sub(count, whole), rest)):
                emit(rest, whole)

    def score(n, i):
        q, s = f.at("float", "%pq", f.mul(i, "%wide")), f.at("float", "%s", f.add(f.mul(i, "%ld"), k0))
        f.do(f"call void @scores_{n}(ptr {q}, i64 %wide, ptr {here}, i64 %rsk, i64 %width, i64 {keys}, ptr {s}, i64 %ld)")

    def mix(n, i):
        p, o = f.at("float", "%s", f.add(f.mul(i, "%ld"), k0)), f.at("float", "%o", f.mul(i, "%wide_values"))
        f.do(f"call void @mixture_{n}(ptr {p}, i64 %ld, ptr {here}, i64 %rsv, i64 %value_width, i64 {keys}, ptr {o}, i64 %wide_values)")

    with f.loop(0, "%keys", KEYS) as k0:
        keys, here = f.min(KEYS, f.sub("%keys", k0)), f.at(memory, "%k", f.mul(k0, "%rsk"))
        tiles(score)
    with f.loop(0, "%heads") as h:
        first = f.mul(h, "%length")
        s = f.at("float", "%s", f.mul(first, "%ld"))
        if mask:
            add_mask(f, kind, mask, f.at(mask_memory(mask), "%mask", f.mul(h, "%hsm")), s, "%length", "%keys", "%ld")
        causal, scale = f.compare("ne", "%causal", 0), "1.0" if mask else "%scale"
        rows = f"i64 %length, i64 %keys, i1 {causal}, i64 %first, float {scale}, ptr {s}, i64 %ld, ptr {f.at('float', '%m', first)}, ptr {f.at('float', '%l', first)}"
        begin = f.min(f.mul(h, FIRST_VALUES), "%keys")
        ahead = f.min(FIRST_VALUES, f.sub("%keys", begin))
        apart, length = f.mul("%rsv", SIZES[memory]), f.mul("%value_width", SIZES[memory])
        f.do(f"call void @softmax({rows}, ptr {f.at(memory, '%v', f.mul(begin, '%rsv'))}, i64 {apart}, i64 {length}, i64 {ahead})")
    with f.loop(0, "%keys", VALUES) as k0:
        keys, here = f.min(VALUES, f.sub("%keys", k0)), f.at(memory, "%v", f.mul(k0, "%rsv"))
        tiles(mix)
    with f.when(f.compare("eq", "%splits", 1)):
        with f.loop(0, count) as i:
            total = f.load("float", f.at("float", "%l", i))
            nothing = f.op(f"fcmp oeq float {total}, 0.0")
            inverse = f.op(f"fdiv float 1.0, {f.op(f'select i1 {nothing}, float 1.0, float {total}')}")
            row = f.at(memory, "%out", f.add(f.mul(f.div(i, "%length"), "%hso"), f.mul(f.rem(i, "%length"), "%rso")))
            with f.loop(0, "%value_width") as e:
                value = f.times("float", 1, f.load("float", f.at("float", "%o", f.add(f.mul(i, "%wide_values"), order(f, kind, e)))), inverse)
                f.store(memory, f.encode(kind.a, value, 1, t.half), f.at(memory, row, f.mul(e, "%cso")))
    with f.when(f.compare("ne", "%splits", 1)):  # what `merge` puts together: sums, maxima, results that are not divided yet
        with f.loop(0, count) as i:
            for n, part in enumerate(("%l", "%m")):
                f.store("float", f.load("float", f.at("float", part, i)), f.at("float", "%out", f.add(i, f.mul(count, n))))
        with f.loop(0, f.mul(count, "%wide_values")) as i:
            f.store("float", f.load("float", f.at("float", "%o", i)), f.at("float", "%out", f.add(f.mul(count, 2), i)))
    return f


def kernel(kind: Kind, mask: str) -> Function:
    """The entry: work items are parts of the keys of batch entries."""
    memory = TYPES[kind.a][0]
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", "nounwind", linkage="dso_local")
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    names = ["out", "q", "k", "v"] + (["mask"] if mask else [])
    slot = {name: f.load("ptr", f.at("ptr", "%slots", n)) for n, name in enumerate(names)}
    scale = f.op(f"fptrunc double {f.load('double', f.at('i64', '%slots', len(names)))} to float")
    begin, end = f.share(word["items"])
    with f.when(f.compare("slt", begin, end)):
        cell = f.variable("ptr", "null")
        allocate(f, cell, word["scratch"])
        scratch = f.load("ptr", cell)
        parts = [scratch] + [f.at("i8", scratch, word[name]) for name in ("at_s", "at_o", "at_m", "at_l")]
        with f.loop(begin, end) as n:
            oq, ok, ov, oo, om = batch_offsets(f, f.div(n, word["splits"]), BATCH, word["batch_dims"], 5)
            k0 = f.mul(f.rem(n, word["splits"]), word["each"])
            keys = f.min(word["each"], f.sub(word["keys"], k0))
            kept = f.mul(f.mul(word["heads"], word["length"]), f.add(word["wide_values"], 2))  # floats of an item that is put together later
            whole = f.compare("eq", word["splits"], 1)
            out = f.op(f"select i1 {whole}, ptr {f.at(memory, slot['out'], oo)}, ptr {f.at('float', slot['out'], f.mul(n, kept))}")
            k, v = (f.at(memory, slot[name], f.add(offset, f.mul(k0, word[f"rs{name}"]))) for name, offset in (("k", ok), ("v", ov)))
            pointers = [f.at(memory, slot["q"], oq), k, v, out]
            pointers.append(f.at(mask_memory(mask), slot["mask"], f.add(om, f.mul(k0, word["csm"]))) if mask else "null")
            values = ", ".join(f"i64 {word[name]}" for name in ARGUMENTS)
            f.do(f"call void @item({', '.join(f'ptr {p}' for p in pointers)}, i64 {f.sub(1, k0)}, i64 {keys}, {values}, {', '.join(f'ptr {p}' for p in parts)}, float {scale})")
        f.do(f"call void @free(ptr {scratch})")
    return f


def merge_module(kind: Kind, attributes: str) -> str:
    """out from the parts of each batch entry's keys: the same descriptor words; slots: out and the parts [entries, splits, rows * (2 + wide_values)]."""
    memory, half = TYPES[kind.a][0], kind.tile.half
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", attributes, linkage="dso_local")
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    out, parts = (f.load("ptr", f.at("ptr", "%slots", n)) for n in range(2))
    rows, splits, factor = f.mul(word["heads"], word["length"]), word["splits"], number(LOG2_E)
    size = f.mul(rows, f.add(word["wide_values"], 2))
    with f.loop(0, f.div(word["items"], splits)) as entry:
        offset = batch_offsets(f, entry, BATCH, word["batch_dims"], 5)[3]
        first = f.at("float", parts, f.mul(f.mul(entry, splits), size))
        with f.loop(0, rows) as i:
            at = lambda n, place: f.at("float", first, f.add(f.mul(n, size), place))
            top, total = f.variable("float", MINUS_INFINITY), f.variable("float", "0.0")
            with f.loop(0, splits) as n:
                f.store("float", greater(f, f.load("float", at(n, f.add(rows, i))), f.load("float", top), 1), top)
            blind = f.op(f"fcmp oeq float {f.load('float', top)}, {MINUS_INFINITY}")
            base = f.op(f"select i1 {blind}, float 0.0, float {f.load('float', top)}")
            with f.loop(0, splits) as n:  # a part's maximum makes room for its weight
                place = at(n, f.add(rows, i))
                weight = exp2(f, f.op(f"fsub float {f.load('float', place)}, {base}"), factor, 1, kind.tile.fused)
                f.store("float", weight, place)
                f.store("float", f.fma("float", 1, weight, f.load("float", at(n, i)), f.load("float", total), kind.tile.fused), total)
            nothing = f.op(f"fcmp oeq float {f.load('float', total)}, 0.0")
            inverse = f.op(f"fdiv float 1.0, {f.op(f'select i1 {nothing}, float 1.0, float ' + f.load('float', total))}")
            row = f.at(memory, out, f.add(offset, f.add(f.mul(f.div(i, word["length"]), word["hso"]), f.mul(f.rem(i, word["length"]), word["rso"]))))
            with f.loop(0, word["value_width"]) as e:
                value = f.variable("float", "0.0")
                with f.loop(0, splits) as n:
                    o = f.load("float", at(n, f.add(f.mul(rows, 2), f.add(f.mul(i, word["wide_values"]), order(f, kind, e)))))
                    f.store("float", f.fma("float", 1, f.load("float", at(n, f.add(rows, i))), o, f.load("float", value), kind.tile.fused), value)
                result = f.encode(kind.a, f.times("float", 1, f.load("float", value), inverse), 1, half)
                f.store(memory, result, f.at(memory, row, f.mul(e, word["cso"])))
    return module(f)
