"""Products of rows as they lie, for the gradients of attention, in LLVM IR: both operands are rows of numbers with any distance, nothing is turned. Holds no kernel.

A tile is `height` rows of the result times some vectors of its columns, whose sums stand in registers. Numbers of the left operand are spread over a vector: "along" rows
(left [rows, k]) or "across" them (left [k, rows]). The right operand is [k, columns], packed or in place.
"""
from __future__ import annotations

from typing import NamedTuple

from .attention_text import CHAIN, walk
from .gemm_pack import Kind
from .gemm_text import Function, vector


def tile(kind: Kind, lie: str, height: int, vectors: int, attributes: str) -> Function:
    """p [height, vectors * width] = left @ b, or that added to p (more); of p only the first `rows` are touched. Rows of a are `step` apart, of b `ldb`, of p `ldp`.

    What is read later is fetched meanwhile: a line every step, `apart` bytes from each other, from `next` on.
    """
    t = kind.tile
    w, wide = t.width, vector("float", t.width)
    arguments = "i64 %k, ptr noalias readonly %a, i64 %step, ptr noalias readonly %b, i64 %ldb, ptr noalias %p, i64 %ldp, i1 %more, i64 %rows, ptr %next, i64 %apart"
    f = Function(f"tile_{lie}_{height}_{vectors}", arguments, attributes + " noinline")
    sums = [[f.variable(wide, "zeroinitializer", 64) for _ in range(vectors)] for _ in range(height)]
    # Rows are reached from few registers: every seventh row's address, and once, three and five times the step, which addressing scales.
    bases = [f.at("float", "%a", f.mul("%step", r)) for r in range(0, height, 7)] if lie == "along" else []
    odd = {i: f.mul("%step", i) for i in (1, 3, 5)} if lie == "along" else {}

    def left(k, r, ahead):
        """The place of the number of row r in step k + ahead."""
        if lie == "across":
            return f.at("float", f.at("float", "%a", f.mul(f.add(k, ahead), "%step")), r)
        base, within = f.at("float", bases[r // 7], k), r % 7
        if within:
            power = within & -within
            base = f.at("float", base, odd[within // power] if power == 1 else f.op(f"shl i64 {odd[within // power]}, {power.bit_length() - 1}"))
        return f.at("float", base, ahead) if ahead else base

    def step(k, ahead=0):
        row = f.at("float", "%b", f.mul(f.add(k, ahead), "%ldb"))
        right = [f.load(wide, f.at("float", row, j * w), 4) for j in range(vectors)]
        for r in range(height):
            number = f.splat("float", f.load("float", left(k, r, ahead)), w)
            for j in range(vectors):
                f.store(wide, f.fma("float", w, number, right[j], f.load(wide, sums[r][j], 64), t.fused), sums[r][j], 64)

    unroll = 1 if lie == "along" else 2
    whole = f.op(f"and i64 %k, {-unroll}")
    with f.loop(0, whole, unroll) as k:
        for ahead in range(unroll):
            f.call("void", "llvm.prefetch.p0", f"ptr {f.at('i8', '%next', f.mul(f.add(k, ahead), '%apart'))}", "i32 0", "i32 2", "i32 1")
            step(k, ahead)
    with f.loop(whole, "%k") as k:
        step(k)

    def put(rows):
        places = [(slot, f.at("float", "%p", f.add(f.mul("%ldp", r) if r else 0, j * w))) for r in rows for j, slot in enumerate(sums[r])]
        with f.when("%more"):
            for slot, place in places:
                f.store(wide, f.plus("float", w, f.load(wide, slot, 64), f.load(wide, place, 4)), slot, 64)
        for slot, place in places:
            f.store(wide, f.load(wide, slot, 64), place, 4)

    def some_rows():
        for r in range(height):
            with f.when(f.compare("slt", r, "%rows")):
                put([r])

    f.choose(f.compare("sge", "%rows", height), lambda: put(range(height)), some_rows)
    return f


def fetched(f: Function, turn, rows) -> str:
    """Where the tile of this number begins to fetch: one of the `lines` of each of `rows` rows, those behind them when all lines have had their turn."""
    line, group = f.rem(turn, "%lines"), f.div(turn, "%lines")
    return f.at("i8", f.at("i8", "%next", f.mul(line, 64)), f.mul(f.mul(group, rows), "%apart"))


def scores(kind: Kind, attributes: str) -> Function:
    """to [rows, NR] = left [rows, k] @ right, a packed panel [k, NR]: of the tiles that have rows from `begin` on; of those with none from `narrow` on only the first vector.

    Whole tiles are read and written: the last rows' overlaps the one before, and of fewer rows than the shortest has, those in front of the first.
    """
    t = kind.tile
    names = "i64 %rows, i64 %k, ptr %left, i64 %step, ptr %right, ptr %to, i64 %ldp, i64 %begin, i64 %narrow, ptr %next, i64 %apart, i64 %lines"
    f = Function("scores", names, attributes + " noinline")
    least = t.heights[-1]

    def emit(height, i):
        end = f.add(i, height)

        def products(vectors):
            with f.loop(0, "%k", CHAIN) as k0:
                here, more = f.min(CHAIN, f.sub("%k", k0)), f.compare("ne", k0, 0)
                a, b, p = f.at("float", "%left", f.add(f.mul(i, "%step"), k0)), f.at("float", "%right", f.mul(k0, t.nr)), f.at("float", "%to", f.mul(i, "%ldp"))
                next_ = fetched(f, f.div(i, t.heights[0]), "%k")
                f.do(f"call void @tile_along_{height}_{vectors}(i64 {here}, ptr {a}, i64 %step, ptr {b}, i64 {t.nr}, ptr {p}, i64 %ldp, i1 {more}, i64 {height}, ptr {next_}, i64 %apart)")

        with f.when(f.compare("sgt", end, "%begin")):
            if t.vectors == 1:
                products(1)
            else:
                f.choose(f.compare("sle", end, "%narrow"), lambda: products(1), lambda: products(t.vectors))

    done: int | str = 0
    for n, height in enumerate(t.heights):
        until = f.add(done, f.mul(f.div(f.sub("%rows", done), height), height))
        with f.loop(done, until, height) as i:
            emit(height, i)
        done = until
        below = t.heights[n + 1] if n + 1 < len(t.heights) else 0
        rest = f.sub("%rows", done)
        overlaps = f.compare("sgt", rest, below) if height == least else f.both(f.compare("sgt", rest, below), f.compare("sge", "%rows", height))
        with f.when(overlaps):
            emit(height, f.sub("%rows", height))
        done = f.op(f"select i1 {overlaps}, i64 %rows, i64 {done}")
    return f


def sums(kind: Kind, lie: str, attributes: str) -> Function:
    """to [rows, columns] (+)= left @ right, columns whole vectors.

    "along": left [rows, k], and a row takes only so many of k as the number of its tile's last row + 1 + `bound`. "across": left [k, rows], and a row takes those from
    the number of its tile's first row + `bound` on.
    """
    t = kind.tile
    names = "i64 %rows, i64 %k, ptr %left, i64 %step, ptr %right, i64 %ldb, i64 %columns, ptr %to, i64 %ldp, i1 %more, i64 %bound, ptr %next, i64 %apart, i64 %lines"
    f = Function(f"sums_{lie}", names, attributes + " noinline")
    largest = lambda a, b: f.call("i64", "llvm.smax.i64", f"i64 {a}", f"i64 {b}")

    def emit(height, i, rows):
        if lie == "along":
            start, end = 0, largest(f.min("%k", f.add("%bound", f.min(f.add(i, height), "%rows"))), 0)
            here, a = end, f.at("float", "%left", f.mul(i, "%step"))
        else:
            start = f.min(largest(f.add(i, "%bound"), 0), "%k")
            here, a = f.sub("%k", start), f.at("float", "%left", f.add(f.mul(start, "%step"), i))
        turn = f.mul(f.div(i, t.heights[0]), f.ceil_div("%columns", t.nr))
        some = f.op(f"or i1 {f.compare('sgt', here, 0)}, {f.op('xor i1 %more, true')}")
        with f.when(some), f.loop(0, "%columns", t.nr) as e:
            b = f.at("float", "%right", f.add(f.mul(start, "%ldb") if start else 0, e))
            p = f.at("float", "%to", f.add(f.mul(i, "%ldp"), e))
            next_ = fetched(f, f.add(turn, f.div(e, t.nr)), "%k")

            def pick(vectors):
                call = lambda: f.do(f"call void @tile_{lie}_{height}_{vectors}(i64 {here}, ptr {a}, i64 %step, ptr {b}, i64 %ldb, ptr {p}, i64 %ldp, i1 %more, i64 {rows}, ptr {next_}, i64 %apart)")
                if vectors == 1:
                    call()
                else:
                    f.choose(f.compare("sge", f.sub("%columns", e), vectors * t.width), call, lambda: pick(vectors - 1))

            pick(t.vectors)

    walk(f, kind, "%rows", emit)
    return f


def tile_functions(kind: Kind, attributes: str) -> list[Function]:
    """What `scores` and `sums` call, and they."""
    tiles = [tile(kind, lie, height, vectors, attributes) for lie in ("along", "across") for height in kind.tile.heights for vectors in range(1, kind.tile.vectors + 1)]
    return [scores(kind, attributes), *(sums(kind, lie, attributes) for lie in ("along", "across")), *tiles]


class Ahead(NamedTuple):
    """What a product fetches into the second-level cache while it runs: `lines` cache lines of each row, rows `apart` bytes."""

    place: str
    apart: str | int
    lines: str | int


def make_scores(f: Function, rows, k, left, step, right, to, ld, ahead: Ahead, *, begin, narrow) -> None:
    """Calls `scores`."""
    f.do(
        f"call void @scores(i64 {rows}, i64 {k}, ptr {left}, i64 {step}, ptr {right}, ptr {to}, i64 {ld}, i64 {begin}, i64 {narrow}, "
        f"ptr {ahead.place}, i64 {ahead.apart}, i64 {ahead.lines})"
    )


def add_sums(f: Function, lie: str, rows, k, left, step, right, columns, to, more, ahead: Ahead, *, bound) -> None:
    """Calls `sums`; right, to: (where, numbers from row to row)."""
    f.do(
        f"call void @sums_{lie}(i64 {rows}, i64 {k}, ptr {left}, i64 {step}, ptr {right[0]}, i64 {right[1]}, i64 {columns}, ptr {to[0]}, i64 {to[1]}, i1 {more}, i64 {bound}, "
        f"ptr {ahead.place}, i64 {ahead.apart}, i64 {ahead.lines})"
    )
