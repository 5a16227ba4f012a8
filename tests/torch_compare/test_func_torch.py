"""torch.func against PyTorch: derivatives of nests, nested transforms, vmap with its dims, modules as functions."""
import pytest

torch = pytest.importorskip("torch")
import vmap_cases

import strided
from strided.tree import flatten

BOTH = (strided, torch)
torch.manual_seed(0)
X, W, V = torch.randn(3, 4), torch.randn(4, 2), torch.randn(3, 4)


def ours(t):
    return strided.from_numpy(t.detach().numpy().copy())


def values(L, *tensors):
    return [t.clone() if L is torch else ours(t) for t in tensors]


def equal(a, b):
    a, b = flatten(a), flatten(b)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert tuple(x.shape) == tuple(y.shape) and x.requires_grad == y.requires_grad
        torch.testing.assert_close(torch.from_numpy(x.detach().numpy().copy()), y.detach(), rtol=1e-4, atol=1e-5, equal_nan=True)


def loss(L, x, w):
    return ((x @ w).tanh() ** 2).sum()


CASES = {
    "grad": lambda L, x, w, v: L.func.grad(lambda a: loss(L, a, w))(x),
    "grad of both": lambda L, x, w, v: L.func.grad(lambda a, b: loss(L, a, b), argnums=(0, 1))(x, w),
    "grad of a dict": lambda L, x, w, v: L.func.grad(lambda p: loss(L, p["x"], p["w"][0]))({"x": x, "w": [w]}),
    "grad with aux": lambda L, x, w, v: L.func.grad(lambda a: (loss(L, a, w), a * 2), has_aux=True)(x),
    "grad_and_value": lambda L, x, w, v: L.func.grad_and_value(lambda a: loss(L, a, w))(x),
    "grad of grad": lambda L, x, w, v: L.func.grad(lambda a: L.func.grad(lambda b: b.sin().sum() * a.sum())(a).sum())(x),
    "grad over what requires grad": lambda L, x, w, v: (lambda u: L.func.grad(lambda a: loss(L, a, u))(x))(w.requires_grad_()),
    "grad of what requires grad": lambda L, x, w, v: L.func.grad(lambda a: loss(L, a, w))(x.requires_grad_()),
    "no path": lambda L, x, w, v: L.func.grad(lambda a, b: b.sum())(x, w),
    "vjp": lambda L, x, w, v: (lambda out, back: (out, back(out * 2)))(*L.func.vjp(lambda a, b: (a @ b).exp(), x, w)),
    "vjp of several": lambda L, x, w, v: (lambda out, back: (out, back({"s": v, "t": w})))(*L.func.vjp(lambda a, b: {"s": a.sin(), "t": b * 3}, x, w)),
    "jvp": lambda L, x, w, v: L.func.jvp(lambda a: (a @ w).exp(), (x,), (v,)),
    "jacrev": lambda L, x, w, v: L.func.jacrev(lambda a: a @ w)(x),
    "jacrev of both": lambda L, x, w, v: L.func.jacrev(lambda a, b: (a @ b, a.sum()), argnums=(0, 1))(x, w),
    "jacfwd": lambda L, x, w, v: L.func.jacfwd(lambda a: (a @ w).sin())(x),
    "jacfwd of few elements": lambda L, x, w, v: L.func.jacfwd(lambda a, b: {"o": (L.outer(a, b).exp() @ x, a.sum())}, (0, 1))(w[:, 0], x[:, 0]),
    "jacfwd with aux": lambda L, x, w, v: L.func.jacfwd(lambda a: (L.outer(a, a).sin(), a.sum()), has_aux=True)(w[:, 0]),
    "hessian of several": lambda L, x, w, v: L.func.hessian(lambda a: (x @ a).exp())(w[:, 0]),
    "hessian of samples": lambda L, x, w, v: L.vmap(L.func.hessian(lambda a: L.stack([a.prod(), (a**3).sum()])))(x),
    "vmap of a pull-back": lambda L, x, w, v: (lambda out, back: L.vmap(back)(L.eye(4)))(*L.func.vjp(lambda a: (a.sin() * v[0]), x[0])),
    "vmap of two pulled back": lambda L, x, w, v: (lambda out, back: L.vmap(back, in_dims=((0, None),))((v, w[0, 0])))(*L.func.vjp(lambda a: (a * a, a.prod()), x[0])),
    "autograd.grad in vmap": lambda L, x, w, v: (lambda a: L.vmap(lambda g: L.autograd.grad(a.exp() * 1, a, g)[0])(x))(v[0].requires_grad_()),
    "hessian": lambda L, x, w, v: L.func.hessian(lambda a: loss(L, a, w))(x),
    "vmap": lambda L, x, w, v: L.vmap(L.dot)(x, v),
    "vmap dims": lambda L, x, w, v: L.vmap(lambda a, b: (a * b, a.sum()), in_dims=(1, None), out_dims=(1, 0))(x, v[:, 0]),
    "vmap nest": lambda L, x, w, v: L.vmap(lambda d, y: {"o": d["a"] @ w + y}, in_dims=({"a": 0}, None))({"a": x}, 1.0),
    "vmap of vmap": lambda L, x, w, v: L.vmap(L.vmap(lambda a, b: a * b + a))(x, v),
    "vmap of grad": lambda L, x, w, v: L.vmap(L.func.grad(lambda p, a: (a @ p).exp().sum()), in_dims=(None, 0))(w, x),
    "grad of vmap": lambda L, x, w, v: L.func.grad(lambda a: L.vmap(lambda r: r.cos().prod())(a).sum())(x),
}


