"""What somebody made stops when they may no longer act in its session, and the pages say so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.pages import html_of
from tests.webapp.api.conftest import Program
from tests.webapp.handoff.conftest import Sent
from webapp.accounts.administration import OUT, account_change
from webapp.accounts.models import ApiToken, OneTimeLink, Role, Scope, User
from webapp.handoff.models import Step
from webapp.records.models import DiagnosisSession, Target
from webapp.records.sessions import member_add, member_remove
from webapp.runs.credentials import RefusedError, agent_for

pytestmark = pytest.mark.django_db


def removed(session: DiagnosisSession, alice: User, carol: User) -> None:
    member_remove(session, user=alice, removed_by=carol)


def no_operator(session: DiagnosisSession, alice: User, carol: User) -> None:
    member_add(session, user=alice, added_by=carol, role=Role.REVIEWER)


def shut_out(session: DiagnosisSession, alice: User, carol: User) -> None:
    account_change(alice, OUT, by="carol")


LEAVING = pytest.mark.parametrize("leaves", [removed, no_operator, shut_out])


@LEAVING
def test_a_link_opens_nothing_once_its_maker_may_not_ask(
    sent: Sent, erika: Client, bob: User, carol: User, leaves: Callable[[DiagnosisSession, User, User], None]
) -> None:
    session, alice = sent.link.session, sent.link.made_by
    member_add(session, user=bob, added_by=carol)
    assert erika.get(sent.page).status_code == 200
    script = sent.link.scripts.latest("id")
    leaves(session, alice, carol)
    assert erika.get(sent.page).status_code == 410
    assert Client().get(f"/link/{sent.token}").status_code == 410
    assert erika.post(f"{sent.page}/answer", {"text": "$ uname -r\n6.14"}).status_code == 410
    assert Client().get(f"/fetch/{script.sha256}").status_code == 404
    assert not session.evidence.exists()
    browser = Client()
    browser.force_login(bob)
    page = html_of(browser.get(f"/sessions/{session.pk}/links"))
    assert "stopped" in page
    assert "alice, who made it, may not ask in this session any more" in page
    _, text = ApiToken.make(bob, name="t", scopes=list(Scope.values), days=1)
    told = Program(text)("GET", f"/sessions/{session.pk}/links").json()["items"][0]
    assert (told["open"], told["stands"]) == (False, False)


def test_who_is_let_in_again_has_their_links_again(sent: Sent, erika: Client, carol: User) -> None:
    session, alice = sent.link.session, sent.link.made_by
    member_add(session, user=carol, added_by=carol)
    removed(session, alice, carol)
    assert erika.get(sent.page).status_code == 410
    member_add(session, user=alice, added_by=carol)
    assert erika.get(sent.page).status_code == 200
    assert sent.link.steps[1] == (Step.OPENED, None)  # as it was made; nothing was changed in it


def test_who_removes_somebody_is_told_what_stops(sent: Sent, bob: User, carol: User) -> None:
    session = sent.link.session
    member_add(session, user=bob, added_by=carol)
    browser = Client()
    browser.force_login(carol)
    asked = {"username": "alice", "role": "remove"}
    page = html_of(browser.post(f"/sessions/{session.pk}/members", asked, follow=True))
    assert "1 link of theirs stopped with that." in page


def test_an_invitation_ends_with_its_administrator(client: Client, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    _, token = OneTimeLink.make(makes_admin=True, invited_by=alice)
    assert client.get(f"/welcome/{token}").status_code == 200
    User.objects.filter(pk=alice.pk).update(is_staff=False)
    assert client.get(f"/welcome/{token}").status_code == 410
    User.objects.filter(pk=alice.pk).update(is_staff=True, is_active=False)
    assert client.get(f"/welcome/{token}").status_code == 410


@LEAVING
def test_a_run_that_waits_is_not_begun_for_who_left(
    session_of_alice: DiagnosisSession,
    alice: User,
    bob: User,
    carol: User,
    leaves: Callable[[DiagnosisSession, User, User], None],
) -> None:
    member_add(session_of_alice, user=bob, added_by=alice)
    target = Target.objects.create(
        session=session_of_alice, role="guest", agent="ssh", host="192.0.2.1", created_by=alice
    )
    leaves(session_of_alice, alice, carol)
    with pytest.raises(RefusedError, match="alice may not reach machines of this session any more"):
        agent_for(target, User.objects.get(pk=alice.pk))


def test_a_link_of_an_administrator_stops_with_the_right(sent: Sent, erika: Client, carol: User) -> None:
    sent.link.made_by = carol
    sent.link.save()
    assert erika.get(sent.page).status_code == 200
    User.objects.filter(pk=carol.pk).update(is_staff=False)
    assert erika.get(sent.page).status_code == 410
    assert sent.link.expires_at > timezone.now() + timedelta(hours=1)
