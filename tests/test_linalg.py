"""Linear algebra: values worked out by hand, identities of factorisations, gradients, errors, empty batches, shapes on meta."""

import math

import numpy as np
import pytest

import strided as torch

A = [[4.0, 3.0], [6.0, 3.0]]  # det -6; LU with rows exchanged: U = [[6, 3], [0, 1]], L21 = 2/3
SPD = [[4.0, 2.0], [2.0, 5.0]]  # Cholesky factor [[2, 0], [1, 2]]


def close(x, expected, tolerance=1e-5):
    np.testing.assert_allclose(x.detach().numpy(), np.array(expected), rtol=tolerance, atol=tolerance)


def random(*shape, seed=0, dtype=torch.float64):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def gradients_match(function, *operands, step=1e-6):
    """The gradient of sum(function * weights) against differences of the function itself."""
    operands = [t.clone().requires_grad_() for t in operands]
    out = function(*operands)
    weights = random(*out.shape, seed=9)
    found = torch.autograd.grad((out * weights).sum(), operands)
    for i, (t, g) in enumerate(zip(operands, found)):
        numeric = np.zeros(tuple(t.shape))
        for place in np.ndindex(*t.shape):
            sides = []
            for sign in (1, -1):
                moved = t.detach().numpy().copy()
                moved[place] += sign * step
                with torch.no_grad():
                    sides.append(float((function(*[torch.from_numpy(moved) if j == i else o for j, o in enumerate(operands)]) * weights).sum()))
            numeric[place] = (sides[0] - sides[1]) / (2 * step)
        np.testing.assert_allclose(g.numpy(), numeric, rtol=1e-5, atol=1e-5)


# ---- inverses, determinants, solutions ------------------------------------------------------------------------------------------------


def test_inverse_and_determinant_by_hand():
    a = torch.tensor(A)
    close(torch.linalg.inv(a), [[-0.5, 0.5], [1.0, -2 / 3]])
    close(a.inverse(), [[-0.5, 0.5], [1.0, -2 / 3]])
    close(torch.det(a), -6.0)
    sign, log = torch.linalg.slogdet(a)
    assert float(sign) == -1 and math.isclose(float(log), math.log(6), rel_tol=1e-6)
    assert math.isnan(float(torch.logdet(a)))
    close(torch.logdet(torch.tensor(SPD)), math.log(16))
    assert torch.linalg.slogdet(torch.zeros(2, 2)).sign.item() == 0 and torch.logdet(torch.zeros(2, 2)).item() == -math.inf
    assert torch.linalg.inv(a).dtype is torch.float32 and torch.linalg.inv(a.double()).dtype is torch.float64


def test_inv_ex_says_which_pivot_is_zero():
    good, singular = torch.tensor(A), torch.tensor([[1.0, 2.0], [2.0, 4.0]])
    inverse, info = torch.linalg.inv_ex(torch.stack([good, singular]))
    assert info.tolist() == [0, 2] and info.dtype is torch.int32
    close(inverse[0], [[-0.5, 0.5], [1.0, -2 / 3]])
    assert not torch.isfinite(inverse[1]).any()


def test_solve_in_all_forms():
    a, b = torch.tensor(A), torch.tensor([10.0, 12.0])
    close(torch.linalg.solve(a, b), [1.0, 2.0])
    close(torch.linalg.solve(a, b[:, None]), [[1.0], [2.0]])
    close(torch.linalg.solve(a, torch.tensor([[16.0, 9.0]]), left=False), [[1.0, 2.0]])
    x = torch.linalg.solve(random(3, 1, 4, 4), random(2, 4, 5))
    assert x.shape == (3, 2, 4, 5)
    close(random(3, 1, 4, 4) @ x, random(2, 4, 5).expand(3, 2, 4, 5).numpy(), 1e-9)
    batch = torch.linalg.solve(random(3, 4, 4), random(3, 4))  # a vector each
    close((random(3, 4, 4) @ batch[..., None])[..., 0], random(3, 4).numpy(), 1e-9)
    result, info = torch.linalg.solve_ex(torch.zeros(2, 2), b)
    assert info.item() == 1 and not torch.isfinite(result).any()


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_solve_triangular_reads_one_triangle(upper, left, unit):
    a, b = random(70, 70) / 20 + 2 * torch.eye(70, dtype=torch.float64), random(70, 70, seed=1)
    t = a.triu() if upper else a.tril()
    if unit:
        t = t - torch.diag(t.diagonal()) + torch.eye(70, dtype=torch.float64)
    x = torch.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit)
    close(t @ x if left else x @ t, b.numpy(), 1e-8)


