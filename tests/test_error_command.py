"""`strided error`: what is measured, on hand-made weights with exact sums; files, folders, pieces; the text, JSON and page."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

import strided
from strided.io.safetensors import save_file
from strided.lens import error as E
from strided.lens.exact import hold, scalar_format
from strided.lens.number import exactly
from support import minilm_folder, run_strided


def by_hand(values, name):
    """(sum of squared errors, largest, flushed, beyond the largest) of a cast, in exact fractions."""
    form = scalar_format(name)
    held = [hold(form, exactly(v)) for v in values]
    errors = [h.error for h in held]
    return sum(e * e for e in errors), max(map(abs, errors)), sum(h.value == 0 != h.asked.value for h in held), sum(abs(h.asked.value) > form.largest for h in held)


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float6_e2m3fn", "float4_e2m1fn"])
def test_casts_are_measured_exactly(name):
    values = [0.1, -0.3, 1.0, 7.7, -30.0, 1e-9, 0.0, 3.14159, -0.001, 100.0]
    x = strided.tensor(values)
    square, largest, zeros, saturated = by_hand(x.tolist(), name)
    sums = E.measure(x, E.format_of(name))
    assert sums.error == pytest.approx(float(square), rel=1e-6) and sums.largest == pytest.approx(float(largest), rel=1e-6)
    assert (sums.count, sums.zeros, sums.saturated) == (10, zeros, saturated)
    assert sums.signal == pytest.approx(sum(v * v for v in x.tolist()), rel=1e-6)
    report = sums.report()
    assert report["mse"] == pytest.approx(float(square) / 10, rel=1e-6) and report["sqnr_db"] == pytest.approx(10 * math.log10(sums.signal / float(square)), abs=1e-4)
    assert report["bits"] == pytest.approx(8 * -(-10 * scalar_format(name).bits // 8) / 10)


def test_blocks_against_their_definition():
    x = strided.tensor([[7.9] + [0.1] * 30 + [1.0], [0.5] * 32])  # MXFP4: scales 2^(2-2) and 2^(-1-2)
    sums = E.measure(x, E.format_of("mxfp4"))
    # row 1: 7.9 saturates to 6, 0.1 becomes 0, 1 stays; row 2: 0.5 = 4 · 2^-3 is exact
    assert sums.error == pytest.approx(1.9**2 + 30 * 0.01, rel=1e-5) and sums.largest == pytest.approx(1.9, rel=1e-6)
    assert (sums.count, sums.zeros, sums.saturated, sums.nbytes) == (64, 30, 1, 34)
    assert sums.report()["bits"] == 4.25
    ints = E.measure(strided.tensor([[7.0, -3.0, 0.4, 1.0]]), E.format_of("int4-g4"))
    assert ints.error == pytest.approx(0.16, rel=1e-5) and (ints.zeros, ints.saturated, ints.nbytes) == (1, 0, 4)
    padded = E.measure(strided.ones(3, 40), E.format_of("mxfp8_e4m3"))  # the last block of a row is stored in full
    assert (padded.error, padded.nbytes) == (0.0, 3 * 2 * 33) and padded.report()["sqnr_db"] is None


def test_pieces_add_up_to_the_whole(monkeypatch):
    x = strided.randn(50, 64, generator=strided.Generator().manual_seed(0))
    x[7, 3] = 40.0
    whole = {name: E.measure(x, E.format_of(name)).report() for name in ("bfloat16", "mxfp4", "nvfp4", "int8_g64")}
    monkeypatch.setattr(E, "PIECE", 200)
    for name, expected in whole.items():
        found = E.measure(x, E.format_of(name)).report()
        assert found == pytest.approx(expected, rel=1e-5), name


def test_infinity_nan_and_overflow():
    x = strided.tensor([1.0, float("inf"), float("nan"), 0.1])
    sums = E.measure(x, E.format_of("float16"))
    assert sums.count == 4 and sums.largest < 1e-4 and sums.saturated == 0  # what was no number has nothing to lose
    over = E.measure(strided.tensor([1.0, 1e6]), E.format_of("float16"))
    assert math.isinf(over.error) and over.saturated == 1 and over.report()["sqnr_db"] == -math.inf
    assert E.measure(strided.tensor([1.0, 1e6]), E.format_of("float8_e4m3fn")).largest == 1e6 - 448
    nan = E.measure(strided.tensor([1.0, 1e6]), E.format_of("float8_e4m3fnuz"))
    assert math.isinf(nan.largest) and nan.saturated == 1


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_tiny_and_huge_weights(scale):
    x = strided.tensor([1.0, 1.001, -0.7], dtype=strided.float64) * scale
    sums = E.measure(x, E.format_of("bfloat16"))
    exact = by_hand(x.tolist(), "bfloat16")[0]
    assert sums.error == pytest.approx(float(exact), rel=1e-9)


def test_other_stored_dtypes_and_shapes():
    assert E.measure(strided.tensor(0.1), E.format_of("bfloat16")).count == 1
    half = E.measure(strided.tensor([0.1, 0.2]).half(), E.format_of("float16"))
    assert half.error == 0.0 and half.report()["sqnr_db"] is None
    assert E.measure(strided.randn(2, 3, 32), E.format_of("mxfp4")).nbytes == 2 * 3 * 17


@pytest.fixture
def files(tmp_path):
    tensors = {"a.weight": strided.randn(8, 32, generator=strided.Generator().manual_seed(1)), "a.bias": strided.tensor([0.1] * 8), "ids": strided.arange(4), "none": strided.empty(0)}
    save_file(tensors, str(tmp_path / "model.safetensors"))
    strided.save({"model": {"a.weight": tensors["a.weight"], "a.bias": tensors["a.bias"]}, "step": 3, "list": [strided.ones(2)]}, str(tmp_path / "weights.pt"))
    strided.save(tensors["a.weight"], str(tmp_path / "one.pt"))
    strided.save({"embed": tensors["a.weight"], "head": tensors["a.weight"], "part": tensors["a.weight"][:2]}, str(tmp_path / "tied.pth"))
    return tmp_path


def test_files_and_folders(files):
    report = E.error(str(files / "model.safetensors"), ["bfloat16", "mxfp4"])
    report["tensors"].sort(key=lambda row: row["name"], reverse=True)  # a file's order is its own
    assert [row["name"] for row in report["tensors"]] == ["a.weight", "a.bias"] and report["elements"] == 264 and report["stored"] == {"float32": 264}
    assert {row["name"] for row in report["skipped"]} == {"ids", "none"} and list(report["formats"]) == ["bfloat16", "mxfp4"]
    archive = E.error(str(files / "weights.pt"), ["bfloat16", "mxfp4"])
    assert [row["name"] for row in archive["tensors"]] == ["model.a.weight", "model.a.bias", "list.0"]
    for first, second in zip(report["tensors"], archive["tensors"]):
        assert first["formats"] == second["formats"]
    assert E.error(str(files / "one.pt"), ["mxfp4"])["tensors"][0]["formats"] == {"mxfp4": report["tensors"][0]["formats"]["mxfp4"]}
    assert [row["name"] for row in E.error(str(files / "tied.pth"), ["mxfp4"])["tensors"]] == ["embed", "part"]
    assert E.error(str(files), ["mxfp4"])["elements"] == 264  # the folder's safetensors file
    assert [r["name"] for r in E.error(str(files), ["mxfp4"], only="bias$")["tensors"]] == ["a.bias"]
    whole, parts = report["formats"]["mxfp4"], [row["formats"]["mxfp4"] for row in report["tensors"]]
    assert whole["mse"] * 264 == pytest.approx(sum(p["mse"] * n for p, n in zip(parts, (256, 8))), rel=1e-6)


def test_the_command(files):
    code, out, err = run_strided("error", files / "model.safetensors", "--formats", "bfloat16,int4-g32")
    assert code == 0 and err == "" and "2 tensors, 264 numbers, stored as float32" in out and "int4_g32" in out and "SQNR in dB, per tensor" in out and "left out: 2" in out
    code, out, _ = run_strided("error", files, "--json", "-f", "float16,nvfp4", "--only", "weight")
    report = json.loads(out)
    assert code == 0 and list(report["formats"]) == ["float16", "nvfp4"] and report["tensors"][0]["shape"] == [8, 32]
    code, out, err = run_strided("error", files, "--html", files / "page.html", "-f", "all")
    text = (files / "page.html").read_text()
    assert code == 0 and "wrote" in err and "<svg" in text and "mxfp8_e5m2" in text and "http" not in text.replace("http-equiv", "") and "<script" not in text


def test_overflow_is_text_in_json(tmp_path):
    save_file({"x": strided.tensor([1e6, 1.0])}, str(tmp_path / "x.safetensors"))
    code, out, _ = run_strided("error", tmp_path, "--json", "-f", "float16")
    assert code == 0 and json.loads(out)["formats"]["float16"]["sqnr_db"] == "-inf"
    code, out, _ = run_strided("error", tmp_path, "-f", "float16")
    assert "−∞" in out and "50.00%" in out


@pytest.mark.parametrize(
    "words, said",
    [
        (["-f", "mxfp5"], "no number format 'mxfp5'; near it: mxfp4"), (["-f", "bfloat61"], "near it: bfloat16"), (["-f", "int8"], "int8_g128"), (["-f", "q4_0"], "read from files"),
        (["-f", "tf32"], "mode of computing"), (["--only", "("], "no regular expression"), (["--only", "zzz"], "no floating-point tensor whose name 'zzz'"),
    ],
)  # fmt: skip
def test_wrong_words(files, words, said):
    code, out, err = run_strided("error", files / "model.safetensors", *words)
    assert code in (1, 2) and said in err and "Traceback" not in err and out == ""


@pytest.mark.parametrize("name, said", [("missing.safetensors", "No such file"), ("notes.txt", "the ending says no format"), ("empty", "holds no .safetensors"), ("broken.safetensors", "broken.safetensors")])
def test_wrong_files(tmp_path, name, said):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "broken.safetensors").write_bytes(b"\x01")
    code, out, err = run_strided("error", tmp_path / name)
    assert code == 1 and said in err and "Traceback" not in err and out == ""


def test_archives_that_are_none_and_old_ones(tmp_path):
    (tmp_path / "empty.pt").write_bytes(b"")
    (tmp_path / "notes.pt").write_text("hello, these are notes")
    strided.save(strided.nn.Linear(2, 2), str(tmp_path / "module.pt"))
    for name, said in (("empty.pt", "empty.pt is empty"), ("notes.pt", "It begins with b'hello"), ("module.pt", "Unsupported global: GLOBAL torch.nn.modules.linear.Linear")):
        code, out, err = run_strided("error", tmp_path / name)
        assert code == 1 and said in err and "Traceback" not in err and "mmap" not in err and out == ""
    old = Path(__file__).parent / "golden" / "checkpoint_legacy.pt"  # a pickle, as PyTorch wrote before 1.6
    strided.save(strided.load(old), str(tmp_path / "new.pt"))
    reports = [E.error(str(path), ["mxfp8_e4m3"]) for path in (old, tmp_path / "new.pt")]
    assert reports[0]["tensors"] == reports[1]["tensors"] and reports[0]["elements"] > 0


def test_a_page_that_cannot_be_written_is_refused_before_the_work(files):
    for page, said in ((files / "missing" / "page.html", "there is no folder"), (files, "it is a folder"), (files / "model.safetensors", "itself")):
        code, out, err = run_strided("error", files / "model.safetensors", "--html", page)
        assert code == 2 and "can't write" in err and said in err and "Traceback" not in err and out == ""


def test_a_model_in_use():
    report = E.error(str(minilm_folder()), ["bfloat16", "float8_e4m3fn", "mxfp4", "int8_g128"], only=r"layer\.0\.output")
    db = {name: m["sqnr_db"] for name, m in report["formats"].items()}
    assert db["bfloat16"] > 50 > db["int8_g128"] > 38 > db["float8_e4m3fn"] > 28 > db["mxfp4"] > 15


def test_a_square_root_of_nothing_is_nothing():
    assert E._square_sum(strided.zeros(3), 0.0) == 0.0 and E._square_sum(strided.tensor([3.0, 4.0]), 4.0) == 25.0
    assert Fraction(E._square_sum(strided.tensor([2.0**-100]), 2.0**-100)) == Fraction(1, 1 << 200)


def test_gguf_files_are_measured_against_the_numbers_they_hold(tmp_path):
    from test_blocks_gguf import gguf_bytes

    numpy = pytest.importorskip("numpy")
    rng = numpy.random.default_rng(0)
    blocks = numpy.zeros((6, 34), numpy.uint8)  # Q8_0: a float16 scale, 32 bytes
    blocks[:, :2] = numpy.array([0.01] * 6, numpy.float16).reshape(6, 1).view(numpy.uint8)
    codes = rng.integers(-127, 128, (6, 32)).astype(numpy.int8)
    blocks[:, 2:] = codes.view(numpy.uint8)
    plain = rng.standard_normal(32).astype(numpy.float32)
    (tmp_path / "m.gguf").write_bytes(gguf_bytes([("w", (3, 64), 8, blocks.tobytes()), ("n", (32,), 0, plain.tobytes())]))
    report = E.error(str(tmp_path), ["bfloat16", "int8_g32"])
    rows = {row["name"]: row for row in report["tensors"]}
    assert report["stored"] == {"q8_0": 192, "float32": 32} and rows["w"]["shape"] == [3, 64]
    values = (codes.astype(numpy.float64) * float(numpy.float16(0.01))).reshape(3, 64)
    assert rows["w"]["formats"]["bfloat16"]["mse"] == pytest.approx(float(by_hand(values.ravel().tolist(), "bfloat16")[0]) / 192, rel=1e-5)
    assert rows["n"]["formats"]["bfloat16"]["mse"] == pytest.approx(float(by_hand(plain.tolist(), "bfloat16")[0]) / 32, rel=1e-5)


def test_the_lenses_are_there_when_named():
    code, out, err = run_strided("run", "-c", "import strided; print(strided.lens.number.number('0.5', 'float16')[0]['held'], strided.lens.error.format_of('mxfp4').name, hasattr(strided.lens, 'nothing'))")
    assert (code, out, err) == (0, "0.5 mxfp4 False\n", "")
