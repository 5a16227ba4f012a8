"""The Wishart distribution against PyTorch's numbers, in one dimension against chi-squared, and by the moments of its samples."""
import pytest

import strided as torch
import strided.distributions as D

S = torch.tensor([[2.0, 0.5], [0.5, 1.0]])
X = torch.tensor([[6.0, 1.0], [1.0, 4.0]])


def test_values():
    w = D.Wishart(torch.tensor(5.0), covariance_matrix=S)
    assert w.log_prob(X).item() == pytest.approx(-6.3006, abs=1e-4) and w.entropy().item() == pytest.approx(7.6500, abs=1e-4)
    torch.testing.assert_close(w.mean, torch.tensor([[10.0, 2.5], [2.5, 5.0]]))
    torch.testing.assert_close(w.mode, torch.tensor([[4.0, 1.0], [1.0, 2.0]]))
    torch.testing.assert_close(w.variance, torch.tensor([[40.0, 11.25], [11.25, 10.0]]))
    torch.testing.assert_close(w.precision_matrix, torch.linalg.inv(S))
    batch = D.Wishart(torch.tensor([4.0, 6.0]), scale_tril=torch.linalg.cholesky(S))
    torch.testing.assert_close(batch.log_prob(X), torch.tensor([-6.4899, -6.3990]), atol=1e-4, rtol=0)
    other = D.Wishart(torch.tensor(2.5), precision_matrix=S)
    assert other.mode.isnan().all() and other.log_prob(X).item() == pytest.approx(-10.9946, abs=1e-3)
    assert batch.expand((3, 2)).sample().shape == (3, 2, 2, 2) and w.batch_shape == () and w.event_shape == (2, 2)


def test_one_dimension_is_chi_squared():
    w, c, x = D.Wishart(torch.tensor(3.0), torch.ones(1, 1)), D.Chi2(torch.tensor(3.0)), torch.tensor(2.0)
    assert w.log_prob(x.view(1, 1)).item() == pytest.approx(c.log_prob(x).item(), rel=1e-5)
    assert w.entropy().item() == pytest.approx(c.entropy().item(), rel=1e-5)
    p, q = D.Wishart(torch.tensor(3.0), torch.ones(1, 1) * 2), D.Wishart(torch.tensor(5.0), torch.ones(1, 1))
    gammas = D.kl_divergence(D.Gamma(1.5, 0.25), D.Gamma(2.5, 0.5))
    assert D.kl_divergence(p, q).item() == pytest.approx(gammas.item(), rel=1e-5)


def test_samples_have_its_moments():
    torch.manual_seed(0)
    w = D.Wishart(torch.tensor(5.0), covariance_matrix=S)
    samples = w.sample((20000,))
    assert samples.shape == (20000, 2, 2) and torch.equal(samples, samples.mT)
    torch.testing.assert_close(samples.mean(0), w.mean, atol=0.15, rtol=0)
    torch.testing.assert_close(samples.var(0), w.variance, atol=0.0, rtol=0.05)
    average = w.log_prob(samples).mean().item()  # minus the entropy
    assert average == pytest.approx(-w.entropy().item(), abs=0.03)
    p = D.Wishart(torch.tensor(6.0), covariance_matrix=S * 0.7)
    assert (w.log_prob(samples) - p.log_prob(samples)).mean().item() == pytest.approx(D.kl_divergence(w, p).item(), abs=0.03)


def test_gradients():
    V = S.double().requires_grad_()
    df = torch.tensor(5.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda df, V: D.Wishart(df, (V + V.mT) / 2, validate_args=False).log_prob(X.double()), (df, V))
    D.Wishart(df, V).rsample().sum().backward()
    assert df.grad.isfinite() and V.grad.isfinite().all()


def test_checks():
    w = D.Wishart(torch.tensor(5.0), S)
    with pytest.raises(AssertionError, match="Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."):
        D.Wishart(torch.tensor(5.0))
    with pytest.raises(ValueError, match="expected to be greater than ndim - 1 = 1"):
        D.Wishart(torch.tensor(0.5), S)
    with pytest.raises(ValueError, match="at least two-dimensional"):
        D.Wishart(torch.tensor(5.0), S[0])
    with pytest.raises(ValueError, match="within the support"):
        w.log_prob(-X)
