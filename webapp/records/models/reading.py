"""What today's parsers read from evidence."""

from __future__ import annotations

from django.db import models

from webapp.records.models.evidence import Evidence


class ReadingQuerySet(models.QuerySet["StoredReading"]):
    def of_the_case(self) -> ReadingQuerySet:
        """What counts: not what a person set aside."""
        return self.filter(evidence__set_aside_at=None)


class StoredReading(models.Model):
    """One reading of one evidence by the parsers of `parsed_by`; replaced by `reread`."""

    evidence = models.ForeignKey(Evidence, on_delete=models.CASCADE, related_name="readings")
    fact_id = models.CharField(max_length=80)
    kind = models.CharField(max_length=12)
    value = models.JSONField(null=True)
    detail = models.TextField(blank=True)
    lines = models.JSONField(default=list)
    missing = models.JSONField(default=list)
    reader = models.CharField(max_length=100)
    parsed_by = models.CharField(max_length=40)

    objects = ReadingQuerySet.as_manager()

    class Meta:
        ordering = ("id",)
        indexes = (
            # Few of very many; they are counted for the metrics.
            models.Index(fields=("fact_id",), condition=models.Q(kind="unreadable"), name="unreadable_readings"),
        )
