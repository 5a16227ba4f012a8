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


PRODUCTS = {
    "matmul": lambda x, w: x @ w,
    "matmul of batches": lambda x, w: (x[None] @ w).sum(0),
    "matmul with a vector": lambda x, w: x @ w[:, 0],
    "dot": lambda x, w: torch.dot(x[0], w[0]),
    "mv": lambda x, w: torch.mv(x, w[0]),
    "bmm": lambda x, w: torch.bmm(x[None], w[None])[0],
    "einsum": lambda x, w: torch.einsum("ij,jk->ik", x, w),
    "addmm": lambda x, w: torch.addmm(torch.zeros(2, 2, dtype=x.dtype), x, w),
    "baddbmm": lambda x, w: torch.baddbmm(torch.zeros(1, 2, 2, dtype=x.dtype), x[None], w[None])[0],
    "addmv": lambda x, w: torch.addmv(torch.zeros(2, dtype=x.dtype), x, w[0]),
    "linear": lambda x, w: torch.nn.functional.linear(x, w),
    "linear with a bias": lambda x, w: torch.nn.functional.linear(x, w, torch.zeros(2, dtype=x.dtype)),
}


@pytest.mark.parametrize("frozen", [0, 1])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_keep_only_the_partner_of_what_wants_a_gradient(name, frozen):
    product = PRODUCTS[name]
    x, w = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64), torch.tensor([[5.0, 6.0], [7.0, 8.0]], dtype=torch.float64)
    both = [x.clone().requires_grad_(), w.clone().requires_grad_()]
    product(*both).sum().backward()
    wanted = [x, w][1 - frozen].clone().requires_grad_()
    moved = wanted * 1  # what may be written: its own gradient needs the other alone
    result = product(moved, w) if frozen else product(x, moved)
    moved.zero_()
    result.sum().backward()
    assert wanted.grad.tolist() == both[1 - frozen].grad.tolist()


def test_what_a_frozen_layer_was_given_is_not_kept():
    frozen, head = torch.nn.Linear(64, 64, bias=False).requires_grad_(False), torch.nn.Linear(64, 64, bias=False)
    x = torch.ones(256, 64)

    def kept(layer):
        hidden = head(x)
        before = torch.memory_allocated()
        result = layer(hidden * 1.5)  # what goes into the layer is nobody else's
        return torch.memory_allocated() - before, result

    size = 256 * 64 * 4
    assert kept(frozen)[0] == size and kept(head)[0] == 2 * size


def test_gradients_beside_a_frozen_partner_lie_as_ever():
    w, x = torch.ones(3, 2, requires_grad=True), torch.ones(4, 2)
    (x @ w.t()).sum().backward()
    assert w.grad.stride() == (2, 1) and w.grad.tolist() == [[4.0, 4.0]] * 3


@pytest.mark.parametrize("select", [lambda x: x.mode(0).values, lambda x: x.median(0).values, lambda x: x.kthvalue(1, 0).values, lambda x: x.sort(0).values, lambda x: x.max(0).values, lambda x: x.topk(1, 0).values])
def test_selected_values_may_be_written(select):
    x = torch.tensor([[2.0, 1.0], [1.0, 3.0]]).reshape(2, 2).requires_grad_()
    y = select(x)
    y.mul_(torch.tensor(3.0))
    y.sum().backward()
    again = x.detach().clone().requires_grad_()
    (select(again) * 3).sum().backward()
    assert x.grad.tolist() == again.grad.tolist()


def test_windows_of_windows_of_a_leaf_are_not_written():
    x = torch.arange(8.0).view(2, 4).requires_grad_()
    for window in (x[0], x.t(), x[:, 1:].t()[0], x.view(-1)[2:].view(3, 2), x.unbind(0)[0]):
        with pytest.raises(RuntimeError, match="in-?place"):
            window.mul_(2)


@pytest.mark.parametrize("name", ["eq_", "ne_", "lt_", "le_", "gt_", "ge_"])
def test_what_a_comparison_is_written_over_leads_nowhere(name):
    x = leaf(1.0, 2.0, 3.0)
    kept = x * 2
    written = kept * 1
    getattr(written, name)(2.0)
    (written.sum() + kept.sum()).backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    x = leaf(1.0, 2.0, 3.0)
    kept = x * 2
    getattr(kept[1:], name)(torch.tensor(2.0, dtype=torch.float64))
    kept.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


def test_pieces_of_tensor_split_may_be_written():
    x = leaf(*map(float, range(7)))
    y = x * 1
    pieces = torch.tensor_split(y, 3)
    assert [len(p) for p in pieces] == [3, 2, 2] and [len(p) for p in torch.tensor_split(y, 9)] == [1] * 7 + [0, 0]
    pieces[1].mul_(5)
    y.view(7, 1).hsplit(1)[0][0].zero_()
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 1.0, 5.0, 5.0, 1.0, 1.0]
