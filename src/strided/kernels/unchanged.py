"""`unchanged`: a native function that says whether a list of places in Python's objects still hold what they held. What is worth watching is compile/guards.py's.

The list is an array of words, so that a check walks memory once and makes no object: addresses of what the caller keeps alive, and counts. It says True where each
place holds the very object, or an equal number or text of the same type; anything else is None, for the caller to look at more closely. It may look at what it
is called with, too: an argument is known by its number.
"""
from __future__ import annotations

import struct
from typing import Any, NamedTuple

from . import jit
from .native import _address, _builtin
from .runtime_objects import T
from .runtime_text import Function

MISSING = object()  # as a value: nothing is there
_TYPES = (int, str, bytes, float)  # whose values are compared
_GROUPS = ("dicts", "items", "attributes", "sizes", "keys", "names", "arguments", "tensors")
_FIRST = 2 + len(_TYPES) + len(_GROUPS)  # words in front: what stands for nothing, None, the types, how many of each group
_TENSOR = 11  # words of a tensor
_SYMBOL = "strided_py_unchanged"

_DECLARED = """
declare ptr @PyBytes_AsString(ptr)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare ptr @PyObject_GetItem(ptr, ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare i64 @PyObject_Size(ptr)
declare i64 @PyDict_Size(ptr)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
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
    f = Function(f"ptr @{_SYMBOL}(ptr %self, ptr %args, i64 %n, ptr %given)")
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
    # The names of those arguments that have one: the very objects, as a call has them that is written in the same place.
    named = f.variable_at_entry("i64")
    f.store("i64 0", named)
    with f.when(f.other("%given", "null")):
        f.store("i64 " + f.call("PyTuple_Size", "%given", type="i64"), named)
    f.leave(f.other(f.load(named, type="i64"), counts[5], "i64"), "unsure")
    with f.each(counts[5]) as i:
        f.leave(f.other(f.call("PyTuple_GetItem", "%given", f"i64 {i}"), f.load(step(8))), "unsure")
    f.leave(f.other(f.value(f"add i64 %n, {counts[5]}"), counts[6], "i64"), "unsure")
    with f.each(counts[6]) as i:
        here = step(16)  # a tensor's type, or nothing and the object
        argument = f.load(f.value(f"getelementptr ptr, ptr %args, i64 {i}"))
        kind = f.load(here)
        with f.when(f.equal(kind, "null")):
            compare(argument, f.load(here, 8))
        with f.when(f.other(kind, "null")):
            f.leave(f.other(f.load(argument, 8), kind), "unsure")
            with f.each(i) as j:
                f.leave(f.equal(f.load(f.value(f"getelementptr ptr, ptr %args, i64 {j}")), argument), "unsure")
    with f.each(counts[7]):
        here = step(8 * _TENSOR)
        number = f.load(here, type="i64")
        outside = f.value(f"icmp slt i64 {number}, 0")
        source = f.value(f"select i1 {outside}, ptr {f.place(here, 8)}, ptr {f.value(f'getelementptr ptr, ptr %args, i64 {number}')}")
        t = f.load(source)
        f.leave(f.other(f.load(t, T["spec"]), f.load(here, 16)), "unsure")
        f.leave(f.other(f.load(t, T["_tracked"]), f.load(here, 24)), "unsure")
        grad = f.load(t, T["_grad"])
        for at_word, what in ((32, f.equal(f.load(t, T["_node"]), none)), (40, f.other(grad, none))):
            wanted, has = f.load(here, at_word, type="i64"), f.value(f"zext i1 {what} to i64")
            f.leave(f.value(f"and i1 {f.other(wanted, '2', 'i64')}, {f.other(wanted, has, 'i64')}"), "unsure")
        for at_word, field in ((48, "_inference"), (56, "_hooks"), (64, "_post_hooks")):
            wanted = f.load(here, at_word)
            f.leave(f.value(f"and i1 {f.other(wanted, 'null')}, {f.other(wanted, f.load(t, T[field]))}"), "unsure")
        spec = f.load(here, 72)
        with f.when(f.other(spec, "null")):
            f.leave(f.other(f.load(grad, T["spec"]), spec), "unsure")
            f.leave(f.other(f.load(grad, T["_tracked"]), f.load(here, 80)), "unsure")
            f.leave(f.other(f.load(grad, T["_base"]), none), "unsure")
    f.give(f.call("PyBool_FromLong", "i64 1"))
    f.label("unsure")
    f.run("Py_DecRef", f.load(pending))
    f.run("PyErr_Clear")
    f.run("Py_IncRef", none)
    f.give(none)
    return _DECLARED + _alike() + f.text()


_address[_SYMBOL] = jit.compile_module(("unchanged",), _text, (_SYMBOL,))[0]


class Held(NamedTuple):
    """What a tensor has to be: its layout and dtype; whether it is tracked, has no history, has a gradient, is of inference mode (None: whatever); quiet: without hooks;
    grad_spec: of its gradient, which is then plain and without a history."""

    tensor: Any  # or an argument's number
    spec: Any
    tracked: bool
    leaf: bool | None = None
    has_grad: bool | None = None
    inference: bool | None = None
    quiet: bool = False
    grad_spec: Any = None

    def words(self) -> list[int]:
        number, own = (self.tensor, 0) if type(self.tensor) is int else (-1, id(self.tensor))
        either = [2 if asked is None else int(asked) for asked in (self.leaf, self.has_grad)]
        quiet, nothing = [id(None) if self.quiet else 0] * 2, 0
        return [
            number, own, id(self.spec), id(self.tracked), *either, nothing if self.inference is None else id(self.inference), *quiet,
            nothing if self.grad_spec is None else id(self.grad_spec), id(False),
        ]  # fmt: skip


def unchanged(dicts=(), items=(), attributes=(), sizes=(), keys=(), names=(), arguments=(), tensors=()) -> Any:
    """A function that says True where all of these hold, else None.

    dicts: (dictionary, key, value); items: (anything, key, value); attributes: (object, name, value); the value may be MISSING in all three.
    sizes: (container, its length). keys: (dictionary, its keys in their order). names: of the last arguments. arguments: (type, None) for a tensor, which is none of those
    before it, or (None, value). tensors: `Held`. The caller keeps all of them alive.
    """
    address = lambda *objects: [id(o) for o in objects]
    words = address(MISSING, None, *_TYPES) + [len(group) for group in (dicts, items, attributes, sizes, keys, names, arguments, tensors)]
    for entry in (*dicts, *items, *attributes):
        words += address(*entry)
    for container, size in sizes:
        words += [id(container), size]
    for table, order in keys:
        words += [id(table), len(order), *address(*order)]
    words += address(*names)
    for kind, value in arguments:
        words += [0, id(value)] if kind is None else [id(kind), 0]
    for held in tensors:
        words += held.words()
    return _builtin("unchanged", _SYMBOL, keywords=True, self=struct.pack(f"<{len(words)}q", *words))
