"""What the attention kernels share, in LLVM IR: the exponential, products of packed panels, masks. Holds no kernel.

A tile is `height` rows of a left operand, packed as [k][height], times NR columns of a right one, [k][NR]; NR is the host's tile (gemm_pack.py).
"""
from __future__ import annotations

import struct
from collections.abc import Callable

from .gemm_pack import Kind, pack
from .gemm_text import SIZES, TYPES, Function, mangled, transposed, vector

CHAIN = 256  # products that are added up one after the other before the sum is put aside: keeps the rounding error of long ones down
AHEAD = 16  # rows of the left panel that are fetched before they are used
TILES = 2  # and tiles, of rows in place


def number(value: float) -> str:
    """A float32 constant as IR spells it: the bits of the double with the same value."""
    rounded = struct.unpack("<f", struct.pack("<f", value))[0]
    return "0x" + struct.pack(">d", rounded).hex().upper()


MINUS_INFINITY = number(float("-inf"))
LOG2_E = 1.4426950408889634
POLYNOMIAL = (1.535566261736676e-4, 1.3398955343291163e-3, 9.618430398404598e-3, 5.5503323674201965e-2, 2.4022647738456726e-1, 6.931471824645996e-1, 1.0)  # 2^r for |r| <= 1/2


def exp2(f: Function, x: str, factor: str, lanes: int, fused: bool = True) -> str:
    """2^(x * factor) for products <= 1 or so (error below 1 unit in the last place; NaN stays NaN; below -125 exactly 0)."""
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


