"""Joining tensors into a fresh one (cat, stack and kin: row by row, or one strided copy a piece) and cutting one into windows (split, chunk, unbind and kin)."""
from __future__ import annotations

from itertools import accumulate

from .. import dtypes, errors
from ..autograd import backward, record, tracking
from ..autograd.graph import record_view
from ..autograd.modes import STATE
from ..block_tensor import NotOfBlocks
from ..dispatch import HOOKS, PlanCache, launch, meta_storage
from ..formats import contiguous_format, suggested
from ..kernels import expr as E
from ..kernels.index import GRAIN, build_copy
from ..kernels.joining import build_join
from ..kernels.map import build_map
from ..kernels.native import new_storage
from ..kernels.native_objects import make_tensor
from ..kernels.recipes import KEEP
from ..layout import Layout, collapse, wrap_dim
from ..tensor import Spec, Tensor, wrap
from . import signatures
from .table import TABLE, operator
from .views import integers, remember

_plans = PlanCache()


def _joined(tensors, key, pieces) -> Tensor:
    """A fresh tensor made of `tensors`. `pieces(specs)` gives its layout and, for each tensor, (layout of its window, offset in elements);
    called once for tensors of these kinds."""
    specs = tuple([t.spec for t in tensors])
    plan = _plans.get((key, specs))
    if plan is None:
        plan = _plans.put((key, specs), _plan(tensors, specs, pieces))
    spec, copies, join = plan
    if copies is None:
        return wrap(spec, meta_storage(spec), 0)
    memory = new_storage(spec.nbytes)
    start = memory.data
    if join is not None:
        launch(join, start, *[t.ptr for t in tensors])
        return wrap(spec, memory, start)
    for (desc, offset), t in zip(copies, tensors):
        if desc is not None:
            launch(desc, start + offset, t.ptr)
    return wrap(spec, memory, start)


def _plan(tensors, specs, pieces):
    device = errors.check_devices("cat", tensors)
    dtype = specs[0].dtype
    for t in tensors[1:]:
        if t.dtype is not dtype:
            dtype = dtypes.promote(dtype, t.dtype)
    whole, windows = pieces(specs)
    spec = Spec.of(whole, dtype, device)
    if spec.is_meta:
        return spec, None, None
    join = None if KEEP[0] else _row_by_row(specs, dtype, windows)
    if join is not None:
        return spec, (), join
    copies = []
    for own, (window, offset) in zip(specs, windows):
        if own.numel == 0:
            copies.append((None, 0))
        elif own.dtype is dtype:
            copies.append((build_copy(dtype.itemsize, window.shape, window.strides, own.strides), offset * dtype.itemsize))
        else:
            source = own.layout if own.shape == window.shape else Layout.of(window.shape, own.strides)
            copies.append((build_map(E.param(0), [(dtype, window)], [(own.dtype, source)]), offset * dtype.itemsize))
    return spec, copies, None


def _row_by_row(specs, dtype, windows):
    """One kernel for all pieces, where each is the same number of rows, contiguous in themselves, of a result that has all of them side by side, or short and one after the other; else None."""
    found = []
    for own, (window, offset) in zip(specs, windows):
        if own.dtype is not dtype or own.shape != window.shape or not own.numel:
            return None
        sizes, (to, source) = collapse(own.shape, window.strides, own.strides)
        if len(sizes) == 1 and own.numel < GRAIN:  # one after the other: pieces of a single row
            sizes, to, source = (1, *sizes), (0, *to), (0, *source)
        if len(sizes) != 2 or to[1] != 1 or source[1] != 1:
            return None
        found.append((sizes[0], to[0], (offset, sizes[1], source[0])))
    rows, row, _ = found[0]
    if len(found) < 2 or any(piece[:2] != (rows, row) for piece in found):
        return None
    return build_join(dtype.itemsize, rows, row, [piece for *_, piece in found])


def _listed(name, tensors):
    if isinstance(tensors, Tensor) or not isinstance(tensors, (tuple, list)):
        got = "Tensor" if isinstance(tensors, Tensor) else type(tensors).__name__
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {got}")
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(t).__name__}")
    return tensors


# ---- cat -------------------------------------------------------------------------------------------------------------------------


@operator("cat", method=False, aliases=("concat", "concatenate"), out=True, autocast="promote", moves=True, reason=lambda *_: "cat joins tensors into new memory")
def cat(tensors, dim=0, *, axis=None):
    """The tensors one after the other along `dim`; all other sizes must agree. [.., a, ..], [.., b, ..] -> [.., a + b, ..]

    Raises RuntimeError where sizes differ, naming both and the tensor.
    """
    tensors = _listed("cat", tensors)
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    dim = dim if axis is None else axis
    try:
        out = _joined(tensors, ("cat", dim), lambda specs: _cat_pieces(specs, dim))
    except NotOfBlocks:
        out = None
    if out is None:
        from .blocks.products import cat_blocks

        return cat_blocks(tensors, dim)
    if tracking(*tensors):
        d = wrap_dim(dim, out.ndim) if out.ndim > 1 else 0
        record(CatBackward0, tuple(tensors), out, specs_of_inputs=tuple([t.spec for t in tensors]), dim=d)
    return out


