"""A few rows times a matrix in blocks: Y [m, n] = X [m, k] @ W [n, k]^T (+ bias [n]). Codes become numbers in registers, for up to four rows of X at a time.

The descriptor is block_products.py's, which chooses between the kernels; block_dots.py is quicker where the host multiplies bytes and they need not be shared.
"""
from __future__ import annotations

from . import jit
from .block_casts import PARTS, dequantize_row, load_x, store_y, words_of
from .block_text import BlockText, Kind
from .block_thin import by_table, table_serves
from .gemm_text import Function, module, vector
from .gemv_ir import horizontal
from .scratch import SCRATCH, allocate

LARGEST = 256  # elements of a block, at most: its decoding is written out


def tile() -> tuple[int, int]:
    """(rows of X, rows of W) that are multiplied together: their sums stay in registers, with a vector of each."""
    host = jit.host()
    return (4, 4) if host.vector_bits == 512 or host.arch == "aarch64" else (2, 3)


def serves(kind: Kind, block: int) -> bool:
    return block <= LARGEST and block % kind.span == 0


def text(kind: Kind, dtype: str, bias: str | None, block: int) -> str:
    rows, columns = tile()
    heights = [rows >> i for i in range(rows.bit_length())]
    functions = [dequantize_row(kind), *(sums(kind, block, r, c) for r in heights for c in (columns, 1)), kernel(kind, dtype, bias, block)]
    return module(*functions, extra=SCRATCH + "\n!900 = !{i32 1}")


