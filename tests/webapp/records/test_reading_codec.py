"""Readings as JSON and back: nothing is lost, and nothing undecodable gets through as known."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.facts import Fact, Reading, ReadingKind, all_facts
from agents.facts.bench import COPY, CopyPath, CopyResult, CopyRow
from agents.facts.workload import MODEL, Model
from webapp.records.reading_codec import Row, decode, encode

FACTS = list(all_facts().values())
FINITE = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=8)
INTEGER = st.integers(-(2**62), 2**62)


def through_json(row: Row) -> Row:
    """What a JSON column gives back."""
    value = json.loads(json.dumps(row.value, allow_nan=False))
    return Row(row.fact_id, row.kind, value, row.detail, row.lines, row.missing)


@pytest.fixture(scope="module", autouse=True)
def plain_numbers_and_text() -> Any:
    for kind, strategy in ((float, FINITE), (str, TEXT), (int, INTEGER)):
        st.register_type_strategy(kind, strategy)
    yield
    for kind, strategy in ((float, st.floats()), (str, st.text()), (int, st.integers())):
        st.register_type_strategy(kind, strategy)


@pytest.mark.parametrize("fact", FACTS, ids=lambda f: f.id)
def test_every_fact_of_the_vocabulary_survives(fact: Fact[Any]) -> None:
    @settings(max_examples=5)
    @given(st.from_type(fact.type), st.lists(st.integers(1, 999), max_size=3))
    def survives(value: Any, lines: list[int]) -> None:
        reading = fact.known(value, lines=tuple(lines), missing=("row GPU7",))
        assert decode(through_json(encode(reading))) == reading

    survives()


@pytest.mark.parametrize("kind", [k for k in ReadingKind if k is not ReadingKind.KNOWN])
def test_the_other_ways_a_reading_ends_survive(kind: ReadingKind) -> None:
    reading: Reading[Any] = Reading("guest.gpus", kind, None, "nvidia-smi is not installed", (3,))
    assert decode(through_json(encode(reading))) == reading


@pytest.mark.parametrize(
    "row",
    [
        Row("guest.no_such_fact", "known", 1, "", [4], []),
        Row("user.model", "known", {"layers": "many"}, "", [4], []),
        Row("user.model", "known", None, "", [4], []),
        Row("user.model", "guessed", {}, "", [4], []),
        Row("guest.p2p_read", "known", {"gpus": ["GPU0"], "codes": [["FINE"]]}, "", [4], []),
    ],
)
def test_what_no_longer_decodes_is_unreadable(row: Row) -> None:
    reading = decode(row)
    assert reading.kind is ReadingKind.UNREADABLE
    assert reading.value is None
    assert reading.detail
    assert reading.lines == (4,)


def test_a_number_that_is_none_is_not_known_afterwards() -> None:
    row = CopyRow(CopyPath.SAME, "0", "0", 4096, float("nan"))
    stored = through_json(encode(COPY.known(CopyResult((row,)))))
    assert decode(stored).kind is ReadingKind.UNREADABLE


@pytest.mark.parametrize("name", ["\0", "a\0b", "\\u0000", "\ud800"])
def test_text_that_a_database_refuses_never_reaches_it(name: str) -> None:
    row = encode(MODEL.known(Model(name=name)))
    stored = [row.detail, *(row.value or {}).values()]
    assert not any(bad in text for text in stored if isinstance(text, str) for bad in "\0\ud800")
    kind = ReadingKind.UNREADABLE if name == "\ud800" else ReadingKind.KNOWN
    assert decode(row).kind is kind


@settings(max_examples=50)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_no_stored_value_makes_decoding_raise(value: Any) -> None:
    for fact in FACTS:
        assert decode(Row(fact.id, "known", value, "", [], [])).fact_id == fact.id
