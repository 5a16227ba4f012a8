"""What users ran into, each as the few lines that showed it: errors, second backward passes, child processes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest

import strided as torch
from strided import nn
from strided.nn import functional as F
from support import run_strided

# ---- errors begin with the user's own mistake ---------------------------------------------------


def _x():
    return torch.ones(2, 3)


MISTAKES = {
    "Linear": lambda: nn.Linear(4, 8)(torch.ones(2, 5)),
    "Linear dtype": lambda: nn.Linear(2, 3)(torch.ones(4, 2, dtype=torch.long)),
    "F.linear": lambda: F.linear(1, _x()),
    "matmul": lambda: _x() @ _x(),
    "matmul type": lambda: torch.matmul(_x(), 3),
    "mm": lambda: torch.mm(_x(), 3),
    "bmm": lambda: torch.bmm(_x(), _x()),
    "addmm": lambda: torch.addmm(_x(), _x(), _x()),
    "add": lambda: _x() + torch.ones(2, 4),
    "mul type": lambda: _x() * "a",
    "add type": lambda: torch.add(_x(), None),
    "mul_": lambda: _x().mul_(torch.ones(5)),
    "mul_ type": lambda: _x().mul_("a"),
    "exp": lambda: torch.exp(3),
    "view": lambda: _x().view(5),
    "reshape": lambda: _x().reshape(4, 4),
    "reshape type": lambda: _x().reshape("a"),
    "transpose": lambda: _x().transpose(0, 5),
    "t": lambda: torch.ones(1, 2, 3).t(),
    "permute": lambda: _x().permute(0, 0),
    "unsqueeze": lambda: _x().unsqueeze(7),
    "squeeze": lambda: _x().squeeze(9),
    "expand": lambda: _x().expand(4, 3),
    "select": lambda: _x().select(0, 9),
    "index": lambda: _x()[5],
    "index dims": lambda: _x()[0, 0, 0],
    "index tensor": lambda: _x()[torch.tensor([9])],
    "index order": lambda: _x()[9, [1.5]],
    "index type": lambda: _x()["a"],
    "sum": lambda: _x().sum(5),
    "max": lambda: _x().max(4),
    "softmax": lambda: _x().softmax(3),
    "cat": lambda: torch.cat([_x(), torch.ones(3, 4)]),
    "ones": lambda: torch.ones(-1),
    "ones list": lambda: torch.ones([1, -1]),
    "ones device": lambda: torch.ones(2, device="foo"),
    "tensor": lambda: torch.tensor([2**70]),
    "cross_entropy": lambda: F.cross_entropy(_x(), torch.tensor([0])),
    "conv2d": lambda: F.conv2d(torch.ones(1, 3, 4, 4), torch.ones(2, 2, 2, 2)),
    "module attribute": lambda: nn.Linear(1, 1).nope,
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_errors_have_nothing_internal_behind_them(mistake):
    with pytest.raises(Exception) as caught:
        MISTAKES[mistake]()
    error = caught.value
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)


def test_linear_names_its_operands_by_dtype():
    with pytest.raises(RuntimeError) as caught:
        nn.Linear(2, 3)(torch.ones(4, 2, dtype=torch.long))
    message = str(caught.value)
    assert message.startswith("mat1 and mat2 must have the same dtype, but got Long and Float\n")
    assert " input: torch.int64\n" in message and "weight: torch.float32\n" in message and "input.to(torch.float32)" in message
    with pytest.raises(RuntimeError, match="^self and mat2 must have the same dtype, but got Double and Float\n"):
        F.linear(torch.ones(4, 2), torch.ones(3, 2), torch.ones(3).double())


def test_negative_sizes():
    for make in (torch.ones, torch.empty, torch.rand):
        with pytest.raises(RuntimeError, match=r"^Trying to create tensor with negative dimension -1: \[-1\]"):
            make(-1)
    with pytest.raises(RuntimeError, match="^zeros: Dimension size must be non-negative"):  # PyTorch's own words differ here
        torch.zeros(2, -1)


# ---- a second backward pass ---------------------------------------------------------------------

TWICE = {"x * 2": lambda x: x * 2, "2 * x": lambda x: 2 * x, "x / 2": lambda x: x / 2, "mul_": lambda x: x.clone().mul_(2), "div floor": lambda x: torch.div(x, 2, rounding_mode="floor"), "pow": lambda x: x**2}
FREELY = {"x + 2": lambda x: x + 2, "2 - x": lambda x: 2 - x, "-x": lambda x: -x, "x % 2": lambda x: x % 2, "floor": lambda x: x.floor(), "sum": lambda x: x.sum()}


@pytest.mark.parametrize("form", TWICE)
def test_refused_where_pytorch_saves_a_number(form):
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    y = TWICE[form](x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second time"):
        y.sum().backward()


@pytest.mark.parametrize("form", FREELY)
def test_allowed_where_pytorch_saves_nothing(form):
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    y = FREELY[form](x).sum()
    y.backward()
    once = x.grad.clone()
    y.backward()
    assert torch.equal(x.grad, 2 * once)


# ---- names ---------------------------------------------------------------------------------------


def test_tensors_print_as_torch_under_the_alias_and_are_pickled():
    from strided.torch_alias import installed, torch_alias

    x = torch.arange(3.0)
    assert torch.equal(pickle.loads(pickle.dumps(x)), x) and pickle.loads(pickle.dumps(torch.Tensor)) is torch.Tensor
    if installed() or "torch" in sys.modules:
        pytest.skip("PyTorch itself is imported")
    with torch_alias():
        assert repr(type(x)) == "<class 'torch.Tensor'>"
        assert torch.equal(pickle.loads(pickle.dumps(x)), x) and pickle.loads(pickle.dumps(torch.Tensor)) is torch.Tensor
    assert torch.Tensor.__module__ == "strided.tensor"


# ---- processes that a script starts -----------------------------------------------------------------

CHILDREN = """
import multiprocessing, subprocess, sys
import torch
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.tensor(float(i * i))

