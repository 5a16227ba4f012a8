"""Short-time Fourier transforms: `stft` of overlapping frames of a signal, `istft` back, by overlap and add. The transforms themselves are fft.py's."""
from __future__ import annotations

import warnings
from typing import Any

from ..autograd import backward, no_grad, record, tracking
from ..tensor import Tensor
from . import fft
from .linalg_checks import are_tensors
from .table import TABLE, operator

# ---- frames -------------------------------------------------------------------------------------------------------------------------


def _frames(x: Tensor, size: int, step: int) -> Tensor:
    """Overlapping windows of `size` elements, `step` apart: a view [b, length] -> [b, frames, size], whose gradient overlaps and adds."""
    with no_grad():
        out = x.unfold(1, size, step)
    if tracking(x):
        record(FramesBackward0, (x,), out, length=x.shape[1], size=size, step=step)
    return out


def _overlap_add(frames: Tensor, length: int, step: int) -> Tensor:
    """The signal whose `_frames` these are, overlapping ones added: [b, frames, size] -> [b, length]."""
    b, count, size = frames.shape
    with no_grad():
        pieces = -(-size // step)  # of `step` elements each: those of one place in all frames lie one behind the other in the signal
        split = fft.resized(frames, 2, pieces * step).reshape(b, count, pieces, step)
        out = TABLE["zeros"].call(b, max((count + pieces - 1) * step, length), dtype=frames.dtype, device=frames.device)
        for k in range(pieces):
            out.narrow(1, k * step, count * step).add_(split.select(2, k).reshape(b, count * step))
        out = out.narrow(1, 0, length)
    if tracking(frames):
        record(OverlapAddBackward0, (frames,), out, size=size, step=step)
    return out


@backward("Frames")
def FramesBackward0(node, g):
    return (_overlap_add(g, node.length, node.step),)


@backward("OverlapAdd")
def OverlapAddBackward0(node, g):
    return (_frames(g, node.size, node.step),)


# ---- what both check ----------------------------------------------------------------------------------------------------------------


def _call(name: str, x: str, window: Tensor | None, **arguments: Any) -> str:
    """The call as PyTorch's errors quote it."""
    shown = "None" if window is None else f"torch.{window.dtype.scalar_name}Tensor{{{list(window.shape)}}}"
    parts = {}
    for key, value in arguments.items():
        parts[key] = value if value is None else int(value)
        if key == "win_length":
            parts["window"] = shown
    return f"{name}({x}, {', '.join(f'{key}={value}' for key, value in parts.items())})"


def _centred(window: Tensor, n_fft: int) -> Tensor:
    """A window with zeros on both sides, [n_fft]."""
    left = (n_fft - window.shape[0]) // 2
    return TABLE["constant_pad_nd"].call(window, [left, n_fft - window.shape[0] - left])


def _warn_rectangular() -> None:
    warnings.warn(
        "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. Other windows such as torch.hann_window or torch.hamming_window "
        "are recommended to reduce spectral leakage.To suppress this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`.",
        stacklevel=5,
    )


# ---- the transform ------------------------------------------------------------------------------------------------------------------


def _padded(x: Tensor, amount: int, mode: str) -> Tensor:
    """[b, length] with `amount` elements more on both sides."""
    if mode == "constant":
        return TABLE["constant_pad_nd"].call(x, [amount, amount])
    n = x.shape[1]
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}\n  One of 'constant', 'reflect', 'replicate', 'circular'.")
    if not n:
        raise RuntimeError(f"Expected 2D or 3D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {[1, *x.shape]}")
    if mode == "reflect" and amount >= n:
        raise RuntimeError(
            f"Argument #4: Padding size should be less than the corresponding input dimension, but got: padding ({amount}, {amount}) at dimension 2 of input {[1, *x.shape]}"
        )
    if mode == "circular" and amount > n:
        raise RuntimeError("Padding value causes wrapping around more than once.")
    places = TABLE["arange"].call(-amount, n + amount, device=x.device)
    if mode == "reflect":
        places = (n - 1) - ((n - 1) - places.abs()).abs()
    places = places.clamp(0, n - 1) if mode == "replicate" else places % n
    return x.index_select(1, places)


