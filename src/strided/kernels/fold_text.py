"""The text of fold kernels: what all loop shapes share (`Writer`), and the plain one.

Along: the folded dimensions lie innermost in memory; a row is swept with vector accumulators, in blocks whose results are combined in
double precision. The other shapes: fold_rows.py, where several rows are worked on at a time, and fold_across.py, where a kept dimension lies innermost.
Geometry (which dimension goes where) is fold.py's.
"""
from __future__ import annotations

from typing import NamedTuple

from . import expr as E
from .accumulate import PICKS, REDUCTIONS, Accumulator, input_types
from .loops import AHEAD, Body, load_ahead
from .lower import IR, ITEMSIZE, MEMORY, Lowering, Value, infer

BLOCK = 2048  # elements summed in the operands' own precision before the sum moves to double
SHORT = 1 << 14  # elements of a row that may be kept on the stack
NEXT = 1 << 19  # bytes of a row from which the next one is not fetched whole: it would not stay in the second-level cache


class Kind(NamedTuple):
    """What a kernel is specialised on."""

    exprs: tuple
    outs: tuple  # dtype names
    ins: tuple  # dtype names, or "f64" / "i64" for scalar parameters
    modes: tuple  # of outs, then of tensor inputs: "same", "run" or "step" along the innermost walked dimension
    constant: tuple  # likewise: whether it stays the same along the folded dimensions
    per_element: tuple  # of outs
    multi: bool  # more than one folded dimension
    pieces: bool  # rows are cut into pieces
    default: str  # the default float
    stream: str = ""  # the one per-element result is written past the caches: "short" rows, of which a copy fits on the stack, "long" ones, or "rows" (fold_rows.py)
    chunk: int = 0  # elements streamed at a time
    group: int = 1  # rows worked on together


# ---- the kernel ------------------------------------------------------------------------------------------------------------------


class Writer:
    """What both shapes share: operands, levels, the walk over kept dimensions."""

    WORDS = 9

    def __init__(self, kind: Kind):
        self.kind = kind
        self.b = b = Body()
        # Without fused multiply-adds: a difference of equal terms, as in the gradient of a row of one element, must be exactly 0.
        self.low = Lowering(b, kind.default, contract=False)
        self.n_outs = len(kind.outs)
        self.tensors = [i for i, name in enumerate(kind.ins) if name not in ("f64", "i64")]
        self.operands = self.n_outs + len(self.tensors)
        self.place = {i: self.n_outs + k for k, i in enumerate(self.tensors)}  # input -> operand
        self.dtypes = [*kind.outs, *(kind.ins[i] for i in self.tensors)]
        self.element = {i for i in self.tensors if not kind.constant[self.place[i]]}
        self._levels()
        words = [b.word(i) for i in range(self.WORDS)]
        self.rows, self.kept_dims, self.inner, self.slow_rows, self.slow_dims, self.extent, self.longest, self.length, self.rest = words
        self.steps = [b.word(self.WORDS + k) for k in range(self.operands)]
        self.kept_table = self.WORDS + self.operands
        self.slow_table = b.add(b.mul(self.kept_dims, self.operands + 1), self.kept_table)
        self.pointers = [b.slot(k) for k in range(self.n_outs)]
        self.scalars = {}
        for i, name in enumerate(kind.ins):
            if i in self.place:
                self.pointers.append(b.slot(self.n_outs + i))
            else:
                type = "double" if name == "f64" else "i64"
                self.scalars[E.param(i)] = Value(b.slot(self.n_outs + i, type), "weak float" if name == "f64" else "weak int")
        self.scalars[E.extent()] = Value(self.extent, "int64")

    def _levels(self):
        """Reductions by level, each with its accumulator."""
        known = input_types(self.kind.ins, self.kind.default)
        depth, self.levels = {}, []
        for n in E.topological(self.kind.exprs):
            level = max((depth[a] for a in n.args), default=0)
            if n.op in REDUCTIONS:
                accumulator = Accumulator(n, infer(n.args[0], known, self.kind.default))
                known[n] = accumulator.result
                while len(self.levels) <= level:
                    self.levels.append([])
                self.levels[level].append(accumulator)
                level += 1
            depth[n] = level

    def write(self) -> str:
        b = self.b
        low, high = b.share(self.rows)
        with b.walk(self.kept_table, self.kept_dims, self.operands, low, high) as (_, offsets, counters):
            bases = [b.at(p, o) for p, o in zip(self.pointers, offsets)]
            self.number = b.add(b.slot(0, "i64"), offsets[0])  # the address of the first result's row
            self.row(bases, counters)
        if self.kind.stream:
            b.fence()
        return b.text(self.low.definitions())

    def piece(self, counters):
        """(first, number) of this piece's entries along the longest folded dimension; the piece is the fastest kept counter."""
        b = self.b
        if not self.kind.pieces:
            return "0", self.longest
        first = b.mul(b.load("i64", counters), self.length)
        return first, b.min(self.length, b.sub(self.longest, first))

    def load_inputs(self, exprs, env, address, far=None):
        """Puts the elements that `exprs` need and `env` lacks into it; `address(operand)` gives their place. far: operands of which lines are fetched ahead, and how far."""
        for n in E.topological(exprs, env):
            if n.op == "param":
                k = self.place[n.data]
                if far and k in far:
                    type, (place, _) = MEMORY[self.dtypes[k]], address(k)
                    self.low.helpers[f"ahead {type}"] = load_ahead(type)
                    env[n] = self.low.decode(self.dtypes[k], self.b(f"call {type} @load_ahead_{type}(ptr {place}, i64 {far[k]})"))
                else:
                    env[n] = self.low.load(self.dtypes[k], *address(k))

    def row_constant(self, exprs, known):
        """Nodes of `exprs` that need no element of the row: `known` and what follows from it alone, arguments first."""
        found, result = set(known), []
        for n in E.topological(exprs, found):
            leaf = n.op == "param" and n.data not in self.element
            if leaf or (n.op not in REDUCTIONS and n.op not in ("param", "position") and all(a in found for a in n.args)):
                found.add(n)
                result.append(n)
        return result


