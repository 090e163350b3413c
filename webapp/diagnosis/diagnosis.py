"""The whole answer, and the one function that makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from webapp.diagnosis.case import (
    Advice,
    Bound,
    Contradiction,
    Correction,
    Finding,
    Gate,
    Layout,
    NextTest,
    Verdict,
)
from webapp.diagnosis.facts import Facts


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything a page or `diagnose --json` shows. headline: one plain-language answer."""

    facts: Facts
    contradictions: tuple[Contradiction, ...]
    ladder: tuple[Gate, ...]
    verdicts: Mapping[str, Verdict]
    bounds: tuple[Bound, ...]
    findings: tuple[Finding, ...]
    next_tests: tuple[NextTest, ...]
    layouts: tuple[Layout, ...]
    advice: Mapping[str, Advice]
    corrections: tuple[Correction, ...]
    headline: str
    summary: str
