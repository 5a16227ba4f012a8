"""Scalar expressions: what one element of a result is, as an immutable graph that kernels and derivatives are made from.

Holds the nodes, the functions that build them, tracing, and questions about a graph (its key, inputs, flops). Nodes carry no dtype: types are inferred
when `lower.py` writes the graph down for given inputs. Derivatives live in `derivative.py`, loops in the templates (`map.py`, `fold.py`).
"""
from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any

ARITHMETIC = frozenset(
    "add sub mul div floordiv mod fmod truncdiv pow neg abs exp exp2 expm1 log log1p log2 log10 sqrt rsqrt reciprocal sin cos tan asin acos atan atan2 "
    "sinh cosh tanh asinh acosh atanh erf erfc erfinv ndtr lgamma digamma trigamma floor ceil trunc round hypot fma rsum rprod".split())
COSTLY = frozenset(  # about an order of magnitude more work an element than an addition
    "floordiv mod fmod truncdiv pow exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc erfinv "
    "ndtr lgamma digamma trigamma sigmoid hypot".split())
REDUCTIONS = frozenset("rsum rprod rmax rmin rany rall rargmax rargmin".split())
FLOPS = {"sigmoid": 4, "ndtr": 4}  # negate, exp, add, divide; scale, erf, add, halve

_TABLE: dict[tuple, Expr] = {}  # structure -> the one node of that structure


class Expr:
    """One node. Equal structure is the same object, so `is` and dictionaries compare expressions; `==` builds a comparison node."""

    __slots__ = ("op", "args", "data")
    op: str
    args: tuple[Expr, ...]
    data: Any  # the number of a constant, the index of a param, the dtype's name of a cast

    def __bool__(self):
        raise TypeError("a symbolic scalar has no truth value while it is traced: use where(condition, a, b) instead of `if`, and & | ~ instead of `and or not`")

    __hash__ = object.__hash__

    @property
    def key(self):
        """Text that names this graph's structure, the same in every process."""
        return key_of(self)

    def __repr__(self):
        return f"Expr({self.key})"

    def __add__(self, other): return node("add", self, other)
    def __radd__(self, other): return node("add", other, self)
    def __sub__(self, other): return node("sub", self, other)
    def __rsub__(self, other): return node("sub", other, self)
    def __mul__(self, other): return node("mul", self, other)
    def __rmul__(self, other): return node("mul", other, self)
    def __truediv__(self, other): return node("div", self, other)
    def __rtruediv__(self, other): return node("div", other, self)
    def __floordiv__(self, other): return node("floordiv", self, other)
    def __rfloordiv__(self, other): return node("floordiv", other, self)
    def __mod__(self, other): return node("mod", self, other)
    def __rmod__(self, other): return node("mod", other, self)
    def __pow__(self, other): return node("pow", self, other)
    def __rpow__(self, other): return node("pow", other, self)
    def __lt__(self, other): return node("lt", self, other)
    def __le__(self, other): return node("le", self, other)
    def __gt__(self, other): return node("gt", self, other)
    def __ge__(self, other): return node("ge", self, other)
    def __eq__(self, other): return node("eq", self, other)
    def __ne__(self, other): return node("ne", self, other)
    def __and__(self, other): return node("and", self, other)
    def __rand__(self, other): return node("and", other, self)
    def __or__(self, other): return node("or", self, other)
    def __ror__(self, other): return node("or", other, self)
    def __xor__(self, other): return node("xor", self, other)
    def __rxor__(self, other): return node("xor", other, self)
    def __lshift__(self, other): return node("shl", self, other)
    def __rlshift__(self, other): return node("shl", other, self)
    def __rshift__(self, other): return node("shr", self, other)
    def __rrshift__(self, other): return node("shr", other, self)
    def __invert__(self): return node("invert", self)
    def __neg__(self): return node("neg", self)
    def __pos__(self): return self
    def __abs__(self): return node("abs", self)


def node(op, *args, data=None):
    """The node `op(*args)`; Python numbers among the arguments become constants."""
    args = tuple(a if isinstance(a, Expr) else constant(a) for a in args)
    return _intern(op, args, data, data)


def _intern(op, args, data, data_key):
    # Nodes never leave the table, so the identities in its keys stay valid.
    key = (op, tuple(id(a) for a in args), data_key)
    found = _TABLE.get(key)
    if found is None:
        found = object.__new__(Expr)
        found.op, found.args, found.data = op, args, data
        found = _TABLE.setdefault(key, found)
    return found


def constant(value):
    """A number that is part of the expression. Ints and floats take the type of what they meet (PyTorch's rule for Python scalars)."""
    if isinstance(value, complex):
        return pair(value.real, value.imag)
    if not isinstance(value, (bool, int, float)):
        if not hasattr(value, "__index__") and not hasattr(value, "__float__"):
            raise TypeError(f"cannot use {type(value).__name__} in a scalar expression: pass a Python number or another expression")
        value = value.__index__() if hasattr(value, "__index__") else float(value)
    return _intern("constant", (), value, _number_text(value))


