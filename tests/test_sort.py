"""sort, topk, order statistics, unique: values and places, NaN, ties, gradients."""
import sys

import numpy as np
import pytest

import strided as torch
from strided.kernels import native, order

NAN = float("nan")


def test_sort():
    x = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
    values, indices = x.sort()
    assert values.tolist() == [[1, 2, 3], [0, 4, 5]] and indices.tolist() == [[1, 2, 0], [0, 2, 1]]
    assert x.sort(0, descending=True).values.tolist() == [[3, 5, 4], [0, 1, 2]]
    assert x.argsort(1, descending=True).tolist() == [[0, 2, 1], [1, 2, 0]] and x.msort().tolist() == [[0, 1, 2], [3, 5, 4]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_nan_is_the_largest(dtype):
    x = torch.tensor([1.0, NAN, float("inf"), -2.0], dtype=dtype)
    assert x.sort().indices.tolist() == [3, 0, 2, 1] and x.sort(descending=True).indices.tolist() == [1, 2, 0, 3]
    assert x.topk(2).indices.tolist() == [1, 2] and x.topk(1, largest=False).values.tolist() == [-2]


def test_equal_elements_keep_their_order():
    x = torch.tensor([1, 0, 1, 0, 1])
    assert x.sort(stable=True).indices.tolist() == [1, 3, 0, 2, 4] and x.sort(descending=True).indices.tolist() == [0, 2, 4, 1, 3]
    assert torch.tensor([2**63 - 1, -(2**63)]).sort(descending=True).indices.tolist() == [0, 1]


def test_topk_prints_as_pytorch():
    x = torch.tensor([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0])
    assert repr(x.topk(3)) == "torch.return_types.topk(\nvalues=tensor([9., 5., 4.]),\nindices=tensor([5, 4, 2]))"
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        x.topk(8)


def test_topk_of_many():
    a = np.random.default_rng(0).permutation(20_000).astype(np.float32).reshape(4, 5000)
    values, indices = torch.from_numpy(a).topk(50)
    expected = np.argsort(-a, axis=1)[:, :50]
    np.testing.assert_array_equal(indices.numpy(), expected)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(a, expected, 1))


def test_order_statistics():
    x = torch.tensor([[4.0, 1.0, 3.0, 2.0], [7.0, NAN, 5.0, 6.0]])
    assert torch.tensor([4, 1, 3, 2]).median().item() == 2
    middle = x.median(1)
    assert middle.values[0].item() == 2 and middle.indices.tolist() == [3, 1] and torch.isnan(middle.values[1])
    assert x.nanmedian(1).values.tolist() == [2, 6] and x.kthvalue(2, 1).indices.tolist() == [3, 3]
    most = torch.tensor([[2, 1, 2, 1, 3]]).mode()
    assert most.values.tolist() == [1] and most.indices.tolist() == [3]
    assert x[0].quantile(0.5).item() == 2.5 and x[0].quantile(torch.tensor([0.0, 1.0])).tolist() == [1, 4]
    assert torch.isnan(x[1].quantile(0.5)) and x[1].nanquantile(0.5).item() == 6


def test_unique():
    x = torch.tensor([3, 1, 3, 2])
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 3] and inverse.tolist() == [2, 0, 2, 1] and counts.tolist() == [1, 1, 2]
    assert torch.tensor([[1, 2], [1, 2], [0, 1]]).unique(dim=0).tolist() == [[0, 1], [1, 2]]
    values, counts = torch.tensor([1, 1, 2, 1]).unique_consecutive(return_counts=True)
    assert values.tolist() == [1, 2, 1] and counts.tolist() == [2, 1, 1]


