"""Contradictions between what was read, measured and said; one file a rule, found by a walk."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from webapp.diagnosis.case import Bound, Contradiction
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.rule import Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """In order of id."""
    return tuple(importlib.import_module(f"{__name__}.{info.name}").rule for info in pkgutil.iter_modules(__path__))


def find(facts: Facts, bounds: tuple[Bound, ...]) -> tuple[Contradiction, ...]:
    """The same output given twice contradicts itself once."""
    found = (
        Contradiction(rule.id, text, evidence) for rule in all_rules() for text, evidence in rule.check(facts, bounds)
    )
    return tuple(dict.fromkeys(found))