def test_a_zero_on_the_diagonal_of_a_triangle_gives_infinity():
    assert torch.linalg.solve_triangular(torch.zeros(1, 1), torch.ones(1, 1), upper=True).item() == math.inf


def test_gradients_of_determinants_of_singular_matrices():
    a = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(torch.det(a), a)
    close(g, [[4.0, -2.0], [-2.0, 1.0]])  # the cofactors
    gradients_match(torch.det, random(3, 3))


def test_tensor_forms():
    a = random(6, 6).reshape(2, 3, 6)
    x = torch.linalg.tensorsolve(a, random(2, 3, seed=1))
    close(torch.tensordot(a, x, 1), random(2, 3, seed=1).numpy(), 1e-9)
    inverse = torch.linalg.tensorinv(a, ind=2)
    assert inverse.shape == (6, 2, 3)
    close(torch.tensordot(inverse, a, 2), np.eye(6), 1e-9)


# ---- factorisations ---------------------------------------------------------------------------------------------------------------------


def test_cholesky_and_what_it_solves():
    a = torch.tensor(SPD)
    close(torch.linalg.cholesky(a), [[2.0, 0.0], [1.0, 2.0]])
    close(torch.linalg.cholesky(a, upper=True), [[2.0, 1.0], [0.0, 2.0]])
    L = torch.cholesky(a)
    close(torch.cholesky_inverse(L), [[5 / 16, -2 / 16], [-2 / 16, 4 / 16]])
    close(torch.cholesky_solve(torch.tensor([[8.0], [12.0]]), L), [[1.0], [2.0]])
    assert torch.linalg.cholesky_ex(torch.tensor([SPD, [[1.0, 2.0], [2.0, 1.0]]])).info.tolist() == [0, 2]
    gradients_match(lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(3, dtype=x.dtype)), random(3, 3))


def test_lu_by_hand_and_unpacked():
    a = torch.tensor(A)
    LU, pivots = torch.linalg.lu_factor(a)
    close(LU, [[6.0, 3.0], [2 / 3, 1.0]])
    assert pivots.tolist() == [2, 2] and pivots.dtype is torch.int32
    P, L, U = torch.lu_unpack(LU, pivots)
    assert P.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    close(P @ L @ U, A)
    close(torch.linalg.lu_solve(LU, pivots, torch.tensor([[10.0], [12.0]])), [[1.0], [2.0]])
    close(torch.lu_solve(torch.tensor([[10.0], [12.0]]), *torch.lu(a)), [[1.0], [2.0]])
    assert torch.linalg.lu_factor_ex(torch.zeros(3, 3)).info.item() == 1


@pytest.mark.parametrize("shape", [(70, 70), (40, 90), (90, 40), (3, 2, 5), (0, 4, 4), (3, 0), (0, 3)])
def test_factors_multiply_to_the_matrix(shape):
    a = random(*shape)
    P, L, U = torch.linalg.lu(a)
    close(P @ L @ U, a.numpy(), 1e-9)
    for mode in ("reduced", "complete"):
        Q, R = torch.linalg.qr(a, mode=mode)
        close(Q @ R, a.numpy(), 1e-9)
        close(Q.mT @ Q, np.broadcast_to(np.eye(Q.shape[-1]), (*shape[:-2], Q.shape[-1], Q.shape[-1])), 1e-9)
    U, S, Vh = torch.linalg.svd(a, full_matrices=False)
    close(U @ torch.diag_embed(S) @ Vh, a.numpy(), 1e-9)
    full = torch.linalg.svd(a)
    assert full.U.shape[-2:] == (shape[-2],) * 2 and full.Vh.shape[-2:] == (shape[-1],) * 2
    close(torch.linalg.svdvals(a), S.numpy(), 1e-9)


