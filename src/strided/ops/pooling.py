"""Maxima of windows as one operator with its gradient. Arguments' checks, other dtypes and the functions users call are nn/functions/pooling.py's."""
from __future__ import annotations

import math

from ..autograd import backward, record, tracking
from ..dispatch import PlanCache, launch_new
from ..dtypes import int64
from ..kernels import pool as kernels
from ..kernels.native import new_storage
from ..layout import Layout
from ..tensor import Spec, Tensor, empty_of, wrap
from .folding import plain
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
        layout = Layout.contiguous((*x.shape[:2], *places))
        specs = Spec.of(layout, x.dtype, x.device), Spec.of(layout, int64, x.device)
        plan = _plans.put(key, (*specs, *kernels.build_maximum(x.dtype, given.spec.layout, kernel, places, stride, padding, dilation, indices, specs[0].nbytes)))
    spec, index_spec, descriptor, scratch = plan
    room = new_storage(scratch)
    if not indices:
        mem = launch_new(descriptor, given.ptr, room.data)
        return wrap(spec, mem, mem.data), None
    index = empty_of(index_spec)
    mem = launch_new(descriptor, index.ptr, given.ptr, room.data)
    out = wrap(spec, mem, mem.data)
    if wanted:
        cls = MaxPool3DWithIndicesBackward0 if len(kernel) == 3 else MaxPool2DWithIndicesBackward0
        record(cls, (x,), out, (index,), shape=x.shape)
    return out, index


def _put_back(node, g):
    """[N, C, O..] → [N, C, S..]: each element of the gradient where its maximum was found."""
    (index,) = node.saved
    shape = node.shape
    n = len(shape) - 2
    if tracking(g) or g.dtype.itemsize < 4 or g.is_meta:
        size = math.prod(shape[2:])
        index, g = index.flatten(-n), g.flatten(-n)  # [N, C, O]
        g = TABLE["masked_fill"].call(g, index >= size, 0)  # a window of nothing but padding has no place
        return (TABLE["scatter_add"].call(TABLE["new_zeros"].call(g, (*shape[:2], size)), -1, index.clamp(max=size - 1), g).reshape(shape),)
    g = plain(g).contiguous()
    spec = Spec.of(Layout.contiguous(shape), g.dtype, g.device)
    planes = max(shape[0] * shape[1], 1)
    key = "back", spec, g.shape
    descriptor = _plans.get(key)
    if descriptor is None:
        descriptor = _plans.put(key, kernels.build_scatter(g.dtype, shape[0] * shape[1], spec.numel // planes, g.numel() // planes, spec.nbytes))
    mem = launch_new(descriptor, g.ptr, index.ptr)
    return (wrap(spec, mem, mem.data),)


@backward("MaxPool2DWithIndices", saved_names=("result1",))
def MaxPool2DWithIndicesBackward0(node, g):
    return _put_back(node, g)


@backward("MaxPool3DWithIndices", saved_names=("result1",))
def MaxPool3DWithIndicesBackward0(node, g):
    return _put_back(node, g)
