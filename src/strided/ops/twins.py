"""The functional twins of view operators: `*_copy` (a view's values in fresh memory), `*_scatter` (a tensor with one of its views replaced),
diagflat, and the conjugations, which leave real tensors as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd import backward, no_grad, record, tracking
from ..formats import contiguous_format
from .copies import clone
from .elementwise import self_copy
from .partviews import as_strided, diagonal, select, slice_
from .rearrange import diag
from .table import TABLE, assign, operator
from .views import check_tensor

# ---- *_copy ------------------------------------------------------------------------------------------------------------------


def _copy_of(name: str) -> None:
    def copying(input, *args, **kwargs):
        result = TABLE[name].call(input, *args, **kwargs)
        return tuple(_fresh(part) for part in result) if isinstance(result, (tuple, list)) else _fresh(result)

    copying.__qualname__ = f"{name}_copy"
    copying.__doc__ = f"`{name}`, with the result in memory of its own."
    operator(f"{name}_copy", method=False, out=True, moves=True, reason=lambda inputs, outputs, args, kwargs: f"{name}_copy copies; {name} is a view")(copying)


def _fresh(view: Any) -> Any:
    return clone(view, memory_format=contiguous_format)


for _name in "alias as_strided diagonal expand permute select slice split split_with_sizes squeeze t transpose unbind unfold unsqueeze view".split():
    _copy_of(_name)


@operator("narrow_copy", out=True, moves=True, reason=lambda inputs, outputs, args, kwargs: "narrow_copy copies; narrow is a view")
def narrow_copy(input, dim, start, length):
    """`narrow`, with the result in memory of its own."""
    shape = check_tensor("narrow_copy", input).shape
    if isinstance(dim, int) and shape and dim >= len(shape):  # PyTorch checks this operator's arguments apart from narrow's
        raise RuntimeError(f"Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false. (a tensor of {len(shape)} dimensions has no dimension {dim})")
    if isinstance(length, int) and length < 0:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({shape[dim] if shape else 1}).")
    return _fresh(TABLE["narrow"].call(input, dim, start, length))

# ---- *_scatter -----------------------------------------------------------------------------------------------------------------


def _scatter(name: str, node_name: str, window: Callable[..., Any], gradient: Callable[..., Any] | None = None) -> Any:
    """The operator `name(input, src, *where)`: input with `window(input, *where)` replaced by src. `gradient` stands in for the one that follows from that."""

    def apply(node, g):
        part = window(g, *node.where)
        rest = scattered(g, TABLE["zeros_like"].call(part), *node.where) if node.needs[0] else None
        return rest, clone(part) if node.needs[1] else None

    node_class = backward(node_name)(gradient or apply)

    def scattered(input, src, *where):
        out = self_copy(check_tensor(name, input))
        with no_grad():
            target = window(out, *where)
        if target.shape != check_tensor(name, src, "src").shape:
            raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(target.shape)}")
        assign(target, src)
        if tracking(input, src):
            record(node_class, (input, src), out, where=where)
        return out

    return scattered


_select_scatter = _scatter("select_scatter", "SelectScatter", select)
_slice_scatter = _scatter("slice_scatter", "SliceScatter", slice_)
_diagonal_scatter = _scatter("diagonal_scatter", "DiagonalScatter", diagonal)


def _as_strided_gradient(node, g):
    """As in PyTorch, input takes the gradient of what lies in the window and src takes it, too."""
    g = TABLE["contiguous"].call(g)  # strides of the result's memory, not of an expanded gradient's
    part = as_strided(g, *node.where)
    rest = _as_strided_scatter(TABLE["zeros_like"].call(g), part, *node.where) if node.needs[0] else None
    return rest, clone(part) if node.needs[1] else None


_as_strided_scatter = _scatter("as_strided_scatter", "AsStridedScatter", as_strided, _as_strided_gradient)


@operator("select_scatter", out=True, moves=True)
def select_scatter(input, src, dim, index):
    """input with entry `index` of dimension `dim` replaced by `src`."""
    return _select_scatter(input, src, dim, index)


@operator("slice_scatter", out=True, moves=True)
def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """input with `input[start:end:step]` along `dim` replaced by `src`."""
    return _slice_scatter(input, src, dim, start, end, step)


@operator("diagonal_scatter", out=True, moves=True)
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """input with a diagonal (as in `diagonal`) replaced by `src`."""
    return _diagonal_scatter(input, src, offset, dim1, dim2)


@operator("as_strided_scatter", out=True, moves=True)
def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """input with the window of `as_strided` replaced by `src`.

    The gradient is PyTorch's: `input` takes it inside the window (whose values came from `src`) and none outside, the opposite of what the values say.
    """
    input = TABLE["contiguous"].call(input)
    return _as_strided_scatter(input, src, size, stride, storage_offset)


@operator("diagflat")
def diagflat(input, offset=0):
    """A matrix with all elements of the input on its diagonal. [..] -> [n, n]"""
    return diag(TABLE["reshape"].call(input, (-1,)), offset)
