"""A whole training step compiled: gradients left in `.grad`, parameters written by the optimiser, all in one program; whatever that cannot be runs eagerly and is as right."""
import copy

import pytest

import strided as torch
from strided import nn
from strided.memory import max_memory_allocated, memory_allocated, reset_peak_memory_stats

F = nn.functional


def setting(optimizer=torch.optim.SGD, **options):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(12, 40), nn.ReLU(), nn.Linear(40, 5))
    return net, optimizer(net.parameters(), **{"lr": 0.1, **options})


def step_of(net, optimizer, zero=True, keep=False, clip=None):
    def step(x, y):
        if zero:
            optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        return loss if keep else loss.detach()

    return step


def batches(count, rows=32):
    torch.manual_seed(1)
    return [(torch.randn(rows, 12), torch.randint(0, 5, (rows,))) for _ in range(count)]


def same(net, other):
    for p, q in zip(net.parameters(), other.parameters()):
        torch.testing.assert_close(p.detach(), q.detach(), rtol=1e-6, atol=1e-7)
        assert (p.grad is None) is (q.grad is None)
        if p.grad is not None:
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_step_is_one_program(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        (net, optimizer), (other, its) = setting(), setting()
        run, eager = torch.compile(step_of(net, optimizer)), step_of(other, its)
        seen = []
        for x, y in batches(8):
            versions = [p._version for p in net.parameters()]
            assert torch.allclose(run(x, y), eager(x, y), rtol=1e-6)
            same(net, other)
            assert [p._version for p in net.parameters()] == [v + 1 for v in versions]
            seen.append(net[0].weight.grad)
        assert len({id(g) for g in seen}) == len({g.data_ptr() for g in seen}) == 8  # gradients of earlier steps stay what they were
        assert run.programs == 2 and not run.reasons  # without gradients to drop, and with
    finally:
        torch.set_num_threads(before)


def test_the_update_is_part_of_the_gradients_product():
    torch.manual_seed(0)
    net = nn.Linear(200, 300)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    run, x = torch.compile(step), torch.randn(160, 200)
    for _ in range(3):
        run(x)
    assert run.programs == 2
    assert any(group["saved"] >= 4 * 200 * 300 for group in run.report()["kinds"][1]["forward"]["fused"])


def test_gradients_that_were_there_are_added_to():
    (net, optimizer), (other, its) = setting(), setting()
    run, eager = torch.compile(step_of(net, optimizer, zero=False)), step_of(other, its, zero=False)
    for number, (x, y) in enumerate(batches(7)):
        run(x, y), eager(x, y)
        same(net, other)
        if number % 3 == 2:
            optimizer.zero_grad(), its.zero_grad()


O, L = torch.optim, torch.optim.lr_scheduler
OPTIMISERS = [
    (O.SGD, {"momentum": 0.9}), (O.SGD, {"weight_decay": 0.1, "nesterov": True, "momentum": 0.5}), (O.AdamW, {"lr": 0.01}), (O.Adam, {"lr": 0.01, "amsgrad": True}),
    (O.Adam, {"lr": torch.tensor(0.01)}), (O.AdamW, {"maximize": True}), (O.RMSprop, {"momentum": 0.5}), (O.Adagrad, {"lr_decay": 0.1}), (O.Adamax, {}), (O.Rprop, {}),
]  # fmt: skip


@pytest.mark.parametrize("schedule", [None, lambda o: L.CosineAnnealingLR(o, 5), lambda o: L.OneCycleLR(o, 0.02, total_steps=12, cycle_momentum="lr_decay" not in o.defaults)])
@pytest.mark.parametrize("optimizer, options", OPTIMISERS)
def test_optimisers_with_state(optimizer, options, schedule):
    options = {k: v.clone() if torch.is_tensor(v) else v for k, v in options.items()}
    if schedule is not None and not ({"betas", "momentum"} & setting(optimizer, **options)[1].defaults.keys()):
        schedule = lambda o: L.ExponentialLR(o, 0.9)
    (net, ours), (other, its) = [setting(optimizer, **{k: v.clone() if torch.is_tensor(v) else v for k, v in options.items()}) for _ in range(2)]
    run, eager = torch.compile(step_of(net, ours, clip=0.5)), step_of(other, its, clip=0.5)
    schedules = [] if schedule is None else [schedule(ours), schedule(its)]
    for x, y in batches(9):
        assert torch.equal(run(x, y), eager(x, y))
        for one in schedules:
            one.step()
        identical(net, ours, other, its)
    assert run.programs <= 2 and not run.reasons  # the first step makes what is kept


def identical(net, ours, other, its):
    for p, q in zip(net.parameters(), other.parameters()):
        assert torch.equal(p, q)
        assert ours.state[p].keys() == its.state[q].keys()
        for name, kept in ours.state[p].items():
            assert torch.equal(kept, its.state[q][name]), name


def _decay(ours):
    ours.param_groups[0]["weight_decay"] = 0.1


def _count(ours):
    list(ours.state.values())[0]["step"].fill_(40.0)


def _load(ours):
    ours.load_state_dict(copy.deepcopy(ours.state_dict()))


def _rate(ours):
    ours.param_groups[1]["lr"] = 0.3


def _tensor(ours):
    ours.param_groups[0]["lr"] = torch.tensor(0.03)


def test_gradients_that_stay_where_they_are():
    """Gradients are accumulated over calls, zeroed in place, used by a step that is compiled alone: they are external tensors then."""
    (net, ours), (other, its) = setting(O.Adam, lr=0.01), setting(O.Adam, lr=0.01)

    def gradients(net, optimizer):
        def run(x, y):
            optimizer.zero_grad(set_to_none=False)
            for half in range(2):
                (F.cross_entropy(net(x[half::2]), y[half::2]) / 2).backward()

        return run

    run, step, eager = torch.compile(gradients(net, ours)), torch.compile(ours.step), gradients(other, its)
    for number, (x, y) in enumerate(batches(8)):
        held = net[0].weight.grad
        was = held is not None and held._version
        run(x, y), eager(x, y)
        if number:
            assert net[0].weight.grad.data_ptr() == held.data_ptr() and held._version == was + 3 and torch.equal(held, net[0].weight.grad)
        same(net, other)
        step(), its.step()
        identical(net, ours, other, its)
    assert run.programs == 2 and step.programs == 1 and not run.reasons and not step.reasons


def test_gradients_that_a_step_adds_to_are_one_program():
    (net, optimizer), (other, its) = setting(), setting()
    run, eager = torch.compile(step_of(net, optimizer, zero=False)), step_of(other, its, zero=False)
    for number, (x, y) in enumerate(batches(9)):
        run(x, y), eager(x, y)
        same(net, other)
        if number % 3 == 2:
            optimizer.zero_grad(), its.zero_grad()
    assert run.programs == 2 and not run.reasons


def test_a_gradient_that_comes_later_is_dropped_as_well():
    (net, optimizer), (other, its) = setting(), setting()
    net[2].bias.requires_grad_(False), other[2].bias.requires_grad_(False)
    run, eager = torch.compile(step_of(net, optimizer)), step_of(other, its)
    for number, (x, y) in enumerate(batches(7)):
        if number > 3:
            net[2].bias.grad, other[2].bias.grad = torch.ones(5), torch.ones(5)
        run(x, y), eager(x, y)
        same(net, other)


@pytest.mark.parametrize("change, kinds", [(_decay, 2), (_count, 2), (_load, 2), (_rate, 1), (_tensor, 1)])
def test_what_changes_between_steps(change, kinds):
    """Numbers are taken anew; another formula, or parameters that are no longer counted together, are another kind of call."""

    def made():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(12, 40), nn.ReLU(), nn.Linear(40, 5))
        first, last = net[0].parameters(), net[2].parameters()
        return net, torch.optim.Adam([{"params": first}, {"params": last, "lr": 0.02}], lr=0.01)

    (net, ours), (other, its) = made(), made()
    run, eager = torch.compile(step_of(net, ours)), step_of(other, its)
    for number, (x, y) in enumerate(batches(10)):
        if number == 5:
            change(ours), change(its)
        run(x, y), eager(x, y)
        identical(net, ours, other, its)
    assert run.programs == kinds and not run.reasons


