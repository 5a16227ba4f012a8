"""Operators that move elements to fresh memory: clone, contiguous, reshape's fallback, conversions, repeats, flips, diagonals.

Holds their gradients, and why each copy was needed (for the lens). Views are in views.py; writing into an existing tensor is in writes.py.
"""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..autograd import backward, record, tracking
from ..autograd.graph import window
from ..block_formats import BlockFormat
from ..dispatch import CONTEXT, HOOKS
from ..dtypes import Device, DType, resolve_device
from ..formats import MemoryFormat, contiguous_format, preserve_format
from ..layout import Layout, wrap_dim
from ..tensor import Tensor, empty, wrap
from .elementwise import self_copy
from .onlooking import seen_as
from .table import TABLE, assign, operator
from .views import (
    ViewBackward0,
    check_tensor,
    expand,
    hooked,
    hot_operator,
    infer_shape,
    integer,
    integers,
    no_tensor,
    remember,
    unsqueeze,
)  # fmt: skip

# ---- the same values in fresh memory ------------------------------------------------------------------------------------------


@backward("Clone")
def CloneBackward0(node, g):
    return (g,)


def layout_for(name: str, input: Tensor, memory_format: Any) -> Layout | None:
    """The layout that a copy in `memory_format` has; None: the input's own order of dimensions."""
    if memory_format is None or memory_format is preserve_format:
        return None
    if not isinstance(memory_format, MemoryFormat):
        raise TypeError(f"{name}(): argument 'memory_format' must be torch.memory_format, not {type(memory_format).__name__}")
    return memory_format.layout(input.shape)


@operator("clone", moves=True, reason=lambda inputs, outputs, args, kwargs: "clone always copies")
def clone(input, *, memory_format=None):
    """A copy with its own memory, part of the graph. Strides are kept where the input is dense."""
    out = self_copy(input, None, layout_for("clone", input, memory_format))
    if tracking(input):
        record(CloneBackward0, (input,), out)
    return out


def _contiguous_reason(inputs, outputs, args, kwargs):
    return f"strides {inputs[0].stride()} are not those of contiguous memory, {outputs[0].stride()}"


@hot_operator("contiguous", function=False, moves=True, reason=_contiguous_reason)
def contiguous(input, memory_format=contiguous_format):
    """Itself if its elements lie in row-major order (or in `memory_format`), else a copy that does."""
    if HOOKS.active and not CONTEXT.depth:
        return hooked(contiguous, input, memory_format)
    if memory_format is contiguous_format:
        if input.spec.is_contiguous:
            return input
        layout = Layout.contiguous(input.shape)
    elif memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    else:
        layout = layout_for("contiguous", input, memory_format)
        if memory_format.matches(input.spec.layout):
            return input
    out = self_copy(input, None, layout)
    if tracking(input):
        record(CloneBackward0, (input,), out)
    return out


@backward("UnsafeView")
def UnsafeViewBackward0(node, g):
    return (reshape(g, *node.self_sym_sizes),)


def _reshape_reason(inputs, outputs, args, kwargs):
    t = inputs[0]
    return f"strides {t.stride()} of shape {tuple(t.shape)} cannot be merged into {tuple(outputs[0].shape)}"


def _reshape(input, shape: tuple) -> Tensor:
    spec = input.spec
    found = spec.cache.get(("reshape", shape))
    if found is None:
        target = infer_shape(spec, shape)
        layout = spec.layout.view(target)
        found = remember(spec, ("reshape", shape), (None if layout is None else spec.with_layout(layout), target))
    new, target = found
    if new is not None:
        return window(input, new, input.ptr, ViewBackward0, self_sym_sizes=spec.shape)
    copy = clone(input, memory_format=contiguous_format)
    new = spec.with_layout(Layout.contiguous(target))
    out = wrap(new, copy.mem, copy.ptr)
    if tracking(copy):
        record(UnsafeViewBackward0, (copy,), out, self_sym_sizes=spec.shape)
    return out


@hot_operator("reshape", moves=True, view=True, reason=_reshape_reason)
def reshape(input, *sizes, shape=None):
    """Another shape of the same elements (one size may be -1): a view where strides can express it, else a copy."""
    if HOOKS.active and not CONTEXT.depth:
        return hooked(reshape, input, *(sizes if shape is None else (shape,)))
    try:
        new, _ = input.spec.cache["reshape", sizes]
    except (KeyError, TypeError, AttributeError):
        new = False  # planned outside: an error there has no KeyError behind it
    if new is False:
        if not isinstance(input, Tensor):
            return no_tensor(reshape, input, *(sizes if shape is None else (shape,)))
        return _reshape(input, integers("reshape", "shape", sizes if shape is None else (shape,)))
    if new is None:
        return _reshape(input, sizes)
    return window(input, new, input.ptr, ViewBackward0, self_sym_sizes=input.spec.shape)


