"""From scalar expressions to IR text: types of nodes, number formats in memory, and one instruction sequence an operation.

Holds `Lowering`, which writes straight-line code into a `loops.Body`. Does not hold loops (the templates do) or the approximations of
transcendental functions (mathlib.py).

A value in flight has a *compute type*: bool (an i1), the integers at their own width, float32, float64; 16-bit floats exist in memory only.
Types "weak int" and "weak float" belong to Python numbers and run-time scalars: they are i64 and double until they meet a tensor's element.
"""
from __future__ import annotations

import math
import struct
from typing import NamedTuple

from . import expr as E
from . import jit
from .loops import Body

IR = {"bool": "i1", "weak int": "i64", "weak float": "double", "float32": "float", "float64": "double",
      **{f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}}
MEMORY = {**IR, "bool": "i8", "float16": "half", "bfloat16": "i16"}
ITEMSIZE = {"bool": 1, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
            **{f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)}}
FLOATS = ("float32", "float64", "weak float")
SUFFIX = {"float32": "f32", "float64": "f64", "weak float": "f64"}
_INTRINSICS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "roundeven"}
_COMPARE = {"lt": ("olt", "slt", "ult"), "le": ("ole", "sle", "ule"), "gt": ("ogt", "sgt", "ugt"), "ge": ("oge", "sge", "uge"),
            "eq": ("oeq", "eq", "eq"), "ne": ("une", "ne", "ne")}
_MATHLIB = frozenset("exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc".split())


class Value(NamedTuple):
    """A computed scalar: its text in the IR, its compute type, and the Python number if it is a constant."""
    text: str
    type: str
    literal: object = None


def name_of(dtype) -> str:
    name = getattr(dtype, "name", dtype)
    if name not in MEMORY:
        raise NotImplementedError(f"kernels do not compute with {dtype} elements yet: convert them to float32 first with .to(torch.float32)")
    return name


def compute_type(dtype) -> str:
    """The type arithmetic on elements of `dtype` runs in."""
    name = name_of(dtype)
    return "float32" if name in ("float16", "bfloat16") else name


def promote(a: str, b: str, default_float: str = "float32") -> str:
    """The common compute type of two, by PyTorch's rules: bool < integers < floats, and a Python number only decides its kind."""
    if a == b:
        return a
    if a.startswith("weak") and not b.startswith("weak"):
        a, b = b, a
    if b == "weak float":
        return b if a == "weak int" else a if a in FLOATS else default_float
    if b == "weak int":
        return "int64" if a == "bool" else a
    if a in FLOATS or b in FLOATS:
        return max((t for t in (a, b) if t in FLOATS), key=FLOATS.index)
    if a == "bool" or b == "bool":
        return b if a == "bool" else a
    bits = max(_bits(a), _bits(b))
    unsigned, signed = sorted((a, b), key=lambda t: t[0] != "u")
    if signed[0] == "u" or unsigned[0] != "u":
        return f"uint{bits}" if signed[0] == "u" else f"int{bits}"
    if _bits(unsigned) < _bits(signed):
        return signed
    if _bits(unsigned) == 64:
        raise NotImplementedError("uint64 and signed integers have no common type: convert one of them first")
    return f"int{2 * _bits(unsigned)}"


def _bits(type: str) -> int:
    return int(IR[type][1:])


def infer(expr: E.Expr, types: dict[E.Expr, str], default_float: str = "float32") -> str:
    """The compute type of `expr`, given those of the nodes it starts from."""
    scratch = Lowering(Body(), default_float)
    return scratch.emit(expr, {n: Value("undef", t) for n, t in types.items()}).type


