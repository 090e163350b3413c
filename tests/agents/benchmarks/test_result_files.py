"""Result files and recordings of other tools: what their figures become, and what is refused."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.benchmark import all_benchmarks
from agents.facts import Fact, Reading, ReadingKind, View
from agents.facts.bench import (
    DELIVERY,
    KERNEL_TIMES,
    PAIR_MATRICES,
    PROFILE,
    SERVING,
    DeliveryResult,
    Profile,
    ServingRow,
)
from agents.framing import clean
from agents.parsing import json_text, kernels, steps
from agents.parsing.kernels import Kernel, Kind
from agents.probe import Output
from agents.raw_reading import read_raw

pytestmark = pytest.mark.thorough

MINE = [f"bench.{name}" for name in ("nvbandwidth_json", "simple_p2p", "serving_json")]
MINE += ["bench.profile_trace", "bench.profile_nsys"]


def _read(benchmark: str, text: str) -> dict[str, Reading[Any]]:
    output = Output(clean(text.encode()), "", None, -1)
    return {r.fact_id: r for r in all_benchmarks()[benchmark].parse(output)}


def _pasted(text: str) -> dict[str, Reading[Any]]:
    """As the recogniser finds it, with a line of talk around it."""
    found = read_raw(f"here it is:\n\n{text}\n\nthanks\n".encode(), role=View.GUEST)
    return {r.fact_id: r for item in found.items for r in item.readings}


def _value(found: dict[str, Reading[Any]], fact: Fact[Any]) -> Any:
    reading = found[fact.id]
    assert reading.kind is ReadingKind.KNOWN, reading.detail
    return reading.value


# --- serving ------------------------------------------------------------------------------------------

VLLM = {
    "date": "20251112-080144",
    "model_id": "org/model",
    "num_prompts": 256,
    "max_concurrency": 64,
    "duration": 100.0,
    "completed": 256,
    "total_input_tokens": 26_000,
    "total_output_tokens": 23_000,
    "output_throughput": 230.0,
    "total_token_throughput": 490.0,
    "mean_tpot_ms": 280.0,
    "median_tpot_ms": 270.5,
    "p99_tpot_ms": 301.0,
    "mean_ttft_ms": 990.0,
    "median_ttft_ms": 850.0,
    "p99_ttft_ms": 2100.5,
    "median_itl_ms": 268.0,
    "p99_itl_ms": 310.0,
}
VLLM_ROW = ServingRow(
    64, 230.0, 490.0, 270.5, 256,
    tpot_p99_ms=301.0, ttft_ms=850.0, ttft_p99_ms=2100.5, itl_ms=268.0, itl_p99_ms=310.0,
)  # fmt: skip
SGLANG = {
    "tag": None,
    "backend": "sglang",
    "max_concurrency": 8,
    "duration": 50.0,
    "completed": 80,
    "total_output_tokens": 8_000,
    "input_throughput": 320.0,
    "output_throughput": 160.0,
    "median_tpot_ms": 48.2,
    "concurrency": 7.61,
}
GUIDELLM = {
    "metadata": {"version": 1},
    "benchmarks": [
        {
            "config": {"strategy": {"type_": strategy, "streams": streams}},
            "metrics": {
                "request_totals": {"successful": 40, "errored": 1, "incomplete": 0, "total": 41},
                "output_tokens_per_second": {"successful": {"mean": rate, "median": rate + 5}},
                "tokens_per_second": {"successful": {"mean": rate * 2}},
                "inter_token_latency_ms": {"successful": {"mean": 50.0, "median": 49.0}},
                "time_to_first_token_ms": {"successful": {"mean": 90.0, "median": 80.0}},
            },
        }
        for strategy, streams, rate in (
            ("synchronous", None, 11.0),
            ("concurrent", 16, 120.0),
            ("constant", None, 99.0),
        )
    ],
}
AIPERF = {
    "schema_version": "1.0",
    "input_config": {"loadgen": {"concurrency": 32}},
    "request_count": {"unit": "requests", "avg": 320.0},
    "inter_token_latency": {"unit": "ms", "avg": 40.0, "p50": 39.5},
    "time_to_first_token": {"unit": "us", "avg": 90_000.0, "p50": 81_500.0},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 700.5},
    "total_token_throughput": {"unit": "tokens/sec", "avg": 1400.0},
}
GENAI = {
    "request_throughput": {"unit": "requests/sec", "avg": 1.2},
    "inter_token_latency": {"unit": "ns", "avg": 30_000_000.0},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 250.0},
    "input_config": {"perf_analyzer": {"stimulus": {"concurrency": 4}}},
}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    ("said", "rows"),
    [
        (VLLM, [VLLM_ROW]),
        (SGLANG, [ServingRow(8, 160.0, 480.0, 48.2, 80)]),
        (
            GUIDELLM,
            [
                ServingRow(1, 11.0, 22.0, 49.0, 40, ttft_ms=80.0),
                ServingRow(16, 120.0, 240.0, 49.0, 40, ttft_ms=80.0),
                ServingRow(None, 99.0, 198.0, 49.0, 40, ttft_ms=80.0),
            ],
        ),
        (AIPERF, [ServingRow(32, 700.5, 1400.0, 39.5, 320, ttft_ms=81.5)]),
        (GENAI, [ServingRow(4, 250.0, None, 30.0, None)]),
    ],
    ids=["vllm", "sglang", "guidellm", "aiperf", "genai-perf"],
)
def test_results_become_rows(said: Mapping[str, object], rows: list[ServingRow], indent: int | None) -> None:
    text = json.dumps(said, indent=indent)
    for found in (_read("bench.serving_json", text), _pasted(text)):
        assert found[SERVING.id].kind is ReadingKind.KNOWN
        assert list(_value(found, SERVING)) == rows
        assert found[SERVING.id].complete is all(row.concurrency for row in rows)


def test_a_printed_block_gives_the_waits_too() -> None:
    text = (
        "============ Serving Benchmark Result ============\n"
        "Successful requests:                     256\n"
        "Maximum request concurrency:             64\n"
        "Output token throughput (tok/s):         230.00\n"
        "Total Token throughput (tok/s):          490.00\n"
        "---------------Time to First Token----------------\n"
        "Mean TTFT (ms):                          990.00\n"
        "Median TTFT (ms):                        850.00\n"
        "P99 TTFT (ms):                           2100.50\n"
        "-----Time per Output Token (excl. 1st token)------\n"
        "Median TPOT (ms):                        270.50\n"
        "P99 TPOT (ms):                           301.00\n"
        "---------------Inter-token Latency----------------\n"
        "Median ITL (ms):                         268.00\n"
        "P99 ITL (ms):                            310.00\n"
        "==================================================\n"
    )
    for found in (_read("bench.serving", text), _pasted(text)):
        assert _value(found, SERVING) == (VLLM_ROW,)


def test_json_lines_are_rows_each() -> None:
    text = "\n".join(json.dumps({**SGLANG, "max_concurrency": c}) for c in (1, 8, 64))
    rows = _value(_read("bench.serving_json", text), SERVING)
    assert [row.concurrency for row in rows] == [1, 8, 64]


def test_a_result_that_contradicts_itself_is_left_out() -> None:
    wrong = {**VLLM, "output_throughput": 480.0}
    assert _read("bench.serving_json", json.dumps(wrong))[SERVING.id].kind is ReadingKind.UNREADABLE
    both = f"{json.dumps(wrong)}\n{json.dumps(VLLM)}"
    reading = _read("bench.serving_json", both)[SERVING.id]
    assert len(reading.value or ()) == 1
    assert "disagree" in reading.missing[0]


# --- nvbandwidth and simpleP2P ------------------------------------------------------------------------


def _nvbandwidth(**changes: object) -> str:
    case = {
        "name": "device_to_device_memcpy_read_ce",
        "status": "Passed",
        "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
        "bandwidth_matrix": [["N/A", "52.1"], ["51.9", "N/A"]],
        "sum": 104.0,
        **changes,
    }
    host = {
        "name": "host_to_device_memcpy_ce",
        "status": "Passed",
        "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
        "bandwidth_matrix": [["55.1", "55.2"]],
        "sum": 110.3,
    }
    return json.dumps({"nvbandwidth": {"version": "v0.8", "testcases": [host, case]}}, indent=3)


def test_nvbandwidth_matrices_are_those_between_gpus() -> None:
    for found in (_read("bench.nvbandwidth_json", _nvbandwidth()), _pasted(_nvbandwidth())):
        (matrix,) = _value(found, PAIR_MATRICES)
        assert matrix.values == ((None, 52.1), (51.9, None))
        assert (matrix.unit, matrix.gpus) == ("GB/s", ("0", "1"))


def test_nvbandwidth_nanoseconds_become_microseconds() -> None:
    text = _nvbandwidth(
        name="device_to_device_latency_sm",
        bandwidth_description="Device to Device Latency SM GPU(row) <-> GPU(column) (ns)",
        bandwidth_matrix=[["N/A", "450"], ["460", "N/A"]],
        sum=910,
    )
    (matrix,) = _value(_read("bench.nvbandwidth_json", text), PAIR_MATRICES)
    assert matrix.unit == "us"
    assert matrix.values[0][1] == pytest.approx(0.45)


def test_waived_is_no_figure_and_a_wrong_sum_is_refused() -> None:
    waived = _nvbandwidth(status="Waived", bandwidth_matrix=None)
    reading = _read("bench.nvbandwidth_json", waived)[PAIR_MATRICES.id]
    assert reading.kind is ReadingKind.UNSUPPORTED
    assert "no peer access" in reading.detail
    off = _read("bench.nvbandwidth_json", _nvbandwidth(sum=300.0))[PAIR_MATRICES.id]
    assert off.kind is ReadingKind.UNREADABLE


SIMPLE = """\
[./simpleP2P] - Starting...
Checking for multiple GPUs...
CUDA-capable device count: 2

