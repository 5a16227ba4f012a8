"""x[key], x[key] = value, gather and scatter, masks, lookups: against NumPy, gradients by hand, what stays unchanged on errors."""
import numpy as np
import pytest

import strided as torch
import strided.nn.functional as F

A = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
I, J = np.array([0, 2, -1]), np.array([[1], [-3]])
MASK = A[:, :, 0] % 2 == 0

WINDOWS = [0, -1, (1, 2), (1, 2, 3), slice(0, 2), (slice(None), 1), (..., 0), None, (None, ..., None, 0), slice(1, 1), (slice(None, None, 2), slice(1, None)), slice(-2, 99), ...]
COPIES = [
    I, [0, 2], (I, [1, 0, 3]), (I, slice(None), [0, 1, 2]), (slice(None), I), (..., I), (J, I), (I, None, 1), (0, I), (slice(1, 3), [0, 1], slice(2)), ([[0], [1]], [0, 1, 2]),
    MASK, A > 30, (MASK, 1), (slice(None), A[0] > 7), np.array([True, False, True]), True, False, (np.array([True, True, False]), 0), [], (I, I, I),
]  # fmt: skip


def ours(key):
    """A NumPy key with tensors for arrays."""
    if isinstance(key, tuple):
        return tuple(ours(k) for k in key)
    return torch.from_numpy(key.copy()) if isinstance(key, np.ndarray) else key


def numpy_key(key):
    return np.array(key, np.int64) if isinstance(key, list) and not key else key


@pytest.mark.parametrize("key", WINDOWS, ids=str)
def test_windows(key):
    x = torch.from_numpy(A.copy())
    view = x[key]
    np.testing.assert_array_equal(view.numpy(), A[key])
    assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    if view.numel():
        view.add_(100)
        assert (x.numpy() != A).sum() == view.numel()


