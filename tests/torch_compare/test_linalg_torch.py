"""Linear algebra beside PyTorch's: values, dtypes, strides, gradients, second gradients and error sentences."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import strided


def tall(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def square(*shape):
    return (torch.randn(*shape, dtype=torch.float64) + 3 * torch.eye(shape[-1], dtype=torch.float64)).requires_grad_()


def definite(*shape):
    a = torch.randn(*shape, dtype=torch.float64)
    return (a @ a.mT + torch.eye(shape[-1], dtype=torch.float64)).requires_grad_()


def symmetric(L, a):
    return a + a.mT


# name: (function of (library, *tensors), the tensors)
CASES = {
    "inv": (lambda L, a: L.linalg.inv(a), lambda: [square(2, 4, 4)]),
    "inverse": (lambda L, a: L.inverse(a), lambda: [square(3, 3)]),
    "inv_ex": (lambda L, a: L.linalg.inv_ex(a), lambda: [square(3, 3)]),
    "det": (lambda L, a: L.det(a), lambda: [square(2, 4, 4)]),
    "slogdet": (lambda L, a: L.linalg.slogdet(a).logabsdet, lambda: [square(2, 4, 4)]),
    "logdet": (lambda L, a: L.logdet(a), lambda: [definite(4, 4)]),
    "solve": (lambda L, a, b: L.linalg.solve(a, b), lambda: [square(2, 1, 4, 4), tall(3, 4, 2)]),
    "solve vector": (lambda L, a, b: L.linalg.solve(a, b), lambda: [square(2, 4, 4), tall(2, 4)]),
    "solve right": (lambda L, a, b: L.linalg.solve(a, b, left=False), lambda: [square(4, 4), tall(2, 4)]),
    "solve_triangular": (lambda L, a, b: L.linalg.solve_triangular(a, b, upper=True), lambda: [square(2, 4, 4), tall(4, 2)]),
    "solve_triangular unit": (lambda L, a, b: L.linalg.solve_triangular(a, b, upper=False, left=False, unitriangular=True), lambda: [square(4, 4), tall(2, 4)]),
    "triangular_solve": (lambda L, a, b: L.triangular_solve(b, a, transpose=True).solution, lambda: [square(4, 4), tall(4, 2)]),
    "cholesky": (lambda L, a: L.linalg.cholesky(symmetric(L, a)), lambda: [definite(2, 4, 4)]),
    "cholesky upper": (lambda L, a: L.linalg.cholesky(symmetric(L, a), upper=True), lambda: [definite(4, 4)]),
    "cholesky_solve": (lambda L, a, b: L.cholesky_solve(b, L.linalg.cholesky(symmetric(L, a))), lambda: [definite(4, 4), tall(4, 2)]),
    "cholesky_inverse": (lambda L, a: L.cholesky_inverse(L.linalg.cholesky(symmetric(L, a))), lambda: [definite(4, 4)]),
    "lu": (lambda L, a: L.linalg.lu(a)[1:], lambda: [square(2, 4, 4)]),
    "lu tall": (lambda L, a: L.linalg.lu(a)[1:], lambda: [tall(5, 3)]),
    "lu wide": (lambda L, a: L.linalg.lu(a)[1:], lambda: [tall(3, 5)]),
    "lu_factor": (lambda L, a: L.linalg.lu_factor(a), lambda: [square(2, 4, 4)]),
    "lu_solve": (lambda L, a, b: L.linalg.lu_solve(*L.linalg.lu_factor(a), b), lambda: [square(4, 4), tall(4, 2)]),
    "lu_solve right": (lambda L, a, b: L.linalg.lu_solve(*L.linalg.lu_factor(a), b, left=False, adjoint=True), lambda: [square(4, 4), tall(2, 4)]),
    "qr": (lambda L, a: L.linalg.qr(a), lambda: [tall(2, 5, 3)]),
    "qr wide": (lambda L, a: L.linalg.qr(a), lambda: [tall(3, 5)]),
    "qr complete": (lambda L, a: L.linalg.qr(a, mode="complete"), lambda: [tall(4, 4)]),
    "householder_product": (lambda L, a, t: L.linalg.householder_product(a, t), lambda: [tall(5, 3), tall(2)]),
    "ormqr": (lambda L, a, t, c: L.ormqr(a, t, c), lambda: [tall(4, 3), tall(3), tall(4, 2)]),
    "ormqr right": (lambda L, a, t, c: L.ormqr(a, t, c, left=False, transpose=True), lambda: [tall(4, 3), tall(3), tall(2, 4)]),
    "svd": (lambda L, a: product(L.linalg.svd(a, full_matrices=False)), lambda: [tall(2, 5, 3)]),
    "svd wide": (lambda L, a: product(L.linalg.svd(a)), lambda: [tall(3, 5)]),
    "svdvals": (lambda L, a: L.linalg.svdvals(a), lambda: [tall(3, 5)]),
    "eigh": (lambda L, a: spectrum(L.linalg.eigh(symmetric(L, a))), lambda: [tall(2, 4, 4)]),
    "eigvalsh": (lambda L, a: L.linalg.eigvalsh(symmetric(L, a)), lambda: [tall(4, 4)]),
    "pinv": (lambda L, a: L.linalg.pinv(a), lambda: [tall(2, 5, 3)]),
    "lstsq": (lambda L, a, b: L.linalg.lstsq(a, b).solution, lambda: [tall(5, 3), tall(5, 2)]),
    "matrix_exp": (lambda L, a: L.matrix_exp(a), lambda: [tall(2, 3, 3)]),
    "matrix_power": (lambda L, a: L.linalg.matrix_power(a, 5), lambda: [tall(3, 3)]),
    "matrix_power negative": (lambda L, a: L.linalg.matrix_power(a, -3), lambda: [square(3, 3)]),
    "tensorinv": (lambda L, a: L.linalg.tensorinv(a.reshape(2, 3, 6)), lambda: [square(6, 6)]),
    "tensorsolve": (lambda L, a, b: L.linalg.tensorsolve(a.reshape(2, 3, 6), b), lambda: [square(6, 6), tall(2, 3)]),
    "norm nuc": (lambda L, a: L.linalg.matrix_norm(a, "nuc"), lambda: [tall(2, 5, 3)]),
    "norm 2": (lambda L, a: L.linalg.norm(a, 2), lambda: [tall(5, 3)]),
    "norm 1": (lambda L, a: L.linalg.norm(a, 1, dim=(0, 2), keepdim=True), lambda: [tall(5, 2, 3)]),
    "norm -inf": (lambda L, a: L.linalg.matrix_norm(a, -float("inf")), lambda: [tall(5, 3)]),
    "cond": (lambda L, a: L.linalg.cond(a), lambda: [square(2, 4, 4)]),
    "cond -2": (lambda L, a: L.linalg.cond(a, -2), lambda: [square(4, 4)]),
    "renorm": (lambda L, a: L.renorm(a, 2, 1, 1.0), lambda: [tall(5, 3)]),
    "cov": (lambda L, a: L.cov(a), lambda: [tall(3, 6)]),
    "corrcoef": (lambda L, a: L.corrcoef(a), lambda: [tall(3, 6)]),
    "cross": (lambda L, a, b: L.linalg.cross(a, b), lambda: [tall(2, 1, 3), tall(4, 3)[None]]),
    "vander": (lambda L, a: L.linalg.vander(a, N=4), lambda: [tall(2, 3)]),
    "diagonal": (lambda L, a: L.linalg.diagonal(a, offset=1), lambda: [tall(2, 3, 4)]),
}


def product(factors):
    """Functions of a decomposition that do not depend on the signs of its vectors, with gradients through each part."""
    U, S, Vh = factors
    k = S.shape[-1]
    return (U[..., :k] * S.sin().unsqueeze(-2)) @ Vh[..., :k, :]


def spectrum(factors):
    values, vectors = factors
    return (vectors * values.sin().unsqueeze(-2)) @ vectors.mT


def ours(t):
    return strided.from_numpy(t.detach().contiguous().numpy().copy()).requires_grad_(t.requires_grad)


def scalar(results, weights):
    results = results if isinstance(results, tuple) else (results,)
    return sum((r * w).sum() for r, w in zip(results, weights) if r.requires_grad)


@pytest.mark.parametrize("name", CASES)
def test_values_and_both_gradients(name):
    torch.manual_seed(0)
    function, make = CASES[name]
    operands = make()
    leaves = [t for t in operands if t.is_leaf]
    if len(leaves) != len(operands):
        operands = leaves = [t.detach().requires_grad_() for t in operands]
    copies = [ours(t) for t in operands]
    expected, result = function(torch, *operands), function(strided, *copies)
    for e, r in zip(*[x if isinstance(x, tuple) else (x,) for x in (expected, result)]):
        assert tuple(r.shape) == tuple(e.shape) and str(r.dtype) == str(e.dtype)
        np.testing.assert_allclose(r.detach().numpy(), e.detach().numpy(), rtol=1e-9, atol=1e-9)
    weights = [torch.randn(e.shape, dtype=torch.float64) for e in (expected if isinstance(expected, tuple) else (expected,))]
    first = torch.autograd.grad(scalar(expected, weights), operands, create_graph=True)
    mine = strided.autograd.grad(scalar(result, [ours(w) for w in weights]), copies, create_graph=True)
    for a, b in zip(first, mine):
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-7, atol=1e-7)
    if not any(a.requires_grad for a in first):
        return
    weights = [torch.randn_like(a) for a in first]
    second = torch.autograd.grad(scalar(first, weights), operands, allow_unused=True)
    mine = strided.autograd.grad(scalar(mine, [ours(w) for w in weights]), copies, allow_unused=True)
    for a, b in zip(second, mine):
        a, b = (0 if x is None else x.detach().numpy(force=True) for x in (a, b))
        np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-6)


STRIDES = {
    "inv": lambda L, a: L.linalg.inv(a), "cholesky": lambda L, a: L.linalg.cholesky(a), "eigh": lambda L, a: L.linalg.eigh(a), "qr": lambda L, a: L.linalg.qr(a),
    "svd": lambda L, a: L.linalg.svd(a), "lu": lambda L, a: L.linalg.lu(a), "lu_factor": lambda L, a: L.linalg.lu_factor(a), "solve": lambda L, a: L.linalg.solve(a, a),
    "lstsq": lambda L, a: L.linalg.lstsq(a, a), "solve_triangular": lambda L, a: L.linalg.solve_triangular(a, a, upper=True), "geqrf": lambda L, a: L.geqrf(a),
}  # fmt: skip


@pytest.mark.parametrize("name", STRIDES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (0, 0), (0, 3, 3)])
def test_strides_and_empty_batches(name, shape):
    a = torch.eye(shape[-1]).expand(shape) * 2
    expected, result = STRIDES[name](torch, a), STRIDES[name](strided, ours(a))
    for e, r in zip(*[x if isinstance(x, tuple) else (x,) for x in (expected, result)]):
        assert (tuple(r.shape), str(r.dtype)) == (tuple(e.shape), str(e.dtype))
        assert not e.numel() or tuple(r.stride()) == tuple(e.stride())
        assert not e.numel() or np.abs(r.numpy() - e.numpy()).max() < 1e-6


SINGULAR, DEFINITE = [[1.0, 2.0], [2.0, 4.0]], [[2.0, 0.0], [0.0, 2.0]]
ERRORS = [
    lambda L: L.linalg.inv(L.tensor(SINGULAR)),
    lambda L: L.linalg.inv(L.tensor([DEFINITE, SINGULAR])),
    lambda L: L.linalg.inv(L.zeros(3)),
    lambda L: L.linalg.inv(L.zeros(3, 2)),
    lambda L: L.linalg.inv(L.zeros(3, 3, dtype=L.int64)),
    lambda L: L.linalg.inv(L.zeros(3, 3, dtype=L.float16)),
    lambda L: L.linalg.inv([1]),
    lambda L: L.linalg.det(L.zeros(3, 3, dtype=L.float16)),
    lambda L: L.linalg.solve(L.tensor(SINGULAR), L.tensor(DEFINITE)),
    lambda L: L.linalg.solve(L.zeros(3, 3), L.zeros(2, 2)),
    lambda L: L.linalg.solve(L.zeros(3, 3), L.zeros(3, 3, dtype=L.float64)),
    lambda L: L.linalg.solve_triangular(L.zeros(3, 3), L.zeros(3), upper=True),
    lambda L: L.linalg.cholesky(L.tensor([[1.0, 2.0], [2.0, 1.0]])),
    lambda L: L.linalg.cholesky(L.tensor([DEFINITE, [[float("nan")] * 2] * 2])),
    lambda L: L.cholesky(-L.eye(3)),
    lambda L: L.linalg.lu_factor(L.tensor(SINGULAR)),
    lambda L: L.linalg.lu(L.zeros(2, 2), pivot=False),
    lambda L: L.linalg.svd(L.full((2, 2), float("nan"))),
    lambda L: L.linalg.eigh(L.zeros(2, 2), UPLO="X"),
    lambda L: L.linalg.qr(L.zeros(2, 2), mode="x"),
    lambda L: L.linalg.qr(L.zeros(4, 3, requires_grad=True), mode="r").R.sum().backward(),
    lambda L: L.linalg.qr(L.eye(4)[:, :3].clone().requires_grad_(), mode="complete").R.sum().backward(),
    lambda L: L.linalg.lstsq(L.zeros(3, 2), L.zeros(2, 2)),
    lambda L: L.linalg.matrix_norm(L.zeros(3, 3), 3),
    lambda L: L.linalg.matrix_norm(L.zeros(3, 3), dim=(0, 0)),
    lambda L: L.linalg.norm(L.zeros(3, 3, 3), 2),
    lambda L: L.norm(L.zeros(3, 3), p="x"),
    lambda L: L.linalg.cond(L.zeros(3, 3), "x"),
    lambda L: L.linalg.matrix_power(L.zeros(3, 3), 2.0),
    lambda L: L.linalg.tensorinv(L.zeros(3, 2)),
    lambda L: L.linalg.householder_product(L.zeros(2, 3), L.zeros(2)),
    lambda L: L.ormqr(L.zeros(3, 2), L.zeros(2), L.zeros(2, 2)),
    lambda L: L.cross(L.zeros(2, 2), L.zeros(2, 2)),
    lambda L: L.linalg.cross(L.zeros(2, 2), L.zeros(2, 2)),
    lambda L: L.linalg.pinv(L.zeros(3)),
    lambda L: L.linalg.matrix_rank(L.zeros(3)),
    lambda L: L.vander(L.zeros(2, 2)),
    lambda L: L.linalg.vander(L.zeros(2), N=1),
    lambda L: L.renorm(L.zeros(3, 3), 2, 0, -1.0),
    lambda L: L.cov(L.zeros(3, 3, 3)),
    lambda L: L.cov(L.zeros(3, 3), fweights=L.zeros(2, dtype=L.int64)),
    lambda L: L.lu_unpack(L.zeros(3, 3), L.zeros(3, dtype=L.int32)),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors_start_with_pytorchs_sentence(number):
    with pytest.raises(Exception) as expected:
        ERRORS[number](torch)
    with pytest.raises(Exception) as found:
        ERRORS[number](strided)
    assert str(found.value).startswith(str(expected.value))
    assert type(found.value).__name__ == type(expected.value).__name__


def test_ldl_of_many_symmetric_matrices():
    torch.manual_seed(0)
    for n in (1, 2, 5, 9):
        a = torch.randn(20, n, n, dtype=torch.float64)
        a = a + a.mT
        for e, r in zip(torch.linalg.ldl_factor(a), strided.linalg.ldl_factor(ours(a))):
            np.testing.assert_allclose(r.numpy(), e.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(100, 100), (70, 100), (100, 70), (3, 40, 40)])
def test_lu_in_blocks(shape):
    a = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for e, r in zip(torch.linalg.lu_factor(a), strided.linalg.lu_factor(ours(a))):
        np.testing.assert_allclose(r.numpy(), e.numpy(), rtol=1e-8, atol=1e-8)


def test_printing_of_results():
    a = strided.eye(2) * 2
    assert repr(strided.linalg.slogdet(a)) == repr(torch.linalg.slogdet(torch.eye(2) * 2))
    assert repr(strided.linalg.inv_ex(a)) == repr(torch.linalg.inv_ex(torch.eye(2) * 2))
    assert repr(strided.linalg.lu_factor_ex(a)) == repr(torch.linalg.lu_factor_ex(torch.eye(2) * 2))