def test_two_steps_in_a_call_and_a_rate_that_the_function_reads():
    (net, ours), (other, its) = setting(O.Adam, lr=0.01), setting(O.Adam, lr=0.01)

    def twice(net, optimizer):
        one = step_of(net, optimizer)

        def run(x, y):
            one(x, y)
            return one(x, y) * optimizer.param_groups[0]["lr"]

        return run

    run, eager = torch.compile(twice(net, ours)), twice(other, its)
    for number, (x, y) in enumerate(batches(6)):
        for optimizer in (ours, its):
            optimizer.param_groups[0]["lr"] = 0.01 if number < 4 else 0.02
        assert torch.equal(run(x, y), eager(x, y))
        identical(net, ours, other, its)
    assert run.programs == 2


def test_rules_that_need_what_they_have_just_written_run_eagerly():
    (net, ours), (other, its) = setting(O.NAdam), setting(O.NAdam)
    run, eager = torch.compile(step_of(net, ours)), step_of(other, its)
    for x, y in batches(4):
        assert torch.equal(run(x, y), eager(x, y))
        identical(net, ours, other, its)
    assert not run.programs and run.reasons


def test_what_first_calls_fill():
    class Tables(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = None

        def forward(self, x):
            if self.table is None:
                self.table = torch.arange(x.shape[-1]) * 0.5
            return x * self.table + 1

    module = Tables()
    run = torch.compile(module)
    for _ in range(4):
        x = torch.randn(3, 4)
        assert torch.equal(run(x), x * (torch.arange(4) * 0.5) + 1)
    assert run.compiled.programs == 1 and not run.compiled.reasons


def test_a_learning_rate_that_changes():
    (net, ours), (other, its) = setting(), setting()
    run, eager = torch.compile(step_of(net, ours)), step_of(other, its)
    for number, (x, y) in enumerate(batches(6)):
        for one in (ours, its):
            one.param_groups[0]["lr"] = 0.1 if number < 4 else 0.01
        run(x, y), eager(x, y)
        same(net, other)


def test_hooks_on_parameters_run():
    net, optimizer = setting()
    run = torch.compile(step_of(net, optimizer))
    (x, y), *_ = batches(1)
    for _ in range(3):
        run(x, y)
    calls = []
    handle = net[0].weight.register_hook(lambda g: calls.append(g.shape))
    later = net[2].weight.register_post_accumulate_grad_hook(lambda p: calls.append(p.shape))
    for _ in range(2):
        run(x, y)
    assert calls == [(5, 40), (40, 12)] * 2 or calls == [(40, 12), (5, 40)] * 2
    handle.remove(), later.remove()


@pytest.mark.parametrize("everywhere", [False, True])
def test_hooks_of_optimisers_run(everywhere):
    net, optimizer = setting()
    run = torch.compile(step_of(net, optimizer))
    (x, y), *_ = batches(1)
    for _ in range(3):
        run(x, y)
    calls = []
    register = torch.optim.optimizer.register_optimizer_step_post_hook if everywhere else optimizer.register_step_post_hook
    handle = register(lambda *_: calls.append(1))
    try:
        for _ in range(4):
            run(x, y)
    finally:
        handle.remove()
    assert len(calls) == 4


def test_the_loss_that_is_returned_is_used_up():
    net, optimizer = setting()
    run = torch.compile(step_of(net, optimizer, keep=True))
    (x, y), *_ = batches(1)
    for _ in range(4):
        loss = run(x, y)
        assert loss.requires_grad and loss.grad_fn is not None
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            loss.backward()
    assert run.programs == 2


def test_a_step_that_drops_its_gradients_in_the_end():
    """As many loops are written; the loss that it returns still says that it had a graph, which the step itself used up."""
    (net, optimizer), (other, its) = setting(), setting()

    def make(net, optimizer):
        def step(x, y):
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return step

    run, eager = torch.compile(make(net, optimizer)), make(other, its)
    for x, y in batches(4):
        found = run(x, y)
        assert found.requires_grad and torch.allclose(found.detach(), eager(x, y).detach(), rtol=1e-6)
        with pytest.raises(RuntimeError, match="a second time"):
            found.backward()
        same(net, other)
    assert run.programs == 1 and not run.reasons


def test_a_parameter_that_moves_or_is_the_input():
    (net, optimizer), (other, its) = setting(), setting()
    run, eager = torch.compile(step_of(net, optimizer)), step_of(other, its)
    (x, y), *more = batches(6)
    for number, (x, y) in enumerate(more):
        run(x, y), eager(x, y)
        same(net, other)
        if number == 2:
            net[0].weight.data = net[0].weight.detach().clone()
    w, v = net[0].weight.detach()[:32], other[0].weight.detach()[:32]  # written while it is read
    for _ in range(2):
        run(w, y[:32]), eager(v, y[:32])
        same(net, other)


def test_frozen_parameters_and_unused_ones():
    torch.manual_seed(0)
    net = nn.ModuleDict({"a": nn.Linear(12, 5), "b": nn.Linear(12, 5)})
    net["a"].bias.requires_grad_(False)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)

    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(net["a"](x), y).backward()
        optimizer.step()

    run = torch.compile(step)
    (x, y), *_ = batches(1)
    before = copy.deepcopy(net.state_dict())
    for _ in range(4):
        run(x, y)
    assert net["b"].weight.grad is None and net["a"].bias.grad is None and net["a"].weight.grad is not None
    assert torch.equal(net["a"].bias, before["a.bias"]) and not torch.equal(net["a"].weight, before["a.weight"])