@operator("reshape_as", function=False, moves=True, view=True, reason=_reshape_reason)
def reshape_as(input, other):
    """`input.reshape(other.shape)`."""
    return _reshape(input, tuple(check_tensor("reshape_as", other, "other").shape))


@hot_operator("flatten", moves=True, view=True, reason=_reshape_reason)
def flatten(input, start_dim=0, end_dim=-1):
    """Dimensions `start_dim` to `end_dim` merged into one: a view where they lie in one run, else a copy. [.., a, b, ..] -> [.., a*b, ..]"""
    if HOOKS.active and not CONTEXT.depth:
        return hooked(flatten, input, start_dim, end_dim)
    try:
        spec = input.spec
    except AttributeError:
        return no_tensor(flatten, input, start_dim, end_dim)
    shape = spec.cache.get(("flatten", start_dim, end_dim))
    if shape is None:
        shape = remember(spec, ("flatten", start_dim, end_dim), _flat_shape(spec, start_dim, end_dim))
    return input if shape is spec.shape else _reshape(input, shape)


def _flat_shape(spec, start_dim, end_dim):
    start_dim, end_dim = integer("flatten", "start_dim", start_dim), integer("flatten", "end_dim", end_dim)
    start, end = wrap_dim(start_dim, spec.ndim), wrap_dim(end_dim, spec.ndim)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if spec.ndim == 0:
        return (1,)
    if start == end:
        return spec.shape
    merged = spec.shape[start : end + 1].numel()
    return (*spec.shape[:start], merged, *spec.shape[end + 1 :])


@operator("ravel", moves=True, view=True, reason=_reshape_reason)
def ravel(input):
    """All elements in one dimension: a view of contiguous memory, else of a contiguous copy."""
    return TABLE["view"].call(contiguous(input), -1)


# ---- conversions -----------------------------------------------------------------------------------------------------------------


@backward("ToCopy")
@seen_as("to_copy_backward", moves=True)
def ToCopyBackward0(node, g):
    if g.dtype.is_complex and not node.source_dtype.is_complex:
        g = g.real
    return (to_copy(g, node.source_dtype, node.source_device),)


def to_copy(input: Tensor, dtype: DType, device: Device, layout: Layout | None = None) -> Tensor:
    """A copy in another dtype, on another device, or of another layout."""
    spec = input.spec
    if device is not spec.device:
        if spec.is_meta:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!\nMake memory for it first: torch.empty_like(x, device='cpu'), or module.to_empty(device='cpu').")
        from ..layout import result_strides

        out = empty(spec.shape, dtype, device, (layout or result_strides(spec.shape, spec.layout)).strides)
    else:
        if spec.dtype.code < 0 or dtype.code < 0:
            rare = spec.dtype if spec.dtype.code < 0 else dtype
            raise NotImplementedError(f"\"to\" not implemented for '{rare.scalar_name}': view its bytes as torch.uint8, or as the elements they hold, x.view(torch.float4_e2m1fn)")
        warn_of_discarding(spec.dtype, dtype)
        out = self_copy(input, dtype, layout)
    if (input._tracked or input._base is not None) and (dtype.is_floating_point or dtype.is_complex) and tracking(input):
        record(ToCopyBackward0, (input,), out, source_dtype=spec.dtype, source_device=spec.device)
    return out


def warn_of_discarding(source: DType, target: DType) -> None:
    """PyTorch's warning, the first time complex numbers lose their imaginary part."""
    global _warned_of_discarding
    if source.is_complex and not target.is_complex and target is not dtypes.bool_ and not _warned_of_discarding:
        _warned_of_discarding = True
        import warnings

        warnings.warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=4)


_warned_of_discarding = False
PYTHON_TYPES = {complex: dtypes.complex128, float: dtypes.float64, int: dtypes.int64, bool: dtypes.bool_}


def as_dtype(name: str, value: Any) -> DType:
    """A DType from a DType, one of Python's number types or a class such as torch.FloatTensor; TypeError otherwise."""
    if isinstance(value, DType):
        return value
    if isinstance(value, type) and isinstance(getattr(value, "dtype", None), DType):
        return value.dtype
    if isinstance(value, type) and value in PYTHON_TYPES:
        return PYTHON_TYPES[value]
    raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {type(value).__name__}")