@operator("stft", flops=lambda args, kwargs, result: fft.transform_flops(result, args[1] if len(args) > 1 else kwargs["n_fft"], result.numel()))
def stft(
    input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None, return_complex=None, align_to_window=None
):
    """Fourier transforms of overlapping frames, windowed: [length] or [b, length] -> [b, frequencies, frames].

    Frames of n_fft samples start hop_length (n_fft // 4) apart; window: [win_length] (n_fft, at most), in their middle. center: the signal is padded by
    n_fft // 2 on both sides (pad_mode "reflect", "constant", "replicate", "circular"), so that frame t is centred at t * hop_length. onesided (real signals):
    the first n_fft // 2 + 1 frequencies. normalized: divided by √n_fft. return_complex=False gives real and imaginary parts in a last dimension of size 2.
    """
    are_tensors("stft", input=input)
    x = input
    if center:
        if align_to_window is not None:
            raise RuntimeError("stft align_to_window should only be set when center = false")
        if x.ndim < 3:
            signal = x.reshape(1, 1) if x.ndim == 0 else x.unsqueeze(0) if x.ndim == 1 else x
            x = _padded(signal, n_fft // 2, pad_mode)
            x = x if input.ndim == 2 else x.squeeze(0)
    hop, length = n_fft >> 2 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    if return_complex is None:
        if not (input.dtype.is_complex or window is not None and window.dtype.is_complex):
            raise RuntimeError("stft requires the return_complex parameter be given for real inputs, and will further require that return_complex=True in a future PyTorch release.")
        return_complex = True
    elif not return_complex:
        warnings.warn("stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors for all inputs.", stacklevel=4)

    def require(met: bool, sentence: str) -> None:
        if not met:
            call = _call(
                "stft", f"torch.{x.dtype.scalar_name}Tensor{list(x.shape)}", window,
                n_fft=n_fft, hop_length=hop, win_length=length, normalized=normalized, onesided=onesided, return_complex=return_complex, align_to_window=align_to_window,
            )  # fmt: skip
            raise RuntimeError(f"{call} : {sentence}")

    require(x.dtype.is_floating_point or x.dtype.is_complex, "expected a tensor of floating point or complex values")
    require(1 <= x.ndim <= 2, "expected a 1D or 2D tensor")
    signal = x if x.ndim == 2 else x.unsqueeze(0)  # [b, length]
    size = signal.shape[1]
    require(0 < n_fft <= size, f"expected 0 < n_fft < {size}, but got n_fft={length}")
    require(hop > 0, f"expected hop_length > 0, but got hop_length={hop}")
    require(0 < length <= n_fft, f"expected 0 < win_length <= n_fft, but got win_length={length}")
    require(
        window is None or window.ndim == 1 and window.shape[0] == length,
        f"expected a 1D window tensor of size equal to win_length={length}, but got window with size {None if window is None else list(window.shape)}",
    )
    if window is None:
        _warn_rectangular()
    if length < n_fft:
        window = _centred(TABLE["ones"].call(length, dtype=signal.dtype, device=signal.device) if window is None else window, n_fft)
        if align_to_window:
            signal = TABLE["constant_pad_nd"].call(signal, [(n_fft - length) // 2] * 2)
    frames = _frames(signal, n_fft, hop)  # [b, frames, n_fft]
    if window is not None:
        frames = frames * window
    if frames.dtype.is_complex and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    out = fft.of_frames(frames, normalized, not frames.dtype.is_complex if onesided is None else bool(onesided))
    out = out.transpose(1, 2)  # [b, frequencies, frames]
    out = out.squeeze(0) if input.ndim < 2 else out
    return out if return_complex else TABLE["view_as_real"].call(out)


@operator("istft", flops=lambda args, kwargs, result: fft.transform_flops(result, args[1] if len(args) > 1 else kwargs["n_fft"], args[0].numel()))
def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None, return_complex=False):
    """The signal whose `stft` this is, in the sense of least squares: [b, frequencies, frames] -> [b, length], real unless return_complex.

    Arguments are those of `stft`. length: how many samples to return; by default all that frames cover, without what `center` added. Raises RuntimeError
    where windows leave samples uncovered.
    """
    are_tensors("istft", input=input)
    hop, size = n_fft >> 2 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    if not input.dtype.is_complex:
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with return_complex=True.")
    if input.ndim < 2:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-input.ndim - 1}, {input.ndim}], but got -3)")

    def fail(sentence: str) -> None:
        call = _call(
            "istft", f"CPU{input.dtype.scalar_name}Type{list(input.shape)}", window,
            n_fft=n_fft, hop_length=hop, win_length=size, center=center, normalized=normalized, onesided=onesided, length=length, return_complex=return_complex,
        )  # fmt: skip
        raise RuntimeError(f"{call} {sentence}")

    frequencies, count = input.shape[-2:]
    half = frequencies != n_fft if onesided is None else bool(onesided)
    if not input.numel():
        fail(": input tensor cannot be empty.")
    if input.ndim > 3:
        fail(f": expected a tensor with 3 or 4 dimensions, but got {input.ndim + 1}")
    if frequencies != (n_fft // 2 + 1 if half else n_fft):
        wanted = "n_fft / 2 + 1 when onesided=True" if half else "n_fft when onesided=False"
        fail(f": expected the frequency dimension (3rd to the last) of the input tensor to match {wanted}, but got {frequencies}")
    if not 0 < hop <= size:
        fail(": expected 0 < hop_length <= win_length")
    if not 0 < size <= n_fft:
        fail(": expected 0 < win_length <= n_fft")
    if window is not None and (window.ndim != 1 or window.shape[0] != size):
        fail(": Invalid window shape. window has to be 1D and length of `win_length`")
    if return_complex:
        if half:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
    elif window is not None and window.dtype.is_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    weight = TABLE["ones"].call(size, dtype=input.dtype.to_real(), device=input.device) if window is None else window
    weight = weight if size == n_fft else _centred(weight, n_fft)

    spectra = (input if input.ndim == 3 else input.unsqueeze(0)).transpose(1, 2)  # [b, frames, frequencies]
    frames = fft.frames_of(spectra, n_fft, normalized, bool(return_complex)) * weight  # [b, frames, n_fft]
    covered = n_fft + hop * (count - 1)
    y = _overlap_add(frames, covered, hop)
    cover = _overlap_add(weight.pow(2).expand(1, count, n_fft), covered, hop)  # [1, covered]
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else covered - n_fft // 2 if center else covered
    kept = max(min(end, covered) - start, 0)
    y, cover = y.narrow(1, start, kept), cover.narrow(1, start, kept)
    if not cover.is_meta and bool(cover.abs().min() < 1e-11):
        fail("window overlap add min: 1\n  Some samples lie under no window, or under zeros of it: use a smaller hop_length, another window, or center=True.")
    y = y / cover
    y = y if input.ndim == 3 else y.squeeze(0)
    if end > covered:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. Please check your center and hop_length settings.", stacklevel=4
        )
        y = TABLE["constant_pad_nd"].call(y, [0, end - covered])
    return y
