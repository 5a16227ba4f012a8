"""torch.save and torch.load: files of PyTorch's own, what is kept, what is refused, damaged files. Comparisons with PyTorch itself are in torch_compare."""

from __future__ import annotations

import argparse
import io
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import threading
import zipfile
from collections import Counter, OrderedDict

import numpy as np
import pytest

import strided as torch
from strided.io import plain
from strided.io.archive import ALIGNMENT, Reader, Writer
from strided.io.rebuild import rebuild_tensor_v2, typed, untyped
from strided.io.unpickler import check_key

GOLDEN = pathlib.Path(__file__).parent / "golden"
UnpicklingError = pickle.UnpicklingError


def round_trip(obj, **kwargs):
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return torch.load(file, **kwargs)


def archive(pickled, records=None, **more):
    """A file of torch.save's form around a pickle."""
    file = io.BytesIO()
    with Writer(file, "archive", **more) as writer:
        writer.add("data.pkl", pickled)
        for name, data in (records or {}).items():
            writer.add(name, data)
    file.seek(0)
    return file


def globals_call(module, name, argument=b")"):
    """A pickle that calls module.name with what `argument` pushes (an empty tuple)."""
    return b"\x80\x02c" + module + b"\n" + name + b"\n" + argument + b"R."


# ---- files that PyTorch wrote --------------------------------------------------------------


def test_a_file_of_pytorch_loads_whole():
    found = torch.load(GOLDEN / "checkpoint.pt")
    assert found["base"].tolist() == [[0, 1, 2], [3, 4, 5]]
    view = found["view"]
    assert view.shape == (2, 2) and view.stride() == (1, 3) and view.storage_offset() == 1 and view.tolist() == [[1, 4], [2, 5]]
    found["base"][0, 1] = 9
    assert view[0, 0] == 9  # one storage
    assert type(found["parameter"]) is torch.nn.Parameter and found["parameter"].requires_grad and found["parameter"].tolist() == [1.5, -2]
    assert type(found["tagged"]) is torch.nn.Parameter and not found["tagged"].requires_grad and found["tagged"].tag == "kept"
    for name, t in found["numbers"].items():
        assert t.dtype is getattr(torch, name) and t.tolist() == [1, 0, 1]
    assert found["requires"].requires_grad and found["requires"].is_leaf
    state = found["state_dict"]
    assert type(state) is OrderedDict and list(state) == ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    assert state._metadata == {"": {"version": 2}}
    assert type(found["size"]) is torch.Size and found["size"] == (2, 3)
    assert found["dtype"] is torch.bfloat16 and found["device"] == torch.device("cpu") and found["layout"] is torch.strided
    assert found["meta"].device.type == "meta" and found["meta"].shape == (2, 3)
    assert found["scalar"].item() == 2.5 and found["empty"].shape == (0, 4)
    assert bytes(found["storage"].tolist()) == struct.pack("<2f", 7, 8)
    assert found["plain"] == [1, -(2**40), 2.5, "ü", b"\x00\xff", None, True, (1, (2,)), {3}, 1j, OrderedDict(a=1), bytearray(b"xy"), 10**30]


def test_a_file_from_before_pytorch_1_6_loads():
    found = torch.load(GOLDEN / "checkpoint_legacy.pt")
    assert found["weight"].tolist() == [[0, 1], [2, 3]] and found["step"] == 3
    found["weight"][1, 0] = 7
    assert found["view"].tolist() == [7, 3]
    assert torch.load(GOLDEN / "checkpoint_legacy.pt", map_location="meta")["weight"].device.type == "meta"
    with pytest.raises(RuntimeError, match="mmap can only be used"):
        torch.load(GOLDEN / "checkpoint_legacy.pt", mmap=True)


@pytest.mark.parametrize("size", [0, 1, 20, 300, -1, -9, -40])
def test_a_truncated_legacy_file_is_an_error(size):
    whole = (GOLDEN / "checkpoint_legacy.pt").read_bytes()
    with pytest.raises((EOFError, RuntimeError, UnpicklingError)):
        torch.load(io.BytesIO(whole[:size]))


