"""Some dozens of rows times a matrix whose rows lie along k, as LLVM IR: Y [m, n] = alpha * X [m, k] @ W [n, k]^T  (+ beta * I [m, n]), with batches.

The lanes of a sum are rows of X: X is packed once, transposed, and each number of W meets a vector of it as a broadcast. So nothing of W is transposed, which
a packed product spends much of its time on where there are few rows to repay it. W is read where it is, or a stretch of k of some rows at a time becomes numbers
of the accumulator's type in scratch that stays in the caches.

    for each share of the rows of W:                pack X into panels [m / NR][k][NR]
      for `tall` rows of W: for stretches of k:     (numbers of W [tall, stretch] into scratch)
        for each panel of X, for its tiles:         micro-kernel: sums [height, NR] in registers, over CHAIN of k; lines of W's next stretch are fetched meanwhile

Holds the micro-kernels and the walk around them, which block_products.py shares, and the kernel for plain weights.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .gemm_ir import STACK, batch_offsets
from .gemm_micro import epilogue
from .gemm_pack import Kind, Tile, pack
from .gemm_text import DROPPED, SIZES, TYPES, Function, masked_load, masked_store, module, transposed, vector
from .gemv_ir import BATCH, arguments, opening, put
from .scratch import SCRATCH, claimed

CHAIN = 256  # products that are added up one after the other before the sum is put aside
UNROLL = 8  # steps of k between two branches
AHEAD = 128  # elements of a row of W in place that are fetched before they are used


class Thin(NamedTuple):
    """What the walk is specialised on. stretch: elements of k that are worked on together; nbytes: what W holds of a row of them, to be fetched ahead (0: W's rows are the numbers);
    tall: rows of W that are worked on together."""

    tile: Tile
    acc: str
    stretch: int
    nbytes: int
    tall: int

    def ld(self, f: Function, k) -> str:
        """Elements between two rows of numbers in scratch, of which there are k in all: no multiple of a page."""
        return f.add(f.min(self.stretch, f.mul(f.ceil_div(k, self.tile.width), self.tile.width)), 64 // SIZES[self.acc])

    @property
    def square(self) -> int:
        """Rows of sums in whole squares, as they are turned."""
        return -(-self.tall // self.tile.width) * self.tile.width

    def height(self, vectors: int) -> int:
        return self.tall // vectors


def micro(s: Thin, vectors: int, attributes: str) -> Function:
    """sums [height, NR] (rows lds apart) += numbers [height, k] (rows ld apart) times a panel [k, NR].

    Every UNROLL steps of k the lines of one row at `next` are fetched, of `share` rows that lie nld bytes apart; of rows in place their own next lines are.
    """
    t, acc, height = s.tile, s.acc, s.height(vectors)
    w, nr = t.width, t.width * vectors
    wide = vector(acc, w)
    arguments_ = "i64 %k, ptr noalias readonly %x, ptr noalias readonly %numbers, i64 %ld, ptr noalias %sums, i64 %lds, ptr %next, i64 %nld, i64 %share"
    f = Function(f"thin_{vectors}", arguments_, attributes + " noinline")
    cells = [[f.variable(wide, "zeroinitializer", 64) for _ in range(vectors)] for _ in range(height)]
    # Rows are reached from few registers: every seventh row's address, and once, three and five times ld, which addressing scales by two and four.
    bases = [f.at(acc, "%numbers", f.mul("%ld", r)) for r in range(0, height, 7)]
    odd = {i: f.mul("%ld", i) for i in (1, 3, 5)}

    def place(r, k, ahead):
        base, within = f.at(acc, bases[r // 7], k), r % 7
        if within:
            power = within & -within
            times = odd[within // power]
            base = f.at(acc, base, times if power == 1 else f.op(f"shl i64 {times}, {power.bit_length() - 1}"))
        return f.at(acc, base, ahead) if ahead else base

    def step(k, ahead):
        x = [f.load(wide, f.at(acc, "%x", f.add(f.mul(k, nr), ahead * nr + j * w)), SIZES[acc]) for j in range(vectors)]
        for r in range(height):
            number = f.splat(acc, f.load(acc, place(r, k, ahead)), w)
            for j in range(vectors):
                f.store(wide, f.fma(acc, w, number, x[j], f.load(wide, cells[r][j], 64), t.fused), cells[r][j], 64)

    def fetch(pointer, near):
        f.call("void", "llvm.prefetch.p0", f"ptr {pointer}", "i32 0", f"i32 {near}", "i32 1")

    whole = f.mul(f.div("%k", UNROLL), UNROLL)
    last = f.sub("%share", 1)
    turns = max(1, 64 // SIZES[acc] // UNROLL)  # rounds to a line
    some = -(-height // turns)
    with f.loop(0, whole, UNROLL) as k:
        row = f.at("i8", "%next", f.mul(f.min(f.div(k, UNROLL), last), "%nld"))
        for line in range(0, s.nbytes, 64):
            fetch(f.at("i8", row, line), 2)
        if not s.nbytes:  # W itself: while a line is used, those behind it are fetched, of some rows in each round
            turn = f.mul(f.rem(f.div(k, UNROLL), turns), some)
            for r in range(some):
                other = f.at(acc, "%numbers", f.mul("%ld", f.min(f.add(turn, r), height - 1)))
                fetch(f.at(acc, other, f.add(k, AHEAD)), 3)
        for ahead in range(UNROLL):
            step(k, ahead)
    with f.loop(whole, "%k") as k:
        step(k, 0)
    for r in range(height):
        for j in range(vectors):
            cell = f.at(acc, f.at(acc, "%sums", f.mul("%lds", r)), j * w)
            f.store(wide, f.plus(acc, w, f.load(wide, cell, SIZES[acc]), f.load(wide, cells[r][j], 64)), cell, SIZES[acc])
    return f


def stretch(s: Thin, attributes: str) -> Function:
    """sums [tall, lds] += numbers [rows, length] (ld apart) times what the panels of X hold from k0 on; `lds` is m in whole vectors."""
    t, acc = s.tile, s.acc
    f = Function(
        "stretch",
        "ptr noalias readonly %x, i64 %k, i64 %lds, i64 %k0, i64 %length, i64 %rows, ptr noalias readonly %numbers, i64 %ld, ptr noalias %sums, ptr %next, i64 %nld",
        attributes + " noinline",
    )

    def tiles(column, vectors):
        height = s.height(vectors)
        chunks = -(-s.stretch // CHAIN)
        share = -(-height // chunks)  # of the next rows, whose lines a tile of the first panel fetches
        step = f.op(f"select i1 {f.compare('eq', column, 0)}, i64 %nld, i64 0")
        for h in range(vectors):
            with f.when(f.compare("sgt", "%rows", h * height)), f.loop(0, "%length", CHAIN) as c:
                length = f.min(CHAIN, f.sub("%length", c))
                x = f.at(acc, "%x", f.add(f.mul(column, "%k"), f.mul(f.add("%k0", c), vectors * t.width)))
                numbers = f.at(acc, "%numbers", f.add(c, f.mul("%ld", h * height)))
                sums = f.at(acc, "%sums", f.add(f.mul("%lds", h * height), column))
                next_ = f.at("i8", "%next", f.mul(f.add(f.mul(f.div(c, CHAIN), share), h * height), step))
                f.do(f"call void @thin_{vectors}(i64 {length}, ptr {x}, ptr {numbers}, i64 %ld, ptr {sums}, i64 %lds, ptr {next_}, i64 {step}, i64 {share})")

    each_panel(f, t, "%lds", tiles)
    return f


def each_panel(f: Function, t: Tile, columns, emit: Callable) -> None:
    """emit(first column, vectors) for the panels of `columns` columns, a multiple of the width: whole ones, then what is left."""
    whole = f.mul(f.div(columns, t.nr), t.nr)
    with f.loop(0, whole, t.nr) as column:
        emit(column, t.vectors)
    for vectors in range(1, t.vectors):
        with f.when(f.compare("eq", f.sub(columns, whole), vectors * t.width)):
            emit(whole, vectors)


def pack_x(f: Function, t: Tile, acc: str, name: str, size: int, source, row, column, m, lds, k, target) -> None:
    """Calls @pack_{name} for each panel of X [m, k] (strides in elements of `size` bytes)."""

    def panel(first, vectors):
        count = f.min(vectors * t.width, f.sub(m, first))
        at = f.at("i8", source, f.mul(f.mul(first, row), size))
        f.do(f"call void @pack_{name}(ptr {at}, i64 {row}, i64 {column}, i64 {count}, i64 {k}, ptr {f.at(acc, target, f.mul(first, k))}, i64 {vectors * t.width})")

    each_panel(f, t, lds, panel)


def walk(s: Thin, attributes: str) -> list[Function]:
    return [*(micro(s, v, attributes) for v in range(1, s.tile.vectors + 1)), stretch(s, attributes)]


# ---- plain weights ----------------------------------------------------------------------------------------------------------


def in_place(kind: Kind) -> bool:
    """Whether W's elements are the accumulator's numbers already."""
    return TYPES[kind.b][0] == kind.acc and kind.b not in DROPPED


def thin(kind: Kind, few: bool) -> Thin:
    """few: one vector holds all rows of X. As many rows of W as there are sums in registers, or half as many: few rows of X leave time to wait for W, and memory
    foresees fewer streams better."""
    t = kind.tile
    few = few and t.masks
    if in_place(kind):
        return Thin(t, kind.acc, 1024, 0, max(t.width, t.heights[0]) if few else t.sums)
    return Thin(t, kind.acc, CHAIN, CHAIN * SIZES[TYPES[kind.b][0]], t.heights[0] if few else t.sums)


def thin_module(kind: Kind, few: bool, attributes: str) -> str:
    s = thin(kind, few)
    functions = [kernel(kind, s), pack(kind, kind.a, kind.a, attributes), numbers(kind, s, attributes), finish(kind, attributes), sums(kind, s, attributes), *walk(s, attributes)]
    return module(*functions, extra=SCRATCH)


def numbers(kind: Kind, s: Thin, attributes: str) -> Function:
    """`length` elements of each of some rows of W, ld apart, as rows of numbers that are `apart` from each other."""
    t, acc, memory = kind.tile, kind.acc, TYPES[kind.b][0]
    w = t.width
    f = Function("numbers", "ptr noalias readonly %b, i64 %ld, i64 %rows, i64 %length, ptr noalias %numbers, i64 %apart", attributes + " noinline")
    whole = f.mul(f.div("%length", w), w)
    with f.loop(0, "%rows") as r:
        source, target = f.at(memory, "%b", f.mul(r, "%ld")), f.at(acc, "%numbers", f.mul(r, "%apart"))

        def some(k, lanes, load, store):
            store(f.decode(kind.b, load(f.at(memory, source, k)), lanes, t.half), f.at(acc, target, k))

        plain = lambda lanes: (lambda p: f.load(vector(memory, lanes), p, SIZES[memory]), lambda v, p: f.store(vector(acc, lanes), v, p, SIZES[acc]))
        with f.loop(0, whole, w) as k:
            some(k, w, *plain(w))
        if t.masks:
            with f.when(f.compare("slt", whole, "%length")):
                mask = f.lanes_below(f.sub("%length", whole), w)
                some(whole, w, lambda p: masked_load(f, memory, w, p, mask), lambda v, p: masked_store(f, acc, w, v, p, mask))
        else:
            with f.loop(whole, "%length") as k:
                some(k, 1, *plain(1))
    return f


def sums(kind: Kind, s: Thin, attributes: str) -> Function:
    """Y of some rows of W (gemv_ir's arguments): tile after tile through scratch [numbers, sums]."""
    acc, memory = kind.acc, TYPES[kind.b][0]
    f = Function("sums", arguments(kind) + ", i64 %lds, ptr noalias %scratch", attributes + " noinline")
    ld = s.ld(f, "%k")
    held = f.at(acc, "%scratch", f.mul(ld, s.tall))
    with f.loop(0, "%n", s.tall) as n0:
        rows = f.min(s.tall, f.sub("%n", n0))
        f.call("void", "llvm.memset.p0.i64", f"ptr {held}", "i8 0", f"i64 {f.mul('%lds', s.square * SIZES[acc])}", "i1 false")  # rows that are turned with the others, too: garbage is slow
        base = f.at(memory, "%b", f.mul(n0, "%ld"))
        with f.loop(0, "%k", s.stretch) as k0:
            length = f.min(s.stretch, f.sub("%k", k0))
            here, after = f.at(memory, base, k0), f.add(k0, s.stretch)
            copied = f.compare("slt", rows, s.tall) if in_place(kind) else "true"  # tiles read all their rows: behind the last one there may be no memory
            with f.when(copied):
                f.do(f"call void @numbers(ptr {here}, i64 %ld, i64 {rows}, i64 {length}, ptr %scratch, i64 {ld})")
                with f.loop(rows, s.tall) as row:  # what is not there is zeros
                    f.call("void", "llvm.memset.p0.i64", f"ptr {f.at(acc, '%scratch', f.mul(row, ld))}", "i8 0", f"i64 {f.mul(length, SIZES[acc])}", "i1 false")
            source = f"ptr {f.op(f'select i1 {copied}, ptr %scratch, ptr {here}')}, i64 {f.op(f'select i1 {copied}, i64 {ld}, i64 %ld')}"
            more = f.compare("slt", after, "%k")
            next_ = f.op(f"select i1 {more}, ptr {f.at(memory, base, after)}, ptr {f.at(memory, base, f.mul('%ld', s.tall))}")
            fetched = f"ptr {next_}, i64 {f.mul('%ld', SIZES[memory])}"
            f.do(f"call void @stretch(ptr %x, i64 %k, i64 %lds, i64 {k0}, i64 {length}, i64 {rows}, {source}, ptr {held}, {fetched})")
        strides = "i64 %rsy, i64 %csy, ptr %i, i64 %rsi, i64 %csi"
        f.do(f"call void @finish(ptr {held}, i64 %lds, i64 %m, i64 {rows}, i64 {n0}, ptr %y, {strides}, {acc} %alpha, {acc} %beta)")
    return f


def finish(kind: Kind, attributes: str) -> Function:
    """Columns n0 … n0 + rows of Y from sums [rows, lds]: turned in registers where Y's columns are neighbours."""
    t, acc = kind.tile, kind.acc
    w = t.width
    signature = "ptr noalias readonly %sums, i64 %lds, i64 %m, i64 %rows, i64 %n0, ptr noalias %y, i64 %rsy, i64 %csy, ptr %i, i64 %rsi, i64 %csi"
    f = Function("finish", f"{signature}, {acc} %alpha, {acc} %beta", attributes + " noinline")
    memory, source = TYPES[kind.c][0], TYPES[kind.i][0]

    def one_by_one(first):
        with f.loop(0, "%m") as m, f.loop(first, "%rows") as r:
            put(f, kind, f.load(acc, f.at(acc, "%sums", f.add(f.mul(r, "%lds"), m))), m, f.add("%n0", r))

    def squares(load, store, start, stop):
        with f.loop(start, stop, w) as r0, f.loop(0, "%m", w) as m0:
            rows = [f.load(vector(acc, w), f.at(acc, "%sums", f.add(f.mul("%lds", f.add(r0, r)), m0)), SIZES[acc]) for r in range(w)]
            column = f.add("%n0", r0)
            for j, values in enumerate(transposed(f, acc, rows)):
                m = f.add(m0, j)
                with f.when(f.compare("slt", m, "%m")):
                    added = lambda m=m: load(source, f.at(source, "%i", f.add(f.mul(m, "%rsi"), column)), r0)
                    store(memory, epilogue(f, kind, values, w, added), f.at(memory, "%y", f.add(f.mul(m, "%rsy"), column)), r0)

    def turned():
        if t.masks:  # what lies behind the last row is read, and not stored
            mask = lambda r0: f.lanes_below(f.sub("%rows", r0), w)
            squares(lambda e, p, r0: masked_load(f, e, w, p, mask(r0)), lambda e, v, p, r0: masked_store(f, e, w, v, p, mask(r0)), 0, "%rows")
            return
        whole = f.mul(f.div("%rows", w), w)
        squares(lambda e, p, r0: f.load(vector(e, w), p, SIZES[e]), lambda e, v, p, r0: f.store(vector(e, w), v, p, SIZES[e]), 0, whole)
        one_by_one(whole)

    neighbours = f.compare("eq", "%csy", 1)
    if kind.epilogue == "add":
        neighbours = f.both(neighbours, f.compare("eq", "%csi", 1))
    f.choose(neighbours, turned, lambda: one_by_one(0))
    return f


def kernel(kind: Kind, s: Thin) -> Function:
    """The entry: work items are (batch, share of the rows of W), as in gemv_ir.py. X is packed once a batch entry."""
    acc = kind.acc
    t, size = kind.tile, SIZES[kind.acc]
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", "nounwind", linkage="dso_local")
    word, slot, scalars = opening(f, kind)
    am, bm, cm, im = (TYPES[d][0] for d in (kind.a, kind.b, kind.c, kind.i))
    lds = f.mul(f.ceil_div(word["m"], t.width), t.width)
    scratch = f.add(f.mul(lds, s.square), f.mul(s.ld(f, word["k"]), s.tall))  # numbers, and sums
    shares = f.ceil_div(word["n"], word["cols"])
    held = f.variable("i64", -1)  # the batch entry whose X is packed

    def work(base, begin, end):
        panels = f.at(acc, base, scratch)
        with f.loop(begin, end) as item:
            entry = f.div(item, shares)
            oa, ob, oc, oi = batch_offsets(f, entry, BATCH, word["batch_dims"], 4)
            n0 = f.mul(f.rem(item, shares), word["cols"])
            n = f.min(word["cols"], f.sub(word["n"], n0))
            with f.when(f.compare("ne", entry, f.load("i64", held))):
                pack_x(f, t, acc, kind.a, SIZES[am], f.at(am, slot["a"], oa), word["rsx"], word["csx"], word["m"], lds, word["k"], panels)
                f.store("i64", entry, held)
            b = f.at(bm, slot["b"], f.add(ob, f.mul(n0, word["csb"])))
            y = f.at(cm, slot["c"], f.add(oc, f.mul(n0, word["csy"])))
            i = f.at(im, slot["i"], f.add(oi, f.mul(n0, word["csi"]))) if "i" in slot else "null"
            f.do(
                f"call void @sums(ptr {panels}, ptr {b}, i64 {word['csb']}, i64 {word['m']}, i64 {n}, i64 {word['k']}, i64 0, ptr {y}, i64 {word['rsy']}, i64 {word['csy']}, "
                f"ptr {i}, i64 {word['rsi']}, i64 {word['csi']}, {acc} {scalars[0]}, {acc} {scalars[1]}, i64 {lds}, ptr {base})"
            )

    claimed(f, word["items"], f.mul(f.add(scratch, f.add(f.mul(lds, word["k"]), t.nr)), size), lambda base: None, work, STACK)
    return f
