"""Writes the tables of docs/number_formats.md anew, from the descriptions in dtypes.py.

    python tools/number_formats.py           # write
    python tools/number_formats.py --check   # exit with 1 where the file is not current
"""
import pathlib
import sys

from strided import dtypes

DOCUMENT = pathlib.Path(__file__).parent.parent / "docs" / "number_formats.md"
SPECIALS = {
    "ieee": "both", "nan": "no infinities; NaN is all ones", "negative zero": "no infinities, no -0; NaN is the code of -0", "none": "neither",
    "scale": "powers of two only: no sign, no zero, no infinities; NaN is all ones",
}  # fmt: skip
OVERFLOW = {"infinity": "becomes an infinity", "nan": "becomes NaN", "saturate": "becomes the largest number"}


def power(value: float) -> str:
    """A power of two as such, other numbers in decimals."""
    mantissa, exponent = value.hex().split("p")
    return f"2^{int(exponent)}" if mantissa == "0x1.0000000000000" else f"{value:.10g}" if value < 1e6 else f"{value:.4g}"


def subnormal(value: float) -> str:
    mantissa, _, exponent = value.hex().partition("p")
    if mantissa == "0x0.0000000000001":  # float64's smallest
        return "2^-1074"
    return power(value)


def floats() -> list[str]:
    lines = ["| dtype | sign, exponent, mantissa | bias | largest | smallest normal | smallest | eps | infinities, NaN | too large in a cast | stored |", "|---|---|---|---|---|---|---|---|---|---|"]
    for d in sorted((d for d in dtypes.all_dtypes() if d.encoding is not None), key=lambda d: -d.bits):
        e = d.encoding
        largest = f"{e.largest:.10g}" if e.largest < 1e6 else f"{e.largest:.4g}"
        cells = (
            f"`{d.name}`", f"{e.sign}, {e.exponent}, {e.mantissa}", e.bias, largest, power(e.smallest_normal), subnormal(e.smallest), power(e.eps),
            SPECIALS[e.specials], OVERFLOW[e.overflow], stored(d),
        )  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def integers() -> list[str]:
    lines = ["| dtype | bits | smallest | largest | stored |", "|---|---|---|---|---|"]
    for d in sorted((d for d in dtypes.all_dtypes() if d.kind in ("int", "uint")), key=lambda d: (-d.bits, d.kind)):
        info = dtypes.iinfo(d)
        lines.append(f"| `{d.name}` | {d.bits} | {info.min} | {info.max} | {stored(d)} |")
    return lines


def stored(d) -> str:
    if not d.packed:
        return f"{d.itemsize} byte{'s' if d.itemsize > 1 else ''}"
    whole = next(n for n in range(1, 9) if n * d.bits % 8 == 0)
    return f"packed, {whole} in {whole * d.bits // 8} byte{'s' if whole * d.bits > 8 else ''}"


def with_tables(text: str) -> str:
    """The document with the lines between its markers replaced."""
    for name, lines in (("floats", floats()), ("integers", integers())):
        begin, end = f"<!-- {name}: written by tools/number_formats.py -->", f"<!-- end of {name} -->"
        before, rest = text.split(begin)
        text = "\n".join([before + begin, *lines, end]) + rest.split(end)[1]
    return text


def main() -> int:
    text = DOCUMENT.read_text(encoding="utf-8")
    new = with_tables(text)
    if "--check" in sys.argv[1:]:
        return int(new != text)
    DOCUMENT.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
