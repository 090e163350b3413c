"""Runs on this machine, by the real agent, in a database that threads share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from tests.waiting import wait_for_end, wait_until
from tests.worker.conftest import alive, in_thread
from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession, Evidence, Run, RunState, Target
from webapp.runs import lifecycle
from worker import lease, tasks

QUICK, HANGS = "guest.kernel_cmdline", "guest.topo_p2p_read"
MATRIX = """printf ' \\tGPU0\\tGPU1\\n GPU0\\tX\\tNS\\n GPU1\\tNS\\tX\\n'"""


def queue(target: Target, user: User, *names: str) -> Run:
    return lifecycle.queue_probes(target.session, target, user, list(names))


def test_a_run_answers_every_probe_and_keeps_what_came(
    here: Target, admin: User, tools: Callable[[str, str], Path]
) -> None:
    tools("nvidia-smi", MATRIX)
    run = queue(here, admin, QUICK, HANGS)
    tasks.run(str(run.pk))
    run.refresh_from_db()
    assert (run.state, run.problem) == (RunState.SUCCEEDED, "")
    assert run.process_group
    assert run.script_sha256
    evidence = {e.reader: e for e in run.evidence.all()}
    assert set(evidence) == {QUICK, HANGS}
    assert b"GPU1" in bytes(evidence[HANGS].body)
    assert evidence[HANGS].readings.get(fact_id="guest.p2p_read").kind == "known"
    raw = b"".join(bytes(chunk.body) for chunk in run.chunks.all())
    assert run.nonce.encode() in raw
    assert b"GPU1" in raw


def test_a_message_that_comes_twice_does_nothing_the_second_time(here: Target, admin: User) -> None:
    run = queue(here, admin, QUICK)
    tasks.run(str(run.pk))
    tasks.run(str(run.pk))
    assert run.evidence.count() == 1
    assert Run.objects.get(pk=run.pk).fence == 1


def test_a_tool_that_is_missing_is_an_answer(here: Target, admin: User) -> None:
    run = queue(here, admin, HANGS)
    tasks.run(str(run.pk))
    run.refresh_from_db()
    assert run.state == RunState.SUCCEEDED
    assert run.evidence.get().readings.get(fact_id="guest.p2p_read").kind == "unsupported"


def test_cancelling_kills_what_runs_there_and_keeps_what_had_come(here: Target, admin: User, hanging_smi: Path) -> None:
    run = queue(here, admin, QUICK, HANGS)
    thread = in_thread(run)
    wait_until(hanging_smi.exists)
    wait_until(lambda: run.evidence.exists())
    pid = int(hanging_smi.read_text())
    assert alive(pid)
    assert lifecycle.request_cancel(run, admin)
    wait_for_end(thread)
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED
    assert "1 of 2" in run.problem
    assert [e.reader for e in run.evidence.all()] == [QUICK]
    wait_until(lambda: not alive(pid))


def test_a_worker_fenced_out_stops_the_machine_and_changes_nothing(
    here: Target, admin: User, hanging_smi: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_EVERY_S", 0.1)
    run = queue(here, admin, QUICK, HANGS)
    thread = in_thread(run)
    wait_until(hanging_smi.exists)
    pid = int(hanging_smi.read_text())
    Run.objects.filter(pk=run.pk).update(state=RunState.LOST, problem="by the reconciler")
    wait_for_end(thread)
    run.refresh_from_db()
    assert (run.state, run.problem) == (RunState.LOST, "by the reconciler")
    wait_until(lambda: not alive(pid))


@pytest.mark.parametrize("why", ["cancel", "shutdown"])
def test_a_run_that_is_being_ended_keeps_its_lease(
    here: Target, admin: User, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """The machine may take longer to end it than a lease lasts: nobody else may call it lost meanwhile."""
    for pace in ("RENEW_EVERY_S", "LOOK_EVERY_S"):
        monkeypatch.setattr(lease, pace, 0.0)
    run = queue(here, admin, QUICK)
    claim = lifecycle.claim(run.pk)
    assert claim
    if why == "cancel":
        assert lifecycle.request_cancel(run, admin)
    else:
        monkeypatch.setattr(lease, "handing_back", threading.Event())
        lease.handing_back.set()
    watching = lease.LeaseKeeper(claim)
    assert watching.must_stop()
    Run.objects.filter(pk=run.pk).update(lease_expires_at=timezone.now())
    assert watching.must_stop()
    assert lifecycle.expire_leases(timezone.now() + timedelta(seconds=1)) == 0
    assert watching.reason == {"cancel": lease.Stop.ASKED, "shutdown": lease.Stop.SHUTDOWN}[why]


def test_a_process_asked_to_end_stops_its_runs_and_hands_them_back(
    here: Target, admin: User, hanging_smi: Path
) -> None:
    run = queue(here, admin, QUICK, HANGS)
    thread = in_thread(run)
    wait_until(hanging_smi.exists)
    wait_until(run.evidence.exists)
    pid = int(hanging_smi.read_text())
    lease.drain(0)
    try:
        wait_for_end(thread)
    finally:
        lease.shutting_down.clear()
        lease.handing_back.clear()
    run.refresh_from_db()
    assert (run.state, run.problem) == (RunState.QUEUED, "")
    wait_until(lambda: not alive(pid))
    kept = run.chunks.count()
    hanging_smi.unlink()
    again = in_thread(run)
    wait_until(hanging_smi.exists)
    assert lifecycle.request_cancel(run, admin)
    wait_for_end(again)
    run.refresh_from_db()
    assert (run.state, run.fence) == (RunState.CANCELLED, 2)
    assert run.evidence.count() == 1, "the answer that had come is not there twice"
    assert run.chunks.count() > kept


def test_this_machine_itself_is_for_administrators_even_when_queued_before(here: Target, admin: User) -> None:
    run = queue(here, admin, QUICK)
    User.objects.filter(pk=admin.pk).update(is_staff=False)
    tasks.run(str(run.pk))
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert "administrator" in run.problem
    assert not run.chunks.exists()


def test_a_machine_out_of_reach_is_a_clear_failure(session: DiagnosisSession, admin: User) -> None:
    target = Target.objects.create(
        session=session, role="guest", agent="ssh", host="127.0.0.1", port=9, created_by=admin
    )
    run = queue(target, admin, QUICK)
    tasks.run(str(run.pk))
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert "127.0.0.1:9" in run.problem
    assert not session.host_keys.exists()


def test_our_own_mistake_does_not_leave_a_run_claimed(
    here: Target, admin: User, caplog: pytest.LogCaptureFixture
) -> None:
    run = queue(here, admin, QUICK)
    Run.objects.filter(pk=run.pk).update(names=["guest.retired_since"])
    tasks.run(str(run.pk))
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert "Peerpath itself" in run.problem
    assert "KeyError" in caplog.text
    assert not Evidence.objects.filter(run=run).exists()
