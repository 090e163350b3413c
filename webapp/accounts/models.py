"""People and one-time links."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.models import AbstractUser
from django.db import models, transaction
from django.utils import timezone
from django.utils.functional import cached_property


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
WAITS = ("to_judge", "unseen_words")  # what `backend.Backend` counts beside where they were named
ELSEWHERE = " (elsewhere)"  # ends the name of an account that stands for another instance's person
GIVEN = [(role.value, role.label) for role in _RANKS[:-1]]  # administrators are made by is_staff


class User(AbstractUser):
    """A person with an account. is_staff: administrator, sees every session and may add people.

    role: what they are made in a session when nobody says otherwise; only an operator opens new ones.
    """

    role = models.CharField(max_length=10, choices=GIVEN, default=Role.OPERATOR)

    @property
    def unseen_mentions(self) -> int:
        """Of who is signed in: `backend.Backend` counts them."""
        return int(vars(self).get("unseen", 0))

    @property
    def waits_for_me(self) -> int:
        """With the proposals to judge and the words on their own that they have not seen, counted alike."""
        return self.unseen_mentions + sum(int(vars(self).get(name, 0)) for name in WAITS)

    @cached_property
    def is_alone(self) -> bool:
        """Nobody else has an open account here."""
        company = vars(self).get("company")
        if company is None:
            company = User.objects.filter(is_active=True).exclude(pk=self.pk).exists()
        return not company

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
        cls, *, makes_admin: bool, role: str = Role.OPERATOR, invited_by: User | None = None, hours: int = 24
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
        """The link of this token, if it is neither used nor expired, and who invited still may."""
        invited = models.Q(invited_by__is_active=True, invited_by__is_staff=True)
        links = cls.objects.filter(
            models.Q(invited_by=None) | invited, token_sha256=_hash(token), used_at=None, expires_at__gt=timezone.now()
        )
        return links.first()

    def redeem(self, user: User) -> bool:
        """Saves the user and marks the link used; False when someone used it in between."""
        with transaction.atomic():
            won = OneTimeLink.objects.filter(pk=self.pk, used_at=None).update(used_at=timezone.now())
            if not won:
                return False
            user.is_staff = user.is_superuser = self.makes_admin
            user.role = self.role
            user.save()
        return True


class Scope(models.TextChoices):
    """The uses that a token allows, within its owner's rights: read, change, or reach machines."""

    READ = "read"
    WRITE = "write"
    RUN = "run"


class ApiToken(models.Model):
    """A program acts as its owner with it, until it expires, is revoked, or the owner's account closes.

    handle: the token's middle part, by which its owner knows it again; of the rest only a hash is stored.
    used_at: to the minute.
    """

    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=60)
    handle = models.CharField(max_length=12, unique=True)
    token_sha256 = models.CharField(max_length=64)
    scopes = models.JSONField(default=list)
    made_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    used_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-made_at",)

    @classmethod
    def make(cls, owner: User, *, name: str, scopes: list[str], days: int) -> tuple[ApiToken, str]:
        """The stored token and its text, which is never stored."""
        handle = secrets.token_hex(6)
        text = f"peerpath_{handle}_{secrets.token_urlsafe(32)}"
        made = cls.objects.create(
            owner=owner,
            name=name,
            handle=handle,
            token_sha256=_hash(text),
            scopes=scopes,
            expires_at=timezone.now() + timedelta(days=days),
        )
        return made, text

    @classmethod
    def find(cls, text: str) -> ApiToken | None:
        """The token of this text, if it is good now."""
        token = cls.objects.filter(handle=handle_of(text)).select_related("owner").first()
        if token is None or not secrets.compare_digest(token.token_sha256, _hash(text)):
            return None
        return token if token.is_good and token.owner.is_active else None

    @property
    def is_good(self) -> bool:
        return self.revoked_at is None and self.expires_at > timezone.now()

    def may(self, scope: str) -> bool:
        return self.is_good and scope in self.scopes

    def used(self) -> None:
        now = timezone.now()
        if self.used_at is None or now - self.used_at > timedelta(minutes=1):
            ApiToken.objects.filter(pk=self.pk).update(used_at=now)

    def revoke(self) -> None:
        ApiToken.objects.filter(pk=self.pk, revoked_at=None).update(revoked_at=timezone.now())


class Tally(models.Model):
    """Counts recent attempts, in the database, so that all processes share one count and a restart does not forget
    it.

    key: of what, with a hash of who and from where. ends_at: from when the next try is the first again.
    """

    key = models.CharField(max_length=80, primary_key=True)
    count = models.PositiveIntegerField(default=0)
    ends_at = models.DateTimeField(db_index=True)

    @classmethod
    def counts(cls, key: str, *, most: int, wait_s: int) -> bool:
        """Counts one try; False, and nothing is written, when there were `most` within `wait_s` seconds of
        the first. One conditional UPDATE decides, so that many at once are not more than one by one."""
        now = timezone.now()
        known = cls.objects.filter(key=key, ends_at__gt=now).first()
        if known is None:
            cls.objects.filter(key=key, ends_at__lte=now).delete()
            new = Tally(key=key, ends_at=now + timedelta(seconds=wait_s))
            Tally.objects.bulk_create([new], ignore_conflicts=True)
        elif known.count >= most:
            return False
        return bool(cls.objects.filter(key=key, count__lt=most).update(count=models.F("count") + 1))

    @classmethod
    def start_again(cls, key: str) -> None:
        cls.objects.filter(key=key).update(count=0)

    @classmethod
    def forget_ended(cls) -> None:
        cls.objects.filter(ends_at__lte=timezone.now()).delete()


def handle_of(text: str) -> str:
    """ "" for what cannot be a token."""
    parts = text.split("_", 2)
    is_token = len(parts) == 3 and parts[0] == "peerpath" and len(parts[1]) == 12
    return parts[1] if is_token and parts[1].isascii() and parts[1].isalnum() else ""


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
