"""The first page after signing in, and its three doors."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_GET, require_POST

from agents.samples import load
from webapp.diagnosis.reference.glossary import GLOSSARY
from webapp.triage import intake
from webapp.triage.models import DiagnosisSession
from webapp.triage.samples import open_sample
from webapp.triage.sessions import session_open
from webapp.triage.views.shell import acting


@require_GET
def start(request: HttpRequest) -> HttpResponse:
    sessions = DiagnosisSession.objects.visible_to(acting(request)).select_related("owner")[:50]
    return TemplateResponse(request, "triage/start.html", {"nav": "sessions", "sessions": sessions})


@require_POST
def open_session(request: HttpRequest) -> HttpResponse:
    title = request.POST.get("title", "").strip()[:200] or "A machine that is slower than expected"
    session = session_open(owner=acting(request), title=title)
    return redirect("triage:symptom", session.pk)


@require_POST
def read_outputs(request: HttpRequest) -> HttpResponse:
    """The second door: paste or upload anything, get an answer."""
    raw = pasted(request)
    if not raw.strip():
        messages.error(
            request, "Nothing was pasted. Paste what a command printed, or choose a file."
        )
        return redirect("triage:start")
    session = session_open(owner=acting(request), title="Outputs I have")
    intake.take_text(session, raw, user=acting(request), label=upload_name(request))
    return redirect("triage:diagnosis", session.pk)


@require_POST
def sample(request: HttpRequest) -> HttpResponse:
    stage = request.POST.get("stage", "after")
    try:
        load(f"kpro6@{stage}")
    except ValueError as error:
        messages.error(request, str(error))
        return redirect("triage:start")
    session = open_sample(f"kpro6@{stage}", owner=acting(request))
    return redirect("triage:symptom", session.pk)


@require_GET
def help_page(request: HttpRequest) -> HttpResponse:
    return TemplateResponse(request, "triage/help.html", {"nav": "help", "glossary": GLOSSARY})


def pasted(request: HttpRequest) -> bytes:
    """The text box or the uploaded files, as raw bytes; files follow the text."""
    parts = [request.POST.get("text", "").encode()]
    parts += [upload.read() for upload in request.FILES.getlist("file")]
    return b"\n".join(part for part in parts if part.strip())


def upload_name(request: HttpRequest) -> str:
    names = [upload.name or "" for upload in request.FILES.getlist("file")]
    return ", ".join(names)[:200]
