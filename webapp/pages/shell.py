"""Who asks for a page of a session, and whether they may."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, cast
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from webapp.accounts.models import Role, User
from webapp.pages.progress import with_progress
from webapp.records.access import session_for
from webapp.records.models import DiagnosisSession

P = ParamSpec("P")
READING = frozenset({"GET", "HEAD", "OPTIONS"})


def acting(request: HttpRequest) -> User:
    """The signed-in person; LoginRequiredMiddleware has seen to it."""
    return cast(User, request.user)


View = Callable[Concatenate[HttpRequest, DiagnosisSession, P], HttpResponse]


def on_session_for(least: Role) -> Callable[[View[P]], Callable[..., HttpResponse]]:
    """Gives the view its session. Answers 404 to those who may not see it, and 403 to those whose role
    there is below `least` and who want more than to read."""

    def decorated(view: View[P]) -> Callable[..., HttpResponse]:
        @wraps(view)
        def wrapped(request: HttpRequest, session_id: UUID, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            needed = Role.VIEWER if request.method in READING else least
            # Its progress comes along where nothing is going to change it. A fragment that is asked for again
            # and again says what was seen, and shows no progress.
            only_read = request.method in READING and "seen" not in request.GET
            prepare = with_progress if only_read else None
            session = session_for(acting(request), session_id, needed, prepare=prepare)
            return view(request, session, *args, **kwargs)

        return wrapped

    return decorated


on_session = on_session_for(Role.OPERATOR)
