"""Tensors and other libraries: NumPy's protocols, DLPack, the array API namespace, einops under the alias; pickles, copies, shared memory."""

from __future__ import annotations

import copy
import gc
import inspect
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import strided as torch
from strided import array_api as xp
from strided.ops import dlpack

# ---- NumPy ---------------------------------------------------------------------------------


def test_asarray_is_the_same_memory():
    x = torch.arange(12.0).reshape(3, 4)
    a = np.asarray(x.t())
    assert a.shape == (4, 3) and a.strides == (4, 16) and np.shares_memory(a, np.asarray(x))
    a[1, 2] = 50
    assert x[2, 1] == 50
    assert np.asarray(x, dtype="f8").dtype == np.float64 and not np.shares_memory(np.array(x), np.asarray(x))
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        x.__array__("f8", copy=False)
    assert not np.shares_memory(x.__array__(copy=True), np.asarray(x))
    del x
    gc.collect()
    assert a[0, 0] == 0  # the array keeps the memory


def test_array_interface_only_where_it_is_exact():
    x = torch.arange(6, dtype=torch.int16).reshape(2, 3)[:, 1:]
    interface = x.__array_interface__
    assert interface["typestr"] == "<i2" and interface["shape"] == (2, 2) and interface["strides"] == (6, 2) and interface["data"] == (x.data_ptr(), False)
    for y in (torch.ones(2, requires_grad=True), torch.ones(2, dtype=torch.bfloat16), torch.ones(2, device="meta")):
        assert not hasattr(y, "__array_interface__")
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        np.asarray(torch.ones(2, requires_grad=True))
    array = np.asarray(torch.ones(2, dtype=torch.bfloat16))  # PyTorch refuses: NumPy itself has no such type
    assert array.dtype.name == "bfloat16" and array.tolist() == [1.0, 1.0]


def test_numpy_functions_give_tensors():
    x = torch.tensor([0.0, 1.0])
    assert isinstance(np.exp(x), torch.Tensor) and np.exp(x).tolist() == pytest.approx([1, np.e])
    assert np.greater(x, 0).dtype is torch.uint8 and np.add(x, 1).tolist() == [1, 2]
    assert np.concatenate([x, x]).tolist() == [0, 1, 0, 1] and np.linalg.norm(x) == 1


# ---- DLPack --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", "bool uint8 int8 int16 int32 int64 float16 float32 float64 uint16 uint32 uint64".split())
def test_dlpack_with_numpy_both_ways(name):
    x = torch.tensor([[1, 0, 1], [0, 1, 1]]).to(getattr(torch, name)).t()
    a = np.from_dlpack(x)
    assert a.dtype == name and a.shape == (3, 2) and a.strides == (x.element_size(), 3 * x.element_size()) and a.tolist() == x.tolist()
    back = torch.from_dlpack(a)
    assert back.dtype is x.dtype and back.stride() == (1, 3) and back.data_ptr() == x.data_ptr()
    x[0, 0] = 0
    assert a[0, 0] == 0 and back[0, 0] == 0


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("version", [None, (1, 0)])
def test_dlpack_formats_without_a_numpy_dtype(name, version):
    x = torch.zeros(3, dtype=torch.uint8 if name.startswith("float8") else torch.int16).view(getattr(torch, name))
    y = torch.from_dlpack(x.__dlpack__(max_version=version))
    assert y.dtype is x.dtype and y.data_ptr() == x.data_ptr() and y.shape == (3,)


def test_dlpack_capsules():
    x = torch.arange(3.0)
    plain, versioned = x.__dlpack__(), x.__dlpack__(max_version=(1, 0))
    assert '"dltensor"' in repr(plain) and '"dltensor_versioned"' in repr(versioned) and x.__dlpack_device__() == (1, 0)
    y = torch.from_dlpack(plain)
    with pytest.raises(RuntimeError, match="can be consumed only once"):
        torch.from_dlpack(plain)
    with pytest.raises(RuntimeError, match="invalid capsule"):
        torch.from_dlpack(3)
    z = torch.from_dlpack(versioned)
    y[1] = 7
    assert x[1] == 7 and z[1] == 7
    assert torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)).tolist() == [0, 7, 2]
    managed = dlpack._Versioned.from_address(dlpack._python.PyCapsule_GetPointer(x.__dlpack__(max_version=(1, 0), copy=True), b"dltensor_versioned"))
    assert managed.flags == dlpack.IS_COPIED


