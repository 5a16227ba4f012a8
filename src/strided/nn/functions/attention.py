"""Multi-head attention as one function, the way `nn.MultiheadAttention` calls it. The attention itself is an operator (ops/attention.py)."""
import math

from ... import ops
from . import counts
from .activation import softmax
from .dropout import dropout
from .entry import entry
from .padding import pad


def canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A boolean or float mask as a float one: 0 where attention may go, −inf where not."""
    if mask is None:
        return None
    is_bool = str(mask.dtype) == "torch.bool"
    if not is_bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if not is_bool:
        return mask
    zeros = ops.zeros(mask.shape, dtype=target_type, device=mask.device)
    return zeros.masked_fill_(mask, float("-inf"))


def _project(query, key, value, weight, bias):
    """q, k, v from the packed projection [3E, E]: one product where the three inputs are one."""
    embed = query.size(-1)
    if key is value and query is key:
        packed = ops.linear(query, weight, bias)  # [L, N, 3E]
        return packed.chunk(3, -1)
    w = weight.chunk(3)
    b = (None,) * 3 if bias is None else bias.chunk(3)
    if key is value:
        rest = ops.linear(key, weight[embed:], None if bias is None else bias[embed:])  # [S, N, 2E]
        return (ops.linear(query, w[0], b[0]), *rest.chunk(2, -1))
    return tuple(ops.linear(x, wi, bi) for x, wi, bi in zip((query, key, value), w, b))


def _project_separate(query, key, value, q_weight, k_weight, v_weight, bias):
    b = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple(ops.linear(x, w, bi) for x, w, bi in zip((query, key, value), (q_weight, k_weight, v_weight), b))


@entry(counts.multi_head_attention, products=True)
def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """Attention with projections: query [L, N, E] (or [L, E]), key and value [S, N, ·] → (output [L, N, E], weights or None).

    The weights are [N, L, S], averaged over the heads unless `average_attn_weights` is False ([N, n_h, L, S]).
    """
    batched = query.dim() == 3
    _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))  # [L, 1, E]
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, embed = query.shape
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method `generate_square_subsequent_mask` to create this mask."
        )
    if embed != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed}")
    head = embed // num_heads
    if head * num_heads != embed:
        raise AssertionError(f"embed_dim {embed} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight and key.shape[:2] != value.shape[:2]:
        raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    if not use_separate_proj_weight and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    key_padding_mask = canonical_mask(key_padding_mask, "key_padding_mask", None, "attn_mask", query.dtype)
    attn_mask = canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
    if attn_mask is not None:
        attn_mask = _mask_shape(attn_mask, length, key.size(0), batch, num_heads)
    if key_padding_mask is not None:
        added = (bias_k is not None and bias_v is not None) + bool(add_zero_attn)  # positions that the masks are widened by below
        source = key.size(0) + added if static_k is None else static_k.size(1) + bool(add_zero_attn)
        _check_padding(key_padding_mask.size(0), key_padding_mask.size(1) + added, batch, source)

    if use_separate_proj_weight:
        q, k, v = _project_separate(query, key, value, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias)
    else:
        q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias)

    if bias_k is not None and bias_v is not None:
        k = ops.cat([k, bias_k.expand(1, batch, embed)])  # [S + 1, N, E]
        v = ops.cat([v, bias_v.expand(1, batch, embed)])
        attn_mask, key_padding_mask = _widen(attn_mask), _widen(key_padding_mask)

    q = q.reshape(length, batch, num_heads, head).permute(1, 2, 0, 3)  # [N, n_h, L, d_h]
    k = _heads(k, static_k, batch, num_heads, head)  # [N, n_h, S, d_h]
    v = _heads(v, static_v, batch, num_heads, head)
    if add_zero_attn:
        zeros = ops.zeros(batch, num_heads, 1, head, dtype=k.dtype, device=k.device)
        k, v = ops.cat([k, zeros], 2), ops.cat([v, zeros], 2)  # [N, n_h, S + 1, d_h]
        attn_mask, key_padding_mask = _widen(attn_mask), _widen(key_padding_mask)
    if key_padding_mask is not None:
        padding = key_padding_mask[:, None, None, :]  # [N, 1, 1, S]
        attn_mask = padding if attn_mask is None else attn_mask + padding  # [N, n_h or 1, L, S]

    dropout_p = dropout_p if training else 0.0
    weights = None
    if need_weights:
        scores = (q * math.sqrt(1.0 / head)) @ k.transpose(-2, -1)  # [N, n_h, L, S]
        weights = softmax(scores if attn_mask is None else scores + attn_mask, -1)
        weights = dropout(weights, dropout_p) if dropout_p else weights
        out = weights @ v  # [N, n_h, L, d_h]
    else:
        out = ops.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p)
    out = out.permute(2, 0, 1, 3).reshape(length, batch, embed)  # [L, N, E]
    out = ops.linear(out, out_proj_weight, out_proj_bias)
    if weights is not None and average_attn_weights:
        weights = weights.mean(1)  # [N, L, S]
    if not batched:
        out = out.squeeze(1)
        weights = None if weights is None else weights.squeeze(0)
    return out, weights


def _heads(x, static, batch, num_heads, head):
    """[S, N, E] → [N, n_h, S, d_h]; a given static projection [N·n_h, S, d_h] takes its place."""
    if static is not None:
        return static.reshape(batch, num_heads, -1, head)
    return x.reshape(x.size(0), batch, num_heads, head).permute(1, 2, 0, 3)


def _widen(mask):
    """One more key position, open to all."""
    return None if mask is None else pad(mask, (0, 1))


def _mask_shape(mask, length, source, batch, num_heads):
    """[L, S] or [N·n_h, L, S] → a shape that broadcasts with [N, n_h, L, S]."""
    if mask.dim() == 2:
        if tuple(mask.shape) != (length, source):
            raise RuntimeError(
                f"The shape of the 2D attn_mask is {mask.shape}, but should be {(length, source)}."
            )
        return mask[None, None]
    wanted = (batch * num_heads, length, source)
    if tuple(mask.shape) != wanted:
        raise RuntimeError(f"The shape of the 3D attn_mask is {mask.shape}, but should be {wanted}.")
    return mask.reshape(batch, num_heads, length, source)


def _check_padding(rows, columns, batch, source):
    """A padding mask is [N, S]."""
    for dim, (size, wanted) in enumerate(((rows, batch), (columns, source))):
        if size != wanted:
            raise AssertionError(f"Expected key_padded_mask.shape[{dim}] to be {wanted}, but got {size}\n  One row a sample, one column a key: True where the key is padding.")


def _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads):
    if query.dim() not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor")
    kind = "batched (3-D)" if query.dim() == 3 else "unbatched (2-D)"
    if key.dim() != query.dim() or value.dim() != query.dim():
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {query.dim()}-D but found "
            f"{key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != query.dim() - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {query.dim() - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is None:
        return
    if attn_mask.dim() not in (2, 3):
        raise AssertionError(f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead")
    if query.dim() == 2 and attn_mask.dim() == 3:
        wanted = (num_heads, query.size(0), key.size(0))
        if tuple(attn_mask.shape) != wanted:
            raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {attn_mask.shape}")
