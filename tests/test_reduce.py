"""Reductions, moments, running totals: values worked out by hand or with NumPy, gradients, named tuples, errors."""
import numpy as np
import pytest

import strided as torch

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.fixture
def x():
    return torch.tensor(X)


def test_sums_and_means(x):
    assert x.sum().item() == 21 and x.sum(0).tolist() == [5, 7, 9] and x.sum((0, 1)).item() == 21
    assert x.sum(1, keepdim=True).tolist() == [[6], [15]] and x.mean(-1).tolist() == [2, 5]
    assert x.prod(1).tolist() == [6, 120] and torch.tensor([[1, 2], [3, 4]]).prod().item() == 24
    assert torch.tensor([True, True]).sum().dtype == torch.int64 and torch.tensor([1, 2]).sum(dtype=torch.float32).dtype == torch.float32
    assert torch.zeros(0, 3).sum(0).tolist() == [0, 0, 0] and torch.zeros(0).prod().item() == 1


def test_large_sums_are_exact_to_float32():
    a = np.random.default_rng(0).standard_normal(3_000_001).astype(np.float32) + 1
    assert torch.from_numpy(a).sum().item() == pytest.approx(a.sum(dtype=np.float64), rel=1e-6)
    wide = a[:3_000_000].reshape(300, 10_000)
    np.testing.assert_allclose(torch.from_numpy(wide).sum(0).numpy(), wide.sum(0, dtype=np.float64), rtol=1e-5, atol=1e-4)


def test_sixteen_bit_sums_run_in_float32():
    assert torch.ones(4096, dtype=torch.bfloat16).sum().item() == 4096
    assert torch.full((100,), 1000.0, dtype=torch.float16).mean().item() == 1000


def test_extremes(x):
    top = x.max(dim=1)
    assert top.values.tolist() == [3, 6] and top.indices.tolist() == [2, 2]
    assert repr(x.min(0)) == "torch.return_types.min(\nvalues=tensor([1., 2., 3.]),\nindices=tensor([0, 0, 0]))"
    assert x.argmax().item() == 5 and x.argmin(1, keepdim=True).tolist() == [[0], [0]]
    assert x.amax((0, 1)).item() == 6 and [t.item() for t in x.aminmax()] == [1, 6]
    assert torch.max(x, torch.tensor(3.5)).tolist() == [[3.5, 3.5, 3.5], [4, 5, 6]]
    nan = torch.tensor([1.0, float("nan"), 3.0])
    assert torch.isnan(nan.max()) and nan.argmax().item() == nan.argmin().item() == 1


def test_truth():
    m = torch.tensor([[True, False], [True, True]])
    assert m.any().item() and not m.all().item() and m.all(1).tolist() == [False, True] and m.all(dim=0).tolist() == [True, False]
    assert torch.zeros(0).all().item() and not torch.zeros(0).any().item()
    assert torch.tensor([float("nan")]).any().item()


def test_moments_and_norms(x):
    assert x.var().item() == pytest.approx(3.5) and x.var(1, correction=0).tolist() == pytest.approx([2 / 3, 2 / 3])
    assert x.std(0).tolist() == pytest.approx([4.5**0.5] * 3) and x.norm().item() == pytest.approx(91**0.5)
    assert x.norm(1, 1).tolist() == [6, 15] and x.norm(float("inf")).item() == 6
    variance, mean = torch.var_mean(x, 1)
    assert variance.tolist() == [1, 1] and mean.tolist() == [2, 5]
    assert torch.logsumexp(torch.tensor([1000.0, 1000.0]), 0).item() == pytest.approx(1000.6931)
    assert torch.logsumexp(torch.full((2,), float("-inf")), 0).item() == float("-inf")


