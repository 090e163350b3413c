"""What is offered to measure, what a person has to say first, and what becomes of the results."""

from __future__ import annotations

import gzip
import io
import json
import math
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils.html import strip_tags

from agents.benchmark import Benchmark, all_benchmarks
from agents.facts.bench import CopyPath, CopyResult, CopyRow, ServingRow, Timing
from tests.pages import html_of
from webapp.accounts.models import User
from webapp.presenting.measured_figures import copy_maps, serving_plots
from webapp.records.case_facts import facts_of
from webapp.records.models import DiagnosisSession, Run
from webapp.records.workload import points_of
from webapp.runs.benchmark_options import arguments_of, argv_of, offers

pytestmark = pytest.mark.django_db
RUNNABLE = [b for b in all_benchmarks().values() if b.payload is not None]


@pytest.fixture
def browser(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


@pytest.fixture
def at(session_of_alice: DiagnosisSession, alice: User) -> str:
    """Where a run is started on a target."""
    target = session_of_alice.targets.create(role="guest", agent="ssh", host="gpu-vm", created_by=alice)
    return f"/sessions/{session_of_alice.pk}/targets/{target.pk}/run"


@pytest.mark.parametrize("benchmark", RUNNABLE, ids=lambda b: b.id)
def test_each_says_what_it_does_costs_and_risks(
    browser: Client, session_of_alice: DiagnosisSession, at: str, benchmark: Benchmark
) -> None:
    page = html_of(browser.get(f"/sessions/{session_of_alice.pk}/path"))
    offer = next(o for o in offers(facts_of(session_of_alice)) if o.benchmark is benchmark)
    assert len(benchmark.about) > 60
    assert f"{benchmark.duration_s} s" in offer.cost
    assert ("server has to run" if benchmark.engine_runs else "stop the server") in offer.risk
    assert benchmark.about.split(",")[0] in unescape(strip_tags(page))


def test_what_the_session_says_of_its_model_is_filled_in(session_of_alice: DiagnosisSession) -> None:
    session_of_alice.workload = {
        "model": {"hidden_size": 6144, "draft_tokens": 3, "accepted_per_step": [1, 4]},
        "observed": [{"concurrency": c, "output_tokens_per_s": [11, 11]} for c in (1, 64)],
    }
    values = {o.benchmark.id: {f.choice.name: f.value for f in o.fields} for o in offers(facts_of(session_of_alice))}
    assert (values["bench.copy"]["hidden"], values["bench.copy"]["batch"]) == ("6144", "4,256")
    assert values["bench.serving_load"]["concurrency"] == "1,64"
    assert values["bench.engine_profile"]["concurrency"] == "1"


def test_nothing_is_loaded_without_a_yes(browser: Client, at: str) -> None:
    typed = {"benchmark": "bench.copy", "choice-hidden": "6144", "choice-batch": "1,64"}
    refused = browser.post(at, typed, follow=True)
    assert "tick that it may" in html_of(refused)
    assert not Run.objects.exists()
    browser.post(at, {**typed, "yes": "1"})
    assert argv_of(Run.objects.get().arguments) == ["--hidden=6144", "--batch=1,64"]


@pytest.mark.parametrize(
    ("name", "value"), [("concurrency", "1; rm -rf /"), ("url", "http://a b"), ("key-file", "$(id)"), ("seed", "x")]
)
def test_arguments_that_are_none_are_refused(browser: Client, at: str, name: str, value: str) -> None:
    typed = {"benchmark": "bench.serving_load", f"choice-{name}": value, "yes": "1"}
    page = html_of(browser.post(at, typed, follow=True))
    assert "is no value for" in page
    assert not Run.objects.exists()


def test_an_empty_choice_is_left_to_the_program() -> None:
    copy = all_benchmarks()["bench.copy"]
    given = {f"choice-{c.name}": "" if c.name in ("hidden", "batch") else c.default for c in copy.choices}
    assert not any(word.startswith("--hidden") for word in argv_of(arguments_of(copy, given)))


def _serving(*rungs: dict[str, Any]) -> str:
    rows = [{"rung": True, "requests": 4, "errors": 0, **rung} for rung in rungs]
    head = {"schema": "peerpath.serving_load/1", "environment": {"model": "tiny"}}
    return "\n".join(json.dumps(line) for line in [head, *rows, {"end": True}])


def test_measured_points_become_observed_and_the_others_stay(
    browser: Client, session_of_alice: DiagnosisSession
) -> None:
    session_of_alice.workload = {
        "model": {"hidden_size": 6144},
        "observed": [
            {"concurrency": 1, "output_tokens_per_s": [11, 11]},
            {"concurrency": 8, "output_tokens_per_s": [50, 50]},
        ],
    }
    session_of_alice.save()
    one = {"concurrency": 1, "output_tokens_per_s": 12.5, "total_tokens_per_s": 60.0}
    failing = {"concurrency": 64, "output_tokens_per_s": 99.0, "errors": 3, "failures": {"HTTP 429": 3}}
    browser.post(f"/sessions/{session_of_alice.pk}/paste/path", {"text": _serving(one, failing)})
    source = session_of_alice.evidence.get().name
    page = html_of(browser.get(f"/sessions/{session_of_alice.pk}/path"))
    assert "3 requests at 64 at once: HTTP 429" in page
    form = {"source": source, "version": session_of_alice.version}
    browser.post(f"/sessions/{session_of_alice.pk}/observed", form)
    session_of_alice.refresh_from_db()
    assert session_of_alice.workload["model"] == {"hidden_size": 6144}
    assert session_of_alice.workload["observed"] == [
        {"concurrency": 1, "output_tokens_per_s": [12.5, 12.5], "total_tokens_per_s": [60.0, 60.0]},
        {"concurrency": 8, "output_tokens_per_s": [50, 50]},
    ]
    # Someone else saved meanwhile: the old page's button changes nothing.
    again = browser.post(f"/sessions/{session_of_alice.pk}/observed", form, follow=True)
    assert "saved by someone else" in html_of(again)


@pytest.mark.parametrize(("bits", "said"), [(0x40, True), (0, False), (0x1, False)])
def test_a_measurement_during_which_clocks_were_held_back_says_so(
    browser: Client, session_of_alice: DiagnosisSession, bits: int, said: bool
) -> None:
    columns = ["gpu", "power_w", "throttle_bits", "busy_percent"]
    looks = [{"at_s": n / 2, "gpus": [[0, 700.0, bits, 99]]} for n in range(5)]
    rung = {"concurrency": 1, "output_tokens_per_s": 12.5, "tokens_per_joule": 0.018}
    head, *rest = _serving(rung).splitlines()
    told = [json.dumps(line) for line in ({"telemetry": columns, "every_s": 0.4}, *looks)]
    text = "\n".join([head, *told, *rest])
    browser.post(f"/sessions/{session_of_alice.pk}/paste/path", {"text": text})
    page = html_of(browser.get(f"/sessions/{session_of_alice.pk}/path"))
    assert ("slowed by hardware thermal slowdown" in page) is said
    assert "asked every 0.4 s" in page  # what tokens per joule are made of


def test_without_a_figure_of_energy_nothing_is_said_of_it(browser: Client, session_of_alice: DiagnosisSession) -> None:
    text = _serving({"concurrency": 1, "output_tokens_per_s": 12.5})
    browser.post(f"/sessions/{session_of_alice.pk}/paste/path", {"text": text})
    page = html_of(browser.get(f"/sessions/{session_of_alice.pk}/path"))
    assert "Tokens per joule: output" not in page


def test_a_concurrency_measured_twice_is_a_range() -> None:
    rows = [ServingRow(4, 40.0), ServingRow(4, 44.0), ServingRow(None, 9.0), ServingRow(8, None)]
    assert points_of(rows) == [{"concurrency": 4, "output_tokens_per_s": [40.0, 44.0]}]


# One decode step of 91 ms in microseconds: names as engines have them, and what passes until the next.
STEP = (
    *(("flash_fwd_splitkv_kernel", 100.0, 150.0), ("ncclDevKernel_AllReduce_Sum_bf16", 200.0, 200.0)) * 78,
    *(("fused_moe_kernel", 300.0, 500.0),) * 78,
    ("vectorized_elementwise_kernel", 50.0, 100.0),
    ("argmax_kernel", 50.0, 24_600.0),
)


def _torch_trace() -> bytes:
    at, events = 0.0, []
    for name, took, gap in STEP * 4:
        about = {"ph": "X", "cat": "kernel", "name": name, "ts": at, "dur": took}
        events.append({**about, "pid": 0, "tid": 7, "args": {"device": 0}})
        at += gap
    return gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode())


