"""Layout algebra against NumPy's own strided views: the same elements, or the same refusal."""

import copy
import importlib
import pickle

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strided.layout import Layout, Size

L = importlib.import_module("strided.layout")  # `strided.layout` itself is torch.layout


def walk(layout, offset=0):
    """The elements a layout visits in a buffer that holds 0, 1, 2, …: a NumPy array of their positions."""
    buffer = numpy.arange(offset + max(layout.span, 1))
    view = numpy.lib.stride_tricks.as_strided(buffer[offset:], layout.shape, [8 * s for s in layout.strides])
    return view.copy()


sizes = st.integers(0, 4)
dims = st.integers(-5, 4)


@st.composite
def layouts(draw):
    """A layout reached by permuting and slicing a contiguous one, and its offset."""
    shape = draw(st.lists(sizes, max_size=4))
    layout, offset = Layout.contiguous(shape), 0
    layout = layout.permute(draw(st.permutations(range(len(shape)))))
    for d in range(layout.ndim):
        step, start = draw(st.integers(1, 2)), draw(st.integers(0, 2))
        layout, moved = layout.slice(d, start, None, step)
        offset += moved
    return layout, offset


def agree(ours, theirs):
    """`ours()` and `theirs()` give equal arrays, or both refuse."""
    refusals = (ValueError, RuntimeError, IndexError)
    try:
        expected = theirs()
    except (*refusals, numpy.exceptions.AxisError):
        with pytest.raises(refusals):
            ours()
        return
    assert numpy.array_equal(ours(), expected)


def shifted(pair, offset):
    layout, moved = pair
    return walk(layout, offset + moved)


@given(layouts(), dims, dims)
def test_transpose(made, a, b):
    layout, offset = made
    if layout.ndim:
        agree(lambda: walk(layout.transpose(a, b), offset), lambda: walk(layout, offset).swapaxes(a, b))


@given(layouts(), st.lists(dims, max_size=4))
def test_permute(made, order):
    layout, offset = made
    agree(lambda: walk(layout.permute(order), offset), lambda: walk(layout, offset).transpose(order))


@given(layouts(), dims)
def test_unsqueeze(made, dim):
    layout, offset = made
    agree(lambda: walk(layout.unsqueeze(dim), offset), lambda: numpy.expand_dims(walk(layout, offset), dim))


@given(layouts())
def test_squeeze(made):
    layout, offset = made
    assert numpy.array_equal(walk(layout.squeeze(), offset), walk(layout, offset).squeeze())


@given(layouts(), dims, st.integers(-6, 6), st.integers(-6, 6), st.integers(1, 3))
def test_slice(made, dim, start, stop, step):
    layout, offset = made
    if not -layout.ndim <= dim < layout.ndim:
        with pytest.raises((IndexError, RuntimeError)):
            layout.slice(dim, start, stop, step)
        return
    key = (slice(None),) * (dim % layout.ndim) + (slice(start, stop, step),)
    assert numpy.array_equal(shifted(layout.slice(dim, start, stop, step), offset), walk(layout, offset)[key])


@given(layouts(), dims, st.integers(-6, 6))
def test_select(made, dim, position):
    layout, offset = made
    if layout.ndim == 0 or not -layout.ndim <= dim < layout.ndim:
        with pytest.raises(IndexError):
            layout.select(dim, position)
        return
    key = (slice(None),) * (dim % layout.ndim) + (position,)
    agree(lambda: shifted(layout.select(dim, position), offset), lambda: walk(layout, offset)[key])


@given(layouts(), dims, st.integers(-6, 6), st.integers(-1, 6))
def test_narrow(made, dim, start, length):
    layout, offset = made
    extent = layout.shape[dim] if -layout.ndim <= dim < layout.ndim else None
    begin = start + extent if extent is not None and start < 0 else start
    if extent is None or length < 0 or begin < 0 or begin + length > extent:
        with pytest.raises((RuntimeError, IndexError)):
            layout.narrow(dim, start, length)
        return
    expected = walk(layout, offset).take(range(begin, begin + length), axis=dim)
    assert numpy.array_equal(shifted(layout.narrow(dim, start, length), offset), expected)


