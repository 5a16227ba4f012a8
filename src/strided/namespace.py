"""The names at the top level of the package: every operator, the dtypes, modes and settings. Built once, when the first of them is used.

Holds no behaviour of its own beyond a few one-line questions about tensors.
"""
from __future__ import annotations

import importlib
import math
from typing import Any

from . import autograd, dtypes, layout, memory, printing
from .autograd import anomaly, enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled
from .compile import compile  # light: what it wraps is imported when it is called
from .kernels import precision as _precision
from .kernels.native import get_num_threads, set_num_threads
from .ops import complexlike, create, join, legacy, random, shape, table
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


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    return False


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """0 "default", 1 "warn" or 2 "error": kept, since every operator is deterministic."""
    if debug_mode not in (0, 1, 2, "default", "warn", "error"):
        raise RuntimeError(f"invalid value for set_deterministic_debug_mode: expected 0, 1, 2, 'default', 'warn' or 'error', but got {debug_mode}")
    use_deterministic_algorithms(debug_mode not in (0, "default"))


def get_deterministic_debug_mode() -> int:
    return 2 if _deterministic else 0


_warn_always = False


def set_warn_always(b: bool) -> None:
    """Kept for code that sets it: Python's warnings filters decide how often a warning is shown."""
    global _warn_always
    _warn_always = bool(b)


def is_warn_always_enabled() -> bool:
    return _warn_always


def set_flush_denormal(mode: bool) -> bool:
    """False: subnormal numbers are computed with as they are, and no mode of the processor is changed."""
    return False


def is_signed(input: Tensor) -> bool:
    """Whether the tensor's dtype has negative numbers."""
    return input.dtype.is_signed


def get_device(input: Tensor) -> int:
    """The number of the tensor's device; -1 for the CPU."""
    return input.get_device()


def is_distributed(input: Tensor) -> bool:
    return False


def is_vulkan_available() -> bool:
    return False


def detach_(input: Tensor) -> Tensor:
    """`input.detach_()`."""
    return input.detach_()


def resize_as_(input: Tensor, the_template: Tensor) -> Tensor:
    """`input.resize_as_(the_template)`."""
    return input.resize_as_(the_template)


def xlogy_(input: Tensor, other: Any) -> Tensor:
    """`input.xlogy_(other)`."""
    return input.xlogy_(other)


def _assert(condition: Any, message: Any) -> None:
    """AssertionError with the message unless the condition holds."""
    assert condition, message


def _check_with(kind: type[Exception], cond: Any, message: Any) -> None:
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise kind("Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement request to PyTorch.)")
    if not callable(message):
        raise TypeError("message must be a callable")
    raise kind(str(message()))


def _check(cond: bool, message: Any = None) -> None:
    """Raises RuntimeError with what `message()` returns unless cond is True."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: Any = None) -> None:
    """`_check`, with IndexError."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: Any = None) -> None:
    """`_check`, with ValueError."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: Any = None) -> None:
    """`_check`, with TypeError."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: Any = None) -> None:
    """`_check`, with NotImplementedError."""
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Any = None) -> None:
    """Raises error_type with what `message()` returns unless all of cond, a tensor of bools, are True."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not dtypes.bool_:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Tensor, message: Any = None) -> None:
    """`_check_tensor_all_with`, with RuntimeError."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of softmax's input from that of its `output`, in `input_dtype`: what autograd functions of one's own end with."""
    weighted = grad_output * output
    return (weighted - output * weighted.sum(dim, keepdim=True)).to(input_dtype)


def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of log_softmax's input from that of its `output`, in `input_dtype`."""
    return (grad_output - output.exp() * grad_output.sum(dim, keepdim=True)).to(input_dtype)


def _grouped_mm(input: Tensor, mat2: Tensor, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Tensor:
    """`nn.functional.grouped_mm`, by its older name."""
    from .nn.functional import grouped_mm

    return grouped_mm(input, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


def get_device_module(device: Any = None) -> Any:
    """The module of a device, such as `torch.cpu`; without an argument the accelerator's, which is the CPU's where there is none. Raises RuntimeError for what names no device."""
    if not (device is None or isinstance(device, (str, dtypes.Device))):
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    kind = "cpu" if device is None else device.type if isinstance(device, dtypes.Device) else device.partition(":")[0]
    if kind not in ("cpu", "cuda", "mps", "xpu"):
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'.")
    return importlib.import_module(f".{kind}", __package__)


def _check_is_size(i: int, message: Any = None, *, max: int | None = None) -> None:
    """Raises RuntimeError unless 0 <= i (and i <= max)."""
    _check(i >= 0 and (max is None or i <= max), message)


_SMALL = (
    is_deterministic_algorithms_warn_only_enabled, set_deterministic_debug_mode, get_deterministic_debug_mode, set_warn_always, is_warn_always_enabled, set_flush_denormal,
    is_signed, get_device, is_distributed, is_vulkan_available, detach_, resize_as_, xlogy_,
    _assert, _check, _check_with, _check_index, _check_value, _check_type, _check_not_implemented, _check_is_size,
    _check_tensor_all, _check_tensor_all_with, _softmax_backward_data, _log_softmax_backward_data, _grouped_mm, get_device_module,
)  # fmt: skip


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
        is_anomaly_enabled=anomaly.is_anomaly_enabled, is_anomaly_check_nan_enabled=anomaly.is_anomaly_check_nan_enabled,
        get_num_threads=get_num_threads, set_num_threads=set_num_threads, get_num_interop_threads=get_num_interop_threads, set_num_interop_threads=set_num_interop_threads,
        set_printoptions=printing.set_printoptions,
        memory_allocated=memory.memory_allocated, max_memory_allocated=memory.max_memory_allocated, memory_reserved=memory.memory_reserved,
        reset_peak_memory_stats=memory.reset_peak_memory_stats, set_memory_limit=memory.set_memory_limit, empty_cache=memory.empty_cache, memory_stats=memory.memory_stats,
        is_tensor=is_tensor, is_storage=is_storage, is_floating_point=is_floating_point, is_complex=is_complex,
        is_conj=complexlike.is_conj, is_neg=complexlike.is_neg, numel=numel, is_inference=is_inference, typename=typename,
        set_float32_matmul_precision=set_float32_matmul_precision, get_float32_matmul_precision=get_float32_matmul_precision,
        use_deterministic_algorithms=use_deterministic_algorithms, are_deterministic_algorithms_enabled=are_deterministic_algorithms_enabled,
        compile=compile, pi=math.pi, e=math.e, inf=math.inf, nan=math.nan, newaxis=None,
        autograd=autograd,
    )  # fmt: skip
    for module in (create, shape, join, random):
        for name in getattr(module, "__all__", ()):
            names.setdefault(name, getattr(module, name))
    names.update({function.__name__: function for function in _SMALL}, spmm=names["mm"], dsmm=names["mm"], is_anomaly_enabled=autograd.is_anomaly_enabled)
    names.update(legacy.STORAGES)
    names.update(legacy.TYPES, set_default_tensor_type=legacy.set_default_tensor_type)
    return names


NAMES = _names()
