"""The loop nest of the packed matrix product over one rectangle of C, in LLVM IR: which operands are packed or read in place, and which micro-kernel a tile goes to.

    for n in steps of NC: for k in steps of KC:     pack B [kc, nc] into panels [nc/NR][kc][NR]
      for m in steps of MC:                         pack A [mc, kc] into panels [mc/MR][kc][MR]
        for each panel of NR columns, for each tile of MR x NR: micro-kernel: outer products in registers over kc

Where rows are few, B is packed by the first tile of each panel, which reads it in place. Where columns are few, so is A by the first panel's tiles, or it is not packed at all.
The packing itself is gemm_pack.py's, the tile's product gemm_micro.py's; which rectangles there are is gemm_ir.py's.
"""
from __future__ import annotations

from .gemm_pack import GROUP, Kind
from .gemm_text import SIZES, TYPES, Function

DENSE = 1024  # bytes from one row of B to the next up to which it need not be packed, where A is not either: so few pages that their addresses are all at hand
BLOCK = 8  # panels of C that a map of what is finished is given together
NEAR = 5 << 18  # bytes of B's panels that stand in the second-level cache beside a block of A


def rectangle(kind: Kind, attributes: str) -> Function:
    """C[0:m, 0:n] of one work item; pointers stand at its corner."""
    walk = Walk(kind, attributes)
    f = walk.f
    with f.loop(0, "%n", "%nc") as n0:
        walk.enter_columns(n0)
        with f.loop(0, walk.rounds) as round_:
            walk.enter_round(round_)
            with f.when(f.op("xor i1 %ready, true")):
                walk.pack_right()
            with f.loop(0, "%m", "%mc") as m0:
                walk.enter_rows(m0)
                walk.pack_left()
                walk.look_ahead()
                with f.loop(0, walk.n_here, kind.tile.nr) as j:
                    walk.enter_panel(j)
                    panels(f, kind, walk.m_here, walk.depth, "%pa", walk.tile)
                    walk.hand_over()
    return f


