"""Connectionist temporal classification: both recursions over the states of an alignment, a batch entry at a time, and the gradient made of them.

Probabilities are logarithms; a state's three ways in are added up in PyTorch's order. Arguments and their checks are nn/functions/ctc.py's.
"""
from __future__ import annotations

from . import expr as E
from . import jit, native
from .loops import Body
from .lower import IR, Lowering, Value

DTYPES = ("float32", "float64")
GRAIN = 1 << 12  # states a part should have at least
MINUS_INFINITY = "0xFFF0000000000000"


def build(kind: str, dtype, steps: int, batch: int, classes: int, longest: int, blank: int, flag: bool = False) -> tuple[bytes, int]:
    """(descriptor, bytes of scratch). log_probs [T, N, C], targets int64, where each entry's begin, input and target lengths int64 [N], alphas [T, N, 2·longest + 1].

    "loss": slots loss [N], alphas, log_probs, targets, starts, input lengths, target lengths, scratch.
    "gradient" (flag: zero_infinity): slots result [T, N, C], gradient [N], loss, alphas, log_probs, targets, starts, input lengths, target lengths, scratch.
    """
    address = jit.compile_kernel(("alignments", kind, dtype.name), lambda: _Text(dtype.name).write(kind))
    states = 2 * longest + 1
    scratch = 8 * (5 * (states + 8) + classes)
    parts = max(1, min(native.parts_for(steps * batch * states, GRAIN), batch))
    words = [steps, batch, classes, states, blank, int(flag), scratch]
    return native.pack_desc(address, 8 if kind == "loss" else 10, parts, steps * batch * states > GRAIN, 0, words), parts * scratch


def _sum_of_three(a, b, c, emitted):
    """log(exp a + exp b + exp c) + emitted; −inf where all are."""
    top = E.maximum(E.maximum(a, b), c)
    top = E.where(top == E.constant(-float("inf")), 0.0, top)
    return E.log(E.exp(a - top) + E.exp(b - top) + E.exp(c - top)) + top + emitted


def _sum_of_two(a, c):
    top = E.maximum(a, c)
    return E.log(E.exp(a - top) + E.exp(c - top)) + top


