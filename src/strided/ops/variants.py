"""Pieces that may be written (`unsafe_chunk` and its like), and other sizes of a tensor: constant_pad_nd, sum_to_size."""
from __future__ import annotations

from ..autograd import backward, no_grad, record, tracking
from ..formats import suggested
from .elementwise import sum_to
from .table import TABLE, operator
from .views import integers

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
    kept = [size + min(before, 0) + min(after, 0) for size, (before, after) in zip(input.shape, ends)]
    if min(kept, default=0) < 0:
        raise RuntimeError("narrow(): length must be non-negative.\n  A negative padding cuts off more than the dimension has.")
    with no_grad():
        source = input
        for d, (before, _) in enumerate(ends):
            source = source.narrow(d, max(-before, 0), kept[d])
        if sizes == kept:  # nothing but cropped
            out = source.clone()
        else:
            out = target = TABLE["empty"].call(sizes, dtype=input.dtype, device=input.device, memory_format=suggested(input.spec.layout)).fill_(value)
            for d, (before, _) in enumerate(ends):
                target = target.narrow(d, max(before, 0), kept[d])
            if min(kept, default=1) > 0:
                target.copy_(source)
    if tracking(input):
        record(ConstantPadNdBackward0, (input,), out, pad=tuple(pad))
    return out


@operator("sum_to_size", function=False)
def sum_to_size(input, *sizes, size=None):
    """input summed over the dimensions along which `size` would be broadcast to its shape."""
    size = integers("sum_to_size", "size", sizes if size is None else (size,))
    extra = input.ndim - len(size)
    if extra < 0 or any(want not in (1, have) for want, have in zip(size, input.shape[extra:])):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(input.shape)}}}.")
    if not size:
        return TABLE["sum"].call(input)
    return sum_to(input, size) if tuple(size) != tuple(input.shape) else TABLE["alias"].call(input)