@pytest.mark.parametrize(
    "function, expected",
    [
        (lambda x: x.sort().values, [3, 1, 2]),
        (lambda x: x.topk(2).values, [1, 0, 2]),
        (lambda x: x.median(0).values, [0, 0, 1]),
        (lambda x: x.kthvalue(1).values, [0, 1, 0]),
    ],
)
def test_gradients(function, expected):
    x = torch.tensor([30.0, 10.0, 20.0], requires_grad=True)
    out = function(x)
    (out * torch.arange(1.0, out.numel() + 1).reshape(out.shape)).sum().backward()
    assert x.grad.tolist() == expected


def test_meta():
    x = torch.empty(3, 4, device="meta")
    assert x.sort(0).indices.shape == (3, 4) and x.topk(2).values.shape == (3, 2) and x.median(1).values.shape == (3,)


@pytest.mark.parametrize("shape, dim", [((50_000,), 0), ((3, 7000), 1), ((7000, 3), 0), ((40, 1000), 1)])
@pytest.mark.parametrize("largest", [True, False])
def test_topk_of_long_rows(shape, dim, largest):
    a = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    for values in (a, np.where(a > 3.5, np.nan, a).astype(np.float32), np.round(a)):
        got, at = torch.from_numpy(values.copy()).topk(20, dim, largest)
        ranked = np.argsort(values, axis=dim, kind="stable") if not largest else np.flip(np.argsort(np.flip(values, dim), axis=dim, kind="stable"), dim)
        expected = np.take_along_axis(values, ranked if not largest else values.shape[dim] - 1 - ranked, dim).take(range(20), axis=dim)
        np.testing.assert_array_equal(got.numpy(), expected)
        np.testing.assert_array_equal(np.take_along_axis(values, at.numpy(), dim), got.numpy())


def test_which_of_equals():
    """Selection among equal elements goes as the C++ library's does; rows of up to 16 are sorted by insertion and keep their order."""
    assert torch.kthvalue(torch.tensor([1, 0, 1, 0, 1]), 2).indices.item() == 3
    x = torch.tensor([1, 0] * 10)
    values, indices = torch.topk(x, 12)
    assert values.tolist() == [1] * 10 + [0] * 2 and len(set(indices.tolist())) == 12 and x[indices].tolist() == values.tolist()
    assert [t.item() for t in torch.mode(torch.tensor([2, 1, 2, 1]))] == [1, 3]


@pytest.mark.parametrize("mode", range(5))
def test_arranged_rows(mode):
    """Each way of kernels/order.py puts the fourth least key fourth, lesser ones before it, and carries the positions along."""
    row = [5, 3, 3, 9, 1, 3, 7, 2]
    keys, positions = torch.tensor([row] * 2), torch.arange(8).repeat(2, 1).contiguous()
    native.launch(order.build_order(mode, 2, 8, 4), keys.data_ptr(), positions.data_ptr())
    got = keys[0].tolist()
    assert sorted(got[:4]) == [1, 2, 3, 3] and got[3] == 3 and sorted(got) == sorted(row) and keys[1].tolist() == got
    assert [row[p] for p in positions[0].tolist()] == got


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n, k", [(64, 1), (131, 2), (1000, 7), (4096, 64)])
@pytest.mark.parametrize("largest", [True, False])
def test_the_one_pass_of_topk_chooses_as_the_general_kernel_does(dtype, n, k, largest):
    sort = sys.modules["strided.ops.sort"]  # the package has the operator under this name

    rng = np.random.default_rng(n + k)
    rows = rng.standard_normal((5, n)).astype(dtype)
    rows[1] = np.round(rows[1])  # equals
    rows[2, ::7] = np.nan
    rows[3] = np.where(rng.random(n) < 0.5, -0.0, 0.0)
    rows[4, 3], rows[4, 9] = np.inf, -np.inf
    found = torch.topk(torch.from_numpy(rows), k, largest=largest)
    expected = sort._arranged(rows, order.TOP, k, largest)[:, :k]
    assert np.array_equal(found.indices.numpy(), expected)
    assert np.array_equal(found.values.numpy(), np.take_along_axis(rows, expected, -1), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.bfloat16])
