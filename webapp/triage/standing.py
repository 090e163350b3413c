"""Where a session stands: what is known, what it rests on, what is next and who acts."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from agents.facts.bench import PROFILE
from webapp.diagnosis.case import Actor, NextTest, Restart
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.triage.models import DiagnosisSession
from webapp.triage.progress import Progress

OPERATOR = "an operator"


@dataclass(frozen=True, slots=True)
class Next:
    """What to do, where, and by whom. cost: minutes and what restarts, "" where it is none of that."""

    text: str
    actor: str
    url: str
    cost: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """rests: (what can be asked or measured, whether it was)."""

    headline: str
    summary: str
    rests: tuple[tuple[str, bool], ...]
    next: Next


def standing(session: DiagnosisSession, result: Diagnosis, progress: Progress) -> Standing:
    rests = (
        ("the guest", "guest" in progress.done),
        ("a measured path", "path" in progress.done),
        ("the host", "host" in progress.done),
        ("the engine’s profile", result.facts.value(PROFILE) is not None),
    )
    waits = waits_for(session, progress) or _test(session, result.next_tests)
    return Standing(result.headline, result.summary, rests, waits)


def next_in_list(session: DiagnosisSession, progress: Progress) -> Next:
    """As `standing` says it, but without judging the case: its page names the test."""
    url = reverse("triage:diagnosis", args=[session.pk]) + "#next"
    return waits_for(session, progress) or Next("Do the next test, or decide", OPERATOR, url)


def waits_for(session: DiagnosisSession, progress: Progress) -> Next | None:
    """What stands before any further test: a run, figures, a first look, people who decide."""
    return (
        _going(session, progress) or _first_steps(session, progress) or _decided(session, progress)
    )


def _going(session: DiagnosisSession, progress: Progress) -> Next | None:
    if progress.run is None:
        return None
    number, key = progress.run
    url = reverse("triage:run", args=[session.pk, key])
    return Next(f"Run {number} is under way", "nobody: it ends by itself", url)


def _first_steps(session: DiagnosisSession, progress: Progress) -> Next | None:
    if "symptom" not in progress.done:
        url = reverse("triage:symptom", args=[session.pk])
        return Next("Say what you serve and how fast it is", OPERATOR, url)
    if not progress.done & {"guest", "host"}:
        url = reverse("triage:guest", args=[session.pk])
        return Next("Look at the guest", OPERATOR, url, "2 min, no restart")
    return None


# What the newest decision in one of `progress.WAITING` waits for.
_WAITS = {
    "draft": ("Propose decision {number}", OPERATOR),
    "proposed": ("Approve or reject decision {number}", "a reviewer"),
    "approved": ("Carry out decision {number}", "who may change the machine"),
    "applied": ("Measure again and close decision {number}", OPERATOR),
}


def _decided(session: DiagnosisSession, progress: Progress) -> Next | None:
    if progress.waits is None:
        return None
    number, state = progress.waits
    text, actor = _WAITS[state]
    if state == "applied":
        url = reverse("review:verify", args=[session.pk])
    else:
        url = reverse("review:decision", args=[session.pk, number])
    return Next(text.format(number=number), actor, url)


def _test(session: DiagnosisSession, tests: tuple[NextTest, ...]) -> Next:
    if not tests:
        return Next("Choose what to change", OPERATOR, reverse("review:decide", args=[session.pk]))
    test = tests[0]
    restart = "no restart" if test.restart is Restart.NONE else f"restarts the {test.restart}"
    actor = "the host’s admin" if test.actor is Actor.HOST_ADMIN else OPERATOR
    url = reverse("triage:diagnosis", args=[session.pk]) + "#next"
    return Next(test.id, actor, url, f"{test.minutes} min, {restart}")
