"""Order: sort, argsort, topk, order statistics (median, kthvalue, mode, quantile), unique. NaN counts as the largest.

Sorts (kernels/radix.py, NumPy's for many short rows) and medians (NumPy's) keep equal elements in their order. Where PyTorch picks among equals by how it goes about it (topk, kthvalue, mode),
kernels/order.py goes about it in the same way.
"""
from __future__ import annotations

from operator import index

from .. import dtypes
from ..autograd import backward, record, tracking
from ..dispatch import launch
from ..kernels import native
from ..kernels import order as arrangements
from ..kernels import radix as digits
from ..kernels import top as tops
from ..layout import wrap_dim
from ..tensor import Tensor, empty
from . import host
from .create import scalar_tensor
from .folding import plain
from .reduce import value_selecting_backward
from .return_types import TYPES
from .table import TABLE, operator

# ---- sort ------------------------------------------------------------------------------------------------------------------------


def _ranks(a, descending):
    """Unsigned integers in the order of a's elements (or the reverse), NaN as the largest; as wide as the elements."""
    import numpy

    bits = 8 * a.dtype.itemsize
    unsigned, top = f"uint{bits}", 1 << (bits - 1)
    if a.dtype.kind == "f":
        raw = numpy.where(numpy.isnan(a), numpy.inf, a + 0.0).astype(a.dtype).view(unsigned)  # -0.0 counts as 0.0
        keys = numpy.where(raw >= top, ~raw, raw | numpy.array(top, unsigned))
        keys[numpy.isnan(a)] = 2**bits - 1
    elif a.dtype.kind == "i":
        keys = a.view(unsigned) ^ numpy.array(top, unsigned)
    else:
        keys = a.view(unsigned)
    return ~keys if descending else keys


def _tagged(a, descending):
    """For elements of up to 32 bits: rank and position in one uint64 each, so that a plain sort (vectorised, unlike a stable argsort) is stable."""
    import numpy

    keys = _ranks(numpy.ascontiguousarray(a), descending).astype("uint64")
    return (keys << numpy.uint64(32)) | numpy.arange(a.shape[-1], dtype="uint64")


def _positions(tagged):
    import numpy

    return (tagged & numpy.uint64(0xFFFFFFFF)).astype("int64")


def _order(a, axis, descending):
    """Positions that sort `a` along an axis, equals in their old order."""
    import numpy

    a = numpy.moveaxis(a, axis, -1)
    if a.dtype.itemsize <= 4 and a.shape[-1] < 2**32:
        found = _positions(numpy.sort(_tagged(a, descending), axis=-1))
    else:
        found = numpy.argsort(_ranks(numpy.ascontiguousarray(a), descending), axis=-1, kind="stable")
    return numpy.moveaxis(found, -1, axis)


FEW_ROWS, SHORT_ROW = 8, 128  # rows, or elements of a row, from which NumPy sorts at the speed of kernels/radix.py


def _long(x, dim):
    n = x.shape[dim]
    return 0 < x.numel() and n < digits.MOST and (n >= SHORT_ROW or x.numel() <= FEW_ROWS * n) and (x.dtype.name in digits.KINDS or x.dtype.is_floating_point)


def _by_digits(x, dim, descending):
    """(values, positions) along `dim`, row-major."""
    rows = x if x.dtype.name in digits.KINDS else TABLE["to"].call(x, dtypes.float32)
    rows = TABLE["contiguous"].call(TABLE["movedim"].call(rows, dim, -1))
    values, positions = empty(rows.shape, rows.dtype, x.device), empty(rows.shape, dtypes.int64, x.device)
    n = rows.shape[-1]
    kind = "digits", rows.dtype.name, rows.numel() // n, n, descending
    plan, size = _ORDERS.get(kind) or _ORDERS.put(kind, digits.build_radix(*kind[1:]))
    scratch = native.new_storage(size)
    launch(plan, values.ptr, positions.ptr, scratch.data, rows.ptr)
    if values.dtype is not x.dtype:
        values = TABLE["to"].call(values, x.dtype)
    return [TABLE["contiguous"].call(TABLE["movedim"].call(t, -1, dim)) for t in (values, positions)]


_ORDERS = native.PlanCache()


