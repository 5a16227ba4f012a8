"""The safetensors format: what a file's header says, checked against the file before anything believes it; and its shards.

Standard library only, and never a byte of tensor data: `strided inspect` and the loader (safetensors.py) both start here.
A file is a little-endian u64 (the header's length), the header as JSON, then one buffer that the tensors fill without holes.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_HEADER = 100_000_000  # bytes; the format's own limit
MAX_COUNT = 2**63 - 1  # elements, bytes, offsets: what an address can count

# The file's name of a dtype: (torch's name, bits). F4 and the F6s are packed; torch holds two F4 in one element.
DTYPES = {
    "BOOL": ("bool", 8),
    "U8": ("uint8", 8),
    "I8": ("int8", 8),
    "F8_E5M2": ("float8_e5m2", 8),
    "F8_E4M3": ("float8_e4m3fn", 8),
    "F8_E8M0": ("float8_e8m0fnu", 8),
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", 8),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", 8),
    "I16": ("int16", 16),
    "U16": ("uint16", 16),
    "F16": ("float16", 16),
    "BF16": ("bfloat16", 16),
    "I32": ("int32", 32),
    "U32": ("uint32", 32),
    "F32": ("float32", 32),
    "C64": ("complex64", 64),
    "F64": ("float64", 64),
    "I64": ("int64", 64),
    "U64": ("uint64", 64),
    "F4": ("float4_e2m1fn", 4),
    "F6_E2M3": ("float6_e2m3fn", 6),
    "F6_E3M2": ("float6_e3m2fn", 6),
}


class SafetensorsError(ValueError):
    """A file that is not valid safetensors, or that lacks what was asked of it.

    Fields: path (the file), tensor (its name, or None where the file as a whole is meant), offsets (start, end in bytes from the
    beginning of the buffer, or None), reason. The text names all of them.
    """

    def __init__(self, path: str, reason: str, tensor: str | None = None, offsets: tuple[int, int] | None = None):
        self.path, self.reason, self.tensor, self.offsets = path, reason, tensor, offsets
        where = f"{path}: "
        if tensor is not None:
            where += f"tensor {shorten(tensor)!r}" + (f" at bytes {offsets[0]}–{offsets[1]} of the buffer" if offsets else "") + ": "
        super().__init__(where + reason)


class Entry(NamedTuple):
    """One tensor of a file. dtype: the file's own name of it; start, end: bytes from the beginning of the buffer."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def nbytes(self) -> int:
        """Bytes it takes in the file."""
        return self.end - self.start

    @property
    def bits(self) -> int:
        """Bits one element takes."""
        return DTYPES[self.dtype][1]

    @property
    def torch_name(self) -> str:
        """Its dtype's name in torch, without the `torch.`."""
        return DTYPES[self.dtype][0]

    @property
    def numel(self) -> int:
        """Elements it holds."""
        return product(self.shape)


class Header(NamedTuple):
    """A file's header, checked. entries: by name, in the order of the header; length: the JSON's bytes; file_size: the whole file's."""

    path: str
    entries: dict[str, Entry]
    metadata: dict[str, str]
    length: int
    file_size: int

    @property
    def data_start(self) -> int:
        """Where the buffer begins, in bytes from the file's beginning."""
        return 8 + self.length

    @property
    def data_bytes(self) -> int:
        """The buffer's bytes."""
        return self.file_size - self.data_start


# ---- one file -------------------------------------------------------------------------------


