"""The names at the top level of the package: every operator, the dtypes, modes and settings. Built once, when the first of them is used.

Holds no behaviour of its own beyond a few one-line questions about tensors.
"""
from __future__ import annotations

import math
from typing import Any

from . import autograd, dtypes, layout, memory, printing
from .autograd import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled
from .compile import compile  # light: what it wraps is imported when it is called
from .kernels import precision as _precision
from .kernels.native import get_num_threads, set_num_threads
from .ops import create, join, legacy, random, shape, table
from .tensor import Tensor


def is_tensor(obj: Any) -> bool:
    """Whether obj is a tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    from .tensor import TypedStorage, UntypedStorage

    return isinstance(obj, (TypedStorage, UntypedStorage))


def is_floating_point(input: Tensor) -> bool:
    return input.dtype.is_floating_point


def is_complex(input: Tensor) -> bool:
    return input.dtype.is_complex


def numel(input: Tensor) -> int:
    """Number of elements."""
    return input.numel()


def is_inference(input: Tensor) -> bool:
    return input.is_inference()


def typename(obj: Any) -> str:
    """The full name of an object's type; a tensor's by its dtype, as in torch.FloatTensor."""
    if isinstance(obj, Tensor):
        return obj.type()
    return f"{type(obj).__module__}.{type(obj).__qualname__}"


def set_float32_matmul_precision(precision: str) -> None:
    """What products of float32 round their operands to: "highest" nothing, "high" TF32 (10 bits of mantissa), "medium" bfloat16 (7 bits).

    It holds for this process, for matmul and what is made of it: linear, convolutions, einsum, attention, and their gradients. Sums stay in float32.
    """
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision not in _precision.LEVELS:
        raise RuntimeError(f"Unknown precision: {precision}: choose 'highest', 'high' or 'medium'")
    _precision.set_level(precision)


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was given: "highest" at first."""
    return _precision.level()


_deterministic = False


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Every operator is deterministic for a given number of threads; the switch is kept for code that sets it."""
    global _deterministic
    _deterministic = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    return _deterministic


def get_num_interop_threads() -> int:
    return 1


def set_num_interop_threads(n: int) -> None:
    """Operators run one after another: there is no second pool to size."""


def _names() -> dict[str, Any]:
    names: dict[str, Any] = dict(table.functions())
    names.update(dtypes.names())
    names.update(
        Tensor=Tensor, Size=layout.Size, dtype=dtypes.DType, device=dtypes.Device, finfo=dtypes.finfo, iinfo=dtypes.iinfo,
        promote_types=dtypes.promote_types, result_type=dtypes.result_type, can_cast=dtypes.can_cast,
        get_default_dtype=dtypes.get_default_dtype, set_default_dtype=dtypes.set_default_dtype,
        get_default_device=dtypes.get_default_device, set_default_device=dtypes.set_default_device,
        no_grad=no_grad, enable_grad=enable_grad, set_grad_enabled=set_grad_enabled, inference_mode=inference_mode,
        is_grad_enabled=is_grad_enabled, is_inference_mode_enabled=is_inference_mode_enabled,
        get_num_threads=get_num_threads, set_num_threads=set_num_threads, get_num_interop_threads=get_num_interop_threads, set_num_interop_threads=set_num_interop_threads,
        set_printoptions=printing.set_printoptions,
        memory_allocated=memory.memory_allocated, max_memory_allocated=memory.max_memory_allocated, memory_reserved=memory.memory_reserved,
        reset_peak_memory_stats=memory.reset_peak_memory_stats, set_memory_limit=memory.set_memory_limit, empty_cache=memory.empty_cache, memory_stats=memory.memory_stats,
        is_tensor=is_tensor, is_storage=is_storage, is_floating_point=is_floating_point, is_complex=is_complex, numel=numel, is_inference=is_inference, typename=typename,
        set_float32_matmul_precision=set_float32_matmul_precision, get_float32_matmul_precision=get_float32_matmul_precision,
        use_deterministic_algorithms=use_deterministic_algorithms, are_deterministic_algorithms_enabled=are_deterministic_algorithms_enabled,
        compile=compile, pi=math.pi, e=math.e, inf=math.inf, nan=math.nan, newaxis=None,
        autograd=autograd,
    )  # fmt: skip
    for module in (create, shape, join, random):
        for name in getattr(module, "__all__", ()):
            names.setdefault(name, getattr(module, name))
    names.update(legacy.TYPES, set_default_tensor_type=legacy.set_default_tensor_type)
    return names


NAMES = _names()
