"""Casts between float32 and smaller formats: strided against PyTorch and against a copy, two threads; GB/s counts bytes read and written once.

    python bench/casts.py              # 64 MB of float32
    python bench/casts.py --megabytes 8 float8_e5m2 int4

The copy is a clone of the same float32 tensor: what the memory allows. PyTorch has no cast for the packed formats. `thread` is CPU time of one
thread, which says what the machine code costs where the machine is busy.
"""
import argparse
import pathlib
import sys
import time
from functools import partial

import torch

import strided
from strided import block_formats

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from side_by_side import pair, row

FORMATS = "bfloat16 float16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn int8 int4".split()
BLOCKS = "mxfp4 int4_g128 int8_g128 nvfp4 mxfp6_e2m3 mxfp8_e4m3 mxint8".split()  # blocks under common scales


def thread_time(function) -> float:
    """CPU seconds of a call on one thread, the least of several."""
    strided.set_num_threads(1)
    best = float("inf")
    for _ in range(7):
        start = time.thread_time()
        function()
        best = min(best, time.thread_time() - start)
    strided.set_num_threads(2)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("formats", nargs="*", default=FORMATS + BLOCKS)
    parser.add_argument("--megabytes", type=int, default=64)
    options = parser.parse_args()
    torch.set_num_threads(2)
    strided.set_num_threads(2)
    n = options.megabytes * 2**20 // 4
    x = strided.randn(n)
    theirs = torch.from_numpy(x.numpy())
    copied, other = pair(x.clone, theirs.clone, rounds=9)
    speed = 8 * n / copied
    row(f"copy, {options.megabytes} MB of float32", copied, other, f"{speed / 1e9:.1f} GB/s, thread {1e3 * thread_time(x.clone):.2f} ms", unit=1e3, suffix="ms")
    for name in options.formats:
        dtype = getattr(strided, name, None) or block_formats.parse(name)
        small = x.to(dtype)
        peer = getattr(torch, name, None) if dtype.bits >= 8 else None
        for label, source, target, other, other_target in (
            (f"float32 -> {name}", x, dtype, theirs, peer),
            (f"{name} -> float32", small, strided.float32, theirs.to(peer) if peer else theirs, torch.float32 if peer else None),
        ):
            ours = partial(source.to, target)
            a, b = pair(ours, partial(other.to, other_target) if peer else int, rounds=9)
            rate = (4 * n + small.nbytes) / a
            note = f"{rate / 1e9:.1f} GB/s, {100 * rate / speed:.0f} % of the copy, thread {1e3 * thread_time(ours):.2f} ms"
            row(label, a, b if peer else float("nan"), note, unit=1e3, suffix="ms")


if __name__ == "__main__":
    main()
