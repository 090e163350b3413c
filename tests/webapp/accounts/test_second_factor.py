"""The second factor, from turning it on to losing it."""

from __future__ import annotations

import base64
import re
import time
from datetime import timedelta

import pytest
from allauth.mfa.models import Authenticator
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.contrib.auth import SESSION_KEY
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from tests.pages import html_of
from webapp import sealing
from webapp.accounts import second_factor
from webapp.accounts.models import Tally, User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock_in_mid_step")]
PAGE, CODE = "/account/second-factor", "/sign-in/code"
SIGN_IN = {"username": "alice", "password": "alice-secret-1"}


def shown_by_phone(secret: str, steps_away: int = 0) -> str:
    """As an authenticator app computes it from the text that the page shows."""
    key = base64.b32decode(secret.replace(" ", ""))
    return TOTP(key, 6, SHA1(), 30).generate(int(time.time()) + 30 * steps_away).decode()


@pytest.fixture
def secret_and_codes(client: Client, alice: User) -> tuple[str, list[str]]:
    """Alice's second factor, turned on by way of the page with the code before this one."""
    client.force_login(alice)
    page = html_of(client.get(PAGE))
    assert "<svg" in page
    secret = re.search(r'class="secret">([A-Z2-7 ]+)<', page)
    assert secret is not None
    answer = client.post(PAGE, {"code": shown_by_phone(secret[1], -1)})
    codes = re.findall(r"^(?:.*>)?((?:[a-z2-7]{4}-){3}[a-z2-7]{4})", html_of(answer), re.M)
    assert len(codes) == 10
    client.logout()
    return secret[1], codes


def waited(key: str) -> None:
    """As if the time had gone by until tries are counted from the first again."""
    past = timezone.now() - timedelta(seconds=1)
    Tally.objects.filter(key__startswith=key).update(ends_at=past)


def signed_in(client: Client) -> bool:
    return SESSION_KEY in client.session


def test_a_password_alone_is_not_enough_any_more(client: Client, secret_and_codes: tuple[str, list[str]]) -> None:
    answer = client.post("/sign-in", {**SIGN_IN, "next": "/decisions"})
    assert (answer.status_code, answer["Location"]) == (302, CODE)
    assert not signed_in(client)
    assert client.get("/decisions").status_code == 302
    answer = client.post(CODE, {"code": shown_by_phone(secret_and_codes[0])})
    assert (answer.status_code, answer["Location"]) == (302, "/decisions")
    assert signed_in(client)


def test_a_code_counts_once(client: Client, secret_and_codes: tuple[str, list[str]]) -> None:
    code = shown_by_phone(secret_and_codes[0])
    for expected in (True, False):
        client.post("/sign-in", SIGN_IN)
        client.post(CODE, {"code": code})
        assert signed_in(client) is expected
        client.logout()
        cache.clear()  # as when this process ends, or another one is asked


def test_a_recovery_code_counts_once(client: Client, secret_and_codes: tuple[str, list[str]]) -> None:
    code = secret_and_codes[1][3].upper().replace("-", " ")
    for expected in (True, False):
        client.post("/sign-in", SIGN_IN)
        assert client.post(CODE, {"code": code}).status_code == (302 if expected else 403)
        assert signed_in(client) is expected
        client.logout()
    assert second_factor.recovery_codes_left(User.objects.get()) == 9


def test_guessing_is_stopped_even_for_the_right_code(client: Client, secret_and_codes: tuple[str, list[str]]) -> None:
    client.post("/sign-in", SIGN_IN)
    right = shown_by_phone(secret_and_codes[0])
    taken = {shown_by_phone(secret_and_codes[0], step) for step in (-1, 0, 1)}
    wrong = next(code for code in ("000000", "111111", "222222", "333333") if code not in taken)
    said = [client.post(CODE, {"code": wrong}).status_code for _ in range(6)]
    assert said == [403] * 5 + [429]
    assert client.post(CODE, {"code": right}).status_code == 429
    assert client.post(CODE, {"code": secret_and_codes[1][0]}).status_code == 429
    waited("code:900:")
    assert client.post(CODE, {"code": wrong}).status_code == 403
    assert client.post(CODE, {"code": right}).status_code == 302


def test_a_day_of_guessing_is_a_hundred_tries(client: Client, secret_and_codes: tuple[str, list[str]]) -> None:
    statuses = []
    for _ in range(21):
        client.post("/sign-in", SIGN_IN)
        statuses += [client.post(CODE, {"code": "none"}).status_code for _ in range(5)]
        waited("code:900:")
    assert statuses == [403] * 100 + [429] * 5
    waited("code:86400:")
    assert client.post(CODE, {"code": shown_by_phone(secret_and_codes[0])}).status_code == 302


