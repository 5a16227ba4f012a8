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


# ---- how drawn numbers move with their parameters: dx/da = -(dF/da) / F'(x), by 40 digits -------------------------------------------


@pytest.mark.parametrize(
    ("a", "x", "slope"),
    [(0.05, 1e-3, 0.12833851283676015), (0.1, 25.0, 13.221117486917194), (1.0, 30.0, 4.010702785322668), (5.0, 4.0, 0.9227261342680142), (30.0, 82.0, 1.5941928191246335),
     (1999.0, 2050.0, 1.012733689901141), (2001.0, 1950.0, 0.9872289272754754), (5000.0, 5300.0, 1.0294516875923576)],
)  # fmt: skip
def test_gamma_numbers_move_with_their_concentration(a, x, slope):
    found = torch._standard_gamma_grad(torch.tensor(a, dtype=torch.float64), torch.tensor(x, dtype=torch.float64))
    assert found.item() == pytest.approx(slope, rel=1e-9)


@pytest.mark.parametrize(
    ("x", "a", "b", "slope"),
    [(0.3, 0.5, 0.7, 1.1821979816602028), (0.9, 20.0, 3.0, 0.0452607720496586), (0.5, 1000.0, 1000.0, 0.0005001666999952333), (0.001, 0.1, 5.0, 0.049823551134958774),
     (0.999999, 3.0, 0.1, 0.38742089302943616)],
)  # fmt: skip
def test_dirichlet_coordinates_move_with_their_concentration(x, a, b, slope):
    found = torch._dirichlet_grad(*(torch.tensor([value], dtype=torch.float64) for value in (x, a, a + b)))
    assert found.item() == pytest.approx(slope, rel=1e-10)


def test_slopes_of_nothing():
    nan, inf = math.nan, math.inf
    found = torch._standard_gamma_grad(torch.tensor([1.0, -1.0, nan, 2.0, inf]), torch.tensor([0.0, 1.0, 1.0, nan, 1.0])).tolist()
    assert found[0] == 0 and all(math.isnan(value) for value in found[1:])
    found = torch._dirichlet_grad(torch.tensor([0.0, 1.0, nan, 0.5]), torch.tensor([1.0, 1.0, 1.0, 2.0]), torch.tensor([2.0, 2.0, 2.0, 1.0])).tolist()
    assert found[:2] == [0, 0] and all(math.isnan(value) for value in found[2:])
    assert torch._standard_gamma_grad(torch.ones(0), torch.ones(0)).shape == (0,)


def test_gradients_reach_gamma_numbers():
    torch.manual_seed(0)
    a = torch.tensor([0.5, 2.0, 30.0], requires_grad=True)
    x = D.Gamma(a, 2.0).rsample((2000,))
    (slope,) = torch.autograd.grad(x.sum(), a)
    assert torch.allclose(slope / 2000, torch.full((3,), 0.5), rtol=0.1)  # the mean a / 2 moves at 1/2
    p = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    x = D.Dirichlet(p).rsample((4000,))
    (slope,) = torch.autograd.grad(x[..., 0].sum(), p)
    assert slope.flatten().div(4000).tolist() == pytest.approx([5 / 36, -1 / 36, -1 / 36], abs=0.01)
    df = torch.tensor(5.0, requires_grad=True)
    D.StudentT(df).rsample((10,)).sum().backward()
    assert df.grad.isfinite() and df.grad != 0


def test_counts():
    torch.manual_seed(0)
    assert torch.poisson(torch.tensor([0.0, 0.5, 3, 9, 10, 50, 1e4, 1e6])).tolist() == [0, 2, 4, 9, 7, 40, 9915, 1000248]
    rate = torch.tensor([0.0, 3.0, 100.0], requires_grad=True)
    drawn = torch.poisson(rate.expand(4000, 3))
    assert drawn.mean(0).tolist() == pytest.approx([0, 3, 100], rel=0.05) and drawn.var(0).tolist() == pytest.approx([0, 3, 100], rel=0.15)
    drawn.sum().backward()
    assert rate.grad.tolist() == [0, 0, 0]
    n, p = torch.tensor([10.0, 100.0, 5.0, 0.0]), torch.tensor([0.25, 0.75, 1.0, 0.5])
    drawn = D.Binomial(n, p).sample((4000,))
    assert drawn.mean(0).tolist() == pytest.approx([2.5, 75, 5, 0], rel=0.03) and drawn.var(0).tolist() == pytest.approx([1.875, 18.75, 0, 0], rel=0.15)
    g = torch.Generator().manual_seed(1)
    before = torch.get_rng_state()
    first = torch.poisson(torch.full((3,), 20.0), generator=g), torch.rand(2, generator=g)
    g.manual_seed(1)
    assert torch.equal(before, torch.get_rng_state()) and torch.equal(torch.poisson(torch.full((3,), 20.0), generator=g), first[0]) and torch.equal(torch.rand(2, generator=g), first[1])
    with pytest.raises(RuntimeError, match="invalid Poisson rate, expected rate to be non-negative"):
        torch.poisson(torch.tensor([-1.0]))
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        torch.poisson(torch.tensor([1]))
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        torch.binomial(n, p.double())
    with pytest.raises(RuntimeError, match="derivative for aten::binomial is not implemented"):
        torch.binomial(n, p.clone().requires_grad_()).sum().backward()


def test_rarer_distributions_by_hand():
    assert D.Kumaraswamy(2.0, 3.0).cdf(torch.tensor(0.5)).item() == pytest.approx(1 - 0.75**3, rel=1e-5)
    assert D.Kumaraswamy(2.0, 3.0).mode.item() == pytest.approx(math.sqrt(1 / 5), rel=1e-5)
    assert D.VonMises(0.0, 1e-6).log_prob(torch.tensor(1.0)).item() == pytest.approx(-math.log(2 * math.pi), rel=1e-5)
    assert D.FisherSnedecor(4.0, 6.0).mean.item() == pytest.approx(1.5)
    assert D.GeneralizedPareto(0.0, 2.0, 0.0).cdf(torch.tensor(2.0)).item() == pytest.approx(1 - math.exp(-1), rel=1e-5)
    assert D.ContinuousBernoulli(0.5).log_prob(torch.tensor(0.2)).item() == pytest.approx(0, abs=1e-5)
    assert D.LogisticNormal(torch.zeros(2), torch.ones(2)).sample((3,)).sum(-1).tolist() == pytest.approx([1, 1, 1], rel=1e-5)


def test_transforms_side_by_side():
    t = D.transforms.StackTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)], dim=-1)
    x = torch.tensor([[0.0, 1.0], [1.0, 2.0]])
    assert t(x).tolist() == [[1, 3], [pytest.approx(math.e), 5]] and torch.allclose(t.inv(t(x)), x) and t.log_abs_det_jacobian(x, t(x)).tolist() == [[0, pytest.approx(math.log(2))], [1, pytest.approx(math.log(2))]]
    t = D.transforms.CatTransform([D.ExpTransform(), D.SoftmaxTransform()], dim=-1, lengths=[1, 2])
    y = t(torch.zeros(3))
    assert y.tolist() == [1, 0.5, 0.5] and D.constraints.cat([D.constraints.positive], dim=0, lengths=[2]).check(torch.tensor([1.0, -1.0])).tolist() == [True, False]
    with pytest.raises(AssertionError, match="must be 3"):
        t(torch.zeros(4))
    lower = D.biject_to(D.constraints.corr_cholesky)(torch.tensor([0.3, -0.5, 1.0]))
    assert torch.allclose(lower.pow(2).sum(-1), torch.ones(3)) and D.constraints.corr_cholesky.check(lower)