# ---- what is kept --------------------------------------------------------------------------


def test_views_share_their_storage_again_and_the_storage_is_whole():
    x = torch.arange(10.0)
    a, b, whole = round_trip([x[2:5], x[::3], x])
    whole[3] = -1
    assert a.tolist() == [2, -1, 4] and b.tolist() == [0, -1, 6, 9]
    assert a.storage_offset() == 2 and b.stride() == (3,)
    (alone,) = round_trip([x[2:5]])
    assert alone.untyped_storage().nbytes() == 40


@pytest.mark.parametrize("name", "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool uint16 uint32 uint64".split())
def test_every_dtype_and_layout(name):
    x = torch.arange(24).to(getattr(torch, name)).reshape(2, 3, 4).permute(2, 0, 1)[1:]
    y = round_trip(x)
    assert y.dtype is x.dtype and y.shape == x.shape and y.stride() == x.stride() and y.tolist() == x.tolist()


def test_training_state_goes_on_as_if_never_saved():
    def model():
        torch.manual_seed(3)
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
        return net, torch.optim.AdamW(net.parameters(), lr=0.05)

    def step(net, optimizer):
        loss = net(torch.linspace(-1, 1, 15).reshape(5, 3)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    net, optimizer = model()
    for _ in range(3):
        step(net, optimizer)
    saved = round_trip({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3})
    again, second = model()
    again.load_state_dict(saved["net"])
    second.load_state_dict(saved["optimizer"])
    for _ in range(3):
        assert step(net, optimizer) == step(again, second)


def test_attributes_subclasses_and_storages():
    x = torch.ones(2)
    x.note = ["mine"]
    y = round_trip(x)
    assert y.note == ["mine"] and y.tolist() == [1, 1]
    assert list(round_trip(torch.tensor([1.0, 2.0]).storage())) == [1, 2]

    class Named(torch.Tensor):
        pass

    Named.__module__, Named.__qualname__ = __name__, "Named"
    globals()["Named"] = Named
    file = io.BytesIO()
    torch.save(torch.ones(2).as_subclass(Named), file)
    file.seek(0)
    with pytest.raises(UnpicklingError, match="test_serialization.Named was not an allowed global"):
        torch.load(file)
    file.seek(0)
    with torch.serialization.safe_globals([Named]):
        assert type(torch.load(file)) is Named


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickle_protocols(protocol):
    value = {"t": torch.ones(2), "b": b"xy", "s": {1, 2}, "f": frozenset((1,)), "n": [None, True, -3, 2**70, 1.5], "c": Counter("aab"), "d": torch.float32, "e": b""}
    file = io.BytesIO()
    torch.save(value, file, pickle_protocol=protocol)
    file.seek(0)
    found = torch.load(file)
    assert found.pop("t").tolist() == [1, 1] and found == {k: v for k, v in value.items() if k != "t"}


def test_whole_modules_only_with_their_classes_allowed():
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    file = io.BytesIO()
    torch.save(net, file)
    for weights_only in (True, False):
        file.seek(0)
        with pytest.raises(UnpicklingError, match=r"GLOBAL torch.nn.modules.container.Sequential was not an allowed global by default.*add_safe_globals[\s\S]*never executes"):
            torch.load(file, weights_only=weights_only)
    file.seek(0)
    assert torch.serialization.get_unsafe_globals_in_checkpoint(file) == [
        "torch.nn.modules.activation.ReLU", "torch.nn.modules.container.Sequential", "torch.nn.modules.linear.Linear",
    ]  # fmt: skip
    file.seek(0)
    torch.serialization.add_safe_globals([torch.nn.Sequential, torch.nn.Linear, torch.nn.ReLU])
    try:
        again = torch.load(file)
    finally:
        torch.serialization.clear_safe_globals()
    x = torch.ones(3, 2)
    assert torch.equal(again(x), net(x)) and again[0].weight.requires_grad


def test_plain_data_beside_weights_needs_weights_only_false():
    data = {"args": argparse.Namespace(lr=0.1, path=pathlib.PurePosixPath("/a/b")), "best": np.float64(2.5), "curve": np.arange(6, dtype=np.int16).reshape(2, 3)}
    with pytest.raises(UnpicklingError, match="weights_only=False neither"):
        round_trip(data)
    found = round_trip(data, weights_only=False)
    assert found["args"].lr == 0.1 and found["args"].path.name == "b" and found["best"] == 2.5
    assert found["curve"].dtype == np.int16 and found["curve"].tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(UnpicklingError, match="arrays of numbers and text"):
        round_trip(np.array([None], object), weights_only=False)


@pytest.mark.parametrize("module", ["pathlib", "pathlib._local"])  # the second is how Python 3.13 writes them, on whatever version they are read
@pytest.mark.parametrize("name", ["Path", "PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath"])
def test_paths_of_every_python(module, name):
    assert plain.names()[f"{module}.{name}"]("a", "b").parts == ("a", "b")


def test_saving_is_whole_or_not_at_all(tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"a": torch.ones(2)}, path)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        torch.save({"a": torch.zeros(2), "b": lambda: 0}, path)
    assert os.listdir(tmp_path) == ["model.pt"] and torch.load(path)["a"].tolist() == [1, 1]
    link = tmp_path / "link.pt"
    link.symlink_to(path)
    torch.save({"a": torch.zeros(2)}, link)
    assert link.is_symlink() and torch.load(path)["a"].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="Parent directory .*nowhere does not exist"):
        torch.save(1, tmp_path / "nowhere" / "x.pt")
    with pytest.raises(AttributeError, match="'write'"):
        torch.save(1, 3)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        torch.save([x := torch.ones(4), x.view(torch.int32)], io.BytesIO())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    received = []
    reader = threading.Thread(target=lambda: received.append(path.read_bytes()))
    reader.start()
    torch.save(torch.ones(2), path)
    reader.join()
    assert path.is_fifo() and torch.load(io.BytesIO(received[0])).tolist() == [1, 1]


