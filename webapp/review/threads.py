"""What people say of a session, in threads: each about one thing, answered until it is resolved."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from textwrap import shorten

from django.db import transaction

from webapp.accounts.models import User
from webapp.diagnosis.catalogue import all_hypotheses, all_options
from webapp.diagnosis.naming import gate_in_words
from webapp.diagnosis.next_test import title_of
from webapp.records.models import DiagnosisSession, Event
from webapp.review.models import Comment, Mention

LONGEST = 10_000  # characters; outputs are pasted as evidence instead
LOGGED = 90  # characters of it in the log
OPENING, ANSWERING = frozenset({"agree", "dispute", ""}), frozenset({"resolve", "reopen", ""})
ANCHOR = re.compile(
    r"((finding|hypothesis|option|test):\w{1,80}|gate:[a-z]{1,10}-\w{1,40}|(run|decision):\d{1,9}"
    r"|line:[\w.@-]{1,110}:\d{1,9})?"
)


class CommentError(Exception):
    """Why it was not taken, in words for the page."""


@dataclass(slots=True)
class Thread:
    """first: what opened it; replies: the answers, oldest first."""

    first: Comment
    replies: list[Comment] = field(default_factory=list)

    @property
    def resolved(self) -> bool:
        words = [reply.stance for reply in self.replies if reply.stance in {"resolve", "reopen"}]
        return words[-1:] == ["resolve"]

    @property
    def disputes(self) -> bool:
        """Stands against what the page says until somebody resolves it."""
        return self.first.stance == "dispute" and not self.resolved


def threads_of(session: DiagnosisSession) -> list[Thread]:
    """Oldest first."""
    return threaded(session.comments.select_related("author"))


def threads_read(session: DiagnosisSession) -> list[Thread]:
    """The same, read once however many parts of a page ask."""
    known = vars(session)
    if "_threads" not in known:
        known["_threads"] = threads_of(session)
    threads: list[Thread] = known["_threads"]
    return threads


def threaded(comments: Iterable[Comment]) -> list[Thread]:
    """comments: oldest first."""
    threads: dict[int, Thread] = {}
    for comment in comments:
        if comment.reply_to_id is None:
            threads[comment.pk] = Thread(comment)
        elif comment.reply_to_id in threads:
            threads[comment.reply_to_id].replies.append(comment)
    return list(threads.values())


def comment_add(
    session: DiagnosisSession,
    *,
    author: User,
    text: str,
    stance: str = "",
    anchor: str = "",
    reply_to: Comment | None = None,
) -> Comment:
    """Raises CommentError. Whoever is named with @ and may see the session is told."""
    text = text.strip()
    _check(text, stance, anchor, reply_to)
    anchor = reply_to.anchor if reply_to else anchor
    with transaction.atomic():
        comment = Comment.objects.create(
            session=session, author=author, text=text, stance=stance, anchor=anchor, reply_to=reply_to
        )
        named = [user for user in mentioned(text, session) if user != author]
        Mention.objects.bulk_create([Mention(comment=comment, user=user) for user in named])
        about = {"anchor": anchor, "stance": stance, "comment": comment.pk, "words": short(text)}
        Event.record(session, "commented", author, **about)
    return comment


def short(text: str) -> str:
    """The beginning of it, for a line of the log."""
    return shorten(text, LOGGED, placeholder=" …")


def _check(text: str, stance: str, anchor: str, reply_to: Comment | None) -> None:
    if not text:
        raise CommentError("Write the reason too; it is what the others read.")
    if len(text) > LONGEST:
        raise CommentError(f"A comment has at most {LONGEST:,} characters; paste outputs as evidence instead.")
    if stance not in (ANSWERING if reply_to else OPENING) or not ANCHOR.fullmatch(anchor):
        raise CommentError("That cannot be said there; reload the page.")


def mentioned(text: str, session: DiagnosisSession) -> list[User]:
    """The people of the session, and administrators, whose name stands after an @ in the text."""
    candidates = User.objects.filter(is_active=True, sessions=session) | User.objects.filter(
        is_active=True, is_staff=True
    )
    return [user for user in candidates.distinct() if is_named(user.username, text)]


def is_named(name: str, text: str) -> bool:
    """Whether "@name" stands in the text, not as the beginning of a longer word."""
    return bool(re.search(rf"(?<!\w)@{re.escape(name)}(?!\w)", text, re.IGNORECASE))


def about(anchor: str) -> str:
    """What a thread is about, for people."""
    kind, _, name = anchor.partition(":")
    if kind == "hypothesis":
        return next((h.claim for h in all_hypotheses() if h.id == name), name)
    if kind == "option":
        return next((o.title for o in all_options() if o.id == name), name)
    if kind == "gate":
        path, _, gate = name.partition("-")
        return gate_in_words(gate, path)
    if kind == "test":
        return f"the test “{title_of(name)}”"
    if kind == "line":
        evidence, _, line = name.rpartition(":")
        return f"line {line} of {evidence}"
    return f"{kind} {name.replace('_', ' ')}" if anchor else "the session"
