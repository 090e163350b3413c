"""A record ends by what was compared across it; by word alone it ends as that, and says so everywhere."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from agents.samples import load
from tests.pages import html_of
from tests.webapp.review.test_verifying import carried_out, measured_again, read, served
from webapp.accounts.models import User
from webapp.diagnosis.compare.effects import Outcome
from webapp.diagnosis.compare.predictions import Verdict
from webapp.records.diagnoses import session_diagnosis
from webapp.records.models import DiagnosisSession
from webapp.records.sessions import session_open
from webapp.review.before_after import before_after
from webapp.review.bundle.export import bundle
from webapp.review.bundle.importing import open_bundle
from webapp.review.calibration import scored
from webapp.review.closing_evidence import Proof, proof_of
from webapp.review.decisions import DecisionError
from webapp.review.digests import digest_refresh
from webapp.review.madr import as_markdown
from webapp.review.models import Decision
from webapp.review.scoring import as_data
from webapp.review.similar_sessions import seen_before
from webapp.review.workflow import decision_close
from webapp.runs.samples import open_sample

pytestmark = pytest.mark.django_db
CLIQUE = "gpudirect_clique"
GPUS = range(8)
PAIRS = [(a, b) for a in GPUS for b in GPUS if a != b]


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


def closed(decision: Decision, user: User, state: str, outcome: str = "As seen.") -> None:
    session = DiagnosisSession.objects.get(pk=decision.session_id)
    result = before_after(session, ("", ""), decision)
    decision_close(
        decision,
        user=user,
        state=state,
        outcome=outcome,
        proof=proof_of(result, decision),
        scores=as_data(result.scores),
    )


def granted() -> str:
    """`topo -p2p r` of the sample's guest, as it reads once the driver allows every pair."""
    (asked,) = (o for o in load("kpro6") if (o.stage, o.probe_id) == ("after", "guest.topo_p2p_read"))
    return re.sub(r"\bNS\b", "OK", asked.text, count=len(PAIRS))


def delivered(wrong: str = "", pairs: list[tuple[int, int]] = PAIRS) -> str:
    """As the delivery payload prints it."""
    lines: list[dict[str, Any]] = [
        {"schema": "peerpath.delivery/1", "environment": {"device": "cuda", "driver": "580.1"}}
    ]
    for a, b in pairs:
        verdict = "wrong" if f"{a}->{b}" == wrong else "right"
        for method in ("copy_engine", "kernel_stores"):
            check = {"source": str(a), "destination": str(b), "mapping": "one_process"}
            lines.append({**check, "method": method, "size_bytes": 12288, "verdict": verdict})
    return "".join(json.dumps(line) + "\n" for line in (*lines, {"end": True}))


def summed(wrong: int = 0, us: float = 11.6) -> str:
    """As the all-reduce payload prints it: the control over SHM is right."""
    arms = (("no_p2p", "SHM/direct/direct", 0, 18.6), ("default", "P2P/CUMEM", wrong, us))
    environment = {"device": "cuda", "driver": "580.1", "payload_sha256": "ab" * 32}
    lines: list[dict[str, Any]] = [{"schema": "peerpath.allreduce/1", "environment": environment}]
    for arm, transport, bad, time_us in arms:
        row = {"arm": arm, "size_bytes": 12288, "ranks": 8, "in_place": True, "wrong": bad}
        lines.append({**row, "timing": "device", "method": "graph", "time_us": time_us})
        outcome = "wrong" if bad else "right"
        lines.append({"arm": arm, "outcome": outcome, "why": "", "transport": transport})
    verdict = {"verdict": "wrong" if wrong else "right", "why": ""}
    return "".join(json.dumps(line) + "\n" for line in (*lines, verdict, {"end": True}))


# --- 1. a claim about an effect needs a comparison ----------------------------------------------------


def test_in_an_empty_session_one_sentence_verifies_nothing(alice: User, client: Client) -> None:
    session = session_open(owner=alice, title="Nothing given")
    decision = carried_out(session, alice, "host_governor")
    address = f"/sessions/{session.pk}/decisions/{decision.number}/close"
    typed = "It is much faster now, everybody says so."
    for state, said in (("verified", "verified"), ("no_effect", "no effect")):
        answer = client.post(address, {"state": state, "outcome": typed})
        page = html_of(answer)
        assert answer.status_code == 422
        assert f"Not closed as {said}" in page
        assert "From before it there is no output of" in page
        assert "close it as not verified" in page
        assert typed in page
    decision.refresh_from_db()
    assert (decision.state, decision.outcome) == ("applied", "")


