"""torch.distributed with one process: groups, collectives, DistributedDataParallel, DistributedSampler; and what needs several."""
import pytest

import strided as torch
import strided.distributed as dist


@pytest.fixture
def alone():
    dist.init_process_group("gloo", init_method="tcp://localhost:29500", rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_what_scripts_ask_first():
    assert dist.is_available() and dist.is_gloo_available() and not dist.is_nccl_available() and not dist.is_initialized()
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, dist.get_backend, lambda: dist.all_reduce(torch.ones(1)), lambda: torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))):
        with pytest.raises(ValueError, match="Default process group has not been initialized, please make sure to call init_process_group."):
            call()


def test_rank_and_size_come_from_the_environment(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        dist.init_process_group("gloo")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    dist.init_process_group("cpu:gloo,cuda:nccl")
    assert (dist.get_rank(), dist.get_world_size()) == (0, 1)
    dist.destroy_process_group()
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(NotImplementedError, match="a group of 2 processes .* runs in one process"):
        dist.init_process_group("gloo")
    assert not dist.is_initialized()


def test_a_group_is_made_once(alone):
    assert dist.is_initialized() and dist.get_backend() == "gloo" and dist.group.WORLD is dist.GroupMember.WORLD
    with pytest.raises(ValueError, match="trying to initialize the default process group twice!"):
        dist.init_process_group("gloo", rank=0, world_size=1)
    g = dist.new_group([0])
    assert (g.rank(), g.size(), dist.get_rank(g), dist.get_world_size(g), dist.get_process_group_ranks(g), dist.get_global_rank(g, 0)) == (0, 1, 0, 1, [0], 0)
    with pytest.raises(ValueError, match="the new group's world size should be less or equal to the world size set by init_process_group"):
        dist.new_group([0, 1])
    dist.destroy_process_group()
    assert not dist.is_initialized()
    with pytest.raises(AssertionError, match="Process group cannot be None"):
        dist.destroy_process_group()


@pytest.mark.parametrize("backend, told", [("nccl", "Distributed package doesn't have NCCL built in"), ("nonsense", "has no backend 'nonsense'")])
def test_other_backends(backend, told):
    with pytest.raises(RuntimeError, match=told):
        dist.init_process_group(backend, rank=0, world_size=1)


def test_collectives_of_one(alone):
    x = torch.arange(3.0)
    assert dist.all_reduce(x) is None and dist.all_reduce(x, dist.ReduceOp.AVG) is None and dist.all_reduce(x, async_op=True).wait() is True
    assert dist.broadcast(x, 0) is None and dist.reduce(x, 0) is None and dist.barrier() is None and x.tolist() == [0, 1, 2]
    out, outs = torch.zeros(3), [torch.zeros(3)]
    for call in (
        lambda: dist.all_gather(outs, x), lambda: dist.gather(x, outs, 0), lambda: dist.all_to_all(outs, [x]),
        lambda: dist.all_gather_into_tensor(out, x), lambda: dist.reduce_scatter(out, [x]), lambda: dist.reduce_scatter_tensor(out, x), lambda: dist.scatter(out, [x], 0),
        lambda: dist.all_to_all_single(out, x),
    ):  # fmt: skip
        out.zero_()
        outs[0].zero_()
        assert call() is None and [0, 1, 2] in (out.tolist(), outs[0].tolist()) and x.tolist() == [0, 1, 2]
    objects = [None]
    dist.all_gather_object(objects, {"a": 1})
    dist.broadcast_object_list(objects, 0)
    assert objects == [{"a": 1}]
    dist.gather_object(3, objects, 0)
    assert objects == [3]
    dist.scatter_object_list(objects, [5], 0)
    assert objects == [5]


@pytest.mark.parametrize(
    "call, kind, told",
    [
        (lambda x: dist.broadcast(x, 1), RuntimeError, "invalid root rank: 1"),
        (lambda x: dist.all_gather([torch.zeros(3)] * 2, x), RuntimeError, "invalid output tensor list at index 0 .expected length 1, got 2"),
        (lambda x: dist.all_gather([torch.zeros(2)], x), RuntimeError, r"invalid tensor size at index 0 \(expected \(3\), got \(2\)\)"),
        (lambda x: dist.gather(x), ValueError, "Argument ``gather_list`` must be specified on destination rank."),
        (lambda x: dist.all_reduce(3), TypeError, "Expected parameter `tensor` of type torch.Tensor"),
        (lambda x: dist.send(x, 0), ValueError, "destination rank should not be the same as the rank of the current process"),
        (lambda x: dist.recv(x), ValueError, "source rank should not be the same as the rank of the current process"),
        (lambda x: dist.init_device_mesh("cpu", (1,)), NotImplementedError, "strided runs in one process"),
    ],
)
def test_refusals(alone, call, kind, told):
    x = torch.arange(3.0)
    with pytest.raises(kind, match=told):
        call(x)
    assert x.tolist() == [0, 1, 2]


def test_a_module_is_wrapped(alone):
    torch.manual_seed(0)
    m = torch.nn.Linear(3, 2)
    d = torch.nn.parallel.DistributedDataParallel(m, find_unused_parameters=True, gradient_as_bucket_view=True)
    assert list(d.state_dict()) == ["module.weight", "module.bias"] and d.module is m and d.require_backward_grad_sync
    x = torch.ones(3)
    with d.no_sync():
        assert not d.require_backward_grad_sync
        d(x).sum().backward()
    d(x).sum().backward()
    assert m.weight.grad.tolist() == [[2.0] * 3] * 2 and torch.equal(d(x), m(x))
    assert repr(d) == "DistributedDataParallel(\n  (module): Linear(in_features=3, out_features=2, bias=True)\n)"
    with pytest.raises(RuntimeError, match="DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."):
        torch.nn.parallel.DistributedDataParallel(torch.nn.ReLU())
    with pytest.raises(ValueError, match=r"got device_ids \[0\], output_device None"):
        torch.nn.parallel.DistributedDataParallel(m, device_ids=[0])


def test_a_sampler_asks_the_group(alone):
    sampler = torch.utils.data.DistributedSampler(list(range(7)), shuffle=True)
    assert list(sampler) == [4, 0, 5, 3, 2, 6, 1] and len(sampler) == 7


def test_batch_norms_become_synchronised_ones():
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.BatchNorm1d(2, momentum=0.5, bias=False)), torch.nn.InstanceNorm1d(2)).eval()
    norm = net[1][0]
    assert torch.nn.SyncBatchNorm.convert_sync_batchnorm(net) is net
    made = net[1][0]
    assert type(made) is torch.nn.SyncBatchNorm and made.weight is norm.weight and made.bias is None and made.running_var is norm.running_var
    assert (made.momentum, made.training, type(net[2])) == (0.5, False, torch.nn.InstanceNorm1d)
    alone = torch.nn.BatchNorm2d(3, affine=False)
    assert torch.nn.SyncBatchNorm.convert_sync_batchnorm(alone).num_batches_tracked is alone.num_batches_tracked
