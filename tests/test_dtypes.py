"""Number formats: the table, promotion, ranges, devices. Expected values are PyTorch 2.13's."""

import copy
import pickle
import subprocess
import sys
from types import SimpleNamespace

import numpy
import pytest

from strided import dtypes as D

ORDER = [D.bool_, D.uint8, D.int8, D.int16, D.int32, D.int64, D.float16, D.bfloat16, D.float32, D.float64, D.complex64, D.complex128]
SHORT = {d.abbr: d for d in ORDER}
# One row a left operand, one column a right operand, both in ORDER.
PROMOTION = """
b8 u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128
u8 u8 i16 i16 i32 i64 f16 bf16 f32 f64 c64 c128
i8 i16 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128
i16 i16 i16 i16 i32 i64 f16 bf16 f32 f64 c64 c128
i32 i32 i32 i32 i32 i64 f16 bf16 f32 f64 c64 c128
i64 i64 i64 i64 i64 i64 f16 bf16 f32 f64 c64 c128
f16 f16 f16 f16 f16 f16 f16 f32 f32 f64 c64 c128
bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64 c64 c128
f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 c64 c128
f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128
c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 c64 c128
c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128
"""


def tensor(dtype, ndim=1):
    return SimpleNamespace(spec=SimpleNamespace(dtype=dtype, ndim=ndim))


def test_promotion_table():
    rows = [line.split() for line in PROMOTION.split("\n") if line]
    for a, row in zip(ORDER, rows):
        for b, expected in zip(ORDER, row):
            assert D.promote(a, b) is SHORT[expected], (a, b)


def test_promotion_of_rare_formats():
    assert D.promote(D.uint16, D.float16) is D.float16 and D.promote(D.float8_e5m2, D.float8_e5m2) is D.float8_e5m2
    assert D.promote(D.complex32, D.bfloat16) is D.complex64 and D.promote(D.complex32, D.float16) is D.complex32
    with pytest.raises(RuntimeError, match="^Promotion for Float8 Types is not supported, attempted to promote Float8_e4m3fn and Float"):
        D.promote(D.float8_e4m3fn, D.float32)
    with pytest.raises(RuntimeError, match="^Promotion for uint16, uint32, uint64 types is not supported, attempted to promote UInt16 and Int"):
        D.promote(D.uint16, D.int32)
    with pytest.raises(TypeError, match="must be torch.dtype, not int"):
        D.promote_types(D.float32, 1)


@pytest.mark.parametrize(
    "operands, expected",
    [
        ((tensor(D.int64), 1.0), D.float32),
        ((tensor(D.float16), tensor(D.float64, 0)), D.float16),
        ((tensor(D.int8), tensor(D.float64, 0)), D.float64),
        ((tensor(D.int8), 1), D.int8),
        ((tensor(D.bool_, 0), 1), D.int64),
        ((1, 1.0), D.float32),
        ((True, 1), D.int64),
        ((1j, 1), D.complex64),
        ((tensor(D.float64), 1j), D.complex128),
        ((tensor(D.float16), 1j), D.complex32),
        ((tensor(D.int8, 0), tensor(D.int16, 0)), D.int16),
        ((tensor(D.bool_), tensor(D.int16, 0)), D.int16),
        ((tensor(D.int16, 0), 2.0), D.float32),
        ((tensor(D.bfloat16, 0), 2.0), D.bfloat16),
        ((tensor(D.bfloat16, 0), tensor(D.float16)), D.float16),
        ((tensor(D.uint8), tensor(D.int8)), D.int16),
        ((tensor(D.uint8, 0), tensor(D.bool_)), D.uint8),
        ((tensor(D.float32), numpy.float64(1)), D.float32),
    ],
)
def test_result_type(operands, expected):
    assert D.result_type(*operands) is expected
    assert D.result_type(*reversed(operands)) is expected


def test_can_cast():
    assert D.can_cast(D.int64, D.float16) and D.can_cast(D.float64, D.float16) and D.can_cast(D.bool_, D.uint8) and D.can_cast(D.int64, D.uint8)
    assert not D.can_cast(D.float32, D.int64) and not D.can_cast(D.complex64, D.float64) and not D.can_cast(D.uint8, D.bool_)


def test_formats():
    assert repr(D.float32) == str(D.float32) == "torch.float32" and type(D.float32).__name__ == "dtype"
    assert D.names()["long"] is D.int64 and D.names()["half"] is D.float16 and D.names()["double"] is D.float64
    assert D.float8_e4m3fn.itemsize == 1 and D.bfloat16.itemsize == 2 and D.complex128.itemsize == 16 and D.int4.bits == 4 and D.int4.itemsize == 1
    assert D.bfloat16.compute is D.float32 and D.float64.compute is D.float64
    assert D.bool_.is_signed is False and D.uint8.is_signed is False and D.int8.is_signed and D.float8_e8m0fnu.is_signed is False
    assert D.complex64.to_real() is D.float32 and D.float16.to_complex() is D.complex32 and D.float32.to_real() is D.float32
    assert pickle.loads(pickle.dumps(D.int16)) is D.int16 and copy.deepcopy(D.int16) is D.int16
    with pytest.raises(TypeError, match="cannot create 'torch.dtype' instances"):
        D.DType()
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Long"):
        D.int64.to_complex()


