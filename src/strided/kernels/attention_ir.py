"""Attention as one kernel, in LLVM IR: softmax(q @ k^T * scale + mask) @ v without the matrix of scores in memory.

Query rows meet the keys block by block; a running maximum and sum a row keep the softmax exact (online softmax). Both products are the packed
micro-kernel of gemm_ir.py. A block of keys and values is packed once for all rows of an item, which then meet it some at a time, so that their scores stay
in cache. Which calls come here is decided in attention.py.
"""
from __future__ import annotations

import struct

from .gemm_ir import batch_offsets, micro, panels
from .gemm_pack import Kind, pack
from .gemm_text import SIZES, TYPES, Function, mangled, module, vector

# Sizes, then strides in elements (rows, columns) of q, k, v, out, mask; offsets of the scratch's parts in bytes.
WORDS = (
    "length keys width value_width items q_rows q_some k_rows causal rsq csq rsk csk rsv csv rso cso rsm csm at_k at_v at_s at_p at_o at_m at_l at_held scratch batch_dims"
).split()
FIRST = 8
BATCH = FIRST + len(WORDS)  # then six words a batch dimension: size, strides of q, k, v, out, mask


def attention_module(kind: Kind, mask: str, attributes: str) -> str:
    """kind: the dtype of q, k, v as a and b, float32 as c. mask: "" or the dtype of the mask."""
    dtypes = dict.fromkeys((kind.a, kind.own))
    functions = [kernel(kind, mask), block(kind, mask, attributes), rows(kind, attributes), *(pack(kind, d, d, attributes) for d in dtypes)]
    functions += [micro(kind, height, attributes) for height in kind.tile.heights]
    return module(*functions, extra="declare i32 @posix_memalign(ptr, i64, i64)\ndeclare void @free(ptr)")


def number(value: float) -> str:
    """A float32 constant as IR spells it: the bits of the double with the same value."""
    rounded = struct.unpack("<f", struct.pack("<f", value))[0]
    return "0x" + struct.pack(">d", rounded).hex().upper()


def exp(f: Function, x: str, lanes: int) -> str:
    """e^x for x <= 0 (error below 2 units in the last place; NaN stays NaN; below -87 exactly 0)."""
    type_, ints = vector("float", lanes), vector("i32", lanes)
    const = lambda v: f.constant("float", number(v), lanes)
    magic = 1.5 * 2**23  # adding it rounds to an integer, which then stands in the low bits
    shifted = f.fma("float", lanes, x, const(1.4426950408889634), const(magic))  # log2(e)
    n = f.op(f"fsub {type_} {shifted}, {const(magic)}")
    r = f.fma("float", lanes, n, const(-0.693359375), x)  # ln 2 in two parts: n times the first is exact
    r = f.fma("float", lanes, n, const(2.12194440e-4), r)
    y = const(1.9875691500e-4)
    for c in (1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1):
        y = f.fma("float", lanes, y, r, const(c))
    y = f.op(f"fadd {type_} {f.fma('float', lanes, y, f.times('float', lanes, r, r), r)}, {const(1.0)}")
    bits = f.op(f"shl {ints} {f.op(f'bitcast {type_} {shifted} to {ints}')}, {f.constant('i32', 23, lanes)}")
    power = f.op(f"bitcast {ints} {f.op(f'add {ints} {bits}, ' + f.constant('i32', 0x3F800000, lanes))} to {type_}")
    small = f.op(f"fcmp olt {type_} {x}, {const(-87.0)}")
    return f.op(f"select {vector('i1', lanes)} {small}, {type_} {const(0.0)}, {type_} {f.times('float', lanes, y, power)}")


MINUS_INFINITY = number(float("-inf"))


TOGETHER = 4  # vectors of scores a step: that many maxima and sums run beside each other


