"""Optimisers and schedules against PyTorch: parameters, state dicts, learning rates step by step, and errors."""
import copy
import inspect

import pytest

torch = pytest.importorskip("torch")
import strided
import strided.optim

RULES = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "dampening": 0.5, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"weight_decay": 0.1, "amsgrad": True}),
    ("Adam", {"maximize": True}),
    ("AdamW", {}),
    ("AdamW", {"amsgrad": True}),
    ("RMSprop", {}),
    ("RMSprop", {"centered": True, "momentum": 0.9, "weight_decay": 0.1}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.1}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "maximize": True}),
    ("ASGD", {"lr": 0.1, "lambd": 0.01, "weight_decay": 0.1}),
    ("ASGD", {"lr": 0.1, "t0": 2.0}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.5, "weight_decay": 0.1, "eps": (1e-10, 0.01)}),
    ("RAdam", {}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "betas": (0.9, 0.9)}),
]


def train(library, rule, options, steps=7):
    library.manual_seed(0)
    a, b, x = library.randn(3, 4), library.randn(5), library.randn(7, 3)
    parameters = [a.requires_grad_(), b.requires_grad_()]
    optimizer = getattr(library.optim, rule)(parameters, **options)
    for i in range(steps):
        optimizer.zero_grad()
        ((x @ a).tanh().sum() + (b**2).sum()).backward()
        optimizer.step()
        if i == 3:  # a new optimizer takes over the state
            state = copy.deepcopy(optimizer.state_dict())
            optimizer = getattr(library.optim, rule)(parameters, **options)
            optimizer.load_state_dict(state)
    return [p.detach().numpy() for p in parameters], optimizer.state_dict()


def close(a, b, rtol=1e-5, atol=1e-6):
    torch.testing.assert_close(torch.as_tensor(a), torch.as_tensor(b), rtol=rtol, atol=atol)


@pytest.mark.parametrize("rule,options", RULES)
def test_rules(rule, options):
    mine, state = train(strided, rule, options)
    theirs, other = train(torch, rule, {**options, "foreach": False})
    for a, b in zip(mine, theirs):
        close(a.copy(), b)
    for group in (*state["param_groups"], *other["param_groups"]):
        group.pop("foreach")
    assert state["param_groups"] == other["param_groups"]
    assert state["state"].keys() == other["state"].keys()
    for key in state["state"]:
        assert list(state["state"][key]) == list(other["state"][key])
        for name, value in state["state"][key].items():
            close(value.numpy().copy(), other["state"][key][name])


SCHEDULES = {
    "lambda": lambda L, o: L.LambdaLR(o, lambda e: 0.95**e),
    "lambdas": lambda L, o: L.LambdaLR(o, [lambda e: 0.95**e, lambda e: 1 / (e + 1)]),
    "multiplicative": lambda L, o: L.MultiplicativeLR(o, lambda e: 0.95),
    "step": lambda L, o: L.StepLR(o, 4),
    "multistep": lambda L, o: L.MultiStepLR(o, [3, 7, 7, 12], 0.5),
    "constant": lambda L, o: L.ConstantLR(o, 0.5, 4),
    "linear": lambda L, o: L.LinearLR(o, 0.1, 1.0, 7),
    "exponential": lambda L, o: L.ExponentialLR(o, 0.9),
    "polynomial": lambda L, o: L.PolynomialLR(o, 10, 2.0),
    "cosine": lambda L, o: L.CosineAnnealingLR(o, 8, 0.01),
    "restarts": lambda L, o: L.CosineAnnealingWarmRestarts(o, 4, 2),
    "one cycle": lambda L, o: L.OneCycleLR(o, 1.0, total_steps=30),
    "three phases": lambda L, o: L.OneCycleLR(o, [1.0, 2.0], total_steps=30, three_phase=True, anneal_strategy="linear"),
    "cyclic": lambda L, o: L.CyclicLR(o, 0.1, 1.0, 4, mode="triangular2"),
    "sequential": lambda L, o: L.SequentialLR(o, [L.LinearLR(o, 0.1, 1.0, 5), L.CosineAnnealingLR(o, 12)], [5]),
    "three": lambda L, o: L.SequentialLR(o, [L.ConstantLR(o, 0.1, 3), L.ExponentialLR(o, 0.9), L.StepLR(o, 2)], [3, 10]),
    "chained": lambda L, o: L.ChainedScheduler([L.LinearLR(o, 0.1, 1.0, 5), L.ExponentialLR(o, 0.9)]),
    "plateau": lambda L, o: L.ReduceLROnPlateau(o, patience=2, cooldown=1, min_lr=0.001),
    "plateau max": lambda L, o: L.ReduceLROnPlateau(o, mode="max", patience=1, threshold_mode="abs"),
}


