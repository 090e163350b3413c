"""Bundles as they arrive: pasted, quoted, cut, hostile."""

from __future__ import annotations

import subprocess
import tracemalloc
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.framing import (
    End,
    Event,
    Frame,
    FrameReader,
    Header,
    ProbeStarted,
    clean,
    looks_like_bundle,
    read_bundle,
    read_bundles,
)
from tests.agents.asking import NONCE, probe_of, script_of


@cache
def _printed() -> bytes:
    script = script_of(probe_of("a", "printf 'one\\n\\n  two'; echo bad >&2"), probe_of("b", "echo b"))
    return subprocess.run(["sh"], input=script.encode(), capture_output=True, check=True).stdout


def _said(raw: bytes) -> list[tuple[str, str, str]]:
    return [(f.probe_id, f.output.stdout, f.output.stderr) for f in read_bundle(raw).frames]


PIECES = [f"={NONCE}= ", "begin ", "probe guest.a", "done guest.a exit=9x", "end probes=\u0663"]
PIECES += ["\n", "| ", "! ", "> ", "about =", "\x1b[", "guest.b"]
WHOLE = [("guest.a", "one\n\n  two", "bad\n"), ("guest.b", "b\n", "")]


def test_a_header_says_who_answered() -> None:
    header = read_bundle(_printed()).header
    assert header
    assert (header.nonce, header.schema, header.role) == (NONCE, "peerpath.collector/1", "guest")
    assert header.process_group
    assert len(header.script_sha256) == 64


def test_line_numbers_count_in_the_whole_text() -> None:
    raw = b"Welcome\n" + _printed()
    lines = raw.split(b"\n")
    first, second = read_bundle(raw).frames
    assert lines[first.first_line - 1 + 2] == b"|   two"
    assert lines[first.stderr_first_line - 1] == b"! bad"
    assert lines[second.first_line - 1] == b"| b"


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: b"Welcome to gpu1\n* motd *" + raw + b"root@gpu1:~# \n",
        lambda raw: raw.replace(b"\n", b"\r\n"),
        lambda raw: b"\n".join(b"> " + line for line in raw.split(b"\n")),
        lambda raw: b"\n".join(b"    >> " + line for line in raw.split(b"\n")),
        lambda raw: b"\n".join(b"\x1b[0m" + line + b"\x1b[K" for line in raw.split(b"\n")),
        lambda raw: b"\n".join(line.rstrip() for line in raw.split(b"\n")),
        lambda raw: raw.rstrip(b"\n"),
    ],
    ids=["motd", "crlf", "quoted", "indented", "ansi", "stripped", "no-final-newline"],
)
def test_a_paste_survives(change: object) -> None:
    raw = change(_printed())  # type: ignore[operator]
    assert looks_like_bundle(raw)
    assert _said(raw) == WHOLE
    assert read_bundle(raw).complete


def test_an_edited_answer_is_told() -> None:
    bundle = read_bundle(_printed().replace(b"| one", b"| two"))
    assert (bundle.hash_matches, bundle.edited, bundle.complete) == (False, True, True)


def test_lines_that_lost_their_prefix_still_count_and_are_told() -> None:
    raw = _printed().replace(b"\n| b\n| \n", b"\nb\n")
    bundle = read_bundle(raw)
    assert bundle.frames[1].output.stdout == "b"
    assert bundle.edited


def test_a_cut_in_a_probe_marks_it() -> None:
    raw = _printed()
    bundle = read_bundle(raw[: raw.index(b"|   two") + 4])
    (frame,) = bundle.frames
    assert (frame.cut, frame.output.truncated, frame.output.exit_code) == (True, True, None)
    assert (bundle.complete, bundle.hash_matches) == (False, None)


def test_a_missing_frame_is_not_complete() -> None:
    raw = _printed()
    start, end = raw.index(b"=" + NONCE.encode() + b"= probe guest.b"), raw.index(b"= end") - 17
    bundle = read_bundle(raw[:start] + raw[end:])
    assert (bundle.complete, bundle.edited, bundle.hash_matches) == (False, True, False)


def test_another_nonce_is_noise() -> None:
    bundle = read_bundle(_printed().replace(NONCE.encode(), b"f" * 16) + _printed(), nonce=NONCE)
    assert bundle.complete
    assert any("begin" in line.text for line in bundle.noise)


def test_several_answers_in_one_text() -> None:
    second = _printed().replace(NONCE.encode(), b"f" * 16)
    raw = b"hello\n" + _printed() + second
    (before, first), (skipped, last) = read_bundles(raw)
    assert (first.complete, last.complete, before) == (True, True, 0)
    assert raw.split(b"\n")[skipped + last.frames[1].first_line - 1] == b"| b"
    assert [line.text for line in first.noise] == ["hello"]


