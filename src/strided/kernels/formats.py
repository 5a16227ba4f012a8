"""Number formats in IR text: what types values have while they are computed with, and how they lie in memory.

Holds the tables of types, promotion, literals, and `Formats`: loads, stores and conversions. Does not hold arithmetic (lower.py).

A value in flight has a *compute type*: bool (an i1), the integers at their own width, float32, float64; smaller floats exist in memory only, and integers
below eight bits are bytes that wrap when they are stored. How a small float decodes and encodes follows from its `Encoding` (dtypes.py) alone.
Types "weak int" and "weak float" belong to Python numbers and run-time scalars: they are i64 and double until they meet a tensor's element.
"""
from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import dtypes
from ..encoding import Encoding
from ..errors import PackedOperand
from . import jit, scalar, smallfloats
from .loops import Body

IR = {"bool": "i1", "weak int": "i64", "weak float": "double", "float32": "float", "float64": "double",
      **{f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}}
MEMORY = {**IR, "bool": "i8", "float16": "half", "bfloat16": "i16"}
ITEMSIZE = {"bool": 1, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
            **{f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)}}
# A complex element is two numbers of PARTS, real then imaginary; in flight its Value's text is that pair of texts.
PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
COMPLEX = ("complex64", "complex128")
MEMORY.update({name: f"[2 x {MEMORY[part] if part != 'float16' else 'i16'}]" for name, part in PARTS.items()})
ITEMSIZE.update({name: 2 * ITEMSIZE[part] for name, part in PARTS.items()})
FLOATS = ("float32", "float64", "weak float")
SUFFIX = {"float32": "f32", "float64": "f64", "weak float": "f64"}


# Floats of a byte or less, a code a byte; and integers below eight bits, sign-extended to a byte each.
ENCODINGS: dict[str, Encoding] = {d.unpacked.name: d.encoding for d in dtypes.all_dtypes() if d.encoding is not None and d.bits <= 8}
SMALL_INTS = {d.unpacked.name: d for d in dtypes.all_dtypes() if d.packed and d.encoding is None}
_PACKED = frozenset(d.name for d in dtypes.all_dtypes() if d.packed)
MEMORY.update(dict.fromkeys((*ENCODINGS, *SMALL_INTS), "i8"))
ITEMSIZE.update(dict.fromkeys((*ENCODINGS, *SMALL_INTS), 1))


class Value(NamedTuple):
    """A computed scalar: its text in the IR (a pair of texts for a complex type), its compute type, and the Python number if it is a constant."""
    text: Any
    type: str
    literal: Any = None


def name_of(dtype) -> str:
    name = getattr(dtype, "name", dtype)
    if name not in MEMORY:
        if name in _PACKED:
            raise PackedOperand
        raise NotImplementedError(f"kernels do not compute with {dtype} elements yet: convert them to float32 first with .to(torch.float32)")
    return name


def compute_type(dtype) -> str:
    """The type arithmetic on elements of `dtype` runs in."""
    name = name_of(dtype)
    if name in SMALL_INTS:
        return f"{SMALL_INTS[name].kind}8"
    return name if name in IR or name in COMPLEX else "complex64" if name in PARTS else "float32"


def promote(a: str, b: str, default_float: str = "float32") -> str:
    """The common compute type of two, by PyTorch's rules: bool < integers < floats, and a Python number only decides its kind."""
    if a == b:
        return a
    if a in COMPLEX or b in COMPLEX:
        return "complex128" if {a, b} & {"complex128", "float64"} else "complex64"
    if a.startswith("weak") and not b.startswith("weak"):
        a, b = b, a
    if b == "weak float":
        return b if a == "weak int" else a if a in FLOATS else default_float
    if b == "weak int":
        return "int64" if a == "bool" else a
    if a in FLOATS or b in FLOATS:
        return max((t for t in (a, b) if t in FLOATS), key=FLOATS.index)
    if a == "bool" or b == "bool":
        return b if a == "bool" else a
    bits = max(bits_of(a), bits_of(b))
    unsigned, signed = sorted((a, b), key=lambda t: t[0] != "u")
    if signed[0] == "u" or unsigned[0] != "u":
        return f"uint{bits}" if signed[0] == "u" else f"int{bits}"
    if bits_of(unsigned) < bits_of(signed):
        return signed
    if bits_of(unsigned) == 64:
        raise NotImplementedError("uint64 and signed integers have no common type: convert one of them first")
    return f"int{2 * bits_of(unsigned)}"


