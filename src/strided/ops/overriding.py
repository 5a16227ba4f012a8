"""`__torch_function__`: calls that a subclass of Tensor, another library's array type or a mode answers in an operator's place.

Nothing here runs on ordinary tensors. Calls are looked at while a mode is open or a tensor of a subclass lives (`dispatch.HOOKS`); arguments that are no
tensors and bring the method are found where an operator fails on them (second_look.py).
Source: the protocol as PyTorch documents it under "Extending torch".
"""
from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .. import dispatch
from ..block_tensor import BlockTensor
from ..dispatch import HOOKS, NOT_TAKEN
from ..tensor import Tensor


class _Context(threading.local):
    """What this thread takes over: `off` > 0: subclasses are not asked, `modes_off` > 0: nor are modes; `modes`: the open ones, outermost first."""

    off = 0
    modes_off = 0

    def __init__(self):
        self.modes: list[Any] = []


CONTEXT = _Context()


class DisableTorchFunctionSubclass:
    """Context manager in which `__torch_function__` of subclasses is not asked: a call inside computes."""

    def __enter__(self) -> None:
        CONTEXT.off += 1

    def __exit__(self, *error: Any) -> None:
        CONTEXT.off -= 1


class DisableTorchFunction:
    """Context manager in which neither subclasses nor modes are asked."""

    def __enter__(self) -> None:
        CONTEXT.off += 1
        CONTEXT.modes_off += 1

    def __exit__(self, *error: Any) -> None:
        CONTEXT.off -= 1
        CONTEXT.modes_off -= 1


