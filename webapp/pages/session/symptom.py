"""Step 1: the workload, its speed, and the goal. Step 2: the operator's own hypothesis."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from webapp.diagnosis.catalogue import all_hypotheses
from webapp.diagnosis.hypothesis import Hypothesis
from webapp.diagnosis.reference.models import PRESETS, Preset
from webapp.pages.forms import workload as forms
from webapp.pages.next_step import LOOK_MINUTES
from webapp.pages.session_page import render_page, session_page
from webapp.pages.shell import acting, on_session
from webapp.records.models import DiagnosisSession
from webapp.records.sessions import EditedMeanwhileError, session_save
from webapp.records.workload import MOST_POINTS


@require_http_methods(["GET", "HEAD", "POST"])
@on_session
def symptom(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    if request.method == "POST":
        return _save_workload(request, session)
    start = {**forms.initial(session.workload), "title": session.title, "symptom": session.symptom}
    preset = request.GET.get("preset", "")
    if preset in PRESETS:
        start |= {k: v for k, v in forms.initial({"model": PRESETS[preset].fields}).items() if v}
    form = forms.WorkloadForm(initial=start)
    points = forms.PointFormSet(initial=forms.initial_points(session.workload), prefix="point")
    return _page(request, session, form, points, preset=preset)


def _save_workload(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    if "fill" in request.POST:
        return _model_preset(request, session)
    form = forms.WorkloadForm(request.POST)
    points = forms.PointFormSet(request.POST, prefix="point")
    if not (form.is_valid() and points.is_valid()):
        return _page(request, session, form, points, status=422)
    beside = {k: v for k, v in session.workload.items() if k in {"host", "notes"}}
    workload = {**beside, **form.workload(), "observed": forms.observed(points)}
    values = {"title": form.cleaned_data["title"], "symptom": form.cleaned_data["symptom"], "workload": workload}
    try:
        session_save(session, user=acting(request), version=version_sent(request), what="symptom", values=values)
    except EditedMeanwhileError as conflict:
        return _page(request, conflict.current, form, points, conflict=conflict.current, status=409)
    return redirect("session:hypothesis", session.pk)


def _model_preset(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """Fills in a common model's figures beside the typed values; saves nothing yet."""
    typed, preset = request.POST.dict(), request.POST.get("preset", "")
    figures = forms.initial({"model": PRESETS[preset].fields}) if preset in PRESETS else {}
    form = forms.WorkloadForm(initial={**typed, **{k: v for k, v in figures.items() if v}})
    fields = forms.PointForm.base_fields
    rows = [{name: typed.get(f"point-{i}-{name}", "") for name in fields} for i in range(MOST_POINTS)]
    while rows and not any(rows[-1].values()):
        rows.pop()
    points = forms.PointFormSet(initial=rows, prefix="point")
    session.version = version_sent(request)
    return _page(request, session, form, points, preset=preset, unsaved=True)


@dataclass(frozen=True, slots=True)
class SymptomPage:
    """preset: the common model whose figures the form shows. computed: the result of the model's figures. for_bound:
    fields that the bound needs. conflict: the session that somebody else saved meanwhile. unsaved: whether the form
    shows unsaved values."""

    form: forms.WorkloadForm
    points: Any
    presets: Mapping[str, Preset]
    preset: str
    computed: str
    for_bound: Collection[str]
    conflict: DiagnosisSession | None
    unsaved: bool


def _page(
    request: HttpRequest,
    session: DiagnosisSession,
    form: forms.WorkloadForm,
    points: Any,
    *,
    preset: str = "",
    conflict: DiagnosisSession | None = None,
    unsaved: bool = False,
    status: int = 200,
) -> HttpResponse:
    model = session.workload.get("model", {})
    own = SymptomPage(
        form=form,
        points=points,
        presets=PRESETS,
        preset=preset or _preset_of(model),
        computed=forms.computed(model),
        for_bound=forms.FOR_BOUND,
        conflict=conflict,
        unsaved=unsaved,
    )
    return render_page(request, "session/symptom.html", session_page(session, "symptom"), own, status=status)


def _preset_of(model: dict[str, Any]) -> str:
    """The common model of this shape, whatever its typed name; "" for none."""
    shape = [model.get(key) for key in ("layers", "hidden_size")]
    alike = (
        key
        for key, one in PRESETS.items()
        if None not in shape and [one.fields.get("layers"), one.fields.get("hidden_size")] == shape
    )
    return next(alike, "")


@dataclass(frozen=True, slots=True)
class HypothesisPage:
    """conflict: the session that somebody else saved meanwhile."""

    hypotheses: list[Hypothesis]
    conflict: DiagnosisSession | None
    look_minutes: int


@require_http_methods(["GET", "HEAD", "POST"])
@on_session
def hypothesis(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    conflict = None
    if request.method == "POST":
        values = {
            "own_words": request.POST.get("own_words", ""),
            "first_hypothesis": request.POST.get("first_hypothesis", "")[:80],
        }
        try:
            session_save(session, user=acting(request), version=version_sent(request), what="hypothesis", values=values)
            messages.success(request, "Kept. The evidence will confirm or correct it in the open.")
            return redirect("session:guest", session.pk)
        except EditedMeanwhileError as error:
            conflict = error.current
            session.own_words, session.first_hypothesis = (values["own_words"], values["first_hypothesis"])
            session.version = conflict.version
    own = HypothesisPage(_in_order_of_guess(), conflict, LOOK_MINUTES)
    page = session_page(session, "hypothesis")
    return render_page(request, "session/hypothesis.html", page, own, status=409 if conflict else 200)


def _in_order_of_guess() -> list[Hypothesis]:
    """Common guesses first, then the others by id."""
    return sorted(all_hypotheses(), key=lambda h: (not h.first_guess, h.first_guess))


def version_sent(request: HttpRequest) -> int:
    """The version that the form shows; -1, which no row has, without one."""
    raw = request.POST.get("version", "")
    return int(raw) if re.fullmatch(r"[0-9]{1,9}", raw) else -1
