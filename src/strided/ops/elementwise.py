"""Pointwise operators from one expression: plans, gradients, in-place forms.

Holds the machinery; the operators themselves are listed in pointwise.py and registered by eager.py, their nodes are pointwise_nodes.py's, copies copying.py's. A `Pointwise`
object is an operator without a name in the table: the derivatives of operators are such objects too, made from the expression graph when first needed.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes, errors
from ..arrays import tensor_of
from ..autograd import check_inplace, record, record_inplace, tracking
from ..autograd.graph import gradient_edge
from ..autograd.saved import attached, save
from ..dispatch import CONTEXT, HOOKS, PlanCache, hooked_call, launch, run
from ..errors import PackedOperand
from ..kernels import expr as E
from ..kernels.derivative import conj
from ..kernels.map import build_map
from ..kernels.native_objects import hang
from ..layout import Layout, broadcast_shapes, result_strides
from ..tensor import Spec, Tensor
from . import packed, real_only, signatures
from .copying import assign, check_overlap, clash, meet, self_copy, shared_dims, warn_of_overlap
from .pointwise_complex import ComplexTwins
from .pointwise_nodes import NO_NUMBERS, PASS, ZERO, Recipe, fit, node_class, sum_to
from .table import Entry

SCALARS = frozenset((float, int, bool))
_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
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
        self.saves_result = True  # where a gradient is made of the result, that is saved; False: it is computed again, since PyTorch lets the result be written
        self.row_major = False  # the result lies row by row, however the operands lie
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
            layout = Layout.contiguous(shape) if self.row_major else result_strides(shape, *[t.spec.layout for t in tensors])
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
        if common.is_floating_point and self.name in real_only.OF_BITS:
            raise real_only.refusal(self.name, common)
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
            operands = tuple([number(o) for o in operands])
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
        """Hangs the result on a new node.

        kinds: the spec of a tensor, the type of a number, for each operand.
        """
        if not out.spec.dtype.is_floating_point:
            if not out.spec.dtype.is_complex:
                return
            if not self.is_twin and (twin := self.for_operands(operands)) is not self:
                return twin.record(kinds, operands, out)
        numbers = NO_NUMBERS if self.arity == 1 else tuple([o if type(kind) is not Spec else None for o, kind in zip(operands, kinds)])
        if not hang(self.node_class, self.recipes, kinds, numbers, operands, out):
            self._hang(kinds, numbers, operands, out)

    def record_two(self, kinds: tuple, a: Tensor, b: Any, out: Tensor) -> None:
        """`record` for a tensor and a second operand."""
        if not out.spec.dtype.is_floating_point:
            if not out.spec.dtype.is_complex:
                return
            if not self.is_twin and (twin := self.for_operands((a, b))) is not self:
                return twin.record_two(kinds, a, b, out)
        numbers = NO_NUMBERS if type(kinds[1]) is Spec else (None, b)
        if not hang(self.node_class, self.recipes, kinds, numbers, (a, b), out):
            self._hang(kinds, numbers, (a, b), out)

    def _hang(self, kinds: tuple, numbers: tuple, operands: tuple, out: Tensor) -> None:
        """The node behind `out` in all cases; the usual ones are native (kernels/runtime_record.py)."""
        wanted = sum(1 << place for place, o in enumerate(operands) if isinstance(o, Tensor) and gradient_edge(o) is not None)
        recipe = self.recipe(wanted)
        saves = tuple([operands[i] if i < self.arity else out for i in recipe.saves if i == self.arity or type(kinds[i]) is Spec])
        record(self.node_class, operands, out, saves, recipe=recipe, kinds=kinds, numbers=numbers)

    def into(self, x: Tensor, *others) -> Tensor:
        """Writes the result into x, the first operand; history and version follow."""
        check_inplace(x, *others)
        others = tuple(number(o) for o in others)
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
        track = tracking(x, *others) if self.node_name is not None else self._cuts(x)
        before = [x, *others]  # what the gradient needs of the operands is what they were before the write, with their history
        if track:
            wanted = sum(1 << i for i, o in enumerate((x, *others)) if isinstance(o, Tensor) and gradient_edge(o) is not None)
            recipe = self.recipe(wanted)
            for i in recipe.saves:
                if i < len(before) and isinstance(o := before[i], Tensor):
                    if o._inference:
                        save((o,), x)  # raises, while nothing is written
                    if o is x or meet(o, x):
                        before[i] = self_copy(o)
                        if (edge := gradient_edge(o)) is not None:
                            attached(before[i], edge[0], edge[1])
        if plan.desc is not None:
            operands = others
            if any([isinstance(o, Tensor) and clash(o, x) for o in others]):  # other windows of the memory being written are copied, and lie otherwise then
                operands = tuple([self_copy(o) if isinstance(o, Tensor) and clash(o, x) else o for o in others])
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

    def _cuts(self, x: Tensor) -> bool:
        """Whether a write into x by a comparison, which has no gradient, has to be recorded all the same: what x was leads nowhere from there on."""
        if self.name not in _COMPARISONS or not tracking(x):
            return False
        if self.node_class is None:
            self.node_class = node_class("".join(part.capitalize() for part in self.name.split("_")))
        return True

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
            result = E.param(n + 1) if self.saves_result else self.expr
            expression = chosen(conj(g) if self._is_complex() else g, *[E.param(k) for k in range(n)], result)
            if self._is_complex():  # the derivative of a holomorphic function, conjugated
                expression = conj(expression)
        else:
            from ..kernels.derivative import gradients  # here: no derivative is taken while this package is imported

            (expression,) = gradients(self.expr, g, (i,), self._complex_inputs() if self._is_complex() else None)
            if self.saves_result and self.expr.op not in ("param", "constant"):
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


def number(value):
    """A Python number for whatever acts as one (NumPy scalars, SymPy-free bools); tensors as they are."""
    if isinstance(value, Tensor) or type(value) in SCALARS or type(value) is complex:
        return value
    if isinstance(value, bool | int | float):
        return bool(value) if isinstance(value, bool) else int(value) if isinstance(value, int) else float(value)
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return number(value.item())
    if hasattr(value, "__array_interface__"):  # a NumPy array beside a tensor counts as a tensor over its memory
        return tensor_of(value)
    if isinstance(value, complex):
        return complex(value)
    raise TypeError(f"expected a tensor or a number, but got {type(value).__name__}")


__all__ = ["Pointwise", "assign", "check_overlap", "fit", "number", "self_copy", "shared_dims", "sum_to", "warn_of_overlap", "with_flops"]
