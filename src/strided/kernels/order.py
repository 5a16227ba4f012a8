"""Order kernels: rows of (key, position) pairs sorted or partly sorted, step by step as C++'s library and PyTorch do it, so that equal keys end up where theirs do.

Holds introsort, introselect and heap selection (std::sort, std::nth_element, std::partial_sort of libstdc++) and PyTorch's quickselect. Keys are
uint64 whose order is that of the values; what they stand for is ops/sort.py's business.
"""
from __future__ import annotations

from . import jit, native
from .loops import Body

SORT, TOP, SELECT, PART, QUICKSELECT = range(5)  # whole rows; the k least in order by a heap, by selection; the k-th least at its place, lesser ones before it; the same as torch.kthvalue finds it
SMALL = 16  # up to so many elements introsort leaves to insertion
GRAIN = 1 << 12


def build_order(mode: int, rows: int, n: int, k: int) -> bytes:
    """Descriptor for [rows, n] row-major keys and positions, both rearranged in place. Slots: keys (uint64), positions (int64). 1 <= k <= n."""
    address = jit.compile_kernel(("order", mode), lambda: _text(mode))
    parts = max(1, min(native.parts_for(rows * n, GRAIN), rows))
    return native.pack_desc(address, 2, parts, rows * n >= GRAIN, 0, [rows, n, k])


class _Function(Body):
    """A function over one row: `%keys` and `%ids`, and further i64 arguments."""

    def __init__(self, name: str, *arguments: str, returns: str = "void"):
        super().__init__()
        self.title, self.arguments, self.returns = name, arguments, returns

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        """A `with` block shows what belongs to the function."""

    def defined(self, last: str = "ret void") -> str:
        arguments = "".join(f", i64 %{a}" for a in self.arguments)
        head = f"define internal {self.returns} @{self.title}(ptr noalias %keys, ptr noalias %ids{arguments}) {{\nentry:"
        return "\n".join([head, *self.entry, *self.lines, f"  {last}", "}", *self.tail, ""])

    # ---- pairs ----

    def key(self, i) -> str:
        return self.load("i64", self(f"getelementptr i64, ptr %keys, i64 {i}"))

    def id(self, i) -> str:
        return self.load("i64", self(f"getelementptr i64, ptr %ids, i64 {i}"))

    def pair(self, i) -> tuple[str, str]:
        return self.key(i), self.id(i)

    def put(self, i, pair) -> None:
        for base, value in zip(("keys", "ids"), pair):
            self.store("i64", value, self(f"getelementptr i64, ptr %{base}, i64 {i}"))

    def swap(self, i, j) -> None:
        a, b = self.pair(i), self.pair(j)
        self.put(i, b)
        self.put(j, a)

    def less(self, a: str, b: str) -> str:
        """Of two keys."""
        return self(f"icmp ult i64 {a}, {b}")

    def below(self, i, j) -> str:
        return self.less(self.key(i), self.key(j))

    def test(self, how: str, a, b) -> str:
        return self(f"icmp {how} i64 {a}, {b}")

    def run(self, name: str, *arguments, returns: str = "void"):
        text = f"call {returns} @{name}(ptr %keys, ptr %ids{''.join(f', i64 {a}' for a in arguments)})"
        return self.do(text) if returns == "void" else self(text)


# ---- insertion --------------------------------------------------------------------------------------------------------


def _insert() -> str:
    """The element at `at` moves left to where it belongs; something not greater is known to lie there."""
    with _Function("insert", "at") as f:
        value = f.pair("%at")
        hole = f.cell("i64", "%at")
        with f.loop_while() as unless:
            before = f.sub(hole.get(), 1)
            unless(f.less(value[0], f.key(before)))
            f.put(hole.get(), f.pair(before))
            hole.set(before)
        f.put(hole.get(), value)
    return f.defined()


def _insertion_sort() -> str:
    with _Function("insertion_sort", "first", "last") as f:
        with f.loop(f.add("%first", 1), "%last") as i:

            def to_front():
                value = f.pair(i)
                j = f.cell("i64", i)
                with f.loop_while() as unless:
                    unless(f.test("sgt", j.get(), "%first"))
                    before = f.sub(j.get(), 1)
                    f.put(j.get(), f.pair(before))
                    j.set(before)
                f.put("%first", value)

            f.either(f.below(i, "%first"), to_front, lambda: f.run("insert", i))
    return f.defined()


# ---- partition --------------------------------------------------------------------------------------------------------


