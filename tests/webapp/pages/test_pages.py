"""Every page of a session, at every stage of the founding case, and what must stand on it."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from django.test import Client

from agents.facts import View
from agents.probes import all_probes, probes_for
from tests.pages import html_of
from webapp.accounts.models import User
from webapp.pages.session.look import WORTH_PASTING
from webapp.records.models import DiagnosisSession
from webapp.records.sessions import session_open
from webapp.runs.samples import open_sample

pytestmark = pytest.mark.django_db
STEPS = ("symptom", "hypothesis", "guest", "path", "host", "diagnosis", "topology", "decide", "verify")


@pytest.fixture
def browser(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def text(client: Client, session: DiagnosisSession, step: str) -> str:
    answer = client.get(f"/sessions/{session.pk}/{step}")
    assert answer.status_code == 200
    return html_of(answer)


@pytest.mark.parametrize("step", STEPS)
def test_an_empty_session_teaches_and_never_fails(browser: Client, alice: User, step: str) -> None:
    page = text(browser, session_open(owner=alice, title="<b>nothing yet</b>"), step)
    assert "&lt;b&gt;nothing yet&lt;/b&gt;" in page
    assert "<b>nothing yet" not in page


@pytest.mark.parametrize("stage", ["first", "guest", "host", "after"])
def test_every_page_of_the_sample_renders(browser: Client, alice: User, stage: str) -> None:
    session = open_sample(f"kpro6@{stage}", owner=alice)
    for step in STEPS:
        page = text(browser, session, step)
        assert "reconstructed" in page
        assert "style=" not in page


def test_the_diagnosis_page_says_what_the_case_must_say(browser: Client, alice: User) -> None:
    page = text(browser, open_sample("kpro6@guest", owner=alice), "diagnosis")
    assert "NS on 56 of 56" in page
    assert re.search(r"1\.02.1\.49", page)
    assert "not reachable by peer-to-peer alone" in page


def test_a_page_asks_the_database_as_often_however_much_it_says(
    browser: Client, alice: User, django_assert_max_num_queries: Any
) -> None:
    """Every claim of the last stage has its threads; the first stage has few claims."""
    for stage in ("first", "after"):
        session = open_sample(f"kpro6@{stage}", owner=alice)
        with django_assert_max_num_queries(14):  # first looks are noted in a transaction
            text(browser, session, "diagnosis")


def test_each_claim_leads_to_a_line_that_exists(browser: Client, alice: User) -> None:
    session = open_sample("kpro6@host", owner=alice)
    page = text(browser, session, "diagnosis")
    links = set(re.findall(r'href="(/sessions/[^"]+/evidence/[^"]+)"', page))
    cited = [link for link in links if "line=" in link and "workload" not in link]
    assert len(cited) > 10
    for link in cited:
        answer = browser.get(link.replace("&amp;", "&"))
        assert answer.status_code == 200, link
        assert 'class="marked"' in html_of(answer), link


def test_a_paste_says_what_was_understood_and_what_was_not(browser: Client, alice: User) -> None:
    session = session_open(owner=alice, title="paste")
    pasted = "$ systemd-detect-virt\nkvm\n$ cat shopping.txt\nmilk and\nbread\n"
    answer = browser.post(f"/sessions/{session.pk}/paste/guest", {"text": pasted})
    page = html_of(answer)
    assert "guest.virt_kind" in page
    again = html_of(browser.post(f"/sessions/{session.pk}/paste/guest", {"text": pasted}))
    assert "was not stored twice" in again
    assert session.evidence.count() == 1


def test_hostile_output_is_shown_as_text(browser: Client, alice: User) -> None:
    session = session_open(owner=alice, title="hostile")
    evil = "$ systemd-detect-virt\n<script>alert(1)</script>\x1b]0;title\x07kvm\n"
    browser.post(f"/sessions/{session.pk}/paste/guest", {"text": evil})
    stored = session.evidence.get()
    page = html_of(browser.get(f"/sessions/{session.pk}/evidence/{stored.name}"))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_an_unsaved_form_keeps_what_was_typed(browser: Client, alice: User) -> None:
    session = session_open(owner=alice, title="typo")
    typed = {
        "title": "typo",
        "version": "0",
        "symptom": "slow since Tuesday",
        "model__layers": "seventy",
        "point-TOTAL_FORMS": "4",
        "point-INITIAL_FORMS": "4",
        "point-0-output_tokens_per_s": "11",
    }
    answer = browser.post(f"/sessions/{session.pk}/symptom", typed)
    page = html_of(answer)
    assert answer.status_code == 422
    assert "slow since Tuesday" in page
    assert 'value="seventy"' in page
    assert "How many requests ran at once?" in page


def test_two_people_typing_at_once_lose_nothing(browser: Client, alice: User) -> None:
    session = session_open(owner=alice, title="both")
    address = f"/sessions/{session.pk}/hypothesis"
    browser.post(address, {"version": "0", "own_words": "it is the network"})
    late = browser.post(address, {"version": "0", "own_words": "it is the kernel"})
    assert late.status_code == 409
    page = html_of(late)
    assert "it is the kernel" in page
    assert "it is the network" in page
    session.refresh_from_db()
    assert session.own_words == "it is the network"


def test_two_people_answering_for_the_host_lose_nothing(browser: Client, alice: User) -> None:
    session = session_open(owner=alice, title="both")
    address = f"/sessions/{session.pk}/host"
    assert 'name="version" value="0"' in html_of(browser.get(address))
    browser.post(address, {"version": "0", "host_root": "no", "why_vm": "house rule"})
    late = browser.post(address, {"version": "0", "host_root": "yes", "why_vm": "snapshots"})
    assert late.status_code == 409
    page = html_of(late)
    assert 'value="snapshots"' in page
    assert "“house rule”" in page
    session.refresh_from_db()
    assert session.workload["host"]["why_vm"] == "house rule"
    browser.post(address, {"version": "1", "host_root": "yes", "why_vm": "snapshots"})
    session.refresh_from_db()
    assert session.workload["host"]["why_vm"] == "snapshots"


def test_a_bad_address_for_a_target_is_told_in_place(browser: Client, alice: User) -> None:
    session = session_open(owner=alice, title="target")
    typed = {"host": "-oProxyCommand=evil", "port": "22", "user": "root"}
    answer = browser.post(f"/sessions/{session.pk}/targets/guest", typed)
    assert answer.status_code == 422
    assert "A host name or address" in html_of(answer)
    assert not session.targets.exists()


def test_this_machine_is_for_administrators(browser: Client, alice: User) -> None:
    session = session_open(owner=alice, title="local")
    answer = browser.post(f"/sessions/{session.pk}/targets/guest", {"agent": "local"})
    assert answer.status_code == 403


def test_the_host_script_is_downloaded_and_noted(browser: Client, alice: User) -> None:
    session = session_open(owner=alice, title="script")
    answer = browser.get(f"/sessions/{session.pk}/script/host")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="peerpath-host.sh"'
    assert answer.content.startswith(b"#!/bin/sh")
    assert session.events.filter(kind="script_downloaded").exists()


def test_the_policy_forbids_what_is_not_ours(browser: Client) -> None:
    answer = browser.get("/")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("command", WORTH_PASTING)
def test_each_command_worth_pasting_is_known_by_its_prompt(command: str) -> None:
    known = [p.signature.typed for p in all_probes().values() if p.signature.typed]
    assert any(re.search(typed, command) for typed in known), command


@pytest.mark.parametrize("role", [View.GUEST, View.HOST])
def test_it_says_how_long_all_of_it_may_take_at_most(browser: Client, alice: User, role: View) -> None:
    """A run has a minute more than its probes together, for all that is not theirs."""
    limits_min = sum(probe.timeout_s for probe in probes_for(role)) / 60
    page = text(browser, session_open(owner=alice, title="limits"), role)
    assert f"ended after {math.ceil(limits_min + 1)} min at the latest" in page
    assert f"together {math.ceil(limits_min)} min." in page
