"""Exact arithmetic of number formats: what a written number becomes in a format, by fractions and never by floats.

Holds the reading of numbers (`parse`), the rounding of a fraction to a format (`hold`), and the neighbours of what is held. Knows formats by their
descriptions (`scalar_formats`), and no tensors; the command over it is number.py.
"""
from __future__ import annotations

import difflib
import functools
import math
import re
from fractions import Fraction
from typing import NamedTuple

from .. import dtypes
from ..encoding import Encoding


class Scalar(NamedTuple):
    """A scalar format: a dtype's name, kind and bits, and for floats the `Encoding` that says what the bits mean.

    kind: "float", "scale" (powers of two), "int" or "uint". storage: False for a compute mode that tensors cannot have (tf32). All limits are fractions.
    """

    name: str
    kind: str
    bits: int
    encoding: Encoding | None
    storage: bool = True

    @property
    def sign(self) -> int:
        return self.encoding.sign if self.encoding else int(self.kind == "int")

    @property
    def exponent(self) -> int:
        return self.encoding.exponent if self.encoding else 0

    @property
    def mantissa(self) -> int:
        return self.encoding.mantissa if self.encoding else self.bits - self.sign

    @property
    def bias(self) -> int:
        return self.encoding.bias if self.encoding else 0

    @property
    def is_integer(self) -> bool:
        return self.encoding is None

    @property
    def overflow(self) -> str:
        """What a cast makes of finite numbers beyond the largest: "infinity", "nan", "saturate", or "wrap"."""
        return self.encoding.overflow if self.encoding else "wrap"

    @property
    def largest(self) -> Fraction:
        return Fraction(self.encoding.largest) if self.encoding else Fraction((1 << self.mantissa) - 1)

    @property
    def lowest(self) -> Fraction:
        """The most negative value (a scale's smallest)."""
        if self.encoding:
            return Fraction(self.encoding.lowest)
        return -self.largest - 1 if self.sign else Fraction(0)

    @property
    def smallest_normal(self) -> Fraction:
        return Fraction(self.encoding.smallest_normal) if self.encoding else Fraction(1)

    @property
    def smallest(self) -> Fraction:
        """The smallest value above zero."""
        return Fraction(self.encoding.smallest) if self.encoding else Fraction(1)

    @property
    def eps(self) -> Fraction:
        """The gap behind 1."""
        return Fraction(self.encoding.eps) if self.encoding else Fraction(1)

    @property
    def nan_code(self) -> int | None:
        return self.encoding.nan_code if self.encoding else None

    @property
    def infinity_code(self) -> int | None:
        return self.encoding.infinity_code if self.encoding else None

    @property
    def largest_code(self) -> int:
        return self.encoding.largest_code if self.encoding else int(self.largest)

    @property
    def negative_zero(self) -> bool:
        return self.encoding is not None and self.encoding.specials in ("ieee", "nan", "none")


def power(exponent: int) -> Fraction:
    """2 to an integer, exactly."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


@functools.cache
def scalar_formats() -> dict[str, Scalar]:
    """Every scalar format by its name: the real dtypes of this package, and tf32, in which products may be computed."""
    described = {}
    for dtype in dtypes.all_dtypes():
        if dtype.encoding is not None:
            described[dtype.name] = _of_encoding(dtype.name, dtype.encoding)
        elif dtype.kind in ("int", "uint"):
            described[dtype.name] = Scalar(dtype.name, dtype.kind, dtype.bits, None)
    described["tf32"] = _of_encoding("tf32", Encoding(1, 8, 10, 127), storage=False)
    return dict(sorted(described.items(), key=lambda item: (item[1].is_integer, item[1].kind == "uint", -item[1].bits)))


def _of_encoding(name: str, encoding: Encoding, storage: bool = True) -> Scalar:
    return Scalar(name, "scale" if encoding.specials == "scale" else "float", encoding.bits, encoding, storage)


def scalar_format(name: str) -> Scalar:
    """The format of a name (`torch.` in front may stand). ValueError names the near ones."""
    wanted = name.removeprefix("torch.").removeprefix("strided.")
    wanted = {alias: dtype.name for alias, dtype in dtypes.ALIASES.items()}.get(wanted, wanted)
    wanted = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "tfloat32": "tf32"}.get(wanted, wanted)
    found = scalar_formats().get(wanted)
    if found is None:
        from ..block_formats import NAMES, parse

        if wanted in NAMES:
            form = parse(wanted)
            raise ValueError(f"{name} is a block format: {form.group} numbers share a scale ({form.scale.name}), and one alone is a {form.element.name} (--dtype {form.element.name})")
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
    encoding = form.encoding
    if encoding is None:
        return _hold_integer(form, asked)
    if asked.kind != "finite" or not asked.value:
        code = encoding.encode(math.copysign(float("nan" if asked.kind == "nan" else "inf" if asked.kind == "inf" else 0), -1.0 if asked.negative else 1.0))
    else:
        code = encoding.encode(asked.value)
    return of_code(form, code, asked, tuple(_events(form, code, asked)))


def _events(form: Scalar, code: int, asked: Exact) -> list[str]:
    kind, value, _ = _decoded(form, code)
    if asked.kind == "nan":
        return [] if kind == "nan" else ["invalid"]
    if asked.kind == "inf":
        return [] if kind == "inf" else ["overflow", "invalid"] if kind == "nan" else ["saturated", "inexact"]
    if kind != "finite":
        return ["overflow", "invalid" if kind == "nan" else "inexact"]
    events = ["inexact"] if value != asked.value else []
    if form.kind == "scale" and asked.value <= 0:
        events.append("invalid")
    elif abs(asked.value) > form.largest and form.overflow == "saturate" and abs(asked.value) >= form.largest + ulp(form, form.largest) / 2:
        events.insert(0, "saturated")
    elif asked.value and not value:
        events.append("underflow")
    elif 0 < abs(value) < form.smallest_normal:
        events.append("subnormal")
    return events


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


def of_code(form: Scalar, code: int, asked: Exact | None = None, events: tuple[str, ...] = ()) -> Held:
    """What a code (the bits as a number) stands for. ValueError where it has more bits than the format."""
    if not 0 <= code < 1 << form.bits:
        raise ValueError(f"{code:#x} has more than the {form.bits} bits of {form.name}")
    kind, value, negative = _decoded(form, code)
    return Held(form, asked or Exact(kind, value, negative), code, kind, value, negative, events)


def _decoded(form: Scalar, code: int) -> tuple[str, Fraction, bool]:
    nothing = Fraction(0)
    if form.is_integer:
        whole = code - (1 << form.bits) if form.sign and code >> (form.bits - 1) else code
        return "finite", Fraction(whole), whole < 0
    assert form.encoding is not None
    negative = bool(code & form.encoding.sign_bit)
    value = form.encoding.decode(code)
    if value - value == 0:
        return "finite", Fraction(value), negative
    return ("nan", nothing, negative and form.encoding.specials != "negative zero") if value != value else ("inf", nothing, negative)


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
    top = form.largest_code if form.infinity_code is None else form.infinity_code
    magnitude = held.code & ((1 << (form.bits - form.sign)) - 1) if form.sign else held.code
    signed = -magnitude if held.negative else magnitude
    there = signed + direction
    if abs(there) > top or there < 0 and not form.sign:
        return None
    return of_code(form, abs(there) | (1 << (form.bits - 1) if there < 0 else 0))
