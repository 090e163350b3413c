"""The same worker as threads of one process, without any service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.worker.conftest import ROOT

PROGRAM = """
import json, time
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from webapp.accounts.models import User
from webapp.triage import runs
from webapp.triage.models import Run, Target
from webapp.triage.sessions import session_open
from worker import embedded

carol = User.objects.create(username="carol", is_staff=True)
session = session_open(owner=carol, title="embedded")
here = Target.objects.create(session=session, role="guest", agent="local", created_by=carol)
worker = embedded.start()
queued = [runs.queue_probes(session, here, carol, ["guest.kernel_cmdline"]) for _ in range(3)]
deadline = time.monotonic() + 20
while Run.objects.filter(ended_at=None).exists() and time.monotonic() < deadline:
    time.sleep(0.02)
worker.stop()
print(json.dumps([[run.state, run.evidence.count()] for run in Run.objects.all()]))
"""


def test_runs_are_worked_on_by_threads_of_the_web_process(tmp_path: Path) -> None:
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "webapp.config.settings",
        "PEERPATH_DATA": str(tmp_path),
        "PEERPATH_REDIS_URL": "",
        "PEERPATH_DATABASE_URL": "",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [["succeeded", 1]] * 3
