"""`torch.nn.attention.flex_attention`: attention whose scores pass through a Python function, under a mask that is one, too.

What the functions say is computed for all positions at once: their arguments are index tensors that broadcast to [B, H, Q, KV], where PyTorch maps them over
single positions. The matrix of scores is held; scaled_dot_product_attention is the way without it. No block is skipped: what a BlockMask leaves out is masked.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import ops
from ..dtypes import bool_, float32, float64, int32
from ..refused import missing
from ..tensor import Tensor

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention", "noop_mask", "or_masks"]
_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What flex_attention shall return besides its result: the logarithm of each row's sum of exponentials."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """lse: [B, H, Q], if it was asked for."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask that keeps everything."""
    return batch.new_ones((), dtype=bool_)


def and_masks(*mask_mods: Callable) -> Callable:
    """A mask that keeps what all masks keep. Raises RuntimeError for what cannot be called."""
    return _joined(mask_mods, ops.logical_and, True)


def or_masks(*mask_mods: Callable) -> Callable:
    """A mask that keeps what any of the masks keeps."""
    return _joined(mask_mods, ops.logical_or, False)


def _joined(mask_mods: tuple, join: Callable, start: bool) -> Callable:
    if not all(callable(mod) for mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_full((), start, dtype=bool_)
        for mod in mask_mods:
            result = join(result, mod(b, h, q_idx, kv_idx))
        return result

    return mask


def _positions(B: int, H: int, Q: int, KV: int, device: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Index tensors [B, 1, 1, 1], [1, H, 1, 1], [1, 1, Q, 1], [1, 1, 1, KV]."""
    b, h, q, kv = (ops.arange(n, device=device) for n in (B, H, Q, KV))
    return b.view(-1, 1, 1, 1), h.view(1, -1, 1, 1), q.view(1, 1, -1, 1), kv.view(1, 1, 1, -1)


def create_mask(mod_fn: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """What a mask function keeps, as a bool tensor [B, H, Q_LEN, KV_LEN]; B and H are 1 where they are None."""
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    return mod_fn(*_positions(*shape, device)).expand(shape).contiguous()


def _listed(dense: Tensor) -> tuple[Tensor, Tensor]:
    """[..., R, C] of 0 and 1 → how many ones each row has [..., R], and their places first, then the others' [..., R, C]."""
    return dense.sum(-1).to(int32), dense.to(int32).argsort(dim=-1, descending=True, stable=True).to(int32)


def _dense(count: Tensor | None, places: Tensor | None) -> Tensor | None:
    """The reverse of `_listed`, as int32."""
    if count is None or places is None:
        return None
    first = (ops.arange(places.shape[-1]) < count.unsqueeze(-1)).to(int32)  # [..., R, C]
    return ops.zeros(places.shape, dtype=int32).scatter(-1, places.long(), first)


class BlockMask:
    """A mask by blocks: for each block of queries, which blocks of keys are kept in part (as mask_mod says) and in full.

    kv_num_blocks: [B, H, rows of blocks], kv_indices: [B, H, rows of blocks, columns of blocks], both int32; those with full_ likewise, or None.
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: Callable = noop_mask,
    ):
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: Callable | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """From the lists of key blocks; those of query blocks follow. seq_lengths (queries, keys): the blocks' where it is None."""
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        part, full = _dense(kv_num_blocks, kv_indices), _dense(full_kv_num_blocks, full_kv_indices)
        q = _listed(part.mT) if compute_q_blocks and part is not None else (None, None)
        full_q = _listed(full.mT) if compute_q_blocks and full is not None else (None, None)
        lengths = seq_lengths or (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        return cls(lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, q[0], q[1], full_q[0], full_q[1], size, mask_mod or noop_mask)

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many places the mask has, kept or not."""
        return math.prod(self.shape)

    def to_dense(self) -> Tensor:
        """Which blocks are kept in part or in full, [B, H, rows of blocks, columns of blocks] of int32."""
        part, full = _dense(self.kv_num_blocks, self.kv_indices), _dense(self.full_kv_num_blocks, self.full_kv_indices)
        assert part is not None
        return part if full is None else (part + full).clamp(max=1)

    def sparsity(self) -> float:
        """How much of the mask lies in blocks that are left out, in percent."""
        kept = int(self.kv_num_blocks.sum().item()) + (0 if self.full_kv_num_blocks is None else int(self.full_kv_num_blocks.sum().item()))
        return 100 * (1 - kept * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to(self, device: Any) -> BlockMask:
        """The mask itself, with its tensors on a device."""
        moved = [None if t is None else t.to(device) for t in self.as_tuple()[1:9]]
        return BlockMask(self.seq_lengths, *moved, self.BLOCK_SIZE, self.mask_mod)  # type: ignore[arg-type,call-arg]

    def as_tuple(self) -> tuple:
        """What the constructor takes."""
        lists = (
            self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices,
            self.q_num_blocks, self.q_indices, self.full_q_num_blocks, self.full_q_indices,
        )  # fmt: skip
        return (self.seq_lengths, *lists, self.BLOCK_SIZE, self.mask_mod)

    def __getitem__(self, index: Any) -> BlockMask:
        """Of the batch, heads or rows of blocks, as a tensor is indexed by them."""
        where = index if isinstance(index, tuple) else (index,)
        where = tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in where)
        if len(where) > 3:
            raise IndexError(f"BlockMask: index by batch, head and row of blocks, not by {len(where)} dimensions")
        taken = [None if t is None else t[where] for t in self.as_tuple()[1:5]]
        rows = taken[0].shape[-1]  # type: ignore[union-attr]
        lengths = (min(rows * self.BLOCK_SIZE[0], self.seq_lengths[0]), self.seq_lengths[1])
        return BlockMask.from_kv_blocks(*taken, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=None, seq_lengths=lengths)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, BLOCK_SIZE={self.BLOCK_SIZE}, mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)})"

    def _kept(self, B: int, H: int, Q: int, KV: int, device: Any) -> Tensor:
        """The mask place by place: bool that broadcasts to [B, H, Q, KV]."""
        part, full = _dense(self.kv_num_blocks, self.kv_indices), _dense(self.full_kv_num_blocks, self.full_kv_indices)
        assert part is not None

        def places(blocks: Tensor) -> Tensor:
            wide = blocks.bool().repeat_interleave(self.BLOCK_SIZE[0], -2).repeat_interleave(self.BLOCK_SIZE[1], -1)
            return wide[..., :Q, :KV]

        kept = places(part) & self.mask_mod(*_positions(B, H, Q, KV, device))
        return kept if full is None else kept | places(full)


def create_block_mask(
    mask_mod: Callable,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
) -> BlockMask:
    """A BlockMask of the blocks in which mask_mod(batch, head, query, key) keeps anything. B or H None: the mask is the same for all."""
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, columns = -(-Q_LEN // size[0]), -(-KV_LEN // size[1])
    padded = ops.zeros(*mask.shape[:2], rows * size[0], columns * size[1], dtype=int32)
    padded[..., :Q_LEN, :KV_LEN] = mask
    kept = padded.view(*mask.shape[:2], rows, size[0], columns, size[1]).sum((-3, -1))  # [B, H, rows, columns]
    full = kept == size[0] * size[1]
    part = (kept > 0) & ~full if separate_full_blocks else kept > 0
    lists = (*_listed(part), *(_listed(full) if separate_full_blocks else (None, None)))
    return BlockMask.from_kv_blocks(*lists, BLOCK_SIZE=size, mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN))


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """softmax(score_mod(query @ key.mT * scale)) @ value, with what block_mask leaves out at no weight.

    query: [B, Hq, Q, E], key: [B, H, KV, E], value: [B, H, KV, Ev] → [B, Hq, Q, Ev]; Hq a multiple of H with enable_gqa. scale: 1/√E where it is None.
    score_mod(score, batch, head, query position, key position) gives the new scores. Rows without any weight are 0. With return_lse (or return_aux) also
    the logarithm of each row's sum of exponentials, [B, Hq, Q]. Differentiable. Raises NotImplementedError where there are not four dimensions.
    """
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if not enable_gqa and query.shape[-3] != key.shape[-3]:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={query.shape[-3]} and Hkv={key.shape[-3]}. Try setting enable_gqa=True for GQA."
        )
    if return_aux is not None and return_aux.max_scores:
        raise NotImplementedError("Returning max scores is not supported on CPU/MPS. Compute it from the scores: (query @ key.mT * scale).amax(-1)")
    heads, groups = query.shape[-3], query.shape[-3] // key.shape[-3]
    if heads % key.shape[-3]:
        raise ValueError(f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={key.shape[-3]}.")
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    B, Q, KV = query.shape[0], query.shape[-2], key.shape[-2]
    if block_mask is not None and (Q > block_mask.seq_lengths[0] or KV > block_mask.seq_lengths[1]):
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={Q} and kv_len={KV}. "
            "As the block mask was created for a smaller length than you're using it for, you likely need to create a new block mask."
        )
    scores = (query @ key.mT).to(float64 if query.dtype is float64 else float32) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if score_mod is not None:
        scores = score_mod(scores, *_positions(B, heads, Q, KV, query.device)).expand(scores.shape)  # [B, Hq, Q, KV]
    if block_mask is not None:
        scores = ops.where(block_mask._kept(B, heads, Q, KV, query.device), scores, -math.inf)
    empty = (scores == -math.inf).all(-1, keepdim=True)
    weights = ops.where(empty, 0.0, scores.softmax(-1)).to(query.dtype)
    out = weights @ value
    if return_aux is not None:
        return out, AuxOutput(scores.logsumexp(-1) if return_aux.lse else None)
    return (out, scores.logsumexp(-1)) if return_lse else out


__getattr__ = missing("torch.nn.attention.flex_attention")