def _arranged(a, mode, k=1, descending=False):
    """The positions in each row [.., n] of an array, rearranged by kernels/order.py."""
    import numpy

    n = a.shape[-1]
    keys = numpy.ascontiguousarray(_ranks(numpy.ascontiguousarray(a), descending)).astype("uint64")
    positions = numpy.empty(a.shape, "int64")
    positions[...] = numpy.arange(n)
    if a.size:
        kind = mode, a.size // n, n, k
        launch(_ORDERS.get(kind) or _ORDERS.put(kind, arrangements.build_order(*kind)), keys.ctypes.data, positions.ctypes.data)
    return positions


def _pick(x, dim, indices, values_array):
    """(values, indices) as tensors, recorded as a selection along `dim`."""
    values = host.tensor(values_array, x.dtype, x.device)
    indices = host.tensor(indices, dtypes.int64, x.device)
    return values, indices


def _take(x, dim, positions):
    import numpy

    return numpy.take_along_axis(host.array(x), positions, dim)


def _recorded(cls, x, values, indices, dim, keepdim=True):
    values, indices = plain(values), plain(indices)  # windows of nothing: a write into them has the history of x, not that of what they were made of
    if tracking(x):
        record(cls, (x,), values, (indices,), shape=x.shape, dim=dim, keepdim=keepdim)
    return values, indices


SortBackward0 = backward("Sort", saved_names=("indices",))(value_selecting_backward)
TopkBackward0 = backward("Topk", saved_names=("indices",))(value_selecting_backward)
KthvalueBackward0 = backward("Kthvalue", saved_names=("indices",))(value_selecting_backward)
MedianBackward1 = backward("MedianBackward1", saved_names=("indices",))(value_selecting_backward)
NanmedianBackward1 = backward("NanmedianBackward1", saved_names=("indices",))(value_selecting_backward)
ModeBackward0 = backward("Mode", saved_names=("indices",))(value_selecting_backward)


@operator("sort", out=True, flops=lambda *_: 0)
def sort(input, dim=-1, descending=False, stable=False):
    """(values, indices) along `dim` in ascending (or descending) order; NaN counts as the largest. Equal elements keep their order."""
    dim = wrap_dim(dim, input.ndim)
    if input.is_meta or input.ndim == 0:
        indices = host.like(input.spec, dtype=dtypes.int64) if input.is_meta else TABLE["zeros"].call((), dtype=dtypes.int64, device=input.device)
        values = host.like(input.spec) if input.is_meta else TABLE["clone"].call(plain(input))
        return TYPES["sort"](_recorded(SortBackward0, input, values, indices, dim))
    if _long(input, dim):
        values, indices = _by_digits(plain(input), dim, bool(descending))
    else:
        positions = _order(host.wide(input), dim, descending)
        values, indices = _pick(input, dim, positions, _take(input, dim, positions))
    return TYPES["sort"](_recorded(SortBackward0, input, values, indices, dim))


@operator("argsort", out=True, flops=lambda *_: 0)
def argsort(input, dim=-1, descending=False, stable=False):
    """The indices of `sort`."""
    return sort(plain(input), dim, descending, stable).indices


@operator("msort", out=True, flops=lambda *_: 0)
def msort(input):
    """The values of `sort` along dimension 0."""
    return sort(input, 0).values


