"""Conversion of whole tensors between blocks of low-precision elements and ordinary floats: `build_dequantize`, `build_quantize`.

Holds the two kernels, their walk over rows and blocks, and the rules by which a block's scale is chosen. What a block's bytes mean is block_text.py's.
"""
from __future__ import annotations

from ..dtypes import names
from . import jit, native
from .block_text import PARTS, BlockText, Kind
from .formats import literal
from .gemm_text import SIZES, TYPES, Function, module, vector

# Rows of `cols` elements in blocks of `block`; strides in bytes: of the rows of the plain tensor, then of rows and blocks of each part.
WORDS = ["rows", "blocks", "block", "cols", "row"] + [f"{what}{p}" for p in range(PARTS) for what in ("row", "step")]
FIRST = 8
GRAIN = 1 << 14  # elements a part should have at least
STREAM = 32 << 20  # bytes of a result from which it is written past the caches (as in map.py)
RULES = ("floor", "ceil", "even", "rceil")
FLOATS = ("float32", "bfloat16", "float16")


def build_dequantize(kind: tuple, dtype, rows: int, cols: int, block: int, strides, result_bytes: int = 0) -> bytes:
    """Descriptor: a fresh (or given) [rows, cols] of `dtype`, row-major, from blocks. strides: (row, block) in bytes of each of three parts.

    Slots: result, three parts (unused ones any address), address of the float32 that scales the whole tensor (or any).
    """
    k = Kind(*kind)
    stream = result_bytes >= STREAM and cols * dtype.itemsize % 64 == 0 and k.span * dtype.itemsize % 64 == 0
    address = jit.compile_kernel(("dequantize", repr(k), dtype.name, stream), lambda: _module(dequantize_row(k, dtype.name, stream), stream))
    return _descriptor(address, rows, cols, block, cols * dtype.itemsize, strides, result_bytes)


def build_quantize(kind: tuple, rule: str, dtype, rows: int, cols: int, row_stride: int, block: int, strides) -> bytes:
    """Descriptor: blocks from [rows, cols] of `dtype` whose rows lie `row_stride` bytes apart. What a row lacks of its last block counts as zero.

    Slots: source, three parts, address of the float32 that scales the whole tensor (or any).
    """
    k = Kind(*kind)
    address = jit.compile_kernel(("quantize", repr(k), rule, dtype.name), lambda: _quantize(k, rule, dtype.name))
    return _descriptor(address, rows, cols, block, row_stride, strides, 0)


