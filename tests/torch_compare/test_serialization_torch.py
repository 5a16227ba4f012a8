"""Files that PyTorch saves and this package loads, and the other way round: the same objects, tensor for tensor."""

from __future__ import annotations

import io
from collections import OrderedDict

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import strided

DTYPES = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool uint16 uint32 uint64".split()
PAIRS = [(torch, strided), (strided, torch), (strided, strided)]
NAMES = ["torch-strided", "strided-torch", "strided-strided"]


def through(obj, source, target, **kwargs):
    file = io.BytesIO()
    source.save(obj, file, **{k: v for k, v in kwargs.items() if k.startswith("_") or k == "pickle_protocol"})
    file.seek(0)
    return target.load(file, **{k: v for k, v in kwargs.items() if k in ("map_location", "weights_only")})


def described(value):
    """A value with its tensors as what makes them up, so that both libraries' can be compared."""
    if isinstance(value, (torch.Tensor, strided.Tensor)):
        facts = [type(value).__name__, str(value.dtype), tuple(value.shape), tuple(value.stride()), value.storage_offset(), value.requires_grad, value.device.type]
        return [*facts, None if value.device.type == "meta" else bytes(value.detach().contiguous().reshape(-1).untyped_storage().tolist())[: value.numel() * value.element_size()]]
    if isinstance(value, dict):
        return type(value).__name__, [(key, described(item)) for key, item in value.items()], described(getattr(value, "_metadata", None))
    if isinstance(value, (list, tuple)) and not type(value).__name__ == "Size":
        return type(value).__name__, [described(item) for item in value]
    return str(type(value).__name__), str(value)


def contents(m):
    """One of everything, made in the same way in either library."""
    m.manual_seed(0)
    x = m.arange(24.0).reshape(4, 6)
    parameter = m.nn.Parameter(m.ones(3))
    net = m.nn.Sequential(m.nn.Linear(3, 4), m.nn.BatchNorm1d(4), m.nn.LayerNorm(4), m.nn.Linear(4, 1))
    optimizer = m.optim.Adam(net.parameters(), lr=0.1, amsgrad=True)
    net(m.linspace(-1, 1, 15).reshape(5, 3)).square().mean().backward()
    optimizer.step()
    sgd = m.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    sgd.step()
    return {
        "views": [x, x.t(), x[1:3, ::2], x[2], x.diagonal(), x[:0]], "dtypes": [m.arange(3).to(getattr(m, name)) for name in DTYPES], "parameter": parameter,
        "frozen": m.nn.Parameter(m.zeros(2), requires_grad=False), "leaf": m.ones(2, requires_grad=True), "result": m.ones(2, requires_grad=True) * 2,
        "state_dict": net.state_dict(), "optimizer": optimizer.state_dict(), "sgd": sgd.state_dict(), "size": x.shape, "dtype": m.bfloat16, "device": m.device("cpu"),
        "scalar": m.tensor(3.5), "empty": m.empty(0, 3), "meta": m.ones(2, 3, device="meta"), "expanded": m.ones(3, 1).expand(3, 4),
        "plain": [1, 2.5, "ü", b"ab\xff", None, True, (1, (2,)), OrderedDict(a=1), 10**30, -5, 70000, {"k": [{}]}], "shared": [parameter, parameter],
    }  # fmt: skip


@pytest.mark.parametrize("source, target", PAIRS, ids=NAMES)
@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_everything_travels(source, target, protocol):
    if target is torch and protocol == 3:
        pytest.skip("PyTorch loads protocol 2 safely, 3 only in part")
    saved = contents(source)
    found = through(saved, source, target, pickle_protocol=protocol)
    for key in saved:
        assert described(found[key]) == described(saved[key]), key
    assert found["shared"][0] is found["shared"][1]
    found["views"][0][1, 0] = 99
    assert found["views"][1][0, 1] == 99 and found["views"][2][0, 0] == 99


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "complex64", "complex128"])
def test_dtypes_that_are_stored_though_not_computed_in(name):
    x = torch.arange(4).to(torch.uint8).repeat(8).view(getattr(torch, name))
    y = through(x, torch, strided)
    assert str(y.dtype) == str(x.dtype) and y.shape == tuple(x.shape)
    back = through(y, strided, torch)
    assert back.dtype is x.dtype and torch.equal(back.view(torch.uint8), x.view(torch.uint8))


