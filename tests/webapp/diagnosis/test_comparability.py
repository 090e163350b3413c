"""What may be said of a before and after depends on what else changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agents.facts import Reading
from agents.facts.bench import (
    ALLREDUCE,
    COPY,
    SERVING,
    TELEMETRY,
    AllReduceResult,
    AllReduceRow,
    CopyPath,
    CopyResult,
    CopyRow,
    GpuTelemetry,
    ServingRow,
    Timing,
)
from agents.facts.host import CPU_GOVERNOR, CpuGovernor
from agents.facts.nccl import ENGINE, Engine
from agents.facts.platform import DRIVER_VERSION, KERNEL_CMDLINE
from webapp.diagnosis.catalogue import all_options
from webapp.diagnosis.compare.comparability import Comparability, Gate, Item, Standing, comparability
from webapp.diagnosis.compare.conditions import side_of
from webapp.diagnosis.compare.effects import Outcome
from webapp.diagnosis.compare.verification import Pick, Verified, verified
from webapp.diagnosis.facts import Facts, Sourced

HEADER = {
    "driver": "590.48.01",
    "cuda": "12.8",
    "nccl": "2.28.9",
    "torch": "2.9",
    "kernel": "6.8.0",
    "gpus": "A, A",
    "gpu_uuids": "GPU-1, GPU-2",
    "ecc": "Enabled",
    "power_limits_w": "600.00",
    "payload_sha256": "ab" * 32,
    "argv": "--limit 150",
    "settings": "",
}
LOOK = GpuTelemetry("0", 20, sm_clock_mhz=2400, temperature_celsius=61, pcie_gen=5, pcie_width=16)


def result(us: float = 3.4, **header: str) -> CopyResult:
    rows = tuple(
        CopyRow(CopyPath.PEER, "0", "1", size, us * k, Timing.DEVICE, samples=50)
        for k, size in enumerate((12288, 49152), 1)
    )
    return CopyResult(rows, (), {**HEADER, **header})


def facts_of(before: CopyResult, after: CopyResult, look: GpuTelemetry = LOOK, runs: int = 5) -> Facts:
    """Runs of both states, each a little off the others, with what the GPUs did meanwhile."""
    items = []
    for epoch, value in ((0, before), (1, after)):
        for n in range(runs):
            rows = tuple(replace(row, time_us=row.time_us * (1 + n / 1000)) for row in value.rows)
            name = f"bench.copy@{epoch}{n}"
            items.append(Sourced(COPY.known(replace(value, rows=rows)), name, epoch, n))
            items.append(Sourced(TELEMETRY.known((LOOK if epoch == 0 else look,)), name, epoch, n))
    return Facts.of(items)


def judged(facts: Facts, *options: str) -> Verified:
    changes = {c for o in all_options() if o.id in options for c in o.changes}
    return verified(facts, Pick(0), Pick(1), frozenset(changes))[0]


def item(gate: Comparability, title: str) -> Item:
    return next(i for i in gate.items if i.title == title)


def test_runs_that_differ_in_nothing_leave_only_what_probes_would_tell() -> None:
    found = judged(facts_of(result(), result()))
    assert found.gate.verdict is Gate.CAVEATS
    unknown = {i.title for i in found.gate.of(Standing.UNKNOWN)}
    assert "machine type" in unknown
    assert not {"driver", "ECC", "SM clock under load, MHz", "other work on the GPUs"} & unknown
    assert not found.gate.unmeant
    assert found.compared.outcome is Outcome.EQUIVALENT


@pytest.mark.parametrize(
    ("header", "title"),
    [
        ({"driver": "595.45.04"}, "driver"),
        ({"cuda": "13.1"}, "CUDA"),
        ({"ecc": "Disabled"}, "ECC"),
        ({"power_limits_w": "450.00"}, "power limit, W"),
        ({"settings": "NCCL_P2P_LEVEL=SYS"}, "settings of NCCL and CUDA"),
    ],
)
def test_what_nobody_meant_to_change_is_a_caveat(header: dict[str, str], title: str) -> None:
    found = judged(facts_of(result(), result(1.7, **header)))
    assert found.gate.verdict is Gate.CAVEATS
    assert found.gate.unmeant == (title,)
    assert f"{title} changed too" in found.gate.why
    assert found.compared.outcome is Outcome.IMPROVED


@pytest.mark.parametrize(
    ("header", "title"),
    [
        ({"payload_sha256": "cd" * 32}, "program, by its hash"),
        ({"argv": "--limit 150 --bytes=4"}, "arguments"),
        ({"gpu_uuids": "GPU-3, GPU-4"}, "GPUs"),
        ({"beside_other_work": "True"}, "other work on the GPUs"),
    ],
)
def test_what_makes_it_another_question_takes_the_effect_away(header: dict[str, str], title: str) -> None:
    found = judged(facts_of(result(), result(1.7, **header)))
    assert found.gate.verdict is Gate.NOT_COMPARABLE
    assert item(found.gate, title).standing is Standing.UNINTENDED
    assert found.compared.outcome is Outcome.CANNOT_TELL
    assert "not comparable" in found.compared.why


def test_a_change_that_the_option_declares_is_intended() -> None:
    facts = facts_of(result(), result(settings="NCCL_P2P_LEVEL=SYS"))
    assert item(judged(facts).gate, "settings of NCCL and CUDA").standing is Standing.UNINTENDED
    meant = item(judged(facts, "nccl_p2p_level").gate, "settings of NCCL and CUDA")
    assert meant.standing is Standing.INTENDED


def _with_governors(*readings: Reading[CpuGovernor]) -> Facts:
    found = facts_of(result(), result())
    items = [item for group in found.readings.values() for item in group]
    given = [Sourced(one, f"g{epoch}", epoch) for epoch, one in enumerate(readings)]
    return Facts.of([*items, *given])


def test_another_governor_is_what_its_option_means_to_change() -> None:
    was, now = (CPU_GOVERNOR.known(CpuGovernor({n: 64})) for n in ("schedutil", "performance"))
    title = "frequency governor of the host"
    facts = _with_governors(was, now)
    assert item(judged(facts).gate, title).standing is Standing.UNINTENDED
    assert item(judged(facts, "host_governor").gate, title).standing is Standing.INTENDED
    none = CPU_GOVERNOR.absent("no cpufreq folder")
    assert item(judged(_with_governors(none, none)).gate, title).standing is Standing.SAME
    one = CPU_GOVERNOR.known(CpuGovernor({"schedutil": 1}), missing=("the other CPUs",))
    assert item(judged(_with_governors(was, one)).gate, title).standing is Standing.UNKNOWN


def test_limits_and_the_order_of_words_change_nothing() -> None:
    facts = facts_of(result(argv="--limit 150 --set NCCL_ALGO=Ring"), result(argv="--limit 90"))
    assert item(judged(facts).gate, "arguments").standing is Standing.SAME
    lines = ("a b=1 BOOT_IMAGE=/boot/vmlinuz-6.8.0-1", "b=1 a BOOT_IMAGE=/boot/vmlinuz-6.8.0-2")
    sides = [
        side_of(
            [run := Sourced(COPY.known(CopyResult(result().rows)), name, epoch)],
            Facts.of([run, Sourced(KERNEL_CMDLINE.known(line), name, epoch)]),
        )
        for epoch, (name, line) in enumerate(zip("xy", lines, strict=True))
    ]
    gate = comparability(sides[0], sides[1], frozenset())
    assert item(gate, "guest’s kernel command line").standing is Standing.SAME
    assert item(gate, "kernel").after == "6.8.0-2"


@pytest.mark.parametrize(
    ("look", "title", "standing"),
    [
        (replace(LOOK, sm_clock_mhz=2390), "SM clock under load, MHz", Standing.SAME),
        (replace(LOOK, sm_clock_mhz=1800), "SM clock under load, MHz", Standing.UNINTENDED),
        (replace(LOOK, temperature_celsius=66), "highest temperature, °C", Standing.SAME),
        (replace(LOOK, temperature_celsius=84), "highest temperature, °C", Standing.UNINTENDED),
        (replace(LOOK, pcie_width=8), "PCIe link under load", Standing.UNINTENDED),
        (replace(LOOK, throttle_reasons=("power cap",)), "slowed down by", Standing.UNINTENDED),
    ],
)
def test_what_the_gpus_did_meanwhile_counts(look: GpuTelemetry, title: str, standing: Standing) -> None:
    gate = judged(facts_of(result(), result(), look)).gate
    assert item(gate, title).standing is standing


def test_what_was_read_in_another_epoch_is_no_answer() -> None:
    rows = CopyResult(result().rows)
    items = [
        Sourced(COPY.known(rows), "a", 0),
        Sourced(COPY.known(rows), "b", 1),
        Sourced(DRIVER_VERSION.known("590.48.01"), "c", 0),
    ]
    gate = judged(Facts.of(items)).gate
    assert item(gate, "driver").standing is Standing.UNKNOWN
    assert item(gate, "driver").before == "590.48.01"


def test_arms_of_one_run_of_all_reduces_are_one_run() -> None:
    def ran(name: str, epoch: int) -> list[Sourced]:
        return [
            Sourced(
                ALLREDUCE.known(
                    AllReduceResult(
                        (AllReduceRow(12288, us, 2, in_place=True, wrong=0, graph=True),), environment={"arm": arm}
                    )
                ),
                name,
                epoch,
            )
            for arm, us in (("no_p2p", 18.6), ("default", 11.6), ("p2p_forced", 11.5))
        ]

    found = judged(Facts.of([*ran("a", 0), *ran("b", 1)]))
    assert found.compared.runs == (1, 1)
    assert found.compared.effects[0].before_us == pytest.approx(11.6)


def test_flags_of_the_engine_and_the_client_are_asked_of_serving_alone() -> None:
    def ladder(rate: float, name: str, epoch: int, detail: str, flag: str) -> list[Sourced]:
        reading = SERVING.known((ServingRow(1, output_tokens_per_s=rate, requests=8),))
        engine = ENGINE.known(Engine("sglang", "0.5", {"tp": "8", "cuda-graph": flag}))
        return [Sourced(replace(reading, detail=detail), name, epoch), Sourced(engine, name, epoch)]

    said = "model m, tokens of a prompt about 512, seed "
    same = [*ladder(11, "a", 0, said + "1", "on"), *ladder(12, "b", 1, said + "2", "off")]
    gate = judged(Facts.of(same), "cuda_graphs_on").gate
    assert item(gate, "client: prompts and answers").standing is Standing.SAME
    assert item(gate, "engine and its flags").standing is Standing.INTENDED
    other = [*same[:2], *ladder(12, "b", 1, "model m, tokens of a prompt about 64", "on")]
    assert judged(Facts.of(other)).gate.verdict is Gate.NOT_COMPARABLE
    assert "engine" not in str([i.title for i in judged(facts_of(result(), result())).gate.items])
