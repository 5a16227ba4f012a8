"""Derivatives of scalar expressions, as expressions: reverse mode over the graph, one rule an operation.

Holds the rules, which serve complex numbers, too, where a function is holomorphic, and PyTorch's conventions at kinks:
sign(0) = 0 for abs, ties of maximum and minimum share, clamp passes at its bounds, relu is 0 at 0.
Does not know tensors: summing over broadcast dimensions is the operators' business.
"""
from __future__ import annotations

import math
from collections.abc import Callable

from . import expr as E
from .complex import complex_nodes
from .expr import Expr, constant, where
from .gamma import polygamma


def gradients(expr: Expr, gradient, inputs, complex_inputs: frozenset[int] | None = None) -> tuple[Expr, ...]:
    """`gradient` * d expr / d param(i), for each i of `inputs`. `gradient` is an expression of its own inputs (or a number).

    complex_inputs: which inputs are complex (None: nothing is). The gradient of a real loss L is dL/dx + i dL/dy, as in PyTorch: `gradient` times the conjugate of a holomorphic function's
    derivative, and for a real input the real part.

    Where an operation does not depend on an input (the branch not taken, a tie lost) the result is 0 whatever `gradient` is, as in PyTorch.
    Reduction nodes are followed: a row's value collects the gradients of all elements of its row (with rsum).
    """
    order = E.topological((expr,))
    wanted = {E.param(i) for i in inputs}
    depends = set()
    for n in order:
        if n in wanted or (n.op != "stop" and any(a in depends for a in n.args)):
            depends.add(n)
    rows = row_nodes(order)
    complexes = complex_nodes((expr,), complex_inputs) if complex_inputs is not None else set()
    adjoint: dict[Expr, Expr] = {expr: gradient if isinstance(gradient, Expr) else constant(gradient)}
    for n in reversed(order):
        g = adjoint.get(n)
        if g is None or n not in depends or n in wanted or not n.args:
            continue
        rule = RULES.get(n.op)
        if rule is None:
            if n.op in FLAT:
                continue
            raise NotImplementedError(f"derivative of {n.op!r} is not known: give the operator a backward function of its own")
        parts = _of_complex(rule, n, g) if complexes and any(a in complexes for a in (n, *n.args)) else rule(n, g, *n.args)
        for argument, part in zip(n.args, parts):
            if part is None or argument not in depends or is_number(part, 0):
                continue
            if complexes and argument not in complexes:
                part = real(part)
            if argument in rows and n not in rows:
                part = E.rsum(part)
            previous = adjoint.get(argument)
            adjoint[argument] = part if previous is None else add(previous, part)
    zero = constant(0.0)
    return tuple(adjoint.get(E.param(i), zero) for i in inputs)


def derivative(expr: Expr, input: int) -> Expr:
    """d expr / d param(input)."""
    return gradients(expr, constant(1.0), (input,))[0]


def _of_complex(rule, n: Expr, g: Expr) -> tuple:
    """One gradient an argument of a node with complex numbers: of a function that is not holomorphic by its own rule, else from the real rule."""
    own = NOT_HOLOMORPHIC.get(n.op)
    if own is not None:
        return own(n, g, *n.args)
    return tuple([None if part is None else conj(part) for part in rule(n, conj(g), *n.args)])


def conj(a: Expr) -> Expr:
    if a.op == "conj":
        return a.args[0]
    return a if a.op in ("constant", "real", "imag", "abs", "angle") else E.conj(a)


def real(a: Expr) -> Expr:
    return a if a.op in ("constant", "real", "imag", "abs", "angle") else real(a.args[0]) if a.op == "conj" else E.real(a)


def row_nodes(order) -> set[Expr]:
    """The nodes of a topological order that hold one value a row: reductions, and what is made of them alone."""
    rows: set[Expr] = set()
    for n in order:
        if n.op in E.REDUCTIONS or (n.args and any(a in rows for a in n.args) and all(a in rows or a.op == "constant" for a in n.args)):
            rows.add(n)
    return rows


