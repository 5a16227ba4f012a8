"""`torch.compile`: what is recorded gives the eager results, gradients and side effects; what cannot be recorded runs eagerly and says why."""

import copy
import json
import subprocess
import sys

import pytest

import strided as torch
from strided import nn
from strided.nn import functional as F


class Block(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.inner, self.norm, self.out = nn.Linear(16, 32), nn.BatchNorm1d(32), nn.Linear(32, 4)
        self.dropout = nn.Dropout(dropout)
        self.scale = 1.0

    def forward(self, x, target=None):
        h = self.out(self.dropout(F.gelu(self.norm(self.inner(x))))) * self.scale
        return h if target is None else (h, F.cross_entropy(h, target))


def train(call, net, steps=6, seed=0):
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    torch.manual_seed(seed)
    losses = []
    for _ in range(steps):
        x, target = torch.randn(8, 16), torch.randint(0, 4, (8,))
        loss = call(x, target)[1]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_training_is_the_same_and_writes_the_same_buffers(dropout):
    torch.manual_seed(3)
    net = Block(dropout)
    twin = copy.deepcopy(net)
    compiled = torch.compile(net)
    assert train(compiled, net) == pytest.approx(train(twin, twin), rel=1e-5)
    assert compiled.compiled.programs == 1 and not compiled.compiled.reasons
    for name, value in twin.state_dict().items():
        assert torch.allclose(net.state_dict()[name], value, rtol=1e-5, atol=1e-6), name


def test_a_forward_pass_is_replayed_and_its_memory_is_fresh():
    f = torch.compile(lambda a, b: (torch.softmax(a @ b, -1), {"sum": (a + 1).sum()}))
    a, b = torch.randn(5, 6), torch.randn(6, 7)
    first = f(a, b)
    for _ in range(3):
        a, b = torch.randn(5, 6), torch.randn(6, 7)
        out, named = f(a, b)
        assert torch.equal(out, torch.softmax(a @ b, -1)) and torch.equal(named["sum"], (a + 1).sum())
        assert out.data_ptr() != first[0].data_ptr()
    assert f.programs == 1


def test_other_shapes_dtypes_layouts_and_numbers_are_other_recordings():
    f = torch.compile(lambda x, n: x * n + 1)
    for x in (torch.randn(4), torch.randn(2, 3), torch.randn(3, 2).t(), torch.arange(4)):
        for n in (2, 2.5):
            for _ in range(2):
                assert torch.equal(f(x, n), x * n + 1)
    assert f.programs == 8
    assert torch.equal(f(torch.ones(7), 1), torch.full((7,), 2.0))
    assert f.programs == 8 and "8 kinds" in f.reasons[0]


def test_gradients_of_inputs_and_of_several_outputs():
    def f(x, y):
        return (x * y).sin(), (x + y).exp().sum()

    compiled = torch.compile(f)
    for weight in (1.0, 2.0, 3.0):
        x, y = torch.randn(3, 4, requires_grad=True), torch.randn(4, requires_grad=True)
        x2, y2 = x.detach().clone().requires_grad_(), y.detach().clone().requires_grad_()
        for call, a, b in ((compiled, x, y), (f, x2, y2)):
            p, q = call(a, b)
            (p.sum() * weight + q).backward()
        assert torch.allclose(x.grad, x2.grad, rtol=1e-6) and torch.allclose(y.grad, y2.grad, rtol=1e-6)
    assert compiled.programs == 1
    # a gradient for one output only, where the recorded pass had both
    x, y = torch.randn(3, 4, requires_grad=True), torch.randn(4, requires_grad=True)
    (gradient,) = torch.autograd.grad(compiled(x, y)[1], (x,))
    assert torch.equal(gradient, (x + y).exp())


def test_gradients_flow_on_into_what_came_before():
    f = torch.compile(lambda x: (x * x).sum())
    for _ in range(3):
        leaf = torch.randn(5, requires_grad=True)
        f(leaf * 3).backward()
        assert torch.allclose(leaf.grad, 18 * leaf.detach())


def test_two_calls_before_their_gradients():
    f = torch.compile(lambda x: x.exp())
    x = torch.randn(4, requires_grad=True)
    f(x).sum().backward()
    x.grad = None
    a, b = f(x), f(x)
    (a.sum() + 2 * b.sum()).backward()
    assert torch.allclose(x.grad, 3 * x.detach().exp())


def test_retained_graphs_and_freed_ones():
    f = torch.compile(lambda x: x.exp())
    x = torch.ones(2, requires_grad=True)
    f(x).sum().backward()
    out = f(x).sum()
    out.backward(retain_graph=True)
    out.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.backward()


def test_a_result_that_was_overwritten_has_no_gradient():
    f = torch.compile(lambda x: x.exp())
    x = torch.ones(2, requires_grad=True)
    f(x).sum().backward()
    out = f(x)
    out.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_second_derivatives_go_through_the_original():
    w = torch.tensor([0.5, -2.0], requires_grad=True)

    def cubed(x):
        return (w * x**3).sum()

    f = torch.compile(cubed)
    for number in range(4):  # of the recorded call, and of replayed ones
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        if number == 2:
            f(x).backward()
            assert torch.equal(x.grad, 3 * w.detach() * x.detach() ** 2)
            w.grad = x.grad = None
        (first,) = torch.autograd.grad(f(x), x, create_graph=True)
        assert torch.equal(first.detach(), (3 * w * x**2).detach())
        into_x, into_w = torch.autograd.grad(first.sum(), (x, w))
        assert torch.equal(into_x, (6 * w * x).detach()) and torch.equal(into_w, 3 * x.detach() ** 2)
    assert len(f.reasons) == 1 and "create_graph" in f.reasons[0]


def test_function_transforms_of_a_compiled_function():
    def energy(x):
        return (x.sin() * x).sum()

    f, x = torch.compile(energy), torch.linspace(0, 1, 5)
    for _ in range(3):
        torch.testing.assert_close(torch.func.grad(f)(x), x.cos() * x + x.sin())
        torch.testing.assert_close(torch.func.hessian(f)(x), torch.diag(2 * x.cos() - x.sin() * x))


def test_second_derivatives_are_no_part_of_a_whole():
    f = torch.compile(lambda x: x.exp().sum(), fullgraph=True)
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="create_graph=True"):
        torch.autograd.grad(f(x), x, create_graph=True)


