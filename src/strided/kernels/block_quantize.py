"""Blocks of low-precision elements from whole tensors: `build_quantize`, and the rules by which a block's scale is chosen.

Short blocks under one-byte scales are taken many at a time: first their largest magnitudes, then all scales, then the codes. Others one by one.
What a block's bytes mean is block_text.py's, the walk over rows and blocks block_casts.py's.
"""
from __future__ import annotations

from ..dtypes import names
from . import jit, native
from .block_casts import GRAIN, Blocks, descriptor, row_function, row_module
from .block_text import BlockText, Kind
from .formats import literal
from .gemm_text import SIZES, TYPES, Function, module, vector

RULES = ("floor", "ceil", "even", "rceil")
AHEAD = 4096  # bytes between what is worked on and what is fetched, where blocks are taken one by one
MANY = 64  # short blocks that are taken together
BYTE_SCALES = ("float8_e8m0fnu", "float8_e4m3fn")
INFINITE = 0x7F800000


def build_quantize(kind: tuple, rule: str, dtype, rows: int, cols: int, row_stride: int, block: int, strides) -> bytes:
    """Descriptor: blocks from [rows, cols] of `dtype` whose rows lie `row_stride` bytes apart. What a row lacks of its last block counts as zero.

    Slots: source, three parts, address of the float32 that scales the whole tensor (or any).
    """
    k = Kind(*kind)
    address = jit.compile_kernel(("quantize", repr(k), rule, dtype.name), lambda: _quantize(k, rule, dtype.name))
    return descriptor(address, rows, cols, block, row_stride, strides, 0)



def _quantize(k: Kind, rule: str, dtype: str) -> str:
    f = row_function()
    q = _Quantizing(f, k, rule, dtype)
    if k.size and k.size == k.span and k.scale in BYTE_SCALES:
        q.many()
    else:
        q.each(q.block)
    return row_module(f)


