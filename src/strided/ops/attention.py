"""Scaled dot-product attention: softmax(query @ key^T * scale + mask) @ value.

Holds the operator, its checks and its gradient. Where the fused kernel (kernels/attention.py) does not apply, the same is computed by operators.
"""
from __future__ import annotations

import math

from .. import errors
from ..autograd import backward, no_grad, record, tracking
from ..dispatch import PlanCache, launch
from ..dispatch import run as run_plan
from ..kernels import attention as fused
from ..kernels.attention_text import kept
from ..kernels.native import new_storage
from ..layout import Layout, broadcast_shapes, result_strides
from ..tensor import Spec, empty, empty_of, wrap
from .dropping import drop
from .elementwise import sum_to
from .matmul import _tensors, matmul
from .onlooking import seen_as
from .table import TABLE, operator

# ---- checks ---------------------------------------------------------------------------------------------------------------


def _check(query, key, value, attn_mask, enable_gqa) -> None:
    _tensors("scaled_dot_product_attention", query=query, key=key, value=value)
    if not query.dtype is key.dtype is value.dtype:
        names = [errors.c_name(t.dtype) for t in (query, key, value)]
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {names[0]} key.dtype: {names[1]} and value.dtype: {names[2]} instead.\n"
            f"  Convert them to one dtype, as in key.to({query.dtype})."
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} instead.\n"
            f"  query [*, L, E], key [*, S, E], value [*, S, Ev] are needed."
        )
    if query.shape[-1] != key.shape[-1]:
        raise errors.matmul_mismatch(query.shape, key.transpose(-2, -1).shape, ("query", "key^T"))
    if key.shape[-2] != value.shape[-2]:
        raise errors.matmul_mismatch((*query.shape[:-1], key.shape[-2]), value.shape, ("weights", "value"))
    if attn_mask is not None:
        if str(attn_mask.dtype) != "torch.bool" and attn_mask.dtype is not query.dtype and attn_mask.dtype.name != "float32":
            names = errors.c_name(attn_mask.dtype), errors.c_name(query.dtype)
            raise RuntimeError(
                f"Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {names[0]} and  query.dtype: {names[1]} instead.\n"
                f"  A boolean mask is True where attention may go; a floating one is added to the scores."
            )
        broadcast_shapes((*query.shape[:-1], key.shape[-2]), attn_mask.shape)
    if enable_gqa and (query.ndim < 3 or key.shape[-3] != value.shape[-3] or key.shape[-3] == 0 or query.shape[-3] % key.shape[-3]):
        raise RuntimeError(
            "Number of heads in key and value must divide the number of heads in query\n"
            f"  query: {list(query.shape)}\n  key:   {list(key.shape)}\n  value: {list(value.shape)}   heads are the third size from the right"
        )


# ---- by operators ---------------------------------------------------------------------------------------------------------


def _group_heads(query, key, value, mask):
    """Query heads that share a key head become a dimension of their own, over which key and value broadcast: no copy is made of either."""
    groups = key.shape[-3]
    each = query.shape[-3] // groups
    if mask is not None and mask.ndim > 2:
        mask = mask.unsqueeze(-3) if mask.shape[-3] == 1 else mask.unflatten(-3, (groups, each))
    return query.unflatten(-3, (groups, each)), key.unsqueeze(-3), value.unsqueeze(-3), mask  # q [*, G, H/G, L, E], k [*, G, 1, S, E]


def _weights(query, key, mask, is_causal, scale, shared=False):
    """softmax(query @ key^T * scale + mask): [*, L, S]. Rows that may look nowhere are zeros.

    shared: each operand takes the root of the scale beforehand, as in PyTorch's formula.
    """
    if shared and scale > 0:
        query, key, scale = query * math.sqrt(scale), key * math.sqrt(scale), 1.0
    scores = matmul(query, key.transpose(-2, -1))  # [*, L, S]
    if scale != 1.0:
        scores = scores * scale  # afterwards, as the fused kernel does: the gradient's weights are then the result's
    blocked = None
    if is_causal:
        rows, columns = scores.shape[-2:]
        blocked = TABLE["ones"].call(rows, columns, dtype=_bool(), device=scores.device).triu(1)
        scores = scores.masked_fill(blocked, -math.inf)
    if mask is not None:
        if str(mask.dtype) == "torch.bool":
            blocked = mask.logical_not()
            scores = scores.masked_fill(blocked, -math.inf)
        else:
            blocked = mask
            scores = scores + mask.to(scores.dtype)
        nowhere = (scores.detach() == -math.inf).all(-1, keepdim=True)
        return TABLE["softmax"].call(scores, -1).masked_fill(nowhere, 0.0)
    return TABLE["softmax"].call(scores, -1)


