"""The gradients of attention as one kernel, in LLVM IR: d_query, d_key and d_value without the matrix of scores in memory.

A block of query rows computes its weights again over all the keys it may see, so that the softmax is exact and needs nothing kept by the forward
pass; five products follow, all the packed micro-kernel of gemm_ir.py. Gradients of keys and values are summed in float32 over the blocks of one
batch entry and rounded once. Which calls come here is decided in attention.py.

    S = Q K^T    P = softmax(scale S + mask)    dP = G V^T    dS = scale P (dP - rowsum(P dP))    dQ = dS K    dK += dS^T Q    dV += P^T G
"""
from __future__ import annotations

from .attention_text import MINUS_INFINITY, exp, mask_memory, pack_rows
from .attention_text import add_mask_by_rows as add_mask
from .attention_text import product_by_rows as product
from .gemm_ir import batch_offsets, micro
from .gemm_pack import Kind, pack
from .gemm_text import TYPES, Function, mangled, module, vector

# Sizes, then strides in elements (rows, columns) of every operand; offsets of the scratch's parts in bytes, and its whole size.
OPERANDS = "q k v g dq dk dv m".split()
PARTS = "kt vt kb pq pg gb s d pp o dk dv held".split()
SIZES = "length keys width value_width items q_rows causal".split()
WORDS = [*SIZES, *(f"{axis}s{name}" for name in OPERANDS for axis in "rc"), *(f"at_{part}" for part in PARTS), "scratch", "batch_dims"]
FIRST = 8
BATCH = FIRST + len(WORDS)  # then nine words a batch dimension: size, strides of the operands


def attention_grad_module(kind: Kind, result: str, mask: str, attributes: str) -> str:
    """kind: the dtype of q, k, v, g as a and b, float32 as c. result: dtype of the gradients. mask: "" or the dtype of the mask."""
    dtypes = dict.fromkeys((kind.a, kind.own))
    functions = [kernel(kind, result, mask), entry(kind, result, mask, attributes), weights(kind, attributes), scores_gradient(kind, attributes)]
    functions += [round_out(kind, result, attributes), *(pack(kind, d, d, attributes) for d in dtypes)]
    functions += [micro(kind, height, attributes) for height in kind.tile.heights]
    return module(*functions)


def _reduce(f: Function, how: str, lanes: int, value: str) -> str:
    wide = vector("float", lanes)
    if how == "add":
        f.declared.add(f"declare float @llvm.vector.reduce.fadd.{mangled('float', lanes)}(float, {wide})")
        return f.op(f"call reassoc float @llvm.vector.reduce.fadd.{mangled('float', lanes)}(float -0.0, {wide} {value})")
    return f.call("float", f"llvm.vector.reduce.fmax.{mangled('float', lanes)}", f"{wide} {value}")


def weights(kind: Kind, attributes: str) -> Function:
    """Scores S [rows, ld] become softmax(scale * S) in place. Row i looks at its first `keys` columns, with `causal` only at min(keys, first + i); the rest become 0."""
    w = kind.tile.width
    wide, ints = vector("float", w), vector("i32", w)
    f = Function("weights", "i64 %rows, i64 %keys, i1 %causal, i64 %first, float %scale, ptr noalias %s, i64 %ld", attributes + " noinline")
    numbers = "<" + ", ".join(f"i32 {i}" for i in range(w)) + ">"
    none, factors = f.constant("float", MINUS_INFINITY, w), f.splat("float", "%scale", w)
    with f.loop(0, "%rows") as i:
        seen = f.min("%keys", f.add("%first", i))
        limit = f.op(f"select i1 %causal, i64 {seen}, i64 %keys")
        row = f.at("float", "%s", f.mul(i, "%ld"))
        top, total = f.variable(wide, none, 64), f.variable(wide, "zeroinitializer", 64)
        with f.loop(0, "%ld", w) as j:
            place = f.at("float", row, j)
            left = f.op(f"trunc i64 {f.sub(limit, j)} to i32")
            live = f.op(f"icmp slt {ints} {numbers}, {f.splat('i32', left, w)}")
            score = f.op(f"select {vector('i1', w)} {live}, {wide} {f.times('float', w, f.load(wide, place, 64), factors)}, {wide} {none}")
            f.store(wide, score, place, 64)
            f.store(wide, f.call(wide, f"llvm.maxnum.{mangled('float', w)}", f"{wide} {score}", f"{wide} {f.load(wide, top, 64)}"), top, 64)
        highest = _reduce(f, "max", w, f.load(wide, top, 64))
        blind = f.op(f"fcmp oeq float {highest}, {MINUS_INFINITY}")  # a row that may look nowhere: -inf - -inf must not become NaN
        base = f.splat("float", f.op(f"select i1 {blind}, float 0.0, float {highest}"), w)
        with f.loop(0, "%ld", w) as j:
            place = f.at("float", row, j)
            p = exp(f, f.op(f"fsub {wide} {f.load(wide, place, 64)}, {base}"), w)
            f.store(wide, p, place, 64)
            f.store(wide, f.plus("float", w, f.load(wide, total, 64), p), total, 64)
        added = _reduce(f, "add", w, f.load(wide, total, 64))
        nothing = f.op(f"fcmp oeq float {added}, 0.0")
        inverse = f.splat("float", f.op(f"fdiv float 1.0, {f.op(f'select i1 {nothing}, float 1.0, float {added}')}"), w)
        with f.loop(0, "%ld", w) as j:
            place = f.at("float", row, j)
            f.store(wide, f.times("float", w, f.load(wide, place, 64), inverse), place, 64)
    return f


