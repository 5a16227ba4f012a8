"""What a profile found, as PyTorch's scripts read it: events, their averages, and the table that is printed of them.

`FunctionEvent` is one call, `FunctionEventAvg` all calls of one name, `EventList` a list of either. How they are collected is profiler.py's work. Times
are microseconds of wall-clock time, memory is in bytes; there is one device, so that the fields of others are 0.
"""
from __future__ import annotations

import enum
import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from strided.refused import missing

__all__ = ["DeviceType", "EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]

_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


class DeviceType(enum.Enum):
    """Where an event ran: here always `CPU`."""

    CPU = 0
    CUDA = 1


class Interval:
    """Start and end of an event in microseconds since the profile's start."""

    def __init__(self, start: float, end: float):
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        return self.end - self.start


def format_time(microseconds: float, unit: str | None = None) -> str:
    """As PyTorch writes times: `12.345us`, `1.234ms`, `1.234s`; unit ("s", "ms", "us"): always in this one."""
    if unit is None:
        unit = "s" if microseconds >= 1e6 else "ms" if microseconds >= 1e3 else "us"
    return f"{microseconds / _UNITS[unit]:.3f}{unit}"


def format_memory(nbytes: int) -> str:
    """As PyTorch writes sizes: `12 B`, `1.50 KB`, `2.00 MB`, `1.00 GB`."""
    for exponent, unit in ((30, "GB"), (20, "MB"), (10, "KB")):
        if abs(nbytes) >= 1 << exponent:
            return f"{nbytes / (1 << exponent):.2f} {unit}"
    return f"{nbytes} B"


class _Times:
    """What one event and the average of many have in common: times per call and as text. The device's are 0."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_type = DeviceType.CPU
    is_async = is_remote = is_legacy = False
    use_device: str | None = None
    overload_name = ""
    node_id = -1
    device_time_total = self_device_time_total = device_memory_usage = self_device_memory_usage = 0

    @property
    def cpu_time(self) -> float:
        """Microseconds a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        return 0.0

    @property
    def cpu_time_str(self) -> str:
        return format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        return format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return format_time(self.self_cpu_time_total)


class FunctionEvent(_Times):
    """One call of an operator, one node of a backward pass, or one block marked by `record_function`.

    name: as PyTorch calls it ("aten::linear"). time_range: an `Interval`. input_shapes: a list a tensor argument, [] for any other (None unless the
    profile has record_shapes). stack: "file(line): function", innermost first. cpu_memory_usage: bytes allocated less bytes freed. flops: floating-point
    operations (None unless with_flops). scope: 0 an operator, 1 a backward node, 7 a marked block. cpu_children, cpu_parent: by the nesting of intervals.
    """

    count = 1

    def __init__(self, id: int, name: str, thread: int, start_us: float, end_us: float, input_shapes: list | None = None, stack: list[str] | None = None, scope: int = 0,
                 cpu_memory_usage: int = 0, flops: int | None = None, is_user_annotation: bool = False, concrete_inputs: list | None = None):  # fmt: skip
        self.id, self.name, self.thread, self.fwd_thread = id, name, thread, None
        self.time_range = Interval(start_us, end_us)
        self.input_shapes, self.concrete_inputs, self.stack, self.scope = input_shapes, concrete_inputs, stack, scope
        self.cpu_memory_usage, self.flops, self.is_user_annotation = cpu_memory_usage, flops, is_user_annotation
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.kernels: list = []
        self.sequence_nr = -1

    @property
    def key(self) -> str:
        return self.name

    trace_name = key

    @property
    def structured_input_shapes(self) -> list | None:
        return self.input_shapes

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds outside of the events inside."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def append_cpu_child(self, child: FunctionEvent) -> None:
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        self.cpu_parent = parent

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} is_async=False is_remote=False seq_nr={self.sequence_nr} is_legacy=False>"
        )


class FunctionEventAvg(_Times):
    """The sums over all calls of one name (`key`): `count, cpu_time_total, self_cpu_time_total, cpu_memory_usage, self_cpu_memory_usage, flops`."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.flops = 0
        self.input_shapes: list | None = None
        self.stack: list[str] | None = None
        self.scope: int | None = None
        self.is_user_annotation = False
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Adds one call, or the sums of others of the same name."""
        if self.key is None:
            self.key, self.input_shapes, self.stack, self.scope = other.key, other.input_shapes, other.stack, other.scope
            self.is_user_annotation, self.cpu_children, self.cpu_parent = other.is_user_annotation, other.cpu_children, other.cpu_parent
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.flops += other.flops or 0
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )


