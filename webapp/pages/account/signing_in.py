"""Steps of signing in that the password page and the code page share."""

import time

from django.http import HttpRequest, HttpResponseRedirect
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme

from webapp.accounts.models import User

PASSED = "password_passed"  # browser session key: the person whose password was right, the time, the next page


def ask_for_code(request: HttpRequest, user: User, target: str) -> HttpResponseRedirect:
    """Remembers that the password was right; the code alone signs the person in."""
    request.session.cycle_key()
    request.session[PASSED] = {"user": user.pk, "at": int(time.time()), "next": target}
    return redirect("account:code")


def following(request: HttpRequest, target: str) -> HttpResponseRedirect:
    """Redirects to the page that the person wanted, if it is one of ours."""
    if url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()):
        return HttpResponseRedirect(target)
    return HttpResponseRedirect("/")
