"""Statements from facts that people get wrong or need to hear; each is triggered by what was read."""

from __future__ import annotations

from webapp.diagnosis.case import Case, Finding
from webapp.diagnosis.finding_rules import after, guest, host, speed

_ORDER = {"critical": 0, "warning": 1, "info": 2}


def findings(case: Case) -> tuple[Finding, ...]:
    """Critical ones first, otherwise in the order in which a case usually unfolds."""
    rules = (*after.RULES, *speed.RULES, *guest.RULES, *host.RULES)
    found = [finding for rule in rules if (finding := rule(case))]
    return tuple(sorted(found, key=lambda finding: _ORDER[finding.severity]))
