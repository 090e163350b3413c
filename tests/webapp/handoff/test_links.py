"""A link from asking to accepting: who gets in, what it shows, what it keeps, what it gives away."""

from __future__ import annotations

import io
import logging
import math
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.serializers import serialize
from django.test import Client
from django.utils import timezone

from agents.facts import View
from agents.probes import handed_for
from tests.pages import html_of
from tests.webapp.handoff.conftest import Sent
from webapp.accounts.models import OneTimeLink
from webapp.handoff import throttle
from webapp.handoff.models import Answer, HandedScript, Link
from webapp.records.models import DiagnosisSession

pytestmark = pytest.mark.django_db
CMDLINE = b"$ cat /proc/cmdline\nBOOT_IMAGE=/boot/vmlinuz-6.14.8-2-pve root=/dev/sda1 ro iommu=pt\n"


def give(browser: Client, sent: Sent, text: bytes = CMDLINE) -> str:
    """What her page says after she sent this."""
    answer = browser.post(f"{sent.page}/answer", {"text": text.decode()}, follow=True)
    assert answer.status_code == 200
    return html_of(answer)


def test_the_token_leads_on_and_is_stored_nowhere(sent: Sent, erika: Client) -> None:
    page = erika.get(sent.page)
    assert page.status_code == 200
    assert sent.token not in html_of(page)
    assert len(sent.token) >= 32
    rows = [*Link.objects.all(), *HandedScript.objects.all(), *sent.link.session.events.all()]
    assert sent.token not in serialize("json", rows)
    assert sent.token not in str(dict(erika.session))
    entered = Client().get(f"/link/{sent.token}")
    assert entered.headers["Referrer-Policy"] == "no-referrer"
    assert "no-store" in entered.headers["Cache-Control"]


def test_the_page_says_how_long_it_may_take_at_most(sent: Sent, erika: Client) -> None:
    limits_min = sum(probe.timeout_s for probe in handed_for(View.HOST)) / 60
    page = html_of(erika.get(sent.page))
    assert f"all of it would take {math.ceil(limits_min)} min" in page


def test_the_page_shows_the_request_and_nothing_else_of_the_session(sent: Sent, erika: Client) -> None:
    session = sent.link.session
    session.workload = {"model": {"name": "A secret model"}, "host": {"why_vm": "a secret reason"}}
    session.symptom = session.own_words = "a secret symptom"
    session.save()
    page = html_of(erika.get(sent.page))
    assert "alice asks for a look" in page
    assert "why it is slow" in page
    assert "secret" not in page
    assert session.title not in page
    assert str(session.pk) not in page
    assert "style=" not in page
    for title in ("Running QEMU command lines", "Configured VMs", "Boot loader of the host"):
        assert title in page


def closed(link: Link) -> None:
    link.revoke(link.made_by)


def expired(link: Link) -> None:
    Link.objects.filter(pk=link.pk).update(expires_at=timezone.now() - timedelta(seconds=1))


@pytest.mark.parametrize("end", [closed, expired])
def test_a_closed_link_opens_nothing_any_more(sent: Sent, erika: Client, end: Callable[[Link], None]) -> None:
    script = _script(erika, sent)
    assert Client().get(f"/fetch/{script.sha256}").status_code == 200
    end(sent.link)
    assert Client().get(f"/link/{sent.token}").status_code == 410
    assert erika.get(sent.page).status_code == 410
    assert erika.post(f"{sent.page}/answer", {"text": "x"}).status_code == 410
    assert erika.post(f"{sent.page}/questions", {"host_root": "yes"}).status_code == 410
    assert erika.get(f"/fetch/{script.sha256}").status_code == 404
    assert not sent.link.session.evidence.exists()


def test_who_knows_only_the_pages_address_gets_nothing(sent: Sent) -> None:
    stranger = Client()
    assert stranger.get(sent.page).status_code == 410
    assert stranger.post(f"{sent.page}/answer", {"text": "x"}).status_code == 410
    assert stranger.get("/link/wrong").status_code == 410
    assert not sent.link.session.evidence.exists()


def test_one_links_browser_does_not_reach_another_link(sent: Sent, erika: Client, send: Callable[..., Sent]) -> None:
    other = send()
    assert erika.get(other.page).status_code == 410
    erika.get(f"/link/{other.token}")
    assert erika.get(other.page).status_code == erika.get(sent.page).status_code == 200


