"""The drawn messages: PyTorch's sentence on the first line, the shapes and the way out below."""

import pytest

from strided import dtypes, errors
from strided.layout import Layout, broadcast_shapes, infer_size


def test_broadcast_mismatch_is_drawn():
    with pytest.raises(RuntimeError) as caught:
        broadcast_shapes((8, 12, 64), (8, 512))
    assert str(caught.value) == (
        "The size of tensor a (64) must match the size of tensor b (512) at non-singleton dimension 2\n"
        "  a: [8, 12,  64]\n"
        "  b:    [ 8, 512]\n"
        "             ^^^\n"
        "  Sizes are compared from the right: equal, or one of them 1. Insert a dimension of size 1 where one tensor should repeat: x.unsqueeze(d)."
    )


@pytest.mark.parametrize(
    "a, b, advice",
    [
        ((8, 64), (64, 8), "b.transpose(-2, -1) would fit."),
        ((8, 64), (8,), "b[:, None] would fit"),
        ((8,), (8, 64), "a[:, None] would fit"),
        ((2, 3, 4), (2, 3), "b[:, :, None] would fit"),
        ((2, 3, 4), (2, 4), "b[:, None, ...] would fit"),
    ],
)
def test_broadcast_advice(a, b, advice):
    with pytest.raises(RuntimeError) as caught:
        broadcast_shapes(a, b)
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    "a, b, sentence",
    [
        ((3, 4), (5, 6), "mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)"),
        ((2, 3, 4), (5, 6), "mat1 and mat2 shapes cannot be multiplied (6x4 and 5x6)"),
        ((4,), (5, 6), "mat1 and mat2 shapes cannot be multiplied (1x4 and 5x6)"),
        ((3, 4), (5,), "size mismatch, got input (3), mat (3x4), vec (5)"),
        ((4,), (5,), "inconsistent tensor size, expected tensor [4] and src [5] to have the same number of elements, but got 4 and 5 elements respectively"),
        ((2, 2, 3, 4), (2, 2, 5, 6), "Expected size for first two dimensions of batch2 tensor to be: [4, 4] but got: [4, 5]."),
        ((), (5, 6), "both arguments to matmul need to be at least 1D, but they are 0D and 2D"),
    ],
)
def test_matmul_mismatch(a, b, sentence):
    assert str(errors.matmul_mismatch(a, b)).split("\n")[0] == sentence


def test_matmul_advice():
    assert str(errors.matmul_mismatch((8, 64), (10, 64), names=("x", "weight"))).endswith("needs the two inner sizes k equal. weight.transpose(-2, -1) would fit.")


def test_reshape_and_view():
    assert str(errors.invalid_reshape((5, 3), 12, (3, 4))) == (
        "shape '[5, 3]' is invalid for input of size 12\n  input: [3, 4] = 12 elements\n  wanted: [5, 3] = 15 elements\n"
        "  [4, 3] would fit; -1 in one place lets the size be computed."
    )
    with pytest.raises(RuntimeError, match="12 is not a multiple of 5"):
        infer_size((-1, 5), 12)
    transposed = Layout.contiguous((3, 4)).transpose(0, 1)
    lines = str(errors.view_incompatible(transposed.shape, transposed.strides, (12,))).split("\n")
    assert lines[0].startswith("view size is not compatible with input tensor's size and stride") and lines[1:4] == ["   shape: [4, 3]", "  stride: [1, 4]", "  wanted: [12]"]


def test_expand_and_dtype():
    with pytest.raises(RuntimeError) as caught:
        Layout.contiguous((3, 4)).expand((2, 3, 3))
    assert str(caught.value).split("\n")[1:4] == ["  tensor:    [3, 4]", "  target: [2, 3, 3]", "                 ^"]
    message = str(errors.dtype_mismatch(dtypes.float32, dtypes.float64))
    assert message.split("\n")[0] == "expected m1 and m2 to have the same dtype, but got: float != double" and message.endswith("a.to(torch.float64).")
