"""What a matmul kernel is specialised on (`Tile`, `Kind`), and the packing of its operands as LLVM IR: any strides in, panels of the accumulator's type out.

The micro-kernel is gemm_micro.py, the loops around it gemm_rectangle.py and gemm_ir.py.
"""
from __future__ import annotations

from typing import NamedTuple

from .gemm_dots import DOTS, Dot, Groups, pack_groups, pack_rows_of_groups, start_sums
from .gemm_text import DROPPED, SIZES, TYPES, Function, masked_load, transposed, vector

GROUP = 4  # panels of B that are packed together


class Tile(NamedTuple):
    """Register tile and what the host can do. `heights`: the tallest first; shorter ones serve the last rows."""

    width: int  # lanes of a vector of the accumulator's type
    heights: tuple[int, ...]
    vectors: int  # vectors a row: NR = vectors * width
    half: bool  # float16 <-> float32 in hardware
    fused: bool
    masks: bool  # masked loads and stores are instructions
    dot: str = ""  # the instruction that multiplies groups of elements along k (gemm_dots.py); "": elements are multiplied one by one

    @property
    def nr(self) -> int:
        return self.width * self.vectors

    @property
    def sums(self) -> int:
        """Vectors of sums that stand in registers."""
        return self.heights[0] * self.vectors


class Kind(NamedTuple):
    """What one compiled kernel is specialised on. `epilogue`: "" (none), "scale" (alpha), "add" (alpha, beta and an input).

    `left`: how the packed kernel's whole tiles read A: "" (packed before), "rows" (contiguous ones, where they are), "columns" (contiguous ones, where they are, packed on the way).
    """

    a: str
    b: str
    c: str
    i: str
    epilogue: str
    tile: Tile
    left: str = ""

    @property
    def acc(self) -> str:
        return TYPES[self.c][1]

    @property
    def dot(self) -> Dot | None:
        return DOTS[self.tile.dot] if self.tile.dot else None

    @property
    def word(self) -> str:
        """What packs consist of: numbers of the accumulator's type, or groups of elements."""
        return self.dot.word if self.dot else self.acc

    def packer(self, left: bool) -> str:
        """Name of the function that packs an operand."""
        return f"pack_{self.a if left else self.b}" + ("_left" if left and self.dot and (self.dot.moved or self.dot.form == "tiles") else "")

    @property
    def own(self) -> str:
        """How float32 sums are read that become operands of a further product (attention): rounded like the others where these are."""
        return self.a if self.a in DROPPED else "float32"

    @property
    def plain(self) -> bool:
        """Elements of B are multiplied as they are, so that they may be read where they are."""
        return TYPES[self.b][0] == self.acc and self.b not in DROPPED and not self.dot

    @property
    def plain_left(self) -> bool:
        """The same of A."""
        return self.plain and TYPES[self.a][0] == self.acc and self.a not in DROPPED

    @property
    def in_place(self) -> bool:
        """Partial sums can live in C itself."""
        return TYPES[self.c][0] == self.acc


# ---- packing --------------------------------------------------------------------------------------------------------


def packing(kind: Kind, attributes: str) -> list[Function]:
    """The functions that pack both operands of a product."""
    dot, t = kind.dot, kind.tile
    if dot is None:
        return [*(pack(kind, dtype, dtype, attributes) for dtype in dict.fromkeys((kind.a, kind.b))), pack_rows(kind, attributes)]
    tiles = dot.form == "tiles"
    left = pack_rows_of_groups(kind.packer(True), dot, kind.a, attributes) if tiles else pack_groups(kind.packer(True), dot, kind.a, t.width, t.masks, True, attributes)
    right = pack_groups(kind.packer(False), dot, kind.b, t.width, t.masks, False, attributes)
    both = [right] if kind.packer(True) == kind.packer(False) else [left, right]
    return [*both, pack_rows(kind, attributes)] + [start_sums(dot, t.width, attributes)] * bool(dot.moved)


