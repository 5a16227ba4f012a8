"""float32 functions on sixteen lanes, by instructions that only AVX-512 has: exponents scaled and clamped in one step, coefficients looked up in registers.

LLVM's loop vectoriser cannot widen scalar code into these; it is told of them as variants of the scalar functions, which are one lane of them, so that an
element's value does not depend on where it lies. Elsewhere the functions of mathlib_common.py and mathlib_single.py serve.
"""
from __future__ import annotations

import math
from collections.abc import Callable

from . import mathlib_wide_tables as tables
from .jit import LATE
from .mathlib_tables import FLOAT
from .scalar import Code, Value, absolute, at_least, at_most, constant, copysign, fma, polynomial

LANES = 16
TYPE = f"<{LANES} x float>"
NEEDS = ("+avx512f", "+avx512dq")
ALL = f"i{LANES} -1"
_DECLARED = {
    "scalef": f"declare {TYPE} @llvm.x86.avx512.mask.scalef.ps.512({TYPE}, {TYPE}, {TYPE}, i16, i32)",
    "range": f"declare {TYPE} @llvm.x86.avx512.mask.range.ps.512({TYPE}, {TYPE}, i32, {TYPE}, i16, i32)",
    "vpermi2var": f"declare {TYPE} @llvm.x86.avx512.vpermi2var.ps.512({TYPE}, <{LANES} x i32>, {TYPE})",
}


# ---- instructions -----------------------------------------------------------------------------------------------------


def scaled(p: Value, n: Value) -> Value:
    """p·2^floor(n), rounded once; overflow, underflow and infinite n as they should be."""
    return p.code.emit(TYPE, f"call {TYPE} @llvm.x86.avx512.mask.scalef.ps.512({TYPE} {p.name}, {TYPE} {n.name}, {TYPE} {p.name}, {ALL}, i32 4)")


def within(r: Value, bound: float) -> Value:
    """r with its size limited to `bound`, which also takes the place of NaN."""
    limit = r.code.value(bound, TYPE)
    return r.code.emit(TYPE, f"call {TYPE} @llvm.x86.avx512.mask.range.ps.512({TYPE} {r.name}, {TYPE} {limit.name}, i32 2, {TYPE} {r.name}, {ALL}, i32 4)")


def looked_up(table: tuple[float, ...], index: Value) -> Value:
    """table[lowest five bits of index]: 32 numbers that stay in two registers."""
    low, high = ("<" + ", ".join(f"float {constant(v, 'float')}" for v in half) + ">" for half in (table[:LANES], table[LANES:]))
    return index.code.emit(TYPE, f"call {TYPE} @llvm.x86.avx512.vpermi2var.ps.512({TYPE} {low}, <{LANES} x i32> {index.name}, {TYPE} {high})")


# ---- functions --------------------------------------------------------------------------------------------------------


ROOTS = tuple(2.0 ** (k / 32) for k in range(32))
TO_32NDS = 1.5 * 2.0**18  # added to a number it leaves the nearest 32nd: which one in the lowest five bits, the whole part above them


def _powers(shifted: Value, r: Value, *rest: float) -> Value:
    """2^n·(1 + r·rest(r)) for shifted = n + TO_32NDS: the root of 2 that belongs to n's fraction is looked up, its whole part enters as an exponent."""
    root = looked_up(ROOTS, shifted.bits())
    return scaled(fma(root * r, polynomial(r, *rest), root), shifted - TO_32NDS)


def exp(x: Value) -> Value:
    """x = n·ln 2 + r. Where x is too large for that, n alone decides the result, and r is kept from being NaN."""
    shifted = fma(x, FLOAT.log2e, TO_32NDS)
    n = shifted - TO_32NDS
    r = within(fma(n, -FLOAT.ln2_lo, fma(n, -FLOAT.ln2_hi, x)), 0.011)
    return _powers(shifted, r, 1 / 6, 0.5, 1.0)


def exp2(x: Value) -> Value:
    shifted = x + TO_32NDS
    ln2 = math.log(2)
    return _powers(shifted, within(x - (shifted - TO_32NDS), 1 / 64), ln2**3 / 6, ln2**2 / 2, ln2)


def _odd(x: Value, width: float, most: float, table: tuple[tuple[float, ...], ...]) -> Value:
    """An odd function that is 1 from `most` on: x·f(|x|), f by a polynomial around the nearest of 32 centres. The lowest coefficient, which is exact, joins last."""
    a = at_most(absolute(x), most)
    index = fma(a, 1 / width, 1.5 * 2.0**23).bits()
    centre, lowest, *others = [looked_up(row, index) for row in table]
    t = a - centre
    rest = others.pop()
    for c in reversed(others):
        rest = fma(rest, t, c)
    return copysign(fma(a, lowest, a * (rest * t)), x)


def erf(x: Value) -> Value:
    return _odd(x, tables.ERF_WIDTH, tables.ERF_MOST, tables.ERF)


def tanh(x: Value) -> Value:
    return _odd(x, tables.TANH_WIDTH, tables.TANH_MOST, tables.TANH)


def ndtr(x: Value) -> Value:
    magic, width = 1.5 * 2.0**23, tables.NDTR_WIDTH
    a = at_least(at_most(x, tables.NDTR_MOST), -tables.NDTR_MOST)
    shifted = fma(a, 1 / width, magic)
    t = fma(shifted - magic, -width, a)
    lowest, *others, p = [looked_up(row, shifted.bits()) for row in tables.NDTR]
    for c in reversed(others):
        p = fma(p, t, c)
    return fma(p, t, lowest)


FUNCTIONS: dict[str, Callable[[Value], Value]] = {f.__name__: f for f in (exp, exp2, erf, tanh, ndtr)}


# ---- text -------------------------------------------------------------------------------------------------------------


def definitions(names: list[str]) -> str:
    """IR text of `@m_<name>_f32`, with what the loop vectoriser may take instead of sixteen or eight calls of it."""
    text = "\n".join(_definition(n) for n in names)
    declared = "\n".join(d for key, d in _DECLARED.items() if f".{key}." in text)
    return f"{declared}\n{text}\n"


def _definition(name: str) -> str:
    code = Code()
    result = FUNCTIONS[name](Value(code, "%x", TYPE))
    body = "\n".join(code.lines)
    facts = f'noinline nounwind willreturn memory(none) "{LATE}"'
    variants = ",".join(f"_ZGV_LLVM_N{w}v_m_{name}_f32(m_{name}_f32_v{w})" for w in (16, 8))
    lanes = ", ".join(f"i32 {k if k < 8 else 'poison'}" for k in range(LANES))
    first = ", ".join(f"i32 {k}" for k in range(8))
    return f"""define internal {TYPE} @m_{name}_f32_v16({TYPE} %x) {facts} {{
{body}
  ret {TYPE} {result.name}
}}
define internal <8 x float> @m_{name}_f32_v8(<8 x float> %x) {facts} {{
  %w = shufflevector <8 x float> %x, <8 x float> poison, <{LANES} x i32> <{lanes}>
  %y = call {TYPE} @m_{name}_f32_v16({TYPE} %w)
  %r = shufflevector {TYPE} %y, {TYPE} poison, <8 x i32> <{first}>
  ret <8 x float> %r
}}
define internal float @m_{name}_f32(float %x) {facts} "vector-function-abi-variant"="{variants}" {{
  %w = insertelement {TYPE} poison, float %x, i32 0
  %y = call {TYPE} @m_{name}_f32_v16({TYPE} %w)
  %r = extractelement {TYPE} %y, i32 0
  ret float %r
}}
"""
