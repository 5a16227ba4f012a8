"""What a recording took for granted of the Python around it, and whether that still holds.

`Snapshot` walks from a function or a module to everything its code can reach by name: globals, closures, modules with their attributes, plain objects,
containers. Values are compared, other objects must be the same ones, tensors must have the same shapes, dtypes and layouts. What cannot be watched (code
that prints, draws from Python's own random numbers, asks the clock) is a reason not to compile.
"""
from __future__ import annotations

import builtins
import sys
import types

from ..block_tensor import BlockTensor
from ..dtypes import Device, DType
from ..layout import Size
from ..tensor import Spec, Tensor

SIMPLE = (int, float, complex, str, bytes, bool, type(None), DType, Device, Size, slice, range, type(Ellipsis))
_CONTAINERS = (list, tuple, dict, set, frozenset)
_EFFECTS = {"print", "input", "open", "exec", "eval", "breakpoint"}
_UNSTEADY = {"random", "time", "datetime", "secrets", "uuid"}  # modules whose answers differ from call to call
_LIMIT = 20_000  # objects; a program that reaches more is not worth guarding
_PACKAGE = __name__.partition(".")[0]
_MISSING = object()
# Tables of a module that its forward pass does not read.
_BESIDE = {
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_non_persistent_buffers_set",
    "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs",
}  # fmt: skip


def _equal(found, expected) -> bool:
    return type(found) is type(expected) and found == expected


class Snapshot:
    """The state of what `roots` reach. `holds()` says whether it is unchanged; `tensors` are those found, in order; `reason` why it cannot be watched."""

    def __init__(self, *roots):
        self.same: list[tuple] = []  # (mapping or list, key, object): identity, and equality for simple values
        self.lengths: list[tuple] = []  # (container, its length)
        self.tensors: list[Tensor] = []
        self.states: list[tuple[Spec, bool]] = []
        self.reason: str | None = None
        self._holds = None
        self._seen: set[int] = set()
        self._codes: set = set()
        self._queue: list = [*roots]
        self._alive: list = []  # what `_seen` names by id
        while self._queue and self.reason is None:
            self._visit(self._queue.pop())
            if len(self._seen) > _LIMIT:
                self.reason = f"it reaches more than {_LIMIT} objects"
        del self._queue, self._codes

    def holds(self) -> bool:
        """Whether everything is as it was: one generated function, since this runs at every call."""
        if self._holds is None:
            self._holds = self._write()
        return self._holds()

    def _write(self):
        names: dict = {"missing": _MISSING, "equal": _equal}
        terms = []

        def name(value):
            names[f"v{len(names)}"] = value
            return f"v{len(names) - 1}"

        terms += [f"len({name(container)}) == {length}" for container, length in self.lengths]
        for mapping, key, value in self.same:
            if type(mapping) is dict:
                found = f"{name(mapping)}.get({name(key)}, missing)"
            else:  # a cell of a closure, or a place in a list
                found = f"getattr({name(mapping)}, {key!r}, missing)" if type(key) is str else f"{name(mapping)}[{name(key)}]"
            expected = name(value)
            terms.append(f"({found} is {expected}" + (f" or equal({found}, {expected}))" if isinstance(value, SIMPLE) and value is not None else ")"))
        for t, (spec, tracked) in zip(self.tensors, self.states):
            held = name(t)
            terms.append(f"{held}.spec is {name(spec)} and {held}._tracked is {tracked}")
        exec("def check():\n    return " + " and ".join(terms or ["True"]), names)
        return names["check"]

    # ---- the walk ----

    def _entry(self, mapping, key, value):
        self.same.append((mapping, key, value))
        if not isinstance(value, SIMPLE):
            self._queue.append(value)

    def _visit(self, value):
        if isinstance(value, SIMPLE) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        self._alive.append(value)
        if isinstance(value, BlockTensor):
            self.reason = f"it uses a block tensor ({value.dtype}), whose kernels are not fused with others"
        elif isinstance(value, Tensor):
            self.tensors.append(value)
            self.states.append((value.spec, value._tracked))
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.MethodType):
            self._queue += [value.__func__, value.__self__]
        elif isinstance(value, _CONTAINERS):
            self._container(value)
        elif isinstance(value, (types.ModuleType, types.BuiltinFunctionType, type)):
            pass  # a module's names are looked at where code uses them; classes where objects of theirs are called
        elif hasattr(value, "__dict__"):
            self._object(value)

    def _container(self, value):
        if isinstance(value, (set, frozenset)):
            self.lengths.append((value, len(value)))
            return
        if isinstance(value, tuple):
            self._queue += value
            return
        self.lengths.append((value, len(value)))
        if isinstance(value, dict):
            for key, item in value.items():
                if type(value) is dict:
                    self._entry(value, key, item)
                else:
                    self._queue.append(item)
        else:
            for place, item in enumerate(value):
                self._entry(value, place, item)

    def _object(self, value):
        own = value.__dict__
        if type(own) is dict:
            self.lengths.append((own, len(own)))
            for name, item in own.items():
                if name not in _BESIDE:
                    self._entry(own, name, item)
        cls = type(value)
        if cls.__module__.partition(".")[0] != _PACKAGE:
            method = getattr(cls, "forward", None) or cls.__dict__.get("__call__")
            if isinstance(method, types.FunctionType):
                self._function(method, cls)

    def _function(self, function, cls=None):
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None:
            self._queue.append(wrapped)
        if function.__module__ is not None and function.__module__.partition(".")[0] == _PACKAGE:
            return
        if function.__closure__:
            for cell in function.__closure__:
                try:
                    self._entry(cell, "cell_contents", cell.cell_contents)
                except ValueError:
                    continue  # not filled yet
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._queue.append(default)
        self._code(function.__code__, function.__globals__, cls)

    def _code(self, code, space, cls):
        if (code, cls) in self._codes:
            return
        self._codes.add((code, cls))
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                self._code(const, space, cls)
        modules = []
        for name in code.co_names:
            if name in space:
                value = space[name]
                self.same.append((space, name, value))
                if isinstance(value, types.ModuleType):
                    top = value.__name__.partition(".")[0]
                    if top in _UNSTEADY:
                        self.reason = f"it uses the module {top}, whose answers differ from call to call"
                    if top != _PACKAGE and top not in sys.stdlib_module_names:
                        modules.append(value)
                elif getattr(value, "__module__", None) in _UNSTEADY:
                    self.reason = f"it uses {value.__module__}.{name}, whose answers differ from call to call"
                else:
                    self._queue.append(value)
            elif name in _EFFECTS and hasattr(builtins, name):
                self.reason = f"it calls {name}(), which would be left out"
            elif cls is not None and isinstance(method := getattr(cls, name, None), types.FunctionType):
                self._function(method, cls)
        for module in modules:  # names read from modules: `config.width`
            for name in code.co_names:
                value = module.__dict__.get(name, _MISSING)
                if value is not _MISSING:
                    self._entry(module.__dict__, name, value)
