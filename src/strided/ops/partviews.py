"""View operators that show part of a tensor: select, slice, narrow, diagonal, unfold, as_strided, and their gradients, which put that part back.

Views of all elements are in views.py, indexing by tensors and Python's x[...] in index.py.
"""

from __future__ import annotations

from collections.abc import Callable

from ..autograd import anomaly, backward
from ..autograd.engine import LOOKS
from ..autograd.graph import window
from ..autograd.modes import STATE
from ..dispatch import CONTEXT, HOOKS
from ..layout import Layout, wrap_dim
from ..tensor import Spec, Tensor, bytes_for, wrap
from .table import TABLE, operator
from .views import hooked, hot_operator, integer, integers, no_tensor, one_of, plan_of


def place_back(g: Tensor, shape, function: Callable[..., Tensor], *where) -> Tensor:
    """Zeros of `shape` with g written into the window `function(zeros, *where)`: the gradient of that view."""
    return _place_back(g, shape, function, where)


@backward("ViewBackward")
def ViewBackwardBackward0(node, gg):
    return (node.function(gg, *node.where),)


@operator("place_back", function=False, method=False)
def _place_back(g, shape, function, where):
    from ..autograd import no_grad, record, tracking
    from .table import assign

    out = TABLE["zeros"].call(*shape, dtype=g.dtype, device=g.device)
    with no_grad():
        assign(function(out, *where), g)
    if tracking(g):
        record(ViewBackwardBackward0, (g,), out, function=function, where=where)
    return out


def begun_gradient(node, shape, g):
    """The gradient of the node's input as far as it has arrived, where g may be added into its window of it in place; else None.

    For views of a part: what a loop over such views does must not write and add the whole once a step.
    """
    run = STATE.run
    if run is None or node.hooks is not None or LOOKS or anomaly.enabled:
        return None
    edge = node.edges[0]
    begun = run.lent(edge[0], edge[1])
    return begun if begun is not None and begun.spec.shape == shape and begun.spec.dtype is g.spec.dtype else None


def _part_gradient(node, g, function, *where):
    begun = begun_gradient(node, node.self_sym_sizes, g)
    if begun is None:
        return (place_back(g, node.self_sym_sizes, function, *where),)
    part = function(begun, *where)
    TABLE["add_"].call(wrap(part.spec, part.mem, part.ptr), g)
    return (None,)


@backward("Select")
def SelectBackward0(node, g):
    return _part_gradient(node, g, select, node.dim, node.index)


@hot_operator("select", view=True)
def select(input, dim=None, index=None, axis=None):
    """Entry `index` of dimension `dim` (or `axis`), without that dimension."""
    if axis is not None:
        dim = one_of("select", dim, axis)
    if HOOKS.active and not CONTEXT.depth:
        return hooked(select, input, dim, index)
    try:
        spec = input.spec
    except AttributeError:
        return no_tensor(select, input, dim, index)
    try:
        new, move = spec.cache["select", dim, index]
    except KeyError:
        new = None  # planned outside: an error there has no KeyError behind it
    if new is None:
        dim, index = integer("select", "dim", dim), integer("select", "index", index)
        new, move = plan_of(spec, ("select", dim, index), spec.layout.select(dim, index))
    return window(input, new, input.ptr + move, SelectBackward0, dim=dim, index=index, self_sym_sizes=spec.shape)


@backward("Slice")
def SliceBackward0(node, g):
    return _part_gradient(node, g, slice_, node.dim, node.start, node.end, node.step)


@hot_operator("slice", function=False, method=False, view=True)
def slice_(input, dim=0, start=None, end=None, step=1):
    """`input[start:end:step]` along dimension `dim`; bounds are clamped as in Python, step > 0."""
    if HOOKS.active and not CONTEXT.depth:
        return hooked(slice_, input, dim, start, end, step)
    spec = input.spec
    try:
        new, move = spec.cache["slice", dim, start, end, step]
    except KeyError:
        new = None
    if new is None:
        dim, step = integer("slice", "dim", dim), 1 if step is None else integer("slice", "step", step)
        start, end = (None if bound is None else integer("slice", "bound", bound) for bound in (start, end))
        new, move = plan_of(spec, ("slice", dim, start, end, step), spec.layout.slice(dim, start, end, step))
    first, last = 0 if start is None else start, 2**63 - 1 if end is None else end
    return window(input, new, input.ptr + move, SliceBackward0, dim=dim, start=first, end=last, step=step, self_sym_sizes=spec.shape)


@operator("narrow", view=True)
def narrow(input, dim, start, length):
    """`length` entries of dimension `dim` from `start` (an int or a 0-d integer tensor)."""
    spec = input.spec
    dim, length = integer("narrow", "dim", dim), integer("narrow", "length", length)
    if isinstance(start, Tensor) and (start.ndim or start.dtype.kind not in ("int", "uint")):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start = integer("narrow", "start", start)
    key = "narrow", dim, start, length
    new, move = spec.cache.get(key) or plan_of(spec, key, spec.layout.narrow(dim, start, length))
    begin = start + spec.shape[dim] if start < 0 else start
    return window(input, new, input.ptr + move, SliceBackward0, dim=dim, start=begin, end=begin + length, step=1, self_sym_sizes=spec.shape)


