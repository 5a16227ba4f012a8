"""Batch norm folded into the convolution or linear map before it, for evaluation; modules made without initialisation."""
import copy
import inspect

from ... import ops
from ..module import Module
from ..parameter import Parameter


def _folded(weight, bias, mean, var, eps, gain, shift, over):
    """(weight, bias) of a map followed by a batch norm; `over` is the weight's output dimension."""
    bias = ops.zeros_like(mean) if bias is None else bias
    gain = ops.ones_like(mean) if gain is None else gain
    shift = ops.zeros_like(mean) if shift is None else shift
    scale = gain * ops.rsqrt(var + eps)
    shape = [1] * weight.ndim
    shape[over] = -1
    return weight * scale.reshape(shape).to(weight.dtype), ((bias - mean) * scale + shift).to(bias.dtype)


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """(weight, bias) of a convolution that does what a convolution and a batch norm do."""
    w, b = _folded(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)
    return Parameter(w.detach(), conv_w.requires_grad), Parameter(b.detach(), conv_w.requires_grad if conv_b is None else conv_b.requires_grad)


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """(weight, bias) of a linear map that does what a linear map and a batch norm do."""
    w, b = _folded(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)
    return Parameter(w.detach(), linear_w.requires_grad), Parameter(b.detach(), linear_w.requires_grad if linear_b is None else linear_b.requires_grad)


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A copy of the convolution with the batch norm after it folded in. Both must be in evaluation mode."""
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose)
    return fused


def fuse_linear_bn_eval(linear, bn):
    """A copy of the linear map with the batch norm after it folded in. Both must be in evaluation mode."""
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(linear)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    return fused


def skip_init(module_cls, *args, **kwargs):
    """A module of this class whose parameters are left uninitialised. Raises RuntimeError for a class that takes no `device`."""
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
