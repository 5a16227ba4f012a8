"""`torch.cuda` as scripts probe it before they choose a device: there is none. What would need one raises with the way out."""
from __future__ import annotations

from typing import Any

from .refused import absent


class OutOfMemoryError(RuntimeError):
    """What PyTorch raises when a device's memory is used up: here for `except` clauses only, there is no device."""


default_generators = ()


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def is_initialized() -> bool:
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return False


def manual_seed(seed: int) -> None:
    """Without a device there is no generator to seed."""


manual_seed_all = manual_seed


def seed() -> None:
    """Without a device there is no generator to seed."""


seed_all = seed


def synchronize(device: Any = None) -> None:
    """Nothing runs behind the caller's back."""


def empty_cache() -> None:
    """There is no device memory; the CPU's cache is `torch.empty_cache()` here."""


def memory_allocated(device: Any = None) -> int:
    """Bytes on a CUDA device: none. The CPU's are `strided.memory_allocated()`."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    return 0


def memory_reserved(device: Any = None) -> int:
    return 0


max_memory_reserved = memory_reserved


def reset_peak_memory_stats(device: Any = None) -> None:
    """There is no device whose peak to reset."""


def __getattr__(name: str):
    if name == "amp":
        from .amp import cuda_amp

        return cuda_amp
    if name.startswith("_"):
        raise absent(f"torch.cuda.{name}")

    def unavailable(*args, **kwargs):
        raise AssertionError(f"Torch not compiled with CUDA enabled\n  torch.cuda.{name} needs a CUDA device; strided computes on the CPU: guard it with torch.cuda.is_available().")

    if name[0].isupper() or name in ("device", "device_of", "graph"):  # a class, which annotations and isinstance name
        kind = type(name, (), {"__init__": unavailable, "__doc__": "Needs a CUDA device: refused.", "__module__": "torch.cuda", "is_refusal": True})
        return globals().setdefault(name, kind)
    unavailable.__name__ = name
    unavailable.__doc__ = "Needs a CUDA device: refused."
    unavailable.is_refusal = True  # type: ignore[attr-defined]
    return unavailable
