"""Values that write IR: Python operators on a `Value` append scalar LLVM instructions to a `Code`.

Holds the notation the mathematical functions are written in. Holds no function of its own and no loops: a body is straight-line code, so
LLVM's loop vectoriser can widen it. Nothing is emitted with fast-math flags: order and rounding are the text's.
"""
from __future__ import annotations

import struct

INTEGER_OF = {"float": "i32", "double": "i64"}
FLOATS = ("float", "double")
SUFFIX = {"float": "f32", "double": "f64", "i32": "i32", "i64": "i64"}


def constant(value: float | int, type: str) -> str:
    """The text of a literal: floats as exact hexadecimal (a float32 literal is written as the double it equals)."""
    if type in FLOATS:
        if type == "float":
            (value,) = struct.unpack("<f", struct.pack("<f", value))
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    if type == "i1":
        return "true" if value else "false"
    bits = int(type[1:])
    return str(int(value) - (1 << bits) if int(value) >> (bits - 1) == 1 else int(value))  # masks may be given unsigned


class Code:
    """Instructions in order. `fma` says whether the host fuses: elsewhere `llvm.fma` would be a call into libm, once an element."""

    def __init__(self, fma: bool = True):
        self.lines: list[str] = []
        self.fma_name = "fma" if fma else "fmuladd"
        self.count = 0

    def emit(self, type: str, text: str) -> Value:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return Value(self, f"%v{self.count}", type)

    def value(self, v: Value | float | int, type: str) -> Value:
        return v if isinstance(v, Value) else Value(self, constant(v, type), type)


class Value:
    """One scalar: its name in the text and its LLVM type. Python numbers beside it become literals of its type."""

    __slots__ = ("code", "name", "type")

    def __init__(self, code: Code, name: str, type: str):
        self.code, self.name, self.type = code, name, type

    def _binary(self, other, op_float: str, op_int: str, swap: bool = False) -> Value:
        other = self.code.value(other, self.type)
        a, b = (other, self) if swap else (self, other)
        return self.code.emit(self.type, f"{op_float if self.type in FLOATS else op_int} {self.type} {a.name}, {b.name}")

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
        return self.code.emit(self.type, f"fneg {self.type} {self.name}") if self.type in FLOATS else 0 - self

    def __invert__(self):
        return self ^ (True if self.type == "i1" else -1)

    # Comparisons are ordered (false for NaN), but != , which is true for NaN.
    def _compare(self, other, float_op: str, int_op: str) -> Value:
        other = self.code.value(other, self.type)
        text = f"fcmp {float_op}" if self.type in FLOATS else f"icmp {int_op}"
        return self.code.emit("i1", f"{text} {self.type} {self.name}, {other.name}")

    def __lt__(self, o): return self._compare(o, "olt", "slt")
    def __le__(self, o): return self._compare(o, "ole", "sle")
    def __gt__(self, o): return self._compare(o, "ogt", "sgt")
    def __ge__(self, o): return self._compare(o, "oge", "sge")
    def __eq__(self, o): return self._compare(o, "oeq", "eq")  # type: ignore[override]
    def __ne__(self, o): return self._compare(o, "une", "ne")  # type: ignore[override]
    __hash__ = None  # type: ignore[assignment]

    def to(self, type: str) -> Value:
        """Conversion of the value: between floats, between integers (unsigned), between the two kinds (signed)."""
        source, target = self.type, type
        if source == target:
            return self
        if source in FLOATS:
            op = ("fpext" if target == "double" else "fptrunc") if target in FLOATS else "fptosi"
        elif target in FLOATS:
            op = "uitofp" if source == "i1" else "sitofp"
        else:
            op = "zext" if int(source[1:]) < int(target[1:]) else "trunc"
        return self.code.emit(type, f"{op} {source} {self.name} to {type}")

    def bits(self) -> Value:
        """The same bits as an integer."""
        to = INTEGER_OF[self.type]
        return self.code.emit(to, f"bitcast {self.type} {self.name} to {to}")

    def floating(self) -> Value:
        """The same bits as a float of the same width."""
        to = {"i32": "float", "i64": "double"}[self.type]
        return self.code.emit(to, f"bitcast {self.type} {self.name} to {to}")


def call(name: str, *args: Value) -> Value:
    """A call of `name`; the result has the first argument's type."""
    listed = ", ".join(f"{a.type} {a.name}" for a in args)
    return args[0].code.emit(args[0].type, f"call {args[0].type} @{name}({listed})")


def intrinsic(name: str, *args: Value) -> Value:
    return call(f"llvm.{name}.{SUFFIX[args[0].type]}", *args)


def fma(a: Value, b: Value | float, c: Value | float) -> Value:
    """a·b + c, rounded once."""
    return intrinsic(a.code.fma_name, a, a.code.value(b, a.type), a.code.value(c, a.type))


def select(condition: Value, a: Value | float | int, b: Value | float | int) -> Value:
    type = a.type if isinstance(a, Value) else b.type if isinstance(b, Value) else "float"
    a, b = condition.code.value(a, type), condition.code.value(b, type)
    return condition.code.emit(type, f"select i1 {condition.name}, {type} {a.name}, {type} {b.name}")


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
