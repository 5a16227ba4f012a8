"""`annotate --rounding`: counts of results that overflowed, vanished, or lost their digits, on hand-made cases; and that the script's own run is untouched."""

from __future__ import annotations

import json

import pytest

import strided as torch
import strided.nn.functional as F
from strided.dispatch import listen
from strided.lens.rounding import Rounding, compare
from support import run_strided


def counts(run, op):
    """What was counted of the operator `op` while `run` ran: {kind: elements}, zeros left out; None where it was not checked."""
    rounding, found = Rounding(), {}

    def after(event):
        counted = rounding.after(event)
        found.setdefault(event.op, counted if counted is None else {kind: n for kind, n in counted.items() if n})

    with listen(after, rounding.before):
        run()
    assert not rounding.unchecked, rounding.unchecked
    return found[op]


def t(values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype)


BF, HALF = torch.bfloat16, torch.float16
CASES = {
    # name: (call, operator, counts)
    "near values": (lambda: t([1.0000001, 2.0, 3.0, 1.001]) - t([1.0, 2.0, 1.0, 1.0]), "sub", {"checked": 4, "cancelled": 1}),
    "opposite signs": (lambda: t([1.0001, 1.0]) + t([-1.0, 1.0]), "add", {"checked": 2, "cancelled": 1}),
    "a scalar": (lambda: t([1.00001, 5.0]) - 1.0, "sub", {"checked": 2, "cancelled": 1}),
    "equal values": (lambda: t([3.0, 4.0]) - t([3.0, 4.0]), "sub", {"checked": 2}),
    "alpha": (lambda: torch.add(t([1.0, 1.0]), t([0.5, 4.0]), alpha=-1.9999), "add", {"checked": 2, "cancelled": 1}),
    "to float16": (lambda: t([70000.0, -65520.0, 65519.0, 1e-9, 0.0, 1.0, 3e-5, 6e-8]).to(HALF), "to", {"checked": 8, "overflowed": 2, "flushed": 1, "subnormal": 2}),
    "to bfloat16": (lambda: t([1.0, 0.1, 1.001, 256.0]).bfloat16(), "bfloat16", {"checked": 4, "lost": 2}),
    "to float8": (lambda: t([500.0, 447.0, 448.0, -1e9, 1e-4, 2.0]).to(torch.float8_e4m3fn), "to", {"checked": 6, "saturated": 2, "flushed": 1, "lost": 1}),
    "back to float32": (lambda: t([1.0, 0.1]).to(BF).float(), "float", {"checked": 2}),
    "exp": (lambda: t([-50.0, -104.0, -200.0, -95.0, 0.0, 89.0]).exp(), "exp", {"checked": 6, "overflowed": 1, "flushed": 2, "subnormal": 1}),
    "square": (lambda: t([1e20, 1e-30, 2.0]) ** 2, "pow", {"checked": 3, "overflowed": 1, "flushed": 1}),
    "small beside large": (lambda: t([1e8, 1e8, 0.0, 1e8]) + t([1.0, 100.0, 1.0, 0.0]), "add", {"checked": 4, "absorbed": 1}),
    "sum of them": (lambda: t([1e8, 1.0, -1e8]).sum(), "sum", {"checked": 1, "lost": 1, "cancelled": 1}),
    "sum that keeps them": (lambda: t([1e8] + [1.0] * 64).sum(), "sum", {"checked": 1}),
    "sum past the largest": (lambda: t([60000.0, 60000.0], HALF).sum(), "sum", {"checked": 1, "overflowed": 1}),
    "rows": (lambda: t([[1.0, -0.99999], [1.0, 1.0]]).sum(1), "sum", {"checked": 2, "cancelled": 1}),
    "softmax in float16": (lambda: F.softmax(t([0.0, -20.0, -10.0, -8.0], HALF), 0), "softmax", {"checked": 4, "flushed": 1, "subnormal": 1}),
    "matmul": (lambda: t([[1.0, 1.0], [1.0, 2.0]]) @ t([[1.0], [-0.99999]]), "matmul", {"checked": 2, "cancelled": 1}),
    "product in float16": (lambda: t([[300.0, 300.0]], HALF) @ t([[300.0], [1.0]], HALF), "matmul", {"checked": 1, "overflowed": 1}),
    "division": (lambda: t([1.0, 1.0]) / t([1e-39, 3.0]), "true_divide", {"checked": 2, "overflowed": 1}),
    "infinity that was there": (lambda: t([float("inf"), float("nan"), 1.0]) * 2, "mul", {"checked": 3}),
    "division by zero": (lambda: t([1.0]) / t([0.0]), "true_divide", {"checked": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_hand_made_cases(name):
    run, op, expected = CASES[name]
    assert counts(run, op) == expected


def test_writes_are_compared_with_what_was_there_before():
    x = t([1.0, 256.0, 2.0], BF)
    step = t([0.001, 3.0, -1.99], BF)
    assert counts(lambda: x.add_(step), "add_") == {"checked": 3, "absorbed": 1, "cancelled": 1}
    assert x.tolist() == [1.0, 260.0, (t([2.0], BF) + t([-1.99], BF)).item()]
    y = torch.zeros(2, dtype=HALF)
    assert counts(lambda: y.copy_(t([1e6, 0.5])), "copy_") == {"checked": 2, "overflowed": 1}
    z = t([1e30, 1.0])
    assert counts(lambda: z.mul_(t([1e30, 2.0])), "mul_") == {"checked": 2, "overflowed": 1}
    out = torch.empty(2)
    assert counts(lambda: torch.exp(t([100.0, 1.0]), out=out), "exp") == {"checked": 2, "overflowed": 1}


def test_what_is_not_checked():
    x = torch.randn(4, 4)
    for run, op in (
        (lambda: x.t(), "t"), (lambda: torch.randn(3), "randn"), (lambda: F.dropout(x, 0.5), "dropout"), (lambda: x.double() + 1, "add"), (lambda: x.clone(), "clone"), (lambda: x > 0, "gt"),
        (lambda: torch.arange(3) + 1, "add"), (lambda: torch.bernoulli(x.abs().clamp(0, 1)), "bernoulli"),
    ):  # fmt: skip
        assert not counts(run, op), op


def test_training_is_checked_forward_and_backward():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 3))
    optimizer = torch.optim.AdamW(model.parameters())
    rounding, phases = Rounding(), {"forward": 0, "backward": 0}

    def after(event):
        phases[event.phase] += (rounding.after(event) or {}).get("checked", 0)

    with listen(after, rounding.before):
        F.cross_entropy(model(torch.randn(5, 4)), torch.tensor([0, 1, 2, 0, 1])).backward()
        optimizer.step()
    assert phases["forward"] > 100 and phases["backward"] > 50 and not rounding.unchecked


def test_watching_changes_nothing():
    def run():
        torch.manual_seed(0)
        model = torch.nn.Linear(6, 6)
        x = F.dropout(torch.randn(5, 6), 0.5)
        loss = model(x).softmax(-1).log().sum()
        loss.backward()
        x[0] += 1
        return [loss.item(), model.weight.grad.tolist(), x.tolist(), torch.rand(3).tolist()]

    expected, rounding = run(), Rounding()
    with listen(rounding.after, rounding.before):
        assert run() == expected


def test_compare_counts_each_element_once():
    y = t([float("inf"), 0.0, 2.0**-149, 1.0, 1.1, 0.0, 3.0])
    r = t([1e39, 1e-50, 1.2e-45, 1.0, 1.0, 1.0, float("inf")], torch.float64)
    found = compare(y, r, 24)
    assert {k: v for k, v in found.items() if v} == {"checked": 7, "overflowed": 1, "flushed": 1, "subnormal": 1, "lost": 2}


SCRIPT = """import torch
import torch.nn.functional as F

a = torch.tensor([1.0000001, 2.0])
c = a - 1.0


def narrow(x):
    return x.to(torch.float16)


for scale in (1.0, 1e6):
    h = narrow(torch.tensor([0.5, 1.0]) * scale)
torch.set_float32_matmul_precision("medium")
y = torch.ones(2, 2) @ torch.ones(2, 2)
print(float(c[0]), h.tolist())
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def test_the_report(script, tmp_path):
    code, out, err = run_strided("annotate", "--rounding", "--json", "-o", tmp_path / "r.json", script)
    assert code == 0 and "[inf, inf]" in out
    report = json.loads((tmp_path / "r.json").read_text())
    by_line = {entry["line"]: {o["operator"]: o for o in entry.get("operators", ())} for entry in report["lines"]}
    assert by_line[5]["sub"]["rounding"] == {"checked": 2, "cancelled": 1}
    assert by_line[9]["to"]["rounding"] == {"checked": 4, "overflowed": 2} and by_line[9]["to"]["calls"] == 2
    assert by_line[15]["matmul"]["operands"] == "bf16" and by_line[15]["matmul"]["rounding"] == {"checked": 4}
    totals = report["totals"]["rounding"]
    assert totals["overflowed"] == 2 and totals["cancelled"] == 1 and totals["unchecked"] == {}
    assert [(line["line"], line.get("overflowed", 0)) for line in totals["lines"]] == [(5, 0), (9, 2)]


def test_the_terminal_and_the_page(script, tmp_path):
    code, out, _ = run_strided("annotate", "--rounding", "--width", "120", script)
    assert code == 0 and "rounding: 2 of 4 overflowed to infinity or NaN" in out and "rounding: 1 of 2 cancelled" in out and "operands rounded to bf16" in out
    assert "line 9: 2 of 4 overflowed" in out
    code, _, _ = run_strided("annotate", "--rounding", "--html", tmp_path / "page.html", script)
    page = (tmp_path / "page.html").read_text()
    assert code == 0 and "2 of 4 overflowed to infinity or NaN" in page and "operands rounded to bf16" in page
    code, out, _ = run_strided("annotate", "--width", "120", script)
    assert "rounding:" not in out and "rounding " not in out.replace("operands rounded", "")


def test_memory_of_the_second_run_is_not_the_scripts(tmp_path):
    path = tmp_path / "memory.py"
    path.write_text("import torch\nx = torch.ones(1 << 16)\ny = x * 2\nz = y.exp()\n")
    peaks = []
    for words in ([], ["--rounding"]):
        code, _, _ = run_strided("annotate", *words, "--json", "-o", tmp_path / "m.json", path)
        assert code == 0
        peaks.append(json.loads((tmp_path / "m.json").read_text())["totals"]["peak_memory"])
    assert peaks[0] == peaks[1] == 3 * (1 << 18)
