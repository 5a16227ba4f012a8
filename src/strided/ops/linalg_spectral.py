"""Singular values and eigenvalues; powers and the exponential of matrices. Each with its gradient.

Least squares, the pseudo-inverse and the rank are in linalg_least.py.
"""
from __future__ import annotations

from .. import dtypes
from ..autograd import backward, record, tracking
from . import linalg_host as lapack
from .linalg_checks import LinAlgError, are_tensors, computed, floating, matrices, square
from .linalg_solve import _cube, inv, solve_ex
from .return_types import TYPES
from .table import TABLE, operator


def _thin(factor):
    """About factor · (rows · columns · the smaller of them) operations a matrix [*, m, n], the first argument."""
    return lambda args, kwargs, result: int(factor * args[0].numel() * min(args[0].shape[-2:]))


# ---- singular values ----------------------------------------------------------------------------------------------------------------


def _check_svd(A, driver=None):
    are_tensors("linalg_svd", A=A)
    matrices("linalg.svd", A)
    floating("linalg.svd", A)
    computed("linalg_svd_cpu", A)
    if driver is not None:
        raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")


def decompose(a, full, vectors=True):
    import numpy

    try:
        if vectors and a.shape[-1] and a.shape[-2]:
            return tuple(numpy.linalg.svd(a, full_matrices=full))
        if a.shape[-1] and a.shape[-2]:
            return numpy.linalg.svd(a, compute_uv=False)
    except numpy.linalg.LinAlgError:
        why = "contained non-finite values" if not numpy.isfinite(a).all() else "is ill-conditioned or has too many repeated singular values"
        raise LinAlgError(f"linalg.svd: The algorithm failed to converge because the input matrix {why}.") from None
    m, n = a.shape[-2:]
    k = 0
    values = numpy.zeros((*a.shape[:-2], 0))
    return (numpy.eye(m, m if full else k), values, numpy.eye(n if full else k, n)) if vectors else values


def _svd(A, full, driver=None):
    _check_svd(A, driver)
    batch, (m, n) = A.shape[:-2], A.shape[-2:]
    k = min(m, n)
    shapes = [(*batch, m, m if full else k), (*batch, k), (*batch, n if full else k, n)]
    outs = [(shapes[0], A.dtype, "columns"), (shapes[1], A.dtype.to_real()), (shapes[2], A.dtype, "columns")]
    results = lapack.compute((A,), outs, lambda a: decompose(a, full))
    if tracking(A):
        record(LinalgSvdBackward0, (A,), results, results)
    return results


@operator("linalg_svd", method=False, out=True, namespace="linalg", autocast="float32", flops=_thin(20))
def linalg_svd(A, full_matrices=True, *, driver=None):
    """(U, S, Vh) with A = U diag(S) Vh: [*, m, n] -> [*, m, m], [*, k], [*, n, n], k = min(m, n), S descending; without full_matrices [*, m, k] and [*, k, n].

    The gradient is that of the k first singular vectors, and finite only where the singular values differ. LinAlgError where A is not finite.
    """
    return TYPES["linalg_svd"](_svd(A, full_matrices, driver))


@operator("svd", out=True, autocast="float32", flops=_thin(20))
def svd(input, some=True, compute_uv=True):
    """(U, S, V) with input = U diag(S) Vᴴ, as `linalg.svd` has it; zeros for U and V without compute_uv."""
    if compute_uv:
        U, S, Vh = _svd(input, not some)
        return TYPES["svd"]((U, S, Vh.mH))
    S, (m, n) = svdvals(input), input.shape[-2:]
    zeros = [TABLE["zeros"].call((*input.shape[:-2], size, size), dtype=input.dtype, device=input.device) for size in (m, n)]
    return TYPES["svd"]((zeros[0], S, zeros[1]))


@operator("linalg_svdvals", method=False, out=True, namespace="linalg", autocast="float32", flops=_thin(4))
def svdvals(A):
    """Singular values in descending order: [*, m, n] -> [*, min(m, n)]."""
    are_tensors("linalg_svdvals", A=A)
    if tracking(A):
        return _svd(A, False)[1]
    _check_svd(A)
    return lapack.compute((A,), [((*A.shape[:-2], min(A.shape[-2:])), A.dtype.to_real())], lambda a: decompose(a, False, False))