def test_what_was_read_before_is_to_be_read_again(session: DiagnosisSession, alice: User) -> None:
    decision = carried_out(session, alice, "q35_pcie")
    with pytest.raises(DecisionError, match=r"not read since: .*read on “Ask the host”"):
        closed(decision, alice, "verified")
    measured_again(session, alice)
    closed(decision, alice, "verified")
    what = {row["what"]: row["found"] for row in decision.proof["compared"]}
    assert what["Machine type (VM)"] == "it changed"
    assert decision.proof["lacks"] == []
    assert not decision.without_comparison


def test_what_the_options_do_not_name_verifies_nothing(session: DiagnosisSession, alice: User) -> None:
    """Copies were compared, and a profile says nothing of them; that nothing changed they may say."""
    decision = carried_out(session, alice, "engine_profile")
    measured_again(session, alice)
    with pytest.raises(DecisionError, match="Nothing that its options name"):
        closed(decision, alice, "verified")
    closed(decision, alice, "no_effect")
    assert [row["what"] for row in decision.proof["compared"]] == ["Copies between GPUs"]


def test_a_gain_of_something_else_verifies_nothing(session: DiagnosisSession, alice: User) -> None:
    """All-reduces got faster, and clocks of the host’s CPUs are not what they show."""
    for us in (18.6, 18.7, 18.5):
        read(session, alice, summed(us=us))
    decision = carried_out(session, alice, "host_governor")
    for us in (9.0, 9.1, 8.9):
        read(session, alice, summed(us=us))
    (sums,) = before_after(session, ("", ""), decision).comparisons
    assert sums.compared.outcome is Outcome.IMPROVED
    with pytest.raises(DecisionError, match="Nothing that its options name"):
        closed(decision, alice, "verified")


@pytest.mark.parametrize(("after", "refused"), [((22.0, 22.2, 21.8), ""), ((11.05,), "Serving: cannot tell")])
def test_a_comparison_that_cannot_tell_verifies_nothing(
    session: DiagnosisSession, alice: User, after: tuple[float, ...], refused: str
) -> None:
    for rate in (11.0, 11.1, 10.9) if not refused else (11.0,):
        read(session, alice, served(rate))
    decision = carried_out(session, alice, "cuda_graphs_on")
    for rate in after:
        read(session, alice, served(rate))
    if not refused:
        closed(decision, alice, "verified")
        (row,) = decision.proof["compared"]
        assert (row["what"], row["gate"]) == ("Serving", "with_caveats")
        assert row["found"].startswith("improved")
        return
    with pytest.raises(DecisionError, match=refused):
        closed(decision, alice, "verified")


def test_what_is_not_comparable_verifies_nothing(session: DiagnosisSession, alice: User) -> None:
    """Another program measured after it."""
    read(session, alice, summed(us=18.6))
    decision = carried_out(session, alice, "nccl_p2p_level")
    read(session, alice, summed(us=9.0).replace("ab" * 32, "cd" * 32))
    with pytest.raises(DecisionError, match="not comparable, because program, by its hash"):
        closed(decision, alice, "verified")
    with pytest.raises(DecisionError, match="Not closed as no effect"):
        closed(decision, alice, "no_effect")
    assert decision.state == "applied"


def test_two_states_on_one_side_of_it_compare_nothing(session: DiagnosisSession, alice: User, client: Client) -> None:
    decision = carried_out(session, alice, "q35_pcie")
    measured_again(session, alice)
    address = f"/sessions/{session.pk}/decisions/{decision.number}/close"
    for before, after in (("e1", "e1"), ("e0", "e0"), ("e1", "e0")):
        form = {"state": "verified", "outcome": "x", "before": before, "after": after}
        assert client.post(address, form).status_code == 422
    form = {"state": "verified", "outcome": "x", "before": "e0", "after": "e1"}
    assert client.post(address, form).status_code == 302


# --- 2. an end without a claim ------------------------------------------------------------------------