class _Quantizing(Blocks):
    """Writes the conversion of one row."""

    def __init__(self, f: Function, k: Kind, rule: str, dtype: str):
        super().__init__(f, k, SIZES[TYPES[dtype][0]])
        self.rule, self.dtype, self.memory = rule, dtype, TYPES[dtype][0]
        self.n, self.element = k.span, names()[k.element]
        self.f32, self.i32 = vector("float", self.n), vector("i32", self.n)

    # ---- reading ----

    def read(self, address) -> str:
        return self.f.decode(self.dtype, self.f.load(vector(self.memory, self.n), address, SIZES[self.memory]), self.n, self.text.half)

    def read_part(self, address, count) -> str:
        """A span of which `count` elements exist; the others are zero."""
        f, held = self.f, self.f.variable(vector(self.memory, self.n), align=64)
        f.store(vector(self.memory, self.n), "zeroinitializer", held, 64)
        f.call("void", "llvm.memcpy.p0.p0.i64", f"ptr {held}", f"ptr {address}", f"i64 {f.mul(count, SIZES[self.memory])}", "i1 false")
        return self.read(held)

    def fetch(self, address) -> None:
        """A span that will be read soon arrives while others are worked on."""
        for line in range(0, self.n * self.itemsize, 64):
            self.f.call("void", "llvm.prefetch.p0", f"ptr {self.f.at('i8', address, line)}", "i32 0", "i32 3", "i32 1")

    def magnitude(self, value) -> str:
        """The bits of the magnitudes: they order as the numbers do, NaN above all."""
        return self.f.op(f"and {self.i32} {self.f.op(f'bitcast {self.f32} {value} to {self.i32}')}, {self.text.const('i32', 0x7FFFFFFF, self.n)}")

    # ---- many short blocks at a time ----

    def many(self) -> None:
        f, k = self.f, self.k
        tops, inverses, codes = f.variable(f"[{MANY} x i32]", align=64), f.variable(f"[{MANY} x float]", align=64), f.variable(f"[{MANY} x i8]", align=64)
        f.call("void", "llvm.memset.p0.i64", f"ptr {tops}", "i8 0", f"i64 {4 * MANY}", "i1 false")
        whole = f.min("%stop", f.div(self.word["cols"], k.size))
        with f.loop("%start", whole, MANY) as g0:
            count = f.min(MANY, f.sub(whole, g0))
            with f.loop(0, count) as i:
                size = self.magnitude(self.read(self.plain(f.mul(f.add(g0, i), k.size), 0)))
                f.store("i32", f.call("i32", f"llvm.vector.reduce.umax.v{self.n}i32", f"{self.i32} {size}"), f.at("i32", tops, i))
            with f.loop(0, count, 16) as i:
                code, inverse = _byte_scale(self.text, self.rule, f.load("<16 x i32>", f.at("i32", tops, i), 64), 16)
                f.store("<16 x i8>", f.op(f"trunc <16 x i32> {code} to <16 x i8>"), f.at("i8", codes, i), 16)
                f.store("<16 x float>", inverse, f.at("float", inverses, i), 64)
            with f.loop(0, count) as i:
                g = f.add(g0, i)
                parts = self.parts_at(g)
                self.fetch(self.plain(f.mul(f.add(g, MANY), k.size), 0))
                f.store("i8", f.load("i8", f.at("i8", codes, i)), self.text.field(parts, "scale"))
                value = self.read(self.plain(f.mul(g, k.size), 0))
                self.text.store_codes(self.codes(value, f.load("float", f.at("float", inverses, i)), None), self.text.field(parts, "codes"))
        with f.when(f.compare("slt", f.call("i64", "llvm.smax.i64", f"i64 {whole}", "i64 %start"), "%stop")):  # the last block is padded
            first = f.mul(whole, k.size)
            self.block(self.parts_at(whole), first, f.sub(self.word["cols"], first))

    # ---- one block at a time ----

    def block(self, parts, first, exist) -> None:
        f, k, n, b = self.f, self.k, self.n, self.text
        largest = f.variable(self.i32, "zeroinitializer", 64)
        ends = [f.variable(self.f32, "zeroinitializer", 64) for _ in range(2)] if k.zero == "zero" else []

        def see(value):
            f.store(self.i32, b.both("umax", f.load(self.i32, largest, 64), self.magnitude(value), n), largest, 64)
            for end, how in zip(ends, ("olt", "ogt")):
                held = f.load(self.f32, end, 64)
                f.store(self.f32, b.select(f.op(f"fcmp {how} {self.f32} {value}, {held}"), value, held, n, "float"), end, 64)

        self.spans(exist, lambda s: see(self.read(self.plain(first, s))), lambda s, count: see(self.read_part(self.plain(first, s), count)))
        top = f.call("i32", f"llvm.vector.reduce.umax.v{n}i32", f"{self.i32} {f.load(self.i32, largest, 64)}")
        ends = [self.extreme(f.load(self.f32, end, 64), how) for how, end in zip(("olt", "ogt"), ends)]
        inverse, zero = self.scale(parts, top, ends)

        def partial(s, count):
            held = f.variable(f"[{b.span_bytes()} x i8]", align=64)
            b.store_codes(self.codes(self.read_part(self.plain(first, s), count), inverse, zero), held)
            nbytes = f.div(f.add(f.mul(count, k.bits), 7), 8)
            f.call("void", "llvm.memcpy.p0.p0.i64", f"ptr {self.code_bytes(parts, s)}", f"ptr {held}", f"i64 {nbytes}", "i1 false")

        if exist is not None:  # what the row lacks is zero; a block's codes are cleared whole
            nbytes = f.div(f.add(f.mul(self.word["block"], k.bits), 7), 8)
            f.call("void", "llvm.memset.p0.i64", f"ptr {b.field(parts, 'codes')}", "i8 0", f"i64 {nbytes}", "i1 false")
        def whole(s):
            self.fetch(f.at("i8", self.plain(first, s), AHEAD))
            b.store_codes(self.codes(self.read(self.plain(first, s)), inverse, zero), self.code_bytes(parts, s))

        self.spans(exist, whole, partial)

    def extreme(self, value, how: str) -> str:
        """The least ("olt") or the largest ("ogt") of a span, in halves: LLVM's own reduction of floats goes lane by lane."""
        f, t, at = self.f, self.f32, self.n // 2
        while at:
            order = ", ".join(f"i32 {(i + at) % self.n}" for i in range(self.n))
            other = f.op(f"shufflevector {t} {value}, {t} poison, <{self.n} x i32> <{order}>")
            value = self.text.select(f.op(f"fcmp {how} {t} {value}, {other}"), value, other, self.n, "float")
            at //= 2
        return f.op(f"extractelement {t} {value}, i64 0")

    def codes(self, value, inverse, zero) -> str:
        """A span of numbers as codes, in i32 lanes."""
        f, k, n, b = self.f, self.k, self.n, self.text
        value = f.times("float", n, value, f.splat("float", inverse, n))
        if k.unit:  # apart: the product of both factors may be infinite
            value = f.times("float", n, value, b.real(2.0**-k.unit, n))
        if self.element.kind == "float":
            return b.encode_minifloat(value, n, k.element)
        high = 2 ** (self.element.bits - 1) - 1
        return b.encode_integer(value, n, -high, high) if zero is None else b.encode_integer(value, n, 0, 2 * high + 1, zero)

    def scale(self, parts, top, ends) -> tuple[str, str | None]:
        """Writes a block's scale (and zero point); (what numbers are multiplied by before rounding, zero point as a float). `top`: bits of the largest magnitude."""
        f, k, b = self.f, self.k, self.text
        place = b.field(parts, "scale")
        if k.scale in BYTE_SCALES:
            code, inverse = _byte_scale(b, self.rule, top, 1)
            f.store("i8", f.op(f"trunc i32 {code} to i8"), place)
            return inverse, None
        wild = f.op(f"icmp uge i32 {top}, {INFINITE}")
        choose = lambda condition, yes, no: f.op(f"select i1 {condition}, float {yes}, float {no}")
        extent = f.op(f"fsub float {ends[1]}, {ends[0]}") if ends else f.op(f"bitcast i32 {top} to float")
        steps = 2.0**self.element.bits - 1 if ends else 2.0 ** (self.element.bits - 1) - 1
        scale = _stored(b, f.op(f"fdiv float {choose(wild, '0.0', extent)}, {literal(steps, 'float32')}"), wild, place)
        inverse = choose(wild, "0.0", _inverse(b, scale, 1))
        if not ends:
            return inverse, None
        low = f.op(f"fneg float {f.times('float', 1, choose(wild, '0.0', ends[0]), inverse)}")
        zero = b.encode_integer(low, 1, 0, 2**self.element.bits - 1)
        f.store("i8", f.op(f"trunc i32 {zero} to i8"), b.field(parts, "zero"))
        return inverse, f.op(f"sitofp i32 {zero} to float")


