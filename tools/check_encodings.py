"""Casts from float32 over all 2^32 bit patterns, against PyTorch where it has the cast and ml_dtypes elsewhere; and every code decoded.

    python tools/check_encodings.py                       # every format of 16 bits or fewer
    python tools/check_encodings.py float8_e5m2 bfloat16  # some of them
    python tools/check_encodings.py --every 257           # one chunk in so many: a quick look

Codes must be equal, except that any NaN stands for any other, and that the formats without a NaN store -0 for one whatever its sign (ml_dtypes flips the
sign of what it stores for a NaN). Exits with 1 where something differs. Needs torch.
"""
import argparse
import sys
import time
import warnings

import ml_dtypes
import numpy
import torch

import strided
from strided import dtypes

CHUNK = 1 << 22


def formats():
    return [d for d in dtypes.all_dtypes() if d.encoding is not None and d.bits <= 16]


def ours(dtype, patterns):
    codes = strided.from_numpy(patterns.view(numpy.float32)).to(dtype)
    if dtype.packed:  # one code a byte
        return strided.from_numpy(patterns.view(numpy.float32)).to(dtype.unpacked).view(strided.uint8).numpy()
    return codes.view(strided.uint8 if dtype.bits == 8 else strided.uint16).numpy()


def theirs(dtype, patterns):
    floats, unsigned = patterns.view(numpy.float32), numpy.uint8 if dtype.bits <= 8 else numpy.uint16
    if hasattr(torch, dtype.name):
        made = torch.from_numpy(floats).to(getattr(torch, dtype.name))
        return made.view(torch.uint8 if dtype.bits == 8 else torch.int16).numpy().view(unsigned)
    return floats.astype(dtype.numpy).view(unsigned)


def check_decode(dtype) -> int:
    codes = numpy.arange(2**dtype.bits, dtype=numpy.uint8 if dtype.bits <= 8 else numpy.uint16)
    array = codes.view(ml_dtypes.bfloat16 if dtype is dtypes.bfloat16 else dtype.numpy).astype(numpy.float32)
    held = strided.from_numpy(codes).view(dtype.unpacked)
    wrong = 0
    for values in (held.to(strided.float32).numpy(), numpy.array(held.tolist(), numpy.float32), numpy.array([dtype.encoding.decode(int(c)) for c in codes], numpy.float32)):
        same = (values.view(numpy.uint32) == array.view(numpy.uint32)) | (numpy.isnan(values) & numpy.isnan(array))
        wrong += int((~same).sum())
    return wrong


def check_encode(dtype, every: int) -> int:
    wrong, start, chunks = 0, time.time(), range(0, 1 << 32, CHUNK * every)
    nan_codes = numpy.array([dtype.encoding.is_nan(code) for code in range(2**dtype.bits)])
    for number, first in enumerate(chunks):
        patterns = numpy.arange(first, first + CHUNK, dtype=numpy.uint64).astype(numpy.uint32)
        a, b = ours(dtype, patterns), theirs(dtype, patterns)
        places = numpy.flatnonzero(a != b)
        if places.size:
            source_nan = numpy.isnan(patterns.view(numpy.float32)[places])
            left = places[~(nan_codes[a[places]] & nan_codes[b[places]]) & ~(source_nan & (dtype.encoding.nan_code is None))]
            wrong += left.size
            for place in left[:3] if wrong <= 3 * left.size else ():
                print(f"\n  {patterns[place]:#010x} = {patterns.view(numpy.float32)[place]!r}: {a[place]:#x} here, {b[place]:#x} there")
        if sys.stderr.isatty() or number % 64 == 63:
            print(f"\r{dtype.name}: {100 * (number + 1) / len(chunks):.0f} %, {time.time() - start:.0f} s", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("formats", nargs="*", help="names of dtypes (default: all of 16 bits or fewer)")
    parser.add_argument("--every", type=int, default=1, help="check one chunk of 2^22 patterns in so many")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = [getattr(strided, name) for name in options.formats] or formats()
    failed = 0
    for dtype in chosen:
        decoded, start = check_decode(dtype), time.time()
        encoded = check_encode(dtype, options.every)
        failed += decoded + encoded
        print(f"{dtype.name:18s} {2**dtype.bits:6d} codes decoded, {decoded} wrong; {-(-(1 << 32) // options.every):,} patterns encoded, {encoded} wrong; {time.time() - start:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
