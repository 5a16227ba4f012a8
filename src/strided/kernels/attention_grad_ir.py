"""The gradients of attention as one kernel, in LLVM IR: d_query, d_key and d_value without the matrix of scores in memory.

The weights are computed again, NR keys a panel and a block of query rows at a time, from the scores and what the forward pass kept of each row
(`attention_text.kept`). Keys are lanes, so that weights and their gradients are right operands where they stand, and these gradients a left
operand, too. Float32 queries and their gradients are read in place. Where batch entries do not divide over the threads, parts of the keys do; each then
leaves a d_query of its own, which a second kernel adds up. Sums over blocks are float32 and rounded once. Which calls come here is decided in attention.py.

    S = Q K^T    P = softmax(scale S + mask)    dP = G V^T    dS = P (dP - rowsum(G O))    dQ = scale dS K    dK += scale dS^T Q    dV += P^T G
"""
from __future__ import annotations

from .attention_text import LOG2_E, add_mask, exp2, kept, mask_memory, number, pack_rest, pack_right, product, product_functions, product_in_place, reduced, turn
from .gemm_ir import batch_offsets
from .gemm_pack import Kind
from .gemm_text import TYPES, Function, module, vector

# Sizes, then strides in elements (rows, columns) of every operand; offsets of the scratch's parts in bytes, and its whole size.
OPERANDS = "q k v g o dq dk dv m".split()
PARTS = "pq pg qt gt kt vt kb s d dq dk dv delta factors".split()
# splits: parts of the keys; at_sums: where their d_query stand, each `sums` bytes. q_lies, g_lies: whether q and g are read in place.
SIZES = "length keys width value_width q_rows k_rows causal q_lies g_lies splits items".split()
WORDS = [*SIZES, *(f"{axis}s{name}" for name in OPERANDS for axis in "rc"), *(f"at_{part}" for part in PARTS), "scratch", "at_sums", "sums", "batch_dims"]
FIRST = 8
BATCH = FIRST + len(WORDS)  # then ten words a batch dimension: size, strides of the operands; then the parts' first keys, and the number of keys
ARGUMENTS = [*SIZES[:10], *(word for word in WORDS if word[1:] in {f"s{name}" for name in OPERANDS})]


def attention_grad_module(kind: Kind, result: str, mask: str, attributes: str) -> str:
    """kind: the dtype of q, k, v, g as a and b, float32 as c. result: dtype of the gradients. mask: "" or the dtype of the mask."""
    functions = [kernel(kind, result, mask), entry(kind, result, mask, attributes), weights(kind, mask, attributes), prepare(kind, attributes)]
    functions += [round_out(kind, result, attributes), turn(kind, result, attributes)]
    functions += product_functions(kind, (kind.a,), attributes, ("", "along", "across") if kind.a == "float32" else ("", "along"))
    return module(*functions)


def sums_module(kind: Kind, result: str, attributes: str) -> str:
    """d_query from those of the parts of the keys, by the same descriptor's words. Slots: d_query, the scratch, the scale; each part takes some rows."""
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", attributes, linkage="dso_local")
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    out, scratch = (f.load("ptr", f.at("ptr", "%slots", n)) for n in range(2))
    scale = f.op(f"fptrunc double {f.load('double', f.at('i64', '%slots', 2))} to float")
    begin, end = f.share(word["length"])
    rows = f.sub(end, begin)
    wide = f.mul(f.ceil_div(word["width"], kind.tile.nr), kind.tile.nr)
    apart = f.op(f"lshr i64 {word['sums']}, 2")
    with f.loop(0, f.div(word["items"], word["splits"])) as entry:
        first = f.at("float", f.at("i8", scratch, f.add(word["at_sums"], f.mul(f.mul(entry, word["splits"]), word["sums"]))), f.mul(begin, wide))
        with f.loop(1, word["splits"]) as n:
            f.do(f"call void @add_up(i64 {f.mul(rows, wide)}, ptr {first}, ptr {f.at('float', first, f.mul(n, apart))})")
        offset = batch_offsets(f, entry, BATCH, word["batch_dims"], len(OPERANDS))[OPERANDS.index("dq")]
        place = f.at(TYPES[result][0], out, f.add(offset, f.mul(begin, word["rsdq"])))
        f.do(f"call void @round_out(i64 {rows}, i64 {word['width']}, ptr {first}, i64 {wide}, float {scale}, ptr {place}, i64 {word['rsdq']}, i64 {word['csdq']})")
    add = Function("add_up", "i64 %count, ptr noalias %to, ptr noalias %from", attributes + " noinline")
    with add.loop(0, "%count") as i:  # LLVM vectorises the loop
        place = add.at("float", "%to", i)
        add.store("float", add.plus("float", 1, add.load("float", place), add.load("float", add.at("float", "%from", i))), place)
    return module(f, add, round_out(kind, result, attributes))


