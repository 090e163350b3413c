"""The page of what does not move by itself, and what its buttons do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.pages import html_of
from webapp.accounts.models import User
from webapp.operations.stuck import LONG
from webapp.records import intake
from webapp.records.models import DiagnosisSession, Event, Evidence, Run, RunState, Target
from webapp.runs import queue

pytestmark = pytest.mark.django_db


@pytest.fixture
def target(session_of_alice: DiagnosisSession, alice: User) -> Target:
    return Target.objects.create(
        session=session_of_alice, role="guest", agent="ssh", host="192.0.2.1", created_by=alice
    )


@pytest.fixture
def admin(carol: User) -> Client:
    client = Client()
    client.force_login(carol)
    return client


def run_of(target: Target, state: RunState, **times: Any) -> Run:
    run = Run.objects.create(
        session=target.session, target=target, number=1, kind="probes", state=state, created_by=target.created_by
    )
    Run.objects.filter(pk=run.pk).update(**times)
    return run


def ago(**span: float) -> Any:
    return timezone.now() - timedelta(**span)


def test_nothing_is_stuck_while_runs_work_and_wait_a_moment(admin: Client, target: Target) -> None:
    run_of(target, RunState.QUEUED)
    assert "Nothing is stuck" in html_of(admin.get("/stuck"))


def test_a_silent_run_is_ended_as_lost(admin: Client, target: Target) -> None:
    run = run_of(target, RunState.RUNNING, lease_expires_at=ago(minutes=5))
    page = html_of(admin.get("/stuck"))
    assert "Past their lease" in page
    admin.post("/stuck/move", {"do": "end", "key": str(run.pk)})
    run.refresh_from_db()
    assert (run.state, run.failure) == (RunState.LOST, "LeaseExpired")
    assert "Nothing is stuck" in html_of(admin.get("/stuck"))


def test_a_run_that_has_moved_meanwhile_is_left_alone(admin: Client, target: Target) -> None:
    run = run_of(target, RunState.RUNNING, lease_expires_at=timezone.now() + timedelta(minutes=10))
    answer = admin.post("/stuck/move", {"do": "end", "key": str(run.pk)}, follow=True)
    assert "moved by itself" in html_of(answer)
    run.refresh_from_db()
    assert run.state == RunState.RUNNING


def test_a_run_that_waits_long_is_sent_again_or_cancelled(
    admin: Client, carol: User, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(target, RunState.QUEUED, created_at=ago(seconds=LONG.total_seconds() + 1))
    assert "Waiting for more than 2 minutes" in html_of(admin.get("/stuck"))
    monkeypatch.setattr(queue, "celery", queue.make_celery("redis://127.0.0.1:9/0"))
    answer = admin.post("/stuck/move", {"do": "send", "key": str(run.pk)}, follow=True)
    assert "broker is out of reach" in html_of(answer)
    monkeypatch.setattr(queue, "celery", queue.make_celery(""))
    admin.post("/stuck/move", {"do": "send", "key": str(run.pk)})
    run.refresh_from_db()
    assert run.sent_at is not None
    admin.post("/stuck/move", {"do": "cancel", "key": str(run.pk)})
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED
    assert Event.objects.filter(kind="run_cancel_requested", actor=carol).exists()


def test_a_run_whose_session_has_enough_at_work_is_said_to_wait_rightly(
    admin: Client, target: Target, settings: Any
) -> None:
    settings.RUNS_PER_SESSION = 1
    waits = run_of(target, RunState.QUEUED, created_at=ago(hours=1), kind="benchmark")
    said = "its session has as many runs at work as it may have"
    assert said not in html_of(admin.get("/stuck"))
    Run.objects.filter(pk=waits.pk).update(number=2)
    run_of(target, RunState.RUNNING, lease_expires_at=timezone.now() + timedelta(minutes=10))
    assert said in html_of(admin.get("/stuck"))


def test_an_output_whose_reading_was_cut_short_is_read(
    admin: Client, session_of_alice: DiagnosisSession, alice: User
) -> None:
    raw = b"$ cat /proc/cmdline\nBOOT_IMAGE=/boot/vmlinuz-6.8 root=/dev/vda1 iommu=pt\n"
    taken = intake.take_text(session_of_alice, raw, user=alice).evidence
    taken.readings.all().delete()  # as a crash between storing and reading leaves it
    Evidence.objects.filter(pk=taken.pk).update(unplaced=[])
    assert taken.name in html_of(admin.get("/stuck"))
    admin.post("/stuck/move", {"do": "read", "key": str(taken.pk)})
    assert taken.readings.exists()
    assert "Nothing is stuck" in html_of(admin.get("/stuck"))


@pytest.mark.parametrize("form", [{}, {"do": "end", "key": "7"}, {"do": "read", "key": "x"}])
def test_what_is_not_there_is_said(admin: Client, form: dict[str, str]) -> None:
    answer = admin.post("/stuck/move", form, follow=True)
    assert "no such thing to move" in html_of(answer)


def test_a_run_whose_output_waits_for_the_storage_is_listed(admin: Client, target: Target) -> None:
    run_of(target, RunState.PARTLY, failure="StorageAway", ended_at=ago(hours=2))
    page = html_of(admin.get("/stuck"))
    assert "Waiting for the storage of evidence" in page
    assert "Nothing is stuck" not in page
