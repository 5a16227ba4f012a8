"""The report of a watched run, for the terminal and as one self-contained page with the loss and every layer's gradient norm over the steps."""
from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from .watch_findings import findings

if TYPE_CHECKING:
    from .watch import Watch

_STYLE = """
:root { --ink:#1d2430; --soft:#6a7485; --paper:#fff; --line:#e4e8ee; --card:#f6f8fa; --curve:#1f5fbf; --bad:#c0262d; --good:#12805c }
@media (prefers-color-scheme: dark) {
  :root { --ink:#e3e8f0; --soft:#94a0b3; --paper:#12161d; --line:#28303c; --card:#1a202a; --curve:#78acff; --bad:#ff7b80; --good:#4cc79a }
}
body { margin:0 auto; max-width:1100px; padding:16px; background:var(--paper); color:var(--ink); font:15px/1.5 system-ui,sans-serif }
h1 { font-size:20px; margin:0 0 8px } h2 { font-size:16px; margin:24px 0 8px }
.finding { border-left:4px solid var(--bad); background:var(--card); padding:8px 12px; margin:8px 0; border-radius:0 8px 8px 0 }
.finding b { color:var(--bad) } .finding p { margin:4px 0 }
.well { border-left:4px solid var(--good); background:var(--card); padding:8px 12px; margin:8px 0 }
.layers { display:grid; grid-template-columns:repeat(auto-fill,minmax(220px,1fr)); gap:10px }
figure { margin:0; background:var(--card); border:1px solid var(--line); border-radius:8px; padding:8px }
figcaption { font:12.5px ui-monospace,Menlo,Consolas,monospace; overflow-wrap:anywhere; color:var(--soft) }
svg { width:100%; height:auto; display:block } polyline { fill:none; stroke:var(--curve); stroke-width:1.5; vector-effect:non-scaling-stroke }
text { fill:var(--soft); font:11px system-ui,sans-serif } line { stroke:var(--line) }
"""


def text(watch: Watch) -> str:
    """For the terminal: what was found, or that nothing was."""
    lines = [_summary(watch)]
    found = findings(watch)
    if not found:
        return f"watch: {lines[0]} Nothing to report."
    lines = [f"watch: {lines[0]}"]
    for finding in found:
        lines += [f"  {finding.kind}: {finding.text}", f"    {finding.fix}"]
    return "\n".join(lines)


def _summary(watch: Watch) -> str:
    losses = [value for _, value in watch.losses]
    if not losses:
        return "no backward pass was seen."
    return f"{watch.steps} steps, loss {losses[0]:.4g} at first, {losses[-1]:.4g} at the end."


def page(watch: Watch, title: str) -> str:
    """The whole HTML document."""
    found = "".join(f'<div class="finding"><b>{escape(f.kind)}</b><p>{escape(f.text)}</p><p>{escape(f.fix)}</p></div>' for f in findings(watch))
    layers = "".join(f"<figure>{_curve(points, 220, 80, True)}<figcaption>{escape(name)}<br>{_range(points)}</figcaption></figure>" for name, points in watch.norms.items())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>{escape(title)}, watched</title><style>{_STYLE}</style></head><body>
<h1>{escape(title)}</h1><p>{escape(_summary(watch))}</p>
{found or '<div class="well">Nothing to report.</div>'}
<h2>Loss</h2><figure>{_curve(watch.losses, 900, 220, False)}<figcaption>backward passes →</figcaption></figure>
<h2>Norm of the gradient</h2><figure>{_curve(watch.totals, 900, 160, True)}<figcaption>steps →, logarithmic; of all parameters together</figcaption></figure>
<h2>Norm of the gradient by parameter</h2><div class="layers">{layers}</div>
</body></html>
"""


def _range(points) -> str:
    values = [value for _, value in points if math.isfinite(value)]
    return f"{min(values):.2g} … {max(values):.2g}" if values else "not finite"


def _curve(points, width: int, height: int, logarithmic: bool) -> str:
    """One line over the steps; gaps where values are not finite."""
    shown = [(x, math.log10(value) if logarithmic else value) for x, value in points if math.isfinite(value) and (value > 0 or not logarithmic)]
    if not shown:
        return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="no finite values"><text x="8" y="20">no finite values</text></svg>'
    left, right = shown[0][0], max(shown[-1][0], shown[0][0] + 1)
    low, high = min(y for _, y in shown), max(y for _, y in shown)
    high = high if high > low else low + 1
    place = lambda x, y: f"{(x - left) / (right - left) * (width - 60) + 52:.1f},{height - 14 - (y - low) / (high - low) * (height - 26):.1f}"
    label = lambda y: f"{10**y:.2g}" if logarithmic else f"{y:.4g}"
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="from {label(shown[0][1])} to {label(shown[-1][1])}">'
        f'<line x1="50" y1="{height - 12}" x2="{width}" y2="{height - 12}"/><text x="0" y="16">{label(high)}</text><text x="0" y="{height - 14}">{label(low)}</text>'
        f'<polyline points="{" ".join(place(x, y) for x, y in _thinned(shown))}"/></svg>'
    )


def _thinned(points, most: int = 2000):
    step = -(-len(points) // most)
    return points[::step]