def test_dlpack_lifetimes():
    gc.collect()
    before = torch.memory_allocated()
    for consume in (True, False):
        for version in (None, (1, 0)):
            x = torch.zeros(100_000)
            capsule = x.__dlpack__(max_version=version)
            del x
            assert torch.memory_allocated() >= before + 400_000  # the capsule keeps it
            if consume:
                y = torch.from_dlpack(capsule)
                del capsule
                assert y.sum() == 0 and torch.memory_allocated() >= before + 400_000
                part = y[5:10]
                del y
                assert part.tolist() == [0] * 5
                del part
            else:
                del capsule
            assert torch.memory_allocated() < before + 1000
    x = torch.zeros(100_000)
    a = np.from_dlpack(x)
    del x
    assert a[7] == 0 and torch.memory_allocated() >= before + 400_000
    del a
    assert torch.memory_allocated() < before + 1000


def test_dlpack_borrowed_memory_goes_back_to_its_owner():
    freed = []

    class Owner(np.ndarray):
        def __del__(self):
            freed.append(True)

    a = np.arange(4.0).view(Owner)
    t = torch.from_dlpack(a)
    part = t[1:]
    del a, t
    gc.collect()
    assert not freed and part.tolist() == [1, 2, 3]
    del part
    gc.collect()
    assert freed


def test_dlpack_refusals():
    with pytest.raises(BufferError, match="Can't export tensors that require gradient, use tensor.detach"):
        torch.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="meta"):
        torch.ones(2, device="meta").__dlpack__()
    with pytest.raises(BufferError, match="live on the CPU"):
        torch.ones(2).__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="negative"):
        torch.from_dlpack(np.arange(3.0)[::-1])
    locked = np.arange(3.0)
    locked.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        assert torch.from_dlpack(locked).tolist() == [0, 1, 2]
    copied = torch.from_dlpack(locked, copy=True)
    copied[0] = 9
    assert locked[0] == 0

    class Elsewhere:
        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, **kwargs):
            raise BufferError("no host memory")

    with pytest.raises(ValueError, match="without copying"):
        torch.from_dlpack(Elsewhere(), copy=False)
    with pytest.raises(BufferError, match="no host memory"):
        torch.from_dlpack(Elsewhere())


def test_dlpack_with_producers_of_older_standards():
    class Old:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, stream=None):
            return self.tensor.__dlpack__()

    x = torch.arange(3.0)
    shared, copied = torch.from_dlpack(Old(x)), torch.from_dlpack(Old(x), copy=True)
    x[0] = 5
    assert shared[0] == 5 and copied[0] == 0


def test_lent_memory_at_the_end_of_the_interpreter():
    code = "import numpy, strided, sys; sys.keep = [numpy.from_dlpack(strided.ones(5)), strided.from_dlpack(numpy.ones(5)), strided.ones(3).__dlpack__()]"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- the array API -------------------------------------------------------------------------


def test_namespace():
    x = torch.ones(2)
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2024.12") is xp and xp.__array_api_version__ == "2025.12"
    with pytest.raises(ValueError, match="1999.01"):
        x.__array_namespace__(api_version="1999.01")
    info = xp.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] and info.default_device() == torch.device("cpu")
    assert info.default_dtypes()["real floating"] is torch.float32 and list(info.dtypes(kind="signed integer")) == ["int8", "int16", "int32", "int64"]
    for name in xp.__all__:
        assert hasattr(xp, name), name
    assert list(inspect.signature(xp.sum).parameters) == ["x", "axis", "dtype", "keepdims"]
    assert inspect.signature(xp.concat).parameters["axis"].kind is inspect.Parameter.KEYWORD_ONLY
    assert x.to_device("cpu") is x


