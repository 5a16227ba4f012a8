"""Factories, tensors from data, and values read back. Expected values are PyTorch 2.13's."""

import copy
import pickle

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strided as torch

# ---- from shapes ---------------------------------------------------------------------------------------------------


def test_shapes_and_defaults():
    for make in (torch.empty, torch.zeros, torch.ones):
        for x in (make(2, 3), make((2, 3)), make([2, 3]), make(torch.Size([2, 3])), make(size=(2, 3)), make(torch.tensor(2), 3), make(numpy.int64(2), 3)):
            assert x.shape == (2, 3) and x.dtype is torch.float32 and x.is_contiguous() and not x.requires_grad and x.device == torch.device("cpu")
        assert make(()).shape == () and make(0, 3).shape == (0, 3) and make(2, device="meta").is_meta and make(2, requires_grad=True).is_leaf
        assert make(2, dtype=torch.int16).dtype is torch.int16 and make(2, dtype=float).dtype is torch.float64 and make(2, dtype=int).dtype is torch.int64
    assert torch.zeros(2, 2).tolist() == [[0.0, 0.0], [0.0, 0.0]] and torch.ones(2, dtype=torch.bool).tolist() == [True, True]
    for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64):
        assert torch.zeros(5, dtype=dtype).tolist() == [0] * 5 and torch.ones(5, dtype=dtype).tolist() == [1] * 5
    assert torch.zeros(2, dtype=torch.float8_e4m3fn).dtype.itemsize == 1


def test_default_dtype_and_device():
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.zeros(2).dtype is torch.arange(1.0).dtype is torch.tensor(1.5).dtype is torch.linspace(0, 1, 2).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.zeros(2).dtype is torch.float32
    with torch.device("meta"):
        assert torch.zeros(2).is_meta and torch.tensor([1]).is_meta and torch.arange(3).is_meta and not torch.zeros(2, device="cpu").is_meta
    assert not torch.zeros(2).is_meta


def test_full():
    assert torch.full((2,), 3).dtype is torch.int64 and torch.full((2,), 3.0).dtype is torch.float32 and torch.full((2,), True).dtype is torch.bool
    assert torch.full((2,), torch.tensor(3)).tolist() == [3, 3] and torch.full((1, 2), 1.5, dtype=torch.int64).tolist() == [[1, 1]]
    assert torch.full((2,), -1, dtype=torch.uint8).tolist() == [255, 255] and torch.full((1,), 2**63 - 1).item() == 2**63 - 1
    assert torch.full((2,), float("inf"), dtype=torch.float16).tolist() == [float("inf")] * 2
    for value, dtype, name in [(300, torch.uint8, "uint8_t"), (float("nan"), torch.int64, "int64_t"), (1e10, torch.int32, "int"), (1e39, torch.float32, "float"), (70000.0, torch.half, "c10::Half")]:
        with pytest.raises(RuntimeError, match=f"^value cannot be converted to type {name} without overflow"):
            torch.full((2,), value, dtype=dtype)


def test_like_and_new():
    x = torch.ones(2, 3).t()
    assert torch.zeros_like(x).stride() == (1, 3) and torch.empty_like(x).shape == (3, 2) and torch.full_like(x, 7).tolist() == [[7.0, 7.0]] * 3
    assert torch.ones_like(x, dtype=torch.int64).dtype is torch.int64 and torch.zeros_like(x, device="meta").is_meta and torch.zeros_like(x, requires_grad=True).requires_grad
    assert torch.full_like(torch.ones(2, dtype=torch.int64), 7.5).tolist() == [7, 7]
    assert torch.empty_like(torch.zeros(2, 3, 4, 5), memory_format=torch.channels_last).stride() == (60, 1, 15, 3)
    half = x.half()
    assert half.new_zeros(3, 4).shape == half.new_zeros((3, 4)).shape == (3, 4) and half.new_ones(2).dtype is torch.float16
    assert half.new_full((2,), 3).tolist() == [3.0, 3.0] and half.new_empty(2, dtype=torch.int8).dtype is torch.int8
    assert half.new_tensor([1, 2]).dtype is torch.float16 and x.long().new_tensor([1.5]).tolist() == [1]


