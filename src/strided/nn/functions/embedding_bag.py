"""Sums, means and maxima of embedding rows by bag."""
import warnings

from ... import ops
from ...ops import embedding, lookup
from ...ops.bags import bag_of_each, bag_sums, takes
from ...ops.lookup import check_sparse
from . import counts
from .entry import entry


@entry(counts.embedding_bag)
def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """Rows of `weight` [V, D] looked up and reduced a bag: input [B, L], or [N] with the bags' `offsets` [B] → [B, D].

    mode: "sum" | "mean" | "max". Rows at `padding_idx` do not count; an empty bag gives zeros.
    """
    if not weight.is_floating_point() and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, "
            "and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=4,
        )
        input, weight = weight, input
    check_sparse("embedding_bag", sparse, weight)
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({list(per_sample_weights.shape)}) is not None, then it must have the same "
            f"shape as the input ({list(input.shape)})"
        )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences.")
        starts = None
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if include_last_offset and offsets.numel() and not offsets.is_meta:  # what lies behind the last offset is in no bag
            count = int(offsets[-1])
            input, per_sample_weights = input[:count], None if per_sample_weights is None else per_sample_weights[:count]
        starts = offsets[:-1] if include_last_offset else offsets
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode != "max" and max_norm is None and not scale_grad_by_freq and takes(weight, input, per_sample_weights):
        padding = -1 if padding_idx is None else padding_idx % weight.size(0)
        return bag_sums(weight, input, starts, mode == "mean", per_sample_weights, padding)
    bags, bag = input.size(0) if starts is None else starts.numel(), bag_of_each(input, starts)
    options = (max_norm, norm_type, scale_grad_by_freq)
    return _reduce(input.reshape(-1), bag, bags, weight, mode, per_sample_weights, padding_idx, options)


def bookkeeping(indices, weight, offsets, mode, include_last_offset, padding_idx):
    """What the core's embedding_bag hands out besides its result, for one-dimensional indices: (the bag of each index, the bags' sizes, the rows of the maxima).

    A plain sum needs none of it: no bags and zeros then. The rows [B, D] are of mode "max", the sizes once more otherwise.
    """
    starts = offsets[:-1] if include_last_offset else offsets
    bags, bag = starts.numel(), bag_of_each(indices, starts)
    sizes = ops.zeros(offsets.numel(), dtype=indices.dtype, device=indices.device)
    if mode == "sum":
        return bag.to(indices.dtype) if padding_idx is not None else sizes[:0], sizes, sizes.clone()
    kept = ops.ones_like(indices) if padding_idx is None else (indices != padding_idx % weight.size(0)).to(indices.dtype)
    sizes = sizes.index_add(0, bag, kept)
    if mode == "mean":
        return bag.to(indices.dtype), sizes, sizes.clone()
    rows = ops.zeros(bags, weight.size(1), dtype=indices.dtype, device=indices.device)
    for b in range(bags):  # rare: only who asks torch.embedding_bag itself gets here
        own = indices[(bag == b) & (kept != 0)]
        if own.numel():
            rows[b] = own[weight.detach()[own].argmax(0)]
    return bag.to(indices.dtype), sizes, rows


def _reduce(rows, bag, bags, weight, mode, per_sample_weights, padding_idx, options):
    scale = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    if padding_idx is not None:
        kept = rows != (padding_idx + weight.size(0) if padding_idx < 0 else padding_idx)
        rows, bag = rows[kept], bag[kept]
        scale = None if scale is None else scale[kept]
    max_norm, _, by_frequency = options
    plain = mode != "max" and scale is None and max_norm is None and not by_frequency
    if plain and weight.dim() == 2 and rows.numel() * weight.size(1) > lookup.BLOCK:  # few rows are added faster at once
        total = lookup.row_sums(weight, rows, bag, bags)  # [B, D]
    else:
        values = embedding(rows, weight, None, *options)  # [N, D]
        if scale is not None:
            values = values * scale.unsqueeze(1)
        zeros = ops.zeros(bags, weight.size(1), dtype=weight.dtype, device=weight.device)
        if mode == "max":
            index = bag.unsqueeze(1).expand_as(values)
            return zeros.scatter_reduce(0, index, values, "amax", include_self=False)  # [B, D]
        total = zeros.index_add(0, bag, values)  # [B, D]
    if mode == "sum":
        return total
    counts = ops.zeros(bags, dtype=weight.dtype, device=weight.device).index_add(0, bag, ops.ones(rows.numel(), dtype=weight.dtype, device=weight.device))
    return total / counts.clamp(min=1).unsqueeze(1)
