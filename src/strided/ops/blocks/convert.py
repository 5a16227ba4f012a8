"""Between ordinary tensors and block tensors: quantize, dequantize, and block tensors over the tensors of a checkpoint, which are not converted."""

from __future__ import annotations

import math
from math import prod

from ... import dtypes
from ...block_formats import BlockFormat, grouped_int, parse
from ...block_tensor import ONE, BlockTensor, check, make
from ...dispatch import PlanCache, launch, run
from ...kernels.block_casts import FLOATS, build_dequantize
from ...kernels.block_quantize import RULES, build_largest, build_quantize
from ...kernels.native import parts_for
from ...layout import Layout, collapse
from ...tensor import Spec, Tensor, empty

_PLANS = PlanCache()

# ---- dequantize -----------------------------------------------------------------------------------------------------------------


def dequantize_blocks(x: BlockTensor, dtype=None) -> Tensor:
    """The numbers of a block tensor, as float32 or another floating-point dtype."""
    dtype = dtype or dtypes.float32
    if dtype.name not in FLOATS:
        return dequantize_blocks(x).to(dtype)
    if x.turned:
        return dequantize_blocks(x.transpose(-2, -1), dtype).transpose(-2, -1)
    spec = Spec.of(Layout.contiguous(x.shape), dtype, x.device)
    if spec.is_meta or not spec.numel:
        return empty(spec.shape, dtype, spec.device)
    rows, cols, strides, parts = x.walk()
    key = "dequantize", x.format, dtype, rows, cols, tuple(strides)
    desc = _PLANS.get(key) or _PLANS.put(key, build_dequantize(x.format.kernel, dtype, rows, cols, x.format.block, strides, spec.nbytes))
    return run(desc, spec, *x.slots(parts))


# ---- quantize -------------------------------------------------------------------------------------------------------------------


def choose_format(format, group, scale, zero_point: bool, columns: int) -> BlockFormat:
    """The format that `quantize`'s arguments name."""
    if isinstance(format, dtypes.DType) and format.name in ("int4", "int8"):
        format = format.name
    if format in ("int4", "int8"):
        return grouped_int(int(format[3:]), columns or 1 if group is None else group, scale, zero_point)
    found = parse(format)
    if zero_point and found.zero != "zero":
        raise ValueError(f"{found} has no zero point: zero_point=True goes with \"int4\" and \"int8\"")
    return found


def quantize_blocks(x: Tensor, format: BlockFormat, rule: str | None, tensor_scale, pad: bool) -> BlockTensor:
    """x [*, n] in blocks along its last dimension."""
    if not format.writable:
        raise NotImplementedError(f"quantize: {format} is a format of files that others write, and is read only\n  Use \"mxfp4\", \"int4\" or \"int8\", which hold as many bits a value.")
    if not x.dtype.is_floating_point:
        raise TypeError(f"quantize takes a floating-point tensor, not {x.dtype}: convert it first, as in x.float()")
    if not x.ndim:
        raise ValueError("quantize takes a tensor of at least one dimension: blocks lie along the last one")
    if rule is not None and rule not in RULES:
        raise ValueError(f"scale_rule is one of {', '.join(map(repr, RULES))}, not {rule!r}")
    if rule not in (None, "floor") and format.scale.name != "float8_e8m0fnu":
        raise ValueError(f"scale_rule={rule!r} chooses among powers of two; the scale of {format} is {format.scale}, which needs no rule")
    columns = x.shape[-1]
    if columns % format.block and not pad:
        lack = format.block - columns % format.block
        raise ValueError(
            f"the last dimension of {list(x.shape)} has {columns} elements, no multiple of the {format.block} of a block of {format}: the last block would lack {lack}\n"
            f"  pad=True stores zeros for these (the shape stays {list(x.shape)})" + ("; or choose another group." if format.name.startswith("int") else ".")
        )
    if tensor_scale is not None and not format.tensor_scale:
        raise ValueError(f"{format} has no scale of the whole tensor: tensor_scale goes with nvfp4")
    shape, blocks = tuple(x.shape), format.blocks(columns)
    parts = [empty((*shape[:-1], blocks, part.nbytes), dtypes.uint8, x.device) for part in format.parts]
    if x.dtype.name not in FLOATS:
        x = x.float()
    scale = _tensor_scale(x, tensor_scale) if format.tensor_scale else None
    result = make(format, parts, shape, scale)
    if x.is_meta or not x.numel():
        return result
    sizes, (steps,) = collapse(shape[:-1], x.stride()[:-1])
    if len(sizes) > 1 or x.stride(-1) != 1 and columns > 1:
        x = x.contiguous()
        steps = (columns,)
    rows, _, strides, parts = result.walk()
    row_stride = (steps[-1] if len(steps) else 0) * x.itemsize
    key = "quantize", format, rule, x.dtype, rows, columns, row_stride, tuple(strides)
    desc = _PLANS.get(key) or _PLANS.put(key, build_quantize(format.kernel, rule or "floor", x.dtype, rows, columns, row_stride, format.block, strides))
    launch(desc, x.ptr, *result.slots(parts))
    return result


