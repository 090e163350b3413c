"""What was measured, and which part of the page shows it: once a run has ended, and while it lasts.

A new kind of result is one line in SHOWN; its template gets the reading as `item` and its value as `result`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agents.facts import Fact, Reading, ReadingKind
from agents.facts.bench import (
    ALLREDUCE,
    CONTENTION,
    COPY,
    DELIVERY,
    KERNEL_TIMES,
    NCCL_SWEEP,
    PAIR_MATRICES,
    PROFILE,
    SERVING,
    TELEMETRY,
    GpuTelemetry,
)
from agents.facts.kernels import LAUNCH, MEMORY
from agents.framing import clean
from agents.probe import Output
from agents.read import read_output
from webapp.diagnosis.facts import Facts, Sourced
from webapp.triage.models import Run
from webapp.triage.runs import BENCHMARK

SHOWN: tuple[tuple[Fact[Any], str], ...] = (
    (SERVING, "triage/_serving.html"),
    (PROFILE, "triage/_profile.html"),
    (KERNEL_TIMES, "triage/_kernel_times.html"),
    (COPY, "triage/_copies.html"),
    (PAIR_MATRICES, "triage/_pair_matrices.html"),
    (ALLREDUCE, "triage/_all_reduce.html"),
    (DELIVERY, "triage/_delivery.html"),
    (CONTENTION, "triage/_contention.html"),
    (NCCL_SWEEP, "triage/_nccl_sweep.html"),
    (MEMORY, "triage/_memory.html"),
    (LAUNCH, "triage/_launch.html"),
)
LIVE, MOST_PRINTED = (
    1 << 17,
    1 << 20,
)  # characters that are parsed and bytes that are fetched, each poll
_LOOK = '{"at_s"'  # a look of the telemetry, of which there are several a second
TAIL_LINES = 200  # the box scrolls; a watcher whose connection was lost for a while finds them all
MOST_EACH = 6  # results of one kind on the page; all are among the evidence


@dataclass(frozen=True, slots=True)
class Measured:
    """templates: the first that exists shows it. meanwhile: what the GPUs did, by the same output."""

    title: str
    templates: tuple[str, ...]
    item: Sourced
    meanwhile: tuple[GpuTelemetry, ...] = ()

    @property
    def result(self) -> Any:
        return self.item.reading.value


@dataclass(frozen=True, slots=True)
class Live:
    """A benchmark that still runs, as far as it came. lines: the last ones it printed."""

    results: tuple[Measured, ...]
    lines: tuple[str, ...]


def measured(facts: Facts) -> list[Measured]:
    """Every known result, kind by kind, newest first within each. Telemetry stands under what was
    measured along with it, and by itself where that is nothing."""
    looks = {item.source: item for item in _known(facts.all(TELEMETRY))}
    found = [
        _shown(fact, template, item, looks.get(item.source))
        for fact, template in SHOWN
        for item in _known(facts.all(fact))[:MOST_EACH]
    ]
    beside = {shown.item.source for shown in found}
    alone = [item for source, item in looks.items() if source not in beside]
    return found + [_shown(TELEMETRY, "triage/_telemetry.html", item) for item in alone[:MOST_EACH]]


def _known(items: Iterable[Sourced]) -> list[Sourced]:
    return [item for item in items if item.reading.kind is ReadingKind.KNOWN]


def _shown(fact: Fact[Any], template: str, item: Sourced, looks: Sourced | None = None) -> Measured:
    meanwhile = (looks.reading.value or ()) if looks else ()
    return Measured(fact.title, (template, "triage/_measured.html"), item, meanwhile)


def live(run: Run) -> Live | None:
    """None when it is no benchmark, or has ended, or has printed nothing yet. Of more than a poll may
    read each time only the last lines are shown: a machine may print without end."""
    if run.kind != BENCHMARK or run.ended:
        return None
    raw = _printed(run)
    lines = [line for line in clean(raw).splitlines() if not line.startswith(_LOOK)]
    if not lines:
        return None
    text = "\n".join(lines)
    readings = read_output(run.names[0], Output(text, truncated=True)) if len(text) <= LIVE else ()
    return Live(tuple(_in_order(readings)), tuple(line[:300] for line in lines[-TAIL_LINES:]))


def _printed(run: Run) -> bytes:
    """All of it; of what is too much a piece, longer than what is parsed."""
    raw = b""
    newest_first = run.chunks.order_by("-number").values_list("body", flat=True)
    for body in newest_first.iterator(chunk_size=1):
        raw = bytes(body) + raw
        if len(raw) > MOST_PRINTED:
            return raw[-LIVE - 1 :]
    return raw


def _in_order(readings: Iterable[Reading[Any]]) -> Iterable[Measured]:
    known = {r.fact_id: r for r in readings if r.kind is ReadingKind.KNOWN}
    for fact, template in SHOWN:
        if fact.id in known:
            yield _shown(fact, template, Sourced(known[fact.id], "live@"))
