"""Details of a search hit beside its title: state, person, time, and the text around the words."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from webapp.records.models import Entry, Run
from webapp.records.search import plain
from webapp.review.models import Comment, Decision
from webapp.review.threads import threaded

AROUND = 70  # characters on each side of a word


@dataclass(frozen=True, slots=True)
class Detail:
    """state: of a decision or run, or of a comment's thread; "" for none. excerpt: "" if it repeats the title; for a
    run the reason of its end. mark: a weakness of the decision's state."""

    state: str
    who: str
    at: datetime
    excerpt: str
    mark: str = ""


def details(kind: str, rows: Sequence[Entry], q: str) -> dict[int, Detail]:
    """By the keys of the rows; only for decisions, runs and comments."""
    if kind not in DETAILS:
        return {}
    return dict(DETAILS[kind](rows, q))


def _decision_details(rows: Sequence[Entry], q: str) -> Iterator[tuple[int, Detail]]:
    sessions = {row.session_id for row in rows}
    records = Decision.objects.filter(session__in=sessions, number__in={int(r.ref) for r in rows})
    by_ref = {
        (record.session_id, str(record.number)): record
        for record in records.select_related("proposed_by").prefetch_related("approvals")
    }
    for row in rows:
        record = by_ref.get((row.session_id, row.ref))
        if record is not None:
            reasons = [approval.reason for approval in record.approvals.all()]
            excerpt = _first_excerpt([*record.texts, record.outcome, *reasons, record.context], q)
            who = record.proposed_by.username
            mark = "without a comparison" if record.without_comparison else ""
            yield row.pk, Detail(record.state, who, record.created_at, excerpt, mark)


def _run_details(rows: Sequence[Entry], q: str) -> Iterator[tuple[int, Detail]]:
    sessions = {row.session_id for row in rows}
    runs = Run.objects.filter(session__in=sessions, number__in={int(r.ref) for r in rows})
    by_ref = {(run.session_id, str(run.number)): run for run in runs.select_related("created_by")}
    for row in rows:
        run = by_ref.get((row.session_id, row.ref))
        if run is not None:
            who, at = run.created_by.username, run.ended_at or run.created_at
            yield row.pk, Detail(run.state, who, at, run.problem[: AROUND * 2])


def _comment_details(rows: Sequence[Entry], q: str) -> Iterator[tuple[int, Detail]]:
    comments = Comment.objects.filter(pk__in=[int(row.ref) for row in rows])
    by_key = {c.pk: c for c in comments.select_related("author").prefetch_related("replies")}
    for row in rows:
        comment = by_key.get(int(row.ref))
        if comment is not None:
            text = "" if len(comment.text) <= AROUND * 2 else _first_excerpt([comment.text], q)
            state = _thread_state(comment)
            yield row.pk, Detail(state, comment.author.username, comment.created_at, text)


def _thread_state(comment: Comment) -> str:
    """ "open" or "done" for the first comment of a dispute, else ""."""
    if comment.reply_to_id is not None or comment.stance != "dispute":
        return ""
    (thread,) = threaded([comment, *comment.replies.all()])
    return "open" if thread.disputes else "done"


def _first_excerpt(texts: Iterable[str], q: str) -> str:
    """The text around the first word of the query that one of the texts contains."""
    for term in plain(q).split():
        for text in texts:
            at = text.casefold().find(term)
            if at >= 0:
                return _text_around(text, at)
    return ""


def _text_around(text: str, at: int) -> str:
    first, last = max(0, at - AROUND), min(len(text), at + AROUND)
    before, after = "… " if first else "", " …" if last < len(text) else ""
    return before + " ".join(text[first:last].split()) + after


DETAILS = {"decision": _decision_details, "run": _run_details, "comment": _comment_details}
