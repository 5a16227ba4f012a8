"""Reductions: sums, products, extremes and truth along dimensions, each with its gradient.

Moments and norms are in moments.py, running totals in scan.py, order statistics (median, kthvalue, mode) in sort.py, row operators such as softmax in rowwise.py.
"""
from __future__ import annotations

import math

from .. import dtypes
from ..autograd import backward, no_grad, record, tracking
from ..kernels import expr as E
from ..layout import wrap_dim
from ..tensor import Tensor
from . import signatures
from .folding import Fold, accumulation_dtype, conjugates, dims_of, expand_reduced, plain, reduced_shape
from .return_types import TYPES
from .table import TABLE, operator


def _flops(args, kwargs, result):
    return 0 if result.dtype.kind in ("int", "uint") else args[0].numel()


def _cast(x, dtype):
    return x if dtype is None or x.dtype is dtype else TABLE["to"].call(x, dtype)


def _float_result(name, input, dtype):
    """The dtype of a mean and the like; RuntimeError for integers without `dtype`."""
    dtype = dtype or input.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        what = "Input" if dtype is input.dtype else "Optional"
        raise RuntimeError(f"{name}(): could not infer output dtype. {what} dtype must be either a floating point or complex dtype. Got: {dtype.scalar_name}")
    return dtype


# ---- sums ------------------------------------------------------------------------------------------------------------------------

_sum = Fold("sum", lambda x: E.rsum(x), 1)
_nansum = Fold("nansum", lambda x: E.rsum(E.where(E.isnan(x), 0, x)), 1)
_mean = Fold("mean", lambda x: E.rsum(x) / E.extent(), 1)
_prod = Fold("prod", lambda x: E.rprod(x), 1)
_count = Fold("count_nonzero", lambda x: E.rsum(x != 0), 1)


def _as_accumulated(input, dtype):
    """Integers asked for as floats, and floats as integers, are converted first; all else is converted while it is added."""
    if dtype is not None and dtype is not input.dtype and (dtype.kind != input.dtype.kind or dtype.itemsize > input.dtype.itemsize):
        return _cast(input, dtype)
    return input


def _resolve_sum(input, dim, dtype):
    return dims_of(dim, input.ndim), accumulation_dtype(input, dtype)


def _resolve_nansum(input, dim, dtype):
    return dims_of(dim, input.ndim, in_turn=True), accumulation_dtype(input, dtype)


def _resolve_mean(input, dim, dtype):
    result = _float_result("mean", input, dtype)
    return dims_of(dim, input.ndim), result


@operator("sum", out=True, flops=_flops)
def sum(input, dim=None, keepdim=False, *, dtype=None):
    """Sum of all elements, or along `dim` (an int or several). Integers and bool give int64 unless `dtype` says otherwise.

    Raises IndexError for a dimension out of range.
    """
    out, dims = _sum.reduce(input if dtype is None else _as_accumulated(input, dtype), dim, keepdim, dtype, _resolve_sum)
    if tracking(input):
        record(SumBackward0 if dim is None else SumBackward1, (input,), out, shape=input.shape, dims=dims, keepdim=keepdim, own=input.dtype)
    return out


def _sum_backward(node, g):
    return (_cast(expand_reduced(g, node.shape, node.dims, node.keepdim), node.own),)


SumBackward0 = backward("Sum")(_sum_backward)
SumBackward1 = backward("SumBackward1")(_sum_backward)


@operator("nansum", out=True, flops=_flops)
def nansum(input, dim=None, keepdim=False, *, dtype=None):
    """Sum along `dim` with NaN counted as 0."""
    out, dims = _nansum.reduce(_as_accumulated(input, dtype), dim, keepdim, dtype, _resolve_nansum)
    if tracking(input):
        record(NansumBackward0, (input,), out, (input,), dims=dims, keepdim=keepdim)
    return out


@backward("Nansum", saved_names=("self",))
def NansumBackward0(node, g):
    (x,) = node.saved
    return (_cast(expand_reduced(g, x.shape, node.dims, node.keepdim), x.dtype) * ~TABLE["isnan"].call(x),)


