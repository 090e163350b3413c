"""The second factor: a code of an authenticator (TOTP, RFC 6238) or, once each, a recovery code, by django-allauth.

Secrets are sealed in the database and recovery codes are hashes, so that a copy of it signs nobody in.
"""

import base64
import hashlib
import secrets

from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from allauth.mfa.utils import decrypt, encrypt
from django.contrib.sessions.backends.base import SessionBase
from django.db import transaction

from webapp import sealing
from webapp.accounts.models import Tally, User

# Three codes of a million count at any time: a hundred tries a day keep guessing below 0.03 % a day.
LIMITS = ((5, 15 * 60), (100, 24 * 3600))  # tries, in how many seconds
_USED_S = 90  # a code is right for three steps of 30 s
RECOVERY_CODES = 10
_RECOVERY_BYTES = 10  # 80 bits, out of reach of trying all against their hashes
_PENDING = "second_factor_secret"  # in a browser's session, sealed, until its first code is given
Type = Authenticator.Type


class MustWaitError(Exception):
    """Too many wrong codes; nothing is looked at now."""

    def __init__(self) -> None:
        super().__init__("Too many wrong codes. Wait 15 minutes and try again.")


def is_on(user: User) -> bool:
    return bool(Authenticator.objects.filter(user=user, type=Type.TOTP).exists())


def begin(session: SessionBase) -> str:
    """A fresh secret, base32, that counts from when its first code is given; the same until then.

    Raises sealing.SealError.
    """
    try:
        return str(decrypt(session[_PENDING]))
    except (KeyError, sealing.SealError):  # none yet, or of a key that was taken out
        secret = str(generate_totp_secret())
        session[_PENDING] = encrypt(secret)
        return secret


def address(user: User, secret: str) -> str:
    """The otpauth:// address that a QR code holds."""
    return str(get_adapter().build_totp_url(user, secret))


def confirm(user: User, session: SessionBase, code: str) -> list[str] | None:
    """Turns it on and returns the recovery codes, which are stored nowhere; None: the code is wrong.

    Raises MustWaitError, sealing.SealError.
    """
    _count_try(user)
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)  # of two at once, one turns it on
        if is_on(user) or not _accepts_code(TOTP.activate(user, begin(session)).instance, _code_key(code)):
            transaction.set_rollback(True)
            return None
        codes = _new_recovery_codes(user)
    _forget_tries(user)
    del session[_PENDING]
    return codes


def accepts(user: User, code: str) -> bool:
    """Whether this code, never used before, is the person's. Raises MustWaitError, sealing.SealError."""
    _count_try(user)
    for stored in Authenticator.objects.filter(user=user, type__in=(Type.TOTP, Type.RECOVERY_CODES)):
        if _accepts_code(stored, _code_key(code)):
            stored.record_usage()
            _forget_tries(user)
            return True
    return False


def turn_off(user: User) -> bool:
    """Also deletes passkeys and recovery codes. False when it was off."""
    removed, _ = Authenticator.objects.filter(user=user).delete()
    return bool(removed)


def recovery_codes_left(user: User) -> int:
    stored = Authenticator.objects.filter(user=user, type=Type.RECOVERY_CODES).first()
    return len(stored.data["migrated_codes"]) if stored else 0


def hashes_of_codes(hashes: list[str]) -> dict[str, object]:
    """Recovery codes that allauth did not make, in the form that it stores; it decrypts and compares them."""
    return {"migrated_codes": [encrypt(text) for text in hashes], "used_mask": 0}


def _count_try(user: User) -> None:
    """Before the code is looked at, so that many at once are not more than one by one. Raises MustWaitError."""
    if not all(Tally.counts(f"code:{wait_s}:{user.pk}", most=most, wait_s=wait_s) for most, wait_s in LIMITS):
        raise MustWaitError


def _forget_tries(user: User) -> None:
    for _, wait_s in LIMITS:
        Tally.start_again(f"code:{wait_s}:{user.pk}")


def _accepts_code(stored: Authenticator, code: str) -> bool:
    """allauth remembers used codes in this process alone, until it ends; the tally, for all."""
    used = f"code-used:{stored.user_id}:{_hash(code)[:40]}"
    return bool(stored.wrap().validate_code(code)) and Tally.counts(used, most=1, wait_s=_USED_S)


def _code_key(code: str) -> str:
    """Digits as they are; of a recovery code, which has letters, the hash that is stored."""
    plain = "".join(c for c in code.lower() if c.isalnum())
    return plain if plain.isdigit() else _hash(plain)


def _new_recovery_codes(user: User) -> list[str]:
    codes = [base64.b32encode(secrets.token_bytes(_RECOVERY_BYTES)).decode().lower() for _ in range(RECOVERY_CODES)]
    data = hashes_of_codes([_hash(code) for code in codes])
    Authenticator.objects.update_or_create(user=user, type=Type.RECOVERY_CODES, defaults={"data": data})
    return ["-".join(code[at : at + 4] for at in range(0, len(code), 4)) for code in codes]


def _hash(plain: str) -> str:
    return hashlib.sha256(plain.encode()).hexdigest()
