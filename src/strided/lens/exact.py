"""Exact arithmetic of number formats: what a written number becomes in a format, by fractions and never by floats.

Holds the reading of numbers (`parse`), the rounding of a fraction to a format (`hold`), and the neighbours of what is held. Knows formats by their
descriptions (`scalar_formats`), and no tensors; the command over it is number.py.
"""
from __future__ import annotations

import difflib
import functools
import re
from fractions import Fraction
from typing import NamedTuple

from .. import dtypes


class Scalar(NamedTuple):
    """A scalar format. bits: sign, exponent, mantissa (an integer's: sign, 0, the rest). `largest` and `smallest` in exact fractions.

    infinities: whether there are codes for them. nan_code: the code that NaN is written as (None: there is none). overflow: what a finite value too large
    becomes, "inf", "saturate", "wrap" or "nan"; infinity_becomes: the same for infinity itself. negative_zero: whether −0 differs from 0.
    storage: False for a compute mode that tensors cannot have (tf32).
    """

    name: str
    kind: str  # "float", "scale" (powers of two), "int" or "uint"
    sign: int
    exponent: int
    mantissa: int
    bias: int = 0
    largest: Fraction = Fraction(0)
    infinities: bool = False
    nan_code: int | None = None
    overflow: str = "saturate"
    infinity_becomes: str = "saturate"
    negative_zero: bool = True
    storage: bool = True

    @property
    def bits(self) -> int:
        return self.sign + self.exponent + self.mantissa

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def lowest(self) -> Fraction:
        """The most negative value."""
        if self.is_integer:
            return -self.largest - 1 if self.kind == "int" else Fraction(0)
        return -self.largest if self.sign else self.smallest

    @property
    def smallest_normal(self) -> Fraction:
        return Fraction(1) if self.is_integer else power(1 - self.bias) if self.kind == "float" else power(-self.bias)

    @property
    def smallest(self) -> Fraction:
        """The smallest value above zero."""
        return Fraction(1) if self.is_integer else self.smallest_normal * (power(-self.mantissa) if self.kind == "float" else 1)

    @property
    def eps(self) -> Fraction:
        """The gap behind 1."""
        return Fraction(1) if self.is_integer else power(-self.mantissa)


