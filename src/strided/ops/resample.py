"""Resizing and averaging as products with banded matrices, one a dimension: the operator, its gradient (the transposed bands) and its results' memory formats.

Holds `Bands`, the rows of weights, and `resample`. Which weights a mode of `interpolate` or a pool has is nn/functions/'s; the kernel is kernels/bands.py's.
"""
from __future__ import annotations

from functools import cached_property
from math import prod

from ..autograd import backward, record, tracking
from ..dispatch import PlanCache, launch_new
from ..formats import contiguous_format, suggested
from ..kernels import bands as kernels
from ..layout import Layout
from ..tensor import Spec, Tensor, empty_of, wrap
from . import convolution_last as last
from .create import spec_of
from .folding import plain
from .onlooking import seen_as
from .table import TABLE

_plans = PlanCache()
LARGE = 1 << 30  # bytes of a result whose memory is asked for before its tables are made


class Bands:
    """A matrix [out, size] whose row o holds `weights[o]` (maybe none) from column `first[o]` on. Equal only to itself: whoever makes one keeps it."""

    def __init__(self, size: int, first: list[int], weights: list[list[float]]):
        self.size, self.first, self.weights = size, first, weights
        self.out = len(first)
        times = self.out // max(size, 1)
        self.times = times if times > 1 and first == [o // times for o in range(size * times)] and all(row == [1.0] for row in weights) else 0  # that every element stands

    @cached_property
    def transposed(self) -> Bands:
        """The same matrix the other way round; elements between a column's first and last are zeros where no row has them."""
        first, last = [self.out] * self.size, [-1] * self.size
        for o, (start, row) in enumerate(zip(self.first, self.weights)):
            for s in range(start, start + len(row)):
                first[s], last[s] = min(first[s], o), o
        rows = [[self.at(o, s) for o in range(low, high + 1)] for s, (low, high) in enumerate(zip(first, last))]
        turned = Bands(self.out, [low if high >= 0 else 0 for low, high in zip(first, last)], rows)
        turned.transposed = self
        return turned

    def at(self, o: int, s: int) -> float:
        place = s - self.first[o]
        return self.weights[o][place] if 0 <= place < len(self.weights[o]) else 0.0


def takes(x: Tensor) -> bool:
    """Whether `resample` has a kernel for x."""
    return x.dtype.name in kernels.DTYPES and x.numel() > 0 and not x.is_meta


def room(x: Tensor, sizes) -> None:
    """Raises RuntimeError where no memory would hold the result [.., *sizes], before tables as long as that are made (a table has a row an element).

    Memory is asked for where it is much, and given back at once; the result takes it again.
    """
    spec = spec_of((*x.shape[: x.ndim - len(sizes)], *sizes), x.dtype, x.device)
    if spec.nbytes > LARGE and spec.is_plain:
        empty_of(spec)


def resample(x: Tensor, bands: dict[int, Bands], node: str = "Resample", keeps: bool | str = True, alike=None) -> Tensor:
    """x [N, C, S..] multiplied along each dimension of `bands` by its matrix, in their order. Recorded; `node` names the gradient's function.

    The result has the memory format that x suggests; the gradient has its result's gradient's if it `keeps` it, that of x for "input", else it is contiguous.
    alike: (windows' sizes, strides, padding, the weight of all their elements) where all bands are windows that are alike.
    """
    given = plain(x)
    kernel, stride, padding, weight = alike or ((), (), (), 0.0)
    if kernel and last.adds(given, kernel, stride):
        out = last.window_sums(given, kernel, stride, padding, weight, [bands[d].out if d in bands else x.shape[d] for d in range(2, x.ndim)])
    else:
        out = _products(given, bands)
    if tracking(x):
        form = None if keeps is True else suggested(x.spec.layout) if keeps else contiguous_format
        record(NODES[node], (x,), out, bands=bands, form=form)
    return out


def _products(x: Tensor, bands: dict[int, Bands]) -> Tensor:
    form = suggested(x.spec.layout)
    x = x.contiguous(memory_format=form)
    if bands and all(band.times for band in bands.values()):
        return _repeated(x, {dim: band.times for dim, band in bands.items()}, form)
    for dim, band in bands.items():
        x = _product(x, dim, band, form)
    return x


def _repeated(x: Tensor, times: dict[int, int], form) -> Tensor:
    """x with every element so many times in a row along each dimension."""
    shape = [size * times.get(d, 1) for d, size in enumerate(x.shape)]
    order = list(range(x.ndim)) if form is contiguous_format else [0, *range(2, x.ndim), 1]  # as they lie in memory
    lines = x.permute(*order)
    if order[-1] in times:  # neighbours are interleaved
        count = times[order[-1]]
        lines = TABLE["stack"].call([lines] * count, -1).flatten(-2)
    for at in reversed(range(x.ndim - 1)):
        if order[at] in times:
            lines = lines.unsqueeze(at + 1)
            lines = lines.expand(*lines.shape[: at + 1], times[order[at]], *lines.shape[at + 2 :])
    lines = lines.contiguous()
    return wrap(Spec.of(form.layout(shape), x.dtype, x.device), lines.mem, lines.ptr)


def _product(x: Tensor, dim: int, bands: Bands, form) -> Tensor:
    """One dimension, of x that is dense in the given format."""
    key = x.spec, dim, bands
    plan = _plans.get(key)
    if plan is None:
        shape = (*x.shape[:dim], bands.out, *x.shape[dim + 1 :])
        spec = Spec.of(form.layout(shape), x.dtype, x.device)
        order = list(range(x.ndim)) if form is contiguous_format else [0, *range(2, x.ndim), 1]  # as they lie in memory
        at = order.index(dim)
        outer, inner = (Layout.contiguous([x.shape[d] for d in part]).numel for part in (order[:at], order[at + 1 :]))
        plan = _plans.put(key, (spec, kernels.build_bands(x.dtype, outer, bands.size, inner, bands.first, bands.weights, spec.nbytes)))
    spec, descriptor = plan
    mem = launch_new(descriptor, x.ptr)
    return wrap(spec, mem, mem.data)


def _back(node, g):
    bands = {dim: band.transposed for dim, band in reversed(node.bands.items())}
    if node.form is not None:
        g = g.contiguous(memory_format=node.form)
    return (resample(g, bands, "Resample") if tracking(g) else _products(plain(g), bands),)


def _back_flops(node, g) -> int:
    """A product and a sum for each weight, a dimension at a time."""
    shape, total = list(g.shape), 0
    for dim, band in reversed(node.bands.items()):
        total += 2 * prod(shape) // max(shape[dim], 1) * sum(map(len, band.weights))
        shape[dim] = band.size
    return total


def _node(name: str):
    def function(node, g):
        return _back(node, g)

    function.__name__ = function.__qualname__ = f"{name}Backward0"
    return backward(name)(seen_as("resample_backward", _back_flops)(function))


NAMES = (
    "Resample UpsampleNearest1D UpsampleNearest2D UpsampleNearest3D UpsampleNearestExact1D UpsampleNearestExact2D UpsampleNearestExact3D UpsampleLinear1D UpsampleBilinear2D "
    "UpsampleTrilinear3D UpsampleBicubic2D UpsampleBilinear2DAa UpsampleBicubic2DAa UpsampleLanczos2DAa AvgPool1D AvgPool2D AvgPool3D AdaptiveAvgPool1D AdaptiveAvgPool2D AdaptiveAvgPool3D"
).split()
NODES = {name: _node(name) for name in NAMES}
