"""An A/B without ssh, and what the steps after a proposal say of it."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.pages import html_of
from tests.webapp.review.test_verifying import alice, client, output_of, session
from webapp.accounts.models import User
from webapp.records.models import DiagnosisSession
from webapp.review.trials import GIVEN

__all__ = ["alice", "client", "session"]  # fixtures
pytestmark = pytest.mark.django_db


def proposed(session: DiagnosisSession, user: User, state: str = "proposed") -> None:
    session.decisions.create(number=1, title="Governor", proposed_by=user, state=state, chosen=["host_governor"])


def test_an_a_b_by_hand_goes_from_step_to_step(session: DiagnosisSession, alice: User, client: Client) -> None:
    proposed(session, alice, "approved")
    address = f"/sessions/{session.pk}/ab?option=host_governor&benchmark=bench.copy&runs=3&set="
    page = html_of(client.get(address))
    for step in range(1, 7):
        arm = "A" if step % 2 else "B"
        assert f"&gt; copy-{step}{arm}.jsonl" in page
        us = 3.4 * (1.001**step) / (1 if step % 2 else 1.2)
        form = {"step": str(step), "give": "1", "text": output_of(us).decode()}
        page = html_of(client.post(address, form, follow=True))
    assert "It got faster: faster at 1 of 1" in page
    assert "No drift beyond chance" in page
    assert "Every step was measured" in page
    assert session.events.filter(kind=GIVEN).count() == 6
    listed = html_of(client.get(f"/sessions/{session.pk}/ab"))
    assert "Under way or done" in listed


def test_what_is_no_result_or_was_given_before_is_no_step(session: DiagnosisSession, client: Client) -> None:
    address = f"/sessions/{session.pk}/ab?option=cuda_graphs_on&benchmark=bench.copy&runs=2&set="

    def give(step: int, text: str) -> str:
        form = {"step": str(step), "give": "1", "text": text}
        return html_of(client.post(address, form, follow=True))

    assert "Nothing in it is a result of" in give(1, "$ uname -r\n6.8\n")
    assert "is step 2" not in give(1, "")
    assert "Step 2 of" in give(1, output_of(3.4).decode())
    assert "was given for a step before" in give(2, output_of(3.4).decode())


def test_the_second_arm_waits_and_says_which_decision_it_waits_for(
    session: DiagnosisSession, alice: User, client: Client
) -> None:
    proposed(session, alice)
    address = f"/sessions/{session.pk}/ab?option=host_governor&benchmark=bench.copy&runs=2&set="
    form = {"step": "1", "give": "1", "text": output_of(3.4).decode()}
    page = html_of(client.post(address, form, follow=True))
    assert "Decision 1 proposes it and waits for approval" in page
    assert "Propose it" not in page
    form = {"step": "2", "give": "1", "text": output_of(3.0).decode()}
    assert "has to be approved first" in html_of(client.post(address, form, follow=True))
    assert session.events.filter(kind=GIVEN).count() == 1


def test_verify_and_the_plan_of_an_a_b_know_what_is_proposed(
    session: DiagnosisSession, alice: User, client: Client
) -> None:
    assert "Decide first" in html_of(client.get(f"/sessions/{session.pk}/verify"))
    proposed(session, alice)
    page = html_of(client.get(f"/sessions/{session.pk}/verify"))
    assert "Decision 1, “Governor”, is proposed and waits for approval" in page
    assert "Decide first" not in page
    page = html_of(client.get(f"/sessions/{session.pk}/ab"))
    assert '<option value="host_governor" selected>' in page


def test_options_that_are_not_to_be_done_are_named_as_such(session: DiagnosisSession, client: Client) -> None:
    page = html_of(client.get(f"/sessions/{session.pk}/ab"))
    groups = page.split("<optgroup")
    assert 'label="Recommended"' in groups[1]
    assert any("Unsafe: not to be done here" in group for group in groups[2:])


@pytest.mark.parametrize("page", ["verify", "ab", "plan", "decisions/1", "decide"])
def test_the_answer_is_on_top_of_every_later_page(
    session: DiagnosisSession, alice: User, client: Client, page: str
) -> None:
    proposed(session, alice)
    found = html_of(client.get(f"/sessions/{session.pk}/{page}"))
    assert 'aria-label="Where this session stands"' in found
    assert "Profile the engine" in found
    assert "Approve or reject decision 1" in found
