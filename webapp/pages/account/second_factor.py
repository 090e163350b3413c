"""Signing in with a code, and turning the second factor on and off."""

import logging
import time
from typing import cast

import segno
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from webapp import sealing
from webapp.accounts import passkeys, second_factor, throttle
from webapp.accounts.administration import AccountError, people, second_factor_reset
from webapp.accounts.models import User
from webapp.pages.account.confirmation import typed
from webapp.pages.account.passkeys import passkey_context
from webapp.pages.account.signing_in import PASSED, following

PASSED_FOR_S = 300  # after this time the person types the password again

logger = logging.getLogger(__name__)


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def code(request: HttpRequest) -> HttpResponse:
    """The second half of signing in, for a person whose password was right a moment ago."""
    passed = request.session.get(PASSED, {})
    user = User.objects.filter(pk=passed.get("user"), is_active=True).first()
    if user is None or time.time() - passed["at"] > PASSED_FOR_S:
        return redirect("account:sign_in")
    problem, status = "", 200
    if request.method == "POST":
        if "answer" in request.POST:
            right = passkeys.accepts(user, request.POST["answer"])
            problem, status = ("", 200) if right else ("That was none of your passkeys, or too late.", 403)
        else:
            problem, status = _code_problem(user, request.POST.get("code", "")[:60])
        if not problem:
            login(request, user)
            request.session.pop(PASSED, None)
            return following(request, passed["next"])
    context = {"problem": problem, "asked": passkeys.ask(user)}
    return TemplateResponse(request, "account/code.html", context, status=status)


def _code_problem(user: User, typed_code: str) -> tuple[str, int]:
    """What is wrong with a code, and the status that says so; "" and 200 when it is right."""
    try:
        right = second_factor.accepts(user, typed_code)
    except second_factor.MustWaitError as error:
        return str(error), 429
    except sealing.SealError:
        logger.exception("the second factor of %s cannot be opened", user.username)
        return "Peerpath cannot open its keys, so no code can be checked; its log says why.", 503
    return ("", 200) if right else ("That code is not right, or was used before.", 403)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def manage(request: HttpRequest) -> HttpResponse:
    """Turns it on in two steps; only the answer to the second shows the recovery codes."""
    user = cast(User, request.user)
    made: list[str] | None = None
    problem = ""
    if request.method == "POST" and not second_factor.is_on(user):
        try:
            made = second_factor.confirm(user, request.session, request.POST.get("code", "")[:60])
            problem = "" if made else "That code is not right. Look whether the clocks agree."
        except second_factor.MustWaitError as error:
            problem = str(error)
    context = {"nav": "account", "made": made, "problem": problem, **_factor_context(request, user)}
    if context["on"]:
        context |= passkey_context(user)
    return TemplateResponse(request, "account/second_factor.html", context, status=403 if problem else 200)


def _factor_context(request: HttpRequest, user: User) -> dict[str, object]:
    if second_factor.is_on(user):
        return {"on": True, "left": second_factor.recovery_codes_left(user)}
    secret = second_factor.begin(request.session)
    in_fours = " ".join(secret[at : at + 4] for at in range(0, len(secret), 4))
    return {"on": False, "qr": _qr_code(second_factor.address(user, secret)), "secret": in_fours}


def _qr_code(address: str) -> SafeString:
    """A QR code as <svg>; segno writes only numbers and colours into it."""
    svg = segno.make(address, error="m").svg_inline(light="#fff", border=4, omitsize=True)
    return mark_safe(svg)  # noqa: S308


@require_POST
def turn_off(request: HttpRequest) -> HttpResponse:
    """Asks for the password, because a browser left open proves nothing."""
    user = cast(User, request.user)
    name, address = f"off {user.username}", request.META.get("REMOTE_ADDR", "")
    if not throttle.may_try(name, address):
        messages.error(request, "Too many wrong passwords. Wait a minute and try again.")
    elif not user.check_password(request.POST.get("password", "")):
        messages.error(request, "That is not your password; the second factor stays on.")
    else:
        throttle.succeeded(name, address)
        second_factor.turn_off(user)
        logger.warning("%s turned the second factor off", user.username)
        messages.success(request, "The second factor is off.")
    return redirect("account:second_factor")


@require_POST
def reset(request: HttpRequest) -> HttpResponse:
    """An administrator lets a person in again who lost both the authenticator and the recovery codes."""
    if not cast(User, request.user).is_staff:
        raise PermissionDenied
    person = people().filter(username=request.POST.get("person", "")).first()
    if person is None:
        messages.error(request, "There is no such person; reload the page.")
        return redirect("account:people")
    if not typed(request, person.username, "reset their second factor"):
        return redirect("account:people")
    try:
        second_factor_reset(person, by=cast(User, request.user))
        messages.success(request, f"{person.username} signs in with the password alone now.")
    except AccountError as error:
        messages.error(request, str(error))
    return redirect("account:people")
