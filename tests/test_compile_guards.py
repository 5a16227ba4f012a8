"""What a compiled call takes for granted is noticed when it changes: Python state of every kind, arguments, modes, hooks, aliasing; effects that a replay would leave out are reasons not to compile."""

import collections
import copy
import dataclasses
import functools
import itertools
import os
import pickle
import random
import sys
import types
from random import random as draw

import pytest

import strided as torch
from strided import nn
from strided.nn import functional as F

NUMBER = 2


class Config:
    width = 2


class Slots:
    __slots__ = ("width",)


@dataclasses.dataclass
class Nested:
    n: int = 2
    inner: object = None


class Helper:
    @property
    def number(self):
        return NUMBER

    def __getitem__(self, place):
        return NUMBER + place

    def compute(self, x):
        return x * self.number + self[0]


class Net(nn.Module):
    factor = 2

    def __init__(self):
        super().__init__()
        self.helper = Helper()

    def forward(self, x):
        return self.helper.compute(x) * self.factor


def assign(**names):
    globals().update(names)


def cases():
    slots, table, ordered, queue, members = Slots(), {"a": 2}, collections.OrderedDict(a=2, b=3), collections.deque([2, 3]), {1}
    slots.width = 2
    nested, bound = Nested(2, Nested(3)), functools.partial(lambda x, d: x * d["a"], d={"a": 2})
    module = types.ModuleType("settings_of_a_user")
    exec("K = 2\nclass C:\n    z = 3\ndef g(x):\n    return x * K * C.z", module.__dict__)
    number = 2

    def change():
        nonlocal number
        number += 1

    def attribute(x):
        return x * attribute.scale

    attribute.scale = 2

    def default(x, k=2, _c=[2]):  # noqa: B006
        return x * k + _c[0]

    net, patched = Net(), type("Patched", (nn.Module,), {"forward": lambda self, x: x * 2})
    yield "constant of a class", lambda x: x * Config.width, lambda: setattr(Config, "width", 3)
    yield "constant of a module's class", net, lambda: setattr(Net, "factor", 3)
    yield "global behind a property and an index", net, lambda: assign(NUMBER=7)
    yield "method replaced", patched(), lambda: setattr(patched, "forward", lambda self, x: x * 5)
    yield "slots", lambda x: x * slots.width, lambda: setattr(slots, "width", 3)
    yield "dictionary", lambda x: x * table["a"], lambda: table.update(a=3)
    yield "ordered dictionary", lambda x: x * ordered["a"], lambda: ordered.update(a=4)
    yield "order of a dictionary", lambda x: x * next(iter(ordered.values())), lambda: ordered.move_to_end("a")
    yield "deque", lambda x: x * queue[0], lambda: queue.rotate()
    yield "set", lambda x: x * sum(members), lambda: (members.clear(), members.add(7))
    yield "partial", bound, lambda: bound.keywords["d"].update(a=9)
    yield "object in an object", lambda x: x * nested.inner.n, lambda: setattr(nested.inner, "n", 9)
    yield "attribute of a function", attribute, lambda: setattr(attribute, "scale", 3)
    yield "defaults", default, lambda: setattr(default, "__defaults__", (5, [2]))
    yield "content of a default", default, lambda: default.__defaults__[1].__setitem__(0, 8)
    yield "variable of a closure", lambda x: x * number, change
    yield "name in a module", module.g, lambda: setattr(module, "K", 5)
    yield "class in a module", module.g, lambda: setattr(module.C, "z", 5)
    yield "environment", lambda x: x * float(os.environ.get("STRIDED_TEST", "1")), lambda: os.environ.__setitem__("STRIDED_TEST", "3")


