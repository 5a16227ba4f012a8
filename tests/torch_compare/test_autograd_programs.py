"""Small autograd programs: the same text run on both libraries, what each prints (and how it ends) compared line by line.

Programs stand in autograd_programs.txt, each under a line `#### name`, and see their library as `torch`.
"""
import contextlib
import gc
import io
import re
import traceback
import warnings
from pathlib import Path

import pytest

pytorch = pytest.importorskip("torch")

import strided

TEXT = (Path(__file__).parent / "autograd_programs.txt").read_text()
PROGRAMS = dict(re.findall(r"^#### (.*)\n((?:(?!#### ).*\n)*)", TEXT, re.M))


def run(library, name):
    """What the program prints, with a last line for the exception it ends with."""
    printed = io.StringIO()
    names = {"torch": library, "__name__": "program"}
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(compile(re.sub(r"^(from|import) torch", rf"\1 {library.__name__}", PROGRAMS[name], flags=re.M), "<program>", "exec"), names)
        except Exception as error:
            line = traceback.extract_tb(error.__traceback__)[1].lineno
            print(f"line {line}: {type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}")
    for warning in caught:
        if "program" in str(warning.filename) or "Anomaly" in str(warning.message) or "Error detected" in str(warning.message):
            printed.write(f"{warning.category.__name__}: {str(warning.message).splitlines()[0][:100]}\n")
    names.clear()
    gc.collect()
    return re.sub(r"0x[0-9a-f]+", "0x…", printed.getvalue()).replace("strided", "torch")


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    assert run(strided, name).splitlines() == run(pytorch, name).splitlines()