def _nsys_trace() -> bytes:
    at, lines = (
        0.0,
        [
            "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),"
            "DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name"
        ],
    )
    for i, (name, took, gap) in enumerate(STEP * 4):
        lines.append(f"{at:.0f},{took * 1000:.0f},{i},1,1,1,32,1,1,16,0,0,,,,,GPU (0),1,,7,{name}")
        at += gap * 1000
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("name", "raw"), [("rank0.pt.trace.json.gz", _torch_trace()), ("report_cuda_gpu_trace.csv", _nsys_trace())]
)
def test_an_uploaded_profile_gives_the_unexplained_its_names(
    browser: Client, session_of_alice: DiagnosisSession, name: str, raw: bytes
) -> None:
    session_of_alice.workload = {"observed": [{"concurrency": 1, "output_tokens_per_s": [11, 11]}]}
    session_of_alice.save()
    file = io.BytesIO(raw)
    file.name = name
    browser.post(f"/sessions/{session_of_alice.pk}/paste/path", {"file": file})
    measured = html_of(browser.get(f"/sessions/{session_of_alice.pk}/path"))
    assert "gaps in which no kernel runs" in measured
    page = html_of(browser.get(f"/sessions/{session_of_alice.pk}/diagnosis"))
    for title in ("NCCL 15.6 ms", "attention 7.8 ms", "experts 23.4 ms", "other kernels 0.10 ms"):
        assert title in page
    assert "gaps 44.0 ms" in page


