"""Gather, scatter and the index_* family: reading and writing along one dimension at the places an index tensor names, with gradients.

x[key] is in index.py; the kernels' plans are in indexing.py.
"""
from __future__ import annotations

import math

from .. import dtypes
from ..autograd import backward, check_inplace, record, record_inplace, tracking
from ..layout import Layout, broadcast_shapes, wrap_dim
from ..tensor import Tensor, empty
from . import indexing
from .elementwise import check_overlap, self_copy, warn_of_overlap
from .folding import plain
from .table import TABLE, operator


def _bounds(x, dim, kind=RuntimeError):
    size = x.shape[dim] if x.ndim else 1
    return lambda _, bad: kind(f"index {bad} is out of bounds for dimension {dim} with size {size}")


def _check_index(name, index):
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")


def _ndim(t):
    return t.ndim or 1


def _sizes(t):
    """The shape; of a 0-d tensor that of one element."""
    return t.shape or (1,)


# ---- gather ----------------------------------------------------------------------------------------------------------------------


def gather_checked(input: Tensor, dim: int, index: Tensor, describe) -> Tensor:
    """input at `index` along `dim`, unrecorded; `describe(bad)` makes the exception for an index out of range."""
    out = empty(index.shape, input.dtype, input.device)
    indexing.along("get", input, dim, index, out, lambda _, bad: describe(bad))
    return out


@operator("gather", out=True, moves=True)
def gather(input, dim, index, *, sparse_grad=False):
    """out[i][j] = input[i][index[i][j]] along `dim`; index may be smaller than input in the other dimensions.

    Raises RuntimeError where an index is out of bounds or shapes do not fit.
    """
    dim = wrap_dim(dim, input.ndim)
    if index.numel():
        _check_index("gather", index)
        if _ndim(input) != _ndim(index):
            raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
        for d in range(min(input.ndim, index.ndim)):
            if d != dim and index.shape[d] > input.shape[d]:
                raise RuntimeError(
                    f"Size does not match at dimension {d} expected index {list(index.shape)} to be no larger than self {list(input.shape)} apart from dimension {dim}"
                )
    out = empty(index.shape, input.dtype, input.device)
    indexing.along("get", input, dim, index, out, _bounds(input, dim))
    if tracking(input):
        record(GatherBackward0, (input, index), out, (index,), dim=dim, spec=input.spec)
    return out


@backward("Gather", saved_names=("index",))
def GatherBackward0(node, g):
    (index,) = node.saved
    zeros = TABLE["zeros"].call(node.spec.shape, dtype=g.dtype, device=g.device)
    return scatter_add(zeros, node.dim, index, g), None


@operator("take_along_dim", out=True, moves=True)
def take_along_dim(input, indices, dim=None):
    """gather with input and indices broadcast against each other; without `dim` both are flattened. Negative indices count from the end."""
    if indices.dtype is not dtypes.int64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.scalar_name}")
    if dim is None:
        return gather(TABLE["reshape"].call(input, (-1,)), 0, TABLE["reshape"].call(indices, (-1,)))
    if input.ndim != indices.ndim:
        raise RuntimeError(
            f"torch.take_along_dim(): input and indices should have the same number of dimensions, but got {input.ndim} dimensions for input, and "
            f"{indices.ndim} dimensions for indices"
        )
    dim = wrap_dim(dim, input.ndim)
    size = input.shape[dim]
    indices = TABLE["where"].call(indices < 0, indices + size, indices)
    common = broadcast_shapes(*([1 if d == dim else n for d, n in enumerate(t.shape)] for t in (input, indices)))
    input = TABLE["expand"].call(input, [input.shape[d] if d == dim else n for d, n in enumerate(common)])
    indices = TABLE["expand"].call(indices, [indices.shape[d] if d == dim else n for d, n in enumerate(common)])
    return gather(input, dim, indices)


# ---- scatter ---------------------------------------------------------------------------------------------------------------------


def _check_scatter(name, x, dim, index, src):
    dim = wrap_dim(dim, x.ndim)
    if not index.numel():
        return dim
    _check_index(name, index)
    if isinstance(src, Tensor) and src.dtype is not x.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    if _ndim(index) != _ndim(x):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    sizes, own = _sizes(index), _sizes(x)
    wrong = any(sizes[d] > own[d] for d in range(len(own)) if d != dim)
    if isinstance(src, Tensor):
        given = _sizes(src)
        for d in range(len(own)):
            if not wrong and src.ndim and d >= src.ndim:
                raise IndexError(f"Dimension out of range (expected to be in range of [-{src.ndim}, {src.ndim - 1}], but got {d})")
            wrong = wrong or sizes[d] > (given[d] if src.ndim else 1)
        if _ndim(index) != _ndim(src):
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    if wrong:
        text = f"Expected index {list(index.shape)} to be no larger than self {list(x.shape)} apart from dimension {dim}"
        raise RuntimeError(text + (f" and to be no larger size than src {list(src.shape)}" if isinstance(src, Tensor) else ""))
    return dim


