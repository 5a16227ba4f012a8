"""Attention of a few query rows over many keys (decoding against a cache) against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

import strided as torch
from strided.kernels import attention as kernels
from strided.kernels.native import clear_plans
from strided.ops import attention as operators

attend = torch.nn.functional.scaled_dot_product_attention


def reference(q, k, v, mask=None, causal=False, groups=1):
    q, k, v = (np.asarray(t.double().numpy()) for t in (q, k, v))
    k, v = (np.repeat(t, groups, axis=-3) for t in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.triu(np.ones(scores.shape[-2:], bool), 1), -np.inf, scores)
    if mask is not None:
        mask = mask.numpy() if mask.dtype is torch.bool else mask.double().numpy()
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1, total) @ v


@pytest.fixture
def calls(monkeypatch):
    made, build = [], kernels.build_attention_few
    monkeypatch.setattr(kernels, "build_attention_few", lambda *a, **k: made.append(a) or build(*a, **k))
    return made


SHAPES = [  # batch, query heads, key heads, rows, keys, width, value width
    (1, 8, 2, 1, 300, 128, 128), (2, 4, 4, 1, 65, 64, 64), (2, 4, 2, 3, 77, 20, 33), (1, 6, 1, 7, 129, 8, 5), (0, 4, 2, 1, 71, 16, 16), (1, 64, 1, 2, 100, 40, 48), (2, 4, 2, 1, 66, 17, 1),
]  # fmt: skip


def check(shape, kind):
    B, H, G, L, S, E, V = shape
    torch.manual_seed(S)
    q, k, v = torch.randn(B, H, L, E), torch.randn(B, G, S, E), torch.randn(B, G, S, V)
    mask = torch.rand(B, H, L, S) > 0.3 if kind == "bool" else torch.randn(L, S) if kind == "float" else None
    out = attend(q, k, v, attn_mask=mask, is_causal=kind == "causal", enable_gqa=H != G)
    assert out.shape == (B, H, L, V)
    np.testing.assert_allclose(out.numpy(), reference(q, k, v, mask, kind == "causal", H // G), atol=2e-6, rtol=2e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["plain", "bool", "float", "causal"])
def test_values(shape, kind, calls):
    check(shape, kind)
    assert len(calls) == 1


@pytest.mark.parametrize("dtype, tolerance", [(torch.bfloat16, 1e-2), (torch.float16, 1e-3)])
def test_formats_of_sixteen_bits_are_rounded_once(dtype, tolerance, calls):
    q, k, v = torch.randn(1, 8, 1, 64).to(dtype), torch.randn(1, 2, 513, 64).to(dtype), torch.randn(1, 2, 513, 64).to(dtype)
    out = attend(q, k, v, enable_gqa=True)
    assert out.dtype is dtype and calls
    exact = reference(q, k, v, groups=4)
    np.testing.assert_allclose(out.float().numpy(), exact, atol=tolerance * np.abs(exact).max())


def test_a_cache_is_read_in_place(calls):
    """Keys and values as slices of a longer cache with heads inside: rows lie apart, elements beside each other."""
    cache = torch.randn(2, 1, 400, 4, 32)  # k and v, [B, S, H, E]
    k, v = (c[:, 10:310].transpose(1, 2) for c in cache)
    q = torch.randn(1, 1, 4, 32).transpose(1, 2)
    out = attend(q, k, v)
    np.testing.assert_allclose(out.numpy(), reference(q, k, v), atol=2e-6)
    assert len(calls) == 1


def test_rows_that_may_look_nowhere_are_zeros():
    q, k = torch.randn(1, 2, 2, 16), torch.randn(1, 2, 80, 16)
    mask = torch.ones(2, 80, dtype=torch.bool)
    mask[1] = False
    out = attend(q, k, k, attn_mask=mask)
    assert out[:, :, 1].abs().max().item() == 0 and out[:, :, 0].abs().min().item() > 0


def test_gradients_follow():
    q, k, v = torch.randn(1, 4, 1, 8, requires_grad=True), torch.randn(1, 2, 70, 8, requires_grad=True), torch.randn(1, 2, 70, 8, requires_grad=True)
    attend(q, k, v, enable_gqa=True).sum().backward()
    weights = torch.softmax(q.detach() @ k.detach().repeat_interleave(2, 1).transpose(-1, -2) / 8**0.5, -1)
    expected = weights.view(1, 2, 2, 70).sum(2).unsqueeze(-1).expand(1, 2, 70, 8)
    assert torch.allclose(v.grad, expected, atol=1e-6)


@pytest.fixture(params=[3, 8])
def more_threads(request, monkeypatch):
    """As many threads as that, and no work too small for them."""
    before = torch.get_num_threads()
    monkeypatch.setattr(kernels, "THREAD_GRAIN", 1 << 8)
    torch.set_num_threads(request.param)
    clear_plans()
    yield request.param
    torch.set_num_threads(before)
    clear_plans()


@pytest.mark.parametrize("shape", [*SHAPES, (1, 9, 3, 1, 1000, 64, 64), (1, 2, 1, 5, 64, 8, 8)])
@pytest.mark.parametrize("kind", ["plain", "bool", "float", "causal"])
def test_keys_are_shared_out_where_there_are_fewer_heads_than_threads(shape, kind, more_threads, calls):
    check(shape, kind)
    assert len(calls) == 1
    if shape[4] == 1000:
        assert [plan[2][0] is not None for plan in operators._PLANS.values()] == [more_threads > 3]


def test_parts_that_see_nothing(more_threads):
    q, k, v = torch.randn(1, 2, 2, 16), torch.randn(1, 1, 500, 16), torch.randn(1, 1, 500, 16)
    mask = torch.zeros(2, 500, dtype=torch.bool)
    mask[0, 3:7] = True  # of a row that looks at four keys, and one that looks nowhere
    out = attend(q, k, v, attn_mask=mask, enable_gqa=True)
    np.testing.assert_allclose(out[:, :, :1].numpy(), reference(q, k, v, mask, groups=2)[:, :, :1], atol=2e-6, rtol=2e-5)
    assert out[:, :, 1].abs().max().item() == 0
    low = attend(q.bfloat16(), k.bfloat16(), v.bfloat16(), enable_gqa=True)
    np.testing.assert_allclose(low.float().numpy(), reference(q.bfloat16(), k.bfloat16(), v.bfloat16(), groups=2), atol=4e-3)
