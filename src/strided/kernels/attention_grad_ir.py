"""The gradients of attention as one kernel, in LLVM IR: d_query, d_key and d_value without the matrix of scores in memory.

The weights are computed again, a block of query rows and of keys at a time, from the scores and what the forward pass kept of each row
(`attention_text.kept`). Keys are lanes: K and V are turned for the scores and dP, and those become left operands of the other products, whose right ones are rows as
they lie. Float32 rows of whole vectors are read, and results summed up, in place. What the next block or entry reads is fetched meanwhile. Where batch entries do not divide over
the threads, parts of the keys do; each then leaves a d_query of its own, which a second kernel adds up. Sums over blocks are float32 and rounded once. Which calls come here is
decided in attention.py.

    S = Q K^T    P = softmax(scale S + mask)    dP = G V^T    dS = P (dP - rowsum(G O))    dQ = scale dS K    dK += scale dS^T Q    dV += P^T G
"""
from __future__ import annotations

from .attention_text import EVER, LOG2_E, add_mask, exp2, kept, mask_memory, number, pack_right, reduced
from .attention_tiles import Ahead, add_sums, make_scores, tile_functions
from .gemm_ir import batch_offsets
from .gemm_pack import Kind, pack
from .gemm_text import TYPES, Function, module, vector

# Sizes, then strides in elements (rows, columns) of every operand; offsets of the scratch's parts in bytes, and its whole size.
OPERANDS = "q k v g o dq dk dv m".split()
PARTS = "q g k kt vt s d dq dk dv delta".split()
LIE = "q g k dq dk dv".split()  # what may be read or summed where it lies
FETCHED = "q k v g o dk dv".split()  # of the next entry, while this one is computed
# wide: widths in whole vectors; ld: from one row of scores to the next; splits: parts of the keys; at_sums: where their d_query stand, each `sums` bytes.
SIZES = [*"length keys width value_width wide wide_values q_rows k_rows ld causal splits".split(), *(f"{name}_lies" for name in LIE), "items"]
WORDS = [*SIZES, *(f"{axis}s{name}" for name in OPERANDS for axis in "rc"), *(f"at_{part}" for part in PARTS), "scratch", "at_sums", "sums", "batch_dims"]
FIRST = 8
BATCH = FIRST + len(WORDS)  # then ten words a batch dimension: size, strides of the operands; then the parts' first keys, and the number of keys
ARGUMENTS = [*SIZES[:-1], *(word for word in WORDS if word[1:] in {f"s{name}" for name in OPERANDS})]


def attention_grad_module(kind: Kind, result: str, mask: str, attributes: str) -> str:
    """kind: the dtype of q, k, v, g as a and b, float32 as c. result: dtype of the gradients. mask: "" or the dtype of the mask."""
    functions = [kernel(kind, result, mask), entry(kind, result, mask, attributes), weights(kind, mask, attributes), prepare(kind, attributes)]
    functions += [round_out(kind, result, attributes), pack(kind, kind.a, kind.a, attributes), *tile_functions(kind, attributes)]
    return module(*functions)