def scores_gradient(kind: Kind, attributes: str) -> Function:
    """D [rows, ld], the gradients of the weights S, become those of the scores: scale * S * (D - rowsum(S * D)). A weight of 0 passes nothing on, whatever stands in D."""
    w = kind.tile.width
    wide, bits = vector("float", w), vector("i1", w)
    f = Function("scores_gradient", "i64 %rows, float %scale, ptr noalias %s, ptr noalias %d, i64 %ld", attributes + " noinline")
    factors = f.splat("float", "%scale", w)

    def weighted(p, d):
        hidden = f.op(f"fcmp oeq {wide} {p}, zeroinitializer")
        return f.op(f"select {bits} {hidden}, {wide} zeroinitializer, {wide} {f.times('float', w, p, d)}")

    with f.loop(0, "%rows") as i:
        s, d = f.at("float", "%s", f.mul(i, "%ld")), f.at("float", "%d", f.mul(i, "%ld"))
        total = f.variable(wide, "zeroinitializer", 64)
        with f.loop(0, "%ld", w) as j:
            each = weighted(f.load(wide, f.at("float", s, j), 64), f.load(wide, f.at("float", d, j), 64))
            f.store(wide, f.plus("float", w, f.load(wide, total, 64), each), total, 64)
        mean = f.splat("float", _reduce(f, "add", w, f.load(wide, total, 64)), w)
        with f.loop(0, "%ld", w) as j:
            place = f.at("float", d, j)
            centred = f.op(f"fsub {wide} {f.load(wide, place, 64)}, {mean}")
            f.store(wide, f.times("float", w, weighted(f.load(wide, f.at("float", s, j), 64), centred), factors), place, 64)
    return f


def round_out(kind: Kind, result: str, attributes: str) -> Function:
    """to [rows, columns] of the results' dtype with any strides = from [rows, ld] in float32."""
    memory, half = TYPES[result][0], kind.tile.half
    f = Function("round_out", "i64 %rows, i64 %columns, ptr noalias %from, i64 %ld, ptr noalias %to, i64 %rs, i64 %cs", attributes + " noinline")

    def copy(step):
        with f.loop(0, "%rows") as i:
            source, target = f.at("float", "%from", f.mul(i, "%ld")), f.at(memory, "%to", f.mul(i, "%rs"))
            with f.loop(0, "%columns") as j:
                f.store(memory, f.encode(result, f.load("float", f.at("float", source, j)), 1, half), f.at(memory, target, f.mul(j, step)))

    f.choose(f.compare("eq", "%cs", 1), lambda: copy(1), lambda: copy("%cs"))
    return f


def pack_columns(f: Function, kind: Kind, dtype: str, source, row_step, step, k, columns, target, depth=None) -> None:
    """Packs a [k, columns] matrix as the panels of a right operand, each with room for `depth` (k) rows."""
    nr = kind.tile.nr
    with f.loop(0, columns, nr) as j:
        here = f.min(nr, f.sub(columns, j))
        where = f.at(TYPES[dtype][0], source, f.mul(j, step))
        f.do(f"call void @pack_{dtype}(ptr {where}, i64 {step}, i64 {row_step}, i64 {here}, i64 {k}, ptr {f.at('float', target, f.mul(j, depth or k))}, i64 {nr})")


