"""Instructions that multiply groups of elements along k and add them up in wider sums: what they take, which one a host has, and how operands are packed for them.

One word of a pack holds `group` elements of one row of A (or one column of B) that follow one another along k; what is missing at the end of k is zero. Packs of words
are laid out as packs of numbers are, so that the loops of gemm_rectangle.py and the epilogue serve both. The instructions come in three forms:

    lanes    sum [lanes] += the group of one row of A (broadcast) . the groups of `lanes` columns of B     dpbf16ps, vpdpbusd, vpdpwssd, pmaddwd, bfdot, sdot
    blocks   sum [2, 2] += groups of two rows of A . groups of two columns of B                            bfmmla, smmla
    tiles    sum [16, 16] += rows of 16 groups of A . 16 rows of groups of B, in registers of their own    tdpbf16ps, tdpfp16ps, tdpbssd, tdpbuud

bfloat16 products by them treat subnormal numbers as zero, as the instructions do; sums are float32's. Bytes for vpdpbusd are unsigned times signed: A's are moved by 128, and
the sums start at what that adds, taken off, which stands before B's panels.
"""
from __future__ import annotations

import sys
from functools import cache
from typing import NamedTuple

from . import jit
from .gemm_text import SIZES, TYPES, Function, masked_load, transposed, vector

CONFIG = 64  # bytes of the tile configuration
TILE = 16  # rows of a tile, and words of a row