def _skipped(spec) -> bool:
    """An empty 1-d tensor joins anything, as it always has in PyTorch."""
    return spec.ndim == 1 and spec.numel == 0


def _cat_pieces(specs, dim):
    for i, spec in enumerate(specs):
        if spec.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    first = next((spec for spec in specs if not _skipped(spec)), None)
    if first is None:  # nothing but empty 1-d tensors: whichever dimension is named
        first, dim = specs[0], 0
    dim = wrap_dim(dim, first.ndim)
    total = 0
    for i, spec in enumerate(specs):
        if _skipped(spec):
            continue
        if spec.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {spec.ndim}")
        for d in range(first.ndim):
            if d != dim and spec.shape[d] != first.shape[d]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {first.shape[d]} but got size {spec.shape[d]} for tensor "
                    f"number {i} in the list.\n  first {list(first.shape)}\n  this  {list(spec.shape)}"
                )
        total += spec.shape[dim]
    shape = (*first.shape[:dim], total, *first.shape[dim + 1 :])
    whole, at, windows = _format([spec for spec in specs if not _skipped(spec)] or [first]).layout(shape), 0, []
    for spec in specs:
        if _skipped(spec):
            windows.append((whole, 0))
        else:
            windows.append(whole.narrow(dim, at, spec.shape[dim]))
            at += spec.shape[dim]
    return whole, windows


def _format(specs):
    """The memory format that all tensors suggest, or row-major."""
    formats = {suggested(spec.layout) for spec in specs}
    return formats.pop() if len(formats) == 1 else contiguous_format


def _cut_plan(spec, specs, dim):
    """(spec, bytes from the start) of each piece of a gradient; (None,) where there are pieces that are no windows of it."""
    plan, at = [], 0
    for own in specs:
        if _skipped(own) or own.dtype is not spec.dtype:
            plan = [None]
            break
        layout, moved = spec.layout.narrow(dim, at, own.shape[dim])
        plan.append((spec.with_layout(layout), moved * spec.itemsize))
        at += own.shape[dim]
    return remember(spec, ("cut", specs, dim), plan)


@backward("Cat")
def CatBackward0(node, g):
    if not (STATE.grad_enabled or HOOKS.active):
        plan = g.spec.cache.get(("cut", node.specs_of_inputs, node.dim)) or _cut_plan(g.spec, node.specs_of_inputs, node.dim)
        if plan[0] is not None:
            mem, start = g.mem, g.ptr
            return tuple([make_tensor(spec, mem, start + moved) if need else None for (spec, moved), need in zip(plan, node.needs)])
    at, grads = 0, []
    for spec, need in zip(node.specs_of_inputs, node.needs):
        length = 0 if _skipped(spec) else spec.shape[node.dim]
        if not need:
            grads.append(None)
        elif _skipped(spec):
            grads.append(TABLE["zeros"].call(spec.shape, dtype=spec.dtype, device=spec.device))
        else:
            part = TABLE["narrow"].call(g, node.dim, at, length)
            grads.append(part if part.dtype is spec.dtype else TABLE["to"].call(part, spec.dtype))
        at += length
    return tuple(grads)


@operator("stack", method=False, out=True, autocast="promote", moves=True, reason=lambda *_: "stack joins tensors into new memory")
def stack(tensors, dim=0):
    """The tensors side by side along a new dimension `dim`; all of one shape. n x [a, b] -> [n, a, b]

    Raises RuntimeError where shapes differ.
    """
    tensors = _listed("stack", tensors)
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    out = _joined(tensors, ("stack", dim), lambda specs: _stack_pieces(specs, dim))
    if tracking(*tensors):
        record(StackBackward0, tuple(tensors), out, dtypes_of_inputs=tuple([t.dtype for t in tensors]), dim=wrap_dim(dim, out.ndim))
    return out


def _stack_pieces(specs, dim):
    first = specs[0]
    for i, spec in enumerate(specs):
        if spec.shape != first.shape:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(first.shape)} at entry 0 and {list(spec.shape)} at entry {i}")
    dim = wrap_dim(dim, first.ndim + 1)
    shape = (*first.shape[:dim], len(specs), *first.shape[dim:])
    whole = Layout.contiguous(shape)
    if dim == 0 and specs[0].ndim >= 4:
        whole = _format(specs).layout((shape[0] * shape[1], *shape[2:])).split_dim(0, shape[:2])
    return whole, [whole.select(dim, i) for i in range(len(specs))]