@pytest.mark.parametrize("which", range(19))
def test_changes_are_noticed(which, monkeypatch):
    monkeypatch.setitem(globals(), "NUMBER", 2)
    monkeypatch.setattr(Config, "width", 2)
    monkeypatch.setattr(Net, "factor", 2)
    monkeypatch.delenv("STRIDED_TEST", raising=False)
    name, function, change = next(itertools.islice(cases(), which, None))
    f, x = torch.compile(function), torch.ones(3)
    with torch.no_grad():
        before = [f(x).tolist(), f(x).tolist()]
        change()
        assert f(x).tolist() == function(x).tolist() != before[1] == before[0], name


def test_the_cases_are_all_there():
    assert len(list(cases())) == 19


def test_what_goes_on_from_call_to_call_is_not_compiled():
    steps, generator, own = itertools.count(), random.Random(0), torch.Generator()
    for function in (lambda x: x * next(steps), lambda x: x + generator.random(), lambda x: x * draw(), lambda x: x + torch.randn(1, generator=own)):
        f = torch.compile(function)
        assert len({f(torch.ones(1)).item() for _ in range(4)}) == 4, f.reasons
    numpy = pytest.importorskip("numpy")
    values = numpy.ones(1, numpy.float32)
    f, g = torch.compile(lambda x: x * float(values[0])), torch.compile(lambda x: x * numpy.random.rand())
    assert f(torch.ones(1)).item() == 1
    values[0] = 4
    assert f(torch.ones(1)).item() == 4
    assert len({g(torch.ones(1)).item() for _ in range(3)}) == 3


def test_a_module_imported_inside():
    module = types.ModuleType("settings_inside")
    module.K = 2
    sys.modules["settings_inside"] = module
    try:

        def f(x):
            from settings_inside import K

            return x * K

        compiled = torch.compile(f)
        assert compiled(torch.ones(1)).item() == compiled(torch.ones(1)).item() == 2
        module.K = 5
        assert compiled(torch.ones(1)).item() == 5
    finally:
        del sys.modules["settings_inside"]


def test_arguments_that_change_and_modes_that_stay_changed():
    def appends(x, out):
        out.append(x * 2)
        return x + 1

    def marks(x):
        x.requires_grad_()
        return x * 2

    def shapes(x):
        x.unsqueeze_(0)
        return x * 2

    def switches(x):
        torch.set_grad_enabled(False)
        return x * 2

    def seeds(x):
        torch.manual_seed(0)
        return x + torch.randn(1)

    f = [torch.compile(g) for g in (appends, marks, shapes, switches, seeds)]
    for seed in range(3):
        out, a, b = [], torch.ones(2), torch.ones(2)
        f[0](torch.ones(2), out), f[1](a), f[2](b)
        assert len(out) == 1 and a.requires_grad and b.shape == (1, 2)
        f[3](a)
        assert not torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        torch.manual_seed(seed + 7)
        f[4](a)
        assert torch.initial_seed() == 0
    assert all(g.programs == 0 and g.reasons for g in f)


def test_numbers_that_are_equal_and_not_the_same():
    f = torch.compile(lambda x, v: x * v)
    for v in (0.0, -0.0, 0.0, -0.0, 1, 1.0, True):
        expected = torch.ones(2, dtype=torch.int32) * v
        found = f(torch.ones(2, dtype=torch.int32), v)
        assert found.dtype is expected.dtype and str(found.tolist()) == str(expected.tolist())


def test_gradients_that_are_looked_at_and_kinds_of_tensors():
    f = torch.compile(lambda p: p * 2 if p.grad is None else p * 3)
    g = torch.compile(lambda p: p * 2 if isinstance(p, nn.Parameter) else p * 3)
    p = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert f(p).tolist() == f(p).tolist() == [2, 2]
        p.grad = torch.ones(2)
        assert f(p).tolist() == [3, 3]
        assert g(nn.Parameter(torch.ones(1))).item() == 2 and g(p).tolist() == [3, 3]


