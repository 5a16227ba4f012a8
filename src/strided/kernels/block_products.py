"""Products with a matrix in blocks: Y [m, n] = X [m, k] @ W [n, k]^T (+ bias [n]), W decoded a tile at a time and never unpacked in memory: `build_product`.

Each part decodes a few rows of W, a stretch of k at a time, into scratch that stays in its caches, and multiplies all rows of X with them. That kernel is here; those
that decode in registers, for up to four rows of X, are block_dots.py and block_few.py, and that of some dozens of rows is block_thin.py.
"""
from __future__ import annotations

import struct

from . import block_dots, block_few, block_lanes, block_thin, jit, native
from .block_casts import PARTS, SLOTS, dequantize_row, load_x, store_y, words_of
from .block_text import Kind
from .gemm_text import TYPES, Function, module, vector
from .gemv_ir import horizontal
from .matmul import shares, tile_for
from .runtime_pool import SHARING
from .scratch import SCRATCH, allocate

STRETCH = 1024  # elements of k that are decoded together, about
GRAIN = 1 << 16  # multiply-adds a part should have at least
THIN = 14  # rows of X from which sums stand in lanes of them (block_thin.py)
X_PAD = 256  # X is copied with zeros behind up to a multiple of so many elements
MOST = 256  # rows of X up to which these kernels serve; more are worth a packed product
HELD = 1 << 21  # elements of X that a part holds, at most, where rows are more than 64


def tile() -> tuple[int, int, int]:
    """(lanes, rows of X, rows of W): as many sums as the registers hold beside a vector of each."""
    host = jit.host()
    if host.vector_bits == 512 or host.arch == "aarch64":
        return host.vector_bits // 32, 4, 6
    return host.vector_bits // 32, 2, 4


