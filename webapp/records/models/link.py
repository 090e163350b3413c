"""A door into one session for one person without an account, and what came back through it."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.functional import cached_property

from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession, Event, Evidence
from webapp.records.models.session import may_operate

# The recipient of a link that names nobody.
NOBODY = "the host’s admin"
LONGEST_DECLINED = 300
# In a browser's session: the ids of the links that it opened with their token.
OPENED = "links"


class Step(models.TextChoices):
    """asked → opened → downloaded → received → read → accepted, each with its time in `<step>_at`."""

    ASKED = "asked"
    OPENED = "opened"
    DOWNLOADED = "downloaded"
    RECEIVED = "received"
    READ = "read"
    ACCEPTED = "accepted"


class Link(models.Model):
    """Only the token's hash is stored: the address is shown once, to the operator who made it.

    person: what the operator calls who gets it; events name it in place of an account. purpose: what
    for, as its page says it. phases: those ("P2") whose scripts its page offers. answers: what the
    person said of the host. read: some of what came was understood; accepted: an operator said that
    it is what was needed, which anything that comes later takes back. may_approve: its page shows what is
    proposed for the host and takes a word on it. opened_by: accounts that were signed in where it was
    opened; for what one of them proposed it is no second person. declined_at: when the person said that it
    cannot be done, with their reason or ""; what they send later says otherwise.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(DiagnosisSession, on_delete=models.CASCADE, related_name="links")
    token_sha256 = models.CharField(max_length=64, unique=True)
    person = models.CharField(max_length=80)
    purpose = models.TextField()
    phases = models.JSONField(default=list)
    answers = models.JSONField(default=dict)
    may_approve = models.BooleanField(default=False)
    opened_by = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="+")
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    asked_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    opened_at = models.DateTimeField(null=True)
    downloaded_at = models.DateTimeField(null=True)
    received_at = models.DateTimeField(null=True)
    read_at = models.DateTimeField(null=True)
    accepted_at = models.DateTimeField(null=True)
    accepted_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    declined_at = models.DateTimeField(null=True)
    declined_why = models.CharField(max_length=LONGEST_DECLINED, blank=True)

    class Meta:
        ordering = ("-asked_at",)

    @classmethod
    def make(
        cls,
        session: DiagnosisSession,
        *,
        made_by: User,
        person: str,
        purpose: str,
        hours: int,
        phases: list[str],
        may_approve: bool = False,
    ) -> tuple[Link, str]:
        """The stored link and its token, which is never stored."""
        token = secrets.token_urlsafe(24)
        link = cls.objects.create(
            session=session,
            token_sha256=_token_hash(token),
            made_by=made_by,
            person=person,
            purpose=purpose,
            phases=phases,
            may_approve=may_approve,
            expires_at=timezone.now() + timedelta(hours=hours),
        )
        about = {"hours": hours, "phases": phases, "may_approve": may_approve}
        Event.record(session, "link_made", made_by, person=person, **about)
        return link, token

    @classmethod
    def find(cls, token: str) -> Link | None:
        """The link of this token, if it is open."""
        link = cls.objects.filter(token_sha256=_token_hash(token)).first()
        return link if link and link.is_open else None

    @property
    def is_open(self) -> bool:
        return self.revoked_at is None and self.expires_at > timezone.now() and self.stands

    @cached_property
    def stands(self) -> bool:
        """Whether the person who made it may still ask in this session; lists read it with the links."""
        standing = vars(self).get("standing")
        return may_operate(self.made_by, self.session) if standing is None else bool(standing)

    @property
    def steps(self) -> list[tuple[Step, datetime | None]]:
        return [(step, getattr(self, f"{step}_at")) for step in Step]

    def reach(self, step: Step) -> None:
        """Notes the first time of a step; the session's log hears of it once."""
        column = f"{step}_at"
        now = timezone.now()
        if Link.objects.filter(pk=self.pk, **{column: None}).update(**{column: now}):
            setattr(self, column, now)
            if step is not Step.READ:
                Event.record(self.session, f"link_{step}", None, person=self.person)

    def revoke(self, by: User) -> None:
        if Link.objects.filter(pk=self.pk, revoked_at=None).update(revoked_at=timezone.now()):
            Event.record(self.session, "link_revoked", by, person=self.person)

    def accept(self, by: User) -> None:
        """Says that what came back is what was needed; before anything came there is nothing to accept."""
        open_rows = Link.objects.filter(pk=self.pk, accepted_at=None, received_at__isnull=False)
        if open_rows.update(accepted_at=timezone.now(), accepted_by=by):
            Event.record(self.session, "link_accepted", by, person=self.person)

    def decline(self, why: str) -> None:
        """The person's no, once: said again it has the newer reason."""
        Link.objects.filter(pk=self.pk).update(declined_at=timezone.now(), declined_why=why)
        Event.record(self.session, "link_declined", None, person=self.person, why=why)


class Answer(models.Model):
    """One output given back through a link. marks: what is odd about where it comes from, in words.

    ran: as whom it was printed and what was hidden in it, in words. notes: what the reader says of it.
    understood: how many outputs were recognised in it. phase: whose scripts printed it ("P2"), for people to
    read; "" for what the collector was to find out. taken_back_at: when who sent it took it back.
    """

    link = models.ForeignKey(Link, on_delete=models.CASCADE, related_name="given")
    evidence = models.ForeignKey(Evidence, on_delete=models.CASCADE, related_name="+")
    ran = models.JSONField(default=list)
    marks = models.JSONField(default=list)
    notes = models.JSONField(default=list)
    understood = models.PositiveIntegerField()
    phase = models.CharField(max_length=8, blank=True)
    at = models.DateTimeField(auto_now=True)
    taken_back_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("id",)
        constraints = (models.UniqueConstraint(fields=("link", "evidence"), name="one_answer_per_evidence"),)


def _token_hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
