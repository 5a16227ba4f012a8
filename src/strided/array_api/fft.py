"""The standard's extension for Fourier transforms (`xp.fft`), over torch.fft's operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtypes import DType
from ..ops import fft as _fft  # fills the table
from ..ops.table import TABLE
from ..tensor import Tensor

assert _fft

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn"]


def _call(name: str, *args: Any, **kwargs: Any) -> Any:
    return TABLE[f"fft_{name}"].call(*args, **kwargs)


def _one(name: str) -> Any:
    def transform(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return _call(name, x, n, axis, norm)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"`torch.fft.{name}` along an axis, of n points."
    return transform


def _several(name: str) -> Any:
    def transform(x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward") -> Tensor:
        return _call(name, x, None if s is None else tuple(s), None if axes is None else tuple(axes), norm)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"`torch.fft.{name}` along axes (None: all, or the last len(s)), of s points."
    return transform


fft, ifft, rfft, irfft, hfft, ihfft = (_one(name) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = (_several(name) for name in ("fftn", "ifftn", "rfftn", "irfftn"))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Frequencies of `fft`'s entries for samples d apart."""
    return _call("fftfreq", n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Frequencies of `rfft`'s entries for samples d apart."""
    return _call("rfftfreq", n, d, dtype=dtype, device=device)


def _axes(axes: int | Sequence[int] | None) -> Any:
    return axes if axes is None or isinstance(axes, int) else tuple(axes)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Frequency 0 in the middle."""
    return _call("fftshift", x, _axes(axes))


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Undoes `fftshift`."""
    return _call("ifftshift", x, _axes(axes))
