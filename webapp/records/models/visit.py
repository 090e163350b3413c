"""When a person last looked at a session, and up to where."""

from django.conf import settings
from django.db import models

from webapp.records.models.session import DiagnosisSession


class Visit(models.Model):
    """at: last seen here. seen: number of the last event by then; new_after: the last event of the look
    before this one, so that what came since is new until the person has been away again."""

    session = models.ForeignKey(DiagnosisSession, on_delete=models.CASCADE, related_name="visits")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="visits")
    at = models.DateTimeField()
    seen = models.PositiveIntegerField(default=0)
    new_after = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("session", "user"), name="one_visit"),)