def test_running_totals(x):
    assert x.cumsum(1).tolist() == [[1, 3, 6], [4, 9, 15]] and x.cumprod(0).tolist() == [[1, 2, 3], [4, 10, 18]]
    best = torch.tensor([1, 3, 2, 3]).cummax(0)
    assert best.values.tolist() == [1, 3, 3, 3] and best.indices.tolist() == [0, 1, 1, 3]
    assert torch.tensor([True, True]).cumsum(0).tolist() == [1, 2] and x.diff().tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    "function, expected",
    [
        (lambda x: x.sum(), [[1, 1, 1], [1, 1, 1]]),
        (lambda x: x.mean(0).sum(), [[0.5] * 3] * 2),
        (lambda x: x.max(1).values.sum(), [[0, 0, 1], [0, 0, 1]]),
        (lambda x: x.prod(1).sum(), [[6, 3, 2], [30, 24, 20]]),
        (lambda x: (x - torch.tensor([[1.0, 0, 0], [4, 0, 0]])).prod(1).sum(), [[6, 0, 0], [30, 0, 0]]),
        (lambda x: x.cumsum(1).sum(), [[3, 2, 1], [3, 2, 1]]),
        (lambda x: x.var(1).sum(), [[-1, 0, 1], [-1, 0, 1]]),
        (lambda x: (x * 0).amax().sum(), [[0] * 3] * 2),
    ],
)
def test_gradients(x, function, expected):
    x.requires_grad_()
    function(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), expected, atol=1e-6)


def test_gradients_of_gradients(x):
    x.requires_grad_()
    (g,) = torch.autograd.grad(x.norm(), x, create_graph=True)
    (h,) = torch.autograd.grad(g[0, 0], x)
    a = np.array(X)
    expected = -a[0, 0] * a / 91**1.5
    expected[0, 0] += 1 / 91**0.5
    np.testing.assert_allclose(h.numpy(), expected, atol=1e-6)


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda x: x.sum(2), IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
        (lambda x: x.sum((0, 0)), RuntimeError, "dim 0 appears multiple times"),
        (lambda x: torch.zeros(0).max(), RuntimeError, "max(): Expected reduction dim to be specified for input.numel() == 0"),
        (lambda x: torch.zeros(2, 0).max(1), IndexError, "max(): Expected reduction dim 1 to have non-zero size."),
        (lambda x: torch.tensor([1, 2]).mean(), RuntimeError, "mean(): could not infer output dtype"),
        (lambda x: torch.tensor([1]).var(), RuntimeError, "std and var only support floating point"),
    ],
)
def test_errors(x, call, kind, message):
    with pytest.raises(kind) as caught:
        call(x)
    assert message in str(caught.value)


def test_meta(x):
    m = x.to("meta")
    assert m.sum(1).is_meta and m.sum(1).shape == (2,) and m.max(0).indices.dtype == torch.int64 and m.cumsum(0).shape == (2, 3)


def test_aminmax_of_no_rows_records():
    x = torch.zeros(2, 0, 3, requires_grad=True)
    low, high = torch.aminmax(x, dim=0)
    (low.sum() + high.sum()).backward()
    assert low.shape == (0, 3) and x.grad.shape == (2, 0, 3)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64, torch.uint8, torch.float32])
def test_all_and_any_ask_for_non_zero_not_for_common_bits(dtype):
    x = torch.tensor([[1, 2, 4], [2, 4, 0]], dtype=dtype)
    assert torch.all(x, 0).tolist() == [1, 1, 0] and torch.all(x, 1).tolist() == [1, 0] and not torch.all(x)
    assert torch.any(x, 0).tolist() == [1, 1, 1] and torch.all(x[:, :2].t(), 0).tolist() == [1, 1]


@pytest.mark.parametrize("order", [-1, -0.5, float("inf"), -float("inf")])
def test_norms_of_nothing_without_an_identity(order):
    for shape, settings, told in (((0,), {}, "an empty tensor because the"), ((3, 0, 2), {"dim": 1}, "the dimension 1 because this dimension is empty"), ((3, 0, 2), {"dim": ()}, "an empty tensor")):
        with pytest.raises(RuntimeError, match=f"linalg.vector_norm cannot compute the {order:g} norm on {told}"):
            torch.linalg.vector_norm(torch.ones(shape), order, **settings)
    assert torch.linalg.vector_norm(torch.ones(3, 0, 2), order, dim=0).shape == (0, 2)


@pytest.mark.parametrize("order", [0, 0.5, 1, 2, 3, float("nan")])
def test_norms_of_nothing_are_zero(order):
    assert torch.linalg.vector_norm(torch.ones(3, 0), order).item() == 0.0 and torch.norm(torch.ones(3, 0), order, dim=1).tolist() == [0.0, 0.0, 0.0]
