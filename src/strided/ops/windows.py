"""Window functions of the top level: hann_window, hamming_window, blackman_window, bartlett_window, kaiser_window.

Each is made of PyTorch's steps in PyTorch's order, in the dtype asked for, so that values agree to the last bits. Those of `torch.signal.windows` are in signal/windows.py.
"""
from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..autograd import no_grad
from ..formats import strided
from ..tensor import Tensor
from .create import arange, empty, finish, ones, rounded
from .table import TABLE, operator
from .views import integer


def _positions(name: str, length: Any, periodic: bool, dtype: Any, layout: Any, device: Any) -> tuple[Tensor, int, bool]:
    """(0, 1, 2, …, number of points, whether they are the window already), with PyTorch's checks. A periodic window is a longer symmetric one without its last point."""
    length = integer(name, "window_length", length)
    if layout is not None and layout is not strided:
        raise RuntimeError(f"{name} is not implemented for sparse types, got: {layout}\n  Tensors here are dense: layout=torch.strided.")
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    if dtype.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{dtype.scalar_name}'\n  A window is real: make it in {dtype.to_real()}.")
    if length < 2:
        return (ones if length else empty)(length, dtype=dtype, device=device), length, True
    return arange(length + bool(periodic), dtype=dtype, device=device), length, False


def _window(name: str, doc: str, shape: Any) -> Any:
    """Registers a window whose points are `shape(positions, step)`, with step = 1 / (points - 1) of the symmetric window."""

    def window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
        with no_grad():
            x, length, done = _positions(name, window_length, periodic, dtype, layout, device)
            out = x if done else shape(x, x.shape[0] - 1).narrow(0, 0, length)
        return finish(name, out, requires_grad)

    window.__doc__ = f"{doc} [window_length]; symmetric unless `periodic` (as if one point longer, the last left out)."
    return operator(name, method=False, flops=lambda args, kwargs, result: 4 * result.numel())(window)


def _number(x: Tensor, value: float) -> float:
    """A factor or summand as PyTorch's windows round it: to the dtype, 16 bits included."""
    return rounded(x.dtype, value)


def _hamming(x: Tensor, intervals: int, alpha: float, beta: float) -> Tensor:
    return (x * _number(x, math.pi * 2 / intervals)).cos() * _number(x, -beta) + _number(x, alpha)


def _blackman(x: Tensor, intervals: int) -> Tensor:
    x = x * _number(x, math.pi / intervals)
    return (x * 4).cos() * _number(x, 0.08) - (x * 2).cos() * 0.5 + _number(x, 0.42)


def _bartlett(x: Tensor, intervals: int) -> Tensor:
    x = x * _number(x, 2.0 / intervals)
    first = (intervals >> 1) + 1  # points up to the top
    falling = x.narrow(0, first, x.shape[0] - first)
    falling.copy_(falling * -1 + 2)
    return x


hann_window = _window("hann_window", "0.5 - 0.5 cos(2πi / N).", lambda x, intervals: _hamming(x, intervals, 0.5, 0.5))
blackman_window = _window("blackman_window", "0.42 - 0.5 cos(2πi / N) + 0.08 cos(4πi / N).", _blackman)
bartlett_window = _window("bartlett_window", "A triangle from 0 up to 1 and down to 0.", _bartlett)


@operator("hamming_window", method=False, flops=lambda args, kwargs, result: 4 * result.numel())
def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """alpha - beta cos(2πi / N). [window_length]; symmetric unless `periodic` (as if one point longer, the last left out)."""
    with no_grad():
        x, length, done = _positions("hamming_window", window_length, periodic, dtype, layout, device)
        out = x if done else _hamming(x, x.shape[0] - 1, alpha, beta).narrow(0, 0, length)
    return finish("hamming_window", out, requires_grad)


@operator("kaiser_window", method=False, flops=lambda args, kwargs, result: 8 * result.numel())
def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """I₀(beta √(1 - (2i / N - 1)²)) / I₀(beta), I₀ Bessel's function. [window_length]; symmetric unless `periodic` (as if one point longer, the last left out)."""
    with no_grad():
        x, length, done = _positions("kaiser_window", window_length, periodic, dtype, layout, device)
        out = x if done else _kaiser(x, beta).narrow(0, 0, length)
    return finish("kaiser_window", out, requires_grad)


def _kaiser(x: Tensor, beta: float) -> Tensor:
    dtype, i0 = x.dtype, TABLE["i0"].call
    x = x.to(dtype.compute)
    middle = (x.shape[0] - 1) / 2
    inside = (1 - ((x - middle) / middle) ** 2).abs()  # positions that rounding pushed beyond the end count from it
    return (i0(inside.sqrt() * beta) / i0(x.new_full((), beta))).to(dtype)
