"""svd_lowrank and pca_lowrank: factors of matrices whose rank is known, the same with the shift of a mean, gradients, and bad arguments."""
import pytest

import strided as torch


def product(U, S, V):
    return U @ torch.diag_embed(S.to(U.dtype)) @ V.mH


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("shape", [(7, 12), (12, 7), (2, 3, 9, 6)])
def test_a_matrix_of_low_rank_is_found(dtype, shape):
    torch.manual_seed(0)
    A = torch.randn(*shape[:-1], 3, dtype=dtype) @ torch.randn(*shape[:-2], 3, shape[-1], dtype=dtype)
    U, S, V = torch.svd_lowrank(A, q=4)
    assert U.shape == (*shape[:-1], 4) and S.shape == (*shape[:-2], 4) and V.shape == (*shape[:-2], shape[-1], 4)
    torch.testing.assert_close(product(U, S, V), A, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(S[..., :3], torch.linalg.svdvals(A)[..., :3], atol=1e-4, rtol=1e-4)
    assert S[..., 3].abs().max() < 1e-4
    torch.testing.assert_close(U.mH @ U, torch.eye(4, dtype=dtype).expand(*shape[:-2], 4, 4), atol=1e-4, rtol=1e-4)


def test_shifts():
    torch.manual_seed(0)
    A, M = torch.randn(6, 4, dtype=torch.float64), torch.randn(1, 4, dtype=torch.float64)
    torch.testing.assert_close(product(*torch.svd_lowrank(A, q=4, M=M)), A - M)
    torch.testing.assert_close(product(*torch.pca_lowrank(A)), A - A.mean(0))
    torch.testing.assert_close(product(*torch.pca_lowrank(A, center=False)), A)
    assert torch.pca_lowrank(A, q=2)[2].shape == (4, 2)


def test_the_same_seed_gives_pytorch_s_values():
    torch.manual_seed(5)
    A = torch.arange(84.0).view(7, 12).sin() + torch.arange(12.0).sqrt()
    first = torch.svd_lowrank(A, q=2, niter=0)[1]
    torch.manual_seed(5)
    assert first.tolist() == pytest.approx(torch.svd_lowrank(A, 2, 0)[1].tolist())
    assert first.tolist() == pytest.approx([22.321823120117188, 4.6507744789123535], rel=1e-5)  # few samples: the values depend on them


def test_gradients_and_arguments():
    torch.manual_seed(0)
    A = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    torch.svd_lowrank(A, q=3)[1].sum().backward()
    U, _, Vh = torch.linalg.svd(A.detach(), full_matrices=False)
    torch.testing.assert_close(A.grad, U @ Vh)  # of the nuclear norm
    with pytest.raises(ValueError, match=r"q\(=9\) must be non-negative integer and not greater than min\(m, n\)=3"):
        torch.pca_lowrank(A, q=9)
    with pytest.raises(ValueError, match=r"niter\(=-1\) must be non-negative integer"):
        torch.pca_lowrank(A, niter=-1)
