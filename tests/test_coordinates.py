"""to_sparse: the coordinates of what is not 0, conversions that keep them, how it is shown, and what is refused. Values by hand."""
import copy
import pickle

import pytest

import strided as torch
from strided import nn

X = [[0.0, 2.0], [3.0, 0.0]]


def test_coordinates_and_values():
    s = torch.tensor(X).to_sparse()
    assert s.is_sparse and s.layout is torch.sparse_coo and s.is_coalesced() and s.coalesce() is s and s.to_sparse() is s
    assert (s._nnz(), s.sparse_dim(), s.dense_dim(), tuple(s.shape), s.dtype) == (2, 2, 0, (2, 2), torch.float32)
    assert s.indices().tolist() == [[0, 1], [1, 0]] and s.indices().dtype is torch.int64 and s.values().tolist() == [2, 3]
    dense = s.to_dense()
    assert type(dense) is torch.Tensor and dense.tolist() == X and not dense.is_sparse and dense.layout is torch.strided
    dense[0, 0] = 9
    assert s._nnz() == 2 and s.to_dense(torch.float64).dtype is torch.float64
    product = s @ torch.ones(2, 2)
    assert type(product) is torch.Tensor and product.tolist() == [[2, 2], [3, 3]]
    heads = torch.tensor([[False, True], [True, True]]).to_sparse()
    assert [(a.item(), b.item()) for a, b in heads.indices().T] == [(0, 1), (1, 0), (1, 1)]
    assert torch.zeros(2, 2).to_sparse().indices().shape == (2, 0) and torch.tensor(4.0).to_sparse().values().tolist() == [4]


def test_gradients_go_to_the_dense_tensor():
    x = torch.tensor(X, requires_grad=True)
    (x.to_sparse() @ torch.ones(2, 1)).sum().backward()
    assert x.grad.tolist() == [[1, 1], [1, 1]]
    x.grad = None
    (x.to_sparse().values() * 2).sum().backward()
    assert x.grad.tolist() == [[0, 2], [2, 0]]


def test_as_a_buffer():
    net = nn.Linear(2, 2)
    net.register_buffer("heads", torch.tensor(X).to_sparse(), persistent=False)
    net.half()
    assert net.heads.is_sparse and net.heads.dtype is torch.float16 and net.heads.values().tolist() == [2, 3]
    again = copy.deepcopy(net.float().cpu())
    assert again.heads.is_sparse and again.heads is not net.heads and again.heads.values().tolist() == [2, 3] and "heads" not in net.state_dict()


def test_shown():
    assert repr(torch.tensor(X).half().to_sparse()) == (
        "tensor(indices=tensor([[0, 1],\n                       [1, 0]]),\n       values=tensor([2., 3.]),\n       size=(2, 2), nnz=2, dtype=torch.float16, layout=torch.sparse_coo)"
    )
    assert repr(torch.zeros(2).to_sparse()) == "tensor(indices=tensor([], size=(1, 0)),\n       values=tensor([], size=(0,)),\n       size=(2,), nnz=0, layout=torch.sparse_coo)"


def test_refused():
    s = torch.tensor(X).to_sparse()
    with pytest.raises(TypeError, match="can't convert Sparse layout tensor to numpy. Use Tensor.to_dense"):
        s.numpy()
    with pytest.raises(NotImplementedError, match="save x.to_dense"):
        pickle.dumps(s)
    with pytest.raises(NotImplementedError, match="leave sparse_dim"):
        torch.tensor(X).to_sparse(1)
    with pytest.raises(NotImplementedError, match="sparse_csr"):
        torch.tensor(X).to_sparse(layout=torch.sparse_csr)
    with pytest.raises(AttributeError, match="tensors here are dense"):
        torch.tensor(X).indices()