@given(layouts(), st.integers(-4, 4), dims, dims)
def test_diagonal(made, k, a, b):
    layout, offset = made
    agree(lambda: shifted(layout.diagonal(k, a, b), offset), lambda: walk(layout, offset).diagonal(k, a, b))


@given(layouts(), dims, st.integers(-1, 4), st.integers(0, 3))
def test_unfold(made, dim, size, step):
    layout, offset = made
    if layout.ndim == 0 or not -layout.ndim <= dim < layout.ndim or step == 0 or not 0 <= size <= layout.shape[dim]:
        try:
            layout.unfold(dim, size, step)
        except (RuntimeError, IndexError):
            pass
        else:
            assert layout.ndim == 0 and 0 <= size <= 1
        return
    array, dim = walk(layout, offset), dim % layout.ndim
    starts = range(0, layout.shape[dim] - size + 1, step)
    windows = [numpy.moveaxis(array.take(range(s, s + size), axis=dim), dim, -1) for s in starts]
    assert numpy.array_equal(walk(layout.unfold(dim, size, step), offset), numpy.stack(windows, dim))


@given(layouts(), st.lists(st.integers(-2, 6), max_size=4))
@settings(max_examples=300)
def test_view(made, target):
    layout, offset = made
    array = walk(layout, offset)
    try:
        shape = L.infer_size(target, layout.numel)
    except RuntimeError:
        if target.count(-1) <= 1 and min(target, default=0) >= -1 and layout.numel:
            with pytest.raises(ValueError):
                array.reshape(target)
        return
    assert shape == array.reshape(shape).shape
    viewed = layout.view(shape)
    if viewed is not None:
        assert numpy.array_equal(walk(viewed, offset), array.reshape(shape))
    else:  # NumPy cannot do it without a copy either
        source = numpy.lib.stride_tricks.as_strided(numpy.arange(max(layout.span, 1)), layout.shape, [8 * s for s in layout.strides])
        with pytest.raises((ValueError, AttributeError)):
            source.reshape(shape, copy=False)


@given(layouts(), st.data())
def test_view_of_any_factorisation(made, data):
    layout, offset = made
    target, left = [], layout.numel
    while left > 1 and len(target) < 5:
        factor = data.draw(st.sampled_from([f for f in range(1, left + 1) if left % f == 0]))
        target.append(factor)
        left //= factor
    target = data.draw(st.permutations([*target, left]))
    viewed = layout.view(target)
    if layout.is_contiguous:
        assert viewed is not None
    if viewed is not None:
        assert numpy.array_equal(walk(viewed, offset), walk(layout, offset).reshape(target))


@given(layouts(), dims, dims)
def test_flatten(made, a, b):
    layout, offset = made
    try:
        flat = layout.flatten(a, b)
    except (IndexError, RuntimeError):
        return
    if flat is not None:
        assert numpy.array_equal(walk(flat, offset).ravel(), walk(layout, offset).ravel())
        assert flat.ndim == max(1, layout.ndim - abs(a % max(layout.ndim, 1) - b % max(layout.ndim, 1)))


@given(layouts(), dims, st.lists(st.integers(-1, 4), max_size=3))
def test_split_dim(made, dim, parts):
    layout, offset = made
    try:
        split = layout.split_dim(dim, parts)
    except (IndexError, RuntimeError):
        return
    dim %= layout.ndim
    assert split.ndim == layout.ndim - 1 + len(parts)
    assert numpy.array_equal(walk(split, offset), walk(layout, offset).reshape(split.shape))