def sums(kind: Kind, block: int, rows: int, columns: int) -> Function:
    """totals [rows, columns]: `rows` rows of X (ldx apart, zeros behind) times `columns` rows of W."""
    host = jit.host()
    lanes = host.vector_bits // 32
    strides = ", ".join(f"ptr %p{p}, i64 %row{p}, i64 %step{p}" for p in range(PARTS))
    f = Function(
        f"sums_{rows}_{columns}",
        f"ptr %desc, ptr noalias readonly %x, i64 %ldx, {strides}, i64 %whole, i64 %blocks, float %ts, ptr noalias %tail, ptr noalias %totals", host.attributes + " noinline",
    )  # fmt: skip
    b, n = BlockText(f, kind), kind.span
    wide = vector("float", lanes)
    cells = [[f.variable(wide, "zeroinitializer", 64) for _ in range(columns)] for _ in range(rows)]
    xs = [f.at("float", "%x", f.mul("%ldx", r)) for r in range(rows)]
    starts = [[f.at("i8", f"%p{p}", f.mul(f"%row{p}", c)) for p in range(PARTS)] for c in range(columns)]

    def add(c, numbers, size, element):
        """Adds the products of `size` numbers of row c of W, which begin at this element."""
        for at in range(0, size, lanes):
            some = numbers
            if size > lanes:
                some = f.op(f"shufflevector {vector('float', size)} {numbers}, {vector('float', size)} poison, <{lanes} x i32> <" + ", ".join(f"i32 {at + i}" for i in range(lanes)) + ">")
            for r in range(rows):
                x = f.load(wide, f.at("float", xs[r], f.add(element, at)), 4)
                f.store(wide, f.fma("float", lanes, some, x, f.load(wide, cells[r][c], 64), host.fma), cells[r][c], 64)

    stream = kind.order in ("bytes", "pairs", "sixes")
    with f.loop(0, "%whole") as g:
        first = f.mul(g, block)
        parts = [[f.at("i8", start, f.mul(g, f"%step{p}")) for p, start in enumerate(row)] for row in starts]
        if table_serves(kind):
            for found in zip(*(by_table(b, parts[c], block) for c in range(columns))):  # row by row of W in turn: they share what is read of X
                for c, (value, element) in enumerate(found):
                    add(c, value, 16, f.add(first, element))
        else:
            scales: list = [None] * columns
            for s in range(block // n):
                for c in range(columns):
                    if s == 0 or not stream:
                        scales[c] = (b.zero_point(parts[c]), *b.scales(parts[c], s, "%ts"))
                    add(c, b.decoded(b.codes(parts[c], s), n, *scales[c]), n, f.add(first, s * n))
    with f.when(f.compare("slt", "%whole", "%blocks")):  # the padded block: numbers in memory, zeros behind them
        first = f.mul("%whole", block)
        for c in range(columns):
            f.call("void", "llvm.memset.p0.i64", "ptr %tail", "i8 0", f"i64 {4 * block}", "i1 false")
            f.do(f"call void @row(ptr %desc, ptr {f.at('float', '%tail', f.sub(0, first))}, {', '.join(f'ptr {p}' for p in starts[c])}, i64 %whole, i64 %blocks, float %ts)")
            with f.loop(0, block, lanes) as i:
                add(c, f.load(wide, f.at("float", "%tail", i), 4), lanes, f.add(first, i))
    for r in range(rows):
        for c in range(columns):
            f.store("float", horizontal(f, "float", lanes, f.load(wide, cells[r][c], 64)), f.at("float", "%totals", r * columns + c))
    return f


def kernel(kind: Kind, dtype: str, bias: str | None, block: int) -> Function:
    rows, columns = tile()
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", "nounwind", linkage="dso_local")
    w = words_of(f)
    slots = [f.load("ptr", f.at("ptr", "%slots", n)) for n in range(7)]
    scale = f.load("float", slots[5], 4)
    items = f.ceil_div(w["rows"], columns)
    low, high = (f.mul(f.div(f.mul(items, part), "%parts"), columns) for part in ("%part", f.add("%part", 1)))
    high = f.min(high, w["rows"])
    with f.when(f.compare("slt", low, high)):
        cell = f.variable("ptr")
        x_size = f.mul(w["m"], w["wide"])
        allocate(f, cell, f.mul(f.add(x_size, LARGEST), 4))
        x = f.load("ptr", cell)
        tail = f.at("float", x, x_size)
        load_x(f, dtype, slots[1], w, x)
        totals = f.variable(f"[{rows * columns} x float]", align=64)
        whole = f.div(w["cols"], block)

        def some(n0, count, at):
            first = f.variable("i64", 0)
            height = rows
            while height:
                last = f.add(f.load("i64", first), f.mul(f.div(f.sub(w["m"], f.load("i64", first)), height), height))
                with f.loop(f.load("i64", first), last, height) as m0:
                    parts = ", ".join(f"ptr {at[p]}, i64 {w[f'row{p}']}, i64 {w[f'step{p}']}" for p in range(PARTS))
                    f.do(
                        f"call void @sums_{height}_{count}(ptr %desc, ptr {f.at('float', x, f.mul(m0, w['wide']))}, i64 {w['wide']}, {parts}, i64 {whole}, i64 {w['blocks']}, "
                        f"float {scale}, ptr {tail}, ptr {totals})"
                    )
                    with f.loop(0, height) as r, f.loop(0, count) as c:
                        column = f.add(n0, c)
                        place = f.at("i8", f.at("i8", slots[0], f.mul(f.add(m0, r), w["row_y"])), f.mul(column, 4 if dtype == "float32" else 2))
                        store_y(f, dtype, bias, f.load("float", f.at("float", totals, f.add(f.mul(r, count), c))), column, slots, place)
                f.store("i64", last, first)
                height //= 2

        at = lambda n0: [f.at("i8", slots[2 + p], f.mul(n0, w[f"row{p}"])) for p in range(PARTS)]
        together = f.add(low, f.mul(f.div(f.sub(high, low), columns), columns))
        with f.loop(low, together, columns) as n0:
            some(n0, columns, at(n0))
        with f.loop(together, high) as n0:
            some(n0, 1, at(n0))
        f.do(f"call void @free(ptr {x})")
    return f
