"""x[key] and x[key] = value in every form, and the operators behind them: index, index_put, masks, nonzero, take and put.

Ints, slices, None and ... give windows (the plan of a key is cached in the tensor's spec); index tensors, lists and masks give fresh tensors.
Gather, scatter and the index_* family along one dimension are in scatter.py.
"""
from __future__ import annotations

from operator import index as as_index

from .. import dtypes
from ..autograd import backward, check_inplace, record, record_inplace, tracking
from ..dispatch import CONTEXT, HOOKS, hooked_call
from ..layout import Layout
from ..tensor import Tensor, wrap
from . import indexing
from .create import as_tensor, scalar_tensor, tensor
from .elementwise import assign, check_overlap, self_copy, sum_to
from .item_windows import basic, noted, plan_of_key
from .masks import masked_scatter
from .table import TABLE, operator

_KINDS = "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices"
_INDEX_DTYPES = (dtypes.int64, dtypes.int32, dtypes.bool_, dtypes.uint8)

# ---- x[key] ----------------------------------------------------------------------------------------------------------------------


@operator("__getitem__", function=False, view=True, moves=True, reason=lambda *_: "an index tensor or mask picks elements into new memory")
def getitem(self, key):
    """x[key]: ints, slices (step > 0), None and ... give a window; int tensors, lists and bool masks (broadcast together) a fresh tensor.

    Raises IndexError for what is out of bounds, too many indices, or masks of another shape.
    """
    return _getitem(self, key)


def _getitem(self, key):
    found = basic(self, key)
    if found is not None:
        return found
    if type(key) is Tensor and key.ndim and self.ndim and key.dtype in _INDEX_DTYPES:
        return _index(self, ((0, key),))
    window, indices = _split_key(self, key)
    return window if indices is None else _index(window, indices)


_entry = TABLE["__getitem__"]


def _getitem_call(self, key):
    if HOOKS.active and not CONTEXT.depth:
        return hooked_call(_entry, _getitem, (self, key), {})
    return _getitem(self, key)


_getitem_call.__name__ = _getitem_call.__qualname__ = "__getitem__"
_getitem_call.__doc__ = getitem.__doc__
_entry.call = getitem = _getitem_call  # the same without the decorator's *args: indexing is the most frequent call of all


def _as_tuple(key) -> tuple:
    """A key as a tuple; a list that holds sequences, tensors or slices counts as one, as it always has in PyTorch."""
    if isinstance(key, tuple):
        return key
    if isinstance(key, list) and len(key) < 32 and any(isinstance(k, (list, tuple, slice, Tensor)) or k is None or k is Ellipsis for k in key):
        return tuple(key)
    return (key,)


def _split_key(self, key):
    """(window for the ints, slices, None and ..., index tensors by its dimensions or None where there are none)."""
    steps, tensors = [], []  # tensors: (place among the window's dimensions counted so far, tensor)
    items = [_resolved(self, item) for item in _as_tuple(key)]
    taken = sum(_dims_taken(item) for item in items)
    if taken > self.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
    place, spread = 0, False
    for item in items:
        if item is Ellipsis:
            if not spread:
                place += self.ndim - taken
                steps.append(item)
            spread = True
        elif item is None:
            steps.append(item)
            place += 1
        elif isinstance(item, slice):
            steps.append(item)
            place += 1
        elif isinstance(item, Tensor):
            if item.dtype in (dtypes.bool_, dtypes.uint8):
                if item.ndim == 0:
                    steps.append(None)
                    tensors.append((place, item))
                    place += 1
                else:
                    tensors.append((place, item))
                    steps.extend([slice(None)] * item.ndim)
                    place += item.ndim
            else:
                tensors.append((place, item))
                steps.append(slice(None))
                place += 1
        elif isinstance(item, bool):
            steps.append(None)
            tensors.append((place, scalar_tensor(item, dtype=dtypes.bool_, device=self.device)))
            place += 1
        else:
            steps.append(item)
    if all(item is Ellipsis or type(item) is slice and item == _EVERYTHING for item in steps):
        return (self if tensors else basic(self, Ellipsis)), tensors or None
    window = basic(self, tuple(steps))
    if window is None:
        window = _window_of(self, tuple(steps))
    return window, tensors or None


_EVERYTHING = slice(None)


def _window_of(self, steps):
    new, moved, last = plan_of_key(self.spec, steps)
    return noted(self, new, moved, last, steps)