def _source(x, src, index):
    """src as a tensor that covers the index: a number is one element, shown everywhere."""
    if isinstance(src, Tensor):
        return self_copy(src) if src.mem is x.mem else src
    one = TABLE["full"].call((), src, dtype=x.dtype, device=x.device)
    return TABLE["expand"].call(one, index.shape)


_OPS = {None: "set", "add": "add", "multiply": "mul", "sum": "add", "prod": "mul", "amax": "amax", "amin": "amin"}


def _put(x, dim, index, src, op):
    check_overlap(x)
    indexing.along(op, x, dim, index, _source(x, src, index), _bounds(x, dim))


def _in_two_forms(name, cls, prepare, autocast=None, row_major=True):
    """Registers `name` and `name_`. prepare(x, *args, **kwargs) checks, and gives (write(target), extra inputs, saves, attributes).

    row_major: the copy that is written lies row by row, however the input lies.
    """

    def plain(input, *args, **kwargs):
        write, inputs, saves, attrs = prepare(input, *args, **kwargs)
        out = self_copy(input, layout=Layout.contiguous(input.shape) if row_major else None)
        write(out)
        if tracking(input, *inputs):
            if "before" in attrs:
                attrs["before"] = input
            record(cls, (input, *inputs), out, saves, **attrs)
        return out

    def into(input, *args, **kwargs):
        write, inputs, saves, attrs = prepare(input, *args, **kwargs)
        check_inplace(input, *inputs)
        track = tracking(input, *inputs)
        if track and "before" in attrs:  # the gradient needs x as it was
            attrs["before"] = self_copy(input)
        write(input)
        input.mem.version += 1
        if track:
            record_inplace(cls, (input, *inputs), input, saves, **attrs)
        return input

    plain.__doc__ = prepare.__doc__
    plain.prepare = into.prepare = prepare  # whose names and defaults are those of both
    into.__doc__ = f"In-place form of `{name}`."
    return operator(name, out=True, autocast=autocast)(plain), operator(name + "_")(into)


def _gathered(node, g, index):
    """g at the index, zero-padded to src's shape where the index is smaller."""
    return _padded(gather(g, node.dim, index), node.src_shape)


def _padded(t, shape):
    for d in range(t.ndim):
        missing = shape[d] - t.shape[d]
        if missing:
            fill = TABLE["zeros"].call([missing if k == d else n for k, n in enumerate(t.shape)], dtype=t.dtype, device=t.device)
            t = TABLE["cat"].call([t, fill], d)
    return t


def _scatter(x, dim, index, src=None, *, value=None, reduce=None):
    """A copy of input with `src` (a tensor or a number) written at `index` along `dim`: out[i][index[i][j]] = src[i][j].

    reduce: "add" or "multiply" combines with what is there. Raises RuntimeError for an index out of bounds or shapes that do not fit.
    """
    src = value if src is None else src
    dim = _check_scatter("scatter", x, dim, index, src)
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    shape = src.shape if isinstance(src, Tensor) else None
    return lambda t: _put(t, dim, index, src, _OPS[reduce]), (src,), (index,), {"dim": dim, "reduce": reduce, "src_shape": shape}


@backward("Scatter", saved_names=("index",))
def ScatterBackward0(node, g):
    (index,) = node.saved
    if node.reduce is not None:
        raise RuntimeError("scatter(): the derivative with reduce is not implemented: use scatter_reduce")
    gx = scatter(g, node.dim, index, 0) if node.needs[0] else None
    return gx, _gathered(node, g, index) if node.needs[1] else None


scatter, scatter_ = _in_two_forms("scatter", ScatterBackward0, _scatter)


@backward("ScatterAdd", saved_names=("index",))
def ScatterAddBackward0(node, g):
    (index,) = node.saved
    return g, _gathered(node, g, index) if node.needs[1] else None


def _scatter_add(x, dim, index, src):
    """A copy of input with `src` added at `index` along `dim`; places named several times take every addend."""
    dim = _check_scatter("scatter", x, dim, index, src)
    return lambda t: _put(t, dim, index, src, "add"), (src,), (index,), {"dim": dim, "src_shape": src.shape}


scatter_add, scatter_add_ = _in_two_forms("scatter_add", ScatterAddBackward0, _scatter_add)


