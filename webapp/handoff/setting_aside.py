"""One answer of several that is not what was asked: it is kept and counts no more, until it is taken back."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from webapp.accounts.models import User
from webapp.handoff.models import Answer
from webapp.triage.models import DiagnosisSession, Event, Evidence


def set_aside(answer: Answer, by: User, *, counts: bool) -> None:
    """counts: take it back instead. What the same output says by another way is set aside with it."""
    session = answer.link.session
    with transaction.atomic():
        DiagnosisSession.objects.select_for_update().get(pk=session.pk)
        changing = _rows_of(answer).filter(set_aside_at__isnull=not counts)
        if changing.update(set_aside_at=None if counts else timezone.now()):
            kind = "answer_taken_back" if counts else "answer_set_aside"
            evidence = answer.evidence
            about = {"evidence": evidence.pk, "name": evidence.name, "label": evidence.label}
            Event.record(session, kind, by, person=answer.link.person, **about)


def _rows_of(answer: Answer) -> QuerySet[Evidence]:
    """Its text, and where that is a collector's answer the probes' outputs in it."""
    evidence = answer.evidence
    frames = Q(meta__bundle=evidence.sha256, epoch=evidence.epoch)
    return Evidence.objects.filter(Q(pk=evidence.pk) | frames, session=evidence.session_id)
