"""Linear algebra, as torch.linalg has it. Written by tools/stubs.py."""
from builtins import bool as _bool, bytes as _bytes, complex as _complex, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterator
from typing import Any, overload

from strided.ops.linalg_checks import LinAlgError as LinAlgError
from strided.tensor import Tensor as Tensor, _linalg_cholesky_ex as _linalg_cholesky_ex, _linalg_eig as _linalg_eig, _linalg_eigh as _linalg_eigh, _linalg_inv_ex as _linalg_inv_ex, _linalg_ldl_factor as _linalg_ldl_factor, _linalg_ldl_factor_ex as _linalg_ldl_factor_ex, _linalg_lstsq as _linalg_lstsq, _linalg_lu as _linalg_lu, _linalg_lu_factor as _linalg_lu_factor, _linalg_lu_factor_ex as _linalg_lu_factor_ex, _linalg_qr as _linalg_qr, _linalg_slogdet as _linalg_slogdet, _linalg_solve_ex as _linalg_solve_ex, _linalg_svd as _linalg_svd

def cholesky(A, *, upper=False, out=None) -> Tensor:
    r"""L of `cholesky_ex`; LinAlgError where A is not positive-definite."""
def cholesky_ex(A, *, upper=False, check_errors=False, out=None) -> _linalg_cholesky_ex:
    r"""(L, info) with A = L Lᴴ, or with `upper` A = Lᴴ L, for symmetric (Hermitian) positive-definite A [*, n, n], of which one triangle is read."""
def cond(A, p=None, *, out=None) -> Tensor:
    r"""Condition numbers ‖A‖ ‖A⁻¹‖: [*, n, n] -> [*]. p as `matrix_norm`'s ord; None (2) and -2 take singular values, [*, m, n]. inf for a singular matrix."""
def cross(input, other, *, dim=-1, out=None) -> Tensor:
    r"""Cross products of vectors of three elements along `dim`; the other dimensions broadcast."""
def det(input, *, out=None) -> Tensor:
    r"""Determinants of square matrices: [*, n, n] -> [*]."""
def diagonal(A, *, offset=0, dim1=-2, dim2=-1) -> Tensor:
    r"""A view of the diagonals of the matrices in two dimensions, at the end: [*, n, n] -> [*, n]."""
def eig(A, *, out=None) -> _linalg_eig:
    r"""(eigenvalues, eigenvectors) of square matrices [*, n, n]: complex [*, n], [*, n, n], a column of length 1 for each. In no particular order."""
def eigh(A, UPLO='L', *, out=None) -> _linalg_eigh:
    r"""(eigenvalues, eigenvectors) of symmetric (or Hermitian) A [*, n, n], of which the lower (or upper: "U") triangle is read: [*, n] ascending, [*, n, n] in columns."""
def eigvals(A, *, out=None) -> Tensor:
    r"""Eigenvalues of square matrices: [*, n, n] -> complex [*, n], in no particular order."""
def eigvalsh(A, UPLO='L', *, out=None) -> Tensor:
    r"""Eigenvalues of symmetric (or Hermitian) matrices in ascending order: [*, n, n] -> [*, n]."""
def householder_product(A, tau, *, out=None) -> Tensor:
    r"""The first n columns of the product of the reflections 1 - tau v vᴴ that `geqrf` stores: [*, m, n], [*, k] -> [*, m, n], k <= n <= m."""
def inv(A, *, out=None) -> Tensor:
    r"""Inverses of square matrices, [*, n, n]. LinAlgError for a singular one."""
def inv_ex(A, *, check_errors=False, out=None) -> _linalg_inv_ex:
    r"""(inverse, info) of square matrices [*, n, n]; info, int32 [*], is 0, or the number of the zero pivot that makes a matrix singular."""
def ldl_factor(A, *, hermitian=False, out=None) -> _linalg_ldl_factor:
    r"""(LD, pivots) of `ldl_factor_ex`; LinAlgError where D has a zero block."""
def ldl_factor_ex(A, *, hermitian=False, check_errors=False, out=None) -> _linalg_ldl_factor_ex:
    r"""(LD, pivots, info) of symmetric A = L D Lᵀ (or Hermitian A = L D Lᴴ) [*, n, n], of which the lower triangle is read."""
def ldl_solve(LD, pivots, B, *, hermitian=False, out=None) -> Tensor:
    r"""X with AX = B, [*, n, k], from A's `ldl_factor`."""
def lstsq(A, B, rcond=None, *, driver=None, out=None) -> _linalg_lstsq:
    r"""(solution, residuals, rank, singular_values): X that makes ‖AX - B‖ least, for A [*, m, n] and B [*, m, k] or [*, m]."""
def lu(A, *, pivot=True, out=None) -> _linalg_lu:
    r"""(P, L, U) with A = P L U: [*, m, n] -> permutation [*, m, m], lower triangle with ones [*, m, k], upper triangle [*, k, n], k = min(m, n)."""