def _number_text(value):
    # float.hex would merge NaNs; bits keep -0.0 and every NaN apart
    if isinstance(value, float):
        return f"f{struct.unpack('<q', struct.pack('<d', value))[0]:x}"
    return f"b{int(value)}" if isinstance(value, bool) else f"i{value}"


def param(index):
    """Input `index` of the traced function: a tensor's element or a run-time scalar."""
    return node("param", data=index)


def cast(x, dtype):
    """x converted to `dtype` (a DType or its name). 16-bit floats round there and go on as float32."""
    return node("cast", x, data=getattr(dtype, "name", dtype))


def trace(function, arity):
    """Run `function` on `arity` symbolic scalars; the expression(s) it returns, numbers made constants."""
    result = function(*(param(i) for i in range(arity)))
    if isinstance(result, (tuple, list)):
        return tuple(r if isinstance(r, Expr) else constant(r) for r in result)
    return result if isinstance(result, Expr) else constant(result)


# ---- functions ------------------------------------------------------------------------------------------------------------------------------

def _function(op: str, arity: int, doc: str) -> Callable[..., Expr]:
    def build(*args):
        if len(args) != arity:
            raise TypeError(f"{op}() takes {arity} arguments, {len(args)} were given")
        return node(op, *args)

    build.__name__, build.__doc__ = op, doc
    return build


exp = _function("exp", 1, "e**x")
exp2 = _function("exp2", 1, "2**x")
expm1 = _function("expm1", 1, "exp(x) - 1, accurate near 0")
log = _function("log", 1, "natural logarithm")
log1p = _function("log1p", 1, "log(1 + x), accurate near 0")
log2 = _function("log2", 1, "logarithm to base 2")
log10 = _function("log10", 1, "logarithm to base 10")
sqrt = _function("sqrt", 1, "square root; NaN below 0")
rsqrt = _function("rsqrt", 1, "1 / sqrt(x)")
reciprocal = _function("reciprocal", 1, "1 / x")
sin = _function("sin", 1, "sine of x radians")
cos = _function("cos", 1, "cosine of x radians")
tan = _function("tan", 1, "tangent of x radians")
asin = _function("asin", 1, "arc sine")
acos = _function("acos", 1, "arc cosine")
atan = _function("atan", 1, "arc tangent")
atan2 = _function("atan2", 2, "angle of the point (y, x): atan2(sine, cosine)")
sinh = _function("sinh", 1, "hyperbolic sine")
cosh = _function("cosh", 1, "hyperbolic cosine")
tanh = _function("tanh", 1, "hyperbolic tangent")
asinh = _function("asinh", 1, "inverse hyperbolic sine")
acosh = _function("acosh", 1, "inverse hyperbolic cosine")
atanh = _function("atanh", 1, "inverse hyperbolic tangent")
erf = _function("erf", 1, "error function")
erfc = _function("erfc", 1, "1 - erf(x)")
erfinv = _function("erfinv", 1, "the x whose erf is given")
ndtr = _function("ndtr", 1, "the share of the standard normal distribution below x: (1 + erf(x / sqrt(2))) / 2")
lgamma = _function("lgamma", 1, "logarithm of the gamma function's magnitude")
digamma = _function("digamma", 1, "derivative of lgamma")
trigamma = _function("trigamma", 1, "derivative of digamma")
sigmoid = _function("sigmoid", 1, "1 / (1 + exp(-x))")
floor = _function("floor", 1, "largest whole number <= x; integers as they are")
ceil = _function("ceil", 1, "smallest whole number >= x; integers as they are")
trunc = _function("trunc", 1, "towards zero; integers as they are")
round = _function("round", 1, "nearest whole number, halves to even; integers as they are")
abs = _function("abs", 1, "magnitude")
neg = _function("neg", 1, "-x")
sign = _function("sign", 1, "-1, 0 or 1; 0 for NaN")
maximum = _function("maximum", 2, "the larger; NaN if either is")
minimum = _function("minimum", 2, "the smaller; NaN if either is")
fmax = _function("fmax", 2, "the larger; a NaN only if both are")
fmin = _function("fmin", 2, "the smaller; a NaN only if both are")
pow = _function("pow", 2, "x**y; integers stay integers (a negative exponent truncates towards 0)")
fmod = _function("fmod", 2, "remainder with the sign of x (C's)")
truncdiv = _function("truncdiv", 2, "quotient rounded towards zero; integers stay integers")
hypot = _function("hypot", 2, "sqrt(x*x + y*y)")
copysign = _function("copysign", 2, "magnitude of x, sign of y")
fma = _function("fma", 3, "x*y + z, rounded once")
relu = _function("relu", 1, "x where positive, 0 where negative; NaN stays. Its derivative at 0 is 0, where that of maximum(x, 0) is 1/2")
where = _function("where", 3, "y where x holds, else z")
isnan = _function("isnan", 1, "whether x is NaN")
isinf = _function("isinf", 1, "whether x is an infinity")
isfinite = _function("isfinite", 1, "whether x is neither infinite nor NaN")
signbit = _function("signbit", 1, "whether the sign is negative (-0.0 too)")
logical_and = _function("logical_and", 2, "x != 0 and y != 0")
logical_or = _function("logical_or", 2, "x != 0 or y != 0")
logical_xor = _function("logical_xor", 2, "exactly one of x != 0, y != 0")
logical_not = _function("logical_not", 1, "x == 0")
real = _function("real", 1, "real part of a complex number; a real one as it is")
imag = _function("imag", 1, "imaginary part; 0 for a real number")
conj = _function("conj", 1, "complex conjugate; a real number as it is")
angle = _function("angle", 1, "angle of a complex number in (-pi, pi]")
sgn = _function("sgn", 1, "x / |x|, 0 at 0: the sign of a real number, the direction of a complex one")
pair = _function("pair", 2, "the complex number x + iy, from two real ones")
rounded = _function("rounded", 1, "x as a number of its own: it is not fused with what uses it into one multiply-add")
stop_gradient = _function("stop", 1, "x, a constant to derivatives")

