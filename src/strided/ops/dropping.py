"""Dropout of single elements: which are kept is a byte each, and one kernel scales those and zeroes the others, forward and backward.

Noise that is shared by whole channels, and dropout of anything but real floats, multiply by `dropout_mask` (random.py).
"""
from __future__ import annotations

import functools
import struct

from .. import dtypes
from ..autograd import backward, check_inplace
from ..autograd.graph import record, record_inplace, tracking
from ..dispatch import PlanCache, launch, run
from ..kernels import expr as E
from ..kernels.map import build_map
from ..layout import result_strides
from ..tensor import Spec, Tensor, empty_of
from .elementwise import assign, check_overlap
from .fills import _rounded, fill_bernoulli
from .table import operator

FLOATS = frozenset((dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16))
_EXPR = E.trace(lambda x, kept, one: x * (kept * one), 3)  # as PyTorch multiplies, by zeros: what is not finite stays NaN
_plans = PlanCache()


@functools.cache
def survivors_scale(p: float, dtype) -> float:
    """1/(1 − p) as PyTorch's noise of this dtype holds it."""
    keep = 1.0 - p
    if dtype is dtypes.float64:
        return 1.0 / keep
    (keep32,) = struct.unpack("<f", struct.pack("<f", keep))  # divided in float32: rounding a float64 quotient of float32 numbers gives the same
    one = 1.0 / keep32
    return one if dtype is dtypes.float32 else _rounded(one, dtype)


def drop(input: Tensor, p: float, inplace: bool = False) -> Tensor:
    """input with elements zeroed with probability p (not 1) and the others scaled by 1/(1 − p). input: real floats of 16 bits or more."""
    if inplace:
        check_inplace(input)
        check_overlap(input)
    dtype, spec = input.dtype, input.spec
    kept = empty_of(Spec.of(result_strides(spec.shape, spec.layout), dtypes.uint8, spec.device))
    if dtype is dtypes.float64:  # drawn from more bits
        noise = empty_of(Spec.of(kept.spec.layout, dtype, spec.device))
        assign(kept, fill_bernoulli(noise, 1.0 - p, None))
    else:
        fill_bernoulli(kept, 1.0 - p, None)
    one = survivors_scale(p, dtype)
    if not inplace:
        return keep(input, kept, one)
    plan, _ = _plan(spec, kept.spec, True)
    if plan is not None:
        launch(plan, input.ptr, input.ptr, kept.ptr, one)
    input.mem.version += 1
    if tracking(input):
        record_inplace(DropBackward0, (input,), input, (kept,), one=one)
    return input


@operator("dropout_keep", function=False, method=False, flops=lambda args, kwargs, result: result.numel())
def keep(input, kept, one):
    """input · kept · one, kept being 0 or 1 (uint8) for each element."""
    plan, spec = _plan(input.spec, kept.spec, False)
    out = run(plan, spec, input.ptr, kept.ptr, one)
    if tracking(input):
        record(DropBackward0, (input,), out, (kept,), one=one)
    return out


@backward("Drop", saved_names=("other",), shown="MulBackward0")
def DropBackward0(node, g):
    return (keep(g, node.saved[0], node.one),)


def _plan(own, kept, inplace):
    """(descriptor, or None on the meta device; the result's spec)."""
    key = own, kept, inplace
    found = _plans.get(key)
    if found is None:
        spec = own if inplace else Spec.of(result_strides(own.shape, own.layout), own.dtype, own.device)
        desc = None
        if not own.is_meta:
            ins = [(own.dtype, own.layout), (dtypes.uint8, kept.layout), ("param", "f64")]
            compute = own.dtype.compute
            desc = build_map(_EXPR, [(spec.dtype, spec.layout)], ins, compute=[compute, compute, None], result_bytes=0 if inplace else spec.nbytes)
        found = _plans.put(key, (desc, spec))
    return found
