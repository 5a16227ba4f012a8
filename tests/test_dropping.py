"""Dropout of single elements against PyTorch's formula, input · noise; its gradients; what it keeps for them."""
import math

import pytest

import strided as torch
from strided.nn import functional as F
from strided.ops.random import dropout_mask


def twice(x, p, **options):
    """(dropout(x), x · noise) from the same numbers."""
    torch.manual_seed(5)
    found = F.dropout(x, p, **options)
    torch.manual_seed(5)
    return found, x * dropout_mask(x, p)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 1.0])
def test_values(dtype, p):
    for x in (torch.randn(7, 9), torch.randn(6, 50).t(), torch.randn(8, 12)[::2, 1::3], torch.randn(3), torch.tensor(2.0)):
        found, expected = twice(x.to(dtype), p)
        assert found.equal(expected) and found.stride() == expected.stride() and found.dtype == dtype


def test_what_is_not_finite():
    found, expected = twice(torch.tensor([math.inf, -math.inf, math.nan] * 10), 0.5)
    assert found.isnan().equal(expected.isnan()) and found.nan_to_num().equal(expected.nan_to_num())
    assert found.isnan().sum() > 10  # an infinite number that is dropped


def test_gradients():
    x = torch.randn(40, dtype=torch.float64, requires_grad=True)
    y = F.dropout(x, 0.5)
    assert y.grad_fn.name() == "MulBackward0"
    (g,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
    factor = torch.where(y.detach() == 0, 0.0, 2.0).double()
    assert torch.allclose(g, 2 * x * factor * factor)
    (gg,) = torch.autograd.grad(g.sum(), x)
    assert torch.allclose(gg, 2 * factor * factor)


def test_in_place():
    x = torch.randn(30, requires_grad=True)
    y = x.clone()
    torch.manual_seed(1)
    z = F.dropout(y, 0.3, inplace=True)
    torch.manual_seed(1)
    assert z is y and y._version == 1 and y.equal(F.dropout(x, 0.3))
    y.sum().backward()
    assert torch.allclose(x.grad, y.detach() / x.detach())
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        F.dropout(x, 0.3, inplace=True)


def test_a_byte_an_element_is_kept():
    x = torch.randn(1000, requires_grad=True)
    before = torch.memory.memory_allocated()
    y = F.dropout(x, 0.3)
    assert torch.memory.memory_allocated() - before == 4000 + 1000
    assert y.grad_fn._saved_other.dtype == torch.uint8


def test_shapes_alone():
    assert F.dropout(torch.empty(3, 4, device="meta"), 0.5).shape == (3, 4)
    assert F.dropout(torch.empty(0), 0.5).shape == (0,)
