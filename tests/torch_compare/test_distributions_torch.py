"""torch.distributions against PyTorch: samples of one seed, log-probabilities with gradients, entropies, divergences, messages."""
import pytest

torch = pytest.importorskip("torch")
import torch.distributions as TD

import strided
from strided import distributions as D


def ours(value):
    return strided.from_numpy(value.detach().numpy().copy()).requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value


def same(a, b):
    assert tuple(a.shape) == tuple(b.shape) and str(a.dtype) == str(b.dtype)
    torch.testing.assert_close(torch.from_numpy(a.detach().numpy().copy()), b.detach(), rtol=1e-5, atol=1e-6)


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


PAIRS = [
    ("Normal", {"loc": leaf(0.5, -1.0), "scale": leaf(1.0, 0.3)}, {"loc": 0.1, "scale": 2.0}),
    ("Normal", {"loc": 0.5, "scale": 1.5}, {"loc": 0.1, "scale": 2.0}),
    ("Uniform", {"low": leaf(0.5, -1.0), "high": leaf(1.0, 0.3)}, None),
    ("Bernoulli", {"probs": leaf(0.5, 0.9)}, {"logits": leaf(0.0, 2.0)}),
    ("Bernoulli", {"logits": leaf(0.5, -0.9)}, {"probs": leaf(0.3, 0.7)}),
    ("Categorical", {"probs": torch.tensor([[0.2, 0.3, 0.5], [1.0, 2.0, 0.0]], requires_grad=True)}, {"logits": torch.zeros(2, 3)}),
    ("Categorical", {"logits": torch.tensor([0.2, -3.0, 1.0], requires_grad=True)}, {"probs": torch.ones(3)}),
]


@pytest.mark.parametrize("case", range(len(PAIRS)))
def test_distribution(case):
    name, arguments, other = PAIRS[case]
    mine = {key: ours(value) for key, value in arguments.items()}
    theirs = {key: value.detach().clone().requires_grad_() if isinstance(value, torch.Tensor) else value for key, value in arguments.items()}
    p, q = getattr(D, name)(**mine), getattr(TD, name)(**theirs)
    assert tuple(p.batch_shape) == tuple(q.batch_shape) and repr(p) == repr(q)
    for shape in ((), (4,), (2, 3)):
        strided.manual_seed(1)
        torch.manual_seed(1)
        a, b = p.sample(shape), q.sample(shape)
        same(a, b)
        assert not a.requires_grad
        if q.has_rsample:
            same(p.rsample(shape), q.rsample(shape))
        x, y = p.log_prob(a), q.log_prob(b)
        same(x, y)
        if y.requires_grad:
            x.sum().backward(retain_graph=True)
            y.sum().backward(retain_graph=True)
            for key, value in theirs.items():
                same(mine[key].grad, value.grad)
    same(p.entropy(), q.entropy())
    if name != "Categorical":
        same(p.mean, q.mean)
        same(p.variance, q.variance)
    if other:
        same(D.kl_divergence(p, getattr(D, name)(**{k: ours(v) for k, v in other.items()})), TD.kl_divergence(q, getattr(TD, name)(**other)))


@pytest.mark.parametrize(
    "attempt",
    [
        lambda d, t: d.Normal(0.0, -1.0),
        lambda d, t: d.Uniform(1.0, 0.0),
        lambda d, t: d.Bernoulli(t.tensor([1.5])),
        lambda d, t: d.Bernoulli(),
        lambda d, t: d.Categorical(t.tensor([-1.0, 2.0])),
        lambda d, t: d.Categorical(t.tensor(1.0)),
        lambda d, t: d.Categorical(t.ones(3)).log_prob(t.tensor(3)),
        lambda d, t: d.Bernoulli(0.5).log_prob(t.tensor(0.5)),
    ],
)
def test_messages(attempt):
    messages = []
    for d, t in ((D, strided), (TD, torch)):
        with pytest.raises(ValueError) as caught:
            attempt(d, t)
        messages.append(str(caught.value).splitlines()[0])
    assert messages[0] == messages[1]
