"""Activation checkpointing: forget what a part of the model saved for backward, and compute it again when backward needs it.

`checkpoint` with `use_reentrant=False` packs every saved tensor into an empty holder and fills the holders by running the function once more;
with `use_reentrant=True` it is one custom Function whose backward runs the function and then backward through it.
"""

from __future__ import annotations

import contextlib
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import strided.dispatch as dispatch
from strided.autograd import engine, graph
from strided.autograd.function import Function
from strided.autograd.modes import STATE, enable_grad, set_grad_enabled
from strided.autograd.saved import save, saved_tensors_hooks, unpack
from strided.tensor import Tensor

_RNG: list[Callable] = []  # [get_state, set_state] of the default generator


def register_rng(get_state: Callable[[], Any], set_state: Callable[[Any], None]) -> None:
    """Tells how to read and restore the random generator, so that dropout draws the same numbers in the recomputation. Called by ops."""
    _RNG[:] = [get_state, set_state]


class CheckpointError(RuntimeError):
    """The recomputation did not do what the first forward did."""


def noop_context_fn():
    """The default `context_fn`: no context for forward, none for recomputation."""
    return contextlib.nullcontext(), contextlib.nullcontext()


_early_stop = True


class set_checkpoint_early_stop:
    """Context manager: whether recomputation may stop once everything needed is there (True) or runs to the function's end."""

    def __init__(self, enable: bool):
        self.enable = enable

    def __enter__(self):
        global _early_stop
        self.previous, _early_stop = _early_stop, self.enable

    def __exit__(self, *exc):
        global _early_stop
        _early_stop = self.previous


class _Surroundings:
    """Random state and autocast at the first forward, to be had again in the recomputation."""

    def __init__(self, keep_rng: bool):
        self.rng = _RNG[0]() if keep_rng and _RNG else None
        self.autocast = dispatch.CONTEXT.autocast_dtype

    @contextlib.contextmanager
    def restored(self):
        rng = _RNG[0]() if self.rng is not None else None
        autocast = dispatch.CONTEXT.autocast_dtype
        if self.rng is not None:
            _RNG[1](self.rng)
        if autocast is not self.autocast:
            dispatch.set_autocast(self.autocast)
        try:
            yield
        finally:
            if autocast is not self.autocast:
                dispatch.set_autocast(autocast)
            if rng is not None:
                _RNG[1](rng)


