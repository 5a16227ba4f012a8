"""Elementary functions for kernels: `definitions` gives the IR text of `@m_exp_f32` and its kin.

Every float32 function, and every float64 one that is not left to libm, is branch-free scalar code (selects, bit manipulation, fused multiply-adds): LLVM's
loop vectoriser widens a loop over it to full vectors. Only fmod is a call (it is exact, over quotients of up to 2^277). The functions are in
mathlib_common.py and mathlib_single.py (a few for AVX-512 alone in mathlib_wide.py), the constants in mathlib_tables.py. Nothing here knows of tensors.

Largest errors seen, in units of the last place (float32: 4.7 million bit patterns over the whole range, special values, dense stretches, against float64;
float64: 12 000 values against 40 digits; on a host with fused multiply-add):

              f32   f64               f32   f64               f32   f64
    acos     1.04  1.06    digamma  0.50   abs    log10    0.90  0.83
    acosh    1.83  1.64    erf      1.01  0.97    log1p    1.56  1.21
    asin     1.35  1.45    erfc     1.47  libm    log2     1.32  1.02
    asinh    1.81  1.50    erfinv   1.95  1.56    pow      0.50  libm
    atan     1.26  1.39    exp      0.87  0.91    sin      1.56  libm
    atan2    1.50  1.35    exp2     0.80  0.68    sinh     1.57  1.51
    atanh    1.95  1.50    expm1    1.47  1.67    tan      1.86  libm
    cos      1.55  libm    lgamma   0.50  libm    tanh     1.34  1.16
    cosh     1.29  1.23    log      0.84  0.78

(digamma in float64: 1e-15 absolute.) ndtr: two units in the last place of numbers from 1/2 to 1, with AVX-512 one. With AVX-512 exp, exp2, erf, tanh and ndtr are those of
mathlib_wide.py in float32; the first four: 1.01, 1.01, 0.55 and 0.70.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable

import llvmlite.binding as llvm

from . import jit, mathlib_wide
from .mathlib_common import COMMON
from .mathlib_single import DOUBLE as DOUBLE_ONLY
from .mathlib_single import SINGLE
from .scalar import Code, Value, call

SCALEF = llvm.llvm_version_info[0] >= 22  # the first LLVM that turns llvm.ldexp into AVX-512's instruction, not into calls of libm
BINARY = frozenset({"atan2", "pow", "fmod"})
LIBM = frozenset({"sin", "cos", "tan", "erfc", "pow", "fmod", "lgamma"})  # float64 through libm: exact reduction and range matter more than speed there
FLOAT: dict[str, Callable[..., Value]] = {**COMMON, **SINGLE}
DOUBLE: dict[str, Callable[..., Value]] = {**COMMON, **DOUBLE_ONLY}


def define(name: str, function: Callable[..., Value], type: str, suffix: str, host: jit.Host) -> str:
    """`function` as the text of an internal function `@m_name_suffix`."""
    code = Code(host.fma, scalef=SCALEF and "+avx512f" in host.features and "+avx512vl" in host.features)
    names = ("%x", "%y") if name in BINARY else ("%x",)
    result = function(*(Value(code, n, type) for n in names))
    arguments = ", ".join(f"{type} {n}" for n in names)
    body = "\n".join(code.lines)
    return f"define internal {type} @m_{name}_{suffix}({arguments}) alwaysinline nounwind {{\n{body}\n  ret {type} {result.name}\n}}\n"


def definitions(names: Iterable[str], type: str) -> str:
    """IR text of `@m_<name>_f32` (float) or `@m_<name>_f64` (double) for each name, in a stable order, each once.

    Raises NotImplementedError for a name that has no definition in that type.
    """
    host = jit.host()
    names = sorted(set(names))
    libm = sorted({n for name in names for n in _libm_calls(name, type)})
    declared = "".join(f"declare double @{n}({'double, double' if n in BINARY else 'double'})\n" for n in libm)
    wide = [name for name in names if type == "f32" and name in mathlib_wide.FUNCTIONS and host.features.issuperset(mathlib_wide.NEEDS)]
    text = declared + "\n".join(_definition(name, type, host) for name in names if name not in wide)
    return text + mathlib_wide.definitions(wide) if wide else text


def _libm_calls(name: str, type: str) -> tuple[str, ...]:
    if type == "f64":
        return (name,) if name in LIBM else ("erf", "erfc") if name == "erfinv" else ()
    return ()


def _definition(name: str, type: str, host: jit.Host) -> str:
    if type == "f32" and name in FLOAT:
        return define(name, FLOAT[name], "float", "f32", host)
    if type == "f64" and name in DOUBLE:
        return define(name, DOUBLE[name], "double", "f64", host)
    if type == "f64" and name in LIBM:
        return define(name, lambda *args: call(name, *args), "double", "f64", host)
    raise NotImplementedError(f"no {type} definition of {name!r}; there are {', '.join(sorted(FLOAT))}")
