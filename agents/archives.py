"""Unpacks archives that people send, in bounded memory and never onto a disk.

It knows .gz, .bz2, .xz, .zip and .tar (alone or compressed) by their content, not their name. It opens an archive
inside an archive, but nothing deeper.
"""

import bz2
import io
import lzma
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import IO, cast

from agents import tar_stream
from agents.tar_stream import Body, read_exactly

TOTAL_BYTES = 256 * 2**20
MOST_ENTRIES = 10_000
# Logs shrink to a twentieth, repetitive ones to a hundredth; a file that grows more than this is a bomb.
MOST_RATIO = 300
_RATIO_FROM_BYTES = 16 * 2**20
_CHUNK = 256 * 2**10
_XZ_MEMORY_BYTES = 128 * 2**20
_INPUT = 64 * 2**10  # bytes handed to a decompressor at once
_MOST_STREAMS = 10_000  # bgzip and pbzip2 begin one every 64 KiB to 900 kB
_ZEROS = re.compile(rb"\0*")
_MOST_EXTRA_BYTES = 2**20  # of a zip's directory; packers write some 36 a file
# LZMA in a zip has no memory limit: its header may ask for 4 GiB.
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
_DEEPEST = 2

_ZIP, _TAR = "zip", "tar"
_COMPRESSED = {b"\x1f\x8b\x08": "gz", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz"}
_BINARY = {
    b"\x89PNG": "a picture; give the text itself",
    b"\xff\xd8\xff": "a picture; give the text itself",
    b"GIF8": "a picture; give the text itself",
    b"%PDF": "a PDF; give the text itself",
    b"\x7fELF": "a program",
    b"SQLite format 3": "a database; nsys stats exports its tables as CSV",
    b"LPKSHHRH": "a binary journal; journalctl --file prints it",
    b"(\xb5/\xfd": "zstd, which cannot be opened here; unpack it first",
    b"7z\xbc\xaf\x27\x1c": "7-Zip, which cannot be opened here; unpack it first",
    b"Rar!": "RAR, which cannot be opened here; unpack it first",
}
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    OverflowError,
)


class ArchiveError(Exception):
    """The whole archive is refused; the message gives the reason in one sentence."""


@dataclass(frozen=True, slots=True)
class Member:
    """One file. path: within the archive, after the paths of the archives around it. problem: why the file was left
    out; then data is b""."""

    path: str
    data: bytes = b""
    problem: str = ""


@dataclass(slots=True)
class _Budget:
    """How many bytes may still be unpacked. Raises ArchiveError when none is left."""

    packed: int
    unpacked: int = 0
    entries: int = 0

    def spend(self, size: int) -> None:
        self.unpacked += size
        if self.unpacked > TOTAL_BYTES:
            raise ArchiveError(f"It unpacks to more than {TOTAL_BYTES >> 20} MiB; give the part that matters.")
        if self.unpacked > max(_RATIO_FROM_BYTES, MOST_RATIO * self.packed):
            raise ArchiveError(f"It unpacks to more than {MOST_RATIO} times its size.")

    def count(self) -> None:
        self.entries += 1
        if self.entries > MOST_ENTRIES:
            raise ArchiveError(f"It has more than {MOST_ENTRIES:,} entries; give the part that matters.")


def unpack(raw: bytes, name: str = "") -> tuple[Member, ...]:
    """The files of an archive in order; other data is one member. name: the start of the path.

    Raises ArchiveError for bombs and for too many entries. Links, devices and paths that lead out of the archive are
    left out, with a problem; damaged data is read up to the damage.
    """
    if _archive_kind(raw) is None:
        return (_plain_member(name, raw),)
    return tuple(_members(raw, name, _Budget(len(raw)), 1))


def is_archive(raw: bytes) -> bool:
    return _archive_kind(raw) is not None


def hint_of(path: str) -> str:
    """The command line that a report's file name stands for: sosreport keeps a command's output as
    sos_commands/pci/lspci_-nnvv and copies files with their whole path. Else the file's name."""
    parts = PurePosixPath(path).parts
    if "sos_commands" in parts:
        return parts[-1].replace("_", " ")
    for top in ("proc", "sys", "etc"):
        if top in parts[:-1]:
            return "cat /" + "/".join(parts[parts.index(top) :])
    return parts[-1] if parts else ""


