"""What was measured: once a run has ended, and while it lasts. A new kind of result is one line in MEASURED, and one
where the pages choose its template."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from agents.facts import Fact, Reading, ReadingKind
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
    GpuTelemetry,
)
from agents.facts.kernels import LAUNCH, MEMORY
from agents.framing import clean
from agents.probe import Output
from agents.raw_reading import read_output
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.hypotheses.power_or_thermal_limit import LEAST_SHARE
from webapp.records.models import OutputChunk, Run
from webapp.records.models.run import BENCHMARK

MEASURED: tuple[Fact[Any], ...] = (
    SERVING,
    PROFILE,
    KERNEL_TIMES,
    COPY,
    PAIR_MATRICES,
    ALLREDUCE,
    DELIVERY,
    CONTENTION,
    MEMORY,
    LAUNCH,
)
# characters that are parsed and bytes that are fetched, each time that there is more
LIVE, MOST_PRINTED = 1 << 17, 1 << 20
PIECES_AT_ONCE = 16  # of a run's output, from the database; each is at most 256 KiB
RUNS_WATCHED = 32  # at one time by one process, before two of them are read again for each watcher
_LOOK = '{"at_s"'  # a look of the telemetry, of which there are several a second
TAIL_LINES = 200  # the box scrolls; a watcher whose connection was lost for a while finds them all
MOST_EACH = 6  # results of one kind on the page; all are among the evidence


@dataclass(frozen=True, slots=True)
class ResultPanel:
    """meanwhile: what the GPUs did, by the same output."""

    fact: Fact[Any]
    item: Sourced
    meanwhile: tuple[GpuTelemetry, ...] = ()

    @property
    def title(self) -> str:
        return self.fact.title

    @property
    def result(self) -> Any:
        return self.item.reading.value

    @property
    def slowed_by(self) -> tuple[str, ...]:
        """The reasons that slowed a GPU's clocks often enough to count during this measurement."""
        return held_back(self.meanwhile)


@dataclass(frozen=True, slots=True)
class Live:
    """A run's raw output so far. results: of a benchmark that still runs. lines: the last ones it printed."""

    results: tuple[ResultPanel, ...]
    lines: tuple[str, ...]


def held_back(gpus: Iterable[GpuTelemetry]) -> tuple[str, ...]:
    """The reasons that slowed one of these GPUs often enough to count."""
    often = (gpu for gpu in gpus if (gpu.throttled_percent or 0) / 100 >= LEAST_SHARE)
    return tuple(dict.fromkeys(reason for gpu in often for reason in gpu.throttle_reasons))


def result_panels(facts: Facts) -> list[ResultPanel]:
    """Every known result, by kind, newest first within each. Telemetry is shown below the result measured with it,
    and by itself when there is none."""
    looks = {item.source: item for item in _known_items(facts.all(TELEMETRY))}
    results = [
        _with_telemetry(fact, item, looks.get(item.source))
        for fact in MEASURED
        for item in _known_items(facts.all(fact))[:MOST_EACH]
    ]
    beside = {result.item.source for result in results}
    alone = [item for source, item in looks.items() if source not in beside]
    return results + [ResultPanel(TELEMETRY, item) for item in alone[:MOST_EACH]]


def _known_items(items: Iterable[Sourced]) -> list[Sourced]:
    return [item for item in items if item.reading.kind is ReadingKind.KNOWN]


def _with_telemetry(fact: Fact[Any], item: Sourced, looks: Sourced | None) -> ResultPanel:
    return ResultPanel(fact, item, (looks.reading.value or ()) if looks else ())


def live(run: Run, pieces: int, answers: int) -> Live | None:
    """What a benchmark prints or printed; what a run of probes did of which nothing became evidence. None
    when that is nothing, or was purged. Of more than a poll may read each time only the last lines are
    shown: a machine may print without end. pieces: how many of its output are stored; all who watch it
    share what was read of them."""
    if not pieces or (run.kind != BENCHMARK and (answers or not run.ended)):
        return None
    return _live_view(run.pk, "" if run.ended else run.names[0], pieces)


@lru_cache(maxsize=RUNS_WATCHED)
def _live_view(run_id: UUID, benchmark: str, _pieces: int) -> Live | None:
    """Pieces are only ever added, so their number says what they are. benchmark: "" for the lines alone."""
    raw = _printed_output(run_id)
    lines = [line for line in clean(raw).splitlines() if not line.startswith(_LOOK)]
    if not lines:
        return None
    text = "\n".join(lines)
    parsed = benchmark and len(text) <= LIVE
    readings = read_output(benchmark, Output(text, truncated=True)) if parsed else ()
    return Live(tuple(_in_order(readings)), tuple(line[:300] for line in lines[-TAIL_LINES:]))


def _printed_output(run_id: UUID) -> bytes:
    """All of it; of what is too much a piece, longer than what is parsed."""
    newest_first = OutputChunk.objects.filter(run=run_id).order_by("-number")
    bodies: deque[bytes] = deque()
    size = 0
    for body in newest_first.values_list("body", flat=True).iterator(chunk_size=PIECES_AT_ONCE):
        bodies.appendleft(bytes(body))
        size += len(body)
        if size > MOST_PRINTED:
            return b"".join(bodies)[-LIVE - 1 :]
    return b"".join(bodies)


def _in_order(readings: Iterable[Reading[Any]]) -> Iterable[ResultPanel]:
    known = {r.fact_id: r for r in readings if r.kind is ReadingKind.KNOWN}
    for fact in MEASURED:
        if fact.id in known:
            yield ResultPanel(fact, Sourced(known[fact.id], "live@"))
