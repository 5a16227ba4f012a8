"""The error report as one self-contained page: a chart of bits against SQNR, the formats' table, and a map of tensors and formats. No script.

Holds the page's text alone; the report is error.py's.
"""
from __future__ import annotations

import math
from html import escape
from typing import Any

from .annotate_html import _STYLE
from .error import HEAD, cells, decibels

_OWN = """
svg { width:100%; height:auto; max-width:900px; display:block; margin:8px 0 4px } svg text { fill:var(--ink); font:12px system-ui,sans-serif } svg .soft { fill:var(--soft) }
svg .axis { stroke:var(--line) } svg .lead { stroke:var(--soft); stroke-width:.7 } svg .dot { fill:var(--new) } svg .dot.block { fill:var(--view) }
td.n,th.n { text-align:right; font-variant-numeric:tabular-nums; white-space:nowrap } .scroll { overflow-x:auto } .map td { padding:2px 6px; font-size:12.5px }
.map td.n { color:#10151c } .map th { font-size:12px; vertical-align:bottom } tr:hover td { outline:1px solid var(--line) }
.map td.name { font-family:ui-monospace,Menlo,Consolas,monospace; font-size:12px; overflow-wrap:normal; white-space:nowrap }
"""
WIDTH, HEIGHT, LEFT, BOTTOM, RIGHT = 900, 420, 46, 40, 130


def page(report: dict[str, Any]) -> str:
    """The whole HTML document for a report."""
    title = escape(report["path"].rstrip("/").rpartition("/")[2] or report["path"])
    rows = "".join(f"<tr>{''.join(_cell(i, text) for i, text in enumerate(cells(name, measured)))}</tr>" for name, measured in report["formats"].items())
    head = "".join(f'<th{"" if i == 0 else " class=n"}>{h}</th>' for i, h in enumerate(HEAD))
    stored = ", ".join(f"{name} ({n:,})" for name, n in report["stored"].items())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title}: error by format</title><style>{_STYLE}{_OWN}</style></head><body>
<h1>{title}: what its weights lose in other formats</h1>
<p class="legend">{len(report["tensors"]):,} tensors, {report["elements"]:,} numbers, stored as {escape(stored)}. SQNR is 10·log10 of the numbers' squares over their errors' squares;
6 dB are one bit. A scalar format is a plain cast; a block format has scales, which count in its bits.</p>
<h2>Bits a value against SQNR</h2>
{chart(report["formats"])}
<h2>In all</h2>
<div class="scroll"><table><tr>{head}</tr>{rows}</table></div>
<h2>SQNR in dB, tensor by tensor</h2>
{_map(report)}
</body></html>
"""


def _cell(i: int, text: str) -> str:
    return f'<td class="{"num" if i == 0 else "n"}">{escape(text)}</td>'


def chart(formats: dict[str, dict[str, Any]]) -> str:
    """Bits a value to the right (by their logarithm), SQNR upwards; block formats in a colour of their own. Labels that would meet are moved apart."""
    points = [(m["bits"], m["sqnr_db"], name) for name, m in formats.items() if m["sqnr_db"] is not None and math.isfinite(m["sqnr_db"])]
    if not points:
        return '<p class="legend">Nothing to draw: every format holds these numbers exactly, or none.</p>'
    low, high = min(p[0] for p in points) * 0.93, max(p[0] for p in points) * 1.04
    top = max(10, math.ceil(max(p[1] for p in points) / 10) * 10)
    floor = min(0, math.floor(min(p[1] for p in points) / 10) * 10)
    x = lambda bits: LEFT + (WIDTH - LEFT - RIGHT) * (math.log(bits / low) / math.log(high / low) if high > low else 0.5)
    y = lambda db: HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 16) * (db - floor) / (top - floor)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="SQNR of each format against its bits a value">']
    for db in range(int(floor), int(top) + 1, 10):
        parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(db):.1f}" y2="{y(db):.1f}"/><text class="soft" x="{LEFT - 6}" y="{y(db) + 4:.1f}" text-anchor="end">{db}</text>')
    foot = HEIGHT - BOTTOM
    for bits in (1, 2, 4, 6, 8, 12, 16, 24, 32, 64):
        if low <= bits <= high:
            parts.append(f'<line class="axis" x1="{x(bits):.1f}" x2="{x(bits):.1f}" y1="16" y2="{foot}"/>'
                         f'<text class="soft" x="{x(bits):.1f}" y="{foot + 16}" text-anchor="middle">{bits}</text>')
    parts.append(f'<text class="soft" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">bits a value</text><text class="soft" x="{LEFT + 4}" y="12">SQNR dB</text>')
    taken: list[tuple[float, float, float]] = []
    for bits, db, name in sorted(points, key=lambda p: (-p[1], p[0])):
        at, label = (x(bits), y(db)), y(db) + 4
        width = 6.6 * len(name) + 8
        while any(abs(label - other) < 13 and left < at[0] + 8 + width and at[0] + 8 < right for left, right, other in taken):
            label += 3
        taken.append((at[0] + 8, at[0] + 8 + width, label))
        kind = " block" if "_g" in name or name.startswith(("mx", "nv")) else ""
        shift = f'<line class="lead" x1="{at[0]:.1f}" y1="{at[1]:.1f}" x2="{at[0] + 8:.1f}" y2="{label - 4:.1f}"/>' if label - at[1] > 6 else ""
        title = f"<title>{escape(name)}: {bits:.4g} bits, {db:.2f} dB</title>"
        parts.append(f'{shift}<circle class="dot{kind}" cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="4">{title}</circle><text x="{at[0] + 9:.1f}" y="{label:.1f}">{escape(name)}</text>')
    return "".join(parts) + "</svg>"


def _map(report: dict[str, Any]) -> str:
    """A table of tensors and formats, each cell coloured by its SQNR: red at 0 dB, green from 50 dB on."""
    names = list(report["formats"])
    head = "".join(f"<th class=n>{escape(name)}</th>" for name in names)
    rows = []
    for row in report["tensors"]:
        marks = "".join(_mark(row["formats"][name]["sqnr_db"]) for name in names)
        shape = "×".join(map(str, row["shape"])) or "scalar"
        rows.append(f'<tr><td class="name">{escape(row["name"])}</td><td class="n" style="color:var(--soft)">{shape}</td>{marks}</tr>')
    return f'<div class="scroll"><table class="map"><tr><th>tensor</th><th class=n>shape</th>{head}</tr>{"".join(rows)}</table></div>'


def _mark(db: float | None) -> str:
    hue = 140.0 if db is None else 0.0 if math.isinf(db) else max(0.0, min(db, 50.0)) * 2.8
    return f'<td class="n" style="background:hsl({hue:.0f} 70% 78%)">{decibels(db)}</td>'
