"""The pages and stubs that are generated from the code are those of this code, and what is left out on purpose says why."""
import ast
import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import strided as torch
from strided.refused import REFUSED, Refused, absent, why

ROOT = Path(__file__).resolve().parent.parent
# Names of the table that exist and refuse when they are called, with arguments that would be right in PyTorch.
CALLS = {
    "torch.Tensor.cuda": lambda: torch.ones(2).cuda(),
    "torch.distributed.distribute_module": lambda: torch.distributed.distribute_module(torch.nn.Linear(2, 2)),
}
MODULES = ("torch.cuda", "torch.mps", "torch.xpu", "torch.accelerator", "torch.distributed")  # here, as scripts probe them; all else under them is refused


def tool(name):
    spec = importlib.util.spec_from_file_location(f"strided_tools_{name}", ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def resolve(name):
    value = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def test_coverage_page_is_current():
    coverage = tool("coverage")
    assert coverage.PAGE.read_text() == coverage.page(), "python tools/coverage.py"


def test_statuses():
    status = tool("coverage").status
    assert status("torch.zeros") == status("torch.newaxis") == status("torch.version.cuda") == status("torch.utils.data.distributed.DistributedSampler") == "here"
    assert status("torch.cuda.is_available") == "here" and status("torch.cuda.get_device_name") == "refused"
    assert status("torch.distributed.get_rank") == "here" and status("torch.distributed.init_device_mesh") == "refused"
    assert status("torch.Tensor.to_sparse_csr") == "refused"
    assert status("torch.no_such_name") == status("torch.nn.functional.no_such_name") == "absent"


@pytest.mark.parametrize("name", sorted(set(REFUSED) - set(CALLS) - set(MODULES)))
def test_refused_names_say_why(name):
    with pytest.raises(Refused) as caught:
        resolve(name)
    reason, instead = REFUSED[name]
    holder, last = name.rsplit(".", 1)
    text = str(caught.value)
    if f"has no attribute '{last}'" in text:  # (else a module around it already refused, with its own reason)
        assert text.endswith(f"has no attribute '{last}': {reason}; {instead}")
    assert isinstance(caught.value, AttributeError) and isinstance(caught.value, NotImplementedError)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_refused_names_that_exist_raise_when_called(name):
    assert resolve(name) is not None
    with pytest.raises((NotImplementedError, AssertionError)) as caught:
        CALLS[name]()
    assert "complex" in str(caught.value) or "CUDA" in str(caught.value) or "runs in one process" in str(caught.value)


@pytest.mark.parametrize("module", MODULES)
def test_devices_and_processes_that_are_not_there(module):
    assert resolve(module).is_available() is (module == "torch.distributed")  # a group of this process alone
    with pytest.raises(Refused, match=f"module '{module}' has no attribute '_no_such_name'"):
        resolve(module)._no_such_name


def test_probing_refused_names():
    x = torch.ones(2)
    assert not hasattr(torch, "sparse") and not hasattr(x, "to_sparse_csr") and not hasattr(torch.Tensor, "values") and not hasattr(torch.optim, "SparseAdam")
    assert getattr(torch, "export", None) is None and getattr(x, "coalesce", 3) == 3
    with pytest.raises(ImportError):
        from strided import package  # noqa: F401
    with pytest.raises(Refused, match="'Tensor' object has no attribute 'to_sparse_csr': tensors here are dense; "):
        x.to_sparse_csr()
    with pytest.raises(Refused, match="module 'torch.ops' has no attribute 'aten'"):
        torch.ops.aten.add(x, x)
    with pytest.raises(AttributeError, match="^module 'torch' has no attribute 'no_such_name'$") as caught:
        torch.no_such_name
    assert not isinstance(caught.value, Refused)
    x.values = 3  # users may hang anything on a tensor
    assert x.values == 3
    assert torch.nn.Parameter(torch.ones(1)).data is not None and not hasattr(torch.nn.Parameter(torch.ones(1)), "indices")


def test_reasons_follow_the_modules():
    assert why("torch.export.load") == REFUSED["torch.export"] and why("torch.nn.quantized.Linear") == REFUSED["torch.nn.quantized"] and why("torch.func.grad") is None
    assert why("torch.zeros") is None and why("torch") is None
    error = absent("torch.export.load")
    assert str(error).startswith("module 'torch.export' has no attribute 'load': what is recorded here")
    assert isinstance(pickle.loads(pickle.dumps(error)), Refused)


def test_table_is_in_plain_sentences():
    for name, (reason, instead) in REFUSED.items():
        assert name.startswith("torch.") and reason and instead
        assert not reason.endswith(".") and not instead.endswith("."), name


def stub(name):
    return ast.parse((ROOT / "src" / "strided" / name).read_text())


def test_stubs_are_current():
    # in a process of its own: what other tests import and patch must not count
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "stubs.py"), "--check"], timeout=120)
    assert done.returncode == 0, "python tools/stubs.py"


def test_stubs_hold_every_name():
    tensor = next(node for node in stub("tensor.pyi").body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    names = {node.name for node in tensor.body if isinstance(node, ast.FunctionDef)} | {node.target.id for node in tensor.body if isinstance(node, ast.AnnAssign)}
    public = {name for name in dir(torch.Tensor) if not name.startswith("_") and hasattr(torch.Tensor, name)}
    assert public - names == set() and {"add_", "sum", "view", "to", "grad", "dtype", "backward", "__getitem__", "__add__"} <= names
    top = set()
    for node in stub("__init__.pyi").body:
        top |= {alias.asname for alias in node.names} if isinstance(node, ast.ImportFrom) else {node.name} if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else set()
        top |= {node.target.id} if isinstance(node, ast.AnnAssign) else {target.id for target in node.targets} if isinstance(node, ast.Assign) else set()
    assert {name for name in torch.namespace.NAMES if not name.startswith("_")} - top == set()
    assert {"nn", "optim", "float32", "pi", "Tensor", "dtype", "device", "no_grad", "save"} <= top


def test_stubs_tell_results_truly():
    """Every method that needs no argument, called: it returns a tensor where the stub says so, a tuple or a bool where it says that."""
    tensor = next(node for node in stub("tensor.pyi").body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    kinds = {"Tensor": torch.Tensor, "_bool": bool, "_int": int, "Size": torch.Size, "tuple[Tensor, ...]": tuple}
    checked = 0
    for node in tensor.body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or node.args.vararg or len(node.args.args) - len(node.args.defaults) != 1:
            continue
        said = ast.unparse(node.returns)
        if any(ast.unparse(d) == "property" for d in node.decorator_list) or said not in kinds:
            continue
        for x in (torch.eye(3) * 2, torch.ones(3), torch.tensor([[1, 2], [3, 4]])):
            try:
                result = getattr(x, node.name)()
            except Exception:  # an operator for other dtypes or numbers of dimensions
                continue
            assert isinstance(result, kinds[said]), (node.name, said, type(result))
            checked += 1
    assert checked > 500


def test_a_type_checker_accepts_users_programs():
    api = pytest.importorskip("mypy.api")
    program = ROOT / "tests" / "data" / "typed_user.py"
    assert (ROOT / "src" / "strided" / "py.typed").exists()
    out, err, code = api.run(["--config-file=", "--check-untyped-defs", f"--python-executable={sys.executable}", str(program)])
    assert code == 0, out + err
