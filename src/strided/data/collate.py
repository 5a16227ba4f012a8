"""Samples into batches: stacking what can be stacked, whatever the nesting."""
import collections.abc as abc

from .. import ops
from ..dtypes import float64
from ..ops.data import as_tensor
from ..tensor import Tensor
from .transport import in_worker, shared_empty

_WRONG = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def default_collate(batch):
    """A batch of samples as one sample of batches: tensors stacked along a new first dimension, numbers as tensors, containers kept."""
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch, *, collate_fn_map=None):
    """`default_collate` with a table of functions by type, each `function(batch, *, collate_fn_map)`."""
    first = batch[0]
    for kind, function in (collate_fn_map or {}).items():
        if isinstance(first, kind):
            return function(batch, collate_fn_map=collate_fn_map)
    if type(first).__module__ == "numpy":
        return _collate_numpy(batch, first)
    if isinstance(first, abc.Mapping):
        columns = {key: collate([d[key] for d in batch], collate_fn_map=collate_fn_map) for key in first}
        try:
            return type(first)(columns)
        except TypeError:  # a mapping that cannot be built from a dict
            return columns
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)))
    if isinstance(first, abc.Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
        if isinstance(first, tuple):
            return columns
        try:
            return type(first)(columns)
        except TypeError:  # a sequence that cannot be built from a list
            return columns
    raise TypeError(_WRONG.format(type(first)))


def _collate_numpy(batch, first):
    if first.dtype.kind in "SUO":
        raise TypeError(_WRONG.format(first.dtype))
    if first.ndim == 0:
        return as_tensor(batch)
    return ops.stack([as_tensor(array) for array in batch])


def _collate_tensors(batch, *, collate_fn_map=None):
    """[N, ..]; in a worker straight into the shared file that takes the batch to the loader."""
    first = batch[0]
    if in_worker() and first.grad_fn is None and all(t.shape == first.shape and t.dtype is first.dtype and not t.requires_grad and t.is_cpu for t in batch):
        out = shared_empty((len(batch), *first.shape), first.dtype)
        if out is not None:
            for row, sample in zip(out.unbind(0), batch):
                row.copy_(sample)
            return out
    return ops.stack(list(batch), 0)


def _collate_floats(batch, *, collate_fn_map=None):
    return ops.tensor(list(batch), dtype=float64)


def _collate_ints(batch, *, collate_fn_map=None):
    return ops.tensor(list(batch))


def _collate_texts(batch, *, collate_fn_map=None):
    return batch


default_collate_fn_map = {
    Tensor: _collate_tensors,
    float: _collate_floats,
    int: _collate_ints,
    str: _collate_texts,
    bytes: _collate_texts,
}


def default_convert(data):
    """NumPy arrays inside a sample as tensors; everything else stays."""
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if type(data).__module__ == "numpy":
        return data if data.dtype.kind in "SUO" else as_tensor(data)
    if isinstance(data, abc.Mapping):
        return type(data)({key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple):
        items = [default_convert(item) for item in data]
        return type(data)(*items) if hasattr(data, "_fields") else items
    if isinstance(data, abc.Sequence):
        return type(data)([default_convert(item) for item in data])
    return data
