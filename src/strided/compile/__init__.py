"""`compile`: the interface of PyTorch's. This first form runs the function eagerly: the same results at eager speed, nothing is recorded or fused yet.

Holds the wrapper of modules (`OptimizedModule`), the decorator form and the checks of arguments.
"""
import functools

_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_BACKENDS = (None, "inductor", "eager", "aot_eager", "strided")


def compile(
    model=None,
    *,
    fullgraph=False,
    dynamic=None,
    backend=None,
    mode=None,
    options=None,
    name=None,
    disable=False,
    recompile_limit=None,
    isolate_recompiles=False,
    shapes_spec=None,
):
    """A callable that computes what `model` (a function or a module) computes. It runs eagerly; `fullgraph`, `dynamic` and `options` change nothing.

    Without `model`, a decorator. `disable=True` returns `model` itself. A callable `backend` raises NotImplementedError: there is no graph to give it.
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(m for m in _MODES if m)}")
    if callable(backend):
        raise NotImplementedError("compile: a custom backend needs a recorded graph, and none is recorded; leave `backend` out to run eagerly")
    if backend not in _BACKENDS:
        raise RuntimeError(f"Invalid backend: {backend!r}; choose one of {', '.join(b for b in _BACKENDS if b)}")
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, name=name, disable=disable
        )
    if not callable(model):
        raise RuntimeError(f"torch.compile expects a function or a module, but got {type(model).__name__}")
    if disable:
        return model
    from ..nn.module import Module

    if isinstance(model, Module):
        from .module import OptimizedModule

        return OptimizedModule(model)
    return _wrap(model)


def _wrap(function):
    @functools.wraps(function)
    def compiled(*args, **kwargs):
        return function(*args, **kwargs)

    compiled._torchdynamo_orig_callable = function
    return compiled
