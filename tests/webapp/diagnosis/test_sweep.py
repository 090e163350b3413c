"""Which of NCCL's settings differ: real differences are named, chance is not, broken arms never advised."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from agents.benchmark import all_benchmarks
from agents.facts import Reading
from agents.facts.bench import SweepResult
from agents.facts.nccl import NCCL_ENV
from agents.facts.p2p import P2P_READ, P2P_WRITE, P2pCode, P2pMatrix
from agents.facts.workload import MODEL, OBSERVED, PARALLELISM, Model, Observed, Parallelism
from agents.probe import Output
from tests.sweeps import TYPICAL_US, lines, printed
from tests.webapp.diagnosis.building import sourced
from webapp.diagnosis.case import Case, OptionStatus, VerdictKind
from webapp.diagnosis.catalogue import all_options
from webapp.diagnosis.claim import Basis
from webapp.diagnosis.compare.student import holm, reach, two_sided
from webapp.diagnosis.compare.sweep import Standing, compare_sweep
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.hypotheses import nccl_level_too_low
from webapp.diagnosis.prediction.nccl_choice import choice, nccl_choice
from webapp.diagnosis.situation import Situation

MODEL_READ = MODEL.known(Model(layers=78, hidden_size=6144, activation_bytes=2))


def reading(**how: Any) -> Reading[Any]:
    found, *_ = all_benchmarks()["bench.nccl_sweep"].parse(Output(printed(lines(**how))))
    return found


def result(**how: Any) -> SweepResult:
    value = reading(**how).value
    assert isinstance(value, SweepResult)
    return value


def standings(**how: Any) -> Mapping[str, Standing]:
    return {e.arm.name: e.standing for e in compare_sweep(result(**how)).arms}


# Printed tables of Student's t, two-sided: (degrees of freedom, level, t).
TABLE = [(1, 0.05, 12.706), (2, 0.05, 4.303), (4, 0.05, 2.776), (5, 0.01, 4.032), (8, 0.01, 3.355)]
TABLE += [(9, 0.05, 2.262), (10, 0.001, 4.587), (30, 0.05, 2.042), (120, 0.05, 1.980)]


@pytest.mark.parametrize(("freedom", "level", "t"), TABLE)
def test_students_t_is_that_of_the_tables(freedom: int, level: float, t: float) -> None:
    assert two_sided(t, freedom) == pytest.approx(level, rel=2e-3)
    assert reach(level, freedom) == pytest.approx(t, rel=1e-3)


def test_holm_stops_at_the_first_that_chance_explains() -> None:
    """Holm's own order: 0.01 against 0.05/4, 0.02 against 0.05/3 stops it, and 0.021 is not asked."""
    found = holm([0.021, 0.01, 0.02, 0.9], 0.05)
    assert [answer.differs for answer in found] == [False, True, False, False]


def test_faster_and_slower_arms_are_ranked_and_the_others_left_alike() -> None:
    found = compare_sweep(result(factors={"proto_ll": 0.8, "algo_tree": 1.2}), all_reduces=156)
    assert found.arms[0].arm.name == "proto_ll"
    assert {e.arm.name: e.standing for e in found.differing} == {
        "proto_ll": Standing.FASTER,
        "algo_tree": Standing.SLOWER,
    }
    best = found.recommended
    assert best
    assert best.low
    assert best.high
    assert best.low < 0.8 < best.high < 1
    assert best.environment == "export NCCL_PROTO=LL"
    assert found.step_ms == pytest.approx(156 * sum(TYPICAL_US.values()) / 3 / 1e3, rel=0.02)


def test_an_interval_excludes_one_exactly_where_an_arm_differs() -> None:
    for seed in range(20):
        found = compare_sweep(result(factors={"proto_ll": 0.97, "algo_tree": 1.03}, seed=seed))
        for effect in found.arms:
            assert effect.low
            assert effect.high
            outside = effect.low > 1 or effect.high < 1
            assert outside is (effect.standing is not Standing.ALIKE)


@pytest.mark.parametrize(
    ("outcome", "standing"), [("hang", Standing.HANG), ("wrong", Standing.WRONG), ("failed", Standing.FAILED)]
)
def test_an_arm_that_broke_is_never_advised_however_fast(outcome: str, standing: Standing) -> None:
    found = compare_sweep(result(factors={"proto_ll": 0.5}, outcomes={"proto_ll": outcome}))
    assert found.recommended is None
    (broken,) = (effect for effect in found.arms if effect.arm.name == "proto_ll")
    assert (broken.standing, broken.ratio) == (standing, None)
    assert found.arms[-1] is broken


def test_too_few_blocks_tell_nothing() -> None:
    found = compare_sweep(result(factors={"proto_ll": 0.5}, blocks=4))
    assert not found.has_comparison
    assert set(standings(blocks=4).values()) == {Standing.UNTOLD}


def test_a_gain_of_a_percent_is_real_and_not_worth_a_restart() -> None:
    found = compare_sweep(result(factors={"proto_ll": 0.99}, noise=0.0005))
    assert found.arms[0].standing is Standing.FASTER
    assert found.recommended is None


def test_what_drifts_from_block_to_block_hides_nothing() -> None:
    """The machine gets 5 % slower with each block, for all arms alike."""
    said = lines(factors={"proto_ll": 0.93})
    for line in said:
        if "time_us" in line:
            line["time_us"] *= math.exp(0.05 * line["block"])
    found, *_ = all_benchmarks()["bench.nccl_sweep"].parse(Output(printed(said)))
    assert isinstance(found.value, SweepResult)
    compared = compare_sweep(found.value)
    assert [e.arm.name for e in compared.differing] == ["proto_ll"]


