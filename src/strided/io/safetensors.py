"""Tensors from and to safetensors files: mapped, not read. The interface is `safetensors.torch`'s, which scripts import under the torch alias.

Holds loading, lazy opening and saving. What makes a file valid is header.py's business; the format holds tensors and text only, so that
loading never executes anything.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import TYPE_CHECKING, Any

from strided import dtypes
from strided.io.header import DTYPES, Entry, Header, SafetensorsError, build_header, header_length, open_checkpoint, parse_header, shorten
from strided.kernels import native
from strided.layout import Layout
from strided.tensor import Spec, Tensor, empty, place_of, wrap

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "SafetensorsError", "load", "load_checkpoint", "load_file", "load_model", "safe_open", "save", "save_file", "save_model",
    "storage_ptr", "storage_size",
]  # fmt: skip

TAGS = {name: tag for tag, (name, _) in DTYPES.items()}  # torch's name → the file's


def storage_ptr(tensor: Tensor) -> int:
    """The address of a tensor's storage: the same for tensors that share memory."""
    return tensor.untyped_storage().data_ptr()


def storage_size(tensor: Tensor) -> int:
    """The size of a tensor's storage in bytes."""
    return tensor.untyped_storage().nbytes()


# ---- loading --------------------------------------------------------------------------------


def load_file(filename: str | os.PathLike[str], device: Any = "cpu") -> dict[str, Tensor]:
    """All tensors of a safetensors file, by name, in the order of its buffer.

    The file is mapped and nothing is read until a kernel touches it; writing into a tensor copies the touched pages and never reaches the
    file. The mapping lives as long as any of its tensors. (A file that another program shortens while mapped takes its pages with it, as
    with every mapped file: replace files by renaming, as save_file does.) A tensor whose bytes do not start on a multiple of its element's
    size is copied.

    Raises SafetensorsError for an invalid file, OSError where it cannot be opened, NotImplementedError for a dtype without a tensor type.
    """
    file = _Mapped(filename)
    target = dtypes.resolve_device(device)
    return {entry.name: file.tensor(entry, target) for entry in _by_offset(file.header)}


def load(data: bytes) -> dict[str, Tensor]:
    """All tensors of a file that is already in memory as bytes (copied: bytes are immutable)."""
    header = parse_header(data[8 : 8 + header_length(data[:8], len(data), "<bytes>")], len(data), "<bytes>")
    buffer = memoryview(data)[header.data_start :]
    return {entry.name: _copied(buffer[entry.start : entry.end], *_type_of(entry, header.path)) for entry in _by_offset(header)}


def load_checkpoint(path: str | os.PathLike[str], device: Any = "cpu") -> dict[str, Tensor]:
    """All tensors of a file, of the shards of a `*.safetensors.index.json`, or of a model folder with either. Every header is checked
    before the first tensor is made; a missing shard is an error that names it and its tensors."""
    headers = open_checkpoint(path).headers
    return {name: tensor for header in headers for name, tensor in load_file(header.path, device).items()}


def load_model(model: Any, filename: str | os.PathLike[str], strict: bool = True, device: Any = "cpu") -> tuple[list[str], list[str]]:
    """Copy a file's tensors into a module's parameters and buffers; (missing, unexpected) names.

    A parameter that is missing from the file but tied to one that is there is not missing. strict: raise RuntimeError if any name remains.
    """
    state = load_file(filename, device)
    own = model.state_dict()
    filled = {own[name].data_ptr() for name in state if name in own}
    missing, unexpected = model.load_state_dict(state, strict=False)
    missing = [name for name in missing if own[name].data_ptr() not in filled]
    if strict and (missing or unexpected):
        names = "".join(f"\n    {kind} key(s) in state_dict: {', '.join(keys)}" for kind, keys in (("Missing", missing), ("Unexpected", unexpected)) if keys)
        raise RuntimeError(f"Error(s) in loading state_dict for {type(model).__name__}:{names}")
    return missing, list(unexpected)


