"""Pointwise operators from one expression: plans, the eager fast path, gradients, in-place forms.

Holds the machinery; the operators themselves are listed in pointwise.py, their nodes are pointwise_nodes.py's. A `Pointwise` object is an operator without a name in the table: the
derivatives of operators are such objects too, made from the expression graph when first needed.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .. import dtypes, errors
from ..arrays import tensor_of
from ..autograd import anomaly, check_inplace, record_inplace, tracking
from ..autograd.graph import accumulator, gradient_edge, next_sequence
from ..autograd.modes import STATE
from ..autograd.saved import attached, save
from ..dispatch import CONTEXT, HOOKS, PlanCache, hooked_call, launch, launch_new, run
from ..errors import PackedOperand
from ..kernels import expr as E
from ..kernels.derivative import conj
from ..kernels.index import build_copy
from ..kernels.map import build_map
from ..layout import broadcast_shapes, result_strides
from ..tensor import Spec, Tensor, wrap
from . import packed, signatures, table
from .pointwise_complex import ComplexTwins
from .pointwise_nodes import NO_NUMBERS, PASS, ZERO, Recipe, fit, node_class, sum_to
from .table import TABLE, Entry

_new = object.__new__
_SCALARS = frozenset((float, int, bool))
_SCALAR_SLOT = {float: ("param", "f64"), int: ("param", "i64"), bool: ("param", "i64"), complex: ("param", "f64")}


class Plan:
    """How to compute one operator on operands of given kinds: descriptor (None on meta), the result's spec, the dtype computed in, and the places of
    Python complex numbers, whose imaginary parts take slots of their own at the end."""

    __slots__ = ("desc", "spec", "common", "split")

    def __init__(self, desc, spec, common, split=()):
        self.desc, self.spec, self.common, self.split = desc, spec, common, split

    def slots(self, operands):
        """What the kernel is launched with: addresses and numbers."""
        if not self.split:
            return [o.ptr if isinstance(o, Tensor) else o for o in operands]
        numbers = [o.real if i in self.split else o for i, o in enumerate(operands)]
        return [o.ptr if isinstance(o, Tensor) else o for o in numbers] + [operands[i].imag for i in self.split]


class Pointwise(ComplexTwins):
    """An operator given by an expression over its operands.

    kind: how the result's dtype follows from the operands' common one: "promote" (the same), "float" (integers become the default float),
    "compare" (bool), "bool" (bool, operands used as they are). node: the autograd node class's name, or None where nothing is to be recorded.

    Complex operands are a twin's business, see `ComplexTwins`.
    """

    def __init__(self, name: str, function: Callable[..., Any], arity: int, kind: str = "promote", node: str | None = None):
        self.name, self.arity, self.kind, self.node_name = name, arity, kind, node
        self.expr = E.trace(function, arity)
        self.flops = E.flops(self.expr)
        self.plans = PlanCache()
        self.inplace_plans = PlanCache()
        self.vjps: dict[int, Any] = {}
        self.recipes: dict[int, Recipe] = {}
        self.gradient: Callable[..., Any] | None = None  # an expression over (g, *operands, result) an operand, where the derived one is not wanted
        self.node_class = node_class(node) if node else None
        self.entry: Entry | None = None  # what the lens is told of a derivative, which has no entry in the table
        self.rounds = False  # numbers and wider 0-d operands round to a 16-bit common dtype (for comparisons, an 8-bit one, too) before they are computed with
        self.begin_as_real()

    # ---- planning -----------------------------------------------------------------------------------------------------

    def common_dtype(self, operands) -> dtypes.DType:
        """The dtype to compute in. Raises TypeError for an operand that is no tensor and no number."""
        common = dtypes.result_type(*operands)
        if self.kind == "float" and not (common.is_floating_point or common.is_complex):
            common = dtypes.get_default_dtype()
        return common

    def plan(self, operands: tuple, into: Tensor | None = None) -> Plan:
        """The plan for operands of these kinds; `into`: the tensor that the result is written to."""
        signatures.check_bool(self.name, operands)
        tensors = [t for t in operands if isinstance(t, Tensor)]
        device = errors.check_devices(self.name, tensors) if len(tensors) > 1 else tensors[0].device
        common = self.common_dtype(operands)
        for t in (*tensors, *((into,) if into is not None else ())):
            if t.dtype.packed:
                raise PackedOperand
            if t.dtype.code < 0:
                raise NotImplementedError(f'"{self.name}" not implemented for \'{t.dtype.scalar_name}\': convert to float32 first, as in x.float()')
        result_dtype = dtypes.bool_ if self.kind in ("compare", "bool") else common
        if result_dtype is common and common.is_complex is not self.result_is_complex():
            result_dtype = common.to_real() if common.is_complex else common.to_complex()
        shape = broadcast_shapes(*[t.shape for t in tensors])
        if into is None:
            layout = result_strides(shape, *[t.spec.layout for t in tensors])
        else:
            if into.shape != shape:
                raise RuntimeError(f"output with shape {list(into.shape)} doesn't match the broadcast shape {list(shape)}")
            if into.dtype.is_complex and not self.result_is_complex():
                raise RuntimeError(f"In-place {self.name} is not supported for complex tensors.")
            if not dtypes.can_cast(result_dtype, into.dtype):
                raise RuntimeError(f"result type {result_dtype.scalar_name} can't be cast to the desired output type {into.dtype.scalar_name}")
            check_overlap(into)
            layout, result_dtype = into.spec.layout, into.dtype
        spec = Spec.of(layout, result_dtype, device)
        if spec.is_meta:
            return Plan(None, spec, common)
        ins, compute = [], []
        for operand in operands:
            if isinstance(operand, Tensor):
                ins.append((operand.dtype, operand.spec.layout.expand(shape)))
                compute.append(None if operand.dtype is common or self.kind == "bool" else common)
            else:
                ins.append(_SCALAR_SLOT[type(operand)])
                compute.append(None)
        expr, split = self.expr, ()
        if common.is_complex:
            expr, split = self._with_complex(operands, common, ins, compute)
        if self.rounds and common.is_floating_point and (common.itemsize == 2 or common.bits == 8 and self.kind == "compare"):
            wider = [i for i, o in enumerate(operands) if not isinstance(o, Tensor) or o.dtype is not common]
            expr = _substitute_params(expr, {i: E.cast(E.param(i), common) for i in wider})
            compute = [None if i in wider else c for i, c in enumerate(compute)]
        desc = build_map(expr, [(result_dtype, layout)], ins, compute=compute, result_bytes=0 if into is not None else spec.nbytes)
        return Plan(desc, spec, common, split)

    # ---- calling ------------------------------------------------------------------------------------------------------

    def __call__(self, *operands) -> Tensor:
        if self.entry is not None and HOOKS.active and not CONTEXT.depth:
            return hooked_call(self.entry, self, operands, {})
        kinds = tuple([o.spec if isinstance(o, Tensor) else type(o) for o in operands])
        plan = self.plans.get(kinds)
        if plan is None:
            operands = tuple([_number(o) for o in operands])
            if not any(isinstance(o, Tensor) for o in operands):
                operands = signatures.numbers_alone(self.name, operands)
            twin = self.for_operands(operands)
            kinds = tuple([o.spec if isinstance(o, Tensor) else type(o) for o in operands])
            if twin is not self:
                result = twin(*operands)
                if self._lends(kinds) and (self.node_name is None or twin.result_is_complex()) and (plan := twin.plans.get(kinds)) is not None:
                    self.plans.put(kinds, plan)  # the next call goes straight through: `record` tells by the result that the twin is meant
                return result
            try:
                plan = self.plans.get(kinds) or self.plans.put(kinds, self.plan(operands))
            except PackedOperand as error:
                return packed.call_unpacked(self, operands, {}, error)
        out = run(plan.desc, plan.spec, *plan.slots(operands))
        if self.node_name is not None and tracking(*operands):
            self.record(kinds, operands, out)
        return out

    def record(self, kinds: tuple, operands: tuple, out: Tensor) -> None:
        """Hangs the result on a new node: `autograd.record` for the one shape of node there is here, written out because every small call passes it.

        kinds: the spec of a tensor, the type of a number, for each operand.
        """
        if not out.spec.dtype.is_floating_point:
            if not out.spec.dtype.is_complex:
                return
            if not self.is_twin and (twin := self.for_operands(operands)) is not self:
                return twin.record(kinds, operands, out)
        edges = []
        wanted = 0
        for place, (o, kind) in enumerate(zip(operands, kinds)):
            edge = gradient_edge(o) if type(kind) is Spec else None
            if edge is not None:
                wanted += 1 << place
            edges.append(edge)
        numbers = tuple([o if type(kind) is not Spec else None for o, kind in zip(operands, kinds)])
        self.hang(self.recipes.get(wanted) or self.recipe(wanted), edges, kinds, numbers, operands, out)

    def record_two(self, kinds: tuple, a: Tensor, b: Any, out: Tensor) -> None:
        """`record` for a tensor and a second operand."""
        if not out.spec.dtype.is_floating_point:
            if not out.spec.dtype.is_complex:
                return
            if not self.is_twin and (twin := self.for_operands((a, b))) is not self:
                return twin.record_two(kinds, a, b, out)
        if a._base is not None:
            first = gradient_edge(a)
        elif not a._tracked:
            first = None
        elif (source := a._node) is not None:
            first = source, a._nr
        else:
            first = a._accumulator or accumulator(a), 0, a
        numbers = NO_NUMBERS
        if type(kinds[1]) is not Spec:
            second = None
            numbers = None, b
        elif b._base is not None:
            second = gradient_edge(b)
        elif not b._tracked:
            second = None
        elif (source := b._node) is not None:
            second = source, b._nr
        else:
            second = b._accumulator or accumulator(b), 0, b
        wanted = (first is not None) + 2 * (second is not None)
        self.hang(self.recipes.get(wanted) or self.recipe(wanted), (first, second), kinds, numbers, (a, b), out)

    def hang(self, recipe: Recipe, edges, kinds: tuple, numbers: tuple, operands: tuple, out: Tensor) -> None:
        """The node behind `out`."""
        node = _new(self.node_class)
        node.edges = edges
        node.recipe = recipe
        node.kinds = kinds
        node.numbers = numbers
        node.specs = spec = out.spec
        node.seq = next_sequence()
        node.saves = entries = []
        if recipe.saves:
            arity = self.arity
            if STATE.saved_hooks:
                node.saves = save([operands[i] if i < arity else out for i in recipe.saves if i == arity or type(kinds[i]) is Spec], out)
            else:  # `save`, inline
                for i in recipe.saves:
                    if i == arity:
                        entries.append((None, out.mem.version, 0, spec, out.mem, out.ptr))
                    elif type(kinds[i]) is Spec:
                        o = operands[i]
                        if o._inference:
                            save((o,), out)  # raises
                        entries.append((o, o.mem.version, o._node))
        if anomaly.enabled:
            anomaly.remember(node)
        out._node = node
        out._tracked = True

    def into(self, x: Tensor, *others) -> Tensor:
        """Writes the result into x, the first operand; history and version follow."""
        check_inplace(x, *others)
        others = tuple(_number(o) for o in others)
        key = tuple([o.spec if isinstance(o, Tensor) else type(o) for o in (x, *others)])
        plan = self.inplace_plans.get(key)
        if plan is None:
            twin = self.for_operands((x, *others))
            if twin is not self:
                return twin.into(x, *others)
            try:
                plan = self.inplace_plans.put(key, self.plan((x, *others), into=x))
            except PackedOperand as error:
                return packed.call_unpacked(self.into, (x, *others), {}, error)
        track = self.node_name is not None and tracking(x, *others)
        before = [x, *others]  # what the gradient needs of the operands is what they were before the write, with their history
        if track:
            wanted = sum(1 << i for i, o in enumerate((x, *others)) if isinstance(o, Tensor) and gradient_edge(o) is not None)
            recipe = self.recipe(wanted)
            for i in recipe.saves:
                if i < len(before) and isinstance(o := before[i], Tensor):
                    if o._inference:
                        save((o,), x)  # raises, while nothing is written
                    if o is x or _meet(o, x):
                        before[i] = self_copy(o)
                        if (edge := gradient_edge(o)) is not None:
                            attached(before[i], edge[0], edge[1])
        if plan.desc is not None:
            operands = others
            if any([isinstance(o, Tensor) and _clash(o, x) for o in others]):  # other windows of the memory being written are copied, and lie otherwise then
                operands = tuple([self_copy(o) if isinstance(o, Tensor) and _clash(o, x) else o for o in others])
                kinds = tuple([o.spec if isinstance(o, Tensor) else type(o) for o in (x, *operands)])
                plan = self.inplace_plans.get(kinds) or self.inplace_plans.put(kinds, self.plan((x, *operands), into=x))
            launch(plan.desc, x.ptr, *plan.slots((x, *operands)))
        x.mem.version += 1
        if track:
            everything = (*before, x)
            saves = tuple([everything[i] for i in recipe.saves if isinstance(everything[i], Tensor)])
            numbers = tuple([None if isinstance(o, Tensor) else o for o in (x, *others)])
            record_inplace(self.node_class, (x, *others), x, saves, recipe=recipe, kinds=key, numbers=numbers)
        return x

    # ---- gradients ----------------------------------------------------------------------------------------------------

    def vjp(self, i: int):
        """The gradient of operand i as (operator, operand numbers): -1 stands for the incoming gradient, `arity` for the result. PASS: the gradient itself; ZERO: none."""
        found = self.vjps.get(i)
        if found is None:
            found = self.vjps[i] = self._derive(i)
        return found

    def _derive(self, i: int):
        n = self.arity
        g = E.param(n)
        if self.gradient is not None:
            # the expression's own parameters: 0 the gradient, 1… the operands, then the result
            chosen = self.gradient(i)
            if chosen is None:
                return ZERO
            expression = chosen(conj(g) if self._is_complex() else g, *[E.param(k) for k in range(n)], E.param(n + 1))
            if self._is_complex():  # the derivative of a holomorphic function, conjugated
                expression = conj(expression)
        else:
            (expression,) = E.gradients(self.expr, g, (i,), self._complex_inputs() if self._is_complex() else None)
            if self.expr.op not in ("param", "constant"):
                expression = E.substitute(expression, {self.expr: E.param(n + 1)})  # the result is at hand: need not be computed again
        numbers = self.complexes
        if self._is_complex():
            expression, numbers = self._of_kind(expression, i)
        if expression is g:
            return PASS
        if expression.op == "constant":
            return ZERO
        used = sorted(set(E.free_inputs(expression)))
        renumbered = _substitute_params(expression, {k: E.param(place) for place, k in enumerate(used)})
        label = f"{self.name}_backward"
        operator = Pointwise(label, lambda *a: renumbered, len(used), "promote", node=(self.node_name or "").removesuffix("Backward0") + "Backward")
        operator.entry = Entry(label, pointwise=True, flops=with_flops(operator))
        if any(numbers):
            operator.complexes, operator.keeps_real = tuple([numbers[k] for k in used]), True
            operator.flops = E.flops(operator._in_parts())
        return operator, tuple(-1 if k == n else n if k == n + 1 else k for k in used)

    def recipe(self, wanted: int) -> Recipe:
        """What to save and how to compute gradients; bit i of `wanted` says whether operand i wants one."""
        found = self.recipes.get(wanted)
        if found is None:
            terms = [self.vjp(i) if wanted >> i & 1 else None for i in range(self.arity)]
            needed = sorted({k for term in terms if isinstance(term, tuple) for k in term[1] if k >= 0})
            found = self.recipes[wanted] = Recipe(tuple(needed), terms)
        return found


def with_flops(op: Pointwise) -> Callable[[tuple, dict, Any], int]:
    """FLOPs of a pointwise operator for its entry: its expression's, an element (in real operations, for complex numbers); none where the result is of integers."""

    def flops(args, kwargs, result):
        if result.dtype.kind in ("int", "uint"):
            return 0
        places = [*args[: op.arity], *(None for _ in range(op.arity - len(args)))]
        return op.for_operands(places).flops * result.numel()

    return flops


