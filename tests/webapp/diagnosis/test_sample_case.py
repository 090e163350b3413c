"""What must be said on the founding case, figure by figure and stage by stage."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

import agents.samples
from agents.facts import View
from agents.facts.host import GPU_PATHS, HOST_IOMMU, IOMMU_GROUPS
from agents.facts.vm import VM_ID, VM_MACHINE
from agents.raw_reading import read_raw
from agents.samples import STAGES, load
from tests.webapp.diagnosis.sample_facts import case_at, diagnosed, facts_at
from webapp.diagnosis.answer.plain_words import for_a_manager
from webapp.diagnosis.answer.sections import for_an_engineer
from webapp.diagnosis.answer.user_figures import user_figures
from webapp.diagnosis.case import Actor, Bound, GateState, OptionStatus, Restart, VerdictKind
from webapp.diagnosis.claim import Basis, Claim
from webapp.diagnosis.diagnosis import Diagnosis, diagnose
from webapp.diagnosis.facts import Facts

FOLDER = Path(agents.samples.__file__).parent / "kpro6"


def about(low: float, high: float) -> object:
    return pytest.approx((low, high), rel=0.01)


def bound(found: Diagnosis, concurrency: int) -> Bound:
    return next(b for b in found.bounds if b.concurrency == concurrency)


def text(found: Diagnosis, finding: str) -> str:
    return " | ".join(c.text for f in found.findings if f.id == finding for c in f.claims)


def states(found: Diagnosis) -> dict[str, GateState]:
    return {gate.gate: gate.state for gate in found.ladder}


def status(found: Diagnosis, *options: str) -> set[OptionStatus]:
    return {found.advice[option].status for option in options}


def claims(found: Diagnosis) -> list[Claim]:
    every = [c for f in found.findings for c in f.claims]
    every += [c for a in found.advice.values() for c in a.why]
    return every + [c for v in found.verdicts.values() for c in (*v.for_, *v.against)]


@pytest.mark.parametrize("stage", STAGES)
def test_every_output_is_recognised_as_the_probe_it_is_named_after(stage: str) -> None:
    for output in load(f"kpro6@{stage}"):
        if output.is_workload:
            continue
        found = read_raw(output.text.encode(), role=None, hint=output.name)
        assert output.probe_id in {item.reader for item in found.items}, output.name
        assert not found.unrecognised, output.name
        # A pasted text has no name; whose page it is pasted on is known.
        role = View.HOST if output.name.startswith("host.") else View.GUEST
        again = read_raw(output.text.encode(), role=role, hint="")
        assert output.probe_id in {item.reader for item in again.items}, output.name


def test_stages_add_up_and_only_the_last_is_after_the_change() -> None:
    names = [{(o.stage, o.name) for o in load(f"kpro6@{stage}")} for stage in STAGES]
    assert all(earlier < later for earlier, later in pairwise(names))
    assert load("kpro6") == load("kpro6@after")
    assert {o.stage for o in load("kpro6") if o.epoch} == {"after"}
    with pytest.raises(ValueError, match="kpro6@first"):
        load("kpro7")


def test_every_stage_says_what_the_account_does_not_give() -> None:
    for stage in STAGES:
        found = tomllib.loads((FOLDER / stage / "provenance.toml").read_text())
        assert found["provenance"].startswith("reconstructed from a published account")
        assert found["given"]
        assert found["filled"]


@pytest.mark.parametrize("stage", STAGES)
def test_every_claim_names_its_evidence_or_its_source(stage: str) -> None:
    for claim in claims(diagnosed(stage)):
        assert claim.evidence or claim.basis is Basis.LITERATURE, claim.text
        if not claim.evidence:
            assert claim.text.rstrip().endswith(")"), claim.text
        assert "()" not in claim.text


@pytest.mark.parametrize("stage", STAGES)
def test_a_diagnosis_takes_at_most_50_ms(stage: str) -> None:
    facts = facts_at(stage)
    diagnose(facts)
    assert min(_cpu_s(facts) for _ in range(5)) <= 0.050


def _cpu_s(facts: Facts) -> float:
    """The best of some runs, so that a garbage collection or a busy neighbour does not count."""
    started = time.process_time()
    diagnose(facts)
    return time.process_time() - started


def test_first_nothing_is_known_of_p2p() -> None:
    found = diagnosed("first")
    assert set(states(found).values()) == {GateState.UNKNOWN}
    assert len(found.ladder) == 8
    assert found.verdicts["compute_bound"].kind is not VerdictKind.SUPPORTED
    assert "a kernel is running" in text(found, "utilisation_is_not_work")
    assert "55 %" in text(found, "utilisation_is_not_work")
    assert "52–53 %" in text(found, "utilisation_is_not_work")
    assert "485 tok/s count input and output; output was 211–250" in text(found, "total_is_not_output")


def test_first_the_floor_is_known_and_communication_is_not() -> None:
    found = diagnosed("first")
    single = bound(found, 1)
    assert single.step_ms == about(90.9, 90.9)
    assert single.floor_ms == about(1.8, 5.58)
    assert single.basis["floor_ms"] is Basis.LITERATURE
    assert single.comm_ms is None
    assert single.max_gain_p2p is None
    assert any("no copy or all-reduce" in name for name in single.missing)
    assert "most of the step is unexplained" in text(found, "most_is_unexplained")
    assert "no copy or all-reduce" in text(found, "most_is_unexplained")
    assert found.next_tests[0].id == "engine_profile"
    assert found.headline.startswith("Most of the step is unexplained")


def test_guest_the_driver_refuses_and_everything_else_is_unknown() -> None:
    found = diagnosed("guest")
    assert states(found).pop("driver") is GateState.FAIL
    assert {g.state for g in found.ladder if g.gate != "driver"} == {GateState.UNKNOWN}
    driver, granted = case_at("guest").gate("driver"), case_at("guest").gate("granted")
    assert driver
    assert driver.why.startswith("NS on 56 of 56 ordered pairs: driver policy in a KVM guest")
    assert "not a measurement" in driver.why
    assert granted
    assert "absent" in (granted.expected or "")
    assert found.verdicts["p2p_denied_no_clique"].kind is VerdictKind.SUPPORTED
    assert found.verdicts["communication_latency_bound"].kind is VerdictKind.OPEN


def test_guest_a_single_stream_is_bounded() -> None:
    found = diagnosed("guest")
    single = bound(found, 1)
    assert single.comm_ms == about(2.137, 30.0)
    assert single.comm_ms
    assert single.step_ms
    shares = (single.comm_ms[0] / single.step_ms[0], single.comm_ms[1] / single.step_ms[0])
    assert shares == about(0.0235, 0.33)
    assert single.max_gain_remove_comm
    assert single.max_gain_remove_comm[1] == pytest.approx(1.49, rel=0.01)
    assert single.max_gain_p2p
    assert 1 <= single.max_gain_p2p[0] <= single.max_gain_p2p[1] < single.max_gain_remove_comm[1]
    assert single.goal_reachable_by_p2p is False
    assert any("presumes shared memory or better" in a for a in single.assumes)
    assert "nccl_log" in {test.id for test in found.next_tests}
    assert "100 tok/s at concurrency 1 is not reachable by P2P alone" in text(found, "goal_not_by_p2p_alone")


def test_guest_concurrency_64_is_bounded() -> None:
    found = diagnosed("guest")
    many = bound(found, 64)
    assert many.step_ms == about(256, 303.3)
    assert many.floor_ms
    assert sum(many.floor_ms) / 2 * 1.6128 == pytest.approx(46.7, rel=0.03)  # GB a GPU
    assert many.comm_ms == about(6.46, 35.0)
    assert many.max_gain_remove_comm
    assert many.max_gain_remove_comm[1] == pytest.approx(1.16, rel=0.01)
    assert many.goal_reachable_by_p2p is False
    assert "1000 tok/s at concurrency 64" in text(found, "goal_not_by_p2p_alone")


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        ("pix_is_emulated", "PIX among GPU4 to GPU7 is an artefact"),
        ("wrong_baseline", "1033 GB/s inside one GPU is the wrong baseline"),
        ("wrong_baseline", "L2"),
        ("numa_not_available", "only in a guest with more than one memory node"),
        ("no_iommu_in_guest", "no IOMMU in the guest is normal"),
        ("staged_plateau", "looks like any staged copy without P2P"),
        ("host_synchronised", "13.7 µs for 12 KiB alone prove nothing"),
        ("level_is_set", "NCCL_P2P_LEVEL=PHB costs nothing now and will be needed"),
    ],
)
def test_guest_what_looks_like_a_cause_and_is_none(finding: str, words: str) -> None:
    assert words in text(diagnosed("guest"), finding)
    assert not text(diagnosed("first"), finding)


def test_guest_the_answer_in_one_line() -> None:
    found = diagnosed("guest")
    assert found.headline == (
        "Most of the step is unexplained: the GPUs cannot reach each other directly, but that explains at "
        "most a third of the step unless NCCL goes over the network."
    )
    assert "2.1–30.0 of 90.9 ms (estimated), unless NCCL goes over the network" in found.summary
    assert "At least 55.3 ms is unexplained, and P2P alone does not reach the goal: profile" in (found.summary)


def test_no_clique_is_a_likely_cause_until_somebody_looked() -> None:
    for stage, sure in (("guest", False), ("host", True)):
        found = diagnosed(stage)
        clique = found.advice["gpudirect_clique"].why[0].text
        for text in (found.summary, for_a_manager(found), clique):
            assert ("most likely because" in text) is not sure, text
            assert "because" in text


def test_the_caveat_stands_wherever_the_bound_is_said() -> None:
    found = diagnosed("guest")
    texts = [c.text for f in found.findings for c in f.claims]
    texts += [c.text for v in found.verdicts.values() for c in v.for_]
    texts += [c.text for a in found.advice.values() for c in a.why]
    texts += [c.text for s in for_an_engineer(found) for c in s.claims]
    said = [text for text in texts if "at most 1." in text]
    assert len(said) >= 6
    assert all("unless NCCL goes over the network" in text for text in said)
    assert "over the network" in for_a_manager(found)


def test_what_a_person_typed_is_said_and_not_measured() -> None:
    found = diagnosed("guest")
    [questions] = [f for f in diagnosed("host").findings if f.id == "host_questions"]
    assert questions.claims[0].known == "said"
    assert found.bounds[0].known("step_ms") == "said"
    step = next(c for s in for_an_engineer(found) for c in s.claims if "a step takes" in c.text)
    assert step.text.endswith("90.9 ms (said)")
    assert step.known == "said"
    weights = found.verdicts["memory_bandwidth_bound"].against[0].text
    assert "GB of weights, as said" in weights
    assert found.advice["tp_subset"].why[0].text.count("is the one said, not read") == 1


def test_the_figures_typed_are_listed_in_words() -> None:
    said = " ".join(user_figures(facts_at("guest")))
    for words in ("layers 78", "tensor parallel 8", "checkpoint 410–440 GB"):
        assert words in said
    for words in ("11 output tok/s at 1 request at once", "485 tok/s in all at 64 requests at once"):
        assert words in said
    assert "goal 100 tok/s for a single stream" in said
    assert user_figures(Facts.of([])) == ()


def test_an_effect_is_predicted_where_one_is_known_and_for_its_load() -> None:
    found = diagnosed("guest")
    sweep, clique = found.advice["nccl_sweep"], found.advice["gpudirect_clique"]
    assert sweep.predicted_effect is None
    assert "at most 1.49 × for a single stream" in sweep.why[0].text
    said = " ".join(claim.text for claim in clique.why)
    assert "after the engine’s profile" in said
    assert clique.after == "engine_profile"
    assert "1.00–1.40 × for a single stream, 1.00–1.12 × at 64 requests" in said


def test_host_what_was_read() -> None:
    facts = diagnosed("host").facts
    groups = facts.value(IOMMU_GROUPS) or ()
    assert [g.group for g in groups] == [10, 28, 42, 61, 72, 90, 101, 117]
    assert facts.value(VM_ID) == 128
    iommu = facts.value(HOST_IOMMU)
    assert iommu
    assert (iommu.enabled, iommu.units) == (True, 8)


def test_host_no_clique_is_granted() -> None:
    case = case_at("host")
    granted, fabric = case.gate("granted"), case.gate("fabric")
    assert granted
    assert granted.state is GateState.FAIL
    assert "VM 128’s configuration has no args" in granted.why
    assert fabric
    assert fabric.state is GateState.UNKNOWN
    assert "possible" in (fabric.expected or "")
    assert "do not forbid P2P inside one VM" in text(diagnosed("host"), "separate_groups")
    assert "8 root complexes do not forbid it" in text(diagnosed("host"), "separate_groups")


@pytest.mark.parametrize(
    ("option", "expected", "words"),
    [
        ("acs_override", OptionStatus.UNSAFE, "no effect on P2P"),
        ("bios_acs_off", OptionStatus.NO_EFFECT, "breaks the mapping pro6000"),
        ("amd_iommu_on", OptionStatus.NO_EFFECT, "no such option"),
        ("amd_iommu_on", OptionStatus.NO_EFFECT, "the IOMMU is on already"),
        ("iommu_pt", OptionStatus.NO_EFFECT, "devices given to a VM by VFIO"),
        ("allow_unsafe_interrupts", OptionStatus.UNSAFE, "nothing to do with P2P"),
        ("nvidia_peermem", OptionStatus.NO_EFFECT, "does nothing"),
        ("pcie_without_q35", OptionStatus.BLOCKED, "“q35 machine model is not enabled”"),
        ("tp_subset", OptionStatus.BLOCKED, "410–440 GB of weights plus a reserve do not fit 4 × 96"),
        ("tp_subset", OptionStatus.BLOCKED, "296 GB, is not this model"),
        ("tp4_pp2", OptionStatus.POSSIBLE, "single stream is likely slower"),
        ("cuda_toolkit_upgrade", OptionStatus.POSSIBLE, "the effect is not known"),
        ("cuda_toolkit_upgrade", OptionStatus.POSSIBLE, "not about P2P"),
        ("engine_profile", OptionStatus.RECOMMENDED, "55.3–87.0 ms"),
        ("nccl_sweep", OptionStatus.RECOMMENDED, "channels"),
        ("gpudirect_clique", OptionStatus.RECOMMENDED, "gates 4 to 7"),
        ("q35_pcie", OptionStatus.POSSIBLE, "P2P status stays as it is"),
    ],
)
def test_host_every_approach_gets_its_answer(option: str, expected: OptionStatus, words: str) -> None:
    advice = diagnosed("host").advice[option]
    assert advice.status is expected
    assert words in " | ".join(claim.text for claim in advice.why)


def test_host_what_is_recommended_and_asked() -> None:
    found = diagnosed("host")
    recommended = {k for k, a in found.advice.items() if a.status is OptionStatus.RECOMMENDED}
    assert recommended == {"engine_profile", "nccl_sweep", "gpudirect_clique"}
    questions = text(found, "host_questions")
    assert "root on the host: yes" in questions
    assert "may change: the guest, the VM, the host" in questions
    assert "why it is a VM: to be asked" in questions
    assert "no fixed order of slots to GPUs" in text(found, "mapping_pool")


def test_host_layouts() -> None:
    found = {layout.id: layout for layout in diagnosed("host").layouts}
    assert (found["tp8"].fits, found["tp4+pp2"].fits, found["tp4"].fits) == (True, True, False)
    assert found["tp8"].comm_ms == about(2.137, 30.0)
    half = found["tp4+pp2"].comm_ms
    assert half
    assert half[1] == pytest.approx(30.0 * 6 / 14, rel=0.01)


def test_after_gpus_were_lost_for_want_of_space() -> None:
    lost = text(diagnosed("after"), "gpus_lost_to_space")
    assert "6 of 8 GPUs were lost" in lost
    order = [lost.index(w) for w in ("physical address bits", "window", "pci=realloc", "pci=nocrs")]
    assert order == sorted(order)


def test_after_one_run_each_cannot_tell() -> None:
    found = diagnosed("after")
    copies = text(found, "copies_after")
    assert "cannot tell" in copies
    assert "one run of a state cannot tell" in copies, "two tables after stand against one before"
    assert "+3.4 %" in copies
    assert "inside that spread" in copies
    assert "a change of 2 × is excluded" in copies
    (unread,) = [finding for finding in found.findings if finding.id == "not_read_since"]
    assert [ref.source.partition("@")[0] for ref in unread.claims[0].evidence] == [
        *("guest.virt_kind", "guest.pci_tree", "guest.nccl_log")
    ], "of each fact the line that tells it"
    rejected = text(found, "rejected_rows")
    assert "4 MB" in rejected
    assert "is 42.8 GB/s by its own size and time, not 32.14" in rejected


def test_after_the_prediction_held_and_the_decision_closes() -> None:
    found = diagnosed("after")
    seen = text(found, "p2p_status_after")
    assert "q35, pcie=1" in seen
    assert "iommu=pt" in seen
    assert "P2P status unchanged; observed NS: held" in seen
    assert "closes as “no effect on P2P”" in seen
    assert states(found)["granted"] is GateState.FAIL
    assert states(found)["driver"] is GateState.FAIL
    assert status(found, "q35_pcie", "pci_realloc") == {OptionStatus.DONE}
    assert found.advice["pcie_without_q35"].status is OptionStatus.NO_EFFECT


def test_nothing_is_said_about_an_empty_case() -> None:
    found = diagnose(Facts.of([]))
    assert found.bounds == ()
    assert found.layouts == ()
    assert found.headline.startswith("Not enough evidence")
    assert not [v for v in found.verdicts.values() if v.kind is VerdictKind.SUPPORTED]
    assert not [a for a in found.advice.values() if a.status is OptionStatus.DONE]


def test_the_next_tests_are_cheap_first_and_say_who_acts() -> None:
    for stage in STAGES:
        tests: Sequence[object] = diagnosed(stage).next_tests
        assert 1 <= len(tests) <= 3
        first = diagnosed(stage).next_tests[0]
        assert (first.restart, first.actor) == (Restart.NONE, Actor.OPERATOR)


def test_after_the_board_of_before_is_no_evidence_for_the_one_of_now() -> None:
    """The old code cited the i440FX guest's PCI tree for “the VM is a q35 machine already”."""
    found = diagnosed("after")
    done = found.advice["q35_pcie"].why[0]
    machine = found.facts.best(VM_MACHINE)
    assert machine
    assert {ref.source for ref in done.evidence} == {machine.source}


def test_host_a_configuration_without_a_cpu_line_was_read() -> None:
    text = diagnosed("host").advice["cpu_host"].why[0].text
    assert text.startswith("the VM’s configuration names no CPU type")


def test_host_the_paths_cite_the_lines_of_the_gpus() -> None:
    paths = diagnosed("host").facts.best(GPU_PATHS)
    assert paths
    assert len(paths.reading.lines) == 8
    assert 1 not in paths.reading.lines, "that is the prompt"
