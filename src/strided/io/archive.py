"""The zip archive that torch.save writes: records stored without compression, each starting on a multiple of 64 bytes so that it can be mapped in place.

Holds the writer and the reader, both over open files, and their checks. Standard library only; what the records mean is serialization.py's business.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import zipfile
    from collections.abc import Sequence

ALIGNMENT = 64
MAX_32 = 0xFFFFFFFF  # sizes and places from here on need the 64-bit fields
_CHUNK = 1 << 24  # bytes read and summed at a time
_FLAGS = 1 << 11  # names are UTF-8
_DOS_DATE = 0x21  # 1980-01-01: files of equal content are equal
_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_HINT = "The file is probably truncated or damaged: it was not saved completely, was changed on its way, or was overwritten while being read. Compare its size with the original's."


class Writer:
    """Writes records one after another to anything with `write`: `with Writer(file, "archive") as w: w.add("data/0", memory)`.

    Leaving the block writes the directory. `root` is the folder that all names lie in.
    """

    def __init__(self, file: Any, root: str, checksums: bool = True, limit: int = MAX_32):
        self.file, self.root, self.checksums, self.limit = file, root, checksums, limit
        self.position = 0
        self.directory: list[tuple[bytes, int, int, int]] = []  # name, checksum, bytes, place of the local header

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self._finish()

    def add(self, name: str, data: Any) -> None:
        """One record: `data` is anything with the buffer protocol."""
        view = memoryview(data).cast("B") if len(data) else memoryview(b"")
        path = f"{self.root}/{name}".encode()
        size, place = view.nbytes, self.position
        checksum = _checksum(view) if self.checksums else 0
        long = size >= self.limit
        extra = struct.pack("<2H2Q", 1, 16, size, size) if long else b""
        padding = -(place + _LOCAL.size + len(path) + len(extra) + 4) % ALIGNMENT
        extra += b"FB" + struct.pack("<H", padding) + b"Z" * padding
        shown = MAX_32 if long else size
        self._write(_LOCAL.pack(b"PK\x03\x04", 45 if long else 20, _FLAGS, 0, 0, _DOS_DATE, checksum, shown, shown, len(path), len(extra)))
        self._write(path + extra)
        self._write(view)
        self.directory.append((path, checksum, size, place))

    def _finish(self) -> None:
        start = self.position
        for path, checksum, size, place in self.directory:
            wide = [value for value in (size, size, place) if value >= self.limit]
            extra = struct.pack(f"<2H{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
            shown, at = (MAX_32 if value >= self.limit else value for value in (size, place))
            version = 45 if wide else 20
            self._write(_CENTRAL.pack(b"PK\x01\x02", version, version, _FLAGS, 0, 0, _DOS_DATE, checksum, shown, shown, len(path), len(extra), 0, 0, 0, 0, at) + path + extra)
        length, count = self.position - start, len(self.directory)
        if start >= self.limit or length >= self.limit or count >= 0xFFFF:
            end = self.position
            self._write(struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, length, start))
            self._write(struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1))
            start, length, count = MAX_32, MAX_32, 0xFFFF
        self._write(struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, count, count, length, start, 0))

    def _write(self, data: Any) -> None:
        view = memoryview(data)
        while view.nbytes:  # an unbuffered file may take less than it is given
            written = self.file.write(view)
            if written is None:
                written = view.nbytes
            self.position += written
            view = view[written:]


class Reader:
    """The records of an archive in a seekable file. `name` is for messages. Raises RuntimeError for anything that is not a whole archive."""

    def __init__(self, file: Any, name: str):
        import zipfile

        self.file, self.name = file, name
        self.size = file.seek(0, io.SEEK_END)
        try:
            self.zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error, EOFError) as error:
            raise self.damaged(f"failed finding central directory ({error}; the file has {self.size:,} bytes)") from None
        self.records: dict[str, zipfile.ZipInfo] = {}
        roots = [info.filename for info in self.zip.infolist() if info.filename.count("/") == 1 and info.filename.endswith("/data.pkl")]
        self.root = roots[0].partition("/")[0] if roots else self.zip.namelist()[0].partition("/")[0] if self.zip.namelist() else ""
        for info in self.zip.infolist():
            root, slash, path = info.filename.partition("/")
            if slash and root == self.root:
                if path in self.records:
                    raise self.damaged(f"it holds the record {path!r} twice")
                self.records[path] = info

    def damaged(self, reason: str, record: str | None = None) -> RuntimeError:
        where = f"file {record}" if record else "zip archive"
        return RuntimeError(f"PytorchStreamReader failed reading {where}: {reason}.\n  in {self.name}\n  {_HINT}")

    def __contains__(self, record: str) -> bool:
        return record in self.records

    def length(self, record: str) -> int:
        """Bytes of a record. Raises RuntimeError if there is none of that name."""
        return self._info(record).file_size

    def _info(self, record: str) -> zipfile.ZipInfo:
        info = self.records.get(record)
        if info is None:
            raise self.damaged("file not found", f"{self.root}/{record}")
        return info

    def place(self, record: str) -> int | None:
        """Where a record's bytes start in the file; None where they are compressed. Raises RuntimeError where they would not lie in the file."""
        info = self._info(record)
        if info.flag_bits & 1:
            raise self.damaged("it is encrypted", record)
        self.file.seek(info.header_offset)
        head = self.file.read(_LOCAL.size)
        if len(head) < _LOCAL.size or head[:4] != b"PK\x03\x04":
            raise self.damaged(f"invalid header or archive is corrupted: no record starts at byte {info.header_offset:,}", record)
        *_, name_length, extra_length = _LOCAL.unpack(head)
        if info.compress_type:
            return None
        start = info.header_offset + _LOCAL.size + name_length + extra_length
        if info.compress_size != info.file_size or start + info.file_size > self.size:
            raise self.damaged(f"its {info.file_size:,} bytes should start at byte {start:,}, but the file ends at {self.size:,}", record)
        return start

    def read(self, record: str) -> bytearray:
        """A record's bytes, checked against their checksum."""
        data = bytearray(min(self.length(record), self._most(record)))
        self.read_into(record, memoryview(data))
        return data

    def _most(self, record: str) -> int:
        """No more than the file can hold: a directory may lie about sizes. (Deflate packs at most 1032 to 1.)"""
        info = self._info(record)
        return info.file_size if not info.compress_type else min(info.file_size, 1032 * info.compress_size + 64)

    def read_into(self, record: str, target: memoryview) -> None:
        """Fills `target` with a record of exactly its size, and checks the checksum."""
        info = self._info(record)
        if info.file_size != target.nbytes:
            raise self.damaged(f"it has {info.file_size:,} bytes where {target.nbytes:,} are needed", record)
        start = self.place(record)
        checksum, done = 0, 0
        source = self.zip.open(info) if start is None else self.file
        if start is not None:
            self.file.seek(start)
        try:
            while done < target.nbytes:
                part = target[done : done + _CHUNK]
                count = _read_some(source, part)
                if not count:
                    raise self.damaged(f"it ends after {done:,} of {target.nbytes:,} bytes", record)
                checksum = zlib.crc32(part[:count], checksum)
                done += count
        except (zlib.error, EOFError) as error:
            raise self.damaged(f"its compressed data is broken ({error})", record) from None
        except Exception as error:
            if type(error).__name__ != "BadZipFile":
                raise
            raise self.damaged(str(error), record) from None
        if checksum != info.CRC and info.CRC:  # 0: written without checksums
            raise self.damaged(f"invalid header or archive is corrupted: the checksum of its {done:,} bytes is {checksum:#010x}, the directory says {info.CRC:#010x}", record)


def _checksum(view: memoryview) -> int:
    value = 0
    for start in range(0, view.nbytes, _CHUNK):
        value = zlib.crc32(view[start : start + _CHUNK], value)
    return value


def _read_some(source: Any, part: memoryview) -> int:
    """Reads at most part.nbytes into part; how many it were."""
    readinto = getattr(source, "readinto", None)
    if readinto is not None:
        return readinto(part) or 0
    data = source.read(part.nbytes)
    part[: len(data)] = data
    return len(data)


def names_of(records: Sequence[str]) -> str:
    """A few record names for a message."""
    return ", ".join(records[:5]) + (f" and {len(records) - 5} more" if len(records) > 5 else "")
