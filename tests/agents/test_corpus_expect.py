"""Every case of the corpus: what our facts say, against what a correct reader must get."""

from __future__ import annotations

import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agents.raw_reading import read_raw
from tests.corpus import CORPUS, needs_corpus
from tests.corpus_keys import KEYS, Read

pytestmark = needs_corpus
CASES = sorted(path.parent for path in CORPUS.glob("*/case.toml"))
# Keys that no case may lose again: right ones when this was written.
RIGHT_AT_LEAST = 200


def _expect(case: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((case / "case.toml").read_text())["expect"]
    return found


@cache
def _read(case: Path) -> Read:
    """As a person would give the files: the name is the only hint."""
    found = []
    for file in sorted(case.iterdir()):
        if file.name != "case.toml":
            for item in read_raw(file.read_bytes(), role=None, hint=file.name).items:
                found += [(file.name, reading) for reading in item.readings]
    return Read(tuple(found))


def _judge(case: Path) -> dict[str, str]:
    """Key -> right, wrong, not covered, or why it is not a fact."""
    words = {True: "right", False: "wrong", None: "not covered"}
    judged = {}
    for key, want in _expect(case).items():
        check = KEYS[key]
        judged[key] = check if isinstance(check, str) else words[check(want, _read(case))]
    return judged


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name[:3])
def test_nothing_that_our_facts_say_is_wrong(case: Path) -> None:
    wrong = [key for key, verdict in _judge(case).items() if verdict == "wrong"]
    assert not wrong, {key: _expect(case)[key] for key in wrong}


def test_how_much_is_right(record_property: Any, capsys: pytest.CaptureFixture[str]) -> None:
    counts = Counter(
        "not a fact" if verdict.startswith("not a fact") else verdict
        for case in CASES
        for verdict in _judge(case).values()
    )
    for verdict, count in counts.items():
        record_property(verdict, count)
    with capsys.disabled():
        print(f"\ncorpus: {dict(sorted(counts.items()))}")  # noqa: T201
    assert counts["right"] >= RIGHT_AT_LEAST


def test_every_key_is_mapped_and_no_mapping_is_left_over() -> None:
    used = {key for case in CASES for key in _expect(case)}
    assert used == KEYS.keys()
