"""Least squares, the pseudo-inverse and the rank of matrices of any shape: what is made of singular values, with gradients at constant rank."""
from __future__ import annotations

from .. import dtypes
from ..autograd import backward, record, tracking
from ..layout import broadcast_shapes
from ..tensor import Tensor
from . import host
from . import linalg_host as lapack
from .elementwise import sum_to
from .linalg_checks import COMPUTED, are_tensors, computed, matrices, square
from .linalg_spectral import _thin, decompose
from .return_types import TYPES
from .table import TABLE, operator

# ---- least squares ------------------------------------------------------------------------------------------------------------------

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@operator("linalg_lstsq", method=False, out=True, names={"b": "B"}, namespace="linalg", autocast="float32", flops=_thin(22))
def lstsq(A, B, rcond=None, *, driver=None):
    """(solution, residuals, rank, singular_values): X that makes ‖AX - B‖ least, for A [*, m, n] and B [*, m, k] or [*, m].

    Singular values below rcond (default eps * max(m, n)) times the largest count as 0. residuals [*, k]: squared norms, for m > n and full rank, else (and from the default driver, "gelsy") empty.
    singular_values are given by drivers "gelsd" and "gelss", ranks by all but "gels".
    """
    name = "torch.linalg.lstsq"
    matrices_needed = (A, "input", 2), (B, "other", 1)
    for t, what, least in matrices_needed:
        if t.ndim < least:
            raise RuntimeError(f"{name}: {what} must have at least {least} dimensions.")
    if A.dtype is not B.dtype:
        raise RuntimeError(f"{name}: Expected input and other to have the same dtype, but got input's dtype {A.dtype.scalar_name} and other's dtype {B.dtype.scalar_name}")
    vector = A.ndim - 1 == B.ndim and tuple(A.shape[:-1]) == tuple(B.shape)
    full = B.unsqueeze(-1) if vector else B
    if full.ndim < 2 or full.shape[-2] != A.shape[-2]:
        dim = "-1" if vector or B.ndim == 1 else "-2"
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({dim})")
    driver = "gelsy" if driver is None else driver
    if driver not in _DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    computed("linalg_lstsq_cpu", A)
    (m, n), k = A.shape[-2:], full.shape[-1]
    batch = broadcast_shapes(A.shape[:-2], full.shape[:-2])
    cut = dtypes.finfo(A.dtype).eps * max(m, n) if rcond is None else float(rcond)
    kept = (*batch, min(m, n)) if driver in ("gelsd", "gelss") else (0,)
    outs = [((*batch, n, k), A.dtype, "columns"), (A.shape[:-2] if driver != "gels" else (0,), dtypes.int64), (kept, A.dtype.to_real())]
    X, rank, values = lapack.compute((A, full), outs, lambda a, b: _least_squares(a, b, cut, driver))
    X = X.squeeze(-1) if vector else X
    if tracking(A, B):
        record(LinalgLstsqBackward0, (A, B), X, (A, B, X), vector=vector)
    return TYPES["linalg_lstsq"]((X, _residuals(A, full, X.unsqueeze(-1) if vector else X, rank, driver), rank, values))


def _least_squares(a, b, cut, driver):
    import numpy

    U, S, Vh = numpy.linalg.svd(lapack.exact(a), full_matrices=False)
    used = S > cut * S.max(-1, keepdims=True, initial=0)
    X = lapack.adjoint(Vh) @ (numpy.where(used, 1 / numpy.where(used, S, 1), 0)[..., None] * (lapack.adjoint(U) @ b))
    return X, used.sum(-1) if driver != "gels" else numpy.zeros(0), S if driver in ("gelsd", "gelss") else numpy.zeros(0)


def _residuals(A, B, X, rank, driver):
    """Squared norms of the columns of AX - B, where A has more rows than columns and full rank; else an empty tensor."""
    m, n = A.shape[-2:]
    if m > n and driver != "gelsy" and (driver == "gels" or A.is_meta or bool((rank == n).all())):
        difference = A @ X - B
        return (difference.abs() if A.dtype.is_complex else difference).square().sum(-2)
    empty = TABLE["clone"].call(X.reshape(-1).narrow(0, 0, 0))  # with a history as the others
    return empty.real if A.dtype.is_complex else empty


@backward("LinalgLstsq", saved_names=("self", "b", "solution"))
def LinalgLstsqBackward0(node, g):
    """X = A⁺ B: through the product and the pseudo-inverse."""
    A, B, X = node.saved
    if node.vector:
        B, g = B.unsqueeze(-1), g.unsqueeze(-1)
    P = pinv(A)
    gA = sum_to(pinv_gradient(g @ B.mH, P, A), A.shape) if node.needs[0] else None
    gB = sum_to(P.mH @ g, B.shape) if node.needs[1] else None
    return gA, gB.squeeze(-1) if node.vector and gB is not None else gB


