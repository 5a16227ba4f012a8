"""Linear algebra of complex matrices: what defines each factorisation or solution, dtypes, gradients by finite differences, errors. No torch."""
import math

import numpy as np
import pytest

import strided as torch
from strided import linalg
from strided.autograd.gradcheck import gradcheck, gradgradcheck

RNG = np.random.default_rng(11)
C, R = torch.complex128, torch.float64


def numbers(*shape):
    return RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)


def make(*shape):
    return torch.from_numpy(numbers(*shape))


def leaf(*shape):
    return make(*shape).requires_grad_()


def close(a, b, tolerance=1e-11):
    a, b = (t.detach().numpy() if isinstance(t, torch.Tensor) else np.asarray(t) for t in (a, b))
    return a.shape == b.shape and np.allclose(a, b, tolerance, tolerance)


def hermitian(a):
    return a + a.mH


def definite(a):
    return a @ a.mH + torch.eye(a.shape[-1], dtype=a.dtype)


def identity(n, *batch):
    return np.broadcast_to(np.eye(n), (*batch, n, n))


SQUARE = [(1, 1), (4, 4), (2, 3, 3), (2, 1, 3, 3), (70, 70)]
ANY = [(4, 4), (5, 3), (3, 5), (2, 5, 3), (2, 3, 5)]


@pytest.mark.parametrize("shape", SQUARE)
def test_solutions(shape):
    a, b = make(*shape), make(*shape[:-1], 2)
    n, batch = shape[-1], shape[:-2]
    assert close(linalg.inv(a) @ a, identity(n, *batch)) and linalg.inv(a).dtype is C
    assert close(a @ linalg.solve(a, b), b) and close(linalg.solve(a, b.mH, left=False) @ a, b.mH)
    assert close(a @ linalg.solve(a, b[..., 0]).unsqueeze(-1), b[..., :1])
    up = a.triu()
    if n < 10:
        assert close(up @ linalg.solve_triangular(up, b, upper=True), b)
        assert close(torch.triangular_solve(b, up, transpose=True).solution, np.linalg.solve(up.mT.numpy(), b.numpy()))
    P, L, U = linalg.lu(a)
    assert P.dtype is C and close(P @ L @ U, a) and close(L.diagonal(0, -2, -1), np.ones((*batch, n))) and not L.triu(1).any() and not U.tril(-1).any()
    packed, pivots = linalg.lu_factor(a)
    assert close(a @ linalg.lu_solve(packed, pivots, b), b) and close(a.mH @ linalg.lu_solve(packed, pivots, b, adjoint=True), b)
    assert close(linalg.lu_solve(packed, pivots, b.mT, left=False) @ a, b.mT) and close(linalg.lu_solve(packed, pivots, b.mT, left=False, adjoint=True) @ a.mH, b.mT)


@pytest.mark.parametrize("shape", SQUARE)
def test_determinants(shape):
    a = make(*shape)
    want = np.linalg.det(a.numpy())
    assert close(linalg.det(a), want) and linalg.det(a).dtype is C
    sign, log = linalg.slogdet(a)
    assert sign.dtype is C and log.dtype is R and close(sign.abs(), np.ones(shape[:-2])) and close(sign * log.exp(), want)
    assert close(torch.logdet(a).exp(), want)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", SQUARE)
def test_cholesky(shape, upper):
    a = definite(make(*shape))
    L = linalg.cholesky(a, upper=upper)
    assert close(L.mH @ L if upper else L @ L.mH, a) and not (L.tril(-1) if upper else L.triu(1)).any()
    triangle = a.triu() if upper else a.tril()
    assert close(linalg.cholesky(triangle, upper=upper), L)
    b = make(*shape[:-1], 2)
    assert close(a @ torch.cholesky_solve(b, L, upper), b) and close(torch.cholesky_inverse(L, upper) @ a, identity(shape[-1], *shape[:-2]), 1e-8)
    broken = a.clone()
    broken[..., 0, 0] = -1
    assert linalg.cholesky_ex(broken, upper=upper).info.flatten().tolist() == [1] * math.prod(shape[:-2])


