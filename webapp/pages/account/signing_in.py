"""The steps of signing in that the password's page and the code's page share."""

from __future__ import annotations

import time

from django.http import HttpRequest, HttpResponseRedirect
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme

from webapp.accounts.models import User

PASSED = "password_passed"  # in a browser's session: whose password was right, when, and where to next


def ask_for_code(request: HttpRequest, user: User, target: str) -> HttpResponseRedirect:
    """Remembers that the password was right; nobody is signed in before the code is."""
    request.session.cycle_key()
    request.session[PASSED] = {"user": user.pk, "at": int(time.time()), "next": target}
    return redirect("account:code")


def following(request: HttpRequest, target: str) -> HttpResponseRedirect:
    """To where the person was going, if that is a page of ours."""
    if url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()):
        return HttpResponseRedirect(target)
    return HttpResponseRedirect("/")
