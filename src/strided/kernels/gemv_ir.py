"""A vector times a matrix as LLVM IR, at the speed the matrix can be read: y [n] = alpha * x [k] @ B [k, n]  (+ beta * I [n]), with batches.

Two forms by what is contiguous in B: "dot" (k: each result is one sum along a row of memory) and "axpy" (n: rows are added up, eight at a time). A matrix
times a vector is the same with B transposed. Nothing is packed.
"""
from __future__ import annotations

from .gemm_ir import Kind, batch_offsets, epilogue, masked_load, scalar_slots
from .gemm_text import SIZES, TYPES, Function, is_float, mangled, module, vector

# y has `n` elements in work items of `cols`; strides in elements; slot_x, slot_b: which slots hold the vector and the matrix.
WORDS = "n k items cols slot_x slot_b sx rsb csb sy si batch_dims".split()
FIRST = 8
BATCH = FIRST + len(WORDS)  # then five words a batch dimension: size, strides of x, B, y, I
ROWS = 8  # rows of B that one pass of "axpy" adds up
CHUNK = 2048  # columns of "axpy" whose sums are kept in the first-level cache
SMALL = 1024  # elements of x that stand on the stack


def gemv_module(kind: Kind, form: str, attributes: str) -> str:
    functions = [kernel(kind, form), dot(kind, attributes) if form == "dot" else axpy(kind, attributes)]
    return module(*functions, extra="declare i32 @posix_memalign(ptr, i64, i64)\ndeclare void @free(ptr)")


def arguments(kind: Kind) -> str:
    acc = kind.acc
    return f"ptr noalias readonly %x, ptr readonly %b, i64 %ld, i64 %n, i64 %k, ptr %y, i64 %sy, ptr %i, i64 %si, {acc} %alpha, {acc} %beta"


def put(f: Function, kind: Kind, value: str, n) -> None:
    memory, source = TYPES[kind.c][0], TYPES[kind.i][0]
    load = lambda: f.load(source, f.at(source, "%i", f.mul(n, "%si")), SIZES[source])
    f.store(memory, epilogue(f, kind, value, 1, load), f.at(memory, "%y", f.mul(n, "%sy")), SIZES[memory])


def dot(kind: Kind, attributes: str) -> Function:
    """Rows of B are contiguous along k, `ld` apart along n. Four rows at a time share the loads of x."""
    t, acc, memory = kind.tile, kind.acc, TYPES[kind.b][0]
    w = t.width
    wide = vector(acc, w)
    zero = "zeroinitializer"
    f = Function("sums", arguments(kind), attributes + " noinline")

    def block(n0, rows, chains):
        """`rows` results, each in `chains` partial sums of a vector."""
        sums = [[f.variable(wide, zero, 64) for _ in range(chains)] for _ in range(rows)]
        base = [f.at(memory, "%b", f.mul(f.add(n0, r), "%ld")) for r in range(rows)]
        step = w * chains

        def add(k, chain, load_b, load_x):
            x = load_x(f.at(acc, "%x", k))
            for r in range(rows):
                b = f.decode(kind.b, load_b(f.at(memory, base[r], k)), w, t.half)
                f.store(wide, f.fma(acc, w, b, x, f.load(wide, sums[r][chain], 64), t.fused), sums[r][chain], 64)

        plain_b = lambda p: f.load(vector(memory, w), p, SIZES[memory])
        plain_x = lambda p: f.load(wide, p, SIZES[acc])
        whole = f.mul(f.div("%k", step), step)
        with f.loop(0, whole, step) as k:
            for chain in range(chains):
                add(f.add(k, chain * w), chain, plain_b, plain_x)
        whole2 = f.mul(f.div("%k", w), w)
        if chains > 1:
            with f.loop(whole, whole2, w) as k:
                add(k, 0, plain_b, plain_x)
        if t.masks:
            with f.when(f.compare("slt", whole2, "%k")):
                mask = f.lanes_below(f.sub("%k", whole2), w)
                add(whole2, 0, lambda p: masked_load(f, memory, w, p, mask), lambda p: masked_load(f, acc, w, p, mask))
        totals = []
        for r in range(rows):
            total = f.load(wide, sums[r][0], 64)
            for chain in range(1, chains):
                total = f.plus(acc, w, total, f.load(wide, sums[r][chain], 64))
            totals.append(f.variable(acc, horizontal(f, acc, w, total)))
        if not t.masks:
            with f.loop(whole2, "%k") as k:
                x = f.load(acc, f.at(acc, "%x", k))
                for r in range(rows):
                    b = f.decode(kind.b, f.load(memory, f.at(memory, base[r], k)), 1, t.half)
                    f.store(acc, f.fma(acc, 1, b, x, f.load(acc, totals[r]), t.fused), totals[r])
        for r in range(rows):
            put(f, kind, f.load(acc, totals[r]), f.add(n0, r))

    fours = f.mul(f.div("%n", 4), 4)
    with f.loop(0, fours, 4) as n0:
        block(n0, 4, 2)
    with f.loop(fours, "%n") as n0:
        block(n0, 1, 4)
    return f


