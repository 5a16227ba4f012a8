"""`strided annotate`: verdicts, bytes and FLOPs of the shipped example against counts done by hand; loops, folding, warnings, failures."""
import json
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"


def annotate(script, *options, arguments=(), code=0):
    """The report of a run of `strided annotate --json`."""
    done = subprocess.run([sys.executable, "-m", "strided", "annotate", "--json", *options, str(script), *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout), done


def write(tmp_path, text):
    path = tmp_path / "script.py"
    path.write_text(text)
    return path


def line_with(report, fragment):
    (found,) = [entry for entry in report["lines"] if fragment in entry["source"] and "operators" in entry]
    return found


def only_operator(report, fragment):
    (operator,) = line_with(report, fragment)["operators"]
    return operator


@pytest.fixture(scope="module")
def attention():
    return annotate(EXAMPLES / "attention.py")[0]


# B, T, D, H, K of examples/attention.py
B, T, D, H, K = 2, 128, 512, 8, 64
PROJECTION = 2 * (B * T) * D * D
SCORES = 2 * B * H * T * T * K
EXPECTED = {  # line fragment: operators as (name, verdict, shape, strides, bytes allocated, FLOPs)
    "w_query = ": [("randn", "create", [D, D], [D, 1], 4 * D * D, 0), ("div", "compute", [D, D], [D, 1], 4 * D * D, D * D)],
    "x = embedding[tokens]": [("index", "copy", [B, T, D], [T * D, D, 1], 4 * B * T * D, 0)],
    "q = (x @ w_query)": [
        ("matmul", "compute", [B, T, D], [T * D, D, 1], 4 * B * T * D, PROJECTION),
        ("view", "view", [B, T, H, K], [T * D, D, K, 1], 0, 0),
        ("transpose", "view", [B, H, T, K], [T * D, K, D, 1], 0, 0),
    ],
    "scores = q @": [
        ("transpose", "view", [B, H, K, T], [T * D, K, 1, D], 0, 0),
        ("matmul", "compute", [B, H, T, T], [H * T * T, T * T, T, 1], 4 * B * H * T * T, SCORES),
        ("div", "compute", [B, H, T, T], [H * T * T, T * T, T, 1], 4 * B * H * T * T, B * H * T * T),
    ],
    "future = ": [("ones", "create", [T, T], [T, 1], T * T, 0), ("triu", "compute", [T, T], [T, 1], T * T, 0)],
    "scores = scores.masked_fill": [("masked_fill", "compute", [B, H, T, T], [H * T * T, T * T, T, 1], 4 * B * H * T * T, 0)],
    # subtract the row's maximum, exp, add up, divide: four a element
    "weights = torch.softmax": [("softmax", "compute", [B, H, T, T], [H * T * T, T * T, T, 1], 4 * B * H * T * T, 4 * B * H * T * T)],
    "mixed = weights @ v": [("matmul", "compute", [B, H, T, K], [H * T * K, T * K, K, 1], 4 * B * H * T * K, SCORES)],
    "merged = mixed.transpose": [
        ("transpose", "view", [B, T, H, K], [H * T * K, K, T * K, 1], 0, 0),
        ("contiguous", "copy", [B, T, H, K], [T * D, D, K, 1], 4 * B * T * D, 0),
    ],
    "merged = merged.view": [("view", "view", [B, T, D], [T * D, D, 1], 0, 0)],
    "out = merged @ w_out": [("matmul", "compute", [B, T, D], [T * D, D, 1], 4 * B * T * D, PROJECTION)],
}


@pytest.mark.parametrize("fragment", EXPECTED)
def test_attention_by_hand(attention, fragment):
    operators = line_with(attention, fragment)["operators"]
    found = [(o["operator"], o["kind"], o["shape"], o["strides"], o["bytes_allocated"], o["flops"]) for o in operators]
    assert found == EXPECTED[fragment]


def test_attention_totals(attention):
    totals = attention["totals"]
    first = [e for e in attention["lines"] if "operators" in e and not e["source"].startswith("print")]
    # four scaled weights, four projections, two products of scores, the scaling, softmax
    assert sum(e["flops"] for e in first) == 4 * D * D + 4 * PROJECTION + 2 * SCORES + B * H * T * T + 4 * B * H * T * T
    assert totals["copies_that_could_be_views"] == [] and totals["suspicious"] == []
    assert totals["largest_tensors"][0]["shape"] == [5000, D] and totals["largest_tensors"][0]["bytes"] == 4 * 5000 * D
    # alive together at most: embedding, weights (each scaled copy meets its unscaled one), then the activations
    assert 4 * 5000 * D < totals["peak_memory"] <= totals["bytes_allocated"]


def test_reasons_name_strides(attention):
    contiguous = line_with(attention, "merged = mixed.transpose")["operators"][1]
    assert str((H * T * K, K, T * K, 1)) in contiguous["reason"]


def test_loops_are_summarised(tmp_path):
    report, _ = annotate(write(tmp_path, "import torch\nx = torch.zeros(0, 4)\nfor i in range(5):\n    x = torch.cat([x, torch.ones(1, 4)])\n    y = x + 1\n"))
    line = line_with(report, "y = x + 1")
    assert line["visits"] == 5
    (add,) = line["operators"]
    assert (add["calls"], add["shape_count"], add["shapes"][0], add["shape"]) == (5, 5, [1, 4], [5, 4])
    assert add["flops"] == 4 * (1 + 2 + 3 + 4 + 5)


def test_library_frames_fold_into_the_users_line(tmp_path):
    report, _ = annotate(write(tmp_path, "import torch\nlayer = torch.nn.Linear(8, 16)\nx = torch.ones(4, 8)\ny = layer(x)\ny.sum().backward()\n"))
    (linear,) = line_with(report, "y = layer(x)")["operators"]
    assert linear["in_library"] and linear["shape"] == [4, 16] and linear["flops"] == 2 * 4 * 8 * 16 + 4 * 16
    backward = line_with(report, "backward()")["operators"]
    products = [o for o in backward if o.get("phase") == "backward" and o["flops"] >= 2 * 4 * 8 * 16]
    assert products, backward  # the gradient of the weight is a product of the same size
    assert report["totals"]["flops_by_phase"]["backward"] > 0


def test_broadcasting_both_operands_is_suspicious(tmp_path):
    report, done = annotate(write(tmp_path, "import torch\na = torch.ones(64, 1)\nb = torch.ones(64)\nloss = a - b\nfine = a - torch.ones(64, 8)\n"))
    assert "suspicious" in only_operator(report, "loss = a - b")
    assert not any("suspicious" in o for o in line_with(report, "fine =")["operators"])
    assert report["totals"]["suspicious"][0]["line"] == 4
    assert "[64, 1] and [64] became [64, 64]" in report["totals"]["suspicious"][0]["what"]


def test_copies_that_could_have_been_views(tmp_path):
    text = "import torch\nx = torch.ones(3, 4)\ny = x.t().contiguous()\nz = y @ x\nw = x[:1].repeat(8, 1)\nv = w + 1\nneeded = x.t().contiguous().view(12)\n"
    report, _ = annotate(write(tmp_path, text))
    assert [(c["line"], c["operator"]) for c in report["totals"]["copies_that_could_be_views"]] == [(5, "repeat"), (3, "contiguous")]


def test_only_one_function(tmp_path):
    text = "import torch\ndef f(x):\n    return x + 1\ndef g(x):\n    return x * 2\nx = torch.ones(3)\nf(x)\ng(x)\n"
    report, _ = annotate(write(tmp_path, text), "--only", "g")
    assert [e["line"] for e in report["lines"] if "operators" in e] == [5]
    done = subprocess.run([sys.executable, "-m", "strided", "annotate", "--only", "h", str(write(tmp_path, text))], capture_output=True, text=True)
    assert done.returncode == 2 and "inside 'h'" in done.stderr and "f, g" in done.stderr and "peak" not in done.stdout


def test_only_names_functions_of_the_folder(tmp_path):
    write(tmp_path, "import torch, wave\nfrom collections import namedtuple\nP = namedtuple('P', 'a b')\ndef f(x):\n    return x + P(1, 2).a\nf(torch.ones(3))\n")
    done = subprocess.run([sys.executable, "-m", "strided", "annotate", "--only", "h", "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.rstrip().endswith("called were: f")  # not the import machinery's, which has no files


def test_a_failing_script_is_annotated_up_to_its_error(tmp_path):
    report, done = annotate(write(tmp_path, "import torch\nx = torch.ones(2, 3)\ny = x @ x\nz = x + 1\n"), code=1)
    assert "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)" in done.stderr
    assert only_operator(report, "x = torch.ones")["shape"] == [2, 3]
    assert "operators" not in report["lines"][3]


def test_exit_code_is_the_scripts(tmp_path):
    annotate(write(tmp_path, "import sys, torch\ntorch.ones(2)\nsys.exit(7)\n"), code=7)


def test_script_output_does_not_mix_with_json(tmp_path):
    _, done = annotate(write(tmp_path, "import torch\nprint(torch.ones(2))\n"))
    assert "tensor([1., 1.])" in done.stderr


def test_terminal_at_both_widths(tmp_path):
    script = EXAMPLES / "attention.py"
    for width in (80, 140):
        done = subprocess.run([sys.executable, "-m", "strided", "annotate", "--width", str(width), str(script)], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert max(map(len, lines)) <= width
        text = " ".join(done.stdout.split())
        assert "134 MFLOP" in text and "copied: strides" in text and "at the peak" in text


def test_page_is_self_contained(tmp_path):
    page = tmp_path / "page.html"
    done = subprocess.run([sys.executable, "-m", "strided", "annotate", "--html", str(page), str(EXAMPLES / "attention.py")], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert not re.search(r"""(src|href)=|https?://|@import|<script""", text)
    assert 'name="viewport"' in text and "[2, 8, 128, 128]" in text and "134 MFLOP" in text


def test_threads_and_missing_file(tmp_path):
    done = subprocess.run([sys.executable, "-m", "strided", "annotate", str(tmp_path / "none.py")], capture_output=True, text=True)
    assert done.returncode == 2 and "No such file" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("call", "count"),
    [
        ("torch.nn.functional.layer_norm(x, (8,), w, w)", 7 * 32),
        ("torch.nn.functional.layer_norm(x, (8,))", 5 * 32),
        ("torch.nn.functional.rms_norm(x, (8,), w)", 4 * 32),
        ("torch.softmax(x, 1)", 4 * 32),
        ("torch.nn.functional.gelu(x)", 5 * 32),
        ("x.sum(1)", 32),
        ("x.mean()", 32),
        ("x @ x.t()", 2 * 4 * 4 * 8),
        ("torch.nn.functional.linear(x, x, w[:4])", 2 * 4 * 4 * 8 + 16),
        ("torch.einsum('ij,kj->ik', x, x)", 2 * 4 * 4 * 8),
        ("torch.addmm(w[:4], x, x.t())", 2 * 4 * 4 * 8 + 16),
        ("torch.bmm(x[None], x.t()[None])", 2 * 4 * 4 * 8),
        ("x * 2 + 1", 64),
        ("torch.add(x, x, alpha=3)", 64),
        ("x.clone().sub_(x, alpha=3)", 64),
        ("x > 0", 0),
        ("x.clone()", 0),
        ("torch.cat([x, x])", 0),
        ("x.max(1)", 0),
    ],
)
def test_flops(call, count):
    import strided as torch
    from strided import dispatch

    x, w = torch.ones(4, 8), torch.ones(8)
    found = []
    with dispatch.listen(lambda event: found.append(event.flops)):
        eval(call, {"torch": torch, "x": x, "w": w})
    assert sum(found) == count


def test_events_of_calls_by_keyword():
    import strided as torch
    from strided import dispatch

    found = []
    with dispatch.listen(lambda event: found.append((event.op, event.flops))):
        x = torch.ones(2, 3)
        torch.sum(input=x)
        torch.softmax(input=x, dim=1)
        torch.mm(input=x, mat2=x.t())
        x.sum(dim=1, keepdim=True)
    assert [f for f in found if f[1]] == [("sum", 6), ("softmax", 24), ("mm", 2 * 2 * 2 * 3), ("sum", 6)]


def test_copies_that_later_writes_need_are_not_blamed(tmp_path):
    text = (
        "import torch\na = torch.ones(3, 4)\nl = a.t().contiguous()\na += 1\ns = l.sum()\n"
        "b = torch.ones(3, 4)\nv = b.view(-1)\nm = b.t().contiguous()\nv[0] = 100.0\nn = m * 2\n"
        "d = torch.ones(2, 1).repeat(1, 5)\nd[0, 0] = 1\ne = d + 1\n"
    )
    report, _ = annotate(write(tmp_path, text))
    assert report["totals"]["copies_that_could_be_views"] == []


def test_repeated_findings_are_one_line(tmp_path):
    report, _ = annotate(write(tmp_path, "import torch\na = torch.ones(3, 4)\nfor i in range(50):\n    b = a.t().contiguous()\n    c = b + 1\n"))
    (found,) = report["totals"]["copies_that_could_be_views"]
    assert (found["line"], found["count"], found["bytes"]) == (4, 50, 50 * 48)


def test_out_is_in_place(tmp_path):
    text = "import torch\nx = torch.ones(4, 4)\no = torch.empty(4, 4)\ntorch.add(x, 1, out=o)\ntorch.matmul(x, x, out=o)\nbig = torch.empty(8, 4)\ntorch.cat([x, x], out=big)\n"
    report, _ = annotate(write(tmp_path, text))
    for fragment, flops in (("torch.add(", 16), ("torch.matmul(", 128), ("torch.cat(", 0)):
        operator = only_operator(report, fragment)
        assert (operator["kind"], operator["bytes_allocated"], operator["flops"]) == ("inplace", 0, flops), fragment


def test_a_call_into_library_code_shows_what_it_returned(tmp_path):
    report, _ = annotate(write(tmp_path, "import torch\nnet = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8), torch.nn.Tanh(), torch.nn.Linear(8, 2))\ny = net(torch.ones(3, 4))\n"))
    operators = line_with(report, "y = net(")["operators"]
    assert {tuple(o["returned"]["shape"]) for o in operators if o.get("in_library")} == {(3, 2)}
    from strided.lens.wording import folded_summary

    merged = [o for o in folded_summary(operators) if "operators" in o["operator"]]
    assert [o["shape"] for o in merged] == [[3, 2]]


def test_neighbouring_files_are_annotated_too(tmp_path):
    (tmp_path / "model.py").write_text("def forward(x):\n    return x @ x + 1\n")
    report, _ = annotate(write(tmp_path, "import torch, model\ny = model.forward(torch.ones(2, 2))\n"))
    (module,) = report["modules"]
    assert module["file"].endswith("model.py")
    assert [o["operator"] for o in module["lines"][1]["operators"]] == ["matmul", "add"]
    assert line_with(report, "y = model")["flops"] == 2 * 8 + 4 == report["totals"]["flops"]
    only, _ = annotate(tmp_path / "script.py", "--only", "forward")
    assert only["totals"]["operators"] == 2


def test_modules_run_by_name(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "work.py").write_text("import torch\nx = torch.ones(3) + 1\n")
    done = subprocess.run([sys.executable, "-m", "strided", "annotate", "--json", "-m", "pkg.work"], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    assert line_with(json.loads(done.stdout), "x = torch")["flops"] == 3


@pytest.mark.parametrize("width", ["0", "1", "-5", "20"])
def test_absurd_widths_end(tmp_path, width):
    path = write(tmp_path, "import torch\nx = torch.ones(3) + 1\n")
    done = subprocess.run([sys.executable, "-m", "strided", "annotate", "--width", width, str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "1 FLOP" not in done.stderr and "3 FLOP" in done.stdout


def test_output_paths_are_checked_before_the_run(tmp_path):
    path = write(tmp_path, "import torch\nprint('ran')\ntorch.ones(2)\n")
    before = path.read_text()
    for options in (["--html", str(tmp_path / "none" / "x.html")], ["--json", "-o", str(tmp_path / "none" / "x.json")], ["--html", str(path)]):
        done = subprocess.run([sys.executable, "-m", "strided", "annotate", *options, str(path)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "can't write" in done.stderr and "ran" not in done.stdout and "Traceback" not in done.stderr
    assert path.read_text() == before


def test_a_report_of_what_compile_did_takes_no_option_of_the_other_one(tmp_path):
    path = write(tmp_path, "import torch\nprint('ran')\n")
    for options in (["--html", "x.html"], ["--rounding"], ["--only", "f"], ["-o", "x.json", "--json"], ["--width", "80"]):
        done = subprocess.run([sys.executable, "-m", "strided", "annotate", "--compiled", *options, str(path)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "leave --" in done.stderr and "ran" not in done.stdout and "Traceback" not in done.stderr


def test_peak_of_a_small_script_is_no_more_than_it_allocates(tmp_path):
    report, _ = annotate(write(tmp_path, "import torch\nx = torch.randn(16)\ny = torch.ones(16)\n"))
    assert report["totals"]["peak_memory"] == report["totals"]["bytes_allocated"] == 128


def test_index_writes_show_what_was_written(tmp_path):
    report, _ = annotate(write(tmp_path, "import torch\nx = torch.zeros(3, 4)\nx[0] = 5\na, b = x.split(2)\n"))
    write_row = line_with(report, "x[0] = 5")["operators"][-1]
    assert write_row["kind"] == "inplace" and write_row["dtype"] == "float32"
    assert line_with(report, "a, b =")["operators"][0]["results"] == [[2, 4], [1, 4]]
