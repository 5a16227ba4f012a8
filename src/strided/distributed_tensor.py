"""`torch.distributed.tensor` and what else spreads a model over processes: descriptions of where parts lie are computed with; what would spread anything is refused.

The group of one process and its collectives are distributed.py's. Here are the placements (plain data and arithmetic, which libraries make tables of), and the classes and functions of
`torch.distributed.tensor`, `.fsdp` and `.checkpoint` that libraries import at their top and use with several processes only. Source: PyTorch's documentation of torch.distributed.tensor.
"""
from __future__ import annotations

import sys
from enum import Enum
from typing import Any

from .distributed import DeviceMesh, DTensor, _OfProcesses, _refused, distribute_module, distribute_tensor, init_device_mesh  # type: ignore[attr-defined]
from .refused import missing as _missing

__all__ = ["DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "init_device_mesh"]


# ---- where parts lie --------------------------------------------------------------------------------------------------------------


class Placement:
    """How a tensor lies along one dimension of a grid of processes. Placements of a kind are equal where their parameters are, and may be keys."""

    _parameters: tuple = ()

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether the processes have parts along a dimension (`dim`: along this one)."""
        return False

    def is_replicate(self) -> bool:
        """Whether each process has all of it."""
        return False

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the processes' tensors are yet to be joined (`reduce_op`: by this)."""
        return False

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._parameters == other._parameters  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self._parameters))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Replicate(Placement):
    """Each process has all of the tensor."""

    def is_replicate(self) -> bool:
        return True

    def __str__(self) -> str:
        return "R"


class Shard(Placement):
    """The tensor is cut along dimension `dim`, as by `torch.chunk`: the last processes may have less, or nothing."""

    def __init__(self, dim: int):
        self.dim = dim
        self._parameters = (dim,)

    def is_shard(self, dim: int | None = None) -> bool:
        return dim is None or dim == self.dim

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """(size, first position) of the part of process `rank` where `curr_local_size` elements are cut into `num_chunks`."""
        part = -(-curr_local_size // num_chunks)
        start = part * rank
        return (0, curr_local_size) if curr_local_size < start else (min(curr_local_size, start + part) - start, start)

    def _local_shard_size_and_offset(self, curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        return self.local_shard_size_and_offset(curr_local_size, num_chunks, rank)

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"


class _StridedShard(Placement):
    """A cut of what was cut into `split_factor` parts along the same dimension before. It is no Shard, as in PyTorch: who means this one asks for it."""

    def __init__(self, dim: int, *, split_factor: int):
        self.dim, self.split_factor = dim, split_factor
        self._parameters = (dim, split_factor)

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


class Partial(Placement):
    """The tensor is what `reduce_op` ("sum", "avg", "product", "max", "min") makes of the processes' tensors."""

    def __init__(self, reduce_op: str = "sum"):
        self.reduce_op = reduce_op
        self._parameters = (reduce_op,)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return reduce_op is None or reduce_op == self.reduce_op

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


# ---- what would spread something -----------------------------------------------------------------------------------------------------


def _absent(names: str) -> dict[str, Any]:
    """Classes without instances, by name."""
    return {name: type(name, (_OfProcesses,), {"__doc__": "A class of several processes, without instances here.", "__module__": __name__}) for name in names.split()}


# torch.distributed.fsdp: what modules become, what they are told, and functions that choose parts of modules.
globals().update(
    _absent(
        """FSDPModule FullyShardedDataParallel MixedPrecision MixedPrecisionPolicy OffloadPolicy CPUOffload CPUOffloadPolicy StateDictConfig FullStateDictConfig ShardedStateDictConfig
        LocalStateDictConfig OptimStateDictConfig FullOptimStateDictConfig ShardedOptimStateDictConfig ShardedGradScaler"""
    )
)
globals().update({name: _refused(f"fsdp.{name}") for name in "fully_shard wrap enable_wrap size_based_auto_wrap_policy transformer_auto_wrap_policy lambda_auto_wrap_policy _or_policy".split()})

# torch.distributed.checkpoint: files of several processes. (torch.save, torch.load and safetensors are those of one.)
globals().update(_absent("FileSystemReader FileSystemWriter HuggingFaceStorageReader HuggingFaceStorageWriter StateDictOptions DefaultLoadPlanner DefaultSavePlanner"))
globals().update({name: _refused(f"checkpoint.{name}") for name in "save load get_model_state_dict set_model_state_dict get_optimizer_state_dict set_optimizer_state_dict".split()})

# torch.distributed.tensor.parallel: how layers are cut.
globals().update(_absent("ParallelStyle ColwiseParallel RowwiseParallel SequenceParallel PrepareModuleInput PrepareModuleOutput"))
globals().update({name: _refused(f"tensor.{name}") for name in "parallelize_module compute_local_shape_and_global_offset".split()})


class ShardingStrategy(Enum):
    """Names of what FullyShardedDataParallel cuts."""

    FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, _HYBRID_SHARD_ZERO2 = range(1, 6)


class BackwardPrefetch(Enum):
    """Names of when FullyShardedDataParallel fetches parameters."""

    BACKWARD_PRE, BACKWARD_POST = 1, 2


class StateDictType(Enum):
    """Names of what a FullyShardedDataParallel's state dict holds."""

    FULL_STATE_DICT, LOCAL_STATE_DICT, SHARDED_STATE_DICT = 1, 2, 3


placement_types = sys.modules[__name__]  # PyTorch's file of the placements
__getattr__ = _missing("torch.distributed.tensor")
