"""Signing in and out, first visits, and who has an account."""

from typing import cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts import administration, second_factor, throttle
from webapp.accounts.administration import OUT, AccountError, account_change, invite
from webapp.accounts.models import OneTimeLink, Role, User
from webapp.pages.account.confirmation import typed
from webapp.pages.account.forms import WelcomeForm
from webapp.pages.account.signing_in import ask_for_code, following


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def welcome(request: HttpRequest, token: str) -> HttpResponse:
    """The page behind a one-time link: the person chooses a name and a password, and is signed in."""
    link = OneTimeLink.find(token)
    if link is None:
        return TemplateResponse(request, "account/link_used.html", {}, status=410)
    form = WelcomeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        user = User(username=form.cleaned_data["username"])
        user.set_password(form.cleaned_data["password"])
        if link.redeem(user):
            login(request, user)
            return redirect("session:start")
        return TemplateResponse(request, "account/link_used.html", {}, status=410)
    return TemplateResponse(request, "account/welcome.html", {"form": form, "link": link})


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    form = AuthenticationForm(request, request.POST or None)
    if request.headers.get("HX-Request"):  # the fragment belongs to a page whose reader is signed out
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
    if request.method != "POST":
        return _sign_in_page(request, AuthenticationForm(request))
    name, address = request.POST.get("username", ""), request.META.get("REMOTE_ADDR", "")
    if not throttle.may_try(name, address):
        # An unbound form: a bound one would check the password to draw itself.
        again = AuthenticationForm(request, initial={"username": name})
        return _sign_in_page(request, again, "Too many wrong passwords. Wait a minute and try again.", 429)
    if not form.is_valid():
        return _sign_in_page(request, form, "That name and password do not go together.", 403)
    throttle.succeeded(name, address)
    user = form.get_user()
    if second_factor.is_on(user):
        return ask_for_code(request, user, request.POST.get("next", ""))
    login(request, user)
    return following(request, request.POST.get("next", ""))


def _sign_in_page(request: HttpRequest, form: AuthenticationForm, problem: str = "", status: int = 200) -> HttpResponse:
    context = {
        "form": form,
        "problem": problem,
        "next": request.POST.get("next") or request.GET.get("next", ""),
        "nobody_yet": not User.objects.exists(),
    }
    return TemplateResponse(request, "account/sign_in.html", context, status=status)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("account:sign_in")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def people(request: HttpRequest) -> HttpResponse:
    """Administrators see every account, change its rights, and make invitations."""
    if not request.user.is_staff:
        raise PermissionDenied
    made = ""
    if request.method == "POST" and request.POST.get("person"):
        _change_account(request)
        return redirect("account:people")
    if request.method == "POST":
        _, made = invite(request.POST.get("role", ""), by=request.user)
        messages.success(request, "The invitation is below; it is shown only now.")
    context = {
        "nav": "people",
        "people": administration.people().order_by("username"),
        "roles": Role.choices,
        "made": made,
        "only_here": "127.0.0.1" in settings.PUBLIC_URL or "localhost" in settings.PUBLIC_URL,
    }
    return TemplateResponse(request, "account/people.html", context)


def _change_account(request: HttpRequest) -> None:
    name, role = request.POST.get("person", ""), request.POST.get("role", "")
    person = administration.people().filter(username=name).first()
    if person is None or role not in {*Role.values, OUT}:
        messages.error(request, "There is no such person or role; reload the page.")
        return
    if role == OUT and not typed(request, name, "shut them out"):
        return
    try:
        account_change(person, role, by=cast(User, request.user).username)
    except AccountError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"{name}: {'no way in any more' if role == OUT else role}.")
