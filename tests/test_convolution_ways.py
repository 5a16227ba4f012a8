"""Ways to compute a convolution that depend on its sizes, each beside the same sums over integers: matrix products, images turned channels last, rows of depthwise windows."""
import pytest

import strided as torch
import strided.nn.functional as F
from strided.kernels import native
from strided.ops import convolution_columns, convolution_last
from test_convolution import avx2, compare_with_integers  # noqa: F401 (a fixture)


def last(x):
    return x.contiguous(memory_format=torch.channels_last if x.ndim == 4 else torch.channels_last_3d)


@pytest.fixture
def small(monkeypatch):
    """Small convolutions take the ways of large ones, a few entries at a time."""
    native.clear_plans()
    for name, value in (("FEATURES", 4), ("WINDOW", 8), ("WEIGHTS", 64), ("LEAST", 0), ("ROOM", 4000)):
        monkeypatch.setattr(convolution_columns, name, value)
    yield monkeypatch
    native.clear_plans()


# input, weight, stride, padding, dilation, groups
DENSE = [
    ((5, 6, 7, 8), (9, 6, 3, 3), 1, 1, 1, 1),
    ((3, 6, 9, 8), (5, 6, 3, 2), (2, 3), (2, 1), 1, 1),
    ((2, 4, 12, 11), (8, 4, 3, 3), 1, 3, 3, 1),
    ((2, 4, 9, 10), (8, 4, 2, 3), 2, (0, 2), (3, 2), 1),
    ((4, 5, 30), (6, 5, 4), 3, 2, 1, 1),
    ((3, 6, 3, 3), (6, 6, 3, 3), 1, 0, 1, 1),  # one position
    ((2, 4, 12, 13), (6, 4, 3, 3), 1, 1, 1, 1),  # more than a hundred
]


@pytest.mark.parametrize("case", DENSE, ids=str)
def test_windows_laid_out(small, case):
    compare_with_integers(case, lambda x: x)
    if len(case[0]) == 4:
        compare_with_integers(case, last)


@pytest.mark.parametrize("case", DENSE, ids=str)
def test_images_turned(small, case):
    small.setattr(convolution_last, "MANY", 4)
    compare_with_integers(case, lambda x: x)
    small.setattr(convolution_columns, "FEATURES", 1000)
    native.clear_plans()
    compare_with_integers(case, lambda x: x)


@pytest.mark.parametrize(
    "case",
    [
        ((3, 5, 6, 7), (20, 5, 1, 1), 1, 0, 1, 1),
        ((3, 5, 6, 7), (20, 5, 1, 1), (2, 3), 0, 1, 1),
        ((3, 20, 1, 1), (8, 20, 1, 1), 1, 0, 1, 1),
        ((2, 4, 8, 9), (17, 4, 2, 3), (2, 3), 0, 1, 1),
        ((2, 4, 9, 11), (17, 4, 2, 3), (2, 3), 0, 1, 1),  # a rest that no window meets
        ((2, 3, 40), (16, 3, 8), 8, 0, 1, 1),
    ],
    ids=str,
)
def test_windows_that_do_not_overlap(case):
    compare_with_integers(case, lambda x: x)
    compare_with_integers(case, lambda x: x.transpose(1, -1).contiguous().transpose(1, -1))
    if len(case[0]) == 4:
        compare_with_integers(case, last)


FEW = [
    ((3, 3, 9, 8), (20, 3, 3, 3), 2, 1, 1, 1),
    ((2, 3, 20, 19), (70, 3, 7, 7), 2, 3, 1, 1),
    ((2, 5, 8, 8), (35, 5, 2, 2), 2, 0, 1, 1),  # side by side
    ((2, 18, 5, 6), (33, 18, 1, 1), 1, 0, 1, 1),
    ((2, 4, 7, 9), (16, 4, 3, 2), 1, 2, 2, 1),
    ((1, 2, 4, 5, 6), (17, 2, 2, 3, 2), 1, 1, 1, 1),
]


@pytest.mark.parametrize("case", FEW, ids=str)
def test_few_channels(case):
    compare_with_integers(case, last)


@pytest.mark.parametrize("case", FEW[::2], ids=str)
def test_few_channels_with_short_vectors(avx2, case):  # noqa: F811
    compare_with_integers(case, last)