@backward("Diagonal")
def DiagonalBackward0(node, g):
    return _part_gradient(node, g, diagonal, node.offset, node.dim1, node.dim2)


@operator("diagonal", view=True)
def diagonal(input, offset=0, dim1=0, dim2=1):
    """The diagonal of dimensions `dim1` and `dim2`, `offset` above the main one, as a new last dimension. [n, m] -> [min(n, m)]"""
    spec = input.spec
    key = "diagonal", integer("diagonal", "offset", offset), integer("diagonal", "dim1", dim1), integer("diagonal", "dim2", dim2)
    new, move = spec.cache.get(key) or plan_of(spec, key, spec.layout.diagonal(*key[1:]))
    return window(input, new, input.ptr + move, DiagonalBackward0, offset=offset, dim1=dim1, dim2=dim2, self_sym_sizes=spec.shape)


@backward("Unfold")
def UnfoldBackward0(node, g):
    return (_fold_back(g, node.self_sym_sizes, node.dimension, node.size, node.step),)


def _fold_back(g, shape, dim, size, step):
    """Sums windows back: each element of the result is the sum of its places in the windows."""
    if not shape:
        return TABLE["sum"].call(g)
    dim = wrap_dim(dim, len(shape))
    windows, result = g.shape[dim], TABLE["zeros"].call(shape, dtype=g.dtype, device=g.device)
    if size <= windows:
        for k in range(size):  # place k of every window: no two windows share it
            end = k + step * (windows - 1) + 1
            result = TABLE["add"].call(result, place_back(select(g, -1, k), shape, slice_, dim, k, end, step))
    else:
        for w in range(windows):
            part = TABLE["movedim"].call(select(g, dim, w), -1, dim)
            result = TABLE["add"].call(result, place_back(part, shape, narrow, dim, w * step, size))
    return result


@operator("unfold", function=False, view=True)
def unfold(input, dimension, size, step):
    """Windows of `size` entries every `step` entries along a dimension, as a new last dimension. [.., n, ..] -> [.., windows, .., size]"""
    spec = input.spec
    key = "unfold", integer("unfold", "dimension", dimension), integer("unfold", "size", size), integer("unfold", "step", step)
    new, _ = spec.cache.get(key) or plan_of(spec, key, spec.layout.unfold(*key[1:]))
    return window(input, new, input.ptr, UnfoldBackward0, dimension=dimension, size=size, step=step, self_sym_sizes=spec.shape)


@backward("AsStrided")
def AsStridedBackward0(node, g):
    return (_unstride(g, node.source, node.size, node.stride, node.start),)


def _unstride(g, base: Spec, size, stride, start):
    """The gradient of `as_strided`: added up in flat memory, then read as the base lay there."""
    layout, call = Layout.of(size, stride), lambda name, *args, **kwargs: TABLE[name].call(*args, **kwargs)
    span = max(base.layout.span, start + layout.span)
    flat = call("zeros", (span,), dtype=g.dtype, device=g.device)
    if layout.is_dense:
        flat = place_back(g, (span,), as_strided, size, stride, start)
    else:
        flat = call("index_add", flat, 0, _positions(layout, start, g.device), call("reshape", g, (-1,)))
    if not base.layout.is_dense and any(s == 0 and n > 1 for n, s in zip(base.shape, base.strides)):
        ones = call("ones", (base.numel,), dtype=g.dtype, device=g.device)
        count = call("index_add", call("zeros", (span,), dtype=g.dtype, device=g.device), 0, _positions(base.layout, 0, g.device), ones)
        flat = flat / call("clamp", count, 1)  # an element that the base shows several times shares its gradient
    return as_strided(flat, base.shape, base.strides, 0)


def _positions(layout: Layout, start: int, device):
    """Flat positions (int64) that a layout visits, in row-major order."""
    every = TABLE["arange"].call(start + max(layout.span, 1), device=device)
    return TABLE["reshape"].call(as_strided(every, layout.shape, layout.strides, start), (-1,))


@operator("as_strided", view=True)
def as_strided(input, size, stride, storage_offset=None):
    """Any window of the storage: sizes, strides and offset in elements. Raises RuntimeError where it would leave the storage."""
    size, stride = integers("as_strided", "size", (size,)), integers("as_strided", "stride", (stride,))
    spec, own = input.spec, input.storage_offset()
    offset = own if storage_offset is None else integer("as_strided", "storage_offset", storage_offset)
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in size):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    layout = Layout.of(size, stride)
    needed = bytes_for(offset + layout.span, spec.dtype) if layout.numel else 0
    if needed > input.mem.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {spec.itemsize} requiring a storage size of "
            f"{needed} are out of bounds for storage of size {input.mem.nbytes}"
        )
    if input._tracked and offset < own:
        raise NotImplementedError("as_strided before the start of a tensor that requires grad: take the window from the base tensor instead")
    new, ptr = spec.with_layout(layout), input.ptr + (offset - own) * spec.itemsize
    return window(input, new, ptr, AsStridedBackward0, size=size, stride=stride, storage_offset=storage_offset, start=offset - own, source=spec)
