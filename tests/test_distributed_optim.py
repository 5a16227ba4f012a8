"""Optimisers of torch.distributed.optim in the group of one process: the shard that is everything, and steps inside of a backward pass."""
import pytest

import strided as torch
from strided import distributed as dist
from strided import nn
from strided.distributed_optim import ZeroRedundancyOptimizer, _apply_optimizer_in_backward, _get_in_backward_optimizers


@pytest.fixture
def alone(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def layer():
    torch.manual_seed(0)
    return nn.Linear(3, 2)


def test_one_shard_steps_as_the_optimizer_itself(alone):
    whole, sharded = layer(), layer()
    groups = lambda net: [{"params": [net.weight], "weight_decay": 0.1}, {"params": [net.bias], "lr": 0.5}]
    plain = torch.optim.AdamW(groups(whole), lr=0.01)
    zero = ZeroRedundancyOptimizer(groups(sharded), optimizer_class=torch.optim.AdamW, lr=0.01)
    assert isinstance(zero, torch.optim.Optimizer) and isinstance(zero.optim, torch.optim.AdamW) and (zero.rank, zero.world_size) == (0, 1)
    schedules = [torch.optim.lr_scheduler.ExponentialLR(o, 0.5) for o in (plain, zero)]
    x = torch.arange(6.0).reshape(2, 3)
    for _ in range(3):
        for net, optimizer, schedule in ((whole, plain, schedules[0]), (sharded, zero, schedules[1])):
            optimizer.zero_grad()
            net(x).pow(2).sum().backward()
            optimizer.step()
            schedule.step()
    assert torch.equal(whole.weight, sharded.weight) and torch.equal(whole.bias, sharded.bias)
    assert [group["lr"] for group in zero.param_groups] == [0.00125, 0.0625] and zero.step(lambda: torch.tensor(7.0)).item() == 7
    with pytest.raises(RuntimeError, match=r"has not been consolidated on this rank. Please call `consolidate_state_dict\(to=0\)`"):
        zero.state_dict()
    zero.consolidate_state_dict()
    again = ZeroRedundancyOptimizer(groups(layer()), torch.optim.AdamW, lr=1.0)
    again.load_state_dict(zero.state_dict())
    assert again.param_groups[1]["lr"] == 0.0625 and torch.equal(again.state[again.param_groups[0]["params"][0]]["exp_avg"], zero.state[sharded.weight]["exp_avg"])
    more = nn.Parameter(torch.ones(1))
    zero.add_param_group({"params": [more]})
    assert len(zero.param_groups) == len(zero.optim.param_groups) == 3 and zero.param_groups[2]["lr"] == 0.01


def test_a_shard_needs_a_group():
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        ZeroRedundancyOptimizer(layer().parameters(), torch.optim.SGD, lr=0.1)


def test_overlap_is_refused(alone):
    with pytest.raises(NotImplementedError, match="overlap_with_ddp"):
        ZeroRedundancyOptimizer(layer().parameters(), torch.optim.SGD, overlap_with_ddp=True, lr=0.1)


def test_steps_inside_of_a_backward_pass():
    net = layer()
    before = [p.detach().clone() for p in net.parameters()]
    _apply_optimizer_in_backward(torch.optim.SGD, net.parameters(), {"lr": 0.1})
    net(torch.ones(3)).sum().backward()
    assert all(p.grad is None for p in net.parameters()) and len(_get_in_backward_optimizers(net)) == 2
    assert all(torch.allclose(p, b - 0.1) for p, b in zip(net.parameters(), before))
    _apply_optimizer_in_backward(torch.optim.SGD, [net.bias], {"lr": 0.2}, register_hook=False)
    net(torch.ones(3)).sum().backward()
    assert torch.allclose(net.bias, before[1] - 0.4) and torch.allclose(net.weight, before[0] - 0.2)