@pytest.mark.parametrize("code", ["", "12345", "1234567", "０１２３４５", "abcdef", "\x00", "-" * 60])
def test_what_is_no_code_lets_nobody_in(client: Client, secret_and_codes: tuple[str, list[str]], code: str) -> None:
    client.post("/sign-in", SIGN_IN)
    assert client.post(CODE, {"code": code}).status_code == 403
    assert not signed_in(client)


def test_the_code_page_needs_a_password_given_just_now(client: Client, secret_and_codes: tuple[str, list[str]]) -> None:
    code = shown_by_phone(secret_and_codes[0])
    assert client.post(CODE, {"code": code})["Location"] == "/sign-in"
    client.post("/sign-in", SIGN_IN)
    session = client.session
    session["password_passed"] = {**session["password_passed"], "at": int(time.time()) - 301}
    session.save()
    assert client.post(CODE, {"code": code})["Location"] == "/sign-in"
    assert not signed_in(client)


def test_an_account_that_was_closed_meanwhile_stays_out(
    client: Client, secret_and_codes: tuple[str, list[str]], alice: User
) -> None:
    client.post("/sign-in", SIGN_IN)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert client.post(CODE, {"code": shown_by_phone(secret_and_codes[0])})["Location"] == "/sign-in"


def test_it_is_off_until_its_first_code(client: Client, alice: User) -> None:
    client.force_login(alice)
    first, again = (re.findall(rb'class="secret">(.*?)<', client.get(PAGE).content) for _ in range(2))
    assert first == again != []
    assert client.post(PAGE, {"code": "12345"}).status_code == 403
    assert not second_factor.is_on(alice)
    client.logout()
    client.post("/sign-in", SIGN_IN)
    assert signed_in(client)


def test_nothing_in_the_database_lets_anybody_in(secret_and_codes: tuple[str, list[str]], alice: User) -> None:
    rows = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {table}")
            rows.append(str(cursor.fetchall()))
    dump = "\n".join(rows)
    assert str(alice.username) in dump
    for secret in (secret_and_codes[0], *secret_and_codes[1]):
        plain = secret.replace(" ", "").replace("-", "")
        assert plain.lower() not in dump.lower().replace("-", "")


def test_a_change_of_keys_takes_it_along(client: Client, secret_and_codes: tuple[str, list[str]], alice: User) -> None:
    before = sealing.keyring()
    call_command("rotate_keys")
    assert before.primary not in str(list(Authenticator.objects.values_list("data", flat=True)))
    client.post("/sign-in", SIGN_IN)
    assert client.post(CODE, {"code": shown_by_phone(secret_and_codes[0])}).status_code == 302


def test_turning_it_off_takes_the_password(
    client: Client, secret_and_codes: tuple[str, list[str]], alice: User
) -> None:
    client.force_login(alice)
    client.post(f"{PAGE}/off", {"password": "wrong"})
    assert second_factor.is_on(alice)
    client.post(f"{PAGE}/off", {"password": SIGN_IN["password"]})
    assert not second_factor.is_on(alice)
    assert not Authenticator.objects.exists()


def test_an_administrator_resets_it_and_nobody_else(
    client: Client, secret_and_codes: tuple[str, list[str]], alice: User, bob: User, carol: User
) -> None:
    client.force_login(carol)
    client.post("/people/second-factor", {"person": "alice", "confirm": "bob"})
    assert second_factor.is_on(alice)
    for user, left in ((bob, True), (alice, True), (carol, False)):
        client.force_login(user)
        answer = client.post("/people/second-factor", {"person": "alice", "confirm": "alice"})
        assert answer.status_code == (302 if user == carol else 403)
        assert second_factor.is_on(alice) is left
    assert b"Reset it" not in client.get("/people").content


def test_another_secret_takes_turning_it_off(
    client: Client, secret_and_codes: tuple[str, list[str]], alice: User
) -> None:
    before = list(Authenticator.objects.order_by("pk").values_list("data", flat=True))
    client.force_login(alice)
    assert b"<svg" not in client.get(PAGE).content
    client.post(PAGE, {"code": shown_by_phone(secret_and_codes[0])})
    assert list(Authenticator.objects.order_by("pk").values_list("data", flat=True)) == before
