"""The register-tiled micro-kernel of the packed matrix product as LLVM IR, its variants that read an operand where it is, and what happens to a finished tile: edges, epilogue.

The loops around it, and where tiles lie, are gemm_rectangle.py; what is packed, gemm_pack.py.
"""
from __future__ import annotations

from .gemm_dots import multiply, rows_of_blocks
from .gemm_pack import Kind
from .gemm_text import SIZES, TYPES, Function, masked_load, masked_store, vector

CHAIN = 256  # products that are added up one after the other before the sum is put aside


def tail_arguments(kind: Kind) -> str:
    """Where a finished tile goes: partial sums P (more: add them; last: this is the last block of k), then C and the epilogue's I."""
    acc = kind.acc
    return f"ptr %p, i64 %ldp, i1 %more, i1 %last, ptr %c, i64 %rsc, i64 %csc, ptr %i, i64 %rsi, i64 %csi, {acc} %alpha, {acc} %beta"


def epilogue(f: Function, kind: Kind, value: str, lanes: int, load_input) -> str:
    acc = kind.acc
    if kind.epilogue:
        value = f.times(acc, lanes, value, f.splat(acc, "%alpha", lanes))
    if kind.epilogue == "add":
        added = f.decode(kind.i, load_input(), lanes, kind.tile.half)
        value = f.fma(acc, lanes, f.splat(acc, "%beta", lanes), added, value, kind.tile.fused)
    return f.encode(kind.c, value, lanes, kind.tile.half)


