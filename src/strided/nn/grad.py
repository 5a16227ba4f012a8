"""`nn.grad`: the gradients of convolutions by themselves, each from the other operand and the gradient of the result."""
from .. import ops
from ..autograd.engine import grad
from ..autograd.modes import enable_grad
from .functions.conv import conv1d, conv2d, conv3d

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _gradient(convolve, operands, wanted, grad_output, options):
    operand = operands[wanted]
    # Convolution is linear in each operand: where the wanted one is, does not matter, only its shape.
    operands[wanted] = ops.zeros(operand, dtype=grad_output.dtype, device=grad_output.device, requires_grad=True)
    with enable_grad():
        result = convolve(*operands, None, *options)
    return grad(result, operands[wanted], grad_output)[0]


def conv1d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of `conv1d` with respect to its input, of shape `input_size` [N, C, L]."""
    return _gradient(conv1d, [tuple(input_size), weight], 0, grad_output, (stride, padding, dilation, groups))


def conv1d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of `conv1d` with respect to its weight, of shape `weight_size` [O, C / groups, K]."""
    return _gradient(conv1d, [input, tuple(weight_size)], 1, grad_output, (stride, padding, dilation, groups))


def conv2d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of `conv2d` with respect to its input, of shape `input_size` [N, C, H, W]."""
    return _gradient(conv2d, [tuple(input_size), weight], 0, grad_output, (stride, padding, dilation, groups))


def conv2d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of `conv2d` with respect to its weight, of shape `weight_size` [O, C / groups, Kh, Kw]."""
    return _gradient(conv2d, [input, tuple(weight_size)], 1, grad_output, (stride, padding, dilation, groups))


def conv3d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of `conv3d` with respect to its input, of shape `input_size` [N, C, D, H, W]."""
    return _gradient(conv3d, [tuple(input_size), weight], 0, grad_output, (stride, padding, dilation, groups))


def conv3d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of `conv3d` with respect to its weight, of shape `weight_size` [O, C / groups, Kd, Kh, Kw]."""
    return _gradient(conv3d, [input, tuple(weight_size)], 1, grad_output, (stride, padding, dilation, groups))