def test_mapped_files(tmp_path):
    path = tmp_path / "model.pt"
    x = torch.arange(1000.0)
    torch.save({"x": x, "y": x[5:], "e": torch.empty(0)}, path)
    found = torch.load(path, mmap=True)
    assert torch.equal(found["x"], x) and found["e"].numel() == 0
    found["x"][6] = -1
    assert found["y"][1] == -1 and torch.load(path)["x"][6] == 6  # private
    del found["x"]
    os.unlink(path)
    assert found["y"].sum() == x[5:].sum() - 7
    torch.save({"x": x}, path)
    with torch.serialization.set_default_mmap_options(__import__("mmap").MAP_SHARED):
        torch.load(path, mmap=True)["x"][0] = 42
    assert torch.load(path, mmap=True)["x"][0] == 42
    with pytest.raises(ValueError, match="must be a file path"):
        torch.load(io.BytesIO(path.read_bytes()), mmap=True)


def test_records_are_aligned_and_other_programs_read_the_archive(tmp_path):
    path = tmp_path / "model.pt"
    torch.save([torch.ones(3, dtype=torch.int8), torch.ones(5)], path)
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        assert {"model/data.pkl", "model/byteorder", "model/data/0", "model/data/1", "model/version"} <= set(file.namelist())
    with open(path, "rb") as file:
        reader = Reader(file, str(path))
        assert all(reader.place(name) % ALIGNMENT == 0 for name in reader.records)
    again = tmp_path / "again" / "model.pt"
    again.parent.mkdir()
    torch.save([torch.ones(3, dtype=torch.int8), torch.ones(5)], again)
    assert path.read_bytes() == again.read_bytes()  # equal contents, equal files


