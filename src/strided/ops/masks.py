"""Masks: choosing elements by truth, the coordinates of what is non-zero, triangles.

Masked fills are pointwise (pointwise.py); x[mask] is in index.py.
"""
from __future__ import annotations

from operator import index

from .. import dtypes
from ..autograd import backward, check_inplace, record, record_inplace, tracking
from ..dispatch import PlanCache, launch, run
from ..kernels import expr as E
from ..kernels.map import build_map
from ..layout import Layout, broadcast_shapes
from ..tensor import Spec, wrap
from . import indexing
from .elementwise import check_overlap, self_copy, sum_to
from .table import TABLE, operator

# ---- choosing --------------------------------------------------------------------------------------------------------------------


@operator("masked_select", out=True, moves=True)
def masked_select(input, mask):
    """The elements of input where `mask` (bool, broadcast against it) holds, in row-major order, 1-d."""
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = broadcast_shapes(mask.shape, input.shape)
    if input.is_meta:
        raise NotImplementedError("masked_select: the shape of the result depends on the data, which a meta tensor does not have")
    out = indexing.compress("get", _expanded(input, shape), _expanded(mask, shape))
    if tracking(input):
        record(MaskedSelectBackward0, (input, mask), out, (mask,), shape=shape, spec=input.spec)
    return out


def _expanded(t, shape):
    """t broadcast to `shape`, a plain window without history."""
    return wrap(t.spec.with_layout(t.spec.layout.expand(shape)), t.mem, t.ptr) if t.shape != shape else t


@backward("MaskedSelect", saved_names=("mask",))
def MaskedSelectBackward0(node, g):
    (mask,) = node.saved
    zeros = TABLE["zeros"].call(node.shape, dtype=g.dtype, device=g.device)
    return sum_to(masked_scatter(zeros, mask, g), node.spec.shape), None


@backward("MaskedScatter", saved_names=("mask",))
def MaskedScatterBackward0(node, g):
    (mask,) = node.saved
    gx = TABLE["masked_fill"].call(g, mask, 0) if node.needs[0] else None
    if not node.needs[2]:
        return gx, None, None
    taken = masked_select(g, mask)
    missing = node.source_spec.numel - taken.numel()
    if missing:
        taken = TABLE["cat"].call([taken, TABLE["zeros"].call((missing,), dtype=g.dtype, device=g.device)])
    return gx, None, TABLE["reshape"].call(taken, node.source_spec.shape)


def _masked_scatter(x, mask, source):
    """Writes into x (row-major or not), unrecorded."""
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype.scalar_name}")
    if source.dtype is not x.dtype:
        raise RuntimeError(f"masked_scatter: expected self and source to have same dtypes but got {x.dtype.scalar_name} and {source.dtype.scalar_name}")
    if x.is_meta:
        return
    mask = _expanded(mask, x.shape)
    if source.mem is x.mem or not source.spec.is_contiguous:
        source = self_copy(source, layout=Layout.contiguous(source.shape))
    if int(TABLE["sum"].call(mask)) > source.numel():
        raise RuntimeError("Number of elements of source < number of ones in mask")
    indexing.compress("set", x, mask, source)


@operator("masked_scatter")
def masked_scatter(input, mask, source):
    """A copy of input whose elements where `mask` holds are those of source, in order. Raises RuntimeError where source has too few."""
    shape = broadcast_shapes(input.shape, mask.shape)
    out = self_copy(_expanded(input, shape), layout=Layout.contiguous(shape))
    _masked_scatter(out, mask, source)
    if tracking(input, source):
        if shape != input.shape:
            input = TABLE["expand"].call(input, shape)
        record(MaskedScatterBackward0, (input, mask, source), out, (mask,), source_spec=source.spec)
    return out


@operator("masked_scatter_")
def masked_scatter_(input, mask, source):
    """In-place form of `masked_scatter`."""
    check_inplace(input, source)
    check_overlap(input)
    _masked_scatter(input, mask, source)
    input.mem.version += 1
    if tracking(input, source):
        record_inplace(MaskedScatterBackward0, (input, mask, source), input, (mask,), source_spec=source.spec)
    return input


