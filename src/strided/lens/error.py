"""`strided error PATH --formats …`: what real weights lose in other number formats, per tensor and in all.

Holds the measuring, the report (plain data, which --json prints) and its text; the page is error_html.py's. Tensors are read from mapped files one
by one and measured in pieces, so that memory stays bounded by the largest tensor of a `.pt` file, or by a piece of a safetensors file.
"""
from __future__ import annotations

import argparse
import math
import os
import pickle
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .exact import scalar_format, scalar_formats, unknown

if TYPE_CHECKING:
    from ..tensor import Tensor

USUAL = "bfloat16,float16,float8_e4m3fn,float8_e5m2,mxfp8_e4m3,mxfp6_e2m3,mxfp4,nvfp4,int8_g128,int4_g128"
PIECE = 1 << 21  # elements that are measured at a time


class Sums:
    """What is added up over elements: `count, error` (squares), `signal` (squares), `largest` (error), `zeros` (of numbers that were none), `saturated`, `nbytes`."""

    __slots__ = ("count", "error", "signal", "largest", "zeros", "saturated", "nbytes")

    def __init__(self) -> None:
        self.count = self.zeros = self.saturated = self.nbytes = 0
        self.error = self.signal = self.largest = 0.0

    def add(self, other: Sums) -> None:
        for name in ("count", "error", "signal", "zeros", "saturated", "nbytes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.largest = max(self.largest, other.largest)

    def report(self) -> dict[str, Any]:
        """Plain data: mse (mean square error), sqnr_db (10·log10 of signal over error; None where there is no error), shares between 0 and 1."""
        share = lambda n: n / self.count if self.count else 0.0
        return {
            "bits": 8 * self.nbytes / self.count if self.count else 0.0,
            "bytes": self.nbytes,
            "mse": share(self.error),
            "sqnr_db": None if self.error == 0 else -math.inf if math.isinf(self.error) or self.signal == 0 else 10 * math.log10(self.signal / self.error),
            "largest_error": self.largest,
            "zeros": share(self.zeros),
            "saturated": share(self.saturated),
        }


# ---- formats -----------------------------------------------------------------------------------------------------------------


class Scalar:
    """A cast to a scalar format, without any scale: what `x.to(dtype)` does."""

    tensor_scale = False

    def __init__(self, name: str):
        import strided

        self.name = name
        self.dtype = getattr(strided, name)
        self.bits = self.dtype.bits

    def convert(self, x: Tensor, scale: float | None) -> tuple[Tensor, Any, int]:
        """(x as the format holds it, in x's own dtype; the magnitude from which it saturates; bytes)."""
        return x.to(self.dtype).to(x.dtype), self.dtype.limits[0], -(-x.numel() * self.bits // 8)


class Block:
    """A block format: elements under common scales along the last dimension; a last block that is not full is padded."""

    def __init__(self, name: str):
        from .. import block_formats

        self.format = block_formats.parse(name)
        self.name = self.format.name
        self.tensor_scale = self.format.tensor_scale
        if not self.format.writable:
            raise ValueError(f"{self.name} is read from files and not written: take mxfp4, nvfp4, int4_g128 or int8_g128")

    def convert(self, x: Tensor, scale: float | None) -> tuple[Tensor, Any, int]:
        import strided

        held = strided.quantize(x.float(), self.format, pad=True, **({"tensor_scale": scale} if scale else {}))
        nbytes = sum(part.nbytes for part in held.parts)
        return held.dequantize().to(x.dtype), self._limit(held, x), nbytes

    def _limit(self, held: Any, x: Tensor) -> Any:
        """The largest magnitude under each element's scale; None where scales are chosen so that nothing saturates (integers)."""
        if self.format.element.kind != "float" and self.format.scale.name != "float8_e8m0fnu":
            return None
        import strided

        scales = held.parts[1].contiguous().view(getattr(strided, self.format.scale.name)).float()  # [*, blocks, 1]
        if held.tensor_scale is not None:
            scales = scales * held.tensor_scale
        limit = (scales * self.format.largest).expand(*scales.shape[:-1], self.format.block)
        return limit.reshape(*x.shape[:-1], -1)[..., : x.shape[-1]]


def format_of(name: str) -> Scalar | Block:
    """The format of a name as people write it ("int4-g128", "torch.bfloat16"). ValueError names the near ones."""
    from .. import block_formats

    wanted = name.strip().lower().removeprefix("torch.").replace("-", "_")
    try:
        form = scalar_format(wanted)
    except ValueError:
        try:
            return Block(wanted)
        except ValueError as error:
            if "read from files" in str(error):
                raise
        floats = [n for n, form in scalar_formats().items() if not form.is_integer and form.storage]
        raise ValueError(unknown("number format", name, [*floats, *block_formats.NAMES, "int4_g128", "int8_g128", "int4_g32_zero"])) from None
    if form.is_integer:
        raise ValueError(f"{form.name} alone has no scale, and weights would become 0: take {'int8_g128' if form.bits >= 8 else 'int4_g128'} (integers in groups under a scale)")
    if not form.storage:
        raise ValueError(f"{form.name} is a mode of computing and stores nothing: strided.set_float32_matmul_precision('high') computes in it")
    return Scalar(form.name)


def every_format() -> list[str]:
    """The names of `--formats all`: scalar formats of at most 16 bits that have a sign, and all block formats that are written."""
    from .. import block_formats

    scalars = [n for n, form in scalar_formats().items() if not form.is_integer and form.storage and form.bits <= 16 and form.sign]
    return scalars + [f.name for f in block_formats.all_formats() if f.writable]


# ---- measuring ---------------------------------------------------------------------------------------------------------------


def measure(x: Tensor, form: Scalar | Block) -> Sums:
    """What a floating-point tensor (or the numbers of a block tensor) loses in a format. Infinities and NaN of its own are left out."""
    from ..block_tensor import BlockTensor

    total = Sums()
    rows = x
    if not isinstance(x, BlockTensor) or x.ndim != 2:
        x = x.dequantize() if isinstance(x, BlockTensor) else x.detach()
        rows = x.reshape(-1, x.shape[-1] if x.ndim else 1)
    scale = _tensor_scale(rows) if form.tensor_scale else None
    for piece in _pieces(rows):
        total.add(_measure(piece, form, scale))
    return total


def _pieces(rows: Tensor) -> Iterator[Tensor]:
    """Some rows at a time (a part of a row is never taken: blocks lie along it), as float32 or float64."""
    import strided

    step = max(1, PIECE // max(rows.shape[1], 1))
    for at in range(0, rows.shape[0], step):
        piece = rows[at : at + step]
        if hasattr(piece, "tensor_scale"):  # of a block tensor
            piece = piece.dequantize()
        yield piece if piece.dtype in (strided.float32, strided.float64) else piece.float()


def _tensor_scale(rows: Tensor) -> float | None:
    """NVFP4's scale, from all pieces."""
    largest = max((float(piece.abs().amax()) for piece in _pieces(rows) if piece.numel()), default=0.0)
    return largest / (448.0 * 6.0) if largest and math.isfinite(largest) else None


def _measure(x: Tensor, form: Scalar | Block, scale: float | None) -> Sums:
    import strided

    sums = Sums()
    if not x.numel():
        return sums
    y, limit, sums.nbytes = form.convert(x, scale)
    difference, magnitude = y - x, x.abs()
    finite = magnitude < math.inf
    if not bool(finite.all()):  # what was no number before cannot lose anything
        x, y, difference, magnitude = (t.masked_fill(finite.logical_not(), 0.0) for t in (x, y, difference, magnitude))
    off = difference.abs()
    if not bool((off < math.inf).all()):  # it overflowed, to infinity or to NaN
        off = off.masked_fill((off < math.inf).logical_not(), math.inf)
    sums.count = x.numel()
    sums.largest = float(off.amax())
    sums.error = _square_sum(off, sums.largest)
    sums.signal = _square_sum(x, float(magnitude.amax()))
    sums.zeros = int(strided.count_nonzero((y == 0) & (x != 0)))
    if limit is not None:
        sums.saturated = int(strided.count_nonzero(magnitude > limit))
    return sums


def _square_sum(x: Tensor, largest: float) -> float:
    """The sum of squares, in units that neither overflow nor vanish."""
    if largest == 0 or math.isinf(largest):
        return largest
    unit = 2.0 ** math.frexp(largest)[1]
    scaled = (x / unit).reshape(-1)
    return float(scaled.dot(scaled)) * unit * unit


# ---- reading ------------------------------------------------------------------------------------------------------------------


def tensors_of(path: str) -> Iterator[tuple[str, str, Any]]:
    """(name, stored dtype, a function that reads the tensor) of everything in a safetensors file, its index, a `.pt` or `.gguf` file, or a model folder."""
    if os.path.isdir(path):
        path = _in_folder(path)
    lower = path.lower()
    if lower.endswith((".safetensors", ".safetensors.index.json")):
        yield from _of_safetensors(path)
    elif lower.endswith(".gguf"):
        yield from _of_gguf(path)
    elif lower.endswith((".pt", ".pth", ".bin", ".ckpt")):
        yield from _of_archive(path)
    else:
        raise ValueError(f"{path}: the ending says no format: give a .safetensors, .pt, .pth, .bin or .gguf file, or a folder with one")


def _in_folder(path: str) -> str:
    names = sorted(os.listdir(path))
    for ending in (".safetensors.index.json", ".safetensors", ".gguf", ".pt", ".pth", ".bin"):
        found = [name for name in names if name.endswith(ending)]
        if found and (len(found) == 1 or ending == ".safetensors.index.json" or "model.safetensors" in found):
            return os.path.join(path, "model.safetensors" if "model.safetensors" in found else found[0])
        if found:
            raise ValueError(f"{path} holds {len(found)} files ending in {ending}: name one ({', '.join(found[:4])})")
    raise ValueError(f"{path} holds no .safetensors, .gguf, .pt, .pth or .bin file")


def _of_safetensors(path: str) -> Iterator[tuple[str, str, Any]]:
    from ..io.header import open_checkpoint
    from ..io.safetensors import safe_open

    for header in open_checkpoint(path).headers:
        seen: dict[tuple[int, int], str] = {}
        with safe_open(header.path) as file:
            for name, entry in header.entries.items():
                if entry.nbytes and seen.setdefault((entry.start, entry.end), name) != name:
                    continue  # tied: measured once
                yield name, entry.torch_name, lambda file=file, name=name: file.get_tensor(name)


def _of_gguf(path: str) -> Iterator[tuple[str, str, Any]]:
    from ..io.gguf import GgufFile

    file = GgufFile(path)
    for name in file.keys():
        tensor = file[name]
        yield name, tensor.dtype.name, lambda tensor=tensor: tensor


def _of_archive(path: str) -> Iterator[tuple[str, str, Any]]:
    from ..io.serialization import load

    seen: set[tuple] = set()
    with open(path, "rb") as file:
        zipped = file.read(4) == b"PK\x03\x04"  # files from before PyTorch 1.6 are pickles, and cannot be mapped
    for name, tensor in _walk(load(path, map_location="cpu", mmap=zipped), ""):
        place = tensor.data_ptr(), tuple(tensor.shape), tensor.dtype
        if tensor.numel() and place in seen:
            continue  # tied: measured once
        seen.add(place)
        yield name, tensor.dtype.name, lambda tensor=tensor: tensor


def _walk(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    from ..tensor import Tensor

    if isinstance(value, Tensor):
        yield name or "tensor", value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _walk(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        for at, item in enumerate(value):
            yield from _walk(item, f"{name}.{at}" if name else str(at))


def error(path: str, formats: Sequence[str], only: str | None = None, progress: Any = None) -> dict[str, Any]:
    """What the tensors of a file or folder lose in each format, as plain data: `formats` (in all), `tensors` (each), `skipped`.

    only: a regular expression that names are searched for. progress(name) is called before each tensor. Raises ValueError, OSError, or the reader's error.
    """
    forms = [format_of(name) for name in formats]
    wanted = re.compile(only) if only else None
    totals = {form.name: Sums() for form in forms}
    rows, skipped = [], []
    for name, stored, read in tensors_of(path):
        if wanted is not None and not wanted.search(name):
            continue
        tensor = read()
        if not tensor.dtype.is_floating_point or tensor.numel() == 0:
            skipped.append({"name": name, "dtype": stored, "why": "no elements" if tensor.numel() == 0 else "no floating-point tensor"})
            continue
        if progress is not None:
            progress(name)
        measured = {}
        for form in forms:
            sums = measure(tensor, form)
            totals[form.name].add(sums)
            measured[form.name] = sums.report()
        rows.append({"name": name, "shape": list(tensor.shape), "dtype": stored, "elements": tensor.numel(), "formats": measured})
    stored_names: dict[str, int] = {}
    for row in rows:
        stored_names[row["dtype"]] = stored_names.get(row["dtype"], 0) + row["elements"]
    return {
        "path": path, "elements": sum(row["elements"] for row in rows), "stored": stored_names,
        "formats": {name: sums.report() for name, sums in totals.items()}, "tensors": rows, "skipped": skipped,
    }  # fmt: skip


# ---- the command --------------------------------------------------------------------------------------------------------------


def main(words: Sequence[str]) -> int:
    """The command `strided error`; its exit code."""
    parser = argparse.ArgumentParser(
        prog="strided error",
        description="What real weights lose in other number formats: mean square error, signal to quantisation noise (SQNR, in dB), the largest error, the shares flushed "
        "to zero and saturated, and the bits a value takes, scales included; per tensor and in all.",
        epilog=f"""examples:
  strided error model.safetensors
  strided error model/ --formats bfloat16,float8_e4m3fn,mxfp4,int4-g128
  strided error model.gguf --formats all --html error.html
  strided error weights.pt --only 'layers.0' --json

Formats are scalar ones (a plain cast, no scale) and block formats (mxfp4, nvfp4,
int4-g128, int8-g64-bfloat16, int4-g32-zero, …); default: {USUAL}.
SQNR: 10·log10(sum of squares / sum of squared errors); 6 dB are one bit.
flushed: numbers that became 0. saturated: numbers beyond the largest under their
scale. Infinities and NaN in the weights are left out. What a file holds in
blocks already (GGUF) is measured against the numbers it holds.""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", metavar="PATH", help="a .safetensors, .pt, .pth, .bin or .gguf file, an index, or a model folder")
    parser.add_argument("--formats", "-f", metavar="LIST", default=USUAL, help="formats by commas, or all")
    parser.add_argument("--only", metavar="REGEX", help="only tensors whose name it is found in")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--html", metavar="FILE", help="write a page with a chart")
    parser.add_argument("--summary", action="store_true", help="print the totals alone")
    options = parser.parse_args(words)
    from .annotate import unwritable

    problem = unwritable(options.html, options.path)  # before the work: a report must not be lost for a wrong path
    if problem is not None:
        print(f"strided error: can't write {options.html!r}: {problem}", file=sys.stderr)
        return 2
    try:
        if options.only:
            re.compile(options.only)
        formats = every_format() if options.formats == "all" else [name for name in options.formats.split(",") if name.strip()]
        if not formats:
            parser.error("--formats names no format")
        with _Progress() as progress:
            report = error(options.path, formats, options.only, progress)
    except re.error as problem:
        print(f"strided error: --only {options.only!r} is no regular expression: {problem}", file=sys.stderr)
        return 2
    except OSError as problem:
        print(f"strided error: {problem.filename or options.path}: {problem.strerror or problem}", file=sys.stderr)
        return 1
    except (ValueError, NotImplementedError, RuntimeError, EOFError, pickle.UnpicklingError) as problem:
        print(f"strided error: {problem}", file=sys.stderr)
        return 1
    if not report["tensors"]:
        print(f"strided error: {options.path}: no floating-point tensor" + (f" whose name {options.only!r} is found in" if options.only else ""), file=sys.stderr)
        return 1
    try:
        return _print(report, options)
    except BrokenPipeError:  # `… | head`: point stdout elsewhere, so that the interpreter's own flush does not complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _print(report: dict[str, Any], options: Any) -> int:
    if options.html:
        from .error_html import page

        with open(options.html, "w", encoding="utf-8") as file:
            file.write(page(report))
        print(f"wrote {options.html}", file=sys.stderr)
    if options.json:
        import json

        print(json.dumps(_finite(report), indent=1, ensure_ascii=False))
    elif not options.html:
        terminal = sys.stdout.isatty()
        width = None
        if terminal or "COLUMNS" in os.environ:
            import shutil

            width = shutil.get_terminal_size().columns
        print(as_text(report, width, terminal and "NO_COLOR" not in os.environ, options.summary))
    sys.stdout.flush()
    return 0


def _finite(value: Any) -> Any:
    """JSON has no infinity: it is written as text."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class _Progress:
    """The tensor at work, on one line of a terminal; nothing elsewhere."""

    def __init__(self) -> None:
        self.on = sys.stderr.isatty()
        self.count = 0

    def __enter__(self) -> _Progress:
        return self

    def __call__(self, name: str) -> None:
        self.count += 1
        if self.on:
            print(f"\r\x1b[2K{self.count}  {name[:60]}", end="", file=sys.stderr, flush=True)

    def __exit__(self, *exc: Any) -> None:
        if self.on:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


# ---- as text --------------------------------------------------------------------------------------------------------------------

HEAD = ["format", "bits", "SQNR dB", "MSE", "largest error", "flushed", "saturated"]


def decibels(value: float | None) -> str:
    return "exact" if value is None else "−∞" if math.isinf(value) else f"{value:.2f}"


def percent(share: float) -> str:
    """A share for people: 0, 0.31%, and so small a one that it would round to nothing as <0.01%."""
    return "0" if share == 0 else "<0.01%" if share < 1e-4 else f"{100 * share:.2f}%"


def cells(name: str, measured: dict[str, Any]) -> list[str]:
    """A row of the table of formats."""
    return [name, f"{measured['bits']:.5g}", decibels(measured["sqnr_db"]), f"{measured['mse']:.3g}", f"{measured['largest_error']:.3g}", percent(measured["zeros"]), percent(measured["saturated"])]


def as_text(report: dict[str, Any], width: int | None, colour: bool, summary: bool = False) -> str:
    """The report for a terminal: formats in all, then the SQNR of each tensor in each format."""
    from .inspect import Style, printable, table

    style = Style(colour)
    stored = ", ".join(report["stored"])
    lines = [style.bold(printable(report["path"])), f"{len(report['tensors']):,} tensors, {report['elements']:,} numbers, stored as {stored}", ""]
    lines += table(HEAD, [cells(name, measured) for name, measured in report["formats"].items()], width, style)
    if not summary:
        names = list(report["formats"])
        rows = [[printable(row["name"]), "x".join(map(str, row["shape"])) or "scalar", *(decibels(row["formats"][n]["sqnr_db"]) for n in names)] for row in report["tensors"]]
        shown = len(names)
        while width is not None and shown > 1 and 30 + 14 + sum(max(len(n), 6) + 2 for n in names[:shown]) > width:
            shown -= 1
        lines += ["", style.bold("SQNR in dB, per tensor") + (f" (the first {shown} of {len(names)} formats; --json and --html have all)" if shown < len(names) else "")]
        lines += table(["tensor", "shape", *names[:shown]], [row[: 2 + shown] for row in rows], width, style)
    if report["skipped"]:
        lines += ["", f"left out: {len(report['skipped'])} tensors that are not floating-point or empty"]
    return "\n".join(lines)