def _scatter_reduce(x, dim, index, src, reduce, *, include_self=True):
    """A copy of input with `src` combined at `index` along `dim` by "sum", "prod", "mean", "amax" or "amin"; include_self: with what is there."""
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    dim = _check_scatter("scatter_reduce", x, dim, index, src)

    def write(t):
        if not include_self:
            _put(t, dim, index, _identity(reduce, t.dtype), "set")
        _put(t, dim, index, src, "add" if reduce == "mean" else _OPS[reduce])
        if reduce == "mean" and index.numel():
            count = (TABLE["ones_like"] if include_self else TABLE["zeros_like"]).call(t)
            _put(count, dim, index, 1, "add")
            count = TABLE["clamp"].call(count, min=1)
            TABLE["copy_"].call(t, t / count if t.dtype.is_floating_point else TABLE["floor_divide"].call(t, count))

    return write, (src,), (index, src), {"dim": dim, "reduce": reduce, "include_self": include_self, "before": None}


def _identity(reduce, dtype):
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.is_floating_point:
        return float("-inf") if reduce == "amax" else float("inf")
    if dtype is dtypes.bool_:
        return reduce == "amin"
    if dtype.is_complex:
        raise NotImplementedError(f"\"index_reduce_func_exclude_input_init\" not implemented for '{dtype.scalar_name}'\n  Complex numbers have no order: reduce x.real and x.imag, or x.abs().")
    info = dtypes.iinfo(dtype)
    return info.min if reduce == "amax" else info.max


@backward("ScatterReduce", saved_names=("index", "src"))
def ScatterReduceBackward0(node, g):
    """Sum and mean are linear; amax and amin share the gradient between all that equal the result; prod divides the result out."""
    index, src = node.saved
    x, dim, reduce = node.before, node.dim, node.reduce
    call = {name: TABLE[name].call for name in ("zeros_like", "ones_like", "eq", "clamp", "where")}
    keep = call["ones_like"](x) if node.include_self else scatter(call["ones_like"](x), dim, index, 0)
    part = src if src.shape == index.shape else _narrowed(src, index.shape)
    if reduce == "sum":
        gx, gs = g * keep, gather(g, dim, index)
    elif reduce == "mean":
        count = call["clamp"](scatter_add(keep, dim, index, call["ones_like"](part)), min=1)
        gx, gs = g * keep / count, gather(g / count, dim, index)
    elif reduce in ("amax", "amin"):
        result = scatter_reduce(x, dim, index, src, reduce, include_self=node.include_self)
        here_x, here_s = call["eq"](x, result) * keep, call["eq"](part, gather(result, dim, index))
        count = scatter_add(here_x, dim, index, TABLE["to"].call(here_s, g.dtype))
        share = g / call["clamp"](count, min=1)
        touched = scatter(call["zeros_like"](x), dim, index, 1)
        gx, gs = call["where"](touched == 0, g, share * here_x), gather(share, dim, index) * here_s
    else:
        gx, gs = _product_gradients(node, g, x, index, part)
        gx = gx * keep
    return gx if node.needs[0] else None, _padded(gs, src.shape) if node.needs[1] else None


def _product_gradients(node, g, x, index, src):
    """The product without a factor is the result divided by it; where the factor is the only 0, the product of the others."""
    dim, fill = node.dim, TABLE["masked_fill"].call

    def product(x, src):
        return scatter_reduce(x, dim, index, src, "prod", include_self=node.include_self)

    own = fill(x, x == 0, 1)
    gx = g * product(own, src) / own
    zero = src == 0
    zeros = scatter_add(TABLE["zeros_like"].call(x), dim, index, TABLE["to"].call(zero, x.dtype))
    only = zero & (gather(zeros, dim, index) == 1)
    without = gather(g * product(x, fill(src, only, 1)), dim, index)
    return gx, TABLE["where"].call(only, without, gather(g * product(x, src), dim, index) / fill(src, zero, 1))


def _narrowed(t, shape):
    for d, n in enumerate(shape):
        t = TABLE["narrow"].call(t, d, 0, n)
    return t


scatter_reduce, scatter_reduce_ = _in_two_forms("scatter_reduce", ScatterReduceBackward0, _scatter_reduce)

# ---- index_select, index_add, index_copy, index_fill -------------------------------------------------------------------------------


def _vector(name, index):
    if index.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector")
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(f"{name}(): Expected dtype int32 or int64 for index")
    return index if index.ndim else TABLE["reshape"].call(index, (1,))


