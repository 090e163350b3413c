"""A case that was redacted before it was given is diagnosed like the case itself."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from agents.redaction import redact
from agents.samples import STAGES, load
from webapp.diagnosis.diagnosis import Diagnosis, diagnose
from webapp.runs.outputs import facts_from, read_sources
from webapp.runs.sources import Access, SourceText, gather


def _diagnosed(given: list[SourceText]) -> Diagnosis:
    return diagnose(facts_from(read_sources(given, None)))


def _redacted(given: list[SourceText]) -> list[SourceText]:
    tokens: Mapping[str, str] = {}
    found = []
    for one in given:
        if one.tables:
            found.append(one)
            continue
        result = redact(one.raw.decode(), tokens)
        tokens = result.tokens
        found.append(SourceText(one.name, result.text.encode(), one.epoch))
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_of_the_diagnosis_is_lost(stage: str) -> None:
    given = list(gather([f"sample:kpro6@{stage}"], Access()))
    before, after = _diagnosed(given), _diagnosed(_redacted(given))
    assert [(g.gate, g.path, g.state) for g in after.ladder] == [(g.gate, g.path, g.state) for g in before.ladder]
    assert {k: v.kind for k, v in after.verdicts.items()} == {k: v.kind for k, v in before.verdicts.items()}
    assert {k: a.status for k, a in after.advice.items()} == {k: a.status for k, a in before.advice.items()}


def test_the_samples_names_are_gone() -> None:
    given = [g for g in gather(["sample:kpro6@after"], Access()) if not g.tables]
    text = b"\n".join(g.raw for g in _redacted(given)).decode()
    for secret in ("kpro6", "llm-one", "operator@", "5ac0ffee", "bc:24:11:00:01:28"):
        assert secret not in text
    assert len(given) == sum(not output.is_workload for output in load("kpro6@after"))
