"""Optimisers by hand-computed steps and by values PyTorch gave once; state dicts; schedules by their formulas."""
import copy
import math

import pytest

import strided as torch
from strided.optim import SGD, Adagrad, Adam, AdamW, RMSprop, lr_scheduler


def stepped(make, grads, start=1.0):
    """The parameter after each of the given gradients."""
    p = torch.tensor([start], requires_grad=True)
    optimizer, out = make([p]), []
    for g in grads:
        p.grad = torch.tensor([float(g)])
        optimizer.step()
        out.append(p.item())
    return out


def test_sgd():
    assert stepped(lambda p: SGD(p, lr=0.5), [1, 1]) == [0.5, 0.0]
    assert stepped(lambda p: SGD(p, lr=0.5, momentum=0.5), [1, 1]) == [0.5, -0.25]
    assert stepped(lambda p: SGD(p, lr=0.5, momentum=0.5, nesterov=True), [1, 1]) == [0.25, -0.625]
    assert stepped(lambda p: SGD(p, lr=0.5, weight_decay=0.5), [1]) == [0.25]
    assert stepped(lambda p: SGD(p, lr=0.5, maximize=True), [1]) == [1.5]


def test_adam_by_hand():
    p = m = v = 0.0
    found = stepped(lambda p: Adam(p, lr=0.1), [1.0, -2.0, 0.5], start=0.0)
    for t, g in enumerate([1.0, -2.0, 0.5], 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        p -= 0.1 * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.999**t)) + 1e-8)
        assert found[t - 1] == pytest.approx(p, rel=1e-5)


GOLDEN = {
    "Rprop(p, lr=0.1)": [0.7441601, 0.7441601, 0.7441601],
    "ASGD(p, lr=0.1, t0=2.0)": [0.6723007, 1.344601, 2.016902],
    "Adafactor(p, lr=0.5)": [0.003254109, 0.003254994, 0.00325529],
    "SGD(p, lr=0.1, momentum=0.9, dampening=0.1)": [1.533643, 3.067285, 4.600928],
    "Adam(p, lr=0.1, weight_decay=0.1, amsgrad=True)": [0.4913906, 0.496849, 0.4981124],
    "AdamW(p, lr=0.1)": [0.4910571, 0.4960518, 0.4972253],
    "RMSprop(p, lr=0.1, centered=True, momentum=0.5)": [0.8106761, 2.302833, 3.426194],
    "Adagrad(p, lr=0.5, lr_decay=0.1)": [0.9110822, 1.195664, 1.278649],
    "Adadelta(p)": [0.01636868, 0.01640086, 0.01641157],
    "Adamax(p, lr=0.1)": [0.4484462, 0.4742224, 0.4830364],
    "NAdam(p, lr=0.1)": [0.3763371, 0.3915404, 0.3962012],
    "RAdam(p, lr=0.1, betas=(0.9, 0.9))": [0.7983521, 1.596704, 2.395056],
}


def quadratic(make):
    """Where PyTorch's rule leads on (x − [1, 2, 3])² in five steps from zero."""
    p = torch.zeros(3, requires_grad=True)
    optimizer = make([p])
    for _ in range(5):
        optimizer.zero_grad()
        ((p - torch.tensor([1.0, 2.0, 3.0])) ** 2).sum().backward()
        optimizer.step()
    return p.tolist()


@pytest.mark.parametrize("text", GOLDEN)
def test_golden(text):
    assert quadratic(lambda p: eval(f"optim.{text}", {"optim": torch.optim, "p": p})) == pytest.approx(GOLDEN[text], rel=1e-5)


