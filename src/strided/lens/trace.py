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
from ..dispatch import Event, TensorInfo, listen
from ..layout import Layout

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_FOLDS = tuple(_PACKAGE + room for room in ("nn", "optim", "data", "autograd" + os.sep + "checkpoint", "compile", "amp"))  # what runs operators on the user's behalf


class Row:
    """One operator at one place of a line, over all its calls.

    `kinds` counts view/copy/compute/inplace/create; `shapes`, `strides`, `dtypes` count what the result was; sums over calls: `bytes_allocated`, `flops`.
    """

    def __init__(self, op: str, folded: bool):
        self.op, self.folded = op, folded
        self.calls = 0
        self.kinds: Counter[str] = Counter()
        self.shapes: Counter[tuple] = Counter()
        self.strides: Counter[tuple] = Counter()
        self.dtypes: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.phases: Counter[str] = Counter()
        self.bytes_allocated = self.flops = 0
        self.suspicious: str | None = None
        self.last: tuple | None = None

    def add(self, event: Event) -> None:
        self.calls += 1
        self.kinds[event.kind] += 1
        self.phases[event.phase] += 1
        if event.reason:
            self.reasons[event.reason] += 1
        if event.outputs:
            first = event.outputs[0]
            self.last = tuple(first.shape), first.strides, first.dtype.name
            self.shapes[tuple(first.shape)] += 1
            self.strides[first.strides] += 1
            self.dtypes[first.dtype.name] += 1
        self.bytes_allocated += event.bytes_allocated
        self.flops += event.flops
        if self.suspicious is None:
            self.suspicious = _outer_broadcast(event)


class Line:
    """One line of the script: how often it ran, and the rows of its operators in the order they were first met."""

    def __init__(self, number: int):
        self.number = number
        self.visits = 0
        self.rows: dict[tuple, Row] = {}

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
    """A `contiguous()` copy whose later uses decide whether it was needed."""

    def __init__(self, source: TensorInfo, line: int, nbytes: int, op: str):
        self.source, self.line, self.nbytes, self.op = source, line, nbytes, op
        self.needed = False
        self.uses = 0


class Trace:
    """Everything a run of `path` did. Use as a context manager around the run; `only`: a function's name, to keep its lines alone."""

    def __init__(self, path: str, only: str | None = None):
        self.path = os.path.abspath(path)
        self.only = only
        self.lines: dict[int, Line] = {}
        self.events = 0
        self.kinds: Counter[str] = Counter()
        self.flops = Counter[str]()
        self.bytes_allocated = 0
        self.peak = 0
        self.largest: list[Largest] = []
        self.avoidable: list[tuple[int, str, int, str]] = []  # line, operator, bytes, why
        self.seen_functions: set[str] = set()
        self._copies: dict[int, _Copy] = {}
        self._finished: list[_Copy] = []

    # ---- running ----------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Trace:
        memory.reset_peak_memory_stats()
        self._held = memory.memory_allocated()
        self._listener = listen(self._on_event)
        self._listener.__enter__()
        self._previous = sys.gettrace()
        sys.settrace(self._on_call)
        return self

    def __exit__(self, *exc: Any) -> None:
        sys.settrace(self._previous)
        self._listener.__exit__(*exc)
        self.peak = memory.max_memory_allocated() - self._held
        for copy in [*self._finished, *self._copies.values()]:
            if copy.uses and not copy.needed:
                self.avoidable.append((copy.line, copy.op, copy.nbytes, "every later use reads strided memory as it is"))
        self.avoidable.sort(key=lambda entry: -entry[2])

    def _on_call(self, frame: FrameType, what: str, argument: Any):
        # Lines are counted in the script's own frames only; every other function runs untraced.
        if frame.f_code.co_filename != self.path:
            return None
        self.seen_functions.add(frame.f_code.co_name)
        return self._on_line if self._wanted(frame) else None

    def _on_line(self, frame: FrameType, what: str, argument: Any):
        if what == "line":
            self._line(frame.f_lineno).visits += 1
        return self._on_line

    def _wanted(self, frame: FrameType) -> bool:
        return self.only is None or _inside(frame, self.path, self.only)

    def _line(self, number: int) -> Line:
        found = self.lines.get(number)
        if found is None:
            found = self.lines[number] = Line(number)
        return found

    # ---- events -----------------------------------------------------------------------------------------------------------

    def _on_event(self, event: Event) -> None:
        frame, folded = self._user_frame()
        if frame is None or not self._wanted(frame):
            return
        self.events += 1
        self.kinds[event.kind] += 1
        self.flops[event.phase] += event.flops
        self.bytes_allocated += event.bytes_allocated
        number = frame.f_lineno
        line = self._line(number)
        line.visits = max(line.visits, 1)
        key = frame.f_code, frame.f_lasti, event.op, event.phase
        row = line.rows.get(key)
        if row is None:
            row = line.rows[key] = Row(event.op, folded)
        row.add(event)
        self._watch(event, number)

    def _user_frame(self) -> tuple[FrameType | None, bool]:
        """The innermost frame of the script, and whether a library stands between it and the operator."""
        frame: FrameType | None = sys._getframe(2)
        folded = False
        while frame is not None:
            path = frame.f_code.co_filename
            if path == self.path:
                return frame, folded
            if not path.startswith(_PACKAGE) or path.startswith(_FOLDS):
                folded = True
            frame = frame.f_back
        return None, False

    def _watch(self, event: Event, number: int) -> None:
        """Follows the largest storages, and copies until it is known whether anything needed them."""
        for info in event.inputs:
            copy = self._copies.get(info.storage_id)
            if copy is not None:
                copy.uses += 1
                if event.kind == "inplace" or event.kind == "view" and not _possible(event, copy.source):
                    copy.needed = True
        fresh = {info.storage_id: info for info in event.outputs if event.kind not in ("view", "inplace")}
        for storage, info in fresh.items():
            old = self._copies.pop(storage, None)  # the memory of a dead storage may be met again under the same identity
            if old is not None:
                self._finished.append(old)
            self._remember(info, number, event.op)
        if event.kind != "copy" or not event.outputs:
            return
        if event.op == "contiguous":
            self._copies[event.outputs[0].storage_id] = _Copy(event.inputs[0], number, event.bytes_allocated, event.op)
        elif event.op in ("repeat", "repeat_interleave", "tile") and _only_stretches(event):
            self.avoidable.append((number, event.op, event.bytes_allocated, "it only repeats along dimensions of size 1: expand() reads the one element again, without a copy"))

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


def _inside(frame: FrameType | None, path: str, function: str) -> bool:
    """Whether a frame belongs to a function of that name (or Class.name), or to a comprehension or inner function of it."""
    while frame is not None:
        code: CodeType = frame.f_code
        if code.co_filename == path and function in (code.co_name, getattr(code, "co_qualname", code.co_name)):
            return True
        if code.co_filename == path and code.co_name not in ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>"):
            return False
        frame = frame.f_back
    return False


def _outer_broadcast(event: Event) -> str | None:
    """Says so where broadcasting stretched two operands against each other: an (n, 1) met an (n) or (1, n)."""
    if len(event.expanded) < 2 or not event.outputs:
        return None
    operands = [event.inputs[i] for i in event.expanded]
    count = 1
    for size in event.outputs[0].shape:
        count *= size
    if any(_numel(t.shape) == count for t in event.inputs) or sum(_numel(t.shape) > 1 for t in operands) < 2:
        return None
    shapes = " and ".join(str(list(t.shape)) for t in operands[:3])
    return f"broadcasting expanded both operands: {shapes} became {list(event.outputs[0].shape)}"


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
