"""What the attention kernels share, in LLVM IR: the exponential, products of packed panels, masks. Holds no kernel.

A tile is `height` rows of a left operand, packed as [k][height], times NR columns of a right one, [k][NR]; NR is the host's tile (gemm_pack.py).
"""
from __future__ import annotations

import struct
from collections.abc import Callable

from .gemm_ir import panels
from .gemm_pack import Kind
from .gemm_text import SIZES, TYPES, Function, mangled, vector

CHAIN = 256  # products that are added up one after the other before the sum is put aside: keeps the rounding error of long ones down
AHEAD = 16  # rows of the left panel that are fetched before they are used


def number(value: float) -> str:
    """A float32 constant as IR spells it: the bits of the double with the same value."""
    rounded = struct.unpack("<f", struct.pack("<f", value))[0]
    return "0x" + struct.pack(">d", rounded).hex().upper()


MINUS_INFINITY = number(float("-inf"))
LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453
POLYNOMIAL = (1.326472731e-3, 9.671512991e-3, 5.550733581e-2, 2.402224243e-1, 6.931470037e-1, 1.0)  # 2^r for |r| <= 1/2, relative error below 1e-7


def exp2(f: Function, x: str, factor: str, lanes: int, fused: bool = True) -> str:
    """2^(x * factor) for products <= 1 or so (error about 2 units in the last place at most; NaN stays NaN; below -125 exactly 0)."""
    type_, ints = vector("float", lanes), vector("i32", lanes)
    const = lambda v: f.constant("float", number(v), lanes)
    magic = 1.5 * 2**23 + 127  # adding it rounds to an integer n, and n + 127, the exponent of 2^n, stands in the low bits
    shifted = f.fma("float", lanes, x, factor, const(magic), fused)
    whole = f.op(f"fsub {type_} {const(magic)}, {shifted}")
    r = f.fma("float", lanes, x, factor, whole, fused)
    y = const(POLYNOMIAL[0])
    for c in POLYNOMIAL[1:]:
        y = f.fma("float", lanes, y, r, const(c), fused)
    power = f.op(f"shl {ints} {f.op(f'bitcast {type_} {shifted} to {ints}')}, {f.constant('i32', 23, lanes)}")
    result = f.times("float", lanes, y, f.op(f"bitcast {ints} {power} to {type_}"))
    small = f.op(f"fcmp olt {type_} {shifted}, {const(magic - 125)}")
    return f.op(f"select {vector('i1', lanes)} {small}, {type_} {const(0.0)}, {type_} {result}")


def greater(f: Function, a, b, lanes: int) -> str:
    """The greater of two; b where a is NaN: a NaN comes into the sum by its exponential."""
    wide = vector("float", lanes)
    return f.op(f"select {vector('i1', lanes)} {f.op(f'fcmp ogt {wide} {a}, {b}')}, {wide} {a}, {wide} {b}")


def reduced(f: Function, how: str, lanes: int, value: str) -> str:
    """Sum ("add") or greatest ("max") of a vector's lanes."""
    wide, name = vector("float", lanes), f"llvm.vector.reduce.f{how}.{mangled('float', lanes)}"
    if how == "add":
        f.declared.add(f"declare float @{name}(float, {wide})")
        return f.op(f"call reassoc float @{name}(float -0.0, {wide} {value})")
    return f.call("float", name, f"{wide} {value}")


# ---- products -------------------------------------------------------------------------------------------------------


