"""The text of fold kernels where a kept dimension lies innermost in memory: rows of up to COLUMNS of its elements are accumulated into arrays on the stack."""
from __future__ import annotations

from . import expr as E
from .accumulate import PICKS, strong
from .fold_text import Writer, memory
from .lower import IR, Value

COLUMNS = 512  # elements of the kept dimension accumulated at a time


class Across(Writer):
    """A kept dimension innermost: COLUMNS of its elements at a time."""

    def row(self, bases, counters):
        b = self.b
        first, number = self.piece(counters)
        slow = b.mul(number, self.rest)
        base_position = b.mul(first, self.rest)
        # The column block is the fastest kept counter, behind the piece if there is one.
        block = b.load("i64", b(f"getelementptr i64, ptr {counters}, i64 {int(self.kind.pieces)}"))
        self.columns = b.min(b.sub(self.inner, b.mul(block, COLUMNS)), COLUMNS)
        self.bases, self.slow, self.base_position = bases, slow, base_position
        stored = {}  # node -> (array, type): values kept a column
        for accumulators in self.levels:
            self._hoist([a for acc in accumulators for a in acc.node.args], stored)
            self._reduce(accumulators, stored)
        per_row = [(k, e) for k, e in enumerate(self.kind.exprs) if not self.kind.per_element[k]]
        if per_row:
            self._loop(per_row, stored, None, "0")
        elements = [(k, e) for k, e in enumerate(self.kind.exprs) if self.kind.per_element[k]]
        if elements:
            self._hoist([e for _, e in elements], stored)
            with b.walk(self.slow_table, self.slow_dims, self.operands, "0", slow) as (number, offsets, _):
                self._loop(elements, stored, offsets, b.add(base_position, number))

    def _loop(self, outputs, stored, offsets, position):
        """One row of columns of the outputs."""
        b, low = self.b, self.low
        exprs = [e for _, e in outputs]
        access, mark = b.parallel()
        env, addresses = self._before(exprs, offsets, position)
        outs = {k: addresses(k) for k, _ in outputs}
        with b.loop(0, self.columns, extra=mark) as c:
            inner = self._column(exprs, env, stored, c, addresses, access)
            for k, e in outputs:
                low.store(self.dtypes[k], low.emit(e, inner), self._place(outs[k], k, c), access)

    def _before(self, exprs, offsets, position):
        """Values that do not change from column to column, and the operands' addresses in this row."""
        b = self.b

        def address(k):
            return self.bases[k] if offsets is None else b.at(self.bases[k], offsets[k])

        env = dict(self.scalars)
        env[E.position()] = Value(position, "int64")
        for n in E.topological(exprs, env):
            if n.op == "param" and self.kind.modes[self.place[n.data]] == "same":
                k = self.place[n.data]
                env[n] = self.low.load(self.dtypes[k], address(k))
        return env, address

    def _column(self, exprs, env, stored, c, address, access=""):
        inner = dict(env)
        for n, (array, type) in stored.items():
            if n not in inner:
                inner[n] = self.low.load(type, self._slot(array, type, c), access)
        self.load_inputs(exprs, inner, lambda k: (self._place(address(k), k, c), access))
        return inner

    def _place(self, base, k, c):
        b, mode = self.b, self.kind.modes[k]
        if mode == "same":
            return base
        return b(f"getelementptr {memory(self.dtypes[k])}, ptr {base}, i64 {c}") if mode == "run" else b.at(base, b.mul(c, self.steps[k]))

    def _slot(self, array, type, c):
        return self.b(f"getelementptr {memory(type)}, ptr {array}, i64 {c}")

    def _array(self, type):
        return self.b.cell(f"[{COLUMNS} x {memory(type)}]").name

    def _hoist(self, exprs, stored):
        """Stores, a column, what does not change along the folded dimensions and costs something to compute."""
        b, low = self.b, self.low
        known = {**self.scalars, **stored}
        constant = self.row_constant(exprs, known)
        inside = set(constant) | set(known)
        used = {a for n in E.topological(exprs, stored) if n not in inside for a in n.args} | set(exprs)
        wanted = [n for n in constant if n in used and n.op not in ("param", "constant")]
        if not wanted:
            return
        env, address = self._before(wanted, None, "0")
        new = {}
        with b.loop(0, self.columns) as c:
            inner = self._column(wanted, env, stored, c, address)
            for n in wanted:
                value = low.emit(n, inner)
                type = strong(value.type)
                if n not in new:
                    new[n] = self._array(type), type
                low.store(type, value, self._slot(new[n][0], type, c))
        stored.update(new)

    def _reduce(self, accumulators, stored):
        b, low = self.b, self.low
        arguments = [a for acc in accumulators for a in acc.node.args]
        blocks = [self._array(acc.block) for acc in accumulators]
        totals = [block if acc.block == acc.total else self._array(acc.total) for acc, block in zip(accumulators, blocks)]
        indices = [self._array("int64") if acc.pair else None for acc in accumulators]
        with b.loop(0, self.columns) as c:
            for acc, block, total, index in zip(accumulators, blocks, totals, indices):
                b.store(IR[acc.block], acc.start_block, self._slot(block, acc.block, c))
                if total != block:
                    b.store(IR[acc.total], acc.start_total, self._slot(total, acc.total, c))
                if index:
                    b.store("i64", "0", self._slot(index, "int64", c))
        # A long column is summed 64 elements at a time, the pieces in double precision.
        pending = [(acc, block, total) for acc, block, total in zip(accumulators, blocks, totals) if block != total]
        with b.walk(self.slow_table, self.slow_dims, self.operands, "0", self.slow) as (number, offsets, _):
            position = b.add(self.base_position, number)
            env, address = self._before(arguments, offsets, position)
            with b.loop(0, self.columns) as c:
                inner = self._column(arguments, env, stored, c, address)
                for acc, block, index in zip(accumulators, blocks, indices):
                    self._enter(acc, block, index, inner, c, position)
            if pending:
                with b.when(b(f"icmp eq i64 {b(f'and i64 {number}, 63')}, 63")):
                    self._flush(pending)
        self._flush(pending)
        new = {}
        with b.loop(0, self.columns) as c:
            for acc, total, index in zip(accumulators, totals, indices):
                if index:
                    new[acc.node] = index, "int64"
                    continue
                slot = self._slot(total, acc.total, c)
                value = acc.finish(low, b.load(IR[acc.total], slot))
                if acc.node not in new:
                    new[acc.node] = self._array(acc.result), acc.result
                low.store(acc.result, value, self._slot(new[acc.node][0], acc.result, c))
        stored.update(new)

    def _enter(self, acc, block, index, inner, c, position):
        b, low = self.b, self.low
        value = low.emit(acc.node.args[0], inner)
        slot = self._slot(block, acc.block, c)
        old = b.load(IR[acc.block], slot)
        if index is None:
            b.store(IR[acc.block], acc.enter(low, acc.block, old, value), slot)
            return
        new = low.convert(value, acc.total).text
        where = low.convert(low.emit(acc.node.args[1], inner), "int64").text if acc.op in PICKS else position
        wins = acc.better(low, old, new)
        b.store(IR[acc.block], b.select(wins, new, old, IR[acc.block]), slot)
        place = self._slot(index, "int64", c)
        b.store("i64", b.select(wins, where, b.load("i64", place)), place)

    def _flush(self, pending):
        b, low = self.b, self.low
        if not pending:
            return
        with b.loop(0, self.columns) as c:
            for acc, block, total in pending:
                part, whole = self._slot(block, acc.block, c), self._slot(total, acc.total, c)
                value = Value(b.load(IR[acc.block], part), acc.block)
                b.store(IR[acc.total], acc.enter(low, acc.total, b.load(IR[acc.total], whole), value), whole)
                b.store(IR[acc.block], acc.start_block, part)
