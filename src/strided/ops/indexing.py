"""Plans and calls of the index kernels: reading and writing by index tensors, masks and their counts, strided copies. No operator lives here.

Reading and writing take "dims": which dimension of the tensor each index tensor replaces. The result's shape follows PyTorch's rule: the indices'
common shape stands where the indexed dimensions stood if they are neighbours, else in front.
"""
from __future__ import annotations

import threading
from array import array
from collections.abc import Callable

from .. import dtypes, errors
from ..dispatch import PlanCache, launch
from ..kernels import index as K
from ..kernels.native import new_storage
from ..layout import Layout, broadcast_shapes
from ..tensor import Spec, Tensor, empty, wrap

_plans = PlanCache()


class _ErrorWords(threading.local):
    """Where kernels report the first bad index: (1 + which index tensor, its value)."""

    def __init__(self):
        self.words = array("q", [0, 0])
        self.address = self.words.buffer_info()[0]


_error = _ErrorWords()


def out_of_bounds(extents, dims) -> Callable[[int, int], Exception]:
    """The IndexError of x[index] for index tensor number `which`."""

    def describe(which, bad):
        if extents[which] == 0:
            return IndexError("index is out of bounds for dimension with size 0")
        # PyTorch counts the indexed dimensions only; where that misleads, the tensor's own dimension is named below.
        own = "" if dims[which] == which else f"\n  (dimension {dims[which]} of the indexed tensor)"
        return IndexError(f"index {bad} is out of bounds for dimension {which} with size {extents[which]}{own}")

    return describe


def run_checked(desc: bytes, describe: Callable[[int, int], Exception], *slots) -> None:
    """Launches a kernel that checks indices; raises what `describe(which, value)` returns if one was out of range."""
    launch(desc, *slots, _error.address)
    words = _error.words
    if words[0]:
        which, bad = words[0] - 1, words[1]
        words[0] = words[1] = 0
        raise describe(which, bad)


# ---- geometry --------------------------------------------------------------------------------------------------------------------


class Walk:
    """How index tensors move through a tensor: the result's shape, the tensor's strides over it (0 where an index leads), the indices' strides."""

    __slots__ = ("shape", "strides", "indices", "extents")

    def __init__(self, spec: Spec, dims: tuple[int, ...], index_specs: tuple[Spec, ...], named: bool = False):
        """named: raises where indices meet a dimension of size 0; else the caller looks at each index."""
        common = _broadcast(index_specs)
        if named and 0 not in common and not all(spec.shape[d] for d in dims):
            raise IndexError("index is out of bounds for dimension with size 0")
        first = dims[0]
        together = dims == tuple(range(first, first + len(dims)))
        kept = [d for d in range(spec.ndim) if d not in dims]
        before = [d for d in kept if d < first] if together else []
        after = [d for d in kept if d not in before]
        self.shape = (*(spec.shape[d] for d in before), *common, *(spec.shape[d] for d in after))
        self.strides = (*(spec.strides[d] for d in before), *(0 for _ in common), *(spec.strides[d] for d in after))
        self.indices = []
        self.extents = tuple([spec.shape[d] for d in dims])
        for d, own in zip(dims, index_specs):
            own_strides = own.layout.expand(common).strides
            walk = (*(0 for _ in before), *own_strides, *(0 for _ in after))
            self.indices.append((own.itemsize, walk, spec.shape[d], spec.strides[d]))


def _broadcast(index_specs):
    try:
        return broadcast_shapes(*[s.shape for s in index_specs])
    except RuntimeError:
        shapes = ", ".join(str(list(s.shape)) for s in index_specs)
        raise IndexError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}") from None


# ---- reading and writing ---------------------------------------------------------------------------------------------------------


def get(x: Tensor, dims: tuple[int, ...], indices: tuple[Tensor, ...], describe=None, wrap_negative: bool = True) -> Tensor:
    """x read at `indices`, one for each of `dims`; a fresh row-major tensor, unrecorded. Raises IndexError (or what `describe` makes) out of range."""
    key = "get", x.spec, dims, tuple([i.spec for i in indices]), wrap_negative
    plan = _plans.get(key)
    if plan is None:
        plan = _plans.put(key, _plan_get(x, dims, indices, wrap_negative, describe is None))
    desc, spec, extents = plan
    if desc is None:
        out = empty(spec.shape, spec.dtype, spec.device)
        if describe is not None and not spec.is_meta:
            check_all(indices, extents, describe, wrap_negative)
        return out  # x[index] that reads nothing does not look at its indices, as in PyTorch
    memory = new_storage(spec.nbytes)
    run_checked(desc, describe or out_of_bounds(extents, dims), memory.data, x.ptr, *[i.ptr for i in indices])
    return wrap(spec, memory, memory.data)


def _plan_get(x, dims, indices, wrap_negative, named):
    device = x.device if x.is_meta else errors.check_devices("index", [x, *indices])  # shapes alone: indices may stay where they are
    walk = Walk(x.spec, dims, tuple([i.spec for i in indices]), named)
    layout = Layout.contiguous(walk.shape)
    spec = Spec.of(layout, x.dtype, device)
    if spec.is_meta or spec.numel == 0:
        return None, spec, walk.extents
    return K.build_indexed("get", x.dtype, walk.shape, layout.strides, walk.strides, walk.indices, wrap=wrap_negative), spec, walk.extents


