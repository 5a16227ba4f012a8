"""The nodes of recorded pointwise operators: what they save, and gradients from prepared kernels or in operators.

Also `fit` and `sum_to`, which bring a gradient to its operand's shape and dtype. Where the expressions come from is elementwise.py's business.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd import Node
from ..autograd.modes import STATE
from ..autograd.saved import RELEASED
from ..dispatch import HOOKS, PlanCache, launch_tensor
from ..kernels import expr as E
from ..kernels.fold import plan_fold
from ..kernels.native_objects import make_tensor
from ..kernels.recipes import KEEP
from ..layout import Layout
from ..tensor import Spec, Tensor
from .table import TABLE


class Recipe:
    """What nodes save and how their gradients follow, for one choice of operands that want one.

    saves: numbers of operands, `arity` for the result. terms: what `Pointwise.vjp` gives for each operand that wants a gradient, else None.
    steps: the same made ready for operands and gradients of given kinds, see `_prepare`.
    """

    __slots__ = ("saves", "terms", "steps")

    def __init__(self, saves, terms):
        self.saves, self.terms, self.steps = saves, terms, PlanCache()


PASS, ZERO, SUMMED = "pass", "zero", "summed"
NO_NUMBERS = (None,) * 8  # of nodes whose operands are all tensors


class PointwiseNode(Node):
    """A recorded pointwise operator: `recipe` says what was saved and how gradients follow, `kinds` the operands' specs (a number's type), `numbers` the numbers."""

    __slots__ = ("recipe", "kinds", "numbers")
    keeps = False  # PyTorch saves an operand that is a number here: a second backward pass is refused there, so it is here

    def apply(self, g):
        """Gradients of the operands: straight from the prepared kernels where nothing is to be recorded or watched."""
        saves = self.saves
        if saves is RELEASED:
            raise RELEASED.error()
        if STATE.grad_enabled or HOOKS.active:
            return _gradients(self, g)
        recipe, kinds = self.recipe, self.kinds
        found = recipe.steps.get((g.spec, self.specs, kinds))
        if found is None:
            values = _values(self, g)
            _prepare(self, g, values)
            return _gradients(self, g, values)
        places, steps = found
        if steps is None:
            return _gradients(self, g)
        slots = [*self.numbers[: len(kinds)], 0, g.ptr]
        if places:
            for k, entry in zip(places, saves):
                first = entry[0]
                if len(entry) == 3:
                    if first.mem.version != entry[1] or first.spec is not kinds[k]:
                        return _gradients(self, g)  # raises, or unpacks what has other strides than the operand
                    slots[k] = first.ptr
                elif len(entry) == 6 and entry[4].version == entry[1]:
                    slots[k] = entry[5]
                else:
                    return _gradients(self, g)
        results = []
        for step, need in zip(steps, self.needs):
            if step is None or not need:
                results.append(None)
            elif step is PASS:
                results.append(g)
            else:
                desc, spec, sources, target = step
                if desc is None:
                    t = g
                elif target is SUMMED:
                    memory = desc(*[slots[k] for k in sources])
                    results.append(make_tensor(spec, memory, memory.data))
                    continue
                else:
                    t = launch_tensor(desc, spec, *[slots[k] for k in sources])
                results.append(t if target is None else fit(t, target))
        return tuple(results)

    @property
    def operands(self) -> tuple:
        """The specs of tensors, and the numbers."""
        return tuple([kind if type(kind) is Spec else number for kind, number in zip(self.kinds, self.numbers)])

    @property
    def saved_names(self):
        names = ("self", "other", "value", "scale")[: len(self.kinds)]
        return tuple([(*names, "result")[i] for i in self.recipe.saves if i == len(self.kinds) or type(self.kinds[i]) is Spec])


KEEPS = {"MulBackward0", "DivBackward0", "FloorDivideBackward0", "AddcdivBackward0"}


def _tensors(kinds) -> list[bool]:
    return [type(kind) is Spec for kind in kinds]


# PyTorch's node names count an operator's signatures: which one it is follows from the operands that are tensors.
SIGNATURES: dict[str, Callable[[Any], int]] = {
    "PowBackward0": lambda kinds: {(True, True): 1, (False, True): 2}.get(tuple(_tensors(kinds)), 0),
    "ClampBackward0": lambda kinds: 0 if sum(_tensors(kinds)) > 1 else 1,
    "ClampMinBackward0": lambda kinds: sum(_tensors(kinds)) - 1,
    "ClampMaxBackward0": lambda kinds: sum(_tensors(kinds)) - 1,
}


def node_class(name: str) -> type[Node]:
    full = name if "Backward" in name else f"{name}Backward0"
    members: dict[str, Any] = {"__slots__": (), "__module__": __name__, "keeps": full in KEEPS}
    if full in SIGNATURES:
        members["name"] = lambda self: f"{full[:-1]}{SIGNATURES[full](self.kinds)}"
    return type(full, (PointwiseNode,), members)


def _values(node: PointwiseNode, g: Tensor) -> dict[int, Any]:
    """What terms are made of: -1 the gradient, then the operands that were saved and the result."""
    recipe, operands = node.recipe, node.operands
    values: dict[int, Any] = {-1: g}
    if recipe.saves:
        n = len(operands)
        tensors = iter(node.saved)
        for k in recipe.saves:
            values[k] = next(tensors) if k == n or isinstance(operands[k], Spec) else operands[k]
    return values


def _gradients(node: PointwiseNode, g: Tensor, values: dict[int, Any] | None = None) -> tuple:
    """Gradients in operators, as they are recorded and seen: each term's expression, summed over broadcast dimensions, in the operand's dtype."""
    operands = node.operands
    if values is None:
        values = _values(node, g)
    results = []
    for i, term in enumerate(node.recipe.terms):
        if term is None or not node.needs[i]:
            results.append(None)
        elif term is PASS:
            results.append(fit(g, operands[i]))
        elif term is ZERO:
            spec = operands[i]
            results.append(TABLE["zeros_like"].call(g) if spec.shape == g.shape else TABLE["zeros"].call(spec.shape, dtype=spec.dtype, device=spec.device))
        else:
            operator, sources = term
            results.append(fit(operator(*[values[k] for k in sources]), operands[i]))
    return tuple(results)


def _prepare(node: PointwiseNode, g: Tensor, values: dict[int, Any]) -> None:
    """Keeps (numbers of the operands that were saved, a step an operand) for nodes and gradients of these kinds; steps are None where there is no kernel to launch.

    A step is None, PASS, or (descriptor, spec of what it computes, places of its operands, spec to fit it to or None); without a descriptor it is the
    gradient itself that is fitted. Behind SUMMED it is (a launch that gives the memory, spec of the gradient, places of its operands, SUMMED).
    """
    recipe, kinds = node.recipe, node.kinds
    if any(k >= 0 and isinstance(value, Tensor) and value.spec is not (kinds[k] if k < len(kinds) else node.specs) for k, value in values.items()):
        return  # a saved leaf was given other strides (`.data`): kernels for those are not for other nodes of these kinds
    steps: list | None = []
    for term, kind in zip(recipe.terms, kinds):
        if term is None:
            steps.append(None)
        elif term is PASS:
            steps.append(PASS if _fits(g.spec, kind) else (None, None, (), kind))
        elif term is ZERO:
            steps = None
            break
        else:
            operator, sources = term
            operands = tuple([values[k] for k in sources])
            key = tuple([o.spec if isinstance(o, Tensor) else type(o) for o in operands])
            operator = operator.for_operands(operands)
            plan = operator.plans.get(key) or operator.plans.put(key, operator.plan(operands))
            if plan.desc is None or plan.split:
                steps = None
                break
            steps.append(_summed(operator, operands, plan, kind, sources) or (plan.desc, plan.spec, sources, None if _fits(plan.spec, kind) else kind))
    places = tuple([k for k in recipe.saves if k == len(kinds) or type(kinds[k]) is Spec])
    recipe.steps.put((g.spec, node.specs, kinds), (places, steps))


def _summed(operator, operands: tuple, plan, kind: Spec, sources) -> tuple | None:
    """The step of a gradient that is summed over the dimensions along which its operand was broadcast: both in one kernel, so that no element is written before.

    None where nothing is summed, where elements would be rounded in between, and while somebody records kernels, who may have better use for the elements.
    """
    shape, dtype, tensors = plan.spec.shape, kind.dtype, [o for o in operands if isinstance(o, Tensor)]
    if shape == kind.shape or KEEP[0] or dtype.name not in ("float32", "float64") or any([o.spec.dtype is not dtype for o in (plan, *tensors)]):
        return None
    extra = len(shape) - len(kind.shape)
    dims = (*range(extra), *[extra + d for d, size in enumerate(kind.shape) if size == 1 and shape[extra + d] != 1])
    if not (dims and plan.spec.numel):
        return None
    kept = Layout.contiguous(tuple([1 if d in dims else size for d, size in enumerate(shape)]))
    ins = [(dtype, o.spec.layout.expand(shape)) if isinstance(o, Tensor) else SCALARS[type(o)] for o in operands]
    spec = kind.with_layout(Layout.contiguous(kind.shape))
    return plan_fold((E.rsum(operator.expr),), dims, [(dtype, kept)], ins, result_bytes=spec.nbytes).caller(), spec, sources, SUMMED


SCALARS = {float: ("param", "f64"), int: ("param", "i64"), bool: ("param", "i64")}


def _fits(spec: Spec, target: Spec) -> bool:
    return spec.shape == target.shape and spec.dtype is target.dtype


def fit(g: Tensor, spec: Spec) -> Tensor:
    """A gradient summed down to the shape, and cast to the dtype, of the operand it belongs to."""
    if g.spec.shape != spec.shape:
        g = sum_to(g, spec.shape)
    if g.spec.dtype is not spec.dtype:
        if g.spec.dtype.is_complex and not spec.dtype.is_complex:
            g = g.real
        g = TABLE["to"].call(g, spec.dtype)
    return g


def sum_to(g: Tensor, shape) -> Tensor:
    """g summed over the dimensions along which `shape` was broadcast to g's shape."""
    extra = g.ndim - len(shape)
    stretched = tuple([extra + d for d, size in enumerate(shape) if size == 1 and g.shape[extra + d] != 1])
    if not stretched:
        return TABLE["sum"].call(g, tuple(range(extra))) if extra else g  # [.., *shape] -> shape
    g = TABLE["sum"].call(g, (*range(extra), *stretched), True)  # [.., 1, ..]
    return TABLE["reshape"].call(g, shape) if extra else g