def _substitute_params(expression, replacements: dict):
    """The expression with some of its params replaced."""
    return E.substitute(expression, {E.param(i): new for i, new in replacements.items()})


def _number(value):
    """A Python number for whatever acts as one (NumPy scalars, SymPy-free bools); tensors as they are."""
    if isinstance(value, Tensor) or type(value) in _SCALARS or type(value) is complex:
        return value
    if isinstance(value, bool | int | float):
        return bool(value) if isinstance(value, bool) else int(value) if isinstance(value, int) else float(value)
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return _number(value.item())
    if hasattr(value, "__array_interface__"):  # a NumPy array beside a tensor counts as a tensor over its memory
        return tensor_of(value)
    if isinstance(value, complex):
        return complex(value)
    raise TypeError(f"expected a tensor or a number, but got {type(value).__name__}")


def shared_dims(x: Tensor) -> list[int]:
    """The dimensions of x along which several elements share a place (it was expanded there)."""
    return [] if x.spec.layout.is_dense else [d for d, (size, stride) in enumerate(zip(x.shape, x.stride())) if stride == 0 and size > 1]


def check_overlap(x: Tensor) -> None:
    """Raises where several elements of x share a place (an expanded tensor cannot be written)."""
    if shared_dims(x):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation."
            f"\n  shape {list(x.shape)}, strides {list(x.stride())}: a stride of 0 repeats one element (expand). Write to x.clone()."
        )


