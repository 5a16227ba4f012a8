"""Normalisation: batch, group, instance and local response. Layer and RMS norm are row operators (ops/)."""
from ... import ops
from ...autograd.modes import no_grad
from ...ops.table import operator


def _affine(x, weight, bias):
    """x·weight + bias with one number a channel (dimension 1)."""
    ones = (1,) * (x.dim() - 2)
    if weight is not None:
        x = x * weight.reshape(-1, *ones)  # [C, 1, ..]
    if bias is not None:
        x = x + bias.reshape(-1, *ones)
    return x


def _verify_batch_size(size):
    count = size[0]
    for s in size[2:]:
        count *= s
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


@operator("batch_norm", function=False, method=False, namespace="nn.functional")
def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    """(x − mean) / sqrt(var + eps) a channel; batch statistics while training (they also move the running ones), running ones otherwise.

    input [N, C, ..]. The batch variance divides by n, the running one takes the unbiased one.
    """
    if training:
        _verify_batch_size(input.size())
        dims = (0, *range(2, input.dim()))
        mean = input.mean(dims, keepdim=True)  # [1, C, 1..]
        centred = input - mean
        var = (centred * centred).mean(dims, keepdim=True)
        if running_mean is not None:
            _move(running_mean, mean, momentum)
        if running_var is not None:
            count = input.numel() // input.size(1)
            _move(running_var, var * (count / (count - 1)), momentum)
        return _affine(centred * (var + eps).rsqrt(), weight, bias)
    if running_mean is None or running_var is None:
        raise RuntimeError("Expected running_mean and running_var to be defined when training=False")
    scale = (running_var + eps).rsqrt()
    weight = scale if weight is None else weight * scale
    shift = -running_mean * weight
    return _affine(input, weight, shift if bias is None else bias + shift)


def _move(running, batch, momentum):
    with no_grad():
        running.mul_(1 - momentum).add_(batch.detach().reshape(-1), alpha=momentum)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Normalises each of `num_groups` groups of channels of each sample; weight and bias are one a channel. input [N, C, ..]."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    if input.size(1) % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    if input.numel() == 0:
        return _affine(input, weight, bias)
    rows = input.reshape(input.size(0), num_groups, -1)  # [N, G, C/G·S]
    return _affine(ops.layer_norm(rows, rows.shape[-1:], eps=eps).reshape(input.shape), weight, bias)


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
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    spatial = input.numel() // max(input.size(0) * input.size(1), 1)
    if spatial == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    rows = input.reshape(input.size(0), input.size(1), -1)  # [N, C, S]
    if running_mean is not None:
        _move(running_mean, rows.mean(-1).mean(0), momentum)
    if running_var is not None:
        _move(running_var, rows.var(-1).mean(0), momentum)
    return _affine(ops.layer_norm(rows, rows.shape[-1:], eps=eps).reshape(input.shape), weight, bias)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """x / (k + alpha·mean of squares over `size` neighbouring channels)^beta. input [N, C, ..]."""
    from .padding import pad

    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    squares = (input * input).unsqueeze(1).flatten(3)  # [N, 1, C, S]
    squares = pad(squares, [0, 0, size // 2, (size - 1) // 2])  # [N, 1, C + size − 1, S]
    mean = squares.unfold(2, size, 1).mean(-1).squeeze(1).reshape(input.shape)  # [N, C, ..]
    return input / (mean * alpha + k).pow(beta)