@operator("mean", out=True, flops=_flops)
def mean(input, dim=None, keepdim=False, *, dtype=None):
    """Arithmetic mean of all elements, or along `dim`. Raises RuntimeError for integers without a floating `dtype`."""
    if dtype is not None:
        _float_result("mean", input, dtype)
    out, dims = _mean.reduce(input if dtype is None else _as_accumulated(input, dtype), dim, keepdim, dtype, _resolve_mean)
    if tracking(input):
        count = math.prod(input.shape[d] for d in dims)
        record(MeanBackward0 if dim is None else MeanBackward1, (input,), out, shape=input.shape, dims=dims, keepdim=keepdim, count=count, own=input.dtype)
    return out


def _mean_backward(node, g):
    return (_cast(expand_reduced(g / (node.count or 1), node.shape, node.dims, node.keepdim), node.own),)


MeanBackward0 = backward("Mean")(_mean_backward)
MeanBackward1 = backward("MeanBackward1")(_mean_backward)


@operator("nanmean", out=True, flops=_flops)
def nanmean(input, dim=None, keepdim=False, *, dtype=None):
    """Mean along `dim` of the elements that are not NaN."""
    _float_result("nanmean", input, dtype)
    return nansum(input, dim, keepdim, dtype=dtype) / sum(~TABLE["isnan"].call(input), dim, keepdim)


@operator("prod", out=True, flops=_flops, autocast="float32")
def prod(input, dim=None, keepdim=False, *, dtype=None):
    """Product of all elements, or along one dimension. Integers and bool give int64 unless `dtype` says otherwise."""
    if isinstance(dim, (tuple, list)):
        raise TypeError(f"prod(): argument 'dim' must be int, not {type(dim).__name__}")
    if input.dtype.is_complex:
        dims = dims_of(dim, input.ndim)
        out = _complex_prod(_cast(plain(input), dtype), dims, keepdim)
    else:
        out, dims = _prod.reduce(_as_accumulated(input, dtype), dim, keepdim, dtype, _resolve_sum)
    if tracking(input):
        record(ProdBackward0 if dim is None else ProdBackward1, (input,), out, (input, out), dims=dims, keepdim=keepdim)
    return out


def _complex_prod(x, dims, keepdim):
    """The product of the rows that `dims` fold, unrecorded: halves are multiplied until one element is left."""
    kept = [d for d in range(x.ndim) if d not in dims]
    shape, count = [x.shape[d] for d in kept], math.prod(x.shape[d] for d in dims)
    out_shape = reduced_shape(x.shape, dims, keepdim)
    narrow = TABLE["narrow"].call
    with no_grad():
        if not count:
            return TABLE["ones"].call(out_shape, dtype=x.dtype, device=x.device)
        x = TABLE["reshape"].call(TABLE["permute"].call(x, (*kept, *dims)), (*shape, count))  # [.., count]
        while count > 1:
            half = count // 2
            product = narrow(x, -1, 0, half) * narrow(x, -1, half, half)
            x = TABLE["cat"].call([product, narrow(x, -1, count - 1, 1)], -1) if count % 2 else product
            count = x.shape[-1]
        return TABLE["clone"].call(TABLE["reshape"].call(x, out_shape))


def _prod_backward(node, g):
    """d prod / d x_i is the product of all others; by division where nothing is 0, else by products from both sides."""
    x, result = conjugates(*node.saved)
    g = expand_reduced(g, x.shape, node.dims, node.keepdim)
    if x.is_meta or not bool(any(TABLE["eq"].call(x, 0))):
        return (g * expand_reduced(result, x.shape, node.dims, node.keepdim) / x,)
    if len(node.dims) == 1:
        return (g * _others(x, node.dims[0]),)
    flat = TABLE["reshape"].call(x, (-1,))
    return (g * TABLE["reshape"].call(_others(flat, 0), x.shape),)


def _others(x, dim):
    """The product of all other elements along `dim`, element by element."""
    n = x.shape[dim] if x.ndim else 1
    if x.ndim == 0:
        return TABLE["ones_like"].call(x)
    one = TABLE["ones_like"].call(TABLE["narrow"].call(x, dim, 0, 1))
    cat, narrow, flip, cumprod = (TABLE[name].call for name in ("cat", "narrow", "flip", "cumprod"))
    before = cumprod(cat([one, narrow(x, dim, 0, n - 1)], dim), dim)
    after = flip(cumprod(cat([one, narrow(flip(x, (dim,)), dim, 0, n - 1)], dim), dim), (dim,))
    return before * after


ProdBackward0 = backward("Prod", saved_names=("self", "result"))(_prod_backward)
ProdBackward1 = backward("ProdBackward1", saved_names=("self", "result"))(_prod_backward)


