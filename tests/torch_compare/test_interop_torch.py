"""Memory shared with PyTorch through DLPack and NumPy, and Python's protocols on tensors beside PyTorch's."""

from __future__ import annotations

import copy
import gc
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import strided

DTYPES = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool uint16 uint32 uint64".split()


@pytest.mark.parametrize("name", [*DTYPES, "float8_e4m3fn", "float8_e5m2"])
def test_one_memory_both_ways(name):
    raw = torch.arange(48, dtype=torch.uint8).view(getattr(torch, name)) if name != "bool" else torch.arange(6) % 2 == 0
    ours = strided.from_dlpack(raw)
    assert str(ours.dtype) == str(raw.dtype) and ours.data_ptr() == raw.data_ptr() and tuple(ours.shape) == tuple(raw.shape)
    back = torch.from_dlpack(ours)
    assert back.dtype is raw.dtype and back.data_ptr() == raw.data_ptr()
    assert torch.utils.dlpack.from_dlpack(ours.__dlpack__()).data_ptr() == raw.data_ptr()
    assert strided.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(raw)).data_ptr() == raw.data_ptr()


def test_layouts_cross_the_border():
    x = strided.arange(24.0).reshape(2, 3, 4)
    for view in (x.permute(2, 0, 1), x[:, 1:, ::2], x[:, :, 1], x[1, 2, 3], x[:0], x.expand(5, 2, 3, 4), x[:, None]):
        y = torch.from_dlpack(view)
        assert tuple(y.shape) == tuple(view.shape) and y.tolist() == view.tolist()
        assert y.stride() == view.stride() or view.numel() == 0
        z = strided.from_dlpack(y)
        assert z.tolist() == view.tolist()
    torch.from_dlpack(x.permute(2, 0, 1))[3, 1, 2] = -1
    assert x[1, 2, 3] == -1


def test_neither_side_frees_too_early_or_never():
    gc.collect()
    before = strided.memory_allocated()
    for _ in range(3):
        x = strided.ones(50_000)
        y = torch.from_dlpack(x)
        z = strided.from_dlpack(y)[10:]
        del x, y
        assert z.sum() == 49_990 and strided.memory_allocated() >= before + 200_000
        del z
        assert strided.memory_allocated() < before + 1000
        t = torch.ones(50_000)
        u = strided.from_dlpack(t)
        del t
        gc.collect()
        assert u.sum() == 50_000


def test_refusals_have_pytorchs_type_and_words():
    for call in (lambda m: m.ones(2, requires_grad=True).__dlpack__(), lambda m: np.asarray(m.ones(2, requires_grad=True)),
                 lambda m: m.ones(2).__dlpack__(stream="x"), lambda m: copy.deepcopy(m.ones(2, requires_grad=True) * 2)):  # fmt: skip
        with pytest.raises(Exception) as theirs:
            call(torch)
        with pytest.raises(Exception) as ours:
            call(strided)
        assert type(ours.value) is type(theirs.value) and str(ours.value).split("\n")[0][:40] == str(theirs.value).split("\n")[0][:40]


@pytest.mark.filterwarnings("ignore:__array_wrap__")
@pytest.mark.filterwarnings("ignore:__array__")
def test_numpy_functions_on_tensors():
    calls = [np.sin, np.exp, np.sqrt, np.abs, np.isnan, lambda t: np.add(t, 1), lambda t: np.greater(t, 0), lambda t: np.multiply(t, np.float32(2)), lambda t: np.maximum(t, 0.5),
             np.cumsum, np.asarray, np.array, lambda t: np.stack([t, t]), np.linalg.norm, lambda t: np.dot(t, t), lambda t: np.where(t > 0, t, 0)]  # fmt: skip
    for call in calls:
        theirs, ours = call(torch.tensor([0.5, 1.0, 4.0])), call(strided.tensor([0.5, 1.0, 4.0]))
        assert type(ours).__name__ == type(theirs).__name__
        assert str(ours.dtype) == str(theirs.dtype)
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def test_copies_and_pickles_keep_what_pytorchs_keep():
    def facts(m):
        x = m.arange(10.0)
        leaf = m.ones(2, requires_grad=True)
        leaf.sum().backward()
        shared = pickle.loads(pickle.dumps(x[2:5]))
        result = pickle.loads(pickle.dumps(leaf * 2))
        deep = copy.deepcopy([x, x[3:]])
        deep[0][3] = -1
        return [
            copy.copy(x).data_ptr() == x.data_ptr(), copy.copy(leaf).requires_grad, copy.copy(leaf).grad is None, shared.storage_offset(), shared.untyped_storage().nbytes(),
            result.is_leaf, result.requires_grad, deep[1][0].item(), copy.deepcopy(leaf).grad.tolist(), pickle.loads(pickle.dumps(leaf)).grad is None,
            pickle.loads(pickle.dumps(m.nn.Parameter(m.ones(1)))).requires_grad, type(copy.deepcopy(m.nn.Parameter(m.ones(1)))).__name__,
        ]  # fmt: skip

    assert facts(strided) == facts(torch)
