"""The other distributions and the transforms against PyTorch: samples of one seed, log-probabilities with gradients, entropies, moments, cdf, divergences."""
import pytest

T = pytest.importorskip("torch")
import torch.distributions as TD

import strided as S
from strided import distributions as D

MATRIX = [[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.0]]
LOWER = [[1.0, 0.0, 0.0], [0.5, 1.2, 0.0], [0.1, -0.2, 0.7]]
CASES = {
    "Exponential": {"rate": [0.5, 2.0]}, "Laplace": {"loc": [0.1, -1.0], "scale": [0.5, 2.0]}, "Cauchy": {"loc": [0.1, -1.0], "scale": [0.5, 2.0]},
    "HalfNormal": {"scale": [0.5, 2.0]}, "HalfCauchy": {"scale": [0.5, 2.0]}, "LogNormal": {"loc": [0.1, -1.0], "scale": [0.5, 0.9]}, "Gumbel": {"loc": [0.1, -1.0], "scale": [0.5, 2.0]},
    "Pareto": {"scale": [1.0, 2.0], "alpha": [2.5, 4.0]}, "Weibull": {"scale": [1.0, 2.0], "concentration": [0.7, 3.0]}, "Gamma": {"concentration": [0.3, 4.0], "rate": [1.0, 0.5]},
    "Chi2": {"df": [0.9, 4.0]}, "InverseGamma": {"concentration": [3.3, 4.0], "rate": [1.0, 0.5]}, "StudentT": {"df": [3.0, 7.0], "loc": [0.1, -1.0], "scale": [0.5, 2.0]},
    "Geometric": {"probs": [0.2, 0.9]}, "OneHotCategorical": {"logits": [[0.1, 0.5, -1.0], [2.0, 0.0, 1.0]]}, "Multinomial": {"total_count": 6, "probs": [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]},
    "RelaxedBernoulli": {"temperature": [0.5], "logits": [0.3, -1.0]}, "RelaxedOneHotCategorical": {"temperature": [0.7], "logits": [[0.1, 0.5, -1.0], [2.0, 0.0, 1.0]]},
    "Dirichlet": {"concentration": [[0.5, 2.0, 1.0], [3.0, 0.2, 0.7]]}, "Beta": {"concentration1": [0.5, 3.0], "concentration0": [2.0, 0.4]},
    "MultivariateNormal": {"loc": [[0.0, 1.0, 2.0]] * 2, "covariance_matrix": MATRIX}, "LowRankMultivariateNormal": {"loc": [0.0, 1.0, 2.0], "cov_factor": [[1.0], [0.5], [0.2]], "cov_diag": [1.0, 2.0, 0.5]},
    "Uniform": {"low": [0.0, -1.0], "high": [2.0, 3.0]}, "Normal": {"loc": [0.0, -1.0], "scale": [2.0, 3.0]}, "Bernoulli": {"logits": [0.3, -1.0]},
    "LogitRelaxedBernoulli": {"temperature": [0.5], "probs": [0.3, 0.8]},
    "Poisson": {"rate": [0.5, 30.0]}, "Binomial": {"total_count": 40, "probs": [0.1, 0.7]}, "NegativeBinomial": {"total_count": [3.0, 5.0], "probs": [0.3, 0.9]},
    "VonMises": {"loc": [0.5, -2.0], "concentration": [0.7, 9.0]}, "FisherSnedecor": {"df1": [3.0, 7.0], "df2": [5.0, 9.0]}, "LogisticNormal": {"loc": [0.5, -1.0], "scale": [0.7, 0.2]},
    "ContinuousBernoulli": {"probs": [0.2, 0.4995, 0.9]}, "GeneralizedPareto": {"loc": [0.1, 1.0, 2.0], "scale": [0.5, 2.0, 1.0], "concentration": [0.3, 0.0, -0.4]},
    "Kumaraswamy": {"concentration1": [0.7, 3.0], "concentration0": [0.5, 0.9]},
}  # fmt: skip


def built(module, lib, name, given, tracked=False):
    kind = getattr(module, name, None) or getattr(TD.relaxed_bernoulli, name)
    made = {k: lib.tensor(v, requires_grad=tracked) if isinstance(v, list) else v for k, v in given.items()}
    return kind(**made), made


