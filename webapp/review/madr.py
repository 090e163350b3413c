"""A decision record as MADR Markdown (https://adr.github.io/madr/)."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from webapp.diagnosis.naming import actor_in_words, by_title, restart_in_words
from webapp.presenting.sentences import sentence
from webapp.review.decision_fields import TEXTS
from webapp.review.disputes import bearing_on
from webapp.review.models import Approval, Decision
from webapp.review.threads import Thread, threads_of
from webapp.review.versions import version_judged
from webapp.review.workflow import approvals_of

Text = Callable[[str], str]
# What ends a line or starts markup in Markdown, when it comes from outside.
_SPECIAL = "\\`*_[]<>#|"


def as_markdown(decision: Decision, hide: Callable[[str], str] | None = None) -> str:
    """hide: redacts a text; then people are "person A", "person B" and so on in it."""
    people = _People(hide) if hide else None
    return "\n".join(_lines(decision, people)) + "\n"


class _People:
    """Letters in place of names, in the order in which they are met, also where a text names somebody."""

    def __init__(self, hide: Callable[[str], str]) -> None:
        self.hide = hide
        self.letters: dict[str, str] = {}

    def called(self, name: str) -> str:
        return self.letters.setdefault(name, f"person {_letters(len(self.letters))}")

    def text(self, text: str) -> str:
        for name in sorted(self.letters, key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", self.letters[name], text)
        return self.hide(text)


def _letters(place: int) -> str:
    """A … Z, AA …"""
    before = _letters(place // 26 - 1) if place >= 26 else ""
    return before + chr(ord("A") + place % 26)


def _lines(decision: Decision, people: _People | None) -> Iterator[str]:
    def plain(text: str) -> str:
        return literal(people.text(text) if people else text)

    def who(name: str) -> str:
        return literal(people.called(name) if people else name)

    approvals = approvals_of(decision)
    disputes = bearing_on(decision, threads_of(decision.session))
    _meet(who, decision, approvals, disputes)
    yield f"# {decision.number}. {plain(decision.title)}"
    yield ""
    yield f"- Status: {decision.ended}"
    yield f"- Date: {decision.created_at:%Y-%m-%d}"
    yield f"- Proposed by: {who(decision.proposed_by.username)}"
    yield from _words(decision, approvals, who, plain)
    if decision.supersedes:
        yield f"- Supersedes: {decision.supersedes.number}"
    yield f"- Session: {plain(decision.session.title)}"
    yield from _disputes(disputes, who, plain)
    yield from ("", "## Context", "", plain(decision.context))
    yield from _sections(decision, plain)
    yield from ("", "## Evidence", "")
    for pin in decision.pins:
        yield f"- `{pin['name']}` sha256 `{pin['sha256']}`"
    if decision.outcome:
        yield from ("", "## Outcome", "", plain(decision.outcome))
    yield from _proof(decision, plain)


def _sections(decision: Decision, plain: Text) -> Iterator[str]:
    """The texts under their headings, each before the list that stands under the same heading."""
    lists = {"Decision": _chosen, "Consequences": _consequences, "Options considered": _considered}
    for column, text in TEXTS.items():
        rows = list(lists[text.section](decision, plain)) if text.section in lists else []
        words = getattr(decision, column)
        if text.section and (words or rows):
            yield from ("", f"## {text.section}", "")
            yield from (f"{text.lead}{plain(words)}", *[""][: len(rows)]) if words else ()
            yield from rows


def _chosen(decision: Decision, plain: Text) -> Iterator[str]:
    for option in _options_chosen(decision):
        yield f"- **{plain(option['title'])}** ({option['phase']}, by {actor_in_words(option['actor'])})"


def _consequences(decision: Decision, plain: Text) -> Iterator[str]:
    for option in _options_chosen(decision):
        yield f"- {plain(option['title'])}: restarts {restart_in_words(option['downtime'])}"
        yield f"  - isolation given up: {plain(option['isolation_cost'])}"
        yield f"  - predicted effect on throughput: {_effect(option)}"
        yield f"  - rollback: {plain(option['rollback'])}"
        yield f"  - verified by: {plain(by_title(option['verified_by']))}"


def _options_chosen(decision: Decision) -> list[dict[str, Any]]:
    return [option for option in decision.options if option["id"] in decision.chosen]


def _proof(decision: Decision, plain: Text) -> Iterator[str]:
    """What the outcome rests on, and what it lacks."""
    if decision.without_comparison:
        yield from ("", "It was closed without a comparison of before and after.")
    proof = decision.proof
    if compared := proof.get("compared"):
        yield from ("", "## Compared before and after", "")
        for row in compared:
            gate = row["gate"].replace("_", " ")
            yield f"- {plain(row['what'])}: {plain(row['found'])} ({gate}: {plain(row['why'])})"
    if checks := proof.get("checks"):
        yield from ("", "## Checked since", "")
        yield from (f"- {plain(c['what'])}: {c['state']}: {plain(c['found'])}" for c in checks)
    for title, key in (("Not shown", "lacks"), ("Harm", "harm")):
        if texts := proof.get(key):
            yield from ("", f"## {title}", "", *(f"- {plain(text)}" for text in texts))


def _considered(decision: Decision, plain: Text) -> Iterator[str]:
    for option in decision.options:
        why = " ".join(sentence(claim["text"]) for claim in option["why"])
        status = option["status"].replace("_", " ")
        yield f"- {option['phase']} **{plain(option['title'])}**: {status}. {plain(why)}"


def _meet(who: Text, decision: Decision, approvals: list[Approval], disputes: list[Thread]) -> None:
    """Everybody has a letter before any text is written that may name them."""
    who(decision.proposed_by.username)
    for approval in approvals:
        _said_by(approval, who)
    for thread in disputes:
        for comment in (thread.first, *thread.replies):
            who(comment.author.username)


def _words(decision: Decision, approvals: list[Approval], who: Text, plain: Text) -> Iterator[str]:
    versions = list(decision.versions.all())
    for approval in approvals:
        version = version_judged(approval, versions)
        of = f", of version {version.number}" if version and len(versions) > 1 else ""
        word = approval.get_word_display().capitalize()
        despite = f", knowing of {approval.disputes} open dispute(s)" if approval.disputes else ""
        reason = f": {plain(approval.reason)}" if approval.reason else ""
        yield f"- {word} by: {_said_by(approval, who)} {_at(approval.at)}{of}{despite}{reason}"


def _said_by(approval: Approval, who: Text) -> str:
    if approval.by:
        return who(approval.by.username)
    return f"{who(approval.label)} {literal('(by a link, without an account)')}"


def _disputes(disputes: list[Thread], who: Text, plain: Text) -> Iterator[str]:
    if not disputes:
        return
    yield from ("", "## Open disputes", "")
    for thread in disputes:
        first = thread.first
        about = plain(first.anchor.replace(":", " ").replace("_", " "))
        at = _at(first.created_at)
        yield f"- {who(first.author.username)} {at}, on {about}: {plain(first.text)}"
        for reply in thread.replies:
            yield f"  - {who(reply.author.username)} {_at(reply.created_at)}: {plain(reply.text)}"


def _at(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _effect(option: dict[str, Any]) -> str:
    effect = option["predicted_effect"]
    return f"{effect[0]:.2f} to {effect[1]:.2f} times" if effect else "not predicted"


def literal(text: str) -> str:
    """Text from people and machines as one line of literal Markdown."""
    return "".join(f"\\{c}" if c in _SPECIAL else c for c in " ".join(text.split()))
