"""Factorisations into triangles and reflections: Cholesky, LU, LDLᵀ, QR and Householder's form of it, each with its gradient where it has one.

Singular and eigenvalues are in linalg_spectral.py, solutions in linalg_solve.py, the work on arrays in linalg_host.py.
"""
from __future__ import annotations

from .. import dtypes
from ..autograd import backward, record, tracking
from ..layout import broadcast_shapes
from . import linalg_host as lapack
from .folding import plain
from .linalg_checks import LinAlgError, are_tensors, computed, first_failure, fits, floating, matrices, same_dtype, square
from .linalg_solve import solve_triangular
from .return_types import TYPES
from .table import TABLE, operator


def _cube(factor):
    """About factor · (rows · columns · the smaller of them) operations a matrix [*, m, n], the first argument."""
    return lambda args, kwargs, result: int(factor * args[0].numel() * min(args[0].shape[-2:]))


def _eye(n, like, m=None):
    return TABLE["eye"].call(n, n if m is None else m, dtype=like.dtype, device=like.device)


def _underived(name):
    """The node of an operator without a derivative: reaching it in the backward pass is an error, as in PyTorch."""

    def refuse(node, *grads):
        raise NotImplementedError(f"derivative for aten::{name} is not implemented\n  Use detach() on its result where no gradient is wanted.")

    return backward("".join(part.capitalize() for part in name.split("_")))(refuse)


# ---- Cholesky -----------------------------------------------------------------------------------------------------------------------


def _cholesky(name, A, upper, node=None):
    are_tensors("linalg_cholesky", input=A)
    square(name, A)
    floating(name, A)
    computed("cholesky_cpu", A)

    def factorise(a):
        L, info = lapack.cholesky(lapack.adjoint(a) if upper else a)
        return lapack.adjoint(L) if upper else L, info

    L, info = lapack.compute((A,), [(A.shape, A.dtype, "columns"), (A.shape[:-2], dtypes.int32)], factorise)
    if tracking(A):
        record(node or LinalgCholeskyExBackward0, (A,), L, (L,), upper=upper)
    return L, info


def _check_definite(name, info):
    failure = first_failure(info)
    if failure:
        where, order = failure
        reason = f"the input is not positive-definite (the leading minor of order {order} is not positive-definite)"
        raise LinAlgError(f"{name}: {where}The factorization could not be completed because {reason}.")


@operator("linalg_cholesky_ex", method=False, out=True, namespace="linalg", autocast="float32", flops=_cube(1 / 3))
def cholesky_ex(A, *, upper=False, check_errors=False):
    """(L, info) with A = L Lᴴ, or with `upper` A = Lᴴ L, for symmetric (Hermitian) positive-definite A [*, n, n], of which one triangle is read.

    info, int32 [*]: 0, or the order of the leading minor that is not positive-definite.
    """
    L, info = _cholesky("linalg.cholesky", A, upper)
    if check_errors:
        _check_definite("linalg.cholesky", info)
    return TYPES["linalg_cholesky_ex"]((L, info))


@operator("linalg_cholesky", method=False, out=True, namespace="linalg", autocast="float32", flops=_cube(1 / 3))
def linalg_cholesky(A, *, upper=False):
    """L of `cholesky_ex`; LinAlgError where A is not positive-definite."""
    L, info = _cholesky("linalg.cholesky", A, upper)
    _check_definite("linalg.cholesky", info)
    return L


@operator("cholesky", out=True, autocast="float32", flops=_cube(1 / 3))
def cholesky(input, upper=False):
    """`linalg.cholesky`."""
    L, info = _cholesky("cholesky", input, upper, CholeskyBackward0)
    _check_definite("cholesky", info)
    return L


def _cholesky_backward(node, g):
    """dL = L Φ(L⁻¹ dA L⁻ᴴ), where Φ keeps the lower triangle and half the diagonal; the gradient is made Hermitian."""
    (L,) = node.saved
    if node.upper:
        L, g = L.mH, g.mH
    P = (L.mH @ g).tril()
    P = P + P.tril(-1)
    P = (P + P.mH) / 4  # [*, n, n]
    return (solve_triangular(L, solve_triangular(L.mH, P, upper=True), upper=False, left=False),)


