"""cdist by matrix products: values by hand, zero distances, what the gradient of a zero distance is, second derivatives."""
import math

import pytest

import strided as torch

BY_PRODUCTS = {"compute_mode": "use_mm_for_euclid_dist"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distances_of_a_grid(dtype):
    x = torch.stack([torch.arange(30), torch.zeros(30, dtype=torch.int64)], 1).to(dtype)  # points on a line: whole distances, products exact
    d = torch.cdist(x, x)
    n = torch.arange(30)
    assert d.dtype == dtype and torch.equal(d, (n[:, None] - n).abs().to(dtype))
    assert d.diagonal().tolist() == [0.0] * 30


def test_batches_broadcast():
    x = torch.tensor([[[0.0, 0.0], [3.0, 4.0]]])  # [1, 2, 2]
    y = torch.tensor([[[0.0, 0.0]], [[6.0, 8.0]], [[3.0, 0.0]]])  # [3, 1, 2]
    assert torch.cdist(x, y, **BY_PRODUCTS).tolist() == [[[0.0], [5.0]], [[10.0], [5.0]], [[3.0], [4.0]]]


def test_gradient_at_a_distance_and_at_none():
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
    y = torch.tensor([[0.0, 0.0]], requires_grad=True)
    torch.cdist(x, y, **BY_PRODUCTS).sum().backward()
    assert torch.allclose(x.grad, torch.tensor([[0.6, 0.8], [0.0, 0.0]])) and torch.allclose(y.grad, torch.tensor([[-0.6, -0.8]]))


def test_second_derivatives():
    torch.manual_seed(0)
    x, y = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True), torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    distances = lambda x, y: torch.cdist(x, y, **BY_PRODUCTS)
    assert torch.autograd.gradcheck(distances, (x, y)) and torch.autograd.gradgradcheck(distances, (x, y))
    (g,) = torch.autograd.grad(torch.cdist(x, x, **BY_PRODUCTS).sum(), x, create_graph=True)
    assert g.isfinite().all()


def test_second_derivative_at_a_zero_distance_is_finite():
    x = torch.tensor([[1.0, 2.0], [4.0, 6.0]], dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(torch.cdist(x, x.detach().clone(), **BY_PRODUCTS).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad((g * g).sum(), x)
    assert h.isfinite().all()


def test_not_a_number_stays():
    x = torch.tensor([[math.nan, 0.0], [0.0, 0.0]])
    assert torch.cdist(x, x, **BY_PRODUCTS).isnan().tolist() == [[True, True], [True, False]]


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="fastest is not a valid value for compute_mode"):
        torch.cdist(torch.ones(2, 2), torch.ones(2, 2), compute_mode="fastest")
