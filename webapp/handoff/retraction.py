"""Retraction of one wrong answer of several: it is kept but does not count until it is restored.

An operator can retract and restore any answer. The sender can retract an answer through the link, and then only the
sender can restore it.
"""

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from webapp.accounts.models import User
from webapp.handoff.models import Answer, Link
from webapp.records.models import DiagnosisSession, Event, Evidence

_OTHERS = Answer.objects.filter(evidence=OuterRef("evidence")).exclude(link=OuterRef("link"))
# The answer is the only one with this output.
CAME_ALONE = Q(~Exists(_OTHERS), evidence__created_by=None)


class NotTheirsError(Exception):
    """Somebody else gave the same output, or retracted this one; the message says which."""


def set_aside(answer: Answer, by: User, *, counts: bool) -> None:
    """counts: restores the answer instead. The same output from other sources is set aside with it. Raises
    NotTheirsError when its sender retracted it."""
    session = answer.link.session
    with transaction.atomic():
        DiagnosisSession.objects.select_for_update().get(pk=session.pk)
        if Answer.objects.filter(pk=answer.pk, taken_back_at__isnull=False).exists():
            raise NotTheirsError(f"{answer.link.person} took it back, and may send it again.")
        if _set_counting(answer, counts=counts):
            kind = "answer_taken_back" if counts else "answer_set_aside"
            _record_event(answer, kind, by)


def take_back(answer: Answer) -> None:
    """Retracts an answer of the sender. Raises NotTheirsError when the same output also came another way, because
    that still counts."""
    session = answer.link.session
    with transaction.atomic():
        DiagnosisSession.objects.select_for_update().get(pk=session.pk)
        if not Answer.objects.filter(CAME_ALONE, pk=answer.pk).exists():
            raise NotTheirsError("Others gave the same output, so it goes on counting.")
        open_rows = Answer.objects.filter(pk=answer.pk, taken_back_at=None)
        if open_rows.update(taken_back_at=timezone.now()):
            _set_counting(answer, counts=False)
            Link.objects.filter(pk=answer.link_id).update(accepted_at=None, accepted_by=None)
            _record_event(answer, "answer_withdrawn", None)


def _set_counting(answer: Answer, *, counts: bool) -> int:
    changing = _rows_of(answer).filter(set_aside_at__isnull=not counts)
    return changing.update(set_aside_at=None if counts else timezone.now())


def _record_event(answer: Answer, kind: str, by: User | None) -> None:
    evidence, link = answer.evidence, answer.link
    about = {"evidence": evidence.pk, "name": evidence.name, "label": evidence.label}
    Event.record(link.session, kind, by, person=link.person, **about)


def _rows_of(answer: Answer) -> QuerySet[Evidence]:
    """Its text, and where that is a collector's answer the probes' outputs in it."""
    evidence = answer.evidence
    frames = Q(meta__bundle=evidence.sha256, epoch=evidence.epoch)
    return Evidence.objects.filter(Q(pk=evidence.pk) | frames, session=evidence.session_id)
