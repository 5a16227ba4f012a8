"""Operators that make tensors from shapes, numbers and ranges: empty, zeros, ones, full, arange, linspace, eye, and their _like and new_ forms.

Tensors made from data (lists, arrays, buffers), and values read out of tensors, are in data.py and values.py.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from .. import dtypes
from ..arrays import tensor_of
from ..autograd import no_grad
from ..dispatch import CONTEXT, HOOKS, PlanCache, hooked_call, launch_new, run
from ..dtypes import DType, resolve_device
from ..errors import storage_overflow
from ..formats import StorageLayout, preserve_format
from ..formats import strided as strided_layout
from ..kernels import expr as E
from ..kernels.map import build_map
from ..layout import INT64_MAX, Layout, result_strides
from ..packing import packed
from ..tensor import Spec, Tensor, empty_of, wrap
from . import signatures
from .copies import as_dtype, layout_for
from .table import TABLE, operator, write_out
from .views import check_tensor, hot_operator, integer, integers
from .writes import complex_fill_descriptor, fill, fill_descriptor, number_for

# ---- what every factory takes -----------------------------------------------------------------------------------------------


def options(name: str, dtype: Any, device: Any, layout: Any = None, pin_memory: Any = False, default: DType | None = None) -> tuple[DType, Any]:
    """(dtype, device) of a factory's arguments, checked. default: the dtype when none is given (None: the default dtype)."""
    if layout is not None and layout is not strided_layout:
        kind = "torch.layout" if isinstance(layout, StorageLayout) else type(layout).__name__
        raise NotImplementedError(f"{name}(): layout {layout} ({kind}) is not supported: tensors here are dense, layout=torch.strided")
    if pin_memory:
        raise RuntimeError("pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on this system.")
    dtype = (default or dtypes.get_default_dtype()) if dtype is None else as_dtype(name, dtype)
    return dtype, resolve_device(device)


def sizes_of(name: str, given: tuple, size: Any = None) -> tuple[int, ...]:
    """A factory's shape: numbers, or one tuple or list. Raises for a missing or negative size."""
    if size is not None:
        given = (size,)
    if not given:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    if len(given) == 1 and not isinstance(given[0], (tuple, list)) and not hasattr(given[0], "__index__"):
        raise TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(given[0]).__name__}")
    shape = integers(name, "size", given)
    if shape and min(shape) < 0:
        if name == "zeros":
            raise RuntimeError(f"{name}: Dimension size must be non-negative.")
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    return shape


def spec_of(shape: tuple, dtype: DType, device: Any, memory_format: Any = None) -> Spec:
    """The spec of a fresh tensor. Raises RuntimeError when its bytes cannot be counted in 64 bits."""
    if math.prod(shape) * dtype.itemsize > INT64_MAX:
        raise storage_overflow(shape)
    layout = Layout.contiguous(shape) if memory_format is None or memory_format is preserve_format else memory_format.layout(shape)
    return Spec.of(layout, dtype, device)


_specs_seen = PlanCache()


def quick_spec(given: tuple, dtype: Any, device: Any) -> Spec | None:
    """The spec of a fresh row-major tensor for arguments met before; None where they must be parsed and checked first, by the slow path."""
    key = given, dtype or dtypes._default, device or dtypes.get_default_device()
    if float in map(type, given):  # 2.0 finds what was kept for 2
        return None
    try:
        return _specs_seen[key]
    except KeyError:
        pass
    except TypeError:  # a list is not hashable
        return None
    if type(key[1]) is DType and all(type(n) is int and 0 <= n <= INT64_MAX for n in given) and given:
        place = resolve_device(device)
        return _specs_seen.put(key, spec_of(given, key[1], place))
    return None


_full_plans = PlanCache()


