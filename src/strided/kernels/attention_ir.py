"""Attention as one kernel, in LLVM IR: softmax(q @ k^T * scale + mask) @ v without the matrix of scores in memory.

Everything is computed transposed, NR query rows a panel: scores [keys, NR] = K Q^T, then results [Ev, NR] = V^T P. A query row is a lane, so that maxima,
sums and factors of the (online) softmax are vectors, and the weights are the right operand of the second product where they stand. A block of keys and
values is read in place or packed once for all panels of an item; a panel's scores of a block stay in the first-level cache. Which calls come here, and
which are read in place, is decided in attention.py.
"""
from __future__ import annotations

from .attention_text import LOG2_E, MINUS_INFINITY, covered, exp2, greater, kept, mask_memory, mask_value, number, pack_left, pack_right, product, product_functions, turn
from .gemm_ir import batch_offsets
from .gemm_pack import Kind
from .gemm_text import SIZES, TYPES, Function, module, transposed, vector
from .mathlib import definitions
from .scratch import SCRATCH, allocate

# Sizes, then strides in elements (rows, columns) of q, k, v, out, mask; offsets of the scratch's parts in bytes. spread: the longest items come first. in_place: of up to so many
# query rows an item, keys and values are read where they lie.
COUNTS = "length keys width value_width items entries q_rows k_rows causal spread in_place".split()
TAKEN = [*COUNTS[:4], *COUNTS[7:9], "in_place"]  # what `block` needs of them
STRIDES = "rsq csq rsk csk rsv csv rso cso rsm csm".split()
PARTS = "pq pk pv s o m l mask".split()
WORDS = [*COUNTS, *STRIDES, *(f"at_{part}" for part in PARTS), "scratch", "batch_dims"]
FIRST = 8
BATCH = FIRST + len(WORDS)  # then six words a batch dimension: size, strides of q, k, v, out, mask
TOGETHER = 4  # keys a step: that many maxima and sums a lane run beside each other


def attention_module(kind: Kind, mask: str, attributes: str) -> str:
    """kind: the dtype of q, k, v as a and b, float32 as c. mask: "" or the dtype of the mask."""
    functions = [kernel(kind, mask), block(kind, mask, attributes), softmax(kind, attributes), finish(kind, mask, attributes), turn(kind, kind.a, attributes)]
    if kind.tile.vectors == 2:
        functions.append(softmax(kind, attributes, 1))
    functions += product_functions(kind, (kind.a,), attributes, ("", "along", "across") if kind.a == "float32" else ("",))
    if mask:
        functions.append(add_mask(kind, mask, attributes))
    return module(*functions, extra=SCRATCH + "\n" + definitions(["log"], "f32"))


