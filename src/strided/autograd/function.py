"""`torch.autograd.Function`: operations whose forward and backward a user writes."""

from __future__ import annotations

import functools
from typing import Any

from strided.autograd import anomaly, graph
from strided.autograd.graph import Node, gradient_edge, move_retained, rebase_view, tracking
from strided.autograd.modes import STATE, no_grad
from strided.autograd.saved import save
from strided.tensor import Tensor, empty, wrap


class FunctionCtx:
    """What forward and backward share: saved tensors and flags. Any further attribute a user sets stays on it."""

    _to_save: tuple = ()
    _dirty: tuple = ()
    _non_differentiable: tuple = ()
    _materialize = True

    def save_for_backward(self, *tensors) -> None:
        """Saves tensors (inputs, outputs or others; None allowed) for backward, where `saved_tensors` gives them back, checked for changes."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_backward can only save variables, but argument {tensors.index(t)} is of type {type(t).__name__}")
        self._to_save = tensors

    def save_for_forward(self, *tensors) -> None:
        """Forward-mode derivatives are not taken here; kept so that code that calls it runs."""

    def mark_dirty(self, *tensors) -> None:
        """Says that forward wrote these inputs in place; they must be returned as outputs."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors) -> None:
        """Says that these outputs have no gradient."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients that did not arrive are zeros (True, the default) or None in backward."""
        self._materialize = value


class BackwardCFunction(Node, FunctionCtx):
    """The node of a custom function: it is the `ctx` that forward and backward see. Each Function has a subclass named `<Function>Backward`."""

    function: type["Function"]
    skips_undefined = False
    places: list[int]  # which arguments of forward are tensors: only they have edges

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{self.name()} object at {id(self):#x}>"

    @property
    def saved_tensors(self) -> tuple:
        return self.saved

    saved_variables = saved_tensors

    @property
    def needs_input_grad(self) -> tuple:
        """Whether each argument of forward wants a gradient."""
        places, needs = self.places, self.needs
        return tuple(place in places and needs[places.index(place)] for place in range(self.count))

    def apply(self, *grads):
        function = self.function
        if self._materialize:
            grads = tuple(_zeros(self.specs, number) if grad is None else grad for number, grad in enumerate(grads))
        if function.vjp is not Function.vjp:
            if function.backward is not Function.backward:
                raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them.")
            results = function.vjp(self, *grads)
        else:
            results = function.backward(self, *grads)
        results = results if isinstance(results, tuple) else tuple(results) if isinstance(results, list) else (results,)
        return self.of_tensors(results)

    def of_tensors(self, results: tuple) -> tuple:
        """The gradients of the tensor arguments, from one result an argument."""
        for grad in results:
            if grad is not None and not isinstance(grad, Tensor):
                raise TypeError(f"expected Variable or None (got {type(grad).__name__})")
        count = self.count
        if len(results) < count or any(grad is not None for grad in results[count:]):
            raise RuntimeError(f"function {self.name()} returned an incorrect number of gradients (expected {count}, got {len(results)})")
        for place, grad in enumerate(results[:count]):
            if grad is not None and place not in self.places:
                raise RuntimeError(f"function {self.name()} returned a gradient different from None at position {place + 1}, but the corresponding forward input was not a Variable")
        return tuple([results[place] for place in self.places])


def _zeros(specs, number: int) -> Tensor:
    spec = specs[number] if type(specs) is tuple else specs
    return empty(spec.shape, spec.dtype, spec.device).zero_()


class _FunctionMeta(type):
    def __init__(cls, name, bases, members):
        super().__init__(name, bases, members)
        cls._backward_cls = type(f"{name}Backward", (BackwardCFunction,), {"function": cls, "__module__": cls.__module__})


class Function(metaclass=_FunctionMeta):
    """Base class for operations with a derivative of their own: static methods `forward(ctx, *args)` and `backward(ctx, *grad_outputs)`.

    Alternatively `forward(*args)` and `setup_context(ctx, inputs, output)`. Call `MyFunction.apply(*args)`. Backward returns one gradient
    (or None) an argument of forward.
    """

    _backward_cls: type[BackwardCFunction]
    generate_vmap_rule = False

    def __call__(self, *args, **kwargs):
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with static forward method.")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> Any:
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD.")

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD.")

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @staticmethod
    def vmap(info, in_dims, *args):
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True.")

    @classmethod
    def apply(cls, *args, **kwargs):
        """Runs forward without recording its inside, and hangs its outputs on one node."""
        separate = cls.setup_context is not Function.setup_context
        if separate and kwargs:
            args, kwargs = _bound(cls.forward, args, kwargs), {}
        ctx = cls._backward_cls()
        ctx.count = len(args)
        ctx.places = [place for place, arg in enumerate(args) if isinstance(arg, Tensor)]
        tensors = [args[place] for place in ctx.places]
        records = tracking(*tensors)
        ctx.edges = [gradient_edge(t) if records else None for t in tensors]
        ctx.needs = [records and graph.requires_grad(t) for t in tensors]
        ctx.saves = ()
        with no_grad():
            if separate:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args, **kwargs)
        outputs = result if isinstance(result, tuple) else (result,)
        outputs = _hang(ctx, args, outputs, records)
        return outputs if isinstance(result, tuple) else outputs[0]


