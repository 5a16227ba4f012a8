"""Normalisation: batch, group, instance and local response. Layer and RMS norm are row operators (ops/)."""
import math

from ... import errors, ops
from ...autograd import backward, record, tracking
from ...autograd.modes import no_grad
from ...dispatch import PlanCache
from ...formats import contiguous_format, suggested
from ...kernels import expr as E
from ...ops.eager import pointwise
from ...ops.folding import plain
from ...ops.onlooking import seen_as
from . import counts
from .channelwise import ChannelFold
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


def _normalized(x, weight, bias, eps):
    mean = E.rsum(x) / E.extent()
    rstd = E.rsqrt(E.rsum((x - mean) * (x - mean)) / E.extent() + eps)
    return (x - mean) * rstd * weight + bias, mean, rstd


def _with_running(x, weight, bias, eps, running_mean, running_var, momentum, correction):
    """The same, and what the running statistics become; correction: of a variance that divides by n, times the momentum."""
    out, mean, rstd = _normalized(x, weight, bias, eps)
    var = E.rsum((x - mean) * (x - mean)) / E.extent()
    return out, mean, rstd, running_mean * (1 - momentum) + mean * momentum, running_var * (1 - momentum) + var * correction


def _batch_gradients(g, x, mean, rstd, weight):
    n = (x - mean) * rstd
    total, along = E.rsum(g), E.rsum(g * n)
    return weight * rstd * (g - total / E.extent() - n * (along / E.extent())), along, total


_batch_norm = ChannelFold("batch_norm", _normalized, "x c c n", "x c c", "channel")
_batch_norm_moving = ChannelFold("batch_norm", _with_running, "x c c n c c n n", "x c c c c", "channel")
_batch_norm_back = ChannelFold("batch_norm_backward", _batch_gradients, "x x c c c", "x c c", "channel", like=1)


@backward("NativeBatchNorm", saved_names=("input", "weight", "result1", "result2"))
@seen_as("batch_norm_backward", lambda node, g: _batch_norm_back.flops * g.numel())
def NativeBatchNormBackward0(node, g):
    x, weight, mean, rstd = node.saved
    if tracking(g, x, weight):
        return _composed_gradients(node, g, x, weight)
    statistic = mean.dtype if weight is None else weight.dtype
    gx, gw, gb = _batch_norm_back((_like(g, x), x, mean, rstd, 1.0 if weight is None else weight), (x.dtype, statistic, statistic))
    return tuple(t if wanted else None for t, wanted in zip((gx, gw, gb), node.needs))


def _composed_gradients(node, g, x, weight):
    """The same in operators that are recorded, so that it can be differentiated again."""
    dims, channels = (0, *range(2, x.dim())), [1, -1, *[1] * (x.dim() - 2)]
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
    kinds = tuple([t if t is None else t.spec for t in (input, running_mean, running_var, weight, bias)])
    if kinds not in _sound:
        _check_channels(input.size(1), running_mean, running_var, weight, bias)
        _check_batch(input, weight, bias, running_mean, running_var)
        _sound.put(kinds, True)
    return _by_running(input, running_mean, running_var, weight, bias, eps)


_sound = PlanCache()  # kinds of operands that passed the checks


def _by_running(input, running_mean, running_var, weight, bias, eps):
    """(x − mean)·scale + bias, with one number a channel of each."""
    if input.dtype.itemsize < 4 or input.is_meta or running_mean.dtype is not input.dtype or tracking(running_mean, running_var):
        return _by_running_parts(input, running_mean, running_var, weight, bias, eps)
    x, ones = plain(input).contiguous(memory_format=suggested(input.spec.layout)), (-1, *(1,) * (input.dim() - 2))
    if input.numel() <= FEW and not tracking(input, weight, bias):
        channels = [t if t is None else plain(t) if input.dim() == 2 else plain(t).reshape(ones) for t in (running_mean, running_var, weight, bias)]
        return _at_once(x, channels[0], channels[1], float(eps), 1.0 if weight is None else channels[2], 0.0 if bias is None else channels[3])
    rstd = _reciprocal(plain(running_var), float(eps))  # [C]
    scale = rstd if weight is None else rstd * plain(weight)
    out = _scaled(x, plain(running_mean).reshape(ones), scale.reshape(ones), 0.0 if bias is None else plain(bias).reshape(ones))
    if tracking(input, weight, bias):
        record(BatchNormByRunningBackward0, (input, weight, bias), out, (input, weight, plain(running_mean).clone(), rstd))
    return out