def _to_reason(inputs, outputs, args, kwargs):
    if not inputs:
        return None
    if inputs[0].dtype is not outputs[0].dtype:
        return f"converts {inputs[0].dtype} to {outputs[0].dtype}"
    return "copy=True" if inputs[0].stride() == outputs[0].stride() else "another memory format"


@operator("to", function=False, moves=True, reason=_to_reason)
def to(input, *args, device=None, dtype=None, other=None, non_blocking=False, copy=False, memory_format=None, rounding=None, generator=None):
    """Converted: `x.to(dtype)`, `x.to(device)`, `x.to(device, dtype)`, `x.to(other)`. Itself where nothing changes and `copy` is False.

    rounding, generator: `round_to`'s, as in `x.to(torch.bfloat16, rounding="stochastic")`."""
    if len(args) == 1 and type(args[0]) is DType and dtype is device is other is memory_format is rounding is None and not copy:
        return input if args[0] is input.spec.dtype else to_copy(input, args[0], input.spec.device)
    if args:
        first, *flags = args
        if isinstance(first, (DType, type, BlockFormat)):
            dtype = first
        elif isinstance(first, Tensor):
            other = first
        elif first is None or isinstance(first, (str, Device, int)):
            device = first
            if flags:
                dtype = flags.pop(0)
        else:
            raise TypeError(f"to() received an invalid combination of arguments - got ({type(first).__name__}), but expected a dtype, a device or a tensor")
        if len(flags) > 2:
            raise TypeError(f"to() takes at most {len(args) - len(flags) + 2} positional arguments, {len(args)} were given")
        non_blocking, copy = (*flags, non_blocking, copy)[:2] if len(flags) == 2 else (flags[0] if flags else non_blocking, copy)
    spec = input.spec
    if other is not None:
        dtype, device = other.dtype, other.device
    if isinstance(dtype, BlockFormat):
        return TABLE["quantize"].call(input, dtype)
    dtype = spec.dtype if dtype is None else as_dtype("to", dtype)
    if rounding is not None:
        input = TABLE["round_to"].call(input, dtype, rounding, generator=generator)
        spec = input.spec
    elif generator is not None:
        raise ValueError("to(): a generator is drawn from with rounding='stochastic' only")
    place = spec.device if device is None else resolve_device(device)
    layout = None if memory_format is None else layout_for("to", input, memory_format)
    if dtype is spec.dtype and place is spec.device and not copy and (layout is None or memory_format.matches(spec.layout)):
        return input
    return to_copy(input, dtype, place, layout)


def _converter(name: str, dtype: DType):
    def convert(input, memory_format=None):
        if HOOKS.active and not CONTEXT.depth:
            return hooked(convert, input, memory_format)
        if memory_format is not None:
            return to(input, dtype, memory_format=memory_format)
        return input if dtype is input.spec.dtype else to_copy(input, dtype, input.spec.device)

    convert.__doc__ = f"`x.to({dtype})`."
    return hot_operator(name, function=False, moves=True, reason=_to_reason)(convert)


for _name in ("float", "double", "half", "short", "int", "long", "bool", "cfloat", "cdouble", "chalf"):
    _converter(_name, dtypes.ALIASES[_name])
_converter("bfloat16", dtypes.bfloat16)
_converter("char", dtypes.int8)
_converter("byte", dtypes.uint8)


@operator("cpu", function=False, moves=True, reason=_to_reason)
def cpu(input, memory_format=None):
    """On the CPU: itself."""
    return to(input, dtypes.CPU, memory_format=memory_format)


@operator("cuda", function=False)
def cuda(input, device=None, non_blocking=False, memory_format=None):
    """Refused: this build computes on the CPU."""
    return to(input, "cuda")


