"""`torch.load`, and the names of `torch.serialization`. Files travel both ways between PyTorch and this package.

Holds reading: where the storages are, on which device they go, the error messages. Nothing a file says is executed: the pickle in it is interpreted
(unpickler.py) with an allow-list (allowed.py); saving is in saving.py, the zip archive in archive.py.
"""

from __future__ import annotations

import io
import mmap as _mmap
import os
import pickle
import struct
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from strided import dtypes
from strided.io.allowed import Registry, _builtin, add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from strided.io.archive import Reader
from strided.io.rebuild import StorageType, typed, untyped
from strided.io.saving import get_crc32_options, save, set_crc32_options
from strided.io.unpickler import Unpickler, UnpicklingError
from strided.kernels.native import new_storage, wrap_storage
from strided.tensor import UntypedStorage

MAP_LOCATION = FILE_LIKE = Any  # names of types that signatures mention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "add_safe_globals", "clear_safe_globals", "default_restore_location", "get_crc32_options", "get_default_mmap_options", "get_safe_globals",
    "get_unsafe_globals_in_checkpoint", "load", "location_tag", "safe_globals", "save", "set_crc32_options", "set_default_mmap_options",
]  # fmt: skip

MAGIC = 0x1950A86A20F9469CFC6C  # the first pickle of a file from before PyTorch 1.6
_LEGACY_PROTOCOL = 1001

_mapping = {"flags": _mmap.MAP_PRIVATE}


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None, mmap: bool | None = None, encoding: str = "utf-8") -> Any:
    """Loads an object that torch.save saved, here or in PyTorch.

    f: a path, or a seekable file open for reading bytes. map_location: where storages go, as a device or its name ("cpu", "meta"), a dict from saved to
    wanted names, or a function of (storage, saved name). mmap: map the file (a path) instead of reading it: storages come into memory as they are
    touched, and writing into them does not reach the file.

    Nothing is executed, whatever weights_only says: beyond tensors and containers only what `torch.serialization.add_safe_globals` allows is built, and
    with weights_only=False plain data too (argparse.Namespace, paths, dates, NumPy numbers and arrays).
    Raises pickle.UnpicklingError for anything else in the file, RuntimeError and EOFError for a damaged one.
    """
    if pickle_module is not None and pickle_module is not pickle:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified\n  strided interprets pickles itself and never executes them: leave pickle_module out.")
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        with open(path, "rb") as file:
            return _load(file, path, map_location, weights_only is not False, mmap, encoding)
    for name in ("read", "seek", "tell"):
        if not callable(getattr(f, name, None)):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{name}'. You can only torch.load from a file that is seekable. Please pre-load the data into a buffer like "
                "io.BytesIO and try to load from it instead."
            )
    return _load(f, str(getattr(f, "name", None) or f"<{type(f).__name__}>"), map_location, weights_only is not False, mmap, encoding)


def _load(file: Any, name: str, map_location: Any, weights_only: bool, mmap: bool | None, encoding: str) -> Any:
    start = file.tell()
    first = file.read(8)
    file.seek(start)
    if not first:
        raise EOFError(f"Ran out of input: {name} is empty")
    restore = _restorer(map_location)
    if first[:4] == b"PK\x03\x04":
        return _load_archive(Reader(file, name), restore, weights_only, mmap, encoding)
    if mmap:
        raise RuntimeError(
            f"mmap can only be used with files saved with `torch.save({name!r}, _use_new_zipfile_serialization=True), please torch.save your checkpoint with this option in order to use mmap."
        )
    return _load_legacy(file, name, restore, weights_only, encoding)


# ---- where storages go -----------------------------------------------------------------------


def location_tag(storage: Any) -> str:
    """The name of the device a storage is on, as files spell it."""
    return str(storage.device)


def default_restore_location(storage: UntypedStorage, location: str) -> UntypedStorage:
    """The storage on the device of that name. Raises RuntimeError for one that is not here."""
    kind = str(location).partition(":")[0]
    if kind == "cpu":
        return storage
    if kind == "meta":
        return untyped(wrap_storage(0, storage.nbytes(), None), dtypes.META)
    if kind in ("cuda", "mps", "xpu", "hpu", "mtia", "privateuseone"):
        raise RuntimeError(
            f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}.is_available() is False. If you are running on a CPU-only machine, "
            "please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
        )
    raise RuntimeError(f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {str(location)[:100]})\n  Load it with map_location='cpu'.")


