"""Lets `import torch` find this package: `torch is strided`, and `torch.X.Y` is the module that does X.Y's work here.

Holds the import hook, its table of renamed modules, and the small `safetensors` package that scripts expect beside
torch. Holds no tensor code. `strided run` uses it; so may notebooks and tests.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import os
import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from .refused import missing, why

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

HERE = __name__.rpartition(".")[0]
# The folder that processes find first on their path: a stand-in for torch that installs the alias, and what importlib.metadata answers about "torch".
CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_child")

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
    "distributed.tensor": "distributed_tensor",
    "distributed.tensor.placement_types": "distributed_tensor",
    "distributed.tensor._utils": "distributed_tensor",
    "distributed.tensor.parallel": "distributed_tensor",
    "distributed.fsdp": "distributed_tensor",
    "distributed.fsdp.wrap": "distributed_tensor",
    "distributed.fsdp.fully_sharded_data_parallel": "distributed_tensor",
    "distributed.fsdp.sharded_grad_scaler": "distributed_tensor",
    "distributed._composable": "distributed_tensor",
    "distributed._composable.fsdp": "distributed_tensor",
    "distributed.checkpoint": "distributed_tensor",
    "distributed.checkpoint.hf_storage": "distributed_tensor",
    "distributed.checkpoint.state_dict": "distributed_tensor",
    "distributed.checkpoint.default_planner": "distributed_tensor",
    "distributed._functional_collectives": "distributed_functional",
    "distributed._tensor": "distributed_tensor",
    "distributed._tensor.placement_types": "distributed_tensor",
    "distributed.device_mesh": "distributed",
    "distributed.distributed_c10d": "distributed",
    "distributed.constants": "distributed",
    "distributed.nn": "distributed_nn",
    "distributed.nn.functional": "distributed_nn",
    "distributed.optim": "distributed_optim",
    "distributed.optim.apply_optimizer_in_backward": "distributed_optim",
    "distributed.optim.zero_redundancy_optimizer": "distributed_optim",
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


# Rooms that torch has none of.
_OWN_ROOMS = frozenset(("torch_alias", "lens", "array_api", "io", "data"))

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
        for name, module in list(sys.modules.items()):
            _enter(name, module)
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
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if CHILD not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([CHILD, *filter(None, paths)])
    if CHILD not in sys.path:
        sys.path.insert(1, CHILD)  # behind the script's own folder; here the alias itself answers first


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
    """Answers for `torch.*`, `safetensors` and `safetensors.torch`, and for nothing else; sees this package's own modules load."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if name == "torch":  # only after someone deleted it from sys.modules
            module: Any = importlib.import_module(HERE)
        elif name.startswith("torch."):
            module = _counterpart(name.removeprefix("torch."))
            sys.modules.pop(name, None)  # loading it entered it; the import system would take its own spec then, and load it a second time
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
        elif name.startswith(HERE + "."):
            own = importlib.machinery.PathFinder.find_spec(name, path)
            if own is not None and _torch_name(name) and type(own.loader) is importlib.machinery.SourceFileLoader:
                own.loader = _OwnLoader(own.loader.name, own.loader.path)
            renamed = RENAMED.get(name.removeprefix(HERE + "."))
            if own is not None or renamed is None:
                return own
            module = _import(f"{HERE}.{renamed}")  # `from torch.nn.attention import flex_attention` looks under the name that the parent has here
        else:
            return None
        return importlib.machinery.ModuleSpec(name, self, loader_state=module)

    def find_distributions(self, context: Any = None) -> Iterable[importlib.metadata.Distribution]:
        """What importlib.metadata knows of the distribution "torch": that it is this package, and the version that `torch.__version__` has.

        Libraries ask it, rather than the module, whether and which torch is there.
        """
        if CHILD not in sys.path and (context is None or context.name in (None, "torch")):  # else it is found like any other
            place = importlib.metadata.DistributionFinder.Context(name="torch", path=[CHILD])
            return importlib.metadata.MetadataPathFinder.find_distributions(place)
        return ()

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # The import system returns what stands in sys.modules afterwards. Handing our module out of create_module would
        # make it overwrite that module's own __spec__ instead.
        spec = module.__spec__
        assert spec is not None
        _stand(spec.name, spec.loader_state)


class _OwnLoader(importlib.machinery.SourceFileLoader):
    """Loads a module of this package, which then stands in sys.modules under torch's name as well, where libraries look whether a part of torch is loaded."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _enter(module.__name__, module)


def _torch_name(name: str) -> str | None:
    """The name under torch of a module of this package, or None: for other packages' modules, and where torch has no part of that name or its work is done elsewhere."""
    package, _, path = name.partition(".")
    room = path.partition(".")[0]
    return f"torch.{path}" if package == HERE and path not in RENAMED and room in vars(sys.modules[HERE])["_ROOMS"] - _OWN_ROOMS else None


def _enter(name: str, module: ModuleType) -> None:
    """Make a loaded module of this package known under torch's name."""
    torch_name = _torch_name(name)
    if torch_name is not None and torch_name not in sys.modules:
        _stand(torch_name, module)


def _stand(name: str, module: ModuleType) -> None:
    sys.modules[name] = module
    if not hasattr(module, "__path__"):  # one file here, a package in PyTorch: what lies under it is asked of this finder too
        module.__path__ = []


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