Checking GPU(s) for support of peer to peer memory access...
> Peer access from NVIDIA L40S (GPU0) -> NVIDIA L40S (GPU1) : Yes
> Peer access from NVIDIA L40S (GPU1) -> NVIDIA L40S (GPU0) : Yes
Enabling peer access between GPU0 and GPU1...
Allocating buffers (64MB on GPU0, GPU1 and CPU Host)...
Creating event handles...
cudaMemcpyPeer / cudaMemcpy between GPU0 and GPU1: 25.00GB/s
Preparing host buffer and memcpy to GPU0...
Run kernel on GPU1, taking source data from GPU0 and writing to GPU1...
Run kernel on GPU0, taking source data from GPU1 and writing to GPU0...
Copy data back to host from GPU0 and verify results...
{end}
Disabling peer access...
Shutting down...
{result}
"""


def test_a_passed_simple_p2p_proves_no_write() -> None:
    text = SIMPLE.format(end="", result="Test passed")
    for found in (_read("bench.simple_p2p", text), _pasted(text)):
        access, copies = _value(found, PAIR_MATRICES)
        assert access.values == ((None, 1.0), (1.0, None))
        assert copies.values[0][1] == pytest.approx(25 * 1024**3 / 1e9)
        assert found[DELIVERY.id].kind is ReadingKind.NOT_RUN


def test_a_failed_simple_p2p_is_a_wrong_delivery() -> None:
    end = "Verification error @ element 0: val = 0.000000, ref = 0.000000"
    reading = _pasted(SIMPLE.format(end=end, result="Test failed!"))[DELIVERY.id]
    cards = {"gpus": "NVIDIA L40S, NVIDIA L40S"}
    assert reading.value == DeliveryResult({"0->1": False, "1->0": False}, cards)


def test_a_waived_simple_p2p_says_no_access_and_nothing_of_delivery() -> None:
    text = """> Peer access from NVIDIA L40S (GPU0) -> NVIDIA L40S (GPU1) : No