# ---- simplifying arithmetic: only on derivatives, where 0 * x may become 0 ------------------------------------------------------------------

def is_number(e, value) -> bool:
    return e.op == "constant" and e.data == value


def add(a, b):
    if is_number(a, 0):
        return b
    if is_number(b, 0):
        return a
    if b.op == "neg":
        return a - b.args[0]
    return a + b


def sub(a, b):
    if is_number(b, 0):
        return a
    return neg(b) if is_number(a, 0) else a - b


def mul(a, b):
    for x, y in ((a, b), (b, a)):
        if is_number(x, 0):
            return constant(0.0)
        if is_number(x, 1):
            return y
        if is_number(x, -1):
            return neg(y)
        masked = _masked(x, lambda inside, y=y: mul(inside, y))
        if masked is not None:
            return masked
    if a.op == "constant" and b.op == "constant":
        return constant(a.data * b.data)
    if a.op == "neg" and b.op == "neg":
        return mul(a.args[0], b.args[0])
    if a.op == "neg":
        return neg(mul(a.args[0], b))
    if b.op == "neg":
        return neg(mul(a, b.args[0]))
    return a * b


def div(a, b):
    if is_number(a, 0) or is_number(b, 1):
        return a
    if a.op == "neg":
        return neg(div(a.args[0], b))
    masked = _masked(a, lambda inside: div(inside, b))
    return a / b if masked is None else masked


def _masked(a, inside):
    """`inside` applied within a selection between something and 0, so that the branch not taken stays 0 where the other factor is not finite."""
    if a.op == "where":
        condition, x, y = a.args
        if is_number(x, 0):
            return where(condition, x, inside(y))
        if is_number(y, 0):
            return where(condition, inside(x), y)
    return None


def neg(a):
    if a.op == "neg":
        return a.args[0]
    masked = _masked(a, neg)
    if masked is not None:
        return masked
    return constant(-a.data) if a.op == "constant" else -a


# ---- rules: (node, gradient, *arguments) -> one gradient an argument ------------------------------------------------------------------------

def _div(n, g, a, b):
    return div(g, b), neg(div(mul(g, n), b))


def _exp(n, g, x):
    # Where exp(x) stands in 1 + exp(x) the gradient arrives divided by that sum (silu, softplus, logaddexp): times exp(x) it would be inf / inf for
    # large x, so the ratio exp(x) / (1 + exp(x)) is written in a form that stays finite.
    masked = _masked(g, lambda inside: _exp(n, inside, x)[0])
    if masked is not None:
        return masked,
    inner = g.args[0] if g.op == "neg" else g
    if inner.op == "div" and _one_plus(inner.args[1], n):
        q, b = inner.args
        return (neg(mul(q, 1 - 1 / b)) if g.op == "neg" else mul(q, E.sigmoid(x))),
    return mul(g, n),


def _one_plus(n, e) -> bool:
    return n.op == "add" and any(a is e and is_number(b, 1) for a, b in (n.args, n.args[::-1]))


def _pow(n, g, x, y):
    c = y.data if y.op == "constant" else None
    if c is None:
        gx = where(E.node("eq", y, 0), 0.0, mul(g, mul(y, x ** (y - 1))))
    else:
        gx = constant(0.0) if c == 0 else g if c == 1 else mul(g, mul(y, x if c == 2 else x ** constant(c - 1)))
    settled = E.node("and", E.node("eq", x, 0), E.node("ge", y, 0))
    return gx, where(settled, 0.0, mul(g, mul(n, E.log(x)))) if c is None else None


def _max(n, g, a, b, wins):
    half = mul(g, constant(0.5))
    tie = E.node("eq", a, b)
    return where(tie, half, where(E.node(wins[0], a, b), g, 0.0)), where(tie, half, where(E.node(wins[1], a, b), g, 0.0))


def _fmax(n, g, a, b, wins):
    first = E.node("or", E.node(wins, a, b), E.isnan(b))
    return where(first, g, 0.0), where(first, 0.0, g)


