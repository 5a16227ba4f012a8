"""Plain data beyond torch's allow-list, which `load(…, weights_only=False)` builds too: what training scripts put beside their weights.

Namespaces, paths, dates, defaultdicts, NumPy's numbers and arrays. Each is made by a function that takes only what such a pickle holds; arrays of
objects are refused, since they could hold anything.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import pathlib
import types
from collections import defaultdict
from typing import Any

from strided.io.unpickler import UnpicklingError

FACTORIES = (list, dict, set, int, float, str)


def _path(*parts: Any) -> pathlib.PurePath:
    if not all(type(part) is str for part in parts):
        raise UnpicklingError("a path is made from text")
    return pathlib.Path(*parts)


def _windows_path(*parts: Any) -> pathlib.PurePath:
    if not all(type(part) is str for part in parts):
        raise UnpicklingError("a path is made from text")
    return pathlib.PureWindowsPath(*parts)


def _defaultdict(factory: Any = None) -> defaultdict:
    if not any(factory is one for one in (None, *FACTORIES)):
        raise UnpicklingError(f"a defaultdict is made with one of {', '.join(one.__name__ for one in FACTORIES)}, but got {type(factory)}")
    return defaultdict(factory)


# ---- NumPy -----------------------------------------------------------------------------------


def _simple(dtype: Any) -> Any:
    import numpy

    if not isinstance(dtype, numpy.dtype) or dtype.kind not in "biufcSU" or dtype.subdtype is not None:
        raise UnpicklingError(f"arrays of numbers and text are loaded, not of {str(dtype)[:100]}")
    return dtype


def _dtype(text: Any, align: Any = False, copy: Any = True) -> Any:
    import numpy

    if type(text) is not str or len(text) > 8 or text.lstrip("<>=|")[:1] not in tuple("biufcSU") or not text.lstrip("<>=|")[1:].isdigit():
        raise UnpicklingError(f"arrays of numbers and text are loaded, not of {str(text)[:100]!r}")
    return _simple(numpy.dtype(text, False, True))  # a copy: the byte order is set on it


def _scalar(dtype: Any, data: Any) -> Any:
    import numpy

    if type(data) is not bytes or len(data) != _simple(dtype).itemsize:
        raise UnpicklingError(f"a number of {dtype} is made from its {dtype.itemsize} bytes")
    return numpy.frombuffer(data, dtype)[0]


def _reconstruct(kind: Any, shape: Any, code: Any) -> Any:
    import numpy

    if kind is not numpy.ndarray:
        raise UnpicklingError(f"an array is made as numpy.ndarray, but got {type(kind)}")
    return numpy.empty((0,), numpy.int8)


def _build_namespace(target: Any, state: Any) -> None:
    if type(state) is not dict or not all(type(name) is str for name in state):
        raise UnpicklingError("a namespace's state is a dict of names")
    target.__dict__.update(state)


def _build_array(target: Any, state: Any) -> None:
    """Shape, dtype and bytes; NumPy checks that they agree."""
    if type(state) is not tuple or len(state) != 5 or type(state[1]) is not tuple or not all(type(size) is int for size in state[1]) or type(state[4]) is not bytes:
        raise UnpicklingError("an array's state is its version, shape, dtype, order and bytes")
    target.__setstate__((1, state[1], _simple(state[2]), bool(state[3]), state[4]))


def _build_dtype(target: Any, state: Any) -> None:
    """The byte order; numbers and text have nothing else."""
    if type(state) is not tuple or len(state) < 5 or state[1] not in ("<", ">", "=", "|") or any(part is not None for part in state[2:5]):
        raise UnpicklingError("a dtype's state is its byte order")
    _simple(target)
    if state[1] not in ("|", "=", "<"):
        target.__setstate__((3, state[1], None, None, None, -1, -1, 0))


@functools.cache
def names() -> dict[str, Any]:
    """What a pickle may name, by full name."""
    import numpy

    found: dict[str, Any] = {
        "argparse.Namespace": argparse.Namespace, "types.SimpleNamespace": types.SimpleNamespace, "collections.defaultdict": _defaultdict,
        "pathlib.PosixPath": _path, "pathlib.Path": _path, "pathlib.PurePosixPath": _path,
        "pathlib.WindowsPath": _windows_path, "pathlib.PureWindowsPath": _windows_path,
        "datetime.datetime": datetime.datetime, "datetime.date": datetime.date, "datetime.time": datetime.time, "datetime.timedelta": datetime.timedelta,
        "datetime.timezone": datetime.timezone, "numpy.dtype": _dtype, "numpy.ndarray": numpy.ndarray,
    }  # fmt: skip
    found.update({name.replace("pathlib.", "pathlib._local."): made for name, made in found.items() if name.startswith("pathlib.")})  # as Python 3.13 names them
    found.update({f"builtins.{factory.__name__}": factory for factory in FACTORIES})
    for core in ("core", "_core"):
        found[f"numpy.{core}.multiarray.scalar"] = _scalar
        found[f"numpy.{core}.multiarray._reconstruct"] = _reconstruct
    return found


CALLS = frozenset(map(id, (
    _path, _windows_path, _defaultdict, _dtype, _scalar, _reconstruct, types.SimpleNamespace, datetime.datetime, datetime.date, datetime.time, datetime.timedelta, datetime.timezone,
)))  # fmt: skip
MAKES = frozenset(map(id, (argparse.Namespace,)))


def builder(kind: type) -> Any:
    """The function that gives an object of this class its state, or None."""
    if kind is argparse.Namespace or kind is types.SimpleNamespace:
        return _build_namespace
    if kind.__module__ == "numpy" or kind.__module__ == "numpy.dtypes":
        import numpy

        return _build_array if kind is numpy.ndarray else _build_dtype if issubclass(kind, numpy.dtype) else None
    return None
