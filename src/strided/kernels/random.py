"""Random fills: `fill` runs one, bit for bit as PyTorch's CPU generator. Holds the layout of a generator's native memory.

That memory is: 624 words of Mersenne Twister state, 624 tempered words, the index of the next unread word, the spare normal and whether there is one.
Every fill is serial: one kernel call draws in memory order. The kernels' text (random_text.py) is loaded when one must be compiled.
"""
from __future__ import annotations

from . import jit
from .native import launch, pack_desc

N, M = 624, 397
BUFFER, NEXT, SPARE, HAS_SPARE = 4 * N, 8 * N, 8 * N + 8, 8 * N + 16  # byte offsets behind the state words
STATE_BYTES = 8 * N + 24
FRESH = N + 1  # value of `next` after seeding: nothing was drawn yet (like N, it makes the next draw refill)
BIG = 32768  # elements from which a fill lets other Python threads run

_SLOTS = {"multinomial": 7, "permutation": 3, "seed": 2, "bits": 4}  # others: state, out, n and two parameters
_descriptors: dict[tuple[str, str], tuple[bytes, bytes]] = {}


def _text(name: str, kind: str) -> str:
    from .random_text import module_text

    return module_text(name, kind)


def fill(name: str, kind: str, work: int, *slots: int | float) -> None:
    """Runs the fill `name` for element type `kind` ("float", "double", "i8", "i32", "i64", …) with its slots: state address, out address, n, parameters.

    `work` is the number of elements: above BIG, other Python threads may run meanwhile (the caller holds the generator's lock).
    """
    pair = _descriptors.get((name, kind))
    if pair is None:
        address = jit.compile_kernel(("random", name, kind), lambda: _text(name, kind))
        count = _SLOTS.get(name, 5)
        pair = _descriptors[name, kind] = (pack_desc(address, count), pack_desc(address, count, release_gil=True))
    launch(pair[work > BIG], *slots)