def sums_module(kind: Kind, result: str, attributes: str) -> str:
    """d_query from those of the parts of the keys, by the same descriptor's words. Slots: d_query and the scratch; each part takes some rows."""
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", attributes, linkage="dso_local")
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    out, scratch = (f.load("ptr", f.at("ptr", "%slots", n)) for n in range(2))
    begin = f.div(f.mul(word["length"], "%part"), "%parts")
    rows = f.sub(f.div(f.mul(word["length"], f.add("%part", 1)), "%parts"), begin)
    wide = word["wide"]
    apart = f.op(f"lshr i64 {word['sums']}, 2")
    with f.loop(0, f.div(word["items"], word["splits"])) as entry:
        first = f.at("float", f.at("i8", scratch, f.add(word["at_sums"], f.mul(f.mul(entry, word["splits"]), word["sums"]))), f.mul(begin, wide))
        with f.loop(1, word["splits"]) as n:
            f.do(f"call void @add_up(i64 {f.mul(rows, wide)}, ptr {first}, ptr {f.at('float', first, f.mul(n, apart))})")
        offset = batch_offsets(f, entry, BATCH, word["batch_dims"], len(OPERANDS))[OPERANDS.index("dq")]
        place = f.at(TYPES[result][0], out, f.add(offset, f.mul(begin, word["rsdq"])))
        f.do(f"call void @round_out(i64 {rows}, i64 {word['width']}, ptr {first}, i64 {wide}, ptr {place}, i64 {word['rsdq']}, i64 {word['csdq']})")
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
    """Scores S [rows, NR] become weights, e^(scale S - base), with floating masks times the row's inverse; their gradients D those of the products: scale S * (D - delta).

    Of the rows before `clear`, lane j counts where j < keys and, with `causal`, j < first + the row's number; behind, all do. What does not is 0 in both,
    and a weight of 0 passes nothing on, whatever stands in D.
    """
    t = kind.tile
    w = t.width
    wide, bits = vector("float", w), vector("i1", w)
    names = "i64 %begin, i64 %clear, i64 %rows, i64 %keys, i1 %causal, i64 %first, i64 %ld, float %scale"
    f = Function("weights", f"{names}, ptr noalias %s, ptr noalias %d, ptr noalias %base, ptr noalias %inverse, ptr noalias %delta", attributes + " noinline")
    factor, scale = f.constant("float", number(LOG2_E), w), f.splat("float", "%scale", w)

    def row(i, live=None):
        base, inverse, delta = (f.splat("float", f.load("float", f.at("float", f"%{name}", i)), w) for name in ("base", "inverse", "delta"))
        for j in range(t.vectors):
            here, there = (f.at("float", part, f.add(f.mul(i, "%ld"), j * w)) for part in ("%s", "%d"))
            score = f.load(wide, here, 4 * w)
            if not mask:
                score = f.times("float", w, score, scale)
            p = exp2(f, f.op(f"fsub {wide} {score}, {base}"), factor, w, t.fused)
            if kept(mask) == 2:
                p = f.times("float", w, p, inverse)
            if live is not None:
                p = f.op(f"select {bits} {f.lanes_below(f.sub(live, j * w), w)}, {wide} {p}, {wide} zeroinitializer")
            centred = f.op(f"fsub {wide} {f.load(wide, there, 4 * w)}, {delta}")
            nothing = f.op(f"fcmp oeq {wide} {p}, zeroinitializer")
            d = f.op(f"select {bits} {nothing}, {wide} zeroinitializer, {wide} {f.times('float', w, f.times('float', w, p, scale), centred)}")
            f.store(wide, f.decode(kind.own, p, w, t.half), here, 4 * w)
            f.store(wide, f.decode(kind.own, d, w, t.half), there, 4 * w)

    with f.loop("%begin", "%clear") as i:
        seen = f.min("%keys", f.add("%first", i))
        row(i, f.op(f"select i1 %causal, i64 {seen}, i64 %keys"))
    with f.loop("%clear", "%rows") as i:
        row(i)
    return f


def round_out(kind: Kind, result: str, attributes: str) -> Function:
    """to [rows, columns] of the results' dtype with any strides = from [rows, ld] in float32."""
    memory, half = TYPES[result][0], kind.tile.half
    f = Function("round_out", "i64 %rows, i64 %columns, ptr noalias %from, i64 %ld, ptr noalias %to, i64 %rs, i64 %cs", attributes + " noinline")

    def copy(step):
        with f.loop(0, "%rows") as i:
            source, target = f.at("float", "%from", f.mul(i, "%ld")), f.at(memory, "%to", f.mul(i, "%rs"))
            with f.loop(0, "%columns") as j:
                value = f.load("float", f.at("float", source, j))
                f.store(memory, f.encode(result, value, 1, half), f.at(memory, target, f.mul(j, step)))

    f.choose(f.compare("eq", "%cs", 1), lambda: copy(1), lambda: copy("%cs"))
    return f