# ---- scales ---------------------------------------------------------------------------------------------------------------------


def _inverse(b: BlockText, scale, lanes: int) -> str:
    """1 / scale, or 0 where the scale is zero or so small that its inverse is infinite."""
    f, t = b.f, vector("float", lanes)
    inverse = f.op(f"fdiv {t} {b.real(1.0, lanes)}, {scale}")
    usable = f.op(f"fcmp olt {t} {inverse}, {b.real(float('inf'), lanes)}")
    return b.select(usable, inverse, b.real(0.0, lanes), lanes, "float")


def _byte_scale(b: BlockText, rule: str, top, lanes: int) -> tuple[str, str]:
    """(codes of blocks' scales, what their numbers are multiplied by), in lanes, from the bits of the blocks' largest magnitudes.

    A block that holds a NaN or an infinity becomes NaN as a whole: its scale is NaN.
    """
    f, k = b.f, b.kind
    i32, f32 = vector("i32", lanes), vector("float", lanes)
    c = lambda v: b.const("i32", v, lanes)
    wild = f.op(f"icmp uge {i32} {top}, {c(INFINITE)}")
    if k.scale == "float8_e8m0fnu":
        code = b.select(wild, c(255), _power_code(b, rule, top, lanes), lanes)
        bits = f.op(f"shl {i32} {f.op(f'sub {i32} ' + c(254) + f', {code}')}, {c(23)}")
        bits = b.select(f.op(f"icmp eq {i32} {code}, {c(254)}"), c(0x400000), bits, lanes)
        return code, f.op(f"bitcast {i32} {b.select(wild, c(0), bits, lanes)} to {f32}")
    amax = f.op(f"bitcast {i32} {b.select(wild, c(0), top, lanes)} to {f32}")
    scale = f.op(f"fdiv {f32} {amax}, {b.real(names()[k.element].limits[0], lanes)}")
    scale = f.op(f"fdiv {f32} {scale}, {f.splat('float', '%ts', lanes)}")
    code = b.encode_minifloat(scale, lanes, k.scale)
    scale = f.times("float", lanes, b.minifloat(code, lanes, k.scale), f.splat("float", "%ts", lanes))
    inverse = b.select(wild, b.real(0.0, lanes), _inverse(b, scale, lanes), lanes, "float")
    return b.select(wild, c(127), code, lanes), inverse