_TYPE_NAMES = {
    "float64": "Double", "float32": "Float", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char",
    "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip


@operator("type", function=False, moves=True, reason=_to_reason)
def type_(input, dtype=None, non_blocking=False):
    """Without an argument the name of the tensor's type ("torch.FloatTensor"), else the tensor converted to a dtype or such a name."""
    if dtype is None:
        return f"torch.{_TYPE_NAMES.get(input.dtype.name, input.dtype.scalar_name)}Tensor"
    if isinstance(dtype, str):
        names = {f"torch.{short}Tensor": long for long, short in _TYPE_NAMES.items()}
        if dtype not in names:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = dtypes.names()[names[dtype]]
    return to(input, as_dtype("type", dtype))


@operator("type_as", function=False, moves=True, reason=_to_reason)
def type_as(input, other):
    """Converted to the dtype (and device) of another tensor."""
    return to(input, check_tensor("type_as", other, "other"))


# ---- repeats -----------------------------------------------------------------------------------------------------------------------


@backward("Repeat")
def RepeatBackward0(node, g):
    extra = len(node.repeats) - len(node.self_sym_sizes)
    sizes = (1,) * extra + tuple(node.self_sym_sizes)
    pairs = [n for pair in zip(node.repeats, sizes) for n in pair]
    folded = TABLE["sum"].call(reshape(g, tuple(pairs)), list(range(0, len(pairs), 2))) if pairs else g  # [r0, s0, r1, s1, ..] -> [s0, s1, ..]
    return (reshape(folded, node.self_sym_sizes),)


@operator("repeat", function=False, moves=True, reason=lambda inputs, outputs, args, kwargs: "repeat always copies; expand repeats without a copy")
def repeat(input, *sizes, repeats=None):
    """The tensor laid next to itself `repeats[d]` times along each dimension; more numbers than dimensions add leading ones. [a, b] -> [r0*a, r1*b]"""
    repeats = integers("repeat", "repeats", sizes if repeats is None else (repeats,))
    spec = input.spec
    extra = len(repeats) - spec.ndim
    if extra < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape, strides = (1,) * extra + tuple(spec.shape), (0,) * extra + spec.strides
    target = [r * n for r, n in zip(repeats, shape)]
    if min(target, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(target)}: {target}")
    out = empty(target, spec.dtype, spec.device)
    if out.spec.numel and not spec.is_meta:
        # Both as [r0, s0, r1, s1, …]: the source stands still along the repeats.
        split = out.spec.layout.view([n for pair in zip(repeats, shape) for n in pair])
        source = Layout.of(split.shape, [s for step in strides for s in (0, step)])
        assign(wrap(spec.with_layout(split), out.mem, out.ptr), wrap(spec.with_layout(source), input.mem, input.ptr))
    if tracking(input):
        record(RepeatBackward0, (input,), out, repeats=repeats, self_sym_sizes=spec.shape)
    return out


@operator("tile", moves=True, reason=lambda inputs, outputs, args, kwargs: "tile always copies")
def tile(input, *sizes, dims=None):
    """`repeat`, with missing leading numbers taken as 1."""
    dims = integers("tile", "dims", sizes if dims is None else (dims,))
    return repeat(input, (1,) * (input.ndim - len(dims)) + dims)


@operator("repeat_interleave", moves=True, reason=lambda inputs, outputs, args, kwargs: "repeat_interleave always copies")
def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Each entry along `dim` (None: of the flattened tensor) repeated `repeats` times: a number, or one number an entry."""
    if repeats is None:
        repeats, input = input, TABLE["arange"].call(input.numel(), device=input.device)
    if dim is None:
        input, dim = flatten(input), 0
    dim = wrap_dim(integer("repeat_interleave", "dim", dim), input.ndim)
    if isinstance(repeats, (list, tuple)):
        repeats = TABLE["tensor"].call(repeats)
    if isinstance(repeats, Tensor) and repeats.numel() == 1:
        repeats = repeats.item()
    if not isinstance(repeats, Tensor):
        count = integer("repeat_interleave", "repeats", repeats)
        if count < 0:
            raise RuntimeError("Repeats must be non-negative")
        if count >= 2**63:
            raise ValueError(f"Overflow when unpacking long long\n  repeat_interleave(): repeats = {count}")
        _check_output_size(output_size, count * input.shape[dim])
        spread = unsqueeze(input, dim + 1)  # [.., n, 1, ..]
        copied = clone(expand(spread, (*input.shape[: dim + 1], count, *input.shape[dim + 1 :])), memory_format=contiguous_format)
        return flatten(copied, dim, dim + 1)
    from ..arrays import array_of, tensor_of

    if repeats.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if repeats.shape[0] != input.shape[dim]:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.shape[0]} and input.size({dim}) = {input.shape[dim]}"
        )
    import numpy

    counts = array_of(repeats)
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeats can not be negative")
    index = tensor_of(numpy.repeat(numpy.arange(len(counts)), counts))
    _check_output_size(output_size, index.numel())
    return TABLE["index_select"].call(input, dim, index)


def _check_output_size(output_size, found):
    if output_size is not None and output_size != found:
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {found} but got {output_size}")
