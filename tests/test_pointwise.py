"""The pointwise operators by value: against NumPy or closed forms, over dtypes, layouts, in-place and out= forms, errors, first and second derivatives."""
from __future__ import annotations

import math

import numpy as np
import pytest

import strided as st
from strided import nn
from strided.autograd import gradcheck, gradgradcheck

F = nn.functional
FLOATS = [st.float32, st.float64, st.bfloat16, st.float16]
INTS = [st.uint8, st.int8, st.int16, st.int32, st.int64]
TOLERANCE = {st.float64: 1e-13, st.float32: 3e-7, st.float16: 1e-3, st.bfloat16: 8e-3}

erf = np.vectorize(math.erf, otypes=["float64"])
erfc = np.vectorize(math.erfc, otypes=["float64"])
log_gamma = np.vectorize(math.lgamma, otypes=["float64"])
sigmoid = lambda x: 1 / (1 + np.exp(-x))

# name: (reference over float64, values to try); each within the function's domain
UNARY = {
    "neg": (np.negative, [-2.5, 0.0, 3.0]),
    "abs": (np.abs, [-2.5, 0.0, 3.0]),
    "sign": (np.sign, [-2.5, 0.0, 3.0]),
    "square": (np.square, [-2.5, 0.5, 3.0]),
    "reciprocal": (np.reciprocal, [-2.5, 0.5, 3.0]),
    "exp": (np.exp, [-2.5, 0.0, 3.0]),
    "exp2": (np.exp2, [-2.5, 0.0, 3.0]),
    "expm1": (np.expm1, [-2.5, 0.01, 3.0]),
    "log": (np.log, [0.25, 1.0, 30.0]),
    "log1p": (np.log1p, [-0.5, 0.01, 30.0]),
    "log2": (np.log2, [0.25, 1.0, 30.0]),
    "log10": (np.log10, [0.25, 1.0, 30.0]),
    "sqrt": (np.sqrt, [0.25, 1.0, 30.0]),
    "rsqrt": (lambda x: 1 / np.sqrt(x), [0.25, 1.0, 30.0]),
    "sin": (np.sin, [-2.5, 0.5, 3.0]),
    "cos": (np.cos, [-2.5, 0.5, 3.0]),
    "tan": (np.tan, [-2.5, 0.5, 1.0]),
    "asin": (np.arcsin, [-0.75, 0.5, 1.0]),
    "acos": (np.arccos, [-0.75, 0.5, 1.0]),
    "atan": (np.arctan, [-2.5, 0.5, 3.0]),
    "sinh": (np.sinh, [-2.5, 0.5, 3.0]),
    "cosh": (np.cosh, [-2.5, 0.5, 3.0]),
    "tanh": (np.tanh, [-2.5, 0.5, 3.0]),
    "asinh": (np.arcsinh, [-2.5, 0.5, 3.0]),
    "acosh": (np.arccosh, [1.0, 1.5, 3.0]),
    "atanh": (np.arctanh, [-0.75, 0.25, 0.5]),
    "erf": (erf, [-1.5, 0.25, 2.0]),
    "erfc": (erfc, [-1.5, 0.25, 2.0]),
    "sigmoid": (sigmoid, [-2.5, 0.0, 3.0]),
    "floor": (np.floor, [-2.5, 0.5, 3.0]),
    "ceil": (np.ceil, [-2.5, 0.5, 3.0]),
    "trunc": (np.trunc, [-2.5, 0.5, 3.0]),
    "round": (np.round, [-2.5, 0.5, 1.5]),
    "frac": (lambda x: x - np.trunc(x), [-2.5, 0.5, 3.25]),
    "deg2rad": (np.deg2rad, [-90.0, 0.0, 30.0]),
    "rad2deg": (np.rad2deg, [-1.5, 0.5, 3.0]),
    "sinc": (np.sinc, [-2.5, 0.0, 0.25]),
    "relu": (lambda x: np.maximum(x, 0), [-2.5, 0.0, 3.0]),
    "lgamma": (log_gamma, [-2.5, 0.5, 30.0]),
}
INTEGER_UNARY = "neg abs sign square positive floor ceil trunc round relu".split()  # integers stay integers


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary_on_floats(name, dtype):
    reference, values = UNARY[name]
    x = st.tensor(values, dtype=dtype)
    given = x.double().numpy()
    result = getattr(st, name)(x)
    assert result.dtype is dtype and result.shape == x.shape
    np.testing.assert_allclose(result.double().numpy(), reference(given), rtol=TOLERANCE[dtype] * 4, atol=1e-7 if dtype is st.float32 else 1e-15)