def test_strides_and_out():
    assert torch.empty_strided((2, 3), (1, 2)).stride() == (1, 2) and torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride() == (60, 1, 15, 3)
    out = torch.ones(3)
    assert torch.zeros(2, out=out) is out and out.tolist() == [0.0, 0.0]
    assert torch.arange(4, out=torch.empty(0, dtype=torch.int32)).tolist() == [0, 1, 2, 3]


# ---- ranges --------------------------------------------------------------------------------------------------------


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-7, 7).filter(bool))
def test_arange_of_integers(start, end, step):
    if (end - start) * step < 0:
        with pytest.raises(RuntimeError, match="^upper bound and lower bound inconsistent with step sign"):
            torch.arange(start, end, step)
    else:
        x = torch.arange(start, end, step)
        assert x.dtype is torch.int64 and x.tolist() == list(range(start, end, step))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.uint8])
def test_arange_in_every_dtype(dtype):
    assert torch.arange(1, 20, 3, dtype=dtype).tolist() == [1, 4, 7, 10, 13, 16, 19]


def test_arange_of_floats():
    assert torch.arange(1, 2, 0.25).tolist() == [1.0, 1.25, 1.5, 1.75] and torch.arange(5.0).dtype is torch.float32
    assert numpy.array_equal(torch.arange(0, 1, 0.1).numpy(), numpy.arange(0, 1, 0.1).astype(numpy.float32))
    assert torch.arange(torch.tensor(3)).tolist() == [0, 1, 2] and torch.arange(start=1, end=3).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="^step must be nonzero"):
        torch.arange(1, 5, 0)
    with pytest.raises(RuntimeError, match="^unsupported range: 0 -> nan"):
        torch.arange(float("nan"))


def test_linspace_logspace_eye():
    x = torch.linspace(-1, 1, 1001)
    assert x[0] == -1 and x[-1] == 1 and numpy.abs(x.numpy() - numpy.linspace(-1, 1, 1001)).max() < 1e-7
    assert torch.linspace(0, 10, 5, dtype=torch.int64).tolist() == [0, 2, 5, 7, 10] and torch.linspace(3, 9, 1).tolist() == [3.0] and torch.linspace(0, 1, 0).shape == (0,)
    assert torch.logspace(0, 2, 3).tolist() == [1.0, 10.0, 100.0] and torch.logspace(0, 3, 4, base=2).tolist() == [1.0, 2.0, 4.0, 8.0]
    assert torch.eye(2, 3).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]] and torch.eye(0).shape == (0, 0) and torch.eye(2, dtype=torch.int32).dtype is torch.int32
    assert torch.tril_indices(3, 3).tolist() == [[0, 1, 1, 2, 2, 2], [0, 0, 1, 0, 1, 2]] and torch.triu_indices(2, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]


# ---- from data -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data, dtype, values",
    [
        (3, torch.int64, 3),
        (2.5, torch.float32, 2.5),
        (True, torch.bool, True),
        ([], torch.float32, []),
        ([[]], torch.float32, [[]]),
        ([1, 2], torch.int64, [1, 2]),
        ([True, 2], torch.int64, [1, 2]),
        ([True, 2.5], torch.float32, [1.0, 2.5]),
        ([[1, 2], [3, 4.5]], torch.float32, [[1.0, 2.0], [3.0, 4.5]]),
        (((1,), (2,)), torch.int64, [[1], [2]]),
        (range(3), torch.int64, [0, 1, 2]),
        ([1e39], torch.float32, [float("inf")]),
        (numpy.array([1.0, 2.0]), torch.float64, [1.0, 2.0]),
        (numpy.array([1, 2], ">i4"), torch.int32, [1, 2]),
        (numpy.float64(3), torch.float64, 3.0),
        ([numpy.float32(1), numpy.float32(2)], torch.float32, [1.0, 2.0]),
        ([numpy.array([1, 2]), numpy.array([3, 4])], torch.int64, [[1, 2], [3, 4]]),
        (numpy.arange(6).reshape(2, 3).T, torch.int64, [[0, 3], [1, 4], [2, 5]]),
    ],
)
def test_tensor(data, dtype, values):
    x = torch.tensor(data)
    assert x.dtype is dtype and x.tolist() == values and x.is_contiguous()


