"""torch.fft by its definition: sums over all points in float64, for every form, size and norm; layouts, dtypes, errors, gradients."""
import cmath
import itertools
import math
import random

import numpy
import pytest

import strided as torch
from strided import fft


def numbers(shape, seed=0):
    """Complex numbers as {index: value}."""
    rng = random.Random(seed)
    return {i: complex(rng.uniform(-1, 1), rng.uniform(-1, 1)) for i in itertools.product(*map(range, shape))}


def nested(values, shape, index=()):
    return [nested(values, shape, (*index, i)) for i in range(shape[len(index)])] if len(index) < len(shape) else values[index]


def tensor(values, shape, dtype):
    array = numpy.array(nested(values, shape))
    return torch.from_numpy((array if dtype.is_complex else array.real).astype(dtype.numpy))


def dft(values, shape, sizes, dims, sign, scale):
    """(sums, shape): Σ x exp(sign 2πi jk / n) along `dims`, the input cut or filled with zeros to `sizes`."""
    out_shape = list(shape)
    for d, n in zip(dims, sizes):
        out_shape[d] = n
    cut = {i: v for i, v in values.items() if all(i[d] < n for d, n in zip(dims, sizes))}
    result = {}
    for k in itertools.product(*map(range, out_shape)):
        terms = [
            v * cmath.exp(sign * 2j * cmath.pi * sum(i[d] * k[d] / n for d, n in zip(dims, sizes)))
            for i, v in cut.items()
            if all(i[d] == k[d] for d in range(len(shape)) if d not in dims)
        ]
        result[k] = scale * complex(math.fsum(t.real for t in terms), math.fsum(t.imag for t in terms))
    return result, tuple(out_shape)


def check(got, want, shape, dtype, tolerance):
    assert got.dtype is dtype and tuple(got.shape) == tuple(shape)
    flat = got.flatten().tolist()
    for have, index in zip(flat, itertools.product(*map(range, shape))):
        assert abs(have - want[index]) <= tolerance, (have, want[index])


def scale(norm, forward, n):
    return {"ortho": 1 / math.sqrt(n), "forward": 1 / n if forward else 1}.get(norm, 1 if forward else 1 / n)


NORMS = [None, "backward", "ortho", "forward"]
CASES = [((7,), (7,), (0,)), ((3, 4), (4,), (1,)), ((3, 4), (6,), (1,)), ((4, 3), (2,), (0,)), ((1, 5), (5,), (1,)), ((2, 3, 4), (3, 4), (1, 2)), ((2, 3, 4), (3, 5), (0, 2)), ((3, 2, 2), (3, 2, 2), (0, 1, 2))]


@pytest.mark.parametrize("shape, sizes, dims", CASES)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("precision", [32, 64])
def test_complex_transforms(shape, sizes, dims, norm, precision):
    complex_type, tolerance = (torch.complex64, 2e-6) if precision == 32 else (torch.complex128, 1e-13)
    real_type = complex_type.to_real()
    x = numbers(shape)
    for name, forward in (("fft", True), ("ifft", False)):
        factor = scale(norm, forward, math.prod(sizes))
        for dtype in (complex_type, real_type):
            values = x if dtype.is_complex else {i: complex(v.real) for i, v in x.items()}
            want, out = dft(values, shape, sizes, dims, -1 if forward else 1, factor)
            given = tensor(x, shape, dtype)
            if len(dims) == 1:
                check(getattr(fft, name)(given, sizes[0], dims[0], norm), want, out, complex_type, tolerance)
            check(getattr(fft, name + "n")(given, sizes, dims, norm), want, out, complex_type, tolerance)
            if len(dims) == 2:
                check(getattr(fft, name + "2")(given, sizes, dims, norm), want, out, complex_type, tolerance)


@pytest.mark.parametrize("shape, sizes, dims", CASES)
@pytest.mark.parametrize("norm", NORMS)
def test_real_transforms(shape, sizes, dims, norm):
    x = {i: complex(v.real) for i, v in numbers(shape).items()}
    total = math.prod(sizes)
    half = sizes[-1] // 2 + 1
    for name, forward in (("rfft", True), ("ihfft", False)):
        want, out = dft(x, shape, sizes, dims, -1 if forward else 1, scale(norm, forward, total))
        out = tuple(half if d == dims[-1] else n for d, n in enumerate(out))
        given = tensor(x, shape, torch.float64)
        if len(dims) == 1:
            check(getattr(fft, name)(given, sizes[0], dims[0], norm), want, out, torch.complex128, 1e-13)
        check(getattr(fft, name + "n")(given, sizes, dims, norm), want, out, torch.complex128, 1e-13)
    # Back: the half spectrum of a real signal gives the signal; irfft undoes rfft and hfft undoes ihfft, whatever the norm.
    for there, back in (("rfft", "irfft"), ("ihfft", "hfft")):
        given = tensor(x, shape, torch.float32)
        cut = given
        for d, n in zip(dims, sizes):
            cut = cut.narrow(d, 0, min(n, cut.shape[d]))
        spectrum = getattr(fft, there + "n")(given, sizes, dims, norm)
        again = getattr(fft, back + "n")(spectrum, sizes, dims, norm)
        assert again.dtype is torch.float32
        for d in range(len(shape)):
            again = again.narrow(d, 0, cut.shape[d])
        assert torch.allclose(again, cut, atol=1e-5)
        if len(dims) == 1:
            again = getattr(fft, back)(spectrum, sizes[0], dims[0], norm)
            assert torch.allclose(again.narrow(dims[0], 0, cut.shape[dims[0]]), cut, atol=1e-5)


