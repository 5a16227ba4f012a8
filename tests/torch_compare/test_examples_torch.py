"""The very same example files on both: embeddings of ten sentences within 2e-5, the attention example's text equal."""
import pathlib
import re
import subprocess
import sys

import pytest

from support import minilm_folder, run_strided

pytest.importorskip("torch")
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def on_torch(*words):
    return subprocess.run([sys.executable, *map(str, words)], check=True, capture_output=True, text=True, timeout=300).stdout


def test_attention_text():
    assert run_strided("run", EXAMPLES / "attention.py", timeout=300)[1] == on_torch(EXAMPLES / "attention.py")


def test_embeddings(tmp_path):
    pytest.importorskip("tokenizers")
    pytest.importorskip("safetensors")
    script, options = EXAMPLES / "sentence_similarity.py", ("--model", minilm_folder(), "--save")
    theirs = on_torch(script, *options, tmp_path / "theirs.txt")
    code, ours, err = run_strided("run", script, *options, tmp_path / "ours.txt", timeout=300)
    assert code == 0, err
    assert ours == theirs
    read = lambda name: [float(v) for v in (tmp_path / name).read_text().split()]
    a, b = read("ours.txt"), read("theirs.txt")
    assert len(a) == len(b) == 3840 and max(abs(x - y) for x, y in zip(a, b)) <= 2e-5


def lines(text):
    """The numbers of every line that reports a loss."""
    return [[float(v) for v in re.findall(r"(?<![a-z0-9])[0-9]+\.?[0-9]*(?![a-z0-9])", line)] for line in text.splitlines() if "loss" in line]


@pytest.mark.parametrize(
    "name,options,tolerance", [("char_gpt.py", ("--steps", "31"), 2e-3), ("digits.py", (), 2e-3), ("mixed_precision.py", ("--steps", "11"), 3e-2)]
)
def test_training_examples(name, options, tolerance):
    code, ours, err = run_strided("run", EXAMPLES / name, *options, timeout=300)
    assert (code, err) == (0, "")
    mine, theirs = lines(ours), lines(on_torch(EXAMPLES / name, *options))
    assert len(mine) == len(theirs) >= 4
    for a, b in zip(mine, theirs):
        assert a == pytest.approx(b, abs=tolerance)
