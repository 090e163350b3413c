"""The second factor: a code of an authenticator (TOTP, RFC 6238) or, once each, a recovery code.

Secrets are sealed in the database and recovery codes are hashes, so that a copy of it signs nobody in.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
import uuid
from datetime import timedelta

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.db import transaction
from django.db.models import Case, F, Q, Value, When
from django.utils import timezone

from webapp.accounts.models import Authenticator, Passkey, RecoveryCode, User
from webapp.triage import sealing

# What every authenticator app takes: RFC 6238 with 20 bytes, 6 digits, 30 s; a clock may be 30 s off.
SECRET_BYTES, DIGITS, STEP_S, OFF_BY = 20, 6, 30, 1
# Three codes of a million count at any time: five tries, then four an hour, keep guessing below
# 0.03 % a day.
TRIES, WAIT = 5, timedelta(minutes=15)
RECOVERY_CODES = 10
_RECOVERY_BYTES = 10  # 80 bits, out of reach of trying all against their hashes


class MustWaitError(Exception):
    """Too many wrong codes; nothing is looked at now."""

    def __init__(self) -> None:
        super().__init__("Too many wrong codes. Wait 15 minutes and try again.")


def is_on(user: User) -> bool:
    return Authenticator.objects.filter(user=user).exclude(confirmed_at=None).exists()


def begin(user: User) -> Authenticator:
    """A fresh secret that counts from when its first code is given; one that counts already stays.

    Raises sealing.SealError.
    """
    row_id, secret = uuid.uuid4(), secrets.token_bytes(SECRET_BYTES)
    key_id, sealed = sealing.keyring().seal(secret, str(row_id))
    with transaction.atomic():
        Authenticator.objects.filter(user=user, confirmed_at=None).delete()
        made, _ = Authenticator.objects.get_or_create(
            user=user, defaults={"id": row_id, "sealed": sealed, "key_id": key_id}
        )
    return made


def text_secret(authenticator: Authenticator) -> str:
    """For typing: base32 in groups of four."""
    text = base64.b32encode(_secret(authenticator)).decode()
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))


def address(authenticator: Authenticator) -> str:
    """The otpauth:// address that a QR code holds."""
    return _totp(authenticator).get_provisioning_uri(authenticator.user.username, "Peerpath")


def confirm(user: User, code: str) -> list[str] | None:
    """Turns it on and returns the recovery codes, which are stored nowhere; None: the code is wrong.

    Raises MustWaitError, sealing.SealError.
    """
    waiting = Authenticator.objects.filter(user=user, confirmed_at=None).first()
    if waiting is None or not _takes(waiting, code):
        return None
    with transaction.atomic():
        Authenticator.objects.filter(pk=waiting.pk).update(confirmed_at=timezone.now())
        return _new_recovery_codes(user)


def accepts(user: User, code: str) -> bool:
    """Whether this code, never used before, is the person's. Raises MustWaitError, sealing.SealError."""
    found = Authenticator.objects.filter(user=user).exclude(confirmed_at=None).first()
    return found is not None and _takes(found, code)


def turn_off(user: User) -> bool:
    """False when it was off."""
    with transaction.atomic():
        RecoveryCode.objects.filter(user=user).delete()
        Passkey.objects.filter(user=user).delete()
        gone, _ = Authenticator.objects.filter(user=user).delete()
    return bool(gone)


def recovery_codes_left(user: User) -> int:
    return RecoveryCode.objects.filter(user=user, used_at=None).count()


def _takes(authenticator: Authenticator, code: str) -> bool:
    """Counts the try before it is looked at, so that many at once are not more than one by one."""
    now = timezone.now()
    free = Q(wait_until=None) | Q(wait_until__lte=now)
    counted = Authenticator.objects.filter(free, pk=authenticator.pk).update(
        wrong=F("wrong") + 1, wait_until=Case(When(wrong__gte=TRIES - 1, then=Value(now + WAIT)), default=None)
    )
    if not counted:
        raise MustWaitError
    right = _is_current(authenticator, code) or _is_recovery(authenticator.user, code)
    if right:
        Authenticator.objects.filter(pk=authenticator.pk).update(wrong=0, wait_until=None)
    return right


def _is_current(authenticator: Authenticator, code: str) -> bool:
    code = "".join(code.split())
    if len(code) != DIGITS or not (code.isascii() and code.isdigit()):
        return False
    totp, now = _totp(authenticator), int(time.time()) // STEP_S
    for step in range(now - OFF_BY, now + OFF_BY + 1):
        if secrets.compare_digest(totp.generate(step * STEP_S), code.encode()):
            # Of two who send the same code, one is let in; no code counts twice.
            later = Authenticator.objects.filter(pk=authenticator.pk, last_step__lt=step)
            return bool(later.update(last_step=step))
    return False


def _is_recovery(user: User, code: str) -> bool:
    return bool(RecoveryCode.objects.filter(user=user, sha256=_hash(code), used_at=None).update(used_at=timezone.now()))


def _new_recovery_codes(user: User) -> list[str]:
    codes = [_recovery_code() for _ in range(RECOVERY_CODES)]
    RecoveryCode.objects.filter(user=user).delete()
    RecoveryCode.objects.bulk_create(RecoveryCode(user=user, sha256=_hash(c)) for c in codes)
    return codes


def _recovery_code() -> str:
    text = base64.b32encode(secrets.token_bytes(_RECOVERY_BYTES)).decode().lower()
    return "-".join(text[at : at + 4] for at in range(0, len(text), 4))


def _hash(code: str) -> str:
    plain = "".join(c for c in code.lower() if c.isalnum())
    return hashlib.sha256(plain.encode()).hexdigest()


def _totp(authenticator: Authenticator) -> TOTP:
    # SHA-1 is what RFC 6238 and the apps use; HMAC with it is not broken by collisions.
    return TOTP(_secret(authenticator), DIGITS, SHA1(), STEP_S)  # noqa: S303


def _secret(authenticator: Authenticator) -> bytes:
    ring = sealing.keyring()
    return ring.open(authenticator.key_id, authenticator.sealed, str(authenticator.pk))