def test_gradients_nobody_asks_for():
    f = torch.compile(lambda x: x.exp())
    x = torch.ones(3, requires_grad=True)
    for _ in range(6):
        assert torch.equal(f(x).detach(), x.detach().exp())
    assert f.programs == 1
    f(x).sum().backward()  # and then somebody does
    assert torch.equal(x.grad, x.detach().exp())


def test_modes_training_flags_attributes_and_globals_are_guarded():
    net = Block(0.5)
    compiled = torch.compile(net)
    x = torch.randn(8, 16)
    with torch.no_grad():
        net.eval()
        for _ in range(2):
            assert torch.equal(compiled(x), net(x))
        net.scale = 3.0
        assert torch.equal(compiled(x), net(x))
        net.train()
        torch.manual_seed(0)
        seen = compiled(x)
        torch.manual_seed(0)
        twin = copy.deepcopy(net)
        assert torch.equal(seen, twin(x))

    def uses_global(x):
        return x + OFFSET

    global OFFSET
    OFFSET = 1.0
    f = torch.compile(uses_global)
    assert f(torch.zeros(2)).tolist() == [1, 1] == f(torch.zeros(2)).tolist()
    OFFSET = 5.0
    assert f(torch.zeros(2)).tolist() == [5, 5]


def test_parameters_may_be_replaced():
    net = nn.Linear(3, 2)
    compiled = torch.compile(net)
    x = torch.randn(4, 3)
    with torch.no_grad():
        compiled(x)
        net.weight.copy_(torch.ones(2, 3))
        assert torch.equal(compiled(x), net(x))
        net.weight = nn.Parameter(torch.zeros(2, 3))
        assert torch.equal(compiled(x), net(x))
        net.weight.data = torch.full((2, 3), 2.0)
        assert torch.equal(compiled(x), net(x))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x * 2 if x.sum() > 0 else x, "value"),
        (lambda x: x * x[0].item(), "value"),
        (lambda x: (x.sum(), print(end=""))[0], "print"),
        (lambda x: x.sort()[0] if x.numel() else x, None),
        (lambda x: x.view(torch.int32), "view"),
    ],
)
def test_what_cannot_be_recorded_runs_eagerly(function, reason):
    f = torch.compile(function)
    x = torch.tensor([3.0, 1.0, 2.0])
    for _ in range(3):
        expected, found = function(x), f(x)
        assert torch.equal(found, expected)
    if reason is not None:
        assert f.programs == 0 and reason in f.reasons[0]
        with pytest.raises(RuntimeError, match="cannot be compiled whole"):
            torch.compile(function, fullgraph=True)(x)


