"""Some dozens of rows times a matrix in blocks: Y [m, n] = X [m, k] @ W [n, k]^T (+ bias [n]), by the walk of thin_ir.py over rows of W that become numbers a stretch at a time.

The descriptor is block_products.py's, which chooses between the kernels.
"""
from __future__ import annotations

from collections.abc import Iterator

from . import jit
from .block_casts import PARTS, dequantize_row, words_of
from .block_text import BlockText, Kind
from .gemm_pack import Kind as Product
from .gemm_pack import Tile, pack
from .gemm_text import SIZES, TYPES, Function, module, vector
from .scratch import SCRATCH, allocate
from .thin_ir import CHAIN, Thin, finish, pack_x, walk


def thin(kind: Kind, tile: Tile) -> Thin:
    return Thin(tile, "float", CHAIN, CHAIN * kind.bits // 8, tile.sums)


def text(kind: Kind, dtype: str, bias: str | None, tile: Tile, block: int) -> str:
    product = Product(dtype, dtype, dtype, bias or dtype, "add" if bias else "", tile)
    attributes = jit.host().attributes
    functions = [dequantize_row(kind), numbers(kind, block), pack(product, dtype, dtype, attributes), finish(product, attributes), *walk(thin(kind, tile), attributes), kernel(kind, product)]
    return module(*functions, extra=SCRATCH + "\n!900 = !{i32 1}")


def numbers(kind: Kind, block: int) -> Function:
    """Blocks first … last of some rows of W as floats, from `target` on, rows ld apart. The last block of a row may be padded: that one is @row's."""
    strides = ", ".join(f"ptr %p{p}, i64 %row{p}, i64 %step{p}" for p in range(PARTS))
    f = Function("numbers", f"ptr %desc, {strides}, i64 %rows, i64 %first, i64 %last, i64 %cols, float %ts, ptr noalias %target, i64 %ld", jit.host().attributes + " noinline")
    b = BlockText(f, kind)
    n = kind.span
    even = block % n == 0 and block // n <= 16  # spans are written out
    whole = f.min("%last", f.div("%cols", block)) if even else "%first"

    def decode(parts, place):
        if table_serves(kind):
            for value, element in by_table(b, parts, block):
                f.store("<16 x float>", value, f.at("float", place, element), 4)
            return
        stream = kind.order in ("bytes", "pairs", "sixes")
        factor = addend = zero = None
        for s in range(block // n):
            if factor is None or not stream:
                zero = b.zero_point(parts)
                factor, addend = b.scales(parts, s, "%ts")
            codes = b.codes(parts, s)
            f.store(vector("float", n), b.decoded(codes, n, zero, factor, addend), f.at("float", place, s * n), 4)

    with f.loop(0, "%rows") as r:
        row = f.at("float", "%target", f.mul(r, "%ld"))
        starts = [f.at("i8", f"%p{p}", f.mul(r, f"%row{p}")) for p in range(PARTS)]
        if even:
            with f.loop("%first", whole) as g:
                decode([f.at("i8", start, f.mul(g, f"%step{p}")) for p, start in enumerate(starts)], f.at("float", row, f.mul(f.sub(g, "%first"), block)))
        with f.when(f.compare("slt", whole, "%last")):
            origin = f.at("float", row, f.sub(0, f.mul("%first", block)))
            f.do(f"call void @row(ptr %desc, ptr {origin}, {', '.join(f'ptr {start}' for start in starts)}, i64 {whole}, i64 %last, float %ts)")
    return f


def table_serves(kind: Kind) -> bool:
    """Whether the numbers of a block, or of a span of it, are looked up in one register: sixteen of them, under one scale."""
    host = jit.host()
    return kind.bits == 4 and kind.order in ("pairs", "halves", "k4") and host.vector_bits == 512 and host.arch == "x86_64"


def by_table(b: BlockText, parts, block: int) -> Iterator[tuple[str, int]]:
    """(sixteen numbers, element of the first) for all of a block: its codes stand for sixteen numbers, decoded once, and a shuffle looks at four bits of each lane."""
    f, kind = b.f, b.kind
    every = "<" + ", ".join(f"i8 {code}" for code in range(16)) + ">"
    first = lambda value: None if value is None else f.op(f"shufflevector <{kind.span} x float> {value}, <{kind.span} x float> poison, <16 x i32> zeroinitializer")
    f.declared.add("declare <16 x float> @llvm.x86.avx512.permvar.sf.512(<16 x float>, <16 x i32>)")

    def table_of(span):
        factor, addend = b.scales(parts, span, "%ts")
        return b.decoded(every, 16, b.zero_point(parts), first(factor), first(addend))

    def found(index, table):
        return f.op(f"call <16 x float> @llvm.x86.avx512.permvar.sf.512(<16 x float> {table}, <16 x i32> {index})")

    if kind.order != "pairs":  # low nibbles are the elements of one stretch, high nibbles those of the next: of sixteen elements, or of a span with a scale of its own
        apart = 16 if kind.order == "halves" else kind.span
        for start in range(0, block, 2 * apart):
            tables = [table_of(0)] * 2 if kind.order == "halves" else [table_of(start // apart), table_of(start // apart + 1)]
            for at in range(0, apart, 16):
                low = f.op(f"zext <16 x i8> {f.load('<16 x i8>', b.field(parts, 'codes', start // 2 + at), 1)} to <16 x i32>")
                yield found(low, tables[0]), start + at
                yield found(f.op(f"lshr <16 x i32> {low}, {f.constant('i32', 4, 16)}"), tables[1]), start + apart + at
        return
    table = table_of(0)
    for element in range(0, block, 16):
        pairs = f.op(f"zext <8 x i8> {f.load('<8 x i8>', b.field(parts, 'codes', element // 2), 1)} to <8 x i64>")
        both = f.op(f"or <8 x i64> {pairs}, {f.op(f'shl <8 x i64> {pairs}, ' + f.constant('i64', 28, 8))}")  # the high nibble begins the upper half
        yield found(f.op(f"bitcast <8 x i64> {both} to <16 x i32>"), table), element


def kernel(kind: Kind, product: Product) -> Function:
    t, s, size = product.tile, thin(kind, product.tile), SIZES[TYPES[product.c][0]]
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", "nounwind", linkage="dso_local")
    w = words_of(f)
    slots = [f.load("ptr", f.at("ptr", "%slots", n)) for n in range(7)]
    scale = f.load("float", slots[5], 4)
    items = f.ceil_div(w["rows"], s.tall)
    low, high = (f.mul(f.div(f.mul(items, part), "%parts"), s.tall) for part in ("%part", f.add("%part", 1)))
    high = f.min(high, w["rows"])
    with f.when(f.compare("slt", low, high)):
        lds = f.mul(f.ceil_div(w["m"], t.width), t.width)
        numbers, sums = f.mul(w["pad"], s.tall), f.mul(lds, s.square)
        cell = f.variable("ptr")
        allocate(f, cell, f.mul(f.add(f.add(numbers, sums), f.add(f.mul(lds, w['cols']), t.nr)), 4))
        base = f.load("ptr", cell)
        held = f.at("float", base, numbers)
        panels = f.at("float", held, sums)
        f.call("void", "llvm.memset.p0.i64", f"ptr {base}", "i8 0", f"i64 {f.mul(numbers, 4)}", "i1 false")  # rows that are not there are zeros, not slow garbage
        pack_x(f, t, "float", product.a, size, slots[1], f.div(w["row_x"], size), "1", w["m"], lds, w["cols"], panels)
        with f.loop(low, high, s.tall) as n0:
            here = f.min(s.tall, f.sub(high, n0))
            f.call("void", "llvm.memset.p0.i64", f"ptr {held}", "i8 0", f"i64 {f.mul(lds, 4 * s.square)}", "i1 false")
            starts = [f.at("i8", slots[2 + p], f.mul(n0, w[f"row{p}"])) for p in range(PARTS)]
            after = f.at("i8", starts[0], f.mul(w["row0"], s.tall))
            with f.loop(0, w["blocks"], w["step"]) as g:
                end = f.add(g, w["step"])
                stop = f.min(end, w["blocks"])
                first = f.mul(g, w["block"])
                length = f.min(w["stretch"], f.sub(w["cols"], first))
                parts = ", ".join(f"ptr {starts[p]}, i64 {w[f'row{p}']}, i64 {w[f'step{p}']}" for p in range(PARTS))
                f.do(f"call void @numbers(ptr %desc, {parts}, i64 {here}, i64 {g}, i64 {stop}, i64 {w['cols']}, float {scale}, ptr {base}, i64 {w['pad']})")
                more = f.compare("slt", end, w["blocks"])
                next_ = f.op(f"select i1 {more}, ptr {f.at('i8', starts[0], f.mul(end, w['step0']))}, ptr {after}")
                f.do(
                    f"call void @stretch(ptr {panels}, i64 {w['cols']}, i64 {lds}, i64 {first}, i64 {length}, i64 {here}, ptr {base}, i64 {w['pad']}, ptr {held}, "
                    f"ptr {next_}, i64 {w['row0']})"
                )
            f.do(
                f"call void @finish(ptr {held}, i64 {lds}, i64 {w['m']}, i64 {here}, i64 {n0}, ptr {slots[0]}, i64 {f.div(w['row_y'], size)}, i64 1, ptr {slots[6]}, i64 0, i64 1, "
                f"float 1.0, float 1.0)"
            )
        f.do(f"call void @free(ptr {base})")
    return f
