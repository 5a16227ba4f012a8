"""`torch.autograd.profiler`: labels for parts of a program. What each line costs is shown by `strided annotate`; no timeline is recorded."""
from __future__ import annotations

from contextlib import ContextDecorator

from strided.refused import missing


class record_function(ContextDecorator):
    """Names a part of a program, as a context manager or a decorator. There is no recording for the name to show up in: the part runs as it is."""

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        return self

    def __exit__(self, *error: object) -> None:
        return None


__getattr__ = missing("torch.autograd.profiler")