def pack(kind: Kind, name: str, dtype: str, attributes: str) -> Function:
    """One panel: `count` vectors of length k, strides `sp` across and `sk` along, into dst [k][ld], ld >= count.

    Lanes past `count` repeat the last one: they feed rows or columns that are never stored, and real values cannot be slow (denormals) as garbage could.
    Whole vectors are stored even where ld is no multiple of the width: sub-panels overlap backwards, and a panel narrower than a vector is
    written in ascending k, so that each row repairs what the one before spilled. Behind the last row a vector's room must be free.
    """
    f = Function(f"pack_{name}", "ptr noalias %src, i64 %sp, i64 %sk, i64 %count, i64 %k, ptr noalias %dst, i64 %ld", attributes + " noinline")
    t, acc, memory = kind.tile, kind.acc, TYPES[dtype][0]
    w = t.width
    wide = vector(acc, w)
    size = SIZES[memory]
    last = f.sub("%count", 1)
    back = f.op(f"call i64 @llvm.smax.i64(i64 {f.sub('%ld', w)}, i64 0)")
    f.declared.add("declare i64 @llvm.smax.i64(i64, i64)")
    full = f.compare("eq", "%count", "%ld")

    def decode(value, n):
        return f.decode(dtype, value, n, t.half)

    def put(value, k, lane):
        f.store(wide, value, f.at(acc, "%dst", f.add(f.mul(k, "%ld"), lane)), SIZES[acc])

    def across():  # the panel's direction is contiguous: copy rows
        with f.loop(0, "%ld", w) as j:
            lane = f.min(j, back)
            mask = f.lanes_below(f.sub("%count", lane), w) if t.masks else None
            with f.loop(0, "%k") as k:
                source = f.at(memory, "%src", f.add(f.mul(k, "%sk"), lane))
                put(decode(masked_load(f, memory, w, source, mask) if t.masks else f.load(vector(memory, w), source, size), w), k, lane)

    def rows():  # the same for a whole panel of B: the row in one go
        with f.loop(0, "%k") as k:
            source = f.at(memory, "%src", f.mul(k, "%sk"))
            for j in range(t.vectors):
                put(decode(f.load(vector(memory, w), f.at(memory, source, j * w), size), w), k, j * w)

    def along():  # k is contiguous: transpose squares of w x w in registers
        with f.loop(0, "%ld", w) as j:
            lane = f.min(j, back)
            with f.loop(0, "%k", w) as k0:
                k = f.min(k0, f.sub("%k", w))
                values = []
                for r in range(w):
                    row = f.mul(f.min(f.add(lane, r), last), "%sp")
                    values.append(decode(f.load(vector(memory, w), f.at(memory, "%src", f.add(row, k)), size), w))
                for c, column in enumerate(transposed(f, acc, values)):
                    put(column, f.add(k, c), lane)

    def scalar():
        with f.loop(0, "%k") as k, f.loop(0, "%ld") as lane:
            source = f.at(memory, "%src", f.add(f.mul(f.min(lane, last), "%sp"), f.mul(k, "%sk")))
            f.store(acc, decode(f.load(memory, source), 1), f.at(acc, "%dst", f.add(f.mul(k, "%ld"), lane)))

    unit = f.compare("eq", "%sp", 1)
    if not t.masks:
        unit = f.both(unit, full, f.compare("sge", "%ld", w))
    square = f.both(f.compare("eq", "%sk", 1), f.compare("sge", "%k", w))
    plain = lambda: f.choose(unit, across, lambda: f.choose(square, along, scalar))
    f.choose(f.both(f.compare("eq", "%sp", 1), full, f.compare("eq", "%ld", t.nr)), rows, plain)
    return f


def pack_rows(kind: Kind, attributes: str) -> Function:
    """Several whole panels of a row-major B at once, `step` apart: each row is read in one long piece, which the hardware can foresee. Of groups the whole ones."""
    t, dot, memory = kind.tile, kind.dot, TYPES[kind.b][0]
    group, word, wide = dot.group if dot else 1, kind.word, vector(kind.word, t.width)
    f = Function("pack_rows", "ptr noalias %src, i64 %sk, i64 %k, ptr noalias %dst, i64 %step", attributes + " noinline")
    targets = [f.at(word, "%dst", f.mul("%step", p)) for p in range(GROUP)]

    def read(sources, offset):
        if dot:
            g = Groups(f, dot, kind.b, t.width, False)
            return g.interleaved([g.load(f.at(memory, source, offset), t.width) for source in sources], t.width)
        return f.decode(kind.b, f.load(vector(memory, t.width), f.at(memory, sources[0], offset), SIZES[memory]), t.width, t.half)

    with f.loop(0, "%k" if group == 1 else f.div("%k", group)) as k:
        sources = [f.at(memory, "%src", f.mul(f.add(f.mul(k, group), e), "%sk")) for e in range(group)]
        for p, target in enumerate(targets):
            for j in range(0, t.nr, t.width):
                f.store(wide, read(sources, p * t.nr + j), f.at(word, target, f.add(f.mul(k, t.nr), j)), SIZES[word])
    return f