def test_guessing_is_slow_and_bars_no_right_link(sent: Sent, erika: Client) -> None:
    """Behind a proxy all have one address: what is wrong is counted, what is right is served."""
    erika.get(sent.page)
    script = sent.link.scripts.latest("id")
    guesser = Client()
    for number in range(throttle.WRONG_LINKS):
        assert guesser.get(f"/link/guess-{number}").status_code == 410
    assert guesser.get("/link/guess").status_code == 429
    assert guesser.get("/fetch/" + "0" * 64).status_code == 429
    assert guesser.get(f"/fetch/{script.sha256}").status_code == 200
    assert guesser.get(f"/link/{sent.token}").status_code == 302
    assert guesser.get(sent.page).status_code == 200
    elsewhere = Client(REMOTE_ADDR="192.0.2.9")
    assert elsewhere.get("/link/guess").status_code == 410


def test_one_link_cannot_flood_a_session(sent: Sent, erika: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "LARGEST_TOTAL_BYTES", 300)
    give(erika, sent)
    assert "ask for a new one" in give(erika, sent, b"$ uname -r\n" + b"6.14 " * 60)
    assert sent.link.session.evidence.count() == 1
    monkeypatch.setattr(throttle, "LARGEST_TOTAL_BYTES", 10**6)
    monkeypatch.setattr(throttle, "ANSWERS", 4)
    for number in range(throttle.ANSWERS):
        page = give(erika, sent, b"$ uname -r\n%d\n" % number)
    assert "sent very often" in page


def test_only_an_opened_link_may_send_what_is_large(sent: Sent, erika: Client) -> None:
    large = CMDLINE + b"x" * 100_000
    assert Client().post(f"{sent.page}/answer", {"text": large.decode()}).status_code == 413
    assert erika.post("/sign-in", {"text": large.decode()}).status_code == 413
    assert "understood" in give(erika, sent, large)
    closed(sent.link)
    assert erika.post(f"{sent.page}/answer", {"text": large.decode()}).status_code == 413


@pytest.mark.parametrize("path", ["link", "welcome"])
def test_no_log_names_a_token(sent: Sent, path: str) -> None:
    handler = next(h for h in logging.getLogger().handlers if type(h) is logging.StreamHandler)
    heard = io.StringIO()
    before = handler.setStream(heard)
    _, welcome = OneTimeLink.make(makes_admin=False)
    token = {"link": sent.token, "welcome": welcome}[path]
    try:
        strict = Client(enforce_csrf_checks=True)
        assert strict.post(f"/{path}/{token}").status_code == 403
        assert strict.get(f"/{path}/{token}x?a=b").status_code == 410
    finally:
        if before:
            handler.setStream(before)
    assert f"/{path}/…" in heard.getvalue()
    assert token not in heard.getvalue()


