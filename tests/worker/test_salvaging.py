"""What a worker left raw is read later, and what cannot be kept now ends nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from webapp.accounts.models import User
from webapp.config import environment
from webapp.triage import runs
from webapp.triage.models import RunState, Target
from worker import reconciler, tasks

QUICK = "guest.kernel_cmdline"


def test_a_storage_that_is_away_ends_no_reconciler_and_loses_no_output(
    here: Target, admin: User, settings: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "evidence"
    settings.STORAGES = settings.STORAGES | environment.storage(f"file://{folder}")
    folder.write_text("no folder")
    run = runs.queue_probes(here.session, here, admin, [QUICK])
    tasks.run(str(run.pk))
    run.refresh_from_db()
    assert (run.state, run.failure) == (RunState.FAILED, "OurOwn")
    reconciler.reconcile_once()
    assert not run.evidence.exists()
    folder.unlink()
    reconciler.reconcile_once()
    assert [evidence.reader for evidence in run.evidence.all()] == [QUICK]
