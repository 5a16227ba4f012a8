"""`torch.signal.windows`: window functions of M points, symmetric, or periodic with `sym=False` (as if one point longer, the last left out).

All are made of PyTorch's operators in PyTorch's order. Keywords of all: dtype (float32 or float64), layout, device, requires_grad. The older functions
at the top level (`torch.hann_window`, …) are in ops/windows.py.
"""
from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .. import dtypes
from ..formats import strided
from ..ops.create import arange, empty, linspace, ones, tensor
from ..ops.special import i0
from ..ops.table import TABLE
from ..refused import missing
from ..tensor import Tensor

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser", "nuttall"]


def _options(name: str, M: int, dtype: Any, layout: Any, device: Any, requires_grad: bool) -> dict[str, Any]:
    """Checked keywords of a factory. ValueError for a negative M, another layout or dtype."""
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype is not dtypes.float32 and dtype is not dtypes.float64:
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return {"dtype": dtype, "device": device, "requires_grad": requires_grad}


def _intervals(M: int, sym: bool) -> int:
    """Steps from the first point to the last of the symmetric window."""
    return M - 1 if sym else M


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype=None, layout=strided, device=None, requires_grad: bool = False) -> Tensor:
    """exp(-|i - center| / tau), center in the middle unless given (periodic windows only). [M]"""
    options = _options("exponential", M, dtype, layout, device, requires_grad)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return empty(0, **options)
    if center is None:
        center = (M if not sym and M > 1 else M - 1) / 2.0
    scale = 1 / tau
    x = linspace(-center * scale, (-center + (M - 1)) * scale, M, **options)
    return (-x.abs()).exp()


def cosine(M: int, *, sym: bool = True, dtype=None, layout=strided, device=None, requires_grad: bool = False) -> Tensor:
    """sin(π (i + 0.5) / M), half a wave. [M]"""
    options = _options("cosine", M, dtype, layout, device, requires_grad)
    if M == 0:
        return empty(0, **options)
    step = math.pi / (M + 1 if not sym and M > 1 else M)
    return linspace(0.5 * step, (0.5 + (M - 1)) * step, M, **options).sin()


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype=None, layout=strided, device=None, requires_grad: bool = False) -> Tensor:
    """exp(-x² / 2 std²), x the distance from the middle in points. [M]"""
    options = _options("gaussian", M, dtype, layout, device, requires_grad)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return empty(0, **options)
    start, scale = -(M if not sym and M > 1 else M - 1) / 2.0, 1 / (std * math.sqrt(2))
    x = linspace(start * scale, (start + (M - 1)) * scale, M, **options)
    return (-(x**2)).exp()


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype=None, layout=strided, device=None, requires_grad: bool = False) -> Tensor:
    """I₀(√(beta² - x²)) / I₀(beta), x from -beta to beta, I₀ Bessel's function. [M]"""
    options = _options("kaiser", M, dtype, layout, device, requires_grad)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M == 0:
        return empty(0, **options)
    if M == 1:
        return ones(1, **options)
    # The ends are rounded to the dtype, so that no point lies outside them, where the root does not exist.
    edge = tensor(beta, dtype=options["dtype"], device=None if str(device) == "meta" else device)
    end = TABLE["minimum"].call(edge, -edge + (M - 1) * (2.0 * edge / _intervals(M, sym)))
    x = linspace(-edge, end, M, **options)
    return i0((edge * edge - x.pow(2)).sqrt()) / i0(edge)


def bartlett(M: int, *, sym: bool = True, dtype=None, layout=strided, device=None, requires_grad: bool = False) -> Tensor:
    """1 - |x|, x from -1 to 1: a triangle. [M]"""
    options = _options("bartlett", M, dtype, layout, device, requires_grad)
    if M < 2:
        return (ones if M else empty)(M, **options)
    return 1 - linspace(-1, -1 + (M - 1) * (2 / _intervals(M, sym)), M, **options).abs()


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, dtype=None, layout=strided, device=None, requires_grad: bool = False) -> Tensor:
    """a₀ - a₁ cos(x) + a₂ cos(2x) - …, x from 0 to 2π. [M]"""
    options = _options("general_cosine", M, dtype, layout, device, requires_grad)
    if M < 2:
        return (ones if M else empty)(M, **options)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    x = linspace(0, (M - 1) * (2 * math.pi / _intervals(M, sym)), M, **options)
    coefficients = tensor([(-1) ** i * weight for i, weight in enumerate(a)], **options)  # [terms]
    order = arange(coefficients.shape[0], **options)
    return (coefficients.unsqueeze(-1) * (order.unsqueeze(-1) * x).cos()).sum(0)  # [terms, M] -> [M]


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype=None, layout=strided, device=None, requires_grad: bool = False) -> Tensor:
    """alpha - (1 - alpha) cos(x), x from 0 to 2π. [M]"""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hamming(M: int, *, sym: bool = True, dtype=None, layout=strided, device=None, requires_grad: bool = False) -> Tensor:
    """0.54 - 0.46 cos(x), x from 0 to 2π. [M]"""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M: int, *, sym: bool = True, dtype=None, layout=strided, device=None, requires_grad: bool = False) -> Tensor:
    """0.5 - 0.5 cos(x), x from 0 to 2π. [M]"""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def blackman(M: int, *, sym: bool = True, dtype=None, layout=strided, device=None, requires_grad: bool = False) -> Tensor:
    """0.42 - 0.5 cos(x) + 0.08 cos(2x), x from 0 to 2π. [M]"""
    _options("blackman", M, dtype, layout, device, requires_grad)
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def nuttall(M: int, *, sym: bool = True, dtype=None, layout=strided, device=None, requires_grad: bool = False) -> Tensor:
    """Four cosines chosen for small side lobes: 0.3635819 - 0.4891775 cos(x) + 0.1365995 cos(2x) - 0.0106411 cos(3x), x from 0 to 2π. [M]"""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


__getattr__ = missing("torch.signal.windows")
