"""Transformer encoder and decoder layers, their stacks, and the whole model of "Attention Is All You Need"."""
import copy

from ... import ops
from ...amp import is_autocast_enabled
from ...autograd.modes import is_grad_enabled
from .. import functional as F
from .. import init
from ..module import Module
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .normalization import LayerNorm


def _activation(activation):
    """The function of a name, or the function itself."""
    if not isinstance(activation, str):
        return activation
    if activation in ("relu", "gelu"):
        return getattr(F, activation)
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _clones(module, count):
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _is_causal(mask, is_causal, size):
    """Whether a mask is the causal one, unless the caller says so."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    causal = Transformer.generate_square_subsequent_mask(size, device=mask.device, dtype=mask.dtype if mask.is_floating_point() else None)
    return tuple(mask.shape) == tuple(causal.shape) and bool((mask == causal).all())


class _Layer(Module):
    """What encoder and decoder layers share: the feed-forward block and the norms."""

    def _add_feedforward(self, d_model, dim_feedforward, dropout, bias, factory):
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **factory)

    def _feedforward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))  # [.., d] → [.., d_ff] → [.., d]

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward block, each with a residual: [L, N, d_model] (batch_first: [N, L, d_model]) → the same."""

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first, **factory)
        self._add_feedforward(d_model, dim_feedforward, dropout, bias, factory)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        x = src
        masks = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            x = x + self._attend(self.norm1(x), *masks)
            return x + self.dropout2(self._feedforward(self.norm2(x)))
        x = self.norm1(x + self._attend(x, *masks))
        return self.norm2(x + self.dropout2(self._feedforward(x)))

    def _attend(self, x, mask, padding_mask, is_causal):
        out = self.self_attn(
            x, x, x, attn_mask=mask, key_padding_mask=padding_mask, need_weights=False, is_causal=is_causal and mask is not None
        )
        return self.dropout1(out[0])


class TransformerEncoder(Module):
    """A stack of encoder layers (deep copies of one), then an optional norm."""

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers = _clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        batch_first = getattr(getattr(self.layers[0], "self_attn", None), "batch_first", False)
        length = src.size(1) if batch_first and src.dim() == 3 else src.size(0)
        causal = _is_causal(mask, is_causal, length)
        zero = mask is None and self._zeroes_padding(src, src_key_padding_mask)
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=causal)
        if zero:
            src = src.masked_fill(src_key_padding_mask.bool().unsqueeze(-1), 0.0)  # [N, L, d_model]
        return src if self.norm is None else self.norm(src)

    def _zeroes_padding(self, src, padding):
        """Whether padded places come out as zeros. PyTorch's inference path leaves them out (nested tensors) under just these conditions."""
        layer = self.layers[0]
        if padding is None or not self.enable_nested_tensor or not isinstance(layer, TransformerEncoderLayer):
            return False
        attention = layer.self_attn
        built = (
            not layer.norm_first
            and attention.batch_first
            and attention.in_proj_bias is not None
            and attention.num_heads % 2 == 0
            and layer.activation in (F.relu, F.gelu)
            and layer.norm1.eps == layer.norm2.eps
        )
        if not built or src.dim() != 3 or layer.training or is_autocast_enabled():
            return False
        if is_grad_enabled() and any(p.requires_grad for p in self.parameters()):
            return False
        kept = ~padding.bool() if not padding.is_floating_point() else padding == 0
        return bool((kept[:, :-1] >= kept[:, 1:]).all()) if self.mask_check else True  # no gap before the padding


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to a memory, and a feed-forward block: tgt [T, N, d_model], memory [S, N, d_model] → as tgt."""

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first, **factory)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first, **factory)
        self._add_feedforward(d_model, dim_feedforward, dropout, bias, factory)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=False,
        memory_is_causal=False,
    ):
        x = tgt
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            y = self.norm1(x)
            x = x + self.dropout1(_attention(self.self_attn, y, y, *own))
            x = x + self.dropout2(_attention(self.multihead_attn, self.norm2(x), memory, *other))
            return x + self.dropout3(self._feedforward(self.norm3(x)))
        x = self.norm1(x + self.dropout1(_attention(self.self_attn, x, x, *own)))
        x = self.norm2(x + self.dropout2(_attention(self.multihead_attn, x, memory, *other)))
        return self.norm3(x + self.dropout3(self._feedforward(x)))


def _attention(attention, query, key, mask, padding_mask, is_causal):
    causal = is_causal and mask is not None
    return attention(query, key, key, attn_mask=mask, key_padding_mask=padding_mask, is_causal=causal, need_weights=False)[0]


class TransformerDecoder(Module):
    """A stack of decoder layers (deep copies of one), then an optional norm."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        batch_first = getattr(getattr(self.layers[0], "self_attn", None), "batch_first", False)
        length = tgt.size(1) if batch_first and tgt.dim() == 3 else tgt.size(0)
        causal = _is_causal(tgt_mask, tgt_is_causal, length)
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder: src [S, N, d_model], tgt [T, N, d_model] → [T, N, d_model] (batch_first: N first)."""

    def __init__(
        self,
        d_model=512,
        nhead=8,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        custom_encoder=None,
        custom_decoder=None,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        if custom_encoder is None:
            layer = TransformerEncoderLayer(*settings, **factory)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        self.encoder = custom_encoder
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*settings, **factory)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src,
        tgt,
        src_mask=None,
        tgt_mask=None,
        memory_mask=None,
        src_key_padding_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        src_is_causal=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        batched = src.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if batched and src.size(batch_dim) != tgt.size(batch_dim):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """[sz, sz] with −inf above the diagonal and 0 elsewhere."""
        return ops.triu(ops.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1)

    def _reset_parameters(self):
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)
