"""What was left raw is read later: of a worker that died, and of a storage of evidence that was away."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from tests.evidence_store import EvidenceStore
from webapp.accounts.models import User
from webapp.records.models import Event, OutputChunk, Run, RunState, Target
from webapp.runs import lifecycle
from worker import reconciler, tasks

QUICK, MATRIX = "guest.kernel_cmdline", "guest.topo_p2p_read"

pytestmark = pytest.mark.service


def test_a_run_goes_on_while_the_storage_is_away_and_is_read_when_it_is_back(
    here: Target, admin: User, store: EvidenceStore, tools: Callable[[str, str], Path]
) -> None:
    tools("nvidia-smi", "printf ' \\tGPU0\\tGPU1\\n GPU0\\tX\\tNS\\n GPU1\\tNS\\tX\\n'")
    store.stop()
    run = lifecycle.queue_probes(here.session, here, admin, [QUICK, MATRIX])
    tasks.run(str(run.pk))
    run.refresh_from_db()
    assert (run.state, run.failure) == (RunState.PARTLY, "StorageAway")
    assert run.problem == lifecycle.WAITS_FOR_STORAGE
    reconciler.reconcile_once()
    assert not run.evidence.exists()

    # Long after its end, too.
    Run.objects.filter(pk=run.pk).update(ended_at=timezone.now() - timedelta(days=3))
    store.start()
    reconciler.reconcile_once()
    run.refresh_from_db()
    assert {evidence.reader for evidence in run.evidence.all()} == {QUICK, MATRIX}
    assert run.evidence.get(reader=MATRIX).readings.get(fact_id="guest.p2p_read").kind == "known"
    assert (run.state, run.failure) == (RunState.PARTLY, "")
    assert "was read afterwards" in run.problem
    reconciler.reconcile_once()
    assert Event.objects.filter(session=here.session, kind="run_read_late").count() == 1
    assert Event.first_broken(here.session) is None


def test_an_answer_that_was_cut_off_is_read_as_far_as_it_came(here: Target, admin: User, store: EvidenceStore) -> None:
    store.stop()
    run = lifecycle.queue_probes(here.session, here, admin, [QUICK])
    tasks.run(str(run.pk))
    last = run.chunks.last()
    assert last is not None
    whole = bytes(last.body)
    OutputChunk.objects.filter(pk=last.pk).update(body=whole[: whole.rindex(b"\n| ") + 5])
    store.start()
    reconciler.reconcile_once()
    assert run.evidence.get(reader=QUICK).meta["truncated"] is True


def test_what_was_purged_meanwhile_is_not_called_read(here: Target, admin: User, store: EvidenceStore) -> None:
    store.stop()
    run = lifecycle.queue_probes(here.session, here, admin, [QUICK])
    tasks.run(str(run.pk))
    OutputChunk.objects.filter(run=run).delete()
    reconciler.reconcile_once()
    run.refresh_from_db()
    assert (run.failure, run.evidence.count()) == ("", 0)
    assert "nothing is left" in run.problem


def test_a_measurement_that_the_storage_did_not_take_is_not_called_failed(
    here: Target, admin: User, store: EvidenceStore, tools: Callable[[str, str], Path]
) -> None:
    store.stop()
    run = lifecycle.queue_benchmark(here.session, here, admin, "bench.copy")
    tasks.run(str(run.pk))
    run.refresh_from_db()
    assert (run.state, run.failure) == (RunState.PARTLY, "StorageAway"), run.problem
    assert "measured" not in run.problem
    store.start()
    reconciler.reconcile_once()
    run.refresh_from_db()
    assert run.evidence.get().raw == b"".join(bytes(c.body) for c in run.chunks.all())
