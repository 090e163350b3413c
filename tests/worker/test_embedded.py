"""The same worker as threads of one process, without any service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.waiting import wait_until
from tests.webapp.notices.conftest import Receiver, receiver
from webapp.accounts.models import User
from webapp.notices.models import Delivery
from webapp.notices.webhooks import webhook_add
from webapp.records.models import DiagnosisSession, Digest, Event, News, Run, RunState, Target
from webapp.runs import lifecycle
from worker import embedded, lease

__all__ = ["receiver"]  # a fixture

pytestmark = pytest.mark.service  # a Celery worker takes seconds to stop


@pytest.fixture
def worker(transactional_db: None) -> Iterator[embedded.Embedded]:
    running = embedded.start()
    yield running
    running.stop()
    lease.shutting_down.clear()
    lease.handing_back.clear()
    assert not any(thread.is_alive() for thread in running.threads)


def test_runs_are_worked_on_by_threads_of_this_process(worker: embedded.Embedded, here: Target, admin: User) -> None:
    for _ in range(3):
        lifecycle.queue_probes(here.session, here, admin, ["guest.kernel_cmdline"])
    wait_until(lambda: not Run.objects.filter(ended_at=None).exists())
    states = {run.state: run.evidence.count() for run in Run.objects.all()}
    assert states == {RunState.SUCCEEDED: 1}


def test_what_is_news_is_told_and_can_be_found(
    worker: embedded.Embedded, receiver: Receiver, session: DiagnosisSession, admin: User
) -> None:
    """The reconciler finds it in the database; two tasks by name do the rest."""
    webhook_add(session, url=receiver.url, kinds=["decision_proposed"], by=admin)
    Event.record(session, "decision_proposed", admin, number=1)
    wait_until(lambda: Delivery.objects.filter(state="delivered").exists())
    wait_until(lambda: not News.objects.exists())
    assert len(receiver.got) == 1
    assert Digest.objects.filter(session=session).exists()