@operator("topk", out=True, flops=lambda *_: 0)
def topk(input, k, dim=-1, largest=True, sorted=True):
    """(values, indices) of the k largest (or smallest) along `dim`, in order; NaN counts as the largest. Raises RuntimeError for k out of range."""
    dim = wrap_dim(dim, input.ndim)
    k = index(k)
    if not 0 <= k <= (input.shape[dim] if input.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if input.dtype is dtypes.bool_:
        raise RuntimeError("topk does not support bool dtypes on CPU\n  Convert it first, as in x.byte().")
    shape = tuple(k if d == dim else n for d, n in enumerate(input.shape))
    if input.is_meta:
        values, indices = host.like(input.spec, shape), host.like(input.spec, shape, dtypes.int64)
        return TYPES["topk"](_recorded(TopkBackward0, input, values, indices, dim))
    if input.ndim == 0:
        flat = topk(TABLE["reshape"].call(input, (1,)), k, 0, largest, sorted)
        if not k:  # a number stays one
            flat = topk(TABLE["reshape"].call(input, (1,)), 1, 0, largest, sorted)
        return TYPES["topk"](tuple(TABLE["reshape"].call(t, ()) for t in flat))
    positions = _best(host.wide(input), k, dim, largest, sorted)
    values, indices = _pick(input, dim, positions, _take(input, dim, positions))
    return TYPES["topk"](_recorded(TopkBackward0, input, values, indices, dim))


def _best(a, k, axis, largest, sorted):
    """Positions of the k best along an axis, best first, and those that PyTorch takes of equals. Of many numbers only candidates are looked at twice."""
    import numpy

    a = numpy.moveaxis(a, axis, -1)
    n = a.shape[-1]
    found, mode = None, arrangements.TOP if k * 64 <= n else arrangements.SELECT if sorted else arrangements.PART
    if 0 < k and k * 64 <= n and a.dtype.name in tops.DTYPES:
        return numpy.moveaxis(_top(numpy.ascontiguousarray(a), k, largest), -1, axis)
    if a.size > FEW and 0 < k <= n // 4 and a.dtype.kind == "f":
        if a.dtype.name == "float32" and k <= tops.MOST and tops.SHARE * k <= n:
            found = _top(numpy.ascontiguousarray(a), k, largest, True)
            left = found[..., 0] < 0
            if left.any():
                found[left] = _arranged(a[left], mode, k, largest)[..., :k]
        else:
            found = _from_partition(a, k, largest)
            if _has_ties(a, found):
                found = None
    if found is None:
        found = _arranged(a, mode, max(k, 1), largest)[..., :k]
    return numpy.moveaxis(found, -1, axis)


def _top(a, k, largest, alone=False):
    """The positions of the k best of each row of a contiguous array, by one pass over it; `alone`: the first is -1 in rows where equal numbers are among them."""
    import numpy

    n = a.shape[-1]
    positions = numpy.empty((*a.shape[:-1], k), "int64")
    if a.size:
        keys, kind = numpy.empty(positions.shape, "uint64"), (a.dtype.name, a.size // n, n, k, largest, alone)
        plan = _ORDERS.get(kind) or _ORDERS.put(kind, tops.build_top(*kind))
        launch(plan, positions.ctypes.data, keys.ctypes.data, a.ctypes.data)
    return positions


FEW = 1 << 16  # numbers up to which topk leaves all work to the kernel


def _has_ties(a, found):
    """Whether an element that was found equals another one, or a NaN is among them."""
    import numpy

    values = numpy.take_along_axis(a, found, -1)
    last = values[..., -1:]
    return bool((values[..., 1:] == values[..., :-1]).any() or numpy.isnan(values).any() or (numpy.count_nonzero(a == last, axis=-1) > 1).any())


def _from_partition(a, k, largest):
    import numpy

    nan = numpy.isnan(a)
    if nan.any():
        return _order(a, -1, largest)[..., :k]
    keys = -a if largest else a
    chosen = numpy.sort(numpy.argpartition(keys, k - 1, axis=-1)[..., :k], axis=-1)
    order = numpy.argsort(numpy.take_along_axis(keys, chosen, -1), axis=-1, kind="stable")
    return numpy.take_along_axis(chosen, order, -1)


# ---- order statistics --------------------------------------------------------------------------------------------------------------


def _select_one(name, cls, x, dim, keepdim, positions):
    """A named tuple of the elements at `positions` ([.., 1, ..] along dim)."""
    values, indices = _pick(x, dim, positions, _take(x, dim, positions))
    if not keepdim:
        values, indices = TABLE["squeeze"].call(values, dim), TABLE["squeeze"].call(indices, dim)
    return TYPES[name](_recorded(cls, x, values, indices, dim, keepdim))


def _meta_pair(name, x, dim, keepdim):
    shape = tuple(1 if d == dim else n for d, n in enumerate(x.shape) if keepdim or d != dim)
    return TYPES[name]((host.like(x.spec, shape), host.like(x.spec, shape, dtypes.int64)))


def _nonempty(name, x, dim):
    if x.ndim and x.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def _scalar_pair(name, x):
    return TYPES[name]((TABLE["clone"].call(x), TABLE["zeros"].call((), dtype=dtypes.int64, device=x.device)))


@operator("kthvalue", out=True, flops=lambda *_: 0)
def kthvalue(input, k, dim=-1, keepdim=False):
    """(values, indices) of the k-th smallest element (from 1) along `dim`."""
    import numpy

    dim = wrap_dim(dim, input.ndim)
    _nonempty("kthvalue", input, dim)
    if not 1 <= k <= (input.shape[dim] if input.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    if input.ndim == 0:
        return _scalar_pair("kthvalue", input)
    if input.is_meta:
        return _meta_pair("kthvalue", input, dim, keepdim)
    order = _arranged(numpy.moveaxis(host.wide(input), dim, -1), arrangements.QUICKSELECT, index(k))
    return _select_one("kthvalue", KthvalueBackward0, input, dim, keepdim, numpy.moveaxis(order[..., k - 1 : k], -1, dim))


def _median_positions(a, axis, ignore_nan):
    """Where the lower median lies, equals in their order; with a NaN, at the first NaN unless they are ignored."""
    import numpy

    n = a.shape[axis]
    if a.dtype.kind != "f" or not (nan := numpy.isnan(a).sum(axis=axis, keepdims=True)).any():
        # Nothing is sorted: selection finds the value, and counting its place among equals.
        rank = (n - 1) // 2
        value = numpy.take(numpy.partition(a, rank, axis=axis), [rank], axis=axis)
        smaller = numpy.count_nonzero(a < value, axis=axis, keepdims=True)
        return numpy.argmax(numpy.cumsum(a == value, axis=axis) > rank - smaller, axis=axis, keepdims=True)
    order = numpy.argsort(a, axis=axis, kind="stable")
    middle = numpy.maximum(n - nan - 1, 0) // 2 if ignore_nan else numpy.where(nan > 0, n - nan, (n - 1) // 2)
    found = numpy.take_along_axis(order, middle, axis)
    if ignore_nan and (nan == n).any():  # NaN alone: where PyTorch's selection among equals ends
        found = numpy.where(nan == n, _arranged(numpy.zeros((1, n), "int64"), arrangements.PART)[0, 0], found)
    return found


def _median(name, cls, ignore_nan):
    def median(input, dim=None, keepdim=False):
        if dim is None:
            if input.is_meta:
                return host.like(input.spec, ())
            flat = TABLE["reshape"].call(input, (-1,))
            if not flat.numel():
                return TABLE["full"].call((), float("nan"), dtype=input.dtype, device=input.device)
            position = int(_median_positions(host.wide(flat), 0, ignore_nan)[0])
            return TABLE["clone"].call(TABLE["select"].call(flat, 0, position))
        d = wrap_dim(dim, input.ndim)
        _nonempty(name, input, d)
        if input.ndim == 0:
            return _scalar_pair(name, input)
        if input.is_meta:
            return _meta_pair(name, input, d, keepdim)
        return _select_one(name, cls, input, d, keepdim, _median_positions(host.wide(input), d, ignore_nan))

    median.__doc__ = (
        "The lower median of all elements, or (values, indices) along `dim`. " + ("NaN is ignored." if ignore_nan else "NaN where any element is.")
    )
    return operator(name, out=True, flops=lambda *_: 0)(median)


median = _median("median", MedianBackward1, False)
nanmedian = _median("nanmedian", NanmedianBackward1, True)


@operator("mode", out=True, flops=lambda *_: 0)
def mode(input, dim=-1, keepdim=False):
    """(values, indices) of the most frequent element along `dim`: the smallest of equally frequent ones, at its position in the sorted row."""
    import numpy

    dim = wrap_dim(dim, input.ndim)
    _nonempty("mode", input, dim)
    if input.ndim == 0:
        return _scalar_pair("mode", input)
    if input.is_meta:
        return _meta_pair("mode", input, dim, keepdim)
    a = numpy.moveaxis(host.wide(input), dim, -1)
    order = _arranged(a, arrangements.SORT)
    ranked = numpy.take_along_axis(a, order, -1)
    position = numpy.arange(a.shape[-1])
    new = numpy.ones(ranked.shape, bool)
    new[..., 1:] = ranked[..., 1:] != ranked[..., :-1]
    start = numpy.maximum.accumulate(numpy.where(new, position, 0), -1)  # where each run of equals begins
    best = numpy.argmax(position - start, -1)[..., None]  # the first longest run ends here
    return _select_one("mode", ModeBackward0, input, dim, keepdim, numpy.moveaxis(numpy.take_along_axis(order, best, -1), -1, dim))


def _quantile(name, ignore_nan):
    def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
        if not input.dtype.is_floating_point:
            raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
        if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
            raise RuntimeError(f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}")
        q = q if isinstance(q, Tensor) else scalar_tensor(q, dtype=input.dtype, device=input.device)
        if q.ndim > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
        x, d = (TABLE["reshape"].call(input, (-1,)), 0) if dim is None else (input, wrap_dim(dim, input.ndim))
        ranked = sort(TABLE["movedim"].call(x, d, -1) if x.ndim else TABLE["reshape"].call(x, (1,)), -1).values  # [.., n]
        n = ranked.shape[-1]
        if n == 0:
            raise RuntimeError(f"{name}() input tensor must be non-empty")
        nan = TABLE["isnan"].call(ranked)
        if ignore_nan:
            last = TABLE["clamp"].call(n - 1 - TABLE["sum"].call(nan, -1, True), min=0)
            place = TABLE["reshape"].call(q, (-1,)) * last  # [.., q]
        else:
            place = TABLE["expand"].call(TABLE["reshape"].call(q, (-1,)) * (n - 1), (*ranked.shape[:-1], -1))
        place = TABLE["clamp"].call(place, 0, n - 1)
        rounded = {"lower": "floor", "higher": "ceil", "nearest": "round"}.get(interpolation)
        if rounded:
            out = TABLE["gather"].call(ranked, -1, TABLE["to"].call(TABLE[rounded].call(place), dtypes.int64))
        else:
            low = TABLE["floor"].call(place)
            a = TABLE["gather"].call(ranked, -1, TABLE["to"].call(low, dtypes.int64))
            b = TABLE["gather"].call(ranked, -1, TABLE["to"].call(TABLE["ceil"].call(place), dtypes.int64))
            out = TABLE["lerp"].call(a, b, TABLE["full_like"].call(place, 0.5) if interpolation == "midpoint" else place - low)
        if not ignore_nan:
            out = TABLE["masked_fill"].call(out, TABLE["any"].call(nan, -1, True), float("nan"))
        if keepdim:
            shape = [1] * input.ndim if dim is None else [1 if k == d else m for k, m in enumerate(input.shape)]
        else:
            shape = [] if dim is None else [m for k, m in enumerate(input.shape) if k != d]
        out = TABLE["movedim"].call(out, -1, 0)  # [q, ..]
        return TABLE["reshape"].call(out, (*q.shape, *shape))

    quantile.__doc__ = f"The q-quantiles (q in [0, 1], a number or 1-d) of all elements or along `dim`{', NaN ignored' if ignore_nan else ''}. [q, ..] for 1-d q."
    return operator(name, out=True, flops=lambda *_: 0, autocast="float32")(quantile)


quantile, nanquantile = _quantile("quantile", False), _quantile("nanquantile", True)

# ---- unique ------------------------------------------------------------------------------------------------------------------------


@operator("unique", flops=lambda *_: 0)
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements (or, along `dim`, slices) in ascending order; with the places of the input's elements among them and their counts if asked."""
    import numpy

    a = host.array(input)
    values, inverse, counts = numpy.unique(a, return_inverse=True, return_counts=True, axis=dim, equal_nan=False)
    inverse = inverse.reshape(input.shape if dim is None else (input.shape[dim],))
    return _unique_result("_unique2" if dim is None else "unique_dim", input, values, inverse, counts, return_inverse, return_counts)


@backward("Unique")
def UniqueBackward0(node, g):
    raise NotImplementedError(f"the derivative for '{node.of}' is not implemented.\n  Use detach() on its result where no gradient is wanted, or x[first] with the places of the distinct elements.")


def _unique_result(name, input, values, inverse, counts, return_inverse, return_counts):
    results = [host.tensor(values, input.dtype, input.device)]
    if tracking(input):
        record(UniqueBackward0, (input,), results[0], of=name)
    if return_inverse:
        results.append(host.tensor(inverse, dtypes.int64, input.device))
    if return_counts:
        results.append(host.tensor(counts, dtypes.int64, input.device))
    return tuple(results) if len(results) > 1 else results[0]


@operator("unique_consecutive", flops=lambda *_: 0)
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The elements (or slices along `dim`) without immediate repetitions."""
    import numpy

    a = host.array(input)
    rows = a.reshape(-1, 1) if dim is None else numpy.moveaxis(a, dim, 0)
    rows = rows.reshape(len(rows), max(rows.size // max(len(rows), 1), 1) if rows.size else 0)
    new = numpy.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(1)
    starts = numpy.flatnonzero(new)
    values = a.reshape(-1)[starts] if dim is None else numpy.take(a, starts, axis=dim)
    inverse = numpy.cumsum(new) - 1
    counts = numpy.diff([*starts, len(rows)])
    name = "unique_consecutive" if dim is None else "unique_dim_consecutive"
    return _unique_result(name, input, values, inverse.reshape(input.shape) if dim is None else inverse, counts, return_inverse, return_counts)
