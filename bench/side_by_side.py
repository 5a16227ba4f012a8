"""Measuring two sides in one run: interleaved, warmed, medians, equal threads. Used by the scripts beside this file."""
from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable
from typing import Any


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


def processes(ours: list[str], theirs: list[str], *, rounds: int = 9, warm: int = 2, env: dict[str, str] | None = None) -> tuple[float, float]:
    """Median seconds of two whole processes, alternating. Raises CalledProcessError when one fails."""
    run = lambda command: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
    return pair(lambda: run(ours), lambda: run(theirs), rounds=rounds, warm=warm)


def row(name: str, ours: float, theirs: float, floor: str = "", unit: float = 1e9, suffix: str = "ns") -> None:
    """Prints one comparison: both times, and the ratio of ours to theirs."""
    print(f"{name:44} {ours * unit:10.1f} {suffix}  {theirs * unit:10.1f} {suffix}   ours/theirs {ours / theirs:5.2f}   theirs/ours {theirs / ours:5.2f}   {floor}", flush=True)
