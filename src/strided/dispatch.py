"""From an operator and its tensors to a finished call: launching, the hooks that see every operator, the event they send.

Holds the switch that keeps the normal path free (`HOOKS.active`), the thread's context (autocast, inference, phase), and `Event`. It knows no operator.
"""
from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

from . import dtypes
from .block_tensor import BlockTensor
from .kernels.native import PlanCache, clear_plans, launch, launch_new
from .kernels.native_objects import STATE, launch_tensor
from .layout import Layout
from .tensor import META_ADDRESS, Spec, Tensor, bytes_for, meta_storage, wrap

dtypes.on_default_change.append(clear_plans)

__all__ = [
    "CONTEXT", "HOOKS", "Event", "PlanCache", "TensorInfo", "hooked_call", "launch", "launch_new", "launch_tensor", "listen", "opened", "phase", "positional",
    "set_autocast", "set_inference", "surround", "tensors_in", "watch",
]  # fmt: skip


_COUNTING = threading.Lock()  # threads enter and leave modes, and listen, as they like


class _Hooks:
    """`active`: whether any thread wants operators to go through `hooked_call`. Counted, so that nested users do not switch each other off."""

    __slots__ = ("active", "users", "listeners", "watchers", "before", "around", "eager")

    def __init__(self):
        self.active = False
        self.users = 0
        self.listeners: tuple[Callable[[Event], None], ...] = ()
        self.watchers: tuple[Callable[..., None], ...] = ()  # told (entry, args, result): less than an event, and much cheaper
        self.before: tuple[Callable[[Any, tuple, dict], None], ...] = ()
        self.around: tuple[Callable[[Any, Callable[..., Any]], Callable[..., Any]], ...] = ()  # given (entry, function): what runs in the function's place
        self.eager = 0  # how many of them want compiled functions to run operator by operator, as they do for listeners

    def acquire(self, eager: bool = False, **callbacks):
        """One user more, with what it wants to be called, by the field's name (None: not there)."""
        with _COUNTING:
            for name, callback in callbacks.items():
                if callback is not None:
                    setattr(self, name, (*getattr(self, name), callback))
            self.eager += eager
            self.users += 1
            self.active = True

    def release(self, eager: bool = False, **callbacks):
        """Takes back what `acquire` was given."""
        with _COUNTING:
            for name, callback in callbacks.items():
                if callback is not None:
                    held = list(getattr(self, name))
                    held.remove(callback)
                    setattr(self, name, tuple(held))
            self.eager -= eager
            self.users -= 1
            self.active = self.users > 0


HOOKS = _Hooks()


# The running thread's modes (kernels/runtime_objects.py), of which these are dispatch's: autocast_dtype, the dtype that "lower" operators run in, or None;
# autocast_cache, the casts of leaves made in this region, or None where they are not to be kept; depth, > 0 inside an operator: only the outermost one is
# seen; phase, "forward" or "backward"; inference, which autograd reads, too.
CONTEXT = STATE


class TensorInfo:
    """What an event says of a tensor: `shape, strides` (elements), `dtype, device, storage_id, offset` (elements), `nbytes` (its elements'), `storage_nbytes`, `requires_grad`."""

    __slots__ = ("shape", "strides", "dtype", "device", "storage_id", "offset", "nbytes", "storage_nbytes", "requires_grad", "is_contiguous")

    def __init__(self, t: Tensor):
        self.storage_id = id(t.mem)
        if isinstance(t, BlockTensor):  # its bytes are those of all its parts
            layout = Layout.contiguous(t.shape)
            self.shape, self.strides, self.dtype, self.device = layout.shape, layout.strides, t.dtype, t.device
            self.offset, self.nbytes, self.storage_nbytes, self.requires_grad, self.is_contiguous = 0, t.nbytes, t.nbytes, False, t.is_contiguous()
            return
        spec = t.spec
        self.shape, self.strides, self.dtype, self.device = spec.shape, spec.strides, spec.dtype, spec.device
        self.offset = t.storage_offset()
        self.nbytes = spec.nbytes
        self.storage_nbytes = t.mem.nbytes
        self.requires_grad = t._tracked
        self.is_contiguous = spec.is_contiguous

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)} strides {self.strides}"


