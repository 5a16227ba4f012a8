"""What keeps functions from being compiled (`torch.compiler.disable`, stances, the environment), derivatives prepared once (`func.linearize`), transfers to nobody."""
import os

import pytest

import strided as torch
from strided import distributed as dist
from strided.dispatch import HOOKS


def test_a_disabled_function_runs_in_every_call():
    @torch.compiler.disable(reason="it counts")
    def drawn():
        return float(len(calls))

    calls = []

    @torch.compile
    def f(x):
        return x * drawn()

    found = [f(torch.ones(1)).item() for _ in range(4) if not calls.append(1)]
    assert [b - a for a, b in zip(found, found[1:])] == pytest.approx([1, 1, 1]) and f.programs == 0
    assert f.reasons == ["it calls test_a_disabled_function_runs_in_every_call.<locals>.drawn, which is not to be compiled: it counts"]
    assert drawn.__name__ == "drawn" and torch.compile(drawn) is drawn and torch.compiler.disable(drawn) is drawn


def test_a_disabled_module_or_class():
    linear = torch.nn.Linear(2, 1)
    disabled = torch.compiler.disable(linear)
    outer = torch.nn.Sequential(disabled, torch.nn.ReLU())
    compiled = torch.compile(outer)
    x = torch.ones(3, 2)
    assert all(torch.equal(compiled(x), linear(x).relu()) for _ in range(3)) and compiled.compiled.programs == 0 and disabled.weight is linear.weight
    assert torch.compiler.disable(dict) is dict
    with pytest.raises(RuntimeError, match="expects a function or a module"):
        torch.compiler.disable(3)


def test_stances(monkeypatch):
    seen = []

    @torch.compile
    def f(x):
        return x + 1

    for _ in range(2):
        f(torch.ones(2))
    counted = lambda: HOOKS.eager
    with torch.compiler.set_stance("force_eager"):
        assert counted() == 1 and f(torch.ones(3)).tolist() == [2, 2, 2]
        with torch.compiler.set_stance("default"):
            assert counted() == 0
        assert counted() == 1
    assert counted() == 0 and f.programs == 1

    @torch.compiler.set_stance("force_eager")
    def inside():
        seen.append(counted())

    inside()
    assert seen == [1] and counted() == 0
    torch.compiler.set_stance("force_eager")
    assert counted() == 1
    torch.compiler.set_stance("default")
    assert counted() == 0
    with pytest.raises(RuntimeError, match="invalid torch.compile stance 'never'"):
        torch.compiler.set_stance("never")
    torch._dynamo.config.disable = True
    assert counted() == 1
    torch._dynamo.config.disable = False
    assert counted() == 0
    monkeypatch.setitem(os.environ, "TORCHDYNAMO_DISABLE", "1")
    assert torch.compile(len) is len and torch.compile(fullgraph=True)(len) is len
    linear = torch.nn.Linear(1, 1)
    assert torch.compile(linear) is linear


def test_linearize():
    x = torch.tensor([1.0, 2.0])
    calls = []

    def f(x, y):
        calls.append(1)
        return x * x * y

    value, push = torch.func.linearize(f, x, torch.tensor(3.0))
    assert value.tolist() == [3, 12] and push(torch.tensor([1.0, 0.0]), torch.tensor(0.0)).tolist() == [6, 0] and push(torch.zeros(2), torch.tensor(2.0)).tolist() == [2, 8] and calls == [1]
    assert not value.requires_grad


def test_transfers(monkeypatch):
    for name, value in {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500", "RANK": "0", "WORLD_SIZE": "1"}.items():
        monkeypatch.setitem(os.environ, name, value)
    dist.init_process_group("gloo")
    try:
        assert dist.batch_isend_irecv([]) == []
        op = dist.P2POp(dist.irecv, torch.ones(2), 0)
        assert op.peer == 0 and "P2POp(irecv" in repr(op)
        with pytest.raises(ValueError, match="Invalid source rank"):
            dist.batch_isend_irecv([op])
        with pytest.raises(ValueError, match="Invalid ``op``"):
            dist.P2POp(dist.all_reduce, torch.ones(2), 0)
        with pytest.raises(ValueError, match="Invalid ``p2p_op_list``"):
            dist.batch_isend_irecv([3])
        x = torch.ones(2, requires_grad=True)
        (dist.nn.all_gather(x)[0] * 3 + dist.nn.functional.all_reduce(x) + dist.nn.scatter([x])).sum().backward()
        assert x.grad.tolist() == [5, 5] and not hasattr(dist.nn, "RemoteModule")
        with pytest.raises(RuntimeError, match="must have one tensor a process"):
            dist.nn.scatter([x, x])
    finally:
        dist.destroy_process_group()