def test_defaults_of_sizes_and_dimensions():
    x = tensor(numbers((2, 3, 4)), (2, 3, 4), torch.complex64)
    assert fft.irfft(x).shape == (2, 3, 6) and fft.hfft(x, dim=0).shape == (2, 3, 4)
    assert fft.fftn(x, s=(5, -1)).shape == (2, 5, 4)
    assert fft.irfft2(x).shape == (2, 3, 6) and fft.irfftn(x, s=(3, 7)).shape == (2, 3, 7)
    assert fft.rfft(torch.arange(6)).dtype is torch.complex64
    assert fft.fft(torch.tensor([True, False, True])).tolist() == fft.fft(torch.tensor([1.0, 0.0, 1.0])).tolist()
    assert fft.fftn(torch.tensor(3.0)).tolist() == 3 and fft.fftn(x, dim=()).tolist() == x.tolist()


def test_layouts():
    """The transformed dimension is innermost in memory, as PyTorch lays the results out."""
    x = torch.rand(4, 6)
    assert fft.fft(x).stride() == (6, 1) and fft.fft(x, 9, 0).stride() == (1, 9)
    assert fft.rfft(x, dim=0).stride() == (1, 3) and fft.ihfft2(x).stride() == (1, 4)
    assert fft.fft(torch.rand(2, 3, 4).permute(2, 0, 1), dim=0).stride() == (1, 12, 4)
    assert fft.fft(x.t()).stride() == (4, 1)
    assert fft.rfft(x.to("meta"), dim=0).stride() == (1, 3)


def test_frequencies_and_shifts():
    assert fft.fftfreq(5).tolist() == pytest.approx([0, 0.2, 0.4, -0.4, -0.2])
    assert fft.fftfreq(4, d=0.5).tolist() == [0, 0.5, -1, -0.5]
    assert fft.rfftfreq(5, 2.0).tolist() == pytest.approx([0, 0.1, 0.2]) and fft.rfftfreq(4).tolist() == [0, 0.25, 0.5]
    assert fft.fftfreq(0).shape == (0,) and fft.rfftfreq(0).shape == (1,)
    assert fft.fftfreq(4, dtype=torch.float64).dtype is torch.float64 and fft.fftfreq(4, requires_grad=True).requires_grad
    out = torch.empty(0)
    assert fft.fftfreq(4, out=out) is out and out.tolist() == [0, 0.25, -0.5, -0.25]
    x = torch.arange(6).reshape(2, 3)
    assert fft.fftshift(x).tolist() == [[5, 3, 4], [2, 0, 1]] and fft.fftshift(x, dim=1).tolist() == [[2, 0, 1], [5, 3, 4]]
    for n in (1, 4, 5):
        y = torch.rand(n, n)
        assert torch.equal(fft.ifftshift(fft.fftshift(y)), y) and torch.equal(fft.ifftshift(fft.fftshift(y, -1), -1), y)
    assert fft.fftshift(torch.arange(5)).tolist() == [3, 4, 0, 1, 2] and fft.ifftshift(torch.arange(5)).tolist() == [2, 3, 4, 0, 1]


def test_errors():
    x = torch.rand(4, 6)
    c = fft.fft(x)
    for call, kind, words in (
        (lambda: fft.fft(x.half()), RuntimeError, "Unsupported dtype Half"),
        (lambda: fft.fft(x, 0), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda: fft.fft(torch.empty(0)), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda: fft.fft(x, dim=5), IndexError, "Dimension out of range"),
        (lambda: fft.fft(torch.tensor(1.0)), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
        (lambda: fft.fft(x, norm="foo"), RuntimeError, 'Invalid normalization mode: "foo"'),
        (lambda: fft.rfft(c), RuntimeError, "rfft expects a real input tensor, but got ComplexFloat"),
        (lambda: fft.rfft2(c), RuntimeError, "rfftn expects a real-valued input tensor, but got ComplexFloat"),
        (lambda: fft.ihfftn(c), RuntimeError, "Only supports floating-point dtypes, but found: ComplexFloat"),
        (lambda: fft.fftn(x, s=(3,), dim=(0, 1)), RuntimeError, "When given, dim and shape arguments must have the same length"),
        (lambda: fft.fftn(x, dim=(1, -1)), RuntimeError, "FFT dims must be unique"),
        (lambda: fft.fftn(x, s=(3, 3, 3)), RuntimeError, "Got shape with 3 values but input tensor only has 2 dimensions"),
        (lambda: fft.rfftn(x, dim=()), RuntimeError, "rfftn must transform at least one axis"),
        (lambda: fft.irfft(torch.rand(1)), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda: fft.fft(x, out=torch.empty(0)), RuntimeError, "fft expects a complex output tensor, but got Float"),
        (lambda: fft.fftfreq(5, dtype=torch.int64), RuntimeError, "fftfreq requires a floating point or complex dtype"),
        (lambda: fft.fft([1.0]), TypeError, r"fft_fft\(\): argument 'input' \(position 1\) must be Tensor, not list"),
    ):
        with pytest.raises(kind, match=words):
            call()
