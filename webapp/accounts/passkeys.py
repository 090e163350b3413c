"""Passkeys (WebAuthn, by py_webauthn) in place of the six digits, once the second factor is on.

A browser gives them to https and to localhost alone, and never for a numeric address.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone
from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    options_to_json,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    UserVerificationRequirement,
)

from webapp.accounts.models import Passkey, User

T = TypeVar("T")
MOST, LONGEST_ANSWER = 10, 20_000
# The password was given already: that the person is there is enough.
_VERIFIED = UserVerificationRequirement.DISCOURAGED


class PasskeyError(Exception):
    """Why it was not taken, in words for the page."""


@dataclass(frozen=True, slots=True)
class Asked:
    """options: JSON for the browser. challenge: what its answer has to be of, base64url."""

    options: str
    challenge: str


def place() -> str:
    """The name that passkeys are bound to, of PEERPATH_PUBLIC_URL; "" where browsers give none."""
    parts = urlsplit(settings.PUBLIC_URL)
    host = parts.hostname or ""
    try:
        ip_address(host)
    except ValueError:
        return host if parts.scheme == "https" or host == "localhost" else ""
    return ""


def begin(user: User) -> Asked:
    """For a new one."""
    made = generate_registration_options(
        rp_id=place(),
        rp_name="Peerpath",
        user_name=user.username,
        user_id=f"peerpath-{user.pk}".encode(),
        authenticator_selection=AuthenticatorSelectionCriteria(user_verification=_VERIFIED),
        exclude_credentials=_known(user),
    )
    return Asked(options_to_json(made), bytes_to_base64url(made.challenge))


def add(user: User, *, name: str, answer: str, challenge: str) -> Passkey:
    """Raises PasskeyError."""
    if user.passkeys.count() >= MOST:
        raise PasskeyError(f"There are {MOST}; remove one first.")
    verified = _checked(
        lambda: verify_registration_response(
            credential=_read(answer),
            expected_challenge=base64url_to_bytes(challenge),
            expected_rp_id=place(),
            expected_origin=_origin(),
        )
    )
    key_id = bytes_to_base64url(verified.credential_id)
    made, fresh = Passkey.objects.get_or_create(
        credential=key_id,
        defaults={
            "user": user,
            "name": name or "passkey",
            "public_key": verified.credential_public_key,
            "uses": verified.sign_count,
        },
    )
    if not fresh:
        raise PasskeyError("That one is known already.")
    return made


def ask(user: User) -> Asked | None:
    """For signing in; None where the person has none, or browsers give none to this address."""
    known = _known(user)
    if not known or not place():
        return None
    made = generate_authentication_options(rp_id=place(), allow_credentials=known, user_verification=_VERIFIED)
    return Asked(options_to_json(made), bytes_to_base64url(made.challenge))


def accepts(user: User, *, answer: str, challenge: str) -> bool:
    """Whether it is an answer to this challenge by a passkey of this person."""
    try:
        sent = _read(answer)
        found = user.passkeys.get(credential=str(sent.get("id", ""))[:1000])
        verified = _checked(
            lambda: verify_authentication_response(
                credential=sent,
                expected_challenge=base64url_to_bytes(challenge),
                expected_rp_id=place(),
                expected_origin=_origin(),
                credential_public_key=bytes(found.public_key),
                credential_current_sign_count=found.uses,
            )
        )
    except (PasskeyError, Passkey.DoesNotExist):
        return False
    used = {"uses": verified.new_sign_count, "used_at": timezone.now()}
    # Of two answers at once by a passkey that counts, one is let in.
    return bool(Passkey.objects.filter(pk=found.pk, uses=found.uses).update(**used))


def _known(user: User) -> list[PublicKeyCredentialDescriptor]:
    keys = user.passkeys.values_list("credential", flat=True)
    return [PublicKeyCredentialDescriptor(id=base64url_to_bytes(key)) for key in keys]


def _origin() -> str:
    parts = urlsplit(settings.PUBLIC_URL)
    return f"{parts.scheme}://{parts.netloc}"


def _read(answer: str) -> dict[str, Any]:
    try:
        sent = json.loads(answer[:LONGEST_ANSWER])
    except (ValueError, RecursionError) as error:
        raise PasskeyError("The browser sent no answer; try again.") from error
    return sent if isinstance(sent, dict) else {}


def _checked(check: Callable[[], T]) -> T:
    """Raises PasskeyError for what does not verify, or is no base64url."""
    try:
        return check()
    except (WebAuthnException, ValueError) as error:
        raise PasskeyError("That answer does not verify; try again.") from error
