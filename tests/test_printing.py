"""Printed text against strings that PyTorch 2.13 printed."""

import numpy
import pytest

from strided import dtypes as D
from strided import printing
from strided.arrays import tensor_of
from strided.layout import Layout
from strided.tensor import Spec, wrap, wrap_storage

GOLDEN = [
    ("numpy.array([1.0, 2.5, -3.25], numpy.float32)", {}, "tensor([ 1.0000,  2.5000, -3.2500])"),
    ("numpy.array([1.0, 2.0, -30.0], numpy.float32)", {}, "tensor([  1.,   2., -30.])"),
    ("numpy.array([[0.001, 1000.0], [3.5, -2.0]], numpy.float32)", {}, "tensor([[ 1.0000e-03,  1.0000e+03],\n        [ 3.5000e+00, -2.0000e+00]])"),
    ("numpy.array([1e-5, 1.0], numpy.float32)", {}, "tensor([1.0000e-05, 1.0000e+00])"),
    ("numpy.array([1e9, 1.0], numpy.float32)", {}, "tensor([1.0000e+09, 1.0000e+00])"),
    ("numpy.array([1.0, numpy.nan, numpy.inf, -numpy.inf], numpy.float32)", {}, "tensor([1., nan, inf, -inf])"),
    ("numpy.array([1.5, numpy.nan, numpy.inf, -numpy.inf], numpy.float32)", {}, "tensor([1.5000,    nan,    inf,   -inf])"),
    ("numpy.array([0.0, -0.0], numpy.float32)", {}, "tensor([0., -0.])"),
    ("numpy.array([[True, False], [False, False]])", {}, "tensor([[ True, False],\n        [False, False]])"),
    ("numpy.array(3.14159, numpy.float32)", {}, "tensor(3.1416)"),
    ("numpy.array(7)", {}, "tensor(7)"),
    ("numpy.array([], numpy.float32)", {}, "tensor([])"),
    ("numpy.zeros((0, 3), numpy.int32)", {}, "tensor([], size=(0, 3), dtype=torch.int32)"),
    (
        "numpy.arange(30, dtype=numpy.float32) / 7",
        {},
        "tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,\n        1.2857, 1.4286, 1.5714, 1.7143, 1.8571, 2.0000, 2.1429, 2.2857, 2.4286,\n        2.5714, 2.7143, 2.8571, 3.0000, 3.1429, 3.2857, 3.4286, 3.5714, 3.7143,\n        3.8571, 4.0000, 4.1429])",
    ),
    (
        "numpy.arange(12, dtype=numpy.int16).reshape(2, 3, 2)",
        {},
        "tensor([[[ 0,  1],\n         [ 2,  3],\n         [ 4,  5]],\n\n        [[ 6,  7],\n         [ 8,  9],\n         [10, 11]]], dtype=torch.int16)",
    ),
    (
        "numpy.arange(12, dtype=numpy.float64).reshape(3, 4).T",
        {},
        "tensor([[ 0.,  4.,  8.],\n        [ 1.,  5.,  9.],\n        [ 2.,  6., 10.],\n        [ 3.,  7., 11.]], dtype=torch.float64)",
    ),
    ("numpy.arange(2000, dtype=numpy.float32)", {}, "tensor([0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9970e+03, 1.9980e+03,\n        1.9990e+03])"),
    (
        "numpy.arange(8000, dtype=numpy.int64).reshape(2, 4, 1000)",
        {},
        "tensor([[[   0,    1,    2,  ...,  997,  998,  999],\n         [1000, 1001, 1002,  ..., 1997, 1998, 1999],\n         [2000, 2001, 2002,  ..., 2997, 2998, 2999],\n         [3000, 3001, 3002,  ..., 3997, 3998, 3999]],\n\n        [[4000, 4001, 4002,  ..., 4997, 4998, 4999],\n         [5000, 5001, 5002,  ..., 5997, 5998, 5999],\n         [6000, 6001, 6002,  ..., 6997, 6998, 6999],\n         [7000, 7001, 7002,  ..., 7997, 7998, 7999]]])",
    ),
    ("numpy.array([0.5, 65504.0], numpy.float16)", {}, "tensor([5.0000e-01, 6.5504e+04], dtype=torch.float16)"),
    ("numpy.array([123456.789], numpy.float64)", {"precision": 2}, "tensor([123456.79], dtype=torch.float64)"),
    ("numpy.array([123456.789, 0.1], numpy.float64)", {"sci_mode": False}, "tensor([123456.7890,      0.1000], dtype=torch.float64)"),
    ("numpy.array([1.5, 2.0], numpy.float32)", {"sci_mode": True, "precision": 1}, "tensor([1.5e+00, 2.0e+00])"),
    ("numpy.arange(20)", {"threshold": 10, "edgeitems": 2}, "tensor([ 0,  1,  ..., 18, 19])"),
    (
        "numpy.arange(20)",
        {"linewidth": 30},
        "tensor([ 0,  1,  2,  3,  4,\n         5,  6,  7,  8,  9,\n        10, 11, 12, 13, 14,\n        15, 16, 17, 18, 19])",
    ),
    (
        "numpy.arange(20.0)",
        {"profile": "short"},
        "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n        14., 15., 16., 17., 18., 19.], dtype=torch.float64)",
    ),
]


