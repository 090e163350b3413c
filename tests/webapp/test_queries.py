"""How often each page asks the database, of a session in which much has happened."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.webapp.addresses import FOR_ADMINISTRATORS, PAGES, a_full_session, address, asked_in, browser_of
from webapp.accounts.models import User
from webapp.records.models import Visit

pytestmark = pytest.mark.django_db
MOST = 10


def test_every_page_asks_at_most_ten_times(alice: User, bob: User, carol: User) -> None:
    """In one test, because making the session takes longer than reading its pages."""
    parts = a_full_session(alice, bob)
    operator, administrator = browser_of(alice, parts), browser_of(carol, parts)
    nobody = browser_of(AnonymousUser(), parts)
    asked = {}
    for name in PAGES:
        browser = administrator if name in FOR_ADMINISTRATORS else operator
        browser = nobody if name.startswith("link:asked") else browser
        browser.get(address(name, parts))
        # Being there again is noted: the most that a page asks.
        Visit.objects.update(at=timezone.now() - timedelta(seconds=30))
        with CaptureQueriesContext(connection) as queries:
            answer = browser.get(address(name, parts))
        asked[name, answer.status_code] = asked_in(queries)
    many = {page: n for page, n in asked.items() if n > MOST}
    assert many == {}
    assert {status for _, status in asked} <= {200, 302, 404, 410}  # what needs a token has none here