def disabled(func: Callable[..., Any], types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
    """The `__torch_function__` of classes that change nothing, and whose results are plain tensors (Parameter's)."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


# ---- who answers --------------------------------------------------------------------------------------------------------------


def overrides(kind: type) -> bool:
    """Whether values of this type are asked: it brings a `__torch_function__`, is not Tensor itself and has not switched it off."""
    return kind is not Tensor and getattr(kind, "__torch_function__", disabled) is not disabled


def _values(args: Any) -> Iterator[Any]:
    for value in args:
        if isinstance(value, (tuple, list)):
            yield from _values(value)
        else:
            yield value


def overloaded(values: Iterable[Any]) -> list[Any]:
    """The values that are asked, one a type, in the order they are asked: subclasses before their bases, else from left to right."""
    found: list[Any] = []
    for value in values:
        kind = type(value)
        if kind is Tensor or kind in _PLAIN or not overrides(kind) or any(type(other) is kind for other in found):
            continue
        place = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
        found.insert(place, value)
    return found


_PLAIN = frozenset((int, float, bool, complex, str, type(None), slice, type(Ellipsis)))


def take_over(call: Callable[..., Any], args: tuple, kwargs: dict, relevant: Iterable[Any] | None = None) -> Any:
    """The answer of the innermost mode, or of the first argument (of the `relevant` ones) that has one; NOT_TAKEN where nobody takes the call over.

    Raises TypeError where all that were asked return NotImplemented.
    """
    context = CONTEXT
    mode = context.modes[-1] if context.modes and not context.modes_off else None
    asked = overloaded(_values((*args, *kwargs.values())) if relevant is None else relevant) if mode is not None or not context.off else []
    types = tuple(type(value) for value in asked)
    if mode is not None:
        context.modes.pop()  # what the mode itself calls is for those around it
        try:
            answer = mode.__torch_function__(call, types, args, kwargs)
        finally:
            context.modes.append(mode)
        if answer is not NotImplemented:
            return answer
    if context.off:
        asked = [value for value in asked if not isinstance(value, Tensor)]
    return NOT_TAKEN if not asked and mode is None else ask(call, asked, args, kwargs, mode)


def ask(call: Callable[..., Any], asked: list[Any], args: tuple, kwargs: dict, mode: Any = None) -> Any:
    """The first answer of `asked` that is not NotImplemented. Raises TypeError where none is."""
    types = tuple(type(value) for value in asked)
    for value in asked:
        answer = type(value).__torch_function__(call, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    name = getattr(call, "__name__", str(call))
    also = f" nor in mode {mode!r}" if mode is not None else ""
    raise TypeError(f"no implementation found for 'torch.{name}' on types that implement __torch_function__: {list(types)}{also}")


def strangers(args: tuple, kwargs: dict) -> list[Any]:
    """Arguments that are no tensors and bring a `__torch_function__`."""
    return [value for value in overloaded(_values((*args, *kwargs.values()))) if not isinstance(value, Tensor)]


def _hooked(entry: Any, args: tuple, kwargs: dict) -> Any:
    if entry.out == "form":  # see table.write_out
        _, out, call, args, kwargs = args
        return take_over(call, args, {**kwargs, "out": out})
    return NOT_TAKEN if entry.call is None else take_over(entry.call, args, kwargs)


def refused(entry: Any, args: tuple, kwargs: dict | None = None) -> Any:
    """Looked at where an operator cannot take its arguments: the answer of one that is no tensor, or of its reflected operator; NOT_TAKEN where there is none."""
    asked = strangers(args, kwargs or {})
    if asked:
        return ask(entry.call, asked, args, kwargs or {})
    dunder = _REFLECTED.get(entry.name)
    if dunder is not None and len(args) == 2 and isinstance(args[0], Tensor) and not kwargs:
        kind = type(args[1])
        reflected = getattr(kind, dunder, None) if kind.__module__ != "builtins" else None  # a list's own * tells less than add's and mul's own words
        answer = NotImplemented if reflected is None else reflected(args[1], args[0])
        return NOT_TAKEN if answer is NotImplemented else answer
    return NOT_TAKEN


# `x + other` is the operator itself, which Python would follow by the other's method.
_REFLECTED = {"add": "__radd__", "sub": "__rsub__", "mul": "__rmul__", "true_divide": "__rtruediv__", "div": "__rtruediv__"}


# ---- who is there ---------------------------------------------------------------------------------------------------------------

_ALIVE: dict[int, weakref.ref] = {}  # tensors of subclasses that are asked, by the references' ids: a subclass may have no hash
_COUNTING = threading.RLock()  # a tensor may die while another is counted


def count(t: Tensor) -> None:
    """Notes a new tensor of a subclass, so that calls are looked at while it lives."""
    if overrides(type(t)):
        with _COUNTING:
            reference = weakref.ref(t, _gone)
            _ALIVE[id(reference)] = reference
            if len(_ALIVE) == 1:
                watch(True)


def _gone(reference: weakref.ref) -> None:
    with _COUNTING:
        _ALIVE.pop(id(reference), None)
        if not _ALIVE:
            watch(False)


def watch(on: bool) -> None:
    """Turns the look at calls on or off; users are counted."""
    global _users
    with _COUNTING:
        _users += 1 if on else -1
        dispatch.overridden = _hooked if _users else None
        (HOOKS.acquire if on else HOOKS.release)()


_users = 0


class Watched:
    """Has calls looked at while it is open: for tensors that are not counted."""

    def __enter__(self) -> None:
        watch(True)

    def __exit__(self, *error: Any) -> None:
        watch(False)


class TorchFunctionMode:
    """A context manager that answers every call inside: define `__torch_function__(self, func, types, args=(), kwargs=None)`.

    Modes nest; what a mode calls itself goes to the one around it.
    """

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __torch_function__(self, func, types, args=(), kwargs=None)")

    def __enter__(self) -> TorchFunctionMode:
        CONTEXT.modes.append(self)
        watch(True)
        return self

    def __exit__(self, *error: Any) -> None:
        CONTEXT.modes.pop()
        watch(False)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchFunctionMode:
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """The mode that changes nothing."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return func(*args, **(kwargs or {}))


# ---- what a subclass inherits ------------------------------------------------------------------------------------------------------


def _torch_function(cls: type, func: Callable[..., Any], types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
    """Computes as on plain tensors, and gives the results the subclass."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        return convert(func(*args, **(kwargs or {})), cls)


def convert(result: Any, cls: type) -> Any:
    """A result with its tensors as instances of `cls`, in (named) tuples and lists too."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)  # type: ignore[attr-defined]
    if isinstance(result, (tuple, list)):
        return type(result)(convert(value, cls) for value in result)
    return result


Tensor.__torch_function__ = classmethod(_torch_function)  # type: ignore[attr-defined]
BlockTensor.__torch_function__ = staticmethod(disabled)  # type: ignore[attr-defined]
