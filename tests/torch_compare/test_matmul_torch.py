"""Products, contractions and attention beside PyTorch's: values, dtypes, strides, gradients, second gradients and error sentences."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import strided


def ours(t):
    """A torch tensor as one of ours, with its strides."""
    if t.dtype == torch.bfloat16:
        x = strided.from_numpy(t.detach().float().numpy().copy()).to(strided.bfloat16)
    else:
        x = strided.from_numpy(t.detach().contiguous().numpy().copy())
    if tuple(x.stride()) != tuple(t.stride()) and t.numel():
        x = strided.empty_strided(tuple(t.shape), tuple(t.stride()), dtype=x.dtype).copy_(x)
    return x.requires_grad_(t.requires_grad)


def values(x):
    return (x.detach().float() if "16" in str(x.dtype) else x.detach()).numpy().astype(np.float64)


def check(theirs, mine, *operands, tolerance=1e-4, second=True):
    copies = [ours(t) for t in operands]
    expected, result = theirs(*operands), mine(*copies)
    assert tuple(result.shape) == tuple(expected.shape) and str(result.dtype) == str(expected.dtype) and tuple(result.stride()) == tuple(expected.stride())
    np.testing.assert_allclose(values(result), values(expected), rtol=tolerance, atol=tolerance)
    if not expected.requires_grad:
        return
    weight = torch.randn_like(expected)
    leaves, my_leaves = ([t for t in side if t.requires_grad] for side in (operands, copies))
    first = torch.autograd.grad((expected * weight).sum(), leaves, create_graph=second)
    my_first = strided.autograd.grad((result * ours(weight)).sum(), my_leaves, create_graph=second)
    for a, b in zip(first, my_first):
        np.testing.assert_allclose(values(b), values(a), rtol=tolerance * 10, atol=tolerance * 10)
    if second and any(g.requires_grad for g in first):
        again = torch.autograd.grad(sum((g * g).sum() for g in first), leaves, allow_unused=True)
        my_again = strided.autograd.grad(sum((g * g).sum() for g in my_first), my_leaves, allow_unused=True)
        for a, b in zip(again, my_again):
            if a is not None:
                np.testing.assert_allclose(values(b), values(a), rtol=tolerance * 100, atol=tolerance * 100)


def leaf(*shape):
    return torch.randn(shape, requires_grad=True)


RANKS = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((2, 2, 3), (3, 4)), ((2, 2, 3), (3,)), ((3,), (2, 3, 4)), ((5, 1, 2, 3), (4, 3, 6)), ((2, 3), (4, 3, 5)),
    ((2, 2, 2, 3), (2, 2, 3, 4)), ((4, 2, 2, 3), (1, 2, 3, 4)), ((2, 0), (0, 3)), ((0, 2), (2, 3)), ((2, 3, 0), (2, 0, 4)), ((0, 2, 3), (3, 4)),
]  # fmt: skip


@pytest.mark.parametrize("a, b", RANKS)
def test_matmul(a, b):
    check(torch.matmul, strided.matmul, leaf(*a), leaf(*b))


def test_named_products():
    turned = lambda *s: torch.randn(*s).t().requires_grad_()
    check(torch.mm, strided.mm, turned(4, 3), turned(5, 4))
    check(torch.bmm, strided.bmm, leaf(2, 3, 4), leaf(2, 4, 5))
    for name, shapes in (("mv", ((3, 4), (4,))), ("dot", ((4,), (4,))), ("vdot", ((4,), (4,))), ("outer", ((4,), (3,))), ("kron", ((2, 3), (4, 1)))):
        check(getattr(torch, name), getattr(strided, name), *(leaf(*s) for s in shapes))
    for a, b in [((3,), (3,)), ((2, 3), (4, 3)), ((2, 3), ()), ((2, 2, 3), (3,))]:
        check(torch.inner, strided.inner, leaf(*a), leaf(*b))
    for a, b, dims in [((2, 3), (3, 4), 1), ((5, 2, 3), (2, 3, 4), 2), ((2,), (3, 4), 0), ((2, 3), (3, 2), ([0, 1], [1, 0]))]:
        check(lambda x, y: torch.tensordot(x, y, dims), lambda x, y: strided.tensordot(x, y, dims), leaf(*a), leaf(*b))
    check(torch.chain_matmul, strided.chain_matmul, leaf(2, 3), leaf(3, 4), leaf(4, 5))


@pytest.mark.parametrize("alpha, beta", [(1, 1), (2, 0.5), (0.5, 0)])
def test_added_inputs(alpha, beta):
    cases = [("addmm", [(2, 4), (4,), (), (2, 1)], [(2, 3), (3, 4)]), ("addbmm", [(2, 4), (4,)], [(5, 2, 3), (5, 3, 4)]), ("baddbmm", [(5, 2, 4), (4,), (5, 1, 1)], [(5, 2, 3), (5, 3, 4)]), ("addmv", [(2,), (1,)], [(2, 3), (3,)]), ("addr", [(2, 3), (3,)], [(2,), (3,)])]  # fmt: skip
    for name, inputs, rest in cases:
        for shape in inputs:
            theirs, mine = (lambda *x, f=getattr(library, name): f(*x, alpha=alpha, beta=beta) for library in (torch, strided))
            check(theirs, mine, leaf(*shape), *(leaf(*s) for s in rest))


@pytest.mark.parametrize("shape", [(2, 3), (5, 2, 3), (3,), (2, 2, 2, 3)])
def test_linear(shape):
    theirs, mine = torch.nn.functional.linear, strided.nn.functional.linear
    check(theirs, mine, leaf(*shape), leaf(4, 3), leaf(4))
    check(theirs, mine, leaf(*shape), leaf(4, 3))
    check(theirs, mine, leaf(*shape), leaf(3))


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float64", "int64", "int32", "int16", "int8", "uint8"])
def test_dtypes(name):
    a, b = (torch.randn(s).mul(4).to(getattr(torch, name)) for s in ((5, 70), (70, 9)))
    check(torch.matmul, strided.matmul, a, b, tolerance=2e-2)
    check(torch.matmul, strided.matmul, a, b[:, 0], tolerance=2e-2)
    check(lambda i, x, y: torch.addmm(i, x, y), lambda i, x, y: strided.addmm(i, x, y), b[0], a, b, tolerance=2e-2)


EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("ij->ji", (2, 3)), ("ij->", (2, 3)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("iij->j", (3, 3, 2)), ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
    ("bhsd,bhSd->bhsS", (2, 3, 4, 5), (2, 3, 6, 5)), ("i,j->ij", (2,), (3,)), ("i,j->ji", (2,), (3,)), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("bij,bjk->kbi", (2, 3, 4), (2, 4, 5)), ("bi,ij->jb", (2, 3), (3, 4)),
    ("a,b,c->abc", (2,), (3,), (4,)), ("ij,j->i", (2, 3), (3,)), ("bthd,bshd->bhts", (2, 3, 4, 5), (2, 6, 4, 5)), ("ij,jk->ik", (2, 1), (3, 4)), ("ij,kl->jl", (2, 3), (4, 5)), ("bik,bjk,bk->bij", (2, 3, 4), (2, 5, 4), (2, 4)),
    ("aBc,Bc->Ba", (2, 3, 4), (3, 4)), ("ii,ij->j", (3, 3), (3, 4)), ("ij->...ij", (2, 3)),
]  # fmt: skip


@pytest.mark.parametrize("equation, shapes", [(e, s) for e, *s in EQUATIONS], ids=[e for e, *_ in EQUATIONS])
def test_einsum(equation, shapes):
    check(lambda *x: torch.einsum(equation, *x), lambda *x: strided.einsum(equation, *x), *(leaf(*s) for s in shapes))


@pytest.mark.parametrize("rows, keys", [(3, 5), (16, 20), (70, 300)])
def test_attention(rows, keys):
    theirs, mine = torch.nn.functional.scaled_dot_product_attention, strided.nn.functional.scaled_dot_product_attention
    allowed = torch.rand(rows, keys) > 0.3
    allowed[0] = False
    masks = [None, allowed, torch.randn(2, 1, rows, keys)]
    for mask, causal in itertools.product(masks, (False, True)):
        operands = [leaf(2, 3, n, 8) for n in (rows, keys, keys)]
        my_mask = None if mask is None else ours(mask)
        check(lambda *x: theirs(*x, mask, is_causal=causal), lambda *x: mine(*x, my_mask, is_causal=causal), *operands, second=False)
    turned = [torch.randn(2, n, 3, 8).transpose(1, 2).detach().requires_grad_() for n in (rows, keys, keys)]
    check(theirs, mine, *turned, second=False)
    check(theirs, mine, leaf(2, rows, 4), leaf(2, keys, 4), leaf(2, keys, 6))


def test_error_sentences():
    def sentence(library, call):
        with pytest.raises(RuntimeError) as caught:
            call(library)
        return str(caught.value).split("\n")[0]

    calls = [
        lambda t: t.ones(2, 3) @ t.ones(4, 5), lambda t: t.ones(2, 3, 4) @ t.ones(5, 6), lambda t: t.ones(2, 3, 4) @ t.ones(5), lambda t: t.ones(4) @ t.ones(2, 5, 6), lambda t: t.ones(3) @ t.ones(4),
        lambda t: t.ones(2, 2) @ t.ones(2, 2, dtype=t.bfloat16), lambda t: t.ones(1, 2, 2) @ t.ones(1, 2, 2, dtype=t.float64), lambda t: t.ones(2, 2) @ t.ones(2, dtype=t.float64), lambda t: t.mm(t.ones(2, 3, 4), t.ones(4, 5)),
        lambda t: t.bmm(t.ones(2, 3, 4), t.ones(3, 4, 5)), lambda t: t.mv(t.ones(3), t.ones(3)), lambda t: t.dot(t.ones(3, 1), t.ones(4)), lambda t: t.outer(t.ones(2, 3), t.ones(3)), lambda t: t.inner(t.ones(2, 3), t.ones(4, 2)),
        lambda t: t.addmm(t.ones(3, 3), t.ones(2, 3), t.ones(3, 5)), lambda t: t.addmm(t.ones(5), t.ones(2, 3), t.ones(3, 5, dtype=t.float64)), lambda t: t.baddbmm(t.ones(2, 3, 5, dtype=t.float64), t.ones(2, 3, 4), t.ones(2, 4, 5)),
        lambda t: t.addbmm(t.ones(3, 5), t.ones(2, 3, 4), t.ones(2, 5, 5)), lambda t: t.addmv(t.ones(2), t.ones(2, 3), t.ones(4)), lambda t: t.nn.functional.linear(t.ones(2, 2, 3), t.ones(4, 5), t.ones(4)),
        lambda t: t.einsum("ij->ii", t.ones(2, 3)), lambda t: t.einsum("ij.->i", t.ones(2, 3)), lambda t: t.einsum("ij,jk", t.ones(2, 3)), lambda t: t.tensordot(t.ones(2, 3), t.ones(3, 5), 5),
    ]  # fmt: skip
    for call in calls:
        assert sentence(strided, call) == sentence(torch, call)


def test_error_against_float64_is_no_larger_than_pytorchs():
    for m, n, k in [(256, 256, 256), (200, 300, 1000), (1, 2000, 1000), (64, 64, 4096)]:
        a, b = torch.randn(m, k), torch.randn(k, n)
        exact = a.double() @ b.double()
        theirs = (a @ b - exact).pow(2).mean().sqrt().item()
        mine = (torch.from_numpy((ours(a) @ ours(b)).numpy()) - exact).pow(2).mean().sqrt().item()
        assert mine <= 1.1 * theirs