def _dims_taken(item) -> int:
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, Tensor) and item.dtype in (dtypes.bool_, dtypes.uint8):
        return item.ndim
    return 1


def _resolved(self, item):
    """One item of a key as an int, slice, None, ..., bool or index tensor."""
    if item is None or item is Ellipsis or isinstance(item, (bool, slice)):
        return item
    if isinstance(item, Tensor):
        if item.dtype not in _INDEX_DTYPES:
            if item.dtype.kind in ("int", "uint") and item.ndim == 0:
                return int(item.item())
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        if item.ndim == 0 and item.dtype in (dtypes.int64, dtypes.int32) and not item.is_meta:
            return int(item.item())
        return item
    if isinstance(item, (list, tuple, range)):
        made = tensor(list(item), device=self.device) if len(item) else TABLE["empty"].call((0,), dtype=dtypes.int64, device=self.device)
        return _resolved(self, made)
    if isinstance(item, str):
        raise TypeError("new(): invalid data type 'str'")
    if getattr(item, "ndim", None) and hasattr(item, "__array__"):
        return _resolved(self, as_tensor(item))
    try:
        return as_index(item)
    except TypeError:
        raise IndexError(f"{_KINDS} (got {type(item).__name__})") from None


# ---- reading by index tensors ----------------------------------------------------------------------------------------------------


def _check_mask(x, mask, place):
    for k in range(mask.ndim):
        if mask.shape[k] != x.shape[place + k]:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {k} does not match the shape of the indexed tensor {list(x.shape)} at index {place + k}"
            )


def _integers_of(x, tensors):
    """(dims, index tensors): masks become the coordinates of what they hold, all on x's device."""
    dims, indices = [], []
    for place, t in tensors:
        if t.dtype in (dtypes.bool_, dtypes.uint8):
            if t.ndim == 0:
                dims.append(place)
                indices.append(_flag_index(t))
                continue
            _check_mask(x, t, place)
            columns = indexing.nonzero(t)
            for k in range(t.ndim):
                dims.append(place + k)
                indices.append(_column(columns, k))
        else:
            dims.append(place)
            indices.append(t)
    return tuple(dims), tuple(indices)


def _flag_index(t):
    """A 0-d mask over a dimension of size 1: one index or none."""
    return TABLE["zeros"].call((int(bool(t)),), dtype=dtypes.int64, device=t.device)


def _column(columns, k):
    spec = columns.spec
    n = spec.shape[0]
    return wrap(spec.with_layout(Layout.of((n,), (1,))), columns.mem, columns.ptr + k * n * 8)


def _index(x, tensors):
    """x read at index tensors and masks, recorded."""
    if len(tensors) == 1 and tensors[0][1].dtype is dtypes.bool_ and tensors[0][1].ndim == x.ndim and x.ndim and not x.is_meta:
        mask = tensors[0][1]
        _check_mask(x, mask, 0)
        out = indexing.compress("get", x, mask)
        if tracking(x):
            record(MaskedSelectIndexBackward0, (x, mask), out, (mask,), spec=x.spec)
        return out
    dims, indices = _integers_of(x, tensors)
    out = indexing.get(x, dims, indices)
    if tracking(x):
        record(IndexBackward0, (x, *indices), out, indices, dims=dims, spec=x.spec)
    return out


@backward("Index")
def IndexBackward0(node, g):
    zeros = TABLE["zeros"].call(node.spec.shape, dtype=g.dtype, device=g.device)
    return (_index_put(zeros, node.dims, node.saved, g, True), *[None] * len(node.saves))


def _unmask(node, g):
    (mask,) = node.saved
    zeros = TABLE["zeros"].call(node.spec.shape, dtype=g.dtype, device=g.device)
    return masked_scatter(zeros, mask, g), None


MaskedSelectIndexBackward0 = backward("Index")(_unmask)


# ---- writing by index tensors ----------------------------------------------------------------------------------------------------


def _index_put(x, dims, indices, values, accumulate):
    """A copy of x with values put at the indices, recorded."""
    out = self_copy(x)
    _write(out, dims, indices, values, accumulate)
    if tracking(x, values):
        record(IndexPutBackward0, (x, values), out, indices, dims=dims, accumulate=accumulate, value_shape=values.shape)
    return out


def _index_put_into(x, dims, indices, values, accumulate):
    """The same in place."""
    check_inplace(x, values)
    check_overlap(x)
    if values.mem is x.mem:
        values = self_copy(values)
    _write(x, dims, indices, values, accumulate)
    x.mem.version += 1
    if tracking(x, values):
        record_inplace(IndexPutBackward0, (x, values), x, indices, dims=dims, accumulate=accumulate, value_shape=values.shape)
    return x


