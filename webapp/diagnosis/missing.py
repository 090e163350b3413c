"""Which probe or benchmark would tell a fact that is missing."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from agents.facts import Fact
from agents.probes import all_probes
from webapp.diagnosis.facts import Facts


def probes_for(facts: Facts, *needed: Fact[Any]) -> tuple[str, ...]:
    """Ids for those of the facts that are not known: a probe's, else the fact's own id."""
    return tuple(dict.fromkeys(map(probe_of, facts.unknown(*needed))))


def probe_of(fact: Fact[Any]) -> str:
    """The id of a probe that reads the fact, else the fact's own."""
    return _readers().get(fact.id, fact.id)


@cache
def _readers() -> Mapping[str, str]:
    """The first probe of each fact that one reads."""
    return {f.id: p.id for p in reversed(all_probes().values()) for f in p.supplies}
