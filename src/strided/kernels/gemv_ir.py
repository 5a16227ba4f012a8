"""A few rows times a matrix as LLVM IR, at the speed the matrix can be read: Y [m, n] = alpha * X [m, k] @ B [k, n]  (+ beta * I [m, n]), with batches.

Two forms by what is contiguous in B: "dot" (k: each result is one sum along a row of memory) and "axpy" (n: rows are added up, eight at a time). A matrix
times a vector, or a few of them, is the same with B transposed. Nothing is packed; only X is decoded beforehand.
"""
from __future__ import annotations

from . import jit
from .gemm_ir import batch_offsets, scalar_slots
from .gemm_micro import epilogue
from .gemm_pack import Kind
from .gemm_text import SIZES, TYPES, Function, is_float, mangled, masked_load, module, vector
from .scratch import SCRATCH, claimed

# Columns come in work items of `cols`; strides in elements (x, i, y: rows, columns); slot_x, slot_b: which slots hold the rows and the matrix.
WORDS = "m n k items cols chunk slot_x slot_b rsx csx rsb csb rsy csy rsi csi batch_dims".split()
FIRST = 8
BATCH = FIRST + len(WORDS)  # then five words a batch dimension: size, strides of X, B, Y, I
ROWS = 8  # rows of B that one pass of "axpy" adds up
SUMS = 8192  # sums of "axpy" that are kept in the first-level cache: m rows of `chunk` columns
AHEAD = 1024  # bytes of a row of B that "dot" fetches before it uses them
SMALL = 4096  # elements of X that stand on the stack


def gemv_module(kind: Kind, form: str, attributes: str) -> str:
    functions = [kernel(kind, form), dot(kind, attributes) if form == "dot" else axpy(kind, attributes)]
    return module(*functions, extra=SCRATCH)


def arguments(kind: Kind) -> str:
    acc = kind.acc
    return (
        f"ptr noalias readonly %x, ptr readonly %b, i64 %ld, i64 %m, i64 %n, i64 %k, i64 %chunk, ptr %y, i64 %rsy, i64 %csy, ptr %i, i64 %rsi, i64 %csi, {acc} %alpha, {acc} %beta"
    )


def put(f: Function, kind: Kind, value: str, row, column) -> None:
    memory, source = TYPES[kind.c][0], TYPES[kind.i][0]
    load = lambda: f.load(source, f.at(source, "%i", f.add(f.mul(row, "%rsi"), f.mul(column, "%csi"))), SIZES[source])
    f.store(memory, epilogue(f, kind, value, 1, load), f.at(memory, "%y", f.add(f.mul(row, "%rsy"), f.mul(column, "%csy"))), SIZES[memory])


