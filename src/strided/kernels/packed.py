"""Elements below eight bits: from packed memory to one code a byte, and back. Kernels for every number of bits and any strides.

In memory the elements of a storage follow each other without gaps, the first in the lowest bits: two int4 a byte, four float6 in three bytes. A code in
a byte of its own is sign-extended where the format is a signed integer. Nothing is decoded here: formats.py knows what codes stand for.
"""
from __future__ import annotations

from ..layout import collapse
from . import jit, native
from .loops import Body, walk_table

GRAIN = 1 << 16  # elements a part should have at least
GROUP = 8  # elements that begin and end with whole bytes, whatever their bits


def build_unpack(dtype, shape, target, source, *, result_bytes: int = 0) -> bytes:
    """Descriptor of target[...] = the codes of source[...], one a byte. target, source: strides in elements. Slots: target's address, the packed
    storage's address, the number of its first element."""
    return _build("unpack", dtype, shape, source, target, result_bytes)


def build_pack(dtype, shape, target, source) -> bytes:
    """Descriptor of target[...] = source[...], whose codes lie one a byte. Strides in elements; target must not overlap itself. Bits beside the written
    elements keep their values. Slots: the packed storage's address, the number of its first element, source's address."""
    return _build("pack", dtype, shape, target, source, 0)


def _build(way: str, dtype, shape, packed, bytes_, result_bytes: int) -> bytes:
    order = sorted((d for d in range(len(shape)) if shape[d] != 1), key=lambda d: (-packed[d], -bytes_[d]))
    sizes, walks = collapse([shape[d] for d in order], [packed[d] for d in order], [bytes_[d] for d in order])
    sizes, (packed, bytes_) = list(sizes) or [1], (list(w) or [1] for w in walks)
    rows = 1
    for n in sizes[:-1]:
        rows *= n
    run = packed[-1] == bytes_[-1] == 1
    # Rows of packed elements may meet within a byte: they are written by one thread, unless there is one row, which is cut at whole bytes.
    parts = native.parts_for(rows * sizes[-1], GRAIN) if way == "unpack" or rows == 1 and run else 1
    address = jit.compile_kernel(("packed", way, dtype.bits, dtype.kind, run), lambda: _text(way, dtype.bits, dtype.kind == "int", run))
    words = [len(sizes) - 1, rows, sizes[-1], packed[-1], bytes_[-1], int(rows == 1), *walk_table(sizes[:-1], [packed[:-1], bytes_[:-1]])]
    return native.pack_desc(address, 3, parts, rows * sizes[-1] > GRAIN, result_bytes, words)


def _text(way: str, bits: int, signed: bool, run: bool) -> str:
    b = Body()
    dims, rows, n, packed_step, byte_step, one_row = (b.word(i) for i in range(6))
    if way == "unpack":
        codes, packed, first = b.slot(0), b.slot(1), b.slot(2, "i64")
    else:
        packed, first, codes = b.slot(0), b.slot(1, "i64"), b.slot(2)
    single = b(f"icmp ne i64 {one_row}, 0")
    row_low, row_high = b.share(rows)
    row_low, row_high = b.select(single, 0, row_low), b.select(single, rows, row_high)
    # Parts of one row meet where a group of eight begins, counted from the storage's start.
    head = b.min(b(f"and i64 {b.sub(0, first)}, {GROUP - 1}"), n)
    groups = b.div(b.sub(n, head), GROUP)
    low, high = b.share(groups)
    low = b.select(b("icmp eq i64 %part, 0"), 0, b.add(head, b.mul(low, GROUP)))
    last = b(f"icmp eq i64 {b.add('%part', 1)}, %parts")
    high = b.select(last, n, b.add(head, b.mul(high, GROUP)))
    low, high = b.select(single, low, 0), b.select(single, high, n)
    move = _one_out if way == "unpack" else _one_in

    with b.walk(6, dims, 2, row_low, row_high) as (_, (packed_offset, byte_offset), _):
        start, base = b.add(first, packed_offset), b.at(codes, byte_offset)
        if not run:
            with b.loop(low, high) as i:
                move(b, bits, signed, packed, b.add(start, b.mul(i, packed_step)), b.at(base, b.mul(i, byte_step)))
        else:
            begin = b.min(b.add(low, b(f"and i64 {b.sub(0, b.add(start, low))}, {GROUP - 1}")), high)
            whole = b.div(b.sub(high, begin), GROUP)
            end = b.add(begin, b.mul(whole, GROUP))
            for here, there in ((low, begin), (end, high)):
                with b.loop(here, there, extra=b.plain()) as i:
                    move(b, bits, signed, packed, b.add(start, i), b.at(base, i))
            stored = b.at(packed, b.div(b.mul(b.add(start, begin), bits), 8))
            bytes_ = b.at(base, begin)
            access, mark = b.parallel()
            with b.loop(0, whole, extra=mark) as g:
                group, eight = b.at(stored, b.mul(g, bits)), b.at(bytes_, b.mul(g, GROUP))
                word = f"i{8 * bits}"
                if way == "unpack":
                    value = b(f"zext {word} {b.load(word, group, f', align 1{access}')} to i64")
                    b.store("i64", _extended(b, bits, _spread(b, bits, value)) if signed else _spread(b, bits, value), eight, f", align 1{access}")
                else:
                    value = _gathered(b, bits, b(f"and i64 {b.load('i64', eight, f', align 1{access}')}, {_lanes((1 << bits) - 1)}"))
                    b.store(word, b(f"trunc i64 {value} to {word}"), group, f", align 1{access}")
    return b.text()