> Peer access from NVIDIA L40S (GPU1) -> NVIDIA L40S (GPU0) : No
Two or more GPUs with Peer-to-Peer access capability are required for ./simpleP2P.
Peer to Peer access is not available amongst GPUs in the system, waiving test.
"""
    found = _read("bench.simple_p2p", text)
    assert _value(found, PAIR_MATRICES)[0].values == ((None, 0.0), (0.0, None))
    assert found[DELIVERY.id].kind is ReadingKind.NOT_RUN


def test_a_rate_without_the_lines_above_it_is_read() -> None:
    text = "cudaMemcpyPeer / cudaMemcpy between GPU0 and GPU1: 25.00GB/s\nTest passed\n"
    (copies,) = _value(_read("bench.simple_p2p", text), PAIR_MATRICES)
    assert copies.values[0][1] == pytest.approx(25 * 1024**3 / 1e9)


# --- profiles -----------------------------------------------------------------------------------------

LAYER = [
    ("void vllm::rms_norm_kernel<c10::BFloat16>(x)", 2.0),
    ("nvjet_sm90_tst_64x32_64x16_1x2_h_bz_NNT", 9.0),
    ("flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128>>", 12.0),
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 20.0),
    ("void tensorrt_llm::kernels::fused_moe_gemm(x)", 30.0),
    ("void vllm::cross_device_reduce_1stage<c10::BFloat16, 2>(x)", 5.0),
]
FIRST = [("void at::native::indexSelectSmallIndex_embedding(x)", 3.0)]
LAST = [("at::native::reduce_kernel<ArgMaxOps<float>>(argmax)", 4.0)]
GAP_US = 1.0
STEP = [*FIRST, *(LAYER * 4), *LAST]


def _kernels(count: int, cut: int = 0) -> list[Kernel]:
    found: list[Kernel] = []
    at_us = 1000.0
    for name, took in (STEP * count)[cut:]:
        found.append(Kernel(name, at_us, took))
        at_us += took + GAP_US
    return found


def _trace(found: list[Kernel], marks: list[tuple[str, float]] | None = None) -> str:
    events: list[dict[str, object]] = [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}}]
    events += [
        {"ph": "X", "cat": "kernel", "name": k.name, "pid": 0, "tid": 7, "ts": k.start_us}
        | {"dur": k.duration_us, "args": {"device": 0, "stream": 7}}
        for k in found
    ]
    events += [
        {"ph": "X", "cat": "gpu_user_annotation", "name": name, "pid": 0, "tid": 7, "ts": ts} | {"dur": 1.0, "args": {}}
        for name, ts in marks or []
    ]
    return json.dumps({"schemaVersion": 1, "traceEvents": events}, indent=1)


def _expected() -> Profile:
    spent = dict.fromkeys(Kind, 0.0)
    for name, took in STEP:
        spent[kernels.kind_of(name)] += took / 1000
    return Profile(
        spent[Kind.COLLECTIVE], spent[Kind.ATTENTION], spent[Kind.MOE], spent[Kind.OTHER], len(STEP) * GAP_US / 1000
    )


_NOTHING = Profile(0, 0, 0, 0, 0)


def _close(a: Profile, b: Profile) -> bool:
    parts = ("nccl_ms", "attention_ms", "moe_ms", "other_ms", "gaps_ms")
    return all(getattr(a, part) == pytest.approx(getattr(b, part)) for part in parts)


@pytest.mark.parametrize("cut", [0, 1, 5, 13])
def test_exact_repetition_gives_the_step_wherever_the_recording_began(cut: int) -> None:
    reading = _pasted(_trace(_kernels(6, cut)))[PROFILE.id]
    assert reading.kind is ReadingKind.KNOWN, reading.detail
    assert _close(reading.value or _NOTHING, _expected())
    assert "repeats" in reading.detail


def test_marks_on_the_gpu_give_the_step() -> None:
    found = _kernels(5)
    starts = [found[i * len(STEP)].start_us for i in range(5)]
    # One kernel more in the second step, so that nothing repeats.
    found.append(Kernel("something_else", starts[1] + 2.1, 0.0))
    names = ["execute_context_0(0)_generation_4(4)"] * 5
    reading = _read("bench.profile_trace", _trace(found, list(zip(names, starts, strict=True))))
    assert _close(_value(reading, PROFILE), _expected())
    assert "4 steps by marks" in reading[PROFILE.id].detail


def test_steps_with_prefill_are_no_decode_steps() -> None:
    found = _kernels(5)
    starts = [found[i * len(STEP)].start_us for i in range(5)]
    found.append(Kernel("something_else", starts[1] + 2.1, 0.0))
    names = ["execute_context_1(512)_generation_0(0)"] * 5
    reading = _read("bench.profile_trace", _trace(found, list(zip(names, starts, strict=True))))
    assert reading[PROFILE.id].kind is ReadingKind.NOT_RUN


def test_without_marks_or_repetition_there_is_no_step() -> None:
    found = _kernels(4)
    found.insert(40, Kernel("only_once", found[40].start_us - 0.5, 0.1))
    reading = _read("bench.profile_trace", _trace(found))
    assert reading[PROFILE.id].kind is ReadingKind.NOT_RUN
    assert "no step can be told apart" in reading[PROFILE.id].detail
    assert _value(reading, KERNEL_TIMES).kernels == len(found)


def test_layers_that_repeat_are_not_taken_for_steps() -> None:
    long_layer = LAYER * 2 + [("void vllm::silu_and_mul(x)", 1.0)]
    found = [Kernel(n, 10.0 * i, 5.0) for i, (n, _) in enumerate(long_layer * 8)]
    assert steps.read(found).profile is None
    assert "layer" in steps.read(found).why


def test_a_trace_of_the_processor_alone_is_no_profile() -> None:
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2, "pid": 1}]
    found = _read("bench.profile_trace", json.dumps({"traceEvents": events}))
    assert found[PROFILE.id].kind is ReadingKind.NOT_RUN
    cut = _read("bench.profile_trace", _trace(_kernels(4))[:5000])
    assert cut[PROFILE.id].kind is ReadingKind.UNREADABLE


def test_hidden_communication_counts_for_what_hides_it() -> None:
    both = [Kernel("ncclDevKernel_X", 0.0, 10.0), Kernel("gemm", 4.0, 4.0)]
    found = kernels.profile(both, 0.0, 12.0, 1)
    assert (found.nccl_ms, found.other_ms, found.gaps_ms) == pytest.approx((0.006, 0.004, 0.002))


SPANS = st.lists(st.tuples(st.sampled_from([n for n, _ in STEP]), st.floats(0, 900), st.floats(0, 300)), max_size=40)


@settings(max_examples=50)
@given(spans=SPANS)
def test_the_parts_always_add_up_to_the_window(spans: list[tuple[str, float, float]]) -> None:
    found = kernels.profile([Kernel(*span) for span in spans], 0.0, 1000.0, 4)
    assert found.step_ms == pytest.approx(0.25)
    assert min(found.nccl_ms, found.attention_ms, found.moe_ms, found.other_ms) >= 0


@settings(max_examples=50)
@given(unit=st.lists(st.sampled_from("abc"), min_size=1, max_size=8), times=st.integers(3, 6), tail=st.integers(0, 7))
def test_the_shortest_period_divides_what_was_repeated(unit: list[str], times: int, tail: int) -> None:
    names = unit * times + unit[: tail % len(unit)]
    found = kernels.period(names)
    assert found is not None
    assert len(unit) % found == 0 or found <= len(unit)
    assert all(names[i] == names[i + found] for i in range(len(names) - found))


HEAD = "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),"
HEAD += "Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name"


def _nsys_trace(found: list[Kernel]) -> str:
    rows = [
        f"{k.start_us * 1000:.0f},{k.duration_us * 1000:.0f},{i},1,1,1,128,1,1,32,0.000,0.000,,,,,"
        f'"NVIDIA H200 ({gpu})",1,,7,"{k.name}"'
        for gpu in (0, 1)
        for i, k in enumerate(found)
    ]
    return "\n".join(["Processing [a.sqlite] with [cuda_gpu_trace.py]... ", "", HEAD, *rows])


def test_an_nsys_trace_gives_the_step_of_one_gpu() -> None:
    found = _pasted(_nsys_trace(_kernels(5)))
    assert _close(_value(found, PROFILE), _expected())
    assert "one of 2" in found[PROFILE.id].detail
    assert _value(found, KERNEL_TIMES).kernels == 10 * len(STEP)


SUM_HEAD = '"Time (%)","Total Time (ns)","Instances","Avg (ns)","Med (ns)","Min (ns)","Max (ns)","StdDev (ns)","Name"'
COLUMNS = """ Time (%)  Total Time (ns)  Instances   Avg (ns)   Med (ns)  Min (ns)  Max (ns)  StdDev (ns)  Name
 --------  ---------------  ---------  ---------  ---------  --------  --------  -----------  ------------------------------
     75.0        3,000,000        100   30,000.0   29,000.0    21,000    90,000        100.5  ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)
     25.0        1,000,000         50   20,000.0   20,000.0    19,000    21,000         10.0  flash_fwd_kernel
