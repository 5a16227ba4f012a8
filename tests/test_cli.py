"""The `strided` command: running scripts as Python does — arguments, exit codes, tracebacks — and its own messages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from support import run_strided


@pytest.fixture
def script(tmp_path):
    def write(text, name="script.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def python(*words, cwd=None):
    """The same run by Python itself, as the yardstick."""
    done = subprocess.run([sys.executable, *map(str, words)], cwd=cwd, capture_output=True, text=True, encoding="utf-8")
    return done.returncode, done.stdout, done.stderr


# ---- like Python ----------------------------------------------------------------------------

SELF = """
import os, sys
print(sys.argv, __name__, __file__, __spec__, __package__, os.path.realpath(sys.path[0]) == os.path.realpath(os.path.dirname(__file__)))
import __main__
print(__main__.SELF is SELF if (SELF := object()) else None, sorted(k for k in globals() if k.startswith("__")))
"""


def test_arguments_and_identity(script):
    path = script(SELF.replace("__spec__, ", ""))
    words = [path, "--steps", "10", "-m", "x", "--", "--full-traceback"]
    code, out, err = run_strided("run", *words)
    assert (code, err) == (0, "")
    theirs = python(*words)[1]
    assert out.splitlines()[0] == theirs.splitlines()[0]


def test_neighbours_are_importable(script):
    script("VALUE = 7", "neighbour.py")
    path = script("import neighbour; print(neighbour.VALUE)")
    assert run_strided("run", path, cwd="/")[1] == "7\n"


def test_linked_scripts_find_their_neighbours(script, tmp_path):
    script("VALUE = 7", "neighbour.py")
    path = script("import neighbour; print(neighbour.VALUE)")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "linked.py").symlink_to(path)
    assert run_strided("run", folder / "linked.py")[:2] == (0, "7\n")


@pytest.mark.parametrize(
    "text",
    [
        "import sys; sys.exit(3)", "import sys; sys.exit()", "import sys; sys.exit('words')", "raise SystemExit([1, 2])", "import sys; sys.exit(True)", "import sys; sys.exit(-1)", "import sys; sys.exit(300)",
        "def f():\n    raise ValueError('it broke')\nf()\n",
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise KeyError('second')\n",
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('second') from e\n",
        "x = (\n", "def f():\n  x = 1\n y = 2\n", "print('\\xff' + )",
        "import json\njson.loads('{')\n",
        "import no_such_module_anywhere\n",
        "import atexit\natexit.register(lambda: print('bye'))\nraise RuntimeError\n",
        "import sys\nsys.excepthook = lambda *a: print('mine', a[0].__name__, file=sys.stderr)\n1 / 0\n",
    ],
)  # fmt: skip
def test_endings_are_pythons_own(script, text):
    """Exit code, standard output and the whole traceback, word for word."""
    path = script(text)
    assert run_strided("run", path) == python(path)


def test_endless_recursion_is_reported(script):
    code, _, err = run_strided("run", script("def f(n):\n    f(n + 1)\nf(0)\n"))
    assert code == 1 and "[Previous line repeated 9" in err and err.splitlines()[-1].startswith("RecursionError: maximum recursion depth exceeded")


def test_group_and_chained_tracebacks(script):
    if sys.version_info < (3, 11):
        pytest.skip("exception groups came with Python 3.11")
    path = script("raise ExceptionGroup('several', [ValueError('one'), KeyError('two')])\n")
    assert run_strided("run", path) == python(path)


def test_missing_script(tmp_path):
    path = tmp_path / "none.py"
    code, out, err = run_strided("run", path)
    assert (code, out) == (2, "") and err == f"strided run: can't open file '{path}': [Errno 2] No such file or directory\n"


def test_code_and_modules(script, tmp_path):
    code = "import sys; print(sys.argv, repr(sys.path[0]), __name__)"
    assert run_strided("run", "-c", code, "-x", "y")[:2] == python("-c", code, "-x", "y")[:2]
    assert run_strided("run", "-c", "1 / 0") == python("-c", "1 / 0")
    script("import sys; print(sys.argv[1:], __name__, __package__)", "part.py")
    assert run_strided("run", "-m", "part", "-x", cwd=tmp_path)[:2] == python("-m", "part", "-x", cwd=tmp_path)[:2]


def test_folders_with_a_main(script, tmp_path):
    script("import sys; print('main', sys.argv[1:])", "__main__.py")
    assert run_strided("run", tmp_path, "a")[:2] == (0, "main ['a']\n")


def test_folders_without_a_main(tmp_path):
    assert run_strided("run", tmp_path)[0::2] == (1, f"strided: can't find '__main__' module in {str(tmp_path)!r}\n")


def test_a_pickle_of_main_survives(script):
    path = script("import pickle\nclass A:\n    x = 3\nprint(type(pickle.loads(pickle.dumps(A()))) is A)\n")
    assert run_strided("run", path)[1] == "True\n"


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_interrupts_end_in_130(script):
    path = script("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen([sys.executable, "-m", "strided", "run", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and err.rstrip().endswith("KeyboardInterrupt") and "site-packages" not in err and "strided" not in err


# ---- torch is this package ------------------------------------------------------------------


def test_torch_resolves(script):
    path = script("import torch, torch.nn as nn, torch.utils.data\nimport strided\nprint(torch is strided, nn is strided.nn)\n")
    assert run_strided("run", path) == (0, "True True\n", "")


def test_a_missing_part_of_torch_ends_at_the_users_line(script):
    path = script("import torch\nimport torch.no_such_part\n")
    code, _, err = run_strided("run", path)
    lines = err.splitlines()
    assert code == 1 and lines[:3] == ["Traceback (most recent call last):", f'  File "{path}", line 2, in <module>', "    import torch.no_such_part"]
    assert lines[-1].startswith("ModuleNotFoundError: No module named 'torch.no_such_part': strided has no counterpart of it")


DEEP = """import torch
import torch.nn as nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)

    def forward(self, x):
        return self.up(x)

