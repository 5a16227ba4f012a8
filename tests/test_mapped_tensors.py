"""Tensors from and to safetensors files: mapped in place, written whole. What headers may say is test_safetensors.py's."""

from __future__ import annotations

import gc
import json
import os

import pytest

import strided as torch
from strided.io.header import DTYPES
from strided.io.safetensors import SafetensorsError, load, load_checkpoint, load_file, load_model, safe_open, save, save_file, save_model
from support import safetensors_bytes


def entry(dtype, shape, start, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


@pytest.fixture
def two(tmp_path):
    path = tmp_path / "two.safetensors"
    save_file({"w": torch.arange(6.0).view(2, 3), "n": torch.tensor([1, -2], dtype=torch.int16)}, path, {"format": "pt"})
    return path


# ---- loading --------------------------------------------------------------------------------


def test_loaded_values_shapes_and_dtypes(two):
    tensors = load_file(two)
    assert list(tensors) == ["w", "n"]  # in the order of the buffer: wider elements first
    assert tensors["w"].dtype == torch.float32 and tensors["w"].shape == (2, 3) and tensors["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tensors["n"].dtype == torch.int16 and tensors["n"].tolist() == [1, -2]


def test_tensors_point_into_the_mapping(two):
    tensors = load_file(two)
    assert tensors["n"].data_ptr() - tensors["w"].data_ptr() == 24  # neighbours in the file, neighbours in memory
    again = load_file(two)
    assert again["w"].data_ptr() != tensors["w"].data_ptr()


def test_the_mapping_outlives_all_but_its_last_tensor(two):
    w = load_file(two)["w"]
    view = w[1]
    del w
    gc.collect()
    assert view.tolist() == [3, 4, 5]


def test_writes_stay_in_the_process(two):
    before = two.read_bytes()
    w = load_file(two)["w"]
    w.add_(100)
    assert w.tolist()[0] == [100, 101, 102] and two.read_bytes() == before and load_file(two)["w"].tolist()[0] == [0, 1, 2]


def test_saving_over_a_mapped_file_leaves_its_tensors_alone(two):
    w = load_file(two)["w"]
    save_file({"w": torch.zeros(5000)}, two)
    assert w.tolist() == [[0, 1, 2], [3, 4, 5]] and load_file(two)["w"].shape == (5000,)


def test_unaligned_tensors_are_copied(make_file):
    text = json.dumps({"f": entry("F32", [2], 0, 8)}) + " "  # whatever its length, one of two paddings puts the data at an odd address
    for padding in ("", " "):
        path = make_file(text + padding, bytes([0, 0, 128, 63, 0, 0, 0, 64]))
        tensor = load_file(path)["f"]
        assert tensor.tolist() == [1, 2] and tensor.data_ptr() % 4 == 0


def test_scalars_and_empty_tensors(make_file):
    path = make_file({"s": entry("F64", [], 0, 8), "e": entry("F32", [0, 3], 8, 8)}, bytes(8))
    tensors = load_file(path)
    assert tensors["s"].shape == () and tensors["s"].item() == 0 and tensors["e"].shape == (0, 3) and tensors["e"].tolist() == []


@pytest.mark.parametrize("tag", [tag for tag, (_, bits) in DTYPES.items() if bits >= 8])
def test_every_whole_byte_dtype_loads_and_saves(tag, make_file, tmp_path):
    name, bits = DTYPES[tag]
    data = bytes(at % 2 if tag == "BOOL" else at for at in range(3 * bits // 8))
    path = make_file({"t": entry(tag, [3], 0, len(data))}, data)
    tensor = load_file(path)["t"]
    assert tensor.dtype == getattr(torch, name) and tensor.shape == (3,)
    assert bytes(memoryview(tensor.mem)) == data
    save_file({"t": tensor}, tmp_path / "again.safetensors")
    with safe_open(tmp_path / "again.safetensors") as file:
        assert file.get_slice("t").get_dtype() == tag and file.get_bytes("t").tolist() == list(data)


def value_of(code: int) -> float:
    """A float6_e2m3fn: sign, two bits of exponent (bias 1), three of mantissa."""
    sign, exponent, mantissa = -1.0 if code & 32 else 1.0, code >> 3 & 3, code & 7
    return sign * (mantissa / 8 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 1))


def test_four_bits_load_as_pairs_and_six_bits_packed(make_file):
    path = make_file({"f4": entry("F4", [2, 4], 0, 4), "f6": entry("F6_E2M3", [4], 4, 7)}, bytes(range(7)))
    with safe_open(path) as file:
        pairs = file.get_tensor("f4")
        assert pairs.dtype == torch.float4_e2m1fn_x2 and pairs.shape == (2, 2)
        six = file.get_tensor("f6")
        assert six.dtype is torch.float6_e2m3fn and six.shape == (4,)
        codes = [int.from_bytes(bytes([4, 5, 6]), "little") >> 6 * k & 63 for k in range(4)]
        assert six.tolist() == [value_of(code) for code in codes]
        assert file.get_bytes("f6").tolist() == [4, 5, 6]


def test_meta_takes_shapes_only(two):
    w = load_file(two, device="meta")["w"]
    assert w.device.type == "meta" and w.shape == (2, 3)


def test_bytes_in_memory(two):
    tensors = load(two.read_bytes())
    assert tensors["w"].tolist() == [[0, 1, 2], [3, 4, 5]] and tensors["n"].tolist() == [1, -2]
    with pytest.raises(SafetensorsError, match="<bytes>: "):
        load(two.read_bytes()[:-1])


@pytest.mark.parametrize("cut", [0, 4, 8, 60, -1])
def test_truncated_files_are_refused(two, cut):
    two.write_bytes(two.read_bytes()[:cut])
    with pytest.raises(SafetensorsError, match="two.safetensors: "):
        load_file(two)


def test_missing_files_are_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_file(tmp_path / "none.safetensors")


def test_opening_lazily(two):
    with safe_open(str(two), framework="pt", device="cpu") as file:
        assert file.keys() == ["n", "w"] and file.offset_keys() == ["w", "n"] and file.metadata() == {"format": "pt"}
        part = file.get_slice("w")
        assert part.get_shape() == [2, 3] and part.get_dtype() == "F32" and part[:, 1:].tolist() == [[1, 2], [4, 5]]
        w = file.get_tensor("w")
        with pytest.raises(SafetensorsError, match="File does not contain tensor x"):
            file.get_tensor("x")
    assert w.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(SafetensorsError, match="framework 'np'"):
        safe_open(two, framework="np")
    with pytest.raises(SafetensorsError, match='unknown backend "?\'?tape'):
        safe_open(two, framework="pt", backend="tape")


def test_read_into_memory_of_its_own(two):
    """backend="pread": what another program does to the file afterwards is not seen."""
    with safe_open(two, framework="pt", backend="pread") as file, safe_open(two, framework="pt", backend="mmap") as mapped:
        w, n, seen = file.get_tensor("w"), file.get_slice("n")[1:], mapped.get_tensor("w")
        size = os.path.getsize(two)
        with open(two, "r+b") as writer:
            writer.seek(size - 28)
            writer.write(bytes(28))
    assert w.tolist() == [[0, 1, 2], [3, 4, 5]] and n.tolist() == [-2] and seen.shape == (2, 3)


def test_shards_load_as_one(tmp_path):
    save_file({"a": torch.ones(2)}, tmp_path / "m-1.safetensors")
    save_file({"b": torch.zeros(3)}, tmp_path / "m-2.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}}))
    tensors = load_checkpoint(tmp_path)
    assert tensors["a"].tolist() == [1, 1] and tensors["b"].tolist() == [0, 0, 0]


# ---- saving ---------------------------------------------------------------------------------


def test_saved_bytes_are_the_format_s(two):
    content = two.read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert length % 8 == 0
    fields = json.loads(content[8 : 8 + length])
    assert fields == {"__metadata__": {"format": "pt"}, "w": entry("F32", [2, 3], 0, 24), "n": entry("I16", [2], 24, 28)}
    assert content[8 + length :][24:] == b"\x01\x00\xfe\xff"
    assert save({"w": torch.arange(6.0).view(2, 3), "n": torch.tensor([1, -2], dtype=torch.int16)}, {"format": "pt"}) == content


def test_views_of_one_storage_save_where_they_lie_apart(tmp_path):
    whole = torch.arange(6.0)
    save_file({"a": whole[:3], "b": whole[3:]}, tmp_path / "halves.safetensors")
    tensors = load_file(tmp_path / "halves.safetensors")
    assert tensors["a"].tolist() == [0, 1, 2] and tensors["b"].tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    ("make", "kind", "says"),
    [
        (lambda: {"t": torch.zeros(2, 3).t()}, ValueError, "You are trying to save a non contiguous tensor: `t` which is not allowed."),
        (lambda: {"a": (x := torch.zeros(3)), "b": x[1:]}, RuntimeError, "Some tensors share memory"),
        (lambda: {"a": [1.0]}, TypeError, "Key `a` is invalid, expected torch.Tensor but received <class 'list'>"),
        (lambda: {"a": torch.empty(3, device="meta")}, ValueError, "meta device"),
    ],
)
def test_what_cannot_be_saved(make, kind, says, tmp_path):
    path = tmp_path / "t.safetensors"
    path.write_bytes(b"before")
    with pytest.raises(kind) as caught:
        save_file(make(), path)
    assert says in str(caught.value)
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == ["t.safetensors"]


def test_a_failed_write_leaves_the_old_file(two, monkeypatch):
    before = two.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("strided.io.safetensors._bytes_of", fail)
    with pytest.raises(OSError, match="disk full"):
        save_file({"w": torch.zeros(3)}, two)
    assert two.read_bytes() == before and os.listdir(two.parent) == [two.name]


# ---- modules --------------------------------------------------------------------------------


def test_tied_modules_are_written_once_and_read_back(tmp_path):
    def build():
        model = torch.nn.ModuleDict({"embed": torch.nn.Embedding(5, 3), "head": torch.nn.Linear(3, 5, bias=False)})
        model["head"].weight = model["embed"].weight
        return model

    model, path = build(), tmp_path / "model.safetensors"
    save_model(model, path)
    with safe_open(path) as file:
        assert file.keys() == ["embed.weight"] and file.metadata() == {"head.weight": "embed.weight"}
    other = build()
    assert load_model(other, path) == ([], [])
    assert other["head"].weight.tolist() == model["embed"].weight.tolist()


def test_loading_into_a_module_names_what_differs(two):
    model = torch.nn.Linear(3, 2)
    with pytest.raises(RuntimeError, match=r"(?s)Error\(s\) in loading state_dict for Linear:.*Missing key\(s\).*weight, bias.*Unexpected key\(s\).*w, n"):
        load_model(model, two)


def test_header_bytes_from_hand_load(make_file):
    path = make_file(safetensors_bytes({"x": entry("U8", [2], 0, 2)})[8:], b"\x05\x06")
    assert load_file(path)["x"].tolist() == [5, 6]
