"""`torch.autograd.Function`: operations whose forward and backward a user writes."""

from __future__ import annotations

import functools
import warnings
import weakref
from typing import Any

from strided.autograd import anomaly, graph
from strided.autograd.delivery import settle
from strided.autograd.graph import Node, gradient_edge, move_retained, rebase_view, tracking
from strided.autograd.modes import STATE, no_grad
from strided.autograd.saved import save
from strided.tensor import Tensor, empty, wrap


class FunctionCtx:
    """What forward and backward share: saved tensors, flags, and any attribute a user sets."""

    _to_save: tuple = ()
    _dirty: tuple = ()
    _non_differentiable: tuple = ()
    _materialize = True

    def __init__(self, node: BackwardCFunction):
        self._node = weakref.ref(node)  # the node holds its ctx

    def save_for_backward(self, *tensors) -> None:
        """Saves tensors (inputs, outputs or others; None allowed) for backward, where `saved_tensors` gives them back, checked for changes."""
        for place, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_backward can only save variables, but argument {place} is of type {type(t).__name__}")
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

    @property
    def saved_tensors(self) -> tuple:
        return self._node().saved

    saved_variables = saved_tensors

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """Whether each argument of forward requires grad."""
        return self._node().requiring


class BackwardCFunction(Node):
    """The node of a custom function. Each Function has a subclass named `<Function>Backward`; attributes of the ctx can be read from it."""

    function: type[Function]
    skips_undefined = False
    ctx: FunctionCtx
    count: int  # arguments of forward
    requiring: tuple[bool, ...]  # which of them require grad
    places: list[int]  # which of them are tensors: only those have edges

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{self.name()} object at {id(self):#x}>"

    def __getattr__(self, name: str) -> Any:
        if name != "ctx" and hasattr(self.ctx, name):
            return getattr(self.ctx, name)
        raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")

    def __dir__(self):
        return [*super().__dir__(), *dir(self.ctx)]

    @property
    def saved_tensors(self) -> tuple:
        return self.saved

    def apply(self, *grads):
        settle()
        function = self.function
        if self.ctx._materialize:
            grads = [_zeros(self.specs[number]) if grad is None else grad for number, grad in enumerate(grads)]
        if function.vjp is not Function.vjp:
            if function.backward is not Function.backward:
                raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them.")
            results = function.vjp(self.ctx, *grads)
        else:
            results = function.backward(self.ctx, *grads)
        return self.of_tensors(tuple(results) if isinstance(results, (tuple, list)) else (results,))

    def of_tensors(self, results: tuple) -> tuple:
        """The gradients of the tensor arguments, from one result an argument."""
        name, count = self.name(), self.count
        for grad in results:
            if grad is not None and not isinstance(grad, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(grad).__name__})")
        if len(results) < count or any(grad is not None for grad in results[count:]):
            raise RuntimeError(f"function {name} returned an incorrect number of gradients (expected {count}, got {len(results)})")
        for place, grad in enumerate(results[:count]):
            if grad is not None and place not in self.places:
                raise RuntimeError(f"function {name} returned a gradient different than None at position {place + 1}, but the corresponding forward input was not a Variable")
        return tuple([results[place] for place in self.places])


def _zeros(spec) -> Tensor | None:
    return None if spec is None else empty(spec.shape, spec.dtype, spec.device).zero_()


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

    def __init__(self, *args, **kwargs):
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the class itself. "
            "Instantiating an autograd function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with static forward method. "
            "(Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

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
        if separate:
            args, kwargs = _bound(cls.forward, args, kwargs), {}
        node = cls._backward_cls()
        ctx = node.ctx = FunctionCtx(node)
        node.count = len(args)
        node.places = [place for place, arg in enumerate(args) if isinstance(arg, Tensor)]
        node.requiring = tuple([isinstance(arg, Tensor) and graph.requires_grad(arg) for arg in args])
        tensors = [args[place] for place in node.places]
        records = tracking(*tensors)
        node.edges = [gradient_edge(t) if records else None for t in tensors]
        node.saves = ()
        with no_grad():
            if separate:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args, **kwargs)
        single = not isinstance(result, tuple)
        outputs = _hang(node, tensors, (result,) if single else result, records)
        return outputs[0] if single else outputs


def _bound(forward, args, kwargs) -> tuple:
    import inspect

    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _hang(node: BackwardCFunction, inputs: list[Tensor], outputs: tuple, records: bool) -> tuple:
    """The outputs as results of the node. An input returned as it came becomes a view of itself; a dirty one gets the new history."""
    ctx = node.ctx
    given = {id(t): t for t in inputs}
    dirty = {id(t) for t in ctx._dirty}
    _check_dirty(ctx._dirty, given, outputs)
    fixed = {id(t) for t in ctx._non_differentiable}
    node.seq = graph.next_sequence()
    node.specs = tuple([out.spec if isinstance(out, Tensor) else None for out in outputs])
    hung = []
    for number, out in enumerate(outputs):
        if not isinstance(out, Tensor):
            hung.append(out)
            continue
        returned = id(out) in given and id(out) not in dirty
        if returned:
            root = out if out._base is None else out._base
            out = wrap(out.spec, out.mem, out.ptr)
            out._base, out._seen = root, out.mem.version
        if not records:
            hung.append(out)
            continue
        differentiable = id(outputs[number]) not in fixed and (out.spec.dtype.is_floating_point or out.spec.dtype.is_complex)
        if out._base is not None and id(out) not in dirty:
            out._view_kind = f"custom:{node.name()}"
        if not differentiable:
            out._node, out._nr, out._tracked = None, 0, False
        elif id(out) in dirty:
            _rebase(node, out, number, inputs)
        else:
            out._node, out._nr, out._tracked = node, number, True
        hung.append(out)
    if records:
        if ctx._to_save:
            replaced = {id(out): new for out, new in zip(outputs, hung) if id(out) not in given}
            node.saves = save(tuple([replaced.get(id(t), t) for t in ctx._to_save]), tuple(hung))
        if anomaly.enabled:
            anomaly.remember(node)
    ctx._to_save = ctx._dirty = ctx._non_differentiable = ()  # an output kept here would close a cycle
    return tuple(hung)


def _check_dirty(dirty: tuple, given: dict, outputs: tuple) -> None:
    for t in dirty:
        if not any(t is out for out in outputs):
            raise RuntimeError("Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified inplace must all be outputs of the Function.")
        if id(t) not in given:
            raise RuntimeError("mark_dirty only accepts input tensors: a tensor was marked that is no argument of forward")
        if STATE.grad_enabled and t._tracked and t._node is None:
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        t.mem.version += 1


def _rebase(node: BackwardCFunction, x: Tensor, number: int, inputs: list[Tensor]) -> None:
    if x._base is not None:
        if len(node.specs) > 1:
            raise RuntimeError(
                "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one Tensor. This is not "
                "supported by the current autograd engine. You should either make sure the input is not a view (using .clone() for example) or make your "
                "Function only return one Tensor (potentially splitting it into two Functions: one doing the inplace that returns a single Tensor and a "
                "second one that does the other operations)."
            )
        rebase_view(node, x, next(place for place, t in enumerate(inputs) if t is x))
        return
    before = x._node, x._nr
    x._node, x._nr, x._tracked = node, number, True
    move_retained(x, *before)


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
        made = [None if r is None else wrap(r.spec, r.mem, r.ptr) for r in ((results,) if single else results)]
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
