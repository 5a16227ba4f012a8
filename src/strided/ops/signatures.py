"""Which operands must be tensors: the TypeErrors of calls that give a number where PyTorch takes none.

Pointwise operators ask `check` only where their fast path ends (a number in first place, a pair seen for the first time); `guard` puts the same check before
operators of other kinds. Shapes, dtypes and out= are checked elsewhere.
"""
from __future__ import annotations

import functools
from typing import Any

from .. import dtypes
from ..tensor import Tensor
from .table import TABLE

# name: what its two operands are called
_TENSORS = {
    **dict.fromkeys("atan2 fmax fmin maximum minimum hypot logaddexp logaddexp2 gcd lcm isclose ldexp nextafter igamma igammac".split(), ("input", "other")),
    **dict.fromkeys("logical_and logical_or logical_xor".split(), ("input", "other")),
    "heaviside": ("input", "values"),
    "complex": ("real", "imag"),
    "polar": ("abs", "angle"),
}
_TENSOR_FIRST = frozenset("copysign eq ne lt le gt ge fmod rsub clamp_min clamp_max max min".split())
_GUARDED = "isclose ldexp nextafter igamma igammac gcd lcm complex polar rsub clamp_min clamp_max float_power".split()


_NUMBERS = frozenset("add sub mul true_divide floor_divide div_trunc".split())  # of two numbers PyTorch makes a 0-d tensor here


def _are_numbers(operands: tuple) -> bool:
    return all(isinstance(o, (bool, int, float, complex)) for o in operands)


def numbers_alone(name: str, operands: tuple) -> tuple:
    """Operands of which none is a tensor: the first one becomes a 0-d tensor where PyTorch computes with numbers, else a TypeError."""
    if name not in _NUMBERS or not _are_numbers(operands):
        raise no_overload(name, operands, ("Tensor input, Tensor other", "Number self, Tensor other", "Tensor input, Number other"))
    return TABLE["tensor"].call(operands[0]), *operands[1:]


def check(name: str, operands: tuple) -> None:
    """Raises TypeError where an operand of the operator `name` is no tensor but must be one."""
    names = _TENSORS.get(name)
    if names is not None:
        for place, (argument, operand) in enumerate(zip(names, operands), 1):
            if not isinstance(operand, Tensor):
                raise TypeError(f"{name}(): argument '{argument}' (position {place}) must be Tensor, not {type(operand).__name__}\n  Make it one: torch.tensor({operand!r}).")
    elif name in _TENSOR_FIRST and not isinstance(operands[0], Tensor):
        raise no_overload(name, operands, ("Tensor input, Tensor other", "Tensor input, Number other"))
    elif len(operands) > 1 and not any(isinstance(o, Tensor) for o in operands) and (name not in _NUMBERS or not _are_numbers(operands)):
        raise no_overload(name, operands, ("Tensor input, Tensor other", "Number self, Tensor other", "Tensor input, Number other"))


def check_bool(name: str, operands: tuple) -> None:
    """Raises RuntimeError for sub, neg, positive and relu of bool: PyTorch gives them no meaning there."""
    flags = [o is True or o is False or getattr(o, "dtype", None) is dtypes.bool_ for o in operands]
    use = "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
    if name == "relu" and flags[0]:
        raise RuntimeError("Boolean inputs not supported for relu")
    if name == "positive" and flags[0]:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    if name == "neg" and flags[0]:
        raise RuntimeError(f"Negation, the `-` operator, on a bool tensor is not supported. {use}")
    if name == "sub" and all(flags[:2]):
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.")
    if name == "sub" and any(flags[:2]):
        raise RuntimeError(f"Subtraction, the `-` operator, with a bool tensor is not supported. {use}")


def no_overload(name: str, given, signatures) -> TypeError:
    """None of the operator's signatures fits the kinds of the given arguments."""
    kinds = ", ".join("Tensor" if isinstance(value, Tensor) else type(value).__name__ for value in given)
    lines = "\n".join(f" * ({signature})" for signature in signatures)
    return TypeError(f"{name}() received an invalid combination of arguments - got ({kinds}), but expected one of:\n{lines}")


def _guarded(name: str, call: Any):
    @functools.wraps(call)
    def checked(*args, **kwargs):
        if len(args) > 1 and not (isinstance(args[0], Tensor) and isinstance(args[1], Tensor)):
            check(name, args[:2])
        return call(*args, **kwargs)

    return checked


def guard() -> None:
    """Puts the check before the operators that have no fast path. Called once, when all families are loaded."""
    for name in (*_GUARDED, *(name for name in TABLE if "_polynomial_" in name or name in ("xlog1py", "zeta"))):
        entry = TABLE[name]
        entry.call = _guarded(f"special_{name}" if entry.namespace == "special" else name, entry.call)
