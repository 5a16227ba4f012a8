"""Norms of matrices, condition numbers, renormalisation, covariance and correlation. Written over operators, whose gradients they inherit.

Vector norms and `torch.norm` are in moments.py.
"""
from __future__ import annotations

import math

from .. import dtypes
from ..autograd import tracking
from ..layout import wrap_dim
from ..tensor import Tensor
from .linalg_checks import are_tensors, floating, matrices, square
from .linalg_solve import inv_ex
from .linalg_spectral import _thin, svdvals
from .moments import vector_norm
from .table import TABLE, add_inplace, operator

_ORDERS = (2.0, 1.0, math.inf)


def _convert(name, A, dtype):
    if dtype is None or dtype is A.dtype:
        return A
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}: dtype should be floating point or complex. Got {dtype.scalar_name}")
    if dtypes.promote(A.dtype, dtype) is not dtype:
        raise RuntimeError(f"{name}: the dtype of the input ({A.dtype.scalar_name}) should be convertible without narrowing to the specified dtype ({dtype.scalar_name})")
    return TABLE["to"].call(A, dtype)


@operator("linalg_matrix_norm", method=False, out=True, namespace="linalg", autocast="parts", flops=lambda args, kwargs, result: 2 * args[0].numel())
def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """Norms of the matrices in two dimensions `dim`: [*, m, n] -> [*].

    ord "fro": root of the sum of squares; "nuc": sum of singular values; 2, -2: the largest, smallest singular value; inf, -inf: largest, smallest sum of
    absolute values of a row; 1, -1: of a column.
    """
    name = "linalg.matrix_norm"
    are_tensors("linalg_matrix_norm", input=A)
    matrices(name, A)
    floating(name, A)
    dim = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    rows, columns = (wrap_dim(d, A.ndim) for d in dim)
    if rows == columns:
        raise RuntimeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    if isinstance(ord, str) and ord not in ("fro", "nuc") or not isinstance(ord, str) and abs(ord) not in _ORDERS:
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    A = _convert(name, A, dtype)
    if ord == "fro":
        return vector_norm(A, 2, dim, keepdim)
    if ord == "nuc" or abs(ord) == 2:
        S = svdvals(A.permute([d for d in range(A.ndim) if d not in (rows, columns)] + [rows, columns]))  # [*, k]
        out = S.sum(-1) if ord == "nuc" else _extreme(S, ord, -1, False)
        for d in sorted((rows, columns)) if keepdim else ():
            out = out.unsqueeze(d)
        return out
    summed, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = vector_norm(A, 1, summed, keepdim)
    return _extreme(sums, ord, other - (other > summed and not keepdim), keepdim)


def _extreme(x, ord, dim, keepdim):
    """The largest (ord > 0) or smallest along `dim`; 0 for the largest of none."""
    if x.shape[dim] == 0 and ord > 0:
        return x.sum(dim, keepdim)
    return x.amax(dim, keepdim) if ord > 0 else x.amin(dim, keepdim)


