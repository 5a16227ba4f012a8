"""Precision modes of float32 products: operands rounded to TF32 or bfloat16 where they are read, sums in float32; and casts that round otherwise."""

from __future__ import annotations

import functools
from fractions import Fraction

import pytest

import strided as torch
import strided.nn.functional as F
from strided.lens.exact import hold, neighbours, of_code, scalar_format
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


# ---- casts that round otherwise --------------------------------------------------------------

FORMATS = ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int8", "int4", "uint8"]


@functools.cache
def grid_of(name):
    form = scalar_format(name)
    return sorted({of_code(form, c).value for c in range(1 << form.bits) if of_code(form, c).kind == "finite"}) if form.bits <= 8 else None


def around(name, value):
    """The format's neighbours below and above a number (the number itself twice where it is held)."""
    form, grid = scalar_format(name), grid_of(name)
    exact = Fraction(value)
    if grid is not None:
        return float(max(g for g in grid if g <= exact)), float(min(g for g in grid if g >= exact))
    held = hold(form, exactly(value))
    if held.value == exact:
        return value, value
    below, above = neighbours(held)
    return (float(held.value), float(above.value)) if held.value < exact else (float(below.value), float(held.value))


def inside(name):
    form = scalar_format(name)
    top = min(float(form.largest), 1e5)
    x = torch.rand(60, generator=torch.Generator().manual_seed(3)) * torch.tensor([1.0, 0.1, 0.01, top, top / 3, float(form.smallest)]).repeat(10)
    return x if name[0] == "u" else x * torch.tensor([1.0, -1.0]).repeat(30)


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("name", FORMATS)
def test_directed_rounding_gives_the_right_neighbour(name, source):
    x, dtype = inside(name).to(getattr(torch, source)), getattr(torch, name)
    pairs = [around(name, v) for v in x.tolist()]
    assert torch.round_to(x, dtype, "down").double().tolist() == [low for low, _ in pairs]
    assert torch.round_to(x, dtype, "up").double().tolist() == [high for _, high in pairs]
    assert torch.round_to(x, dtype, "toward_zero").double().tolist() == [low if v > 0 else high for v, (low, high) in zip(x.tolist(), pairs)]
    assert torch.round_to(x, dtype).double().tolist() == x.to(dtype).double().tolist()


@pytest.mark.parametrize("name", FORMATS)
def test_stochastic_rounding_gives_neighbours_and_the_right_mean(name):
    dtype = getattr(torch, name)
    x = inside(name)
    draws = 4000
    many = torch.stochastic_round(x.expand(draws, 60), dtype, generator=torch.Generator().manual_seed(11)).double()
    for i, value in enumerate(x.tolist()):
        low, high = around(name, value)
        column = many[:, i]
        assert set(column.tolist()) <= {low, high}
        if low != high:
            share = (value - low) / (high - low)
            assert abs((column == high).double().mean().item() - share) < 4.5 * (share * (1 - share) / draws) ** 0.5 + 1e-9, (value, low, high)


