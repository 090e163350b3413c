"""A machine under diagnosis, and the host keys a person accepted for it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from webapp.records.models.session import DiagnosisSession
from webapp.records.models.stored_key import StoredKey


class TargetQuerySet(models.QuerySet["Target"]):
    def with_pins(self) -> TargetQuerySet:
        """Each target with the key it connects with, and whether it has an accepted host key."""
        same = {name: models.OuterRef(name) for name in ("session", "host", "port")}
        pins = models.Exists(PinnedHostKey.objects.filter(**same))
        return self.select_related("stored_key__owner").annotate(pins=pins)


class Target(models.Model):
    """agent: "ssh" or "local". role: "guest" or "host".

    identity_file: path of a private key on the machine that runs Peerpath; empty means the
    operator's own agent and ~/.ssh keys. stored_key: the key it is entered with instead, each machine
    on the way too. jump: the machines on the way in order, "user@host:port,…", empty for none.
    """

    session = models.ForeignKey(DiagnosisSession, on_delete=models.CASCADE, related_name="targets")
    role = models.CharField(max_length=10)
    agent = models.CharField(max_length=10)
    host = models.CharField(max_length=255, blank=True)
    port = models.PositiveIntegerField(default=22)
    user = models.CharField(max_length=64, blank=True)
    identity_file = models.CharField(max_length=400, blank=True)
    stored_key = models.ForeignKey(StoredKey, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    jump = models.CharField(max_length=300, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = TargetQuerySet.as_manager()

    class Meta:
        ordering = ("id",)

    @property
    def is_pinned(self) -> bool:
        """Whether a person has accepted its host key; needs `with_pins`."""
        return bool(vars(self)["pins"])

    def __str__(self) -> str:
        if self.agent == "local":
            return "this machine"
        return f"{self.user}@{self.host}:{self.port}"


class PinnedHostKey(models.Model):
    """A host key a named person accepted. One per host and port and session; a change blocks.

    key_line: "algorithm base64", as in known_hosts without the host.
    """

    session = models.ForeignKey(DiagnosisSession, on_delete=models.CASCADE, related_name="host_keys")
    host = models.CharField(max_length=255)
    port = models.PositiveIntegerField()
    key_line = models.TextField()
    fingerprint = models.CharField(max_length=100)
    accepted_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    accepted_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("session", "host", "port"), name="one_key_per_host"),)
