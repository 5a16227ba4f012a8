"""The index kernels on bare memory, compared with NumPy: indexed reads and writes, bounds, masks, copies."""
from types import SimpleNamespace

import numpy as np
import pytest

from strided.kernels import index, native

F32 = SimpleNamespace(name="float32", itemsize=4, is_floating_point=True, is_complex=False)
BOOL = SimpleNamespace(name="bool", itemsize=1, is_floating_point=False, is_complex=False)


def steps(a):
    return [s // a.itemsize for s in a.strides]


def run(descriptor, *arrays):
    native.launch(descriptor, *(a.ctypes.data for a in arrays))


@pytest.fixture
def error():
    return np.zeros(2, np.int64)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_rows_are_read_by_index_and_negative_indices_wrap(rng, error):
    table, at = rng.standard_normal((50, 16), np.float32), rng.integers(-50, 50, (3, 5))
    out = np.zeros((3, 5, 16), np.float32)
    run(index.build_indexed("get", F32, out.shape, steps(out), (0, 0, 1), [(8, [*steps(at), 0], 50, 16)]), out, table, at, error)
    assert (out == table[at]).all() and not error.any()


def test_two_indices_and_the_first_bad_one(rng, error):
    x, a, c = rng.standard_normal((6, 7, 5), np.float32), rng.integers(0, 6, (4, 1)), rng.integers(0, 5, (3,))
    out = np.zeros((4, 3, 7), np.float32)
    descriptor = index.build_indexed("get", F32, out.shape, steps(out), (0, 0, 5), [(8, (1, 0, 0), 6, 35), (8, (0, 1, 0), 5, 1)])
    run(descriptor, out, x, a, c, error)
    assert (out == x[a, :, c]).all()
    c[1] = -6
    run(descriptor, out, x, a, c, error)
    assert error.tolist() == [2, -6]


@pytest.mark.parametrize("shape, dim", [((4, 100), 1), ((100, 4), 0), ((100, 40), 0), ((5, 3, 9), 1), ((200_000,), 0)])
@pytest.mark.parametrize("op", index.PUTS)
def test_puts(rng, error, op, shape, dim):
    target, source = rng.standard_normal(shape, np.float32), rng.standard_normal(shape, np.float32)
    at = np.argsort(rng.random(shape), axis=dim).copy() if op == "set" else rng.integers(0, shape[dim], shape)
    own = steps(target)
    stride, own[dim] = own[dim], 0
    place = list(np.indices(shape))
    place[dim] = at
    expected = target.copy()
    if op == "set":
        expected[tuple(place)] = source
    else:
        {"add": np.add, "mul": np.multiply, "amin": np.minimum, "amax": np.maximum}[op].at(expected, tuple(place), source)
    run(index.build_indexed(op, F32, shape, own, steps(source), [(8, steps(at), shape[dim], stride)], wrap=False), target, source, at, error)
    np.testing.assert_allclose(target, expected, rtol=1e-4, atol=1e-5)
    assert not error.any()


@pytest.mark.parametrize("op", index.PUTS)
def test_puts_of_one_element_into_rows(rng, error, op):
    target, source, at = rng.standard_normal((30, 100), np.float32), rng.standard_normal((20, 1), np.float32), rng.permutation(30)[:20].copy()
    expected = target.copy()
    if op == "set":
        expected[at] = source
    else:
        {"add": np.add, "mul": np.multiply, "amin": np.minimum, "amax": np.maximum}[op].at(expected, at, np.broadcast_to(source, (20, 100)))
    run(index.build_indexed(op, F32, (20, 100), (0, 1), (1, 0), [(8, (1, 0), 30, 100)], wrap=False), target, source, at, error)
    assert (target == expected).all() and not error.any()


def test_out_of_range_writes_nothing(error):
    target, source, at = np.zeros(4, np.float32), np.ones(3, np.float32), np.array([0, 4, -1])
    run(index.build_indexed("set", F32, (3,), (0,), (1,), [(8, (1,), 4, 1)], wrap=False), target, source, at, error)
    assert error.tolist() == [1, 4] and target.tolist() == [1, 0, 0, 0]
    for extent, wrap, expected in [(5, True, [0, 0]), (5, False, [1, -1]), (4, True, [1, 4])]:
        error[:] = 0
        run(index.build_check(8, (3,), (1,), extent, wrap=wrap), at, error)
        assert error.tolist() == expected


@pytest.mark.parametrize("shape", [(7,), (200_000,), (5, 6, 7), (300, 400), ()])
def test_masks(rng, shape):
    mask = np.asarray(rng.random(shape) < 0.3)
    parts = index.mask_parts(mask.size)
    for dtype, values in (BOOL, mask), (F32, np.asarray(np.where(mask, -1.5, -0.0), np.float32)):
        counts = np.zeros(parts, np.int64)
        run(index.build_count(dtype, shape, steps(values), parts), values, counts)
        assert counts.sum() == mask.sum()
        starts = np.concatenate([[0], np.cumsum(counts)])
        if shape:
            out = np.full((starts[-1], len(shape)), -7)
            run(index.build_nonzero(dtype, shape, steps(values), parts, len(shape), 1), out, values, starts)
            assert (out == np.argwhere(mask)).all()
    x, packed = np.asarray(rng.standard_normal(shape, np.float32)), np.zeros(starts[-1], np.float32)
    run(index.build_compress("get", F32, shape, steps(x), steps(mask), parts), packed, x, mask, starts)
    assert (packed == x[mask]).all()
    expected = np.where(mask, x + 1, x)
    run(index.build_compress("set", F32, shape, steps(x), steps(mask), parts), packed + np.float32(1), x, mask, starts)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("shape, order", [((3, 4, 5), (2, 0, 1)), ((64, 65, 66), (0, 2, 1)), ((400, 300), (1, 0)), ((2, 33, 3, 40), (0, 3, 2, 1)), ((), ())])
@pytest.mark.parametrize("kind", ["i1", "f4", "f8"])
def test_copies(rng, shape, order, kind):
    x = np.asarray(rng.integers(0, 100, shape).astype(kind))
    view = x.transpose(order)
    out, back = np.zeros(view.shape, kind), np.zeros(shape, kind)
    run(index.build_copy(x.itemsize, view.shape, steps(out), steps(view)), out, x)
    assert (out == view).all()
    run(index.build_copy(x.itemsize, view.shape, steps(back.transpose(order)), steps(out)), back, out)
    assert (back == x).all()


@pytest.mark.parametrize("offset", [0, 4, 36])
@pytest.mark.parametrize("shape, order", [((5, 3000), (0, 1)), ((6, 7, 64), (1, 0, 2)), ((3, 700, 100), (1, 0, 2)), ((100_003,), (0,)), ((9, 333), (0, 1))])
def test_large_copies_past_the_caches(rng, shape, order, offset, monkeypatch):
    """Runs of any length and place, of which whole lines are streamed: everything is copied and nothing beside it written."""
    monkeypatch.setattr(index, "STREAM", 1)
    x = rng.integers(0, 100, shape).astype(np.float32)
    view = x.transpose(order)
    memory = np.full(x.nbytes + 256, 77, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    out = memory[start : start + x.nbytes].view(np.float32).reshape(view.shape)
    run(index.build_copy(4, view.shape, steps(out), steps(view)), out, x)
    assert (out == view).all() and (memory[:start] == 77).all() and (memory[start + x.nbytes :] == 77).all()
    wide = np.zeros((*view.shape[:-1], view.shape[-1] + 3), np.float32)
    run(index.build_copy(4, view.shape, steps(wide), steps(view)), wide[..., 2:], x)
    assert (wide[..., 2:-1] == view).all() and not wide[..., :2].any() and not wide[..., -1].any()


def test_long_rows_by_index_past_the_caches(rng, error, monkeypatch):
    monkeypatch.setattr(index, "STREAM", 1)
    table, at = rng.standard_normal((40, 1030), np.float32), rng.integers(-40, 40, 90)
    out = np.zeros((90, 1030), np.float32)
    descriptor = index.build_indexed("get", F32, out.shape, steps(out), (0, 1), [(8, (1, 0), 40, 1030)])
    run(descriptor, out, table, at, error)
    assert (out == table[at]).all() and not error.any()
    at[3] = 40
    run(descriptor, out, table, at, error)
    assert error.tolist() == [1, 40]


@pytest.mark.parametrize("shape", [(64, 64), (128, 320), (1040, 48), (3, 96, 208)])
@pytest.mark.parametrize("kind", ["u1", "i2", "f4", "f8"])
def test_transposing_copies_past_the_caches(rng, shape, kind, monkeypatch):
    monkeypatch.setattr(index, "STREAM", 1)
    x = rng.integers(0, 100, shape).astype(kind)
    view = x.swapaxes(-1, -2)
    plan = index.build_copy(x.itemsize, view.shape, steps(np.ascontiguousarray(view)), steps(view), result_bytes=x.nbytes)
    result = native.launch_new(plan, x.ctypes.data)
    assert (np.frombuffer(result, kind).reshape(view.shape) == view).all()
