"""The state of a session: known facts, their evidence, the next step and its actor."""

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
LOOK_MINUTES = 2  # minutes of a person, for the look at the guest


@dataclass(frozen=True, slots=True)
class Next:
    """What to do, where, and by whom. cost: minutes and restarts, "" without them."""

    text: str
    actor: str
    url: str
    cost: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """rests: (a question or measurement, whether it has an answer). also: acts that wait beside `next`."""

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
    """The next act, and the acts that wait beside it. A proposal in review does not stop a measurement, and a
    measurement comes before a change."""
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
    """Like `standing`, without a diagnosis of the case: the session's page names the test."""
    url = reverse("session:diagnosis", args=[session.pk]) + "#next"
    waits = _before_all(session, progress) or _next_of_decision(session, progress)
    return waits or Next("Do the next test, or decide", OPERATOR, url)


def _before_all(session: DiagnosisSession, progress: Progress) -> Next | None:
    """The first of: a run under way, an answer by a link, figures, a first look."""
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


# The next act on the newest decision in a state of `progress.WAITING`.
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
    """Where a person makes the test or gives its output; the diagnosis page for a test without a form."""
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
    """Minutes of a person, and the program's own run time from its card."""
    candidate = candidate_of(test.id)
    benchmark = all_benchmarks().get(candidate.benchmark) if candidate else None
    if benchmark is None:
        return f"{test.minutes} min"
    return f"{test.minutes} min with preparing, about {benchmark.duration_s} s of it running"
