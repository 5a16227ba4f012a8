"""Moments, norms and sums of exponentials along dimensions: var, std, vector norms, logsumexp, each with its gradient."""
from __future__ import annotations

import math

from .. import dtypes
from ..autograd import backward, no_grad, record, tracking
from ..dispatch import HOOKS
from ..kernels import expr as E
from ..kernels.recipes import KEEP
from .folding import Fold, conjugates, dims_of, expand_reduced
from .reduce import _cast, _mean, mean
from .reduce import sum as sum_
from .table import TABLE, operator

# ---- moments ---------------------------------------------------------------------------------------------------------------------


def _squared(z):
    """|z|² of a complex number."""
    return E.real(z) * E.real(z) + E.imag(z) * E.imag(z)


def _moments(x, c, square=lambda x: x * x):
    m = E.rsum(x) / E.extent()
    return E.rsum(square(x - m)) / E.maximum(E.extent() - c, 0.0), m


_var = Fold("var", lambda x, c: _moments(x, c)[0], 2)
_std = Fold("std", lambda x, c: E.sqrt(_moments(x, c)[0]), 2)
_complex_var = Fold("var", lambda x, c: _moments(x, c, _squared)[0], 2)
_complex_std = Fold("std", lambda x, c: E.sqrt(_moments(x, c, _squared)[0]), 2)
_squares = Fold("var", lambda x, m, c: E.rsum((x - m) * (x - m)) / E.maximum(E.extent() - c, 0.0), 3)


