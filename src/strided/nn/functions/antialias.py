"""Resizing with a filter as wide as the step from one result to the next (`interpolate(antialias=True)`): details that are too fine vanish instead of showing as others.

Each dimension is a product with a matrix of weights, whose row i holds what result i takes of every input.
"""
import math

from ... import ops
from ...dtypes import float64, uint8
from ...formats import suggested
from ...ops import resample
from .precision import in_float32


def _triangle(x):
    return max(0.0, 1.0 - abs(x))


def _cubic(x, a=-0.5):
    x = abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


def _lanczos(x, lobes=3):
    if x == 0:
        return 1.0
    if abs(x) >= lobes:
        return 0.0
    return lobes * math.sin(math.pi * x) * math.sin(math.pi * x / lobes) / (math.pi * x) ** 2


_FILTERS = {"bilinear": (_triangle, 1), "bicubic": (_cubic, 2), "lanczos": (_lanczos, 3)}  # mode → (filter, how far it reaches)


def _rows(size, out, scale, align_corners, mode):
    """The matrix [out][size] of weights; each row adds up to 1."""
    filter, reach = _FILTERS[mode]
    if align_corners:
        step = (size - 1) / (out - 1) if out > 1 else 0.0
    else:
        step = size / out if scale is None else 1.0 / scale
    wide = max(step, 1.0)  # enlarging needs no wider filter than interpolation has
    rows = []
    for i in range(out):
        centre = step * (i + 0.5)
        first, last = max(int(centre - reach * wide + 0.5), 0), min(int(centre + reach * wide + 0.5), size)
        taps = [filter((j - centre + 0.5) / wide) for j in range(first, last)]
        total = sum(taps)
        rows.append([0.0] * first + [tap / total if total else tap for tap in taps] + [0.0] * (size - last))
    return rows


def smoothed(input, sizes, scales, align_corners, mode):
    """input [N, C, H, W] → [N, C, *sizes]; scales: of each dimension, or None. Bytes are computed in whole numbers, as PyTorch does."""
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    if not (input.dtype.is_floating_point or input.dtype is uint8):
        raise NotImplementedError(f"interpolate: antialias=True takes floats and uint8, got {input.dtype}; convert with .float() first, and round the result")
    turned = {}
    for dim in (3, 2):  # the last dimension first, as PyTorch
        size, out, scale = input.size(dim), sizes[dim - 2], scales[dim - 2]
        if size != out or scale not in (None, 1):
            turned[dim] = _rows(size, out, scale, align_corners, mode)  # [out][size]
    return _of_bytes(input, turned) if input.dtype is uint8 else _of_floats(input, turned, f"Upsample{mode.capitalize()}2DAa")


@in_float32
def _of_floats(input, turned, node):
    if turned and resample.takes(input):
        return resample.resample(input, {dim: _bands(rows) for dim, rows in turned.items()}, node)
    form = suggested(input.spec.layout)
    for dim, rows in turned.items():
        weights = ops.tensor(rows, dtype=input.dtype, device=input.device)
        input = input @ weights.mT if dim == 3 else weights @ input
    return input.contiguous(memory_format=form) if turned else input.clone(memory_format=form)


def _bands(rows):
    """The rows without the zeros around their weights."""
    first = [next((i for i, w in enumerate(row) if w), 0) for row in rows]
    lengths = [len(row) - next((i for i, w in enumerate(reversed(row)) if w), len(row)) - start for start, row in zip(first, rows)]
    return resample.Bands(len(rows[0]), first, [row[start : start + length] for row, start, length in zip(rows, first, lengths)])


def _of_bytes(input, turned):
    """Weights are 16-bit integers with as many fraction bits as the largest allows; each dimension's results are rounded to bytes. Sums are exact in float64."""
    for dim, rows in turned.items():
        largest, bits = max(max(row) for row in rows), 0
        while bits < 22 and int(0.5 + largest * 2 ** (bits + 1)) < 1 << 15:
            bits += 1
        whole = [[int(w * 2**bits + (0.5 if w >= 0 else -0.5)) for w in row] for row in rows]
        weights = ops.tensor(whole, dtype=float64, device=input.device)
        sums = input.to(float64) @ weights.mT if dim == 3 else weights @ input.to(float64)
        input = ((sums + 2 ** (bits - 1)) / 2**bits).floor().clamp(0, 255).to(uint8)
    return input
