"""Members of a session and their roles."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from webapp.accounts.models import GIVEN, User
from webapp.pages.shell import acting, on_session
from webapp.records.models import DiagnosisSession
from webapp.records.models.session import may_operate
from webapp.records.sessions import LastOperatorError, member_add, member_remove, quorum_set

REMOVE = "remove"


@require_POST
@on_session
def change(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    """Adds a person in a role, changes their role, or removes them; without a role, takes the account's own. With
    `quorum`, sets the number of other people who have to approve."""
    if "quorum" in request.POST:
        _change_quorum(request, session)
        return _redirect_back(request, session)
    name = request.POST.get("username", "").strip()[:150]
    user = User.objects.filter(username__iexact=name, is_active=True).first()
    if user is None:
        messages.error(request, f"Nobody here is called “{name}”. An administrator can invite people.")
    else:
        _change_member(request, session, user, request.POST.get("role", "") or user.role)
    return _redirect_back(request, session)


def _redirect_back(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    back = request.POST.get("back", "")
    inside = back.startswith(f"/sessions/{session.pk}/")
    return redirect(back if inside else session.get_absolute_url())


def _change_quorum(request: HttpRequest, session: DiagnosisSession) -> None:
    user, quorum = acting(request), request.POST.get("quorum", "")
    if not (user.is_staff or user == session.owner):
        messages.error(request, f"{session.owner.username} or an administrator sets this.")
    elif quorum not in map(str, range(10)):
        messages.error(request, "Give a number of people from 0 to 9.")
    else:
        quorum_set(session, quorum=int(quorum), user=user)
        messages.success(request, f"A change on the host needs {quorum} other people from now on.")


def _change_member(request: HttpRequest, session: DiagnosisSession, user: User, role: str) -> None:
    if role != REMOVE and role not in dict(GIVEN):
        messages.error(request, f"There is no role “{role[:20]}”.")
        return
    try:
        if role == REMOVE:
            done = member_remove(session, user=user, removed_by=acting(request))
            sentence = f"{user.username} does not see this session any more.{_stopped_sentence(session, user)}"
        else:
            done = member_add(session, user=user, added_by=acting(request), role=role)
            sentence = f"{user.username} is a {role} of this session now.{_stopped_sentence(session, user)}"
    except LastOperatorError as error:
        messages.error(request, str(error))
        return
    if done:
        messages.success(request, sentence)


def _stopped_sentence(session: DiagnosisSession, user: User) -> str:
    """Names the person's links and webhooks that stop with the role; "" without any."""
    if may_operate(user, session):
        return ""
    links = session.links.filter(made_by=user, revoked_at=None, expires_at__gt=timezone.now())
    counts = {"link": links.count(), "webhook": session.webhooks.filter(made_by=user, removed_at=None).count()}
    theirs = [f"{n} {name}{'s' * (n > 1)}" for name, n in counts.items() if n]
    return f" {' and '.join(theirs)} of theirs stopped with that." if theirs else ""
