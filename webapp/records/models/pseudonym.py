"""Which secret became which token in texts that were redacted before they were stored."""

from django.db import models

from webapp.records.models.session import DiagnosisSession


class Pseudonym(models.Model):
    """digest: a keyed hash of the secret, so that the same one gets the same token in the next text
    although it is stored nowhere."""

    session = models.ForeignKey(DiagnosisSession, on_delete=models.CASCADE, related_name="pseudonyms")
    digest = models.CharField(max_length=64)
    token = models.CharField(max_length=60)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("session", "digest"), name="one_token_per_secret"),
            models.UniqueConstraint(fields=("session", "token"), name="one_secret_per_token"),
        )
