"""`torch.save`: any Python object with tensors in it, as a zip archive that PyTorch loads too.

The object is pickled with tensors as calls of PyTorch's rebuilding functions by name; storages become records of their own, so that views of one
storage share it again after loading. Holds the pickler and the writing; loading is in serialization.py.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import pickle
from typing import Any

from strided import dtypes
from strided.block_tensor import BlockTensor
from strided.io.allowed import HERE, torch_name
from strided.io.archive import Writer
from strided.io.rebuild import STORAGE_NAMES, is_internal
from strided.nn.hooks import HookTable
from strided.tensor import Tensor, TypedStorage, UntypedStorage

PROTOCOL = 2


class _Named:
    """A global of a pickle that is written by name alone."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str):
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> Any:  # a pickler asks whether what it shall write as called is callable
        raise AssertionError(f"{self.module}.{self.name} is a name, not a function")


@functools.cache
def named(full: str) -> _Named:
    """The one _Named of a full name: one object, so that a pickle spells it once."""
    module, _, name = full.rpartition(".")
    return _Named(module, name)


class _Empty:
    """An empty OrderedDict, as torch writes a tensor's hooks."""


class _StorageUse:
    """A storage where a pickle needs it: dtype None says untyped."""

    __slots__ = ("mem", "dtype", "device")

    def __init__(self, mem: Any, dtype: Any, device: Any):
        self.mem, self.dtype, self.device = mem, dtype, device


_Base: Any = pickle._Pickler  # type: ignore[attr-defined]  # the one in Python: its table of types can be extended


