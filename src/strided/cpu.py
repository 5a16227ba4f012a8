"""`torch.cpu`: the processor by the names that other devices' modules have, so that code written for any device runs. Operators are done when they return: there is nothing to wait for."""
from __future__ import annotations

from typing import Any

from .refused import missing as _missing

__all__ = [
    "Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count", "get_capabilities", "is_available", "is_initialized", "set_device", "stream",
    "synchronize",
]  # fmt: skip


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def device_count() -> int:
    """1: all cores are one device."""
    return 1


def current_device() -> str:
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing: there is one."""


def synchronize(device: Any = None) -> None:
    """Nothing runs behind the caller's back."""


class Stream:
    """An order of work. Here there is one, the program's own."""

    def __init__(self, priority: int = -1):
        pass

    def wait_stream(self, stream: Any) -> None:
        """Nothing: what was called before is done."""

    def record_event(self) -> None:
        """Nothing: there is no time between."""

    def wait_event(self, event: Any) -> None:
        """Nothing: what was called before is done."""


class Event:
    """A point in a stream: reached as soon as it is recorded."""

    def query(self) -> bool:
        return True

    def record(self, stream: Any = None) -> None:
        """Nothing: what was called before is done."""

    def synchronize(self) -> None:
        """Nothing: what was called before is done."""

    def wait(self, stream: Any = None) -> None:
        """Nothing: what was called before is done."""


_current = Stream()


def current_stream(device: Any = None) -> Stream:
    """The stream that a `with stream(…)` around this set, or the program's own."""
    return _current


class StreamContext:
    """`with StreamContext(s):` makes s the current stream; None leaves it. Operators run as ever."""

    def __init__(self, stream: Stream | None):
        self.stream, self._before = stream, _current

    def __enter__(self) -> None:
        global _current
        self._before = _current
        if self.stream is not None:
            _current = self.stream

    def __exit__(self, *error: Any) -> None:
        global _current
        _current = self._before


def stream(stream: Stream | None) -> StreamContext:
    """A block in which `stream` is the current one."""
    return StreamContext(stream)


# PyTorch's name of a capability → the host's, where they differ by more than "_" for "" (avx512_bw) and "-" (amx_tile).
_CAPABILITIES = {name: name.replace("avx512_", "avx512").replace("amx_", "amx-") for name in (
    "avx avx2 avx512_f avx512_bw avx512_vl avx512_dq avx512_cd avx512_ifma avx512_vbmi avx512_vbmi2 avx512_bitalg avx512_vpopcntdq avx512_vnni avx512_bf16 avx512_fp16 "
    "amx_tile amx_int8 amx_bf16 amx_fp16 bmi bmi2 popcnt f16c fma4 sse sse2 sse3 ssse3"
).split()} | {"fma3": "fma", "sse4_1": "sse4.1", "sse4_2": "sse4.2", "avx_vnni": "avxvnni"}  # fmt: skip


def get_capabilities() -> dict[str, Any]:
    """What this processor can do: {"architecture": "x86_64", "avx2": True, …}; of another architecture its name only."""
    from .kernels.jit import host

    machine = host()
    found: dict[str, Any] = {"architecture": machine.arch}
    if machine.arch == "x86_64":
        found |= {name: f"+{feature}" in machine.features for name, feature in _CAPABILITIES.items()}
    return found


def __getattr__(name: str) -> Any:
    if name == "amp":
        from . import amp

        return amp
    return _missing("torch.cpu")(name)