@pytest.mark.parametrize("shape", ANY)
def test_qr(shape):
    a = make(*shape)
    (m, n), k = shape[-2:], min(shape[-2:])
    Q, R_ = linalg.qr(a)
    assert close(Q @ R_, a) and close(Q.mH @ Q, identity(k, *shape[:-2])) and not R_.tril(-1).any()
    Q, R_ = linalg.qr(a, "complete")
    assert Q.shape[-2:] == (m, m) and close(Q @ R_, a) and close(linalg.qr(a, "r").R, linalg.qr(a).R)
    packed, tau = torch.geqrf(a)
    if m >= n:
        assert close(linalg.householder_product(packed, tau), linalg.qr(a).Q)
    x = make(*shape[:-2], m, 2)
    assert close(torch.ormqr(packed, tau, x), Q @ x) and close(torch.ormqr(packed, tau, x, transpose=True), Q.mH @ x)
    assert close(torch.ormqr(packed, tau, x.mH, left=False), x.mH @ Q) and close(torch.ormqr(packed, tau, x.mH, left=False, transpose=True), x.mH @ Q.mH)


@pytest.mark.parametrize("shape", ANY)
def test_singular_values(shape):
    a = make(*shape)
    for full in (True, False):
        U, S, Vh = linalg.svd(a, full_matrices=full)
        k = S.shape[-1]
        assert S.dtype is R and close(U[..., :k] * S.unsqueeze(-2) @ Vh[..., :k, :], a)
        assert close(U.mH @ U, identity(U.shape[-1], *shape[:-2])) and close(Vh @ Vh.mH, identity(Vh.shape[-2], *shape[:-2]))
    U, S, V = torch.svd(a)
    assert close(U * S.unsqueeze(-2) @ V.mH, a) and close(linalg.svdvals(a), S)
    P = linalg.pinv(a)
    assert close(a @ P @ a, a) and close(P @ a @ P, P) and close((a @ P).mH, a @ P) and close((P @ a).mH, P @ a)
    assert linalg.matrix_rank(a).flatten().tolist() == [min(shape[-2:])] * math.prod(shape[:-2])
    assert close(linalg.cond(a), (S[..., 0] / S[..., -1])) and close(linalg.matrix_norm(a, "nuc"), S.sum(-1)) and close(linalg.matrix_norm(a, 2), S[..., 0])
    assert close(linalg.matrix_norm(a), np.linalg.norm(a.numpy(), axis=(-2, -1))) and linalg.matrix_norm(a, 1).dtype is R


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigenvalues_of_hermitian_matrices(uplo):
    for shape in ((4, 4), (2, 3, 3)):
        a = hermitian(make(*shape))
        L, V = linalg.eigh(a.tril() if uplo == "L" else a.triu(), uplo)
        assert L.dtype is R and close(a @ V, V * L.unsqueeze(-2)) and close(V.mH @ V, identity(shape[-1], *shape[:-2]))
        assert close(linalg.eigvalsh(a, uplo), L)
        inverse = linalg.pinv(a, hermitian=True)
        assert close(inverse @ a, identity(shape[-1], *shape[:-2])) and linalg.matrix_rank(a, hermitian=True).flatten().tolist() == [shape[-1]] * math.prod(shape[:-2])


def test_eigenvalues_of_general_matrices():
    for a in (make(4, 4), make(2, 3, 3), make(4, 4).real.contiguous(), torch.tensor([[0.0, 1.0], [-1.0, 0.0]]), torch.diag(torch.arange(3.0))):
        L, V = linalg.eig(a)
        assert L.dtype is a.dtype.to_complex() and V.dtype is L.dtype
        tolerance = 1e-11 if a.dtype.itemsize > 4 else 1e-5
        assert close(a.to(V.dtype) @ V, V * L.unsqueeze(-2), tolerance) and close(linalg.vector_norm(V, dim=-2), np.ones(L.shape), tolerance)
        assert close(sorted(linalg.eigvals(a).flatten().tolist(), key=lambda z: (z.real, z.imag)), sorted(L.flatten().tolist(), key=lambda z: (z.real, z.imag)), tolerance)
    assert linalg.eig(torch.empty(0, 0)).eigenvalues.shape == (0,) and linalg.eig(torch.empty(2, 3, 3, device="meta")).eigenvectors.shape == (2, 3, 3)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("is_hermitian", [False, True])
def test_ldl(n, is_hermitian):
    for hollow in (False, True):  # zeros on the diagonal ask for blocks of size 2
        a = make(3, n, n)
        a = a + (a.mH if is_hermitian else a.mT)
        if hollow and n > 1:
            a.diagonal(0, -2, -1).zero_()
        packed, pivots, info = linalg.ldl_factor_ex(a, hermitian=is_hermitian)
        b = make(3, n, 2)
        assert not info.any() and close(a @ linalg.ldl_solve(packed, pivots, b, hermitian=is_hermitian), b, 1e-9)


