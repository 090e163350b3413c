"""Beyond the session: programs to carry, what came by links, who is told."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from tests.webapp.addresses import arguments_of
from tests.webapp.api.conftest import Program
from webapp.accounts.models import Role, User
from webapp.notices.fan_out import follow
from webapp.notices.models import Webhook
from webapp.records.models import DiagnosisSession, Event, Evidence, Run
from webapp.records.sessions import member_add
from webapp.runs.manual_run import program as program_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def parts(session_of_alice: DiagnosisSession, alice: User) -> dict[str, Any]:
    return arguments_of(session_of_alice, alice)


@pytest.fixture
def at(session_of_alice: DiagnosisSession) -> str:
    return f"/sessions/{session_of_alice.pk}"


def test_the_program_is_what_a_run_sends(at: str, alice: User, program: Callable[..., Program]) -> None:
    ask, got = program(alice), hashlib.sha256
    answer = ask("GET", f"{at}/benchmarks/bench.copy/program")
    assert got(answer.content).digest() == got(program_of("bench.copy")).digest()
    assert ask("GET", f"{at}/benchmarks/bench.none/program").status_code == 404


def test_an_answer_is_set_aside_and_taken_back(
    at: str, parts: dict[str, Any], alice: User, program: Callable[..., Program]
) -> None:
    ask = program(alice)
    (came,) = ask("GET", f"{at}/answers").json()["items"]
    assert (came["id"], came["counts"]) == (parts["answer_id"], True)
    aside = f"{at}/answers/{came['id']}/set-aside"
    assert ask("POST", aside, {}).json()["counts"] is False
    assert Evidence.objects.exclude(set_aside_at=None).exists()
    assert ask("POST", aside, {"counts": True}).json()["counts"] is True
    assert not Evidence.objects.exclude(set_aside_at=None).exists()


def test_a_webhooks_secret_and_address_are_for_whom_they_concern(
    at: str, session_of_alice: DiagnosisSession, alice: User, bob: User, program: Callable[..., Program]
) -> None:
    ask, sent = program(alice), {"url": "https://1.1.1.1/in?key=theirs", "kinds": ["run_finished"]}
    first = ask("POST", f"{at}/webhooks", sent, Idempotency_Key="k").json()
    again = ask("POST", f"{at}/webhooks", sent, Idempotency_Key="k").json()
    assert first["secret"].startswith("whsec_")
    assert (again["id"], again["secret"]) == (first["id"], None)
    member_add(session_of_alice, user=bob, added_by=alice, role=Role.VIEWER)
    (seen,) = program(bob)("GET", f"{at}/webhooks").json()
    assert seen["url"] == "1.1.1.1"
    inside = ask("POST", f"{at}/webhooks", sent | {"url": "https://127.0.0.1/"})
    unknown = ask("POST", f"{at}/webhooks", sent | {"kinds": ["everything"]})
    assert inside.status_code == unknown.status_code == 422
    assert "run_finished" in unknown.json()["detail"]
    assert ask("DELETE", f"{at}/webhooks/{first['id']}").status_code == 204
    assert ask("GET", f"{at}/webhooks").json() == []
    assert Webhook.objects.get().sealed == ""


def test_what_a_webhook_was_sent_is_listed(
    at: str, session_of_alice: DiagnosisSession, alice: User, program: Callable[..., Program]
) -> None:
    ask, sent = program(alice), {"url": "https://1.1.1.1/in?key=x", "kinds": ["decision_proposed"]}
    hook = ask("POST", f"{at}/webhooks", sent).json()
    Event.record(session_of_alice, "decision_proposed", alice, number=3)
    follow(session_of_alice.pk)
    (message,) = ask("GET", f"{at}/webhooks/messages").json()["items"]
    assert (message["webhook"], message["session"]) == (hook["id"], str(session_of_alice.pk))
    assert (message["kind"], message["state"]) == ("decision_proposed", "waiting")


def test_a_cancel_that_failed_and_what_kind_a_failure_was_are_said(
    at: str, parts: dict[str, Any], alice: User, program: Callable[..., Program]
) -> None:
    Run.objects.filter(pk=parts["run_id"]).update(
        state="failed", failure="CancelFailed", cancel_requested_at=timezone.now()
    )
    found = program(alice)("GET", f"{at}/runs/{parts['run_id']}").json()
    assert (found["failure"], found["cancel_failed"]) == ("CancelFailed", True)
    assert found["cancel_requested"] is True
