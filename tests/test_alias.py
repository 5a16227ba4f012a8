"""`import torch` resolved to this package, as a call: identity, submodules, refusals, and leaving no trace. `strided run` is test_cli.py's."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from types import ModuleType

import pytest

import strided
import strided.torch_alias as torch_alias


def ours(name):
    return name.partition(".")[0] in ("torch", "safetensors")


@pytest.fixture
def no_torch(monkeypatch):
    """A process that has not imported PyTorch: what another test imported is set aside."""
    for name in [name for name in sys.modules if ours(name)]:
        monkeypatch.delitem(sys.modules, name)


@pytest.fixture
def alias(no_torch):
    with torch_alias.torch_alias() as torch:
        yield torch


def test_torch_is_strided(alias):
    import torch

    assert torch is strided is alias is sys.modules["torch"]
    assert strided.__name__ == "strided" and strided.__spec__.name == "strided"


def test_submodules_are_the_same_objects(alias):
    import torch.nn
    import torch.optim
    import torch.utils.data

    assert torch.nn is importlib.import_module("strided.nn")
    assert torch.optim is importlib.import_module("strided.optim")
    assert torch.utils.data is sys.modules["torch.utils.data"] and torch.utils.data.DataLoader is importlib.import_module("strided.data").DataLoader
    assert torch.nn.__spec__.name == "strided.nn"  # the module keeps its own identity


def test_as_imports(alias):
    import torch.utils.data as data
    from torch import nn
    from torch.utils import data as again

    assert data is again and nn is importlib.import_module("strided.nn")


def test_renamed_modules(alias):
    """Modules that PyTorch spells otherwise lead to where the work is done."""
    from torch.nn.attention import flex_attention
    from torch.nn.modules.linear import Linear
    from torch.nn.parameter import Parameter
    from torch.optim import adamw
    from torch.optim.optimizer import Optimizer
    from torch.utils.data.dataloader import DataLoader
    from torch.utils.data.dataset import Dataset
    from torch.utils.data.sampler import Sampler

    assert flex_attention is importlib.import_module("strided.nn.flex_attention") and adamw.AdamW is alias.optim.AdamW
    data = importlib.import_module("strided.data")
    assert (Linear, Parameter, Optimizer) == (alias.nn.Linear, alias.nn.Parameter, alias.optim.Optimizer)
    assert (Dataset, Sampler, DataLoader) == (data.Dataset, data.Sampler, data.DataLoader)


def test_names_that_are_no_files_here(alias):
    import torch.backends.cudnn as cudnn
    from torch.cuda.amp import GradScaler

    assert cudnn is alias.backends.cudnn and cudnn.benchmark is False
    assert GradScaler.__name__ == "GradScaler"


def test_a_missing_submodule_names_what_strided_lacks(alias):
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'torch\.no_such_part': strided has no counterpart of it \(there is no strided\.no_such_part\)") as caught:
        importlib.import_module("torch.no_such_part.deep")
    assert caught.value.name == "torch.no_such_part"


def test_an_error_inside_a_submodule_is_its_own(alias, monkeypatch, tmp_path):
    (tmp_path / "broken_part.py").write_text("import a_package_nobody_has\n")
    monkeypatch.setattr(strided, "__path__", [*strided.__path__, str(tmp_path)])
    with pytest.raises(ModuleNotFoundError, match="No module named 'a_package_nobody_has'"):
        importlib.import_module("torch.broken_part")


def test_safetensors_is_ours(alias):
    import safetensors
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file

    ours = importlib.import_module("strided.io.safetensors")
    assert (safe_open, load_file, save_file, safetensors.SafetensorError) == (ours.safe_open, ours.load_file, ours.save_file, ours.SafetensorsError)
    assert sys.modules["safetensors.torch"] is ours


def test_nothing_remains_after_uninstall(no_torch, monkeypatch):
    other = ModuleType("safetensors")
    monkeypatch.setitem(sys.modules, "safetensors", other)
    with torch_alias.torch_alias():
        import torch.nn  # noqa: F401

        with torch_alias.torch_alias():  # nested: the outer one stands
            pass
        assert torch_alias.installed() and sys.modules["torch"] is strided
    assert not torch_alias.installed()
    assert {name: module for name, module in sys.modules.items() if ours(name)} == {"safetensors": other}
    torch_alias.uninstall()  # again: nothing to do


def test_refuses_once_pytorch_is_there(monkeypatch):
    real = ModuleType("torch")
    real.__file__ = "/somewhere/torch/__init__.py"
    monkeypatch.setitem(sys.modules, "torch", real)
    with pytest.raises(RuntimeError, match="PyTorch itself is already imported in this process"):
        torch_alias.install()
    assert sys.modules["torch"] is real and not torch_alias.installed()


def test_version_reads_as_pytorch_s():
    """Scripts take torch.__version__ apart: major and minor are integers."""
    major, minor = strided.__version__.split("+")[0].split(".")[:2]
    assert (int(major), int(minor)) >= (2, 0)


def test_libraries_ask_for_the_distribution(no_torch):
    """importlib.metadata says which torch is there, under the alias and nowhere else."""
    metadata = importlib.import_module("importlib.metadata")
    before = [d.version for d in metadata.distributions(name="torch")]
    with torch_alias.torch_alias() as torch:
        assert metadata.version("torch") == torch.__version__ and "strided" in metadata.metadata("torch")["Summary"]
        assert "torch" in metadata.packages_distributions()["torch"]
        assert importlib.util.find_spec("torch") is not None
        assert metadata.version("pytest") and [d.version for d in metadata.distributions(name="torch")][1:] == before
    assert [d.version for d in metadata.distributions(name="torch")] == before


def test_loaded_parts_stand_in_sys_modules(tmp_path):
    """As in PyTorch, where libraries find parts that nobody imported by that name, to replace what they hold."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, subprocess, torch\n"
        "torch.nn.Linear(2, 2)\n"
        "assert sys.modules['torch.nn.init'] is torch.nn.init and sys.modules['torch.nn.modules.linear'].Linear is torch.nn.Linear\n"
        "import torch.nn.attention, torch.linalg, torch.optim.adamw, torch.utils.data.dataloader, torch.distributions.kl\n"
        "for name, module in list(sys.modules.items()):\n"
        "    if name.startswith('torch.') and module.__name__.startswith('strided.'):\n"
        "        assert sys.modules[module.__name__] is module, name  # loaded once\n"
        "assert 'torch.lens' not in sys.modules and 'torch.kernels' not in sys.modules\n"
        "sys.modules['torch.nn.init'].kaiming_uniform_ = lambda tensor, *a, **k: tensor.data.fill_(3.0)\n"
        "assert torch.nn.Linear(2, 1).weight.tolist() == [[3.0, 3.0]]\n"
        "import torch.nn.init, torch.nn.parallel.distributed\n"
        "ask = 'import importlib.metadata as m; print(m.version(\"torch\"))'\n"
        "assert subprocess.run([sys.executable, '-c', ask], capture_output=True, text=True).stdout.strip() == torch.__version__\n"
    )
    done = subprocess.run([sys.executable, "-m", "strided", "run", str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_alias_costs_little():
    code = "import sys; before = set(sys.modules); import strided.torch_alias; print('argparse' in sys.modules, 'runpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"], done.stderr
