"""Operators that are a view and a copy: `*_copy` (the view's values in memory of their own), `*_scatter` (a copy with a window replaced), `unsafe_*`,
and their like: constant_pad_nd, sum_to_size, diagflat.
"""
from __future__ import annotations

from ..autograd import backward, no_grad, record, tracking
from ..formats import contiguous_format
from ..tensor import Tensor
from .elementwise import sum_to
from .table import TABLE, operator
from .views import integers


def _clone(t: Tensor) -> Tensor:
    return TABLE["clone"].call(t, memory_format=contiguous_format)


# ---- copies of views ------------------------------------------------------------------------------------------------------------------


def _copying(name: str) -> None:
    view = TABLE[name].call
    method = name == "narrow"  # the one of them that PyTorch has as a method

    @operator(f"{name}_copy", method=method, out=True, moves=True, reason=lambda *_: f"{name}_copy is {name} with memory of its own")
    def copy(input, *args, **kwargs):
        result = view(input, *args, **kwargs)
        return tuple([_clone(t) for t in result]) if isinstance(result, (tuple, list)) else _clone(result)

    TABLE[f"{name}_copy"].doc = copy.__doc__ = f"`{name}` with the result in fresh row-major memory."


for _name in "alias as_strided detach diagonal expand narrow permute select slice split split_with_sizes squeeze t transpose unbind unfold unsqueeze view".split():
    _copying(_name)


# ---- a copy with a window replaced ----------------------------------------------------------------------------------------------------


def _scattered(name: str, input: Tensor, src: Tensor, *where) -> Tensor:
    """A copy of input whose window `name(copy, *where)` holds src."""
    result = TABLE["clone"].call(input)
    window = TABLE[name].call(result, *where)
    if window.shape != src.shape:
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(window.shape)}")
    window.copy_(src)
    return result


_copies = {"moves": True, "out": True, "reason": lambda *_: "the input stays as it is: a copy takes the new values"}


@operator("diagonal_scatter", **_copies)
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """A copy of input with src along the diagonal `input.diagonal(offset, dim1, dim2)`."""
    return _scattered("diagonal", input, src, offset, dim1, dim2)


@operator("select_scatter", **_copies)
def select_scatter(input, src, dim, index):
    """A copy of input with src as entry `index` of dimension `dim`."""
    return _scattered("select", input, src, dim, index)


@operator("slice_scatter", **_copies)
def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """A copy of input with src in `input[start:end:step]` of dimension `dim`."""
    return _scattered("slice", input, src, dim, start, end, step)


@operator("as_strided_scatter", **_copies)
def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """A copy of input with src in the window `input.as_strided(size, stride, storage_offset)`."""
    return _scattered("as_strided", input, src, size, stride, storage_offset)


# ---- pieces that may be written -------------------------------------------------------------------------------------------------------


def _unsafe(name: str) -> None:
    cut = TABLE[name].call

    @operator(f"unsafe_{name}", view=True)
    def unsafe(input, *args, **kwargs):
        pieces = cut(input, *args, **kwargs)
        for piece in pieces:  # plain results to autograd: a write into one is not looked for in the others
            piece._base = piece._view_kind = None
        return pieces

    TABLE[f"unsafe_{name}"].doc = unsafe.__doc__ = f"`{name}` whose pieces autograd takes for separate tensors: they may be written in place, the input must then not be used."


for _name in ("chunk", "split", "split_with_sizes"):
    _unsafe(_name)


# ---- sizes -------------------------------------------------------------------------------------------------------------------------------


@backward("ConstantPadNd")
def ConstantPadNdBackward0(node, g):
    return (constant_pad_nd(g, [-p for p in node.pad]),)


@operator("constant_pad_nd", method=False, moves=True, reason=lambda *_: "padding needs room around the values")
def constant_pad_nd(input, pad, value=0):
    """The input with `value` around it: pairs (before, after) in `pad`, the last dimension first; negative ones crop."""
    ends = [(0, 0)] * (input.dim() - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    sizes = [size + before + after for size, (before, after) in zip(input.shape, ends)]
    if any(size < 0 for size in sizes):
        d = next(i for i, size in enumerate(sizes) if size < 0)
        raise RuntimeError(
            f"The input size {input.shape[d]}, plus negative padding {ends[d][0]} and {ends[d][1]} resulted in a negative output size, "
            f"which is invalid. Check dimension {d} of your input."
        )
    with no_grad():
        out = TABLE["full"].call(sizes, value, dtype=input.dtype, device=input.device)
        source, target = input, out
        for d, (before, after) in enumerate(ends):
            kept = input.shape[d] + min(before, 0) + min(after, 0)
            source = source.narrow(d, max(-before, 0), max(kept, 0))
            target = target.narrow(d, max(before, 0), max(kept, 0))
        target.copy_(source)
    if tracking(input):
        record(ConstantPadNdBackward0, (input,), out, pad=tuple(pad))
    return out


@operator("sum_to_size", function=False)
def sum_to_size(input, *size):
    """input summed over the dimensions along which `size` would be broadcast to its shape."""
    size = integers("sum_to_size", "size", size)
    extra = input.ndim - len(size)
    if extra < 0 or any(want not in (1, have) for want, have in zip(size, input.shape[extra:])):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(input.shape)}}}.")
    return sum_to(input, size) if tuple(size) != tuple(input.shape) else TABLE["alias"].call(input)


@operator("diagflat", moves=True)
def diagflat(input, offset=0):
    """A square matrix with all of input's elements on the diagonal `offset`. [*] -> [n + |offset|, n + |offset|]"""
    return TABLE["diag"].call(TABLE["reshape"].call(input, (-1,)), offset)