rsum = _function("rsum", 1, "sum of x along the folded axis")
rprod = _function("rprod", 1, "product of x along the folded axis")
rmax = _function("rmax", 1, "largest x along the folded axis; NaN if any is")
rmin = _function("rmin", 1, "smallest x along the folded axis; NaN if any is")
rany = _function("rany", 1, "whether any x along the folded axis is non-zero")
rall = _function("rall", 1, "whether all x along the folded axis are non-zero")
rargmax = _function("rargmax", 1, "position of the first largest x (or first NaN) along the folded axis")
rargmin = _function("rargmin", 1, "position of the first smallest x (or first NaN) along the folded axis")


def position():
    """Index along the folded axis, an int64 (fold template only)."""
    return node("position")


def extent():
    """Length of the folded axis, an int64 (fold template only)."""
    return node("extent")


def clamp(x, low=None, high=None):
    """x limited to [low, high] (either may be None); NaN stays. The derivative is 1 inside and at both bounds."""
    if low is None and high is None:
        raise ValueError("clamp: at least one of 'min' or 'max' must not be None")
    if low is None:
        return node("clamp_max", x, high)
    return node("clamp_min", x, low) if high is None else node("clamp", x, low, high)


# ---- questions ------------------------------------------------------------------------------------------------------------------------------

def topological(exprs, known=()):
    """Every node below `exprs`, each once, arguments before their users. Nodes in `known` (a dict or set) are left out, with all that only they need."""
    order, seen = [], set()
    stack = list(reversed(exprs))
    while stack:
        top = stack[-1]
        if top in seen or top in known:
            stack.pop()
            continue
        waiting = [a for a in reversed(top.args) if a not in seen and a not in known]
        if waiting:
            stack.extend(waiting)
        else:
            seen.add(top)
            order.append(stack.pop())
    return order


def _remembered(question):
    """Answers of a function of expressions, kept by the identity of the nodes (which live for ever)."""
    answers = {}

    @functools.wraps(question)
    def ask(exprs):
        exprs = (exprs,) if isinstance(exprs, Expr) else tuple(exprs)
        ids = tuple(map(id, exprs))
        answer = answers.get(ids)
        if answer is None:
            answer = answers[ids] = question(exprs)
        return answer

    return ask


@_remembered
def key_of(exprs):
    """Stable text for several expressions together: one numbered definition a node, then the results."""
    number, parts = {}, []
    for i, n in enumerate(topological(exprs)):
        number[n] = i
        data = _number_text(n.data) if n.op == "constant" else "" if n.data is None else str(n.data)
        parts.append(" ".join([n.op + (":" + data if data else ""), *(str(number[a]) for a in n.args)]))
    return ";".join(parts) + ">" + ",".join(str(number[e]) for e in exprs)


@_remembered
def free_inputs(expr):
    """Indices of the inputs that `expr` reads, sorted. Takes one expression or a sequence of them."""
    return tuple(sorted(n.data for n in topological(expr) if n.op == "param"))


@_remembered
def flops(expr):
    """Floating-point operations an element: each arithmetic node once; comparisons, selects, casts and loads count 0."""
    return sum(FLOPS.get(n.op, n.op in ARITHMETIC) for n in topological(expr))


@_remembered
def work(expr):
    """Rough cost of an element in units of one addition, for choosing how finely to split."""
    return sum(12 if n.op in COSTLY else 1 for n in topological(expr) if n.op not in ("param", "constant"))


def substitute(expr, mapping):
    """`expr` with the nodes of `mapping` replaced."""
    new = dict(mapping)
    for n in topological((expr,), new):
        new[n] = n if not n.args else rebuild(n, tuple([new[a] for a in n.args]))
    return new[expr]


def rebuild(old, args):
    """The node `old` over other arguments."""
    return _intern(old.op, args, old.data, old.data)
