"""Which of equal elements topk, kthvalue, median, nanmedian and mode choose: PyTorch's, for rows of every length class and dtype."""
import platform

import pytest

torch = pytest.importorskip("torch")
import strided

if platform.system() != "Linux":
    pytest.skip("PyTorch is built with another C++ library there", allow_module_level=True)

DTYPES = ("int64", "int32", "uint8", "float32", "float64", "bfloat16")


def ours(x):
    if x.dtype is torch.bfloat16:
        return strided.from_numpy(x.float().numpy()).to(strided.bfloat16)
    return strided.from_numpy(x.numpy())


def equal(name, x, *args, **kwargs):
    mine, theirs = getattr(strided, name)(ours(x), *args, **kwargs), getattr(torch, name)(x, *args, **kwargs)
    assert mine.indices.tolist() == theirs.indices.tolist(), (name, x.shape, x.dtype, args, kwargs)
    assert strided.equal(mine.values.float().nan_to_num(7), ours(theirs.values.float()).nan_to_num(7))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", (1, 2, 3, 5, 16, 17, 40, 100, 3000))
def test_equals(n, dtype):
    rng = torch.Generator().manual_seed(n)
    for distinct in (2, 4, 30):
        x = torch.randint(0, distinct, (3, n), generator=rng).to(getattr(torch, dtype))
        for k in sorted({1, min(2, n), n // 70 + 1, n // 3 + 1, n}):
            for largest in (True, False):
                equal("topk", x, k, largest=largest)
            equal("topk", x, k, sorted=False)
            equal("kthvalue", x, k)
        equal("mode", x)
        equal("median", x, 1)
        equal("median", x.t(), 0)
        if x.is_floating_point():
            x[1, :: max(n // 4, 1)] = float("nan")
            for name in ("median", "nanmedian"):
                equal(name, x, 1)
            equal("topk", x, (n + 1) // 2)
            equal("kthvalue", x, (n + 1) // 2)


def test_many_numbers():
    x = torch.relu(torch.randn(2, 50000, generator=torch.Generator().manual_seed(0)))
    for k in (3, 5000, 30000):
        equal("topk", x, k)
        equal("topk", (x * 3).round(), k)
