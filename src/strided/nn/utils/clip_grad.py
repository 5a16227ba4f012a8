"""Gradient clipping by norm and by value."""
import math
import warnings

from ...autograd.modes import no_grad
from ...kernels.recipes import KEEP
from ...ops.many import clamp_all, scale_all, total_norm
from ...tensor import Tensor


def _gradients(parameters):
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    return [grad for p in parameters if (grad := p.grad) is not None]


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The p-norm of all tensors as if they were one vector. A 0-dimensional tensor."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    total = total_norm(tensors, norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. "
            "To disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales the gradients by max_norm / total_norm where that is below one."""
    _scale(_gradients(parameters), max_norm, total_norm)


def _scale(grads, max_norm, total_norm):
    if not grads:
        return
    with no_grad():
        coefficient = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        if KEEP[0] or coefficient.is_meta or any([grad.spec.is_meta or grad.spec.dtype.is_complex for grad in grads]):  # a recording must not read the number
            for grad in grads:
                grad.mul_(coefficient.to(grad.device))
        elif (factor := coefficient.item()) != 1.0:  # most steps of a training that goes well: nothing to change
            scale_all([(grad,) for grad in grads], factor)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales the gradients so that their joint norm is at most `max_norm`; returns the norm they had."""
    grads = _gradients(parameters)
    with no_grad():
        total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
        _scale(grads, max_norm, total)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The old name of `clip_grad_norm_`."""
    warnings.warn("`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clamps every gradient to ±clip_value."""
    clip_value = float(clip_value)
    with no_grad():
        grads = _gradients(parameters)
        if any(grad.is_complex() for grad in grads):
            raise NotImplementedError("clamp is not supported for complex types")
        if grads:
            clamp_all([(grad,) for grad in grads], -clip_value, clip_value)