def _partition() -> str:
    """Median of three to the front, the rest parted around it: where the second part begins."""
    with _Function("partition", "first", "last", returns="i64") as f:
        half = f(f"ashr i64 {f.sub('%last', '%first')}, 1")
        a, b, c = f.add("%first", 1), f.add("%first", half), f.sub("%last", 1)
        chosen = f.cell("i64")

        def ordered():  # a < b
            f.either(f.below(b, c), lambda: chosen.set(b), lambda: chosen.set(f.select(f.below(a, c), c, a)))

        def turned():
            f.either(f.below(a, c), lambda: chosen.set(a), lambda: chosen.set(f.select(f.below(b, c), c, b)))

        f.either(f.below(a, b), ordered, turned)
        f.swap("%first", chosen.get())
        pivot = f.key("%first")  # stays in place: the rest begins behind it
        low, high = f.cell("i64", a), f.cell("i64", "%last")
        with f.loop_while() as unless:
            with f.loop_while() as smaller:
                smaller(f.less(f.key(low.get()), pivot))
                low.add("1")
            high.add("-1")
            with f.loop_while() as greater:
                greater(f.less(pivot, f.key(high.get())))
                high.add("-1")
            unless(f.test("slt", low.get(), high.get()))
            f.swap(low.get(), high.get())
            low.add("1")
        result = low.get()
    return f.defined(f"ret i64 {result}")


# ---- heaps ------------------------------------------------------------------------------------------------------------


def _adjust_heap() -> str:
    """The hole in the heap at `first` sinks to a leaf along the greater children; (key, id) rises from there."""
    with _Function("adjust_heap", "first", "hole", "len", "key", "id") as f:
        at = lambda i: f.add("%first", i)
        hole, child = f.cell("i64", "%hole"), f.cell("i64", "%hole")
        border = f(f"sdiv i64 {f.sub('%len', 1)}, 2")
        with f.loop_while() as unless:
            unless(f.test("slt", child.get(), border))
            right = f.mul(f.add(child.get(), 1), 2)
            left = f.sub(right, 1)
            greater = f.select(f.below(at(right), at(left)), left, right)
            f.put(at(hole.get()), f.pair(at(greater)))
            hole.set(greater)
            child.set(greater)
        even = f.test("eq", f("and i64 %len, 1"), 0)
        single = f.test("eq", child.get(), f(f"sdiv i64 {f.sub('%len', 2)}, 2"))
        with f.when(f(f"and i1 {even}, {single}")):
            left = f.sub(f.mul(f.add(child.get(), 1), 2), 1)
            f.put(at(hole.get()), f.pair(at(left)))
            hole.set(left)
        with f.loop_while() as unless:
            unless(f.test("sgt", hole.get(), "%hole"))
            parent = f(f"sdiv i64 {f.sub(hole.get(), 1)}, 2")
            unless(f.less(f.key(at(parent)), "%key"))
            f.put(at(hole.get()), f.pair(at(parent)))
            hole.set(parent)
        f.put(at(hole.get()), ("%key", "%id"))
    return f.defined()


def _heap_select() -> str:
    """The least elements of first…last into first…middle, as a heap with the greatest of them in front."""
    with _Function("heap_select", "first", "middle", "last") as f:
        length = f.sub("%middle", "%first")
        with f.when(f.test("sge", length, 2)):
            parent = f.cell("i64", f(f"sdiv i64 {f.sub(length, 2)}, 2"))
            with f.loop_while() as unless:
                unless(f.test("sge", parent.get(), 0))
                f.run("adjust_heap", "%first", parent.get(), length, *f.pair(f.add("%first", parent.get())))
                parent.add("-1")
        with f.loop("%middle", "%last") as i:
            with f.when(f.below(i, "%first")):
                value = f.pair(i)
                f.put(i, f.pair("%first"))
                f.run("adjust_heap", "%first", 0, length, *value)
    return f.defined()


def _sort_heap() -> str:
    with _Function("sort_heap", "first", "last") as f:
        end = f.cell("i64", "%last")
        with f.loop_while() as unless:
            unless(f.test("sgt", f.sub(end.get(), "%first"), 1))
            end.add("-1")
            value = f.pair(end.get())
            f.put(end.get(), f.pair("%first"))
            f.run("adjust_heap", "%first", 0, f.sub(end.get(), "%first"), *value)
    return f.defined()


# ---- sorting and selecting --------------------------------------------------------------------------------------------


def _introsort() -> str:
    with _Function("introsort", "first", "last", "depth") as f:
        last, depth = f.cell("i64", "%last"), f.cell("i64", "%depth")
        with f.loop_while() as unless:
            unless(f.test("sgt", f.sub(last.get(), "%first"), SMALL))

            def by_heap():
                f.run("heap_select", "%first", last.get(), last.get())
                f.run("sort_heap", "%first", last.get())
                last.set("%first")

            def by_parts():
                depth.add("-1")
                cut = f.run("partition", "%first", last.get(), returns="i64")
                f.run("introsort", cut, last.get(), depth.get())
                last.set(cut)

            f.either(f.test("eq", depth.get(), 0), by_heap, by_parts)
    return f.defined()


