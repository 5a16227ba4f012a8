"""Normalisation: batch, group, instance and local response. Layer and RMS norm are row operators (ops/)."""
import math

from ... import errors, ops
from ...autograd import backward, record, tracking
from ...autograd.modes import no_grad
from ...kernels import expr as E
from ...ops.folding import Fold
from . import counts
from .entry import entry
from .precision import in_float32


def _affine(x, weight, bias):
    """x·weight + bias with one number a channel (dimension 1)."""
    ones = (1,) * (x.dim() - 2)
    if weight is not None and bias is not None and x.dtype == weight.dtype == bias.dtype:  # in one go
        return ops.addcmul(bias.reshape(-1, *ones), x, weight.reshape(-1, *ones))
    if weight is not None:
        x = x * weight.reshape(-1, *ones)  # [C, 1, ..]
    if bias is not None:
        x = x + bias.reshape(-1, *ones)
    return x


def _check_dtypes(input, *parameters):
    if any(t is not None and t.dtype is not input.dtype for t in parameters):
        problem = errors.mixed_parameters(input.dtype, [None if t is None else t.dtype for t in parameters])
        if problem is not None:
            raise problem


def _check_channels(channels, running_mean, running_var, weight, bias):
    for label, t in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)):
        if t is not None and t.numel() != channels:
            raise RuntimeError(f"{label} should contain {channels} elements not {t.numel()}")


def _check_batch(input, *parameters):
    if not input.is_floating_point():
        raise NotImplementedError(f'"batch_norm" not implemented for \'{input.dtype.scalar_name}\'\n  Convert to float32 first.')
    _check_dtypes(input, *parameters)


def _verify_batch_size(size):
    count = size[0]
    for s in size[2:]:
        count *= s
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def _batch_exprs(x, weight, bias, eps):
    mean = E.rsum(x) / E.extent()
    var = E.rsum((x - mean) * (x - mean)) / E.extent()
    return (x - mean) * E.rsqrt(var + eps) * weight + bias, mean, var


def _batch_gradients(g, x, mean, rstd, weight):
    n = (x - mean) * rstd
    total, along = E.rsum(g), E.rsum(g * n)
    return weight * rstd * (g - total / E.extent() - n * (along / E.extent())), along, total


_batch_norm = Fold("batch_norm", _batch_exprs, 4, ("element", "row", "row"))
_batch_norm_back = Fold("batch_norm_backward", _batch_gradients, 5, ("element", "row", "row"))


@backward("NativeBatchNorm", saved_names=("input", "weight", "result1", "result2"))
def NativeBatchNormBackward0(node, g):
    x, weight, mean, rstd = node.saved
    dims, channels = node.dims, tuple(mean.shape)  # [1, C, 1..]
    if tracking(g, x, weight):
        return _composed_gradients(node, g, x, weight)
    scale = 1.0 if weight is None else weight.reshape(channels)
    statistic = mean.dtype if weight is None else weight.dtype
    gx, gw, gb = _batch_norm_back((g, x, mean, rstd, scale), dims, (x.dtype, statistic, statistic))
    return tuple(t if wanted else None for t, wanted in zip((gx, gw, gb), node.needs))


def _composed_gradients(node, g, x, weight):
    """The same in operators that are recorded, so that it can be differentiated again."""
    dims, channels = node.dims, [1, -1, *[1] * (x.dim() - 2)]
    centred = x - x.mean(dims, keepdim=True)
    rstd = ((centred * centred).mean(dims, keepdim=True) + node.eps).rsqrt()
    n = centred * rstd
    h = g if weight is None else g * weight.reshape(channels)
    gx = rstd * (h - h.mean(dims, keepdim=True) - n * (h * n).mean(dims, keepdim=True))
    return gx, (g * n).sum(dims) if node.needs[1] else None, g.sum(dims) if node.needs[2] else None


