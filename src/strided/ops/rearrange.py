"""Operators that rearrange elements into fresh memory: flip, roll, rot90, diag, diag_embed, and their gradients.

Plain copies, conversions and repeats are in copies.py.
"""

from __future__ import annotations

from itertools import product

from ..autograd import backward, record, tracking
from ..dispatch import PlanCache, launch, run
from ..formats import suggested
from ..kernels.index import build_copy
from ..layout import Layout, result_strides, wrap_dim, wrap_dims
from ..tensor import empty, empty_of, wrap
from .copies import flatten
from .copying import assign_plan
from .elementwise import self_copy
from .partviews import diagonal, place_back, slice_
from .table import assign, operator
from .views import integer, integers

# ---- flips, rolls, rotations -------------------------------------------------------------------------------------------------------

_flip_plans = PlanCache()


@backward("Flip")
def FlipBackward0(node, g):
    return (flip(g, node.dims),)


@operator("flip", moves=True, reason=lambda inputs, outputs, args, kwargs: "strides cannot be negative, so a flip copies")
def flip(input, *given, dims=None):
    """The order of entries reversed along `dims`."""
    if not given and dims is None:
        raise TypeError('flip() missing 1 required positional arguments: "dims"')
    dims = integers("flip", "dims", given if dims is None else (dims,))
    spec = input.spec
    chosen = wrap_dims(dims, spec.ndim) if dims else []
    key = spec, tuple(chosen)
    plan = _flip_plans.get(key)
    if plan is None:
        new = spec.with_layout(result_strides(spec.shape, spec.layout))
        walk = [-s if d in chosen else s for d, s in enumerate(spec.strides)]  # from the far end backwards
        start = sum((spec.shape[d] - 1) * spec.strides[d] for d in chosen if spec.ndim) * spec.itemsize if spec.numel else 0
        desc = None if spec.is_meta else build_copy(spec.itemsize, spec.shape, new.strides, walk, result_bytes=new.nbytes)
        plan = _flip_plans.put(key, (desc, new, start))
    out = run(plan[0], plan[1], input.ptr + plan[2])
    if tracking(input):
        record(FlipBackward0, (input,), out, dims=dims)
    return out


@operator("fliplr", moves=True)
def fliplr(input):
    """The second dimension reversed."""
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, (1,))


@operator("flipud", moves=True)
def flipud(input):
    """The first dimension reversed."""
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, (0,))


@backward("Roll")
def RollBackward0(node, g):
    return (roll(g, tuple(-s for s in node.shifts), node.dims),)