def _bool():
    from ..dtypes import bool_

    return bool_


def _wide(*tensors):
    """16-bit operands as float32: the steps between two products must not be rounded to 16 bits."""
    return tuple(t if t is None or t.dtype.itemsize > 2 else t.float() for t in tensors)


def _attend(query, key, value, mask, is_causal, scale, dropout_p=0.0):
    dtype = query.dtype
    query, key, value = _wide(query, key, value)
    weights = _weights(query, key, mask, is_causal, scale, shared=True)
    if dropout_p > 0.0:
        weights = drop(weights, dropout_p) if dropout_p < 1 else weights * 0
    result = matmul(weights, value)  # [*, L, Ev]
    return result if result.dtype is dtype else result.to(dtype)


# ---- fused ----------------------------------------------------------------------------------------------------------------

_PLANS = PlanCache()
_CHECKED = PlanCache()  # kinds of operands that passed the checks
FEW, MANY = 12, 64  # of fewer query rows, each of so many keys is multiplied where it is read
FEW_OF_16_BITS = 28  # and of keys that other kernels would first have to pack
SHARED = 32  # query rows that meet the same keys at once, the heads that share them included
SMALL = 4096  # scores a matrix up to which a recorded call of fewer than four dimensions is written out in operators, as PyTorch does with all of them


def _fused(query, key, value, mask, is_causal, scale, keep):
    """The result from one kernel, or None where it does not apply; and, to keep for the gradients, what the kernel says of each row."""
    identity = (query.spec, key.spec, value.spec, None if mask is None else mask.spec, is_causal, keep)
    plan = _PLANS.get(identity)
    if plan is None:
        plan = _PLANS.put(identity, _fused_plan(*identity))
    desc, spec, few = plan
    if spec is None:
        return None, None
    slots = (query.ptr, key.ptr, value.ptr) if mask is None else (query.ptr, key.ptr, value.ptr, mask.ptr)
    if few is not None or desc is None:
        if desc is not None and few[0] is not None:  # parts of the keys, then those together
            parts = new_storage(few[1])
            launch(desc, parts.data, *slots, scale)
            return run_plan(few[0], spec, parts.data), None
        return run_plan(desc, spec, *slots, scale), None
    statistics = None
    if keep:
        apart = kept("" if mask is None else mask.dtype.name)
        statistics = empty(spec.shape[:-1] if apart == 1 else (apart, *spec.shape[:-1]), query.dtype.compute, query.device)
    return run_plan(desc, spec, *slots, 0 if statistics is None else statistics.ptr, scale), statistics


def _kernel_applies(query, key, mask) -> bool:
    rows, keys = query.shape[-2], key.shape[-2]
    return _has_kernel(query, mask) and (rows >= FEW or keys < MANY) and keys > 0


def _has_kernel(query, mask) -> bool:
    return query.dtype.name in fused.DTYPES and (mask is None or mask.dtype.name in fused.MASKS)


def _few_apply(query, key, value, mask, keep) -> bool:
    """Whether a few rows meet many keys that lie as they are read. keep: the fused gradients, if any, want more of the result than that kernel keeps."""
    few = FEW if keep or query.dtype.itemsize > 2 else FEW_OF_16_BITS
    return _has_kernel(query, mask) and 0 < query.shape[-2] < few and key.shape[-2] >= MANY and key.strides[-1] == 1 and value.strides[-1] == 1


def _batch_shape(query, key, value, mask) -> tuple:
    return tuple(broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2], *([mask.shape[:-2]] if mask is not None else [])))


def _like(spec, shape) -> Layout:
    """The layout of a result of `shape`: dimensions in the order in which `spec` has them, if it has the shape."""
    return result_strides(shape, spec.layout) if tuple(spec.shape) == tuple(shape) else Layout.contiguous(shape)


