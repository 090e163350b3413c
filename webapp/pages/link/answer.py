"""Pages behind a link, for a person without an account who can reach the host.

Only one address holds the token: it stores the link in the browser's session and redirects. The pages themselves
have addresses without the token, so that no Referer and no log can reveal it."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from agents.collector import limits_s
from agents.facts import View
from agents.probe import Probe
from agents.probes import handed_for
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.scripts import PhaseScript
from webapp.handoff import scripts, throttle
from webapp.handoff.models import OPENED, HandedScript, Link, Step
from webapp.handoff.plan import Phase, phases
from webapp.handoff.proposals import proposals
from webapp.handoff.retraction import CAME_ALONE, NotTheirsError, take_back
from webapp.handoff.submissions import RefusedError, is_asleep, is_elsewhere, rows_of, say_of_host, take
from webapp.pages.link.download import download
from webapp.pages.session.look import ANSWERS, preview_of
from webapp.pages.session.start import uploads_sent
from webapp.records.case_facts import facts_of
from webapp.records.diagnoses import session_diagnosis
from webapp.records.intake import Intake
from webapp.records.models import DiagnosisSession
from webapp.records.models.link import LONGEST_DECLINED
from webapp.records.models.session import stands

P = ParamSpec("P")
LONGEST_WHY, LONGEST_VM = 300, 60
# Parts of the page; each message is shown in its part.
GIVE, UNDERSTOOD, QUESTIONS, DECLINE = "give", "understood", "questions", "decline"
_BYTES = ("evidence__body", "evidence__stderr")
ROOT_ANSWERS = (("yes", "Yes"), ("colleague", "No, but a colleague has"), ("no", "No"))


@login_not_required
@never_cache
@require_safe
def enter(request: HttpRequest, token: str) -> HttpResponse:
    """The sent address; from here on the browser's session replaces the token."""
    link = Link.find(token)
    if link is None:
        return _closed_page(request, 429 if throttle.guesses_too_often(request) else 410)
    opened = request.session.get(OPENED, [])
    request.session[OPENED] = [*(i for i in opened if i != str(link.pk)), str(link.pk)][-20:]
    _note_account(request, link)
    response = redirect("link:asked", link.pk)
    response["Referrer-Policy"] = "no-referrer"
    return response


def _closed_page(request: HttpRequest, status: int) -> HttpResponse:
    context = {"too_often": status == 429}
    response = TemplateResponse(request, "link/closed.html", context, status=status)
    response["Referrer-Policy"] = "no-referrer"
    return response