def _to_meta(storage: UntypedStorage, location: str) -> UntypedStorage:
    return default_restore_location(storage, "meta")


def _restorer(map_location: Any) -> Callable[[UntypedStorage, str], UntypedStorage]:
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, str(map_location.get(location, location)))
    if map_location in ("meta", dtypes.META):
        return _to_meta
    if isinstance(map_location, (str, dtypes.Device)):
        return lambda storage, location: default_restore_location(storage, str(map_location))
    if not callable(map_location):
        raise TypeError(f"map_location is a device, its name, a dict of names or a function, but got {type(map_location).__name__}")

    def restore(storage: UntypedStorage, location: str) -> UntypedStorage:
        result = map_location(storage, location)
        if result is None:
            return default_restore_location(storage, location)
        result = result.untyped() if hasattr(result, "untyped") else result
        if not isinstance(result, UntypedStorage):
            raise TypeError(f"map_location returned {type(result).__name__} where a storage or None is needed")
        return result

    return restore


def get_default_mmap_options() -> int:
    """The flags with which `load(…, mmap=True)` maps."""
    return _mapping["flags"]


class set_default_mmap_options:
    """Sets the flags of mappings: mmap.MAP_PRIVATE (writes stay in this process) or mmap.MAP_SHARED (writes reach the file). Also a context manager."""

    def __init__(self, flags: int):
        if flags not in (_mmap.MAP_PRIVATE, _mmap.MAP_SHARED):
            raise ValueError(f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}")
        self.before, _mapping["flags"] = _mapping["flags"], flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _mapping["flags"] = self.before


# ---- storages by persistent id ---------------------------------------------------------------


class _Storages:
    """The storages of one load, by key: made on first use by `fetch(key, bytes) -> native storage`, and put on their device."""

    def __init__(self, restore: Callable[[UntypedStorage, str], UntypedStorage], fetch: Callable[[str, int], Any]):
        self.restore, self.fetch = restore, fetch
        self.found: dict[str, tuple[UntypedStorage, int]] = {}

    def __call__(self, pid: tuple) -> Any:
        if len(pid) < 5:
            raise UnpicklingError(f"a storage is named by 5 values, but got {len(pid)}")
        _, kind, key, location, count = pid[:5]
        key, location = (value.decode("latin1") if type(value) is bytes else value for value in (key, location))
        if not (isinstance(kind, StorageType) or kind is UntypedStorage) or type(key) is not str or type(location) is not str or type(count) is not int or count < 0:
            raise UnpicklingError(f"a storage is named by its class, key, device and size, but got {str(pid[1:5])[:200]}")
        if len(pid) > 5 and pid[5] is not None:
            raise NotImplementedError("the file holds views of storages, as PyTorch before 0.4 wrote them: load and save it with a newer PyTorch")
        nbytes = count * (kind.dtype.itemsize if isinstance(kind, StorageType) else 1)
        if key in self.found:
            storage, known = self.found[key]
            if known != nbytes:
                raise UnpicklingError(f"the storage {key[:100]!r} has {known:,} bytes in one place and {nbytes:,} in another")
        else:
            storage = self.restore(untyped(self.fetch(key, nbytes), dtypes.CPU), location)
            self.found[key] = storage, nbytes
        return typed(storage, kind.dtype) if isinstance(kind, StorageType) else storage


def _interpret(unpickler: Unpickler, name: str) -> Any:
    """What the pickle says; errors say which file it is in."""
    try:
        return unpickler.load()
    except UnpicklingError as error:
        raise UnpicklingError(f"Weights only load failed. {error}\n  in {name}") from None
    except EOFError as error:
        raise EOFError(f"{error}\n  in {name}") from None


# ---- the zip archive -------------------------------------------------------------------------


