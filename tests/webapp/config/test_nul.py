"""PostgreSQL keeps no NUL in its texts: what people send holds none by the time a page sees it."""

from __future__ import annotations

import pytest
from django.test import Client

from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession

pytestmark = pytest.mark.django_db


def test_nul_is_left_out_of_what_people_send(client: Client, alice: User) -> None:
    client.force_login(alice)
    answer = client.post("/sessions/open?x=%00", {"title": "slow\0 machine", "te\0xt": "\0"})
    assert answer.status_code == 302
    assert DiagnosisSession.objects.get().title == "slow machine"


def test_no_page_has_nul_in_its_address(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert client.get("/help%00").status_code == 404
