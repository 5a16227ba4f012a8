"""The text of fold kernels that write large results past the caches: while some rows are written, the reductions of the next are computed.

Memory is read and written all the time so, a kilobyte of each in turn; row after row, one would wait for the other. All reductions of a row are made in one sweep:
what needs a value of the whole row (the deviations of a variance, the exponentials of a softmax) is computed from one that is near and corrected at the row's end.
What lies in the second-level cache costs a tenth of what is read from memory, for the first is busy with what is written: rows that share weights are worked on
GROUP at a time. `shape_of` says which expressions are made so; fold_text.py serves the others.
"""
from __future__ import annotations

from . import expr as E
from .accumulate import REDUCTIONS, input_types, reads_elements, strong
from .fold_text import SHORT, Along, Kind, memory
from .loops import AHEAD
from .lower import IR, ITEMSIZE, Value, infer

GROUP = 2  # rows worked on together where they share weights that leave no room for two rows
FIRST = 48 << 10  # bytes of the first-level cache
NEAR = 2048  # bytes that are fetched ahead into the first-level cache, where rows have less room than a map's elements
LARGE = 2.0**60  # a sum of exponentials from which they are taken of smaller numbers


def shape_of(exprs, element) -> str | None:
    """How the reductions of `exprs` are made in one sweep: "plain", all of them at once; "moments", a sum of f and one of (f - m)², m the same for the whole row;
    "exponentials", the largest f and a sum of exp(f - the largest). None: not so. element: inputs that vary along the row."""
    found = [n for n in E.topological(exprs) if n.op in REDUCTIONS]
    if not found or any(n.op.startswith(("rarg", "rpick")) for n in found):
        return None
    if not any(m.op in REDUCTIONS for n in found for m in E.topological(n.args)):
        return "plain"
    if len(found) != 2 or found[1].op != "rsum":
        return None
    first, (g,) = found[0], found[1].args
    (f,) = first.args
    if first.op == "rsum" and g.op == "mul" and g.args[0] is g.args[1] and g.args[0].op == "sub":
        centred, m = g.args[0].args
        return "moments" if centred is f and not reads_elements(m, element) else None
    if first.op == "rmax" and g.op == "exp" and g.args[0].op == "sub" and g.args[0].args == (f, first):
        return "exponentials" if len(exprs) == 1 else None
    return None


