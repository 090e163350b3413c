"""One guided diagnosis, and who may see it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.db.models import Exists, F, OuterRef, Q, Value
from django.utils import timezone

from webapp.accounts.models import GIVEN, Role

if TYPE_CHECKING:
    from webapp.accounts.models import User


class SessionQuerySet(models.QuerySet["DiagnosisSession"]):
    def visible_to(self, user: User | AnonymousUser) -> SessionQuerySet:
        """Administrators see every session, others those they are a member of; each with
        `my_role` and `asked_by`."""
        if not user.is_authenticated:
            return self.none()
        sessions = self.annotate(asker_id=Value(user.pk))
        if user.is_staff:
            return sessions.annotate(role_of_asker=Value(str(Role.ADMINISTRATOR)))
        return sessions.filter(members=user).annotate(role_of_asker=F("sessionmember__role"))


class DiagnosisSession(models.Model):
    """workload: the `user.*` facts as the workload file has them ([model], [parallelism], …).

    first_hypothesis: the operator's pick (a hypothesis id), with their own words in `own_words`.
    epoch: how many changes were applied to the machine so far; new evidence is taken in this epoch.
    version: counts saves of the forms, so that two people editing never lose a word.
    quorum: how many other people have to approve a decision that somebody else carries out.
    sample: the founding case's stage, when this session is a walk through it.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    title = models.CharField(max_length=200)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    members: models.ManyToManyField[User, SessionMember] = models.ManyToManyField(
        settings.AUTH_USER_MODEL, through="SessionMember", related_name="sessions"
    )
    symptom = models.TextField(blank=True)
    workload = models.JSONField(default=dict)
    first_hypothesis = models.CharField(max_length=80, blank=True)
    own_words = models.TextField(blank=True)
    vmid = models.PositiveIntegerField(null=True, blank=True)
    epoch = models.PositiveIntegerField(default=0)
    version = models.PositiveIntegerField(default=0)
    quorum = models.PositiveSmallIntegerField(default=1)
    sample = models.CharField(max_length=40, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects = SessionQuerySet.as_manager()

    class Meta:
        ordering = ("-updated_at",)
        indexes = (models.Index(fields=("-updated_at", "-id"), name="sessions_newest"),)

    def __str__(self) -> str:
        return self.title

    @property
    def my_role(self) -> str:
        """The role of the person who called `visible_to`; a viewer's role for everybody else."""
        return str(getattr(self, "role_of_asker", Role.VIEWER))

    @property
    def asked_by(self) -> int | None:
        """Key of the person who called `visible_to`."""
        return getattr(self, "asker_id", None)

    if TYPE_CHECKING:

        def get_absolute_url(self) -> str:
            """Of its page, as the settings' ABSOLUTE_URL_OVERRIDES give it."""


class SessionMember(models.Model):
    session = models.ForeignKey(DiagnosisSession, on_delete=models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    role = models.CharField(max_length=10, choices=GIVEN, default=Role.OPERATOR)
    added_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("session", "user"), name="one_membership"),)


def may_operate(user: User, session: DiagnosisSession | None) -> bool:
    """Whether they may act in it now; None: in all of them, as administrators may."""
    if not user.is_active or user.is_staff:
        return user.is_active
    return SessionMember.objects.filter(user=user, session=session, role=Role.OPERATOR).exists()


def stands(maker: str = "made_by") -> Q:
    """A condition on rows that a person made: the person may still operate in the session."""
    role = {"user": OuterRef(maker), "session": OuterRef("session"), "role": Role.OPERATOR}
    administrator = Q(**{f"{maker}__is_staff": True})
    mine = administrator | Q(Exists(SessionMember.objects.filter(**role)))
    return Q(**{f"{maker}__is_active": True}) & mine


def seen_by(user: User, session: str = "session") -> Q:
    """A condition on rows of a session: the person may see it. It is one index look-up a row, so that the newest
    are found in order in however many sessions the person is a member of."""
    if user.is_staff:
        return Q()
    return Q(Exists(SessionMember.objects.filter(user=user, session=OuterRef(session))))
