"""Precision modes of float32 products: operands rounded to TF32 or bfloat16 where they are read, sums in float32; and casts that round otherwise."""

from __future__ import annotations

import pytest

import strided as torch
import strided.nn.functional as F
from strided.lens.exact import hold, of_code, scalar_format
from strided.lens.number import exactly

MODES = {"high": "tf32", "medium": "bfloat16"}


@pytest.fixture(autouse=True)
def highest():
    yield
    torch.set_float32_matmul_precision("highest")


@pytest.fixture(params=MODES)
def mode(request):
    torch.set_float32_matmul_precision(request.param)
    return MODES[request.param]


def rounded(x, name):
    """x with every element rounded by exact arithmetic, where that is cheap, else by its bits."""
    dropped = {"tf32": 13, "bfloat16": 16}[name]
    bits = x.contiguous().view(torch.int32).to(torch.int64) & 0xFFFFFFFF
    up = (bits + ((1 << (dropped - 1)) - 1) + ((bits >> dropped) & 1)) >> dropped << dropped
    return torch.where(x != x, x, up.to(torch.int32).view(torch.float32))


@pytest.mark.parametrize("name", ["tf32", "bfloat16"])
def test_the_reference_rounds_as_exact_arithmetic_does(name):
    x = torch.randn(300) * torch.tensor([2.0**e for e in (-140, -126, 0, 1, 127, 100)]).repeat(50)
    for value, found in zip(x.tolist(), rounded(x, name).tolist()):
        held = hold(scalar_format(name), exactly(value))
        assert found == (float(held.value) if held.kind == "finite" else float("-inf" if held.negative else "inf"))


def in_double(a, b):
    return (a.double() @ b.double()).float()


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 4), (1, 64, 300), (64, 300, 1), (2, 700, 900), (40, 70, 50), (33, 600, 129), (128, 128, 128)])
@pytest.mark.parametrize("transposed", [False, True])
def test_products_take_rounded_operands(mode, shape, transposed):
    m, k, n = shape
    torch.manual_seed(m + k + n)
    a, b = torch.randn(m, k), (torch.randn(n, k).t() if transposed else torch.randn(k, n))
    found = a @ b
    scale = 2.0**-22 * (a.abs().double() @ b.abs().double()).max().item()
    assert (found - in_double(rounded(a, mode), rounded(b, mode))).abs().max().item() <= scale
    torch.set_float32_matmul_precision("highest")
    expected = rounded(a, mode) @ rounded(b, mode)
    assert torch.equal(found, expected)  # the same sums of the same products, to the bit
    assert not torch.equal(found, a @ b)


def test_one_product_is_exact(mode):
    a, b = torch.tensor([[1.0 + 2.0**-9]]), torch.tensor([[1.0 + 2.0**-12]])
    form = scalar_format(mode)
    value = lambda t: float(hold(form, exactly(t.item())).value)
    assert (a @ b).item() == value(a) * value(b) == torch.dot(a[0], b[0]).item()
    assert (torch.tensor([[float("inf"), float("nan")]]).t() @ b).flatten().tolist()[0] == float("inf")
    assert torch.isnan(torch.tensor([[float("nan")]]) @ b).item()


def test_everything_made_of_products_rounds(mode):
    torch.manual_seed(0)
    r = lambda t: rounded(t, mode)
    x, w, bias = torch.randn(7, 12), torch.randn(5, 12), torch.randn(5)
    image, kernel = torch.randn(2, 3, 9, 9), torch.randn(4, 3, 3, 3)
    calls = {
        "linear": (lambda a, b: F.linear(a, b, bias), x, w), "mm": (torch.mm, x, w.t()), "einsum": (lambda a, b: torch.einsum("ij,kj->ik", a, b), x, w),
        "bmm": (torch.bmm, torch.randn(3, 4, 5), torch.randn(3, 5, 6)), "addmm": (lambda a, b: torch.addmm(bias, a, b.t()), x, w), "mv": (torch.mv, x, w[0]),
        "conv2d": (lambda a, b: F.conv2d(a, b, padding=1), image, kernel), "conv1d": (F.conv1d, image[:, :, 0], kernel[:, :, 0]), "batched": (torch.matmul, torch.randn(2, 1, 4, 5), torch.randn(3, 5, 6)),
        "conv_transpose2d": (F.conv_transpose2d, torch.randn(2, 4, 5, 5), kernel), "tensordot": (lambda a, b: torch.tensordot(a, b, dims=[[1], [1]]), x, w),
    }  # fmt: skip
    for name, (call, a, b) in calls.items():
        found = call(a, b)
        torch.set_float32_matmul_precision("highest")
        expected, exact = call(r(a), r(b)), call(a, b)
        torch.set_float32_matmul_precision({v: k for k, v in MODES.items()}[mode])
        assert torch.equal(found, expected), name
        assert not torch.equal(found, exact), name


