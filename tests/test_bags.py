"""Embedding bags: sums and means by bag in one kernel, against NumPy in float64; padding, weights, empty bags, errors, gradients."""
import numpy as np
import pytest

import strided as torch
from strided.nn.functional import embedding_bag

RNG = np.random.default_rng(0)
IDS = RNG.integers(0, 30, 40)
STARTS = np.array([0, 0, 7, 20, 33, 40, 40])


def expected(table, ids, starts, mode, weights=None, padding=None):
    rows = []
    for begin, end in zip(starts, [*starts[1:], len(ids)]):
        kept = [i for i in range(begin, end) if ids[i] != padding]
        total = sum(((1 if weights is None else weights[i]) * table[ids[i]].astype(np.float64) for i in kept), np.zeros(table.shape[1]))
        rows.append(total / max(len(kept), 1) if mode == "mean" else total)
    return np.array(rows)


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("width", [1, 5, 64, 300])
@pytest.mark.parametrize("dtype, index", [("float32", "int64"), ("float64", "int32"), ("float16", "int64")])
@pytest.mark.parametrize("padding", [None, 4])
def test_values(mode, width, dtype, index, padding):
    table = RNG.standard_normal((30, width)).astype(dtype)
    w, ids = torch.from_numpy(table), torch.from_numpy(IDS.astype(index))
    close = {"rtol": 2e-3, "atol": 2e-3} if dtype == "float16" else {"rtol": 1e-5, "atol": 1e-6}
    got = embedding_bag(ids, w, torch.from_numpy(STARTS), mode=mode, padding_idx=padding)
    np.testing.assert_allclose(got.numpy(), expected(table, IDS, STARTS, mode, None, padding), **close)
    got = embedding_bag(ids.view(8, 5), w, mode=mode, padding_idx=padding)
    np.testing.assert_allclose(got.numpy(), expected(table, IDS, np.arange(0, 40, 5), mode, None, padding), **close)
    wide = torch.from_numpy(np.concatenate([table, table], 1))[:, :width]  # rows lie apart
    assert torch.equal(embedding_bag(ids.view(8, 5), wide, mode=mode, padding_idx=padding), got)


def test_weights_and_the_last_offset():
    table, weights = RNG.standard_normal((30, 9)), RNG.standard_normal(40)
    args = torch.from_numpy(IDS), torch.from_numpy(table), torch.from_numpy(STARTS)
    got = embedding_bag(*args, mode="sum", per_sample_weights=torch.from_numpy(weights))
    np.testing.assert_allclose(got.numpy(), expected(table, IDS, STARTS, "sum", weights))
    got = embedding_bag(args[0], args[1], torch.tensor([0, 10, 35]), mode="sum", include_last_offset=True)
    np.testing.assert_allclose(got.numpy(), expected(table, IDS[:35], [0, 10], "sum"))


def test_many_bags_over_threads():
    table, ids = RNG.standard_normal((1000, 32)).astype(np.float32), RNG.integers(0, 1000, (3000, 7))
    got = embedding_bag(torch.from_numpy(ids), torch.from_numpy(table), mode="mean")
    np.testing.assert_allclose(got.numpy(), table[ids].mean(1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("padding", [None, 4])
def test_gradients(mode, padding):
    table = torch.from_numpy(RNG.standard_normal((30, 3))).requires_grad_()
    ids, starts = torch.from_numpy(IDS), torch.from_numpy(STARTS)
    scale = torch.from_numpy(RNG.standard_normal(40)).requires_grad_() if mode == "sum" else None
    inputs = (table,) if scale is None else (table, scale)
    run = lambda *given: embedding_bag(ids, given[0], starts, mode=mode, padding_idx=padding, per_sample_weights=given[1] if scale is not None else None)
    assert torch.autograd.gradcheck(run, inputs) and torch.autograd.gradgradcheck(run, inputs)
    assert run(*inputs).grad_fn.name() == "EmbeddingBagBackward0"
    plain = lambda w: embedding_bag(ids.view(8, 5), w, mode=mode, padding_idx=padding)
    assert torch.autograd.gradcheck(plain, (table,))


def test_errors():
    w = torch.zeros(5, 2)
    for bad in (5, -1):
        with pytest.raises(IndexError, match="index out of range in self"):
            embedding_bag(torch.tensor([[0, bad]]), w)
    with pytest.raises(RuntimeError, match=r"offsets\[0\] has to be 0, .* However, got 1"):
        embedding_bag(torch.tensor([0, 1]), w, torch.tensor([1]))
    with pytest.raises(RuntimeError, match=r"offsets\[-1\] can not be greater than input's length 2 but got offsets\[-1\] of 3"):
        embedding_bag(torch.tensor([0, 1]), w, torch.tensor([0, 3]))
    assert embedding_bag(torch.tensor([[0, 1]]), w).tolist() == [[0, 0]]  # an error leaves nothing behind
