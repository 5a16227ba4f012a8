"""The GGUF format: what a file's header says, checked against the file before anything believes it.

Standard library only, and never a byte of tensor data: `strided inspect` and the loader (gguf.py) both start here. A file is the magic, a version, counts
of tensors and of metadata, the metadata (keys with typed values, the tokenizer among them), a description of each tensor, and the data, aligned.
"""

from __future__ import annotations

import mmap
import os
import struct
from typing import Any, NamedTuple, NoReturn

from strided.io.header import shorten

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_DIMS = 8
MAX_NESTING = 4
MAX_NAME = 65_535

# The file's number of a type: (its name, values of a block, bytes of it, the name of the tensor's dtype here, or None where there is no such dtype).
TYPES: dict[int, tuple[str, int, int, str | None]] = {
    0: ("F32", 1, 4, "float32"), 1: ("F16", 1, 2, "float16"), 2: ("Q4_0", 32, 18, "q4_0"), 3: ("Q4_1", 32, 20, "q4_1"), 6: ("Q5_0", 32, 22, "q5_0"),
    7: ("Q5_1", 32, 24, "q5_1"), 8: ("Q8_0", 32, 34, "q8_0"), 9: ("Q8_1", 32, 36, None), 10: ("Q2_K", 256, 84, None), 11: ("Q3_K", 256, 110, None),
    12: ("Q4_K", 256, 144, "q4_k"), 13: ("Q5_K", 256, 176, "q5_k"), 14: ("Q6_K", 256, 210, "q6_k"), 15: ("Q8_K", 256, 292, None), 24: ("I8", 1, 1, "int8"),
    25: ("I16", 1, 2, "int16"), 26: ("I32", 1, 4, "int32"), 27: ("I64", 1, 8, "int64"), 28: ("F64", 1, 8, "float64"), 30: ("BF16", 1, 2, "bfloat16"),
    39: ("MXFP4", 32, 17, None), 40: ("NVFP4", 64, 36, None),
}  # fmt: skip
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9


class GgufError(ValueError):
    """A file that is not valid GGUF. Fields: path, tensor (a name, or None where the file as a whole is meant), reason."""

    def __init__(self, path: str, reason: str, tensor: str | None = None):
        self.path, self.reason, self.tensor = path, reason, tensor
        super().__init__(f"{path}: " + (f"tensor {shorten(tensor)!r}: " if tensor is not None else "") + reason)


class GgufEntry(NamedTuple):
    """One tensor of a file. kind: the file's number of its type; shape: outermost dimension first; start, end: bytes from the beginning of the data."""

    name: str
    kind: int
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def dtype(self) -> str:
        """The file's name of its type."""
        return TYPES[self.kind][0]

    @property
    def torch_name(self) -> str:
        """The name of its dtype here, or the file's in small letters where there is none."""
        return TYPES[self.kind][3] or self.dtype.lower()

    @property
    def is_block(self) -> bool:
        """Whether its values lie in blocks under common scales."""
        return TYPES[self.kind][1] > 1

    @property
    def nbytes(self) -> int:
        return self.end - self.start

    @property
    def bits(self) -> float:
        """Bits one element takes, scales included."""
        return 8 * TYPES[self.kind][2] / TYPES[self.kind][1]

    @property
    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count


class GgufHeader(NamedTuple):
    """A file's header, checked. fields: its metadata by key; data_start: where the data begins; padding: bytes of the data that belong to no tensor."""

    path: str
    entries: dict[str, GgufEntry]
    fields: dict[str, Any]
    version: int
    data_start: int
    padding: int
    file_size: int

    @property
    def length(self) -> int:
        """All bytes behind the first eight that are no tensor's."""
        return self.data_start + self.padding - 8

    @property
    def data_bytes(self) -> int:
        return self.file_size - self.data_start - self.padding

    @property
    def metadata(self) -> dict[str, str]:
        """The fields as short texts."""
        return {key: value if isinstance(value, str) else str(value) for key, value in self.fields.items()}


