"""What a recording took for granted of the Python around it, and whether that still holds.

`Snapshot` walks from a function or a module to everything its code can reach by name: globals, closures, defaults, modules with their attributes, plain
objects, containers, classes and the methods, properties and constants of theirs that any of that code names. Values are compared, other objects must be
the same ones, tensors must have the same shapes, dtypes and layouts. What cannot be watched (code that evaluates strings, draws from Python's own random numbers,
asks the clock; iterators, NumPy arrays and other memory without a version) is a reason not to compile.

Functions of this package and of the standard library are not walked into. That one of this package was replaced is noticed where the user's code names it (`F.relu`,
a tensor's method) and where a layer's `forward` does; who replaces what lies deeper, or a function of the standard library, is not noticed.
"""
from __future__ import annotations

import builtins
import contextvars
import functools
import io
import math
import random
import sys
import threading
import types
from collections import deque
from typing import Any

from ..block_tensor import BlockTensor
from ..dtypes import Device, DType
from ..kernels.unchanged import MISSING, Held, unchanged
from ..layout import Size
from ..nn.hooks import ANY_GLOBAL
from ..nn.module import Module
from ..ops.generator import Generator, default_generator
from ..optim.optimizer import GLOBAL_STEP_POST, GLOBAL_STEP_PRE, Optimizer
from ..tensor import Spec, Tensor

SIMPLE = (int, float, complex, str, bytes, bool, type(None), DType, Device, Size, slice, range, type(Ellipsis))
_CONTAINERS = (list, tuple, dict, set, frozenset, deque, types.MappingProxyType)
_EFFECTS = {"exec", "eval", "breakpoint", "globals", "locals", "vars"}  # code and names that no walk sees; print() and open() are noticed where they are called (recording.py)
_UNSTEADY = {"random", "time", "datetime", "secrets", "uuid", "numpy.random"}  # modules whose answers differ from call to call
_LIMIT = 20_000  # objects; a program that reaches more is not worth guarding
_PACKAGE = __name__.partition(".")[0]
_OF_TENSORS = {"spec", "mem", "ptr"}
# Tables of a module that its forward pass does not read.
_BESIDE = {
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_non_persistent_buffers_set",
    "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs",
}  # fmt: skip
# What the library calls of a user's classes without their code naming it; the other special methods but for these, which run when an object is made or shown.
_CALLED = {"forward", "backward", "setup_context"}
_MAKING = {"__init__", "__new__", "__post_init__"}
_UNCALLED = {"__repr__", "__str__", "__del__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__init_subclass__", "__class_getitem__", "__dir__", "__format__"}


def _equal(found, expected) -> bool:
    return type(found) is type(expected) and found == expected and (found != 0 or type(found) is not float or math.copysign(1, found) == math.copysign(1, expected))


def _in_its_order(container) -> bool:
    """Whether it is a dictionary that is walked in the order in which its keys came."""
    return isinstance(container, dict) and type(container).__iter__ is dict.__iter__


def _of_library(cls) -> bool:
    """Whether a class's or a function's code is taken for granted."""
    top = (cls.__module__ or "").partition(".")[0] if isinstance(cls.__module__, str) else ""
    return top == _PACKAGE or top in sys.stdlib_module_names


def _unsteady(name) -> bool:
    return isinstance(name, str) and any(name == u or name.startswith(u + ".") for u in _UNSTEADY)


def marks_of(t: Tensor) -> list[str]:
    """Names of the attributes that a user gave a tensor."""
    return [name for name in t.__dict__ if name[0] != "_" and name not in _OF_TENSORS]


