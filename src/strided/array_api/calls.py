"""`call(name, …)`: torch's own function of that name, for the standard's functions to stand on."""

from __future__ import annotations

from typing import Any

from ..ops.table import TABLE


def call(name: str, /, *args: Any, **kwargs: Any) -> Any:
    function: Any = TABLE[name].call
    return function(*args, **kwargs)