def softmax(kind: Kind, attributes: str, vectors: int = 0) -> Function:
    """One step of the online softmax: scores S [keys, NR] become 2^((S - maximum) * factor); maxima m, sums l and results o [values, NR] so far follow.

    vectors: that many of a row's are computed, all by default.
    """
    t = kind.tile
    vectors = vectors or t.vectors
    w, nr = t.width, t.nr
    wide, bits = vector("float", w), vector("i1", w)
    f = Function(f"softmax_{vectors}", "i64 %keys, float %factor, ptr noalias %s, ptr noalias %m, ptr noalias %l, i64 %values, ptr noalias %o, i1 %more", attributes + " noinline")
    factor, none = f.splat("float", "%factor", w), f.constant("float", MINUS_INFINITY, w)
    whole = f.mul(f.div("%keys", TOGETHER), TOGETHER)

    def reduce(each, start, join):
        """each(place, j) of all keys, joined lane by lane: one vector for every NR / w."""
        cells = [[f.variable(wide, start, 64) for _ in range(vectors)] for _ in range(TOGETHER)]

        def step(k, cell):
            for j in range(vectors):
                value = each(f.at("float", "%s", f.add(f.mul(k, nr), j * w)), j)
                f.store(wide, join(value, f.load(wide, cell[j], 64)), cell[j], 64)

        with f.loop(0, whole, TOGETHER) as k:
            for n, cell in enumerate(cells):
                step(f.add(k, n), cell)
        with f.loop(whole, "%keys") as k:
            step(k, cells[0])
        joined = []
        for j in range(vectors):
            value = f.load(wide, cells[0][j], 64)
            for cell in cells[1:]:
                value = join(f.load(wide, cell[j], 64), value)
            joined.append(value)
        return joined

    tops = reduce(lambda place, j: f.load(wide, place, 64), none, lambda a, b: greater(f, a, b, w))
    bases, scales = [], []
    for j, top in enumerate(tops):
        place = f.at("float", "%m", j * w)
        before = f.load(wide, place, 64)
        now = greater(f, top, before, w)
        f.store(wide, now, place, 64)
        blind = f.op(f"fcmp oeq {wide} {now}, {none}")  # the row has seen nothing yet: -inf - -inf must not become NaN
        base = f.op(f"select {bits} {blind}, {wide} zeroinitializer, {wide} {now}")
        bases.append(base)
        scales.append(exp2(f, f.op(f"fsub {wide} {before}, {base}"), factor, w, t.fused))

    def weigh(place, j):
        p = exp2(f, f.op(f"fsub {wide} {f.load(wide, place, 64)}, {bases[j]}"), factor, w, t.fused)
        f.store(wide, f.decode(kind.own, p, w, t.half), place, 64)
        return p

    sums = reduce(weigh, "zeroinitializer", lambda a, b: f.plus("float", w, a, b))
    for j, (total, scale) in enumerate(zip(sums, scales)):
        place = f.at("float", "%l", j * w)
        f.store(wide, f.fma("float", w, f.load(wide, place, 64), scale, total, t.fused), place, 64)
    changed = "false"
    for scale in scales:
        lanes = f.op(f"fcmp une {wide} {scale}, {f.constant('float', '1.0', w)}")
        some = f.op(f"bitcast {bits} {lanes} to i{w}")
        some = f.op(f"icmp ne i{w} {some}, 0")
        changed = f.op(f"or i1 {changed}, {some}")
    with f.when(f.both("%more", changed)), f.loop(0, "%values") as e:  # what was summed up to now is rescaled
        for j, scale in enumerate(scales):
            place = f.at("float", "%o", f.add(f.mul(e, nr), j * w))
            f.store(wide, f.times("float", w, f.load(wide, place, 64), scale), place, 64)
    return f


def add_mask(kind: Kind, mask: str, attributes: str) -> Function:
    """Scores S [keys, NR] become S * scale + mask^T. `mask` stands at the element of the first row and key, of `rows` rows; lanes behind them repeat the last."""
    t, memory = kind.tile, mask_memory(mask)
    w, nr = t.width, t.nr
    wide = vector("float", w)
    f = Function("add_mask", "i64 %rows, i64 %keys, ptr noalias %mask, i64 %rsm, i64 %csm, float %scale, ptr noalias %s, ptr noalias %turned", attributes + " noinline")
    scale = f.splat("float", "%scale", w)
    last = f.sub("%rows", 1)

    def add(value, k, column):
        place = f.at("float", "%s", f.add(f.mul(k, nr), column))
        f.store(wide, f.fma("float", w, f.load(wide, place, 64), scale, value, t.fused), place, 64)

    def same():  # all rows look at the same keys
        with f.loop(0, "%keys") as k:
            value = f.splat("float", mask_value(f, kind, mask, f.at(memory, "%mask", f.mul(k, "%csm"))), w)
            for j in range(t.vectors):
                add(value, k, j * w)

    def element(k, lane):
        row = f.min(lane, last)
        return mask_value(f, kind, mask, f.at(memory, "%mask", f.add(f.mul(row, "%rsm"), f.mul(k, "%csm"))))

    def each():
        whole = f.op(f"select i1 {f.compare('eq', '%csm', 1)}, i64 {f.mul(f.div('%keys', w), w)}, i64 0")
        for j in range(t.vectors):
            with f.loop(0, whole, w) as k:  # squares of w rows and keys are turned in registers
                rows = [f.at(memory, "%mask", f.add(f.mul(f.min(j * w + r, last), "%rsm"), k)) for r in range(w)]
                for c, column in enumerate(transposed(f, "float", [mask_value(f, kind, mask, row, w) for row in rows])):
                    add(column, f.add(k, c), j * w)
            with f.loop(whole, "%keys") as k:
                with f.loop(0, w) as lane:
                    f.store("float", element(k, f.add(lane, j * w)), f.at("float", "%turned", lane))
                add(f.load(wide, "%turned", 64), k, j * w)

    def alike():  # a row looks at all keys alike
        with f.loop(0, t.vectors * w) as lane:
            f.store("float", element(0, lane), f.at("float", "%turned", lane))
        values = [f.load(wide, f.at("float", "%turned", j * w), 64) for j in range(t.vectors)]
        with f.loop(0, "%keys") as k:
            for j, value in enumerate(values):
                add(value, k, j * w)

    f.choose(f.compare("eq", "%rsm", 0), same, lambda: f.choose(f.compare("eq", "%csm", 0), alike, each))
    return f


