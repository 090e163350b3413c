"""Every script that was handed to somebody, as it was handed, and who downloaded it."""

from django.conf import settings
from django.db import models

from webapp.records.models import DiagnosisSession
from webapp.records.models.link import Link


class HandedScript(models.Model):
    """name: its file name. sha256: of the file, as `sha256sum` prints it. link: whose page offers it.

    Of a collector: names, its probes, and the nonce by which its answer is known. Of a phase's script:
    phase ("P2"), act ("apply", "verify", "rollback") and vmid.
    """

    session = models.ForeignKey(DiagnosisSession, on_delete=models.CASCADE, related_name="scripts")
    link = models.ForeignKey(Link, null=True, on_delete=models.CASCADE, related_name="scripts")
    name = models.CharField(max_length=80)
    role = models.CharField(max_length=10)
    text = models.TextField()
    sha256 = models.CharField(max_length=64, db_index=True)
    names = models.JSONField(default=list)
    nonce = models.CharField(max_length=64, blank=True, db_index=True)
    phase = models.CharField(max_length=8, blank=True)
    act = models.CharField(max_length=20, blank=True)
    vmid = models.PositiveIntegerField(null=True)
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-id",)


class Download(models.Model):
    """by None: the person of the script's link."""

    script = models.ForeignKey(HandedScript, on_delete=models.CASCADE, related_name="downloads")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-id",)