def _archive_kind(raw: bytes) -> str | None:
    for magic, kind in _COMPRESSED.items():
        if raw.startswith(magic):
            return kind
    if raw.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _ZIP
    return _TAR if raw[257:262] == b"ustar" else None


def _members(raw: bytes, path: str, budget: _Budget, depth: int) -> Iterator[Member]:
    kind = _archive_kind(raw)
    try:
        if kind == _ZIP:
            yield from _zip_members(raw, path, budget, depth)
        elif kind == _TAR:
            yield from _tar_members(_Counted(io.BytesIO(raw), budget), len(raw), path, budget, depth)
        else:
            yield from _compressed_members(raw, cast(str, kind), path, budget, depth)
    except _DAMAGE as error:
        yield Member(path, problem=f"damaged from here on: {error}"[:200])


def _compressed_members(raw: bytes, kind: str, path: str, budget: _Budget, depth: int) -> Iterator[Member]:
    first = read_exactly(_Stream(raw, kind), 512)
    if _archive_kind(first) == _TAR:
        yield from _tar_members(_Counted(_Stream(raw, kind), budget), TOTAL_BYTES, path, budget, depth)
        return
    budget.count()
    inner = re.sub(r"\.(?:gz|bz2|xz)$", "", path)
    data, damage = _read_all(_Stream(raw, kind), budget)
    yield from _expand(inner, data, budget, depth)
    if damage:
        yield Member(inner, problem=damage)