def test_what_nobody_measured_ends_as_not_verified_and_reads_so(
    session: DiagnosisSession, alice: User, client: Client
) -> None:
    session.workload["observed"] = [{"concurrency": 1, "output_tokens_per_s": [10.9, 11.1]}]
    session.save()
    decision = carried_out(session, alice, "iommu_pt")
    session.workload["observed"] = [{"concurrency": 1, "output_tokens_per_s": [10.95, 11.05]}]
    session.save()
    held = [s for s in before_after(session, ("", "")).scores if s.verdict is Verdict.HELD]
    assert held, "by the operator’s own figures"
    closed(decision, alice, "not_verified", "They say it helped.")
    assert "throughput" in {one.score.what for one in scored(alice)}
    assert Verdict.HELD not in {one.score.verdict for one in scored(alice)}
    record = html_of(client.get(f"/sessions/{session.pk}/decisions/{decision.number}"))
    assert "Not verified: this is somebody’s word" in record
    assert "not verified" in html_of(client.get("/decisions?state=not_verified"))
    written = as_markdown(decision)
    assert "- Status: not verified\n" in written
    assert "## Not shown" in written
    for form in ("md", "json"):
        report = html_of(client.get(f"/sessions/{session.pk}/report.{form}"))
        assert "not verified" in report
    assert "not verified" in html_of(client.get(f"/sessions/{session.pk}/log"))
    verify = client.get(f"/sessions/{session.pk}/verify").context["rail"]
    assert not next(entry.done for entry in verify if entry.step.id == "verify")


def test_another_session_remembers_it_as_not_verified(session: DiagnosisSession, alice: User, client: Client) -> None:
    decision = carried_out(session, alice, "iommu_pt")
    closed(decision, alice, "not_verified", "They say it helped.")
    digest_refresh(session)
    other = open_sample("kpro6@host", owner=alice)
    memory = seen_before(other, alice, session_diagnosis(other))
    assert memory
    (alike,) = memory.alike
    assert alike.decisions[0].ended == "not verified"
    page = html_of(client.get(f"/sessions/{other.pk}/alike"))
    assert re.search(r'class="pill unk">not verified<', page)


@pytest.mark.parametrize("state", ["not_verified", "no_effect"])
def test_a_bundle_keeps_how_it_ended(session: DiagnosisSession, alice: User, state: str) -> None:
    decision = carried_out(session, alice, "q35_pcie")
    measured_again(session, alice)
    closed(decision, alice, state)
    raw, proof = bundle(session), decision.proof
    session.decisions.all().delete()
    session.delete()
    again = open_bundle(raw, user=alice).session.decisions.get()
    assert (again.state, again.proof) == (state, proof)


# --- 3. what lets GPUs reach each other is checked ----------------------------------------------------


def with_clique(session: DiagnosisSession, alice: User, *outputs: str) -> Decision:
    decision = carried_out(session, alice, CLIQUE)
    for output in (granted(), *outputs):
        read(session, alice, output)
    return decision


