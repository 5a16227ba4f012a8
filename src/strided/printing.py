"""How a tensor prints: PyTorch's text, character for character, from the elements that are shown.

Three steps: read the shown elements as nested lists, turn all numbers into strings of one width, lay the strings out in lines. Nothing is computed on
tensors and NumPy is not needed.
"""

from __future__ import annotations

import math
from typing import Any

from . import dtypes
from .arrays import read_rows
from .block_tensor import BlockTensor
from .tensor import Tensor, wrap

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


class _Options:
    precision: int = 4  # digits behind the point
    threshold: float = 1000  # more elements than this are summarised
    edgeitems: int = 3  # entries shown at each end of a summarised dimension
    linewidth: int = 80
    sci_mode: bool | None = None  # None: decided by the values


OPTIONS = _Options()


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None) -> None:
    """How tensors print: digits behind the point, elements before summarising, entries at each end, characters a line, scientific notation
    (None: where the values ask for it). `profile` is "default", "short" or "full" and sets the first four."""
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"profile must be one of {', '.join(map(repr, _PROFILES))}, not {profile!r}")
        vars(OPTIONS).update(_PROFILES[profile])
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    vars(OPTIONS).update({name: value for name, value in given.items() if value is not None})
    OPTIONS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The present options by name."""
    return {name: getattr(OPTIONS, name) for name in ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")}


class printoptions:
    """Context manager: `set_printoptions(**options)` while it is open."""

    def __init__(self, **options):
        self.options = options

    def __enter__(self):
        self.before = get_printoptions()
        set_printoptions(**self.options)
        return self

    def __exit__(self, *exception):
        set_printoptions(**self.before)


def tensor_repr(t: Tensor, *, contents: str | None = None) -> str:
    """`repr(t)`. contents: text to show instead of the elements."""
    if isinstance(t, BlockTensor):
        return _block_repr(t)
    name = "tensor" if type(t) is Tensor or getattr(type(t), "_prints_as_tensor", False) else type(t).__name__
    prefix = f"{name}("
    spec, default = t.spec, dtypes.get_default_dtype()
    notes, body = [], contents
    if spec.device.type != "cpu":
        notes.append(f"device='{spec.device}'")
    if spec.is_meta or spec.numel == 0:
        if spec.is_meta or spec.ndim != 1:
            notes.append(f"size={tuple(spec.shape)}")
        shown_dtype = spec.dtype is default
        body = body or ("..." if spec.is_meta else "[]")
    else:
        if not OPTIONS.edgeitems:
            notes.append(f"size={tuple(spec.shape)}")
        shown_dtype = spec.dtype in (default, default.to_complex(), dtypes.int64, dtypes.bool_)
        shown = t if spec.dtype.code >= 0 else wrap(spec.with_dtype(dtypes.uint8), t.mem, t.ptr)  # pairs of float4 are opaque: their bytes
        body = body or elements_text(shown, len(prefix))
    if not shown_dtype:
        notes.append(f"dtype={spec.dtype}")
    node = t.grad_fn if t._node is not None or t._base is not None else None
    if node is not None:
        notes.append(f"grad_fn=<{node.name().rpartition('::')[2]}>")
    elif t._tracked:
        notes.append("requires_grad=True")
    return with_notes(prefix + body, notes, len(prefix))


def _block_repr(t: BlockTensor) -> str:
    name, notes = "tensor(", [f"dtype={t.dtype}"]
    if t.is_meta:
        notes.insert(0, f"device='{t.device}'")
    if t.is_meta or not t.numel():
        notes.insert(-1, f"size={tuple(t.shape)}")
        return with_notes(name + ("..." if t.is_meta else "[]"), notes, len(name))
    edge = OPTIONS.edgeitems if t.numel() > OPTIONS.threshold else None
    shown = t.t() if t.turned and t.ndim == 2 else t
    if edge is not None:
        shown = shown.ends(edge)
    plain = shown.dequantize()
    if t.turned:
        plain = plain.transpose(-2, -1)
    strings, width = _format_all(_flatten(read_rows(plain, edge), plain.ndim), True)
    return with_notes(name + _brackets(iter(strings), t.shape, 0, len(name), edge, width), notes, len(name))


def parameter_repr(t: Tensor) -> str:
    """`repr` of a module's parameter."""
    return "Parameter containing:\n" + tensor_repr(t)


