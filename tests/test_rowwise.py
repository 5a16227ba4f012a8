"""Row operators and losses: values by NumPy, gradients against finite differences, large inputs, errors."""
import numpy as np
import pytest

import strided as torch
import strided.nn.functional as F

rng = np.random.default_rng(0)
A = rng.standard_normal((3, 5))
W, B = rng.standard_normal(5), rng.standard_normal(5)
TARGET = [1, -100, 4]


def softmax(a, axis=-1):
    e = np.exp(a - a.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def layer_norm(a):
    return (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-5)


def rms_norm(a):
    return a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-6)


CASES = {
    "softmax": (lambda t: torch.softmax(t, -1), softmax),
    "softmax over rows": (lambda t: torch.softmax(t, 0), lambda a: softmax(a, 0)),
    "log_softmax": (lambda t: torch.log_softmax(t, 1), lambda a: np.log(softmax(a))),
    "layer_norm": (lambda t: F.layer_norm(t, (5,), t.new_tensor(W), t.new_tensor(B)), lambda a: layer_norm(a) * W + B),
    "layer_norm plain": (lambda t: F.layer_norm(t, (5,)), layer_norm),
    "rms_norm": (lambda t: F.rms_norm(t, (5,), t.new_tensor(W), 1e-6), lambda a: rms_norm(a) * W),
    "cross_entropy": (lambda t: F.cross_entropy(t, torch.tensor(TARGET)), lambda a: -np.log(softmax(a))[[0, 2], [1, 4]].mean()),
    "cross_entropy sum": (lambda t: F.cross_entropy(t, torch.tensor(TARGET), reduction="sum"), lambda a: -np.log(softmax(a))[[0, 2], [1, 4]].sum()),
}


