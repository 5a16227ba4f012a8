"""Against the reference implementation: which files are valid, and bytes that each writes and the other reads."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")
reference = pytest.importorskip("safetensors")
from safetensors.torch import load_file as reference_load
from safetensors.torch import save_file as reference_save

from strided.io import safetensors as ours
from strided.io.header import SafetensorsError, header_length, parse_header
from support import safetensors_bytes

FIELDS = {"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}, "b": {"dtype": "I8", "shape": [3], "data_offsets": [16, 19]}}
DTYPES = [
    "bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64", "complex64",
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
]  # fmt: skip


def accepted(content):
    try:
        length = header_length(content[:8], len(content), "memory")
        parse_header(content[8 : 8 + length], len(content), "memory")
    except SafetensorsError:
        return False
    return True


def accepted_by_reference(content):
    try:
        reference.deserialize(content)
    except Exception:
        return False
    return True


def test_both_accept_the_same_mutated_files():
    dice, valid = random.Random(0), safetensors_bytes(FIELDS, bytes(range(19)))
    agreed = 0
    for _ in range(5000):
        content = bytearray(valid)
        for _ in range(dice.randint(1, 3)):
            content[dice.randrange(len(content))] = dice.choice([dice.randrange(256), dice.choice(b'0123456789"{}[],: -.e'), dice.choice(b"0123456789")])
        content = bytes(content)
        assert accepted(content) == accepted_by_reference(content), content
        agreed += accepted(content)
    assert agreed > 100  # the mutations leave some files valid


@pytest.mark.parametrize("name", DTYPES)
def test_each_reads_what_the_other_wrote(name, tmp_path):
    raw = torch.arange(48, dtype=torch.uint8)
    tensor = (raw % 2 == 1) if name == "bool" else raw.view(getattr(torch, name))
    there, back = tmp_path / "there.safetensors", tmp_path / "back.safetensors"
    reference_save({"t": tensor, "scalar": tensor.reshape(-1)[3].clone()}, there)
    loaded = ours.load_file(there)
    assert loaded["t"].shape == tuple(tensor.shape) and str(loaded["t"].dtype) == str(tensor.dtype) and loaded["scalar"].shape == ()
    ours.save_file(loaded, back, {"made": "here"})
    again = reference_load(back)
    for key, expected in (("t", tensor), ("scalar", tensor.reshape(-1)[3])):
        assert again[key].dtype == expected.dtype and again[key].shape == expected.shape
        assert bytes(again[key].reshape(-1).view(torch.uint8).tolist()) == bytes(expected.reshape(-1).view(torch.uint8).tolist())
