"""What held back the GPUs while a run measured."""

from collections.abc import Iterable

from django import template

from agents.facts.bench import TELEMETRY
from webapp.records import reading_codec
from webapp.records.models import Evidence
from webapp.runs.results import held_back

register = template.Library()


@register.filter
def slowed_by(evidence: Iterable[Evidence]) -> tuple[str, ...]:
    """By the telemetry among a run's outputs; nothing where there is none. Their readings are prefetched."""
    stored = [r for one in evidence for r in one.readings.all() if r.fact_id == TELEMETRY.id]
    readings = [
        reading_codec.decode(reading_codec.Row(r.fact_id, r.kind, r.value, r.detail, r.lines, r.missing))
        for r in stored
    ]
    return held_back(gpu for reading in readings for gpu in reading.value or ())
