"""People and one-time links."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.models import AbstractUser
from django.db import models, transaction
from django.utils import timezone


class Role(models.TextChoices):
    """What a person may do in a session; each may also do what those before it may.

    viewer: read. reviewer: say something, agree, dispute, approve. operator: everything that changes the
    session or reaches a machine. administrator: an operator of every session, who also adds people.
    """

    VIEWER = "viewer"
    REVIEWER = "reviewer"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"

    def covers(self, other: Role) -> bool:
        return _RANKS.index(self) >= _RANKS.index(other)


_RANKS = (Role.VIEWER, Role.REVIEWER, Role.OPERATOR, Role.ADMINISTRATOR)
ELSEWHERE = " (elsewhere)"  # ends the name of an account that stands for another instance's person
GIVEN = [(role.value, role.label) for role in _RANKS[:-1]]  # administrators are made by is_staff


class User(AbstractUser):
    """A person with an account. is_staff: administrator, sees every session and may add people.

    role: what they are made in a session when nobody says otherwise; only an operator opens new ones.
    """

    role = models.CharField(max_length=10, choices=GIVEN, default=Role.OPERATOR)

    @property
    def may_open_sessions(self) -> bool:
        return self.is_staff or Role(self.role).covers(Role.OPERATOR)


class OneTimeLink(models.Model):
    """An invitation to set a name and password, good once. Only the token's hash is stored."""

    token_sha256 = models.CharField(max_length=64, unique=True)
    makes_admin = models.BooleanField(default=False)
    role = models.CharField(max_length=10, choices=GIVEN, default=Role.OPERATOR)
    invited_by = models.ForeignKey(User, null=True, blank=True, on_delete=models.SET_NULL)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    @classmethod
    def make(
        cls,
        *,
        makes_admin: bool,
        role: str = Role.OPERATOR,
        invited_by: User | None = None,
        hours: int = 24,
    ) -> tuple[OneTimeLink, str]:
        """The stored link and its token, which is never stored."""
        token = secrets.token_urlsafe(24)
        link = cls.objects.create(
            token_sha256=_hash(token),
            makes_admin=makes_admin,
            role=role,
            invited_by=invited_by,
            expires_at=timezone.now() + timedelta(hours=hours),
        )
        return link, token

    @classmethod
    def find(cls, token: str) -> OneTimeLink | None:
        """The link of this token, if it is neither used nor expired."""
        return cls.objects.filter(
            token_sha256=_hash(token), used_at=None, expires_at__gt=timezone.now()
        ).first()

    def redeem(self, user: User) -> bool:
        """Saves the user and marks the link used; False when someone used it in between."""
        with transaction.atomic():
            won = OneTimeLink.objects.filter(pk=self.pk, used_at=None).update(
                used_at=timezone.now()
            )
            if not won:
                return False
            user.is_staff = user.is_superuser = self.makes_admin
            user.role = self.role
            user.save()
        return True


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
