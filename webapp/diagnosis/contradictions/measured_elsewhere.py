"""A benchmark's header names other cards than the guest has: it was run on another machine.

The programs write the names that torch gives the GPUs, and the driver lists the same names.

Source: nvidia-smi manual, query-gpu name.
"""

from collections.abc import Iterator

from webapp.diagnosis.case import Case
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.facts import CITED
from webapp.diagnosis.rule import Clash, Rule
from webapp.diagnosis.situation.own_machine import card_measurements, cards_listed, foreign_cards


def check(case: Case) -> Iterator[Clash]:
    """Once for all outputs that say the same, with the lines of the newest."""
    facts = case.facts
    refs_by_text: dict[str, tuple[EvidenceRef, ...]] = {}
    for fact, item in card_measurements(facts):
        why, cards = foreign_cards(facts, item), cards_listed(facts, item)
        if why and cards:
            refs_by_text.setdefault(f"{fact.title}: {why}", item.refs[:CITED] + cards.refs[:CITED])
    yield from refs_by_text.items()


rule = Rule(__name__, "Measured on another machine", check)