def test_weights_decide_what_an_average_all_reduce_is() -> None:
    """Twice as fast for small messages, 10 % slower for large ones."""
    said = lines()
    for line in said:
        if "time_us" in line and line["arm"] == "proto_ll":
            line["time_us"] *= 0.5 if line["size_bytes"] == 12288 else 1.1
    found, *_ = all_benchmarks()["bench.nccl_sweep"].parse(Output(printed(said)))
    assert isinstance(found.value, SweepResult)
    small = compare_sweep(found.value, weights=[(12288, 1.0)])
    large = compare_sweep(found.value, weights=[(3145728, 1.0)])
    assert small.arms[0].arm.name == "proto_ll"
    assert large.arms[-1].arm.name == "proto_ll"


def test_a_gain_that_large_messages_pay_for_says_so() -> None:
    """LL is a fifth faster at what a step sends, and takes twice as long at 3 MiB, which no step sends."""
    said = lines(factors={"proto_ll": 0.8})
    said[1]["plan"]["weights"] = [0.5, 0.5, 0]
    for line in said:
        if line.get("arm") == "proto_ll" and line.get("size_bytes") == 3145728:
            line["time_us"] *= 2.5
    found, *_ = all_benchmarks()["bench.nccl_sweep"].parse(Output(printed(said)))
    assert isinstance(found.value, SweepResult)
    said_of_it = choice(found.value)
    best = said_of_it.compared.recommended
    assert best
    assert (best.arm.name, best.dear_at) == ("proto_ll", 3145728)
    assert "take 2.0" in said_of_it.price
    observed = OBSERVED.known((Observed(1, (80.0, 90.0)),))
    tp = PARALLELISM.known(Parallelism(tp=2))
    advice = advised("nccl_sweep", Facts.of(sourced(MODEL_READ, tp, observed, found)))
    assert advice.status is OptionStatus.POSSIBLE
    assert "3 MiB" in advice.why[1].text


# --- in a session -------------------------------------------------------------------------------------


def session(*more: Reading[Any], **how: Any) -> Facts:
    observed = OBSERVED.known((Observed(1, (80.0, 90.0)), Observed(16, (600.0, 600.0))))
    said = (MODEL_READ, PARALLELISM.known(Parallelism(tp=2)), observed)
    swept = reading(**how)
    return Facts.of(sourced(*said, swept, *more))


def advised(name: str, facts: Facts) -> Any:
    (option,) = (option for option in all_options() if option.id == name)
    found = diagnose(facts)
    return option.judge(Case(Situation(facts), found.ladder, found.bounds))


def test_the_sessions_own_sizes_and_step_are_used() -> None:
    found = nccl_choice(session(factors={"proto_ll": 0.8}))
    assert found
    assert found.compared.weights == ((12288, 0.5), (196608, 0.5))
    assert found.compared.all_reduces == 2 * 78


def test_a_sweep_over_other_ranks_than_the_model_runs_on_predicts_no_step() -> None:
    eight = PARALLELISM.known(Parallelism(tp=8))
    found = nccl_choice(Facts.of(sourced(MODEL_READ, eight, reading())))
    assert found
    assert found.compared.step_ms is None


def test_a_faster_arm_is_recommended_with_what_it_saves() -> None:
    advice = advised("nccl_sweep", session(factors={"proto_ll": 0.8}))
    assert advice.status is OptionStatus.RECOMMENDED
    assert "NCCL_PROTO=LL" in advice.why[0].text
    assert advice.why[0].basis is Basis.MEASURED
    assert "ms a step less" in advice.why[1].text
    low, high = advice.predicted_effect or (0, 0)
    assert 1 < low < high < 1.2


def test_no_difference_is_said_with_its_evidence() -> None:
    advice = advised("nccl_sweep", session())
    assert advice.status is OptionStatus.NO_EFFECT
    assert "no arm differs" in advice.why[0].text
    assert "would have shown" in advice.why[0].text
    assert advice.why[0].evidence


def test_what_the_engine_runs_with_already_is_done() -> None:
    running = NCCL_ENV.known({"NCCL_PROTO": "LL"}, lines=(3,))
    advice = advised("nccl_sweep", session(running, factors={"proto_ll": 0.8}))
    assert advice.status is OptionStatus.DONE


def test_a_setting_that_was_measured_slower_is_not_left_possible() -> None:
    advice = advised("nccl_p2p_disable", session(factors={"p2p_off": 1.7}))
    assert advice.status is OptionStatus.NO_EFFECT
    assert "1.7" in advice.why[0].text
    assert advised("nccl_p2p_disable", session(factors={"p2p_off": 0.7})).status is (OptionStatus.RECOMMENDED)


def _allowed() -> tuple[Reading[Any], ...]:
    ok = P2pMatrix(("GPU0", "GPU1"), ((None, P2pCode.OK), (P2pCode.OK, None)))
    return P2P_READ.known(ok, lines=(1,)), P2P_WRITE.known(ok, lines=(1,))


def test_p2p_that_only_a_raised_level_brings_shows_that_the_level_is_too_low() -> None:
    how: dict[str, Any] = {"factors": {"p2p_any_distance": 0.6}, "transports": {"p2p_any_distance": "P2P/CUMEM"}}
    facts = session(*_allowed(), **how)
    verdict = nccl_level_too_low.assess(Case(Situation(facts), diagnose(facts).ladder))
    assert verdict.kind is VerdictKind.SUPPORTED
    (claim,) = verdict.for_
    assert "P2P/CUMEM" in claim.text
    text = printed(lines(**how)).splitlines()
    cited = [text[ref.line - 1] for ref in claim.evidence]
    assert ['"transport"' in line for line in cited] == [True, True]
    assert "P2P/CUMEM" in cited[1]
    assert advised("nccl_p2p_level", facts).status is OptionStatus.RECOMMENDED