def test_frames_come_as_soon_as_they_are_whole() -> None:
    reader, seen = FrameReader(NONCE), list[Event]()
    for byte in _printed():
        seen += reader.feed(bytes([byte]))
    kinds = [type(event) for event in [*seen, *reader.close()]]
    assert kinds == [Header, ProbeStarted, Frame, ProbeStarted, Frame, End]


def test_an_endless_line_stays_bounded() -> None:
    reader = FrameReader(NONCE)
    reader.feed(f"={NONCE}= probe guest.a\n| ".encode())
    for _ in range(100):
        reader.feed(b"x" * 2**20)
    mark = f"\n={NONCE}= done guest.a exit=0 truncated=no\n".encode()
    (frame,) = (event for event in reader.feed(mark) if isinstance(event, Frame))
    assert frame.output.truncated
    assert len(frame.raw_stdout) <= 17 * 2**20


@settings(max_examples=50)
@given(junk=st.binary(max_size=200), at=st.integers(0, 2000), size=st.integers(1, 50))
def test_nothing_raises_and_chunks_do_not_matter(junk: bytes, at: int, size: int) -> None:
    raw = _printed()[:at] + junk + _printed()[at:]
    reader, events = FrameReader(), list[Event]()
    for start in range(0, len(raw), size):
        events += reader.feed(raw[start : start + size])
    events += reader.close()
    assert tuple(e for e in events if isinstance(e, Frame)) == read_bundle(raw).frames


@settings(max_examples=50)
@given(
    words=st.lists(
        st.sampled_from(
            [
                f"={NONCE}= ",
                "begin ",
                "probe guest.a",
                "done guest.a exit=9x",
                "end probes=\u0663",
                "\n",
                "| ",
                "! ",
                "> ",
                "about =",
                "\x1b[",
                "guest.b",
            ]
        ),
        max_size=40,
    )
)
def test_marks_in_any_disorder_are_read(words: list[str]) -> None:
    read_bundle("".join(words).encode())
    read_bundles("".join(words).encode())


MARK = f"={NONCE}= ".encode()
OPENED = MARK + b"begin peerpath.collector/1 role=guest\n" + MARK + b"probe guest.a\n"
DONE = MARK + b"done guest.a exit=0\n"
FLOODS = {
    "newlines": b"\n" * 2**18,
    "x lines": b"x\n" * 2**17,
    "frame and newlines": OPENED + b"\n" * 2**18 + DONE,
    "frame and x": OPENED + b"| a\n" + b"x\n" * 2**17 + DONE,
    "stdout between": OPENED + b"|\nx\n" * 2**16 + DONE,
    "blank between": b"x\n\n" * 2**16,
    "tiny frames": (MARK + b"probe guest.a\n" + DONE) * 50_000,
    "cut frames": (b"=aaaaaaaa= begin a\n" + b"=aaaaaaaa= probe a.b\n" * 2**14),
    "endless line": OPENED + b"| " + b"x" * 2**21,
    "endless line with escapes": OPENED + b"| " + b"ab\x1b[m" * 2**19 + b"\n" + DONE,
    "endless line with CR": OPENED + b"| " + b"ab\r" * 2**20 + b"\n" + DONE,
    "forged frames": OPENED + b"=bbbbbbbb= probe guest.a\n" * 2**14 + DONE,
    "answers": b"".join(b"=aaaa%06d= begin peerpath.\n" % n for n in range(2**16)),
    "header fields": MARK + b"begin a\n" + b"".join(MARK + b"about a%d= b%d=\n" % (n, n) for n in range(2**14)),
}


def _streamed(raw: bytes) -> object:
    reader = FrameReader()
    events = [event for at in range(0, len(raw), 65536) for event in reader.feed(raw[at : at + 65536])]
    return reader, [*events, *reader.close()]


@pytest.mark.thorough
@pytest.mark.parametrize("read", [_streamed, read_bundles])
@pytest.mark.parametrize("flood", FLOODS)
def test_what_a_machine_sends_costs_at_most_ten_times_its_size(flood: str, read: Callable[[bytes], object]) -> None:
    raw = FLOODS[flood]
    tracemalloc.start()
    try:
        read(raw)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * len(raw)


def test_noise_keeps_its_line_numbers() -> None:
    raw = b"one\n\n> \ntwo\n" + OPENED + b"| a\nbare\n\n" + DONE + b"three\n"
    assert [(line.line, line.text) for line in read_bundle(raw).noise] == [
        (1, "one"),
        (4, "two"),
        (8, "bare"),
        (11, "three"),
    ]


@pytest.mark.parametrize("piece", [b"ab\r\x1b[1m", "é≥\U0001f600".encode(), b"\xff\x80\xc3", b"\x1b]0;x\x1b\\"])
def test_a_long_line_is_cleaned_as_a_short_one_is(piece: bytes) -> None:
    assert clean(piece * 100_000) == clean(piece * 10) * 10_000
