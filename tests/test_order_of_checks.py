"""Which error comes first where several things are wrong, and empty operands of which nothing is asked: as PyTorch has it."""
import pytest

import strided as torch


def test_kthvalue_and_topk_refuse_in_pytorchs_order():
    empty, flags = torch.ones(0, 4, 3), torch.ones(2, 2, dtype=torch.bool)
    with pytest.raises(IndexError, match="kthvalue.*non-zero size"):
        torch.kthvalue(empty, 4, 0)
    with pytest.raises(RuntimeError, match="selected number k out of range for dimension 1"):
        torch.kthvalue(empty, 5, 1)
    assert torch.argmax(torch.tensor([False, True])).item() == 1  # PyTorch has no answer for bool, every number format has one here
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        torch.topk(flags, 5)
    with pytest.raises(RuntimeError, match="topk does not support bool"):
        torch.topk(flags, 2)
    with pytest.raises(RuntimeError, match="on a bool tensor is not supported"):
        +flags
    with pytest.raises(IndexError, match="no dimensions"):
        torch.mv(torch.tensor(1.0), torch.tensor(1.0))


def test_nothing_is_asked_of_empty_operands():
    none = torch.ones(3, 0, dtype=torch.int32)
    for function in (torch.remainder, torch.fmod, torch.floor_divide):
        assert function(none, 0).shape == (3, 0) and function(none, torch.zeros(1, dtype=torch.int32)).dtype == torch.int32
    assert torch.div(none, 0, rounding_mode="trunc").shape == (3, 0)
    assert torch.softmax(none, 0).dtype == torch.log_softmax(none, 1).dtype == torch.int32
    flags = torch.ones(0, dtype=torch.bool)
    assert flags.cumsum_(0) is flags and flags.cumprod_(0).dtype == torch.bool
    assert torch.cummax(none, 7).values.shape == torch.cummin(none, 7).indices.shape == (3, 0)
    with pytest.raises(IndexError):
        torch.softmax(none, 5)
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.remainder(torch.ones(3, dtype=torch.int32), torch.zeros(2, dtype=torch.int32))
    assert torch.ones(2, 0).index_add_(1, torch.tensor([3]), torch.ones(2, 1)).shape == (2, 0)
    assert torch.ones(2, 0, 0).index_fill_(1, torch.tensor([3]), 1.0).shape == (2, 0, 0)


def test_indices_out_of_range():
    x = torch.ones(2, 3, 4)
    with pytest.raises(IndexError, match="index out of range in self"):
        x.index_add_(1, torch.tensor([3]), torch.ones(2, 1, 4))
    with pytest.raises(RuntimeError, match="index 2 is out of bounds for dimension 0 with size 2"):
        x.index_add_(0, torch.tensor([2]), torch.ones(1, 3, 4))
    with pytest.raises(IndexError, match="index out of range in self"):
        x.index_add_(0, torch.tensor([2]), torch.ones(1, 3, 4), alpha=2)
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 1"):
        torch.ones(()).index_fill_(0, torch.tensor([3]), 1.0)
    assert bool((x == 1).all())


def test_numbers_that_do_not_fit():
    x = torch.tensor([0, 1, 255], dtype=torch.uint8)
    assert torch.isin(x, -(2**63)).tolist() == [True, False, False] and torch.isin(x, -1).tolist() == [False, False, True]
    assert torch.isin(torch.tensor([0.1]), 0.1).tolist() == [True] and torch.isin(257, x).item() is True
    assert torch.isin(torch.tensor([-float("inf"), 1.0], dtype=torch.float16), -(2**63)).tolist() == [True, False]
    real = torch.ones(2)
    for fill in (lambda: real.index_fill_(0, torch.tensor([0]), 1j), lambda: real.index_fill(0, torch.tensor([0]), torch.tensor(1j))):
        with pytest.raises(RuntimeError, match="Converting complex Scalar to non-complex type"):
            fill()
    for clamp in (lambda: real.clamp(1j, 2), lambda: real.clamp_(max=2j)):
        with pytest.raises(RuntimeError, match="value cannot be converted to type double without overflow"):
            clamp()
    with pytest.raises(RuntimeError, match="scalar type ComplexDouble but got scalar type ComplexFloat for argument 'out'"):
        torch.complex(real.double(), real.double(), out=torch.empty(2, dtype=torch.complex64))
    with pytest.raises(RuntimeError, match="attempted to promote UInt16 and ComplexFloat"):
        torch.gcd(torch.tensor([4], dtype=torch.uint16), torch.tensor([1j]))
    assert real.tolist() == [1.0, 1.0]