class Event:
    """One operator's call. See docs/architecture.md, "Seeing"."""

    __slots__ = ("op", "entry", "args", "kwargs", "inputs", "outputs", "kind", "reason", "bytes_allocated", "bytes_read", "bytes_written", "flops", "expanded", "phase", "function", "result")

    def __init__(self, entry, args, kwargs, result, before=(), function=None):
        self.function, self.result = function, result  # what ran, to be run again by who wants to compare; and what it gave
        self.op, self.entry, self.args, self.kwargs = entry.name, entry, args, kwargs
        inputs, outputs = tensors_in((args, kwargs)), tensors_in(result)
        self.inputs = [TensorInfo(t) for t in inputs]
        self.outputs = [TensorInfo(t) for t in outputs]
        self.phase = CONTEXT.phase
        memory_in = {id(memory) for memory in before} or {id(t.mem) for t in inputs}
        same = {id(t) for t in inputs}
        fresh = {id(t.mem): t.mem.nbytes if t.mem.data and not isinstance(t, BlockTensor) else t.nbytes for t in outputs if id(t.mem) not in memory_in}
        self.bytes_allocated = sum(fresh.values())
        self.expanded = []
        self.reason = None
        if entry.inplace_form or any(id(t) in same for t in outputs) and entry.writes:
            self.kind = "inplace"
        elif outputs and not fresh:
            self.kind = "view"
        elif not inputs:
            self.kind = "create"
        elif entry.moves:
            self.kind = "copy"
            self.reason = entry.reason(inputs, outputs, args, kwargs) if entry.reason else None
        else:
            self.kind = "compute"
        moved = self.kind != "view" and bool(outputs)
        self.bytes_read = sum(_bytes_touched(t) for t in inputs) if moved or not outputs else 0
        self.bytes_written = sum(t.nbytes for t in outputs) if moved else 0
        self.flops = int(entry.flops(args, kwargs, result)) if entry.flops and self.kind != "view" else 0
        if entry.pointwise and outputs:
            shape = outputs[0].shape
            self.expanded = [i for i, t in enumerate(inputs) if t.shape != shape]


def _bytes_touched(t: Tensor) -> int:
    """Distinct bytes behind a tensor: an expanded dimension is read from one place."""
    if isinstance(t, BlockTensor):
        return t.nbytes
    count = 1
    for size, stride in zip(t.spec.shape, t.spec.strides):
        if stride or size == 0:
            count *= size
    return bytes_for(count, t.spec.dtype)


def tensors_in(value: Any, found: list[Tensor] | None = None) -> list[Tensor]:
    """Every tensor in nested lists, tuples and dicts, in order, each once."""
    if found is None:
        found = []
        _collect(value, found, set())
    return found


