"""A session with a link, and the browser of the person who was sent it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.test import Client

from webapp.accounts.models import User
from webapp.handoff.models import Link
from webapp.records.models import DiagnosisSession


@dataclass(frozen=True)
class Sent:
    """A link as it was made. page: where it leads, once it was opened."""

    link: Link
    token: str

    @property
    def page(self) -> str:
        return f"/asked/{self.link.pk}"


@pytest.fixture
def send(session_of_alice: DiagnosisSession, alice: User) -> Callable[..., Sent]:
    def make(hours: int = 24, phases: list[str] | None = None, purpose: str = "why it is slow") -> Sent:
        link, token = Link.make(
            session_of_alice, made_by=alice, person="Erika", purpose=purpose, hours=hours, phases=phases or []
        )
        return Sent(link, token)

    return make


@pytest.fixture
def sent(send: Callable[..., Sent]) -> Sent:
    return send()


@pytest.fixture
def erika(sent: Sent) -> Client:
    """Her browser, after she opened the link."""
    browser = Client()
    assert browser.get(f"/link/{sent.token}").headers["Location"] == sent.page
    return browser


@pytest.fixture
def operator(alice: User) -> Client:
    browser = Client()
    browser.force_login(alice)
    return browser
