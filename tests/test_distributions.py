"""Distributions by values known exactly; the comparison with PyTorch is in torch_compare/."""
import math

import pytest

import strided as torch
from strided import distributions as D


def test_log_probabilities_by_hand():
    assert D.Exponential(2.0).log_prob(torch.tensor(1.5)).item() == pytest.approx(math.log(2) - 3)
    assert D.Laplace(0.0, 2.0).log_prob(torch.tensor(-1.0)).item() == pytest.approx(-math.log(4) - 0.5)
    assert D.Gamma(3.0, 2.0).log_prob(torch.tensor(1.0)).item() == pytest.approx(math.log(4) - 2, rel=1e-5)
    assert D.Beta(2.0, 3.0).log_prob(torch.tensor(0.25)).item() == pytest.approx(math.log(12 * 0.25 * 0.75**2), rel=1e-5)
    assert D.Poisson(2.0).log_prob(torch.tensor(3.0)).item() == pytest.approx(math.log(8 / 6 * math.exp(-2)), rel=1e-5)
    assert D.Binomial(4, probs=torch.tensor(0.5)).log_prob(torch.tensor(2.0)).item() == pytest.approx(math.log(6 / 16), rel=1e-5)
    assert D.MultivariateNormal(torch.zeros(2), torch.eye(2) * 4).log_prob(torch.tensor([2.0, 0.0])).item() == pytest.approx(-math.log(2 * math.pi) - math.log(4) - 0.5, rel=1e-5)
    tanh = D.TransformedDistribution(D.Normal(torch.zeros(3), 1.0), [D.TanhTransform()])
    assert tanh.log_prob(torch.zeros(3)).tolist() == pytest.approx([-0.5 * math.log(2 * math.pi)] * 3) and D.Independent(tanh, 1).log_prob(torch.zeros(3)).shape == ()


def test_gradients_reach_what_was_sampled():
    loc, scale = torch.tensor([0.0, 1.0], requires_grad=True), torch.tensor([1.0, 2.0], requires_grad=True)
    x = D.Independent(D.LogNormal(loc, scale), 1).rsample()
    x.sum().backward()
    assert torch.allclose(loc.grad, x.detach()) and scale.grad.shape == (2,)
    assert not D.LogNormal(loc, scale).sample().requires_grad
    with pytest.raises(NotImplementedError, match="no gradient"):
        D.Gamma(loc.exp(), 1.0).rsample()
    assert D.Gamma(loc.exp(), 1.0).sample((2,)).shape == (2, 2)


def test_registered_pairs():
    class Mine(D.Normal):
        pass

    p, q = Mine(0.0, 1.0), D.Normal(1.0, 1.0)
    assert D.kl_divergence(p, q).item() == 0.5

    @D.register_kl(Mine, D.Normal)
    def _(p, q):
        return torch.tensor(7.0)

    assert D.kl_divergence(p, q).item() == 7 and D.kl_divergence(q, q).item() == 0
    with pytest.raises(NotImplementedError, match="No KL"):
        D.kl_divergence(q, D.Poisson(1.0))


def test_checks():
    with pytest.raises(ValueError, match="Expected parameter rate"):
        D.Exponential(-1.0)
    with pytest.raises(ValueError, match="within the support"):
        D.Beta(1.0, 1.0).log_prob(torch.tensor(2.0))
    with pytest.raises(ValueError, match="Exactly one of"):
        D.MultivariateNormal(torch.zeros(2))
    with pytest.raises(NotImplementedError, match="torch.poisson"):
        D.Poisson(1.0).sample()
    with pytest.raises(AttributeError, match="rarer distributions"):
        _ = D.VonMises
    D.Exponential(-1.0, validate_args=False)


def test_registry_of_transforms():
    t = D.biject_to(D.constraints.interval(-1.0, 3.0))
    x = torch.tensor([-2.0, 0.0, 2.0])
    y = t(x)
    assert y[1].item() == 1 and bool(D.constraints.interval(-1.0, 3.0).check(y).all()) and torch.allclose(t.inv(y), x, atol=1e-5)
    assert D.transform_to(D.constraints.simplex)(x).sum().item() == pytest.approx(1)


def test_sets_of_matrices():
    c, m = D.constraints, torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    assert bool(c.corr_cholesky.check(m)) and not bool(c.corr_cholesky.check(m * 2)) and bool(c.square.check(m)) and not bool(c.square.check(m[:1]))
    assert bool(c.positive_semidefinite.check(torch.ones(2, 2))) and not bool(c.positive_semidefinite.check(-torch.eye(2)))
    assert c.is_dependent(c.dependent) and not c.is_dependent(c.real)


def test_divergence_of_cauchys_and_names_of_independent_constraints():
    p, q = D.Cauchy(0.0, 1.0), D.Cauchy(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
    assert D.kl_divergence(p, q).tolist() == pytest.approx([0, math.log(10 / 8)], abs=1e-6)
    assert D.kl_divergence(D.HalfCauchy(1.0), D.HalfCauchy(2.0)).item() == pytest.approx(math.log(9 / 8), abs=1e-6)
    assert repr(D.MultivariateNormal(torch.zeros(2), torch.eye(2)).support) == "IndependentConstraint(Real(), 1)"
