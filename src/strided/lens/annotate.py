"""`strided annotate`: runs a script and prints its source with what each line did to tensors beside it.

Holds the command, the report made from a `Trace` (one dict, which --json prints as it is), and its form for the terminal. Collection is trace.py's,
the page annotate_html.py's.
"""
from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .trace import Line, Row, Trace

VERDICTS = {"view": "view", "copy": "copy", "compute": "new", "create": "new", "inplace": "in place"}
_NAMES = {"true_divide": "div", "__getitem__": "index", "__setitem__": "index write"}


def main(words: list[str]) -> int:
    """The command `strided annotate`; its exit code (the script's own, where that fails)."""
    from .. import script

    parser = argparse.ArgumentParser(
        prog="strided annotate",
        usage="strided annotate [-h] [--only FUNCTION] [--html FILE] [--json [FILE]] [--width N] script.py [args …]",
        description="Run a PyTorch script and print its source with, beside each line that touched tensors, the result's shape, dtype and strides, whether it is "
        "a view or a copy (and why), bytes newly allocated, and FLOPs.",
        epilog="""examples:
  strided annotate examples/attention.py
  strided annotate --only forward train.py --steps 2
  strided annotate --html attention.html examples/attention.py
  strided annotate --json - examples/attention.py | jq .totals

view: the same memory, walked differently. copy: the same values in fresh memory. new: computed values. in place: written into memory that was there.
A multiply and an add count 2 FLOPs; exp, division and the like 1 each; comparisons, selections, casts and copies none. A product of [M, K] and [K, N]
counts 2·M·N·K.""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", metavar="FUNCTION", help="only the lines of this function (or Class.method)")
    parser.add_argument("--html", metavar="FILE", help="write one self-contained page instead of printing")
    parser.add_argument("--json", metavar="FILE", nargs="?", const="-", help="write the report as JSON (- or nothing: to standard output)")
    parser.add_argument("--width", type=int, metavar="N", help="columns to print for (default: the terminal's)")
    script.add_target(parser)
    options = parser.parse_args(words)
    target = script.target_of(options, parser)
    if target.kind != "script":
        parser.error("annotate prints a script's source: give it a file")
    if not os.path.isfile(target.name):
        print(f"strided: can't open file {os.path.abspath(target.name)!r}: [Errno 2] No such file or directory", file=sys.stderr)
        return 2
    return annotate(target, options.only, options.html, options.json, options.width)


def annotate(target: Any, only: str | None = None, html: str | None = None, json_to: str | None = None, width: int | None = None) -> int:
    """Runs a target under a trace and writes the report. A script that fails is still annotated up to where it failed; its exit code is returned."""
    from .. import script
    from .trace import Trace

    trace = Trace(target.name, only)
    report_output = sys.stdout
    if json_to == "-":  # what the script prints must not mix with the JSON
        sys.stdout = sys.stderr
    code = 0
    error: BaseException | None = None
    try:
        with trace:
            script.with_torch(target)
    except SystemExit as leaving:
        code = script.exit_code(leaving)
    except BaseException as raised:
        error = raised
    finally:
        sys.stdout.flush()
        sys.stdout = report_output
    report = make_report(trace)
    if only is not None and not any(only.split(".")[-1] == name for name in trace.seen_functions):
        print(f"strided: no function {only!r} was called in {target.name}; these were: {', '.join(sorted(n for n in trace.seen_functions if n[0] != '<')) or 'none'}", file=sys.stderr)
        code = code or 2
    if json_to is not None:
        _write(json_to, json.dumps(report, indent=1) + "\n")
    if html is not None:
        from .annotate_html import page

        _write(html, page(report))
        if html != "-":
            print(f"wrote {html}", file=sys.stderr)
    if json_to is None and html is None:
        print_report(report, width)
    if error is not None:
        return script.report(error)
    return code


def _write(path: str, text: str) -> None:
    if path == "-":
        sys.stdout.write(text)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


# ---- the report ---------------------------------------------------------------------------------------------------------------


def make_report(trace: Trace) -> dict[str, Any]:
    """The whole report as plain data: `lines` (source, visits, operators) and `totals`. Bytes in bytes, strides in elements."""
    with open(trace.path, encoding="utf-8", errors="replace") as file:
        source = file.read().splitlines()
    lines = []
    for number, text in enumerate(source, 1):
        line = trace.lines.get(number)
        entry: dict[str, Any] = {"line": number, "source": text}
        if line is not None:
            entry["visits"] = line.visits
            if line.rows:
                entry["flops"], entry["bytes_allocated"] = line.flops, line.bytes_allocated
                entry["operators"] = [_row(row) for row in line.rows.values()]
        lines.append(entry)
    totals = {
        "operators": trace.events,
        "views": trace.kinds["view"],
        "copies": trace.kinds["copy"],
        "flops": sum(trace.flops.values()),
        "flops_by_phase": dict(trace.flops),
        "bytes_allocated": trace.bytes_allocated,
        "peak_memory": trace.peak,
        "largest_tensors": [{"bytes": t.nbytes, "shape": list(t.shape), "dtype": t.dtype, "line": t.line, "operator": t.op} for t in trace.largest],
        "copies_that_could_be_views": [{"line": line, "operator": op, "bytes": nbytes, "why": why} for line, op, nbytes, why in trace.avoidable],
        "suspicious": [{"line": line.number, "what": row.suspicious} for line in _ordered(trace) for row in line.rows.values() if row.suspicious],
    }
    return {"script": os.path.relpath(trace.path), "only": trace.only, "lines": lines, "totals": totals}


def _ordered(trace: Trace) -> list[Line]:
    return [trace.lines[number] for number in sorted(trace.lines)]


def _row(row: Row) -> dict[str, Any]:
    shape, strides, dtype = row.last or ((), (), "")
    entry: dict[str, Any] = {
        "operator": _NAMES.get(row.op, row.op),
        "calls": row.calls,
        "kind": row.kinds.most_common(1)[0][0],
        "kinds": dict(row.kinds),
        "shape": list(shape),
        "strides": list(strides),
        "dtype": dtype,
        "bytes_allocated": row.bytes_allocated,
        "flops": row.flops,
    }
    if row.reasons:
        entry["reason"] = row.reasons.most_common(1)[0][0]
    if len(row.shapes) > 1:
        entry["shapes"] = [list(s) for s in list(row.shapes)[:64]]
        entry["shape_count"] = len(row.shapes)
    if row.folded:
        entry["in_library"] = True
    if row.phases["backward"]:
        entry["phase"] = "backward"
    if row.suspicious:
        entry["suspicious"] = row.suspicious
    return entry


# ---- words and numbers shared by the terminal and the page ----------------------------------------------------------------------


def bytes_text(n: int) -> str:
    """Bytes for people: 0 B, 512 B, 1.5 KiB, 2.0 MiB."""
    size = float(n)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{int(size)} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError


def flops_text(n: int) -> str:
    """FLOPs for people: 512 FLOP, 1.05 MFLOP, 537 MFLOP."""
    if n < 1000:
        return f"{n} FLOP"
    size = float(n)
    for unit in ("k", "M", "G", "T", "P"):
        size /= 1000
        if size < 999.5:
            return f"{size:.3g} {unit}FLOP"
    return f"{size:.3g} PFLOP"


def shape_text(entry: dict[str, Any]) -> str:
    """The result's shape; where calls differed, each dimension's range."""
    shapes = entry.get("shapes")
    if not shapes or len({len(s) for s in shapes}) != 1:
        return str(entry["shape"]) + (f" ({entry['shape_count']} shapes)" if shapes else "")
    sides = [str(low) if (low := min(d)) == (high := max(d)) else f"{low}…{high}" for d in zip(*shapes)]
    return f"[{', '.join(sides)}] ({entry['shape_count']} shapes)"


def verdict_text(entry: dict[str, Any]) -> str:
    kinds = entry["kinds"]
    if len(kinds) == 1:
        return VERDICTS[entry["kind"]]
    counts: dict[str, int] = {}
    for kind, n in kinds.items():
        counts[VERDICTS[kind]] = counts.get(VERDICTS[kind], 0) + n
    return ", ".join(f"{verdict} ×{n}" for verdict, n in counts.items())


def folded_summary(operators: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Operators as they are, but those that library code ran on this line's behalf as one entry each phase when there are more than three."""
    groups = {phase: [o for o in operators if (o.get("in_library") or phase) and o.get("phase") == phase] for phase in (None, "backward")}
    result = []
    for o in operators:
        phase = o.get("phase")
        group = groups[phase] if o.get("in_library") or phase else []
        if len(group) <= 3:
            result.append(o)
        elif o is group[0]:
            result.append(_merged(group, phase))
    return result


def _merged(group: list[dict[str, Any]], phase: str | None) -> dict[str, Any]:
    """Several operators as one entry: their sums, the last one's result, and which they were."""
    counts: dict[str, int] = {}
    kinds: dict[str, int] = {}
    for o in group:
        counts[o["operator"]] = counts.get(o["operator"], 0) + o["calls"]
        for kind, n in o["kinds"].items():
            kinds[kind] = kinds.get(kind, 0) + n
    most = sorted(counts.items(), key=lambda item: -item[1])
    names = ", ".join(f"{name} ×{n}" if n > 1 else name for name, n in most[:5]) + (", …" if len(most) > 5 else "")
    merged = {
        **group[-1], "operator": f"{sum(counts.values())} {'backward ' if phase else ''}operators", "detail": names, "kinds": kinds, "calls": 1,
        "bytes_allocated": sum(o["bytes_allocated"] for o in group), "flops": sum(o["flops"] for o in group),
    }  # fmt: skip
    for key in ("reason", "shapes", "shape_count", "suspicious"):
        merged.pop(key, None)
    suspicious = next((o["suspicious"] for o in group if o.get("suspicious")), None)
    if suspicious:
        merged["suspicious"] = suspicious
    return merged


# ---- the terminal ---------------------------------------------------------------------------------------------------------------------

_STYLES = {"view": "green", "copy": "yellow", "new": "cyan", "in place": "magenta"}


def print_report(report: dict[str, Any], width: int | None = None) -> None:
    """Prints the report: source with notes beside it on a wide terminal, below it on a narrow one; then the totals."""
    from rich.console import Console

    console = Console(width=width, highlight=False, soft_wrap=False)
    width = console.width
    wide = width >= 110
    sources = [entry["source"].expandtabs(4) for entry in report["lines"]]
    gutter = len(str(len(sources))) + 3
    code_width = min(max((len(s) for s in sources), default=0), width * 45 // 100) if wide else width - gutter
    shown = _shown_lines(report)
    before = 0
    for entry, source in zip(report["lines"], sources):
        number = entry["line"]
        if number not in shown:
            continue
        if number != before + 1:
            console.print(" " * (gutter - 2) + "⋮", style="dim")
        before = number
        _print_line(console, entry, source, gutter, code_width, width, wide)
    _print_totals(console, report)


def _shown_lines(report: dict[str, Any]) -> set[int]:
    """Every line of a script that fits; with --only, or in a long one, the lines with notes and two around them."""
    lines = report["lines"]
    if report["only"] is None and len(lines) <= 400:
        return {entry["line"] for entry in lines}
    noted = [entry["line"] for entry in lines if "operators" in entry]
    return {n for line in noted for n in range(line - 2, line + 3) if 1 <= n <= len(lines)}


def _print_line(console: Any, entry: dict[str, Any], source: str, gutter: int, code_width: int, width: int, wide: bool) -> None:
    from rich.text import Text

    number = Text(f"{entry['line']:>{gutter - 3}} │ ", style="dim")
    notes = _notes(entry, width - gutter - code_width - 2 if wide else width - gutter - 2) if "operators" in entry else []
    code = _pieces(source, code_width)
    if not wide:
        for i, piece in enumerate(code):
            console.print((number if i == 0 else Text(" " * (gutter - 3) + " │ ", style="dim")) + Text(piece, style="bold" if notes else ""))
        for note in notes:
            console.print(Text(" " * (gutter - 3) + " │  ", style="dim") + note)
        return
    for i in range(max(len(code), len(notes), 1)):
        left = number if i == 0 else Text(" " * (gutter - 3) + " │ ", style="dim")
        piece = code[i] if i < len(code) else ""
        console.print(left + Text(f"{piece:<{code_width}}  ", style="bold" if notes else "") + (notes[i] if i < len(notes) else Text("")))


def _pieces(text: str, width: int) -> list[str]:
    """A source line cut to the column's width between words, continued lines indented like the first."""
    indent = " " * min(len(text) - len(text.lstrip()) + 4, width // 2)
    pieces = []
    while len(text) > width:
        cut = text.rfind(" ", len(indent) + 8, width + 1)
        cut = width if cut < 0 else cut
        pieces.append(text[:cut])
        text = indent + text[cut:].lstrip()
    return [*pieces, text]


def _notes(entry: dict[str, Any], width: int) -> list[Any]:
    from rich.text import Text

    notes: list[Any] = []
    for o in folded_summary(entry["operators"]):
        verdict = verdict_text(o)
        style = _STYLES.get(VERDICTS[o["kind"]], "") if len(o["kinds"]) == 1 else ""
        parts = [(o["operator"] + (f" ×{o['calls']}" if o["calls"] > 1 else ""), "bold"), (verdict, style)]
        if o["dtype"]:
            parts += [(shape_text(o), "default"), (o["dtype"], "dim"), ("strides (" + ", ".join(map(str, o["strides"])) + ")", "dim")]
        if o["bytes_allocated"]:
            parts.append(("+" + bytes_text(o["bytes_allocated"]), "default"))
        if o["flops"]:
            parts.append((flops_text(o["flops"]), "default"))
        notes += _wrap(parts, width)
        for text, mark in ((o.get("detail"), "dim"), (o.get("reason") and f"copied: {o['reason']}", "yellow"), (o.get("suspicious") and f"⚠ {o['suspicious']}", "bold red")):
            if text:
                notes += [Text("  " + piece, style=mark) for piece in _words(text, width - 2)]
    return notes


def _wrap(parts: list[tuple[str, str]], width: int) -> list[Any]:
    """Joins a note's parts with two spaces, breaking between parts where the width ends."""
    from rich.text import Text

    lines = [Text()]
    for text, style in parts:
        if lines[-1] and len(lines[-1]) + 2 + len(text) > width:
            lines.append(Text("  "))
        elif lines[-1]:
            lines[-1].append("  ")
        lines[-1].append(text, style=style)
    return lines


def _words(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, max(width, 20)) or [""]


def _print_totals(console: Any, report: dict[str, Any]) -> None:
    totals = report["totals"]
    console.print()
    forward = totals["flops_by_phase"]
    split = f" (forward {flops_text(forward.get('forward', 0))}, backward {flops_text(forward['backward'])})" if forward.get("backward") else ""
    console.print(f"{totals['operators']} operators: {totals['views']} views, {totals['copies']} copies")
    console.print(f"FLOPs          {flops_text(totals['flops'])}{split}")
    console.print(f"allocated      {bytes_text(totals['bytes_allocated'])} in all, {bytes_text(totals['peak_memory'])} at the peak")
    if totals["largest_tensors"]:
        console.print("largest tensors")
        for t in totals["largest_tensors"]:
            console.print(f"  {bytes_text(t['bytes']):>10}  {t['shape']} {t['dtype']}, {_NAMES.get(t['operator'], t['operator'])} at line {t['line']}")
    if totals["copies_that_could_be_views"]:
        console.print("copies that could have been views", style="yellow")
        for c in totals["copies_that_could_be_views"]:
            console.print(f"  {bytes_text(c['bytes']):>10}  {c['operator']} at line {c['line']}: {c['why']}")
    for s in totals["suspicious"]:
        console.print(f"⚠ line {s['line']}: {s['what']}", style="bold red")