def test_large_archives_use_64_bit_fields():
    file = io.BytesIO()
    with Writer(file, "archive", limit=100) as writer:  # as if 100 bytes were what 32 bits can count
        for k in range(5):
            writer.add(f"data/{k}", bytes([k]) * (90 + 10 * k))
    with zipfile.ZipFile(file) as found:
        assert found.testzip() is None and [len(found.read(f"archive/data/{k}")) for k in range(5)] == [90, 100, 110, 120, 130]
    assert bytes(Reader(file, "f").read("data/4")) == b"\4" * 130


# ---- where storages go ---------------------------------------------------------------------


def test_map_location():
    file = io.BytesIO()
    torch.save(torch.arange(3.0), file)

    def load(**kwargs):
        file.seek(0)
        return torch.load(file, **kwargs)

    assert load(map_location="meta").device.type == "meta" and load(map_location=torch.device("meta")).shape == (3,)
    assert load(map_location={"cuda:0": "cpu"}).tolist() == [0, 1, 2] and load(map_location={"cpu": "meta"}).is_meta
    seen = []
    assert load(map_location=lambda storage, location: seen.append((storage.nbytes(), location))).tolist() == [0, 1, 2]
    assert seen == [(12, "cpu")]
    with pytest.raises(RuntimeError, match=r"Attempting to deserialize object on a CUDA device but torch.cuda.is_available\(\) is False.*map_location=torch.device\('cpu'\)"):
        load(map_location="cuda:0")
    with pytest.raises(RuntimeError, match="don't know how to restore data location"):
        load(map_location="toaster")
    with pytest.raises(TypeError, match="map_location"):
        load(map_location=3)


def on_device(location):
    pickled = (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000"
        + b"X" + len(location).to_bytes(4, "little") + location + b"K\x02tQK\x00K\x02\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR."
    )  # fmt: skip
    return archive(pickled, {"data/0": struct.pack("<2f", 1, 2)})


def test_a_file_saved_on_a_gpu():
    assert torch.load(on_device(b"cuda:0"), map_location="cpu").tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        torch.load(on_device(b"cuda:0"))
    assert torch.load(on_device(b"mps"), map_location={"mps": "cpu"}).tolist() == [1, 2]


# ---- what is refused -----------------------------------------------------------------------


class Evil:
    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


@pytest.mark.parametrize("weights_only", [True, False, None])
def test_a_malicious_pickle_is_refused_and_nothing_runs(tmp_path, weights_only):
    mark = tmp_path / "executed"
    cases = [
        (Evil(os.system, f"touch {mark}"), "posix.system whose module posix is blocked|nt.system"),
        (Evil(eval, f"open({str(mark)!r}, 'w')"), "GLOBAL eval was not an allowed global"),
        (Evil(subprocess.Popen, f"touch {mark}"), "subprocess.Popen was not an allowed global"),
        (Evil(getattr, torch.Size, "mro"), "GLOBAL getattr was not an allowed global"),
        (Evil(__import__, "antigravity"), "__import__ was not an allowed global"),
    ]
    for evil, message in cases:
        for protocol in (2, 4):
            with pytest.raises(UnpicklingError, match=message):
                torch.load(archive(pickle.dumps({"a": [evil]}, protocol)), weights_only=weights_only)
    assert not mark.exists() and "antigravity" not in sys.modules


