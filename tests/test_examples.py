"""The shipped examples run, and give what PyTorch gives on the same files (values stored from PyTorch 2.13)."""
import pathlib

import pytest

from support import minilm_folder, run_strided

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"

# Every 48th value of each sentence's embedding.
EMBEDDINGS = [
    [0.098007, -0.002158, 0.054686, -4.1e-05, 0.043891, -0.009407, -0.095135, -0.016139],
    [0.040836, 0.064146, 0.071577, -0.011751, 0.015754, -0.006556, -0.030155, 0.027593],
    [0.062206, -0.020872, -0.092915, -0.132272, -0.174453, 0.030231, 0.040168, -0.02558],
    [0.034895, 0.008034, -0.071568, -0.132458, -0.056593, 0.063826, 0.059492, -0.03214],
    [0.006903, 0.05046, 0.047015, -0.024595, 0.022127, -0.039217, -0.020813, -0.050168],
    [0.006519, 0.060878, 0.074598, -0.000193, 0.01263, -0.047681, 0.010283, -0.006464],
    [0.029319, 0.018712, -0.032275, 0.025189, -0.065158, 0.087909, -0.028544, 0.010327],
    [-0.006326, 0.083151, 0.036377, -0.03528, 0.038308, 0.049246, -0.059526, 0.005066],
    [-0.016978, 0.049369, -0.053177, 0.106658, -0.028765, 0.132313, 0.031725, -0.013081],
    [-0.100439, -0.010656, -0.057883, 0.011582, -0.009325, -0.040401, -0.007119, -0.065796],
]


def embeddings(path):
    return [[float(v) for v in line.split()] for line in path.read_text().splitlines()]


def test_attention_prints_what_pytorch_prints():
    code, out, err = run_strided("run", EXAMPLES / "attention.py", timeout=300)
    assert (code, err) == (0, "")
    assert out.splitlines() == ["output (2, 128, 512) torch.float32", "mean 0.0003, standard deviation 0.2800", "attention of the last token sums to 1.0000"]


def test_sentence_embeddings(tmp_path):
    pytest.importorskip("tokenizers")
    code, out, err = run_strided("run", EXAMPLES / "sentence_similarity.py", "--model", minilm_folder(), "--save", tmp_path / "e.txt", timeout=300)
    assert code == 0, err
    found = embeddings(tmp_path / "e.txt")
    assert [len(row) for row in found] == [384] * 10
    for row, expected in zip(found, EMBEDDINGS):
        assert row[::48] == pytest.approx(expected, abs=2e-5)
    assert [line.split()[0] for line in out.splitlines()] == ["0.543", "0.543", "0.493", "0.493", "0.667", "0.667", "0.137", "0.325", "0.325", "0.081"]


def test_annotate_sentence_similarity(tmp_path):
    """Products counted by hand: six layers over ten padded sentences, every verdict of the attention's reshapes."""
    pytest.importorskip("tokenizers")
    import json

    code, _, err = run_strided("annotate", "--json", "-o", tmp_path / "r.json", EXAMPLES / "sentence_similarity.py", "--model", minilm_folder(), timeout=300)
    assert code == 0, err
    report = json.loads((tmp_path / "r.json").read_text())
    by_source = {entry["source"].strip().split("  ")[0]: entry for entry in report["lines"] if "operators" in entry}
    projections = by_source["q, k, v = cut(self.query(x)), cut(self.key(x)), cut(self.value(x))"]
    (tokens,) = {tuple(o["shape"])[:2] for o in projections["operators"] if o["operator"] == "linear"}
    B, T = tokens
    D, hidden, layers = 384, 1536, 6
    assert B == 10 and projections["visits"] == layers
    assert projections["flops"] == layers * 3 * (2 * B * T * D * D + B * T * D)
    (up_down,) = [entry for source, entry in by_source.items() if "self.down(F.gelu(self.up(x)))" in source]
    linears = [o for o in up_down["operators"] if o["operator"] == "linear"]
    assert sum(o["flops"] for o in linears) == layers * (2 * 2 * B * T * D * hidden + B * T * (D + hidden))
    cut = by_source["cut = lambda t: t.view(B, T, self.heads, D // self.heads).transpose(1, 2)"]
    assert {(o["operator"], o["kind"], o["calls"], tuple(o["strides"])) for o in cut["operators"]} == {
        ("view", "view", 3 * layers, (T * D, D, 32, 1)), ("transpose", "view", 3 * layers, (T * D, 32, D, 1)),
    }  # fmt: skip
    (merge,) = [entry for source, entry in by_source.items() if "mixed.transpose(1, 2).reshape" in source]
    kinds = {o["operator"]: o["kind"] for o in merge["operators"]}
    assert kinds["transpose"] == "view" and kinds["linear"] == "compute"
    reshape = next(o for o in merge["operators"] if o["operator"] == "reshape")
    # the fused attention writes its result so that heads merge without a copy, or the merge copies: strides decide
    assert reshape["kind"] == ("copy" if reshape["bytes_allocated"] else "view")
