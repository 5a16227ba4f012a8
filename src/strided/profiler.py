"""`torch.profiler`: the names that scripts import. Events go to the lenses here: `strided annotate script.py` shows time, bytes and FLOPs a line.

`record_function` marks a block, as in PyTorch; a profile that would collect blocks is refused when it is made.
"""
from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from .autograd.profiler import record_function
from .refused import missing

__all__ = ["ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule", "tensorboard_trace_handler"]


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


class profile:
    """Refused: use `strided annotate script.py`."""

    is_refusal = True

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError("torch.profiler.profile: events go to the lenses; use `strided annotate script.py`: time, bytes and FLOPs a line")


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """step → what a profile does in it: nothing for `wait` steps, then `warmup`, then `active` steps recorded, `repeat` times (0: always)."""
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
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


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> Callable:
    """What a profile would call when it is ready."""

    def handle(prof: Any) -> None:
        raise NotImplementedError("torch.profiler: there is no trace to write; use `strided annotate script.py`")

    return handle


__getattr__ = missing("torch.profiler")