@entry(counts.batch_norm, node="NativeBatchNorm")
def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    """(x − mean) / sqrt(var + eps)·weight + bias a channel; batch statistics while training (they also move the running ones), else the running ones.

    input [N, C, ..]. The batch variance divides by n, the running one takes the unbiased one.
    """
    if eps < 0 or training and eps == 0:
        raise ValueError(f"batch_norm eps must be {'positive during training' if training else 'non-negative'}, but got {eps}")
    if input.numel() == 0:
        return input.clone() if weight is None or input.dim() < 2 else _affine(input, weight, bias)
    if training:
        _verify_batch_size(input.size())
        return over_batch(input, running_mean, running_var, weight, bias, momentum, float(eps))[0]
    if running_mean is None or running_var is None:
        raise RuntimeError("Expected running_mean and running_var to be defined when training=False")
    _check_channels(input.size(1), running_mean, running_var, weight, bias)
    _check_batch(input, weight, bias, running_mean, running_var)
    return _by_running(input, running_mean, running_var, weight, bias, eps)


@in_float32
def _by_running(input, running_mean, running_var, weight, bias, eps):
    """x·scale + shift, with one pair of numbers a channel."""
    scale = (running_var + eps).rsqrt()
    scale = scale if weight is None else scale * weight
    shift = -running_mean * scale
    return _affine(input, scale, shift if bias is None else bias + shift)


def over_batch(input, running_mean, running_var, weight, bias, momentum, eps):
    """(batch_norm by the batch's statistics, mean [C], 1 / sqrt(var + eps) [C]); the running statistics move."""
    _check_channels(input.size(1), running_mean, running_var, weight, bias)
    _check_batch(input, weight, bias, running_mean, running_var)
    dims, channels = (0, *range(2, input.dim())), [1, -1, *[1] * (input.dim() - 2)]
    affine = [default if t is None else t.detach().reshape(channels) for t, default in ((weight, 1.0), (bias, 0.0))]
    statistic = input.dtype.compute
    out, mean, var = _batch_norm((input.detach(), *affine, eps), dims, (input.dtype, statistic, statistic), True)
    if running_mean is not None:
        _move(running_mean, mean, momentum)
    if running_var is not None:
        count = input.numel() // input.size(1)
        _move(running_var, var, momentum, count / (count - 1) if count > 1 else math.nan)
    rstd = (var + eps).rsqrt()
    if tracking(input, weight, bias):
        record(NativeBatchNormBackward0, (input, weight, bias), out, (input, weight, mean, rstd), dims=dims, eps=eps)
    return out, mean.reshape(-1), rstd.reshape(-1)


def _move(running, batch, momentum, factor=1.0):
    """running = running · (1 − momentum) + batch · factor · momentum."""
    with no_grad():
        if running.dtype == batch.dtype and isinstance(momentum, (int, float)):
            running.mul_(1 - momentum).add_(batch.reshape(-1), alpha=momentum * factor)
            return
        batch = batch * factor
        running.copy_(running.to(batch.dtype) * (1 - momentum) + batch.reshape(-1) * momentum)


@entry(counts.normalized)
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Normalises each of `num_groups` groups of channels of each sample; weight and bias are one a channel. input [N, C, ..].

    Parameters have the input's dtype, or are float32 beside 16 bits; RuntimeError for others.
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    if input.size(1) % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    if input.numel():
        for label, t in (("weight", weight), ("bias", bias)):
            if t is not None and tuple(t.shape) != (input.size(1),):
                raise RuntimeError(f"Expected {label} to be a vector of size equal to the number of channels in input, but got {label} of shape {list(t.shape)} and input of shape {list(input.shape)}")
        _check_dtypes(input, weight, bias)
    return _group_norm(input, num_groups, weight, bias, eps)


