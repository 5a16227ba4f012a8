"""Padding with a tensor's own elements: every mode, crops, layouts and dtypes against NumPy, gradients against the copies' transpose."""
import numpy as np
import pytest

import strided as torch
from strided.nn.functional import pad

MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
SHAPES = [((2, 5), (2, 1)), ((2, 3, 70), (0, 9)), ((3, 4, 5), (1, 2, 3, 0)), ((2, 3, 6, 37), (5, 5, 0, 2)), ((2, 4, 5, 6), (1, 1, 2, 2, 0, 3)), ((1, 2, 4, 5, 6), (0, 0, 0, 0, 3, 1))]


def around(shape, places):
    pairs = [(places[i], places[i + 1]) for i in range(len(places) - 2, -1, -2)]
    return [(0, 0)] * (len(shape) - len(pairs)) + pairs


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape, places", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16", "complex128"])
def test_values(mode, shape, places, dtype):
    a = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    expected = np.pad(a, around(shape, places), MODES[mode])
    np.testing.assert_array_equal(pad(torch.from_numpy(a), places, mode).numpy(), expected)
    turned = torch.from_numpy(np.ascontiguousarray(a.swapaxes(-1, -2))).transpose(-1, -2)  # elements of a row lie apart
    np.testing.assert_array_equal(pad(turned, places, mode).numpy(), expected)


def test_channels_last():
    x = torch.arange(2 * 3 * 4 * 5.0).view(2, 3, 4, 5).to(memory_format=torch.channels_last)
    y = pad(x, (1, 2, 3, 0), "reflect")
    assert y.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_array_equal(y.numpy(), np.pad(x.numpy(), around(x.shape, (1, 2, 3, 0)), "reflect"))
    assert pad(x, (1, 2, 3, 0), "circular").is_contiguous()


@pytest.mark.parametrize("mode, places", [("reflect", (2, -1)), ("reflect", (-3, 4)), ("replicate", (6, -7)), ("replicate", (-5, 9)), ("replicate", (-2, -1)), ("circular", (3, -1)), ("circular", (-2, 2))])  # fmt: skip
def test_crops(mode, places):
    """A negative amount cuts off; what remains around the rest is still that of the whole, except that nothing cropped is wrapped around."""
    a = np.arange(12.0).reshape(2, 6)
    before, after = places
    source, index = a, np.arange(-before, 6 + after)
    if mode == "circular":
        source = a[:, max(-before, 0) : 6 - max(-after, 0)]
        index = np.arange(-max(before, 0), source.shape[1] + max(after, 0)) % source.shape[1]
    elif mode == "replicate":
        index = index.clip(0, 5)
    else:
        index = 5 - np.abs(5 - np.abs(index))
    x = torch.from_numpy(a).requires_grad_()
    y = pad(x, places, mode)
    np.testing.assert_array_equal(y.detach().numpy(), source[:, index])
    y.backward(torch.arange(y.numel()).view(y.shape).double())
    expected, first = np.zeros_like(a), max(-before, 0) if mode == "circular" else 0
    np.add.at(expected.T, index + first, np.arange(y.numel()).reshape(y.shape).T)
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@pytest.mark.parametrize("mode", MODES)
def test_gradients(mode):
    x = torch.randn(2, 3, 5, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: pad(x, (2, 1, 0, 3), mode), x) and torch.autograd.gradgradcheck(lambda x: pad(x, (2, 1, 0, 3), mode), x)
    name = {"reflect": "ReflectionPad2DBackward0", "replicate": "ReplicationPad2DBackward0"}.get(mode)
    assert name is None or pad(x, (2, 1, 0, 3), mode).grad_fn.name() == name


def test_nothing_and_meta():
    assert pad(torch.zeros(0, 3, 4), (1, 1), "reflect").shape == (0, 3, 6)
    meta = pad(torch.empty(2, 3, 4, 5, device="meta"), (1, 1, 2, 2), "reflect")
    assert meta.shape == (2, 3, 8, 7) and meta.device.type == "meta"
    with pytest.raises(RuntimeError, match="Padding size should be less than the corresponding input dimension"):
        pad(torch.zeros(1, 3, 4), (4, 0), "reflect")
    with pytest.raises(RuntimeError, match="wrapping around more than once"):
        pad(torch.zeros(1, 3, 4), (5, 0), "circular")


def test_many_rows_over_threads():
    a = np.random.default_rng(0).standard_normal((8, 16, 40, 40)).astype(np.float32)
    for mode, name in MODES.items():
        np.testing.assert_array_equal(pad(torch.from_numpy(a), (3, 3, 2, 2), mode).numpy(), np.pad(a, around(a.shape, (3, 3, 2, 2)), name))
