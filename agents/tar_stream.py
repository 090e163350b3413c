"""Reads a tar forward, one file after the other, and believes no size that it declares.

Every step reads bytes that are there or ends the reading: tarfile of the standard library skips a file of 2**56
declared bytes, or waits for the rest of a sparse map, without end. Formats: POSIX.1-2017 pax "ustar" and extended
headers, GNU tar's long names and base-256 numbers. A sparse file is left out: it may be any size.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

_BLOCK = 512
_CHUNK = 256 * 2**10
_MOST_HEADER_BYTES = 64 * 2**10  # of a long name, or of the records before one file
_MOST_HEADERS = 4  # before one file: global and extended header, long name and long link
_PAX, _PAX_GLOBAL, _LONG_NAME, _LONG_LINK, _SPARSE = b"x", b"g", b"L", b"K", b"S"
_LINKS, _FOLDER = (b"1", b"2"), b"5"
_WITHOUT_DATA = (*_LINKS, b"3", b"4", _FOLDER, b"6")
_PLAIN = (b"0", b"\0", b"7")
_RECORD = re.compile(rb"([0-9]{1,9}) ([^=]+)=")


class Stream(Protocol):
    """read answers at most `size` bytes, b"" at the end."""

    def read(self, size: int, /) -> bytes: ...


class TarDamageError(ValueError):
    """The text says what is wrong, after "damaged"."""


@dataclass(frozen=True, slots=True)
class TarEntry:
    """name: unchecked. problem: why its data is not read."""

    name: str
    is_folder: bool
    problem: str = ""


@dataclass(slots=True)
class Body:
    """The data of one file; what is not read of it is skipped. Raises TarDamageError at an early end."""

    stream: Stream
    left: int
    padding: int

    def read(self, size: int = _CHUNK) -> bytes:
        data = self.stream.read(min(size, self.left)) if self.left else b""
        if self.left and not data:
            missing, self.left, self.padding = self.left, 0, 0
            raise TarDamageError(f"it ends {missing:,} bytes too early")
        self.left -= len(data)
        return data

    def skip(self) -> None:
        while self.read():
            pass
        read_exactly(self.stream, self.padding)


def entries(stream: Stream, most_bytes: int) -> Iterator[tuple[TarEntry, Body]]:
    """Each entry with its data, which is to be read before the next. most_bytes: no file can be larger.

    Raises TarDamageError where the tar is not one, or declares more than most_bytes.
    """
    while (header := _next_header(stream)) is not None:
        size = _size(header)
        records: dict[bytes, bytes] = {}
        for _ in range(_MOST_HEADERS):
            if header[156:157] not in (_PAX, _PAX_GLOBAL, _LONG_NAME, _LONG_LINK):
                break
            records |= _records(header[156:157], _header_data(stream, size))
            header = _next_header(stream)
            if header is None:
                raise TarDamageError("it ends after a header")
            size = _size(header)
        else:
            raise TarDamageError("one file has too many headers")
        entry, declared = _entry(header, size, records)
        if declared > most_bytes:
            raise TarDamageError(f"{entry.name[:80]!a} declares {declared:,} bytes, more than there can be")
        body = Body(stream, declared, -declared % _BLOCK)
        yield entry, body
        body.skip()


def read_exactly(stream: Stream, size: int) -> bytes:
    """`size` bytes; fewer at the stream's end."""
    parts = bytearray()
    while len(parts) < size and (part := stream.read(size - len(parts))):
        parts += part
    return bytes(parts)


def _next_header(stream: Stream) -> bytes | None:
    """None at the end of the archive: a block of zeros, or nothing more."""
    header = read_exactly(stream, _BLOCK)
    if not header.strip(b"\0"):
        return None
    if len(header) < _BLOCK:
        raise TarDamageError("it ends within a header")
    counted = 256 + sum(header[:148]) + sum(header[156:])
    if _number(header[148:156]) != counted:
        raise TarDamageError("a header's checksum is wrong")
    return header


def _header_data(stream: Stream, size: int) -> bytes:
    if size > _MOST_HEADER_BYTES:
        raise TarDamageError(f"a header declares {size:,} bytes")
    padded = size + -size % _BLOCK
    data = read_exactly(stream, padded)
    if len(data) < padded:
        raise TarDamageError("it ends within a header")
    return data[:size]


def _records(kind: bytes, data: bytes) -> dict[bytes, bytes]:
    """What the header says of the next file."""
    if kind == _LONG_NAME:
        return {b"path": data.partition(b"\0")[0]}
    return dict(_pax_records(data)) if kind == _PAX else {}


def _pax_records(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Records "length key=value\\n"; the length counts itself and the line end."""
    start = 0
    while start < len(data) and data[start]:
        match = _RECORD.match(data, start)
        end = start + int(match[1]) if match else 0
        if match is None or not match.end() < end <= len(data):
            raise TarDamageError("an extended header cannot be read")
        yield match[2], data[match.end() : end - 1]
        start = end


def _entry(header: bytes, size: int, records: dict[bytes, bytes]) -> tuple[TarEntry, int]:
    """The entry, and how many bytes of data it declares."""
    kind, name = header[156:157], records.get(b"path", _name(header))
    if kind in _PLAIN and name.endswith(b"/"):
        kind = _FOLDER
    if b"size" in records:
        size = _decimal(records[b"size"])
    problem = ""
    if kind in _LINKS:
        problem = "a link; links are not followed"
    elif kind == _SPARSE or any(key.startswith(b"GNU.sparse.") for key in records):
        problem = "a sparse file; pack it without --sparse"
        name = records.get(b"GNU.sparse.name", name)
    elif kind not in _PLAIN and kind != _FOLDER:
        problem = "not a plain file"
    # An old sparse file may have more of its map between header and data; the next header is then damaged.
    declared = 0 if kind in _WITHOUT_DATA else size
    return TarEntry(name.decode("utf-8", "surrogateescape"), kind == _FOLDER, problem), declared


def _name(header: bytes) -> bytes:
    name, prefix = header[:100].partition(b"\0")[0], header[345:500].partition(b"\0")[0]
    return prefix + b"/" + name if prefix and header[257:263] == b"ustar\0" else name


def _size(header: bytes) -> int:
    return _number(header[124:136])


def _number(field: bytes) -> int:
    """Octal digits, or GNU tar's base 256."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.partition(b"\0")[0].strip()
    if not re.fullmatch(rb"[0-7]*", digits):
        raise TarDamageError("a header's number cannot be read")
    return int(digits or b"0", 8)


def _decimal(value: bytes) -> int:
    if not re.fullmatch(rb"[0-9]{1,20}", value):
        raise TarDamageError("an extended header's size cannot be read")
    return int(value)
