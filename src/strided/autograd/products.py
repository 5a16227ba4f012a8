"""Products of matrices inside operators, by the names and with the counts that PyTorch's profiler and FLOP counter give them.

`products(entry, args, kwargs, result)` says which an operator's call is made of. A multiply and an add count 1 each; nothing but products counts.
What all of an operator's arithmetic costs is its entry's own `flops`.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from strided.block_tensor import BlockTensor
from strided.tensor import Tensor

Found = list[tuple[str, int]]


def matmul_flops(a: Sequence[int], b: Sequence[int]) -> int:
    """Of [*, m, k] by [*, k, n], where the batch dimensions are the result's."""
    return 2 * math.prod(a) * b[-1]


def convolution_flops(x: Sequence[int], weight: Sequence[int], out: Sequence[int], transposed: bool = False) -> int:
    """Of [N, C, S..] with [F, C/groups, K..] → [N, F, O..]; transposed: every input element meets the whole window."""
    return 2 * x[0] * math.prod((x if transposed else out)[2:]) * math.prod(weight)


def convolution_backward_flops(grad: Sequence[int], x: Sequence[int], weight: Sequence[int], out_mask: Sequence[bool], transposed: bool = False) -> int:
    """Of the gradients that out_mask asks for (input, weight). As in PyTorch the weight's counts every pair of channels, whatever the groups."""
    total = 0
    if out_mask[0]:
        total += convolution_flops(grad, weight, x, not transposed)
    if out_mask[1]:
        windows = math.prod(weight[2:])
        total += 2 * x[0] * x[1] * grad[1] * windows * math.prod((x if transposed else grad)[2:])
    return total


def attention_flops(query: Sequence[int], key: Sequence[int], value: Sequence[int]) -> int:
    """Of the two products in attention: [*, L, E] by [*, S, E], and the weights by [*, S, V]."""
    return 2 * math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def attention_backward_flops(query: Sequence[int], key: Sequence[int], value: Sequence[int]) -> int:
    """Of the five products in a fused attention's gradient, which computes the scores again."""
    return 2 * math.prod(query[:-1]) * key[-2] * (3 * query[-1] + 2 * value[-1])


def _linear(args: tuple, kwargs: dict, result: Tensor) -> Found:
    x, weight = args[0], args[1]
    bias = args[2] if len(args) > 2 else None
    return [("addmm" if bias is not None else "mm", 2 * math.prod(x.shape) * weight.shape[0])]


def _product(args: tuple, kwargs: dict, result: Tensor) -> Found:
    a, b = args[0], args[1]
    if a.ndim < 2 or b.ndim < 2:
        return [("dot" if a.ndim == b.ndim else "mv", 2 * result.numel() * a.shape[-1])]
    return [("bmm" if a.ndim > 2 and b.ndim > 2 else "mm", 2 * result.numel() * a.shape[-1])]


def _added(name: str) -> Callable[..., Found]:
    return lambda args, kwargs, result: [(name, 2 * result.numel() * args[1].shape[-1])]


def _transposed(args: tuple, kwargs: dict, result: Tensor) -> Found:
    return [("convolution", convolution_flops(args[0].shape if args[0].ndim == result.ndim else (1, *args[0].shape), args[1].shape, result.shape, True))]


def _convolved(args: tuple, kwargs: dict, result: Tensor) -> Found:
    if len(args) > 6 and args[6] is True:  # the operator under all of them
        return _transposed(args, kwargs, result)
    out = result.shape if result.ndim == args[1].ndim else (1, *result.shape)
    return [("convolution", convolution_flops((out[0],), args[1].shape, out))]


def _convolved_backward(args: tuple, kwargs: dict, result: Any) -> Found:
    node, grad = args
    x, weight = node.saved
    return [("convolution_backward", convolution_backward_flops(grad.shape, x.shape, weight.shape, node.needs, node.transposed))]


FUSED_ATTENTION = "_scaled_dot_product_flash_attention"


def _attention(args: tuple, kwargs: dict, result: Tensor) -> Found:
    query, key, value = (args[i].shape for i in range(3))
    query = (*result.shape[:-1], query[-1])  # batch dimensions that were broadcast
    dropped = args[4] if len(args) > 4 else kwargs.get("dropout_p", 0)
    return [(FUSED_ATTENTION if len(query) == 4 and not dropped else "bmm", attention_flops(query, key, value))]


def _attention_backward(args: tuple, kwargs: dict, result: Any) -> Found:
    node, grad = args[0], args[1]
    query, key, value = (node.saved[i].shape for i in range(3))
    query = (*grad.shape[:-1], query[-1])
    if len(query) == 4:
        return [(FUSED_ATTENTION + "_backward", attention_backward_flops(query, key, value))]
    return [("bmm", 2 * attention_flops(query, key, value))]


def _steps(args: tuple, kwargs: dict, result: Any) -> Found:
    """A recurrent layer: at every step the state by the weights of all gates."""
    x_gates, state = args[0], args[1]  # [T, B, gates·H], [B, H]
    return [("addmm", 2 * math.prod(x_gates.shape) * state.shape[-1])]


def _steps_backward(args: tuple, kwargs: dict, result: Any) -> Found:
    x_gates, state = args[0].saved[:2]
    once = 2 * math.prod(x_gates.shape) * state.shape[-1]
    return [("mm", 2 * once - (0 if args[0].needs[1] else once // max(x_gates.shape[0], 1)))]  # what leads to the first state only


_KNOWN: dict[str, Callable[[tuple, dict, Any], Found]] = {
    "linear": _linear, **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot"), _product), "addmm": _added("addmm"), "baddbmm": _added("baddbmm"),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), _convolved), **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _transposed),
    "convolution_backward": _convolved_backward, "scaled_dot_product_attention": _attention, "scaled_dot_product_attention_backward": _attention_backward,
    **dict.fromkeys(("lstm_layer", "gru_layer", "rnn_layer"), _steps), **dict.fromkeys(("lstm_layer_backward", "gru_layer_backward", "rnn_layer_backward"), _steps_backward),
}  # fmt: skip
_COUNTED = {"einsum": "bmm", "tensordot": "mm", "inner": "mm", "chain_matmul": "mm", "multi_dot": "mm"}  # all that they count are products


def products(entry: Any, args: tuple, kwargs: dict, result: Any) -> Found | None:
    """[(PyTorch's name, FLOPs)] of the products that an operator's call is made of; None where it is not one that multiplies matrices itself."""
    if not multiplies(entry):
        return None
    if entry.out == "form":  # (name, out, call, args, kwargs)
        args, kwargs = args[3], args[4]
    name = entry.name.rstrip("_")
    if name in _COUNTED or any(isinstance(value, BlockTensor) for value in args):
        return [(_COUNTED.get(name, "mm"), int(entry.flops(args, kwargs, result)))]
    return _KNOWN[name](args, kwargs, result)


def multiplies(entry: Any) -> bool:
    """Whether `products` knows the operator."""
    name = entry.name.rstrip("_")
    return name in _KNOWN or name in _COUNTED
