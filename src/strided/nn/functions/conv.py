"""Convolutions and their transposes as users call them, and unfold/fold (im2col, col2im). What computes them is ops/convolution.py."""
import math

from ... import ops
from ...autograd.function import Function
from ...dispatch import PlanCache
from ...ops.convolution import convolution, windows
from . import checks, counts
from .entry import entry
from .padding import pad


def tuple_of(value, n):
    """`value` for each of n dimensions; a sequence of length n stays, of length 1 repeats."""
    if isinstance(value, (tuple, list)):
        return tuple(value) * n if len(value) == 1 else tuple(value)
    return (value,) * n


def both_sides(padding):
    """(p_first, …, p_last) → the argument of `pad`: the last dimension first, the same before and after."""
    return [p for size in reversed(padding) for p in (size, size)]


def _check(x, weight, bias, n, groups, name):
    if x.dim() not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: {list(x.shape)}"
        )
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if weight.dim() != n + 2:
        raise RuntimeError(f"{name}: expected weight of {n + 2} dimensions, but got weight of size {list(weight.shape)}")
    if bias is not None and bias.dim() != 1:
        raise RuntimeError(f"{name}: expected bias of one dimension, but got bias of size {list(bias.shape)}")


_STEPS = (tuple, int)
_checked = PlanCache()  # steps as tuples, by kinds of operands that went through all checks


def _conv(n, input, weight, bias, stride, padding, dilation, groups):
    key = None
    if type(stride) in _STEPS and type(padding) in _STEPS and type(dilation) in _STEPS and type(groups) is int:
        key = n, input.spec, weight.spec, None if bias is None else bias.spec, stride, padding, dilation, groups
        known = _checked.get(key)
        if known is not None:
            return convolution(input, weight, bias, *known, False, (0,) * n, groups)
    name = f"conv{n}d"
    groups = checks.groups_of(name, groups)
    if input.dim() not in (n + 1, n + 2):
        _check(input, weight, bias, n, groups, name)
    stride, dilation, kernel = checks.steps(name, n, "stride", stride), checks.steps(name, n, "dilation", dilation), tuple(weight.shape[2:])
    padding = padding if isinstance(padding, str) else checks.steps(name, n, "padding", padding)
    checks.convolution(n, input, weight, bias, stride, padding, dilation, groups)
    x = input if input.dim() == n + 2 else input.unsqueeze(0)  # [N, C, S..]
    if isinstance(padding, str):
        x, padding = _named_padding(x, padding, kernel, stride, dilation), (0,) * n
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    padded = [s + 2 * p for s, p in zip(x.shape[2:], padding)]
    if any(r > s for r, s in zip(reach, padded)):
        shape, reach = " x ".join(map(str, padded)), " x ".join(map(str, reach))
        raise RuntimeError(
            f"Calculated padded input size per channel: ({shape}). Kernel size: ({reach}). "
            "Kernel size can't be greater than actual input size"
        )
    out = convolution(x, weight, bias, stride, padding, dilation, False, (0,) * n, groups)
    if x is input and key is not None and all(type(v) is int for steps in (stride, padding, dilation) for v in steps):
        _checked.put(key, (stride, padding, dilation))
    return out if input.dim() == n + 2 else out.squeeze(0)


def _named_padding(x, padding, kernel, stride, dilation):
    if padding == "valid":
        return x
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [(k - 1) * d for k, d in zip(kernel, dilation)]
    return pad(x, [p for t in reversed(total) for p in (t // 2, t - t // 2)])  # [N, C, S + total..]


@entry(counts.convolution, autocast="lower")
def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlation: [N, C, L] with [F, C/groups, K] → [N, F, (L + 2p − dilation·(K−1) − 1)//stride + 1]."""
    return _conv(1, input, weight, bias, stride, padding, dilation, groups)


@entry(counts.convolution, autocast="lower")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """[N, C, H, W] with [F, C/groups, Kh, Kw] → [N, F, Oh, Ow]; sizes as `conv1d`."""
    return _conv(2, input, weight, bias, stride, padding, dilation, groups)


@entry(counts.convolution, autocast="lower")
def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """[N, C, D, H, W] with [F, C/groups, Kd, Kh, Kw] → [N, F, Od, Oh, Ow]; sizes as `conv1d`."""
    return _conv(3, input, weight, bias, stride, padding, dilation, groups)


# ---- transposed -------------------------------------------------------------------------------


def _conv_transpose(n, input, weight, bias, stride, padding, output_padding, groups, dilation):
    name = f"conv_transpose{n}d"
    groups = checks.groups_of(name, groups)
    _check(input, weight, bias, n, groups, name)
    stride, padding, dilation, extra = (
        checks.steps(name, n, label, value)
        for label, value in (("stride", stride), ("padding", padding), ("dilation", dilation), ("output_padding", output_padding))
    )
    checks.positive_steps(stride, padding, dilation)
    if weight.size(0) % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size [{list(weight.shape)}] instead")
    x = input if input.dim() == n + 2 else input.unsqueeze(0)  # [N, C, S..]
    if x.size(1) != weight.size(0):
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(weight.shape)}, expected input{list(input.shape)} to have "
            f"{weight.size(0)} channels, but got {x.size(1)} channels instead"
        )
    checks.one_dtype(x, weight, bias, True)
    if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation)):
        raise RuntimeError(
            "output padding must be smaller than either stride or dilation, but got "
            f"output_padding: {list(extra)}, stride: {list(stride)}, dilation: {list(dilation)}"
        )
    out = convolution(x, weight, bias, stride, padding, dilation, True, extra, groups)
    return out if input.dim() == n + 2 else out.squeeze(0)


