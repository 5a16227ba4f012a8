"""`nn`: modules, parameters, functions, initialisers. The operators are in ops/."""
import importlib

from . import functional, init, modules, parameter
from .hooks import RemovableHandle
from .lazy import lazy_names
from .module import Module
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

_find, __dir__, _names = lazy_names(f"{__name__}.modules", globals(), modules.FAMILIES)


def factory_kwargs(kwargs):
    """What of a module's keyword arguments goes to functions that make tensors: device, dtype, memory_format, and what is in `factory_kwargs`."""
    if kwargs is None:
        return {}
    simple = ("device", "dtype", "memory_format")
    if unknown := kwargs.keys() - {*simple, "factory_kwargs"}:
        raise TypeError(f"unexpected kwargs {unknown}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for key in simple:
        if key in kwargs:
            if key in found:
                raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
            found[key] = kwargs[key]
    return found


def __getattr__(name):
    return importlib.import_module(f".{name}", __name__) if name in ("attention", "grad", "parallel", "utils") else _find(name)


__all__ = [
    "Buffer",
    "Module",
    "Parameter",
    "RemovableHandle",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "factory_kwargs",
    "functional",
    "grad",
    "init",
    "modules",
    "parallel",
    "parameter",
    "utils",
    *_names,
]
