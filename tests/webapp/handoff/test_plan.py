"""The plan and its scripts: shown, handed out, kept, offered by a link, and their output taken back."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest
from django.test import Client
from django.utils.html import strip_tags

from agents.facts import View
from tests.pages import html_of
from tests.standin.pve_host import KPRO6
from webapp.accounts.models import User
from webapp.diagnosis.catalogue import all_options
from webapp.handoff.models import Answer, HandedScript, Link
from webapp.records import intake
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession
from webapp.records.sessions import session_open
from webapp.runs.samples import open_sample

pytestmark = pytest.mark.django_db


@pytest.fixture
def case(alice: User) -> DiagnosisSession:
    """The founding case, with the host's answers."""
    return open_sample("kpro6@host", owner=alice)


def _page(browser: Client, path: str) -> str:
    answer = browser.get(path)
    assert answer.status_code == 200
    return html_of(answer)


def _section(page: str, phase: str) -> str:
    card = r'<(?:section|details) class="card'
    found = re.search(rf'(?s){card}[^>]* id="{phase}".*?(?={card}|$)', page)
    assert found, phase
    return found[0]


def test_the_plan_says_what_each_phase_would_do_and_what_to_type(operator: Client, case: DiagnosisSession) -> None:
    page = _page(operator, f"/sessions/{case.pk}/plan")
    vm = _section(page, "P2")
    for words in ("Predicted effect", "the VM is stopped and started", "x-nv-gpudirect-clique"):
        assert words in vm
    for act in ("apply", "verify", "rollback"):
        assert f"sh peerpath-host-P2-{act}-vm128.sh" in vm
    assert "sh peerpath-host-P2-apply-vm128.sh --yes" in vm
    gives_up = "<dt>Isolation given up</dt><dd>"
    assert f"{gives_up}the GPUs of this VM may write into each other’s memory" in vm
    assert f"{gives_up}none</dd>" in _section(page, "P0")
    ground = _section(page, "P5")
    assert "nothing to apply" in ground
    assert "Download" not in ground


@pytest.mark.parametrize(("cpu", "phase"), [("kvm64", "P2"), ("host", "P3")])
def test_the_vms_phases_are_scripts_for_the_host(
    operator: Client, session_of_alice: DiagnosisSession, cpu: str, phase: str
) -> None:
    case = session_of_alice
    config = f"### /etc/pve/qemu-server/128.conf\n{KPRO6}cpu: {cpu}\n"
    intake.take_text(case, config.encode(), user=case.owner, view=View.HOST)
    section = _section(_page(operator, f"/sessions/{case.pk}/plan"), phase)
    (path,) = re.findall(r'href="(/sessions/\S+?/apply)"', section)
    assert path.split("/")[-2] == "host"
    handed = operator.get(path)
    assert f"peerpath-host-{phase}-apply" in handed.headers["Content-Disposition"]
    assert operator.get(f"/sessions/{case.pk}/plan/{phase}/nobody/apply").status_code == 302


MIG_ON = b"""\
index, name, pci.bus_id, mig.mode.current
0, NVIDIA H100 80GB HBM3, 00000000:01:00.0, Enabled
1, NVIDIA H100 80GB HBM3, 00000000:02:00.0, Enabled
"""


def test_what_no_script_does_is_named_with_what_to_do(operator: Client, session_of_alice: DiagnosisSession) -> None:
    intake.take_text(session_of_alice, MIG_ON, user=session_of_alice.owner, view=View.GUEST)
    page = _page(operator, f"/sessions/{session_of_alice.pk}/plan")
    mig = re.search(r'(?s)<details[^>]*id="by-hand-disable_mig".*?</details>', page)
    assert mig
    for words in ("recommended", "nvidia-smi -mig 0", "MIG is on for 2 GPUs", "make the instances"):
        assert words in strip_tags(mig[0])
    diagnosis = session_diagnosis(session_of_alice)
    worth = [option for option in all_options() if diagnosis.advice[option.id].status in {"recommended", "possible"}]
    assert set(re.findall(r'id="by-hand-(\w+)"', page)) == {option.id for option in worth if not option.scripted}
    assert any(option.scripted for option in all_options())


def test_an_empty_session_has_no_scripts_for_the_host(operator: Client, session_of_alice: DiagnosisSession) -> None:
    page = _page(operator, f"/sessions/{session_of_alice.pk}/plan")
    for phase in ("P0", "P2", "P3", "P4", "P5"):
        waits = phase != "P5"  # where nothing is carried out by a script
        assert ("waits, see above" if waits else "nothing to apply") in _section(page, phase)
        assert "Download" not in _section(page, phase)
    assert "Inside the VM" in _section(page, "P1")  # needs nothing of the host


def test_by_hand_where_the_host_is_not_known_to_be_proxmox(operator: Client, alice: User) -> None:
    guest = open_sample("kpro6@guest", owner=alice)
    section = _section(_page(operator, f"/sessions/{guest.pk}/plan"), "by-hand")
    assert "&lt;qemu:property name=&#x27;x-nv-gpudirect-clique&#x27;" in section
    host = open_sample("kpro6@host", owner=alice)
    assert 'id="by-hand"' not in _page(operator, f"/sessions/{host.pk}/plan")


