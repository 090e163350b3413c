"""Search, machines side by side, what is stuck, and what was before, by a program."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agents.framing import Frame
from agents.probe import Output
from tests.webapp.api.conftest import Program
from webapp.accounts.models import User
from webapp.triage import intake, queue, runs
from webapp.triage.digests import digest_refresh
from webapp.triage.models import DiagnosisSession, PinnedHostKey, Run, RunState, Target
from webapp.triage.samples import open_sample

pytestmark = pytest.mark.django_db
DRIVER = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Tue Jan  7 00:00:00 UTC 2026\n"


def machine(session: DiagnosisSession, user: User, host: str) -> Target:
    PinnedHostKey.objects.create(session=session, host=host, port=22, key_line="ssh-ed25519 AAAA", accepted_by=user)
    return Target.objects.create(
        session=session, role="guest", agent="ssh", host=host, user="ops", beside=True,
        created_by=user,
    )  # fmt: skip


def test_the_odd_machine_is_named_and_all_are_asked_at_once(
    alice: User, session_of_alice: DiagnosisSession, program: Callable[..., Program]
) -> None:
    ask, at = program(alice), f"/sessions/{session_of_alice.pk}/machines"
    for host in "abc":
        machine(session_of_alice, alice, host)
    started = ask("POST", f"{at}/runs")
    assert [run["kind"] for run in started.json()] == ["probes"] * 3
    assert ask("POST", f"{at}/runs").json() == []
    for run in Run.objects.all():
        said = DRIVER.format("575.57.08" if run.target.host == "c" else "580.95.05")
        frame = Frame("guest.driver_version", Output(said, "", 0), said.encode(), b"", 5, 1, 1)
        intake.take_frames(run, [frame])
    found = ask("GET", at).json()
    assert found["machines"] == ["ops@a:22", "ops@b:22", "ops@c:22"]
    assert list(found["odd"]) == ["ops@c:22"]
    (trait,) = [one for one in found["traits"] if one["usual"] == "580.95.05"]
    assert [cell["standing"] for cell in trait["cells"]] == ["alike", "alike", "odd"]


def test_words_are_found_page_by_page_in_what_one_may_see(
    alice: User, bob: User, program: Callable[..., Program]
) -> None:
    session = open_sample("kpro6@host", owner=alice)
    digest_refresh(session)
    hers, address, found = program(alice), "/search?q=gpu&limit=2", []
    following = ""
    while following is not None:
        page = hers("GET", f"{address}&cursor={following}").json()
        found += page["items"]
        following = page["next"]
    everything = hers("GET", "/search?q=gpu&limit=200").json()["items"]
    assert found == everything
    assert len(found) > 2
    assert {one["session"] for one in found} == {str(session.pk)}
    only = hers("GET", "/search?q=gpu&kind=finding").json()["items"]
    assert {one["kind"] for one in only} == {"finding"}
    assert program(bob)("GET", "/search?q=gpu").json()["items"] == []
    assert hers("GET", "/search?q=gpu&kind=remark").status_code == 422


def test_what_is_stuck_is_for_administrators(
    alice: User, carol: User, session_of_alice: DiagnosisSession, program: Callable[..., Program]
) -> None:
    silent = runs.queue_probes(session_of_alice, machine(session_of_alice, alice, "a"), alice)
    late = timezone.now() - timedelta(minutes=5)
    Run.objects.filter(pk=silent.pk).update(state=RunState.RUNNING, lease_expires_at=late)
    assert program(alice)("GET", "/stuck").status_code == 403
    found = program(carol)("GET", "/stuck").json()
    assert [one["run"] for one in found["silent"]] == [str(silent.pk)]
    assert found["waiting"] == found["unread"] == []


def test_a_run_that_waits_is_sent_again_and_says_what_for(
    alice: User,
    carol: User,
    session_of_alice: DiagnosisSession,
    program: Callable[..., Program],
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
) -> None:
    settings.RUNS_PER_SESSION = 1
    first, waits = (runs.queue_probes(session_of_alice, machine(session_of_alice, alice, host), alice) for host in "ab")
    assert runs.claim(first.pk)
    Run.objects.filter(pk=waits.pk).update(created_at=timezone.now() - timedelta(minutes=5))
    ask = program(carol)
    (found,) = ask("GET", "/stuck").json()["waiting"]
    assert (found["run"], found["waits_for"]) == (str(waits.pk), None)
    assert (found["session_has_enough"], found["sent_at"]) == (True, None)
    monkeypatch.setattr(queue, "celery", queue.make_celery("redis://127.0.0.1:9/0"))
    assert ask("POST", f"/stuck/runs/{waits.pk}/send").status_code == 503
    monkeypatch.setattr(queue, "celery", queue.make_celery(""))
    sent = ask("POST", f"/stuck/runs/{waits.pk}/send").json()
    assert "at most 1 of a session" in sent["waits_for"]
    assert ask("GET", "/stuck").json()["waiting"][0]["sent_at"]
    assert ask("POST", f"/stuck/runs/{first.pk}/send").status_code == 409


def test_only_a_run_past_its_lease_is_ended_as_lost(
    alice: User, carol: User, session_of_alice: DiagnosisSession, program: Callable[..., Program]
) -> None:
    run = runs.queue_probes(session_of_alice, machine(session_of_alice, alice, "a"), alice)
    assert runs.claim(run.pk)
    ask, path = program(carol), f"/stuck/runs/{run.pk}/end"
    assert ask("POST", path).status_code == 409
    late = timezone.now() - timedelta(minutes=5)
    Run.objects.filter(pk=run.pk).update(lease_expires_at=late)
    ended = ask("POST", path).json()
    assert (ended["state"], ended["failure"]) == ("lost", "LeaseExpired")


def test_states_sessions_alike_and_scores_are_read(alice: User, program: Callable[..., Program]) -> None:
    first, second = (open_sample("kpro6", owner=alice) for _ in range(2))
    for session in (first, second):
        digest_refresh(session)
    ask, at = program(alice), f"/sessions/{first.pk}"
    found = ask("GET", f"{at}/changes").json()
    assert (found["before"], found["states"][0]["token"]) == ("e0", "e0")
    assert "host.kernel_cmdline" in {one["fact_id"] for one in found["found"]["differences"]}
    assert ask("GET", f"{at}/changes?before=x").status_code == 404
    alike = ask("GET", f"{at}/alike").json()
    assert [one["session"] for one in alike["alike"]] == [str(second.pk)]
    assert ask("GET", "/calibration").json() == []
