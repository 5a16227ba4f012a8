"""Placements of torch.distributed.tensor, functional collectives of one process, and what spreads models over several: refused when it is used."""
import pytest

import strided as torch
import strided.distributed as dist
from strided import distributed_functional as functional
from strided import distributed_tensor as spread
from strided.torch_alias import torch_alias


@pytest.fixture
def group():
    dist.init_process_group("gloo", rank=0, world_size=1, init_method="tcp://localhost:29611")
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_placements_are_data():
    shard, strided_shard = spread.Shard(1), spread._StridedShard(1, split_factor=2)
    assert shard == spread.Shard(1) != spread.Shard(0) and hash(shard) == hash(spread.Shard(1)) and shard != strided_shard
    assert shard.is_shard() and shard.is_shard(1) and not shard.is_shard(0) and not shard.is_replicate() and not shard.is_partial()
    assert spread.Replicate().is_replicate() and spread.Replicate() == spread.Replicate() != spread.Partial()
    assert spread.Partial().is_partial("sum") and not spread.Partial("max").is_partial("sum")
    assert [repr(p) for p in (shard, spread.Replicate(), spread.Partial(), strided_shard)] == ["Shard(dim=1)", "Replicate()", "Partial(sum)", "_StridedShard(dim=1, sf=2)"]
    assert [str(p) for p in (shard, spread.Replicate(), spread.Partial(), strided_shard)] == ["S(1)", "R", "P(sum)", "_S(1, 2)"]
    assert not isinstance(strided_shard, spread.Shard) and not strided_shard.is_shard()


@pytest.mark.parametrize(
    ("cut", "part"), [((10, 4, 0), (3, 0)), ((10, 4, 3), (1, 9)), ((9, 4, 3), (0, 9)), ((3, 4, 3), (0, 3)), ((0, 2, 1), (0, 0)), ((5, 4, 3), (0, 5)), ((5, 4, 2), (1, 4))]
)  # as PyTorch answers
def test_sizes_of_parts(cut, part):
    assert spread.Shard.local_shard_size_and_offset(*cut) == spread.Shard(0)._local_shard_size_and_offset(*cut) == part


def test_names_that_libraries_import():
    with torch_alias():
        import torch.distributed.tensor as tensors
        from torch.distributed._composable.fsdp import fully_shard
        from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
        from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel, MixedPrecisionPolicy, ShardingStrategy
        from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
        from torch.distributed.tensor import DTensor, Replicate, Shard
        from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
        from torch.distributed.tensor.placement_types import _StridedShard

    assert tensors.Shard is Shard and Replicate is spread.Replicate and _StridedShard is spread._StridedShard
    assert ShardingStrategy.FULL_SHARD.value == 1 and ShardingStrategy["NO_SHARD"].name == "NO_SHARD"
    module = torch.nn.Linear(2, 2)
    assert not isinstance(module, (FSDPModule, FullyShardedDataParallel)) and not isinstance(module.weight, DTensor)
    for use in (lambda: FullyShardedDataParallel(module), lambda: fully_shard(module), MixedPrecisionPolicy, lambda: HuggingFaceStorageReader("folder"), lambda: compute_local_shape_and_global_offset((2,), None, []), lambda: transformer_auto_wrap_policy(module, True, 2)):
        with pytest.raises(NotImplementedError, match="strided runs in one process"):
            use()
    assert dist.device_mesh.DeviceMesh is spread.DeviceMesh and dist.distributed_c10d.ReduceOp is dist.ReduceOp
    with pytest.raises(AttributeError, match="strided runs in one process"):
        tensors.loss_parallel


def test_functional_collectives_are_copies_with_gradients(group):
    x = torch.arange(6.0).view(2, 3).requires_grad_()
    results = [
        functional.all_reduce(x, "sum", group), functional.broadcast(x, 0, group), functional.all_gather_tensor(x, 1, group), functional.reduce_scatter_tensor(x, "avg", 0, group),
        functional.all_to_all_single(x, None, [2], group), functional.all_to_all_single_autograd(x, [2], [2], group),
    ]  # fmt: skip
    for result in results:
        assert result.tolist() == x.tolist() and result.data_ptr() != x.data_ptr() and functional.wait_tensor(result) is result
        assert torch.autograd.grad((result * 3).sum(), x)[0].tolist() == [[3.0] * 3] * 2
    with pytest.raises(RuntimeError, match="Split sizes doesn't match total dim 0 size"):
        functional.all_to_all_single(x, [1], [1], group)
    with pytest.raises(RuntimeError, match="Unrecognized reduce_op: middle"):
        functional.all_reduce(x, "middle", group)
    with pytest.raises(RuntimeError, match="invalid root rank: 1"):
        functional.broadcast(x, 1, group)


def test_functional_collectives_need_a_group():
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        functional.all_reduce(torch.ones(2), "sum", [0])
