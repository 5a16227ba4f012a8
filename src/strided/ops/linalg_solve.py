"""Inverses, determinants and solutions of linear systems, each with its gradient.

Factorisations (LU, Cholesky, QR, SVD, …) are in linalg_factor.py, linalg_qr.py and linalg_spectral.py; least squares in linalg_least.py, the work on arrays in linalg_host.py.
"""
from __future__ import annotations

from .. import dtypes
from ..autograd import backward, no_grad, record, tracking
from ..layout import broadcast_shapes
from . import linalg_host as lapack
from .elementwise import sum_to
from .linalg_checks import LinAlgError, are_tensors, computed, first_failure, fits, floating, matrices, same_dtype, square
from .return_types import TYPES
from .table import TABLE, operator


def _cube(factor):
    """About factor · n³ operations a matrix [*, n, n], the first argument."""
    return lambda args, kwargs, result: int(factor * args[0].numel() * args[0].shape[-1])


# ---- inverses -----------------------------------------------------------------------------------------------------------------------


@operator("linalg_inv_ex", method=False, out=True, namespace="linalg", autocast="float32", flops=_cube(2))
def inv_ex(A, *, check_errors=False):
    """(inverse, info) of square matrices [*, n, n]; info, int32 [*], is 0, or the number of the zero pivot that makes a matrix singular.

    With check_errors, LinAlgError for a singular matrix.
    """
    are_tensors("linalg_inv_ex", A=A)
    result, info = _inverse("linalg.inv", A)
    if check_errors:
        _check_singular("linalg.inv", info)
    return TYPES["linalg_inv_ex"]((result, info))


def _inverse(name, A):
    are_tensors("linalg_inv", A=A)
    square(name, A)
    floating(name, A, low=False)
    outs = [(A.shape, A.dtype, "columns"), (A.shape[:-2], dtypes.int32)]
    result, info = lapack.compute((A,), outs, _inverse_of)
    if tracking(A):
        record(LinalgInvExBackward0, (A,), result, (result,))
    return result, info


def _inverse_of(a):
    import numpy

    try:
        return numpy.linalg.inv(a), numpy.zeros(a.shape[:-2])
    except numpy.linalg.LinAlgError:
        return lapack.solve(a, numpy.broadcast_to(numpy.eye(a.shape[-1], dtype=a.dtype), a.shape))


def _check_singular(name, info):
    failure = first_failure(info)
    if failure:
        where, number = failure
        raise LinAlgError(f"{name}: {where}The diagonal element {number} is zero, the inversion could not be completed because the input matrix is singular.")


@backward("LinalgInvEx", saved_names=("inverse",))
def LinalgInvExBackward0(node, g):
    """A dX + dA X = 0, so that the gradient is -Xᴴ g Xᴴ."""
    (x,) = node.saved
    return (-(x.mH @ g @ x.mH),)


def _inv(name, A):
    result, info = _inverse(name, A)
    _check_singular(name, info)
    return result


@operator("linalg_inv", method=False, out=True, namespace="linalg", autocast="float32", flops=_cube(2))
def inv(A):
    """Inverses of square matrices, [*, n, n]. LinAlgError for a singular one."""
    return _inv("linalg.inv", A)


@operator("inverse", out=True, autocast="float32", flops=_cube(2))
def inverse(input):
    """`linalg.inv`."""
    return _inv("linalg.inv", input)


# ---- determinants -------------------------------------------------------------------------------------------------------------------


@operator("det", out=True, autocast="float32", flops=_cube(2 / 3))
def det(input):
    """Determinants of square matrices: [*, n, n] -> [*]."""
    are_tensors("linalg_det", A=input)
    square("linalg.det", input)
    floating("linalg.det", input)
    computed("lu_cpu", input)
    out = lapack.compute((input,), [(input.shape[:-2], input.dtype)], _determinant)
    if tracking(input):
        record(LinalgDetBackward0, (input,), out, (input, out))
    return out


def _determinant(a):
    import numpy

    return numpy.linalg.det(a)


@backward("LinalgDet", saved_names=("A", "result"))
def LinalgDetBackward0(node, g):
    """The gradient is the matrix of cofactors: det(A) A⁻ᵀ where that exists, and in any case from singular values, A = U S Vᴴ. Complex ones conjugated."""
    A, result = node.saved
    if A.is_meta or not bool((result == 0).any()):
        scaled = (g * result.conj())[..., None, None] * TABLE["eye"].call(A.shape[-1], dtype=A.dtype, device=A.device)  # [*, n, n]
        return (solve_ex(A.mH, scaled)[0],)
    U, S, Vh = TABLE["linalg_svd"].call(A)
    sign = (det(U) * det(Vh)).conj()
    others = S[..., None, :].masked_fill(TABLE["eye"].call(S.shape[-1], dtype=dtypes.bool_, device=A.device), 1).prod(-1)  # [*, n]
    return ((g * sign)[..., None, None] * ((U * others[..., None, :]) @ Vh),)


