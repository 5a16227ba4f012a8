"""Products with a block tensor: x @ W.T and linear straight from the blocks; other products by stretches of rows, whose scratch is bounded."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ... import errors
from ...autograd import backward, record, tracking
from ...block_tensor import BlockTensor, NoSpec
from ...dispatch import PlanCache, launch_tensor, run
from ...kernels.block_casts import FLOATS
from ...kernels.block_products import build_product, serves
from ...layout import Layout
from ...tensor import Spec, Tensor, empty
from ..table import TABLE
from .convert import dequantize_blocks

_PLANS = PlanCache()
SCRATCH = 1 << 19  # elements of a block tensor that are ordinary numbers at one time, at most


@backward("BlockLinear")
def BlockLinearBackward0(node, g):
    """Of x [*, k] @ W [n, k]^T + bias: blocks take no gradient."""
    into_x = times(g.reshape(-1, g.shape[-1]), node.weight).reshape(node.shape) if node.needs[0] else None
    return (into_x, *([g.reshape(-1, g.shape[-1]).sum(0)] if len(node.needs) > 1 else []))


class Plan(NamedTuple):
    """A product's descriptor and result, for operands that a kernel reads where they are."""

    desc: bytes
    spec: Spec


def linear_of_blocks(input, weight, bias=None) -> Tensor:
    """input [*, k] @ weight [n, k]^T + bias [n], with weight (and nothing else) a block tensor. Sums are float32, rounded once to input's dtype."""
    key = None
    if isinstance(weight, BlockTensor) and not weight.turned and isinstance(input, Tensor) and not isinstance(input, BlockTensor):
        seen, _, slots = weight.seen()
        key = input.spec, None if bias is None else bias.spec, seen
        plan = _PLANS.get(key)
        if plan is not None:
            out = launch_tensor(plan.desc, plan.spec, input.ptr, *slots, input.ptr if bias is None else bias.ptr)
            return _recorded(input, weight, bias, out)
    _check(input, weight, bias)
    if weight.turned:  # its blocks lie along the rows of the product
        out = times(input.reshape(-1, input.shape[-1]), weight.t()).reshape(*input.shape[:-1], weight.shape[0])
        return out if bias is None else out + bias
    return _recorded(input, weight, bias, _product(input, weight, bias, key))


def _recorded(input: Tensor, weight: BlockTensor, bias, out: Tensor) -> Tensor:
    inputs = (input,) if bias is None else (input, bias)
    if tracking(*inputs):
        record(BlockLinearBackward0, inputs, out, shape=input.shape, weight=weight)
    return out