def _options(dim, unbiased, correction):
    """var(x, False) means unbiased=False; var(x, dim, False) likewise."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return dim, float(correction)


def _variance(input, dims, correction, keepdim, root):
    """Unrecorded variance; a few long rows take two passes that every thread shares."""
    count = math.prod(input.shape[d] for d in dims)
    if input.dtype.is_complex:  # of both parts together: a real number
        return (_complex_std if root else _complex_var)((input, correction), dims, (input.dtype.to_real(),), keepdim)
    if not input.is_meta and count >= 1 << 17 and count * 4 > input.numel():
        centre = _mean((input,), dims, (input.dtype if input.dtype.itemsize >= 4 else dtypes.float32,), True)
        centre = TABLE["expand"].call(centre, input.shape)
        out = _squares((input, centre, correction), dims, (input.dtype,), keepdim)
        return TABLE["sqrt"].call(out) if root else out
    return (_std if root else _var)((input, correction), dims, (input.dtype,), keepdim)


def _deviation(name, root):
    def deviation(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
        dim, correction = _options(dim, unbiased, correction)
        if not (input.dtype.is_floating_point or input.dtype.is_complex):
            raise RuntimeError("std and var only support floating point and complex dtypes")
        dims = dims_of(dim, input.ndim, in_turn=True)
        with no_grad():
            out = _variance(input, dims, correction, keepdim, root)
        if tracking(input):
            saves = (input, out) if root else (input,)
            record(StdBackward0 if root else VarBackward0, (input,), out, saves, dims=dims, keepdim=keepdim, correction=correction)
        return out

    deviation.__doc__ = (
        f"The {'standard deviation' if root else 'variance'} of all elements, or along `dim`: squares divided by n - correction (default 1)."
        + ("" if root else " unbiased=False is correction=0.")
    )
    return deviation


var = operator("var", out=True, flops=lambda args, kwargs, result: 4 * args[0].numel())(_deviation("var", False))
std = operator("std", out=True, flops=lambda args, kwargs, result: 4 * args[0].numel())(_deviation("std", True))


_spread = Fold("var_backward", lambda x, g: g * (x - E.rsum(x) / E.extent()), 2, ("element",))
ROWS, LONG = 8, 1 << 16  # from so many rows on, none of them longer, the gradient of a variance is one kernel


def _var_gradient(x, g, node):
    count = math.prod(x.shape[d] for d in node.dims)
    free = count - node.correction
    if 0 < count <= LONG and x.spec.numel >= ROWS * count and free > 0 and not (x.dtype.is_complex or HOOKS.active or KEEP[0] or tracking(x, g)):
        return _spread((x, expand_reduced(g * (2.0 / free), x.shape, node.dims, node.keepdim)), node.dims, (x.dtype,))
    centred = x - mean(x, node.dims or None, True) if node.dims else x - x
    return expand_reduced(g, x.shape, node.dims, node.keepdim) * (2.0 / free if free else math.nan) * centred


@backward("Var", saved_names=("self",))
def VarBackward0(node, g):
    (x,) = node.saved
    return (_var_gradient(x, g, node),)


@backward("Std", saved_names=("self", "result"))
def StdBackward0(node, g):
    x, result = node.saved
    g = TABLE["masked_fill"].call(g / (result * 2), TABLE["eq"].call(result, 0), 0)
    return (_var_gradient(x, g, node),)


@operator("var_mean", flops=lambda args, kwargs, result: 4 * args[0].numel())
def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """(variance, mean) of all elements, or along `dim`."""
    over, _ = _options(dim, unbiased, correction)
    return var(input, dim, unbiased, keepdim, correction=correction), mean(input, over, keepdim)


@operator("std_mean", flops=lambda args, kwargs, result: 4 * args[0].numel())
def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """(standard deviation, mean) of all elements, or along `dim`."""
    over, _ = _options(dim, unbiased, correction)
    return std(input, dim, unbiased, keepdim, correction=correction), mean(input, over, keepdim)


# ---- norms and sums of exponentials ----------------------------------------------------------------------------------------------

_NORMS = {
    2.0: Fold("norm", lambda x: E.sqrt(E.rsum(x * x)), 1),
    1.0: Fold("norm", lambda x: E.rsum(abs(x)), 1),
    0.0: Fold("norm", lambda x: E.rsum(E.where(x != 0, 1.0, 0.0)), 1),
    math.inf: Fold("norm", lambda x: E.rmax(abs(x)), 1),
    -math.inf: Fold("norm", lambda x: E.rmin(abs(x)), 1),
}
_complex_norm = Fold("norm", lambda z: E.sqrt(E.rsum(_squared(z))), 1)
_norm_p = Fold("norm", lambda x, p: E.pow(E.rsum(E.pow(abs(x), p)), 1.0 / p), 2)


@operator("vector_norm", method=False, namespace="linalg", out=True, flops=lambda args, kwargs, result: 2 * args[0].numel())
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """The vector norm (sum |x|^ord)^(1/ord) of all elements, or along `dim`; ord may be 0 (how many are not 0), inf or -inf."""
    x = _cast(x, dtype)
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {x.dtype.scalar_name}")
    dims = dims_of(dim, x.ndim)
    if isinstance(ord, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")
    if not isinstance(ord, (int, float)) and getattr(ord, "ndim", None) != 0:
        raise TypeError(f"linalg_vector_norm(): argument 'ord' (position 2) must be Number, not {type(ord).__name__}")
    ord = float(ord)
    nothing = math.prod(x.shape[d] for d in dims) == 0
    if nothing and (ord < 0 or math.isinf(ord)):
        if dim is None or isinstance(dim, (tuple, list)) and not dim:
            raise RuntimeError(f"linalg.vector_norm cannot compute the {ord:g} norm on an empty tensor because the operation does not have an identity")
        d = next(d for d in dims if x.shape[d] == 0)
        raise RuntimeError(f"linalg.vector_norm cannot compute the {ord:g} norm on the dimension {d} because this dimension is empty and the operation does not have an identity")
    fold = _complex_norm if ord == 2 and x.dtype.is_complex else _NORMS.get(ord)
    real = x.dtype.to_real()
    if fold is None and all(x.shape[d] == 1 for d in dims) and (x.ndim or dim is None):  # of one element the absolute value, whatever its order
        fold = _NORMS[math.inf]
    elif fold is None and nothing:  # 0, whatever the order
        fold = _NORMS[1.0]
    out = fold((x,), dims, (real,), keepdim) if fold else _norm_p((x, ord), dims, (real,), keepdim)
    if tracking(x):
        record(LinalgVectorNormBackward0, (x,), out, (x, out), ord=ord, dims=dims, keepdim=keepdim)
    return out


@backward("LinalgVectorNorm", saved_names=("self", "result"))
def LinalgVectorNormBackward0(node, g):
    x, result = node.saved
    p = node.ord
    g, norm = (expand_reduced(t, x.shape, node.dims, node.keepdim) for t in (g, result))
    call = {name: TABLE[name].call for name in ("sgn", "abs", "eq", "masked_fill")}
    if p == 0:
        return (TABLE["zeros_like"].call(x),)
    if p == 1:
        return (g * call["sgn"](x),)
    if p == 2:
        return (call["masked_fill"](x / norm, call["eq"](norm, 0), 0) * g,)
    if math.isinf(p):
        size = call["abs"](x)
        if x.dtype.is_complex:  # an absolute value computed again may differ in its last bit
            norm = TABLE["amax" if p > 0 else "amin"].call(size, node.dims, True)
        here = call["eq"](size, norm)
        return (call["sgn"](x) * here * (g / sum_(here, node.dims or None, True)),)
    if p < 1:
        scale = call["masked_fill"](call["abs"](x) ** (p - 1), call["eq"](x, 0), 0)
    elif p < 2:
        scale = call["masked_fill"](call["abs"](x) ** (p - 1), call["eq"](x, 0), 0)
    else:
        scale = call["abs"](x) ** (p - 1)
    return (call["sgn"](x) * scale * call["masked_fill"](g / norm ** (p - 1), call["eq"](norm, 0), 0),)


@operator("norm", out=True, flops=lambda args, kwargs, result: 2 * args[0].numel())
def norm(input, p="fro", dim=None, keepdim=False, dtype=None):
    """The norm of all elements as one vector, or along `dim`: p a number, or "fro" (2)."""
    if isinstance(p, str) and p != "fro":  # "nuc", of matrices
        return TABLE["linalg_matrix_norm"].call(input, p, tuple(range(input.ndim)) if dim is None else dim, keepdim, dtype=dtype)
    if not (input.dtype.is_floating_point or input.dtype.is_complex) and dtype is None:
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {input.dtype.scalar_name}")
    return vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)


def _exponentials(x, real=lambda x: x):
    m = E.rmax(real(x))
    m = E.where(E.isinf(m), 0.0, m)  # a row of -inf alone gives -inf, not NaN
    return E.log(E.rsum(E.exp(x - m))) + m


_logsumexp = Fold("logsumexp", lambda x: _exponentials(x), 1)
_complex_logsumexp = Fold("logsumexp", lambda z: _exponentials(z, E.real), 1)


@operator("logsumexp", out=True, flops=lambda args, kwargs, result: 3 * args[0].numel())
def logsumexp(input, dim, keepdim=False):
    """log(sum(exp(x))) along `dim` (an int or several), without overflow."""
    x = input if input.dtype.is_floating_point or input.dtype.is_complex else _cast(input, dtypes.get_default_dtype())
    dims = dims_of(dim, x.ndim)
    out = (_complex_logsumexp if x.dtype.is_complex else _logsumexp)((x,), dims, (x.dtype,), keepdim)
    if tracking(x):
        record(LogsumexpBackward0, (x,), out, (x, out), dims=dims, keepdim=keepdim)
    return out


@backward("Logsumexp", saved_names=("self", "result"))
def LogsumexpBackward0(node, g):
    x, result = conjugates(*node.saved)
    g, result = (expand_reduced(t, x.shape, node.dims, node.keepdim) for t in (g, result))
    # Where a whole row is -inf, x - result is NaN; its gradient is 0.
    return (g * TABLE["exp"].call(x - TABLE["masked_fill"].call(result, TABLE["isinf"].call(result), 0)),)