def rows(kind: Kind, attributes: str) -> Function:
    """One step of the online softmax: scores S [rows, ld] of a block of keys become exp(score * scale - maximum); maxima, sums, results O so far follow.

    Row i looks at its first `keys` columns, with `causal` only at min(keys, first + i) of them; those behind become 0, whatever stood there.
    """
    w = kind.tile.width
    wide, ints, bits = vector("float", w), vector("i32", w), vector("i1", w)
    f = Function("softmax", "i64 %rows, i64 %keys, i1 %causal, i64 %first, float %scale, ptr noalias %s, i64 %ld, ptr noalias %m, ptr noalias %l, ptr noalias %o, i64 %ldo", attributes + " noinline")
    numbers = "<" + ", ".join(f"i32 {i}" for i in range(w)) + ">"
    none = f.constant("float", MINUS_INFINITY, w)
    factors = f.splat("float", "%scale", w)
    f.declared.add("declare i64 @llvm.smax.i64(i64, i64)")
    for name in ("fadd", "fmax"):
        f.declared.add(f"declare float @llvm.vector.reduce.{name}.{mangled('float', w)}({'float, ' if name == 'fadd' else ''}{wide})")

    def greater(a, b):  # b where a is NaN: a NaN comes into the sum by its exponential
        return f.op(f"select {bits} {f.op(f'fcmp ogt {wide} {a}, {b}')}, {wide} {a}, {wide} {b}")

    with f.loop(0, "%rows") as i:
        seen = f.min("%keys", f.add("%first", i))
        limit = f.op(f"select i1 %causal, i64 {seen}, i64 %keys")
        limit = f.op(f"call i64 @llvm.smax.i64(i64 {limit}, i64 0)")
        row = f.at("float", "%s", f.mul(i, "%ld"))
        whole = f.mul(f.div(limit, TOGETHER * w), TOGETHER * w)  # columns that are all seen
        tops = [f.variable(wide, none, 64) for _ in range(TOGETHER)]
        score = lambda j: f.times("float", w, f.load(wide, f.at("float", row, j), 64), factors)

        def live(j):
            left = f.op(f"trunc i64 {f.sub(limit, j)} to i32")
            return f.op(f"icmp slt {ints} {numbers}, {f.splat('i32', left, w)}")

        with f.loop(0, whole, TOGETHER * w) as j:
            for n, top in enumerate(tops):
                f.store(wide, greater(score(f.add(j, n * w)), f.load(wide, top, 64)), top, 64)
        with f.loop(whole, limit, w) as j:
            value = f.op(f"select {bits} {live(j)}, {wide} {score(j)}, {wide} {none}")
            f.store(wide, greater(value, f.load(wide, tops[0], 64)), tops[0], 64)
        highest = f.load(wide, tops[0], 64)
        for top in tops[1:]:
            highest = greater(highest, f.load(wide, top, 64))
        highest = f.op(f"call float @llvm.vector.reduce.fmax.{mangled('float', w)}({wide} {highest})")
        before = f.load("float", f.at("float", "%m", i))
        now = f.call("float", "llvm.maxnum.f32", f"float {highest}", f"float {before}")
        f.store("float", now, f.at("float", "%m", i))
        blind = f.op(f"fcmp oeq float {now}, {MINUS_INFINITY}")  # the row has seen nothing yet: -inf - -inf must not become NaN
        base = f.op(f"select i1 {blind}, float 0.0, float {now}")
        many = f.splat("float", base, w)
        sums = [f.variable(wide, "zeroinitializer", 64) for _ in range(TOGETHER)]

        def weigh(j, sum, mask=None):
            p = exp(f, f.op(f"fsub {wide} {score(j)}, {many}"), w)
            if mask is not None:
                p = f.op(f"select {bits} {mask}, {wide} {p}, {wide} zeroinitializer")
            f.store(wide, p, f.at("float", row, j), 64)
            f.store(wide, f.plus("float", w, f.load(wide, sum, 64), p), sum, 64)

        with f.loop(0, whole, TOGETHER * w) as j:
            for n, sum in enumerate(sums):
                weigh(f.add(j, n * w), sum)
        with f.loop(whole, "%ld", w) as j:
            weigh(j, sums[0], live(j))
        total = f.load(wide, sums[0], 64)
        for sum in sums[1:]:
            total = f.plus("float", w, total, f.load(wide, sum, 64))
        added = f.op(f"call reassoc float @llvm.vector.reduce.fadd.{mangled('float', w)}(float -0.0, {wide} {total})")
        place = f.at("float", "%l", i)
        kept = f.variable("float", added)
        with f.when(f.op(f"fcmp ogt float {before}, {MINUS_INFINITY}")):  # what was summed up to now is rescaled
            factor = exp(f, f.op(f"fsub float {before}, {base}"), 1)
            f.store("float", f.fma("float", 1, f.load("float", place), factor, added), kept)
            scale = f.splat("float", factor, w)
            with f.when(f.op(f"fcmp une float {factor}, 1.0")), f.loop(0, "%ldo", w) as j:
                value = f.at("float", "%o", f.add(f.mul(i, "%ldo"), j))
                f.store(wide, f.times("float", w, f.load(wide, value, 64), scale), value, 64)
        f.store("float", f.load("float", kept), place)
    return f