def test_tensor_of_tensors_and_dtypes():
    assert torch.tensor([torch.tensor(1), torch.tensor(2.5)]).tolist() == [1.0, 2.5]
    assert torch.tensor([torch.tensor(1.0, dtype=torch.float64), 2.0]).dtype is torch.float64
    for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.bool):
        assert torch.tensor([0, 1, 1], dtype=dtype).tolist() == [0, 1, 1] and torch.tensor([0.0, 1.0], dtype=dtype).dtype is dtype
    assert torch.tensor([1.7, -1.7], dtype=torch.int32).tolist() == [1, -1] and torch.tensor([-1], dtype=torch.uint8).tolist() == [255]
    assert torch.tensor([1.0], requires_grad=True).requires_grad and torch.tensor([1, 2], device="meta").shape == (2,)
    source = torch.ones(2)
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        assert torch.tensor(source).mem is not source.mem


@pytest.mark.parametrize(
    "attempt, kind, message",
    [
        (lambda: torch.tensor([[1, 2, 3], [4, 5]]), ValueError, "expected sequence of length 3 at dim 1 (got 2)"),
        (lambda: torch.tensor([[1, 2], 3]), TypeError, "not a sequence"),
        (lambda: torch.tensor([1, "a"]), TypeError, "new(): invalid data type 'str'"),
        (lambda: torch.tensor(["a"]), ValueError, "too many dimensions 'str'"),
        (lambda: torch.tensor(None), RuntimeError, "Could not infer dtype of NoneType"),
        (lambda: torch.tensor({1: 2}), RuntimeError, "Could not infer dtype of dict"),
        (lambda: torch.tensor([300], dtype=torch.uint8), RuntimeError, "value cannot be converted to type uint8 without overflow"),
        (lambda: torch.tensor(2**63), ValueError, "Overflow when unpacking long long"),
        (lambda: torch.tensor([1j], dtype=torch.float32), TypeError, "must be real number, not complex"),
        (lambda: torch.tensor([1, 2], requires_grad=True), RuntimeError, "Only Tensors of floating point and complex dtype can require gradients"),
        (lambda: torch.zeros(), TypeError, 'zeros() missing 1 required positional arguments: "size"'),
        (lambda: torch.zeros(2.5), TypeError, "zeros(): argument 'size' (position 1) must be tuple of ints, not float"),
        (lambda: torch.zeros(-1), RuntimeError, "zeros: Dimension size must be non-negative."),
        (lambda: torch.empty(2, -3), RuntimeError, "Trying to create tensor with negative dimension -3: [2, -3]"),
        (lambda: torch.zeros(2**62, 2**62, device="meta"), RuntimeError, "Storage size calculation overflowed with sizes=[4611686018427387904, 4611686018427387904]"),
        (lambda: torch.ones(2, dtype="float32"), TypeError, "ones(): argument 'dtype' must be torch.dtype, not str"),
        (lambda: torch.ones(2, device="cuda"), AssertionError, "Torch not compiled with CUDA enabled"),
        (lambda: torch.full(2, 3), TypeError, "full(): argument 'size' (position 1) must be tuple of ints, not int"),
        (lambda: torch.linspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
        (lambda: torch.from_numpy([1]), TypeError, "expected np.ndarray (got list)"),
        (lambda: torch.from_numpy(numpy.arange(3)[::-1]), ValueError, "At least one stride in the given numpy array is negative"),
        (lambda: torch.frombuffer(bytearray(8), dtype=torch.int32, offset=9), ValueError, "offset (9 bytes) must be non-negative and no greater than buffer length (8"),
        (lambda: torch.frombuffer(bytearray(7), dtype=torch.int32), ValueError, "buffer length (7 bytes) after offset (0 bytes) must be a multiple of element size (4)"),
    ],
)
def test_messages(attempt, kind, message):
    with pytest.raises(kind) as caught:
        attempt()
    assert str(caught.value).startswith(message)


def test_numpy_shares_memory():
    a = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    x = torch.from_numpy(a[:, ::2])
    assert x.stride() == (3, 2)
    x.fill_(9)
    assert a.tolist() == [[9.0, 1.0, 9.0], [9.0, 4.0, 9.0]] and torch.as_tensor(a).data_ptr() == a.ctypes.data
    y = torch.zeros(2, 3).t()
    b = y.numpy()
    b[2, 1] = 5
    assert y[2, 1].item() == 5.0 and b.strides == (4, 12) and numpy.asarray(y).dtype == numpy.float32 and numpy.array(y, dtype=numpy.int32)[2, 1] == 5
    del x, a, y
    assert b[2, 1] == 5  # the array keeps the memory alive
    assert torch.as_tensor([1, 2]).tolist() == [1, 2] and torch.as_tensor(b, dtype=torch.int64)[2, 1].item() == 5 and torch.from_numpy(numpy.array(3.0)).item() == 3.0
    same = torch.ones(2)
    assert torch.as_tensor(same) is same and torch.asarray(same, copy=True).mem is not same.mem and torch.asarray([1.0]).tolist() == [1.0]
    buffer = bytearray(b"abcdefgh")
    z = torch.frombuffer(buffer, dtype=torch.uint8, count=2, offset=1)
    z.fill_(65)
    assert buffer == b"aAAdefgh"


def test_numpy_refusals():
    with pytest.raises(RuntimeError, match=r"^Can't call numpy\(\) on Tensor that requires grad. Use tensor.detach\(\).numpy\(\) instead."):
        torch.ones(2, requires_grad=True).numpy()
    assert torch.ones(2, requires_grad=True).numpy(force=True).tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="^can't convert meta device type tensor to numpy"):
        torch.ones(2, device="meta").numpy()
    with pytest.raises(TypeError, match="^Got unsupported ScalarType Float4_e2m1fn_x2"):
        torch.empty(2, dtype=torch.float4_e2m1fn_x2).numpy()


