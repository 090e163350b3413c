"""Where a session stands: what is known, what it rests on, what is next and who acts."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from agents.benchmark import all_benchmarks
from agents.facts.bench import PROFILE
from webapp.diagnosis.case import Actor, NextTest, Restart
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.naming import ACTORS, RESTARTS
from webapp.diagnosis.next_test import Place, candidate_of
from webapp.pages.progress import Progress
from webapp.records.models import DiagnosisSession

OPERATOR = "an operator"
LOOK_MINUTES = 2  # somebody's, for the look at the guest


@dataclass(frozen=True, slots=True)
class Next:
    """What to do, where, and by whom. cost: minutes and what restarts, "" where it is none of that."""

    text: str
    actor: str
    url: str
    cost: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """rests: (what can be asked or measured, whether it was). also: what else waits beside `next`."""

    headline: str
    summary: str
    rests: tuple[tuple[str, bool], ...]
    next: Next
    also: tuple[Next, ...] = ()


def standing(session: DiagnosisSession, result: Diagnosis, progress: Progress) -> Standing:
    rests = (
        ("the guest", "guest" in progress.knows),
        ("a measured path", "bench" in progress.knows),
        ("the host", "host" in progress.knows),
        ("the engine’s profile", result.facts.value(PROFILE) is not None),
    )
    first, *also = _in_order(session, result, progress)
    return Standing(result.headline, result.summary, rests, first, tuple(also))


def _in_order(session: DiagnosisSession, result: Diagnosis, progress: Progress) -> list[Next]:
    """The next act, and what waits beside it: a proposal that others look at keeps nobody from measuring,
    and what is about to be changed is measured before."""
    first, decided = _before_all(session, progress), _next_of_decision(session, progress)
    test = _next_of_test(session, result.next_tests)
    if first:
        beside = [test] if progress.came and not progress.run else []
        return [first, *([decided] if decided else []), *beside]
    if decided is None or progress.waits is None:
        return [test]
    state = progress.waits[1]
    if state == "applied" or not result.next_tests:
        return [decided]
    return [test, decided] if state == "proposed" else [decided, test]


def next_in_list(session: DiagnosisSession, progress: Progress) -> Next:
    """As `standing` says it, but without judging the case: its page names the test."""
    url = reverse("session:diagnosis", args=[session.pk]) + "#next"
    waits = _before_all(session, progress) or _next_of_decision(session, progress)
    return waits or Next("Do the next test, or decide", OPERATOR, url)


def _before_all(session: DiagnosisSession, progress: Progress) -> Next | None:
    """A run under way, what somebody gave back, figures, a first look."""
    return _next_of_run(session, progress) or _next_of_answer(session, progress) or _first_steps(session, progress)


def _next_of_run(session: DiagnosisSession, progress: Progress) -> Next | None:
    if progress.run is None:
        return None
    number, key = progress.run
    url = reverse("session:run", args=[session.pk, key])
    return Next(f"Run {number} is under way", "nobody: it ends by itself", url)


def _next_of_answer(session: DiagnosisSession, progress: Progress) -> Next | None:
    if not progress.came:
        return None
    url = reverse("link:links", args=[session.pk]) + "#links"
    return Next(f"{progress.came} gave something back: look and accept", OPERATOR, url)


def _first_steps(session: DiagnosisSession, progress: Progress) -> Next | None:
    if "symptom" not in progress.done:
        url = reverse("session:symptom", args=[session.pk]) + "#observed"
        return Next("Say what you serve and how fast it is", OPERATOR, url)
    if not progress.knows & {"guest", "host"}:
        url = reverse("session:guest", args=[session.pk]) + "#look"
        return Next("Look at the guest", OPERATOR, url, f"{LOOK_MINUTES} min, no restart")
    return None


# What the newest decision in one of `progress.WAITING` waits for.
_WAITS = {
    "draft": ("Propose decision {number}", OPERATOR),
    "proposed": ("Approve or reject decision {number}", "a reviewer"),
    "approved": ("Carry out decision {number}", "who may change the machine"),
    "applied": ("Measure again and close decision {number}", OPERATOR),
}


def _next_of_decision(session: DiagnosisSession, progress: Progress) -> Next | None:
    if progress.waits is None:
        return None
    number, state = progress.waits
    text, actor = _WAITS[state]
    if state == "applied":
        url = reverse("decision:verify", args=[session.pk])
    else:
        url = reverse("decision:decision", args=[session.pk, number])
    return Next(text.format(number=number), actor, url)


# The page of a place, and the spot on it.
_SPOTS = {
    Place.MEASUREMENTS: ("session:path", ""),
    Place.GUEST: ("session:guest", "look"),
    Place.HOST: ("session:host", "links"),
    Place.TRIAL: ("decision:ab", "plan"),
    Place.DIAGNOSIS: ("session:diagnosis", "next"),
}


def place_of(session: DiagnosisSession, test: str) -> str:
    """Where it is made, or its output given; the diagnosis, which says how, for what has no form."""
    candidate = candidate_of(test)
    page, spot = _SPOTS[candidate.place if candidate else Place.DIAGNOSIS]
    benchmark = candidate.benchmark if candidate else ""
    opened = f"?measure={benchmark}" if benchmark else ""
    return f"{reverse(page, args=[session.pk])}{opened}#{benchmark or spot}"


def _next_of_test(session: DiagnosisSession, tests: tuple[NextTest, ...]) -> Next:
    if not tests:
        return Next("Choose what to change", OPERATOR, reverse("decision:decide", args=[session.pk]))
    test = tests[0]
    restart = "no restart" if test.restart is Restart.NONE else f"restarts {RESTARTS[test.restart]}"
    actor = ACTORS[test.actor] if test.actor is Actor.HOST_ADMIN else OPERATOR
    return Next(test.title, actor, place_of(session, test.id), f"{takes(test)}, {restart}")


def takes(test: NextTest) -> str:
    """Somebody's minutes, and how long the program itself runs, as its own card says."""
    candidate = candidate_of(test.id)
    benchmark = all_benchmarks().get(candidate.benchmark) if candidate else None
    if benchmark is None:
        return f"{test.minutes} min"
    return f"{test.minutes} min with preparing, about {benchmark.duration_s} s of it running"