@pytest.mark.parametrize(
    "pickled, message",
    [
        (b"\x80\x02ctorch\nfloat32\n}X\x04\x00\x00\x00nameX\x01\x00\x00\x00xsb.", "Can only build"),  # a dtype's state
        (b"\x80\x02ccollections\nOrderedDict\n}X\x04\x00\x00\x00evilK\x01sb.", "Can only build"),  # a class's attribute
        (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}X\x04\x00\x00\x00evilK\x01sb.", "Can only build"),  # a function's
        (b"\x80\x02ctorch\nTensor\n)\x81.", "Can only create new object"),
        (b"\x80\x02ctorch\nTensor\n)R.", "unrecognized function"),
        (b"\x80\x02ctorch\nFloatStorage\n)R.", "unrecognized function"),
        (b"\x80\x02ccollections\nOrderedDict\n)\x81.", "Can only create new object"),
        (b"\x80\x02K\x01)R.", "unrecognized function"),
        (b"\x80\x02ccollections\nOrderedDict\n]R.", "a call needs a tuple"),
        (b"\x80\x02X\x01\x00\x00\x00xQ.", "Only persistent_load of storage"),
        (b"\x80\x02(K\x01K\x02u.", "damaged|Can only SETITEMS"),
        (b"\x80\x02K\x05K\x01K\x02s.", "Can only SETITEMS"),
        (b"\x80\x02}K\x01a.", "Can only append to lists"),
        (b"\x80\x02]]s.", "damaged|Can only"),
        (b"\x80\x02h\x07.", "Memo value not found"),
        (b"\x80\x02R.", "damaged pickle"),
        (b"\x80\x02t.", "no mark"),
        (b"\x80\x02\x82\x01.", "Unsupported operand 130"),  # the extension registry
        (b"\x80\x02P1\n.", "Unsupported operand 80"),
        (b"\x80\x02ios\nsystem\n.", "Unsupported operand 105"),
        (globals_call(b"builtins", b"bytearray", b"\x8a\x05\x00\x00\x00\x00\x40\x85"), "bytearray is made from bytes"),
        (globals_call(b"_codecs", b"encode", b"X\x01\x00\x00\x00xX\x03\x00\x00\x00zip\x86"), "bytes are spelled"),
        (globals_call(b"torch._utils", b"_rebuild_parameter", b"K\x01\x88N\x87"), "rebuilt from a tensor"),
        (globals_call(b"torch._utils", b"_rebuild_tensor_v2", b"(K\x01K\x00)K\x01\x89Nt"), "typed storage"),
        (globals_call(b"torch._tensor", b"_rebuild_from_type_v2", b"(ctorch\nTensor\nctorch\nTensor\n)}t"), "unrecognized function"),
        (b"\x80\x02T\xff\xff\xff\xff.", "a length of -1"),
        (b"\x80\xff.", "unsupported pickle protocol"),
    ],
)
def test_every_door_is_guarded(pickled, message):
    with pytest.raises((UnpicklingError, EOFError), match=message):
        torch.load(archive(pickled))


def test_a_tensors_own_fields_cannot_be_set():
    class Hung(torch.Tensor):
        pass

    for name in ("ptr", "mem", "spec", "_node", "shape", "__class__"):
        x = torch.ones(2)
        file = io.BytesIO()
        x.note = 1
        torch.save(x, file)
        data = zipfile.ZipFile(file).read("archive/data.pkl").replace(b"X\x04\x00\x00\x00note", b"X" + len(name).to_bytes(4, "little") + name.encode())
        with pytest.raises(UnpicklingError, match="may not set the attribute"):
            torch.load(archive(data, {"data/0": bytes(8)}))


def test_keys_that_would_take_for_ever_to_hash():
    nested: tuple = ()
    for _ in range(60):
        nested = (nested, nested)
    with pytest.raises(UnpicklingError, match="a key of tuples"):
        check_key(nested)
    deep = b"\x80\x02})" + b"\x85" * 100_000 + b"K\x01s."
    with pytest.raises(UnpicklingError, match="a key of tuples nested more than 100 deep"):
        torch.load(archive(deep))
    assert torch.load(archive(b"\x80\x02})\x85\x85K\x01s.")) == {(((),),): 1}


