"""Scalar expressions: identity, keys, questions, types, and derivatives against finite differences. Whole kernels are tested in test_map_kernel.py."""
import math
import subprocess
import sys

import numpy as np
import pytest

import strided.dtypes as D
from strided.kernels import expr as E
from strided.kernels import lower, native
from strided.kernels.derivative import derivative, gradients
from strided.kernels.map import build_map
from strided.layout import Layout

x, y = E.param(0), E.param(1)


def evaluate(expr, *inputs, dtype=np.float64):
    """The expression on arrays, through a real kernel."""
    arrays = [np.ascontiguousarray(i, dtype=dtype) for i in inputs]
    layout = Layout.contiguous(arrays[0].shape)
    out = np.empty(arrays[0].shape, dtype)
    kind = D.from_numpy_dtype(out.dtype)
    native.launch(build_map(expr, [(kind, layout)], [(kind, layout)] * len(arrays)), out.ctypes.data, *(a.ctypes.data for a in arrays))
    return out


def test_equal_structure_is_one_object():
    assert E.trace(lambda a, b: E.exp(a) * 2 + b, 2) is E.exp(x) * 2 + y
    assert E.constant(1) is not E.constant(1.0) and E.constant(True) is not E.constant(1)
    assert E.constant(0.0) is not E.constant(-0.0)
    assert E.constant(math.nan) is E.constant(math.nan)
    assert E.constant(np.float32(1.5)) is E.constant(1.5)


def test_keys_are_stable_across_processes():
    code = "from strided.kernels import expr as E; x = E.param(0); junk = E.sin(x); print((E.where(x > 0, x / (1 + E.exp(-x)), -0.0)).key)"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert other == E.where(x > 0, x / (1 + E.exp(-x)), -0.0).key


def test_keys_grow_with_the_graph_not_with_its_paths():
    e = x
    for _ in range(200):
        e = e * e
    assert len(e.key) < 200 * 20
    assert E.flops(e) == 200


def test_deep_chains_do_not_recurse():
    e = x
    for _ in range(5000):
        e = e + y
    assert E.free_inputs(e) == (0, 1) and E.flops(e) == 5000


def test_key_distinguishes():
    keys = {E.key_of(t) for t in [(x,), (y,), (x, y), (y, x), (x + y,), (y + x,), (x + 1,), (x + 1.0,), (E.cast(x, "int8"),), (E.cast(x, D.int32),)]}
    assert len(keys) == 10


def test_truth_value_is_refused():
    with pytest.raises(TypeError, match="use where"):
        E.trace(lambda a: a if a > 0 else -a, 1)
    with pytest.raises(TypeError, match="cannot use str"):
        x + "1"


def test_trace_returns_what_the_function_returns():
    pair = E.trace(lambda a, b: (a + b, 3), 2)
    assert pair[0] is x + y and pair[1] is E.constant(3)
    assert E.trace(lambda: 2.5, 0) is E.constant(2.5)


def test_flops_count_arithmetic_once():
    assert E.flops(x / (1 + E.exp(-x))) == 4
    assert E.flops(E.sigmoid(x)) == 4
    assert E.flops(E.where(x > 0, x, 0)) == 0
    assert E.flops(E.cast(x, "float64")) == 0
    assert E.flops(E.maximum(x, y)) == 0
    assert E.flops((E.exp(x) + 1) * E.exp(x)) == 3
    assert E.flops((x + y, x + y)) == 1


def test_free_inputs():
    assert E.free_inputs(E.where(E.param(3) > 0, x, 1)) == (0, 3)
    assert E.free_inputs([x, E.param(7)]) == (0, 7)