@operator("count_nonzero", flops=_flops)
def count_nonzero(input, dim=None):
    """How many elements are not 0, in all or along `dim`; int64."""
    return _count((input,), dims_of(dim, input.ndim), (dtypes.int64,))


# ---- truth -----------------------------------------------------------------------------------------------------------------------

_any = Fold("any", lambda x: E.rany(x), 1)
_all = Fold("all", lambda x: E.rall(x), 1)


def _resolve_truth(input, dim, dtype):
    dims = () if isinstance(dim, (tuple, list)) and not dim else dims_of(dim, input.ndim)  # unlike sums, no dimension means none
    return dims, dtypes.uint8 if input.dtype is dtypes.uint8 else dtypes.bool_  # uint8 answers in uint8: older masks were of that dtype


@operator("any", out=True, flops=lambda *_: 0)
def any(input, dim=None, keepdim=False):
    """Whether any element is non-zero (NaN counts), in all or along `dim`."""
    return _any.reduce(input, dim, keepdim, None, _resolve_truth)[0]


@operator("all", out=True, flops=lambda *_: 0)
def all(input, dim=None, keepdim=False):
    """Whether all elements are non-zero, in all or along `dim`; True for none."""
    return _all.reduce(input, dim, keepdim, None, _resolve_truth)[0]


# ---- extremes --------------------------------------------------------------------------------------------------------------------

_max = Fold("max", lambda x: E.rmax(x), 1)
_min = Fold("min", lambda x: E.rmin(x), 1)
_max_at = Fold("max_at", lambda x: (E.rmax(x), E.rargmax(x)), 1, ("row", "row"))
_min_at = Fold("min_at", lambda x: (E.rmin(x), E.rargmin(x)), 1, ("row", "row"))
_argmax = Fold("argmax", lambda x: E.rargmax(x), 1)
_argmin = Fold("argmin", lambda x: E.rargmin(x), 1)
_aminmax = Fold("aminmax", lambda x: (E.rmin(x), E.rmax(x)), 1, ("row", "row"))


def _check_nonempty(name, input, dims, dim):
    if input.numel():
        return
    if dim is None:
        if name.startswith("arg"):
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        if name == "aminmax":
            raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
        raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.")
    for d in dims:
        if input.shape[d] == 0:
            raise IndexError(f"{name}{'' if name == 'aminmax' else '()'}: Expected reduction dim {d} to have non-zero size.")


def _extreme(name, fold, fold_at, other_name):
    def resolve(input, dim, dtype):
        dims = dims_of(None, input.ndim)
        _check_nonempty(name, input, dims, None)
        return dims, input.dtype

    def extreme(input, dim=None, keepdim=False, *, other=None):
        if not isinstance(input, Tensor):
            signatures.check(name, (input, dim if other is None else other))
        if isinstance(dim, Tensor) or other is not None:
            return TABLE[other_name].call(input, dim if other is None else other)
        if dim is None:
            out, dims = fold.reduce(input, None, False, None, resolve)
            if tracking(input):
                record(_EVENLY[name], (input,), out, (input, out), dims=dims, keepdim=False)
            return out
        dims = dims_of(dim, input.ndim)
        _check_nonempty(name, input, dims, dim)
        if input.ndim == 0:
            values, indices = TABLE["clone"].call(input), TABLE["zeros"].call((), dtype=dtypes.int64, device=input.device)
            return TYPES[name]((values, indices))
        values, indices = fold_at((input,), dims, (input.dtype, dtypes.int64), keepdim)
        if tracking(input):
            record(_SELECTED[name], (input,), values, (indices,), shape=input.shape, dim=dims[0], keepdim=keepdim)
        return TYPES[name]((values, indices))

    extreme.__doc__ = (
        f"The {name}imum: of all elements; along `dim` as a named tuple (values, indices); or, given a second tensor, elementwise. NaN wins.\n\n"
        "    Raises IndexError where a folded dimension is empty."
    )
    return extreme


def value_selecting_backward(node, g):
    """The gradient goes to the elements that were selected along `dim`."""
    (indices,) = node.saved
    shape, dim = node.shape, node.dim
    if not shape:
        return (g,)
    if not node.keepdim:
        g, indices = TABLE["unsqueeze"].call(g, dim), TABLE["unsqueeze"].call(indices, dim)  # [.., 1, ..]
    return (TABLE["scatter"].call(TABLE["zeros"].call(shape, dtype=g.dtype, device=g.device), dim, indices, g),)