@backward("Stack")
def StackBackward0(node, g):
    grads = []
    for i, (dtype, need) in enumerate(zip(node.dtypes_of_inputs, node.needs)):
        part = TABLE["select"].call(g, node.dim, i) if need else None
        grads.append(part if part is None or part.dtype is dtype else TABLE["to"].call(part, dtype))
    return tuple(grads)


def _at_least(t, ndim):
    """t with leading dimensions of size 1 (for ndim 3: [n] -> [1, n, 1], [n, m] -> [n, m, 1])."""
    if ndim == 3:
        shape = {0: (1, 1, 1), 1: (1, *t.shape, 1), 2: (*t.shape, 1)}.get(t.ndim)
    else:
        shape = (1,) * (ndim - t.ndim) + tuple(t.shape) if t.ndim < ndim else None
    return t if shape is None else TABLE["reshape"].call(t, shape)


@operator("hstack", method=False, out=True)
def hstack(tensors):
    """cat along dimension 1, along dimension 0 for 1-d tensors."""
    tensors = [_at_least(t, 1) for t in _listed("hstack", tensors)]
    if not tensors:
        raise RuntimeError("hstack expects a non-empty TensorList")
    return cat(tensors, 0 if tensors[0].ndim == 1 else 1)


@operator("vstack", method=False, aliases=("row_stack",), out=True)
def vstack(tensors):
    """cat along dimension 0; 1-d tensors become rows."""
    if not _listed("vstack", tensors):
        raise RuntimeError("vstack expects a non-empty TensorList")
    return cat([_at_least(t, 2) for t in tensors], 0)


@operator("dstack", method=False, out=True)
def dstack(tensors):
    """cat along dimension 2; tensors of fewer dimensions get more."""
    if not _listed("dstack", tensors):
        raise RuntimeError("dstack expects a non-empty TensorList")
    return cat([_at_least(t, 3) for t in tensors], 2)


@operator("column_stack", method=False, out=True)
def column_stack(tensors):
    """cat along dimension 1; 0-d and 1-d tensors become columns."""
    if not _listed("column_stack", tensors):
        raise RuntimeError("column_stack expects a non-empty TensorList")
    return cat([TABLE["reshape"].call(t, (t.numel(), 1)) if t.ndim <= 1 else t for t in tensors], 1)


# ---- cutting ---------------------------------------------------------------------------------------------------------------------


def _windows(input, key, layouts, node, dim):
    """Several windows of one tensor, recorded together. `layouts()`: (layout, offset in elements) of each; their specs are cached under `key`."""
    spec, mem, start = input.spec, input.mem, input.ptr
    plan = spec.cache.get(key)
    if plan is None:
        plan = remember(spec, key, [(spec.with_layout(layout), offset * spec.itemsize) for layout, offset in layouts()])
    views = tuple([wrap(new, mem, start + moved) for new, moved in plan])
    record_view(node, input, views, dim=dim)
    return views


def _filled(grads, specs):
    """The gradients of several windows, zeros where none arrived."""
    return [TABLE["zeros"].call(*(s.shape or ((),)), dtype=s.dtype, device=s.device) if g is None else g for g, s in zip(grads, specs)]


def _cut(input, dim, sizes, node):
    def layouts():
        at = 0
        for size in sizes:
            yield input.spec.layout.narrow(dim, at, size)
            at += size

    return _windows(input, ("split", dim, tuple(sizes)), layouts, node, dim)


def _joined_back(node, *grads):
    whole = _side_by_side(grads, node.dim)
    return (cat(_filled(grads, node.specs), node.dim) if whole is None else whole,)


def _side_by_side(grads, dim):
    """What gradients make together that lie side by side in one memory as they would in the result; else None. Nothing of it is recorded."""
    first = grads[0]
    if first is None or first.spec.is_contiguous or STATE.grad_enabled or HOOKS.active:
        return None
    spec, memory, place = first.spec, first.mem, first.ptr
    for g in grads:
        if g is None or g.mem is not memory or g.ptr != place or g.spec.strides != spec.strides or g.spec.dtype is not spec.dtype:
            return None
        place += g.spec.shape[dim] * spec.strides[dim] * spec.itemsize
    shape = list(spec.shape)
    shape[dim] = sum([g.spec.shape[dim] for g in grads])
    layout = Layout.contiguous(tuple(shape))
    return wrap(spec.with_layout(layout), memory, first.ptr) if layout.strides == spec.strides else None


SplitBackward0 = backward("Split")(_joined_back)
SplitWithSizesBackward0 = backward("SplitWithSizes")(_joined_back)


