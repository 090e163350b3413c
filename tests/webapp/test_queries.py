"""How often each page asks the database, of a session in which much has happened."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.webapp.addresses import PAGES, a_full_session, address, asked_in, browser_of
from webapp.accounts.models import User
from webapp.triage.models import Visit

pytestmark = pytest.mark.django_db
MOST = 10


def test_every_page_asks_at_most_ten_times(alice: User, bob: User, carol: User) -> None:
    """In one test, because making the session takes longer than reading its pages."""
    parts = a_full_session(alice, bob)
    asked = {}
    for user in (alice, carol):
        browser = browser_of(user, parts)
        for name in PAGES:
            # Being there again is noted: the most that a page asks.
            Visit.objects.update(at=timezone.now() - timedelta(seconds=30))
            with CaptureQueriesContext(connection) as queries:
                answer = browser.get(address(name, parts))
            asked[user.username, name, answer.status_code] = asked_in(queries)
    assert {page: count for page, count in asked.items() if count > MOST} == {}