def build_product(kind: tuple, dtype, bias, m: int, n: int, k: int, row_x: int, block: int, strides, result_bytes: int = 0) -> bytes:
    """Descriptor of Y [m, n] = X [m, k] @ W^T (+ bias): X and Y of `dtype`, rows of X `row_x` bytes apart, sums in float32. bias: its dtype, or None.

    strides: (row, block) in bytes of each of W's three parts. Slots: Y, X, three parts, address of W's tensor scale, bias (or any address).
    """
    kd = Kind(*kind)
    bias_name = None if bias is None else bias.name
    lanes, _, nr = tile()
    target, team = STRETCH, False
    gaps = strides[0][1] != block * kd.bits // 8
    d = block_dots.dots()
    if d is not None and dtype.name != "float32" and block_dots.suits(kd, block) and block_lanes.serves(d, m, n, block, gaps):
        panels, t = block_lanes.heights(m, d), tile_for("float")
        address = jit.compile_kernel(
            ("block lanes", repr(kd), dtype.name, bias_name, block, gaps, repr(d), panels, t),
            lambda: block_lanes.text(kd, dtype.name, bias_name, block, gaps, d, panels, t, [_tiles(), _kernel(dtype.name, bias_name, "general")]),
        )
        nr, team = block_lanes.TALL, True
    elif block_dots.serves(kd, m, block) and (m == 1 or kd.bits == 4):
        address = jit.compile_kernel(
            ("block dots", repr(kd), dtype.name, bias_name, block, gaps, repr(d), tile()),
            lambda: block_dots.text(kd, dtype.name, bias_name, block, gaps, [_tiles(), _kernel(dtype.name, bias_name, "general")]),
        )
        assert d is not None
        nr, team = d.together, True
    elif _thin(kd, m, n):
        t, target = tile_for("float"), block_thin.CHAIN
        address = jit.compile_kernel(("block thin", repr(kd), dtype.name, bias_name, t, block), lambda: block_thin.text(kd, dtype.name, bias_name, t, block))
        nr = block_thin.thin(kd, t).tall
    elif m <= block_dots.MOST and block_few.serves(kd, block):
        address = jit.compile_kernel(("block few", repr(kd), dtype.name, bias_name, block), lambda: block_few.text(kd, dtype.name, bias_name, block))
        nr = block_few.tile()[1]
    else:
        address = jit.compile_kernel(("block product", repr(kd), dtype.name, bias_name, tile()), lambda: _product(kd, dtype.name, bias_name))
    each = max(1, target // block)
    stretch = each * block
    words = [n, -(-k // block), block, k, 0, *(s for pair in strides for s in pair)]
    words += [m, row_x, n * dtype.itemsize, _up(k, X_PAD), stretch, each, _up(min(stretch, _up(k, lanes)), lanes) + lanes]
    work, tiles = m * n * max(k, 1), -(-n // nr)
    parts = max(1, min(native.parts_for(work, GRAIN) if team else shares(work, GRAIN, 2), tiles))  # each prepares X anew
    desc = native.pack_desc(address, SLOTS, parts, work > 1 << 20, result_bytes, words)
    return desc[: 8 * SHARING] + struct.pack("<q", team) + desc[8 * SHARING + 8 :]


def serves(m: int, k: int) -> bool:
    """Whether these kernels take a product of m rows."""
    return m <= 64 or m <= MOST and m * k <= HELD


def _thin(kind: Kind, m: int, n: int) -> bool:
    """Whether the kernel of block_thin.py is the quicker one: lanes well filled, and tiles."""
    t = tile_for("float")
    return m >= THIN and 4 * m >= 3 * _up(m, t.width) and n >= 2 * block_thin.thin(kind, t).tall


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def _product(k: Kind, dtype: str, bias: str | None) -> str:
    return module(dequantize_row(k), _tiles(), _kernel(dtype, bias), extra=SCRATCH + "\n!900 = !{i32 1}")


def _tiles() -> Function:
    """sums [m, nr] += X [m, ldx] times `rows` rows of decoded W [nr, ldw], over `length` elements (a multiple of the lanes)."""
    lanes, mr, nr = tile()
    wide = vector("float", lanes)
    f = Function("tiles", "ptr noalias readonly %x, i64 %ldx, ptr noalias readonly %w, i64 %ldw, i64 %m, i64 %length, ptr noalias %sums", jit.host().attributes + " noinline")

    def block(m0, rows):
        cells = [[f.variable(wide, "zeroinitializer", 64) for _ in range(nr)] for _ in range(rows)]
        x = [f.at("float", "%x", f.mul(f.add(m0, r), "%ldx")) for r in range(rows)]
        w = [f.at("float", "%w", f.mul("%ldw", c)) for c in range(nr)]
        with f.loop(0, "%length", lanes) as i:
            left = [f.load(wide, f.at("float", p, i), 4) for p in x]
            for c in range(nr):
                right = f.load(wide, f.at("float", w[c], i), 4)
                for r in range(rows):
                    f.store(wide, f.fma("float", lanes, left[r], right, f.load(wide, cells[r][c], 64), jit.host().fma), cells[r][c], 64)
        for r in range(rows):
            for c in range(nr):
                place = f.at("float", "%sums", f.add(f.mul(f.add(m0, r), nr), c))
                total = horizontal(f, "float", lanes, f.load(wide, cells[r][c], 64))
                f.store("float", f.plus("float", 1, f.load("float", place), total), place)

    whole = f.mul(f.div("%m", mr), mr)
    with f.loop(0, whole, mr) as m0:
        block(m0, mr)
    with f.loop(whole, "%m") as m0:
        block(m0, 1)
    return f


def _kernel(dtype: str, bias: str | None, name: str = "kernel") -> Function:
    """The entry, whose share of W's rows follows from its part; or under another name a function for rows low … high."""
    lanes, _, nr = tile()
    alone = name == "kernel"
    f = Function(name, f"ptr %desc, ptr %slots, i64 {'%part, i64 %parts' if alone else '%low, i64 %high'}", "nounwind", linkage="dso_local" if alone else "internal")
    w = words_of(f)
    slots = [f.load("ptr", f.at("ptr", "%slots", n)) for n in range(7)]
    scale = f.load("float", slots[5], 4)
    low, high = "%low", "%high"
    if alone:
        items = f.ceil_div(w["rows"], nr)
        low, high = (f.mul(f.div(f.mul(items, part), "%parts"), nr) for part in ("%part", f.add("%part", 1)))
        high = f.min(high, w["rows"])
    with f.when(f.compare("slt", low, high)):
        cell = f.variable("ptr")
        x_size, w_size = f.mul(w["m"], w["wide"]), f.mul(w["pad"], nr)
        allocate(f, cell, f.mul(f.add(f.add(x_size, w_size), f.mul(w['m'], nr)), 4))
        x = f.load("ptr", cell)
        tile_w = f.at("float", x, x_size)
        sums = f.at("float", tile_w, w_size)
        load_x(f, dtype, slots[1], w, x)
        f.call("void", "llvm.memset.p0.i64", f"ptr {tile_w}", "i8 0", f"i64 {f.mul(w_size, 4)}", "i1 false")
        with f.loop(low, high, nr) as n0:
            here = f.min(nr, f.sub(high, n0))
            f.call("void", "llvm.memset.p0.i64", f"ptr {sums}", "i8 0", f"i64 {f.mul(w['m'], 4 * nr)}", "i1 false")
            with f.loop(0, w["blocks"], w["step"]) as g:
                stop = f.min(f.add(g, w["step"]), w["blocks"])
                first = f.mul(g, w["block"])
                length = f.min(w["stretch"], f.sub(w["cols"], first))
                whole = f.mul(f.ceil_div(length, lanes), lanes)
                with f.loop(0, here) as r:
                    row = f.add(n0, r)
                    target = f.at("float", tile_w, f.mul(r, w["pad"]))
                    parts = ", ".join(f"ptr {f.at('i8', slots[2 + p], f.mul(row, w[f'row{p}']))}" for p in range(PARTS))
                    f.do(f"call void @row(ptr %desc, ptr {f.at('float', target, f.sub(0, first))}, {parts}, i64 {g}, i64 {stop}, float {scale})")
                    with f.loop(length, whole) as i:  # a longer stretch before may have left numbers here
                        f.store("float", "0.0", f.at("float", target, i))
                f.do(f"call void @tiles(ptr {f.at('float', x, first)}, i64 {w['wide']}, ptr {tile_w}, i64 {w['pad']}, i64 {w['m']}, i64 {whole}, ptr {sums})")
            with f.loop(0, w["m"]) as m, f.loop(0, here) as r:
                column = f.add(n0, r)
                place = f.at(TYPES[dtype][0], f.at("i8", slots[0], f.mul(m, w["row_y"])), column)
                store_y(f, dtype, bias, f.load("float", f.at("float", sums, f.add(f.mul(m, nr), r))), column, slots, place)
        f.do(f"call void @free(ptr {x})")
    return f


