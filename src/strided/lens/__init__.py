"""Ways of looking at tensors and scripts, one module each: annotate, inspect, number, error, rounding, watch, …; loaded when first named."""

from importlib import import_module as _import_module

_MODULES = frozenset(("annotate", "bench", "compiled", "error", "exact", "inspect", "limits", "number", "rounding", "trace", "watch"))


def __getattr__(name):
    if name in _MODULES:
        return _import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
