"""`torch.distributions`: distributions to sample from and to measure with. Samples are PyTorch's for the same seed; log-probabilities are differentiable.

Arguments are tensors or numbers and broadcast; `validate_args=False` leaves the checks out. Gamma numbers (Gamma, Beta, Dirichlet, Chi2, StudentT) are drawn
one by one and have no gradient to their concentration. Of the rest, refused.py says what to use.
"""
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
from .gammas import Chi2, Gamma, InverseGamma, Poisson, StudentT
from .kl import kl_divergence, register_kl
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
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ComposeTransform", "ConstraintRegistry", "Dirichlet", "Distribution",
    "ExpTransform", "Exponential", "ExponentialFamily", "Gamma", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "IndependentTransform",
    "InverseGamma", "LKJCholesky", "Laplace", "LogNormal", "LogitRelaxedBernoulli", "LowRankMultivariateNormal", "LowerCholeskyTransform", "MixtureSameFamily", "Multinomial",
    "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "PositiveDefiniteTransform", "PowerTransform",
    "RelaxedBernoulli", "RelaxedOneHotCategorical", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StickBreakingTransform",
    "StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "Weibull", "biject_to", "constraints", "distribution", "identity_transform", "kl",
    "kl_divergence", "register_kl", "transform_to", "transforms", "utils",
]  # fmt: skip

__getattr__ = missing("torch.distributions")
