"""`strided inspect PATH`: what a checkpoint's weights are, where their bytes go, and what they would take in other formats.

Reads headers only (io/header.py), so it takes milliseconds whatever the model's size. Holds the report, as values and as text, CSV and JSON.
The text is laid out here rather than by rich: a model of 5,000 tensors would take rich three seconds.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from strided.io.gguf_header import GgufError, is_gguf
from strided.io.gguf_header import read_header as read_gguf_header
from strided.io.header import Checkpoint, Entry, SafetensorsError, open_checkpoint, product

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Format(NamedTuple):
    """A number format to hold weights in. Groups run along the last dimension and start anew in each row.

    group: elements that share a scale, or None; scale_bytes: bytes of each; padded: whether a row's last group is stored in full.
    """

    name: str
    bits: int
    group: int | None = None
    scale_bytes: int = 0
    padded: bool = False
    rule: str = ""

    def nbytes(self, shape: tuple[int, ...]) -> int:
        """Bytes that a tensor of this shape takes."""
        numel = product(shape)
        if self.group is None or not numel:
            return -(-numel * self.bits // 8)
        columns = shape[-1] if shape else 1
        groups = -(-columns // self.group)
        values = groups * self.group if self.padded else columns
        return numel // columns * (-(-values * self.bits // 8) + groups * self.scale_bytes)


FORMATS = (
    Format("float32", 32),
    Format("bfloat16", 16),
    Format("float16", 16),
    Format("float8", 8, rule="1 byte an element; a scale a tensor, if any, is not counted"),
    Format("int8", 8, rule="1 byte an element; a scale a tensor, if any, is not counted"),
    Format("int4, group 128", 4, 128, 2, rule="4 bits an element, a row rounded up to whole bytes, and one float16 scale for each 128 of a row or part of it"),
    Format("MXFP4", 4, 32, 1, True, rule="17 bytes for each 32 elements of a row: 4 bits each and one E8M0 scale; a row's last block is padded to 32"),
)


class Parameter(NamedTuple):
    """One named tensor. file: the file it is in; tied_to: the name whose bytes it shares (then it takes none of its own), or None."""

    entry: Entry
    file: str
    tied_to: str | None

    @property
    def nbytes(self) -> int:
        """Bytes of its own."""
        return 0 if self.tied_to else self.entry.nbytes

    @property
    def numel(self) -> int:
        """Elements of its own."""
        return 0 if self.tied_to else self.entry.numel

    @property
    def is_float(self) -> bool:
        """Whether another format could hold it: a floating-point tensor, and no table of scales."""
        if getattr(self.entry, "is_block", False):  # GGUF's: numbers in blocks
            return True
        return self.entry.torch_name.startswith(("float", "bfloat")) and self.entry.dtype != "F8_E8M0"


class Total(NamedTuple):
    """A sum over parameters: how many tensors, their elements and bytes."""

    name: str
    tensors: int
    numel: int
    nbytes: int


class Report(NamedTuple):
    """What `strided inspect` says of a checkpoint."""

    checkpoint: Checkpoint
    parameters: list[Parameter]
    notes: list[str]

    @property
    def total(self) -> Total:
        """The sum over all parameters, tied ones once."""
        return total("all", self.parameters)

    def sums(self) -> list[tuple[str, int, int, int, int]]:
        """A file each: (path, file size, header's length, summed bytes, size − 8 − header). The last two are equal."""
        summed: dict[str, int] = {}
        for parameter in self.parameters:
            summed[parameter.file] = summed.get(parameter.file, 0) + parameter.nbytes
        return [(h.path, h.file_size, h.length, summed.get(h.path, 0), h.data_bytes) for h in self.checkpoint.headers]

    def by_dtype(self) -> list[Total]:
        """Totals by dtype, largest first."""
        return sorted(grouped((p.entry.torch_name, p) for p in self.parameters), key=lambda row: -row.nbytes)

    def by_module(self, depth: int | None = None) -> list[Total]:
        """Totals by module prefix, in the order of names."""
        return grouped((prefix(p.entry.name, depth), p) for p in self.parameters)

    def would_take(self) -> list[tuple[Format, int]]:
        """Bytes of the whole in each format: floating-point tensors converted, the others as they are."""
        kept = sum(p.nbytes for p in self.parameters if not p.is_float)
        floats = [p.entry.shape for p in self.parameters if p.is_float and not p.tied_to]
        return [(form, kept + sum(map(form.nbytes, floats))) for form in FORMATS]


# ---- from headers to a report ---------------------------------------------------------------


def inspect(path: str | os.PathLike[str]) -> Report:
    """The report on a safetensors or GGUF file, a `*.safetensors.index.json` or a model folder. Raises SafetensorsError, GgufError or OSError."""
    gguf = os.path.isfile(path) and is_gguf(path)
    checkpoint = Checkpoint(os.fspath(path), [read_gguf_header(path)], None, None, None) if gguf else open_checkpoint(path)  # type: ignore[list-item]
    parameters: list[Parameter] = []
    for header in checkpoint.headers:
        first: dict[tuple[int, int], str] = {}
        for entry in sorted(header.entries.values(), key=lambda entry: natural(entry.name)):
            twin = first.setdefault((entry.start, entry.end), entry.name) if entry.nbytes else entry.name
            parameters.append(Parameter(entry, header.path, None if twin == entry.name else twin))
    parameters.sort(key=lambda parameter: natural(parameter.entry.name))
    return Report(checkpoint, parameters, notes(checkpoint, parameters))


def notes(checkpoint: Checkpoint, parameters: list[Parameter]) -> list[str]:
    """What a reader should know: tied weights, and where index, configuration and files disagree."""
    names = {p.entry.name: p for p in parameters}
    said = [f"{p.entry.name} shares the bytes of {p.tied_to}: counted once" for p in parameters if p.tied_to]
    for header in checkpoint.headers:  # safetensors' save_model drops tied tensors and leaves a note: dropped name → kept name
        said += [f"{a} is tied to {b} and not stored (the file's metadata)" for a, b in header.metadata.items() if b in names and a not in names]
    config = checkpoint.config or {}
    texts = config.get("text_config")
    ties = config.get("tie_word_embeddings", texts.get("tie_word_embeddings") if isinstance(texts, dict) else None)
    heads = [p for name, p in names.items() if re.search(r"(^|\.)(lm_head|embed_out|output_projection)\.weight$", name)]
    if ties and heads and not heads[0].tied_to:
        said.append(f"config.json ties the word embeddings, yet {heads[0].entry.name} is stored by itself ({heads[0].nbytes:,} bytes)")
    elif ties and not heads:
        said.append("config.json ties the word embeddings: the output layer uses the input embedding's weights, stored and counted once")
    elif ties is False and not heads and any("embed_tokens" in name for name in names):
        said.append("config.json does not tie the word embeddings, yet no output layer (lm_head.weight) is stored")
    summed = sum(p.nbytes for p in parameters)
    if checkpoint.total_size is not None and checkpoint.total_size != summed:
        said.append(f"the index says total_size {checkpoint.total_size:,} bytes; its files hold {summed:,}")
    return said


def total(name: str, parameters: Iterable[Parameter]) -> Total:
    """The sum over parameters, under a name."""
    rows = list(parameters)
    return Total(name, len(rows), sum(p.numel for p in rows), sum(p.nbytes for p in rows))


def grouped(pairs: Iterable[tuple[str, Parameter]]) -> list[Total]:
    """One total a name, in the order the names first come."""
    groups: dict[str, list[Parameter]] = {}
    for name, parameter in pairs:
        groups.setdefault(name, []).append(parameter)
    return [total(name, rows) for name, rows in groups.items()]


def prefix(name: str, depth: int | None = None) -> str:
    """The module a parameter counts to: `depth` parts of its path; by default up to the first number (a layer), else at most two."""
    parts = name.split(".")[:-1] or [name]
    if depth is None:
        number = next((at for at, part in enumerate(parts) if part.isdecimal()), None)
        depth = 2 if number is None else number + 1
    return ".".join(parts[:depth])


def natural(name: str) -> list[tuple[int, int, str]]:
    """A sort key under which layer 10 comes after layer 9. (Numbers of absurd length compare as text.)"""
    return [(0, int(part), "") if part.isdecimal() and len(part) < 20 else (1, 0, part) for part in name.split(".")]


def merged(rows: list[Total]) -> list[tuple[Total, int]]:
    """Neighbouring layers of equal size as one row: [(layers.0, …), (layers.1, …)] → ((layers.0–1, sums), 2)."""
    result: list[tuple[Total, int]] = []
    base: tuple[str, int, int, int] | None = None
    for row in rows:
        stem, _, last = row.name.rpartition(".")
        here = (stem, row.tensors, row.numel, row.nbytes) if last.isdecimal() else None
        if here is not None and here == base:
            (was, count) = result[-1]
            first = was.name.rpartition(".")[2].partition("–")[0]
            dot = "." if stem else ""
            result[-1] = (Total(f"{stem}{dot}{first}–{last}", was.tensors + row.tensors, was.numel + row.numel, was.nbytes + row.nbytes), count + 1)
        else:
            result.append((row, 1))
        base = here
    return result


# ---- as text --------------------------------------------------------------------------------


def human(nbytes: int) -> str:
    """Bytes in binary units: 90865152 → 86.66 MiB."""
    size, units = float(nbytes), iter(("B", "KiB", "MiB", "GiB", "TiB"))
    unit = next(units)
    while size >= 1024 and unit != "TiB":
        size, unit = size / 1024, next(units)
    return f"{nbytes:,} B" if unit == "B" else f"{size:.2f} {unit}"


def share(part: int, whole: int) -> str:
    """part/whole in percent."""
    return f"{100 * part / whole:.2f}%" if whole else "–"


def folded(name: str, width: int) -> list[str]:
    """A parameter's name in lines of at most `width`, broken behind dots where it can be; later lines are indented."""
    indent = " " * (len(name) - len(name.lstrip()) + 2)
    lines, line = [], ""
    for part in re.findall(r"[^.]*\.|[^.]+$", name):
        if line.strip() and len(line) + len(part) > width:
            lines.append(line)
            line = indent
        line += part
        while len(line) > width > len(indent):
            lines.append(line[:width])
            line = indent + line[width:]
    return [*lines, line]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, style: Style) -> list[str]:
    """Lines of a table: the first column to the left and folded into what `width` (None: no limit) leaves it, the rest to the right.
    A row of one cell is a heading across the table."""
    full = [row for row in (head, *rows) if len(row) > 1]
    rest = [max(len(row[at]) for row in full) for at in range(1, len(head))]
    longest = max(len(row[0]) for row in full)
    room = longest if width is None else max(16, min(longest, width - sum(rest) - 2 * len(rest)))
    lines = []
    for at, row in enumerate((head, *rows)):
        if len(row) == 1:
            lines += folded(row[0], width or len(row[0]))
            continue
        name, *more = folded(row[0], room)
        line = name.ljust(room) + "".join("  " + cell.rjust(size) for cell, size in zip(row[1:], rest))
        lines.append(style.dim(line) if at == 0 else line.rstrip())
        lines += more
    return lines


