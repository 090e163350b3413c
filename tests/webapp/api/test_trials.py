"""An A/B of one option by a program: run by run on a machine, and with what was measured by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.webapp.api.conftest import Program
from tests.webapp.review.test_verifying import ended, output_of
from webapp.accounts.models import User
from webapp.triage.models import DiagnosisSession, Target

pytestmark = pytest.mark.django_db


@pytest.fixture
def at(session_of_alice: DiagnosisSession) -> str:
    return f"/sessions/{session_of_alice.pk}/trials"


@pytest.fixture
def ask(program: Callable[..., Program], alice: User) -> Program:
    return program(alice)


def agreed(session: DiagnosisSession, user: User) -> None:
    session.decisions.create(number=1, proposed_by=user, state="approved", chosen=["host_governor"])


def test_a_trial_goes_from_step_to_step(at: str, session_of_alice: DiagnosisSession, alice: User, ask: Program) -> None:
    target = Target.objects.create(
        session=session_of_alice, role="guest", agent="ssh", host="192.0.2.1", created_by=alice
    )
    trial = f"{at}/host_governor/bench.copy"
    first = ask("GET", f"{trial}?runs=2").json()
    assert ([step["arm"] for step in first["steps"]], first["next"]) == (["A", "B"] * 2, 1)
    assert (first["waits_for_approval"], first["verified"]) == (True, None)
    sent = {"runs": 2, "step": 1, "target": target.pk}
    assert ask("POST", f"{trial}/runs", sent).status_code == 422
    assert ask("POST", f"{trial}/runs", {**sent, "yes": True}).status_code == 201
    assert ask("POST", f"{trial}/runs", {**sent, "yes": True}).status_code == 409
    ended(session_of_alice.runs.get(), 3.4)
    with_it = {"runs": 2, "step": 2, "text": output_of(2.8).decode()}
    refused = ask("POST", f"{trial}/results", with_it)
    assert refused.status_code == 409
    assert "has to be approved first" in refused.json()["detail"]
    agreed(session_of_alice, alice)
    so_far = ask("POST", f"{trial}/results", with_it).json()
    assert (so_far["next"], so_far["steps"][0]["run"]) == (3, 1)
    assert so_far["steps"][1]["given"].startswith("paste@")
    assert so_far["verified"]["comparability"]
    assert "copy-3A.jsonl" in so_far["line"]
    known = {"option": "host_governor", "benchmark": "bench.copy", "runs": 2, "set": ""}
    assert ask("GET", at).json() == [known]


@pytest.mark.parametrize("what", ["no_such/bench.copy", "host_governor/bench.memory"])
def test_what_cannot_be_tried_is_refused(at: str, ask: Program, what: str) -> None:
    refused = ask("GET", f"{at}/{what}")
    assert refused.status_code == 422
    assert "Choose an option" in refused.json()["detail"]
