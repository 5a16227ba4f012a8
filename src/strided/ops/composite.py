"""Small operators that are sentences over others: their gradients, dtypes and meta results follow from what they call.

Holds what fits in a few lines and belongs to no family.
"""
from __future__ import annotations

from ..tensor import Tensor
from .table import TABLE, operator


def _call(name: str):
    return TABLE[name].call


@operator("trace", autocast="float32")
def trace(input):
    """Sum of the diagonal of a matrix: [n, m] -> []. Raises RuntimeError for another number of dimensions."""
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    return _call("sum")(_call("diagonal")(input))


@operator("dist")
def dist(input, other, p=2):
    """The p-norm of input - other."""
    return _call("norm")(_call("sub")(input, other), p)


@operator("fill_diagonal_", function=False)
def fill_diagonal_(input, fill_value, wrap=False):
    """Writes a number along the main diagonal, in place; with `wrap`, a tall matrix's diagonal starts anew below. [n, m, …]"""
    if input.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if input.ndim > 2 and len(set(input.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    rows, columns = input.shape[0], input.shape[1]
    step = sum(input.stride())
    length = min(input.shape)
    if wrap and input.ndim == 2 and rows > columns + 1:
        for start in range(0, rows, columns + 1):
            fill_diagonal_(input[start : start + columns], fill_value)
        return input
    _call("fill_")(_call("as_strided")(input, (length,), (step,), input.storage_offset()), fill_value)
    return input


@operator("is_nonzero")
def is_nonzero(input):
    """Whether the one element of a tensor is not zero. Raises RuntimeError unless there is exactly one."""
    if input.numel() == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    return bool(input)


@operator("is_same_size")
def is_same_size(input, other):
    """Whether both have the same shape."""
    return input.shape == other.shape


def _trapezoids(y, x, dx, dim):
    """The area over each step along `dim`: [.., n, ..] -> [.., n - 1, ..]"""
    n = y.shape[dim]
    left, right = y.narrow(dim, 0, max(n - 1, 0)), y.narrow(dim, min(1, n), max(n - 1, 0))
    if x is None:
        return (left + right) * ((1 if dx is None else dx) / 2)
    steps = x.diff(dim=dim if x.ndim > 1 else -1)
    if x.ndim == 1 and y.ndim > 1:
        shape = [1] * y.ndim
        shape[dim] = steps.shape[0]
        steps = steps.view(shape)
    return (left + right) * steps / 2


@operator("trapezoid", method=False, aliases=("trapz",))
def trapezoid(y, x=None, *, dx=None, dim=-1):
    """The integral of y along `dim` by the trapezoidal rule, at points x or dx apart (default 1)."""
    return _trapezoids(y, x, dx, dim).sum(dim)


@operator("cumulative_trapezoid", method=False)
def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1):
    """The running integral of y along `dim` by the trapezoidal rule. [.., n, ..] -> [.., n - 1, ..]"""
    return _trapezoids(y, x, dx, dim).cumsum(dim)


@operator("cosine_similarity", method=False)
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """x1·x2 / (|x1| |x2|) along `dim`, each length at least eps."""
    norm = _call("vector_norm")
    a, b = norm(x1, 2, dim, True).clamp(min=eps), norm(x2, 2, dim, True).clamp(min=eps)
    return ((x1 / a) * (x2 / b)).sum(dim)


def _method_where(self: Tensor, condition, other):
    """`x.where(condition, other)`: x where the condition holds."""
    return _call("where")(condition, self, other)


Tensor.where = _method_where  # type: ignore[attr-defined]