@entry(counts.transposed_convolution, autocast="lower")
def conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The transpose of `conv1d`: [N, C, L] with [C, F/groups, K] → [N, F, (L−1)·stride − 2p + dilation·(K−1) + output_padding + 1]."""
    return _conv_transpose(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@entry(counts.transposed_convolution, autocast="lower")
def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The transpose of `conv2d`; sizes as `conv_transpose1d`."""
    return _conv_transpose(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@entry(counts.transposed_convolution, autocast="lower")
def conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The transpose of `conv3d`; sizes as `conv_transpose1d`."""
    return _conv_transpose(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


# ---- unfold and fold --------------------------------------------------------------------------


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Sliding blocks as columns: [N, C, H, W] → [N, C·Kh·Kw, Oh·Ow]."""
    if input.dim() not in (3, 4):
        raise RuntimeError(f"Expected 3D or 4D (batch mode) tensor for input, but got: {list(input.shape)}")
    kernel, dilation, stride, padding = (tuple_of(v, 2) for v in (kernel_size, dilation, stride, padding))
    checks.blocks(kernel, dilation, stride, padding)
    x = input if input.dim() == 4 else input.unsqueeze(0)
    x = pad(x, both_sides(padding))
    view = windows(x, kernel, stride, dilation)  # [N, C, Oh, Ow, Kh, Kw]
    columns = view.permute(0, 1, 4, 5, 2, 3).flatten(4, 5).flatten(1, 3).contiguous()  # [N, C·Kh·Kw, Oh·Ow]
    return columns if input.dim() == 4 else columns.squeeze(0)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The sum of blocks back into an image, the transpose of `unfold`: [N, C·Kh·Kw, L] → [N, C, H, W]."""
    size, kernel, dilation, padding, stride = (
        tuple_of(v, 2) for v in (output_size, kernel_size, dilation, padding, stride)
    )
    checks.blocks(kernel, dilation, stride, padding)
    columns = input if input.dim() == 3 else input.unsqueeze(0)
    if columns.size(1) % math.prod(kernel):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={columns.size(1)} and kernel_size={kernel}."
        )
    blocks = [(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, p, d, k, t in zip(size, padding, dilation, kernel, stride)]
    if columns.size(2) != math.prod(blocks):
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, stride={stride}, "
            f"expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{blocks[0]} * {blocks[1]} = {math.prod(blocks)}, but got input.size(2)={columns.size(2)}."
        )
    image = _Fold.apply(columns, size, kernel, dilation, padding, stride, tuple(blocks))
    return image if input.dim() == 3 else image.squeeze(0)


class _Fold(Function):
    """col2im: one strided addition a kernel position; its gradient is im2col."""

    @staticmethod
    def forward(ctx, columns, size, kernel, dilation, padding, stride, blocks):
        ctx.arguments = (kernel, dilation, padding, stride)
        batch = columns.size(0)
        columns = columns.reshape(batch, -1, *kernel, *blocks)  # [N, C, Kh, Kw, Oh, Ow]
        height, width = (s + 2 * p for s, p in zip(size, padding))
        image = ops.zeros(batch, columns.size(1), height, width, dtype=columns.dtype, device=columns.device)
        for i in range(kernel[0]):
            for j in range(kernel[1]):
                rows = slice(i * dilation[0], i * dilation[0] + stride[0] * (blocks[0] - 1) + 1, stride[0])
                cols = slice(j * dilation[1], j * dilation[1] + stride[1] * (blocks[1] - 1) + 1, stride[1])
                image[:, :, rows, cols].add_(columns[:, :, i, j])
        top, left = padding
        return image[:, :, top : top + size[0], left : left + size[1]].contiguous()

    @staticmethod
    def backward(ctx, grad):
        kernel, dilation, padding, stride = ctx.arguments
        return unfold(grad, kernel, dilation, padding, stride), None, None, None, None, None, None


def conv_tbc(input, weight, bias, pad=0):
    """A one-dimensional convolution of [T, B, C] by weight [K, C, O], bias [O], with `pad` zeros at both ends: [T + 2·pad − K + 1, B, O]."""
    if input.dim() != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.dim() != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias.dim() != 1:
        raise RuntimeError("Bias must be 1-D")
    if input.size(2) != weight.size(1):
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight.size(2) != bias.size(0):
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    return conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)  # [B, C, T] → [B, O, T'] → [T', B, O]
