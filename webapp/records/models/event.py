"""The append-only log of a session: who did what, when, hash-chained."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models, transaction
from django.utils import timezone

from webapp.records.models.session import DiagnosisSession


class Event(models.Model):
    """kind: past participle, "run_finished". data: small JSON. hash: over this row and the one before.

    actor_name: as the person was called then, "" for Peerpath itself; the log means the same on another
    instance, where the account is not.
    """

    session = models.ForeignKey(DiagnosisSession, on_delete=models.CASCADE, related_name="events")
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=60)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    actor_name = models.CharField(max_length=150, blank=True)
    data = models.JSONField(default=dict)
    at = models.DateTimeField()
    hash = models.CharField(max_length=64)

    class Meta:
        ordering = ("-number",)
        # Predictions are scored when a decision is closed, and told over all sessions. An index of those
        # events alone is none to SQLite, which does not know the kind that is asked for.
        indexes = (models.Index(fields=("kind", "-at"), name="events_by_kind"),)
        constraints = (models.UniqueConstraint(fields=("session", "number"), name="one_event_number"),)

    @classmethod
    def record(cls, session: DiagnosisSession, kind: str, actor: Any = None, **data: Any) -> Event:
        """Appends one event. Serialised per session by the lock that changing the session's row takes."""
        with transaction.atomic():
            DiagnosisSession.objects.filter(pk=session.pk).update(updated_at=timezone.now())
            last = cls.objects.filter(session=session).order_by("-number").first()
            number = last.number + 1 if last else 1
            event = cls(
                session=session,
                number=number,
                kind=kind,
                actor=actor,
                actor_name=actor.username if actor else "",
                data=data,
                at=timezone.now(),
            )
            event.hash = event.chained_to(last.hash if last else "")
            event.save(force_insert=True)
            News.objects.create(event=event, session=session)
            return event

    @property
    def who(self) -> str:
        """Whose act it was, for people; a host admin's by the name the link was made for."""
        return self.actor_name or str(self.data.get("person", "")) or "Peerpath"

    if TYPE_CHECKING:

        def get_absolute_url(self) -> str:
            """Of what it is about, as the settings' ABSOLUTE_URL_OVERRIDES give it."""

    def chained_to(self, hash_before: str) -> str:
        """The hash this row must have after a row of that hash; "" for the first."""
        row = [str(self.session_id), self.number, self.kind, self.actor_name, self.data]
        body = json.dumps([*row, self.at.astimezone(UTC).isoformat()], sort_keys=True)
        return hashlib.sha256((hash_before + body).encode()).hexdigest()

    @classmethod
    def first_broken(cls, session: DiagnosisSession) -> int | None:
        """Number of the first event that was altered, or before which one is missing; None when the
        chain is whole. Events cut off at the end leave no trace in it."""
        before = ""
        for number, event in enumerate(cls.objects.filter(session=session).order_by("number"), 1):
            if event.number != number or event.hash != event.chained_to(before):
                return number
            before = event.hash
        return None


class News(models.Model):
    """An event without digest and notices yet. It is written with the event and removed when both are made, so that
    a crash loses none."""

    event = models.OneToOneField(Event, on_delete=models.CASCADE, primary_key=True)
    session = models.ForeignKey(DiagnosisSession, on_delete=models.CASCADE, related_name="news")
