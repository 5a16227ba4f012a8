"""Modules and functions against values PyTorch gave once (golden/nn.json): results, gradients, and draws from the generator."""
import importlib.util
import json
import pathlib

import pytest

import strided as torch
import strided.nn as nn
import strided.nn.functional as F

HERE = pathlib.Path(__file__).parent / "golden"
_spec = importlib.util.spec_from_file_location("make_nn", HERE / "make_nn.py")
make_nn = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_nn)
CASES = json.loads((HERE / "nn.json").read_text())


@pytest.mark.parametrize("text,shapes,expected", CASES, ids=[c[0] for c in CASES])
@pytest.mark.filterwarnings("ignore")
def test_golden(text, shapes, expected):
    found = make_nn.run(torch, nn, F, text, *shapes)
    assert len(found) == len(expected) and found[-1] == expected[-1]
    for mine, theirs in zip(found[:-1], expected[:-1]):
        assert mine[0] == theirs[0]
        assert mine[1:] == pytest.approx(theirs[1:], rel=1e-4, abs=1e-4)
