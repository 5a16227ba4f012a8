"""Map kernels: every function and number format against NumPy in float64, conversions bit for bit, and every kind of layout."""
import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strided.dtypes as D
from strided.kernels import expr as E
from strided.kernels import jit, native
from strided.kernels.lower import Lowering
from strided.kernels.map import build_map, map_text
from strided.layout import Layout

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, about the NaNs that are tested on purpose

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype("f4"), np.dtype("f8"), np.dtype("f2"), BF16]
INTS = [np.dtype(c) for c in ("u1", "i1", "i2", "i4", "i8")]


def operand(a):
    if isinstance(a, np.ndarray):
        return D.from_numpy_dtype(a.dtype), Layout.of(a.shape, [s // a.itemsize for s in a.strides])
    return a if isinstance(a, tuple) else ("param", "f64" if isinstance(a, float) else "i64")


def run(function, out, *inputs, **options):
    """Runs the traced function into `out`: inputs are arrays, Python numbers (run-time scalars) or ("index", d)."""
    outs = out if isinstance(out, tuple) else (out,)
    expr = E.trace(function, len(inputs))
    desc = build_map(expr, [operand(o) for o in outs], [operand(i) for i in inputs], **options)
    slots = [i.ctypes.data if isinstance(i, np.ndarray) else i for i in inputs if not isinstance(i, tuple)]
    native.launch(desc, *(o.ctypes.data for o in outs), *slots)
    return out


def values(dtype, n=1000, low=-10.0, high=10.0, seed=0):
    rng = np.random.default_rng(seed)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        edge = np.array([info.min, info.max, 0, 1, info.max // 2], dtype)
        return np.concatenate([rng.integers(max(low, info.min), min(high, info.max), n, dtype, endpoint=True), edge]).astype(dtype)
    return rng.uniform(low, high, n).astype(dtype)


def close(result, expected, dtype, ulps=4):
    """Within `ulps` units of the last place of `dtype` of the float64 `expected`; the same NaNs and infinities."""
    with np.errstate(all="ignore"):
        target = expected.astype(dtype).astype(np.float64)
    result = result.astype(np.float64)
    special = ~np.isfinite(target) | ~np.isfinite(result)
    np.testing.assert_array_equal(result[special], target[special])
    eps, tiny = float(ml_dtypes.finfo(dtype).eps), float(ml_dtypes.finfo(dtype).tiny)
    error = np.abs(result - expected)[~special]
    allowed = (ulps * eps * np.maximum(np.abs(expected), tiny))[~special]
    assert (error <= allowed).all(), (error / allowed).max()


# ---- functions ------------------------------------------------------------------------------------------------------------------------------

UNARY = {
    "exp": (E.exp, np.exp, -90, 90), "exp2": (E.exp2, np.exp2, -130, 130), "expm1": (E.expm1, np.expm1, -20, 80), "log": (E.log, np.log, -1, 1e6), "log1p": (E.log1p, np.log1p, -1.1, 100),
    "log2": (E.log2, np.log2, 0, 1e6), "log10": (E.log10, np.log10, 0, 1e6), "sqrt": (E.sqrt, np.sqrt, -1, 1e6), "rsqrt": (E.rsqrt, lambda v: 1 / np.sqrt(v), 0, 1e3),
    "reciprocal": (E.reciprocal, lambda v: 1 / v, -10, 10), "sin": (E.sin, np.sin, -50, 50), "cos": (E.cos, np.cos, -50, 50), "tan": (E.tan, np.tan, -50, 50),
    "asin": (E.asin, np.arcsin, -1.1, 1.1), "acos": (E.acos, np.arccos, -1.1, 1.1), "atan": (E.atan, np.arctan, -50, 50), "sinh": (E.sinh, np.sinh, -80, 80), "cosh": (E.cosh, np.cosh, -80, 80),
    "tanh": (E.tanh, np.tanh, -10, 10), "asinh": (E.asinh, np.arcsinh, -50, 50), "acosh": (E.acosh, np.arccosh, 0.9, 50), "atanh": (E.atanh, np.arctanh, -1.1, 1.1),
    "erf": (E.erf, np.vectorize(math.erf), -5, 5), "erfc": (E.erfc, np.vectorize(math.erfc), -5, 9), "sigmoid": (E.sigmoid, lambda v: 1 / (1 + np.exp(-v)), -80, 80),
    "floor": (E.floor, np.floor, -50, 50), "ceil": (E.ceil, np.ceil, -50, 50), "trunc": (E.trunc, np.trunc, -50, 50), "round": (E.round, np.rint, -50, 50), "abs": (E.abs, np.abs, -50, 50),
    "neg": (E.neg, np.negative, -50, 50), "sign": (E.sign, np.sign, -50, 50), "relu": (E.relu, lambda v: np.maximum(v, 0), -50, 50),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, dtype):
    function, reference, low, high = UNARY[name]
    x = values(dtype, low=low, high=high)
    if name not in ("sin", "cos", "tan"):
        x = np.concatenate([x, np.array([0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, np.inf, -np.inf, np.nan], dtype)])
    out = run(function, np.empty_like(x), x)
    with np.errstate(all="ignore"):
        expected = reference(x.astype(np.float64))
    if name == "sign":
        expected = np.nan_to_num(expected)  # PyTorch's sign of NaN is 0
    close(out, np.asarray(expected, np.float64), dtype)


BINARY = {
    "add": (lambda a, b: a + b, np.add), "sub": (lambda a, b: a - b, np.subtract), "mul": (lambda a, b: a * b, np.multiply), "div": (lambda a, b: a / b, np.divide),
    "maximum": (E.maximum, np.maximum), "minimum": (E.minimum, np.minimum), "fmax": (E.fmax, np.fmax), "fmin": (E.fmin, np.fmin), "atan2": (E.atan2, np.arctan2), "hypot": (E.hypot, np.hypot),
    "copysign": (E.copysign, np.copysign), "fmod": (E.fmod, np.fmod), "pow": (lambda a, b: a ** b, np.power),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, dtype):
    function, reference = BINARY[name]
    special = np.array(list(itertools.product([0.0, -0.0, 1.0, -1.0, 2.0, -2.5, np.inf, -np.inf, np.nan], repeat=2)), dtype)
    a = np.concatenate([values(dtype, seed=1), special[:, 0]])
    b = np.concatenate([values(dtype, seed=2), special[:, 1]])
    with np.errstate(all="ignore"):
        expected = reference(a.astype(np.float64), b.astype(np.float64))
    close(run(function, np.empty_like(a), a, b), expected, dtype)


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8")], ids=str)
def test_floor_division_and_modulo_of_floats(dtype):
    a, b = values(dtype, seed=3), np.round(values(dtype, seed=4), 1)
    b[b == 0] = 0.3
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(lambda p, q: p // q, np.empty_like(a), a, b), np.floor_divide(a, b))
        np.testing.assert_array_equal(run(lambda p, q: p % q, np.empty_like(a), a, b), np.mod(a, b))
    zero = np.zeros(3, dtype)
    np.testing.assert_array_equal(run(lambda p, q: p // q, np.empty(3, dtype), np.array([1, -1, 0], dtype), zero), [np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integers(dtype):
    a, b = values(dtype, seed=5), values(dtype, seed=6)[::-1].copy()
    b[b == 0] = 3
    with np.errstate(all="ignore"):
        for function, reference in [
            (lambda p, q: p + q, np.add), (lambda p, q: p - q, np.subtract), (lambda p, q: p * q, np.multiply), (lambda p, q: p // q, np.floor_divide), (lambda p, q: p % q, np.mod),
            (E.fmod, np.fmod), (E.maximum, np.maximum), (E.minimum, np.minimum), (lambda p, q: p & q, np.bitwise_and), (lambda p, q: p | q, np.bitwise_or),
            (lambda p, q: p ^ q, np.bitwise_xor), (lambda p, q: E.abs(p), lambda p, q: np.abs(p)), (lambda p, q: -p, lambda p, q: np.negative(p)), (lambda p, q: ~p, lambda p, q: ~p),
            (lambda p, q: E.sign(p), lambda p, q: np.sign(p)), (lambda p, q: p ** 3, lambda p, q: p ** dtype.type(3)), (lambda p, q: p ** 7, lambda p, q: p ** dtype.type(7)),
        ]:
            np.testing.assert_array_equal(run(function, np.empty_like(a), a, b), reference(a, b))
        quotient = np.trunc(a.astype(np.longdouble) / b.astype(np.longdouble))
        np.testing.assert_array_equal(run(E.truncdiv, np.empty_like(a), a, b)[:-5], quotient.astype(dtype)[:-5])
        np.testing.assert_array_equal(run(lambda p, q: p / q, np.empty(a.shape, "f4"), a, b), a.astype("f4") / b.astype("f4"))


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integer_division_never_traps(dtype):
    low = np.iinfo(dtype).min
    a = np.array([low, 5, 0, low], dtype)
    b = np.array([-1 if dtype.kind == "i" else 255, 0, 0, 0], dtype)
    for op in (lambda p, q: p // q, lambda p, q: p % q, E.fmod, E.truncdiv):
        out = run(op, np.empty_like(a), a, b)
        assert out[1:].tolist() == [0, 0, 0]
    if dtype.kind == "i":
        assert run(lambda p, q: p // q, np.empty_like(a), a, b)[0] == low


def test_integer_powers():
    a = np.array([2, -2, 3, 1, -1, -1, 0, 5, 1, 0], "i8")
    b = np.array([10, 3, 0, -5, -2, -3, 0, -1, 0, 9], "i8")
    assert run(lambda p, q: p ** q, np.empty_like(a), a, b).tolist() == [1024, -8, 1, 1, 1, -1, 1, 0, 1, 0]


def test_shifts_out_of_range_shift_everything_out():
    a = np.array([1, -8, -8, 5, 5, -1], "i4")
    b = np.array([3, 1, 40, 32, -1, -1], "i4")
    assert run(lambda p, q: p << q, np.empty_like(a), a, b).tolist() == [8, -16, 0, 0, 0, 0]
    assert run(lambda p, q: p >> q, np.empty_like(a), a, b).tolist() == [0, -4, -1, 0, 0, -1]
    u = np.array([200, 200], "u1")
    assert run(lambda p, q: p >> q, np.empty_like(u), u, np.array([1, 9], "u1")).tolist() == [100, 0]


def test_booleans():
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    for function, expected in [(lambda p, q: p & q, a & b), (lambda p, q: p | q, a | b), (lambda p, q: p ^ q, a ^ b), (lambda p, q: ~p, ~a), (lambda p, q: p + q, a | b),
                               (lambda p, q: p * q, a & b), (E.logical_and, a & b), (E.logical_or, a | b), (E.logical_xor, a ^ b), (lambda p, q: E.logical_not(p), ~a),
                               (lambda p, q: p < q, a < b), (lambda p, q: p >= q, a >= b), (E.maximum, a | b)]:
        np.testing.assert_array_equal(run(function, np.empty_like(a), a, b), expected)
    odd = np.array([0, 1, 2, 255], "u1").view(bool)  # any non-zero byte is True, and True is written as 1
    assert run(lambda p: p, np.empty(4, bool), odd).view("u1").tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("dtype", FLOATS + INTS, ids=str)
def test_comparisons(dtype):
    a, b = values(dtype, low=-3, high=3, seed=7), values(dtype, low=-3, high=3, seed=8)
    if dtype.kind not in "iu":
        a[:3], b[2:5] = np.nan, np.nan
    b[5:50] = a[5:50]
    for op in ("lt", "le", "gt", "ge", "eq", "ne"):
        reference = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}[op]
        np.testing.assert_array_equal(run(lambda p, q, op=op: E.node(op, p, q), np.empty(a.shape, bool), a, b), reference(a, b))


def test_tests_of_floats():
    x = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan], "f4")
    for function, reference in [(E.isnan, np.isnan), (E.isinf, np.isinf), (E.isfinite, np.isfinite), (E.signbit, np.signbit), (E.logical_not, np.logical_not)]:
        np.testing.assert_array_equal(run(function, np.empty(7, bool), x), reference(x))
    out = run(lambda v: E.clamp(v, -1, 1.25), np.empty_like(x), x)
    np.testing.assert_array_equal(out, np.clip(x, -1, 1.25))
    np.testing.assert_array_equal(run(lambda v: E.clamp(v, low=0.5), np.empty_like(x), x), np.maximum(x, np.float32(0.5)))


# ---- conversions ----------------------------------------------------------------------------------------------------------------------------

def all_halves():
    return np.arange(65536, dtype=np.uint32).astype(np.uint16)


@pytest.mark.parametrize("dtype", [np.dtype("f2"), BF16], ids=str)
def test_every_16_bit_float_decodes(dtype):
    x = all_halves().view(dtype)
    out = run(lambda v: v, np.empty(x.shape, "f4"), x)
    np.testing.assert_array_equal(out, x.astype("f4"))
    back = run(lambda v: v, np.empty(x.shape, dtype), out)
    real = ~np.isnan(out)
    np.testing.assert_array_equal(back.view("u2")[real], x.view("u2")[real])
    assert np.isnan(back[~real].astype("f4")).all()


@np.errstate(all="ignore")
def awkward_floats():
    """Values on, just above and just below the midpoints between neighbouring 16-bit floats, and around both ends of the range."""
    bits = np.random.default_rng(0).integers(0, 2**32, 200_000, dtype=np.uint32)
    ties = (all_halves().astype(np.uint32) << 16) | 0x8000
    halves = np.nextafter(all_halves().view("f2").astype("f4"), np.float32(0), dtype="f4")
    middle = (all_halves()[:31743].view("f2").astype("f4") + all_halves()[1:31744].view("f2").astype("f4")) / 2
    near = [np.nextafter(middle, np.float32(s), dtype="f4") for s in (-np.inf, np.inf)]
    return np.concatenate([bits.view("f4"), ties.view("f4"), (ties + 1).view("f4"), (ties - 1).view("f4"), halves, middle, -middle, *near, np.array([65504, 65519.9, 65520, 1e38, 3.4e38], "f4")])


@pytest.mark.parametrize("hardware", [True, False])
@pytest.mark.parametrize("dtype", [np.dtype("f2"), BF16], ids=str)
def test_rounding_to_16_bits(dtype, hardware, monkeypatch):
    x = awkward_floats()
    if not hardware:
        software(monkeypatch)
    with np.errstate(all="ignore"):
        expected = x.astype(dtype)
    out = run(lambda v: v, np.empty(x.shape, dtype), x)
    real = ~np.isnan(x)
    np.testing.assert_array_equal(out.view("u2")[real], expected.view("u2")[real])
    assert np.isnan(out[~real].astype("f4")).all()
    if not hardware:
        y = all_halves().view(dtype)
        np.testing.assert_array_equal(run(lambda v: v, np.empty(y.shape, "f4"), y), y.astype("f4"))


def software(monkeypatch):
    """Kernels as on a host without hardware conversions: none that were compiled before, and none that others would find on disk."""
    monkeypatch.setattr(jit, "_addresses", {})
    monkeypatch.setattr(jit, "_directory", None)
    original = Lowering.__init__

    def plain(self, *args, **options):
        original(self, *args, **options)
        self.half_in_hardware = False
    monkeypatch.setattr(Lowering, "__init__", plain)


def test_casts_inside_an_expression_round():
    x = np.array([1.001, 2.003, -3.3], "f4")
    out = run(lambda v: E.cast(v, "bfloat16") * 1.0, np.empty_like(x), x)
    np.testing.assert_array_equal(out, x.astype(BF16).astype("f4"))
    assert run(lambda v: E.cast(v, D.int8) + 0.5, np.empty_like(x), x).tolist() == [1.5, 2.5, -2.5]
    assert run(lambda v: E.cast(E.cast(v, "float64") * 3, "float32"), np.empty_like(x), x).tolist() == (x.astype("f8") * 3).astype("f4").tolist()


@pytest.mark.parametrize("source", [np.dtype("f4"), np.dtype("f8")], ids=str)
def test_floats_to_integers_as_x86_converts(source):
    x = np.array([0.9, -0.9, 127.5, -128.9, 300.7, -1.5, np.nan, np.inf, -np.inf, 3e9, -3e9, 1e30], source)
    low32, low64 = -2**31, -2**63
    assert run(lambda v: v, np.empty(12, "i8"), x).tolist()[:6] == [0, 0, 127, -128, 300, -1]
    assert run(lambda v: v, np.empty(12, "i8"), x).tolist()[6:] == [low64] * 3 + [3 * 10**9, -3 * 10**9, low64]
    assert run(lambda v: v, np.empty(12, "i4"), x).tolist() == [0, 0, 127, -128, 300, -1] + [low32] * 6
    assert run(lambda v: v, np.empty(12, "i1"), x).tolist() == [0, 0, 127, -128, 44, -1] + [0] * 6
    assert run(lambda v: v, np.empty(12, "u1"), x).tolist() == [0, 0, 127, 128, 44, 255, 0, 0, 0, 3 * 10**9 % 256, -3 * 10**9 % 256, 0]
    assert run(lambda v: v, np.empty(12, bool), x).tolist() == [True] * 12


def test_doubles_just_inside_the_range_of_int32():
    x = np.array([2147483647.5, -2147483648.5, 2147483648.0, -2147483649.0])
    assert run(lambda v: v, np.empty(4, "i4"), x).tolist() == [2147483647, -2147483648, -2147483648, -2147483648]


@pytest.mark.parametrize("to", FLOATS + INTS + [np.dtype(bool)], ids=str)
@pytest.mark.parametrize("source", FLOATS + INTS + [np.dtype(bool)], ids=str)
def test_conversion(source, to):
    x = values(source, low=0, high=100) if source.kind != "b" else np.array([True, False] * 9)
    with np.errstate(all="ignore"):
        expected = x.astype("f4").astype(to) if to in (BF16, np.dtype("f2")) else x.astype(to)
    if source.kind in "iu" and to.kind == "f" or to == BF16:
        x, expected = x[:1000], expected[:1000]
    np.testing.assert_array_equal(run(lambda v: v, np.empty(x.shape, to), x), expected)


def test_compute_converts_on_loading():
    a, b = np.array([7, 250], "u1"), np.array([10, 10], "i8")
    assert run(lambda p, q: p + q, np.empty(2, "i8"), a, b, compute=D.uint8).tolist() == [17, 4]
    assert run(lambda p, q: p / q, np.empty(2, "f8"), a, b, compute=D.float64).tolist() == [0.7, 25.0]
    assert run(lambda p, q: p + q, np.empty(2, "i8"), a, b, compute=(D.bool_, None)).tolist() == [11, 11]


def test_scalars_take_the_type_of_what_they_meet():
    x = np.array([1, 2, 3], "f4")
    assert run(lambda v, s: v * s, np.empty_like(x), x, 0.1).tolist() == (x * np.float32(0.1)).tolist()
    assert run(lambda v, s: v + s, np.empty(3, "i1"), np.array([127, 0, -1], "i1"), 1).tolist() == [-128, 1, 0]
    assert run(lambda s: s, np.empty(3, "f8"), 0.1).tolist() == [0.1] * 3
    assert run(lambda s: s, np.empty(3, "i8"), 2**62 + 1).tolist() == [2**62 + 1] * 3
    assert run(lambda v: v + (2**53 + 1), np.empty(1, "i8"), np.array([0], "i8")).tolist() == [2**53 + 1]


# ---- layouts --------------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 63, 64, 65, 127, 255, 1000, 4099])
def test_every_tail(n):
    x = np.arange(n + 1, dtype="f4")[1:]
    out = np.full(n + 2, -1, "f4")
    run(lambda v: v * 2, out[1:-1], x)
    np.testing.assert_array_equal(out, np.concatenate([[-1], x * 2, [-1]]))


@st.composite
def views(draw, shape, dtype="f4"):
    """An array of `shape` that lies somehow: permuted, with gaps, reversed memory order, or broadcast."""
    order = draw(st.permutations(range(len(shape))))
    gaps = [draw(st.integers(1, 2)) for _ in shape]
    base = np.arange(int(np.prod([shape[d] * gaps[d] for d in order])), dtype=dtype).reshape([shape[d] * gaps[d] for d in order])
    base = base[tuple(slice(None, None, gaps[d]) for d in order)].transpose(np.argsort(order)) if shape else base.reshape(())
    fixed = [draw(st.integers(0, 4)) == 0 for _ in shape]
    return np.broadcast_to(base[tuple(slice(0, 1) if f else slice(None) for f in fixed)], shape)


@settings(max_examples=150)
@given(st.data())
def test_random_layouts(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 6), max_size=5)))
    a, b = data.draw(views(shape)), data.draw(views(shape))
    order = data.draw(st.permutations(range(len(shape))))
    out = np.full([shape[d] * 2 for d in order], -1, "f4")[tuple(slice(None, None, 2) for _ in order)].transpose(np.argsort(order)) if shape else np.zeros((), "f4")
    run(lambda p, q: p * 3 + q, out, a, b)
    np.testing.assert_array_equal(out, a * 3 + b)


@settings(max_examples=40)
@given(st.data())
def test_positions(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    d = data.draw(st.integers(0, len(shape) - 1))
    a = data.draw(views(shape))
    out = np.empty(shape, "f4")
    run(lambda p, i: p + 100 * i, out, a, ("index", d))
    np.testing.assert_array_equal(out, a + 100 * np.arange(shape[d], dtype="f4").reshape([-1 if k == d else 1 for k in range(len(shape))]))


def test_triangle_and_range():
    a = np.arange(63, dtype="f4").reshape(7, 9)
    np.testing.assert_array_equal(run(lambda v, i, j: E.where(j - i <= 1, v, 0), np.empty_like(a), a, ("index", 0), ("index", -1)), np.tril(a, 1))
    np.testing.assert_array_equal(run(lambda s, t, i: s + t * i, np.empty(5, "i8"), 3, -2, ("index", 0)), [3, 1, -1, -3, -5])


def ramp(*shape):
    return np.arange(np.prod(shape), dtype="f4").reshape(shape)


BIG = [
    ramp(300_000), ramp(600, 500).T, ramp(5, 151, 130).transpose(0, 2, 1), ramp(40, 7, 203).transpose(2, 1, 0), ramp(3, 60, 50, 40).T, np.broadcast_to(ramp(777), (1000, 777)),
    np.broadcast_to(ramp(3, 1), (3, 200_001)), np.broadcast_to(ramp(3), (100_000, 3)), np.broadcast_to(ramp(1, 30, 700), (20, 30, 700)),
]


@pytest.mark.parametrize("a", BIG, ids=lambda a: f"{a.shape} {a.strides}")
def test_split_over_threads(a):
    shape = a.shape
    before = native.get_num_threads()
    try:
        for threads in (1, 3):
            native.set_num_threads(threads)
            out = np.full(shape, -1, "f4")
            run(lambda v, i: v * 2 + i, out, a, ("index", 0))
            np.testing.assert_array_equal(out, a * 2 + np.arange(shape[0], dtype="f4").reshape(-1, *[1] * (len(shape) - 1)))
            out[...] = -1
            np.testing.assert_array_equal(run(lambda v: v * 2, out, a), a * 2)
    finally:
        native.set_num_threads(before)


def test_in_place():
    x = np.arange(10_000, dtype="f4").reshape(100, 100)
    expected = x * 2 + 1
    run(lambda v: v * 2 + 1, x, x)
    np.testing.assert_array_equal(x, expected)
    t = np.arange(10_000, dtype="f4").reshape(100, 100).T
    expected = t + t
    run(lambda v, w: v + w, t, t, t)
    np.testing.assert_array_equal(t, expected)


def test_two_results():
    x = np.linspace(0.1, 3, 50, dtype="f4")
    whole, below = np.empty(50, "i4"), np.empty(50, bool)
    run(lambda v: (E.floor(v), v < 1), (whole, below), x)
    np.testing.assert_array_equal(whole, np.floor(x).astype("i4"))
    np.testing.assert_array_equal(below, x < 1)


def test_a_fresh_result():
    import ctypes
    x = np.arange(6, dtype="f8")
    layout = Layout.contiguous((2, 3))
    desc = build_map(E.param(0) + 0.5, [(D.float32, layout)], [(D.float64, layout)], result_bytes=24)
    storage = native.launch_new(desc, x.ctypes.data)
    assert storage.nbytes == 24 and list((ctypes.c_float * 6).from_address(storage.data)) == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]


@pytest.mark.parametrize("shape", [(100_003,), (37, 1040), (3, 5, 4112), (5, 3001), (3, 4, 2051), (700, 80)], ids=str)
def test_streamed_results(shape, monkeypatch):
    import ctypes

    from strided.kernels import map as template
    monkeypatch.setattr(template, "STREAM", 1)
    x, bias = ramp(*shape), np.broadcast_to(ramp(shape[-1]), shape)
    for dtype, kind in ((np.dtype("f4"), D.float32), (np.dtype("u1"), D.uint8), (BF16, D.bfloat16)):
        desc = build_map(E.minimum(E.param(0), 100) + E.minimum(E.param(1), 50), [(kind, Layout.contiguous(shape))], [operand(x), operand(bias)], result_bytes=x.size * dtype.itemsize)
        storage = native.launch_new(desc, x.ctypes.data, bias.ctypes.data)
        result = np.frombuffer((ctypes.c_char * storage.nbytes).from_address(storage.data), dtype).reshape(shape)
        np.testing.assert_array_equal(result, (np.minimum(x, 100) + np.minimum(bias, 50)).astype(dtype))


@pytest.mark.parametrize("offset", [0, 1, 4, 36, 64])
def test_streamed_results_anywhere(offset, monkeypatch):
    """A kernel made for a fresh result may be given another place: a compiled step that writes into a window."""
    from strided.kernels import map as template
    monkeypatch.setattr(template, "STREAM", 1)
    for shape in ((5000,), (3, 1040), (5, 3001)):
        x, bias = ramp(*shape), np.broadcast_to(ramp(shape[-1]), shape)
        desc = build_map(E.param(0) + E.param(1), [(D.float32, Layout.contiguous(shape))], [operand(x), operand(bias)], result_bytes=4 * x.size)
        memory = np.zeros(4 * x.size + 192, np.uint8)
        start = -memory.ctypes.data % 64 + offset
        native.launch(desc, memory.ctypes.data + start, x.ctypes.data, bias.ctypes.data)
        result = memory[start : start + 4 * x.size].copy().view(np.float32).reshape(shape)
        np.testing.assert_array_equal(result, x + bias)
        assert not memory[:start].any() and not memory[start + 4 * x.size :].any()


@pytest.mark.parametrize("shape", [(320, 256), (310, 2050), (300, 77), (2, 170, 192)], ids=str)
def test_streamed_tiles(shape, monkeypatch):
    """Beside a transposed operand rows are walked in tiles, whose rows begin at whole lines or are not streamed."""
    import ctypes

    from strided.kernels import map as template
    monkeypatch.setattr(template, "STREAM", 1)
    x, y = ramp(*shape), np.ascontiguousarray(ramp(*shape).swapaxes(-1, -2) * 2).swapaxes(-1, -2)
    desc = build_map(E.param(0) + E.param(1), [(D.float32, Layout.contiguous(shape))], [operand(x), operand(y)], result_bytes=4 * x.size)
    storage = native.launch_new(desc, x.ctypes.data, y.ctypes.data)
    result = np.frombuffer((ctypes.c_char * storage.nbytes).from_address(storage.data), np.float32).reshape(shape)
    np.testing.assert_array_equal(result, x + y)


def test_sizes_are_data_not_code():
    texts = {map_text((E.param(0) + E.param(1),), ("float32",), ("float32", "float32"), (None, None), "ccs") for _ in range(2)}
    assert len(texts) == 1 and build_map(E.param(0), [operand(np.empty(5, "f4"))], [operand(np.empty(5, "f4"))])[:8] == build_map(
        E.param(0), [operand(np.empty((70, 9), "f4"))], [operand(np.empty((70, 9), "f4"))])[:8]


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="one shape"):
        build_map(E.param(0), [(D.float32, Layout.contiguous((2,)))], [(D.float32, Layout.contiguous((3,)))])
    with pytest.raises(ValueError, match="1 expressions for 2 results"):
        build_map(E.param(0), [(D.float32, Layout.contiguous((2,)))] * 2, [])
    with pytest.raises(ValueError, match="reads input 1"):
        build_map(E.param(1), [(D.float32, Layout.contiguous((2,)))], [(D.float32, Layout.contiguous((2,)))])
    with pytest.raises(NotImplementedError, match="fold"):
        build_map(E.rsum(E.param(0)), [(D.float32, Layout.contiguous((2,)))], [(D.float32, Layout.contiguous((2,)))])