def power(exponent: int) -> Fraction:
    """2 to an integer, exactly."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


@functools.cache
def scalar_formats() -> dict[str, Scalar]:
    """Every scalar format by its name: the real dtypes of this package, and tf32, in which products may be computed."""
    described = {}
    for dtype in dtypes.all_dtypes():
        found = _describe(dtype.name, dtype.bits, dtype.kind, dtype.is_signed)
        if found is not None:
            described[dtype.name] = found
    tf32 = _describe("tf32", 19, "float", True)
    assert tf32 is not None
    described["tf32"] = tf32._replace(storage=False)
    return dict(sorted(described.items(), key=lambda item: (item[1].is_integer, item[1].kind == "uint", -item[1].bits)))


def scalar_format(name: str) -> Scalar:
    """The format of a name (`torch.` in front may stand). ValueError names the near ones."""
    wanted = name.removeprefix("torch.").removeprefix("strided.")
    wanted = {alias: dtype.name for alias, dtype in dtypes.ALIASES.items()}.get(wanted, wanted)
    wanted = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "tfloat32": "tf32"}.get(wanted, wanted)
    found = scalar_formats().get(wanted)
    if found is None:
        raise ValueError(unknown("number format", name, list(scalar_formats())))
    return found


def unknown(what: str, name: str, known: list[str]) -> str:
    """The sentence for a name that there is not: the near ones, or all of them."""
    near = difflib.get_close_matches(name, known, 4, 0.5) or [k for k in known if name and (k.startswith(name) or name in k)][:6]
    return f"no {what} {name!r}; " + (f"near it: {', '.join(near)}" if near else f"there are {', '.join(known)}")


# ---- numbers as written -------------------------------------------------------------------------------------------------


class Exact(NamedTuple):
    """A number as it was written: a fraction, or inf or nan; `negative` is the sign bit (−0 has one)."""

    kind: str  # "finite", "inf" or "nan"
    value: Fraction
    negative: bool = False

    @property
    def text(self) -> str:
        if self.kind != "finite":
            return ("-" if self.negative else "") + self.kind
        if self.negative and not self.value:
            return "-0"
        endless = decimal_text(self.value).endswith("…")  # no decimal expansion ends there: 1/3 says it exactly
        return str(self.value) if endless and len(str(self.value)) < 40 else decimal_text(self.value)


LARGEST_EXPONENT = 20_000  # of a number as written: its digits must fit in memory

_HEX_FLOAT = re.compile(r"([+-]?)0x([0-9a-f_]*)(?:\.([0-9a-f_]*))?(?:p([+-]?\d+))?", re.I)
_DECIMAL = re.compile(r"([+-]?)(\d[\d_]*)?(?:\.(\d[\d_]*)?)?(?:e([+-]?\d+))?", re.I)
_POWER = re.compile(r"([+-]?)(\d+)(?:\^|\*\*)\(?([+-]?\d+)\)?")


def parse(text: str) -> Exact:
    """A number as people write it: 0.1, 1e-3, 1/3, 2^-24, 0x1.8p-3, 0b101, 0o17, inf, -nan. ValueError for anything else.

    0x and 0b are the number's digits, as in Python (0x10 is 16), not a format's code: see `of_code`.
    """
    t = text.strip().replace("−", "-")
    body = t.lstrip("+-").lower()
    negative = t.startswith("-")
    if body in ("inf", "infinity"):
        return Exact("inf", Fraction(0), negative)
    if body == "nan":
        return Exact("nan", Fraction(0), negative)
    top, slash, bottom = t.partition("/")
    value = _finite(top.strip(), text)
    if slash:
        below = _finite(bottom.strip(), text)
        if below == 0:
            raise ValueError(f"{text!r} divides by zero")
        value /= below
    return Exact("finite", value, value < 0 or value == 0 and negative)


def _finite(t: str, whole: str) -> Fraction:
    def small(exponent: str | None) -> int:
        e = int(exponent or 0)
        if abs(e) > LARGEST_EXPONENT:
            raise ValueError(f"{whole!r}: exponents reach from {-LARGEST_EXPONENT:,} to {LARGEST_EXPONENT:,} here (float64 ends at 1.8e308)")
        return e

    if (m := _POWER.fullmatch(t)) is not None:
        base, e = int(m[2]), small(m[3])
        if abs(e) * max(base.bit_length(), 1) > 80_000 or base == 0 and e < 0:
            raise ValueError(f"{whole!r} is out of reach")
        return Fraction(base) ** e * (-1 if m[1] == "-" else 1)
    sign, rest = (-1, t[1:]) if t.startswith("-") else (1, t.removeprefix("+"))
    for prefix, base in (("0b", 2), ("0o", 8)):
        if rest.lower().startswith(prefix):
            try:
                return Fraction(sign * int(rest, base))
            except ValueError:
                raise ValueError(f"{whole!r} is not a number") from None
    m = _HEX_FLOAT.fullmatch(t)
    base, scale = (16, 2) if m is not None else (10, 10)
    m = m or _DECIMAL.fullmatch(t)
    if m is None or not (m[2] or m[3]) or len(t) > 100_000:
        raise ValueError(f"{whole!r} is not a number: write 0.1, 1e-3, 1/3, 2^-24, 0x1.8p-3, 0b101, inf or nan")
    whole_digits, digits = (m[2] or "").replace("_", ""), (m[3] or "").replace("_", "")
    return Fraction(sign * _long(whole_digits + digits, base), base ** len(digits)) * Fraction(scale) ** small(m[4])


def _long(digits: str, base: int) -> int:
    """int() of text of any length (Python refuses more than 4,300 decimal digits at once)."""
    value = 0
    for at in range(0, len(digits), 4000):
        piece = digits[at : at + 4000]
        value = value * base ** len(piece) + int(piece, base)
    return value


def decimal_text(value: Fraction, digits: int | None = None) -> str:
    """A fraction's decimal expansion, exact where it ends; cut to `digits` significant ones with … behind, as one that never ends is (to 60)."""
    if value == 0:
        return "0"
    sign, value = ("-" if value < 0 else ""), abs(value)
    twos, fives, rest = 0, 0, value.denominator
    twos = (rest & -rest).bit_length() - 1
    rest >>= twos
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    places = max(twos, fives) if rest == 1 else None  # None: it never ends
    first = _decade(value) + 1  # digits before the point, or zeros behind it
    if places is None or digits is not None and first + places > digits:
        shown = digits or 60
        whole = value * Fraction(10) ** (shown - first)
        text, exponent, cut = str_int(int(whole)), first - shown, places is None or whole.denominator != 1
    else:
        text, exponent, cut = str_int(int(value * 10**places)), -places, False
    return sign + _placed(text, exponent, cut)


