"""“Your account”: password, e-mail, and the tokens that act as this person."""

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts import second_factor, throttle
from webapp.accounts.models import ApiToken, User
from webapp.pages.account.confirmation import typed
from webapp.pages.account.forms import EmailForm, PasswordForm, TokenForm

MOST_TOKENS = 50  # valid at once; more means that a program makes them in a loop


@require_safe
def account(request: HttpRequest) -> HttpResponse:
    return _page(request)


def _page(request: HttpRequest, status: int = 200, **more: Any) -> HttpResponse:
    """more: bound forms, or a new token's text, which no other page shows."""
    user = cast(User, request.user)
    context = {
        "nav": "account",
        "password_form": PasswordForm(user),
        "email_form": EmailForm(initial={"email": user.email}),
        "second_factor": second_factor.is_on(user),
        "token_form": TokenForm(),
        "tokens": [token for token in user.api_tokens.all() if token.is_good],
        **more,
    }
    return TemplateResponse(request, "account/account.html", context, status=status)


@never_cache
@require_POST
def password(request: HttpRequest) -> HttpResponse:
    """Asks for the old password, at the same pace as sign-in, and signs out every other browser."""
    user, address = cast(User, request.user), request.META.get("REMOTE_ADDR", "")
    if not throttle.may_try(user.username, address):
        messages.error(request, "Too many wrong passwords. Wait a minute and try again.")
        return _page(request, 429)
    form = PasswordForm(user, request.POST)
    if not form.is_valid():
        return _page(request, 422, password_form=form)
    throttle.succeeded(user.username, address)
    update_session_auth_hash(request, form.save())
    messages.success(request, "Your password is changed; you are signed out everywhere else.")
    return redirect("account:account")


@require_POST
def email(request: HttpRequest) -> HttpResponse:
    user, form = cast(User, request.user), EmailForm(request.POST)
    if not form.is_valid():
        return _page(request, 422, email_form=form)
    user.email = form.cleaned_data["email"]
    user.save(update_fields=["email"])
    messages.success(request, "Kept.")
    return redirect("account:account")


@never_cache
@require_POST
def make_token(request: HttpRequest) -> HttpResponse:
    """Only the answer to this request shows the token's text."""
    user = cast(User, request.user)
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _page(request, 422, token_form=form)
    if sum(token.is_good for token in user.api_tokens.all()) >= MOST_TOKENS:
        messages.error(request, f"You have {MOST_TOKENS} tokens; revoke those that nothing uses.")
        return _page(request, 409)
    _, text = ApiToken.make(user, **form.cleaned_data)
    return _page(request, made=text)


@require_POST
def revoke_token(request: HttpRequest, handle: str) -> HttpResponse:
    user = cast(User, request.user)
    token = get_object_or_404(user.api_tokens, handle=handle)
    if typed(request, token.name, "revoke it"):
        token.revoke()
        messages.success(request, f"“{token.name}” opens nothing any more.")
    return redirect("account:account")