@operator("linalg_slogdet", method=False, out=True, namespace="linalg", autocast="float32", flops=_cube(2 / 3))
def linalg_slogdet(A):
    """(sign, logabsdet) of the determinants of square matrices: [*, n, n] -> [*], [*]. A singular matrix has sign 0 and -inf."""
    return TYPES["linalg_slogdet"](_slogdet("linalg.slogdet", A))


@operator("slogdet", autocast="float32", flops=_cube(2 / 3))
def slogdet(input):
    """`linalg.slogdet`."""
    return TYPES["slogdet"](_slogdet("linalg.slogdet", input))


def _slogdet(name, A):
    are_tensors("linalg_slogdet", A=A)
    square(name, A)
    floating(name, A, low=False)
    shape = A.shape[:-2]
    sign, log = lapack.compute((A,), [(shape, A.dtype), (shape, A.dtype.to_real())], _slogdet_of)
    if tracking(A):
        record(LinalgSlogdetBackward0, (A,), (sign, log), (A, sign))
    return sign, log


def _slogdet_of(a):
    import numpy

    return tuple(numpy.linalg.slogdet(a))


@backward("LinalgSlogdet", saved_names=("A", "sign"))
def LinalgSlogdetBackward0(node, g_sign, g):
    """(g - i Im(conj(g_sign) sign)) A⁻ᴴ: a real sign does not move, a complex one turns."""
    A, sign = node.saved
    if A.dtype.is_complex and g_sign is not None:
        turn = (g_sign.conj() * sign).imag * -1j
        g = turn if g is None else turn + g
    if g is None:
        return (TABLE["zeros_like"].call(A),)
    return (solve_ex(A.mH, g[..., None, None] * TABLE["eye"].call(A.shape[-1], dtype=A.dtype, device=A.device))[0],)


@operator("logdet", autocast="float32", flops=_cube(2 / 3))
def logdet(input):
    """Logarithms of the determinants: [*, n, n] -> [*]. -inf for a singular matrix, NaN where a real determinant is negative."""
    sign, log = _slogdet("logdet", input)
    if input.dtype.is_complex:
        return sign.log() + log
    return TABLE["where"].call(sign == -1, float("nan"), log)


# ---- solutions ----------------------------------------------------------------------------------------------------------------------


def _solve_flops(args, kwargs, result):
    n = args[0].shape[-1]
    return int(args[0].numel() * n * 2 / 3) + 2 * n * (result[0] if isinstance(result, tuple) else result).numel()


@operator("linalg_solve_ex", method=False, out=True, namespace="linalg", autocast="float32", flops=_solve_flops)
def solve_ex(A, B, *, left=True, check_errors=False):
    """(result, info) of AX = B, or XA = B without `left`: A [*, n, n]; B [*, n, k], or a vector [*, n] with A's batch. info as in `inv_ex`."""
    result, info = _solve(A, B, left)
    if check_errors:
        _check_solved(info)
    return TYPES["linalg_solve_ex"]((result, info))


@operator("linalg_solve", method=False, out=True, namespace="linalg", autocast="float32", flops=_solve_flops)
def solve(A, B, *, left=True):
    """X with AX = B, or XA = B without `left`: A [*, n, n]; B [*, n, k], or a vector [n] or [*, n]. LinAlgError for a singular A."""
    result, info = _solve(A, B, left)
    _check_solved(info)
    return result


def _check_solved(info):
    failure = first_failure(info)
    if failure:
        raise LinAlgError(f"torch.linalg.solve: {failure[0]}The solver failed because the input matrix is singular.")


def _is_vector(A, B):
    """B is one vector, or one for each matrix of A."""
    return B.ndim == 1 or B.ndim == A.ndim - 1 and tuple(B.shape) == tuple(A.shape[:-1])


def _solve(A, B, left):
    are_tensors("linalg_solve", A=A, B=B)
    square("linalg.solve", A)
    floating("linalg.solve", A)
    same_dtype("linalg.solve", A, B)
    computed("linalg_solve_cpu", A)
    vector = _is_vector(A, B)
    if vector:
        left, full = True, B.unsqueeze(-1)  # [*, n, 1]
    else:
        matrices("linalg.solve", B, "B")
        full = B
    fits("linalg.solve", A, full, left)
    batch = broadcast_shapes(A.shape[:-2], full.shape[:-2])
    shape = (*batch, *full.shape[-2:])
    outs = [(shape[:-1] if vector else shape, A.dtype, "rows" if vector else "columns"), (A.shape[:-2], dtypes.int32)]
    result, info = lapack.compute((A, full), outs, lambda a, b: _solved(a, b, batch, left, vector))
    if tracking(A, B):
        record(LinalgSolveExBackward0, (A, B), result, (A, result), left=left, vector=vector, shape=B.shape)
    return result, info


