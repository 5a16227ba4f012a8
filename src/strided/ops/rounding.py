"""Casts that round otherwise than to nearest: `round_to` and `stochastic_round`. The kernel is kernels/rounding.py's, the cast after it copies.py's.
"""
from __future__ import annotations

import difflib

from .. import dtypes
from ..autograd import backward, record, tracking
from ..dispatch import launch
from ..dtypes import DType
from ..kernels.rounding import MODES, build_rounding, limits
from ..tensor import Tensor, empty
from .copies import as_dtype, to_copy
from .fills import generator_of
from .table import operator

_NAMES = ("nearest", *MODES)


@backward("RoundTo")
def RoundToBackward0(node, g):
    """Rounding is taken for the identity, as in every cast."""
    return (g,)


def _on_grid(input: Tensor, dtype: DType, mode: str, generator) -> Tensor:
    """Elements of `dtype`'s grid in a type that holds them and input's: float32, or float64 for float64, integers and their like. Contiguous."""
    source = input.dtype
    kind = dtypes.float32 if source.is_floating_point and source is not dtypes.float64 and not (dtype.kind in ("int", "uint") and dtype.bits > 24) else dtypes.float64
    x = (input if source is kind else to_copy(input, kind, input.device)).contiguous()
    out = empty(x.shape, kind, x.device)
    count = x.numel()
    if count and not x.is_meta:
        desc = build_rounding(mode, "float" if kind is dtypes.float32 else "double", count)
        if mode == "stochastic":
            generator = generator_of(generator)
            with generator.lock:
                launch(desc, generator.address or generator.state(), out.ptr, x.ptr, count, *limits(dtype))
        else:
            launch(desc, 0, out.ptr, x.ptr, count, *limits(dtype))
    if tracking(x):
        record(RoundToBackward0, (x,), out)
    return out


def _takes(name: str, input, dtype) -> DType:
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    dtype = as_dtype(name, dtype)
    for given in (input.dtype, dtype):
        if given.is_complex or given.code < 0:
            raise NotImplementedError(f"\"{name}\" not implemented for '{given.scalar_name}'\n  It rounds real numbers: take the parts of complex ones apart first (x.real, x.imag).")
    return dtype


@operator("round_to", method=False, moves=True, reason=lambda *_: "round_to converts into new memory")
def round_to(input, dtype, rounding="nearest", *, generator=None):
    """`input` in another dtype, rounded as asked: [*] -> [*]. Gradients pass as through a cast.

    rounding: "nearest" (halves to even, what `x.to(dtype)` does), "toward_zero", "up" (towards infinity), "down", or "stochastic": to one of the two
    neighbours, with probabilities that make the expected value the exact one; `generator` says from which stream. Beyond the largest number the directed
    modes give it or infinity, the others what the cast gives. Raises ValueError for an unknown rounding.
    """
    dtype = _takes("round_to", input, dtype)
    if rounding not in _NAMES:
        near = difflib.get_close_matches(str(rounding), _NAMES, 2)
        raise ValueError(f"round_to(): no rounding {rounding!r}; {'near it: ' + ', '.join(near) if near else 'there are ' + ', '.join(_NAMES)}")
    if generator is not None and rounding != "stochastic":
        raise ValueError(f"round_to(): rounding {rounding!r} draws nothing and takes no generator")
    if rounding == "nearest" or dtype is dtypes.float64 or dtype is dtypes.bool_ or dtype is input.dtype:
        return to_copy(input, dtype, input.device)
    if not input.dtype.is_floating_point and not dtype.is_floating_point:
        return to_copy(input, dtype, input.device)  # integers in integers: nothing to round
    return to_copy(_on_grid(input, dtype, rounding, generator), dtype, input.device)


@operator("stochastic_round", method=False, moves=True, reason=lambda *_: "stochastic_round converts into new memory")
def stochastic_round(input, dtype, *, generator=None):
    """`round_to(input, dtype, "stochastic")`: every element becomes one of its two neighbours in `dtype`, the nearer one more often, so that sums stay
    true: [*] -> [*]. The same generator state gives the same result. Numbers that `dtype` holds stay as they are."""
    return round_to(input, dtype, "stochastic", generator=generator)