@pytest.mark.parametrize("build, a, b, expected", [
    (lambda p, q: p + q, "bool", "bool", "bool"), (lambda p, q: p + q, "int8", "uint8", "int16"), (lambda p, q: p * q, "int64", "float32", "float32"),
    (lambda p, q: p + q, "float32", "float64", "float64"), (lambda p, q: p + 1, "int8", "int8", "int8"), (lambda p, q: p + 1, "bool", "bool", "int64"),
    (lambda p, q: p + 1.5, "int32", "int8", "float32"), (lambda p, q: p + True, "float64", "int8", "float64"), (lambda p, q: p / q, "int64", "int64", "float32"),
    (lambda p, q: p // q, "int64", "int32", "int64"), (lambda p, q: p < q, "float32", "float32", "bool"), (lambda p, q: E.exp(p), "int64", "int8", "float32"),
    (lambda p, q: E.floor(p), "int16", "int8", "int16"), (lambda p, q: p + q, "float32", "weak float", "float32"), (lambda p, q: p + q, "weak int", "weak float", "weak float"),
    (lambda p, q: E.where(p, q, 0), "bool", "uint8", "uint8"), (lambda p, q: E.cast(p, "bfloat16"), "float64", "bool", "float32"),
    (lambda p, q: E.isnan(p), "int8", "int8", "bool"), (lambda p, q: p + q, "uint8", "int64", "int64"), (lambda p, q: p + q, "uint32", "int32", "int64"),
])
def test_types(build, a, b, expected):
    assert lower.infer(E.trace(build, 2), {x: a, y: b}) == expected


def test_bitwise_on_floats_is_refused():
    with pytest.raises(TypeError, match="bitwise"):
        lower.infer(x & y, {x: "float32", y: "float32"})


def test_reductions_belong_to_fold():
    with pytest.raises(NotImplementedError, match="fold"):
        lower.infer(E.rsum(x), {x: "float32"})


SMOOTH = {  # function: a range in which it is smooth
    E.exp: (-3, 3), E.exp2: (-3, 3), E.expm1: (-3, 3), E.log: (0.1, 5), E.log1p: (-0.9, 5), E.log2: (0.1, 5), E.log10: (0.1, 5), E.sqrt: (0.1, 5), E.rsqrt: (0.1, 5),
    E.reciprocal: (0.2, 4), E.sin: (-5, 5), E.cos: (-5, 5), E.tan: (-1.4, 1.4), E.asin: (-0.9, 0.9), E.acos: (-0.9, 0.9), E.atan: (-4, 4), E.sinh: (-3, 3), E.cosh: (-3, 3),
    E.tanh: (-3, 3), E.asinh: (-3, 3), E.acosh: (1.1, 4), E.atanh: (-0.9, 0.9), E.erf: (-2, 2), E.erfc: (-2, 2), E.ndtr: (-4, 4), E.sigmoid: (-5, 5), E.abs: (0.1, 3), E.neg: (-3, 3),
}


@pytest.mark.parametrize("function", SMOOTH, ids=lambda f: f.__name__)
def test_derivative_of_a_function(function):
    check_derivative(E.trace(function, 1), [np.linspace(*SMOOTH[function], 41)])


TWO = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b, "pow": lambda a, b: a ** b, "atan2": E.atan2, "hypot": E.hypot,
    "maximum": E.maximum, "minimum": E.minimum, "fmax": E.fmax, "fmin": E.fmin, "where": lambda a, b: E.where(a > b, a * b, a + b), "mod": lambda a, b: a % b, "fmod": E.fmod,
    "silu": lambda a, b: a / (1 + E.exp(-a)) * b, "softplus": lambda a, b: E.log1p(E.exp(a)) * b, "gelu": lambda a, b: a * 0.5 * (1 + E.erf(a * math.sqrt(0.5))) * b,
    "gelu tanh": lambda a, b: 0.5 * a * (1 + E.tanh(0.79788456 * (a + 0.044715 * a * a * a))) * b, "shared": lambda a, b: E.exp(a * b) + E.exp(a * b) * a,
    "clamp": lambda a, b: E.clamp(a, 0.5, 2.0) * b, "relu": lambda a, b: E.relu(a - b), "fma": lambda a, b: E.fma(a, b, a), "cube": lambda a, b: a ** 3 * b ** 2,
    "lerp": lambda a, b: a + 0.3 * (b - a), "copysign": lambda a, b: E.copysign(a, b - 1.0), "cast": lambda a, b: E.cast(a, "float64") * b,
}


@pytest.mark.parametrize("name", TWO)
def test_derivative_of_two_inputs(name):
    rng = np.random.default_rng(0)
    check_derivative(E.trace(TWO[name], 2), [rng.uniform(0.3, 3, 50), rng.uniform(0.3, 3, 50)])