def _write(x, dims, indices, values, accumulate):
    if values.dtype is not x.dtype:
        indexing.check_fits(x, dims, indices, values)
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {x.dtype.scalar_name} for the destination and {values.dtype.scalar_name} for the source."
        )
    indexing.put("add" if accumulate else "set", x, dims, indices, values)


@backward("IndexPut")
def IndexPutBackward0(node, g):
    indices = node.saved
    gx = gv = None
    if node.needs[0]:
        if node.accumulate:
            gx = g
        else:
            zero = TABLE["zeros"].call((), dtype=g.dtype, device=g.device)
            gx = _index_put(g, node.dims, indices, zero, False)
    if node.needs[1]:
        gv = sum_to(_index(g, list(zip(node.dims, indices))), node.value_shape)
    return gx, gv


def _named(x, indices):
    """index_put's tuple of tensors (or None) as (dims, index tensors)."""
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"index_put_(): argument 'indices' (position 1) must be tuple of Tensors, not {type(indices).__name__}")
    place, tensors = 0, []
    for t in indices:
        if t is None:
            place += 1
            continue
        if t.dtype not in _INDEX_DTYPES:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        tensors.append((place, t))
        place += t.ndim if t.dtype in (dtypes.bool_, dtypes.uint8) else 1
    if place > x.ndim:
        raise IndexError(f"too many indices for tensor of dimension {x.ndim} (got {place})")
    return _integers_of(x, tensors)


@operator("index_put")
def index_put(input, indices, values, accumulate=False):
    """A copy of input with `values` (broadcast) at `indices`, a tuple of int tensors or masks; accumulate: added to what is there."""
    return _index_put(input, *_named(input, indices), values, accumulate)


@operator("index_put_")
def index_put_(input, indices, values, accumulate=False):
    """In-place form of `index_put`."""
    return _index_put_into(input, *_named(input, indices), values, accumulate)


@operator("__setitem__", function=False, writes=True)
def setitem(self, key, value):
    """x[key] = value: a number or a tensor that broadcasts to what x[key] is, in place.

    Raises IndexError as x[key] does, RuntimeError where shapes or (under index tensors) dtypes do not fit.
    """
    if not isinstance(value, Tensor):
        value = _number(self, value)
    if isinstance(key, bool):
        if not key:
            return
        key = None
    window = basic(self, key)
    tensors = None
    if window is None:
        window, tensors = _split_key(self, key)
    if tensors is None:
        if isinstance(value, Tensor):
            value = _without_leading_ones(value)
            if value.shape != window.shape:
                value.spec.layout.expand(window.shape)  # raises PyTorch's sentence where it does not broadcast
            if tracking(window, value) or value.is_meta:
                TABLE["copy_"].call(window, value)
            else:
                check_inplace(window, value)
                check_overlap(window)
                assign(window, value)
                window.mem.version += 1
        else:
            TABLE["fill_"].call(window, value)
        return
    if not isinstance(value, Tensor):
        value = TABLE["full"].call((), value, dtype=self.dtype, device=self.device)
    if len(tensors) == 1 and tensors[0][1].dtype is dtypes.bool_ and value.numel() == 1 and tensors[0][1].ndim:
        _fill_where(window, tensors[0], value)
    else:
        dims, indices = _integers_of(window, tensors)
        _index_put_into(window, dims, indices, _without_leading_ones(value), False)


def _number(self, value):
    if isinstance(value, (bool, int, float)):
        return value
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return value.item()
    raise TypeError(f"can't assign a {type(value).__name__} to a torch.{self.dtype.scalar_name}Tensor")


def _without_leading_ones(value):
    while value.ndim and value.shape[0] == 1:
        value = TABLE["select"].call(value, 0, 0)
    return value


def _fill_where(window, placed, value):
    """window[mask] = one value."""
    place, mask = placed
    _check_mask(window, mask, place)
    after = window.ndim - place - mask.ndim
    mask = TABLE["reshape"].call(mask, (*mask.shape, *[1] * after)) if after else mask
    if value.ndim:
        value = TABLE["reshape"].call(value, ())
    if value.dtype is not window.dtype:
        value = TABLE["to"].call(value, window.dtype)
    TABLE["masked_fill_"].call(window, mask, value)
