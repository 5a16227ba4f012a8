"""Blocks of low-precision elements as IR text: where codes and scales lie in a block's bytes, how codes become numbers and numbers codes.

Holds what depends on a block format (block_formats.py); the kernels around it are block_casts.py and block_products.py. Everything is written on vectors
of a span of up to 32 elements, which LLVM cuts to what the host has; only table look-ups name instructions, where the host has them.
"""
from __future__ import annotations

from typing import NamedTuple

from ..dtypes import names
from . import jit
from .formats import literal
from .gemm_text import Function, vector

SPAN = 32  # elements decoded together
PARTS = 3  # tensors of bytes a block tensor has at most
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


class Kind(NamedTuple):
    """What kernels of a block format are specialised on: `BlockFormat.kernel`. size: elements of a block, 0 where that is data."""

    order: str
    element: str
    scale: str
    zero: str
    bias: int
    unit: int
    tensor_scale: bool
    size: int
    fields: tuple

    @property
    def span(self) -> int:
        return min(self.size or SPAN, SPAN)

    @property
    def bits(self) -> int:
        return names()[self.element].bits

    def at(self, field: str) -> tuple[int, int]:
        return dict(self.fields)[field]


class BlockText:
    """Writes the decoding and encoding of one kind's blocks into a function. `parts` are the addresses of one block's bytes in each part."""

    def __init__(self, f: Function, kind: Kind):
        self.f, self.kind = f, kind
        self.half = jit.host().half
        self.made: dict[tuple, str] = {}

    # ---- small helpers ----

    def const(self, type_: str, value, lanes: int) -> str:
        return self.f.constant(type_, value, lanes)

    def both(self, how: str, a, b, lanes: int) -> str:
        """llvm.umin, umax, smin or smax of two vectors of i32; either may be a constant."""
        t, name = vector("i32", lanes), f"llvm.{how}.{'v' + str(lanes) if lanes > 1 else ''}i32"
        self.f.declared.add(f"declare {t} @{name}({t}, {t})")
        return self.f.op(f"call {t} @{name}({t} {a}, {t} {b})")

    def real(self, value: float, lanes: int) -> str:
        return self.f.constant("float", literal(value, "float32"), lanes)

    def field(self, parts, name: str, offset=0) -> str:
        part, at = self.kind.at(name)
        return self.f.at("i8", self.f.at("i8", parts[part], at), offset) if at else self.f.at("i8", parts[part], offset)

    def byte(self, address) -> str:
        """An unsigned byte as an i32."""
        return self.f.op(f"zext i8 {self.f.load('i8', address)} to i32")

    # ---- scales ----

    def number(self, name: str, address, lanes: int = 1, step=None) -> str:
        """A scale of format `name` in memory (or `lanes` of them, one after the other or `step` bytes apart) as a float."""
        f = self.f
        if name == "float32":
            return self.gathered("float", address, lanes, step)
        if name in ("float16", "bfloat16"):
            return f.decode(name, self.gathered("i16", address, lanes, step), lanes, self.half)
        code = f.op(f"zext {vector('i8', lanes)} {self.gathered('i8', address, lanes, step)} to {vector('i32', lanes)}")
        return self.power(code, lanes) if name == "float8_e8m0fnu" else self.minifloat(code, lanes, name)

    def gathered(self, element: str, address, lanes: int, step) -> str:
        """`lanes` elements from memory, `step` bytes apart (None: one after the other)."""
        f, t = self.f, vector(element, lanes)
        if step is None:
            return f.load(t, address, 1)
        found = "poison"
        for i in range(lanes):
            found = f.op(f"insertelement {t} {found}, {element} {f.load(element, f.at('i8', address, f.mul(step, i) if i else 0), 1)}, i64 {i}")
        return found

    def power(self, code, lanes: int) -> str:
        """2**(code - 127) of an E8M0 code in i32 lanes; 255 is NaN, and 0 is a subnormal number of float32."""
        f, i32 = self.f, vector("i32", lanes)
        bits = f.op(f"shl {i32} {code}, {self.const('i32', 23, lanes)}")
        bits = self.select(f.op(f"icmp eq {i32} {code}, {self.const('i32', 0, lanes)}"), self.const("i32", 0x400000, lanes), bits, lanes)
        bits = self.select(f.op(f"icmp eq {i32} {code}, {self.const('i32', 255, lanes)}"), self.const("i32", 0x7FC00000, lanes), bits, lanes)
        return f.op(f"bitcast {i32} {bits} to {vector('float', lanes)}")

    def select(self, condition, a, b, lanes: int, type_: str = "i32") -> str:
        t = vector(type_, lanes)
        return self.f.op(f"select {vector('i1', lanes)} {condition}, {t} {a}, {t} {b}")

    def scales(self, parts, span: int, tensor_scale: str) -> tuple[str, str | None]:
        """(factor, addend or None) of span `span` of a block, each a vector of floats: value = code * factor + addend."""
        f, k = self.f, self.kind
        if k.order in ("k4", "k5"):
            both = self._of_block(parts, self._six_bit)
            return tuple(self.spread("float", both, 16, [lane] * SPAN) for lane in (span, 8 + span))  # type: ignore[return-value]
        if k.order == "k6":
            every = self._of_block(parts, self._sixteen)
            return self.spread("float", every, 16, [2 * span] * (SPAN // 2) + [2 * span + 1] * (SPAN // 2)), None
        factor = self.number(k.scale, self.field(parts, "scale"))
        if k.tensor_scale:
            factor = f.times("float", 1, factor, tensor_scale)
        if k.unit:
            factor = f.times("float", 1, factor, literal(2.0**k.unit, "float32"))
        least = f.splat("float", self.number("float16", self.field(parts, "min")), k.span) if k.zero == "min" else None
        return f.splat("float", factor, k.span), least

    def _of_block(self, parts, make) -> str:
        """make(parts), written once for all spans of a block."""
        key = make.__name__, *parts
        if key not in self.made:
            self.made[key] = make(parts)
        return self.made[key]

    def _six_bit(self, parts) -> str:
        """<16 x float>: the scales of eight groups, then their addends. Codes of six bits: the first four groups' have bytes of their own, whose free bits complete the last four's."""
        f = self.f
        own_scales, own_mins, rest = (f.load("i32", self.field(parts, "scales", 4 * i), 1) for i in range(3))
        low = lambda x, mask: f.op(f"and i32 {x}, {mask}")
        right = lambda x, by: f.op(f"lshr i32 {x}, {by}")
        top = lambda x: f.op(f"shl i32 {low(right(x, 6), 0x03030303)}, 4")
        last = lambda x, of: f.op(f"or i32 {low(x, 0x0F0F0F0F)}, {top(of)}")
        words, codes = (low(own_scales, 0x3F3F3F3F), last(rest, own_scales), low(own_mins, 0x3F3F3F3F), last(right(rest, 4), own_mins)), "poison"
        for i, word in enumerate(words):
            codes = f.op(f"insertelement <4 x i32> {codes}, i32 {word}, i64 {i}")
        wide = f.op(f"zext <16 x i8> {f.op(f'bitcast <4 x i32> {codes} to <16 x i8>')} to <16 x i32>")
        scale, least = (self.number("float16", self.field(parts, name)) for name in ("scale", "min"))
        units = self.joined("float", f.splat("float", scale, 8), f.splat("float", f.op(f"fneg float {least}"), 8), 8)
        return f.times("float", 16, f.op(f"sitofp <16 x i32> {wide} to <16 x float>"), units)

    def _sixteen(self, parts) -> str:
        """<16 x float>: the scales of sixteen groups, signed bytes times one number."""
        f = self.f
        wide = f.op(f"sext <16 x i8> {f.load('<16 x i8>', self.field(parts, 'scales'), 1)} to <16 x i32>")
        return f.times("float", 16, f.op(f"sitofp <16 x i32> {wide} to <16 x float>"), f.splat("float", self.number("float16", self.field(parts, "scale")), 16))

    def spread(self, element: str, value, lanes: int, order) -> str:
        """A vector of the lanes of `value` that `order` names."""
        picked = ", ".join(f"i32 {i}" for i in order)
        return self.f.op(f"shufflevector {vector(element, lanes)} {value}, {vector(element, lanes)} poison, <{len(order)} x i32> <{picked}>")

    def zero_point(self, parts) -> str | None:
        """The group's zero point as a float, or None."""
        return self.f.op(f"uitofp i32 {self.byte(self.field(parts, 'zero'))} to float") if self.kind.zero == "zero" else None

    def decoded(self, codes, lanes: int, zero, factor, addend) -> str:
        """The numbers of a span of codes: (code - zero point) * factor + addend."""
        f = self.f
        value = self.values(codes, lanes)
        if zero is not None:
            value = f.op(f"fsub {vector('float', lanes)} {value}, {f.splat('float', zero, lanes)}")
        value = f.times("float", lanes, value, factor)
        return f.plus("float", lanes, value, addend) if addend is not None else value

    # ---- codes ----

    def joined(self, element: str, a, b, lanes: int) -> str:
        """Two vectors one after the other."""
        order = ", ".join(f"i32 {i}" for i in range(2 * lanes))
        t = vector(element, lanes)
        return self.f.op(f"shufflevector {t} {a}, {t} {b}, <{2 * lanes} x i32> <{order}>")

    def span_bytes(self) -> int:
        """Bytes of a whole span's codes, where spans follow one another."""
        return self.kind.span * self.kind.bits // 8

    def codes(self, parts, span: int = 0) -> str:
        """The codes of span `span` of a block, in order, one a byte: <span x i8>."""
        return self._ORDERS[self.kind.order](self, parts, span)

    def stream(self, address) -> str:
        """The codes of the span whose bytes begin at `address`, for orders in which spans follow one another."""
        return {"pairs": self._pairs, "bytes": self._bytes, "sixes": self._sixes}[self.kind.order](address)

    def _whole(self, parts, span):
        return self.stream(self.field(parts, "codes", span * self.span_bytes()))

    def _bytes(self, address):
        return self.f.load(vector("i8", self.kind.span), address, 1)

    def _pairs(self, address):
        """Low nibble first."""
        f, n = self.f, self.kind.span // 2
        i16 = vector("i16", n)
        wide = f.op(f"zext {vector('i8', n)} {f.load(vector('i8', n), address, 1)} to {i16}")
        both = f.op(f"or {i16} {wide}, {f.op(f'shl {i16} {wide}, ' + self.const('i16', 4, n))}")
        return f.op(f"bitcast {i16} {f.op(f'and {i16} {both}, ' + self.const('i16', 0x0F0F, n))} to {vector('i8', 2 * n)}")

    def _sixes(self, address):
        """Four codes in three bytes, the first in the lowest bits."""
        f, n = self.f, self.kind.span
        raw = f.load(f"<{n * 3 // 4} x i8>", address, 1)
        order = ", ".join(f"i32 {3 * (i // 4) + i % 4 if i % 4 < 3 else n * 3 // 4}" for i in range(n))
        words = f.op(f"shufflevector <{n * 3 // 4} x i8> {raw}, <{n * 3 // 4} x i8> zeroinitializer, <{n} x i32> <{order}>")
        words = f.op(f"bitcast <{n} x i8> {words} to <{n // 4} x i32>")
        wide = f.op(f"shufflevector <{n // 4} x i32> {words}, <{n // 4} x i32> poison, <{n} x i32> <" + ", ".join(f"i32 {i // 4}" for i in range(n)) + ">")
        wide = f.op(f"lshr <{n} x i32> {wide}, <" + ", ".join(f"i32 {6 * (i % 4)}" for i in range(n)) + ">")
        return f.op(f"trunc <{n} x i32> {f.op(f'and <{n} x i32> {wide}, ' + self.const('i32', 63, n))} to <{n} x i8>")

    def _shifted(self, address, n: int, shift: int, bits: int) -> str:
        """`bits` bits from bit `shift` on of n bytes."""
        f, t = self.f, vector("i8", n)
        raw = f.load(t, address, 1)
        if shift:
            raw = f.op(f"lshr {t} {raw}, {self.const('i8', shift, n)}")
        return f.op(f"and {t} {raw}, {self.const('i8', (1 << bits) - 1, n)}") if shift + bits < 8 else raw

    def _halves(self, parts, span):
        """Sixteen bytes: low nibbles are the first sixteen elements, high nibbles the others."""
        at = self.field(parts, "codes")
        return self.joined("i8", self._shifted(at, 16, 0, 4), self._shifted(at, 16, 4, 4), 16)

    def _above(self, low, high, by: int, n: int) -> str:
        f, t = self.f, vector("i8", n)
        return f.op(f"or {t} {low}, {f.op(f'shl {t} {high}, ' + self.const('i8', by, n))}")

    def _halves_and_bits(self, parts, span):
        """A fifth bit of each: bit i of a 32-bit word."""
        f = self.f
        bits = f.op(f"bitcast i32 {f.load('i32', self.field(parts, 'high'), 1)} to <32 x i1>")
        return self._above(self._halves(parts, span), f.op(f"zext <32 x i1> {bits} to <32 x i8>"), 4, 32)

    def _k4(self, parts, span):
        return self._shifted(self.field(parts, "codes", 32 * (span // 2)), 32, 4 * (span % 2), 4)

    def _k5(self, parts, span):
        return self._above(self._k4(parts, span), self._shifted(self.field(parts, "high"), 32, span, 1), 4, 32)

    def _k6(self, parts, span):
        half, quarter = divmod(span, 4)
        low = self._shifted(self.field(parts, "codes", 64 * half + 32 * (quarter % 2)), 32, 4 * (quarter // 2), 4)
        return self._above(low, self._shifted(self.field(parts, "high", 32 * half), 32, 2 * quarter, 2), 4, 32)

    _ORDERS = {"pairs": _whole, "bytes": _whole, "sixes": _whole, "halves": _halves, "halves+bits": _halves_and_bits, "k4": _k4, "k5": _k5, "k6": _k6}

    # ---- from codes to numbers ----

    def values(self, codes, lanes: int) -> str:
        """Codes (one a byte) as floats, before any scale."""
        f, k = self.f, self.kind
        dtype = names()[k.element]
        i8, i32, f32 = vector("i8", lanes), vector("i32", lanes), vector("float", lanes)
        if dtype.kind == "float":
            wide = f.op(f"zext {i8} {codes} to {i32}")
            return self.e2m1(wide, lanes) if k.element == "float4_e2m1fn" else self.minifloat(wide, lanes, k.element)
        if dtype.kind == "int" and dtype.bits < 8:
            top = 1 << (dtype.bits - 1)
            codes = f.op(f"sub {i8} {f.op(f'xor {i8} {codes}, ' + self.const('i8', top, lanes))}, {self.const('i8', top, lanes)}")
        if k.bias:
            codes = f.op(f"sub {i8} {codes}, {self.const('i8', k.bias, lanes)}")
        how = "sext" if dtype.kind == "int" or k.bias else "zext"
        return f.op(f"sitofp {i32} {f.op(f'{how} {i8} {codes} to {i32}')} to {f32}")

    def e2m1(self, code, lanes: int) -> str:
        """E2M1 codes in i32 lanes as floats: looked up in a register where the host can, else in the nibbles of a constant."""
        f, i32, f32 = self.f, vector("i32", lanes), vector("float", lanes)
        found = lookup(f, code, lanes, E2M1)
        if found is not None:
            return found
        at = f.op(f"shl {i32} {f.op(f'and {i32} {code}, ' + self.const('i32', 7, lanes))}, {self.const('i32', 2, lanes)}")
        twice = f.op(f"and {i32} {f.op(f'lshr {i32} ' + self.const('i32', -0x379BCDF0, lanes) + f', {at}')}, {self.const('i32', 15, lanes)}")  # 0xC8643210
        size = f.times("float", lanes, f.op(f"sitofp {i32} {twice} to {f32}"), self.real(0.5, lanes))
        return self.signed(size, f.op(f"shl {i32} {code}, {self.const('i32', 28, lanes)}"), lanes)

    def signed(self, size, sign, lanes: int) -> str:
        """`size` with the top bit of the i32 `sign`."""
        f, i32, f32 = self.f, vector("i32", lanes), vector("float", lanes)
        top = f.op(f"and {i32} {sign}, {self.const('i32', -(2**31), lanes)}")
        return f.op(f"bitcast {i32} {f.op(f'or {i32} {top}, ' + f.op(f'bitcast {f32} {size} to {i32}'))} to {f32}")

    def minifloat(self, code, lanes: int, name: str) -> str:
        """Codes of a float of at most eight bits, in i32 lanes, as floats: subnormals by counting units, so that no float32 is ever subnormal on the way."""
        f, i32, f32 = self.f, vector("i32", lanes), vector("float", lanes)
        e = names()[name].encoding
        low = f.op(f"and {i32} {code}, {self.const('i32', e.magnitude_mask, lanes)}")
        bits = f.op(f"shl {i32} {low}, {self.const('i32', 23 - e.mantissa, lanes)}")
        bits = f.op(f"add {i32} {bits}, {self.const('i32', (127 - e.bias) << 23, lanes)}")
        units = f.times("float", lanes, f.op(f"sitofp {i32} {low} to {f32}"), self.real(2.0 ** (1 - e.bias - e.mantissa), lanes))
        small = f.op(f"icmp ult {i32} {low}, {self.const('i32', 1 << e.mantissa, lanes)}")
        bits = self.select(small, f.op(f"bitcast {f32} {units} to {i32}"), bits, lanes)
        if e.infinity_code is not None:  # the mantissa stays: zero says infinite, anything else NaN
            filled = f.op(f"or {i32} {bits}, {self.const('i32', 0x7F800000, lanes)}")
            bits = self.select(f.op(f"icmp uge {i32} {low}, {self.const('i32', e.infinity_code, lanes)}"), filled, bits, lanes)
        elif e.nan_code is not None:
            bits = self.select(f.op(f"icmp eq {i32} {low}, {self.const('i32', e.nan_code, lanes)}"), self.const("i32", 0x7FC00000, lanes), bits, lanes)
        size = f.op(f"bitcast {i32} {bits} to {f32}")
        return self.signed(size, f.op(f"shl {i32} {code}, {self.const('i32', 32 - e.bits, lanes)}"), lanes) if e.sign else size

    # ---- from numbers to codes ----

    def encode_minifloat(self, value, lanes: int, name: str) -> str:
        """Floats as codes (i32 lanes), rounded to nearest even; what is too large becomes the largest number."""
        f, i32, f32 = self.f, vector("i32", lanes), vector("float", lanes)
        e = names()[name].encoding
        c = lambda v: self.const("i32", v, lanes)
        all_bits = f.op(f"bitcast {f32} {value} to {i32}")
        low = f.op(f"and {i32} {all_bits}, {c(0x7FFFFFFF)}")
        low = self.both("umin", low, c(_bits(e.largest)), lanes)
        drop = 23 - e.mantissa
        odd = f.op(f"and {i32} {f.op(f'lshr {i32} {low}, {c(drop)}')}, {c(1)}")
        up = f.op(f"add {i32} {f.op(f'add {i32} {low}, ' + c((1 << (drop - 1)) - 1 - ((127 - e.bias) << 23)))}, {odd}")
        normal = f.op(f"ashr {i32} {up}, {c(drop)}")
        # Below the normal numbers: adding a power of two whose last place is the format's smallest step makes the adder itself round.
        align = 2.0 ** (24 - e.bias - e.mantissa)
        moved = f.plus("float", lanes, f.op(f"bitcast {i32} {low} to {f32}"), self.real(align, lanes))
        units = f.op(f"sub {i32} {f.op(f'bitcast {f32} {moved} to {i32}')}, {c(_bits(align))}")
        small = f.op(f"icmp ult {i32} {low}, {c(_bits(e.smallest_normal))}")
        code = self.select(small, units, normal, lanes)
        if not e.sign:
            return code
        sign = f.op(f"and {i32} {f.op(f'lshr {i32} {all_bits}, {c(32 - e.bits)}')}, {c(e.sign_bit)}")
        return f.op(f"or {i32} {code}, {sign}")

    def encode_integer(self, value, lanes: int, low: int, high: int, zero=None) -> str:
        """Floats as integers in low…high (i32 lanes): rounded to nearest even, moved by `zero` (a whole float), cut off. A NaN becomes `low`."""
        f, i32, f32 = self.f, vector("i32", lanes), vector("float", lanes)
        magic = 1.5 * 2.0**23  # its last place is 1: the adder rounds, and the sum's low bits are the integer
        # Numbers are cut off first, which rounding does not undo: the bounds are integers.
        for how, limit in (("ogt", low), ("olt", high)):
            bound = self.real(limit, lanes)
            if zero is not None:
                bound = f.op(f"fsub {f32} {bound}, {f.splat('float', zero, lanes)}")
            value = self.select(f.op(f"fcmp {how} {f32} {value}, {bound}"), value, bound, lanes, "float")
        moved = f.plus("float", lanes, value, self.real(magic, lanes))
        if zero is not None:
            moved = f.plus("float", lanes, moved, f.splat("float", zero, lanes))
        return f.op(f"sub {i32} {f.op(f'bitcast {f32} {moved} to {i32}')}, {self.const('i32', _bits(magic), lanes)}")

    def store_codes(self, codes, address) -> None:
        """Writes a span of codes (i32 lanes) into its bytes, for orders in which spans follow one another."""
        f, n = self.f, self.kind.span
        if self.kind.order == "sixes":
            masked = f.op(f"and <{n} x i32> {codes}, {self.const('i32', 63, n)}")
            placed = f.op(f"shl <{n} x i32> {masked}, <" + ", ".join(f"i32 {6 * (i % 4)}" for i in range(n)) + ">")
            pick = lambda q: f.op(f"shufflevector <{n} x i32> {placed}, <{n} x i32> poison, <{n // 4} x i32> <" + ", ".join(f"i32 {4 * i + q}" for i in range(n // 4)) + ">")
            words = pick(0)
            for q in (1, 2, 3):
                words = f.op(f"or <{n // 4} x i32> {words}, {pick(q)}")
            raw = f.op(f"bitcast <{n // 4} x i32> {words} to <{n} x i8>")
            raw = f.op(f"shufflevector <{n} x i8> {raw}, <{n} x i8> poison, <{n * 3 // 4} x i32> <" + ", ".join(f"i32 {4 * (i // 3) + i % 3}" for i in range(n * 3 // 4)) + ">")
            f.store(f"<{n * 3 // 4} x i8>", raw, address, 1)
            return
        small = f.op(f"trunc <{n} x i32> {codes} to <{n} x i8>")
        if self.kind.order == "bytes":
            f.store(f"<{n} x i8>", small, address, 1)
            return
        small = f.op(f"and <{n} x i8> {small}, {self.const('i8', 15, n)}")
        i16 = vector("i16", n // 2)
        two = f.op(f"bitcast <{n} x i8> {small} to {i16}")
        both = f.op(f"or {i16} {two}, {f.op(f'lshr {i16} {two}, ' + self.const('i16', 4, n // 2))}")
        f.store(vector("i8", n // 2), f.op(f"trunc {i16} {both} to {vector('i8', n // 2)}"), address, 1)


def _bits(value: float) -> int:
    """The bits of a positive float32."""
    import struct

    return struct.unpack("<i", struct.pack("<f", value))[0]


def lookup(f: Function, code, lanes: int, table) -> str | None:
    """table[code & 7] with the sign of bit 3, for i32 lanes, by one shuffle of a register that holds the table; None where the host has no such instruction."""
    host = jit.host()
    width = 16 if "+avx512f" in host.features and host.vector_bits == 512 else 8 if "+avx2" in host.features else 0
    if not width or lanes % width:
        return None
    entries = [*table, *(-v for v in table)][:width]
    text = f"<{width} x float> <" + ", ".join(f"float {literal(v, 'float32')}" for v in entries) + ">"
    found = []
    for start in range(0, lanes, width):
        order = ", ".join(f"i32 {start + i}" for i in range(width))
        part = code if lanes == width else f.op(f"shufflevector <{lanes} x i32> {code}, <{lanes} x i32> poison, <{width} x i32> <{order}>")
        if width == 16:
            f.declared.add("declare <16 x float> @llvm.x86.avx512.permvar.sf.512(<16 x float>, <16 x i32>)")
            value = f.op(f"call <16 x float> @llvm.x86.avx512.permvar.sf.512({text}, <16 x i32> {part})")
        else:
            f.declared.add("declare <8 x float> @llvm.x86.avx2.permps(<8 x float>, <8 x i32>)")
            value = f.op(f"call <8 x float> @llvm.x86.avx2.permps({text}, <8 x i32> {part})")
            sign = f.op(f"shl <8 x i32> {part}, {f.constant('i32', 28, 8)}")
            sign = f.op(f"and <8 x i32> {sign}, {f.constant('i32', -(2**31), 8)}")
            value = f.op(f"bitcast <8 x i32> {f.op('or <8 x i32> ' + sign + ', ' + f.op(f'bitcast <8 x float> {value} to <8 x i32>'))} to <8 x float>")
        found.append(value)
    while len(found) > 1:
        n = len(found)
        here = lanes // n
        order = ", ".join(f"i32 {i}" for i in range(2 * here))
        found = [f.op(f"shufflevector <{here} x float> {a}, <{here} x float> {b}, <{2 * here} x i32> <{order}>") for a, b in zip(found[::2], found[1::2])]
    return found[0]
