"""Weights that a graph uses several times with a few rows each: gradients of all uses together, whoever looks at them or writes meanwhile."""

import pytest

import strided as torch
from strided import nn
from strided.nn import functional as F


def numbers(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-3, 4, shape, generator=generator).to(torch.float32)  # products and sums of few of these are exact


def uses(count, rows=4, inside=5, outside=3):
    return [numbers(rows, inside, seed=i) for i in range(count)], [numbers(rows, outside, seed=100 + i) for i in range(count)]


def layer(bias=True, inside=5, outside=3):
    weight = numbers(outside, inside, seed=50).requires_grad_()
    return weight, numbers(outside, seed=51).requires_grad_() if bias else None


def loss(xs, gs, weight, bias):
    return sum((F.linear(x, weight, bias) * g).sum() for x, g in zip(xs, gs))


def expected(xs, gs):
    return sum(g.t() @ x for x, g in zip(xs, gs)), sum(g.sum(0) for g in gs)


@pytest.mark.parametrize("count, rows", [(2, 4), (5, 1), (7, 200), (400, 4)])  # the last two in several goes
@pytest.mark.parametrize("bias", [True, False])
def test_the_sum_over_all_uses(count, rows, bias):
    xs, gs = uses(count, rows)
    weight, b = layer(bias)
    loss(xs, gs, weight, b).backward()
    of_weight, of_bias = expected(xs, gs)
    assert weight.grad.equal(of_weight)
    assert not bias or b.grad.equal(of_bias)


def test_uses_of_different_numbers_of_rows_and_other_uses_of_the_same_weight():
    weight, bias = layer()
    xs = [numbers(rows, 5, seed=rows) for rows in (2, 3, 300, 1)]
    gs = [numbers(rows, 3, seed=rows + 9) for rows in (2, 3, 300, 1)]
    (loss(xs, gs, weight, bias) + (weight * 2).sum() + bias.sum() + F.linear(xs[0], weight).sum()).backward()
    of_weight, of_bias = expected(xs, gs)
    assert weight.grad.equal(of_weight + 2 + xs[0].sum(0)) and bias.grad.equal(of_bias + 1)


def test_one_bias_of_two_weights_and_one_weight_with_two_biases():
    (first, bias), (second, other) = layer(), layer()
    xs, gs = uses(4)
    pairs = [(first, bias), (second, bias), (first, other), (second, None)]
    total = sum(loss(xs, gs, w, b) for w, b in pairs)
    total.backward()
    of_weight, of_bias = expected(xs, gs)
    assert first.grad.equal(2 * of_weight) and second.grad.equal(2 * of_weight)
    assert bias.grad.equal(2 * of_bias) and other.grad.equal(of_bias)


def test_frozen_parts():
    xs, gs = uses(3)
    weight, bias = layer()
    loss(xs, gs, weight, bias.detach()).backward()
    assert weight.grad.equal(expected(xs, gs)[0]) and bias.grad is None
    weight, bias = layer()
    loss(xs, gs, weight.detach(), bias).backward()
    assert bias.grad.equal(expected(xs, gs)[1])


def test_a_second_pass_adds_and_grad_asks_for_some():
    xs, gs = uses(3)
    weight, bias = layer()
    total = loss(xs, gs, weight, bias)
    total.backward(retain_graph=True)
    total.backward()
    of_weight, of_bias = expected(xs, gs)
    assert weight.grad.equal(2 * of_weight) and bias.grad.equal(2 * of_bias)
    (found,) = torch.autograd.grad(loss(xs, gs, weight, bias), bias)
    assert found.equal(of_bias)
    found = torch.autograd.grad(loss(xs, gs, weight, bias), (weight, bias))
    assert found[0].equal(of_weight) and found[1].equal(of_bias)


def test_gradients_with_a_gradient():
    xs, gs = uses(3)
    weight, _ = layer()
    total = sum((F.linear(x, weight) ** 2).sum() for x in xs)
    (first,) = torch.autograd.grad(total, weight, create_graph=True)
    first.sum().backward()
    square = sum(x.t() @ x for x in xs)
    assert weight.grad.equal(2 * square.sum(0).expand(3, 5))


def test_hooks_see_whole_gradients_of_leaves():
    xs, gs = uses(4)
    weight, bias = layer()
    seen = []
    weight.register_hook(lambda g: seen.append(g.clone()))
    bias.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.clone()))
    loss(xs, gs, weight, bias).backward()
    of_weight, of_bias = expected(xs, gs)
    assert sorted([s.shape for s in seen]) == [(3,), (3, 5)]
    assert all(s.equal(of_weight if s.ndim == 2 else of_bias) for s in seen)
    assert weight.grad.equal(of_weight) and bias.grad.equal(of_bias)


def test_what_hooks_and_functions_write_into_does_not_count():
    class Spoils(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, spoiled):
            ctx.spoiled = spoiled
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            ctx.spoiled.zero_()  # its gradient was taken before
            return g, None

    xs, gs = uses(3)
    of_weight, of_bias = expected(xs, gs)
    for spoil in ("function", "hook"):
        weight, bias = layer()
        ys = [x.clone() for x in xs]
        start = numbers(4, 5, seed=7).requires_grad_()
        before = start.clone() if spoil == "hook" else Spoils.apply(start, ys[2])
        if spoil == "hook":
            before.register_hook(lambda g, ys=ys: (ys[2].zero_(), None)[1])
        outs = [F.linear(before * 0 + ys[0], weight, bias), F.linear(ys[1], weight, bias), F.linear(ys[2], weight, bias)]
        sum((out * g).sum() for out, g in zip(outs, gs)).backward()
        assert ys[2].eq(0).all()
        assert weight.grad.equal(of_weight) and bias.grad.equal(of_bias), spoil


def test_a_leaf_that_its_own_hook_updates():
    xs, gs = uses(3)
    weight, bias = layer()
    x = xs[2].clone().requires_grad_()

    def update(leaf):
        with torch.no_grad():
            leaf.zero_()

    x.register_post_accumulate_grad_hook(update)
    loss([*xs[:2], x], gs, weight, bias).backward()
    of_weight, of_bias = expected(xs, gs)
    assert weight.grad.equal(of_weight) and bias.grad.equal(of_bias)


def test_a_cell_over_time():
    torch.manual_seed(0)
    cell = nn.GRUCell(6, 5)
    xs, h = torch.randn(9, 3, 6), torch.zeros(3, 5)
    together = cell
    state = h
    for x in xs:
        state = together(x, state)
    state.square().sum().backward()
    alone = nn.GRUCell(6, 5)
    alone.load_state_dict(cell.state_dict())
    copies, state = [], h
    for x in xs:  # weights of its own for each step
        copies.append({name: p.detach().clone().requires_grad_() for name, p in alone.named_parameters()})
        state = torch.func.functional_call(alone, copies[-1], (x, state))
    state.square().sum().backward()
    for name, p in cell.named_parameters():
        torch.testing.assert_close(p.grad, sum(c[name].grad for c in copies))


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_anomaly_mode_and_watchers_see_single_gradients():
    xs, gs = uses(3)
    weight, bias = layer()
    with torch.autograd.detect_anomaly(check_nan=True):
        loss(xs, gs, weight, bias).backward()
    assert weight.grad.equal(expected(xs, gs)[0])
