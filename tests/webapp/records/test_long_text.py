"""Lines of a long output, cut and found without splitting the whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.framing import clean
from webapp.presenting.ansi import pieces
from webapp.records import long_text
from webapp.records.long_text import LongText

TEXTS = st.lists(st.sampled_from([b"a", b"NS", b"\n", b"\n\n", b"\x1b[31m", b"x" * 40])).map(b"".join)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_text, "BLOCK_BYTES", 16)


@given(TEXTS, st.integers(1, 40), st.integers(1, 9))
def test_cutting_is_splitting(raw: bytes, first: int, count: int) -> None:
    lines = raw.split(b"\n")
    if not lines[-1]:
        lines.pop()
    text = LongText.of(raw)
    assert text.total == len(lines)
    assert text.cut(first, count) == lines[first - 1 : first - 1 + count]


@given(TEXTS, st.sets(st.integers(1, 40)))
def test_lines_are_had_by_their_numbers(raw: bytes, numbers: set[int]) -> None:
    text, lines = LongText.of(raw), [b"", *raw.split(b"\n")]
    there = sorted(number for number in numbers if number <= text.total)
    assert list(text.at(there)) == [lines[number] for number in there]


@given(TEXTS, st.integers(0, 40))
def test_words_are_found_once_a_line_in_any_case(raw: bytes, after: int) -> None:
    there = [n for n, line in enumerate(raw.split(b"\n"), 1) if b"ns" in line.lower()]
    text = LongText.of(raw)
    assert list(text.find("nS")) == there
    assert list(text.find("nS", after)) == [number for number in there if number > after]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"plain", [("plain", "")]),
        (b"\x1b[1;31mERR\x1b[0m ok", [("ERR", "a-bold ink-1"), (" ok", "")]),
        (b"\x1b[38;5;46mx\x1b[39my", [("x", "ink-10"), ("y", "")]),
        (b"\x1b[48;2;250;10;10mx", [("x", "paper-9")]),
        (b"\x1b[97mx\x1b[38;5mz", [("x", "ink-15"), ("z", "")]),
        (b"a\x1b[2Kb\x1b]0;title\x07c\r", [("abc", "")]),
        (b"\x1b[31m<script>", [("<script>", "ink-1")]),
    ],
)
def test_colours_are_kept_and_nothing_else(line: bytes, shown: list[tuple[str, str]]) -> None:
    assert [(piece.text, piece.classes) for piece in pieces(line)] == shown


@given(st.binary(max_size=60).filter(lambda raw: b"\n" not in raw))
def test_the_text_is_what_parsers_read(line: bytes) -> None:
    assert "".join(piece.text for piece in pieces(line)) == clean(line)
