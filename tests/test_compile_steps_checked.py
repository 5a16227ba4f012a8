"""Compiled training steps whose input is bad in the middle, and options of optimisers that change: everything is as an eager step leaves it."""
import copy

import pytest

import strided as torch
from strided import nn
from test_compile_steps import batches, same, setting, step_of

F = nn.functional


def test_options_are_looked_at_anew_though_nothing_else_changes():
    """Numbers that plain options decide are kept until one of those changes, be it to an equal value."""
    (net, optimizer), (other, its) = setting(weight_decay=0.01), setting(weight_decay=0.01)
    run, eager = torch.compile(step_of(net, optimizer)), step_of(other, its)
    for number, (x, y) in enumerate(batches(12)):
        for one in (optimizer, its):
            if number % 3 == 2:
                one.param_groups[0]["lr"] = float(f"0.0{number}")
            if number % 4 == 3:
                one.param_groups[0]["weight_decay"] = float("0.01") if number < 8 else 0.5
        run(x, y)
        eager(x, y)
        same(net, other)
    assert run.programs == 2


def test_a_bad_target_leaves_everything_as_it_was():
    net, optimizer = setting()
    run = torch.compile(step_of(net, optimizer))
    (x, y), *_ = batches(1)
    for _ in range(4):
        run(x, y)
    before = copy.deepcopy(net.state_dict())
    bad = y.clone()
    bad[3] = 7
    with pytest.raises(IndexError, match="out of bounds"):
        run(x, bad)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    run(x, y)
    assert not torch.equal(before["0.weight"], net[0].weight)


def test_a_bad_target_behind_what_was_written_and_drawn():
    """Running means are written and masks drawn before the loss is checked: the call is made again from what there was, and leaves what an eager call leaves."""

    def setting():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(12, 40), nn.BatchNorm1d(40), nn.Dropout(0.5), nn.Linear(40, 5))
        return net, torch.optim.SGD(net.parameters(), lr=0.1)

    (net, optimizer), (other, its) = setting(), setting()
    run, eager = torch.compile(step_of(net, optimizer)), step_of(other, its)
    for number, (x, y) in enumerate(batches(7)):
        for call in (run, eager):
            torch.manual_seed(number)
            if number in (3, 5):
                with pytest.raises(IndexError, match="Target 9 is out of bounds"):
                    call(x, torch.full_like(y, 9))
                drawn = torch.rand(1)
            else:
                call(x, y)
                drawn = torch.rand(1)
            if call is run:
                first = drawn
        assert torch.equal(first, drawn)
        same(net, other)
        for a, b in zip(net.buffers(), other.buffers()):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-7)
    assert run.programs == 2 and run.recent


def test_bad_ids_leave_everything_as_it_was():
    torch.manual_seed(0)
    table, head = nn.Embedding(9, 16), nn.Linear(16, 9)
    optimizer = torch.optim.SGD([*table.parameters(), *head.parameters()], lr=0.1)

    def step(ids):
        optimizer.zero_grad()
        loss = F.cross_entropy(head(table(ids[:-1])), ids[1:])
        loss.backward()
        optimizer.step()
        return loss.detach()

    run, ids = torch.compile(step), torch.arange(9)
    losses = [float(run(ids)) for _ in range(5)]
    assert losses == sorted(losses, reverse=True) and run.programs == 2
    before = [p.detach().clone() for p in (*table.parameters(), *head.parameters())]
    with pytest.raises(IndexError):
        run(torch.full((9,), 12))
    assert all(torch.equal(a, b) for a, b in zip(before, (*table.parameters(), *head.parameters())))
    assert float(run(ids)) < losses[-1]
