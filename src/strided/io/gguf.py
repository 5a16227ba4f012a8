"""Tensors from GGUF files: mapped, not read or converted. Blocks stay blocks (block_tensor.py), other tensors are ordinary ones over the file's bytes.

What makes a file valid is gguf_header.py's business; nothing in a file is ever executed.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

from strided import dtypes
from strided.block_formats import parse
from strided.block_tensor import check
from strided.io.gguf_header import TYPES, GgufEntry, GgufError, parse_header
from strided.kernels import native
from strided.layout import Layout
from strided.tensor import Spec, Tensor, wrap

__all__ = ["GgufError", "GgufFile", "load_file"]


def load_file(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """All tensors of a GGUF file, by name, in the order of its data; shapes are outermost dimension first, as in PyTorch.

    The file is mapped and nothing is read until a kernel touches it. Tensors of Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K are block tensors: they
    multiply as they are, and `dequantize()` makes ordinary tensors of them.
    Raises GgufError for an invalid file, OSError where it cannot be opened, NotImplementedError for a type that is not read (`GgufFile(path)` has the others).
    """
    file = GgufFile(path)
    return {name: file[name] for name in sorted(file.header.entries, key=lambda name: file.header.entries[name].start)}


class GgufFile:
    """A GGUF file whose tensors are made one by one: `GgufFile(path)[name]`. `metadata` has the file's fields, the tokenizer's arrays among them."""

    def __init__(self, path: str | os.PathLike[str]):
        name = os.fspath(path)
        with open(name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < 24:
                raise GgufError(name, f"truncated: {size} bytes are less than the 24 that a GGUF file begins with")
            self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        self.header = parse_header(self.bytes, name, arrays=True)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.bytes))

    @property
    def metadata(self) -> dict[str, Any]:
        """The file's fields by key: numbers, texts and lists."""
        return self.header.fields

    def keys(self) -> list[str]:
        """The tensors' names."""
        return list(self.header.entries)

    def __len__(self) -> int:
        return len(self.header.entries)

    def __contains__(self, name: object) -> bool:
        return name in self.header.entries

    def __getitem__(self, name: str) -> Tensor:
        """The tensor of this name, over the file's bytes. Raises KeyError if there is none, NotImplementedError for a type that is not read."""
        entry = self.header.entries[name]
        label, _, nbytes, dtype = TYPES[entry.kind]
        if dtype is None:
            raise NotImplementedError(f"{self.header.path}: tensor {name!r} is {label}, which is not read here: its bytes are GgufFile(…).get_bytes({name!r})")
        if not entry.is_block:
            return self._mapped(entry, dtypes.names()[dtype], entry.shape)
        format = parse(dtype)
        lead, columns = entry.shape[:-1], entry.shape[-1]
        return check(format, [self._mapped(entry, dtypes.uint8, (*lead, columns // format.block, nbytes))], entry.shape)

    def get_bytes(self, name: str) -> Tensor:
        """A tensor's bytes as they are in the file: uint8, shape [bytes]."""
        entry = self.header.entries[name]
        return self._mapped(entry, dtypes.uint8, (entry.nbytes,))

    def _mapped(self, entry: GgufEntry, dtype: Any, shape: tuple[int, ...]) -> Tensor:
        address = self.address + self.header.data_start + entry.start
        storage = native.wrap_storage(address, entry.nbytes, self.bytes)
        spec = Spec.of(Layout.contiguous(shape), dtype, dtypes.CPU)
        t = wrap(spec, storage, storage.data)
        if address % dtype.itemsize:  # an alignment smaller than the elements
            raw = wrap(Spec.of(Layout.contiguous((entry.nbytes,)), dtypes.uint8, dtypes.CPU), storage, storage.data)
            t = raw.clone().view(dtype).view(shape)
        return t