def _load_archive(reader: Reader, restore: Any, weights_only: bool, mmap: bool | None, encoding: str) -> Any:
    if "constants.pkl" in reader:
        raise RuntimeError(
            f"Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. {reader.name} holds a compiled program (torch.jit.save), and strided runs "
            "none: in PyTorch, save torch.jit.load(path).state_dict() with torch.save, and load that."
        )
    if "data.pkl" not in reader:
        raise reader.damaged(f"file not found: no data.pkl among its {len(reader.records)} records; a zip archive, but not one of torch.save", f"{reader.root}/data.pkl")
    order = bytes(reader.read("byteorder")) if "byteorder" in reader else b"little"
    if order not in (b"little", b"big"):
        raise ValueError(f"Unknown endianness type: {order[:20].decode('latin1')}")
    if order.decode() != sys.byteorder:
        raise NotImplementedError(
            f"{reader.name} was saved on a machine of the other byte order ({order.decode()} endian): load it there or with PyTorch, and save it again on a machine of this one's"
        )
    mapped = _Mapped(reader) if mmap else None

    def fetch(key: str, nbytes: int) -> Any:
        record = f"data/{key}"
        if reader.length(record) != nbytes:
            raise reader.damaged(f"the pickle needs a storage of {nbytes:,} bytes, the record has {reader.length(record):,}", record)
        if restore is _to_meta:  # nothing need be read
            return wrap_storage(0, nbytes, None)
        if mapped is not None:
            return mapped.storage(record, nbytes)
        reader.place(record)  # before memory is asked for: the file must be that long
        if reader._most(record) < nbytes:
            raise reader.damaged(f"its {nbytes:,} bytes cannot come out of {reader.records[record].compress_size:,} compressed ones", record)
        mem = new_storage(nbytes)
        reader.read_into(record, memoryview(mem).cast("B")[:nbytes] if nbytes else memoryview(bytearray()))
        return mem

    return _interpret(Unpickler(reader.read("data.pkl"), Registry(weights_only), _Storages(restore, fetch), encoding=encoding), reader.name)


class _Mapped:
    """The archive's file, mapped."""

    def __init__(self, reader: Reader):
        import ctypes

        self.reader = reader
        flags = _mapping["flags"]
        if flags == _mmap.MAP_PRIVATE:
            self.bytes = _mmap.mmap(reader.file.fileno(), 0, access=_mmap.ACCESS_COPY)
        else:
            with open(reader.name, "r+b") as file:
                self.bytes = _mmap.mmap(file.fileno(), 0, flags=flags)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.bytes))

    def storage(self, record: str, nbytes: int) -> Any:
        start = self.reader.place(record)
        if start is None:
            raise NotImplementedError(f"{self.reader.name}: the record {record} is compressed and cannot be mapped: load with mmap=False")
        if (self.address + start) % 16:  # an archive that was not aligned: no element type needs more than 16
            mem = new_storage(nbytes)
            if nbytes:
                memoryview(mem).cast("B")[:nbytes] = memoryview(self.bytes)[start : start + nbytes]
            return mem
        return wrap_storage(self.address + start, nbytes, self.bytes)


# ---- the format before PyTorch 1.6 -----------------------------------------------------------


