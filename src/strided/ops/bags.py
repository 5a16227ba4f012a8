"""Sums and means of a table's rows by bag: the plans of kernels/bags.py and the gradients of table and weights."""
from __future__ import annotations

from .. import dtypes
from ..autograd import backward, record, tracking
from ..dispatch import PlanCache
from ..kernels.bags import DTYPES, ROW, build_bags
from ..tensor import Spec, Tensor, empty
from .folding import plain
from .indexing import run_checked
from .lookup import row_sums, searchsorted
from .table import TABLE

_plans = PlanCache()


def takes(table, indices, weights) -> bool:
    """Whether `bag_sums` has a kernel for these."""
    return (
        type(table.spec) is Spec and table.dtype.name in DTYPES and not table.is_meta and table.ndim == 2 and table.stride(1) in (1, 0) and table.shape[1] > 0
        and indices.dtype in (dtypes.int64, dtypes.int32) and (weights is None or weights.dtype is table.dtype) and indices.numel() > 0
    )  # fmt: skip


def bag_sums(table: Tensor, indices: Tensor, beginnings: Tensor | None, mean: bool, weights: Tensor | None = None, padding: int = -1) -> Tensor:
    """[bags, D]: for each bag the sum (or mean) of the rows of table [V, D] that its indices name, each times its weight; row `padding` does not count.

    indices: [bags, L], or [N] with the bags' `beginnings` [bags]. Raises IndexError for an index out of range, RuntimeError for a beginning that is.
    """
    flat = TABLE["contiguous"].call(plain(indices))
    starts = None if beginnings is None else TABLE["contiguous"].call(TABLE["to"].call(plain(beginnings), dtypes.int64))
    scale = None if weights is None else TABLE["contiguous"].call(plain(weights))
    key = table.spec, flat.spec, starts is not None and starts.spec, mean, scale is not None, padding
    plan = _plans.get(key)
    bags, width = indices.shape[0] if starts is None else starts.numel(), table.shape[1]
    if plan is None:
        plan = _plans.put(key, build_bags(
            table.dtype.name, bags, width, flat.numel(), table.shape[0], table.stride(0), index_bits=8 * flat.itemsize, fixed=flat.shape[1] if starts is None else None,
            mean=mean, weighted=scale is not None, padding=padding,
        ))  # fmt: skip
    out = empty((bags, width), table.dtype, table.device)
    slots = [out.ptr, table.ptr, flat.ptr, *(t.ptr for t in (starts, scale) if t is not None)]

    def describe(which, bad):
        if which == ROW - 1:
            return IndexError("index out of range in self")
        if bad == int(starts[0]) and bad:
            return RuntimeError(f"offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got {bad}")
        return RuntimeError(f"offsets[-1] can not be greater than input's length {flat.numel()} but got offsets[-1] of {bad}")

    if bags:
        run_checked(plan, describe, *slots)
    if tracking(table) or weights is not None and tracking(weights):
        saves = (flat, starts, *((table, weights) if weights is not None else (None, None)))
        record(BagSumsBackward0, (table, weights), out, saves, mean=mean, padding=padding, rows=table.shape[0])
    return out


def bag_of_each(indices: Tensor, beginnings: Tensor | None) -> Tensor:
    """Which bag each index is in. [N], int64"""
    if beginnings is None:
        return TABLE["repeat_interleave"].call(TABLE["arange"].call(indices.shape[0], device=indices.device), indices.shape[1])
    return searchsorted(beginnings, TABLE["arange"].call(indices.numel(), device=indices.device), right=True) - 1


@backward("BagSums", saved_names=("indices", "offsets", "weight", "per_sample_weights"), shown="EmbeddingBagBackward0")
def BagSumsBackward0(node, g):
    indices, beginnings, table, weights = node.saved
    bag, source = bag_of_each(indices, beginnings), TABLE["reshape"].call(indices, (-1,))
    kept = None if node.padding < 0 else TABLE["ne"].call(source, node.padding)
    if node.mean:
        ones = TABLE["ones"].call(source.shape, dtype=g.dtype, device=g.device) if kept is None else TABLE["to"].call(kept, g.dtype)
        counts = TABLE["index_add"].call(TABLE["zeros"].call((g.shape[0],), dtype=g.dtype, device=g.device), 0, bag, ones)
        g = g / TABLE["unsqueeze"].call(TABLE["clamp"].call(counts, min=1), 1)
    g = TABLE["contiguous"].call(g)  # rows of an expanded gradient are slow to read
    to_table = to_weights = None
    if weights is not None and node.needs[1]:
        each = TABLE["sum"].call(TABLE["index_select"].call(g, 0, bag) * TABLE["index_select"].call(table, 0, source), 1)  # [N]
        each = each if kept is None else each * TABLE["to"].call(kept, g.dtype)
        to_weights = TABLE["reshape"].call(each, weights.shape)
    if node.needs[0]:
        scale = None if weights is None else TABLE["reshape"].call(weights, (-1,))
        if kept is not None:
            bag, source, scale = (None if t is None else TABLE["masked_select"].call(t, kept) for t in (bag, source, scale))
        if scale is None:
            to_table = row_sums(g, bag, source, node.rows)  # [V, D]
        else:
            values = TABLE["index_select"].call(g, 0, bag) * TABLE["unsqueeze"].call(scale, 1)
            to_table = TABLE["index_add"].call(TABLE["zeros"].call((node.rows, g.shape[1]), dtype=g.dtype, device=g.device), 0, source, values)
    return to_table, to_weights