class Rows(Along):
    """Rows that are read (`coming`) and rows that are written (`going`), `group` of each at a time; when all have been through, those are these."""

    def __init__(self, kind: Kind):
        super().__init__(kind)
        self.target = kind.per_element.index(True)
        self.chunk, self.group = kind.chunk, kind.group
        self.shape = shape_of(kind.exprs, self.element)
        self.accumulators = [acc for level in self.levels for acc in level]
        self.cached = self._cached() if self.group == 1 and self.shape != "moments" else None
        self.size = ITEMSIZE[self.dtypes[self.target]]

    def write(self) -> str:
        b = self.b
        self._variables()
        low, high = b.share(self.rows)
        stop = b.select(b(f"icmp slt i64 {low}, {high}"), b.add(high, 2), low)  # until the last rows are written
        with b.walk(self.kept_table, self.kept_dims, self.operands, low, stop) as (row, offsets, _):
            inside = b(f"icmp slt i64 {row}, {high}")
            with b.when(inside):
                at = b.add(b.mul(self.current.get(), self.group), self.coming.get())
                for array, p, o in zip(self.base_arrays, self.pointers, offsets):
                    b.store("ptr", b.at(p, o), self._item(array, "ptr", at))
                b.store("i64", b.add(b.slot(self.target, "i64"), offsets[self.target]), self._item(self.numbers, "i64", at))
                self.coming.add("1")
            full = b(f"icmp eq i64 {self.coming.get()}, {self.group}")
            with b.when(b.select(inside, full, "true", "i1")):
                self._step()
                self.going.set(self.coming.get())
                self.coming.set("0")
                self.current.set(b(f"xor i64 {self.current.get()}, 1"))
        b.fence()
        return b.text(self.low.definitions())

    def _variables(self):
        b, group = self.b, self.group
        self.base_arrays = [b.cell(f"[{2 * group} x ptr]").name for _ in range(self.operands)]
        self.numbers = b.cell(f"[{2 * group} x i64]").name
        self.coming, self.going, self.current = b.cell("i64", "0"), b.cell("i64", "0"), b.cell("i64", "0")  # rows that are read, that are written; where the former stand
        self.totals = [b.cell(f"[{group} x {IR[acc.total]}]").name for acc in self.accumulators]
        self.blocks = [b.cell(IR[acc.block]) for acc in self.accumulators]
        self.buffer = b.cell(f"[{self.chunk * self.size} x i8]").name
        self.hoisted = {}  # node -> (array, type): what the rows that are written need of the whole row
        first = self.accumulators[0]
        self.real = IR[first.block]
        self.near = b.cell(f"[{group} x {self.real}]").name
        if self.shape == "exponentials":
            chunks = SHORT // self.chunk + 2
            self.highest = b.cell("i32" if self.real == "float" else "i64")
            self.tops, self.factors, self.sums = (b.cell(f"[{chunks} x {t}]").name for t in (self.real, self.real, "double"))
        if self.cached is not None:
            self.kept_row = b.cell(f"[{SHORT * self.size} x i8]").name, self.size

    def _item(self, array, type, index):
        return self.b(f"getelementptr {type}, ptr {array}, i64 {index}")

    def _step(self):
        b, n = self.b, self.longest
        other = b(f"xor i64 {self.current.get()}, 1")
        self.read_at, self.write_at = b.mul(self.current.get(), self.group), b.mul(other, self.group)
        whole = b.mul(b.div(n, self.chunk), self.chunk)
        for acc, array in zip(self.accumulators, self.totals):
            for g in range(self.group):
                b.store(IR[acc.total], acc.start_total, self._item(array, IR[acc.total], g))
        with b.loop(0, whole, self.chunk) as at:
            self._rows(self.going, lambda g: self._write(g, at))
            self._rows(self.coming, lambda g: self._read(g, at))
        with b.when(b(f"icmp slt i64 {whole}, {n}")):
            self._rows(self.going, lambda g: self._elements_of(g, whole, n, False))
            self._rows(self.coming, lambda g: self._reduce_some(g, whole, b.sub(n, whole)))
        self._rows(self.coming, self._finish)

    def _rows(self, count, body):
        b = self.b
        with b.loop(0, count.get(), extra=b.plain()) as g:
            body(g)

    def _stand(self, g, where):
        """Turns to row g of those that are read or written."""
        at = self.b.add(where, g)
        self.bases = [self.b.load("ptr", self._item(array, "ptr", at)) for array in self.base_arrays]
        return at

    # ---- rows that are written ----

    def _write(self, g, at):
        """One chunk of a row, past the caches where it begins at a whole line."""
        b = self.b
        index = self._stand(g, self.write_at)
        number = b.load("i64", self._item(self.numbers, "i64", index))
        lines = b(f"icmp eq i64 {b(f'and i64 {number}, 63')}, 0")
        b.either(lines, lambda: self._elements_of(g, at, self.chunk, True), lambda: self._elements_of(g, at, b.add(at, self.chunk), False))

    def _elements_of(self, g, start, end, streamed):
        """Elements start…end of the row, or `end` of them through the buffer."""
        b, low, k = self.b, self.low, self.target
        self._stand(g, self.write_at)
        expr, env = self.kind.exprs[k], dict(self.scalars)
        for n, (array, type) in self._needed().items():
            env[n] = low.load(type, self._item(array, memory(type), g))
        factor = None
        if self.shape == "exponentials" and self.cached is not None:
            factor = Value(b.load(self.real, self._item(self.factors, self.real, b.div(start, self.chunk))), self.accumulators[0].block)
        access, mark = b.parallel()
        with b.loop(0 if streamed else start, end, extra=mark) as j:
            i = b.add(start, j) if streamed else j
            inner = dict(env)
            if self.cached is not None:
                value = low.load(self.dtypes[k], *self._kept(k, i, None, access))
                inner[self.cached[1]] = value if factor is None else low.apply("mul", value, factor)
            inner = self._inputs([expr], inner, i, None, "0", access)
            place = b.at(self.buffer, b.mul(j, self.size)) if streamed else b.at(self.bases[k], b.mul(i, self.size))
            low.store(self.dtypes[k], low.emit(expr, inner), place, access)
        if streamed:
            b.past(self.buffer, b.at(self.bases[k], b.mul(start, self.size)), self.chunk * self.size)

    def _needed(self):
        """Nodes that are the same for the whole row and that its elements need: each has an array, an entry a row."""
        if not self.hoisted:
            expr = self.kind.exprs[self.target]
            known = {**self.scalars, **{acc.node: None for acc in self.accumulators}}
            constant = [*(acc.node for acc in self.accumulators), *self.row_constant([expr], known)]
            inside = {*constant, *self.scalars}
            stop = {self.cached[1]} if self.cached is not None else set()
            used = {a for n in E.topological([expr], inside | stop) if n not in inside for a in n.args} | {expr}
            types = {**{n: v.type for n, v in self.scalars.items()}, **{acc.node: acc.result for acc in self.accumulators}}
            types.update({n: t for n, t in input_types(self.kind.ins, self.kind.default).items() if n not in types})
            for n in constant:
                if n in used and n.op != "constant":
                    type = strong(infer(n, types, self.kind.default))
                    self.hoisted[n] = self.b.cell(f"[{self.group} x {memory(type)}]").name, type
        return self.hoisted

    # ---- rows that are read ----

    def _read(self, g, at):
        """One chunk's worth of a row's reductions."""
        b = self.b
        self._stand(g, self.read_at)
        if self.shape != "plain":
            with b.when(b(f"icmp eq i64 {at}, 0")):
                self._look(g)
        self._reduce_some(g, at, self.chunk)
        self._stand(g, self.read_at)
        self._fetch(at, NEAR, near=True)
        self._fetch(at, AHEAD)

    def _sweep_over(self, at, count, exprs, env, body):
        """`body(i, values)` for `count` elements from `at` on."""
        b = self.b
        access, mark = b.parallel()
        with b.loop(0, count, extra=mark) as j:
            i = b.add(at, j)
            body(i, self._inputs(exprs, env, i, None, "0", access), access)

    def _enter_total(self, acc, array, g, value):
        place = self._item(array, IR[acc.total], g)
        self.b.store(IR[acc.total], acc.enter(self.low, acc.total, self.b.load(IR[acc.total], place), value), place)

    def _look(self, g):
        """The mean of a row's first elements, near enough to take squares of what is left, or the largest, near enough for exponentials to be of a good size."""
        b, low, acc, block = self.b, self.low, self.accumulators[0], self.blocks[0]
        if self.shape == "exponentials":
            b.store(self.real, self._largest("0", self.chunk).text, self._item(self.near, self.real, g))
            return
        block.set(acc.start_block)
        arguments, env = acc.node.args, dict(self.scalars)
        self._constants(arguments, env)
        self._sweep_over("0", self.chunk, arguments, env, lambda i, inner, _: block.set(acc.enter(low, acc.block, block.get(), low.emit(arguments[0], inner))))
        mean = low.apply("mul", Value(block.get(), acc.block), low.constant(1 / self.chunk, acc.block))
        sound = low.apply("isfinite", mean)
        b.store(self.real, low.select(sound, mean, low.constant(0.0, acc.block)).text, self._item(self.near, self.real, g))

    def _largest(self, at, count):
        """The largest of `count` elements from `at` on, found as integers in the same order, which vectors compare faster. NaN may be passed over: the sum of
        exponentials is NaN then, and all that is made of it."""
        b, low, acc = self.b, self.low, self.accumulators[0]
        bits, sign = ("i32", 31) if self.real == "float" else ("i64", 63)
        arguments, env = acc.node.args, dict(self.scalars)
        self._constants(arguments, env)
        b.declare(f"declare {bits} @llvm.smax.{bits}({bits}, {bits})")

        def turned(text):  # and back: negative numbers' order is the other way round
            negative = b(f"ashr {bits} {text}, {sign}")
            return b(f"xor {bits} {text}, {b(f'and {bits} {negative}, {(1 << sign) - 1}')}")

        self.highest.set(str((0x807FFFFF if sign == 31 else 0x800FFFFFFFFFFFFF) - (2 << sign)))  # minus infinity

        def body(i, inner, access):
            value = b(f"bitcast {self.real} {low.convert(low.emit(arguments[0], inner), acc.block).text} to {bits}")
            self.highest.set(b(f"call {bits} @llvm.smax.{bits}({bits} {self.highest.get()}, {bits} {turned(value)})"))

        self._sweep_over(at, count, arguments, env, body)
        return Value(b(f"bitcast {bits} {turned(self.highest.get())} to {self.real}"), acc.block)

    def _reduce_some(self, g, at, count):
        """What `count` elements from `at` on add to the row's reductions."""
        b, low = self.b, self.low
        self._stand(g, self.read_at)
        env = dict(self.scalars)
        for acc, block in zip(self.accumulators, self.blocks):
            block.set(acc.start_block)
        first, block = self.accumulators[0], self.blocks[0]
        if self.shape == "plain":
            arguments = [a for acc in self.accumulators for a in acc.node.args]
            self._constants(arguments, env)

            def body(i, inner, access):
                for acc, cell in zip(self.accumulators, self.blocks):
                    cell.set(acc.enter(low, acc.block, cell.get(), low.emit(acc.node.args[0], inner)))
                if self.cached is not None:
                    low.store(self.dtypes[self.cached[0]], inner[self.cached[1]], *self._kept(self.cached[0], i, None, access))

            self._sweep_over(at, count, arguments, env, body)
            for acc, cell, array in zip(self.accumulators, self.blocks, self.totals):
                self._enter_total(acc, array, g, Value(cell.get(), acc.block))
            return
        (f,), other, second = first.node.args, self.blocks[1], self.accumulators[1]
        self._constants([f], env)
        if self.shape == "moments":
            near = Value(b.load(self.real, self._item(self.near, self.real, g)), first.block)

            def body(i, inner, access):
                left = low.apply("sub", low.convert(low.emit(f, inner), first.block), near)
                block.set(first.enter(low, first.block, block.get(), left))
                other.set(second.enter(low, second.block, other.get(), low.apply("mul", left, left)))

            self._sweep_over(at, count, [f], env, body)
            self._enter_total(first, self.totals[0], g, Value(block.get(), first.block))
            self._enter_total(second, self.totals[1], g, Value(other.get(), second.block))
            return
        self._exponentials(g, at, count, env)

    def _exponentials(self, g, at, count, env):
        """A chunk's exponentials of differences from `near`, which is one of the row's elements; from the chunk's own largest where they would be too large."""
        b, low = self.b, self.low
        first, second = self.accumulators
        (node,), block, chunk = second.node.args, self.blocks[1], b.div(at, self.chunk)
        near, top = self._item(self.near, self.real, g), self._item(self.tops, self.real, chunk)

        def add_up(base):
            block.set(second.start_block)
            inside = {**env, first.node: base}

            def body(i, inner, access):
                block.set(second.enter(low, second.block, block.get(), low.emit(node, inner)))
                if self.cached is not None:
                    low.store(self.dtypes[self.cached[0]], inner[self.cached[1]], *self._kept(self.cached[0], i, None, access))

            self._sweep_over(at, count, [node], inside, body)

        def again():
            largest, lowest = self._largest(at, count), low.constant(float("-inf"), first.block)
            nothing = low.apply("eq", largest, lowest)
            add_up(low.select(nothing, low.constant(0.0, first.block), largest))
            b.store(self.real, largest.text, top)
            b.store(self.real, low.select(nothing, usual, largest).text, near)

        usual = Value(b.load(self.real, near), first.block)
        add_up(usual)
        fits = low.apply("le", Value(block.get(), second.block), low.constant(LARGE, second.block))
        b.either(fits.text, lambda: b.store(self.real, usual.text, top), again)
        b.store("double", low.convert(Value(block.get(), second.block), "float64").text, self._item(self.sums, "double", chunk))

    def _finish(self, g):
        """The values of a row whose elements have all been seen, for its other results and for when it is written."""
        b, low = self.b, self.low
        self._stand(g, self.read_at)
        env, totals = dict(self.scalars), [Value(b.load(IR[acc.total], self._item(array, IR[acc.total], g)), acc.total) for acc, array in zip(self.accumulators, self.totals)]
        if self.shape == "moments":
            self._finish_moments(g, env, totals)
        elif self.shape == "exponentials":
            self._finish_exponentials(env)
        else:
            for acc, total in zip(self.accumulators, totals):
                env[acc.node] = acc.finish(low, total.text)
        for k, e in enumerate(self.kind.exprs):
            if k != self.target:
                self._constants([e], env)
                low.store(self.dtypes[k], low.emit(e, env), self.bases[k])
        needed = self._needed()
        self._constants(list(needed), env)
        for n, (array, type) in needed.items():
            low.store(type, low.emit(n, env), self._item(array, memory(type), g))

    def _finish_moments(self, g, env, totals):
        """From sums of d = f - near and of d²: sum of (f - m)² = sum of d² - 2(m - near)·(sum of d) + n·(m - near)²."""
        b, low = self.b, self.low
        first, second = self.accumulators
        near = low.convert(Value(b.load(self.real, self._item(self.near, self.real, g)), first.block), "float64")
        n = low.convert(Value(self.longest, "int64"), "float64")
        env[first.node] = first.finish(low, low.apply("add", low.apply("mul", near, n), totals[0]).text)
        m = second.node.args[0].args[0].args[1]
        self._constants([m], env)
        off = low.apply("sub", low.convert(low.emit(m, env), "float64"), near)
        twice = low.apply("mul", low.apply("add", off, off), totals[0])
        squares = low.apply("add", low.apply("sub", totals[1], twice), low.apply("mul", n, low.apply("mul", off, off)))
        zero = low.constant(0.0, "float64")
        env[second.node] = second.finish(low, low.select(low.apply("lt", squares, zero), zero, squares).text)

    def _finish_exponentials(self, env):
        """From each chunk's largest and its sum of exponentials below that: the row's, and what each chunk's exponentials are to be multiplied by."""
        b, low = self.b, self.low
        first, second = self.accumulators
        chunks = b.div(b.sub(b.add(self.longest, self.chunk), 1), self.chunk)
        top, total = b.cell(IR[first.block], first.start_block), b.cell("double", "0.0")
        with b.loop(0, chunks) as c:
            top.set(first.enter(low, first.block, top.get(), Value(b.load(self.real, self._item(self.tops, self.real, c)), first.block)))
        largest = Value(top.get(), first.block)
        access, mark = b.parallel()
        with b.loop(0, chunks, extra=mark) as c:
            below = low.apply("sub", Value(b.load(self.real, self._item(self.tops, self.real, c), access), first.block), largest)
            b.store(self.real, low.apply("exp", below).text, self._item(self.factors, self.real, c), access)
        with b.loop(0, chunks) as c:
            factor = low.convert(Value(b.load(self.real, self._item(self.factors, self.real, c)), first.block), "float64")
            part = low.apply("mul", factor, Value(b.load("double", self._item(self.sums, "double", c)), "float64"))
            total.set(b(f"fadd double {total.get()}, {part.text}"))
        env[first.node] = first.finish(low, largest.text)
        env[second.node] = second.finish(low, total.get())

    # ---- fetching ----

    def _fetch(self, at, distance, near=False):
        """Asks for what a row's reductions will need `distance` bytes further on; behind its end, for those of the row that takes its place."""
        b = self.b
        arguments = [a for acc in self.accumulators for a in acc.node.args]
        for k in sorted({self.place[n.data] for n in E.topological(arguments) if n.op == "param" and n.data in self.place}):
            if self.kind.modes[k] != "run":
                continue
            size, step = ITEMSIZE[self.dtypes[k]], b.mul(b.word(self.kept_table + 1 + k), self.group)
            place, row = b.add(b.mul(at, size), distance), b.mul(self.longest, size)
            ends = b.select(b(f"icmp sge i64 {place}, {row}"), b.sub(step, row), 0)
            with b.when(b(f"icmp ne i64 {step}, 0")):  # the same for all rows: it is there
                b.fetch(b.at(self.bases[k], b.add(place, ends)), self.chunk * size, near)
