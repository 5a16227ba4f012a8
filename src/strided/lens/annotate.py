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

from .wording import VERDICTS, bytes_text, flops_text, folded_summary, harmed, plural, rounding_text, shape_text, strides_text, verdict_text

if TYPE_CHECKING:
    from .trace import Line, Row, Trace

_NAMES = {"true_divide": "div", "__getitem__": "index", "__setitem__": "index write"}


def main(words: list[str]) -> int:
    """The command `strided annotate`; its exit code (the script's own, where that fails)."""
    from .. import script

    parser = argparse.ArgumentParser(
        prog="strided annotate",
        usage="strided annotate [-h] [--only FUNCTION] [--rounding] [--html FILE] [--json] [-o FILE] [--width N] [--compiled] (script.py | -m module) [args …]",
        description="Run a PyTorch script and print its source with, beside each line that touched tensors, the result's shape, dtype and strides, whether it is "
        "a view or a copy (and why), bytes newly allocated, and FLOPs.",
        epilog="""examples:
  strided annotate examples/attention.py
  strided annotate --only forward train.py --steps 2
  strided annotate --rounding train.py           what rounding did, too
  strided annotate --html attention.html examples/attention.py
  strided annotate --json -o report.json examples/attention.py
  strided annotate --compiled train.py

view: the same memory, walked differently. copy: the same values in fresh memory.
new: computed values. in place: written into memory that was there.
A multiply and an add count 2 FLOPs; exp, division and the like 1 each;
comparisons, selections, casts and copies none. A product of [M, K] and [K, N]
counts 2·M·N·K. Operators run in worker processes are not seen. Watching every
operator makes small ones several times slower; results are the same.""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", metavar="FUNCTION", help="only the lines of this function, Class or Class.method")
    parser.add_argument("--rounding", action="store_true", help="run every operator again in float64 and count results that overflowed, were flushed to 0 or lost more than half of their digits")
    parser.add_argument("--html", metavar="FILE", help="write one self-contained page instead of printing")
    parser.add_argument("--json", action="store_true", help="print the report as JSON (what the script prints goes to standard error)")
    parser.add_argument("-o", "--output", metavar="FILE", help="where --json writes instead of standard output")
    parser.add_argument("--width", type=int, metavar="N", help="columns to print for (default: the terminal's)")
    parser.add_argument("--compiled", action="store_true", help="show instead what torch.compile made of the functions the script gave it: which lines became one kernel")
    script.add_target(parser, code="with --compiled: run code given as text")
    options = parser.parse_args(words)
    target = script.target_of(options, parser)
    if options.compiled:
        for given in ("only", "rounding", "html", "output", "width"):
            if getattr(options, given):
                parser.error(f"--compiled is a report of its own, as text or --json: leave --{given} out")
        from .compiled import report

        return report(target, options.json)
    if options.output is not None and not options.json:
        parser.error("-o says where --json writes: give both")
    path = _source_of(target, parser)
    if not os.path.isfile(path):
        print(f"strided: can't open file {os.path.abspath(path)!r}: [Errno 2] No such file or directory", file=sys.stderr)
        return 2
    for output in (options.html, options.output):  # before the run: a report must not be lost for a wrong path
        problem = unwritable(output, path)
        if problem is not None:
            print(f"strided: can't write {output!r}: {problem}", file=sys.stderr)
            return 2
    json_to = (options.output or "-") if options.json else None
    return annotate(target, path, options.only, options.html, json_to, options.width, options.rounding)


def _source_of(target: Any, parser: argparse.ArgumentParser) -> str:
    """The file whose lines are shown: the script, or the module's source."""
    if target.kind == "script":
        return target.name
    if target.kind == "code":
        parser.error("annotate prints a file's source, and -c code has none: save it as a script")
    import importlib.util

    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # python -m finds modules here first
    try:
        spec = importlib.util.find_spec(target.name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(target.name + ".__main__")
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        parser.error(f"no module named {target.name} with a source to show")
    return spec.origin


def unwritable(path: str | None, source: str) -> str | None:
    """Why a report on the file or folder `source` cannot be written to that path; None where it can."""
    if path is None or path == "-":
        return None
    if os.path.isdir(path):
        return "it is a folder"
    if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
        return f"that is {source} itself"
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        return f"there is no folder {folder!r}"
    return None if os.access(path if os.path.exists(path) else folder, os.W_OK) else "permission denied"


def annotate(target: Any, path: str, only: str | None = None, html: str | None = None, json_to: str | None = None, width: int | None = None, rounding: bool = False) -> int:
    """Runs a target under a trace and writes the report. A script that fails is still annotated up to where it failed; its exit code is returned."""
    from .. import script
    from .trace import Trace

    trace = Trace(path, only, rounding)
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
    if error is not None and not trace.events:  # a syntax error, a failing import: there is nothing to show beside the lines
        return script.report(error)
    if only is not None and not trace.events:
        called = sorted({name.replace(".<locals>", "") for name in trace.seen_functions if "<" not in name.replace(".<locals>", "")})
        print(f"strided: nothing ran an operator inside {only!r} in {path}; called were: {', '.join(called) or 'no functions'}", file=sys.stderr)
        return code or 2
    report = make_report(trace)
    if json_to is not None:
        _write(json_to, json.dumps(report, indent=1) + "\n")
    if html is not None:
        from .annotate_html import page

        _write(html, page(report))
    for name in (html, json_to):
        if name not in (None, "-"):
            print(f"wrote {name}", file=sys.stderr)
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
    """The whole report as plain data: `lines` of the script, `modules` (the same for its neighbours' files), `totals`. Bytes in bytes, strides in elements."""
    totals = {
        "operators": trace.events,
        "views": trace.kinds["view"],
        "copies": trace.kinds["copy"],
        "flops": sum(trace.flops.values()),
        "flops_by_phase": dict(trace.flops),
        "bytes_allocated": trace.bytes_allocated,
        "peak_memory": trace.peak,
        "largest_tensors": [{"bytes": t.nbytes, "shape": list(t.shape), "dtype": t.dtype, "line": t.line, "operator": t.op} for t in trace.largest],
        "copies_that_could_be_views": [
            {"line": line, "operator": op, "bytes": nbytes, "count": count, "why": why}
            for (line, op), (nbytes, count, why) in sorted(trace.avoidable.items(), key=lambda item: -item[1][0])
        ],
        "suspicious": [
            {"file": _short(path), "line": number, "what": row.suspicious}
            for path, lines in trace.files.items()
            for number in sorted(lines)
            for row in lines[number].rows.values()
            if row.suspicious and not (row.folded and len(trace.files) > 1)
        ],
    }
    if trace.rounding is not None:
        totals["rounding"] = _rounding_totals(trace)
    others = [path for path, lines in trace.files.items() if path != trace.path and any(line.rows for line in lines.values())]
    return {
        "script": _short(trace.path),
        "only": trace.only,
        "lines": _lines(trace, trace.path),
        "modules": [{"file": _short(path), "lines": _lines(trace, path)} for path in sorted(others)],
        "totals": totals,
    }


def _rounding_totals(trace: Trace) -> dict[str, Any]:
    """Sums over the innermost lines, the lines on which rounding did harm, and operators that could not be run again."""
    assert trace.rounding is not None
    sums: dict[str, int] = {}
    lines = []
    for path, numbered in trace.files.items():
        for number in sorted(numbered):
            here: dict[str, int] = {}
            for row in numbered[number].rows.values():
                for kind, n in (row.rounding or {}).items():
                    here[kind] = here.get(kind, 0) + n
                    if not (row.folded and path == trace.path and len(trace.files) > 1):  # a neighbour's line has it already
                        sums[kind] = sums.get(kind, 0) + n
            if any(n for kind, n in here.items() if kind not in ("checked", "subnormal")):
                lines.append({"file": _short(path), "line": number, **{kind: n for kind, n in here.items() if n}})
    return {**sums, "lines": lines, "unchecked": dict(trace.rounding.unchecked)}


def _short(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _lines(trace: Trace, path: str) -> list[dict[str, Any]]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            source = file.read().splitlines()
    except OSError:  # code that came from no file
        source = [""] * max(trace.files[path], default=0)
    lines = []
    for number, text in enumerate(source, 1):
        line = trace.files[path].get(number)
        entry: dict[str, Any] = {"line": number, "source": text}
        if line is not None:
            entry["visits"] = line.visits
            if path == trace.path and number == trace.failed_line:
                entry["raised"] = True
            if line.rows:
                entry["flops"], entry["bytes_allocated"] = line.flops, line.bytes_allocated
                sites = list(dict.fromkeys(row.site for row in line.rows.values()))
                entry["operators"] = [_row(row, sites.index(row.site), line) for row in line.rows.values()]
        lines.append(entry)
    return lines


def _row(row: Row, site: int, line: Line) -> dict[str, Any]:
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
        "site": site,  # which call of the line
    }
    if len(row.results) > 1:
        entry["results"] = [list(r) for r in row.results[:16]]
    if row.site in line.returned and row.folded:
        shape, strides, dtype = line.returned[row.site]
        entry["returned"] = {"shape": list(shape), "strides": list(strides), "dtype": dtype}
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
    if row.operands:
        entry["operands"] = row.operands
    if row.rounding is not None:
        entry["rounding"] = {kind: n for kind, n in row.rounding.items() if n}
    return entry


# ---- the terminal ---------------------------------------------------------------------------------------------------------------------

_STYLES = {"view": "green", "copy": "yellow", "new": "cyan", "in place": "magenta"}


def print_report(report: dict[str, Any], width: int | None = None) -> None:
    """Prints the report: source with notes beside it on a wide terminal, below it on a narrow one; then the totals."""
    from rich.console import Console

    if width is None or width > 0:
        console = Console(width=width, highlight=False, soft_wrap=False)
    else:
        console = Console(highlight=False, soft_wrap=False)
    if console.width < 40:  # narrower than a note: nothing readable fits
        console = Console(width=40, highlight=False, soft_wrap=False)
    if not console.encoding.lower().startswith("utf") and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    _print_file(console, report["lines"], report["only"])
    for module in report["modules"]:
        console.print()
        console.print(module["file"], style="bold underline")
        _print_file(console, module["lines"], report["only"], whole=False)
    _print_totals(console, report)


def _print_file(console: Any, lines: list[dict[str, Any]], only: str | None, whole: bool = True) -> None:
    width = console.width
    wide = width >= 110
    sources = [entry["source"].expandtabs(4) for entry in lines]
    gutter = len(str(len(sources))) + 3
    code_width = min(max((len(s) for s in sources), default=0), width * 45 // 100) if wide else width - gutter
    shown = _shown_lines(lines, only is None and whole)
    before = 0
    for entry, source in zip(lines, sources):
        number = entry["line"]
        if number not in shown:
            continue
        if number != before + 1:
            console.print(" " * (gutter - 2) + "⋮", style="dim")
        before = number
        _print_line(console, entry, source, gutter, code_width, width, wide)


def _shown_lines(lines: list[dict[str, Any]], whole: bool) -> set[int]:
    """Every line of a script that fits; with --only, of a neighbour's file or in a long one, the lines with notes and two around them."""
    if whole and len(lines) <= 400:
        return {entry["line"] for entry in lines}
    noted = [entry["line"] for entry in lines if "operators" in entry]
    return {n for line in noted for n in range(line - 2, line + 3) if 1 <= n <= len(lines)}


def _print_line(console: Any, entry: dict[str, Any], source: str, gutter: int, code_width: int, width: int, wide: bool) -> None:
    from rich.text import Text

    number = Text(f"{entry['line']:>{gutter - 3}} │ ", style="dim")
    notes = _notes(entry, width - gutter - code_width - 2 if wide else width - gutter - 2) if "operators" in entry or entry.get("raised") else []
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
    if entry.get("raised"):
        notes.append(Text("raised here", style="bold red"))
    for o in folded_summary(entry.get("operators", [])):
        verdict = verdict_text(o)
        style = _STYLES.get(VERDICTS[o["kind"]], "") if len(o["kinds"]) == 1 else ""
        parts = [(o["operator"] + (f" ×{o['calls']}" if o["calls"] > 1 else ""), "bold"), (verdict, style)]
        if o["dtype"]:
            parts += [(shape_text(o), "default"), (o["dtype"], "dim"), (strides_text(o), "dim")]
        if o["bytes_allocated"]:
            parts.append(("+" + bytes_text(o["bytes_allocated"]), "default"))
        if o["flops"]:
            parts.append((flops_text(o["flops"]), "default"))
        notes += _wrap(parts, width)
        for text, mark in ((o.get("detail"), "dim"), (o.get("reason") and f"copied: {o['reason']}", "yellow"), (o.get("suspicious") and f"⚠ {o['suspicious']}", "bold red"), *rounding_notes(o)):
            if text:
                notes += [Text("  " + piece, style=mark) for piece in _words(text, width - 2)]
    return notes


def rounding_notes(o: dict[str, Any]) -> list[tuple[str, str]]:
    """The notes on an operator's rounding, each with its style."""
    said = rounding_text(o.get("rounding", {}))
    harm = any(o.get("rounding", {}).get(kind) for kind in ("overflowed", "saturated", "lost"))
    operands = o.get("operands")
    return [(f"operands rounded to {operands}" if operands else "", "dim"), (f"rounding: {said}" if said else "", "red" if harm else "yellow")]


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
    console.print(f"{plural(totals['operators'], 'operator')}: {plural(totals['views'], 'view')}, {plural(totals['copies'], 'copy')}")
    console.print(f"FLOPs          {flops_text(totals['flops'])}{split}")
    scope = " of the whole run" if report["only"] else ""
    console.print(f"allocated      {bytes_text(totals['bytes_allocated'])} in all; {bytes_text(totals['peak_memory'])} at the peak{scope}, temporaries inside operators included")
    if totals["largest_tensors"]:
        console.print("largest tensors")
        for t in totals["largest_tensors"]:
            console.print(f"  {bytes_text(t['bytes']):>10}  {t['shape']} {t['dtype']}, {_NAMES.get(t['operator'], t['operator'])} at line {t['line']}")
    if totals["copies_that_could_be_views"]:
        console.print("copies that could have been views", style="yellow")
        for c in totals["copies_that_could_be_views"]:
            times = f" ×{c['count']}" if c["count"] > 1 else ""
            console.print(f"  {bytes_text(c['bytes']):>10}  {c['operator']}{times} at line {c['line']}: {c['why']}")
    for s in totals["suspicious"]:
        where = "" if s["file"] == report["script"] else f"{s['file']} "
        console.print(f"⚠ {where}line {s['line']}: {s['what']}", style="bold red")
    if "rounding" in totals:
        _print_rounding(console, totals["rounding"], report["script"])


def _print_rounding(console: Any, rounding: dict[str, Any], script: str) -> None:
    said = rounding_text(rounding)
    console.print(f"rounding       {said or 'nothing overflowed, was flushed, or lost more than half of its digits'}" + ("" if said else f" ({rounding.get('checked', 0):,} results checked)"))
    for line in filter(harmed, rounding["lines"]):
        where = "" if line["file"] == script else f"{line['file']} "
        console.print(f"  {where}line {line['line']}: {rounding_text(line)}", style="red" if any(line.get(k) for k in ("overflowed", "saturated", "lost")) else "yellow")
    if rounding["unchecked"]:
        names = ", ".join(f"{name} ×{n}" if n > 1 else name for name, n in rounding["unchecked"].items())
        console.print(f"  not checked, having no form in float64: {names}", style="dim")