class Counted(NamedTuple):
    """Stands for an array of metadata that was not read: how many values of which type."""

    length: int
    type: str

    def __str__(self):
        return f"{self.length:,} values of type {self.type}"


def is_gguf(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that it is GGUF. Raises OSError where it cannot be read."""
    with open(path, "rb") as file:
        return file.read(4) == MAGIC


def read_header(path: str | os.PathLike[str], arrays: bool = False) -> GgufHeader:
    """Read and check a file's header. arrays: with the values of arrays (a tokenizer's words), which else are only counted.

    Raises GgufError for anything wrong with the content, OSError where the file cannot be read.
    """
    name = os.fspath(path)
    with open(name, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < 24:
            raise GgufError(name, f"truncated: {size} bytes are less than the 24 that a GGUF file begins with")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return parse_header(data, name, arrays)


def parse_header(data: Any, path: str, arrays: bool = False) -> GgufHeader:
    """`read_header` of bytes that are in memory (or mapped)."""
    r = _Reader(data, path)
    if r.take(4, "the magic") != MAGIC:
        raise GgufError(path, "no GGUF file: it does not begin with the letters GGUF")
    version = r.number("I", "the version")
    if version not in VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        raise GgufError(path, f"GGUF version {swapped} in big-endian byte order, which is not read here" if swapped in VERSIONS else f"GGUF version {version}; versions 2 and 3 are read")
    tensors, fields = r.number("Q", "the number of tensors"), r.number("Q", "the number of metadata fields")
    if tensors * 32 + fields * 13 > r.left:  # the least that each takes
        raise GgufError(path, f"{tensors:,} tensors and {fields:,} metadata fields do not fit into the {r.left:,} bytes left")
    metadata: dict[str, Any] = {}
    for _ in range(fields):
        key = r.text("a metadata key", MAX_NAME)
        if key in metadata:
            raise GgufError(path, f"the metadata has the key {shorten(key)!r} twice")
        metadata[key] = r.value(r.number("I", f"the type of {shorten(key)!r}"), arrays, shorten(key))
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or isinstance(alignment, bool) or not 0 < alignment <= 1 << 20 or alignment & (alignment - 1):
        raise GgufError(path, f"general.alignment is a power of two, not {shorten(repr(alignment))}")
    entries: dict[str, GgufEntry] = {}
    for _ in range(tensors):
        entry = _entry(r, alignment)
        if entry.name in entries:
            raise GgufError(path, "this name comes twice", entry.name)
        entries[entry.name] = entry
    start = -(-r.at // alignment) * alignment
    return _placed(path, entries, metadata, version, start if entries else min(start, len(data)), len(data))


def _entry(r: _Reader, alignment: int) -> GgufEntry:
    name = r.text("a tensor's name", MAX_NAME)
    fail = lambda reason: GgufError(r.path, reason, name)
    ndim = r.number("I", "a tensor's number of dimensions")
    if ndim > MAX_DIMS:
        raise fail(f"{ndim:,} dimensions, where at most {MAX_DIMS} are allowed")
    sizes = [r.number("Q", "a tensor's sizes") for _ in range(ndim)]  # innermost first
    kind = r.number("I", "a tensor's type")
    if kind not in TYPES:
        raise fail(f"its type is number {kind}, which is unknown here")
    label, block, nbytes, _ = TYPES[kind]
    count = 1
    for size in sizes:
        count *= size
    if max(sizes, default=1) >= 1 << 62 or count >= 1 << 62:
        raise fail(f"its shape {sizes} has more elements than 64 bits can count")
    if block > 1 and (not sizes or sizes[0] % block):
        raise fail(f"its rows of {sizes[0] if sizes else 1} elements are no multiple of the {block} in a block of {label}")
    offset = r.number("Q", "a tensor's offset")
    if offset % alignment:
        raise fail(f"its offset {offset:,} is no multiple of the alignment {alignment}")
    return GgufEntry(name, kind, tuple(reversed(sizes)), offset, offset + count // block * nbytes)


def _placed(path, entries, metadata, version, start, size) -> GgufHeader:
    """The header, once no tensor reaches beyond the file or into another."""
    room, last, summed = max(0, size - start), None, 0
    for entry in sorted(entries.values(), key=lambda entry: (entry.start, entry.end)):
        if entry.end > room:
            raise GgufError(path, f"its bytes {entry.start:,} to {entry.end:,} end beyond the {room:,} bytes of data in the file", entry.name)
        if last is not None and entry.start < last.end and entry.nbytes:
            raise GgufError(path, f"its bytes from {entry.start:,} on overlap those of {shorten(last.name)!r}, which end at {last.end:,}", entry.name)
        if entry.nbytes:
            last = entry
        summed += entry.nbytes
    return GgufHeader(path, entries, metadata, version, start, room - summed, size)


class _Reader:
    """Walks a buffer; everything it hands out has been checked to lie in it."""

    def __init__(self, data: Any, path: str):
        self.data, self.path, self.at, self.size = data, path, 0, len(data)

    @property
    def left(self) -> int:
        return self.size - self.at

    def _short(self, what: str) -> NoReturn:
        raise GgufError(self.path, f"truncated: the file ends within {what}, at byte {self.size:,}")

    def take(self, count: int, what: str) -> bytes:
        if count > self.left:
            self._short(what)
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, form: str, what: str) -> Any:
        size = struct.calcsize("<" + form)
        if size > self.left:
            self._short(what)
        self.at += size
        return struct.unpack_from("<" + form, self.data, self.at - size)[0]

    def text(self, what: str, limit: int | None = None) -> str:
        length = self.number("Q", what)
        if length > self.left:
            self._short(what)
        if limit is not None and length > limit:
            raise GgufError(self.path, f"{what} of {length:,} bytes is longer than the {limit:,} that are allowed")
        try:
            return self.take(length, what).decode()
        except UnicodeDecodeError:
            raise GgufError(self.path, f"{what} is no UTF-8, at byte {self.at - length:,}") from None

    def value(self, kind: int, arrays: bool, key: str, depth: int = 0) -> Any:
        """A metadata value of this type; of an array its values, or with `arrays` off a `Counted`."""
        if kind in _SCALARS:
            return self.number(_SCALARS[kind], f"the value of {key!r}")
        if kind == _TEXT:
            return self.text(f"the value of {key!r}")
        if kind != _ARRAY:
            raise GgufError(self.path, f"the metadata value {key!r} has type {kind}, which is unknown here")
        if depth >= MAX_NESTING:
            raise GgufError(self.path, f"the metadata value {key!r} nests arrays deeper than {MAX_NESTING}")
        inner, count = self.number("I", f"the value of {key!r}"), self.number("Q", f"the value of {key!r}")
        form = _SCALARS.get(inner)
        least = struct.calcsize("<" + form) if form else 8 if inner == _TEXT else 12
        if count * least > self.left:
            self._short(f"the {count:,} values of {key!r}")
        if form:
            raw = self.take(count * least, key)
            return list(struct.unpack(f"<{count}{form}", raw)) if arrays else Counted(count, {"f": "float32", "d": "float64", "?": "bool"}.get(form, f"{'u' if form.isupper() else ''}int{8 * least}"))
        if inner == _TEXT and not arrays:  # walked over, not decoded: a tokenizer has a hundred thousand of them
            at, data, unpack = self.at, self.data, struct.Struct("<Q").unpack_from
            for _ in range(count):
                if at + 8 > self.size:
                    self._short(f"the values of {key!r}")
                at += 8 + unpack(data, at)[0]
            if at > self.size:
                self._short(f"the values of {key!r}")
            self.at = at
            return Counted(count, "text")
        values = [self.value(inner, arrays, key, depth + 1) for _ in range(count)]
        return values if arrays else Counted(count, "array")