def through_link(view: Callable[Concatenate[HttpRequest, Link, P], HttpResponse]) -> Callable[..., HttpResponse]:
    """Gives the view its link, if this browser opened it with its token and it is still open."""

    @login_not_required
    @never_cache
    @wraps(view)
    def wrapped(request: HttpRequest, link_id: UUID, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if str(link_id) not in request.session.get(OPENED, []):
            return _closed_page(request, 410)
        link = (
            Link.objects.annotate(standing=stands())
            .select_related("session", "made_by", "accepted_by")
            .filter(pk=link_id)
            .first()
        )
        if link is None or not link.is_open:
            return _closed_page(request, 410)
        return view(request, link, *args, **kwargs)

    return wrapped


def _note_account(request: HttpRequest, link: Link) -> None:
    """Records a signed-in account that opens the link: it may be the proposer's, who must not judge by a link."""
    if request.user.is_authenticated:
        link.opened_by.add(request.user.pk)


@require_safe
@through_link
def link_page(request: HttpRequest, link: Link) -> HttpResponse:
    if link.opened_at is None and request.method == "GET":  # a mail program sends HEAD
        link.reach(Step.OPENED)
    _note_account(request, link)
    answers = list(link.given.select_related("evidence").defer(*_BYTES).annotate(mine=CAME_ALONE))
    session, rows = link.session, rows_of(link, [answer.evidence for answer in answers])
    script_rows, facts = list(link.scripts.all()), facts_of(session)
    collector = scripts.collector_for(session, View.HOST, handed_for(View.HOST), link, script_rows)
    collected = any(not (answer.phase or answer.taken_back_at) for answer in answers)
    open_rows = [row for row in rows if row.state in {"missing", "refused"}]
    missing = [row.probe for row in open_rows] if collected else []
    context = {
        "link": link,
        "collector": collector,
        "lines": collector.text.count("\n"),
        "commands_end": collector.text.partition("\nmark() {")[0].count("\n"),
        "commands": preview_of(View.HOST),
        "limits_s": limits_s(handed_for(View.HOST)),
        "rows": rows,
        "answers": answers,
        "collected": collected,
        "read": sum(row.state == "read" for row in rows),
        "absent": sum(row.state == "nothing" for row in rows),
        "missing": open_rows,
        "elsewhere": is_elsewhere(rows),
        "asleep": is_asleep(rows),
        "rest": _remaining_script(session, link, missing, script_rows),
        "refused": any(row.state == "refused" for row in rows),
        "questions": ANSWERS,
        "roots": ROOT_ANSWERS,
        "base": settings.PUBLIC_URL,
        "phases": _phases_with_scripts(link, script_rows, facts),
        "proposals": proposals(link, facts),
    }
    return TemplateResponse(request, "link/asked.html", context)


def _remaining_script(
    session: DiagnosisSession, link: Link, missing: list[Probe], script_rows: list[HandedScript]
) -> HandedScript | None:
    """The script of the missing probes; None if none is missing, or all are."""
    if not missing or len(missing) == len(handed_for(View.HOST)):
        return None
    return scripts.collector_for(session, View.HOST, missing, link, script_rows)


def _phases_with_scripts(
    link: Link, script_rows: Sequence[HandedScript], facts: Facts
) -> list[tuple[Phase, list[tuple[PhaseScript, HandedScript]]]]:
    """The phases that the operator asked for, with their stored scripts for this link."""
    if not link.phases:
        return []
    session = link.session
    known = {(script.name, script.sha256): script for script in script_rows}

    def script(made: PhaseScript) -> HandedScript:
        return known.get((made.file_name, made.sha256)) or scripts.handed(session, link, made)

    return [
        (phase, [(made, script(made)) for made in phase.scripts])
        for phase in phases(session_diagnosis(session, facts), session.vmid)
        if phase.id in link.phases and phase.role is View.HOST
    ]


@require_POST
@through_link
def answer(request: HttpRequest, link: Link) -> HttpResponse:
    """Takes a paste or files. The page then shows the result, and a reload sends nothing again."""
    uploads = uploads_sent(request, GIVE)
    page = f"/asked/{link.pk}#{GIVE}"
    if uploads:
        phase_id = request.POST.get("phase", "")
        phase = phase_id if phase_id in link.phases else ""
        try:
            received = take(link, uploads, phase=phase, hide=bool(request.POST.get("hide")))
            at = UNDERSTOOD if received.texts else GIVE
            _report_intake(request, received, at)
            page = f"/asked/{link.pk}#{at}"
        except RefusedError as error:
            messages.error(request, str(error), GIVE)
    return redirect(page)


def _report_intake(request: HttpRequest, received: Intake, at: str) -> None:
    """Adds the result as messages to the part of the page that opens next."""
    count = len(received.understood)
    if received.duplicate:
        messages.info(request, "The same output was given before; it counts once.", at)
    elif count:
        messages.success(request, f"Thank you. {count} answer{'s' * (count > 1)} understood.", at)
    for note in received.notes:
        messages.warning(request, note, at)


@require_POST
@through_link
def questions(request: HttpRequest, link: Link) -> HttpResponse:
    roots = dict(ROOT_ANSWERS)
    changes = dict(ANSWERS["may_change"])
    answers: dict[str, Any] = {
        "host_root": root if (root := request.POST.get("host_root", "")) in roots else "",
        "vm": request.POST.get("vm", "").strip()[:LONGEST_VM],
        "why_vm": request.POST.get("why_vm", "").strip()[:LONGEST_WHY],
        "may_change": [c for c in request.POST.getlist("may_change") if c in changes],
    }
    filled = {name: value for name, value in answers.items() if value}
    if not filled or not throttle.may_answer(link.pk):
        text = "That was sent very often; wait ten minutes." if filled else "No question was answered."
        messages.error(request, text, QUESTIONS)
        return redirect(f"/asked/{link.pk}#{QUESTIONS}")
    say_of_host(link, filled)
    messages.success(request, "Kept, and told to the person who asked. Thank you.", QUESTIONS)
    return redirect(f"/asked/{link.pk}#{QUESTIONS}")


@require_POST
@through_link
def withdraw(request: HttpRequest, link: Link, answer_id: int) -> HttpResponse:
    """Takes back one output that came by this link."""
    submissions = link.given.select_related("evidence", "link__session").defer(*_BYTES)
    try:
        take_back(get_object_or_404(submissions, pk=answer_id))
        messages.success(request, "Taken back. Nothing it says counts any more.", UNDERSTOOD)
    except NotTheirsError as error:
        messages.error(request, str(error), UNDERSTOOD)
    return redirect(f"/asked/{link.pk}#{UNDERSTOOD}")


@require_POST
@through_link
def decline(request: HttpRequest, link: Link) -> HttpResponse:
    """Records that the person declines the request, with an optional reason."""
    if throttle.may_answer(link.pk):
        link.decline(request.POST.get("why", "").strip()[:LONGEST_DECLINED])
        messages.success(request, f"{link.made_by.username} is told. Thank you.", DECLINE)
    else:
        messages.error(request, "That was sent very often; wait ten minutes.", DECLINE)
    return redirect(f"/asked/{link.pk}#{DECLINE}")


@login_not_required
@never_cache
@require_safe
def fetch(request: HttpRequest, sha256: str) -> HttpResponse:
    """A script of an open link, by its own hash: only a reader of the script knows the hash."""
    # Several links may offer the same script: the download counts for the link that this browser opened.
    opened = request.session.get(OPENED, [])
    same_scripts = HandedScript.objects.filter(sha256=sha256, link__isnull=False)
    offered = [s for s in same_scripts.select_related("link", "session") if s.link and s.link.is_open]
    script = max(offered, key=lambda s: str(s.link_id) in opened, default=None)
    if script is None:
        if throttle.guesses_too_often(request):
            return HttpResponse("Too many wrong addresses; wait a minute.\n", status=429)
        raise Http404
    if script.link and not throttle.may_fetch(script.link.pk):
        return HttpResponse("Fetched very often; wait ten minutes.\n", status=429)
    return download(request, script, by=None)