@pytest.fixture(autouse=True)
def default_options():
    yield
    printing.set_printoptions(profile="default")


@pytest.mark.parametrize("source, options, text", GOLDEN)
def test_golden(source, options, text):
    with printing.printoptions(**options):
        assert printing.tensor_repr(tensor_of(eval(source, {"numpy": numpy}))) == text
    assert printing.get_printoptions() == {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}


def test_bfloat16():
    raw = tensor_of(numpy.array([1.5, -3.140625, 0.0], numpy.float32).view(numpy.uint16)[1::2].copy())
    t = wrap(raw.spec.with_dtype(D.bfloat16), raw.mem, raw.ptr)
    assert printing.tensor_repr(t) == "tensor([ 1.5000, -3.1406,  0.0000], dtype=torch.bfloat16)"


def test_meta():
    spec = Spec.of(Layout.contiguous((2, 3)), D.float32, D.META)
    assert printing.tensor_repr(wrap(spec, wrap_storage(0, 24, None), 0)) == "tensor(..., device='meta', size=(2, 3))"
    half = wrap(spec.with_dtype(D.float16), wrap_storage(0, 12, None), 0)
    assert printing.tensor_repr(half) == "tensor(..., device='meta', size=(2, 3), dtype=torch.float16)"


def test_requires_grad_and_long_last_line():
    t = tensor_of(numpy.arange(8, dtype=numpy.float64) / 3)
    t._tracked = True
    assert printing.tensor_repr(t) == (
        "tensor([0.0000, 0.3333, 0.6667, 1.0000, 1.3333, 1.6667, 2.0000, 2.3333],\n       dtype=torch.float64, requires_grad=True)"
    )
    assert printing.parameter_repr(t).startswith("Parameter containing:\ntensor([0.0000")


def test_default_dtype_is_not_named():
    D.set_default_dtype(D.float64)
    try:
        assert printing.tensor_repr(tensor_of(numpy.ones(2))) == "tensor([1., 1.])"
        assert printing.tensor_repr(tensor_of(numpy.ones(2, numpy.float32))) == "tensor([1., 1.], dtype=torch.float32)"
    finally:
        D.set_default_dtype(D.float32)


def test_format():
    assert printing.tensor_format(tensor_of(numpy.array(3.14159, numpy.float32)), ".3f") == "3.142"
    assert printing.tensor_format(tensor_of(numpy.array(42)), "05d") == "00042"
    with pytest.raises(TypeError):
        printing.tensor_format(tensor_of(numpy.zeros(2)), ".3f")


def test_unknown_profile():
    with pytest.raises(ValueError, match="profile must be one of 'default', 'short', 'full', not 'x'"):
        printing.set_printoptions(profile="x")