def _power_code(b: BlockText, rule: str, top, lanes: int) -> str:
    """The E8M0 codes of blocks whose largest magnitudes have the bits `top`, before NaN is looked after.

    floor, ceil: of the exponent; even: of the exponent once the mantissa is rounded to the element's; rceil: of the ratio to the largest element.
    """
    f, k = b.f, b.kind
    i32, f32 = vector("i32", lanes), vector("float", lanes)
    c = lambda v: b.const("i32", v, lanes)
    element = names()[k.element]
    largest = element.limits[0] if element.kind == "float" else (2 ** (element.bits - 1) - 1) * 2.0**k.unit
    mantissa = element.encoding.mantissa if element.kind == "float" else -k.unit
    emax = 0
    while 2.0 ** (emax + 1) <= largest:
        emax += 1
    up = lambda bits, more: f.op(f"lshr {i32} {f.op(f'add {i32} {bits}, ' + c(more))}, {c(23)}")
    if rule == "rceil":
        ratio = f.op(f"fdiv {f32} {f.op(f'bitcast {i32} {top} to {f32}')}, {b.real(largest, lanes)}")
        ratio = f.op(f"bitcast {f32} {ratio} to {i32}")
        code = b.select(f.op(f"icmp ule {i32} {ratio}, {c(0x400000)}"), c(0), up(ratio, 0x7FFFFF), lanes)
    else:
        code = f.op(f"sub {i32} {up(top, {'floor': 0, 'ceil': 0x7FFFFF, 'even': 1 << (22 - mantissa)}[rule])}, {c(emax)}")
    return b.both("smin", b.both("smax", code, c(0), lanes), c(254), lanes)


def _stored(b: BlockText, scale, wild, place) -> str:
    """Stores a float scale rounded to its format, NaN where `wild`, never infinite; returns what was stored, as a float."""
    f, k = b.f, b.kind
    limit = literal(names()[k.scale].limits[0], "float32")
    scale = f.op(f"select i1 {f.op(f'fcmp olt float {scale}, {limit}')}, float {scale}, float {limit}")
    memory = TYPES[k.scale][0]
    stored = f.encode(k.scale, scale, 1, b.half)
    nan = {"float16": 0x7E00, "bfloat16": 0x7FC0}.get(k.scale) or literal(float("nan"), "float32")
    f.store(memory, f.op(f"select i1 {wild}, {memory} {nan}, {memory} {stored}"), place, 1)
    return f.decode(k.scale, stored, 1, b.half)


# ---- the largest magnitude of a tensor ------------------------------------------------------------------------------------------


def build_largest(dtype, count: int, parts: int) -> bytes:
    """Descriptor: the bits of the largest finite magnitude of each of `parts` shares of `count` elements. Slots: i32 [parts], source."""
    address = jit.compile_kernel(("largest", dtype.name), lambda: _largest(dtype.name))
    return native.pack_desc(address, 2, parts, count >= 2 * GRAIN, 0, [count])


def _largest(dtype: str) -> str:
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", jit.host().attributes, linkage="dso_local")
    b = BlockText(f, Kind("bytes", "int8", "float32", "", 0, 0, False, 0, ()))
    memory, n = TYPES[dtype][0], 64
    count = f.load("i64", f.at("i64", "%desc", 8))
    out, source = (f.load("ptr", f.at("ptr", "%slots", i)) for i in range(2))
    low, high = (f.div(f.mul(count, part), "%parts") for part in ("%part", f.add("%part", 1)))
    best, one = f.variable(vector("i32", n), "zeroinitializer", 64), f.variable("i32", 0)

    def see(address, lanes, cell):
        t, wide = vector("i32", lanes), vector("float", lanes)
        value = f.decode(dtype, f.load(vector(memory, lanes), address, SIZES[memory]), lanes, b.half)
        bits = f.op(f"and {t} {f.op(f'bitcast {wide} {value} to {t}')}, {b.const('i32', 0x7FFFFFFF, lanes)}")
        bits = b.select(f.op(f"icmp ult {t} {bits}, {b.const('i32', INFINITE, lanes)}"), bits, b.const("i32", 0, lanes), lanes)
        f.store(t, b.both("umax", f.load(t, cell), bits, lanes), cell)

    whole = f.add(low, f.mul(f.div(f.sub(high, low), n), n))
    with f.loop(low, whole, n) as i:
        see(f.at(memory, source, i), n, best)
    with f.loop(whole, high) as i:
        see(f.at(memory, source, i), 1, one)
    top = f.call("i32", f"llvm.vector.reduce.umax.v{n}i32", f"{vector('i32', n)} {f.load(vector('i32', n), best, 64)}")
    f.store("i32", b.both("umax", top, f.load("i32", one), 1), f.at("i32", out, "%part"))
    return module(f)