def _fused_plan(query, key, value, mask, is_causal, keep):
    """(descriptor, result's spec, for few rows what `build_attention_few` says of parts); (None, None, None) where the kernel does not apply."""
    dtype, rows, keys = query.dtype, query.shape[-2], key.shape[-2]
    few = _few_apply(query, key, value, mask, keep)
    if not few and not _kernel_applies(query, key, mask):
        return None, None, None
    batch = _batch_shape(query, key, value, mask)
    layout = _like(query, (*batch, rows, value.shape[-1]))  # as PyTorch's, so that joining the heads again needs no copy
    spec = Spec.of(layout, dtype, query.device)
    if query.is_meta:
        return None, spec, None
    expand = lambda s, *last: (s.dtype, s.layout.expand((*batch, *last)))
    operands = expand(query, rows, query.shape[-1]), expand(key, keys, key.shape[-1]), expand(value, keys, value.shape[-1])
    masked = None if mask is None else expand(mask, rows, keys)
    if few:
        # [*, H, L, E] over [*, S, E]: heads that share a key head are rows beside each other; without any, H is 1
        share = len(batch) > 0 and all(s.ndim < 3 or s.shape[-3] == 1 for s in (key, value)) and batch[-1] * rows <= SHARED
        by_head = lambda pair: pair if pair is None or share else (pair[0], pair[1].unsqueeze(pair[1].ndim - 2))
        by_key = lambda pair: (pair[0], pair[1].select(pair[1].ndim - 3, 0)[0]) if share else pair
        q, k, v = operands
        few_operands = by_head((dtype, layout)), by_head(q), by_key(k), by_key(v), by_head(masked)
        desc, *parts = fused.build_attention_few(*few_operands, causal=is_causal, result_bytes=spec.nbytes)
        return desc, spec, parts
    return fused.build_attention((dtype, layout), *operands, masked, causal=is_causal, result_bytes=spec.nbytes), spec, None


# ---- the operator ---------------------------------------------------------------------------------------------------------


_GRADIENT_PLANS = PlanCache()


def _back_flops(node, g) -> int:
    """As if written out: the products for the weights, twice, and one for each input; 5 for each score. What the kernel computes again is not counted."""
    query, key = node.saved[:2]
    scores = g.numel() // max(g.shape[-1], 1) * key.shape[-2]
    return scores * (4 * (query.shape[-1] + g.shape[-1]) + 5)


@backward("ScaledDotProductFlashAttentionForCpu", saved_names=("query", "key", "value", "attn_mask", "statistics", "output"))
@seen_as("scaled_dot_product_attention_backward", _back_flops)
def ScaledDotProductFlashAttentionForCpuBackward0(node, g):
    """The weights are computed again instead of kept: by the fused kernel a block of rows at a time, else in operators, which hold them while this runs."""
    query, key, value, mask, statistics, out = node.saved
    dtype = query.dtype
    if statistics is not None and not tracking(query, key, value, g):  # a gradient of this gradient needs the steps
        if out is None:
            out, _ = _fused(query, key, value, mask, node.is_causal, node.scale, False)
        apart = _apart(query, key, value)
        identity = (query.spec, key.spec, value.spec, g.spec, out.spec, None if mask is None else mask.spec, node.is_causal, apart)
        plan = _GRADIENT_PLANS.get(identity) or _GRADIENT_PLANS.put(identity, _gradient_plan(*identity))
        gradients = _fused_gradients(plan, (query, key, value, g, out), mask, statistics, node.scale)
        if plan[-1]:
            return tuple(gradients)
    else:
        gradients = _gradients(node, *_wide(query, key, value, g), mask)
    gradients = [d if d is None else sum_to(d, t.shape) for d, t in zip(gradients, (query, key, value))]
    return tuple(d if d is None or d.dtype is dtype else d.to(dtype) for d in gradients)


def _gradients(node, query, key, value, g, mask):
    """Of query, key and value, those that are wanted, with every batch dimension."""
    weights = _weights(query, key, mask, node.is_causal, node.scale)  # [*, L, S]
    d_query = d_key = d_value = None
    if node.needs[2]:
        d_value = matmul(weights.transpose(-2, -1), g)
    if node.needs[0] or node.needs[1]:
        d_weights = matmul(g, value.transpose(-2, -1))  # [*, L, S]
        # The sum could be had from g · result without these weights; of the very weights that are used here it is exacter.
        d_scores = weights * (d_weights - (weights * d_weights).sum(-1, keepdim=True))
        if node.needs[0]:
            d_query = matmul(d_scores, key) * node.scale
        if node.needs[1]:
            d_key = matmul(d_scores.transpose(-2, -1), query) * node.scale
    return d_query, d_key, d_value


def _apart(query, key, value) -> int:
    """How many bytes query, key and value are apart where they are windows side by side, as the split result of one layer is; else 0."""
    if query.mem is not value.mem or query.mem is not key.mem or query.spec is not key.spec or query.spec is not value.spec:
        return 0
    apart = key.ptr - query.ptr
    return apart if apart > 0 and value.ptr - key.ptr == apart else 0


