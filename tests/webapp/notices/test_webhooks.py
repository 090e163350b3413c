"""Webhooks against a real receiver: what is sent, how it is proved, and where nothing is sent."""

from __future__ import annotations

import hmac
import json
import socket
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import standardwebhooks
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from tests.pages import html_of
from tests.webapp.notices.conftest import Receiver
from webapp import sealing
from webapp.accounts.models import Role, User
from webapp.notices import webhook_client
from webapp.notices.addresses import AddressError, is_public, place_of, resolve
from webapp.notices.deliveries import PAUSES_S, deliver, due, forget_old
from webapp.notices.fan_out import follow
from webapp.notices.kinds import KINDS
from webapp.notices.models import Delivery, DeliveryState, Webhook
from webapp.notices.webhooks import webhook_add, webhook_remove
from webapp.records.intake import take_text
from webapp.records.models import DiagnosisSession, Event, News
from webapp.records.sessions import member_add, member_remove
from webapp.review.threads import comment_add

pytestmark = pytest.mark.django_db


def proposed(session: DiagnosisSession, by: User) -> Event:
    return Event.record(session, "decision_proposed", by, number=3)


def sent_all(session: DiagnosisSession) -> None:
    for pk in follow(session.pk):
        deliver(pk)


def signed_part(headers: Mapping[str, str], body: bytes) -> bytes:
    return f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body


def wait_over(delivery: Delivery) -> None:
    Delivery.objects.filter(pk=delivery.pk).update(due_at=timezone.now())


def test_a_post_is_signed_and_tells_who_did_what_where(
    receiver: Receiver, session_of_alice: DiagnosisSession, alice: User
) -> None:
    _, secret = webhook_add(session_of_alice, url=receiver.url, kinds=KINDS, by=alice)
    event = proposed(session_of_alice, alice)
    sent_all(session_of_alice)
    ((path, headers, body),) = receiver.got
    assert path == "/hook?to=me"
    told = json.loads(body)
    assert told["text"] == f"alice proposes decision 3 in “{session_of_alice.title}”."
    assert told["url"].endswith(f"/sessions/{session_of_alice.pk}/decisions/3")
    assert (told["kind"], told["event"]) == ("decision_proposed", event.number)
    assert standardwebhooks.Webhook(secret).verify(body, headers) == told
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(secret).verify(body + b" ", headers)
    proof = hmac.digest(b64decode(secret.removeprefix("whsec_")), signed_part(headers, body), "sha256")
    assert headers["webhook-signature"] == f"v1,{b64encode(proof).decode()}"
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.status) == (DeliveryState.DELIVERED, 204)
    assert str(delivery.pk) == headers["webhook-id"]
    assert not News.objects.filter(session=session_of_alice).exists()


def test_only_what_was_chosen_and_only_of_that_session(
    receiver: Receiver, session_of_alice: DiagnosisSession, alice: User, carol: User
) -> None:
    other = DiagnosisSession.objects.create(owner=carol, title="other")
    webhook_add(other, url=receiver.url, kinds=KINDS, by=carol)
    webhook_add(session_of_alice, url=receiver.url, kinds=["host_asked"], by=alice)
    everywhere, _ = webhook_add(None, url=receiver.url, kinds=["decision_proposed"], by=carol)
    proposed(session_of_alice, alice)
    sent_all(session_of_alice)
    assert Delivery.objects.get().webhook == everywhere
    assert len(receiver.got) == 1


def test_following_twice_sends_once(receiver: Receiver, session_of_alice: DiagnosisSession, alice: User) -> None:
    webhook_add(session_of_alice, url=receiver.url, kinds=KINDS, by=alice)
    event = proposed(session_of_alice, alice)
    sent_all(session_of_alice)
    News.objects.create(event=event, session=session_of_alice)  # a worker died before it removed it
    sent_all(session_of_alice)
    for pk in Delivery.objects.values_list("pk", flat=True):
        deliver(pk)
    assert len(receiver.got) == Delivery.objects.count() == 1


