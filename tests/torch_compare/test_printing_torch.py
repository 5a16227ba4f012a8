"""Printed text of generated tensors, character for character, against PyTorch."""

import math
import random

import numpy
import pytest

torch = pytest.importorskip("torch")

from strided import dtypes as D
from strided import printing
from strided.layout import Layout
from strided.tensor import Spec, wrap, wrap_storage

DTYPES = [torch.float32] * 3 + [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.int8]


def ours(t):
    """A tensor of this package over the memory of PyTorch's."""
    whole = torch.empty(0, dtype=t.dtype).set_(t.untyped_storage())
    array = whole.view(torch.uint8).numpy() if t.dtype is not torch.bool else whole.numpy().view(numpy.uint8)
    memory = wrap_storage(array.ctypes.data, array.nbytes, array)
    spec = Spec.of(Layout.of(t.shape, t.stride()), D.names()[str(t.dtype)[6:]], D.CPU)
    return wrap(spec, memory, memory.data + t.storage_offset() * t.element_size())


def generated(rng):
    shape = [rng.choice([0, 1, 2, 8, 30, 100] if rng.random() < 0.2 else [1, 2, 3, 5, 7]) for _ in range(rng.randint(0, 4))]
    if math.prod(shape) > 100_000:
        shape = shape[:2]
    x = torch.randn(shape, dtype=torch.float64)
    odd = torch.where(torch.rand(shape) < 0.3, float(rng.choice(["nan", "inf", "-inf"])), x * 10)
    x = rng.choice([x, x * 10.0 ** rng.randint(-6, 9), (x * 500).round(), x.round(decimals=1), odd, odd.round(), torch.where(x > 0.5, x, 0.0), x.exp().exp()])
    dtype = rng.choice(DTYPES)
    x = x > 0 if dtype is torch.bool else x.to(dtype) if dtype.is_floating_point else x.nan_to_num(0, 0, 0).clamp(-1e18, 1e18).to(dtype)
    if x.dim() > 1 and rng.random() < 0.3:
        x = x.transpose(0, -1)
    return x[..., ::2] if x.dim() and rng.random() < 0.3 else x


@pytest.mark.parametrize("seed", range(10))
def test_same_text(seed):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    try:
        for _ in range(150):
            options = {}
            if rng.random() < 0.3:
                options = {
                    "precision": rng.choice([None, 0, 2, 8]),
                    "threshold": rng.choice([None, 0, 5, 100, math.inf]),
                    "edgeitems": rng.choice([None, 0, 1, 5]),
                    "linewidth": rng.choice([None, 20, 40, 120]),
                    "profile": rng.choice([None, "short", "full"]),
                    "sci_mode": rng.choice([None, True, False]),
                }
            t = generated(rng)
            for library in (torch, printing):
                library.set_printoptions(profile="default")
                library.set_printoptions(**options)
            assert printing.tensor_repr(ours(t)) == repr(t), (options, t.dtype, t.shape)
    finally:
        torch.set_printoptions(profile="default")
        printing.set_printoptions(profile="default")
