"""Images with channels innermost: results lie like them, have the values of contiguous ones, and so have gradients. Also windows, small kernels and other dtypes."""
import math

import pytest

import strided as torch
import strided.nn.functional as F
from strided.formats import channels_last, channels_last_3d, contiguous_format, suggested
from strided.layout import Layout


def image(*shape, last=False, dtype=torch.float32):
    x = ((torch.arange(math.prod(shape)) * 37 % 101).reshape(shape) - 50).to(torch.float64) / 23
    x = x.to(dtype)
    return x.contiguous(memory_format=torch.channels_last if len(shape) == 4 else torch.channels_last_3d) if last else x


def weights(*shape, dtype=torch.float32):
    return (((torch.arange(math.prod(shape)) * 29 % 61).reshape(shape) - 30).to(torch.float64) / 41).to(dtype)


def compared(function, *shape, dtype=torch.float32, tolerance=1e-4, parameters=()):
    """Both results and gradients, from a contiguous and from a channels-last image."""
    found = []
    for last in (False, True):
        x = image(*shape, last=last, dtype=dtype).requires_grad_()
        own = [p.clone().requires_grad_() for p in parameters]
        y = function(x, *own)
        g = ((torch.arange(y.numel()) * 13 % 7).reshape(y.shape) - 3).to(y.dtype)
        g = g.contiguous(memory_format=suggested(y.spec.layout))
        found.append([y, *torch.autograd.grad(y, [x, *own], g)])
    for plain, other in zip(*found):
        torch.testing.assert_close(other.contiguous(), plain.contiguous(), rtol=tolerance, atol=tolerance)
    return found[1]


def lies_last(t):
    return t.is_contiguous(memory_format=torch.channels_last if t.ndim == 4 else torch.channels_last_3d) and not t.is_contiguous()