def full_of(spec: Spec, value: Any) -> Tensor:
    """A fresh tensor of a spec with every element `value`."""
    if spec.is_meta:
        return empty_of(spec)
    if spec.dtype.code < 0:
        if value == 0:
            return _zero_bytes(spec)
        raise NotImplementedError(f"\"fill\" not implemented for '{spec.dtype.scalar_name}': make a float32 tensor")
    if isinstance(value, complex) and spec.dtype.is_complex:
        return run(complex_fill_descriptor(spec, max(spec.layout.span * spec.itemsize, 1)), spec, value.real, value.imag)
    desc = _full_plans.get(spec)
    if desc is None:
        if spec.dtype.packed:
            return packed(full_of(spec.with_dtype(spec.dtype.unpacked), value), spec.layout)
        desc = _full_plans.put(spec, fill_descriptor(spec, max(spec.layout.span * spec.itemsize, 1)))
    return run(desc, spec, number_for(spec.dtype, value))


def _zero_bytes(spec: Spec) -> Tensor:
    from ..kernels.native import fill_bytes

    out = empty_of(spec)
    fill_bytes(out.mem.data, 0, out.mem.nbytes)
    return out


def finish(name: str, out: Tensor, requires_grad: bool, target: Tensor | None = None) -> Tensor:
    """The last step of a factory: `requires_grad=`, and `out=`."""
    if target is not None:
        if target.shape != out.shape:
            TABLE["resize_"].call(target, tuple(out.shape))
        with no_grad():
            return TABLE["copy_"].call(target, out)
    if requires_grad:
        if not (out.dtype.is_floating_point or out.dtype.is_complex):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        out._tracked = True
    return out


# ---- from a shape -----------------------------------------------------------------------------------------------------------


@operator("empty", method=False)
def empty(*size_given, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=None):
    """A tensor of a shape with undefined elements."""
    if size is out is layout is memory_format is None and not pin_memory and not requires_grad:
        spec = quick_spec(size_given, dtype, device)
        if spec is not None:
            return empty_of(spec)
    dtype, device = options("empty", dtype if out is None or dtype else out.dtype, device, layout, pin_memory)
    made = empty_of(spec_of(sizes_of("empty", size_given, size), dtype, device, memory_format))
    return finish("empty", made, requires_grad, out)