@operator("roll", moves=True, reason=lambda inputs, outputs, args, kwargs: "roll always copies")
def roll(input, shifts, dims=None):
    """Entries moved by `shifts` along `dims`, those that fall off the end coming in at the start; without dims, of the flattened tensor."""
    shifts = integers("roll", "shifts", (shifts,))
    dims = () if dims is None else integers("roll", "dims", (dims,))
    if not shifts:
        raise RuntimeError("`shifts` required")
    if dims and not input.ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    if len(shifts) != len(dims) and (dims or len(shifts) != 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    out = _roll(input, shifts, dims)
    if tracking(input):
        record(RollBackward0, (input,), out, shifts=shifts, dims=dims)
    return out


_roll_plans = PlanCache()  # (spec, shifts, dims) -> (the result's, (plan of a copy, where it starts in the result, in the input) for each block)


def _roll(input, shifts, dims):
    from ..autograd import no_grad

    plan = _roll_plans.get((input.spec, shifts, dims))
    if plan is not None:
        spec, blocks = plan
        out = empty_of(spec)
        for desc, to, start in blocks:
            launch(desc, out.ptr + to, input.ptr + start)
        return out
    with no_grad():
        if not dims:
            rolled = _roll(flatten(input), shifts, (0,))
            return wrap(rolled.spec.with_layout(Layout.contiguous(input.shape)), rolled.mem, rolled.ptr)
        out = empty(input.shape, input.dtype, input.device, suggested(input.spec.layout).layout(input.shape).strides)
        blocks = []
        if not input.spec.numel:
            return out
        total: dict[int, int] = {}
        for shift, d in zip(shifts, (wrap_dim(d, input.ndim) for d in dims)):
            total[d] = (total.get(d, 0) + shift) % (input.shape[d] if input.ndim else 1)
        moving = [(d, shift) for d, shift in total.items() if shift]
        for halves in product((False, True), repeat=len(moving)):  # each moved dimension falls into two blocks
            target, source = out, input
            for (d, shift), wraps in zip(moving, halves):
                n = input.shape[d]
                target = slice_(target, d, 0, shift) if wraps else slice_(target, d, shift, n)
                source = slice_(source, d, n - shift, n) if wraps else slice_(source, d, 0, n - shift)
            assign(target, source)
            blocks.append((assign_plan(target, source), target.ptr - out.ptr, source.ptr - input.ptr))
        if all(desc is not None for desc, _, _ in blocks):
            _roll_plans.put((input.spec, shifts, dims), (out.spec, blocks))
        return out


@backward("Rot90")
def Rot90Backward0(node, g):
    return (rot90(g, -node.k, node.dims),)


@operator("rot90", moves=True, reason=lambda inputs, outputs, args, kwargs: "rot90 always copies")
def rot90(input, k=1, dims=(0, 1)):
    """Rotated by k quarter turns in the plane of `dims`, from the first towards the second."""
    from ..autograd import no_grad

    k, dims = integer("rot90", "k", k), integers("rot90", "dims", (dims,))
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    a, b = (wrap_dim(d, input.ndim) for d in dims)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    with no_grad():
        turns = k % 4
        if turns == 0:
            out = self_copy(input, None, Layout.contiguous(input.shape))
        elif turns == 2:
            out = flip(input, dims)
        else:
            flipped = flip(input, (dims[1] if turns == 1 else dims[0],))
            out = wrap(flipped.spec.with_layout(flipped.spec.layout.transpose(a, b)), flipped.mem, flipped.ptr)
    if tracking(input):
        record(Rot90Backward0, (input,), out, k=k, dims=dims)
    return out


# ---- diagonals -----------------------------------------------------------------------------------------------------------------------


@backward("DiagEmbed")
def DiagEmbedBackward0(node, g):
    return (diagonal(g, node.offset, node.dim1, node.dim2),)


@operator("diag_embed")
def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Matrices with the input's last dimension on a diagonal, zero elsewhere. [.., n] -> [.., n+|offset|, n+|offset|]"""
    ndim = input.ndim + 1
    a, b = wrap_dim(integer("diag_embed", "dim1", dim1), ndim), wrap_dim(integer("diag_embed", "dim2", dim2), ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    side = input.shape[-1] + abs(offset)
    sizes = list(input.shape[:-1])
    for d in sorted((a, b)):
        sizes.insert(d, side)
    out = place_back(input.detach() if input._tracked else input, tuple(sizes), diagonal, offset, a, b)
    if tracking(input):
        record(DiagEmbedBackward0, (input,), out, offset=offset, dim1=dim1, dim2=dim2)
    return out


@backward("DiagonalBackward0_copy")
def DiagonalBackward0_copy(node, g):
    return (place_back(g, node.self_sym_sizes, diagonal, node.offset, node.dim1, node.dim2),)


@operator("diag", out=True, moves=True, reason=lambda inputs, outputs, args, kwargs: "diag copies; diagonal() is a view")
def diag(input, diagonal=0):
    """A matrix's diagonal as a copy, or the matrix with a vector on its diagonal. [n, m] -> [min(n, m)]; [n] -> [n, n]"""
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    spec = input.spec
    layout, offset = spec.layout.diagonal(diagonal, 0, 1)
    part = wrap(spec.with_layout(layout), input.mem, input.ptr + offset * spec.itemsize)
    out = self_copy(part, None, Layout.contiguous(layout.shape))
    if tracking(input):
        record(DiagonalBackward0_copy, (input,), out, offset=diagonal, dim1=0, dim2=1, self_sym_sizes=spec.shape)
    return out
