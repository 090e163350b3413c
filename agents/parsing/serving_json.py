"""Result files of serving benchmarks, normalised to rows.

`vllm bench serve --save-result` (vllm/benchmarks/serve.py: output_throughput, total_token_throughput,
max_concurrency, median_tpot_ms, completed) · `sglang.bench_serving --output-file` (JSON lines;
input_throughput, in newer ones total_throughput) · GuideLLM (benchmarks[].metrics.<name>.successful,
src/guidellm/benchmark/schemas/generative/metrics.py) · AIPerf profile_export_aiperf.json and GenAI-Perf
profile_export_genai_perf.json (<metric>.avg with a unit, input_config).
Throughputs are tokens a second over all requests; time per output token is the median where there is one.
"""

from typing import Any

from agents.facts.bench import ServingRow
from agents.parsing import json_text
from agents.parsing.json_text import at, number

# A file contradicts itself when its tokens and duration give a throughput that differs from the stated one.
_TOLERANCE = 0.05
_MS = {"ms": 1.0, "milliseconds": 1.0, "us": 1e-3, "ns": 1e-6, "s": 1e3, "sec": 1e3, "seconds": 1e3}

Answer = tuple[tuple[ServingRow, ...], tuple[int, ...], tuple[str, ...]]


def parse(text: str) -> Answer:
    """The rows, the first lines of their objects, and the results left out."""
    rows: list[ServingRow] = []
    lines: list[int] = []
    left_out: list[str] = []
    for line, value in json_text.values(text):
        for entry in value if isinstance(value, list) else [value]:
            for row in _rows(entry):
                if row is None:
                    left_out.append(f"a result on line {line}: its tokens and duration disagree")
                    continue
                rows.append(row)
                lines.append(line)
    return tuple(rows), tuple(dict.fromkeys(lines)), tuple(left_out)


def _rows(report: Any) -> list[ServingRow | None]:
    if not isinstance(report, dict):
        return []
    if isinstance(report.get("benchmarks"), list):
        return [row for item in report["benchmarks"] if (row := _guidellm(item))]
    if isinstance(report.get("output_token_throughput"), dict):
        return [_aiperf(report)]
    if number(report.get("output_throughput")) is not None and "completed" in report:
        return [_engine(report)]
    return []


def _engine(report: dict[str, Any]) -> ServingRow | None:
    """The row of a vLLM or SGLang file; None when the arithmetic fails."""
    output = number(report.get("output_throughput"))
    tokens, duration = number(report.get("total_output_tokens")), number(report.get("duration"))
    if output and tokens and duration and abs(tokens / duration - output) > _TOLERANCE * output:
        return None
    total = number(report.get("total_token_throughput")) or number(report.get("total_throughput"))
    input_rate = number(report.get("input_throughput"))
    if total is None and input_rate is not None and output is not None:
        total = input_rate + output
    tpot = number(report.get("median_tpot_ms"))
    tpot = number(report.get("mean_tpot_ms")) if tpot is None else tpot
    return ServingRow(
        _count(report.get("max_concurrency")),
        output,
        total,
        tpot,
        _count(report.get("completed")),
        tpot_p99_ms=number(report.get("p99_tpot_ms")),
        ttft_ms=number(report.get("median_ttft_ms")),
        ttft_p99_ms=number(report.get("p99_ttft_ms")),
        itl_ms=number(report.get("median_itl_ms")),
        itl_p99_ms=number(report.get("p99_itl_ms")),
    )


def _guidellm(item: Any) -> ServingRow | None:
    metrics = at(item, "metrics")
    output = _successful_metric(metrics, "output_tokens_per_second", "mean")
    if output is None:
        return None
    tpot = _successful_metric(metrics, "inter_token_latency_ms", "median")
    if tpot is None:
        tpot = _successful_metric(metrics, "time_per_output_token_ms", "median")
    totals = at(metrics, "request_totals") or at(item, "request_totals")
    return ServingRow(
        _streams(item),
        output,
        _successful_metric(metrics, "tokens_per_second", "mean"),
        tpot,
        _count(at(totals, "successful")),
        ttft_ms=_successful_metric(metrics, "time_to_first_token_ms", "median"),
    )


def _successful_metric(metrics: Any, name: str, statistic: str) -> float | None:
    return number(at(metrics, name, "successful", statistic))


def _streams(item: Any) -> int | None:
    """The limit of a concurrent strategy; other strategies set a rate, not a limit."""
    for path in (("config", "strategy"), ("args", "strategy"), ("scheduler", "strategy")):
        strategy = at(item, *path)
        kind = at(strategy, "type_") or at(strategy, "kind")
        if kind == "synchronous":
            return 1
        if kind == "concurrent":
            return _count(at(strategy, "streams")) or _count(at(strategy, "max_concurrency"))
    return None


def _aiperf(report: dict[str, Any]) -> ServingRow:
    latency = report.get("inter_token_latency")
    value = number(at(latency, "p50"))
    value = number(at(latency, "avg")) if value is None else value
    scale = _scale(latency)
    first = report.get("time_to_first_token")
    ttft, ttft_scale = number(at(first, "p50")), _scale(first)
    return ServingRow(
        _concurrency(report.get("input_config")),
        number(at(report, "output_token_throughput", "avg")),
        number(at(report, "total_token_throughput", "avg")),
        value * scale if value is not None and scale is not None else None,
        _count(at(report, "request_count", "avg")),
        ttft_ms=ttft * ttft_scale if ttft is not None and ttft_scale is not None else None,
    )


def _scale(metric: Any) -> float | None:
    """Milliseconds per unit; None for an unknown unit."""
    return _MS.get(str(at(metric, "unit") or "ms").strip().lower())


def _concurrency(config: Any) -> int | None:
    """input_config.loadgen.concurrency (AIPerf), .perf_analyzer.stimulus.concurrency (GenAI-Perf)."""
    paths = (("loadgen", "concurrency"), ("perf_analyzer", "stimulus", "concurrency"), ("concurrency",))
    return next((count for path in paths if (count := _count(at(config, *path)))), None)


def _count(value: Any) -> int | None:
    count = number(value)
    return int(count) if count is not None and 0 <= count < 1e12 else None