def test_a_tensor_never_reaches_beyond_its_storage():
    storage = typed(untyped(torch.arange(6.0).mem, torch.device("cpu")), torch.float32)
    assert rebuild_tensor_v2(storage, 1, (2, 2), (3, 1), False, None).tolist() == [[1, 2], [4, 5]]
    for offset, size, stride in ((0, (7,), (1,)), (5, (2,), (1,)), (0, (2, 3), (4, 1)), (1, (2**40,), (2**40,)), (7, (), ())):
        with pytest.raises(UnpicklingError, match="out of bounds for storage of size 24|more elements than 64 bits"):
            rebuild_tensor_v2(storage, offset, size, stride, False, None)
    for offset, size, stride in ((-1, (1,), (1,)), (0, (-1,), (1,)), (0, (2,), (-1,)), (0, (1.5,), (1,)), (True, (1,), (1,)), (0, (1, 1), (1,)), (0, "ab", (1, 1))):
        with pytest.raises(UnpicklingError):
            rebuild_tensor_v2(storage, offset, size, stride, False, None)


def test_what_torch_has_and_strided_has_not():
    with pytest.raises(NotImplementedError, match="a sparse tensor: save it with .to_dense"):
        torch.load(archive(globals_call(b"torch._utils", b"_rebuild_sparse_tensor")))
    with pytest.raises(RuntimeError, match="TorchScript archives"):
        torch.load(archive(b"\x80\x02N.", {"constants.pkl": b""}))
    with pytest.raises(NotImplementedError, match="other byte order"):
        torch.load(archive(b"\x80\x02N.", {"byteorder": b"big" if sys.byteorder == "little" else b"little"}))
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        torch.load(io.BytesIO(b"x"), pickle_module=torch)
    with pytest.raises(RuntimeError, match="safetensors file"):
        torch.load(io.BytesIO((8).to_bytes(8, "little") + b"{}      "))


# ---- damaged files -------------------------------------------------------------------------


def whole_file():
    file = io.BytesIO()
    torch.save({"a": torch.arange(64.0), "b": torch.ones(3)}, file)
    return file.getvalue()


def test_truncated_files_say_what_is_wrong(tmp_path):
    whole = whole_file()
    for size in (0, 3, 30, 200, len(whole) // 2, len(whole) - 1):
        path = tmp_path / "cut.pt"
        path.write_bytes(whole[:size])
        with pytest.raises((RuntimeError, EOFError, UnpicklingError), match="cut.pt"):
            torch.load(path)
    with pytest.raises(RuntimeError, match=f"failed finding central directory.*the file has {len(whole) // 2:,} bytes[\\s\\S]*truncated or damaged"):
        torch.load(io.BytesIO(whole[: len(whole) // 2]))
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "none.pt")


def test_every_changed_byte_is_found_or_harmless():
    whole = whole_file()
    for place in range(0, len(whole), 7):
        changed = bytearray(whole)
        changed[place] ^= 0x55
        try:
            found = torch.load(io.BytesIO(bytes(changed)))
        except (RuntimeError, EOFError, UnpicklingError, NotImplementedError, ValueError):
            continue
        assert found["a"].tolist() == list(range(64)) and found["b"].tolist() == [1, 1, 1], place


def test_storages_must_fit_their_records():
    with pytest.raises(RuntimeError, match="the pickle needs a storage of 8 bytes, the record has 4"):
        file = on_device(b"cpu")
        data = zipfile.ZipFile(file).read("archive/data.pkl")
        torch.load(archive(data, {"data/0": bytes(4)}))
    with pytest.raises(RuntimeError, match="file not found"):
        torch.load(archive(data, {}))
    with pytest.raises(RuntimeError, match="no data.pkl among its 1 records"):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as other:
            other.writestr("hello/there", b"x")
        file.seek(0)
        torch.load(file)


def test_without_checksums(tmp_path):
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(torch.ones(3), tmp_path / "x.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    assert torch.serialization.get_crc32_options() and torch.load(tmp_path / "x.pt").tolist() == [1, 1, 1]


def test_files_that_cannot_seek():
    class Stream:
        def read(self, n=-1):
            return b""

    with pytest.raises(AttributeError, match="only torch.load from a file that is seekable"):
        torch.load(Stream())


def test_the_inspector_does_not_load_tensors():
    code = "import strided.io, strided.io.header, sys; sys.exit('strided.io.serialization' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