def put(op: str, x: Tensor, dims: tuple[int, ...], indices: tuple[Tensor, ...], values: Tensor, describe=None, wrap_negative: bool = True) -> None:
    """x[indices] = values, or combined with what is there (op "add", "mul", "amin", "amax"); values broadcast. Nothing is written if an index is bad."""
    key = "put", op, x.spec, dims, tuple([i.spec for i in indices]), values.spec, wrap_negative
    plan = _plans.get(key)
    if plan is None:
        plan = _plans.put(key, _plan_put(op, x, dims, indices, values, wrap_negative, describe is None))
    desc, extents = plan
    if x.is_meta:
        return
    if desc is None and describe is None:
        return
    describe = describe or out_of_bounds(extents, dims)
    check_all(indices, extents, describe, wrap_negative)
    if desc is not None:
        run_checked(desc, describe, x.ptr, values.ptr, *[i.ptr for i in indices])


def _plan_put(op, x, dims, indices, values, wrap_negative, named):
    walk, source = check_fits(x, dims, indices, values, named)
    if x.is_meta or not source.numel:
        return None, walk.extents
    errors.check_devices("index_put_", [x, *indices])
    return K.build_indexed(op, x.dtype, walk.shape, walk.strides, source.strides, walk.indices, wrap=wrap_negative), walk.extents


def check_fits(x, dims, indices, values, named=True) -> tuple[Walk, Layout]:
    """The walk of x[indices], and the values' layout broadcast to it; RuntimeError where they do not fit."""
    walk = Walk(x.spec, dims, tuple([i.spec for i in indices]), named)
    try:
        return walk, values.spec.layout.expand(walk.shape)
    except RuntimeError:
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of shape {list(walk.shape)}") from None


def check_all(indices, extents, describe, wrap_negative) -> None:
    """Raises if any index lies outside its dimension."""
    for which, (i, extent) in enumerate(zip(indices, extents)):
        if i.spec.numel == 0:
            continue
        key = "check", i.spec, extent, wrap_negative
        desc = _plans.get(key)
        if desc is None:
            desc = _plans.put(key, K.build_check(i.itemsize, i.shape, i.spec.strides, extent, wrap=wrap_negative))
        run_checked(desc, lambda _, bad, which=which: describe(which, bad), i.ptr)


def along(op: str, x: Tensor, dim: int, index: Tensor, other: Tensor, describe) -> None:
    """gather (op "get": other = x read at `index` along `dim`) and scatter (x written from `other`); `other` covers at least the index's shape."""
    if not index.spec.numel or x.is_meta:
        return
    key = "along", op, x.spec, dim, index.spec, other.spec
    desc = _plans.get(key)
    if desc is None:
        own = [0 if d == dim else s for d, s in enumerate(x.spec.strides)] or [0] * index.ndim
        extent, stride = (x.shape[dim], x.spec.strides[dim]) if x.ndim else (1, 1)
        walks = (other.spec.strides, own) if op == "get" else (own, other.spec.strides)
        desc = K.build_indexed(op, x.dtype, index.shape, *walks, [(index.itemsize, index.spec.strides, extent, stride)], wrap=False)
        _plans.put(key, desc)
    if op == "get":
        run_checked(desc, describe, other.ptr, x.ptr, index.ptr)
    else:
        check_all((index,), (x.shape[dim] if x.ndim else 1,), describe, False)
        run_checked(desc, describe, x.ptr, other.ptr, index.ptr)


# ---- masks -----------------------------------------------------------------------------------------------------------------------


def count_starts(mask: Tensor) -> array:
    """Where each part's results begin, and how many there are in all: parts + 1 numbers."""
    key = "count", mask.spec
    plan = _plans.get(key)
    if plan is None:
        parts = K.mask_parts(mask.numel())
        plan = _plans.put(key, (K.build_count(mask.dtype, mask.shape, mask.spec.strides, parts), parts))
    desc, parts = plan
    counts = array("q", bytes(8 * parts))
    launch(desc, mask.ptr, counts.buffer_info()[0])
    starts, total = array("q", [0]), 0
    for count in counts:
        total += count
        starts.append(total)
    return starts


def nonzero(x: Tensor) -> Tensor:
    """Coordinates of the non-zero elements in row-major order: int64 [n, ndim], stored column by column."""
    if x.is_meta:
        raise NotImplementedError("nonzero: the shape of the result depends on the data, which a meta tensor does not have")
    starts = count_starts(x) if x.numel() else array("q", [0, 0])
    n, ndim = starts[-1], x.ndim
    spec = Spec.of(Layout.of((n, ndim), (1, max(n, 1))), dtypes.int64, x.device)
    memory = new_storage(n * ndim * 8)
    if n and ndim:
        desc = K.build_nonzero(x.dtype, x.shape, x.spec.strides, len(starts) - 1, 1, n)
        launch(desc, memory.data, x.ptr, starts.buffer_info()[0])
    return wrap(spec, memory, memory.data)


def compress(op: str, x: Tensor, mask: Tensor, packed: Tensor | None = None) -> Tensor:
    """op "get": the elements of x where mask (bool, x's shape) holds, 1-d. op "set": those elements of x taken from `packed` in order."""
    if x.spec.is_contiguous and mask.spec.is_contiguous and x.ndim != 1:
        x, mask = _flat(x), _flat(mask)
    starts = count_starts(mask) if mask.numel() else array("q", [0, 0])
    if packed is None:
        packed = empty((starts[-1],), x.dtype, x.device)
    if starts[-1]:
        parts = len(starts) - 1
        key = "compress", op, x.spec, mask.spec, parts
        desc = _plans.get(key) or _plans.put(key, K.build_compress(op, x.dtype, x.shape, x.spec.strides, mask.spec.strides, parts))
        launch(desc, packed.ptr, x.ptr, mask.ptr, starts.buffer_info()[0])
    return packed


def _flat(t: Tensor) -> Tensor:
    return wrap(t.spec.with_layout(Layout.contiguous((t.spec.numel,))), t.mem, t.ptr)