def block(kind: Kind, mask: str, attributes: str) -> Function:
    """All keys for one block of query rows. Pointers stand at the batch entry (q, out, mask: at the block's first row, number %row)."""
    memory = TYPES[kind.a][0]
    t = kind.tile
    nr = t.nr
    names = ", ".join(f"i64 %{word}" for word in WORDS[:4] + WORDS[6:19])
    parts = "ptr %pq, ptr %pk, ptr %pv, ptr %s, ptr %pp, ptr %o, ptr %m, ptr %l, ptr %held"
    f = Function("block", f"ptr %q, ptr %k, ptr %v, ptr %out, ptr %mask, i64 %row, i64 %rows, {names}, {parts}, float %scale", attributes + " noinline")
    wide_values = f.mul(f.ceil_div("%value_width", nr), nr)
    pack_rows(f, kind, kind.a, "%q", "%rsq", "%csq", "%rows", "%width", "%pq")
    with f.loop(0, "%rows") as i:
        f.store("float", MINUS_INFINITY, f.at("float", "%m", i))
        f.store("float", "0.0", f.at("float", "%l", i))
    with f.loop(0, f.mul(f.add("%rows", t.heights[0]), wide_values)) as i:
        f.store("float", "0.0", f.at("float", "%o", i))
    causal = f.compare("ne", "%causal", 0)
    last = f.min("%keys", f.add("%row", "%rows"))
    stop = f.op(f"select i1 {causal}, i64 {last}, i64 %keys")
    with f.loop(0, stop, "%k_rows") as k0:
        keys = f.min("%k_rows", f.sub(stop, k0))
        with f.loop(0, keys, nr) as j:  # keys as the columns of a [width, keys] matrix
            here = f.min(nr, f.sub(keys, j))
            source = f.at(memory, "%k", f.mul(f.add(k0, j), "%rsk"))
            f.do(f"call void @pack_{kind.b}(ptr {source}, i64 %rsk, i64 %csk, i64 {here}, i64 %width, ptr {f.at('float', '%pk', f.mul(j, '%width'))}, i64 {nr})")
        with f.loop(0, "%value_width", nr) as j:
            here = f.min(nr, f.sub("%value_width", j))
            source = f.at(memory, "%v", f.add(f.mul(k0, "%rsv"), f.mul(j, "%csv")))
            f.do(f"call void @pack_{kind.b}(ptr {source}, i64 %csv, i64 %rsv, i64 {here}, i64 {keys}, ptr {f.at('float', '%pv', f.mul(j, keys))}, i64 {nr})")
        behind = f.call("i64", "llvm.smax.i64", f"i64 {f.sub(k0, '%row')}", "i64 0")  # the first row that sees one of these keys, where `causal`
        begin = f.op(f"select i1 {causal}, i64 {f.mul(f.div(behind, '%q_some'), '%q_some')}, i64 0")
        with f.loop(begin, "%rows", "%q_some") as i:
            some = f.min("%q_some", f.sub("%rows", i))
            sees = f.sub(f.add(f.add("%row", i), some), k0)
            seen = f.op(f"select i1 {causal}, i64 {f.min(keys, sees)}, i64 {keys}")
            ld = f.mul(f.ceil_div(seen, nr), nr)
            o, m, l = f.at("float", "%o", f.mul(i, wide_values)), f.at("float", "%m", i), f.at("float", "%l", i)
            product(f, kind, some, ld, "%width", f.at("float", "%pq", f.mul(i, "%width")), "%pk", "%s", ld, "false")
            if mask:
                where = f.at(mask_memory(mask), "%mask", f.add(f.mul(i, "%rsm"), f.mul(k0, "%csm")))
                add_mask(f, kind, mask, where, "%s", some, seen, ld)
            scale = "1.0" if mask else "%scale"
            first = f.add(f.sub(f.add("%row", i), k0), 1)
            f.do(f"call void @softmax(i64 {some}, i64 {seen}, i1 {causal}, i64 {first}, float {scale}, ptr %s, i64 {ld}, ptr {m}, ptr {l}, ptr {o}, i64 {wide_values})")
            pack_rows(f, kind, kind.own, "%s", ld, 1, some, seen, "%pp")
            product(f, kind, some, wide_values, seen, "%pp", "%pv", o, wide_values, "true", depth=keys)
    with f.loop(0, "%rows") as i:
        total = f.load("float", f.at("float", "%l", i))
        nothing = f.op(f"fcmp oeq float {total}, 0.0")
        inverse = f.op(f"fdiv float 1.0, {f.op(f'select i1 {nothing}, float 1.0, float {total}')}")
        with f.loop(0, "%value_width") as j:
            value = f.times("float", 1, f.load("float", f.at("float", "%o", f.add(f.mul(i, wide_values), j))), inverse)
            f.store(memory, f.encode(kind.a, value, 1, t.half), f.at(memory, "%out", f.add(f.mul(i, "%rso"), f.mul(j, "%cso"))))
    return f


def pack_rows(f: Function, kind: Kind, dtype: str, source, row_step, step, rows, k, target) -> None:
    """Packs `rows` rows of length k as the panels of a left operand."""

    def emit(height, i, here, panel):
        where = f.at(TYPES[dtype][0], source, f.mul(i, row_step))
        f.do(f"call void @pack_{dtype}(ptr {where}, i64 {row_step}, i64 {step}, i64 {here}, i64 {k}, ptr {panel}, i64 {height})")

    panels(f, kind, rows, k, target, emit)