def tile(kind: Kind, height: int, attributes: str) -> Function:
    """p [height, NR] = a [k, height]^T @ b [k, NR], or that added to p (more). Rows of p are `ld` apart.

    Of the last `more_k` rows of a and b, behind k others, the first vector of b is left out: it is known to add nothing.

    What is read later is fetched into the second-level cache meanwhile: a line every other step, `apart` bytes from each other, from `next` on.
    """
    t = kind.tile
    w, nr = t.width, t.nr
    wide = vector("float", w)
    f = Function(f"tile_{height}", "i64 %k, i64 %more_k, ptr noalias readonly %a, ptr noalias readonly %b, ptr noalias %p, i64 %ld, i1 %more, ptr %next, i64 %apart", attributes + " noinline")
    sums = [[f.variable(wide, None, 64) for _ in range(t.vectors)] for _ in range(height)]

    def each(emit):
        for r in range(height):
            for j in range(t.vectors):
                emit(sums[r][j], f.at("float", "%p", f.add(f.mul("%ld", r) if r else 0, j * w)))

    def step(k, first=0):
        row_a = f.at("float", "%a", f.mul(k, height))
        row_b = f.at("float", "%b", f.mul(k, nr))
        f.call("void", "llvm.prefetch.p0", f"ptr {f.at('float', row_a, AHEAD * height)}", "i32 0", "i32 3", "i32 1")
        b = [f.load(wide, f.at("float", row_b, j * w), 4) for j in range(first, t.vectors)]
        for r in range(height):
            a = f.splat("float", f.load("float", f.at("float", row_a, r)), w)
            for j in range(first, t.vectors):
                f.store(wide, f.fma("float", w, a, b[j - first], f.load(wide, sums[r][j], 64), t.fused), sums[r][j], 64)

    def add(slot, place):
        f.store(wide, f.plus("float", w, f.load(wide, slot, 64), f.load(wide, place, 4)), slot, 64)

    each(lambda slot, place: f.store(wide, "zeroinitializer", slot, 64))
    even = f.sub("%k", f.op("and i64 %k, 1"))
    with f.loop(0, even, 2) as k:
        f.call("void", "llvm.prefetch.p0", f"ptr {f.at('i8', '%next', f.mul(f.op(f'lshr i64 {k}, 1'), '%apart'))}", "i32 0", "i32 2", "i32 1")
        step(k)
        step(f.add(k, 1))
    with f.when(f.compare("slt", even, "%k")):
        step(even)
    if t.vectors > 1:
        with f.loop("%k", f.add("%k", "%more_k")) as k:
            step(k, 1)
    with f.when("%more"):
        each(add)
    each(lambda slot, place: f.store(wide, f.load(wide, slot, 64), place, 4))
    return f


def walk(f: Function, kind: Kind, rows, emit: Callable[[int, object, object], None]) -> None:
    """emit(height, first row, rows here) for `rows` rows: the tallest tiles as long as they last, then the shortest that holds the rest.

    Where the rest is so short that two of the second height hold it and a tallest one as well, it is those: 128 rows are 8 x 14 + 2 x 8.
    """
    top, second = kind.tile.heights[:2]
    whole = f.mul(f.div(rows, top), top)
    rest = f.sub(rows, whole)
    spare = f.both(f.compare("sgt", rest, 0), f.compare("sle", f.add(rest, top), 2 * second), f.compare("sgt", whole, 0))
    whole = f.op(f"select i1 {spare}, i64 {f.sub(whole, top)}, i64 {whole}")
    with f.loop(0, whole, top) as i:
        emit(top, i, str(top))
    rest = f.sub(rows, whole)

    def pick(options):
        if len(options) == 1:
            emit(options[0], whole, rest)
        else:
            f.choose(f.compare("sgt", rest, options[1]), lambda: emit(options[0], whole, rest), lambda: pick(options[1:]))

    def two():
        emit(second, whole, str(second))
        emit(second, f.add(whole, second), f.sub(rest, second))

    with f.when(f.compare("sgt", rest, 0)):
        f.choose(spare, two, lambda: pick(kind.tile.heights))


def pack_left(f: Function, kind: Kind, dtype: str, source, row_step, step, rows, k, target) -> None:
    """Packs `rows` rows of length k as the panels of a left operand, those of a tile beside each other: the panel of row i begins at i * k."""

    def emit(height, i, here):
        where = f.at(TYPES[dtype][0], source, f.mul(i, row_step))
        f.do(f"call void @pack_{dtype}(ptr {where}, i64 {row_step}, i64 {step}, i64 {here}, i64 {k}, ptr {f.at('float', target, f.mul(i, k))}, i64 {height})")

    walk(f, kind, rows, emit)


def pack_right(f: Function, kind: Kind, dtype: str, source, column_step, step, columns, k, target) -> None:
    """Packs `columns` columns of length k as panels of NR of a right operand; the panel of column j begins at j * k."""
    nr = kind.tile.nr
    with f.loop(0, columns, nr) as j:
        here = f.min(nr, f.sub(columns, j))
        where = f.at(TYPES[dtype][0], source, f.mul(j, column_step))
        f.do(f"call void @pack_{dtype}(ptr {where}, i64 {column_step}, i64 {step}, i64 {here}, i64 {k}, ptr {f.at('float', target, f.mul(j, k))}, i64 {nr})")


