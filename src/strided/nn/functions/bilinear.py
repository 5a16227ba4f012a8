"""The bilinear form of two inputs, as products of operators."""
from __future__ import annotations

from ... import ops
from ...dispatch import CONTEXT, set_autocast
from ...errors import c_name


def bilinear(input1, input2, weight, bias=None):
    """x1ᵀ W x2 + b for every output: [*, I1], [*, I2], weight [O, I1, I2], bias [O] -> [*, O]. Raises RuntimeError where the leading dimensions differ."""
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(f"bilinear(): input batch dimensions do not match: got {list(input1.shape)} and {list(input2.shape)}")
    if not input1.dtype is input2.dtype is weight.dtype:
        names = ", ".join(f"{name}: {c_name(t.dtype)}" for name, t in (("input1", input1), ("input2", input2), ("weight", weight)))
        raise RuntimeError(f"All tensors must have the same dtype, got {names}\n  Convert them to one dtype first.")
    before = CONTEXT.autocast_dtype, CONTEXT.autocast_cache
    set_autocast(None)  # autocast has no rule for it
    try:
        out = ops.einsum("...i,oij,...j->...o", input1, weight, input2)
    finally:
        set_autocast(before[0])
        CONTEXT.autocast_cache = before[1]
    return out if bias is None else out + bias
