"""What a checkpoint may name: the built-in allow-list, what users add to it (`add_safe_globals`), and the names that torch has for things of this package.

Holds the look-ups in both directions. Nothing here imports a module because a file names it.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections import Counter, OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from strided import dtypes
from strided.io import rebuild
from strided.io.unpickler import Allowed, UnpicklingError, check_key
from strided.layout import Size
from strided.tensor import Tensor, UntypedStorage

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = __name__.partition(".")[0]

# Standard classes whose own constructors might be asked for harm stand for themselves and are called through a check.
_CHECKED: dict[Any, Any] = {
    OrderedDict: lambda items=(): OrderedDict((check_key(key), value) for key, value in items),
    set: lambda items=(): set(map(check_key, items)),
    frozenset: lambda items=(): frozenset(map(check_key, items)),
    complex: rebuild.make_complex,
    bytearray: rebuild.make_bytearray,
    Size: rebuild.make_size,
    dtypes.Device: dtypes.Device,
}


def _counter(table: Any = ()) -> Counter:
    if type(table) is not dict and table != ():
        raise UnpicklingError(f"a Counter is made from a dict, but got {type(table)}")
    return Counter(dict(table))


_CHECKED[Counter] = _counter


@functools.cache
def _builtin() -> dict[str, Any]:
    """The allow-list, by full name: PyTorch's own, as far as such things exist here."""
    from strided.nn.parameter import Parameter

    names: dict[str, Any] = {
        "collections.OrderedDict": OrderedDict, "collections.Counter": Counter, "builtins.set": set, "builtins.frozenset": frozenset, "builtins.complex": complex,
        "builtins.bytearray": bytearray, "builtins.bytes": rebuild.make_bytes, "_codecs.encode": rebuild.encode, "torch.Size": Size, "torch.device": dtypes.Device, "torch.Tensor": Tensor,
        "torch.nn.parameter.Parameter": Parameter, "torch.serialization._get_layout": rebuild.get_layout, "torch.storage.UntypedStorage": UntypedStorage,
        "torch._tensor._rebuild_from_type_v2": rebuild_from_type, "torch._utils._rebuild_tensor": rebuild.rebuild_tensor,
        "torch._utils._rebuild_tensor_v2": rebuild.rebuild_tensor_v2, "torch._utils._rebuild_tensor_v3": rebuild.rebuild_tensor_v3,
        "torch._utils._rebuild_parameter": rebuild.rebuild_parameter, "torch._utils._rebuild_parameter_with_state": rebuild.rebuild_parameter_with_state,
        "torch._utils._rebuild_meta_tensor_no_storage": rebuild.rebuild_meta_tensor, "torch._utils._rebuild_device_tensor_from_cpu_tensor": rebuild.rebuild_device_tensor,
        f"{HERE}.block_tensor.rebuild_block_tensor": rebuild.rebuild_blocks,
    }  # fmt: skip
    from strided import formats

    for dtype in dtypes.all_dtypes():
        names[str(dtype)] = dtype
    for name in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d"):
        names[f"torch.{name}"] = getattr(formats, name)
    for name, storage in rebuild.STORAGE_NAMES.items():
        names[f"torch.{storage}"] = rebuild.StorageType(dtypes.names()[name])
    return names


@functools.cache
def _callable() -> dict[int, Any]:
    """What of the allow-list may be called, by identity: the function that does it."""
    called = dict(_CHECKED)
    called.update({value: value for value in _builtin().values() if type(value) is type(rebuild_from_type)})
    return {id(key): function for key, function in called.items()}


_BLOCKED = ("sys", "os", "posix", "nt")  # not to be had, not even by add_safe_globals

# What torch can save and strided has no counterpart of.
_ABSENT = {
    "torch._utils._rebuild_sparse_tensor": "a sparse tensor: save it with .to_dense()",
    "torch._utils._rebuild_sparse_csr_tensor": "a sparse tensor: save it with .to_dense()",
    "torch._utils._rebuild_qtensor": "a quantized tensor: save it with .dequantize()",
    "torch._utils._rebuild_nested_tensor": "a nested tensor: save its parts, from .unbind()",
    "torch._utils._rebuild_device_tensor_from_numpy": "a tensor of a device that is saved by way of NumPy: save it with .cpu()",
    "torch._utils._rebuild_wrapper_subclass": "a wrapper subclass of tensors: save the tensors in it",
}


def rebuild_from_type(function: Any, kind: Any, args: Any, state: Any) -> Any:
    """A tensor of a subclass, or one that its user hung attributes on."""
    registry = Registry()
    if not registry.calls(function) or type(args) is not tuple:
        raise UnpicklingError(f"Trying to call reduce for unrecognized function {type(function)}")
    made = registry.call(function, args)
    if not isinstance(made, Tensor):
        raise UnpicklingError(f"a tensor is rebuilt from a tensor, but got {type(made)}")
    if kind is not Tensor and kind is not type(made):
        if not (registry.makes(kind) and isinstance(kind, type) and issubclass(kind, Tensor)):
            raise UnpicklingError(f"Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got {kind if isinstance(kind, type) else type(kind)}")
        made = made.as_subclass(kind)
    registry.build(made, state)
    return made


# ---- what users allow ------------------------------------------------------------------------


class _User(threading.local):
    def __init__(self) -> None:
        self.entries: tuple[Any, ...] = ()  # of `with safe_globals(...)` in this thread


_everywhere: list[Any] = []
_USER = _User()