@in_float32
def _group_norm(input, num_groups, weight, bias, eps):
    if input.numel() == 0:
        return _affine(input, weight, bias)
    if not input.is_floating_point():
        raise NotImplementedError(f'"GroupNormKernelImpl" not implemented for \'{input.dtype.scalar_name}\'\n  Convert to float32 first.')
    rows = input.detach().reshape(input.size(0), num_groups, input.size(1) // num_groups, -1)  # [N, G, C/G, S]
    affine = [default if t is None else t.detach().reshape(1, num_groups, -1, 1) for t, default in ((weight, 1.0), (bias, 0.0))]
    out, mean, var = _batch_norm((rows, *affine, float(eps)), (2, 3), (input.dtype,) * 3, True)
    out = out.reshape(input.shape)
    if tracking(input, weight, bias):
        record(NativeGroupNormBackward0, (input, weight, bias), out, (input, weight, mean, (var + eps).rsqrt()), groups=num_groups, eps=eps)
    return out


def _group_gradients(g, x, mean, rstd, weight):
    n, h = (x - mean) * rstd, g * weight
    return rstd * (h - E.rsum(h) / E.extent() - n * (E.rsum(h * n) / E.extent()))


_group_norm_back = Fold("group_norm_backward", _group_gradients, 5, ("element",))
_group_norm_sums = Fold("group_norm_backward", lambda g, x, mean, rstd: (E.rsum(g * ((x - mean) * rstd)), E.rsum(g)), 4, ("row", "row"))


@backward("NativeGroupNorm", saved_names=("input", "weight", "result1", "result2"))
def NativeGroupNormBackward0(node, g):
    x, weight, mean, rstd = node.saved
    if tracking(g, x, weight):
        return _composed_group_gradients(node, g, x, weight)
    shape = x.size(0), node.groups, x.size(1) // node.groups, -1
    rows, grads = x.detach().reshape(shape), g.detach().reshape(shape)  # [N, G, C/G, S]
    gx = gw = gb = None
    if node.needs[0]:
        scale = 1.0 if weight is None else weight.detach().reshape(1, *shape[1:3], 1)
        gx = _group_norm_back((grads, rows, mean, rstd, scale), (2, 3), (x.dtype,)).reshape(x.shape)
    if node.needs[1] or node.needs[2]:
        gw, gb = (t.reshape(-1) for t in _group_norm_sums((grads, rows, mean, rstd), (0, 3), (x.dtype, x.dtype)))
    return gx, gw if node.needs[1] else None, gb if node.needs[2] else None


def _composed_group_gradients(node, g, x, weight):
    """The same in operators that are recorded, so that it can be differentiated again."""
    shape, dims = (x.size(0), node.groups, x.size(1) // node.groups, -1), (2, 3)
    rows, grads = x.reshape(shape), g.reshape(shape)
    centred = rows - rows.mean(dims, keepdim=True)
    rstd = ((centred * centred).mean(dims, keepdim=True) + node.eps).rsqrt()
    n = centred * rstd
    h = grads if weight is None else grads * weight.reshape(1, *shape[1:3], 1)
    gx = rstd * (h - h.mean(dims, keepdim=True) - n * (h * n).mean(dims, keepdim=True))
    sums = [t.sum((0, 3)).reshape(-1) if wanted else None for t, wanted in ((grads * n, node.needs[1]), (grads, node.needs[2]))]
    return gx.reshape(x.shape), *sums


@entry(counts.instance_norm)
def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    """Normalises each channel of each sample by its own statistics (or all by the running ones). input [N, C, ..]."""
    for label, t in (("running_mean", running_mean), ("running_var", running_var)):
        if t is not None and t.numel() != input.size(1):  # PyTorch normalises a batch of one with N·C channels, and counts those
            raise RuntimeError(f"{label} should contain {input.size(0) * input.size(1)} elements not {input.size(0) * t.numel()}")
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    spatial = input.numel() // max(input.size(0) * input.size(1), 1)
    if spatial == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    rows = input.detach().reshape(input.size(0), input.size(1), -1)  # [N, C, S]
    if running_mean is not None:
        _move(running_mean, rows.to(rows.dtype.compute).mean(-1).mean(0), momentum)
    if running_var is not None:
        _move(running_var, rows.to(rows.dtype.compute).var(-1).mean(0), momentum)
    return group_norm(input, input.size(1), weight, bias, eps)


@entry(counts.local_response)
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """x / (k + alpha·mean of squares over `size` neighbouring channels)^beta. input [N, C, ..]."""
    from .padding import pad

    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    squares = (input * input).unsqueeze(1).flatten(3)  # [N, 1, C, S]
    squares = pad(squares, [0, 0, size // 2, (size - 1) // 2])  # [N, 1, C + size − 1, S]
    windows = squares.unfold(2, size, 1)  # [N, 1, C, S, size]
    mean = (windows.mean(-1) if input.is_floating_point() else windows.sum(-1).div(size, rounding_mode="trunc")).squeeze(1).reshape(input.shape)  # [N, C, ..]
    return input / (mean * alpha + k).pow(beta)