def _load_legacy(file: Any, name: str, restore: Any, weights_only: bool, encoding: str) -> Any:
    """Four pickles (magic number, version, system, the object), the keys of the storages, then each storage's count and bytes."""
    data = memoryview(file.read())
    place = 0
    pending: dict[str, Any] = {}

    def unpickle(persistent: Any = _no_storage) -> Any:
        nonlocal place
        unpickler = Unpickler(data, Registry(weights_only), persistent, place, encoding)
        value = _interpret(unpickler, name)
        place = unpickler.position
        return value

    try:
        magic = unpickle()
    except (UnpicklingError, EOFError) as error:
        raise _not_a_checkpoint(data, name, error) from None
    if magic != MAGIC:
        if len(data) == place and type(magic) is not int:
            raise RuntimeError(f"Invalid magic number; corrupt file?\n  {name} is a plain pickle, not a file of torch.save: read it with the pickle module, if you trust it.")
        raise RuntimeError(f"Invalid magic number; corrupt file?\n  {name} does not begin as torch.save's files do.")
    version = unpickle()
    if version != _LEGACY_PROTOCOL:
        raise RuntimeError(f"Invalid protocol version: {str(version)[:100]}")
    system = unpickle()
    if not isinstance(system, dict) or system.get("little_endian") is not (sys.byteorder == "little"):
        raise NotImplementedError(f"{name} was saved on a machine of the other byte order: load it there, and save it in today's format")

    def reserve(key: str, nbytes: int) -> Any:
        if nbytes > len(data):
            raise RuntimeError(f"unexpected EOF, expected {nbytes:,} bytes for the storage {key[:100]!r} in a file of {len(data):,}. The file might be corrupted.\n  in {name}")
        pending[key] = new_storage(nbytes), nbytes
        return pending[key][0]

    storages = _Storages(lambda storage, location: storage, reserve)
    locations: dict[str, str] = {}

    def note(pid: tuple) -> Any:
        value = storages(pid)
        locations[pid[2]] = pid[3]
        restored = restore(value.untyped() if hasattr(value, "untyped") else value, str(pid[3]))
        return typed(restored, value.dtype) if hasattr(value, "untyped") else restored

    result = unpickle(note)
    keys = unpickle()
    if not isinstance(keys, list):
        raise RuntimeError(f"the storages' keys are a list, but got {type(keys)}\n  in {name}")
    for key in keys:
        if key not in pending:
            raise RuntimeError(f"the storage {str(key)[:100]!r} belongs to no tensor of the file: corrupt file?\n  in {name}")
        mem, nbytes = pending.pop(key)
        body = data[place + 8 : place + 8 + nbytes]
        if len(data) < place + 8 or len(body) < nbytes:
            raise RuntimeError(f"unexpected EOF, expected {place + 8 + nbytes - len(data):,} more bytes. The file might be corrupted.\n  in {name}")
        (count,) = struct.unpack("<q", data[place : place + 8])
        if count < 0 or nbytes and (not count or nbytes % count):
            raise RuntimeError(f"storage has wrong byte size: {count:,} elements in {nbytes:,} bytes\n  in {name}")
        if nbytes:
            memoryview(mem).cast("B")[:nbytes] = body
        place += 8 + nbytes
    if pending:
        raise RuntimeError(f"unexpected EOF: the file holds no bytes for {len(pending)} of its storages. The file might be corrupted.\n  in {name}")
    return result


def _no_storage(pid: tuple) -> Any:
    raise UnpicklingError("a storage stands where the file's own numbers are expected")


def _not_a_checkpoint(data: memoryview, name: str, error: Exception) -> Exception:
    """What a file that does not begin with a pickle probably is."""
    if len(data) > 9 and int.from_bytes(data[:8], "little") < len(data) and data[8:9] == b"{":
        return RuntimeError(f"Invalid magic number; corrupt file?\n  {name} is a safetensors file: load it with safetensors.torch.load_file.")
    if bytes(data[:4]) == b"GGUF":
        return RuntimeError(f"Invalid magic number; corrupt file?\n  {name} is a GGUF file: load it with strided.io.gguf.load_file.")
    if bytes(data[257:262]) == b"ustar":
        return NotImplementedError(f"{name} is a tar file, as PyTorch before 0.1.10 wrote: load and save it with a newer PyTorch")
    return type(error)(f"{error}\n  It begins with {bytes(data[:16])!r}, which no file of torch.save does.")


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a file's pickle that `load` would refuse, sorted. Nothing is built."""
    import pickletools

    with open(f, "rb") if isinstance(f, (str, os.PathLike)) else _left_open(f) as file:
        reader = Reader(file, str(f))
        if "data.pkl" not in reader:
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        pickled = bytes(reader.read("data.pkl"))
    allowed = {*_builtin(), *Registry().named}
    found, texts = set(), ["", ""]
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name == "GLOBAL":
            found.add(".".join(str(argument).replace("__builtin__", "builtins").split(" ", 1)))
        elif opcode.name == "STACK_GLOBAL":
            found.add(".".join(texts))
        elif isinstance(argument, str):
            texts = [texts[1], argument]
    return sorted(found - allowed)


@contextmanager
def _left_open(file: io.IOBase) -> Iterator[Any]:
    yield file