class Walk:
    """The rectangle while it is written. Each `enter_` sets what holds inside of a loop: addresses, counts and conditions, all of them names in the text."""

    def __init__(self, kind: Kind, attributes: str):
        self.kind, self.acc, self.word = kind, kind.acc, kind.word
        self.top, self.nr = kind.tile.heights[0], kind.tile.nr
        self.am, self.bm, self.cm, self.im = (TYPES[d][0] for d in (kind.a, kind.b, kind.c, kind.i))
        self.tiles = bool(kind.dot and kind.dot.form == "tiles")
        self.front = int(bool(kind.dot and kind.dot.moved))  # rows before a panel of B: where its sums start
        self.hides = kind.plain and kind.left != "rows"  # whether there are products whose B is packed by the way
        strides = "i64 %rsa, i64 %csa, i64 %rsb, i64 %csb, i64 %rsc, i64 %csc, i64 %rsi, i64 %csi"
        after = "ptr %after, ptr %words, ptr %slots, i64 %row, i64 %col"
        blocks = "i64 %kc, i64 %mc, i64 %nc, ptr %pa, ptr %panels, ptr %pp, ptr %tile, i64 %keep, i1 %ready, i1 %low, i1 %middle"
        arguments = f"i64 %m, i64 %n, i64 %k, ptr %a, ptr %b, ptr %c, ptr %i, {strides}, {blocks}, {self.acc} %alpha, {self.acc} %beta, {after}"
        self.f = Function("rectangle", arguments, attributes + " noinline")
        self._ways()

    def _ways(self) -> None:
        """How operands are read and where sums stand, as far as that is the same for the whole rectangle."""
        f, kind = self.f, self.kind
        self.unit = f.compare("eq", "%csc", 1)
        if kind.epilogue == "add":
            self.unit = f.both(self.unit, f.compare("eq", "%csi", 1))
        if kind.in_place and kind.epilogue:  # partial sums cannot stand in a C that has other strides
            self.partial_in_c = f.compare("eq", "%csc", 1)
        low = f.op(f"or i1 %low, {f.compare('sle', '%rsb', DENSE // SIZES[self.bm])}") if kind.left == "rows" else "%low"
        self.few = f.both(low, f.compare("eq", "%csb", 1)) if kind.plain else "false"  # few rows would not repay the packing of B. What is converted on the way is packed
        self.hidden = "false"  # whether the first tile of a panel packs it
        if self.hides:
            self.hidden = f.both("%middle", f.compare("eq", "%csb", 1), self.unit, f.compare("sge", f.min("%m", "%mc"), self.top))
        self.apart = [f.mul("%rsa", n * SIZES[self.am]) for n in (1, 3, 5, 7)] if kind.left == "rows" else []
        self.block = f.variable("ptr", "%panels")  # where the panels of a round stand
        # Panels that one block of rows meets are not needed again: each is put down where the one before was, and the last columns' behind it.
        self.alone = f.both(self.hidden, f.compare("sle", "%m", "%mc"), f.compare("eq", "%keep", 0))
        rounds = f.ceil_div("%k", "%kc")
        self.rounds = f.op(f"call i64 @llvm.smax.i64(i64 {rounds}, i64 1)")  # k = 0: one round of nothing writes the zeros
        f.declared.add("declare i64 @llvm.smax.i64(i64, i64)")

    # ---- the loops -----------------------------------------------------------------------------------------------------

    def enter_columns(self, n0) -> None:
        f = self.f
        self.n0, self.n_here = n0, f.min("%nc", f.sub("%n", n0))
        self.whole_columns = f.mul(f.div(self.n_here, self.nr), self.nr)

    def enter_round(self, round_) -> None:
        f, dot = self.f, self.kind.dot
        self.k0 = f.mul(round_, "%kc")
        self.k_here = f.min("%kc", f.sub("%k", self.k0))
        self.depth = f.mul(f.ceil_div(self.k_here, dot.group * dot.words), dot.words) if dot else self.k_here
        f.store("ptr", f.at(self.word, "%panels", f.mul(round_, "%keep")), self.block)
        self.more = f.compare("ne", round_, 0)
        self.last = f.compare("eq", f.add(round_, 1), self.rounds)

    def enter_rows(self, m0) -> None:
        f = self.f
        self.m0, self.m_here = m0, f.min("%mc", f.sub("%m", m0))
        self.source_a = f.at(self.am, "%a", f.add(f.mul(m0, "%rsa"), f.mul(self.k0, "%csa")))

    def enter_panel(self, j) -> None:
        f, nr = self.f, self.nr
        self.j, self.width = j, f.min(nr, f.sub(self.n_here, j))
        self.column = f.add(self.n0, j)
        raw = f.both(self.few, f.compare("eq", self.width, nr)) if self.kind.plain else "false"  # a whole panel is read where it is
        self.fresh = f.both(self.hidden, f.compare("eq", self.m0, 0), f.compare("eq", self.width, nr), f.op("xor i1 %ready, true"))
        self.panel_b = f.op(f"select i1 {raw}, ptr {self.b_at(self.k0, self.column)}, ptr {self.right_at(j)}")
        self.ldb = f.op(f"select i1 {raw}, i64 %rsb, i64 {nr}")
        # While this panel is used, each tile brings a share of the next one into the second-level cache.
        self.share = f.div(nr * SIZES[self.word], f.ceil_div(self.m_here, self.top))
        self.next_panel = self.right_at(f.add(j, nr))
        self.before = f.mul(f.div(j, nr), f.ceil_div(self.m_here, self.top))  # tiles of this block so far

    # ---- operands and their packing ------------------------------------------------------------------------------------

    def b_at(self, k, n):
        return self.f.at(self.bm, "%b", self.f.add(self.f.mul(k, "%rsb"), self.f.mul(n, "%csb")))

    def row_of(self, i):
        """Row i of this block of A."""
        return self.f.at(self.am, self.source_a, self.f.mul(i, "%rsa"))

    def right_at(self, j):
        """The panel of B that begins with column j of those packed."""
        f = self.f
        if self.hides:
            behind = f.op(f"select i1 {f.compare('slt', j, self.whole_columns)}, i64 0, i64 {self.nr}")
            j = f.op(f"select i1 {self.alone}, i64 {behind}, i64 {j}")
        return f.at(self.word, f.load("ptr", self.block), f.add(f.mul(j, f.add(self.depth, self.front)), self.front * self.nr))

    def pack_left(self) -> None:
        """The panels of A [m_here, k_here], as far as no tile reads them where they are."""
        f, kind = self.f, self.kind

        def pack(height, i, rows, panel):
            f.do(f"call void @{kind.packer(True)}(ptr {self.row_of(i)}, i64 %rsa, i64 %csa, i64 {rows}, i64 {self.k_here}, ptr {panel}, i64 {height})")

        if kind.left == "columns":  # but for the tile that packs B
            with f.when(f.both(self.hidden, f.compare("eq", self.m0, 0), f.op("xor i1 %ready, true"))):
                pack(self.top, "0", str(self.top), "%pa")
        panels(f, kind, self.m_here, self.depth, "%pa", pack, f.mul(f.div(self.m_here, self.top), self.top) if kind.left else 0)

    def pack_right(self) -> None:
        """The panels of B [k_here, n_here], as far as they are not read in place."""
        f, dot, nr, k0, k_here = self.f, self.kind.dot, self.nr, self.k0, self.k_here

        def pack(k, n, width, length, panel):
            f.do(f"call void @{self.kind.packer(False)}(ptr {self.b_at(k, n)}, i64 %csb, i64 %rsb, i64 {width}, i64 {length}, ptr {panel}, i64 {nr})")

        four = f.mul(f.div(self.n_here, GROUP * nr), GROUP * nr)
        grouped = f.both(f.compare("eq", "%csb", 1), f.op(f"xor i1 {self.few}, true"), f.op(f"xor i1 {self.hidden}, true"))
        four = f.op(f"select i1 {grouped}, i64 {four}, i64 0")
        with f.loop(0, four, GROUP * nr) as j:
            step = f.mul(f.add(self.depth, self.front), nr)
            f.do(f"call void @pack_rows(ptr {self.b_at(k0, f.add(self.n0, j))}, i64 %rsb, i64 {k_here}, ptr {self.right_at(j)}, i64 {step})")
        if dot:  # the last group of those panels, where k ends within it
            whole_k = f.mul(f.div(k_here, dot.group), dot.group)
            with f.when(f.compare("ne", k_here, whole_k)), f.loop(0, four, nr) as j:
                panel = f.at(self.word, self.right_at(j), f.mul(f.div(whole_k, dot.group), nr))
                pack(f.add(k0, whole_k), f.add(self.n0, j), nr, f.sub(k_here, whole_k), panel)
        with f.loop(four, self.n_here, nr) as j:
            width = f.min(nr, f.sub(self.n_here, j))
            later = f.both(f.op(f"or i1 {self.few}, {self.hidden}"), f.compare("eq", width, nr))
            with f.when(f.op(f"xor i1 {later}, true")):
                pack(k0, f.add(self.n0, j), width, k_here, self.right_at(j))
        self._complete()

    def _complete(self) -> None:
        """What else instructions on groups of elements want of B's panels: zeros up to whole tiles, and what sums start from."""
        f, dot, nr = self.f, self.kind.dot, self.nr
        if dot and self.tiles:
            groups = f.ceil_div(self.k_here, dot.group)
            rest = f.mul(f.sub(self.depth, groups), nr * SIZES[self.word])
            with f.loop(0, self.n_here, nr) as j:
                f.call("void", "llvm.memset.p0.i64", f"ptr {f.at(self.word, self.right_at(j), f.mul(groups, nr))}", "i8 0", f"i64 {rest}", "i1 false")
        if self.front:
            with f.loop(0, self.n_here, nr) as j:
                panel = self.right_at(j)
                f.do(f"call void @start_sums(ptr {panel}, i64 {self.depth}, i64 {nr}, ptr {f.at(self.word, panel, -nr)})")

    # ---- what tiles fetch ahead ----------------------------------------------------------------------------------------

    def look_ahead(self) -> None:
        """Where B's panels stand in the second-level cache, tiles fetch what is packed next of A instead: a row each, or a line of each row."""
        f, size = self.f, SIZES[self.am]
        self.near = f.compare("sle", f.mul(f.mul(self.n_here, self.depth), SIZES[self.word]), NEAR)
        self.after_a = f.at(self.am, self.source_a, f.mul(self.m_here, "%rsa"))
        self.rows_after = f.min("%mc", f.sub(f.sub("%m", self.m0), self.m_here))
        along = f.compare("eq", "%csa", 1)
        self.across_a = f.op(f"select i1 {along}, i64 1, i64 {64 // size}")
        self.by_row = f.op(f"select i1 {along}, i64 {f.mul('%rsa', size)}, i64 {size}")

    def fetched(self, i) -> tuple[str, str]:
        """What the tile at row i fetches while it multiplies: an address, and how many bytes further on for each step along k."""
        f, top = self.f, self.top

        def rather(condition, address, step, size):
            chosen = f.op(f"select i1 {condition}, ptr {address}, ptr {share}")
            return chosen, f.op(f"select i1 {condition}, i64 {f.mul(step, size)}, i64 {ahead}")

        share, ahead = f.at("i8", self.next_panel, f.mul(f.mul(f.div(i, top), self.share), self.depth)), self.share
        place = f.mul(f.add(self.before, f.div(i, top)), self.across_a)
        wanted = f.both(self.near, f.compare("slt", place, self.rows_after))
        share, ahead = rather(wanted, f.at("i8", self.after_a, f.mul(place, self.by_row)), "%csa", SIZES[self.am])
        if self.hides:  # the tiles after the one that packs B fetch a line each of every row that the next panel is packed from
            turn, size = f.sub(f.div(i, top), 1), SIZES[self.bm]
            wanted = f.both(self.hidden, f.compare("eq", self.m0, 0), f.op("xor i1 %ready, true"), f.compare("ult", turn, self.nr * size // 64))
            share, ahead = rather(wanted, f.at("i8", self.b_at(self.k0, f.add(self.column, self.nr)), f.mul(turn, 64)), "%rsb", size)
        if self.kind.left == "rows":  # panels of A that are not packed come from further away than B's: the first tiles fetch the next rows
            wanted = f.compare("eq", self.j, 0)
            share, ahead = rather(wanted, self.row_of(f.add(i, top)), top * SIZES[self.am], 1)
        return share, ahead

    # ---- tiles ---------------------------------------------------------------------------------------------------------

    def tile(self, height, i, rows, panel_a) -> None:
        """The tile at row i of this block, which has `rows` of `height` rows, by the micro-kernel that reads its operands as they lie."""
        f, kind, top, nr = self.f, self.kind, self.top, self.nr
        share, ahead = self.fetched(i)
        p, ldp, tail = self.target(i)
        whole = f.both(self.unit, f.compare("eq", self.width, nr), f.compare("eq", rows, height))
        held = f.at(self.acc, "%tile", top * nr)
        right = f"ptr {self.panel_b}, i64 {self.ldb}, ptr {share}, i64 {ahead}, ptr {held}"

        def multiply(left):
            def by_way_of_memory():
                f.do(f"call void @{left}, {right}, ptr %tile, i64 {nr}, i1 false, i1 false, ptr null, i64 0, i64 0, ptr null, i64 0, i64 0, {self.acc} %alpha, {self.acc} %beta)")
                finish()

            f.choose(whole, lambda: f.do(f"call void @{left}, {right}, ptr {p}, i64 {ldp}, {tail})"), by_way_of_memory)

        def finish():
            f.do(f"call void @finish(i64 {rows}, i64 {self.width}, ptr %tile, ptr {p}, i64 {ldp}, {tail})")

        def packed():
            multiply(f"micro_{height}(i64 {self.depth}, ptr {panel_a}")

        def left_in_place():
            more = f"ptr {panel_a}, i64 %csa" if kind.left == "columns" else ", ".join(f"i64 {n}" for n in (*self.apart, "%csa"))
            multiply(f"{kind.left}_{height}({more}, i64 {self.depth}, ptr {self.row_of(i)}")

        def right_in_place():  # and packed for the tiles that follow
            operands = f"ptr {self.panel_b}, i64 {self.depth}, ptr {panel_a}, ptr {self.b_at(self.k0, self.column)}, i64 %rsb"
            f.do(f"call void @first_{height}({operands}, ptr {share}, i64 {ahead}, ptr {held}, ptr {p}, i64 {ldp}, {tail})")

        full = rows == str(top)
        if self.tiles:
            f.do(f"call void @micro_{height}(i64 {self.depth}, ptr {panel_a}, ptr {self.panel_b}, ptr %tile)")
            finish()
        elif kind.left == "rows" and full:
            left_in_place()
        elif kind.plain and height == top:
            usual = (lambda: f.choose(f.compare("eq", self.j, 0), left_in_place, packed)) if kind.left == "columns" and full else packed
            f.choose(f.both(self.fresh, f.compare("eq", i, 0)), right_in_place, usual)
        else:
            packed()

    def target(self, i) -> tuple[str, str, str]:
        """Where the sums of the tile at row i go: the partial ones, how far apart their rows are, and the other arguments of a micro-kernel's tail."""
        f, kind = self.f, self.kind
        row = f.add(self.m0, i)
        c = f.at(self.cm, "%c", f.add(f.mul(row, "%rsc"), f.mul(self.column, "%csc")))
        added = f.at(self.im, "%i", f.add(f.mul(row, "%rsi"), f.mul(self.column, "%csi"))) if kind.epilogue == "add" else "null"
        p, ldp = f.at(self.acc, "%pp", f.add(f.mul(row, "%nc"), self.j)), "%nc"
        if kind.in_place and not kind.epilogue:
            p, ldp = c, "%rsc"
        elif kind.in_place:
            p, ldp = f.op(f"select i1 {self.partial_in_c}, ptr {c}, ptr {p}"), f.op(f"select i1 {self.partial_in_c}, i64 %rsc, i64 %nc")
        return p, ldp, f"i1 {self.more}, i1 {self.last}, ptr {c}, i64 %rsc, i64 %csc, ptr {added}, i64 %rsi, i64 %csi, {self.acc} %alpha, {self.acc} %beta"

    def hand_over(self) -> None:
        """After the last round, panels of C that are finished go to the map that is waiting for them (epilogue.py), some at a time."""
        f, step = self.f, BLOCK * self.nr
        done = f.add(self.j, self.nr)
        end = f.op(f"or i1 {f.compare('eq', f.rem(done, step), 0)}, {f.compare('sge', done, self.n_here)}")
        with f.when(f.both(self.last, end, f.op("icmp ne ptr %after, null"))):
            start = f.mul(f.div(self.j, step), step)
            block = f"i64 {f.add('%row', self.m0)}, i64 {self.m_here}, i64 {f.add(f.add('%col', self.n0), start)}, i64 {f.sub(f.min(done, self.n_here), start)}"
            f.do(f"call void %after(ptr %words, ptr %slots, {block})")


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
