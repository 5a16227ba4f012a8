"""Products of arrays, and the standard's extension for linear algebra (`xp.linalg`)."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..dtypes import DType
from ..layout import broadcast_shapes, wrap_dim
from ..ops import linalg as _linalg  # fills the table
from ..ops.table import functions
from ..tensor import Tensor
from .calls import call
from .elementwise import pair
from .manipulation import flat_axes
from .statistical import _wide

assert _linalg

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv",
    "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip

_FUNCTIONS = {name.removeprefix("linalg_"): call for name, call in functions("linalg").items()}


def _call(name: str, *args: Any, **kwargs: Any) -> Any:
    found = _FUNCTIONS.get(name)
    return found(*args, **kwargs) if found is not None else call(name, *args, **kwargs)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Matrix products [..., m, k] × [..., k, n]; a vector stands for a row on the left and a column on the right."""
    return call("matmul", *pair(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two dimensions exchanged."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose(): an array of at least 2 dimensions is needed, not {x.ndim}")
    return call("transpose", x, -2, -1)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over axes: the last n of x1 with the first n of x2, or two sequences of axes."""
    a, b = pair(x1, x2)
    return call("tensordot", a, b, dims=axes if isinstance(axes, int) else (list(axes[0]), list(axes[1])))


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Dot products along an axis (counted from the end), the other dimensions broadcast; x1 is conjugated."""
    if axis >= 0 or axis < -min(x1.ndim, x2.ndim):
        raise ValueError(f"vecdot(): axis counts from the end, -1 … -{min(x1.ndim, x2.ndim)}, but got {axis}")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot(): sizes {x1.shape[axis]} and {x2.shape[axis]} differ along axis {axis}")
    a, b = pair(x1, x2)
    shape = broadcast_shapes(a.shape, b.shape)
    a, b = (call("movedim", call("broadcast_to", x, shape), axis, -1) for x in (a, b))
    # [..., 1, n] × [..., n, 1]
    out = call("matmul", call("unsqueeze", a.conj() if a.is_complex() else a, -2), call("unsqueeze", b, -1))
    return call("reshape", out, out.shape[:-2])


# ---- the extension ---------------------------------------------------------------------------


class Eig(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class Eigh(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class QR(NamedTuple):
    Q: Tensor
    R: Tensor


class SlogDet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


class SVD(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    return _call("cholesky", x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Cross products of vectors of 3 along an axis counted from the end."""
    if axis >= 0 or axis < -min(x1.ndim, x2.ndim):
        raise ValueError(f"cross(): axis counts from the end, -1 … -{min(x1.ndim, x2.ndim)}, but got {axis}")
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"cross(): both arrays have size 3 along axis {axis}, but got {x1.shape[axis]} and {x2.shape[axis]}")
    a, b = pair(x1, x2)
    shape = broadcast_shapes(a.shape, b.shape)
    return _call("cross", call("broadcast_to", a, shape), call("broadcast_to", b, shape), dim=axis)


def det(x: Tensor, /) -> Tensor:
    return _call("det", x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonal of the last two dimensions."""
    return call("diagonal", x, offset, -2, -1)


def eig(x: Tensor, /) -> Any:
    """(eigenvalues, eigenvectors) of general matrices, both complex."""
    return Eig(*_call("eig", x))


def eigvals(x: Tensor, /) -> Tensor:
    return _call("eigvals", x)


def eigh(x: Tensor, /) -> Any:
    return Eigh(*_call("eigh", x))


def eigvalsh(x: Tensor, /) -> Tensor:
    return _call("eigvalsh", x)


def inv(x: Tensor, /) -> Tensor:
    return _call("inv", x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    return _call("matrix_norm", x, ord=ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    return _call("matrix_power", x, n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    return _call("matrix_rank", x) if rtol is None else _call("matrix_rank", x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Every product of an element of one vector with one of another: [n, m]."""
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"outer(): two vectors are needed, but got arrays of {x1.ndim} and {x2.ndim} dimensions")
    a, b = pair(x1, x2)
    return call("mul", call("unsqueeze", a, 1), b)


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    return _call("pinv", x) if rtol is None else _call("pinv", x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> Any:
    return QR(*_call("qr", x, mode))


def slogdet(x: Tensor, /) -> Any:
    return SlogDet(*_call("slogdet", x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """X of x1 X = x2. x2 is one vector where it has one dimension, else matrices [..., m, k]."""
    a, b = pair(x1, x2)
    if b.ndim == 1:
        return call("squeeze", _call("solve", a, call("unsqueeze", b, -1)), -1)
    shape = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return _call("solve", call("broadcast_to", a, (*shape, *a.shape[-2:])), call("broadcast_to", b, (*shape, *b.shape[-2:])))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    return SVD(*_call("svd", x, full_matrices=full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    return _call("svdvals", x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """The sums of the diagonals of the last two dimensions."""
    return call("sum", diagonal(x, offset=offset), -1, dtype=dtype or _wide(x.dtype))


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: int | float = 2) -> Tensor:
    """Norms of the vectors along axes (several: the elements of all of them)."""
    axes = flat_axes(axis, x.ndim)
    if not axes:  # each element is a vector
        out = call("abs", x)
        return call("ne", x, 0).to(out.dtype) if ord == 0 else out
    return _call("vector_norm", x, ord, dim=tuple(wrap_dim(d, x.ndim) for d in axes), keepdim=keepdims)
