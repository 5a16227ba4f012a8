"""Random keys and random printed tensors do what PyTorch did once (golden/cases.json holds a checksum a case, golden/make_cases.py made them)."""
import importlib.util
import json
import pathlib

import pytest

import strided

HERE = pathlib.Path(__file__).parent / "golden"
_spec = importlib.util.spec_from_file_location("make_cases", HERE / "make_cases.py")
make_cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_cases)
GOLDEN = json.loads((HERE / "cases.json").read_text())


@pytest.mark.parametrize("name", GOLDEN)
def test_outcomes(name):
    module, sums = make_cases.load(name), GOLDEN[name]
    assert len(sums) == 8 * make_cases.COUNTS[name]
    for seed in range(make_cases.COUNTS[name]):
        text = make_cases.outcome(name, module, seed, strided)
        assert make_cases.checksum(text) == sums[8 * seed : 8 * seed + 8], f"{module.Case(seed)}\n{text}"