def test_it_is_tried_again_with_longer_pauses_and_given_up(
    receiver: Receiver, session_of_alice: DiagnosisSession, alice: User
) -> None:
    receiver.answers = [500]
    webhook_add(session_of_alice, url=receiver.url, kinds=KINDS, by=alice)
    proposed(session_of_alice, alice)
    since = timezone.now()
    sent_all(session_of_alice)
    for number, pause in enumerate(PAUSES_S, 1):
        delivery = Delivery.objects.get()
        assert (delivery.state, delivery.tries) == (DeliveryState.WAITING, number)
        assert delivery.problem == "It answered 500."
        assert since <= delivery.due_at - timedelta(seconds=pause) <= timezone.now()
        deliver(delivery.pk)  # not due: nothing happens
        assert len(receiver.got) == number
        wait_over(delivery)
        assert due(timezone.now(), 9) == [delivery.pk]
        since = timezone.now()
        deliver(delivery.pk)
    assert Delivery.objects.get().state == DeliveryState.FAILED
    assert len({headers["webhook-id"] for _, headers, _ in receiver.got}) == 1
    assert len({body for _, _, body in receiver.got}) == 1


def test_it_arrives_when_the_receiver_is_back(
    receiver: Receiver, session_of_alice: DiagnosisSession, alice: User
) -> None:
    receiver.answers = [503, 200]
    webhook_add(session_of_alice, url=receiver.url, kinds=KINDS, by=alice)
    for _ in range(2):
        proposed(session_of_alice, alice)
    first, second = follow(session_of_alice.pk)
    deliver(first)
    assert Delivery.objects.get(pk=second).due_at > timezone.now()  # it waits along
    for pk in (first, second):
        wait_over(Delivery.objects.get(pk=pk))
        deliver(pk)
    assert set(Delivery.objects.values_list("state", flat=True)) == {DeliveryState.DELIVERED}


def test_a_worker_that_dies_lets_go_and_one_that_comes_late_changes_nothing(
    receiver: Receiver, session_of_alice: DiagnosisSession, alice: User
) -> None:
    webhook_add(session_of_alice, url=receiver.url, kinds=KINDS, by=alice)
    proposed(session_of_alice, alice)
    (pk,) = follow(session_of_alice.pk)
    now = timezone.now()
    Delivery.objects.update(state="sending", tries=1, due_at=now + timedelta(minutes=1))
    assert due(now, 9) == []
    assert due(now + timedelta(minutes=1), 9) == [pk]
    wait_over(Delivery.objects.get())
    deliver(pk)
    assert (Delivery.objects.get().state, Delivery.objects.get().tries) == ("delivered", 2)


def test_a_redirect_is_not_followed(receiver: Receiver, session_of_alice: DiagnosisSession, alice: User) -> None:
    receiver.answers, receiver.location = [307], receiver.url + "&again"
    webhook_add(session_of_alice, url=receiver.url, kinds=KINDS, by=alice)
    proposed(session_of_alice, alice)
    sent_all(session_of_alice)
    assert len(receiver.got) == 1
    assert "a redirect; those are not followed" in Delivery.objects.get().problem


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254", "0.0.0.0"),
        *("100.64.0.1", "192.0.2.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0"),
        *("fc00::1", "::ffff:127.0.0.1", "2002:7f00:1::", "64:ff9b::a00:1", "ff02::1", "junk"),
        *("192.0.0.192", "::127.0.0.1", "64:ff9b:1::7f00:1", "fec0::1", "::ffff:0:127.0.0.1"),
    ],
)
def test_private_addresses_are_none_to_send_to(address: str) -> None:
    assert not is_public(address)


def test_public_addresses_are() -> None:
    assert is_public("1.1.1.1")
    assert is_public("2606:4700:4700::1111")
    assert is_public("64:ff9b::101:101")


@pytest.mark.parametrize(
    "url",
    [
        *("https://127.0.0.1/", "https://localhost/", "https://[::1]/", "https://0x7f000001/"),
        *("https://2130706433/", "https://127.1/", "http://1.1.1.1/", "ftp://1.1.1.1/", "https://"),
        *("https://me:pass@1.1.1.1/", "https://1.1.1.1:99999/", "https://1.1.1.1/a b", "//x"),
        *("https://1.1.1.1/\r\nX: y", "https://no-such-host.invalid/"),
    ],
)
def test_what_leads_nowhere_public_is_refused(url: str) -> None:
    with pytest.raises(AddressError):
        resolve(place_of(url))