@operator("index_select", out=True, moves=True)
def index_select(input, dim, index):
    """The entries of dimension `dim` that `index` (1-d) names, in its order. [.., n, ..], [k] -> [.., k, ..]

    Raises IndexError for an index out of range (negative ones, too); RuntimeError along dimension 1, as PyTorch does.
    """
    dim = wrap_dim(dim, input.ndim)
    index = _vector("index_select", index)
    if input.ndim == 0:
        if index.numel() != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.numel()} value(s)")
        return TABLE["reshape"].call(index_select(TABLE["reshape"].call(input, (1,)), 0, index), ())
    def outside(which, bad):
        if dim == 1 or input.ndim > 1 and not input.numel():  # a path of its own in PyTorch
            return RuntimeError(f"INDICES element is out of DATA bounds, id={bad} axis_dim={input.shape[dim]}")
        return IndexError("index out of range in self")

    out = indexing.get(input, (dim,), (index,), outside, wrap_negative=False)
    if tracking(input):
        record(IndexSelectBackward0, (input, index), out, (index,), dim=dim, spec=input.spec)
    return out


@backward("IndexSelect", saved_names=("index",))
def IndexSelectBackward0(node, g):
    (index,) = node.saved
    zeros = TABLE["zeros"].call(node.spec.shape, dtype=g.dtype, device=g.device)
    return index_add_(zeros, node.dim, index, g), None


def _check_rows(name, x, dim, index, source):
    """index_add and index_reduce: (dim, index as a vector), or the error for what does not fit, in PyTorch's order."""
    dim = wrap_dim(dim, x.ndim)
    if index.ndim > 1:
        raise IndexError(f"{name}_(): Index is supposed to be a vector, but got dim: {index.ndim} with type: {index.dtype.scalar_name} and size: {list(index.shape)}")
    index = _vector(name, index)
    if source.dtype is not x.dtype:
        raise RuntimeError(f"{name}_(): self ({x.dtype.scalar_name}) and source ({source.dtype.scalar_name}) must have the same scalar type")
    if dim and dim >= source.ndim:
        raise RuntimeError(f"{name}_(): Indexing dim {dim} is out of bounds of the source tensor with dim {source.ndim}")
    if not source.ndim and index.numel() != 1:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions\n  A 0-d source goes with one index, but there are {index.numel()}.")
    count = _sizes(source)[dim]
    if index.numel() != count:
        raise RuntimeError(f"{name}_(): Number of indices ({index.numel()}) should be equal to source.size(dim): ({count}), for dim: {dim}")
    if x.ndim != source.ndim or _without(x.shape, dim) != _without(source.shape, dim):
        raise RuntimeError(f"source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {list(x.shape)} source.shape = {list(source.shape)}")
    return dim, index


def _without(shape, dim):
    return (*shape[:dim], *shape[dim + 1 :])


def _check_copy(x, dim, index, source):
    """index_copy: the same, by rules of its own for 0-d tensors."""
    dim, count = wrap_dim(dim, x.ndim), index.numel()
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 0 or 1 (got {index.ndim})")
    if not source.ndim and count != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {count})")
    if source.ndim and x.ndim and source.ndim != x.ndim:
        raise IndexError(
            f"index_copy_(): When source and destination are not scalars, their dimensionality must match. Source dimensionality ({source.ndim}), destination dimensionality ({x.ndim})"
        )
    index = _vector("index_copy", index)
    if source.dtype is not x.dtype:
        raise RuntimeError(f"index_copy_(): self and source expected to have the same dtype, but got (self) {x.dtype.scalar_name} and (source) {source.dtype.scalar_name}")
    own, given = _without(x.shape, dim), _without(source.shape, dim)
    if own != given:
        raise RuntimeError(
            f"index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {' '.join(map(str, own))} at dimension {dim} "
            f"and source slice shape: {' '.join(map(str, given))} at dimension 0."
        )
    if source.ndim and source.shape[dim] != count:
        raise IndexError(f"index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({source.shape[dim]})")
    return dim, index


def _put_rows(t, dim, index, source, op, describe):
    check_overlap(t)
    if t.ndim == 0:
        t = TABLE["reshape"].call(plain(t), (1,))
        source = TABLE["reshape"].call(source, (-1,))
    if source.mem is t.mem:
        source = self_copy(source)
    indexing.put(op, t, (dim,), (index,), source, describe, wrap_negative=False)


@backward("IndexAdd", saved_names=("index",))
def IndexAddBackward0(node, g):
    (index,) = node.saved
    if not node.needs[1]:
        return g, None
    part = index_select(g, node.dim, index)
    return g, part if node.alpha == 1 else part * node.alpha