# ---- out of tensors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_item_and_tolist(dtype):
    x = torch.tensor([[0, 1], [1, 0]]).to(dtype)
    kind = bool if dtype is torch.bool else float if dtype.is_floating_point else int
    assert x.tolist() == [[0, 1], [1, 0]] and type(x.tolist()[0][0]) is type(x[0, 1].item()) is kind
    assert x.t()[::1, 1].tolist() == [1, 0] and x[0, 1].tolist() == 1 and torch.zeros(0, 2, dtype=dtype).tolist() == []


def test_python_numbers():
    assert int(torch.tensor([2.7])) == 2 and float(torch.tensor(3)) == 3.0 and complex(torch.tensor(2.0)) == 2 and bool(torch.tensor([[1]])) is True
    assert [10, 20, 30][torch.tensor(1)] == 20 and [10, 20][torch.tensor(True)] == 20 and range(torch.tensor(3)) == range(3)
    for attempt, kind, message in [
        (lambda: torch.ones(2).item(), RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar"),
        (lambda: bool(torch.ones(2)), RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
        (lambda: bool(torch.ones(0)), RuntimeError, "Boolean value of Tensor with no values is ambiguous"),
        (lambda: int(torch.ones(2)), ValueError, "only one element tensors can be converted to Python scalars"),
        (lambda: [1][torch.tensor(0.0)], TypeError, "only integer tensors of a single element can be converted to an index"),
        (lambda: len(torch.tensor(1)), TypeError, "len\\(\\) of a 0-d tensor"),
        (lambda: iter(torch.tensor(1)), TypeError, "iteration over a 0-d tensor"),
        (lambda: torch.ones(1, device="meta").item(), RuntimeError, "Tensor.item\\(\\) cannot be called on meta tensors"),
        (lambda: "a" in torch.ones(2), RuntimeError, "Tensor.__contains__ only supports Tensor or scalar"),
    ]:
        with pytest.raises(kind, match=f"^{message}"):
            attempt()


def test_sequence_protocol():
    x = torch.arange(6).view(3, 2)
    assert len(x) == 3 and [row.tolist() for row in x] == x.tolist() and 3 in x and 7 not in x and torch.tensor(3) in x
    assert list(reversed(x))[0].tolist() == [4, 5] and f"{torch.tensor(3.14159):.2f}" == "3.14" and repr(x[0]) == "tensor([0, 1])"


def test_equality_of_tensors():
    a = torch.tensor([1.0, float("nan"), float("inf"), -float("inf")])
    assert torch.equal(torch.ones(2), torch.ones(2)) and not torch.equal(torch.ones(2), torch.ones(3)) and not torch.equal(a, a) and torch.equal(torch.ones(2), torch.ones(2).long())
    assert torch.isclose(a, a).tolist() == [True, False, True, True] and torch.isclose(a, a, equal_nan=True).all()
    assert torch.isclose(torch.tensor([1.0, 1.0]), torch.tensor([1.0 + 1e-6, 1.001])).tolist() == [True, False]
    assert torch.isclose(torch.tensor([1, 2]), torch.tensor([1, 3])).tolist() == [True, False] and not torch.isclose(torch.tensor(float("inf")), torch.tensor(1.0))
    assert torch.allclose(torch.ones(2), torch.ones(2) + 1e-7) and not torch.allclose(torch.ones(2), torch.zeros(2))
    with pytest.raises(RuntimeError, match="^Float did not match Double"):
        torch.allclose(torch.ones(2), torch.ones(2).double())


def test_copies_by_pickle_and_deepcopy():
    w = torch.arange(6.0).view(2, 3).t().clone().requires_grad_()
    for again in (copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        assert torch.equal(again, w) and again.requires_grad and again.is_leaf and again.mem is not w.mem
    base = torch.zeros(4)
    pair = copy.deepcopy([base, base[1:3]])
    pair[1].fill_(1)
    assert pair[0].tolist() == [0.0, 1.0, 1.0, 0.0] and base.tolist() == [0.0] * 4
    with pytest.raises(RuntimeError, match="^Only Tensors created explicitly by the user"):
        copy.deepcopy(w * 2)


def test_lists_with_a_dtype():
    assert torch.tensor([1, 2, -3], dtype=torch.int64).tolist() == [1, 2, -3]
    assert torch.tensor([1, 2], dtype=torch.int8).dtype is torch.int8
    assert torch.tensor([1, 2.5], dtype=torch.float64).tolist() == [1.0, 2.5]
    assert torch.tensor([1, 2], dtype=torch.float32).tolist() == [1.0, 2.0]
    assert torch.tensor([1, 2], dtype=torch.bfloat16).dtype is torch.bfloat16
    assert torch.tensor([1, 0, 2], dtype=torch.bool).tolist() == [True, False, True]
    assert torch.tensor([1.9, -1.9], dtype=torch.int64).tolist() == [1, -1]
    assert torch.tensor(3, dtype=torch.float64).item() == 3.0
    with pytest.raises((RuntimeError, ValueError)):
        torch.tensor([300], dtype=torch.int8)
    with pytest.raises(TypeError):
        torch.tensor([1, 2], dtype="int64")
