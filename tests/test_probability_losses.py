"""binary_cross_entropy refuses what is no probability, eagerly and compiled."""
import math

import pytest

import strided as torch
import strided.nn.functional as F

GOOD = [0.0, 0.25, 1.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("bad", [-0.5, 1.5, math.nan, math.inf])
def test_elements_outside_are_refused(bad, dtype):
    good, other = torch.tensor(GOOD, dtype=dtype), torch.tensor([0.5, bad, 0.5], dtype=dtype)
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        F.binary_cross_entropy(other, good)
    with pytest.raises(RuntimeError, match="all elements of target should be between 0 and 1"):
        F.binary_cross_entropy(good, other)


def test_both_ends_are_inside():
    assert F.binary_cross_entropy(torch.tensor([0.0, 1.0, 1.0]), torch.tensor([0.0, 1.0, 0.0]), reduction="none").tolist() == [0.0, 0.0, 100.0]


def test_a_compiled_loss_refuses_them_too():
    loss = torch.compile(lambda x, t: F.binary_cross_entropy(x, t))
    x, t = torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0])
    assert loss(x, t).item() == pytest.approx(math.log(2)) and loss(x, t).item() == pytest.approx(math.log(2))
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        loss(x + 1, t)
