"""Who asks: a bearer token and nothing else. A browser's cookie opens nothing here, so that no page
elsewhere can make a signed-in person's browser act."""

from django.http import HttpRequest
from ninja.security import HttpBearer

from webapp.accounts import throttle
from webapp.accounts.models import ApiToken, Scope, handle_of
from webapp.api.problems import RefusedError


class Bearer(HttpBearer):
    """An operation's need of a token with this scope."""

    openapi_description = "A token from “Your account”: peerpath_…"

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope

    def __call__(self, request: HttpRequest) -> ApiToken:
        return self.authenticate(request, "")

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken:
        """The token is read from the request itself, once for all who ask for it."""
        bearer = token_of(request)
        if not bearer.may(self.scope):
            raise RefusedError(
                403,
                f"This token may {', '.join(bearer.scopes) or 'do nothing'}; this needs the scope {self.scope}.",
                {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{self.scope}"'},
            )
        return bearer


READ, WRITE, RUN = Bearer(Scope.READ), Bearer(Scope.WRITE), Bearer(Scope.RUN)


def token_of(request: HttpRequest) -> ApiToken:
    """The token that came with the request, whose owner is who asks from now on. Raises RefusedError."""
    known = getattr(request, "auth", None)
    if isinstance(known, ApiToken):
        # A large request's token was found before the middleware that asks whose cookie came along.
        request.user = known.owner
        return known
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    text = text.strip()
    if scheme.lower() != "bearer" or not text:
        raise RefusedError(401, "Send a token: Authorization: Bearer peerpath_…", _CHALLENGE)
    bearer = _right_token(text, request.META.get("REMOTE_ADDR", ""))
    bearer.used()
    request.user, request.auth = bearer.owner, bearer  # type: ignore[attr-defined]
    return bearer


def _right_token(text: str, address: str) -> ApiToken:
    """Only what is wrong is counted and refused: a right token is beyond guessing at any pace, and its
    program must not wait because somebody behind the same proxy tried its handle."""
    handle = handle_of(text)
    stored = ApiToken.find(text) if handle else None
    if stored is not None:
        return stored
    # What cannot be a token is no guess at one.
    if handle and not throttle.may_try(f"token {handle}", address):
        raise RefusedError(
            429, "Too many wrong tokens. Wait a minute and try again.", {"Retry-After": str(throttle.WAIT_S)}
        )
    raise RefusedError(
        401,
        "This token is not good: unknown, expired or revoked.",
        {"WWW-Authenticate": 'Bearer error="invalid_token"'},
    )


def has_token(request: HttpRequest) -> bool:
    """Whether a good token came with it, for what is decided before any operation is found."""
    try:
        token_of(request)
    except RefusedError:
        return False
    return True


_CHALLENGE = {"WWW-Authenticate": "Bearer"}
