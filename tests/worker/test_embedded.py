"""The same worker as threads of one process, without any service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.worker.conftest import wait_until
from webapp.accounts.models import User
from webapp.triage import runs
from webapp.triage.models import Run, RunState, Target
from worker import duties, embedded

pytestmark = pytest.mark.service  # a Celery worker takes seconds to stop


@pytest.fixture
def worker(transactional_db: None) -> Iterator[embedded.Embedded]:
    running = embedded.start()
    yield running
    running.stop()
    duties.shutting_down.clear()
    duties.handing_back.clear()
    assert not any(thread.is_alive() for thread in running.threads)


def test_runs_are_worked_on_by_threads_of_this_process(
    worker: embedded.Embedded, here: Target, admin: User
) -> None:
    for _ in range(3):
        runs.queue_probes(here.session, here, admin, ["guest.kernel_cmdline"])
    wait_until(lambda: not Run.objects.filter(ended_at=None).exists())
    states = {run.state: run.evidence.count() for run in Run.objects.all()}
    assert states == {RunState.SUCCEEDED: 1}
