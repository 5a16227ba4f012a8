"""The operator table: one entry an operator, from which come the function, the method, its in-place and `out=` forms, and what the lens needs.

Holds the `Entry`, the `@operator` decorator and the generic in-place and `out=` forms. The operators live in their families' files.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import dispatch
from ..autograd import backward, check_inplace, no_grad
from ..autograd.graph import gradient_edge, move_retained, record_inplace
from ..autograd.saved import attached
from ..dispatch import CONTEXT, HOOKS, hooked_call
from ..errors import PackedOperand
from ..tensor import Tensor
from .second_look import own_names, second_look

TABLE: dict[str, Entry] = {}


class Entry:
    """What the house knows of an operator.

    name: as users call it. namespace: None for the top level, else "special", "linalg", "nn.functional". autocast: "lower", "float32", "promote", "parts" (the rules of the operators inside) or None.
    flops(args, kwargs, result) -> int. moves: its result holds its input's values (a fresh result is a copy, to be explained by `reason`).
    writes: it may write into an argument. pointwise: results broadcast from the inputs. names: other public names of its parameters ({other: own}).
    """

    __slots__ = (
        "name", "call", "method", "function", "aliases", "namespace", "autocast", "flops", "view", "moves", "reason", "writes", "pointwise", "inplace_form", "inplace", "out", "doc", "module", "names",
    )  # fmt: skip

    def __init__(self, name: str, **facts: Any):
        self.name = name
        self.call: Any = None
        self.inplace: Any = None
        self.method = self.function = True
        self.aliases = ()
        self.namespace = self.autocast = self.flops = self.reason = self.doc = None
        self.view = self.moves = self.writes = self.pointwise = self.inplace_form = self.out = False
        self.module = ""
        self.names = {}
        for key, value in facts.items():
            setattr(self, key, value)

    def __repr__(self):
        return f"<operator {self.name}>"


def operator(
    name: str,
    *,
    function: bool = True,
    method: bool = True,
    inplace: bool = False,
    out: bool | str = False,
    aliases: tuple[str, ...] = (),
    namespace: str | None = None,
    autocast: str | None = None,
    flops: Callable[[tuple, dict, Any], int] | None = None,
    view: bool = False,
    moves: bool = False,
    reason: Callable[..., str | None] | None = None,
    writes: bool = False,
    names: dict[str, str] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function as an operator and returns its public form (the one to call, also from other operators).

    out="late": an `out=` is looked for only where a call fails, so that all others are as quick as without.
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        entry = Entry(
            name, function=function, method=method, aliases=aliases, namespace=namespace, autocast=autocast, flops=flops, view=view, moves=moves, reason=reason,
            writes=writes or name.endswith("_") and not name.endswith("__"), out=bool(out), doc=fn.__doc__, module=fn.__module__, names=names or {},
        )  # fmt: skip
        entry.inplace_form = entry.writes and name.endswith("_")

        if out is True:

            @functools.wraps(fn)
            def call(*args, out=None, **kwargs):
                if out is not None:
                    return write_out(name, out, call, args, kwargs)
                if HOOKS.active and not CONTEXT.depth:
                    return hooked_call(entry, fn, args, own_names(entry, fn, args, kwargs) if kwargs else kwargs)
                try:
                    return fn(*args, **kwargs)
                except Exception as error:
                    return second_look(entry, fn, args, kwargs, error)

        else:

            @functools.wraps(fn)
            def call(*args, **kwargs):
                if HOOKS.active and not CONTEXT.depth and not (out and "out" in kwargs):
                    return hooked_call(entry, fn, args, own_names(entry, fn, args, kwargs) if kwargs else kwargs)
                try:
                    return fn(*args, **kwargs)
                except Exception as error:
                    if out and kwargs.get("out") is not None:
                        return write_out(name, kwargs.pop("out"), call, args, kwargs)
                    return second_look(entry, fn, args, kwargs, error)

        call.__name__ = call.__qualname__ = name
        entry.call = call
        TABLE[name] = entry
        if inplace:
            add_inplace(entry, fn)
        return call

    return register


def add_inplace(entry: Entry, fn: Callable[..., Any]) -> None:
    """Gives an operator its generic in-place form `name_`: compute, then take over values and history."""
    name = entry.name + "_"
    inner = Entry(
        name, function=True, method=True, namespace=entry.namespace, writes=True, inplace_form=True, flops=entry.flops, doc=f"In-place form of `{entry.name}`.",
        module=entry.module, names=entry.names,
    )  # fmt: skip

    def into(input, *args, **kwargs):
        check_inplace(input, *args)
        result = fn(input, *args, **kwargs)
        return adopt(input, result, entry.name)

    def call(input, *args, **kwargs):
        args = input, *args
        if HOOKS.active and not CONTEXT.depth:
            return hooked_call(inner, into, args, own_names(inner, fn, args, kwargs) if kwargs else kwargs)
        try:
            return into(*args, **kwargs)
        except PackedOperand as error:
            return dispatch.call_unpacked(into, args, kwargs, error)
        except NotImplementedError:
            raise
        except Exception as error:
            return second_look(inner, fn, args, kwargs, error)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = inner.doc
    inner.call = entry.inplace = call
    TABLE[name] = inner
    if entry.namespace is None:
        for alias in entry.aliases:
            inner.aliases = (*inner.aliases, alias + "_")


@backward("Copy")
def CopyBackward0(node, g):
    """x took over the values of a result: the gradient goes to the result, nothing to x as it was."""
    return None, g


def adopt(x: Tensor, result: Tensor, name: str) -> Tensor:
    """x takes the values (cast to its dtype) and the history of `result`. Raises before anything is written."""
    from ..dtypes import can_cast

    if result.shape != x.shape:
        raise RuntimeError(f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(result.shape)}")
    if not can_cast(result.dtype, x.dtype):
        raise RuntimeError(f"result type {result.dtype.scalar_name} can't be cast to the desired output type {x.dtype.scalar_name}")
    check_overlap(x)
    tracked = result._tracked
    if tracked:
        _keep_old_values(result._node, x)
    assign(x, result)
    x.mem.version += 1
    if tracked:
        if x._base is None and x.dtype is result.dtype:
            before = x._node, x._nr
            x._node, x._nr, x._tracked = result._node, result._nr, True
            move_retained(x, *before)
        else:
            record_inplace(CopyBackward0, (x, result), x)
    return x


def _keep_old_values(node: Any, x: Tensor) -> None:
    """Before x is written: what `node` saved of x for its gradient is x as it is now, so it becomes a copy."""
    for i, entry in enumerate(node.saves or ()):
        if entry is not None and entry[0] is x:
            old = self_copy(x)
            if (edge := gradient_edge(x)) is not None:
                attached(old, edge[0], edge[1])
            node.saves[i] = (old, old.mem.version, old._node)


def assign(destination: Tensor, source: Tensor) -> None:
    """Copies values, broadcast and cast, without recording. Replaced by copying.py, which has the kernels."""
    raise AssertionError("copying.py is not loaded")


def self_copy(x: Tensor, dtype: Any = None, layout: Any = None) -> Tensor:
    """A fresh tensor of x's values, not recorded. Replaced by copying.py."""
    raise AssertionError("copying.py is not loaded")


