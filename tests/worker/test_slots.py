"""One worker of one thread, and a machine that accepts connections and never says a word."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import asyncssh
import pytest

from agents.host_keys import HostKey, from_key
from tests.waiting import wait_for_end, wait_until
from tests.worker.conftest import in_thread
from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession, PinnedHostKey, Run, RunState, Target
from webapp.runs import lifecycle

pytestmark = pytest.mark.service
QUICK = "guest.kernel_cmdline"


@pytest.fixture
def silent(session: DiagnosisSession, admin: User, host_key: HostKey) -> Iterator[Target]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        PinnedHostKey.objects.create(
            session=session,
            host="127.0.0.1",
            port=port,
            key_line=host_key.line,
            fingerprint=host_key.fingerprint,
            accepted_by=admin,
        )
        yield Target.objects.create(
            session=session, role="guest", agent="ssh", host="127.0.0.1", port=port, user="nobody", created_by=admin
        )


@pytest.fixture
def host_key() -> HostKey:

    return from_key(asyncssh.generate_private_key("ssh-ed25519").convert_to_public())


def test_who_waits_for_a_silent_machine_keeps_no_place(silent: Target, here: Target, admin: User) -> None:
    waits = lifecycle.queue_probes(silent.session, silent, admin, [QUICK])
    works = lifecycle.queue_probes(here.session, here, admin, [QUICK])
    thread = in_thread(waits)
    wait_until(lambda: Run.objects.get(pk=works.pk).state == RunState.SUCCEEDED)
    assert Run.objects.get(pk=waits.pk).state == RunState.RUNNING
    assert thread.is_alive(), "its message is not done while somebody stands in"
    lifecycle.request_cancel(Run.objects.get(pk=waits.pk), admin)
    wait_for_end(thread)


def test_a_run_that_still_connects_is_cancelled_at_once(silent: Target, admin: User) -> None:
    run = lifecycle.queue_probes(silent.session, silent, admin, [QUICK])
    thread = in_thread(run)
    wait_until(lambda: Run.objects.get(pk=run.pk).state == RunState.RUNNING)
    assert lifecycle.request_cancel(Run.objects.get(pk=run.pk), admin)
    wait_for_end(thread)
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED
