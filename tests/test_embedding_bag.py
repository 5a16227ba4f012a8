"""Sums and means of embedding rows by bag: several blocks of rows, gradients of both orders, bad indices."""
import pytest

import strided as torch
import strided.nn.functional as F
from strided.ops import lookup


@pytest.fixture(params=[1, 12, 1 << 17])
def block(request, monkeypatch):
    monkeypatch.setattr(lookup, "BLOCK", request.param)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_of_one_length(block, mode):
    torch.manual_seed(0)
    w, i = torch.randn(7, 4, dtype=torch.float64, requires_grad=True), torch.randint(0, 7, (5, 3))
    out = F.embedding_bag(i, w, mode=mode)
    expected = getattr(w[i], mode)(1)  # [5, 3, 4] -> [5, 4]
    assert torch.allclose(out, expected)
    g = torch.randn(5, 4, dtype=torch.float64)
    (have,), (want,) = torch.autograd.grad(out, w, g), torch.autograd.grad(expected, w, g)
    assert torch.allclose(have, want)
    assert torch.autograd.gradcheck(lambda w: F.embedding_bag(i, w, mode=mode), w)
    assert torch.autograd.gradgradcheck(lambda w: F.embedding_bag(i, w, mode=mode) ** 2, w)


def test_bags_by_offsets_with_padding(block):
    w = torch.arange(10.0).view(5, 2).requires_grad_()
    i, offsets = torch.tensor([0, 4, 1, 2, 2, 3]), torch.tensor([0, 2, 2])  # the second bag is empty
    out = F.embedding_bag(i, w, offsets, mode="mean", padding_idx=1)
    assert torch.allclose(out, torch.tensor([[4.0, 5.0], [0.0, 0.0], [14 / 3, 17 / 3]]))
    out.sum().backward()
    assert torch.allclose(w.grad[:, 0], torch.tensor([1 / 2, 0.0, 2 / 3, 1 / 3, 1 / 2]))


def test_an_index_out_of_range_is_refused(block):
    w = torch.ones(3, 2)
    with pytest.raises(IndexError, match="index out of range in self"):
        F.embedding_bag(torch.tensor([[0, 1], [2, 3]]), w, mode="sum")


def test_int32_indices_and_meta():
    w = torch.ones(3, 2, requires_grad=True)
    F.embedding_bag(torch.tensor([[0, 2]], dtype=torch.int32), w, mode="sum").sum().backward()
    assert w.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
    assert F.embedding_bag(torch.zeros(4, 2, dtype=torch.int64, device="meta"), torch.ones(3, 2, device="meta"), mode="sum").shape == (4, 2)