def prepare(kind: Kind, attributes: str) -> Function:
    """delta[i] = the sum of g * o of row i."""
    memory, half, w = TYPES[kind.a][0], kind.tile.half, kind.tile.width
    wide = vector("float", w)
    names = "ptr noalias %g, i64 %rsg, i64 %csg, ptr noalias %o, i64 %rso, i64 %cso, ptr noalias %delta"
    f = Function("prepare", f"i64 %rows, i64 %columns, {names}", attributes + " noinline")
    read = lambda row, e, lanes=1: f.decode(kind.a, f.load(vector(memory, lanes), f.at(memory, row, e), 4 if memory == "float" else 2), lanes, half)
    with f.loop(0, "%rows") as i:
        g, o = f.at(memory, "%g", f.mul(i, "%rsg")), f.at(memory, "%o", f.mul(i, "%rso"))
        sums = f.variable(wide, "zeroinitializer", 64)
        beside = f.both(f.compare("eq", "%csg", 1), f.compare("eq", "%cso", 1))
        whole = f.op(f"select i1 {beside}, i64 {f.mul(f.div('%columns', w), w)}, i64 0")
        with f.loop(0, whole, w) as e:
            f.store(wide, f.fma("float", w, read(g, e, w), read(o, e, w), f.load(wide, sums, 64), kind.tile.fused), sums, 64)
        total = f.variable("float", reduced(f, "add", w, f.load(wide, sums, 64)))
        with f.loop(whole, "%columns") as e:
            f.store("float", f.fma("float", 1, read(g, f.mul(e, "%csg")), read(o, f.mul(e, "%cso")), f.load("float", total), kind.tile.fused), total)
        f.store("float", f.load("float", total), f.at("float", "%delta", i))
    return f


def weights(kind: Kind, mask: str, attributes: str) -> Function:
    """Scores S [rows, NR] become weights, e^(scale S - base), with floating masks times the row's inverse; their gradients D those of the scores: S * (D - delta).

    Of the rows before `clear`, lane j counts where j < keys and, with `causal`, j < first + the row's number; behind, all do. What does not is 0 in both,
    and a weight of 0 passes nothing on, whatever stands in D.
    """
    t = kind.tile
    w, nr = t.width, t.nr
    wide, bits = vector("float", w), vector("i1", w)
    names = "i64 %begin, i64 %clear, i64 %rows, i64 %keys, i1 %causal, i64 %first, float %scale"
    f = Function("weights", f"{names}, ptr noalias %s, ptr noalias %d, ptr noalias %base, ptr noalias %inverse, ptr noalias %delta", attributes + " noinline")
    factor, scale = f.constant("float", number(LOG2_E), w), f.splat("float", "%scale", w)

    def row(i, live=None):
        base, inverse, delta = (f.splat("float", f.load("float", f.at("float", f"%{name}", i)), w) for name in ("base", "inverse", "delta"))
        for j in range(t.vectors):
            here, there = (f.at("float", part, f.add(f.mul(i, nr), j * w)) for part in ("%s", "%d"))
            score = f.load(wide, here, 64)
            if not mask:
                score = f.times("float", w, score, scale)
            p = exp2(f, f.op(f"fsub {wide} {score}, {base}"), factor, w, t.fused)
            if kept(mask) == 2:
                p = f.times("float", w, p, inverse)
            if live is not None:
                p = f.op(f"select {bits} {f.lanes_below(f.sub(live, j * w), w)}, {wide} {p}, {wide} zeroinitializer")
            centred = f.op(f"fsub {wide} {f.load(wide, there, 64)}, {delta}")
            nothing = f.op(f"fcmp oeq {wide} {p}, zeroinitializer")
            d = f.op(f"select {bits} {nothing}, {wide} zeroinitializer, {wide} {f.times('float', w, p, centred)}")
            f.store(wide, f.decode(kind.own, p, w, t.half), here, 64)
            f.store(wide, f.decode(kind.own, d, w, t.half), there, 64)

    with f.loop("%begin", "%clear") as i:
        seen = f.min("%keys", f.add("%first", i))
        row(i, f.op(f"select i1 %causal, i64 {seen}, i64 %keys"))
    with f.loop("%clear", "%rows") as i:
        row(i)
    return f