def test_only_gradients():
    net, _ = setting()
    other = copy.deepcopy(net)

    def gradients(module, x, y):
        module.zero_grad()
        F.cross_entropy(module(x), y).backward()

    run = torch.compile(lambda x, y: gradients(net, x, y))
    for x, y in batches(5):
        run(x, y)
        gradients(other, x, y)
        same(net, other)


def test_a_step_needs_little_more_memory_than_the_eager_one():
    peaks = []
    for compiled in (False, True):
        net, optimizer = setting()
        step = step_of(net, optimizer)
        step = torch.compile(step) if compiled else step
        (x, y), *_ = batches(1, 512)
        for _ in range(4):
            step(x, y)
        before = memory_allocated()
        reset_peak_memory_stats()
        step(x, y)
        peaks.append(max_memory_allocated() - before)
    assert peaks[1] < 1.1 * peaks[0]  # gradients have their memory from the start


def test_a_backward_pass_that_leaves_the_function():
    """Its argument has a history: gradients go on to where that began."""
    weight = torch.ones(3, requires_grad=True)

    def run(x):
        (x * weight).sum().backward()

    step = torch.compile(run)
    for number in range(4):
        leaf = torch.full((3,), 2.0, requires_grad=True)
        hooked = []
        x = leaf * 1 if number else leaf
        x.register_hook(lambda g, hooked=hooked: hooked.append(g.tolist()))
        weight.grad = None
        step(x)
        assert leaf.grad.tolist() == [1.0] * 3 and weight.grad.tolist() == [2.0] * 3 and hooked == [[1.0] * 3]
        assert x._node is None or x._node.hooks is not None


