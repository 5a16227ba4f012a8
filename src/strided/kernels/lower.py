"""From scalar expressions to IR text: types of nodes, number formats in memory, and one instruction sequence an operation.

Holds `Lowering`, which writes straight-line code into a `loops.Body`. Does not hold loops (the templates do), formats in memory (formats.py) or
the approximations of transcendental functions (mathlib.py).
"""
from __future__ import annotations

import math
from typing import Any

from . import expr as E
from .formats import COMPLEX, FLOATS, IR, ITEMSIZE, MEMORY, SUFFIX, Formats, Value, bits_of, compute_type, conversion_functions, literal, name_of, promote, unsigned
from .loops import Body

__all__ = ["FLOATS", "IR", "ITEMSIZE", "MEMORY", "Lowering", "Value", "compute_type", "conversion_functions", "infer", "literal", "name_of", "promote", "unsigned"]

_INTRINSICS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "roundeven"}
_COMPARE = {"lt": ("olt", "slt", "ult"), "le": ("ole", "sle", "ule"), "gt": ("ogt", "sgt", "ugt"), "ge": ("oge", "sge", "uge"),
            "eq": ("oeq", "eq", "eq"), "ne": ("une", "ne", "ne")}
_MATHLIB = frozenset("exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc erfinv ndtr lgamma digamma trigamma".split())

_PARTWISE = frozenset("real imag pair cast param constant".split())


def infer(expr: E.Expr, types: dict[E.Expr, str], default_float: str = "float32") -> str:
    """The compute type of `expr`, given those of the nodes it starts from."""
    scratch = Lowering(Body(), default_float)
    return scratch.emit(expr, {n: Value(("undef", "undef") if t in COMPLEX else "undef", t) for n, t in types.items()}).type


def _rounded_alone(nodes) -> set[E.Expr]:
    """What must not become half of a fused multiply-add with what uses it: the results behind `rounded` nodes, through what only passes them on."""
    alone = set()
    waiting = [n.args[0] for n in nodes if n.op == "rounded"]
    while waiting:
        n = waiting.pop()
        alone.add(n)
        if n.op in ("cast", "neg", "where", "rounded"):
            waiting += n.args
    return alone


