"""Derivatives of log Γ as scalar expressions: polygamma of any order, for the operator and for the derivatives of lgamma and digamma.

lgamma, digamma and trigamma themselves are elementary functions of the expression language (expr.py, mathlib_single.py).
"""
from __future__ import annotations

import math

from . import expr as E

BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)  # B2, B4, …


def whole_power(x, n: int):
    """x**n for n >= 1, by squaring."""
    result = None
    while n:
        if n & 1:
            result = x if result is None else result * x
        n >>= 1
        if n:
            x = x * x
    return result


def hurwitz(s: int, x):
    """zeta(s, x) = sum of (x + k)^-s for whole s >= 2 and x > 0, by the formula of Euler and Maclaurin."""
    terms = max(10, s)
    total = sum((whole_power(1 / (x + k), s) for k in range(1, terms)), whole_power(1 / x, s))
    w = 1 / (x + terms)
    tail, power, rising = 1 / (s - 1) / w + 0.5, w, float(s)  # the rest, over w^s
    for j, b in enumerate(BERNOULLI):
        tail = tail + power * (b * rising / math.factorial(2 * j + 2))
        rising *= (s + 2 * j + 1) * (s + 2 * j + 2)
        power = power * (w * w)
    return total + whole_power(w, s) * tail


def _cotangent(n: int) -> list[int]:
    """d^n cot(u) / du^n as a polynomial in cot(u), lowest power first."""
    p = [0, 1]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(p)][1:]
        p = [0] * (len(slope) + 2)
        for k, c in enumerate(slope):  # times -(1 + cot²)
            p[k] -= c
            p[k + 2] -= c
    return p


def polygamma(n: int, x):
    """The n-th derivative of digamma, n >= 1; from the second on computed in float64. Below 0 by reflection: ψn(x) = (-1)^n ψn(1 - x) - π d^n cot(πx)/dx^n."""
    if n == 1:
        return E.trigamma(x)
    x = E.cast(x, "float64")
    sign = 1.0 if n % 2 else -1.0
    mirrored = x < 0
    value = hurwitz(n + 1, E.where(mirrored, 1 - x, x)) * (sign * math.factorial(n))
    r = (x - E.round(x)) * math.pi
    r = E.where(mirrored, r, 1.0)
    cot = E.cos(r) / E.sin(r)
    *lower, last = _cotangent(n)
    total = E.constant(float(last))
    for c in reversed(lower):
        total = total * cot + float(c)
    return E.where(mirrored, (1.0 if n % 2 == 0 else -1.0) * value - total * math.pi ** (n + 1), value)
