"""`torch.Stream` and `torch.Event`: the order of work on a device and points in it, by the names that serve any device. Of the CPU there is one stream, where work is done when a call returns.

As in PyTorch without an accelerator, streams of the CPU can be made, waited for and compared, and events cannot be recorded. `torch.cpu` has the classes of its own.
"""
from __future__ import annotations

from typing import Any, NoReturn

from .dtypes import Device, resolve_device


def _host(device: Any) -> Device:
    place = Device("cpu") if device is None else device if isinstance(device, Device) else resolve_device(device)
    if place.type != "cpu":
        raise RuntimeError(f"PyTorch is not linked with support for {place.type} devices\n  Streams and events are the CPU's here, whose work is done when a call returns.")
    return place


def _no_events() -> NoReturn:
    raise RuntimeError("cpu backend doesn't support events.\n  Work is done when a call returns: time it with time.perf_counter(), and leave waiting out.")


class Event:
    """A point in a stream. Of the CPU it cannot be recorded (RuntimeError): there is nothing to wait for, so that `query` is True and waiting returns at once."""

    def __init__(self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        self.device, self.event_id = _host(device), 0

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """Nothing runs behind the caller's back."""

    def wait(self, stream: Any = None) -> None:
        """Nothing runs behind the caller's back."""

    def record(self, stream: Any = None) -> NoReturn:
        """Refused: raises RuntimeError."""
        _no_events()

    def elapsed_time(self, end_event: Event) -> NoReturn:
        """Refused: raises RuntimeError, as neither event was recorded."""
        _no_events()

    def __repr__(self) -> str:
        return f"torch.Event device_type={self.device.type}, device_index=-1, event_flag=0, event_id=0"


class Stream:
    """The order of work on the CPU. All streams are that one; `with stream:` changes nothing."""

    device_index, device_type, stream_id = -1, 0, 0

    def __init__(self, device: Any = None, *, priority: int = 0):
        self.device = _host(device)

    def query(self) -> bool:
        """True: what was called is done."""
        return True

    def is_capturing(self) -> bool:
        return False

    def synchronize(self) -> None:
        """Nothing runs behind the caller's back."""

    def wait_event(self, event: Event) -> None:
        """Nothing runs behind the caller's back."""

    def wait_stream(self, stream: Stream) -> NoReturn:
        """Refused: raises RuntimeError, as PyTorch does, which would record an event."""
        _no_events()

    def record_event(self, event: Event | None = None) -> NoReturn:
        """Refused: raises RuntimeError."""
        _no_events()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return hash(Stream)

    def __repr__(self) -> str:
        return f"torch.Stream device_type={self.device.type}, device_index=-1, stream_id=0"
