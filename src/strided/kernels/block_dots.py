"""A few rows times a matrix of 4-bit elements or bytes in blocks, decoded in registers: Y [m, n] = X [m, k] @ W [n, k]^T (+ bias [n]).

4-bit elements become bytes by one shuffle of a register that holds the table, and bytes are multiplied four at a time by the host's dot-product instruction. For
that each lane's elements of X are held in fixed point under one exponent, in two or three signed bytes: 21 or 22 bits beside the sign for float32, 14 for
16-bit floats, from the lane's largest number down. Where X holds an infinity or a NaN, the kernel of block_products.py runs instead; so it does on other hosts.

A vector of W holds `width` bytes, each of one or two elements; a lane (i32 or float) has four of these bytes.
"""
from __future__ import annotations

from typing import NamedTuple

from ..dtypes import names
from . import jit
from .block_casts import PARTS, SLOTS, dequantize_row, load_x, store_y, words_of
from .block_text import BlockText, Kind, _bits
from .gemm_text import Function, module, vector
from .gemv_ir import horizontal
from .scratch import SCRATCH, claimed

MOST = 4  # rows of X up to which this kernel is the faster one
AHEAD = 512  # bytes of a row that are fetched before they are used


class Dots(NamedTuple):
    """The host's dot product of bytes. how: "vnni" (u8 times i8, into i32), "avx2" (the same in three instructions), "neon" (i8 times i8)."""

    how: str
    width: int

    @property
    def lanes(self) -> int:
        return self.width // 4

    @property
    def together(self) -> int:
        """Rows of W that share the loads of X: their sums stand in registers, of which AVX2 has half as many."""
        return 4 if self.how == "avx2" else 8


def dots() -> Dots | None:
    """What this host multiplies bytes with; None where nothing suits."""
    host = jit.host()
    if host.vector_bits == 512 and {"+avx512vnni", "+avx512bw"} <= host.features:
        return Dots("vnni", 64)
    if host.arch == "x86_64" and "+avx2" in host.features and host.fma:
        return Dots("avx2", 32)
    if host.arch == "aarch64" and "+dotprod" in host.features:
        return Dots("neon", 16)
    return None


def table(kind: Kind) -> list[int] | None:
    """The elements of 4-bit codes as small integers (E2M1's are doubled); None where elements are no 4-bit codes."""
    if kind.bits != 4:
        return None
    element = names()[kind.element]
    if element.kind == "float":
        return [int(2 * element.encoding.decode(code)) for code in range(16)]
    return [(code - 16 if code > 7 and element.kind == "int" else code) - kind.bias for code in range(16)]


def serves(kind: Kind, m: int, block: int) -> bool:
    """Whether this kernel takes a product of m rows."""
    return 1 <= m <= MOST and suits(kind, block)


def suits(kind: Kind, block: int) -> bool:
    """Whether a format's codes can be multiplied as bytes here: elements of 4 bits or integers of 8, groups that lie evenly in vectors."""
    d = dots()
    if d is None or kind.order not in ("pairs", "halves", "bytes"):
        return False
    if kind.order == "bytes" and (d.how == "avx2" or names()[kind.element].kind == "float"):  # AVX2's sums of two products hold 16 bits
        return False
    held = d.width * 8 // kind.bits
    return block % 16 == 0 and (held % block == 0 or block % held == 0)


def text(kind: Kind, dtype: str, bias: str | None, block: int, gaps: bool, plain: list[Function]) -> str:
    """The module. gaps: other bytes lie between the codes of neighbouring blocks. `plain` are the functions of block_products.py's kernel, whose entry is @general."""
    d = dots()
    assert d is not None
    maker = Dotting(kind, dtype, bias, block, gaps, d)
    extra = SCRATCH + "\n!900 = !{i32 1}"
    return module(dequantize_row(kind), *plain, maker.prepare(), maker.scales(), maker.rows(), maker.kernel(), extra=extra)


