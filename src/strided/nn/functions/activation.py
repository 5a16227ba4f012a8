"""What the activation operators of ops/ leave open: in-place names, random slopes, glu, and softmax's implicit dimension."""
import warnings

from ... import ops
from ...dtypes import float64
from ...ops import log_softmax as _log_softmax
from ...ops import softmax as _softmax


def relu(input, inplace=False):
    """max(x, 0)."""
    return ops.relu_(input) if inplace else ops.relu(input)


def relu_(input):
    return ops.relu_(input)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x clamped to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return ops.hardtanh(input, min_val, max_val, inplace=inplace)


def hardtanh_(input, min_val=-1.0, max_val=1.0):
    return hardtanh(input, min_val, max_val, inplace=True)


def threshold_(input, threshold, value):
    return ops.threshold(input, threshold, value, inplace=True)


def leaky_relu_(input, negative_slope=0.01):
    return ops.leaky_relu(input, negative_slope, inplace=True)


def elu_(input, alpha=1.0):
    return ops.elu(input, alpha, inplace=True)


def selu_(input):
    return ops.selu(input, inplace=True)


def celu_(input, alpha=1.0):
    return ops.celu(input, alpha, inplace=True)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """Leaky ReLU whose slope is uniform in [lower, upper] while training, and their mean otherwise."""
    if not training:
        return ops.leaky_relu(input, (lower + upper) / 2, inplace=inplace)
    negative = input.detach() <= 0
    slope = ops.ones_like(input)
    drawn = ops.empty(int(negative.sum()), dtype=float64).uniform_(lower, upper)  # one number an element that needs it
    slope[negative] = drawn.to(input.dtype)
    return input.mul_(slope) if inplace else input * slope


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    return rrelu(input, lower, upper, training, inplace=True)


def tanh(input):
    return input.tanh()


def sigmoid(input):
    return input.sigmoid()


def glu(input, dim=-1):
    """a·sigmoid(b) with a, b the halves of the input along `dim`."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    size = input.size(dim)
    if size % 2 != 0:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    a, b = input.chunk(2, dim)
    return a * b.sigmoid()


def _implicit_dim(name, ndim, stacklevel):
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(x) / Σ exp(x) along `dim`."""
    if dim is None:
        dim = _implicit_dim("softmax", input.dim(), _stacklevel)
    return _softmax(input, dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """log(softmax(x)), computed without overflow."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim(), _stacklevel)
    return _log_softmax(input, dim, dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax of −x."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return _softmax(-input, dim, dtype=dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample of the Gumbel-softmax distribution; with `hard`, one-hot forwards and soft backwards."""
    gumbels = -ops.empty(logits.shape, dtype=logits.dtype, device=logits.device).exponential_().log()  # drawn row by row
    soft = _softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = ops.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