def test_hooks_inside_run_every_time():
    seen = []

    def hooked(x):
        h = x * 2
        h.register_hook(lambda g: seen.append(1))
        return h * 3

    def kept(x):
        h = x * 2
        h.retain_grad()
        return h * 3, h

    f, g = torch.compile(hooked), torch.compile(kept)
    for count in range(1, 4):
        f(torch.ones(2, requires_grad=True)).sum().backward()
        assert len(seen) == count
        out, h = g(torch.ones(2, requires_grad=True))
        out.sum().backward()
        assert h.grad.tolist() == [3, 3]
    net = nn.Linear(2, 2)
    net.register_full_backward_hook(lambda *args: seen.append(2))
    compiled = torch.compile(net)
    for count in range(1, 4):
        compiled(torch.ones(1, 2, requires_grad=True)).sum().backward()
        assert seen.count(2) == count


def test_results_that_share_memory():
    def both(x):
        y = x * 2
        return y, y[0]

    f = torch.compile(both)
    for _ in range(3):
        x = torch.ones(2, 2, requires_grad=True)
        a, b = f(x)
        b.mul_(3)
        a.sum().backward()
        assert x.grad.tolist() == [[6, 6], [2, 2]]
    g = torch.compile(lambda x: (y := x * 2, [y]))
    for _ in range(3):
        a, (b,) = g(torch.ones(2, requires_grad=True))
        assert a is b
    inside = torch.compile(torch.inference_mode()(lambda x: x * 2))
    assert all(inside(torch.ones(2)).is_inference() for _ in range(3))


def test_arguments_that_share_memory():
    def f(x, y):
        x.add_(1)
        return x + y

    compiled = torch.compile(f)
    for _ in range(2):
        compiled(torch.zeros(4), torch.zeros(4))
    base = torch.zeros(6)
    assert compiled(base[:4], base[2:]).tolist() == [2, 2, 1, 1]
    numpy = pytest.importorskip("numpy")
    values = numpy.zeros(4, numpy.float32)
    assert compiled(torch.from_numpy(values), torch.from_numpy(values)).tolist() == [2, 2, 2, 2]


def test_bad_input_leaves_everything_as_an_eager_call_does():
    def f(x, table, i):
        x.add_(1)
        return F.embedding(i, table) + torch.rand(2)

    compiled, table = torch.compile(f), torch.zeros(4, 2)
    for _ in range(3):
        compiled(torch.zeros(3), table, torch.tensor([1]))
    after = []
    for call in (f, compiled):
        x = torch.zeros(3)
        torch.manual_seed(1)
        with pytest.raises(IndexError):
            call(x, table, torch.tensor([9]))
        after.append((x.tolist(), torch.rand(2).tolist()))
    assert after[0] == after[1]


def test_gradients_asked_for_late():
    f = torch.compile(lambda x: x * x)
    x = torch.ones(2, requires_grad=True)
    for _ in range(5):
        f(x)
    y = f(x)
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(2, momentum=0.5)

        def forward(self, x):
            h = self.norm(x)
            return h.exp(), h.sin()

    net = Net()
    twin = copy.deepcopy(net)
    compiled = torch.compile(net)
    for uses in ((0,), (0,), (1,), (0, 1), (0,)):  # other results than when the backward pass was recorded
        x = torch.randn(4, 2)
        for call in (compiled, twin):
            outs = call(x)
            sum(outs[i].sum() for i in uses).backward()
    for name, value in twin.state_dict().items():
        assert torch.allclose(net.state_dict()[name], value, rtol=1e-5, atol=1e-6), name
    assert torch.allclose(net.norm.weight.grad, twin.norm.weight.grad, rtol=1e-4, atol=1e-5)