def _checked_entries(entries: Any) -> list[Any]:
    if not isinstance(entries, (list, tuple, set)):
        raise TypeError(f"safe globals are a list of classes and functions, but got {type(entries).__name__}")
    for entry in entries:
        function = entry[0] if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[1], str) else entry
        if not callable(function):
            raise TypeError(f"a safe global is a class, a function, or a tuple (class or function, full name in the file), but got {entry!r}")
    return list(entries)


def add_safe_globals(safe_globals: Any) -> None:
    """Allows checkpoints to name these classes and functions, and so to call them: list only what you trust with any arguments.

    An entry is a class or function, or a tuple (it, "the full name that stands in the file").
    """
    _everywhere.extend(entry for entry in _checked_entries(safe_globals) if entry not in _everywhere)


def get_safe_globals() -> list[Any]:
    """What users allowed so far."""
    return [*_everywhere, *_USER.entries]


def clear_safe_globals() -> None:
    """Forgets everything that `add_safe_globals` allowed."""
    _everywhere.clear()


@contextmanager
def safe_globals(safe_globals: Any) -> Iterator[None]:
    """`add_safe_globals` for a block."""
    before = _USER.entries
    _USER.entries = (*before, *_checked_entries(safe_globals))
    try:
        yield
    finally:
        _USER.entries = before


class Registry(Allowed):
    """The allow-list of one load: the built-in names and what users allow at that moment; plain data (plain.py) too unless it is for weights only."""

    def __init__(self, weights_only: bool = True) -> None:
        self.plain: Any = None
        if not weights_only:
            from strided.io import plain

            self.plain = plain
        self.named: dict[str, Any] = {}
        for entry in get_safe_globals():
            if isinstance(entry, tuple):
                self.named[entry[1]] = entry[0]
                continue
            own = f"{entry.__module__}.{entry.__qualname__}"
            self.named[own] = entry
            self.named[".".join(torch_name(entry))] = entry
            if own.startswith("numpy._core."):  # NumPy 2 renamed it; files have both
                self.named[own.replace("._core.", ".core.")] = entry
        self.trusted = {id(value) for value in self.named.values()}

    def find(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if module in _BLOCKED:
            raise UnpicklingError(f"Trying to load unsupported GLOBAL {full[:200]} whose module {module} is blocked.\n  The file tries to use the operating system: do not trust where it came from.")
        found = self.named.get(full)
        if found is None:
            found = _builtin().get(full)
        if found is None and self.plain is not None:
            found = self.plain.names().get(full)
        if found is not None:
            return found
        if full in _ABSENT:
            raise NotImplementedError(f"Unsupported global: GLOBAL {full}. The file holds {_ABSENT[full]}, with PyTorch, then load it here.")
        shown = full.removeprefix("builtins.")[:200]
        advice = (
            "strided never executes what a file asks for, with weights_only=False neither (which builds plain data too: argparse.Namespace, paths, dates, NumPy arrays). "
            "If you trust the class with any arguments, allow it as said; else load the file where it was made and save its state_dict()."
        )
        raise UnpicklingError(
            f"Unsupported global: GLOBAL {shown} was not an allowed global by default. Please use `torch.serialization.add_safe_globals([{shown}])` or the "
            f"`torch.serialization.safe_globals([{shown}])` context manager to allowlist this global if you trust this class/function.\n  {advice}"
        )

    def calls(self, function: Any) -> bool:
        key = id(function)
        return key in self.trusted or key in _callable() or self.plain is not None and key in self.plain.CALLS

    def call(self, function: Any, args: tuple) -> Any:
        return (function if id(function) in self.trusted else _callable().get(id(function), function))(*args)

    def makes(self, kind: Any) -> bool:
        from strided.nn.parameter import Parameter

        return kind is Parameter or isinstance(kind, type) and (id(kind) in self.trusted or self.plain is not None and id(kind) in self.plain.MAKES)

    def build(self, target: Any, state: Any) -> None:
        kind = type(target)
        own = id(kind) in self.trusted
        if isinstance(target, Tensor):
            if own and "__setstate__" in vars(kind):
                target.__setstate__(state)
            else:
                rebuild.set_attributes(target, state)
        elif not own:
            builder = self.plain.builder(kind) if self.plain is not None else None
            if builder is not None:
                builder(target, state)
                return
            raise UnpicklingError(f"Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got {kind}")
        elif hasattr(target, "__setstate__"):
            target.__setstate__(state)
        else:
            parts = state if type(state) is tuple and len(state) == 2 else (state, None)
            if parts[0]:
                target.__dict__.update(parts[0])
            for name, value in (parts[1] or {}).items():
                setattr(target, name, value)


# ---- names in the other direction ------------------------------------------------------------

_HOMES = {"strided.nn.modules.vision.Upsample": "upsampling", "strided.nn.modules.vision.PixelShuffle": "pixelshuffle", "strided.nn.modules.vision.PixelUnshuffle": "pixelshuffle"}


def torch_name(value: Any) -> tuple[str, str]:
    """The (module, name) under which torch has a class or function of this package; those of others keep theirs."""
    module, name = getattr(value, "__module__", None) or "", getattr(value, "__qualname__", None) or value.__name__
    if module.partition(".")[0] != HERE:
        return module, name
    if f"{module}.{name}" in _HOMES:
        return f"torch.nn.modules.{_HOMES[f'{module}.{name}']}", name
    path = "torch" + module.removeprefix(HERE)
    if path.startswith(("torch.nn.modules.", "torch.optim.")) or path == "torch.nn.parameter":
        return path, name
    if path == "torch.nn.module":
        return "torch.nn.modules.module", name
    for home in ("torch", "torch.nn.functional"):
        holder = sys.modules.get(HERE + home.removeprefix("torch"))
        if holder is not None and getattr(holder, name, None) is value:
            return home, name
    return path, name