class _Gzip:
    """zlib's decompressor, used as those of bz2 and lzma are."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=31)
        self.needs_input = True

    def decompress(self, data: bytes, most: int) -> bytes:
        part = self._inflate.decompress(self._inflate.unconsumed_tail + data, most)
        self.needs_input = not self._inflate.unconsumed_tail and len(part) < most
        return part

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data


# An .xz header may ask for any amount of memory, which LZMAFile would grant.
_DECOMPRESSORS: dict[str, Callable[[], _Gzip | bz2.BZ2Decompressor | lzma.LZMADecompressor]] = {
    "gz": _Gzip,
    "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES),
}


class _Stream:
    """A compressed file's data: one compressed stream after the other, zeros between them.

    The standard library's files read a name in a .gz header byte by byte, and any number of empty streams.
    """

    def __init__(self, raw: bytes, kind: str) -> None:
        self._raw, self._kind = raw, kind
        self._position, self._streams = 0, 1
        self._decompressor = _DECOMPRESSORS[kind]()

    def read(self, size: int = _CHUNK) -> bytes:
        while True:
            if self._decompressor.eof and not self._open_next():
                return b""
            chunk = b""
            if self._decompressor.needs_input:
                chunk = self._raw[self._position : self._position + _INPUT]
                self._position += len(chunk)
            if data := self._decompressor.decompress(chunk, size):
                return data
            if not chunk and not self._decompressor.eof and self._decompressor.needs_input:
                raise EOFError("the compressed data ends too early")

    def _open_next(self) -> bool:
        self._position -= len(self._decompressor.unused_data)
        self._position = cast(re.Match[bytes], _ZEROS.match(self._raw, self._position)).end()
        if self._position == len(self._raw):
            return False
        self._streams += 1
        if self._streams > _MOST_STREAMS:
            raise ArchiveError(f"It has more than {_MOST_STREAMS:,} compressed streams; give the part that matters.")
        self._decompressor = _DECOMPRESSORS[self._kind]()
        return True


@dataclass(slots=True)
class _Counted:
    """A stream that counts its bytes as they are read."""

    stream: _Stream | IO[bytes]
    budget: _Budget

    def read(self, size: int = _CHUNK) -> bytes:
        data = self.stream.read(size)
        self.budget.spend(len(data))
        return data


def _tar_members(stream: _Counted, most_bytes: int, path: str, budget: _Budget, depth: int) -> Iterator[Member]:
    for entry, body in tar_stream.entries(stream, most_bytes):
        budget.count()
        inner = f"{path}/{entry.name}" if path else entry.name
        if problem := _refusal(entry.name) or entry.problem:
            yield Member(_printable(inner), problem=problem)
        elif not entry.is_folder:
            data, damage = _read_all(body)
            yield from _expand(inner, data, budget, depth)
            if damage:
                yield Member(inner, problem=damage)


def _zip_members(raw: bytes, path: str, budget: _Budget, depth: int) -> Iterator[Member]:
    _check_directory(raw)
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        infos = archive.infolist()
        if sum(info.compress_size for info in infos) > len(raw):
            raise ArchiveError("Its files overlap, which no packer writes.")
        for info in infos:
            budget.count()
            inner = f"{path}/{info.filename}" if path else info.filename
            problem = _refusal(info.filename) or _zip_refusal(info)
            if problem:
                yield Member(_printable(inner), problem=problem)
            elif not info.is_dir():
                yield from _zip_member(archive, info, inner, budget, depth)


def _check_directory(raw: bytes) -> None:
    """Refuses a directory that takes zipfile long to read: it goes over an entry's extra fields one by one, and
    copies the rest each time."""
    at = [match.start() for match in islice(re.finditer(b"PK\x01\x02", raw), MOST_ENTRIES + 1)]
    if len(at) > MOST_ENTRIES:
        raise ArchiveError(f"It has more than {MOST_ENTRIES:,} entries; give the part that matters.")
    if sum(int.from_bytes(raw[start + 30 : start + 32], "little") for start in at) > _MOST_EXTRA_BYTES:
        raise ArchiveError(f"Its directory has more than {_MOST_EXTRA_BYTES >> 20} MiB of extra fields.")


def _zip_member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str, budget: _Budget, depth: int
) -> Iterator[Member]:
    try:
        with archive.open(info) as file:
            data, damage = _read_all(file, budget)
    except _DAMAGE as error:
        data, damage = b"", f"it could not be unpacked: {error}"[:200]
    if data or not damage:
        yield from _expand(path, data, budget, depth)
    if damage:
        yield Member(path, problem=damage)


def _zip_refusal(info: zipfile.ZipInfo) -> str:
    mode = info.external_attr >> 16
    if info.flag_bits & 1:
        return "encrypted"
    if stat.S_ISLNK(mode):
        return "a link; links are not followed"
    if info.compress_type not in _ZIP_METHODS:
        return "packed by a method that cannot be opened here; pack it again"
    if info.file_size > TOTAL_BYTES:
        return f"it declares {info.file_size:,} bytes, more than is opened here"
    plain = stat.S_IFMT(mode) in (0, stat.S_IFREG, stat.S_IFDIR)
    return "" if plain else "not a plain file"


def _refusal(name: str) -> str:
    """Why this path is refused: it leads out of the target folder, or it is no path. In a zip, the part after a NUL
    is gone."""
    if not name:
        return "it has no name"
    if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:[/\\]", name):
        return "its path is absolute"
    if ".." in re.split(r"[/\\]", name):
        return "its path leads out of the archive"
    return "" if _printable(name) == name else "its path holds control characters"


def _printable(path: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in path)


def _read_all(file: Body | _Stream | IO[bytes], budget: _Budget | None = None) -> tuple[bytes, str]:
    """The bytes that could be read, and the reason if they end too early. budget: none for a stream that counts."""
    parts: list[bytes] = []
    try:
        while part := file.read(_CHUNK):
            if budget:
                budget.spend(len(part))
            parts.append(part)
    except _DAMAGE as error:
        return b"".join(parts), f"damaged: {error}"[:200]
    return b"".join(parts), ""


def _expand(path: str, data: bytes, budget: _Budget, depth: int) -> Iterator[Member]:
    if _archive_kind(data) is None:
        yield _plain_member(path, data)
    elif depth < _DEEPEST:
        yield from _members(data, path, budget, depth + 1)
    else:
        yield Member(path, problem="an archive inside an archive inside an archive")


def _plain_member(path: str, data: bytes) -> Member:
    for magic, what in _BINARY.items():
        if data.startswith(magic):
            return Member(path, problem=f"not text: {what}")
    head = data[:8192]
    if head.count(0) > len(head) // 3 and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Member(path, problem="not text: binary data")
    return Member(path, data)