@operator("nonzero", out=True)
def nonzero(input, *, as_tuple=False):
    """Coordinates of the non-zero elements in row-major order: int64 [n, ndim], or with as_tuple one [n] a dimension, fit for x[...]."""
    if as_tuple:
        if input.ndim == 0:
            input = TABLE["reshape"].call(input, (1,))
        return TABLE["unbind"].call(indexing.nonzero(input), 1)
    return indexing.nonzero(input)


@operator("argwhere")
def argwhere(input):
    """`nonzero(input)`."""
    return indexing.nonzero(input)


# ---- triangles -------------------------------------------------------------------------------------------------------------------

_x, _i, _j, _k = (E.param(n) for n in range(4))  # element, row, column, diagonal
_KEEP = {"tril": E.where(_j - _i <= _k, _x, 0), "triu": E.where(_j - _i >= _k, _x, 0)}
_plans = PlanCache()


def _slots(spec, dtype=None):
    n = spec.ndim
    return [(dtype or spec.dtype, spec.layout), ("index", n - 2), ("index", n - 1), ("param", "i64")]


def _triangle(name, node_class):
    def triangle(input, diagonal=0):
        if input.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        spec = input.spec
        plan = _plans.get((name, spec))
        if plan is None:
            out = Spec.of(Layout.contiguous(spec.shape), spec.dtype, spec.device)
            desc = None if spec.is_meta else build_map(_KEEP[name], [(out.dtype, out.layout)], _slots(spec), result_bytes=out.nbytes)
            plan = _plans.put((name, spec), (desc, out))
        result = run(plan[0], plan[1], input.ptr, index(diagonal))
        if tracking(input):
            record(node_class, (input,), result, diagonal=diagonal)
        return result

    def into(input, diagonal=0):
        check_inplace(input)
        check_overlap(input)
        if input.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        spec = input.spec
        if not spec.is_meta:
            desc = _plans.get((name, "in place", spec))
            if desc is None:
                desc = _plans.put((name, "in place", spec), build_map(_KEEP[name], [(spec.dtype, spec.layout)], _slots(spec)))
            launch(desc, input.ptr, input.ptr, index(diagonal))
        input.mem.version += 1
        if tracking(input):
            record_inplace(node_class, (input,), input, diagonal=diagonal)
        return input

    side = "below" if name == "tril" else "above"
    triangle.__doc__ = f"Matrices with only the elements on and {side} diagonal number `diagonal` (0: the main one, above it positive) kept, others 0. [.., n, m]"
    into.__doc__ = f"In-place form of `{name}`."
    return operator(name, out=True)(triangle), operator(name + "_")(into)


@backward("Tril")
def TrilBackward0(node, g):
    return (tril(g, node.diagonal),)


@backward("Triu")
def TriuBackward0(node, g):
    return (triu(g, node.diagonal),)


tril, tril_ = _triangle("tril", TrilBackward0)
triu, triu_ = _triangle("triu", TriuBackward0)


def _triangle_indices(lower):
    def indices(row, col, offset=0, *, dtype=None, layout=None, device=None, pin_memory=None):
        for label, n in (("row", row), ("col", col)):
            if n < 0:
                raise RuntimeError(f"{label} must be non-negative, got{n}")
        ones = TABLE["ones"].call((row, col), dtype=dtypes.bool_)
        found = indexing.nonzero((tril if lower else triu)(ones, offset))
        both = TABLE["contiguous"].call(TABLE["transpose"].call(found, 0, 1))  # [2, n]
        return TABLE["to"].call(both, device or both.device, dtype or dtypes.int64)

    name = "tril_indices" if lower else "triu_indices"
    indices.__doc__ = f"Coordinates of the {'lower' if lower else 'upper'} triangle of a row × col matrix, [2, n]; `offset` as in {name[:4]}."
    return operator(name, method=False)(indices)


tril_indices, triu_indices = _triangle_indices(True), _triangle_indices(False)