def tile(kind: Kind, height: int, attributes: str, lie: str = "") -> Function:
    """p [height, NR] = a [k, height]^T @ b [k, NR], or that added to p (more). Rows of p are `ld` apart.

    a is packed, or float32 that lies in place: with `lie` "along" it is rows of k numbers, `step` apart, with "across" rows of a number for each of p's.

    Of the last `more_k` rows of a and b, behind k others, the first vector of b is left out: it is known to add nothing.

    What is read later is fetched into the second-level cache meanwhile: a line every other step, `apart` bytes from each other, from `next` on.
    """
    t = kind.tile
    w, nr = t.width, t.nr
    wide = vector("float", w)
    arguments = "i64 %k, i64 %more_k, ptr noalias readonly %a, ptr noalias readonly %b, ptr noalias %p, i64 %ld, i1 %more, ptr %next, i64 %apart"
    f = Function(f"tile_{lie}_{height}", arguments + (", i64 %step" if lie else ""), attributes + " noinline")
    sums = [[f.variable(wide, None, 64) for _ in range(t.vectors)] for _ in range(height)]

    def each(emit):
        for r in range(height):
            for j in range(t.vectors):
                emit(sums[r][j], f.at("float", "%p", f.add(f.mul("%ld", r) if r else 0, j * w)))

    # Rows in place are reached from few registers: every seventh row's address, and once, three and five times the step, which addressing scales.
    bases = [f.at("float", "%a", f.mul("%step", r)) for r in range(0, height, 7)] if lie == "along" else []
    odd = {i: f.mul("%step", i) for i in (1, 3, 5)} if lie == "along" else {}

    def number_of(k, r, ahead):
        """The place of the number of row r of p in step k + ahead."""
        if lie != "along":
            return f.at("float", f.at("float", "%a", f.mul(f.add(k, ahead), "%step" if lie else height)), r)
        base, within = f.at("float", bases[r // 7], k), r % 7
        if within:
            power = within & -within
            base = f.at("float", base, odd[within // power] if power == 1 else f.op(f"shl i64 {odd[within // power]}, {power.bit_length() - 1}"))
        return f.at("float", base, ahead) if ahead else base

    def step(k, first=0, ahead=0):
        row_b = f.at("float", f.at("float", "%b", f.mul(k, nr)), ahead * nr)
        if lie != "along":
            f.call("void", "llvm.prefetch.p0", f"ptr {number_of(k, 0, ahead + AHEAD)}", "i32 0", "i32 3", "i32 1")
        b = [f.load(wide, f.at("float", row_b, j * w), 4) for j in range(first, t.vectors)]
        for r in range(height):
            a = f.splat("float", f.load("float", number_of(k, r, ahead)), w)
            for j in range(first, t.vectors):
                f.store(wide, f.fma("float", w, a, b[j - first], f.load(wide, sums[r][j], 64), t.fused), sums[r][j], 64)

    def add(slot, place):
        f.store(wide, f.plus("float", w, f.load(wide, slot, 64), f.load(wide, place, 4)), slot, 64)

    each(lambda slot, place: f.store(wide, "zeroinitializer", slot, 64))
    unroll = 8 if lie == "along" else 2

    def run(begin, count, first):
        whole = f.add(begin, f.op(f"and i64 {count}, {-unroll}"))
        with f.loop(begin, whole, unroll) as k:
            f.call("void", "llvm.prefetch.p0", f"ptr {f.at('i8', '%next', f.mul(f.op(f'lshr i64 {k}, 1'), '%apart'))}", "i32 0", "i32 2", "i32 1")
            if lie == "along":  # sixteen steps share a line of each row: half of the rows of a later tile are fetched in eight
                later = f.at("float", "%a", f.add(f.mul("%step", TILES * height), k))
                half = f.mul(f.op(f"and i64 {f.op(f'lshr i64 {k}, 3')}, 1"), height // 2)
                for r in range(height // 2):
                    f.call("void", "llvm.prefetch.p0", f"ptr {f.at('float', later, f.mul('%step', f.add(half, r)))}", "i32 0", "i32 3", "i32 1")
            for ahead in range(unroll):
                step(k, first, ahead)
        with f.loop(whole, f.add(begin, count)) as k:
            step(k, first)

    run(0, "%k", 0)
    if t.vectors > 1:
        run("%k", "%more_k", 1)
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


def panels(kind: Kind, dtype: str, attributes: str) -> Function:
    """The function behind `pack_left`."""
    f = Function(f"panels_{dtype}", "ptr %source, i64 %row_step, i64 %step, i64 %rows, i64 %k, ptr %target, i64 %depth, i64 %from, i64 %begin", attributes + " noinline")

    def emit(height, i, here):
        where = f.at(TYPES[dtype][0], "%source", f.mul(i, "%row_step"))
        target = f.at("float", "%target", f.add(f.mul(i, "%depth"), f.mul("%from", height)))
        with f.when(f.compare("sgt", f.add(i, height), "%begin")):
            f.do(f"call void @pack_{dtype}(ptr {where}, i64 %row_step, i64 %step, i64 {here}, i64 %k, ptr {target}, i64 {height})")

    walk(f, kind, "%rows", emit)
    return f


def pack_left(f: Function, dtype: str, source, row_step, step, rows, k, target, depth=None, from_=0, begin=0) -> None:
    """Packs `rows` rows of length k as the panels of a left operand, those of a tile beside each other: the panel of row i begins at i * depth (k).

    from_: the place in rows of length `depth` at which these k stand. begin: only the tiles that have rows from there on.
    """
    f.do(f"call void @panels_{dtype}(ptr {source}, i64 {row_step}, i64 {step}, i64 {rows}, i64 {k}, ptr {target}, i64 {depth or k}, i64 {from_}, i64 {begin})")


def pack_right(f: Function, kind: Kind, dtype: str, source, column_step, step, columns, k, target) -> None:
    """Packs `columns` columns of length k as panels of NR of a right operand; the panel of column j begins at j * k."""
    nr = kind.tile.nr
    with f.loop(0, columns, nr) as j:
        here = f.min(nr, f.sub(columns, j))
        where = f.at(TYPES[dtype][0], source, f.mul(j, column_step))
        f.do(f"call void @pack_{dtype}(ptr {where}, i64 {column_step}, i64 {step}, i64 {here}, i64 {k}, ptr {f.at('float', target, f.mul(j, k))}, i64 {nr})")


def in_place(f: Function, kind: Kind, rows, emit: Callable[[int, object, object], None]) -> None:
    """Like `walk`, for the rows that whole tiles cover (`covered`): what lies in place must not be read behind its end."""
    done = 0
    for height in kind.tile.heights:
        until = f.add(done, f.mul(f.div(f.sub(rows, done), height), height))
        with f.loop(done, until, height) as i:
            emit(height, i, str(height))
        done = until


def covered(f: Function, kind: Kind, rows):
    """How many of `rows` rows whole tiles cover."""
    done = 0
    for height in kind.tile.heights:
        done = f.add(done, f.mul(f.div(f.sub(rows, done), height), height))
    return done


def multiply(kind: Kind, attributes: str, lie: str = "") -> Function:
    """The function behind `product`. The left operand may lie in place as `tile` says: then %depth is the step between its rows, and only rows that whole
    tiles cover are computed."""
    names = "i64 %rows, i64 %from, i64 %k, i64 %depth, ptr %left, ptr %right, ptr %target, i64 %ld, i1 %more, i64 %begin, i64 %end, i64 %bare_rows, i64 %bare_k, i64 %reach, ptr %next, i64 %apart"
    f = Function(f"multiply_{lie}", names, attributes + " noinline")
    nr = kind.tile.nr
    largest = lambda a, b: f.call("i64", "llvm.smax.i64", f"i64 {a}", f"i64 {b}")

    def emit(height, i, rows):
        wanted = f.both(f.compare("slt", i, "%end"), f.compare("sgt", f.add(i, height), "%begin"))
        panel, place = f.at("float", "%left", i if lie == "across" else f.mul(i, "%depth")), f.at("float", "%target", f.mul(i, "%ld"))
        next_ = f.at("i8", "%next", f.mul(f.div(i, kind.tile.heights[0]), 64))
        end = f.min("%k", f.add("%reach", f.min(f.add(i, height), "%rows")))
        start = f.min("%from", end)
        rounds = largest(end, f.add(start, 1))  # nothing to sum: one round of it writes the zeros
        with f.when(wanted), f.loop(start, rounds, CHAIN) as k0:
            here = largest(f.min(CHAIN, f.sub(end, k0)), 0)
            more = f.op(f"or i1 %more, {f.compare('ne', k0, start)}")
            both = here
            if kind.tile.vectors > 1:
                both = largest(f.min(f.sub("%bare_k", k0), here), 0)
                both = f.op(f"select i1 {f.compare('sge', i, '%bare_rows')}, i64 0, i64 {both}")
            along = {"": height, "along": 1, "across": "%depth"}[lie]
            a, b = f.at("float", panel, f.mul(k0, along)), f.at("float", "%right", f.mul(k0, nr))
            step = ", i64 %depth" if lie else ""
            f.do(f"call void @tile_{lie}_{height}(i64 {both}, i64 {f.sub(here, both)}, ptr {a}, ptr {b}, ptr {place}, i64 %ld, i1 {more}, ptr {next_}, i64 %apart{step})")

    (in_place if lie else walk)(f, kind, "%rows", emit)
    return f


EVER = 1 << 61  # more than any size, with room for a sum


def product(f: Function, kind: Kind, rows, k, left, right, target, more, *, lie="", depth=None, ld=None, from_=0, begin=0, end=EVER, bare_rows=EVER, bare_k=EVER, reach=EVER, ahead=None) -> None:
    """target [rows, NR] (+)= left @ right for one panel of the right operand; whole tiles are written, so target has room for one behind its last row.

    depth: the length of the rows that `left` was packed with, where the product takes only those from `from_` to k of it. begin, end: only the tiles that
    have some of these rows. bare_rows, bare_k: the first of rows and of k whose columns of the first vector add nothing and are not computed. reach: a tile
    takes only so many k more as the number of its last row + 1. ahead: (a place, bytes between rows there): k / 2 rows are fetched meanwhile, a line of
    each by every tile. lie: how the left operand lies in place, with `depth` for the step between its rows (see `tile`); rows beyond `covered` are left out.
    """
    next_, apart = (left, 0) if ahead is None else ahead
    sizes = f"i64 {rows}, i64 {from_}, i64 {k}, i64 {depth or k}, ptr {left}, ptr {right}, ptr {target}, i64 {ld or kind.tile.nr}, i1 {more}"
    f.do(f"call void @multiply_{lie}({sizes}, i64 {begin}, i64 {end}, i64 {bare_rows}, i64 {bare_k}, i64 {reach}, ptr {next_}, i64 {apart})")


def product_functions(kind: Kind, dtypes, attributes: str, lies=("",)) -> list[Function]:
    """What `pack_left`, `pack_right` and `product` call, for operands of these dtypes that lie so."""
    packs = [make for d in dict.fromkeys(dtypes) for make in (pack(kind, d, d, attributes), panels(kind, d, attributes))]
    return [*packs, *(multiply(kind, attributes, lie) for lie in lies), *(tile(kind, height, attributes, lie) for lie in lies for height in kind.tile.heights)]


def turn(kind: Kind, result: str, attributes: str) -> Function:
    """out [rows, columns] of dtype `result`, any strides = source [columns, NR]^T, each row times its factor [NR]. Squares are turned in registers."""
    t, memory = kind.tile, TYPES[result][0]
    w, nr = t.width, t.nr
    wide = vector("float", w)
    f = Function("turn", "i64 %rows, i64 %columns, ptr noalias %source, ptr noalias %factors, ptr noalias %out, i64 %rs, i64 %cs", attributes + " noinline")
    with f.loop(0, nr, w) as first:
        factors = f.load(wide, f.at("float", "%factors", first), 64)
        fits = f.both(f.compare("sge", "%rows", f.add(first, w)), f.compare("eq", "%cs", 1))
        whole = f.op(f"select i1 {fits}, i64 {f.mul(f.div('%columns', w), w)}, i64 0")
        with f.loop(0, whole, w) as e:
            columns = [f.times("float", w, f.load(wide, f.at("float", "%source", f.add(f.mul(f.add(e, c), nr), first)), 64), factors) for c in range(w)]
            for r, row in enumerate(transposed(f, "float", columns)):
                place = f.at(memory, "%out", f.add(f.mul("%rs", f.add(first, r)), e))
                f.store(vector(memory, w), f.encode(result, row, w, t.half), place, SIZES[memory])
        rows = f.min("%rows", f.add(first, w))
        with f.loop(whole, "%columns") as e, f.loop(first, rows) as r:
            value = f.times("float", 1, f.load("float", f.at("float", "%source", f.add(f.mul(e, nr), r))), f.load("float", f.at("float", "%factors", r)))
            f.store(memory, f.encode(result, value, 1, t.half), f.at(memory, "%out", f.add(f.mul(r, "%rs"), f.mul(e, "%cs"))))
    return f


# ---- masks ----------------------------------------------------------------------------------------------------------


def kept(mask: str) -> int:
    """Floats that the forward pass keeps of each query row for the gradients, for a mask of this dtype ("": none).

    One is the logarithm of the sum of its scores' exponentials. Of scores that a mask has made as large as numbers go (torch.finfo(...).min added to a
    whole row), that logarithm does not show the sum, so that with floating masks it is two: the greatest score and the inverse of the sum.
    """
    return 1 if mask in ("", "bool") else 2


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


def add_mask(f: Function, kind: Kind, mask: str, source, scores, rows, keys, ld) -> None:
    """Scores [rows, ld] become score * scale + mask. `source`: the mask's element for the first score. LLVM vectorises the loop."""
    with f.loop(0, rows) as i:
        from_ = f.at(mask_memory(mask), source, f.mul(i, "%rsm"))
        row = f.at("float", scores, f.mul(i, ld))

        def add(value_at, row=row):
            with f.loop(0, keys) as j:
                place = f.at("float", row, j)
                f.store("float", f.fma("float", 1, f.load("float", place), "%scale", value_at(j), kind.tile.fused), place)

        def same(from_=from_, add=add):  # for all keys
            value = mask_value(f, kind, mask, from_)
            add(lambda j: value)

        each = lambda from_=from_, add=add: add(lambda j: mask_value(f, kind, mask, f.at(mask_memory(mask), from_, f.mul(j, "%csm"))))
        f.choose(f.compare("eq", "%csm", 0), same, each)
