"""Archives whose headers lie: each ends in well under a second, with a sentence or with the honest files."""

from __future__ import annotations

import gzip
import io
import lzma
import struct
import tarfile
import time
import zipfile
from collections.abc import Callable

import pytest

from agents.archives import ArchiveError, Member, unpack

pytestmark = pytest.mark.thorough

HONEST = b"00:00.0 Host bridge\n"
HUGE = 2**56


def block(name: str, size: int, kind: bytes = tarfile.REGTYPE, **more: object) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def pax(*records: tuple[str, str]) -> bytes:
    lines = b""
    for key, value in records:
        rest = f" {key}={value}\n".encode()
        size = len(rest) + len(str(len(rest) + 2))
        lines += str(size).encode() + rest
    return block("pax", len(lines), tarfile.XHDTYPE) + padded(lines)


FIRST = block("first.txt", len(HONEST)) + padded(HONEST)
SPARSE = ("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.name", "log")
TARS = {
    "declared": block("a", HUGE) + b"x" * 512,
    "declared link": block("a", HUGE, tarfile.SYMTYPE) + b"x" * 512,
    "declared unknown": block("a", HUGE, b"Z"),
    "negative": block("a", 0).replace(b"00000000000\0", b"\xff" * 12, 1),
    "pax header": block("a", HUGE, tarfile.XHDTYPE) + b"x" * 512,
    "global header": block("a", HUGE, tarfile.XGLTYPE) + b"x" * 512,
    "pax size": pax(("size", str(HUGE))) + block("a", 0) + b"x" * 512,
    "pax size of digits": pax(("size", "9" * 5000)) + block("a", 0),
    "pax length": block("a", 20, tarfile.XHDTYPE) + padded(b"999999999 path=aaaaa"),
    "pax length 0": block("a", 20, tarfile.XHDTYPE) + padded(b"0 path=aaaaaaaaaaaaa"),
    "long name": block("a", HUGE, tarfile.GNUTYPE_LONGNAME) + b"x" * 512,
    "long link": block("a", HUGE, tarfile.GNUTYPE_LONGLINK) + b"x" * 512,
    "headers of headers": pax(("path", "b")) * 5000 + block("a", 0),
    "sparse map": pax(*SPARSE) + block("a", 512) + b"9" * 512,
    "sparse map endless": pax(*SPARSE) + block("a", HUGE) + b"1000000000\n",
    "sparse size": pax(*SPARSE, ("GNU.sparse.realsize", str(HUGE))) + block("a", 512) + padded(b"0\n"),
    "sparse old": block("a", HUGE, tarfile.GNUTYPE_SPARSE) + b"x" * 512,
    "cut header": FIRST[:100],
}
Packer = Callable[[bytes], bytes]


def outcome(raw: bytes) -> tuple[Member, ...] | str:
    begin = time.process_time()
    try:
        members: tuple[Member, ...] | str = unpack(raw, "x")
    except ArchiveError as error:
        members = str(error)
    assert time.process_time() - begin < 1
    return members


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda raw: gzip.compress(gzip.compress(raw))])
@pytest.mark.parametrize("shape", TARS)
def test_a_tar_that_lies_gives_the_honest_files_and_a_reason(shape: str, pack: Packer) -> None:
    members = outcome(pack(FIRST + TARS[shape]))
    assert isinstance(members, tuple)
    assert [m.data for m in members if m.path.endswith("first.txt")] == [HONEST]
    assert any(m.problem for m in members)
    assert all(m.problem for m in members[1:])


def test_a_tar_with_names_of_every_kind_is_read() -> None:
    long = "folder/" * 30 + "file.txt"
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w", format=form, pax_headers={"comment": "x"}) as archive:
            for name in ("größe.txt", long):
                info = tarfile.TarInfo(name)
                info.size = len(HONEST)
                archive.addfile(info, io.BytesIO(HONEST))
        assert unpack(stream.getvalue()) == (Member("größe.txt", HONEST), Member(long, HONEST))


def test_a_sparse_file_is_left_out_and_says_so() -> None:
    raw = pax(*SPARSE) + block("a", 512) + padded(b"0\n") + FIRST
    sparse, first = unpack(raw)
    assert (sparse.path, "sparse" in sparse.problem) == ("log", True)
    assert first == Member("first.txt", HONEST)


@pytest.mark.parametrize(
    "raw",
    [
        gzip.compress(b"") * 11_000,
        b"\x1f\x8b\x08\x08" + bytes(6) + b"a" * 2_000_000,
        lzma.compress(b"") * 11_000,
        gzip.compress(gzip.compress(b"") * 11_000),
    ],
    ids=["empty streams", "endless name", "empty xz streams", "nested"],
)
def test_a_compressed_file_is_bounded_in_steps(raw: bytes) -> None:
    members = outcome(raw)
    assert isinstance(members, str) or all(m.problem or not m.data for m in members)


def zipped(extra: bytes = b"", count: int = 1, method: int = zipfile.ZIP_DEFLATED) -> bytearray:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for number in range(count):
            info = zipfile.ZipInfo(f"{number}.txt")
            info.extra, info.compress_type = extra, method
            archive.writestr(info, HONEST)
    return bytearray(stream.getvalue())


def test_a_zip_s_extra_fields_are_bounded() -> None:
    assert "extra fields" in outcome(bytes(zipped(struct.pack("<HH", 9999, 0) * 16_000, count=40)))


def test_a_zip_s_declared_size_is_refused() -> None:
    raw = zipped()
    struct.pack_into("<L", raw, raw.find(b"PK\x01\x02") + 24, 2**32 - 2)
    members = outcome(bytes(raw))
    assert isinstance(members, tuple)
    (member,) = members
    assert "declares 4,294,967,294 bytes" in member.problem


def test_a_zip_of_files_that_share_their_data_is_refused() -> None:
    raw = zipped(count=100)
    for start in [at for at in range(len(raw)) if raw.startswith(b"PK\x01\x02", at)]:
        struct.pack_into("<L", raw, start + 20, len(raw) // 2)
    assert "overlap" in outcome(bytes(raw))


def test_a_zip_with_lzma_is_left_out() -> None:
    members = outcome(bytes(zipped(method=zipfile.ZIP_LZMA)))
    assert isinstance(members, tuple)
    (member,) = members
    assert "method" in member.problem