def entry(kind: Kind, result: str, mask: str, attributes: str) -> Function:
    """The gradients of one batch entry. Pointers stand at it."""
    memory, nr = TYPES[kind.a][0], kind.tile.nr
    sizes = ", ".join(f"i64 %{word}" for word in WORDS if not word.startswith(("at_", "scratch", "batch", "items")))
    pointers = ", ".join(f"ptr %{name}" for name in [*OPERANDS, *(f"at_{part}" for part in PARTS)])
    f = Function("entry", f"{pointers}, {sizes}, float %scale", attributes + " noinline")
    wide, wide_values = (f.mul(f.ceil_div(size, nr), nr) for size in ("%width", "%value_width"))
    dtype = kind.a
    pack_columns(f, kind, dtype, "%k", "%csk", "%rsk", "%width", "%keys", "%at_kt")  # K^T [E, S]
    pack_columns(f, kind, dtype, "%v", "%csv", "%rsv", "%value_width", "%keys", "%at_vt")  # V^T [Ev, S]
    pack_columns(f, kind, dtype, "%k", "%rsk", "%csk", "%keys", "%width", "%at_kb")  # K [S, E]
    for target, columns in (("%at_dk", wide), ("%at_dv", wide_values)):
        with f.loop(0, f.mul("%keys", columns)) as i:
            f.store("float", "0.0", f.at("float", target, i))
    causal = f.compare("ne", "%causal", 0)
    with f.loop(0, "%length", "%q_rows") as row:
        rows = f.min("%q_rows", f.sub("%length", row))
        last = f.min("%keys", f.add(row, rows))
        keys = f.op(f"select i1 {causal}, i64 {last}, i64 %keys")
        ld = f.mul(f.ceil_div(keys, nr), nr)
        q, g = f.at(memory, "%q", f.mul(row, "%rsq")), f.at(memory, "%g", f.mul(row, "%rsg"))
        pack_rows(f, kind, dtype, q, "%rsq", "%csq", rows, "%width", "%at_pq")
        pack_rows(f, kind, dtype, g, "%rsg", "%csg", rows, "%value_width", "%at_pg")
        product(f, kind, rows, ld, "%width", "%at_pq", "%at_kt", "%at_s", ld, "false", held="%at_held")  # scores [rows, keys]
        if mask:
            add_mask(f, kind, mask, f.at(mask_memory(mask), "%m", f.mul(row, "%rsm")), "%at_s", rows, keys, ld)
        f.do(f"call void @weights(i64 {rows}, i64 {keys}, i1 {causal}, i64 {f.add(row, 1)}, float {'1.0' if mask else '%scale'}, ptr %at_s, i64 {ld})")
        product(f, kind, rows, ld, "%value_width", "%at_pg", "%at_vt", "%at_d", ld, "false", held="%at_held")  # gradients of the weights [rows, keys]
        f.do(f"call void @scores_gradient(i64 {rows}, float %scale, ptr %at_s, ptr %at_d, i64 {ld})")
        pack_rows(f, kind, kind.own, "%at_d", ld, 1, rows, keys, "%at_pp")
        product(f, kind, rows, wide, keys, "%at_pp", "%at_kb", "%at_o", wide, "false", "%keys", "%at_held")  # [rows, E]
        f.do(f"call void @round_out(i64 {rows}, i64 %width, ptr %at_o, i64 {wide}, ptr {f.at(TYPES[result][0], '%dq', f.mul(row, '%rsdq'))}, i64 %rsdq, i64 %csdq)")
        for scores, right, strides, columns, padded, target in (
            ("%at_s", g, ("%rsg", "%csg"), "%value_width", wide_values, "%at_dv"),  # [keys, Ev] += P^T G
            ("%at_d", q, ("%rsq", "%csq"), "%width", wide, "%at_dk"),  # [keys, E] += dS^T Q
        ):
            pack_rows(f, kind, kind.own, scores, 1, ld, keys, rows, "%at_pp")
            pack_columns(f, kind, dtype, right, *strides, rows, columns, "%at_gb")
            product(f, kind, keys, padded, rows, "%at_pp", "%at_gb", target, padded, "true", held="%at_held")
    f.do(f"call void @round_out(i64 %keys, i64 %width, ptr %at_dk, i64 {wide}, ptr %dk, i64 %rsdk, i64 %csdk)")
    f.do(f"call void @round_out(i64 %keys, i64 %value_width, ptr %at_dv, i64 {wide_values}, ptr %dv, i64 %rsdv, i64 %csdv)")
    return f


def kernel(kind: Kind, result: str, mask: str) -> Function:
    """The entry point: work items are batch entries; every part has its own piece of the scratch."""
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", "nounwind", linkage="dso_local")
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    names = ["dq", "dk", "dv", "q", "k", "v", "g", *(["m"] if mask else []), "scratch"]
    slot = {name: f.load("ptr", f.at("ptr", "%slots", n)) for n, name in enumerate(names)}
    scale = f.op(f"fptrunc double {f.load('double', f.at('i64', '%slots', len(names)))} to float")
    scratch = f.at("i8", slot["scratch"], f.mul("%part", word["scratch"]))
    parts = [f.at("i8", scratch, word[f"at_{part}"]) for part in PARTS]
    begin = f.div(f.mul(word["items"], "%part"), "%parts")
    end = f.div(f.mul(word["items"], f.add("%part", 1)), "%parts")
    memory = {name: TYPES[result if name[0] == "d" else kind.a][0] for name in OPERANDS if name != "m"} | {"m": mask_memory(mask) if mask else ""}
    with f.loop(begin, end) as item:
        here = []
        for name, offset in zip(OPERANDS, batch_offsets(f, item, BATCH, word["batch_dims"], len(OPERANDS))):
            here.append(f.at(memory[name], slot[name], offset) if name in slot else "null")
        pointers = ", ".join(f"ptr {p}" for p in [*here, *parts])
        sizes = ", ".join(f"i64 {word[name]}" for name in WORDS if not name.startswith(("at_", "scratch", "batch", "items")))
        f.do(f"call void @entry({pointers}, {sizes}, float {scale})")
    return f