class Lowering:
    """Writes expressions into `body`. `env` maps nodes already computed (at least the inputs) to their Values and is filled with every node
    computed on the way; give a copy where values must not outlive a block. `contract=False` forbids fused multiply-adds."""

    def __init__(self, body: Body, default_float: str = "float32", contract: bool = True):
        self.body, self.default_float = body, default_float
        self.fast = "contract " if contract else ""
        self.calls: set[tuple[str, str]] = set()  # mathlib functions used: (name, "f32" | "f64")
        self.helpers: dict[str, str] = {}         # functions defined here, by name
        self.half_in_hardware = jit.host().half

    def emit(self, expr: E.Expr, env: dict[E.Expr, Value]) -> Value:
        for n in E.topological((expr,), env):
            env[n] = self._node(n, [env[a] for a in n.args])
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

    # ---- memory ----

    def load(self, dtype, address: str, extra: str = "") -> Value:
        """The element of `dtype` at `address`, decoded. `extra` is metadata for the access."""
        name = name_of(dtype)
        memory = MEMORY[name]
        raw = self.body(f"load {memory}, ptr {address}, align {ITEMSIZE[name]}{extra}" if name != "float16" or self.half_in_hardware
                        else f"load i16, ptr {address}, align 2{extra}")
        return self.decode(name, raw)

    def store(self, dtype, value: Value, address: str, extra: str = "") -> None:
        """Stores `value`, converted to `dtype`, at `address`."""
        name = name_of(dtype)
        raw = self.encode(name, value)
        memory = "i16" if name == "float16" and not self.half_in_hardware else MEMORY[name]
        self.body.do(f"store {memory} {raw}, ptr {address}, align {ITEMSIZE[name]}{extra}")

    def decode(self, name: str, raw: str) -> Value:
        if name == "bool":
            return Value(self.body(f"icmp ne i8 {raw}, 0"), "bool")
        if name == "bfloat16":
            wide = self.body(f"zext i16 {raw} to i32")
            bits = self.body(f"shl i32 {wide}, 16")
            return Value(self.body(f"bitcast i32 {bits} to float"), "float32")
        if name == "float16":
            return Value(self.body(f"fpext half {raw} to float") if self.half_in_hardware else self._half_to_float(raw), "float32")
        return Value(raw, name)

    def encode(self, name: str, value: Value) -> str:
        value = self.convert(value, compute_type(name))
        if name == "bool":
            return self.body(f"zext i1 {value.text} to i8")
        if name == "bfloat16":
            return self._float_to_bfloat(value.text)
        if name == "float16":
            return self.body(f"fptrunc float {value.text} to half") if self.half_in_hardware else self._float_to_half(value.text)
        return value.text

    def _float_to_bfloat(self, x: str) -> str:
        # to nearest, halves to even, by carrying into the kept bits; every NaN becomes 0x7FC0
        b = self.body
        bits = b(f"bitcast float {x} to i32")
        high = b(f"lshr i32 {bits}, 16")
        odd = b(f"and i32 {high}, 1")
        bias = b(f"add i32 {odd}, 32767")
        carried = b(f"add i32 {bits}, {bias}")
        rounded = b(f"lshr i32 {carried}, 16")
        nan = b(f"fcmp uno float {x}, 0.0")
        kept = b(f"select i1 {nan}, i32 {0x7FC0}, i32 {rounded}")
        return b(f"trunc i32 {kept} to i16")

    def _half_to_float(self, raw: str) -> str:
        # exponent and mantissa shifted into place, then scaled by 2**112: exact for subnormals too; infinities and NaN need the exponent filled
        b = self.body
        wide = b(f"zext i16 {raw} to i32")
        low = b(f"and i32 {wide}, {0x7FFF}")
        magnitude = b(f"shl i32 {low}, 13")
        small = b(f"bitcast i32 {magnitude} to float")
        scaled = b(f"fmul float {small}, {literal(2.0 ** 112, 'float32')}")
        finite = b(f"bitcast float {scaled} to i32")
        special = b(f"icmp uge i32 {magnitude}, {0x7C00 << 13}")
        filled = b(f"or i32 {magnitude}, {0x7F800000}")
        bits = b(f"select i1 {special}, i32 {filled}, i32 {finite}")
        top = b(f"and i32 {wide}, {0x8000}")
        sign = b(f"shl i32 {top}, 16")
        signed = b(f"or i32 {bits}, {sign}")
        return b(f"bitcast i32 {signed} to float")

    def _float_to_half(self, x: str) -> str:
        b = self.body
        bits = b(f"bitcast float {x} to i32")
        high = b(f"lshr i32 {bits}, 16")
        sign = b(f"and i32 {high}, {0x8000}")
        magnitude = b(f"and i32 {bits}, {0x7FFFFFFF}")
        # normal results: rebias the exponent and round to nearest even by carrying; overflow carries into infinity
        kept = b(f"lshr i32 {magnitude}, 13")
        odd = b(f"and i32 {kept}, 1")
        biased = b(f"add i32 {magnitude}, {4095 - (112 << 23)}")
        carried = b(f"add i32 {biased}, {odd}")
        normal = b(f"lshr i32 {carried}, 13")
        # subnormal results: adding 0.5 lines the mantissa up with 2**-24 and rounds it in hardware
        value = b(f"bitcast i32 {magnitude} to float")
        shifted = b(f"fadd float {value}, {literal(0.5, 'float32')}")
        aligned = b(f"bitcast float {shifted} to i32")
        subnormal = b(f"sub i32 {aligned}, {0x3F000000}")
        tiny = b(f"icmp ult i32 {magnitude}, {113 << 23}")
        finite = b(f"select i1 {tiny}, i32 {subnormal}, i32 {normal}")
        nan = b(f"icmp ugt i32 {magnitude}, {255 << 23}")
        special = b(f"select i1 {nan}, i32 {0x7E00}, i32 {0x7C00}")
        huge = b(f"icmp uge i32 {magnitude}, {143 << 23}")
        result = b(f"select i1 {huge}, i32 {special}, i32 {finite}")
        whole = b(f"or i32 {result}, {sign}")
        return b(f"trunc i32 {whole} to i16")

    # ---- conversions ----

    def constant(self, value, type: str) -> Value:
        """A Python number as a Value of compute type `type`."""
        return Value(literal(value, type), type, value)

    def convert(self, value: Value, type: str) -> Value:
        """`value` in compute type `type`, as PyTorch converts: floats to integers truncate, anything non-zero (NaN too) is True, integers wrap."""
        source = value.type
        if source == type:
            return value
        if value.literal is not None and not (source in FLOATS and type not in FLOATS):
            return self.constant(value.literal, type)
        ir_from, ir_to, x, b = IR[source], IR[type], value.text, self.body
        if type == "bool":
            return Value(b(f"fcmp une {ir_from} {x}, 0.0" if source in FLOATS else f"icmp ne {ir_from} {x}, 0"), type)
        if type in FLOATS:
            if source in FLOATS:
                text = x if ir_from == ir_to else b(f"{'fptrunc' if ir_from == 'double' else 'fpext'} {ir_from} {x} to {ir_to}")
            else:
                text = b(f"{'uitofp' if unsigned(source) else 'sitofp'} {ir_from} {x} to {ir_to}")
        elif source in FLOATS:
            text = self._float_to_int(x, ir_from, type)
        elif ir_from == ir_to:
            text = x
        elif int(ir_from[1:]) > int(ir_to[1:]):
            text = b(f"trunc {ir_from} {x} to {ir_to}")
        else:
            text = b(f"{'zext' if unsigned(source) else 'sext'} {ir_from} {x} to {ir_to}")
        return Value(text, type)

    def _float_to_int(self, x: str, ir: str, type: str) -> str:
        # As x86 converts: outside the 32- or 64-bit range (and for NaN) the smallest integer, then narrower types keep the low bits.
        b, bits = self.body, int(IR[type][1:])
        via = 64 if bits == 64 or unsigned(type) else 32
        limit = float(2 ** (via - 1))
        # -2**31 - 1 truncated is out of range; in double the values between it and -2**31 still truncate into range
        low = literal(-limit - 1, "float64") if via == 32 and ir == "double" else literal(-limit, "float32" if ir == "float" else "float64")
        above = b(f"fcmp {'ogt' if via == 32 and ir == 'double' else 'oge'} {ir} {x}, {low}")
        below = b(f"fcmp olt {ir} {x}, {literal(limit, 'float64')}")
        inside = b(f"and i1 {above}, {below}")
        safe = b(f"select i1 {inside}, {ir} {x}, {ir} 0.0")
        near = b(f"fptosi {ir} {safe} to i{via}")
        whole = b(f"select i1 {inside}, i{via} {near}, i{via} {-2 ** (via - 1)}")
        return whole if via == bits else b(f"trunc i{via} {whole} to i{bits}")

    # ---- operations ----

    def apply(self, op: str, *values: Value) -> Value:
        """One operation on Values, for templates that combine by hand ("add", "maximum", …)."""
        return self._node(None, list(values), op)

    def _node(self, n: E.Expr | None, args: list[Value], op: str | None = None) -> Value:
        op = op or n.op
        if op == "constant":
            type = "bool" if isinstance(n.data, bool) else "weak int" if isinstance(n.data, int) else "weak float"
            return self.constant(n.data, type)
        if op == "cast":
            return self._cast(args[0], n.data)
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
            raise ValueError(f"the expression reads input {n.data}, which the kernel was not given")
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
        args = self._common(*args)
        if args[0].type in FLOATS:
            raise TypeError(f"bitwise operation {op!r} is not defined for floating-point elements")
        return args

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
    def _rsqrt(self, x): return self._reciprocal(self._node(None, [x], "sqrt"))
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
    def _fmax(self, a, b): return self._extreme("gt", a, b, False)
    def _fmin(self, a, b): return self._extreme("lt", a, b, False)
    def _clamp(self, x, low, high): return self._minimum(self._maximum(x, low), high)
    def _clamp_min(self, x, low): return self._maximum(x, low)
    def _clamp_max(self, x, high): return self._minimum(x, high)
    def _stop(self, x): return x

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
    def _logical_and(self, a, b): return self._node(None, [self.convert(a, "bool"), self.convert(b, "bool")], "and")
    def _logical_or(self, a, b): return self._node(None, [self.convert(a, "bool"), self.convert(b, "bool")], "or")
    def _logical_xor(self, a, b): return self._node(None, [self.convert(a, "bool"), self.convert(b, "bool")], "xor")

    def _invert(self, x):
        x, = self._integers("invert", x)
        return Value(self.body(f"xor {IR[x.type]} {x.text}, {'true' if x.type == 'bool' else -1}"), x.type)

    def _shl(self, a, b): return self._shift("shl", a, b)
    def _shr(self, a, b): return self._shift("shr", a, b)

    def _shift(self, op, a, b):
        # A shift by the width or more, or by a negative number, gives what shifting everything out gives (IR leaves it undefined).
        a, b = self._integers(op, a, b)
        ir, last = IR[a.type], _bits(a.type) - 1
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
        whole = self._node(None, [q], "floor")
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
        return self._node(None, [self._div(a, b)], "trunc") if a.type in FLOATS else self._int_divide(a, b)[0]

    def _crosses(self, r: Value, b: Value) -> Value:
        """Whether a remainder is non-zero and its sign is not the divisor's."""
        zero = self.constant(0, r.type)
        differ = self._node(None, [self._compare("lt", r, zero), self._compare("lt", b, zero)], "xor")
        return self._node(None, [self._compare("ne", r, zero), differ], "and")

    def _frem(self, a, b): return self._library("fmod", a, b)

    # ---- calls ----

    def _intrinsic(self, name: str, type: str, *args: Value) -> Value:
        ir = IR[type]
        function = f"@llvm.{name}.{SUFFIX[type]}"
        self.body.declare(f"declare {ir} {function}({', '.join([ir] * len(args))})")
        return Value(self.body(f"call {ir} {function}({', '.join(f'{ir} {a.text}' for a in args)})"), type)

    def _library(self, name: str, *args: Value) -> Value:
        args = self._floats(*args)
        ir, suffix = IR[args[0].type], SUFFIX[args[0].type]
        self.calls.add((name, suffix))
        return Value(self.body(f"call {ir} @m_{name}_{suffix}({', '.join(f'{ir} {a.text}' for a in args)})"), args[0].type)

    def _copysign(self, a, b):
        a, b = self._floats(a, b)
        return self._intrinsic("copysign", a.type, a, b)

    def _fma(self, a, b, c):
        a, b, c = self._common(a, b, c)
        return self._intrinsic("fma", a.type, a, b, c) if a.type in FLOATS else self._add(self._mul(a, b), c)

    def _hypot(self, a, b):
        # scaled by the larger, so that squares neither overflow nor vanish
        a, b = (self._abs(v) for v in self._floats(a, b))
        big, small = self._maximum(a, b), self._minimum(a, b)
        ratio = self.select(self._compare("eq", small, big), self.constant(1, a.type), self._div(small, big))
        root = self._node(None, [self._add(self._mul(ratio, ratio), self.constant(1, a.type))], "sqrt")
        result = self.select(self._compare("eq", big, self.constant(0, a.type)), big, self._mul(big, root))
        infinite = self._node(None, [self._isinf(a), self._isinf(b)], "or")
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
            return self._node(None, [x], "sqrt") if c > 0 else self._rsqrt(x)
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
        if name in ("float16", "bfloat16"):
            return self.decode(name, self.encode(name, x))
        return self.convert(x, compute_type(name))