class _Text:
    def __init__(self, dtype: str):
        self.dtype, self.type = dtype, IR[dtype]
        b = self.b = Body()
        self.low = Lowering(b, dtype)
        self.steps, self.batch, self.classes, self.states, self.blank, self.flag, self.size = (b.word(i) for i in range(7))

    def element(self, base, index, type=None):
        return self.b(f"getelementptr {type or self.type}, ptr {base}, i64 {index}")

    def read(self, base, index, type=None, extra=""):
        return self.b.load(type or self.type, self.element(base, index, type), extra)

    def put(self, value, base, index, type=None, extra=""):
        self.b.store(type or self.type, value, self.element(base, index, type), extra)

    def emit(self, expr, **values) -> str:
        names = list(values)
        traced = E.trace(expr, len(names))
        return self.low.emit(traced, {E.param(i): Value(values[name], self.dtype) for i, name in enumerate(names)}).text

    def write(self, kind: str) -> str:
        getattr(self, kind)()
        return self.b.text(self.low.definitions())

    def entry(self, n, targets, starts, lengths):
        """(number of states, the states' classes, whether each follows the one two before) of entry n, written to the scratch."""
        b = self.b
        length = self.read(lengths, n, "i64")
        target = self.element(targets, self.read(starts, n, "i64"), "i64")
        count = b.add(b.mul(length, 2), 1)
        with b.loop(0, count) as k:
            odd, half = b(f"and i64 {k}, 1"), b(f"lshr i64 {k}, 1")
            own, skips = b.cell("i64", self.blank), b.cell("i64", "0")
            with b.when(b(f"icmp eq i64 {odd}, 1")):
                own.set(self.read(target, half, "i64"))
                with b.when(b(f"icmp ugt i64 {k}, 2")):
                    differs = b(f"icmp ne i64 {own.get()}, {self.read(target, b.sub(half, 1), 'i64')}")
                    differs = b(f"and i1 {differs}, {b(f'icmp ne i64 {own.get()}, {self.blank}')}")
                    skips.set(b(f"zext i1 {differs} to i64"))
            self.put(own.get(), self.classes_at, k, "i64")
            self.put(skips.get(), self.skips_at, k, "i64")
        return length, count

    def rooms(self, scratch):
        """The scratch's arrays, each with room for two states on both sides."""
        b = self.b
        own = b.at(scratch, b.mul("%part", self.size))
        width = b.mul(b.add(self.states, 8), 8)
        rows = [b.at(own, b.add(b.mul(width, i), 32)) for i in range(5)]
        self.classes_at, self.skips_at, self.row, self.emitted_at, self.extra = rows
        self.per_class = b.at(own, b.mul(width, 5))

    def gather(self, x, t, n, count) -> None:
        """What each state emits at step t."""
        b = self.b
        line = self.element(x, b.mul(b.add(b.mul(t, self.batch), n), self.classes))
        with b.loop(0, count) as k:
            self.put(self.read(line, self.read(self.classes_at, k, "i64")), self.emitted_at, k)

    def advance(self, target, before, count, direction: int) -> None:
        """target [count] from the row `before`, of which states k, k ∓ 1 and k ∓ 2 lead to state k."""
        b, t = self.b, self.type
        access, around = b.parallel()
        with b.loop(0, count, extra=around) as k:
            two = b.sub(k, 2 * direction)
            allowed = b(f"icmp ne i64 {self.read(self.skips_at, k if direction > 0 else two, 'i64', access)}, 0")
            third = b.select(allowed, self.read(before, two, None, access), MINUS_INFINITY, t)
            value = self.emit(_sum_of_three, a=self.read(before, k, None, access), b=self.read(before, b.sub(k, direction), None, access), c=third, emitted=self.read(self.emitted_at, k, None, access))
            self.put(value, target, k, None, access)

    def fill(self, base, low, high, value) -> None:
        with self.b.loop(low, high) as k:
            self.put(value, base, k)

    def copy(self, source, target, count) -> None:
        access, around = self.b.parallel()
        with self.b.loop(0, count, extra=around) as k:
            self.put(self.read(source, k, None, access), target, k, None, access)

    def loss(self) -> None:
        b, t = self.b, self.type
        loss, alphas, x, targets, starts, steps, lengths, scratch = (b.slot(i) for i in range(8))
        self.rooms(scratch)
        low, high = b.share(self.batch)
        with b.loop(low, high) as n:
            length, count = self.entry(n, targets, starts, lengths)
            step = self.read(steps, n, "i64")
            self.fill(self.element(self.row, -2), 0, b.add(count, 4), MINUS_INFINITY)
            with b.loop(0, self.steps) as at:
                line = self.element(alphas, b.mul(b.add(b.mul(at, self.batch), n), self.states))
                self.gather(x, at, n, count)
                first = b(f"icmp eq i64 {at}, 0")

                def begin(line=line, count=count):
                    self.fill(line, 0, self.states, MINUS_INFINITY)
                    self.copy(self.emitted_at, line, b.min(count, 2))

                def go(line=line, count=count):
                    self.advance(line, self.row, count, 1)
                    self.fill(line, count, self.states, MINUS_INFINITY)

                b.either(first, begin, go)
                self.copy(line, self.row, count)
                with b.when(b(f"icmp eq i64 {b.add(at, 1)}, {step}")):
                    last = self.read(line, b.sub(count, 1))
                    some = b(f"icmp ne i64 {length}, 0")
                    before = b.select(some, self.read(self.row, b.sub(count, 2)), MINUS_INFINITY, t)  # in front of the row there is room
                    total = self.emit(lambda a, c: _sum_of_three(a, c, E.constant(-float("inf")), 0.0), a=last, c=before)
                    self.put(b(f"fneg {t} {total}"), loss, n)
            with b.when(b(f"icmp eq i64 {step}, 0")):
                none = b(f"icmp eq i64 {length}, 0")
                self.put(b.select(none, "0.0", "0x7FF0000000000000", t), loss, n)

    def gradient(self) -> None:
        b, t = self.b, self.type
        out, g, loss, alphas, x, targets, starts, steps, lengths, scratch = (b.slot(i) for i in range(10))
        self.rooms(scratch)
        low, high = b.share(self.batch)
        with b.loop(low, high) as n:
            length, count = self.entry(n, targets, starts, lengths)
            step, lost, factor = self.read(steps, n, "i64"), self.read(loss, n), self.read(g, n)
            self.put("0", self.skips_at, count, "i64")
            self.put("0", self.skips_at, b.add(count, 1), "i64")
            infinite = b(f"fcmp oeq {t} {lost}, 0x7FF0000000000000")
            dead = b(f"and i1 {infinite}, {b(f'icmp ne i64 {self.flag}, 0')}")
            self.fill(self.element(self.row, -2), 0, b.add(count, 4), MINUS_INFINITY)
            with b.loop(0, self.steps) as back:
                at = b.sub(b.sub(self.steps, 1), back)
                place = b.add(b.mul(at, self.batch), n)
                result = self.element(out, b.mul(place, self.classes))
                unused = b(f"or i1 {dead}, {b(f'icmp sge i64 {at}, {step}')}")

                def idle(result=result):
                    self.fill(result, 0, self.classes, "0.0")

                def active(at=at, n=n, place=place, result=result, count=count, length=length, step=step, lost=lost, factor=factor):
                    self.gather(x, at, n, count)

                    def begin():
                        some = b(f"icmp ne i64 {length}, 0")
                        tail = b.sub(count, b.select(some, 2, 1))
                        self.copy(self.element(self.emitted_at, tail), self.element(self.row, tail), b.sub(count, tail))

                    def go():
                        self.advance(self.extra, self.row, count, -1)
                        self.copy(self.extra, self.row, count)

                    b.either(b(f"icmp eq i64 {b.add(at, 1)}, {step}"), begin, go)
                    line, probabilities = self.element(alphas, b.mul(place, self.states)), self.element(x, b.mul(place, self.classes))
                    self.fill(self.per_class, 0, self.classes, MINUS_INFINITY)
                    with b.loop(0, count) as j:  # the last state first, as PyTorch adds those of a class
                        k = b.sub(b.sub(count, 1), j)
                        own = self.element(self.per_class, self.read(self.classes_at, k, "i64"))
                        before, both = b.load(t, own), self.emit(lambda a, c: a + c, a=self.read(line, k), c=self.read(self.row, k))
                        total = b.cell(t, both)
                        with b.when(b(f"fcmp une {t} {before}, {MINUS_INFINITY}")):
                            total.set(self.emit(_sum_of_two, a=before, c=both))
                        b.store(t, total.get(), own)
                    access, around = b.parallel()
                    with b.loop(0, self.classes, extra=around) as c:
                        values = {"p": self.read(probabilities, c, None, access), "o": self.read(self.per_class, c, None, access), "w": factor, "nll": lost}
                        self.put(self.emit(lambda p, o, w, nll: (E.exp(p) - E.exp(o + nll - p)) * w, **values), result, c, None, access)

                b.either(unused, idle, active)