def test_groups_and_their_options():
    a, b = (torch.ones(1, requires_grad=True) for _ in range(2))
    optimizer = SGD([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.25)
    for p in (a, b):
        p.grad = torch.ones(1)
    optimizer.step()
    assert (a.item(), b.item()) == (0.75, 0.5)
    optimizer.add_param_group({"params": [torch.ones(1, requires_grad=True)], "momentum": 0.9})
    assert [g["momentum"] for g in optimizer.param_groups] == [0, 0, 0.9]
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        optimizer.add_param_group({"params": [a]})


def test_parameters_without_gradients_stay():
    a, b = (torch.ones(1, requires_grad=True) for _ in range(2))
    optimizer = Adam([a, b], lr=0.1)
    a.grad = torch.ones(1)
    optimizer.step()
    assert b.item() == 1 and b not in optimizer.state and a.item() == pytest.approx(0.9)
    optimizer.zero_grad(set_to_none=False)
    assert a.grad.item() == 0
    optimizer.zero_grad()
    assert a.grad is None


def test_closure():
    p = torch.tensor([2.0], requires_grad=True)
    optimizer = SGD([p], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 4 and p.item() == 1


@pytest.mark.parametrize("make", [lambda p: SGD(p, lr=0.1, momentum=0.9), lambda p: AdamW(p, lr=0.1), lambda p: RMSprop(p, momentum=0.5), lambda p: Adagrad(p)])
def test_state_dict_resumes_exactly(make):
    p = torch.tensor([1.0, 2.0], requires_grad=True)
    optimizer = make([p])

    def step(optimizer, p):
        p.grad = p.detach() * 2
        optimizer.step()

    step(optimizer, p)
    step(optimizer, p)
    state = copy.deepcopy(optimizer.state_dict())
    q = p.detach().clone().requires_grad_()
    other = make([q])
    other.load_state_dict(state)
    for _ in range(3):
        step(optimizer, p)
        step(other, q)
    assert p.tolist() == q.tolist()
    assert state["param_groups"][0]["params"] == [0] and list(state["state"]) == [0]


def test_loading_a_state_dict_that_does_not_fit():
    one, two = ([torch.ones(1, requires_grad=True) for _ in range(n)] for n in (1, 2))
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        SGD(one).load_state_dict(SGD(two).state_dict())


def test_errors():
    p = torch.ones(1, requires_grad=True)
    for make, kind, text in (
        (lambda: SGD([]), ValueError, "optimizer got an empty parameter list"),
        (lambda: SGD(p), TypeError, "params argument given to the optimizer should be an iterable"),
        (lambda: SGD([3]), TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
        (lambda: SGD([p * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: Adam([p], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda: SGD([p], nesterov=True), ValueError, "Nesterov momentum requires a momentum and zero dampening"),
        (lambda: SGD([p], differentiable=True, fused=True), RuntimeError, "`fused` does not support `differentiable`"),
    ):
        with pytest.raises(kind, match=text):
            make()


def test_step_hooks():
    p = torch.ones(1, requires_grad=True)
    optimizer, log = SGD([p]), []
    optimizer.register_step_pre_hook(lambda o, a, k: log.append("before"))
    handle = optimizer.register_step_post_hook(lambda o, a, k: log.append("after"))
    optimizer.step()
    handle.remove()
    optimizer.step()
    assert log == ["before", "after", "before"]


def test_training_reaches_the_optimum():
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    target = x @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.25
    layer = torch.nn.Linear(3, 1)
    optimizer = Adam(layer.parameters(), lr=0.1)
    for _ in range(150):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(layer(x), target)
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-4
    assert torch.allclose(layer.weight, torch.tensor([[1.0, -2.0, 0.5]]), atol=0.02)


# ---- schedules --------------------------------------------------------------------------------------------------------


def rates(make, steps, **options):
    p = torch.ones(1, requires_grad=True)
    optimizer = SGD([p], lr=1.0, **options)
    schedule, out = make(optimizer), []
    for _ in range(steps):
        out.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return out


SCHEDULES = [
    (lambda o: lr_scheduler.LambdaLR(o, lambda e: 1 / (e + 1)), lambda e: 1 / (e + 1)),
    (lambda o: lr_scheduler.StepLR(o, 3, 0.5), lambda e: 0.5 ** (e // 3)),
    (lambda o: lr_scheduler.MultiStepLR(o, [2, 5], 0.1), lambda e: 0.1 ** ((e >= 2) + (e >= 5))),
    (lambda o: lr_scheduler.ExponentialLR(o, 0.9), lambda e: 0.9**e),
    (lambda o: lr_scheduler.LinearLR(o, 0.25, 1.0, 6), lambda e: 0.25 + 0.75 * min(e, 6) / 6),
    (lambda o: lr_scheduler.CosineAnnealingLR(o, 8, 0.1), lambda e: 0.1 + 0.9 * (1 + math.cos(math.pi * e / 8)) / 2),
    (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 4), lambda e: (1 + math.cos(math.pi * (e % 4) / 4)) / 2),
    (lambda o: lr_scheduler.PolynomialLR(o, 8, 2.0), lambda e: (1 - min(e, 8) / 8) ** 2),
    (
        lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.LinearLR(o, 0.25, 1.0, 4), lr_scheduler.ExponentialLR(o, 0.5)], [4]),
        lambda e: 0.25 + 0.75 * e / 4 if e < 4 else 0.5 ** (e - 4),
    ),
]


@pytest.mark.parametrize("make,formula", SCHEDULES)
def test_schedules(make, formula):
    assert rates(make, 8) == pytest.approx([formula(e) for e in range(8)], rel=1e-9, abs=1e-12)


def test_one_cycle():
    found = rates(lambda o: lr_scheduler.OneCycleLR(o, 2.0, total_steps=11, pct_start=0.3), 11, momentum=0.9)
    assert found[0] == pytest.approx(2.0 / 25) and max(found) == pytest.approx(2.0, rel=0.03) and found[-1] == pytest.approx(2.0 / 25 / 1e4)


def test_plateau():
    p = torch.ones(1, requires_grad=True)
    optimizer = SGD([p], lr=1.0)
    schedule, out = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1), []
    for metric in (5, 4, 4, 4, 4, 4, 3):
        schedule.step(metric)
        out.append(optimizer.param_groups[0]["lr"])
    assert out == [1, 1, 1, 0.5, 0.5, 0.25, 0.25]


def test_schedule_before_optimizer_warns():
    schedule = lr_scheduler.StepLR(SGD([torch.ones(1, requires_grad=True)]), 3)
    with pytest.warns(UserWarning, match="Detected call of `lr_scheduler.step\\(\\)` before `optimizer.step\\(\\)`"):
        schedule.step()


def test_schedule_state_dict():
    optimizer = SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    schedule = lr_scheduler.StepLR(optimizer, 2, 0.5)
    for _ in range(3):
        optimizer.step()
        schedule.step()
    other = lr_scheduler.StepLR(SGD([torch.ones(1, requires_grad=True)], lr=1.0), 2, 0.5)
    other.load_state_dict(schedule.state_dict())
    assert other.last_epoch == 3 and other.get_last_lr() == [0.5]


def test_updates_are_seen_as_operators():
    from strided.dispatch import listen

    p = torch.ones(4, requires_grad=True)
    p.grad = torch.ones(4)
    events = []
    optimizer = Adam([p])
    with listen(events.append):
        optimizer.step()
    (event,) = [e for e in events if e.op == "adam_"]
    assert event.kind == "inplace" and event.bytes_allocated == 0 and event.inputs[0].shape == (4,)


def test_parameters_that_are_not_contiguous_and_16_bit_ones():
    base = torch.zeros(3, 2)
    p = base.t().detach().requires_grad_()
    p.grad = torch.arange(6).float().reshape(2, 3)
    SGD([p], lr=1.0, momentum=0.5).step()
    assert base.tolist() == [[0, -3], [-1, -4], [-2, -5]]
    q = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    q.grad = torch.ones(2, dtype=torch.bfloat16)
    optimizer = AdamW([q], lr=0.5)
    optimizer.step()
    assert q.dtype == torch.bfloat16 and q.tolist() == [0.494140625] * 2  # 1·(1 − 0.005) − 0.5, rounded
    assert optimizer.state[q]["exp_avg"].dtype == torch.bfloat16


def test_an_infinite_parameter_stays_infinite():
    assert stepped(lambda p: SGD(p, lr=0.5), [1], start=math.inf) == [math.inf]


def test_expanded_parameters_are_refused():
    p = torch.zeros(1, 3).expand(2, 3).detach().requires_grad_()
    p.grad = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"):
        SGD([p]).step()


def test_muon_moves_along_an_orthogonal_matrix():
    torch.manual_seed(0)
    p = torch.zeros(4, 6, requires_grad=True)
    p.grad = torch.randn(4, 6)
    torch.optim.Muon([p], lr=1.0, weight_decay=0.0).step()
    gram = (p @ p.t()).detach()  # about the identity: singular values near one
    assert torch.allclose(gram, torch.eye(4), atol=0.6) and (torch.linalg.vector_norm(p).item() ** 2) == pytest.approx(4, rel=0.5)
    with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
        torch.optim.Muon([torch.zeros(3, requires_grad=True)])
