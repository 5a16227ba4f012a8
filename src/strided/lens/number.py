"""`strided number VALUE --dtype FORMAT`: a number as formats hold it: its bits in their fields, the exact value, the error, the neighbours, the limits.

Holds the command and its texts; the arithmetic is exact.py's. Starts without tensors, NumPy and rich: nothing is computed in floats here.
"""
from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from .exact import Exact, Held, Scalar, decimal_text, dyadic_text, hold, neighbours, of_code, parse, scalar_format, scalar_formats, short_text, ulp

USUAL = ("float32", "tf32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2")  # side by side where no format is asked for
_COLOURS = {"sign": "\x1b[31m", "exponent": "\x1b[32m", "mantissa": "\x1b[36m", "digits": "\x1b[36m", "dim": "\x1b[2m", "bold": "\x1b[1m", "bad": "\x1b[31m"}


def number(value: str | int | float | Fraction, formats: Any = USUAL) -> list[dict[str, Any]]:
    """What `formats` (a name, a dtype, or some of them) make of a number: a dict each, as `strided number --json` prints it.

    value: text as the command takes it ("0.1", "1/3", "0x1.8p-3", "inf"), or a Python number, taken exactly. Keys: format, code, bits, fields, held, exact,
    error (absolute, relative, ulp), ulp, below, above, events. Raises ValueError for what is no number and for unknown formats, which names the near ones.
    """
    names = [formats] if isinstance(formats, str) or hasattr(formats, "itemsize") else formats
    asked = parse(value) if isinstance(value, str) else exactly(value)
    return [as_dict(hold(scalar_format(getattr(n, "name", n)), asked)) for n in names]


def exactly(value: int | float | Fraction) -> Exact:
    """A Python number, exactly: a float is its own binary value."""
    if isinstance(value, float):
        return parse(value.hex() if value - value == 0 else str(value))
    fraction = Fraction(value)
    return Exact("finite", fraction, fraction < 0)


