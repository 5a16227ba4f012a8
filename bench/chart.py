"""What bench/all.py writes: `page(report)`, one bar a row and side as HTML and SVG that load nothing, and `markdown(report)`, the same figures as tables."""
from __future__ import annotations

from html import escape

COLOURS = {"strided": "#2b6cb0", "torch": "#dd6b20", "torch.compile": "#b7791f", "numpy": "#718096", "jax": "#805ad5", "onnxruntime": "#319795", "tinygrad": "#d53f8c"}
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 68rem; padding: 0 1rem; color: #1a202c; background: #fff }
h2 { margin-top: 2.5rem } table { border-collapse: collapse; width: 100% } td, th { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #e2e8f0; vertical-align: middle }
td:first-child, th:first-child { text-align: left } td.bars { width: 40%; text-align: left } .missed { color: #c53030; font-weight: 600 } .met { color: #2f855a } small { color: #4a5568 }
.key span { display: inline-block; margin-right: 1rem } .key i { display: inline-block; width: .8em; height: .8em; margin-right: .3em }
@media (prefers-color-scheme: dark) { body { color: #e2e8f0; background: #1a202c } td, th { border-color: #2d3748 } small { color: #a0aec0 } .missed { color: #fc8181 } .met { color: #68d391 } }
"""
BAR, WIDTH = 9, 380


def page(report: dict) -> str:
    machine = report["machine"]
    parts = [f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'><title>strided, measured</title><style>{STYLE}</style>"]
    parts.append(f"<h1>strided, measured</h1><p>{escape(machine['processor'])}, {escape(machine['system'])}, Python {escape(machine['python'])}, {escape(report['time'])}.")
    parts.append("Bars are times: shorter is better, the longest of a row fills the width. The line across them is the limit that the machine sets, measured in the same run.</p>")
    for run in report["runs"]:
        sides = {"strided": run.get("strided", ""), **run["peers"]}
        parts.append(f"<h2>{run['threads']} thread{'s' * (run['threads'] > 1)}</h2><p class=key>")
        parts.append("".join(f"<span><i style='background:{COLOURS.get(n, '#4a5568')}'></i>{escape(n)} {escape(v)}</span>" for n, v in sides.items()) + "</p>")
        for group in dict.fromkeys(row["group"] for row in run["rows"]):
            parts.append(f"<h3>{escape(group)}</h3><table><tr><th>row<th>times<th>strided<th>best peer<th>ratio<th>of limit</tr>")
            parts += [_row(row) for row in run["rows"] if row["group"] == group]
            parts.append("</table>")
        if run["growth"]:
            parts.append("<h3>growth</h3><p><small>Slope of log time over log work: 1 is proportional.</small></p><table><tr><th>row<th>work<th>exponent</tr>")
            parts += [f"<tr><td>{escape(g['name'])}<td>{', '.join(map(str, g['scales']))}<td class={_class(-abs(g['exponent'] - 1), -g['floor'])}>{g['exponent']:.3f}</tr>" for g in run["growth"]]
            parts.append("</table>")
        if run["missing"]:
            parts.append("<p><small>Not measured: " + "; ".join(f"{escape(n)} ({escape(w)})" for n, w in run["missing"].items()) + ".</small></p>")
    return "\n".join(parts) + "\n"


def _row(row: dict) -> str:
    best = row["times"].get(row["best"])
    ratio = f"<td class={_class(row['ratio'], row['ratio_floor'])}>{row['ratio']:.2f} ×{_floor(row['ratio_floor'], '{:.2f} ×')}" if row["ratio"] else "<td>"
    share = f"<td class={_class(row['share'], row['share_floor'])}>{row['share']:.0%}{_floor(row['share_floor'], '{:.0%}')}" if row["share"] else "<td>"
    beside = f"{_time(best)}<br><small>{escape(row['best'])}</small>" if best else ""
    return f"<tr><td>{escape(row['name'])}<td class=bars>{_bars(row)}<td>{_time(row['times']['strided'])}<td>{beside}{ratio}{share}</tr>"


def _floor(floor, form: str) -> str:
    return f"<br><small>floor {form.format(floor)}</small>" if floor else ""


def _class(value, floor) -> str:
    return "none" if not floor else "met" if value >= floor else "missed"


def _bars(row: dict) -> str:
    times, longest = row["times"], max(row["times"].values())
    height = len(times) * (BAR + 3)
    bars = [
        f"<rect x=0 y={i * (BAR + 3)} width={max(1, WIDTH * t / longest):.1f} height={BAR} fill='{COLOURS.get(name, '#4a5568')}'><title>{escape(name)} {_time(t)}</title></rect>"
        for i, (name, t) in enumerate(times.items())
    ]
    if row["share"]:
        x = WIDTH * row["share"] * times["strided"] / longest
        bars.append(f"<line x1={x:.1f} x2={x:.1f} y1=0 y2={height} stroke='currentColor' stroke-dasharray='3 2'><title>limit: {escape(row['held'])}</title></line>")
    return f"<svg width={WIDTH} height={height} role=img aria-label='{escape(', '.join(f'{n} {_time(t)}' for n, t in times.items()))}'>{''.join(bars)}</svg>"


def _time(seconds: float) -> str:
    return f"{seconds * 1e9:.0f} ns" if seconds < 1e-5 else f"{seconds * 1e6:.0f} µs" if seconds < 1e-2 else f"{seconds * 1e3:.1f} ms"


def markdown(report: dict) -> str:
    """Tables of all rows; a figure that misses its floor is in bold."""
    lines = []
    for run in report["runs"]:
        lines += [f"### {run['threads']} thread{'s' * (run['threads'] > 1)}", "", "| row | strided | best peer | ratio | floor | of limit | floor |", "|---|---|---|---|---|---|---|"]
        for row in run["rows"]:
            best = f"{_time(row['times'][row['best']])} {row['best']}" if row["best"] else ""
            held = f"{_bold(row['share'], row['share_floor'], '{:.0%}')} {row['held']}" if row["share"] else ""
            floors = [form.format(floor) if floor else "" for form, floor in (("{:.2f}", row["ratio_floor"]), ("{:.0%}", row["share_floor"]))]
            name = f"{row['group']}: {row['name']}".replace("|", "/")
            lines.append(f"| {name} | {_time(row['times']['strided'])} | {best} | {_bold(row['ratio'], row['ratio_floor'], '{:.2f}') if row['ratio'] else ''} | {floors[0]} | {held} | {floors[1]} |")
        if run["growth"]:
            lines += ["", "| growth | work | exponent |", "|---|---|---|"]
            for g in run["growth"]:
                exponent = f"{g['exponent']:.3f}" if abs(g["exponent"] - 1) <= g["floor"] else f"**{g['exponent']:.3f}**"
                lines.append(f"| {g['name']} | {', '.join(map(str, g['scales']))} | {exponent} |")
        lines.append("")
    return "\n".join(lines)


def _bold(value: float, floor, form: str) -> str:
    return f"**{form.format(value)}**" if floor and value < floor else form.format(value)
