"""Words and numbers that the terminal and the page share: sizes, FLOPs, shapes, verdicts, and operators of library code as one entry.

Works on the report's plain data (annotate.py); knows no output.
"""
from __future__ import annotations

from typing import Any

VERDICTS = {"view": "view", "copy": "copy", "compute": "new", "create": "new", "inplace": "in place"}


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
    if entry.get("results"):
        return ", ".join(map(str, entry["results"][:4])) + (f", … ({len(entry['results'])} results)" if len(entry["results"]) > 4 else "")
    if shapes and len(shapes) == 2:
        return " and ".join(map(str, shapes))
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
    def belongs(o: dict[str, Any]) -> tuple | None:
        return (o["site"], o.get("phase")) if o.get("in_library") or o.get("phase") else None

    groups: dict[tuple, list[dict[str, Any]]] = {}
    for o in operators:
        if (place := belongs(o)) is not None:
            groups.setdefault(place, []).append(o)
    result: list[dict[str, Any]] = []
    for o in operators:
        place = belongs(o)
        group = [] if place is None else groups[place]
        if len(group) > 3:
            if o is group[0]:
                result.append(_merged(group, o.get("phase")))
            continue
        shown = {**o, "operator": o["operator"].removesuffix("_backward") + " (backward)"} if o.get("phase") else dict(o)
        twin = next((r for r in result if all(r.get(k) == shown.get(k) for k in ("operator", "kinds", "shape", "strides", "dtype", "reason", "suspicious"))), None)
        if twin is None:
            result.append(shown)
        else:  # the same call written twice on a line
            for key in ("calls", "bytes_allocated", "flops"):
                twin[key] += shown[key]
            if shown.get("rounding"):
                twin["rounding"] = _added_rounding([twin, shown])
    return result


def _merged(group: list[dict[str, Any]], phase: str | None) -> dict[str, Any]:
    """Several operators of one call as one entry: their sums, what the call returned, and which they were."""
    counts: dict[str, int] = {}
    kinds: dict[str, int] = {}
    for o in group:
        counts[o["operator"]] = counts.get(o["operator"], 0) + o["calls"]
        for kind, n in o["kinds"].items():
            kinds[kind] = kinds.get(kind, 0) + n
    most = sorted(counts.items(), key=lambda item: -item[1])
    names = ", ".join(f"{name} ×{n}" if n > 1 else name for name, n in most[:5]) + (", …" if len(most) > 5 else "")
    returned = group[0].get("returned") or {"shape": [], "strides": [], "dtype": ""}  # no dtype: no tensor came back, and no shape is shown
    merged = {
        **group[-1], **returned, "operator": f"{sum(counts.values())} {'backward ' if phase else ''}operators", "detail": names, "kinds": kinds, "calls": 1,
        "bytes_allocated": sum(o["bytes_allocated"] for o in group), "flops": sum(o["flops"] for o in group),
    }  # fmt: skip
    for key in ("reason", "shapes", "shape_count", "results", "suspicious", "rounding", "operands"):
        merged.pop(key, None)
    rounding = _added_rounding(group)
    if rounding:
        merged["rounding"] = rounding
    operands = next((o["operands"] for o in group if o.get("operands")), None)
    if operands:
        merged["operands"] = operands
    suspicious = next((o["suspicious"] for o in group if o.get("suspicious")), None)
    if suspicious:
        merged["suspicious"] = suspicious
    return merged


def _added_rounding(entries: list[dict[str, Any]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for entry in entries:
        for kind, n in entry.get("rounding", {}).items():
            total[kind] = total.get(kind, 0) + n
    return total


_ROUNDED = {
    "overflowed": "overflowed to infinity or NaN", "saturated": "saturated", "flushed": "flushed to 0", "subnormal": "subnormal", "lost": "lost more than half of the digits",
    "cancelled": "cancelled", "absorbed": "absorbed",
}  # fmt: skip


def harmed(rounding: dict[str, int]) -> bool:
    """Whether a line is worth naming: something overflowed, saturated or was flushed, or one result in a hundred lost its digits, was cancelled or absorbed.
    (Of a large product's elements, some are always near 0.)"""
    few = rounding.get("checked", 0) / 100
    return any(rounding.get(kind) for kind in ("overflowed", "saturated", "flushed")) or any(rounding.get(kind, 0) > few for kind in ("lost", "cancelled", "absorbed"))


def rounding_text(rounding: dict[str, int]) -> str:
    """What rounding did to some results, or nothing where it did no harm: 2 of 100 overflowed to infinity or NaN, 5 flushed to 0."""
    said = [f"{rounding[kind]:,} {text}" for kind, text in _ROUNDED.items() if rounding.get(kind)]
    if not said:
        return ""
    first, _, rest = said[0].partition(" ")
    return ", ".join([f"{first} of {rounding['checked']:,} {rest}", *said[1:]])


def strides_text(entry: dict[str, Any]) -> str:
    """Strides as a tuple prints."""
    return f"strides {tuple(entry['strides'])}"


def plural(n: int, word: str) -> str:
    """1 copy, 2 copies."""
    return f"{n} {word}" if n == 1 else f"{n} {word[:-1]}ies" if word.endswith("y") else f"{n} {word}s"
