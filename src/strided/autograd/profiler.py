"""`torch.autograd.profiler`: what operators, nodes of backward passes and marked blocks take, collected while a profile is open.

Holds the collecting, `record_function` and the plain `profile`; torch.profiler adds steps and schedules, profiler_util.py the events and their table. Without a
profile nothing here runs: operators are met through `dispatch.surround`, nodes through `engine.LOOKS`. Times are wall-clock times. One thread is looked at: the one
that opened the profile, on which backward passes run, too.
"""
from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from time import perf_counter_ns
from typing import Any

from strided.autograd import engine
from strided.autograd.products import multiplies, products
from strided.dispatch import CONTEXT, opened, positional, surround
from strided.kernels.native import memory_stats
from strided.refused import missing
from strided.tensor import Tensor

RUNNING: list[Collector] = []  # the collector of the profile that is open, if there is one

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_ATEN = {  # what PyTorch calls operators whose names differ
    "cross_entropy": "cross_entropy_loss", "true_divide": "div", "nll_loss": "nll_loss_nd", "multi_head_attention_forward": "_native_multi_head_attention",
}  # fmt: skip
OPERATOR, BACKWARD, BLOCK = 0, 1, 7  # at::RecordScope


class Collector:
    """Collects while it is started: `records` of (name, start, end, memory, shapes, values, stack, flops, scope), times in nanoseconds, memory in bytes."""

    def __init__(self, record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False):
        self.record_shapes, self.profile_memory, self.with_stack, self.with_flops = record_shapes, profile_memory, with_stack, with_flops
        self.records: list[tuple] = []
        self.counted = 0  # FLOPs of all records so far
        self.thread = 0
        self.start_ns = self.end_ns = 0
        self.between, self.mark, self.memory_mark = True, 0, 0  # whether no backward pass runs; time and memory where the last node, or the last thing before a pass, ended

    def start(self) -> None:
        if RUNNING:
            raise RuntimeError("Profiler is already enabled on this thread: close the profile that is open first; blocks inside it are marked by record_function")
        self.thread = threading.get_ident()
        self.around = surround(self.operator)
        self.around.__enter__()
        engine.LOOKS.append(self.node)
        RUNNING.append(self)
        self.passed()
        self.start_ns = self.mark

    def stop(self) -> None:
        self.end_ns = perf_counter_ns()
        RUNNING.remove(self)
        engine.LOOKS.remove(self.node)
        self.around.__exit__()

    # ---- what is met ------------------------------------------------------------------------------------------------------

    def operator(self, entry: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        """What runs in an operator's place."""
        if threading.get_ident() != self.thread:
            return function

        def timed(*args: Any, **kwargs: Any) -> Any:
            before, counted = memory_stats()[0], self.counted
            start = perf_counter_ns()
            if self.between and CONTEXT.phase == "backward":  # a pass has begun
                self.between, self.mark, self.memory_mark = False, start, before
            result = function(*args, **kwargs) if multiplies(entry) else opened(entry, function, args, kwargs)
            end = perf_counter_ns()
            memory = memory_stats()[0] - before
            self.note(entry, function, args, kwargs, result, start, end, memory, counted)
            return result

        timed.__wrapped__ = function  # type: ignore[attr-defined]  # its signature is the function's
        return timed

    def note(self, entry: Any, function: Callable[..., Any], args: tuple, kwargs: dict, result: Any, start: int, end: int, memory: int, counted: int) -> None:
        """Notes an operator; what it multiplies is a row inside it. Operations that are counted inside are not counted again."""
        args, kwargs = positional(function, args, kwargs)
        name = entry.name
        given = args[3] if entry.out == "form" else args  # (name, out, call, args, kwargs)
        shapes = [list(value.shape) if isinstance(value, Tensor) else [] for value in given] if self.record_shapes else None
        values = [_shown(value) for value in given] if self.record_shapes else None
        stack = _stack() if self.with_stack else None
        flops = None
        inner = self._inner(entry, args, kwargs, result, shapes, values, stack, start, end, memory)
        if self.with_flops:
            flops = max(0, (int(entry.flops(args, kwargs, result)) if entry.flops else 0) - (self.counted - counted))
            self.counted += flops
        ours = not (entry.function or entry.method or entry.namespace or name.endswith("_backward"))
        self.records.append((f"{'strided' if ours else 'aten'}::{_ATEN.get(name, name)}", start, end, memory, shapes, values, stack, flops, OPERATOR))
        self.records += inner
        if CONTEXT.phase != "backward":
            self.passed()

    def _inner(self, entry, args, kwargs, result, shapes, values, stack, start, end, memory) -> list[tuple]:
        """The product of matrices that an operator is made of, where PyTorch has an operator of its own for it."""
        found = products(entry, args, kwargs, result)
        if found is None or len(found) != 1 or found[0][0] == entry.name:
            return []
        name, flops = found[0]
        if self.with_flops:
            self.counted += flops
        return [(f"aten::{name}", start, end, memory, shapes, values, stack, flops if self.with_flops else None, OPERATOR)]

    def passed(self) -> None:
        """Something has ended that no node is around."""
        self.between, self.mark, self.memory_mark = True, perf_counter_ns(), memory_stats()[0]

    def node(self, node: Any, grads: Any, results: Any) -> None:
        """A node has run: it began where the one before it ended, the pass's first one with its first operator."""
        if threading.get_ident() != self.thread:
            return
        end, memory = perf_counter_ns(), memory_stats()[0]
        shapes = [list(g.shape) if isinstance(g, Tensor) else [] for g in grads] if self.record_shapes else None
        values = [""] * len(grads) if self.record_shapes else None
        self.records.append((node.name(), self.mark, end, memory - self.memory_mark, shapes, values, None, None, BACKWARD))
        self.between, self.mark, self.memory_mark = False, perf_counter_ns(), memory

    # ---- what is told -----------------------------------------------------------------------------------------------------

    def events(self) -> Any:
        """The records as an `EventList`, children found."""
        from strided.autograd.profiler_util import EventList, FunctionEvent

        made = []
        for number, (name, start, end, memory, shapes, values, stack, flops, scope) in enumerate(sorted(self.records, key=lambda r: (r[1], -r[2])), 1):
            times = (start - self.start_ns) / 1e3, (end - self.start_ns) / 1e3
            made.append(FunctionEvent(number, name, self.thread, *times, shapes, stack, scope, memory, flops, scope == BLOCK, values))
        facts = {"record_shapes": int(self.record_shapes), "profile_memory": int(self.profile_memory), "with_stack": int(self.with_stack), "with_flops": int(self.with_flops)}
        return EventList(made, self.profile_memory, self.with_flops, facts)._build_tree()


def _shown(value: Any) -> str:
    """An argument as a trace tells it: numbers and strings, but no tensors."""
    if isinstance(value, (tuple, list)):
        return str(value) if all(isinstance(item, (bool, int, float, str)) for item in value) else ""
    return str(value) if isinstance(value, (bool, int, float, str)) else ""


def _stack() -> list[str]:
    """The user's frames, innermost first: "file(line): function"."""
    found = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith((_PACKAGE, "<frozen")):
            found.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back
    return found


class record_function(ContextDecorator):
    """Names a part of a program, as a context manager or a decorator: a row of the profile that is open. Without one, the part runs as it is."""

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args
        self.open: tuple[Collector, int, int] | None = None

    def _recreate_cm(self) -> record_function:
        return type(self)(self.name, self.args)  # a decorated function may call itself

    def __enter__(self) -> record_function:
        if RUNNING and RUNNING[0].thread == threading.get_ident():
            self.open = RUNNING[0], memory_stats()[0], perf_counter_ns()
        return self

    def __exit__(self, *error: object) -> None:
        if self.open is None:
            return
        (collector, before, start), self.open = self.open, None
        if collector in RUNNING:
            end = perf_counter_ns()
            values = [self.args or ""] if collector.record_shapes else None
            stack = _stack() if collector.with_stack else None
            collector.records.append((self.name, start, end, memory_stats()[0] - before, [] if collector.record_shapes else None, values, stack, None, BLOCK))
            if CONTEXT.phase != "backward":
                collector.passed()


class profile:
    """Context manager: collects what runs inside, for `key_averages()`, `table()`, `total_average()` and the exports.

    record_shapes: shapes of arguments; with_flops: floating-point operations, as the operators count them (PyTorch counts products, add and mul only);
    profile_memory: bytes allocated less bytes freed; with_stack: source lines. Raises RuntimeError where a profile is open already.
    """

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None, record_shapes: bool = False, with_flops: bool = False, profile_memory: bool = False,
        with_stack: bool = False, with_modules: bool = False, use_kineto: bool = False, use_cpu: bool = True, experimental_config: Any = None, acc_events: bool = False,
        custom_trace_id_callback: Any = None, post_processing_timeout_s: float | None = None,
    ):  # fmt: skip
        if use_cuda or use_device not in (None, "cpu"):
            import warnings

            warnings.warn(f"{(use_device or 'CUDA').upper()} is not available, disabling {(use_device or 'CUDA').upper()} profiling", stacklevel=2)
        self.enabled, self.entered = enabled, False
        self.record_shapes, self.with_flops, self.profile_memory, self.with_stack = record_shapes, with_flops, profile_memory, with_stack
        self.use_device = None
        self.collector: Collector | None = None
        self.found: Any = None

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self.collector = Collector(self.record_shapes, self.profile_memory, self.with_stack, self.with_flops)
        self.collector.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.enabled and self.collector is not None:
            self.collector.stop()

    @property
    def function_events(self) -> Any:
        """The `EventList`, once the profile has ended."""
        if self.collector is None or self.collector in RUNNING:
            raise RuntimeError("Profiler didn't finish running")
        if self.found is None:
            self.found = self.collector.events()
        return self.found

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> Any:
        """The `EventList` of averages; see there."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n)

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        return self.function_events.table(sort_by, row_limit, **options)

    def total_average(self) -> Any:
        return self.function_events.total_average()

    def export_chrome_trace(self, path: str) -> None:
        self.function_events.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of everything that was seen."""
        return self.function_events.self_cpu_time_total

    def __repr__(self) -> str:
        try:
            return repr(self.function_events)
        except RuntimeError:
            return "<unfinished torch.autograd.profile>"

    def __str__(self) -> str:
        try:
            return str(self.function_events)
        except RuntimeError:
            return "<unfinished torch.autograd.profile>"


def kineto_available() -> bool:
    """Whether PyTorch's own collector is there: it is not, and not needed."""
    return False


__getattr__ = missing("torch.autograd.profiler")