def warn_of_overlap(name: str, x: Tensor) -> list[int]:
    """`check_overlap` of the few operators that PyTorch lets write into expanded tensors: a warning. Gives the expanded dimensions."""
    shared = shared_dims(x)
    if shared:
        warnings.warn(
            f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. This also applies to advanced "
            f"indexing e.g. {'tensor[indices] = tensor' if name == 'index_put_' else 'tensor[mask] = scalar'}",
            UserWarning,
            stacklevel=5,
        )
    return shared


# ---- copies without history ---------------------------------------------------------------------------------------------------------------------

_identity = E.param(0)
_assign_plans = PlanCache()


def _meet(source: Tensor, target: Tensor) -> bool:
    """Whether two tensors' stretches of memory meet. Told by address: `x.data` and borrowed memory have storages of their own."""
    a, b, gap = source.spec, target.spec, source.ptr - target.ptr
    return gap < b.layout.span * b.itemsize and -gap < a.layout.span * a.itemsize


def _clash(source: Tensor, target: Tensor) -> bool:
    """Whether writing `target` could change elements of `source` that are still to be read: their memory meets, and not element by element."""
    a, b = source.spec, target.spec
    return (source.ptr != target.ptr or a.layout is not b.layout or a.itemsize != b.itemsize) and _meet(source, target)


