"""One sending of probes or a benchmark to a target, and its raw output as it came."""

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone

from webapp.records.models.session import DiagnosisSession
from webapp.records.models.target import Target

# The kinds of a run.
PROBES, BENCHMARK = "probes", "benchmark"


class RunState(models.TextChoices):
    """queued → claimed → running → succeeded | partly | failed | cancelled | lost."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    PARTLY = "partly"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"

    @property
    def ended(self) -> bool:
        return self in ENDED


ENDED = frozenset({RunState.SUCCEEDED, RunState.PARTLY, RunState.FAILED, RunState.CANCELLED, RunState.LOST})
ACTIVE = frozenset({RunState.CLAIMED, RunState.RUNNING})
# A run's `failure`: of the second, its output waits in the database for the storage of evidence.
CANCEL_FAILED, STORAGE_AWAY = "CancelFailed", "StorageAway"


class Run(models.Model):
    """kind: "probes" or "benchmark". names: probe ids, or the one benchmark id.

    fence: counts claims; a worker whose fence is not this number lost its claim and must stop.
    lease_expires_at: renewed while the worker lives; the reconciler ends expired ones as lost.
    nonce, script_sha256: what was sent, so that the answer can be tied to it.
    problem: a sentence for people when it did not succeed. failure: the kind of it, for counting; a
    class of agents.agent ("HostKeyChanged") or "". process_group: on the target.
    sent_at: when its message was last given to the broker.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(DiagnosisSession, on_delete=models.CASCADE, related_name="runs")
    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="runs")
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=12)
    names = models.JSONField(default=list)
    arguments = models.JSONField(default=dict)
    state = models.CharField(max_length=12, choices=RunState, default=RunState.QUEUED)
    fence = models.PositiveIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    epoch = models.PositiveIntegerField(default=0)
    nonce = models.CharField(max_length=40, blank=True)
    script_sha256 = models.CharField(max_length=64, blank=True)
    process_group = models.IntegerField(null=True, blank=True)
    problem = models.TextField(blank=True)
    failure = models.CharField(max_length=40, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("-created_at",)
        indexes = (models.Index(fields=("state", "failure"), name="runs_by_state_and_failure"),)
        constraints = (models.UniqueConstraint(fields=("session", "number"), name="one_run_number"),)

    @property
    def ended(self) -> bool:
        return RunState(self.state).ended

    @property
    def cancel_failed(self) -> bool:
        """Somebody cancelled it, and the check that its processes there have ended failed."""
        if not self.ended or self.cancel_requested_at is None:
            return False
        return self.failure == CANCEL_FAILED or self.state == RunState.LOST


class OutputChunk(models.Model):
    """A piece of a run's raw output, stored as it arrived, before anything parses it."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="chunks")
    number = models.PositiveIntegerField()
    body = models.BinaryField()

    class Meta:
        ordering = ("number",)
        constraints = (models.UniqueConstraint(fields=("run", "number"), name="one_chunk_number"),)