@given(layouts(), st.lists(st.integers(-1, 4), max_size=5))
def test_expand(made, target):
    layout, offset = made
    added = len(target) - layout.ndim
    explicit = [layout.shape[d - added] if size == -1 and d >= added else size for d, size in enumerate(target)]
    if added >= 0 and min(explicit, default=0) >= 0:
        agree(lambda: walk(layout.expand(target), offset), lambda: numpy.broadcast_to(walk(layout, offset), explicit))
    else:
        with pytest.raises(RuntimeError):
            layout.expand(target)


@given(st.lists(st.lists(st.integers(0, 3), max_size=4), min_size=1, max_size=3))
def test_broadcast_shapes(shapes):
    agree(lambda: numpy.array(L.broadcast_shapes(*shapes)), lambda: numpy.array(numpy.broadcast_shapes(*map(tuple, shapes))))


@given(layouts(), layouts())
def test_collapse_visits_the_same_elements(made, other):
    layout = made[0]
    strides = Layout.contiguous(layout.shape).strides
    shape, (a, b) = L.collapse(layout.shape, layout.strides, strides)
    assert 1 not in shape and len(shape) <= layout.ndim
    if layout.numel:
        assert numpy.array_equal(walk(Layout.of(shape, a)).ravel(), walk(layout).ravel())
        assert numpy.array_equal(walk(Layout.of(shape, b)).ravel(), numpy.arange(layout.numel))
    if layout.is_contiguous and layout.numel:
        assert len(shape) <= 1


@given(layouts())
def test_contiguous_dense_and_span(made):
    layout, _ = made
    visited = walk(layout).ravel()
    assert layout.numel == visited.size
    assert layout.span == (visited.max() + 1 if visited.size else 0)
    if layout.numel:
        assert layout.is_contiguous == numpy.array_equal(visited, numpy.arange(layout.numel))
        assert layout.is_dense == (sorted(visited) == list(range(layout.numel)))
    else:
        assert layout.is_contiguous


@given(layouts())
def test_result_of_one_operand_is_dense_and_keeps_order(made):
    layout, _ = made
    result = L.result_strides(layout.shape, layout)
    assert result.shape == layout.shape and (result.is_dense or not layout.numel)
    if layout.is_dense and layout.numel and 1 not in layout.shape:
        assert result == layout


def test_result_strides_follow_the_first_operand():
    rows, columns = Layout.contiguous((3, 4)), Layout.contiguous((4, 3)).transpose(0, 1)
    assert L.result_strides((3, 4), columns, columns).strides == (1, 3)
    assert L.result_strides((3, 4), columns, rows).strides == (1, 3)
    assert L.result_strides((3, 4), rows, columns).strides == (4, 1)
    assert L.result_strides((3, 4), columns, Layout.contiguous(())).strides == (1, 3)
    image = Layout.of((2, 3, 4, 5), L.channels_last_strides((2, 3, 4, 5)))
    assert image.strides == (60, 1, 15, 3)
    assert L.result_strides((2, 3, 4, 5), image, Layout.contiguous((1, 3, 1, 1))) == image


def test_equality_does_not_depend_on_identity():
    first = Layout.of((2, 3), (3, 1))
    L._TABLE.clear()
    L._CONTIGUOUS.clear()
    second = Layout.contiguous((2, 3))
    assert first is not second and first == second and hash(first) == hash(second)
    assert second is Layout.of([2, 3], [3, 1])
    assert pickle.loads(pickle.dumps(first)) == first and copy.deepcopy(first) == first
    assert first != Layout.of((2, 3), (1, 2)) and first != (2, 3)


def test_table_stays_bounded(monkeypatch):
    monkeypatch.setattr(L, "_TABLE_LIMIT", 10)
    for n in range(50):
        assert Layout.contiguous((n, 2)).shape == (n, 2)
    assert len(L._TABLE) <= 10 and len(L._CONTIGUOUS) <= 10