@pytest.mark.parametrize("name", CASES)
def test_values_in_every_float(name):
    function, reference = CASES[name]
    for dtype, tolerance in (torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 4e-2), (torch.float16, 5e-3):
        out = function(torch.tensor(A, dtype=dtype))
        assert out.dtype == dtype
        np.testing.assert_allclose(out.double().numpy(), reference(A), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_gradients_and_their_gradients(name):
    function, _ = CASES[name]
    x = torch.tensor(A, requires_grad=True)
    assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(function, (x,))


def test_gradients_of_weights():
    x, w, b = (torch.tensor(v, requires_grad=True) for v in (A, W, B))
    assert torch.autograd.gradcheck(lambda *t: F.layer_norm(t[0], (5,), t[1], t[2]), (x, w, b))
    assert torch.autograd.gradcheck(lambda *t: F.rms_norm(t[0], (5,), t[1], 1e-3), (x, w))


def test_rows_of_one_element_have_no_gradient():
    x, w = torch.tensor([0.7], requires_grad=True), torch.tensor([1.234567], requires_grad=True)
    F.layer_norm(x, (1,), w).sum().backward()
    assert x.grad.item() == 0


def test_large_logits_and_masked_rows():
    assert torch.softmax(torch.tensor([1000.0, 1000.0]), 0).tolist() == [0.5, 0.5]
    row = torch.softmax(torch.tensor([0.0, float("-inf")]), 0)
    assert row.tolist() == [1, 0]
    assert torch.isnan(torch.softmax(torch.full((2,), float("-inf")), 0)).all()


def test_losses():
    x = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
    each = F.cross_entropy(x, torch.tensor([0, 0]), reduction="none")
    assert each.tolist() == pytest.approx([0.126928, 2.126928], abs=1e-5)
    weighted = F.cross_entropy(x, torch.tensor([0, 1]), torch.tensor([1.0, 3.0]))
    assert weighted.item() == pytest.approx(0.126928, abs=1e-5)
    smooth = F.cross_entropy(x, torch.tensor([0, 1]), label_smoothing=0.5)
    assert smooth.item() == pytest.approx(0.126928 * 0.75 + 2.126928 * 0.25, abs=1e-5)
    soft = F.cross_entropy(x, torch.tensor([[0.75, 0.25], [0.25, 0.75]]))
    assert soft.item() == pytest.approx(smooth.item(), abs=1e-6)
    assert F.nll_loss(torch.log_softmax(x, 1), torch.tensor([0, 1])).item() == pytest.approx(0.126928, abs=1e-5)
    image = torch.zeros(1, 3, 2, 2)
    assert F.cross_entropy(image, torch.zeros(1, 2, 2, dtype=torch.int64)).item() == pytest.approx(np.log(3), abs=1e-6)


def test_errors():
    x = torch.tensor(A)
    for call, kind, message in [
        (lambda: F.cross_entropy(x, torch.tensor([0, 1, 9])), IndexError, "Target 9 is out of bounds."),
        (lambda: F.cross_entropy(x, torch.tensor([0, 1])), ValueError, "Expected input batch_size (3) to match target batch_size (2)."),
        (lambda: F.layer_norm(x, (4,)), RuntimeError, "Given normalized_shape=[4], expected input with shape [*, 4], but got input of size[3, 5]"),
        (lambda: torch.softmax(x, 2), IndexError, "Dimension out of range"),
        (lambda: torch.softmax(torch.tensor([1]), 0), NotImplementedError, "\"softmax_lastdim_kernel_impl\" not implemented for 'Long'"),
    ]:
        with pytest.raises(kind) as caught:
            call()
        assert message in str(caught.value)


def test_meta():
    m = torch.empty(3, 5, device="meta", requires_grad=True)
    F.layer_norm(torch.softmax(m, -1), (5,)).sum().backward()
    assert m.grad.is_meta and m.grad.shape == (3, 5)
    assert F.cross_entropy(m, torch.empty(3, dtype=torch.int64, device="meta")).shape == ()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_leaves_ignored_rows_out(reduction):
    x = torch.tensor([[0.0, 0.0], [5.0, -5.0], [0.0, 0.0]], requires_grad=True)
    loss = F.cross_entropy(x, torch.tensor([0, -100, 1]), reduction=reduction)
    count = 2 if reduction == "mean" else 1
    assert loss.tolist() == pytest.approx([np.log(2), 0, np.log(2)] if reduction == "none" else 2 * np.log(2) / count)
    loss.sum().backward()
    assert x.grad.tolist() == [[-0.5 / count, 0.5 / count], [0, 0], [0.5 / count, -0.5 / count]]


def test_cross_entropy_twice_differentiated():
    x = torch.tensor([[0.0, 0.0], [1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda t: F.cross_entropy(t, torch.tensor([0, 1])), (x,))


def test_norms_that_nobody_records_are_those_that_are():
    """Without gradients the statistics are not computed; values, plans and errors are the same, whatever spells the arguments."""
    x, w, b = torch.arange(24.0).reshape(4, 6).sin(), torch.linspace(0.5, 2, 6), torch.linspace(-1, 1, 6)
    tracked = x.clone().requires_grad_()
    for weight in (None, w):
        for shape in (6, [6], (6,), torch.Size([6])):
            for eps in (None, 1e-3, 0, torch.tensor(1e-3)):
                kept = F.rms_norm(tracked, shape, weight, eps)
                assert kept.grad_fn is not None and all(F.rms_norm(x, shape, weight, eps).tolist() == kept.tolist() for _ in range(2))
            if not isinstance(shape, int):
                for bias in (None, b):
                    for eps in (1e-5, 1e-3, 0):
                        kept = F.layer_norm(tracked, shape, weight, bias, eps)
                        assert kept.grad_fn is not None and all(F.layer_norm(x, shape, weight, bias, eps).tolist() == kept.tolist() for _ in range(2))
    with pytest.raises(RuntimeError, match="normalized_shape"):
        F.layer_norm(x, (5,), w, b)
    assert F.layer_norm(x.to("meta"), (6,)).is_meta and F.rms_norm(x.to("meta"), (6,)).shape == (4, 6)
