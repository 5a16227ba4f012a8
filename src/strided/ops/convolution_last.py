"""Convolution of images whose channels lie innermost: operands laid out for kernels/conv_last.py, plans, and which convolutions it takes. Nothing here is recorded.

The operator, its gradients and the other kernels are convolution.py's.
"""
from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

from ..dispatch import PlanCache, launch, launch_new
from ..formats import channels_last, channels_last_3d, contiguous_format, suggested
from ..kernels import conv_last as kernels
from ..kernels.native import new_storage
from ..kernels.precision import operand
from ..layout import Layout
from ..tensor import Spec, empty_of, wrap
from .folding import plain
from .table import TABLE

_plans = PlanCache()
MANY = 256  # features and channels of images that take little time to lay out beside their convolution
FEW = 16  # features of a group below which vectors of features would be mostly idle


def form_of(x, weight):
    """The memory format of a convolution's results: channels last if either operand suggests it, but for volumes of float64, as in PyTorch."""
    if x.ndim < 4 or x.ndim == 5 and x.dtype.name == "float64":
        return contiguous_format
    form = suggested(x.spec.layout)
    return form if form is not contiguous_format else suggested(weight.spec.layout)


def takes(dtype, features: int, channels: int, groups: int) -> bool:
    """Whether there is a kernel for so many features and channels in all: ordinary ones, or one group a channel."""
    depthwise = channels == features == groups
    return dtype.name in kernels.DTYPES and operand(dtype.name) == dtype.name and (groups == 1 or depthwise or features // groups >= FEW)


def better(dtype, weight, places, groups: int) -> bool:
    """Whether contiguous images are worth laying out with their channels innermost and the result back. weight: shape [F, C/g, K..]."""
    if dtype.itemsize < 4 or len(places) > 2 or not takes(dtype, weight[0], weight[1] * groups, groups):
        return False
    if weight[1] == 1 and groups == weight[0]:  # rows so short that lanes of positions are idle, or windows that repay it
        return len(places) == 2 and weight[3] <= kernels.TAPS and (places[1] <= 12 or weight[2] * weight[3] > 40)
    return groups == 1 and min(weight[0], weight[1]) >= MANY


def layout_of(shape) -> Layout:
    """The layout of [N, C, S..] with channels innermost, for any number of dimensions."""
    inner = Layout.contiguous((shape[0], *shape[2:], shape[1]))
    return inner.permute((0, len(shape) - 1, *range(1, len(shape) - 1)))


def laid_out(x):
    """x [N, C, S..] with its channels innermost: itself, where they are."""
    if x.stride(1) == 1 and (x.ndim == 3 or suggested(x.spec.layout) is not contiguous_format):
        return x
    if x.ndim == 3:
        return x.transpose(1, 2).contiguous().transpose(1, 2)
    return x.contiguous(memory_format=channels_last if x.ndim == 4 else channels_last_3d)


def weights(weight):
    """The weights of a convolution with images laid out: those of one channel are turned anyway."""
    return laid_out(weight) if weight.shape[1] > 1 else weight


def correlate(x, weight, bias, places, stride, before, dilation, groups: int, out=None, taps=None, columns=None):
    """x [N, C, S..] with weight [F, C/g, K..] → [N, F, places..] with its channels innermost, or written into the window `out`.

    taps: for each dimension, which elements of the kernel the window has; then the weight's features are the result's channels (an input's gradient).
    columns: `_columns` of the weight, where it is known.
    """
    x, turned = laid_out(x), taps is not None
    if taps is None:
        taps = tuple(tuple(range(k)) for k in weight.shape[2:])
    depthwise = weight.shape[1] == 1 and groups == weight.shape[0]
    key = x.spec, weight.spec, None if out is None else out.spec, tuple(places), stride, tuple(before), dilation, groups, taps, turned
    plan = _plans.get(key)
    if plan is None:
        channels = weight.shape[1] * groups if turned else weight.shape[0]
        spec = Spec.of(layout_of((x.shape[0], channels, *places)), x.dtype, x.device) if out is None else out.spec
        operands, walk = (x.dtype, spec.layout, x.spec.layout), (stride, before, dilation)
        nbytes = spec.nbytes if out is None else 0
        f, c, *space = weight.stride()
        if depthwise and kernels.in_rows(len(taps[-1]), taps, stride, dilation):
            built = kernels.build_rows(*operands, weight.shape[2:], taps, *walk, nbytes), 0
        elif depthwise:
            built = kernels.build_columns(*operands, tuple(map(len, taps)), *walk, nbytes)
        else:
            starts = [sum(i * step for i, step in zip(tap, space)) for tap in product(*taps)]
            steps = (f * (weight.shape[0] // groups), c, f) if turned else (f * (weight.shape[0] // groups), f, c)
            built = kernels.build_products(*operands, tuple(map(len, taps)), starts, steps, *walk, groups, nbytes)
        plan = _plans.put(key, (spec, *built))
    spec, descriptor, scratch = plan
    if depthwise:
        elements = _columns(weight) if columns is None else columns
        if scratch:
            elements = _chosen(elements, weight.shape[2:], taps)
    else:
        elements = weight
    room = (new_storage(scratch),) if scratch else ()
    slots = x.ptr, elements.ptr, 0 if bias is None else bias.ptr, *[r.data for r in room]
    if out is not None:
        launch(descriptor, out.ptr, *slots)
        return out
    mem = launch_new(descriptor, *slots)
    return wrap(spec, mem, mem.data)


def adds(x, kernel, stride) -> bool:
    """Whether `window_sums` takes windows of x."""
    last = x.ndim == 4 and suggested(x.spec.layout) is not contiguous_format
    return last and x.dtype.name in kernels.DTYPES and operand(x.dtype.name) == x.dtype.name and kernels.in_rows(kernel[-1], kernel, stride, (1, 1))


def window_sums(x, kernel, stride, padding, weight: float, places):
    """`weight` times the sums of windows of x [N, C, S..], whose channels lie innermost."""
    channels = x.shape[1]
    same = TABLE["new_full"].call(x, (channels, 1, *kernel), weight)
    return correlate(x, same, None, places, stride, padding, (1, 1), channels)


def _columns(weight):
    """[C, 1, K..] → [K, C]."""
    return plain(weight).flatten(1).t().contiguous()


def _chosen(columns, kernel, taps):
    """The rows of [K, C] that belong to the chosen elements of each dimension."""
    if all(chosen == tuple(range(k)) for k, chosen in zip(kernel, taps)):
        return columns
    columns = columns.unflatten(0, tuple(kernel))
    for d, chosen in enumerate(taps):
        columns = columns.index_select(d, TABLE["tensor"].call(chosen))
    return columns.contiguous()


def input_gradient(g, weight, sizes, stride, padding, dilation, groups: int, form):
    """[N, F, O..] → [N, C, sizes..]: the convolution with the kernel turned round, one a phase of the stride. See `_phases`."""
    g, kernel, unit = laid_out(g), weight.shape[2:], (1,) * len(stride)
    reversed_taps = [tuple(range(k - 1, -1, -1)) for k in kernel]
    if stride == unit:
        before = [d * (k - 1) - p for k, d, p in zip(kernel, dilation, padding)]
        return correlate(g, weight, None, sizes, unit, before, dilation, groups, None, tuple(reversed_taps))
    spec = Spec.of(layout_of((g.shape[0], weight.shape[1] * groups, *sizes)), g.dtype, g.device)
    out = empty_of(spec)
    columns = _columns(weight) if weight.shape[1] == 1 and groups == weight.shape[0] else None
    for phase in phases(kernel, sizes, stride, padding, dilation):
        if not all(phase.counts):
            continue
        target = out[(slice(None), slice(None), *phase.where)]
        if phase.taps is None:
            target.zero_()
            continue
        taps = tuple(every[part] for every, part in zip(reversed_taps, phase.taps))
        correlate(g, weight, None, target.shape[2:], unit, phase.before, phase.steps, groups, target, taps, columns)
    return out


class Phase(NamedTuple):
    """Elements of the input that stand at the same place between two windows' starts, and the elements of the turned kernel that meet them."""

    where: tuple[slice, ...]
    counts: tuple[int, ...]
    taps: tuple[slice, ...] | None  # None: none does
    before: tuple[int, ...]
    steps: tuple[int, ...]


def phases(kernel, sizes, stride, padding, dilation):
    """All phases of an input of `sizes`. In dimensions without a stride there is one, dilation included."""
    for phase in product(*map(range, stride)):
        where, counts, taps, before, steps = [], [], [], [], []
        for r, size, s, p, d, k in zip(phase, sizes, stride, padding, dilation, kernel):
            first = (r + p) % s if s != 1 else 0  # of the kernel as it was; then every s-th
            here = max(-(-(k - first) // s), 0)
            step = d if s == 1 else 1
            last = k - 1 - first  # the same element in the kernel turned round
            where.append(slice(r, None, s))
            counts.append(max(-(-(size - r) // s), 0))
            taps.append(slice(last - (here - 1) * s, last + 1, s) if here else None)
            before.append((here - 1) * step - (r + p - first) // s)
            steps.append(step)
        nothing = None in taps or not all(counts)
        yield Phase(tuple(where), tuple(counts), None if nothing else tuple(taps), tuple(before), tuple(steps))


def short(weight, groups: int) -> bool:
    """Whether windows (weight: shape [F, C, K..]) have so few elements that a product of columns is slower than `weight_gradient`."""
    features, channels, *kernel = weight
    elements = math.prod(kernel) * channels
    return kernels.few(features, channels, kernel, groups) and (elements <= kernels.FEW or elements <= 2 * kernels.FEW and elements > channels)


def weight_gradient(x, weight: Spec, g, stride, before, dilation, groups: int):
    """[F, C/g, K..]: the sum over batch and positions of g [N, F, O..] times the windows of x [N, C, S..]."""
    x, g = laid_out(x), laid_out(g)
    kernel = tuple(weight.shape[2:])
    key = "weight", x.spec, weight.shape, g.spec, stride, tuple(before), dilation, groups
    depthwise = weight.shape[1] == 1 and groups == weight.shape[0]
    plan = _plans.get(key)
    if plan is None:
        n = len(kernel)
        if depthwise:
            spec = Spec.of(Layout.contiguous((*kernel, 1, weight.shape[0])).permute((n + 1, n, *range(n))), x.dtype, x.device)
            arguments = x.dtype, x.spec.layout, g.spec.layout, kernel, stride, before, dilation, spec.nbytes
            rows = kernels.in_rows(kernel[-1], kernel, stride, dilation)
            built = (kernels.build_rows_gradient(*arguments), 0) if rows else kernels.build_column_gradient(*arguments)
        elif kernels.few(weight.shape[0], weight.shape[1], kernel, groups):
            spec = Spec.of(Layout.contiguous((*kernel, *weight.shape[1::-1])).permute((n + 1, n, *range(n))), x.dtype, x.device)
            built = kernels.build_few_gradient(x.dtype, x.spec.layout, g.spec.layout, kernel, stride, before, dilation, spec.nbytes)
        else:
            spec = Spec.of(layout_of(weight.shape), x.dtype, x.device)
            built = kernels.build_weight_gradient(x.dtype, x.spec.layout, g.spec.layout, kernel, stride, before, dilation, groups, spec.nbytes)
        plan = _plans.put(key, (spec, *built))
    spec, descriptor, scratch = plan
    room = (new_storage(scratch),) if scratch else ()
    mem = launch_new(descriptor, x.ptr, g.ptr, *[r.data for r in room])
    return wrap(spec, mem, mem.data).contiguous(memory_format=suggested(weight.layout))
