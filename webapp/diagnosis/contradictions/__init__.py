"""Contradictions between what was read, measured and said; one file a rule, found by a walk."""

from webapp.diagnosis.case import Case, Contradiction
from webapp.diagnosis.catalogue import declarations, listed
from webapp.diagnosis.rule import Rule


@listed
def all_rules() -> tuple[Rule, ...]:
    """In order of id."""
    return declarations(__name__, "rule")


def find(case: Case) -> tuple[Contradiction, ...]:
    """case: with every reading, those of other machines too. The same output given twice contradicts itself once."""
    every = (contradiction for rule in all_rules() for contradiction in _clashes(rule, case.scope()))
    return tuple(dict.fromkeys(every))


def _clashes(rule: Rule, case: Case) -> list[Contradiction]:
    """What one rule read up to its last clash counts for each of them."""
    clashes = list(rule.check(case))
    return [Contradiction(rule.id, text, evidence, case.facts.reads) for text, evidence in clashes]