class Dotting:
    """Writes the functions of one kernel."""

    SHIFT = 0  # scales of W are held smaller by so many powers of two (block_lanes.py)

    def __init__(self, kind: Kind, dtype: str, bias: str | None, block: int, gaps: bool, d: Dots):
        self.kind, self.dtype, self.bias, self.block, self.gaps, self.d = kind, dtype, bias, block, gaps, d
        self.digits = 3 if dtype == "float32" else 2
        self.sides = 8 // kind.bits  # codes a byte
        self.held = self.sides * d.width  # elements a vector
        self.piece = block // self.sides  # bytes of a block's codes
        entries = table(kind)
        signed = names()[kind.element].kind == "int"
        # Bytes of W are unsigned on x86 and signed on arm: elements are moved by `offset`, and its share is taken off again.
        self.offset = 128 * signed - 128 * (d.how == "neon") if entries is None else max(0, -min(entries)) if d.how != "neon" else 0
        self.table = [v + self.offset for v in entries or ()]
        self.added = kind.zero != ""  # a group has an addend: its minimum, or its zero point times its scale, negative
        self.attributes = jit.host().attributes + " noinline"

    # ---- X in scratch: for each vector digits, what is taken off, sums, and scales of its lanes ----

    @property
    def digit_bytes(self) -> int:
        return self.sides * self.digits * self.d.width

    def x_bytes(self, f: Function, vectors) -> str:
        return f.mul(vectors, self.digit_bytes + 3 * 4 * self.d.lanes)

    def x_parts(self, f: Function, base, vectors) -> tuple[str, str, str, str]:
        """Addresses of digits, offsets, sums and scales of one row of X; all but the digits are vectors of lanes."""
        offsets = f.at("i8", base, f.mul(vectors, self.digit_bytes))
        sums = f.at("i8", offsets, f.mul(vectors, 4 * self.d.lanes))
        return base, offsets, sums, f.at("i8", sums, f.mul(vectors, 4 * self.d.lanes))

    # ---- X in fixed point ----

    def order(self) -> list[list[int]]:
        """A vector's elements byte by byte: one list for whole bytes, two for low and high nibbles."""
        w = self.d.width
        if self.kind.order == "bytes":
            return [list(range(w))]
        if self.kind.order == "pairs":
            return [[2 * j for j in range(w)], [2 * j + 1 for j in range(w)]]
        low = [32 * (j // 16) + j % 16 for j in range(w)]
        return [low, [i + 16 for i in low]]

    def prepare(self) -> Function:
        """One row of X (float32, zeros behind) into digits; wild [1] becomes 1 where it holds an infinity or a NaN."""
        f = Function("prepare", "ptr noalias readonly %x, i64 %vectors, ptr noalias %base, ptr noalias %wild", self.attributes)
        b = BlockText(f, self.kind)
        w, lanes = self.d.width, self.d.lanes
        n = self.held
        digits, offsets, sums, scales = self.x_parts(f, "%base", "%vectors")
        order = self.order()
        bits = (22 if self.sides == 2 else 21) if self.digits == 3 else 14  # sums of a lane fit 32 bits
        ints, wide, lane_ints = f"<{n} x i32>", f"<{n} x float>", f"<{lanes} x i32>"
        swaps = {"bytes": (1, 2), "pairs": (1, 2, 4), "halves": (1, 2, 16)}[self.kind.order]  # a lane's elements differ in these bits of their number
        picked = lambda value, type_, elements: f.op(f"shufflevector <{n} x {type_}> {value}, <{n} x {type_}> poison, <{len(elements)} x i32> <" + ", ".join(f"i32 {i}" for i in elements) + ">")
        ones = "<" + ", ".join(["i8 1"] * w) + ">"

        with f.loop(0, "%vectors") as v:
            x = f.load(wide, f.at("float", "%x", f.mul(v, n)), 4)
            largest = f.op(f"and {ints} {f.op(f'bitcast {wide} {x} to {ints}')}, {b.const('i32', 0x7FFFFFFF, n)}")
            for bit in swaps:  # every element comes to hold the largest of its lane
                largest = b.both("umax", largest, picked(largest, "i32", [i ^ bit for i in range(n)]), n)
            top = f.call("i32", f"llvm.vector.reduce.umax.v{n}i32", f"{ints} {largest}")
            with f.when(f.op(f"icmp uge i32 {top}, {0x7F800000}")):
                f.store("i32", "1", "%wild")
            power = lambda biased, count: f.op(f"bitcast <{count} x i32> {f.op(f'shl <{count} x i32> {biased}, ' + b.const('i32', 23, count))} to <{count} x float>")
            exponent = f.op(f"lshr {ints} {largest}, {b.const('i32', 23, n)}")
            exponent = b.both("smax", exponent, b.const("i32", bits, n), n)  # of the largest, biased; scales stay normal numbers
            factor = power(f.op(f"sub {ints} {b.const('i32', 253 + bits, n)}, {exponent}"), n)
            of_lanes = picked(exponent, "i32", order[0][::4])
            f.store(f"<{lanes} x float>", power(f.op(f"sub {lane_ints} {of_lanes}, {b.const('i32', bits - 1, lanes)}"), lanes), f.at("float", scales, f.mul(v, lanes)), 4)
            moved = f.plus("float", n, f.times("float", n, x, factor), b.real(1.5 * 2.0**23, n))
            whole = f.op(f"sub {ints} {f.op(f'bitcast {wide} {moved} to {ints}')}, {b.const('i32', _bits(1.5 * 2.0**23), n)}")
            totals = ["zeroinitializer"] * self.digits
            for side, elements in enumerate(order):
                rest = picked(whole, "i32", elements)
                for digit in range(self.digits):
                    byte = f.op(f"trunc <{w} x i32> {rest} to <{w} x i8>")
                    f.store(f"<{w} x i8>", byte, f.at("i8", digits, f.add(f.mul(v, self.digit_bytes), (side * self.digits + digit) * w)), 1)
                    totals[digit] = self.dot(f, totals[digit], ones, byte)
                    if digit + 1 < self.digits:
                        rest = f.op(f"sub <{w} x i32> {rest}, {f.op(f'sext <{w} x i8> {byte} to <{w} x i32>')}")
                        rest = f.op(f"ashr <{w} x i32> {rest}, {b.const('i32', 8, w)}")
            total = totals[-1]
            for lower in reversed(totals[:-1]):
                total = f.op(f"add {lane_ints} {f.op(f'shl {lane_ints} {total}, ' + b.const('i32', 8, lanes))}, {lower}")
            f.store(lane_ints, f.op(f"mul {lane_ints} {total}, {b.const('i32', -self.offset, lanes)}"), f.at("i32", offsets, f.mul(v, lanes)), 4)
            f.store(f"<{lanes} x float>", f.op(f"sitofp {lane_ints} {total} to <{lanes} x float>"), f.at("float", sums, f.mul(v, lanes)), 4)
        return f

    # ---- scales of W ----

    def scales(self) -> Function:
        """The scales of one row of W as floats, and its groups' addends."""
        parts = ", ".join(f"ptr noalias readonly %p{p}, i64 %step{p}" for p in range(PARTS))
        f = Function("scales", f"{parts}, i64 %blocks, float %ts, ptr noalias %factors, ptr noalias %addends", self.attributes)
        b, k = BlockText(f, self.kind), self.kind
        unit = 2.0 ** (k.unit - self.SHIFT) * (0.5 if names()[k.element].kind == "float" else 1.0)  # what one step of the integers is worth

        def some(g, lanes, steps=(None, None, None)):
            """The scales of `lanes` groups from g on; steps: bytes between them in each part, None where they follow one another."""
            wide = vector("float", lanes)
            at = [f.at("i8", f"%p{p}", f.mul(g, f"%step{p}")) for p in range(PARTS)]
            read = lambda name, field: b.number(name, b.field(at, field), lanes, steps[k.at(field)[0]])
            factor = read(k.scale, "scale")
            if k.tensor_scale:
                factor = f.times("float", lanes, factor, f.splat("float", "%ts", lanes))
            if k.zero == "zero":
                codes = b.gathered("i8", b.field(at, "zero"), lanes, steps[2])
                zero = f.op(f"uitofp {vector('i8', lanes)} {codes} to {wide}")
                f.store(wide, f.op(f"fneg {wide} {f.times('float', lanes, factor, zero)}"), f.at("float", "%addends", g), 4)
            elif k.zero == "min":
                f.store(wide, read("float16", "min"), f.at("float", "%addends", g), 4)
            if unit != 1:
                factor = f.times("float", lanes, factor, b.real(unit, lanes))
            f.store(wide, factor, f.at("float", "%factors", g), 4)

        def through(lanes, steps=(None, None, None)):
            with f.loop(0, "%blocks", lanes) as g:  # the last ones overlap with those before
                some(f.min(g, f.sub("%blocks", lanes)) if lanes > 1 else g, lanes, steps)

        size = names()[k.scale].itemsize
        dense = f.compare("eq", "%step1", size) if len(k.fields) > 1 and k.at("scale")[0] == 1 else "false"
        if k.zero == "zero":
            dense = f.both(dense, f.compare("eq", "%step2", 1))
        many, some_ = (f.compare("sge", "%blocks", n) for n in (16, 8))
        gathered = lambda: f.choose(some_, lambda: through(8, ["%step0", "%step1", "%step2"]), lambda: through(1))
        f.choose(f.both(dense, many), lambda: through(16), gathered)
        return f

    def spread(self, f: Function, scales, v) -> str:
        """The groups' numbers of vector v, each in its lanes."""
        lanes = self.d.lanes
        each = self.block // (4 * self.sides)  # lanes of a group
        if each >= lanes:
            return f.splat("float", f.load("float", f.at("float", scales, f.div(f.mul(v, lanes), each))), lanes)
        n = lanes // each
        few = f.load(f"<{n} x float>", f.at("float", scales, f.mul(v, n)), 4)
        return f.op(f"shufflevector <{n} x float> {few}, <{n} x float> poison, <{lanes} x i32> <" + ", ".join(f"i32 {i // each}" for i in range(lanes)) + ">")

    # ---- rows of W ----

    def look_up(self, f: Function, raw) -> tuple[str, ...]:
        """A vector's elements as bytes, moved by the offset: of low and of high nibbles, or of whole bytes."""
        w = self.d.width
        t = f"<{w} x i8>"
        if self.sides == 1:  # moving by 128 is turning the top bit over
            return (f.op(f"xor {t} {raw}, {f.constant('i8', -128, w)}") if self.offset else raw,)
        entries = "<" + ", ".join(f"i8 {self.table[i % 16]}" for i in range(w)) + ">"
        host = jit.host()
        if self.d.how == "vnni" and "+avx512vbmi" in host.features:  # only the six low bits of an index count, and the table is there four times
            high = self._nibbles_up(f, raw)
            f.declared.add(f"declare {t} @llvm.x86.avx512.permvar.qi.512({t}, {t})")
            return tuple(f.op(f"call {t} @llvm.x86.avx512.permvar.qi.512({t} {entries}, {t} {index})") for index in (raw, high))
        low = f.op(f"and {t} {raw}, {f.constant('i8', 15, w)}")
        high = f.op(f"lshr {t} {raw}, {f.constant('i8', 4, w)}")
        name = {"vnni": "llvm.x86.avx512.pshuf.b.512", "avx2": "llvm.x86.avx2.pshuf.b", "neon": "llvm.aarch64.neon.tbl1.v16i8"}[self.d.how]
        f.declared.add(f"declare {t} @{name}({t}, {t})")
        return tuple(f.op(f"call {t} @{name}({t} {entries}, {t} {index})") for index in (low, high))

    def code(self, f: Function, row, byte) -> str:
        """Address of byte `byte` of a row's codes, where blocks lie `step` bytes apart."""
        block, inside = f.div(byte, self.piece), f.rem(byte, self.piece)
        return f.at("i8", f.at("i8", row, f.mul(block, "%step")), f.add(inside, self.kind.at("codes")[1]))

    def _nibbles_up(self, f: Function, raw) -> str:
        w = self.d.width
        words = f.op(f"bitcast <{w} x i8> {raw} to <{w // 2} x i16>")
        moved = f.op(f"lshr <{w // 2} x i16> {words}, {f.constant('i16', 4, w // 2)}")
        return f.op(f"bitcast <{w // 2} x i16> {moved} to <{w} x i8>")

    def dot(self, f: Function, total, w_bytes, x_bytes) -> str:
        """total + the products of four neighbouring bytes, in i32 lanes."""
        w, lanes = self.d.width, self.d.lanes
        bytes_, words, i32 = f"<{w} x i8>", f"<{w // 2} x i16>", f"<{lanes} x i32>"
        if self.d.how == "vnni":
            f.declared.add(f"declare {i32} @llvm.x86.avx512.vpdpbusd.512({i32}, {i32}, {i32})")
            a, c = (f.op(f"bitcast {bytes_} {v} to {i32}") for v in (w_bytes, x_bytes))
            return f.op(f"call {i32} @llvm.x86.avx512.vpdpbusd.512({i32} {total}, {i32} {a}, {i32} {c})")
        if self.d.how == "neon":
            f.declared.add(f"declare {i32} @llvm.aarch64.neon.sdot.v4i32.v16i8({i32}, {bytes_}, {bytes_})")
            return f.op(f"call {i32} @llvm.aarch64.neon.sdot.v4i32.v16i8({i32} {total}, {bytes_} {w_bytes}, {bytes_} {x_bytes})")
        f.declared.add(f"declare {words} @llvm.x86.avx2.pmadd.ub.sw({bytes_}, {bytes_})")
        f.declared.add(f"declare {i32} @llvm.x86.avx2.pmadd.wd({words}, {words})")
        pairs = f.op(f"call {words} @llvm.x86.avx2.pmadd.ub.sw({bytes_} {w_bytes}, {bytes_} {x_bytes})")  # at most 2 * 24 * 128: it does not saturate
        fours = f.op(f"call {i32} @llvm.x86.avx2.pmadd.wd({words} {pairs}, {words} {f.constant('i16', 1, w // 2)})")
        return f.op(f"add {i32} {total}, {fours}")

    def rows(self) -> Function:
        """sums [count]: the products of one row of X (base, vectors) with `count` rows of W, whose scales and addends lie `ld` floats apart."""
        f = Function(
            "rows",
            "ptr noalias readonly %base, i64 %vectors, i64 %whole, i64 %left, ptr noalias readonly %w, i64 %next, i64 %step, ptr noalias readonly %factors, "
            "ptr noalias readonly %addends, i64 %ld, i64 %count, ptr noalias %sums", self.attributes,
        )  # fmt: skip
        w, lanes = self.d.width, self.d.lanes
        wide, i32 = f"<{lanes} x float>", f"<{lanes} x i32>"
        digits, offsets, lane_sums, scales = self.x_parts(f, "%base", "%vectors")

        def step(v, totals, rows, load):
            x = [f.load(f"<{w} x i8>", f.at("i8", digits, f.add(f.mul(v, self.digit_bytes), i * w)), 1) for i in range(self.sides * self.digits)]
            scale = f.load(wide, f.at("float", scales, f.mul(v, lanes)), 4)
            start = f.load(i32, f.at("i32", offsets, f.mul(v, lanes)), 4)
            for total, row in zip(totals, rows):
                sides = self.look_up(f, load(row))
                found = "zeroinitializer"
                for digit in reversed(range(self.digits)):
                    here = start if digit == 0 else "zeroinitializer"
                    for side in range(self.sides):
                        here = self.dot(f, here, sides[side], x[side * self.digits + digit])
                    if digit + 1 < self.digits:
                        found = f.op(f"shl {i32} {found}, {f.constant('i32', 8, lanes)}")
                        here = f.op(f"add {i32} {here}, {found}")
                    found = here
                number = f.times("float", lanes, f.op(f"sitofp {i32} {found} to {wide}"), scale)
                factors = f.at("float", "%factors", f.mul(row, "%ld"))
                sum_ = f.fma("float", lanes, number, self.spread(f, factors, v), f.load(wide, total, 64), True)
                if self.added:
                    of_x = f.times("float", lanes, f.load(wide, f.at("float", lane_sums, f.mul(v, lanes)), 4), scale)
                    sum_ = f.fma("float", lanes, of_x, self.spread(f, f.at("float", "%addends", f.mul(row, "%ld")), v), sum_, True)
                f.store(wide, sum_, total, 64)

        def far(v):
            """From a vector of a row to what is fetched now: behind the row's end go on with the rows that come next."""
            ends = f.compare("sge", f.add(f.mul(v, w), AHEAD), f.mul("%whole", w))
            return f.add(f.op(f"select i1 {ends}, i64 {beyond}, i64 0"), AHEAD)

        beyond = f.mul("%next", self.d.together - 1)

        def block(first, many):
            totals = [f.variable(wide, "zeroinitializer", 64) for _ in range(many)]
            rows = [f.add(first, r) for r in range(many)]

            def load(row, v):
                start = f.at("i8", "%w", f.mul(row, "%next"))
                if not self.gaps:
                    here = f.at("i8", start, f.mul(v, w))
                    f.call("void", "llvm.prefetch.p0", f"ptr {f.at('i8', here, far(v))}", "i32 0", "i32 3", "i32 1")
                    return f.load(f"<{w} x i8>", here, 1)
                size = min(self.piece, w)
                pieces = [f.load(f"<{size} x i8>", self.code(f, start, f.add(f.mul(v, w), p * size)), 1) for p in range(w // size)]
                return joined(f, pieces, size)

            with f.loop(0, "%whole") as v:
                step(v, totals, rows, lambda row: load(row, v))
            with f.when(f.compare("slt", "%whole", "%vectors")):  # what is left of a row, through a copy with zeros behind
                def copied(row):
                    held = f.variable(f"[{w} x i8]", align=64)
                    f.call("void", "llvm.memset.p0.i64", f"ptr {held}", "i8 0", f"i64 {w}", "i1 false")
                    start = f.at("i8", "%w", f.mul(row, "%next"))
                    if not self.gaps:
                        f.call("void", "llvm.memcpy.p0.p0.i64", f"ptr {held}", f"ptr {f.at('i8', start, f.mul('%whole', w))}", "i64 %left", "i1 false")
                    else:
                        with f.loop(0, "%left", 16) as at:
                            f.store("<16 x i8>", f.load("<16 x i8>", self.code(f, start, f.add(f.mul("%whole", w), at)), 1), f.at("i8", held, at), 1)
                    return f.load(f"<{w} x i8>", held, 64)

                step("%whole", totals, rows, copied)
            for row, total in zip(rows, totals):
                f.store("float", horizontal(f, "float", lanes, f.load(wide, total, 64)), f.at("float", "%sums", row))

        many = f.compare("eq", "%count", self.d.together)

        def one_by_one():
            with f.loop(0, "%count") as r:
                block(r, 1)

        f.choose(many, lambda: block("0", self.d.together), one_by_one)
        return f

    # ---- the entry ----

    def kernel(self) -> Function:
        f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", "nounwind", linkage="dso_local")
        words, together = words_of(f), self.d.together
        slots = [f.load("ptr", f.at("ptr", "%slots", n)) for n in range(SLOTS)]
        ts = f.load("float", slots[5], 4)
        w = self.d.width
        vectors = f.ceil_div(words["cols"], self.held)
        row_bytes = f.mul(words["blocks"], self.piece)  # of codes
        whole = f.min(f.div(row_bytes, w), vectors)
        left = f.min(f.sub(row_bytes, f.mul(whole, w)), w)
        groups = f.add(f.ceil_div(f.mul(vectors, self.held), self.block), 16)
        x_bytes = self.x_bytes(f, vectors)
        wild, sums = f.variable("i32", 0), f.variable(f"[{together} x float]", align=64)
        plain_bytes = f.mul(f.mul(words["m"], words["wide"]), 4)
        total = f.add(f.add(f.mul(x_bytes, words["m"]), f.mul(groups, 8 * together)), plain_bytes)

        def scales_of_rows(base):
            factors = f.at("i8", base, f.mul(x_bytes, words["m"]))
            return factors, f.at("float", factors, f.mul(groups, together))

        def prepare(base):
            factors, addends = scales_of_rows(base)
            plain = f.at("float", addends, f.mul(groups, together))
            f.call("void", "llvm.memset.p0.i64", f"ptr {factors}", "i8 0", f"i64 {f.mul(groups, 8 * together)}", "i1 false")  # behind a row's last group: zero
            load_x(f, self.dtype, slots[1], words, plain)
            with f.loop(0, words["m"]) as m:
                f.do(f"call void @prepare(ptr {f.at('float', plain, f.mul(m, words['wide']))}, i64 {vectors}, ptr {f.at('i8', base, f.mul(m, x_bytes))}, ptr {wild})")

        def work(base, first, last):
            low, high = f.mul(first, together), f.min(f.mul(last, together), words["rows"])
            general = f"call void @general(ptr %desc, ptr %slots, i64 {low}, i64 {high})"
            f.choose(f.op(f"icmp eq i32 {f.load('i32', wild)}, 0"), lambda: fast(base, low, high), lambda: f.do(general))

        def fast(base, low, high):
            factors, addends = scales_of_rows(base)
            with f.loop(low, high, together) as n0:
                count = f.min(together, f.sub(high, n0))
                at = [f.at("i8", slots[2 + p], f.mul(n0, words[f"row{p}"])) for p in range(PARTS)]
                with f.loop(0, count) as r:
                    parts = ", ".join(f"ptr {f.at('i8', at[p], f.mul(r, words[f'row{p}']))}, i64 {words[f'step{p}']}" for p in range(PARTS))
                    places = ", ".join(f"ptr {f.at('float', base_, f.mul(r, groups))}" for base_ in (factors, addends))
                    f.do(f"call void @scales({parts}, i64 {words['blocks']}, float {ts}, {places})")
                with f.loop(0, words["m"]) as m:
                    f.do(
                        f"call void @rows(ptr {f.at('i8', base, f.mul(m, x_bytes))}, i64 {vectors}, i64 {whole}, i64 {left}, ptr {at[0]}, i64 {words['row0']}, "
                        f"i64 {words['step0']}, ptr {factors}, ptr {addends}, i64 {groups}, i64 {count}, ptr {sums})"
                    )
                    with f.loop(0, count) as r:
                        column = f.add(n0, r)
                        place = f.at("i8", f.at("i8", slots[0], f.mul(m, words["row_y"])), f.mul(column, 4 if self.dtype == "float32" else 2))
                        store_y(f, self.dtype, self.bias, f.load("float", f.at("float", sums, r)), column, slots, place)

        claimed(f, f.ceil_div(words["rows"], together), total, prepare, work)
        return f


def joined(f: Function, pieces: list[str], lanes: int) -> str:
    while len(pieces) > 1:
        order = ", ".join(f"i32 {i}" for i in range(2 * lanes))
        pieces = [f.op(f"shufflevector <{lanes} x i8> {a}, <{lanes} x i8> {b}, <{2 * lanes} x i32> <{order}>") for a, b in zip(pieces[::2], pieces[1::2])]
        lanes *= 2
    return pieces[0]