class safe_open:
    """A safetensors file whose tensors are made one by one: `with safe_open(path, framework="pt") as f: f.get_tensor(name)`.

    The header is checked at once; tensors outlive the block. With backend="mmap" they are mapped as by load_file; with "pread" each is read into memory of its own when it is
    asked for, so that the file may change afterwards. Raises SafetensorsError for an invalid file and for frameworks and backends that are not served.
    """

    def __init__(self, filename: str | os.PathLike[str], framework: str = "pt", device: Any = "cpu", *, backend: str = "mmap"):
        if framework not in ("pt", "torch", "pytorch"):
            raise SafetensorsError(os.fspath(filename), f'framework {framework!r} is not served here; strided\'s tensors are "pt"')
        if backend not in ("mmap", "pread"):
            raise SafetensorsError(os.fspath(filename), f'unknown backend {backend!r}: it is "mmap" or "pread"')
        self._device = dtypes.resolve_device(device)
        self._file = _Mapped(filename, mapping=backend == "mmap")

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *exc: object) -> None:
        pass  # the mapping goes with the last tensor that needs it

    def keys(self) -> list[str]:
        """The tensors' names, sorted."""
        return sorted(self._file.header.entries)

    def offset_keys(self) -> list[str]:
        """The tensors' names in the order of the buffer."""
        return [entry.name for entry in _by_offset(self._file.header)]

    def metadata(self) -> dict[str, str] | None:
        """The file's own notes, text by name; None if it has none."""
        return self._file.header.metadata or None

    def get_tensor(self, name: str) -> Tensor:
        """The tensor of this name. Raises SafetensorsError if there is none."""
        return self._file.tensor(self._entry(name), self._device)

    def get_slice(self, name: str) -> _Slice:
        """The tensor of this name, to be indexed: `f.get_slice(name)[:16]` is a view of the mapping and reads only what it covers."""
        return _Slice(self, self._entry(name))

    def get_bytes(self, name: str) -> Tensor:
        """A tensor's bytes as they are in the file: uint8, shape [bytes]. For dtypes that have no tensor type here."""
        entry = self._entry(name)
        return self._file.mapped(entry, dtypes.uint8, (entry.nbytes,))

    def _entry(self, name: str) -> Entry:
        entry = self._file.header.entries.get(name)
        if entry is None:
            raise SafetensorsError(self._file.header.path, f"File does not contain tensor {shorten(name)} (it has {len(self._file.header.entries)} tensors)", name)
        return entry


class _Slice:
    """What safe_open.get_slice returns."""

    def __init__(self, file: safe_open, entry: Entry):
        self._file, self._entry = file, entry

    def get_shape(self) -> list[int]:
        return list(self._entry.shape)

    def get_dtype(self) -> str:
        """The file's own name of the dtype, as "F32"."""
        return self._entry.dtype

    def __getitem__(self, index: Any) -> Tensor:
        return self._file.get_tensor(self._entry.name)[index]  # type: ignore[index]  # from the operator table


class _Mapped:
    """A file's checked header and its bytes, mapped privately: writes stay in this process. mapping=False: tensors are copies of their bytes."""

    def __init__(self, filename: str | os.PathLike[str], mapping: bool = True):
        self.mapping = mapping
        path = os.fspath(filename)
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size < 8:  # an empty file cannot even be mapped
                header_length(file.read(8), os.fstat(file.fileno()).st_size, path)
            self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        length = header_length(self.bytes[:8], len(self.bytes), path)
        self.header = parse_header(self.bytes[8 : 8 + length], len(self.bytes), path)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.bytes))

    def tensor(self, entry: Entry, device: Any) -> Tensor:
        dtype, shape = _type_of(entry, self.header.path)
        if device.type == "meta":
            return empty(shape, dtype, device)
        return self.mapped(entry, dtype, shape)

    def mapped(self, entry: Entry, dtype: Any, shape: tuple[int, ...]) -> Tensor:
        """The entry's bytes as a tensor in place, or copied where that is asked for or its address does not suit its elements."""
        start = self.header.data_start + entry.start
        if not self.mapping or (self.address + start) % dtype.itemsize:
            return _copied(memoryview(self.bytes)[start : start + entry.nbytes], dtype, shape)
        storage = native.wrap_storage(self.address + start, entry.nbytes, self.bytes)
        return _tensor(storage, dtype, shape)


def _by_offset(header: Header) -> list[Entry]:
    return sorted(header.entries.values(), key=lambda entry: (entry.start, entry.end))


