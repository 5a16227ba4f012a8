"""Measuring sides in one run: interleaved, warmed, medians, equal threads. Used by the scripts beside this file."""
from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import Any

PAUSE = 0.12  # seconds. A thread pool that has just worked spins for a while waiting for more: on as many cores as threads it would take one from the other side


def pair(
    ours: Callable[[], Any], theirs: Callable[[], Any], *, number: int = 1, rounds: int = 15, warm: int = 3, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, float]:
    """Median seconds (by `clock`) a call of each side: `rounds` alternating rounds of `number` calls, after `warm` rounds that are not counted."""
    sides: tuple[list[float], list[float]] = [], []
    for round in range(rounds + warm):
        order = ((ours, sides[0]), (theirs, sides[1]))
        for call, times in order if round % 2 else reversed(order):
            start = clock()
            for _ in range(number):
                call()
            if round >= warm:
                times.append((clock() - start) / number)
    return statistics.median(sides[0]), statistics.median(sides[1])


def several(calls: Mapping[str, Callable[[], Any]], *, seconds: float = 0.4, pause: float = PAUSE, clock: Callable[[], float] = time.perf_counter) -> dict[str, float]:
    """Median seconds a call of every side. Rounds in turn, of so many calls that the clock can see them; before each a pause and one call that is not counted.

    seconds: about how long each side is measured in all; there are between 5 and 25 rounds, and a side that takes longer than that a round has 3.
    """
    inner, each = {}, {}
    for name, call in calls.items():
        for _ in range(2):
            call()
        start = time.perf_counter()
        call()
        once = max(time.perf_counter() - start, 1e-7)
        inner[name] = max(1, round(5e-4 / once))
        each[name] = once * (inner[name] + 1)
    longest = max(each.values())
    rounds = 3 if longest > seconds else max(5, min(25, round(seconds / longest)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            call, number = calls[name], inner[name]
            time.sleep(pause)
            call()  # wakes the side's own threads and brings its operands back into the caches
            start = clock()
            for _ in range(number):
                call()
            times[name].append((clock() - start) / number)
    return {name: statistics.median(values) for name, values in times.items()}


def processes(ours: list[str], theirs: list[str], *, rounds: int = 9, warm: int = 2, env: dict[str, str] | None = None) -> tuple[float, float]:
    """Median seconds of two whole processes, alternating. Raises CalledProcessError when one fails."""
    run = lambda command: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
    return pair(lambda: run(ours), lambda: run(theirs), rounds=rounds, warm=warm)


def row(name: str, ours: float, theirs: float, floor: str = "", unit: float = 1e9, suffix: str = "ns") -> None:
    """Prints one comparison: both times, and the ratio of ours to theirs."""
    print(f"{name:44} {ours * unit:10.1f} {suffix}  {theirs * unit:10.1f} {suffix}   ours/theirs {ours / theirs:5.2f}   theirs/ours {theirs / ours:5.2f}   {floor}", flush=True)
