"""`torch.library`: Python functions as operators of their own, with a gradient and a result on the meta device. They are called by name or as they are;
there is no registry for other languages.
"""
from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from . import ops
from .autograd import Function, no_grad
from .refused import missing
from .tensor import Tensor

_DEFINED: dict[str, CustomOpDef] = {}
_FAKES: dict[str, Callable] = {}  # given by name before the operator, which may be in a library that cannot be loaded here


class Tag(enum.Enum):
    """What PyTorch's compilers may assume of an operator; kept, and used by nobody here."""

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace_view = 6
    maybe_aliasing_or_mutating = 7
    needs_contiguous_strides = 8
    needs_exact_strides = 9
    needs_fixed_stride_order = 10
    nondeterministic_bitwise = 11
    nondeterministic_seeded = 12
    pointwise = 13
    pt2_compliant_tag = 14
    view_copy = 15


class CustomOpDef:
    """An operator made from a Python function. Calling it runs the function without recording; a gradient comes from `register_autograd`.

    name: "namespace::name". mutates_args: the parameters that the function writes into (by name, or "unknown").
    """

    def __init__(self, name: str, function: Callable, mutates_args: Any):
        if name.count("::") != 1 or not all(name.split("::")):
            raise ValueError(f'expected `qualname` to be of the form "namespace::name", but got {name}. The qualname passed to the torch.library APIs must consist of a namespace and a name')
        self._qualname, self._function, self._mutates = name, function, mutates_args
        self._name = name.split("::")[1]
        self._fake: Callable | None = _FAKES.pop(name, None)
        self._backward: Callable | None = None
        self._setup: Callable | None = None
        self._signature = inspect.signature(function)
        self.__doc__ = function.__doc__

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    @property
    def default(self) -> CustomOpDef:
        """The operator itself: it has no overloads."""
        return self

    def register_fake(self, fn: Callable) -> Callable:
        """Registers what computes results of the right shape and dtype for tensors on the meta device. Returns fn."""
        self._fake = fn
        return fn

    def register_kernel(self, device_types: Any, func: Callable | None = None, /) -> Callable:
        """Registers an implementation for devices; that for "cpu" (or None: all) takes the place of the function. Returns a decorator without `func`."""

        def take(fn: Callable) -> Callable:
            devices = [device_types] if device_types is None or isinstance(device_types, str) else list(device_types)
            if None in devices or "cpu" in devices:
                self._function = fn
            return fn

        return take if func is None else take(func)

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """backward(ctx, *gradients of the results) -> the inputs' gradients; setup_context(ctx, inputs, output) keeps what it needs, as in autograd.Function."""
        self._backward, self._setup = backward, setup_context

    def _run(self, *args: Any) -> Any:
        with no_grad():
            if any(isinstance(a, Tensor) and a.is_meta for a in args):
                if self._fake is None:
                    raise NotImplementedError(f"{self._qualname}: no fake impl is registered for tensors on the meta device. Use register_fake to say what its results look like.")
                return self._fake(*args)
            return self._function(*args)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        args = (*bound.args, *bound.kwargs.values())
        if self._backward is None:
            return self._run(*args)
        return self._differentiable().apply(*args)

    def _differentiable(self) -> type[Function]:
        op = self

        class Generated(Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> Any:
                output = op._run(*inputs)
                if op._setup is not None:
                    op._setup(ctx=ctx, inputs=inputs, output=output)
                return output

            @staticmethod
            def backward(ctx: Any, *gradients: Any) -> Any:
                return op._backward(ctx, *gradients)

        Generated.__name__ = Generated.__qualname__ = f"GeneratedBackwardFor_{op._qualname.replace('::', '_')}_default"
        return Generated


def custom_op(name: str, fn: Callable | None = None, /, *, mutates_args: str | Sequence[str] = (), device_types: Any = None, schema: str | None = None, tags: Any = None) -> Any:
    """A decorator (or, with fn, a call) that makes an operator "namespace::name" from a function of tensors and numbers.

    device_types, schema and tags say what the annotations and this package's one device say already.
    """

    def define(function: Callable) -> CustomOpDef:
        made = _DEFINED[name] = CustomOpDef(name, function, mutates_args)
        _publish(made)
        return made

    return define if fn is None else define(fn)


class _Namespace(ModuleType):
    """`torch.ops.<namespace>`: the operators of one namespace."""


def _publish(op: CustomOpDef) -> None:
    """Makes "namespace::name" callable as `torch.ops.namespace.name`, and as `torch.ops.namespace.name.default`."""
    namespace = op._qualname.split("::")[0]
    holder = vars(ops).setdefault(namespace, _Namespace(f"torch.ops.{namespace}"))
    if isinstance(holder, _Namespace):  # not where an operator of this package has the name
        holder.__getattr__ = missing(holder.__name__)  # type: ignore[method-assign]
        setattr(holder, op._name, op)


def _found(op: Any) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    if op not in _DEFINED:
        raise NotImplementedError(f"torch.library: there is no operator {op!r} made by custom_op; operators of this package cannot be extended. Use autograd.Function.")
    return _DEFINED[op]


def register_fake(op: Any, func: Callable | None = None, /, **options: Any) -> Callable:
    """`CustomOpDef.register_fake` for an operator given by itself or by name; a decorator without `func`.

    For a name that is not there yet it is kept until `custom_op` makes the operator: packages with a library of their own register before it is asked for.
    """

    def register(fn: Callable) -> Callable:
        if isinstance(op, str) and op not in _DEFINED and op.partition("::")[0] not in ("aten", "prim", "prims"):
            _FAKES[op] = fn
            return fn
        return _found(op).register_fake(fn)

    return register if func is None else register(func)


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, **options: Any) -> Callable:
    """`CustomOpDef.register_kernel` for an operator given by itself or by name."""
    return _found(op).register_kernel(device_types, *(() if func is None else (func,)))


def register_autograd(op: Any, backward: Callable, /, *, setup_context: Callable | None = None, **options: Any) -> None:
    """`CustomOpDef.register_autograd` for an operator given by itself or by name."""
    _found(op).register_autograd(backward, setup_context=setup_context)


__getattr__ = missing("torch.library")
