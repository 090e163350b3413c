"""Archives are taken apart in bounded memory; bombs, links and paths that lead out are refused."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import stat
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import archives
from agents.archives import ArchiveError, Member, hint_of, unpack

pytestmark = pytest.mark.thorough

FILES = {"rig/lspci.txt": b"00:00.0 Host bridge\n", "rig/logs/dmesg": b"[ 0.0] Linux\n"}
Packer = Callable[[bytes], bytes]


def tarball(files: dict[str, bytes], pack: Packer = bytes) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return pack(stream.getvalue())


def zipped(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return stream.getvalue()


def entry(kind: bytes, path: str, link: str = "") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        info = tarfile.TarInfo(path)
        info.type, info.linkname = kind, link
        archive.addfile(info)
        after = tarfile.TarInfo("after.txt")
        after.size = 2
        archive.addfile(after, io.BytesIO(b"ok"))
    return stream.getvalue()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_tarball_is_known_by_its_content(pack: Packer) -> None:
    found = unpack(tarball(FILES, pack), "rig.dat")
    assert {m.path: m.data for m in found} == {f"rig.dat/{p}": d for p, d in FILES.items()}
    assert not any(m.problem for m in found)


def test_zip_and_single_compressed_files() -> None:
    assert {m.path: m.data for m in unpack(zipped(FILES))} == FILES
    assert unpack(gzip.compress(b"log"), "kern.log.gz") == (Member("kern.log", b"log"),)
    assert unpack(lzma.compress(b"a") + lzma.compress(b"b"), "x.xz") == (Member("x", b"ab"),)


def test_what_is_no_archive_is_one_member() -> None:
    assert unpack(b"plain \x00 text\n", "a.txt") == (Member("a.txt", b"plain \x00 text\n"),)
    assert unpack(b"") == (Member("", b""),)
    utf16 = "Name: GPU\n".encode("utf-16")
    assert unpack(utf16) == (Member("", utf16),)


def test_an_archive_in_an_archive_is_opened_and_no_deeper() -> None:
    inner = tarball({"a.txt": b"one"}, gzip.compress)
    twice = zipped({"inner.tgz": inner, "b.txt": b"two"})
    assert unpack(twice) == (Member("inner.tgz/a.txt", b"one"), Member("b.txt", b"two"))
    (thrice,) = unpack(zipped({"outer.zip": zipped({"inner.tgz": inner})}))
    assert "inside an archive" in thrice.problem


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "C:\\x", "..\\x", "a\x1b[2Jb"])
@pytest.mark.parametrize("pack", [tarball, zipped])
def test_paths_that_lead_out_are_left_out(pack: Callable[[dict[str, bytes]], bytes], path: str) -> None:
    bad, good = unpack(pack({path: b"x", "good.txt": b"y"}))
    assert bad.problem
    assert bad.data == b""
    assert bad.path.isprintable()
    assert good.data == b"y"


@pytest.mark.parametrize(
    "raw",
    [
        entry(tarfile.SYMTYPE, "link", "/etc/shadow"),
        entry(tarfile.LNKTYPE, "link", "after.txt"),
        entry(tarfile.CHRTYPE, "null"),
        entry(tarfile.FIFOTYPE, "pipe"),
    ],
)
def test_links_and_devices_are_left_out(raw: bytes) -> None:
    bad, good = unpack(raw)
    assert "link" in bad.problem or "plain file" in bad.problem
    assert good == Member("after.txt", b"ok")


def test_a_link_in_a_zip_is_left_out() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/shadow")
    (bad,) = unpack(stream.getvalue())
    assert "link" in bad.problem


def test_a_zip_s_file_without_a_name_is_left_out() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("XY", "nobody")
        archive.writestr("after.txt", "ok")
    bad, good = unpack(stream.getvalue().replace(b"XY", b"\0Y"))
    assert bad.problem == "it has no name"
    assert good == Member("after.txt", b"ok")


@pytest.mark.parametrize(
    "pack", [gzip.compress, bz2.compress, partial(lzma.compress, preset=0)], ids=["gz", "bz2", "xz"]
)
@pytest.mark.parametrize("shape", ["alone", "tar", "nested"])
def test_a_bomb_is_refused_before_it_fills_the_memory(pack: Packer, shape: str) -> None:
    zeros = bytes(17 << 20)
    raw = {
        "alone": lambda: pack(zeros),
        "tar": lambda: tarball({"zeros": zeros}, pack),
        "nested": lambda: zipped({"zeros": pack(zeros)}),
    }[shape]()
    tracemalloc.start()
    with pytest.raises(ArchiveError, match="times its size"):
        unpack(raw)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 << 20  # 16 MiB of data, and what lzma needs itself


def test_a_zip_of_overlapping_files_is_counted_by_what_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "TOTAL_BYTES", 1 << 20)
    noise = random.Random(1).randbytes(600_000)
    with pytest.raises(ArchiveError, match="more than 1 MiB"):
        unpack(zipped({"a": noise, "b": noise}))


@pytest.mark.parametrize("pack", [tarball, zipped])
def test_too_many_entries_are_refused(pack: Callable[[dict[str, bytes]], bytes]) -> None:
    with pytest.raises(ArchiveError, match="10,000 entries"):
        unpack(pack({f"{n}.txt": b"" for n in range(10_001)}))


def test_what_is_not_text_says_what_to_do() -> None:
    files = {"a.png": b"\x89PNG\r\n", "b.sqlite": b"SQLite format 3\0", "c": bytes(9000)}
    problems = [m.problem for m in unpack(zipped(files))]
    assert all(problem.startswith("not text") for problem in problems)
    assert "CSV" in problems[1]


def test_a_cut_archive_is_read_as_far_as_it_goes() -> None:
    noise = random.Random(2).randbytes(30_000).hex().encode()
    raw = tarball({"a.txt": b"first\n", "b.txt": noise}, gzip.compress)
    found = unpack(raw[: len(raw) // 2], "x.tgz")
    assert found[0] == Member("x.tgz/a.txt", b"first\n")
    assert "damaged" in found[-1].problem


def test_an_encrypted_file_says_so() -> None:
    raw = bytearray(zipped({"a.txt": b"secret"}))
    for at in (raw.find(b"PK\x03\x04") + 6, raw.find(b"PK\x01\x02") + 8):
        raw[at] |= 1
    (found,) = unpack(bytes(raw))
    assert found.problem == "encrypted"


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("sosreport-x/sos_commands/pci/lspci_-nnvv", "lspci -nnvv"),
        ("sosreport-x/proc/cmdline", "cat /proc/cmdline"),
        ("sosreport-x/etc/default/grub", "cat /etc/default/grub"),
        ("out/guest.topo_p2p_read.txt", "guest.topo_p2p_read.txt"),
        ("", ""),
    ],
)
def test_a_reports_path_says_what_a_file_is(path: str, hint: str) -> None:
    assert hint_of(path) == hint


PACKED = [
    zipped(FILES),
    tarball(FILES),
    *(tarball(FILES, pack) for pack in (gzip.compress, bz2.compress, lzma.compress)),
]


@settings(max_examples=80)
@given(
    raw=st.sampled_from(PACKED),
    changes=st.lists(st.tuples(st.integers(0, 12_000), st.integers(0, 255)), max_size=6),
    cut=st.integers(0, 12_000),
)
def test_no_bytes_raise_anything_but_a_refusal(raw: bytes, changes: list[tuple[int, int]], cut: int) -> None:
    damaged = bytearray(raw)
    for at, value in changes:
        damaged[at % len(damaged)] = value
    try:
        found = unpack(bytes(damaged[: cut or None]), "x")
    except ArchiveError:
        return
    assert all(isinstance(m.data, bytes) and not (m.data and m.problem) for m in found)