def test_copies_of_a_compiled_module():
    net = torch.compile(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    x = torch.ones(3, 2)
    for _ in range(2):
        net(x).sum().backward()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(other(x), net(x)) and other.compiled.function is other._orig_mod
        with torch.no_grad():
            other._orig_mod[0].weight.zero_()
            other._orig_mod[0].bias.fill_(3)
        assert other(x).tolist() == [[3, 3]] * 3 != net(x).tolist()


@torch.compile
def again(x, n):
    return x if n == 0 else again(x * NUMBER, n - 1)


def test_compiled_functions_inside_compiled_ones(monkeypatch):
    monkeypatch.setitem(globals(), "NUMBER", 2)
    for _ in range(3):
        assert again(torch.ones(1), 3).item() == 8
    assert again.programs == 1 and not again.reasons
    inner = torch.compile(lambda x: x * NUMBER)
    outer = torch.compile(lambda x: inner(x) + inner(x + 1))
    for size in (1, 1, 2, 2, 1):
        inner(torch.ones(size))
        assert outer(torch.ones(1)).item() == 6
    assert outer.programs == 1
    monkeypatch.setitem(globals(), "NUMBER", 3)
    assert outer(torch.ones(1)).item() == 9 and again(torch.ones(1), 3).item() == 27


def test_hooks_of_what_a_call_is_given_run_once():
    calls = []

    def doubled(mark):
        return lambda g: (calls.append(mark), g * 2)[1]

    w = nn.Parameter(torch.ones(2))
    w.register_hook(doubled("w"))
    w.register_post_accumulate_grad_hook(lambda p: calls.append("post"))
    f = torch.compile(lambda x: ((x * w).sum(), (x * w * 2).sum()))
    for count in range(1, 6):
        leaf = torch.ones(2, requires_grad=True)
        x = leaf * 3
        x.register_hook(doubled("x"))
        x.retain_grad()
        a, b = f(x)
        (a if count < 5 else b).backward()  # recorded, replayed, and made again for the other result
        scale = 1 if count < 5 else 2
        assert leaf.grad.tolist() == [6 * scale] * 2 and x.grad.tolist() == [2 * scale] * 2
        assert w.grad.tolist() == [6 * min(count, 4) + 12 * (count == 5)] * 2
        assert sorted(calls) == ["post"] * count + ["w"] * count + ["x"] * count


def test_marks_on_tensors_and_variables_of_threads():
    import contextvars
    import threading

    known, variable, local = torch.ones(1), contextvars.ContextVar("factor", default=2), threading.local()
    known.factor = local.factor = 2
    f = [torch.compile(g) for g in (lambda x: x * known.factor, lambda x: x * x.factor, lambda x: x * variable.get(), lambda x: x * local.factor)]
    x = torch.ones(1)
    x.factor = 2
    assert [g(x).item() for g in f] == [g(x).item() for g in f] == [2] * 4
    known.factor = x.factor = 5
    variable.set(5)
    found = []

    def other():
        local.factor = 5
        found.append(f[3](x).item())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert [g(x).item() for g in f[:3]] == [5] * 3 and found == [5]


# ---- what a user puts in place of the library's own --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "owner, name, other",
    [
        (torch.nn.functional, "relu", lambda x: x * 100),
        (torch, "exp", lambda x: x - 1),
        (torch.Tensor, "tanh", lambda x: x * 0),
        (torch.nn.functional, "linear", lambda x, w, b=None: x + 5),
        (torch.nn.Linear, "forward", lambda self, x: x - 3),
    ],
)
def test_a_function_of_the_library_that_is_replaced_is_noticed(owner, name, other, monkeypatch):
    layer = torch.nn.Linear(3, 3)

    def chain(x):
        return torch.nn.functional.relu(layer(x)) + torch.exp(x).tanh()

    run, x = torch.compile(chain), torch.tensor([-1.0, 0.5, 2.0])
    with torch.no_grad():
        for _ in range(2):
            expected = run(x)
        assert run.programs == 1
        monkeypatch.setattr(owner, name, other)
        assert torch.equal(run(x), chain(x)) and not torch.equal(run(x), expected)
        monkeypatch.undo()
        assert torch.equal(run(x), expected) and run.programs == 2


def test_hooks_that_a_call_registers_on_what_it_is_given():
    def hooking(x):
        x.register_hook(lambda g: g * 2)
        return x * 3

    run = torch.compile(hooking)
    for _ in range(3):
        for history in (False, True):
            leaf = torch.ones(4, requires_grad=True)
            run(leaf * 1 if history else leaf).sum().backward()
            assert leaf.grad.tolist() == [6.0] * 4
    assert run.reasons


