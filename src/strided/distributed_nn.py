"""`torch.distributed.nn`: collectives through which gradients flow, for the group of one process: each gives a copy, whose gradient is its own.

Collectives that write into given tensors are distributed.py's.
"""
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from . import distributed as dist
from .distributed import ReduceOp
from .refused import missing
from .tensor import Tensor


def _copied(tensor: Tensor) -> Tensor:
    dist._get_default_group()
    return tensor.clone()  # type: ignore[attr-defined]


def _only(tensors: Sequence[Tensor], argument: str) -> Tensor:
    if len(tensors) != 1:
        raise RuntimeError(f"{argument} must have one tensor a process of the group, 1, but got {len(tensors)}")
    return tensors[0]


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of process `src`, 0."""
    dist._check_root(src, "broadcast")
    return _copied(tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes, at process `dst`, 0."""
    dist._check_root(dst, "gather")
    return (_copied(tensor),)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """This process's of the tensors that process `src`, 0, has."""
    dist._check_root(src, "scatter")
    return _copied(_only(tensors, "tensors"))


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """All processes' tensors joined, at process `dst`, 0."""
    dist._check_root(dst, "reduce")
    return _copied(tensor)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """This process's of the tensors, joined with those that the others have for it."""
    return _copied(_only(input_list, "input_list"))


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes."""
    return (_copied(tensor),)


def all_to_all(output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None) -> tuple[Tensor, ...]:
    """What the processes have for this one."""
    return (_copied(_only(input_tensor_list, "input_tensor_list")),)


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None) -> Tensor:
    """What the processes have for this one, in one tensor."""
    return _copied(input)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """All processes' tensors joined."""
    return _copied(tensor)


__all__ = ["all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter", "scatter"]

functional = sys.modules[__name__]  # PyTorch's file of that name
__getattr__ = missing("torch.distributed.nn")