def test_size():
    size = Size([2, 3])
    assert repr(size) == "torch.Size([2, 3])" and repr(Size()) == "torch.Size([])"
    assert size == (2, 3) and hash(size) == hash((2, 3)) and size.numel() == 6 and Size().numel() == 1
    for other in (size[:1], size + (4,), (4,) + size, size * 2, 2 * size, copy.copy(size), pickle.loads(pickle.dumps(size))):
        assert type(other) is Size
    assert (4,) + size == (4, 2, 3) and size[0] == 2 and type(size[0]) is int
    assert type(Size([numpy.int64(3)])[0]) is int
    with pytest.raises(TypeError, match=r"torch.Size\(\) takes an iterable of 'int' \(item 1 is 'float'\)"):
        Size([1, 1.5])


@pytest.mark.parametrize(
    "attempt, kind, message",
    [
        (lambda x: x.unsqueeze(5), IndexError, r"Dimension out of range (expected to be in range of [-3, 2], but got 5)"),
        (lambda x: x.transpose(0, 5), IndexError, r"Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
        (lambda x: L.infer_size((5, 3), 12), RuntimeError, "shape '[5, 3]' is invalid for input of size 12"),
        (lambda x: L.infer_size((-1, -1), 12), RuntimeError, "only one dimension can be inferred"),
        (lambda x: L.infer_size((-2, 6), 12), RuntimeError, "invalid shape dimension -2 at index 0 of shape [-2, 6]"),
        (lambda x: L.infer_size((-1, 0), 0), RuntimeError, "cannot reshape tensor of 0 elements into shape [-1, 0] because"),
        (lambda x: x.expand((3, 3)), RuntimeError, "The expanded size of the tensor (3) must match the existing size (4) at non-singleton dimension 1."),
        (lambda x: x.expand((3,)), RuntimeError, "expand(torch.FloatTensor{[3, 4]}, size=[3]): the number of sizes provided (1) must be greater or equal"),
        (lambda x: x.narrow(0, 2, 5), RuntimeError, "start (2) + length (5) exceeds dimension size (3)."),
        (lambda x: x.narrow(0, 4, 0), IndexError, "start out of range (expected to be in range of [-3, 3], but got 4)"),
        (lambda x: x.select(0, 5), IndexError, "select(): index 5 out of range for tensor of size [3, 4] at dimension 0"),
        (lambda x: x.slice(0, None, None, -1), ValueError, "step must be greater than zero"),
        (lambda x: x.permute((0,)), RuntimeError, "permute(sparse_coo): number of dimensions in the tensor input does not match"),
        (lambda x: x.permute((0, 0)), RuntimeError, "permute(): duplicate dims are not allowed."),
        (lambda x: x.diagonal(0, 1, -1), RuntimeError, "diagonal dimensions cannot be identical 1, -1"),
        (lambda x: x.unfold(0, 5, 1), RuntimeError, "maximum size for tensor at dimension 0 is 3 but size is 5"),
        (lambda x: x.split_dim(0, (2, 2)), RuntimeError, "unflatten: Provided sizes [2, 2] don't multiply up to the size of dim 0 (3)"),
        (lambda x: x.squeeze((0, 0)), RuntimeError, "dim 0 appears multiple times in the list of dims"),
        (lambda x: L.broadcast_shapes((3, 64), (3, 512)), RuntimeError, "The size of tensor a (64) must match the size of tensor b (512) at non-singleton dimension 1"),
        (lambda x: Layout.of((1,), (-1,)), RuntimeError, "as_strided: Negative strides are not supported at the moment, got strides: [-1]"),
        (lambda x: Layout.of((2**40, 2**40), (0, 0)), RuntimeError, "numel: integer multiplication overflow"),
        (lambda x: Layout.of((2, 3), (1,)), RuntimeError, "mismatch in length of strides and shape"),
    ],
)
def test_messages(attempt, kind, message):
    with pytest.raises(kind) as caught:
        attempt(Layout.contiguous((3, 4)))
    assert str(caught.value).startswith(message)
