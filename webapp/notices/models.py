"""Who is notified of what, and every message on its way."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.functional import cached_property

from webapp.records.models import DiagnosisSession, Event
from webapp.records.models.session import may_operate


class Choice(models.Model):
    """The kinds of news that a person wants by mail; without a row: kinds.DEFAULTS."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="notices"
    )
    kinds = models.JSONField(default=list)


class Webhook(models.Model):
    """An address that gets the events of one session, or of all (session None).

    sealed: its secret as webapp.sealing writes it, under the key `key_id`; both "" once removed.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(DiagnosisSession, null=True, on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=500)
    kinds = models.JSONField(default=list)
    sealed = models.TextField()
    key_id = models.CharField(max_length=20)
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField(auto_now_add=True)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("made_at",)

    @cached_property
    def stands(self) -> bool:
        """Whether the person who added it still may; lists read it with the webhooks."""
        standing = vars(self).get("standing")
        return may_operate(self.made_by, self.session) if standing is None else bool(standing)


class DeliveryState(models.TextChoices):
    """waiting → sending → delivered | waiting again | failed."""

    WAITING = "waiting"
    SENDING = "sending"
    DELIVERED = "delivered"
    FAILED = "failed"


class Delivery(models.Model):
    """One message to one person or webhook; its body is the same at every try.

    due_at: not tried before; while it is being sent, from when another worker may take it up, because the
    first one is gone. tries: how many were begun; status: the last answer's; problem: why it is not
    delivered, for people.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    event = models.ForeignKey(Event, on_delete=models.CASCADE, related_name="+")
    webhook = models.ForeignKey(Webhook, null=True, on_delete=models.CASCADE, related_name="deliveries")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=20)
    body = models.TextField()
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.WAITING)
    due_at = models.DateTimeField()
    tries = models.PositiveSmallIntegerField(default=0)
    status = models.PositiveSmallIntegerField(null=True)
    problem = models.CharField(max_length=300, blank=True)
    made_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-made_at",)
        constraints = (
            models.UniqueConstraint(fields=("event", "webhook"), condition=~Q(webhook=None), name="one_per_webhook"),
            models.UniqueConstraint(fields=("event", "user"), condition=~Q(user=None), name="one_per_person"),
        )
        indexes = (
            models.Index(fields=("due_at",), condition=Q(state__in=["waiting", "sending"]), name="deliveries_due"),
        )
