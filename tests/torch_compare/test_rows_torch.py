"""Rows of PyTorch's operator samples where the order of roundings decides: 16-bit interpolation and convolution, polynomials, trigamma, logspace of one point."""
import pytest

torch = pytest.importorskip("torch")
import strided

torch.manual_seed(0)


def ours(x):
    return strided.from_numpy(x.float().numpy().copy()).to(getattr(strided, str(x.dtype).split(".")[1])) if x.dtype.itemsize == 2 else strided.from_numpy(x.numpy().copy())


def close(mine, theirs, share=0.0, **tolerances):
    """Equal to PyTorch's tolerances of the dtype, but for a share of the elements."""
    a, b = torch.from_numpy(mine.float().numpy().copy()), theirs.float()
    limits = tolerances or {"rtol": 1.6e-2 if theirs.dtype is torch.bfloat16 else 1e-3, "atol": 1e-5}
    assert a.shape == b.shape and (~torch.isclose(a, b, equal_nan=True, **limits)).float().mean() <= share


@pytest.mark.parametrize("dtype", ("bfloat16", "float16"))
def test_16_bits(dtype):
    kind = getattr(torch, dtype)
    for shape, mode, size in (((2, 3, 9), "linear", 14), ((2, 3, 5, 6), "bicubic", (7, 4)), ((1, 2, 4, 5, 6), "trilinear", (7, 3, 8)), ((2, 3, 5, 6), "bilinear", (7, 9))):
        x = torch.randn(shape).to(kind)
        for align in (True, False):
            a, b = (L.nn.functional.interpolate(t, size, mode=mode, align_corners=align) for L, t in ((strided, ours(x)), (torch, x)))
            close(a, b)
    x, w, b = (torch.randn(s).to(kind) for s in ((2, 4, 7, 8), (6, 2, 3, 3), (6,)))
    close(strided.nn.functional.conv2d(ours(x), ours(w), ours(b), padding=1, groups=2), torch.nn.functional.conv2d(x, w, b, padding=1, groups=2), share=0.02)
    x, y = torch.randn(5, 6).to(kind), torch.randn(5, 6).to(kind)
    close(strided.nn.functional.cosine_similarity(ours(x), ours(y)), torch.nn.functional.cosine_similarity(x, y), share=0.2)
    for start in (4.3, -2.7):
        close(strided.logspace(start, 2, 1, dtype=getattr(strided, dtype)), torch.logspace(start, 2, 1, dtype=kind))


@pytest.mark.parametrize("name", ("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"))
def test_polynomials(name):
    x, n = torch.rand(2000) * 18 - 9, torch.randint(-1, 10, (2000,)).float()
    close(getattr(strided.special, name)(ours(x), ours(n)), getattr(torch.special, name)(x, n), share=0.002)


def test_trigamma():
    x = torch.rand(2000) * 20 - 10
    close(strided.polygamma(1, ours(x)), torch.polygamma(1, x), share=0.002, rtol=1.3e-6, atol=1e-5)
    close(strided.polygamma(1, ours(x.double())), torch.polygamma(1, x.double()), share=0.01, rtol=1e-5, atol=1e-6)


def test_as_strided_scatter_gradient():
    for L in (strided, torch):
        x, s = L.arange(9.0).reshape(3, 3).requires_grad_(), L.ones(2, 2, requires_grad=True)
        (L.as_strided_scatter(x, s, (2, 2), (1, 2), 1) * L.arange(1.0, 10.0).reshape(3, 3)).sum().backward()
        assert x.grad.tolist() == [[0, 2, 3], [4, 5, 0], [0, 0, 0]] and s.grad.tolist() == [[2, 4], [3, 5]]
