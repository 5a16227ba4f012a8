"""Packed tensors, formats below eight bits, at the border to code that wants an address: unpacked to one code a byte, and packed again.

Holds the two conversions without history. Operators on packed tensors are ops/packed.py's, the kernels kernels/packed.py's.
"""

from __future__ import annotations

from typing import Any

from .dispatch import PlanCache, launch, run
from .kernels.packed import build_pack, build_unpack
from .layout import result_strides
from .tensor import META_ADDRESS, PACKED_ADDRESS, Spec, Tensor, empty_of

assert PACKED_ADDRESS < META_ADDRESS  # told apart by their top bytes (kernels/runtime_calls.py)

_plans = PlanCache()


def unpacked(t: Tensor) -> Tensor:
    """The elements of a packed tensor, one code a byte, in fresh memory; dense, in t's order of dimensions. Not recorded."""
    spec = t.spec
    plan = _plans.get(spec)
    if plan is None:
        result = Spec.of(result_strides(spec.shape, spec.layout), spec.dtype.unpacked, spec.device)
        none = spec.is_meta or not spec.numel
        desc = None if none else build_unpack(spec.dtype, spec.shape, result.strides, spec.strides, result_bytes=max(result.nbytes, 1))
        plan = _plans.put(spec, (desc, result))
    desc, result = plan
    if desc is None:
        return empty_of(result)
    return run(desc, result, t.mem.data, t.ptr - PACKED_ADDRESS)


def pack_into(destination: Tensor, codes: Tensor) -> None:
    """Writes codes, one a byte and of the destination's shape, into a packed tensor."""
    spec = destination.spec
    if spec.is_meta or not spec.numel:
        return
    key = spec, codes.spec
    desc = _plans.get(key)
    if desc is None:
        desc = _plans.put(key, build_pack(spec.dtype, spec.shape, spec.strides, codes.spec.layout.expand(spec.shape).strides))
    launch(desc, destination.mem.data, destination.ptr - PACKED_ADDRESS, codes.ptr)


def packed(codes: Tensor, layout: Any = None) -> Tensor:
    """A fresh packed tensor of codes, one a byte; dense, in their order of dimensions unless a layout is given. Not recorded."""
    spec = codes.spec
    out = empty_of(Spec.of(layout or result_strides(spec.shape, spec.layout), spec.dtype.stored, spec.device))
    pack_into(out, codes)
    return out
