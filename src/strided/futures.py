"""`torch.futures`: results that arrive later, set by another thread. `collect_all` and `wait_all` are for several."""
from __future__ import annotations

from collections.abc import Callable
from threading import Condition
from typing import Any, Generic, TypeVar

from .refused import missing

T = TypeVar("T")


class Future(Generic[T]):
    """A result, or an exception, that is set once; `wait` blocks until it is. devices: accepted, all is on the CPU."""

    def __init__(self, *, devices: Any = None):
        self._ready = Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], Any]] = []

    def done(self) -> bool:
        """Whether a result or an exception has been set."""
        return self._done

    def wait(self) -> Any:
        """The result, as soon as it is there; raises the exception that was set in its place."""
        with self._ready:
            self._ready.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> Any:
        """The result, without waiting. Raises RuntimeError before it is set."""
        if not self._done:
            raise RuntimeError("Future not complete.\n  wait() returns its result as soon as it is set.")
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result: Any) -> None:
        """Sets the result and calls what waits for it. Raises RuntimeError the second time."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Sets the exception that `wait` raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with self._ready:
            if self._done:
                raise RuntimeError("Future can only be marked completed once")
            self._value, self._error, self._done = value, error, True
            waiting, self._callbacks = self._callbacks, []
            self._ready.notify_all()
        for callback in waiting:
            callback(self)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Calls `callback(self)` once it is done, at once if it is."""
        with self._ready:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A future of what `callback(self)` returns, called once this one is done."""
        following: Future = Future()

        def run(done: Future) -> None:
            try:
                result = callback(done)
            except Exception as error:
                following.set_exception(error)
            else:
                following.set_result(result)

        self.add_done_callback(run)
        return following


def collect_all(futures: list[Future]) -> Future:
    """A future of the list itself, done when all in it are."""
    whole: Future = Future()
    left = len(futures)
    if not left:
        whole.set_result(futures)
    lock = Condition()

    def one_less(_: Future) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            whole.set_result(futures)

    for future in futures:
        future.add_done_callback(one_less)
    return whole


def wait_all(futures: list[Future]) -> list:
    """The results of all, waited for; raises the first exception among them."""
    return [future.wait() for future in collect_all(futures).wait()]


__getattr__ = missing("torch.futures")