def test_lu_of_a_matrix_in_float32_is_computed_in_float32():
    a = random(50, 50, dtype=torch.float32)
    P, L, U = torch.linalg.lu(a)
    assert U.dtype is torch.float32
    close(P @ L @ U, a.numpy(), 1e-4)


def test_householder_form_of_qr():
    a = random(2, 5, 3)
    packed, tau = torch.geqrf(a)
    Q, R = torch.linalg.qr(a)
    close(packed.triu()[:, :3], R.numpy(), 1e-9)
    close(torch.linalg.householder_product(packed, tau), Q.numpy(), 1e-9)
    full = torch.ormqr(packed, tau, torch.eye(5, dtype=torch.float64).expand(2, 5, 5))
    close(full[..., :3], Q.numpy(), 1e-9)
    close(torch.ormqr(packed, tau, full, transpose=True), np.broadcast_to(np.eye(5), (2, 5, 5)), 1e-9)
    gradients_match(torch.linalg.householder_product, random(4, 3), random(3, seed=1))
    close(torch.linalg.householder_product(torch.zeros(2, 2), torch.zeros(2)), np.eye(2))  # tau 0: no reflection


def test_ldl_by_hand():
    LD, pivots = torch.linalg.ldl_factor(torch.tensor([[0.0, 2.0], [2.0, 0.0]]))  # one block of size 2
    assert pivots.tolist() == [-2, -2]
    close(LD.tril(), [[0.0, 0.0], [2.0, 0.0]])
    a = random(3, 8, 8)
    a = a + a.mT
    close(a @ torch.linalg.ldl_solve(*torch.linalg.ldl_factor(a), random(8, 2)), random(8, 2).expand(3, 8, 2).numpy(), 1e-8)
    assert torch.linalg.ldl_factor_ex(torch.zeros(2, 2)).info.item() == 1