def test_legacy_files():
    saved = contents(torch)
    found = through(saved, torch, strided, _use_new_zipfile_serialization=False)
    for key in saved:
        assert described(found[key]) == described(saved[key]), key


def test_attributes_travel():
    for source, target in PAIRS:
        x, p = source.ones(2), source.nn.Parameter(source.ones(1))
        x.note, p.note = [1], "p"
        found = through([x, p], source, target)
        assert found[0].note == [1] and found[1].note == "p" and type(found[1]) is target.nn.Parameter


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages_travel():
    assert bytes(through(torch.tensor([1.0, 2.0]).untyped_storage(), torch, strided).tolist()) == np.float32([1, 2]).tobytes()
    assert bytes(through(strided.tensor([1.0, 2.0]).untyped_storage(), strided, torch).tolist()) == np.float32([1, 2]).tobytes()


def test_whole_modules_travel_between_those_who_allow_them():
    net = strided.nn.Sequential(strided.nn.Linear(3, 4), strided.nn.ReLU(), strided.nn.LayerNorm(4), strided.nn.Dropout(0.1), strided.nn.Embedding(5, 3)).eval()
    ours = [strided.nn.Sequential, strided.nn.Linear, strided.nn.ReLU, strided.nn.LayerNorm, strided.nn.Dropout, strided.nn.Embedding]
    theirs = through(net, strided, torch, weights_only=False)
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    wanted = net[:4](strided.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(theirs[:4](torch.from_numpy(x)).detach().numpy(), wanted, rtol=1e-5)
    with strided.serialization.safe_globals(ours):
        again = through(theirs, torch, strided)
    np.testing.assert_array_equal(again[:4](strided.from_numpy(x)).detach().numpy(), wanted)


def test_mapped_files(tmp_path):
    path = tmp_path / "model.pt"
    x = torch.randn(50, 7)
    torch.save({"x": x, "y": x[3:]}, path)
    found = strided.load(path, mmap=True)
    np.testing.assert_array_equal(found["x"].numpy(), x.numpy())
    strided.save({"x": strided.from_numpy(x.numpy())}, path)
    np.testing.assert_array_equal(torch.load(path, mmap=True)["x"].numpy(), x.numpy())


@pytest.mark.parametrize("bad", ["class", "system", "truncated", "garbage", "empty"])
def test_errors_have_pytorchs_type_and_begin_as_its_do(bad):
    class Stranger:
        pass

    Stranger.__qualname__ = "Stranger"
    globals()["Stranger"] = Stranger

    class Evil:
        def __reduce__(self):
            return __import__("os").system, ("true",)

    file = io.BytesIO()
    torch.save({"class": Stranger(), "system": Evil()}.get(bad, torch.ones(100)), file)
    data = {"truncated": file.getvalue()[:600], "empty": b""}.get(bad, file.getvalue())
    if bad == "garbage":
        data = b"PK\x03\x04" + bytes(200)
    with pytest.raises(Exception) as theirs:
        torch.load(io.BytesIO(data))
    with pytest.raises(Exception) as ours:
        strided.load(io.BytesIO(data))
    assert type(ours.value) is type(theirs.value)
    sentence = {
        "class": "Unsupported global: GLOBAL", "system": "Trying to load unsupported GLOBAL posix.system whose module posix is blocked.",
        "truncated": "PytorchStreamReader failed reading zip archive: ", "garbage": "PytorchStreamReader failed reading zip archive: ", "empty": "",
    }[bad]  # fmt: skip
    assert sentence in str(theirs.value) and sentence in str(ours.value)


def test_without_checksums():
    torch.serialization.set_crc32_options(False)
    try:
        file = io.BytesIO()
        torch.save(torch.arange(5.0), file)
    finally:
        torch.serialization.set_crc32_options(True)
    file.seek(0)
    assert strided.load(file).tolist() == [0, 1, 2, 3, 4]