def tensor_format(t: Tensor, format_spec: str) -> str:
    """`format(t, spec)`: a 0-d tensor formats its number, any other as an object does (TypeError for a spec that is not empty)."""
    if t.spec.ndim == 0 and not t.spec.is_meta:
        return format(read_rows(t), format_spec)
    return object.__format__(t, format_spec)


def with_notes(text: str, notes: list[str], indent: int) -> str:
    """`text`, the notes behind it on as many lines as they need, and the closing parenthesis."""
    parts, column = [text], len(text) - text.rfind("\n") + 1
    for note in notes:
        if column + len(note) + 2 > OPTIONS.linewidth:
            parts.append(f",\n{' ' * indent}{note}")
            column = indent + len(note)
        else:
            parts.append(f", {note}")
            column += len(note) + 2
    return "".join(parts) + ")"


def elements_text(t: Tensor, indent: int = 0) -> str:
    """The elements in brackets, continued lines indented by `indent` spaces."""
    if t.spec.numel == 0:
        return "[]"
    summarise = t.spec.numel > OPTIONS.threshold
    edge = OPTIONS.edgeitems if summarise else None
    rows = read_rows(t, edge)
    flat = [rows] if t.spec.ndim == 0 else _flatten(rows, t.spec.ndim)
    strings, width = (_format_complex if t.spec.dtype.is_complex else _format_all)(flat, t.spec.dtype.is_floating_point)
    if t.spec.ndim == 0:
        return strings[0]
    return _brackets(iter(strings), t.spec.shape, 0, indent, edge, width)


def _flatten(rows: list, ndim: int) -> list:
    for _ in range(ndim - 1):
        rows = [item for row in rows for item in row]
    return rows


def _format_all(values: list, is_float: bool) -> tuple[list[str], int]:
    """Strings of one width, and the width. Zeros, infinities and NaNs do not take part in choosing it or the notation and may be longer, as in PyTorch."""
    if not is_float:
        strings = list(map(str, values))
        width = max(map(len, strings), default=1)
        return [s.rjust(width) for s in strings], width
    telling = [v for v in values if v and math.isfinite(v)]
    precision, whole, scientific = OPTIONS.precision, True, False
    if telling:
        sizes = [abs(v) for v in telling]
        low, high = min(sizes), max(sizes)
        whole = all(v == math.floor(v) for v in telling)
        scientific = high / low > 1000.0 or high > 1e8 or low < 1e-4 if OPTIONS.sci_mode is None else OPTIONS.sci_mode
    if scientific:
        form, point = f"%.{precision}e", ""
    elif whole:
        form, point = "%.0f", "."
    else:
        form, point = f"%.{precision}f", ""
    strings = [form % v + point if math.isfinite(v) else form % v for v in values]
    width = max((len(s) for s, v in zip(strings, values) if v and math.isfinite(v)), default=1)
    return [s.rjust(width) for s in strings], width


def _format_complex(values: list, is_float: bool) -> tuple[list[str], int]:
    """The parts' strings put together: each of its own width, the sign of the imaginary part between them."""
    reals, real_width = _format_all([v.real for v in values], True)
    imaginary, imaginary_width = _format_all([v.imag for v in values], True)
    strings = []
    for re, im in zip(reals, imaginary):
        im = im.lstrip()
        strings.append(f"{re}{im if im.startswith('-') else '+' + im}j")
    return strings, real_width + imaginary_width + 1


def _brackets(strings, shape, d: int, indent: int, edge: int | None, width: int) -> str:
    size = shape[d]
    cut = edge is not None and size > 2 * edge
    shown = 2 * edge if cut and edge is not None else size
    if d < len(shape) - 1:
        parts = [_brackets(strings, shape, d + 1, indent + 1, edge, width) for _ in range(shown)]
        if cut and edge is not None:
            parts.insert(edge, "...")
        return "[" + ("," + "\n" * (len(shape) - d - 1) + " " * (indent + 1)).join(parts) + "]"
    items = [next(strings) for _ in range(shown)]
    if cut and edge is not None:
        items.insert(edge, " ..." if edge else "...")
    per_line = max(1, int((OPTIONS.linewidth - indent) // (width + 2)))
    lines = [", ".join(items[k : k + per_line]) for k in range(0, len(items), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