# ---- pseudo-inverse and rank --------------------------------------------------------------------------------------------------------


def _tolerances(A, atol, rtol):
    """(atol, rtol) as tensors' arrays or numbers: without either, rtol is eps * max(m, n); with atol alone, 0."""
    if rtol is None:
        given = atol is not None and (isinstance(atol, Tensor) or atol > 0)
        rtol = dtypes.finfo(A.dtype).eps * max(A.shape[-2:])
        if isinstance(atol, Tensor):
            rtol = TABLE["where"].call(atol > 0, 0.0, rtol)
        elif given:
            rtol = 0.0
    return (0.0 if atol is None else atol), rtol


def _threshold(largest, atol, rtol):
    """max(atol, rtol * largest) on arrays."""
    import numpy

    a, r = (host.array(t) if isinstance(t, Tensor) else t for t in (atol, rtol))
    return numpy.maximum(a, r * largest)


@operator("linalg_pinv", method=False, out=True, namespace="linalg", autocast="float32", flops=_thin(22))
def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None):
    """Moore and Penrose's pseudo-inverse: [*, m, n] -> [*, n, m]. Singular values up to max(atol, rtol * the largest) count as 0.

    rtol (or rcond, its older name): default eps * max(m, n), or 0 with an atol. Tolerances are numbers or tensors [*]. hermitian: A is symmetric (Hermitian).
    """
    are_tensors("linalg_pinv", input=A)
    if A.ndim < 2 or A.dtype not in COMPUTED:
        raise RuntimeError(
            f"linalg.pinv({A.dtype.scalar_name}{{{list(A.shape)}}}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types"
        )
    if hermitian:
        square("linalg.pinv", A)
    atol, rtol = (0.0, rcond) if rcond is not None else _tolerances(A, atol, rtol)
    out = lapack.compute((A,), [((*A.shape[:-2], A.shape[-1], A.shape[-2]), A.dtype)], lambda a: _pseudo_inverse(a, hermitian, atol, rtol))
    if tracking(A):
        record(LinalgPinvBackward0, (A,), out, (A, out))
    return out


def _pseudo_inverse(a, hermitian, atol, rtol):
    import numpy

    if a.size == 0:
        return numpy.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]))
    a = lapack.exact(a)
    if hermitian:
        L, U = numpy.linalg.eigh(a)
        S, Vh = numpy.abs(L), numpy.sign(L)[..., None] * lapack.adjoint(U)
    else:
        U, S, Vh = decompose(a, False)
    used = S > numpy.asarray(_threshold(S.max(-1), atol, rtol))[..., None]
    return lapack.adjoint(Vh) @ (numpy.where(used, 1 / numpy.where(used, S, 1), 0)[..., None] * lapack.adjoint(U))


@backward("LinalgPinv", saved_names=("self", "result"))
def LinalgPinvBackward0(node, g):
    A, P = node.saved
    return (pinv_gradient(g, P, A),)


def pinv_gradient(g, P, A):
    """dP = -P dA P + P Pᴴ dAᴴ (1 - A P) + (1 - P A) dAᴴ Pᴴ P, at constant rank."""
    back, through = g.mH @ P, P @ g.mH  # [*, m, m], [*, n, n]
    outer, inner = P.mH @ through, back @ P.mH  # [*, m, n]
    return -(P.mH @ g @ P.mH) + (inner - A @ (P @ inner)) + (outer - (outer @ P) @ A)


@operator("pinverse", autocast="float32", flops=_thin(22))
def pinverse(input, rcond=1e-15):
    """`linalg.pinv` with rtol = rcond."""
    return pinv(input, rcond)


@operator("linalg_matrix_rank", method=False, out=True, namespace="linalg", autocast="float32", flops=_thin(4))
def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None):
    """How many singular values exceed max(atol, rtol * the largest): [*, m, n] -> int64 [*]. Defaults as in `pinv`; tol is atol with rtol = 0."""
    are_tensors("linalg_matrix_rank", input=A)
    matrices("torch.linalg.matrix_rank", A, "input")
    if hermitian:
        square("torch.linalg.matrix_rank", A, "input")
    if A.dtype not in COMPUTED:
        raise RuntimeError("This function doesn't handle types other than float and double")
    atol, rtol = (tol, 0.0) if tol is not None else _tolerances(A, atol, rtol)
    shape = A.shape[:-2]
    for t in (atol, rtol):
        if isinstance(t, Tensor):
            shape = broadcast_shapes(shape, t.shape)

    def rank(a):
        import numpy

        S = numpy.abs(numpy.linalg.eigvalsh(a)) if hermitian else decompose(a, False, False)
        return (S > numpy.asarray(_threshold(S.max(-1, initial=0), atol, rtol))[..., None]).sum(-1)

    return lapack.compute((A,), [(shape, dtypes.int64)], rank)