@backward("LinalgSvd", saved_names=("U", "S", "Vh"))
def LinalgSvdBackward0(node, gU, gS, gVh):
    """With dP = Uᴴ dA V: dS is its diagonal; what is off the diagonal turns U and V, over differences of squares of singular values.

    Complex singular vectors are determined up to a phase common to both: a loss that depends on it has no gradient, which is a RuntimeError.
    """
    U, S, Vh = node.saved
    (m, n), k = (U.shape[-2], Vh.shape[-1]), S.shape[-1]
    U, Vh = U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)  # [*, m, k], [*, k, n]
    if gU is None and gVh is None:
        return ((U * gS.unsqueeze(-2)) @ Vh,)
    gap = S.unsqueeze(-2) ** 2 - S.unsqueeze(-1) ** 2  # [*, k, k]: s_j² - s_i²
    gap = gap + TABLE["eye"].call(k, dtype=S.dtype, device=S.device)
    inner, skew_u, skew_v = 0, None, None
    if gU is not None:
        gU = gU.narrow(-1, 0, k)
        turned = U.mH @ gU
        skew_u = turned - turned.mH
        inner = skew_u / gap * S.unsqueeze(-2)
    if gVh is not None:
        gVh = gVh.narrow(-2, 0, k)
        turned = Vh @ gVh.mH
        skew_v = turned - turned.mH
        inner = inner + S.unsqueeze(-1) * (skew_v / gap)
    if U.dtype.is_complex:
        phase = [skew.diagonal(0, -2, -1) for skew in (skew_u, skew_v) if skew is not None]
        _check_phase("svd_backward: The singular vectors", "this phase term, making it ill-defined", sum(phase).imag)
        if len(phase) == 2:
            inner = inner + (phase[0] / (2 * S)).diag_embed()
    if gS is not None:
        inner = inner + gS.diag_embed()
    gA = U @ inner @ Vh
    if gU is not None and m > k:  # what U turns towards outside its own span
        outside = gU / S.unsqueeze(-2)
        gA = gA + (outside - U @ (U.mH @ outside)) @ Vh
    if gVh is not None and n > k:
        outside = gVh / S.unsqueeze(-1)
        gA = gA + U @ (outside - (outside @ Vh.mH) @ Vh)
    return (gA,)


def _check_phase(what, depends, phase):
    """RuntimeError where a loss depends on the phase of complex singular vectors or eigenvectors."""
    if not phase.is_meta and bool((phase.abs() > 1e-2).any()):
        raise RuntimeError(f"{what} in the complex case are specified up to multiplication by e^{{i phi}}. The specified loss function depends on {depends}.")


# ---- eigenvalues --------------------------------------------------------------------------------------------------------------------


def _eigh(A, UPLO, vectors, caller="linalg_eigh"):
    are_tensors(caller, input=A)
    name = "linalg.eigh"
    square(name, A)
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    computed("linalg_eigh_cpu", A)
    outs = [(A.shape[:-1], A.dtype.to_real()), (A.shape, A.dtype, "columns")]

    def decompose(a):
        import numpy

        try:
            return tuple(numpy.linalg.eigh(a, UPLO)) if vectors else numpy.linalg.eigvalsh(a, UPLO)
        except numpy.linalg.LinAlgError:
            raise LinAlgError(f"{name}: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues.") from None

    results = lapack.compute((A,), outs if vectors else outs[:1], decompose)
    if vectors and tracking(A):
        record(LinalgEighBackward0, (A,), results, results)
    return results


@operator("linalg_eigh", method=False, out=True, namespace="linalg", autocast="float32", flops=_cube(9))
def eigh(A, UPLO="L"):
    """(eigenvalues, eigenvectors) of symmetric (or Hermitian) A [*, n, n], of which the lower (or upper: "U") triangle is read: [*, n] ascending, [*, n, n] in columns.

    The gradient is finite only where the eigenvalues differ.
    """
    return TYPES["linalg_eigh"](_eigh(A, UPLO, True))


@operator("linalg_eigvalsh", method=False, out=True, namespace="linalg", autocast="float32", flops=_cube(4 / 3))
def eigvalsh(A, UPLO="L"):
    """Eigenvalues of symmetric (or Hermitian) matrices in ascending order: [*, n, n] -> [*, n]."""
    own = "linalg_eigvalsh"
    return _eigh(A, UPLO, True, own)[0] if tracking(A) else _eigh(A, UPLO, False, own)


@backward("LinalgEigh", saved_names=("eigenvalues", "eigenvectors"))
def LinalgEighBackward0(node, gL, gV):
    """V (gL on the diagonal, Vᴴ gV over differences of eigenvalues off it) Vᴴ, its symmetric (or Hermitian) part."""
    L, V = node.saved
    if gV is None:
        return ((V * gL.unsqueeze(-2)) @ V.mH,)
    eye = TABLE["eye"].call(L.shape[-1], dtype=dtypes.bool_, device=L.device)
    gap = (L.unsqueeze(-2) - L.unsqueeze(-1)).masked_fill(eye, 1)  # [*, n, n]: l_j - l_i
    turned = V.mH @ gV
    if V.dtype.is_complex:
        _check_phase("linalg_eigh_backward: The eigenvectors", "this quantity, so it is ill-defined", turned.diagonal(0, -2, -1).imag)
    inner = (turned / gap).masked_fill(eye, 0)
    if gL is not None:
        inner = inner + gL.diag_embed()
    gA = V @ inner @ V.mH
    return ((gA + gA.mH) / 2,)