def _decade(value: Fraction) -> int:
    """floor(log10(value)) of a value above zero."""
    e = len(str_int(value.numerator)) - len(str_int(value.denominator))
    return e if value >= Fraction(10) ** e else e - 1


def _placed(text: str, exponent: int, cut: bool) -> str:
    """Digits × 10^exponent, written plainly where that is readable, else with an exponent."""
    stripped = text.rstrip("0") or "0"
    exponent += len(text) - len(stripped)
    text, point = stripped, len(stripped) + exponent  # where the point stands, from the first digit
    more = "…" if cut else ""
    if -6 < point <= 0:
        return "0." + "0" * -point + text + more
    if 0 < point <= max(21, len(text) + 3) and not (exponent > 0 and cut):
        whole, part = text[:point].ljust(point, "0"), text[point:]
        return whole + ("." + part if part else "") + more
    return text[0] + ("." + text[1:] if text[1:] else "") + more + f"e{point - 1:+d}"


def str_int(n: int) -> str:
    """str() of an int of any length."""
    if n < 10**4000:
        return str(n)
    high, low = divmod(n, 10**4000)
    return str_int(high) + str(low).zfill(4000)


def short_text(value: Fraction, digits: int = 4) -> str:
    """A fraction rounded to some digits, as 1.234e-05; for errors and limits, where the exact digits say nothing."""
    if value == 0:
        return "0"
    sign, value = ("-" if value < 0 else ""), abs(value)
    e = _decade(value)
    n = round(value / Fraction(10) ** (e - digits + 1))
    if n == 10**digits:
        n, e = n // 10, e + 1
    text = str(n).rstrip("0") or "0"
    if -4 <= e < 7:
        return sign + _placed(str(n), e - digits + 1, False)
    return f"{sign}{text[0]}{'.' + text[1:] if text[1:] else ''}e{e:+03d}"


def dyadic_text(value: Fraction) -> str:
    """A fraction over a power of two as 205/2^11, an integer with its power of two apart: 205 × 2^4."""
    n, d = value.numerator, value.denominator
    if d > 1:
        return f"{str_int(n)} / 2^{d.bit_length() - 1}"
    twos = (n & -n).bit_length() - 1 if n else 0
    return f"{str_int(n >> twos)} × 2^{twos}" if twos > 3 else str_int(n)


# ---- rounding -------------------------------------------------------------------------------------------------------------


def exponent_of(value: Fraction) -> int:
    """floor(log2(value)) of a value above zero."""
    e = value.numerator.bit_length() - value.denominator.bit_length()
    return e if value >= power(e) else e - 1


def _describe(dtype: dtypes.DType) -> Scalar | None:
    """A dtype as a `Scalar`; None for what is no real number (bool, complex, pairs)."""
    return None


# Floating-point formats: exponent bits, mantissa bits, bias, infinities, NaN's code, what too large a value becomes, and infinity, whether there is a −0.
_FLOATS = {
    "float64": (11, 52, 1023, True, 0x7FF8 << 48, "inf", "inf", True),
    "float32": (8, 23, 127, True, 0x7FC0 << 16, "inf", "inf", True),
    "tf32": (8, 10, 127, True, 0x3FE00, "inf", "inf", True),
    "float16": (5, 10, 15, True, 0x7E00, "inf", "inf", True),
    "bfloat16": (8, 7, 127, True, 0x7FC0, "inf", "inf", True),
    "float8_e4m3fn": (4, 3, 7, False, 0x7F, "saturate", "saturate", True),
    "float8_e5m2": (5, 2, 15, True, 0x7F, "inf", "inf", True),
    "float8_e4m3fnuz": (4, 3, 8, False, 0x80, "nan", "nan", False),
    "float8_e5m2fnuz": (5, 2, 16, False, 0x80, "nan", "nan", False),
    "float8_e8m0fnu": (8, 0, 127, False, 0xFF, "nan", "nan", False),
    "float6_e2m3fn": (2, 3, 1, False, None, "saturate", "saturate", True),
    "float6_e3m2fn": (3, 2, 3, False, None, "saturate", "saturate", True),
    "float4_e2m1fn": (2, 1, 1, False, None, "saturate", "saturate", True),
}


