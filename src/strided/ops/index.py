"""x[key] and x[key] = value in every form, and the operators behind them: index, index_put, masks, nonzero, take and put.

Ints, slices, None and ... give windows (the plan of a key is cached in the tensor's spec); index tensors, lists and masks give fresh tensors.
Gather, scatter and the index_* family along one dimension are in scatter.py.
"""
from __future__ import annotations

from operator import index as as_index

from .. import dtypes, errors
from ..autograd import backward, check_inplace, record, record_inplace, tracking
from ..dispatch import CONTEXT, HOOKS, PlanCache, hooked_call, launch
from ..errors import PackedOperand
from ..layout import Layout
from ..tensor import Tensor, wrap
from . import indexing
from .copying import assign_plan
from .create import as_tensor, scalar_tensor, tensor
from .elementwise import assign, check_overlap, self_copy, sum_to, warn_of_overlap
from .folding import plain
from .item_windows import basic, integer_bound, noted, plan_of_key, token_of
from .masks import masked_scatter
from .onlooking import seen_as
from .packed import call_unpacked
from .table import TABLE, operator
from .writes import fill_plan, number_for

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
    return _picked(self, key) if found is None else found


def _picked(self, key):
    """x[key] for a key that is no window's."""
    if type(key) is Tensor and key.ndim and self.ndim and key.dtype in _INDEX_DTYPES:
        return _index(self, ((0, key),))
    window, indices = _split_key(self, key)
    return window if indices is None else _index(window, indices)


_entry = TABLE["__getitem__"]


def _getitem_call(self, key):
    if HOOKS.active and not CONTEXT.depth:
        return hooked_call(_entry, _getitem, (self, key), {})
    try:
        found = basic(self, key)
        return _picked(self, key) if found is None else found
    except PackedOperand as error:
        return call_unpacked(_getitem, (self, key), {}, error)


_getitem_call.__name__ = _getitem_call.__qualname__ = "__getitem__"
_getitem_call.__doc__ = getitem.__doc__
_entry.call = getitem = _getitem_call  # the same without the decorator's *args: indexing is the most frequent call of all


def _as_tuple(key) -> tuple:
    """A key as a tuple; a list that holds sequences, tensors or slices counts as one, as it always has in PyTorch."""
    if isinstance(key, tuple):
        return key
    if isinstance(key, list) and len(key) < 32 and any(isinstance(k, slice) or k is None or k is Ellipsis or _is_sequence(k) for k in key):
        return tuple(key)
    return (key,)


def _split_key(self, key):
    """(window for the ints, slices, None and ..., index tensors by its dimensions or None where there are none)."""
    items = _as_tuple(key)
    if items[0] is key and _is_integer(key):
        return basic(self, as_index(key)), None
    if type(key) is slice:
        return basic(self, slice(*(bound if bound is None else integer_bound(bound) for bound in (key.start, key.stop, key.step)))), None
    taken = sum(_dims_taken(item) for item in items)
    if taken > self.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
    steps, places, tensors = [], [], []  # tensors: (place among the window's dimensions counted so far, tensor)
    place = length = 0  # length: of PyTorch's list of indices, one a dimension up to the last index tensor's
    for k, item in enumerate(items):
        try:
            item, failed = _resolved(self, item), None
        except Exception as error:
            failed = error
        if failed is not None:
            plan_of_key(self.spec, tuple(steps), places, taken)  # what comes first in the key fails first
            try:
                raise failed
            finally:
                del failed  # the exception's frames hold this one
        if item is Ellipsis:
            moved, step = self.ndim - taken, [item]
        elif item is None or isinstance(item, slice):
            moved, step = 1, [item]
        elif isinstance(item, Tensor):
            flag = item.ndim == 0 and item.dtype in _MASK_DTYPES
            moved = item.ndim if item.dtype in _MASK_DTYPES and not flag else 1
            step = [None] if flag else [_EVERYTHING] * moved
            length = place + 1
            tensors.append((place, item))
        else:
            moved, step = 0, [item]
        place += moved
        steps += step
        places += [k] * len(step)
    if all(item is Ellipsis or type(item) is slice and item == _EVERYTHING for item in steps):
        window = self if tensors else basic(self, Ellipsis)
    else:
        window = _window_of(self, tuple(steps), places)
    if length > window.ndim:
        raise IndexError(f"too many indices for tensor of dimension {window.ndim} (got {length})")
    for _, t in tensors:
        if t.dtype not in _INDEX_DTYPES:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return window, tensors or None


