"""Define-by-run automatic differentiation: grad modes, nodes, the engine, custom functions, checkpointing, derivatives as functions.

The public face of `torch.autograd`, and what operators need to record themselves. No operator lives here.
"""

from strided.autograd import anomaly as anomaly_mode  # PyTorch's name of the file, as grad_mode is
from strided.autograd import checkpoint, engine, functional, graph, profiler
from strided.autograd import modes as grad_mode
from strided.autograd.anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from strided.autograd.engine import grad
from strided.autograd.function import Function, once_differentiable
from strided.autograd.gradcheck import gradcheck, gradgradcheck
from strided.autograd.graph import (
    AccumulateGrad,
    Node,
    check_inplace,
    record,
    record_inplace,
    record_view,
    tracking,
)
from strided.autograd.methods import TENSOR_METHODS, Variable
from strided.autograd.modes import (
    STATE,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from strided.refused import missing as _missing


def backward(tensors, *args, **kwargs):
    """`torch.autograd.backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None)`; see `engine.backward`.

    Called with a name instead of tensors it is the decorator with which operators make their node classes; see `graph.backward`.
    """
    return (graph if isinstance(tensors, str) else engine).backward(tensors, *args, **kwargs)


__getattr__ = _missing("torch.autograd")
