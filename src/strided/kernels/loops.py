"""Loops, branches and strided walks as IR text: the small emitter that the fold and index templates are written with.

Holds the shape of control flow only, no arithmetic of tensors. Local variables are stack cells, which LLVM's first pass turns into
registers, so templates never write a phi.
"""
from __future__ import annotations

from contextlib import contextmanager

from . import jit

HEADER = 8  # words of a descriptor that belong to the launcher
MAX_DIMS = 64
CHUNK = 1024  # bytes computed before they are streamed out: lines wait for each other least where as many are read, then as many written
AHEAD = 8192  # bytes that inputs are fetched ahead into the second-level cache
NEAR = 3072  # bytes that they are fetched ahead into the first: what is written keeps loads waiting, a computation should find its elements there


class Cell:
    """A local variable of the kernel."""

    def __init__(self, body: Body, type: str, name: str):
        self.body, self.type, self.name = body, type, name

    def get(self) -> str:
        return self.body(f"load {self.type}, ptr {self.name}")

    def set(self, value: str) -> None:
        self.body.do(f"store {self.type} {value}, ptr {self.name}")

    def add(self, value: str) -> None:
        self.set(self.body(f"add {self.type} {self.get()}, {value}"))


class Body:
    """The text of one kernel while it is being written. `body("add i64 %a, %b")` appends an instruction and returns its name."""

    def __init__(self):
        self.entry: list[str] = []  # stack cells, before everything else
        self.lines: list[str] = []
        self.tail: list[str] = []  # metadata
        self.declared: dict[str, None] = {}
        self.count = 0
        self.groups = 0

    def name(self, stem: str = "t") -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def __call__(self, text: str) -> str:
        result = f"%{self.name()}"
        self.lines.append(f"  {result} = {text}")
        return result

    def do(self, text: str) -> None:
        self.lines.append("  " + text)

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def declare(self, text: str) -> None:
        self.declared[text] = None

    # ---- the two arguments ----

    def word(self, index: int | str) -> str:
        """Word `index` of the kernel's own part of the descriptor."""
        place = index + HEADER if isinstance(index, int) else self.add(index, HEADER)
        return self.load("i64", self(f"getelementptr i64, ptr %desc, i64 {place}"))

    def slot(self, index: int, type: str = "ptr") -> str:
        """Slot `index` of the call: an address, or a scalar parameter."""
        return self.load(type, self(f"getelementptr i64, ptr %slots, i64 {index}"))

    def load(self, type: str, address: str, extra: str = "") -> str:
        return self(f"load {type}, ptr {address}{extra}")

    def store(self, type: str, value: str, address: str, extra: str = "") -> None:
        self.do(f"store {type} {value}, ptr {address}{extra}")

    def at(self, base: str, offset: str) -> str:
        """Address `offset` bytes behind `base`."""
        return self(f"getelementptr i8, ptr {base}, i64 {offset}")

    def mul(self, a, b) -> str:
        return self(f"mul i64 {a}, {b}")

    def add(self, a, b) -> str:
        return self(f"add i64 {a}, {b}")

    def sub(self, a, b) -> str:
        return self(f"sub i64 {a}, {b}")

    def min(self, a, b) -> str:
        return self.select(self(f"icmp slt i64 {a}, {b}"), a, b)

    def select(self, condition, a, b, type: str = "i64") -> str:
        return self(f"select i1 {condition}, {type} {a}, {type} {b}")

    def div(self, a, b) -> str:
        return self(f"udiv i64 {a}, {b}")

    # ---- variables and control flow ----

    def cell(self, type: str = "i64", value: str | None = None) -> Cell:
        name = f"%{self.name('cell')}"
        self.entry.append(f"  {name} = alloca {type}, align 64" if type.startswith("[") else f"  {name} = alloca {type}")
        cell = Cell(self, type, name)
        if value is not None:
            cell.set(value)
        return cell

    @contextmanager
    def loop(self, start, stop, step=1, extra: str = ""):
        """`for i in range(start, stop, step)`; `extra` is metadata for the loop's branch (see `parallel`)."""
        i = self.cell("i64", str(start))
        head, body, done = self.name("head"), self.name("body"), self.name("done")
        self.do(f"br label %{head}")
        self.label(head)
        value = i.get()
        self.do(f"br i1 {self(f'icmp slt i64 {value}, {stop}')}, label %{body}, label %{done}")
        self.label(body)
        yield value
        i.set(self(f"add nuw nsw i64 {value}, {step}"))
        self.do(f"br label %{head}{extra}")
        self.label(done)

    @contextmanager
    def loop_while(self, extra: str = ""):
        """`while True`: the block is given a function that leaves the loop when its condition is false."""
        head, done = self.name("head"), self.name("done")
        self.do(f"br label %{head}")
        self.label(head)

        def unless(condition):
            go = self.name("go")
            self.do(f"br i1 {condition}, label %{go}, label %{done}")
            self.label(go)

        yield unless
        self.do(f"br label %{head}{extra}")
        self.label(done)

    @contextmanager
    def when(self, condition: str):
        yes, done = self.name("yes"), self.name("done")
        self.do(f"br i1 {condition}, label %{yes}, label %{done}")
        self.label(yes)
        yield
        self.do(f"br label %{done}")
        self.label(done)

    def either(self, condition: str, yes, no) -> None:
        """Runs the Python functions `yes` and `no` to write the two branches."""
        a, b, done = self.name("yes"), self.name("no"), self.name("done")
        self.do(f"br i1 {condition}, label %{a}, label %{b}")
        for label, write in ((a, yes), (b, no)):
            self.label(label)
            write()
            self.do(f"br label %{done}")
        self.label(done)

    def parallel(self) -> tuple[str, str]:
        """(metadata for accesses, metadata for the loop): the loop's iterations touch different elements, so no overlap checks are needed."""
        n = 10 * self.groups
        self.groups += 1
        self.tail += [f"!{n} = distinct !{{}}", f'!{n + 1} = !{{!"llvm.loop.parallel_accesses", !{n}}}', f"!{n + 2} = distinct !{{!{n + 2}, !{n + 1}}}"]
        return f", !llvm.access.group !{n}", f", !llvm.loop !{n + 2}"

    def plain(self) -> str:
        """Metadata for a short loop: neither unrolled nor vectorised, which would cost the compiler more than it could ever save."""
        n = 10 * self.groups
        self.groups += 1
        self.tail += [f"!{n} = distinct !{{!{n}, !{n + 1}, !{n + 2}}}", f'!{n + 1} = !{{!"llvm.loop.unroll.disable"}}',
                      f'!{n + 2} = !{{!"llvm.loop.vectorize.enable", i1 false}}']  # fmt: skip
        return f", !llvm.loop !{n}"

    def share(self, items: str, granule: str | int = 1) -> tuple[str, str]:
        """This part's range of `items`, cut only at multiples of `granule`."""
        units = items if granule == 1 else self.div(items, granule)
        low = self.div(self.mul(units, "%part"), "%parts")
        high = self.div(self.mul(units, self.add("%part", 1)), "%parts")
        if granule == 1:
            return low, high
        return self.mul(low, granule), self.mul(high, granule)

    @contextmanager
    def walk(self, table: int | str, dims: str, operands: int, low: str, high: str):
        """Rows low…high of a strided space, last dimension fastest: yields (row, byte offsets of the operands, counters).

        The descriptor holds at word `table`, for each dimension from the fastest to the slowest, its size and the operands' byte strides.
        """
        width = operands + 1
        counters = self.cell(f"[{MAX_DIMS} x i64]").name
        offsets = [self.cell("i64", "0") for _ in range(operands)]

        def entry(d):
            return self.add(self.mul(d, width), table)

        rest = self.cell("i64", low)
        short = self.plain()
        with self.loop(0, dims, extra=short) as d:
            e = entry(d)
            size, value = self.word(e), rest.get()
            quotient = self.div(value, self.select(self(f"icmp eq i64 {size}, 0"), 1, size))  # an empty space is entered, not walked
            at = self.sub(value, self.mul(quotient, size))
            rest.set(quotient)
            self.store("i64", at, self(f"getelementptr i64, ptr {counters}, i64 {d}"))
            for k, offset in enumerate(offsets):
                offset.add(self.mul(at, self.word(self.add(e, k + 1))))
        with self.loop(low, high) as row:
            yield row, [offset.get() for offset in offsets], counters
            d = self.cell("i64", "0")
            with self.loop_while(self.plain()) as unless:
                at = d.get()
                unless(self(f"icmp slt i64 {at}, {dims}"))
                e = entry(at)
                size = self.word(e)
                place = self(f"getelementptr i64, ptr {counters}, i64 {at}")
                value = self.add(self.load("i64", place), 1)
                self.store("i64", value, place)
                strides = [self.word(self.add(e, k + 1)) for k in range(operands)]
                for offset, stride in zip(offsets, strides):
                    offset.add(stride)
                unless(self(f"icmp sge i64 {value}, {size}"))
                self.store("i64", "0", place)
                for offset, stride in zip(offsets, strides):
                    offset.set(self.sub(offset.get(), self.mul(size, stride)))
                d.add("1")

    def streamed(self, base: str, size: int, low: str, high: str, mark: str, number: str, element, sources=(), chunk: int = CHUNK // 4) -> None:
        """Elements low…high of `size` bytes, `chunk` at a time into a buffer that stays in cache and from there past the caches to `base`, whose address is `number`
        as an integer; what is less than a chunk, before the first whole line, or not at a multiple of its size, is stored as ever.

        `element(i, address)` writes element i. Lines that are written need not be read first, and nobody would find so large a result in cache.
        sources: (address of element 0, bytes an element, bytes ahead) of inputs whose lines are fetched that far ahead. `fence` is to follow at the kernel's end.
        """
        buffer = self.cell(f"[{chunk * size} x i8]").name
        begin = self.sub(0, self.add(number, self.mul(low, size)))  # what is missing to a whole line, in its lowest bits
        first = self.min(self.add(low, self.div(self(f"and i64 {begin}, 63"), size)), high)
        first = self.select(self(f"icmp eq i64 {self(f'and i64 {begin}, {size - 1}')}, 0"), first, high)
        last = self.sub(high, self(f"and i64 {self.sub(high, first)}, {chunk - 1}"))
        with self.loop(first, last, chunk) as start:
            with self.loop(0, chunk, extra=mark) as i:  # a length known to the compiler: no remainder to think of
                element(self.add(start, i), self.at(buffer, self.mul(i, size)))
            places = [(self.at(source, self.mul(start, width)), chunk * width, ahead) for source, width, ahead in sources]
            for place, span, _ in places:
                self.fetch(self.at(place, str(NEAR)), span, near=True)
            self.past(buffer, self.at(base, self.mul(start, size)), chunk * size)
            for place, span, ahead in places:
                self.fetch(self.at(place, ahead), span)
        with self.loop(0, 2) as end:  # both ends by the same code
            front = self(f"icmp eq i64 {end}, 0")
            with self.loop(self.select(front, low, last), self.select(front, first, high), extra=mark) as i:
                element(i, self.at(base, self.mul(i, size)))

    def past(self, buffer: str, to: str, nbytes: int) -> None:
        """Whole lines from `buffer`, in the caches, to `to`, past them: one after the other, nothing else in between."""
        self.wall()
        if "!900 = !{i32 1}" not in self.tail:
            self.tail.append("!900 = !{i32 1}")
        with self.loop(0, nbytes, 64) as at:
            value = self.load("<64 x i8>", self.at(buffer, at), ", align 64")
            self.store("<64 x i8>", value, self.at(to, at), ", align 64, !nontemporal !900")
        self.wall()

    def run_past(self, to: str, number: str, source: str, nbytes: str, ahead=None) -> None:
        """`nbytes` from `source` to `to`, whose address is `number` as an integer: whole lines past the caches, a kilobyte read, then written; the ends as ever.
        `ahead(at)` is where to fetch from while what lies `at` bytes behind `source` is copied."""
        self.declare("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
        if "!900 = !{i32 1}" not in self.tail:
            self.tail.append("!900 = !{i32 1}")
        first = self.min(self(f"and i64 {self.sub(0, number)}, 63"), nbytes)
        last = self.sub(nbytes, self(f"and i64 {self.sub(nbytes, first)}, 63"))
        whole = self.sub(last, self(f"and i64 {self.sub(last, first)}, {CHUNK - 1}"))

        def lines(at, count):
            if ahead:
                self.fetch(ahead(at), 64 * count)
            places = range(0, 64 * count, 64)
            values = [self.load("<64 x i8>", self.at(source, self.add(at, k)), ", align 1") for k in places]
            self.wall()
            for k, value in zip(places, values):
                self.store("<64 x i8>", value, self.at(to, self.add(at, k)), ", align 64, !nontemporal !900")
            self.wall()

        some = self.sub(last, self(f"and i64 {self.sub(last, first)}, {CHUNK // 4 - 1}"))
        for low, high, step in ((first, whole, CHUNK), (whole, some, CHUNK // 4), (some, last, 64)):
            with self.loop(low, high, step, extra=self.plain()) as at:
                lines(at, step // 64)
        for low, high in (("0", first), (last, nbytes)):
            self.do(f"call void @llvm.memmove.p0.p0.i64(ptr {self.at(to, low)}, ptr {self.at(source, low)}, i64 {self.sub(high, low)}, i1 false)")

    def fetch(self, place: str, nbytes: int, near: bool = False) -> None:
        """Asks for the lines of `nbytes` from `place` on, into the second-level cache, or into the first. The address may lie outside of any memory."""
        self.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.wall()
        for step in range(0, nbytes, 64):
            self.do(f"call void @llvm.prefetch.p0(ptr {self.at(place, str(step))}, i32 0, i32 {3 if near else 2}, i32 1)")

    def wall(self) -> None:
        """What is written before this stays before what follows: an order for the compiler, no instruction."""
        self.do('fence syncscope("singlethread") seq_cst')

    def fence(self) -> None:
        """Streamed lines are ordered before the signal that this part is done."""
        if jit.host().arch == "x86_64":
            self.declare("declare void @llvm.x86.sse.sfence()")
            self.do("call void @llvm.x86.sse.sfence()")

    def text(self, definitions: str = "", symbol: str = "kernel") -> str:
        """The whole module."""
        head = f"define void @{symbol}(ptr noalias readonly %desc, ptr noalias readonly %slots, i64 %part, i64 %parts) {jit.ATTRIBUTES} {{\nentry:"
        return "\n".join([*self.declared, definitions, head, *self.entry, *self.lines, "  ret void", "}", *self.tail, ""])


def load_ahead(type: str) -> str:
    """IR text of `@load_ahead_<type>(address, far)`: a load that also fetches the line `far` bytes further on into the second-level cache, and what the loop
    vectoriser takes instead of several neighbours' (it cannot widen the fetching itself). It reads what nobody writes meanwhile, hence memory(none)."""
    name, facts = f"load_ahead_{type}", f'noinline nounwind willreturn memory(none) "{jit.LATE}"'
    size = {"i16": 2, "float": 4, "double": 8}[type]
    body = f""", ptr %p, align {size}
  %q = getelementptr i8, ptr %p, i64 %far
  call void @llvm.prefetch.p0(ptr %q, i32 0, i32 2, i32 1)
"""
    lanes = (16, 8, 4)
    variants = ",".join(f"_ZGV_LLVM_N{w}l{size}u_{name}({name}_v{w})" for w in lanes)
    texts = ["declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"]
    for symbol, kind, more in [(name, type, f' "vector-function-abi-variant"="{variants}"'), *((f"{name}_v{w}", f"<{w} x {type}>", "") for w in lanes)]:
        texts.append(f"define internal {kind} @{symbol}(ptr %p, i64 %far) {facts}{more} {{\n  %v = load {kind}{body}  ret {kind} %v\n}}")
    return "\n".join(texts)


def chunk_of(n: int, size: int) -> int:
    """How many elements, of `size` bytes the widest, of a row of n are streamed at a time: few ends are left over."""
    chunk = CHUNK // size
    return chunk if n % chunk == 0 or n >= 8 * chunk else 64


def walk_table(shape, strides) -> list[int]:
    """Descriptor words of `Body.walk` for dimensions given slowest first; `strides` is one sequence of byte strides an operand."""
    words: list[int] = []
    for d in reversed(range(len(shape))):
        words.append(shape[d])
        words.extend(s[d] for s in strides)
    return words
