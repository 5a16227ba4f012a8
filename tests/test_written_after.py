"""What may be written in place after operators have used or made it, as in PyTorch: results that no gradient is made of, operands whose partner is frozen; and what may not: leaves through views."""
import math

import pytest

import strided as torch


def leaf(*numbers):
    return torch.tensor(numbers, dtype=torch.float64, requires_grad=True)


RESULTS = {  # operator: its derivative at x
    "1 / x": (lambda x: 1 / x, lambda x: -1 / x**2),
    "x / 4": (lambda x: x / 4, lambda x: 0.25),
    "x ** 0.5": (lambda x: x**0.5, lambda x: 0.5 / math.sqrt(x)),
    "x ** -1": (lambda x: x**-1, lambda x: -1 / x**2),
    "x ** -0.5": (lambda x: x**-0.5, lambda x: -0.5 * x**-1.5),
    "x ** -2": (lambda x: x**-2, lambda x: -2 * x**-3),
    "softsign": (torch.nn.functional.softsign, lambda x: 1 / (1 + x) ** 2),
    "sinc": (torch.sinc, lambda x: math.cos(math.pi * x) / x - math.sin(math.pi * x) / (math.pi * x * x)),
    "erfinv": (lambda x: torch.erfinv(x / 8), lambda x: None),
    "logaddexp": (lambda x: torch.logaddexp(x, 2 * x), lambda x: (math.exp(x) + 2 * math.exp(2 * x)) / (math.exp(x) + math.exp(2 * x))),
    "logaddexp2": (lambda x: torch.logaddexp2(x, 2 * x), lambda x: (2**x + 2 * 4**x) / (2**x + 4**x)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_that_no_gradient_is_made_of_may_be_written(name):
    operator, derivative = RESULTS[name]
    x = leaf(0.5, 2.0, 3.0)
    y = operator(x)
    y.mul_(3).add_(1)
    y.sum().backward()
    again = leaf(0.5, 2.0, 3.0)
    (operator(again) * 3 + 1).sum().backward()
    assert torch.allclose(x.grad, again.grad, rtol=1e-14)
    if name != "erfinv":
        assert x.grad.tolist() == pytest.approx([3 * derivative(v) for v in (0.5, 2.0, 3.0)], rel=1e-12)


def test_a_quotient_may_be_scaled_where_both_want_gradients():
    x, norm = leaf(1.0, 2.0, 3.0), leaf(4.0)
    y = x / norm
    y *= 2
    y.sum().backward()
    assert x.grad.tolist() == [0.5] * 3 and norm.grad.tolist() == [-12 / 16]


def test_operands_of_a_quotient_are_what_is_saved():
    x, y = leaf(1.0), leaf(2.0)
    a = x * 1
    quotient = a / y
    a += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        quotient.sum().backward()


def test_a_quotient_in_place_knows_what_was_there():
    x, y = leaf(3.0, 5.0), leaf(2.0, 4.0)
    a = x * 1
    a /= y
    a *= 10
    a.sum().backward()
    assert x.grad.tolist() == [5.0, 2.5] and y.grad.tolist() == [-10 * 3 / 4, -10 * 5 / 16]


@pytest.mark.parametrize("write", [lambda x: x.mul_(2), lambda x: x.view(-1).mul_(2), lambda x: x.fill_diagonal_(1), lambda x: x.__setitem__(0, 1.0), lambda x: x[0].zero_(), lambda x: x.t().add_(1)])
def test_a_leaf_that_is_a_view_is_not_written(write):
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()  # a view of what arange made, and a leaf
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an in-place operation"):
        write(x)
    assert x.is_leaf and x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    with torch.no_grad():
        x.mul_(2)
    assert x.is_leaf and x.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]


def test_plus_x_is_x():
    x = leaf(1.0, 2.0)
    y = x * 2
    assert +y is y and torch.positive(y) is y and y.positive() is y
    with pytest.raises(RuntimeError, match="on a bool tensor is not supported"):
        +torch.tensor([True])