_MASK_DTYPES = (dtypes.bool_, dtypes.uint8)
_EVERYTHING = slice(None)


def _window_of(self, steps, places):
    new, moved, last = plan_of_key(self.spec, steps, places)
    return noted(self, new, moved, last, steps)


def _dims_taken(item) -> int:
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, Tensor) and item.dtype in _MASK_DTYPES:
        return item.ndim
    return 1


def _is_sequence(item) -> bool:
    """Lists, tuples, ranges, strings, arrays (0-dimensional ones, too), tensors: what has a length and items by number."""
    kind = type(item)
    return hasattr(kind, "__getitem__") and hasattr(kind, "__len__") and not isinstance(item, (dict, int))  # int: classes of enums have items of their own


def _is_integer(item) -> bool:
    return not isinstance(item, (bool, Tensor)) and not getattr(item, "ndim", 0) and hasattr(type(item), "__index__") and not _is_sequence(item)


def _resolved(self, item):
    """One item of a key as an int, slice, None, ... or index tensor."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, Tensor):
        if item.ndim == 0 and item.dtype.kind in ("int", "uint") and item.dtype is not dtypes.uint8 and not item.is_meta:
            return int(item.item())
        return item
    if isinstance(item, bool):
        return scalar_tensor(item, dtype=dtypes.bool_, device=self.device)
    if isinstance(item, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(item).__name__}'")
    if hasattr(item, "__array__") and _is_sequence(item):
        made = as_tensor(item)
        return _resolved(self, made if made.dtype in _MASK_DTYPES else TABLE["to"].call(made, dtypes.int64))
    if _is_sequence(item):
        return _of_sequence(self, list(item))
    try:
        return as_index(item)
    except TypeError:
        raise IndexError(f"{_KINDS} (got {_type_name(item)})") from None


def _type_name(item) -> str:
    kind = type(item)
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__


def _of_sequence(self, items):
    """An index tensor of a list: bool where it holds bools, else int64, numbers with a fraction cut."""
    first = items
    while isinstance(first, (list, tuple, range)) and len(first):
        first = first[0]
    if isinstance(first, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(first).__name__}'")
    if hasattr(type(first), "dtype") and not getattr(first, "ndim", 0) and not isinstance(first, (Tensor, float, int)) and not hasattr(first, "__index__") and first.dtype.kind == "f":
        raise TypeError(f"'{_type_name(first)}' object cannot be interpreted as an integer")
    made = tensor(list(items), device=self.device)
    if made.dtype in _MASK_DTYPES and made.numel():
        return made
    return TABLE["to"].call(made, dtypes.int64)


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
        if t.dtype in _MASK_DTYPES:
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
@seen_as("index_backward", lambda node, g: g.numel())
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
    shared = warn_of_overlap("index_put_", x)
    if values.mem is x.mem:
        values = self_copy(values)
    if shared and accumulate:  # every element of a shared place takes its share; a kernel's parts would lose some
        added = TABLE["zeros"].call(x.shape, dtype=x.dtype, device=x.device)
        _write(added, dims, indices, values, True)
        window = plain(x)
        for d in shared:
            window = TABLE["narrow"].call(window, d, 0, 1)
        assign(window, window + TABLE["to"].call(TABLE["sum"].call(added, shared, True), x.dtype))
    else:
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
@seen_as("index_put_backward", moves=True)
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
        place += t.ndim if t.dtype in _MASK_DTYPES else 1
    if place > x.ndim:
        raise IndexError(f"too many indices for tensor of dimension {x.ndim} (got {place})")
    return _integers_of(x, tensors)


def _check_values(name, values):
    if not isinstance(values, Tensor):
        raise TypeError(f"{name}(): argument 'values' (position 2) must be Tensor, not {type(values).__name__}")


@operator("index_put")
def index_put(input, indices, values, accumulate=False):
    """A copy of input with `values` (broadcast) at `indices`, a tuple of int tensors or masks; accumulate: added to what is there."""
    _check_values("index_put", values)
    return _index_put(input, *_named(input, indices), values, accumulate)


@operator("index_put_")
def index_put_(input, indices, values, accumulate=False):
    """In-place form of `index_put`."""
    _check_values("index_put_", values)
    return _index_put_into(input, *_named(input, indices), values, accumulate)


@operator("__setitem__", function=False, writes=True)
def setitem(self, key, value):
    """x[key] = value: a number or a tensor that broadcasts to what x[key] is, in place.

    Raises IndexError as x[key] does, RuntimeError where shapes or (under index tensors) dtypes do not fit.
    """
    if type(key) is slice and _put_as_before(self, key, value):
        return
    if not isinstance(value, Tensor):
        value = _number(self, value)
    if isinstance(key, bool):
        if not key:
            return
        key = None
    window = basic(self, key)
    tensors = None
    if window is None:
        if not isinstance(value, Tensor):  # looked at before the index tensors are
            value = TABLE["full"].call((), value, dtype=self.dtype, device=self.device)
        window, tensors = _split_key(self, key)
    if tensors is None:
        if isinstance(value, Tensor):
            value = _without_leading_ones(value)
            if value.shape != window.shape:
                _check_expands(value, window.shape)  # raises PyTorch's sentence where it does not broadcast
            if tracking(window, value) or value.is_meta:
                TABLE["copy_"].call(window, value)
            else:
                check_inplace(window, value)
                check_overlap(window)
                assign(window, value)
                window.mem.version += 1
                if type(key) is slice and (desc := assign_plan(window, value)) is not None:
                    _put_plans.put((token_of(key), self.spec, value.spec), (desc, window.ptr - self.ptr))
        else:
            check_overlap(window)
            TABLE["fill_"].call(window, value)
            if type(key) is slice and not isinstance(value, complex) and (desc := fill_plan(window)) is not None:
                _put_plans.put((token_of(key), self.spec), (desc, window.ptr - self.ptr))
        return
    if len(tensors) == 1 and tensors[0][1].dtype in _MASK_DTYPES and value.numel() == 1 and tensors[0][1].ndim:
        _fill_where(window, tensors[0], value)
    else:
        dims, indices = _integers_of(window, tensors)
        _index_put_into(window, dims, indices, _without_leading_ones(value), False)


_put_plans = PlanCache()  # (slice, spec) -> (the plan that fills it, bytes by which it starts later); (slice, spec, the value's) -> the same of a copy


def _put_as_before(self, key, value) -> bool:
    """x[slice] = a number or a tensor with no gradient about, as x[slice] of these specs was set before, without making the window; False where it cannot be."""
    if self._inference or self.mem.owner is not None or (token := token_of(key)) is None:
        return False
    if type(value) is Tensor:
        plan = _put_plans.get((token, self.spec, value.spec))
        if plan is None or value.mem is self.mem or value.mem.owner is not None or tracking(self, value):
            return False
        launch(plan[0], self.ptr + plan[1], value.ptr)
    else:
        if type(value) is not int and type(value) is not float:
            return False
        plan = _put_plans.get((token, self.spec))
        if plan is None or tracking(self):
            return False
        launch(plan[0], self.ptr + plan[1], number_for(self.spec.dtype, value))
    self.mem.version += 1
    return True


def _number(self, value):
    if isinstance(value, (bool, int, float)) or isinstance(value, complex) and self.dtype.is_complex:
        return value
    if not getattr(value, "ndim", 0) and hasattr(type(value), "__index__") and hasattr(value, "item") and not _is_sequence(value):
        return value.item()
    if isinstance(value, complex) and not self.dtype.is_complex:
        kind = {"int64": "int64_t", "int32": "int", "int16": "int16_t", "int8": "int8_t", "uint8": "uint8_t", "float64": "double", "float32": "float"}
        raise RuntimeError(f"value cannot be converted to type {kind.get(self.dtype.name, self.dtype.name)} without overflow")
    advice = f"\n  Make it a number or a tensor: torch.as_tensor({type(value).__name__} …)." if hasattr(value, "__array__") else ""
    raise TypeError(f"can't assign a {_type_name(value)} to a {errors.type_name(self.dtype)}{advice}")


def _check_expands(value, shape):
    if value.ndim > len(shape):
        raise errors.expand_too_short(value.shape, shape, value.dtype)
    value.spec.layout.expand(shape)


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
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype unsigned char\n  Make it one: mask.bool().")
    if value.dtype is not window.dtype:
        value = TABLE["to"].call(value, window.dtype)
    TABLE["masked_fill_"].call(window, mask, value)