def test_the_same_seed_rounds_alike_and_held_numbers_stay():
    x = torch.randn(5000)
    a, b = (torch.stochastic_round(x, torch.bfloat16, generator=torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(a, b) and not torch.equal(a, torch.stochastic_round(x, torch.bfloat16, generator=torch.Generator().manual_seed(6)))
    torch.manual_seed(1)
    c = torch.stochastic_round(x, torch.bfloat16)
    torch.manual_seed(1)
    assert torch.equal(c, torch.round_to(x, torch.bfloat16, "stochastic"))
    for name in FORMATS[:9]:
        form, dtype = scalar_format(name), getattr(torch, name)
        held = torch.tensor([float(of_code(form, c).value) for c in range(0, 1 << form.bits, 1 if form.bits <= 8 else 53) if of_code(form, c).kind == "finite"])
        for rounding in ("stochastic", "up", "down", "toward_zero"):
            assert torch.equal(torch.round_to(held, dtype, rounding).float(), held)


def test_sums_of_stochastically_rounded_steps_stay_true():
    total = stuck = torch.zeros(256, dtype=torch.bfloat16) + 1.0
    g = torch.Generator().manual_seed(0)
    for _ in range(400):
        stuck = (stuck.float() + 2.0**-10).bfloat16()
        total = torch.stochastic_round(total.float() + 2.0**-10, torch.bfloat16, generator=g)
    assert stuck[0].item() == 1.0  # a step below half a unit in the last place is lost every time
    assert abs(total.double().mean().item() - (1 + 400 / 1024)) < 0.01


def test_beyond_the_largest_and_what_is_no_number():
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([70000.0, -70000.0, 65510.0, inf, -inf, nan, -0.0])
    found = {r: torch.round_to(x, torch.float16, r).tolist() for r in ("up", "down", "toward_zero", "stochastic")}
    assert found["up"][:5] == [inf, -65504.0, inf, inf, -inf] and found["down"][:5] == [65504.0, -inf, 65504.0, inf, -inf]
    assert found["toward_zero"][:5] == [65504.0, -65504.0, 65504.0, inf, -inf] and found["stochastic"][:5] == [inf, -inf, 65504.0, inf, -inf]
    assert all(v[5] != v[5] and str(v[6]) == "-0.0" for v in found.values())
    assert torch.round_to(torch.tensor([1e9, -1e9]), torch.float8_e4m3fn, "up").float().tolist() == [448.0, -448.0]


def test_roundings_of_other_sources_layouts_and_gradients():
    x = torch.randn(6, 8)
    g = lambda: torch.Generator().manual_seed(2)
    assert torch.equal(torch.stochastic_round(x.t(), torch.float16, generator=g()), torch.stochastic_round(x.t().contiguous(), torch.float16, generator=g()))
    assert torch.stochastic_round(x.bfloat16(), torch.float8_e5m2, generator=g()).dtype is torch.float8_e5m2
    assert torch.round_to(torch.tensor([2**24 + 1]), torch.float32, "up").item() == 2**24 + 2 and torch.round_to(torch.tensor([2**24 + 1]), torch.float32, "down").item() == 2**24
    assert torch.round_to(torch.tensor([2.0**-150], dtype=torch.float64), torch.float32, "up").item() == 2.0**-149
    assert torch.stochastic_round(torch.empty(0, 3), torch.bfloat16).shape == (0, 3) and torch.stochastic_round(torch.tensor(1.5), torch.int8).item() in (1, 2)
    w = torch.randn(4, requires_grad=True)
    torch.stochastic_round(w, torch.bfloat16).float().sum().backward()
    assert w.grad.tolist() == [1.0] * 4
    assert torch.equal(x.to(torch.bfloat16, rounding="stochastic", generator=g()), torch.stochastic_round(x, torch.bfloat16, generator=g()))
    assert torch.equal(x.to(dtype=torch.float16, rounding="down"), torch.round_to(x, torch.float16, "down"))
    meta = torch.round_to(torch.empty(3, device="meta"), torch.bfloat16, "up")
    assert meta.is_meta and meta.dtype is torch.bfloat16


def test_wrong_roundings():
    x = torch.ones(3)
    with pytest.raises(ValueError, match="no rounding 'stochastik'; near it: stochastic"):
        torch.round_to(x, torch.bfloat16, "stochastik")
    with pytest.raises(ValueError, match="takes no generator"):
        torch.round_to(x, torch.bfloat16, "up", generator=torch.Generator())
    with pytest.raises(TypeError, match="must be Tensor"):
        torch.stochastic_round([1.0], torch.bfloat16)
    with pytest.raises(TypeError, match="must be torch.dtype"):
        torch.stochastic_round(x, "bfloat16")
    with pytest.raises(TypeError, match="Generator"):
        torch.stochastic_round(x, torch.bfloat16, generator=3)
    with pytest.raises(NotImplementedError, match="real numbers"):
        torch.stochastic_round(torch.ones(2, dtype=torch.complex64), torch.bfloat16)


def test_compiled_functions_follow_the_mode():
    a, b = torch.randn(16, 16), torch.randn(16, 16)
    product = torch.compile(lambda x, y: (x @ y).relu())
    assert torch.equal(product(a, b), (a @ b).relu()) and torch.equal(product(a, b), (a @ b).relu())
    torch.set_float32_matmul_precision("medium")
    assert torch.equal(product(a, b), (rounded_product_of(a, b)).relu())
    torch.set_float32_matmul_precision("highest")
    assert torch.equal(product(a, b), (a @ b).relu())


def rounded_product_of(a, b):
    torch.set_float32_matmul_precision("highest")
    out = rounded(a, "bfloat16") @ rounded(b, "bfloat16")
    torch.set_float32_matmul_precision("medium")
    return out
