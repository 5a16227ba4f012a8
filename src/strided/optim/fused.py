"""What update rules are written with: the functions that formulas may use besides arithmetic, and the count of steps.

The functions take elements of a kernel and, for a step that is differentiated through, whole tensors. `fused_update`, which turns a formula into one launch
for all parameters, is in ops/many.py; the formulas are with their rules.
"""
from threading import get_ident

from .. import ops
from ..autograd.modes import no_grad
from ..kernels import expr as E
from ..kernels.native import read_scalar
from ..kernels.recipes import LISTENERS
from ..ops.many import fused_update


def _either(name):
    of_elements, of_tensors = getattr(E, name), getattr(ops, name)

    def function(*args):
        return (of_elements if any(isinstance(a, E.Expr) for a in args) else of_tensors)(*args)

    return function


absolute, clamp, maximum, sign, sqrt, where = (_either(name) for name in ("abs", "clamp", "maximum", "sign", "sqrt", "where"))


@fused_update("count_steps_", 1, 1, 0)
def _count(step):
    return step + 1


def counted(members):
    """Counts a step in the state of each (parameter, gradient, state). Returns [(number of the step, from 1; the members whose step it is)]."""
    with no_grad():
        _count([(state["step"],) for _, _, state in members])
    listener = LISTENERS.get(get_ident()) if LISTENERS else None
    return by_value(members, "step") if listener is None else listener.counts(by_value, members)


def by_value(members, name):
    """[(number, the members whose state has that number under the name)]."""
    found = {}
    for member in members:
        kept = member[2][name]
        number = read_scalar(kept.spec.dtype.code, kept.ptr)
        if number in found:
            found[number].append(member)
        else:
            found[number] = [member]
    return found.items()


def start(members, *names):
    """Gives members without a state a step count of zero and, under each name, zeros of their parameter's shape."""
    for p, _, state in members:
        if not state:
            state["step"] = ops.tensor(0.0)
            for name in names:
                state[name] = ops.zeros_like(p)


def operands(members, *names):
    """[(parameter, state under each name, gradient)], as update rules take them."""
    return [(p, *[state[name] for name in names], grad) for p, grad, state in members]