def test_eigenvalues_of_symmetric_matrices():
    values, vectors = torch.linalg.eigh(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    close(values, [1.0, 3.0])
    close(vectors.abs(), [[0.5**0.5] * 2] * 2)
    close(torch.linalg.eigvalsh(torch.tensor([[2.0, 100.0], [1.0, 2.0]])), [1.0, 3.0])  # the lower triangle is read
    close(torch.linalg.eigvalsh(torch.tensor([[2.0, 1.0], [100.0, 2.0]]), UPLO="U"), [1.0, 3.0])
    gradients_match(lambda x: torch.linalg.eigvalsh(x + x.mT), random(3, 3))


# ---- least squares, norms, powers -------------------------------------------------------------------------------------------------------


def test_least_squares_is_a_line_through_points():
    a = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    fit = torch.linalg.lstsq(a, torch.tensor([[1.0], [3.0], [5.5]]), driver="gelsd")
    close(fit.solution, [[11 / 12], [2.25]])
    close(fit.residuals, [1 / 24], 1e-4)
    assert fit.rank.item() == 2 and fit.singular_values.shape == (2,)
    assert torch.linalg.lstsq(a, torch.zeros(3, 1)).residuals.shape == (0,)


def test_pseudo_inverse_and_rank():
    a = torch.tensor([[1.0, 2.0], [2.0, 4.0], [0.0, 0.0]])
    close(torch.linalg.pinv(a), [[1 / 25, 2 / 25, 0], [2 / 25, 4 / 25, 0]])
    assert torch.linalg.matrix_rank(a).item() == 1 and torch.linalg.matrix_rank(torch.zeros(2, 2)).item() == 0
    assert torch.linalg.matrix_rank(torch.diag(torch.tensor([1.0, 0.1])), atol=0.5).item() == 1
    assert torch.linalg.matrix_rank(torch.eye(3).expand(2, 3, 3), hermitian=True).tolist() == [3, 3]
    close(torch.linalg.pinv(torch.diag(torch.tensor([2.0, -4.0])), hermitian=True), [[0.5, 0.0], [0.0, -0.25]])
    assert torch.linalg.pinv(torch.zeros(0, 3)).shape == (3, 0)


def test_matrix_norms_by_hand():
    a = torch.tensor([[3.0, -4.0], [0.0, 0.0]])
    norms = {"fro": 5, "nuc": 5, 1: 4, -1: 3, math.inf: 7, -math.inf: 0, 2: 5, -2: 0}
    for ord, expected in norms.items():
        close(torch.linalg.matrix_norm(a, ord), float(expected))
        close(torch.linalg.norm(a, ord), float(expected))
    close(torch.norm(a, p="nuc"), 5.0)
    close(torch.linalg.norm(a), 5.0)
    close(torch.linalg.norm(a, 1, dim=0), [3.0, 4.0])
    assert torch.linalg.matrix_norm(torch.zeros(2, 3, 4), 2, dim=(0, 2), keepdim=True).shape == (1, 3, 1)
    assert torch.linalg.matrix_norm(a, dtype=torch.float64).dtype is torch.float64
    close(torch.linalg.cond(torch.diag(torch.tensor([4.0, 0.5]))), 8.0)
    assert torch.linalg.cond(torch.tensor([[1.0, 2.0], [2.0, 4.0]]), 1).item() == math.inf
    gradients_match(lambda x: torch.linalg.cond(x, "fro"), random(3, 3))


def test_powers_and_exponential():
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    close(torch.linalg.matrix_power(turn, 4), np.eye(2))
    close(torch.linalg.matrix_power(turn, -1), [[0.0, 1.0], [-1.0, 0.0]])
    close(torch.linalg.matrix_power(turn, 0), np.eye(2))
    assert torch.linalg.matrix_power(torch.tensor([[1, 1], [0, 1]]), 5).tolist() == [[1, 5], [0, 1]]
    close(torch.matrix_exp(turn * math.pi), -np.eye(2))
    close(torch.matrix_exp(turn * 100), [[math.cos(100), -math.sin(100)], [math.sin(100), math.cos(100)]], 1e-4)
    gradients_match(torch.matrix_exp, random(3, 3))


def test_small_operators():
    close(torch.linalg.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0])), [0.0, 0.0, 1.0])
    assert torch.cross(torch.tensor([[1], [0], [0]]), torch.tensor([[0], [1], [0]])).tolist() == [[0], [0], [1]]  # along the first dimension of size 3
    assert torch.vander(torch.tensor([2, 3])).tolist() == [[2, 1], [3, 1]]
    assert torch.linalg.vander(torch.tensor([2, 3]), N=3).tolist() == [[1, 2, 4], [1, 3, 9]]
    x = torch.arange(24.0).reshape(2, 3, 4)
    d = torch.linalg.diagonal(x)
    assert d.tolist() == [[0.0, 5.0, 10.0], [12.0, 17.0, 22.0]] and d.data_ptr() == x.data_ptr()
    close(torch.renorm(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0), [[0.6, 0.8], [0.3, 0.4]])


def test_covariance_and_correlation():
    x = torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
    close(torch.cov(x), [[1.0, -1.0], [-1.0, 1.0]])
    close(torch.cov(x, correction=0), [[2 / 3, -2 / 3], [-2 / 3, 2 / 3]])
    close(torch.corrcoef(x), [[1.0, -1.0], [-1.0, 1.0]])
    close(torch.cov(torch.tensor([1.0, 2.0, 2.0])), torch.cov(torch.tensor([1.0, 2.0]), fweights=torch.tensor([1, 2])).item())
    with pytest.raises(RuntimeError, match=r"cov\(\): fweights cannot be negative"):
        torch.cov(x, fweights=torch.tensor([1, -1, 1]))


# ---- errors, empties, meta --------------------------------------------------------------------------------------------------------------