def finish(kind: Kind, mask: str, attributes: str) -> Function:
    """Sums l [NR] of a panel become the factors of its results. stats, if it is not null, gets what the gradients want of each row (`kept`)."""
    w, nr = kind.tile.width, kind.tile.nr
    wide, bits = vector("float", w), vector("i1", w)
    f = Function("finish", "i64 %rows, float %size, ptr noalias %m, ptr noalias %l, ptr noalias %stats, i64 %apart", attributes + " noinline")
    one = f.constant("float", "1.0", w)
    with f.loop(0, nr, w) as first:
        places = [f.at("float", part, first) for part in ("%m", "%l")]
        top, total = (f.load(wide, place, 64) for place in places)
        nothing = f.op(f"fcmp oeq {wide} {total}, zeroinitializer")  # a row that saw nothing: its results are zeros, its maximum is called 0
        f.store(wide, f.op(f"select {bits} {nothing}, {wide} zeroinitializer, {wide} {top}"), places[0], 64)
        f.store(wide, f.op(f"select {bits} {nothing}, {wide} {one}, {wide} {total}"), places[1], 64)
    if kept(mask) == 1:
        with f.when(f.op("icmp ne ptr %stats, null")), f.loop(0, "%rows") as r:  # LLVM vectorises the loop
            top, total = (f.load("float", f.at("float", part, r)) for part in ("%m", "%l"))
            # The product is rounded before the sum, as in the backward pass: no score is above this one, and no weight above 1.
            f.store("float", f.plus("float", 1, f.times("float", 1, top, "%size"), f.op(f"call float @m_log_f32(float {total})")), f.at("float", "%stats", r))
    with f.loop(0, nr, w) as first:
        place = f.at("float", "%l", first)
        f.store(wide, f.op(f"fdiv {wide} {one}, {f.load(wide, place, 64)}"), place, 64)
    if kept(mask) == 2:
        with f.when(f.op("icmp ne ptr %stats, null")), f.loop(0, "%rows") as r:
            for part, place in (("%m", "%stats"), ("%l", f.at("float", "%stats", "%apart"))):
                f.store("float", f.load("float", f.at("float", part, r)), f.at("float", place, r))
    return f


