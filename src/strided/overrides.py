"""`torch.overrides`: functions that tensors' look-alikes, subclasses of Tensor and modes answer in PyTorch's place (`__torch_function__`).

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            print(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

How calls find who answers is ops/overriding.py.
"""
from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .ops import overriding
from .ops.overriding import NOT_TAKEN, BaseTorchFunctionMode, TorchFunctionMode
from .refused import missing
from .tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "get_default_nowrap_functions", "get_ignored_functions", "get_overridable_functions", "get_testing_overrides",
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property", "resolve_name",
    "wrap_torch_function",
]  # fmt: skip


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments, or an open mode, answers calls itself: then a function of one's own hands over to `handle_torch_function`."""
    context = overriding.CONTEXT
    if context.modes and not context.modes_off:
        return True
    asked = overriding.overloaded(relevant_args)
    return any(not isinstance(value, Tensor) for value in asked) if context.off else bool(asked)


def has_torch_function_unary(value: Any) -> bool:
    """`has_torch_function((value,))`."""
    return has_torch_function((value,))


def has_torch_function_variadic(*values: Any) -> bool:
    """`has_torch_function(values)`."""
    return has_torch_function(values)


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """What the innermost mode or the first of the arguments answers for `public_api(*args, **kwargs)`. Raises TypeError where none does."""
    answer = overriding.take_over(public_api, args, kwargs, relevant_args)
    if answer is NOT_TAKEN:
        raise TypeError(f"no implementation found for '{public_api.__module__}.{public_api.__name__}' on types that implement __torch_function__: []")
    return answer


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a function so that calls of it may be answered by its arguments; dispatcher(*args, **kwargs) says by which."""

    def inner(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return inner


def is_tensor_like(value: Any) -> bool:
    """Whether a value is a tensor or brings a `__torch_function__`."""
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is a method of Tensor, or what gets one of its properties."""
    return func in _methods() or getattr(func, "__name__", "") == "__get__"


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Functions whose results Tensor's own `__torch_function__` leaves as they are: none here, as attributes are not calls."""
    return set()


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Functions that are never answered by their arguments: those that tell about the state of the library."""
    import strided

    return {strided.is_tensor, strided.is_storage, strided.get_default_dtype, strided.set_default_dtype, strided.typename, strided.is_grad_enabled, strided.get_num_threads}


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that can be answered, by the namespace they are in: `torch`, `torch.Tensor`, `torch.nn.functional`, `torch.linalg`, …"""
    import strided

    ignored = get_ignored_functions()
    found: dict[Any, list[Callable[..., Any]]] = {}
    for namespace in (strided, strided.nn.functional, strided.linalg, strided.special, strided.fft, strided.nn.init):
        public = {name: getattr(namespace, name) for name in dir(namespace) if not name.startswith("_")}
        found[namespace] = [value for name, value in public.items() if isinstance(value, types.FunctionType) and value not in ignored]
    return {**found, Tensor: _methods()}


def _methods() -> list[Callable[..., Any]]:
    return [value for value in vars(Tensor).values() if isinstance(value, types.FunctionType)]


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For every function that can be answered a dummy of its signature that returns -1."""

    def dummy(func: Callable[..., Any]) -> Callable[..., Any]:
        def answer(*args: Any, **kwargs: Any) -> int:
            return -1

        answer.__signature__ = inspect.signature(func)  # type: ignore[attr-defined]
        return answer

    return {func: dummy(func) for functions in get_overridable_functions().values() for func in functions}


def resolve_name(func: Callable[..., Any]) -> str | None:
    """The public name of a function that can be answered, such as "torch.Tensor.add"; None for any other."""
    if isinstance(func, str):
        return func
    for namespace, functions in get_overridable_functions().items():
        if func in functions:
            name = "torch.Tensor" if namespace is Tensor else namespace.__name__.replace("strided", "torch", 1)
            return f"{name}.{func.__name__}"
    return None


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost open mode."""
    modes = overriding.CONTEXT.modes
    return modes[-1] if modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """The open modes, outermost first."""
    return list(overriding.CONTEXT.modes)


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[TorchFunctionMode]:
    """The innermost mode, closed inside."""
    mode = overriding.CONTEXT.modes.pop()
    try:
        yield mode
    finally:
        overriding.CONTEXT.modes.append(mode)


__getattr__ = missing("torch.overrides")
