"""Multi-head attention."""
from ... import ops
from .. import functional as F
from .. import init
from ..functions.attention import canonical_mask
from ..module import Module
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear


class MultiheadAttention(Module):
    """Attention with several heads: query [L, N, E] (batch_first: [N, L, E]) → (output of that shape, weights [N, L, S] or None)."""

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def parameter(*shape):
            return Parameter(ops.empty(shape, device=device, dtype=dtype))

        same = self._qkv_same_embed_dim
        for name, width in (("q_proj_weight", embed_dim), ("k_proj_weight", self.kdim), ("v_proj_weight", self.vdim)):
            self.register_parameter(name, None if same else parameter(embed_dim, width))
        self.register_parameter("in_proj_weight", parameter(3 * embed_dim, embed_dim) if same else None)
        self.register_parameter("in_proj_bias", parameter(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._order_parameters()
        self._reset_parameters()

    def _order_parameters(self):
        """The state dict's order is PyTorch's: separate or packed weights first, whichever exist."""
        if self._qkv_same_embed_dim:
            packed = self._parameters.pop("in_proj_weight")
            own = dict(self._parameters)
            self._parameters.clear()
            self._parameters["in_proj_weight"] = packed
            self._parameters.update(own)

    def _reset_parameters(self):
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            init.xavier_uniform_(self.q_proj_weight)
            init.xavier_uniform_(self.k_proj_weight)
            init.xavier_uniform_(self.v_proj_weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            init.xavier_normal_(self.bias_v)

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        swap = self.batch_first and query.dim() == 3
        if swap:  # [N, L, E] → [L, N, E]; one object stays one, so that the packed projection is used
            if key is value:
                query, key = (query.transpose(0, 1),) * 2 if query is key else (query.transpose(0, 1), key.transpose(0, 1))
                value = key
            else:
                query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        out, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (out.transpose(0, 1) if swap else out), weights

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """Both masks as one float mask that broadcasts with [N, n_h, L, S], and its kind (2: merged, 1: padding, 0: attention)."""
        attn_mask = canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        key_padding_mask = canonical_mask(key_padding_mask, "key_padding_mask", None, "", query.dtype)
        batch, length = query.shape[:2]
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        shape = (batch, self.num_heads, length, -1)
        wide = attn_mask.view(shape) if attn_mask.dim() == 3 else attn_mask.view(1, 1, length, -1).expand(shape)
        if key_padding_mask is not None:
            wide = wide + key_padding_mask.view(batch, 1, 1, -1)
        return wide, 2
