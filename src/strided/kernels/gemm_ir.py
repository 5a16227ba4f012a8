"""The packed, cache-blocked matrix product as LLVM IR: the loop nest around packing (gemm_pack.py) and the register-tiled micro-kernel (gemm_micro.py).

One generator for every host: vector width and tile are parameters (`Tile`). Which kernel a product gets is decided in matmul.py; vectors times matrices are gemv_ir.py.

    for each rectangle of C (claimed as threads come):               C [m, n] = alpha * A [m, k] @ B [k, n]  (+ beta * I [m, n])
      for n in steps of NC: for k in steps of KC:   pack B [kc, nc] into panels [nc/NR][kc][NR]
        for m in steps of MC:                       pack A [mc, kc] into panels [mc/MR][kc][MR]
          for each tile of MR x NR: micro-kernel: outer products in registers over kc

Where rows are few, B is packed by the first tile of each panel, which reads it in place. Where columns are few, so is A by the first panel's tiles, or it is not packed at all.
"""
from __future__ import annotations

from contextlib import contextmanager

from .gemm_dots import close_tiles, open_tiles, tile_micro
from .gemm_micro import finish, micro
from .gemm_pack import GROUP, Kind, packing
from .gemm_text import SIZES, TYPES, Function, is_float, module
from .runtime_pool import TEAM

# Descriptor words (8 and up); strides in elements of the operand they belong to. The epilogue's operand I is the added input of addmm, or a bias.
# C is cut into rectangles: `down` slices of rows for each of `across` blocks of columns, whose bounds stand at the end. Threads claim `chunk` slices at a time. `keep` is what a round
# of k takes, in words, where a block of B is packed whole and kept for all slices of rows (0: it is packed anew for each).
WORDS = ("m n k units chunk down across kc mc nc rsa csa rsb csb rsc csc rsi csi at_b at_p at_tile scratch keep batch_dims").split()
FIRST = 8
AFTER, AFTER_WORDS = 5, 6  # of the header: what runs on finished blocks of C (0: nothing), and where its words begin (epilogue.py)
MIDDLE = 640  # rows of C up to which panels of B are packed by the first tiles that read them
DENSE = 1024  # bytes from one row of B to the next up to which it need not be packed, where A is not either: so few pages that their addresses are all at hand
BLOCK = 8  # panels of C that it is given together
NEAR = 5 << 18  # bytes of B's panels that stand in the second-level cache beside a block of A
STACK = 32768  # bytes of scratch up to which no allocation is made
BATCH = FIRST + len(WORDS)  # then five words a batch dimension: size, strides of A, B, C, I


def gemm_module(kind: Kind, attributes: str) -> str:
    t = kind.tile
    functions = [*packing(kind, attributes), finish(kind, attributes), rectangle(kind, attributes), kernel(kind)]
    tiles = kind.dot if kind.dot and kind.dot.form == "tiles" else None
    functions += [tile_micro(tiles, height, t.nr, attributes) if tiles else micro(kind, height, attributes) for height in t.heights]
    if kind.plain:
        functions.append(micro(kind, t.heights[0], attributes, "first"))
    if kind.left:
        functions.append(micro(kind, t.heights[0], attributes, kind.left))
    extra = "declare i32 @posix_memalign(ptr, i64, i64)\ndeclare void @free(ptr)\n" + STARVED
    return module(*functions, extra=extra)


# ---- the loop nest --------------------------------------------------------------------------------------------------


