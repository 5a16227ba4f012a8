"""Counting, membership and divisors, left to NumPy: histc, histogram, histogramdd, isin, nonzero_static, hash_tensor, gcd, lcm."""
from __future__ import annotations

import math

from .. import dtypes
from ..tensor import Tensor, empty
from . import host
from .hostwise import converted_number, hostwise
from .return_types import TYPES
from .table import TABLE, operator


def _check_float(name: str, input: Tensor) -> None:
    if not input.is_floating_point():
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{input.dtype.scalar_name}': convert to float32 first, as in x.float()")


def _outer_edges(name: str, values, low, high, widen: float) -> tuple[float, float]:
    """The range to count in: as given, else the data's; an empty one is widened on both sides."""
    if low is None or low == high == 0 and widen == 1:
        low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0 if widen == 1 else 1.0)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{name}: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(f"{name}: max must be larger than min" if name == "torch.histc" else f"{name}: min should not exceed max, but got min: {low:g} max: {high:g}")
    return (low - widen, high + widen) if low == high else (low, high)


@operator("histc", out=True)
def histc(input, bins=100, min=0, max=0):
    """Counts of input's elements in `bins` equal bins between min and max (both 0: the data's), in input's dtype; others are not counted. [*] -> [bins]"""
    import numpy

    _check_float("histogram", input)
    if bins <= 0:
        raise RuntimeError("bins must be > 0")
    if input.is_meta:
        return empty((bins,), input.dtype, input.device)
    a = host.array(input).ravel()  # 16-bit floats round at every step, as in PyTorch
    low, high = _outer_edges("torch.histc", a, min, max, 1.0)
    inside = a[(a >= low) & (a <= high)]
    place = ((inside - a.dtype.type(low)) * a.dtype.type(bins) / (a.dtype.type(high) - a.dtype.type(low))).astype("int64")
    counts = numpy.bincount(numpy.minimum(place, bins - 1), minlength=bins)
    return host.tensor(counts, input.dtype, input.device)


def _edges(name, values, bins, span, dtype, device) -> Tensor:
    """Bin edges of one dimension: those given as a tensor, or `bins` equal ones between the outer edges."""
    if isinstance(bins, Tensor):
        return bins
    if bins <= 0:
        raise RuntimeError(f"{name}: bins must be > 0, but got {bins}")
    least, most = span or (None, None)
    low, high = _outer_edges(name, values, least, most, 0.5)
    return TABLE["linspace"].call(low, high, bins + 1, dtype=dtype, device=device)


def _count(rows, edges: list, weight, density: bool, dtype, device) -> Tensor:
    """Rows [n, d] counted (or their weights summed) between the edges of each dimension; the last bin includes its right edge."""
    import numpy

    sizes = [len(e) - 1 for e in edges]
    places, inside = [], numpy.ones(len(rows), bool)
    for column, e in zip(rows.T, edges):
        place = numpy.searchsorted(e, column, side="right") - 1
        place = numpy.where(column == e[-1], len(e) - 2, place)
        inside &= (column >= e[0]) & (column <= e[-1])
        places.append(place)
    flat = numpy.ravel_multi_index([p[inside] for p in places], sizes)
    counts = numpy.bincount(flat, None if weight is None else weight[inside], math.prod(sizes)).reshape(sizes).astype("float64")
    if density:
        with numpy.errstate(all="ignore"):
            counts = counts / counts.sum()
            for d, e in enumerate(edges):
                counts = counts / numpy.diff(e).reshape([-1 if k == d else 1 for k in range(len(edges))])
    return host.tensor(counts, dtype, device)


@operator("histogram", out=True)
def histogram(input, bins, *, range=None, weight=None, density=False):
    """(hist, bin_edges) of input's elements: `bins` equal bins over `range` (the data's by default), or between the edges given as a tensor. [*] -> [bins], [bins + 1]"""
    _check_float("histogram", input)
    if isinstance(bins, Tensor) and bins.dtype is not input.dtype:
        raise RuntimeError("torch.histogram: input tensor and bins tensors should have the same dtype")
    a = host.wide(input).ravel()
    edges = _edges("torch.histogramdd", a, bins, range, input.dtype, input.device)
    flat_weight = None if weight is None else host.wide(weight).ravel()
    hist = _count(a[:, None], [host.wide(edges)], flat_weight, density, input.dtype, input.device)
    return TYPES["histogram"]((hist, edges))