def product(f: Function, kind: Kind, rows, columns, k, left, right, target, ld, more, depth=None, held="%held") -> None:
    """target [rows, columns] (+)= left @ right, packed; whole tiles are written, so target has room for a tile behind its last row.

    depth: rows the panels of `right` have, where the product takes only the first k of them.
    """
    acc = kind.acc
    with f.loop(0, columns, kind.tile.nr) as j:
        panel_b = f.at(acc, right, f.mul(j, depth or k))

        def emit(height, i, here, panel):
            place = f.at(acc, target, f.add(f.mul(i, ld), j))
            rest = f"i1 {more}, i1 false, ptr null, i64 0, i64 0, ptr null, i64 0, i64 0, {acc} 0.0, {acc} 0.0"
            f.do(f"call void @micro_{height}(i64 {k}, ptr {panel}, ptr {panel_b}, i64 {kind.tile.nr}, ptr {panel_b}, i64 0, ptr {held}, ptr {place}, i64 {ld}, {rest})")

        panels(f, kind, rows, k, left, emit)


def mask_memory(mask: str) -> str:
    return "i8" if mask == "bool" else TYPES[mask][0]


def add_mask(f: Function, kind: Kind, mask: str, source, scores, rows, keys, ld) -> None:
    """Scores [rows, ld] become score * scale + mask, booleans as 0 and -inf. `source`: the mask's element for the first score. LLVM vectorises the loop."""
    memory = mask_memory(mask)
    with f.loop(0, rows) as i:
        from_ = f.at(memory, source, f.mul(i, "%rsm"))
        row = f.at("float", scores, f.mul(i, ld))
        with f.loop(0, keys) as j:
            value = f.load(memory, f.at(memory, from_, f.mul(j, "%csm")), SIZES[memory])
            if mask == "bool":
                value = f.op(f"select i1 {f.op(f'icmp ne i8 {value}, 0')}, float 0.0, float {MINUS_INFINITY}")
            else:
                value = f.decode(mask, value, 1, kind.tile.half)
            place = f.at("float", row, j)
            f.store("float", f.fma("float", 1, f.load("float", place), "%scale", value, kind.tile.fused), place)


def kernel(kind: Kind, mask: str) -> Function:
    """The entry: work items are (batch entry, block of query rows)."""
    memory = TYPES[kind.a][0]
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", "nounwind", linkage="dso_local")
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    names = ["out", "q", "k", "v"] + (["mask"] if mask else [])
    slot = {name: f.load("ptr", f.at("ptr", "%slots", n)) for n, name in enumerate(names)}
    scale = f.op(f"fptrunc double {f.load('double', f.at('i64', '%slots', len(names)))} to float")
    begin = f.div(f.mul(word["items"], "%part"), "%parts")
    end = f.div(f.mul(word["items"], f.add("%part", 1)), "%parts")
    with f.when(f.compare("slt", begin, end)):
        cell = f.variable("ptr", "null")
        f.do(f"call i32 @posix_memalign(ptr {cell}, i64 64, i64 {word['scratch']})")
        scratch = f.load("ptr", cell)
        parts = [scratch] + [f.at("i8", scratch, word[name]) for name in ("at_k", "at_v", "at_s", "at_p", "at_o", "at_m", "at_l", "at_held")]
        blocks = f.ceil_div(word["length"], word["q_rows"])
        with f.loop(begin, end) as item:
            oq, ok, ov, oo, om = batch_offsets(f, f.div(item, blocks), BATCH, word["batch_dims"], 5)
            row = f.mul(f.rem(item, blocks), word["q_rows"])
            count = f.min(word["q_rows"], f.sub(word["length"], row))
            q = f.at(memory, slot["q"], f.add(oq, f.mul(row, word["rsq"])))
            k, v = f.at(memory, slot["k"], ok), f.at(memory, slot["v"], ov)
            out = f.at(memory, slot["out"], f.add(oo, f.mul(row, word["rso"])))
            where = "null"
            if mask:
                where = f.at(mask_memory(mask), slot["mask"], f.add(om, f.mul(row, word["rsm"])))
            values = ", ".join(f"i64 {word[name]}" for name in WORDS[:4] + WORDS[6:19])
            pointers = ", ".join(f"ptr {p}" for p in parts)
            f.do(f"call void @block(ptr {q}, ptr {k}, ptr {v}, ptr {out}, ptr {where}, i64 {row}, i64 {count}, {values}, {pointers}, float {scale})")
        f.do(f"call void @free(ptr {scratch})")
    return f