def round_out(kind: Kind, result: str, attributes: str) -> Function:
    """to [rows, columns] of the results' dtype with any strides = from [rows, ld] in float32, times a factor."""
    memory, half = TYPES[result][0], kind.tile.half
    f = Function("round_out", "i64 %rows, i64 %columns, ptr noalias %from, i64 %ld, float %factor, ptr noalias %to, i64 %rs, i64 %cs", attributes + " noinline")

    def copy(step):
        with f.loop(0, "%rows") as i:
            source, target = f.at("float", "%from", f.mul(i, "%ld")), f.at(memory, "%to", f.mul(i, "%rs"))
            with f.loop(0, "%columns") as j:
                value = f.times("float", 1, f.load("float", f.at("float", source, j)), "%factor")
                f.store(memory, f.encode(result, value, 1, half), f.at(memory, target, f.mul(j, step)))

    f.choose(f.compare("eq", "%cs", 1), lambda: copy(1), lambda: copy("%cs"))
    return f


def entry(kind: Kind, result: str, mask: str, attributes: str) -> Function:
    """The gradients of one batch entry by the keys from %first_key on before %behind. Pointers stand at the entry; base, inverse: what the forward pass kept
    of its rows. Unless it is a part, d_query is rounded, too."""
    memory, out, nr, top, least = TYPES[kind.a][0], TYPES[result][0], kind.tile.nr, kind.tile.heights[0], kind.tile.heights[-1]
    pointers = ", ".join(f"ptr %{name}" for name in [*OPERANDS, "base", "inverse", *(f"at_{part}" for part in PARTS)])
    f = Function("entry", f"{pointers}, i64 %first_key, i64 %behind, {', '.join(f'i64 %{word}' for word in ARGUMENTS)}, float %scale", attributes + " noinline")
    largest = lambda a, b: f.call("i64", "llvm.smax.i64", f"i64 {a}", f"i64 {b}")
    place = lambda part, *indices: f.at("float", f"%at_{part}", indices[0] if len(indices) == 1 else f.mul(*indices))
    causal = f.compare("ne", "%causal", 0)
    wide = f.mul(f.ceil_div("%width", nr), nr)  # columns of d_query
    tall, tall_values = f.add("%width", top), f.add("%value_width", top)  # rows of transposed ones, with room for a tile
    q_lies, g_lies = (f.compare("ne", f"%{name}_lies", 0) for name in "qg")
    first_row = f.op(f"select i1 {causal}, i64 {f.mul(f.div('%first_key', '%q_rows'), '%q_rows')}, i64 0")  # of the blocks that see one of these keys

    def lefts(q0, rows):
        """Q [rows, E], G [rows, Ev] and both transposed, of the rows from q0 on: how each lies, and where what is not read in place is packed."""
        for name, lies, columns, high in (("q", q_lies, "%width", tall), ("g", g_lies, "%value_width", tall_values)):
            source, row_step, step = f.at(memory, f"%{name}", f.mul(q0, f"%rs{name}")), f"%rs{name}", f"%cs{name}"
            upright = f.op(f"select i1 {lies}, i64 0, i64 {f.mul(q0, columns)}")  # in place, only the last block has a rest
            across = f.mul(q0, f.op(f"select i1 {lies}, i64 {least + top}, i64 {high}"))
            yield lies, "along", source, row_step, step, rows, columns, place(f"p{name}", upright)
            yield lies, "across", source, step, row_step, columns, rows, place(f"{name}t", across)

    def from_left(left, right, target, more, **which):
        lies, lie, source, row_step, step, rows, k, rest = left
        product_in_place(f, kind, lies, lie, source, row_step if lie == "along" else step, rows, k, rest, right, target, more, **which)

    f.do("call void @prepare(i64 %length, i64 %value_width, ptr %g, i64 %rsg, i64 %csg, ptr %o, i64 %rso, i64 %cso, ptr %at_delta)")
    with f.loop(first_row, "%length", "%q_rows") as q0:
        for lies, _, *operand in lefts(q0, f.min("%q_rows", f.sub("%length", q0))):
            pack_rest(f, kind, lies, *operand)
    with f.loop(0, f.mul("%length", wide)) as i:
        f.store("float", "0.0", place("dq", i))
    with f.loop("%first_key", "%behind", "%k_rows") as k0:
        keys = f.min("%k_rows", f.sub("%behind", k0))
        whole = f.mul(f.ceil_div(keys, nr), nr)
        k, v = f.at(memory, "%k", f.mul(k0, "%rsk")), f.at(memory, "%v", f.mul(k0, "%rsv"))
        pack_right(f, kind, kind.a, k, "%rsk", "%csk", keys, "%width", "%at_kt")  # K^T [E, keys]
        pack_right(f, kind, kind.a, v, "%rsv", "%csv", keys, "%value_width", "%at_vt")  # V^T [Ev, keys]
        pack_right(f, kind, kind.a, k, "%csk", "%rsk", "%width", keys, "%at_kb")  # K [keys, E]
        for part, rows in (("dk", tall), ("dv", tall_values)):
            with f.loop(0, f.mul(whole, rows)) as i:
                f.store("float", "0.0", place(part, i))
        first_block = f.op(f"select i1 {causal}, i64 {f.mul(f.div(k0, '%q_rows'), '%q_rows')}, i64 0")
        with f.loop(first_block, "%length", "%q_rows") as q0:
            rows = f.min("%q_rows", f.sub("%length", q0))
            q, qt, g, gt = lefts(q0, rows)
            with f.loop(0, keys, nr) as j:
                here = f.min(nr, f.sub(keys, j))
                before = largest(f.sub(f.add(k0, j), q0), 0)  # rows that see none of these keys, where `causal`
                before = f.op(f"select i1 {causal}, i64 {before}, i64 0")
                with f.when(f.compare("slt", before, rows)):
                    begin = largest(f.sub(before, top - 1), 0)  # not behind the beginning of the tile that row is in
                    from_left(q, place("kt", j, "%width"), "%at_s", "false", begin=before)  # S [rows, NR]
                    from_left(g, place("vt", j, "%value_width"), "%at_d", "false", begin=before)  # dP [rows, NR]
                    if mask:
                        where = f.at(mask_memory(mask), "%m", f.add(f.mul(f.add(q0, begin), "%rsm"), f.mul(f.add(k0, j), "%csm")))
                        add_mask(f, kind, mask, where, place("s", begin, nr), f.sub(rows, begin), here, nr)
                    first = f.add(f.sub(q0, f.add(k0, j)), 1)
                    clear = f.min(largest(f.sub(nr, first), begin), rows)  # rows from here on see all of these keys
                    clear = f.op(f"select i1 {causal}, i64 {clear}, i64 {begin}")
                    clear = f.op(f"select i1 {f.compare('slt', here, nr)}, i64 {rows}, i64 {clear}")
                    of_rows = ", ".join(f"ptr {f.at('float', part, q0)}" for part in ("%base", "%inverse", "%at_delta"))
                    f.do(f"call void @weights(i64 {begin}, i64 {clear}, i64 {rows}, i64 {here}, i1 {causal}, i64 {first}, float %scale, ptr %at_s, ptr %at_d, {of_rows})")
                    from_left(gt, "%at_s", place("dv", j, tall_values), "true", from_=begin)  # dV^T [Ev, NR]
                    from_left(qt, "%at_d", place("dk", j, tall), "true", from_=begin)  # dK^T [E, NR]
                    tallest = f.mul(f.div(rows, top), top)
                    padded = f.add(tallest, f.mul(f.ceil_div(f.sub(rows, tallest), least), least))  # dS and dQ have room for rows behind the last, whatever they are
                    with f.loop(0, "%width", nr) as e:
                        target, right = f.at("float", place("dq", q0, wide), e), f.at("float", place("kb", e, keys), f.mul(j, nr))
                        product(f, kind, padded, here, "%at_d", right, target, "true", lie="along", depth=nr, ld=wide, begin=before)  # dQ [rows, E]
        for part, name, columns, rows, scale in (("dk", "k", "%width", tall, "%scale"), ("dv", "v", "%value_width", tall_values, "1.0")):
            with f.loop(0, nr) as i:
                f.store("float", scale, place("factors", i))
            with f.loop(0, keys, nr) as j:
                target = f.at(out, f"%d{name}", f.mul(f.add(k0, j), f"%rsd{name}"))
                f.do(f"call void @turn(i64 {f.min(nr, f.sub(keys, j))}, i64 {columns}, ptr {place(part, j, rows)}, ptr %at_factors, ptr {target}, i64 %rsd{name}, i64 %csd{name})")
    with f.when(f.compare("eq", "%splits", 1)):
        f.do(f"call void @round_out(i64 %length, i64 %width, ptr %at_dq, i64 {wide}, float %scale, ptr %dq, i64 %rsdq, i64 %csdq)")
    return f