LinalgCholeskyExBackward0 = backward("LinalgCholeskyEx", saved_names=("L",))(_cholesky_backward)
CholeskyBackward0 = backward("Cholesky", saved_names=("result",))(_cholesky_backward)


# ---- LU -----------------------------------------------------------------------------------------------------------------------------


def _lu_factor(name, A, pivot):
    are_tensors("linalg_lu_factor", A=A)
    if A.ndim < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead")
    computed("lu_cpu", A)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    batch, k = A.shape[:-2], min(A.shape[-2:])
    packed, pivots, info = lapack.compute((A,), [(A.shape, A.dtype, "columns"), ((*batch, k), dtypes.int32), (batch, dtypes.int32)], lapack.lu)
    if tracking(A):
        record(LinalgLuFactorExBackward0, (A,), packed, (packed, pivots))
    return packed, pivots, info


@operator("linalg_lu_factor_ex", method=False, out=True, namespace="linalg", autocast="float32", flops=_cube(2 / 3))
def lu_factor_ex(A, *, pivot=True, check_errors=False):
    """(LU, pivots, info): L (below the diagonal, ones on it left out) and U of A = P L U in one matrix [*, m, n], row exchanges int32 [*, k] from 1, k = min(m, n).

    info, int32 [*]: 0, or the number of the first zero on U's diagonal.
    """
    packed, pivots, info = _lu_factor("torch.lu_factor", A, pivot)
    if check_errors:
        _check_lu(info)
    return TYPES["linalg_lu_factor_ex"]((packed, pivots, info))