def kind(x):
    import torch, torch.nn, safetensors.torch
    return torch.__name__, torch.nn.Linear.__module__, float(x.sum()), safetensors.torch.__name__

if __name__ == "__main__":
    for method in ("spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(*pool.map(kind, [torch.ones(3)])[0])
    print([b.tolist() for b in DataLoader(Squares(), batch_size=2, num_workers=1, multiprocessing_context="spawn")])
    for code in ("import torch; print(torch.__name__)", "from torch import nn; print(nn.Linear(1, 2))", "import safetensors.torch as s; print(s.__name__)"):
        print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip())
"""


def test_child_processes_have_the_alias(tmp_path):
    path = tmp_path / "children.py"
    path.write_text(CHILDREN)
    code, out, err = run_strided("run", path)
    one = "strided strided.nn.modules.linear 3.0 strided.io.safetensors"
    assert (code, err) == (0, "")
    assert out.splitlines() == [one, one, "[[0.0, 1.0], [4.0, 9.0]]", "strided", "Linear(in_features=1, out_features=2, bias=True)", "strided.io.safetensors"]


def test_the_alias_ends_with_the_run(tmp_path):
    """A user's PYTHONPATH is kept behind the stand-in's folder; a Python without strided gets PyTorch, or the usual error, from it."""
    show = "import os; print(os.environ['PYTHONPATH'].split(os.pathsep)[1:])"
    assert run_strided("run", "-c", show, env={"PYTHONPATH": os.pathsep.join(["/a", "/b"])})[1] == "['/a', '/b']\n"
    stand_in = os.path.join(os.path.dirname(torch.__file__), "_child")
    (tmp_path / "torch.py").write_text("MEANT = 1")
    bare = f"import sys; sys.path[:] = [{stand_in!r}, {str(tmp_path)!r}, *[p for p in sys.path if 'packages' not in p and p]]; sys.meta_path = [m for m in sys.meta_path if 'ditable' not in repr(m)]; import torch; print(torch.MEANT)"
    done = subprocess.run([sys.executable, "-S", "-c", bare], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""})
    assert done.stdout == "1\n", done.stderr


def test_annotate_too(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("import subprocess, sys, torch\nx = torch.ones(2)\nprint(subprocess.run([sys.executable, '-c', 'import torch; print(torch.__name__)'], capture_output=True, text=True).stdout)\n")
    assert "strided\n" in run_strided("annotate", path)[1]


# ---- the command's words ------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["-c", "-m"])
def test_option_without_its_argument(option):
    code, out, err = run_strided("run", option)
    assert code == 2 and err.splitlines()[-1].endswith(f"Argument expected for the {option} option") and "A..." not in err


def test_no_such_module(tmp_path):
    assert run_strided("run", "-m", "nope") == (1, "", "strided: No module named nope\n")
    (tmp_path / "broken.py").write_text("import nope_either")  # one that is there and fails keeps its traceback
    code, out, err = run_strided("run", "-m", "broken", cwd=tmp_path)
    assert code == 1 and "Traceback" in err and "broken.py" in err and "nope_either" in err


def test_standard_input():
    text = "import sys, torch; print(sys.argv, torch.__name__, __name__, '__file__' in globals())"
    done = subprocess.run([sys.executable, "-m", "strided", "run", "-", "a", "-b"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "['-', 'a', '-b'] strided __main__ False\n", "")


# ---- checkpoints and examples ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("model.pt", None, "a zip archive, such as torch.save writes, is no safetensors file: read it with torch.load"),
        ("old.pt", b"\x80\x02\x8a\nl\xfcF\xf9j\xa8P\x19.", "a pickle, such as torch.save wrote before PyTorch 1.6, is no safetensors file"),
        ("config.json", b'{"hidden_size": 3}', "no index of a checkpoint: it has no weight_map"),
        ("m.safetensors.index.json", b'{"weight_map": {', "the index is not JSON"),
        ("m.safetensors.index.json", b"", "the index must begin with '{', it is empty"),
        ("list.json", b"[1]", "the file must begin with '{', it begins with b'['"),
    ],
)
def test_inspect_names_what_a_file_is_instead(tmp_path, name, content, says):
    path = tmp_path / name
    if content is None:
        torch.save({"a": torch.ones(2)}, path)
    else:
        path.write_bytes(content)
    code, out, err = run_strided("inspect", path)
    assert (code, out) == (1, "") and err.startswith(f"strided inspect: {path}: {says}") and "header" not in err and err.count("\n") == 1


def test_inspect_writes_no_control_characters(tmp_path, make_file):
    name = "a\x1b[31m\x9b31mred"
    path = make_file({name: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, bytes(8))
    for words in (("--csv", "-"), ("--json",), ()):
        out = run_strided("inspect", path, *words)[1]
        assert not any(c != "\n" and not c.isprintable() for c in out) and "31mred" in out
    run_strided("inspect", path, "--csv", tmp_path / "all.csv")
    assert name in (tmp_path / "all.csv").read_text(encoding="utf-8")  # a file is data: names as they are


def test_inspect_keeps_to_the_terminal(make_file):
    names = ["embeddings.LayerNorm.bias", "embeddings.position_ids", "embeddings.word_embeddings.weight", "model.layers.0.a_very_long_module_name_indeed.another_one_that_is_long.weight"]
    path = make_file({name: {"dtype": "F32", "shape": [2], "data_offsets": [8 * i, 8 * i + 8]} for i, name in enumerate(names)}, bytes(32))
    lines = run_strided("inspect", path, env={"COLUMNS": "80"})[1].splitlines()[1:]
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line == "embeddings"] == ["embeddings"]  # one heading for neighbours of any depth


def test_example_says_what_to_install(tmp_path):
    example = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples", "sentence_similarity.py")
    (tmp_path / "tokenizers.py").write_text("raise ModuleNotFoundError(\"No module named 'tokenizers'\", name='tokenizers')")
    assert run_strided("run", example, env={"PYTHONPATH": str(tmp_path)}) == (1, "", "sentence_similarity.py needs the package tokenizers: pip install tokenizers\n")
