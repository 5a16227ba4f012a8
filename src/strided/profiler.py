"""`torch.profiler`: profiles over steps. What is collected, and how, is autograd/profiler.py's work; events and their table are autograd/profiler_util.py's.

    with torch.profiler.profile(record_shapes=True, on_trace_ready=torch.profiler.tensorboard_trace_handler("runs")) as prof:
        train()
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
"""
from __future__ import annotations

import enum
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from .autograd.profiler import Collector, kineto_available, record_function
from .autograd.profiler_util import DeviceType, EventList
from .refused import missing

__all__ = [
    "DeviceType", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip


class ProfilerActivity(enum.Enum):
    """What a profile looks at."""

    CPU = 0
    XPU = 1
    CUDA = 3
    MTIA = 4


class ProfilerAction(enum.Enum):
    """What a profile does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities() -> set[ProfilerActivity]:
    """What can be looked at: the CPU."""
    return {ProfilerActivity.CPU}


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """step → what a profile does in it: nothing for `wait` steps, then `warmup`, then `active` steps recorded, `repeat` times (0: always)."""
    if min(wait, warmup, active, repeat, skip_first, skip_first_wait) < 0 or active == 0:
        raise AssertionError("Invalid profiler schedule arguments")
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        if repeat and step // length >= repeat:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> Callable[[profile], None]:
    """An `on_trace_ready` that writes each trace into a directory as `<worker>.<nanoseconds>.pt.trace.json` (with use_gzip, `.gz`)."""

    def handle(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"))

    return handle


class profile:
    """Context manager: collects what operators, backward nodes and marked blocks take, for `key_averages()`, `events()` and the exports.

    activities: what to look at; others than the CPU are left out, with a warning. schedule(step) → `ProfilerAction`: which steps to record, where `step()` is
    called after each. on_trace_ready(prof): called when recorded steps are complete. record_shapes: shapes of arguments. profile_memory: bytes allocated less bytes
    freed. with_stack: source lines. with_flops: floating-point operations as operators count them here (PyTorch counts products, add and mul only). acc_events: keep
    events of earlier cycles of the schedule. with_modules changes nothing, as in PyTorch for modules that are not scripted.

    One profile may be open at a time: RuntimeError for a second one.
    """

    def __init__(
        self, *, activities: Iterable[ProfilerActivity] | None = None, schedule: Callable[[int], ProfilerAction] | None = None, on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False, with_modules: bool = False,
        experimental_config: Any = None, execution_trace_observer: Any = None, acc_events: bool = False, use_cuda: bool | None = None, custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
    ):  # fmt: skip
        wanted = set(activities) if activities is not None else supported_activities()
        if not wanted:
            raise AssertionError("No valid profiler activities found")
        for activity in wanted - supported_activities():
            warnings.warn(f"{activity.name} is not available, disabling {activity.name} profiling", stacklevel=2)
        if execution_trace_observer is not None:
            raise NotImplementedError("torch.profiler.profile: execution_trace_observer is not here; use export_chrome_trace, which has every operator with its shapes")
        self.activities = wanted & supported_activities()
        self.schedule = schedule if schedule is not None else (lambda step: ProfilerAction.RECORD)
        self.record_steps = schedule is not None
        self.on_trace_ready, self.acc_events = on_trace_ready, acc_events
        self.record_shapes, self.profile_memory, self.with_stack, self.with_flops, self.with_modules = record_shapes, profile_memory, with_stack, with_flops, with_modules
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.collector: Collector | None = None
        self.metadata: dict[str, Any] = {}
        self._found: EventList | None = None
        self._earlier: list[tuple] = []
        self._block: record_function | None = None

    # ---- steps ----------------------------------------------------------------------------------------------------------------

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """What entering the profile does."""
        if self.current_action in _RECORDING:
            self._start_trace()
        self._open_step()

    def stop(self) -> None:
        """What leaving the profile does: a trace that is being recorded is ready."""
        self._close_step()
        if self._running():
            self._stop_trace()
            self._ready()

    def step(self) -> None:
        """Ends a step and begins the next, as the schedule has it."""
        self._close_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._stop_trace()
            self._ready()
        elif before is ProfilerAction.RECORD and self.current_action not in _RECORDING:
            warnings.warn(f"Incorrect schedule: RECORD followed by {self.current_action.name}", stacklevel=2)
            self._stop_trace()
        if self.current_action in _RECORDING and not self._running():
            self._start_trace()
        self._open_step()

    def _running(self) -> bool:
        return self.collector is not None and not self.collector.end_ns

    def _start_trace(self) -> None:
        if self.acc_events and self.collector is not None:
            self._earlier += self.collector.records
        self._found = None
        self.collector = Collector(self.record_shapes, self.profile_memory, self.with_stack, self.with_flops)
        self.collector.start()

    def _stop_trace(self) -> None:
        assert self.collector is not None
        self.collector.stop()

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _open_step(self) -> None:
        if self.record_steps:
            self._block = record_function(f"ProfilerStep#{self.step_num}")
            self._block.__enter__()

    def _close_step(self) -> None:
        if self._block is not None:
            self._block.__exit__()
            self._block = None

    # ---- what was found -------------------------------------------------------------------------------------------------------

    def events(self) -> EventList:
        """The `EventList` of the recorded steps, once they are complete. Raises AssertionError before."""
        if self.collector is None:
            raise AssertionError("Profiler must be initialized before accessing events")
        if self._running():
            raise AssertionError("Expected profiling results to be available: the profile is still running")
        if self._found is None:
            self.collector.records += self._earlier
            self._earlier = []
            self._found = self.collector.events()
        return self._found

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> EventList:
        """Sums over the events of each name (and, if asked, of each of its input shapes and innermost n source lines)."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Writes the trace as JSON for chrome://tracing, Perfetto and TensorBoard; packed where the name ends in ".gz"."""
        events = self.events()
        events._metadata |= self.metadata
        events.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes stacks and their microseconds, a line each, for flame graphs. Needs with_stack=True."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Refused: memory is told by operator."""
        raise NotImplementedError('torch.profiler: export_memory_timeline is not here; sort the table by "self_cpu_memory_usage", or use `strided annotate script.py`')

    def add_metadata(self, key: str, value: str) -> None:
        """Puts a string into the trace."""
        self.metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Puts a value, given as JSON, into the trace."""
        self.metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json


_KinetoProfile = profile
__getattr__ = missing("torch.profiler")
