"""The native types behind tensors, nodes of the graph and a thread's modes, and the functions that make, record and watch them; compiled from `runtime_objects`,
`runtime_record` and `runtime_watch`.

A class of Python derives from `TensorBase` or `NodeBase` and adds methods; the fields are the base's, each an attribute at a fixed place.
"""
from __future__ import annotations

import ctypes
import sys
from typing import Any

from . import runtime_objects as objects
from .native import _address, _builtin, _keep

_python = ctypes.pythonapi
_T_PYSSIZET, _T_OBJECT_EX, _READONLY = 19, 16, 1
_BASETYPE, _HAVE_GC, _DEFAULT = 1 << 10, 1 << 14, 1 << 18  # the last: HAVE_VERSION_TAG, so that look-ups are cached
_CLEAR, _DEALLOC, _DOC, _GETATTRO, _NEW, _SETATTRO, _TRAVERSE, _MEMBERS, _GETSET = 51, 52, 56, 58, 65, 69, 71, 72, 73


class _Member(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("offset", ctypes.c_ssize_t), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


class _GetSet(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("get", ctypes.c_void_p), ("set", ctypes.c_void_p), ("doc", ctypes.c_char_p), ("closure", ctypes.c_void_p)]


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int), ("flags", ctypes.c_uint), ("slots", ctypes.c_void_p)]


def _symbol(name: str) -> int | None:
    return ctypes.cast(getattr(_python, name), ctypes.c_void_p).value


def _type(name: str, doc: str, size: int, flags: int, functions: dict[int, int | None], fields: dict[str, int], dictionary: int = 0) -> Any:
    """A type whose fields are attributes; `dictionary`: where instances keep their dictionary, and behind it their weak references (0: they have neither)."""
    members = [(field.encode(), _T_OBJECT_EX, place, 0, None) for field, place in fields.items()]
    slots = list(functions.items())
    if dictionary:
        members += [(b"__dictoffset__", _T_PYSSIZET, dictionary, _READONLY, None), (b"__weaklistoffset__", _T_PYSSIZET, dictionary + 8, _READONLY, None)]
        getset = (_GetSet * 2)(_GetSet(b"__dict__", _symbol("PyObject_GenericGetDict"), _symbol("PyObject_GenericSetDict"), None, None), _GetSet())
        slots.append((_GETSET, ctypes.addressof(getset)))
        _keep.append(getset)
    table = (_Member * (len(members) + 1))(*(_Member(*m) for m in members), _Member())
    text = ctypes.c_char_p(doc.encode())
    slots += [(_MEMBERS, ctypes.addressof(table)), (_DOC, ctypes.cast(text, ctypes.c_void_p).value), (0, None)]
    entries = (_Slot * len(slots))(*(_Slot(*s) for s in slots))
    spec = _Spec(f"strided.{name}".encode(), size, 0, flags | _DEFAULT, ctypes.addressof(entries))
    make = _python.PyType_FromSpec
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p]
    made = make(ctypes.addressof(spec))
    _keep.extend([table, text, entries, spec, made])
    return made


def _base(kind: str, name: str, doc: str, size: int, fields: dict[str, int], dictionary: int) -> Any:
    functions: dict[int, int | None] = {slot: _address[f"strided_{kind}_{what}"] for slot, what in ((_NEW, "new"), (_TRAVERSE, "traverse"), (_CLEAR, "clear"), (_DEALLOC, "dealloc"))}
    return _type(name, doc, size, _BASETYPE | _HAVE_GC, functions, fields, dictionary)


def _initialise() -> tuple[Any, Any, Any]:
    constants = [True, False, 0, (), tuple, type, "strided modes", "no_grad", "forward", "saves", "recipe", "kinds", "numbers"]
    _keep.append(constants)
    true, false, zero, empty, tuples, types, key, no_grad, forward, *names = (id(c) for c in constants)
    mortal = int(sys.version_info < (3, 12))
    pointer = ctypes.c_void_p
    prepare = ctypes.PYFUNCTYPE(None, *[pointer] * 4, ctypes.c_int64, *[pointer] * 9)(_address["strided_set_objects"])
    prepare(true, false, zero, empty, mortal, tuples, types, key, no_grad, forward, *names)
    tensor = _base("tensor", "TensorBase", "Fields of a tensor.", objects.TENSOR_SIZE, objects.T, objects.TENSOR_DICT)
    node = _base("node", "NodeBase", "Fields of a node of the graph.", objects.NODE_SIZE, objects.N, objects.NODE_DICT)
    modes = _type("Modes", "A thread's modes.", objects.MODES_SIZE, 0, {_DEALLOC: _address["strided_modes_dealloc"]}, objects.M)
    state = _type("State", "The running thread's modes as attributes.", 16, 0, {_GETATTRO: _address["strided_state_get"], _SETATTRO: _address["strided_state_set"]}, {})
    ctypes.PYFUNCTYPE(None, *[pointer] * 3)(_address["strided_set_types"])(id(tensor), id(node), id(modes))
    return tensor, node, state


TensorBase: Any
NodeBase: Any
TensorBase, NodeBase, _State = _initialise()
STATE = _State()
new = _builtin("new", "strided_py_new")
make_tensor = _builtin("make_tensor", "strided_py_tensor")
launch_tensor = _builtin("launch_tensor", "strided_py_launch_tensor")
next_sequence = _builtin("next_sequence", "strided_py_next_sequence")
tracking = _builtin("tracking", "strided_py_tracking")
record = _builtin("record", "strided_py_record", keywords=True)
window = _builtin("window", "strided_py_window", keywords=True)
hang = _builtin("hang", "strided_py_hang")
scan = _builtin("scan", "strided_py_scan")
begin_trail = _builtin("begin_trail", "strided_py_begin_trail")


def watcher(kind: str, *given: Any) -> Any:
    """The functions "see" and "look" of `runtime_watch`, over what they need."""
    return _builtin(kind, f"strided_py_{kind}", self=given)


set_tensor_type = _builtin("set_tensor_type", "strided_py_set_tensor_type")
set_record = _builtin("set_record", "strided_py_set_record")
set_window = _builtin("set_window", "strided_py_set_window")
set_anomaly = _builtin("set_anomaly", "strided_py_set_anomaly")
