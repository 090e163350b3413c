"""A run of the same thing on the same machine says what differs from the one before it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.html import strip_tags

from agents.framing import Frame
from agents.probe import Output
from tests.pages import html_of
from tests.webapp.addresses import asked_in
from webapp.accounts.models import User
from webapp.records import intake
from webapp.records.models import DiagnosisSession, Run, RunState, Target, Visit
from webapp.runs import lifecycle

pytestmark = pytest.mark.django_db
TESTS = Path(__file__).resolve().parents[2]
COPIES = TESTS / "agents" / "payloads" / "two_h200.jsonl"
COPIES_AGAIN = TESTS / "webapp" / "diagnosis" / "copy_repeats" / "two_h200_again.jsonl"
MEMORY = TESTS / "agents" / "payloads" / "two_h200_memory.jsonl"
CMDLINE, DRIVER = "guest.kernel_cmdline", "guest.driver_version"
MODULE = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build\n"
READ = {CMDLINE: "root=/dev/vda ro quiet ip=10.20.30.40\n", DRIVER: MODULE.format("580.159.04")}


def ended(run: Run, state: RunState = RunState.SUCCEEDED) -> Run:
    claim = lifecycle.claim(run.pk)
    assert claim
    assert lifecycle.finish(claim, state)
    run.refresh_from_db()
    return run


def asked(target: Target, said: Mapping[str, str], state: RunState = RunState.SUCCEEDED, **arguments: str) -> Run:
    """A run of the two probes, with what they said."""
    user = target.created_by
    run = lifecycle.queue_probes(target.session, target, user, [CMDLINE, DRIVER], arguments or None)
    frames = [Frame(n, Output(text), text.encode(), b"", 5, 1, 1) for n, text in said.items()]
    intake.take_frames(run, frames)
    return ended(run, state)


def measured(target: Target, name: str, raw: bytes, **arguments: str) -> Run:
    run = lifecycle.queue_benchmark(target.session, target, target.created_by, name, arguments)
    intake.take_benchmark_output(run, raw)
    return ended(run)


def driver(version: str) -> str:
    return MODULE.format(version)


def said_on(client: Client, run: Run) -> str:
    """What its page says against another run; "" without that part."""
    client.force_login(run.session.owner)
    page = html_of(client.get(f"/sessions/{run.session_id}/runs/{run.pk}")).replace("</h2>", "</h2> ")
    part = re.search(r'id="against".*?id="again"', page, re.DOTALL)
    return " ".join(unescape(strip_tags(f"<p {part[0]} >")).split()) if part else ""


def test_the_first_run_is_compared_with_nothing(client: Client, target: Target) -> None:
    assert said_on(client, asked(target, READ)) == ""


def test_what_differs_stands_with_both_values_as_they_were_read(client: Client, target: Target) -> None:
    first = asked(target, READ)
    text = said_on(client, asked(target, {CMDLINE: "root=/dev/vda ro ip=10.20.30.41\n"} | {
        DRIVER: driver("595.45.04")
    }))  # fmt: skip
    assert f"Against run {first.number} " in text
    assert "2 of 2 facts that both runs read differ." in text
    assert re.search(r"before: 580\.159\.04 .{0,60}after: 595\.45\.04", text)
    assert re.search(r"ipbefore: 10\.20\.30\.40 .{0,60}after: 10\.20\.30\.41", text)
    assert re.search(r"quietbefore: set .{0,60}after: not there", text)


def test_the_same_bytes_again_are_compared_and_do_not_differ(client: Client, target: Target) -> None:
    asked(target, READ)
    text = said_on(client, asked(target, READ))
    assert "Nothing that was read differs: 2 facts were compared." in text


def test_what_one_of_them_could_not_read_is_said_and_is_not_the_same(client: Client, target: Target) -> None:
    asked(target, READ)
    text = said_on(client, asked(target, {CMDLINE: "something else\n"}, RunState.PARTLY))
    assert "No fact was read in both runs, so nothing can be compared." in text
    assert re.search(r"Kernel command linebefore: read .{0,60}after: unreadable: no kernel", text)
    assert re.search(r"driver.{0,20}before: read .{0,60}after: no answer came", text, re.I)
    assert "differs:" not in text
    one_sided, _, untold = text.partition("told by neither run")
    assert "Kernel command line" in one_sided
    assert "CUDA version the driver offers: not known" in untold
    assert "Kernel command line" not in untold


def test_what_another_probe_told_is_not_told_by_neither(client: Client, target: Target) -> None:
    """Both say whether KVM is visible; in the second run only one of them does."""
    cpu = "Hypervisor vendor: KVM\nModel name: AMD EPYC\n"
    for kind in ("kvm\n", "?\n"):
        run = lifecycle.queue_probes(target.session, target, target.created_by, ["guest.cpu", "guest.virt_kind"])
        said = {"guest.cpu": cpu, "guest.virt_kind": kind}
        frames = [Frame(n, Output(text), text.encode(), b"", 5, 1, 1) for n, text in said.items()]
        intake.take_frames(run, frames)
        ended(run)
    text, _, untold = said_on(client, run).partition("told by neither run")
    assert "Nothing that was read differs: 2 facts were compared." in text
    assert "KVM signature visible to the guest (another probe told both)before: read" in text
    assert re.search(r"Virtualisation kindbefore: read .{0,20}after: unreadable", text)
    assert "Virtualisation kind" not in untold


def test_a_run_that_failed_between_is_passed_over(client: Client, target: Target) -> None:
    first = asked(target, READ)
    asked(target, {}, RunState.FAILED)
    assert said_on(client, asked(target, {}, RunState.LOST)) == ""
    third = asked(target, READ)
    assert f"Against run {first.number} " in said_on(client, third)
    assert f"Against run {third.number} " in said_on(client, asked(target, READ))


def test_another_question_another_machine_or_other_arguments_are_not_compared(
    client: Client, target: Target, session_of_alice: DiagnosisSession, alice: User
) -> None:
    raw = COPIES.read_bytes()
    asked(target, READ)
    assert said_on(client, asked(target, READ, nccl_log="/tmp/a.log")) == ""
    other = session_of_alice.targets.create(role="guest", agent="ssh", host="other", user="ops", created_by=alice)
    assert said_on(client, asked(other, READ)) == ""
    first = measured(target, "bench.copy", raw, ARGV="--batch=1", AB="x", STEP="1", ARM="A")
    assert said_on(client, measured(target, "bench.copy", raw, ARGV="--batch=4")) == ""
    text = said_on(client, measured(target, "bench.copy", raw, ARGV="--batch=1"))
    assert f"Against run {first.number} " in text


def test_two_measurements_stand_side_by_side_after_the_gate(client: Client, target: Target) -> None:
    """One run of each, the second with every time a tenth longer: nothing is called better or worse."""
    raw = COPIES_AGAIN.read_bytes()
    measured(target, "bench.copy", raw)
    slower = re.sub(rb'"time_us": ([\d.]+)', lambda m: b'"time_us": %.4f' % (float(m[1]) * 1.1), raw)
    text = said_on(client, measured(target, "bench.copy", slower))
    assert "Cannot tell: one run each cannot tell a change from chance." in text
    assert re.search(r"Comparable\? \? with caveats ?\d+ of \d+ circumstances were not recorded", text)
    assert "1 run before, 1 after" in text
    assert "0.91" in text
    assert not re.search(r"got (faster|slower)|improved|worse", text)


def test_another_program_is_not_compared_as_if_it_were_the_same(client: Client, target: Target) -> None:
    raw = COPIES.read_bytes()
    measured(target, "bench.copy", raw)
    text = said_on(client, measured(target, "bench.copy", raw.replace(b"1dfe2a12cc03", b"0" * 12)))
    assert "program, by its hash changed, and no decision meant that" in text
    assert "not comparable" in text


def test_what_no_rule_compares_is_said(client: Client, target: Target) -> None:
    for _ in range(2):
        run = measured(target, "bench.memory", MEMORY.read_bytes())
    assert "Memory bandwidth reached: no rule compares two runs of it." in said_on(client, run)


def test_across_a_change_only_step_8_knows_what_was_meant(client: Client, target: Target) -> None:
    raw, session = COPIES.read_bytes(), target.session
    name = measured(target, "bench.copy", raw).evidence.get().name.replace("@", "%40")
    DiagnosisSession.objects.filter(pk=session.pk).update(epoch=1)
    run = measured(target, "bench.copy", COPIES_AGAIN.read_bytes())
    text = said_on(client, run)
    assert "A change was carried out between the two." in text
    assert "no decision meant that" not in text
    page = html_of(client.get(f"/sessions/{session.pk}/runs/{run.pk}"))
    link = re.search(rf'"(/sessions/{session.pk}/verify\?before={name}[^"]+)"', page)
    assert link
    assert "Copies between GPUs" in html_of(client.get(unescape(link[1])))


def test_what_a_person_set_aside_is_not_compared(client: Client, target: Target) -> None:
    first = asked(target, READ)
    first.evidence.filter(reader=DRIVER).update(set_aside_at=timezone.now())
    text = said_on(client, asked(target, READ))
    assert "Nothing that was read differs: 1 fact was compared." in text
    assert "not known: a person said that this output does not count" in text


def test_a_list_of_which_a_row_is_missing_is_compared_in_part(client: Client, target: Target) -> None:
    """That a node is not listed where the listing broke off is no difference."""
    nodes = "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 1 cpus: 2 3\n"
    for text in (nodes, nodes[: nodes.index("node 1")]):
        run = lifecycle.queue_probes(target.session, target, target.created_by, ["guest.numa"])
        intake.take_frames(run, [Frame("guest.numa", Output(text), text.encode(), b"", 5, 1, 1)])
        ended(run)
    text = said_on(client, run)
    assert "Nothing that was read differs: 1 fact was compared, 1 of them in part." in text
    assert "run 2 read without" in text


def test_the_page_that_watched_gets_it_when_the_run_has_ended(client: Client, target: Target) -> None:
    asked(target, READ)
    run = asked(target, READ)
    client.force_login(target.created_by)
    where = f"/sessions/{run.session_id}/runs/{run.pk}"
    asks = {"HX-Request": "true"}
    assert 'id="against"' in html_of(client.get(f"{where}?whole=1", headers=asks))
    assert 'id="against"' not in html_of(client.get(where, headers=asks))


def test_the_page_asks_at_most_ten_times(client: Client, target: Target) -> None:
    asked(target, READ)
    run = asked(target, {CMDLINE: "root=/dev/vdb ro\n", DRIVER: driver("595.45.04")})
    assert said_on(client, run)
    Visit.objects.update(at=timezone.now() - timedelta(seconds=30))
    with CaptureQueriesContext(connection) as queries:
        client.get(f"/sessions/{run.session_id}/runs/{run.pk}")
    assert asked_in(queries) <= 10
