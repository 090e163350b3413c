"""The API says what differs from the run that a run repeats, as its page does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.webapp.api.conftest import Program
from tests.webapp.conftest import gpu_vm
from tests.webapp.runs.test_repeat_comparison import CMDLINE, COPIES_AGAIN, DRIVER, MEMORY, READ, asked, measured
from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession, Run

pytestmark = pytest.mark.django_db


def against(ask: Program, run: Run) -> dict[str, Any] | None:
    answer = ask("GET", f"/sessions/{run.session_id}/runs/{run.pk}/against")
    assert answer.status_code == 200
    found: dict[str, Any] | None = answer.json()
    return found


def test_facts_of_two_runs(
    session_of_alice: DiagnosisSession, alice: User, bob: User, program: Callable[..., Program]
) -> None:
    target, ask = gpu_vm(session_of_alice, alice), program(alice, "read")
    first = asked(target, READ)
    assert against(ask, first) is None
    run = asked(target, {CMDLINE: "root=/dev/vdb ro quiet ip=10.20.30.40\n", DRIVER: "?\n"})
    found = against(ask, run)
    assert found
    assert (found["number"], found["compared"]) == (first.number, [CMDLINE])
    (one,) = found["differences"]
    assert (one["names"], one["before"], one["after"]) == (["root"], "/dev/vda", "/dev/vdb")
    (half,) = found["one_sided"]
    assert (half["before"]["kind"], half["after"]["kind"]) == ("known", "unreadable")
    where = f"/sessions/{run.session_id}/runs/{run.pk}/against"
    assert program(bob)("GET", where).status_code == 404


def test_measurements_come_with_their_gate(
    session_of_alice: DiagnosisSession, alice: User, program: Callable[..., Program]
) -> None:
    target, ask = gpu_vm(session_of_alice, alice), program(alice, "read")
    for _ in range(2):
        copies = measured(target, "bench.copy", COPIES_AGAIN.read_bytes())
        memory = measured(target, "bench.memory", MEMORY.read_bytes())
    found, other = against(ask, copies), against(ask, memory)
    assert found
    assert other
    (one,) = found["measured"]
    assert one["comparability"]["verdict"] == "with_caveats"
    assert one["comparison"]["outcome"] == "cannot_tell"
    assert {effect["speedup"] for effect in one["comparison"]["effects"]} == {1.0}
    assert other["unruled"] == ["bench.memory"]
