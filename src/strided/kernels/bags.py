"""Sums and means of a table's rows by bag, without a tensor of all rows. What an embedding bag is otherwise is nn/functions/embedding_bag.py's business."""
from __future__ import annotations

from . import jit, native
from .formats import ITEMSIZE, Value, compute_type
from .loops import Body
from .lower import IR, Lowering

DTYPES = ("float32", "float64", "bfloat16", "float16")
COLUMNS = 256  # numbers of a row that are added up together
GRAIN = 1 << 14
ROW, OFFSET = 1, 2  # what was out of range


def build_bags(dtype: str, bags: int, width: int, count: int, rows: int, step: int, *, index_bits: int, fixed: int | None, mean: bool, weighted: bool, padding: int = -1,
               result_bytes: int = 0) -> bytes:  # fmt: skip
    """Descriptor of out[b] = sum of table[i] over the indices i of bag b, [bags, width]; `count` indices, a table of `rows` rows that lie `step` elements apart.

    fixed: indices a bag, or None where a slot tells at which index each bag begins (int64). weighted: each row times a number of its own. padding: the row that does
    not count. Slots: out, table, indices, beginnings if not fixed, weights if weighted, error words (ROW or OFFSET, what was out of range). Reports, and leaves out, what is.
    """
    key = ("bags", dtype, index_bits, fixed is None, mean, weighted)
    address = jit.compile_kernel(key, lambda: _text(dtype, index_bits, fixed is None, mean, weighted))
    words = [bags, width, count, rows, step * ITEMSIZE[dtype], fixed or 0, padding]
    work = count * width
    parts = max(1, min(native.parts_for(work, GRAIN), bags))
    return native.pack_desc(address, 4 + (fixed is None) + weighted, parts, work >= 4 * GRAIN, result_bytes, words)


def _text(dtype: str, index_bits: int, offsets: bool, mean: bool, weighted: bool) -> str:
    b = Body()
    low = Lowering(b)
    bags, width, count, rows, step, fixed, padding = (b.word(i) for i in range(7))
    slots = iter(range(7))
    out, table, indices = (b.slot(next(slots)) for _ in range(3))
    beginnings = b.slot(next(slots)) if offsets else ""
    weights = b.slot(next(slots)) if weighted else ""
    error = b.slot(next(slots))
    compute, size = compute_type(dtype), ITEMSIZE[dtype]
    type, index = IR[compute], f"i{index_bits}"
    sums = b.cell(f"[{COLUMNS} x {type}]").name
    sum_at = lambda c: b(f"getelementptr {type}, ptr {sums}, i64 {c}")
    word = lambda base, i: b.load("i64", b(f"getelementptr i64, ptr {base}, i64 {i}"))

    def report(which, value):
        b.store("i64", value, b(f"getelementptr i64, ptr {error}, i64 1"))
        b.store("i64", which, error)

    with b.loop(*b.share(bags)) as bag:
        if offsets:
            begin, last = word(beginnings, bag), b(f"icmp eq i64 {b.add(bag, 1)}, {bags}")
            end = b.select(last, count, word(beginnings, b.select(last, bag, b.add(bag, 1))))
            first_wrong = b(f"and i1 {b(f'icmp eq i64 {bag}, 0')}, {b(f'icmp ne i64 {begin}, 0')}")
            wrong = b(f"or i1 {first_wrong}, {b(f'icmp ugt i64 {begin}, {count}')}")
            with b.when(wrong):
                report(OFFSET, begin)
            end = b.select(b(f"or i1 {wrong}, {b(f'icmp ugt i64 {end}, {count}')}"), begin, end)
        else:
            begin = b.mul(bag, fixed)
            end = b.add(begin, fixed)
        target = b.at(out, b.mul(b.mul(bag, width), size))
        with b.loop(0, width, COLUMNS) as column:
            some = b.min(b.sub(width, column), COLUMNS)
            access, mark = b.parallel()
            with b.loop(0, some, extra=mark) as c:
                b.store(type, "0.0", sum_at(c), access)
            kept = b.cell("i64", "0")
            with b.loop(begin, end, extra=b.plain()) as i:
                row = b.load(index, b(f"getelementptr {index}, ptr {indices}, i64 {i}"))
                row = row if index_bits == 64 else b(f"sext {index} {row} to i64")

                def add(i=i, row=row):
                    kept.add("1")
                    source = b.at(b.at(table, b.mul(row, step)), b.mul(column, size))
                    factor = low.convert(low.load(dtype, b.at(weights, b.mul(i, size))), compute) if weighted else None
                    access, mark = b.parallel()
                    with b.loop(0, some, extra=mark) as c:
                        value = low.convert(low.load(dtype, b.at(source, b.mul(c, size)), access), compute)
                        if factor is not None:
                            value = low.apply("mul", value, factor)
                        place = sum_at(c)
                        b.store(type, low.apply("add", Value(b.load(type, place, access), compute), value).text, place, access)

                def counted():
                    with b.when(b(f"icmp ne i64 {row}, {padding}")):
                        add()

                b.either(b(f"icmp ult i64 {row}, {rows}"), counted, lambda: report(ROW, row))
            divisor = None
            if mean:
                some_kept = b.select(b(f"icmp eq i64 {kept.get()}, 0"), 1, kept.get())
                divisor = Value(b(f"sitofp i64 {some_kept} to {type}"), compute)
            access, mark = b.parallel()
            with b.loop(0, some, extra=mark) as c:
                total = Value(b.load(type, sum_at(c), access), compute)
                total = total if divisor is None else low.apply("div", total, divisor)
                low.store(dtype, total, b.at(target, b.mul(b.add(column, c), size)), access)
    return b.text(low.definitions())
