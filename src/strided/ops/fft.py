"""`torch.fft`'s operators: discrete Fourier transforms along one or several dimensions, their gradients (transforms again), frequencies and shifts.

Three transforms carry all others: complex to complex, real to complex, complex to real (NumPy's pocketfft, in the operand's precision).
Short-time transforms are in stft.py.
"""
from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..autograd import backward, record, tracking
from ..layout import Layout, wrap_dim
from ..tensor import Spec, Tensor, empty_of
from . import host
from .create import finish
from .linalg_checks import are_tensors
from .table import TABLE, operator, write_out
from .views import integer

# ---- the three transforms -----------------------------------------------------------------------------------------------------------

# How sums are scaled: not at all, by 1/sqrt(N), by 1/N. In NumPy's words for a transform whose exponent is negative (forward) or positive.
_NONE, _ROOT, _WHOLE = range(3)
_NUMPY_NORM = {True: ("backward", "ortho", "forward"), False: ("forward", "ortho", "backward")}


def _fresh(x: Tensor, shape: tuple, dtype: dtypes.DType, dims: tuple) -> Tensor:
    """An uninitialised result of `shape`, the transformed dimensions innermost, the others in the order of x's strides: where a transform finds its lines whole."""
    strides, order = [0] * len(shape), sorted((d for d in range(len(shape)) if d not in dims), key=lambda d: -x.stride(d))
    step = 1
    for d in reversed((*order, *dims)):
        strides[d], step = step, step * max(shape[d], 1)
    return empty_of(Spec.of(Layout.of(shape, strides), dtype, x.device))


def _by_stride(x: Tensor, dims: tuple) -> tuple:
    return tuple(sorted(dims, key=lambda d: -x.stride(d)))


def _transform(name: str, x: Tensor, out: Tensor, **arguments: Any) -> Tensor:
    """numpy.fft's function `name` of x, written into `out`."""
    if out.is_meta or not out.numel():
        return out
    import numpy

    target, function = host.array(out), getattr(numpy.fft, name)
    if numpy.lib.NumpyVersion(numpy.__version__) >= "2.0.0":
        function(host.array(x), out=target, **arguments)
    else:  # always in float64, without out=
        target[...] = function(host.array(x), **arguments)
    return out


def _c2c(x: Tensor, dims: tuple, scale: int, forward: bool) -> Tensor:
    """Sums of x exp(∓2πi jk / n) along `dims`, complex to complex; the shape stays."""
    if not dims:
        return TABLE["clone"].call(x)
    out = _fresh(x, tuple(x.shape), x.dtype, _by_stride(x, dims))
    _transform("fftn" if forward else "ifftn", x, out, axes=dims, norm=_NUMPY_NORM[forward][scale])
    if tracking(x):
        record(FftC2CBackward0, (x,), out, dims=dims, scale=scale, forward=forward)
    return out


@backward("FftC2C")
def FftC2CBackward0(node, g):
    return (_c2c(g, node.dims, node.scale, not node.forward),)


def _r2c(x: Tensor, dims: tuple, scale: int, onesided: bool) -> Tensor:
    """Forward transform of real x along `dims`; `onesided`: of the last of them only the first n // 2 + 1 entries, of which the rest are conjugates."""
    shape, last = list(x.shape), dims[-1]
    if onesided:
        shape[last] = shape[last] // 2 + 1
    out = _fresh(x, tuple(shape), x.dtype.to_complex(), (*_by_stride(x, dims[:-1]), last))
    _transform("rfftn" if onesided else "fftn", x, out, axes=dims, norm=_NUMPY_NORM[True][scale])
    if tracking(x):
        record(FftR2CBackward0, (x,), out, dims=dims, scale=scale, onesided=onesided, size=x.shape[last])
    return out


@backward("FftR2C")
def FftR2CBackward0(node, g):
    """The real part of the inverse transform; entries that `onesided` left out got no gradient."""
    if node.onesided:
        g = resized(g, node.dims[-1], node.size)
    return (_c2c(g, node.dims, node.scale, False).real,)


def _c2r(x: Tensor, dims: tuple, scale: int, size: int) -> Tensor:
    """Inverse of the onesided transform: complex x, size // 2 + 1 entries along the last of `dims`, to real, `size` entries."""
    last, result = dims[-1], x
    if len(dims) > 1:
        result = _transform("ifftn", x, _fresh(x, tuple(x.shape), x.dtype, _by_stride(x, dims[:-1])), axes=dims[:-1], norm=_NUMPY_NORM[False][scale])
    shape = (*x.shape[:last], size, *x.shape[last + 1 :])
    out = _fresh(result, shape, x.dtype.to_real(), (last,))
    _transform("irfft", result, out, n=size, axis=last, norm=_NUMPY_NORM[False][scale])
    if tracking(x):
        record(FftC2RBackward0, (x,), out, dims=dims, scale=scale)
    return out


