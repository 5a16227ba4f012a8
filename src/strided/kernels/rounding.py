"""Rounding other than to nearest, as a kernel: float32 or float64 elements to the neighbours that a coarser format has, still in their own type.

`build_rounding` gives the descriptor, `round_text` the IR. Stochastic rounding draws from a generator's Mersenne Twister (random_engine.py), one word an
element (two for float64), in memory order and serially like every random fill. The cast that stores the result, which is exact then, is the caller's.
"""
from __future__ import annotations

import math
from collections.abc import Callable

from ..dtypes import DType
from . import jit, native
from .random_engine import chunks, engine_text, kernel, loop, wide
from .scalar import Code, Value, absolute, copysign, intrinsic, select

MODES = ("stochastic", "toward_zero", "up", "down")
GIL_GRAIN = 1 << 15  # elements from which other Python threads may run
WORK_GRAIN = 1 << 15  # elements a part, where nothing is drawn

_descriptors: dict[tuple[str, str, int], bytes] = {}


def build_rounding(mode: str, kind: str, count: int) -> bytes:
    """Descriptor for `count` elements. mode: of MODES; kind: "float" or "double".

    Slots: the generator's state (0 but for "stochastic"), out, in, count, then `limits` of the format.
    """
    parts = 1 if mode == "stochastic" else native.parts_for(count, WORK_GRAIN)
    found = _descriptors.get((mode, kind, parts))
    if found is None:
        address = jit.compile_kernel(("rounding", mode, kind), lambda: round_text(mode, kind))
        found = _descriptors[mode, kind, parts] = native.pack_desc(address, 7, parts, release_gil=True)
    return found


def limits(dtype: DType) -> tuple[int, int, float]:
    """What a format's grid is: bits of mantissa, exponent of the smallest normal, largest magnitude. An integer's grid has the step 1 everywhere."""
    encoding = dtype.encoding
    if encoding is None:  # 62 − 62: no magnitude in reach has a larger exponent
        return 62, 62, float(2 ** (dtype.bits - dtype.is_signed) - 1)
    lowest = -encoding.bias if encoding.specials == "scale" else 1 - encoding.bias
    return encoding.mantissa, lowest, encoding.largest


def _step(code: Code, x: Value, up_if: Callable[[Value], Value]) -> tuple[Value, Value, Value]:
    """(whether x is within the format's range, x on its grid, |x|): away from zero where `up_if(rest)` says so, `rest` in [0, 1) being what x's magnitude has beyond the neighbour below, in steps."""
    mantissa, lowest, largest = (Value(code, name, type) for name, type in (("%mantissa", "i64"), ("%lowest", "i64"), ("%largest", "double")))
    magnitude = absolute(x)
    exponent = (magnitude.bits() >> 52) - 1023
    exponent = select(exponent < lowest, lowest, exponent)
    step = exponent - mantissa  # log2 of the gap between neighbours
    scaled = magnitude * ((1023 - step) << 52).floating()  # exact: a power of two
    below = intrinsic("floor", scaled)
    rounded = (below + up_if(scaled - below).to("double")) * ((step + 1023) << 52).floating()
    return magnitude <= largest, copysign(rounded, x), magnitude


def round_text(mode: str, kind: str) -> str:
    """The IR module of one mode. Magnitudes beyond the largest: "stochastic" leaves them to the cast; the others give the largest, or infinity."""
    drawn = mode == "stochastic"
    code = Code()
    code.lines.append(f"""
  %place = add i64 %base, %i_e
  %in_at = getelementptr inbounds {kind}, ptr %in, i64 %place
  %given = load {kind}, ptr %in_at""" if drawn else f"""
  %in_at = getelementptr inbounds {kind}, ptr %in, i64 %i_e
  %given = load {kind}, ptr %in_at""")  # fmt: skip
    x = Value(code, "%given", kind).to("double")
    if drawn:
        uniform = _uniform(code, kind)
        inside, rounded, _ = _step(code, x, lambda rest: uniform < rest)
        result = select(inside, rounded, x)
    else:
        # away from zero is up for positive numbers, down for negative ones
        wanted = {"toward_zero": None, "up": x > 0.0, "down": x < 0.0}[mode]
        away = code.value(False, "i1") if wanted is None else wanted
        inside, rounded, magnitude = _step(code, x, lambda rest: (rest > 0.0) & away)
        beyond = select(away, code.value(math.inf, "double"), Value(code, "%largest", "double"))
        finite = magnitude < math.inf
        result = select(inside, rounded, select(finite, copysign(beyond, x), x))
    result = result.to(kind)
    place = "%place" if drawn else "%i_e"
    store = f"\n  %out_at = getelementptr inbounds {kind}, ptr %out, i64 {place}\n  store {kind} {result.name}, ptr %out_at"
    body = "\n".join(code.lines) + store
    slots = "s:ptr out:ptr in:ptr n:i64 mantissa:i64 lowest:i64 largest:double"
    if drawn:
        text = engine_text() + kernel(slots, chunks(1 if kind == "float" else 2, loop("0", "%m", body, "e", "chunk", "chunk_end")) + "\n  ret void")
    else:
        share = "\n  %p0 = mul i64 %n, %part\n  %begin = udiv i64 %p0, %parts\n  %part1 = add i64 %part, 1\n  %p1 = mul i64 %n, %part1\n  %end = udiv i64 %p1, %parts\n"
        text = kernel(slots, share + loop("%begin", "%end", body, "e", "entry", "finish") + "\n  ret void")
    return f"{text}\nattributes #0 = {{ {jit.ATTRIBUTES} }}\n"


def _uniform(code: Code, kind: str) -> Value:
    """Uniform in [0, 1) of the element's own words: 32 bits for float32, whose rest has at most 23; 53 for float64."""
    if kind == "float":
        code.lines.append("  %word_at = getelementptr inbounds i32, ptr %words, i64 %i_e\n  %word = load i32, ptr %word_at\n  %whole = zext i32 %word to i64")
        return Value(code, "%whole", "i64").to("double") * 2.0**-32
    return (wide(code) & ((1 << 53) - 1)).to("double") * 2.0**-53