def _index_add(x, dim, index, source, *, alpha=1):
    """A copy of input with `alpha * source` added to the entries of `dim` that `index` names, several times where named several times."""
    dim, index = _check_rows("index_add", x, dim, index, source)
    scaled = plain(source) if alpha == 1 else plain(source) * alpha
    if x.ndim > 1 and dim in (0, x.ndim - 1) and alpha == 1:  # PyTorch scatters there
        describe = _bounds(x, dim)
    else:
        describe = lambda _, bad: IndexError(f"index out of range in self\n  {bad}, of {_sizes(x)[dim]} along dimension {dim}")

    def write(t):
        if t.numel():
            _put_rows(t, dim, index, scaled, "add", describe)

    return write, (source,), (index,), {"dim": dim, "alpha": alpha}


index_add, index_add_ = _in_two_forms("index_add", IndexAddBackward0, _index_add)


@backward("IndexCopy", saved_names=("index",))
def IndexCopyBackward0(node, g):
    (index,) = node.saved
    gx = index_fill(g, node.dim, index, 0) if node.needs[0] else None
    return gx, index_select(g, node.dim, index) if node.needs[1] else None


def _index_copy(x, dim, index, source):
    """A copy of input with the entries of `dim` that `index` names replaced by those of source."""
    dim, index = _check_copy(x, dim, index, source)
    size = x.shape[dim] if x.ndim else 1
    describe = lambda _, bad: IndexError(f"index_copy_(): index {bad} is out of bounds for dimension {dim} with size {size}")
    return lambda t: _put_rows(t, dim, index, source, "set", describe), (source,), (index,), {"dim": dim}


index_copy, index_copy_ = _in_two_forms("index_copy", IndexCopyBackward0, _index_copy, autocast="promote")


@backward("IndexFill", saved_names=("index",))
def IndexFillBackward0(node, g):
    (index,) = node.saved
    gx = index_fill(g, node.dim, index, 0) if node.needs[0] else None
    return gx, TABLE["sum"].call(g * index_fill(TABLE["zeros_like"].call(g), node.dim, index, 1)) if node.needs[1] else None


def _index_fill(x, dim, index, value):
    """A copy of input with the entries of `dim` that `index` names filled with a number (or 0-d tensor). Negative indices count from the end."""
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError(f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s).")
    dim = wrap_dim(dim, x.ndim)
    if index.ndim > 1:
        raise RuntimeError(f"Index has to be a vector/scalar\n  It has {index.ndim} dimensions.")
    index = _vector("index_fill", index)
    if not x.dtype.is_complex and (value.dtype.is_complex if isinstance(value, Tensor) else isinstance(value, complex)):
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported\n  Fill with a real number: value.real.")
    if isinstance(value, Tensor):
        one = TABLE["to"].call(plain(value), x.dtype)
    else:
        one = TABLE["full"].call((), value, dtype=x.dtype, device=x.device)

    def write(t):
        warn_of_overlap("index_fill_", t)
        if t.ndim == 0:
            indexing.check_all((index,), (1,), _bounds(x, 0, IndexError), True)
            if index.numel():
                TABLE["copy_"].call(plain(t), one)
        elif math.prod(_without(t.shape, dim)):
            indexing.put("set", t, (dim,), (index,), one, _bounds(x, dim, IndexError))

    return write, (value,), (index,), {"dim": dim}


index_fill, index_fill_ = _in_two_forms("index_fill", IndexFillBackward0, _index_fill, row_major=False)


# ---- index_reduce ----------------------------------------------------------------------------------------------------------------


def _spread(x, dim, index, source):
    """A 1-d index as one of source's shape, for scatter_reduce."""
    dim, index = _check_rows("index_reduce", x, dim, index, source)
    if not x.is_meta:
        indexing.check_all((index,), (_sizes(x)[dim],), lambda _, bad: IndexError(f"index out of range in self: {bad} along dimension {dim} of {list(x.shape)}"), False)
    shape = [1] * source.ndim
    if source.ndim:
        shape[dim] = -1
    index = TABLE["reshape"].call(index, shape)
    return TABLE["expand"].call(index, source.shape)


@operator("index_reduce", out=True)
def index_reduce(input, dim, index, source, reduce, *, include_self=True):
    """A copy of input whose entries of `dim` that `index` names are combined with source's by "prod", "mean", "amax" or "amin"."""
    return scatter_reduce(input, dim, _spread(input, dim, index, source), source, reduce, include_self=include_self)


@operator("index_reduce_")
def index_reduce_(input, dim, index, source, reduce, *, include_self=True):
    """In-place form of `index_reduce`."""
    return scatter_reduce_(input, dim, _spread(input, dim, index, source), source, reduce, include_self=include_self)
