"""What a script's lines did to tensors: events gathered by line and call, while the script runs.

Holds the collector and its records; how they are shown is annotate.py's and annotate_html.py's work. A frame of a library folds into the line of the
script that called it.
"""
from __future__ import annotations

import os
import sys
from collections import Counter
from types import CodeType, FrameType
from typing import Any

from .. import memory
from ..dispatch import Event, TensorInfo, listen, tensors_in
from ..dtypes import float32
from ..kernels import precision
from ..layout import Layout, broadcast_shapes

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = (os.path.dirname(os.__file__) + os.sep, f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_FOLDS = tuple(_PACKAGE + room for room in ("nn", "optim", "data", "autograd" + os.sep + "checkpoint", "compile", "amp"))  # what runs operators on the user's behalf


_PRODUCTS = frozenset("mv dot vdot addmv bilinear".split())  # those that autocast leaves alone


class Row:
    """One operator at one place of a line, over all its calls.

    `kinds` counts view/copy/compute/inplace/create; `shapes`, `strides`, `dtypes` count what the result was; sums over calls: `bytes_allocated`, `flops`.
    """

    def __init__(self, op: str, folded: bool, site: tuple):
        self.op, self.folded, self.site = op, folded, site
        self.calls = 0
        self.kinds: Counter[str] = Counter()
        self.shapes: Counter[tuple] = Counter()
        self.strides: Counter[tuple] = Counter()
        self.dtypes: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.phases: Counter[str] = Counter()
        self.bytes_allocated = self.flops = 0
        self.rounding: Counter[str] | None = None  # what rounding.py counted, where it looks
        self.operands: str | None = None  # what a product's operands were rounded to
        self.suspicious: str | None = None
        self.last: tuple | None = None
        self.results: list[tuple] = []  # shapes of all results of the last call

    def add(self, event: Event) -> None:
        self.calls += 1
        self.kinds[event.kind] += 1
        self.phases[event.phase] += 1
        if event.reason:
            self.reasons[event.reason] += 1
        shown = event.outputs or (event.inputs[:1] if event.kind == "inplace" else [])
        if shown:
            first = shown[0]
            self.last = tuple(first.shape), first.strides, first.dtype.name
            self.results = [tuple(t.shape) for t in shown]
            self.shapes[tuple(first.shape)] += 1
            self.strides[first.strides] += 1
            self.dtypes[first.dtype.name] += 1
        self.bytes_allocated += event.bytes_allocated
        self.flops += event.flops
        product = event.entry.autocast == "lower" and event.op != "prelu" or event.op in _PRODUCTS
        if product and precision.mode() != "ieee" and any(t.dtype is float32 for t in event.inputs):
            self.operands = precision.mode()


class Line:
    """One line of the script: how often it ran, and the rows of its operators in the order they were first met."""

    def __init__(self, number: int):
        self.number = number
        self.visits = 0
        self.rows: dict[tuple, Row] = {}
        self.returned: dict[tuple, tuple] = {}  # what the call at a site returned: (shape, strides, dtype) of its first tensor

    @property
    def flops(self) -> int:
        return sum(row.flops for row in self.rows.values())

    @property
    def bytes_allocated(self) -> int:
        return sum(row.bytes_allocated for row in self.rows.values())


class Largest:
    """A storage worth naming: its bytes, the tensor that came with it, and the line that made it."""

    def __init__(self, nbytes: int, info: TensorInfo, line: int, op: str):
        self.nbytes, self.shape, self.dtype, self.line, self.op = nbytes, tuple(info.shape), info.dtype.name, line, op


class _Copy:
    """A copy whose later uses decide whether a view would have done: none of them may write to either side, nor need the copy's own strides."""

    def __init__(self, event: Event, line: int, why: str):
        self.source, self.line, self.nbytes, self.op, self.why = event.inputs[0], line, event.bytes_allocated, event.op, why
        self.needed = False
        self.uses = 0


class Trace:
    """Everything a run of `path` did. Use as a context manager around the run; `only`: a function's name, to keep its lines alone; `rounding`: whether
    every operator runs again in float64, to see what its rounding did."""

    def __init__(self, path: str, only: str | None = None, rounding: bool = False):
        self.path = os.path.abspath(path)
        self.folder = os.path.dirname(os.path.realpath(path)) + os.sep
        self.only = only
        self.files: dict[str, dict[int, Line]] = {self.path: {}}
        self.events = 0
        self.kinds: Counter[str] = Counter()
        self.flops = Counter[str]()
        self.bytes_allocated = 0
        self.peak = 0
        self.largest: list[Largest] = []
        self.avoidable: dict[tuple[int, str], list] = {}  # (line, operator): bytes, count, why
        self.seen_functions: set[str] = set()
        self.failed_line: int | None = None
        self.rounding = None
        if rounding:
            from .rounding import Rounding

            self.rounding = Rounding()
        self._copies: dict[int, _Copy] = {}
        self._finished: list[_Copy] = []
        self._mine: dict[str, bool] = {}

    @property
    def lines(self) -> dict[int, Line]:
        return self.files[self.path]

    # ---- running ----------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Trace:
        from ..ops.generator import default_generator

        default_generator.get_state()  # its state is made on first use, and is none of the script's memory
        memory.reset_peak_memory_stats()
        self._held = memory.memory_allocated()
        self._listener = listen(self._on_event, None if self.rounding is None else self.rounding.before)
        self._listener.__enter__()
        self._previous = sys.gettrace()
        sys.settrace(self._on_call)
        return self

    def __exit__(self, *exc: Any) -> None:
        sys.settrace(self._previous)
        self._listener.__exit__(*exc)
        self.peak = max(self.peak, memory.max_memory_allocated()) - self._held
        self._finished += self._copies.values()
        self._copies.clear()
        self._settle()

    def _is_mine(self, path: str) -> bool:
        """Whether a file is the script or one of its neighbours, rather than a library's."""
        found = self._mine.get(path)
        if found is None:
            real = path if path.startswith("<") else os.path.realpath(path)  # "<frozen importlib._bootstrap>" and generated code are no files of the folder
            found = path == self.path or real.startswith(self.folder) and not real.startswith(_PACKAGE) and not any(part in real for part in _LIBRARY)
            self._mine[path] = found
        return found

    def _on_call(self, frame: FrameType, what: str, argument: Any):
        # Lines are counted in the user's own files; of a library only what it returns to them is looked at.
        if self._is_mine(frame.f_code.co_filename):
            self.seen_functions.add(getattr(frame.f_code, "co_qualname", frame.f_code.co_name))
            return self._on_line if self._wanted(frame) else None
        caller = frame.f_back
        if caller is not None and self._is_mine(caller.f_code.co_filename):
            frame.f_trace_lines = False
            return self._on_return
        return None

    def _on_line(self, frame: FrameType, what: str, argument: Any):
        if what == "line":
            self._line(frame.f_code.co_filename, frame.f_lineno).visits += 1
        elif what == "return":
            caller = frame.f_back
            if caller is not None and self._is_mine(caller.f_code.co_filename):
                self._on_return(frame, what, argument)
        elif what == "exception" and frame.f_code.co_filename == self.path:
            self.failed_line = frame.f_lineno
        return self._on_line

    def _on_return(self, frame: FrameType, what: str, argument: Any):
        if what == "return" and argument is not None:
            caller = frame.f_back
            tensors = tensors_in(argument)
            if caller is not None and tensors:
                first = TensorInfo(tensors[0])
                line = self._line(caller.f_code.co_filename, caller.f_lineno)
                line.returned[caller.f_code, caller.f_lasti] = tuple(first.shape), first.strides, first.dtype.name
        return self._on_return

    def _wanted(self, frame: FrameType) -> bool:
        return self.only is None or _inside(frame, self.only)

    def _line(self, path: str, number: int) -> Line:
        lines = self.files.setdefault(path, {})
        found = lines.get(number)
        if found is None:
            found = lines[number] = Line(number)
        return found

    # ---- events -----------------------------------------------------------------------------------------------------------

    def _on_event(self, event: Event) -> None:
        inner, outer, folded = self._user_frames()
        if inner is None or not self._wanted(inner):
            return
        self.events += 1
        self.kinds[event.kind] += 1
        self.flops[event.phase] += event.flops
        self.bytes_allocated += event.bytes_allocated
        suspicious = _outer_broadcast(event)
        counts = self._rounded(event)
        self._add(inner, event, folded, suspicious, counts)
        if outer is not None and outer is not inner and self.only is None:
            self._add(outer, event, True, suspicious, counts)  # the script's own line shows what its neighbours did on its behalf
        self._watch(event, (outer or inner).f_lineno)

    def _rounded(self, event: Event) -> Counter[str] | None:
        """What the operator's rounding did. The memory of the second run is not the script's: the peak is taken before it."""
        if self.rounding is None:
            return None
        self.peak = max(self.peak, memory.max_memory_allocated())
        counts = self.rounding.after(event)
        memory.reset_peak_memory_stats()
        return counts

    def _add(self, frame: FrameType, event: Event, folded: bool, suspicious: str | None, counts: Counter[str] | None) -> None:
        line = self._line(frame.f_code.co_filename, frame.f_lineno)
        line.visits = max(line.visits, 1)
        site = frame.f_code, frame.f_lasti
        key = *site, event.op, event.phase
        row = line.rows.get(key)
        if row is None:
            row = line.rows[key] = Row(event.op, folded, site)
        row.add(event)
        row.suspicious = row.suspicious or suspicious
        if counts is not None:
            row.rounding = counts if row.rounding is None else row.rounding + counts

    def _user_frames(self) -> tuple[FrameType | None, FrameType | None, bool]:
        """The innermost frame of the user's files, the innermost of the script itself, and whether a library stands between the first and the operator."""
        frame: FrameType | None = sys._getframe(2)
        inner, folded = None, False
        while frame is not None:
            path = frame.f_code.co_filename
            if self._is_mine(path):
                inner = inner or frame
                if path == self.path:
                    return inner, frame, folded
            elif inner is None and (not path.startswith(_PACKAGE) or path.startswith(_FOLDS)):
                folded = True
            frame = frame.f_back
        return inner, None, folded

    def _watch(self, event: Event, number: int) -> None:
        """Follows the largest storages, and copies until it is known whether anything needed them."""
        if event.kind == "inplace":  # a write, perhaps through an alias or by an optimiser: copies of what it touched were needed
            written = {info.storage_id for info in (*event.inputs, *event.outputs)}
            for storage, held in self._copies.items():
                if storage in written or held.source.storage_id in written:
                    held.needed = True
        for info in event.inputs:
            copy = self._copies.get(info.storage_id)
            if copy is not None:
                copy.uses += 1
                if event.kind == "view" and copy.op == "contiguous" and not _possible(event, copy.source):
                    copy.needed = True
        fresh = {info.storage_id: info for info in event.outputs if event.kind not in ("view", "inplace")}
        for storage, info in fresh.items():
            old = self._copies.pop(storage, None)  # the memory of a dead storage may be met again under the same identity
            if old is not None:
                self._finished.append(old)
            self._remember(info, number, event.op)
        if len(self._finished) > 4096:  # what is settled need not be kept one by one
            self._settle()
        if event.kind != "copy" or not event.outputs or event.phase == "backward":
            return
        if event.op == "contiguous":
            why = "every later use reads strided memory as it is"
        elif event.op in ("repeat", "repeat_interleave", "tile") and _only_stretches(event):
            why = "it only repeats along dimensions of size 1: expand() reads the one element again, without a copy"
        else:
            return
        self._copies[event.outputs[0].storage_id] = _Copy(event, number, why)

    def _settle(self) -> None:
        for copy in self._finished:
            if copy.uses and not copy.needed:
                entry = self.avoidable.setdefault((copy.line, copy.op), [0, 0, copy.why])
                entry[0] += copy.nbytes
                entry[1] += 1
        self._finished.clear()

    def _remember(self, info: TensorInfo, number: int, op: str) -> None:
        nbytes = info.storage_nbytes
        known = next((entry for entry in self.largest if entry.line == number and entry.op == op), None)
        if known is not None:
            if nbytes > known.nbytes:
                known.nbytes, known.shape, known.dtype = nbytes, tuple(info.shape), info.dtype.name
        elif len(self.largest) < 5 or nbytes > self.largest[-1].nbytes:
            self.largest.append(Largest(nbytes, info, number, op))
        self.largest.sort(key=lambda entry: -entry.nbytes)
        del self.largest[5:]


def _inside(frame: FrameType | None, function: str) -> bool:
    """Whether a frame belongs to a function of that name (or Class.method, or any method of Class), or to a comprehension or inner function of it."""
    while frame is not None:
        code: CodeType = frame.f_code
        qualified = getattr(code, "co_qualname", code.co_name)
        if function in (code.co_name, qualified) or f".{qualified}.".find(f".{function}.") >= 0:
            return True
        if code.co_name not in ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>"):
            return False
        frame = frame.f_back
    return False


# Operators beside the pointwise ones whose tensor operands broadcast against each other.
_BROADCASTING = frozenset("div where clamp lerp addcmul addcdiv masked_fill max min rsub mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy".split())


def _outer_broadcast(event: Event) -> str | None:
    """Says so where broadcasting stretched two operands against each other: an (n, 1) met an (n) or (1, n)."""
    if not (event.entry.pointwise or event.op.rstrip("_") in _BROADCASTING) or len(event.inputs) < 2:
        return None
    try:
        shape = tuple(broadcast_shapes(*[t.shape for t in event.inputs]))
    except RuntimeError:
        return None
    operands = [t for t in event.inputs if tuple(t.shape) != shape]
    if len(operands) < 2 or len(operands) < len(event.inputs) or sum(_numel(t.shape) > 1 for t in operands) < 2:
        return None
    shapes = " and ".join(str(list(t.shape)) for t in operands[:3])
    return f"broadcasting expanded both operands: {shapes} became {list(shape)}"


def _numel(shape: tuple) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _only_stretches(event: Event) -> bool:
    before, after = tuple(event.inputs[0].shape), tuple(event.outputs[0].shape)
    before = (1,) * (len(after) - len(before)) + before
    return len(before) == len(after) and all(a == b or a == 1 for a, b in zip(before, after))


def _possible(event: Event, source: TensorInfo) -> bool:
    """Whether the view that was taken of a contiguous copy could have been taken of its source: only re-viewing (view, flatten, …) asks for more than strides."""
    if event.op not in ("view", "reshape", "flatten", "unflatten", "view_as", "reshape_as", "ravel"):
        return True
    if tuple(event.inputs[0].shape) != tuple(source.shape):
        return False
    return Layout.of(source.shape, source.strides).view(event.outputs[0].shape) is not None
