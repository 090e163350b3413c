"""The lines found by a word are those that hold it, with the numbers they have in the whole text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.parsing.lines_with import lines_with

WORDS = ("ab", "b", "cc")


@settings(max_examples=80)
@given(text=st.text("abc \n", max_size=120), words=st.lists(st.sampled_from(WORDS), max_size=3))
def test_it_is_what_looking_at_every_line_finds(text: str, words: list[str]) -> None:
    wanted = [(number, line) for number, line in enumerate(text.split("\n"), 1) if any(word in line for word in words)]
    assert list(lines_with(text, words)) == wanted
