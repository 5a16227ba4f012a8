"""Scaled dot-product attention against NumPy in float64: the fused kernel, the path over operators, masks, heads in groups, gradients, errors."""

import math

import numpy as np
import pytest

import strided as torch
from strided.dispatch import listen

attention = torch.nn.functional.scaled_dot_product_attention


def reference(query, key, value, mask=None, causal=False, scale=None):
    query, key, value = (x.astype(np.float64) for x in (query, key, value))
    scores = query @ np.swapaxes(key, -1, -2) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1, total) @ value


def operands(*shapes, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


def tensors(*arrays):
    return [torch.from_numpy(x) for x in arrays]


SIZES = [(3, 5, 4, 4), (40, 40, 16, 16), (130, 300, 64, 64), (257, 513, 40, 72), (77, 1, 8, 8), (1, 100, 16, 16)]


@pytest.mark.parametrize("rows, keys, width, values", SIZES)
def test_all_masks(rows, keys, width, values):
    q, k, v = operands((2, 3, rows, width), (2, 3, keys, width), (2, 3, keys, values))
    rng = np.random.default_rng(1)
    allowed = rng.random((rows, keys)) > 0.3
    allowed[0] = False  # a row that may look nowhere gives zeros
    added = rng.standard_normal((2, 1, rows, keys)).astype(np.float32)
    for mask in (None, allowed, added):
        for causal in (False, True):
            given = None if mask is None else torch.from_numpy(mask)
            result = attention(*tensors(q, k, v), given, is_causal=causal)
            np.testing.assert_allclose(result.numpy(), reference(q, k, v, mask, causal), rtol=2e-5, atol=3e-6)


def test_heads_read_in_place_keep_their_layout():
    x = torch.from_numpy(operands((2, 50, 3, 16))[0]).transpose(1, 2)  # [B, H, T, D] of a [B, T, H, D] buffer
    result = attention(x, x, x)
    a = x.numpy()
    np.testing.assert_allclose(result.numpy(), reference(a, a, a), rtol=2e-5, atol=3e-6)
    assert result.stride() == x.stride()  # joining the heads again is a view
    assert result.transpose(1, 2).is_contiguous()


def test_low_precision_is_rounded_once():
    for dtype, bound in ((torch.bfloat16, 2**-8), (torch.float16, 2**-11)):
        low = [torch.from_numpy(x).to(dtype) for x in operands((2, 2, 40, 16), (2, 2, 60, 16), (2, 2, 60, 16))]
        exact = reference(*(t.float().numpy() for t in low))
        result = attention(*low)
        assert result.dtype is dtype
        assert (np.abs(result.float().numpy() - exact) <= bound * np.abs(exact) + 1e-5).all()


def test_large_scores_do_not_overflow():
    q, k, v = operands((1, 1, 20, 8), (1, 1, 600, 8), (1, 1, 600, 8))
    result = attention(*tensors(q * 100, k * 100, v))
    np.testing.assert_allclose(result.numpy(), reference(q * 100, k * 100, v), rtol=1e-3, atol=1e-4)


def test_nan_spreads_only_through_its_rows():
    q, k, v = operands((1, 1, 20, 8), (1, 1, 30, 8), (1, 1, 30, 8))
    q[0, 0, 3, 2] = np.nan
    result = attention(*tensors(q, k, v)).numpy()[0, 0]
    assert np.isnan(result[3]).all() and np.isfinite(np.delete(result, 3, 0)).all()


@pytest.mark.parametrize("rows", [5, 30])
def test_grouped_heads(rows):
    q, k, v = operands((2, 6, rows, 8), (2, 2, 40, 8), (2, 2, 40, 8))
    repeated = reference(q, np.repeat(k, 3, 1), np.repeat(v, 3, 1))
    np.testing.assert_allclose(attention(*tensors(q, k, v), enable_gqa=True).numpy(), repeated, rtol=2e-5, atol=3e-6)
    with pytest.raises(RuntimeError, match="Number of heads in key and value must divide the number of heads in"):
        attention(*tensors(q, k[:, :1].repeat(4, 1), v), enable_gqa=True)


def test_float64_three_dimensions_and_scale():
    q, k, v = operands((3, 20, 8), (3, 30, 8), (3, 30, 5), dtype=np.float64)
    np.testing.assert_allclose(attention(*tensors(q, k, v), scale=0.3).numpy(), reference(q, k, v, scale=0.3), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients(causal):
    arrays = operands((1, 2, 4, 3), (1, 2, 5, 3), (1, 2, 5, 3), dtype=np.float64)
    weight = operands((1, 2, 4, 3), dtype=np.float64, seed=5)[0]
    leaves = [t.requires_grad_() for t in tensors(*arrays)]
    result = attention(*leaves, is_causal=causal)
    assert type(result.grad_fn).__name__ == "ScaledDotProductFlashAttentionForCpuBackward0"
    (result * torch.from_numpy(weight)).sum().backward()
    for index, leaf in enumerate(leaves):
        expected = np.zeros_like(arrays[index])
        for place in np.ndindex(*expected.shape):
            moved = []
            for step in (1e-6, -1e-6):
                changed = [x.copy() for x in arrays]
                changed[index][place] += step
                moved.append((reference(*changed, causal=causal) * weight).sum())
            expected[place] = (moved[0] - moved[1]) / 2e-6
        np.testing.assert_allclose(leaf.grad.numpy(), expected, rtol=1e-5, atol=1e-7)


def test_the_mask_can_have_a_gradient():
    q, k, v = tensors(*operands((2, 4, 3), (2, 5, 3), (2, 5, 3), dtype=np.float64))
    mask = torch.zeros(4, 5, dtype=torch.float64).requires_grad_()
    attention(q, k, v, mask).sum().backward()
    assert mask.grad.shape == (4, 5) and np.allclose(mask.grad.numpy().sum(-1), 0)  # softmax's gradient sums to 0 along a row


def test_dropout_scales_what_it_keeps():
    ones = torch.ones(1, 1, 16, 8)
    torch.manual_seed(0)
    kept = attention(ones, ones, torch.ones(1, 1, 64, 8)[:, :, :16], dropout_p=0.5).numpy()
    assert 0.2 < kept.mean() < 1.8 and not np.allclose(kept, 1)


def test_flops():
    events = []
    q, k, v = tensors(*operands((2, 3, 40, 8), (2, 3, 50, 8), (2, 3, 50, 8)))
    with listen(events.append):
        attention(q, k, v)
    assert [e.flops for e in events] == [(4 * 8 + 5) * 2 * 3 * 40 * 50]  # two products; scale and softmax of each score


def test_errors():
    q, k, v = tensors(*operands((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)))
    cases = [
        (lambda: attention(q, k.bfloat16(), v), "Expected query, key, and value to have the same dtype, but got query.dtype: float key.dtype: c10::BFloat16 and value.dtype: float instead."),
        (lambda: attention(q[0, 0, 0], k, v), "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: 1 key.dim: 4 and value.dim: 4 instead."),
        (lambda: attention(q, k, v, torch.ones(3, 3, dtype=torch.int64)), "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: long int and  query.dtype: float instead."),
        (lambda: attention(q, k, v, torch.ones(2, 5, dtype=torch.bool)), "The size of tensor a (3) must match the size of tensor b (5) at non-singleton dimension 3"),
    ]  # fmt: skip
    for call, sentence in cases:
        with pytest.raises(RuntimeError) as caught:
            call()
        assert str(caught.value).split("\n")[0] == sentence


@pytest.mark.parametrize("mask", ["none", "causal", "bool", "float"])
@pytest.mark.parametrize(("length", "keys", "width", "values"), [(64, 64, 16, 16), (100, 37, 24, 40), (33, 300, 65, 3), (9, 9, 1, 1)])
def test_fused_gradients_are_those_of_the_formula_in_float64(length, keys, width, values, mask):
    """float64 goes through operators, float32 with four dimensions through the fused kernel."""
    torch.manual_seed(length)
    shapes = (2, 3, length, width), (2, 3, keys, width), (2, 3, keys, values)
    operands = [torch.randn(*shape, dtype=torch.float64) for shape in shapes]
    grad = torch.randn(2, 3, length, values, dtype=torch.float64)
    attn_mask = None
    if mask == "bool":
        attn_mask = torch.rand(length, keys) > 0.3
        attn_mask[0] = False  # a row that may look nowhere
    elif mask == "float":
        attn_mask = torch.randn(2, 1, length, keys, dtype=torch.float64)
    found = []
    for dtype in (torch.float64, torch.float32):
        leaves = [x.to(dtype).requires_grad_() for x in operands]
        given = attn_mask if attn_mask is None or mask == "bool" else attn_mask.to(dtype)
        out = torch.nn.functional.scaled_dot_product_attention(*leaves, attn_mask=given, is_causal=mask == "causal")
        found.append(torch.autograd.grad(out, leaves, grad.to(dtype)))
    for exact, single in zip(*found):
        assert single.dtype is torch.float32
        assert (single.double() - exact).abs().max().item() <= 2e-6 * max(1.0, exact.abs().max().item())


def test_fused_gradients_of_broadcast_keys_are_summed_before_they_are_rounded():
    torch.manual_seed(0)
    query, key, value = torch.randn(2, 4, 16, 8), torch.randn(2, 1, 16, 8), torch.randn(1, 4, 16, 8)
    grad = torch.randn(2, 4, 16, 8)
    low = [x.bfloat16().requires_grad_() for x in (query, key, value)]
    wide = [x.bfloat16().double().requires_grad_() for x in (query, key, value)]
    mine = torch.autograd.grad(torch.nn.functional.scaled_dot_product_attention(*low), low, grad.bfloat16())
    exact = torch.autograd.grad(torch.nn.functional.scaled_dot_product_attention(*wide), wide, grad.bfloat16().double())
    for a, b, leaf in zip(mine, exact, low):
        assert a.shape == leaf.shape and a.dtype is torch.bfloat16
        assert (a.double() - b).abs().max().item() <= 2**-8 * b.abs().max().item()


def test_fused_gradients_hold_no_matrix_of_scores():
    query, key, value = (torch.randn(1, 2, 2048, 32).requires_grad_() for _ in range(3))
    out = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    grad = torch.ones_like(out)
    torch.autograd.grad(out, (query, key, value), grad, retain_graph=True)
    torch.memory.reset_peak_memory_stats()
    before = torch.memory.memory_allocated()
    torch.autograd.grad(out, (query, key, value), grad)
    assert torch.memory.max_memory_allocated() - before < 2 * 2048 * 2048 * 4


def test_a_mask_that_is_written_before_the_gradient():
    q, k, v = (torch.randn(1, 1, 8, 4, requires_grad=True) for _ in range(3))
    mask = torch.zeros(8, 8)
    out = attention(q, k, v, mask)
    mask.fill_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_dropout_keeps_whole_weights_and_their_gradients():
    """With the identity as values the result is the weights: each is dropped or divided by what is kept, and gradients pass through those alone."""
    q, k = (torch.randn(1, 2, 12, 16, requires_grad=True) for _ in range(2))
    v = torch.eye(12).expand(1, 2, 12, 12).clone().requires_grad_()
    whole = attention(q, k, v).detach().numpy()
    torch.manual_seed(3)
    out = attention(q, k, v, dropout_p=0.25)
    kept = out.detach().numpy() != 0
    assert 0.6 < kept.mean() < 0.9
    np.testing.assert_allclose(out.detach().numpy(), np.where(kept, whole / 0.75, 0), rtol=1e-5, atol=1e-6)
    out.sum().backward()
    np.testing.assert_allclose(v.grad.numpy(), (out.detach().numpy().sum(-2)[..., None] * np.ones(12)), rtol=1e-4, atol=1e-5)
    assert np.isfinite(q.grad.numpy()).all() and np.abs(q.grad.numpy()).max() > 0


def test_a_row_whose_scores_are_all_the_least_number_looks_everywhere_alike():
    q, k, v = (torch.randn(1, 2, 16, 8, requires_grad=True) for _ in range(3))
    mask = torch.full((1, 1, 16, 16), torch.finfo(torch.float32).min)
    out = attention(q, k, v, mask)
    np.testing.assert_allclose(out.detach().numpy(), v.detach().numpy().mean(-2, keepdims=True).repeat(16, -2), rtol=1e-5, atol=1e-6)
    out.sum().backward()
    np.testing.assert_allclose(v.grad.numpy(), np.ones(v.shape), rtol=1e-5)


@pytest.mark.parametrize("scale", [-0.7, 0.0, 3.0])
@pytest.mark.parametrize("rows", [2, 20])
def test_any_scale(scale, rows):
    q, k, v = operands((1, 2, rows, 8), (1, 2, 70, 8), (1, 2, 70, 8))
    for causal in (False, True):
        np.testing.assert_allclose(attention(*tensors(q, k, v), is_causal=causal, scale=scale).numpy(), reference(q, k, v, None, causal, scale), rtol=2e-5, atol=3e-6)


def test_one_key_is_what_comes_out():
    q, k, v = tensors(*operands((1, 2, 40, 8), (1, 2, 40, 8), (1, 2, 40, 8)))
    assert (attention(q, k, v, is_causal=True)[:, :, 0] == v[:, :, 0]).all()


def test_a_result_of_three_dimensions_may_be_written_before_the_gradient():
    """PyTorch's fused attention keeps its result and notices; three dimensions go another way there."""
    torch.manual_seed(0)
    x = torch.randn(2, 100, 8, requires_grad=True)
    twice = torch.autograd.grad((attention(x, x, x) * 2).sum(), x)[0]
    out = attention(x, x, x)
    out.mul_(2)
    assert torch.equal(torch.autograd.grad(out.sum(), x)[0], twice)
    y = x.detach().unsqueeze(1).requires_grad_()
    out = attention(y, y, y)
    out.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2)])
