"""Lets `import torch` find this package: `torch is strided`, and `torch.X.Y` is the module that does X.Y's work here.

Holds the import hook, its table of renamed modules, and the small `safetensors` package that scripts expect beside
torch. Holds no tensor code. `strided run` uses it; so may notebooks and tests.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from .refused import missing, why

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = __name__.rpartition(".")[0]

# Where a torch module's work is done under another name here; what lies under it moves along. All others keep their path.
RENAMED = {
    "utils.data._utils.worker": "data.worker",
    "optim.adamw": "optim.adam",
    "optim.adadelta": "optim.adaptive",
    "optim.adagrad": "optim.adaptive",
    "optim.adamax": "optim.adaptive",
    "optim.nadam": "optim.adaptive",
    "optim.radam": "optim.adaptive",
    "optim.rmsprop": "optim.adaptive",
    "optim.asgd": "optim.signs",
    "optim.rprop": "optim.signs",
    "optim._muon": "optim.matrix",
    "optim._adafactor": "optim.matrix",
    "autograd.grad_mode": "autograd.modes",
    "autograd.anomaly_mode": "autograd.anomaly",
    "amp.autocast_mode": "amp",
    "amp.grad_scaler": "amp",
    "serialization": "io.serialization",
    "_jit_internal": "jit",
    "distributed.tensor": "distributed",
    "distributed._tensor": "distributed",
    "distributed.device_mesh": "distributed",
    "distributed.distributed_c10d": "distributed",
    "distributed.constants": "distributed",
    "distributed.nn": "distributed_nn",
    "distributed.nn.functional": "distributed_nn",
    "distributed.algorithms": "distributed",
    "distributed.algorithms.join": "distributed",
    "distributed._tensor.experimental": "distributed",
    "distributed.tensor.experimental": "distributed",
    "nn.parallel.distributed": "nn.parallel",
    "nn.parallel.scatter_gather": "nn.parallel",
    "nn.attention.flex_attention": "nn.flex_attention",
    "distributions.constraints": "constraints",
    "distributions.distribution": "distributions.base",
    "jit.annotations": "jit",
    "_dynamo.eval_frame": "_dynamo",
    "_dynamo.utils": "_dynamo",
    "_dynamo._trace_wrapped_higher_order_op": "_dynamo",
    "utils.model_zoo": "hub",
    "fx.graph": "fx",
    "fx.graph_module": "fx",
    "fx.node": "fx",
    "fx.proxy": "fx",
    "fx._symbolic_trace": "fx",
    "onnx.symbolic_helper": "onnx",
}


# Absent modules that training scripts import at their top and use at their end, if at all: the import succeeds, the use says why not.
HOLLOW = {"_custom_ops"}


def install() -> None:
    """Make `import torch`, and every submodule of it, resolve to this package until `uninstall()`.

    Calling it again changes nothing. Raises RuntimeError if PyTorch itself is already imported: its tensors and ours
    cannot share one process's `torch`.
    """
    package = importlib.import_module(HERE)
    present = sys.modules.get("torch")
    if present is not None and present is not package:
        raise RuntimeError(
            f"PyTorch itself is already imported in this process ({getattr(present, '__file__', 'no file')}), so `torch` cannot be made to "
            "mean strided. Call strided.torch_alias.install() before the first `import torch`, or start with `strided run script.py`."
        )
    if not installed():
        sys.meta_path.insert(0, _FINDER)
        _set_aside_safetensors()
    sys.modules["torch"] = package
    package.Tensor.__module__ = "torch"  # how its class prints, and is pickled by name: only while that name leads here


def uninstall() -> None:
    """Undo `install()`: later imports of torch find PyTorch again, if there is one. Names already bound keep their modules."""
    if not installed():
        return
    sys.meta_path.remove(_FINDER)
    tensor: Any = importlib.import_module(f"{HERE}.tensor")
    tensor.Tensor.__module__ = tensor.__name__
    for name in [name for name in sys.modules if name == "torch" or name.startswith("torch.") or _of_safetensors(name)]:
        del sys.modules[name]
    sys.modules.update(_SET_ASIDE)
    _SET_ASIDE.clear()


def inherit() -> None:
    """Let processes that this one starts know the alias too: `import torch` finds a stand-in there that installs it.

    The stand-in's folder goes to the front of PYTHONPATH (for any Python this process starts) and onto sys.path, which multiprocessing's
    spawn and forkserver hand on. Meant for a process given over to a script: it ends with it.
    """
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_child")
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if folder not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, paths)])
    if folder not in sys.path:
        sys.path.insert(1, folder)  # behind the script's own folder; here the alias itself answers first


def installed() -> bool:
    """Whether `import torch` resolves to this package now."""
    return _FINDER in sys.meta_path


@contextmanager
def torch_alias() -> Iterator[ModuleType]:
    """`with torch_alias() as torch: …`: the alias for a block. Inside another alias it leaves that one standing."""
    already = installed()
    install()
    try:
        yield sys.modules["torch"]
    finally:
        if not already:
            uninstall()


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers for `torch.*`, `safetensors` and `safetensors.torch`, and for nothing else."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if name == "torch":  # only after someone deleted it from sys.modules
            module: Any = importlib.import_module(HERE)
        elif name.startswith("torch."):
            module = _counterpart(name.removeprefix("torch."))
            if module is None:
                counterpart = f"{HERE}.{name.removeprefix('torch.')}"
                reason, instead = why(name) or (f"strided has no counterpart of it (there is no {counterpart})", "guard the import, or run this script on PyTorch itself")
                raise ModuleNotFoundError(
                    f"No module named {name!r}: {reason}; {instead}.",
                    name=name,
                )
        elif name == "safetensors":
            module = _safetensors()
        elif name == "safetensors.torch":
            module = importlib.import_module(f"{HERE}.io.safetensors")
        else:
            return None
        return importlib.machinery.ModuleSpec(name, self, loader_state=module)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # The import system returns what stands in sys.modules afterwards. Handing our module out of create_module would
        # make it overwrite that module's own __spec__ instead.
        spec = module.__spec__
        assert spec is not None
        target = sys.modules[spec.name] = spec.loader_state
        if not hasattr(target, "__path__"):  # one file here, a package in PyTorch: what lies under it is asked of this finder too
            target.__path__ = []


_FINDER = _Finder()
_SET_ASIDE: dict[str, ModuleType] = {}  # what stood under `safetensors` before install()


def _counterpart(path: str) -> Any:
    """The module here that answers for torch.<path>, or None."""
    parent, _, child = path.rpartition(".")
    if path in RENAMED:
        return _import(f"{HERE}.{RENAMED[path]}")
    if parent in RENAMED:
        return _import(f"{HERE}.{RENAMED[parent]}.{child}")
    module: Any = _import(f"{HERE}.{path}")
    if module is None:  # a module that its parent holds under this name, wherever it lives
        holder = _counterpart(parent) if parent else importlib.import_module(HERE)
        found = getattr(holder, child, None)
        module = found if isinstance(found, (ModuleType, SimpleNamespace)) else None
    if module is None and path in HOLLOW:
        module = ModuleType(f"torch.{path}")
        module.__getattr__ = missing(f"torch.{path}")
    if module is None and path.startswith("nn.modules."):  # whatever file of torch.nn.modules a name is in, it is in nn
        module = _import(f"{HERE}.nn")
    if module is None and path.startswith("distributions."):
        module = _import(f"{HERE}.distributions")
    return module


def _import(name: str) -> ModuleType | None:
    """The module, or None if there is none of that name. What fails inside an existing module is raised."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            return None
        raise