def main(words: Sequence[str]) -> int:
    """The command `strided number`; its exit code."""
    parser = argparse.ArgumentParser(
        prog="strided number",
        usage="strided number VALUE [--dtype FORMAT[,FORMAT…] | --all] [--bits] [--json]\n       strided number --table [--json]",
        description="Show what number formats make of a number: the bits in their fields, the value held exactly, the error absolute, relative and in units in the "
        "last place, the neighbours, and what is too large or too small there. Computed in exact fractions.",
        epilog="""examples:
  strided number 0.1 --dtype bfloat16              one format, in full
  strided number 1/3 --dtype float16,float8_e4m3fn  side by side
  strided number 70000 --all                       every scalar format
  strided number 0x3dcd --bits --dtype bfloat16    what a code stands for
  strided number --table                           the formats' table

VALUE is 0.1, -1e-3, 1/3, 2^-24, 0x1.8p-3, 0b101, inf or nan; 0x10 is the number
16, and with --bits it is a code. A number is rounded once, to nearest, halves to
even; integers are cut towards zero, as x.to(dtype) does.
ulp: the gap between the format's values where the number lies.""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("value", nargs="?", metavar="VALUE", help="the number")
    parser.add_argument("--dtype", "-d", metavar="FORMAT", action="append", help=f"formats, by commas or repeated (default: {', '.join(USUAL)})")
    parser.add_argument("--all", action="store_true", help="every scalar format (integers at the sizes in use)")
    parser.add_argument("--bits", action="store_true", help="VALUE is a code: the format's bits as a number (0x3dcd)")
    parser.add_argument("--table", action="store_true", help="the table of all formats: bits, bias, limits, specials")
    parser.add_argument("--json", action="store_true", help="print JSON, exact values as text")
    # A negative number looks like an option to argparse where it is not plain digits: -1/3, -inf, -0x1p-3.
    options, value = [], None
    for word in words:
        if value is None and word.startswith("-") and _is_number(word):
            value = word
        else:
            options.append(word)
    chosen = parser.parse_args(options)
    if value is not None and chosen.value is not None:
        parser.error(f"two numbers, {chosen.value} and {value}: give one")
    value = chosen.value if value is None else value
    style = _Style(sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    if chosen.table:
        if value is not None:
            parser.error("--table shows the formats themselves: leave the number out")
        print(json.dumps({"scalar": table_rows(), "block": block_rows()}, indent=1, ensure_ascii=False) if chosen.json else table_text(style))
        return 0
    if value is None:
        parser.error("give a number, as in: strided number 0.1 --dtype bfloat16")
    if chosen.all and chosen.dtype:
        parser.error("--all takes every scalar format: leave --dtype out")
    try:
        names = [name for given in chosen.dtype or () for name in given.split(",") if name] or (list(in_use()) if chosen.all else list(USUAL))
        forms = [scalar_format(name) for name in dict.fromkeys(names)]
        shown = [of_code(form, _code(value)) if chosen.bits else hold(form, parse(value)) for form in forms]
    except ValueError as error:
        print(f"strided number: {error}", file=sys.stderr)
        return 2
    if chosen.json:
        print(json.dumps([as_dict(held) for held in shown], indent=1, ensure_ascii=False))
    else:
        width = shutil.get_terminal_size((100, 24)).columns
        print(in_full(shown[0], style) if len(shown) == 1 else side_by_side(shown, width, style))
    return 0


def in_use() -> list[str]:
    """The formats of --all: integers of odd sizes, which exist by name alone, are left out."""
    return [name for name, form in scalar_formats().items() if not form.is_integer or form.bits in (1, 2, 4, 8, 16, 32, 64) and name != "int1"]


def _is_number(word: str) -> bool:
    try:
        parse(word)
    except ValueError:
        return False
    return True


def _code(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ValueError(f"{text!r} is no code: write it as 0x3dcd, 0b0110 or 15821") from None


class _Style:
    """Colours on a terminal, plain text elsewhere."""

    def __init__(self, on: bool):
        self.on = on

    def __call__(self, kind: str, text: str) -> str:
        return f"{_COLOURS[kind]}{text}\x1b[0m" if self.on and text else text


# ---- pieces -------------------------------------------------------------------------------------------------------------


def fields(held: Held) -> list[tuple[str, str]]:
    """The code's bits by field, as (name, digits): sign, exponent, mantissa; an integer's are sign and digits."""
    form = held.form
    if held.code is None:
        return []
    text = f"{held.code:0{form.bits}b}"
    parts = [("sign", text[: form.sign]), ("exponent", text[form.sign : form.sign + form.exponent])]
    parts.append(("digits" if form.is_integer else "mantissa", text[form.sign + form.exponent :]))
    return [(name, digits) for name, digits in parts if digits]


def code_text(held: Held) -> str:
    """The code in hexadecimal, as wide as the format."""
    return "–" if held.code is None else f"0x{held.code:0{(held.form.bits + 3) // 4}X}"


def verdict(held: Held) -> str:
    """What happened to the number, in a few words."""
    events, form = held.events, held.form
    if held.kind == "invalid":
        return "no integer"
    if held.asked.kind == "nan" and "invalid" in events:
        return "no NaN here: becomes " + held.text
    if form.kind == "scale" and "invalid" in events:
        return "zero becomes the smallest" if not held.asked.value else "sign dropped"
    if "saturated" in events:
        return "saturates"
    if "overflow" in events:
        return "wraps" if form.is_integer else f"overflows to {held.text}"
    if held.kind == "nan" and held.asked.kind == "inf":
        return "no infinity: NaN"
    if "underflow" in events:
        return "becomes 0"
    if held.kind != "finite":
        return "held"
    if "inexact" not in events:
        return "exact" + (", subnormal" if "subnormal" in events else "")
    direction = "up" if held.value > held.asked.value else "down"
    return f"rounded {direction}" + (", subnormal" if "subnormal" in events else "")


def relative_error(held: Held) -> Fraction | None:
    """|held − asked| / |asked|, with the error's sign; None where there is none."""
    error = held.error
    return None if error is None or not held.asked.value else error / abs(held.asked.value)


def signed(value: Fraction | None, digits: int = 4) -> str:
    if value is None:
        return "–"
    return "0" if value == 0 else ("+" if value > 0 else "") + short_text(value, digits)


def overflow_text(form: Scalar) -> str:
    """What happens to finite values beyond the largest."""
    top = decimal_text(form.largest, 12)
    if form.is_integer:
        return f"beyond {form.lowest} … {form.largest}: a cast keeps the low {form.bits} bits (wraps); quantize() saturates"
    half = form.largest + _top_step(form) / 2
    limit = decimal_text(half, 12) if form.kind != "scale" else decimal_text(form.largest * Fraction(3, 2), 12)
    becomes = {"infinity": "infinity", "nan": "NaN", "saturate": f"±{top} (saturates)"}[form.overflow]
    return f"largest {top}; above it everything becomes {becomes}" if form.overflow == "saturate" else f"largest {top}; from {limit} on {becomes}"


def _top_step(form: Scalar) -> Fraction:
    return ulp(form, form.largest)


def underflow_text(form: Scalar) -> str:
    """What happens to values near zero."""
    if form.is_integer:
        return "the part behind the point is cut off: what lies within −1 … 1 becomes 0"
    low = f"smallest {_power_text(form.smallest)} = {short_text(form.smallest)}"
    if form.kind == "scale":
        return f"{low}; there is no zero: 0 and less become it"
    return f"{low} (normal from {_power_text(form.smallest_normal)}); up to half of it becomes 0"


def infinity_text(form: Scalar) -> str:
    if form.is_integer:
        return "none: infinity and NaN have no integer"
    if form.infinity_code is not None:
        return f"held ({form.infinity_code:#x})"
    return "none: becomes " + ("NaN" if form.overflow == "nan" else f"the largest, {short_text(form.largest)}")


def nan_text(form: Scalar) -> str:
    if form.is_integer:
        return "none"
    return f"held ({form.nan_code:#x})" if form.nan_code is not None else f"none: becomes {hold(form, parse('nan')).text}"


def _power_text(value: Fraction) -> str:
    n, d = value.numerator, value.denominator
    if n == 1:
        return f"2^-{d.bit_length() - 1}" if d > 1 else "1"
    return f"2^{n.bit_length() - 1}" if d == 1 and n & (n - 1) == 0 else short_text(value)


# ---- one number in one format ---------------------------------------------------------------------------------------------


def in_full(held: Held, style: _Style) -> str:
    """Everything about one number in one format, some twelve lines."""
    form, asked = held.form, held.asked
    lines = [style("bold", f"{_cut(asked.text)} in {form.name}") + f"   {verdict(held)}", "", *_drawing(held, style), ""]

    def line(label: str, text: str) -> None:
        lines.append(style("dim", f"{label:<12}") + text)

    if held.kind == "finite":
        exact = _cut(held.text)
        other = dyadic_text(held.value)
        line("held", exact if other in (held.text, held.text.removeprefix("-")) else f"{exact}  =  {_cut(other, 44)}")
    else:
        line("held", "nothing: a cast gives no defined integer" if held.kind == "invalid" else held.text)
    if held.error is not None:
        line("error", "none: held exactly" if not held.error else f"{signed(held.error)}   relative {signed(relative_error(held))}   {signed(held.error_in_ulp)} ulp")
        line("ulp", f"{_power_text(ulp(form, asked.value))} here" + ("" if form.is_integer else f"; 1 + {_power_text(form.eps)} is the next after 1"))
    below, above = neighbours(held)
    if below or above:
        line("below", f"{_cut(below.text)}  {code_text(below)}" if below else "none")
        line("above", f"{_cut(above.text)}  {code_text(above)}" if above else "none")
    if form.is_integer and "overflow" in held.events:
        line("saturating", f"{form.largest if asked.value > 0 else form.lowest}")
    via = through_float32(held)
    if via is not None:
        line("note", f"from a float32 (x.to({form.name}) of a tensor that rounded it first) it is {_cut(via.text)}  {code_text(via)}: rounded twice")
    lines.append("")
    for label, text in (("overflow", overflow_text(form)), ("underflow", underflow_text(form)), ("infinity", infinity_text(form)), ("NaN", nan_text(form))):
        line(label, text)
    if not form.storage:
        line("storage", "none: what float32 products round their operands to under set_float32_matmul_precision('high')")
    return "\n".join(lines)


def through_float32(held: Held) -> Held | None:
    """What comes out where the number was a float32 first, if that differs: two roundings are not one."""
    form = held.form
    if form.is_integer or form.name in ("float64", "float32") or held.asked.kind != "finite":
        return None
    first = hold(scalar_format("float32"), held.asked)
    again = hold(form, Exact(first.kind, first.value, first.negative))
    return again if again.code != held.code else None


def _cut(text: str, room: int = 60) -> str:
    """Long digits with their middle left out and their number said."""
    if len(text) <= room:
        return text
    mantissa, e, exponent = text.partition("e") if "e" in text else (text, "", "")
    digits = sum(c.isdigit() for c in mantissa.lstrip("-0."))
    return f"{mantissa[: room - 20]}…{e}{exponent} ({digits} digits)" if "…" not in mantissa else text


def _drawing(held: Held, style: _Style) -> list[str]:
    """The bits, their fields' names below, and what the fields say."""
    parts = fields(held)
    if not parts:
        return ["   no code"]
    widths = [max(len(digits), len(name) if len(parts) > 1 else 0) for name, digits in parts]
    bits = "  ".join(style(name, digits) + " " * (width - len(digits)) for (name, digits), width in zip(parts, widths))
    names = "  ".join(style("dim", name) + " " * (width - len(name)) for (name, _), width in zip(parts, widths)).rstrip()
    return [f"   {bits}   {style('bold', code_text(held))}", f"   {names}", "   " + meaning(held)]


def meaning(held: Held) -> str:
    """How the fields make the value: sign × 2^exponent × mantissa."""
    form = held.form
    assert held.code is not None
    if form.is_integer:
        return f"two's complement: {held.text}" if form.sign else f"unsigned: {held.text}"
    if held.kind == "nan":
        return "NaN"
    if held.kind == "inf":
        return "exponent all ones, mantissa zero: " + held.text
    if form.kind == "scale":
        return f"2^({held.code} − {form.bias}) = 2^{held.code - form.bias}"
    sign = "−" if held.negative else "+"
    magnitude = held.code & ((1 << (form.bits - form.sign)) - 1)
    place, mantissa = magnitude >> form.mantissa, magnitude & ((1 << form.mantissa) - 1)
    if not magnitude:
        return f"{sign}0: all bits zero"
    if not place:
        return f"{sign} 2^{1 - form.bias} × 0.mantissa = {mantissa} × 2^{1 - form.bias - form.mantissa}   subnormal: exponent field 0, no leading 1"
    return f"{sign} 2^({place} − {form.bias}) × (1 + {mantissa}/{1 << form.mantissa})"


# ---- several formats ------------------------------------------------------------------------------------------------------


def side_by_side(shown: Sequence[Held], width: int, style: _Style) -> str:
    """One row a format: bits, the value held, errors, what happened. Columns that do not fit are left out from the right but one."""
    asked = shown[0].asked
    same = all(held.asked == asked for held in shown)
    head = ["format", "code", "held", "relative error", "ulp", ""]
    rows = []
    for held in shown:
        value = _cut(held.text, 28) if held.kind != "invalid" else "–"
        if len(value) > 28:
            value = decimal_text(held.value, 17)
        cells = [held.form.name, code_text(held), value, signed(relative_error(held)), signed(held.error_in_ulp, 3), verdict(held)]
        rows.append((cells, held))
    sizes = [max(len(head[i]), *(len(cells[i]) for cells, _ in rows)) for i in range(len(head))]
    lines = [style("bold", _cut(asked.text)) if same else style("bold", "the code's values"), ""]
    pad = lambda cells: "  ".join(f"{c:<{s}}" if i in (0, 1, 2, 5) else f"{c:>{s}}" for i, (c, s) in enumerate(zip(cells, sizes))).rstrip()
    lines.append(style("dim", pad(head)))
    bits_below = max(held.form.bits for held in shown) + 4
    for cells, held in rows:
        text = pad(cells)
        lines.append(style("bad", text) if {"overflow", "saturated", "underflow", "invalid"} & set(held.events) else text)
    lines += ["", style("dim", "bits: sign exponent mantissa")]
    longest = max(len(held.form.name) for held in shown)
    for held in shown:
        parts = fields(held)
        drawn = " ".join(style(name, digits) for name, digits in parts) or "–"
        if bits_below + longest <= width or held.form.bits + longest + 6 <= width:
            lines.append(f"  {held.form.name:<{longest}}  {drawn}")
    return "\n".join(lines)


def as_dict(held: Held) -> dict[str, Any]:
    """Plain data: exact values as text (decimal, and as a fraction), errors as text to 6 digits."""
    form, error = held.form, held.error
    below, above = neighbours(held)
    give = lambda other: None if other is None else {"code": code_text(other), "value": other.text}
    return {
        "format": form.name,
        "asked": held.asked.text,
        "code": None if held.code is None else code_text(held),
        "bits": "".join(digits for _, digits in fields(held)) or None,
        "fields": dict(fields(held)),
        "held": held.text if held.kind != "invalid" else None,
        "fraction": str(held.value) if held.kind == "finite" else None,
        "power_of_two": dyadic_text(held.value) if held.kind == "finite" else None,
        "error": None if error is None else {
            "absolute": short_text(error, 6), "relative": None if relative_error(held) is None else short_text(relative_error(held), 6),  # type: ignore[arg-type]
            "ulp": short_text(held.error_in_ulp, 6), "exact": str(error),  # type: ignore[arg-type]
        },
        "ulp": None if held.asked.kind != "finite" else str(ulp(form, held.asked.value)),
        "below": give(below),
        "above": give(above),
        "events": list(held.events),
        "verdict": verdict(held),
    }  # fmt: skip


# ---- the formats' table -----------------------------------------------------------------------------------------------------


def table_rows() -> list[dict[str, Any]]:
    """A row a scalar format: bits by field, bias, limits as exact text, decimal digits that survive, specials."""
    rows = []
    for name in in_use():
        form = scalar_formats()[name]
        rows.append({
            "format": name, "bits": form.bits, "sign": form.sign, "exponent": form.exponent, "mantissa": form.mantissa,
            "bias": None if form.is_integer else form.bias, "largest": decimal_text(form.largest), "lowest": decimal_text(form.lowest),
            "smallest_normal": None if form.is_integer else decimal_text(form.smallest_normal),
            "smallest": None if form.is_integer else decimal_text(form.smallest), "eps": None if form.is_integer else decimal_text(form.eps),
            "decimal_digits": decimal_digits(form), "overflow": form.overflow, "infinity": form.infinity_code is not None, "nan": form.nan_code is not None,
            "negative_zero": form.negative_zero, "storage": form.storage,
        })  # fmt: skip
    return rows


def block_rows() -> list[dict[str, Any]]:
    """A row a block format: its element, how many lie under a scale, the scale, and bits a value with the scales."""
    from ..block_formats import all_formats

    return [
        {"format": f.name, "bits": f.bits, "element": f.element.name, "group": f.group, "block": f.block, "scale": f.scale.name, "written": f.writable, "what": f.doc}
        for f in all_formats()
    ]


def decimal_digits(form: Scalar) -> int:
    """Decimal digits that every number in the format's range keeps through it and back: floor(mantissa bits × log10 2)."""
    if form.is_integer:
        return len(str(form.largest)) - 1
    return len(str(1 << form.mantissa)) - 1


def specials_text(form: Scalar) -> str:
    """Infinities, NaN and zero, in a few words."""
    if form.is_integer:
        return "wraps"
    said = [*(["inf"] if form.infinity_code is not None else []), *(["NaN"] if form.nan_code is not None else [])]
    text = " and ".join(said) or "none"
    if form.kind == "scale":
        return text + ", no zero, no sign"
    if form.overflow == "saturate":
        text += ", saturates"
    return text + ("" if form.negative_zero else ", no −0") + ("" if form.storage else ", products only")


def table_cells() -> tuple[list[str], list[list[str]]]:
    """Heading and rows of the formats' table as text, for the terminal and the documentation."""
    head = ["format", "bits", "s e m", "bias", "largest", "smallest normal", "smallest", "eps", "digits", "specials"]
    rows = []
    for name in in_use():
        form = scalar_formats()[name]
        split = f"{form.sign} {form.exponent} {form.mantissa}"
        if form.is_integer:
            rows.append([name, str(form.bits), split, "", decimal_text(form.largest), "", "", "", str(decimal_digits(form)), specials_text(form)])
            continue
        limits = [_power_text(form.smallest_normal), _power_text(form.smallest), _power_text(form.eps)]
        rows.append([name, str(form.bits), split, str(form.bias), short_text(form.largest, 5), *limits, str(decimal_digits(form)), specials_text(form)])
    return head, rows


def table_text(style: _Style) -> str:
    """The formats' tables for a terminal: scalar formats, then block formats."""
    blocks = [[r["format"], f"{r['bits']:g}", r["element"], str(r["group"]), r["scale"], r["what"]] for r in block_rows()]
    return "\n".join([*_columns(*table_cells(), (0, 2, 9), style), "", *_columns(["block format", "bits a value", "element", "group", "scale", ""], blocks, (0, 2, 4, 5), style)])


def _columns(head: list[str], rows: list[list[str]], left: tuple[int, ...], style: _Style) -> list[str]:
    sizes = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    pad = lambda row: "  ".join(c.ljust(s) if i in left else c.rjust(s) for i, (c, s) in enumerate(zip(row, sizes))).rstrip()
    return [style("bold", pad(head)), *map(pad, rows)]


