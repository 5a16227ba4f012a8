"""Checkpoint files: torch's own format (serialization.py, saving.py), safetensors (safetensors.py) and GGUF (gguf.py).

Names are loaded when they are first used: `strided inspect` reads headers (header.py) without the tensor core.
"""

import importlib as _importlib

_HOMES = {"save": "saving", "load": "serialization"}
_MODULES = frozenset(("header", "safetensors", "serialization", "gguf", "gguf_header"))


def __getattr__(name):
    if name in _MODULES:
        return _importlib.import_module("." + name, __name__)
    if name in _HOMES:
        return getattr(_importlib.import_module("." + _HOMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