def test_results_that_ask_for_gradients_of_their_own():
    def fresh(x):
        return (x * 2).detach().requires_grad_()

    run = torch.compile(fresh)
    for _ in range(4):
        x = torch.ones(3, requires_grad=True)
        out = run(x)
        assert out.is_leaf and out.requires_grad and out.grad_fn is None
        out.sum().backward()
        assert x.grad is None and out.grad.tolist() == [1.0] * 3


def test_views_of_what_a_call_was_given_are_views_of_it():
    class Windows(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.arange(12.0).view(3, 4))

        def forward(self, x):
            return x[1:], self.table.t(), x.detach(), x.view(-1)[::2], x.sum()

    net = Windows()
    run = torch.compile(net)
    for _ in range(4):
        x = torch.randn(4, 3)
        row, table, detached, strided, total = run(x)
        row.add_(1), table[0].zero_()
        assert [t.data_ptr() - x.data_ptr() for t in (row, detached, strided)] == [12, 0, 0] and strided.stride() == (2,)
        assert row._base is x and detached._base is None and table._base is net.table._base
        assert torch.equal(detached, x) and net.table[:, 0].tolist() == [0.0] * 3 and x._version == 1
    assert run.compiled.programs == 1
    tracked = torch.randn(4, 3, requires_grad=True)
    run(tracked)[0].sum().backward()
    assert tracked.grad[:, 0].tolist() == [0.0, 1.0, 1.0, 1.0] and "history" in run.compiled.reasons[0]


def test_an_attribute_is_no_global_of_that_name():
    """A loop's counter `step` beside `optimizer.step()`: the function does not read it."""
    space = {"torch": torch}
    exec("step = 0\nnet = torch.nn.Linear(2, 2)\noptimizer = torch.optim.SGD(net.parameters(), 0.1)\ndef train(x):\n    optimizer.zero_grad()\n    net(x).sum().backward()\n    optimizer.step()\ndef read(x):\n    return x * step", space)
    run, read = torch.compile(space["train"]), torch.compile(space["read"])
    for space["step"] in range(5):
        run(torch.ones(3, 2))
        assert read(torch.ones(1)).item() == space["step"]
    assert run.programs == 2 and read.programs == 5


def test_tensors_of_numbers_are_constants():
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.factors = [1.0, 2.0, 3.0]

        def forward(self, x):
            return x * torch.tensor(self.factors) + torch.tensor([[1], [2]]) + F.embedding(torch.tensor([1, 0]), torch.eye(3))

    net = Table()
    run = torch.compile(net)
    for number in range(6):
        if number == 3:
            net.factors[1] = 5.0
        x = torch.randn(2, 3, requires_grad=True)
        out = run(x)
        out.sum().backward()
        assert torch.equal(out, net(x)) and x.grad.tolist() == [net.factors] * 2
    assert run.compiled.programs == 2 and not run.compiled.reasons


def test_what_was_recorded_serves_on_when_no_more_is():
    """A call under other guards, one kind too many, runs eagerly; the recorded kind is still replayed afterwards."""
    net = torch.nn.Linear(3, 3)
    net.factor = 2
    compiled = torch.compile(lambda x: net(x).tanh() * net.factor)
    compiled.limit = 1
    x = torch.ones(2, 3)
    for _ in range(2):
        out = compiled(x)
        out.sum().backward()
    expected = out.sum().item()
    net.factor = 3
    assert compiled(x).grad_fn.name() == "MulBackward0"
    net.factor = 2
    again = compiled(x)
    assert again.grad_fn.name() == "CompiledFunctionBackward0" and again.sum().item() == expected
    assert compiled.reasons == ["it was recorded for 1 kinds of call already"]
    for size in range(3, 20):  # nothing is kept of kinds that are not recorded
        compiled(torch.ones(size, 3))
    assert compiled.programs == 1 and not compiled.eager