def block(kind: Kind, mask: str, attributes: str) -> Function:
    """All keys for one block of query rows. Pointers stand at the batch entry (q, out, mask, lse: at the block's first row, number %row)."""
    memory, t = TYPES[kind.a][0], kind.tile
    w, nr = t.width, t.nr
    wide = vector("float", w)
    names = ", ".join(f"i64 %{word}" for word in [*TAKEN, *STRIDES])
    parts = ", ".join(f"ptr %at_{part}" for part in PARTS)
    f = Function("block", f"ptr %q, ptr %k, ptr %v, ptr %out, ptr %mask, ptr %stats, i64 %apart, i64 %row, i64 %rows, {names}, {parts}, float %scale", attributes + " noinline")
    # Scores times |scale| times log2(e) are powers of two; a negative scale goes into the query. With a mask, what it is added to must be scaled before.
    if mask:
        factor, size = number(LOG2_E), "1.0"
    else:
        size = f.call("float", "llvm.fabs.f32", "float %scale")
        nought = f.op(f"fcmp oeq float {size}, 0.0")  # of hidden scores, -inf * 0 would be NaN
        factor = f.op(f"select i1 {nought}, float {number(1e-37)}, float {f.times('float', 1, size, number(LOG2_E))}")
    # Where one vector holds all rows, it is the second of the panel: of it alone, products can be computed.
    half = f.compare("sle", "%rows", w) if t.vectors == 2 else "false"
    aside = f.op(f"select i1 {half}, i64 {w}, i64 0") if t.vectors == 2 else 0
    panels = f.mul(f.ceil_div("%rows", nr), nr)  # rows, those of a last panel that are none included
    with f.loop(0, panels, w) as i:
        f.store(wide, f.constant("float", MINUS_INFINITY, w), f.at("float", "%at_m", i), 64)
        f.store(wide, "zeroinitializer", f.at("float", "%at_l", i), 64)
    tall = f.add("%value_width", t.heights[0])
    causal = f.compare("ne", "%causal", 0)
    last = f.min("%keys", f.add("%row", "%rows"))
    stop = f.op(f"select i1 {causal}, i64 {last}, i64 %keys")
    bare = f.compare("sle", "%rows", "%in_place")
    with f.loop(0, stop, "%k_rows") as k0:
        keys = f.min("%k_rows", f.sub(stop, k0))
        k, v = f.at(memory, "%k", f.mul(k0, "%rsk")), f.at(memory, "%v", f.mul(k0, "%rsv"))
        done_k: int | str = 0  # rows of K and of V^T that are read in place
        done_v: int | str = 0
        if kind.a == "float32":
            done_k, done_v = (f.op(f"select i1 {bare}, i64 {covered(f, kind, rows)}, i64 0") for rows in (keys, "%value_width"))
        rest_k, rest_v = f.sub(keys, done_k), f.sub("%value_width", done_v)
        pack_left(f, kind.b, f.at(memory, k, f.mul(done_k, "%rsk") if done_k else 0), "%rsk", "%csk", rest_k, "%width", "%at_pk")  # K [keys, E]
        pack_left(f, kind.b, f.at(memory, v, f.mul(done_v, "%csv") if done_v else 0), "%csv", "%rsv", rest_v, keys, "%at_pv")  # V^T [Ev, keys]
        behind = f.call("i64", "llvm.smax.i64", f"i64 {f.sub(k0, '%row')}", "i64 0")  # the first row that sees one of these keys, where `causal`
        begin = f.op(f"select i1 {causal}, i64 {f.mul(f.div(behind, nr), nr)}, i64 0")
        more = f.compare("ne", k0, 0)
        with f.loop(begin, "%rows", nr) as i:
            here = f.min(nr, f.sub("%rows", i))
            first = f.sub(f.add("%row", i), k0)  # the last of these keys that the panel's first row sees, where `causal`
            seen = f.op(f"select i1 {causal}, i64 {f.min(keys, f.add(first, here))}, i64 {keys}")
            o, m, l = f.at("float", "%at_o", f.mul(f.div(i, nr), f.mul(tall, nr))), f.at("float", "%at_m", i), f.at("float", "%at_l", i)
            s = "%at_s"
            o_, m_, l_, s_ = (f.at("float", place, aside) for place in (o, m, l, s))
            clear = f.op(f"select i1 {causal}, i64 {f.add(first, w)}, i64 {keys}")  # the first key that no row of the panel's first vector sees
            clear = f.op(f"select i1 {half}, i64 0, i64 {clear}")
            pq = f.at("float", "%at_pq", f.mul(i, "%width"))
            with f.when(f.compare("eq", k0, 0)):
                pack_query(f, kind, f.at(memory, "%q", f.mul(i, "%rsq")), here, f.at("float", pq, aside), mask)
            if kind.a == "float32":
                with f.when(bare):
                    product(f, kind, done_k, "%width", k, pq, "%at_s", "false", lie="along", depth="%rsk", end=seen, bare_rows=clear)
            scores = f.at("float", "%at_s", f.mul(done_k, nr) if done_k else 0)
            end, clear_ = (seen, clear) if not done_k else (f.sub(seen, done_k), f.sub(clear, done_k))
            product(f, kind, rest_k, "%width", "%at_pk", pq, scores, "false", end=end, bare_rows=clear_)  # scores [keys, NR]
            if mask:
                where = f.at(mask_memory(mask), "%mask", f.add(f.mul(i, "%rsm"), f.mul(k0, "%csm")))
                f.do(f"call void @add_mask(i64 {here}, i64 {seen}, ptr {where}, i64 %rsm, i64 %csm, float %scale, ptr {s_}, ptr %at_mask)")
            with f.when(causal):
                hide(f, kind, f.sub(first, aside), seen)
            call = lambda n, *places: f.do("call void @softmax_{}(i64 {}, float {}, ptr {}, ptr {}, ptr {}, i64 %value_width, ptr {}, i1 {})".format(n, seen, factor, *places, more))
            if t.vectors == 2:
                f.choose(half, lambda: call(1, s_, m_, l_, o_), lambda: call(2, s, m, l, o))
            else:
                call(t.vectors, s, m, l, o)
            its = f.op(f"select i1 {causal}, i64 {f.min('%keys', f.add(f.add('%row', i), here))}, i64 %keys")
            done = f.compare("sge", f.add(k0, "%k_rows"), its)  # all that the panel sees
            target = f.at(memory, "%out", f.mul(i, "%rso"))
            ahead = fetched(f, kind, i, k0, keys, done, target)
            if kind.a == "float32":
                with f.when(bare):
                    product(f, kind, done_v, seen, v, "%at_s", o, more, lie="across", depth="%rsv", bare_k=clear, ahead=ahead)
            results = f.at("float", o, f.mul(done_v, nr) if done_v else 0)
            product(f, kind, rest_v, seen, "%at_pv", "%at_s", results, more, depth=keys, bare_k=clear, ahead=ahead)  # results [Ev, NR]
            with f.when(done):
                sums = f.op(f"select i1 {f.op('icmp eq ptr %stats, null')}, ptr null, ptr {f.at('float', '%stats', i)}")
                f.do(f"call void @finish(i64 {here}, float {size}, ptr {m_}, ptr {l_}, ptr {sums}, i64 %apart)")
                f.do(f"call void @turn(i64 {here}, i64 %value_width, ptr {o_}, ptr {l_}, ptr {target}, i64 %rso, i64 %cso)")
    return f


