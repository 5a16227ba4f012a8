"""Registration of pointwise operators, and the way that a small eager call takes through them: straight to its plan, with one test for each thing that may be in the way.

What plans, gradients and in-place writes are is elementwise.py's.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd import tracking
from ..autograd.modes import STATE
from ..dispatch import CONTEXT, HOOKS, NOT_TAKEN, hooked_call, launch, launch_tensor, run
from ..tensor import Tensor
from . import signatures, table
from .elementwise import SCALARS, Pointwise, number, with_flops
from .overriding import ask, refused, strangers
from .table import TABLE, Entry


def pointwise(
    name: str,
    function: Callable[..., Any],
    *,
    kind: str = "promote",
    aliases: tuple[str, ...] = (),
    node: str | None = "",
    gradient: tuple | None = None,
    inplace: bool = True,
    method: bool = True,
    public: bool = True,
    namespace: str | None = None,
    autocast: str | None = None,
    doc: str | None = None,
    complex_function: Callable[..., Any] | None = None,
    cls: type[Pointwise] = Pointwise,
    saves_result: bool = True,
) -> Pointwise:
    """Registers the operator `name` given by an expression over its positional arguments.

    complex_function: the expression for complex operands, where that is another one.
    gradient: an expression `lambda g, *operands, result` an operand (None: no gradient), where the one derived from the graph is not wanted.
    saves_result: whether a gradient that is made of the result saves it. PyTorch's saves operands for some operators, whose results may be written in place.
    """
    arity = function.__code__.co_argcount
    node_name = None if node is None or kind in ("compare", "bool") else node or _node_name(name)
    op = cls(name, function, arity, kind, node_name)
    if gradient is not None:
        op.gradient = lambda i: gradient[i]
    op.complex_function = complex_function
    op.saves_result = saves_result
    op.rounds = arity == 2 and name not in ("mul", "true_divide")  # PyTorch multiplies and divides 16-bit tensors by numbers in float32
    doc = doc or function.__doc__ or _described(name, arity, kind)
    entry = Entry(name, aliases=aliases, namespace=namespace, pointwise=True, method=method, function=public, autocast=autocast, out=True, doc=doc, module=__name__)
    entry.flops = with_flops(op)
    entry.call = _unary(op, entry) if arity == 1 else _binary(op, entry) if arity == 2 else _nary(op, entry)
    entry.call.__name__ = entry.call.__qualname__ = name
    entry.call.__doc__ = entry.doc
    entry.call.pointwise = op
    TABLE[name] = entry
    if inplace:
        _inplace(op, entry)
    return op


_RESULTS = {"float": (", as floats where it holds integers", ", then to a floating one"), "compare": (", as bool", "; the result is bool"), "bool": (", as bool", "; the result is bool")}


def _described(name: str, arity: int, kind: str) -> str:
    """The docstring of an operator that has none of its own."""
    one, several = _RESULTS.get(kind, ("", ""))
    if arity == 1:
        return f"`{name}` of each element of a tensor of any shape{one}."
    return f"`{name}` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote{several}.\n\nRaises RuntimeError for shapes that do not broadcast."


def _node_name(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _unary(op: Pointwise, entry: Entry):
    plans = op.plans

    def call(input, *, out=None):
        if out is not None:
            return table.write_out(entry.name, out, call, (input,), {})
        if HOOKS.active and not CONTEXT.depth:
            return hooked_call(entry, call, (input,), {})
        try:
            plan = plans[input.spec]
        except (KeyError, AttributeError):
            plan = None  # planned outside: an error there has no KeyError behind it
        if plan is None:
            if not isinstance(input, Tensor):
                if (answer := refused(entry, (input,))) is not NOT_TAKEN:
                    return answer
                raise _not_a_tensor(entry.name, input)
            spec = input.spec
            if spec.dtype.is_complex or spec.dtype.packed:
                result = op.twins.get((True,), op)(input)
                if (plan := plans.get((spec,))) is not None:
                    plans.put(spec, plan)
                return result
            plan = plans.put(spec, op.plan((input,)))
            if input.spec is not spec:  # another thread gave it other data while the plan was made
                return call(input)
        if plan.desc is None:
            t = run(None, plan.spec)
        else:
            t = launch_tensor(plan.desc, plan.spec, input.ptr)
        if (input._tracked or input._base is not None) and op.node_name is not None and tracking(input):
            op.record((input.spec,), (input,), t)
        return t

    return call


def _not_a_tensor(name: str, value) -> TypeError:
    return TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(value).__name__}")


def _binary(op: Pointwise, entry: Entry):
    plans, records = op.plans, op.node_name is not None

    def call(input, other, *, out=None):
        if out is not None:
            return table.write_out(entry.name, out, call, (input, other), {})
        if HOOKS.active and not CONTEXT.depth:
            return hooked_call(entry, call, (input, other), {})
        try:
            if type(other) in SCALARS:
                key = input.spec, type(other)
                second = other
            else:
                key = input.spec, other.spec
                second = other.ptr
            plan = plans.get(key)
        except AttributeError:
            plan = key = None
        if plan is None:
            if key is None:
                if type(other) is complex and type(input) is Tensor:
                    signatures.check(entry.name, (input, other))
                    return op(input, other)
                return _mixed(op, entry, input, other)
            signatures.check(entry.name, (input, other))
            first = key[0].dtype
            if first.is_complex or first.packed or second is not other and (key[1].dtype.is_complex or key[1].dtype.packed):
                return op(input, other)
            plan = plans.put(key, op.plan((input, other)))
            if input.spec is not key[0] or second is not other and other.spec is not key[1]:  # given other data by another thread meanwhile
                return call(input, other)
        if plan.desc is None:
            t = run(None, plan.spec)
        else:
            t = launch_tensor(plan.desc, plan.spec, input.ptr, second)
        # `tracking`, inline: a view follows its base
        if records and (
            input._tracked
            or (base := input._base) is not None and base._tracked
            or second is not other and (other._tracked or (base := other._base) is not None and base._tracked)
        ) and STATE.grad_enabled:  # fmt: skip
            op.record_two(key, input, other, t)
        return t

    return call


def _mixed(op: Pointwise, entry: Entry, *operands):
    """The slow way in: a number first, NumPy scalars, or what cannot be computed with at all."""
    if (asked := strangers(operands, {})):
        return ask(entry.call, asked, operands, {})
    signatures.check(entry.name, operands)
    try:
        numbers = tuple(number(o) for o in operands)
    except TypeError:
        numbers = None
    if numbers is not None:
        return op(*numbers)
    if (answer := refused(entry, operands)) is not NOT_TAKEN:
        return answer
    bad = next(o for o in operands if not isinstance(o, Tensor | bool | int | float | complex))
    if len(operands) == 2 and entry.name in _SIGNS:
        first, second = (type(o).__name__ for o in operands)
        raise TypeError(f"unsupported operand type(s) for {_SIGNS[entry.name]}: '{first}' and '{second}'")
    raise TypeError(f"{entry.name}(): expected tensors or numbers, but got {type(bad).__name__}")


_SIGNS = {"add": "+", "sub": "-", "mul": "*", "true_divide": "/"}  # as Python says it of operands that neither side knows


def _nary(op: Pointwise, entry: Entry):
    def call(*operands, out=None):
        if out is not None:
            return table.write_out(entry.name, out, call, operands, {})
        if HOOKS.active and not CONTEXT.depth:
            return hooked_call(entry, call, operands, {})
        if len(operands) != op.arity:
            raise TypeError(f"{entry.name}() takes {op.arity} operands, but {len(operands)} were given")
        return op(*operands)

    return call


def _inplace(op: Pointwise, entry: Entry):
    name = entry.name + "_"
    inner = Entry(name, writes=True, inplace_form=True, pointwise=True, method=entry.method, function=entry.function and op.arity == 1, doc=f"In-place form of `{entry.name}`.", module=entry.module)
    inner.flops = entry.flops

    plans = op.inplace_plans

    def call(input, *others):
        if HOOKS.active and not CONTEXT.depth:
            return hooked_call(inner, op.into, (input, *others), {})
        return op.into(input, *others)

    def call_binary(input, other):
        """The usual case straight through: a plan is there, nothing is tracked, the operands are no windows of each other."""
        if HOOKS.active and not CONTEXT.depth:
            return hooked_call(inner, op.into, (input, other), {})
        try:
            if type(other) in SCALARS:
                plan = plans.get((input.spec, type(other)))
                second = other
                plain = not (input._tracked or input._base is not None or input._inference)
            else:
                plan = plans.get((input.spec, other.spec))
                second = other.ptr
                mem, memory = input.mem, other.mem
                plain = not (input._tracked or other._tracked or input._base is not None or other._base is not None or input._inference
                             or memory is mem or mem.owner is not None or memory.owner is not None)
        except AttributeError:
            plan = None
        if plan is None or not plain or plan.desc is None:
            return op.into(input, other)
        launch(plan.desc, input.ptr, input.ptr, second)
        input.mem.version += 1
        return input

    if op.arity == 2:
        call = call_binary
    call.__name__ = call.__qualname__ = name
    call.__doc__ = inner.doc
    call.pointwise = op
    inner.call = entry.inplace = call
    inner.aliases = tuple(alias + "_" for alias in entry.aliases)
    TABLE[name] = inner
