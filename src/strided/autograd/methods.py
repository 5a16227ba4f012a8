"""What autograd gives to tensors: `TENSOR_METHODS`, methods and properties by name, put on Tensor when this package is imported.

An operator of the same name may replace one later (as an event of `detach` for the lens would need).
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable

from strided.autograd import engine, graph
from strided.autograd.graph import Handle, hooks_of
from strided.autograd.modes import STATE
from strided.tensor import Tensor, wrap, wrap_storage

_CPP_NAMES = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>", "int64": "long int",
}


def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None) -> None:
    """Accumulates the gradients of this tensor with respect to the graph's leaves into their `.grad`; see `torch.autograd.backward`."""
    if gradient is inputs is None:  # nothing to check: straight to the engine
        engine.backward_of(self, create_graph if retain_graph is None else retain_graph, create_graph)
    else:
        engine.backward((self,), (gradient,), retain_graph, create_graph, inputs=inputs)


def detach(self) -> Tensor:
    """The same memory without history: a tensor that requires no grad."""
    out = wrap(self.spec, self.mem, self.ptr)
    if self._inference:
        out._inference = True
    return out


def detach_(self) -> Tensor:
    """Cuts this tensor itself from the graph that made it: it becomes a leaf that requires no grad."""
    if self._base is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and gradient_as_bucket_view "
            "is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on these gradients. To fix this error, please "
            "refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
        )
    self._node, self._nr, self._tracked = None, 0, False
    return self


def set_requires_grad(self, flag: bool) -> None:
    flag = bool(flag)
    if graph.grad_fn(self) is not None:
        way_out = "" if flag else " If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
        raise RuntimeError(f"you can only change requires_grad flags of leaf variables.{way_out}")
    if flag and self._inference and not STATE.inference:
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    if flag and not (self.spec.dtype.is_floating_point or self.spec.dtype.is_complex):
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    self._tracked = flag


def requires_grad_(self, requires_grad: bool = True) -> Tensor:
    """Says whether this leaf wants a gradient, and returns it. RuntimeError for a result of tracked operators, or an integer dtype."""
    if not requires_grad or graph.grad_fn(self) is None:
        set_requires_grad(self, requires_grad)
    return self


def is_leaf(self) -> bool:
    """True for tensors that no recorded operator made."""
    return not graph.requires_grad(self) or graph.grad_fn(self) is None


def retain_grad(self) -> None:
    """Asks for `.grad` of a tensor that is no leaf."""
    if not graph.requires_grad(self):
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    node = graph.grad_fn(self)
    if node is not None and not self._retains:
        self._retains = True
        hooks_of(node).retain[self._nr] = weakref.ref(self)


def register_hook(self, hook: Callable) -> Handle:
    """`hook(grad)` runs when this tensor's gradient is known; a tensor it returns takes the gradient's place."""
    if not graph.requires_grad(self):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node = graph.grad_fn(self)
    if node is not None:
        return Handle(hooks_of(node).tensors.setdefault(self._nr, {}), hook)
    if self._hooks is None:
        self._hooks = {}
    return Handle(self._hooks, hook)


def register_post_accumulate_grad_hook(self, hook: Callable) -> Handle:
    """`hook(tensor)` runs after this leaf's `.grad` was added to."""
    if not graph.requires_grad(self):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if graph.grad_fn(self) is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if self._post_hooks is None:
        self._post_hooks = {}
    return Handle(self._post_hooks, hook)


def get_grad(self) -> Tensor | None:
    if self._grad is None and not self._retains and graph.grad_fn(self) is not None:
        warnings.warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during "
            "autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you "
            "access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more "
            "information.",
            stacklevel=2,
        )
    return self._grad


def set_grad(self, grad: Tensor | None) -> None:
    if grad is None:
        self._grad = None
        return
    if not isinstance(grad, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(grad).__name__}")
    if grad is self:
        raise RuntimeError("can't assign Variable as its own grad")
    own, new = self.spec, grad.spec
    if new.shape != own.shape:
        raise RuntimeError(f"attempting to assign a gradient of size '{list(new.shape)}' to a tensor of size '{list(own.shape)}'. Please ensure that the gradient and the tensor are the same size")
    if new.dtype is not own.dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{_CPP_NAMES.get(new.dtype.name, new.dtype.name)}' to a tensor with grad_dtype '{own.dtype.scalar_name}'. The gradient must match the "
            "tensor's grad_dtype (defaults to the tensor's dtype)."
        )
    if new.device != own.device:
        raise RuntimeError(f"attempting to assign a gradient located on device '{new.device}' to a tensor located on device '{own.device}'.")
    self._grad = grad


def del_grad(self) -> None:
    self._grad = None


def get_data(self) -> Tensor:
    """The same memory without history and with a version counter of its own: writes through it go unnoticed by autograd."""
    mem = self.mem
    return wrap(self.spec, wrap_storage(mem.data, mem.nbytes, mem), self.ptr)


def set_data(self, new: Tensor) -> None:
    if not isinstance(new, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(new).__name__}")
    if graph.requires_grad(self) and not (new.spec.dtype.is_floating_point or new.spec.dtype.is_complex):
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
    self.spec, self.mem, self.ptr = new.spec, new.mem, new.ptr


def _is_view(self) -> bool:
    return self._base is not None


TENSOR_METHODS = {
    "backward": backward,
    "detach": detach,
    "detach_": detach_,
    "requires_grad_": requires_grad_,
    "retain_grad": retain_grad,
    "register_hook": register_hook,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
    "_is_view": _is_view,
    "requires_grad": property(graph.requires_grad, set_requires_grad, doc="Whether gradients flow to this tensor."),
    "grad_fn": property(lambda self: graph.opened(graph.grad_fn(self)), doc="The node that made this tensor; None for a leaf."),
    "is_leaf": property(is_leaf, doc=is_leaf.__doc__),
    "grad": property(get_grad, set_grad, del_grad, doc="The gradient accumulated so far, or None."),
    "retains_grad": property(lambda self: self._retains, doc="Whether `retain_grad()` was asked for."),
    "output_nr": property(lambda self: self._nr, doc="Which output of `grad_fn` this is."),
    "data": property(get_data, set_data, doc=get_data.__doc__),
}

for _name, _value in TENSOR_METHODS.items():
    setattr(Tensor, _name, _value)


class _IsTensor(type):
    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, Tensor)


class Variable(metaclass=_IsTensor):
    """PyTorch's old name: every tensor is a variable. Calling it gives a leaf over the same memory."""

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool | None = None) -> Tensor:
        return requires_grad_(detach(data), requires_grad)