@operator("linalg_norm", method=False, out=True, namespace="linalg", autocast="parts", flops=lambda args, kwargs, result: 2 * args[0].numel())
def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """A matrix norm where `dim` names two dimensions (or A has two and `ord` is given), else a vector norm; without `ord`, 2 over all of `dim`."""
    are_tensors("linalg_norm", input=A)
    if dim is not None:
        dim = (dim,) if isinstance(dim, int) else tuple(dim)
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dim is not None:
        if len(dim) not in (1, 2):
            raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    elif not isinstance(ord, str) and A.ndim not in (1, 2) or isinstance(ord, str) and A.ndim > 2:
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D.")
    if isinstance(ord, str) or (len(dim) if dim is not None else A.ndim) == 2:
        return matrix_norm(A, ord, (0, 1) if dim is None and A.ndim == 2 else (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(A, ord, dim, keepdim, dtype=dtype)


@operator("nuclear_norm", method=False, autocast="float32", flops=_thin(4))
def nuclear_norm(input, dim=(-2, -1), keepdim=False):
    """`linalg.matrix_norm` with ord "nuc"."""
    return matrix_norm(input, "nuc", dim, keepdim)


@operator("frobenius_norm", method=False, autocast="float32", flops=lambda args, kwargs, result: 2 * args[0].numel())
def frobenius_norm(input, dim=(), keepdim=False):
    """The root of the sum of squares, of all or along one or two dimensions."""
    return vector_norm(input, 2, dim or None, keepdim)


@operator("linalg_cond", method=False, out=True, namespace="linalg", autocast="float32", flops=_thin(4))
def cond(A, p=None):
    """Condition numbers ‖A‖ ‖A⁻¹‖: [*, n, n] -> [*]. p as `matrix_norm`'s ord; None (2) and -2 take singular values, [*, m, n]. inf for a singular matrix."""
    are_tensors("linalg_cond", input=A)
    if A.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is None or p in (2, -2):
        S = svdvals(A)
        if S.shape[-1] == 0:
            return TABLE["zeros"].call(S.shape[:-1], dtype=S.dtype, device=S.device)
        largest, smallest = S.narrow(-1, 0, 1), S.narrow(-1, S.shape[-1] - 1, 1)
        return (smallest / largest if p == -2 else largest / smallest).squeeze(-1)
    if isinstance(p, str) and p not in ("fro", "nuc") or not isinstance(p, str) and abs(p) not in _ORDERS:
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    square(f"linalg.cond(ord={p})" if not isinstance(p, str) else f"linalg.cond({p})", A)
    if A.numel() == 0:
        return TABLE["zeros"].call(A.shape[:-2], dtype=A.dtype, device=A.device)
    inverse, info = inv_ex(A)
    inverse = inverse.masked_fill((info > 0)[..., None, None], math.inf)
    if p == "nuc" and not A.is_meta and bool((info > 0).any()):  # singular values of infinities do not exist
        finite = inverse.masked_fill((info > 0)[..., None, None], 0)
        return (matrix_norm(A, p) * matrix_norm(finite, p)).masked_fill(info > 0, math.inf)
    return matrix_norm(A, p) * matrix_norm(inverse, p)


# ---- renormalisation ----------------------------------------------------------------------------------------------------------------


@operator("renorm", out=True, flops=lambda args, kwargs, result: 3 * args[0].numel())
def renorm(input, p, dim, maxnorm):
    """Slices along `dim` whose p-norm exceeds maxnorm, scaled down to it. The shape stays."""
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    dim = wrap_dim(dim, input.ndim)
    norms = vector_norm(input, p, [d for d in range(input.ndim) if d != dim], True)  # [1, .., n, .., 1]
    return input * TABLE["where"].call(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0).to(input.dtype)


def _renorm_old_values(input, p, dim, maxnorm):
    """`renorm` for the in-place form: gradients of its parts keep a copy, as the input is overwritten."""
    return renorm(TABLE["clone"].call(input) if tracking(input) else input, p, dim, maxnorm)


_renorm_old_values.__qualname__ = "renorm_"  # what errors about its arguments call it
add_inplace(TABLE["renorm"], _renorm_old_values)


# ---- covariance ---------------------------------------------------------------------------------------------------------------------


def _weights(name, w, count, what, floats):
    """Checks of one tensor of weights, an observation each."""
    if w.ndim > 1:
        raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got {name} with {w.ndim} dimensions")
    if w.dtype.is_floating_point is not floats or w.dtype is dtypes.bool_:
        raise RuntimeError(f"cov(): expected {name} to have {what} dtype but got {name} with {w.dtype.scalar_name} dtype")
    if w.numel() != count:
        raise RuntimeError(f"cov(): expected {name} to have the same numel as there are observations in the input but got {w.numel()} != {count}")
    if count and not w.is_meta and bool((w < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative")


@operator("cov", flops=lambda args, kwargs, result: 2 * result.numel() * (args[0].shape[-1] if args[0].ndim else 1))
def cov(input, *, correction=1, fweights=None, aweights=None):
    """Covariances of variables (rows) over observations (columns): [v, n] -> [v, v], [n] -> []. Sums are divided by n - correction.

    fweights: how often each observation counts, integers [n]; aweights: its weight [n].
    """
    if input.ndim > 2:
        raise RuntimeError(f"cov(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions")
    if input.dtype is dtypes.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input.reshape(1, -1) if input.ndim < 2 else input  # [v, n]
    count, weights = x.shape[1], None
    if fweights is not None:
        _weights("fweights", fweights, count, "integral", False)
        weights = fweights
    if aweights is not None:
        _weights("aweights", aweights, count, "floating point", True)
        weights = aweights if weights is None else weights * aweights
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        x = x.to(dtypes.get_default_dtype())
    if weights is None:
        total, mean = float(count), x.mean(1, True)
    else:
        weights = weights.reshape(-1)
        total = weights.sum()
        if not total.is_meta and float(total) == 0:
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = (x * weights).sum(1, True) / total
    free = total - correction
    if weights is not None and aweights is not None and correction:
        free = total - correction * (weights * aweights).sum() / total
    free = free.clamp(min=0) if isinstance(free, Tensor) else max(free, 0.0)
    centred = x - mean
    weighted = centred if weights is None else centred * weights
    product = centred @ weighted.mH
    out = product / free if isinstance(free, Tensor) or free else product / TABLE["zeros"].call((), dtype=product.dtype, device=product.device)
    return out.squeeze()


@operator("corrcoef", flops=lambda args, kwargs, result: 2 * result.numel() * (args[0].shape[-1] if args[0].ndim else 1))
def corrcoef(input):
    """Pearson's correlation coefficients of variables (rows) over observations (columns), their parts within [-1, 1]: [v, n] -> [v, v], [n] -> []."""
    if input.ndim > 2:
        raise RuntimeError(f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions")
    c = cov(input)
    if c.ndim == 0:
        return c / c
    deviation = (c.real if c.dtype.is_complex else c).diagonal().sqrt()  # [v]
    c = c / deviation.unsqueeze(1) / deviation
    return TABLE["complex"].call(c.real.clamp(-1, 1), c.imag.clamp(-1, 1)) if c.dtype.is_complex else c.clamp(-1, 1)