def test_namespace_promotes_as_the_standard_says():
    assert xp.add(xp.ones(2, dtype=xp.int8), xp.asarray(1, dtype=xp.int16)).dtype is xp.int16  # dimensions play no part
    assert xp.result_type(xp.uint16, xp.int8) is xp.int32 and xp.result_type(xp.ones(1), 1.5) is xp.float32
    for pair in ((xp.uint64, xp.int8), (xp.int32, xp.float32), (xp.bool, xp.int8)):
        with pytest.raises(TypeError):
            xp.result_type(*pair)
    assert xp.can_cast(xp.int8, xp.int16) and xp.can_cast(xp.uint8, xp.int16) and not xp.can_cast(xp.int16, xp.int8) and not xp.can_cast(xp.int8, xp.float32)
    assert xp.isdtype(xp.float32, ("integral", "real floating")) and not xp.isdtype(xp.bool, "numeric")
    assert xp.finfo(xp.float32).dtype is xp.float32 and xp.finfo(xp.ones(1)).bits == 32 and xp.iinfo(xp.uint8).max == 255


def test_namespace_of_complex_arrays():
    z = xp.asarray([3 + 4j, 0j])
    assert z.dtype is xp.complex64 and xp.abs(z).tolist() == [5, 0] and xp.conj(z).tolist() == [3 - 4j, 0] and xp.sign(z).tolist() == pytest.approx([0.6 + 0.8j, 0])
    assert xp.real(z).tolist() == [3, 0] and xp.imag(z).tolist() == [4, 0] and xp.result_type(xp.complex64, xp.float64) is xp.complex128
    assert list(xp.__array_namespace_info__().dtypes(kind="complex floating")) == ["complex64", "complex128"]
    assert xp.vecdot(z, xp.asarray([1j, 1])).item() == 4 + 3j and xp.linalg.vector_norm(z).item() == 5
    assert xp.fft.fft(xp.asarray([1.0, 0, 0, 0])).tolist() == [1, 1, 1, 1] and xp.fft.irfftn(xp.fft.rfftn(xp.ones((2, 3))), s=(2, 3)).shape == (2, 3)
    assert xp.fft.fftfreq(4, d=0.5).tolist() == [0, 0.5, -1, -0.5] and xp.fft.fftshift(xp.arange(4), axes=0).tolist() == [2, 3, 0, 1]
    found = xp.linalg.eig(xp.asarray([[0.0, 1.0], [-1.0, 0.0]]))
    assert sorted(found.eigenvalues.imag.tolist()) == pytest.approx([-1, 1]) and xp.linalg.eigvals(xp.eye(2)).tolist() == [1, 1]


def test_namespace_of_2025():
    assert xp.broadcast_shapes((2, 1), (3,)) == (2, 3) and xp.broadcast_shapes() == ()
    with pytest.raises(ValueError):
        xp.broadcast_shapes((2,), (3,))
    assert xp.isin(xp.asarray([1, 2, 3]), xp.asarray([2])).tolist() == [False, True, False] and xp.isin(xp.asarray([1, 2]), 2, invert=True).tolist() == [True, False]
    x = xp.ones((2, 3))
    assert xp.expand_dims(x, (0, -1)).shape == (1, 2, 3, 1) and xp.expand_dims(x, -1).shape == (2, 3, 1)
    for axis, kind in (((0, 0), ValueError), ((5,), IndexError)):
        with pytest.raises(kind):
            xp.expand_dims(x, axis)
    assert xp.searchsorted(xp.asarray([1.0, 2.0]), 1.5).item() == 1
    assert type(xp.meshgrid(x[0])) is type(xp.broadcast_arrays(x)) is type(xp.__array_namespace_info__().devices()) is tuple


