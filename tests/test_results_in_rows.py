"""Results that lie row by row however the operands lie, so that they may be viewed in other shapes; and random numbers drawn in that order."""
import pytest

import strided as torch

F = torch.nn.functional
at = torch.zeros(4, 3, dtype=torch.int64)
CASES = {
    "scatter": lambda x, y: x.scatter(0, at, y),
    "scatter of a number": lambda x, y: x.scatter(0, at, 1.0),
    "scatter_add": lambda x, y: x.scatter_add(0, at, y),
    "scatter_reduce": lambda x, y: x.scatter_reduce(0, at, y, "amax"),
    "index_add": lambda x, y: x.index_add(0, torch.arange(4), y),
    "index_copy": lambda x, y: x.index_copy(0, torch.tensor([3, 2, 1, 0]), y),
    "index_reduce": lambda x, y: x.index_reduce(0, torch.arange(4), y, "mean"),
    "masked_fill": lambda x, y: x.masked_fill(x > 5, -1.0),
    "masked_scatter": lambda x, y: x.masked_scatter(x > 5, y),
    "logsigmoid": lambda x, y: F.logsigmoid(x),
}


@pytest.mark.parametrize("name", CASES)
def test_results_lie_row_by_row(name):
    x, y = torch.arange(12.0).reshape(3, 4).t(), torch.full((3, 4), 7.0).t()
    result = CASES[name](x, y)
    assert result.stride() == (3, 1)
    assert result.view(12).tolist() == CASES[name](x.contiguous(), y.contiguous()).view(12).tolist()


def test_index_fill_keeps_the_order_of_dimensions():
    assert torch.arange(12.0).reshape(3, 4).t().index_fill(0, torch.tensor([1]), 5).stride() == (1, 4)


@pytest.mark.parametrize("draw", [torch.bernoulli, lambda x: torch.bernoulli(x, 0.5), lambda x: torch.normal(x, 1.0), lambda x: torch.normal(0.0, x), lambda x: torch.normal(x, x), lambda x: F.gumbel_softmax(x)])
def test_random_numbers_are_drawn_row_by_row(draw):
    x = torch.arange(12.0).div(12).reshape(3, 4).t()
    torch.manual_seed(3)
    turned = draw(x)
    torch.manual_seed(3)
    assert torch.equal(turned, draw(x.contiguous())) and turned.stride() == (3, 1)


@pytest.mark.parametrize("operator", ["and", "or", "xor", "left_shift", "right_shift"])
def test_bits_of_floats_are_refused(operator):
    kernel = {"left_shift": "lshift", "right_shift": "rshift"}.get(operator, f"bitwise_{operator}")
    x = torch.tensor([1.0, 2.0])
    for call in (lambda: getattr(torch, f"bitwise_{operator}")(x, x), lambda: getattr(torch, f"bitwise_{operator}")(torch.tensor([1, 2]), 1.5)):
        with pytest.raises(NotImplementedError, match=f"\"{kernel}_cpu\" not implemented for 'Float'"):
            call()
    with pytest.raises(NotImplementedError, match="not implemented for 'Double'"):
        ~x.double()
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Int"):
        torch.tensor([1, 2], dtype=torch.int32).bitwise_and_(1.5)


def test_complex_numbers_are_not_ordered_by_index_reduce():
    z = torch.zeros(2, dtype=torch.complex64)
    for call in (z.index_reduce, z.clone().index_reduce_):
        with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
            call(0, torch.tensor([0]), z[:1], "amax", include_self=False)


def test_bools_are_not_divided_with_remainders():
    a, b = torch.tensor([True, False]), torch.tensor([True, True])
    for kernel, call in (
        ("remainder", lambda: a % b),
        ("fmod", lambda: torch.fmod(a, b)),
        ("div_floor", lambda: a // b),
        ("div_trunc", lambda: torch.div(a, b, rounding_mode="trunc")),
        ("remainder", lambda: a.remainder_(b)),
        ("bincount", lambda: torch.bincount(a)),
    ):
        with pytest.raises(NotImplementedError, match=f"\"{kernel}_cpu\" not implemented for 'Bool'"):
            call()
    assert (torch.tensor([3, 4]) % b).tolist() == [0, 0] and (a // 2).tolist() == [0, 0]


def test_addr_of_bools_stays_bool():
    a, b, ones = torch.tensor([True, False]), torch.tensor([True, True]), torch.ones(2, 2, dtype=torch.bool)
    assert torch.addr(ones, a, b).dtype is torch.bool and torch.addr(ones, a, b).all()
    assert torch.addr(ones, a, b, beta=0, alpha=3).tolist() == [[True, True], [False, False]]
    with pytest.raises(RuntimeError, match="argument beta must not be a floating point number"):
        torch.addr(ones.long(), a.long(), b.long(), beta=0.5)


def test_distinct_elements_have_no_derivative():
    x = torch.tensor([2.0, 1.0, 2.0], requires_grad=True)
    values, places = torch.unique(x, return_inverse=True)
    assert values.tolist() == [1.0, 2.0] and places.tolist() == [1, 0, 1] and values.requires_grad and not places.requires_grad
    for result, name in ((values, "_unique2"), (torch.unique_consecutive(x), "unique_consecutive"), (x.unique(dim=0), "unique_dim")):
        with pytest.raises(NotImplementedError, match=f"the derivative for '{name}' is not implemented"):
            result.sum().backward()
    with torch.no_grad():
        assert not x.unique().requires_grad


def test_addcmul_of_integers_stays_integer():
    a = torch.tensor([2, 3], dtype=torch.int32)
    for value, expected in ((0.5, [2, 3]), (1.5, [6, 12]), (2, [10, 21])):
        assert torch.addcmul(a, a, a, value=value).tolist() == expected and a.clone().addcmul_(a, a, value=value).tolist() == expected
    assert torch.addcmul(a, a, a, value=0.5).dtype is torch.int32
    assert torch.addcmul(a, a.float(), a, value=0.5).tolist() == [4.0, 7.5]
