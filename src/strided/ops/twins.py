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
    operator(f"{name}_copy", method=False, moves=True, reason=lambda inputs, outputs, args, kwargs: f"{name}_copy copies; {name} is a view")(copying)


def _fresh(view: Any) -> Any:
    return clone(view, memory_format=contiguous_format)


for _name in "alias as_strided diagonal expand narrow permute select slice split split_with_sizes squeeze t transpose unbind unfold unsqueeze view".split():
    _copy_of(_name)
TABLE["narrow_copy"].method = True

# ---- *_scatter -----------------------------------------------------------------------------------------------------------------


def _scatter(name: str, node_name: str, window: Callable[..., Any]) -> Any:
    """The operator `name(input, src, *where)`: input with `window(input, *where)` replaced by src."""

    def apply(node, g):
        if window is as_strided:  # strides of the result's memory, not of an expanded gradient's
            g = TABLE["contiguous"].call(g)
        part = window(g, *node.where)
        rest = scattered(g, TABLE["zeros_like"].call(part), *node.where) if node.needs[0] else None
        return rest, clone(part) if node.needs[1] else None

    node_class = backward(node_name)(apply)

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
_as_strided_scatter = _scatter("as_strided_scatter", "AsStridedScatter", as_strided)


@operator("select_scatter", moves=True)
def select_scatter(input, src, dim, index):
    """input with entry `index` of dimension `dim` replaced by `src`."""
    return _select_scatter(input, src, dim, index)


@operator("slice_scatter", moves=True)
def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """input with `input[start:end:step]` along `dim` replaced by `src`."""
    return _slice_scatter(input, src, dim, start, end, step)


@operator("diagonal_scatter", moves=True)
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """input with a diagonal (as in `diagonal`) replaced by `src`."""
    return _diagonal_scatter(input, src, offset, dim1, dim2)


@operator("as_strided_scatter", moves=True)
def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """input with the window of `as_strided` replaced by `src`.

    The gradient of `input` is zero in the window and passes everywhere else (PyTorch 2.13 returns the opposite).
    """
    input = TABLE["contiguous"].call(input)
    return _as_strided_scatter(input, src, size, stride, storage_offset)


@operator("diagflat")
def diagflat(input, offset=0):
    """A matrix with all elements of the input on its diagonal. [..] -> [n, n]"""
    return diag(TABLE["reshape"].call(input, (-1,)), offset)


# ---- conjugation of real tensors -------------------------------------------------------------------------------------------------

for _name, _doc in {
    "conj": "The complex conjugate: a real tensor itself.",
    "conj_physical": "The complex conjugate: a real tensor itself.",
    "resolve_conj": "The tensor with a pending conjugation carried out: a real tensor itself.",
    "resolve_neg": "The tensor with a pending negation carried out: itself.",
}.items():

    def _itself(input):
        return check_tensor("conj", input)

    _itself.__doc__ = _doc
    operator(_name, view=True)(_itself)


def real(input):
    """The real part: a real tensor itself."""
    return check_tensor("real", input).real


def imag(input):
    """The imaginary part of a complex tensor."""
    return check_tensor("imag", input).imag