def _descriptor(address, rows, cols, block, row_stride, strides, result_bytes):
    blocks = -(-cols // block)
    work = rows * cols
    words = [rows, blocks, block, cols, row_stride, *(s for pair in strides for s in pair)]
    return native.pack_desc(address, 2 + PARTS, max(1, min(native.parts_for(work, GRAIN), rows * blocks)), work >= 2 * GRAIN, result_bytes, words)


# ---- the walk -------------------------------------------------------------------------------------------------------------------


def _kernel(f: Function, word) -> tuple:
    """The entry: this part's range of all blocks, row by row: calls @row(plain row, parts' rows, first and last block, tensor scale)."""
    slot = [f.load("ptr", f.at("ptr", "%slots", n)) for n in range(2 + PARTS)]
    total = f.mul(word["rows"], word["blocks"])
    low, high = (f.div(f.mul(total, part), "%parts") for part in ("%part", f.add("%part", 1)))
    scale = f.load("float", slot[-1], 4)
    with f.when(f.compare("slt", low, high)):
        first, last = f.div(low, word["blocks"]), f.add(f.div(f.sub(high, 1), word["blocks"]), 1)
        with f.loop(first, last) as row:
            before = f.mul(row, word["blocks"])
            start = f.call("i64", "llvm.smax.i64", f"i64 {f.sub(low, before)}", "i64 0")
            stop = f.min(f.sub(high, before), word["blocks"])
            plain = f.at("i8", slot[0], f.mul(row, word["row"]))
            parts = ", ".join(f"ptr {f.at('i8', slot[1 + p], f.mul(row, word[f'row{p}']))}" for p in range(PARTS))
            f.do(f"call void @row(ptr %desc, ptr {plain}, {parts}, i64 {start}, i64 {stop}, float {scale})")


def _module(row: Function, stream: bool = False) -> str:
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", "nounwind", linkage="dso_local")
    _kernel(f, _words(f))
    extra = "!900 = !{i32 1}\n"
    if stream and jit.host().arch == "x86_64":
        extra += "declare void @llvm.x86.sse.sfence()\n"
        f.do("call void @llvm.x86.sse.sfence()")  # streamed lines are ordered before the signal that this part is done
    return module(row, f, extra=extra)


def _words(f: Function) -> dict[str, str]:
    return {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}


def _row() -> Function:
    parts = ", ".join(f"ptr noalias %p{p}" for p in range(PARTS))
    return Function("row", f"ptr noalias readonly %desc, ptr noalias %plain, {parts}, i64 %start, i64 %stop, float %ts", jit.host().attributes + " noinline")


class _Blocks:
    """The loops of one row over its blocks and their spans. `size` is known when the text is written where blocks are short or fixed."""

    def __init__(self, f: Function, k: Kind, itemsize: int):
        self.f, self.k, self.itemsize = f, k, itemsize
        self.word = _words(f)
        self.text = BlockText(f, k)

    def each(self, emit) -> None:
        """emit(parts of the block, its first element, elements of it that exist (i64)): whole blocks first, with `exist` None where that is all of them."""
        f, w = self.f, self.word
        whole = f.min("%stop", f.div(w["cols"], self.k.size or w["block"]))
        with f.loop("%start", whole) as g:
            emit(self._parts(g), f.mul(g, self.k.size or w["block"]), None)
        with f.when(f.compare("slt", f.call("i64", "llvm.smax.i64", f"i64 {whole}", "i64 %start"), "%stop")):  # the last one is padded
            first = f.mul(whole, self.k.size or w["block"])
            emit(self._parts(whole), first, f.sub(w["cols"], first))

    def _parts(self, g):
        return [self.f.at("i8", f"%p{p}", self.f.mul(g, self.word[f"step{p}"])) for p in range(PARTS)]

    def spans(self, exist, whole, partial) -> None:
        """whole(s) for every span of a block that exists in full, s an int or an i64; partial(s, elements) for one that does in part."""
        f, k = self.f, self.k
        if exist is None and k.size:
            for s in range(k.size // k.span):
                whole(s)
            return
        count = exist or self.word["block"]
        full = f.div(count, k.span)
        with f.loop(0, full) as s:
            whole(s)
        rest = f.sub(count, f.mul(full, k.span))
        with f.when(f.compare("sgt", rest, 0)):
            partial(full, rest)

    def plain(self, first, s):
        """Address of span s of the block that begins at element `first` of the plain row."""
        f = self.f
        element = f.add(first, f.mul(s, self.k.span)) if not isinstance(s, int) else f.add(first, s * self.k.span)
        return f.at("i8", "%plain", f.mul(element, self.itemsize))

    def code_bytes(self, parts, s):
        f = self.f
        return f.at("i8", self.text.field(parts, "codes"), f.mul(s, self.text.span_bytes()))


# ---- from blocks to numbers -----------------------------------------------------------------------------------------------------


def dequantize_row(k: Kind, dtype: str = "float32", stream: bool = False) -> Function:
    """@row(desc, plain row, three parts' rows, first and last block, tensor scale): the numbers of some blocks of a row. `desc` begins with WORDS."""
    f = _row()
    memory = TYPES[dtype][0]
    b = _Blocks(f, k, SIZES[memory])
    n, wide = k.span, vector(memory, k.span)
    store = (lambda value, to: f.do(f"store {wide} {value}, ptr {to}, align 64, !nontemporal !900")) if stream else (lambda value, to: f.store(wide, value, to, SIZES[memory]))

    def emit(parts, first, exist):
        if k.order in ("bytes", "pairs", "sixes"):
            zero = b.text.zero_point(parts)
            factor, addend = b.text.scales(parts, 0, "%ts")

            def number(address):
                return f.encode(dtype, b.text.decoded(b.text.stream(address), n, zero, factor, addend), n, b.text.half)

            def partial(s, count):  # through copies: neither the codes behind the last nor the numbers behind the row are ours
                codes, numbers = f.variable(f"[{b.text.span_bytes()} x i8]", align=64), f.variable(wide, align=64)
                nbytes = f.div(f.add(f.mul(count, k.bits), 7), 8)
                f.call("void", "llvm.memset.p0.i64", f"ptr {codes}", "i8 0", f"i64 {b.text.span_bytes()}", "i1 false")
                f.call("void", "llvm.memcpy.p0.p0.i64", f"ptr {codes}", f"ptr {b.code_bytes(parts, s)}", f"i64 {nbytes}", "i1 false")
                f.store(wide, number(codes), numbers, 64)
                f.call("void", "llvm.memcpy.p0.p0.i64", f"ptr {b.plain(first, s)}", f"ptr {numbers}", f"i64 {f.mul(count, SIZES[memory])}", "i1 false")

            b.spans(exist, lambda s: store(number(b.code_bytes(parts, s)), b.plain(first, s)), partial)
        elif exist is None:  # blocks of files are never padded
            for s in range(k.size // n):
                factor, addend = b.text.scales(parts, s, "%ts")
                store(f.encode(dtype, b.text.decoded(b.text.codes(parts, s), n, None, factor, addend), n, b.text.half), b.plain(first, s))

    b.each(emit)
    return f


# ---- from numbers to blocks -----------------------------------------------------------------------------------------------------


def _quantize(k: Kind, rule: str, dtype: str) -> str:
    f = _row()
    memory = TYPES[dtype][0]
    b = _Blocks(f, k, SIZES[memory])
    n, element = k.span, names()[k.element]
    f32, i32 = vector("float", n), vector("i32", n)
    c = lambda v: b.text.const("i32", v, n)

    def read(address):
        return f.decode(dtype, f.load(vector(memory, n), address, SIZES[memory]), n, b.text.half)

    def read_part(address, count):
        held = f.variable(vector(memory, n), align=64)
        f.store(vector(memory, n), "zeroinitializer", held, 64)
        f.call("void", "llvm.memcpy.p0.p0.i64", f"ptr {held}", f"ptr {address}", f"i64 {f.mul(count, SIZES[memory])}", "i1 false")
        return read(held)

    def emit(parts, first, exist):
        largest = f.variable(i32, "zeroinitializer", 64)  # the bits of the largest magnitude: they order as the numbers do, NaN above all
        ends = [f.variable(f32, "zeroinitializer", 64) for _ in range(2)] if k.zero == "zero" else []

        def see(value):
            bits = f.op(f"and {i32} {f.op(f'bitcast {f32} {value} to {i32}')}, {c(0x7FFFFFFF)}")
            f.store(i32, b.text.both("umax", f.load(i32, largest, 64), bits, n), largest, 64)
            for end, how in zip(ends, ("olt", "ogt")):
                held = f.load(f32, end, 64)
                f.store(f32, b.text.select(f.op(f"fcmp {how} {f32} {value}, {held}"), value, held, n, "float"), end, 64)

        b.spans(exist, lambda s: see(read(b.plain(first, s))), lambda s, count: see(read_part(b.plain(first, s), count)))
        top = f.call("i32", f"llvm.vector.reduce.umax.v{n}i32", f"{i32} {f.load(i32, largest, 64)}")
        range_ = [f.call("float", f"llvm.vector.reduce.f{how}.v{n}f32", f"{f32} {f.load(f32, end, 64)}") for how, end in zip(("min", "max"), ends)]
        inverse, zero = _choose_scale(b, parts, rule, top, range_)
        wide = f.splat("float", inverse, n)

        def codes(value):
            value = f.times("float", n, value, wide)
            if k.unit:  # apart: the product of both factors may be infinite
                value = f.times("float", n, value, b.text.real(2.0**-k.unit, n))
            if element.kind == "float":
                return b.text.encode_minifloat(value, n, k.element)
            bits = element.bits
            if k.zero == "zero":
                return b.text.encode_integer(value, n, 0, 2**bits - 1, zero)
            return b.text.encode_integer(value, n, 1 - 2 ** (bits - 1), 2 ** (bits - 1) - 1)

        def partial(s, count):
            held = f.variable(f"[{b.text.span_bytes()} x i8]", align=64)
            b.text.store_codes(codes(read_part(b.plain(first, s), count)), held)
            nbytes = f.div(f.add(f.mul(count, k.bits), 7), 8)
            f.call("void", "llvm.memcpy.p0.p0.i64", f"ptr {b.code_bytes(parts, s)}", f"ptr {held}", f"i64 {nbytes}", "i1 false")

        if exist is not None:  # what the row lacks is zero; a block's codes are cleared whole
            nbytes = f.div(f.add(f.mul(b.word["block"], k.bits), 7), 8)
            f.call("void", "llvm.memset.p0.i64", f"ptr {b.text.field(parts, 'codes')}", "i8 0", f"i64 {nbytes}", "i1 false")
        b.spans(exist, lambda s: b.text.store_codes(codes(read(b.plain(first, s))), b.code_bytes(parts, s)), partial)

    b.each(emit)
    return _module(f)


def _choose_scale(b: _Blocks, parts, rule: str, top: str, range_) -> tuple[str, str | None]:
    """Writes a block's scale (and zero point); (what numbers are multiplied by before rounding, zero point as an i32). `top`: bits of the largest magnitude.

    A block that holds a NaN or an infinity becomes NaN as a whole: its scale is NaN.
    """
    f, k = b.f, b.k
    wild = f.op(f"icmp uge i32 {top}, {0x7F800000}")
    place = b.text.field(parts, "scale")
    choose = lambda condition, yes, no, type_="i32": f.op(f"select i1 {condition}, {type_} {yes}, {type_} {no}")
    if k.scale == "float8_e8m0fnu":
        code = choose(wild, 255, _power_code(f, k, rule, top))
        f.store("i8", f.op(f"trunc i32 {code} to i8"), place)
        bits = choose(f.op(f"icmp eq i32 {code}, 254"), 0x400000, f.op(f"shl i32 {f.op(f'sub i32 254, {code}')}, 23"))
        inverse = f.op(f"bitcast i32 {choose(wild, 0, bits)} to float")
        return inverse, None
    amax = f.op(f"bitcast i32 {choose(wild, 0, top)} to float")
    element = names()[k.element]
    if k.zero == "zero":
        amax = f.op(f"fsub float {range_[1]}, {range_[0]}")
        amax = choose(wild, "0.0", amax, "float")
        steps = 2.0**element.bits - 1
    else:
        steps = element.limits[0] if element.kind == "float" else 2.0 ** (element.bits - 1) - 1
    scale = f.op(f"fdiv float {amax}, {literal(steps, 'float32')}")
    if k.tensor_scale:
        scale = choose(f.op("fcmp oeq float %ts, 0.0"), "0.0", f.op(f"fdiv float {scale}, %ts"), "float")
    scale = _store_scale(b, scale, wild, place)
    if k.tensor_scale:
        scale = f.times("float", 1, scale, "%ts")
    inverse = f.op(f"fdiv float 1.0, {scale}")
    usable = f.op(f"fcmp olt float {inverse}, {literal(float('inf'), 'float32')}")  # not where the scale is zero, or so small that its inverse is infinite
    inverse = choose(f.both(usable, f.op(f"xor i1 {wild}, true")), inverse, "0.0", "float")
    if k.zero != "zero":
        return inverse, None
    zero = b.text.encode_integer(f.op(f"fneg float {f.times('float', 1, choose(wild, '0.0', range_[0], 'float'), inverse)}"), 1, 0, 2**element.bits - 1)
    f.store("i8", f.op(f"trunc i32 {zero} to i8"), b.text.field(parts, "zero"))
    return inverse, zero


def _power_code(f: Function, k: Kind, rule: str, top: str) -> str:
    """The E8M0 code of a block whose largest magnitude has the bits `top`, before NaN is looked after.

    floor, ceil: of the exponent; even: of the exponent once the mantissa is rounded to the element's; rceil: of the ratio to the largest element.
    """
    element = names()[k.element]
    largest = element.limits[0] if element.kind == "float" else (2 ** (element.bits - 1) - 1) * 2.0**k.unit
    mantissa = element.encoding.mantissa if element.kind == "float" else -k.unit
    emax = 0
    while 2.0 ** (emax + 1) <= largest:
        emax += 1
    if rule == "rceil":
        amax = f.op(f"bitcast i32 {top} to float")
        ratio = f.op(f"bitcast float {f.op(f'fdiv float {amax}, ' + literal(largest, 'float32'))} to i32")
        up = f.op(f"lshr i32 {f.op(f'add i32 {ratio}, {0x7FFFFF}')}, 23")
        code = f.op(f"select i1 {f.op(f'icmp ule i32 {ratio}, {0x400000}')}, i32 0, i32 {up}")
    else:
        more = {"floor": 0, "ceil": 0x7FFFFF, "even": 1 << (22 - mantissa)}[rule]
        moved = f.op(f"add i32 {top}, {more}")
        code = f.op(f"sub i32 {f.op(f'lshr i32 {moved}, 23')}, {emax}")
    low = f.call("i32", "llvm.smax.i32", f"i32 {code}", "i32 0")
    return f.call("i32", "llvm.smin.i32", f"i32 {low}", "i32 254")


def _store_scale(b: _Blocks, scale: str, wild: str, place) -> str:
    """Stores a float scale rounded to its format, NaN where `wild`, never infinite; returns what was stored, as a float (0 where wild)."""
    f, k = b.f, b.k
    limit = names()[k.scale].limits[0]
    scale = f.op(f"select i1 {f.op(f'fcmp olt float {scale}, ' + literal(limit, 'float32'))}, float {scale}, float {literal(limit, 'float32')}")
    if k.scale == "float8_e4m3fn":
        code = b.text.encode_minifloat(scale, 1, k.scale)
        f.store("i8", f.op(f"trunc i32 {f.op(f'select i1 {wild}, i32 127, i32 {code}')} to i8"), place)
        return b.text.minifloat(code, 1, k.scale)
    memory = TYPES[k.scale][0]
    stored = f.encode(k.scale, scale, 1, b.text.half)
    kept = f.op(f"select i1 {wild}, {memory} {({'float16': 0x7E00, 'bfloat16': 0x7FC0}.get(k.scale) or literal(float('nan'), 'float32'))}, {memory} {stored}")
    f.store(memory, kept, place, 1)
    return f.decode(k.scale, stored, 1, b.text.half)