@backward("FftC2R")
def FftC2RBackward0(node, g):
    """The onesided transform, doubled where an entry stands for its conjugate too."""
    last = node.dims[-1]
    out = _r2c(g, node.dims, node.scale, True)
    paired = g.shape[last] - out.shape[last]
    if paired:
        weights = TABLE["ones"].call(out.shape[last], dtype=g.dtype, device=g.device)
        weights[1 : 1 + paired] = 2
        out = out * weights.reshape(-1, *[1] * (out.ndim - 1 - last))
    return (out,)


# ---- arguments ----------------------------------------------------------------------------------------------------------------------


def _promoted(x: Tensor, to_complex: bool = False) -> Tensor:
    """x in a dtype that is transformed: integers as the default float, and on demand as complex. RuntimeError for 16-bit floats."""
    dtype = x.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = dtypes.get_default_dtype()
    if dtype.to_real() not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(f"Unsupported dtype {dtype.scalar_name}\n  Convert it first: x.float(), or x.to(torch.complex64).")
    dtype = dtype.to_complex() if to_complex else dtype
    return x if dtype is x.dtype else TABLE["to"].call(x, dtype)


def _scale(norm: str | None, forward: bool) -> int:
    if norm is None or norm == "backward":
        return _NONE if forward else _WHOLE
    if norm == "forward":
        return _WHOLE if forward else _NONE
    if norm == "ortho":
        return _ROOT
    raise RuntimeError(f'Invalid normalization mode: "{norm}"\n  One of "backward", "forward", "ortho".')


def _points(n: int) -> int:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def _dim(name: str, dim: Any, x: Tensor) -> int:
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(integer(name, "dim", dim), x.ndim)


def resized(x: Tensor, dim: int, n: int) -> Tensor:
    """The first n entries along a dimension, zeros where there are fewer."""
    missing = n - x.shape[dim]
    if missing < 0:
        return x.narrow(dim, 0, n)
    return x if not missing else TABLE["constant_pad_nd"].call(x, [0, 0] * (x.ndim - 1 - dim) + [0, missing])


def _dims_and_sizes(name: str, x: Tensor, s: Any, dim: Any) -> tuple[tuple, list]:
    """(dimensions, sizes) to transform, checked: by default all dimensions, or the last len(s); a size of -1 is the dimension's own."""
    as_ints = lambda argument, value: [integer(name, argument, v) for v in (value if isinstance(value, (tuple, list)) else (value,))]
    if dim is not None:
        dims = [wrap_dim(d, x.ndim) if x.ndim else _dim(name, d, x) for d in as_ints("dim", dim)]
        if len(set(dims)) < len(dims):
            raise RuntimeError("FFT dims must be unique")
    if s is not None:
        s = as_ints("s", s)
        if dim is not None and len(dims) != len(s):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        if len(s) > x.ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {x.ndim} dimensions.")
        if dim is None:
            dims = list(range(x.ndim - len(s), x.ndim))
    elif dim is None:
        dims = list(range(x.ndim))
    return tuple(dims), [-1] * len(dims) if s is None else s


def _shaped(x: Tensor, dims: tuple, sizes: list) -> Tensor:
    """x with the sizes given (-1: its own) along `dims`."""
    for d, n in zip(dims, sizes):
        x = resized(x, d, _points(x.shape[d] if n == -1 else n))
    return x


# ---- one dimension ------------------------------------------------------------------------------------------------------------------


def _fft(name, x, n, dim, norm, forward):
    d = _dim(name, dim, x)
    x = _promoted(x)
    x = resized(x, d, _points(x.shape[d] if n is None else integer(name, "n", n)))
    scale = _scale(norm, forward)
    if x.dtype.is_complex:
        return _c2c(x, (d,), scale, forward)
    out = _r2c(x, (d,), scale, False)
    return out if forward else TABLE["conj"].call(out)


def _real(name, x):
    if x.dtype.is_complex:
        raise RuntimeError(f"{name[4:]} expects a real input tensor, but got {x.dtype.scalar_name}")
    return _promoted(x)


def _rfft(name, x, n, dim, norm, forward):
    x = _real(name, x)
    d = _dim(name, dim, x)
    x = resized(x, d, _points(x.shape[d] if n is None else integer(name, "n", n)))
    out = _r2c(x, (d,), _scale(norm, forward), True)
    return out if forward else TABLE["conj"].call(out)