def _gradient_plan(query, key, value, g, out, mask, is_causal, apart):
    """(descriptor, that of the sums of parts or None, scratch bytes, the three gradients' specs, bytes that they are apart or 0, whether they are final)."""
    batch = _batch_shape(query, key, value, mask)
    rows, keys = query.shape[-2], key.shape[-2]
    operands = [(s.dtype, s.layout.expand((*batch, *s.shape[-2:]))) for s in (query, key, value, g, out)]
    masked = None if mask is None else (mask.dtype, mask.layout.expand((*batch, rows, keys)))
    # What is summed over broadcast dimensions afterwards must not be rounded to 16 bits before.
    whole = all(tuple(s.shape[:-2]) == batch for s in (query, key, value))
    dtype = query.dtype if whole else query.dtype.compute
    step = apart // query.itemsize
    if not (whole and apart == step * query.itemsize and Layout.of((3, *query.shape), (step, *query.strides)).is_dense):
        apart = 0
    specs = [s if apart else Spec.of(_like(s, (*batch, *s.shape[-2:])), dtype, query.device) for s in (query, key, value)]
    return *fused.build_attention_grad([(dtype, s.layout) for s in specs], *operands, masked, causal=is_causal), specs, apart, whole


def _fused_gradients(plan, operands, mask, statistics, scale):
    desc, sums, scratch, specs, apart, _ = plan
    if apart:  # windows of one memory, as the operands are: put together, they are there already
        memory = new_storage(3 * specs[0].numel * specs[0].itemsize)
        results = [wrap(spec, memory, memory.data + n * apart) for n, spec in enumerate(specs)]
    else:
        results = [empty_of(spec) for spec in specs]
    room = new_storage(scratch)
    slots = [t.ptr for t in (*results, *operands)]
    if mask is not None:
        slots.append(mask.ptr)
    launch(desc, *slots, statistics.ptr, room.data, scale)
    if sums is not None:
        launch(sums, results[0].ptr, room.data, scale)
    return results


def _attention_flops(args, kwargs, result) -> int:
    """Of B·H matrices of L queries and S keys, as if written out in operators.

    Two products, 2·B·H·L·S·(E + Ev), and for each of the B·H·L·S scores the scale (1) and the softmax (4); one more for a floating mask that is added,
    one more for dropout. Scores that a causal or boolean mask hides are counted: written out, they are computed, too.
    """
    query, key, _, mask, dropout_p = (*args, *(None, 0.0)[len(args) - 3 :])[:5]
    scores = result.numel() // max(result.shape[-1], 1) * key.shape[-2]
    each = 5 + (mask is not None and mask.dtype.is_floating_point) + (dropout_p > 0.0)
    return scores * (2 * (query.shape[-1] + result.shape[-1]) + each)


@operator("scaled_dot_product_attention", method=False, namespace="nn.functional", autocast="lower", flops=_attention_flops)
def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """softmax(query @ key^T * scale + mask) @ value: [*, L, E], [*, S, E], [*, S, Ev] -> [*, L, Ev].

    attn_mask: bool (True where attention may go) or floating (added to the scores), broadcast to [*, L, S]. is_causal: row i sees columns 0..i.
    scale: 1/sqrt(E) by default. enable_gqa: groups of query heads share one key and value head. A row that may look nowhere gives zeros.
    """
    try:
        kinds = query.spec, key.spec, value.spec, None if attn_mask is None else attn_mask.spec, enable_gqa
    except AttributeError:
        kinds = None
    if kinds not in _CHECKED:
        _check(query, key, value, attn_mask, enable_gqa)
        _CHECKED.put(kinds, True)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    grouped = enable_gqa and query.shape[-3] != key.shape[-3]
    shape = None
    if grouped:
        shape = (*query.shape[:-1], value.shape[-1])
        query, key, value, attn_mask = _group_heads(query, key, value, attn_mask)
    small = query.ndim < 4 and query.shape[-2] * key.shape[-2] <= SMALL and tracking(query, key, value)  # the weights are worth keeping
    if dropout_p > 0.0 or small or (attn_mask is not None and tracking(attn_mask)):
        out = _attend(query, key, value, attn_mask, is_causal, scale, dropout_p)
    else:
        keep = tracking(query, key, value)
        out, statistics = _fused(query, key, value, attn_mask, is_causal, scale, keep)
        if out is None:
            with no_grad():
                out = _attend(query, key, value, attn_mask, is_causal, scale)
        if keep:
            # A mask that is written in between is noticed; so is a result, where PyTorch's fused attention keeps it, too.
            saves = query, key, value, attn_mask, statistics, out if statistics is not None and query.ndim >= 4 else None
            record(ScaledDotProductFlashAttentionForCpuBackward0, (query, key, value), out, saves, is_causal=is_causal, scale=scale)
    return out if shape is None else out.reshape(shape)