class Lowering(Formats):
    """Writes expressions into `body`. `env` maps nodes already computed (at least the inputs) to their Values and is filled with every node
    computed on the way; give a copy where values must not outlive a block. `contract=False` forbids fused multiply-adds."""

    def __init__(self, body: Body, default_float: str = "float32", contract: bool = True):
        super().__init__(body)
        self.default_float = default_float
        self.fast = "contract " if contract else ""
        self.calls: set[tuple[str, str]] = set()  # mathlib functions used: (name, "f32" | "f64")
        self.helpers: dict[str, str] = {}         # functions defined here, by name

    def emit(self, expr: E.Expr, env: dict[E.Expr, Value]) -> Value:
        nodes = E.topological((expr,), env)
        alone = _rounded_alone(nodes)
        fast = self.fast
        for n in nodes:
            self.fast = "" if n in alone else fast
            env[n] = self._node(n.op, [env[a] for a in n.args], n.data)
        self.fast = fast
        return env[expr]

    def definitions(self) -> str:
        """Text of every function the code written so far calls; to go before the kernel in the module."""
        text = []
        for suffix in ("f32", "f64"):
            names = sorted(n for n, s in self.calls if s == suffix)
            if names:
                from . import mathlib
                text.append(mathlib.definitions(names, suffix))
        lines = "\n".join([*text, *self.helpers.values()]).split("\n")
        declared = dict.fromkeys([*self.body.declared, *(line for line in lines if line.startswith("declare"))])
        self.body.declared.clear()  # each declaration may appear once
        named = {line.split("@")[1].split("(")[0]: line for line in declared}
        return "\n".join([*named.values(), *(line for line in lines if not line.startswith("declare"))])

    # ---- complex numbers ----

    def _complex(self, op: str, args: list[Value], data: Any) -> Value:
        """One operation that complex.py has a rule for, on its parts."""
        from .complex import rewrite
        params = [E.param(i) for i in range(len(args))]
        (expr,) = rewrite((E.node(op, *params, data=data),), frozenset(i for i, a in enumerate(args) if a.type in COMPLEX))
        return self.emit(expr, dict(zip(params, args)))

    def _real(self, x): return self.parts(x)[0]
    def _imag(self, x): return self.parts(x)[1]
    def _conj(self, x): return x
    def _sgn(self, x): return self._sign(x)

    def _angle(self, x):
        x = self._float(x)
        turned = self.select(self._compare("lt", x, self.constant(0, x.type)), self.constant(math.pi, x.type), self.constant(0, x.type))
        return self.select(self._isnan(x), x, turned)

    def _pair(self, re, im):
        re, im = self._floats(re, im)
        type = "complex64" if re.type == "float32" else "complex128"
        return Value((re.text, im.text), type)

    # ---- operations ----

    def apply(self, op: str, *values: Value) -> Value:
        """One operation on Values, for templates that combine by hand ("add", "maximum", …)."""
        return self._node(op, list(values))

    def _node(self, op: str, args: list[Value], data: Any = None) -> Value:
        if op not in _PARTWISE and any(a.type in COMPLEX for a in args):
            return self._complex(op, args, data)
        if op == "constant":
            return self.constant(data, "bool" if isinstance(data, bool) else "weak int" if isinstance(data, int) else "weak float")
        if op == "cast":
            return self._cast(args[0], data)
        method = getattr(self, "_" + op, None)
        if method is not None:
            return method(*args)
        if op in _COMPARE:
            return self._compare(op, *args)
        if op in ("and", "or", "xor"):
            a, b = self._integers(op, *args)
            return Value(self.body(f"{op} {IR[a.type]} {a.text}, {b.text}"), a.type)
        if op in _INTRINSICS:
            x = args[0]
            if x.type not in FLOATS and op != "sqrt":
                return x
            x = self._float(x)
            return self._intrinsic(_INTRINSICS[op], x.type, x)
        if op in _MATHLIB:
            return self._library(op, *args)
        if op == "param":
            raise ValueError(f"the expression reads input {data}, which the kernel was not given")
        raise NotImplementedError(f"a map kernel cannot compute {op!r}: reductions and positions belong to the fold template")

    def _common(self, *args: Value) -> list[Value]:
        type = args[0].type
        for other in args[1:]:
            type = promote(type, other.type, self.default_float)
        return [self.convert(a, type) for a in args]

    def _float(self, x: Value) -> Value:
        return x if x.type in FLOATS else self.convert(x, "weak float" if x.type == "weak int" else self.default_float)

    def _floats(self, *args: Value) -> list[Value]:
        return [self._float(a) for a in self._common(*args)]

    def _integers(self, op: str, *args: Value) -> list[Value]:
        common = self._common(*args)
        if common[0].type in FLOATS:
            raise TypeError(f"bitwise operation {op!r} is not defined for floating-point elements")
        return common

    def _arithmetic(self, text: str, args: list[Value], boolean: str) -> Value:
        a, b = self._common(*args)
        if a.type in FLOATS:
            return Value(self.body(f"f{text} {self.fast}{IR[a.type]} {a.text}, {b.text}"), a.type)
        return Value(self.body(f"{boolean if a.type == 'bool' else text} {IR[a.type]} {a.text}, {b.text}"), a.type)

    def _add(self, a, b): return self._arithmetic("add", [a, b], "or")
    def _sub(self, a, b): return self._arithmetic("sub", [a, b], "xor")
    def _mul(self, a, b): return self._arithmetic("mul", [a, b], "and")

    def _div(self, a, b):
        a, b = self._floats(a, b)
        return Value(self.body(f"fdiv {self.fast}{IR[a.type]} {a.text}, {b.text}"), a.type)

    def _reciprocal(self, x): return self._div(self.constant(1, "weak int"), x)
    def _rsqrt(self, x): return self._reciprocal(self.apply("sqrt", x))
    def _sigmoid(self, x): return self._reciprocal(self._add(self._library("exp", self._neg(self._float(x))), self.constant(1, "weak int")))

    def _neg(self, x):
        return Value(self.body(f"fneg {IR[x.type]} {x.text}" if x.type in FLOATS else f"sub {IR[x.type]} 0, {x.text}"), x.type)

    def _abs(self, x):
        if x.type in FLOATS:
            return self._intrinsic("fabs", x.type, x)
        if unsigned(x.type):
            return x
        self.body.declare(f"declare {IR[x.type]} @llvm.abs.{IR[x.type]}({IR[x.type]}, i1)")
        return Value(self.body(f"call {IR[x.type]} @llvm.abs.{IR[x.type]}({IR[x.type]} {x.text}, i1 false)"), x.type)

    def _sign(self, x):
        if x.type == "bool":
            return x
        zero = self.constant(0, x.type)
        return self._sub(*(self.convert(Value(c.text, "bool"), x.type) for c in (self._compare("gt", x, zero), self._compare("lt", x, zero))))

    def _compare(self, op, a, b):
        a, b = self._common(a, b)
        floating, signed, plain = _COMPARE[op]
        if a.type in FLOATS:
            return Value(self.body(f"fcmp {floating} {IR[a.type]} {a.text}, {b.text}"), "bool")
        return Value(self.body(f"icmp {plain if unsigned(a.type) else signed} {IR[a.type]} {a.text}, {b.text}"), "bool")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """a where `condition` (compute type bool) holds, else b; both of one type."""
        return Value(self.body(f"select i1 {condition.text}, {IR[a.type]} {a.text}, {IR[a.type]} {b.text}"), a.type)

    def _where(self, condition, a, b):
        return self.select(self.convert(condition, "bool"), *self._common(a, b))

    def _extreme(self, op, a, b, keep_nan):
        a, b = self._common(a, b)
        best = self.select(self._compare(op, a, b), a, b)  # b where either is NaN
        if a.type not in FLOATS:
            return best
        return self.select(self._isnan(a), a, best) if keep_nan else self.select(self._isnan(b), a, best)

    def _maximum(self, a, b): return self._extreme("gt", a, b, True)
    def _minimum(self, a, b): return self._extreme("lt", a, b, True)
    def _fmax(self, a, b): return self._extreme("ge", a, b, False)
    def _fmin(self, a, b): return self._extreme("le", a, b, False)
    def _relu(self, x): return self.select(self._compare("lt", x, self.constant(0, x.type)), self.constant(0, x.type), x)
    def _clamp(self, x, low, high): return self._minimum(self._maximum(x, low), high)
    def _clamp_min(self, x, low): return self._maximum(x, low)
    def _clamp_max(self, x, high): return self._minimum(x, high)
    def _stop(self, x): return x
    def _rounded(self, x): return x

    def _isnan(self, x):
        return Value(self.body(f"fcmp uno {IR[x.type]} {x.text}, 0.0"), "bool") if x.type in FLOATS else self.constant(False, "bool")

    def _isinf(self, x):
        return self._compare("eq", self._abs(x), self.constant(math.inf, x.type)) if x.type in FLOATS else self.constant(False, "bool")

    def _isfinite(self, x):
        return self._compare("lt", self._abs(x), self.constant(math.inf, x.type)) if x.type in FLOATS else self.constant(True, "bool")

    def _signbit(self, x):
        if x.type not in FLOATS:
            return self._compare("lt", x, self.constant(0, x.type))
        bits = "i32" if x.type == "float32" else "i64"
        raw = self.body(f"bitcast {IR[x.type]} {x.text} to {bits}")
        return Value(self.body(f"icmp slt {bits} {raw}, 0"), "bool")

    def _logical_not(self, x): return self._invert(self.convert(x, "bool"))
    def _logical_and(self, a, b): return self.apply("and", self.convert(a, "bool"), self.convert(b, "bool"))
    def _logical_or(self, a, b): return self.apply("or", self.convert(a, "bool"), self.convert(b, "bool"))
    def _logical_xor(self, a, b): return self.apply("xor", self.convert(a, "bool"), self.convert(b, "bool"))

    def _invert(self, x):
        x, = self._integers("invert", x)
        return Value(self.body(f"xor {IR[x.type]} {x.text}, {'true' if x.type == 'bool' else -1}"), x.type)

    def _shl(self, a, b): return self._shift("shl", a, b)
    def _shr(self, a, b): return self._shift("shr", a, b)

    def _shift(self, op, a, b):
        # A shift by the width or more, or by a negative number, gives what shifting everything out gives (IR leaves it undefined).
        a, b = self._integers(op, a, b)
        ir, last = IR[a.type], bits_of(a.type) - 1
        inside = self.body(f"icmp ule {ir} {b.text}, {last}")
        amount = self.body(f"select i1 {inside}, {ir} {b.text}, {ir} {last}")
        shifted = self.body(f"{'shl' if op == 'shl' else 'lshr' if unsigned(a.type) else 'ashr'} {ir} {a.text}, {amount}")
        if op == "shr" and not unsigned(a.type):
            return Value(shifted, a.type)
        return Value(self.body(f"select i1 {inside}, {ir} {shifted}, {ir} 0"), a.type)

    # ---- division with a whole quotient ----

    def _int_divide(self, a: Value, b: Value) -> tuple[Value, Value]:
        """(quotient towards zero, remainder). The processor traps on x/0 and MIN/-1: both divide by 1 instead, giving 0 and the wrapped -a."""
        zero, one = self.constant(0, a.type), self.constant(1, a.type)
        by_zero = self._compare("eq", b, zero)
        safe = self.select(by_zero, one, b)
        if unsigned(a.type):
            q = Value(self.body(f"udiv {IR[a.type]} {a.text}, {safe.text}"), a.type)
        else:
            minus = self._compare("eq", b, self.constant(-1, a.type))
            safe = self.select(minus, one, safe)
            q = Value(self.body(f"sdiv {IR[a.type]} {a.text}, {safe.text}"), a.type)
            q = self.select(minus, self._neg(a), q)
        r = self.select(by_zero, zero, self._sub(a, self._mul(q, b)))
        return self.select(by_zero, zero, q), r

    def _whole(self, a: Value, b: Value) -> list[Value]:
        a, b = self._common(a, b)
        return [self.convert(a, "uint8"), self.convert(b, "uint8")] if a.type == "bool" else [a, b]

    def _floordiv(self, a, b):
        a, b = self._whole(a, b)
        if a.type not in FLOATS:
            q, r = self._int_divide(a, b)
            if unsigned(a.type):
                return q
            return self.select(self._crosses(r, b), self._sub(q, self.constant(1, a.type)), q)
        # Python's and PyTorch's: from the exact remainder, so that the quotient is never one too large
        zero, one = self.constant(0, a.type), self.constant(1, a.type)
        r = self._frem(a, b)
        q = self._div(self._sub(a, r), b)
        q = self.select(self._crosses(r, b), self._sub(q, one), q)
        whole = self.apply("floor", q)
        whole = self.select(self._compare("gt", self._sub(q, whole), self.constant(0.5, a.type)), self._add(whole, one), whole)
        true = self._div(a, b)
        whole = self.select(self._compare("ne", q, zero), whole, self._copysign(zero, true))
        return self.select(self._compare("eq", b, zero), true, whole)

    def _mod(self, a, b):
        a, b = self._whole(a, b)
        r = self._frem(a, b) if a.type in FLOATS else self._int_divide(a, b)[1]
        return r if unsigned(a.type) else self.select(self._crosses(r, b), self._add(r, b), r)

    def _fmod(self, a, b):
        a, b = self._whole(a, b)
        return self._frem(a, b) if a.type in FLOATS else self._int_divide(a, b)[1]

    def _truncdiv(self, a, b):
        a, b = self._whole(a, b)
        return self.apply("trunc", self._div(a, b)) if a.type in FLOATS else self._int_divide(a, b)[0]

    def _crosses(self, r: Value, b: Value) -> Value:
        """Whether a remainder is non-zero and its sign is not the divisor's."""
        zero = self.constant(0, r.type)
        differ = self.apply("xor", self._compare("lt", r, zero), self._compare("lt", b, zero))
        return self.apply("and", self._compare("ne", r, zero), differ)

    def _frem(self, a, b): return self._library("fmod", a, b)

    # ---- calls ----

    def _intrinsic(self, name: str, type: str, *args: Value) -> Value:
        ir = IR[type]
        function = f"@llvm.{name}.{SUFFIX[type]}"
        self.body.declare(f"declare {ir} {function}({', '.join([ir] * len(args))})")
        return Value(self.body(f"call {ir} {function}({', '.join(f'{ir} {a.text}' for a in args)})"), type)

    def _library(self, name: str, *args: Value) -> Value:
        floats = self._floats(*args)
        type = floats[0].type
        ir, suffix = IR[type], SUFFIX[type]
        self.calls.add((name, suffix))
        return Value(self.body(f"call {ir} @m_{name}_{suffix}({', '.join(f'{ir} {a.text}' for a in floats)})"), type)

    def _copysign(self, a, b):
        a, b = self._floats(a, b)
        ir = IR[a.type]
        bits, width = ("i64", 63) if ir == "double" else ("i32", 31)
        # Not the intrinsic: a sign that comes from a double through a half is taken from the double by LLVM, which then calls a library for that conversion.
        size = self.body(f"and {bits} {self.body(f'bitcast {ir} {a.text} to {bits}')}, {2**width - 1}")
        sign = self.body(f"and {bits} {self.body(f'bitcast {ir} {b.text} to {bits}')}, {-(2**width)}")
        return Value(self.body(f"bitcast {bits} {self.body(f'or {bits} {size}, {sign}')} to {ir}"), a.type)

    def _fma(self, a, b, c):
        a, b, c = self._common(a, b, c)
        return self._intrinsic("fma", a.type, a, b, c) if a.type in FLOATS else self._add(self._mul(a, b), c)

    def _hypot(self, a, b):
        # scaled by the larger, so that squares neither overflow nor vanish; never fused, so that maps and folds agree on the last bit of |z|
        fast, self.fast = self.fast, ""
        a, b = (self._abs(v) for v in self._floats(a, b))
        big, small = self._maximum(a, b), self._minimum(a, b)
        ratio = self.select(self._compare("eq", small, big), self.constant(1, a.type), self._div(small, big))
        root = self.apply("sqrt", self._add(self._mul(ratio, ratio), self.constant(1, a.type)))
        result = self.select(self._compare("eq", big, self.constant(0, a.type)), big, self._mul(big, root))
        infinite = self.apply("or", self._isinf(a), self._isinf(b))
        self.fast = fast
        return self.select(infinite, self.constant(math.inf, a.type), result)

    def _pow(self, x, y):
        x, y = self._common(x, y)
        if x.type == "bool":
            x, y = self.convert(x, "uint8"), self.convert(y, "uint8")
        if x.type not in FLOATS:
            return self._int_power(x, y)
        c = y.literal
        if c == 0:
            return self.constant(1, x.type)
        if c in (1, 2, 3, -1, -2):
            power = x
            for _ in range(abs(int(c)) - 1):
                power = self._mul(power, x)
            return power if c > 0 else self._reciprocal(power)
        if c in (0.5, -0.5):
            return self.apply("sqrt", x) if c > 0 else self._rsqrt(x)
        return self._library("pow", x, y)

    def _int_power(self, x: Value, y: Value) -> Value:
        if y.literal is not None and 0 < y.literal <= 4:
            power = x
            for _ in range(int(y.literal) - 1):
                power = self._mul(power, x)
            return power
        sign = "u" if unsigned(x.type) else "s"
        name = f"@int_power_{sign}{IR[x.type]}"
        self.helpers[name] = _INT_POWER.replace("$NAME", name).replace("$T", IR[x.type]).replace("$NEGATIVE", "false" if sign == "u" else "%below")
        return Value(self.body(f"call {IR[x.type]} {name}({IR[x.type]} {x.text}, {IR[x.type]} {y.text})"), x.type)

    def _cast(self, x: Value, name: str) -> Value:
        if name not in IR:  # rounded to a format that exists in memory only
            return self.decode(name, self.encode(name, x))
        return self.convert(x, compute_type(name))


_INT_POWER = """
define internal $T $NAME($T %x, $T %y) nounwind memory(none) {
entry:
  %below = icmp slt $T %y, 0
  br i1 $NEGATIVE, label %inverse, label %loop
inverse:                                  ; 1/x**n towards zero: only 1 and -1 are not 0
  %unit = icmp eq $T %x, 1
  %minus = icmp eq $T %x, -1
  %bit = and $T %y, 1
  %even = icmp eq $T %bit, 0
  %swing = select i1 %even, $T 1, $T -1
  %other = select i1 %minus, $T %swing, $T 0
  %small = select i1 %unit, $T 1, $T %other
  ret $T %small
loop:
  %n = phi $T [%y, %entry], [%half, %loop]
  %b = phi $T [%x, %entry], [%square, %loop]
  %r = phi $T [1, %entry], [%next, %loop]
  %low = and $T %n, 1
  %odd = icmp ne $T %low, 0
  %times = mul $T %r, %b
  %next = select i1 %odd, $T %times, $T %r
  %square = mul $T %b, %b
  %half = lshr $T %n, 1
  %done = icmp eq $T %half, 0
  br i1 %done, label %exit, label %loop
exit:
  ret $T %next
}
"""