def entry(kind: Kind, result: str, mask: str, attributes: str) -> Function:
    """The gradients of one batch entry by the keys from %first_key on before %behind. Pointers stand at the entry; base, inverse: what the forward pass kept
    of its rows. Unless it is a part, d_query is rounded, too."""
    memory, out, nr, w, top = TYPES[kind.a][0], TYPES[result][0], kind.tile.nr, kind.tile.width, kind.tile.heights[0]
    pointers = ", ".join(f"ptr %{name}" for name in [*OPERANDS, "base", "inverse", *(f"at_{part}" for part in PARTS)])
    pointers += ", " + ", ".join(f"ptr %next_{name}" for name in FETCHED)
    f = Function("entry", f"{pointers}, i64 %first_key, i64 %behind, {', '.join(f'i64 %{word}' for word in ARGUMENTS)}, float %scale", attributes + " noinline")
    largest = lambda a, b: f.call("i64", "llvm.smax.i64", f"i64 {a}", f"i64 {b}")
    causal = f.compare("ne", "%causal", 0)
    lies = {name: f.compare("ne", f"%{name}_lies", 0) for name in LIE}
    blocks = f.ceil_div("%length", "%q_rows")
    last_block = f.mul(f.sub(largest(blocks, 1), 1), "%q_rows")

    def first_block(key):
        """The first row of the first block that sees this key; the last one's where none does: it writes the zeros."""
        return f.op(f"select i1 {causal}, i64 {f.min(f.mul(f.div(key, '%q_rows'), '%q_rows'), last_block)}, i64 0")

    def copied(name, source, rows, columns, wide):
        """Rows in whole vectors of float32 where they do not lie so: (where, numbers from one to the next)."""
        with f.when(f.op(f"xor i1 {lies[name]}, true")):
            f.do(f"call void @pack_{kind.a}(ptr {source}, i64 %cs{name}, i64 %rs{name}, i64 {columns}, i64 {rows}, ptr %at_{name}, i64 {wide})")
        return f.op(f"select i1 {lies[name]}, ptr {source}, ptr %at_{name}"), f.op(f"select i1 {lies[name]}, i64 %rs{name}, i64 {wide}")

    def summed(name, place, wide):
        """Where a result is summed up: in its place, or in scratch."""
        return f.op(f"select i1 {lies[name]}, ptr {place}, ptr %at_{name}"), f.op(f"select i1 {lies[name]}, i64 %rs{name}, i64 {wide}")

    f.do("call void @prepare(i64 %length, i64 %value_width, ptr %g, i64 %rsg, i64 %csg, ptr %o, i64 %rso, i64 %cso, ptr %at_delta)")
    q, q_step = copied("q", "%q", "%length", "%width", "%wide")
    g, g_step = copied("g", "%g", "%length", "%value_width", "%wide_values")
    dq, dq_step = summed("dq", "%dq", "%wide")
    unseen = f.op(f"select i1 {f.compare('slt', '%first_key', '%behind')}, i64 {first_block('%first_key')}, i64 %length")
    with f.loop(0, unseen) as i, f.loop(0, "%wide", w) as e:
        f.store(vector("float", w), "zeroinitializer", f.at("float", dq, f.add(f.mul(i, dq_step), e)), 4)
    # Tiles of the last rows and keys read a few behind them: what is never stored must not be slow to multiply with (denormals) as garbage could.
    spare = f.min("%length", "%q_rows")
    with f.loop(f.mul(spare, "%ld"), f.mul(f.add(spare, top), "%ld"), w) as i:
        f.store(vector("float", w), "zeroinitializer", f.at("float", "%at_d", i), 4)
    with f.loop("%first_key", "%behind", "%k_rows") as k0:
        keys = f.min("%k_rows", f.sub("%behind", k0))
        source, v = f.at(memory, "%k", f.mul(k0, "%rsk")), f.at(memory, "%v", f.mul(k0, "%rsv"))
        pack_right(f, kind, kind.a, source, "%rsk", "%csk", keys, "%width", "%at_kt")  # K^T [E, keys]
        pack_right(f, kind, kind.a, v, "%rsv", "%csv", keys, "%value_width", "%at_vt")  # V^T [Ev, keys]
        k, k_step = copied("k", source, keys, "%width", "%wide")
        dk, dv = (summed(f"d{x}", f.at(out, f"%d{x}", f.mul(k0, f"%rsd{x}")), wide) for x, wide in (("k", "%wide"), ("v", "%wide_values")))
        panels = f.mul(f.ceil_div(keys, nr), nr)
        with f.loop(0, spare) as i:
            for part in ("%at_s", "%at_d"):
                f.store(vector("float", w), "zeroinitializer", f.at("float", part, f.add(f.mul(i, "%ld"), panels)), 4)
        first_q = first_block(k0)
        with f.loop(first_q, largest("%length", 1), "%q_rows") as q0:
            rows = f.min("%q_rows", f.sub("%length", q0))
            ahead = f.sub(q0, k0)
            q_here, g_here = f.at("float", q, f.mul(q0, q_step)), f.at("float", g, f.mul(q0, g_step))
            last_q = f.compare("sge", f.add(q0, "%q_rows"), "%length")
            last = f.both(last_q, f.compare("sge", f.add(k0, "%k_rows"), "%behind"))

            def fetch(name, row, end, wide, until=last, wanted=last_q):
                """The rows behind these of an operand, of the next entry where there are none; nothing unless `wanted`, as the block is not at its end."""
                size = 4 if name[0] == "d" and result == "float32" or memory == "float" else 2
                apart = f.mul(f"%rs{name}", size)
                place = f.op(f"select i1 {until}, ptr %next_{name}, ptr {f.at('i8', f'%{name}', f.mul(f.add(row, end), apart))}")
                return Ahead(f.op(f"select i1 {wanted}, ptr {place}, ptr %at_s"), f.op(f"select i1 {wanted}, i64 {apart}, i64 0"), f.ceil_div(f.mul(wide, size), 64))

            of_q, of_g = fetch("q", q0, rows, "%wide", last_q, "true"), fetch("g", q0, rows, "%wide_values", last_q, "true")
            of_k, of_v = fetch("k", k0, keys, "%wide"), fetch("v", k0, keys, "%wide_values")
            none = Ahead("%at_s", 0, 1)

            def chosen(j, first, second):
                """The first panel fetches the one, the second the other, the rest nothing."""
                begins, follows = f.compare("eq", j, 0), f.compare("eq", j, nr)
                either = lambda type_, a, b, c: f.op(f"select i1 {begins}, {type_} {a}, {type_} {f.op(f'select i1 {follows}, {type_} {b}, {type_} {c}')}")
                return Ahead(*map(either, ("ptr", "i64", "i64"), first, second, none))

            with f.loop(0, keys, nr) as j:
                here = f.min(nr, f.sub(keys, j))
                before = f.op(f"select i1 {causal}, i64 {largest(f.sub(j, ahead), 0)}, i64 0")  # rows that see none of these keys
                s, d = f.at("float", "%at_s", j), f.at("float", "%at_d", j)
                begin = largest(f.sub(before, top - 1), 0)  # not behind the beginning of any tile that has seen scores: what is hidden of it is zeros
                with f.when(f.compare("slt", begin, rows)):
                    narrow = f.op(f"select i1 {causal}, i64 {f.add(f.sub(j, ahead), w)}, i64 0")
                    kt, vt = f.at("float", "%at_kt", f.mul(j, "%width")), f.at("float", "%at_vt", f.mul(j, "%value_width"))
                    make_scores(f, rows, "%width", q_here, q_step, kt, s, "%ld", chosen(j, of_q, of_k), begin=before, narrow=narrow)  # S [rows, NR]
                    make_scores(f, rows, "%value_width", g_here, g_step, vt, d, "%ld", chosen(j, of_g, of_v), begin=before, narrow=narrow)  # dP [rows, NR]
                    if mask:
                        where = f.at(mask_memory(mask), "%m", f.add(f.mul(f.add(q0, begin), "%rsm"), f.mul(f.add(k0, j), "%csm")))
                        add_mask(f, kind, mask, where, f.at("float", s, f.mul(begin, "%ld")), f.sub(rows, begin), here, "%ld")
                    first = f.add(f.sub(ahead, j), 1)
                    clear = f.min(largest(f.sub(nr, first), begin), rows)  # rows from here on see all of these keys
                    clear = f.op(f"select i1 {causal}, i64 {clear}, i64 {begin}")
                    clear = f.op(f"select i1 {f.compare('slt', here, nr)}, i64 {rows}, i64 {clear}")
                    of_rows = ", ".join(f"ptr {f.at('float', part, q0)}" for part in ("%base", "%inverse", "%at_delta"))
                    f.do(f"call void @weights(i64 {begin}, i64 {clear}, i64 {rows}, i64 {here}, i1 {causal}, i64 {first}, i64 %ld, float %scale, ptr {s}, ptr {d}, {of_rows})")
            more = f.compare("ne", q0, first_q)
            behind, reach = f.op(f"select i1 {causal}, i64 {f.sub(k0, q0)}, i64 {-EVER}"), f.op(f"select i1 {causal}, i64 {ahead}, i64 {EVER}")
            of_dk, of_dv, of_o = fetch("dk", k0, keys, "%wide"), fetch("dv", k0, keys, "%wide_values"), fetch("o", 0, 0, "%wide_values", last, last)
            add_sums(f, "across", keys, rows, "%at_s", "%ld", (g_here, g_step), "%wide_values", dv, more, of_o, bound=behind)  # dV [keys, Ev]
            add_sums(f, "across", keys, rows, "%at_d", "%ld", (q_here, q_step), "%wide", dk, more, of_dv, bound=behind)  # dK [keys, E]
            to = f.at("float", dq, f.mul(q0, dq_step)), dq_step
            add_sums(f, "along", rows, keys, "%at_d", "%ld", (k, k_step), "%wide", to, f.compare("ne", k0, "%first_key"), of_dk, bound=reach)  # dQ [rows, E]
        for name, columns, wide in (("dk", "%width", "%wide"), ("dv", "%value_width", "%wide_values")):
            with f.when(f.op(f"xor i1 {lies[name]}, true")):
                target = f.at(out, f"%{name}", f.mul(k0, f"%rs{name}"))
                f.do(f"call void @round_out(i64 {keys}, i64 {columns}, ptr %at_{name}, i64 {wide}, ptr {target}, i64 %rs{name}, i64 %cs{name})")
    with f.when(f.both(f.compare("eq", "%splits", 1), f.op(f"xor i1 {lies['dq']}, true"))):
        f.do("call void @round_out(i64 %length, i64 %width, ptr %at_dq, i64 %wide, ptr %dq, i64 %rsdq, i64 %csdq)")
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
    begin = f.div(f.mul(word["items"], "%part"), "%parts")
    end = f.div(f.mul(word["items"], f.add("%part", 1)), "%parts")
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
        following = f.div(f.min(f.add(item, 1), f.sub(end, 1)), word["splits"])
        offsets = dict(zip(OPERANDS, batch_offsets(f, following, BATCH, word["batch_dims"], len(OPERANDS))))
        pointers = ", ".join(f"ptr {p}" for p in [*here, *parts, *(f.at(memory[name], slot[name], offsets[name]) for name in FETCHED)])
        keys = ", ".join(f"i64 {f.load('i64', f.at('i64', bounds, f.add(split, n)))}" for n in range(2))
        f.do(f"call void @entry({pointers}, {keys}, {', '.join(f'i64 {word[name]}' for name in ARGUMENTS)}, float {scale})")
    return f
