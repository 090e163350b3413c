"""Ids in sentences read as words."""

from __future__ import annotations

import re

from agents.facts import all_facts
from tests.webapp.diagnosis.sample_facts import diagnosed
from webapp.diagnosis.answer.sections import for_an_engineer
from webapp.diagnosis.catalogue import all_hypotheses


def test_the_page_to_print_holds_no_ids() -> None:
    ids = re.compile("|".join(sorted({h.id for h in all_hypotheses() if "_" in h.id} | set(all_facts()))))
    for stage in ("first", "guest", "host", "after"):
        for section in for_an_engineer(diagnosed(stage)):
            for text in (*(c.text for c in section.claims), *section.notes):
                assert not ids.search(text), text
