"""The core's rarer names: other spellings of operators, element-by-element Python, questions a tensor answers about itself."""
from __future__ import annotations

import itertools
import operator as arithmetic
from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..autograd import tracking
from ..tensor import Tensor
from .table import TABLE, operator

# ---- other spellings ------------------------------------------------------------------------------------------------------------


@operator("as_strided_")
def as_strided_(input, size, stride, storage_offset=None):
    """This tensor becomes a window of its own memory with other sizes, strides and offset (in elements)."""
    if tracking(input):
        raise NotImplementedError("as_strided_: a tensor that requires grad keeps its window; use as_strided")
    offset = input.storage_offset() if storage_offset is None else storage_offset
    return TABLE["set_"].call(input, input.untyped_storage(), offset, size, stride)


@operator("detach_copy", method=False, moves=True, reason=lambda *_: "detach_copy copies; detach is a view")
def detach_copy(input):
    """`detach`, with the result in memory of its own."""
    return TABLE["clone"].call(input.detach())


@operator("empty_permuted", method=False)
def empty_permuted(size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """An uninitialised tensor without gaps; physical_layout lists its dimensions in the order in which they lie in memory, the outermost first."""
    if sorted(physical_layout) != list(range(len(size))):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {len(size)} is not equal to len(physical_layout) = {len(physical_layout)}"
            if len(physical_layout) != len(size)
            else f"Physical layout must name each of the dimensions 0 to {len(size) - 1} once, got {tuple(physical_layout)}"
        )
    strides, step = [0] * len(size), 1
    for d in reversed(physical_layout):
        strides[d], step = step, step * max(size[d], 1)
    return TABLE["empty_strided"].call(tuple(size), tuple(strides), dtype=dtype, device=device, requires_grad=requires_grad)


@operator("norm_except_dim", method=False)
def norm_except_dim(v, pow=2, dim=0):
    """The norms of the slices along `dim`, each other dimension of size 1; dim = -1: the norm of all elements."""
    if dim == -1:
        return TABLE["norm"].call(v, pow)
    return TABLE["norm"].call(v, pow, tuple(d for d in range(v.ndim) if d != dim % v.ndim), True)


@operator("unravel_index", method=False)
def unravel_index(indices, shape):
    """Flat (row-major) positions in a tensor of `shape` as one tensor of coordinates a dimension."""
    if not isinstance(indices, Tensor):
        raise TypeError(f"unravel_index(): argument 'indices' (position 1) must be Tensor, not {type(indices).__name__}")
    if indices.dtype.is_floating_point or indices.dtype.is_complex or indices.dtype is dtypes.bool_:
        raise ValueError(f"expected 'indices' to be an integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, tuple, list, Tensor)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    shape = shape.tolist() if isinstance(shape, Tensor) else shape
    shape = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    if any(n < 0 for n in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {shape}")
    steps = list(itertools.accumulate((1, *shape[:0:-1]), arithmetic.mul))[::-1]  # elements between neighbours along each dimension
    flat = TABLE["to"].call(indices, dtypes.int64)
    return tuple(TABLE["remainder"].call(TABLE["floor_divide"].call(flat, step), n) for n, step in zip(shape, steps))


# ---- element by element ---------------------------------------------------------------------------------------------------------


def _written(name: str, x: Tensor, function: Callable[..., Any], *others: Tensor) -> Tensor:
    if tracking(x, *others):
        raise TypeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    shape = x.shape
    columns = [TABLE["reshape"].call(TABLE["expand"].call(t, shape), (-1,)).tolist() for t in (x, *others)]
    made = TABLE["tensor"].call([function(*values) for values in zip(*columns)], dtype=x.dtype)
    return TABLE["copy_"].call(x, TABLE["reshape"].call(made, shape))


def _apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Every element replaced by callable(element), one Python call each: slow, for what no operator does."""
    return _written("apply_", self, callable)


def _map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Every element replaced by callable(element, tensor's element), one Python call each."""
    return _written("map_", self, callable, tensor)


def _map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Every element replaced by callable(element, x's element, y's element), one Python call each."""
    return _written("map2_", self, callable, x, y)


# ---- questions ------------------------------------------------------------------------------------------------------------------


def _is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both are the same window of the same memory."""
    return self.mem is tensor.mem and self.ptr == tensor.ptr and self.shape == tensor.shape and self.stride() == tensor.stride()


def _dim_order(self: Tensor) -> tuple[int, ...]:
    """The dimensions in the order in which they lie in memory, the outermost first."""
    return tuple(sorted(range(self.ndim), key=lambda d: -self.stride(d)))


def _to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor itself, which is dense."""
    return self if dtype is None else TABLE["to"].call(self, dtype)


def _resize(self: Tensor, *sizes: Any) -> Tensor:
    """`reshape`, as PyTorch's old `resize` does for tensors that keep their number of elements."""
    import warnings

    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    wanted = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    count = 1
    for n in wanted:
        count *= n
    if count != self.numel():
        raise RuntimeError(
            f"requested resize to {tuple(wanted)} ({count} elements in total), but the given tensor has a size of {tuple(self.shape)} ({self.numel()} elements). "
            "autograd's resize can only change the shape of a given tensor, while preserving the number of elements. "
        )
    return TABLE["reshape"].call(self, tuple(wanted))


def _resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """`resize` to the other's shape."""
    return _resize(self, tuple(tensor.shape))


for _name, _method in {
    "apply_": _apply_, "map_": _map_, "map2_": _map2_, "is_set_to": _is_set_to, "dim_order": _dim_order, "to_dense": _to_dense, "resize": _resize, "resize_as": _resize_as,
}.items():  # fmt: skip
    _method.__name__, _method.__qualname__ = _name, f"Tensor.{_name}"
    setattr(Tensor, _name, _method)
Tensor.name = property(lambda self: None, doc="None: tensors have no names.")  # type: ignore[attr-defined]
Tensor._cdata = property(id, doc="A number that no other tensor has as long as this one lives.")  # type: ignore[attr-defined]
for _name in ("is_ipu", "is_maia", "is_mtia", "is_xla", "is_vulkan", "is_sparse_csr"):
    if not hasattr(Tensor, _name):
        setattr(Tensor, _name, False)
