"""`compiler`: the questions and switches of PyTorch's module of this name. What compiling is stands in compile/; most questions here have a fixed answer."""
import functools

from .compile import compile
from .compile.module import OptimizedModule
from .dispatch import HOOKS
from .kernels.recipes import unrepeatable
from .nn.module import Module

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
    """A function (or module) that is never compiled: its Python runs in every call, and so does that of a compiled function that calls it. Without one, a decorator."""
    if fn is None:
        return lambda function: disable(function, recursive, reason=reason)
    if isinstance(fn, type) or getattr(fn, "_torchdynamo_disable", False):
        return fn
    if not callable(fn):
        raise RuntimeError(f"torch.compiler.disable expects a function or a module, but got {type(fn).__name__}")

    @functools.wraps(fn, updated=())
    def call(*args, **kwargs):
        unrepeatable(f"it calls {getattr(fn, '__qualname__', type(fn).__name__)}, which is not to be compiled" + (f": {reason}" if reason else ""))
        return fn(*args, **kwargs)

    call._torchdynamo_disable, call._torchdynamo_orig_callable = True, fn
    return OptimizedModule(fn, call) if isinstance(fn, Module) else call


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
    """Chooses when compiled functions run compiled, from the call on; as a context manager or decorator, inside only. stance: "force_eager" runs them eagerly,
    "default" and the others ("eager_on_recompile", "fail_on_recompile") as they are."""

    _now = "default"

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        if stance not in ("default", "eager_then_compile", "aot_eager_then_compile", "force_eager", "eager_on_recompile", "fail_on_recompile"):
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        self.stance, self.before = stance, set_stance._now
        self._take(stance)

    @staticmethod
    def _take(stance):
        HOOKS.eager += (stance == "force_eager") - (set_stance._now == "force_eager")
        set_stance._now = stance

    def __enter__(self):
        self._take(self.stance)
        return self

    def __exit__(self, *exc):
        self._take(self.before)

    def __call__(self, fn):
        self._take(self.before)

        @functools.wraps(fn, updated=())
        def call(*args, **kwargs):
            with set_stance(self.stance):
                return fn(*args, **kwargs)

        return call
