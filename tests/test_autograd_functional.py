"""Derivatives as functions, and the gradient checker."""

from __future__ import annotations

import pytest

import strided as torch
from strided.autograd import gradcheck, gradgradcheck
from strided.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp
from strided.autograd.gradcheck import GradcheckError


def tensor(*values):
    return torch.tensor(list(values), dtype=torch.float64)


def test_jacobian_of_one_and_several():
    x = tensor(1.0, 2.0)
    assert jacobian(lambda x: x * x, x).tolist() == [[2, 0], [0, 4]]
    y = tensor(3.0)
    (xx, xy), (yx, yy) = jacobian(lambda x, y: (x * y, y * y), (x, y))
    assert xx.tolist() == [[3, 0], [0, 3]] and xy.tolist() == [[1], [2]] and yx.tolist() == [[0, 0]] and yy.tolist() == [[6]]
    assert jacobian(lambda x: x.sum(), x).tolist() == [1, 1]
    assert jacobian(lambda x: (x * x).reshape(2, 1), x).shape == (2, 1, 2)


def test_jacobian_with_graph():
    x = tensor(1.0, 2.0).requires_grad_()
    j = jacobian(lambda x: x * x * x, x, create_graph=True)
    j.sum().backward()
    assert x.grad.tolist() == [6, 12]


def test_hessian():
    x, y = tensor(1.0, 2.0), tensor(3.0)
    assert hessian(lambda x: (x * x * x).sum(), x).tolist() == [[6, 0], [0, 12]]
    (xx, xy), (yx, yy) = hessian(lambda x, y: (x * x * y).sum(), (x, y))
    assert xx.tolist() == [[6, 0], [0, 6]] and xy.tolist() == [[2], [4]] and yx.tolist() == [[2, 4]] and yy.tolist() == [[0]]
    with pytest.raises(RuntimeError, match="The Tensor returned by the function given to hessian should contain a single element"):
        hessian(lambda x: x, x)


def test_products():
    x, v = tensor(1.0, 2.0), tensor(1.0, 10.0)
    out, product = vjp(lambda x: x * x, x, v)
    assert out.tolist() == [1, 4] and product.tolist() == [2, 40] and not product.requires_grad
    out, product = jvp(lambda x: x * x.sum(), x, v)
    assert out.tolist() == [3, 6] and product.tolist() == [1 * 3 + 11, 10 * 3 + 22]
    f = lambda x: (x * x * x).sum() + x[0] * x[1]
    assert hvp(f, x, v)[1].tolist() == [6 + 10, 1 + 120] and vhp(f, x, v)[1].tolist() == [16, 121]
    assert vjp(lambda x: x.sum(), x)[1].tolist() == [1, 1]


def test_products_check_their_vectors():
    x = tensor(1.0, 2.0)
    with pytest.raises(RuntimeError, match="The vector v can only be None if the user-provided function returns a single Tensor with a single element."):
        vjp(lambda x: x, x)
    with pytest.raises(RuntimeError, match=r"v has invalid size: should be torch.Size\(\[2\]\) but got torch.Size\(\[3\]\)."):
        jvp(lambda x: x, x, tensor(1.0, 2.0, 3.0))
    with pytest.raises(RuntimeError, match="independent of input 1. This is not allowed in strict mode."):
        vjp(lambda x, y: x.sum(), (x, x.clone()), strict=True)
    assert vjp(lambda x, y: x.sum(), (x, x.clone()))[1][1].tolist() == [0, 0]


def test_gradcheck_passes_what_is_right():
    x = torch.linspace(0.2, 1.4, 6, dtype=torch.float64).reshape(2, 3).requires_grad_()
    w = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(3, 2).requires_grad_()
    assert gradcheck(lambda x, w: (x @ w).tanh().exp(), (x, w))
    assert gradgradcheck(lambda x, w: ((x @ w).tanh() * 2).sum(1), (x, w))


def test_gradgradcheck_with_gradients_of_any_strides():
    seen = []

    class Seen(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            seen.append(g.is_contiguous())
            return g * 1

    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    for strided_seeds in (False, True):
        seen.clear()
        assert gradgradcheck(Seen.apply, (x,), gen_non_contig_grad_outputs=strided_seeds, check_undefined_grad=False)
        assert all(seen) is not strided_seeds


def test_gradcheck_refuses_what_it_would_not_check():
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    for refused, error in (
        (lambda: gradcheck(torch.exp, (x,), check_backward_ad=False), ValueError),
        (lambda: gradcheck(torch.exp, (x,), check_forward_ad=True), NotImplementedError),
        (lambda: gradgradcheck(torch.exp, (x,), check_rev_over_rev=False), ValueError),
        (lambda: gradgradcheck(torch.exp, (x,), check_fwd_over_rev=True), NotImplementedError),
    ):
        with pytest.raises(error):
            refused()


def test_gradcheck_finds_what_is_wrong():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0] * 2.01

    x = tensor(1.0, 2.0).requires_grad_()
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(Wrong.apply, (x,))
    assert gradcheck(Wrong.apply, (x,), raise_exception=False) is False
    with pytest.raises(ValueError, match="gradcheck expects at least one input tensor to require gradient"):
        gradcheck(lambda x: x, (tensor(1.0),))
