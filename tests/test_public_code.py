"""What public training code met: each test is a few lines of it, with its values."""
import pytest

import strided as torch


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_deviations_under_another_default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        x = torch.tensor([1, 2, 3, 6])
        assert x.float().var().item() == pytest.approx(14 / 3, rel=1e-6) and x.float().std(unbiased=False).item() == pytest.approx(3.5**0.5, rel=1e-6)
        assert x.bfloat16().var().item() == pytest.approx(14 / 3, rel=1e-2) and x.double().std().item() == pytest.approx((14 / 3) ** 0.5, rel=1e-12)
    finally:
        torch.set_default_dtype(before)
