"""nn.utils.prune by hand: what is masked, how methods add up, what stays when pruning is made permanent."""
import copy

import pytest

import strided as torch
from strided import nn
from strided.nn.utils import prune


def linear():
    net = nn.Linear(4, 3)
    with torch.no_grad():
        net.weight.copy_(torch.arange(12.0).reshape(3, 4) - 5.5)
    return net


def test_the_smallest_go_and_the_parameter_keeps_its_values():
    net = prune.l1_unstructured(linear(), "weight", 4)
    assert net.weight_mask.tolist() == [[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]]
    assert net.weight.equal(net.weight_orig * net.weight_mask) and [name for name, _ in net.named_parameters()] == ["bias", "weight_orig"]
    net(torch.ones(2, 4)).sum().backward()
    assert net.weight_orig.grad.tolist() == [[2] * 4, [0] * 4, [2] * 4]
    assert prune.is_pruned(nn.Sequential(net)) and not prune.is_pruned(nn.Linear(1, 1))


def test_methods_add_up():
    net = prune.ln_structured(linear(), "weight", amount=1, n=2, dim=0)
    assert net.weight_mask.sum(1).tolist() == [4, 0, 4]
    prune.l1_unstructured(net, "weight", 0.5)  # half of the eight that are left
    assert net.weight_mask.tolist() == [[1, 1, 0, 0], [0] * 4, [0, 0, 1, 1]]
    assert len(net._forward_pre_hooks) == 1 and len(next(iter(net._forward_pre_hooks.values()))) == 2
    prune.random_structured(net, "weight", 1, dim=1)
    assert (net.weight_mask.sum(0) == 0).sum() == 1


def test_pruning_made_permanent():
    net = prune.l1_unstructured(linear(), "weight", 4)
    pruned = net.weight.detach().clone()
    prune.remove(net, "weight")
    assert isinstance(net.weight, nn.Parameter) and net.weight.equal(pruned) and list(net.state_dict()) == ["bias", "weight"]
    assert not net._forward_pre_hooks
    with pytest.raises(ValueError, match="has to be pruned before pruning can be removed"):
        prune.remove(net, "weight")


def test_a_pruned_module_is_saved_and_trained():
    net = prune.l1_unstructured(linear(), "weight", 4)
    other = prune.identity(linear(), "weight")
    other.load_state_dict(net.state_dict())
    x = torch.ones(1, 4)
    assert other(x).equal(net(x)) and other.weight_mask.sum() == 8
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(x).sum().backward()
    optimizer.step()
    net(x)
    assert net.weight[1].tolist() == [0] * 4 and net.weight_orig[1].tolist() == [-1.5, -0.5, 0.5, 1.5]
    again = copy.deepcopy(linear())
    assert prune.custom_from_mask(again, "bias", torch.tensor([1, 0, 1])).bias[1] == 0


def test_global_and_wrong_input():
    a, b = linear(), linear()
    prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=8, importance_scores={(a, "weight"): torch.zeros(3, 4)})
    assert a.weight_mask.sum() == 4 and b.weight_mask.sum() == 12
    with pytest.raises(TypeError, match="Invalid type for amount"):
        prune.l1_unstructured(b, "bias", "some")
    with pytest.raises(ValueError, match="amount=13 should be smaller than the number of parameters to prune=3"):
        prune.l1_unstructured(b, "bias", 13)
    assert [name for name, _ in b.named_parameters()] == ["bias", "weight_orig"]
    with pytest.raises(ValueError, match="amount=13 should be smaller"):  # what was pruned before stays as it was
        prune.l1_unstructured(b, "weight", 13)
    assert b.weight_mask.sum() == 12 and len(b._forward_pre_hooks) == 1