def _collect(value, found, seen):
    if isinstance(value, Tensor):
        if id(value) not in seen:
            seen.add(id(value))
            found.append(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            _collect(item, found, seen)
    elif isinstance(value, dict):
        for item in value.values():
            _collect(item, found, seen)


# Set by ops while tensors of subclasses or modes are about: what `__torch_function__` answers in an operator's place, or NOT_TAKEN.
overridden: Callable[[Any, tuple, dict], Any] | None = None
NOT_TAKEN = object()

# Set by ops: casts the arguments of an operator by its autocast rule.
autocast_arguments: Callable[[Any, tuple, dict], tuple[tuple, dict]] | None = None


def call_unpacked(call: Callable[..., Any], args: tuple, kwargs: dict, error: Exception) -> Any:
    """An operator's second call, when its first met packed elements or has nothing for small floats. Replaced by ops/packed.py, which has the kernels."""
    raise error


def hooked_call(entry: Any, function: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    """The slow way through an operator, taken while any hook is on: autocast, run, mark inference results, tell the listeners."""
    context = CONTEXT
    if context.depth:
        try:
            return function(*args, **kwargs)
        except NotImplementedError as error:
            return call_unpacked(function, args, kwargs, error)
    if overridden is not None and context.phase != "backward" and (answer := overridden(entry, args, kwargs)) is not NOT_TAKEN:
        return answer
    if context.autocast_dtype is not None and entry.autocast is not None and autocast_arguments is not None:
        if entry.autocast == "parts":  # its operators have rules of their own, which are applied to outermost calls only
            return function(*args, **kwargs)
        args, kwargs = autocast_arguments(entry, args, kwargs)
    run = function
    for replace in HOOKS.around:
        run = replace(entry, run)
    if HOOKS.watchers and not (HOOKS.listeners or HOOKS.before or context.inference):  # they are told the result, and that is all
        context.depth = 1
        try:
            try:
                result = run(*args, **kwargs)
            except NotImplementedError as error:
                result = call_unpacked(run, args, kwargs, error)
            for callback in HOOKS.watchers:
                callback(entry, args, result)
        finally:
            context.depth = 0
        return result
    before = [t.mem for t in tensors_in((args, kwargs))] if HOOKS.listeners or context.inference else ()  # a write may give its tensor another storage
    context.depth = 1
    try:
        for look in HOOKS.before:
            look(entry, args, kwargs)
        result = run(*args, **kwargs)
    except NotImplementedError as error:
        result = call_unpacked(run, args, kwargs, error)
    finally:
        context.depth = 0
    if context.inference:
        given = {id(memory) for memory in before}
        for t in tensors_in(result):
            if id(t.mem) not in given:  # a view or a written tensor is what its memory already was
                t._inference = True
    if HOOKS.listeners:
        event = Event(entry, *positional(function, args, kwargs), result, before, function)
        context.depth = 1  # what a listener computes is not an event of its own
        try:
            for callback in HOOKS.listeners:
                callback(event)
        finally:
            context.depth = 0
    return result


def positional(function: Callable[..., Any], args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The call's arguments with those given by keyword in their places, so that an entry's facts find them: `sum(input=x)` is `sum(x)`."""
    if kwargs:
        try:
            bound = inspect.signature(function).bind(*args, **kwargs)
        except (TypeError, ValueError):
            return args, kwargs
        return bound.args, bound.kwargs
    return args, kwargs


class listen:
    """Context manager: calls `callback(event)` once an operator while it is open. Listeners see the operators of every thread.

    before: called with (entry, args, kwargs) before an operator runs, for who must see its operands as they were.
    """

    def __init__(self, callback: Callable[[Event], None], before: Callable[[Any, tuple, dict], None] | None = None):
        self.callback, self.before = callback, before

    def __enter__(self):
        HOOKS.acquire(listeners=self.callback, before=self.before)
        return self

    def __exit__(self, *exc):
        HOOKS.release(listeners=self.callback, before=self.before)


class watch:
    """Context manager: calls `callback(entry, args, result)` after each operator while it is open: for those who look at results and must cost
    little. Nothing is told while a listener is there, too."""

    def __init__(self, callback: Callable[..., None]):
        self.callback = callback

    def __enter__(self):
        HOOKS.acquire(watchers=self.callback)
        return self

    def __exit__(self, *exc):
        HOOKS.release(watchers=self.callback)


class surround:
    """Context manager: while it is open, what `callback(entry, function)` returns runs in an operator's place, and calls `function` itself: for who takes
    the operator's time and nothing else. eager: compiled functions run operator by operator meanwhile."""

    def __init__(self, callback: Callable[[Any, Callable[..., Any]], Callable[..., Any]], eager: bool = False):
        self.callback, self.eager = callback, eager

    def __enter__(self):
        HOOKS.acquire(self.eager, around=self.callback)
        return self

    def __exit__(self, *exc):
        HOOKS.release(self.eager, around=self.callback)


def opened(entry: Any, function: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    """Runs an operator's function; if it is a composite of `nn`, so that the operators inside are seen too where they behave as if they were not: no autocast, no
    `__torch_function__`, and nobody there who counts on outermost ones only."""
    context = CONTEXT
    if not entry.module.startswith("strided.nn.") or context.autocast_dtype is not None or overridden is not None or HOOKS.listeners or HOOKS.watchers or HOOKS.before:
        return function(*args, **kwargs)
    context.depth = 0
    try:
        return function(*args, **kwargs)
    finally:
        context.depth = 1


class phase:
    """Context manager: events inside carry this phase ("backward" in the autograd engine)."""

    def __init__(self, name: str):
        self.name = name

    def __enter__(self):
        self.before = CONTEXT.phase
        CONTEXT.phase = self.name

    def __exit__(self, *exc):
        CONTEXT.phase = self.before


def set_inference(on: bool) -> None:
    """Inference mode marks results, which only the hooked path can do."""
    if CONTEXT.inference is not on:
        CONTEXT.inference = on
        HOOKS.acquire() if on else HOOKS.release()


def set_autocast(dtype: Any) -> None:
    """The dtype that autocast runs "lower" operators in on this thread, or None for off."""
    before, CONTEXT.autocast_dtype = CONTEXT.autocast_dtype, dtype
    if dtype is None:
        CONTEXT.autocast_cache = None
    if (before is None) is not (dtype is None):
        HOOKS.release() if dtype is None else HOOKS.acquire()


def run(desc: bytes | None, spec: Spec, *slots: int | float) -> Tensor:
    """A fresh result of `spec` computed by a `launch_new` plan (None on the meta device: shapes only)."""
    if desc is None:
        return wrap(spec, meta_storage(spec), META_ADDRESS)
    return launch_tensor(desc, spec, *slots)