def _constant(name: str, value: int):
    plans = PlanCache()  # arguments met before -> (descriptor, spec, the number)

    def make(*size_given, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
        if HOOKS.active and not CONTEXT.depth:
            given = {"size": size, "out": out, "dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad, "pin_memory": pin_memory}
            return hooked_call(make.entry, make, size_given, given)
        plain_call = size is out is layout is None and not pin_memory and not requires_grad
        if plain_call:
            key = size_given, dtype or dtypes._default, device or dtypes._STATE.stack or dtypes._default_device
            try:
                desc, spec, number = plans[key]
            except (KeyError, TypeError):  # unknown, or a list, which is not hashable
                desc = None
            if desc is not None and float not in map(type, size_given):  # 2.0 finds what was kept for 2
                mem = launch_new(desc, number)
                return wrap(spec, mem, mem.data)
            spec = quick_spec(size_given, dtype, device)
            if spec is not None and spec.is_plain and spec.dtype.code >= 0:
                plans.put(key, (fill_descriptor(spec, max(spec.nbytes, 1)), spec, number_for(spec.dtype, value)))
        dtype, device = options(name, dtype if out is None or dtype else out.dtype, device, layout, pin_memory)
        return finish(name, full_of(spec_of(sizes_of(name, size_given, size), dtype, device), value), requires_grad, out)

    make.__doc__ = f"A tensor of a shape with every element {value}."
    return hot_operator(name, method=False)(make)


zeros = _constant("zeros", 0)
ones = _constant("ones", 1)


@operator("full", method=False)
def full(size, fill_value, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor of a shape with every element `fill_value`, whose type (bool, int, float) gives the dtype unless one is given."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    inferred = _fill_dtype("full", fill_value)
    dtype, device = options("full", dtype if out is None or dtype else out.dtype, device, layout, pin_memory, default=inferred)
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return finish("full", full_of(spec_of(sizes_of("full", (size,)), dtype, device), value), requires_grad, out)


def _fill_dtype(name: str, value: Any) -> DType:
    if isinstance(value, Tensor):
        if value.ndim:
            raise TypeError(f"{name}(): argument 'fill_value' (position 2) must be Number, not Tensor")
        return value.dtype
    if not isinstance(value, (bool, int, float, complex)) and not hasattr(value, "dtype"):
        raise TypeError(f"{name}(): argument 'fill_value' (position 2) must be Number, not {type(value).__name__}")
    return dtypes.scalar_dtype(value)


@operator("empty_strided", method=False)
def empty_strided(size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor with undefined elements and given strides (in elements)."""
    dtype, device = options("empty_strided", dtype, device, layout, pin_memory)
    size, stride = sizes_of("empty_strided", (size,)), integers("empty_strided", "stride", (stride,))
    if len(size) != len(stride):
        raise RuntimeError(f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})")
    return finish("empty_strided", empty_of(Spec.of(Layout.of(size, stride), dtype, device)), requires_grad)


# ---- like another tensor ------------------------------------------------------------------------------------------------------


def like_spec(name: str, input: Any, dtype: Any, device: Any, layout: Any, memory_format: Any, pin_memory: Any = False) -> Spec:
    """The spec of a fresh tensor shaped as `input`: its dtype, device and order of dimensions unless told otherwise."""
    spec = check_tensor(name, input).spec
    if dtype is None and device is None and layout is None and memory_format is None and spec.is_contiguous and not pin_memory:
        return spec
    dtype, device = options(name, dtype, spec.device if device is None else device, layout, pin_memory, default=spec.dtype)
    return Spec.of(layout_for(name, input, memory_format) or result_strides(spec.shape, spec.layout), dtype, device)


@operator("empty_like", method=False)
def empty_like(input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    """A tensor shaped as `input` with undefined elements."""
    return finish("empty_like", empty_of(like_spec("empty_like", input, dtype, device, layout, memory_format, pin_memory)), requires_grad)


@operator("zeros_like", method=False)
def zeros_like(input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    """A tensor shaped as `input` with every element 0."""
    return finish("zeros_like", full_of(like_spec("zeros_like", input, dtype, device, layout, memory_format, pin_memory), 0), requires_grad)


@operator("ones_like", method=False)
def ones_like(input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    """A tensor shaped as `input` with every element 1."""
    return finish("ones_like", full_of(like_spec("ones_like", input, dtype, device, layout, memory_format, pin_memory), 1), requires_grad)


@operator("full_like", method=False)
def full_like(input, fill_value, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    """A tensor shaped as `input` with every element `fill_value`."""
    _fill_dtype("full_like", fill_value)
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return finish("full_like", full_of(like_spec("full_like", input, dtype, device, layout, memory_format, pin_memory), value), requires_grad)


def _new_form(name: str, factory: Any):
    def make(self, *given, size=None, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
        own = self.dtype if dtype is None else dtype
        shape = sizes_of(name, given, size)
        return factory(shape, dtype=own, device=self.device if device is None else device, requires_grad=requires_grad, layout=layout, pin_memory=pin_memory)

    make.__qualname__ = name
    make.__doc__ = f"`torch.{name[4:]}` with this tensor's dtype and device."
    return operator(name, function=False)(make)


for _name, _factory in (("new_empty", empty), ("new_zeros", zeros), ("new_ones", ones)):
    _new_form(_name, _factory)


@operator("new_full", function=False)
def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """`torch.full` with this tensor's dtype and device."""
    device = self.device if device is None else device
    return full(size, fill_value, dtype=self.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad, layout=layout, pin_memory=pin_memory)


@operator("new_empty_strided", function=False)
def new_empty_strided(self, size, stride, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """`torch.empty_strided` with this tensor's dtype and device."""
    device = self.device if device is None else device
    return empty_strided(size, stride, dtype=self.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad)


# ---- ranges ---------------------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A Python number from a number or a tensor of one element."""
    if isinstance(value, Tensor):
        return value.item()
    if isinstance(value, (bool, int, float)):
        return int(value) if isinstance(value, bool) else value
    if isinstance(value, complex):
        return value
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return value.item()
    raise TypeError(f"a number is needed here, not {type(value).__name__}")


_range_plans = PlanCache()


def _generate(name: str, spec: Spec, function: Any, *numbers) -> Tensor:
    """A fresh vector of `function(position, *numbers)`, computed in float64 where a number is a float, else in int64."""
    return run(_generator(name, spec, function, numbers), spec, *numbers)


def _generator(name: str, spec: Spec, function: Any, numbers: tuple) -> bytes | None:
    if spec.is_meta:
        return None
    if spec.dtype.code < 0:
        raise NotImplementedError(f"\"{name}\" not implemented for '{spec.dtype.scalar_name}': make a float32 tensor")
    kinds = tuple("f64" if isinstance(n, float) else "i64" for n in numbers)
    key = name, spec, kinds
    desc = _range_plans.get(key)
    if desc is None:
        expression = E.trace(function, 1 + len(numbers))
        ins = [("index", 0), *(("param", kind) for kind in kinds)]
        compute = (dtypes.float64 if "f64" in kinds else None, *(None for _ in kinds))
        desc = _range_plans.put(key, build_map(expression, [(spec.dtype, spec.layout)], ins, compute=compute, result_bytes=max(spec.nbytes, 1)))
    return desc


_aranges = PlanCache()
_NUMBERS = {int, float, type(None)}


@operator("arange", method=False)
def arange(start=None, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """start, start + step, … below `end`: `arange(end)`, `arange(start, end)`, `arange(start, end, step)`. int64 when all are integers, else the default float."""
    key = (dtype is None, start, end, step, type(start), type(end), type(step), dtype or dtypes._default, device or dtypes.get_default_device())
    plain_call = out is layout is None and not pin_memory and not {type(start), type(end), type(step)} - _NUMBERS
    if plain_call:
        found = _aranges.get(key)
        if found is not None:
            made = run(*found)
            return finish("arange", made, True) if requires_grad else made
    if end is None:
        if start is None:
            raise TypeError("arange() missing required argument 'end'")
        start, end = 0, start
    start, end, step = (_real_bound(plain(value)) for value in (0 if start is None else start, end, step))
    whole = all(isinstance(value, int) for value in (start, end, step))
    inferred = dtypes.int64 if whole else None
    dtype, device = options("arange", dtype if out is None or dtype else out.dtype, device, layout, pin_memory, default=inferred)
    if dtype.is_complex:  # PyTorch has no answer: real numbers, as complex ones
        made = TABLE["to"].call(arange(start, end, step, dtype=dtype.to_real(), device=device), dtype)
        return finish("arange", made if out is None else write_out("arange", out, lambda: made, (), {}), requires_grad)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * (1 if step > 0 else -1) < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is dtypes.int64 and not whole:
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise ValueError("step must be nonzero")
        whole = True
    length = -((start - end) // step) if whole else math.ceil((end - start) / step)
    if not dtype.is_floating_point:
        start, step = int(start), int(step)
    if dtype.is_floating_point:
        start, step = float(start), float(step)
    spec = spec_of((int(length),), dtype, device)
    plan = _generator("arange", spec, _progression, (start, step)), spec, start, step
    if plain_call:
        _aranges.put(key, plan)
    return finish("arange", run(*plan), requires_grad, out)


def _real_bound(value):
    return number_for(dtypes.float64, value, {"float64": "double"}) if isinstance(value, complex) else value


def _progression(i, first, by):
    return first + i * by


@operator("range", method=False)
def range_(start=0, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """`arange` with `end` included. Deprecated in favour of arange."""
    import warnings

    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range builtin. Instead, use "
        "torch.arange, which produces values in [start, end).",
        stacklevel=3,
    )
    if end is None:
        start, end = 0, start
    start, end, step = float(plain(start)), float(plain(end)), float(plain(step))
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * (1 if step > 0 else -1) < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    dtype, device = options("range", dtype, device, layout)
    spec = spec_of((math.floor((end - start) / step) + 1,), dtype, device)
    return finish("range", _generate("arange", spec, _progression, start, step), requires_grad, out)


def _steps(name: str, ends: tuple, steps: Any) -> int:
    if isinstance(steps, float):
        raise signatures.no_overload(name, (*ends, steps), (f"{kind} start, {other} end, int steps" for kind in ("Tensor", "Number") for other in ("Tensor", "Number")))
    count = integer(name, "steps", steps)
    if count < 0:
        raise RuntimeError("number of steps must be non-negative")
    return count


def _line(i, first, last, by, half, top, round=lambda x: x):
    """Point i of a line, from the nearer end, so that both ends are met exactly."""
    return E.where(i < half, first + round(i * by), last - round((top - i) * by))


# PyTorch walks the line in the dtype itself: for 16 bits the product is rounded before the sum is.
_LINES = {dtypes.float16: lambda *n: _line(*n, round=lambda x: E.cast(x, dtypes.float16)), dtypes.bfloat16: lambda *n: _line(*n, round=lambda x: E.cast(x, dtypes.bfloat16))}


def _ends(name, start, end):
    """Both as numbers. Raises RuntimeError for tensors with dimensions."""
    ndims = [getattr(value, "ndim", 0) for value in (start, end)]
    if any(ndims):
        raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors, but got start with {ndims[0]} dimension(s) and end with {ndims[1]} dimension(s).")
    return plain(start), plain(end)


@operator("linspace", method=False)
def linspace(start, end, steps, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """`steps` numbers from `start` to `end`, both included, evenly spaced."""
    count = _steps("linspace", (start, end), steps)
    start, end = _ends("linspace", start, end)
    dtype, device = options("linspace", dtype if out is None or dtype else out.dtype, device, layout, pin_memory, default=_line_dtype(start, end))
    if dtype.is_complex:
        return finish("linspace", _complex_line(start, end, count, dtype, device), requires_grad, out)
    _check_complex_ends("linspace", start, end, dtype)
    spec = spec_of((count,), dtype, device)
    return finish("linspace", _generate("linspace", spec, _LINES.get(dtype, _line), *_line_numbers(start, end, count, dtype)), requires_grad, out)


def _line_dtype(start, end) -> DType:
    """The dtype of a line between two numbers."""
    default = dtypes.get_default_dtype()
    return default.to_complex() if isinstance(start, complex) or isinstance(end, complex) else default


def _check_complex_ends(name, start, end, dtype):
    if isinstance(start, complex) or isinstance(end, complex):
        inferred = {"complex64": "c10::complex<float>", "complex128": "c10::complex<double>"}.get(_line_dtype(start, end).name, "c10::complex<c10::Half>")
        raise RuntimeError(f"torch.{name}(): inferred dtype {inferred} can't be safely cast to passed dtype {dtype.scalar_name}")


def _complex_line(start, end, count: int, dtype: DType, device) -> Tensor:
    """A line in the plane: its parts are lines."""
    start, end, part = complex(start), complex(end), dtype.to_real()
    parts = [linspace(a, b, count, dtype=part, device=device) for a, b in ((start.real, end.real), (start.imag, end.imag))]
    return TABLE["complex"].call(*parts)


def _line_numbers(start, end, count: int, dtype: DType):
    """The parameters of `_line`, rounded as PyTorch rounds them: ends to the dtype first, the step in the dtype (in float64 for integers)."""
    if not dtype.is_floating_point:
        start, end = int(start), int(end)
        step = (end - start) / (count - 1) if count > 1 else 0.0
    else:
        start, end = rounded(dtype, start), rounded(dtype, end)
        step = rounded(dtype, rounded(dtype, end - start) / rounded(dtype, count - 1)) if count > 1 else 0.0
    return float(start), float(end), float(step), float(count // 2 if count > 1 else 1), float(count - 1)


def rounded(dtype: DType, value: float) -> float:
    """The nearest number of a floating-point dtype."""
    value = float(value)
    if dtype.format == "d" or not math.isfinite(value):
        return value
    if dtype.format == "e":
        return struct.unpack("e", struct.pack("e", value))[0] if abs(value) < 65520 else math.copysign(math.inf, value)
    bits = struct.unpack("I", struct.pack("f", value))[0] if abs(value) < 3.4028235677973366e38 else 0x7F800000 | (value < 0) << 31
    if dtype is dtypes.bfloat16 and bits & 0x7F800000 != 0x7F800000:
        bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return struct.unpack("f", struct.pack("I", bits))[0]


@operator("logspace", method=False)
def logspace(start, end, steps, base=10.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """`base` to the powers `linspace(start, end, steps)`."""
    count = _steps("logspace", (start, end), steps)
    start, end, base = *_ends("logspace", start, end), float(plain(base))
    dtype, device = options("logspace", dtype if out is None or dtype else out.dtype, device, layout, pin_memory, default=_line_dtype(start, end))
    if dtype.is_complex:
        made = TABLE["pow"].call(base, _complex_line(start, end, count, dtype, device))
        return finish("logspace", made, requires_grad, out)
    _check_complex_ends("logspace", start, end, dtype)
    spec = spec_of((count,), dtype, device)
    if spec.is_meta:
        return finish("logspace", empty_of(spec), requires_grad, out)
    import numpy

    if dtype in _LINES and count > 1:  # 16 bits: PyTorch rounds the ends of the line only; its points stay exact
        start, end = rounded(dtype, start), rounded(dtype, end)
    exact = dtype in _LINES or count == 1 and dtype.is_floating_point  # one point: base**start in float64
    first, last, step, half, top = _line_numbers(start, end, count, dtypes.float64 if exact else dtype)
    places = numpy.arange(count, dtype=numpy.float64)
    with numpy.errstate(all="ignore"):  # overflow is inf, as in PyTorch
        powers = numpy.power(base, numpy.where(places < half, first + places * step, last - (top - places) * step))
    with no_grad():
        return finish("logspace", TABLE["to"].call(tensor_of(powers), dtype), requires_grad, out)


@operator("eye", method=False)
def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """The identity matrix: ones on the main diagonal. [n, m or n]"""
    n = integer("eye", "n", n)
    m = n if m is None else integer("eye", "m", m)
    for name, value in (("n", n), ("m", m)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    dtype, device = options("eye", dtype if out is None or dtype else out.dtype, device, layout, pin_memory)
    made = full_of(spec_of((n, m), dtype, device), 0)
    if n and m:
        with no_grad():
            fill(TABLE["diagonal"].call(made), 1)
    return finish("eye", made, requires_grad, out)


def _triangle_indices(name: str, keep: Any):
    def indices(row, col, offset=0, *, dtype=None, layout=None, device=None, pin_memory=False):
        for label, value in (("row", row), ("col", col)):
            if value < 0:
                raise RuntimeError(f"{label} must be non-negative, got{value}")
        dtype, device = options(name, dtype, device, layout, pin_memory, default=dtypes.int64)
        pairs = [(i, j) for i in range(row) for j in range(col) if keep(j - i, offset)]
        flat = TABLE["tensor"].call([i for i, _ in pairs] + [j for _, j in pairs], dtype=dtype, device=device)
        return TABLE["view"].call(flat, (2, len(pairs)))

    indices.__qualname__ = name
    indices.__doc__ = f"Row and column numbers of a matrix's {'lower' if name == 'tril_indices' else 'upper'} triangle, row by row. [2, n]"
    return operator(name, method=False)(indices)


tril_indices = _triangle_indices("tril_indices", lambda distance, offset: distance <= offset)
triu_indices = _triangle_indices("triu_indices", lambda distance, offset: distance >= offset)

from . import data, values  # noqa: E402, F401  (registers the rest of the family)
from .data import as_tensor, asarray, from_numpy, frombuffer, scalar_tensor, tensor  # noqa: E402

layout = StorageLayout
strided = strided_layout
__all__ = ["as_tensor", "asarray", "from_numpy", "frombuffer", "layout", "scalar_tensor", "strided", "tensor"]