def test_gradients_of_a_split_layer_lie_side_by_side(order):
    torch.manual_seed(0)
    x = torch.randn(2, 20, 3 * 16, requires_grad=True)
    weights = torch.randn(2, 2, 20, 8)

    def attended(q, k, v):
        heads = [t.view(2, 20, 2, 8).transpose(1, 2) for t in (q, k, v)]
        return (torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True) * weights).sum()

    parts = (x * 1.0).split(16, dim=2)
    attended(*[parts[n] for n in order]).backward()
    apart = [x.detach()[:, :, 16 * n : 16 * n + 16].clone().requires_grad_() for n in order]
    attended(*apart).backward()
    for n, leaf in zip(order, apart):
        assert torch.equal(x.grad[:, :, 16 * n : 16 * n + 16], leaf.grad)
    assert x.grad.is_contiguous()


def test_hooks_may_keep_and_change_gradients_that_lie_side_by_side():
    x = torch.ones(1, 16, 3 * 8, requires_grad=True)
    y = x * 1.0
    parts = y.split(8, dim=2)
    kept = []
    parts[0].register_hook(lambda g: kept.append(g) or torch.full_like(g, 2.0))
    q, k, v = (t.view(1, 16, 1, 8).transpose(1, 2) for t in parts)
    torch.nn.functional.scaled_dot_product_attention(q, k, v).sum().backward()
    assert (x.grad[:, :, :8] == 2).all() and torch.allclose(x.grad[:, :, 16:], torch.ones(1, 16, 8)) and torch.equal(kept[0], torch.zeros(1, 16, 8))
