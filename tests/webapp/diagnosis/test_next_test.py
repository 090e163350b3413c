"""The next test decides something open, costs least, and is not one that was done."""

from __future__ import annotations

import pytest

from agents.facts.bench import PROFILE, Profile
from agents.facts.nccl import NCCL_TRANSPORTS, NcclTransports
from agents.facts.p2p import P2pCode
from agents.facts.platform import VIRT_KIND
from tests.webapp.diagnosis.building import facts_of, kvm_guest
from tests.webapp.diagnosis.sample_facts import facts_at
from tests.webapp.diagnosis.scenarios import SCENARIOS, Scenario
from webapp.diagnosis import next_test
from webapp.diagnosis.case import Actor, Restart, VerdictKind
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.facts import Facts, Sourced

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("stage", ["first", "guest", "host", "after"])
def test_what_it_decides_is_open(stage: str) -> None:
    found = diagnose(facts_at(stage))
    gates = {g.gate for g in found.ladder if g.state == "unknown"}
    verdicts = {k for k, v in found.verdicts.items() if v.kind is VerdictKind.OPEN}
    for test in found.next_tests:
        assert test.decides
        assert set(test.decides) <= gates | verdicts
        assert test.how


def test_the_profile_comes_first_until_it_is_there() -> None:
    assert diagnose(facts_at("first")).next_tests[0].id == "engine_profile"
    assert diagnose(facts_at("host")).next_tests[0].id == "engine_profile"
    profile = Sourced(PROFILE.known(Profile(20, 10, 30, 10, 20)), "profile")
    facts = _with(facts_at("host"), profile)
    assert "engine_profile" not in {test.id for test in diagnose(facts).next_tests}


def test_a_log_that_was_read_is_not_asked_for_again() -> None:
    log = Sourced(NCCL_TRANSPORTS.known(NcclTransports(shm=16)), "log", epoch=1, order=999)
    found = diagnose(_with(facts_at("after"), log))
    assert "nccl_log" not in {test.id for test in found.next_tests}


def test_before_the_guest_was_read_its_matrix_is_wanted() -> None:
    assert "p2p_matrix" in {test.id for test in diagnose(facts_at("first")).next_tests}
    assert "p2p_matrix" not in {test.id for test in diagnose(facts_at("guest")).next_tests}


def test_a_test_that_stops_the_host_is_never_first_while_others_are_open() -> None:
    kvm = Facts.of([Sourced(VIRT_KIND.known("kvm"), "test")])
    first = diagnose(kvm).next_tests[0]
    assert first.restart is Restart.NONE
    assert first.actor is Actor.OPERATOR


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_three_at_most_and_each_decides_something_open(scenario: Scenario) -> None:
    found = diagnose(scenario.facts)
    gates = {g.gate for g in found.ladder if g.state == "unknown"}
    open_ = {k for k, v in found.verdicts.items() if v.kind is VerdictKind.OPEN}
    assert len(found.next_tests) <= 3
    assert len({test.id for test in found.next_tests}) == len(found.next_tests)
    for test in found.next_tests:
        assert set(test.decides) <= gates | open_
    broken = {"hang", "false_p2p_grant", "gpu_lost"} - open_
    if any(found.verdicts[name].kind is VerdictKind.SUPPORTED for name in broken):
        assert "engine_profile" not in {test.id for test in found.next_tests}


def test_they_are_ordered_by_what_they_could_decide_a_minute() -> None:
    costs = {name: (minutes, weight) for name, minutes, weight in _costs()}
    for scenario in SCENARIOS:
        rates = [
            costs[test.id][1] * len(test.decides) / costs[test.id][0] for test in diagnose(scenario.facts).next_tests
        ]
        assert rates == sorted(rates, reverse=True), scenario.name


def _costs() -> list[tuple[str, int, float]]:
    """Minutes with restart and asking, and weight."""
    return [
        (candidate.test.id, next_test.cost_minutes(candidate.test), candidate.weight)
        for candidate in next_test.CANDIDATES
    ]


def test_each_sign_brings_its_test() -> None:
    wanted = {
        "busy at little power, and no token": "stack_dump",
        "granted and not looked at further": "delivery_check",
        "a refusal, and a profile that finds gaps": "nccl_log",
        "iommufd and a clean log": "delivery_check",
    }
    by_name = {scenario.name: scenario for scenario in SCENARIOS}
    for name, test_id in wanted.items():
        found = [test.id for test in diagnose(by_name[name].facts).next_tests]
        assert test_id in found, (name, found)


def test_where_nothing_runs_there_is_nothing_to_profile() -> None:
    none = next(s for s in SCENARIOS if s.name == "no GPU at all")
    assert "engine_profile" not in {test.id for test in diagnose(none.facts).next_tests}


def _with(facts: Facts, item: Sourced) -> Facts:
    return Facts.of([s for group in facts.readings.values() for s in group] + [item])


def test_nobody_asks_a_clouds_host() -> None:
    """Amazon's guests see KVM's signature, and nobody here can read its command line."""
    guest = [r for r in kvm_guest() if r.fact_id != VIRT_KIND.id]
    rented = diagnose(facts_of(*guest, VIRT_KIND.known("amazon", lines=(1,))))
    assert rented.verdicts["p2p_denied_no_clique"].kind == "supported"
    assert not {"running_qemu_line", "bare_metal_test"} & {t.id for t in rented.next_tests}
    assert rented.advice["gpudirect_clique"].status == "blocked"
    allowed = [r for r in kvm_guest(P2pCode.OK) if r.fact_id != VIRT_KIND.id]
    verdicts = diagnose(facts_of(*allowed, VIRT_KIND.known("amazon", lines=(1,)))).verdicts
    assert verdicts["p2p_denied_no_clique"].kind == "refuted"