@pytest.mark.parametrize("channels_last", [False, True])
def test_transposed_windows_side_by_side(channels_last):
    x, w, b = torch.arange(2 * 6 * 3 * 4).reshape(2, 6, 3, 4) % 7 - 3, torch.arange(6 * 16 * 4).reshape(6, 16, 2, 2) % 5 - 2, torch.arange(16)
    given = last(x.float()) if channels_last else x.float()
    out = F.conv_transpose2d(given, w.float(), b.float(), 2, output_padding=1)
    assert torch.equal(out.long(), F.conv_transpose2d(x, w, b, 2, output_padding=1))


ROWS = [
    # channels, height and width, kernel, stride, padding, dilation
    (3, (6, 7), (3, 3), 1, 1, 1),
    (16, (5, 15), (5, 5), 1, 2, 1),
    (21, (9, 8), (3, 3), 2, 1, 1),
    (40, (4, 9), (7, 7), 1, 3, 1),
    (35, (8, 17), (5, 3), (1, 2), (4, 0), 1),
    (33, (9, 6), (3, 1), 1, 1, (2, 3)),
    (50, (7, 5), (2, 2), 2, 0, 1),
    (18, (1, 1), (3, 3), 1, 1, 1),
    (4, (3, 30), (1, 7), (2, 1), (3, 6), 1),  # rows of windows of nothing but padding
]


@pytest.mark.parametrize("case", ROWS, ids=str)
def test_depthwise_rows(case):
    channels, size, kernel, *steps = case
    compare_with_integers(((2, channels, *size), (channels, 1, *kernel), *steps, channels), last)


@pytest.mark.parametrize("case", ROWS[::3], ids=str)
def test_depthwise_rows_with_short_vectors(avx2, case):  # noqa: F811
    channels, size, kernel, *steps = case
    compare_with_integers(((2, channels, *size), (channels, 1, *kernel), *steps, channels), last)


@pytest.mark.parametrize("size", [(7, 7), (12, 20)])
def test_short_rows_and_large_windows_are_turned(size):
    compare_with_integers(((2, 20, *size), (20, 1, 7, 7), 1, 3, 1, 20), lambda x: x)


def test_infinities_meet_only_their_own_windows():
    x = torch.zeros(1, 20, 5, 9)
    x[0, 3, 2, 4] = float("inf")
    out = F.conv2d(last(x), torch.ones(20, 1, 3, 3), padding=1, groups=20)
    assert out.isinf().sum() == 9 and out[0, 3, 1:4, 3:6].isinf().all() and not out.isnan().any()


def test_steps_are_checked_though_kinds_of_operands_are_known():
    x, w = torch.ones(1, 2, 4, 4), torch.ones(3, 2, 3, 3)
    assert F.conv2d(x, w).shape == (1, 3, 2, 2) and F.conv2d(x, w, padding=(1, 1)).shape == (1, 3, 4, 4)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="non-positive stride is not supported"):
            F.conv2d(x, w, stride=0)
        with pytest.raises(RuntimeError, match="expected input"):
            F.conv2d(torch.ones(1, 3, 4, 4), w)


def test_group_norm_of_one_group():
    x = (torch.arange(48.0) % 7).reshape(2, 6, 2, 2).requires_grad_()
    for given in (x, last(x)):
        y = F.group_norm(given, 1)
        (g,) = torch.autograd.grad((y * torch.arange(48.0).reshape(x.shape)).sum(), x)
        rows, weights = x.detach().flatten(1).double(), torch.arange(48.0).reshape(2, 24).double()
        centred = rows - rows.mean(1, keepdim=True)
        rstd = (centred.square().mean(1, keepdim=True) + 1e-5).rsqrt()
        n = centred * rstd
        expected = rstd * (weights - weights.mean(1, keepdim=True) - n * (weights * n).mean(1, keepdim=True))
        torch.testing.assert_close(g.flatten(1).double(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kernel", [2, 3, (4, 2), (1, 3)])
def test_averages_in_one_pass(kernel):
    x = torch.arange(2 * 20 * 8 * 9).reshape(2, 20, 8, 9).float() % 13
    expected = F.avg_pool2d(x.double(), kernel, padding=0)
    torch.testing.assert_close(F.avg_pool2d(last(x), kernel).contiguous().double(), expected, rtol=1e-6, atol=1e-6)
    assert torch.equal(F.avg_pool2d(torch.ones(1, 20, 8, 9).contiguous(memory_format=torch.channels_last), kernel), torch.ones_like(expected[:1]).float())
