"""What has no meaning for complex numbers, or for floats: PyTorch's refusals, by operator.

Pointwise operators and folds ask `refusal` where a plan is made; operators of other kinds get the check in front of them (`guard`). What is simply not
written down for complex numbers is refused with the same sentence.
"""
from __future__ import annotations

import functools

from ..dtypes import DType, result_type
from ..tensor import Tensor
from .table import TABLE

OF_BITS = frozenset(f"bitwise_{name}" for name in "and or xor not left_shift right_shift".split())  # refused for floats, too
_WAY_OUT = "\n  Complex numbers have no order and no rounding: compute on x.real and x.imag, or on x.abs()."

# The sentences; {name} is the operator's name, {dtype} PyTorch's name of the dtype.
_PLAIN = "\"{name}_cpu\" not implemented for '{dtype}'"
_SENTENCES: dict[str, tuple[type[Exception], str]] = {}


def _say(sentence: str, names: str, error: type[Exception] = NotImplementedError) -> None:
    _SENTENCES.update(dict.fromkeys(names.split(), (error, sentence)))


_say("{name} is not supported for complex inputs", "ceil floor trunc")
_say("{name} not implemented for complex tensors.", "maximum minimum fmax fmin", RuntimeError)
_say("{name} is not supported for complex tensors.", "deg2rad rad2deg", RuntimeError)
_say("{name} does not support complex inputs.", "isposinf isneginf", RuntimeError)
_say("{name}(): does not support complex input", "argmax argmin", RuntimeError)
_say("max(): does not support complex input", "max_at", RuntimeError)
_say("min(): does not support complex input", "min_at", RuntimeError)
_say("heaviside is not yet implemented for complex tensors.", "heaviside", RuntimeError)
_say("signbit is not implemented for complex tensors.", "signbit")
_say("clamp is not supported for complex types", "clamp clamp_min clamp_max relu")
_say("Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.", "sign")
_say(" Sort does not support complex dtypes on CPU", "sort argsort msort", RuntimeError)
_say(" topk does not support complex dtypes on CPU", "topk", RuntimeError)
_say(_PLAIN, "xlogy aminmax")
_say("nansum on CPU does not support complex inputs", "nansum nanmean", RuntimeError)
_say("Unsupported input type encountered for isin(): {dtype}", "isin", RuntimeError)
_say("\"{name}_vml_cpu\" not implemented for '{dtype}'", "erf erfc erfinv i0 lgamma round")
_say("\"{name}_all\" not implemented for '{dtype}'", "max min")
for _kernel, _name in {
    "max_values_cpu": "amax", "min_values_cpu": "amin", "lshift_cpu": "bitwise_left_shift", "rshift_cpu": "bitwise_right_shift", "div_floor_cpu": "floor_divide",
    "digamma": "digamma", "median_cpu": "nanmedian", "unique": "unique unique_consecutive", "searchsorted_out_cpu": "searchsorted bucketize",
    "xor_sum_cpu": "hash_tensor", "erf_vml_cpu": "ndtr", "aminmax_cpu": "histc", "kthvalue_cpu": "kthvalue",
}.items():  # fmt: skip
    _say(f"\"{_kernel}\" not implemented for '{{dtype}}'", _name)

# Operators without a plan to ask from: they go through NumPy or are composites.
_GUARDED = """sort argsort msort topk kthvalue median nanmedian mode unique unique_consecutive cummax cummin isin searchsorted bucketize histc bincount hash_tensor
gcd lcm nanmean logit ndtr ndtri log_ndtr erfcx i0 i0e i1 i1e airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1
modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 xlog1py zeta""".split()


def refusal(name: str, dtype: DType) -> Exception:
    """The error for the operator `name` on complex numbers, or floats, of `dtype`."""
    error, sentence = _SENTENCES.get(name, (NotImplementedError, _PLAIN))
    way_out = _WAY_OUT if dtype.is_complex else "\n  Bits are those of integers and bools: convert first, as in x.long(), or x.view(torch.int32) for the bits of a float."
    return error(sentence.format(name=name, dtype=dtype.scalar_name) + way_out)


def check(name: str, *operands) -> None:
    """Raises for an operator that PyTorch refuses complex numbers for, where an operand is complex."""
    if name in _SENTENCES:
        for o in operands:
            if isinstance(o, Tensor) and o.dtype.is_complex:
                raise refusal(name, o.dtype)


def _guarded(name: str, call):
    @functools.wraps(call)
    def checked(*args, **kwargs):
        for o in args[:2]:
            if isinstance(o, Tensor) and o.spec.dtype.is_complex:
                if len(args) > 1 and isinstance(args[1], Tensor):
                    result_type(*args[:2])  # raises for PyTorch's wide unsigned formats, which go with no others
                raise refusal(name, o.spec.dtype)
        return call(*args, **kwargs)

    return checked


def guard() -> None:
    """Puts the check before the operators that have no plans. Called once, when all families are loaded."""
    for name in (*_GUARDED, *(name for name in TABLE if "_polynomial_" in name)):
        entry = TABLE.get(name) or TABLE.get(f"special_{name}")
        if entry is not None:
            entry.call = _guarded(name.removeprefix("special_"), entry.call)