def _check(input, weight, bias) -> None:
    if not isinstance(weight, BlockTensor) or isinstance(input, BlockTensor) or isinstance(bias, BlockTensor) or not isinstance(input, Tensor):
        blocks = next(t for t in (input, bias, weight) if isinstance(t, BlockTensor))
        if not isinstance(input, Tensor):
            raise TypeError(f"linear(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        raise NoSpec(blocks.format)  # only the weight may be one
    if weight.ndim != 2:
        raise RuntimeError(f"linear(): weight must be [out, in], got shape {list(weight.shape)}\n  Of a block tensor of more dimensions take one matrix, as in weight[0].")
    if input.ndim == 0 or input.shape[-1] != weight.shape[1]:
        raise errors.matmul_mismatch(input.shape, (weight.shape[1], weight.shape[0]), ("input", "weight.T"))
    if not weight.turned and input.dtype.name not in FLOATS:
        raise RuntimeError(f"expected input of float32, bfloat16 or float16 beside a weight of {weight.dtype}, but got {input.dtype}\n  Convert it first, as in x.float().")
    if bias is not None and (bias.ndim > 1 or bias.numel() not in (1, weight.shape[0]) or bias.dtype.name not in FLOATS):
        raise RuntimeError(f"linear(): bias must be [out] = [{weight.shape[0]}] of float32, bfloat16 or float16, got {bias.dtype} {list(bias.shape)}")


def _product(input: Tensor, weight: BlockTensor, bias: Tensor | None, plan_key) -> Tensor:
    n, k = weight.shape
    shape, rows = (*input.shape[:-1], n), prod(input.shape[:-1])
    spec = Spec.of(Layout.contiguous(shape), input.dtype, input.device if input.is_meta else weight.device)
    if spec.is_meta or not spec.numel:
        return empty(shape, spec.dtype, spec.device)
    given = None if bias is None else bias.detach().expand(n).contiguous()
    x = input.detach().reshape(rows, k)  # [m, k]
    if x.stride(1) != 1 and k > 1:
        x = x.contiguous()
    if not serves(rows, k):
        return _by_stretches(x, weight, given).reshape(shape)
    _, _, strides, _ = weight.walk()
    desc = build_product(weight.format.kernel, x.dtype, None if bias is None else bias.dtype, rows, n, k, x.stride(0) * x.itemsize, weight.format.block, strides, spec.nbytes)
    if x.ptr == input.ptr and (bias is None or given.ptr == bias.ptr):  # nothing had to be copied: the next call can go straight
        _PLANS.put(plan_key, Plan(desc, spec))
    return run(desc, spec, x.ptr, *weight.seen()[2], x.ptr if given is None else given.ptr)


def _stretches(weight: BlockTensor):
    """(first row, rows as ordinary numbers) of some rows of a matrix [n, k] at a time."""
    step = max(16, SCRATCH // max(weight.shape[1], 1))
    for start in range(0, weight.shape[0], step):
        yield start, weight[start : start + step]


def _by_stretches(x: Tensor, weight: BlockTensor, bias: Tensor | None) -> Tensor:
    """Many rows: the packed product does better than decoding again for each few of them."""
    out = empty((x.shape[0], weight.shape[0]), x.dtype, x.device)
    for start, rows in _stretches(weight):
        numbers = dequantize_blocks(rows, x.dtype)
        out[:, start : start + rows.shape[0]] = x @ numbers.transpose(0, 1)
    return out if bias is None else out.add_(bias)


def times(x: Tensor, weight: BlockTensor) -> Tensor:
    """x [m, n] @ weight [n, k] -> [m, k], by stretches of weight's rows."""
    total = None
    for start, rows in _stretches(weight):
        piece = x[:, start : start + rows.shape[0]] @ dequantize_blocks(rows, x.dtype)
        total = piece if total is None else total + piece
    return x.new_zeros((x.shape[0], weight.shape[1])) if total is None else total


def matmul_of_blocks(a, b) -> Tensor:
    """a @ b where one of them is a block tensor of two dimensions."""
    blocks = b if isinstance(b, BlockTensor) else a
    other = a if blocks is b else b
    if isinstance(other, BlockTensor):
        raise NoSpec(other.format)
    if not isinstance(other, Tensor):
        raise TypeError(f"matmul(): argument '{'input' if other is a else 'other'}' must be Tensor, not {type(other).__name__}")
    if blocks.ndim != 2:
        raise NotImplementedError(f"matmul: block tensors are multiplied as matrices, and this one is {list(blocks.shape)}\n  Take one matrix, as in w[0], or write w.dequantize().")
    if other.ndim == 0 or (a.shape[-1] != b.shape[-2 if b.ndim > 1 else -1]):
        raise errors.matmul_mismatch(a.shape, b.shape)
    if blocks is b:
        return linear_of_blocks(a, b.t())  # [*, m, k] @ [k, n]
    if other.ndim == 1:
        return linear_of_blocks(other, a)  # [m, k] @ [k]
    return linear_of_blocks(other.transpose(-2, -1), a).transpose(-2, -1)  # ([*, n, k] @ [m, k]^T)^T


def cat_blocks(tensors, dim: int) -> BlockTensor:
    """Block tensors of one format joined along any dimension but the last (or along it where every block is full)."""
    first = tensors[0]
    for t in tensors:
        if not isinstance(t, BlockTensor) or t.format != first.format or t.turned:
            kind = f"{t.dtype}{' transposed' if getattr(t, 'turned', False) else ''}" if isinstance(t, Tensor) else type(t).__name__
            raise NotImplementedError(f"cat: block tensors are joined with block tensors of their own format, {first.dtype}, not with {kind}\n  Quantize it, or dequantize() the others.")
        if t.tensor_scale is not None and t.tensor_scale.item() != first.tensor_scale.item():
            raise NotImplementedError("cat: these block tensors have different tensor scales\n  Quantize them with one tensor_scale=, or dequantize() them.")
    d = dim + first.ndim if dim < 0 else dim
    if not 0 <= d < first.ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-first.ndim}, {first.ndim - 1}], but got {dim})")
    if d == first.ndim - 1 and any(t.shape[-1] % first.format.block for t in tensors[:-1]):
        raise NotImplementedError(f"cat along the last dimension: every tensor but the last one ends between blocks of {first.format.block} here\n  dequantize() them first.")
    parts = [TABLE["cat"].call([t.parts[p] for t in tensors], d) for p in range(len(first.parts))]
    stored = list(first.shape)
    stored[d] = sum(t.shape[d] for t in tensors)
    return first._with(parts, stored)


def embedding_of_blocks(indices, weight: BlockTensor) -> Tensor:
    """Rows of weight [V, D] named by `indices`, as float32: only these are decoded. [*], [V, D] -> [*, D]"""
    if weight.turned:
        return weight.spec  # raises
    if not isinstance(weight, BlockTensor) or weight.turned:
        raise NoSpec((weight if isinstance(weight, BlockTensor) else indices).format)
    parts = [TABLE["embedding"].call(indices, part.flatten(1)).reshape(*indices.shape, *part.shape[1:]) for part in weight.parts]
    return dequantize_blocks(weight._with(parts, (*indices.shape, weight.shape[1])))


