"""The append-only log of a session: who did what, when, hash-chained."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.conf import settings
from django.db import models, transaction
from django.utils import timezone

from webapp.triage.models.session import DiagnosisSession


class Event(models.Model):
    """kind: past participle, "run_finished". data: small JSON. hash: over this row and the one before."""

    session = models.ForeignKey(DiagnosisSession, on_delete=models.CASCADE, related_name="events")
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=60)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    data = models.JSONField(default=dict)
    at = models.DateTimeField()
    hash = models.CharField(max_length=64)

    class Meta:
        ordering = ("-number",)
        constraints = (
            models.UniqueConstraint(fields=("session", "number"), name="one_event_number"),
        )

    @classmethod
    def record(cls, session: DiagnosisSession, kind: str, actor: Any = None, **data: Any) -> Event:
        """Appends one event. Serialised per session by locking the session's row."""
        with transaction.atomic():
            DiagnosisSession.objects.select_for_update().get(pk=session.pk)
            last = cls.objects.filter(session=session).order_by("-number").first()
            number = last.number + 1 if last else 1
            at = timezone.now()
            body = json.dumps(
                [str(session.pk), number, kind, actor.pk if actor else None, data, at.isoformat()],
                sort_keys=True,
            )
            chained = hashlib.sha256(((last.hash if last else "") + body).encode()).hexdigest()
            return cls.objects.create(
                session=session,
                number=number,
                kind=kind,
                actor=actor,
                data=data,
                at=at,
                hash=chained,
            )