def horizontal(f: Function, acc: str, lanes: int, value: str) -> str:
    """Sum of the lanes, in halves: the error grows with log2(lanes)."""
    if is_float(acc):
        f.declared.add(f"declare {acc} @llvm.vector.reduce.fadd.{mangled(acc, lanes)}({acc}, {vector(acc, lanes)})")
        return f.op(f"call reassoc {acc} @llvm.vector.reduce.fadd.{mangled(acc, lanes)}({acc} -0.0, {vector(acc, lanes)} {value})")
    return f.call(acc, f"llvm.vector.reduce.add.{mangled(acc, lanes)}", f"{vector(acc, lanes)} {value}")


def axpy(kind: Kind, attributes: str) -> Function:
    """Rows of B are contiguous along n, `ld` apart along k: sums of a chunk of columns grow by eight rows a pass, read as eight streams."""
    t, acc, memory = kind.tile, kind.acc, TYPES[kind.b][0]
    w = t.width
    wide = vector(acc, w)
    f = Function("sums", arguments(kind), attributes + " noinline")
    sums = f.variable(f"[{CHUNK} x {acc}]", align=64)
    with f.loop(0, "%n", CHUNK) as n0:
        n = f.min(CHUNK, f.sub("%n", n0))
        whole = f.mul(f.div(n, w), w)
        with f.loop(0, n) as j:
            f.store(acc, "0.0" if is_float(acc) else "0", f.at(acc, sums, j))

        def add(k0, rows, first):
            x = [f.load(acc, f.at(acc, "%x", f.add(k0, r))) for r in range(rows)]
            base = [f.at(memory, "%b", f.add(n0, f.mul(f.add(k0, r), "%ld"))) for r in range(rows)]
            for lanes, start, stop in ((w, 0, whole), (1, whole, n)):
                type_ = vector(acc, lanes)
                many = [f.splat(acc, v, lanes) for v in x]
                with f.loop(start, stop, lanes) as j:
                    place = f.at(acc, sums, j)
                    total = f.load(type_, place, SIZES[acc])
                    for r in range(rows):
                        b = f.decode(kind.b, f.load(vector(memory, lanes), f.at(memory, base[r], j), SIZES[memory]), lanes, t.half)
                        total = f.fma(acc, lanes, b, many[r], total, t.fused)
                    f.store(type_, total, place, SIZES[acc])

        full = f.mul(f.div("%k", ROWS), ROWS)
        with f.loop(0, full, ROWS) as k0:
            add(k0, ROWS, n0)
        with f.loop(full, "%k") as k0:
            add(k0, 1, n0)
        with f.loop(0, n) as j:
            put(f, kind, f.load(acc, f.at(acc, sums, j)), f.add(n0, j))
    return f


def kernel(kind: Kind, form: str) -> Function:
    """The entry: work items are (batch, share of the columns). x is decoded once a batch entry into scratch."""
    acc = kind.acc
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", "nounwind", linkage="dso_local")
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    begin = f.div(f.mul(word["items"], "%part"), "%parts")
    end = f.div(f.mul(word["items"], f.add("%part", 1)), "%parts")
    places = {"c": 0, "a": word["slot_x"], "b": word["slot_b"]} | ({"i": 3} if kind.epilogue == "add" else {})
    slot = {name: f.load("ptr", f.at("ptr", "%slots", n)) for name, n in places.items()}
    scalars = scalar_slots(f, kind, len(places))
    am, bm, cm, im = (TYPES[d][0] for d in (kind.a, kind.b, kind.c, kind.i))
    with f.when(f.compare("slt", begin, end)):
        cell = f.variable("ptr", f.variable(f"[{SMALL} x {acc}]", align=64))
        large = f.compare("sgt", word["k"], SMALL)
        with f.when(large):
            f.do(f"call i32 @posix_memalign(ptr {cell}, i64 64, i64 {f.mul(word['k'], SIZES[acc])})")
        copy = f.load("ptr", cell)
        shares = f.ceil_div(word["n"], word["cols"])
        held = f.variable("i64", -1)  # the batch entry whose x stands in the scratch
        with f.loop(begin, end) as item:
            entry = f.div(item, shares)
            oa, ob, oc, oi = batch_offsets(f, entry, BATCH, word["batch_dims"], 4)
            n0 = f.mul(f.rem(item, shares), word["cols"])
            n = f.min(word["cols"], f.sub(word["n"], n0))
            with f.when(f.compare("ne", entry, f.load("i64", held))):
                source = f.at(am, slot["a"], oa)
                with f.loop(0, word["k"]) as k:
                    value = f.load(am, f.at(am, source, f.mul(k, word["sx"])))
                    f.store(acc, f.decode(kind.a, value, 1, kind.tile.half), f.at(acc, copy, k))
                f.store("i64", entry, held)
            ld = word["csb"] if form == "dot" else word["rsb"]
            b = f.at(bm, slot["b"], f.add(ob, f.mul(n0, word["csb"])))
            y = f.at(cm, slot["c"], f.add(oc, f.mul(n0, word["sy"])))
            i = f.at(im, slot["i"], f.add(oi, f.mul(n0, word["si"]))) if "i" in slot else "null"
            f.do(
                f"call void @sums(ptr {copy}, ptr {b}, i64 {ld}, i64 {n}, i64 {word['k']}, ptr {y}, i64 {word['sy']}, ptr {i}, i64 {word['si']}, "
                f"{acc} {scalars[0]}, {acc} {scalars[1]})"
            )
        with f.when(large):
            f.do(f"call void @free(ptr {copy})")
    return f
