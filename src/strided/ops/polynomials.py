"""Orthogonal polynomials of `torch.special`: Chebyshev (four kinds, and shifted to [0, 1]), Hermite (two kinds), Laguerre, Legendre.

The degree may differ from element to element, so the three-term recurrences run in NumPy, in the result's own precision as in PyTorch.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..autograd import backward, record, tracking
from .hostwise import common_float, hostwise
from .table import TABLE, operator


def recurrence(x: Any, n: Any, second: Any, step: Callable[..., Any]) -> Any:
    """p_n(x), with p_0 = 1, p_1 = `second` and p_k = step(k, p_{k-1}, p_{k-2}); 0 for n < 0. Each element stops at its own degree."""
    import numpy

    result = numpy.where(n == 0, numpy.ones_like(x), numpy.where(n == 1, second, numpy.zeros_like(x)))
    before, current = numpy.ones_like(x), second
    for k in range(2, int(n.max(initial=0)) + 1):
        before, current = current, step(k, current, before)
        result = numpy.where(n == k, current, result)
    return result


def _fused(a, b, c):
    """a * b - c, rounded once in float32: the recurrences lose digits by cancellation, and PyTorch's are compiled to such steps."""
    if c.dtype != "float32":
        return a * b - c
    return (a.astype("float64") * b - c).astype("float32")


def _degree(n):
    import numpy

    return numpy.trunc(numpy.nan_to_num(n, posinf=0, neginf=-1)).astype("int64")


def _sign(x, n):
    """x^n for x = ±1."""
    import numpy

    return numpy.where((x > 0) | (n % 2 == 0), 1, -1).astype(x.dtype)


def _trigonometric(kind, x, n, angle):
    """The Chebyshev polynomials inside (-1, 1) by their cosines and sines."""
    import numpy

    sin, cos = numpy.sin, numpy.cos
    if kind == "t":
        return cos(n * angle)
    if kind == "u":
        return sin((n + 1) * angle) / sin(angle)
    half = angle / 2
    return cos((n + 0.5) * angle) / cos(half) if kind == "v" else sin((n + 0.5) * angle) / sin(half)


def _chebyshev(kind):
    """T, U, V, W: one recurrence from x, 2x, 2x - 1, 2x + 1. Degrees above 6 (T) or 8 go through the angle, degrees at ±1 have closed forms."""

    def function(x, n):
        import numpy

        n = _degree(n)
        border = 6 if kind == "t" else 8
        inside, ends = (abs(x) < 1) & (n > border), abs(x) == 1
        twice = x + x
        second = {"t": x, "u": twice, "v": twice - 1, "w": twice + 1}[kind]
        result = recurrence(x, numpy.where(inside | ends, -1, n), second, lambda k, p, q: _fused(twice, p, q))
        angle = numpy.arccos(numpy.where(inside, x, 0))
        result = numpy.where(inside, _trigonometric(kind, x, n.astype(x.dtype), angle), result)
        grow = 2 * n + 1
        if kind == "t":
            at_ends = _sign(x, n)
        elif kind == "u":
            at_ends = _sign(x, n) * (n + 1)
        elif kind == "v":
            at_ends = numpy.where(x > 0, 1, numpy.where(n % 2 == 0, grow, -grow))
        else:
            at_ends = numpy.where(x > 0, grow, numpy.where(n % 2 == 0, 1, -1))
        return numpy.where(n < 0, 0, numpy.where(ends, at_ends, result))

    return function


def _shifted(kind):
    plain = _chebyshev(kind)
    return lambda x, n: plain(x + x - 1, n)


def _hermite_h(x, n):
    twice = x + x
    return recurrence(x, _degree(n), twice, lambda k, p, q: _fused(twice, p, 2 * (k - 1) * q))


def _hermite_he(x, n):
    return recurrence(x, _degree(n), x.copy(), lambda k, p, q: _fused(x, p, (k - 1) * q))


def _laguerre(x, n):
    return recurrence(x, _degree(n), 1 - x, lambda k, p, q: _fused(2 * (k - 1) + (1 - x), p, (k - 1) * q) / k)


def _legendre(x, n):
    return recurrence(x, _degree(n), x.copy(), lambda k, p, q: _fused((2 * k - 1) * x, p, (k - 1) * q) / k)


def _register(name: str, function: Callable[..., Any], doc: str) -> None:
    @backward("".join(["Special", *(part.capitalize() for part in name.split("_"))]))
    def node_class(node, g):
        raise NotImplementedError(f"the derivative for 'special_{name}' is not implemented.\n  Write the polynomial out in x to differentiate it.")

    @operator(name, namespace="special", method=False, out=True)
    def call(input, n):
        dtype = common_float(input, n)
        out = hostwise(name, function, input, n, dtype=dtype, working="float64" if dtype is dtypes.float64 else "float32")
        if tracking(input, n):
            record(node_class, (input, n), out)
        return out

    TABLE[name].doc = call.__doc__ = doc


for _kind, _order in zip("tuvw", ("first", "second", "third", "fourth")):
    _register(f"chebyshev_polynomial_{_kind}", _chebyshev(_kind), f"The Chebyshev polynomial of the {_order} kind of degree n at input; n is a number or a tensor.")
    _register(f"shifted_chebyshev_polynomial_{_kind}", _shifted(_kind), f"The Chebyshev polynomial of the {_order} kind of degree n at 2 * input - 1.")
_register("hermite_polynomial_h", _hermite_h, "The physicist's Hermite polynomial of degree n at input.")
_register("hermite_polynomial_he", _hermite_he, "The probabilist's Hermite polynomial of degree n at input.")
_register("laguerre_polynomial_l", _laguerre, "The Laguerre polynomial of degree n at input.")
_register("legendre_polynomial_p", _legendre, "The Legendre polynomial of degree n at input.")