def _check_lu(info):
    failure = first_failure(info)
    if failure:
        where, i = failure
        raise RuntimeError(
            f"torch.linalg.lu_factor: {where}U[{i},{i}] is zero and using it on lu_solve would result in a division by zero. "
            "If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        )


@operator("linalg_lu_factor", method=False, out=True, namespace="linalg", autocast="float32", flops=_cube(2 / 3))
def lu_factor(A, *, pivot=True):
    """(LU, pivots) of `lu_factor_ex`; RuntimeError where U has a zero on its diagonal."""
    packed, pivots, info = _lu_factor("torch.lu_factor", A, pivot)
    _check_lu(info)
    return TYPES["linalg_lu_factor"]((packed, pivots))


@operator("lu", autocast="float32", flops=_cube(2 / 3))
def lu(A, pivot=True, get_infos=False, *, out=None):
    """(LU, pivots) of `linalg.lu_factor`, or with `get_infos` (LU, pivots, info). Singular matrices are no error."""
    packed, pivots, info = _lu_factor("torch.lu_factor", A, pivot)
    results = TYPES["_lu_with_info"]((packed, pivots, info)) if get_infos else (packed, pivots)
    if out is None:
        return results
    for target, value in zip(out, results):
        target.resize_(value.shape).copy_(value)
    return out


@operator("linalg_lu", method=False, out=True, namespace="linalg", autocast="float32", flops=_cube(2 / 3))
def linalg_lu(A, *, pivot=True):
    """(P, L, U) with A = P L U: [*, m, n] -> permutation [*, m, m], lower triangle with ones [*, m, k], upper triangle [*, k, n], k = min(m, n)."""
    name = "linalg.lu"
    are_tensors("linalg_lu", A=A)
    packed, pivots, _ = _lu_factor(name, plain(A), pivot)
    P, (L, U) = _permutation(pivots, A), _triangles(packed)
    if tracking(A):
        record(LinalgLuBackward0, (A,), (L, U), (P, L, U))
    return TYPES["linalg_lu"]((P, L, U))


def _triangles(packed):
    m, n = packed.shape[-2:]
    k = min(m, n)
    lower = packed.narrow(-1, 0, k).tril(-1)  # [*, m, k]
    return lower + _eye(m, packed, k), packed.narrow(-2, 0, k).triu()


def _permutation(pivots, A):
    """P [*, m, m] of A = P L U from the row exchanges."""
    m = A.shape[-2]

    def build(p):
        import numpy

        return numpy.eye(m, dtype=A.dtype.numpy)[lapack.permutation(p, m)].swapaxes(-1, -2)

    return lapack.compute((pivots,), [((*pivots.shape[:-1], m, m), A.dtype)], build)


@operator("lu_unpack", method=False, out=True, flops=lambda *_: 0)
def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    """(P, L, U) from the results of `linalg.lu_factor`; what is not asked for is an empty tensor."""
    m = LU_data.shape[-2]
    if unpack_pivots:
        if LU_pivots.dtype is not dtypes.int32:
            note = "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
            raise RuntimeError(f"torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n{note}")
        if LU_pivots.shape[-1] != min(LU_data.shape[-2:]) or not _within(LU_pivots, m):
            raise RuntimeError("pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result of lu_factor?")
    empty = TABLE["empty"].call((0,), dtype=LU_data.dtype, device=LU_data.device)
    P = _permutation(LU_pivots, LU_data) if unpack_pivots else empty
    L, U = _triangles(LU_data) if unpack_data else (empty, empty)
    return TYPES["lu_unpack"]((P, L, U))


def _within(pivots, m):
    return pivots.is_meta or not pivots.numel() or bool(((pivots >= 1) & (pivots <= m)).all())


def _lu_gradient(P, L, U, gL, gU):
    """The gradient of A = P L U, for A [*, m, n] of any shape; a gradient may be None.

    For square A it is P L⁻ᴴ (tril(Lᴴ gL, -1) + triu(gU Uᴴ)) U⁻ᴴ. The columns right of the square part reach U alone, the rows below it L alone.
    """
    (m, k), n = L.shape[-2:], U.shape[-1]
    gL = TABLE["zeros_like"].call(L) if gL is None else gL
    gU = TABLE["zeros_like"].call(U) if gU is None else gU
    L1, U1 = L.narrow(-2, 0, k), U.narrow(-1, 0, k)  # [*, k, k]
    low, high = L1.mH @ gL.narrow(-2, 0, k), gU.narrow(-1, 0, k) @ U1.mH
    beside = below = None
    if n > k:
        U2, gU2 = U.narrow(-1, k, n - k), gU.narrow(-1, k, n - k)  # [*, k, n - k]
        beside = solve_triangular(L1.mH, gU2, upper=True, unitriangular=True)
        low = low - gU2 @ U2.mH
    if m > k:
        L2, gL2 = L.narrow(-2, k, m - k), gL.narrow(-2, k, m - k)  # [*, m - k, k]
        below = solve_triangular(U1.mH, gL2, upper=False, left=False)
        high = high - L2.mH @ gL2
    inner = low.tril(-1) + high.triu()
    g = solve_triangular(U1.mH, solve_triangular(L1.mH, inner, upper=True, unitriangular=True), upper=False, left=False)
    if beside is not None:
        g = TABLE["cat"].call([g, beside], -1)
    if below is not None:
        g = TABLE["cat"].call([g, below], -2)
    return P @ g


@backward("LinalgLu", saved_names=("P", "L", "U"))
def LinalgLuBackward0(node, gL, gU):
    return (_lu_gradient(*node.saved, gL, gU),)


@backward("LinalgLuFactorEx", saved_names=("LU", "pivots"))
def LinalgLuFactorExBackward0(node, g):
    packed, pivots = node.saved
    k = min(packed.shape[-2:])
    L, U = _triangles(packed)
    return (_lu_gradient(_permutation(pivots, packed), L, U, g.narrow(-1, 0, k).tril(-1), g.narrow(-2, 0, k).triu()),)


@operator("linalg_lu_solve", method=False, out=True, namespace="linalg", autocast="float32", flops=lambda args, kwargs, result: 2 * args[0].shape[-1] * result.numel())
def linalg_lu_solve(LU, pivots, B, *, left=True, adjoint=False):
    """X with AX = B, or XA = B without `left`, from A's `lu_factor`; with `adjoint`, Aᴴ in A's place. LU [*, n, n], pivots [*, n], B [*, n, k]."""
    name = "linalg.lu_solve"
    square(name, LU)
    matrices(name, B, "B")
    same_dtype(name, LU, B)
    if pivots.dtype is not dtypes.int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    fits(name, LU, B, left)
    if pivots.shape[-1] != LU.shape[-1]:
        raise RuntimeError(f"{name}: Number of pivots per batch should be same as the dimension of the matrix")
    if not _within(pivots, LU.shape[-2]):
        raise RuntimeError("Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly pass the result of lu_factor?")
    if not left:  # XA = B is Aᴴ Xᴴ = Bᴴ
        return linalg_lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    P = _permutation(pivots, LU)
    if adjoint:  # Uᴴ Lᴴ Pᵀ X = B
        return P @ solve_triangular(LU.mH, solve_triangular(LU.mH, B, upper=False), upper=True, unitriangular=True)
    return solve_triangular(LU, solve_triangular(LU, P.mT @ B, upper=False, unitriangular=True), upper=True)


@operator("lu_solve", out=True, autocast="float32", flops=lambda args, kwargs, result: 2 * args[1].shape[-1] * result.numel())
def lu_solve(input, LU_data, LU_pivots):
    """X with AX = input from A's `linalg.lu_factor`: [*, n, k], [*, n, n], [*, n]."""
    return linalg_lu_solve(LU_data, LU_pivots, input)


# ---- LDLᵀ ---------------------------------------------------------------------------------------------------------------------------

_LdlBackward = _underived("linalg_ldl_factor_ex")
_LdlSolveBackward = _underived("linalg_ldl_solve")


def _ldl(A, hermitian):
    name = "torch.linalg.ldl_factor_ex"
    are_tensors("linalg_ldl_factor", input=A)
    square(name, A)
    floating(name, A)
    computed("ldl_factor_kernel_cpu", A)
    results = lapack.compute((A,), [(A.shape, A.dtype, "columns"), (A.shape[:-1], dtypes.int32), (A.shape[:-2], dtypes.int32)], lambda a: lapack.ldl(a, hermitian))
    if tracking(A):
        record(_LdlBackward, (A,), results[0])
    return results


@operator("linalg_ldl_factor_ex", method=False, out=True, namespace="linalg", flops=_cube(1 / 3))
def ldl_factor_ex(A, *, hermitian=False, check_errors=False):
    """(LD, pivots, info) of symmetric A = L D Lᵀ (or Hermitian A = L D Lᴴ) [*, n, n], of which the lower triangle is read.

    D has blocks of size 1 and 2: pivots, int32 [*, n], are as LAPACK's sytrf (hetrf) gives them.
    """
    LD, pivots, info = _ldl(A, hermitian)
    if check_errors:
        _check_ldl("torch.linalg.ldl_factor_ex", info)
    return TYPES["linalg_ldl_factor_ex"]((LD, pivots, info))


def _check_ldl(name, info):
    failure = first_failure(info)
    if failure:
        where, i = failure
        raise LinAlgError(f"{name}: {where}The factorization has a zero block of D at {i}: using it to solve would divide by zero.")


@operator("linalg_ldl_factor", method=False, out=True, namespace="linalg", flops=_cube(1 / 3))
def ldl_factor(A, *, hermitian=False):
    """(LD, pivots) of `ldl_factor_ex`; LinAlgError where D has a zero block."""
    LD, pivots, info = _ldl(A, hermitian)
    _check_ldl("torch.linalg.ldl_factor", info)
    return TYPES["linalg_ldl_factor"]((LD, pivots))


@operator("linalg_ldl_solve", method=False, out=True, namespace="linalg", flops=lambda args, kwargs, result: 2 * args[0].shape[-1] * result.numel())
def ldl_solve(LD, pivots, B, *, hermitian=False):
    """X with AX = B, [*, n, k], from A's `ldl_factor`."""
    name = "torch.linalg.ldl_solve"
    square(name, LD, "LD")
    matrices(name, B, "B")
    same_dtype(name, LD, B)
    fits(name, LD, B, True)
    if tuple(pivots.shape) != tuple(LD.shape[:-1]):
        raise RuntimeError(f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {list(pivots.shape)} instead")
    if pivots.dtype is not dtypes.int32 and pivots.dtype is not dtypes.int64:
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {pivots.dtype.scalar_name}")
    computed("ldl_solve_kernel_cpu", LD)
    batch = broadcast_shapes(LD.shape[:-2], B.shape[:-2])

    def run(a, p, b):
        import numpy

        spread = lambda t, n: numpy.broadcast_to(t, (*batch, *t.shape[t.ndim - n :]))
        return lapack.ldl_solve(spread(a, 2), spread(p, 1), spread(b, 2), hermitian)

    out = lapack.compute((LD, pivots, B), [((*batch, *B.shape[-2:]), B.dtype, "columns")], run)
    if tracking(LD, B):
        record(_LdlSolveBackward, (LD, B), out)
    return out
