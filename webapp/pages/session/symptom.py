"""Step 1: what is served, how fast it is, how fast it should be. Step 2: what the operator thinks."""

from __future__ import annotations

import re
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_http_methods

from webapp.diagnosis.catalogue import all_hypotheses
from webapp.diagnosis.hypothesis import Hypothesis
from webapp.diagnosis.reference.models import PRESETS
from webapp.pages.forms import workload as forms
from webapp.pages.next_step import LOOK_MINUTES
from webapp.pages.shell import acting, on_session, shell
from webapp.records.models import DiagnosisSession
from webapp.records.sessions import EditedMeanwhileError, session_save
from webapp.records.workload import MOST_POINTS


@require_http_methods(["GET", "HEAD", "POST"])
@on_session
def symptom(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    if request.method == "POST":
        return _save(request, session)
    start = {**forms.initial(session.workload), "title": session.title, "symptom": session.symptom}
    preset = request.GET.get("preset", "")
    if preset in PRESETS:
        start |= {k: v for k, v in forms.initial({"model": PRESETS[preset].fields}).items() if v}
    form = forms.WorkloadForm(initial=start)
    points = forms.PointFormSet(initial=forms.initial_points(session.workload), prefix="point")
    return _page(request, session, form, points, preset=preset)


def _save(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    if "fill" in request.POST:
        return _filled(request, session)
    form = forms.WorkloadForm(request.POST)
    points = forms.PointFormSet(request.POST, prefix="point")
    if not (form.is_valid() and points.is_valid()):
        return _page(request, session, form, points, status=422)
    kept = {k: v for k, v in session.workload.items() if k in {"host", "notes"}}
    found = {**kept, **form.workload(), "observed": forms.observed(points)}
    values = {"title": form.cleaned_data["title"], "symptom": form.cleaned_data["symptom"], "workload": found}
    try:
        session_save(session, user=acting(request), version=asked_version(request), what="symptom", values=values)
    except EditedMeanwhileError as conflict:
        return _page(request, conflict.current, form, points, conflict=conflict.current, status=409)
    return redirect("session:hypothesis", session.pk)


def _filled(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """A common model's figures beside what was typed; nothing is saved yet."""
    typed, preset = request.POST.dict(), request.POST.get("preset", "")
    figures = forms.initial({"model": PRESETS[preset].fields}) if preset in PRESETS else {}
    form = forms.WorkloadForm(initial={**typed, **{k: v for k, v in figures.items() if v}})
    fields = forms.PointForm.base_fields
    rows = [{name: typed.get(f"point-{i}-{name}", "") for name in fields} for i in range(MOST_POINTS)]
    while rows and not any(rows[-1].values()):
        rows.pop()
    points = forms.PointFormSet(initial=rows, prefix="point")
    session.version = asked_version(request)
    return _page(request, session, form, points, preset=preset, unsaved=True)


def _page(
    request: HttpRequest, session: DiagnosisSession, form: Any, points: Any, *, status: int = 200, **more: Any
) -> HttpResponse:
    more["preset"] = more.get("preset") or _preset_of(session.workload.get("model", {}))
    more["computed"] = forms.computed(session.workload.get("model", {}))
    more["for_bound"] = forms.FOR_BOUND
    context = shell(session, "symptom", form=form, points=points, presets=PRESETS, **more)
    return TemplateResponse(request, "session/symptom.html", context, status=status)


def _preset_of(model: dict[str, Any]) -> str:
    """The common model of this shape, however its name was written; "" for none."""
    shape = [model.get(key) for key in ("layers", "hidden_size")]
    alike = (
        key
        for key, one in PRESETS.items()
        if None not in shape and [one.fields.get("layers"), one.fields.get("hidden_size")] == shape
    )
    return next(alike, "")


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
            session_save(
                session, user=acting(request), version=asked_version(request), what="hypothesis", values=values
            )
            messages.success(request, "Kept. The evidence will confirm or correct it in the open.")
            return redirect("session:guest", session.pk)
        except EditedMeanwhileError as error:
            conflict = error.current
            session.own_words, session.first_hypothesis = (values["own_words"], values["first_hypothesis"])
            session.version = conflict.version
    context = shell(session, "hypothesis", hypotheses=_as_asked(), conflict=conflict, look_minutes=LOOK_MINUTES)
    return TemplateResponse(request, "session/hypothesis.html", context, status=409 if conflict else 200)


def _as_asked() -> list[Hypothesis]:
    """What people think of first comes first; the rest in order of id."""
    return sorted(all_hypotheses(), key=lambda h: (not h.first_guess, h.first_guess))


def asked_version(request: HttpRequest) -> int:
    """What the form was opened on; -1, which no row has, without one."""
    raw = request.POST.get("version", "")
    return int(raw) if re.fullmatch(r"[0-9]{1,9}", raw) else -1