def test_least_squares():
    for m, n in ((6, 3), (3, 6), (4, 4)):
        a, b = make(2, m, n), make(2, m, 2)
        for driver in ("gels", "gelsy", "gelsd", "gelss"):
            found = linalg.lstsq(a, b, driver=driver)
            assert close(found.solution, linalg.pinv(a) @ b)
            if m > n and driver != "gelsy":
                assert found.residuals.dtype is R and close(found.residuals, ((a @ found.solution - b).abs() ** 2).sum(-2))
            if driver in ("gelsd", "gelss"):
                assert close(found.singular_values, linalg.svdvals(a))


def test_powers_and_the_exponential():
    a = make(2, 3, 3)
    assert close(linalg.matrix_power(a, 3), a @ a @ a) and close(linalg.matrix_power(a, -2) @ a @ a, identity(3, 2), 1e-9)
    L, V = linalg.eig(a)
    assert close(linalg.matrix_exp(a), (V * L.exp().unsqueeze(-2)) @ linalg.inv(V))
    assert close(linalg.matrix_exp(torch.tensor([[math.pi * 1j]])), [[-1]], 1e-6)
    T = make(2, 3, 2, 3)
    assert close(torch.tensordot(linalg.tensorinv(T), T, 2).reshape(6, 6), np.eye(6))
    B = make(2, 3)
    assert close(torch.tensordot(T, linalg.tensorsolve(T, B), 2), B)


def test_statistics_and_products():
    x = numbers(3, 8)
    assert close(torch.cov(torch.from_numpy(x)), np.cov(x)) and close(torch.corrcoef(torch.from_numpy(x)), np.corrcoef(x))
    a, b = numbers(2, 3), numbers(2, 3)
    assert close(linalg.cross(torch.from_numpy(a), torch.from_numpy(b)), np.cross(a, b))
    assert close(linalg.vander(torch.from_numpy(a[0])), np.vander(a[0], increasing=True))