def checkpoint(
    function,
    *args,
    use_reentrant: bool | None = None,
    context_fn: Callable = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs,
):
    """`function(*args, **kwargs)`, whose intermediate results are computed again in backward instead of kept.

    use_reentrant: False is the better choice; None means True, with a warning. preserve_rng_state=True (keyword): random numbers are the same in the
    recomputation. context_fn() -> (context for forward, context for recomputation). determinism_check: "default" compares shapes, dtypes and devices of
    what is recomputed, "none" compares nothing. Errors: CheckpointError in backward if the recomputation differs.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling checkpoint without "
            "use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to preserve the current default behavior, you "
            "can pass use_reentrant=True. Refer to docs for more details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    keep_rng = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, keep_rng, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'] but got {determinism_check}")
    forward_context, recompute_context = context_fn()
    frame = _Frame(function, args, kwargs, keep_rng, recompute_context, determinism_check == "default", early_stop and _early_stop)
    if not STATE.grad_enabled:  # nothing is saved, so nothing needs to be packed
        with forward_context:
            return function(*args, **kwargs)
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        return function(*args, **kwargs)


# ---- without reentrance -------------------------------------------------------------------------


class _Holder:
    """Stands for a saved tensor. Its value is there only between recomputation and use, one for each backward pass."""

    __slots__ = ("values", "facts", "__weakref__")

    def __init__(self, tensor: Tensor):
        self.values: dict = {}
        self.facts = tensor.spec.shape, tensor.spec.dtype, tensor.spec.device


class _Stop(Exception):
    """Ends a recomputation that has produced all that was saved."""


class _Frame:
    """One checkpointed call: how to run it again, and the holders of what it saved."""

    def __init__(self, function, args, kwargs, keep_rng, context, compare, early_stop):
        self.function, self.context, self.compare, self.early_stop = function, context, compare, early_stop
        self.surroundings = _Surroundings(keep_rng)
        self.holders: list[weakref.ref] = []
        # Tensor arguments are saved like any saved tensor: checked for changes, and packed by a checkpoint around this one.
        flat = [*args, *kwargs.values()]
        self.places = [place for place, value in enumerate(flat) if isinstance(value, Tensor)]
        self.saved = save(tuple(flat[place] for place in self.places), None)
        self.template = [None if isinstance(value, Tensor) else value for value in args], {key: None if isinstance(value, Tensor) else value for key, value in kwargs.items()}

    def arguments(self):
        args, kwargs = self.template
        flat = [*args, *kwargs.values()]
        for place, entry in zip(self.places, self.saved):
            flat[place] = unpack(entry, None)
        return flat[: len(args)], dict(zip(kwargs, flat[len(args) :]))

    def pack(self, tensor: Tensor) -> _Holder:
        holder = _Holder(tensor)
        self.holders.append(weakref.ref(holder))
        return holder

    def unpack(self, holder: _Holder) -> Tensor:
        run = STATE.run
        if run not in holder.values:
            self.recompute(run)
        if run not in holder.values:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you are calling ctx.saved_tensors in backward, make sure to do so only once."
            )
        return holder.values.pop(run)

    def recompute(self, run) -> None:
        count = 0
        differing = []

        def pack(tensor):
            nonlocal count
            if count >= len(self.holders):
                raise CheckpointError("torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward pass.\n" + _HINT)
            holder = self.holders[count]()
            if holder is not None:  # else its graph has been freed already
                facts = tensor.spec.shape, tensor.spec.dtype, tensor.spec.device
                if self.compare and facts != holder.facts:
                    differing.append((count, holder.facts, facts))
                holder.values[run] = tensor.detach()
            count += 1
            if self.early_stop and count == len(self.holders):
                raise _Stop
            return tensor.detach()

        args, kwargs = self.arguments()
        try:
            with self.surroundings.restored(), self.context, saved_tensors_hooks(pack, lambda packed: packed), enable_grad():
                self.function(*args, **kwargs)
        except _Stop:
            pass
        if count != len(self.holders):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.holders)}\nNumber of tensors saved during recomputation: {count}.\n" + _HINT
            )
        if differing:
            rows = "\n".join(f"tensor at position {place}:\nsaved metadata: {_facts(a)}\nrecomputed metadata: {_facts(b)}" for place, a, b in differing)
            raise CheckpointError(f"torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the forward pass.\n{rows}.\n" + _HINT)


_HINT = "The checkpointed function must do the same work both times: look for state it changes, modes that differ (train/eval, autocast) and random numbers from a generator of its own."


def _facts(facts) -> dict:
    return dict(zip(("shape", "dtype", "device"), facts))


# ---- with reentrance ----------------------------------------------------------------------------


def check_backward_validity(inputs) -> None:
    if not any(isinstance(x, Tensor) and graph.requires_grad(x) for x in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=3)


def detach_variable(inputs: tuple) -> tuple:
    """Tensors cut from their history, leaves that want what the originals wanted; anything else as it is."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    out = []
    for x in inputs:
        if isinstance(x, Tensor):
            wanted = graph.requires_grad(x)
            x = x.detach()
            x._tracked = wanted
        out.append(x)
    return tuple(out)


class CheckpointFunction(Function):
    """A call as one node: forward records nothing, backward runs the call again with recording on."""

    @staticmethod
    def forward(ctx, function, keep_rng, *args):
        check_backward_validity(args)
        ctx.function_to_run = function
        ctx.surroundings = _Surroundings(keep_rng)
        ctx.others = [None if isinstance(x, Tensor) else x for x in args]
        ctx.places = [place for place, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.save_for_backward(*(args[place] for place in ctx.places))
        return function(*args)

    @staticmethod
    def backward(ctx, *grads):
        if STATE.run is not None and STATE.run.wanted is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to .backward(). To resolve "
                "this error, you can either set use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        args = list(ctx.others)
        for place, tensor in zip(ctx.places, ctx.saved_tensors):
            args[place] = tensor
        detached = detach_variable(tuple(args))
        with ctx.surroundings.restored(), enable_grad():
            outputs = ctx.function_to_run(*detached)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        pairs = [(out, grad) for out, grad in zip(outputs, grads) if isinstance(out, Tensor) and graph.requires_grad(out)]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        with set_grad_enabled(False):
            engine.backward([out for out, _ in pairs], [grad for _, grad in pairs])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in detached))


def checkpoint_sequential(functions, segments: int, input, use_reentrant: bool | None = None, **kwargs):
    """Runs `functions` (a Sequential or a list) one after the other in `segments` parts, each checkpointed except the last."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In version 2.9 we will raise an "
            "exception if use_reentrant is not passed. use_reentrant=False is recommended, but if you need to preserve the current default behavior, you "
            "can pass use_reentrant=True. Refer to docs for more details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    keep_rng = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def run(part):
        def forward(x):
            for function in part:
                x = function(x)
            return x

        return forward

    size = len(functions) // segments
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(run(functions[start : start + size]), input, use_reentrant=use_reentrant, preserve_rng_state=keep_rng)
    return run(functions[size * (segments - 1) :])(input)
