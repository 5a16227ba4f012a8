"""Maxima of windows as one operator with its gradient. Arguments' checks, other dtypes and the functions users call are nn/functions/pooling.py's."""
from __future__ import annotations

import math

from ..autograd import backward, record, tracking
from ..dispatch import PlanCache, launch_new
from ..dtypes import int64
from ..formats import contiguous_format, suggested
from ..kernels import pool as kernels
from ..kernels.native import new_storage
from ..kernels.windows import build_put_back, build_windows
from ..layout import Layout
from ..tensor import Spec, Tensor, empty_of, wrap
from .folding import plain
from .onlooking import seen_as
from .table import TABLE

_plans = PlanCache()


def takes(x: Tensor) -> bool:
    """Whether `maximum` has a kernel for x."""
    return x.dtype.name in kernels.DTYPES and x.numel() < kernels.LARGEST and not x.is_meta


def maximum(x, kernel, stride, padding, dilation, places, indices: bool):
    """(largest elements [N, C, O..], their places in the plane or None) of the windows of x [N, C, S..]; what lies outside of x is never chosen.

    kernel, stride, padding, dilation, places (O..) are tuples of up to three. Recorded; places are found if asked for or if a gradient will need them.
    """
    wanted = tracking(x)
    given = plain(x)
    indices = indices or wanted
    key = given.spec, kernel, stride, padding, dilation, places, indices
    plan = _plans.get(key)
    if plan is None:
        form = suggested(given.spec.layout)
        layout = form.layout((*x.shape[:2], *places))
        specs = Spec.of(layout, x.dtype, x.device), Spec.of(layout, int64, x.device)
        if form is contiguous_format:
            built = kernels.build_maximum(x.dtype, given.spec.layout, kernel, places, stride, padding, dilation, indices, specs[0].nbytes)
        else:
            inside = tuple(tuple(_inside(o * s - p, k, d, size) for o in range(n)) for n, k, s, p, d, size in zip(places, kernel, stride, padding, dilation, x.shape[2:]))
            built = _windows(specs[0], given.spec.layout, inside, dilation, indices), 0
        plan = _plans.put(key, (*specs, *built))
    spec, index_spec, descriptor, scratch = plan
    room = (new_storage(scratch),) if scratch else ()
    return _found(x, given, spec, index_spec if indices else None, descriptor, [r.data for r in room])


def _inside(start: int, kernel: int, step: int, size: int) -> tuple[int, int]:
    """(first element, number of elements) of a window that are no padding."""
    before = max(-(start // step), 0)
    return start + before * step, max(min(-(-(size - start) // step), kernel) - before, 0)


def adaptive(x, windows, indices: bool):
    """`maximum` for windows of any sizes: for each dimension (first element, number of elements) of every window."""
    wanted = tracking(x)
    given = plain(x)
    indices = indices or wanted
    key = "adaptive", given.spec, windows, indices
    plan = _plans.get(key)
    if plan is None:
        form = suggested(given.spec.layout) if x.ndim == 4 else contiguous_format  # PyTorch's: volumes become contiguous
        layout = form.layout((*x.shape[:2], *map(len, windows)))
        spec = Spec.of(layout, x.dtype, x.device)
        plan = _plans.put(key, (spec, Spec.of(layout, int64, x.device), _windows(spec, given.spec.layout, windows, (1,) * len(windows), indices)))
    spec, index_spec, descriptor = plan
    return _found(x, given, spec, index_spec if indices else None, descriptor, (), f"AdaptiveMaxPool{max(len(windows), 2)}D")


def _windows(spec: Spec, x: Layout, windows, dilation, indices: bool) -> bytes:
    missing = 3 - len(windows)
    spread = lambda layout: Layout.of((*layout.shape[:2], *(1,) * missing, *layout.shape[2:]), (*layout.strides[:2], *(0,) * missing, *layout.strides[2:]))
    return build_windows(spec.dtype, spread(spec.layout), spread(x), (((0, 1),),) * missing + windows, (1,) * missing + dilation, indices, spec.nbytes)


def _found(x, given, spec, index_spec, descriptor, rest, node: str = ""):
    if index_spec is None:
        mem = launch_new(descriptor, given.ptr, *rest)
        return wrap(spec, mem, mem.data), None
    index = empty_of(index_spec)
    mem = launch_new(descriptor, index.ptr, given.ptr, *rest)
    out = wrap(spec, mem, mem.data)
    if tracking(x):
        record(NODES[node or f"MaxPool{max(x.ndim - 2, 2)}DWithIndices"], (x,), out, (index,), shape=x.shape)
    return out, index


def _put_back(node, g):
    """[N, C, O..] → [N, C, S..]: each element of the gradient where its maximum was found."""
    (index,) = node.saved
    shape = node.shape
    n = len(shape) - 2
    if tracking(g) or g.dtype.itemsize < 4 or g.is_meta:
        size = math.prod(shape[2:])
        form = suggested(index.spec.layout)
        index, g = index.flatten(-n), g.flatten(-n)  # [N, C, O]
        g = TABLE["masked_fill"].call(g, index >= size, 0)  # a window of nothing but padding has no place
        zeros = TABLE["new_zeros"].call(g, (*shape[:2], size))
        return (TABLE["scatter_add"].call(zeros, -1, index.clamp(max=size - 1), g).reshape(shape).contiguous(memory_format=form),)
    form = suggested(index.spec.layout)
    g = plain(g).contiguous(memory_format=form)
    index = index.contiguous(memory_format=form)
    spec = Spec.of(form.layout(shape), g.dtype, g.device)
    key = "back", spec, g.shape
    descriptor = _plans.get(key)
    if descriptor is None:
        descriptor = _plans.put(key, build_put_back(g.dtype, spec.layout, g.spec.layout, spec.nbytes))
    mem = launch_new(descriptor, g.ptr, index.ptr)
    return (wrap(spec, mem, mem.data),)


def _node(name: str):
    def function(node, g):
        return _put_back(node, g)

    function.__name__ = function.__qualname__ = f"{name}Backward0"
    return backward(name, saved_names=("result1",))(seen_as("max_pool_backward", lambda node, g: g.numel())(function))


NODES = {name: _node(name) for name in ("MaxPool2DWithIndices", "MaxPool3DWithIndices", "AdaptiveMaxPool2D", "AdaptiveMaxPool3D")}
