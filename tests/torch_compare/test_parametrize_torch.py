"""Parametrizations, spectral and weight norm, averaged models and their schedule against PyTorch: the same code on both sides, the same numbers and errors."""
import copy

import pytest

torch = pytest.importorskip("torch")
import strided
import strided.nn
import strided.optim
import strided.optim.swa_utils


def plain(value):
    """Results as nested lists of rounded numbers, so that both libraries' can be compared."""
    if hasattr(value, "detach"):
        return plain(value.detach().tolist())
    if isinstance(value, float):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    return value


def close(a, b):
    if isinstance(b, dict):
        return list(a) == list(b) and all(close(a[key], b[key]) for key in b)
    if isinstance(b, list):
        return isinstance(a, list) and len(a) == len(b) and all(map(close, a, b))
    return a == pytest.approx(b, rel=1e-4, abs=1e-5) if isinstance(b, float) else a == b


def trained(t, module, x, steps=3, lr=0.02):
    """State, outputs and gradients over a few steps of SGD."""
    optimizer = t.optim.SGD(module.parameters(), lr=lr)
    out = []
    for _ in range(steps):
        optimizer.zero_grad()
        y = module(x)
        y.pow(2).sum().backward()
        out.append((y, [p.grad for p in module.parameters()]))
        optimizer.step()
    module.eval()
    return plain([out, module(x), module.state_dict(), repr(module)])


def symmetric(t):
    class Symmetric(t.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(-1, -2)

        def right_inverse(self, a):
            return a.triu()

    return Symmetric()


def linear(t, *sizes):
    t.manual_seed(0)
    return t.nn.Linear(*sizes), t.randn(5, sizes[0])


def stacked(t):
    layer, x = linear(t, 3, 3)
    P = t.nn.utils.parametrize
    P.register_parametrization(layer, "weight", symmetric(t))
    first = plain([layer.weight, P.is_parametrized(layer), P.is_parametrized(layer, "bias"), P.type_before_parametrizations(layer).__name__])
    layer.weight = t.eye(3) * 2
    P.register_parametrization(layer, "weight", symmetric(t))
    with P.cached():
        assert layer.weight is layer.weight
    copied = plain(copy.deepcopy(layer).weight)
    result = trained(t, layer, x)
    P.remove_parametrizations(layer, "weight")
    return [first, result, plain(layer.state_dict()), type(layer).__name__, copied]


CASES = {
    "symmetric": stacked,
    "weight norm": lambda t: trained(t, t.nn.utils.parametrizations.weight_norm(linear(t, 3, 4)[0]), linear(t, 3, 4)[1]),
    "weight norm of all": lambda t: trained(t, t.nn.utils.parametrizations.weight_norm(linear(t, 3, 4)[0], dim=None), linear(t, 3, 4)[1]),
    "spectral norm": lambda t: trained(t, t.nn.utils.parametrizations.spectral_norm(linear(t, 3, 4)[0]), linear(t, 3, 4)[1]),
    "older spectral norm": lambda t: trained(t, t.nn.utils.spectral_norm(linear(t, 3, 4)[0]), linear(t, 3, 4)[1]),
    "older spectral norm removed": lambda t: plain(
        t.nn.utils.remove_spectral_norm(t.nn.utils.spectral_norm(linear(t, 3, 4)[0])).state_dict()
    ),
    "older weight norm": lambda t: trained(t, t.nn.utils.weight_norm(linear(t, 3, 4)[0]), linear(t, 3, 4)[1]),
    **{
        f"orthogonal {way} {sizes} {base}": lambda t, way=way, sizes=sizes, base=base: trained(
            t, t.nn.utils.parametrizations.orthogonal(linear(t, *sizes)[0], orthogonal_map=way, use_trivialization=base), linear(t, *sizes)[1]
        )
        for way in (None, "cayley", "householder")
        for sizes in ((3, 3), (3, 4), (4, 3))
        for base in (True, False)
    },
    "fused conv": lambda t: fused(t),
    "functional call": lambda t: called(t),
    "averaged": lambda t: averaged(t),
    "ema": lambda t: averaged(t, multi_avg_fn=t.optim.swa_utils.get_ema_multi_avg_fn(0.8)),
    "ema buffers": lambda t: averaged(t, avg_fn=t.optim.swa_utils.get_ema_avg_fn(0.8), use_buffers=True),
    "swa rates": lambda t: [rates(t, *given) for given in ((0.05, 3, "linear"), ([0.05, 0.1], 5, "cos"), (0.2, 0, "cos"))],
}


def fused(t):
    t.manual_seed(0)
    conv, norm = t.nn.Conv2d(2, 3, 3), t.nn.BatchNorm2d(3)
    norm.running_mean.copy_(t.randn(3))
    norm.running_var.copy_(t.rand(3) + 0.5)
    made = t.nn.utils.fuse_conv_bn_eval(conv.eval(), norm.eval())
    x = t.randn(1, 2, 5, 5)
    return plain([made(x), norm(conv(x))])


def called(t):
    layer, x = linear(t, 3, 4)
    given = {"weight": t.ones(4, 3), "bias": t.zeros(4)}
    return plain([t.func.functional_call(layer, given, (x,)), layer(x)])


def averaged(t, **options):
    t.manual_seed(0)
    model = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.BatchNorm1d(4), t.nn.Linear(4, 1))
    swa = t.optim.swa_utils.AveragedModel(model, **options)
    optimizer = t.optim.SGD(model.parameters(), lr=0.1)
    data = t.randn(6, 5, 3)
    for x in data:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        swa.update_parameters(model)
    before = plain(swa.state_dict())
    t.optim.swa_utils.update_bn([(x, 0) for x in data], swa)
    return [before, plain(swa.state_dict()), plain(swa(data[0])), repr(swa)]