def test_the_servers_own_log_names_no_token(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("GET /link/abcdefgh failed")
    except ValueError:
        logging.getLogger("gunicorn.error").exception("Error handling request %s", "/link/abcdefgh")
    assert "/link/…" in caplog.text
    assert "abcdefgh" not in caplog.text


# --- how far it got --------------------------------------------------------------------------------


def _script(browser: Client, sent: Sent) -> HandedScript:
    browser.get(sent.page)
    return sent.link.scripts.latest("id")


def _reached(sent: Sent) -> list[str]:
    sent.link.refresh_from_db()
    return [str(step) for step, at in sent.link.steps if at]


def test_every_step_is_seen_and_told_once(sent: Sent, operator: Client) -> None:
    browser = Client()
    assert _reached(sent) == ["asked"]
    browser.get(f"/link/{sent.token}")
    assert _reached(sent) == ["asked"]  # a program that previews links got no further
    script = _script(browser, sent)
    assert _reached(sent) == ["asked", "opened"]
    browser.get(f"/fetch/{script.sha256}?show=1")
    assert _reached(sent) == ["asked", "opened"]
    browser.get(f"/fetch/{script.sha256}")
    assert _reached(sent) == ["asked", "opened", "downloaded"]
    give(browser, sent, b"milk and bread\n")
    assert _reached(sent)[3:] == ["received"]
    give(browser, sent)
    assert _reached(sent)[3:] == ["received", "read"]
    operator.post(f"/sessions/{sent.link.session_id}/links/{sent.link.pk}/accept")
    assert _reached(sent)[-1] == "accepted"
    assert "has what was needed" in html_of(browser.get(sent.page))
    kinds = sent.link.session.events.order_by("number").values_list("kind", "actor__username")
    told = [kind for kind in kinds if kind[0].startswith("link")]
    assert told == [
        ("link_made", "alice"),
        ("link_opened", None),
        ("link_downloaded", None),
        ("link_received", None),
        ("link_accepted", "alice"),
    ]


def test_what_comes_after_accepting_is_to_be_looked_at_again(sent: Sent, erika: Client, operator: Client) -> None:
    accept = f"/sessions/{sent.link.session_id}/links/{sent.link.pk}/accept"
    operator.post(accept)
    assert "accepted" not in _reached(sent)  # there is nothing to accept yet
    give(erika, sent)
    operator.post(accept)
    assert "accepted" in _reached(sent)
    give(erika, sent, b"$ uname -r\n6.14.8-2-pve\n")
    assert "accepted" not in _reached(sent)


def test_the_operators_card_polls_and_is_quiet_when_nothing_is_new(sent: Sent, erika: Client, operator: Client) -> None:
    page = f"/sessions/{sent.link.session_id}/links"
    first = html_of(operator.get(page, headers={"HX-Request": "true"}))
    found = re.search(r"seen=([^\"]+)\"", first)
    assert found
    again = f"{page}?seen={found[1]}"
    assert operator.get(again, headers={"HX-Request": "true"}).status_code == 204
    erika.get(sent.page)
    assert b"opened" in operator.get(again, headers={"HX-Request": "true"}).content
    activity = html_of(operator.get(f"/sessions/{sent.link.session_id}/host"))
    assert "<b>Erika</b> opened the link" in activity


def test_a_link_is_shown_once_and_says_who_can_reach_it(
    operator: Client, session_of_alice: DiagnosisSession, settings: Any
) -> None:
    make = f"/sessions/{session_of_alice.pk}/links/make"
    made = operator.post(make, {"person": "<b>Erika", "hours": "24", "purpose": "<i>look"})
    page = html_of(made)
    found = re.search(r"(http://127\.0\.0\.1:8000/link/\S+?)<", page)
    assert found
    assert "only this machine can open" in page
    assert "the script as a file" in page
    assert "&lt;b&gt;Erika" in page
    assert "no-store" in made.headers["Cache-Control"]
    shown = html_of(operator.get(f"/sessions/{session_of_alice.pk}/links"))
    assert found[1] not in shown
    settings.PUBLIC_URL = "https://peerpath.example"
    page = html_of(operator.post(make, {"hours": "999999"}))
    assert "only this machine can open" not in page
    newest = Link.objects.first()
    assert newest is not None
    assert newest.expires_at < timezone.now() + timedelta(days=4)  # a choice that is none


# --- what comes back -------------------------------------------------------------------------------


def test_she_sees_what_was_understood_and_gets_a_shorter_script(sent: Sent, erika: Client) -> None:
    whole = _script(erika, sent)
    page = give(erika, sent)
    assert "iommu=pt" in page
    assert "still open" in page
    rest = sent.link.scripts.latest("id")
    assert rest.name == "peerpath-host-rest.sh"
    assert "host.kernel_cmdline" in whole.names
    assert set(rest.names) == set(whole.names) - {"host.kernel_cmdline"}
    assert f"/fetch/{rest.sha256}" in page
    assert f"{rest.sha256}  peerpath-host-rest.sh" in page


def test_the_same_bytes_again_count_once(sent: Sent, erika: Client) -> None:
    give(erika, sent)
    assert "counts once" in give(erika, sent)
    assert Answer.objects.filter(link=sent.link).count() == 1


def test_her_answers_reach_the_operator(sent: Sent, erika: Client) -> None:
    answers = {"host_root": "yes", "why_vm": "house <b>rule", "may_change": ["vm", "rm -rf", "host"]}
    page = html_of(erika.post(f"{sent.page}/questions", answers, follow=True))
    assert "house &lt;b&gt;rule" in page
    session = DiagnosisSession.objects.get(pk=sent.link.session_id)
    assert session.workload["host"] == {
        "host_root": "ask admin",  # her root is someone to ask, for the operator
        "why_vm": "house <b>rule",
        "may_change": ["vm", "host"],
    }
    assert session.version == 1


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "`reboot`", "$(reboot)", '"><img src=x>'])
def test_hostile_names_are_text_on_every_page(sent: Sent, erika: Client, operator: Client, name: str) -> None:
    listing = f"# qm list\n      VMID NAME  STATUS\n       128 {name}   running\n"
    config = f"### /etc/pve/qemu-server/128.conf\nname: {name}\nargs: {name}\nhostpci0: mapping={name}\n"
    page = give(erika, sent, (config + listing).encode())
    host = html_of(operator.get(f"/sessions/{sent.link.session_id}/host"))
    for text in (page, host):
        assert "<script>alert" not in text
        assert "<img src=x" not in text
    for script in HandedScript.objects.all():
        assert name not in script.text


def test_a_download_is_text_that_no_browser_runs(sent: Sent, erika: Client) -> None:
    script = _script(erika, sent)
    for query in ("", "?show=1"):
        answer = erika.get(f"/fetch/{script.sha256}{query}")
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    downloaded = erika.get(f"/fetch/{script.sha256}")
    assert downloaded.headers["Content-Disposition"] == 'attachment; filename="peerpath-host.sh"'
    assert html_of(downloaded) == script.text
    assert [d.by for d in script.downloads.all()] == [None, None]
