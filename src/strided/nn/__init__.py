"""`nn`: modules, parameters, functions, initialisers. The operators are in ops/."""
from . import functional, init, modules, parameter, utils
from .hooks import RemovableHandle
from .modules import *  # noqa: F403
from .modules import Module
from .parameter import Buffer, Parameter, UninitializedParameter

__all__ = [
    "Buffer",
    "Module",
    "Parameter",
    "RemovableHandle",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "parameter",
    "utils",
    *modules.__all__,
]