ERRORS = {
    "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because the input matrix is singular.": lambda: torch.linalg.inv(torch.zeros(3, 3)),
    "linalg.inv: (Batch element 1): The diagonal element 1 is zero": lambda: torch.linalg.inv(torch.stack([torch.eye(2), torch.zeros(2, 2)])),
    "torch.linalg.solve: The solver failed because the input matrix is singular.": lambda: torch.linalg.solve(torch.zeros(2, 2), torch.zeros(2)),
    "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the leading minor of order 2 is not positive-definite).": lambda: torch.linalg.cholesky(
        torch.tensor([[1.0, 2.0], [2.0, 1.0]])
    ),
    "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values.": lambda: torch.linalg.svd(torch.full((2, 2), math.nan)),
}


@pytest.mark.parametrize("sentence", ERRORS)
def test_what_has_no_solution_is_a_linalg_error(sentence):
    with pytest.raises(torch.linalg.LinAlgError) as error:
        ERRORS[sentence]()
    assert str(error.value).startswith(sentence) and isinstance(error.value, RuntimeError)


def test_unsupported_is_said():
    with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
        torch.linalg.svd(torch.eye(2).half())
    a = torch.eye(2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="derivative for aten::linalg_ldl_factor_ex is not implemented"):
        torch.linalg.ldl_factor(a).LD.sum().backward()


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0)])
def test_empty_batches(shape):
    a = torch.zeros(shape)
    batch = shape[:-2]
    assert torch.linalg.inv(a).shape == torch.linalg.cholesky(a).shape == torch.matrix_exp(a).shape == torch.linalg.pinv(a).shape == shape
    assert torch.det(a).shape == torch.linalg.slogdet(a).sign.shape == torch.linalg.matrix_rank(a).shape == torch.linalg.matrix_norm(a).shape == batch
    assert torch.linalg.eigh(a).eigenvalues.shape == torch.linalg.svdvals(a).shape == shape[:-1]
    assert torch.linalg.solve(a, torch.zeros((*shape[:-1], 2))).shape == (*shape[:-1], 2)
    assert torch.linalg.cond(a).shape == batch and (torch.det(a) == 1).all()


def test_meta_tensors_have_shapes_and_strides_only():
    a = torch.zeros(2, 4, 3, device="meta")
    U, S, Vh = torch.linalg.svd(a)
    assert (U.shape, S.shape, Vh.shape) == ((2, 4, 4), (2, 3), (2, 3, 3)) and U.device.type == "meta"
    b = torch.linalg.inv(torch.zeros(3, 3, device="meta"))
    assert b.stride() == (1, 3) == torch.linalg.inv(torch.eye(3)).stride()
    assert torch.linalg.lu(a).P.shape == (2, 4, 4) and torch.linalg.cond(b).shape == ()


def test_results_in_given_tensors_and_named():
    out = torch.empty(0)
    assert torch.linalg.inv(torch.tensor(A), out=out) is out
    close(out, [[-0.5, 0.5], [1.0, -2 / 3]])
    assert repr(torch.linalg.slogdet(torch.eye(2))) == "torch.return_types.linalg_slogdet(\nsign=tensor(1.),\nlogabsdet=tensor(0.))"
    L, info = torch.linalg.cholesky_ex(torch.tensor(SPD))
    assert info.item() == 0
    a = torch.tensor(SPD, requires_grad=True)
    assert type(torch.linalg.inv(a).grad_fn).__name__ == "LinalgInvExBackward0"


@pytest.mark.parametrize("function", [torch.linalg.inv, torch.det, torch.linalg.svdvals, torch.matrix_exp, torch.linalg.pinv])
def test_second_gradients(function):
    def first(x):
        with torch.enable_grad():
            leaf = x if x.requires_grad else x.clone().requires_grad_()
            return torch.autograd.grad(function(leaf).square().sum(), leaf, create_graph=True)[0]

    gradients_match(first, random(3, 3) + 3 * torch.eye(3, dtype=torch.float64))


def test_a_singular_matrix_in_the_backward_pass_is_no_error():
    a = torch.zeros(2, 2, requires_grad=True)
    torch.linalg.slogdet(a).logabsdet.backward()
    assert not torch.isfinite(a.grad).all()
