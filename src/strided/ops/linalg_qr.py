"""QR factorisations: Q and R, Householder's packed form, and products with its reflections, each with its gradient where it has one."""
from __future__ import annotations

from ..autograd import backward, record, tracking
from . import linalg_host as lapack
from .linalg_checks import are_tensors, computed, floating, matrices
from .linalg_factor import _cube, _eye, _underived
from .linalg_solve import solve_triangular
from .return_types import TYPES
from .table import TABLE, operator


def _qr(A, mode):
    are_tensors("linalg_qr", A=A)
    name = "linalg.qr"
    matrices(name, A)
    floating(name, A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
    computed("geqrf_cpu", A)
    batch, (m, n) = A.shape[:-2], A.shape[-2:]
    k = m if mode == "complete" else min(m, n)
    shapes = [(0,) if mode == "r" else (*batch, m, k), (*batch, k, n)]

    def factorise(a):
        import numpy

        if mode == "r":
            return numpy.zeros(0), numpy.linalg.qr(a, "r")
        return tuple(numpy.linalg.qr(a, mode))

    Q, R = lapack.compute((A,), [(shapes[0], A.dtype, *(["columns"] if mode != "r" else [])), (shapes[1], A.dtype, "columns")], factorise)
    if tracking(A):
        record(LinalgQrBackward0, (A,), (Q, R), (Q, R), mode=mode)
    return Q, R


@operator("linalg_qr", method=False, out=True, namespace="linalg", autocast="float32", flops=_cube(2))
def linalg_qr(A, mode="reduced"):
    """(Q, R) with A = Q R: [*, m, n] -> [*, m, k], [*, k, n], Q's columns orthonormal, R upper triangular.

    mode "reduced": k = min(m, n); "complete": k = m; "r": as reduced with an empty Q. Raises RuntimeError for another mode.
    """
    return TYPES["linalg_qr"](_qr(A, mode))


@operator("qr", out=True, autocast="float32", flops=_cube(2))
def qr(input, some=True):
    """`linalg.qr`, reduced if `some`, else complete."""
    return TYPES["qr"](_qr(input, "reduced" if some else "complete"))


@backward("LinalgQr", saved_names=("Q", "R"))
def LinalgQrBackward0(node, gQ, gR):
    """For m >= n: (gQ + Q S) R⁻ᴴ, S the Hermitian matrix with the upper triangle of gR Rᴴ - Qᴴ gQ.

    For m < n: A = Q [U V], V = Qᴴ times A's last columns, so that these reach Q and V, and the square part follows the rule above.
    """
    if node.mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    Q, R = node.saved
    (m, n), k = (Q.shape[-2], R.shape[-1]), R.shape[-2]
    if node.mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    gQ = TABLE["zeros_like"].call(Q) if gQ is None else gQ
    gR = TABLE["zeros_like"].call(R) if gR is None else gR
    if n <= k:
        return (_square_qr(Q, R, gQ, gR),)
    U, V, gU, gV = R.narrow(-1, 0, k), R.narrow(-1, k, n - k), gR.narrow(-1, 0, k), gR.narrow(-1, k, n - k)
    gX = _square_qr(Q, U, gQ + (Q @ V) @ gV.mH, gU)
    return (TABLE["cat"].call([gX, Q @ gV], -1),)


def _square_qr(Q, R, gQ, gR):
    S = (gR @ R.mH - Q.mH @ gQ).triu()
    S = S + S.triu(1)
    S = (S + S.mH) / 2  # [*, n, n]
    return solve_triangular(R.mH, gQ + Q @ S, upper=False, left=False)


# ---- reflections --------------------------------------------------------------------------------------------------------------------

GeqrfBackward0 = _underived("geqrf")


@operator("geqrf", out=True, autocast="float32", flops=_cube(2))
def geqrf(input):
    """(a, tau): R in a's upper triangle and, below it, the vectors of the reflections 1 - tau v vᴴ whose product is Q: [*, m, n], [*, k], k = min(m, n)."""
    if input.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    computed("geqrf_cpu", input)
    shape = (*input.shape[:-2], min(input.shape[-2:]))

    def factorise(a):
        import numpy

        h, tau = numpy.linalg.qr(a, "raw")
        return h.swapaxes(-1, -2), tau

    a, tau = lapack.compute((input,), [(input.shape, input.dtype, "columns"), (shape, input.dtype)], factorise)
    if tracking(input):
        record(GeqrfBackward0, (input,), (a, tau))
    return TYPES["geqrf"]((a, tau))


def _reflections(a, tau):
    """(V, T) with H₁ H₂ … H_k = 1 - V T Vᴴ for the reflections 1 - tau v vᴴ stored in a: [*, m, n], [*, k] -> [*, m, k], [*, k, k].

    T⁻¹ is upper triangular, 1 / tau on its diagonal and Vᴴ V above it; written without the quotient, a tau of 0 leaves its reflection out.
    """
    m, k = a.shape[-2], tau.shape[-1]
    V = a.narrow(-1, 0, k).tril(-1) + _eye(m, a, k)
    above = (V.mH @ V).triu(1) * tau.unsqueeze(-2)  # [*, k, k]
    return V, solve_triangular(above, tau.diag_embed(), upper=True, left=False, unitriangular=True)  # T (1 + above)⁻¹ = T


@operator("linalg_householder_product", method=False, out=True, namespace="linalg", autocast="float32", flops=_cube(4))
def householder_product(A, tau):
    """The first n columns of the product of the reflections 1 - tau v vᴴ that `geqrf` stores: [*, m, n], [*, k] -> [*, m, n], k <= n <= m."""
    name = "torch.linalg.householder_product"
    are_tensors("linalg_householder_product", input=A, tau=tau)
    if A.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if A.shape[-2] < A.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if A.shape[-1] < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    _fits_reflections(name, A, tau)
    computed("orgqr_cpu", A)
    V, T = _reflections(A, tau)
    n = A.shape[-1]
    return _eye(A.shape[-2], A, n) - V @ (T @ V.narrow(-2, 0, n).mH)


def _fits_reflections(name, A, tau):
    if A.ndim - tau.ndim != 1:
        raise RuntimeError(f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and input.ndim is equal to {A.ndim}")
    if tuple(A.shape[:-2]) != tuple(tau.shape[:-1]):
        raise RuntimeError(f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}")
    if A.dtype is not tau.dtype:
        raise RuntimeError(f"{name}: tau dtype {tau.dtype.scalar_name} does not match input dtype {A.dtype.scalar_name}")


@operator("orgqr", out=True, autocast="float32", flops=_cube(4))
def orgqr(input, input2):
    """`linalg.householder_product`."""
    return householder_product(input, input2)


@operator("ormqr", out=True, names={"input2": "tau", "input3": "other"}, autocast="float32", flops=lambda args, kwargs, result: 4 * args[1].shape[-1] * result.numel())
def ormqr(input, tau, other, left=True, transpose=False):
    """Q @ other, or other @ Q without `left`, Q (or Qᴴ if `transpose`) the whole m x m product of the reflections that `geqrf` stores in input [*, m, n] and tau [*, k]."""
    name = "torch.ormqr"
    for t, what in ((input, "input"), (other, "other")):
        if t.ndim < 2:
            raise RuntimeError(f"{name}: {what} must have at least 2 dimensions.")
    side = -2 if left else -1
    if other.shape[side] < tau.shape[-1]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be greater than or equal to tau.shape[-1]")
    if other.shape[side] != input.shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be equal to input.shape[-2]")
    if tau.shape[-1] > min(other.shape[side], input.shape[-1]):
        raise RuntimeError(f"{name}: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    _fits_reflections(name, input, tau)
    if other.ndim != input.ndim:
        raise RuntimeError(f"{name}: Expected other to have the same number of dimensions as input, but got other.ndim equal to {other.ndim} and input.ndim is equal to {input.ndim}")
    if other.dtype is not input.dtype:
        raise RuntimeError(f"{name}: other dtype {other.dtype.scalar_name} does not match input dtype {input.dtype.scalar_name}")
    computed("ormqr_cpu", input)
    V, T = _reflections(input, tau)
    T = T.mH if transpose else T
    return other - V @ (T @ (V.mH @ other)) if left else other - ((other @ V) @ T) @ V.mH
