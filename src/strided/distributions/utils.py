"""`torch.distributions.utils`: arguments made tensors of one shape, probabilities and logits turned into each other, attributes computed once."""
from __future__ import annotations

import functools
from typing import Any

from .. import ops
from ..autograd import enable_grad
from ..dtypes import finfo, get_default_dtype
from ..refused import missing
from ..tensor import Tensor

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Numbers as tensors beside the tensors among them, all broadcast to one shape."""
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype, device = (get_default_dtype(), None) if like is None else (like.dtype, like.device)
    if not all(isinstance(v, (Tensor, int, float)) for v in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__.")
    return tuple(ops.broadcast_tensors(*[v if isinstance(v, Tensor) else ops.tensor(v, dtype=dtype, device=device) for v in values]))


def one_of(probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept away from 0 and 1 by the format's epsilon."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    clamped = clamp_probs(probs)
    return ops.log(clamped) - ops.log1p(-clamped) if is_binary else ops.log(clamped)


def standard_normal(shape: Any, like: Tensor) -> Tensor:
    return _standard_normal(shape, like.dtype, like.device)


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    return ops.normal(ops.zeros(tuple(shape), dtype=dtype, device=device), ops.ones(tuple(shape), dtype=dtype, device=device))


def sum_rightmost(value: Any, dims: int) -> Any:
    """Summed over the last `dims` dimensions."""
    if dims == 0:
        return value
    return value.reshape(*value.shape[: value.ndim - dims], -1).sum(-1)


_sum_rightmost = sum_rightmost  # PyTorch's name, which packages import


class lazy_property:
    """An attribute that is computed when it is first asked for, and kept in its place."""

    def __init__(self, wrapped: Any):
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


__getattr__ = missing("torch.distributions.utils")
