"""`compiler`: the questions and switches of PyTorch's module of this name. What compiling is stands in compile/; most questions here have a fixed answer."""
from .compile import compile

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
]


def disable(fn=None, recursive=True, *, reason=None):
    """The function itself, never compiled; without one, a decorator."""
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn):
    """The function itself: what it does is recorded with the rest."""
    return fn


def assume_constant_result(fn):
    """The function itself: it is called each time."""
    return fn


def is_compiling():
    """Whether code is being traced: never, a recorded call runs as any other."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset():
    """Forgets nothing: recordings live and die with their callables."""


def cudagraph_mark_step_begin():
    """Marks a step for CUDA graphs: there are none."""


def list_backends(exclude_tags=("debug", "experimental")):
    """The names `compile` accepts as `backend`."""
    return ["inductor", "strided"]


class set_stance:
    """Context manager and decorator that chooses when to compile. Everything runs eagerly, which each stance permits."""

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        self.stance = stance

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False

    def __call__(self, fn):
        return fn
