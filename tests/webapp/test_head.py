"""HEAD is answered wherever GET is, as GET is, and says of nobody that they saw or took something."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser

from agents.facts import View
from agents.probes import probes_for
from tests.webapp.addresses import FOR_ADMINISTRATORS, ONLY_POST, PATTERNS, address, arguments_of, browser_of
from webapp.accounts.models import User
from webapp.handoff.models import Download, Link
from webapp.handoff.scripts import collector_for
from webapp.records.models import DiagnosisSession, Event
from webapp.review.models import Mention
from webapp.review.threads import comment_add

pytestmark = pytest.mark.django_db
# To show it a machine is connected to.
NO_HEAD = {"session:host_key"}
SAME = ("Content-Type", "Content-Disposition", "Location", "Cache-Control", "Referrer-Policy")


@pytest.fixture
def parts(session_of_alice: DiagnosisSession, alice: User, bob: User) -> dict[str, Any]:
    comment_add(session_of_alice, author=bob, text="@alice look")
    parts = arguments_of(session_of_alice, alice)
    link = Link.objects.get(pk=parts["link_id"])
    handed = collector_for(session_of_alice, View.HOST, probes_for(View.HOST), link)
    return parts | {"sha256": handed.sha256}


def test_head_is_answered_as_get_is(parts: dict[str, Any], alice: User, carol: User) -> None:
    operator, administrator = browser_of(alice, parts), browser_of(carol, parts)
    nobody = browser_of(AnonymousUser(), parts)
    differ = {}
    for name in sorted(PATTERNS.keys() - ONLY_POST - NO_HEAD):
        browser = administrator if name in FOR_ADMINISTRATORS else operator
        browser = nobody if name.startswith("link:asked") else browser
        head, get = (ask(address(name, parts)) for ask in (browser.head, browser.get))
        of_head, of_get = ((a.status_code, *map(a.headers.get, SAME)) for a in (head, get))
        if of_head != of_get or head.content:
            differ[name] = (of_head, of_get, head.content)
    assert differ == {}


def test_head_shows_nobody_anything(parts: dict[str, Any], alice: User) -> None:
    browsers = browser_of(alice, parts), browser_of(AnonymousUser(), parts)
    said = Event.objects.count()
    for name in sorted(PATTERNS.keys() - ONLY_POST - NO_HEAD):
        for browser in browsers:
            browser.head(address(name, parts))
    assert Event.objects.count() == said
    assert not Download.objects.exists()
    assert not Link.objects.exclude(opened_at=None, downloaded_at=None).exists()
    assert Mention.objects.filter(user=alice, seen_at=None).exists()
    operator, nobody = browsers
    operator.get(address("decision:for_me", parts))
    for name in ("link:asked", "link:fetch"):
        assert nobody.get(address(name, parts)).status_code == 200
    assert Link.objects.exclude(opened_at=None).exclude(downloaded_at=None).exists()
    assert not Mention.objects.filter(user=alice, seen_at=None).exists()