def check_overlap(x: Tensor) -> None:
    """Raises where several elements of x share a place. Replaced by copying.py."""
    raise AssertionError("copying.py is not loaded")


def write_out(name: str, out: Any, call: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    """The generic `out=` form: computes, then writes the results into the given tensors, resized where their shape differs."""
    if HOOKS.active and not CONTEXT.depth:
        return hooked_call(_out_entry(name), _write_out, (name, out, call, args, kwargs), {})
    return _write_out(name, out, call, args, kwargs)


@functools.cache
def _out_entry(name: str) -> Entry:
    """What the lens is told of an operator's `out=` form: it writes in place, and costs what the operator costs."""
    plain = TABLE.get(name)
    entry = Entry(name, writes=True, pointwise=plain is not None and plain.pointwise, out="form")
    if plain is not None and plain.flops is not None:
        entry.flops = lambda args, kwargs, result: plain.flops(args[3], args[4], result)
    return entry


def _write_out(name: str, out: Any, call: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    outs = out if isinstance(out, (tuple, list)) else (out,)
    for t in outs:
        if not isinstance(t, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(t).__name__}")
    for t in (*outs, *dispatch.tensors_in((args, kwargs))):
        if t._tracked and _grad_enabled():
            raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.")
    with no_grad():
        result = call(*args, **kwargs)
    results = result if isinstance(result, tuple) else (result,)
    check_out(name, outs, results, dispatch.tensors_in((args, kwargs)))
    if len(results) != len(outs):
        raise TypeError(f"{name}(): expected {len(results)} tensors for out=, but got {len(outs)}")
    from ..dtypes import can_cast

    for target, value in zip(outs, results):
        if not can_cast(value.dtype, target.dtype):
            raise RuntimeError(f"result type {value.dtype.scalar_name} can't be cast to the desired output type {target.dtype.scalar_name}")
        if target.shape == value.shape:  # else it is given a layout of its own
            check_overlap(target)
    for target, value in zip(outs, results):
        if target.shape != value.shape:
            TABLE["resize_"].call(target, value.shape)
        assign(target, value)
        target.mem.version += 1
    return out


_FRESH_OUT = frozenset("gather index_select masked_select take cat concat concatenate stack kthvalue mode median nanmedian sort topk".split())  # out= may share nothing with an input
_LAYOUT_FIRST = frozenset(
    "addcdiv addcmul clamp clamp_max clamp_min clip complex conj_physical div divide float_power gcd index_select lcm ldexp lerp logit masked_select nan_to_num polar where".split()
)
_OUT_DTYPES = {
    "gather": "Expected out tensor to have dtype {want}, but got {have} instead",
    "aminmax": "Expected out tensor to have dtype {want}, but got {have} instead",
    "amax": "Expected the dtype for input and out to match, but got {Want} for input's dtype and {Have} for out's dtype.",
    "amin": "Expected the dtype for input and out to match, but got {Want} for input's dtype and {Have} for out's dtype.",
    "complex": "Expected object of scalar type {Want} but got scalar type {Have} for argument 'out'",
    "polar": "Expected object of scalar type {Want} but got scalar type {Have} for argument 'out'",
    "index_select": "index_select(): self and result must have the same scalar type",
    "masked_select": "masked_select(): self and result must have the same scalar type",
    "take": "take(): self and out expected to have the same dtype, but got self.dtype = {Want} and out.dtype = {Have}",
}


def check_out(name: str, outs: tuple, results: tuple, inputs: Any) -> None:
    """Raises RuntimeError for out= tensors of the wrong dtype (where PyTorch does not convert), that overlap themselves, or that overlap an input."""
    wrong = _OUT_DTYPES.get(name)
    for target, value in zip(outs, results):
        if wrong and target.dtype is not value.dtype:
            want, have = value.dtype.scalar_name, target.dtype.scalar_name
            raise RuntimeError(wrong.format(want=want.lower(), have=have.lower(), Want=want, Have=have))
        # a target of another shape is given a layout of its own; elementwise operators look at the one it has first
        looked_at = target.shape == value.shape or name in _LAYOUT_FIRST or TABLE[name].pointwise
        if looked_at and not target.spec.layout.is_dense and any(stride == 0 and size > 1 for size, stride in zip(target.shape, target.stride())):
            raise RuntimeError(f"unsupported operation: more than one element of the written-to tensor refers {_SHARED}")
        for t in inputs:
            shared = _shared(t, target, value)
            if shared == "part" and TABLE[name].pointwise or shared and name in _FRESH_OUT:
                raise RuntimeError(f"unsupported operation: some elements of the input tensor and the written-to tensor refer {_SHARED}")


_SHARED = "to a single memory location. Please clone() the tensor before performing the operation."


def _shared(t: Tensor, target: Tensor, value: Tensor) -> str | None:
    """How an input shares memory with an out= tensor once that has the result's shape: "all", "part" or not at all (None; also where strides hide it, as in PyTorch)."""
    if target.shape != value.shape:
        nbytes = value.numel() * target.dtype.itemsize
        if t is target:
            return "all" if nbytes else None
    elif target.spec.layout.is_dense:
        nbytes = target.spec.nbytes
    else:
        return None
    if t.mem is not target.mem or not nbytes or not t.numel() or not t.spec.layout.is_dense:
        return None
    if t.ptr + t.spec.nbytes <= target.ptr or target.ptr + nbytes <= t.ptr:
        return None
    return "all" if t.ptr == target.ptr and t.spec.layout == target.spec.layout else "part"


def _grad_enabled() -> bool:
    from ..autograd.modes import STATE

    return STATE.grad_enabled


def install_methods() -> None:
    """Puts every entry's method on Tensor. Called once, when all families are loaded."""
    for entry in TABLE.values():
        if entry.call.__doc__ is None:  # a family put a form with options in the place of the plain one
            entry.call.__doc__ = entry.doc
        if entry.method:
            for name in (entry.name, *entry.aliases):
                setattr(Tensor, name, entry.call)


def functions(namespace: str | None = None) -> dict[str, Callable[..., Any]]:
    """The public functions of a namespace (None: the top level), aliases included."""
    return {name: e.call for e in TABLE.values() if e.function and e.namespace == namespace for name in (e.name, *e.aliases)}


# ---- autocast -------------------------------------------------------------------------------------------------------------------


def _cast(value: Any, dtype: Any, eligible: Callable[[Any], bool]) -> Any:
    """Every eligible tensor in a nest of arguments, cast. Leaves that require grad are cast once a region and kept: weights meet many operators."""
    if isinstance(value, Tensor):
        if value.dtype is dtype or not eligible(value.dtype):
            return value
        cache = CONTEXT.autocast_cache if value._tracked and value._node is None and _grad_enabled() else None
        if cache is None:
            return TABLE["to"].call(value, dtype)
        kept = cache.get((id(value), dtype))
        if kept is None:
            kept = cache[id(value), dtype] = value, TABLE["to"].call(value, dtype)  # the leaf is kept with it, so that its id stays its own
        return kept[1]
    if isinstance(value, (tuple, list)) and any(isinstance(item, (Tensor, tuple, list)) for item in value):
        return type(value)(_cast(item, dtype, eligible) for item in value)
    return value


def autocast_arguments(entry: Entry, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Arguments as autocast wants them: "lower" in the region's dtype, "float32" in float32, "promote" in the widest that is there."""
    from .. import dtypes

    half = lambda d: d is dtypes.float16 or d is dtypes.bfloat16
    if entry.autocast == "lower":
        target, eligible = CONTEXT.autocast_dtype, lambda d: half(d) or d is dtypes.float32
    elif entry.autocast == "float32":
        target, eligible = dtypes.float32, half
    else:
        found = {t.dtype for t in dispatch.tensors_in((args, kwargs)) if t.dtype.is_floating_point}
        if len(found) < 2:
            return args, kwargs
        target, eligible = (dtypes.float32 if dtypes.float32 in found else CONTEXT.autocast_dtype), lambda d: half(d) or d is dtypes.float32
    return tuple(_cast(a, target, eligible) for a in args), {key: _cast(value, target, eligible) for key, value in kwargs.items()}


dispatch.autocast_arguments = autocast_arguments
