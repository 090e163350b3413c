"""Lines that a person assigned to a probe or machine, where the parsers could not."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from webapp.records.models.evidence import Evidence


class Assignment(models.Model):
    """Lines first to last of an evidence are for this reader, or this view's ("guest", "host").

    Append-only: the newest row for the same lines counts, and one with neither reader nor view takes
    back what was said before.
    """

    evidence = models.ForeignKey(Evidence, on_delete=models.CASCADE, related_name="assignments")
    first = models.PositiveIntegerField()
    last = models.PositiveIntegerField()
    reader = models.CharField(max_length=100, blank=True)
    view = models.CharField(max_length=10, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("id",)