def _clamp(n, g, x, low, high):
    inside = E.node("and", x >= low, x <= high)
    return (where(inside, g, 0.0), where(E.node("and", low < high, x < low), g, 0.0),
            where(E.node("or", x > high, high < low), g, 0.0))


def _atan2(n, g, y, x):
    square = y * y + x * x
    scaled = where(E.node("eq", square, 0), 0.0, div(g, square))
    return mul(scaled, x), neg(mul(scaled, y))


def _angle(n, g, z):
    size = E.abs(z)
    turned = E.pair(neg(E.imag(z)), E.real(z))  # iz: a step across the direction of z turns it by its length / |z|
    return where(E.node("eq", size, 0), 0.0, mul(g, div(div(turned, size), size))),


def _sgn(n, g, z):
    size = E.abs(z)
    along = mul(E.real(mul(g, conj(n))), n)  # the part of g along the direction of z, which sgn does not see
    return where(E.node("eq", size, 0), 0.0, div(sub(g, along), size)),


def _complex_pow(n, g, x, y):
    below = y - 1 if y.op != "constant" else constant(y.data - 1)
    gx = where(E.node("eq", y, 0), 0.0, mul(g, conj(mul(y, x ** below))))
    settled = E.node("and", E.node("eq", x, 0), E.node("ge", E.real(y), 0))
    return gx, where(settled, 0.0, mul(g, conj(mul(n, E.log(x)))))


def _extreme_of_row(n, g, x):
    chosen = E.node("eq", x, n)
    return where(chosen, div(g, E.rsum(where(chosen, 1.0, 0.0))), 0.0),