def dot(kind: Kind, attributes: str) -> Function:
    """Columns of B are contiguous along k, `ld` apart. Four columns at a time share the loads of X, up to four rows of X those of B."""
    t, acc, memory = kind.tile, kind.acc, TYPES[kind.b][0]
    w = t.width
    wide = vector(acc, w)
    f = Function("sums", arguments(kind), attributes + " noinline")

    def block(m0, rows, n0, columns, chains):
        """rows x columns results, each in `chains` partial sums of a vector."""
        sums = [[[f.variable(wide, "zeroinitializer", 64) for _ in range(chains)] for _ in range(columns)] for _ in range(rows)]
        base_x = [f.at(acc, "%x", f.mul(f.add(m0, r), "%k")) for r in range(rows)]
        base_b = [f.at(memory, "%b", f.mul(f.add(n0, c), "%ld")) for c in range(columns)]
        step = w * chains

        def add(k, chain, load_b, load_x):
            x = [load_x(f.at(acc, base, k)) for base in base_x]
            for c in range(columns):
                b = f.decode(kind.b, load_b(f.at(memory, base_b[c], k)), w, t.half)
                for r in range(rows):
                    slot = sums[r][c][chain]
                    f.store(wide, f.fma(acc, w, b, x[r], f.load(wide, slot, 64), t.fused), slot, 64)

        plain_b = lambda p: f.load(vector(memory, w), p, SIZES[memory])
        plain_x = lambda p: f.load(wide, p, SIZES[acc])
        whole = f.mul(f.div("%k", step), step)
        beyond = f.mul("%ld", columns - 1)
        with f.loop(0, whole, step) as k:
            ends = f.compare("sge", f.add(k, AHEAD // SIZES[memory]), "%k")
            jump = f.op(f"select i1 {ends}, i64 {beyond}, i64 0")
            for base in base_b:  # the hardware foresees a stream only to the end of its page; behind a row's end go on with the rows that come next
                here = f.at(memory, base, f.add(k, jump))
                for line in range(0, max(step * SIZES[memory], 64), 64):
                    f.call("void", "llvm.prefetch.p0", f"ptr {f.at('i8', here, AHEAD + line)}", "i32 0", "i32 3", "i32 1")
            for chain in range(chains):
                add(f.add(k, chain * w), chain, plain_b, plain_x)
        vectors = f.mul(f.div("%k", w), w)
        if chains > 1:
            with f.loop(whole, vectors, w) as k:
                add(k, 0, plain_b, plain_x)
        if t.masks:
            with f.when(f.compare("slt", vectors, "%k")):
                mask = f.lanes_below(f.sub("%k", vectors), w)
                add(vectors, 0, lambda p: masked_load(f, memory, w, p, mask), lambda p: masked_load(f, acc, w, p, mask))
        for r in range(rows):
            for c in range(columns):
                total = f.load(wide, sums[r][c][0], 64)
                for chain in range(1, chains):
                    total = f.plus(acc, w, total, f.load(wide, sums[r][c][chain], 64))
                total = f.variable(acc, horizontal(f, acc, w, total))
                if not t.masks:
                    with f.loop(vectors, "%k") as k:
                        b = f.decode(kind.b, f.load(memory, f.at(memory, base_b[c], k)), 1, t.half)
                        f.store(acc, f.fma(acc, 1, b, f.load(acc, f.at(acc, base_x[r], k)), f.load(acc, total), t.fused), total)
                put(f, kind, f.load(acc, total), f.add(m0, r), f.add(n0, c))

    def all_rows(n0, columns, heights, chains):
        first = 0
        for rows in heights:  # as many rows at a time as registers hold sums of, then the rest
            last = f.add(first, f.mul(f.div(f.sub("%m", first), rows), rows))
            with f.loop(first, last, rows) as m0:
                block(m0, rows, n0, columns, chains if rows == 1 else 1)
            first = last

    many = t.masks or jit.host().arch == "aarch64"  # 32 registers
    fours = f.mul(f.div("%n", 4), 4)
    with f.loop(0, fours, 4) as n0:
        all_rows(n0, 4, (4, 2, 1) if many else (2, 1), 2)
    with f.loop(fours, "%n") as n0:
        all_rows(n0, 1, (2, 1), 4)
    return f


def horizontal(f: Function, acc: str, lanes: int, value: str) -> str:
    """Sum of the lanes, in halves: the error grows with log2(lanes)."""
    if is_float(acc):
        f.declared.add(f"declare {acc} @llvm.vector.reduce.fadd.{mangled(acc, lanes)}({acc}, {vector(acc, lanes)})")
        return f.op(f"call reassoc {acc} @llvm.vector.reduce.fadd.{mangled(acc, lanes)}({acc} -0.0, {vector(acc, lanes)} {value})")
    return f.call(acc, f"llvm.vector.reduce.add.{mangled(acc, lanes)}", f"{vector(acc, lanes)} {value}")


def axpy(kind: Kind, attributes: str) -> Function:
    """Rows of B are contiguous along n, `ld` apart: the sums of a chunk of columns grow by eight rows of B a pass, read as eight streams."""
    t, acc, memory = kind.tile, kind.acc, TYPES[kind.b][0]
    w = t.width
    f = Function("sums", arguments(kind), attributes + " noinline")
    sums = f.variable(f"[{SUMS} x {acc}]", align=64)

    def pass_(m0, many, k0, rows, n0, n):
        """Adds `rows` products to the sums of `many` rows of Y; they are added up first, which keeps the rounding error of long sums down."""
        x = [[f.load(acc, f.at(acc, "%x", f.add(f.mul(f.add(m0, m), "%k"), f.add(k0, r)))) for r in range(rows)] for m in range(many)]
        base = [f.at(memory, "%b", f.add(n0, f.mul(f.add(k0, r), "%ld"))) for r in range(rows)]
        row = [f.at(acc, sums, f.mul(f.add(m0, m), "%chunk")) for m in range(many)]

        def step(j, lanes, load):
            type_ = vector(acc, lanes)
            places = [f.at(acc, row[m], j) for m in range(many)]
            totals = [f.load(type_, place, SIZES[acc]) if rows == 1 else None for place in places]  # a single product is rounded with the sum
            for r in range(rows):
                b = f.decode(kind.b, load(f.at(memory, base[r], j), lanes), lanes, t.half)
                for m in range(many):
                    factor = f.splat(acc, x[m][r], lanes)
                    totals[m] = f.times(acc, lanes, b, factor) if totals[m] is None else f.fma(acc, lanes, b, factor, totals[m], t.fused)
            for place, total in zip(places, totals):
                f.store(type_, total if rows == 1 else f.plus(acc, lanes, f.load(type_, place, SIZES[acc]), total), place, SIZES[acc])

        plain = lambda p, lanes: f.load(vector(memory, lanes), p, SIZES[memory])
        whole = f.mul(f.div(n, w), w)
        with f.loop(0, whole, w) as j:
            step(j, w, plain)
        if t.masks:
            with f.when(f.compare("slt", whole, n)):
                mask = f.lanes_below(f.sub(n, whole), w)
                step(whole, w, lambda p, lanes: masked_load(f, memory, lanes, p, mask))
        else:
            with f.loop(whole, n) as j:
                step(j, 1, plain)

    pairs = f.mul(f.div("%m", 2), 2)
    with f.loop(0, "%n", "%chunk") as n0:
        n = f.min("%chunk", f.sub("%n", n0))
        with f.loop(0, f.mul("%m", "%chunk")) as j:
            f.store(acc, "0.0" if is_float(acc) else "0", f.at(acc, sums, j))
        full = f.mul(f.div("%k", ROWS), ROWS)
        with f.loop(0, full, ROWS) as k0:
            with f.loop(0, pairs, 2) as m0:
                pass_(m0, 2, k0, ROWS, n0, n)
            with f.loop(pairs, "%m") as m0:
                pass_(m0, 1, k0, ROWS, n0, n)
        with f.loop(full, "%k") as k0, f.loop(0, "%m") as m0:
            pass_(m0, 1, k0, 1, n0, n)
        with f.loop(0, "%m") as m0, f.loop(0, n) as j:
            put(f, kind, f.load(acc, f.at(acc, sums, f.add(f.mul(m0, "%chunk"), j))), m0, f.add(n0, j))
    return f


def opening(f: Function, kind: Kind) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """(the descriptor's words, addresses of the operands by their letters, alpha and beta)."""
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    places = {"c": 0, "a": word["slot_x"], "b": word["slot_b"]} | ({"i": 3} if kind.epilogue == "add" else {})
    slot = {name: f.load("ptr", f.at("ptr", "%slots", n)) for name, n in places.items()}
    scalars = scalar_slots(f, kind, len(places))
    return word, slot, scalars


def kernel(kind: Kind, form: str) -> Function:
    """The entry: work items are (batch, share of the columns). X is decoded once a batch entry into scratch [m, k]."""
    acc = kind.acc
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", "nounwind", linkage="dso_local")
    word, slot, scalars = opening(f, kind)
    am, bm, cm, im = (TYPES[d][0] for d in (kind.a, kind.b, kind.c, kind.i))
    shares = f.ceil_div(word["n"], word["cols"])
    held = f.variable("i64", -1)  # the batch entry whose X stands in the scratch

    def work(copy, begin, end):
        with f.loop(begin, end) as item:
            entry = f.div(item, shares)
            oa, ob, oc, oi = batch_offsets(f, entry, BATCH, word["batch_dims"], 4)
            n0 = f.mul(f.rem(item, shares), word["cols"])
            n = f.min(word["cols"], f.sub(word["n"], n0))
            with f.when(f.compare("ne", entry, f.load("i64", held))):
                with f.loop(0, word["m"]) as m, f.loop(0, word["k"]) as k:
                    place = f.add(oa, f.add(f.mul(m, word["rsx"]), f.mul(k, word["csx"])))
                    value = f.decode(kind.a, f.load(am, f.at(am, slot["a"], place)), 1, kind.tile.half)
                    f.store(acc, value, f.at(acc, copy, f.add(f.mul(m, word["k"]), k)))
                f.store("i64", entry, held)
            ld = word["csb"] if form == "dot" else word["rsb"]
            b = f.at(bm, slot["b"], f.add(ob, f.mul(n0, word["csb"])))
            y = f.at(cm, slot["c"], f.add(oc, f.mul(n0, word["csy"])))
            i = f.at(im, slot["i"], f.add(oi, f.mul(n0, word["csi"]))) if "i" in slot else "null"
            f.do(
                f"call void @sums(ptr {copy}, ptr {b}, i64 {ld}, i64 {word['m']}, i64 {n}, i64 {word['k']}, i64 {word['chunk']}, "
                f"ptr {y}, i64 {word['rsy']}, i64 {word['csy']}, ptr {i}, i64 {word['rsi']}, i64 {word['csi']}, {acc} {scalars[0]}, {acc} {scalars[1]})"
            )

    claimed(f, word["items"], f.mul(f.mul(word["m"], word["k"]), SIZES[acc]), lambda _: None, work, SMALL * SIZES[acc])
    return f
