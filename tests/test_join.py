"""cat, stack and their kin; split, chunk, unbind: values, sharing of memory, gradients, errors."""
import numpy as np
import pytest

import strided as torch

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def pair():
    return torch.from_numpy(A.copy()), torch.from_numpy(A * 10)


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_cat_and_stack(dim, order):
    a, b = (t.permute(order) for t in pair())
    np.testing.assert_array_equal(torch.cat([a, b, a], dim).numpy(), np.concatenate([a.numpy(), b.numpy(), a.numpy()], dim))
    np.testing.assert_array_equal(torch.stack([a, b], dim).numpy(), np.stack([a.numpy(), b.numpy()], dim))


def test_cat_promotes_and_skips_empty():
    out = torch.cat([torch.tensor([True]), torch.tensor([2]), torch.tensor([0.5]), torch.zeros(0)])
    assert out.dtype == torch.float32 and out.tolist() == [1, 2, 0.5]
    assert torch.cat([torch.zeros(0), torch.ones(2, 2)]).shape == (2, 2)
    assert torch.cat([torch.ones(1, dtype=torch.bfloat16), torch.ones(1, dtype=torch.float16)]).dtype == torch.float32


def test_stacks():
    v, w = torch.tensor([1, 2]), torch.tensor([3, 4])
    assert torch.hstack([v, w]).tolist() == [1, 2, 3, 4] and torch.vstack([v, w]).tolist() == [[1, 2], [3, 4]]
    assert torch.dstack([v, w]).tolist() == [[[1, 3], [2, 4]]] and torch.column_stack([v, w]).tolist() == [[1, 3], [2, 4]]
    assert torch.concat([v, w], dim=0).tolist() == torch.concatenate([v, w], axis=0).tolist() == [1, 2, 3, 4]


def test_pieces_are_windows():
    a, _ = pair()
    assert [t.shape[1] for t in a.split(2, 1)] == [2, 1] and [t.shape[2] for t in a.split([1, 3], -1)] == [1, 3]
    assert [t.shape[2] for t in a.chunk(3, 2)] == [2, 2] and [t.shape[1] for t in torch.tensor_split(a, 2, 1)] == [2, 1]
    assert [t.shape[2] for t in torch.tensor_split(a, (1, 3), 2)] == [1, 2, 1] and len(torch.hsplit(a, 3)) == 3
    rows = a.unbind(1)
    rows[1].zero_()
    assert a[:, 1].sum().item() == 0 and len(rows) == 3 and rows[0].shape == (2, 4)
    np.testing.assert_array_equal(torch.cat(a.split(1, 2), 2).numpy(), a.numpy())


def test_gradients():
    a, b = (t.requires_grad_() for t in pair())
    (torch.cat([a, b], 1) * torch.arange(6.0)[:, None]).sum().backward()
    assert a.grad[0, :, 0].tolist() == [0, 1, 2] and b.grad[0, :, 0].tolist() == [3, 4, 5]
    a.grad = None
    first, _ = a.split([1, 2], 1)
    first.sum().backward()
    assert a.grad[:, 0].sum().item() == 8 and a.grad[:, 1:].sum().item() == 0
    a.grad = None
    a.unbind(0)[1].sum().backward()
    assert a.grad[0].sum().item() == 0 and a.grad[1].sum().item() == 12
    a.grad = None
    torch.stack([a, b])[0].sum().backward()
    assert a.grad.sum().item() == 24


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda a: torch.cat([]), ValueError, "torch.cat(): expected a non-empty list of Tensors"),
        (lambda a: torch.cat([a, a[:, :2]]), RuntimeError, "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2 for tensor number 1 in the list."),
        (lambda a: torch.cat([a, a[0]]), RuntimeError, "Tensors must have same number of dimensions: got 3 and 2"),
        (lambda a: torch.cat([a[0, 0, 0]]), RuntimeError, "zero-dimensional tensor (at position 0) cannot be concatenated"),
        (lambda a: torch.cat(a), TypeError, "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"),
        (lambda a: torch.stack([a, a[0]]), RuntimeError, "stack expects each tensor to be equal size, but got [2, 3, 4] at entry 0 and [3, 4] at entry 1"),
        (lambda a: a.split([1, 1], 1), RuntimeError, "split_with_sizes expects split_sizes to sum exactly to 3"),
        (lambda a: a.chunk(0), RuntimeError, "chunk expects `chunks` to be greater than 0, got: 0"),
        (lambda a: torch.cat([a, a.to("meta")]), RuntimeError, "Expected all tensors to be on the same device"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call(pair()[0])
    assert str(caught.value).startswith(message)


def test_writing_one_of_several_windows_is_refused():
    a = pair()[0].requires_grad_() * 1
    with pytest.raises(RuntimeError, match="This view is the output of a function that returns multiple views"):
        a.unbind(0)[0].add_(1)


@pytest.mark.parametrize("widths", [(8, 16, 9), (64, 200, 64), (8, 1), (32, 0, 32)])
@pytest.mark.parametrize("threads", [1, 2])
def test_pieces_of_rows_of_any_widths_and_strides_stand_side_by_side(widths, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        rows, pieces, expected = 300, [], []
        for i, width in enumerate(widths):
            piece = torch.arange(rows * (width + i)).view(rows, width + i)[:, i:]  # [rows, width], rows width + i apart
            pieces.append(piece)
            expected.append(piece.tolist())
        joined = torch.cat(pieces, -1)
        assert joined.tolist() == [sum(lines, []) for lines in zip(*expected)]
        stacked = torch.stack([pieces[0], pieces[0] + 1, pieces[0]], 1)
        assert stacked.tolist() == [[row, [x + 1 for x in row], row] for row in expected[0]]
    finally:
        torch.set_num_threads(before)