def test_a_map_shows_every_pair_and_only_real_differences() -> None:
    def row(a: int, b: int, size: int, us: float) -> CopyRow:
        return CopyRow(CopyPath.PEER, str(a), str(b), size, us, Timing.DEVICE, peer_access=True)

    pairs = [(a, b) for a in range(4) for b in range(4) if a != b]
    rows = [row(a, b, 2**26, 1600 if a // 2 == b // 2 else 2400) for a, b in pairs]
    rows += [row(a, b, 12288, 13.7 + a / 100) for a, b in pairs]
    rates, times = copy_maps(CopyResult(tuple(rows)))
    assert rates.title == "GB/s at 64 MiB, peer access on"
    assert [cell.text for cell in rates.rows[0][1]] == ["–", "41.9", "28.0", "28.0"]
    assert [cell.level for cell in rates.rows[0][1]] == [None, 4, 0, 0]
    assert {cell.level for _, cells in times.rows for cell in cells} == {None, 2}


def test_a_ladder_is_drawn_on_log_axes() -> None:
    rows = [ServingRow(c, 10.0 * c, 50.0 * c, 90.0 + c, ttft_ms=20.0) for c in (1, 10, 100)]
    rates, waits = serving_plots(rows)
    xs = [x for x, _, _ in rates.curves[0].dots]
    assert math.isclose(xs[1] - xs[0], xs[2] - xs[1], abs_tol=0.2)
    assert [tick.label for tick in rates.y_ticks] == ["10", "100", "1,000", "10,000"]
    assert [curve.name for curve in waits.curves] == ["time per token", "to the first token"]
    assert serving_plots([ServingRow(None)]) == []