def close(a, b, tolerance=2e-5):
    assert tuple(a.shape) == tuple(b.shape)
    T.testing.assert_close(T.tensor(a.tolist(), dtype=T.float64), T.tensor(b.tolist(), dtype=T.float64), rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("name", CASES)
def test_same_as_pytorch(name):
    ours, theirs = built(D, S, name, CASES[name])[0], built(TD, T, name, CASES[name])[0]
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape) and tuple(ours.event_shape) == tuple(theirs.event_shape) and ours.has_rsample == theirs.has_rsample
    S.manual_seed(5), T.manual_seed(5)
    for shape in ((), (3,), (2, 2)):
        x = ours.sample(shape)
        close(x, theirs.sample(shape))
    x, y = ours.sample((4,)), theirs.sample((4,))
    first, p = built(D, S, name, CASES[name], True)
    second, q = built(TD, T, name, CASES[name], True)
    a, b = first.log_prob(x), second.log_prob(y)
    close(a, b, 1e-4)
    a.sum().backward(), b.sum().backward()
    for key, value in p.items():
        if isinstance(value, S.Tensor):
            close(value.grad, q[key].grad, 1e-3)
    for what in ("mean", "variance", "stddev", "mode"):
        try:
            expected = getattr(theirs, what)
        except NotImplementedError:
            continue
        close(getattr(ours, what), expected)
    try:
        expected = theirs.entropy()
    except NotImplementedError:
        pass
    else:
        close(ours.entropy(), expected, 1e-4)
    try:
        expected = theirs.cdf(y)
    except NotImplementedError:
        pass
    else:
        close(ours.cdf(x), expected, 1e-4)
    larger, wider = ours.expand((5, *ours.batch_shape)), theirs.expand((5, *theirs.batch_shape))
    close(larger.log_prob(x[0]), wider.log_prob(y[0]), 1e-4)
    assert tuple(larger.batch_shape) == tuple(wider.batch_shape) and type(larger) is type(ours)


@pytest.mark.parametrize("name", ["Exponential", "Gamma", "Laplace", "LogNormal", "HalfNormal", "OneHotCategorical", "Geometric", "Dirichlet", "Beta", "MultivariateNormal", "Normal", "Bernoulli"])
def test_divergences(name):
    def two(module, lib):
        p, q = built(module, lib, name, CASES[name])[0], built(module, lib, name, {k: v[::-1] if isinstance(v, list) and name != "MultivariateNormal" else v for k, v in CASES[name].items()})[0]
        return module.kl_divergence(p, q) if p.event_shape else module.kl_divergence(module.Independent(p, 1), module.Independent(q, 1))

    close(two(D, S), two(TD, T), 1e-4)


@pytest.mark.parametrize("given", [{"scale_tril": LOWER}, {"precision_matrix": MATRIX}, {"covariance_matrix": MATRIX}])
def test_normal_vectors(given):
    def made(module, lib):
        d = module.MultivariateNormal(lib.zeros(2, 3), **{k: lib.tensor(v) for k, v in given.items()})
        lib.manual_seed(1)
        return [d.rsample((4,)), d.covariance_matrix, d.precision_matrix, d.scale_tril, d.entropy(), d.log_prob(lib.ones(3))]

    for a, b in zip(made(D, S), made(TD, T)):
        close(a, b, 1e-4)


def _of(m):
    return m.transforms


