"""The founding case's before and after, scored and counted; what changed; an A/B from step to step."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

import pytest
from django.test import Client

from agents.samples import load
from tests.pages import html_of
from webapp.accounts.models import User
from webapp.diagnosis.compare.comparability import Gate
from webapp.diagnosis.compare.effects import Outcome
from webapp.diagnosis.compare.predictions import Verdict
from webapp.records import intake
from webapp.records.case_facts import facts_of
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession, Event, Run, RunState, Target
from webapp.review.before_after import before_after
from webapp.review.calibration import scored, scores_of
from webapp.review.closing_evidence import Proof, proof_of
from webapp.review.decision_fields import Wording
from webapp.review.decisions import decision_draft
from webapp.review.models import Decision, Word
from webapp.review.scoring import as_data
from webapp.review.workflow import decision_apply, decision_close, decision_judge, decision_propose
from webapp.runs.samples import open_sample

pytestmark = pytest.mark.django_db
PHASES = ("q35_pcie", "amd_iommu_on", "iommu_pt")


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice", password="correct horse battery", is_staff=True)


@pytest.fixture
def session(alice: User) -> DiagnosisSession:
    return open_sample("kpro6@host", owner=alice)


@pytest.fixture
def client(alice: User) -> Client:
    found = Client()
    found.force_login(alice)
    return found


def carried_out(session: DiagnosisSession, user: User, *chosen: str) -> Decision:
    """Approved by somebody else, and applied."""
    wording = Wording(title="The plan", chosen=chosen, reason="as planned")
    decision = decision_draft(session, user=user, wording=wording, result=session_diagnosis(session))
    decision_propose(decision, user=user)
    if decision.state == "proposed":
        bob, _ = User.objects.get_or_create(username="bob")
        facts = facts_of(session)
        decision_judge(decision, word=Word.APPROVED, reason="", facts=facts, by=bob)
    decision_apply(decision, user=user, facts=facts_of(session))
    session.refresh_from_db()
    return decision


def measured_again(session: DiagnosisSession, user: User) -> None:
    for output in load("kpro6"):
        if output.stage == "after" and not output.is_workload:
            intake.take_text(session, output.text.encode(), user=user, hint=output.name)


def read(session: DiagnosisSession, user: User, text: str) -> None:
    intake.take_text(session, text.encode(), user=user, hint="guest")


def served(rate: float, completed: int = 32) -> str:
    """As vLLM 0.10 prints it."""
    return (
        "============ Serving Benchmark Result ============\n"
        f"Successful requests:                     {completed}\n"
        "Maximum request concurrency:             1\n"
        "Benchmark duration (s):                  60.00\n"
        f"Output token throughput (tok/s):         {rate:.2f}\n"
        f"Total Token throughput (tok/s):          {rate * 2:.2f}\n"
        "==================================================\n"
    )


def loaded(rate: float, watts: float | None) -> str:
    """As our own load prints it, of one and of eight requests at once; half of the eight fail."""
    head = {"schema": "peerpath.serving_load/1", "environment": {"model": "m", "seed": "7"}}
    rung = {"rung": True, "requests": 8, "errors": 0, "output_tokens_per_s": rate}
    if watts:
        rung |= {"power_w": watts, "tokens_per_joule": round(rate / watts, 5)}
    rungs = [rung | {"concurrency": 1}, rung | {"concurrency": 8, "errors": 4}]
    return "\n".join(json.dumps(line) for line in (head, *rungs, {"end": True}))


def test_the_founding_case_is_not_told_and_its_predictions_held(session: DiagnosisSession, alice: User) -> None:
    decision = carried_out(session, alice, *PHASES)
    measured_again(session, alice)
    result = before_after(session, ("", ""))
    assert (result.before, result.after, result.decision) == ("e0", "e1", decision)
    (copies,) = result.comparisons
    assert copies.compared.outcome is Outcome.CANNOT_TELL
    assert copies.compared.excluded == "a change of 2 × is excluded"
    assert [row.printed_gb_per_s for row in copies.compared.left_out] == [32.14]
    assert copies.gate.verdict is Gate.CAVEATS
    assert not copies.gate.unmeant
    p2p = [s for s in result.scores if s.what == "P2P status"]
    assert sorted(s.options[0] for s in p2p) == sorted(PHASES)
    assert {s.verdict for s in p2p} == {Verdict.HELD}
    (throughput,) = (s for s in result.scores if s.what == "throughput")
    assert throughput.verdict is Verdict.UNDECIDED


def test_without_the_decision_the_same_changes_are_not_intended(session: DiagnosisSession, alice: User) -> None:
    carried_out(session, alice, "engine_profile")
    measured_again(session, alice)
    (copies,) = before_after(session, ("", "")).comparisons
    assert set(copies.gate.unmeant) == {"host’s kernel command line", "machine type", "hostpci of the VM"}


def test_closing_keeps_the_scores_in_the_log_and_counts_them(
    session: DiagnosisSession, alice: User, client: Client
) -> None:
    decision = carried_out(session, alice, *PHASES)
    measured_again(session, alice)
    assert b"Nothing was scored yet" in client.get("/calibration").content
    form = {"state": "no_effect", "outcome": "NS as before", "before": "e0", "after": "e1"}
    client.post(f"/sessions/{session.pk}/decisions/{decision.number}/close", form)
    assert [s.verdict for s in scores_of(session, decision.number)].count(Verdict.HELD) == 3
    assert Event.first_broken(session) is None
    page = html_of(client.get("/calibration"))
    assert "3 of 3 held" in page
    record = html_of(client.get(f"/sessions/{session.pk}/decisions/{decision.number}"))
    assert "Was it predicted?" in record
    decision.refresh_from_db()
    kept = decision.proof
    again = before_after(session, ("", ""), decision)
    decision_close(
        decision, user=alice, state="reverted", outcome="put back", proof=Proof(), scores=as_data(again.scores)
    )
    assert decision.proof == kept
    assert len(scored(alice)) == 4


def test_calibration_is_of_the_sessions_one_may_see(session: DiagnosisSession, alice: User) -> None:
    decision = carried_out(session, alice, *PHASES)
    measured_again(session, alice)
    result = before_after(session, ("", ""))
    proof, scores = proof_of(result, decision), as_data(result.scores)
    decision_close(decision, user=alice, state="no_effect", outcome="x", proof=proof, scores=scores)
    assert scored(User.objects.create_user("carol")) == []


def test_a_score_of_another_shape_is_left_out(session: DiagnosisSession, alice: User) -> None:
    Event.record(session, "decision_closed", alice, number=1, scores=[{"what": "older"}])
    assert scored(alice) == []


def test_serving_before_and_after_scores_the_throughput(session: DiagnosisSession, alice: User) -> None:
    for rate in (11.0, 11.1, 10.9):
        read(session, alice, served(rate))
    decision = carried_out(session, alice, "iommu_pt")
    for rate in (11.05, 10.95, 11.15):
        read(session, alice, served(rate))
    result = before_after(session, ("", ""))
    assert result.comparisons[0].kind.title == "Serving"
    assert result.comparisons[0].compared.runs == (3, 3)
    total = result.scores[-1]
    assert (total.options, total.verdict) == (("iommu_pt",), Verdict.HELD)
    assert result.decision == decision


def test_tokens_per_joule_stand_side_by_side(session: DiagnosisSession, alice: User, client: Client) -> None:
    """Half the power at the same speed is twice the tokens for a joule; a failing rung tells nothing."""
    for n in range(3):
        read(session, alice, loaded(11.0 + n / 100, 800.0 + n))
    carried_out(session, alice, "iommu_pt")
    for n in range(3):
        read(session, alice, loaded(11.0 - n / 100, 400.0 + n))
    (item,) = (i for i in before_after(session, ("", "")).comparisons if i.kind.title == "Serving")
    (energy,) = item.energy
    assert energy.rung == "1 at once"
    assert (energy.before, energy.after) == pytest.approx((0.01374, 0.02743), abs=5e-5)
    assert energy.low
    assert energy.high
    assert energy.low < 1.996 < energy.high
    assert energy.differs
    page = html_of(client.get(f"/sessions/{session.pk}/verify"))
    assert '<td class="n">0.014</td><td class="n">0.027</td>' in page
    assert "asked every 0.4 s" in page  # how it was sampled


def test_without_power_on_both_sides_no_tokens_per_joule_are_told(
    session: DiagnosisSession, alice: User, client: Client
) -> None:
    read(session, alice, loaded(11.0, 800.0))
    carried_out(session, alice, "iommu_pt")
    read(session, alice, loaded(11.1, None))
    (item,) = (i for i in before_after(session, ("", "")).comparisons if i.kind.title == "Serving")
    assert item.energy == ()
    assert "okens per joule" not in html_of(client.get(f"/sessions/{session.pk}/verify"))


def test_what_the_operator_observed_before_is_kept_when_it_is_applied(session: DiagnosisSession, alice: User) -> None:
    session.workload["observed"] = [{"concurrency": 1, "output_tokens_per_s": [10.9, 11.1]}]
    session.save()
    carried_out(session, alice, "iommu_pt")
    assert before_after(session, ("", "")).scores[-1].seen == "not measured"
    session.workload["observed"] = [{"concurrency": 1, "output_tokens_per_s": [10.95, 11.05]}]
    session.save()
    held = before_after(session, ("", "")).scores[-1]
    assert held.verdict is Verdict.HELD
    assert "as the operator observed" in held.seen
    session.workload["observed"] = [{"concurrency": 1, "output_tokens_per_s": [21, 23]}]
    session.save()
    assert before_after(session, ("", "")).scores[-1].verdict is Verdict.MISSED


def test_one_output_can_stand_for_a_state(session: DiagnosisSession, alice: User, client: Client) -> None:
    carried_out(session, alice, *PHASES)
    measured_again(session, alice)
    first = before_after(session, ("", "")).comparisons[0]
    name = first.after.results[-1].source
    (alone,) = before_after(session, ("e0", name)).comparisons
    assert alone.compared.runs == (1, 1)
    page = client.get(f"/sessions/{session.pk}/verify?before=e0&after={quote(name)}")
    assert f'value="{name}" selected' in html_of(page)
    for nothing in ("e99", "bench.copy@000000000000", "x" * 5000, "e"):
        page = client.get(f"/sessions/{session.pk}/verify?before={nothing}&after={nothing}")
        assert page.status_code == 200
        assert "not measured on both sides" in html_of(page)


def test_what_changed_between_any_two_states(session: DiagnosisSession, alice: User, client: Client) -> None:
    carried_out(session, alice, *PHASES)
    measured_again(session, alice)
    address = f"/sessions/{session.pk}/changed"
    page = html_of(client.get(address))
    assert re.search(r"VM 128 machine.*?not there.*?q35.*?cannot matter", page, re.DOTALL)
    key = session.evidence.order_by("pk").last().pk  # type: ignore[union-attr]
    assert client.get(f"{address}?from=e0&to=t{key}").status_code == 200
    same = html_of(client.get(f"{address}?from=e1&to=e1"))
    assert "0 differences" in same
    for wrong in ("x1", "e", "e-1", "t9" + "9" * 30):
        assert client.get(f"{address}?from={wrong}&to=e1").status_code == 404
    log = html_of(client.get(f"/sessions/{session.pk}/log"))
    assert address in log


COPY_LINE = {"path": "peer", "source": "0", "destination": "1", "timing": "device"}


def output_of(us: float) -> bytes:
    """As the copy payload prints it."""
    environment = {"driver": "580.1", "payload_sha256": "ab" * 32, "argv": "", "settings": ""}
    lines = [
        {"schema": "peerpath.copy/1", "environment": environment},
        {**COPY_LINE, "size_bytes": 12288, "time_us": us, "samples": 50, "method": "queued"},
        {"end": True},
    ]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def ended(run: Run, us: float) -> None:
    Run.objects.filter(pk=run.pk).update(state=RunState.SUCCEEDED)
    run.refresh_from_db()
    intake.take_benchmark_output(run, output_of(us))


def test_an_a_b_goes_from_step_to_step(session: DiagnosisSession, alice: User, client: Client) -> None:
    target = Target.objects.create(
        session=session, role="guest", agent="ssh", host="192.0.2.1", user="op", created_by=alice
    )
    address = f"/sessions/{session.pk}/ab?option=host_governor&benchmark=bench.copy&runs=3&set="
    page = html_of(client.get(address))
    assert "In turns: no restart is needed" in page
    assert "not approved" in page
    Decision.objects.create(session=session, number=1, proposed_by=alice, state="approved", chosen=["host_governor"])
    refused = client.post(address, {"step": "1", "target": target.pk}, follow=True)
    assert "Tick that the arm is in place" in html_of(refused)
    for step in range(1, 7):
        form = {"step": str(step), "target": target.pk, "yes": "1"}
        client.post(address, form)
        client.post(address, form)  # a second click queues nothing
        run = session.runs.get(arguments__STEP=str(step))
        assert run.arguments["ARM"] == ("A" if step % 2 else "B")
        ended(run, 3.4 * (1.001**step) / (1 if step % 2 else 1.2))
    page = html_of(client.get(address))
    assert "It got faster: faster at 1 of 1" in page
    assert "No drift beyond chance" in page
    assert "Every step was measured" in page
    assert "Performance governor" in html_of(client.get(f"/sessions/{session.pk}/ab"))


def test_what_the_host_admin_does_waits_for_approval(session: DiagnosisSession, alice: User, client: Client) -> None:
    target = Target.objects.create(
        session=session, role="guest", agent="ssh", host="192.0.2.1", user="op", created_by=alice
    )
    address = f"/sessions/{session.pk}/ab?option=host_governor&benchmark=bench.copy&runs=2&set="
    client.post(address, {"step": "1", "target": target.pk, "yes": "1"})
    ended(session.runs.get(), 3.4)
    form = {"step": "2", "target": target.pk, "yes": "1"}
    refused = html_of(client.post(address, form, follow=True))
    assert "has to be approved first" in refused
    assert session.runs.count() == 1


def test_an_arm_that_the_measurement_sets_itself(session: DiagnosisSession, alice: User, client: Client) -> None:
    target = Target.objects.create(
        session=session, role="guest", agent="ssh", host="192.0.2.1", user="op", created_by=alice
    )
    address = f"/sessions/{session.pk}/ab?option=nccl_sweep&benchmark=bench.allreduce&runs=2&set=NCCL_PROTO%3DLL"
    assert "Nothing to switch by hand" in html_of(client.get(address))
    client.post(address, {"step": "1", "target": target.pk, "yes": "1"})
    assert "NCCL_PROTO" not in session.runs.get().arguments.get("ARGV", "")


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("option=nothing&benchmark=bench.copy", "Choose an option"),
        ("option=bare_metal&benchmark=bench.copy", "Choose an option"),
        ("option=host_governor&benchmark=bench.memory", "Choose an option"),
        ("option=host_governor&benchmark=bench.copy&runs=1", "Between 2 and 20"),
        ("option=host_governor&benchmark=bench.copy&runs=9999999", "Between 2 and 20"),
        ("option=nccl_sweep&benchmark=bench.copy&set=NCCL_PROTO%3DLL", "cannot make settings"),
        ("option=nccl_sweep&benchmark=bench.allreduce&set=LD_PRELOAD%3D/x", "is no value for"),
        ("option=nccl_sweep&benchmark=bench.allreduce&set=NCCL_DEBUG_FILE%3Dx", "is no value for"),
    ],
)
def test_what_cannot_be_tried_says_why(session: DiagnosisSession, client: Client, query: str, problem: str) -> None:
    page = client.get(f"/sessions/{session.pk}/ab?{query}")
    assert page.status_code == 422
    assert problem in html_of(page)
