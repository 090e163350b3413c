"""Comments on anything of a session, and decision records."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from webapp.triage.models import DiagnosisSession


class Comment(models.Model):
    """anchor: what it is about, "finding:…", "hypothesis:…", "option:…", "run:…" or "" for the session.

    stance: "agree", "dispute" or "".
    """

    session = models.ForeignKey(DiagnosisSession, on_delete=models.CASCADE, related_name="comments")
    anchor = models.CharField(max_length=120, blank=True)
    stance = models.CharField(max_length=10, blank=True)
    text = models.TextField()
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("created_at",)


class DecisionState(models.TextChoices):
    ACCEPTED = "accepted"
    APPLIED = "applied"
    VERIFIED = "verified"
    NO_EFFECT = "no_effect", "no effect"
    REVERTED = "reverted"
    SUPERSEDED = "superseded"


class Decision(models.Model):
    """A decision record. options: the whole considered list with status and reasons, as JSON, as it
    stood; chosen: option ids. pins: [{"name", "sha256"}] of the evidence it rests on.

    The record's content is never edited; its state moves, and a later record may supersede it.
    """

    session = models.ForeignKey(
        DiagnosisSession, on_delete=models.CASCADE, related_name="decisions"
    )
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=200)
    context = models.TextField()
    options = models.JSONField(default=list)
    chosen = models.JSONField(default=list)
    reason = models.TextField()
    pins = models.JSONField(default=list)
    epoch = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=12, choices=DecisionState, default=DecisionState.ACCEPTED)
    outcome = models.TextField(blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    decided_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("number",)
        constraints = (
            models.UniqueConstraint(fields=("session", "number"), name="one_decision_number"),
        )