FEW = 1 << 13  # elements up to which a reciprocal for each costs less than a kernel for the channels
_at_once = pointwise("_by_running", lambda x, mean, var, eps, weight, bias: (x - mean) * (E.rsqrt(var + eps) * weight) + bias, public=False, method=False, inplace=False, node=None)
_reciprocal = pointwise("_reciprocal_deviation", lambda var, eps: E.rsqrt(var + eps), public=False, method=False, inplace=False, node=None)
_scaled = pointwise("_scaled_channels", lambda x, mean, scale, shift: (x - mean) * scale + shift, public=False, method=False, inplace=False, node=None)


def _running_gradients(g, x, mean, rstd, weight):
    return g * (weight * rstd), E.rsum(g * ((x - mean) * rstd)), E.rsum(g)


_running_back = ChannelFold("batch_norm_backward", _running_gradients, "x x c c c", "x c c", "channel", like=1)


@backward("BatchNormByRunning", saved_names=("input", "weight", "running_mean", "result2"))
@seen_as("batch_norm_backward", lambda node, g: _running_back.flops * g.numel())
def BatchNormByRunningBackward0(node, g):
    x, weight, mean, rstd = node.saved
    if tracking(g, x, weight):
        ones, dims = (-1, *(1,) * (x.dim() - 2)), (0, *range(2, x.dim()))
        scale = rstd.reshape(ones) if weight is None else (rstd * weight).reshape(ones)
        n = (x - mean.reshape(ones)) * rstd.reshape(ones)
        return g * scale, (g * n).sum(dims) if node.needs[1] else None, g.sum(dims) if node.needs[2] else None
    results = _running_back((_like(g, x), x, mean, rstd, 1.0 if weight is None else weight), (x.dtype,) * 3)
    return tuple(t if wanted else None for t, wanted in zip(results, node.needs))


def _like(g, x):
    """g in the memory format of x: kernels walk both alike."""
    return plain(g).contiguous(memory_format=suggested(x.spec.layout))


@in_float32
def _by_running_parts(input, running_mean, running_var, weight, bias, eps):
    scale = (running_var + eps).rsqrt()
    scale = scale if weight is None else scale * weight
    shift = -running_mean * scale
    input = input.contiguous(memory_format=suggested(input.spec.layout))
    return _affine(input, scale, shift if bias is None else bias + shift)


def over_batch(input, running_mean, running_var, weight, bias, momentum, eps):
    """(batch_norm by the batch's statistics, mean [C], 1 / sqrt(var + eps) [C]); the running statistics move."""
    _check_channels(input.size(1), running_mean, running_var, weight, bias)
    _check_batch(input, weight, bias, running_mean, running_var)
    statistic = input.dtype.compute
    operands = input, 1.0 if weight is None else weight, 0.0 if bias is None else bias, eps
    count = input.numel() // input.size(1)
    correction = count / (count - 1) if count > 1 else math.nan
    dtypes = input.dtype, statistic, statistic
    if running_mean is None and running_var is None:
        out, mean, rstd = _batch_norm(operands, dtypes)  # [N, C, ..], [C], [C]
    else:
        moves = 0.0 if running_mean is None else running_mean, 0.0 if running_var is None else running_var, float(momentum), float(momentum * correction)
        if _in_place(running_mean, running_var, statistic):
            out, mean, rstd = _batch_norm_moving((*operands, *moves), dtypes, into=(running_mean, running_var))
        else:
            out, mean, rstd, *moved = _batch_norm_moving((*operands, *moves), (*dtypes, statistic, statistic))
            with no_grad():
                for running, value in zip((running_mean, running_var), moved):
                    if running is not None:
                        running.copy_(value)
    if tracking(input, weight, bias):
        record(NativeBatchNormBackward0, (input, weight, bias), out, (input, weight, mean, rstd), eps=eps)
    return out, mean, rstd


def _in_place(running_mean, running_var, dtype):
    """Whether the kernel that computes the statistics may write the running ones, too."""
    plain_ones = all(t is not None and t.dtype is dtype and not t._tracked and t._base is None and not t._inference and t.mem.owner is None for t in (running_mean, running_var))
    return plain_ones and running_mean.mem is not running_var.mem


def _move(running, batch, momentum, factor=1.0):
    """running = running · (1 − momentum) + batch · factor · momentum."""
    with no_grad():
        if running.dtype == batch.dtype and isinstance(momentum, (int, float)):
            running.mul_(1 - momentum).add_(batch, alpha=momentum * factor)
            return
        batch = batch * factor
        running.copy_(running.to(batch.dtype) * (1 - momentum) + batch * momentum)