def test_namespace_values():
    x = xp.asarray([[3.0, 1.0], [2.0, 1.0]])
    assert xp.sum(x, axis=(0, 1)).item() == 7 and xp.max(x, axis=0, keepdims=True).tolist() == [[3, 1]] and xp.sum(xp.asarray([200, 200], dtype=xp.uint8)).item() == 400
    assert xp.var(x, axis=0, correction=1).tolist() == [0.5, 0]
    found = xp.unique_all(x)
    assert found.values.tolist() == [1, 2, 3] and found.counts.tolist() == [2, 1, 1] and found.indices.tolist() == [1, 2, 0] and found.inverse_indices.tolist() == [[2, 0], [1, 0]]
    assert xp.unique_values(xp.asarray([xp.nan, xp.nan])).shape == (2,)
    assert xp.permute_dims(x, (1, 0)).tolist() == [[3, 2], [1, 1]] and xp.matrix_transpose(x).stride() == (1, 2)
    assert xp.vecdot(x, x).tolist() == [10, 5] and xp.linalg.outer(x[0], x[1]).tolist() == [[6, 3], [2, 1]]
    assert xp.concat([x, xp.ones((1, 2))], axis=None).shape == (6,) and xp.roll(x, (1, 0), axis=(0, 1)).tolist() == [[2, 1], [3, 1]]
    assert [part.tolist() for part in xp.unstack(x, axis=1)] == [[3, 2], [1, 1]]
    assert xp.cumulative_sum(xp.asarray([1, 2]), include_initial=True).tolist() == [0, 1, 3]
    assert xp.argmax(x).item() == 0 and xp.argsort(x[:, 0], descending=True).tolist() == [0, 1] and xp.sort(x, axis=0).tolist() == [[2, 1], [3, 1]]
    assert xp.linspace(0, 1, 4, endpoint=False).tolist() == [0, 0.25, 0.5, 0.75] and xp.arange(3, 0).shape == (0,) and xp.eye(2, 3, k=1).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert xp.take(x, xp.asarray([-1, 0]), axis=1).tolist() == [[1, 3], [1, 2]] and xp.take_along_axis(x, xp.asarray([[0], [1]]), axis=1).tolist() == [[3], [1]]
    assert xp.bitwise_left_shift(xp.asarray([1], dtype=xp.int8), xp.asarray([9], dtype=xp.int8)).item() == 0
    assert xp.clip(xp.asarray([-1, 5, 300]), 0, 255).tolist() == [0, 5, 255] and xp.floor_divide(xp.asarray(xp.inf), 2.0).item() == xp.inf
    assert xp.meshgrid(xp.asarray([1, 2]), xp.asarray([3]))[0].tolist() == [[1, 2]] and xp.reshape(x, (4,), copy=False).data_ptr() == x.data_ptr()
    with pytest.raises(ValueError):
        xp.squeeze(x, 0)
    with pytest.raises(ValueError):
        xp.reshape(x.t(), (4,), copy=False)
    with pytest.raises(ValueError):
        xp.nonzero(xp.asarray(1))


# ---- pickles and copies --------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_keeps_views_of_one_storage_together(protocol):
    x = torch.arange(10.0)
    x.note = "mine"
    a, b = pickle.loads(pickle.dumps([x, x[2:8:3]], protocol))
    a[2] = 50
    assert b.tolist() == [50, 5] and b.storage_offset() == 2 and b.stride() == (3,) and a.note == "mine"


def test_pickle_of_every_kind():
    for x in (torch.ones(2, requires_grad=True), torch.zeros(0, 3), torch.tensor(3), torch.ones(2, 3, dtype=torch.bfloat16).t(), torch.ones(2).to("meta")):
        y = pickle.loads(pickle.dumps(x))
        assert y.shape == x.shape and y.stride() == x.stride() and y.dtype is x.dtype and y.device == x.device and y.requires_grad == x.requires_grad
        assert x.is_meta or y.tolist() == x.tolist()
    made = pickle.loads(pickle.dumps(torch.ones(2, requires_grad=True) * 2))
    assert made.is_leaf and made.requires_grad and made.tolist() == [2, 2]  # as PyTorch: a leaf of its own
    p = pickle.loads(pickle.dumps(torch.nn.Parameter(torch.ones(2))))
    assert type(p) is torch.nn.Parameter and p.requires_grad
    g = torch.Generator().manual_seed(5)
    torch.rand(3, generator=g)
    h = pickle.loads(pickle.dumps(g))
    assert torch.equal(torch.rand(4, generator=g), torch.rand(4, generator=h))
    net = torch.nn.Linear(2, 2)
    assert torch.equal(pickle.loads(pickle.dumps(net)).weight, net.weight)


