"""Fourier transforms, as torch.fft has them. Written by tools/stubs.py."""
from builtins import bool as _bool, bytes as _bytes, complex as _complex, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterator
from typing import Any, overload

from strided.tensor import Tensor as Tensor

def fft(input, n=None, dim=-1, norm=None, *, out=None) -> Tensor:
    r"""Discrete Fourier transform: Σ x_j exp(-2πi jk / n). Along `dim` the result has n entries: the input is cut, or filled with zeros, to fit."""
def fft2(input, s=None, dim=..., norm=None, *, out=None) -> Tensor:
    r"""Discrete Fourier transform: Σ x_j exp(-2πi jk / n). Along two dimensions the result has the sizes `s`: the input is cut, or filled with zeros, to fit."""
def fftfreq(n, d=..., *, out=None, dtype=None, layout=None, device=None, requires_grad=False) -> Tensor:
    r"""Frequencies of `fft`'s n entries in cycles a unit, for samples d units apart: 0, 1, …, then the negative ones, over n d. [n]"""
def fftn(input, s=None, dim=None, norm=None, *, out=None) -> Tensor:
    r"""Discrete Fourier transform: Σ x_j exp(-2πi jk / n). Along all dimensions, or those given, the result has the sizes `s`: the input is cut, or filled with zeros, to fit."""
def fftshift(input, dim=None) -> Tensor:
    r"""The entry of frequency 0 moved from the front to the middle, along `dim` (one or several; None: all)."""
def hfft(input, n=None, dim=-1, norm=None, *, out=None) -> Tensor:
    r"""Fourier transform, real, of what has conjugate symmetry, given by its first half of m entries; n is 2 (m - 1) by default. Along `dim` the result has n entries: the input is cut, or filled with zeros, to fit."""
def hfft2(input, s=None, dim=..., norm=None, *, out=None) -> Tensor:
    r"""Fourier transform, real, of what has conjugate symmetry, given by its first half of m entries; n is 2 (m - 1) by default. Along two dimensions the result has the sizes `s`: the input is cut, or filled with zeros, to fit."""
def hfftn(input, s=None, dim=None, norm=None, *, out=None) -> Tensor:
    r"""Fourier transform, real, of what has conjugate symmetry, given by its first half of m entries; n is 2 (m - 1) by default. Along all dimensions, or those given, the result has the sizes `s`: the input is cut, or filled with zeros, to fit."""
def ifft(input, n=None, dim=-1, norm=None, *, out=None) -> Tensor:
    r"""Inverse discrete Fourier transform: Σ x_j exp(2πi jk / n) / n. Along `dim` the result has n entries: the input is cut, or filled with zeros, to fit."""
def ifft2(input, s=None, dim=..., norm=None, *, out=None) -> Tensor:
    r"""Inverse discrete Fourier transform: Σ x_j exp(2πi jk / n) / n. Along two dimensions the result has the sizes `s`: the input is cut, or filled with zeros, to fit."""
def ifftn(input, s=None, dim=None, norm=None, *, out=None) -> Tensor:
    r"""Inverse discrete Fourier transform: Σ x_j exp(2πi jk / n) / n. Along all dimensions, or those given, the result has the sizes `s`: the input is cut, or filled with zeros, to fit."""
def ifftshift(input, dim=None) -> Tensor:
    r"""Undoes `fftshift`."""
def ihfft(input, n=None, dim=-1, norm=None, *, out=None) -> Tensor:
    r"""Inverse of `hfft`: of a real input the first n // 2 + 1 entries (of the last dimension). Along `dim` the result has n entries: the input is cut, or filled with zeros, to fit."""
def ihfft2(input, s=None, dim=..., norm=None, *, out=None) -> Tensor:
    r"""Inverse of `hfft`: of a real input the first n // 2 + 1 entries (of the last dimension). Along two dimensions the result has the sizes `s`: the input is cut, or filled with zeros, to fit."""
def ihfftn(input, s=None, dim=None, norm=None, *, out=None) -> Tensor:
    r"""Inverse of `hfft`: of a real input the first n // 2 + 1 entries (of the last dimension). Along all dimensions, or those given, the result has the sizes `s`: the input is cut, or filled with zeros, to fit."""
def irfft(input, n=None, dim=-1, norm=None, *, out=None) -> Tensor:
    r"""Inverse of `rfft`, real; n is 2 (m - 1) by default, for m entries (of the last dimension). Along `dim` the result has n entries: the input is cut, or filled with zeros, to fit."""
def irfft2(input, s=None, dim=..., norm=None, *, out=None) -> Tensor:
    r"""Inverse of `rfft`, real; n is 2 (m - 1) by default, for m entries (of the last dimension). Along two dimensions the result has the sizes `s`: the input is cut, or filled with zeros, to fit."""
def irfftn(input, s=None, dim=None, norm=None, *, out=None) -> Tensor:
    r"""Inverse of `rfft`, real; n is 2 (m - 1) by default, for m entries (of the last dimension). Along all dimensions, or those given, the result has the sizes `s`: the input is cut, or filled with zeros, to fit."""
def rfft(input, n=None, dim=-1, norm=None, *, out=None) -> Tensor:
    r"""Fourier transform of a real input: the first n // 2 + 1 entries (of the last dimension), whose conjugates the others are. Along `dim` the result has n entries: the input is cut, or filled with zeros, to fit."""
def rfft2(input, s=None, dim=..., norm=None, *, out=None) -> Tensor:
    r"""Fourier transform of a real input: the first n // 2 + 1 entries (of the last dimension), whose conjugates the others are. Along two dimensions the result has the sizes `s`: the input is cut, or filled with zeros, to fit."""
def rfftfreq(n, d=..., *, out=None, dtype=None, layout=None, device=None, requires_grad=False) -> Tensor:
    r"""Frequencies of `rfft`'s entries in cycles a unit, for n samples d units apart: 0, 1, … over n d. [n // 2 + 1]"""
def rfftn(input, s=None, dim=None, norm=None, *, out=None) -> Tensor:
    r"""Fourier transform of a real input: the first n // 2 + 1 entries (of the last dimension), whose conjugates the others are. Along all dimensions, or those given, the result has the sizes `s`: the input is cut, or filled with zeros, to fit."""
