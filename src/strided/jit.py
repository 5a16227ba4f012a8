"""`torch.jit` as it is under PYTORCH_JIT=0: annotations are kept, and what would be scripted or traced is the Python that was given.

There is no script language here and no graph, so nothing is exported: `save`, `load` and the like are refused by name (refused.py).
"""
from __future__ import annotations

import builtins
import functools
import types
import typing
from collections.abc import Callable
from typing import Any, Final

from .nn.module import Module
from .refused import missing

__all__ = [
    "Attribute", "Final", "ScriptFunction", "ScriptModule", "annotate", "export", "freeze", "ignore", "interface", "is_scripting", "is_tracing", "isinstance",
    "optimize_for_inference", "script", "script_if_tracing", "script_method", "strict_fusion", "trace", "trace_module", "unused",
]  # fmt: skip


class ScriptModule(Module):
    """A module as any other: its forward is Python."""


RecursiveScriptModule = TopLevelTracedModule = ScriptModule


class ScriptFunction:
    """PyTorch's class of scripted functions. `script` returns functions themselves, so there is no instance of it."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError("torch.jit.ScriptFunction: what is recorded here are kernels, not a graph of Python; call the function itself")


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """obj itself: a function, class or module that runs as Python. `torch.compile` is what makes it faster."""
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """func itself. Unlike a traced function, it decides anew in each call what depends on values."""
    return func


def trace_module(mod: Module, inputs: Any, *args: Any, **kwargs: Any) -> Module:
    """mod itself."""
    return mod


def freeze(mod: Module, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Module:
    """mod itself, which must be in evaluation mode, as in PyTorch."""
    if not builtins.isinstance(mod, Module):
        raise RuntimeError("Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your 'nn.Module'.")
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing.")
    return mod


def optimize_for_inference(mod: Module, other_methods: Any = None) -> Module:
    """mod itself, in evaluation mode if it was in training mode."""
    return freeze(mod.eval())


def _itself(fn: Any) -> Any:
    """fn itself: a mark for PyTorch's script compiler."""
    return fn


unused = export = script_method = interface = _overload = _overload_method = _itself


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function itself; `ignore()` and `ignore(drop=True)` are decorators."""
    return drop if callable(drop) else _itself


def script_if_tracing(fn: Callable) -> Callable:
    """fn, wrapped: nothing is traced, so it runs as Python."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


_script_if_tracing = script_if_tracing


def is_scripting() -> bool:
    """Whether code runs in the script language: never."""
    return False


def is_tracing() -> bool:
    """Whether calls are being recorded into a graph: never."""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """the_value, whose type is said for a compiler."""
    return the_value


def Attribute(value: Any, type: Any) -> Any:
    """value, whose type is said for a compiler."""
    return value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Python's isinstance that also looks into containers: `List[int]`, `Dict[str, Tensor]`, `Tuple[int, str]`, `Optional[T]`; or a tuple of such types."""
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, kind) for kind in target_type)
    origin, inner = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None:
        return obj is None if target_type is None else builtins.isinstance(obj, target_type)
    if origin in (typing.Union, types.UnionType):
        return any(isinstance(obj, kind) for kind in inner)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is dict:
        return all(isinstance(key, inner[0]) and isinstance(value, inner[1]) for key, value in obj.items())
    if origin is tuple and inner[-1:] != (...,):
        return len(obj) == len(inner) and all(isinstance(part, kind) for part, kind in zip(obj, inner))
    return all(isinstance(part, inner[0]) for part in obj)


class strict_fusion:
    """Context manager that asks for kernels to be fused; nothing changes."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


class _BroadcastingList:
    """`BroadcastingList2[int]` in annotations: an int or a list of two."""

    def __getitem__(self, kind: Any) -> None:
        pass


BroadcastingList1, BroadcastingList2, BroadcastingList3 = _BroadcastingList(), _BroadcastingList(), _BroadcastingList()

_absent = missing("torch.jit")


def __getattr__(name: str) -> Any:
    if name in ("Any", "Callable", "Dict", "List", "Optional", "Tuple", "Union"):  # what torch.jit.annotations hands on
        return getattr(typing, name)
    return _absent(name)