@entry(counts.normalized)
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Normalises each of `num_groups` groups of channels of each sample; weight and bias are one a channel. input [N, C, ..].

    Parameters have the input's dtype, or are float32 beside 16 bits; RuntimeError for others.
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
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
    if suggested(input.spec.layout) is not contiguous_format and input.numel() >= LARGE and not input.is_meta:
        out, mean, rstd = _by_channels(input, num_groups, weight, bias, float(eps))
    else:
        out, mean, rstd = _group_norm_fold((input, 1.0 if weight is None else weight, 0.0 if bias is None else bias, float(eps)), (input.dtype,) * 3, num_groups)
    if tracking(input, weight, bias):
        record(NativeGroupNormBackward0, (input, weight, bias), out, (input, weight, mean, rstd), groups=num_groups, eps=eps)
    return out


LARGE = 1 << 14  # elements from which groups of innermost channels are put together from the channels' statistics


def _moments(x):
    mean = E.rsum(x) / E.extent()
    return mean, E.rsum((x - mean) * (x - mean)) / E.extent()


_group_norm_fold = ChannelFold("group_norm", _normalized, "x c c n", "x g g", "group")
_channel_moments = ChannelFold("group_norm", _moments, "x", "p p", "place")
_channel_sums = ChannelFold("group_norm_backward", lambda g, x, mean, rstd: (E.rsum(g * ((x - mean) * rstd)), E.rsum(g)), "x x p p", "p p", "place")


def _put_together(means, variances, weight, eps):
    """From the moments of a group's channels: what each channel is multiplied by, and for each the mean; mean and reciprocal deviation of the group."""
    mean = E.rsum(means) / E.extent()
    rstd = E.rsqrt(E.rsum(variances + (means - mean) * (means - mean)) / E.extent() + eps)
    return rstd * weight, mean, mean, rstd


def _factors(along, total, weight, mean, rstd, count):
    """For each channel of a group of `count` elements what `_group_back` takes, from sums of the gradient, alone and times the normalised input."""
    return rstd * weight, -(E.rsum(along * weight) / count) * rstd * rstd, -(E.rsum(total * weight) / count) * rstd


_group_scales = ChannelFold("group_norm", _put_together, "x x c n", "x x g g", "group")
_group_factors = ChannelFold("group_norm_backward", _factors, "x x c g g n", "x x x", "group")
_group_back = pointwise("_group_norm_gradient", lambda g, x, a, mean, b, d: g * a + (x - mean) * b + d, public=False, method=False, inplace=False, node=None)


def _by_channels(input, groups, weight, bias, eps):
    """(group_norm, mean [N, G], 1 / sqrt(var + eps) [N, G]) from the moments of each channel of each sample."""
    x, kind, ones = plain(input), input.dtype, (1,) * (input.dim() - 2)
    moments = _channel_moments((x,), (kind, kind), groups)  # [N, C]
    scale, means, mean, rstd = _group_scales((*moments, 1.0 if weight is None else plain(weight), eps), (kind,) * 4, groups)
    with no_grad():
        x = x.contiguous(memory_format=suggested(x.spec.layout))
        out = _scaled(x, means.view(*means.shape, *ones), scale.view(*scale.shape, *ones), 0.0 if bias is None else plain(bias).reshape(-1, *ones))
    return out, mean, rstd


@backward("NativeGroupNorm", saved_names=("input", "weight", "result1", "result2"))
@seen_as("group_norm_backward", lambda node, g: 8 * g.numel())  # two sums of products, a product and two sums for the input
def NativeGroupNormBackward0(node, g):
    x, weight, mean, rstd = node.saved
    if tracking(g, x, weight):
        return _composed_group_gradients(node, g, x, weight)
    g, x = _like(g, x), plain(x)
    groups, kind, ones = node.groups, x.dtype, (1,) * (x.dim() - 2)
    with no_grad():
        each = lambda t: t.unsqueeze(-1).expand(*t.shape, x.size(1) // groups).reshape(x.shape[:2]).contiguous()  # [N, G] → [N, C]
        means = each(mean)
        along, total = _channel_sums((g, x, means, each(rstd)), (kind, kind), groups)  # [N, C]
        gw, gb = (t.sum(0) if wanted else None for t, wanted in zip((along, total), node.needs[1:]))
        if not node.needs[0]:
            return None, gw, gb
        count = float(x.numel() // (x.size(0) * groups))
        factors = _group_factors((along, total, 1.0 if weight is None else plain(weight), mean, rstd, count), (kind,) * 3, groups)
        scale, factor, shift, means = (t.view(*t.shape, *ones) for t in (*factors, means))
        gx = _group_back(g, x, scale, means, factor, shift)
    return gx, gw, gb


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
    input = input.contiguous()
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
