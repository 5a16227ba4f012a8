"""Rows sorted by the digits of their elements, the lowest digit first: equal elements keep their order, NaN is the largest, -0.0 equals 0.0.

Which calls come here is ops/sort.py's business.
"""
from __future__ import annotations

from . import jit, native
from .loops import Body

KINDS = {  # NumPy's name: type in memory, its bits, what it holds
    "float32": ("float", 32, "float"), "float64": ("double", 64, "float"), "bool": ("i8", 8, "uint"),
    **{f"{kind}{bits}": (f"i{bits}", bits, kind) for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}  # fmt: skip
MOST = 1 << 31  # elements of a row: positions are kept in 32 bits
MANY = 1024, 1 << 18  # elements of a row from which, and up to which, digits of eleven bits pay
GRAIN = 1 << 12


def build_radix(dtype: str, rows: int, n: int, descending: bool) -> tuple[bytes, int]:
    """(descriptor for [rows, n] row-major elements of a dtype of `KINDS`, bytes of scratch memory). n < MOST.

    Slots: the sorted elements, their positions (int64), scratch, the elements.
    """
    digit = 11 if MANY[0] <= n <= MANY[1] and KINDS[dtype][1] > 16 else 8
    address = jit.compile_kernel(("radix", dtype, digit, descending), lambda: _text(*KINDS[dtype], digit, descending))
    parts = max(1, min(native.parts_for(rows * n, GRAIN), rows))
    own = 2 * n * (8 if KINDS[dtype][1] <= 32 else 12) + 64
    return native.pack_desc(address, 4, parts, rows * n >= GRAIN, 0, [rows, n, own]), own * parts


def _text(type: str, bits: int, kind: str, digit: int, descending: bool) -> str:
    b = Body()
    rows, n, own = (b.word(i) for i in range(3))
    values, positions, scratch, source = (b.slot(i) for i in range(4))
    passes, buckets = -(-bits // digit), 1 << digit
    counts = b.cell(f"[{passes * buckets} x i32]").name
    b.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    packed = bits <= 32  # the key above the position in one number, else keys first and positions behind them
    scratch = b.at(scratch, b.mul("%part", own))
    here, there = b.cell("ptr"), b.cell("ptr")

    def count_of(index):
        return b(f"getelementptr i32, ptr {counts}, i64 {index}")

    def get(array, i):
        if packed:
            pair = b.load("i64", b(f"getelementptr i64, ptr {array}, i64 {i}"))
            return b(f"lshr i64 {pair}, 32"), pair
        return b.load("i64", b(f"getelementptr i64, ptr {array}, i64 {i}")), b.load("i32", b(f"getelementptr i32, ptr {b.at(array, b.mul(n, 8))}, i64 {i}"))

    def put(array, i, key, rest):
        b.store("i64", rest if packed else key, b(f"getelementptr i64, ptr {array}, i64 {i}"))
        if not packed:
            b.store("i32", rest, b(f"getelementptr i32, ptr {b.at(array, b.mul(n, 8))}, i64 {i}"))

    def digit_of(key, p):
        return b.add(b(f"and i64 {b(f'lshr i64 {key}, {p * digit}')}, {buckets - 1}"), p * buckets)

    with b.loop(*b.share(rows)) as row:
        first = b.mul(row, n)
        elements = b(f"getelementptr {type}, ptr {source}, i64 {first}")
        here.set(scratch)
        there.set(b.at(scratch, b.mul(n, 8 if packed else 12)))
        b.do(f"call void @llvm.memset.p0.i64(ptr {counts}, i8 0, i64 {passes * buckets * 4}, i1 false)")
        start = here.get()
        with b.loop(0, n, extra=b.plain()) as i:
            key = _key(b, b.load(type, b(f"getelementptr {type}, ptr {elements}, i64 {i}")), type, bits, kind, descending)
            put(start, i, key, b(f"or i64 {b(f'shl i64 {key}, 32')}, {i}") if packed else b(f"trunc i64 {i} to i32"))
            for p in range(passes):
                count = count_of(digit_of(key, p))
                b.store("i32", b(f"add i32 {b.load('i32', count)}, 1"), count)
        for p in range(passes):
            array, target = here.get(), there.get()
            whole = b.load("i32", count_of(digit_of(get(array, 0)[0], p)))
            with b.when(b(f"icmp ne i32 {whole}, {b(f'trunc i64 {n} to i32')}")):  # else the digit is the same everywhere
                total = b.cell("i32", "0")
                with b.loop(p * buckets, (p + 1) * buckets, extra=b.plain()) as d:
                    count = count_of(d)
                    before = total.get()
                    total.set(b(f"add i32 {before}, {b.load('i32', count)}"))
                    b.store("i32", before, count)
                with b.loop(0, n, extra=b.plain()) as i:
                    key, rest = get(array, i)
                    place = count_of(digit_of(key, p))
                    at = b.load("i32", place)
                    b.store("i32", b(f"add i32 {at}, 1"), place)
                    put(target, b(f"zext i32 {at} to i64"), key, rest)
                here.set(target)
                there.set(array)
        array = here.get()
        with b.loop(0, n, extra=b.plain()) as i:
            _, rest = get(array, i)
            at = b(f"and i64 {rest}, 4294967295") if packed else b(f"zext i32 {rest} to i64")
            place = b.add(first, i)
            b.store("i64", at, b(f"getelementptr i64, ptr {positions}, i64 {place}"))
            b.store(type, b.load(type, b(f"getelementptr {type}, ptr {elements}, i64 {at}")), b(f"getelementptr {type}, ptr {values}, i64 {place}"))
    return b.text()


def _key(b: Body, value: str, type: str, bits: int, kind: str, descending: bool) -> str:
    """An i64 of which the lowest `bits` bits are in the order of the elements."""
    int_, top = f"i{bits}", -(1 << (bits - 1))
    if kind == "float":
        nan = b(f"fcmp uno {type} {value}, 0.0")
        code = b(f"bitcast {type} {b(f'fadd {type} {value}, 0.0')} to {int_}")
        sign = b(f"ashr {int_} {code}, {bits - 1}")
        mask = b(f"or {int_} {sign}, {top}")
        key = b.select(nan, -1, b(f"xor {int_} {code}, {mask}"), int_)
    else:
        key = b(f"xor {int_} {value}, {top}") if kind == "int" else value
    if descending:
        key = b(f"xor {int_} {key}, -1")
    return key if bits == 64 else b(f"zext {int_} {key} to i64")
