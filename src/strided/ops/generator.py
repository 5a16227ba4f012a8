"""`Generator`: the state behind random numbers, and the functions on the default one (`manual_seed`, `get_rng_state`, `fork_rng`, …).

A state exported here is PyTorch's own 5056-byte layout, so that states travel between the two. What is drawn from a generator is in random.py.
"""
from __future__ import annotations

import contextlib
import os
import struct
import threading
from typing import Any

from ..autograd import checkpoint
from ..dtypes import CPU, resolve_device, uint8
from ..kernels import random as kernels
from ..kernels.native import new_storage
from ..kernels.recipes import unrepeatable
from ..tensor import Tensor, empty

DEFAULT_SEED = 67280421310721
# seed, left (624 + 1 - next), seeded, next, state words, three normals (the second is the spare), spare valid, float spare, float spare valid
_EXPORT = struct.Struct(f"<QiiQ{kernels.N}Q3di4xf?3x")
_IMPORT = struct.Struct(f"<{kernels.N}I")


class Generator:
    """A pseudorandom number generator (Mersenne Twister), device cpu. Equal seeds give PyTorch's numbers, bit for bit.

    `generator=` of every random operator takes one; without it the default generator is used.
    """

    __slots__ = ("device", "lock", "address", "_seed", "_memory", "__weakref__")

    def __init__(self, device: Any = "cpu"):
        self.device = resolve_device(device)
        self.lock = threading.Lock()  # held during a fill: long fills let other Python threads run
        self._seed = DEFAULT_SEED
        self._memory: Any = None  # a Storage, once it is made
        self.address = 0  # of the native state, once there is one

    def state(self) -> int:
        """Address of the native state, made and seeded on first use. Call with `lock` held."""
        if self._memory is None:
            unrepeatable("it makes a generator of random numbers")
            self._memory = new_storage(kernels.STATE_BYTES)
            self.address = self._memory.data
            self._reseed()
        return self.address

    def _reseed(self) -> None:
        if self._memory is not None:
            low = self._seed & 0xFFFFFFFF
            kernels.fill("seed", "", 0, self._memory.data, low)

    def manual_seed(self, seed: int) -> Generator:
        """Starts the sequence that belongs to `seed` (−2^63 ≤ seed < 2^64; negative seeds wrap) and returns the generator."""
        seed = int(seed)
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        unrepeatable("it seeds random numbers")
        with self.lock:
            self._seed = seed & 0xFFFFFFFFFFFFFFFF
            self._reseed()
        return self

    def seed(self) -> int:
        """Starts from a seed taken from the operating system, and returns it."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed that the present sequence started from."""
        return self._seed

    def get_state(self) -> Tensor:
        """The state as a uint8 tensor [5056] in PyTorch's layout."""
        with self.lock:
            self.state()
            data = memoryview(self._memory)[: kernels.STATE_BYTES]
            words = _IMPORT.unpack(data[: 4 * kernels.N])
            following, spare, has_spare = struct.unpack("<qdq", data[kernels.NEXT :])
        if following == kernels.FRESH:
            following, left = 0, 1
        else:
            left = kernels.N + 1 - following
        out = empty((_EXPORT.size,), uint8, CPU)
        memoryview(out.mem)[: _EXPORT.size] = _EXPORT.pack(self._seed, left, 1, following, *words, 0.0, spare if has_spare else 0.0, 0.0, has_spare, 0.0, False)
        return out

    def set_state(self, new_state: Tensor) -> Generator:
        """Continues from an exported state. Raises TypeError unless it is a uint8 tensor, RuntimeError unless it is one of a CPU generator."""
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        if new_state.dtype is not uint8 or new_state.device is not CPU:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if new_state.numel() != _EXPORT.size:
            raise RuntimeError(f"Expected a CPUGeneratorImplState of size {_EXPORT.size} but found the input RNG state size to be {new_state.numel()}")
        values = _EXPORT.unpack(bytes(new_state.tolist()))
        seed, left, seeded, following = values[:4]
        words, spare, has_spare = values[4 : 4 + kernels.N], values[5 + kernels.N], values[7 + kernels.N]
        if not (seeded == 1 and 0 < left <= kernels.N and following <= kernels.N and all(w <= 0xFFFFFFFF for w in words)):
            raise RuntimeError("Invalid mt19937 state")
        # The engine refills when `left` runs out; with words left to read, the tempered ones are made again from the state.
        fresh = left == 1
        with self.lock:
            self.state()
            data = memoryview(self._memory)
            data[: 4 * kernels.N] = _IMPORT.pack(*words)
            data[kernels.BUFFER : kernels.NEXT] = _IMPORT.pack(*map(_temper, words))
            start = kernels.FRESH if fresh and following == 0 else kernels.N if fresh else following
            data[kernels.NEXT : kernels.STATE_BYTES] = struct.pack("<qdq", start, spare, int(has_spare == 1))
            self._seed = seed
        return self

    def clone_state(self) -> Generator:
        """A generator that continues with the same numbers, independently."""
        return Generator(self.device).set_state(self.get_state())

    def __reduce__(self):
        return _restore, (str(self.device), bytes(self.get_state().tolist()))

    def __repr__(self):
        return f"<torch._C.Generator object at {id(self):#x}>"


def _restore(device: str, state: bytes) -> Generator:
    generator = Generator(device)
    t = empty((len(state),), uint8, CPU)
    memoryview(t.mem)[: len(state)] = state
    return generator.set_state(t)


def _temper(y: int) -> int:
    y ^= y >> 11
    y ^= y << 7 & 0x9D2C5680
    y ^= y << 15 & 0xEFC60000
    return y ^ y >> 18


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seeds the default generator and returns it."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seeds the default generator from the operating system; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator started from."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state, a uint8 tensor [5056]."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Continues the default generator from a state."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices=None, enabled: bool = True, _caller: str = "fork_rng", _devices_kw: str = "devices", device_type: str = "cuda"):
    """Restores the default generator's state at the end of the block."""
    if not enabled:
        yield
        return
    state = default_generator.get_state()
    try:
        yield
    finally:
        default_generator.set_state(state)


checkpoint.register_rng(get_rng_state, set_rng_state)  # a checkpointed part draws the same numbers again
