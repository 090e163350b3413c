"""How results of measurements are shown: the part of a page for each, its figures and its rows."""

from collections.abc import Iterable
from typing import Any

from django import template

from agents.benchmark import all_benchmarks
from agents.facts.bench import (
    ALLREDUCE,
    CONTENTION,
    COPY,
    DELIVERY,
    KERNEL_TIMES,
    PAIR_MATRICES,
    PROFILE,
    SERVING,
    TELEMETRY,
    AllReduceRow,
    CopyResult,
)
from agents.facts.kernels import LAUNCH, MEMORY
from webapp.diagnosis.reference.curves import ring_volume
from webapp.diagnosis.situation import copy_fit
from webapp.presenting import figures
from webapp.presenting import measured_figures as drawn
from webapp.records import reading_codec
from webapp.records.models import Evidence
from webapp.runs.results import ResultPanel, held_back

register = template.Library()

# The part of a page for each kind of result: it gets the reading as `item` and its value as `result`.
TEMPLATES = {
    SERVING.id: "session/_serving.html",
    PROFILE.id: "session/_profile.html",
    KERNEL_TIMES.id: "session/_kernel_times.html",
    COPY.id: "session/_copies.html",
    PAIR_MATRICES.id: "session/_pair_matrices.html",
    ALLREDUCE.id: "session/_all_reduce.html",
    DELIVERY.id: "session/_delivery.html",
    CONTENTION.id: "session/_contention.html",
    MEMORY.id: "session/_memory.html",
    LAUNCH.id: "session/_launch.html",
    TELEMETRY.id: "session/_telemetry.html",
}


@register.filter
def result_template(result: ResultPanel) -> str:
    """Its sentence alone for a kind that has no part of its own."""
    return TEMPLATES.get(result.fact.id, "session/_measured.html")


@register.inclusion_tag("components/_plots.html")
def copy_figure(*results: Any) -> dict[str, Any]:
    """One result as it is, or two as before and after."""
    names = [""] if len(results) == 1 else ["before:", "after:"]
    named = list(zip(names, results, strict=False))
    plots = [drawn.copy_plot(named), drawn.bandwidth_plot(named)]
    maps = drawn.copy_maps(results[0]) if len(results) == 1 else []
    return {"plots": [plot for plot in plots if plot], "maps": maps}


@register.filter
def way_fits(result: CopyResult) -> tuple[copy_fit.WayFit, ...]:
    """Latency, bandwidth and knee of each way that was copied."""
    return copy_fit.way_fits(result.rows)


@register.inclusion_tag("components/_plots.html")
def all_reduce_figure(result: Any) -> dict[str, Any]:
    plot = drawn.all_reduce_plot(result)
    return {"plots": [plot] if plot else []}


@register.inclusion_tag("components/_plots.html")
def serving_figure(rows: Any) -> dict[str, Any]:
    return {"plots": drawn.serving_plots(rows)}


@register.inclusion_tag("components/_plots.html")
def matrix_figure(matrices: Any) -> dict[str, Any]:
    return {"maps": [drawn.matrix_map(m) for m in matrices if m.unit != "access"]}


@register.inclusion_tag("session/_timebar.html")
def profile_bar(profile: Any) -> dict[str, Any]:
    return {"bar": figures.profile_bar(profile)}


PART_TITLES = {
    "nccl": "NCCL and other collectives",
    "attention": "attention",
    "moe": "experts",
    "other": "other kernels: dense layers, norms, sampling",
    "gaps": "gaps in which no kernel runs: launches and the host",
}


@register.filter
def profile_parts(profile: Any) -> list[dict[str, Any]]:
    """{title, ms, share} of each part of a step; share in percent."""
    times = [(title, getattr(profile, f"{name}_ms")) for name, title in PART_TITLES.items()]
    return [{"title": title, "ms": ms, "share": 100 * profile.share(ms)} for title, ms in times]


@register.filter
def benchmark_title(name: str) -> str:
    """Its id where it is none of today's."""
    benchmark = all_benchmarks().get(name)
    return benchmark.title if benchmark else name


@register.filter
def bar_parts(profiled_ms: Any) -> list[tuple[Any, str, str]]:
    """(range, colour, name) of each part that the profile has, as the bar shows them."""
    return [(profiled_ms[name], kind, label) for name, kind, label in figures.PARTS if name in profiled_ms]


@register.filter
def bus_gb_per_s(row: AllReduceRow) -> float | None:
    """nccl-tests' busbw of an all-reduce (its doc/PERFORMANCE.md), in 10⁹ bytes a second."""
    rate = row.size_bytes / row.time_us / 1e3 if row.time_us else 0.0
    return rate * ring_volume(row.ranks) if row.ranks > 1 else None


@register.filter
def timing(value: str) -> str:
    return {"device": "on the device", "host_sync": "with synchronise", "unknown": "not said"}[value]


WORK = {
    "synchronise": "a wait for nothing",
    "kernel": "a kernel that does nothing",
    "operation": "one small torch operation",
    "graph": "a CUDA graph",
    "gemm": "product with a layer’s weights",
    "grouped_gemm": "products with experts’ weights",
}


@register.filter
def work_words(what: str) -> str:
    return WORK.get(what, what.replace("_", " "))


@register.filter
def outlying(rows: Iterable[Any]) -> str:
    """In how many of the rows that were counted a sample is an outlier; "" where none was counted."""
    counts = [getattr(row, "figures", row).outliers for row in rows]
    counted = [outliers for outliers in counts if outliers is not None]
    with_some = sum(outliers > 0 for outliers in counted)
    return f"Rows with outliers: {with_some} of {len(counted)}." if counted else ""


@register.filter
def slowed_by(evidence: Iterable[Evidence]) -> tuple[str, ...]:
    """By the telemetry among a run's outputs; nothing where there is none. Their readings are prefetched."""
    stored = [r for one in evidence for r in one.readings.all() if r.fact_id == TELEMETRY.id]
    readings = [
        reading_codec.decode(reading_codec.Row(r.fact_id, r.kind, r.value, r.detail, r.lines, r.missing))
        for r in stored
    ]
    return held_back(gpu for reading in readings for gpu in reading.value or ())
