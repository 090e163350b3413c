"""An SSH private key that Peerpath keeps for a person, or for everyone here. Its text is sealed."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Q

if TYPE_CHECKING:
    from webapp.accounts.models import User


class StoredKeyQuerySet(models.QuerySet["StoredKey"]):
    def usable_by(self, user: User) -> StoredKeyQuerySet:
        """Those a person may connect with: their own, and what an administrator shared."""
        return self.filter(Q(owner=user) | Q(shared=True), removed_at=None)


class StoredKey(models.Model):
    """owner: whose key it is; shared: everyone here may connect with it.

    sealed: key and passphrase as webapp.sealing writes them, under the key `key_id`; "" once removed, while the row
    stays as the record of its owner. certificate: OpenSSH's, public.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=80)
    shared = models.BooleanField(default=False)
    kind = models.CharField(max_length=60)
    fingerprint = models.CharField(max_length=100)
    certificate = models.TextField(blank=True)
    sealed = models.TextField(blank=True)
    key_id = models.CharField(max_length=20, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField(null=True, blank=True)
    removed_at = models.DateTimeField(null=True, blank=True)
    removed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )

    objects = StoredKeyQuerySet.as_manager()

    class Meta:
        ordering = ("name", "created_at")

    def __str__(self) -> str:
        return self.name