@pytest.mark.parametrize("causal", [False, True])
def test_attention_rounds_its_operands_and_its_weights(mode, causal):
    torch.manual_seed(1)
    q, k, v = (torch.randn(2, 3, 20, 16) for _ in range(3))
    found = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    q, k, v = (rounded(t, mode).double() for t in (q, k, v))
    scores = q @ k.transpose(-2, -1) / 4
    if causal:
        scores = scores.masked_fill(torch.ones(20, 20, dtype=torch.bool).triu(1), float("-inf"))
    p = (scores - scores.amax(-1, True)).exp().float()
    expected = (rounded(p, mode).double() @ v) / p.double().sum(-1, True)
    unrounded = (p.double() @ v) / p.double().sum(-1, True)
    near = 2e-6 if mode == "tf32" else 2e-5  # an exp that differs in its last place may round to the other neighbour
    off = (found.double() - expected).abs()
    assert off.mean().item() < near and off.max().item() < 0.02
    assert (found.double() - unrounded).abs().mean().item() > 3 * off.mean().item()


def test_gradients_are_products_too(mode):
    a, b = torch.randn(6, 8, requires_grad=True), torch.randn(8, 5, requires_grad=True)
    g = torch.randn(6, 5)
    (a @ b).backward(g)
    torch.set_float32_matmul_precision("highest")
    assert torch.equal(a.grad, rounded(g, mode) @ rounded(b.detach(), mode).t())
    assert torch.equal(b.grad, rounded(a.detach(), mode).t() @ rounded(g, mode))


def test_other_dtypes_stay_as_they_are(mode):
    a = torch.randn(9, 9)
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        x = a.to(dtype)
        found = x @ x
        torch.set_float32_matmul_precision("highest")
        assert torch.equal(found, x @ x)
        torch.set_float32_matmul_precision({v: k for k, v in MODES.items()}[mode])


def test_the_switches_answer():
    assert torch.get_float32_matmul_precision() == "highest" and not torch.backends.cuda.matmul.allow_tf32
    torch.set_float32_matmul_precision("medium")
    assert torch.backends.cuda.matmul.allow_tf32 and torch.backends.mkldnn.matmul.fp32_precision == "bf16" and torch.backends.cuda.matmul.fp32_precision == "tf32"
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = True  # CUDA's: the level follows, this processor's products do not
    assert torch.get_float32_matmul_precision() == "high" and torch.backends.mkldnn.matmul.fp32_precision == "ieee"
    a = torch.randn(4, 4)
    found = a @ a
    torch.backends.cuda.matmul.allow_tf32 = False
    assert torch.equal(found, a @ a) and torch.get_float32_matmul_precision() == "highest"
    torch.backends.mkldnn.matmul.fp32_precision = "tf32"
    assert torch.equal(a @ a, rounded_product(a, "tf32"))
    for bad in ("bad", "HIGH"):
        with pytest.raises(RuntimeError, match="Unknown precision"):
            torch.set_float32_matmul_precision(bad)
    with pytest.raises(RuntimeError, match="expects a str"):
        torch.set_float32_matmul_precision(1)


def rounded_product(a, name):
    before = torch.backends.mkldnn.matmul.fp32_precision
    torch.backends.mkldnn.matmul.fp32_precision = "ieee"
    out = rounded(a, name) @ rounded(a, name)
    torch.backends.mkldnn.matmul.fp32_precision = before
    return out


def test_at_highest_the_kernels_are_the_same_ones():
    from strided.kernels import precision
    from strided.kernels.gemm_text import Function

    assert precision.operand("float32") == "float32"
    f = Function("f", "")
    assert f.decode("float32", "%x", 16, False) == "%x" and f.body == []  # not an instruction more


def test_codes_are_what_exact_arithmetic_says():
    assert float(of_code(scalar_format("tf32"), 0x1FC01).value) == 1 + 2.0**-10
