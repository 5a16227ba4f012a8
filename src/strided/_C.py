"""`torch._C`: the few names of PyTorch's C++ core that public packages call while they are imported or a model is made. There is no such core here."""
from __future__ import annotations

import enum
import zipfile
from typing import Any

from .dtypes import Device
from .ops.data import frombuffer
from .ops.overriding import DisableTorchFunction, DisableTorchFunctionSubclass  # noqa: F401
from .ops.overriding import disabled as _disabled_torch_function_impl  # noqa: F401
from .overrides import has_torch_function as _has_torch_function  # noqa: F401
from .overrides import has_torch_function_unary as _has_torch_function_unary  # noqa: F401
from .overrides import has_torch_function_variadic as _has_torch_function_variadic  # noqa: F401
from .refused import missing
from .tensor import Tensor

_TensorMeta = type(Tensor)  # the class of tensor classes


class PyTorchFileReader:
    """A checkpoint file as the archive it is: records by name. Loading what they mean is `torch.load`'s.

    Raises RuntimeError for a file that is no archive, or a record that is not in it.
    """

    def __init__(self, file: Any):
        try:
            self._archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise RuntimeError(f"PytorchStreamReader failed reading zip archive: {error}") from None
        names = self._archive.namelist()
        self._folder = names[0].partition("/")[0] + "/" if names else ""

    def has_record(self, name: str) -> bool:
        return self._folder + name in self._archive.NameToInfo

    def get_all_records(self) -> list[str]:
        return [name.removeprefix(self._folder) for name in self._archive.namelist()]

    def get_record(self, name: str) -> bytes:
        if not self.has_record(name):
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        return self._archive.read(self._folder + name)

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Tensor:
        """The record's bytes as a vector of `numel` elements."""
        return frombuffer(bytearray(self.get_record(name)), dtype=dtype, count=numel)


def _log_api_usage_once(name: str) -> None:
    """Counts uses of PyTorch's features at its makers': nothing is counted."""


def _get_accelerator(check: bool | None = None) -> Device:
    """The device to compute on where a program may choose: the CPU, as there is no other."""
    return Device("cpu")


def _get_tracing_state() -> None:
    """The graph that calls are being recorded into: never one."""


class DispatchKey(enum.Enum):
    """Names that packages with operators of their own register them under. Operators here are chosen by no such key."""

    CPU = enum.auto()
    CUDA = enum.auto()
    XPU = enum.auto()
    Meta = enum.auto()
    Autograd = enum.auto()
    AutogradCPU = enum.auto()
    AutocastCPU = enum.auto()
    AutocastCUDA = enum.auto()
    AutocastXPU = enum.auto()


class DispatchKeySet:
    """A set of such names."""

    def __init__(self, *keys: DispatchKey):
        self._keys = frozenset(keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys, *other._keys)

    def has(self, key: DispatchKey) -> bool:
        return key in self._keys


def _switch(*value: Any) -> None:
    """A switch of the script compiler, which is not here (`torch.jit`): nothing changes."""


_jit_set_profiling_executor = _jit_set_profiling_mode = _jit_set_autocast_mode = _jit_set_texpr_fuser_enabled = _switch
_jit_set_nvfuser_enabled = _jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _switch

__getattr__ = missing("torch._C")
