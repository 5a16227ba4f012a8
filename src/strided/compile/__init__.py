"""`compile`: a function or a module recorded once for each kind of call, then replayed as one native call; its gradients, too.

This file holds the public function and the checks of its arguments. recording.py notes what kernels do, guards.py what was taken for granted, program.py
plans memory, updates.py asks optimisers for their numbers, versions.py tells a block's contents apart, beside.py moves derivatives to where their functions are
computed, fuse.py joins kernels, placed.py leaves out copies, function.py is the compiled callable, kinds.py says which recording a call is for, calls.py writes
its usual call as one function, gradients.py has its backward passes, module.py the wrapper of modules.
"""
import functools
import os

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
    """A callable that computes what `model` (a function or a module) computes, in fewer steps.

    The first call of a kind (shapes, dtypes, Python arguments, the state of the module) runs eagerly and is recorded, later ones are replayed. A call
    that cannot be recorded (a tensor's value decides what happens, NumPy computes a part, it prints) runs eagerly; `reasons` of the result says why, and
    `fullgraph=True` raises instead. A whole training step may be compiled (zero_grad, backward, clipping, step), as long as Python reads no number of a tensor in it;
    learning rates and counts of steps are asked of the optimiser anew at every call, so that schedules are respected and record nothing again (NAdam and ASGD run
    eagerly). Up to `recompile_limit` kinds (8) are recorded. `backend="eager"` records nothing. `dynamic`, `mode` and `options`
    change nothing. Without `model`, a decorator.
    `disable=True`, and TORCHDYNAMO_DISABLE=1 (or TORCH_COMPILE_DISABLE=1) in the environment, return `model` itself. A callable `backend` raises NotImplementedError: the recording
    is of memory and kernels, not a graph of Python's.
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(m for m in _MODES if m)}")
    if callable(backend):
        raise NotImplementedError("compile: a custom backend needs a graph of operators, and what is recorded here are kernels; leave `backend` out")
    if backend not in _BACKENDS:
        raise RuntimeError(f"Invalid backend: {backend!r}; choose one of {', '.join(b for b in _BACKENDS if b)}")
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, name=name, disable=disable
        )
    if not callable(model):
        raise RuntimeError(f"torch.compile expects a function or a module, but got {type(model).__name__}")
    if disable or "1" in (os.environ.get("TORCHDYNAMO_DISABLE"), os.environ.get("TORCH_COMPILE_DISABLE")) or getattr(model, "_torchdynamo_disable", False):
        return model
    from ..nn.module import Module
    from .function import Compiled

    if isinstance(model, Module):
        from .module import OptimizedModule

        return OptimizedModule(model, _plain(model, backend) or Compiled(model, fullgraph, recompile_limit))
    return _plain(model, backend) or _like(model, Compiled(model, fullgraph, recompile_limit))


def _plain(model, backend):
    """For the backends that only run what they are given."""
    if backend not in ("eager", "aot_eager"):
        return None

    @functools.wraps(model, updated=())
    def call(*args, **kwargs):
        return model(*args, **kwargs)

    call._torchdynamo_orig_callable = model
    return call


def _like(function, compiled):
    compiled._torchdynamo_orig_callable = function
    return compiled
