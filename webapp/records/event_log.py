"""The log of a session as evidence of who did what: checked, filtered, exported."""

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

from webapp.records.models import DiagnosisSession, Event


def broken(session: DiagnosisSession) -> str:
    """What is wrong with the chain, in words; "" when it is whole.

    Events cut off at the end leave no trace in the chain itself: compare the last hash with one that
    was exported before.
    """
    number = Event.first_broken(session)
    if number is None:
        return ""
    return f"event {number} was altered, or one before it is missing"


def filtered(session: DiagnosisSession, *, kind: str = "", actor: str = "") -> QuerySet[Event]:
    """Newest first. actor: a user name."""
    events = session.events.all()
    if kind:
        events = events.filter(kind=kind)
    if actor:
        events = events.filter(actor_name=actor)
    return events


def exported(session: DiagnosisSession) -> Iterator[dict[str, Any]]:
    """Every event, oldest first, with its hash."""
    for event in session.events.order_by("number").iterator(chunk_size=500):
        yield {
            "session": str(session.pk),
            "number": event.number,
            "kind": event.kind,
            "actor": event.actor_name,
            "data": event.data,
            "at": event.at.isoformat(),
            "hash": event.hash,
        }
