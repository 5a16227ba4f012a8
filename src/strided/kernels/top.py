"""The k best of each row, found by one pass that keeps a heap of them: the steps are std::partial_sort's, as order.py's, so that equal numbers are chosen as there.

Most numbers are no better than the worst of the heap: they are compared a vector at a time and never looked at again. Rows of float32 in which no two of the best are
equal go without a heap (top_quick.py). Which calls come here is ops/sort.py's business.
"""
from __future__ import annotations

from . import jit, native
from .loops import Body
from .order import _adjust_heap, _Function, _heap_select, _sort_heap
from .top_quick import MOST, SHARE, quick

DTYPES = {"float32": ("float", "i32", 32), "float64": ("double", "i64", 64)}
GRAIN = 1 << 15  # numbers a part should have at least
TOGETHER = 2  # vectors compared before a branch


def build_top(dtype: str, rows: int, n: int, k: int, largest: bool, alone: bool = False) -> bytes:
    """Descriptor for [rows, n] row-major numbers of a dtype of `DTYPES`, 1 <= k <= n; NaN counts as the largest.

    alone: only rows without equal numbers among the best, for calls that choose among equals otherwise; of the rest the first position is -1. For float32, k <= MOST, SHARE·k <= n.

    Slots: positions of the k best, best first (int64, [rows, k]), their keys as scratch (uint64, [rows, k]), the numbers.
    """
    fast = dtype == "float32" and k <= MOST and SHARE * k <= n
    address = jit.compile_kernel(("top", dtype, largest, fast, alone), lambda: _text(dtype, largest, fast, alone))
    parts = max(1, min(native.slices_for(native.parts_for(rows * n, GRAIN), rows * n * DTYPES[dtype][2] // 8), rows))
    return native.pack_desc(address, 3, parts, rows * n >= GRAIN, 0, [rows, n, k])


def _key(f, dtype: str, largest: bool, value: str) -> str:
    """uint64 in the order in which numbers are wanted, as ops/sort.py makes them of arrays: -0.0 equals 0.0, NaN is the largest."""
    float_, int_, bits = DTYPES[dtype]
    nan = f(f"fcmp uno {float_} {value}, {value}")
    code = f(f"bitcast {float_} {f(f'fadd {float_} {value}, 0.0')} to {int_}")
    negative = f(f"icmp slt {int_} {code}, 0")
    turned = f.select(negative, f(f"xor {int_} {code}, -1"), f(f"or {int_} {code}, {-(1 << bits - 1)}"), int_)
    key = f.select(nan, -1, turned, int_)
    if largest:
        key = f(f"xor {int_} {key}, -1")
    return key if bits == 64 else f(f"zext {int_} {key} to i64")


class _Row(_Function):
    """A function over a row's heap, and the row itself as `%numbers`."""

    def defined(self, last: str = "ret void") -> str:
        return super().defined(last).replace("(ptr noalias %keys", "(ptr noalias readonly %numbers, ptr noalias %keys", 1)


def _row(dtype: str, largest: bool) -> str:
    """The k best of a row, in `%keys` and `%ids`."""
    float_, _, bits = DTYPES[dtype]
    lanes = jit.host().vector_bits // bits
    wide = f"<{lanes} x {float_}>"
    with _Row("row", "n", "k") as f:
        place = lambda i: f(f"getelementptr {float_}, ptr %numbers, i64 {i}")
        number = lambda i: f.load(float_, place(i))
        with f.loop(0, "%k") as i:
            f.put(i, (_key(f, dtype, largest, number(i)), i))
        f.run("heap_select", 0, "%k", "%k")  # makes the heap: its worst stands in front
        bound = f.cell(float_, number(f.id(0)))

        def meet(i):
            value = number(i)
            key = _key(f, dtype, largest, value)
            with f.when(f.less(key, f.key(0))):
                f.run("adjust_heap", 0, 0, "%k", key, i)
                bound.set(number(f.id(0)))

        step = lanes * TOGETHER
        whole = f.add("%k", f.mul(f.div(f.sub("%n", "%k"), step), step))
        how = "ugt" if largest else "ult"
        with f.loop("%k", whole, step) as i:
            first = f(f"insertelement {wide} poison, {float_} {bound.get()}, i64 0")
            bounds = f(f"shufflevector {wide} {first}, {wide} poison, <{lanes} x i32> zeroinitializer")
            better = None
            for t in range(TOGETHER):
                numbers = f.load(wide, place(f.add(i, t * lanes)), f", align {bits // 8}")
                here = f(f"fcmp {how} {wide} {numbers}, {bounds}")
                better = here if better is None else f(f"or <{lanes} x i1> {better}, {here}")
            with f.when(f(f"call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> {better})")):
                with f.loop(i, f.add(i, step)) as at:
                    meet(at)
        with f.loop(whole, "%n") as at:
            meet(at)
        f.run("sort_heap", 0, "%k")
    return f.defined()


def _text(dtype: str, largest: bool, fast: bool, alone: bool) -> str:
    definitions = [_adjust_heap(), _heap_select(), _sort_heap(), _row(dtype, largest)]
    bits = DTYPES[dtype][2]
    lanes = jit.host().vector_bits // bits
    b = Body()
    if fast:
        definitions.append(quick(b, largest))
    b.declare(f"declare i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1>)")
    rows, n, k = (b.word(i) for i in range(3))
    ids, keys, numbers = (b.slot(i) for i in range(3))
    with b.loop(*b.share(rows)) as row:
        best = b.mul(b.mul(row, k), 8)
        here, own = b.at(numbers, b.mul(b.mul(row, n), bits // 8)), b.at(ids, best)
        arguments = f"ptr {here}, ptr {b.at(keys, best)}, ptr {own}, i64 {n}, i64 {k}"
        done = b(f"call i1 @quick({arguments})") if fast else "false"
        with b.when(b(f"xor i1 {done}, true")):
            if alone:
                b.store("i64", "-1", own)
            else:
                b.do(f"call void @row({arguments})")
    return b.text("\n".join(definitions))