def test_numpy_border():
    for dtype in ORDER:
        assert dtype.numpy.itemsize == dtype.itemsize
        assert D.from_numpy_dtype(dtype.numpy) is dtype
    assert D.float8_e4m3fn.numpy.itemsize == 1
    with pytest.raises(TypeError, match="^can't convert np.ndarray of type numpy.str_. The only supported types are"):
        D.from_numpy_dtype(numpy.dtype("U3"))
    with pytest.raises(ValueError, match="byte order different from the native"):
        D.from_numpy_dtype(numpy.dtype(">f4"))


def test_import_is_light():
    code = "import sys, strided.dtypes, strided.layout; assert 'numpy' not in sys.modules and 'ml_dtypes' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "dtype, text",
    [
        (D.float16, "finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, smallest_normal=6.10352e-05, tiny=6.10352e-05, dtype=float16)"),
        (D.bfloat16, "finfo(resolution=0.01, min=-3.38953e+38, max=3.38953e+38, eps=0.0078125, smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=bfloat16)"),
        (D.float64, "finfo(resolution=1e-15, min=-1.79769e+308, max=1.79769e+308, eps=2.22045e-16, smallest_normal=2.22507e-308, tiny=2.22507e-308, dtype=float64)"),
        (D.complex64, "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=float32)"),
        (D.float8_e4m3fn, "finfo(resolution=1, min=-448, max=448, eps=0.125, smallest_normal=0.015625, tiny=0.015625, dtype=float8_e4m3fn)"),
        (D.float8_e8m0fnu, "finfo(resolution=1, min=5.87747e-39, max=1.70141e+38, eps=1, smallest_normal=5.87747e-39, tiny=5.87747e-39, dtype=float8_e8m0fnu)"),
    ],
)
def test_finfo(dtype, text):
    assert repr(D.finfo(dtype)) == text


def test_ranges():
    assert D.finfo().dtype == "float32" and D.finfo(D.float32).eps == 2.0**-23 and D.finfo(D.float32).max == float(numpy.finfo(numpy.float32).max)
    assert repr(D.iinfo(D.int32)) == "iinfo(min=-2.14748e+09, max=2.14748e+09, dtype=int32)"
    assert D.iinfo(D.int64).max == 2**63 - 1 and D.iinfo(D.int64).min == -(2**63) and D.iinfo(D.uint8).max == 255 and D.iinfo(D.uint8).bits == 8
    assert D.finfo(D.float32) == D.finfo(D.float32) and D.iinfo(D.int8) != D.iinfo(D.uint8)
    with pytest.raises(TypeError, match=r"^torch.finfo\(\) requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"):
        D.finfo(D.int8)
    with pytest.raises(TypeError, match=r"^torch.iinfo\(\) requires an integer input type"):
        D.iinfo(D.float32)
    with pytest.raises(TypeError, match="^torch.bool is not supported by torch.iinfo"):
        D.iinfo(D.bool_)


def test_default_dtype():
    try:
        D.set_default_dtype(D.float64)
        assert D.get_default_dtype() is D.float64 and D.result_type(tensor(D.int64), 1.0) is D.float64 and D.scalar_dtype(1j) is D.complex128
        for wrong in (D.int32, "float32"):
            with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
                D.set_default_dtype(wrong)
    finally:
        D.set_default_dtype(D.float32)


def test_devices():
    cpu = D.Device("cpu")
    assert repr(cpu) == "device(type='cpu')" and str(cpu) == "cpu" and cpu.index is None and cpu is D.CPU
    assert repr(D.Device("cuda:1")) == "device(type='cuda', index=1)" and str(D.Device("cuda", 1)) == "cuda:1" and D.Device("cuda:1") == D.Device("cuda", 1)
    assert D.Device("cpu:0") != cpu and cpu != "cpu" and hash(D.Device("cuda:1")) == hash(D.Device("cuda", 1))
    assert pickle.loads(pickle.dumps(D.Device("cuda:1"))) is D.Device("cuda:1") and D.Device(cpu) is cpu
    for wrong, kind, message in [
        ("foo", RuntimeError, "Expected one of cpu, cuda"),
        ("cuda:", RuntimeError, "Invalid device string: 'cuda:'"),
        ("cuda:-1", RuntimeError, "Invalid device string: 'cuda:-1'"),
        (1, RuntimeError, "Cannot access accelerator device when none is available."),
        (None, TypeError, r"device\(\) received an invalid combination of arguments"),
    ]:
        with pytest.raises(kind, match=message):
            D.Device(wrong)


def test_resolve_device():
    assert D.resolve_device() is D.resolve_device("cpu:3") is D.CPU and D.resolve_device("meta") is D.META
    with pytest.raises(AssertionError, match="^Torch not compiled with CUDA enabled\nstrided computes on the CPU"):
        D.resolve_device("cuda")
    with pytest.raises(NotImplementedError, match="MPS"):
        D.resolve_device("mps")
    with D.Device("meta"):
        assert D.resolve_device() is D.META
        with D.CPU:
            assert D.resolve_device() is D.CPU
    assert D.resolve_device() is D.CPU
    D.set_default_device("meta")
    assert D.resolve_device(None) is D.META
    D.set_default_device(None)
    assert D.resolve_device(None) is D.CPU