TRANSFORMS = {
    "exp": lambda m, lib: m.ExpTransform(), "sigmoid": lambda m, lib: m.SigmoidTransform(), "tanh": lambda m, lib: m.TanhTransform(), "softplus": lambda m, lib: m.SoftplusTransform(),
    "affine": lambda m, lib: m.AffineTransform(lib.tensor([1.0, 2.0, 3.0]), lib.tensor([-2.0, 0.5, 3.0])), "events": lambda m, lib: m.AffineTransform(0.5, -2.0, event_dim=1),
    "stick": lambda m, lib: m.StickBreakingTransform(), "compose": lambda m, lib: m.ComposeTransform([m.TanhTransform(), m.AffineTransform(1.0, 3.0), m.ExpTransform()]),
    "mixed": lambda m, lib: m.ComposeTransform([m.AffineTransform(1.0, 3.0), m.StickBreakingTransform()]), "independent": lambda m, lib: m.IndependentTransform(m.ExpTransform(), 1),
    "stack": lambda m, lib: _of(m).StackTransform([m.ExpTransform(), m.AffineTransform(1.0, 3.0), m.TanhTransform()], 1), "cdf": lambda m, lib: _of(m).CumulativeDistributionTransform(m.Normal(0.0, 1.0)),
    "cat": lambda m, lib: _of(m).CatTransform([m.ExpTransform(), m.AffineTransform(1.0, 3.0)], -1, [1, 2]), "corr": lambda m, lib: _of(m).CorrCholeskyTransform(),
    "reshape": lambda m, lib: m.ReshapeTransform((3,), (3, 1)), "inverse": lambda m, lib: m.ComposeTransform([m.SigmoidTransform(), m.ExpTransform().inv]),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    x = [[0.3, -0.7, 1.1], [0.2, 0.5, -0.4]]

    def made(m, lib):
        t, a = TRANSFORMS[name](m, lib), lib.tensor(x)
        y = t(a)
        d = m.TransformedDistribution(m.Independent(m.Normal(lib.zeros(2, 3), lib.ones(2, 3)), 1) if t.domain.event_dim else m.Normal(lib.zeros(2, 3), 1.0), [t])
        return [y, t.inv(y), t.log_abs_det_jacobian(a, y), d.log_prob(y), lib.tensor(d.event_shape), lib.tensor(t.forward_shape((2, 3))), lib.tensor(t.codomain.event_dim)]

    for a, b in zip(made(D, S), made(TD, T)):
        close(a, b, 1e-4)


@pytest.mark.parametrize("name", ["real", "positive", "unit_interval", "simplex", "corr_cholesky", "lower_cholesky", "positive_definite", "real_vector", "interval", "greater_than", "less_than"])
def test_registry(name):
    def made(m, lib):
        c = getattr(m.constraints, name)
        c = c(-1.0, 2.5) if name == "interval" else c(1.5) if name in ("greater_than", "less_than") else c
        x = lib.tensor(MATRIX)
        return [out for registry in ((m.transform_to,) if c.event_dim == 2 else (m.biject_to, m.transform_to)) for out in (registry(c)(x), registry(c).inv(registry(c)(x)), lib.tensor(float(c.check(registry(c)(x)).all())))]

    for a, b in zip(made(D, S), made(TD, T)):
        close(a, b, 1e-4)


def test_mixtures():
    def made(m, lib):
        d = m.MixtureSameFamily(m.Categorical(lib.tensor([[0.2, 0.8], [0.5, 0.5]])), m.Normal(lib.tensor([[0.0, 3.0], [1.0, -1.0]]), 0.5))
        lib.manual_seed(3)
        v = m.MixtureSameFamily(m.Categorical(lib.ones(2)), m.Independent(m.Normal(lib.tensor([[0.0, 1.0], [4.0, 5.0]]), 1.0), 1))
        return [d.sample((3,)), d.mean, d.variance, d.log_prob(lib.tensor([0.5, 0.1])), d.cdf(lib.tensor([0.5, 0.1])), v.sample((2,)), v.mean, v.variance, v.log_prob(lib.zeros(2))]

    for a, b in zip(made(D, S), made(TD, T)):
        close(a, b, 1e-4)


def test_correlations():
    def made(m, lib):
        lib.manual_seed(2)
        d = m.LKJCholesky(3, lib.tensor([0.7, 2.0]))
        x = d.sample((2,))
        return [x, d.log_prob(x)]

    for a, b in zip(made(D, S), made(TD, T)):
        close(a, b, 1e-4)


@pytest.mark.parametrize("name", ["Poisson", "Binomial", "NegativeBinomial"])
def test_counts(name):
    given = {"Poisson": {"rate": [0.5, 4.0]}, "Binomial": {"total_count": 5, "probs": [0.2, 0.9]}, "NegativeBinomial": {"total_count": [3.0, 1.5], "logits": [0.2, -0.9]}}[name]

    def made(m, lib):
        d, values = built(m, lib, name, given, True)
        p = d.log_prob(lib.tensor([[0.0, 1.0], [3.0, 5.0]]))
        p.sum().backward()
        return [p.detach(), d.mean.detach(), d.variance.detach(), d.mode.detach(), *[v.grad for v in values.values() if hasattr(v, "grad")]]

    for a, b in zip(made(D, S), made(TD, T)):
        close(a, b, 1e-4)


@pytest.mark.parametrize("name", ["Gamma", "Chi2", "InverseGamma", "StudentT", "FisherSnedecor", "Dirichlet", "Beta"])
def test_drawn_numbers_move_alike(name):
    def made(m, lib):
        d, given = built(m, lib, name, CASES[name], True)
        lib.manual_seed(11)
        x = d.rsample((50,))
        (x * lib.linspace(-1.0, 2.0, x.numel()).reshape(x.shape)).sum().backward()
        return [x, *(value.grad for value in given.values())]

    for a, b in zip(made(D, S), made(TD, T)):
        close(a.detach(), b.detach(), 2e-3)  # PyTorch's slopes have four digits
