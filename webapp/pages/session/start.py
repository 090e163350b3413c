"""The first page after signing in, and its three doors."""

from collections.abc import Iterator, Sequence
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_POST, require_safe

from agents.samples import load
from webapp.diagnosis.catalogue import all_hypotheses, all_rungs
from webapp.pages.next_step import next_in_list
from webapp.pages.progress import progress_of
from webapp.pages.session_page import STEPS
from webapp.pages.shell import acting
from webapp.records.access import refuse_unless_may_open
from webapp.records.intake import take_uploads
from webapp.records.models import DiagnosisSession
from webapp.records.received import LARGEST_UPLOAD_BYTES, Upload
from webapp.records.session_list import page
from webapp.records.session_search import Criteria
from webapp.records.sessions import session_open
from webapp.runs.samples import open_sample


@require_safe
def start(request: HttpRequest) -> HttpResponse:
    criteria = Criteria.of(request.GET.dict())
    listing = page(acting(request), criteria, request.GET.get("before", ""))
    context = {
        "nav": "sessions",
        "asked": criteria,
        "rows": [*_session_rows(listing.sessions)],
        "cut": listing.cut,
        "after": listing.after and urlencode({**criteria.filled, "before": listing.after}),
        "verdicts": [(h.id, h.claim) for h in all_hypotheses()],
        "gates": [rung.id for rung in all_rungs()],
    }
    return TemplateResponse(request, "session/start.html", context)


def _session_rows(sessions: Sequence[DiagnosisSession]) -> Iterator[dict[str, object]]:
    """Each session with its first open step, and the next act and its actor."""
    progress_by_key = progress_of(sessions)
    for session in sessions:
        progress = progress_by_key[session.pk]
        numbered = enumerate(STEPS, 1)
        at = next(((n, s.title) for n, s in numbered if s.id not in progress.done), None)
        done = len(progress.done)
        yield {"session": session, "at": at, "done": done, "next": next_in_list(session, progress)}


@require_POST
def open_session(request: HttpRequest) -> HttpResponse:
    refuse_unless_may_open(acting(request))
    title = request.POST.get("title", "").strip()[:200] or "A machine that is slower than expected"
    session = session_open(owner=acting(request), title=title)
    return redirect("session:symptom", session.pk)


@require_POST
def read_outputs(request: HttpRequest) -> HttpResponse:
    """The second door: paste or upload anything, get an answer."""
    refuse_unless_may_open(acting(request))
    uploads = uploads_sent(request)
    if not uploads:
        return redirect("session:start")
    session = session_open(owner=acting(request), title="Outputs I have")
    received = take_uploads(
        session, uploads, user=acting(request), label="a paste on the first page", hide=bool(request.POST.get("hide"))
    )
    for note in received.notes:
        messages.warning(request, note)
    answer = redirect("session:diagnosis", session.pk)
    if received.to_assign:
        messages.warning(
            request,
            "Some lines could not be placed, or could be the guest’s or the host’s: you can say below what they are.",
        )
        answer["Location"] += "#to-say"
    return answer


@require_POST
def sample(request: HttpRequest) -> HttpResponse:
    refuse_unless_may_open(acting(request))
    stage = request.POST.get("stage", "after")
    try:
        load(f"kpro6@{stage}")
    except ValueError as error:
        messages.error(request, str(error))
        return redirect("session:start")
    session = open_sample(f"kpro6@{stage}", owner=acting(request))
    return redirect("session:symptom", session.pk)


def uploads_sent(request: HttpRequest, at: str = "") -> list[Upload]:
    """The text box, then the files. A message, tagged with `at`, refuses a file that is too large."""
    uploads = [Upload("", request.POST.get("text", "").encode())]
    for file in request.FILES.getlist("file"):
        if (file.size or 0) > LARGEST_UPLOAD_BYTES:
            messages.error(
                request, f"{file.name} is larger than 50 MiB. Give the part that matters, or compress it.", at
            )
        else:
            uploads.append(Upload(file.name or "a file", file.read()))
    uploads = [upload for upload in uploads if upload.raw.strip()]
    if not uploads:
        messages.error(request, "Nothing was pasted. Paste what a command printed, or choose a file.", at)
    return uploads
