"""safetensors files: what a header may say, what it may not, and tensors mapped in and saved out. The `inspect` command is test_inspect.py's."""

from __future__ import annotations

import json
import os
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strided.io.header import DTYPES, MAX_HEADER, Entry, SafetensorsError, build_header, header_length, open_checkpoint, parse_header, read_header
from support import safetensors_bytes

TWO = {"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}, "b": {"dtype": "I8", "shape": [3], "data_offsets": [16, 19]}}


def entry(dtype="F32", shape=(2, 2), offsets=(0, 16)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def parse(content: bytes):
    """A whole file from memory, through the same checks as one on disk."""
    length = header_length(content[:8], len(content), "memory")
    return parse_header(content[8 : 8 + length], len(content), "memory")


# ---- valid headers --------------------------------------------------------------------------


def test_header_of_two_tensors(make_file):
    path = make_file({"__metadata__": {"format": "pt"}, **TWO}, bytes(19))
    header = read_header(path)
    assert header.entries == {"a": Entry("a", "F32", (2, 2), 0, 16), "b": Entry("b", "I8", (3,), 16, 19)}
    assert header.metadata == {"format": "pt"}
    assert header.data_bytes == 19 and header.data_start == os.path.getsize(path) - 19


def test_reading_a_header_leaves_the_data_alone(make_file):
    path = make_file({"a": entry("U8", [0], [0, 0])})
    size = 1 << 40  # a sparse terabyte: reading it would take minutes
    text = json.dumps({"big": entry("U8", [size], [0, size])}).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        try:
            file.truncate(8 + len(text) + size)
        except OSError:
            pytest.skip("the file system has no sparse terabyte")
    assert read_header(path).data_bytes == size


@pytest.mark.parametrize("tag", sorted(DTYPES))
def test_every_dtype_has_its_size(tag):
    bits = DTYPES[tag][1]
    nbytes = 8 * bits // 8  # eight elements
    header = parse(safetensors_bytes({"t": entry(tag, [8], [0, nbytes])}, bytes(nbytes)))
    assert header.entries["t"].nbytes == nbytes and header.entries["t"].numel == 8


def test_scalars_empty_tensors_and_padding_are_valid():
    text = json.dumps({"s": entry("F64", [], [0, 8]), "e": entry("F32", [0, 5], [8, 8]), "e0": entry("F32", [0], [0, 0])}) + "   "
    header = parse(safetensors_bytes(text, bytes(8)))
    assert header.entries["s"].numel == 1 and header.entries["e"].numel == 0


def test_two_names_may_share_one_range():
    header = parse(safetensors_bytes({"a": entry(), "b": entry()}, bytes(16)))
    assert header.entries["a"][2:] == header.entries["b"][2:]


def test_a_header_without_tensors_is_valid():
    assert parse(safetensors_bytes({})).entries == {}
    assert parse(safetensors_bytes({"__metadata__": None})).metadata == {}


# ---- lies, each with its message ------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "truncated: 0 bytes"),
        (b"\x01\x02", "truncated: 2 bytes"),
        (struct.pack("<Q", 50) + b"{}", "truncated: the header should end at byte 58, the file has 10"),
        (struct.pack("<Q", MAX_HEADER + 1) + b"{}", "header too large"),
        (b"PK\x03\x04" + bytes(30), None),
        (safetensors_bytes(b""), "must begin with"),
        (safetensors_bytes("[]"), "must begin with"),
        (safetensors_bytes(" {}"), "must begin with"),
        (safetensors_bytes("{"), "not JSON"),
        (safetensors_bytes('{"a": NaN}'), "not JSON"),
        (safetensors_bytes('{"a": 1}x'), "not JSON"),
        (safetensors_bytes(b'{"\xff": 1}'), "not UTF-8: byte 0xff"),
        (safetensors_bytes('{"\\ud800": {}}'), "surrogate"),
        (safetensors_bytes('{"a":' * 100_000), "nested too deeply"),
        (safetensors_bytes('{"a": ' + "9" * 5000 + "}"), None),
        (safetensors_bytes({"__metadata__": {"a": 1}}), "text to text"),
        (safetensors_bytes({"__metadata__": []}), "text to text"),
        (safetensors_bytes({"a": 1}), "must be an object"),
        (safetensors_bytes({"a": {"dtype": "F32", "shape": [1]}}), "lacks 'data_offsets'"),
        (safetensors_bytes({"a": entry("F33")}, bytes(16)), "unknown dtype 'F33'"),
        (safetensors_bytes({"a": entry(["F32"])}, bytes(16)), "unknown dtype"),
        (safetensors_bytes({"a": entry(shape=[-1, -4])}, bytes(16)), "a shape is a list"),
        (safetensors_bytes({"a": entry(shape=[2.0, 2])}, bytes(16)), "a shape is a list"),
        (safetensors_bytes({"a": entry(shape=[True, 4])}, bytes(16)), "a shape is a list"),
        (safetensors_bytes({"a": {**entry(), "shape": 4}}, bytes(16)), "a shape is a list"),
        (safetensors_bytes({"a": {**entry(), "shape": None}}, bytes(16)), "a shape is a list"),
        (safetensors_bytes({"a": entry(offsets=[0, 16, 32])}, bytes(16)), "data_offsets are two"),
        (safetensors_bytes({"a": entry(offsets=[-16, 0])}, bytes(16)), "data_offsets are two"),
        (safetensors_bytes({"a": entry(offsets=[0, 16.0])}, bytes(16)), "data_offsets are two"),
        (safetensors_bytes({"a": entry(offsets=[16, 0])}, bytes(16)), "ends before it starts"),
        (safetensors_bytes({"a": entry(shape=[2, 3])}, bytes(16)), "takes 24 bytes, its offsets hold 16"),
        (safetensors_bytes({"a": entry(shape=[2**40, 2**40])}, bytes(16)), "overflows"),
        (safetensors_bytes({"a": entry(shape=[2**40, 2**40, 0], offsets=[0, 0])}), "overflows"),
        (safetensors_bytes({"a": entry(shape=[2**62] * 2000, offsets=[0, 0])}), "overflows"),
        (safetensors_bytes({"a": entry("F4", [3], [0, 2])}, bytes(2)), "no whole number of bytes"),
        (safetensors_bytes({"a": entry()}, bytes(15)), "lies beyond the end: the buffer has 15 bytes"),
        (safetensors_bytes({"a": entry()}, bytes(17)), "bytes 16–17 belong to none"),
        (safetensors_bytes({"a": entry(offsets=[4, 20])}, bytes(20)), "bytes 0–4 before it belong to no tensor"),
        (safetensors_bytes({"a": entry(), "b": entry("U8", [8], [8, 16])}, bytes(16)), "overlaps"),
        (safetensors_bytes({"a": entry(), "b": entry("U8", [4], [20, 24])}, bytes(24)), "bytes 16–20 before it belong to no tensor"),
        (safetensors_bytes('{"a": {"dtype":"U8","shape":[1],"data_offsets":[0,1]}, "a": {"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x"), "names 'a' twice"),
        (safetensors_bytes('{"a": {"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}}', b"x"), "names 'dtype' twice"),
    ],
)
def test_lying_headers_are_refused(content, says, tmp_path):
    path = tmp_path / "lying.safetensors"
    path.write_bytes(content)
    with pytest.raises(SafetensorsError) as caught:
        read_header(path)
    assert str(path) in str(caught.value)
    if says is not None:
        assert says in str(caught.value)


def test_an_error_carries_file_tensor_and_offsets(make_file):
    path = make_file({"layer.weight": entry(shape=[2, 3])}, bytes(16))
    with pytest.raises(SafetensorsError) as caught:
        read_header(path)
    error = caught.value
    assert (error.path, error.tensor, error.offsets) == (str(path), "layer.weight", (0, 16))
    assert isinstance(error, ValueError)
    assert str(error) == f"{path}: tensor 'layer.weight' at bytes 0–16 of the buffer: shape [2, 3] of F32 takes 24 bytes, its offsets hold 16"


def test_messages_stay_short_whatever_the_file_holds():
    with pytest.raises(SafetensorsError) as caught:
        parse(safetensors_bytes({"x" * 100_000: entry("Q" * 100_000)}))
    assert len(str(caught.value)) < 1000


# ---- fuzzing --------------------------------------------------------------------------------

VALID = safetensors_bytes({"__metadata__": {"format": "pt"}, **TWO}, bytes(range(19)))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5) | st.sampled_from(sorted(DTYPES)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["dtype", "shape", "data_offsets", "a", "__metadata__"]) | st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def accept_or_refuse(content: bytes) -> None:
    """Any bytes: either a header whose tensors fill the buffer, or SafetensorsError. Nothing else may be raised."""
    try:
        header = parse(content)
    except SafetensorsError as error:
        assert str(error).encode("utf-8")
        return
    covered = {(e.start, e.end) for e in header.entries.values()}
    assert sum(end - start for start, end in covered) == header.data_bytes
    for e in header.entries.values():
        assert 0 <= e.start <= e.end <= header.data_bytes and e.numel * e.bits == 8 * e.nbytes


@given(st.binary(max_size=200))
def test_any_bytes(content):
    accept_or_refuse(content)


@given(st.binary(max_size=120), st.binary(max_size=16))
def test_any_header_text(text, data):
    accept_or_refuse(safetensors_bytes(b"{" + text, data))


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=4), st.binary(max_size=32))
def test_any_json(fields, data):
    accept_or_refuse(safetensors_bytes(fields, data))


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, len(VALID) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_mutated_bytes(changes):
    content = bytearray(VALID)
    for at, value in changes:
        content[at] = value
    accept_or_refuse(bytes(content))


