"""Webhooks over https and mail by SMTP, against servers on this machine with certificates of their own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from email import message_from_string
from email.policy import default
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.webapp.notices.certificates import Authority
from tests.webapp.notices.conftest import Receiver, received
from tests.webapp.notices.mail_server import LOGIN, served
from webapp.accounts.models import Role, User
from webapp.config import addresses
from webapp.notices import webhook_client
from webapp.notices.deliveries import deliver
from webapp.notices.fan_out import follow
from webapp.notices.models import Delivery
from webapp.records.models import DiagnosisSession, Event
from webapp.records.sessions import member_add


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """An authority that this process trusts, as it does with SSL_CERT_FILE set."""
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.path))
    return authority


def posted(receiver: Receiver) -> int:
    message = webhook_client.signed("{}", secret="c2VjcmV0", delivery="d", at=datetime.now(UTC))
    return webhook_client.post(receiver.url, message)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_webhook_arrives_over_https(trusted: Authority, settings: Any, host: str) -> None:
    settings.WEBHOOK_PRIVATE = True
    with received(tls=trusted.server(host), host=host) as receiver:
        assert receiver.url.startswith(f"https://{host}:")
        assert posted(receiver) == 204
        ((path, headers, body),) = receiver.got
    assert (path, body) == ("/hook?to=me", b"{}")
    assert headers["Host"] == f"{host}:{receiver.port}"
    assert headers["webhook-signature"].startswith("v1,")


@pytest.mark.parametrize("whose", ["of nobody it trusts", "of another name"])
def test_a_certificate_that_proves_nothing_gets_nothing(
    trusted: Authority, tmp_path: Path, settings: Any, whose: str
) -> None:
    settings.WEBHOOK_PRIVATE = True
    by = Authority(tmp_path, "Another CA") if whose == "of nobody it trusts" else trusted
    shown = "127.0.0.1" if whose == "of nobody it trusts" else "receiver.example"
    with received(tls=by.server(shown)) as receiver:
        with pytest.raises(webhook_client.PostError, match="certificate does not prove that it is 127"):
            posted(receiver)
        assert receiver.got == []


def test_what_speaks_no_tls_is_told(settings: Any, receiver: Receiver) -> None:
    receiver.scheme = "https"
    with pytest.raises(webhook_client.PostError, match="No answer from"):
        posted(receiver)
    assert receiver.got == []


@pytest.fixture
def news(session_of_alice: DiagnosisSession, alice: User, bob: User, settings: Any) -> Callable[[str], Delivery]:
    """Bob is mailed of a proposal, by the server of this address; the message's state."""
    User.objects.filter(pk=bob.pk).update(email="bob@example.org")
    member_add(session_of_alice, user=bob, added_by=alice, role=Role.REVIEWER)
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"

    def told(url: str) -> Delivery:
        mail = addresses.mail(url)
        settings.MAIL_ON = True
        settings.EMAIL_HOST, settings.EMAIL_PORT = mail.host, mail.port
        settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = mail.user, mail.password
        settings.EMAIL_USE_SSL, settings.EMAIL_USE_TLS = mail.tls, mail.starttls
        Event.record(session_of_alice, "decision_proposed", alice, number=2)
        for pk in follow(session_of_alice.pk):
            deliver(pk)
        return Delivery.objects.get()

    return told


SIGNED_IN = ":".join(quote(word) for word in LOGIN)


@pytest.mark.django_db
@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_mail_is_handed_over_encrypted_and_after_a_login(
    trusted: Authority, news: Callable[[str], Delivery], scheme: str
) -> None:
    tls = trusted.server("localhost")
    with served(tls=tls, from_the_start=scheme == "smtps") as server:
        sent = news(f"{scheme}://{SIGNED_IN}@localhost:{server.port}")
        assert (sent.state, sent.problem) == ("delivered", "")
        ((sender, to, text, secure, known),) = server.got
    assert (to, secure, known) == (["bob@example.org"], True, True)
    mail = message_from_string(text, policy=default)
    assert "alice proposes decision 2" in mail["Subject"]
    assert mail["Auto-Submitted"] == "auto-generated"
    assert sender in mail["From"]
    assert "/decisions/2" in mail.get_content()


@pytest.mark.django_db
def test_mail_on_this_machine_needs_neither(news: Callable[[str], Delivery]) -> None:
    with served() as server:
        assert news(f"smtp+plain://127.0.0.1:{server.port}").state == "delivered"
        assert [(to, secure) for _, to, _, secure, _ in server.got] == [(["bob@example.org"], False)]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("url", "tls_of", "refuses", "problem"),
    [
        (f"smtp://{SIGNED_IN}@localhost:PORT", None, "", "NotSupported"),
        ("smtp://peerpath:wrong@localhost:PORT", "localhost", "", "Authentication"),
        (f"smtp://{SIGNED_IN}@localhost:PORT", "mail.example", "", "SSLCertVerification"),
        (f"smtp://{SIGNED_IN}@localhost:PORT", "localhost", "bob@example.org", "RecipientsRefused"),
    ],
)
def test_what_a_mail_server_does_not_take_waits_and_is_never_sent_in_the_clear(
    trusted: Authority, news: Callable[[str], Delivery], url: str, tls_of: str | None, refuses: str, problem: str
) -> None:
    tls = trusted.server(tls_of) if tls_of else None
    with served(tls=tls, refuses=frozenset({refuses})) as server:
        sent = news(url.replace("PORT", str(server.port)))
        assert server.got == []
    assert sent.state == "waiting"
    assert problem in sent.problem
    assert "wrong" not in sent.problem