class Pickler(_Base):
    """Collects in `storages` what the pickle refers to by number: the storages, in order."""

    dispatch = dict(_Base.dispatch)

    def __init__(self, file: Any, protocol: int = PROTOCOL):
        super().__init__(file, protocol)
        self.storages: list[tuple[Any, int]] = []  # native storage, bytes to write
        self.numbers: dict[int, str] = {}
        self.dtypes: dict[int, Any] = {}

    def persistent_id(self, obj: Any) -> Any:
        if type(obj) is TypedStorage:
            obj = _StorageUse(obj._mem, obj.dtype, obj.device)
        elif type(obj) is UntypedStorage:
            obj = _StorageUse(obj._mem, None, obj.device)
        elif type(obj) is not _StorageUse:
            return None
        mem, dtype = obj.mem, obj.dtype
        key, width = id(mem), dtype.itemsize if dtype else 1
        nbytes = mem.nbytes // width * width  # a storage may end in part of an element
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = str(len(self.storages))
            self.storages.append((mem, nbytes))
        seen_as = dtype or dtypes.uint8
        if mem.data and self.dtypes.setdefault(mem.data, seen_as) is not seen_as:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types"
                f"\n  One storage of {mem.nbytes:,} bytes is seen as {self.dtypes[mem.data]} and as {seen_as}: save a .clone() of one of them."
            )
        kind = named("torch.storage.UntypedStorage" if dtype is None else f"torch.{STORAGE_NAMES[dtype.name]}")
        return "storage", kind, number, str(obj.device), nbytes // width

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if isinstance(obj, Tensor):
            return _reduce_tensor(obj)
        if kind is dtypes.Device:
            return named("torch.device"), (obj.type,) if obj.index is None else (obj.type, obj.index)
        if kind is dtypes.DType:
            return obj.name
        if kind is HookTable:
            return named("collections.OrderedDict"), (), None, None, iter(obj.items())
        if kind is _Empty:
            return named("collections.OrderedDict"), ()
        if kind.__module__ == f"{HERE}.formats":
            if kind.__name__ == "layout":
                return named("torch.serialization._get_layout"), (repr(obj),)
            return repr(obj)
        return NotImplemented

    def save_named(self, obj: _Named) -> None:
        self._write_global(obj, obj.module, obj.name)

    dispatch[_Named] = save_named

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Things of this package by their torch names, all others as ever."""
        if (type(obj) if name else obj).__module__.partition(".")[0] == HERE:
            self._write_global(obj, *(("torch", name.rpartition(".")[2]) if name else torch_name(obj)))
        else:
            super().save_global(obj, name)

    def _write_global(self, obj: Any, module: str, name: str) -> None:
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)


for _kind in (type(len), type(named), type(lambda: 0)):  # functions: the inherited table names the inherited method
    Pickler.dispatch[_kind] = Pickler.save_global


def _reduce_tensor(t: Tensor) -> tuple:
    """How torch spells a tensor, its class and the attributes its user hung on it."""
    from strided.nn.parameter import Buffer, Parameter

    if isinstance(t, BlockTensor):
        if isinstance(t, Parameter):
            return named("torch._utils._rebuild_parameter"), (t.detach(), False, _Empty())
        return named(f"{HERE}.block_tensor.rebuild_block_tensor"), t.state()
    state = {name: value for name, value in vars(t).items() if not is_internal(name)}
    kind = type(t)
    if kind is Parameter or isinstance(t, Parameter) and not state and kind.__module__.startswith(HERE):
        inner = t.detach()
        args = (inner, t.requires_grad, _Empty())
        return (named("torch._utils._rebuild_parameter_with_state"), (*args, state)) if state else (named("torch._utils._rebuild_parameter"), args)
    if kind is Buffer:
        kind, state = Tensor, {}
    function, args = _rebuilding(t)
    if kind is Tensor and not state:
        return function, args
    return named("torch._tensor._rebuild_from_type_v2"), (function, named("torch.Tensor") if kind is Tensor else kind, args, state)


def _rebuilding(t: Tensor) -> tuple[_Named, tuple]:
    spec, tracked = t.spec, bool(t.requires_grad)
    size, stride = tuple(spec.shape), tuple(spec.strides)
    if spec.is_meta:
        return named("torch._utils._rebuild_meta_tensor_no_storage"), (spec.dtype, size, stride, tracked)
    where = t.storage_offset(), size, stride, tracked, _Empty()
    if spec.dtype.name in STORAGE_NAMES:
        return named("torch._utils._rebuild_tensor_v2"), (_StorageUse(t.mem, spec.dtype, spec.device), *where)
    return named("torch._utils._rebuild_tensor_v3"), (_StorageUse(t.mem, None, spec.device), *where, spec.dtype)


# ---- the file --------------------------------------------------------------------------------

_options = {"checksums": True}


def get_crc32_options() -> bool:
    """Whether save computes checksums of the records."""
    return _options["checksums"]


def set_crc32_options(compute_crc32: bool) -> None:
    """Whether save computes checksums (without them it is faster, other zip programs complain, and loading cannot see damage)."""
    _options["checksums"] = bool(compute_crc32)


def save(obj: Any, f: Any, pickle_module: Any = pickle, pickle_protocol: int = PROTOCOL, _use_new_zipfile_serialization: bool = True, _disable_byteorder_record: bool = False) -> None:
    """Saves an object with its tensors to a file, in the format that torch.save writes.

    f: a path, or an object with `write`. A path's file appears whole, by renaming, or not at all: one of that name stays until then. Views of one storage
    are saved as views; the whole storage is written, also where only a part of it is seen (save `x.clone()` for the part alone).

    Raises RuntimeError where one storage is seen as two dtypes or the folder does not exist, pickle's errors for objects it cannot take.
    """
    if pickle_module is not pickle:
        raise NotImplementedError(f"save(): pickle_module={getattr(pickle_module, '__name__', pickle_module)!r}: other pickle modules cannot write names that torch knows; leave it out")
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("save(): the format before PyTorch 1.6 can be loaded, not written; leave out _use_new_zipfile_serialization=False")
    if not isinstance(f, (str, os.PathLike)):
        if not callable(getattr(f, "write", None)):
            raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
        _write(obj, f, "archive", pickle_protocol, not _disable_byteorder_record)
        return
    path = os.path.realpath(os.fspath(f))  # a link keeps pointing where it did
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(os.fspath(f))} does not exist.")
    if os.path.isdir(path):
        raise IsADirectoryError(f"save(): {os.fspath(f)} is a directory; name a file in it")
    root = name.partition(".")[0] or "archive"
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe or device is written to, not replaced
        with open(path, "wb") as file:
            _write(obj, file, root, pickle_protocol, not _disable_byteorder_record)
        return
    partial = os.path.join(folder, f".{name}.{os.getpid()}.partial")
    try:
        with open(partial, "xb") as file:
            _write(obj, file, root, pickle_protocol, not _disable_byteorder_record)
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


def _write(obj: Any, file: Any, root: str, protocol: int, byteorder: bool) -> None:
    stream = io.BytesIO()
    pickler = Pickler(stream, protocol)
    pickler.dump(obj)
    with Writer(file, root, _options["checksums"]) as archive:
        archive.add("data.pkl", stream.getvalue())
        if byteorder:
            archive.add("byteorder", b"little")
        for number, (mem, nbytes) in enumerate(pickler.storages):
            archive.add(f"data/{number}", memoryview(mem).cast("B")[:nbytes] if nbytes else b"")
        archive.add("version", b"3\n")
        archive.add(".data/serialization_id", hashlib.blake2b(stream.getvalue(), digest_size=20).hexdigest().encode())