RULES: dict[str, Callable[..., tuple]] = {
    "add": lambda n, g, a, b: (g, g),
    "sub": lambda n, g, a, b: (g, neg(g)),
    "mul": lambda n, g, a, b: (mul(g, b), mul(g, a)),
    "div": _div,
    "neg": lambda n, g, x: (neg(g),),
    "reciprocal": lambda n, g, x: (neg(mul(g, mul(n, n))),),
    "fma": lambda n, g, a, b, c: (mul(g, b), mul(g, a), g),
    "mod": lambda n, g, a, b: (g, neg(mul(g, E.floor(a / b)))),
    "fmod": lambda n, g, a, b: (g, neg(mul(g, E.trunc(a / b)))),
    "pow": _pow,
    "abs": lambda n, g, x: (mul(g, E.sign(x)),),
    "copysign": lambda n, g, x, y: (mul(g, where(E.node("eq", x, 0), 0.0, where(E.node("eq", E.signbit(x), E.signbit(y)), 1.0, -1.0))), None),
    "exp": _exp,
    "exp2": lambda n, g, x: (mul(mul(g, n), constant(math.log(2))),),
    "expm1": lambda n, g, x: (mul(g, add(n, constant(1))),),
    "log": lambda n, g, x: (div(g, x),),
    "log1p": lambda n, g, x: (div(g, add(x, constant(1))),),
    "log2": lambda n, g, x: (div(g, mul(x, constant(math.log(2)))),),
    "log10": lambda n, g, x: (div(g, mul(x, constant(math.log(10)))),),
    "sqrt": lambda n, g, x: (div(g, mul(constant(2), n)),),
    "rsqrt": lambda n, g, x: (mul(mul(g, constant(-0.5)), mul(n, mul(n, n))),),
    "sin": lambda n, g, x: (mul(g, E.cos(x)),),
    "cos": lambda n, g, x: (neg(mul(g, E.sin(x))),),
    "tan": lambda n, g, x: (mul(g, n * n + 1),),
    "asin": lambda n, g, x: (mul(g, E.rsqrt(1 - x * x)),),
    "acos": lambda n, g, x: (neg(mul(g, E.rsqrt(1 - x * x))),),
    "atan": lambda n, g, x: (div(g, x * x + 1),),
    "atan2": _atan2,
    "sinh": lambda n, g, x: (mul(g, E.cosh(x)),),
    "cosh": lambda n, g, x: (mul(g, E.sinh(x)),),
    "tanh": lambda n, g, x: (mul(g, 1 - n * n),),
    "asinh": lambda n, g, x: (mul(g, E.rsqrt(x * x + 1)),),
    "acosh": lambda n, g, x: (mul(g, E.rsqrt(x * x - 1)),),
    "atanh": lambda n, g, x: (div(g, 1 - x * x),),
    "erf": lambda n, g, x: (mul(mul(g, constant(2 / math.sqrt(math.pi))), E.exp(-(x * x))),),
    "erfc": lambda n, g, x: (mul(mul(g, constant(-2 / math.sqrt(math.pi))), E.exp(-(x * x))),),
    "erfinv": lambda n, g, x: (mul(mul(g, constant(math.sqrt(math.pi) / 2)), E.exp(n * n)),),
    "ndtr": lambda n, g, x: (mul(mul(g, constant(1 / math.sqrt(2 * math.pi))), E.exp(x * x * -0.5)),),
    "lgamma": lambda n, g, x: (mul(g, E.digamma(x)),),
    "digamma": lambda n, g, x: (mul(g, E.trigamma(x)),),
    "trigamma": lambda n, g, x: (mul(g, polygamma(2, x)),),
    "relu": lambda n, g, x: (where(E.node("le", n, 0), 0.0, g),),
    "sigmoid": lambda n, g, x: (mul(g, mul(1 - n, n)),),
    "hypot": lambda n, g, a, b: (mul(g, div(a, n)), mul(g, div(b, n))),
    "maximum": lambda n, g, a, b: _max(n, g, a, b, ("gt", "lt")),
    "minimum": lambda n, g, a, b: _max(n, g, a, b, ("lt", "gt")),
    "fmax": lambda n, g, a, b: _fmax(n, g, a, b, "ge"),
    "fmin": lambda n, g, a, b: _fmax(n, g, a, b, "le"),
    "clamp": _clamp,
    "clamp_min": lambda n, g, x, low: (where(x >= low, g, 0.0), where(x < low, g, 0.0)),
    "clamp_max": lambda n, g, x, high: (where(x <= high, g, 0.0), where(x > high, g, 0.0)),
    "where": lambda n, g, c, a, b: (None, where(c, g, 0.0), where(c, 0.0, g)),
    "cast": lambda n, g, x: (g,),
    "rsum": lambda n, g, x: (g,),
    "rmax": _extreme_of_row,
    "rmin": _extreme_of_row,
}

RULES.update({
    "real": lambda n, g, z: (g,),
    "imag": lambda n, g, z: (constant(0.0),),
    "conj": lambda n, g, z: (g,),
    "sgn": lambda n, g, z: (constant(0.0),),
    "angle": lambda n, g, z: (constant(0.0),),
    "pair": lambda n, g, x, y: (g, constant(0.0)),
})

# Of complex arguments or results, where the derivative is not a complex number that multiplies the gradient.
NOT_HOLOMORPHIC: dict[str, Callable[..., tuple]] = {
    "real": lambda n, g, z: (g,),
    "imag": lambda n, g, z: (E.pair(0.0, g),),
    "conj": lambda n, g, z: (conj(g),),
    "abs": lambda n, g, z: (mul(g, E.sgn(z)),),
    "angle": _angle,
    "sgn": _sgn,
    "pair": lambda n, g, x, y: (real(g), E.imag(g)),
    "pow": _complex_pow,
    "acosh": lambda n, g, z: (mul(g, conj(E.rsqrt(z - 1) * E.rsqrt(z + 1))),),  # on the side of the cut that acosh is on
}

# Steps and truth values: the derivative is 0 wherever there is one.
FLAT = frozenset("floor ceil trunc round sign floordiv truncdiv lt le gt ge eq ne and or xor invert shl shr isnan isinf isfinite signbit logical_and "
                 "logical_or logical_xor logical_not stop position extent rany rall rargmax rargmin".split())
