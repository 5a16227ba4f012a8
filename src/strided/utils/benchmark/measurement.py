"""What was timed (`TaskSpec`) and the times it took (`Measurement`), with their statistics. Times are in seconds."""
from __future__ import annotations

import dataclasses
import math
import statistics
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ...kernels import native

_WARN, _WARN_LOUDLY = 0.1, 0.25  # of the interquartile range, relative to the median
_LEAST_INTERVAL = 25e-9  # seconds: what a confidence interval may shrink to


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What was timed: the statement and its setup, its labels, the number of threads."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """Label and sub-label; without them the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        if self.setup in ("", "pass"):
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup, a line each."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts if part)


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """The times of one statement. raw_times: seconds of each measurement, of `number_per_run` runs.

    `times` (seconds a run), `median`, `mean`, `iqr` (interquartile range), `significant_figures`, and the fields of the task: `label`, `num_threads`, …
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute '{name}'")

    @property
    def times(self) -> list[float]:
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def _sorted(self) -> list[float]:
        if not self.raw_times:
            raise AssertionError("Measurement has no times")
        return sorted(self.times)

    def _quantile(self, q: float) -> float:
        times = self._sorted
        place = q * (len(times) - 1)
        low = math.floor(place)
        high = min(low + 1, len(times) - 1)
        return times[low] + (place - low) * (times[high] - times[low])

    @property
    def median(self) -> float:
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        return statistics.fmean(self._sorted)

    @property
    def iqr(self) -> float:
        """The range of the middle half."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """How many digits of the median mean something: what a 90 % confidence interval of the middle half's mean leaves, at least 1."""
        times = self._sorted
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        interval = max(1.645 * statistics.pstdev(middle) / math.sqrt(len(middle)), _LEAST_INTERVAL)
        return max(math.floor(math.log10(self.median / interval)), 1)

    @property
    def has_warnings(self) -> bool:
        """Whether the times spread so far that something else was going on."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = _WARN) -> bool:
        """Whether the interquartile range is below this part of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def env(self) -> str:
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def as_row_name(self) -> str:
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        n, runs = len(self.raw_times), f"{self.number_per_run} runs {'per measurement, ' if len(self.raw_times) > 1 else ', '}"
        lines = [f"{object.__repr__(self)}", self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if n > 1 else ''}{self.median / scale:.2f} {unit}")
        if n >= 4:
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({self._quantile(0.25) / scale:.2f} to {self._quantile(0.75) / scale:.2f})")
        threads = self.task_spec.num_threads
        lines.append(f"  {n} measurement{'s' if n > 1 else ''}, {runs}{threads} thread{'s' if threads > 1 else ''}")
        if self.has_warnings:
            said = "suggests significant environmental influence." if not self.meets_confidence(_WARN_LOUDLY) else "could indicate system fluctuation."
            lines.append(f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement.\n           This {said}")
        return "\n".join(lines)

    __str__ = __repr__

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """The measurements of one task as one each, in times of a single run."""
        groups: dict[TaskSpec, list[float]] = {}
        for measurement in measurements:
            groups.setdefault(measurement.task_spec, []).extend(measurement.times)
        return [Measurement(1, times, task) for task, times in groups.items()]


_FIELDS = tuple(field.name for field in dataclasses.fields(TaskSpec))


def select_unit(t: float) -> tuple[str, float]:
    """(unit, its seconds) in which a time reads best: "ns", "us", "ms" or "s"."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(int(math.log10(t) // 3) if t > 0 else -3, "s")
    return unit, {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


def unit_to_english(u: str) -> str:
    return {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}[u]


def trim_sigfig(x: float, n: int) -> float:
    """x rounded to n significant figures."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    if x == 0:
        return 0.0
    scale = 10.0 ** (math.ceil(math.log10(abs(x))) - n)
    return round(x / scale) * scale


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Computes with n threads inside."""
    before = native.get_num_threads()
    try:
        native.set_num_threads(n)
        yield
    finally:
        native.set_num_threads(before)
