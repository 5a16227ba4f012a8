"""Fixed examples of fuzz_operators.py, in a process of its own: a crash is a failure like any other."""
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
from hypothesis import HealthCheck, Phase, given, settings
from fuzz_operators import cases, difference, shown

@settings(max_examples=400, deadline=None, database=None, derandomize=True, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
@given(cases())
def examples(case):
    text = difference(case)
    if text is not None:
        print(shown(case), text, sep="\\n")

examples()
"""


def test_operators_on_arbitrary_layouts_do_as_pytorch():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM.format(folder=str(Path(__file__).parent))], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert not done.stdout.strip(), done.stdout[:4000]
