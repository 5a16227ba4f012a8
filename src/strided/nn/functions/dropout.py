"""Dropout: elements, whole channels, and the variants that keep mean and variance."""
from ... import ops
from ...ops.dropping import FLOATS, drop
from ...ops.random import dropout_mask
from . import counts
from .entry import entry


def check_probability(p):
    if not 0.0 <= p <= 1.0:  # NaN is neither
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input, p=0.5, training=True, inplace=False):
    """Zeroes elements with probability p and scales the rest by 1/(1−p); the identity outside training."""
    check_probability(p)
    if not training or p == 0 or input.numel() == 0:
        return input
    return _dropout(input, input.shape, p, inplace)


def _scale(input, noise_shape, p, inplace):
    """input · mask: the operator behind each form, which the identity never gets to."""
    if p < 1 and noise_shape == input.shape and input.dtype in FLOATS:
        return drop(input, p, inplace)
    mask = dropout_mask(input, p, noise_shape)  # 0, or 1/(1 − p)
    return input.mul_(mask) if inplace else input * mask


_dropout, _feature_dropout = (entry(counts.scaled, name=name, writes=True)(_scale) for name in ("dropout", "feature_dropout"))


def channels(input, p, training, inplace):
    """Dropout whose noise is one number a (batch, channel), broadcast over the rest."""
    check_probability(p)
    if not training or p == 0 or input.numel() == 0:
        return input
    if input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return _feature_dropout(input, (*input.shape[:2], *(1,) * (input.dim() - 2)), p, inplace)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Drops whole channels of [N, C, L] or [C, L]."""
    check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. "
            "Note that dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return _maybe_unbatched(input, 3, p, training, inplace)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Drops whole channels of [N, C, H, W]."""
    return channels(input, p, training, inplace)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Drops whole channels of [N, C, D, H, W] or [C, D, H, W]."""
    return _maybe_unbatched(input, 5, p, training, inplace)


def _maybe_unbatched(input, batched_ndim, p, training, inplace):
    if input.dim() == batched_ndim:
        return channels(input, p, training, inplace)
    return channels(input.unsqueeze(0), p, training, inplace).squeeze(0)


# What SELU sends −∞ to: −scale·alpha. Dropped units take this value, so that mean and variance stay.
_ALPHA = 1.7580993408473766


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout for SELU networks: keeps mean 0 and variance 1."""
    return _alpha(input, input.shape, p, training, inplace)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """alpha_dropout of whole channels."""
    return _alpha(input, (*input.shape[:2], *(1,) * (input.dim() - 2)), p, training, inplace)


def _alpha(input, noise_shape, p, training, inplace):
    check_probability(p)
    if not training or p == 0 or input.numel() == 0:
        return input
    return _moved(input, noise_shape, p, inplace)


@entry(counts.scaled_and_moved, name="alpha_dropout", writes=True)
def _moved(input, noise_shape, p, inplace):
    """input · noise + shift, for numbers of the noise's own."""
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    noise = ops.empty(noise_shape, dtype=input.dtype, device=input.device).bernoulli_(1 - p)
    a = 1.0 / ((_ALPHA * _ALPHA * p + 1) * (1 - p)) ** 0.5
    shift = noise.sub(1).mul_(_ALPHA * a).add_(_ALPHA * a * p)
    noise.mul_(a)
    return input.mul_(noise).add_(shift) if inplace else input * noise + shift
