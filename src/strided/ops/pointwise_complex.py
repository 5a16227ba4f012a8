"""What complex operands change about a pointwise operator: which of its twins serves them, and how its expression meets real operands and numbers.

The arithmetic itself is rules in kernels/complex.py; the machinery that plans, calls and records is elementwise.py's.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..dispatch import PlanCache
from ..kernels import complex as rules
from ..kernels import expr as E
from ..tensor import Tensor
from . import real_only

_new = object.__new__


class ComplexTwins:
    """Part of `Pointwise`. A twin is the same operator with derivatives and a result dtype of its own for one choice of complex operands, so that nothing is
    asked on a real call."""

    name: str
    arity: int
    kind: str
    expr: E.Expr
    flops: int
    gradient: Callable[..., Any] | None

    def begin_as_real(self) -> None:
        self.complexes: tuple[bool, ...] = (False,) * self.arity  # which operands are complex
        self.twins: dict[Any, Any] = {}  # by `complexes`
        self.is_twin = False
        self.complex_function: Callable[..., Any] | None = None  # the expression for complex operands, where that is another one
        self.keeps_real = False  # real operands beside complex ones are used as real numbers, not as complex ones without an imaginary part

    def for_operands(self, operands) -> Any:
        """The operator, or its twin for the complex ones among `operands`."""
        complexes = tuple([o.spec.dtype.is_complex if isinstance(o, Tensor) else type(o) is complex for o in operands])
        if complexes == self.complexes:
            return self
        if any(complexes):
            try:
                real_only.check(self.name, *operands)
            except (NotImplementedError, RuntimeError):
                dtypes.result_type(*operands)  # dtypes that cannot be promoted are told first
                raise
        try:
            return self.twin(complexes)
        except NotImplementedError:  # a function that has no rule
            raise real_only.refusal(self.name, dtypes.result_type(*operands)) from None

    def _lends(self, kinds: tuple) -> bool:
        """Whether operands of the same kinds always have the same plan."""
        return True

    def twin(self, complexes: tuple[bool, ...]) -> Any:
        """This operator where the operands that `complexes` marks are complex. Raises NotImplementedError where a function in it has no rule for them."""
        self.twins.setdefault(self.complexes, self)
        found = self.twins.get(complexes)
        if found is None:
            found = self.copy()
            found.complexes, found.is_twin = complexes, True
            if self.complex_function is not None:
                found.expr, found.gradient = E.trace(self.complex_function, self.arity), None
            found.flops = E.flops(found._in_parts())
            self.twins[complexes] = found
        return found

    def copy(self) -> Any:
        """The same operator, to be given another expression: nothing planned yet, twins shared."""
        made = _new(type(self))
        made.__dict__.update(self.__dict__)
        made.plans, made.inplace_plans, made.vjps, made.recipes = PlanCache(), PlanCache(), {}, {}
        return made

    def _complex_inputs(self) -> frozenset[int]:
        return frozenset(i for i, is_complex in enumerate(self.complexes) if is_complex)

    def _in_parts(self):
        """The expression over the parts of the complex operands."""
        return rules.rewrite((self.expr,), self._complex_inputs())

    def _is_complex(self) -> bool:
        """Whether an operand or the result is complex."""
        return any(self.complexes) or self.result_is_complex()

    def result_is_complex(self) -> bool:
        return self.expr in rules.complex_nodes((self.expr,), self._complex_inputs())

    def _with_complex(self, operands, common, ins, compute):
        """The expression where a complex number is made of two slots and a real one beside complex ones has an imaginary part of 0, and the places of the
        complex numbers; `ins` and `compute` are brought up to date."""
        split, replaced = [], {}
        for i, operand in enumerate(operands):
            if type(operand) is complex:
                split.append(i)
                replaced[i] = E.pair(E.param(i), E.param(len(ins)))
                ins.append(("param", "f64"))
                compute.append(None)
            elif not isinstance(operand, Tensor):
                if not self.keeps_real:
                    replaced[i] = E.pair(E.param(i), 0.0)
            elif self.kind != "bool" and not self.complexes[i] and self.keeps_real:
                compute[i] = common.to_real()
        return E.substitute(self.expr, {E.param(i): e for i, e in replaced.items()}), tuple(split)

    def _of_kind(self, expression, i: int):
        """The gradient of operand i, complex if that is and else real; and which of the operands, of the gradient and of the result are complex."""
        result = self.result_is_complex()
        numbers = (*self.complexes, result, result)
        made = expression in rules.complex_nodes((expression,), frozenset(k for k, is_complex in enumerate(numbers) if is_complex))
        if expression.op != "constant" and made is not self.complexes[i]:
            expression = E.real(expression) if made else E.pair(expression, 0.0)
        return expression, numbers
