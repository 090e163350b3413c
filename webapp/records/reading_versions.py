"""A second, different answer to a question: which one counts now, and where the earlier one is."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agents.facts import Reading, ReadingKind
from webapp.records import reading_codec
from webapp.records.models import Evidence, StoredReading


@dataclass(frozen=True, slots=True)
class EarlierAnswer:
    """name: the evidence that holds the earlier answer. replaced: the new one counts instead of it;
    else the new one is less complete, and the earlier one goes on counting."""

    name: str
    line: int
    replaced: bool


def earlier_answer(evidence: Evidence, reader: str, readings: Iterable[Reading[Any]]) -> EarlierAnswer | None:
    """The newest answer of this reader before this evidence, if it says something else of the same
    state of the machine. Answers from before a change are a before and an after, not versions."""
    new = {r.fact_id: reading_codec.encode(r) for r in readings if r.kind is ReadingKind.KNOWN}
    rows = StoredReading.objects.filter(
        evidence__session=evidence.session_id,
        evidence__epoch=evidence.epoch,
        evidence__set_aside_at=None,
        evidence_id__lt=evidence.pk,
        reader=reader,
        kind=ReadingKind.KNOWN,
        fact_id__in=new,
    ).order_by("-evidence_id", "id")
    first = rows.first()
    if first is None:
        return None
    old = list(rows.filter(evidence=first.evidence_id))
    changed = [row for row in old if row.value != new[row.fact_id].value]
    if not changed:
        return None
    before = Evidence.objects.only("reader", "sha256").get(pk=first.evidence_id)
    replaced = any(len(new[row.fact_id].missing) <= len(row.missing) for row in changed)
    return EarlierAnswer(before.name, min(changed[0].lines, default=1), replaced)
