"""Step 7: the chosen changes and the reasons. This page writes a draft; the record's own page moves it on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods

from webapp.diagnosis.case import Advice, OptionStatus
from webapp.diagnosis.catalogue import all_options
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.option import PHASES, Option
from webapp.pages.session_page import render_page, session_page
from webapp.pages.shell import acting, on_session
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession
from webapp.review.decision_fields import TEXTS, Text, Wording
from webapp.review.decisions import DecisionError, DraftChangedError, decision_draft, draft_save
from webapp.review.models import Decision, DecisionState
from webapp.review.workflow import decision_propose


@dataclass(frozen=True, slots=True)
class TextField:
    """One text of the form, with its typed value."""

    name: str
    text: Text
    words: str


@require_http_methods(["GET", "HEAD", "POST"])
@on_session
def decide(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """?draft=N continues a draft, ?instead=N starts one that replaces a record."""
    result = session_diagnosis(session)
    draft, instead = _record_named(request, session, "draft"), _record_named(request, session, "instead")
    if request.method != "POST":
        return _page(request, session, result, draft, instead, _typed_before(draft or instead))
    try:
        decision = _saved_draft(request, session, result, draft, instead)
        if request.POST.get("then") != "keep":
            decision_propose(decision, user=acting(request))
    except (DecisionError, DraftChangedError) as error:
        typed = {**request.POST.dict(), "chosen": request.POST.getlist("chosen")}
        return _page(request, session, result, draft, instead, typed, error)
    return redirect("decision:decision", session.pk, decision.number)


def _record_named(request: HttpRequest, session: DiagnosisSession, what: str) -> Decision | None:
    number = request.GET.get(what, "")
    if not number.isdecimal():
        return None
    return get_object_or_404(session.decisions, number=int(number[:9]))


def _typed_before(decision: Decision | None) -> dict[str, Any]:
    if decision is None:
        return {"chosen": []}
    words = {name: getattr(decision, name) for name in TEXTS}
    return {**words, "chosen": decision.chosen, "version": decision.version}


def _saved_draft(
    request: HttpRequest, session: DiagnosisSession, result: Diagnosis, draft: Decision | None, instead: Decision | None
) -> Decision:
    wording = Wording(
        chosen=tuple(request.POST.getlist("chosen")),
        unsafe_understood="unsafe_understood" in request.POST,
        **{name: request.POST.get(name, "").strip() for name in TEXTS},
    )
    user = acting(request)
    if draft is None:
        return decision_draft(session, user=user, wording=wording, result=result, supersedes=instead)
    version = request.POST.get("version", "")
    seen = int(version) if version.isdecimal() else -1
    draft_save(draft, user=user, version=seen, wording=wording, result=result)
    return draft


@dataclass(frozen=True, slots=True)
class DecidePage:
    """problem: why the form was refused. theirs: the draft that somebody else saved meanwhile. titles: of the
    options in `chosen`."""

    result: Diagnosis
    recommended: list[Judged]
    phases: list[PhaseShown]
    titles: list[str]
    problem: str
    fields: list[TextField]
    folded_open: bool
    typed: dict[str, Any]
    chosen: list[str]
    theirs: Decision | None
    draft: Decision | None
    instead: Decision | None
    decisions: Iterable[Decision]


def _page(
    request: HttpRequest,
    session: DiagnosisSession,
    result: Diagnosis,
    draft: Decision | None,
    instead: Decision | None,
    typed: dict[str, Any],
    error: DecisionError | DraftChangedError | None = None,
) -> HttpResponse:
    current = error.current if isinstance(error, DraftChangedError) else None
    own = DecidePage(
        result=result,
        recommended=_recommended_options(result),
        phases=_phases_with_options(result, typed["chosen"]),
        titles=[option.title for option in all_options() if option.id in typed["chosen"]],
        problem=str(error or ""),
        fields=[TextField(name, text, typed.get(name, "")) for name, text in TEXTS.items()],
        folded_open=any(typed.get(name) for name, text in TEXTS.items() if text.folded),
        typed={**typed, "version": current.version} if current else typed,
        chosen=typed["chosen"],
        theirs=current,
        draft=draft if draft and draft.state == DecisionState.DRAFT else None,
        instead=instead,
        decisions=session.decisions.select_related("proposed_by"),
    )
    status = 200 if error is None else 409 if current else 422
    page = session_page(session, "decide", result=result)
    return render_page(request, "decision/decide.html", page, own, status=status)


Judged = tuple[Option, Advice]
WORTH_CHOOSING = frozenset({OptionStatus.RECOMMENDED, OptionStatus.POSSIBLE})


def _recommended_options(result: Diagnosis) -> list[Judged]:
    """Of every phase, in the order of execution; they are most of a decision."""
    judged = [(o, result.advice[o.id]) for o in all_options() if o.id in result.advice]
    judged.sort(key=lambda pair: pair[0].phase)
    return [pair for pair in judged if pair[1].status is OptionStatus.RECOMMENDED]


@dataclass(frozen=True, slots=True)
class PhaseShown:
    """A phase with its options that are not recommended. worth: options that can be chosen. rest: options without
    effect, unsafe, blocked or done. chosen: whether one of them is ticked."""

    id: str
    title: str
    worth: tuple[Judged, ...]
    rest: tuple[Judged, ...]
    chosen: bool


def _phases_with_options(result: Diagnosis, chosen: Sequence[str]) -> list[PhaseShown]:
    """Phases with an option that is not recommended, in their order."""
    phases = []
    for phase, options in groupby(all_options(), key=lambda option: option.phase):
        known = [(o, result.advice[o.id]) for o in options if o.id in result.advice]
        judged = [(o, a) for o, a in known if a.status is not OptionStatus.RECOMMENDED]
        worth = tuple((o, a) for o, a in judged if a.status in WORTH_CHOOSING or o.id in chosen)
        rest = tuple(pair for pair in judged if pair not in worth)
        ticked = any(o.id in chosen for o, _ in worth)
        if judged:
            phases.append(PhaseShown(phase, PHASES[phase], worth, rest, ticked))
    return phases
