"""Sampling an image where its own pixels lie, as a spatial transformer begins: there the last bit of a place says which neighbour a gradient looks at."""
from fractions import Fraction
from math import floor

import pytest

import strided as torch
from strided.kernels.jit import host
from strided.nn import functional as F

IDENTITY = [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]


@pytest.mark.parametrize("n", [1, 2, 13, 28])
def test_places_are_rounded_step_by_step(n):
    for align_corners in (False, True):
        grid = F.affine_grid(torch.tensor(IDENTITY, dtype=torch.float64), (1, 1, n, n), align_corners)
        ends = [0.0] if n == 1 else torch.linspace(-1, 1, n, dtype=torch.float64).tolist()
        expected = ends if align_corners or n == 1 else [end * (n - 1) / n for end in ends]
        assert grid[0, 0, :, 0].tolist() == grid[0, :, 0, 1].tolist() == expected


@pytest.mark.skipif(not host().fma, reason="a product and a sum are rounded once where the processor can")
@pytest.mark.parametrize("n", [13, 17, 28])
def test_the_neighbour_is_that_of_the_place_rounded_once(n):
    grid = F.affine_grid(torch.tensor(IDENTITY, dtype=torch.float64), (1, 1, n, n), False).requires_grad_()
    squares = (torch.arange(n, dtype=torch.float64) ** 2).expand(1, 1, n, n).contiguous()  # between columns k and k + 1 the slope is 2k + 1
    F.grid_sample(squares, grid, align_corners=False).sum().backward()
    slopes = (grid.grad[0, 1, :, 0] / (n / 2)).tolist()
    cells = [floor(float(Fraction(x + 1) * Fraction(n, 2) - Fraction(1, 2))) for x in grid[0, 1, :, 0].tolist()]
    assert [round((slope - 1) / 2) for slope in slopes[1:-1]] == cells[1:-1]
