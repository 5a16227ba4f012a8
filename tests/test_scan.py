"""Running sums by vectors, compared with NumPy's in float64: lengths around a vector's, rows, special values, results past the caches, in place."""
import math

import numpy as np
import pytest

import strided as torch
from strided.kernels import native, scan

rng = np.random.default_rng(0)


@pytest.mark.parametrize("past_caches", [False, True])
@pytest.mark.parametrize("shape", [(1,), (15,), (16,), (3, 17), (5, 48), (2, 33), (40, 1000), (100_003,), (3, 0)], ids=str)
def test_cumsum(shape, past_caches, monkeypatch):
    if past_caches:
        monkeypatch.setattr(scan, "STREAM", 1)
    native.clear_plans()
    a = rng.standard_normal(shape).astype(np.float32)
    found = torch.from_numpy(a).cumsum(-1)
    native.clear_plans()
    exact = np.cumsum(a.astype(np.float64), -1)
    np.testing.assert_allclose(np.array(found.tolist()).reshape(shape), exact, rtol=1e-7, atol=1e-7)


def test_special_values_and_places():
    inf = math.inf
    found = torch.tensor([1, inf, 2, -inf, 3, *[1.0] * 30]).cumsum(0).tolist()
    assert found[:3] == [1, inf, inf] and all(math.isnan(v) for v in found[3:])
    x = torch.arange(40.0)
    x.cumsum_(0)
    assert x.tolist() == [n * (n + 1) / 2 for n in range(40)]
    assert torch.arange(80.0)[::2].cumsum(0).tolist() == [float(n * (n + 1)) for n in range(40)]
    assert torch.full((1 << 20,), 0.1).cumsum(0)[-1].item() == pytest.approx(0.1 * (1 << 20), rel=1e-7)  # kept in double precision