@pytest.mark.parametrize("name", CASES)
def test_transforms(name):
    equal(*(CASES[name](L, *values(L, X, W, V)) for L in BOTH))


def test_functional_call():
    results = []
    for L in BOTH:
        layer = L.nn.Sequential(L.nn.Linear(4, 3), L.nn.Tanh(), L.nn.Linear(3, 1))
        names = [name for name, _ in layer.named_parameters()]
        parameters = {name: torch.linspace(-1, 1, p.numel()).reshape(tuple(p.shape)) for name, p in layer.named_parameters()}
        parameters = dict(zip(names, values(L, *parameters.values())))
        (x,) = values(L, X)
        kept = layer[0].weight
        results.append((L.func.functional_call(layer, parameters, (x,)), L.func.grad(lambda p: L.func.functional_call(layer, p, x).sum())(parameters)))
        assert layer[0].weight is kept
    equal(*results)


def test_ensemble():
    models = [strided.nn.Linear(4, 2) for _ in range(3)]
    parameters, buffers = strided.func.stack_module_state(models)
    x = ours(X)
    out = strided.vmap(lambda p, b: strided.func.functional_call(models[0], (p, b), (x,)))(parameters, buffers)
    assert parameters["weight"].shape == (3, 2, 4) and parameters["weight"].requires_grad and buffers == {}
    assert all(strided.allclose(o, m(x)) for o, m in zip(out, models))


@pytest.mark.parametrize(
    "attempt",
    [
        lambda L, x: L.func.grad(lambda a: a * 2)(x),
        lambda L, x: L.func.grad(lambda a: 1.0)(x),
        lambda L, x: L.vmap(lambda a, b: a)(x, x[:2]),
        lambda L, x: L.vmap(lambda a: 3)(x),
        lambda L, x: L.vmap(lambda a: a + L.rand(()))(x),
        lambda L, x: L.vmap(lambda a: a, in_dims=(0, 0))(x),
        lambda L, x: L.vmap(lambda a: a, in_dims=None)(x),
        lambda L, x: L.vmap(lambda a: a, randomness="odd")(x),
    ],
)
def test_errors(attempt):
    kinds = []
    for L in BOTH:
        with pytest.raises(Exception) as caught:
            attempt(L, *values(L, X))
        kinds.append(type(caught.value))
    assert kinds[0] is kinds[1]


