"""A range reads the same wherever it stands: equal decimals at both ends, digits that tell something."""

from __future__ import annotations

import re
from enum import EnumType

import pytest

from agents.facts import all_facts
from tests.webapp.diagnosis.sample_facts import facts_at
from webapp.diagnosis.answer.plain_words import for_a_manager
from webapp.diagnosis.answer.sections import for_an_engineer
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.wording import called, percent, span, typed_range
from webapp.pages.templatetags import show
from webapp.presenting.diagnosis_text import as_text

RANGE = re.compile(r"(?<![\d.–:])(\d+(?:\.\d+)?)–(\d+(?:\.\d+)?)(?= (?:ms|%|×|µs|GB))")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((55.3, 87.0), "55.3–87.0"),
        ((90.909, 90.909), "90.9"),
        ((256.0, 303.32), "256–303"),
        ((6.5, 120.04), "6.5–120.0"),
        ((0.0, 269.1), "0–269"),
        ((0.0, 87.1), "0.0–87.1"),
        ((0.1, 1.25), "0.10–1.25"),
        ((0.0, 0.0), "0"),
        ((211.0, 250.0), "211–250"),
    ],
)
def test_a_range(value: tuple[float, float], text: str) -> None:
    assert span(value) == text
    assert show.span(value, "ms") == f"{text} ms"


def test_what_a_person_typed_keeps_its_digits() -> None:
    assert typed_range((10.5, 12.0)) == "10.5–12.0"
    assert typed_range((11.0, 11.0)) == "11"
    assert typed_range((2.925e9, 9e9), 1e9) == "2.925–9.000"


def test_shares() -> None:
    assert percent((0.023, 0.33)) == "2.3–33.0 %"
    assert percent((0.12, 0.33)) == "12–33 %"


def test_no_value_of_a_fact_is_said_as_programs_have_it() -> None:
    types = {fact.type for fact in all_facts().values()}
    for kind in (kind for kind in types if isinstance(kind, EnumType)):
        values: list[object] = list(kind)
        said = {called(value) for value in values}
        assert not {text for text in said if "_" in text or text in {"other", "unknown"}}, kind
    assert [called(value) for value in (True, False, 1, "other")] == ["yes", "no", "1", "other"]


@pytest.mark.parametrize("stage", ["first", "guest", "host", "after"])
def test_every_text_of_the_sample_writes_its_ranges_alike(stage: str) -> None:
    """The old code had 55.3–87 beside 55.3–87.0, and 90.91 beside 90.9."""
    result = diagnose(facts_at(stage))
    sections = for_an_engineer(result)
    said = [as_text(result), for_a_manager(result), *(n for s in sections for n in s.notes)]
    said += [claim.text for section in sections for claim in section.claims]
    pairs = [found for text in said for found in RANGE.findall(text.replace("\n", " "))]
    assert pairs
    uneven = {p for p in pairs if len(p[0].partition(".")[2]) != len(p[1].partition(".")[2])}
    assert not uneven
    assert not any("90.91" in text for text in said)


def test_a_bound_s_division_is_written_out() -> None:
    (single, _) = diagnose(facts_at("host")).bounds
    assert "at most 1.49 × without any communication is 90.9 ms ÷ (90.9 − 30.0) ms" in single.assumes
    one = next(text for text in single.assumes if text.startswith("an all-reduce takes"))
    assert "at most 14 copies of 13.7 µs in a row and 1.75 × 12 KiB at" in one
    assert one.split(" takes ")[1].startswith("13.7–192")
