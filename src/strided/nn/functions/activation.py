"""Activation functions, and the normalising ones over a dimension (softmax and its relatives)."""
import warnings

from ... import ops
from ...ops import log_softmax as _log_softmax
from ...ops import softmax as _softmax


def relu(input, inplace=False):
    return ops.relu_(input) if inplace else ops.relu(input)


def relu_(input):
    return ops.relu_(input)


def relu6(input, inplace=False):
    """min(max(x, 0), 6)."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x clamped to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return input.clamp_(min_val, max_val) if inplace else input.clamp(min_val, max_val)


def hardtanh_(input, min_val=-1.0, max_val=1.0):
    return hardtanh(input, min_val, max_val, inplace=True)


def threshold(input, threshold, value, inplace=False):
    """x where x > threshold, else value."""
    result = ops.where(input > threshold, input, ops.full_like(input, value))
    return input.copy_(result) if inplace else result


def threshold_(input, threshold_, value):
    return threshold(input, threshold_, value, inplace=True)


def _inplace(input, result, inplace):
    return input.copy_(result) if inplace else result


def leaky_relu(input, negative_slope=0.01, inplace=False):
    return ops.leaky_relu_(input, negative_slope) if inplace else ops.leaky_relu(input, negative_slope)


def leaky_relu_(input, negative_slope=0.01):
    return leaky_relu(input, negative_slope, inplace=True)


def elu(input, alpha=1.0, inplace=False):
    return ops.elu_(input, alpha) if inplace else ops.elu(input, alpha)


def elu_(input, alpha=1.0):
    return elu(input, alpha, inplace=True)


def selu(input, inplace=False):
    return ops.selu_(input) if inplace else ops.selu(input)


def selu_(input):
    return selu(input, inplace=True)


def celu(input, alpha=1.0, inplace=False):
    return ops.celu_(input, alpha) if inplace else ops.celu(input, alpha)


def celu_(input, alpha=1.0):
    return celu(input, alpha, inplace=True)


def prelu(input, weight):
    """x where x > 0, else weight·x; weight has one element or one a channel (dimension 1)."""
    return ops.prelu(input, weight)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """Leaky ReLU whose slope is uniform in [lower, upper] while training, and their mean otherwise."""
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slope = ops.empty_like(input).uniform_(lower, upper)
    return _inplace(input, ops.where(input > 0, input, input * slope), inplace)


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    return rrelu(input, lower, upper, training, inplace=True)


def gelu(input, approximate="none"):
    """x·Φ(x), or with approximate="tanh" the tanh formula."""
    return ops.gelu(input, approximate=approximate)


def silu(input, inplace=False):
    return ops.silu_(input) if inplace else ops.silu(input)


def mish(input, inplace=False):
    return ops.mish_(input) if inplace else ops.mish(input)


def hardsigmoid(input, inplace=False):
    """min(max(x + 3, 0), 6) / 6."""
    return ops.hardsigmoid_(input) if inplace else ops.hardsigmoid(input)


def hardswish(input, inplace=False):
    """x·hardsigmoid(x)."""
    return ops.hardswish_(input) if inplace else ops.hardswish(input)


def softplus(input, beta=1, threshold=20):
    """log(1 + exp(beta·x)) / beta, and x itself where beta·x > threshold."""
    return ops.softplus(input, beta, threshold)


def softsign(input):
    return input / (input.abs() + 1)


def tanhshrink(input):
    return input - input.tanh()


def softshrink(input, lambd=0.5):
    return ops.softshrink(input, lambd)


def hardshrink(input, lambd=0.5):
    return ops.hardshrink(input, lambd)


def logsigmoid(input):
    return ops.logsigmoid(input)


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
    gumbels = -ops.empty_like(logits).exponential_().log()
    soft = _softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = ops.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