def rates(library, make, optimizer, options, metric):
    a, b = (library.ones(1, requires_grad=True) for _ in range(2))
    a.grad, b.grad = library.ones(1), library.ones(1)
    optimizer = getattr(library.optim, optimizer)([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.1, **options)
    schedule, out = make(library.optim.lr_scheduler, optimizer), []
    for i in range(25):
        momenta = [group.get("momentum", group.get("betas")) for group in optimizer.param_groups]
        out.append(([group["lr"] for group in optimizer.param_groups], schedule.get_last_lr(), momenta))
        optimizer.step()
        schedule.step(*([abs(5 - i) + 0.1] if metric else []))
        if i == 7:
            schedule.load_state_dict(copy.deepcopy(schedule.state_dict()))
    return out, sorted(schedule.state_dict())


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("optimizer,options", [("SGD", {"momentum": 0.9}), ("Adam", {})])
@pytest.mark.filterwarnings("ignore")
def test_schedules(name, optimizer, options):
    arguments = (SCHEDULES[name], optimizer, options, "plateau" in name)
    assert rates(strided, *arguments) == rates(torch, *arguments)


ERRORS = [
    lambda o, t, p: o.SGD([], 0.1),
    lambda o, t, p: o.SGD(p, 0.1),
    lambda o, t, p: o.SGD([3], 0.1),
    lambda o, t, p: o.SGD([p], -0.1),
    lambda o, t, p: o.SGD([p], nesterov=True),
    lambda o, t, p: o.Adam([p], betas=(1.0, 0.9)),
    lambda o, t, p: o.Adam([p], eps=-1.0),
    lambda o, t, p: o.SGD([{"params": [p]}, {"params": [p]}]),
    lambda o, t, p: o.SGD([p * 2]),
    lambda o, t, p: o.SGD([{"params": {p}}]),
    lambda o, t, p: o.SGD([p]).load_state_dict(o.SGD([{"params": [t.ones(1)]}, {"params": [t.ones(2)]}]).state_dict()),
    lambda o, t, p: o.SGD([p]).load_state_dict(o.SGD([t.ones(1), t.ones(2)]).state_dict()),
    lambda o, t, p: o.SGD([p]).add_param_group(3),
    lambda o, t, p: repr(o.AdamW([("a", p)])),
    lambda o, t, p: o.lr_scheduler.StepLR(3, 3),
    lambda o, t, p: o.lr_scheduler.StepLR(o.SGD([p]), 3, last_epoch=2),
    lambda o, t, p: o.lr_scheduler.OneCycleLR(o.SGD([p]), 1.0),
    lambda o, t, p: o.lr_scheduler.LambdaLR(o.SGD([p]), [1, 2]),
    lambda o, t, p: o.RMSprop([p], alpha=-1),
    lambda o, t, p: repr(o.SGD([p], 0.1)),
]


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    outcomes = []
    for library in (strided, torch):
        try:
            outcomes.append(("ok", case(library.optim, library, library.ones(1, requires_grad=True))))
        except Exception as error:
            outcomes.append((type(error).__name__, str(error)))
    assert outcomes[0] == outcomes[1]


def parameters_of(function):
    return [(p.name, str(p.kind), repr(p.default)) for p in inspect.signature(function).parameters.values()]


def test_signatures():
    for ours, theirs in ((strided.optim, torch.optim), (strided.optim.lr_scheduler, torch.optim.lr_scheduler)):
        for name, made in vars(ours).items():
            if inspect.isclass(made) and inspect.isclass(getattr(theirs, name, None)):
                assert parameters_of(made.__init__) == parameters_of(getattr(theirs, name).__init__), name


@pytest.mark.parametrize("options", [{}, {"adjust_lr_fn": "match_rms_adamw", "nesterov": False, "weight_decay": 0.0}])
@pytest.mark.parametrize("shape", [(8, 5), (5, 8)])
def test_muon(options, shape):
    results = []
    for library in (strided, torch):
        library.manual_seed(0)
        p = library.randn(*shape).requires_grad_()
        target = library.randn(*shape)
        optimizer = library.optim.Muon([p], lr=0.1, **options)
        for _ in range(5):
            optimizer.zero_grad()
            ((p - target) ** 2).sum().backward()
            optimizer.step()
        results.append(p.detach().numpy().copy())
    close(*results, rtol=0.05, atol=0.02)  # the orthogonalisation runs in bfloat16