@pytest.mark.parametrize("name", [n for n in UNARY if n != "relu"])
def test_unary_on_integers_and_bool(name):
    reference, _ = UNARY[name]
    x = st.tensor([1, 2, 3]) if name not in ("asin", "acos", "atanh") else st.tensor([0, 0, 0])
    result = getattr(st, name)(x)
    if name in INTEGER_UNARY:
        assert result.dtype is st.int64
    elif name == "frac":
        assert result.dtype is st.int64  # an integer has no fraction
    else:
        assert result.dtype is st.float32
    np.testing.assert_allclose(result.numpy(), reference(x.numpy().astype("float64")), rtol=1e-6, atol=1e-7)
    if name in ("exp", "sqrt", "sigmoid", "sin"):
        assert getattr(st, name)(st.tensor([True, False])).tolist() == pytest.approx(reference(np.array([1.0, 0.0])).tolist(), rel=1e-6)


def test_unary_of_special_values():
    x = st.tensor([math.inf, -math.inf, math.nan, -0.0])
    assert st.relu(x).tolist()[:2] == [math.inf, 0.0] and math.isnan(st.relu(x).tolist()[2])
    assert st.sign(x).tolist() == [1.0, -1.0, 0.0, 0.0]
    assert st.sqrt(x).tolist()[0] == math.inf and math.isnan(st.sqrt(x).tolist()[1])
    assert st.signbit(x).tolist()[::3] == [False, True]
    assert st.isnan(x).tolist() == [False, False, True, False]
    assert st.isinf(x).tolist() == [True, True, False, False]
    assert st.isfinite(x).tolist() == [False, False, False, True]
    assert st.isposinf(x).tolist() == [True, False, False, False] and st.isneginf(x).tolist() == [False, True, False, False]
    assert st.nan_to_num(x).tolist() == [st.finfo(st.float32).max, st.finfo(st.float32).min, 0.0, 0.0]
    assert st.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0).tolist() == [2.0, 3.0, 1.0, 0.0]


# name: reference, over operands that suit it
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "true_divide": np.true_divide, "floor_divide": np.floor_divide,
    "remainder": np.mod, "fmod": np.fmod, "pow": lambda x, y: np.abs(x) ** y, "atan2": np.arctan2, "hypot": np.hypot, "copysign": np.copysign,
    "maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin, "logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "xlogy": lambda x, y: np.where(x == 0, 0, x * np.log(y)),
}  # fmt: skip
COMPARISONS = "eq ne lt le gt ge logical_and logical_or logical_xor".split()
TENSORS_ONLY = "atan2 hypot maximum minimum fmax fmin logaddexp logaddexp2 logical_and logical_or logical_xor".split()
LEFT, RIGHT = [[-2.5, 0.0, 3.0], [4.0, 1.5, -0.25]], [2.0, 0.5, -1.5]