def _solved(a, b, batch, left, vector):
    import numpy

    info = numpy.zeros(a.shape[:-2])
    own = a.shape[:-2]
    a, b = (numpy.broadcast_to(t, (*batch, *t.shape[-2:])) for t in (a, b))
    if not left:
        a, b = a.swapaxes(-1, -2), b.swapaxes(-1, -2)
    x, found = lapack.solve(a, b)
    if found.any():
        info[...] = found if found.shape == own else _unbroadcast(found, own)
    if not left:
        x = x.swapaxes(-1, -2)
    return (x[..., 0] if vector else x), info


def _unbroadcast(info, own):
    """The numbers of A's own matrices from those of the matrices that broadcasting repeated."""
    lead = info.ndim - len(own)
    return info[(0,) * lead + tuple(slice(0, 1) if n == 1 else slice(None) for n in own)]


@backward("LinalgSolveEx", saved_names=("A", "result"))
def LinalgSolveExBackward0(node, g):
    """A dX = dB - dA X: the gradient of B is A⁻ᴴ g, that of A minus its product with Xᴴ."""
    A, X = node.saved
    if node.vector:
        g, X = g.unsqueeze(-1), X.unsqueeze(-1)  # [*, n, 1]
    gB = solve_ex(A.mH, g, left=node.left)[0]
    gA = None
    if node.needs[0]:
        gA = sum_to(-(gB @ X.mH if node.left else X.mH @ gB), A.shape)
    return gA, sum_to(gB.squeeze(-1) if node.vector else gB, node.shape)


# ---- triangular systems -------------------------------------------------------------------------------------------------------------


@operator("linalg_solve_triangular", method=False, out=True, namespace="linalg", flops=lambda args, kwargs, result: args[0].shape[-1] * result.numel())
def solve_triangular(A, B, *, upper, left=True, unitriangular=False):
    """X with AX = B (or XA = B), A [*, n, n] read as upper or lower triangular, with ones on its diagonal if `unitriangular`. A zero there gives infinities."""
    are_tensors("linalg_solve_triangular", A=A, B=B)
    name = "linalg.solve_triangular"
    square(name, A)
    matrices(name, B, "B")
    same_dtype(name, A, B)
    fits(name, A, B, left)
    computed("triangular_solve_cpu", A)
    batch = broadcast_shapes(A.shape[:-2], B.shape[:-2])
    result = lapack.compute((A, B), [((*batch, *B.shape[-2:]), A.dtype, "columns")], lambda a, b: _triangular(a, b, batch, upper, left, unitriangular))
    if tracking(A, B):
        record(LinalgSolveTriangularBackward0, (A, B), result, (A, result), upper=upper, left=left, unitriangular=unitriangular, shape=B.shape)
    return result


def _triangular(a, b, batch, upper, left, unit):
    import numpy

    a, b = (numpy.broadcast_to(t, (*batch, *t.shape[-2:])) for t in (a, b))
    if left:
        return lapack.solve_triangular(a, b, upper, unit)
    return lapack.solve_triangular(a.swapaxes(-1, -2), b.swapaxes(-1, -2), not upper, unit).swapaxes(-1, -2)


@backward("LinalgSolveTriangular", saved_names=("self", "result"))
def LinalgSolveTriangularBackward0(node, g):
    A, X = node.saved
    gB = solve_triangular(A.mH, g, upper=not node.upper, left=node.left, unitriangular=node.unitriangular)
    gA = None
    if node.needs[0]:
        gA = sum_to(-(gB @ X.mH if node.left else X.mH @ gB), A.shape)
        unit = int(node.unitriangular)
        gA = gA.triu(unit) if node.upper else gA.tril(-unit)
    return gA, sum_to(gB, node.shape)


@operator("triangular_solve", out=True, autocast="float32", flops=lambda args, kwargs, result: args[1].shape[-1] * result[0].numel())
def triangular_solve(input, A, upper=True, transpose=False, unitriangular=False):
    """(solution, cloned_coefficient) of AX = input (or AᵀX = input), both [*, n, ..]. Prefer `linalg.solve_triangular`."""
    for t, what in ((input, "b"), (A, "A")):
        if t.ndim < 2:
            raise RuntimeError(f"torch.triangular_solve: Expected {what} to have at least 2 dimensions, but it has {t.ndim} dimensions instead")
    _pair("triangular_solve", A, input)
    solution = solve_triangular(A.mT if transpose else A, input, upper=bool(upper) != bool(transpose), unitriangular=unitriangular)
    coefficient = A.clone() if tuple(A.shape[:-2]) == tuple(solution.shape[:-2]) else A.expand((*solution.shape[:-2], -1, -1)).clone()
    return TYPES["triangular_solve"]((solution, coefficient))


