"""The annotate report as one self-contained page: source and notes side by side, under each other on a phone. No script, no outside resource.

Holds the page's text alone; the report is annotate.py's.
"""
from __future__ import annotations

from html import escape
from typing import Any

from .annotate import rounding_notes
from .wording import VERDICTS, bytes_text, flops_text, folded_summary, harmed, rounding_text, shape_text, strides_text, verdict_text

_STYLE = """
:root { --ink:#1d2430; --soft:#6a7485; --paper:#fff; --line:#e4e8ee; --card:#f6f8fa; --view:#12805c; --copy:#a65f00; --new:#1f5fbf; --place:#8a3ab9; --bad:#c0262d; }
@media (prefers-color-scheme: dark) {
  :root { --ink:#e3e8f0; --soft:#94a0b3; --paper:#12161d; --line:#28303c; --card:#1a202a; --view:#4cc79a; --copy:#e2a44a; --new:#78acff; --place:#cf93f2; --bad:#ff7b80; }
}
* { box-sizing:border-box }
body { margin:0 auto; max-width:1400px; padding:16px; background:var(--paper); color:var(--ink); font:15px/1.45 system-ui,sans-serif }
h1 { font-size:20px; margin:0 0 4px } h2 { font-size:16px; margin:24px 0 8px }
code,.code,.op,.num { font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace; font-size:13px }
.cards { display:grid; grid-template-columns:repeat(auto-fit,minmax(130px,1fr)); gap:8px; margin:12px 0 }
.card { background:var(--card); border:1px solid var(--line); border-radius:8px; padding:8px 10px }
.card b { display:block; font-size:17px } .card span { color:var(--soft); font-size:12px }
.legend { color:var(--soft); font-size:13px; margin:8px 0 16px }
.row { display:grid; grid-template-columns:minmax(0,46fr) minmax(0,54fr); gap:0 16px; border-top:1px solid transparent }
.row.hit { border-top-color:var(--line); background:linear-gradient(90deg,var(--card),transparent 60%) }
.code { white-space:pre-wrap; overflow-wrap:anywhere; padding:1px 4px 1px 3.6em; text-indent:-3.6em; tab-size:4 }
.code i { display:inline-block; width:3em; margin-right:.6em; text-indent:0; text-align:right; color:var(--soft); font-style:normal; user-select:none }
.hit .code { font-weight:600 }
.notes { padding:1px 4px }
.note { margin:1px 0 3px; overflow-wrap:anywhere } .op { font-weight:600 } .num { color:var(--ink) } .soft { color:var(--soft); font-size:12.5px }
.tag { display:inline-block; border:1px solid currentColor; border-radius:9px; padding:0 7px; font-size:12px }
.view { color:var(--view) } .copy { color:var(--copy) } .new { color:var(--new) } .place { color:var(--place) } .bad { color:var(--bad); font-weight:600 }
.bar { height:3px; background:var(--new); border-radius:2px; margin-top:2px; opacity:.65 }
table { border-collapse:collapse; width:100% } td,th { text-align:left; padding:4px 8px; border-top:1px solid var(--line); font-size:14px; overflow-wrap:anywhere }
@media (max-width:760px) { body { padding:10px } .row { grid-template-columns:minmax(0,1fr) } .hit .notes { padding-left:3em; padding-bottom:4px } .row:not(.hit) .notes { display:none } }
"""

_ROUNDING_LEGEND = """ Rounding is told from a second run of each operator in float64. Cancelled: a sum so small against its terms that half of its digits are
their rounding. Absorbed: a term that changed nothing."""
_ROUNDING_CLASS = {"dim": "soft", "red": "bad", "yellow": "copy"}
_CLASS = {"view": "view", "copy": "copy", "new": "new", "in place": "place"}