def fetched(f: Function, kind: Kind, i, k0, keys, done, target):
    """(place, bytes between rows) of what the panel of row i fetches while it multiplies: the query rows behind it, where they come next; the last
    four panels halves of the keys and values behind this block (those of the next entry, if they lie there); where it is done, its result's rows."""
    nr, memory = kind.tile.nr, TYPES[kind.a][0]
    left, behind = f.sub("%rows", f.add(i, nr)), f.add(k0, keys)
    half = f.add(behind, f.op(f"lshr i64 {keys}, 1"))
    first = f.op(f"select i1 {f.compare('eq', k0, 0)}, i64 %rsq, i64 0")
    place, apart = f.at(memory, "%q", f.mul(f.add(i, nr), "%rsq")), first
    for n, (name, row) in enumerate((("k", behind), ("k", half), ("v", behind), ("v", half))):
        here = f.compare("sle", left, (3 - n) * nr)
        place = f.op(f"select i1 {here}, ptr {f.at(memory, f'%{name}', f.mul(row, f'%rs{name}'))}, ptr {place}")
        apart = f.op(f"select i1 {here}, i64 %rs{name}, i64 {apart}")
    place, apart = f.op(f"select i1 {done}, ptr {target}, ptr {place}"), f.op(f"select i1 {done}, i64 %rso, i64 {apart}")
    return place, f.mul(apart, SIZES[memory])


