"""The gradient of a spatial transformer that begins with the identity, against PyTorch."""
import pytest

torch = pytest.importorskip("torch")
import strided


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(13, 17), (28, 28)])
def test_identity(dtype, align_corners, size):
    image = torch.rand(2, 3, *size, dtype=getattr(torch, dtype), generator=torch.Generator().manual_seed(0))
    found = []
    for L in (torch, strided):
        x = image if L is torch else strided.from_numpy(image.numpy())
        theta = L.tensor([[[1.0, 0, 0], [0, 1, 0]]] * 2, dtype=getattr(L, dtype), requires_grad=True)
        out = L.nn.functional.grid_sample(x, L.nn.functional.affine_grid(theta, (2, 3, *size), align_corners=align_corners), align_corners=align_corners)
        out.square().sum().backward()
        found.append(theta.grad.tolist())
    torch.testing.assert_close(torch.tensor(found[1]), torch.tensor(found[0]), rtol=1e-4, atol=1e-3)