@pytest.mark.parametrize(
    ("outputs", "missing"),
    [
        ((), ("Do the bytes arrive", "All-reduce, with P2P and without")),
        ((delivered(),), ("All-reduce, with P2P and without",)),
        ((summed(),), ("Do the bytes arrive",)),
        ((delivered(pairs=PAIRS[:-1]), summed()), ("Do the bytes arrive",)),
        ((delivered(pairs=PAIRS[:20]), summed()), ("Do the bytes arrive",)),
    ],
)
def test_an_ok_of_the_driver_is_no_delivery(
    session: DiagnosisSession, alice: User, outputs: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    decision = with_clique(session, alice, *outputs)
    with pytest.raises(DecisionError) as refused:
        closed(decision, alice, "verified")
    every = {"Do the bytes arrive", "All-reduce, with P2P and without"}
    assert {name for name in every if f"“{name}” was not seen" in str(refused.value)} == set(missing)
    closed(decision, alice, "not_verified")
    assert len(decision.proof["lacks"]) == len(missing)


def test_with_both_checks_right_since_the_clique_is_verified(session: DiagnosisSession, alice: User) -> None:
    decision = with_clique(session, alice, delivered(), summed())
    closed(decision, alice, "verified")
    assert (decision.state, decision.proof["lacks"]) == ("verified", [])
    assert [row["state"] for row in decision.proof["checks"]] == ["pass", "pass"]
    assert "the right bytes on all 56 checked pairs" in as_markdown(decision)
    assert "NS → OK" in {row["found"] for row in decision.proof["compared"]}


def test_checks_from_before_it_are_none_after_it(session: DiagnosisSession, alice: User) -> None:
    for output in (delivered(), summed()):
        read(session, alice, output)
    decision = with_clique(session, alice)
    with pytest.raises(DecisionError, match="was not seen to be right since"):
        closed(decision, alice, "verified")


@pytest.mark.parametrize(
    ("outputs", "why"),
    [
        ((delivered(wrong="3->5"), summed()), "the destination did not get the bytes"),
        ((delivered(), summed(wrong=7)), "over P2P: wrong"),
    ],
)
def test_wrong_data_are_harm_and_are_undone(
    session: DiagnosisSession, alice: User, client: Client, outputs: tuple[str, ...], why: str
) -> None:
    decision = with_clique(session, alice, *outputs)
    for state in ("verified", "no_effect"):
        with pytest.raises(DecisionError, match="Harmful, undo it") as refused:
            closed(decision, alice, state)
        assert why in str(refused.value)
        assert "it hangs or corrupts data" in str(refused.value)
    page = html_of(client.get(f"/sessions/{session.pk}/verify"))
    assert "Harmful, undo it" in page
    closed(decision, alice, "reverted")
    assert why in as_markdown(decision)


def test_checks_after_the_clique_was_taken_away_are_none_of_it(session: DiagnosisSession, alice: User) -> None:
    decision = with_clique(session, alice)
    carried_out(session, alice, "remove_clique")
    for output in (delivered(wrong="3->5"), summed()):
        read(session, alice, output)
    decision.refresh_from_db()
    with pytest.raises(DecisionError, match="was not seen to be right since") as refused:
        closed(decision, alice, "verified")
    assert "Harmful" not in str(refused.value)


@pytest.mark.parametrize("answer", ["NS", "OK"])
def test_where_p2p_is_not_predicted_the_drivers_answer_asks_for_checks(
    session: DiagnosisSession, alice: User, answer: str
) -> None:
    (asked,) = (o for o in load("kpro6") if (o.stage, o.probe_id) == ("after", "guest.topo_p2p_read"))
    decision = carried_out(session, alice, "bare_metal")
    read(session, alice, asked.text if answer == "NS" else granted())
    proof = proof_of(before_after(session, ("", ""), decision), decision)
    assert bool(proof.checks) == (answer == "OK")


def test_taking_the_clique_away_needs_no_such_checks(session: DiagnosisSession, alice: User) -> None:
    with_clique(session, alice, delivered(wrong="0->1"))
    session.refresh_from_db()
    decision = carried_out(session, alice, "remove_clique")
    (refused,) = (o for o in load("kpro6") if (o.stage, o.probe_id) == ("after", "guest.topo_p2p_read"))
    read(session, alice, refused.text)
    closed(decision, alice, "verified")
    assert decision.state == "verified"


# --- 4. old records -----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["verified", "no_effect"])
def test_an_old_record_stays_and_is_marked(session: DiagnosisSession, alice: User, client: Client, state: str) -> None:
    decision = carried_out(session, alice, "iommu_pt")
    Decision.objects.filter(pk=decision.pk).update(state=state, outcome="faster")
    decision.refresh_from_db()
    words = decision.get_state_display().lower()
    assert decision.ended == f"{words}, without a comparison"
    record = html_of(client.get(f"/sessions/{session.pk}/decisions/{decision.number}"))
    assert "without a comparison of before and after: this is somebody’s word" in record
    assert "without a comparison" in html_of(client.get("/decisions"))
    assert f"- Status: {words}, without a comparison\n" in as_markdown(decision)
    for form in ("md", "json"):
        report = html_of(client.get(f"/sessions/{session.pk}/report.{form}"))
        assert f"{words}, without a comparison" in report


def test_an_old_record_is_marked_where_it_is_remembered_and_found(
    session: DiagnosisSession, alice: User, client: Client
) -> None:
    decision = carried_out(session, alice, "iommu_pt")
    Decision.objects.filter(pk=decision.pk).update(state="verified", outcome="faster")
    digest_refresh(session)
    other = open_sample("kpro6@host", owner=alice)
    page = html_of(client.get(f"/sessions/{other.pk}/alike"))
    assert re.search(r'class="pill open">verified, without a comparison<', page)
    assert "without a comparison" in html_of(client.get("/search?q=faster"))


def test_what_was_not_looked_at_refuses(session: DiagnosisSession, alice: User) -> None:
    decision = carried_out(session, alice, "iommu_pt")
    with pytest.raises(DecisionError, match="Nothing was compared"):
        decision_close(decision, user=alice, state="verified", outcome="x", proof=Proof())