def bits_of(type: str) -> int:
    return int(IR[type][1:])


def unsigned(type: str) -> bool:
    return type == "bool" or type[0] == "u"


def literal(value, type: str) -> str:
    """IR text of a Python number as a constant of compute type `type`."""
    if type in FLOATS:
        value = float(value)
        if type == "float32":
            try:
                value = struct.unpack("<f", struct.pack("<f", value))[0]
            except OverflowError:
                value = math.copysign(math.inf, value)
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    if type == "bool":
        return "true" if value else "false"
    bits = bits_of(type)
    wrapped = int(value) & (2 ** bits - 1)
    return str(wrapped - 2 ** bits if wrapped >> (bits - 1) else wrapped)


class InBody(scalar.Code):
    """The notation of scalar.py for code that goes into a function's text: `body` is what appends an instruction and returns its name."""

    def __init__(self, body: Callable[[str], str]):
        super().__init__()
        self.body = body

    def emit(self, type: str, text: str) -> scalar.Value:
        return self.at(self.body(text), type)

    def at(self, name: str, type: str) -> scalar.Value:
        """A value that is there already."""
        return scalar.Value(self, name, type)


class Formats:
    """Writes loads, stores and conversions of scalars into `body`."""

    def __init__(self, body: Body):
        self.body, self.half_in_hardware = body, jit.host().half

    # ---- memory ----

    def load(self, dtype, address: str, extra: str = "") -> Value:
        """The element of `dtype` at `address`, decoded. `extra` is metadata for the access."""
        name = name_of(dtype)
        memory = MEMORY[name]
        if name in PARTS:  # two loads of neighbours, which LLVM's vectoriser takes for what they are
            part = PARTS[name]
            texts = [self.load(part, place, extra).text for place in (address, self.imaginary_place(name, address))]
            return Value(tuple(texts), compute_type(name))
        raw = self.body(f"load {memory}, ptr {address}, align {ITEMSIZE[name]}{extra}" if name != "float16" or self.half_in_hardware
                        else f"load i16, ptr {address}, align 2{extra}")
        return self.decode(name, raw)

    def store(self, dtype, value: Value, address: str, extra: str = "") -> None:
        """Stores `value`, converted to `dtype`, at `address`."""
        name = name_of(dtype)
        if name in PARTS:
            re, im = self.parts(self.convert(value, compute_type(name)))
            self.store(PARTS[name], re, address, extra)
            self.store(PARTS[name], im, self.imaginary_place(name, address), extra)
            return
        raw = self.encode(name, value)
        memory = "i16" if name == "float16" and not self.half_in_hardware else MEMORY[name]
        self.body.do(f"store {memory} {raw}, ptr {address}, align {ITEMSIZE[name]}{extra}")

    def imaginary_place(self, name: str, address: str) -> str:
        """Where the imaginary part of the complex element at `address` lies."""
        return self.body.at(address, str(ITEMSIZE[PARTS[name]]))

    def parts(self, value: Value) -> tuple[Value, Value]:
        """Real and imaginary part of a Value; 0 for the imaginary part of a real one."""
        if value.type in COMPLEX:
            re, im = value.text
            return Value(re, PARTS[value.type]), Value(im, PARTS[value.type])
        return value, self.constant(0.0, value.type if value.type in FLOATS else "weak float")

    def decode(self, name: str, raw: str) -> Value:
        if name == "bool":
            return Value(self.body(f"icmp ne i8 {raw}, 0"), "bool")
        if name == "bfloat16":
            wide = self.body(f"zext i16 {raw} to i32")
            bits = self.body(f"shl i32 {wide}, 16")
            return Value(self.body(f"bitcast i32 {bits} to float"), "float32")
        if name == "float16":
            return Value(self.body(f"fpext half {raw} to float") if self.half_in_hardware else self._half_to_float(raw), "float32")
        if name in ENCODINGS:
            return Value(smallfloats.decode(ENCODINGS[name], InBody(self.body).at(raw, "i8")).name, "float32")
        return Value(raw, compute_type(name))

    def encode(self, name: str, value: Value) -> str:
        value = self.convert(value, compute_type(name))
        if name == "bool":
            return self.body(f"zext i1 {value.text} to i8")
        if name == "bfloat16":
            return self._float_to_bfloat(value.text)
        if name == "float16":
            return self.body(f"fptrunc float {value.text} to half") if self.half_in_hardware else self._float_to_half(value.text)
        if name in ENCODINGS:
            return smallfloats.encode(ENCODINGS[name], InBody(self.body).at(value.text, "float")).name
        if name in SMALL_INTS:  # the low bits stay, as in every integer format
            unused = 8 - SMALL_INTS[name].bits
            moved = self.body(f"shl i8 {value.text}, {unused}")
            return self.body(f"{'ashr' if SMALL_INTS[name].is_signed else 'lshr'} i8 {moved}, {unused}")
        return value.text

    def _float_to_bfloat(self, x: str) -> str:
        # to nearest, halves to even, by carrying into the kept bits; every NaN becomes 0x7FC0
        b = self.body
        bits = b(f"bitcast float {x} to i32")
        high = b(f"lshr i32 {bits}, 16")
        odd = b(f"and i32 {high}, 1")
        bias = b(f"add i32 {odd}, 32767")
        carried = b(f"add i32 {bits}, {bias}")
        rounded = b(f"lshr i32 {carried}, 16")
        nan = b(f"fcmp uno float {x}, 0.0")
        kept = b(f"select i1 {nan}, i32 {0x7FC0}, i32 {rounded}")
        return b(f"trunc i32 {kept} to i16")

    def _half_to_float(self, raw: str) -> str:
        # exponent and mantissa shifted into place, then scaled by 2**112: exact for subnormals too; infinities and NaN need the exponent filled
        b = self.body
        wide = b(f"zext i16 {raw} to i32")
        low = b(f"and i32 {wide}, {0x7FFF}")
        magnitude = b(f"shl i32 {low}, 13")
        small = b(f"bitcast i32 {magnitude} to float")
        scaled = b(f"fmul float {small}, {literal(2.0 ** 112, 'float32')}")
        finite = b(f"bitcast float {scaled} to i32")
        special = b(f"icmp uge i32 {magnitude}, {0x7C00 << 13}")
        filled = b(f"or i32 {magnitude}, {0x7F800000}")
        bits = b(f"select i1 {special}, i32 {filled}, i32 {finite}")
        top = b(f"and i32 {wide}, {0x8000}")
        sign = b(f"shl i32 {top}, 16")
        signed = b(f"or i32 {bits}, {sign}")
        return b(f"bitcast i32 {signed} to float")

    def _float_to_half(self, x: str) -> str:
        b = self.body
        bits = b(f"bitcast float {x} to i32")
        high = b(f"lshr i32 {bits}, 16")
        sign = b(f"and i32 {high}, {0x8000}")
        magnitude = b(f"and i32 {bits}, {0x7FFFFFFF}")
        # normal results: rebias the exponent and round to nearest even by carrying; overflow carries into infinity
        kept = b(f"lshr i32 {magnitude}, 13")
        odd = b(f"and i32 {kept}, 1")
        biased = b(f"add i32 {magnitude}, {4095 - (112 << 23)}")
        carried = b(f"add i32 {biased}, {odd}")
        normal = b(f"lshr i32 {carried}, 13")
        # subnormal results: adding 0.5 lines the mantissa up with 2**-24 and rounds it in hardware
        value = b(f"bitcast i32 {magnitude} to float")
        shifted = b(f"fadd float {value}, {literal(0.5, 'float32')}")
        aligned = b(f"bitcast float {shifted} to i32")
        subnormal = b(f"sub i32 {aligned}, {0x3F000000}")
        tiny = b(f"icmp ult i32 {magnitude}, {113 << 23}")
        finite = b(f"select i1 {tiny}, i32 {subnormal}, i32 {normal}")
        nan = b(f"icmp ugt i32 {magnitude}, {255 << 23}")
        special = b(f"select i1 {nan}, i32 {0x7E00}, i32 {0x7C00}")
        huge = b(f"icmp uge i32 {magnitude}, {143 << 23}")
        result = b(f"select i1 {huge}, i32 {special}, i32 {finite}")
        whole = b(f"or i32 {result}, {sign}")
        return b(f"trunc i32 {whole} to i16")

    # ---- conversions ----

    def constant(self, value, type: str) -> Value:
        """A Python number as a Value of compute type `type`."""
        return Value(literal(value, type), type, value)

    def convert(self, value: Value, type: str) -> Value:
        """`value` in compute type `type`, as PyTorch converts: floats to integers truncate, anything non-zero (NaN too) is True, integers wrap."""
        source = value.type
        if source == type:
            return value
        if type in COMPLEX:
            return Value(tuple([self.convert(part, PARTS[type]).text for part in self.parts(value)]), type)
        if source in COMPLEX:  # the imaginary part is dropped, but counts for whether the number is 0
            re, im = self.parts(value)
            if type != "bool":
                return self.convert(re, type)
            return Value(self.body(f"or i1 {self.convert(re, type).text}, {self.convert(im, type).text}"), type)
        if value.literal is not None and not (source in FLOATS and type not in FLOATS):
            return self.constant(value.literal, type)
        ir_from, ir_to, x, b = IR[source], IR[type], value.text, self.body
        if type == "bool":
            return Value(b(f"fcmp une {ir_from} {x}, 0.0" if source in FLOATS else f"icmp ne {ir_from} {x}, 0"), type)
        if type in FLOATS:
            if source in FLOATS:
                text = x if ir_from == ir_to else b(f"{'fptrunc' if ir_from == 'double' else 'fpext'} {ir_from} {x} to {ir_to}")
            else:
                text = b(f"{'uitofp' if unsigned(source) else 'sitofp'} {ir_from} {x} to {ir_to}")
        elif source in FLOATS:
            text = self._float_to_int(x, ir_from, type)
        elif ir_from == ir_to:
            text = x
        elif int(ir_from[1:]) > int(ir_to[1:]):
            text = b(f"trunc {ir_from} {x} to {ir_to}")
        else:
            text = b(f"{'zext' if unsigned(source) else 'sext'} {ir_from} {x} to {ir_to}")
        return Value(text, type)

    def _float_to_int(self, x: str, ir: str, type: str) -> str:
        # As x86 converts: outside the 32- or 64-bit range (and for NaN) the smallest integer, then narrower types keep the low bits.
        b, bits = self.body, int(IR[type][1:])
        if type in ("uint32", "uint64"):  # the upper half of the range: through the signed type, moved down and back up
            half = literal(2.0 ** (bits - 1), "float64")
            upper = b(f"fcmp oge {ir} {x}, {half}")
            moved = b(f"fsub {ir} {x}, {half}")
            signed = self._float_to_int(b(f"select i1 {upper}, {ir} {moved}, {ir} {x}"), ir, type[1:])
            return b(f"xor i{bits} {signed}, {b(f'select i1 {upper}, i{bits} {-2 ** (bits - 1)}, i{bits} 0')}")
        via = 64 if type in ("int64", "uint8") else 32
        limit = float(2 ** (via - 1))
        # -2**31 - 1 truncated is out of range; in double the values between it and -2**31 still truncate into range
        low = literal(-limit - 1, "float64") if via == 32 and ir == "double" else literal(-limit, "float32" if ir == "float" else "float64")
        above = b(f"fcmp {'ogt' if via == 32 and ir == 'double' else 'oge'} {ir} {x}, {low}")
        below = b(f"fcmp olt {ir} {x}, {literal(limit, 'float64')}")
        inside = b(f"and i1 {above}, {below}")
        safe = b(f"select i1 {inside}, {ir} {x}, {ir} 0.0")
        near = b(f"fptosi {ir} {safe} to i{via}")
        whole = b(f"select i1 {inside}, i{via} {near}, i{via} {-2 ** (via - 1)}")
        return whole if via == bits else b(f"trunc i{via} {whole} to i{bits}")


def conversion_functions(names: tuple[str, ...] = ("decode_float16", "encode_float16", "encode_bfloat16")) -> str:
    """Internal functions for templates without expressions, named for a direction and a format: `float @decode_float16(i16)`, `i8
    @encode_float8_e5m2(float)`, … of the 16-bit floats and of every name in `ENCODINGS`."""
    text, declared = [], {}
    for name in names:
        direction, _, format = name.partition("_")
        lowering = Formats(Body())
        lowering.half_in_hardware = False  # raw bits in and out
        raw = "i8" if format in ENCODINGS else "i16"
        if direction == "decode":
            result, to, ir = lowering.decode(format, "%x").text, "float", raw
        else:
            result, to, ir = lowering.encode(format, Value("%x", "float32")), raw, "float"
        declared.update(lowering.body.declared)
        text += [f"define internal {to} @{name}({ir} %x) alwaysinline nounwind {{", *lowering.body.lines, f"  ret {to} {result}", "}"]
    return "\n".join([*declared, *text])