def test_suggested_format_of_a_layout():
    assert suggested(Layout.contiguous((2, 3, 4, 5))) is contiguous_format
    assert suggested(Layout.of((2, 3, 4, 5), (60, 1, 15, 3))) is channels_last
    assert suggested(Layout.of((2, 3, 4, 5), (120, 1, 30, 6))) is channels_last  # a window: gaps do not matter
    assert suggested(Layout.of((2, 3, 4, 5, 6), (360, 1, 90, 18, 3))) is channels_last_3d
    assert suggested(Layout.of((2, 1, 4, 5), (20, 20, 5, 1))) is contiguous_format
    assert suggested(Layout.of((2, 1, 4, 5), (20, 1, 5, 1))) is channels_last
    assert suggested(Layout.of((2, 3, 4, 5), (60, 0, 15, 3))) is contiguous_format
    assert suggested(Layout.of((2, 3, 4), (12, 1, 3))) is contiguous_format


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(
    "channels, features, kernel, stride, padding, dilation, groups",
    [
        (6, 20, 3, 1, 1, 1, 1), (3, 70, 7, 2, 3, 1, 1), (5, 17, 2, 2, 0, 1, 1), (64, 33, 1, 1, 0, 1, 1), (8, 40, 1, 2, 0, 1, 1), (6, 20, 3, 1, 2, 2, 1), (20, 18, 4, 4, 0, 1, 1),
        (19, 19, 3, 1, 1, 1, 19), (40, 40, 5, 2, 2, 1, 40), (8, 64, 3, 1, 1, 1, 2), (8, 12, 2, 1, 0, 1, 4), (4, 8, 3, 1, 1, 1, 4),
    ],
)  # fmt: skip
def test_convolution(dtype, channels, features, kernel, stride, padding, dilation, groups):
    w, b = weights(features, channels // groups, kernel, kernel, dtype=dtype), weights(features, dtype=dtype)
    tolerance = 0.1 if dtype is torch.bfloat16 else 2e-4
    y, gx, *_ = compared(lambda x, w, b: F.conv2d(x, w, b, stride, padding, dilation, groups), 2, channels, 13, 12, dtype=dtype, tolerance=tolerance, parameters=(w, b))
    assert lies_last(y) and lies_last(gx)


def test_convolution_by_hand():
    x = torch.arange(32.0).reshape(1, 2, 4, 4).contiguous(memory_format=torch.channels_last)
    w = torch.ones(1, 2, 3, 3)
    w[0, 1] = 0
    y = F.conv2d(x, w, padding=1)  # sums of the first channel's neighbours
    assert y[0, 0].tolist() == [[10.0, 18.0, 24.0, 18.0], [27.0, 45.0, 54.0, 39.0], [51.0, 81.0, 90.0, 63.0], [42.0, 66.0, 72.0, 50.0]]


def test_a_weight_that_lies_last_decides_as_well():
    x, w = image(2, 6, 8, 7), weights(20, 6, 3, 3)
    y = F.conv2d(x, w.contiguous(memory_format=torch.channels_last))
    assert lies_last(y)
    torch.testing.assert_close(y.contiguous(), F.conv2d(x, w), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("stride, padding, groups", [(2, 1, 1), (1, 0, 1), (3, 1, 1), (2, 1, 16)])
def test_transposed_convolution(stride, padding, groups):
    w = weights(16, 32 // groups, 3, 3) if groups == 1 else weights(16, 1, 3, 3)
    y, gx, _ = compared(lambda x, w: F.conv_transpose2d(x, w, None, stride, padding, groups=groups), 2, 16, 7, 6, parameters=(w,))
    assert lies_last(y) and lies_last(gx)


def test_volumes():
    y, gx, _ = compared(lambda x, w: F.conv3d(x, w, padding=1), 2, 5, 6, 5, 4, parameters=(weights(18, 5, 3, 3, 3),))
    assert lies_last(y) and lies_last(gx)
    assert lies_last(compared(lambda x: F.max_pool3d(x, 2), 2, 5, 6, 5, 4)[0])


def test_windows_of_images_that_lie_last():
    whole = image(2, 12, 9, 8, last=True)
    x, w = whole[:, 2:8], weights(20, 6, 3, 3)
    assert lies_last(F.conv2d(x, w))
    torch.testing.assert_close(F.conv2d(x, w).contiguous(), F.conv2d(x.contiguous(), w), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(F.max_pool2d(x, 2).contiguous(), F.max_pool2d(x.contiguous(), 2))
    torch.testing.assert_close(F.interpolate(x, scale_factor=2, mode="bilinear").contiguous(), F.interpolate(x.contiguous(), scale_factor=2, mode="bilinear"))
    rows = x[:, :, 1:8:2]
    torch.testing.assert_close(F.conv2d(rows, w).contiguous(), F.conv2d(rows.contiguous(), w), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.max_pool2d(x, 3, 2, 1), lambda x: F.max_pool2d(x, 2, 1, 0, 2), lambda x: F.avg_pool2d(x, 2), lambda x: F.avg_pool2d(x, 3, 2, 1, True, False),
        lambda x: F.adaptive_max_pool2d(x, (3, 2)), lambda x: F.adaptive_avg_pool2d(x, (3, 5)), lambda x: F.interpolate(x, scale_factor=2),
        lambda x: F.interpolate(x, size=(5, 17), mode="bilinear"), lambda x: F.interpolate(x, scale_factor=1.5, mode="nearest-exact"),
        lambda x: F.interpolate(x, size=4, mode="bilinear", antialias=True), lambda x: F.batch_norm(x, None, None, training=True), lambda x: F.group_norm(x, 3),
        lambda x: F.pad(x, (1, 2, 0, 1)), lambda x: torch.cat([x, x * 2], 1), lambda x: F.gelu(x), lambda x: F.relu(x) + x,
    ],
)  # fmt: skip
@pytest.mark.parametrize("channels", [6, 21])
def test_operators_keep_the_format(function, channels):
    y, gx = compared(function, 3, channels, 9, 11)
    assert lies_last(y) and lies_last(gx)


def test_large_group_norm_is_put_together_from_channels():
    w, b = weights(64), weights(64)
    y, gx, *_ = compared(lambda x, w, b: F.group_norm(x, 8, w, b), 2, 64, 24, 20, tolerance=1e-3, parameters=(w, b))
    assert lies_last(y) and lies_last(gx)


def test_places_of_maxima_count_over_the_plane():
    x = image(2, 5, 6, 7, last=True)
    values, places = F.max_pool2d(x, 2, return_indices=True)
    assert lies_last(places)
    assert torch.equal(x.contiguous().flatten(2).gather(2, places.contiguous().flatten(2)).reshape(values.shape), values.contiguous())
    values, places = F.adaptive_max_pool2d(x, (4, 3), return_indices=True)
    assert torch.equal(x.contiguous().flatten(2).gather(2, places.contiguous().flatten(2)).reshape(values.shape), values.contiguous())


def test_a_nan_is_the_largest_and_the_first_of_equals_wins():
    x = torch.zeros(1, 16, 4, 4).contiguous(memory_format=torch.channels_last)
    x[0, 3, 1, 1] = math.nan
    values, places = F.max_pool2d(x, 2, return_indices=True)
    assert values[0, 3, 0, 0].isnan() and places[0, 3, 0, 0] == 5
    assert places[0, 2].tolist() == [[0, 2], [8, 10]]


def test_batch_norm_moves_the_running_statistics():
    for last in (False, True):
        x = image(3, 5, 4, 6, last=last)
        mean, var = torch.zeros(5), torch.ones(5)
        F.batch_norm(x, mean, var, training=True, momentum=0.25)
        rows = x.transpose(0, 1).reshape(5, -1)
        torch.testing.assert_close(mean, rows.mean(1) / 4)
        torch.testing.assert_close(var, 0.75 + rows.var(1) / 4)


def test_gradients_of_infinite_gradients_stay_where_they_are():
    x = torch.zeros(1, 1, 6, 6, requires_grad=True)
    y = F.interpolate(x, size=3)  # every second pixel
    (g,) = torch.autograd.grad(y, x, torch.full_like(y, math.inf))
    assert g.isinf().sum() == 9 and (g == 0).sum() == 27


def test_compiled_networks_run_as_programs():
    nn = torch.nn
    layers = nn.Conv2d(3, 20, 3, 2, 1), nn.BatchNorm2d(20), nn.ReLU(), nn.Conv2d(20, 20, 3, padding=1, groups=20), nn.AvgPool2d(2), nn.Upsample(scale_factor=2, mode="bilinear")
    net = nn.Sequential(*layers, nn.GroupNorm(4, 20), nn.MaxPool2d(2), nn.AdaptiveMaxPool2d(2)).to(memory_format=torch.channels_last)
    compiled = torch.compile(net.forward)
    for _ in range(3):
        x = image(2, 3, 16, 12, last=True)
        start = net[1].running_mean.clone()
        expected = net(x)
        gradients = torch.autograd.grad(expected.square().sum(), list(net.parameters()))
        moved = net[1].running_mean.clone()
        net[1].running_mean.copy_(start)
        actual = compiled(x)
        assert torch.equal(net[1].running_mean, moved) and lies_last(actual)
        torch.testing.assert_close(actual, expected)
        for a, b in zip(torch.autograd.grad(actual.square().sum(), list(net.parameters())), gradients):
            torch.testing.assert_close(a, b)
    assert not compiled.reasons
