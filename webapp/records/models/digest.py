"""The search index: a digest of each session, and its texts by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from webapp.records.models.session import DiagnosisSession, seen_by

if TYPE_CHECKING:
    from webapp.accounts.models import User


class Digest(models.Model):
    """A session in columns, as its evidence stood at event number `upto`; "" or None: not known.

    gpu: the most frequent name; driver: version, driver_major: what stands before its first dot.
    verdicts: ids of the supported hypotheses, the largest share first; verdict: the first of them.
    gate: the first that failed.
    """

    session = models.OneToOneField(DiagnosisSession, on_delete=models.CASCADE, primary_key=True, related_name="digest")
    upto = models.PositiveIntegerField(default=0)
    gpu = models.CharField(max_length=100, blank=True)
    gpu_count = models.PositiveSmallIntegerField(null=True)
    board = models.CharField(max_length=100, blank=True)
    driver = models.CharField(max_length=40, blank=True)
    driver_major = models.CharField(max_length=10, blank=True)
    machine_type = models.CharField(max_length=20, blank=True)
    virt = models.CharField(max_length=20, blank=True)
    verdicts = models.JSONField(default=list)
    verdict = models.CharField(max_length=80, blank=True)
    gate = models.CharField(max_length=20, blank=True)
    headline = models.CharField(max_length=400, blank=True)

    class Meta:
        indexes = (models.Index(fields=("gpu", "verdict"), name="digests_alike"),)


class EntryQuerySet(models.QuerySet["Entry"]):
    def visible_to(self, user: User) -> EntryQuerySet:
        return self.filter(seen_by(user))


class Entry(models.Model):
    """One text that can be found. kind: "session", "finding", "run", "evidence", "decision" or "comment";
    ref: its id there, of a run its number.

    title: what is shown; words: what is searched, as `webapp.records.search.plain` writes it. The index
    over it is the database's own (migration 0010) and follows this table by itself; a migration that
    remakes the table on SQLite has to make the triggers anew.
    """

    session = models.ForeignKey(DiagnosisSession, on_delete=models.CASCADE, related_name="entries")
    kind = models.CharField(max_length=10)
    ref = models.CharField(max_length=120, blank=True)
    title = models.CharField(max_length=400)
    words = models.TextField()

    objects = EntryQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
