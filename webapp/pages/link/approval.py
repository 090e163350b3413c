"""A person without an account judges a proposal for the host, by a link that may approve."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from agents.framing import clean
from webapp.handoff import throttle
from webapp.handoff.models import Link
from webapp.pages.link.answer import through_link
from webapp.records.case_facts import facts_of
from webapp.review.decisions import DecisionError
from webapp.review.models import Word
from webapp.review.workflow import ByLink, decision_judge

LONGEST_REASON = 2000
SAID = {"yes": Word.APPROVED, "changes": Word.CHANGES_WANTED}


@require_POST
@through_link
def judge(request: HttpRequest, link: Link, number: int) -> HttpResponse:
    """Takes a word. A signed-in person judges on the record's own page, under their name."""
    if not link.may_approve:
        raise Http404
    decision = get_object_or_404(link.session.decisions, number=number)
    page = f"/asked/{link.pk}#decision-{number}"
    if request.user.is_authenticated:
        messages.error(request, "You are signed in; give your word on the record’s own page.")
        return redirect(page)
    if not throttle.may_answer(link.pk):
        messages.error(request, "That was sent very often; wait ten minutes.")
        return redirect(page)
    word = SAID.get(request.POST.get("approves", ""), Word.REJECTED)
    try:
        decision_judge(
            decision,
            word=word,
            despite="despite" in request.POST,
            reason=clean(request.POST.get("reason", "").encode()).strip()[:LONGEST_REASON],
            facts=facts_of(link.session),
            by=ByLink(link, clean(request.POST.get("name", "").encode()).strip()[:80]),
            seen=request.POST.get("seen", ""),
        )
    except DecisionError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "Kept, and told to the others. Thank you.")
    return redirect(page)
