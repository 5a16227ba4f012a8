"""Padding with a tensor's own elements: mirrored, repeated or wrapped around. Its gradient adds what the copies received to where they came from.

Checks and names of modes are nn/functions/padding.py's, the kernel is kernels/edges.py's.
"""
from __future__ import annotations

from ..autograd import backward, record, tracking
from ..dispatch import PlanCache, run
from ..formats import contiguous_format, suggested
from ..kernels.edges import build_edges
from ..tensor import Spec
from .table import TABLE, operator

_plans = PlanCache()
_NAMES = {"reflect": "ReflectionPad", "replicate": "ReplicationPad", "circular": "CircularPad"}


@operator("pad_edges", function=False, method=False, moves=True, reason=lambda *_: "padding needs room around the values")
def pad_edges(input, pad, mode):
    """input with pairs (before, after) of places around its last dimensions, the last one first; negative ones crop. No place lies further out than `mode` reaches."""
    if not input.numel() or input.dtype.packed:
        return _by_index(input, pad, mode)
    key = input.spec, pad, mode
    plan = _plans.get(key)
    if plan is None:
        before, shape, dims = {}, list(input.shape), len(pad) // 2
        for i in range(dims):
            if pad[2 * i] or pad[2 * i + 1]:
                d = input.ndim - 1 - i
                before[d], shape[d] = pad[2 * i], shape[d] + pad[2 * i] + pad[2 * i + 1]
        form = suggested(input.spec.layout) if mode != "circular" and (dims, input.ndim) in ((2, 4), (3, 5)) else contiguous_format
        spec = Spec.of(form.layout(shape), input.dtype, input.device)
        desc = None
        if not spec.numel:
            return _by_index(input, pad, mode)
        if not spec.is_meta:
            desc = build_edges(mode, input.dtype.itemsize, shape, spec.strides, input.shape, input.stride(), before, spec.nbytes)
        plan = _plans.put(key, (desc, spec))
    out = run(*plan, input.ptr)
    if tracking(input):
        record(NODES[mode, len(pad) // 2], (input,), out, pad=pad, mode=mode)
    return out


def _by_index(input, pad, mode):
    """The same for what has no elements, or no addresses of them."""
    for i in range(len(pad) // 2):
        d = input.ndim - 1 - i
        before, size, after = pad[2 * i], input.shape[d], pad[2 * i + 1]
        if before or after:
            index = [_PLACES[mode](j, size) for j in range(-before, size + after)]
            input = TABLE["index_select"].call(input, d, TABLE["tensor"].call(index, device=input.device))
    return input


_PLACES = {
    "reflect": lambda i, size: -i if i < 0 else 2 * (size - 1) - i if i >= size else i,
    "replicate": lambda i, size: min(max(i, 0), size - 1),
    "circular": lambda i, size: i % size,
}


def _back(node, g):
    for i in range(len(node.pad) // 2):
        g = _gathered(g, g.ndim - 1 - i, node.pad[2 * i], node.pad[2 * i + 1], node.mode)
    return (g,)


def _gathered(g, d, before, after, mode):
    """The gradient without what surrounds dimension d, that added to where it was copied from."""
    if not (before or after):
        return g
    n = g.shape[d]
    size, low = n - before - after, min(max(before, 0), n)
    high = min(max(after, 0), n - low)
    start, length = max(-before, 0), n - low - high  # the part that was not around anything, in the input
    if length:
        whole = TABLE["constant_pad_nd"].call(g.narrow(d, low, length), [0, 0] * (g.ndim - 1 - d) + [start, size - start - length])
    else:
        whole = TABLE["zeros"].call((*g.shape[:d], size, *g.shape[d + 1 :]), dtype=g.dtype, device=g.device)
    # where the copies came from: mirrored, the first of both edges' places; repeated; wrapped around
    left = {"reflect": before - low + 1, "replicate": 0, "circular": size - low}[mode]
    right = {"reflect": 2 * (size - 1) - (n - 1 - before), "replicate": size - 1, "circular": 0}[mode]
    for count, first, place in ((low, 0, left), (high, n - high, right)):
        if count:
            edge = g.narrow(d, first, count)
            if mode == "reflect":
                edge = TABLE["flip"].call(edge, (d,))
            elif mode == "replicate":
                edge = TABLE["sum"].call(edge, d, True)
            TABLE["add"].inplace(whole.narrow(d, place, edge.shape[d]), edge)
    return whole


def _node(name: str):
    def function(node, g):
        return _back(node, g)

    function.__name__ = function.__qualname__ = f"{name}Backward0"
    return backward(name)(function)


NODES = {(mode, dims): _node(f"{name}{dims}D") for mode, name in _NAMES.items() for dims in (1, 2, 3)}
