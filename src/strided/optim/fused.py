"""One pass over memory for a whole update: a rule's formula becomes one kernel that reads parameter, gradient and state and writes them back.

Holds `fused_update`, which turns a formula into an operator, and the functions that formulas may use besides arithmetic: they take elements of a
kernel and, for a step that is differentiated through, whole tensors. The formulas are with their rules.
"""
import functools

from .. import dispatch, errors, ops
from ..autograd.modes import is_grad_enabled
from ..kernels import expr as E
from ..kernels.map import build_map
from ..ops.elementwise import check_overlap
from ..ops.table import operator


def _either(name):
    of_elements, of_tensors = getattr(E, name), getattr(ops, name)

    def function(*args):
        return (of_elements if any(isinstance(a, E.Expr) for a in args) else of_tensors)(*args)

    return function


absolute, clamp, maximum, sign, sqrt, where = (_either(name) for name in ("abs", "clamp", "maximum", "sign", "sqrt", "where"))


def fused_update(name, written, tensors, numbers):
    """Decorates a formula over `tensors` elements and `numbers` numbers that returns new values of the first `written` tensors.

    The result is a function of that many tensors (one shape, one device) and floats; it writes in place, outside the graph. Arithmetic is in the
    parameter's compute dtype: float32 for 16-bit parameters. The formula's keyword arguments are choices (bools): each combination that is asked for
    becomes an expression of its own, so that nothing is computed, or counted, that an option left out.

    In grad mode (an optimiser with `differentiable=True`) the formula runs on the tensors themselves and is recorded; its numbers may then be tensors, too.
    """

    def make(formula):
        plans = dispatch.PlanCache()

        @functools.cache
        def exprs(choices):
            found = E.trace(functools.partial(formula, **dict(choices)), tensors + numbers)
            return found if isinstance(found, tuple) else (found,)

        def plan(operands, choices):
            shape, common = operands[0].shape, operands[0].dtype.compute
            for t in operands:
                if t.shape != shape:
                    raise RuntimeError(f"{name}: parameter, gradient and state must have one shape, but got {list(shape)} and {list(t.shape)}")
            errors.check_devices(name, operands)
            for t in operands[:written]:
                check_overlap(t)
            if operands[0].is_meta:
                return None
            ins = [(t.dtype, t.spec.layout) for t in operands]
            return build_map(exprs(choices), ins[:written], [*ins, *[("param", "f64")] * numbers], compute=[common] * tensors + [None] * numbers)

        def recorded(operands, choices):
            new = formula(*[t.clone() for t in operands[:tensors]], *operands[tensors:], **choices)
            for t, value in zip(operands[:written], new if isinstance(new, tuple) else (new,)):
                t.copy_(value)
            return operands[0]

        @operator(name, function=False, method=False, writes=True, flops=lambda args, kwargs, result: E.flops(exprs(tuple(kwargs.items()))) * args[0].numel())
        def update(*operands, **choices):
            given = operands[:tensors]
            choices = tuple(choices.items())
            key = (choices, *[t.spec for t in given])
            found = plans.get(key)
            if found is None:
                found = plans.put(key, (plan(given, choices),))
            if found[0] is not None:
                pointers = [t.ptr for t in given]
                dispatch.launch(found[0], *pointers[:written], *pointers, *map(float, operands[tensors:]))
            for t in given[:written]:
                t.mem.version += 1
            return given[0]

        def step(*operands, **choices):
            return recorded(operands, choices) if is_grad_enabled() else update(*operands, **choices)

        return step

    return make
