"""The border between Python and machine code: the Storage type, `launch`, the thread pool, all compiled from `runtime_ir`.

A jitted function becomes a built-in function of the interpreter (METH_FASTCALL), so that a kernel costs a call of a built-in and no ctypes.
ctypes is used once, while this module is imported.
"""
from __future__ import annotations

import ctypes
import os
import struct
import sys
import sysconfig
import weakref
from typing import Any

from ..errors import PackedOperand
from . import jit
from .runtime_ir import MAX_SLOTS, runtime_ir

if sysconfig.get_config_var("Py_GIL_DISABLED") or sys.implementation.name != "cpython":
    raise ImportError("strided needs CPython with the global interpreter lock: its kernels read Python objects by CPython's layout")

PATIENCE, IMPATIENCE = 8000, 300  # looks for a new job before a worker sleeps: about 0.2 ms, or some microseconds where threads are more than cores and take them from each other
SLICE, SLICES = 4 << 20, 8  # bytes that a slice of a part should walk at least; slices a part at most
_ENTRY_POINTS = (
    "strided_init", "strided_set_none", "strided_storage_dealloc", "strided_storage_getbuffer", "strided_set_threads", "strided_after_fork", "strided_launch",
    "strided_launch_new", "strided_starved", "strided_py_new_storage", "strided_py_wrap_storage", "strided_py_empty_cache", "strided_py_reset_peak", "strided_py_set_limit",
    "strided_py_stats", "strided_py_fill_bytes", "strided_py_move_bytes", "strided_py_read_scalar", "strided_py_read_list",
    "strided_py_read_flag", "strided_py_set_capture", "strided_py_replay",
    "strided_set_objects", "strided_set_types", "strided_modes_dealloc", "strided_state_get", "strided_state_set",
    *(f"strided_{kind}_{what}" for kind in ("tensor", "node") for what in ("new", "traverse", "clear", "dealloc")),
    *(f"strided_py_{name}" for name in ("new", "tensor", "launch_tensor", "next_sequence", "tracking", "record", "window", "hang", "scan", "look", "see", "begin_trail")),
    *(f"strided_py_set_{name}" for name in ("tensor_type", "record", "window", "anomaly")),
)
_address = dict(zip(_ENTRY_POINTS, jit.compile_module(("runtime", jit.host().arch), lambda: runtime_ir(jit.host().arch), _ENTRY_POINTS)))
# Kernels count here what they found no memory for (scratch.py).
jit.provide("strided_starved", ctypes.CFUNCTYPE(ctypes.c_void_p)(_address["strided_starved"])())
# Code that objects point into must outlive the interpreter's teardown: a storage may die, and a worker may sleep, after the modules are gone.
jit.make_immortal()

_python = ctypes.pythonapi


def _builtin(name: str, symbol: str, keywords: bool = False, self: Any = None) -> Any:
    """A built-in function over the jitted function `symbol`: PyObject *f(PyObject *self, PyObject *const *args, Py_ssize_t n), and with `keywords` the
    tuple of their names (or null). self: what it is given as `self`."""

    class MethodDef(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]

    METH_KEYWORDS, METH_FASTCALL = 0x0002, 0x0080
    definition = MethodDef(name.encode(), _address[symbol], METH_FASTCALL | (METH_KEYWORDS if keywords else 0), None)
    _keep.append(definition)
    make = _python.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.addressof(definition), self, None)


_keep: list[object] = []


def _make_storage_type() -> Any:
    """The type `Storage`: made from a PyType_Spec whose dealloc and getbuffer are jitted."""

    class Member(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("offset", ctypes.c_ssize_t), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]

    class Slot(ctypes.Structure):
        _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]

    class TypeSpec(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int), ("flags", ctypes.c_uint), ("slots", ctypes.c_void_p)]

    T_OBJECT, T_LONGLONG, READONLY = 6, 17, 1
    members = (Member * 6)(
        Member(b"data", T_LONGLONG, 16, READONLY, b"address of the first byte (0 where there is none)"),
        Member(b"nbytes", T_LONGLONG, 24, READONLY, b"bytes that belong to the storage"),
        Member(b"version", T_LONGLONG, 32, 0, b"raised by every in-place write; shared by all views"),
        Member(b"owner", T_OBJECT, 40, READONLY, b"what keeps borrowed memory alive, or None"),
        Member(b"capacity", T_LONGLONG, 48, READONLY, b"bytes of the allocator's block (0: borrowed memory)"),
        Member(None, 0, 0, 0, None),
    )
    Py_bf_getbuffer, Py_tp_dealloc, Py_tp_members, Py_tp_doc = 1, 52, 72, 56
    doc = ctypes.c_char_p(b"Flat memory: an address, a size in bytes and a version. Returns to the caching allocator when it dies.")
    slots = (Slot * 5)(
        Slot(Py_tp_dealloc, _address["strided_storage_dealloc"]),
        Slot(Py_bf_getbuffer, _address["strided_storage_getbuffer"]),
        Slot(Py_tp_members, ctypes.addressof(members)),
        Slot(Py_tp_doc, ctypes.cast(doc, ctypes.c_void_p)),
        Slot(0, None),
    )
    DISALLOW_INSTANTIATION = 1 << 7  # storages come from new_storage only (before 3.10 the flag is ignored)
    spec = TypeSpec(b"strided.Storage", 64, 0, DISALLOW_INSTANTIATION, ctypes.addressof(slots))
    _keep.extend([members, slots, doc, spec])
    make = _python.PyType_FromSpec
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p]
    return make(ctypes.addressof(spec))