def _irfft(name, x, n, dim, norm, forward):
    x = _promoted(x, True)
    d = _dim(name, dim, x)
    n = _points(2 * (x.shape[d] - 1) if n is None else integer(name, "n", n))
    x = resized(x, d, n // 2 + 1)
    return _c2r(TABLE["conj"].call(x) if forward else x, (d,), _scale(norm, forward), n)


# ---- several dimensions -------------------------------------------------------------------------------------------------------------


def _fftn(name, x, s, dim, norm, forward):
    dims, sizes = _dims_and_sizes(name, x, s, dim)
    x = _shaped(_promoted(x, True), dims, sizes)
    return _c2c(x, dims, _scale(norm, forward), forward)


def _at_least_one(name, dims):
    if not dims:
        raise RuntimeError(f"{name[4:].replace('2', 'n')} must transform at least one axis")


def _rfftn(name, x, s, dim, norm, forward):
    if x.dtype.is_complex:
        if name == "fft_rfftn" or name == "fft_rfft2":
            raise RuntimeError(f"rfftn expects a real-valued input tensor, but got {x.dtype.scalar_name}")
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {x.dtype.scalar_name}")
    dims, sizes = _dims_and_sizes(name, x, s, dim)
    _at_least_one(name, dims)
    x, scale = _shaped(_promoted(x), dims, sizes), _scale(norm, forward)
    if forward:
        return _r2c(x, dims, scale, True)
    out = TABLE["conj_physical"].call(_r2c(x, dims[-1:], scale, True))
    return _c2c(out, dims[:-1], scale, False) if len(dims) > 1 else out


def _irfftn(name, x, s, dim, norm, forward):
    dims, sizes = _dims_and_sizes(name, x, s, dim)
    _at_least_one(name, dims)
    n = _points(2 * (x.shape[dims[-1]] - 1) if sizes[-1] == -1 else sizes[-1])
    x, scale = _shaped(_promoted(x, True), dims, [*sizes[:-1], n // 2 + 1]), _scale(norm, forward)
    if not forward:
        return _c2r(x, dims, scale, n)
    out = _c2c(x, dims[:-1], scale, True) if len(dims) > 1 else x
    return _c2r(TABLE["conj"].call(out), dims[-1:], scale, n)


# ---- frames of a signal, for stft.py ------------------------------------------------------------------------------------------------


def of_frames(frames: Tensor, normalized: bool, onesided: bool) -> Tensor:
    """Transforms along the last dimension; `onesided` only of real frames."""
    frames, d, scale = _promoted(frames), (frames.ndim - 1,), _ROOT if normalized else _NONE
    return _c2c(frames, d, scale, True) if frames.dtype.is_complex else _r2c(frames, d, scale, onesided)


def frames_of(spectra: Tensor, n: int, normalized: bool, to_complex: bool) -> Tensor:
    """Undoes `of_frames`: frames of n elements, real ones from the first n // 2 + 1 frequencies."""
    d, scale = spectra.ndim - 1, _ROOT if normalized else _WHOLE
    return _c2c(spectra, (d,), scale, False) if to_complex else _c2r(resized(spectra, d, n // 2 + 1), (d,), scale, n)


def transform_flops(result: Tensor, n: int, elements: int) -> int:
    """About 5 log₂ n operations an element of a spectrum."""
    return int(5 * elements * math.log2(max(n, 1)))


# ---- the operators ------------------------------------------------------------------------------------------------------------------


def _flops_along(default: Any):
    """5 N log₂ N operations of each transform of N complex points, half of them where one side is real; N as the longer side has it."""

    def count(args, kwargs, result) -> int:
        x = args[0]
        longer = result if result.numel() >= x.numel() else x
        dims = args[2] if len(args) > 2 else kwargs.get("dim", default)
        dims = range(x.ndim) if dims is None else dims if isinstance(dims, (tuple, list)) else (dims,)
        n = math.prod(longer.shape[d] for d in dims)
        return int(5 * longer.numel() * math.log2(max(n, 1)) / (1 if x.dtype.is_complex and result.dtype.is_complex else 2))

    return count


def _checked_out(name: str, out: Tensor, real: bool) -> None:
    """RuntimeError for an `out=` that cannot hold the result."""
    if real and not out.dtype.is_floating_point:
        raise RuntimeError(f"{name[4:]} expects a floating point output tensor, but got {out.dtype.scalar_name}")
    if not real and not out.dtype.is_complex:
        raise RuntimeError(f"{name[4:]} expects a complex output tensor, but got {out.dtype.scalar_name}")


def _register(name: str, compute: Any, forward: bool, default: Any, doc: str) -> None:
    """An operator and its `out=` form. default: its dimension (an int: the form of one dimension), (-2, -1), or None for all dimensions."""
    real = "irfft" in name or name.startswith("fft_hfft")
    if default == -1:

        def transform(input, n=None, dim=-1, norm=None, *, out=None):
            are_tensors(name, input=input)
            if out is not None:
                _checked_out(name, out, real)
                return write_out(name, out, compute, (name, input, n, dim, norm, forward), {})
            return compute(name, input, n, dim, norm, forward)
    else:

        def transform(input, s=None, dim=default, norm=None, *, out=None):
            are_tensors(name, input=input)
            if out is not None:
                _checked_out(name, out, real)
                return write_out(name, out, compute, (name, input, s, dim, norm, forward), {})
            return compute(name, input, s, dim, norm, forward)

    along = "along `dim`" if default == -1 else "along two dimensions" if default else "along all dimensions, or those given,"
    transform.__doc__ = f"""{doc} {along.capitalize()} the result has {"n entries" if default == -1 else "the sizes `s`"}: the input is cut, or filled with zeros, to fit.

    norm: where sums are divided by the number of points N: "backward" (None), by the inverse; "forward"; "ortho", both by √N. 16-bit floats are refused.
    """
    operator(name, method=False, namespace="fft", autocast="float32", flops=_flops_along(default))(transform)


_FAMILIES = {
    "fft": (_fft, _fftn, True, "Discrete Fourier transform: Σ x_j exp(-2πi jk / n)."),
    "ifft": (_fft, _fftn, False, "Inverse discrete Fourier transform: Σ x_j exp(2πi jk / n) / n."),
    "rfft": (_rfft, _rfftn, True, "Fourier transform of a real input: the first n // 2 + 1 entries (of the last dimension), whose conjugates the others are."),
    "irfft": (_irfft, _irfftn, False, "Inverse of `rfft`, real; n is 2 (m - 1) by default, for m entries (of the last dimension)."),
    "hfft": (_irfft, _irfftn, True, "Fourier transform, real, of what has conjugate symmetry, given by its first half of m entries; n is 2 (m - 1) by default."),
    "ihfft": (_rfft, _rfftn, False, "Inverse of `hfft`: of a real input the first n // 2 + 1 entries (of the last dimension)."),
}
for _name, (_one, _several, _forward, _doc) in _FAMILIES.items():
    for _suffix, _compute, _default in (("", _one, -1), ("2", _several, (-2, -1)), ("n", _several, None)):
        _register(f"fft_{_name}{_suffix}", _compute, _forward, _default, _doc)

# ---- frequencies and shifts ---------------------------------------------------------------------------------------------------------


def _frequencies(name, n, d, full, out, dtype, layout, device, requires_grad):
    n = integer(name, "n", n)
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name[4:]} requires a floating point or complex dtype")
    if n < 0 and full:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    d = float(d)
    step = 1.0 / (n * d) if n and d else math.copysign(math.inf, d)  # 1 / 0, as C divides
    options = {"dtype": dtype, "layout": layout, "device": device}
    arange = TABLE["arange"].call
    if full:
        made = TABLE["cat"].call([arange((n + 1) // 2, **options), arange(-(n // 2), 0, **options)]) if n else arange(0, **options)
    else:
        made = arange(n // 2 + 1, **options)
    if dtype is None:
        made = made.to(dtypes.get_default_dtype())
    return finish(name, made * step, requires_grad, out)


@operator("fft_fftfreq", method=False, namespace="fft")
def fft_fftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """Frequencies of `fft`'s n entries in cycles a unit, for samples d units apart: 0, 1, …, then the negative ones, over n d. [n]"""
    return _frequencies("fft_fftfreq", n, d, True, out, dtype, layout, device, requires_grad)


@operator("fft_rfftfreq", method=False, namespace="fft")
def fft_rfftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """Frequencies of `rfft`'s entries in cycles a unit, for n samples d units apart: 0, 1, … over n d. [n // 2 + 1]"""
    return _frequencies("fft_rfftfreq", n, d, False, out, dtype, layout, device, requires_grad)


def _shift(name, x, dim, half):
    are_tensors(name, input=x)
    dims = range(x.ndim) if dim is None else [wrap_dim(integer(name, "dim", d), x.ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    return TABLE["roll"].call(x, [half(x.shape[d]) for d in dims], list(dims)) if x.ndim and dims else TABLE["clone"].call(x)


@operator("fft_fftshift", method=False, namespace="fft", moves=True, reason=lambda *_: "a shift always copies", flops=lambda *_: 0)
def fft_fftshift(input, dim=None):
    """The entry of frequency 0 moved from the front to the middle, along `dim` (one or several; None: all)."""
    return _shift("fft_fftshift", input, dim, lambda n: n // 2)


@operator("fft_ifftshift", method=False, namespace="fft", moves=True, reason=lambda *_: "a shift always copies", flops=lambda *_: 0)
def fft_ifftshift(input, dim=None):
    """Undoes `fftshift`."""
    return _shift("fft_ifftshift", input, dim, lambda n: (n + 1) // 2)