def _evenly_backward(node, g):
    """The gradient is shared evenly between all elements equal to the result."""
    x, result = node.saved
    result = expand_reduced(result, x.shape, node.dims, node.keepdim)
    here = TABLE["eq"].call(x, result)
    if x.dtype.is_floating_point:
        here = here | (TABLE["isnan"].call(x) & TABLE["isnan"].call(result))
    count = sum(here, node.dims, True) if node.dims else TABLE["ones_like"].call(x)
    return (expand_reduced(g, x.shape, node.dims, node.keepdim) * here / count,)


_saved_pair = ("self", "result")
_EVENLY = {
    "max": backward("MaxBackward1", saved_names=_saved_pair)(_evenly_backward),
    "min": backward("MinBackward1", saved_names=_saved_pair)(_evenly_backward),
    "amax": backward("Amax", saved_names=_saved_pair)(_evenly_backward),
    "amin": backward("Amin", saved_names=_saved_pair)(_evenly_backward),
}
_SELECTED = {name: backward(node, saved_names=("indices",))(value_selecting_backward) for name, node in (("max", "Max"), ("min", "Min"))}

max = operator("max", out=True, flops=lambda *_: 0)(_extreme("max", _max, _max_at, "maximum"))
min = operator("min", out=True, flops=lambda *_: 0)(_extreme("min", _min, _min_at, "minimum"))


def _extremes(name, fold):
    def resolve(input, dim, dtype):
        if isinstance(dim, (tuple, list)) and dim and not input.numel():  # PyTorch looks at the sizes of all before it looks for one named twice
            for d in dim:
                if input.shape[wrap_dim(d, input.ndim)] == 0:
                    raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
        dims = dims_of(dim, input.ndim)
        _check_nonempty(name, input, dims, dim if dim is None or isinstance(dim, int) or len(dim) else None)
        return dims, input.dtype

    def extremes(input, dim=(), keepdim=False):
        out, dims = fold.reduce(input, dim, keepdim, None, resolve)
        if tracking(input):
            record(_EVENLY[name], (input,), out, (input, out), dims=dims, keepdim=keepdim)
        return out

    extremes.__doc__ = f"The {'largest' if name == 'amax' else 'smallest'} element along `dim` (an int or several; empty: all). Equal ones share the gradient."
    return extremes


amax = operator("amax", out=True, flops=lambda *_: 0)(_extremes("amax", Fold("amax", lambda x: E.rmax(x), 1)))
amin = operator("amin", out=True, flops=lambda *_: 0)(_extremes("amin", Fold("amin", lambda x: E.rmin(x), 1)))


@operator("aminmax", out=True, flops=lambda *_: 0)
def aminmax(input, *, dim=None, keepdim=False):
    """(smallest, largest) of all elements, or along `dim`, as a named tuple (min, max)."""
    if tracking(input) and (input.numel() or dim is not None):
        _check_nonempty("aminmax", input, dims_of(dim, input.ndim), dim)
        over = () if dim is None else dim
        return TYPES["aminmax"]((amin(input, over, keepdim), amax(input, over, keepdim)))
    dims = dims_of(dim, input.ndim)
    _check_nonempty("aminmax", input, dims, dim)
    return TYPES["aminmax"](_aminmax((input,), dims, (input.dtype, input.dtype), keepdim))


def _arg(name, fold):
    def resolve(input, dim, dtype):
        if isinstance(dim, (tuple, list)):
            raise TypeError(f"{name}(): argument 'dim' (position 1) must be int, not {type(dim).__name__}")
        dims = dims_of(dim, input.ndim)
        _check_nonempty(name, input, dims, dim)
        return dims, dtypes.int64

    def arg(input, dim=None, keepdim=False):
        return fold.reduce(input, dim, keepdim, None, resolve)[0]

    arg.__doc__ = f"Position of the first {'largest' if name == 'argmax' else 'smallest'} element (or first NaN): in the flattened input, or along `dim`."
    return arg


argmax = operator("argmax", out=True, flops=lambda *_: 0)(_arg("argmax", _argmax))
argmin = operator("argmin", out=True, flops=lambda *_: 0)(_arg("argmin", _argmin))