def _describe(name: str, bits: int, kind: str, signed: bool) -> Scalar | None:
    """A dtype as a `Scalar`; None for what is no real number (bool, complex, pairs of values)."""
    if kind in ("int", "uint"):
        return Scalar(name, kind, int(signed), 0, bits - signed, 0, Fraction((1 << (bits - signed)) - 1), overflow="wrap", infinity_becomes="invalid", negative_zero=False)
    if name not in _FLOATS:
        return None
    exponent, mantissa, bias, infinities, nan_code, overflow, infinity, negative_zero = _FLOATS[name]
    form = Scalar(name, "float" if mantissa else "scale", int(signed), exponent, mantissa, bias, Fraction(0), infinities, nan_code, overflow, infinity, negative_zero)
    top = (1 << exponent) - 1 - infinities  # the largest exponent's code
    if not mantissa:
        return form._replace(largest=power(top - 1 - bias))
    full = (2 << mantissa) - 1
    if nan_code is not None and not infinities and nan_code != 1 << (form.bits - 1):
        full -= 1  # the last code is NaN
    return form._replace(largest=full * power(top - bias - mantissa))


def ulp(form: Scalar, value: Fraction) -> Fraction:
    """The gap between the format's values where `value` lies: 2^(exponent − mantissa bits), no smaller than among subnormals, no larger than at the top."""
    if form.is_integer:
        return Fraction(1)
    if form.kind == "scale":
        return power(exponent_of(min(max(abs(value), form.smallest), form.largest)))
    e = 1 - form.bias if value == 0 else min(max(exponent_of(abs(value)), 1 - form.bias), exponent_of(form.largest))
    return power(e - form.mantissa)


class Held(NamedTuple):
    """What a format makes of a number. code: its bits (an int); kind: "finite", "inf" or "nan"; value: exactly; negative: the sign.

    events: of "overflow" (too large: infinity, or wrapped), "saturated", "underflow" (non-zero became zero), "subnormal", "inexact", "invalid".
    """

    form: Scalar
    asked: Exact
    code: int | None
    kind: str
    value: Fraction
    negative: bool
    events: tuple[str, ...] = ()

    @property
    def error(self) -> Fraction | None:
        """held − asked, where both are finite."""
        return self.value - self.asked.value if self.kind == self.asked.kind == "finite" else None

    @property
    def error_in_ulp(self) -> Fraction | None:
        error = self.error
        return None if error is None else error / ulp(self.form, self.asked.value)

    @property
    def text(self) -> str:
        return Exact(self.kind, self.value, self.negative).text


def hold(form: Scalar, asked: Exact) -> Held:
    """The number rounded once to the format: to nearest, halves to even (integers: towards zero, as a cast from floats)."""
    if form.is_integer:
        return _hold_integer(form, asked)
    if asked.kind == "nan":
        if form.nan_code is None:
            return of_code(form, 1 << (form.bits - 1) if form.negative_zero and form.sign else 0, asked, ("invalid",))
        return of_code(form, form.nan_code, asked)
    if asked.kind == "inf":
        return _too_large(form, asked, form.infinity_becomes)
    if form.kind == "scale":
        return _hold_power(form, asked)
    size = abs(asked.value)
    step = ulp(form, size) if size <= form.largest else power(exponent_of(size) - form.mantissa)
    steps = round(size / step)  # to nearest, halves to even
    if steps * step > form.largest:
        return _too_large(form, asked, form.overflow)
    place = max(exponent_of(size), 1 - form.bias) + form.bias - 1 if size else 0
    magnitude = (place << form.mantissa) + steps  # a carry out of the mantissa lands in the exponent, as it should
    negative = asked.negative and bool(form.sign) and (steps > 0 or form.negative_zero)
    events = ["inexact"] if steps * step != size else []
    if size and not steps:
        events.append("underflow")
    elif 0 < steps * step < form.smallest_normal:
        events.append("subnormal")
    return of_code(form, magnitude | (negative << form.bits - 1), asked, tuple(events))


def _hold_power(form: Scalar, asked: Exact) -> Held:
    # Powers of two, signs ignored and zero to the smallest, as PyTorch has it; halfway (1.5 times a power) goes up, but at the very bottom.
    size = abs(asked.value)
    events = ["invalid"] if asked.value <= 0 else []
    e = exponent_of(size) if size else -form.bias
    if e <= -form.bias:  # float32 subnormals: all above the smallest value go up
        code = int(size > form.smallest)
        events += ["inexact"] if size not in (form.smallest, 2 * form.smallest) else []
    else:
        code = e + form.bias + (size / power(e) >= Fraction(3, 2))
        events += ["inexact"] if size != power(e) else []
    if code > form.largest.numerator.bit_length() - 1 + form.bias:
        return _too_large(form, asked, form.overflow)
    return of_code(form, code, asked, tuple(events))


