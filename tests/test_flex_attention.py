"""Attention under Python functions (`torch.nn.attention.flex_attention`) against scaled_dot_product_attention and values by hand."""
import math

import pytest

import strided as torch
from strided.nn.functional import scaled_dot_product_attention
from strided.torch_alias import torch_alias

with torch_alias():
    from torch.nn.attention.flex_attention import AuxRequest, BlockMask, and_masks, create_block_mask, create_mask, flex_attention, noop_mask, or_masks


def causal(b, h, q, k):
    return q >= k


def tensors(heads=2, keys=2, length=10):
    torch.manual_seed(0)
    return torch.randn(2, heads, length, 4, requires_grad=True), *(torch.randn(2, keys, length, 4, requires_grad=True) for _ in range(2))


DOCUMENT = torch.arange(10) // 4
MASKS = {
    "causal": causal, "window": lambda b, h, q, k: (q >= k) & (q - k < 3), "documents": and_masks(causal, lambda b, h, q, k: DOCUMENT[q] == DOCUMENT[k]),
    "either": or_masks(lambda b, h, q, k: q == k, lambda b, h, q, k: k < 2), "by head": lambda b, h, q, k: (q - k).abs() <= h * 3, "all": noop_mask,
}  # fmt: skip


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("block", [2, (4, 3), 128])
def test_a_mask_in_blocks_is_the_mask(name, block):
    q, k, v = tensors()
    mask = create_block_mask(MASKS[name], None, 2 if name == "by head" else None, 10, 10, BLOCK_SIZE=block)
    out = flex_attention(q, k, v, block_mask=mask)
    expected = scaled_dot_product_attention(q, k, v, attn_mask=create_mask(MASKS[name], 1, 2, 10, 10))
    assert torch.allclose(out, expected, atol=1e-6)
    gradients = [torch.autograd.grad(o.sin().sum(), (q, k, v)) for o in (out, expected)]
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*gradients))


def test_scores_are_changed_by_a_function():
    q, k, v = tensors()
    slopes = 2.0 ** -torch.arange(1, 3)
    out = flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + slopes[h] * (j - i), block_mask=create_block_mask(causal, 1, 1, 10, 10))
    place = torch.arange(10)
    bias = slopes.view(2, 1, 1) * (place - place[:, None]) + torch.where(place[:, None] >= place, 0.0, -math.inf)
    assert torch.allclose(out, scaled_dot_product_attention(q, k, v, attn_mask=bias), atol=1e-6)


def test_groups_of_heads_and_the_sums():
    q, k, v = tensors(heads=4)
    out, lse = flex_attention(q, k, v, enable_gqa=True, return_lse=True, scale=0.3)
    assert torch.allclose(out, scaled_dot_product_attention(q, k, v, enable_gqa=True, scale=0.3), atol=1e-6)
    assert torch.allclose(lse, (q @ k.repeat_interleave(2, 1).mT * 0.3).logsumexp(-1), atol=1e-6)
    assert flex_attention(q, k, v, enable_gqa=True, return_aux=AuxRequest(lse=True))[1].lse.shape == (2, 4, 10)
    with pytest.raises(ValueError, match="Expect query and key/value to have the same number of heads but got Hq=4 and Hkv=2. Try setting enable_gqa=True"):
        flex_attention(q, k, v)
    with pytest.raises(NotImplementedError, match="must be 4D tensors"):
        flex_attention(q[0], k, v)


def test_rows_without_weight_are_zero():
    q, k, v = tensors()
    out, lse = flex_attention(q, k, v, block_mask=create_block_mask(lambda b, h, i, j: (i > 0) & (j >= 0), 1, 1, 10, 10), return_lse=True)
    assert out[:, :, 0].tolist() == [[[0.0] * 4] * 2] * 2 and lse[0, 0, 0].item() == -math.inf and not out.isnan().any()


def test_blocks_by_hand():
    mask = create_block_mask(causal, None, None, 40, 40, BLOCK_SIZE=16)
    assert mask.shape == (1, 1, 40, 40) and mask.seq_lengths == (40, 40) and mask.numel() == 1600
    assert mask.kv_num_blocks.tolist() == [[[1, 1, 3]]] and mask.full_kv_num_blocks.tolist() == [[[0, 1, 0]]] and mask.kv_num_blocks.dtype is torch.int32
    assert mask.kv_indices.tolist() == [[[[0, 1, 2], [1, 0, 2], [0, 1, 2]]]] and mask.q_num_blocks.tolist() == [[[2, 2, 1]]]  # the last row of blocks is cut short
    assert mask.full_q_num_blocks.tolist() == [[[1, 0, 0]]] and mask.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]]
    assert mask.sparsity() == pytest.approx(100 * (1 - 6 * 256 / 1600)) and "shape=(1, 1, 40, 40)" in repr(mask)
    assert mask[:, :, 1].shape == (1, 1, 16, 40) and mask[:, :, 1].full_kv_num_blocks.tolist() == [[[1]]]


def test_a_mask_from_lists_of_blocks():
    number, places = torch.tensor([[[1, 1]]], dtype=torch.int32), torch.tensor([[[[0, 1], [1, 0]]]], dtype=torch.int32)
    full, full_places = torch.tensor([[[0, 1]]], dtype=torch.int32), torch.tensor([[[[0, 1], [0, 1]]]], dtype=torch.int32)
    mask = BlockMask.from_kv_blocks(number, places, full, full_places, BLOCK_SIZE=5, mask_mod=causal)
    q, k, v = tensors()
    assert mask.shape == (1, 1, 10, 10) and torch.allclose(flex_attention(q, k, v, block_mask=mask), scaled_dot_product_attention(q, k, v, is_causal=True), atol=1e-6)
    with pytest.raises(ValueError, match="block_mask was created for block_mask.shape="):
        flex_attention(*tensors(length=11), block_mask=mask)
