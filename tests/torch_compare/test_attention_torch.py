"""Attention as models call it (padding masks, additive masks, caches, grouped heads, odd head sizes) against PyTorch: values, gradients, and the error against float64."""

from __future__ import annotations

import numpy as np
import pytest

import strided

torch = pytest.importorskip("torch")
theirs = torch.nn.functional.scaled_dot_product_attention
mine = strided.nn.functional.scaled_dot_product_attention


def ours(tensor):
    if tensor is None:
        return None
    if tensor.dtype is torch.bfloat16:
        return strided.from_numpy(tensor.detach().float().numpy().copy()).bfloat16()
    return strided.from_numpy(tensor.detach().numpy().copy())


def mask_of(kind, batch, rows, keys, dtype):
    lengths = torch.arange(batch)[:, None] * 3 + keys - 3 * batch
    padding = (torch.arange(keys)[None] < lengths)[:, None, None]  # [B, 1, 1, S]
    causal = torch.ones(rows, keys, dtype=torch.bool).tril(keys - rows)
    nothing = torch.finfo(dtype).min
    return {
        "none": lambda: None,
        "padding": lambda: padding,
        "padding and causal": lambda: padding & causal,  # [B, 1, L, S]
        "expanded": lambda: padding.expand(batch, 1, rows, keys),
        "added padding": lambda: torch.zeros(batch, 1, 1, keys, dtype=dtype).masked_fill(~padding, nothing),
        "added causal": lambda: torch.zeros(batch, 1, rows, keys, dtype=dtype).masked_fill(~(padding & causal), nothing),
        "all hidden by finfo.min": lambda: torch.full((batch, 1, rows, keys), nothing, dtype=dtype),
        "bias by head": lambda: torch.randn(1, 4, rows, keys).to(dtype),
        "turned": lambda: torch.randn(keys, rows).to(dtype).T,
    }[kind]()


MASKS = ["none", "padding", "padding and causal", "expanded", "added padding", "added causal", "all hidden by finfo.min", "bias by head", "turned"]


def check(q, k, v, mask=None, grad=True, **options):
    tolerance = 2e-5 if q.dtype is torch.float32 else 2e-2
    leaves = [x.clone().requires_grad_(grad) for x in (q, k, v)]
    own = [ours(x).requires_grad_(grad) for x in (q, k, v)]
    expected, found = theirs(*leaves, mask, **options), mine(*own, ours(mask), **options)
    assert tuple(found.shape) == tuple(expected.shape)
    np.testing.assert_allclose(found.detach().float().numpy(), expected.detach().float().numpy(), rtol=tolerance, atol=tolerance)
    if grad:
        g = torch.randn_like(expected)
        for a, b in zip(strided.autograd.grad(found, own, ours(g)), torch.autograd.grad(expected, leaves, g)):
            np.testing.assert_allclose(a.float().numpy(), b.float().numpy(), rtol=5 * tolerance, atol=5 * tolerance)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("rows", [1, 5, 33])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_masks(mask, rows, dtype):
    torch.manual_seed(rows)
    q, k, v = (torch.randn(2, 4, n, 32).to(dtype) for n in (rows, 70, 70))
    # Where all is hidden by finite numbers, weights are equal; PyTorch's fused gradient takes them for 1 each, which loses its way in float32's rounding.
    check(q, k, v, mask_of(mask, 2, rows, 70, dtype), grad=mask != "all hidden by finfo.min")


@pytest.mark.parametrize("width", [40, 80, 96, 256])
@pytest.mark.parametrize("causal", [False, True])
def test_head_sizes(width, causal):
    torch.manual_seed(width)
    check(*(torch.randn(1, 3, 50, width) for _ in range(3)), is_causal=causal)
    check(*(torch.randn(1, 3, 50, width).bfloat16() for _ in range(3)), is_causal=causal)


@pytest.mark.parametrize(("rows", "keys"), [(3, 90), (40, 90), (90, 40), (200, 170), (1, 300)])
def test_causal_with_as_many_keys_as_there_are(rows, keys):
    torch.manual_seed(keys)
    check(torch.randn(2, 2, rows, 24), torch.randn(2, 2, keys, 24), torch.randn(2, 2, keys, 24), is_causal=True)


@pytest.mark.parametrize(("heads", "groups"), [(8, 2), (8, 1), (6, 3)])
@pytest.mark.parametrize("rows", [1, 20])
def test_grouped_heads(heads, groups, rows):
    torch.manual_seed(heads)
    q, k, v = torch.randn(2, heads, rows, 40), torch.randn(2, groups, 80, 40), torch.randn(2, groups, 80, 40)
    check(q, k, v, enable_gqa=True)
    check(q, k, v, mask_of("padding", 2, rows, 80, torch.float32), enable_gqa=True)


@pytest.mark.parametrize("shape", [(2, 8, 512, 64), (1, 4, 600, 128)])
@pytest.mark.parametrize("causal", [False, True])
def test_errors_against_float64_are_no_larger(shape, causal):
    torch.manual_seed(0)
    exact = [torch.randn(shape).double().requires_grad_() for _ in range(3)]
    g = torch.randn(shape)
    leaves, own = [x.detach().float().requires_grad_() for x in exact], [ours(x.detach().float()).requires_grad_() for x in exact]
    results = [attend(*x, is_causal=causal) for attend, x in ((theirs, exact), (theirs, leaves), (mine, own))]
    expected = [results[0], *torch.autograd.grad(results[0], exact, g.double())]
    single = [results[1], *torch.autograd.grad(results[1], leaves, g)]
    found = [results[2], *strided.autograd.grad(results[2], own, ours(g))]
    for e, s, f in zip(expected, single, found):
        e, s, f = e.detach().numpy(), s.detach().numpy(), f.detach().numpy()
        assert np.sqrt(((f - e) ** 2).mean()) <= 1.05 * np.sqrt(((s - e) ** 2).mean())