def _eig(name, A, vectors):
    are_tensors(name, input=A)
    name = name.replace("_", ".")
    square(name, A)
    dtype = A.dtype.to_complex()  # raises for integers
    floating(name, A, low=False)
    if not A.is_meta and not bool(A.isfinite().all()):
        raise RuntimeError(f"torch.{name}: input tensor should not contain infs or NaNs.")
    outs = [(A.shape[:-1], dtype), (A.shape, dtype, "columns")]

    def decompose(a):
        import numpy

        try:
            return tuple(numpy.linalg.eig(a)) if vectors else numpy.linalg.eigvals(a)
        except numpy.linalg.LinAlgError:
            raise LinAlgError(f"{name}: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues.") from None

    results = lapack.compute((A,), outs if vectors else outs[:1], decompose)
    if vectors and tracking(A):
        record(LinalgEigBackward0, (A,), results, results, real=not A.dtype.is_complex)
    return results


@operator("linalg_eig", method=False, out=True, namespace="linalg", autocast="float32", flops=_cube(25))
def eig(A):
    """(eigenvalues, eigenvectors) of square matrices [*, n, n]: complex [*, n], [*, n, n], a column of length 1 for each. In no particular order.

    The gradient is finite only where the eigenvalues differ, and exists only for losses that do not depend on the phases of the eigenvectors.
    """
    return TYPES["linalg_eig"](_eig("linalg_eig", A, True))


@operator("linalg_eigvals", method=False, out=True, namespace="linalg", autocast="float32", flops=_cube(10))
def eigvals(A):
    """Eigenvalues of square matrices: [*, n, n] -> complex [*, n], in no particular order."""
    return _eig("linalg_eigvals", A, True)[0] if tracking(A) else _eig("linalg_eigvals", A, False)


@backward("LinalgEig", saved_names=("eigenvalues", "eigenvectors"))
def LinalgEigBackward0(node, gL, gV):
    """V⁻ᴴ (gL on the diagonal; off it Vᴴ gV, without what changes the vectors' lengths, over conjugated differences of eigenvalues) Vᴴ."""
    L, V = node.saved
    if gV is None:
        inner = gL.unsqueeze(-1) * V.mH
    else:
        turned = V.mH @ gV
        diagonal = turned.diagonal(0, -2, -1)
        _check_phase("linalg_eig_backward: The eigenvectors", "this quantity, so it is ill-defined", diagonal.imag)
        eye = TABLE["eye"].call(L.shape[-1], dtype=dtypes.bool_, device=L.device)
        gap = (L.unsqueeze(-2) - L.unsqueeze(-1)).conj().masked_fill(eye, 1)  # [*, n, n]: l_j - l_i
        inner = ((turned - V.mH @ (V * diagonal.real.unsqueeze(-2))) / gap).masked_fill(eye, 0)
        if gL is not None:
            inner = inner + gL.diag_embed()
        inner = inner @ V.mH
    gA = solve_ex(V.mH, inner)[0]
    return (gA.real if node.real else gA,)


# ---- powers and the exponential -----------------------------------------------------------------------------------------------------


def _power_flops(args, kwargs, result):
    n = abs(args[1]) if len(args) > 1 else abs(kwargs["n"])
    products = max(n.bit_length() - 1, 0) + max(bin(n).count("1") - 1, 0)
    return 2 * args[0].numel() * args[0].shape[-1] * (products + (len(args) > 1 and args[1] < 0))


@operator("matrix_power", out=True, autocast="parts", flops=_power_flops)
def matrix_power(input, n):
    """A multiplied n times with itself (n >= 0) or its inverse |n| times: [*, m, m] -> [*, m, m]. LinAlgError for n < 0 and a singular matrix."""
    square("linalg.matrix_power", input)
    if not isinstance(n, int):
        raise TypeError(f"linalg_matrix_power(): argument 'n' (position 2) must be int, not {type(n).__name__}")
    if n == 0:
        return input.clone().copy_(TABLE["eye"].call(input.shape[-1], dtype=input.dtype, device=input.device).expand(input.shape))
    base, n, result = (inv(input), -n, None) if n < 0 else (input, n, None)
    if n == 1:
        return base.clone() if base is input else base
    while True:  # by the binary digits of n
        if n & 1:
            result = base if result is None else result @ base
        n >>= 1
        if not n:
            return result
        base = base @ base


@operator("matrix_exp", autocast="float32", flops=_cube(16))
def matrix_exp(input):
    """e^A = 1 + A + A² / 2 + …: [*, n, n] -> [*, n, n]."""
    are_tensors("linalg_matrix_exp", input=input)
    square("linalg.matrix_exp", input)
    floating("linalg.matrix_exp", input)
    out = lapack.compute((input,), [(input.shape, input.dtype)], lapack.matrix_exp)
    if tracking(input):
        record(LinalgMatrixExpBackward0, (input,), out, (input,))
    return out


@backward("LinalgMatrixExp", saved_names=("self",))
def LinalgMatrixExpBackward0(node, g):
    """The derivative of e^A at Aᴴ in direction g is the upper right block of exp([[Aᴴ, g], [0, Aᴴ]])."""
    (A,) = node.saved
    n, cat = A.shape[-1], TABLE["cat"].call
    if A.numel() == 0:
        return (TABLE["zeros_like"].call(A),)
    block = cat([cat([A.mH, g], -1), cat([TABLE["zeros_like"].call(g), A.mH], -1)], -2)  # [*, 2n, 2n]
    return (matrix_exp(block).narrow(-2, 0, n).narrow(-1, n, n),)
