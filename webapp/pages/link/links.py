"""The operator's side of links: make one, follow its steps, revoke it, accept the answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from webapp.handoff.models import Answer, Link
from webapp.handoff.plan import Phase, phases_to_ask
from webapp.handoff.purpose import LONGEST_PURPOSE, purpose
from webapp.handoff.retraction import NotTheirsError, set_aside
from webapp.pages.account.confirmation import typed
from webapp.pages.session_page import context_of, render_page, session_page
from webapp.pages.shell import acting, on_session
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession
from webapp.records.models.link import NOBODY
from webapp.records.models.session import stands

HOURS = ((24, "1 day"), (72, "3 days"), (168, "1 week"), (336, "2 weeks"))
ANSWERS_SHOWN = 20


@require_safe
@on_session
def links(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """The links with their steps, and the form for a new one; 204 when nothing is new."""
    answers = Answer.objects.defer("evidence__body", "evidence__stderr").order_by("-at")
    stored = list(
        session.links.annotate(standing=stands())
        .select_related("made_by", "accepted_by")
        .prefetch_related(Prefetch("given", answers.select_related("evidence")))
    )
    seen = _fragment_key(stored)
    live = request.headers.get("HX-Request") and "seen" in request.GET
    if live and request.GET["seen"] == seen:
        return HttpResponse(status=204)
    own = LinkList([_link_row(link) for link in stored], seen)
    if live:
        return TemplateResponse(request, "link/_links.html#live", {"session": session, **context_of(own)})
    result = session_diagnosis(session)
    form = LinkForm(purpose(result, session.vmid), HOURS, phases_to_ask(result, session.vmid), only_here())
    if request.headers.get("HX-Request"):
        return TemplateResponse(request, "link/_links.html", {"session": session, **context_of(own, form)})
    return render_page(request, "link/links.html", session_page(session, facts=result.facts), own, form)


@dataclass(frozen=True, slots=True)
class LinkRow:
    """answers: the newest answers by the link. more: the number of the others. counting: the number of its outputs
    that are not set aside. to_accept: whether one of these waits for an operator's word."""

    link: Link
    answers: list[Answer]
    more: int
    counting: int
    to_accept: bool


@dataclass(frozen=True, slots=True)
class LinkList:
    """seen: changes whenever the list would."""

    links: list[LinkRow]
    seen: str


@dataclass(frozen=True, slots=True)
class LinkForm:
    """Choices of a new link. only_here: whether the link would lead to this machine alone."""

    purpose: str
    hours: Sequence[tuple[int, str]]
    phases: list[Phase]
    only_here: bool


@dataclass(frozen=True, slots=True)
class NewLinkPage:
    """address: only this page shows it."""

    link: Link
    address: str
    only_here: bool


def _link_row(link: Link) -> LinkRow:
    answers = list(link.given.all())
    counting = sum(answer.evidence.set_aside_at is None for answer in answers)
    to_accept = bool(counting and link.received_at and not link.accepted_at)
    return LinkRow(link, answers[:ANSWERS_SHOWN], len(answers[ANSWERS_SHOWN:]), counting, to_accept)


def _fragment_key(stored: Sequence[Link]) -> str:
    """Changes whenever the fragment would."""
    parts = (
        f"{sum(at is not None for _, at in link.steps)}{'o' if link.is_open else 'c'}"
        f"{len(link.given.all())}{sum(a.evidence.set_aside_at is None for a in link.given.all())}"
        f"{len(link.answers)}{link.declined_at or ''}"
        for link in stored
    )
    return "-".join(parts) or "none"


def only_here() -> bool:
    """Whether links lead to this machine alone."""
    return urlsplit(settings.PUBLIC_URL).hostname in {"127.0.0.1", "localhost", "::1"}


@never_cache
@require_POST
@on_session
def make(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """Only the answer to this request shows the address."""
    text = request.POST.get("purpose", "").strip()[:LONGEST_PURPOSE]
    hours = request.POST.get("hours", "")
    result = session_diagnosis(session)
    offered = {phase.id for phase in phases_to_ask(result, session.vmid)}
    link, token = Link.make(
        session,
        made_by=acting(request),
        person=request.POST.get("person", "").strip()[:80] or NOBODY,
        purpose=text or purpose(result, session.vmid),
        hours=int(hours) if hours in {str(n) for n, _ in HOURS} else HOURS[1][0],
        phases=[phase for phase in request.POST.getlist("phases") if phase in offered],
        may_approve="may_approve" in request.POST,
    )
    address = f"{settings.PUBLIC_URL}/link/{token}"
    own = NewLinkPage(link, address, only_here())
    return render_page(request, "link/made.html", session_page(session), own)


@require_POST
@on_session
def revoke(request: HttpRequest, session: DiagnosisSession, link_id: UUID) -> HttpResponse:
    link = get_object_or_404(session.links, pk=link_id)
    if not typed(request, link.person, "close it"):
        return redirect(f"/sessions/{session.pk}/host#links")
    link.revoke(acting(request))
    return _redirect_to_session(request, session, "The link is closed; what came by it stays.")


@require_POST
@on_session
def accept(request: HttpRequest, session: DiagnosisSession, link_id: UUID) -> HttpResponse:
    """Redirects to the link, whose card then shows the acceptance."""
    link = get_object_or_404(session.links, pk=link_id)
    link.accept(acting(request))
    return _redirect_to_link(link)


@require_POST
@on_session
def put_aside(request: HttpRequest, session: DiagnosisSession, answer_id: int) -> HttpResponse:
    """Sets aside an output that was not asked for; counts=1 takes this back."""
    answers = Answer.objects.select_related("link__session").defer("evidence__body")
    answer = get_object_or_404(answers, pk=answer_id, link__session=session)
    try:
        set_aside(answer, acting(request), counts="counts" in request.POST)
    except NotTheirsError as error:
        messages.error(request, str(error))
    return _redirect_to_link(answer.link)


def _redirect_to_link(link: Link) -> HttpResponse:
    return redirect(f"{reverse('link:links', args=[link.session_id])}#link-{link.pk}")


def _redirect_to_session(request: HttpRequest, session: DiagnosisSession, text: str) -> HttpResponse:
    messages.success(request, text)
    return redirect(f"/sessions/{session.pk}/host#links")