GRADIENTS = {
    "inv": (linalg.inv, [(3, 3)]),
    "inv of a batch": (linalg.inv, [(2, 2, 2)]),
    "det": (linalg.det, [(3, 3)]),
    "slogdet": (lambda a: tuple(linalg.slogdet(a)), [(3, 3)]),
    "logdet": (torch.logdet, [(3, 3)]),
    "solve": (linalg.solve, [(3, 3), (3, 2)]),
    "solve right": (lambda a, b: linalg.solve(a, b, left=False), [(2, 3, 3), (2, 3)]),
    "solve a vector": (linalg.solve, [(2, 3, 3), (2, 3)]),
    "solve_triangular": (lambda a, b: linalg.solve_triangular(a, b, upper=True), [(3, 3), (3, 2)]),
    "solve_triangular right": (lambda a, b: linalg.solve_triangular(a, b, upper=False, left=False, unitriangular=True), [(3, 3), (2, 3)]),
    "triangular_solve": (lambda a, b: torch.triangular_solve(b, a, transpose=True).solution, [(3, 3), (3, 2)]),
    "cholesky": (lambda a: linalg.cholesky(definite(a)), [(3, 3)]),
    "cholesky upper": (lambda a: linalg.cholesky(definite(a), upper=True), [(2, 2, 2)]),
    "cholesky_solve": (lambda b, a: torch.cholesky_solve(b, a.tril() + 2 * torch.eye(3)), [(3, 2), (3, 3)]),
    "cholesky_inverse": (lambda a: torch.cholesky_inverse(a.triu() + 2 * torch.eye(3), True), [(3, 3)]),
    "qr": (lambda a: tuple(linalg.qr(a)), [(3, 3)]),
    "qr tall": (lambda a: tuple(linalg.qr(a)), [(4, 2)]),
    "qr wide": (lambda a: tuple(linalg.qr(a)), [(2, 4)]),
    "householder_product": (linalg.householder_product, [(4, 2), (2,)]),
    "ormqr": (lambda a, t, x: torch.ormqr(a, t, x, transpose=True), [(4, 2), (2,), (4, 3)]),
    "lu": (lambda a: tuple(linalg.lu(a))[1:], [(3, 3)]),
    "lu tall": (lambda a: tuple(linalg.lu(a))[1:], [(4, 2)]),
    "lu wide": (lambda a: linalg.lu_factor(a).LU, [(2, 4)]),
    "lu_solve": (lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b, left=False, adjoint=True), [(3, 3), (2, 3)]),
    "svdvals": (linalg.svdvals, [(3, 4)]),
    "svd": (lambda a: (lambda U, S, Vh: (S, U.abs(), Vh.abs(), U @ Vh))(*linalg.svd(a, full_matrices=False)), [(3, 3)]),
    "svd tall": (lambda a: (lambda U, S, Vh: (S, U @ Vh, U.abs()))(*linalg.svd(a, full_matrices=False)), [(4, 2)]),
    "svd wide": (lambda a: (lambda U, S, Vh: (S, U @ Vh, Vh.abs()))(*linalg.svd(a, full_matrices=False)), [(2, 4)]),
    "eigh": (lambda a: (lambda L, V: (L, V.abs()))(*linalg.eigh(hermitian(a))), [(3, 3)]),
    "eigvalsh": (lambda a: linalg.eigvalsh(hermitian(a), "U"), [(2, 2, 2)]),
    "eig": (lambda a: (lambda L, V: (L, V.abs()))(*linalg.eig(a)), [(3, 3)]),
    "eig, eigenvectors": (lambda a: linalg.eig(a).eigenvectors.abs(), [(3, 3)]),
    "eigvals": (linalg.eigvals, [(2, 3, 3)]),
    "pinv": (linalg.pinv, [(4, 2)]),
    "pinv wide": (linalg.pinv, [(2, 4)]),
    "pinv hermitian": (lambda a: linalg.pinv(hermitian(a), hermitian=True), [(3, 3)]),
    "lstsq": (lambda a, b: tuple(linalg.lstsq(a, b, driver="gels"))[:2], [(4, 2), (4, 3)]),
    "lstsq of a vector": (lambda a, b: linalg.lstsq(a, b).solution, [(3, 2), (3,)]),
    "matrix_exp": (linalg.matrix_exp, [(2, 3, 3)]),
    "matrix_power": (lambda a: linalg.matrix_power(a, -2), [(3, 3)]),
    "matrix_norm": (lambda a: (linalg.matrix_norm(a), linalg.matrix_norm(a, "nuc"), linalg.matrix_norm(a, 2), linalg.matrix_norm(a, math.inf)), [(3, 2)]),
    "cond": (lambda a: (linalg.cond(a), linalg.cond(a, "fro")), [(3, 3)]),
    "cross": (linalg.cross, [(2, 3), (2, 3)]),
    "cov": (torch.cov, [(2, 4)]),
    "tensorsolve": (linalg.tensorsolve, [(2, 2, 4), (2, 2)]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    function, shapes = GRADIENTS[name]
    assert gradcheck(function, tuple(leaf(*shape) for shape in shapes))


@pytest.mark.parametrize("name", ["inv", "det", "slogdet", "solve", "cholesky", "qr", "lu", "svd", "eigh", "eig", "pinv", "matrix_exp"])
def test_gradients_are_differentiable_again(name):
    function, shapes = GRADIENTS[name]
    assert gradgradcheck(function, tuple(leaf(*shape) for shape in shapes))


def test_gradients_of_real_matrices_with_complex_eigenvalues():
    a = torch.tensor([[0.3, 1.0, 0.0], [-1.0, 0.2, 0.5], [0.1, 0.0, 0.7]], dtype=R, requires_grad=True)
    assert gradcheck(linalg.eigvals, (a,)) and gradcheck(lambda x: linalg.eig(x).eigenvectors.abs(), (a,))
    linalg.eigvals(a).abs().sum().backward()
    assert a.grad.dtype is R


def test_a_singular_determinant_has_a_gradient():
    a = torch.tensor([[1 + 1j, 2j], [2 + 2j, 4j]], dtype=C, requires_grad=True)
    linalg.det(a).real.backward()
    assert close(a.grad, np.conj([[4j, -2 - 2j], [-2j, 1 + 1j]]))


def test_losses_that_depend_on_a_phase_are_refused():
    for call, words in (
        (lambda a: linalg.eigh(hermitian(a)).eigenvectors.imag.sum(), "linalg_eigh_backward: The eigenvectors in the complex case are specified up to multiplication by e"),
        (lambda a: linalg.svd(a, full_matrices=False).U.imag.sum(), "svd_backward: The singular vectors in the complex case are specified up to multiplication by e"),
        (lambda a: linalg.eig(a).eigenvectors.imag.sum(), "linalg_eig_backward: The eigenvectors in the complex case are specified up to multiplication by e"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call(leaf(3, 3)).backward()


def test_errors():
    with pytest.raises(RuntimeError, match="torch.linalg.eig: input tensor should not contain infs or NaNs"):
        linalg.eig(torch.full((2, 2), math.nan))
    with pytest.raises(RuntimeError, match="linalg.eig: A must be batches of square matrices, but they are 2 by 3 matrices"):
        linalg.eig(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="same dtype"):
        linalg.solve(make(2, 2), make(2, 2).real.contiguous())
    with pytest.raises(linalg.LinAlgError, match="singular"):
        linalg.inv(torch.zeros(2, 2, dtype=C))
