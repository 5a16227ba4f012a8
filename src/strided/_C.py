"""`torch._C`: the few names of PyTorch's C++ core that public packages call while they are imported or a model is made. There is no such core here."""
from __future__ import annotations

import enum
from typing import Any

from .ops.overriding import DisableTorchFunction, DisableTorchFunctionSubclass  # noqa: F401
from .ops.overriding import disabled as _disabled_torch_function_impl  # noqa: F401
from .overrides import has_torch_function as _has_torch_function  # noqa: F401
from .overrides import has_torch_function_unary as _has_torch_function_unary  # noqa: F401
from .overrides import has_torch_function_variadic as _has_torch_function_variadic  # noqa: F401
from .refused import missing
from .tensor import Tensor

_TensorMeta = type(Tensor)  # the class of tensor classes


def _log_api_usage_once(name: str) -> None:
    """Counts uses of PyTorch's features at its makers': nothing is counted."""


def _get_tracing_state() -> None:
    """The graph that calls are being recorded into: never one."""


class DispatchKey(enum.Enum):
    """Names that packages with operators of their own register them under. Operators here are chosen by no such key."""

    CPU = enum.auto()
    CUDA = enum.auto()
    XPU = enum.auto()
    Meta = enum.auto()
    Autograd = enum.auto()
    AutogradCPU = enum.auto()
    AutocastCPU = enum.auto()
    AutocastCUDA = enum.auto()
    AutocastXPU = enum.auto()


class DispatchKeySet:
    """A set of such names."""

    def __init__(self, *keys: DispatchKey):
        self._keys = frozenset(keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys, *other._keys)

    def has(self, key: DispatchKey) -> bool:
        return key in self._keys


def _switch(*value: Any) -> None:
    """A switch of the script compiler, which is not here (`torch.jit`): nothing changes."""


_jit_set_profiling_executor = _jit_set_profiling_mode = _jit_set_autocast_mode = _jit_set_texpr_fuser_enabled = _switch
_jit_set_nvfuser_enabled = _jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _switch

__getattr__ = missing("torch._C")
