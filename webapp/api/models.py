"""What was answered to a request that may be sent again."""

from django.db import models

from webapp.accounts.models import ApiToken


class Remembered(models.Model):
    """The answer to one Idempotency-Key of one token. fingerprint: of the request. status None: it is
    being answered now."""

    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    headers = models.JSONField(default=dict)
    body = models.BinaryField(default=b"")
    made_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("token", "key"), name="one_answer_per_key"),)