def test_a_parameter_that_comes_with_its_gradient():
    """Both are arguments, and the function may look at `.grad`, too, which need not be what it is given."""

    @torch.compile(fullgraph=True)
    def step(p, grad):
        with torch.no_grad():
            p.sub_(grad * 0.5 + p.grad)

    p, other = torch.nn.Parameter(torch.ones(3)), torch.ones(3)
    p.grad = torch.arange(3.0)
    step(p, p.grad)
    assert p.tolist() == [1, -0.5, -2]  # less 1.5 times its gradient
    for _ in range(2):
        p.grad = torch.full((3,), 2.0)
        before = p.detach() - 2.5
        step(p, other)
        assert p.tolist() == before.tolist()
        before = p.detach() - 3
        step(p, p.grad)
        assert p.tolist() == before.tolist()
    assert len(step.report()["kinds"]) == 2


def test_a_fused_step_over_many_parameters():
    def step(p, grad, average, rate):
        average.lerp_(grad, 0.5)
        p.add_(average, alpha=-rate)

    compiled = torch.compile(dynamic=False, fullgraph=True)(step)
    ways = []
    for function in (compiled, step):
        parameters = [nn.Parameter(torch.arange(6.0).view(2, 3) / k) for k in (1, 2, 3)]
        averages = [torch.zeros(2, 3) for _ in parameters]
        for _ in range(4):
            sum(((p - k) ** 2).sum() for k, p in enumerate(parameters)).backward()
            with torch.no_grad():
                for p, average in zip(parameters, averages):
                    function(p, p.grad, average, 0.25)
                    p.grad = None
        ways.append([p.tolist() for p in parameters])
    assert ways[0] == [[pytest.approx(row, rel=1e-6) for row in rows] for rows in ways[1]]
    assert len(compiled.report()["kinds"]) == 1 and not compiled.reasons
