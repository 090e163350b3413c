"""Handed scripts run on a stand-in host, and what is told of where their output comes from."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agents.facts import View
from agents.probes import handed_for
from tests.pages import html_of
from tests.webapp.handoff.conftest import Sent
from tests.webapp.handoff.stand_in import HOSTS, on_the_stand_in
from webapp.accounts.models import User
from webapp.handoff.models import Answer, HandedScript
from webapp.handoff.scripts import collector_for
from webapp.records.models import StoredReading
from webapp.records.sessions import session_open

pytestmark = [pytest.mark.django_db, pytest.mark.service]


@pytest.fixture
def script(sent: Sent, erika: Client, tmp_path: Path) -> Path:
    """The script as her browser downloads it."""
    erika.get(sent.page)
    handed = sent.link.scripts.latest("id")
    path = tmp_path / handed.name
    path.write_bytes(erika.get(f"/fetch/{handed.sha256}").content)
    return path


def marks(sent: Sent, erika: Client, output: bytes) -> list[str]:
    """What her page and the operator are told of this output. It is read all the same."""
    page = erika.post(f"{sent.page}/answer", {"text": output.decode()}, follow=True)
    answer = Answer.objects.filter(link=sent.link).latest("at")
    assert answer.understood
    for mark in answer.marks:
        assert mark.replace("'", "&#x27;") in html_of(page)
    return list(answer.marks)


def vms_of(sent: Sent) -> list[Any]:
    found = StoredReading.objects.get(evidence__session=sent.link.session, fact_id="host.vms", kind="known")
    return list(found.value or [])


def test_from_the_script_to_evidence(sent: Sent, erika: Client, script: Path, tmp_path: Path) -> None:
    output = on_the_stand_in(tmp_path, script)
    assert marks(sent, erika, output) == []
    page = html_of(erika.get(sent.page))
    assert "llm-customer-one" in page
    assert "Nothing else is open" in page
    assert "while the VM with the GPUs is running" in page  # no QEMU runs on the stand-in
    readings = StoredReading.objects.filter(evidence__session=sent.link.session)
    assert [vm["id"] for vm in vms_of(sent)] == [128]
    assert readings.get(fact_id="host.pve_version").kind == "known"
    assert {r.kind for r in readings.filter(fact_id="host.pci_mappings")} == {"known"}
    assert all(e.created_by is None for e in sent.link.session.evidence.all())


def test_every_question_has_one_answer_however_often_it_was_sent(
    sent: Sent, erika: Client, script: Path, tmp_path: Path
) -> None:
    output = on_the_stand_in(tmp_path, script)
    once = erika.post(f"{sent.page}/answer", {"text": output.decode()}, follow=True)
    later = output.replace(b"memory: 524288", b"memory: 524289")
    page = erika.post(f"{sent.page}/answer", {"text": later.decode()}, follow=True)
    mappings = "the one that says most"
    assert mappings not in html_of(once)
    assert html_of(page).count(mappings) >= 10
    assert html_of(page).count("llm-customer-one") == 1


def test_the_script_in_place_of_what_it_prints_is_told(sent: Sent, erika: Client, script: Path) -> None:
    page = erika.post(f"{sent.page}/answer", {"text": script.read_text()}, follow=True)
    text = html_of(page)
    assert "This is the script itself" in text
    assert "not recognised" in text
    assert "All questions are still open" in text
    assert not StoredReading.objects.filter(evidence__session=sent.link.session).exists()


def test_names_replaced_on_arrival_are_not_held_against_who_sent_them(
    sent: Sent, erika: Client, script: Path, tmp_path: Path
) -> None:
    output = on_the_stand_in(tmp_path, script).decode()
    page = erika.post(f"{sent.page}/answer", {"text": output, "hide": "1"}, follow=True)
    assert "lines were changed or lost" not in html_of(page)
    assert not Answer.objects.get(link=sent.link).marks


def test_which_vm_it_is_about_is_told_to_the_operator(sent: Sent, erika: Client, operator: Client) -> None:
    erika.post(f"{sent.page}/questions", {"vm": "128 <b>llm</b>"})
    sent.link.session.refresh_from_db()
    assert "vm" not in sent.link.session.workload.get("host", {})
    card = html_of(operator.get(f"/sessions/{sent.link.session.pk}/links"))
    assert "the VM is: 128 &lt;b&gt;llm&lt;/b&gt;" in card


def test_what_is_said_stands_where_the_page_then_is(sent: Sent, erika: Client) -> None:
    empty = erika.post(f"{sent.page}/answer", {"text": ""})
    assert empty["Location"].endswith("#give")
    page = html_of(erika.get(sent.page))
    assert page.index("Nothing was pasted") > page.index('id="give"')


def test_an_unchanged_output_is_not_doubted_and_a_changed_one_is(
    sent: Sent, erika: Client, script: Path, tmp_path: Path
) -> None:
    output = on_the_stand_in(tmp_path, script)
    assert marks(sent, erika, output) == []
    edited = output.replace(b"machine: pc-i440fx-9.2", b"machine: q35")
    assert edited != output
    assert marks(sent, erika, edited) == ["The output was changed after the script printed it."]
    cut = output[: output.index(b"host.vms")]
    assert marks(sent, erika, cut) == ["The end is missing: the output was cut."]
    headless = output[output.index(b" probe ") - 40 :].partition(b"\n")[2]
    assert marks(sent, erika, headless)[0].startswith("The beginning is missing")


def test_a_changed_script_is_told(sent: Sent, erika: Client, script: Path, tmp_path: Path) -> None:
    script.write_text(script.read_text().replace("cat /proc/cmdline", "echo root=/dev/sda1 ro"))
    assert marks(sent, erika, on_the_stand_in(tmp_path, script)) == ["The script was changed before it ran."]


def test_another_sessions_script_and_a_strangers_are_told(sent: Sent, erika: Client, bob: User, tmp_path: Path) -> None:
    other = collector_for(session_open(owner=bob, title="other"), View.HOST, handed_for(View.HOST))
    path = tmp_path / "other.sh"
    path.write_text(other.text)
    output = on_the_stand_in(tmp_path, path)
    assert marks(sent, erika, output) == ["It is from another session."]
    unknown = output.replace(other.nonce.encode(), b"0" * 32)
    assert marks(sent, erika, unknown)[0] == "It is not from a script that was handed out here."


def test_an_older_script_and_an_old_output_are_told(
    sent: Sent, erika: Client, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = on_the_stand_in(tmp_path, script)
    printed = re.search(rb"time=(\S+)", output)
    assert printed
    old = (datetime.now(UTC) - timedelta(days=3)).strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    assert marks(sent, erika, output.replace(printed[1], old)) == ["It was printed 3 days before it was given."]
    monkeypatch.setattr("webapp.handoff.scripts._built_again", lambda *_: "what is made today")
    assert marks(sent, erika, output + b"\n")[0].startswith("It is from an older script")


def test_a_page_hands_out_the_same_script_until_it_would_be_another(
    sent: Sent, erika: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    erika.get(sent.page)
    erika.get(sent.page)
    assert HandedScript.objects.count() == 1
    monkeypatch.setattr("webapp.handoff.scripts._built_again", lambda *_: "what is made today")
    erika.get(sent.page)
    assert HandedScript.objects.count() == 2
    assert len({s.nonce for s in HandedScript.objects.all()}) == 2


def test_run_on_the_wrong_machine_is_asked_about(sent: Sent, erika: Client, script: Path) -> None:
    """This machine has neither VMs nor GPUs, like the inside of most VMs."""
    done = subprocess.run(["sh", str(script)], capture_output=True, check=True, timeout=60)
    marks(sent, erika, done.stdout)
    assert "is this the host?" in html_of(erika.get(sent.page))


def test_redacted_output_names_nobody_and_still_says_what_matters(
    sent: Sent, erika: Client, script: Path, tmp_path: Path
) -> None:
    output = on_the_stand_in(tmp_path, script, "--redact").decode()
    for secret in ("llm-customer-one", "BC:24:11", "192.0.2", "acme", "6c0b4c6a"):
        assert secret not in output, secret
    assert marks(sent, erika, output.encode()) == []
    readings = StoredReading.objects.filter(evidence__session=sent.link.session)
    assert [(vm["id"], len(vm["hostpci"])) for vm in vms_of(sent)] == [(128, 2)]
    assert readings.get(fact_id="host.pci_mappings").kind == "known"


@pytest.mark.parametrize("host", HOSTS)
def test_it_finds_the_vm_on_every_kind_of_host(
    sent: Sent, erika: Client, script: Path, tmp_path: Path, host: str
) -> None:
    output = on_the_stand_in(tmp_path, script, host=host)
    assert marks(sent, erika, output) == []
    assert [(vm["name"], bool(vm["hostpci"])) for vm in vms_of(sent)] == [("llm-customer-one", True)]
    kinds = StoredReading.objects.filter(evidence__session=sent.link.session)
    version = kinds.get(fact_id="host.pve_version")
    assert version.kind == ("unsupported" if host == "libvirt" else "known")
    mappings = kinds.get(fact_id="host.pci_mappings").kind
    assert (mappings == "known") == (host in {"pve8", "pve9"})


def test_hiding_names_before_storing_is_not_taken_for_editing(
    sent: Sent, erika: Client, script: Path, tmp_path: Path
) -> None:
    output = on_the_stand_in(tmp_path, script).decode()
    erika.post(f"{sent.page}/answer", {"text": output, "hide": "1"})
    answer = Answer.objects.get(link=sent.link)
    assert b"llm-customer-one" not in bytes(answer.evidence.body)
    assert (answer.marks, answer.understood > 10) == ([], True)