def fits(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> bool:
    """Whether a table takes no more than `width` columns unfolded."""
    return width is None or sum(2 + max(len(row[at]) for row in (head, *rows)) for at in range(len(head))) - 2 <= width


def under_headings(rows: list[list[str]]) -> list[list[str]]:
    """A table's rows with long names shortened to their last two parts, under a heading that holds the rest."""
    result: list[list[str]] = []
    above = ""
    for name, *cells in rows:
        parts = name.split(".")
        stem, tail = ".".join(parts[:-2]), ".".join(parts[-2:])
        if above and above == ".".join(parts[:-1]):  # one part less than its neighbours under this heading
            stem, tail = above, parts[-1]
        if stem and stem != above:
            result.append([stem])
        above = stem
        result.append([f"  {tail}" if stem else name, *cells])
    return result


class Style:
    """Bold and dim on a terminal, plain text elsewhere."""

    def __init__(self, on: bool):
        self.on = on

    def bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self.on else text

    def dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self.on else text


def as_text(report: Report, width: int | None = None, depth: int | None = None, style: Style | None = None) -> str:
    """The report for a terminal of `width` columns (None: as wide as it needs)."""
    whole, style = report.total, style or Style(False)
    lines = [style.bold(printable(report.checkpoint.path)), f"{whole.tensors:,} parameters, {whole.numel:,} elements, {whole.nbytes:,} bytes ({human(whole.nbytes)})", ""]
    rows = [
        [
            printable(p.entry.name), "x".join(map(str, p.entry.shape)) or "scalar", p.entry.torch_name, f"{p.entry.bits / 8:g}",
            f"{p.entry.numel:,}", "tied" if p.tied_to else f"{p.nbytes:,}", share(p.nbytes, whole.nbytes),
        ]
        for p in report.parameters
    ]  # fmt: skip
    head = ["parameter", "shape", "dtype", "B", "elements", "bytes", "share"]
    lines += table(head, rows if fits(head, rows, width) else under_headings(rows), width, style)
    lines += ["", style.bold("by dtype")]
    sums = [[row.name, f"{row.tensors:,}", f"{row.numel:,}", f"{row.nbytes:,}", share(row.nbytes, whole.nbytes)] for row in report.by_dtype()]
    lines += table(["dtype", "tensors", "elements", "bytes", "share"], sums, width, style)
    lines += ["", style.bold("by module")]
    sums = [
        [printable(row.name), f"{times} × {row.tensors // times}" if times > 1 else f"{row.tensors:,}", f"{row.numel:,}", f"{row.nbytes:,}",
         share(row.nbytes, whole.nbytes)]
        for row, times in merged(report.by_module(depth))
    ]  # fmt: skip
    lines += table(["module", "tensors", "elements", "bytes", "share"], sums, width, style)
    lines += ["", style.bold("the same weights as"), *_formats_text(report, width, style), ""]
    for note in report.notes:
        lines += wrapped(f"note: {printable(note)}", width)
    for path, size, length, summed, data in report.sums():
        verdict = "equal, to the byte" if summed == data else f"NOT EQUAL: {summed - data:+,}"
        lines += wrapped(f"check: {printable(os.path.basename(path))}: {size:,} bytes − 8 − header {length:,} = {data:,}; tensors sum to {summed:,}: {verdict}", width)
    return "\n".join(lines) + "\n"


def _formats_text(report: Report, width: int | None, style: Style) -> list[str]:
    whole = report.total.nbytes
    weights = sum(p.numel for p in report.parameters if p.is_float)
    kept = sum(p.nbytes for p in report.parameters if not p.is_float)
    rows = [
        [form.name, f"{8 * (nbytes - kept) / weights:.4g}" if weights else "–", f"{nbytes:,}", human(nbytes), share(nbytes, whole)]
        for form, nbytes in report.would_take()
    ]
    lines = table(["format", "bits/weight", "bytes", "", "of stored"], rows, width, style)
    rules: dict[str, list[str]] = {}
    for form in FORMATS:
        if form.rule:
            rules.setdefault(form.rule, []).append(form.name)
    for rule, names in rules.items():
        lines += [style.dim(line) for line in wrapped(f"  {' and '.join(names)}: {rule}", width)]
    said = "  every floating-point tensor is converted, biases and norms too"
    return lines + [style.dim(line) for line in wrapped(f"{said}; other tensors stay ({kept:,} bytes)" if kept else said, width)]


def wrapped(text: str, width: int | None) -> list[str]:
    """Text in lines of at most `width`, later ones indented."""
    if width is None or len(text) <= width:
        return [text]
    import textwrap

    return textwrap.wrap(text, width, subsequent_indent="    ", break_on_hyphens=False)


def printable(text: str) -> str:
    """Text from a file made fit for a terminal: control characters are escaped."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()


# ---- as CSV and JSON ------------------------------------------------------------------------

COLUMNS = ("dtype_label", "param", "shape", "dtype", "elem_bytes", "numel", "bytes")


def write_csv(report: Report, file: Any, escaped: bool = False) -> None:
    """One line a parameter: dtype_label, param, shape as 384x384, dtype, elem_bytes, numel, bytes. A tied parameter's bytes are 0, so that
    the column sums to the file's bytes. escaped: control characters in names are written as escapes, as a terminal needs it."""
    import csv

    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for p in report.parameters:
        e = p.entry
        size: float = e.bits / 8
        writer.writerow([label(e), printable(e.name) if escaped else e.name, "x".join(map(str, e.shape)), f"torch.{e.torch_name}", int(size) if size.is_integer() else size, e.numel, p.nbytes])


def label(entry: Entry) -> str:
    """A short name of a dtype: fp32, bf16, fp8_e4m3; integers as torch has them."""
    tag = entry.dtype.lower()
    return f"fp{tag[1:]}" if tag.startswith("f") else tag if tag.startswith("bf") else entry.torch_name


def as_json(report: Report, depth: int | None = None) -> dict[str, Any]:
    """The report as plain values."""
    whole = report.total
    return {
        "path": report.checkpoint.path,
        "files": [
            {"path": path, "size": size, "header_bytes": length, "data_bytes": data, "summed_bytes": summed, "equal": summed == data}
            for path, size, length, summed, data in report.sums()
        ],
        "parameters": [
            {
                "name": p.entry.name, "shape": list(p.entry.shape), "dtype": f"torch.{p.entry.torch_name}", "stored_dtype": p.entry.dtype,
                "elem_bytes": p.entry.bits / 8, "numel": p.entry.numel, "bytes": p.nbytes, "share": p.nbytes / whole.nbytes if whole.nbytes else 0.0,
                "tied_to": p.tied_to, "file": os.path.basename(p.file), "offsets": [p.entry.start, p.entry.end],
            }
            for p in report.parameters
        ],
        "total": {"parameters": whole.tensors, "numel": whole.numel, "bytes": whole.nbytes},
        "by_dtype": [row._asdict() for row in report.by_dtype()],
        "by_module": [row._asdict() for row in report.by_module(depth)],
        "would_take": {form.name: nbytes for form, nbytes in report.would_take()},
        "metadata": {os.path.basename(header.path): header.metadata for header in report.checkpoint.headers},
        "notes": report.notes,
    }  # fmt: skip


# ---- the command ----------------------------------------------------------------------------


def main(words: Sequence[str]) -> int:
    """`strided inspect PATH [--csv FILE] [--json] [--depth N]`; the exit code."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="strided inspect",
        description="What a checkpoint's weights are, where their bytes go, and what they would take in other formats. Reads headers only.",
        epilog="""examples:
  strided inspect model.safetensors
  strided inspect model.gguf                       its blocks' bits a value
  strided inspect model.safetensors.index.json     all shards
  strided inspect path/to/model/                   a folder with either, and its config.json
  strided inspect model.safetensors --csv footprint.csv
  strided inspect model.safetensors --json | python -m json.tool

A tied parameter (two names, the same bytes) is counted once. In the CSV its bytes are 0, so that the column sums to the file's.""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", metavar="PATH", help="a .safetensors or .gguf file, a .safetensors.index.json, or a model folder")
    parser.add_argument("--csv", metavar="FILE", help="write one line a parameter to FILE ('-': standard output, and nothing else)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--depth", type=int, metavar="N", help="total by the first N parts of a name (default: up to the layer's number)")
    options = parser.parse_args(words)
    if options.depth is not None and options.depth < 1:
        parser.error("--depth must be at least 1")
    try:
        return _print(inspect(options.path), options)
    except (SafetensorsError, GgufError) as error:
        print(f"strided inspect: {printable(str(error))}", file=sys.stderr)
    except BrokenPipeError:  # `… | head`: point stdout elsewhere, so that the interpreter's own flush does not complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"strided inspect: {printable(error.filename or options.path)}: {error.strerror or error}", file=sys.stderr)
    return 1


def _print(report: Report, options: Any) -> int:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    if options.csv and options.csv != "-":
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            write_csv(report, file)
    if options.csv == "-":
        write_csv(report, sys.stdout, escaped=True)
    elif options.json:
        import json

        text = json.dumps(as_json(report, options.depth), indent=1, ensure_ascii=False)
        print(re.sub("[\x7f-\x9f\u2028-\u202e]", lambda found: f"\\u{ord(found[0]):04x}", text))  # controls that JSON itself lets pass
    else:
        terminal = sys.stdout.isatty()
        width = None  # into a file or a pipe: one line a parameter
        if terminal or "COLUMNS" in os.environ:
            import shutil

            width = shutil.get_terminal_size().columns
        sys.stdout.write(as_text(report, width, options.depth, Style(terminal and "NO_COLOR" not in os.environ)))
        if options.csv:
            print(f"CSV: {printable(options.csv)}")
    sys.stdout.flush()
    return 0 if all(summed == data for *_, summed, data in report.sums()) else 1