def unsigned(type: str) -> bool:
    return type == "bool" or type[0] == "u"


def literal(value, type: str) -> str:
    """IR text of a Python number as a constant of compute type `type`."""
    if type in FLOATS:
        value = float(value)
        if type == "float32":
            try:
                value = struct.unpack("<f", struct.pack("<f", value))[0]
            except OverflowError:
                value = math.copysign(math.inf, value)
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    if type == "bool":
        return "true" if value else "false"
    bits = _bits(type)
    wrapped = int(value) & (2 ** bits - 1)
    return str(wrapped - 2 ** bits if wrapped >> (bits - 1) else wrapped)


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


def conversion_functions() -> str:
    """Internal functions `float @decode_float16(i16)`, `i16 @encode_float16(float)`, `i16 @encode_bfloat16(float)` for templates without expressions."""
    text = []
    for name, ir in (("decode_float16", "i16"), ("encode_float16", "float"), ("encode_bfloat16", "float")):
        lowering = Lowering(Body())
        lowering.half_in_hardware = False  # raw bits in and out
        if name.startswith("decode"):
            result, to = lowering.decode("float16", "%x").text, "float"
        else:
            result, to = lowering.encode(name[7:], Value("%x", "float32")), "i16"
        text += [f"define internal {to} @{name}({ir} %x) alwaysinline nounwind {{", *lowering.body.lines, f"  ret {to} {result}", "}"]
    return "\n".join(text)
