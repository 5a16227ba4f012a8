"""Rules of matrix products, convolutions and their kind, and cross_entropy: batches are put where these operators have one themselves."""
from __future__ import annotations

import math

from .. import tree
from ..ops.table import TABLE
from ..tensor import Tensor
from .arguments import bound
from .samples import batched, is_of, rule


@rule("matmul mm mv dot bmm inner vdot")
def product(func, args, kwargs, level):
    """Matrix products by matmul, which has batches: vectors get the dimension that they lack."""
    a, b = args[:2]
    if len(args) > 2 or kwargs:
        return NotImplemented
    x = a.value if is_of(a, level) else a
    y = b.value if is_of(b, level) else b
    ranks = a.ndim, b.ndim
    if 0 in ranks or func.__name__ != "matmul" and ranks != {"mm": (2, 2), "mv": (2, 1), "dot": (1, 1), "bmm": (3, 3), "inner": (1, 1), "vdot": (1, 1)}.get(func.__name__):
        return NotImplemented
    if func.__name__ == "vdot" and a.is_complex():
        return NotImplemented
    rank = max(2, *ranks)
    if ranks[0] == 1:
        x = x.unsqueeze(-2)  # [B, 1, k]
    if ranks[1] == 1:
        y = y.unsqueeze(-1)  # [B, k, 1]
    if is_of(a, level) and max(ranks[0], 2) < rank:
        x = x.view(x.shape[0], *[1] * (rank - max(ranks[0], 2)), *x.shape[1:])
    if is_of(b, level) and max(ranks[1], 2) < rank:
        y = y.view(y.shape[0], *[1] * (rank - max(ranks[1], 2)), *y.shape[1:])
    out = TABLE["matmul"].call(x, y)
    if ranks[1] == 1:
        out = out.squeeze(-1)
    if ranks[0] == 1:
        out = out.squeeze(-1 if ranks[1] == 1 else -2)
    return batched(out, level)


@rule("linear")
def linear(func, args, kwargs, level):
    found = bound(func, args, kwargs)
    if found is None:
        return NotImplemented
    x, weight, bias = found["input"], found["weight"], found.get("bias")
    if not is_of(weight, level) and not is_of(bias, level):
        return batched(func(x.value, weight, bias), level) if x.ndim else NotImplemented
    out = TABLE["matmul"].call(x, TABLE["transpose"].call(weight, -1, -2) if weight.ndim > 1 else weight)
    return out if bias is None else out + bias


@rule("einsum")
def einsum(func, args, kwargs, level):
    equation, *tensors = args
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = list(tensors[0])
    if not isinstance(equation, str) or "..." in equation or "->" not in equation:
        return NotImplemented
    inputs, _, output = equation.replace(" ", "").partition("->")
    letter = next((c for c in "ZYXWVUTSRQPONMLKJIHGFEDCBA" if c not in equation), None)
    if letter is None:
        return NotImplemented
    terms = [(letter if is_of(t, level) else "") + term for t, term in zip(tensors, inputs.split(","))]
    return batched(func(f"{','.join(terms)}->{letter}{output}", *[t.value if is_of(t, level) else t for t in tensors]), level)


@rule("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool2d")
def merged(func, args, kwargs, level):
    """Convolutions and their kind, whose input has a batch of its own: both as one, the weights being the same for all samples."""
    x, *others = args
    if not is_of(x, level) or any(is_of(leaf, level) for leaf in tree.flatten((others, kwargs))):
        return NotImplemented
    n = {"1": 3, "2": 4, "3": 5}.get(next((c for c in func.__name__ if c in "123"), ""), 4)
    if x.ndim not in (n - 1, n):
        return NotImplemented
    value = x.value if x.ndim == n - 1 else x.value.flatten(0, 1)  # [B * N, C, *]
    result = func(value, *others, **kwargs)
    back = lambda t: batched(t if x.ndim == n - 1 else t.unflatten(0, x.value.shape[:2]), level)
    return back(result) if isinstance(result, Tensor) else type(result)(map(back, result))


@rule("cross_entropy")
def cross_entropy(func, args, kwargs, level):
    """Rows of all samples as one matrix, [B, C] or [B * N, C], each sample's losses joined afterwards."""
    found = bound(func, args, kwargs)
    if found is None or not {"input", "target", "reduction", "ignore_index"}.issuperset(found):
        return NotImplemented
    x, target, reduction, ignored = found["input"], found["target"], found.get("reduction", "mean"), found.get("ignore_index", -100)
    if not is_of(x, level) or x.ndim not in (1, 2) or target.ndim != x.ndim - 1 or reduction not in ("mean", "sum", "none"):
        return NotImplemented
    size = x.value.shape[0]
    rows = target.value if is_of(target, level) else target.expand(size, *target.shape)  # [B] or [B, N]
    each = func(x.value.reshape(-1, x.shape[-1]), rows.reshape(-1), reduction="none", ignore_index=ignored).view(rows.shape)
    if reduction == "none" or x.ndim == 1:
        return batched(each, level) if reduction != "mean" or x.ndim == 2 else batched(TABLE["where"].call(rows != ignored, each, math.nan), level)
    total = each.sum(1)
    return batched(total if reduction == "sum" else total / (rows != ignored).sum(1), level)
