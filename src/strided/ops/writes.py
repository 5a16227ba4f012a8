"""Operators that write into a tensor or change how it lies: copy_, fill_, zero_, the in-place view forms, set_, resize_.

In-place forms of computing operators come from the operator table; this file holds those that are nothing else.
"""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..autograd import backward, check_inplace, record, tracking
from ..autograd.graph import record_inplace
from ..dispatch import PlanCache, launch
from ..dtypes import DType
from ..errors import storage_overflow
from ..kernels import expr as E
from ..kernels.map import build_map
from ..kernels.native import move_bytes, new_storage, wrap_storage
from ..layout import INT64_MAX, Layout, broadcast_shapes
from ..tensor import META_ADDRESS, Spec, Tensor, bytes_for, place_of
from . import views
from .copies import warn_of_discarding
from .elementwise import check_overlap, fit
from .table import TABLE, assign, operator
from .views import check_tensor, integer, integers

# ---- values -----------------------------------------------------------------------------------------------------------------


@backward("CopyBackwards")
def CopyBackwards(node, g):
    old = TABLE["zeros_like"].call(g) if node.needs[0] else None
    return old, fit(g, node.source) if node.needs[1] else None


@operator("copy_", function=False, moves=True)
def copy_(input, src, non_blocking=False):
    """Writes the values of `src`, broadcast and converted, into this tensor, and returns it."""
    if isinstance(src, (bool, int, float, complex)):
        src = TABLE["tensor"].call(src, dtype={bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float64}.get(type(src), dtypes.complex128))
    check_tensor("copy_", src, "other")
    if src is input:
        return input
    check_inplace(input, src)
    if src.spec.dtype.is_complex:
        warn_of_discarding(src.spec.dtype, input.spec.dtype)
    if (input.spec, src.spec) not in _copies_checked:
        _check_copy(input, src)
    assign(input, src)
    input.mem.version += 1
    if tracking(input, src) and (input.dtype.is_floating_point or input.dtype.is_complex):
        record_inplace(CopyBackwards, (input, src), input, source=src.spec)
    return input


_copies_checked = PlanCache()


def _check_copy(input: Tensor, src: Tensor) -> None:
    shape = broadcast_shapes(input.shape, src.shape)
    if shape != input.shape:
        raise RuntimeError(f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(shape)}")
    check_overlap(input)
    if input.dtype is not src.dtype:
        _refuse_rare(input.dtype)
        _refuse_rare(src.dtype)
    _copies_checked.put((input.spec, src.spec), True)


def _refuse_rare(dtype: DType) -> None:
    if dtype.code < 0:
        raise NotImplementedError(f"\"copy_\" not implemented for '{dtype.scalar_name}' and another dtype: view its bytes as torch.uint8 first")


_C_NAMES = {
    "int64": "int64_t", "int32": "int", "int16": "int16_t", "int8": "int8_t", "uint8": "uint8_t", "float32": "float", "float16": "c10::Half",
    "bfloat16": "c10::BFloat16", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
}  # fmt: skip


def number_for(dtype: DType, value: Any, names: dict[str, str] = _C_NAMES) -> int | float | complex:
    """A Python number as an element of `dtype`: truncated for integers, RuntimeError where it does not fit. Unsigned formats wrap negatives; of a complex
    dtype real numbers stay real."""
    if dtype is dtypes.bool_:
        return bool(value)
    name = names.get(dtype.name, dtype.stored.name)
    if isinstance(value, complex):
        if dtype.is_complex:
            return value
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {name} without overflow")
        value = value.real
    if dtype.is_complex:
        return number_for(dtype.to_real(), value, names)
    if dtype.is_floating_point:
        value = float(value)
        if math.isfinite(value) and dtype.limits and abs(value) > dtype.limits[0]:
            raise RuntimeError(f"value cannot be converted to type {name} without overflow")
        return value
    if isinstance(value, float) and (not math.isfinite(value) or value < 0 and not dtype.is_signed):
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")
    value = int(value)
    top = 2 ** (dtype.bits - dtype.is_signed)
    if value >= top or value < -top:
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")
    if dtype.is_signed:
        return value
    value %= 2**dtype.bits
    return value - 2**64 if value >= 2**63 else value  # the slot is an i64


_fill_plans = PlanCache()


