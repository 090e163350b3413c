"""Statements from facts that people get wrong or need to hear; each is triggered by what was read."""

from collections.abc import Callable
from dataclasses import replace

from webapp.diagnosis.case import Case, Finding
from webapp.diagnosis.findings import after, guest, host, speed

_ORDER = {"critical": 0, "warning": 1, "info": 2}


def findings(case: Case) -> tuple[Finding, ...]:
    """Critical ones first, otherwise in the order in which a case usually unfolds."""
    rules = (*after.RULES, *speed.RULES, *guest.RULES, *host.RULES)
    every = [finding for rule in rules if (finding := _judged(rule, case.scope()))]
    return tuple(sorted(every, key=lambda finding: _ORDER[finding.severity]))


def _judged(rule: Callable[[Case], Finding | None], case: Case) -> Finding | None:
    finding = rule(case)
    return finding and replace(finding, reads=case.facts.reads)
