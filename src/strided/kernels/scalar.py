"""Values that write IR: Python operators on a `Value` append LLVM instructions to a `Code`.

Holds the notation the mathematical functions and the random fills are written in; a value is a scalar or a vector ("<8 x float>"). Holds no function of
its own and no loops: a body is straight-line code, so LLVM's loop vectoriser can widen a scalar one. Nothing is emitted with fast-math flags: order
and rounding are the text's.
"""
from __future__ import annotations

import struct

FLOATS = ("float", "double")
SUFFIX = {"float": "f32", "double": "f64", "i32": "i32", "i64": "i64"}


def element(type: str) -> str:
    """The type of one lane."""
    return type.split()[-1][:-1] if type[0] == "<" else type


def alike(type: str, new: str) -> str:
    """`new` with as many lanes as `type`."""
    return f"{type[:type.rindex(' ')]} {new}>" if type[0] == "<" else new


def suffix(type: str) -> str:
    """How an intrinsic's name spells the type."""
    return (f"v{type[1:].split()[0]}" if type[0] == "<" else "") + SUFFIX[element(type)]


def constant(value: float | int, type: str) -> str:
    """The text of a literal: floats as exact hexadecimal (a float32 literal is written as the double it equals)."""
    kind = element(type)
    if kind != type:
        return f"splat ({kind} {constant(value, kind)})"
    if kind in FLOATS:
        if kind == "float":
            (value,) = struct.unpack("<f", struct.pack("<f", value))
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    if kind == "i1":
        return "true" if value else "false"
    bits = int(kind[1:])
    return str(int(value) - (1 << bits) if int(value) >> (bits - 1) == 1 else int(value))  # masks may be given unsigned


class Code:
    """Instructions in order.

    fma: whether the host fuses; elsewhere `llvm.fma` would be a call into libm, once an element. scalef: whether p·2^n is one instruction
    (AVX-512), through `llvm.ldexp`.
    """

    def __init__(self, fma: bool = True, scalef: bool = False):
        self.lines: list[str] = []
        self.scalef = scalef
        self.fma_name = "fma" if fma else "fmuladd"
        self.count = 0

    def emit(self, type: str, text: str) -> Value:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return Value(self, f"%v{self.count}", type)

    def value(self, v: Value | float | int, type: str) -> Value:
        return v if isinstance(v, Value) else Value(self, constant(v, type), type)


