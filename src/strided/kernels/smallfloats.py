"""Floats of eight bits or fewer as integer code: from a code to the float32 it stands for, and from a float32 to the nearest code.

Both are written once, from an `Encoding` (encoding.py), in the notation of scalar.py: a value may be a scalar, which LLVM's loop vectoriser widens, or
a vector. No branches, no tables, and no float32 subnormals on the way, which would be slow, or zero under flush-to-zero.
"""
from __future__ import annotations

import struct

from ..encoding import Encoding
from .scalar import Value, select

_INFINITY, _NAN = 0x7F800000, 0x7FC00000  # float32's exponent field filled; its quiet NaN


def decode(e: Encoding, code: Value) -> Value:
    """The float that an i8 code stands for; bits above the format's are zero."""
    code = code.to("i32")
    if e.specials == "scale":  # the exponent alone; code 0 is float32's subnormal 2**-127
        bits = select(code == 0, 0x400000, code << 23)
        return select(code == e.magnitude_mask, _NAN, bits).floating()
    magnitude = code & e.magnitude_mask
    placed = magnitude << (23 - e.mantissa)
    normal = placed + ((127 - e.bias) << 23)
    hidden = 128 - e.bias << 23  # 2**(1 - bias): a subnormal is the number with this hidden bit, less it
    subnormal = (placed + hidden).floating() - 2.0 ** (1 - e.bias)
    bits = select(magnitude < 1 << e.mantissa, subnormal.bits(), normal)
    if e.infinity_code is not None:
        bits = select(magnitude >= e.infinity_code, placed | _INFINITY, bits)
    elif e.nan_code is not None:
        bits = select((code if e.specials == "negative zero" else magnitude) == e.nan_code, _NAN, bits)
    return (bits | (code & e.sign_bit) << (32 - e.bits)).floating()


def encode(e: Encoding, x: Value, saturate: bool | None = None) -> Value:
    """The i8 code nearest to a float, halves to even; overflow and NaN as the encoding says, or `saturate` says what becomes of overflow."""
    raw = x.bits()
    magnitude = raw & 0x7FFFFFFF
    if e.specials == "scale":  # the sign is dropped; halves go up, but for 2**-127, which is code 0 exactly
        carried = select(magnitude < 1 << 23, magnitude + 0x3FFFFF, magnitude + 0x400000) >> 23
        return _least(carried, e.magnitude_mask).to("i8")
    shift = 23 - e.mantissa
    # normal results: rebias the exponent and round by carrying into the kept bits
    odd = (magnitude >> shift) & 1
    normal = (magnitude + ((1 << (shift - 1)) - 1 - ((127 - e.bias) << 23)) + odd) >> shift
    # subnormal results: adding 2**23 of the smallest steps lines the mantissa up with them and rounds it in hardware
    steps = 2.0 ** (1 - e.bias - e.mantissa + 23)
    aligned = (magnitude.floating() + steps).bits()
    subnormal = aligned - _bits(steps)
    code = select(magnitude < (128 - e.bias) << 23, subnormal, normal)
    sign = (raw >> (32 - e.bits)) & e.sign_bit
    nan = magnitude > _INFINITY
    overflow = e.overflow if saturate is None else "saturate" if saturate else "infinity" if e.infinity_code is not None else "nan"
    if e.specials == "negative zero":  # NaN is the code of -0, and zero has no sign
        signed = select(code == 0, 0, _least(code, e.largest_code) | sign)
        beyond = nan if overflow == "saturate" else magnitude > _last_kept(e)  # infinities and NaN, too
        return select(beyond, e.sign_bit, signed).to("i8")
    if e.nan_code is None:  # -0, whatever its sign
        return select(nan, e.sign_bit, _least(code, e.largest_code) | sign).to("i8")
    top = e.largest_code if overflow == "saturate" else e.infinity_code if e.infinity_code is not None else e.nan_code
    return (select(nan, e.nan_code, _least(code, top)) | sign).to("i8")


def _least(x: Value, bound: int) -> Value:
    return select(x > bound, bound, x)


def _last_kept(e: Encoding) -> int:
    """Bits of the largest float32 that still rounds to the format's largest number: half a step above it where its code is even, else just below that."""
    return _bits(e.largest) + (1 << (22 - e.mantissa)) - (e.largest_code & 1)


def _bits(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]