def test_a_print_that_is_not_reached_does_not_matter(capsys):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.verbose = False

        def forward(self, x):
            if self.verbose:
                print("forward", tuple(x.shape))
            return x * 2

    net = Net()
    compiled, x, built_in = torch.compile(net), torch.ones(3), print
    assert compiled(x).tolist() == compiled(x).tolist() == [2, 2, 2]
    assert compiled.compiled.programs == 1 and not compiled.compiled.reasons and capsys.readouterr().out == ""
    net.verbose = True
    assert compiled(x).tolist() == compiled(x).tolist() == [2, 2, 2]
    assert capsys.readouterr().out == "forward (3,)\n" * 2 and "it calls print()" in compiled.compiled.reasons[0] and print is built_in
    net.verbose = False
    assert compiled(x).tolist() == [2, 2, 2] and capsys.readouterr().out == ""


def test_what_a_hook_prints_is_not_left_out(capsys):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            print("backward")
            return g * 2

    f, x = torch.compile(lambda x: Double.apply(x).sum()), torch.ones(2, requires_grad=True)
    for _ in range(3):
        x.grad = None
        f(x).backward()
        assert x.grad.tolist() == [2, 2]
    assert capsys.readouterr().out == "backward\n" * 3


def test_python_state_that_changes_is_not_frozen():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    net = Counter()
    compiled = torch.compile(net)
    assert [compiled(torch.ones(1)).item() for _ in range(4)] == [1, 2, 3, 4]
    assert "changes the state" in compiled.compiled.reasons[0]


def test_bad_input_is_told_as_ever():
    net = nn.Embedding(10, 4)
    compiled = torch.compile(net)
    loss = torch.compile(lambda x, t: F.cross_entropy(x, t))
    with torch.no_grad():
        for _ in range(2):
            compiled(torch.tensor([1, 2]))
            loss(torch.randn(2, 3), torch.tensor([0, 2]))
        with pytest.raises(IndexError):
            compiled(torch.tensor([1, 10]))
        with pytest.raises(IndexError):
            loss(torch.randn(2, 3), torch.tensor([0, 3]))
        assert torch.equal(compiled(torch.tensor([3, 4])), net.weight[3:5])


def test_inputs_written_in_place():
    f = torch.compile(lambda x, y: x.add_(y))
    for _ in range(3):
        x, y = torch.ones(3), torch.arange(3.0)
        version = x._version
        assert f(x, y) is x and x.tolist() == [1, 2, 3] and x._version == version + 1
    x = torch.ones(3)
    assert f(x, x) is x and x.tolist() == [2, 2, 2]


def test_errors_leave_no_recording_open():
    def f(x):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        torch.compile(f)(torch.ones(1))
    g = torch.compile(lambda x: x + 1)
    g(torch.ones(1))
    assert g.programs == 1


def test_temporary_memory_is_shared():
    def chain(x):
        for _ in range(20):
            x = (x * 1.01).softmax(-1)
        return x

    f = torch.compile(chain)
    x = torch.randn(64, 64)
    with torch.no_grad():
        assert torch.equal(f(x), chain(x))
        assert torch.equal(f(x), chain(x))
    (entry,), = f.entries.values()
    assert entry.forward.arena <= 2 * 64 * 64 * 4


# ---- fusing -----------------------------------------------------------------------------------------------------------------------


def rms_norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def swiglu(a, b):
    return F.silu(a) * b


def standardised(x):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + 1e-5)


def mixed_dtypes(x, n):
    return ((x.to(torch.bfloat16) * 3 + n) / 7).float() - (n > 2).int()


def reshaped(x):
    return (x.view(4, 6, 8) * 2).view(24, 8).exp() + 1


def transposed(x):
    return (x.t() * 2).exp().t() + x


def columns(x):
    return (x * x).sum(0) + (x + 1).amax(0)


def broadcast(x, y):
    return (x.unsqueeze(1) + y.unsqueeze(0)).relu() * x.unsqueeze(1)


@pytest.mark.parametrize(
    ("function", "shapes", "kernels"),
    [
        (rms_norm, [(24, 8), (8,)], 1),
        (swiglu, [(24, 8), (24, 8)], 1),
        (standardised, [(24, 8)], 2),
        (reshaped, [(24, 8)], 1),
        (transposed, [(24, 8)], 1),
        (columns, [(24, 8)], None),
        (broadcast, [(5, 8), (3, 8)], None),
    ],
)
def test_neighbours_become_one_kernel(function, shapes, kernels):
    torch.manual_seed(0)
    f = torch.compile(function)
    sums = function in (rms_norm, standardised)  # which may be added up in another order
    same = (lambda a, b: torch.allclose(a, b, rtol=1e-6, atol=1e-6)) if sums else torch.equal
    for _ in range(3):
        given = [torch.randn(*shape) for shape in shapes]
        assert same(f(*given), function(*given))
    assert not f.reasons
    if kernels is not None:
        assert f.report()["kinds"][0]["forward"]["kernels"] == kernels
    mine, theirs = ([x.clone().requires_grad_() for x in given] for _ in range(2))
    for _ in range(2):
        for call, leaves in ((f, mine), (function, theirs)):
            for leaf in leaves:
                leaf.grad = None
            call(*leaves).sin().sum().backward()
    for a, b in zip(mine, theirs):
        assert torch.allclose(a.grad, b.grad, rtol=1e-5, atol=1e-5)