def _too_large(form: Scalar, asked: Exact, rule: str) -> Held:
    sign = (asked.negative and bool(form.sign)) << (form.bits - 1)
    finite = asked.kind == "finite"
    if rule == "inf":
        exponent_full = ((1 << form.exponent) - 1) << form.mantissa
        return of_code(form, exponent_full | sign, asked, ("overflow", "inexact") if finite else ())
    if rule == "nan":
        assert form.nan_code is not None
        return of_code(form, form.nan_code | (sign if form.nan_code != 1 << (form.bits - 1) else 0), asked, ("overflow", "invalid"))
    return of_code(form, largest_code(form) | sign, asked, ("saturated", "inexact"))


def _hold_integer(form: Scalar, asked: Exact) -> Held:
    # As x.to(dtype) of a float: towards zero, then the low bits; NaN and infinity are no integers.
    if asked.kind != "finite":
        return Held(form, asked, None, "invalid", Fraction(0), False, ("invalid",))
    whole = int(asked.value)
    events = ["inexact"] if whole != asked.value else []
    code = whole & ((1 << form.bits) - 1)
    if not form.lowest <= whole <= form.largest:
        events = ["overflow", "inexact"]
    elif whole == 0 != asked.value:
        events.append("underflow")
    return of_code(form, code, asked, tuple(events))


_TOPS: dict[str, int] = {}


def largest_code(form: Scalar) -> int:
    """The code of the largest value."""
    found = _TOPS.get(form.name)
    if found is None:
        found = _TOPS[form.name] = _largest_code(form)
    return found


def _largest_code(form: Scalar) -> int:
    if form.is_integer:
        return int(form.largest)
    if form.kind == "scale":
        return exponent_of(form.largest) + form.bias
    e = exponent_of(form.largest)
    return ((e + form.bias - 1) << form.mantissa) + int(form.largest / power(e - form.mantissa))


def of_code(form: Scalar, code: int, asked: Exact | None = None, events: tuple[str, ...] = ()) -> Held:
    """What a code (the bits as a number) stands for. ValueError where it has more bits than the format."""
    if not 0 <= code < 1 << form.bits:
        raise ValueError(f"{code:#x} has more than the {form.bits} bits of {form.name}")
    kind, value, negative = _decoded(form, code)
    return Held(form, asked or Exact(kind, value, negative), code, kind, value, negative, events)


def _decoded(form: Scalar, code: int) -> tuple[str, Fraction, bool]:
    nothing = Fraction(0)
    if form.is_integer:
        value = code - (1 << form.bits) if form.sign and code >> (form.bits - 1) else code
        return "finite", Fraction(value), value < 0
    if form.kind == "scale":
        return ("nan", nothing, False) if code == form.nan_code else ("finite", power(code - form.bias), False)
    negative = bool(code >> (form.bits - 1)) and bool(form.sign)
    magnitude = code & ((1 << (form.bits - form.sign)) - 1)
    if not form.negative_zero and negative and not magnitude:
        return "nan", nothing, False
    if magnitude > largest_code(form):
        infinite = form.infinities and magnitude == largest_code(form) + 1
        return "inf" if infinite else "nan", nothing, negative
    place, mantissa = magnitude >> form.mantissa, magnitude & ((1 << form.mantissa) - 1)
    value = (mantissa + ((1 << form.mantissa) if place else 0)) * power(max(place, 1) - form.bias - form.mantissa)
    return "finite", -value if negative else value, negative


def neighbours(held: Held) -> tuple[Held | None, Held | None]:
    """The values next below and above what is held, as the format's own (None: there is none, or what is held is NaN). −0 and 0 count as one value."""
    form = held.form
    if held.kind not in ("finite", "inf"):
        return None, None
    if form.is_integer or form.kind == "scale":
        below = held.value - 1 if form.is_integer else held.value / 2
        above = held.value + 1 if form.is_integer else held.value * 2
        inside = lambda v: form.lowest <= v <= form.largest
        make = lambda v: hold(form, Exact("finite", v, v < 0)) if inside(v) else None
        return make(below), make(above)
    return _step(held, -1), _step(held, 1)


def _step(held: Held, direction: int) -> Held | None:
    # Codes of one sign are in the order of their values: away from zero is the next code up.
    form = held.form
    assert held.code is not None
    top = largest_code(form) + (1 if form.infinities else 0)
    magnitude = held.code & ((1 << (form.bits - form.sign)) - 1) if form.sign else held.code
    signed = -magnitude if held.negative else magnitude
    there = signed + direction
    if abs(there) > top or there < 0 and not form.sign:
        return None
    return of_code(form, abs(there) | (1 << (form.bits - 1) if there < 0 else 0))
