"""Contradictions between what was read, measured and said; one file a rule, found by a walk."""

from __future__ import annotations

from webapp.diagnosis.case import Bound, Contradiction
from webapp.diagnosis.catalogue import declarations, listed
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.rule import Rule


@listed
def all_rules() -> tuple[Rule, ...]:
    """In order of id."""
    return declarations(__name__, "rule")


def find(facts: Facts, bounds: tuple[Bound, ...]) -> tuple[Contradiction, ...]:
    """The same output given twice contradicts itself once."""
    found = (contradiction for rule in all_rules() for contradiction in _of(rule, facts.scope(), bounds))
    return tuple(dict.fromkeys(found))


def _of(rule: Rule, facts: Facts, bounds: tuple[Bound, ...]) -> list[Contradiction]:
    """What one rule read up to its last clash counts for each of them."""
    clashes = list(rule.check(facts, bounds))
    return [Contradiction(rule.id, text, evidence, facts.reads) for text, evidence in clashes]
