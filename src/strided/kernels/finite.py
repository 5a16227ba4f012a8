"""Whether runs of floats hold infinities or NaN, in one pass at the speed memory is read: `specials` of one, `Runs` of several. No tensors, no layouts."""
from __future__ import annotations

from array import array

from . import jit
from .loops import Body
from .many import Many
from .native import launch, pack_desc

INFINITE, NAN = 1, 2  # bits of the answer
BLOCK = 4096  # elements looked at before it is asked whether one of them was special
_FIELDS = {"float32": (32, 0x7F800000), "float64": (64, 0x7FF0000000000000), "float16": (16, 0x7C00), "bfloat16": (16, 0x7F80)}
_descriptors: dict[str, bytes] = {}
answer = array("q", [0])
ANSWER = answer.buffer_info()[0]


def specials(dtype: str, address: int, count: int) -> int:
    """0 where all are finite (or the format is not one of the four IEEE floats), else INFINITE | NAN as found."""
    descriptor = _descriptors.get(dtype) or descriptor_of(dtype)
    if descriptor is None:
        return 0
    launch(descriptor, address, count, ANSWER)
    return answer[0]


def descriptor_of(dtype: str) -> bytes | None:
    """The kernel for a format (None where it has no infinities or NaN to find): `launch(it, address, count, ANSWER)` leaves its answer in `answer[0]`."""
    if dtype not in _FIELDS or dtype in _descriptors:
        return _descriptors.get(dtype)
    function = jit.compile_kernel(("specials", dtype), lambda: _text(*_FIELDS[dtype]))
    return _descriptors.setdefault(dtype, pack_desc(function, 3))


class Runs:
    """The same of several runs, of (dtype, count) each, in one launch: `Runs(kinds).specials(addresses)` is what all hold together."""

    def __init__(self, kinds):
        pieces = []
        self.answers = array("q", [0] * len(kinds))
        for number, (dtype, count) in enumerate(kinds):
            descriptor = descriptor_of(dtype)
            if descriptor is not None:
                pieces.append((descriptor, ((number, 0), (len(kinds), count), (len(kinds) + 1, 8 * number))))
        self.ends = 0, self.answers.buffer_info()[0]
        self.many = Many(pieces, len(kinds) + 2) if pieces else None

    def specials(self, addresses) -> int:
        if self.many is None:
            return 0
        self.many.launch((*addresses, *self.ends))
        return INFINITE * any(a & INFINITE for a in self.answers) | NAN * any(a & NAN for a in self.answers) if any(self.answers) else 0


def _text(bits: int, exponent: int) -> str:
    """An exponent of all ones is a special; with a mantissa of 0 an infinity, else NaN."""
    b, word, size = Body(), f"i{bits}", bits // 8
    address, count, answer = b.slot(0), b.slot(1, "i64"), b.slot(2)
    found = b.cell("i64", "0")

    def fields(i):
        value = b.load(word, b.at(address, b.mul(i, size)), f", align {size}")
        return value, b(f"icmp eq {word} {b(f'and {word} {value}, {exponent}')}, {exponent}")

    with b.loop(0, count, BLOCK) as start:
        stop = b.min(b.add(start, BLOCK), count)
        some = b.cell("i32", "0")
        with b.loop(start, stop) as i:
            some.set(b(f"or i32 {some.get()}, {b(f'zext i1 {fields(i)[1]} to i32')}"))
        with b.when(b(f"icmp ne i32 {some.get()}, 0")), b.loop(start, stop) as i:
            value, special = fields(i)
            nan = b(f"icmp ne {word} {b(f'and {word} {value}, {mantissa(bits, exponent)}')}, 0")
            kind = b.select(nan, NAN, INFINITE)
            found.set(b(f"or i64 {found.get()}, {b.select(special, kind, 0)}"))
    b.store("i64", found.get(), answer)
    return b.text()


def mantissa(bits: int, exponent: int) -> int:
    """The mantissa's bits of a format with this exponent field."""
    return (1 << bits - 1) - 1 - exponent
