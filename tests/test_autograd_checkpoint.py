"""Activation checkpointing: the same gradients as without, from recomputed activations."""

from __future__ import annotations

import pytest

import strided as torch
from strided.autograd.checkpoint import CheckpointError, checkpoint, checkpoint_sequential


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def body(x, w):
    return (x * w).exp() * x + w


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_same_gradients(use_reentrant):
    x, w = leaf(0.1, 0.2), leaf(2.0, 3.0)
    body(x * 1, w).sum().backward()
    expected = x.grad.tolist(), w.grad.tolist()
    x.grad = w.grad = None
    out = checkpoint(body, x * 1, w, use_reentrant=use_reentrant)
    assert out.tolist() == body(x, w).tolist()
    out.sum().backward()
    assert (x.grad.tolist(), w.grad.tolist()) == expected


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_runs_forward_twice(use_reentrant):
    calls = []

    def counted(x):
        calls.append(torch.is_grad_enabled())
        return x.exp().exp()

    checkpoint(counted, leaf(0.5), use_reentrant=use_reentrant).sum().backward()
    assert calls == [not use_reentrant, True]


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_random_numbers_are_the_same_again(use_reentrant):
    x = torch.ones(64, requires_grad=True)
    out = checkpoint(lambda x: (x * torch.rand(64)).sin(), x, use_reentrant=use_reentrant)
    torch.rand(3)  # moves the generator on
    state = torch.get_rng_state()
    out.sum().backward()
    assert torch.allclose(x.grad, out.detach().asin() * (1 - out.detach() ** 2).sqrt(), atol=1e-6)
    assert torch.equal(torch.get_rng_state(), state)


def test_nested_and_keyword_arguments():
    def outer(x, *, w):
        return checkpoint(body, x * w, w, use_reentrant=False) * x

    x, w = leaf(0.1, 0.2), leaf(2.0, 3.0)
    outer(x, w=w).sum().backward()
    expected = x.grad.tolist(), w.grad.tolist()
    x.grad = w.grad = None
    checkpoint(outer, x, w=w, use_reentrant=False).sum().backward()
    assert (x.grad.tolist(), w.grad.tolist()) == expected


def test_higher_derivative_and_retained_graph():
    x = leaf(0.3)
    y = checkpoint(lambda x: (x * x).exp(), x, use_reentrant=False).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    expected = (2 + 4 * x * x) * (x * x).exp()
    assert torch.allclose(gg, expected.detach())
    y = checkpoint(body, x, x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    assert torch.allclose(x.grad, 2 * first)


def test_modified_arguments_are_noticed():
    x = leaf(1.0, 2.0)
    h = x * 1
    y = checkpoint(lambda h: h.exp(), h, use_reentrant=False)
    h.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_different_recomputation_is_an_error():
    calls = []

    def fickle(x):
        calls.append(1)
        return x.exp().exp() if len(calls) == 1 else x.exp()

    with pytest.raises(
        CheckpointError,
        match="A different number of tensors was saved during the original forward and recomputation.\nNumber of tensors saved during forward: 2\nNumber of tensors saved during recomputation: 1.",
    ):
        checkpoint(fickle, leaf(0.5), use_reentrant=False).sum().backward()

    def reshaped(x):
        calls.append(1)
        return x.exp() if len(calls) % 2 else x[:1].exp()

    calls.clear()
    with pytest.raises(CheckpointError, match="Recomputed values for the following tensors have different metadata than during the forward pass."):
        checkpoint(reshaped, leaf(0.5, 0.6), use_reentrant=False).sum().backward()


def test_reentrant_refuses_autograd_grad():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad()"):
        torch.autograd.grad(checkpoint(lambda x: x.exp(), x, use_reentrant=True).sum(), x)


def test_arguments_are_checked():
    x = leaf(1.0)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        checkpoint(lambda x: x, x, scale=2, use_reentrant=True)
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        checkpoint(lambda x: x.exp(), x)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_sequential(use_reentrant):
    steps = [lambda x: x * 2, lambda x: x.exp(), lambda x: x * x, lambda x: x + 1, lambda x: x.sin()]
    x = leaf(0.1, 0.2)
    y = x
    for step in steps:
        y = step(y)
    y.sum().backward()
    expected = x.grad.tolist()
    x.grad = None
    checkpoint_sequential(steps, 2, x, use_reentrant=use_reentrant).sum().backward()
    assert x.grad.tolist() == pytest.approx(expected, rel=1e-6)