@pytest.mark.parametrize("key", COPIES, ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_copies(key, transposed):
    a = np.ascontiguousarray(A.transpose(2, 1, 0)).transpose(2, 1, 0) if transposed else A
    x = torch.from_numpy(np.ascontiguousarray(A.transpose(2, 1, 0))).permute(2, 1, 0) if transposed else torch.from_numpy(A.copy())
    got = x[ours(key)]
    np.testing.assert_array_equal(got.numpy(), a[numpy_key(key)])
    got.zero_()
    np.testing.assert_array_equal(x.numpy(), A)


@pytest.mark.parametrize("key", [k for k in WINDOWS + COPIES if not isinstance(k, list) or k], ids=str)
def test_assignment(key):
    for value in (7.0, np.arange(5, dtype=np.float32)):
        x, a = torch.from_numpy(A.copy()), A.copy()
        try:
            a[key] = value
        except ValueError:
            with pytest.raises(RuntimeError):
                x[ours(key)] = torch.from_numpy(value.copy())
            np.testing.assert_array_equal(x.numpy(), A)
            continue
        x[ours(key)] = value if isinstance(value, float) else torch.from_numpy(value.copy())
        np.testing.assert_array_equal(x.numpy(), a)


@pytest.mark.parametrize("key", [k for k in WINDOWS + COPIES if k is not False and (not isinstance(k, list) or k)], ids=str)
def test_gradients(key):
    x = torch.from_numpy(A.copy()).requires_grad_()
    picked = x[ours(key)]
    weights = np.arange(1, picked.numel() + 1, dtype=np.float32).reshape(tuple(picked.shape))
    (picked * torch.from_numpy(weights)).sum().backward()
    expected = np.zeros_like(A)
    np.add.at(expected, key, weights)
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_assignment_has_a_history():
    x, v = torch.ones(3, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    y = x * 3
    y[1] = v
    y[torch.tensor([2])] = v * 2
    y.sum().backward()
    assert x.grad.tolist() == [3, 0, 0] and v.grad.item() == 3


def test_grad_fn_names():
    x = torch.ones(3, 4, requires_grad=True)
    for view, name in [(x[0], "Select"), (x[1:], "Slice"), (x[None], "Unsqueeze"), (x[torch.tensor([0])], "Index"), (x[x > 0], "Index")]:
        assert type(view.grad_fn).__name__ == name + "Backward0"


@pytest.mark.parametrize(
    "key, kind, message",
    [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
        ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
        (1.5, IndexError, "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got float)"),
        ("a", TypeError, "new(): invalid data type 'str'"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (torch.tensor([0, 9]), IndexError, "index 9 is out of bounds for dimension 0 with size 3"),
        (torch.tensor([0.0]), IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
        (torch.tensor([True, False]), IndexError, "The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [3, 4, 5] at index 0"),
        ((torch.tensor([0, 1]), torch.tensor([0, 1, 2])), IndexError, "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]"),
    ],
)
def test_errors(key, kind, message):
    x = torch.from_numpy(A.copy())
    with pytest.raises(kind) as caught:
        x[key]
    assert str(caught.value).startswith(message)
    with pytest.raises(kind):
        x[key] = 0.0
    np.testing.assert_array_equal(x.numpy(), A)


def test_gather_and_scatter():
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    at = torch.tensor([[2, 0], [1, 1]])
    assert x.gather(1, at).tolist() == [[3, 1], [5, 5]]
    assert torch.zeros(2, 3).scatter(1, at, x[:, :2]).tolist() == [[2, 0, 1], [0, 5, 0]]
    assert torch.zeros(2, 3).scatter_add(1, at, x[:, :2]).tolist() == [[2, 0, 1], [0, 9, 0]]
    assert torch.ones(2, 3).scatter_reduce(1, at, x[:, :2], "prod").tolist() == [[2, 1, 1], [1, 20, 1]]
    assert torch.ones(2, 3).scatter_reduce(1, at, x[:, :2], "amax", include_self=False).tolist() == [[2, 1, 1], [1, 5, 1]]
    assert torch.zeros(2, 3).scatter_(1, at, 7.0).tolist() == [[7, 0, 7], [0, 7, 0]]
    for call in (lambda: x.gather(1, at + 9), lambda: x.scatter_(1, at + 9, 0.0)):
        with pytest.raises(RuntimeError, match="is out of bounds for dimension 1 with size 3"):
            call()
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_scatter_add_in_sixteen_bits():
    for dtype in (torch.bfloat16, torch.float16):
        out = torch.zeros(2, dtype=dtype).scatter_add(0, torch.tensor([0, 1, 0]), torch.tensor([1.5, 2, 0.25], dtype=dtype))
        assert out.tolist() == [1.75, 2]


def test_index_family():
    x = torch.zeros(3, 2)
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    at = torch.tensor([2, 2])
    assert x.index_add(0, at, rows).tolist() == [[0, 0], [0, 0], [4, 6]]
    assert x.index_add(0, at, rows, alpha=2).tolist()[2] == [8, 12]
    assert x.index_copy(0, torch.tensor([0, 2]), rows).tolist() == [[1, 2], [0, 0], [3, 4]]
    assert x.index_fill(1, torch.tensor([-1]), 5).tolist() == [[0, 5]] * 3
    assert rows.index_select(1, torch.tensor([1, 0, 1])).tolist() == [[2, 1, 2], [4, 3, 4]]
    assert rows.take(torch.tensor([0, -1])).tolist() == [1, 4]
    assert x.put(torch.tensor([1, 1]), torch.tensor([1.0, 2.0]), accumulate=True).flatten().tolist() == [0, 3, 0, 0, 0, 0]
    assert x.index_put((torch.tensor([0, 0]),), rows, accumulate=True).tolist()[0] == [4, 6]


def test_masks():
    x = torch.tensor([[1.0, -1.0], [-2.0, 2.0]])
    assert x.masked_select(x > 0).tolist() == [1, 2] and (x < 0).nonzero().tolist() == [[0, 1], [1, 0]]
    assert [t.tolist() for t in torch.where(x < 0)] == [[0, 1], [1, 0]]
    assert x.masked_scatter(x < 0, torch.tensor([8.0, 9.0])).tolist() == [[1, 8], [9, 2]]
    with pytest.raises(RuntimeError, match="Number of elements of source < number of ones in mask"):
        x.masked_scatter(x < 0, torch.tensor([8.0]))
    a = np.random.default_rng(0).random((301, 401)).astype(np.float32)  # large enough for several threads, in uneven shares
    big = torch.from_numpy(a.copy())
    for t, b in (big, a), (big.T, a.T), (big[:, 1:], a[:, 1:]):
        np.testing.assert_array_equal((t > 0.7).nonzero().numpy(), np.argwhere(b > np.float32(0.7)))
        np.testing.assert_array_equal(t[t > 0.7].numpy(), b[b > np.float32(0.7)])


def test_triangles():
    x = torch.ones(2, 3)
    assert x.tril().tolist() == [[1, 0, 0], [1, 1, 0]] and x.triu(1).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert torch.tril_indices(2, 2).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert torch.full((2, 2), float("nan")).triu(1)[1].tolist() == [0, 0]


def test_embedding():
    table = torch.arange(6.0).reshape(3, 2).requires_grad_()
    out = F.embedding(torch.tensor([[2, 0], [2, 1]]), table, padding_idx=1)
    assert out.tolist() == [[[4, 5], [0, 1]], [[4, 5], [2, 3]]]
    out.sum().backward()
    assert table.grad.tolist() == [[1, 1], [0, 0], [2, 2]]
    with pytest.raises(IndexError, match="index out of range in self"):
        F.embedding(torch.tensor([3]), table)


def test_lookups():
    assert F.one_hot(torch.tensor([1, 0]), 3).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert torch.bincount(torch.tensor([1, 1, 3])).tolist() == [0, 2, 0, 1]
    edges = torch.tensor([1.0, 3.0, 5.0])
    assert torch.searchsorted(edges, torch.tensor([3.0, 6.0])).tolist() == [1, 3]
    assert torch.bucketize(torch.tensor([3.0]), edges, right=True).tolist() == [2]


def test_meta():
    x = torch.empty(3, 4, device="meta")
    assert x[0].shape == (4,) and x[:, torch.tensor([0, 1], device="meta")].shape == (3, 2)
    x[0] = 1.0
    x[torch.tensor([0], device="meta")] = 2.0
    assert x.gather(1, torch.zeros(3, 1, dtype=torch.int64, device="meta")).shape == (3, 1)
    with pytest.raises(NotImplementedError, match="depends on the data"):
        x.nonzero()


def test_writing_a_slice_again_looks_at_what_changed():
    """The second write of a kind takes a short way: values, gradients, shared memory and wrong sizes are still seen to."""
    x, v = torch.zeros(6, dtype=torch.int64), torch.tensor([1, 2, 3])
    for start in (1, 2, 2):
        x[start : start + 3] = v
        version = x._version
    assert x.tolist() == [0, 1, 1, 2, 3, 0] and version == 3
    for number in (7, 8.9, True):
        x[4:] = number
    assert x.tolist() == [0, 1, 1, 2, 1, 1]
    for _ in range(2):
        with pytest.raises(RuntimeError, match="without overflow"):
            torch.zeros(3, dtype=torch.uint8)[:] = 300
    a = torch.arange(5.0)
    b = torch.zeros(5)
    b[1:] = a[:4]
    for _ in range(2):
        a[1:] = a[:4]  # the same specs, but the memory meets
    assert a.tolist() == [0, 0, 0, 1, 2] and b.tolist() == [0, 0, 1, 2, 3]
    w = torch.ones(4, requires_grad=True)
    y = torch.zeros(5)
    y[1:] = a[:4]
    y[1:] = w
    y[2:3] = 5
    y[2:3] = 5
    (y * torch.arange(5.0)).sum().backward()
    assert w.grad.tolist() == [1, 0, 3, 4]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        w[1:] = torch.zeros(3)
    with pytest.raises(TypeError, match="slice indices"):
        y[1.0:] = a[:4]
    e = torch.zeros(1).expand(4)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="single memory location"):
            e[1:] = torch.ones(3)
    with pytest.raises(RuntimeError):
        y[1:] = torch.zeros(3)


def test_a_number_is_looked_at_before_index_tensors():
    x = torch.zeros(0, dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        x[[-1]] = -0.5
    with pytest.raises(IndexError, match="out of bounds"):
        x[[-1]] = 5