def page(report: dict[str, Any]) -> str:
    """The whole HTML document for a report."""
    totals = report["totals"]
    facts = (
        ("FLOPs", flops_text(totals["flops"])),
        ("peak memory", bytes_text(totals["peak_memory"])),
        ("allocated in all", bytes_text(totals["bytes_allocated"])),
        *((name, str(totals[name])) for name in ("operators", "views", "copies")),
    )
    most = max((entry.get("flops", 0) for entry in report["lines"]), default=0)
    cards = "".join(f'<div class="card"><b>{escape(value)}</b><span>{escape(label)}</span></div>' for label, value in facts)
    rows = "\n".join(_line(entry, most) for entry in _visible(report))
    for module in report["modules"]:
        noted = [e["line"] for e in module["lines"] if "operators" in e]
        near = [e for e in module["lines"] if any(abs(e["line"] - n) <= 2 for n in noted)]
        rows += f"</div><h2>{escape(module['file'])}</h2><div>" + "\n".join(_line(entry, most) for entry in near)
    title = escape(report["script"])
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title}, annotated</title><style>{_STYLE}</style></head><body>
<h1>{title}</h1>
<div class="cards">{cards}</div>
{_warnings(totals, report["script"])}
<p class="legend"><span class="tag view">view</span> the same memory walked differently · <span class="tag copy">copy</span> the same values in fresh memory ·
<span class="tag new">new</span> computed values · <span class="tag place">in place</span> written into memory that was there. Strides are in elements.
The bar under a line is its share of the FLOPs.{_ROUNDING_LEGEND if "rounding" in totals else ""}</p>
<div>{rows}</div>
{_tables(totals)}
</body></html>
"""


def _visible(report: dict[str, Any]) -> list[dict[str, Any]]:
    if report["only"] is None:
        return report["lines"]
    noted = [entry["line"] for entry in report["lines"] if "operators" in entry]
    return [e for e in report["lines"] if noted and noted[0] - 3 <= e["line"] <= noted[-1] + 1]


def _line(entry: dict[str, Any], most: int) -> str:
    operators = entry.get("operators")
    code = f'<div class="code"><i>{entry["line"]}</i>{escape(entry["source"]) or " "}</div>'
    if not operators:
        return f'<div class="row">{code}<div class="notes"></div></div>'
    notes = "".join(_note(o) for o in folded_summary(operators))
    share = 100 * entry["flops"] / most if most and entry["flops"] else 0
    bar = f'<div class="bar" style="width:{max(share, 1):.1f}%"></div>' if share else ""
    return f'<div class="row hit">{code}<div class="notes">{notes}{bar}</div></div>'


def _note(o: dict[str, Any]) -> str:
    verdict = VERDICTS[o["kind"]]
    calls = f' <span class="soft">×{o["calls"]}</span>' if o["calls"] > 1 else ""
    parts = [f'<span class="op">{escape(o["operator"])}</span>{calls} <span class="tag {_CLASS[verdict]}">{escape(verdict_text(o))}</span>']
    if o["dtype"]:
        parts.append(f'<span class="num">{escape(shape_text(o))}</span> <span class="soft">{o["dtype"]} {strides_text(o)}</span>')
    numbers = [("+" + bytes_text(o["bytes_allocated"])) if o["bytes_allocated"] else "", flops_text(o["flops"]) if o["flops"] else ""]
    parts += [f'<span class="num">{n}</span>' for n in numbers if n]
    extra = ""
    if o.get("detail"):
        extra += f'<div class="soft">{escape(o["detail"])}</div>'
    if o.get("reason"):
        extra += f'<div class="copy soft">copied: {escape(o["reason"])}</div>'
    if o.get("suspicious"):
        extra += f'<div class="bad">⚠ {escape(o["suspicious"])}</div>'
    for text, style in rounding_notes(o):
        if text:
            extra += f'<div class="{_ROUNDING_CLASS[style]} soft">{escape(text)}</div>'
    return f'<div class="note">{" ".join(parts)}{extra}</div>'


def _warnings(totals: dict[str, Any], script: str) -> str:
    items = [f'<li class="bad">line {s["line"]}: {escape(s["what"])}</li>' for s in totals["suspicious"]]
    items += [
        f'<li class="copy">line {c["line"]}: {escape(c["operator"])}, {bytes_text(c["bytes"])}: {escape(c["why"])}</li>' for c in totals["copies_that_could_be_views"]
    ]
    items += [f'<li class="bad">{_place(line, script)}: rounding: {escape(rounding_text(line))}</li>' for line in filter(harmed, totals.get("rounding", {}).get("lines", ()))]
    return f"<h2>Worth a look</h2><ul>{''.join(items)}</ul>" if items else ""


def _place(line: dict[str, Any], script: str) -> str:
    return f'line {line["line"]}' + ("" if line["file"] == script else f' of {escape(line["file"])}')


def _tables(totals: dict[str, Any]) -> str:
    if not totals["largest_tensors"]:
        return ""
    rows = "".join(
        f'<tr><td class="num">{bytes_text(t["bytes"])}</td><td class="num">{t["shape"]}</td><td>{t["dtype"]}</td><td>{escape(t["operator"])}, line {t["line"]}</td></tr>'
        for t in totals["largest_tensors"]
    )
    return f"<h2>Largest tensors</h2><table><tr><th>bytes</th><th>shape</th><th>dtype</th><th>made by</th></tr>{rows}</table>"
