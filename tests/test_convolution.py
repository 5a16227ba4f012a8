"""Convolutions and their gradients against the sums that define them, in whole numbers, so that every value is exact."""

import itertools

import pytest

import strided as torch
from strided.nn import functional as F

CASES = [
    # spatial size, kernel, stride, padding, dilation, groups
    ((7, 6), (3, 3), (1, 1), (0, 0), (1, 1), 1),
    ((7, 6), (3, 2), (1, 1), (1, 1), (1, 1), 2),
    ((9, 8), (3, 3), (2, 2), (1, 1), (1, 1), 1),
    ((9, 8), (3, 2), (2, 3), (2, 1), (1, 1), 4),
    ((9, 9), (3, 3), (2, 1), (1, 0), (2, 2), 2),
    ((40, 5), (2, 2), (1, 1), (0, 0), (1, 1), 1),  # more positions than a panel holds
    ((5, 5), (1, 1), (3, 3), (0, 0), (1, 1), 1),  # elements of the input that no window meets
]


def whole_numbers(*shape, seed=0):
    torch.manual_seed(seed)
    return torch.randint(-4, 5, shape)


def by_definition(x, w, stride, padding, dilation, groups):
    """(out, what d_input and d_weight are for a gradient) as nested sums over Python integers."""
    n, channels, *sizes = x.shape
    features, each, *kernel = w.shape
    places = [(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, p, d, k, t in zip(sizes, padding, dilation, kernel, stride)]
    terms = []
    for b, f, c in itertools.product(range(n), range(features), range(each)):
        channel = f // (features // groups) * each + c
        for o in itertools.product(*map(range, places)):
            for k in itertools.product(*map(range, kernel)):
                at = [i * t - p + j * d for i, t, p, j, d in zip(o, stride, padding, k, dilation)]
                if all(0 <= a < s for a, s in zip(at, sizes)):
                    terms.append(((b, f, *o), (b, channel, *at), (f, c, *k)))
    return (n, features, *places), terms


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
@pytest.mark.parametrize(("size", "kernel", "stride", "padding", "dilation", "groups"), CASES)
def test_values_and_gradients(size, kernel, stride, padding, dilation, groups, dtype):
    x, w = whole_numbers(2, 4, *size), whole_numbers(8, 4 // groups, *kernel, seed=1)
    shape, terms = by_definition(x, w, stride, padding, dilation, groups)
    xs, ws = x.tolist(), w.tolist()

    def element(nested, index):
        for i in index:
            nested = nested[i]
        return nested

    g = whole_numbers(*shape, seed=2)
    gs = g.tolist()
    out, dx, dw = {}, {}, {}
    for o, i, k in terms:
        out[o] = out.get(o, 0) + element(xs, i) * element(ws, k)
        dx[i] = dx.get(i, 0) + element(gs, o) * element(ws, k)
        dw[k] = dw.get(k, 0) + element(gs, o) * element(xs, i)

    def dense(values, shape):
        return torch.tensor([values.get(i, 0) for i in itertools.product(*map(range, shape))]).reshape(shape)

    steps = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    if dtype is torch.int64:
        assert torch.equal(F.conv2d(x, w, **steps), dense(out, shape))
        return
    bias = torch.arange(8).to(dtype)
    leaves = [t.to(dtype).requires_grad_() for t in (x, w, bias)]
    found = F.conv2d(*leaves, **steps)
    assert torch.equal(found.detach(), dense(out, shape).to(dtype) + bias.reshape(-1, 1, 1))
    d_input, d_weight, d_bias = torch.autograd.grad(found, leaves, g.to(dtype))
    assert torch.equal(d_input, dense(dx, x.shape).to(dtype))
    assert torch.equal(d_weight, dense(dw, w.shape).to(dtype))
    assert torch.equal(d_bias, g.sum((0, 2, 3)).to(dtype))
    assert type(found.grad_fn).__name__ == "ConvolutionBackward0"
    # the transpose is the input's gradient
    extra = [s - ((o - 1) * t - 2 * p + d * (k - 1) + 1) for s, o, t, p, d, k in zip(size, shape[2:], stride, padding, dilation, kernel)]
    turned = F.conv_transpose2d(g.to(dtype), w.to(dtype), None, stride, padding, extra, groups, dilation)
    assert torch.equal(turned, dense(dx, x.shape).to(dtype))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sixteen_bits_are_rounded_once(dtype):
    x, w, b = whole_numbers(1, 3, 8, 8).to(dtype), whole_numbers(5, 3, 3, 3, seed=1).to(dtype), torch.full((5,), 0.25, dtype=dtype)
    assert torch.equal(F.conv2d(x, w, b), F.conv2d(x.double(), w.double(), b.double()).to(dtype))


def test_one_and_three_dimensions_unbatched_and_strided_inputs():
    x, w = whole_numbers(2, 3, 4, 5, 6).double(), whole_numbers(4, 3, 2, 3, 2, seed=1).double()
    out = F.conv3d(x, w)
    by_slices = sum(F.conv2d(x[:, :, i : i + 3].transpose(1, 2).reshape(-1, 3, 5, 6), w[:, :, i]).reshape(2, 3, 4, 3, 5).transpose(1, 2) for i in range(2))
    assert torch.equal(out, by_slices)
    assert torch.equal(F.conv3d(x[0], w), out[0])
    turned = x.permute(0, 1, 4, 3, 2)  # not contiguous
    assert torch.equal(F.conv3d(turned, w.permute(0, 1, 4, 3, 2)), out.permute(0, 1, 4, 3, 2))
    line, kernel = whole_numbers(2, 3, 9).double(), whole_numbers(4, 3, 2, seed=1).double()
    assert torch.equal(F.conv1d(line, kernel), F.conv2d(line.unsqueeze(2), kernel.unsqueeze(2)).squeeze(2))


def test_second_derivatives_and_meta():
    x, w = torch.randn(1, 2, 5, 5, dtype=torch.float64, requires_grad=True), torch.randn(2, 1, 3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x, w: F.conv2d(x, w, stride=2, padding=1, groups=2), (x, w))
    assert F.conv2d(torch.empty(2, 3, 9, 9, device="meta"), torch.empty(4, 3, 3, 3, device="meta"), stride=2).shape == (2, 4, 4, 4)
    assert F.conv2d(torch.empty(0, 3, 9, 9), torch.empty(4, 3, 3, 3)).shape == (0, 4, 7, 7)


def test_the_top_level_function():
    x, w, b = torch.randn(1, 2, 6, 6), torch.randn(4, 2, 3, 3), torch.randn(4)
    assert torch.equal(torch.convolution(x, w, b, [2], [1], [1], False, [0], 1), F.conv2d(x, w, b, 2, 1))
    assert torch.equal(torch.convolution(x, w.transpose(0, 1).contiguous(), b, [2, 2], [1, 1], [1, 1], True, [1, 1], 1), F.conv_transpose2d(x, w.transpose(0, 1).contiguous(), b, 2, 1, 1))


def test_transposed_results_that_nothing_reaches():
    x, w = torch.randn(1, 2, 2, 3, requires_grad=True), torch.randn(2, 3, 1, 1, requires_grad=True)
    y = F.conv_transpose2d(x, w, stride=(2, 1), padding=(1, 0))  # only the position between two elements is left
    assert y.shape == (1, 3, 1, 3) and y.requires_grad and not y.any()
    y.sum().backward()
    assert not x.grad.any() and not w.grad.any()
    with pytest.raises(RuntimeError, match=r"Calculated output size per channel: \(4 x 0\). Output size is too small"):
        F.conv_transpose2d(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 4, 5), padding=(0, 3))