"""  # noqa: E501


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(
            [
                SUM_HEAD,
                "75.0,3000000,100,30000.0,29000.0,21000,90000,100.5,"
                '"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"',
                "25.0,1000000,50,20000.0,20000.0,19000,21000,10.0,flash_fwd_kernel",
            ]
        ),
        COLUMNS,
        f" ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n\n{COLUMNS}",
    ],
    ids=["csv", "columns", "headed"],
)
def test_a_sum_over_kernels_has_no_step(text: str) -> None:
    found = _pasted(text)
    times = _value(found, KERNEL_TIMES)
    assert (times.nccl_ms, times.attention_ms, times.kernels) == (3.0, 1.0, 150)
    assert found[PROFILE.id].kind is ReadingKind.NOT_RUN
    assert "neither steps nor gaps" in found[PROFILE.id].detail


def test_other_summaries_of_nsys_are_not_about_kernels() -> None:
    api = '"Time (%)","Total Time (ns)","Num Calls","Name"\n"100.0","9000000","20","cudaGraphLaunch"'
    marks = " Time (%)  Total Time (ns)  Instances  Avg (ns)  Style    Range\n"
    marks += " --------  ---------------  ---------  --------  -------  -----\n"
    marks += "     95.0        3,481,709          1  3,481.0   PushPop  Loop\n"
    for text in (api, marks):
        assert _read("bench.profile_nsys", text)[KERNEL_TIMES.id].kind is ReadingKind.UNREADABLE


# --- any text, any size -------------------------------------------------------------------------------

SEEDS = [json.dumps(x, indent=1) for x in (VLLM, GUIDELLM, AIPERF)] + [_nvbandwidth(), COLUMNS]
SEEDS += [SIMPLE.format(end="", result="Test passed"), _trace(_kernels(3)), _nsys_trace(_kernels(3))]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_damaged_results_never_raise(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        text = rng.choice(SEEDS)[:20_000]
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(["", "{", "9e999", '"', "\0", "null", "-"]) + text[at + 1 :]
        for name in MINE:
            benchmark = all_benchmarks()[name]
            readings = benchmark.parse(Output(text, "", None, -1))
            assert {r.fact_id for r in readings} == {f.id for f in benchmark.supplies}


@pytest.mark.parametrize("how", ["crlf", "quoted", "coloured"])
def test_terminals_and_mails_change_nothing(how: str) -> None:
    for text in (COLUMNS, SIMPLE.format(end="", result="Test passed"), json.dumps(VLLM, indent=1)):
        lines = text.split("\n")
        shown = {
            "crlf": "\r\n".join(lines),
            "quoted": "\n".join(f"> {line}" for line in lines),
            "coloured": "\n".join(f"\x1b[1m{line}\x1b[0m" for line in lines),
        }[how]
        assert _pasted(shown).keys() == _pasted(text).keys()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "make",
    [
        lambda n: "{" * n,
        lambda n: "[1," * n,
        lambda n: '{"a": ' * n + "1" + "}" * n,
        lambda n: "{\n" * n,
        lambda n: f"{SUM_HEAD}\n" + "1.0,5,1,1,1,1,1,1,k\n" * n,
        lambda n: "# gpu pwr sm\n" + "0 1 2\n" * n,
        lambda n: "> Peer access from A (GPU0) -> B (GPU1) : Yes\n" * n,
    ],
)
def test_time_grows_with_the_text(make: Any) -> None:
    for name in MINE:
        parse = all_benchmarks()[name].parse
        began = time.process_time()
        parse(Output(make(6_000), "", None, -1))
        assert time.process_time() - began < 20.0, name  # quadratic takes minutes


def test_json_is_found_without_its_first_brace_or_with_talk_around() -> None:
    assert json_text.values('note\n{"a": 1}\nend') == ((2, {"a": 1}),)
    assert json_text.values('{"a": 1}\n{"a": 2}') == ((1, {"a": 1}), (2, {"a": 2}))
    assert json_text.number("1e400") is None
    assert json_text.number(True) is None


@pytest.mark.parametrize(("marked", "known"), [(2, False), (3, True), (4, True)])
def test_three_marked_steps_are_enough(marked: int, known: bool) -> None:
    marks = [steps.Mark(f"ProfilerStep#{n}", 100.0 * n) for n in range(marked + 1)]
    run = [Kernel(f"kernel_{n}_{k}", 100.0 * n + 10 * k, 5.0) for n in range(marked) for k in range(4)]
    assert (steps.read(run, marks).profile is not None) is known