def test_a_handed_script_is_kept_as_it_was(operator: Client, case: DiagnosisSession) -> None:
    path = f"/sessions/{case.pk}/plan/P2/host/apply"
    handed = operator.get(path)
    text = html_of(handed)
    assert handed.headers["Content-Type"].startswith("text/plain")
    assert handed.headers["X-Content-Type-Options"] == "nosniff"
    name = "peerpath-host-P2-apply-vm128.sh"
    assert handed.headers["Content-Disposition"] == f'attachment; filename="{name}"'
    operator.get(path)
    kept = HandedScript.objects.get()
    assert kept.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert [(d.by and d.by.username) for d in kept.downloads.all()] == ["alice", "alice"]
    case.evidence.all().delete()
    assert operator.get(path).status_code == 302  # nothing can be made any more
    again = operator.get(f"/sessions/{case.pk}/handed/{kept.sha256}?show=1")
    assert html_of(again) == text
    page = _page(operator, f"/sessions/{case.pk}/plan")
    assert f"{kept.sha256[:16]}…" in page


def _link(operator: Client, case: DiagnosisSession, **form: Any) -> tuple[Link, Client]:
    made = operator.post(f"/sessions/{case.pk}/links/make", {"person": "Erika", **form})
    found = re.search(r"/link/(\S+?)<", html_of(made))
    assert found
    hers = Client()
    assert hers.get(f"/link/{found[1]}").status_code == 302
    return case.links.latest("asked_at"), hers


def test_a_link_offers_the_phases_it_was_made_for_and_no_other(operator: Client, case: DiagnosisSession) -> None:
    link, hers = _link(operator, case, phases=["P2", "P5", "P9"])
    assert link.phases == ["P2"]  # what has a script for the host
    page = _page(hers, f"/asked/{link.pk}")
    assert "You are also asked to carry out" in page
    offered = _section(page, "P2")
    assert "may write into each other’s memory" in offered
    assert 'id="P0"' not in page
    sums = re.findall(r'href="/fetch/([0-9a-f]{64})"', offered)
    assert len(sums) == 3
    for sha256 in sums:
        fetched = Client().get(f"/fetch/{sha256}")
        assert hashlib.sha256(fetched.content).hexdigest() == sha256
    link.revoke(link.made_by)
    assert Client().get(f"/fetch/{sums[0]}").status_code == 404


def test_what_a_phases_script_printed_comes_back_as_evidence(operator: Client, case: DiagnosisSession) -> None:
    link, hers = _link(operator, case, phases=["P2"])
    page = f"/asked/{link.pk}"
    said = "refused: VM 128 has a lock (backup)\nNothing was changed.\n"
    shown = hers.post(f"{page}/answer", {"text": said, "phase": "P2"}, follow=True)
    assert "the output of P2; alice reads it" in html_of(shown)
    answer = Answer.objects.get(phase="P2")
    assert bytes(answer.evidence.body).decode() == said
    assert answer.evidence.label == "Erika: output of P2"
    hers.post(f"{page}/answer", {"text": "something else", "phase": "P4"})
    assert Answer.objects.latest("pk").phase == ""
    links = _page(operator, f"/sessions/{case.pk}/links")
    assert "read it to see what was done" in links
    operator.post(f"/sessions/{case.pk}/links/{link.pk}/accept")
    link.refresh_from_db()
    assert link.accepted_by == link.made_by


def test_two_links_with_the_same_script_do_not_close_each_other(operator: Client, case: DiagnosisSession) -> None:
    first, one = _link(operator, case, phases=["P2"])
    second, other = _link(operator, case, phases=["P2"])
    sums = [
        re.findall(r'href="/fetch/([0-9a-f]{64})"', _section(_page(b, f"/asked/{k.pk}"), "P2"))
        for b, k in ((one, first), (other, second))
    ]
    assert sums[0] == sums[1]
    first.revoke(first.made_by)
    assert other.get(f"/fetch/{sums[1][0]}").status_code == 200
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.downloaded_at, second.downloaded_at is None) == (None, False)


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", "$(reboot)", "x`reboot`", "x';reboot;'"])
def test_hostile_configurations_are_text_on_the_plan(operator: Client, alice: User, hostile: str) -> None:
    session = session_open(owner=alice, title="x")
    config = (
        f"### /etc/pve/qemu-server/128.conf\nname: {hostile}\nargs: -set {hostile}\n"
        f"hostpci0: mapping={hostile},pcie=1\ncpu: {hostile}\nmachine: q35\nscsi0: {hostile}:disk\n"
    )
    intake.take_text(session, config.encode(), user=alice, view=View.HOST)
    page = _page(operator, f"/sessions/{session.pk}/plan")
    assert "<script>alert" not in page
    link, hers = _link(operator, session, phases=["P0", "P2"])
    assert "<script>alert" not in _page(hers, f"/asked/{link.pk}")
    for script in HandedScript.objects.filter(session=session):
        lines = [line for line in script.text.splitlines() if "reboot" in line and hostile in line]
        assert all(line.count("'") >= 2 for line in lines)  # only ever within quotes
