"""Writes the tables of docs/block_formats.md anew, from the descriptions in block_formats.py.

    python tools/block_formats.py           # write
    python tools/block_formats.py --check   # exit with 1 where the file is not current
"""
import pathlib
import sys

from strided import block_formats

DOCUMENT = pathlib.Path(__file__).parent.parent / "docs" / "block_formats.md"
ZEROS = {"": "", "zero": " and a zero point", "min": " and a minimum"}


def formats() -> list[str]:
    lines = ["| name | element | under one scale | scale | block | bits a value | largest under a scale of 1 | |", "|---|---|---|---|---|---|---|---|"]
    for f in block_formats.all_formats():
        scale = f.scale.name + ZEROS[f.zero] + (", and a float32 for the tensor" if f.tensor_scale else "")
        if "scales" in f.fields:
            scale = "float16 for the block" + (", scales and minima of six bits" if f.zero else ", scales of int8")
        element = f.element.name + (f" - {f.bias}" if f.bias else "") + (f" × 2^{f.unit}" if f.unit else "")
        size = f"{f.block} values, {f.nbytes} bytes"
        largest = f"{f.largest:g}" if f.writable and f.zero != "zero" else ""
        lines.append(f"| `{f.name}` | {element} | {f.group} | {scale} | {size} | {f.bits:g} | {largest} | {f.doc} |")
    return lines


def layouts() -> list[str]:
    lines = ["| name | parts: bytes a block | fields: byte in their part |", "|---|---|---|"]
    for f in block_formats.all_formats():
        parts = ", ".join(f"{p.name} {p.nbytes}" for p in f.parts)
        fields = ", ".join(f"{name} {at}" + (f" of {f.parts[part].name}" if len(f.parts) > 1 else "") for name, (part, at) in f.fields.items())
        lines.append(f"| `{f.name}` | {parts} | {fields} |")
    return lines


def with_tables(text: str) -> str:
    """The document with the lines between its markers replaced."""
    for name, lines in (("formats", formats()), ("layouts", layouts())):
        begin, end = f"<!-- {name}: written by tools/block_formats.py -->", f"<!-- end of {name} -->"
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
