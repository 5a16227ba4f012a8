"""Transposing copies against NumPy: every element size, sizes around the squares that are turned in registers, batches, slices, more threads than stripes."""

from __future__ import annotations

import numpy as np
import pytest

import strided as torch

SHAPES = [(16, 16), (15, 17), (4, 40), (40, 4), (33, 129), (200, 7), (7, 200), (3, 50, 66), (2, 3, 20, 64), (1, 5)]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128", "bool"])
@pytest.mark.parametrize("shape", SHAPES)
def test_transposed_copies(dtype, shape):
    x = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    t = torch.from_numpy(x)
    for permuted in {(*range(len(shape) - 2), len(shape) - 1, len(shape) - 2), tuple(reversed(range(len(shape)))), (*range(1, len(shape)), 0)}:
        copied = t.permute(permuted).contiguous()
        assert copied.is_contiguous() and np.array_equal(copied.numpy(), x.transpose(permuted))


def test_large_ones_are_written_past_the_caches():
    x = torch.arange(3008 * 3200, dtype=torch.float32).view(3008, 3200)  # 38 MB; rows of the result begin at cache lines
    assert np.array_equal(x.t().contiguous().numpy(), x.numpy().T)
    padded = torch.empty(3200, 3008)[:, :3001]
    padded.copy_(x[:3001].t())
    assert np.array_equal(padded.numpy(), x[:3001].numpy().T)


def test_slices_are_left_alone():
    x, target = torch.arange(40 * 50.0).view(40, 50), torch.full((60, 48), -1.0)
    target[3:48, 2:36] = x[:34, 5:].t()
    expected = np.full((60, 48), -1.0)
    expected[3:48, 2:36] = x.numpy()[:34, 5:].T
    assert np.array_equal(target.numpy(), expected)


@pytest.mark.parametrize("threads", [1, 5])
def test_threads(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x = torch.arange(517 * 700).view(517, 700)
        assert np.array_equal(x.t().contiguous().numpy(), x.numpy().T)
    finally:
        torch.set_num_threads(before)
