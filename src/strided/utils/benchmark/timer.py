"""`Timer`: how long a Python statement takes, over as many runs as make its time certain."""
from __future__ import annotations

import enum
import statistics
import textwrap
import timeit
from collections.abc import Callable
from typing import Any, NoReturn

from .measurement import Measurement, TaskSpec, set_torch_threads

timer = timeit.default_timer


class Language(enum.Enum):
    """What a statement is written in."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Times `stmt`, after `setup`, with the names in `globals` (and `torch`), on num_threads threads (1 unless said otherwise).

    label, sub_label, description and env say what it is in a printed `Measurement` and in a `Compare`. Raises NotImplementedError for statements in C++.
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = timer, globals: dict[str, Any] | None = None,
        label: str | None = None, sub_label: str | None = None, description: str | None = None, env: str | None = None, num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ):  # fmt: skip
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError(f"torch.utils.benchmark.Timer: language={language}: only Python statements are timed; write the statement in Python")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`.")
        import strided

        stmt, setup = textwrap.dedent(stmt).lstrip("\n").rstrip(), textwrap.dedent(setup).lstrip("\n").rstrip() or "pass"
        self._globals = {"torch": strided, **(globals or {})}
        self._timer = timeit.Timer(stmt=stmt, setup=setup, timer=timer, globals=self._globals)
        self._task_spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)

    def _seconds(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)  # a clock may be too coarse to see it

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One measurement of `number` runs, after a few that are not counted."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timer.timeit(max(number // 100, 2))
            return self._measured(number, [self._seconds(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], NoReturn] | None = None) -> NoReturn:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def blocked_autorange(self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2) -> Measurement:
        """Measurements of blocks of runs, each long enough that the clock costs nothing, for at least min_run_time seconds together."""
        number = self._block(min_run_time)
        return self._measured(number, self._repeated(number, min_run_time, min_run_time, lambda times: False, callback))

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0, callback: Callable[[int, float], Any] | None = None
    ) -> Measurement:
        """As `blocked_autorange`, until the interquartile range is below `threshold` of the median, or max_run_time seconds have passed."""
        number = self._block(0.05)
        steady = lambda times: len(times) > 3 and self._measured(number, times).meets_confidence(threshold)
        return self._measured(number, self._repeated(number, min_run_time, max_run_time, steady, callback))

    def _block(self, min_run_time: float) -> int:
        """How many runs make a block."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timer.timeit(2)  # the first run compiles kernels
            overhead = statistics.median(self._seconds(0) for _ in range(5))
            number = 1
            while True:
                seconds = self._seconds(number)
                if overhead / seconds <= 1e-4 and seconds >= min_run_time / 1000 or seconds > min_run_time or number > 2**31 // 10:
                    return number
                number *= 10

    def _repeated(self, number: int, least: float, most: float, enough: Callable[[list[float]], bool], callback: Callable[[int, float], Any] | None) -> list[float]:
        total, times = 0.0, []
        with set_torch_threads(self._task_spec.num_threads):
            while total < least or total < most and not enough(times):
                seconds = self._seconds(number)
                if callback is not None:
                    callback(number, seconds)
                total += seconds
                times.append(seconds)
        return times

    def collect_callgrind(self, number: int = 100, **options: Any) -> NoReturn:
        """Refused: kernels are compiled while the program runs."""
        raise NotImplementedError("torch.utils.benchmark.Timer.collect_callgrind is not here; STRIDED_PERF_MAP=1 lets Linux's perf name the kernels (CONTRIBUTING.md)")
