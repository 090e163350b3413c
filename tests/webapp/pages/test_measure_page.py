"""The measure step: each benchmark with its own button, and what it loads said beside it."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.benchmark import all_benchmarks
from agents.facts.bench import AllReduceRow
from tests.pages import html_of
from tests.webapp.addresses import asked_in
from tests.webapp.conftest import gpu_vm
from webapp.accounts.models import User
from webapp.pages.templatetags.measured import bus_gb_per_s
from webapp.records import intake
from webapp.records.models import OutputChunk, Run, RunState
from webapp.records.sessions import session_open
from webapp.runs import lifecycle

PAYLOADS = Path(__file__).resolve().parents[2] / "agents" / "payloads"

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


@pytest.mark.parametrize("name", ["bench.copy", "bench.delivery", "bench.allreduce"])
def test_every_benchmark_can_be_started_on_a_target(browser: Client, alice: User, name: str) -> None:
    session = session_open(owner=alice, title="measure")
    session.targets.create(role="guest", agent="ssh", host="gpu-vm", created_by=alice)
    page = html_of(browser.get(f"/sessions/{session.pk}/path"))
    benchmark = all_benchmarks()[name]
    assert f'name="benchmark" value="{name}"' in page
    assert f"for about {benchmark.duration_s} s" in page


def test_without_a_machine_nothing_can_be_started(browser: Client, alice: User) -> None:
    session = session_open(owner=alice, title="measure")
    page = html_of(browser.get(f"/sessions/{session.pk}/path"))
    assert 'name="benchmark"' not in page


def test_sums_and_deliveries_that_were_pasted_are_shown(client: Client, alice: User) -> None:
    client.force_login(alice)
    session = session_open(owner=alice, title="sums")
    text = (
        "$ NCCL_P2P_DISABLE=1 ./all_reduce_perf -g 2\n"
        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
        "# (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)\n"
        "  12288 3072 float sum -1 20.21 0.61 0.61 0 20.05 0.61 0.61 0\n"
    )
    client.post(f"/sessions/{session.pk}/paste/path", {"text": text})
    page = html_of(client.get(f"/sessions/{session.pk}/path"))
    assert "without P2P" in page
    assert "20.21" in page


def test_an_all_reduce_is_shown_with_its_interval_and_its_tail(browser: Client, alice: User) -> None:
    """With what two H200 gave."""
    session = session_open(owner=alice, title="sums")
    text = (PAYLOADS / "two_h200_allreduce.jsonl").read_text()
    browser.post(f"/sessions/{session.pk}/paste/path", {"text": text})
    page = html_of(browser.get(f"/sessions/{session.pk}/path"))
    cells = ("10.32", "10.31–10.32", "10.35", "10.38", "0.40")
    assert "".join(f'<td class="n">{cell}</td>' for cell in cells) in page
    assert "connections P2P/CUMEM 48" in page


def test_busbw_is_what_nccl_tests_prints() -> None:
    """16 MiB over 8 ranks in 73.6 µs: algbw 227.95, busbw × 1.75 (nccl-tests, doc/PERFORMANCE.md)."""
    row = AllReduceRow(16 * 2**20, 73.6, 8)
    assert bus_gb_per_s(row) == pytest.approx(398.9, abs=0.1)
    assert bus_gb_per_s(AllReduceRow(4096, 1.0, 1)) is None


def test_a_run_is_made_again_with_its_arguments(browser: Client, alice: User) -> None:
    session = session_open(owner=alice, title="again")
    target = gpu_vm(session, alice)
    pinned = {"ARGV": "--batch=4", "INTERPRETER": "/opt/py/bin/python"}
    tagged = {**pinned, "AB": "a trial", "STEP": "2", "ARM": "A"}
    first = lifecycle.queue_benchmark(session, target, alice, "bench.copy", tagged)
    claim = lifecycle.claim(first.pk)
    assert claim
    assert lifecycle.finish(claim, RunState.SUCCEEDED)
    page = html_of(browser.get(f"/sessions/{session.pk}/runs/{first.pk}"))
    assert "--batch=4" in page
    # A page that watched the run asks for this part when it has ended.
    asks, watched = {"HX-Request": "true"}, f"/sessions/{session.pk}/runs/{first.pk}"
    assert 'id="again"' in html_of(browser.get(f"{watched}?whole=1", headers=asks))
    assert 'id="again"' not in html_of(browser.get(watched, headers=asks))
    asked, address = {"again": "1"}, f"/sessions/{session.pk}/targets/{target.pk}/run"
    refused = html_of(browser.post(address, asked, follow=True))
    assert "tick that it may" in refused
    assert browser.post(address, {"again": "99", "yes": "1"}).status_code == 404
    browser.post(address, {**asked, "yes": "1"})
    second = session.runs.get(number=2)
    assert (second.names, second.arguments) == (["bench.copy"], pinned)


@pytest.mark.parametrize(("bits", "slowed"), [(4, True), (0, False)])
def test_a_run_says_that_its_result_was_throttled(browser: Client, alice: User, bits: int, slowed: bool) -> None:
    session = session_open(owner=alice, title="capped")
    run = lifecycle.queue_benchmark(session, gpu_vm(session, alice), alice, "bench.memory")
    claim = lifecycle.claim(run.pk)
    assert claim
    head, row, end, _ = MEMORY.split("\n")
    columns = '{"telemetry": ["gpu", "power_w", "throttle_bits", "busy_percent"], "every_s": 0.4}'
    look = f'{{"at_s": 0.4, "gpus": [[0, 700.0, {bits}, 99]]}}'
    text = "\n".join((head, columns, look, row, end))
    intake.take_benchmark_output(run, text.encode())
    assert lifecycle.finish(claim, RunState.SUCCEEDED)
    page = html_of(browser.get(f"/sessions/{session.pk}/runs/{run.pk}"))
    assert ("slowed by software power cap" in page) is slowed


def test_a_benchmark_that_waits_says_for_which_run(browser: Client, alice: User, bob: User) -> None:
    session = session_open(owner=alice, title="measure")
    target = gpu_vm(session, alice)
    first, second = (lifecycle.queue_benchmark(session, target, alice, "bench.copy") for _ in range(2))
    where = f"/sessions/{session.pk}/runs/{second.pk}"
    assert "Waiting for a worker" in html_of(browser.get(where))
    assert lifecycle.claim(first.pk)
    assert f"Waits for run {first.number}:" in html_of(browser.get(where))
    other = session_open(owner=bob, title="somebody else's")
    third = lifecycle.queue_benchmark(other, gpu_vm(other, bob), bob, "bench.copy")
    browser.force_login(bob)
    page = html_of(browser.get(f"/sessions/{other.pk}/runs/{third.pk}"))
    assert "another session’s run on this machine" in page


def test_a_run_says_that_its_session_has_enough_at_work(browser: Client, alice: User, settings: Any) -> None:
    settings.RUNS_PER_SESSION = 1
    session = session_open(owner=alice, title="measure")
    first, second = (lifecycle.queue_probes(session, gpu_vm(session, alice, host), alice) for host in ("a", "b"))
    where = f"/sessions/{session.pk}/runs/{second.pk}"
    assert "Waiting for a worker" in html_of(browser.get(where))
    claim = lifecycle.claim(first.pk)
    assert claim
    with CaptureQueriesContext(connection) as queries:
        page = html_of(browser.get(where))
    assert "Waits for a run of this session to end: at most 1 of a session" in page
    assert asked_in(queries) <= 10
    assert lifecycle.finish(claim, RunState.SUCCEEDED)
    assert "Waiting for a worker" in html_of(browser.get(where))


def test_each_ways_latency_and_knee_and_the_slowest_beside_others_are_shown(browser: Client, alice: User) -> None:
    """With what two H200 gave."""
    session = session_open(owner=alice, title="copies")
    for name in ("two_h200.jsonl", "two_h200_contention.jsonl"):
        text = (PAYLOADS / name).read_text()
        browser.post(f"/sessions/{session.pk}/paste/path", {"text": text})
    page = html_of(browser.get(f"/sessions/{session.pk}/path"))
    for cells in (
        ("GPU 0 to 1, peer access on", "2.4", "388.8", "912 KiB", "–"),
        ("GPU 0 to 1, peer access off", "20.7", "35.6", "718 KiB", "1 unstable size left out"),
    ):
        assert (
            "".join(f'<td class="n">{c}</td>' for c in cells[1:4]).join(
                (f"<td>{cells[0]}</td>", f"<td>{cells[4]}</td>")
            )
            in page
        )
    assert "all to all, 2 copies of 16 MiB (peer access off): <b>1.17</b> times" in page


MEMORY = """{"schema": "peerpath.memory/1", "environment": {"device": "cuda"}}
{"kernel": "read", "gpu": "0", "size_bytes": 536870912, "l2_bytes": 62914560, "moved_bytes": 536870912,\
 "timing": "device", "method": "queued", "time_us": 125.0, "ci_low_us": 124.5, "ci_high_us": 125.5}
{"end": true}
"""
LAUNCH = """{"schema": "peerpath.launch/1", "environment": {"device": "cuda"}}
{"what": "operation", "gpu": "0", "timing": "host_sync", "method": "no_wait", "time_us": 4.21}
{"what": "gemm", "gpu": "0", "batch": 8, "hidden": 6144, "intermediate": 2048, "dtype": "bf16",\
 "weight_bytes": 25165824, "beyond_l2": false, "timing": "device", "method": "graph", "time_us": 6.2}
{"end": true}
"""
SMI_LIST = "GPU 0: NVIDIA H200 (UUID: GPU-aaaa0000-1111-2222-3333-000000000000)\n"


def test_memory_and_launches_stand_beside_what_is_expected(browser: Client, alice: User) -> None:
    session = session_open(owner=alice, title="kernels")
    for text in (MEMORY, LAUNCH):
        browser.post(f"/sessions/{session.pk}/paste/path", {"text": text})
    page = html_of(browser.get(f"/sessions/{session.pk}/path"))
    assert "4295" in page
    assert "one small torch operation" in page
    assert "may be served by the cache" in page
    assert "no baseline known" in page  # which card it is was not read yet
    browser.post(f"/sessions/{session.pk}/paste/guest", {"text": f"$ nvidia-smi -L\n{SMI_LIST}"})
    page = html_of(browser.get(f"/sessions/{session.pk}/path"))
    assert "3958–4800 GB/s" in page
    assert "within" in page


def test_how_far_samples_spread_stands_beside_each_figure(browser: Client, alice: User) -> None:
    """Of two H200 the outliers were not counted, so none is told."""
    session = session_open(owner=alice, title="spread")
    counted = MEMORY.replace("125.5}", '125.5, "cv": 0.0234, "samples": 60, "outliers": 3}')
    told = [(PAYLOADS / "two_h200.jsonl").read_text(), counted]
    for text in told:
        browser.post(f"/sessions/{session.pk}/paste/path", {"text": text})
    page = html_of(browser.get(f"/sessions/{session.pk}/path"))
    mark = '<span class="pill open"><span aria-hidden="true">⚠</span> 3</span>'
    assert f'<td class="n">2.3 %</td><td class="n">{mark} of 60</td>' in page
    assert re.search(r'<td class="n">0.[0-9] %</td><td class="n">– of [0-9]+</td>', page)
    assert page.count("three interquartile ranges outside the quartiles") == 2
    assert page.count("Rows with outliers") == 1
    assert "<b>Rows with outliers: 1 of 1.</b>" in page


def ended(run: Run, *pieces: bytes) -> str:
    """The run after it printed these and ended; the path of its page."""
    claim = lifecycle.claim(run.pk)
    assert claim
    for number, piece in enumerate(pieces):
        OutputChunk.objects.create(run=run, number=number, body=piece)
    assert lifecycle.finish(claim, RunState.PARTLY)
    return f"/sessions/{run.session_id}/runs/{run.pk}"


def test_what_a_benchmark_printed_is_shown_after_its_end_too(browser: Client, alice: User) -> None:
    session = session_open(owner=alice, title="reloaded")
    run = lifecycle.queue_benchmark(session, gpu_vm(session, alice), alice, "bench.memory")
    evidence = intake.take_benchmark_output(run, MEMORY.encode())
    address = ended(run, MEMORY[:100].encode(), MEMORY[100:].encode())
    page = unescape(html_of(browser.get(address)))
    assert all(line in page for line in MEMORY.splitlines())
    assert f"/evidence/{evidence.name}" in page
    OutputChunk.objects.all().delete()  # as a purge does
    assert "printed last" not in html_of(browser.get(address))


def test_of_probes_that_nothing_was_read_of_the_output_is_shown(browser: Client, alice: User) -> None:
    session = session_open(owner=alice, title="a shell that refuses")
    run = lifecycle.queue_probes(session, gpu_vm(session, alice), alice)
    address = ended(run, b"This account is currently <not> available.\n")
    page = html_of(browser.get(address))
    assert "What it printed last, 1 line." in page
    assert "This account is currently &lt;not&gt; available." in page