model = nn.Sequential(nn.Linear(4, 6), Block())
model(torch.randn(2, 4))
"""


@pytest.mark.parametrize("words, reason", [("torch import sparse_coo_tensor", "dense"), ("torch.nn import Lineer", "")])
def test_from_imports_say_why_a_name_is_not_here(words, reason):
    code, _, err = run_strided("run", "-c", f"from {words}")
    assert code == 1 and f"ImportError: cannot import name '{words.split()[-1]}' from " in err and reason in err.splitlines()[2 if reason else -1]


def test_a_shape_error_deep_in_a_module(script):
    path = script(DEEP)
    code, _, err = run_strided("run", path)
    assert code == 1
    files = [line for line in err.splitlines() if line.startswith("  File ")]
    assert files == [f'  File "{path}", line 13, in <module>', f'  File "{path}", line 10, in forward']
    assert "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x6 and 4x8)" in err
    assert err.splitlines()[-1].startswith('[in Linear(in_features=4, out_features=8, bias=True) at "1.up"; ')
    code, _, err = run_strided("run", "--full-traceback", path)
    assert code == 1 and err.count("  File ") > 2 and f"{os.sep}strided{os.sep}script.py" not in err


def test_a_broken_module_does_not_hide_the_error(script):
    path = script(DEEP.replace("    def forward", "    def __repr__(self):\n        raise ValueError('no words')\n\n    def forward"))
    code, _, err = run_strided("run", path)
    assert code == 1 and "mat1 and mat2 shapes cannot be multiplied" in err and "no words" not in err


# ---- the command itself ---------------------------------------------------------------------


def test_help_and_version():
    code, out, err = run_strided("--help")
    assert code == 0 and err == "" and all(word in out for word in ("run", "annotate", "inspect"))
    code, out, _ = run_strided("--version")
    assert code == 0 and out.startswith("strided 0.")
    assert run_strided()[0] == 2


@pytest.mark.parametrize("command", ["run", "annotate", "inspect"])
def test_every_commands_help_has_examples(command):
    code, out, _ = run_strided(command, "--help")
    assert code == 0 and "examples:" in out and f"strided {command} " in out


def test_unknown_commands_and_nothing_to_run():
    code, out, err = run_strided("trian")
    assert code == 2 and out == "" and "no command 'trian'" in err
    code, _, err = run_strided("run")
    assert code == 2 and "nothing to run" in err


# ---- a reader that goes away ----------------------------------------------------------------


@pytest.mark.parametrize("words", ["--version", "--help", "number 0.1", "annotate script.py"])
def test_a_closed_pipe_ends_a_command_quietly(script, tmp_path, words):
    script("import torch\ntorch.ones(3) + 1\nprint('words')\n")
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run([sys.executable, "-m", "strided", *words.split()], cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")
