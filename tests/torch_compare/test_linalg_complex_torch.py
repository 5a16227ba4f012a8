"""Linear algebra of complex matrices beside PyTorch: values, dtypes, strides, gradients and second gradients where a loss is well defined, errors."""
import numpy as np
import pytest

import strided as st

torch = pytest.importorskip("torch")


def numbers(*shape, seed=0, dtype="complex128"):
    rng = np.random.default_rng(seed + sum(shape))
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else a).astype(dtype)


def agree(want, have, tolerance=1e-9, strides=True):
    assert str(want.dtype) == str(have.dtype) and tuple(want.shape) == tuple(have.shape)
    if strides:
        assert want.stride() == have.stride()
    a, b = want.detach().resolve_conj().numpy(), have.detach().numpy()
    if a.size:
        assert np.abs(a - b).max() <= tolerance * max(1.0, np.abs(a).max())


def flat(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


hermitian = lambda a: a + a.mH
positive = lambda L, a: a @ a.mH + L.eye(a.shape[-1], dtype=a.dtype)
kept = lambda values, *rest: (values, *(abs(r) for r in rest))  # what no phase changes

# name: (call of library and tensors, shapes)
CALLS = {
    "inv": (lambda L, a: L.linalg.inv(a), [(2, 3, 3)]),
    "det": (lambda L, a: L.linalg.det(a), [(2, 3, 3)]),
    "slogdet": (lambda L, a: L.linalg.slogdet(a), [(2, 3, 3)]),
    "logdet": (lambda L, a: L.logdet(a), [(3, 3)]),
    "solve": (lambda L, a, b: L.linalg.solve(a, b), [(2, 3, 3), (2, 3, 2)]),
    "solve right": (lambda L, a, b: L.linalg.solve(a, b, left=False), [(3, 3), (2, 2, 3)]),
    "solve vector": (lambda L, a, b: L.linalg.solve(a, b), [(3, 3), (3,)]),
    "solve_triangular": (lambda L, a, b: L.linalg.solve_triangular(a, b, upper=True), [(3, 3), (3, 2)]),
    "triangular_solve": (lambda L, a, b: L.triangular_solve(b, a, transpose=True).solution, [(3, 3), (3, 2)]),
    "cholesky": (lambda L, a: L.linalg.cholesky(positive(L, a)), [(2, 3, 3)]),
    "cholesky upper": (lambda L, a: L.linalg.cholesky(positive(L, a), upper=True), [(3, 3)]),
    "cholesky_solve": (lambda L, a, b: L.cholesky_solve(b, a.tril() + 3 * L.eye(3)), [(3, 3), (3, 2)]),
    "cholesky_inverse": (lambda L, a: L.cholesky_inverse(L.linalg.cholesky(positive(L, a), upper=True), upper=True), [(3, 3)]),
    "qr": (lambda L, a: L.linalg.qr(a), [(4, 3)]),
    "qr wide": (lambda L, a: L.linalg.qr(a), [(3, 4)]),
    "lu": (lambda L, a: L.linalg.lu(a)[1:], [(2, 4, 4)]),
    "lu tall": (lambda L, a: L.linalg.lu(a)[1:], [(4, 3)]),
    "lu_factor": (lambda L, a: L.linalg.lu_factor(a)[0], [(3, 4)]),
    "lu_solve": (lambda L, a, b: L.linalg.lu_solve(*L.linalg.lu_factor(a), b, left=False, adjoint=True), [(3, 3), (2, 3)]),
    "svdvals": (lambda L, a: L.linalg.svdvals(a), [(2, 3, 4)]),
    "svd": (lambda L, a: (lambda U, S, V: (S, abs(U), abs(V), U @ V))(*L.linalg.svd(a, full_matrices=False)), [(4, 3)]),
    "eigh": (lambda L, a: kept(*L.linalg.eigh(hermitian(a))), [(2, 3, 3)]),
    "eigh of one triangle": (lambda L, a: kept(*L.linalg.eigh(a, "U")), [(3, 3)]),
    "eigvalsh": (lambda L, a: L.linalg.eigvalsh(a), [(3, 3)]),
    "pinv": (lambda L, a: L.linalg.pinv(a), [(4, 3)]),
    "pinv wide": (lambda L, a: L.linalg.pinv(a), [(3, 4)]),
    "lstsq": (lambda L, a, b: L.linalg.lstsq(a, b, driver="gelsd").solution, [(4, 3), (4, 2)]),
    "matrix_exp": (lambda L, a: L.linalg.matrix_exp(a), [(2, 3, 3)]),
    "matrix_power": (lambda L, a: L.linalg.matrix_power(a, 3), [(3, 3)]),
    "matrix_norm": (lambda L, a: (L.linalg.matrix_norm(a), L.linalg.matrix_norm(a, "nuc"), L.linalg.matrix_norm(a, 1)), [(2, 3, 4)]),
    "cond": (lambda L, a: L.linalg.cond(a), [(3, 3)]),
    "cross": (lambda L, a, b: L.linalg.cross(a, b), [(2, 3), (2, 3)]),
    "cov": (lambda L, a: L.cov(a), [(3, 5)]),
    "corrcoef": (lambda L, a: L.corrcoef(a), [(3, 5)]),
    "vecdot": (lambda L, a, b: L.linalg.vecdot(a, b), [(2, 3), (2, 3)]),
    "vdot": (lambda L, a, b: L.vdot(a, b), [(4,), (4,)]),
    "matmul": (lambda L, a, b: a @ b, [(2, 3, 4), (4, 5)]),
    "addmm": (lambda L, a, b, c: L.addmm(c, a, b, beta=1 + 2j, alpha=0.5j), [(3, 4), (4, 5), (3, 5)]),
    "einsum": (lambda L, a, b: L.einsum("bij,kj->bik", a, b), [(2, 3, 4), (5, 4)]),
    "householder_product": (lambda L, a, t: L.linalg.householder_product(a, t), [(4, 3), (3,)]),
}
FRAGILE = {"cov", "corrcoef", "householder_product", "lstsq"}  # values and first gradients


def run(L, call, tensors, weights, second):
    results = flat(call(L, *tensors))
    total = 0
    for r, w in zip(results, weights):
        parts = L.view_as_real(r.resolve_conj()) if r.dtype.is_complex else r
        total = total + (parts * w).sum()
    first = L.autograd.grad(total, tensors, create_graph=second, allow_unused=True)
    again = []
    if second:
        total = 0
        for g in first:
            total = total + (g.abs() ** 2).sum()
        again = [g for g in L.autograd.grad(total, tensors, allow_unused=True) if g is not None]
    return results, list(first), list(again)


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients(name):
    call, shapes = CALLS[name]
    arrays = [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]
    theirs, mine = [torch.from_numpy(a.copy()).requires_grad_() for a in arrays], [st.from_numpy(a.copy()).requires_grad_() for a in arrays]
    outs = flat(call(torch, *theirs))
    weights = [numbers(*(*r.shape, 2) if r.dtype.is_complex else r.shape, seed=7, dtype="float64") for r in outs]
    second = name not in FRAGILE
    want = run(torch, call, theirs, [torch.from_numpy(np.array(w)) for w in weights], second)
    have = run(st, call, mine, [st.from_numpy(np.array(w)) for w in weights], second)
    for place, (a, b) in enumerate(zip(want, have)):
        for x, y in zip(a, b):
            agree(x, y, 1e-6 if place == 2 else 1e-9, strides=False)


def test_layouts_and_dtypes():
    for dtype in ("complex64", "complex128"):
        a, b = numbers(2, 4, 3, dtype=dtype), numbers(2, 3, 3, dtype=dtype)
        x, y, s, t = torch.from_numpy(a), torch.from_numpy(b), st.from_numpy(a), st.from_numpy(b)
        for call in (
            lambda L, x, y: L.linalg.svd(x), lambda L, x, y: L.linalg.qr(x), lambda L, x, y: L.linalg.eigh(y), lambda L, x, y: L.linalg.eig(y), lambda L, x, y: L.linalg.lu_factor_ex(y),
            lambda L, x, y: L.linalg.inv_ex(y), lambda L, x, y: L.linalg.slogdet(y), lambda L, x, y: tuple(L.linalg.lstsq(x, x, driver="gelsd"))[1:], lambda L, x, y: tuple(L.linalg.lstsq(x, x))[1:],
            lambda L, x, y: L.linalg.ldl_factor_ex(y), lambda L, x, y: L.geqrf(x), lambda L, x, y: L.linalg.eigvals(y.real), lambda L, x, y: L.linalg.eig(y.real),
        ):  # fmt: skip
            want, have = flat(call(torch, x, y)), flat(call(st, s, t))
            assert [(str(w.dtype), tuple(w.shape)) for w in want] == [(str(h.dtype), tuple(h.shape)) for h in have]
            assert [w.stride() for w in want if w.numel() and w.ndim > 1] == [h.stride() for h in have if h.numel() and h.ndim > 1]


@pytest.mark.parametrize("hermitian_form", [False, True])
def test_ldl(hermitian_form):
    for n, seed in ((1, 0), (2, 1), (3, 2), (6, 3), (6, 4)):
        a = numbers(n, n, seed=seed)
        a = a + (a.conj().T if hermitian_form else a.T)
        if seed == 4:
            np.fill_diagonal(a, 0)
        want, have = torch.linalg.ldl_factor_ex(torch.from_numpy(a), hermitian=hermitian_form), st.linalg.ldl_factor_ex(st.from_numpy(a.copy()), hermitian=hermitian_form)
        assert want.pivots.tolist() == have.pivots.tolist()
        assert np.allclose(np.tril(want.LD.numpy()), np.tril(have.LD.numpy()))
        b = numbers(n, 2, seed=5)
        solve = lambda L, f, b: L.linalg.ldl_solve(f.LD, f.pivots, b, hermitian=hermitian_form)
        agree(solve(torch, want, torch.from_numpy(b)), solve(st, have, st.from_numpy(b)), 1e-8)


def test_pivots_are_chosen_as_lapack_does():
    a = np.array([[3 + 3j, 1], [5, 2j]])  # |3 + 3i| < 5, but |re| + |im| = 6
    want, have = torch.linalg.lu_factor(torch.from_numpy(a)), st.linalg.lu_factor(st.from_numpy(a.copy()))
    assert want.pivots.tolist() == have.pivots.tolist()


def test_eigenvalues_of_general_matrices():
    key = lambda z: (round(z.real, 6), round(z.imag, 6))
    for a in (numbers(4, 4), numbers(4, 4, dtype="float64"), np.diag([1.0, 2.0]), np.array([[0.0, 1.0], [-1.0, 0.0]])):
        want, have = torch.linalg.eig(torch.from_numpy(a)), st.linalg.eig(st.from_numpy(a.copy()))
        assert np.allclose(sorted(want.eigenvalues.tolist(), key=key), sorted(have.eigenvalues.tolist(), key=key))
        x, y = torch.from_numpy(a).requires_grad_(), st.from_numpy(a.copy()).requires_grad_()
        if len(a) == 4:
            for L, t in ((torch, x), (st, y)):
                values, vectors = L.linalg.eig(t)
                (values.abs().sum() + (vectors.abs() ** 3).sum()).backward()
            agree(x.grad, y.grad, strides=False)


@pytest.mark.parametrize("call", [
    lambda L: L.linalg.eig(L.ones(2, 3)), lambda L: L.linalg.eig(L.ones(2)), lambda L: L.linalg.eig(L.ones(2, 2, dtype=L.int64)),
    lambda L: L.linalg.eig(L.full((2, 2), float("inf"))), lambda L: L.linalg.inv(L.zeros(2, 2, dtype=L.complex64)),
    lambda L: L.linalg.cholesky(-L.eye(2, dtype=L.complex64)), lambda L: L.linalg.solve(L.eye(2, dtype=L.complex64), L.eye(2)),
    lambda L: L.linalg.eigh(hermitian(L.ones(3, 3, dtype=L.complex128) * L.arange(9).reshape(3, 3) * (1 + 1j)).requires_grad_()).eigenvectors.imag.sum().backward(),
])  # fmt: skip
def test_errors(call):
    with pytest.raises(Exception) as want:
        call(torch)
    with pytest.raises(Exception) as have:
        call(st)
    assert isinstance(have.value, type(want.value)) or type(have.value).__name__ == type(want.value).__name__
    assert str(have.value).splitlines()[0].startswith(str(want.value).splitlines()[0][:60])