def micro(kind: Kind, height: int, attributes: str, form: str = "micro") -> Function:
    """tile [height, NR] = Apanel [k, height]^T @ B [k, NR] (rows ldb apart), kept in registers, then added to P, or finished into C (unit column strides).

    first: what is read of B, in place, is put down as a panel, too, for the tiles that follow: the copy hides behind the products.
    columns: the same of A, whose columns are contiguous and %csa elements apart.
    rows: A's rows are read where they are, %r1 bytes apart, %csa elements from one k to the next. Three, five and seven times %r1 are arguments, too: each row's address
    is then a pointer and a scaled register, where the compiler, if it knew, would add up one after the other.
    Of groups, k counts words. Sums of 2 x 2 are counted like rows of sums, two columns of B at a time, and become rows at the end.
    """
    t, acc, dot, word = kind.tile, kind.acc, kind.dot, kind.word
    w = t.width
    wide = vector(acc, w)
    blocks = dot is not None and dot.form == "blocks"
    chain = CHAIN // dot.group if dot else CHAIN
    more = {"micro": "", "first": "ptr noalias %panel, ", "columns": "ptr noalias %panel, i64 %csa, ", "rows": "i64 %r1, i64 %r3, i64 %r5, i64 %r7, i64 %csa, "}[form]
    operands = "i64 %k, ptr noalias readonly %a, ptr noalias readonly %b, i64 %ldb, ptr %next, i64 %ahead, ptr noalias %held"
    f = Function(f"{form}_{height}", f"{more}{operands}, {tail_arguments(kind)}", attributes + " noinline")
    sums = [[f.variable(wide, None, 64) for _ in range(t.vectors)] for _ in range(height)]

    def each(emit):
        for r in range(height):
            for j in range(t.vectors):
                emit(r, j, sums[r][j])

    def fetch(pointer, write=0, near=3):
        f.call("void", "llvm.prefetch.p0", f"ptr {pointer}", f"i32 {write}", f"i32 {near}", "i32 1")

    for r in range(height):  # the tile's lines of C arrive while the products are summed
        row = f.at(acc, "%p", f.mul("%ldp", r))
        for line in range(0, t.nr * SIZES[acc], 64):
            fetch(f.at("i8", row, line), 1)
    long = f.compare("sgt", "%k", chain)

    def held(r, j):
        return f.at(acc, "%held", r * t.nr + j * w)

    def start(r, j, slot):
        if dot and dot.moved:  # the first chain starts at what stands before B's panel
            f.store(wide, f.load(wide, f.at(acc, "%b", f.sub(j * w, "%ldb")), SIZES[acc]), slot, 64)
        else:
            f.store(wide, "zeroinitializer", slot, 64)

    def left(k, r):
        """Where that stands which row r of A is multiplied with in step k."""
        column = f.at(word, "%a", f.mul(k, "%csa" if form in ("rows", "columns") else height))
        if form != "rows":
            return f.at(word, column, r)
        if r >= 7:
            column, r = f.at("i8", column, "%r7"), r - 7
        even = r & -r  # the power of two in it
        return f.at("i8", column, f.mul(f"%r{r // even}", even)) if r else column

    def put_down(k):
        """Column k of A to its panel: two pieces that overlap."""
        some = 1 << height.bit_length() - 1
        pieces = [(r, f.load(vector(word, some), left(k, r), SIZES[word])) for r in sorted({0, height - some})]
        for r, piece in pieces:
            f.store(vector(word, some), piece, f.at(word, "%panel", f.add(f.mul(k, height), r)), SIZES[word])

    def step(k):
        """All products of one number, or one group, of each row of A and column of B."""
        row_b = f.mul(k, "%ldb")
        if form == "columns":
            put_down(k)
        if blocks:
            pair = vector(word, 2)
            b = [f.load(pair, f.at(word, "%b", f.add(row_b, 2 * j)), 8) for j in range(t.nr // 2)]
            for r in range(0, height, 2):
                a = f.load(pair, left(k, r), 8)
                for j in range(t.nr // 2):
                    slot = sums[r + j % 2][j // 2]
                    f.store(wide, multiply(f, dot, acc, w, f.load(wide, slot, 64), a, b[j]), slot, 64)
            return
        b = [f.load(vector(word, w), f.at(word, "%b", f.add(row_b, j * w)), SIZES[word]) for j in range(t.vectors)]
        for j in range(t.vectors if form == "first" else 0):
            f.store(wide, b[j], f.at(word, "%panel", f.add(f.mul(k, t.nr), j * w)), SIZES[word])
        for r in range(height):
            a = f.splat(word, f.load(word, left(k, r)), w)
            for j in range(t.vectors):
                total = f.load(wide, sums[r][j], 64)
                f.store(wide, multiply(f, dot, acc, w, total, a, b[j]) if dot else f.fma(acc, w, a, b[j], total, t.fused), sums[r][j], 64)

    each(start)
    with f.loop(0, "%k", chain) as k0:
        with f.when(f.compare("ne", k0, 0)):
            each(lambda r, j, slot: f.store(wide, "zeroinitializer", slot, 64))
        stop = f.min(f.add(k0, chain), "%k")
        with f.loop(k0, stop) as k:
            for line in range(0, t.nr * SIZES[word], 64):
                fetch(f.at("i8", f.at(word, "%b", f.mul(f.add(k, 16), "%ldb")), line))
            if form != "rows":
                fetch(left(f.add(k, 8), 0))
            fetch(f.at("i8", "%next", f.mul(k, "%ahead")), near=2)
            step(k)
        # Sums of a long k are made of shorter chains, which keeps their rounding error down; what is done waits in the first-level cache.
        with f.when(f.compare("ne", k0, 0)):
            each(lambda r, j, slot: f.store(wide, f.plus(acc, w, f.load(wide, slot, 64), f.load(wide, held(r, j), SIZES[acc])), slot, 64))
        with f.when(f.both(long, f.compare("slt", stop, "%k"))):
            each(lambda r, j, slot: f.store(wide, f.load(wide, slot, 64), held(r, j), SIZES[acc]))
    if blocks:
        for r in range(0, height, 2):
            for j in range(t.vectors):
                rows = rows_of_blocks(f, acc, *(f.load(wide, sums[r + side][j], 64) for side in (0, 1)))
                for side, row in enumerate(rows):
                    f.store(wide, row, sums[r + side][j], 64)

    def partial(r, j):
        return f.at(acc, "%p", f.add(f.mul("%ldp", r), j * w))

    def add(r, j, slot):
        f.store(wide, f.plus(acc, w, f.load(wide, slot, 64), f.load(wide, partial(r, j), SIZES[acc])), slot, 64)

    with f.when("%more"):
        each(add)

    def keep(r, j, slot):
        f.store(wide, f.load(wide, slot, 64), partial(r, j), SIZES[acc])

    def final(r, j, slot):
        memory, source = TYPES[kind.c][0], TYPES[kind.i][0]
        value = epilogue(f, kind, f.load(wide, slot, 64), w, lambda: f.load(vector(source, w), f.at(source, "%i", f.add(f.mul("%rsi", r), j * w)), SIZES[source]))
        f.store(vector(memory, w), value, f.at(memory, "%c", f.add(f.mul("%rsc", r), j * w)), SIZES[memory])

    if kind.in_place and not kind.epilogue:
        each(keep)
    else:
        f.choose("%last", lambda: each(final), lambda: each(keep))
    return f


def finish(kind: Kind, attributes: str) -> Function:
    """The same tail for a tile that waits in memory [mr, NR]: edges, and C or I with other strides."""
    t, acc = kind.tile, kind.acc
    f = Function("finish", f"i64 %mr, i64 %nr, ptr noalias %tile, {tail_arguments(kind)}", attributes + " noinline")
    memory, source = TYPES[kind.c][0], TYPES[kind.i][0]
    direct = kind.in_place and not kind.epilogue  # P is C, whatever its strides
    step = "%csc" if direct else "1"

    def element(r, c):
        value = f.load(acc, f.at(acc, "%tile", f.add(f.mul(r, t.nr), c)))
        place = f.at(acc, "%p", f.add(f.mul(r, "%ldp"), f.mul(c, step)))
        slot = f.variable(acc, value)
        with f.when("%more"):
            f.store(acc, f.plus(acc, 1, f.load(acc, slot), f.load(acc, place)), slot)

        def final():
            load = lambda: f.load(source, f.at(source, "%i", f.add(f.mul(r, "%rsi"), f.mul(c, "%csi"))))
            f.store(memory, epilogue(f, kind, f.load(acc, slot), 1, load), f.at(memory, "%c", f.add(f.mul(r, "%rsc"), f.mul(c, "%csc"))))

        f.choose("%last", final, lambda: f.store(acc, f.load(acc, slot), place)) if not direct else f.store(acc, f.load(acc, slot), place)

    def scalars():
        with f.loop(0, "%mr") as r, f.loop(0, "%nr") as c:
            element(r, c)

    def vectors():
        w = t.width
        wide = vector(acc, w)
        for j in range(t.vectors):
            mask = f.lanes_below(f.sub("%nr", j * w), w)
            with f.when(f.compare("sgt", "%nr", j * w)), f.loop(0, "%mr") as r:
                slot = f.variable(wide, f.load(wide, f.at(acc, "%tile", f.add(f.mul(r, t.nr), j * w)), 64), 64)
                place = f.at(acc, "%p", f.add(f.mul(r, "%ldp"), j * w))
                with f.when("%more"):
                    f.store(wide, f.plus(acc, w, f.load(wide, slot, 64), masked_load(f, acc, w, place, mask)), slot, 64)

                def final():
                    load = lambda: masked_load(f, source, w, f.at(source, "%i", f.add(f.mul(r, "%rsi"), j * w)), mask)
                    value = epilogue(f, kind, f.load(wide, slot, 64), w, load)
                    masked_store(f, memory, w, value, f.at(memory, "%c", f.add(f.mul(r, "%rsc"), j * w)), mask)

                keep = lambda: masked_store(f, acc, w, f.load(wide, slot, 64), place, mask)
                keep() if direct else f.choose("%last", final, keep)

    if t.masks:
        unit = f.compare("eq", "%csc", 1)
        if kind.epilogue == "add":
            unit = f.both(unit, f.compare("eq", "%csi", 1))
        f.choose(unit, vectors, scalars)
    else:
        scalars()
    return f
