"""The differences between any two states of the machine, and which of them can matter."""

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from webapp.diagnosis.compare.state_diff import StateDiff, diff_states
from webapp.pages.session_page import render_page, session_page
from webapp.pages.shell import on_session
from webapp.records.models import DiagnosisSession
from webapp.review.scoring import applied
from webapp.review.states import Snapshot, epochs, facts_at, times


@dataclass(frozen=True, slots=True)
class ChangedPage:
    """first, last: tokens of the two compared states. titles: of the states, by token."""

    changes: StateDiff
    states: list[Snapshot]
    moments: list[Snapshot]
    first: str
    last: str
    titles: dict[str, str]


@require_safe
@on_session
def changes(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """?from= and ?to= name states; without them the last change, or else the first and the last evidence."""
    states, moments = epochs(session, applied(session)), times(session)
    proposed = states if session.epoch else moments
    first = request.GET.get("from") or (proposed[-2:] or states)[0].token
    last = request.GET.get("to") or (proposed or states)[-1].token
    known = facts_at(session, [first, last])
    if known is None:
        raise Http404
    own = ChangedPage(
        changes=diff_states(*known),
        states=states,
        moments=moments,
        first=first,
        last=last,
        titles={s.token: s.title for s in [*moments, *states]},
    )
    return render_page(request, "decision/changed.html", session_page(session), own)
