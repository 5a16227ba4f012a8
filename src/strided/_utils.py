"""`torch._utils`: the functions that PyTorch's pickles name to rebuild tensors, for code that calls them itself. Reading such files is io's."""
from __future__ import annotations

from typing import Any

from .dtypes import uint8
from .nn.parameter import Parameter
from .ops.table import TABLE
from .refused import missing
from .tensor import Tensor, TypedStorage, UntypedStorage


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor of the storage's memory; a storage without a dtype gives bytes (uint8)."""
    if not isinstance(storage, (TypedStorage, UntypedStorage)):
        raise TypeError(f"_rebuild_tensor(): expected a storage, got {type(storage).__name__}")
    made = TABLE["empty"].call((0,), dtype=storage.dtype if isinstance(storage, TypedStorage) else uint8, device=storage.device)
    return made.set_(storage, storage_offset, tuple(size), tuple(stride))


def _rebuild_tensor_v2(storage: Any, storage_offset: int, size: Any, stride: Any, requires_grad: bool, backward_hooks: Any, metadata: Any = None) -> Tensor:
    """`_rebuild_tensor`, a leaf that requires grad or not, with its hooks."""
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    tensor.requires_grad = requires_grad
    for hook in (backward_hooks or {}).values():
        tensor.register_hook(hook)
    return tensor


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    """A parameter of the tensor's memory, with its hooks."""
    parameter = Parameter(data, requires_grad)
    for hook in (backward_hooks or {}).values():
        parameter.register_hook(hook)
    return parameter


__getattr__ = missing("torch._utils")
