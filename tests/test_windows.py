"""Windows of torch.signal.windows and of the top level: values from their formulas in float64, dtypes, edges, errors."""
import math

import pytest

import strided as torch
from strided.signal import windows

TWO_PI = 2 * math.pi


def bessel(x):
    """I₀(x) = Σ (x/2)^2k / k!²."""
    return math.fsum((x / 2) ** (2 * k) / math.factorial(k) ** 2 for k in range(60))


def cosines(*a):
    return lambda i, n: sum((-1) ** k * w * math.cos(TWO_PI * k * i / n) for k, w in enumerate(a))


# name: window(position, number of intervals of the symmetric window)
FORMULAS = {
    "hann": cosines(0.5, 0.5),
    "hamming": cosines(0.54, 0.46),
    "blackman": cosines(0.42, 0.5, 0.08),
    "nuttall": cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "bartlett": lambda i, n: 1 - abs(2 * i / n - 1),
    "kaiser": lambda i, n: bessel(12 * math.sqrt(max(0.0, 1 - (2 * i / n - 1) ** 2))) / bessel(12),
    "cosine": lambda i, n: math.sin(math.pi * (i + 0.5) / (n + 1)),
    "gaussian": lambda i, n: math.exp(-((i - n / 2) ** 2) / 2),
    "exponential": lambda i, n: math.exp(-abs(i - n / 2)),
}
OLDER = ("hann", "hamming", "blackman", "bartlett", "kaiser")


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("M", [2, 5, 8, 31])
@pytest.mark.parametrize("sym", [True, False])
def test_values(name, M, sym):
    want = [FORMULAS[name](i, M - 1 if sym else M) for i in range(M)]
    for dtype, tolerance in ((torch.float64, 1e-14), (torch.float32, 1e-6)):
        got = [getattr(windows, name)(M, sym=sym, dtype=dtype)]
        if name in OLDER:
            got.append(getattr(torch, name + "_window")(M, not sym, dtype=dtype))
        for window in got:
            assert window.dtype is dtype and window.shape == (M,) and not window.requires_grad
            assert window.tolist() == pytest.approx(want, abs=tolerance)


@pytest.mark.parametrize("name", FORMULAS)
def test_short_windows(name):
    assert getattr(windows, name)(0).shape == (0,)
    assert getattr(windows, name)(1).tolist() == [1.0]
    if name in OLDER:
        older = getattr(torch, name + "_window")
        assert older(0).shape == (0,) and older(1).tolist() == [1.0] and older(1, False).tolist() == [1.0]


def test_parameters():
    assert windows.general_cosine(4, a=[1, 0.5]).tolist() == pytest.approx([0.5, 1.25, 1.25, 0.5])
    assert windows.general_hamming(4, alpha=0.75).tolist() == pytest.approx([0.5, 0.875, 0.875, 0.5])
    assert torch.hamming_window(4, True, 0.3, 0.2).tolist() == pytest.approx([0.1, 0.3, 0.5, 0.3])
    assert windows.exponential(3, center=0, tau=2.0, sym=False).tolist() == pytest.approx([1, math.exp(-0.5), math.exp(-1)])
    assert windows.gaussian(3, std=0.5).tolist() == pytest.approx([math.exp(-2), 1, math.exp(-2)])
    assert torch.kaiser_window(3, False, 1.0).tolist() == pytest.approx([1 / bessel(1), 1, 1 / bessel(1)])


def test_dtypes_and_options():
    assert torch.hann_window(8, dtype=torch.float16)[4].item() == 1
    assert torch.blackman_window(5, dtype=torch.float16).tolist() == [0.0, 0.20068359375, 0.849609375, 0.849609375, 0.200439453125]
    assert torch.bartlett_window(5, device="meta").shape == (5,)
    leaf = torch.hann_window(4, requires_grad=True)
    assert leaf.is_leaf and leaf.requires_grad
    made = windows.hann(5, requires_grad=True)
    assert made.grad_fn is not None and not made.is_leaf


def test_errors():
    with pytest.raises(RuntimeError, match="hann_window requires non-negative window_length, got window_length=-1"):
        torch.hann_window(-1)
    with pytest.raises(RuntimeError, match="hann_window expects floating point dtypes"):
        torch.hann_window(4, dtype=torch.int64)
    with pytest.raises(TypeError, match="must be int, not float"):
        torch.kaiser_window(4.5)
    with pytest.raises(ValueError, match="general_cosine requires non-negative window length, got M=-1"):
        windows.hann(-1)
    with pytest.raises(ValueError, match="gaussian expects float32 or float64 dtypes, got: torch.float16"):
        windows.gaussian(4, dtype=torch.float16)
    with pytest.raises(ValueError, match="Tau must be positive"):
        windows.exponential(4, tau=0)
    with pytest.raises(ValueError, match="Center must be None for symmetric windows"):
        windows.exponential(4, center=1)
    with pytest.raises(ValueError, match="Standard deviation must be positive"):
        windows.gaussian(4, std=0)
    with pytest.raises(ValueError, match="beta must be non-negative"):
        windows.kaiser(4, beta=-1)
    with pytest.raises(TypeError, match="Coefficients must be a list/tuple"):
        windows.general_cosine(4, a=3)
    with pytest.raises(ValueError, match="Coefficients cannot be empty"):
        windows.general_cosine(4, a=[])