def _initialise() -> Any:
    storage = _make_storage_type()
    # MADV_HUGEPAGE is Linux's: large blocks on 2 MiB pages cost a five-hundredth of the page faults.
    huge = 14 if sys.platform == "linux" else 0
    _keep.append(PackedOperand)
    initialise = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 5, ctypes.c_int64)(_address["strided_init"])
    initialise(id(float), id(storage), id(RuntimeError), id(TypeError), id(PackedOperand), huge)
    ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_address["strided_set_none"])(id(None))
    return storage


Storage = _initialise()
_keep.append(Storage)
launch = _builtin("launch", "strided_launch")
launch_new = _builtin("launch_new", "strided_launch_new")
new_storage = _builtin("new_storage", "strided_py_new_storage")
wrap_storage = _builtin("wrap_storage", "strided_py_wrap_storage")
empty_cache = _builtin("empty_cache", "strided_py_empty_cache")
reset_peak = _builtin("reset_peak", "strided_py_reset_peak")
set_memory_limit = _builtin("set_memory_limit", "strided_py_set_limit")
memory_stats = _builtin("memory_stats", "strided_py_stats")
fill_bytes = _builtin("fill_bytes", "strided_py_fill_bytes")
move_bytes = _builtin("move_bytes", "strided_py_move_bytes")
read_scalar = _builtin("read_scalar", "strided_py_read_scalar")
read_list = _builtin("read_list", "strided_py_read_list")
read_flag = _builtin("read_flag", "strided_py_read_flag")
set_capture = _builtin("set_capture", "strided_py_set_capture")
replay = _builtin("replay", "strided_py_replay")


def pack_desc(function: int, slots: int, parts: int = 1, release_gil: bool = False, result_bytes: int = 0, words: tuple[int, ...] | list[int] = ()) -> bytes:
    """A kernel's descriptor: the launcher's eight header words, then the kernel's own (each an i64)."""
    if slots > MAX_SLOTS:
        raise NotImplementedError(f"a kernel takes at most {MAX_SLOTS} operands, this one would need {slots}; split the work")
    try:
        return struct.pack(f"<8q{len(words)}q", function, slots, parts, int(release_gil), result_bytes, 0, 0, 0, *words)
    except struct.error:
        raise RuntimeError("Storage size calculation overflowed: sizes or strides of this call, in bytes, do not fit 64 bits") from None


# ---- threads ------------------------------------------------------------------------------------------------------------

_set_threads = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(_address["strided_set_threads"])
_threads = 1


def _default_threads() -> int:
    chosen = os.environ.get("OMP_NUM_THREADS", "")
    return int(chosen) if chosen.isdigit() and int(chosen) > 0 else _cores()


def _cores() -> int:
    """That this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


class PlanCache(dict):
    """Plans by key, bounded: `put` empties the table when it is full, since plans are cheap to make again and a table of every shape ever seen is not."""

    __slots__ = ("__weakref__", "limit")

    def __init__(self, limit: int = 4096):
        self.limit = limit
        _plan_caches.add(self)

    def put(self, key, plan):
        if len(self) >= self.limit:
            self.clear()
        self[key] = plan
        return plan

    __hash__ = object.__hash__  # type: ignore[assignment]


_plan_caches: weakref.WeakSet[PlanCache] = weakref.WeakSet()


def clear_plans() -> None:
    """Empties every table of plans: something that they were made for has changed."""
    for cache in list(_plan_caches):
        cache.clear()


def get_num_threads() -> int:
    """How many threads a kernel may use (the caller's included)."""
    return _threads


def set_num_threads(n: int) -> None:
    """Sets how many threads kernels may use. Raises RuntimeError unless n is positive."""
    global _threads
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"set_num_threads expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    if n == _threads:
        return
    _threads = n
    _set_threads(n, PATIENCE if n <= _cores() else IMPATIENCE)
    clear_plans()  # plans carry how their work is split


def parts_for(items: int, grain: int) -> int:
    """Into how many parts to split `items` units of work so that each has at least `grain`; 1 means run in the caller."""
    return max(1, min(_threads, items // grain)) if grain > 0 else 1


def slices_for(parts: int, nbytes: int) -> int:
    """`parts`, or where so much memory is walked that no cache keeps a part for its thread, some slices for each: threads claim them as they come, and a core that is slow
    or late holds nobody up."""
    return parts * max(1, min(SLICES, nbytes // (parts * SLICE))) if parts > 1 else parts


set_num_threads(_default_threads())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ctypes.CFUNCTYPE(None)(_address["strided_after_fork"]))
