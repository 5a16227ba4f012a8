"""Rules of operators that change a sample's shape: sizes, dimensions of size 1, indexing, joining."""
from __future__ import annotations

import math

from .. import tree
from ..layout import wrap_dim
from ..tensor import Tensor
from .arguments import bound
from .samples import Batched, batched, is_of, rule


@rule("unsqueeze")
def unsqueeze(func, args, kwargs, level):
    found = bound(func, args, kwargs)
    if found is None or not is_of(found.get("input"), level):
        return NotImplemented
    x, dim = found["input"], found["dim"]
    return batched(x.value.unsqueeze(wrap_dim(dim, x.ndim + 1) + 1), level)


@rule("squeeze")
def squeeze(func, args, kwargs, level):
    found = bound(func, args, kwargs)
    if found is None or not is_of(found.get("input"), level):
        return NotImplemented
    x, dim = found["input"], found.get("dim")
    dims = [d for d in range(x.ndim) if x.shape[d] == 1] if dim is None else [wrap_dim(d, x.ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))] if x.ndim else []
    return batched(x.value.squeeze(tuple(d + 1 for d in dims)) if dims else x.value, level)


@rule("view reshape expand permute repeat tile")
def sized(func, args, kwargs, level):
    """view, reshape, expand, …: the batch's size in front of the sizes given."""
    x, *sizes = args
    if kwargs or not sizes or not all(isinstance(s, int) or isinstance(s, (tuple, list)) for s in sizes):
        return NotImplemented
    sizes = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else tuple(sizes)
    name = func.__name__
    if name == "expand":
        value = x.value.view(x.value.shape[0], *[1] * (len(sizes) - x.ndim), *x.value.shape[1:])
        return batched(value.expand(-1, *sizes), level)
    if name in ("repeat", "tile"):
        if len(sizes) < x.ndim:
            return NotImplemented
        return batched(x.value.view(x.value.shape[0], *[1] * (len(sizes) - x.ndim), *x.value.shape[1:]).repeat(1, *sizes), level)
    if name == "permute":
        return batched(x.value.permute(0, *(wrap_dim(d, x.ndim) + 1 for d in sizes)), level)
    if -1 in sizes:
        known = math.prod(s for s in sizes if s != -1)
        if known == 0 or sizes.count(-1) > 1 or x.numel() % known:
            return NotImplemented
        sizes = tuple(x.numel() // known if s == -1 else s for s in sizes)
    return batched(func(x.value, (x.value.shape[0], *sizes)), level)


@rule("t T mT adjoint")
def transposed(func, args, kwargs, level):
    x = args[0]
    if func.__name__ == "t" and x.ndim > 2:
        return NotImplemented
    return x if x.ndim < 2 else batched(x.value.transpose(-1, -2), level)


@rule("__getitem__")
def item(func, args, kwargs, level):
    """x[key]: ints, slices, None and ... behind the batch; index tensors of all samples where they stand together."""
    x, key = args
    if not is_of(x, level):
        return NotImplemented
    parts = key if isinstance(key, tuple) else (key,)
    if any(isinstance(leaf, Batched) for leaf in tree.flatten(parts)):
        return NotImplemented
    advanced = [i for i, part in enumerate(parts) if isinstance(part, (Tensor, list)) or isinstance(part, bool)]
    if advanced and len(advanced) != advanced[-1] - advanced[0] + 1 or any(isinstance(part, bool) for part in parts):
        return NotImplemented
    if advanced and any(isinstance(part, int) for part in parts):  # an int beside index tensors is one of them
        return NotImplemented
    return batched(x.value[(slice(None), *parts)], level)


@rule("cat stack")
def joined(func, args, kwargs, level):
    """cat and stack: tensors that are the same for all samples are expanded."""
    found = bound(func, args, kwargs)
    if found is None or not args:
        return NotImplemented
    tensors, dim = args[0], found.get("dim", 0)
    size = next(t.value.shape[0] for t in tensors if is_of(t, level))
    ndim = tensors[0].ndim + (func.__name__ == "stack")
    values = [t.value if is_of(t, level) else t.expand(size, *t.shape) for t in tensors]
    return batched(func(values, wrap_dim(dim, ndim) + 1), level)
