"""Shape operators: values against NumPy, aliasing, strides, node names, gradients (every one of these operators is linear), errors."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strided as torch


def iota(*shape, dtype=torch.float32):
    return torch.arange(int(numpy.prod(shape)), dtype=dtype).view(*shape)


def grid(*shape):
    return numpy.arange(numpy.prod(shape), dtype=numpy.float32).reshape(shape)


VIEWS = {
    "view": (lambda x: x.view(4, -1), lambda a: a.reshape(4, -1), "ViewBackward0"),
    "unflatten": (lambda x: x.unflatten(2, (2, -1)), lambda a: a.reshape(2, 3, 2, 2), "ViewBackward0"),
    "flatten": (lambda x: x.flatten(1), lambda a: a.reshape(2, 12), "ViewBackward0"),
    "reshape": (lambda x: x.reshape(6, 4), lambda a: a.reshape(6, 4), "ViewBackward0"),
    "transpose": (lambda x: x.transpose(0, -1), lambda a: a.swapaxes(0, -1), "TransposeBackward0"),
    "swapaxes": (lambda x: x.swapaxes(0, 1), lambda a: a.swapaxes(0, 1), "TransposeBackward0"),
    "mT": (lambda x: x.mT, lambda a: a.swapaxes(-1, -2), "TransposeBackward0"),
    "permute": (lambda x: x.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1), "PermuteBackward0"),
    "movedim": (lambda x: x.movedim((0, 1), (-1, 0)), lambda a: numpy.moveaxis(a, (0, 1), (-1, 0)), "PermuteBackward0"),
    "unsqueeze": (lambda x: x.unsqueeze(-2), lambda a: numpy.expand_dims(a, -2), "UnsqueezeBackward0"),
    "squeeze": (lambda x: x[:1].squeeze(), lambda a: a[:1].squeeze(), "SqueezeBackward0"),
    "squeeze_dim": (lambda x: x[:1].squeeze(0), lambda a: a[0], "SqueezeBackward1"),
    "squeeze_dims": (lambda x: x[:1].squeeze((0, 1)), lambda a: a[0], "SqueezeBackward2"),
    "expand": (lambda x: x.expand(5, -1, 3, 4), lambda a: numpy.broadcast_to(a, (5, 2, 3, 4)), "ExpandBackward0"),
    "expand_sizes": (lambda x: x[:, :1].expand(2, 6, 4), lambda a: numpy.broadcast_to(a[:, :1], (2, 6, 4)), "ExpandBackward0"),
    "narrow": (lambda x: x.narrow(1, -2, 2), lambda a: a[:, 1:], "SliceBackward0"),
    "select": (lambda x: x.select(1, -1), lambda a: a[:, -1], "SelectBackward0"),
    "diagonal": (lambda x: x.diagonal(1, 1, 2), lambda a: a.diagonal(1, 1, 2), "DiagonalBackward0"),
    "unfold": (lambda x: x.unfold(2, 3, 1), lambda a: numpy.lib.stride_tricks.sliding_window_view(a, 3, 2), "UnfoldBackward0"),
    "unfold_apart": (lambda x: x.unfold(2, 1, 2), lambda a: a[:, :, ::2, None], "UnfoldBackward0"),
    "as_strided": (lambda x: x.as_strided((3, 2), (2, 1), 4), lambda a: a.ravel()[4:10].reshape(3, 2), "AsStridedBackward0"),
    "as_strided_overlapping": (lambda x: x.as_strided((3, 2), (1, 1), 1), lambda a: numpy.array([[1, 2], [2, 3], [3, 4]], a.dtype) + a.flat[0], "AsStridedBackward0"),
}
COPIES = {
    "clone": (lambda x: x.clone(), lambda a: a, "CloneBackward0"),
    "contiguous": (lambda x: x.transpose(0, 1).contiguous(), lambda a: a.swapaxes(0, 1), "CloneBackward0"),
    "reshape_copy": (lambda x: x.transpose(0, 1).reshape(-1), lambda a: a.swapaxes(0, 1).reshape(-1), "UnsafeViewBackward0"),
    "ravel": (lambda x: x.transpose(0, 1).ravel(), lambda a: a.swapaxes(0, 1).ravel(), "ViewBackward0"),
    "repeat": (lambda x: x.repeat(2, 1, 2, 3), lambda a: numpy.tile(a, (2, 1, 2, 3)), "RepeatBackward0"),
    "tile": (lambda x: x.tile(2), lambda a: numpy.tile(a, 2), "RepeatBackward0"),
    "repeat_interleave": (lambda x: x.repeat_interleave(3, 1), lambda a: a.repeat(3, 1), "ViewBackward0"),
    "flip": (lambda x: x.flip(0, -1), lambda a: a[::-1, :, ::-1], "FlipBackward0"),
    "fliplr": (lambda x: x.fliplr(), lambda a: a[:, ::-1], "FlipBackward0"),
    "roll": (lambda x: x.roll((1, -2), (0, 2)), lambda a: numpy.roll(a, (1, -2), (0, 2)), "RollBackward0"),
    "roll_flat": (lambda x: x.roll(5), lambda a: numpy.roll(a, 5), "RollBackward0"),
    "rot90": (lambda x: x.rot90(1, (1, 2)), lambda a: numpy.rot90(a, 1, (1, 2)), "Rot90Backward0"),
    "rot270": (lambda x: x.rot90(-1, (0, 2)), lambda a: numpy.rot90(a, -1, (0, 2)), "Rot90Backward0"),
    "diag": (lambda x: x[0].diag(1), lambda a: numpy.diag(a[0], 1), "DiagonalBackward0_copy"),
    "diag_embed": (lambda x: x.diag_embed(-1), lambda a: numpy.stack([numpy.stack([numpy.diag(r, -1) for r in m]) for m in a]), "DiagEmbedBackward0"),
    "double": (lambda x: x.double(), lambda a: a.astype(numpy.float64), "ToCopyBackward0"),
}


@pytest.mark.parametrize("name", [*VIEWS, *COPIES])
def test_values_names_and_aliasing(name):
    ours, theirs, node = {**VIEWS, **COPIES}[name]
    x = iota(2, 3, 4).requires_grad_()
    result, expected = ours(x), theirs(grid(2, 3, 4))
    assert numpy.array_equal(result.detach().numpy(), expected) and tuple(result.shape) == expected.shape
    assert type(result.grad_fn).__name__ == node
    assert (result.mem is x.mem) == (name in VIEWS)
    meta = ours(torch.empty(2, 3, 4, device="meta"))
    assert meta.shape == result.shape and meta.stride() == result.stride() and meta.dtype is result.dtype and meta.is_meta


@pytest.mark.parametrize("name", [*VIEWS, *COPIES])
def test_gradient_is_the_transpose(name):
    function = {**VIEWS, **COPIES}[name][0]
    x, other = iota(2, 3, 4).requires_grad_(), (iota(2, 3, 4) * 7 % 5)
    weights = (iota(*function(x).shape) % 11 - 3).to(function(x).dtype).requires_grad_()
    (grad,) = torch.autograd.grad((function(x) * weights).sum(), x, create_graph=True)
    assert grad.shape == x.shape and grad.dtype is x.dtype
    shift = function(torch.zeros(2, 3, 4))
    assert not shift.any()
    assert (grad * other).sum().item() == (function(other) * weights).sum().item()
    (again,) = torch.autograd.grad((grad * other).sum(), weights)
    assert torch.equal(again, function(other).to(again.dtype))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int16, torch.int64, torch.float16, torch.bfloat16, torch.float64])
def test_copies_keep_every_dtype(dtype):
    x = (iota(3, 5) % 2).to(dtype)
    expected = grid(3, 5) % 2
    for ours, theirs in [
        (x.t().contiguous(), expected.T), (x.flip(1), expected[:, ::-1]), (x.repeat(2, 1), numpy.tile(expected, (2, 1))), (x.roll(2, 1), numpy.roll(expected, 2, 1)),
    ]:  # fmt: skip
        assert ours.dtype is dtype and numpy.array_equal(ours.float().numpy(), theirs)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.data())
@settings(max_examples=60, deadline=None)
def test_chains_of_views_and_copies(shape, data):
    x, a = iota(*shape), grid(*shape)
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(st.sampled_from(["permute", "slice", "flip", "reshape", "contiguous", "roll", "expand"]))
        dim = data.draw(st.integers(0, a.ndim - 1)) if a.ndim else 0
        if kind == "permute":
            order = data.draw(st.permutations(range(a.ndim)))
            x, a = x.permute(*order), a.transpose(order)
        elif kind == "slice" and a.ndim:
            start, step = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 2))
            key = (slice(None),) * dim + (slice(start, None, step),)
            x, a = x[key], a[key]
        elif kind == "flip" and a.ndim:
            x, a = x.flip(dim), numpy.flip(a, dim)
        elif kind == "roll" and a.ndim:
            x, a = x.roll(2, dim), numpy.roll(a, 2, dim)
        elif kind == "reshape":
            x, a = x.reshape(-1, 1), a.reshape(a.size, 1)
        elif kind == "contiguous":
            x = x.contiguous()
            assert x.is_contiguous()
        elif kind == "expand":
            x, a = x.expand(2, *a.shape), numpy.broadcast_to(a, (2, *a.shape))
        assert numpy.array_equal(x.numpy(), a)


def test_views_share_memory_and_version():
    x = iota(2, 3).clone()
    row, flat = x[1], x.view(6)
    flat.add_(10)
    assert row.tolist() == [13.0, 14.0, 15.0] and x._version == row._version == 1
    assert row._base is x and row.view(3, 1)._base is x and row.storage_offset() == 3 and row.data_ptr() == x.data_ptr() + 12


def test_strides_of_copies():
    x = torch.zeros(2, 3, 4).permute(2, 0, 1)
    assert x.clone().stride() == x.stride() == (1, 12, 4)
    assert x.contiguous().stride() == (6, 3, 1) and x.double().stride() == (1, 12, 4) and x.clone(memory_format=torch.contiguous_format).stride() == (6, 3, 1)
    assert torch.zeros(3).expand(2, 3).clone().stride() == (3, 1) and x.flip(0).stride() == (1, 12, 4)
    image = torch.zeros(2, 3, 4, 5)
    last = image.to(memory_format=torch.channels_last)
    assert last.stride() == (60, 1, 15, 3) and last.is_contiguous(memory_format=torch.channels_last) and not last.is_contiguous()
    assert last.contiguous().stride() == (60, 20, 5, 1) and last.contiguous(memory_format=torch.channels_last) is last
    assert torch.equal(iota(2, 3, 4, 5).contiguous(memory_format=torch.channels_last), iota(2, 3, 4, 5))


def test_nothing_to_do_returns_the_tensor_itself():
    x = torch.zeros(2, 3)
    assert x.contiguous() is x and x.to(torch.float32) is x and x.float() is x and x.cpu() is x and x.flatten(1) is x and x.type_as(x) is x and x.to(x) is x
    assert x.to(torch.float32, copy=True) is not x


def test_view_as_another_dtype():
    x = torch.tensor([1.0, -2.0])
    bits = x.view(torch.int32)
    assert bits.tolist() == [0x3F800000, -0x40000000] and bits.mem is x.mem
    assert x.view(torch.uint8).shape == (8,) and x.view(torch.float64).shape == (1,)
    assert torch.zeros(2, 4).view(torch.int64).stride() == (2, 1)
    with pytest.raises(RuntimeError, match=r"^self.size\(-1\) must be divisible by 2 to view Float as Double \(different element sizes\), but got 3"):
        torch.zeros(3, 3).view(torch.float64)
    with pytest.raises(RuntimeError, match=r"^self.stride\(-1\) must be 1 to view Float as Half"):
        torch.zeros(3, 4).t().view(torch.float16)
    with pytest.raises(RuntimeError, match=r"^self.dim\(\) cannot be 0 to view Float as Double"):
        torch.tensor(1.0).view(torch.float64)


def test_conversions():
    x = torch.tensor([-1.7, 0.0, 2.5, 300.0])
    assert x.int().tolist() == [-1, 0, 2, 300] and x.bool().tolist() == [True, False, True, True] and x.long().dtype is torch.int64
    assert x.half().tolist() == [-1.7001953125, 0.0, 2.5, 300.0] and x.bfloat16().tolist() == [-1.703125, 0.0, 2.5, 300.0]
    assert torch.tensor([True, False]).float().tolist() == [1.0, 0.0] and torch.tensor([200], dtype=torch.uint8).char().tolist() == [-56]
    assert x.type() == "torch.FloatTensor" and x.type(torch.int8).type() == "torch.CharTensor" and x.type("torch.DoubleTensor").dtype is torch.float64
    assert x.to("cpu", torch.float64).dtype is torch.float64 and x.to(torch.zeros(1, dtype=torch.int16)).dtype is torch.int16 and x.to("meta").is_meta
    with pytest.raises(AssertionError, match="^Torch not compiled with CUDA enabled"):
        x.cuda()
    with pytest.raises(NotImplementedError, match="^Cannot copy out of meta tensor; no data!"):
        x.to("meta").cpu()
    assert x.to(torch.float8_e4m3fn).tolist() == [-1.75, 0.0, 2.5, 288.0]
    with pytest.raises(NotImplementedError, match="Float4_e2m1fn_x2"):
        x.to(torch.float4_e2m1fn_x2)


def test_copy_():
    x = torch.zeros(2, 3)
    assert x.copy_(torch.tensor([1, 2, 3])) is x and x.tolist() == [[1.0, 2.0, 3.0]] * 2 and x._version == 1
    y = iota(6)
    y[1:].copy_(y[:-1])  # overlapping: as if the source had been read first
    assert y.tolist() == [0.0, 0.0, 1.0, 2.0, 3.0, 4.0]
    square = iota(3, 3)
    square.copy_(square.t())
    assert numpy.array_equal(square.numpy(), grid(3, 3).T)
    w = torch.ones(2, requires_grad=True)
    base = torch.zeros(4)
    base[1:3].copy_(w * 3)
    base.sum().backward()
    assert w.grad.tolist() == [3.0, 3.0] and type(base.grad_fn).__name__ == "CopySlices"
    with pytest.raises(RuntimeError, match="^The size of tensor a"):
        torch.zeros(3, 3).copy_(torch.zeros(2, 3))
    with pytest.raises(RuntimeError, match=r"^output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"):
        torch.zeros(3).copy_(torch.zeros(2, 3))
    with pytest.raises(RuntimeError, match="^unsupported operation: more than one element of the written-to tensor refers to a single memory location"):
        torch.zeros(1).expand(3).copy_(torch.ones(3))
    with pytest.raises(RuntimeError, match="^a leaf Variable that requires grad is being used in an in-place operation"):
        w.copy_(torch.zeros(2))


def test_inplace_forms_of_views():
    x = iota(2, 3)
    assert x.t_() is x and x.shape == (3, 2) and x.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert x.unsqueeze_(0).shape == (1, 3, 2) and x.transpose_(0, 1).shape == (3, 1, 2) and x.squeeze_().shape == (3, 2) and x.swapaxes_(0, 1).shape == (2, 3)
    w = iota(2, 3).requires_grad_()
    y = (w * 2).t_()
    assert type(y.grad_fn).__name__ == "TBackward1"
    (y * iota(3, 2)).sum().backward()
    assert w.grad.tolist() == [[0.0, 4.0, 8.0], [2.0, 6.0, 10.0]]


def test_fill_and_zero():
    x = torch.zeros(2, 3)
    assert x.fill_(2.5) is x and x.tolist() == [[2.5] * 3] * 2
    x.t()[1].zero_()
    assert x.tolist() == [[2.5, 0.0, 2.5]] * 2 and x._version == 2
    assert torch.zeros(2, dtype=torch.int32).fill_(1.9).tolist() == [1, 1] and torch.zeros(2, dtype=torch.bool).fill_(3).tolist() == [True, True]
    wide = torch.zeros(1, 2)
    assert wide.expand(3, 2).fill_(4).tolist() == [[4.0, 4.0]] * 3
    with pytest.raises(RuntimeError, match="^value cannot be converted to type uint8_t without overflow"):
        torch.zeros(2, dtype=torch.uint8).fill_(300)
    v = torch.tensor(2.0, requires_grad=True)
    y = torch.ones(3).fill_(v)
    y.sum().backward()
    assert v.grad.item() == 3.0 and type(y.grad_fn).__name__ == "FillBackward3"


def test_resize_and_set():
    x = iota(2, 3)
    assert x.resize_(2, 2).tolist() == [[0.0, 1.0], [2.0, 3.0]] and x.resize_(8).tolist()[:6] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    y = torch.zeros(1).set_(x)
    assert y.mem is x.mem and y.shape == (8,)
    assert torch.zeros(1).set_(x.untyped_storage(), 1, (2, 2), (2, 1)).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(RuntimeError, match="^setStorage: sizes .* are out of bounds for storage of size"):
        torch.zeros(1).set_(x.untyped_storage(), 6, (2, 2))
    with pytest.raises(RuntimeError, match="^cannot resize variables that require grad"):
        torch.zeros(2, requires_grad=True).resize_(3)


def test_grids_and_broadcasts():
    for indexing in ("ij", "xy"):
        ours = torch.meshgrid(torch.arange(2), torch.arange(3), torch.arange(4), indexing=indexing)
        theirs = numpy.meshgrid(numpy.arange(2), numpy.arange(3), numpy.arange(4), indexing=indexing)
        assert all(numpy.array_equal(a.numpy(), b) for a, b in zip(ours, theirs))
    a, b = torch.broadcast_tensors(torch.zeros(3, 1), torch.zeros(2))
    assert a.shape == b.shape == (3, 2) and a.stride() == (1, 0) and torch.broadcast_shapes((3, 1), 2) == (3, 2)
    assert [t.shape for t in torch.atleast_2d(torch.tensor(1.0), torch.zeros(3))] == [(1, 1), (1, 3)] and torch.atleast_3d(torch.zeros(2, 3)).shape == (2, 3, 1)
    assert torch.atleast_1d(torch.tensor(2)).tolist() == [2]
    assert torch.cartesian_prod(torch.arange(2), torch.tensor([5, 6])).tolist() == [[0, 5], [0, 6], [1, 5], [1, 6]]
    assert torch.combinations(torch.tensor([4, 5, 6])).tolist() == [[4, 5], [4, 6], [5, 6]]
    assert torch.combinations(torch.arange(2), 2, True).tolist() == [[0, 0], [0, 1], [1, 1]]
    assert torch.block_diag(torch.ones(1, 2), torch.tensor([3.0])).tolist() == [[1.0, 1.0, 0.0], [0.0, 0.0, 3.0]]
    assert torch.arange(3).repeat_interleave(torch.tensor([1, 0, 2])).tolist() == [0, 2, 2]


def test_plans_are_found_again():
    x = torch.zeros(2, 3, 4)
    for make in (lambda: x.transpose(0, 1), lambda: x.view(6, 4), lambda: x.permute(2, 1, 0), lambda: x.unsqueeze(1), lambda: x.select(0, 1), lambda: x.reshape(-1)):
        assert make().spec is make().spec
    source = torch.zeros(40_001)
    for start in range(40_000):  # many windows of one kind of tensor must not be kept forever
        source[start:]
    assert len(source.spec.cache) <= 16_384


@pytest.mark.parametrize(
    "attempt, kind, message",
    [
        (lambda x: x.view(5, 3), RuntimeError, "shape '[5, 3]' is invalid for input of size 12"),
        (lambda x: x.t().view(12), RuntimeError, "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous"),
        (lambda x: x.reshape(-1, 5), RuntimeError, "shape '[-1, 5]' is invalid for input of size 12"),
        (lambda x: x.view("a"), TypeError, "view(): argument 'size' must be tuple of ints"),
        (lambda x: x.transpose(0, 2), IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
        (lambda x: x.unsqueeze(1.5), TypeError, "unsqueeze(): argument 'dim' must be int, not float"),
        (lambda x: x.unsqueeze(0).t(), RuntimeError, "t() expects a tensor with <= 2 dimensions, but self is 3D"),
        (lambda x: x.repeat(2), RuntimeError, "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"),
        (lambda x: x.flip(0, 0), RuntimeError, "dim 0 appears multiple times in the list of dims"),
        (lambda x: x.roll((1, 2), 0), RuntimeError, "shifts and dimensions must align. shifts: 2, dims:1"),
        (lambda x: x[0].rot90(), RuntimeError, "expected total dims >= 2, but got total dims = 1"),
        (lambda x: x[0].mT, RuntimeError, "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor."),
        (lambda x: x.as_strided((5, 5), (5, 1)), RuntimeError, "setStorage: sizes [5, 5], strides [5, 1], storage offset 0, and itemsize 4 requiring a storage size of 100"),
        (lambda x: x.contiguous(memory_format=torch.channels_last), RuntimeError, "required rank 4 tensor to use channels_last format"),
        (lambda x: x.repeat_interleave(2, dim=1, output_size=7), RuntimeError, "repeat_interleave: Invalid output_size, expected 8 but got 7"),
        (lambda x: torch.movedim(x, (0, 1), (0,)), RuntimeError, "movedim: Invalid source or destination dims: source ([0, 1] dims)"),
        (lambda x: torch.meshgrid(x[0], indexing="zz"), RuntimeError, 'torch.meshgrid: indexing must be one of "xy" or "ij", but received: zz'),
        (lambda x: x.imag, RuntimeError, "imag is not implemented for tensors with non-complex dtypes."),
    ],
)
def test_messages(attempt, kind, message):
    with pytest.raises(kind) as caught:
        attempt(torch.zeros(3, 4))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "function, view, shape",
    [
        (lambda x, s: torch.select_scatter(x, s, 1, -1), lambda x: x[:, -1], (3,)),
        (lambda x, s: torch.slice_scatter(x, s, 1, 1, None, 2), lambda x: x[:, 1::2], (3, 2)),
        (lambda x, s: torch.diagonal_scatter(x, s, 1), lambda x: x.diagonal(1), (3,)),
        (lambda x, s: torch.as_strided_scatter(x, s, (2, 2), (5, 2), 1), lambda x: x.as_strided((2, 2), (5, 2), 1), (2, 2)),
    ],
)
def test_scatters_replace_a_view(function, view, shape):
    x, src = iota(3, 4).clone().requires_grad_(), (iota(*shape) + 100).requires_grad_()
    expected = x.detach().clone()
    view(expected).copy_(src.detach())
    result, weights = function(x, src), iota(3, 4) + 1
    assert torch.equal(result, expected) and result.mem is not x.mem
    (result * weights).sum().backward()
    if "as_strided_scatter" in function.__code__.co_names:  # PyTorch's: the window's gradient, not that of the rest
        rest = torch.zeros(3, 4)
        view(rest).copy_(view(weights))
    else:
        rest = weights.clone()
        view(rest).zero_()
    assert torch.equal(x.grad, rest) and torch.equal(src.grad, view(weights))
    with pytest.raises(RuntimeError, match="^expected src to have a size equal to the slice of self"):
        torch.select_scatter(x, torch.zeros(7), 1, 0)


def test_copies_of_views():
    x = iota(2, 3).clone()
    for name, arguments in [("transpose", (0, 1)), ("select", (1, 2)), ("unsqueeze", (0,)), ("view", ((3, 2),)), ("expand", ((2, 2, 3),)), ("narrow", (1, 1, 2)), ("t", ())]:
        copied, viewed = getattr(torch, f"{name}_copy")(x, *arguments), getattr(torch.Tensor, name)(x, *arguments)
        assert torch.equal(copied, viewed) and copied.mem is not x.mem and copied.is_contiguous()
    assert [part.tolist() for part in torch.unbind_copy(x)] == x.tolist() and torch.diagflat(x[0]).tolist() == torch.diag(x[0]).tolist()
    assert x.conj() is x and torch.real(x) is x and x.resolve_conj() is x


def test_roll_again():
    """The plans of a roll are kept by shape, shifts and dimensions."""
    for start in (0, 7):
        x = torch.arange(start, start + 12).view(3, 4)
        for source in (x, x.float(), torch.arange(start, start + 12).view(4, 3).t()):
            rows = source.tolist()
            assert source.roll(1, 1).tolist() == [[row[-1], *row[:-1]] for row in rows]
            assert source.roll((1, -1), (0, 1)).tolist() == [[*row[1:], row[0]] for row in (rows[2], rows[0], rows[1])]
            assert source.roll(8, 1).tolist() == rows
    w = torch.arange(3.0, requires_grad=True)
    for _ in range(2):
        (g,) = torch.autograd.grad((w.roll(1) * torch.tensor([1.0, 2.0, 3.0])).sum(), w)
        assert g.tolist() == [2, 3, 1]