def rectangle(kind: Kind, attributes: str) -> Function:
    """C[0:m, 0:n] of one work item; pointers stand at its corner."""
    t, acc = kind.tile, kind.acc
    am, bm, cm, im = (TYPES[d][0] for d in (kind.a, kind.b, kind.c, kind.i))
    strides = "i64 %rsa, i64 %csa, i64 %rsb, i64 %csb, i64 %rsc, i64 %csc, i64 %rsi, i64 %csi"
    after = "ptr %after, ptr %words, ptr %slots, i64 %row, i64 %col"
    blocks = "i64 %kc, i64 %mc, i64 %nc, ptr %pa, ptr %panels, ptr %pp, ptr %tile, i64 %keep, i1 %ready, i1 %low, i1 %middle"
    f = Function("rectangle", f"i64 %m, i64 %n, i64 %k, ptr %a, ptr %b, ptr %c, ptr %i, {strides}, {blocks}, {acc} %alpha, {acc} %beta, {after}", attributes + " noinline")
    top, nr = t.heights[0], t.nr
    unit = f.compare("eq", "%csc", 1)
    if kind.epilogue == "add":
        unit = f.both(unit, f.compare("eq", "%csi", 1))
    if kind.in_place and kind.epilogue:  # partial sums cannot stand in a C that has other strides
        partial_in_c = f.compare("eq", "%csc", 1)
    dot, word = kind.dot, kind.word
    tiles, front = bool(dot and dot.form == "tiles"), int(bool(dot and dot.moved))  # rows before a panel of B: where its sums start
    direct = kind.plain  # what is converted on the way is packed
    low = f.op(f"or i1 %low, {f.compare('sle', '%rsb', DENSE // SIZES[bm])}") if kind.left == "rows" else "%low"
    few = f.both(low, f.compare("eq", "%csb", 1)) if direct else "false"
    hidden = "false"  # whether the first tile of a panel packs it
    if direct and kind.left != "rows":
        hidden = f.both("%middle", f.compare("eq", "%csb", 1), unit, f.compare("sge", f.min("%m", "%mc"), top))
    apart = [f.mul("%rsa", n * SIZES[am]) for n in (1, 3, 5, 7)] if kind.left == "rows" else []
    block = f.variable("ptr", "%panels")  # where the panels of a round stand

    def in_place(width):  # few rows would not repay the packing of B: read whole panels of it where they are
        return f.both(few, f.compare("eq", width, nr)) if direct else "false"

    def b_at(k, n):
        return f.at(bm, "%b", f.add(f.mul(k, "%rsb"), f.mul(n, "%csb")))

    # Panels that one block of rows meets are not needed again: each is put down where the one before was, and the last columns' behind it.
    alone = f.both(hidden, f.compare("sle", "%m", "%mc"), f.compare("eq", "%keep", 0))
    whole_columns = "0"

    def right_at(j, depth):
        """The panel of B that begins with column j of those packed."""
        if hidden != "false":
            behind = f.op(f"select i1 {f.compare('slt', j, whole_columns)}, i64 0, i64 {nr}")
            j = f.op(f"select i1 {alone}, i64 {behind}, i64 {j}")
        return f.at(word, f.load("ptr", block), f.add(f.mul(j, f.add(depth, front)), front * nr))

    def pack_b(k, n, width, length, target):
        f.do(f"call void @{kind.packer(False)}(ptr {b_at(k, n)}, i64 %csb, i64 %rsb, i64 {width}, i64 {length}, ptr {target}, i64 {nr})")

    def pack_block(n0, n_here, k0, k_here, depth):
        """The panels of B [k_here, n_here], as far as they are not read in place."""
        four = f.mul(f.div(n_here, GROUP * nr), GROUP * nr)
        grouped = f.both(f.compare("eq", "%csb", 1), f.op(f"xor i1 {few}, true"), f.op(f"xor i1 {hidden}, true"))
        four = f.op(f"select i1 {grouped}, i64 {four}, i64 0")
        with f.loop(0, four, GROUP * nr) as j:  # pack B
            step = f.mul(f.add(depth, front), nr)
            f.do(f"call void @pack_rows(ptr {b_at(k0, f.add(n0, j))}, i64 %rsb, i64 {k_here}, ptr {right_at(j, depth)}, i64 {step})")
        if dot:  # the last group of those panels, where k ends within it
            whole_k = f.mul(f.div(k_here, dot.group), dot.group)
            with f.when(f.compare("ne", k_here, whole_k)), f.loop(0, four, nr) as j:
                target = f.at(word, right_at(j, depth), f.mul(f.div(whole_k, dot.group), nr))
                pack_b(f.add(k0, whole_k), f.add(n0, j), nr, f.sub(k_here, whole_k), target)
        with f.loop(four, n_here, nr) as j:
            width = f.min(nr, f.sub(n_here, j))
            whole = f.both(f.op(f"or i1 {few}, {hidden}"), f.compare("eq", width, nr))
            with f.when(f.op(f"xor i1 {whole}, true")):
                pack_b(k0, f.add(n0, j), width, k_here, right_at(j, depth))
        if dot and tiles:  # whole tiles are read of every panel
            groups = f.ceil_div(k_here, dot.group)
            rest = f.mul(f.sub(depth, groups), nr * SIZES[word])
            with f.loop(0, n_here, nr) as j:
                f.call("void", "llvm.memset.p0.i64", f"ptr {f.at(word, right_at(j, depth), f.mul(groups, nr))}", "i8 0", f"i64 {rest}", "i1 false")
        if front:
            with f.loop(0, n_here, nr) as j:
                panel = right_at(j, depth)
                f.do(f"call void @start_sums(ptr {panel}, i64 {depth}, i64 {nr}, ptr {f.at(word, panel, -nr)})")

    rounds = f.ceil_div("%k", "%kc")
    rounds = f.op(f"call i64 @llvm.smax.i64(i64 {rounds}, i64 1)")  # k = 0: one round of nothing writes the zeros
    f.declared.add("declare i64 @llvm.smax.i64(i64, i64)")
    with f.loop(0, "%n", "%nc") as n0:
        n_here = f.min("%nc", f.sub("%n", n0))
        whole_columns = f.mul(f.div(n_here, nr), nr)
        with f.loop(0, rounds) as round_:
            k0 = f.mul(round_, "%kc")
            k_here = f.min("%kc", f.sub("%k", k0))
            depth = f.mul(f.ceil_div(k_here, dot.group * dot.words), dot.words) if dot else k_here
            f.store("ptr", f.at(word, "%panels", f.mul(round_, "%keep")), block)
            more = f.compare("ne", round_, 0)
            last = f.compare("eq", f.add(round_, 1), rounds)
            with f.when(f.op("xor i1 %ready, true")):
                pack_block(n0, n_here, k0, k_here, depth)
            with f.loop(0, "%m", "%mc") as m0:
                m_here = f.min("%mc", f.sub("%m", m0))
                source_a = f.at(am, "%a", f.add(f.mul(m0, "%rsa"), f.mul(k0, "%csa")))

                def row_of(i, source_a=source_a):
                    return f.at(am, source_a, f.mul(i, "%rsa"))

                def pack_a(height, i, rows, panel_a, row_of=row_of, k_here=k_here):
                    f.do(f"call void @{kind.packer(True)}(ptr {row_of(i)}, i64 %rsa, i64 %csa, i64 {rows}, i64 {k_here}, ptr {panel_a}, i64 {height})")

                if kind.left == "columns":  # but for the tile that packs B
                    with f.when(f.both(hidden, f.compare("eq", m0, 0), f.op("xor i1 %ready, true"))):
                        pack_a(top, "0", str(top), "%pa")
                panels(f, kind, m_here, depth, "%pa", pack_a, f.mul(f.div(m_here, top), top) if kind.left else 0)
                # Where B's panels stand in the second-level cache, tiles fetch what is packed next of A instead: a row each, or a line of each row.
                near = f.compare("sle", f.mul(f.mul(n_here, depth), SIZES[word]), NEAR)
                after_a = f.at(am, source_a, f.mul(m_here, "%rsa"))
                rows_after = f.min("%mc", f.sub(f.sub("%m", m0), m_here))
                along = f.compare("eq", "%csa", 1)
                across_a = f.op(f"select i1 {along}, i64 1, i64 {64 // SIZES[am]}")
                by_row = f.op(f"select i1 {along}, i64 {f.mul('%rsa', SIZES[am])}, i64 {SIZES[am]}")
                with f.loop(0, n_here, nr) as j:
                    width = f.min(nr, f.sub(n_here, j))
                    column = f.add(n0, j)
                    raw = in_place(width)
                    fresh = f.both(hidden, f.compare("eq", m0, 0), f.compare("eq", width, nr), f.op("xor i1 %ready, true"))
                    panel_b = f.op(f"select i1 {raw}, ptr {b_at(k0, column)}, ptr {right_at(j, depth)}")
                    ldb = f.op(f"select i1 {raw}, i64 %rsb, i64 {nr}")
                    # While this panel is used, each tile brings a share of the next one into the second-level cache.
                    ahead = f.div(nr * SIZES[word], f.ceil_div(m_here, top))
                    next_panel = right_at(f.add(j, nr), depth)
                    before = f.mul(f.div(j, nr), f.ceil_div(m_here, top))  # tiles of this block so far

                    def tile(height, i, rows, panel_a, row_of=row_of, column=column, width=width, panel_b=panel_b, ldb=ldb, ahead=ahead, next_panel=next_panel, fresh=fresh):
                        share = f.at("i8", next_panel, f.mul(f.mul(f.div(i, top), ahead), depth))
                        place = f.mul(f.add(before, f.div(i, top)), across_a)
                        wanted = f.both(near, f.compare("slt", place, rows_after))
                        share = f.op(f"select i1 {wanted}, ptr {f.at('i8', after_a, f.mul(place, by_row))}, ptr {share}")
                        ahead = f.op(f"select i1 {wanted}, i64 {f.mul('%csa', SIZES[am])}, i64 {ahead}")
                        if hidden != "false":  # the tiles after the one that packs B fetch a line each of every row that the next panel is packed from
                            turn = f.sub(f.div(i, top), 1)
                            fetches = f.both(hidden, f.compare("eq", m0, 0), f.op("xor i1 %ready, true"), f.compare("ult", turn, nr * SIZES[bm] // 64))
                            share = f.op(f"select i1 {fetches}, ptr {f.at('i8', b_at(k0, f.add(column, nr)), f.mul(turn, 64))}, ptr {share}")
                            ahead = f.op(f"select i1 {fetches}, i64 {f.mul('%rsb', SIZES[bm])}, i64 {ahead}")
                        if kind.left == "rows":  # panels of A that are not packed come from further away than B's: the first tiles fetch the next rows
                            begins = f.compare("eq", j, 0)
                            share = f.op(f"select i1 {begins}, ptr {row_of(f.add(i, top))}, ptr {share}")
                            ahead = f.op(f"select i1 {begins}, i64 {top * SIZES[am]}, i64 {ahead}")
                        row = f.add(m0, i)
                        c = f.at(cm, "%c", f.add(f.mul(row, "%rsc"), f.mul(column, "%csc")))
                        input_ = f.at(im, "%i", f.add(f.mul(row, "%rsi"), f.mul(column, "%csi"))) if kind.epilogue == "add" else "null"
                        p, ldp = partials(row, c, f.add(j, 0))
                        tail = f"i1 {more}, i1 {last}, ptr {c}, i64 %rsc, i64 %csc, ptr {input_}, i64 %rsi, i64 %csi, {acc} %alpha, {acc} %beta"
                        whole = f.both(unit, f.compare("eq", width, nr), f.compare("eq", rows, height))
                        held = f.at(acc, "%tile", top * nr)
                        product = f"micro_{height}(i64 {depth}, ptr {panel_a}, ptr {panel_b}, i64 {ldb}, ptr {share}, i64 {ahead}, ptr {held}"

                        def straight():
                            f.do(f"call void @{product}, ptr {p}, i64 {ldp}, {tail})")

                        def keeping():
                            place = f"ptr {panel_b}, i64 {depth}, ptr {panel_a}, ptr {b_at(k0, column)}, i64 %rsb, ptr {share}, i64 {ahead}, ptr {held}"
                            f.do(f"call void @first_{height}({place}, ptr {p}, i64 {ldp}, {tail})")

                        def by_way_of_memory():
                            plain = f"i1 false, i1 false, ptr null, i64 0, i64 0, ptr null, i64 0, i64 0, {acc} %alpha, {acc} %beta"
                            f.do(f"call void @{product}, ptr %tile, i64 {nr}, {plain})")
                            finished()

                        def finished():
                            f.do(f"call void @finish(i64 {rows}, i64 {width}, ptr %tile, ptr {p}, i64 {ldp}, {tail})")

                        def packed():
                            f.choose(whole, straight, by_way_of_memory)

                        def unpacked():
                            nonlocal product
                            kept = product
                            more = f"ptr {panel_a}, i64 %csa" if kind.left == "columns" else ", ".join(f"i64 {n}" for n in (*apart, "%csa"))
                            product = f"{kind.left}_{height}({more}, i64 {depth}, ptr {row_of(i)}, ptr {panel_b}, i64 {ldb}, ptr {share}, i64 {ahead}, ptr {held}"
                            packed()
                            product = kept

                        if tiles:
                            f.do(f"call void @micro_{height}(i64 {depth}, ptr {panel_a}, ptr {panel_b}, ptr %tile)")
                            finished()
                        elif kind.left == "rows" and rows == str(top):
                            unpacked()
                        elif height == top and kind.plain:
                            begins = f.both(fresh, f.compare("eq", i, 0))
                            usual = packed if kind.left == "" or rows != str(top) else lambda: f.choose(f.compare("eq", j, 0), unpacked, packed)
                            f.choose(begins, keeping, usual)
                        else:
                            packed()

                    def partials(row, c, j_):
                        scratch = f.at(acc, "%pp", f.add(f.mul(row, "%nc"), j_))
                        if not kind.in_place:
                            return scratch, "%nc"
                        if not kind.epilogue:
                            return c, "%rsc"
                        return f.op(f"select i1 {partial_in_c}, ptr {c}, ptr {scratch}"), f.op(f"select i1 {partial_in_c}, i64 %rsc, i64 %nc")

                    panels(f, kind, m_here, depth, "%pa", tile)
                    done = f.add(j, nr)
                    end = f.op(f"or i1 {f.compare('eq', f.rem(done, BLOCK * nr), 0)}, {f.compare('sge', done, n_here)}")
                    with f.when(f.both(last, end, f.op("icmp ne ptr %after, null"))):  # a map of what is finished, see epilogue.py
                        start = f.mul(f.div(j, BLOCK * nr), BLOCK * nr)
                        block = f"i64 {f.add('%row', m0)}, i64 {m_here}, i64 {f.add(f.add('%col', n0), start)}, i64 {f.sub(f.min(done, n_here), start)}"
                        f.do(f"call void %after(ptr %words, ptr %slots, {block})")
    return f


def panels(f: Function, kind: Kind, m, k, packed, emit, start=0) -> None:
    """Walks m rows in panels, from row `start` on: the tallest as long as they last, then for the rest the shortest height that holds it.

    emit(height, first row, rows here, address of the panel in `packed`)
    """
    heights = kind.tile.heights
    top = heights[0]

    def panel(height, i, rows):
        emit(height, i, rows, f.at(kind.word, packed, f.mul(i, k)))

    whole = f.mul(f.div(m, top), top)
    with f.loop(start, whole, top) as i:
        panel(top, i, str(top))
    rest = f.sub(m, whole)

    def pick(options):
        if len(options) == 1:
            panel(options[0], whole, rest)
        else:
            f.choose(f.compare("sgt", rest, options[1]), lambda: panel(options[0], whole, rest), lambda: pick(options[1:]))

    with f.when(f.compare("sgt", rest, 0)):
        pick(heights)


def pack_panels(f: Function, kind: Kind, source, step, rows, k, target) -> None:
    """Packs `rows` rows of length k, `step` elements apart, as the panels of a left operand."""

    def emit(height, i, here, panel):
        where = f.at(TYPES[kind.a][0], source, f.mul(i, step))
        f.do(f"call void @pack_{kind.a}(ptr {where}, i64 {step}, i64 1, i64 {here}, i64 {k}, ptr {panel}, i64 {height})")

    panels(f, kind, rows, k, target, emit)


def batch_offsets(f: Function, index, first_word: int, dims, operands: int) -> list[str]:
    """Splits a batch index over the batch dimensions of the descriptor: the operands' offsets in elements."""
    left = f.variable("i64", index)
    sums = [f.variable("i64", 0) for _ in range(operands)]
    with f.loop(0, dims) as d:
        word = f.at("i64", "%desc", f.add(f.mul(d, operands + 1), first_word))
        size, here = f.load("i64", word), f.load("i64", left)
        digit = f.rem(here, size)
        f.store("i64", f.div(here, size), left)
        for o in range(operands):
            stride = f.load("i64", f.at("i64", word, o + 1))
            f.store("i64", f.add(f.load("i64", sums[o]), f.mul(digit, stride)), sums[o])
    return [f.load("i64", s) for s in sums]


def kernel(kind: Kind) -> Function:
    """The entry. A part takes rectangles of C one after the other, from a block of columns of its own first: those that no other part has taken yet."""
    acc = kind.acc
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", "nounwind", linkage="dso_local")
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    names = ["c", "a", "b"] + (["i"] if kind.epilogue == "add" else [])
    slot = {name: f.load("ptr", f.at("ptr", "%slots", n)) for n, name in enumerate(names)}
    scalars = scalar_slots(f, kind, len(names))
    after = f.load("ptr", f.at("i64", "%desc", AFTER))
    after_words = f.load("i64", f.at("i64", "%desc", AFTER_WORDS))
    counters, kept = f.variable("ptr", f.variable("i64", 0)), f.variable("ptr", "null")  # alone: a counter of its own, and nothing is kept
    with f.when(f.compare("sgt", "%parts", 1)):
        shared = f.load("ptr", f.at("ptr", "%slots", f.load("i64", f.at("i64", "%desc", 1))))
        f.store("ptr", shared, counters)
        table = f.load("ptr", f.at("ptr", shared, TEAM))
        with f.when(f.op(f"icmp ne ptr {table}, null")):
            f.store("ptr", f.at("i8", table, f.mul("%part", 16)), kept)
    counters = f.load("ptr", counters)
    tiles = kind.dot and kind.dot.form == "tiles"
    cell, started = f.variable("ptr", f.variable(f"[{STACK} x i8]", align=64)), f.variable("i1", 0)
    large = f.compare("sgt", word["scratch"], STACK)
    rows, columns = f.at("i64", "%desc", f.add(f.mul(word["batch_dims"], 5), BATCH)), f.variable("ptr")
    f.store("ptr", f.at("i64", rows, f.add(word["down"], 1)), columns)
    columns = f.load("ptr", columns)
    low = f.compare("sle", word["m"], 2 * kind.tile.heights[0])
    middle = f.both(f.compare("sle", word["m"], MIDDLE), f.op(f"xor i1 {low}, true"))
    with f.loop(0, word["across"]) as turn:
        block = f.rem(f.add("%part", turn), word["across"])
        n0 = f.load("i64", f.at("i64", columns, block))
        n = f.sub(f.load("i64", f.at("i64", columns, f.add(block, 1))), n0)
        packed = f.variable("i64")  # the matrix of which this block of B is packed
        f.store("i64", -1, packed)
        taken = f.ceil_div(word["units"], word["chunk"])
        with claims(f, f.at("i64", counters, block), taken) as claim:
            first = f.mul(claim, word["chunk"])
            last = f.min(f.add(first, word["chunk"]), word["units"])
            with f.when(f.op(f"xor i1 {f.load('i1', started)}, true")):
                f.store("i1", 1, started)
                if tiles:
                    open_tiles(f)
                with f.when(large):
                    memory(f, cell, f.load("ptr", kept), word["scratch"])
                    empty = f.op(f"icmp eq ptr {f.load('ptr', cell)}, null")
                    f.do(f"br i1 {empty}, label %starved, label %fed")
                    f.label("fed")
            with f.loop(first, last) as unit:
                scratch = f.load("ptr", cell)
                at = {name: f.at("i8", scratch, word[name]) for name in ("at_b", "at_p", "at_tile")}
                matrix, slice_ = f.div(unit, word["down"]), f.rem(unit, word["down"])
                m0 = f.load("i64", f.at("i64", rows, slice_))
                m = f.sub(f.load("i64", f.at("i64", rows, f.add(slice_, 1))), m0)
                offsets = batch_offsets(f, matrix, BATCH, word["batch_dims"], 4)
                corner = {}
                for name, offset in zip("abci", offsets):
                    if name == "i" and "i" not in slot:
                        corner["i"] = "null"
                        continue
                    here = offset
                    if name != "b":
                        here = f.add(here, f.mul(m0, word["rs" + name]))
                    if name != "a":
                        here = f.add(here, f.mul(n0, word["cs" + name]))
                    corner[name] = f.at(TYPES[getattr(kind, name)][0], slot[name], here)
                ready = f.both(f.compare("ne", word["keep"], 0), f.compare("eq", f.load("i64", packed), matrix))
                f.store("i64", matrix, packed)
                strides = ", ".join(f"i64 {word[s]}" for s in ("rsa", "csa", "rsb", "csb", "rsc", "csc", "rsi", "csi"))
                f.do(
                    f"call void @rectangle(i64 {m}, i64 {n}, i64 {word['k']}, ptr {corner['a']}, ptr {corner['b']}, ptr {corner['c']}, ptr {corner['i']}, {strides}, "
                    f"i64 {word['kc']}, i64 {word['mc']}, i64 {word['nc']}, ptr {scratch}, ptr {at['at_b']}, ptr {at['at_p']}, ptr {at['at_tile']}, "
                    f"i64 {word['keep']}, i1 {ready}, i1 {low}, i1 {middle}, {acc} {scalars[0]}, {acc} {scalars[1]}, "
                    f"ptr {after}, ptr {f.at('i64', '%desc', after_words)}, ptr %slots, i64 {m0}, i64 {n0})"
                )
    f.do("br label %finish")
    f.label("starved")  # what this part claimed stays undone
    starve(f)
    f.do("br label %finish")
    f.label("finish")
    with f.when(f.load("i1", started)):
        if tiles:
            close_tiles(f)
        with f.when(f.both(large, f.op(f"icmp eq ptr {f.load('ptr', kept)}, null"))):
            f.do(f"call void @free(ptr {f.load('ptr', cell)})")
    return f


@contextmanager
def claims(f: Function, counter, stop):
    """The numbers below `stop` that nobody has taken from the counter yet, one after the other."""
    tag = f"claim{len(f.body)}"
    f.do(f"br label %{tag}.head")
    f.label(f"{tag}.head")
    number = f.op(f"atomicrmw add ptr {counter}, i64 1 monotonic")
    f.do(f"br i1 {f.compare('slt', number, stop)}, label %{tag}.body, label %{tag}.end")
    f.label(f"{tag}.body")
    yield number
    f.do(f"br label %{tag}.head")
    f.label(f"{tag}.end")


STARVED = "@strided_starved = external global i64"  # the runtime's


def starve(f: Function) -> None:
    """Counts a part that found no memory for its scratch: its job's launcher raises the error."""
    f.do("atomicrmw add ptr @strided_starved, i64 1 monotonic")


def memory(f: Function, cell, kept, size) -> None:
    """Scratch of `size` bytes into `cell`: what this part kept from its last job where that is enough. Null where the system has none left."""

    def take(place):
        f.store("ptr", "null", place)
        code = f.op(f"call i32 @posix_memalign(ptr {place}, i64 64, i64 {size})")
        with f.when(f.op(f"icmp ne i32 {code}, 0")):
            f.store("ptr", "null", place)

    def fresh():
        take(cell)

    def held():
        room = f.at("i64", kept, 1)
        with f.when(f.compare("slt", f.load("i64", room), size)):
            f.do(f"call void @free(ptr {f.load('ptr', kept)})")
            f.store("i64", 0, room)
            take(kept)
            with f.when(f.op(f"icmp ne ptr {f.load('ptr', kept)}, null")):
                f.store("i64", size, room)
        f.store("ptr", f.load("ptr", kept), cell)

    f.choose(f.op(f"icmp eq ptr {kept}, null"), fresh, held)


def scalar_slots(f: Function, kind: Kind, first: int) -> list[str]:
    """alpha and beta from the slots: doubles for floating products, i64 for integer ones."""
    acc = kind.acc
    wanted = {"": 0, "scale": 1, "add": 2}[kind.epilogue]
    values = []
    for n in range(2):
        if n >= wanted:
            values.append("0.0" if is_float(acc) else "0")
            continue
        given = "double" if is_float(acc) else "i64"
        value = f.load(given, f.at("i64", "%slots", first + n))
        if acc == "float":
            value = f.op(f"fptrunc double {value} to float")
        elif acc == "i32":
            value = f.op(f"trunc i64 {value} to i32")
        values.append(value)
    return values
