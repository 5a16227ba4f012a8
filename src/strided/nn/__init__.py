"""`nn`: modules, parameters, functions, initialisers. The operators are in ops/."""
import importlib

from . import functional, init, modules, parameter
from .hooks import RemovableHandle
from .lazy import lazy_names
from .module import Module
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

_find, __dir__, _names = lazy_names(f"{__name__}.modules", globals(), modules.FAMILIES)


def __getattr__(name):
    return importlib.import_module(f".{name}", __name__) if name in ("attention", "parallel", "utils") else _find(name)


__all__ = [
    "Buffer",
    "Module",
    "Parameter",
    "RemovableHandle",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "functional",
    "init",
    "modules",
    "parallel",
    "parameter",
    "utils",
    *_names,
]
