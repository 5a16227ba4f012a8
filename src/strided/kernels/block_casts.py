"""Whole tensors from blocks of low-precision elements: `build_dequantize`; the walk over rows and blocks that block_quantize.py shares, and what the kernels of
products share beside it: the words of their descriptor, how they read X and write Y.

What a block's bytes mean is block_text.py's.
"""
from __future__ import annotations

from . import jit, native
from .block_text import PARTS, BlockText, Kind
from .gemm_text import SIZES, TYPES, Function, module, vector

# Rows of `cols` elements in blocks of `block`; strides in bytes: of the rows of the plain tensor, then of rows and blocks of each part.
WORDS = ["rows", "blocks", "block", "cols", "row"] + [f"{what}{p}" for p in range(PARTS) for what in ("row", "step")]
# A product's words are those of W and behind them rows of X and bytes between them, bytes between rows of Y, padded length of a row, elements
# of a stretch of k and how many blocks that is, padded length of a stretch.
PRODUCT_WORDS = [*WORDS, "m", "row_x", "row_y", "wide", "stretch", "step", "pad"]
SLOTS = 7  # Y, X, three parts of W, its tensor scale, bias
FIRST = 8
GRAIN = 1 << 14  # elements a part should have at least
STREAM = 16 << 20  # bytes of a result from which it is written past the caches (as in map.py)
FLOATS = ("float32", "bfloat16", "float16")


def build_dequantize(kind: tuple, dtype, rows: int, cols: int, block: int, strides, result_bytes: int = 0) -> bytes:
    """Descriptor: a fresh (or given) [rows, cols] of `dtype`, row-major, from blocks. strides: (row, block) in bytes of each of three parts.

    Slots: result, three parts (unused ones any address), address of the float32 that scales the whole tensor (or any).
    """
    k = Kind(*kind)
    stream = result_bytes >= STREAM and cols * dtype.itemsize % 64 == 0 and k.span * dtype.itemsize % 64 == 0
    address = jit.compile_kernel(("dequantize", repr(k), dtype.name, stream), lambda: row_module(dequantize_row(k, dtype.name, stream), stream))
    return descriptor(address, rows, cols, block, cols * dtype.itemsize, strides, result_bytes)


def descriptor(address, rows, cols, block, row_stride, strides, result_bytes):
    blocks = -(-cols // block)
    work = rows * cols
    words = [rows, blocks, block, cols, row_stride, *(s for pair in strides for s in pair)]
    return native.pack_desc(address, 2 + PARTS, max(1, min(native.parts_for(work, GRAIN), rows * blocks)), work >= 2 * GRAIN, result_bytes, words)


# ---- the walk -------------------------------------------------------------------------------------------------------------------


def _kernel(f: Function, word) -> None:
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


def row_module(row: Function, stream: bool = False) -> str:
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", "nounwind", linkage="dso_local")
    _kernel(f, cast_words(f))
    extra = "!900 = !{i32 1}\n"
    if stream and jit.host().arch == "x86_64":
        extra += "declare void @llvm.x86.sse.sfence()\n"
        f.do("call void @llvm.x86.sse.sfence()")  # streamed lines are ordered before the signal that this part is done
    return module(row, f, extra=extra)


def cast_words(f: Function) -> dict[str, str]:
    return {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}


def row_function() -> Function:
    parts = ", ".join(f"ptr noalias %p{p}" for p in range(PARTS))
    return Function("row", f"ptr noalias readonly %desc, ptr noalias %plain, {parts}, i64 %start, i64 %stop, float %ts", jit.host().attributes + " noinline")


class Blocks:
    """The loops of one row over its blocks and their spans. `size` is known when the text is written where blocks are short or fixed."""

    def __init__(self, f: Function, k: Kind, itemsize: int):
        self.f, self.k, self.itemsize = f, k, itemsize
        self.word = cast_words(f)
        self.text = BlockText(f, k)

    def each(self, emit) -> None:
        """emit(parts of the block, its first element, elements of it that exist (i64)): whole blocks first, with `exist` None where that is all of them."""
        f, w = self.f, self.word
        whole = f.min("%stop", f.div(w["cols"], self.k.size or w["block"]))
        with f.loop("%start", whole) as g:
            emit(self.parts_at(g), f.mul(g, self.k.size or w["block"]), None)
        with f.when(f.compare("slt", f.call("i64", "llvm.smax.i64", f"i64 {whole}", "i64 %start"), "%stop")):  # the last one is padded
            first = f.mul(whole, self.k.size or w["block"])
            emit(self.parts_at(whole), first, f.sub(w["cols"], first))

    def parts_at(self, g):
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
    f = row_function()
    memory = TYPES[dtype][0]
    b = Blocks(f, k, SIZES[memory])
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


# ---- what products with blocks share ------------------------------------------------------------------------------------------


def words_of(f: Function) -> dict[str, str]:
    """The words of a product's descriptor."""
    return {**cast_words(f), **{name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(PRODUCT_WORDS) if i >= len(WORDS)}}


def load_x(f: Function, dtype: str, x, w, copy) -> None:
    """X [m, cols] as float32 into copy [m, wide], zeros behind each row."""
    memory = TYPES[dtype][0]
    with f.loop(0, w["m"]) as m:
        source, target = f.at("i8", x, f.mul(m, w["row_x"])), f.at("float", copy, f.mul(m, w["wide"]))
        with f.loop(0, w["cols"]) as i:
            f.store("float", f.decode(dtype, f.load(memory, f.at(memory, source, i)), 1, jit.host().half), f.at("float", target, i))
        with f.loop(w["cols"], w["wide"]) as i:
            f.store("float", "0.0", f.at("float", target, i))


def store_y(f: Function, dtype: str, bias: str | None, total, column, slots, place) -> None:
    """One finished sum, with the bias of its column, rounded once."""
    if bias:
        memory = TYPES[bias][0]
        total = f.plus("float", 1, total, f.decode(bias, f.load(memory, f.at(memory, slots[6], column)), 1, jit.host().half))
    f.store(TYPES[dtype][0], f.encode(dtype, total, 1, jit.host().half), place)
