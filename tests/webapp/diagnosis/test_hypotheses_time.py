"""Hypotheses about where the time of a step goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agents.facts import Reading
from agents.facts.bench import ALLREDUCE, COPY, PROFILE, AllReduceResult, CopyPath, CopyResult, CopyRow, Profile, Timing
from agents.facts.gpu import GPUS
from agents.facts.kernels import LAUNCH, Figures, LaunchResult, LaunchRow, Work
from agents.facts.nccl import ENGINE, Engine
from agents.facts.workload import MODEL, OBSERVED, PARALLELISM, Model, Observed, Parallelism
from tests.webapp.diagnosis.building import EIGHT, facts_of
from tests.webapp.diagnosis.hypothesis_cases import verdict
from webapp.diagnosis.case import Bound
from webapp.diagnosis.claim import Basis
from webapp.diagnosis.prediction.bound import step_tokens
from webapp.diagnosis.prediction.step_floor import measured_bandwidth

Given = Sequence[Reading[Any] | Bound]

SEEN = OBSERVED.known((Observed(1, (11.0, 11.0)), Observed(64, (211.0, 250.0))), lines=(1,))
SINGLE = Bound(
    1,
    step_ms=(90.9, 90.9),
    floor_ms=(1.8, 5.6),
    comm_ms=(2.1, 30.0),
    unexplained_ms=(55.3, 87.0),
    max_gain_remove_comm=(1.02, 1.49),
)
BATCH = Bound(64, step_ms=(256.0, 303.0), floor_ms=(28.0, 32.0), comm_ms=(6.5, 35.0))


def _profile(**ms: float) -> Reading[Any]:
    zero = {"nccl_ms": 0.0, "attention_ms": 0.0, "moe_ms": 0.0, "other_ms": 0.0, "gaps_ms": 0.0}
    return PROFILE.known(Profile(**{**zero, **ms}), lines=(1,))


def _gpus(utilisation: int, power_w: float, celsius: int = 60, clock: int = 2000) -> Reading[Any]:
    gpus = tuple(
        replace(
            gpu,
            utilisation_percent=utilisation,
            power_w=power_w,
            power_limit_w=600.0,
            temperature_celsius=celsius,
            sm_clock_mhz=clock,
            sm_clock_max_mhz=2400,
        )
        for gpu in EIGHT
    )
    return GPUS.known(gpus, lines=(1,))


def _model(hidden: int = 6144) -> Reading[Any]:
    return MODEL.known(Model(hidden_size=hidden, activation_bytes=2), lines=(1,))


CASES: dict[str, dict[str, Given]] = {
    "compute_bound": {
        "supported": [SEEN, _profile(moe_ms=80, gaps_ms=10), SINGLE, replace(BATCH, step_ms=(4000, 4000))],
        "refuted": [_profile(moe_ms=20, nccl_ms=30, gaps_ms=40)],
        "open": [SEEN, _gpus(100, 330.0), SINGLE, BATCH],
    },
    "memory_bandwidth_bound": {
        "supported": [SEEN, replace(SINGLE, floor_ms=(60.0, 80.0))],
        "refuted": [SEEN, SINGLE],
        "open": [SEEN, replace(SINGLE, floor_ms=(10.0, 50.0))],
    },
    "launch_bound": {
        "supported": [_profile(moe_ms=30, gaps_ms=60)],
        "refuted": [_profile(moe_ms=88, gaps_ms=2)],
        "open": [SEEN, SINGLE],
    },
    "communication_latency_bound": {
        "supported": [_profile(nccl_ms=50, moe_ms=40)],
        "refuted": [SEEN, replace(SINGLE, comm_ms=(2.1, 5.0))],
        "open": [SEEN, SINGLE],
    },
    "communication_bandwidth_bound": {
        "supported": [SEEN, _model(), SINGLE, replace(BATCH, comm_ms=(120.0, 200.0))],
        "refuted": [SEEN, _model(), SINGLE],
        "open": [SEEN, _model(), SINGLE, BATCH],
    },
    "power_or_thermal_limit": {
        "supported": [_gpus(100, 598.0)],
        "refuted": [_gpus(100, 330.0)],
        "open": [_gpus(3, 40.0)],
    },
    "hang": {
        "supported": [_gpus(100, 120.0), OBSERVED.known((Observed(1, (0.0, 0.0)),), lines=(1,))],
        "refuted": [_gpus(100, 330.0), SEEN],
        "open": [_gpus(100, 120.0)],
    },
}


@pytest.mark.parametrize("kind", ["supported", "refuted", "open"])
@pytest.mark.parametrize("hypothesis_id", CASES)
def test_a_case_decides(hypothesis_id: str, kind: str) -> None:
    got = verdict(hypothesis_id, *CASES[hypothesis_id][kind])
    assert got.kind == kind
    if kind != "open":
        assert got.for_ if kind == "supported" else got.against


def test_full_utilisation_at_half_power_never_supports_compute_bound() -> None:
    got = verdict("compute_bound", _gpus(100, 330.0))
    assert got.kind == "open"
    assert not got.for_
    assert got.missing == ("bench.profile",)
    assert "kernel was running" in got.against[0].text


def test_communication_says_what_removing_it_gains() -> None:
    got = verdict("communication_latency_bound", SEEN, SINGLE)
    assert got.share_ms == (2.1, 30.0)
    assert "at most 1.49 ×" in got.for_[0].text
    assert "2.1–30.0 ms, 2.3–33.0 %" in got.for_[0].text


def test_no_copy_and_no_all_reduce_leave_communication_unbounded() -> None:
    got = verdict("communication_latency_bound", SEEN, replace(SINGLE, comm_ms=None))
    assert got.share_ms is None
    assert {"bench.copy", "bench.allreduce"} <= set(got.missing)


def test_graphs_off_speak_for_launches_but_prove_nothing() -> None:
    engine = ENGINE.known(Engine("sglang", flags={"--disable-cuda-graph": "true"}), lines=(4,))
    got = verdict("launch_bound", engine, SEEN, SINGLE)
    assert got.kind == "open"
    assert got.for_[0].basis is Basis.MEASURED
    off = ENGINE.known(Engine("sglang", flags={"disable_cuda_graph": "False"}), lines=(4,))
    assert len(verdict("launch_bound", off).for_) == 0


def test_measured_launches_say_how_many_it_would_take() -> None:
    operation = tuple(
        LaunchRow(Work.OPERATION, "0", Figures(time_us, timing, method))
        for time_us, timing, method in ((5.0, Timing.HOST_SYNC, "no_wait"), (1.5, Timing.DEVICE, "graph"))
    )
    launch = LAUNCH.known(LaunchResult(operation), lines=(2,))
    model = MODEL.known(Model(layers=87), lines=(1,))
    got = verdict("launch_bound", SEEN, SINGLE, launch, model)
    assert got.kind == "open"
    assert "bench.launch" not in got.missing
    claim = got.for_[-1]
    assert "5.0 µs of this processor, and 1.5 µs of the GPU in a CUDA graph" in claim.text
    assert "starts 200 a layer" in claim.text  # 87 ms ÷ 5 µs ÷ 87 layers
    assert claim.evidence
    assert "bench.launch" in verdict("launch_bound", SEEN, SINGLE, model).missing


def test_an_all_reduce_that_did_not_come_back_is_a_hang() -> None:
    hung = AllReduceResult((), True, environment={"outcome": "hang"})
    assert verdict("hang", ALLREDUCE.known(hung, lines=(1,))).kind == "supported"
    with_tokens = verdict("hang", ALLREDUCE.known(hung, lines=(1,)), SEEN)
    assert (with_tokens.kind, len(with_tokens.for_), len(with_tokens.against)) == ("open", 1, 1)


def test_heat_with_lowered_clocks_is_a_limit() -> None:
    assert verdict("power_or_thermal_limit", _gpus(100, 330.0, 90, 1200)).kind == "supported"


@pytest.mark.parametrize(
    ("shape", "drafts", "concurrency", "tokens"),
    [({}, 0, 16, 16.0), ({"dp": 2}, 0, 16, 8.0), ({"dp": 2, "pp": 2}, 0, 16, 4.0), ({"pp": 4}, 2, 2, 3.0)],
)
def test_the_tokens_of_a_pass_are_those_of_one_replica_and_micro_batch(
    shape: dict[str, Any], drafts: int, concurrency: int, tokens: float
) -> None:
    facts = facts_of(PARALLELISM.known(Parallelism(tp=2, **shape)), MODEL.known(Model(draft_tokens=drafts)))
    assert step_tokens(facts, concurrency) == tokens


@pytest.mark.parametrize(("size_mib", "known"), [(128, False), (512, True), (1024, True)])
def test_a_copy_measures_memory_where_no_cache_holds_it(size_mib: int, known: bool) -> None:
    row = CopyRow(CopyPath.SAME, "0", "0", size_mib * 2**20, 600.0, Timing.DEVICE)
    bandwidth = measured_bandwidth(facts_of(COPY.known(CopyResult((row,)))))
    assert (bandwidth is not None) is known
    if bandwidth:
        assert bandwidth.gb_per_s == pytest.approx(2 * size_mib * 2**20 / 600.0 / 1e3)