class Dot(NamedTuple):
    """One instruction. element: of packs ("bf16", "f16", "i16", "i8", "u8"); group: elements in a word; dtypes: kernels' names of the operands that it takes as they are or exactly."""

    name: str
    form: str
    element: str
    group: int
    dtypes: tuple[str, ...]

    @property
    def bits(self) -> int:
        return int(self.element[-2:].lstrip("iu"))

    @property
    def word(self) -> str:
        return f"i{self.bits * self.group}"

    @property
    def words(self) -> int:
        """Words along k are a multiple of this."""
        return TILE if self.form == "tiles" else 1

    @property
    def moved(self) -> int:
        """What is added to the elements of A."""
        return 128 if self.name == "vpdpbusd" else 0

    def depth(self, k: int) -> int:
        """Words that k elements fill, with what is zero behind them."""
        return -(-k // (self.group * self.words)) * self.words


_BF16, _F16, _I8, _U8, _I16 = ("bfloat16", "float32_bf16"), ("float16",), ("int8",), ("uint8", "bool"), ("int8", "uint8", "bool", "int16")
DOTS = {
    dot.name: dot
    for dot in (
        Dot("dpbf16ps", "lanes", "bf16", 2, _BF16), Dot("bfdot", "lanes", "bf16", 2, _BF16), Dot("bfmmla", "blocks", "bf16", 4, _BF16), Dot("tdpbf16ps", "tiles", "bf16", 2, _BF16),
        Dot("tdpfp16ps", "tiles", "f16", 2, _F16), Dot("vpdpbusd", "lanes", "i8", 4, _I8), Dot("sdot", "lanes", "i8", 4, _I8), Dot("smmla", "blocks", "i8", 8, _I8),
        Dot("tdpbssd", "tiles", "i8", 4, _I8), Dot("tdpbuud", "tiles", "u8", 4, _U8), Dot("vpdpwssd", "lanes", "i16", 2, _I16), Dot("pmaddwd", "lanes", "i16", 2, _I16),
    )
}  # fmt: skip

# What a host must have, the best first.
_WANTED = (
    ("tdpbf16ps", {"+amx-tile", "+amx-bf16"}), ("tdpfp16ps", {"+amx-tile", "+amx-fp16"}), ("tdpbssd", {"+amx-tile", "+amx-int8"}), ("tdpbuud", {"+amx-tile", "+amx-int8"}),
    ("dpbf16ps", {"+avx512bf16"}), ("bfmmla", {"+bf16"}), ("smmla", {"+i8mm"}), ("sdot", {"+dotprod"}),
)  # fmt: skip


def dot_for(a: str, b: str, host: jit.Host, tiles: bool) -> Dot | None:
    """The instruction by which this host multiplies operands of these names; None where it has none. tiles: whether the product is large enough for tiles."""
    for name, features in (*_WANTED, *_integers(host)):
        dot = DOTS[name]
        if a in dot.dtypes and b in dot.dtypes and features <= host.features and (dot.form != "tiles" or tiles and permitted()):
            return dot
    return None


def _integers(host: jit.Host):
    """Integer dot products of x86, by the width of the host's vectors."""
    if host.arch != "x86_64":
        return ()
    if host.vector_bits == 512:
        return ("vpdpbusd", {"+avx512vnni"}), ("vpdpwssd", {"+avx512vnni"}), ("pmaddwd", {"+avx512bw"})
    return ("vpdpbusd", {"+avxvnni"}), ("vpdpwssd", {"+avxvnni"}), ("pmaddwd", {"+avx2"})


@cache
def permitted() -> bool:
    """Whether this process may use the tile registers: Linux gives their state to a process that has asked once, for all of its threads and children.

    It refuses where a thread has an alternative signal stack that could not hold the state; signal stacks that are set up later must be as large as AT_MINSIGSTKSZ says.
    """
    if sys.platform != "linux":
        return False
    import ctypes

    prctl, get, request, tile_data = 158, 0x1022, 0x1023, 18  # arch_prctl(2) of x86-64: ARCH_GET_XCOMP_PERM, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype, call.argtypes = ctypes.c_long, (ctypes.c_long, ctypes.c_long, ctypes.c_void_p)
    if call(prctl, request, tile_data):
        return False
    given = ctypes.c_uint64(0)
    return call(prctl, get, ctypes.addressof(given)) == 0 and bool(given.value >> tile_data & 1)


# ---- multiplying ----------------------------------------------------------------------------------------------------


def multiply(f: Function, dot: Dot, acc: str, lanes: int, sums: str, a: str, b: str) -> str:
    """sums + the products of the groups in a and b, all of them vectors (form lanes or blocks)."""
    wide, words = vector(acc, lanes), vector(dot.word, lanes * 32 // (dot.bits * dot.group))
    bits = lanes * 32
    if dot.name in ("dpbf16ps", "bfdot", "bfmmla"):
        operand = vector("bfloat", bits // 16)
        name = {"dpbf16ps": f"llvm.x86.avx512bf16.dpbf16ps.{bits}", "bfdot": "llvm.aarch64.neon.bfdot.v4f32.v8bf16", "bfmmla": "llvm.aarch64.neon.bfmmla"}[dot.name]
    elif dot.name in ("sdot", "smmla"):
        operand, name = vector("i8", bits // 8), f"llvm.aarch64.neon.{dot.name}.v4i32.v16i8"
    elif dot.name == "pmaddwd":
        operand, name = vector("i16", bits // 16), "llvm.x86.avx512.pmaddw.d.512" if bits == 512 else "llvm.x86.avx2.pmadd.wd"
    else:
        operand, name = wide, f"llvm.x86.avx512.{dot.name}.{bits}"
    a, b = (v if operand == words else f.op(f"bitcast {words} {v} to {operand}") for v in (a, b))
    if dot.name == "pmaddwd":
        return f.plus(acc, lanes, sums, f.call(wide, name, f"{operand} {a}", f"{operand} {b}"))
    return f.call(wide, name, f"{wide} {sums}", f"{operand} {a}", f"{operand} {b}")


def rows_of_blocks(f: Function, acc: str, left: str, right: str) -> tuple[str, str]:
    """Two rows of four sums from two sums of 2 x 2 that are neighbours."""
    order = ("i32 0, i32 1, i32 4, i32 5", "i32 2, i32 3, i32 6, i32 7")
    first, second = (f.op(f"shufflevector <4 x {acc}> {left}, <4 x {acc}> {right}, <4 x i32> <{o}>") for o in order)
    return first, second


def tile_micro(dot: Dot, height: int, nr: int, attributes: str) -> Function:
    """tile [height, nr] = A [height, k] . B [k, nr] of words, k a multiple of TILE; A's rows are k words long, B's and the tile's nr. Sums are tiles 0 … 3, operands 4 … 7."""
    f = Function(f"micro_{height}", "i64 %k, ptr noalias readonly %a, ptr noalias readonly %b, ptr noalias %tile", attributes + " noinline")
    down, across = height // TILE, nr // TILE
    each = [(r, c) for r in range(down) for c in range(across)]
    for r, c in each:
        f.call("void", "llvm.x86.tilezero", f"i8 {r * across + c}")
    step_a, step_b = f.mul("%k", 4), str(nr * 4)
    with f.loop(0, "%k", TILE) as k:
        for r in range(down):
            f.call("void", "llvm.x86.tileloadd64", f"i8 {4 + r}", f"ptr {f.at('i32', '%a', f.add(k, f.mul('%k', r * TILE) if r else 0))}", f"i64 {step_a}")
        for c in range(across):
            f.call("void", "llvm.x86.tileloadd64", f"i8 {6 + c}", f"ptr {f.at('i32', '%b', f.add(f.mul(k, nr), c * TILE))}", f"i64 {step_b}")
        for r, c in each:
            f.call("void", f"llvm.x86.{dot.name}", f"i8 {r * across + c}", f"i8 {4 + r}", f"i8 {6 + c}")
    for r, c in each:
        f.call("void", "llvm.x86.tilestored64", f"i8 {r * across + c}", f"ptr {f.at('i32', '%tile', r * TILE * nr + c * TILE)}", f"i64 {step_b}")
    return f


def open_tiles(f: Function) -> None:
    """Configures all eight tiles as 16 rows of 64 bytes; `close_tiles` gives their state back before the kernel returns."""
    config = f.variable(f"[{CONFIG} x i8]", align=64)
    f.call("void", "llvm.memset.p0.i64", f"ptr {config}", "i8 0", f"i64 {CONFIG}", "i1 false")
    f.store("i8", 1, config)  # the palette
    for tile in range(8):
        f.store("i16", 4 * TILE, f.at("i8", config, 16 + 2 * tile))
        f.store("i8", TILE, f.at("i8", config, 48 + tile))
    f.call("void", "llvm.x86.ldtilecfg", f"ptr {config}")


def close_tiles(f: Function) -> None:
    f.declared.add("declare void @llvm.x86.tilerelease()")
    f.do("call void @llvm.x86.tilerelease()")


# ---- packing --------------------------------------------------------------------------------------------------------


class Groups:
    """Writes how elements in memory become words: for the functions below."""

    def __init__(self, f: Function, dot: Dot, dtype: str, lanes: int, left: bool):
        self.f, self.dot, self.dtype, self.lanes = f, dot, dtype, lanes
        self.memory = TYPES[dtype][0]
        self.size = SIZES[self.memory]
        self.moved = dot.moved if left else 0

    def elements(self, value: str, count: int) -> str:
        """Memory -> elements of packs: integers of dot.bits bits."""
        f, bits = self.f, self.dot.bits
        if self.memory == "float":  # rounded to bfloat16 as it is read
            value = f.encode("bfloat16", value, count, False)
        elif SIZES[self.memory] * 8 < bits:
            how = "sext" if self.dtype.startswith("int") else "zext"
            value = f.op(f"{how} {vector(self.memory, count)} {value} to {vector(f'i{bits}', count)}")
        if self.moved:
            value = f.op(f"add {vector(f'i{bits}', count)} {value}, {f.constant(f'i{bits}', self.moved, count)}")
        return value

    def load(self, pointer: str, count: int) -> str:
        return self.elements(self.f.load(vector(self.memory, count), pointer, self.size), count)

    def interleaved(self, rows: list[str], count: int) -> str:
        """Vectors of `count` words from the vectors of elements of a group's rows."""
        f, bits = self.f, self.dot.bits
        while len(rows) > 1:
            type_, n = vector(f"i{bits}", count), len(rows) // 2
            order = ", ".join(f"i32 {i + side * count}" for i in range(count) for side in (0, 1))
            rows = [f.op(f"shufflevector {type_} {rows[i]}, {type_} {rows[i + n]}, <{2 * count} x i32> <{order}>") for i in range(n)]
            count *= 2
        words = count // self.dot.group
        return f.op(f"bitcast {vector(f'i{bits}', count)} {rows[0]} to {vector(self.dot.word, words)}")

    def word(self, source: str, step, first, k) -> str:
        """One word, element by element: those from k on are zero."""
        f, dot = self.f, self.dot
        slot = f.variable(dot.word, 0)
        for e in range(dot.group):
            at = f.add(first, e)
            with f.when(f.compare("slt", at, k)):
                value = self.elements(f.load(self.memory, f.at(self.memory, source, f.mul(at, step)), self.size), 1)
                value = f.op(f"zext i{dot.bits} {value} to {dot.word}")
                value = f.op(f"shl {dot.word} {value}, {e * dot.bits}") if e else value
                f.store(dot.word, f.op(f"or {dot.word} {f.load(dot.word, slot)}, {value}"), slot)
        return f.load(dot.word, slot)


ARGUMENTS = "ptr noalias %src, i64 %sp, i64 %sk, i64 %count, i64 %k, ptr noalias %dst, i64 %ld"


def pack_groups(name: str, dot: Dot, dtype: str, width: int, masks: bool, left: bool, attributes: str) -> Function:
    """`pack` of gemm_pack.py for words: `count` vectors of length k, strides `sp` across and `sk` along, into dst [groups][ld]. Lanes past `count` may hold any elements.

    Whole vectors are stored as they are there: a panel narrower than a vector is written in ascending k, and behind the last row a vector's room must be free.
    """
    f = Function(name, ARGUMENTS, attributes + " noinline")
    g = Groups(f, dot, dtype, width, left)
    word, size, w, group = dot.word, SIZES[dot.word], width, dot.group
    whole = f.div("%k", group)
    groups = f.ceil_div("%k", group)
    last = f.sub("%count", 1)
    back = f.call("i64", "llvm.smax.i64", f"i64 {f.sub('%ld', w)}", "i64 0")

    def put(value, at, lane):
        f.store(vector(word, w), value, f.at(word, "%dst", f.add(f.mul(at, "%ld"), lane)), size)

    def across():  # the panel's direction is contiguous: rows of a group are interleaved
        with f.loop(0, whole) as at, f.loop(0, "%ld", w) as j:
            lane = f.min(j, back)
            mask = f.lanes_below(f.sub("%count", lane), w) if masks else None
            places = [f.at(g.memory, "%src", f.add(f.mul(f.add(f.mul(at, group), e), "%sk"), lane)) for e in range(group)]
            rows = [g.elements(masked_load(f, g.memory, w, p, mask), w) if masks else g.load(p, w) for p in places]
            put(g.interleaved(rows, w), at, lane)

    def along():  # k is contiguous, so that groups are words already: transpose squares of w x w of them
        with f.loop(0, "%ld", w) as j:
            lane = f.min(j, back)
            with f.loop(0, whole, w) as at0:
                at = f.min(at0, f.sub(whole, w))
                rows = []
                for r in range(w):
                    source = f.at(g.memory, "%src", f.add(f.mul(f.min(f.add(lane, r), last), "%sp"), f.mul(at, group)))
                    rows.append(f.op(f"bitcast <{w * group} x i{dot.bits}> {g.load(source, w * group)} to {vector(word, w)}"))
                for c, column in enumerate(transposed(f, word, rows)):
                    put(column, f.add(at, c), lane)

    unit = f.compare("eq", "%sp", 1)
    if not masks:
        unit = f.both(unit, f.compare("eq", "%count", "%ld"), f.compare("sge", "%ld", w))
    square = f.both(f.compare("eq", "%sk", 1), f.compare("sge", whole, w))
    start = f.variable("i64", whole)
    f.choose(unit, across, lambda: f.choose(square, along, lambda: f.store("i64", 0, start)))
    with f.loop(f.load("i64", start), groups) as at, f.loop(0, "%ld") as lane:  # what is left, one by one
        source = f.at(g.memory, "%src", f.mul(f.min(lane, last), "%sp"))
        f.store(word, g.word(source, "%sk", f.mul(at, group), "%k"), f.at(word, "%dst", f.add(f.mul(at, "%ld"), lane)), size)
    return f


def pack_rows_of_groups(name: str, dot: Dot, dtype: str, attributes: str) -> Function:
    """The left operand of tiles: dst [count][depth] words, each row's groups behind one another."""
    f = Function(name, ARGUMENTS, attributes + " noinline")
    g = Groups(f, dot, dtype, TILE, True)
    word, size, w, group = dot.word, SIZES[dot.word], TILE, dot.group
    groups = f.ceil_div("%k", group)
    depth = f.mul(f.ceil_div(groups, w), w)
    squares = f.mul(f.div("%k", group * w), w)  # words in whole vectors
    done = f.variable("i64", 0)  # rows of which these are there

    def put(value, row, at):
        f.store(vector(word, w), value, f.at(word, "%dst", f.add(f.mul(row, depth), at)), size)

    def along():
        with f.loop(0, "%count") as row, f.loop(0, squares, w) as at:
            value = g.load(f.at(g.memory, "%src", f.add(f.mul(row, "%sp"), f.mul(at, group))), w * group)
            put(f.op(f"bitcast <{w * group} x i{dot.bits}> {value} to {vector(word, w)}"), row, at)
        f.store("i64", "%count", done)

    def across():  # rows are contiguous: turn squares of words
        rows = f.mul(f.div("%count", w), w)
        f.store("i64", rows, done)
        with f.loop(0, rows, w) as row, f.loop(0, squares, w) as at:
            columns = []
            for c in range(w):
                first = f.mul(f.add(at, c), group)
                columns.append(g.interleaved([g.load(f.at(g.memory, "%src", f.add(f.mul(f.add(first, e), "%sk"), row)), w) for e in range(group)], w))
            for r, value in enumerate(transposed(f, word, columns)):
                put(value, f.add(row, r), at)

    f.choose(f.compare("eq", "%sk", 1), along, lambda: f.choose(f.compare("eq", "%sp", 1), across, lambda: None))
    ready = f.load("i64", done)
    with f.loop(0, "%count") as row:
        first = f.op(f"select i1 {f.compare('slt', row, ready)}, i64 {squares}, i64 0")
        with f.loop(first, depth) as at:  # what is left, one by one; zeros behind the end of k
            source = f.at(g.memory, "%src", f.mul(row, "%sp"))
            f.store(word, g.word(source, "%sk", f.mul(at, group), "%k"), f.at(word, "%dst", f.add(f.mul(row, depth), at)), size)
    return f


def start_sums(dot: Dot, width: int, attributes: str) -> Function:
    """start [ld] = -moved * the sums of B's columns, from its panel of `groups` words each."""
    f = Function("start_sums", "ptr noalias readonly %panel, i64 %groups, i64 %ld, ptr noalias %start", attributes + " noinline")
    wide = vector("i32", width)
    moved = f.splat("i32", str(-0x7F7F7F80), width)  # four bytes of 128
    with f.loop(0, "%ld", width) as lane:
        total = f.variable(wide, "zeroinitializer", 64)
        with f.loop(0, "%groups") as at:
            words = f.load(wide, f.at("i32", "%panel", f.add(f.mul(at, "%ld"), lane)), 4)
            f.store(wide, multiply(f, dot, "i32", width, f.load(wide, total, 64), moved, words), total, 64)
        f.store(wide, f.op(f"sub {wide} zeroinitializer, {f.load(wide, total, 64)}"), f.at("i32", "%start", lane), 4)
    return f
