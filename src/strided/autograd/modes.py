"""Grad modes: whether operators record history, and whether results are inference tensors.

Holds the thread-local `STATE` and the context managers that set it. Nothing here knows nodes or tensors.
"""

from __future__ import annotations

import functools

import strided.dispatch as dispatch
from strided.kernels.native_objects import STATE

# Every thread starts from the defaults in kernels/runtime_objects.py: grad_enabled (True); inference (False); saved_hooks, a stack of (pack, unpack) pairs, see
# saved.saved_tensors_hooks (()); saved_hooks_disabled, the message of saved.disable_saved_tensors_hooks (None); run, the backward pass this thread is in, see
# engine.run_backward (None).

_CO_GENERATOR = 0x20  # inspect.CO_GENERATOR; importing inspect would cost more than this package's other imports together


def _is_generator_function(function) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & _CO_GENERATOR)


def is_grad_enabled() -> bool:
    """True where operators record history for tensors that require grad."""
    return STATE.grad_enabled


def is_inference_mode_enabled() -> bool:
    """True inside `inference_mode()`."""
    return STATE.inference


class _Mode:
    """A context manager that is also a decorator for functions, generators and coroutine functions."""

    def __enter__(self):
        raise NotImplementedError

    def __exit__(self, *exc):
        raise NotImplementedError

    def _again(self) -> _Mode:
        """A fresh instance: one decorated function may be entered recursively and from several threads."""
        return type(self)()

    def __call__(self, function):
        if _is_generator_function(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def inside(*args, **kwargs):
            with self._again():
                return function(*args, **kwargs)

        return inside

    def _wrap_generator(self, function):
        # The mode must hold only while the generator runs, not while its consumer does: enter it anew for each step.
        @functools.wraps(function)
        def inside(*args, **kwargs):
            generator = function(*args, **kwargs)
            step, value = generator.send, None
            try:
                while True:
                    with self._again():
                        result = step(value)
                    try:
                        step, value = generator.send, (yield result)
                    except GeneratorExit:
                        with self._again():
                            generator.close()
                        raise
                    except BaseException as error:
                        step, value = generator.throw, error
            except StopIteration as stop:
                return stop.value

        return inside


class _GradMode(_Mode):
    """A mode that only switches recording; usable as `@no_grad` and as `@no_grad()`."""

    enabled: bool

    def __new__(cls, function=None):
        self = super().__new__(cls)
        return self if function is None else self(function)

    def __enter__(self):
        self.previous = STATE.grad_enabled
        STATE.grad_enabled = self.enabled

    def __exit__(self, *exc):
        STATE.grad_enabled = self.previous


class no_grad(_GradMode):
    """Operators inside record no history: results do not require grad. Context manager or decorator."""

    enabled = False


class enable_grad(_GradMode):
    """Operators inside record history again, within an outer `no_grad`. Context manager or decorator."""

    enabled = True


class set_grad_enabled(_Mode):
    """Sets recording on or off: as a call at once, as a context manager until its end, as a decorator inside the function."""

    def __init__(self, mode: bool):
        self.previous = STATE.grad_enabled
        self.mode = STATE.grad_enabled = bool(mode)

    def __call__(self, function):
        STATE.grad_enabled = self.previous  # as a decorator it must not act where it is written
        return super().__call__(function)

    def _again(self):
        return type(self)(self.mode)

    def __enter__(self):
        STATE.grad_enabled = self.mode

    def __exit__(self, *exc):
        STATE.grad_enabled = self.previous


class inference_mode(_Mode):
    """Like `no_grad`, and new tensors are inference tensors: they never take part in autograd, not even later.

    `inference_mode(False)` inside returns to normal recording. Context manager or decorator, with or without parentheses.
    """

    def __new__(cls, mode=True):
        self = super().__new__(cls)
        if isinstance(mode, bool):
            self.mode = mode
            return self
        self.mode = True
        return self(mode)

    def _again(self):
        return type(self)(self.mode)

    def __enter__(self):
        self.previous = STATE.grad_enabled, STATE.inference
        _set_modes(not self.mode, self.mode)

    def __exit__(self, *exc):
        _set_modes(*self.previous)


def _set_modes(grad_enabled: bool, inference: bool) -> None:
    STATE.grad_enabled = grad_enabled
    dispatch.set_inference(inference)  # results must be marked from now on, or no longer