class Along(Writer):
    """Folded dimensions innermost."""

    def row(self, bases, counters):
        b, low = self.b, self.low
        first, number = self.piece(counters)
        n, slow = (self.inner, b.mul(number, self.rest)) if self.kind.multi else (number, "1")
        base_position = b.mul(first, b.mul(self.rest, self.inner)) if self.kind.multi else first
        self.span = bases, n, slow, base_position
        env = dict(self.scalars)
        self.bases, self.far = bases, {}
        cached = self._cached()
        if cached is not None and self.kind.stream == "short":
            size = ITEMSIZE[self.dtypes[cached[0]]]
            self.kept_row = b.cell(f"[{SHORT * size} x i8]").name, size
        for level, accumulators in enumerate(self.levels):
            arguments = [a for acc in accumulators for a in acc.node.args]
            self._constants(arguments, env)
            last = level == len(self.levels) - 1
            costly = any(n.op in E.COSTLY for n in E.topological(arguments, env))
            self._reduce(accumulators, env, cached if last else None, last and (costly or __import__("os").environ.get("AL")) and self.kind.stream == "short")
        per_row = [(k, e) for k, e in enumerate(self.kind.exprs) if not self.kind.per_element[k]]
        self._constants([e for _, e in per_row], env)
        for k, e in per_row:
            low.store(self.dtypes[k], low.emit(e, env), bases[k])
        elements = [(k, e) for k, e in enumerate(self.kind.exprs) if self.kind.per_element[k]]
        if elements:
            self._constants([e for _, e in elements], env)
            self._elements(elements, env, cached)

    def _constants(self, exprs, env):
        """Computes what does not change along the row, ahead of the loop."""
        for n in self.row_constant(exprs, env):
            if n.op == "param":
                k = self.place[n.data]
                env[n] = self.low.load(self.dtypes[k], self.bases[k])
            else:
                self.low.emit(n, env)

    def _cached(self):
        """(output, node): a costly node of the last level that the one per-element output also needs is kept in that output meanwhile (a streamed one's
        short row on the stack; in long ones it is computed again, which costs less than writing it to memory and reading it)."""
        elements = [k for k, per in enumerate(self.kind.per_element) if per]
        if self.kind.stream == "long" or len(elements) != 1 or not self.levels or any(acc.pair for acc in self.levels[-1]):
            return None
        k = elements[0]
        shared = {n for acc in self.levels[-1] for n in E.topological((acc.node.args[0],)) if n.op in E.COSTLY}
        known = input_types(self.kind.ins, self.kind.default)
        for level in self.levels:
            known.update({acc.node: acc.result for acc in level})
        for n in reversed(E.topological((self.kind.exprs[k],), {acc.node for level in self.levels for acc in level})):
            if n in shared and infer(n, known, self.kind.default) == self.dtypes[k]:
                rest = E.topological((self.kind.exprs[k],), {n, *(acc.node for level in self.levels for acc in level)})
                if not any(m.op == "position" or (m.op == "param" and m.data in self.element) for m in rest):
                    return k, n
        return None

    def _sweep(self, per_block, body, mark=""):
        """Runs `body(i, offsets, position)` for the row's elements; `per_block` is a context around each block, or None for a row in one piece."""
        b = self.b
        bases, n, slow, base_position = self.span

        def line(offsets, first):
            if per_block is None:
                with b.loop(0, n, extra=mark) as i:
                    body(i, offsets, first)
                return
            with b.loop(0, n, BLOCK) as start:
                with per_block(start, offsets, first):
                    with b.loop(start, b.min(b.add(start, BLOCK), n), extra=mark) as i:
                        body(i, offsets, first)

        if self.kind.multi:
            with b.walk(self.slow_table, self.slow_dims, self.operands, "0", slow) as (number, offsets, _):
                line(offsets, b.add(base_position, b.mul(number, n)))
        else:
            line(None, base_position)

    def _address(self, i, offsets, access=""):
        b = self.b

        def address(k):
            base = self.bases[k] if offsets is None else b.at(self.bases[k], offsets[k])
            mode = self.kind.modes[k]
            if mode == "same":
                return base, access
            step = b(f"getelementptr {memory(self.dtypes[k])}, ptr {base}, i64 {i}") if mode == "run" else b.at(base, b.mul(i, self.steps[k]))
            return step, access

        return address

    def _inputs(self, exprs, env, i, offsets, first, access="", far=None):
        inner = dict(env)
        inner[E.position()] = Value(self.b.add(first, i), "int64")
        self.load_inputs(exprs, inner, self._address(i, offsets, access), far)
        return inner

    def _reduce(self, accumulators, env, cached, ahead=False):
        from contextlib import contextmanager

        b, low = self.b, self.low
        arguments = [a for acc in accumulators for a in acc.node.args]
        totals = [b.cell(IR[acc.total], acc.start_total) for acc in accumulators]
        blocks = [b.cell(IR[acc.block], acc.start_block) for acc in accumulators]
        found = {k: _Best(b, self.operands) for k, acc in enumerate(accumulators) if acc.op.startswith("rarg")}
        picks = {k: b.cell("i64", "0") for k, acc in enumerate(accumulators) if acc.op in PICKS}

        @contextmanager
        def per_block(start, offsets, first):
            for acc, cell in zip(accumulators, blocks):
                cell.set(acc.start_block)
            yield
            for k, (acc, cell, total) in enumerate(zip(accumulators, blocks, totals)):
                if k in picks:
                    continue
                value = cell.get()
                if k in found:
                    with b.when(acc.better(low, total.get(), value)):
                        found[k].keep(start, first, offsets)
                        total.set(value)
                else:
                    total.set(acc.enter(low, acc.total, total.get(), Value(value, acc.block)))

        access, mark = b.parallel()
        # A costly sweep leaves memory idle: the next row is fetched now, not while this one is written. So does a search at a row's end.
        ahead = ahead or bool(found)
        if ahead:
            read = {self.place[n.data] for n in E.topological(arguments, env) if n.op == "param"}
            self.far = {k: AHEAD if found else self._ahead(k) for k in read if self.kind.modes[k] == "run" and MEMORY[self.dtypes[k]] in ("float", "double", "i16")}

        def body(i, offsets, first):
            inner = self._inputs(arguments, env, i, offsets, first, access, self.far if ahead else None)
            for k, (acc, cell, total) in enumerate(zip(accumulators, blocks, totals)):
                value = low.emit(acc.node.args[0], inner)
                if k in picks:
                    where = low.convert(low.emit(acc.node.args[1], inner), "int64").text
                    value = low.convert(value, acc.total).text
                    wins = acc.better(low, total.get(), value)
                    total.set(b.select(wins, value, total.get(), IR[acc.total]))
                    picks[k].set(b.select(wins, where, picks[k].get()))
                else:
                    cell.set(acc.enter(low, acc.block, cell.get(), value))
            if cached is not None:
                k, n = cached
                low.store(self.dtypes[k], inner[n], *self._kept(k, i, offsets, access))

        self._sweep(per_block, body, mark)
        for k, (acc, total) in enumerate(zip(accumulators, totals)):
            if k in picks:
                env[acc.node] = Value(picks[k].get(), "int64")
            elif k in found:
                env[acc.node] = Value(self._search(acc, found[k], total.get(), env), "int64")
            else:
                env[acc.node] = acc.finish(low, total.get())

    def _search(self, acc, found, best, env):
        """Position of the first element of the kept block that equals `best`."""
        b, low = self.b, self.low
        start, first, offsets = found.start.get(), found.first.get(), [cell.get() for cell in found.offsets]
        n = self.span[1]
        lowest = b.cell("i32", str(BLOCK))  # half as wide as positions: twice as many at a time
        with b.loop(0, b.min(BLOCK, b.sub(n, start))) as j:
            inner = self._inputs(acc.node.args, env, b.add(start, j), offsets if self.kind.multi else None, first)
            value = low.convert(low.emit(acc.node.args[0], inner), acc.total).text
            at = b.select(acc.equals(low, best, value), b(f"trunc i64 {j} to i32"), BLOCK, "i32")
            lowest.set(b.select(b(f"icmp slt i32 {at}, {lowest.get()}"), at, lowest.get(), "i32"))
        return b.add(b.add(first, start), b(f"zext i32 {lowest.get()} to i64"))

    def _elements(self, outputs, env, cached):
        b, low = self.b, self.low
        access, mark = b.parallel()
        exprs = [e for _, e in outputs]

        def body(i, offsets, first, streamed=None):
            inner = dict(env)
            if cached is not None:
                inner[cached[1]] = low.load(self.dtypes[cached[0]], *self._kept(cached[0], i, offsets, access))
            inner = self._inputs(exprs, inner, i, offsets, first, access)
            for k, e in outputs:
                place, extra = (streamed, access) if streamed else self._address(i, offsets, access)(k)
                low.store(self.dtypes[k], low.emit(e, inner), place, extra)

        if not self.kind.stream:
            self._sweep(None, body, mark)
            return
        bases, n, _, first = self.span
        k = outputs[0][0]
        sources = [(bases[j], ITEMSIZE[self.dtypes[j]], self._ahead(j))
                   for j in range(self.n_outs, self.operands) if not __import__("os").environ.get("AL") and self.kind.modes[j] == "run" and j not in self.far]
        b.streamed(bases[k], ITEMSIZE[self.dtypes[k]], "0", n, mark, self.number, lambda i, address: body(i, None, first, address), sources, self.kind.chunk)

    def _kept(self, k, i, offsets, access):
        """Where the cached value of element i lies meanwhile."""
        if self.kind.stream:
            row, size = self.kept_row
            return self.b.at(row, self.b.mul(i, size)), access
        return self._address(i, offsets, access)(k)

    def _ahead(self, j):
        """Bytes from an element of operand j to what will be read next, the next row's."""
        b = self.b
        step = b.word(self.kept_table + 1 + j)  # along the fastest kept dimension
        near = b(f"icmp ult i64 {b.sub(step, AHEAD)}, {NEXT - AHEAD}")
        far = b.select(near, step, AHEAD)
        return b.select(b(f"icmp eq i64 {step}, 0"), 0, far)  # the same for all rows: it is there


class _Best:
    """Where the block with the best value so far begins."""

    def __init__(self, b, operands):
        self.start, self.first = b.cell("i64", "0"), b.cell("i64", "0")
        self.offsets = [b.cell("i64", "0") for _ in range(operands)]

    def keep(self, start, first, offsets):
        self.start.set(start)
        self.first.set(first)
        for cell, offset in zip(self.offsets, offsets or ()):
            cell.set(offset)


def memory(name: str) -> str:
    """IR type of the stride of one element of a dtype in memory."""
    return "i16" if name == "float16" else MEMORY[name]  # (half as a type is not everywhere)