def _pair(name, A, b):
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices")
    if A.shape[-2] != b.shape[-2]:
        sizes = f"each A matrix is {A.shape[-1]} by {A.shape[-1]} but each b matrix is {b.shape[-2]} by {b.shape[-1]}"
        raise RuntimeError(f"Incompatible matrix sizes for {name}: {sizes}")


@operator("cholesky_solve", out=True, names={"input2": "L"}, autocast="float32", flops=lambda args, kwargs, result: 2 * args[1].shape[-1] * result.numel())
def cholesky_solve(input, L, upper=False):
    """X with A X = input, [*, n, k], from A's Cholesky factor L [*, n, n]: A = L Lᴴ, or Lᴴ L if `upper`."""
    for t, what in ((input, "b"), (L, "u")):
        if t.ndim < 2:
            raise RuntimeError(f"{what} should have at least 2 dimensions, but has {t.ndim} dimensions instead")
    _pair("cholesky_solve", L, input)
    with no_grad():
        X = _from_factor(L, input, upper)
    if tracking(input, L):
        record(CholeskySolveBackward0, (input, L), X, (L, X), upper=upper, shape=input.shape)
    return X


def _from_factor(L, B, upper):
    low, high = (L.mH, L) if upper else (L, L.mH)
    return solve_triangular(high, solve_triangular(low, B, upper=False), upper=True)


@backward("CholeskySolve", saved_names=("input2", "result"))
def CholeskySolveBackward0(node, g):
    """As PyTorch has it, for L as a whole matrix: what is not in its triangle gets a gradient too."""
    L, X = node.saved
    gB = cholesky_solve(g, L, node.upper)
    gL = None
    if node.needs[1]:
        through = gB @ X.mH
        through = through + through.mH  # [*, n, n]
        gL = sum_to(-(L @ through if node.upper else through @ L), L.shape)
    return sum_to(gB, node.shape), gL


@operator("cholesky_inverse", out=True, autocast="float32", flops=_cube(2))
def cholesky_inverse(L, upper=False):
    """A⁻¹ from A's Cholesky factor L [*, n, n]: A = L Lᴴ, or Lᴴ L if `upper`."""
    are_tensors("cholesky_inverse", input=L)
    square("cholesky_inverse", L)
    computed("cholesky_inverse_out_cpu", L)
    with no_grad():
        out = _from_factor(L, TABLE["eye"].call(L.shape[-1], dtype=L.dtype, device=L.device).expand(L.shape), upper)
    if tracking(L):
        record(CholeskyInverseBackward0, (L,), out, (L, out), upper=upper)
    return out


@backward("CholeskyInverse", saved_names=("self", "result"))
def CholeskyInverseBackward0(node, g):
    """As PyTorch has it, for L as a whole matrix."""
    L, X = node.saved
    through = X @ (g + g.mH) @ X
    return (-(L @ through if node.upper else through @ L),)


# ---- systems given as tensors of more dimensions ------------------------------------------------------------------------------------


def _as_matrix(factor):
    """About factor · n³ operations for a tensor of n² elements."""
    return lambda args, kwargs, result: int(factor * args[0].numel() ** 1.5)


@operator("linalg_tensorinv", method=False, out=True, namespace="linalg", autocast="float32", flops=_as_matrix(2))
def tensorinv(A, ind=2):
    """The inverse of A as a map between tensors: [*m, *n] with `ind` dimensions in m and prod(m) == prod(n) -> [*n, *m]."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    after, before = A.shape[ind:], A.shape[:ind]
    if after.numel() != before.numel():
        raise RuntimeError(f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {after.numel()} != {before.numel()}")
    return _inv("inv", A.reshape(before.numel(), after.numel())).reshape((*after, *before))


@operator("linalg_tensorsolve", method=False, names={"other": "B"}, out=True, namespace="linalg", autocast="float32", flops=_as_matrix(2 / 3))
def tensorsolve(A, B, dims=None):
    """X with tensordot(A, X, X.ndim) == B: A [*B.shape, *X.shape] once its `dims` are moved to the end."""
    if dims is not None:
        dims = [d % A.ndim for d in dims]
        A = A.movedim(dims, [A.ndim - len(dims) + i for i in range(len(dims))])
    after, before = A.shape[B.ndim :], A.shape[: B.ndim]
    if after.numel() != before.numel():
        raise RuntimeError(f"Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got {after.numel()} != {before.numel()}")
    return solve(A.reshape(before.numel(), after.numel()), B.reshape((-1,))).reshape(after)