@given(st.integers(0, len(VALID)), st.binary(max_size=8))
def test_cut_and_extended(at, tail):
    accept_or_refuse(VALID[:at] + tail)


@given(
    st.lists(
        st.builds(entry, st.sampled_from(sorted(DTYPES)), st.lists(st.integers(-1, 2**64), max_size=3) | st.lists(st.integers(0, 4), max_size=3),
                  st.lists(st.integers(-1, 40), min_size=2, max_size=2)),
        max_size=4,
    ),
    st.integers(0, 64),
)  # fmt: skip
def test_plausible_lies(entries, size):
    accept_or_refuse(safetensors_bytes({str(at): e for at, e in enumerate(entries)}, bytes(size)))


@given(
    st.lists(st.tuples(st.sampled_from(["U8", "F32", "F16", "F64", "BOOL"]), st.lists(st.integers(0, 4), max_size=3)), max_size=6),
    st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2),
)
def test_written_headers_read_back(tensors, metadata):
    entries = []
    for at, (tag, shape) in enumerate(tensors):
        numel = 1
        for size in shape:
            numel *= size
        entries.append((f"t.{at}", tag, tuple(shape), numel * DTYPES[tag][1] // 8))
    try:
        head, placed = build_header(entries, metadata)
    except UnicodeEncodeError:
        return  # half a surrogate pair in the metadata
    header = parse(head + bytes(sum(e[3] for e in entries)))
    assert sorted(header.entries.values()) == sorted(placed) and header.metadata == metadata
    assert len(head) % 8 == 0
    for e in placed:
        assert e.start % (e.bits // 8) == 0  # every tensor starts on a multiple of its element's size


# ---- shards ---------------------------------------------------------------------------------


@pytest.fixture
def shards(tmp_path):
    """Two shards and their index: a, b in the first, c in the second."""
    (tmp_path / "model-00001-of-00002.safetensors").write_bytes(safetensors_bytes(TWO, bytes(19)))
    (tmp_path / "model-00002-of-00002.safetensors").write_bytes(safetensors_bytes({"c": entry("U8", [5], [0, 5])}, bytes(5)))
    index = {"metadata": {"total_size": 24}, "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00001-of-00002.safetensors", "c": "model-00002-of-00002.safetensors"}}
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps(index))
    return path


def rewrite(path, change):
    index = json.loads(path.read_text())
    change(index)
    path.write_text(json.dumps(index))


def test_an_index_and_its_folder_open_all_shards(shards):
    for path in (shards, shards.parent):
        checkpoint = open_checkpoint(path)
        assert [sorted(header.entries) for header in checkpoint.headers] == [["a", "b"], ["c"]]
        assert checkpoint.total_size == 24


def test_a_missing_shard_names_its_tensors(shards):
    (shards.parent / "model-00001-of-00002.safetensors").unlink()
    with pytest.raises(SafetensorsError, match=r"shard 'model-00001-of-00002.safetensors' is missing \(2 are named\). It holds 2 tensors: a, b"):
        open_checkpoint(shards)


def test_a_tensor_missing_from_its_shard(shards):
    rewrite(shards, lambda index: index["weight_map"].update(d="model-00002-of-00002.safetensors"))
    with pytest.raises(SafetensorsError, match="tensor 'd': model.safetensors.index.json says it is in this shard"):
        open_checkpoint(shards)


def test_a_tensor_in_two_shards(shards):
    (shards.parent / "model-00002-of-00002.safetensors").write_bytes(safetensors_bytes({"c": entry("U8", [5], [0, 5]), "a": entry("U8", [0], [5, 5])}, bytes(5)))
    with pytest.raises(SafetensorsError, match="holds a tensor of this name too"):
        open_checkpoint(shards)


@pytest.mark.parametrize("shard", ["/etc/passwd", "../model-00002-of-00002.safetensors", "..", "", "a/b", 3, None, "x\0y"])
def test_shards_stand_beside_their_index(shards, shard):
    rewrite(shards, lambda index: index["weight_map"].update(c=shard))
    with pytest.raises(SafetensorsError, match="must be the name of a file beside the index"):
        open_checkpoint(shards)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"weight_map": []}', '{"weight_map": {}}', "{}", "\xff"])
def test_broken_indexes(shards, text):
    shards.write_text(text, encoding="latin-1")
    with pytest.raises(SafetensorsError):
        open_checkpoint(shards)


def test_folders_without_one_clear_checkpoint(tmp_path):
    (tmp_path / "readme.txt").write_text("x")
    with pytest.raises(SafetensorsError, match=r"no .safetensors file and no index here \(found: readme.txt\)"):
        open_checkpoint(tmp_path)
    for name in ("one.safetensors", "two.safetensors"):
        (tmp_path / name).write_bytes(safetensors_bytes(TWO, bytes(19)))
    with pytest.raises(SafetensorsError, match="name one of one.safetensors, two.safetensors"):
        open_checkpoint(tmp_path)
