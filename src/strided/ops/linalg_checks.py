"""What linear algebra's operators ask of their arguments, and the errors they raise, in PyTorch's words. No computation."""
from __future__ import annotations

from typing import Any

from .. import dtypes
from ..tensor import Tensor

COMPUTED = frozenset((dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128))  # what LAPACK has routines for


class LinAlgError(RuntimeError):
    """A factorisation or a solution that does not exist for the given values (a singular matrix, for example)."""


LinAlgError.__module__, LinAlgError.__qualname__, LinAlgError.__name__ = "torch._C", "_LinAlgError", "_LinAlgError"


def are_tensors(name: str, **arguments: Any) -> None:
    """TypeError for what is no tensor."""
    for position, (argument, value) in enumerate(arguments.items(), 1):
        if not isinstance(value, Tensor):
            raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}")


def matrices(name: str, A: Tensor, argument: str = "A") -> None:
    """RuntimeError for a vector or a number."""
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.\n  shape {list(A.shape)}: matrices are the last two dimensions, [*, m, n].")


def square(name: str, A: Tensor, argument: str = "A") -> None:
    """RuntimeError for what is no stack of square matrices."""
    matrices(name, A, argument)
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"{name}: {argument} must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices")


def floating(name: str, A: Tensor, low: bool = True) -> None:
    """RuntimeError for integers, and without `low` for 16-bit floats."""
    if not (A.dtype.is_floating_point or A.dtype.is_complex):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {A.dtype.scalar_name}\n  Convert it first: x.float().")
    if not low and A.dtype.to_real().itemsize < 4:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {A.dtype.scalar_name}\n  Convert it first: x.float().")


def computed(kernel: str, A: Tensor) -> None:
    """NotImplementedError for elements other than float32, float64 and complex numbers made of these."""
    if A.dtype not in COMPUTED:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{A.dtype.scalar_name}'\n  Convert it first: x.float().")


def same_dtype(name: str, A: Tensor, B: Tensor) -> None:
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type {A.dtype.scalar_name} and B of type {B.dtype.scalar_name} instead\n"
            f"  Convert one of them: B.to({A.dtype})."
        )


def fits(name: str, A: Tensor, B: Tensor, left: bool) -> None:
    """RuntimeError where AX = B (or XA = B) has no such shapes."""
    if A.shape[-1] != B.shape[-2 if left else -1]:
        a, b = ("x".join(map(str, t.shape[-2:])) for t in (A, B))
        raise RuntimeError(f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} ({a} and {b})")


def first_failure(info: Tensor) -> tuple[str, int] | None:
    """("(Batch element i): " or "", number) of the first matrix whose number in `info` is not 0."""
    if info.is_meta:
        return None
    if info.ndim == 0:
        number = info.item()
        return ("", number) if number else None
    for i, number in enumerate(info.flatten().tolist()):
        if number:
            return f"(Batch element {i}): ", number
    return None