# ---- one element ------------------------------------------------------------------------------------------------------------------


def _place(b: Body, bits: int, packed: str, element: str) -> tuple[str, str, str]:
    """(address of the byte that an element begins in, of the one that it ends in, the bit at which it begins)."""
    bit = b.mul(element, bits)
    return b.at(packed, b.div(bit, 8)), b.at(packed, b.div(b.add(bit, bits - 1), 8)), b(f"trunc i64 {b(f'and i64 {bit}, 7')} to i16")


def _both(b: Body, low: str, high: str) -> str:
    """Two bytes as an i16; where they are one, it stands in both halves."""
    first, second = (b(f"zext i8 {b.load('i8', place)} to i16") for place in (low, high))
    return b(f"or i16 {first}, {b(f'shl i16 {second}, 8')}")


def _one_out(b: Body, bits: int, signed: bool, packed: str, element: str, code: str) -> None:
    low, high, shift = _place(b, bits, packed, element)
    value = b(f"trunc i16 {b(f'lshr i16 {_both(b, low, high)}, {shift}')} to i8")
    moved = b(f"shl i8 {value}, {8 - bits}")
    b.store("i8", b(f"{'ashr' if signed else 'lshr'} i8 {moved}, {8 - bits}"), code)


def _one_in(b: Body, bits: int, signed: bool, packed: str, element: str, code: str) -> None:
    low, high, shift = _place(b, bits, packed, element)
    mask = b(f"shl i16 {(1 << bits) - 1}, {shift}")
    wide = b(f"zext i8 {b.load('i8', code)} to i16")
    field = b(f"shl i16 {wide}, {shift}")
    kept = b(f"and i16 {_both(b, low, high)}, {b(f'xor i16 {mask}, -1')}")
    both = b(f"or i16 {kept}, {b(f'and i16 {field}, {mask}')}")
    # The byte that it ends in first: where that is the same one, the byte that it begins in is right and comes last.
    b.store("i8", b(f"trunc i16 {b(f'lshr i16 {both}, 8')} to i8"), high)
    b.store("i8", b(f"trunc i16 {both} to i8"), low)


# ---- eight elements in one 64-bit word ----------------------------------------------------------------------------------------------


def _lanes(byte: int) -> int:
    """A byte's value in all eight bytes of an i64 (as the signed number that IR text wants)."""
    value = byte * 0x0101010101010101
    return value - (1 << 64) if value >> 63 else value


def _halves(bits: int):
    """For the three steps of spreading: (mask of the fields that stay, how far the others move up)."""
    for fields in (4, 2, 1):  # a field of 2 * fields elements is split into two
        width, place = fields * bits, fields * 8
        stay = sum(((1 << width) - 1) << (2 * place * k) for k in range(4 // fields))
        yield stay, width, place - width


def _spread(b: Body, bits: int, word: str) -> str:
    """Eight fields of `bits` bits, side by side, moved to a byte each."""
    for stay, width, up in _halves(bits):
        low = b(f"and i64 {word}, {stay}")
        high = b(f"and i64 {word}, {_signed(stay << width)}")
        word = b(f"or i64 {low}, {b(f'shl i64 {high}, {up}')}")
    return word


def _gathered(b: Body, bits: int, word: str) -> str:
    """The reverse of `_spread`."""
    for stay, width, up in reversed(list(_halves(bits))):
        low = b(f"and i64 {word}, {stay}")
        high = b(f"and i64 {b(f'lshr i64 {word}, {up}')}, {_signed(stay << width)}")
        word = b(f"or i64 {low}, {high}")
    return word


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _extended(b: Body, bits: int, word: str) -> str:
    """Each byte's field of `bits` bits sign-extended to the byte."""
    sign = b(f"lshr i64 {b(f'and i64 {word}, {_lanes(1 << (bits - 1))}')}, {bits - 1}")  # 0 or 1 a byte
    filled = b(f"sub i64 {b(f'shl i64 {sign}, 8')}, {sign}")  # 0 or 255 a byte
    return b(f"or i64 {word}, {b(f'and i64 {filled}, {_lanes(255 << bits & 255)}')}")
