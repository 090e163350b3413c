"""The bound of other models, and a profile in place of the estimate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.facts import Reading
from agents.facts.bench import PROFILE, SERVING, Profile, ServingRow
from agents.facts.nccl import NCCL_TRANSPORTS, NcclTransports
from agents.facts.workload import MODEL, OBSERVED, PARALLELISM, Model, Observed, Parallelism
from tests.webapp.diagnosis.prediction.test_bound import MODEL_8, SLOW, facts, readings
from webapp.diagnosis.case import Bound
from webapp.diagnosis.claim import Basis, EvidenceRef, Range
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.prediction.bound import bounds
from webapp.diagnosis.prediction.step_profile import NO_STEP_FITS, WAITING
from webapp.diagnosis.situation import Situation

TWO = OBSERVED.known((Observed(1, (11.0, 11.0)), Observed(64, (211.0, 250.0))), lines=(1,))


def _case(*more: Reading[Any]) -> Facts:
    new = {OBSERVED.id, *(reading.fact_id for reading in more)}
    return facts(*(r for r in readings(11, curve=SLOW) if r.fact_id not in new), TWO, *more)


def _of(model: Model, tp: int = 8) -> Bound:
    """At one request at once."""
    return bounds(Situation(_case(MODEL.known(model), PARALLELISM.known(Parallelism(tp=tp)))))[0]


def test_half_the_layers_take_half_the_communication() -> None:
    own, half = _of(MODEL_8), _of(replace(MODEL_8, layers=39))
    assert own.comm_ms
    assert half.comm_ms == pytest.approx((own.comm_ms[0] / 2, own.comm_ms[1] / 2))
    assert half.step_ms == own.step_ms


def test_fewer_ranks_take_fewer_steps() -> None:
    eight, four = _of(MODEL_8), _of(MODEL_8, tp=4)
    assert eight.comm_ms
    assert four.comm_ms
    assert four.comm_ms[1] / eight.comm_ms[1] == pytest.approx(6 / 14, rel=0.01)
    assert _of(MODEL_8, tp=1).comm_ms == (0.0, 0.0)


@settings(max_examples=40)
@given(
    layers=st.integers(1, 200),
    hidden=st.integers(64, 20000),
    width=st.sampled_from([1, 2, 4]),
    tp=st.sampled_from([1, 2, 4, 8, 16]),
    draft=st.integers(0, 8),
    accepted=st.floats(1, 9),
)
def test_no_model_makes_it_negative_or_a_gain_below_one(
    layers: int, hidden: int, width: int, tp: int, draft: int, accepted: float
) -> None:
    model = replace(
        MODEL_8,
        layers=layers,
        hidden_size=hidden,
        activation_bytes=width,
        draft_tokens=draft,
        accepted_per_step=(accepted, accepted),
    )
    bound = _of(model, tp)
    spans: list[Range | None] = [bound.step_ms, bound.floor_ms, bound.comm_ms, bound.unexplained_ms]
    for span in spans:
        assert span is None or 0 <= span[0] <= span[1]
    for gain in (bound.max_gain_remove_comm, bound.max_gain_p2p):
        assert gain is None or 1 <= gain[0] <= gain[1]


@settings(max_examples=30)
@given(layers=st.integers(1, 100), more=st.integers(0, 50), hidden=st.integers(512, 16384))
def test_more_layers_never_communicate_less(layers: int, more: int, hidden: int) -> None:
    few = _of(replace(MODEL_8, layers=layers, hidden_size=hidden)).comm_ms
    many = _of(replace(MODEL_8, layers=layers + more, hidden_size=hidden)).comm_ms
    assert few
    assert many
    assert many[0] >= few[0] - 1e-9
    assert many[1] >= few[1] - 1e-9


# -- a profile

SPLIT = Profile(nccl_ms=12.0, attention_ms=15.0, moe_ms=20.0, other_ms=4.0, gaps_ms=39.0)


def test_a_profile_replaces_the_estimate_and_leaves_little_unexplained() -> None:
    own, found = bounds(Situation(_case()))[0], bounds(Situation(_case(PROFILE.known(SPLIT, lines=(4,)))))[0]
    assert found.comm_ms == (12.0, 12.0)
    assert found.basis["comm_ms"] is Basis.MEASURED
    assert WAITING in found.assumes
    assert own.unexplained_ms
    assert found.unexplained_ms
    assert found.unexplained_ms == pytest.approx((0.909, 0.909), abs=0.01)
    assert found.unexplained_ms[1] < own.unexplained_ms[0]
    assert found.profiled_ms["gaps"] == (39.0, 39.0)
    assert EvidenceRef("test", 4) in found.evidence


def test_waiting_in_a_profile_is_no_sure_gain() -> None:
    found = bounds(Situation(_case(PROFILE.known(SPLIT))))[0]
    assert found.max_gain_remove_comm
    assert found.step_ms
    step = found.step_ms[0]
    assert found.max_gain_remove_comm[1] == pytest.approx(step / (step - 12.0))
    assert found.max_gain_remove_comm[0] < 1.03
    assert found.max_gain_p2p
    assert found.max_gain_p2p[1] <= found.max_gain_remove_comm[1]


def test_a_profile_belongs_to_the_step_it_was_taken_at() -> None:
    single, many = bounds(Situation(_case(PROFILE.known(SPLIT))))
    assert single.profiled_ms
    assert not many.profiled_ms
    assert NO_STEP_FITS not in many.assumes
    scaled = replace(SPLIT, gaps_ms=900.0)
    for bound in bounds(Situation(_case(PROFILE.known(scaled)))):
        assert not bound.profiled_ms
        assert NO_STEP_FITS in bound.assumes


def test_a_slow_profiler_does_not_lengthen_the_step() -> None:
    slow = Profile(18.0, 22.0, 30.0, 6.0, 60.0)
    found = bounds(Situation(_case(PROFILE.known(slow))))[0]
    assert found.step_ms
    total = sum(high for _, high in found.profiled_ms.values())
    assert total == pytest.approx(found.step_ms[1])
    assert found.unexplained_ms == pytest.approx((0.0, 0.0), abs=1e-9)


@pytest.mark.parametrize(
    "refused",
    [
        PARALLELISM.known(Parallelism(tp=8, dp_attention=True), lines=(2,)),
        PARALLELISM.known(Parallelism(tp=8, ep=8), lines=(2,)),
        NCCL_TRANSPORTS.known(NcclTransports(net=16), lines=(2,)),
    ],
)
def test_a_profile_bounds_what_the_arithmetic_refuses(refused: Reading[Any]) -> None:
    assert bounds(Situation(_case(refused)))[0].comm_ms is None
    found = bounds(Situation(_case(refused, PROFILE.known(SPLIT))))[0]
    assert found.comm_ms == (12.0, 12.0)
    assert found.max_gain_p2p
    assert found.max_gain_remove_comm
    assert found.max_gain_p2p == (1.0, found.max_gain_remove_comm[1])


# -- what else a step is known from


def test_a_serving_benchmark_is_an_observation() -> None:
    base = [r for r in readings(11, curve=SLOW) if r.fact_id != OBSERVED.id]
    rows = (ServingRow(1, 11.0), ServingRow(1, 12.0), ServingRow(16, 100.0), ServingRow(None, 5.0))
    found = bounds(Situation(facts(*base, SERVING.known(rows))))
    assert [bound.concurrency for bound in found] == [1, 16]
    assert found[0].step_ms == pytest.approx((1e3 / 12, 1e3 / 11))


def test_no_token_is_no_step() -> None:
    zero = OBSERVED.known((Observed(1, (0.0, 0.0)),))
    base = [r for r in readings(11, curve=SLOW) if r.fact_id != OBSERVED.id]
    (found,) = bounds(Situation(facts(*base, zero)))
    assert found.step_ms is None
    assert any("no token came out" in text for text in found.missing)