@operator("histogramdd")
def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """(hist, bin_edges) of points: [*, d] -> [bins of dimension 1, …, bins of dimension d]. bins: a number for all dimensions, one each, or the edges of each."""
    _check_float("histogramdd", input)
    if input.ndim < 2:
        raise RuntimeError(f"torch.histogramdd: input tensor should have at least 2 dimensions, but got {input.ndim}")
    d = input.shape[-1]
    per = list(bins) if isinstance(bins, (list, tuple)) else [bins] * d
    if len(per) != d:
        raise RuntimeError(f"histogramdd: The size of bins must be equal to the innermost dimension of the input.\n  {len(per)} bins for a last dimension of size {d}.")
    rows = host.wide(input).reshape(-1, d)
    spans = [None] * d if range is None else [(range[2 * k], range[2 * k + 1]) for k in _up_to(d)]
    edges = [_edges("torch.histogramdd", rows[:, k], per[k], spans[k], input.dtype, input.device) for k in _up_to(d)]
    flat_weight = None if weight is None else host.wide(weight).ravel()
    hist = _count(rows, [host.wide(e) for e in edges], flat_weight, density, input.dtype, input.device)
    return TYPES["histogramdd"]((hist, tuple(edges)))


_up_to = range


@operator("isin", method=False, out=True, names={"element": "elements", "test_element": "test_elements"})
def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """Whether each element is among test_elements (invert: is not); either may be a number."""
    import numpy

    tensors = [t for t in (elements, test_elements) if isinstance(t, Tensor)]
    if not tensors:
        raise TypeError(f"isin(): argument 'elements' (position 1) must be Tensor, not {type(elements).__name__}")
    shape, device = elements.shape if isinstance(elements, Tensor) else (), tensors[0].device
    if tensors[0].is_meta:
        return empty(shape, dtypes.bool_, device)
    if isinstance(elements, complex) or isinstance(test_elements, complex):
        raise RuntimeError("Unsupported input type encountered for isin(): ComplexDouble\n  Complex numbers have no order: compare their parts.")
    common = dtypes.result_type(elements, test_elements)  # numbers beside tensors are compared in the tensor's dtype, where large ones wrap
    a, b = (host.wide(TABLE["to"].call(t, common) if isinstance(t, Tensor) else converted_number(t, common)) for t in (elements, test_elements))
    return host.tensor(numpy.isin(a, b, assume_unique=assume_unique, invert=invert), dtypes.bool_, device)


@operator("nonzero_static", out=True)
def nonzero_static(input, *, size, fill_value=-1):
    """`nonzero` with a fixed number of rows: cut off, or filled up with fill_value. [size, ndim]"""
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, got {size}")
    out = TABLE["full"].call((size, input.ndim), fill_value, dtype=dtypes.int64, device=input.device)
    if not input.is_meta:
        found = TABLE["nonzero"].call(input)[:size]
        if found.numel():
            out[: found.shape[0]].copy_(found)
    return out


@operator("hash_tensor", out=True)
def hash_tensor(input, dim=(), *, keepdim=False, mode=0):
    """The exclusive or of the elements' 64-bit patterns along `dim` (all by default), as uint64: integers extended, floats as float64."""
    import numpy

    if mode != 0:
        raise RuntimeError(f"hash_tensor: Unknown hash mode: {mode}")
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    ndim = max(input.ndim, 1)
    axes = tuple(sorted({d % ndim for d in dims} or {*range(ndim)})) if input.ndim else ()
    kept = [1 if d in axes else size for d, size in enumerate(input.shape)]
    shape = kept if keepdim else [size for d, size in enumerate(input.shape) if d not in axes]
    if input.is_meta:
        return empty(shape, dtypes.uint64, input.device)
    bits = host.wide(input).astype("float64" if input.is_floating_point() else "int64").view("uint64")
    result = numpy.bitwise_xor.reduce(bits, axis=axes) if axes else bits
    return host.tensor(result.reshape(shape), dtypes.uint64, input.device)


def _divisors(name: str, doc: str) -> None:
    @operator(name, out=True, inplace=True)
    def call(input, other):
        import numpy

        common = dtypes.result_type(input, other)
        if common.is_floating_point or common is dtypes.bool_:
            raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{common.scalar_name}': integers have divisors, convert with x.long()")
        return hostwise(name, getattr(numpy, name), input, other, dtype=common, working="int64")

    TABLE[name].doc = call.__doc__ = doc


_divisors("gcd", "The greatest common divisor of two integers, not negative.")
_divisors("lcm", "The least common multiple of two integers, not negative.")
