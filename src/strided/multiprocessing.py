"""`torch.multiprocessing`: Python's multiprocessing, whose processes can hand tensors to each other, and `spawn`.

A tensor that is sent is copied; one that was put in shared memory by `share_memory_()` before a process forks is the same on both sides.
"""
import multiprocessing as _multiprocessing
import signal as _signal
import sys as _sys
from multiprocessing import *  # noqa: F403

from .refused import missing as _missing

_STRATEGIES = {"file_descriptor", "file_system"} if _sys.platform != "darwin" else {"file_system"}
_strategy = "file_descriptor" if "file_descriptor" in _STRATEGIES else "file_system"

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]
__all__ += _multiprocessing.__all__


def set_sharing_strategy(new_strategy):
    """Accepted and kept; there is one way here."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"{new_strategy} is not one of {_STRATEGIES}")
    _strategy = new_strategy


def get_sharing_strategy():
    return _strategy


def get_all_sharing_strategies():
    return set(_STRATEGIES)


class ProcessException(Exception):
    """A process of `start_processes` failed: `error_index` says which, `error_pid` its process number."""

    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process raised an exception, whose traceback is in the message."""


class ProcessExitedException(ProcessException):
    """A process ended by itself or by a signal."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(function, i, args, failures):
    try:
        function(i, *args)
    except KeyboardInterrupt:
        pass  # the parent raises it
    except Exception:
        import traceback

        failures.put(traceback.format_exc())
        _sys.exit(1)


class ProcessContext:
    """The processes of `start_processes(join=False)`; `join` waits for them."""

    def __init__(self, processes, failures):
        self.processes, self.failures = processes, failures

    def pids(self):
        return [int(process.pid) for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """True when all have ended well, False when some still run after `timeout` seconds. When one fails the others are ended and its failure is raised."""
        from multiprocessing.connection import wait

        alive = {process.sentinel: process for process in self.processes if process.exitcode is None}
        for sentinel in wait(alive, timeout) if alive else ():
            alive[sentinel].join()  # its pipe closes a moment before its exit code is there
        bad = next((i for i, process in enumerate(self.processes) if process.exitcode not in (None, 0)), None)
        if bad is None:
            return all(process.exitcode == 0 for process in self.processes)
        for process in self.processes:
            process.join(grace_period or 0)
            if process.is_alive():
                process.terminate()
            process.join()
        process, failure = self.processes[bad], self.failures[bad]
        if failure.empty():
            code = process.exitcode
            if code < 0:
                name = _signal.Signals(-code).name
                raise ProcessExitedException(f"process {bad} terminated with signal {name}", bad, process.pid, code, name)
            raise ProcessExitedException(f"process {bad} terminated with exit code {code}", bad, process.pid, code)
        text = f"\n\n-- Process {bad} terminated with the following error:\n{failure.get()}"
        raise ProcessRaisedException(text, bad, process.pid)


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn", numa_options=None):
    """Runs `fn(i, *args)` in `nprocs` processes, i from 0. Waits for them, or with join=False returns a `ProcessContext`."""
    context = _multiprocessing.get_context(start_method)
    processes, failures = [], []
    for i in range(nprocs):
        failure = context.SimpleQueue()
        process = context.Process(target=_run, args=(fn, i, args, failure), daemon=daemon)
        process.start()
        processes.append(process)
        failures.append(failure)
    started = ProcessContext(processes, failures)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """`start_processes` with fresh interpreters."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)


__getattr__ = _missing("torch.multiprocessing")