def read_header(path: str | os.PathLike[str]) -> Header:
    """Read and check the header of a safetensors file: two small reads, whatever the file's size.

    Raises SafetensorsError for anything wrong with the content, OSError where the file cannot be read.
    """
    name = os.fspath(path)
    with open(name, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        length = header_length(file.read(8), size, name)
        text = file.read(length)
        while len(text) < length:  # a raw read may return less than asked
            more = file.read(length - len(text))
            if not more:
                raise SafetensorsError(name, f"truncated: the header's {length:,} bytes end after {len(text):,}")
            text += more
    return parse_header(text, size, name)


_CONVERT = "read it with torch.load(path) and write its tensors with safetensors.torch.save_file(tensors, 'model.safetensors')"


def header_length(first: bytes, file_size: int, path: str) -> int:
    """The header's length from the first 8 bytes of a file of file_size bytes, checked."""
    if len(first) < 8:
        raise SafetensorsError(path, f"truncated: {file_size:,} bytes, and the header's length alone takes 8")
    length = int.from_bytes(first[:8], "little")
    if first.startswith(b"PK\x03\x04"):
        raise SafetensorsError(path, f"a zip archive, such as torch.save writes, is no safetensors file: {_CONVERT}")
    if length > MAX_HEADER and first[:1] == b"\x80" and first[1] in range(2, 6):
        raise SafetensorsError(path, f"a pickle, such as torch.save wrote before PyTorch 1.6, is no safetensors file: {_CONVERT}")
    if length > MAX_HEADER:
        raise SafetensorsError(path, f"header too large: its length reads {length:,} bytes, the format allows {MAX_HEADER:,} (is this a safetensors file?)")
    if 8 + length > file_size:
        raise SafetensorsError(path, f"truncated: the header should end at byte {8 + length:,}, the file has {file_size:,}")
    return length


def parse_header(text: bytes, file_size: int, path: str) -> Header:
    """Check the header's JSON against a file of file_size bytes. path is only for messages."""
    fields = _parse_json(text, path)
    metadata = fields.pop("__metadata__", None)
    metadata = {} if metadata is None else metadata
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise SafetensorsError(path, "__metadata__ must map text to text")
    entries = {name: _entry(name, field, path) for name, field in fields.items()}
    _check_buffer(entries.values(), file_size - 8 - len(text), path)
    return Header(path, entries, metadata, len(text), file_size)


def _parse_json(text: bytes, path: str, what: str = "the header") -> dict[str, Any]:
    """The object that the text is; `what` names it in messages."""
    if not text.startswith(b"{"):
        raise SafetensorsError(path, f"{what} must begin with '{{', it " + (f"begins with {text[:1]!r}" if text else "is empty"))

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            seen: set[str] = set()
            for name, value in pairs:
                if name in seen:  # an object's value is a tensor's entry, or the metadata; else it is a field of one
                    raise SafetensorsError(path, f"{what} names {shorten(name)!r} twice", name if isinstance(value, dict) else None)
                seen.add(name)
        return fields

    def no_constant(word: str) -> NoReturn:
        raise ValueError(f"{word} is not JSON")

    try:
        decoded = text.decode("utf-8")
        fields = json.loads(decoded, object_pairs_hook=unique, parse_constant=no_constant)
        if "\\u" in decoded:  # escapes can spell half a surrogate pair, which no file name, terminal or encoder takes
            json.dumps(fields, ensure_ascii=False).encode("utf-8")
    except SafetensorsError:
        raise
    except UnicodeDecodeError as error:
        raise SafetensorsError(path, f"{what} is not UTF-8: byte {text[error.start]:#04x} at {error.start} of its {len(text):,}") from None
    except UnicodeEncodeError:
        raise SafetensorsError(path, f"{what}'s text holds half a surrogate pair (\\ud800–\\udfff), which is not UTF-8") from None
    except RecursionError:
        raise SafetensorsError(path, f"{what}'s JSON is nested too deeply") from None
    except ValueError as error:
        raise SafetensorsError(path, f"{what} is not JSON: {error}") from None
    if not isinstance(fields, dict):  # cannot be: it begins with a brace
        raise SafetensorsError(path, f"{what} is not a JSON object")
    return fields


def _entry(name: str, field: Any, path: str) -> Entry:
    """One tensor's entry, checked on its own: known dtype, sane shape, and offsets as long as the shape takes."""
    if not isinstance(field, dict):
        raise SafetensorsError(path, f"its entry must be an object, not {shorten(repr(field))}", name)
    for key in ("dtype", "shape", "data_offsets"):
        if key not in field:
            raise SafetensorsError(path, f"its entry lacks {key!r}", name)
    dtype, shape, offsets = field["dtype"], field["shape"], field["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise SafetensorsError(path, f"unknown dtype {shorten(repr(dtype))}; the format has {', '.join(DTYPES)}", name)
    if not isinstance(shape, list) or not all(map(_is_count, shape)):
        raise SafetensorsError(path, f"a shape is a list of integers from 0 up to {MAX_COUNT}, not {shorten(repr(shape))}", name)
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise SafetensorsError(path, f"data_offsets are two integers from 0 up to {MAX_COUNT}, not {shorten(repr(offsets))}", name)
    start, end = offsets
    if end < start:
        raise SafetensorsError(path, "it ends before it starts", name, (start, end))
    bits = DTYPES[dtype][1]
    for size in shape:
        bits *= size
        if bits > 8 * MAX_COUNT:
            raise SafetensorsError(path, f"shape {shorten(repr(shape))} of {dtype} overflows: more bytes than 64 bits can count", name, (start, end))
    if bits % 8:
        raise SafetensorsError(path, f"shape {shape} of {dtype} takes {bits} bits, which is no whole number of bytes", name, (start, end))
    if bits // 8 != end - start:
        raise SafetensorsError(path, f"shape {shorten(repr(shape))} of {dtype} takes {bits // 8:,} bytes, its offsets hold {end - start:,}", name, (start, end))
    return Entry(name, dtype, tuple(shape), start, end)


def _check_buffer(entries: Iterable[Entry], data_bytes: int, path: str) -> None:
    """The tensors must fill the buffer from end to end. Two names may hold exactly the same range: tied weights, stored once."""
    reached, previous = 0, None
    for entry in sorted(entries, key=lambda entry: (entry.start, entry.end)):
        where = (entry.start, entry.end)
        if entry.end > data_bytes:
            raise SafetensorsError(path, f"it lies beyond the end: the buffer has {data_bytes:,} bytes (truncated file, or a lying header)", entry.name, where)
        if previous is not None and entry.nbytes and where == (previous.start, previous.end):
            continue
        if entry.start < reached and previous is not None:
            raise SafetensorsError(path, f"it overlaps tensor {shorten(previous.name)!r} at bytes {previous.start}–{previous.end}", entry.name, where)
        if entry.start > reached:
            raise SafetensorsError(path, f"bytes {reached}–{entry.start} before it belong to no tensor", entry.name, where)
        reached, previous = entry.end, entry
    if reached != data_bytes:
        raise SafetensorsError(path, f"the buffer has {data_bytes:,} bytes, its tensors fill {reached:,}: bytes {reached}–{data_bytes} belong to none")


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_COUNT  # not isinstance: true and false are no counts


def product(sizes: Iterable[int]) -> int:
    """The number of elements of a shape."""
    result = 1
    for size in sizes:
        result *= size
    return result


def shorten(text: str, limit: int = 120) -> str:
    """Text cut for a message: names and values come from files that may hold anything."""
    return text if len(text) <= limit else f"{text[: limit - 12]}… ({len(text):,} characters)"


def build_header(entries: Iterable[tuple[str, str, tuple[int, ...], int]], metadata: dict[str, str] | None) -> tuple[bytes, list[Entry]]:
    """The first bytes of a file (length and JSON, padded with spaces to a multiple of 8) and the entries in the order of the buffer.

    entries: (name, dtype as the file names it, shape, bytes). Wider elements come first, so that each tensor starts on a multiple of its
    element's size and can be mapped in place.
    """
    ordered = sorted(entries, key=lambda entry: (-DTYPES[entry[1]][1], entry[0]))
    placed, at = [], 0
    for name, dtype, shape, nbytes in ordered:
        placed.append(Entry(name, dtype, shape, at, at + nbytes))
        at += nbytes
    fields: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    for entry in placed:
        fields[entry.name] = {"dtype": entry.dtype, "shape": list(entry.shape), "data_offsets": [entry.start, entry.end]}
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise ValueError(f"a safetensors header may take {MAX_HEADER:,} bytes, this one would take {len(text):,}")
    return len(text).to_bytes(8, "little") + text, placed


# ---- a checkpoint: one file, or shards with an index -----------------------------------------


class Checkpoint(NamedTuple):
    """The files of a checkpoint, each with its header, and what an index says of them.

    path: what was opened; headers: in the order of the shards; index_path: the index's own path, or None; total_size: its metadata's claim in bytes, or
    None; config: the model folder's config.json as parsed, or None.
    """

    path: str
    headers: list[Header]
    index_path: str | None
    total_size: int | None
    config: dict[str, Any] | None


def open_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read the headers of a safetensors file, of the shards of a `*.safetensors.index.json`, or of a model folder holding either.

    Raises SafetensorsError (a missing shard is named with its tensors) or OSError.
    """
    name = os.fspath(path)
    found = _in_folder(name) if os.path.isdir(name) else name
    config = _read_config(os.path.join(name, "config.json")) if os.path.isdir(name) else None
    if not found.endswith(".json"):
        return Checkpoint(name, [read_header(found)], None, None, config)
    weight_map, total_size = read_index(found)
    return Checkpoint(name, read_shards(found, weight_map), found, total_size, config)


def read_index(path: str) -> tuple[dict[str, str], int | None]:
    """A `*.safetensors.index.json`: (tensor name → shard's file name, metadata.total_size or None)."""
    fields = _read_json(path)
    weight_map = fields.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise SafetensorsError(path, f"no index of a checkpoint: {'its weight_map is empty or no object' if 'weight_map' in fields else 'it has no weight_map'} (tensor names → shard files)")
    for tensor, shard in weight_map.items():
        # A shard stands beside its index. Anything else is a way to read files that nobody meant.
        if not isinstance(shard, str) or not shard or shard != os.path.basename(shard) or "\0" in shard or shard in (".", ".."):
            raise SafetensorsError(path, f"its shard must be the name of a file beside the index, not {shorten(repr(shard))}", tensor)
    metadata = fields.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    return weight_map, total if _is_count(total) else None


def read_shards(index: str, weight_map: dict[str, str]) -> list[Header]:
    """The headers of an index's shards, each checked to hold the tensors that the index promises, and no tensor in two shards."""
    promised: dict[str, list[str]] = {}
    for tensor, shard in weight_map.items():
        promised.setdefault(shard, []).append(tensor)
    headers: list[Header] = []
    home: dict[str, str] = {}
    for shard, tensors in promised.items():
        try:
            header = read_header(os.path.join(os.path.dirname(index), shard))
        except FileNotFoundError:
            some = ", ".join(shorten(tensor) for tensor in tensors[:5]) + (f" and {len(tensors) - 5} more" if len(tensors) > 5 else "")
            plural = "s" if len(tensors) > 1 else ""
            raise SafetensorsError(index, f"shard {shard!r} is missing ({len(promised)} are named). It holds {len(tensors)} tensor{plural}: {some}") from None
        for tensor in tensors:
            if tensor not in header.entries:
                raise SafetensorsError(header.path, f"{os.path.basename(index)} says it is in this shard; it is not", tensor)
        for tensor in header.entries:
            if tensor in home:
                raise SafetensorsError(header.path, f"shard {home[tensor]!r} holds a tensor of this name too", tensor)
            home[tensor] = shard
        headers.append(header)
    return headers


def _in_folder(folder: str) -> str:
    """The file to start from in a model folder."""
    names = sorted(os.listdir(folder))
    files = [name for name in names if name.endswith(".safetensors")]
    indexes = [name for name in names if name.endswith(".safetensors.index.json")]
    if "model.safetensors" in files:
        return os.path.join(folder, "model.safetensors")
    if len(indexes) == 1:
        return os.path.join(folder, indexes[0])
    if len(files) == 1 and not indexes:
        return os.path.join(folder, files[0])
    if files or indexes:
        raise SafetensorsError(folder, f"more than one checkpoint here; name one of {', '.join(indexes + files)}")
    there = ", ".join(names[:8]) + (" …" if len(names) > 8 else "") or "nothing"
    raise SafetensorsError(folder, f"no .safetensors file and no index here (found: {there})")


def _read_config(path: str) -> dict[str, Any] | None:
    return _read_json(path) if os.path.isfile(path) else None


def _read_json(path: str) -> dict[str, Any]:
    with open(path, "rb") as file:
        text = file.read(MAX_HEADER + 1)
    if len(text) > MAX_HEADER:
        raise SafetensorsError(path, f"more than {MAX_HEADER:,} bytes of JSON")
    return _parse_json(text.strip(), path, "the index" if path.endswith(".index.json") else "the file")
