"""The page shows a person's passkeys with the second factor; the person adds one with the password, or removes one."""

import logging
from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from webapp.accounts import passkeys, second_factor, throttle
from webapp.accounts.models import User
from webapp.accounts.passkey_domain import place

logger = logging.getLogger(__name__)


def passkey_context(user: User) -> dict[str, Any]:
    """For the page: the passkeys, and the challenge for a new one."""
    return {"passkeys": passkeys.passkeys_of(user), "asked": passkeys.begin(user) if place() else None}


@require_POST
def add(request: HttpRequest) -> HttpResponse:
    """Asks for the password: a browser left open is not enough."""
    user = cast(User, request.user)
    if problem := _passkey_problem(request, user):
        messages.error(request, problem)
    return redirect("account:second_factor")


def _passkey_problem(request: HttpRequest, user: User) -> str:
    """Adds the passkey. Returns what is wrong, "" when nothing is."""
    name, address = f"passkey {user.username}", request.META.get("REMOTE_ADDR", "")
    if not second_factor.is_on(user):
        return "Reload the page and try again."
    if not throttle.may_try(name, address):
        return "Too many wrong passwords. Wait a minute and try again."
    if not user.check_password(request.POST.get("password", "")):
        return "That is not your password; no passkey was added."
    throttle.succeeded(name, address)
    called, answer = request.POST.get("name", "").strip()[:60], request.POST.get("answer", "")
    try:
        made = passkeys.add(user, name=called, answer=answer)
    except passkeys.PasskeyError as error:
        return str(error)
    logger.warning("%s added the passkey %s", user.username, made.pk)
    messages.success(request, f"“{made}” signs you in from now on, in place of a code.")
    return ""


@require_POST
def remove(request: HttpRequest) -> HttpResponse:
    """Sign-in still asks for a code without the passkey."""
    user = cast(User, request.user)
    key = request.POST.get("passkey", "")
    gone, _ = passkeys.passkeys_of(user).filter(pk=int(key) if key.isdecimal() and len(key) < 19 else 0).delete()
    if gone:
        logger.warning("%s removed the passkey %s", user.username, key)
        messages.success(request, "It signs nobody in any more.")
    return redirect("account:second_factor")
