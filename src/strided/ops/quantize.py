"""quantize and dequantize: the operators between ordinary tensors and block tensors. What they do is in ops/blocks/, loaded when first used."""

from .. import dtypes
from ..tensor import Tensor
from .table import TABLE, operator


@operator("quantize")
def quantize(input, format, *, scale_rule=None, group=128, scale="float16", zero_point=False, tensor_scale=None, pad=False):
    """`input` [*, n] in blocks of low-precision elements along its last dimension, rounded to nearest even. No gradient flows through it.

    format: "mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3", "mxfp8_e5m2", "mxint8", "nvfp4" or the format itself (torch.mxfp4); "int4" and "int8" take
    `group` (elements under one scale; None: a whole row), `scale` ("float16", "bfloat16", "float32") and `zero_point`.
    scale_rule: how an MX block's power of two follows from its largest magnitude: "floor" (OCP), "ceil", "even" or "rceil". tensor_scale: NVFP4's, in place
    of the one from the largest magnitude. pad: a last block that is not full is stored with zeros behind.

    A block with a NaN or an infinity in it becomes NaN as a whole. Raises ValueError for unknown formats (with the near ones) and for blocks that do not
    divide the last dimension.
    """
    from .blocks.convert import choose_format, quantize_blocks

    if not isinstance(input, Tensor):
        raise TypeError(f"quantize(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    columns = input.shape[-1] if input.ndim else 0
    return quantize_blocks(input, choose_format(format, group, scale, zero_point, columns), scale_rule, tensor_scale, pad)


@operator("dequantize")
def dequantize(input, dtype=None):
    """The numbers that a block tensor holds, as float32 or the floating-point `dtype`; any other tensor as float32."""
    if isinstance(input, (list, tuple)):
        return type(input)(dequantize(t, dtype) for t in input)
    if not isinstance(input, Tensor):
        raise TypeError(f"dequantize(): argument 'tensor' (position 1) must be Tensor, not {type(input).__name__}")
    from ..block_tensor import BlockTensor

    if not isinstance(input, BlockTensor):
        return TABLE["to"].call(input, dtype or dtypes.float32)
    from .blocks.convert import dequantize_blocks

    return dequantize_blocks(input, dtype)