def test_norm_of_one_element_is_its_absolute_value():
    nan = float("nan")
    assert torch.norm(torch.tensor([-3.5]), nan).item() == 3.5 and torch.norm(torch.tensor([[3.5, -2.0]]), nan, 0).tolist() == [3.5, 2.0]
    assert torch.norm(torch.tensor([3.5, 2.0]), nan).isnan().item()


def test_out_of_elementwise_operators_may_not_be_expanded():
    out = torch.zeros(1).expand(4, 1)
    for call in (lambda: torch.add(torch.ones(1), 1, out=out), lambda: torch.clamp(torch.ones(1), 0, 1, out=out), lambda: torch.lerp(torch.ones(1), torch.ones(1), 0.5, out=out)):
        with pytest.raises(RuntimeError, match="single memory location"):
            call()
    assert torch.sum(torch.ones(1, 2), 1, out=out).tolist() == [2.0]  # which takes a layout of its own


def test_running_totals_in_place_keep_their_dtype():
    x = torch.tensor([100, 100], dtype=torch.int8)
    assert x.cumsum_(0).tolist() == [100, -56] and x.dtype == torch.int8
    with pytest.raises(RuntimeError, match="Bad in-place call: input tensor dtype signed char and output tensor dtype float should match"):
        x.cumprod_(0, dtype=torch.float32)
    flags = torch.ones(2, dtype=torch.bool)
    with pytest.raises(NotImplementedError, match="\"cumsum_out_cpu\" not implemented for 'Bool'"):
        flags.cumsum_(0)
    with pytest.raises(IndexError):
        flags.cumsum_(5)
    y = torch.tensor([1.0, 2.0], requires_grad=True)
    (y * 2).cumsum_(0).sum().backward()
    assert y.grad.tolist() == [4.0, 2.0]


def test_numbers_among_sorted_values():
    x = torch.tensor([-5, 0, 1, 2], dtype=torch.int32)
    assert torch.searchsorted(x, 1.5).item() == torch.bucketize(1.5, x).item() == 3  # not cut off to 1
    assert torch.searchsorted(x, -(2**63)).item() == 1 and torch.searchsorted(x.half(), 1e9).item() == 4
    for edges in (torch.tensor(1.0), torch.ones(1, 2)):
        with pytest.raises(RuntimeError, match="input value can be a scalar only when boundaries tensor dimension is 1"):
            torch.searchsorted(edges, 1.0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.movedim(torch.ones(2, 7, 3), -4, 1)


def test_the_norm_of_one_element_is_its_size_whatever_the_order():
    x = torch.tensor([[-7.0], [0.001]], dtype=torch.float64)
    for order in (2**31, 1000.0, -5000.0):
        assert torch.linalg.vector_norm(x, order, dim=1).tolist() == [7.0, 0.001]
        assert torch.norm(x[0], order).item() == 7.0
    assert torch.norm(x[0], 0).item() == 1.0


def test_masks_of_numbers_are_named_as_pytorch_names_them():
    x = torch.zeros(2, 3)
    for dtype, name in ((torch.uint8, "unsigned char"), (torch.int64, "long int"), (torch.bfloat16, "c10::BFloat16")):
        with pytest.raises(RuntimeError, match=f"masked_fill_ only supports boolean masks, but got mask with dtype {name}\n"):
            x.masked_fill(torch.zeros(2, 3, dtype=dtype), 1.0)
