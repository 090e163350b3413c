"""Addresses of rows. Settings give the first two to the models as `get_absolute_url`, so that no lower room names a
page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import reverse

if TYPE_CHECKING:
    from webapp.records.models import DiagnosisSession, Entry, Event


def session_address(session: DiagnosisSession) -> str:
    """The session's front door, which leads to the first step that is not done."""
    return reverse("session:session", args=[session.pk])


def event_address(event: Event) -> str:
    """The page of the event's subject; the session's where the subject has no page."""
    session_id, data = event.session_id, event.data
    if event.kind.startswith("commented"):
        return reverse("decision:discussion", args=[session_id])
    if event.kind.startswith("decision_"):
        return reverse("decision:decision", args=[session_id, data["number"]])
    if event.kind.startswith("link_"):
        return reverse("session:host", args=[session_id]) + "#links"
    if event.kind.startswith("run_") and "run" in data:
        return reverse("session:run", args=[session_id, data["run"]])
    return reverse("session:session", args=[session_id])


def entry_address(entry: Entry) -> str:
    """The page of a search hit's subject."""
    match entry.kind:
        case "finding":
            return reverse("session:diagnosis", args=[entry.session_id]) + f"#finding-{entry.ref}"
        case "evidence":
            return reverse("session:evidence", args=[entry.session_id, entry.ref])
        case "comment":
            return reverse("decision:discussion", args=[entry.session_id]) + f"#comment-{entry.ref}"
        case "run":
            return reverse("session:run_number", args=[entry.session_id, entry.ref])
        case "decision":
            return reverse("decision:decision", args=[entry.session_id, entry.ref])
    return reverse("session:session", args=[entry.session_id])


def anchor_address(session: DiagnosisSession, anchor: str) -> str:
    """The page of a thread's subject, at the spot where the thread is shown."""
    kind, _, name = anchor.partition(":")
    match kind:
        case "hypothesis" | "finding":
            return reverse("session:diagnosis", args=[session.pk]) + f"#{kind}-{name}"
        case "gate":
            return reverse("session:diagnosis", args=[session.pk]) + f"#{name}"
        case "test":
            return reverse("session:diagnosis", args=[session.pk]) + "#next"
        case "option":
            return reverse("decision:decide", args=[session.pk]) + f"#option-{name}"
        case "decision":
            return reverse("decision:decision", args=[session.pk, name])
        case "line":
            evidence, _, line = name.rpartition(":")
            return f"{reverse('session:evidence', args=[session.pk, evidence])}?line={line}#L{line}"
        case "run":
            return reverse("session:run_number", args=[session.pk, name])
    return reverse("decision:discussion", args=[session.pk])