def _of_safetensors(name: str) -> bool:
    return name == "safetensors" or name.startswith("safetensors.")


def _set_aside_safetensors() -> None:
    for name in [name for name in sys.modules if _of_safetensors(name)]:
        _SET_ASIDE[name] = sys.modules.pop(name)


def _safetensors() -> ModuleType:
    """A `safetensors` package whose torch side is ours. Where the real one is installed, its other parts stay reachable."""
    ours = importlib.import_module(f"{HERE}.io.safetensors")
    real = importlib.machinery.PathFinder.find_spec("safetensors")
    module = ModuleType("safetensors", "The safetensors package with torch's side answered by strided.")
    module.__path__ = list(real.submodule_search_locations or ()) if real else []
    module.__version__ = "0.8.0"  # type: ignore[attr-defined]
    module.safe_open = ours.safe_open  # type: ignore[attr-defined]
    module.SafetensorError = ours.SafetensorsError  # type: ignore[attr-defined]

    def missing(name: str) -> Any:
        if real is not None and not name.startswith("__"):
            return getattr(importlib.import_module("safetensors._safetensors_rust"), name)
        raise AttributeError(f"module 'safetensors' has no attribute {name!r} under strided")

    module.__getattr__ = missing  # type: ignore[method-assign]
    return module