def test_fused_values_are_rounded_as_they_would_be_in_memory():
    f = torch.compile(mixed_dtypes)
    x, n = torch.randn(200), torch.arange(200) % 5
    for _ in range(2):
        assert torch.equal(f(x, n), mixed_dtypes(x, n))


def test_what_is_written_in_between_is_read_before():
    def f(x, y):
        a = x * 2  # reads x, which is written before a is used
        x.add_(y)
        return a + x

    compiled = torch.compile(f)
    for _ in range(3):
        x, y = torch.ones(4), torch.arange(4.0)
        assert torch.equal(compiled(x, y), torch.tensor([3.0, 4.0, 5.0, 6.0]))


def test_the_report_names_lines_and_traffic():
    def f(x):
        y = x * 2
        return y + 1

    compiled = torch.compile(f)
    compiled(torch.ones(1000))
    report = compiled.report()
    forward = report["kinds"][0]["forward"]
    first = f.__code__.co_firstlineno
    assert report["name"].endswith("f") and forward["steps"] == 2 and forward["kernels"] == 1
    (group,) = forward["fused"]
    assert [line for _, line in group["lines"]] == [first + 1, first + 2] and group["saved"] == 2 * 4000


def test_methods_and_objects_as_arguments():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 2.0

        @torch.compile
        def forward(self, x):
            return x * self.factor

    net = Scale()
    x = torch.ones(3)
    assert net(x).tolist() == net(x).tolist() == [2, 2, 2]
    net.factor = 4.0
    assert net(x).tolist() == [4, 4, 4]
    assert Scale.forward.programs == 2


SCRIPT = """
import torch

@torch.compile
def scaled(x):
    y = x * 2
    return y + 1

@torch.compile
def decided(x):
    return x if x.sum() > 0 else -x

for _ in range(2):
    scaled(torch.ones(1000))
    decided(torch.ones(3))
"""


def test_annotate_shows_what_was_compiled(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    run = lambda *words: subprocess.run([sys.executable, "-m", "strided", "annotate", "--compiled", *words, str(tmp_path / "script.py")], capture_output=True, text=True, check=True).stdout
    shown = run()
    assert "scaled: 1 kind of call recorded\n  forward: 2 steps in 1 kernel, 7.8 KiB less traffic" in shown
    assert "script.py:6  y = x * 2\n      script.py:7  return y + 1" in shown
    assert "decided: 0 kinds of call recorded\n  runs eagerly: Python reads a tensor's value (script.py, line 11)" in shown
    facts = json.loads(run("--json"))["functions"]
    assert [f["name"] for f in facts] == ["scaled", "decided"] and facts[0]["kinds"][0]["forward"]["fused"][0]["saved"] == 8000


STEP = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 8))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)

@torch.compile
def step(x):
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()

for _ in range(3):
    step(torch.randn(4, 8))
"""


def test_annotate_shows_updates_and_derivatives(tmp_path):
    (tmp_path / "script.py").write_text(STEP)
    shown = subprocess.run([sys.executable, "-m", "strided", "annotate", "--compiled", str(tmp_path / "script.py")], capture_output=True, text=True, check=True).stdout
    assert "  8 numbers of updates taken anew by every call: AdamW (4 parameters)\n" in shown
    assert "  derivative kept in place of the argument: script.py:9  net(x).square().mean().backward()" in shown


def test_a_gradient_that_is_one_number_and_then_many(monkeypatch):
    """The first backward pass is a sum's, whose gradient is one number for all elements; the recorded program serves others as well."""
    run, x = torch.compile(lambda x: (x * x).relu() + x), torch.randn(3, 4).requires_grad_()
    out = run(x)
    out.sum().backward()
    monkeypatch.setattr(type(out.grad_fn), "recompute", None)  # nothing is computed by the function itself from here on
    for g in (torch.randn(3, 4), torch.randn(4, 3).t(), torch.ones(1, 1).expand(3, 4), torch.randn(3, 8)[:, ::2]):
        x.grad = None
        run(x).backward(g)
        assert torch.allclose(x.grad, g * (2 * x.detach() + 1))