def test_a_name_that_has_become_private_gets_nothing(
    receiver: Receiver, session_of_alice: DiagnosisSession, alice: User, settings: Any
) -> None:
    webhook_add(session_of_alice, url=receiver.url, kinds=KINDS, by=alice)
    settings.WEBHOOK_PRIVATE = False
    Webhook.objects.update(url=receiver.url.replace("http:", "https:"))
    proposed(session_of_alice, alice)
    sent_all(session_of_alice)
    assert receiver.got == []
    assert "is not a public address" in Delivery.objects.get().problem


def test_the_name_is_looked_up_once_and_that_address_is_connected_to(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name whose second answer is another machine: the resolver of this test answers once."""
    real, asked = socket.getaddrinfo, []

    def once(host: str, *args: Any, **kwargs: Any) -> Any:
        if host == "rebinding.test":
            asked.append(host)
            return real("127.0.0.1" if len(asked) == 1 else "192.0.2.1", *args, **kwargs)
        return real(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", once)
    message = webhook_client.signed("{}", secret="c2VjcmV0", delivery="d", at=datetime.now(UTC))
    url = receiver.url.replace("127.0.0.1", "rebinding.test")
    assert webhook_client.post(url, message) == 204
    assert asked == ["rebinding.test"]
    assert receiver.got[0][1]["Host"] == f"rebinding.test:{receiver.port}"


def test_an_answer_byte_by_byte_is_cut_off(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.WEBHOOK_PRIVATE = True
    monkeypatch.setattr(webhook_client, "TOTAL_S", 0.5)
    listener = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            for byte in b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000:
                try:
                    connection.sendall(bytes([byte]))
                except OSError:
                    return
                time.sleep(0.05)

    threading.Thread(target=drip, daemon=True).start()
    message = webhook_client.signed("{}", secret="c2VjcmV0", delivery="d", at=datetime.now(UTC))
    begun = time.monotonic()
    with listener, pytest.raises(webhook_client.PostError):
        webhook_client.post(f"http://127.0.0.1:{listener.getsockname()[1]}/", message)
    assert time.monotonic() - begun < 60, "the whole answer takes five minutes"


def test_a_removed_one_gets_nothing_and_its_secret_is_gone(
    receiver: Receiver, session_of_alice: DiagnosisSession, alice: User
) -> None:
    made, _ = webhook_add(session_of_alice, url=receiver.url, kinds=KINDS, by=alice)
    proposed(session_of_alice, alice)
    (pk,) = follow(session_of_alice.pk)
    webhook_remove(made, by=alice)
    deliver(pk)
    assert receiver.got == []
    assert Delivery.objects.get().state == DeliveryState.FAILED
    assert Webhook.objects.get().sealed == ""
    kinds = list(session_of_alice.events.values_list("kind", flat=True))
    assert {"webhook_added", "webhook_removed"} <= set(kinds)


def test_the_secret_is_sealed_and_taken_along_when_keys_change(
    receiver: Receiver, session_of_alice: DiagnosisSession, alice: User
) -> None:
    made, secret = webhook_add(session_of_alice, url=receiver.url, kinds=KINDS, by=alice)
    assert secret not in made.sealed
    call_command("rotate_keys")
    row = Webhook.objects.get()
    assert row.key_id != made.key_id
    assert sealing.keyring().open(row.key_id, row.sealed, str(row.pk)).decode() == secret


def test_what_is_told_holds_neither_outputs_nor_comments(
    receiver: Receiver, session_of_alice: DiagnosisSession, alice: User, bob: User
) -> None:
    member_add(session_of_alice, user=bob, added_by=alice, role=Role.REVIEWER)
    webhook_add(session_of_alice, url=receiver.url, kinds=KINDS, by=alice)
    take_text(session_of_alice, b"$ uname -r\nKANARIENVOGEL\n", user=alice)
    comment_add(session_of_alice, author=alice, text="@bob look at KANARIENVOGEL")
    comment_add(session_of_alice, author=alice, text="nobody is named")
    sent_all(session_of_alice)
    (body,) = [body for _, _, body in receiver.got]
    assert json.loads(body)["kind"] == "mention"
    assert b"KANARIENVOGEL" not in body


def test_what_ended_a_month_ago_is_forgotten(
    receiver: Receiver, session_of_alice: DiagnosisSession, alice: User
) -> None:
    webhook_add(session_of_alice, url=receiver.url, kinds=KINDS, by=alice)
    proposed(session_of_alice, alice)
    sent_all(session_of_alice)
    now = timezone.now()
    assert forget_old(now + timedelta(days=29)) == 0
    assert forget_old(now + timedelta(days=31)) == 1


def test_the_page_shows_the_secret_once_and_addresses_to_operators_alone(
    receiver: Receiver, session_of_alice: DiagnosisSession, alice: User, bob: User, client: Client
) -> None:
    member_add(session_of_alice, user=bob, added_by=alice, role=Role.VIEWER)
    page = f"/sessions/{session_of_alice.pk}/webhooks"
    client.force_login(alice)
    answer = client.post(page, {"url": receiver.url, "kinds": ["mention", "junk"]})
    assert b"whsec_" in answer.content
    again = client.get(page).content
    assert b"whsec_" not in again
    assert b"/hook?to=me" in again
    assert Webhook.objects.get().kinds == ["mention"]
    client.force_login(bob)
    seen = client.get(page).content
    assert b"127.0.0.1" in seen
    assert b"/hook?to=me" not in seen
    assert client.post(page, {"url": receiver.url, "kinds": ["mention"]}).status_code == 403
    client.force_login(alice)
    remove = f"{page}/{Webhook.objects.get().pk}/remove"
    client.post(remove)
    assert Webhook.objects.get().removed_at is None
    client.post(remove, {"confirm": "127.0.0.1"})
    assert Webhook.objects.get().removed_at is not None


@pytest.mark.parametrize(
    ("url", "kinds", "advice"),
    [
        ("https://10.1.2.3/", ["mention"], "not a public address"),
        ("https://1.1.1.1/", [], "at least one kind"),
        ("https://1.1.1.1/" + "x" * 500, ["mention"], "at most 500"),
    ],
)
def test_what_is_refused_is_told_and_kept_to_be_mended(
    session_of_alice: DiagnosisSession, alice: User, client: Client, url: str, kinds: list[str], advice: str
) -> None:
    client.force_login(alice)
    page = f"/sessions/{session_of_alice.pk}/webhooks"
    said = html_of(client.post(page, {"url": url, "kinds": kinds}))
    assert advice in said
    assert url in said
    assert not Webhook.objects.exists()


def test_those_of_all_sessions_are_for_administrators(receiver: Receiver, carol: User, client: Client) -> None:
    client.force_login(carol)
    client.post("/webhooks", {"url": receiver.url, "kinds": ["mention"]})
    made = Webhook.objects.get()
    assert made.session is None
    client.post(f"/webhooks/{made.pk}/remove", {"confirm": "127.0.0.1"})
    made.refresh_from_db()
    assert made.removed_at is not None


def test_nothing_is_sent_for_who_may_not_have_it_told_any_more(
    receiver: Receiver, session_of_alice: DiagnosisSession, alice: User, bob: User, carol: User
) -> None:
    member_add(session_of_alice, user=bob, added_by=alice)
    webhook_add(session_of_alice, url=receiver.url, kinds=KINDS, by=alice)
    webhook_add(None, url=receiver.url, kinds=KINDS, by=carol)
    proposed(session_of_alice, bob)
    waiting = follow(session_of_alice.pk)
    assert len(waiting) == 2
    member_remove(session_of_alice, user=alice, removed_by=bob)
    User.objects.filter(pk=carol.pk).update(is_active=False)
    for pk in waiting:
        deliver(pk)
    assert [(d.state, "may not be there" in d.problem) for d in Delivery.objects.all()] == [
        (DeliveryState.FAILED, True)
    ] * 2
    proposed(session_of_alice, bob)
    sent_all(session_of_alice)
    assert (Delivery.objects.count(), receiver.got) == (2, [])
    browser = Client()
    browser.force_login(bob)
    page = html_of(browser.get(f"/sessions/{session_of_alice.pk}/webhooks"))
    assert "alice may not have it told any more" in page
