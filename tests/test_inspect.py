"""`strided inspect`: rows, totals, other formats, and the check to the byte. What makes a file valid is test_safetensors.py's."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import subprocess
import sys

import pytest

from strided.lens.inspect import FORMATS, as_json, as_text, folded, human, inspect, merged, natural, prefix, write_csv
from support import minilm_folder, run_strided, safetensors_bytes


def model(tensors, metadata=None):
    """A file from {name: (dtype, shape, bytes)}."""
    fields = {"__metadata__": metadata} if metadata else {}
    at = 0
    for name, (dtype, shape, nbytes) in tensors.items():
        fields[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + nbytes]}
        at += nbytes
    return safetensors_bytes(fields, bytes(at))


SMALL = {
    "embed.weight": ("BF16", [100, 24], 4800),
    "layers.0.up.weight": ("F32", [48, 24], 4608),
    "layers.0.up.bias": ("F32", [48], 192),
    "layers.1.up.weight": ("F32", [48, 24], 4608),
    "layers.1.up.bias": ("F32", [48], 192),
    "layers.10.up.bias": ("F32", [48], 192),
    "layers.2.up.bias": ("F32", [48], 192),
    "ids": ("I64", [2, 3], 48),
}


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(model(SMALL))
    return path


def test_every_parameter_has_its_row(small):
    report = inspect(small)
    assert [p.entry.name for p in report.parameters] == [
        "embed.weight", "ids", "layers.0.up.bias", "layers.0.up.weight", "layers.1.up.bias", "layers.1.up.weight", "layers.2.up.bias", "layers.10.up.bias",
    ]  # fmt: skip
    assert report.total[1:] == (8, 2400 + 6 + 4 * 48 + 2 * 1152, 14832)
    ((path, size, header, summed, data),) = report.sums()
    assert summed == data == 14832 == os.path.getsize(small) - 8 - header and path == str(small) and size == os.path.getsize(small)


def test_totals_by_dtype_and_module(small):
    report = inspect(small)
    assert [(row.name, row.tensors, row.nbytes) for row in report.by_dtype()] == [("float32", 6, 9984), ("bfloat16", 1, 4800), ("int64", 1, 48)]
    assert [(row.name, row.nbytes) for row in report.by_module()] == [
        ("embed", 4800), ("ids", 48), ("layers.0", 4800), ("layers.1", 4800), ("layers.2", 192), ("layers.10", 192)]  # fmt: skip
    assert [(row.name, row.nbytes) for row in report.by_module(1)] == [("embed", 4800), ("ids", 48), ("layers", 9984)]
    assert [(row.name, row.tensors, row.nbytes, times) for row, times in merged(report.by_module())] == [
        ("embed", 1, 4800, 1), ("ids", 1, 48, 1), ("layers.0–1", 4, 9600, 2), ("layers.2–10", 2, 384, 2)]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "expected"),
    [  # by hand: float32, bfloat16, float16, float8, int8, int4 in groups of 128, MXFP4
        ((48, 24), (4608, 2304, 2304, 1152, 1152, 48 * (12 + 2), 48 * 17)),
        ((2, 384), (3072, 1536, 1536, 768, 768, 2 * (192 + 3 * 2), 2 * 12 * 17)),
        ((3, 129), (1548, 774, 774, 387, 387, 3 * (65 + 2 * 2), 3 * 5 * 17)),
        ((2, 3, 32), (768, 384, 384, 192, 192, 6 * (16 + 2), 6 * 17)),
        ((5,), (20, 10, 10, 5, 5, 3 + 2, 17)),
        ((), (4, 2, 2, 1, 1, 1 + 2, 17)),
        ((0, 7), (0, 0, 0, 0, 0, 0, 0)),
        ((7, 0), (0, 0, 0, 0, 0, 0, 0)),
    ],
)
def test_bytes_in_other_formats(shape, expected):
    assert tuple(form.nbytes(shape) for form in FORMATS) == expected


def test_whole_groups_cost_what_is_published():
    """4.125 bits at group 128 with a 16-bit scale; 4.25 bits in MXFP4."""
    sizes = {form.name: form.nbytes((4096, 4096)) * 8 / 4096**2 for form in FORMATS}
    assert sizes["int4, group 128"] == 4.125 and sizes["MXFP4"] == 4.25 and sizes["float8"] == 8


def test_other_formats_leave_integers_alone(small):
    floats = 2400 + 4 * 48 + 2 * 1152
    sizes = {form.name: nbytes for form, nbytes in inspect(small).would_take()}
    assert sizes["float32"] == 48 + 4 * floats and sizes["bfloat16"] == sizes["float16"] == 48 + 2 * floats and sizes["float8"] == sizes["int8"] == 48 + floats
    assert sizes["MXFP4"] == 48 + 17 * (100 + 4 * 2 + 2 * 48)


def test_tied_weights_count_once(tmp_path):
    entry = {"dtype": "F32", "shape": [4, 2], "data_offsets": [0, 32]}
    path = tmp_path / "tied.safetensors"
    path.write_bytes(safetensors_bytes({"embed.weight": entry, "lm_head.weight": entry}, bytes(32)))
    report = inspect(path)
    assert report.total[1:] == (2, 8, 32)
    assert [(p.entry.name, p.tied_to, p.nbytes) for p in report.parameters] == [("embed.weight", None, 32), ("lm_head.weight", "embed.weight", 0)]
    assert report.notes == ["lm_head.weight shares the bytes of embed.weight: counted once"]
    assert {form.name: n for form, n in report.would_take()}["bfloat16"] == 16
    out = io.StringIO()
    write_csv(report, out)
    assert sum(int(row["bytes"]) for row in csv.DictReader(io.StringIO(out.getvalue()))) == 32


@pytest.mark.parametrize(
    ("config", "tensors", "note"),
    [
        ({"tie_word_embeddings": True}, ["model.embed_tokens.weight"], "config.json ties the word embeddings: the output layer uses the input embedding's weights, stored and counted once"),
        ({"tie_word_embeddings": True}, ["lm_head.weight"], "config.json ties the word embeddings, yet lm_head.weight is stored by itself (16 bytes)"),
        ({"text_config": {"tie_word_embeddings": True}}, ["lm_head.weight"], "config.json ties the word embeddings, yet lm_head.weight is stored by itself (16 bytes)"),
        ({"tie_word_embeddings": False}, ["model.embed_tokens.weight"], "config.json does not tie the word embeddings, yet no output layer (lm_head.weight) is stored"),
        ({"tie_word_embeddings": False}, ["model.embed_tokens.weight", "lm_head.weight"], None),
        ({}, ["model.embed_tokens.weight"], None),
    ],
)
def test_config_and_file_on_tied_embeddings(tmp_path, config, tensors, note):
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors").write_bytes(model({name: ("F32", [4], 16) for name in tensors}))
    assert inspect(tmp_path).notes == ([note] if note else [])
    assert inspect(tmp_path / "model.safetensors").notes == []  # a file by itself: no configuration is read


def test_metadata_names_dropped_twins(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(model({"embed.weight": ("F32", [4], 16)}, {"format": "pt", "lm_head.weight": "embed.weight"}))
    assert inspect(path).notes == ["lm_head.weight is tied to embed.weight and not stored (the file's metadata)"]


def test_shards_are_checked_each(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(model({"x.weight": ("F16", [8], 16)}))
    (tmp_path / "b.safetensors").write_bytes(model({"y.weight": ("F32", [8], 32)}))
    index = {"metadata": {"total_size": 50}, "weight_map": {"x.weight": "a.safetensors", "y.weight": "b.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    report = inspect(tmp_path)
    assert [(os.path.basename(path), summed, data) for path, _, _, summed, data in report.sums()] == [("a.safetensors", 16, 16), ("b.safetensors", 32, 32)]
    assert report.notes == ["the index says total_size 50 bytes; its files hold 48"]


# ---- text, CSV, JSON ------------------------------------------------------------------------


def test_csv_as_in_the_footprint_lab(small):
    out = io.StringIO()
    write_csv(inspect(small), out)
    lines = out.getvalue().splitlines()
    assert lines[0] == "dtype_label,param,shape,dtype,elem_bytes,numel,bytes"
    assert lines[1] == "bf16,embed.weight,100x24,torch.bfloat16,2,2400,4800"
    assert lines[2] == "int64,ids,2x3,torch.int64,8,6,48"
    assert lines[4] == "fp32,layers.0.up.weight,48x24,torch.float32,4,1152,4608"


def test_json_holds_the_same_sums(small):
    report = json.loads(json.dumps(as_json(inspect(small))))
    assert report["total"] == {"parameters": 8, "numel": 4902, "bytes": 14832}
    assert report["files"][0]["equal"] and report["files"][0]["summed_bytes"] == 14832
    assert sum(row["bytes"] for row in report["parameters"]) == sum(row["nbytes"] for row in report["by_module"]) == 14832
    assert math.isclose(sum(row["share"] for row in report["parameters"]), 1)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_text_fits_its_width(tmp_path, width):
    tensors = {f"model.language_model.layers.{at}.self_attention.query_key_value_projection.weight": ("F16", [30522, 384], 30522 * 384 * 2) for at in (0, 1)}
    tensors |= {"a" * 90: ("F16", [2], 4), "model.norm.weight": ("F64", [], 8)}
    path = tmp_path / "m.safetensors"
    fields, at = {}, 0
    for name, (dtype, shape, nbytes) in tensors.items():
        fields[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + nbytes]}
        at += nbytes
    text = json.dumps(fields).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + at)
    lines = as_text(inspect(path), width).splitlines()
    table_lines = lines[1:]  # the first line is the path
    assert max(map(len, table_lines)) <= width
    assert any("equal, to the byte" in line for line in [" ".join("".join(lines[-3:]).split())])


def test_folding_breaks_behind_dots():
    assert folded("encoder.layer.0.attention.output.dense.weight", 26) == ["encoder.layer.0.attention.", "  output.dense.weight"]
    assert folded("short", 26) == ["short"]
    assert folded("x" * 12, 8) == ["x" * 8, "  " + "x" * 4]
    assert folded("", 8) == [""]


def test_small_functions():
    assert human(90865152) == "86.66 MiB" and human(5) == "5 B" and human(3 << 40) == "3.00 TiB"
    assert sorted(["l.10.w", "l.9.w", "l.a.w"], key=natural) == ["l.9.w", "l.10.w", "l.a.w"]
    assert sorted(["l." + "9" * 5000, "l.1"], key=natural)[0] == "l.1"
    assert prefix("model.layers.3.mlp.up.weight") == "model.layers.3" and prefix("weight") == "weight" and prefix("a.b.c.d") == "a.b" and prefix("a.b.c.d", 3) == "a.b.c"


# ---- the command ----------------------------------------------------------------------------


def test_command_prints_and_writes(small, tmp_path):
    code, out, err = run_strided("inspect", small, "--csv", tmp_path / "out.csv")
    assert (code, err) == (0, "")
    assert "8 parameters, 4,902 elements, 14,832 bytes (14.48 KiB)" in out and "tensors sum to 14,832: equal, to the byte" in out
    assert (tmp_path / "out.csv").read_text().count("\n") == 9
    code, out, _ = run_strided("inspect", small, "--json")
    assert code == 0 and json.loads(out)["total"]["bytes"] == 14832
    code, out, _ = run_strided("inspect", small, "--csv", "-")
    assert code == 0 and out.splitlines()[0].startswith("dtype_label,")


def test_command_says_what_is_wrong_and_no_more(small, tmp_path):
    small.write_bytes(small.read_bytes()[:-1])
    code, out, err = run_strided("inspect", small)
    assert code == 1 and out == "" and err.startswith(f"strided inspect: {small}: tensor 'ids' at bytes 14784–14832 of the buffer: it lies beyond the end")
    code, out, err = run_strided("inspect", tmp_path / "none.safetensors")
    assert code == 1 and err == f"strided inspect: {tmp_path / 'none.safetensors'}: No such file or directory\n"
    assert run_strided("inspect")[0] == 2


def test_names_cannot_speak_to_the_terminal(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(model({"\x1b[31mred": ("U8", [1], 1)}))
    _, out, _ = run_strided("inspect", path)
    assert "\x1b" not in out and "\\x1b[31mred" in out


def test_real_weights_to_the_byte():
    report = inspect(minilm_folder() / "model.safetensors")
    assert report.total[1:] == (104, 22713728, 90856960)
    assert report.sums()[0][1:] == (90868376, 11408, 90856960, 90856960)


def test_inspect_loads_no_arrays_and_no_tables(small):
    probe = f"import sys\nfrom strided.cli import main\nmain(['inspect', {str(small)!r}])\nprint([m for m in ('numpy', 'rich', 'ml_dtypes') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