def lu_factor(A, *, pivot=True, out=None) -> _linalg_lu_factor:
    r"""(LU, pivots) of `lu_factor_ex`; RuntimeError where U has a zero on its diagonal."""
def lu_factor_ex(A, *, pivot=True, check_errors=False, out=None) -> _linalg_lu_factor_ex:
    r"""(LU, pivots, info): L (below the diagonal, ones on it left out) and U of A = P L U in one matrix [*, m, n], row exchanges int32 [*, k] from 1, k = min(m, n)."""
def lu_solve(LU, pivots, B, *, left=True, adjoint=False, out=None) -> Tensor:
    r"""X with AX = B, or XA = B without `left`, from A's `lu_factor`; with `adjoint`, Aᴴ in A's place. LU [*, n, n], pivots [*, n], B [*, n, k]."""
def matmul(input, other, *, out=None) -> Tensor:
    r"""Matrix product [*, m, k] @ [*, k, n] -> [*, m, n]; batch dimensions broadcast, vectors lose their dimension in the result."""
def matrix_exp(input) -> Tensor:
    r"""e^A = 1 + A + A² / 2 + …: [*, n, n] -> [*, n, n]."""
def matrix_norm(A, ord='fro', dim=..., keepdim=False, *, dtype=None, out=None) -> Tensor:
    r"""Norms of the matrices in two dimensions `dim`: [*, m, n] -> [*]."""
def matrix_power(input, n, *, out=None) -> Tensor:
    r"""A multiplied n times with itself (n >= 0) or its inverse |n| times: [*, m, m] -> [*, m, m]. LinAlgError for n < 0 and a singular matrix."""
def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None, out=None) -> Tensor:
    r"""How many singular values exceed max(atol, rtol * the largest): [*, m, n] -> int64 [*]. Defaults as in `pinv`; tol is atol with rtol = 0."""
def multi_dot(tensors, *, out=None) -> Tensor:
    r"""Product of several matrices in the order that costs least; the first and the last may be vectors."""
def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None, out=None) -> Tensor:
    r"""A matrix norm where `dim` names two dimensions (or A has two and `ord` is given), else a vector norm; without `ord`, 2 over all of `dim`."""
def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None, out=None) -> Tensor:
    r"""Moore and Penrose's pseudo-inverse: [*, m, n] -> [*, n, m]. Singular values up to max(atol, rtol * the largest) count as 0."""
def qr(A, mode='reduced', *, out=None) -> _linalg_qr:
    r"""(Q, R) with A = Q R: [*, m, n] -> [*, m, k], [*, k, n], Q's columns orthonormal, R upper triangular."""
def slogdet(A, *, out=None) -> _linalg_slogdet:
    r"""(sign, logabsdet) of the determinants of square matrices: [*, n, n] -> [*], [*]. A singular matrix has sign 0 and -inf."""
def solve(A, B, *, left=True, out=None) -> Tensor:
    r"""X with AX = B, or XA = B without `left`: A [*, n, n]; B [*, n, k], or a vector [n] or [*, n]. LinAlgError for a singular A."""
def solve_ex(A, B, *, left=True, check_errors=False, out=None) -> _linalg_solve_ex:
    r"""(result, info) of AX = B, or XA = B without `left`: A [*, n, n]; B [*, n, k], or a vector [*, n] with A's batch. info as in `inv_ex`."""
def solve_triangular(A, B, *, upper, left=True, unitriangular=False, out=None) -> Tensor:
    r"""X with AX = B (or XA = B), A [*, n, n] read as upper or lower triangular, with ones on its diagonal if `unitriangular`. A zero there gives infinities."""
def svd(A, full_matrices=True, *, driver=None, out=None) -> _linalg_svd:
    r"""(U, S, Vh) with A = U diag(S) Vh: [*, m, n] -> [*, m, m], [*, k], [*, n, n], k = min(m, n), S descending; without full_matrices [*, m, k] and [*, k, n]."""
def svdvals(A, *, out=None) -> Tensor:
    r"""Singular values in descending order: [*, m, n] -> [*, min(m, n)]."""
def tensorinv(A, ind=2, *, out=None) -> Tensor:
    r"""The inverse of A as a map between tensors: [*m, *n] with `ind` dimensions in m and prod(m) == prod(n) -> [*n, *m]."""
def tensorsolve(A, B, dims=None, *, out=None) -> Tensor:
    r"""X with tensordot(A, X, X.ndim) == B: A [*B.shape, *X.shape] once its `dims` are moved to the end."""
def vander(x, *, N=None) -> Tensor:
    r"""Powers 0 … N - 1 of every element (N: by default the length of the last dimension): [*, n] -> [*, n, N]."""
def vecdot(x, y, *, dim=-1, out=None) -> Tensor:
    r"""Sums of products along one dimension, of the conjugate of x with y; the others broadcast."""
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None, out=None) -> Tensor:
    r"""The vector norm (sum |x|^ord)^(1/ord) of all elements, or along `dim`; ord may be 0 (how many are not 0), inf or -inf."""
