"""What waits for one person: their word on proposals, what was said of theirs, what they are asked for."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, F, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from webapp.accounts.models import Role, User
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import SessionMember, seen_by
from webapp.review.models import Approval, Comment, Decision, DecisionState, Mention, RecordVersion, Word
from webapp.review.threads import Thread, threaded

# Of more than these the newest are shown.
MOST = 100
_STANDS = (Word.APPROVED, Word.REJECTED, Word.CHANGES_WANTED)


def to_judge(user: User) -> QuerySet[Decision]:
    """Proposals of others that the person may judge and has not judged as they stand, newest first.
    my_word: what they said last of an earlier version, None for nothing."""
    visible = Decision.objects.filter(Q() if user.is_staff else _may_judge(user.pk))
    return _unjudged(visible, user.pk, user.pk).order_by("-created_at")


def _unjudged(decisions: QuerySet[Decision], user: Any, inside: Any) -> QuerySet[Decision]:
    """user: the person's key, or a reference to it; inside: the same as a subquery of a record has it."""
    mine = Approval.objects.filter(decision=OuterRef("pk"), by=inside).order_by("-id")
    last = RecordVersion.objects.filter(decision=OuterRef("pk")).order_by("-number")
    rows = decisions.filter(state=DecisionState.PROPOSED).exclude(proposed_by=user)
    rows = rows.annotate(
        my_word=Subquery(mine.values("word")[:1]),
        my_content=Subquery(mine.values("content_sha256")[:1]),
        my_at=Subquery(mine.values("at")[:1]),
        content_now=Subquery(last.values("content_sha256")[:1]),
        proposed_at=Subquery(last.values("at")[:1]),
    )
    # A yes holds for the same text; a no, or a wish, was answered when the proposer asked again.
    stands = Q(my_word=Word.APPROVED, my_content=F("content_now"))
    stands |= Q(my_word__in=_STANDS[1:], my_content=F("content_now"), my_at__gte=F("proposed_at"))
    return rows.exclude(Q(my_word__isnull=False) & stands)


def _may_judge(user: Any) -> Q:
    roles = (Role.REVIEWER, Role.OPERATOR)
    mine = SessionMember.objects.filter(user=user, session=OuterRef("session"), role__in=roles)
    return Q(Exists(mine))


class _HowMany(Subquery):
    """Of the rows themselves: asked for again by their keys, 101 of 20,000 took 370 ms on PostgreSQL."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) AS counted)"
    output_field = IntegerField()


def counts() -> dict[str, Subquery]:
    """For each person of a query of people, how many proposals they have to judge, MOST and one at most, and
    how many words on their own they have not seen: for the bar above every page."""
    person, inside = OuterRef("pk"), OuterRef(OuterRef("pk"))
    administrator = Exists(User.objects.filter(pk=inside, is_staff=True))
    judged = Decision.objects.filter(_may_judge(inside) | Q(administrator))
    # An administrator may judge all that wait: to count 4,000 took 15 ms of every page.
    first = _unjudged(judged, person, inside).order_by().values("pk")[: MOST + 1]
    words = Approval.objects.filter(decision__proposed_by=person, seen_at=None).exclude(by=person)
    return {"to_judge": _HowMany(first), "unseen_words": _HowMany(words.order_by().values("pk"))}


def said_of_mine(user: User) -> QuerySet[Approval]:
    """The words of others on the person's proposals, newest first."""
    words = Approval.objects.filter(seen_by(user, "decision__session"), decision__proposed_by=user)
    return words.exclude(by=user).order_by("-id")


def all_seen(user: User) -> None:
    """The words on their proposals and where they were named, when they open their list."""
    seen_by_proposer(said_of_mine(user).order_by())
    Mention.objects.filter(user=user, seen_at=None).update(seen_at=timezone.now())


def named(user: User) -> QuerySet[Mention]:
    """Where somebody named the person, in sessions that they may see."""
    mentions = Mention.objects.filter(seen_by(user, "comment__session"), user=user)
    return mentions.select_related("comment__author", "comment__session")


def seen_by_proposer(words: QuerySet[Approval]) -> None:
    words.filter(seen_at=None).update(seen_at=timezone.now())


@dataclass(frozen=True, slots=True)
class Asked:
    """A measurement that the person was asked for, by the first comment of its thread."""

    comment: Comment
    test: str


def asked_of(user: User) -> list[Asked]:
    """Until the measurement came, or the diagnosis wants it no more, or the thread is resolved."""
    named = Mention.objects.filter(
        seen_by(user, "comment__session"), user=user, comment__anchor__startswith="test:", comment__reply_to=None
    )
    newest = named.select_related("comment__author", "comment__session").order_by("-pk")[:MOST]
    comments = [mention.comment for mention in newest]
    open_ones = [c for c in comments if not _thread(c).resolved]
    return list(_still_wanted(open_ones))


def _thread(first: Comment) -> Thread:
    return threaded([first, *first.replies.all()])[0]


def _still_wanted(comments: Iterable[Comment]) -> Iterable[Asked]:
    tests_open: dict[object, set[str]] = {}
    for comment in comments:
        session = comment.session
        if session.pk not in tests_open:
            tests_open[session.pk] = {test.id for test in session_diagnosis(session).next_tests}
        test = comment.anchor.partition(":")[2]
        if test in tests_open[session.pk]:
            yield Asked(comment, test)
