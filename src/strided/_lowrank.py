"""The largest singular values of a matrix from random samples of its range: `svd_lowrank` and `pca_lowrank`.

Source: N. Halko, P. G. Martinsson, J. A. Tropp, "Finding structure with randomness", SIAM Review 53 (2011), algorithms 4.4 (the range, by iterations that stay orthogonal) and 5.1.
The samples are drawn as PyTorch draws them, so that the same seed gives the same factors (up to signs that QR and SVD leave open).
"""
from __future__ import annotations

from typing import Any

from . import linalg
from .ops import random
from .tensor import Tensor


def get_approximate_basis(A: Tensor, q: int, niter: int | None = 2, M: Tensor | None = None) -> Tensor:
    """[..., m, q]: an orthonormal basis of about what A [..., m, n] (or A - M) stretches most, from q samples of its range and `niter` iterations.

    Raises what matmul and qr raise for operands that do not fit.
    """

    def apply(transposed: bool, x: Tensor) -> Any:
        y = (A.mH if transposed else A) @ x
        return y if M is None else y - (M.mH if transposed else M) @ x

    basis = linalg.qr(apply(False, random.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)))[0]  # [..., m, q]
    for _ in range(2 if niter is None else niter):
        basis = linalg.qr(apply(True, basis))[0]  # [..., n, q]
        basis = linalg.qr(apply(False, basis))[0]  # [..., m, q]
    return basis


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """(U [..., m, q], S [..., q], V [..., n, q]) with A - M about U diag(S) V^H, for the q largest singular values; M (default 0) is broadcast to A's shape.

    It is exact, but for rounding, where A's rank is at most q. Random numbers come from the global generator.
    """
    rank = 6 if q is None else q
    if M is not None:
        M = M.broadcast_to(A.shape)
    wide = A.shape[-2] < A.shape[-1]
    if wide:  # the samples are taken of the longer side
        A, M = A.mH, None if M is None else M.mH
    basis = get_approximate_basis(A, rank, niter, M)
    small = basis.mH @ (A if M is None else A - M)  # [..., q, n]
    U, S, Vh = linalg.svd(small, full_matrices=False)
    U, V = basis @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """`svd_lowrank` of A [..., m, n] without the mean of its columns: V's columns are the q principal directions, A @ V the components. q: 6 or as many as there are.

    Raises ValueError unless 0 <= q <= min(m, n) and niter >= 0.
    """
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