def fill(x: Tensor, value: Any) -> None:
    """Writes a number into every element; neither recorded nor counted as a version."""
    spec = x.spec
    if isinstance(value, complex) and spec.dtype.is_complex:
        if not spec.is_meta:
            launch(complex_fill_descriptor(spec), x.ptr, value.real, value.imag)
        return
    desc = _fill_plans.get(spec)
    if desc is None:
        if spec.dtype.code < 0:
            raise NotImplementedError(f"\"fill_\" not implemented for '{spec.dtype.scalar_name}': fill a float32 tensor instead")
        if spec.is_meta:
            number_for(spec.dtype, value)
            return
        desc = _fill_plans.put(spec, fill_descriptor(spec))
    launch(desc, x.ptr, number_for(spec.dtype, value))


def fill_plan(x: Tensor) -> Any:
    """The plan that `fill` had for tensors of this spec, None where it keeps none."""
    return _fill_plans.get(x.spec)


def fill_descriptor(spec: Spec, result_bytes: int = 0) -> bytes:
    """The plan that writes one number everywhere; `number_for` makes the number's slot."""
    kind = ("param", "i64" if spec.dtype.kind in ("bool", "uint", "int") else "f64")
    return build_map(E.param(0), [(spec.dtype, _written_once(spec.layout))], [kind], result_bytes=result_bytes)


def _written_once(layout: Layout) -> Layout:
    """The layout without the places that an expanded dimension repeats."""
    if 0 not in layout.strides or layout.is_dense or not layout.numel:
        return layout
    return Layout.of([1 if stride == 0 else size for size, stride in zip(layout.shape, layout.strides)], layout.strides)


_complex_fill_plans = PlanCache()


def complex_fill_descriptor(spec: Spec, result_bytes: int = 0) -> bytes:
    """The plan that writes one complex number everywhere; its real and its imaginary part are the slots."""
    key = spec, result_bytes
    desc = _complex_fill_plans.get(key)
    if desc is None:
        kind = ("param", "f64")
        desc = build_map(E.pair(E.param(0), E.param(1)), [(spec.dtype, _written_once(spec.layout))], [kind, kind], result_bytes=result_bytes)
        _complex_fill_plans.put(key, desc)
    return desc


def _constant(node, g):
    return (TABLE["zeros_like"].call(g) if node.needs[0] else None,)


FillBackward2 = backward("FillBackward2")(_constant)
ZeroBackward0 = backward("ZeroBackward0")(_constant)


@backward("FillBackward3")
def FillBackward3(node, g):
    return TABLE["zeros_like"].call(g) if node.needs[0] else None, TABLE["sum"].call(g) if node.needs[1] else None


@operator("fill_")
def fill_(input, value):
    """Every element set to `value`: a number or a 0-d tensor."""
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")
        check_inplace(input, value)
        check_overlap(input)
        assign(input, value)
        input.mem.version += 1
        if tracking(input, value):
            record_inplace(FillBackward3, (input, value), input)
        return input
    if not isinstance(value, (int, float, complex)) and not hasattr(value, "__float__"):
        raise TypeError(f"fill_(): argument 'value' (position 1) must be a number or a 0-d tensor, not {type(value).__name__}")
    check_inplace(input)
    fill(input, value)
    input.mem.version += 1
    if tracking(input):
        record_inplace(FillBackward2, (input,), input)
    return input


@operator("fill", method=False)
def fill_function(input, value):
    """A copy of the input's shape with every element set to `value`."""
    return fill_(TABLE["clone"].call(input), value)


@operator("zero_")
def zero_(input):
    """Every element set to 0."""
    check_inplace(input)
    fill(input, 0)
    input.mem.version += 1
    if tracking(input):
        record_inplace(ZeroBackward0, (input,), input)
    return input


# ---- the tensor itself becomes the view ------------------------------------------------------------------------------------------


def _become(x: Tensor, layout: Layout, node: Any, **attrs) -> Tensor:
    check_inplace(x)
    track = tracking(x)
    x.spec = x.spec.with_layout(layout)
    x.mem.version += 1
    if track:
        x._seen = x.mem.version  # its history, which check_inplace has seen to, is that of the old layout: not to be looked for anew with this one
        record(node, (x,), x, **attrs)
        x._nr = 0
    return x


TransposeBackward1 = backward("TransposeBackward1")(views.TransposeBackward0.apply)
TBackward1 = backward("TBackward1")(views.TBackward0.apply)
UnsqueezeBackward1 = backward("UnsqueezeBackward1")(views.UnsqueezeBackward0.apply)
SqueezeBackward3 = backward("SqueezeBackward3")(views.SqueezeBackward0.apply)
SqueezeBackward4 = backward("SqueezeBackward4")(views.SqueezeBackward0.apply)