def test_a_median_lies_where_a_stable_sort_puts_the_middle(dtype):
    made = torch.Generator().manual_seed(3)
    for shape, dim in (((9,), 0), ((4, 6), 0), ((4, 6), 1), ((2, 5, 3), 1)):
        x = torch.randint(-2, 3, shape, generator=made).to(dtype)
        middle = (shape[dim] - 1) // 2
        order = x.argsort(dim, stable=True).select(dim, middle)
        for found in (x.median(dim), x.nanmedian(dim)):
            assert found.indices.equal(order) and found.values.equal(x.gather(dim, order.unsqueeze(dim)).squeeze(dim))


@pytest.mark.parametrize("k", [1, 3, 64, 130])
@pytest.mark.parametrize("largest", [True, False])
def test_topk_of_rows_with_equals(k, largest):
    """Rows of distinct numbers are ranked by counting; beside them rows with equal numbers, zeros of both signs, NaN and infinities among the best go the long way."""
    rng = np.random.default_rng(4)
    a = rng.standard_normal((64, 1051)).astype(np.float32)
    a[1::8] = np.round(a[1::8] * 4) / 4
    a[2::8, rng.integers(0, 1051, 9)] = np.nan
    a[3::8, 5], a[3::8, 9] = np.inf, -np.inf
    a[4::8] = np.sort(a[4::8])
    a[5::8] = np.sort(a[5::8])[:, ::-1]
    a[6::8], a[6::8, ::3] = 0.0, -0.0
    values, at = torch.from_numpy(a).topk(k, largest=largest)
    ranked = np.sort(np.where(np.isnan(a), np.inf, a)) if not largest else -np.sort(np.where(np.isnan(a), -np.inf, -a))
    nan = np.isnan(a).sum(1, keepdims=True)
    expected = ranked[:, :k].copy()
    if largest:
        expected[np.arange(k) < nan] = np.nan
    np.testing.assert_array_equal(values.numpy(), expected)
    np.testing.assert_array_equal(np.take_along_axis(a, at.numpy(), 1), values.numpy())
    assert all(len(set(row)) == k for row in at.tolist())
    alone = torch.stack([torch.from_numpy(row.copy()).topk(k, largest=largest).indices for row in a])  # few numbers: by the way that knows of equals
    assert at.tolist() == alone.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bool", "int8", "uint8", "int16", "int32", "int64", "float16"])
@pytest.mark.parametrize("shape, dim", [((3, 1500), 1), ((1500, 3), 0), ((2, 200), -1), ((37,), 0), ((1, 300_000), 1)])
def test_sort_of_long_rows(dtype, shape, dim):
    """Sorted digit by digit: equals keep their order, NaN is the largest, both zeros are equal."""
    rng = np.random.default_rng(5)
    if dtype.startswith("float"):
        a = (rng.standard_normal(shape) * 3).astype(dtype)
        flat = a.reshape(-1)
        flat[::11], flat[::13], flat[::17], flat[::19] = 0.0, -0.0, np.nan, -np.inf
    else:
        limits = np.iinfo(dtype) if dtype != "bool" else None
        a = rng.integers(limits.min, limits.max, shape, dtype, True) if limits else rng.integers(0, 2, shape).astype(bool)
        a.reshape(-1)[: a.size // 2] = a.reshape(-1)[:5].repeat(a.size // 2 // 5 + 1)[: a.size // 2]
    x = torch.from_numpy(a)
    values, at = x.sort(dim)
    expected = np.argsort(a, axis=dim, kind="stable")
    np.testing.assert_array_equal(at.numpy(), expected)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(a, expected, dim))
    values, at = x.sort(dim, descending=True)
    turned = np.flip(np.argsort(np.flip(a, dim), axis=dim, kind="stable"), dim)
    np.testing.assert_array_equal(at.numpy(), a.shape[dim] - 1 - turned)
    assert values.is_contiguous() and at.is_contiguous()
