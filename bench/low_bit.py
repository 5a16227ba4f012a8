"""A few rows times a weight in blocks, beside the bfloat16 product of the same machine, ours and PyTorch's; and what it takes of memory.

    python bench/low_bit.py                      # 4096 x 11008, one row; then 4, 16 and 64
    python bench/low_bit.py --rows 1 mxfp4 int4_g128

Times are medians of interleaved rounds on all threads; `thread` is CPU time of one thread, for busy machines. GB/s counts the weight's bytes. `memory` is
what the product held at most beyond its operands (strided's own statistics): the result alone, where nothing is unpacked.
"""
import argparse
import pathlib
import sys

import torch

import strided
from strided import block_formats
from strided.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from casts import thread_time
from side_by_side import pair

FORMATS = "mxfp4 int4_g128 int4_g32_zero nvfp4 int8_g128 mxint8 mxfp8_e4m3 mxfp6_e2m3".split()


def held(call) -> int:
    """The most bytes that a call held beyond what was there before."""
    strided.reset_peak_memory_stats()
    before = strided.max_memory_allocated()
    result = call()
    peak = strided.max_memory_allocated() - before
    del result
    return peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("formats", nargs="*", default=FORMATS)
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 4, 16, 64])
    parser.add_argument("--shape", type=int, nargs=2, default=[4096, 11008], metavar=("OUT", "IN"))
    options = parser.parse_args()
    n, k = options.shape
    weight = strided.randn(n, k)
    half = weight.bfloat16()
    theirs = torch.from_numpy(weight.numpy()).bfloat16()
    blocks = {name: weight.to(block_formats.parse(name)) for name in options.formats}
    for rows in options.rows:
        x = strided.randn(rows, k)
        low, other = x.bfloat16(), torch.from_numpy(x.numpy()).bfloat16()
        ours = lambda: F.linear(low, half)  # noqa: B023  (called before the next round)
        peer = lambda: torch.nn.functional.linear(other, theirs)  # noqa: B023
        a, b = pair(ours, peer, rounds=9)
        alone = thread_time(ours)
        print(f"{rows} x {k} @ ({n} x {k})^T   bfloat16: ours {1e3 * a:.2f} ms, {half.nbytes / a / 1e9:.1f} GB/s, thread {1e3 * alone:.2f} ms; PyTorch {1e3 * b:.2f} ms")
        for name, w in blocks.items():
            for label, left in (("float32", x), ("bfloat16", low)):
                call = lambda: F.linear(left, w)  # noqa: B023
                c, d = pair(call, ours, rounds=9)
                t = thread_time(call)
                print(
                    f"  {name:14} x {label:9} {1e3 * c:8.2f} ms {w.nbytes / c / 1e9:6.1f} GB/s  {d / c:5.2f} x ours in bfloat16 (thread {1e3 * t:.2f} ms: {alone / t:.2f} x)  "
                    f"{b / c:5.2f} x PyTorch's   memory {held(call):,} of {rows * n * left.itemsize:,}", flush=True,
                )  # fmt: skip


if __name__ == "__main__":
    main()