def product(f: Function, kind: Kind, rows, k, left, right, target, more, depth=None, ld=None, few=None, ahead=None, hidden=None) -> None:
    """target [rows, NR] (+)= left @ right for one panel of the right operand; whole tiles are written, so target has room for one behind its last row.

    depth: the length of the rows that `left` was packed with, where the product takes only the first k of it. few: only the tiles of so many rows.
    ahead: (a place, bytes between rows there): k / 2 rows are fetched meanwhile, a line of each by every tile.
    hidden: "rows" or "depth", and the number of the first of them whose columns of the first vector add nothing, which are not computed.
    """
    ld = kind.tile.nr if ld is None else ld

    def emit(height, i, here):
        panel, place = f.at("float", left, f.mul(i, depth or k)), f.at("float", target, f.mul(i, ld))
        next_, apart = (panel, 0) if ahead is None else (f.at("i8", ahead[0], f.mul(f.div(i, kind.tile.heights[0]), 64)), ahead[1])
        rounds = f.call("i64", "llvm.smax.i64", f"i64 {k}", "i64 1")  # k = 0: one round of nothing writes the zeros
        with f.when("true" if few is None else f.compare("slt", i, few)), f.loop(0, rounds, CHAIN) as k0:
            here, later = f.min(CHAIN, f.sub(k, k0)), f.op(f"or i1 {more}, {f.compare('ne', k0, 0)}")
            a, b = f.at("float", panel, f.mul(k0, height)), f.at("float", right, f.mul(k0, kind.tile.nr))
            both = here
            if hidden is not None and kind.tile.vectors > 1:
                how, first = hidden
                if how == "rows":
                    both = f.op(f"select i1 {f.compare('sge', i, first)}, i64 0, i64 {here}")
                else:
                    both = f.call("i64", "llvm.smax.i64", f"i64 {f.min(f.sub(first, k0), here)}", "i64 0")
            f.do(f"call void @tile_{height}(i64 {both}, i64 {f.sub(here, both)}, ptr {a}, ptr {b}, ptr {place}, i64 {ld}, i1 {later}, ptr {next_}, i64 {apart})")

    walk(f, kind, rows, emit)


# ---- masks ----------------------------------------------------------------------------------------------------------


def mask_memory(mask: str) -> str:
    return "i8" if mask == "bool" else TYPES[mask][0]


def mask_value(f: Function, kind: Kind, mask: str, pointer, lanes: int = 1) -> str:
    """Elements of a mask as what is added to scores: booleans as 0 and -inf."""
    memory = mask_memory(mask)
    value = f.load(vector(memory, lanes), pointer, SIZES[memory])
    if mask != "bool":
        return f.decode(mask, value, lanes, kind.tile.half)
    type_ = vector("float", lanes)
    seen = f.op(f"icmp ne {vector('i8', lanes)} {value}, {f.constant('i8', 0, lanes)}")
    return f.op(f"select {vector('i1', lanes)} {seen}, {type_} {f.constant('float', '0.0', lanes)}, {type_} {f.constant('float', MINUS_INFINITY, lanes)}")


# ---- by rows (gradients) ------------------------------------------------------------------------------------------


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


def pack_rows(f: Function, kind: Kind, dtype: str, source, row_step, step, rows, k, target) -> None:
    """Packs `rows` rows of length k as the panels of a left operand."""

    def emit(height, i, here, panel):
        where = f.at(TYPES[dtype][0], source, f.mul(i, row_step))
        f.do(f"call void @pack_{dtype}(ptr {where}, i64 {row_step}, i64 {step}, i64 {here}, i64 {k}, ptr {panel}, i64 {height})")

    panels(f, kind, rows, k, target, emit)


def product_by_rows(f: Function, kind: Kind, rows, columns, k, left, right, target, ld, more, depth=None, held="%held") -> None:
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


def add_mask_by_rows(f: Function, kind: Kind, mask: str, source, scores, rows, keys, ld) -> None:
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
