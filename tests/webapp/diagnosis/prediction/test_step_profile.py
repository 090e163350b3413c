"""A profiler makes the host slower and no kernel: what a recorded step is too long by lies in its gaps."""

from __future__ import annotations

import pytest

from agents.facts.bench import PROFILE, Profile
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.prediction.step_profile import split_of

# On one H200 with torch 2.11, milliseconds: 0.33 without the profiler, this with it.
RECORDED = Profile(nccl_ms=0.02, attention_ms=0.03, moe_ms=0.04, other_ms=0.07, gaps_ms=0.43)


def _parts(recorded: Profile, step_ms: float) -> dict[str, float]:
    facts = Facts.of([Sourced(PROFILE.known(recorded, lines=(1,)), "profile@0")])
    found = split_of(facts, (step_ms, step_ms), ())
    assert found
    assert found.total == pytest.approx((min(step_ms, recorded.step_ms),) * 2)
    return {name: low for name, (low, _) in found.parts.items()}


def test_gaps_give_way_and_kernels_stay() -> None:
    parts = _parts(RECORDED, 0.33)
    assert parts == pytest.approx({"nccl": 0.02, "attention": 0.03, "moe": 0.04, "other": 0.07, "gaps": 0.17})


def test_a_step_shorter_than_its_kernels_has_no_gaps() -> None:
    busy = Profile(nccl_ms=2.0, attention_ms=3.0, moe_ms=4.0, other_ms=1.0, gaps_ms=0.5)
    parts = _parts(busy, 8.0)
    assert parts["gaps"] == 0
    assert parts["moe"] == pytest.approx(3.2)


def test_a_step_longer_than_the_recorded_one_keeps_the_rest_unexplained() -> None:
    assert _parts(RECORDED, 0.9)["gaps"] == pytest.approx(0.43)


def test_a_range_of_steps_is_split_at_both_of_its_ends() -> None:
    facts = Facts.of([Sourced(PROFILE.known(RECORDED, lines=(1,)), "profile@0")])
    wide = split_of(facts, (0.08, 0.33), ())
    assert wide
    assert wide.parts == {
        "nccl": pytest.approx((0.01, 0.02)),
        "attention": pytest.approx((0.015, 0.03)),
        "moe": pytest.approx((0.02, 0.04)),
        "other": pytest.approx((0.035, 0.07)),
        "gaps": pytest.approx((0.0, 0.17)),
    }
    assert wide.nccl == wide.parts["nccl"]
    assert wide.total == pytest.approx((0.08, 0.33))