class EventList(list):
    """Events, or their averages, with what is asked of them: `key_averages()`, `table()`, `total_average()`, the exports."""

    def __init__(self, events: Iterable = (), profile_memory: bool = False, with_flops: bool = False, metadata: dict | None = None):
        super().__init__(events)
        self._profile_memory, self._with_flops, self._metadata = profile_memory, with_flops, metadata or {}

    def _build_tree(self) -> EventList:
        """Makes an event the child of the innermost one whose interval holds its own."""
        open_events: list[FunctionEvent] = []
        for event in sorted(self, key=lambda e: (e.time_range.start, -e.time_range.end, e.id)):
            while open_events and (event.thread != open_events[-1].thread or event.time_range.end > open_events[-1].time_range.end):
                open_events.pop()
            if open_events:
                open_events[-1].append_cpu_child(event)
                event.set_cpu_parent(open_events[-1])
            open_events.append(event)
        return self

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events together, each counted once."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> EventList:
        """A `FunctionEventAvg` for each name (and, if asked, for each of its input shapes and innermost n stack entries)."""
        averages: dict[tuple, FunctionEventAvg] = {}
        for event in self:
            key: tuple = (event.key, event.scope)
            if group_by_input_shapes:
                key += (str(event.input_shapes),)
            if group_by_stack_n > 0:
                key += tuple((event.stack or ())[:group_by_stack_n])
            averages.setdefault(key, FunctionEventAvg()).add(event)
        result = EventList(averages.values(), self._profile_memory, self._with_flops, self._metadata)
        for average in result:
            average.stack = (average.stack or [])[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
        return result

    def total_average(self) -> FunctionEventAvg:
        """All events as one, whose key is "Total". Times are those of each event without what is inside it."""
        total = FunctionEventAvg()
        total.key = "Total"
        for event in self:
            total.count += event.count
            total.cpu_time_total += event.self_cpu_time_total
            total.self_cpu_time_total += event.self_cpu_time_total
            total.cpu_memory_usage += event.self_cpu_memory_usage
            total.self_cpu_memory_usage += event.self_cpu_memory_usage
            total.flops += event.flops or 0
        return total

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75, max_name_column_width: int = 55, max_shapes_column_width: int = 80,
        header: str | None = None, top_level_events_only: bool = False, time_unit: str | None = None,
    ) -> str:  # fmt: skip
        """The events as a text table.

        sort_by: an attribute to order by, the largest first ("self_cpu_time_total", "cpu_time_total", "cpu_time", "count", "flops", "cpu_memory_usage",
        "self_cpu_memory_usage"; names of a device's times count as 0). row_limit: the most rows (-1: all). time_unit: "s", "ms" or "us" for all times.
        Raises AttributeError for a sort_by that events do not have.
        """
        if not self:
            return ""
        events = list(self)
        if sort_by is not None:
            key = sort_by.replace("cuda", "device").replace("xpu", "device")
            events.sort(key=lambda event: getattr(event, key) or 0, reverse=True)
        if top_level_events_only:
            events = [event for event in events if event.cpu_parent is None]
        columns = self._columns(events, max_name_column_width, max_shapes_column_width, max_src_column_width, time_unit)
        return _table(columns, events if row_limit < 0 else events[:row_limit], header, f"Self CPU time total: {format_time(self.self_cpu_time_total, time_unit)}")

    def _columns(self, events: list, name_width: int, shapes_width: int, source_width: int, unit: str | None) -> list[_Column]:
        whole = self.self_cpu_time_total

        def percent(part: float) -> str:
            return f"{part / whole * 100:.2f}%" if whole else "NaN"

        columns = [
            _Column("Name", lambda e: _shorten(e.key, name_width), min(max(len(e.key) for e in events) + 4, name_width)),
            _Column("Self CPU %", lambda e: percent(e.self_cpu_time_total)),
            _Column("Self CPU", lambda e: format_time(e.self_cpu_time_total, unit)),
            _Column("CPU total %", lambda e: percent(e.cpu_time_total)),
            _Column("CPU total", lambda e: format_time(e.cpu_time_total, unit)),
            _Column("CPU time avg", lambda e: format_time(e.cpu_time, unit)),
        ]
        if self._profile_memory:
            columns.append(_Column("CPU Mem", lambda e: format_memory(e.cpu_memory_usage)))
            columns.append(_Column("Self CPU Mem", lambda e: format_memory(e.self_cpu_memory_usage)))
        columns.append(_Column("# of Calls", lambda e: str(e.count)))
        if any(event.input_shapes for event in events):
            width = min(max(len(str(e.input_shapes)) for e in events) + 4, shapes_width)
            columns.append(_Column("Input Shapes", lambda e: _shorten(str(e.input_shapes), shapes_width), max(width, 12)))
        stacks = [entry for event in events for entry in event.stack or ()]
        if stacks:
            width = min(max(map(len, stacks)) + 4, source_width)
            columns.append(_Column("Source Location", lambda e: [_shorten(entry, width, front=True) for entry in e.stack or ()], max(width, 12), left=True))
        counted = [event.flops for event in events if event.flops]
        if self._with_flops and counted:
            power = min(int(math.log10(min(counted)) // 3), 5)
            columns.append(_Column(f"Total {('', 'K', 'M', 'G', 'T', 'P')[power]}FLOPs", lambda e: f"{e.flops / 10 ** (3 * power):.3f}" if e.flops else "--"))
        return columns

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events as the JSON that chrome://tracing and Perfetto open; packed where the name ends in ".gz"."""
        if path.endswith(".gz"):
            import gzip

            with gzip.open(path, "wt", encoding="utf-8") as file:
                json.dump(self._trace(), file)
            return
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self._trace(), file)

    def _trace(self) -> dict:
        process = os.getpid()
        rows: list[dict] = [{"ph": "M", "name": "process_name", "ts": 0, "pid": process, "tid": 0, "args": {"name": "python"}}]
        rows += [{"ph": "M", "name": "thread_name", "ts": 0, "pid": process, "tid": thread, "args": {"name": f"thread {thread} (python)"}} for thread in dict.fromkeys(e.thread for e in self)]
        for event in self:
            facts: dict[str, Any] = {"External id": event.id, "Ev Idx": event.id - 1}
            if event.input_shapes is not None:
                facts |= {"Input Dims": event.input_shapes, "Concrete Inputs": event.concrete_inputs}
            if event.stack:
                facts["Call stack"] = ";".join(event.stack)
            if event.flops:
                facts["flops"] = event.flops
            if self._profile_memory:
                facts["Bytes"] = event.cpu_memory_usage
            start, end = event.time_range.start, event.time_range.end
            category = "user_annotation" if event.is_user_annotation else "cpu_op"
            rows.append({"ph": "X", "cat": category, "name": event.name, "pid": process, "tid": event.thread, "ts": start, "dur": end - start, "args": facts})
        return {"schemaVersion": 1, "deviceProperties": [], "displayTimeUnit": "ms", **self._metadata, "traceEvents": rows}

    def supported_export_stacks_metrics(self) -> list[str]:
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Writes "outer;…;inner microseconds" a line for flame graphs. Needs a profile with with_stack=True. metric: "self_cpu_time_total", or a device's, which is 0."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                value = int(event.self_cpu_time_total) if metric == "self_cpu_time_total" else 0
                if event.stack and value > 0:
                    frames = ";".join(entry.translate(str.maketrans(" ;\t\n", "____")) for entry in reversed(event.stack))
                    file.write(f"{frames} {value}\n")


class _Column:
    """One column of the table: its heading, what it shows of an event (a list: one a line), its width."""

    def __init__(self, title: str, show: Callable[[Any], str | list[str]], width: int = 12, left: bool = False):
        self.title, self.show, self.width, self.left = title, show, width, left

    def cell(self, text: str) -> str:
        return text.ljust(self.width) if self.left else text.rjust(self.width)


def _shorten(text: str, width: int, front: bool = False) -> str:
    """Text of at most `width` characters, "..." in the place of the rest."""
    if len(text) <= width:
        return text
    return "..." + text[len(text) - width + 3 :] if front else text[: width - 3] + "..."


def _table(columns: Sequence[_Column], events: Sequence, header: str | None, footer: str) -> str:
    line = "".join("-" * column.width + "  " for column in columns)
    rows = [line, "".join(column.cell(column.title) + "  " for column in columns), line]
    if header is not None:
        rows = ["=" * len(line), header, *rows]
    for event in events:
        cells = [column.show(event) for column in columns]
        lists = [cell if isinstance(cell, list) else [cell] for cell in cells]
        for k in range(max(1, *map(len, lists))):
            rows.append("".join(column.cell(texts[k] if k < len(texts) else "") + "  " for column, texts in zip(columns, lists)))
    return "\n".join([*rows, line, footer, ""])


__getattr__ = missing("torch.autograd.profiler_util")
