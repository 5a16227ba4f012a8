"""`Recording`: what a piece of Python makes the kernels do, as a list of steps over memory.

A step is a launch (or a fill, a move) with the addresses it was given; views cost nothing, so they leave no trace. Memory allocated meanwhile is kept
alive until the recording is dropped, so that an address means one thing only. What cannot be repeated without Python (a value read to decide what
comes next, an array computed by NumPy, a print() that a replay would leave out) is noted as the reason not to compile. Which step may be replaced by which is program.py's.
"""
from __future__ import annotations

import builtins
import ctypes
import os
import struct
import sys
import threading
from typing import Any, NamedTuple

from ..dispatch import HOOKS
from ..kernels import native
from ..kernels.recipes import KEEP, LISTENERS, RECIPES, UNREPEATABLE
from ..kernels.runtime_capture import BUFFER, FILL, FLAG, LAUNCH, LAUNCH_NEW, MOVE, NEW_STORAGE, READ
from .updates import Number, Watched

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
CONSTANT = 1 << 16  # bytes of Python's numbers that a program keeps
_LOCK = threading.Lock()  # one recording at a time: the border has one callback
_EFFECTS = {name: getattr(builtins, name) for name in ("print", "input", "open")}  # what a replay would leave out: a call that reaches one is not replayed


class Step(NamedTuple):
    """what: a kernel's descriptor, "fill", "move", or "flag" (an address where a kernel says that it met bad input)."""

    what: Any
    slots: tuple[int, ...]
    line: tuple[str, int] | None  # the user's file and line, where one is on the stack
    data: bytes | None = None  # what a move moves, where that is little: numbers of Python's have no memory of their own afterwards


class Recording:
    """Context manager: records this thread's work. `steps`, `blocks` (storages allocated meanwhile), `recipes` of the descriptors, `reason` (why it cannot be replayed, or None)."""

    def __init__(self):
        self.steps: list[Step] = []
        self.blocks: list[Any] = []
        self.reason: str | None = None
        self.thread = 0
        self.recipes: dict[bytes, Any] = {}
        self.watched = Watched()

    def __enter__(self):
        _LOCK.acquire()
        native.clear_plans()  # plans made from here on leave their recipes
        KEEP[0] = True
        self.thread = threading.get_ident()
        LISTENERS[self.thread] = self.watched
        for name, function in _EFFECTS.items():
            setattr(builtins, name, self._noticed(name, function))
        native.set_capture(self._note)
        return self

    def __exit__(self, *exc):
        native.set_capture(None)
        for name, function in _EFFECTS.items():
            setattr(builtins, name, function)
        KEEP[0] = False
        del LISTENERS[self.thread]
        self.recipes = dict(RECIPES)
        RECIPES.clear()
        if UNREPEATABLE and self.reason is None:
            self.reason = UNREPEATABLE[0]
        UNREPEATABLE.clear()
        _LOCK.release()

    def refuse(self, reason: str) -> None:
        """Notes why this cannot be compiled; the first reason is the one to tell."""
        if self.reason is None:
            line = user_line()
            self.reason = reason if line is None else f"{reason} ({os.path.basename(line[0])}, line {line[1]})"

    def _noticed(self, name, function):
        """A built-in function as code of the user's sees it meanwhile. What the standard library and this package do by it (a warning reads the line it shows) is no effect of the call."""

        def noticed(*args, **kwargs):
            if threading.get_ident() == self.thread and not _taken_for_granted(sys._getframe(1).f_globals.get("__name__")):
                self.refuse(f"it calls {name}(), which would be left out")
            return function(*args, **kwargs)

        return noticed

    def _note(self, kind, what, address, count, storage):
        if threading.get_ident() != self.thread:
            return
        slots = struct.unpack(f"<{count}q", ctypes.string_at(address, 8 * count)) if count else ()
        if kind == LAUNCH or kind == LAUNCH_NEW:
            watched = self.watched
            if watched.now is not None:
                first, some = watched.now
                slots = (*slots[: count - some], *map(Number, range(first, first + some)))
            elif watched.inside:
                watched.launched = True
            if kind == LAUNCH_NEW:
                self.blocks.append(storage)
            self.steps.append(Step(what, slots, user_line()))
        elif kind == NEW_STORAGE:
            self.blocks.append(storage)
        elif kind == FILL:
            self.watched.launched = True
            self.steps.append(Step("fill", slots, user_line()))
        elif kind == MOVE:
            self.watched.launched = True
            data = ctypes.string_at(slots[1], slots[2]) if slots[2] <= CONSTANT else None
            self.steps.append(Step("move", slots, user_line(), data))
        elif kind == FLAG:
            self.steps.append(Step("flag", slots, user_line()))
        elif kind == READ:
            if not self.watched.may_read(slots[1], self.steps):
                self.refuse("Python reads a tensor's value")
        elif kind == BUFFER:
            self.refuse("an operator is computed by NumPy")


def _taken_for_granted(module) -> bool:
    top = module.partition(".")[0] if isinstance(module, str) else ""
    return top == __name__.partition(".")[0] or top in sys.stdlib_module_names and top != "__main__"


def user_line() -> tuple[str, int] | None:
    """File and line of the innermost frame that is not this package's."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_PACKAGE) and not name.startswith("<"):
            return name, frame.f_lineno
        frame = frame.f_back
    return None


def busy() -> bool:
    """Whether something listens to operators or a recording runs: calls then go the ordinary way."""
    return bool(HOOKS.listeners) or HOOKS.eager > 0 or _LOCK.locked()