def pack_query(f: Function, kind: Kind, source, rows, target, mask) -> None:
    """A panel of the query, negated where the scale is negative (a mask's kernel applies the scale itself)."""
    w = kind.tile.width
    wide = vector("float", w)
    pack_right(f, kind, kind.a, source, "%rsq", "%csq", rows, "%width", target)
    if not mask:
        with f.when(f.op("fcmp olt float %scale, 0.0")), f.loop(0, f.mul("%width", kind.tile.nr), w) as i:
            place = f.at("float", target, i)
            f.store(wide, f.op(f"fneg {wide} {f.load(wide, place, 64)}"), place, 64)


def hide(f: Function, kind: Kind, first, seen) -> None:
    """Scores [seen, NR] at %at_s of keys behind a row's own become -inf: lane j sees the keys up to number first + j."""
    w, nr = kind.tile.width, kind.tile.nr
    wide = vector("float", w)
    begin = f.call("i64", "llvm.smax.i64", f"i64 {f.add(first, 1)}", "i64 0")
    with f.loop(begin, seen) as k:
        for j in range(kind.tile.vectors):
            hidden = f.lanes_below(f.sub(f.sub(k, first), j * w), w)
            place = f.at("float", "%at_s", f.add(f.mul(k, nr), j * w))
            value = f.op(f"select {vector('i1', w)} {hidden}, {wide} {f.constant('float', MINUS_INFINITY, w)}, {wide} {f.load(wide, place, 64)}")
            f.store(wide, value, place, 64)


def kernel(kind: Kind, mask: str) -> Function:
    """The entry: work items are (batch entry, block of query rows)."""
    memory = TYPES[kind.a][0]
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", "nounwind", linkage="dso_local")
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    names = ["out", "q", "k", "v", *(["mask"] if mask else []), "stats"]
    slot = {name: f.load("ptr", f.at("ptr", "%slots", n)) for n, name in enumerate(names)}
    scale = f.op(f"fptrunc double {f.load('double', f.at('i64', '%slots', len(names)))} to float")
    begin, end = f.share(word["items"])
    unwanted = f.op(f"icmp eq ptr {slot['stats']}, null")
    with f.when(f.compare("slt", begin, end)):
        cell = f.variable("ptr", "null")
        allocate(f, cell, word["scratch"])
        scratch = f.load("ptr", cell)
        parts = ", ".join(f"ptr {f.at('i8', scratch, word[f'at_{part}'])}" for part in PARTS)
        blocks = f.ceil_div(word["length"], word["q_rows"])
        apart = f.mul(word["entries"], word["length"])
        spread = f.compare("ne", word["spread"], 0)
        with f.loop(begin, end) as item:
            entry = f.op(f"select i1 {spread}, i64 {f.rem(item, word['entries'])}, i64 {f.div(item, blocks)}")
            from_last = f.sub(f.sub(blocks, 1), f.div(item, word["entries"]))
            number_ = f.op(f"select i1 {spread}, i64 {from_last}, i64 {f.rem(item, blocks)}")
            oq, ok, ov, oo, om = batch_offsets(f, entry, BATCH, word["batch_dims"], 5)
            row = f.mul(number_, word["q_rows"])
            count = f.min(word["q_rows"], f.sub(word["length"], row))
            q = f.at(memory, slot["q"], f.add(oq, f.mul(row, word["rsq"])))
            k, v = f.at(memory, slot["k"], ok), f.at(memory, slot["v"], ov)
            out = f.at(memory, slot["out"], f.add(oo, f.mul(row, word["rso"])))
            where = f.at(mask_memory(mask), slot["mask"], f.add(om, f.mul(row, word["rsm"]))) if mask else "null"
            sums = f.at("float", slot["stats"], f.add(f.mul(entry, word["length"]), row))
            sums = f.op(f"select i1 {unwanted}, ptr null, ptr {sums}")
            values = ", ".join(f"i64 {word[name]}" for name in [*TAKEN, *STRIDES])
            f.do(f"call void @block(ptr {q}, ptr {k}, ptr {v}, ptr {out}, ptr {where}, ptr {sums}, i64 {apart}, i64 {row}, i64 {count}, {values}, {parts}, float {scale})")
        f.do(f"call void @free(ptr {scratch})")
    return f
