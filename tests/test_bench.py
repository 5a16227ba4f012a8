"""`strided bench` and bench/all.py: what they print and write, on few and small rows. Speed itself is not tested."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

import strided
from strided.lens import bench, limits

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("threads", [1, 3])
def test_limits_count_what_they_do(threads):
    call, flops = limits.multiply_adds(10, threads)
    call()
    assert flops % (threads * 10 * limits.CHAINS * 2) == 0
    for streamed in (False, True):
        call, moved = limits.copy(100_000, threads, streamed)
        call()
        assert 2 * 90_000 < moved <= 2 * 100_000
    call, read = limits.read(100_000, threads)
    call()
    assert 90_000 < read <= 100_000


def test_the_copy_that_is_the_limit_copies():
    from strided.kernels import jit, native

    source, target = strided.arange(4096, dtype=strided.int32), strided.zeros(4096, dtype=strided.int32)
    for streamed in (False, True):
        target.zero_()
        vectors = limits._copied(streamed)
        address = jit.compile_kernel(("limit", "copy", vectors, streamed), lambda vectors=vectors, streamed=streamed: limits._copy(streamed, vectors))
        lines = 4096 * 4 // (jit.host().vector_bits // 8 * vectors)
        native.launch(native.pack_desc(address, 2, 2, True, 0, [lines]), target.data_ptr(), source.data_ptr())
        assert strided.equal(source, target)


def test_rows_of_the_command(monkeypatch, capsys):
    a = strided.ones(64, 64)
    rows = [bench.Work("product", lambda: a @ a, flops=2 * 64**3), bench.Work("copy", a.clone, copies=2 * a.nbytes), bench.Work("call", lambda: a + a)]
    monkeypatch.setattr(bench, "works", lambda: iter(rows))
    monkeypatch.setattr(bench, "ROUNDS", 1)
    assert bench.main(["--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["threads"] == strided.get_num_threads()
    assert [r["name"] for r in report["rows"]] == ["limit: multiply-adds", "limit: read", "limit: copy", "product", "copy", "call"]
    assert [r["limit"] for r in report["rows"][3:]] == ["multiply-adds", "copy", None]
    assert all(r["seconds"] > 0 for r in report["rows"]) and report["rows"][3]["share"] > 0
    assert bench.main([]) == 0
    assert "product" in capsys.readouterr().out


def test_all_writes_json_and_a_page(tmp_path):
    command = [sys.executable, str(ROOT / "bench" / "all.py"), "--rows", "small: view", "--threads", "1", "--peers", "numpy", "--seconds", "0.01"]
    done = subprocess.run([*command, "--json", tmp_path / "a.json", "--html", tmp_path / "a.html"], capture_output=True, text=True, encoding="utf-8", check=True)
    assert "small: view" in done.stdout
    (run,) = json.loads((tmp_path / "a.json").read_text())["runs"]
    assert run["threads"] == 1 and [r["name"] for r in run["rows"]] == ["view", "view, recorded"] and set(run["peers"]) == {"numpy"}
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2 and "view, recorded" in page