def test_copy_shares_and_deepcopy_does_not():
    x = torch.arange(3.0)
    shallow = copy.copy(x)
    assert shallow is not x and shallow.data_ptr() == x.data_ptr()
    one, two = copy.deepcopy([x, x[1:]])
    one[1] = 9
    assert two[0] == 9 and x[1] == 1
    leaf = torch.ones(2, requires_grad=True)
    leaf.sum().backward()
    again = copy.deepcopy(leaf)
    assert again.requires_grad and again.grad.tolist() == [1, 1] and again.grad is not leaf.grad
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(leaf * 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_share_memory():
    x = torch.zeros(4)
    assert not x.is_shared() and x.share_memory_() is x and x.is_shared() and x.share_memory_() is x
    view = x[1:]
    child = os.fork()
    if child == 0:
        x[1] = 42
        os._exit(0)
    os.waitpid(child, 0)
    assert x.tolist() == [0, 42, 0, 0] and view[0] == 42
    y = torch.zeros(4)
    part = y[1:]
    with pytest.raises(NotImplementedError, match="hold this tensor's storage"):
        y.share_memory_()
    assert part.tolist() == [0, 0, 0]


# ---- einops --------------------------------------------------------------------------------


def test_einops_under_the_alias():
    pytest.importorskip("einops")
    code = """
import strided.torch_alias as alias; alias.install()
import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack, parse_shape, asnumpy
from einops.layers.torch import EinMix, Rearrange, Reduce
assert torch.__name__ == "strided"
x = torch.arange(24.).reshape(2, 3, 4)
assert torch.equal(rearrange(x, "a b c -> b (c a)"), x.permute(1, 2, 0).reshape(3, 8))
assert torch.equal(rearrange(x, "a (b d) c -> d a b c", d=3), x.reshape(2, 1, 3, 4).permute(2, 0, 1, 3))
assert rearrange([x, x], "n a b c -> a n b c").shape == (2, 2, 3, 4)
for name in ("min", "max", "sum", "mean", "prod"):
    wanted = {"min": x.amin((0, 1)), "max": x.amax((0, 1)), "sum": x.sum((0, 1)), "mean": x.mean((0, 1)), "prod": x.prod(0).prod(0)}[name]
    assert torch.allclose(reduce(x, "a b c -> c", name), wanted), name
assert reduce(x > 3, "a b c -> c", "all").tolist() == [False] * 4
assert torch.equal(repeat(x, "a b c -> a b (c r)", r=2), x.repeat_interleave(2, -1))
assert torch.allclose(einsum(x, x, "a b c, a d c -> b d"), torch.einsum("abc,adc->bd", x, x))
packed, shapes = pack([x, x[0]], "* c")
assert packed.shape == (9, 4) and [tuple(p.shape) for p in unpack(packed, shapes, "* c")] == [(2, 3, 4), (3, 4)]
assert parse_shape(x, "a b c") == dict(a=2, b=3, c=4) and asnumpy(x).shape == (2, 3, 4)
net = torch.nn.Sequential(Rearrange("a b c -> a (b c)"), torch.nn.Linear(12, 2), Reduce("a b -> a", "max"))
y = x.clone().requires_grad_()
net(y).sum().backward()
assert y.grad.shape == x.shape and len(list(net.parameters())) == 2
assert EinMix("a b c -> a b d", weight_shape="c d", bias_shape="d", c=4, d=5)(x).shape == (2, 3, 5)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_arrays_of_one_shape_and_other_bytes():
    import numpy as np

    for _ in range(2):  # what is found for one array is good for its kind only
        assert torch.from_numpy(np.arange(4, dtype="<i4")).tolist() == [0, 1, 2, 3]
        assert torch.from_numpy(np.arange(8, dtype="<i4")[::2]).stride() == (2,)
        with pytest.raises(ValueError, match="byte order"):
            torch.from_numpy(np.arange(4, dtype=">i4"))
        with pytest.raises(ValueError, match="negative"):
            torch.from_numpy(np.arange(4, dtype="<i4")[::-1])
        assert torch.from_numpy(np.arange(4, dtype="<f4")).dtype is torch.float32
