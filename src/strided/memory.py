"""What memory tensors hold: exact statistics of the caching allocator, its limit and its cache.

Storages themselves and the allocator are native (kernels/native.py); these are the questions users ask. Sizes are in bytes.
"""
from __future__ import annotations

from .kernels import native


def memory_allocated(device=None) -> int:
    """Bytes held by living storages, as they were asked for."""
    return native.memory_stats()[0]


def max_memory_allocated(device=None) -> int:
    """The most bytes ever held at once since the start or the last `reset_peak_memory_stats()`."""
    return native.memory_stats()[1]


def memory_reserved(device=None) -> int:
    """Bytes taken from the operating system: living storages and the blocks kept for reuse."""
    return native.memory_stats()[2]


def memory_stats(device=None) -> dict[str, int]:
    """allocated, peak, reserved, cached (free blocks that `empty_cache` gives back), allocations (how many so far), limit."""
    return dict(zip(("allocated", "peak", "reserved", "cached", "allocations", "limit"), native.memory_stats()))


def reset_peak_memory_stats(device=None) -> None:
    """Starts the peak anew from what is held now."""
    native.reset_peak()


def set_memory_limit(limit: int | None) -> None:
    """The most bytes that living storages may hold; an allocation beyond raises RuntimeError and changes nothing. None: no limit."""
    if limit is None:
        limit = 2**63 - 1
    if limit < 0:
        raise ValueError(f"a memory limit is a number of bytes, not {limit}")
    native.set_memory_limit(limit)


def empty_cache() -> None:
    """Gives the free blocks that are kept for reuse back to the operating system."""
    native.empty_cache()
