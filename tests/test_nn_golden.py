"""Modules and functions against values PyTorch gave once (golden/nn.json): results, gradients, and draws from the generator."""
import importlib.util
import json
import pathlib

import pytest

import strided as torch
import strided.nn as nn
import strided.nn.functional as F

HERE = pathlib.Path(__file__).parent / "golden"
_spec = importlib.util.spec_from_file_location("make_nn", HERE / "make_nn.py")
make_nn = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_nn)
CASES = json.loads((HERE / "nn.json").read_text())


@pytest.mark.parametrize("text,shapes,expected", CASES, ids=[c[0] for c in CASES])
@pytest.mark.filterwarnings("ignore")
def test_golden(text, shapes, expected):
    found = make_nn.run(torch, nn, F, text, *shapes)
    assert len(found) == len(expected) and found[-1] == expected[-1]
    for mine, theirs in zip(found[:-1], expected[:-1]):
        assert mine[0] == theirs[0]
        assert mine[1:] == pytest.approx(theirs[1:], rel=1e-4, abs=1e-4)


def test_batch_norm_can_be_differentiated_twice():
    """Against finite differences of the first gradient."""
    torch.manual_seed(0)
    x = torch.randn(4, 3, 2, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(3, dtype=torch.float64, requires_grad=True)

    def f(x, weight, bias):
        return F.batch_norm(x, None, None, weight, bias, True)

    assert torch.autograd.gradcheck(f, (x, weight, bias))
    assert torch.autograd.gradgradcheck(f, (x, weight, bias))


def test_pooling_of_minus_infinity_stays_inside():
    x = torch.full((1, 1, 4, 4), float("-inf"), requires_grad=True)
    values, index = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    assert (values == float("-inf")).all() and index.min() >= 0 and index.max() < 16


def test_meta_tensors_give_shapes():
    with torch.no_grad():
        net = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 16, 5)).to("meta")
        assert net(torch.empty(2, 3, 16, 16, device="meta")).shape == (2, 5)


def test_a_convolution_is_one_operator():
    from strided.dispatch import listen

    events = []
    layer, x = nn.Conv2d(4, 8, 3, padding=1), torch.randn(2, 4, 6, 6)
    with torch.no_grad(), listen(events.append):
        layer(x)
    (event,) = events
    assert (event.op, event.kind, event.outputs[0].shape, event.bytes_written) == ("conv2d", "compute", (2, 8, 6, 6), 2 * 8 * 36 * 4)
    assert event.flops == 2 * 2 * 8 * 36 * 4 * 9 + 2 * 8 * 36  # each output element: a product with 4 · 9 weights, and the bias