def rates(t, swa_lr, epochs, strategy):
    a, b = (t.ones(1, requires_grad=True) for _ in range(2))
    optimizer = t.optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.1)
    schedule = t.optim.swa_utils.SWALR(optimizer, swa_lr, anneal_epochs=epochs, anneal_strategy=strategy)
    out = []
    for _ in range(8):
        optimizer.step()
        schedule.step()
        out.append(schedule.get_last_lr())
    return [plain(out), sorted(schedule.state_dict())]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_the_same(name):
    outcomes = []
    for t in (strided, torch):
        try:
            outcomes.append(CASES[name](t))
        except NotImplementedError as error:
            outcomes.append(["refused", str(error)])
    assert close(*outcomes), outcomes


ERRORS = [
    lambda t, m: t.nn.utils.parametrize.register_parametrization(m, "absent", t.nn.Identity()),
    lambda t, m: t.nn.utils.parametrize.register_parametrization(m, "weight", t.nn.Flatten(0)),
    lambda t, m: t.nn.utils.parametrize.remove_parametrizations(m, "weight"),
    lambda t, m: t.nn.utils.parametrizations.orthogonal(m, "bias"),
    lambda t, m: t.nn.utils.parametrizations.orthogonal(m, orthogonal_map="x"),
    lambda t, m: t.nn.utils.parametrizations.spectral_norm(m, n_power_iterations=0),
    lambda t, m: t.nn.utils.parametrizations.spectral_norm(m, dim=3),
    lambda t, m: t.nn.utils.remove_spectral_norm(m),
    lambda t, m: setattr(t.nn.utils.parametrize.register_parametrization(m, "weight", t.nn.Identity()), "weight", t.ones(4, 3)),
    lambda t, m: copy.copy(t.nn.utils.parametrize.register_parametrization(m, "weight", t.nn.Identity())).__getstate__(),
    lambda t, m: t.optim.swa_utils.AveragedModel(m, avg_fn=1, multi_avg_fn=2),
    lambda t, m: t.optim.swa_utils.get_ema_multi_avg_fn(2.0),
    lambda t, m: t.optim.swa_utils.SWALR(t.optim.SGD(m.parameters()), 0.1, anneal_strategy="x"),
    lambda t, m: t.optim.swa_utils.SWALR(t.optim.SGD(m.parameters()), [0.1, 0.2]),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_wrong_input(case):
    outcomes = []
    for t in (strided, torch):
        try:
            outcomes.append(("ok", ERRORS[case](t, t.nn.Linear(3, 4)) is None))
        except Exception as error:
            outcomes.append((type(error).__name__, str(error)))
    assert outcomes[0] == outcomes[1]
