"""What the bits of a floating-point element mean: one `Encoding` a format, from which limits, decoding and rounding are derived.

Holds exact arithmetic on single codes in Python, the reference that kernels are held to (kernels/formats.py writes the same rules as IR). Does not
hold which formats there are (dtypes.py), nor integers: their bits mean what their width and sign say.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import NamedTuple


class Encoding(NamedTuple):
    """A floating-point format: sign (0 or 1), exponent and mantissa bits, the exponent's bias, and what is special.

    specials: "ieee" (the highest exponent holds infinities and NaN), "nan" (only the code of all ones is NaN, no infinities), "negative zero" (that code
    is NaN; no infinities and no -0), "none" (every code is a finite number), "scale" (powers of two only: no zero, all ones is NaN).
    overflow, what a cast makes of numbers beyond the largest: "infinity", "nan" or "saturate" (infinity too becomes the largest number then).
    """

    sign: int
    exponent: int
    mantissa: int
    bias: int
    specials: str = "ieee"
    overflow: str = "infinity"

    # ---- what follows from it ----

    @property
    def bits(self) -> int:
        return self.sign + self.exponent + self.mantissa

    @property
    def sign_bit(self) -> int:
        """The code's bit that says negative; 0 where there is none."""
        return self.sign << (self.exponent + self.mantissa)

    @property
    def magnitude_mask(self) -> int:
        """All bits but the sign."""
        return (1 << (self.exponent + self.mantissa)) - 1

    @property
    def infinity_code(self) -> int | None:
        return ((1 << self.exponent) - 1) << self.mantissa if self.specials == "ieee" else None

    @property
    def nan_code(self) -> int | None:
        """The code that a NaN is stored as; None where there is no NaN (a cast stores -0 then)."""
        if self.specials == "ieee":  # the quiet NaN; in eight bits all ones, as PyTorch has it
            return self.magnitude_mask if self.bits <= 8 else (self.infinity_code or 0) | 1 << (self.mantissa - 1)
        if self.specials == "none":
            return None
        return self.sign_bit if self.specials == "negative zero" else self.magnitude_mask

    @property
    def largest_code(self) -> int:
        """The code of the largest finite number."""
        return {"ieee": (self.infinity_code or 0) - 1, "nan": self.magnitude_mask - 1, "scale": self.magnitude_mask - 1}.get(self.specials, self.magnitude_mask)

    @property
    def largest(self) -> float:
        return self.decode(self.largest_code)

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** -self.bias if self.specials == "scale" else 2.0 ** (1 - self.bias)

    @property
    def smallest(self) -> float:
        """The smallest positive number: a subnormal where the format has these."""
        return self.decode(0 if self.specials == "scale" else 1)

    @property
    def lowest(self) -> float:
        return -self.largest if self.sign else self.smallest_normal

    @property
    def eps(self) -> float:
        """The step behind 1."""
        return 2.0**-self.mantissa

    @property
    def resolution(self) -> float:
        """The decimal digits that survive, as a power of ten."""
        return float(f"1e-{math.floor(self.mantissa * math.log10(2))}")

    # ---- single codes ----

    def decode(self, code: int) -> float:
        """The number that a code stands for, exactly."""
        magnitude = code & self.magnitude_mask
        sign = -1.0 if code & self.sign_bit else 1.0
        if self.is_nan(code):
            return math.nan
        if self.infinity_code is not None and magnitude == self.infinity_code:
            return sign * math.inf
        field, low = magnitude >> self.mantissa, magnitude & ((1 << self.mantissa) - 1)
        if self.specials == "scale":
            return math.ldexp(1.0, field - self.bias)
        if field == 0:  # subnormal: no hidden bit
            return sign * math.ldexp(low, 1 - self.bias - self.mantissa)
        return sign * math.ldexp((1 << self.mantissa) + low, field - self.bias - self.mantissa)

    def is_nan(self, code: int) -> bool:
        if self.specials == "ieee":
            return code & self.magnitude_mask > (self.infinity_code or 0)
        if self.specials == "negative zero":
            return code == self.sign_bit
        return self.nan_code is not None and code & self.magnitude_mask == self.nan_code

    def encode(self, value: float | int | Fraction, overflow: str | None = None) -> int:
        """The code of the nearest number (halves to even), as a cast stores it; `overflow` takes the place of the format's own rule."""
        overflow = overflow or self.overflow
        if self.specials == "scale":
            return _nearest_power(value)
        if value != value:
            return self.sign_bit if self.nan_code is None else self.nan_code
        negative = math.copysign(1.0, value) < 0 if isinstance(value, float) else value < 0
        sign = self.sign_bit if negative else 0
        if isinstance(value, float) and math.isinf(value):
            code = self.magnitude_mask + 1
        else:
            exact = abs(Fraction(value))
            lowest = 1 - self.bias
            exponent = max(_exponent_of(exact), lowest) if exact else lowest
            units = round(exact / Fraction(2) ** (exponent - self.mantissa))  # of the last place; Python rounds halves to even
            code = ((exponent - lowest) << self.mantissa) + units
        if code > self.largest_code:
            if overflow == "saturate":
                code = self.largest_code
            elif overflow == "infinity" and self.infinity_code is not None:
                code = self.infinity_code
            elif self.nan_code is not None:
                code = self.nan_code
            else:
                raise ValueError("this format has neither infinities nor NaN: it can only saturate")
        if self.specials == "negative zero":
            return code if code in (0, self.sign_bit) else sign | code
        return sign | code


def _exponent_of(value: Fraction) -> int:
    """floor(log2(value)) of a positive number."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


def _nearest_power(value) -> int:
    """A number's exponent as PyTorch stores it in float8_e8m0fnu: the sign is dropped, zero is the smallest power, halves go up."""
    try:
        bits = struct.unpack("<I", struct.pack("<f", abs(float(value))))[0]
    except OverflowError:
        return 255
    return min((bits + (0x400000 if bits >> 23 else 0x3FFFFF)) >> 23, 255)