def check_derivative(expr, inputs, step=1e-6):
    for i in range(len(inputs)):
        up, down = list(inputs), list(inputs)
        up[i], down[i] = inputs[i] + step, inputs[i] - step
        expected = (evaluate(expr, *up) - evaluate(expr, *down)) / (2 * step)
        np.testing.assert_allclose(evaluate(derivative(expr, i), *inputs), expected, rtol=2e-6, atol=2e-7)


def at(expr, *values, dtype=np.float64):
    return evaluate(derivative(expr, 0), *([v] for v in values), dtype=dtype)[0]


def test_kinks_follow_pytorch():
    assert at(E.abs(x), 0.0) == 0
    assert at(E.maximum(x, y), 1.0, 1.0) == 0.5 and at(E.minimum(x, y), 1.0, 1.0) == 0.5
    assert at(E.relu(x), 0.0) == 0 and at(E.relu(x), 2.0) == 1 and at(E.relu(x), -2.0) == 0
    assert at(E.clamp(x, -1.0, 1.0), 1.0) == 1 and at(E.clamp(x, -1.0, 1.0), -1.0) == 1 and at(E.clamp(x, -1.0, 1.0), 1.5) == 0
    assert at(E.clamp(x, low=0.0), 0.0) == 1 and at(E.clamp(x, high=0.0), 0.0) == 1
    assert at(E.sqrt(x), 0.0) == math.inf
    assert at(x ** 2, 0.0) == 0 and at(x ** 1, 0.0) == 1 and at(x ** 0, 0.0) == 0 and at(x ** 0.5, 0.0) == math.inf
    assert at(x ** y, 0.0, 0.0) == 0 and at(x ** y, 0.0, 2.0) == 0
    assert at(E.sign(x), 3.0) == 0 and at(E.floor(x), 3.2) == 0 and at(E.stop_gradient(x) * x, 3.0) == 3
    exponent = derivative(x ** y, 1)
    assert evaluate(exponent, [0.0, 0.0, 2.0], [0.0, 2.0, 3.0]).tolist() == [0, 0, 8 * math.log(2)]


@pytest.mark.parametrize("build", [lambda a: a / (1 + E.exp(-a)), lambda a: 1 / (1 + E.exp(-a)), E.sigmoid, lambda a: E.log1p(E.exp(a)), lambda a: E.log(1 + E.exp(a)), lambda a: E.where(a > 0, a, E.expm1(a)),
                                   lambda a: E.where(a < -300, 0, E.log1p(E.exp(a)))])
def test_no_nan_far_out(build):
    slopes = evaluate(derivative(E.trace(build, 1), 0), [-200.0, -100.0, 100.0, 200.0], dtype=np.float32)
    assert np.isfinite(slopes).all()
    assert slopes[:2].tolist() == pytest.approx([0, 0], abs=1e-30) and min(abs(slopes[2] - 1), abs(slopes[2])) < 1e-6


def test_a_branch_not_taken_gives_zero_whatever_arrives():
    g = E.param(1)
    gradient, = gradients(E.relu(x), g, (0,))
    assert evaluate(gradient, [-1.0, 1.0], [math.nan, 2.0]).tolist() == [0, 2]


def test_derivatives_are_simplified():
    assert derivative(x, 0) is E.constant(1.0)
    assert derivative(x, 1) is E.constant(0.0)
    assert derivative(x * y, 0) is y
    assert derivative(E.exp(x), 0) is E.exp(x)
    assert derivative(E.tanh(x), 0) is 1 - E.tanh(x) * E.tanh(x)
    assert derivative(x + 3, 0) is E.constant(1.0)
    assert derivative(-x, 0) is E.constant(-1.0)
    assert derivative(E.sigmoid(x), 0) is (1 - E.sigmoid(x)) * E.sigmoid(x)
    assert derivative(x > 0, 0) is E.constant(0.0)


def test_unknown_derivative_says_so():
    with pytest.raises(NotImplementedError, match="derivative of 'rprod'"):
        derivative(E.rprod(x), 0)