class Snapshot:
    """The state of what `roots` reach. `holds()` says whether it is unchanged; `tensors` are those found, in order; `reason` why it cannot be watched.

    `names`: of globals and attributes in its code. `reads_grad`: whether its code may look at a tensor's `.grad`.
    """

    def __init__(self, *roots):
        self.same: list[tuple] = []  # (mapping or sequence, key, object): identity, and equality for simple values
        self.attributes: list[tuple] = []  # (object, name, object): the same
        self.lengths: list[tuple] = []  # (container, its length, or its keys where their order matters, or an equal set)
        self.tensors: list[Tensor] = []
        self.states: list[tuple[Spec, bool, bool]] = []
        self.reason: str | None = None
        self._holds: Any = None
        self._slowly: Any = None
        self._groups: set[int] = set()  # options of optimisers that only the optimisers themselves read
        self._options: list[tuple] = []  # (group, key, value) of them
        self._guarded = 0
        self._seen: set[int] = set()
        self._codes: set = set()
        self._names: dict[str, None] = {}  # that code uses, as a global, an attribute or a string
        self._spaces: list = []  # (dictionary of a user's class or of a module, whether objects of it may be made)
        self._looked: set = set()
        self._layers: set = set()  # classes of this package whose forward was looked at
        self._queue: list = [*roots, *ANY_GLOBAL]
        self._alive: list = []  # what `_seen` names by id
        while self._queue and self.reason is None:
            self._visit(self._queue.pop())
            if not self._queue:
                self._look_up()
            if len(self._seen) > _LIMIT:
                self.reason = f"it reaches more than {_LIMIT} objects"
        self.reads_grad = "grad" in self._names
        self.names = frozenset(self._names)
        self.same += [(Tensor.__dict__, name, Tensor.__dict__[name]) for name in self._names if name in Tensor.__dict__ and name[:2] != "__"]
        self.same = [*{(id(holder), key): (holder, key, value) for holder, key, value in self.same}.values()]
        self._guarded = len(self.same)
        del self._queue, self._codes, self._looked, self._spaces, self._names, self._layers

    def settle(self, asked, plain) -> None:
        """Says whose options need not be watched: of the groups that are asked for what follows from them (compile/updates.py), and of those that nobody steps; not of the plain ones.

        What the user's own code may read is watched in any case.
        """
        own = self.names & {"param_groups", "state_dict", "defaults", "__dict__", "vars", "copy", "deepcopy"}
        watched = {id(group) for group in plain} - {id(group) for group in asked}
        del self.same[self._guarded :]
        self.same += [(group, key, value) for group, key, value in self._options if own or key in self.names or id(group) in watched]
        self._holds = None

    def holds(self) -> bool:
        """Whether everything is as it was: one native call, since this runs at every call; what that is not sure of is looked at in Python."""
        if self._holds is None:
            self._holds, self._slowly = self._watch(), None
        if self._holds():
            return True
        if self._slowly is None:
            self._slowly = self._write()
        try:
            return self._slowly()
        except (ValueError, LookupError):  # a variable of a closure was deleted, a list became shorter
            return False

    def _watch(self):
        """The native function, and behind it what it does not know."""
        rest = self.beyond
        quick = unchanged(**self.places(), tensors=self.held())
        if not rest:
            return quick
        return lambda: quick() and all(([*container] if type(expected) is list else container) == expected for container, expected in rest)

    @property
    def beyond(self) -> list[tuple]:
        """What only Python can compare: sets, dictionaries with an order of their own."""
        return [(container, expected) for container, expected in self.lengths if type(expected) is not int and not _in_its_order(container)]

    def places(self) -> dict:
        """All else but the tensors, as `unchanged` takes it."""
        return {
            "dicts": [entry for entry in self.same if isinstance(entry[0], dict)],
            "items": [entry for entry in self.same if not isinstance(entry[0], dict)],
            "attributes": self.attributes,
            "sizes": [(container, expected) for container, expected in self.lengths if type(expected) is int],
            "keys": [(container, expected) for container, expected in self.lengths if type(expected) is list and _in_its_order(container)],
        }

    def held(self) -> list[Held]:
        return [Held(t, spec, tracked, has_grad=has_grad if self.reads_grad else None) for t, (spec, tracked, has_grad) in zip(self.tensors, self.states)]

    def _write(self):
        """The same in Python, as one generated function."""
        names: dict = {"missing": MISSING, "equal": _equal, "item": dict.get}
        terms = []

        def name(value):
            names[f"v{len(names)}"] = value
            return f"v{len(names) - 1}"

        for container, expected in self.lengths:
            if type(expected) is int:
                terms.append(f"len({name(container)}) == {expected}")
            elif type(expected) is list:
                terms.append(f"[*{name(container)}] == {name(expected)}")
            else:
                terms.append(f"{name(container)} == {name(expected)}")

        def compare(found, value):
            expected = name(value)
            terms.append(f"({found} is {expected}" + (f" or equal({found}, {expected}))" if isinstance(value, SIMPLE) and value is not None else ")"))

        for holder, key, value in self.same:
            if type(holder) in (dict, types.MappingProxyType):
                compare(f"{name(holder)}.get({name(key)}, missing)", value)
            else:
                compare(f"item({name(holder)}, {name(key)}, missing)" if isinstance(holder, dict) else f"{name(holder)}[{key}]", value)
        for holder, attribute, value in self.attributes:
            compare(f"getattr({name(holder)}, {attribute!r}, missing)", value)
        for t, (spec, tracked, has_grad) in zip(self.tensors, self.states):
            held = name(t)
            terms.append(f"{held}.spec is {name(spec)} and {held}._tracked is {tracked}")
            if self.reads_grad:
                terms.append(f"({held}._grad is not None) is {has_grad}")
        exec("def check():\n    return " + " and ".join(terms or ["True"]), names)
        return names["check"]

    # ---- the walk ----

    def _entry(self, holder, key, value):
        self.same.append((holder, key, value))
        if not isinstance(value, SIMPLE):
            self._queue.append(value)

    def _attribute(self, holder, name, value):
        self.attributes.append((holder, name, value))
        if not isinstance(value, SIMPLE):
            self._queue.append(value)

    def _visit(self, value):
        if isinstance(value, SIMPLE) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        self._alive.append(value)
        kind = type(value)
        if isinstance(value, BlockTensor):
            self.reason = f"it uses a block tensor ({value.dtype}), whose kernels are not fused with others"
        elif isinstance(value, Tensor):
            self.tensors.append(value)
            self.states.append((value.spec, value._tracked, value._grad is not None))
            for name in marks_of(value):
                self._entry(value.__dict__, name, value.__dict__[name])
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(getattr(kind, "original", None), property) and kind.__module__.partition(".")[0] == _PACKAGE:  # a compiled function inside: its own recordings do not matter here
            self._queue.append(value.original)
        elif isinstance(value, types.MethodType):
            self._queue += [value.__func__, value.__self__]
        elif isinstance(value, functools.partial):
            self._queue += [value.func, value.args, value.keywords]
        elif isinstance(value, (staticmethod, classmethod)):
            self._queue.append(value.__func__)
        elif kind is property:
            self._queue += [f for f in (value.fget, value.fset) if f is not None]
        elif isinstance(value, types.ModuleType):
            self._module(value)
        elif isinstance(value, type):
            self._class(value, True)
        elif isinstance(value, types.BuiltinFunctionType):
            if not isinstance(value.__self__, (types.ModuleType, type(None))):  # random.random is a method, items.append another
                self._queue.append(value.__self__)
            elif _unsteady(value.__module__):
                self.reason = f"it uses {value.__module__}.{value.__name__}, whose answers differ from call to call"
        elif isinstance(value, _CONTAINERS):
            self._container(value)
            if kind.__module__ not in ("builtins", "collections"):
                self._object(value)
        elif isinstance(value, random.Random):
            self.reason = "it uses the module random, whose answers differ from call to call"
        elif isinstance(value, Generator):
            if value is not default_generator:
                self.reason = "it draws from a generator of its own"
        elif isinstance(value, (threading.local, contextvars.ContextVar)):
            self.reason = "it uses a variable that every thread or context has for itself"
        elif isinstance(value, io.IOBase):
            self.reason = "it uses a file"
        elif hasattr(kind, "__next__"):
            self.reason = f"it uses an iterator ({kind.__name__}), which goes on from call to call"
        elif hasattr(value, "__dict__") or any("__slots__" in base.__dict__ for base in kind.__mro__):
            if isinstance(value, Module) and (value._backward_hooks or value._backward_pre_hooks):
                self.reason = "a module has backward hooks"
            if isinstance(value, Optimizer):
                self._queue += [GLOBAL_STEP_PRE, GLOBAL_STEP_POST]
                if _of_library(kind) and kind.step is Optimizer.step:
                    self._groups.update(map(id, value.param_groups))
            self._object(value)
        elif hasattr(kind, "__setitem__"):  # an array of NumPy's, a bytearray
            self.reason = f"it uses an object of type {kind.__name__}, whose contents cannot be watched"

    def _container(self, value):
        if isinstance(value, (set, frozenset)):
            self.lengths.append((value, frozenset(value)))
            self._queue += value
        elif isinstance(value, tuple):
            self._queue += value
        elif isinstance(value, (dict, types.MappingProxyType)):
            self.lengths.append((value, len(value) if len(value) < 2 else [*value]))
            for key, item in value.items():
                if id(value) in self._groups and key != "params":
                    self._options.append((value, key, item))
                    self._queue.append(item)
                else:
                    self._entry(value, key, item)
        else:
            self.lengths.append((value, len(value)))
            for place, item in enumerate(value):
                self._entry(value, place, item)

    def _object(self, value):
        own = getattr(value, "__dict__", None)
        if type(own) is dict:
            self.lengths.append((own, len(own)))
            for name, item in own.items():
                if name not in _BESIDE:
                    self._entry(own, name, item)
        cls = type(value)
        for base in cls.__mro__:
            for name, slot in base.__dict__.items() if "__slots__" in base.__dict__ else ():
                if type(slot) is types.MemberDescriptorType:
                    self._attribute(value, name, getattr(value, name, MISSING))
        if not _of_library(cls):
            self.attributes.append((value, "__class__", cls))
        self._class(cls, False)

    def _class(self, cls, named):
        """A class that code names (and may make objects of) or that an object has: what is defined in the user's part of its ancestry is looked at by name."""
        if issubclass(cls, Module) and cls not in self._layers:
            self._layers.add(cls)
            self._layer(cls)
        for base in cls.__mro__:
            if not _of_library(base) and (id(base), named) not in self._seen:
                self._seen.add((id(base), named))
                self._alive.append(base)
                self.lengths.append((base.__dict__, len(base.__dict__)))
                self._spaces.append((base.__dict__, named))

    def _layer(self, cls):
        """The forward function that a layer has from this package, and what that names of it."""
        base = next((base for base in cls.__mro__ if "forward" in base.__dict__), Module)
        function = base.__dict__.get("forward")
        if _of_library(base) and isinstance(function, types.FunctionType):
            self.same.append((base.__dict__, "forward", function))
            self._of_package(function.__code__, function.__globals__)

    def _of_package(self, code, space) -> dict:
        """The globals of code. Functions of this package's modules that it reaches by name, `F.relu` or `torch.nn.functional.relu`: the modules must still hold them."""
        import dis

        module, found = None, {}
        for step in dis.get_instructions(code):
            if step.opname in _GLOBALS:
                found[step.argval] = None
                module = space.get(step.argval)
            elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and module is not None:
                value = getattr(module, step.argval, None)
                if not isinstance(value, types.ModuleType):  # what is found by the module's __getattr__ is not in it, and must not be later
                    self.same.append((module.__dict__, step.argval, module.__dict__.get(step.argval, MISSING)))
                module = value
            elif step.opname not in ("PUSH_NULL", "CACHE"):
                module = None
            if not (isinstance(module, types.ModuleType) and module.__name__.partition(".")[0] == _PACKAGE):
                module = None
        return found

    def _module(self, module):
        if _unsteady(module.__name__):
            self.reason = f"it uses the module {module.__name__}, whose answers differ from call to call"
        elif module.__name__.partition(".")[0] != _PACKAGE:
            self._spaces.append((module.__dict__, False))

    def _look_up(self):
        """Everything that has been named meets everything that names can be looked up in."""
        for number, (space, named) in enumerate(self._spaces):
            of_class = type(space) is types.MappingProxyType
            library = not of_class and space.get("__name__", "").partition(".")[0] in sys.stdlib_module_names
            wanted = list(self._names)
            if of_class:
                wanted += [name for name in space if name in _CALLED or name[:2] == "__" and type(space[name]) is types.FunctionType and name not in _UNCALLED and (named or name not in _MAKING)]
            for name in wanted:
                if not of_class and _unsteady(f"{space.get('__name__')}.{name}"):  # also where the module is not imported yet
                    self.reason = f"it uses the module {space['__name__']}.{name}, whose answers differ from call to call"
                if name not in space or (number, name) in self._looked:
                    continue
                self._looked.add((number, name))
                value = space[name]
                if library and isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType)) and name not in ("environ", "getenv"):
                    continue
                if of_class and (name == "__dict__" or name == "__weakref__"):
                    continue
                self._entry(space, name, value)

    def _function(self, function):
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None:
            self._queue.append(wrapped)
        if isinstance(function.__module__, str) and function.__module__.partition(".")[0] == _PACKAGE:
            return
        self.attributes.append((function, "__code__", function.__code__))
        self._attribute(function, "__defaults__", function.__defaults__)
        self._attribute(function, "__kwdefaults__", function.__kwdefaults__)
        own = function.__dict__
        self.lengths.append((own, len(own)))
        for name, item in own.items():
            self._entry(own, name, item)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ValueError:
                continue  # not filled yet
            if name == "__class__" and isinstance(value, type):  # for super()
                self._class(value, False)
            else:
                self._attribute(cell, "cell_contents", value)
        self._code(function.__code__, function.__globals__)

    def _code(self, code, space):
        if (code, id(space)) in self._codes:
            return
        self._codes.add((code, id(space)))
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                self._code(const, space)
            elif isinstance(const, str) and const.isidentifier():  # getattr(self, "width")
                self._names[const] = None
        for name in code.co_names:
            self._names[name] = None
        for name in self._of_package(code, space):  # not every name of code is a global: `optimizer.step` has nothing to do with a variable `step`
            if name in space:
                value = space[name]
                self._entry(space, name, value)
                if not isinstance(value, types.ModuleType) and _unsteady(getattr(value, "__module__", None)):
                    self.reason = f"it uses {value.__module__}.{name}, whose answers differ from call to call"
            elif hasattr(builtins, name):
                if name in _EFFECTS:
                    self.reason = f"it calls {name}(), which would be left out"
                self.same.append((space, name, MISSING))
        if _IMPORT in code.co_code[::2]:
            import dis

            for step in dis.get_instructions(code):
                if step.opname == "IMPORT_NAME" and step.argval in sys.modules:
                    self._queue.append(sys.modules[step.argval])


_GLOBALS = {"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_NAME", "DELETE_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}


def _import_opcode() -> int:
    from opcode import opmap

    return opmap["IMPORT_NAME"]


_IMPORT = _import_opcode()