@operator("transpose_", function=False, aliases=("swapaxes_", "swapdims_"), names={"axis0": "dim0", "axis1": "dim1"})
def transpose_(input, dim0, dim1):
    """In-place form of `transpose`: this tensor's own shape changes."""
    dim0, dim1 = integer("transpose_", "dim0", dim0), integer("transpose_", "dim1", dim1)
    return _become(input, input.spec.layout.transpose(dim0, dim1), TransposeBackward1, dim0=dim0, dim1=dim1)


@operator("t_", function=False)
def t_(input):
    """In-place form of `t`."""
    if input.ndim > 2:
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return _become(input, input.spec.layout.transpose(0, input.ndim - 1) if input.ndim else input.spec.layout, TBackward1)


@operator("unsqueeze_", function=False)
def unsqueeze_(input, dim):
    """In-place form of `unsqueeze`."""
    dim = integer("unsqueeze_", "dim", dim)
    return _become(input, input.spec.layout.unsqueeze(dim), UnsqueezeBackward1, dim=dim)


@operator("squeeze_", function=False)
def squeeze_(input, dim=None):
    """In-place form of `squeeze`."""
    shape = input.shape
    return _become(input, input.spec.layout.squeeze(dim), SqueezeBackward3 if dim is None else SqueezeBackward4, dim=dim, self_sym_sizes=shape)


# ---- other memory ------------------------------------------------------------------------------------------------------------------


@operator("set_", function=False)
def set_(input, source=None, storage_offset=0, size=None, stride=None):
    """This tensor becomes a window of another's memory (a tensor or a storage); without a source, empty."""
    check_inplace(input)
    mem: Any
    if source is None:
        mem, spec, ptr = new_storage(0), input.spec.with_layout(Layout.contiguous((0,))), 0
    elif isinstance(source, Tensor) and size is None:
        if source.dtype is not input.dtype:
            raise RuntimeError(f"Could not set tensor of type {source.dtype.name} to a tensor of type {input.dtype.name}")
        mem, spec, ptr = source.mem, source.spec, source.ptr
    else:
        mem = source.mem if isinstance(source, Tensor) else source._mem
        if mem.nbytes and not mem.data and not input.is_meta:
            raise RuntimeError(f"Attempted to set the storage of a tensor on device \"{input.device}\" to a storage on different device \"meta\".")
        fits = mem.nbytes * 8 // input.dtype.bits if input.dtype.packed else mem.nbytes // input.itemsize
        shape = (fits,) if size is None else integers("set_", "size", (size,))
        layout = Layout.contiguous(shape) if stride is None else Layout.of(shape, integers("set_", "stride", (stride,)))
        offset = integer("set_", "storage_offset", storage_offset)
        needed = bytes_for(offset + layout.span, input.dtype)
        if offset < 0 or layout.numel and needed > mem.nbytes:
            raise RuntimeError(
                f"setStorage: sizes {list(layout.shape)}, strides {list(layout.strides)}, storage offset {offset}, and itemsize {input.itemsize} requiring a "
                f"storage size of {needed} are out of bounds for storage of size {mem.nbytes}"
            )
        spec = input.spec.with_layout(layout)
        ptr = place_of(mem, spec, offset)
    input.spec, input.mem, input.ptr = spec, mem, ptr or place_of(mem, spec)
    return input


@operator("resize_", function=False)
def resize_(input, *sizes, size=None, memory_format=None):
    """This tensor with another shape, row-major from its start; elements are kept as far as they go, new ones are undefined.

    A tensor that outgrows its memory takes new memory: other windows of the old one stay as they are (PyTorch's move along).
    """
    sizes = integers("resize_", "size", sizes if size is None else (size,))
    if input._tracked:
        raise RuntimeError("cannot resize variables that require grad")
    layout = Layout.contiguous(sizes) if memory_format is None else memory_format.layout(sizes)
    start = input.storage_offset()
    needed = bytes_for(start + layout.span, input.dtype)
    if needed > INT64_MAX:
        raise storage_overflow(sizes)
    if needed > input.mem.nbytes:
        if input.is_meta:
            input.mem, input.ptr = wrap_storage(0, needed, None), META_ADDRESS + start * input.itemsize
        else:
            mem = new_storage(needed)
            move_bytes(mem.data, input.mem.data, input.mem.nbytes)
            input.mem, input.ptr = mem, place_of(mem, input.spec, start)
    input.spec = input.spec.with_layout(layout)
    input.mem.version += 1
    return input


@operator("resize_as_", function=False, names={"the_template": "other"})
def resize_as_(input, other, memory_format=None):
    """`input.resize_(other.shape)`."""
    return resize_(input, tuple(check_tensor("resize_as_", other, "the_template").shape))
