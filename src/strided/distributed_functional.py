"""`torch.distributed._functional_collectives`: collectives that return what they make, for the group of one process: each is a copy, through which gradients flow.

Collectives that write into given tensors are distributed.py's, those of `torch.distributed.nn` distributed_nn.py's. Source: PyTorch's documentation of functional collectives.
"""
from __future__ import annotations

from typing import Any

from . import distributed as dist
from .distributed_nn import _copied
from .refused import missing as _missing
from .tensor import Tensor

AsyncCollectiveTensor = dist._OfProcesses  # a result that is waited for: none is, so that isinstance is False
_OPERATIONS = "sum avg product min max band bor bxor".split()


def _check_operation(reduceOp: str) -> None:
    if reduceOp.lower() not in _OPERATIONS:
        raise RuntimeError(f"Unrecognized reduce_op: {reduceOp}\n  It is one of {', '.join(_OPERATIONS)}.")


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor: nothing is under way."""
    return tensor


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The tensor joined over all processes. Raises ValueError without a group, RuntimeError for an unknown operation."""
    _check_operation(reduceOp)
    return _copied(self)


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of process `src`, 0. Raises RuntimeError for any other."""
    dist._check_root(src, "broadcast")
    return _copied(self)


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes, joined along `gather_dim`."""
    return _copied(self)


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """This process's part, along `scatter_dim`, of the tensor joined over all processes: all of it."""
    _check_operation(reduceOp)
    return _copied(self)


def all_to_all_single(self: Tensor, output_split_sizes: list[int] | None, input_split_sizes: list[int] | None, group: Any, tag: str = "") -> Tensor:
    """Rows from each process for rows to each. Raises RuntimeError where sizes are not those of all rows (for one process: one number)."""
    for sizes in (output_split_sizes, input_split_sizes):
        if sizes is not None and list(sizes) != [self.shape[0]]:
            raise RuntimeError(f"Split sizes doesn't match total dim 0 size: {list(sizes)} for {self.shape[0]} rows and a group of one process")
    return _copied(self)


all_gather_single = all_gather_tensor_autograd = all_gather_single_autograd = all_gather_tensor
reduce_scatter_single = reduce_scatter_tensor_autograd = reduce_scatter_single_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single
__getattr__ = _missing("torch.distributed._functional_collectives")
