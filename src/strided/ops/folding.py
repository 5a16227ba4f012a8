"""How operators call fold kernels: the plan for operands of given kinds, results with or without the folded dimensions.

Holds no operator. NumPy's view of a tensor, for what is left to NumPy, is in host.py.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes, errors
from ..autograd.modes import STATE
from ..dispatch import HOOKS, PlanCache, meta_storage
from ..kernels import expr as E
from ..kernels.fold import plan_fold
from ..kernels.native import new_storage
from ..kernels.native_objects import make_tensor
from ..layout import Layout, wrap_dim, wrap_dims
from ..tensor import Spec, Tensor, wrap
from . import real_only
from .table import TABLE
from .views import remember

_SCALAR = {float: ("param", "f64"), int: ("param", "i64"), bool: ("param", "i64")}


def dims_of(dim: Any, ndim: int, in_turn: bool = False) -> tuple[int, ...]:
    """The dimensions that `dim` names (None or an empty sequence: all), counted from the front, sorted.

    Dimensions out of range are told before those that are named twice; in_turn: whichever comes first, as some of PyTorch's reductions do.
    """
    if ndim > 64:
        raise RuntimeError("only tensors with up to 64 dims are supported")
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, (tuple, list)):
        if not dim:
            return tuple(range(ndim))
        found = wrap_dims(dim if in_turn else [wrap_dim(d, ndim) for d in dim], ndim)
        return tuple(sorted(found)) if ndim else ()
    d = wrap_dim(dim, ndim)
    return (d,) if ndim else ()


def reduced_shape(shape, dims, keepdim: bool) -> tuple:
    """`shape` with `dims` removed, or of size 1."""
    if keepdim:
        return tuple(1 if d in dims else n for d, n in enumerate(shape))
    return tuple(n for d, n in enumerate(shape) if d not in dims)


def check_dtype(name: str, *tensors: Tensor) -> None:
    """Raises NotImplementedError for elements that kernels do not compute with."""
    for t in tensors:
        if t.spec.dtype.code < 0:
            raise NotImplementedError(f'"{name}" not implemented for \'{t.spec.dtype.scalar_name}\': convert to float32 first, as in x.float()')


class Fold:
    """Expressions with reductions over operands (tensors that broadcast to one shape, numbers), one an output.

    outs: for each output "row" (one element a row: the folded dimensions go, or stay with size 1) or "element" (the full shape).
    """

    def __init__(self, name: str, function: Callable[..., Any], arity: int, outs: tuple[str, ...] = ("row",)):
        exprs = E.trace(function, arity)
        self.name, self.outs = name, outs
        self.exprs = exprs if isinstance(exprs, tuple) else (exprs,)
        self.flops = sum(map(E.flops, self.exprs))
        self.plans = PlanCache()
        self.calls = PlanCache()

    def reduce(self, input: Tensor, dim: Any, keepdim: bool, dtype: dtypes.DType | None, resolve: Callable[..., Any]):
        """(result, folded dimensions) for one operand and one output, found by the call's own arguments.

        `resolve(input, dim, dtype)` checks them and gives (dims, result's dtype); it runs once for arguments of a kind.
        """
        try:
            launch, spec, dims = self.calls[input.spec, dim, keepdim, dtype]
        except (KeyError, TypeError):
            launch = None  # resolved outside: an error there has no KeyError behind it
        if launch is None:
            dims, result = resolve(input, dim, dtype)
            out = self((input,), dims, (result,), keepdim)
            plan, (spec,) = self.plans[dims, keepdim, (result,), input.spec]
            if plan is not None and not isinstance(dim, list):
                self.calls.put((input.spec, dim, keepdim, dtype), (plan.caller(), spec, dims))
            return out, dims
        memory = launch(input.ptr)
        return make_tensor(spec, memory, memory.data), dims

    def __call__(self, operands: tuple, dims: tuple, dtypes: tuple, keepdim: bool = False):
        """The output, or a tuple of the outputs, unrecorded. `dtypes`: one an output."""
        key = (dims, keepdim, dtypes, *[o.spec if isinstance(o, Tensor) else type(o) for o in operands])
        found = self.plans.get(key)
        if found is None:
            found = self.plans.put(key, self._plan(operands, dims, dtypes, keepdim))
        plan, specs = found
        if len(specs) == 1:
            spec = specs[0]
            if plan is None:
                return wrap(spec, meta_storage(spec), 0)
            memory = plan.launch_new(*[o.ptr if isinstance(o, Tensor) else o for o in operands])
            return wrap(spec, memory, memory.data)
        if plan is None:
            return tuple([wrap(spec, meta_storage(spec), 0) for spec in specs])
        results = []
        for spec in specs:
            memory = new_storage(spec.nbytes)
            results.append(wrap(spec, memory, memory.data))
        plan.launch(*[t.ptr for t in results], *[o.ptr if isinstance(o, Tensor) else o for o in operands])
        return tuple(results)

    def _plan(self, operands, dims, out_dtypes, keepdim):
        tensors = [o for o in operands if isinstance(o, Tensor)]
        device = errors.check_devices(self.name, tensors)
        check_dtype(self.name, *tensors)
        real_only.check(self.name, *tensors)
        shape = tensors[0].shape
        specs, outs = [], []
        for kind, dtype in zip(self.outs, out_dtypes):
            kept = shape if kind == "element" else reduced_shape(shape, dims, True)
            specs.append(Spec.of(Layout.contiguous(shape if kind == "element" else reduced_shape(shape, dims, keepdim)), dtype, device))
            outs.append((dtype, Layout.contiguous(kept)))
        if device.type == "meta":
            return None, specs
        ins = [(o.dtype, o.spec.layout.expand(shape)) if isinstance(o, Tensor) else _SCALAR[type(o)] for o in operands]
        return plan_fold(self.exprs, dims, outs, ins, result_bytes=specs[0].nbytes), specs


def expand_reduced(g: Tensor, shape, dims, keepdim: bool) -> Tensor:
    """The gradient of a reduction's result, [..] without (or with size-1) folded dimensions, as a window of the input's shape."""
    if STATE.grad_enabled or HOOKS.active:
        if not keepdim and dims:
            g = TABLE["reshape"].call(g, reduced_shape(shape, dims, True))  # [.., 1, ..]
        return TABLE["expand"].call(g, shape)
    # Nothing is recorded and nobody looks: both views in one, found by the gradient's spec.
    cache = g.spec.cache
    key = "expand reduced", shape, dims, keepdim
    spec = cache.get(key)
    if spec is None:
        layout = g.spec.layout
        if not keepdim and dims:
            for d in dims:
                layout = layout.unsqueeze(d)  # [.., 1, ..]
        spec = remember(g.spec, key, g.spec.with_layout(layout.expand(shape)))
    return make_tensor(spec, g.mem, g.ptr)


def accumulation_dtype(input: Tensor, dtype) -> dtypes.DType:
    """The dtype of a sum or product: integers and bool add up in int64 unless told otherwise."""
    if dtype is not None:
        return dtype
    own = input.dtype
    return own if own.is_floating_point or own.is_complex else dtypes.int64


def conjugates(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors, complex ones conjugated: the factors that a gradient is multiplied by."""
    return tuple([TABLE["conj"].call(t) if t.spec.dtype.is_complex else t for t in tensors])


def plain(t: Tensor) -> Tensor:
    """The same elements without history: what a recorded operator computes with."""
    return wrap(t.spec, t.mem, t.ptr)