def _type_of(entry: Entry, path: str) -> tuple[Any, tuple[int, ...]]:
    """The tensor dtype and shape of an entry. Two F4 make one element where they can, as in torch: the last dimension halves."""
    shape = entry.shape
    if entry.dtype == "F4" and shape and shape[-1] % 2 == 0:
        return dtypes.names()["float4_e2m1fn_x2"], (*shape[:-1], shape[-1] // 2)
    return dtypes.names()[entry.torch_name], shape


def _tensor(storage: Any, dtype: Any, shape: tuple[int, ...]) -> Tensor:
    spec = Spec.of(Layout.contiguous(shape), dtype, dtypes.resolve_device("cpu"))
    return wrap(spec, storage, place_of(storage, spec))


def _copied(source: memoryview, dtype: Any, shape: tuple[int, ...]) -> Tensor:
    storage = native.new_storage(len(source))
    if source:
        memoryview(storage).cast("B")[:] = source
    return _tensor(storage, dtype, shape)


# ---- saving ---------------------------------------------------------------------------------


def save_file(tensors: Mapping[str, Tensor], filename: str | os.PathLike[str], metadata: dict[str, str] | None = None) -> None:
    """Write tensors to a safetensors file. The file appears whole, by renaming, or not at all; one of that name stays until then.

    Raises ValueError for a tensor that is not contiguous, RuntimeError where two share memory (save_model keeps one of each), TypeError for
    anything but tensors, NotImplementedError for a dtype that the format lacks.
    """
    head, placed = _prepare(tensors, metadata)
    path = os.path.realpath(os.fspath(filename))  # a link keeps pointing where it did
    partial = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.getpid()}.partial")
    try:
        with open(partial, "xb") as file:
            file.write(head)
            for entry in placed:
                file.write(_bytes_of(tensors[entry.name]))
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


def save(tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes that save_file would write."""
    head, placed = _prepare(tensors, metadata)
    return b"".join([head, *(_bytes_of(tensors[entry.name]) for entry in placed)])


def save_model(model: Any, filename: str | os.PathLike[str], metadata: dict[str, str] | None = None, force_contiguous: bool = True) -> None:
    """Write a module's state_dict. Of tied parameters the first (by name) is written; the file's metadata maps the others to it."""
    kept: dict[str, Tensor] = {}
    first: dict[tuple[int, tuple[int, ...], tuple[int, ...]], str] = {}
    notes = dict(metadata or {})
    for name, tensor in sorted(model.state_dict().items()):
        twin = first.setdefault((tensor.data_ptr(), tuple(tensor.shape), tensor.stride()), name) if tensor.numel() else name
        if twin != name:
            notes[name] = twin
        else:
            kept[name] = tensor.contiguous() if force_contiguous else tensor
    save_file(kept, filename, notes or None)


def _prepare(tensors: Mapping[str, Tensor], metadata: dict[str, str] | None) -> tuple[bytes, list[Entry]]:
    """Check what is to be written; the first bytes of the file, and the order of the rest."""
    for key, value in (metadata or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"safetensors metadata maps text to text, got {key!r}: {value!r}")
    entries, ranges = [], []
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
        if tensor.device.type == "meta":
            raise ValueError(f"tensor `{name}` is on the meta device: it has a shape and no values to save")
        if not tensor.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. Its shape is {tuple(tensor.shape)} and its strides "
                f"{tensor.stride()}; save {name}.contiguous(), which copies it into row-major order."
            )
        entries.append((name, *_tag_of(name, tensor), tensor.spec.nbytes))
        ranges.append((tensor.data_ptr(), tensor.data_ptr() + entries[-1][3], name))
    ranges = sorted(r for r in ranges if r[0] < r[1])
    for (_, end, one), (start, _, other) in zip(ranges, ranges[1:]):
        if start < end:
            raise RuntimeError(
                f"Some tensors share memory, this will lead to duplicate memory on disk and potential differences when loading them again: `{one}` and "
                f"`{other}`. Save one of them, or clone() one, or use save_model, which keeps one of each tied pair."
            )
    return build_header(entries, metadata)


def _tag_of(name: str, tensor: Tensor) -> tuple[str, tuple[int, ...]]:
    """The file's dtype and shape for a tensor."""
    shape, dtype = tuple(tensor.shape), tensor.dtype.name
    if dtype == "float4_e2m1fn_x2" and shape:
        return "F4", (*shape[:-1], shape[-1] * 2)
    if tensor.dtype.packed and dtype in TAGS and (tensor.numel() * tensor.dtype.bits % 8 or tensor.storage_offset() * tensor.dtype.bits % 8):
        raise ValueError(
            f"tensor `{name}` of shape {shape} is {tensor.numel() * tensor.dtype.bits} bits from bit {tensor.storage_offset() * tensor.dtype.bits} of its storage, no whole bytes, "
            "which the safetensors format cannot hold: save a clone() of a window, and pad what does not fill its last byte"
        )
    if dtype not in TAGS:
        raise NotImplementedError(f"tensor `{name}` is {tensor.dtype}, which the safetensors format has no name for; convert it with .to(…) first")
    return TAGS[dtype], shape


def _bytes_of(tensor: Tensor) -> memoryview:
    """A contiguous tensor's bytes, in place."""
    start = tensor.data_ptr() - tensor.mem.data
    return memoryview(tensor.mem).cast("B")[start : start + tensor.spec.nbytes]