def kernel(kind: Kind, result: str, mask: str) -> Function:
    """The entry point: work items are parts of the keys of batch entries; every part of the kernel has its own piece of the scratch."""
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", "nounwind", linkage="dso_local")
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    names = ["dq", "dk", "dv", "q", "k", "v", "g", "o", *(["m"] if mask else []), "stats", "scratch"]
    slot = {name: f.load("ptr", f.at("ptr", "%slots", n)) for n, name in enumerate(names)}
    scale = f.op(f"fptrunc double {f.load('double', f.at('i64', '%slots', len(names)))} to float")
    scratch = f.at("i8", slot["scratch"], f.mul("%part", word["scratch"]))
    parts = [f.at("i8", scratch, word[f"at_{part}"]) for part in PARTS]
    at_dq = parts[PARTS.index("dq")]
    begin, end = f.share(word["items"])
    memory = {name: TYPES[result if name[0] == "d" else kind.a][0] for name in OPERANDS if name != "m"} | {"m": mask_memory(mask) if mask else ""}
    entries, whole = f.div(word["items"], word["splits"]), f.compare("eq", word["splits"], 1)
    bounds = f.at("i64", "%desc", f.add(BATCH, f.mul(word["batch_dims"], len(OPERANDS) + 1)))
    with f.loop(begin, end) as item:
        here = []
        number_, split = f.div(item, word["splits"]), f.rem(item, word["splits"])
        for name, offset in zip(OPERANDS, batch_offsets(f, number_, BATCH, word["batch_dims"], len(OPERANDS))):
            here.append(f.at(memory[name], slot[name], offset) if name in slot else "null")
        rows = f.mul(number_, word["length"])
        apart = f.mul(entries, word["length"]) if kept(mask) == 2 else 0
        here += [f.at("float", slot["stats"], rows), f.at("float", slot["stats"], f.add(rows, apart))]
        sums = f.at("i8", slot["scratch"], f.add(word["at_sums"], f.mul(item, word["sums"])))
        parts[PARTS.index("dq")] = f.op(f"select i1 {whole}, ptr {at_dq}, ptr {sums}")
        pointers = ", ".join(f"ptr {p}" for p in [*here, *parts])
        keys = ", ".join(f"i64 {f.load('i64', f.at('i64', bounds, f.add(split, n)))}" for n in range(2))
        f.do(f"call void @entry({pointers}, {keys}, {', '.join(f'i64 {word[name]}' for name in ARGUMENTS)}, float {scale})")
    return f
