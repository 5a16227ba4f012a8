"""Rules of pointwise operators, and of composites that are made of them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import tree
from ..tensor import Tensor
from .samples import POINTWISE, is_of, rule, wrapped


@rule(POINTWISE)
@rule(
    """clone contiguous detach alias zeros_like ones_like empty_like full_like relu relu_ gelu silu elu selu celu leaky_relu softplus hardtanh hardswish hardsigmoid relu6 mish logsigmoid
    tanhshrink softsign sigmoid tanh to float double half bfloat16 long int bool type_as where masked_fill masked_fill_ clamp clamp_ nan_to_num isclose copy_ fill_ zero_
    rand_like randn_like bernoulli addcmul addcdiv lerp threshold hardshrink softshrink real imag abs sgn angle"""
)
def pointwise(func: Callable[..., Any], args: tuple, kwargs: dict, level: int) -> Any:
    """Operands of the batch aligned behind their first dimension: [B, 1.., *shape]; others broadcast from behind as ever."""
    given = args, kwargs
    leaves = tree.flatten(given)
    rank = max(leaf.ndim for leaf in leaves if isinstance(leaf, Tensor))
    if func.__name__.endswith("_") and not is_of(args[0], level):
        raise RuntimeError(
            f"vmap: {func.__name__}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more elements than `self`. This happened "
            "due to `other` being vmapped over but `self` not being vmapped over in a vmap. Please try to use out-of-place operators instead of in-place ones."
        )

    def aligned(x: Any) -> Any:
        if not is_of(x, level):
            return x
        value = x.value
        return value.view(value.shape[0], *[1] * (rank - x.ndim), *value.shape[1:]) if x.ndim < rank and x.ndim else value if x.ndim == rank else value.view(-1, *[1] * rank)

    a, k = tree.rebuild(given, [aligned(leaf) for leaf in leaves])
    result = func(*a, **k)
    if func.__name__.endswith("_"):
        return args[0]
    return wrapped(result, level)


@rule("mse_loss l1_loss")
def composed(func, args, kwargs, level):
    """What is written in operators runs on samples as it is."""
    return getattr(func, "__wrapped__", func)(*args, **kwargs)
