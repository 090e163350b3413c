"""People comment on a session or a part of it, and read the comments."""

import re
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.models import Role
from webapp.handoff.pending_answers import links_to_accept
from webapp.pages.addresses import anchor_address
from webapp.pages.session_page import render_page, session_page
from webapp.pages.shell import acting, on_session, on_session_for
from webapp.records.models import DiagnosisSession
from webapp.review.inbox import MOST, all_seen, asked_of, named, said_of_mine, to_judge
from webapp.review.threads import ANCHOR, CommentError, comment_add

MENTIONS_SHOWN = 100
SAID_SHOWN = 20


@require_POST
@on_session_for(Role.REVIEWER)
def comment(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    first = None
    if request.POST.get("reply_to", ""):
        number = request.POST["reply_to"]
        first = get_object_or_404(session.comments, pk=int(number) if number.isdecimal() else 0, reply_to=None)
    try:
        comment_add(
            session,
            author=acting(request),
            text=request.POST.get("text", ""),
            stance=request.POST.get("stance", ""),
            anchor=request.POST.get("anchor", ""),
            reply_to=first,
        )
    except CommentError as error:
        messages.error(request, str(error))
    return redirect(_return_address(request, session))


def _return_address(request: HttpRequest, session: DiagnosisSession) -> str:
    back, spot = request.POST.get("back", ""), request.POST.get("spot", "")
    if not back.startswith(f"/sessions/{session.pk}/"):
        return session.get_absolute_url()
    return f"{back}#{spot}" if re.fullmatch(r"[\w-]+", spot) else back


@dataclass(frozen=True, slots=True)
class DiscussionPage:
    """about: the anchor whose threads the page shows first, "" for none."""

    about: str


@require_safe
@on_session
def discussion(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """?about= names the anchor whose threads come first, with a form; htmx gets the form alone."""
    about = request.GET.get("about", "")
    about = about if ANCHOR.fullmatch(about) else ""
    if request.headers.get("HX-Request"):
        back, _, spot = anchor_address(session, about).partition("#")
        form = {"session": session, "anchor": about, "back": back, "spot": spot}
        return TemplateResponse(request, "decision/_say.html", form)
    return render_page(request, "decision/discussion.html", session_page(session), DiscussionPage(about))


@require_safe
def for_me(request: HttpRequest) -> HttpResponse:
    """Decisions that wait for this person, answers to their proposals, requests to them, and comments that name
    them."""
    user = acting(request)
    mentions = named(user).order_by("-pk")[:MENTIONS_SHOWN]
    waiting = to_judge(user).select_related("session", "proposed_by").defer("options", "pins")
    words_on_mine = said_of_mine(user).select_related("by", "decision__session")
    requests = asked_of(user)
    listed = {one.comment.pk for one in requests}
    context = {
        "nav": "for_me",
        "mentions": [one for one in mentions if one.comment_id not in listed],
        "waiting": waiting[:MOST],
        "said": list(words_on_mine[:SAID_SHOWN]),
        "asked": requests,
        "came": links_to_accept(user)[:MOST],
    }
    if request.method == "GET":  # a HEAD request shows nothing, so it marks nothing as seen
        all_seen(user)
    return TemplateResponse(request, "decision/for_me.html", context)
