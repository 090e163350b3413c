"""Lines that nobody placed, or that could be either machine's: what a person says of them counts, can be
taken back, and survives reading again."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agents.facts import View
from agents.facts.host import HOST_CMDLINE
from agents.facts.p2p import P2P_READ, P2P_WRITE
from agents.facts.platform import KERNEL_CMDLINE
from tests.pages import html_of
from webapp.accounts.models import User
from webapp.records import intake
from webapp.records.assignments import assign, take_back
from webapp.records.case_facts import facts_of
from webapp.records.models import Assignment, DiagnosisSession, Evidence
from webapp.records.reread import reread
from webapp.records.sessions import session_open

pytestmark = pytest.mark.django_db
CMDLINE = b"$ cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet iommu=pt\n"


@pytest.fixture
def browser(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def given(session: DiagnosisSession, user: User, raw: bytes, view: View | None = None) -> Evidence:
    evidence = intake.take_text(session, raw, user=user, view=view).evidence
    evidence.refresh_from_db()
    return evidence


def test_what_could_be_either_machines_is_asked_about_only_when_nothing_says_it(
    session_of_alice: DiagnosisSession, alice: User
) -> None:
    assert given(session_of_alice, alice, CMDLINE).doubts == [[2, 2, "guest", ["guest.kernel_cmdline"]]]
    assert given(session_of_alice, alice, CMDLINE, View.GUEST).doubts == []
    assert given(session_of_alice, alice, CMDLINE.replace(b"$", b"root@pve-7:~#")).doubts == []


def test_it_is_the_hosts_moves_the_fact_and_can_be_undone(session_of_alice: DiagnosisSession, alice: User) -> None:
    evidence = given(session_of_alice, alice, CMDLINE)
    assert assign(evidence, (2, 2), user=alice, view=View.HOST).endswith("the host's.")
    facts = facts_of(session_of_alice)
    assert facts.value(KERNEL_CMDLINE) is None
    moved = facts.best(HOST_CMDLINE)
    assert moved
    assert moved.reading.lines == (2,)
    assert not Evidence.objects.get().doubts
    reread(session_of_alice)
    assert facts_of(session_of_alice).value(HOST_CMDLINE) is not None
    take_back(evidence, (2, 2), user=alice)
    facts = facts_of(session_of_alice)
    assert facts.value(KERNEL_CMDLINE) is not None
    assert facts.value(HOST_CMDLINE) is None
    assert Assignment.objects.count() == 2
    kinds = [event.kind for event in session_of_alice.events.all()]
    assert kinds[0] == "lines_unassigned"
    assert "lines_assigned" in kinds


def test_unplaced_lines_are_read_by_the_chosen_reader(session_of_alice: DiagnosisSession, alice: User) -> None:
    raw = b"root=/dev/sda1\n"
    evidence = given(session_of_alice, alice, raw)
    (first, last) = evidence.unplaced[0]
    said = assign(evidence, (first, last), user=alice, reader="host.kernel_cmdline")
    assert "are now read as" in said
    evidence.refresh_from_db()
    assert evidence.unplaced == []
    assert intake.take_text(session_of_alice, raw, user=alice).duplicate
    assert facts_of(session_of_alice).value(HOST_CMDLINE) is not None


def test_a_reader_that_gets_nothing_says_so_and_hides_nothing(session_of_alice: DiagnosisSession, alice: User) -> None:
    matrix = b"$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\n GPU0\tX\tNS\n GPU1\tNS\tX\n"
    given(session_of_alice, alice, matrix, View.GUEST)
    evidence = given(session_of_alice, alice, b"milk\neggs\n", View.GUEST)
    said = assign(evidence, (1, 2), user=alice, reader="guest.topo_p2p_read")
    assert "gets nothing from lines 1–2" in said
    assert facts_of(session_of_alice).value(P2P_READ) is not None
    assert facts_of(session_of_alice).value(P2P_WRITE) is None


def form(evidence: Evidence, **more: Any) -> dict[str, Any]:
    return {"evidence": evidence.pk, "first": 1, "last": 2, **more}


def test_the_page_asks_and_takes_the_answer(session_of_alice: DiagnosisSession, browser: Client) -> None:
    shown = browser.post(f"/sessions/{session_of_alice.pk}/paste/path", {"text": CMDLINE.decode()})
    page = html_of(shown)
    assert "taken as the guest’s" in page
    assert "It is the host’s" in page
    address = f"/sessions/{session_of_alice.pk}/assignment"
    evidence = Evidence.objects.get()
    data = form(evidence, first=2, view="host")
    live = html_of(browser.post(address, data, headers={"HX-Request": "true"}))
    assert "are now read as the host&#x27;s" in live
    assert "Undo" in live
    undone = browser.post(address, form(evidence, first=2, take_back=1), follow=True)
    assert "as they were before" in html_of(undone)
    assert "It is the host’s" in html_of(undone)


def test_unplaced_lines_have_a_form_with_every_reader(session_of_alice: DiagnosisSession, browser: Client) -> None:
    shown = browser.post(f"/sessions/{session_of_alice.pk}/paste/guest", {"text": "milk\neggs\n"})
    page = html_of(shown)
    assert "not placed; they are" in page
    for group in ("Guest", "Host", "Benchmarks"):
        assert f'<optgroup label="{group}">' in page
    assert '<option value="host.iommu_groups">' in page


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"reader": "guest.no_such"},
        {"view": "user"},
        {"reader": "guest.cpu", "last": 999},
        {"reader": "guest.cpu", "first": 2, "last": 1},
        {"reader": "guest.cpu", "first": "x"},
        {"reader": "guest.cpu", "last": "9" * 30},
    ],
)
def test_odd_answers_change_nothing(
    session_of_alice: DiagnosisSession, alice: User, browser: Client, odd: dict[str, Any]
) -> None:
    evidence = given(session_of_alice, alice, b"milk\neggs\n")
    page = f"/sessions/{session_of_alice.pk}/assignment"
    assert browser.post(page, form(evidence, **odd)).status_code == 302
    assert not Assignment.objects.exists()


def test_evidence_of_another_session_is_not_reached(alice: User, bob: User, browser: Client) -> None:
    theirs = given(session_open(owner=bob, title="Bob's"), bob, b"milk\neggs\n")
    own = session_open(owner=alice, title="Alice's")
    answer = browser.post(f"/sessions/{own.pk}/assignment", form(theirs, reader="guest.cpu"))
    assert answer.status_code == 404
    assert not Assignment.objects.exists()


def test_the_first_page_leads_to_the_lines_it_could_not_place(browser: Client) -> None:
    nodes = "$ numactl -H\navailable: 1 nodes (0)\nnode 0 cpus: 0 1\n"
    text = nodes + "\n\nthe fans of the <second> card are loud\n"
    answer = browser.post("/sessions/read", {"text": text})
    assert answer["Location"].endswith("/diagnosis#to-say")
    page = html_of(browser.get(answer["Location"]))
    assert "the fans of the &lt;second&gt; card are loud" in page
    assert page.count('name="reader"') == 1
    assert "It is the host’s" in page
