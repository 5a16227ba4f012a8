"""The expression language against PyTorch on every pair of awkward values: results, signs of zeros, NaNs, integer wrapping, conversions."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

import strided.dtypes as D
from strided.kernels import expr as E
from strided.kernels import native
from strided.kernels.map import build_map
from strided.layout import Layout

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

AWKWARD = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 1e-8, 1e30, -1e30, np.inf, -np.inf, np.nan, 2.5, -2.5, 7.3, 100.0, -100.0]
INTEGERS = {"u1": [0, 1, 2, 3, 7, 127, 128, 200, 255], "i1": [0, 1, -1, 2, -2, 3, -3, 127, -128, 7], "i2": [0, 1, -1, 2, -3, 32767, -32768, 7],
            "i4": [0, 1, -1, 2, -3, 2**31 - 1, -2**31, 7], "i8": [0, 1, -1, 2, -3, 2**63 - 1, -2**63, 7]}


def pairs(values, dtype):
    return tuple(np.array(column, dtype) for column in zip(*itertools.product(values, repeat=2)))


def check(function, reference, *arrays, relative=2e-6):
    want = reference(*(torch.from_numpy(a.copy()) for a in arrays)).numpy()
    layout = Layout.contiguous(want.shape)
    got = np.empty_like(want)
    expr = E.trace(function, len(arrays))
    desc = build_map(expr, [(D.from_numpy_dtype(want.dtype), layout)], [(D.from_numpy_dtype(a.dtype), layout) for a in arrays])
    native.launch(desc, got.ctypes.data, *(a.ctypes.data for a in arrays))
    if want.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=relative if want.dtype != np.float64 else 1e-13, atol=0)
        zeros = want == 0
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))
    else:
        np.testing.assert_array_equal(got, want)


ONE = """exp exp2 expm1 log log1p log2 log10 sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc sigmoid floor ceil
trunc round abs neg sign relu isnan isinf isfinite signbit lgamma logical_not""".split()
TWO = "maximum minimum fmax fmin atan2 hypot copysign fmod pow logical_and logical_or logical_xor".split()
OPERATORS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b, "//": lambda a, b: a // b, "%": lambda a, b: a % b, "<": lambda a, b: a < b,
             "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ONE)
def test_one_float(name, dtype):
    check(getattr(E, name), getattr(torch, name), np.array(AWKWARD * 4, dtype))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", TWO)
def test_two_floats(name, dtype):
    check(getattr(E, name), getattr(torch, name), *pairs(AWKWARD, dtype))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_on_floats(name, dtype):
    check(OPERATORS[name], OPERATORS[name], *pairs(AWKWARD, dtype))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_forms_with_options(dtype):
    a, b = pairs(AWKWARD, dtype)
    check(E.truncdiv, lambda p, q: torch.div(p, q, rounding_mode="trunc"), a, b)
    check(lambda p: E.clamp(p, -1, 2), lambda p: torch.clamp(p, -1, 2), a)
    check(lambda p, q: E.clamp(p, q, q + 1), lambda p, q: torch.clamp(p, q, q + 1), a, b)
    for c in (0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.5, -3, 4):
        check(lambda p, c=c: p**c, lambda p, c=c: p**c, a)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype):
    a, b = pairs(INTEGERS[dtype], dtype)
    for name in ("+", "-", "*", "/", "<", ">=", "=="):
        check(OPERATORS[name], OPERATORS[name], a, b)
    for function in (lambda p, q: p & q, lambda p, q: p | q, lambda p, q: p ^ q, lambda p, q: p << q, lambda p, q: p >> q):
        check(function, function, a, b)
    for name in ("maximum", "minimum", "logical_and", "logical_or", "logical_xor"):
        check(getattr(E, name), getattr(torch, name), a, b)
    for name in ("abs", "neg", "sign", "floor", "round"):
        check(getattr(E, name), getattr(torch, name), a)
    check(lambda p: ~p, lambda p: ~p, a)
    check(lambda p, q: p**q, lambda p, q: p**q, a, np.clip(b, 0, 5).astype(dtype))
    if dtype != "u1":
        check(lambda p, q: p**q, lambda p, q: p**q, a, np.full_like(a, -3))
        check(lambda p, q: p**q, lambda p, q: p**q, a, np.full_like(a, -2))
    safe = (b != 0) & ~((b.astype(object) == -1) & (a == np.iinfo(dtype).min))  # PyTorch raises, or stops the process
    a, b = a[safe], b[safe]
    check(OPERATORS["//"], OPERATORS["//"], a, b)
    check(OPERATORS["%"], OPERATORS["%"], a, b)
    check(E.fmod, torch.fmod, a, b)
    check(E.truncdiv, lambda p, q: torch.div(p, q, rounding_mode="trunc"), a, b)


TYPES = {"f4": torch.float32, "f8": torch.float64, "f2": torch.float16, "i1": torch.int8, "u1": torch.uint8, "i2": torch.int16, "i4": torch.int32, "i8": torch.int64, "?": torch.bool,
         "u2": torch.uint16, "u4": torch.uint32, "u8": torch.uint64}
SOURCES = {"f4": [*AWKWARD, 3e9, -3e9, 300.7, -129.5, 65519.0, 2.0**31, 5e9, 1e19, 2e19], "f8": [*AWKWARD, 3e9, -3e9, 300.7, -129.5, 65519.0, 2.0**31 - 0.5, 2.0**63, 1e19, 2e19, 1e300, 1 + 2.0**-40],
           "i8": [0, 1, -1, 2**62, 2**53 + 1, -2**63, 300, 65519], "u1": list(range(256)), "?": [True, False]}


@pytest.mark.parametrize("to", TYPES)
@pytest.mark.parametrize("source", SOURCES)
def test_conversions(source, to):
    check(lambda p: p, lambda p: p.to(TYPES[to]), np.array(SOURCES[source] * 10, source), relative=0)
