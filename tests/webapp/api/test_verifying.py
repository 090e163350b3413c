"""The founding case's plan by a program: decided, approved, carried out, compared as the page does it, closed
and scored."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from agents.samples import load
from tests.webapp.api.conftest import Program
from webapp.accounts.models import Role, User
from webapp.records.sessions import member_add, session_open
from webapp.review.calibration import scored
from webapp.review.models import Decision
from webapp.runs.samples import open_sample

pytestmark = pytest.mark.django_db
PLAN = {"chosen": ["q35_pcie", "amd_iommu_on", "iommu_pt"], "reason": "The plan of the account."}


def test_a_program_closes_what_it_compared_and_the_predictions_are_scored(
    alice: User, bob: User, program: Callable[..., Program], client: Client
) -> None:
    session = open_sample("kpro6@host", owner=alice)
    member_add(session, user=bob, added_by=alice, role=Role.REVIEWER)
    hers, his, at = program(alice), program(bob), f"/sessions/{session.pk}"
    record = hers("POST", f"{at}/decisions", PLAN).json()
    one = f"{at}/decisions/{record['number']}"
    assert hers("POST", f"{one}/propose").json()["needed"] == 1
    word = {"approves": True, "seen": "of another"}
    assert his("POST", f"{one}/judge", word).status_code == 409
    word["seen"] = record["content_sha256"]
    (said,) = his("POST", f"{one}/judge", word).json()["counting"]
    assert (said["who"], said["by_link"]) == ("bob", False)
    hers("POST", f"{one}/apply")
    for output in load("kpro6"):
        if output.stage == "after" and not output.is_workload:
            given = hers("POST", f"{at}/evidence", {"name": output.name, "text": output.text})
            assert given.status_code == 201
    told = hers("GET", f"{at}/verification").json()
    assert "Machine type (VM)" in {row["what"] for row in told["proof"]["compared"]}
    (copies,) = told["found"]
    assert copies["comparability"]["verdict"] == "with_caveats"
    assert copies["comparison"]["outcome"] == "cannot_tell"
    assert [row["printed_gb_per_s"] for row in copies["comparison"]["left_out"]] == [32.14]
    client.force_login(alice)
    page = client.get(f"{at}/verify").context["result"]
    assert [score["verdict"] for score in told["scores"]] == [s.verdict for s in page.scores]
    assert scored(alice) == []
    closed = hers("POST", f"{one}/close", {"state": "no_effect", "outcome": "NS, as before."})
    assert closed.json()["state"] == "no_effect"
    assert closed.json()["proof"] == told["proof"]
    assert not closed.json()["without_comparison"]
    assert [item.score for item in scored(alice)] == list(page.scores)


def test_a_program_is_told_what_is_missing_and_can_end_it_as_not_verified(
    alice: User, program: Callable[..., Program]
) -> None:
    session = session_open(owner=alice, title="Nothing given")
    hers, at = program(alice), f"/sessions/{session.pk}"
    record = hers("POST", f"{at}/decisions", {"chosen": ["nccl_sweep"], "reason": "x"}).json()
    one = f"{at}/decisions/{record['number']}"
    for act in ("propose", "apply"):
        assert hers("POST", f"{one}/{act}").status_code == 200
    for state in ("verified", "no_effect"):
        refused = hers("POST", f"{one}/close", {"state": state, "outcome": "Faster."})
        assert refused.status_code == 409
        assert "From before it there is no output of All-reduce" in refused.json()["detail"]
    ended = hers("POST", f"{one}/close", {"state": "not_verified", "outcome": "Faster."}).json()
    assert (ended["state"], ended["proof"]["compared"]) == ("not_verified", [])
    (row,) = hers("GET", f"{at}/decisions?state=not_verified").json()["items"]
    assert (row["state"], row["without_comparison"]) == ("not_verified", False)


def test_an_old_record_is_marked_for_programs(alice: User, program: Callable[..., Program]) -> None:
    session = open_sample("kpro6@host", owner=alice)
    Decision.objects.create(session=session, number=1, proposed_by=alice, state="verified", chosen=["iommu_pt"])
    hers = program(alice)
    assert hers("GET", f"/sessions/{session.pk}/decisions/1").json()["without_comparison"]
