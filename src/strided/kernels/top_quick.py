"""The k best of a row of float32 where no two of them are equal: numbers below a bound are passed over a vector at a time, the others ranked by counting.

The bound: the row is dealt into at least 2k groups, and a bound that the best of k groups reach is reached by k numbers. Who is chosen among equals is order.py's and
top.py's business: a row in which that matters, or a NaN is among the best, is left to them.
"""
from __future__ import annotations

from . import jit
from .loops import Body

MOST = 512  # numbers wanted of a row
SHARE = 8  # numbers of a row for one that is wanted, at least
GROUPS = 2 * MOST
CANDIDATES = 2048  # numbers that reach the bound
TOGETHER = 4  # vectors compared before a branch


def quick(kernel: Body, largest: bool) -> str:
    """IR text of `i1 @quick(numbers, keys, ids, n, k)`: the positions of the k best in `ids`, best first, or false; `keys` is scratch. k <= MOST, SHARE·k <= n."""
    lanes = jit.host().vector_bits // 32
    half = max(lanes // 2, 2)
    wide, ints, bools = f"<{lanes} x float>", f"<{lanes} x i32>", f"<{lanes} x i1>"
    pairs = f"<{half} x i64>"
    b = Body()
    for text in (f"declare i1 @llvm.vector.reduce.or.v{lanes}i1({bools})", f"declare i64 @llvm.vector.reduce.add.v{half}i64({pairs})", f"declare i{lanes} @llvm.ctpop.i{lanes}(i{lanes})",
                 f"declare i{lanes} @llvm.cttz.i{lanes}(i{lanes}, i1)", f"declare i32 @llvm.vector.reduce.umin.v{lanes}i32({ints})", f"declare i32 @llvm.vector.reduce.umax.v{lanes}i32({ints})",
                 "declare i32 @llvm.umin.i32(i32, i32)", "declare i32 @llvm.umax.i32(i32, i32)"):  # fmt: skip
        kernel.declare(text)
    groups, candidates = b.cell(f"[{GROUPS + lanes} x float]").name, b.cell(f"[{CANDIDATES + 2 * lanes} x i64]").name
    place = lambda i: b(f"getelementptr float, ptr %numbers, i64 {i}")
    group = lambda i: b(f"getelementptr float, ptr {groups}, i64 {i}")
    candidate = lambda i: b(f"getelementptr i64, ptr {candidates}, i64 {i}")

    def splat(type, lanes, value):
        vector = f"<{lanes} x {type}>"
        first = b(f"insertelement {vector} poison, {type} {value}, i64 0")
        return b(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")

    def key(type, value):
        """Unsigned integers in the order in which numbers are wanted, the best first; `type`: of one or of a vector."""
        int_ = type.replace("float", "i32")
        const = (lambda c: str(c)) if type == "float" else (lambda c: f"splat (i32 {c})")
        zero = "0.0" if type == "float" else "zeroinitializer"
        code = b(f"bitcast {type} {b(f'fadd {type} {value}, {zero}')} to {int_}")  # -0.0 equals 0.0
        sign = b(f"ashr {int_} {code}, {const(31)}")
        turned = b(f"xor {int_} {code}, {b(f'or {int_} {sign}, {const(-(1 << 31))}')}")
        return b(f"xor {int_} {turned}, {const(-1)}") if largest else turned

    better, reaches = ("ogt", "uge") if largest else ("olt", "ule")
    # ---- the best of each group ----
    step = b.mul(b.div(b.add(b.mul("%k", 2), lanes - 1), lanes), lanes)  # numbers from one of a group to its next, which are as many groups
    whole = b.sub("%n", b(f"urem i64 %n, {step}"))
    with b.loop(0, step, lanes) as j:
        b.store(wide, b.load(wide, place(j), ", align 4"), group(j), ", align 64")
    with b.loop(step, whole, step) as i:
        with b.loop(0, step, lanes, extra=b.plain()) as j:
            here, best = b.load(wide, place(b.add(i, j)), ", align 4"), b.load(wide, group(j), ", align 64")
            more = b(f"fcmp {better} {wide} {here}, {best}")
            b.store(wide, b(f"select {bools} {more}, {wide} {here}, {wide} {best}"), group(j), ", align 64")
    # ---- the bound: a key that the best of k groups and few more reach ----
    low, high = b.cell("i32", "-1"), b.cell("i32", "0")
    with b.loop(0, step, lanes) as j:
        keys = key(wide, b.load(wide, group(j), ", align 64"))
        b.store(ints, keys, group(j), ", align 64")
        for cell, how in ((low, "umin"), (high, "umax")):
            here = b(f"call i32 @llvm.vector.reduce.{how}.v{lanes}i32({ints} {keys})")
            cell.set(b(f"call i32 @llvm.{how}.i32(i32 {cell.get()}, i32 {here})"))
    enough = b.add("%k", b.add(b.div("%k", 16), 2))
    with b.loop_while() as unless:
        a, z = low.get(), high.get()
        unless(b(f"icmp ult i32 {a}, {z}"))
        half_way = b(f"lshr i32 {b(f'sub i32 {z}, {a}')}, 1")
        middle = b(f"add i32 {a}, {half_way}")
        bounds, count = splat("i32", lanes, middle), b.cell("i64", "0")
        with b.loop(0, step, lanes, extra=b.plain()) as j:
            inside = b(f"icmp ule {ints} {b.load(ints, group(j), ', align 64')}, {bounds}")
            ones = b(f"call i{lanes} @llvm.ctpop.i{lanes}(i{lanes} {b(f'bitcast {bools} {inside} to i{lanes}')})")
            count.add(b(f"zext i{lanes} {ones} to i64"))
        few = b(f"icmp ult i64 {count.get()}, %k")
        done = b(f"icmp ule i64 {count.get()}, {enough}")
        low.set(b.select(few, b(f"add i32 {middle}, 1"), b.select(done, middle, a, "i32"), "i32"))
        high.set(b.select(few, z, middle, "i32"))
    bound = high.get()
    if largest:
        bound = b(f"xor i32 {bound}, -1")
    sign = b(f"ashr i32 {b(f'xor i32 {bound}, -1')}, 31")  # back to the number that has this key
    turned = b(f"or i32 {sign}, {-(1 << 31)}")
    bound = b(f"bitcast i32 {b(f'xor i32 {bound}, {turned}')} to float")
    # ---- who reaches it ----
    found, fine = b.cell("i64", "0"), b.cell("i1", b(f"fcmp ord float {bound}, 0.0"))
    bounds = splat("float", lanes, bound)

    def meet(at, value):
        fine.set(b(f"and i1 {fine.get()}, {b(f'fcmp ord float {value}, 0.0')}"))
        wanted = b(f"zext i32 {key('float', value)} to i64")
        b.store("i64", b(f"or i64 {b(f'shl i64 {wanted}, 32')}, {at}"), candidate(found.get()))
        found.set(b.min(b.add(found.get(), 1), CANDIDATES))

    def look(i, vectors):
        tests, some = [], None
        for t in range(vectors):
            here = b(f"fcmp {reaches} {wide} {b.load(wide, place(b.add(i, t * lanes)), ', align 4')}, {bounds}")
            tests.append(here)
            some = here if some is None else b(f"or {bools} {some}, {here}")
        with b.when(b(f"call i1 @llvm.vector.reduce.or.v{lanes}i1({bools} {some})")):
            for t, here in enumerate(tests):
                left = b.cell(f"i{lanes}", b(f"bitcast {bools} {here} to i{lanes}"))
                with b.loop_while() as unless:
                    mask = left.get()
                    unless(b(f"icmp ne i{lanes} {mask}, 0"))
                    lane = b(f"call i{lanes} @llvm.cttz.i{lanes}(i{lanes} {mask}, i1 true)")
                    at = b.add(b.add(i, t * lanes), b(f"zext i{lanes} {lane} to i64"))
                    meet(at, b.load("float", place(at)))
                    left.set(b(f"and i{lanes} {mask}, {b(f'sub i{lanes} {mask}, 1')}"))

    many = b.sub("%n", b(f"urem i64 %n, {lanes * TOGETHER}"))
    with b.loop(0, many, lanes * TOGETHER) as i:
        look(i, TOGETHER)
    with b.loop(many, "%n") as at:
        value = b.load("float", place(at))
        with b.when(b(f"fcmp {reaches} float {value}, {bound}")):
            meet(at, value)
    # ---- each one's rank is how many are better ----
    met = found.get()
    b.store(f"<{2 * half} x i64>", "splat (i64 -1)", candidate(met), ", align 8")
    beyond = b.cell("i64", "-1")  # the key of the best that is not wanted
    sound = b(f"and i1 {fine.get()}, {b(f'icmp slt i64 {met}, {CANDIDATES}')}")
    with b.when(sound):
        with b.loop(0, met) as i:
            own = b.load("i64", candidate(i))
            owns, rank = splat("i64", half, own), b.cell(pairs, "zeroinitializer")
            with b.loop(0, met, half, extra=b.plain()) as j:
                below = b(f"icmp ult {pairs} {b.load(pairs, candidate(j), ', align 8')}, {owns}")
                rank.set(b(f"add {pairs} {rank.get()}, {b(f'zext <{half} x i1> {below} to {pairs}')}"))
            place_of = b(f"call i64 @llvm.vector.reduce.add.v{half}i64({pairs} {rank.get()})")
            worth = b(f"lshr i64 {own}, 32")
            with b.when(b(f"icmp slt i64 {place_of}, %k")):
                b.store("i64", worth, b(f"getelementptr i64, ptr %keys, i64 {place_of}"))
                b.store("i64", b(f"and i64 {own}, 4294967295"), b(f"getelementptr i64, ptr %ids, i64 {place_of}"))
            beyond.set(b.select(b(f"icmp eq i64 {place_of}, %k"), worth, beyond.get()))
        alike = b.cell("i1", "false")
        before = b.cell("i64", beyond.get())
        with b.loop(0, "%k") as i:  # from the last to the first
            this = b.load("i64", b(f"getelementptr i64, ptr %keys, i64 {b.sub(b.sub('%k', 1), i)}"))
            alike.set(b(f"or i1 {alike.get()}, {b(f'icmp eq i64 {this}, {before.get()}')}"))
            before.set(this)
        fine.set(b(f"xor i1 {alike.get()}, true"))
    result = b(f"and i1 {sound}, {fine.get()}")
    head = f"define internal i1 @quick(ptr noalias readonly %numbers, ptr noalias %keys, ptr noalias %ids, i64 %n, i64 %k) noinline {jit.ATTRIBUTES} {{\nentry:"
    return "\n".join([head, *b.entry, *b.lines, f"  ret i1 {result}", "}", *b.tail, ""])