def _depth(f: _Function, n) -> str:
    """2 · floor(log2 n), for n >= 1."""
    f.declare("declare i64 @llvm.ctlz.i64(i64, i1)")
    return f.mul(f.sub(63, f(f"call i64 @llvm.ctlz.i64(i64 {n}, i1 false)")), 2)


def _sort() -> str:
    with _Function("sort", "first", "last") as f:
        n = f.sub("%last", "%first")
        with f.when(f.test("sgt", n, 0)):
            f.run("introsort", "%first", "%last", _depth(f, n))

            def long():
                border = f.add("%first", SMALL)
                f.run("insertion_sort", "%first", border)
                with f.loop(border, "%last") as i:
                    f.run("insert", i)

            f.either(f.test("sgt", n, SMALL), long, lambda: f.run("insertion_sort", "%first", "%last"))
    return f.defined()


def _select() -> str:
    """The element of rank nth to its place, lesser ones before it."""
    with _Function("select", "first0", "nth", "last0") as f:
        first, last = f.cell("i64", "%first0"), f.cell("i64", "%last0")
        depth = f.cell("i64", _depth(f, f.sub("%last0", "%first0")))
        done = f.cell("i1", "false")
        with f.loop_while() as unless:
            unless(f.test("sgt", f.sub(last.get(), first.get()), 3))
            with f.when(f.test("eq", depth.get(), 0)):
                f.run("heap_select", first.get(), f.add("%nth", 1), last.get())
                f.swap(first.get(), "%nth")
                done.set("true")
            unless(f(f"xor i1 {done.get()}, true"))
            depth.add("-1")
            cut = f.run("partition", first.get(), last.get(), returns="i64")
            f.either(f.test("sle", cut, "%nth"), lambda: first.set(cut), lambda: last.set(cut))
        with f.when(f(f"xor i1 {done.get()}, true")):
            f.run("insertion_sort", first.get(), last.get())
    return f.defined()


def _quickselect() -> str:
    """PyTorch's own selection, behind kthvalue: median of three, the pivot in front."""
    with _Function("quickselect", "n", "k") as f:
        left, right = f.cell("i64", "0"), f.cell("i64", f.sub("%n", 1))

        def swap_if_greater(a, b):
            with f.when(f.below(b, a)):
                f.swap(a, b)

        with f.loop_while() as unless:
            low, high = left.get(), right.get()
            unless(f.test("sgt", high, low))
            second = f.add(low, 1)
            pair = f.test("eq", high, second)
            with f.when(pair):
                swap_if_greater(low, high)
            unless(f(f"xor i1 {pair}, true"))
            f.swap(f.add(low, f(f"sdiv i64 {f.sub(high, low)}, 2")), second)
            swap_if_greater(second, high)
            swap_if_greater(low, high)
            swap_if_greater(second, low)
            i, j, pivot = f.cell("i64", second), f.cell("i64", high), f.key(low)
            with f.loop_while() as crossed:
                i.add("1")
                with f.loop_while() as smaller:
                    smaller(f.less(f.key(i.get()), pivot))
                    i.add("1")
                j.add("-1")
                with f.loop_while() as greater:
                    greater(f.less(pivot, f.key(j.get())))
                    j.add("-1")
                crossed(f.test("sge", j.get(), i.get()))
                f.swap(i.get(), j.get())
            f.swap(low, j.get())
            at = j.get()
            with f.when(f.test("sle", at, "%k")):
                left.set(i.get())
            with f.when(f.test("sge", at, "%k")):
                right.set(f.sub(at, 1))
    return f.defined()


def _text(mode: int) -> str:
    definitions = [make() for make in (_insert, _insertion_sort, _partition, _adjust_heap, _heap_select, _sort_heap, _introsort, _sort, _select, _quickselect)]
    b = Body()
    b.declare("declare i64 @llvm.ctlz.i64(i64, i1)")
    rows, n, k = (b.word(i) for i in range(3))
    keys, ids = b.slot(0), b.slot(1)
    with b.loop(*b.share(rows)) as row:
        offset = b.mul(b.mul(row, n), 8)
        pair = f"ptr {b.at(keys, offset)}, ptr {b.at(ids, offset)}"
        if mode == SORT:
            b.do(f"call void @sort({pair}, i64 0, i64 {n})")
        elif mode == TOP:
            b.do(f"call void @heap_select({pair}, i64 0, i64 {k}, i64 {n})")
            b.do(f"call void @sort_heap({pair}, i64 0, i64 {k})")
        elif mode in (SELECT, PART):
            nth = b.sub(k, 1)
            b.do(f"call void @select({pair}, i64 0, i64 {nth}, i64 {n})")
            if mode == SELECT:
                b.do(f"call void @sort({pair}, i64 0, i64 {nth})")
        else:
            b.do(f"call void @quickselect({pair}, i64 {n}, i64 {b.sub(k, 1)})")
    return b.text("\n".join(definitions))
