"""Who enrolled before django-allauth kept second factors signs in with the same phone, codes and passkey."""

from __future__ import annotations

import base64
import secrets
import uuid
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth import SESSION_KEY
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from fido2.utils import websafe_encode

from tests.webapp.accounts.soft_key import SoftKey
from tests.webapp.accounts.test_second_factor import shown_by_phone
from webapp import sealing
from webapp.accounts import second_factor
from webapp.accounts.models import User
from webapp.accounts.stored_factors import OldFactor, OldPasskey, OldRecoveryCode, carry_over

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock_in_mid_step")]
HERE, CODE = "peerpath.example", "/sign-in/code"
MADE = timezone.now() - timedelta(days=40)
CODES = ("abcd-efgh-2345-mnop", "zyxw-vuts-7654-qrst")


@pytest.fixture(autouse=True)
def _by_https(settings: Any) -> None:
    settings.PUBLIC_URL = f"https://{HERE}"


@pytest.fixture(autouse=True)
def _tables_of_then(db: None) -> None:
    with connection.cursor() as cursor:
        for model in (OldFactor, OldPasskey, OldRecoveryCode):
            sql, _ = connection.schema_editor().table_sql(model)
            cursor.execute(sql)


def enrolled(user: User, confirmed_at: datetime | None = MADE) -> str:
    """A second factor with two recovery codes, one of them used, as it was stored; its secret in base32."""
    row_id, secret = uuid.uuid4(), secrets.token_bytes(20)
    key_id, sealed = sealing.keyring().seal(secret, str(row_id))
    times = {"made_at": MADE, "confirmed_at": confirmed_at}
    OldFactor.objects.create(id=row_id, user_id=user.pk, sealed=sealed, key_id=key_id, **times)
    for code, used_at in zip(CODES, (None, MADE), strict=True):
        hashed = sha256(code.replace("-", "").encode()).hexdigest()
        OldRecoveryCode.objects.create(user_id=user.pk, sha256=hashed, used_at=used_at)
    return base64.b32encode(secret).decode()


def with_passkey(user: User, key: SoftKey) -> None:
    credential = {"credential": websafe_encode(key.id), "public_key": key.public(), "uses": key.uses}
    OldPasskey.objects.create(user_id=user.pk, name="desk", made_at=MADE, used_at=None, **credential)


def password_given(user: User) -> Client:
    browser = Client()
    browser.post("/sign-in", {"username": user.username, "password": f"{user.username}-secret-1"})
    return browser


def lets_in(user: User, code: str) -> bool:
    browser = password_given(user)
    browser.post(CODE, {"code": code})
    return SESSION_KEY in browser.session


def test_the_phone_and_the_codes_left_sign_in(alice: User) -> None:
    secret = enrolled(alice)
    assert carry_over() == 1
    assert second_factor.recovery_codes_left(alice) == 1
    assert SESSION_KEY not in password_given(alice).session
    code = shown_by_phone(secret)
    assert [lets_in(alice, code), lets_in(alice, code)] == [True, False]
    assert [lets_in(alice, CODES[0].upper()), lets_in(alice, CODES[0])] == [True, False]
    assert not lets_in(alice, CODES[1])  # used before
    assert not lets_in(alice, sha256(CODES[1].encode()).hexdigest())


def test_a_passkey_signs_in_and_its_count_goes_on(alice: User) -> None:
    enrolled(alice)
    key = SoftKey(f"https://{HERE}", HERE, uses=41)
    with_passkey(alice, key)
    carry_over()
    browser = password_given(alice)
    browser.post(CODE, {"answer": key.get(browser.get(CODE).context["asked"])})
    assert SESSION_KEY in browser.session
    stored = Authenticator.objects.get(user=alice, type=Authenticator.Type.WEBAUTHN)
    assert (str(stored), stored.data["uses"], stored.created_at) == ("desk", 42, MADE)
    key.uses = 7  # a copy of it
    browser = password_given(alice)
    browser.post(CODE, {"answer": key.get(browser.get(CODE).context["asked"])})
    assert SESSION_KEY not in browser.session


def test_who_never_gave_a_first_code_begins_anew(alice: User, bob: User) -> None:
    enrolled(alice, confirmed_at=None)
    enrolled(bob)
    assert carry_over() == 1
    assert not second_factor.is_on(alice)
    assert SESSION_KEY in password_given(alice).session


def test_it_goes_along_with_a_change_of_keys(alice: User) -> None:
    secret = enrolled(alice)
    carry_over()
    call_command("rotate_keys")
    assert lets_in(alice, shown_by_phone(secret))
    assert lets_in(alice, CODES[0])