class Value:
    """One scalar or vector: its name in the text and its LLVM type. Python numbers beside it become literals of its type."""

    __slots__ = ("code", "name", "type")

    def __init__(self, code: Code, name: str, type: str):
        self.code, self.name, self.type = code, name, type

    def _binary(self, other, op_float: str, op_int: str, swap: bool = False) -> Value:
        other = self.code.value(other, self.type)
        a, b = (other, self) if swap else (self, other)
        return self.code.emit(self.type, f"{op_float if element(self.type) in FLOATS else op_int} {self.type} {a.name}, {b.name}")

    def __add__(self, o): return self._binary(o, "fadd", "add")
    def __radd__(self, o): return self._binary(o, "fadd", "add", True)
    def __sub__(self, o): return self._binary(o, "fsub", "sub")
    def __rsub__(self, o): return self._binary(o, "fsub", "sub", True)
    def __mul__(self, o): return self._binary(o, "fmul", "mul")
    def __rmul__(self, o): return self._binary(o, "fmul", "mul", True)
    def __truediv__(self, o): return self._binary(o, "fdiv", "")
    def __rtruediv__(self, o): return self._binary(o, "fdiv", "", True)
    def __and__(self, o): return self._binary(o, "", "and")
    def __or__(self, o): return self._binary(o, "", "or")
    def __xor__(self, o): return self._binary(o, "", "xor")
    def __lshift__(self, o): return self._binary(o, "", "shl")
    def __rshift__(self, o): return self._binary(o, "", "lshr")
    def ashr(self, o): return self._binary(o, "", "ashr")

    def __neg__(self):
        return self.code.emit(self.type, f"fneg {self.type} {self.name}") if element(self.type) in FLOATS else 0 - self

    def __invert__(self):
        return self ^ (True if element(self.type) == "i1" else -1)

    # Comparisons are ordered (false for NaN), but != , which is true for NaN.
    def _compare(self, other, float_op: str, int_op: str) -> Value:
        other = self.code.value(other, self.type)
        text = f"fcmp {float_op}" if element(self.type) in FLOATS else f"icmp {int_op}"
        return self.code.emit(alike(self.type, "i1"), f"{text} {self.type} {self.name}, {other.name}")

    def __lt__(self, o): return self._compare(o, "olt", "slt")
    def __le__(self, o): return self._compare(o, "ole", "sle")
    def __gt__(self, o): return self._compare(o, "ogt", "sgt")
    def __ge__(self, o): return self._compare(o, "oge", "sge")
    def __eq__(self, o): return self._compare(o, "oeq", "eq")  # type: ignore[override]
    def __ne__(self, o): return self._compare(o, "une", "ne")  # type: ignore[override]
    __hash__ = None  # type: ignore[assignment]

    def to(self, kind: str) -> Value:
        """Conversion of the value: between floats, between integers (unsigned), between the two kinds (signed)."""
        source, target = element(self.type), alike(self.type, kind)
        if source == kind:
            return self
        if source in FLOATS:
            op = ("fpext" if kind == "double" else "fptrunc") if kind in FLOATS else "fptosi"
        elif kind in FLOATS:
            op = "uitofp" if source == "i1" else "sitofp"
        else:
            op = "zext" if int(source[1:]) < int(kind[1:]) else "trunc"
        return self.code.emit(target, f"{op} {self.type} {self.name} to {target}")

    def _reinterpreted(self, kind: str) -> Value:
        target = alike(self.type, kind)
        return self.code.emit(target, f"bitcast {self.type} {self.name} to {target}")

    def bits(self) -> Value:
        """The same bits as an integer."""
        return self._reinterpreted("i32" if element(self.type) == "float" else "i64")

    def floating(self) -> Value:
        """The same bits as a float of the same width."""
        return self._reinterpreted("float" if element(self.type) == "i32" else "double")


def call(name: str, *args: Value) -> Value:
    """A call of `name`; the result has the first argument's type."""
    listed = ", ".join(f"{a.type} {a.name}" for a in args)
    return args[0].code.emit(args[0].type, f"call {args[0].type} @{name}({listed})")


def intrinsic(name: str, *args: Value) -> Value:
    return call(f"llvm.{name}.{suffix(args[0].type)}", *args)


def fma(a: Value, b: Value | float, c: Value | float) -> Value:
    """a·b + c, rounded once."""
    return intrinsic(a.code.fma_name, a, a.code.value(b, a.type), a.code.value(c, a.type))


def select(condition: Value, a: Value | float | int, b: Value | float | int) -> Value:
    type = a.type if isinstance(a, Value) else b.type if isinstance(b, Value) else "float"
    a, b = condition.code.value(a, type), condition.code.value(b, type)
    return condition.code.emit(type, f"select {condition.type} {condition.name}, {type} {a.name}, {type} {b.name}")


def at_most(x: Value, limit: float) -> Value:
    """min(x, limit) that lets NaN through."""
    return select(x > limit, limit, x)


def at_least(x: Value, limit: float) -> Value:
    """max(x, limit) that lets NaN through."""
    return select(x < limit, limit, x)


def absolute(x: Value) -> Value:
    return intrinsic("fabs", x)


def sqrt(x: Value) -> Value:
    return intrinsic("sqrt", x)


def rint(x: Value) -> Value:
    """To the nearest integer, ties to even."""
    return intrinsic("rint", x)


def copysign(magnitude: Value, sign: Value) -> Value:
    return intrinsic("copysign", magnitude, sign)


def polynomial(x: Value, *coefficients: float) -> Value:
    """Horner's rule, highest power first, one fused multiply-add a step."""
    total = x.code.value(coefficients[0], x.type)
    for c in coefficients[1:]:
        total = fma(total, x, c)
    return total