def _tensor_scale(x: Tensor, given) -> Tensor:
    """NVFP4's scale of the whole tensor: so that the largest magnitude is 6 under a block scale of 448. Infinities and NaN do not count."""
    if given is not None:
        value = float(given)
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"tensor_scale is a positive number, not {given!r}")
        return ONE.new_full((), value)
    if x.is_meta or not x.numel():
        return ONE.new_full((), 1.0)
    x = x.detach().contiguous()
    parts = parts_for(x.numel(), 1 << 16)
    bits = empty((parts,), dtypes.int32, x.device)
    launch(build_largest(x.dtype, x.numel(), parts), bits.ptr, x.ptr)
    largest = bits.view(dtypes.float32).amax()
    return (largest / (448.0 * 6.0)).reshape(())


# ---- over the tensors of a checkpoint -------------------------------------------------------------------------------------------


def as_blocks(format, elements: Tensor, scales: Tensor | None = None, zeros: Tensor | None = None, *, tensor_scale=None, reciprocal: bool = False) -> BlockTensor:
    """A block tensor over tensors that hold its bytes already, which stay where they are: nothing is converted or copied.

    elements: codes packed into bytes, [*, blocks, bytes of a block] or [*, bytes of a row] (uint8, or any dtype of one byte). scales: [*, blocks] of the
    format's scale, or their bytes. zeros: zero points, uint8 [*, blocks]. For GGUF's formats the blocks [*, blocks, bytes] are all there is.
    tensor_scale: NVFP4's, a number or a tensor of one, to multiply by (ModelOpt); reciprocal=True: to divide by (compressed-tensors).

    gpt-oss: `as_blocks("mxfp4", tensors["….gate_up_proj_blocks"], tensors["….gate_up_proj_scales"])`: [E, n, groups, 16] and [E, n, groups] give [E, n, 32 groups].
    Raises ValueError where the tensors do not fit each other and the format.
    """
    format = parse(format)
    first = format.parts[0].nbytes
    data = _bytes_of("elements", elements)
    if data.ndim < 2 or data.shape[-1] != first:
        if not data.ndim or data.shape[-1] % first:
            raise ValueError(f"elements of {format} are [*, blocks, {first}] bytes or rows of a multiple of {first} bytes, but got {list(data.shape)}")
        data = data.view(*data.shape[:-1], data.shape[-1] // first, first)  # [*, blocks, bytes]
    elif scales is not None and data.ndim == scales.ndim == 2 and scales.shape[1] == 1 and scales.shape[0] == data.shape[0]:  # rows of one block each
        data = data.view(*data.shape[:-1], 1, first)
    parts = [data]
    for own, given in zip(format.parts[1:], (scales, zeros)):
        if given is None:
            raise ValueError(f"{format} needs {own.name}: {own.nbytes} bytes a block")
        parts.append(_plane(own, given, data))
    if len(format.parts) == 1 and scales is not None:
        raise ValueError(f"{format} has its scales in its blocks: leave scales out")
    if len(format.parts) < 3 and zeros is not None:
        raise ValueError(f"{format} has no zero points of their own: leave zeros out")
    if format.tensor_scale:
        value = 1.0 if tensor_scale is None else float(tensor_scale)
        tensor_scale = ONE.new_full((), value)
        if reciprocal:
            tensor_scale = 1 / tensor_scale
    return check(format, parts, (*data.shape[:-2], data.shape[-2] * format.block), tensor_scale)


def _bytes_of(name: str, t) -> Tensor:
    if not isinstance(t, Tensor) or isinstance(t, BlockTensor):
        raise TypeError(f"{name} is a tensor of bytes, not {type(t).__name__}")
    if t.dtype is dtypes.uint8:
        return t
    if t.dtype.itemsize != 1:
        raise ValueError(f"{name} is a tensor of bytes (uint8), not {t.dtype}")
    return t.view(dtypes.uint8)


def _plane(own, given: Tensor, data: Tensor) -> Tensor:
    """Scales or zero points as bytes [*, blocks, bytes of one], in place."""
    lead = tuple(data.shape[:-1])
    if not isinstance(given, Tensor):
        raise TypeError(f"{own.name} is a tensor, not {type(given).__name__}")
    if tuple(given.shape) == lead and given.dtype.itemsize == own.nbytes:
        return given.unsqueeze(-1).view(dtypes.uint8) if given.dtype is not dtypes.uint8 else given.unsqueeze(-1)
    if tuple(given.shape) == (*lead, own.nbytes) and given.dtype.itemsize == 1:
        return _bytes_of(own.name, given)
    if prod(given.shape) == prod(lead) and given.dtype.itemsize == own.nbytes and given.ndim < len(lead) + 1:  # a scale a channel, without the dimension of groups
        return _plane(own, given.reshape(lead), data)
    raise ValueError(f"{own.name} are {own.nbytes} bytes for each of {list(lead)} blocks, but got {given.dtype} {list(given.shape)}")
