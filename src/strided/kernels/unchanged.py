"""`unchanged`: a native function that says whether a list of places in Python's objects still hold what they held. What is worth watching is compile/guards.py's.

The list is an array of words, so that a check walks memory once and makes no object: addresses of what the caller keeps alive, and counts. It says True where each
place holds the very object, or an equal number or text of the same type; anything else is None, for the caller to look at more closely.
"""
from __future__ import annotations

import struct
from typing import Any

from . import jit
from .native import _address, _builtin
from .runtime_objects import T
from .runtime_text import Function

MISSING = object()  # as a value: nothing is there
_TYPES = (int, str, bytes, float)  # whose values are compared
_GROUPS = ("dicts", "items", "attributes", "sizes", "keys", "tensors")
_FIRST = 2 + len(_TYPES) + len(_GROUPS)  # words in front: what stands for nothing, None, the types, how many of each group
_SYMBOL = "strided_py_unchanged"

_DECLARED = """
declare ptr @PyBytes_AsString(ptr)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare ptr @PyObject_GetItem(ptr, ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare i64 @PyObject_Size(ptr)
declare i64 @PyDict_Size(ptr)
declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyBool_FromLong(i64)
declare void @PyErr_Clear()
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
"""


def _alike() -> str:
    """Whether an object that is not the expected one is as good: a number or a text, and equal. A zero may have another sign."""
    f = Function("internal i1 @alike(ptr %list, ptr %found, ptr %value) noinline")
    with f.when(f.equal("%found", "null")):
        f.give("i1 false")
    kind = f.load("%found", 8)
    with f.when(f.other(kind, f.load("%value", 8))):
        f.give("i1 false")
    kinds = [f.equal(kind, f.load("%list", 8 * (2 + k))) for k in range(len(_TYPES))]
    any_of = kinds[0]
    for one in kinds[1:]:
        any_of = f.value(f"or i1 {any_of}, {one}")
    with f.when(f.value(f"xor i1 {any_of}, true")):
        f.give("i1 false")
    with f.when(f.other(f.call("PyObject_RichCompareBool", "%found", "%value", "i32 2", type="i32"), "1", "i32")):
        f.give("i1 false")
    with f.when(kinds[-1]):
        f.give("i1 " + f.value(f"fcmp une double {f.call('PyFloat_AsDouble', '%value', type='double')}, 0.0"))
    f.give("i1 true")
    return f.text()


def _text() -> str:
    f = Function(f"ptr @{_SYMBOL}(ptr %self, ptr %args, i64 %n)")
    words = f.call("PyBytes_AsString", "%self")
    nothing, none = f.load(words), f.load(words, 8)
    counts = [f.load(words, 8 * (2 + len(_TYPES) + k), type="i64") for k in range(len(_GROUPS))]
    at, pending = f.variable_at_entry("ptr"), f.variable_at_entry("ptr")  # pending: what is ours until it was looked at
    f.store("null", pending)
    f.store(f.place(words, 8 * _FIRST), at)

    def step(size: int | str) -> str:
        """The present entry; the next one lies so many bytes behind it."""
        here = f.load(at)
        f.store(f.place(here, size), at)
        return here

    def compare(found: str, value: str) -> None:
        with f.when(f.other(found, value)):
            with f.when(f.value(f"and i1 {f.equal(found, 'null')}, {f.equal(value, nothing)}")):
                f.run("PyErr_Clear")
            same = f.value(f"or i1 {f.equal(value, nothing)}, {f.call('alike', words, found, value, type='i1')}")
            wrong = f.value(f"and i1 {f.other(found, 'null')}, {f.equal(value, nothing)}")
            f.leave(f.value(f"or i1 {wrong}, {f.value(f'xor i1 {same}, true')}"), "unsure")

    with f.each(counts[0]):
        here = step(24)
        compare(f.call("PyDict_GetItemWithError", f.load(here), f.load(here, 8)), f.load(here, 16))
    for count, get in ((counts[1], "PyObject_GetItem"), (counts[2], "PyObject_GetAttr")):
        with f.each(count):
            here = step(24)
            found = f.call(get, f.load(here), f.load(here, 8))
            f.store(found, pending)
            compare(found, f.load(here, 16))
            f.store("null", pending)
            f.run("Py_DecRef", found)
    with f.each(counts[3]):
        here = step(16)
        f.leave(f.other(f.call("PyObject_Size", f.load(here), type="i64"), f.load(here, 8, type="i64"), "i64"), "unsure")
    place, key, held = (f.variable_at_entry(type) for type in ("i64", "ptr", "ptr"))
    with f.each(counts[4]):
        here = step(16)
        table, size = f.load(here), f.load(here, 8, type="i64")
        f.leave(f.other(f.call("PyDict_Size", table, type="i64"), size, "i64"), "unsure")
        f.store("i64 0", place)
        with f.each(size):
            f.leave(f.equal(f.call("PyDict_Next", table, place, key, held, type="i32"), "0", "i32"), "unsure")
            f.leave(f.other(f.load(key), f.load(step(8))), "unsure")
    with f.each(counts[5]):
        here = step(32)
        t = f.load(here)
        f.leave(f.other(f.load(t, T["spec"]), f.load(here, 8)), "unsure")
        f.leave(f.other(f.load(t, T["_tracked"]), f.load(here, 16)), "unsure")
        wanted = f.load(here, 24, type="i64")
        has = f.value(f"zext i1 {f.other(f.load(t, T['_grad']), none)} to i64")
        differs = f.value(f"and i1 {f.other(wanted, '2', 'i64')}, {f.other(wanted, has, 'i64')}")
        f.leave(differs, "unsure")
    f.give(f.call("PyBool_FromLong", "i64 1"))
    f.label("unsure")
    f.run("Py_DecRef", f.load(pending))
    f.run("PyErr_Clear")
    f.run("Py_IncRef", none)
    f.give(none)
    return _DECLARED + _alike() + f.text()


_address[_SYMBOL] = jit.compile_module(("unchanged",), _text, (_SYMBOL,))[0]


def unchanged(dicts=(), items=(), attributes=(), sizes=(), keys=(), tensors=()) -> Any:
    """A function without arguments that says True where all of these hold, else None.

    dicts: (dictionary, key, value); items: (anything, key, value); attributes: (object, name, value); the value may be MISSING in all three.
    sizes: (container, its length). keys: (dictionary, its keys in their order). tensors: (tensor, spec, whether it is tracked, whether it has a gradient, or None).
    The caller keeps all of them alive.
    """
    address = lambda *objects: [id(o) for o in objects]
    words = address(MISSING, None, *_TYPES) + [len(group) for group in (dicts, items, attributes, sizes, keys, tensors)]
    for entry in (*dicts, *items, *attributes):
        words += address(*entry)
    for container, size in sizes:
        words += [id(container), size]
    for table, names in keys:
        words += [id(table), len(names), *address(*names)]
    for t, spec, tracked, has in tensors:
        words += [*address(t, spec, tracked), 2 if has is None else int(has)]
    return _builtin("unchanged", _SYMBOL, self=struct.pack(f"<{len(words)}q", *words))
