"""What a crash leaves behind, with a real Redis and real worker processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import port_for
import pytest
from django.utils import timezone

from tests.waiting import wait_until
from tests.worker.conftest import ROOT, alive
from webapp.accounts.models import User
from webapp.records.models import Run, RunState, Target
from webapp.runs import lifecycle, queue

QUICK, HANGS = "guest.kernel_cmdline", "guest.topo_p2p_read"

pytestmark = pytest.mark.service


@pytest.fixture
def redis_url(redis_proc: object, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"redis://{redis_proc.host}:{redis_proc.port}/0"  # type: ignore[attr-defined]
    monkeypatch.setattr(queue, "celery", queue.make_celery(url))
    return url


@pytest.fixture
def worker(redis_url: str, database_folder: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts worker processes on the tests' database; ends those that still run."""
    started: list[subprocess.Popen[bytes]] = []

    def start(**settings: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "worker.celery_app", "worker", "-l", "warning"],
            cwd=ROOT,
            env=os.environ | {"PEERPATH_REDIS_URL": redis_url, "PEERPATH_DATA": str(database_folder)} | settings,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_killed_worker_loses_its_run_but_nothing_that_had_come(
    here: Target, admin: User, worker: Callable[..., subprocess.Popen[bytes]], hanging_smi: Path
) -> None:
    run = lifecycle.queue_probes(here.session, here, admin, [QUICK, HANGS])
    first = worker()
    wait_until(hanging_smi.exists)
    wait_until(run.evidence.exists)
    pid = int(hanging_smi.read_text())
    os.kill(first.pid, signal.SIGKILL)
    first.wait()

    now = timezone.now()
    assert lifecycle.expire_leases(now) == 0, "the lease has not run out yet"
    assert lifecycle.expire_leases(now + lifecycle.LEASE + timedelta(seconds=1)) == 1
    run.refresh_from_db()
    assert run.state == RunState.LOST
    assert [e.reader for e in run.evidence.all()] == [QUICK]
    assert run.chunks.exists()
    wait_until(lambda: not alive(pid))

    # The message comes again, to another worker: the run stays lost, and its successor is worked on.
    queue.send_run(run.pk)
    after = lifecycle.queue_probes(here.session, here, admin, [QUICK])
    worker()
    wait_until(lambda: Run.objects.get(pk=after.pk).ended)
    assert Run.objects.get(pk=after.pk).state == RunState.SUCCEEDED
    run.refresh_from_db()
    assert (run.state, run.fence) == (RunState.LOST, 1)


def test_a_worker_asked_to_end_hands_its_run_to_the_next_one(
    here: Target, admin: User, worker: Callable[..., subprocess.Popen[bytes]], hanging_smi: Path
) -> None:
    run = lifecycle.queue_probes(here.session, here, admin, [QUICK, HANGS])
    process = worker(PEERPATH_DRAIN_S="0")
    wait_until(hanging_smi.exists)
    pid = int(hanging_smi.read_text())
    process.terminate()
    assert process.wait(60) == 0
    run.refresh_from_db()
    assert run.state == RunState.QUEUED
    assert not alive(pid)
    hanging_smi.with_name("bin").joinpath("nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    worker()
    wait_until(lambda: Run.objects.get(pk=run.pk).ended)
    run.refresh_from_db()
    assert (run.state, run.fence) == (RunState.SUCCEEDED, 2)


def test_a_worker_asked_to_end_finishes_what_is_short(
    here: Target,
    admin: User,
    worker: Callable[..., subprocess.Popen[bytes]],
    tools: Callable[[str, str], Path],
    tmp_path: Path,
) -> None:
    tools("nvidia-smi", f"touch {tmp_path}/began; sleep 2; exit 9")
    run = lifecycle.queue_probes(here.session, here, admin, [HANGS])
    process = worker()
    wait_until((tmp_path / "began").exists)
    process.terminate()
    assert process.wait(60) == 0
    run.refresh_from_db()
    assert (run.state, run.fence) == (RunState.SUCCEEDED, 1)


def test_a_message_that_redis_delivers_again_begins_nothing_twice(
    here: Target,
    admin: User,
    worker: Callable[..., subprocess.Popen[bytes]],
    tools: Callable[[str, str], Path],
    tmp_path: Path,
) -> None:
    """Longer than the visibility timeout, and two workers to give it to."""
    tools("nvidia-smi", f"echo x >> {tmp_path}/began; sleep 6; exit 9")
    run = lifecycle.queue_probes(here.session, here, admin, [HANGS])
    for _ in range(2):
        worker(PEERPATH_VISIBILITY_S="1")
    wait_until(lambda: Run.objects.get(pk=run.pk).ended)
    run.refresh_from_db()
    assert (run.state, run.fence) == (RunState.SUCCEEDED, 1)
    assert (tmp_path / "began").read_text() == "x\n"


def test_a_run_whose_message_a_flushed_redis_lost_is_still_done(
    here: Target, admin: User, worker: Callable[..., subprocess.Popen[bytes]], redis_url: str
) -> None:
    run = lifecycle.queue_probes(here.session, here, admin, [QUICK])
    with queue.celery.connection_for_write() as conn:
        conn.default_channel.client.flushall()
    worker()
    assert lifecycle.resend_lost_messages(timezone.now() + timedelta(seconds=25)) == 1
    wait_until(lambda: Run.objects.get(pk=run.pk).ended)
    assert Run.objects.get(pk=run.pk).state == RunState.SUCCEEDED


def test_a_worker_survives_a_redis_that_was_killed_and_came_back(
    here: Target, admin: User, database_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = port_for.select_random()
    url = f"redis://127.0.0.1:{port}/0"
    options = ["--port", str(port), "--save", "", "--bind", "127.0.0.1", "--dir", str(tmp_path)]
    monkeypatch.setattr(queue, "celery", queue.make_celery(url))
    redis = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
    environment = {"PEERPATH_REDIS_URL": url, "PEERPATH_DATA": str(database_folder)}
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "worker.celery_app", "worker", "-l", "warning"],
        cwd=ROOT,
        env=os.environ | environment,
    )
    try:
        first = lifecycle.queue_probes(here.session, here, admin, [QUICK])
        wait_until(lambda: Run.objects.get(pk=first.pk).ended)
        redis.kill()
        redis.wait()
        time.sleep(0.5)
        redis = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
        second = lifecycle.queue_probes(here.session, here, admin, [QUICK])
        wait_until(lambda: queue.send_run(second.pk))
        wait_until(lambda: Run.objects.get(pk=second.pk).ended)
        assert worker.poll() is None
    finally:
        for process in (worker, redis):
            process.kill()
            process.wait()


def test_a_broker_out_of_reach_leaves_the_run_waiting_and_raises_nothing(
    here: Target, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "celery", queue.make_celery("redis://127.0.0.1:9/0"))
    run = lifecycle.queue_probes(here.session, here, admin, [QUICK])
    run.refresh_from_db()
    assert (run.state, run.sent_at) == (RunState.QUEUED, None)
