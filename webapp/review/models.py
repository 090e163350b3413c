"""Comments on anything of a session, and decision records."""

from dataclasses import fields

from django.conf import settings
from django.db import models
from django.utils import timezone

from webapp.diagnosis.case import Actor
from webapp.records.models import DiagnosisSession
from webapp.review.decision_fields import TEXTS, DecisionContent


class Comment(models.Model):
    """Something a person said; never changed afterwards, only answered.

    anchor: what it is about: "finding:<id>", "hypothesis:<id>", "option:<id>", "run:<number>",
    "line:<evidence>:<number>", "decision:<number>", "gate:<path>-<gate>", "test:<id>" (a measurement that
    somebody is asked for) or "" for the session.
    stance: "agree", "dispute", "resolve", "reopen" or "". reply_to: the first comment of its thread.
    """

    session = models.ForeignKey(DiagnosisSession, on_delete=models.CASCADE, related_name="comments")
    anchor = models.CharField(max_length=120, blank=True)
    stance = models.CharField(max_length=10, blank=True)
    reply_to = models.ForeignKey("self", null=True, blank=True, on_delete=models.CASCADE, related_name="replies")
    text = models.TextField()
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("created_at", "id")


class CameRedacted(models.Model):
    """The session came as a redacted bundle. report: what was hidden there, as its redaction.json says."""

    session = models.OneToOneField(DiagnosisSession, on_delete=models.CASCADE, related_name="came_redacted")
    report = models.JSONField()


class Mention(models.Model):
    """A person was named with @ in a comment; seen_at when they opened their list since."""

    comment = models.ForeignKey(Comment, on_delete=models.CASCADE, related_name="mentions")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="mentions")
    seen_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        # Counted for every page that a person opens.
        indexes = (models.Index(fields=("user",), condition=models.Q(seen_at=None), name="mentions_unseen"),)
        constraints = (models.UniqueConstraint(fields=("comment", "user"), name="one_mention_each"),)


class DecisionState(models.TextChoices):
    """draft → proposed → approved | rejected → applied → verified | no effect | not verified |
    reverted; superseded. not verified: carried out and ended, and its effect was not shown."""

    DRAFT = "draft"
    PROPOSED = "proposed"
    APPROVED = "approved"
    REJECTED = "rejected"
    APPLIED = "applied"
    VERIFIED = "verified"
    NO_EFFECT = "no_effect", "no effect"
    NOT_VERIFIED = "not_verified", "not verified"
    REVERTED = "reverted"
    SUPERSEDED = "superseded"


class Decision(models.Model):
    """A decision record; the columns of its content are those of `DecisionContent`.

    proof: what was compared when it was closed, as `Proof.as_data` has it; {} while it is open, and of one that was
    closed before there was such a thing.

    Only a draft's content is edited. version: counts its saves, so that two people editing never lose a
    word. supersedes: the record that this one takes the place of, from when it is proposed.
    """

    session = models.ForeignKey(DiagnosisSession, on_delete=models.CASCADE, related_name="decisions")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=200)
    context = models.TextField()
    options = models.JSONField(default=list)
    chosen = models.JSONField(default=list)
    reason = models.TextField()
    pins = models.JSONField(default=list)
    epoch = models.PositiveIntegerField(default=0)
    drivers = models.TextField(blank=True)
    consequences = models.TextField(blank=True)
    passed_over = models.TextField(blank=True)
    version = models.PositiveIntegerField(default=0)
    supersedes = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="superseded_by"
    )
    state = models.CharField(max_length=12, choices=DecisionState, default=DecisionState.DRAFT)
    outcome = models.TextField(blank=True)
    proof = models.JSONField(default=dict, blank=True)
    proposed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("number",)
        indexes = (
            models.Index(fields=("-created_at",), name="decisions_newest"),
            models.Index(fields=("session",), condition=models.Q(state="proposed"), name="decisions_waiting"),
        )
        constraints = (models.UniqueConstraint(fields=("session", "number"), name="one_decision_number"),)

    @property
    def content(self) -> DecisionContent:
        return DecisionContent(**{column.name: getattr(self, column.name) for column in fields(DecisionContent)})

    @property
    def content_sha256(self) -> str:
        """Of what an approval is of; it changes when the evidence is pinned anew."""
        return self.content.sha256

    @property
    def texts(self) -> list[str]:
        """What people wrote into it, without the title."""
        return [getattr(self, name) for name in TEXTS if name != "title"]

    @property
    def paragraphs(self) -> list[tuple[str, str]]:
        """What people wrote, each under its heading, as far as its place is not beside the options."""
        among = {name: text for name, text in TEXTS.items() if name != "title" and not text.beside_options}
        return [(text.heading, words) for name, text in among.items() if (words := getattr(self, name))]

    @property
    def without_comparison(self) -> bool:
        """Whether it ended with a claim about its effect that nothing kept with it shows."""
        claims = self.state in {DecisionState.VERIFIED, DecisionState.NO_EFFECT}
        return claims and not self.proof.get("compared")

    @property
    def ended(self) -> str:
        """Its state in words, for records that leave and for lists."""
        mark = ", without a comparison" if self.without_comparison else ""
        return f"{self.get_state_display().lower()}{mark}"

    @property
    def affects_host(self) -> bool:
        """Whether someone other than the operator has to act for a chosen option."""
        return any(option["id"] in self.chosen and option["actor"] != Actor.OPERATOR for option in self.options)


class RecordVersion(models.Model):
    """A record as it was proposed, or renewed: what people judged. content: the columns of
    `DecisionContent`; content_sha256: of it, by which a word belongs to its version."""

    decision = models.ForeignKey(Decision, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    content = models.JSONField()
    content_sha256 = models.CharField(max_length=64)
    proposed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("number",)
        constraints = (models.UniqueConstraint(fields=("decision", "number"), name="one_record_version"),)


class Word(models.TextChoices):
    """What a person says of a proposal. changes_wanted: it stays proposed, and is no approval.
    withdrawn: takes back what they said before."""

    APPROVED = "approved"
    REJECTED = "rejected"
    CHANGES_WANTED = "changes_wanted", "changes wanted"
    WITHDRAWN = "withdrawn"


class Approval(models.Model):
    """One person's word on a record as it stood. by: None when it came by a host admin's `link`,
    with the name `label` that they gave there; the link is None too where it is of another instance.
    content_sha256: what was judged; it counts only while that is the record's. disputes: how many were
    open on it, and known to who approved all the same. seen_at: when the proposer saw it in their list."""

    decision = models.ForeignKey(Decision, on_delete=models.CASCADE, related_name="approvals")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    label = models.CharField(max_length=120, blank=True)
    link = models.ForeignKey("records.Link", null=True, on_delete=models.SET_NULL, related_name="approvals")
    word = models.CharField(max_length=14, choices=Word)
    reason = models.TextField(blank=True)
    content_sha256 = models.CharField(max_length=64)
    disputes = models.PositiveIntegerField(default=0)
    at = models.DateTimeField(default=timezone.now, editable=False)
    seen_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("id",)

    @property
    def approves(self) -> bool:
        return self.word == Word.APPROVED

    @property
    def who(self) -> str:
        """For people, and for records that leave: nobody signed in for what came by a link."""
        return self.by.username if self.by else f"{self.label} (by a link, without an account)"