def assign(destination: Tensor, source: Tensor) -> None:
    """Copies values, broadcast and cast to the destination; neither recorded nor counted as a version."""
    if destination.spec.is_meta:
        return
    if source.spec.is_meta:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if _clash(source, destination):
        source = self_copy(source)
    key = destination.spec, source.spec
    desc = _assign_plans.get(key)
    if desc is None:
        if destination.spec.dtype.packed or source.spec.dtype.packed:
            return packed.assign(destination, source)
        shape = destination.shape
        desc = _copy_descriptor(destination.spec, source.spec, source.spec.layout.expand(shape))
        _assign_plans.put(key, desc)
    launch(desc, destination.ptr, source.ptr)


def _copy_descriptor(target: Spec, source: Spec, layout: Any, result_bytes: int = 0) -> bytes:
    """The plan of a copy: elements moved as they are where the dtype stays, else converted one by one. layout: the source's, broadcast."""
    if target.dtype is source.dtype:
        return build_copy(target.itemsize, target.shape, target.strides, layout.strides, result_bytes=result_bytes)
    return build_map(_identity, [(target.dtype, target.layout)], [(source.dtype, layout)], result_bytes=result_bytes)


table.assign = assign
table.check_overlap = check_overlap
_copy_plans = PlanCache()


def self_copy(x: Tensor, dtype: Any = None, layout: Any = None) -> Tensor:
    """A fresh tensor of x's values (dense, x's order of dimensions unless a layout is given), not recorded."""
    dtype = dtype or x.dtype
    key = x.spec, dtype, layout
    plan = _copy_plans.get(key)
    if plan is None:
        if dtype.packed or x.spec.dtype.packed:
            return packed.copy(x, dtype, layout)
        target = layout or result_strides(x.shape, x.spec.layout)
        spec = Spec.of(target, dtype, x.device)
        desc = None if spec.is_meta else _copy_descriptor(spec, x.spec, x.spec.layout, spec.nbytes)
        plan = _copy_plans.put(key, (desc, spec))
    return run(plan[0], plan[1], x.ptr)