@operator("split", view=True)
def split(tensor, split_size_or_sections=None, dim=0, *, split_size=None):
    """Windows along `dim`: of `split_size` entries each (the last may be shorter), or of the given sizes, which must add up to the dimension.

    Raises RuntimeError where they do not.
    """
    size = split_size if split_size_or_sections is None else split_size_or_sections  # the method's word, and the function's
    if size is None:
        raise TypeError("split() missing 1 required positional arguments: \"split_size\"")
    if tensor.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if isinstance(size, int) and size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    dim = wrap_dim(dim, tensor.ndim)
    extent = tensor.shape[dim]
    if isinstance(size, (tuple, list)):
        return split_with_sizes(tensor, size, dim)
    if size == 0 and extent:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {extent}")
    count = max(1, -(-extent // size)) if size else 1
    sizes = [size] * (count - 1) + [extent - size * (count - 1)]
    return _cut(tensor, dim, sizes, SplitBackward0)


@operator("split_with_sizes", view=True)
def split_with_sizes(input, split_sizes, dim=0):
    """Windows of the given sizes along `dim`."""
    dim = wrap_dim(dim, input.ndim)
    extent, sizes = input.shape[dim], integers("split_with_sizes", "split_sizes", (split_sizes,))
    if any(s < 0 for s in sizes):
        raise RuntimeError(f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={sizes}")
    if sum(sizes) != extent:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {extent} (input tensor's size at dimension {dim}), but got split_sizes={sizes}"
        )
    return _cut(input, dim, sizes, SplitWithSizesBackward0)


@operator("chunk", view=True)
def chunk(input, chunks, dim=0):
    """At most `chunks` windows of equal size along `dim` (the last may be shorter)."""
    if input.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = wrap_dim(dim, input.ndim)
    extent = input.shape[dim]
    size = -(-extent // chunks)
    if size == 0:
        return split_with_sizes(input, [0] * chunks, dim)
    return split(input, size, dim)


@operator("tensor_split", view=True, names={"tensor_indices_or_sections": "indices_or_sections"})
def tensor_split(input, indices_or_sections=None, dim=0, *, sections=None, indices=None):
    """Windows along `dim`: so many of nearly equal size, or cut at the given indices."""
    where = next((value for value in (indices_or_sections, sections, indices) if value is not None), None)
    if where is None:
        raise TypeError("tensor_split() received an invalid combination of arguments - got (Tensor, NoneType): give a number of sections or the indices to cut at")
    if isinstance(where, Tensor):
        where = where.tolist()
    if input.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    dim = wrap_dim(dim, input.ndim)
    extent = input.shape[dim]
    if isinstance(where, int):
        if where <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {where}")
        low, more = divmod(extent, where)
        sizes = [low + 1] * more + [low] * (where - more)  # raises at once where there are more pieces than a list holds
        where = list(accumulate(sizes))[:-1]
    return tuple(TABLE["slice"].call(input, dim, s, e) for s, e in zip([0, *where], [*where, extent]))


def _hv_split(name, least):
    def cut(input, indices_or_sections):
        if input.ndim < least:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {input.ndim} dimensions!")
        dim = {"hsplit": 0 if input.ndim == 1 else 1, "vsplit": 0, "dsplit": 2}[name]
        if isinstance(indices_or_sections, str):
            raise signatures.no_overload(name, (input, indices_or_sections), ("Tensor input, int sections", "Tensor input, tuple of ints indices"))
        if isinstance(indices_or_sections, int) and (not indices_or_sections or input.shape[dim] % indices_or_sections):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {input.shape[dim]} is not divisible by the "
                f"split_size {indices_or_sections}!"
            )
        return tensor_split(input, indices_or_sections, dim)

    cut.__doc__ = f"tensor_split along dimension {'1 (0 for 1-d)' if name == 'hsplit' else '0' if name == 'vsplit' else '2'}; a number of sections must divide it."
    return operator(name, view=True, names={"sections": "indices_or_sections", "indices": "indices_or_sections"})(cut)


hsplit, vsplit, dsplit = _hv_split("hsplit", 1), _hv_split("vsplit", 2), _hv_split("dsplit", 3)


@operator("unbind", view=True)
def unbind(input, dim=0):
    """The entries of dimension `dim`, each without it. [n, a] -> n x [a]"""
    if input.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    dim = wrap_dim(dim, input.ndim)
    spec = input.spec
    n = spec.shape[dim]
    if n == 0:
        return ()
    return _windows(input, ("unbind", dim), lambda: [spec.layout.select(dim, i) for i in range(n)], UnbindBackward0, dim)


@backward("Unbind")
def UnbindBackward0(node, *grads):
    return (stack(_filled(grads, node.specs), node.dim),)
