"""Same input, same bytes: whatever the order of reading and the seed of the process's hashes."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.webapp.diagnosis.sample_facts import facts_at
from tests.webapp.diagnosis.scenarios import SCENARIOS
from webapp.diagnosis.answer.plain_words import for_a_manager
from webapp.diagnosis.answer.sections import for_an_engineer
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.facts import Facts
from webapp.presenting.diagnosis_json import as_json

ROOT = Path(__file__).resolve().parents[3]
STAGES = ("first", "guest", "host", "after")


def digest() -> str:
    """Of everything that is said about every scenario and every stage."""
    found = hashlib.sha256()
    for facts in [*(s.facts for s in SCENARIOS), *(facts_at(stage) for stage in STAGES)]:
        result = diagnose(facts)
        for text in (as_json(result), for_a_manager(result), repr(for_an_engineer(result))):
            found.update(text.encode())
    return found.hexdigest()


@pytest.mark.thorough
def test_the_order_of_reading_does_not_show() -> None:
    shuffled = random.Random(7)
    for scenario in SCENARIOS:
        items = list(scenario.items)
        shuffled.shuffle(items)
        one, other = diagnose(scenario.facts), diagnose(Facts.of(items))
        assert as_json(one) == as_json(other), scenario.name
        assert for_a_manager(one) == for_a_manager(other), scenario.name


@pytest.mark.thorough
def test_the_seed_of_a_process_does_not_show() -> None:
    code = "from tests.webapp.diagnosis.test_same_bytes import digest; print(digest())"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert found == {f"{digest()}\n"}