def test_randomness():
    strided.manual_seed(0)
    same = strided.vmap(lambda a: a * 0 + strided.rand(()), randomness="same")(ours(X))
    different = strided.vmap(lambda a: a * 0 + strided.rand(()), randomness="different")(ours(X))
    assert len(set(same[:, 0].tolist())) == 1 and len(set(different[:, 0].tolist())) == 3


def mapped(L, case, tensors, in_dims, size):
    function, _ = case
    return L.vmap(lambda *samples: function(L, *samples), in_dims=in_dims)(*values(L, *tensors))


@pytest.mark.parametrize("name", vmap_cases.CASES)
def test_mapped_functions(name):
    """Over the first dimension, over the last, and with arguments that are the same for all samples."""
    function, shapes = vmap_cases.CASES[name]
    generator = torch.Generator().manual_seed(len(name))
    forms = [[0] * len(shapes), [-1] * len(shapes)]
    if len(shapes) > 1:
        forms += [[0] + [None] * (len(shapes) - 1), [None] * (len(shapes) - 1) + [0]]
    for form in forms:
        tensors = [torch.randn(shape if d is None else (5, *shape) if d == 0 else (*shape, 5), generator=generator) for shape, d in zip(shapes, form)]
        try:
            want = torch.vmap(lambda *samples: function(torch, *samples), in_dims=tuple(form))(*tensors)
        except (RuntimeError, ValueError) as error:  # written in place, where only the other operand is a sample
            if name != "cross entropy":
                with pytest.raises(type(error)):
                    strided.vmap(lambda *samples: function(strided, *samples), in_dims=tuple(form))(*map(ours, tensors))
                continue
            # PyTorch's label smoothing writes in place into what is no sample; ours does not, and gives what a loop over samples gives.
            rows = [function(torch, *(t if d is None else t.select(d, i) for t, d in zip(tensors, form))) for i in range(5)]
            want = tuple(torch.stack(column) for column in zip(*rows))
        equal(strided.vmap(lambda *samples: function(strided, *samples), in_dims=tuple(form))(*map(ours, tensors)), want)


def test_one_call_for_the_whole_batch():
    calls = []

    def f(x):
        calls.append(x.shape)
        return (x @ x.t()).relu().sum(0)

    x = strided.randn(7, 3, 3)
    assert strided.allclose(strided.vmap(f)(x), strided.stack([f(row) for row in x])) and len(calls) == 8
    calls.clear()
    assert strided.allclose(strided.vmap(f, chunk_size=3)(x), strided.vmap(f)(x)) and len(calls) == 4


@pytest.mark.parametrize("attempt", [lambda x: x if x.sum() > 0 else -x, lambda x: x * x.sum().item(), lambda x: strided.tensor(x.tolist())])
def test_a_samples_value_is_not_there(attempt):
    with pytest.raises(RuntimeError, match="vmap: It looks like you're"):
        strided.vmap(attempt)(strided.ones(3, 2))


def test_random_numbers_by_samples():
    x = strided.ones(4, 100)
    dropout = lambda a: strided.nn.functional.dropout(a, 0.5)
    with pytest.raises(RuntimeError, match="vmap: called random operation while in randomness error mode"):
        strided.vmap(dropout)(x)
    same, different = (strided.vmap(dropout, randomness=kind)(x) for kind in ("same", "different"))
    assert all(strided.equal(row, same[0]) for row in same) and not strided.equal(different[0], different[1])


def test_linearize():
    def f(L, x, y):
        return L.sin(x @ y) + x.sum(), {"square": y * y}

    results = []
    for L in BOTH:
        x, w, v = values(L, X, W, V)
        result, push = L.func.linearize(lambda x, y: f(L, x, y), x, w)
        results.append([result, push(v, w), push(x, w * 2), L.func.linearize(lambda d: L.ones(2), x)[1](v), L.func.linearize(lambda d: d["x"].cos().sum(), {"x": x})[1]({"x": v})])
        for wrong, what in (((v,), "same argspec"), ((v[0], w), "tangent:0 with shape"), ((v.double(), w), "tangent:0 with dtype")):
            with pytest.raises(RuntimeError, match=what):
                push(*wrong)
    equal(*results)
