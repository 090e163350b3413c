"""Passkeys (WebAuthn, by django-allauth) in place of the six digits, once the second factor is on."""

import json
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.forms import AddWebAuthnForm, AuthenticateWebAuthnForm
from allauth.mfa.webauthn.internal import auth
from django import forms
from django.db.models import QuerySet

from webapp.accounts.models import User
from webapp.accounts.passkey_domain import origin, place

MOST, LONGEST_ANSWER = 10, 20_000


class PasskeyError(Exception):
    """Why it was not taken, in words for the page."""


class _Answer(forms.JSONField):
    """Of this address alone: allauth would take any port and any name below it."""

    def to_python(self, value: Any) -> Any:
        try:
            answer = super().to_python(value[:LONGEST_ANSWER])
            client = json.loads(auth.websafe_decode(answer["response"]["clientDataJSON"]))
            ours = client["origin"] == origin()
        except (ValueError, RecursionError, TypeError, KeyError) as error:
            raise forms.ValidationError("The browser sent no answer; try again.") from error
        if not ours:
            raise forms.ValidationError("That answer does not verify; try again.")
        return answer


class _AddForm(AddWebAuthnForm):  # type: ignore[misc]  # allauth has no types
    credential = _Answer()


class _UseForm(AuthenticateWebAuthnForm):  # type: ignore[misc]
    credential = _Answer()

    def clean_credential(self) -> Authenticator:
        """A key's count may not go back (allauth does not look at it), and of two answers at once one is let in."""
        answer = self.cleaned_data["credential"]
        key = super().clean_credential()
        count = auth.parse_authentication_response(answer).response.authenticator_data.counter
        before = key.data["uses"]
        fresh = count > before or count == before == 0
        key.data["uses"] = count
        if not fresh or not Authenticator.objects.filter(pk=key.pk, data__uses=before).update(data=key.data):
            raise forms.ValidationError("That answer does not verify; try again.")
        return key


def passkeys_of(user: User) -> QuerySet[Any]:
    rows: QuerySet[Any] = Authenticator.objects.filter(user=user, type=Authenticator.Type.WEBAUTHN)
    return rows.order_by("id")


def begin(user: User) -> str:
    """The browser's options for a new passkey, as JSON; the challenge is stored in the browser's session."""
    return json.dumps(auth.begin_registration(user, passwordless=False)["publicKey"])


def add(user: User, *, name: str, answer: str) -> Authenticator:
    """Raises PasskeyError."""
    if passkeys_of(user).count() >= MOST:
        raise PasskeyError(f"There are {MOST}; remove one first.")
    form = _AddForm({"name": name or "passkey", "credential": answer}, user=user)
    try:
        valid = form.is_valid()
    finally:
        auth.clear_state()
    if not valid:
        raise PasskeyError("That answer does not verify; try again.")
    credential = form.cleaned_data["credential"]
    if Authenticator.objects.filter(data__credential__id=credential["id"]).exists():
        raise PasskeyError("That one is known already.")
    key = auth.WebAuthn.add(user, form.cleaned_data["name"], credential)
    key.instance.data["uses"] = key.authenticator_data.counter
    key.instance.save(update_fields=["data"])
    return key.instance


def ask(user: User) -> str | None:
    """As `begin`, for signing in; None where the person has none, or browsers give none to this address."""
    if not place() or not passkeys_of(user).exists():
        return None
    return json.dumps(auth.begin_authentication(user)["publicKey"])


def accepts(user: User, answer: str) -> bool:
    """Whether it is an answer to this browser's challenge, asked once, by a passkey of this person."""
    form = _UseForm({"credential": answer}, user=user)
    try:
        if not form.is_valid():
            return False
    finally:
        auth.clear_state()
    form.cleaned_data["credential"].record_usage()
    return True
