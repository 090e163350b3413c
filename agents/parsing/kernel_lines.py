"""JSON lines of the kernels payload (schemas peerpath.memory/1 and peerpath.launch/1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agents.facts.bench import Timing
from agents.facts.kernels import Figures, LaunchRow, MemoryRow, Work
from agents.parsing import payload_lines
from agents.parsing.payload_lines import PayloadLines, number_of, text_of, whole_of

MEMORY_SCHEMA, LAUNCH_SCHEMA = "peerpath.memory/1", "peerpath.launch/1"
_KERNELS = frozenset({"read", "copy", "triad"})
_METHODS = {Timing.DEVICE: frozenset({"queued", "graph"}), Timing.HOST_SYNC: frozenset({"call", "no_wait"})}

Row = TypeVar("Row", MemoryRow, LaunchRow)


@dataclass(frozen=True, slots=True)
class KernelLines(Generic[Row]):
    """said: the frame around the rows. played: why they say nothing of GPUs, if they do not."""

    rows: tuple[Row, ...]
    said: PayloadLines
    environment: Mapping[str, str]
    played: str

    @property
    def lines(self) -> tuple[int, ...]:
        return tuple(row.line for row in self.rows)


def memory(text: str) -> KernelLines[MemoryRow]:
    return _read(text, MEMORY_SCHEMA, _memory_row)


def launch(text: str) -> KernelLines[LaunchRow]:
    return _read(text, LAUNCH_SCHEMA, _launch_row)


def _read(text: str, schema: str, make: Callable[[Mapping[str, Any], int], Row | None]) -> KernelLines[Row]:
    said = payload_lines.read(text, schema)
    rows = tuple(row for number, line in said.rows if (row := make(line, number)))
    environment = dict(said.environment)
    if said.notes:
        environment["notes"] = "; ".join(said.notes)
    played = "the CPU played one, to try the program" if environment.get("device") == "cpu" else ""
    return KernelLines(rows, said, environment, played)


def _figures(said: Mapping[str, Any]) -> Figures | None:
    """None when the line does not say how long, or how that was timed."""
    time_us, timing = number_of(said.get("time_us")), text_of(said.get("timing", ""))
    if time_us is None or time_us <= 0 or timing not in set(_METHODS):
        return None
    if said.get("method") not in _METHODS[Timing(timing)]:
        return None
    unstable = said.get("unstable")
    return Figures(
        time_us,
        Timing(timing),
        text_of(said["method"]),
        p95_us=number_of(said.get("p95_us")),
        p99_us=number_of(said.get("p99_us")),
        ci_low_us=number_of(said.get("ci_low_us")),
        ci_high_us=number_of(said.get("ci_high_us")),
        cv=number_of(said.get("cv")),
        samples=whole_of(said, "samples"),
        outliers=whole_of(said, "outliers"),
        unstable=unstable if isinstance(unstable, bool) else None,
    )


def _memory_row(said: Mapping[str, Any], line: int) -> MemoryRow | None:
    """The rate is recomputed: a printed one that differs by more than 5 % makes the row no row."""
    figures = _figures(said)
    size, moved, l2 = (whole_of(said, name) for name in ("size_bytes", "moved_bytes", "l2_bytes"))
    if figures is None or not size or not moved or said.get("kernel") not in _KERNELS:
        return None
    rate, printed = moved / figures.time_us / 1e3, number_of(said.get("gb_per_s"))
    if printed is not None and abs(printed - rate) > 0.05 * rate:
        return None
    gpu, kernel = text_of(said.get("gpu", "?")), text_of(said["kernel"])
    return MemoryRow(gpu, kernel, size, moved, l2 or 0, rate, figures, line)


def _launch_row(said: Mapping[str, Any], line: int) -> LaunchRow | None:
    figures = _figures(said)
    if figures is None or said.get("what") not in {str(work) for work in Work}:
        return None
    beyond = said.get("beyond_l2")
    weight_bytes = whole_of(said, "weight_bytes")
    return LaunchRow(
        Work(said["what"]),
        text_of(said.get("gpu", "?")),
        figures,
        batch=whole_of(said, "batch"),
        hidden=whole_of(said, "hidden"),
        intermediate=whole_of(said, "intermediate"),
        dtype=text_of(said.get("dtype", "")),
        experts=whole_of(said, "experts"),
        kernels=whole_of(said, "kernels"),
        weight_bytes=weight_bytes,
        beyond_l2=beyond if isinstance(beyond, bool) else None,
        gb_per_s=weight_bytes / figures.time_us / 1e3 if weight_bytes else None,
        line=line,
    )