def operands(name, dtype):
    left = np.abs(LEFT) if name == "pow" else np.array(LEFT)
    right = np.abs(RIGHT) if name == "xlogy" else np.array(RIGHT)
    return st.tensor(left, dtype=dtype), st.tensor(right, dtype=dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary_on_floats(name, dtype):
    x, y = operands(name, dtype)  # [2, 3], [3]
    result = getattr(st, name)(x, y)
    assert result.shape == (2, 3) and result.dtype is (st.bool if name in COMPARISONS else dtype)
    with np.errstate(all="ignore"):
        expected = BINARY[name](x.double().numpy(), y.double().numpy())
    np.testing.assert_allclose(result.double().numpy(), expected.astype("float64"), rtol=TOLERANCE[dtype] * 4, atol=1e-7)


@pytest.mark.parametrize("name", BINARY)
def test_binary_of_other_layouts_and_numbers(name):
    x, y = operands(name, st.float64)
    expected = getattr(st, name)(x, y)
    turned = x.t().contiguous().t()  # column order
    assert not turned.is_contiguous()
    assert st.equal(getattr(st, name)(turned, y), expected)
    spaced = st.zeros(2, 6, dtype=st.float64)
    spaced[:, ::2] = x
    assert st.equal(getattr(st, name)(spaced[:, ::2], y.expand(2, 3)), expected)
    assert st.equal(getattr(st, name)(x[1:], y), expected[1:])
    if name in TENSORS_ONLY:
        with pytest.raises(TypeError, match=f"{name}\\(\\): argument 'other' \\(position 2\\) must be Tensor, not float"):
            getattr(st, name)(x, 2.0)
    else:
        assert st.equal(getattr(st, name)(x, 2.0), getattr(st, name)(x, st.tensor(2.0, dtype=st.float64)))
    assert getattr(st, name)(x[:0], y).shape == (0, 3)


@pytest.mark.parametrize("name", "add sub mul floor_divide remainder fmod maximum minimum bitwise_and bitwise_or bitwise_xor gcd lcm".split())
@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_binary_on_integers(name, dtype):
    x, y = st.tensor([7, 12, 5, 100], dtype=dtype), st.tensor([2, 5, 5, 7], dtype=dtype)
    result = getattr(st, name)(x, y)
    reference = {"sub": np.subtract, "mul": np.multiply, "floor_divide": np.floor_divide, "remainder": np.remainder}.get(name) or getattr(np, name)
    assert result.dtype is dtype
    assert result.tolist() == reference(x.numpy(), y.numpy()).tolist()
    if dtype.is_signed:
        assert st.floor_divide(-x, y).tolist() == [-4, -3, -1, -15]
        assert st.div(-x, y, rounding_mode="trunc").tolist() == [-3, -2, -1, -14]
        assert st.remainder(-x, y).tolist() == [1, 3, 0, 5] and st.fmod(-x, y).tolist() == [-1, -2, 0, -2]


def test_integers_wrap_around():
    assert (st.tensor([200], dtype=st.uint8) + 100).tolist() == [44]
    assert (st.tensor([127], dtype=st.int8) + 1).tolist() == [-128]
    assert (-st.tensor([-128], dtype=st.int8)).tolist() == [-128]
    assert (st.tensor([3], dtype=st.int64) ** 5).tolist() == [243] and (st.tensor([2]) ** st.tensor([62])).tolist() == [2**62]


def test_shifts_and_bits():
    x = st.tensor([1, 5, -8])
    assert (x << 2).tolist() == [4, 20, -32] and (x >> 1).tolist() == [0, 2, -4]
    assert (~x).tolist() == [-2, -6, 7]
    assert (st.tensor([True, False]) & st.tensor([True, True])).tolist() == [True, False]
    assert (st.tensor([True, False]) ^ True).tolist() == [False, True]
    assert st.bitwise_not(st.tensor([True, False])).tolist() == [False, True]
    assert st.bitwise_right_shift(st.tensor([128], dtype=st.uint8), 7).tolist() == [1]


@pytest.mark.parametrize(
    "left, right, expected",
    [
        (st.int32, st.int64, st.int64), (st.uint8, st.int8, st.int16), (st.int64, st.float16, st.float16), (st.float16, st.bfloat16, st.float32),
        (st.float32, st.float64, st.float64), (st.bool, st.uint8, st.uint8), (st.bool, st.bool, st.bool),
    ],
    ids=str,
)  # fmt: skip
def test_promotion(left, right, expected):
    x, y = st.ones(2, dtype=left), st.ones(2, dtype=right)
    assert (x + y).dtype is expected and (y * x).dtype is expected
    assert (x + st.ones((), dtype=st.float64)).dtype is (left if left.is_floating_point else st.float64)  # a 0-d tensor only lifts to its kind
    assert (x / y).dtype is (expected if expected.is_floating_point else st.float32)
    assert (x < y).dtype is st.bool


def test_promotion_with_numbers():
    assert (st.ones(2, dtype=st.int32) + 1).dtype is st.int32 and (st.ones(2, dtype=st.int32) + 1.5).dtype is st.float32
    assert (st.ones(2, dtype=st.bfloat16) * 2.5).dtype is st.bfloat16 and (st.ones(2, dtype=st.bool) + 1).dtype is st.int64
    assert st.square(st.tensor([True, False])).dtype is st.int64
    assert (2 ** st.tensor([1, 2])).tolist() == [2, 4] and (1.0 - st.tensor([1, 2])).dtype is st.float32


def test_broadcasting():
    a, b = st.arange(3).view(3, 1), st.arange(4)
    assert (a + b).tolist() == [[i + j for j in range(4)] for i in range(3)]
    assert (st.ones(2, 1, 3) * st.ones(4, 1)).shape == (2, 4, 3)
    with pytest.raises(RuntimeError, match="The size of tensor a \\(3\\) must match the size of tensor b \\(4\\)"):
        st.ones(2, 3) + st.ones(4)


IN_PLACE = [n for n in [*UNARY, *BINARY] if hasattr(st.Tensor, n + "_") and n not in COMPARISONS]


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_and_out(name):
    x, *rest = (st.tensor(UNARY[name][1], dtype=st.float64),) if name in UNARY else operands(name, st.float64)
    expected = getattr(st, name)(x, *rest)
    changed = x.clone()
    version = changed._version
    assert getattr(changed, name + "_")(*rest) is changed
    assert st.equal(changed.nan_to_num(), expected.nan_to_num()) and changed._version == version + 1
    spaced = st.zeros(*x.shape, 2, dtype=st.float64)[..., 0]  # a window: strides twice as long
    spaced.copy_(x)
    getattr(spaced, name + "_")(*rest)
    assert st.equal(spaced.nan_to_num(), expected.nan_to_num())
    out = st.empty(0, dtype=st.float64)
    assert getattr(st, name)(x, *rest, out=out) is out
    assert st.equal(out.nan_to_num(), expected.nan_to_num())
    wide = st.empty_like(x, dtype=st.float64)
    getattr(st, name)(x.float(), *[r.float() for r in rest], out=wide)
    np.testing.assert_allclose(wide.numpy(), expected.numpy(), rtol=1e-6, atol=1e-6)


def test_in_place_over_itself():
    x = st.arange(6.0)
    x[1:] += x[:-1]  # reads the old values although the windows overlap
    assert x.tolist() == [0.0, 1.0, 3.0, 5.0, 7.0, 9.0]
    y = st.tensor([[1.0, 2.0], [3.0, 4.0]])
    y += y.t()
    assert y.tolist() == [[2.0, 5.0], [5.0, 8.0]]


def test_in_place_refusals():
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        st.ones(2, dtype=st.int64).add_(1.5)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        st.ones(2, dtype=st.int64).div_(2)
    with pytest.raises(RuntimeError, match="output with shape \\[3\\] doesn't match the broadcast shape \\[2, 3\\]"):
        st.ones(3).mul_(st.ones(2, 3))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"):
        st.ones(1).expand(3).add_(1)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        st.ones(3, requires_grad=True).add_(1)
    with pytest.raises(RuntimeError, match="can't be cast"):
        st.add(st.ones(2), st.ones(2), out=st.empty(2, dtype=st.int64))


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_integer_division_by_zero_changes_nothing(name):
    x = st.tensor([5, 6, 7])
    for other in (0, st.tensor([1, 0, 2])):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            getattr(st, name)(x, other)
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            getattr(x, name + "_")(other)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x.div_(0, rounding_mode="floor" if name == "floor_divide" else "trunc")
    assert x.tolist() == [5, 6, 7] and x._version == 0
    assert (x / 0).tolist() == [math.inf] * 3
    assert st.floor_divide(st.tensor([1.0, -1.0]), 0.0).tolist() == [math.inf, -math.inf]


def test_division_modes():
    x, y = st.tensor([7.0, -7.0, 1e4]), st.tensor([2.0, 2.0, 3.0])
    assert st.div(x, y).tolist() == pytest.approx([3.5, -3.5, 1e4 / 3])
    assert st.div(x, y, rounding_mode="floor").tolist() == [3.0, -4.0, 3333.0]
    assert st.div(x, y, rounding_mode="trunc").tolist() == [3.0, -3.0, 3333.0]
    with pytest.raises(RuntimeError, match="div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'"):
        st.div(x, y, rounding_mode="up")
    assert (st.tensor([0.3], dtype=st.float64) // 0.1).tolist() == [0.3 // 0.1] == [2.0]  # from the exact remainder, as in Python


def test_scaled_addition():
    x = st.tensor([1.0, 2.0])
    assert st.add(x, x, alpha=3).tolist() == [4.0, 8.0] and st.sub(x, 1.0, alpha=2).tolist() == [-1.0, 0.0]
    assert st.rsub(x, 5.0, alpha=2).tolist() == [3.0, 1.0]
    with pytest.raises(RuntimeError, match="For integral input tensors, argument alpha must not be a floating point number."):
        st.add(st.tensor([1]), 1, alpha=0.5)
    x.add_(x, alpha=-1)
    assert x.tolist() == [0.0, 0.0]


def test_logit_at_and_beyond_its_bounds():
    inf, nan = math.inf, math.nan
    values = [-1.0, -0.0, 0.0, 0.25, 0.5, 1.0, 1.5, nan]

    def both(eps):
        x = st.tensor(values, dtype=st.float64, requires_grad=True)
        y = st.logit(x, eps)
        y.sum().backward()
        return repr([round(v, 12) for v in y.tolist()]), repr([round(v, 12) for v in x.grad.tolist()])

    low = -1.098612288668  # log(1/3)
    assert both(None) == (repr([nan, -inf, -inf, low, 0.0, inf, nan, nan]), repr([nan, inf, inf, 5.333333333333, 4.0, inf, nan, nan]))
    assert both(-1.0) == both(None)  # limits nothing
    assert both(0.25) == (repr([low, low, low, low, 0.0, -low, -low, nan]), repr([0.0, 0.0, 0.0, 5.333333333333, 4.0, 0.0, 0.0, nan]))
    assert both(0.0)[1] == repr([0.0, inf, inf, 5.333333333333, 4.0, inf, 0.0, nan])
    x = st.tensor([0.25], dtype=st.float64, requires_grad=True)
    (g,) = st.autograd.grad(st.logit(x).sum(), x, create_graph=True)
    (second,) = st.autograd.grad(g.sum(), x)
    assert abs(second.item() + 128 / 9) < 1e-12  # (2x - 1) / (x (1 - x))^2
    with pytest.raises(TypeError, match=r"argument 'eps' \(position 2\) must be float, not list"):
        st.logit(x, [0.1])


def test_clamp():
    x = st.tensor([-2.0, 0.5, 3.0, math.nan])
    assert x.clamp(-1, 1).tolist()[:3] == [-1.0, 0.5, 1.0] and math.isnan(x.clamp(-1, 1).tolist()[3])
    assert x[:3].clamp(min=0).tolist() == [0.0, 0.5, 3.0] and x[:3].clamp(max=st.tensor([0.0, 0.0, 5.0])).tolist() == [-2.0, 0.0, 3.0]
    assert st.tensor([1, 5, 9]).clamp(2, 6).tolist() == [2, 5, 6] and st.tensor([1, 5]).clamp(min=1.5).dtype is st.float32
    assert x[:3].clamp(2.0, 1.0).tolist() == [1.0, 1.0, 1.0]  # where the bounds cross, the upper one holds
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max' must not be None"):
        x.clamp()


def test_where_and_masked_fill():
    mask, x = st.tensor([True, False, True]), st.tensor([1, 2, 3])
    assert st.where(mask, x, 0).tolist() == [1, 0, 3] and st.where(mask, x, 0.5).dtype is st.float32
    assert st.where(mask, 1.0, st.tensor([[5.0], [6.0]])).tolist() == [[1.0, 5.0, 1.0], [1.0, 6.0, 1.0]]
    assert st.where(mask)[0].tolist() == [0, 2]
    assert x.masked_fill(mask, 9).tolist() == [9, 2, 9]
    with pytest.raises(RuntimeError, match="masked_fill_ only supports boolean masks"):
        x.masked_fill(st.tensor([1, 0, 1]), 9)
    assert x.masked_fill(mask, 0.5).tolist() == [0, 2, 0]
    with pytest.raises(RuntimeError, match="without overflow"):
        x.to(st.uint8).masked_fill(mask, 300)


def test_blends():
    a, b = st.tensor([1.0, 2.0]), st.tensor([3.0, 10.0])
    assert st.lerp(a, b, 0.25).tolist() == [1.5, 4.0] and st.lerp(a, b, st.tensor([1.0, 0.0])).tolist() == [3.0, 2.0]
    assert st.addcmul(a, a, b, value=2).tolist() == [7.0, 42.0] and st.addcdiv(a, b, a, value=0.5).tolist() == [2.5, 4.5]
    with pytest.raises(RuntimeError, match="Integer division with addcdiv is no longer supported"):
        st.addcdiv(st.tensor([1]), st.tensor([1]), st.tensor([1]))


def test_rounding():
    x = st.tensor([1234.5678, -0.125, 2.5, 3.5], dtype=st.float64)
    assert st.round(x).tolist() == [1235.0, -0.0, 2.0, 4.0]
    assert st.round(x, decimals=2).tolist() == pytest.approx([1234.57, -0.12, 2.5, 3.5])
    assert st.round(x, decimals=-2).tolist() == [1200.0, -0.0, 0.0, 0.0]
    assert x.clone().round_(decimals=1).tolist() == pytest.approx([1234.6, -0.1, 2.5, 3.5])
    assert st.round(st.tensor([3])).tolist() == [3]
    with pytest.raises(NotImplementedError, match="round_cpu"):
        st.round(st.tensor([3]), decimals=1)


def test_powers():
    x = st.tensor([-2.0, 0.0, 4.0])
    assert (x**2).tolist() == [4.0, 0.0, 16.0] and (x**0).tolist() == [1.0, 1.0, 1.0]
    assert (x[2:] ** 0.5).tolist() == [2.0] and (x[2:] ** -1).tolist() == [0.25] and math.isnan((x[:1] ** 0.5).item())
    assert st.float_power(st.tensor([2, 3]), 2).dtype is st.float64 and st.float_power(2, st.tensor([1, 3])).tolist() == [2.0, 8.0]
    with pytest.raises(RuntimeError, match="the base given to float_power_ has dtype Float but the operation's result requires dtype Double"):
        st.ones(2).float_power_(2)
    assert st.tensor([4.0], dtype=st.float64).float_power_(0.5).tolist() == [2.0]


def test_heaviside_logit_angle():
    x = st.tensor([-1.5, 0.0, 2.0])
    assert st.heaviside(x, st.tensor([0.5])).tolist() == [0.0, 0.5, 1.0]
    with pytest.raises(RuntimeError, match="heaviside is not yet implemented for tensors with different dtypes."):
        st.heaviside(x, st.tensor([1]))
    assert st.logit(st.tensor([0.5, 0.0]), eps=0.25).tolist() == pytest.approx([0.0, math.log(1 / 3)])
    assert st.angle(x).tolist() == pytest.approx([math.pi, 0.0, 0.0])


ACTIVATIONS = {
    "silu": lambda x: x * sigmoid(x),
    "gelu": lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2))),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "logsigmoid": lambda x: -np.log1p(np.exp(-x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "softshrink": lambda x: np.where(x > 0.5, x - 0.5, np.where(x < -0.5, x + 0.5, 0)),
    "hardshrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
    "tanhshrink": lambda x: x - np.tanh(x),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "relu6": lambda x: np.clip(x, 0, 6),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    x = st.linspace(-8, 8, 41, dtype=st.float64)
    function = getattr(F, name)
    np.testing.assert_allclose(function(x).numpy(), ACTIVATIONS[name](x.numpy()), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(function(x.float()).numpy(), ACTIVATIONS[name](x.numpy()), rtol=1e-5, atol=1e-6)
    y = st.tensor([-2.3, -0.7, 0.4, 1.9], dtype=st.float64, requires_grad=True)  # away from the kinks
    assert gradcheck(function, (y,)) and gradgradcheck(function, (y,))


def test_activation_options():
    x = st.tensor([-2.0, 0.25, 3.0])
    assert F.leaky_relu(x, 0.5).tolist() == [-1.0, 0.25, 3.0] and F.hardtanh(x, -0.5, 2.0).tolist() == [-0.5, 0.25, 2.0]
    assert F.threshold(x, 0.5, 9.0).tolist() == [9.0, 9.0, 3.0] and F.softplus(x, beta=2.0).tolist() == pytest.approx([math.log1p(math.exp(2 * v)) / 2 for v in x.tolist()], rel=1e-5)
    assert F.hardtanh(st.tensor([-5, 0, 5])).tolist() == [-1, 0, 1]
    assert F.prelu(x.view(1, 3), st.tensor([0.5, 1.0, 2.0])).tolist() == [[-1.0, 0.25, 3.0]]
    inplace = x.clone()
    assert F.elu(inplace, 1.0, True) is inplace and inplace.tolist() == pytest.approx([math.expm1(-2.0), 0.25, 3.0])
    with pytest.raises(RuntimeError, match="approximate argument must be either none or tanh."):
        F.gelu(x, "fast")


# ---- gradients --------------------------------------------------------------------------------------------------------------------

SMOOTH = {name: [v for v in values if v != 0.0 and v != 1.0] for name, (_, values) in UNARY.items()}
FLAT = "sign floor ceil trunc round frac".split()  # steps, for which finite differences need room


@pytest.mark.parametrize("name", [n for n in UNARY if n not in FLAT])
def test_unary_gradients(name):
    x = st.tensor(SMOOTH[name], dtype=st.float64, requires_grad=True)
    assert gradcheck(getattr(st, name), (x,)) and gradgradcheck(getattr(st, name), (x,))


@pytest.mark.parametrize("name, slope", [("sign", 0.0), ("floor", 0.0), ("ceil", 0.0), ("trunc", 0.0), ("round", 0.0), ("frac", 1.0)])
def test_gradients_of_steps(name, slope):
    x = st.tensor([-1.2, 0.3, 2.7], requires_grad=True)
    getattr(st, name)(x).sum().backward()
    assert x.grad.tolist() == [slope] * 3


@pytest.mark.parametrize("name", [n for n in BINARY if n not in COMPARISONS and n not in ("floor_divide", "copysign")])
def test_binary_gradients(name):
    x = st.tensor([[1.3, 0.6], [2.2, 3.1]], dtype=st.float64, requires_grad=True)
    y = st.tensor([0.7, 1.7], dtype=st.float64, requires_grad=True)  # broadcast: its gradient is summed
    assert gradcheck(getattr(st, name), (x, y)) and gradgradcheck(getattr(st, name), (x, y))


def test_gradients_of_choices():
    x = st.tensor([-1.5, 0.3, 2.2], dtype=st.float64, requires_grad=True)
    y = st.tensor([0.4, -0.8, 1.1], dtype=st.float64, requires_grad=True)
    mask = st.tensor([True, False, True])
    for function in (
        lambda x, y: st.where(mask, x, y), lambda x, y: x.masked_fill(mask, 2.0) * y, lambda x, y: x.clamp(-1, y), lambda x, y: st.lerp(x, y, 0.3),
        lambda x, y: st.addcmul(x, x, y, value=0.5), lambda x, y: st.addcdiv(x, x, y, value=0.5), lambda x, y: st.nan_to_num(x) * y,
        lambda x, y: F.prelu(x.view(1, 3), y),
    ):  # fmt: skip
        assert gradcheck(function, (x, y)) and gradgradcheck(function, (x, y))


def test_gradients_where_branches_are_not_finite():
    x = st.tensor([0.0, 4.0], requires_grad=True)
    st.where(x > 0, st.sqrt(x), 0.0).sum().backward()
    assert math.isnan(x.grad.tolist()[0]) and x.grad.tolist()[1] == 0.25  # 0 · inf, as in PyTorch
    x = st.tensor([0.0, 0.0], requires_grad=True)
    st.xlogy(x, st.tensor([0.0, 2.0])).sum().backward()
    assert x.grad.tolist() == [0.0, pytest.approx(math.log(2.0))]
    x = st.tensor([0.0], requires_grad=True)
    (x**st.tensor([0.0])).sum().backward()
    assert x.grad.tolist() == [0.0]


def test_in_place_gradients():
    x = st.tensor([0.5, 1.5], dtype=st.float64, requires_grad=True)

    def f(x):
        y = x * 2
        y.sin_()
        y[0].mul_(3.0)
        y.add_(x).pow_(2)
        return y

    assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_meta(name):
    arity = 1 if name in UNARY else 2
    x, y = st.empty(4, 1, 3, device="meta"), st.empty(2, 3, device="meta", dtype=st.float64)
    args = (x, y)[:arity]
    real = [st.ones(t.shape, dtype=t.dtype) for t in args]
    result, expected = getattr(st, name)(*args), getattr(st, name)(*real)
    assert result.device.type == "meta" and (result.shape, result.dtype, result.stride()) == (expected.shape, expected.dtype, expected.stride())


def test_operators_of_other_types():
    x = st.ones(2)
    with pytest.raises(TypeError):
        x + "one"
    with pytest.raises(TypeError):
        st.add("one", x)
    with pytest.raises(TypeError, match="argument 'input' \\(position 1\\) must be Tensor, not list"):
        st.exp([1.0])
    assert (x == "one") is False and (x + np.float32(2)).tolist() == [3.0, 3.0]
    assert abs(-x).tolist() == [1.0, 1.0] and (+x).tolist() == [1.0, 1.0] and (5 // st.tensor([2])).tolist() == [2] and (5 % st.tensor([3])).tolist() == [2]


def test_two_numbers_are_a_tensor_where_pytorch_computes_with_them():
    assert st.add(1, 2).dtype is st.int64 and st.add(1, 2).item() == 3 and st.add(True, True).dtype is st.bool
    assert st.sub(1, 2.5).dtype is st.float32 and st.mul(2, 1j).dtype is st.complex64
    assert st.div(1, 4).item() == 0.25 and st.floor_divide(7, 2).item() == 3 and st.add(1, 2, alpha=2).item() == 5 and st.div(7, 2, rounding_mode="trunc").item() == 3


def test_bounds_are_nodes_of_their_own():
    x = st.tensor([1.0, 3.0], requires_grad=True)
    bound = st.zeros(2)
    found = [y.grad_fn.name() for y in (x.clamp_min(0), x.clamp_min(bound), x.clamp_max(0), x.clamp_max(bound), x.clamp(0), x.clamp(bound))]
    assert found == ["ClampMinBackward0", "ClampMinBackward1", "ClampMaxBackward0", "ClampMaxBackward1", "ClampBackward1", "ClampBackward0"]
    x.clamp_min(2).sum().backward()
    assert x.grad.tolist() == [0, 1]


def test_numbers_beside_small_floats_are_rounded_before_they_are_compared():
    x = st.tensor([4.0, 0.5, 2.0])
    assert (x.to(st.float8_e8m0fnu) == 2.5).tolist() == [False, False, True]
    assert (x.to(st.float8_e4m3fn) != 2.03).tolist() == [True, True, False]


def test_refusals_in_pytorchs_order():
    x, big = st.zeros(2, 0, 3), st.tensor([1], dtype=st.uint16)
    for call, kind in (
        (lambda: st.maximum(st.ones(2), 1j), TypeError), (lambda: st.fmod(1j, st.ones(2).to(st.float8_e5m2)), TypeError), (lambda: big << st.tensor([1j]), RuntimeError),
        (lambda: st.relu(st.tensor([True])), RuntimeError), (lambda: x.var([-2, -2, 4]), RuntimeError), (lambda: x.sum([-2, -2, 4]), IndexError),
        (lambda: x.permute(0, 0, 4), RuntimeError), (lambda: x.amax([-2, -2]), IndexError),
    ):  # fmt: skip
        with pytest.raises(kind) as caught:
            call()
        assert type(caught.value) is kind
    out = st.zeros(1).expand(4)
    assert st.sum(st.ones(2, 2), 0, out=out).tolist() == [2, 2] and out.tolist() == [2, 2]  # of another shape: given memory of its own


def test_fills_of_expanded_tensors_warn():
    first, some = st.tensor([0, 1]), st.tensor([True, False, True])
    for name, write in {
        "masked_fill_": lambda x: x.masked_fill_(some, 2.0),
        "index_fill_": lambda x: x.index_fill_(0, first, 2.0),
        "index_put_": lambda x: x.index_put_((first,), st.tensor(1.0), accumulate=True),
    }.items():
        with pytest.warns(UserWarning, match=f"^Use of {name} on expanded tensors is deprecated"):
            assert write(st.zeros(1).expand(3)).tolist() == [2, 2, 2]
    base = st.zeros(2, 1)
    with pytest.warns(UserWarning):
        base.expand(2, 3)[st.tensor([[False, False, True], [False, False, False]])] = 5.0
    assert base.tolist() == [[5], [0]]


@pytest.mark.parametrize("count", [0, 1, 3, 40])
def test_the_sign_of_a_double_for_halves(count):
    x, sign = st.arange(float(count)).half(), st.tensor(-1.0, dtype=st.float64)
    assert st.copysign(x, sign).tolist() == [-float(k) for k in range(count)]


@pytest.mark.parametrize("dtype", [st.bool, st.uint8, st.int64])
def test_integers_have_no_negative_powers(dtype):
    for x in (st.ones(0, dtype=dtype), st.ones(2, dtype=dtype)):
        for call in (lambda x: x**-1, lambda x: st.pow(x, -2), lambda x: x.pow_(-1)):
            with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed."):
                call(x)


@pytest.mark.parametrize("exponent", [2, 3, -1, -2, 0.5, -0.5])
def test_a_power_is_the_same_number_while_a_lens_looks_on(exponent):
    from strided import dispatch

    x = st.rand(200) + 0.5
    with dispatch.listen(lambda event: seen.append(event.op)):
        seen = []
        under = x**exponent
    assert st.equal(under, x**exponent) and seen == ["pow"]


def test_a_number_times_a_tensor_is_the_tensor_times_it():
    x = st.ones(2, requires_grad=True)
    for y in (2 * x, x * 2, 2 + x, x + 2):
        (first, _), *_ = y.grad_fn.next_functions
        assert first is not None and first.variable is x
    assert (2 * st.tensor([3], dtype=st.int8)).dtype is st.int8 and (2.5 + st.tensor([3])).tolist() == [5.5] and (2j * st.ones(1)).tolist() == [2j]
