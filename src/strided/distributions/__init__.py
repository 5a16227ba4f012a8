"""`torch.distributions`: distributions to sample from and to measure with. Samples are PyTorch's for the same seed (but Wishart's); log-probabilities are differentiable.

Arguments are tensors or numbers and broadcast; `validate_args=False` leaves the checks out. Gamma numbers (Gamma, Beta, Dirichlet, Chi2, StudentT) and counts are drawn
one by one; how gamma numbers move with their concentration is ops/implicit.py's work. Of the rest, refused.py says what to use.
"""
import sys

from .. import constraints
from ..refused import missing
from . import base as distribution
from . import kl, transforms, utils
from .base import Distribution, ExponentialFamily, Independent
from .classes import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    LogitRelaxedBernoulli,
    MixtureSameFamily,
    Multinomial,
    NegativeBinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from .gammas import Chi2, FisherSnedecor, Gamma, InverseGamma, Poisson, StudentT
from .joined import CatTransform, CorrCholeskyTransform, CumulativeDistributionTransform, StackTransform
from .kl import kl_divergence, register_kl
from .matrices import Wishart
from .numbers import (
    Cauchy,
    Exponential,
    Gumbel,
    HalfCauchy,
    HalfNormal,
    Laplace,
    LogNormal,
    Normal,
    Pareto,
    Uniform,
    Weibull,
)
from .rarer import ContinuousBernoulli, GeneralizedPareto, Kumaraswamy, LogisticNormal, VonMises
from .registry import ConstraintRegistry, biject_to, transform_to
from .transformed import TransformedDistribution
from .transforms import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from .vectors import Beta, Dirichlet, LKJCholesky, LowRankMultivariateNormal, MultivariateNormal

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform", "Categorical", "Cauchy", "Chi2", "ComposeTransform", "ConstraintRegistry",
    "ContinuousBernoulli", "CorrCholeskyTransform", "CumulativeDistributionTransform", "Dirichlet", "Distribution", "ExpTransform", "Exponential",
    "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "IndependentTransform",
    "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LogitRelaxedBernoulli", "LowRankMultivariateNormal",
    "LowerCholeskyTransform", "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "PositiveDefiniteTransform", "PowerTransform", "RelaxedBernoulli", "RelaxedOneHotCategorical",
    "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform", "StickBreakingTransform", "StudentT", "TanhTransform",
    "Transform", "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart", "biject_to", "constraints", "distribution", "identity_transform", "kl",
    "kl_divergence", "register_kl", "transform_to", "transforms", "utils",
]  # fmt: skip

for _kind in (CatTransform, CorrCholeskyTransform, CumulativeDistributionTransform, StackTransform):
    setattr(transforms, _kind.__name__, _kind)  # as PyTorch's module of that name has them

# PyTorch's files of single distributions.
globals().update(dict.fromkeys(
    """bernoulli beta binomial categorical cauchy chi2 constraint_registry continuous_bernoulli dirichlet exp_family exponential fishersnedecor gamma generalized_pareto
    geometric gumbel half_cauchy half_normal independent inverse_gamma kumaraswamy laplace lkj_cholesky log_normal logistic_normal lowrank_multivariate_normal mixture_same_family
    multinomial multivariate_normal negative_binomial normal one_hot_categorical pareto poisson relaxed_bernoulli relaxed_categorical studentT transformed_distribution
    uniform von_mises weibull wishart""".split(), sys.modules[__name__]))  # fmt: skip

__getattr__ = missing("torch.distributions")
