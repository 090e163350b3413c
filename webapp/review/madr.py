"""A decision record as MADR Markdown (https://adr.github.io/madr/)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from webapp.review.models import Decision
from webapp.review.workflow import counting

# What ends a line or starts markup in Markdown, when it comes from outside.
_SPECIAL = "\\`*_[]<>#|"


def as_markdown(decision: Decision, hide: Callable[[str], str] | None = None) -> str:
    """hide: redacts a text; then the record does not say who proposed or approved it either."""
    return "\n".join(_lines(decision, hide)) + "\n"


def _lines(decision: Decision, hide: Callable[[str], str] | None) -> Iterator[str]:
    def plain(text: str) -> str:
        return literal(hide(text) if hide else text)

    chosen = [option for option in decision.options if option["id"] in decision.chosen]
    yield f"# {decision.number}. {plain(decision.title)}"
    yield ""
    yield f"- Status: {decision.get_state_display().lower()}"
    yield f"- Date: {decision.created_at:%Y-%m-%d}"
    if not hide:
        yield f"- Proposed by: {plain(decision.proposed_by.username)}"
        for approval in counting(decision):
            word = "Approved" if approval.approves else "Rejected"
            yield f"- {word} by: {plain(approval.who)} {approval.at:%Y-%m-%d}"
    if decision.supersedes:
        yield f"- Supersedes: {decision.supersedes.number}"
    yield f"- Session: {plain(decision.session.title)}"
    yield from ("", "## Context", "", plain(decision.context))
    if decision.drivers:
        yield from ("", "## Decision drivers", "", plain(decision.drivers))
    yield from ("", "## Decision", "", plain(decision.reason), "")
    for option in chosen:
        yield f"- **{plain(option['title'])}** ({option['phase']}, by the {option['actor']})"
    yield from ("", "## Consequences", "")
    if decision.consequences:
        yield from (plain(decision.consequences), "")
    for option in chosen:
        yield f"- {plain(option['title'])}: restarts {option['downtime']}"
        yield f"  - isolation given up: {plain(option['isolation_cost'])}"
        yield f"  - predicted effect on throughput: {_effect(option)}"
        yield f"  - rollback: {plain(option['rollback'])}"
        yield f"  - verified by: {plain(option['verified_by'])}"
    yield from ("", "## Options considered", "")
    for option in decision.options:
        why = " ".join(claim["text"] for claim in option["why"])
        status = option["status"].replace("_", " ")
        yield f"- {option['phase']} **{plain(option['title'])}**: {status}. {plain(why)}"
    yield from ("", "## Evidence", "")
    for pin in decision.pins:
        yield f"- `{pin['name']}` sha256 `{pin['sha256']}`"
    if decision.outcome:
        yield from ("", "## Outcome", "", plain(decision.outcome))


def _effect(option: dict[str, Any]) -> str:
    effect = option["predicted_effect"]
    return f"{effect[0]:.2f} to {effect[1]:.2f} times" if effect else "not predicted"


def literal(text: str) -> str:
    """Text from people and machines as one line of literal Markdown."""
    return "".join(f"\\{c}" if c in _SPECIAL else c for c in " ".join(text.split()))