def _bound(forward, args, kwargs) -> tuple:
    import inspect

    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _hang(ctx: BackwardCFunction, args: tuple, outputs: tuple, records: bool) -> tuple:
    """The outputs as results of ctx: inputs passed through become aliases, dirty inputs get the new history."""
    dirty = {id(t) for t in ctx._dirty}
    inputs = {id(arg) for arg in args if isinstance(arg, Tensor)}
    _bump(ctx._dirty, args, outputs)
    fixed = {id(t) for t in ctx._non_differentiable}
    if not records:
        return tuple(_alias(out) if id(out) in inputs and id(out) not in dirty else out for out in outputs)
    ctx.seq = graph.next_sequence()
    ctx.specs = tuple([out.spec if isinstance(out, Tensor) else None for out in outputs])
    hung = []
    for number, out in enumerate(outputs):
        if not isinstance(out, Tensor):
            hung.append(out)
            continue
        differentiable = id(out) not in fixed and (out.spec.dtype.is_floating_point or out.spec.dtype.is_complex)
        if id(out) in inputs and id(out) not in dirty:  # returned as it came: the result is another tensor over the same memory
            out = _alias(out)
        elif out._base is not None and id(out) not in dirty:
            out = _as_result(out)
        if differentiable and id(out) in dirty:
            _rebase(ctx, out, number)
        elif differentiable:
            out._node, out._nr, out._tracked = ctx, number, True
        else:
            out._node, out._nr, out._tracked = None, 0, False
        hung.append(out)
    by_original = {id(out): new for out, new in zip(outputs, hung) if isinstance(out, Tensor)}
    saved = tuple(None if t is None else t if id(t) in inputs and id(t) not in dirty else by_original.get(id(t), t) for t in ctx._to_save)
    ctx.saves = save(saved, tuple(hung)) if saved else ()
    if anomaly.enabled:
        anomaly.remember(ctx)
    return tuple(hung)


def _bump(dirty: tuple, args: tuple, outputs: tuple) -> None:
    for t in dirty:
        if not any(t is arg for arg in args):
            raise RuntimeError("mark_dirty only accepts input tensors")
        if not any(t is out for out in outputs):
            raise RuntimeError("Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified inplace must all be outputs of the Function.")
        if STATE.grad_enabled and t._tracked and t._node is None:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def _rebase(ctx: BackwardCFunction, x: Tensor, number: int) -> None:
    if x._base is not None:
        if len(ctx.specs) > 1:
            raise RuntimeError("If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one Tensor. This is not supported by the current autograd engine. You should either make sure the input is not a view (using .clone() for example) or make your Function only return one Tensor (potentially splitting it into two Functions: one doing the inplace that returns a single Tensor and a second one that does the other operations).")
        rebase_view(ctx, x)
        return
    before = x._node, x._nr
    x._node, x._nr, x._tracked = ctx, number, True
    move_retained(x, *before)


def _alias(t: Tensor) -> Tensor:
    return wrap(t.spec, t.mem, t.ptr)


def _as_result(view: Tensor) -> Tensor:
    """A view made inside forward is a plain result outside: its history is the function's."""
    view._base, view._view_kind = None, None
    return view


def once_differentiable(backward):
    """Decorator for a Function's backward that is not itself differentiable: differentiating through it raises."""

    @functools.wraps(backward)
    def wrapper(ctx, *grads):
        recording = STATE.grad_enabled
        with no_grad():
            results = backward(ctx, *grads)
        if not recording or not tracking(*grads):
            return results
        single = not isinstance(results, tuple)
        made = [None if r is None else _alias(r) for r in ((results,) if single else results)]
        node = DelayedError()
        node.message = "trying to differentiate twice a function that was marked with @once_differentiable"
        node.edges = [gradient_edge(g) if g is not None else None for g in grads]
        node.saves, node.seq = (), graph.next_sequence()
        node.specs = tuple([None if r is None else r.spec for r in made])
        for number, r in enumerate(made):
            if r is not None:
                r._node, r._nr, r._tracked = node, number, True
        return made[0] if single else tuple(made)

    return wrapper


class DelayedError(Node):
    """Raises when differentiated: stands behind results whose derivative does not exist."""

    def apply(self, *grads):
        raise RuntimeError(self.message)
