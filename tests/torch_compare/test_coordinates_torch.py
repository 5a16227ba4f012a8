"""to_sparse against PyTorch: coordinates, values, gradients and what is printed."""
import pytest

torch = pytest.importorskip("torch")
import strided


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bool", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 2), (0, 3)])
def test_coordinates(dtype, shape):
    found = []
    for L in (torch, strided):
        x = (L.arange(max(1, 12))[: max(1, torch.Size(shape).numel())] % 3)[: torch.Size(shape).numel()].reshape(shape).to(getattr(L, dtype))
        s = x.to_sparse()
        found.append((repr(s), s.indices().tolist(), s.values().tolist(), s._nnz(), s.to_dense().tolist(), s.sparse_dim(), str(s.layout), str((s.to_dense() + x).dtype)))
    assert found[0] == found[1]


def test_gradients():
    found = []
    for L in (torch, strided):
        x = L.tensor([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]], requires_grad=True)
        s = x.to_sparse()
        ((s @ L.arange(6.0).reshape(3, 2)).sum() + (s.values() ** 2).sum()).backward()
        found.append(x.grad.tolist())
    assert found[0] == found[1]