table.self_copy = self_copy


# ---- registration: the eager fast path ---------------------------------------------------------------------------------------------------------


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
) -> Pointwise:
    """Registers the operator `name` given by an expression over its positional arguments.

    complex_function: the expression for complex operands, where that is another one.
    gradient: an expression `lambda g, *operands, result` an operand (None: no gradient), where the one derived from the graph is not wanted.
    """
    arity = function.__code__.co_argcount
    node_name = None if node is None or kind in ("compare", "bool") else node or _node_name(name)
    op = cls(name, function, arity, kind, node_name)
    if gradient is not None:
        op.gradient = lambda i: gradient[i]
    op.complex_function = complex_function
    op.rounds = arity == 2 and name not in ("mul", "true_divide")  # PyTorch multiplies and divides 16-bit tensors by numbers in float32
    entry = Entry(name, aliases=aliases, namespace=namespace, pointwise=True, method=method, function=public, autocast=autocast, out=True, doc=doc or function.__doc__, module=__name__)
    entry.flops = with_flops(op)
    entry.call = _unary(op, entry) if arity == 1 else _binary(op, entry) if arity == 2 else _nary(op, entry)
    entry.call.__name__ = entry.call.__qualname__ = name
    entry.call.__doc__ = entry.doc
    entry.call.pointwise = op
    TABLE[name] = entry
    if inplace:
        _inplace(op, entry)
    return op


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
            mem = launch_new(plan.desc, input.ptr)
            t = _new(Tensor)
            t.spec = plan.spec
            t.mem = mem
            t.ptr = mem.data
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
            if type(other) in _SCALARS:
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
            mem = launch_new(plan.desc, input.ptr, second)
            t = _new(Tensor)
            t.spec = plan.spec
            t.mem = mem
            t.ptr = mem.data
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
    signatures.check(entry.name, operands)
    try:
        operands = tuple(_number(o) for o in operands)
    except TypeError:
        bad = next(o for o in operands if not isinstance(o, Tensor | bool | int | float | complex))
        raise TypeError(f"{entry.name}(): expected tensors or numbers, but got {type(bad).__name__}") from None
    return op(*operands)


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
            if type(other) in _SCALARS:
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


__all__ = ["Pointwise", "assign", "check_overlap", "fit", "pointwise", "self_copy", "shared_dims", "sum_to", "warn_of_overlap", "with_flops", "wrap"]
